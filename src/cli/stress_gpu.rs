//! Stress on a GPU for `lookback stress`: campaigns, replay, and the hidden subcommand that runs kernels with a fault
//! in a process of their own.

use super::console::Console;
use super::error::{CliError, EXIT_OK, EXIT_USAGE, EXIT_WRONG};
use super::interrupt;
use super::stress_arguments::{StressArguments, StressFormat};
use crate::cuda::CudaError;
use crate::kernels::mutant::Mutant;
use crate::lab::cuda::CudaDevice;
use crate::lab::device::DeviceError;
use crate::lab::stress::detectors::gpu::{PALETTE_OF_MUTANT, again, palette_of};
use crate::lab::stress::gpu::{
    GpuStressProgress, GpuStressReport, GpuStressSettings, StressCase, StressError, StressOutcome, child, reproduce,
    stress,
};
use crate::lab::workload::ProblemKind;
use clap::Args;
use indicatif::HumanCount;
use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

/// Runs that a replay makes with other seeds, if the case's own passes.
const REPLAYED_RUNS: u64 = 20_000;

/// Arguments of the hidden subcommand.
#[derive(Debug, Args)]
pub struct StressGpuArguments {
    /// The GPU's number.
    #[arg(long, default_value_t = 0)]
    device: usize,
    /// Runs to make at least.
    #[arg(long)]
    runs: u64,
    /// Seconds after which no further case begins.
    #[arg(long)]
    seconds: Option<f64>,
    /// What everything is drawn from.
    #[arg(long)]
    seed: u64,
    /// What is scanned.
    #[arg(long)]
    problem: Vec<ProblemKind>,
    /// The fault that the kernels are to have.
    #[arg(long)]
    mutant: Option<&'static Mutant>,
    /// Kernel configurations to compile.
    #[arg(long)]
    palette: u64,
    /// A line that a failure printed.
    #[arg(long)]
    replay: Option<String>,
    /// Few small runs, for a tool that makes every access slow.
    #[arg(long)]
    small: bool,
    /// No strategies whose blocks hand a ring of tiles on, which that tool does not follow.
    #[arg(long)]
    without_rings: bool,
}

/// Runs the hidden subcommand: one JSON document on stdout, and success whatever was found.
///
/// # Errors
/// When stdout cannot be written.
pub fn run_child(arguments: &StressGpuArguments) -> anyhow::Result<u8> {
    let settings = GpuStressSettings {
        device: arguments.device,
        runs: arguments.runs,
        seconds: arguments.seconds,
        seed: arguments.seed,
        problems: arguments.problem.clone(),
        mutant: arguments.mutant,
        palette: arguments.palette,
        is_small: arguments.small,
        without_rings: arguments.without_rings,
        // Ctrl-C reaches this process, too, and is no crash.
        stop: Some(interrupt::watch()?),
    };
    let report = match &arguments.replay {
        Some(line) => reproduce(line, &settings, &mut |_| {}),
        None => stress(&settings, &mut |_| {}),
    };
    match report {
        Ok(report) => {
            Console::new(true).print(&format!("{}\n", serde_json::to_string(&report)?))?;
            Ok(EXIT_OK)
        }
        Err(error) => {
            // The parent may be gone; the exit code says that something failed all the same.
            let _ = writeln!(io::stderr(), "{error}");
            Ok(EXIT_USAGE)
        }
    }
}

impl From<StressError> for CliError {
    fn from(error: StressError) -> Self {
        match error {
            StressError::Cuda(error) if error.is_absence() => {
                Self::NoDevice { device: "CUDA", source: DeviceError::Cuda(error) }
            }
            StressError::Cuda(error) => Self::Device(DeviceError::Cuda(error)),
            error => Self::Usage(error.to_string()),
        }
    }
}

