//! Each call of `lookback`, in ten lines or fewer: `gpu.rs` has them over arrays of cudarc, `host.rs` over slices, and
//! `operators.rs` has the operators that are text.
//!
//!     cargo run --release --manifest-path examples/outside/Cargo.toml
//!
//! runs those of `gpu.rs` where there is a GPU and those of `host.rs` where there is none. The first run of each takes the
//! seconds of a compiler; what it makes is kept.

use std::error::Error;
use std::fmt::Debug;
use std::process::ExitCode;

/// The functions that both files have, and more, with their names.
macro_rules! calls {
    (@named $($call:ident,)*) => { &[$((stringify!($call), $call)),*] };
    ($($more:ident),*) => {
        calls![@named
            sum_of_u8_in_u32,
            sum_of_i32_in_i64,
            sum_of_halves,
            sum_of_f32_in_f64,
            exclusive,
            in_place,
            arg_max,
            arg_min,
            own_operator,
            own_operator_on_structs,
            reversed,
            reproducible,
            rows,
            strided,
            columns,
            axis,
            by_key,
            head_flags,
            offsets,
            count_from,
            initial,
            initial_from,
            final_state,
            in_place_of_an_input,
            recurrence,
            recurrence_of_batch_channel_time,
            reverse_recurrence_of_batch_channel_time,
            recurrence_of_batch_time_channel,
            reverse_recurrence_of_batch_time_channel,
            select,
            select_flagged,
            partition,
            nonzero,
            unique,
            run_length_encode,
            reduce_by_key,
            sort,
            cumulated_histogram,
            owners,
            repeated,
            scatter,
            total,
            count_of_one_run_is_the_next_ones,
            $($more,)*
        ]
    };
}

mod gpu;
mod host;
mod operators;

type Outcome = Result<(), Box<dyn Error>>;

fn expect<T: PartialEq + Debug>(found: &[T], expected: &[T]) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("it gives {found:?} and not {expected:?}").into()) }
}

/// Runs them all, whatever becomes of one.
fn run_all<Call>(calls: &[(&str, Call)], mut run: impl FnMut(&Call) -> Outcome) -> ExitCode {
    let mut wrong = 0;
    for (name, call) in calls {
        match run(call) {
            Ok(()) => println!("{name:44} right"),
            Err(error) => {
                println!("{name:44} WRONG: {error}");
                wrong += 1;
            }
        }
    }
    println!("{} calls, {wrong} wrong", calls.len());
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    match gpu::open() {
        Ok((scanner, stream)) => {
            println!("On the GPU:");
            run_all(gpu::CALLS, |call| call(&scanner, &stream))
        }
        Err(error) => {
            println!("On the CPU device ({error}):");
            let mut scanner = lookback::lab::host_scanner::HostScanner::default();
            run_all(host::CALLS, |call| call(&mut scanner))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{gpu, host};

    const GPU: &str = include_str!("gpu.rs");
    const HOST: &str = include_str!("host.rs");
    const OPERATORS: &str = include_str!("operators.rs");

    /// The functions of a file: the name of each, and how many lines stand between its first and its last one.
    fn functions(text: &str) -> Vec<(&str, usize)> {
        let mut functions = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(rest) = line.trim_start_matches("pub ").strip_prefix("fn ") else { continue };
            let name = rest.split('(').next().expect("a function has parameters");
            functions.push((name, lines.by_ref().take_while(|&line| line != "}").count()));
        }
        functions
    }

    #[test]
    fn no_call_takes_more_than_ten_lines() {
        for (file, text) in [("gpu.rs", GPU), ("host.rs", HOST), ("operators.rs", OPERATORS)] {
            let functions = functions(text);
            assert!(!functions.is_empty(), "{file}");
            for (name, lines) in functions {
                assert!((1..=10).contains(&lines), "{name} of {file} has {lines} lines");
            }
        }
    }

    #[test]
    fn both_files_have_the_same_calls() {
        let on_gpu: Vec<_> = gpu::CALLS.iter().map(|&(name, _)| name).collect();
        let on_host: Vec<_> = host::CALLS.iter().map(|&(name, _)| name).collect();
        // Slices need no warming up.
        assert_eq!(on_gpu, [&on_host[..], &["warm_up"]].concat());
        // And the functions stand in this order.
        let names = |text| functions(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(GPU), [&["open"], &on_gpu[..]].concat());
        assert_eq!(names(HOST), on_host);
    }

    /// A method that the crate gets has its ten lines here, too.
    #[test]
    fn every_method_of_a_run_is_called() {
        const RUN: &str = include_str!("../../../src/cuda/run.rs");
        const HOST_RUN: &str = include_str!("../../../src/lab/host_scanner.rs");
        // What both have of one macro.
        const BOTH: &str = include_str!("../../../src/strategy/call.rs");
        let (_, shared) = BOTH.split_once("macro_rules! methods_without_arrays").expect("there is a macro");
        let (shared, _) = shared.split_once("\n}").expect("it ends");
        for (implementation, calls) in [(RUN, GPU), (HOST_RUN, HOST)] {
            let own = implementation.rsplit("Run<'a> {").next().expect("there is an implementation");
            let own = own.lines().filter_map(|line| line.strip_prefix("    pub fn "));
            let shared = shared.lines().filter_map(|line| line.trim_start().strip_prefix("pub fn "));
            let names: Vec<_> = own.chain(shared).filter_map(|name| name.split(['(', '<']).next()).collect();
            assert!(names.contains(&"reversed") && names.contains(&"input"), "{names:?}");
            for name in names {
                assert!(calls.contains(&format!(".{name}(")), "nobody calls {name}");
            }
        }
    }
}
