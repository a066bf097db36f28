//! `lookback call`: what a program waits for on the host.

use super::console::Console;
use super::error::CliError;
use crate::lab::measure::call_times::{CallTimes, Calls, Start};
use clap::Args;

/// `lookback call`.
#[derive(Debug, Clone, Args)]
pub struct CallArguments {
    /// Be one of the processes: start, say how long it took in milliseconds, and end
    #[arg(long)]
    pub start: bool,
}

/// New processes of each kind.
const STARTS: usize = 3;

/// Runs `lookback call`.
///
/// # Errors
/// When there is no GPU, or a scan fails or is wrong.
pub fn call(arguments: &CallArguments, console: &mut Console) -> Result<(), CliError> {
    if arguments.start {
        let [context, scanner, scan] = on_gpu::start()?;
        return console.print(&format!("{context:.3} {scanner:.3} {scan:.3}\n"));
    }
    console.print(&text(&measure()?))
}

/// Measures all of it: processes first, of which the first of all may find nothing in the host's page cache.
///
/// # Errors
/// When there is no GPU, a process does not end well, or a scan fails or is wrong.
pub(super) fn measure() -> Result<CallTimes, CliError> {
    on_gpu::measure()
}

/// Two tables in 80 columns.
fn text(times: &CallTimes) -> String {
    let mut text = format!("{:<24}{:>9} {:>9} {:>11}   ms\n", "compiled kernels", "context", "scanner", "first scan");
    for Start { has_kernels, context_ms, scanner_ms, first_scan_ms } in &times.starts {
        let kept = if *has_kernels { "kept" } else { "none" };
        text += &format!("{kept:<24}{context_ms:>9.1} {scanner_ms:>9.2} {first_scan_ms:>11.2}\n");
    }
    text += &format!("\n{:<24}{:>9} {:>21}   us\n", "event tracking", "returns", "and waited for");
    for (name, calls) in [("on, as it comes", &times.tracked), ("off", &times.untracked)] {
        let [returned, done] = calls.medians_us().map(|time| time.map_or("-".to_owned(), |time| format!("{time:.2}")));
        text += &format!("{name:<24}{returned:>9} {done:>21}\n");
    }
    text
}

#[cfg(feature = "cuda")]
mod on_gpu {
    use super::*;
    use crate::cuda::error::{Context as _, CudaError};
    use crate::cuda::{Scanner, toolkit};
    use crate::element::Operator;
    use crate::lab::device::DeviceError;
    use cudarc::driver::CudaContext;
    use std::process::Command;
    use std::time::Instant;

    const ROUNDS: usize = 101;

    fn milliseconds(since: Instant) -> f64 {
        since.elapsed().as_secs_f64() * 1e3
    }

    fn failed(error: CudaError) -> CliError {
        if error.is_absence() {
            let instead = "calls on the CPU device say nothing about a GPU";
            return CliError::NeedsGpu { what: "call", instead, source: Box::new(error) };
        }
        CliError::Device(DeviceError::Cuda(error))
    }

    /// Milliseconds of the context, the scanner and the first scan.
    pub(super) fn start() -> Result<[f64; 3], CliError> {
        let times = || -> Result<([f64; 3], Vec<u32>), CudaError> {
            toolkit::probe_driver()?;
            let begin = Instant::now();
            let context = CudaContext::new(0).during(|| String::from("opening CUDA device 0"))?;
            let stream = context.new_stream().during(|| String::from("making a stream"))?;
            let of_context = milliseconds(begin);
            let input =
                stream.clone_htod(&vec![1_u32; CallTimes::ELEMENTS]).during(|| String::from("copying an input"))?;
            let mut output =
                stream.alloc_zeros::<u32>(CallTimes::ELEMENTS).during(|| String::from("allocating an output"))?;
            let wait = || stream.synchronize().during(|| String::from("waiting for a scan"));
            wait()?;
            let begin = Instant::now();
            let scanner = Scanner::new(&context)?;
            let of_scanner = milliseconds(begin);
            let begin = Instant::now();
            scanner.inclusive(&stream, Operator::Sum, &input, &mut output)?;
            wait()?;
            let of_scan = milliseconds(begin);
            let found = stream.clone_dtoh(&output).during(|| String::from("reading an output"))?;
            Ok(([of_context, of_scanner, of_scan], found))
        };
        let (times, found) = times().map_err(failed)?;
        if !found.iter().zip(1..).all(|(&found, wanted)| found == wanted) {
            return Err(failed(CudaError::unexpected(
                "the first scan of a new scanner",
                "WRONG",
                "nothing is measured",
            )));
        }
        Ok(times)
    }

