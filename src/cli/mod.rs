//! The program `lookback`: its command line, what goes to the terminal, and its exit codes.

pub mod arguments;
pub mod call;
pub mod claims;
pub mod compare;
pub mod console;
pub mod costs;
pub mod devices;
pub mod error;
pub mod info;
pub mod input;
pub mod interrupt;
pub mod jobs;
#[cfg(feature = "cuda")]
pub mod kernels;
#[cfg(feature = "cpu")]
pub mod lesson;
mod npy;
pub mod partial;
// In a build without any of them all is refused.
#[cfg_attr(not(any(feature = "cpu", feature = "nccl")), allow(dead_code))]
pub mod ranks;
pub mod report;
pub mod scan;
pub mod scan_error;
#[cfg(feature = "cpu")]
pub mod stress;
#[cfg(feature = "cpu")]
pub mod stress_arguments;
#[cfg(all(feature = "cuda", feature = "cpu"))]
pub mod stress_gpu;
pub mod sweep;
pub mod table;
pub mod targets;
pub mod trace;
pub mod tune;

use crate::element::{ElementType, Operator};
use crate::file::reason;
#[cfg(feature = "cpu")]
use crate::lab::stress::detectors::DetectorName;
use crate::lab::workload::ProblemKind;
use crate::strategy::{Composition, Descriptor, Pattern, StrategyChoice, TileOrder};
use crate::text::wrapped;
use anyhow::Context;
use arguments::{Choice, CompareArguments};
use clap::{Parser, Subcommand};
use console::{Console, for_stderr};
use error::{CliError, EXIT_OK, EXIT_USAGE};
use std::io::{self, Write};
use std::process::ExitCode;

