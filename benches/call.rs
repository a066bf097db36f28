//! What a program waits for on the host: a new scanner and its first scan, three times with an empty folder of compiled kernels
//! and three times with one that has them, each in a process of its own; and a call until it returns, with cudarc's event
//! tracking as it comes and without. Needs a GPU.
//!
//!     cargo bench --bench call
//!
//! - *context*: `CudaContext::new`, in milliseconds; it is none of the scanner's.
//! - *scanner*, *first scan*: `Scanner::new`, and from there until the first scan's output is there, in milliseconds.
//! - *call*: from the call of `Scanner::inclusive` until it returns, of 1024 elements, in microseconds: the median over 101
//!   rounds of the mean of 64 calls behind each other, after which the stream is waited for.
//! - *and waited for*: one call until the stream has done it, likewise.

use cudarc::driver::CudaContext;
use lookback::cuda::{Scanner, toolkit};
use lookback::element::Operator;
use std::error::Error;
use std::process::Command;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

const ELEMENTS: usize = 1024;
const ROUNDS: usize = 101;
const CALLS: u32 = 64;
/// The argument of a process that starts, says how long it took, and ends.
const START: &str = "--start";

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Milliseconds of the context, the scanner and the first scan.
fn start() -> Outcome<[f64; 3]> {
    toolkit::probe_driver()?;
    let begin = Instant::now();
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let of_context = milliseconds(begin);
    let input = stream.clone_htod(&vec![1_u32; ELEMENTS])?;
    let mut output = stream.alloc_zeros::<u32>(ELEMENTS)?;
    stream.synchronize()?;
    let begin = Instant::now();
    let scanner = Scanner::new(&context)?;
    let of_scanner = milliseconds(begin);
    let begin = Instant::now();
    scanner.inclusive(&stream, Operator::Sum, &input, &mut output)?;
    stream.synchronize()?;
    let of_scan = milliseconds(begin);
    let found = stream.clone_dtoh(&output)?;
    assert!(found.iter().zip(1..).all(|(&found, wanted)| found == wanted), "the first scan is wrong");
    Ok([of_context, of_scanner, of_scan])
}

/// Microseconds of a call until it returns, and until the stream has done it.
fn call(has_tracking: bool) -> Outcome<[f64; 2]> {
    let context = CudaContext::new(0)?;
    if !has_tracking {
        // SAFETY: one stream touches the arrays.
        unsafe { context.disable_event_tracking() };
    }
    let stream = context.new_stream()?;
    let scanner = Scanner::new(&context)?;
    let input = stream.clone_htod(&vec![1_u32; ELEMENTS])?;
    let mut output = stream.alloc_zeros::<u32>(ELEMENTS)?;
    scanner.inclusive(&stream, Operator::Sum, &input, &mut output)?;
    stream.synchronize()?;
    let (mut returned, mut done) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        for _ in 0..CALLS {
            scanner.inclusive(&stream, Operator::Sum, &input, &mut output)?;
        }
        returned.push(milliseconds(begin) * 1e3 / f64::from(CALLS));
        stream.synchronize()?;
        let begin = Instant::now();
        scanner.inclusive(&stream, Operator::Sum, &input, &mut output)?;
        stream.synchronize()?;
        done.push(milliseconds(begin) * 1e3);
    }
    Ok([returned, done].map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

fn main() -> Outcome<()> {
    if std::env::args().any(|argument| argument == START) {
        let [context, scanner, scan] = start()?;
        println!("{context:>9.1} {scanner:>9.2} {scan:>11.2}");
        return Ok(());
    }
    toolkit::probe_driver()?;
    println!("{:<8}{:>9} {:>9} {:>11}   ms", "kernels", "context", "scanner", "first scan");
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?, tempfile::tempdir()?];
    for (kept, folder) in ["none", "kept"].iter().flat_map(|kept| folders.iter().map(move |folder| (kept, folder))) {
        let program = std::env::current_exe()?;
        let child = Command::new(program).arg(START).env("LOOKBACK_CACHE_DIR", folder.path()).output()?;
        if !child.status.success() {
            return Err(String::from_utf8_lossy(&child.stderr).trim().to_owned().into());
        }
        print!("{kept:<8}{}", String::from_utf8_lossy(&child.stdout));
    }
    println!("\n{:<24}{:>6} {:>15}   us", "event tracking", "call", "and waited for");
    for has_tracking in [true, false] {
        let [returned, done] = call(has_tracking)?;
        println!("{:<24}{returned:>6.2} {done:>15.2}", if has_tracking { "on, as it comes" } else { "off" });
    }
    Ok(())
}