/// Drawn runs on a GPU until some fail or all are done.
pub(super) fn campaign(
    mutant: Option<&'static Mutant>,
    arguments: &StressArguments,
    stop: &'static AtomicBool,
    console: &mut Console,
) -> Result<u8, CliError> {
    let palette = if mutant.is_some() { PALETTE_OF_MUTANT } else { palette_of(arguments.runs) };
    let settings = GpuStressSettings {
        runs: arguments.runs,
        seconds: arguments.seconds.map(|time| time.as_secs_f64()),
        seed: arguments.seed,
        problems: arguments.problems().to_vec(),
        mutant,
        palette,
        stop: Some(stop),
        ..GpuStressSettings::default()
    };
    if let Some(mutant) = mutant.filter(|_| !settings.can_draw()) {
        return Err(StressError::CannotShow(mutant).into());
    }
    look_for_a_gpu()?;
    console.start_progress(arguments.runs);
    let report = if mutant.is_some() {
        child::stress_in_child(&child::program()?, &settings, None)
    } else {
        let mut seen = 0;
        let mut progress = |at: &GpuStressProgress| {
            console.advance(at.runs - seen);
            console.show_progress(format!("{} cases, {} failures", at.configurations, at.failures));
            seen = at.runs;
        };
        stress(&settings, &mut progress)
    };
    console.end_progress();
    let code = tell(&report?, arguments, console)?;
    Ok(interrupt::exit_code(stop, code, console))
}

/// Runs the case of a failure again, with its own seed and then with others.
pub(super) fn replay(line: &str, arguments: &StressArguments, console: &mut Console) -> Result<u8, CliError> {
    let case: StressCase = line.parse().map_err(StressError::from)?;
    let settings = GpuStressSettings {
        runs: REPLAYED_RUNS,
        seconds: arguments.seconds.map(|time| time.as_secs_f64()),
        mutant: case.mutant,
        palette: 1,
        ..GpuStressSettings::default()
    };
    look_for_a_gpu().map_err(|error| match error.into() {
        CliError::NoDevice { source, .. } => CliError::NoGpuForCase { source },
        error => error,
    })?;
    let report = child::stress_in_child(&child::program()?, &settings, Some(line))?;
    tell(&report, arguments, console)
}

/// Whoever has no GPU is told so at once, and not by a process that failed.
fn look_for_a_gpu() -> Result<(), StressError> {
    match CudaDevice::count()? {
        0 => Err(StressError::Cuda(CudaError::NoDevice { ordinal: 0, available: 0 })),
        _ => Ok(()),
    }
}

fn tell(report: &GpuStressReport, arguments: &StressArguments, console: &mut Console) -> Result<u8, CliError> {
    if arguments.format == StressFormat::Json {
        let json = serde_json::to_string_pretty(report).expect("a report of text and numbers is JSON");
        console.print(&(json + "\n"))?;
    } else {
        let what =
            report.mutant.as_ref().map_or("the kernels as they are".to_owned(), |name| format!("the mutant {name}"));
        console.print(&format!(
            "{}, {what}:\n{} runs of {} cases, {} elements, {} delays, in {:.1} s: {}\n",
            report.device,
            HumanCount(report.runs),
            HumanCount(report.configurations),
            HumanCount(report.elements),
            HumanCount(report.delays),
            report.seconds,
            match report.failures.len() {
                0 => "no failure".to_owned(),
                1 => "1 FAILURE".to_owned(),
                failures => format!("{failures} FAILURES"),
            },
        ))?;
        for failure in &report.failures {
            console.print(&format!(
                "FAILED by run {}, {:.1} s: {}\n  {}\n",
                HumanCount(failure.at_run),
                failure.seconds,
                failure.found,
                again(&failure.case)
            ))?;
        }
        if let (StressOutcome::Killed { how, .. }, true) = (&report.verdict, report.failures.is_empty()) {
            console.print(&format!("FAILED: {how}\n"))?;
        }
    }
    Ok(if matches!(report.verdict, StressOutcome::Survived { .. }) { EXIT_OK } else { EXIT_WRONG })
}