/// Compare prefix-scan strategies on an NVIDIA GPU, or on the CPU device that
/// runs the very same kernels.
#[derive(Debug, Parser)]
#[command(name = "lookback", version, max_term_width = 80, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run strategies side by side; every result is verified
    ///
    /// Runs strategies over the same input and compares every element of every
    /// output with a sequential reference before its row is printed. Without
    /// options: all strategies at several sizes and a VT sweep.
    #[command(after_help = compare_after_help())]
    Compare(Box<CompareArguments>),
    /// Measure what a sweep file asks for, on a GPU; without a name, list them
    ///
    /// Measures every configuration cold, on a stream, in a graph and from the
    /// host, verifies each, and keeps all samples in DIR. What they mean is in
    /// reports/METHOD.md. A file names types, operators, sizes, strategies and
    /// peers, and as compare does problems, with types of inputs and lengths of
    /// rows, columns, runs and segments: docs/problems.md has an example.
    Sweep(sweep::SweepArguments),
    /// Scan a file of any size into another one, in chunks
    ///
    /// Reads, copies to the device, scans, copies back and writes at the same
    /// time, within the memory that is allowed. What is written stands in
    /// OUTPUT.partial until it is whole, and --resume goes on with that of a run
    /// that was interrupted or killed. Numbers whose scan is not rounded are
    /// compared with a scan on the host before the output has its name.
    #[command(after_help = SCAN_AFTER_HELP)]
    Scan(scan::ScanArguments),
    /// Find the fastest strategy and configuration for each type and size
    ///
    /// Measures candidates on a GPU and writes the table that auto goes by, with
    /// its evidence; compare and sweep take it by --tuning, a Scanner by
    /// with_tuning. docs/tuning.md says how it chooses.
    #[command(after_help = TUNE_AFTER_HELP)]
    Tune(tune::TuneArguments),
    /// Say what is faster, slower or the same in two records of sweeps
    ///
    /// Judges every configuration by its samples, not by two medians.
    CompareRecords(sweep::CompareRecordsArguments),
    /// Look for races with drawn schedules, weak memory and broken kernels
    ///
    /// Runs the kernels under hostile schedules and a model of weak memory, or
    /// on a GPU with delays, and verifies every element. --mutants does the same
    /// with kernels that were broken on purpose, by every detector there is.
    #[cfg(feature = "cpu")]
    #[command(after_help = stress_after_help())]
    Stress(Box<stress_arguments::StressArguments>),
    /// Record what each warp of a scan does, and which publication let which tile go on
    ///
    /// Runs a scan by kernels that record what their warps come to with each
    /// tile: on a GPU with one time for all multiprocessors, on the CPU device
    /// by its scheduler, for any seed. Says where the time went and what the end
    /// hung on; --output leaves pictures, a page, and a trace that
    /// ui.perfetto.dev opens. Takes the options of compare.
    #[command(after_help = TRACE_AFTER_HELP)]
    Trace(Box<trace::TraceArguments>),
    /// Say what a scan costs: launches, element-moves, bytes, instructions
    ///
    /// A row a strategy. The CPU device counts element-moves beside what they
    /// are by definition; a GPU is timed beside cudaMemcpy, and Nsight Compute
    /// counts bytes and instructions, if it is there and may. Takes those options
    /// of compare that say which scans of one array, and by which kernels.
    #[command(after_help = COSTS_AFTER_HELP)]
    Costs(Box<costs::CostsArguments>),
    /// Make the pictures and the page of docs/lesson.md, how a scan works
    ///
    /// Scans arrays on the CPU device: those of warps and blocks lane by lane,
    /// strategies side by side on one seed, and six kernels that are broken. The
    /// page has them in its text, a slider where scripts run, and needs none.
    #[cfg(feature = "cpu")]
    Lesson(lesson::LessonArguments),
    /// Compile ahead what auto runs, for programs that run where no NVRTC is
    ///
    /// Needs NVRTC and no GPU. A Scanner takes the folder by without_nvrtc.
    #[cfg(feature = "cuda")]
    #[command(after_help = KERNELS_AFTER_HELP)]
    Kernels(kernels::KernelsArguments),
    /// Say what a program waits for on the host: a new scanner, and a call
    ///
    /// On a GPU: new processes with compiled kernels kept and without, and calls
    /// of Scanner::inclusive with cudarc's event tracking and without.
    #[cfg(feature = "cuda")]
    Call(call::CallArguments),
    /// Show devices, compilers, caches and versions, and what is missing
    Info,
    /// Render plots and page again from recorded data, or fill a document's tables
    ///
    /// Renders plots and one page from data alone; no device is needed. Of an
    /// interrupted run, what was finished is rendered.
    Report(report::ReportArguments),
    /// Judge by the records what the project's texts say of them
    ///
    /// Computes from its record the number of each sentence that a table of claims
    /// names, and says which of them no longer hold or are no longer there.
    Claims(claims::ClaimsArguments),
    /// Disturb scans on a GPU and compare every output, in a process that may be lost
    #[cfg(all(feature = "cuda", feature = "cpu"))]
    #[command(hide = true)]
    StressGpu(stress_gpu::StressGpuArguments),
}

const AFTER_HELP: &str = "\
Examples:
  lookback compare                      every strategy on the device at hand
  lookback compare --device cpu --output results
  lookback info                         what is there and what is missing
  lookback report results               plots and page from the data again

Exit codes:
  0  every result was right
  1  a result was wrong, a kernel failed, or a regression was found
  2  bad arguments, input or output folder
  3  no device or no compiler
  4  a target missed (compare --sweep targets)
  5  nothing wrong, but sums of floats that overflow in one order of additions
     and not in another, so that nobody can say
  130  ended by Ctrl-C; what is finished is kept";

/// The choices of a list: its name on the left, and they in lines under each other.
fn words<T: Choice + ToString>(name: &str) -> String {
    let choices: Vec<String> = T::EVERY.iter().map(T::to_string).collect();
    let lines = wrapped(&choices.join(", "), 64).join("\n               ");
    format!("  {name:<13}{lines}\n")
}

