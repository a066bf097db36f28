//! Each call of `lookback`, in ten lines or fewer: `calls.rs` has them over the arrays of whatever scans, `operators.rs` the
//! operators that are text, and `gpu.rs` what there is for a GPU alone.
//!
//!     cargo run --release --manifest-path examples/outside/Cargo.toml
//!
//! makes them on the GPU where there is one, and over vectors on the CPU device where there is none. The first run of each takes the
//! time of a compiler, there seconds; what it makes is kept.

use lookback::lab::host_scanner::HostScanner;
use lookback::run::AnyScanner;
use std::error::Error;
use std::fmt::Debug;
use std::process::ExitCode;

mod calls;
mod gpu;
mod operators;

type Outcome = Result<(), Box<dyn Error>>;

fn expect<T: PartialEq + Debug>(found: &[T], expected: &[T]) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("it gives {found:?} and not {expected:?}").into()) }
}

/// Makes them all, whatever becomes of one.
fn make_all<S: AnyScanner>(scanner: &mut S) -> Vec<(&'static str, Outcome)> {
    calls::all::<S>().into_iter().map(|(name, call)| (name, call(scanner))).collect()
}

fn main() -> ExitCode {
    let made = match gpu::open() {
        Ok((scanner, stream)) => {
            println!("On the GPU:");
            let warm_up = ("warm_up", gpu::warm_up(&scanner, &stream));
            [vec![warm_up], make_all(&mut scanner.on(&stream))].into_iter().flatten().collect()
        }
        Err(error) => {
            println!("On the CPU device ({error}):");
            make_all(&mut HostScanner::default())
        }
    };
    for (name, outcome) in &made {
        match outcome {
            Ok(()) => println!("{name:44} right"),
            Err(error) => println!("{name:44} WRONG: {error}"),
        }
    }
    let wrong = made.iter().filter(|(_, outcome)| outcome.is_err()).count();
    println!("{} calls, {wrong} wrong", made.len());
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::{HostScanner, calls};

    const CALLS: &str = include_str!("calls.rs");
    const GPU: &str = include_str!("gpu.rs");
    const OPERATORS: &str = include_str!("operators.rs");

    /// The functions of a file: the name of each, and how many lines stand between its first and its last one.
    fn functions(text: &str) -> Vec<(&str, usize)> {
        let mut functions = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(rest) = line.trim_start_matches("pub ").strip_prefix("fn ") else { continue };
            let name = rest.split(['(', '<']).next().expect("a function has parameters");
            functions.push((name, lines.by_ref().take_while(|&line| line != "}").count()));
        }
        functions
    }

    #[test]
    fn no_call_takes_more_than_ten_lines() {
        for (file, text) in [("calls.rs", CALLS), ("gpu.rs", GPU), ("operators.rs", OPERATORS)] {
            let functions = functions(text);
            assert!(!functions.is_empty(), "{file}");
            for (name, lines) in functions {
                assert!((1..=10).contains(&lines), "{name} of {file} has {lines} lines");
            }
        }
    }

    #[test]
    fn every_function_is_called() {
        let called: Vec<_> = calls::all::<HostScanner>().iter().map(|&(name, _)| name).collect();
        assert_eq!(called, functions(CALLS).into_iter().map(|(name, _)| name).collect::<Vec<_>>());
    }

    /// A method that the crate gets has its ten lines here, too.
    #[test]
    fn every_method_of_a_run_is_called() {
        const RUN: &str = include_str!("../../../src/run.rs");
        let (_, run) = RUN.split_once("impl<'a, M: Memory> Run<'a, M> {").expect("there is an implementation");
        let methods = run.lines().filter_map(|line| line.strip_prefix("    pub fn "));
        let names: Vec<_> = methods.filter_map(|name| name.split(['(', '<']).next()).collect();
        assert!(names.contains(&"reversed") && names.contains(&"input"), "{names:?}");
        let runs: String = CALLS.lines().filter(|line| line.contains("scanner.run(")).collect();
        for name in names {
            assert!(runs.contains(&format!(".{name}(")), "nobody calls {name}");
        }
    }
}