    /// Calls until they return, and until the stream has done them.
    fn calls(has_tracking: bool) -> Result<Calls, CudaError> {
        let context = CudaContext::new(0).during(|| String::from("opening CUDA device 0"))?;
        if !has_tracking {
            // SAFETY: one stream touches the arrays.
            unsafe { context.disable_event_tracking() };
        }
        let stream = context.new_stream().during(|| String::from("making a stream"))?;
        let scanner = Scanner::new(&context)?;
        let input = stream.clone_htod(&vec![1_u32; CallTimes::ELEMENTS]).during(|| String::from("copying an input"))?;
        let mut output =
            stream.alloc_zeros::<u32>(CallTimes::ELEMENTS).during(|| String::from("allocating an output"))?;
        let mut call = || scanner.inclusive(&stream, Operator::Sum, &input, &mut output);
        let wait = || stream.synchronize().during(|| String::from("waiting for scans"));
        call()?;
        wait()?;
        let mut calls = Calls::default();
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            for _ in 0..CallTimes::CALLS {
                call()?;
            }
            calls.returned_us.push(milliseconds(begin) * 1e3 / f64::from(CallTimes::CALLS));
            wait()?;
            let begin = Instant::now();
            call()?;
            wait()?;
            calls.done_us.push(milliseconds(begin) * 1e3);
        }
        Ok(calls)
    }

    pub(super) fn measure() -> Result<CallTimes, CliError> {
        toolkit::probe_driver().map_err(failed)?;
        let no_place = |error: std::io::Error| {
            CliError::Usage(format!("a process cannot be started: {}", crate::file::reason(&error)))
        };
        let folders = (0..STARTS).map(|_| tempfile::tempdir()).collect::<Result<Vec<_>, _>>().map_err(no_place)?;
        let mut times = CallTimes::default();
        for (has_kernels, folder) in
            [false, true].into_iter().flat_map(|kept| folders.iter().map(move |folder| (kept, folder)))
        {
            let program = std::env::current_exe().map_err(no_place)?;
            let mut child = Command::new(program);
            let child =
                child.args(["call", "--start"]).env("LOOKBACK_CACHE_DIR", folder.path()).output().map_err(no_place)?;
            let said = String::from_utf8_lossy(&child.stdout).into_owned();
            let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let (&[context_ms, scanner_ms, first_scan_ms], true) = (&numbers[..], child.status.success()) else {
                let why = String::from_utf8_lossy(&child.stderr).trim().to_owned();
                return Err(failed(CudaError::unexpected("a process that starts a scanner", "failed", why)));
            };
            times.starts.push(Start { has_kernels, context_ms, scanner_ms, first_scan_ms });
        }
        [times.tracked, times.untracked] = [calls(true).map_err(failed)?, calls(false).map_err(failed)?];
        Ok(times)
    }
}

#[cfg(not(feature = "cuda"))]
mod on_gpu {
    use super::*;

    fn none() -> CliError {
        CliError::NotBuilt { device: "CUDA device", feature: "cuda-13000" }
    }

    pub(super) fn start() -> Result<[f64; 3], CliError> {
        Err(none())
    }

    pub(super) fn measure() -> Result<CallTimes, CliError> {
        Err(none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_fit_80_columns() {
        let start = Start { has_kernels: true, context_ms: 123.4, scanner_ms: 1.25, first_scan_ms: 3.5 };
        let calls = Calls { returned_us: vec![5.8, 5.9, 6.0], done_us: vec![12.25] };
        let times = CallTimes { starts: vec![start], tracked: calls, untracked: Calls::default() };
        let text = text(&times);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("5.90") && text.contains("3.50") && text.contains("off"), "{text}");
    }
}