/// The words of every list, and examples.
fn compare_after_help() -> String {
    let lists = [
        words::<ProblemKind>("problems"),
        words::<StrategyChoice>("strategies"),
        words::<ElementType>("types"),
        words::<Operator>("operators"),
        words::<Pattern>("patterns"),
        words::<Composition>("composition"),
        words::<Descriptor>("descriptor"),
        words::<TileOrder>("tile order"),
    ];
    format!("Lists are separated by commas. The words:\n{}\n{COMPARE_EXAMPLES}", lists.concat())
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  lookback compare --strategies lookback,chained --sizes 2^20,10M --vts 8,16
  lookback compare --types all --operators all --sizes 1000 --modes all
  lookback compare --operators intervals --sizes 2^16-1,2^16+1 --in-place
  lookback compare --problem rows,columns --shape 64x4096 --types f32
  lookback compare --problem by-key,offsets --run-length 61 --sizes 1M
  lookback compare --input counts.npy --output results
  lookback compare --input counts.bin --types u32 --format csv
  lookback compare --sweep targets --output records
  lookback compare --sweep targets --record records/targets-h200.jsonl.gz

A run that is interrupted keeps its finished rows in DIR/data.partial.jsonl:
--resume goes on with it, `lookback report DIR` turns them into data, plots and
page.

Exit codes: 0 all right, 1 a wrong result or a failed kernel, 2 bad arguments,
input or output folder, 3 no device or no compiler, 4 a target missed,
5 undecidable: overflow depends on the order of additions, 130 ended by Ctrl-C.";

const SCAN_AFTER_HELP: &str = "\
Examples:
  lookback scan counts.npy --output offsets.npy --mode exclusive
  lookback scan counts.bin --type u8 --output-type u64 --output sums.bin
  lookback scan counts.npy --output sums.npy --device-memory 2GiB --measure
  lookback scan counts.npy --output sums.npy --resume

Exit codes: 0 done, 1 a wrong result or a failed device, 2 bad arguments or
file, 3 no device or no compiler, 130 ended by Ctrl-C: --resume goes on.";

const TUNE_AFTER_HELP: &str = "\
Examples:
  lookback tune --output tuning.toml         four minutes at most
  lookback compare --tuning tuning.toml --strategies auto,lookback
  lookback tune --problem recurrence,rows --types f32 --output own/tuning.toml
  lookback tune --from tune-h200.jsonl.gz --output tuning.toml   no GPU needed

Exit codes: 0 all right, 1 a candidate was wrong or the device failed,
2 bad arguments, record or folder, 3 no device or no compiler.";

const TRACE_AFTER_HELP: &str = "\
Examples:
  lookback trace --device cpu --n 4096 --seed 7
  lookback trace --strategies chained,lookback,lookahead --n 64Ki --output seen
  lookback trace --strategies lookahead --n 64MiB --cold --output out --tiles 96
  lookback trace --problem by-key --strategies lookback --n 1Mi

Exit codes: 0 all right, 1 a result was wrong, 2 bad arguments or folder,
3 no device or no compiler.";

const COSTS_AFTER_HELP: &str = "\
Examples:
  lookback costs --device cpu
  lookback costs --output costs-h200.json
  lookback costs --types u8,f64 --n 256MiB --strategies auto,reduce-then-scan

Exit codes: 0 all right, 1 a result was wrong or Nsight Compute did not count
one of the scans that it was asked to, 2 bad arguments or file, 3 no device or
no compiler.";

#[cfg(feature = "cuda")]
const KERNELS_AFTER_HELP: &str = "\
Examples:
  lookback kernels --architectures 9.0 --output kernels
  lookback kernels --architectures 8.0,8.9,9.0 --types u32,f32 --output kernels

Kernels of a definition of one's own are kept by the program that runs it, with
Compiler::keeping_in, or made by it where there is no GPU, on cuda::Ahead.

Exit codes: 0 all compiled, 1 a kernel does not compile, 2 bad arguments or
folder, 3 no compiler.";

#[cfg(feature = "cpu")]
fn stress_after_help() -> String {
    let names: Vec<_> = DetectorName::ALL.iter().map(|detector| detector.name()).collect();
    let detectors = wrapped(&format!("Detectors: {}.", names.join(", ")), 79).join("\n");
    format!("{STRESS_EXAMPLES}\n\n{detectors}\n\n{STRESS_EXIT_CODES}")
}

#[cfg(feature = "cpu")]
const STRESS_EXAMPLES: &str = "\
Examples:
  lookback stress --runs 100k              the kernels as they are
  lookback stress --problem rows,by-key    the same of other scans
  lookback stress --mutant relaxed_tag     a fault, found and made small
  lookback stress --replay 'CASE'          what a failure printed, step by step
  lookback stress --mutants                every detector against every mutant";

#[cfg(feature = "cpu")]
const STRESS_EXIT_CODES: &str = "\
Exit codes: 0 nothing found (--mutants: every mutant killed), 1 a failure
(--mutants: a survivor, or something harmless reported), 2 bad arguments, or
nothing was checked, 3 no device, no compiler or too little memory, 130 ended by
Ctrl-C with nothing found so far.";

/// Runs the program on the process's arguments.
pub fn main() -> ExitCode {
    let result = match Arguments::try_parse() {
        Ok(arguments) => run(arguments),
        Err(answer) => say(&answer),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nobody may read stderr any more; the exit code says that something failed all the same.
            let _ = writeln!(io::stderr(), "{}", for_stderr(&format!("error: {}", in_words(&error))));
            let code = error.downcast_ref::<CliError>().map_or(EXIT_USAGE, CliError::exit_code);
            ExitCode::from(code)
        }
    }
}

/// Prints clap's answer: the help and the version, which are results and must arrive, or what is wrong with the arguments.
fn say(answer: &clap::Error) -> anyhow::Result<u8> {
    let written = answer.print().and_then(|()| io::stdout().flush());
    match written {
        Err(error) if !answer.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::Stdout(error).into())
        }
        _ => Ok(u8::try_from(answer.exit_code()).unwrap_or(EXIT_USAGE)),
    }
}

/// An error with what is behind it.
fn in_words(error: &anyhow::Error) -> String {
    let text = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(refusal) => reason(refusal),
        None => cause.to_string(),
    };
    error.chain().map(text).collect::<Vec<_>>().join(": ")
}

fn run(arguments: Arguments) -> anyhow::Result<u8> {
    match arguments.command {
        Command::Compare(arguments) => {
            let mut console = Console::new(arguments.quiet);
            if let Some(name) = &arguments.sweep {
                return Ok(targets::targets(name, &arguments, &mut console)?);
            }
            if let Some(ranks) = arguments.ranks {
                return Ok(ranks::compare(&arguments, ranks, &mut console)?);
            }
            arguments.check_without_sweep()?;
            if let Some(kind) = arguments.device.kind() {
                arguments.check_device(kind)?;
            }
            let file = arguments.input.as_deref().map(|path| compare::read_input(&arguments, path)).transpose();
            let file = file.context("--input")?;
            let mut device = devices::open(&arguments, &console)?;
            Ok(compare::compare(&arguments, file, device.as_mut(), &mut console)?)
        }
        Command::Sweep(arguments) => Ok(sweep::sweep(&arguments)?),
        Command::Scan(arguments) => Ok(scan::scan(&arguments)?),
        Command::Tune(arguments) => Ok(tune::tune(&arguments)?),
        Command::Trace(arguments) => Ok(trace::trace(*arguments)?),
        Command::Costs(arguments) => Ok(costs::costs(*arguments)?),
        Command::CompareRecords(arguments) => Ok(sweep::compare(&arguments)?),
        #[cfg(feature = "cpu")]
        Command::Stress(arguments) => Ok(stress::stress(&arguments)?),
        #[cfg(feature = "cpu")]
        Command::Lesson(arguments) => Ok(lesson::lesson(&arguments)?),
        #[cfg(feature = "cuda")]
        Command::Kernels(arguments) => Ok(kernels::kernels(&arguments)?),
        #[cfg(feature = "cuda")]
        Command::Call(arguments) => {
            call::call(&arguments, &mut Console::new(false))?;
            Ok(EXIT_OK)
        }
        Command::Info => {
            let mut console = Console::new(false);
            console.print(&info::text())?;
            Ok(EXIT_OK)
        }
        Command::Report(arguments) => Ok(report::report(&arguments)?),
        Command::Claims(arguments) => Ok(claims::claims(&arguments)?),
        #[cfg(all(feature = "cuda", feature = "cpu"))]
        Command::StressGpu(arguments) => stress_gpu::run_child(&arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
