//! Stress on a GPU for `lookback stress`: campaigns, replay, the two detectors of the kill table that need one, and
//! the hidden subcommand that runs kernels with a fault in a process of their own.

use super::console::Console;
use super::detectors::{Examiner, Facts};
use super::stress::{StressArguments, StressFormat};
use super::{CliError, EXIT_OK, EXIT_USAGE, EXIT_WRONG};
use crate::cuda::{Compiler, CudaError};
use crate::kernels::mutant::Mutant;
use crate::lab::cuda::CudaDevice;
use crate::lab::device::{Device as _, DeviceError};
use crate::lab::stress::gpu::sanitizer::{SanitizerReport, Tool, sanitize};
use crate::lab::stress::gpu::{
    GpuStressProgress, GpuStressReport, GpuStressSettings, StressCase, StressError, Verdict, child, compile, reproduce,
    stress,
};
use crate::lab::stress::search::Limits;
use crate::lab::stress::table::Cell;
use clap::Args;
use indicatif::HumanCount;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Different configurations of kernels that a mutant is tried in.
const PALETTE_OF_MUTANT: u64 = 6;
/// Configurations that the kernels as they are are compiled in, at most.
const LARGEST_PALETTE: u64 = 128;
/// Runs of a mutant under compute-sanitizer.
const SANITIZED_RUNS: u64 = 24;
/// A process of compute-sanitizer holds about as much host memory as a compiler.
const SANITIZERS_AT_ONCE: usize = 12;
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
    /// The fault that the kernels are to have.
    #[arg(long, value_parser = parse_mutant)]
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
}

fn parse_mutant(name: &str) -> Result<&'static Mutant, crate::kernels::mutant::MutantError> {
    Mutant::named(name)
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
        mutant: arguments.mutant,
        palette: arguments.palette,
        is_small: arguments.small,
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
    console: &mut Console,
) -> Result<u8, CliError> {
    let palette = if mutant.is_some() { PALETTE_OF_MUTANT } else { palette_of(arguments.runs) };
    let settings = GpuStressSettings {
        runs: arguments.runs,
        seconds: arguments.seconds.map(|time| time.as_secs_f64()),
        seed: arguments.seed,
        mutant,
        palette,
        ..GpuStressSettings::default()
    };
    look_for_a_gpu()?;
    console.start_progress(arguments.runs);
    let report = if mutant.is_some() {
        child::stress_in_child(&program()?, &settings, None)
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
    tell(&report?, arguments, console)
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
    look_for_a_gpu()?;
    let report = child::stress_in_child(&program()?, &settings, Some(line))?;
    tell(&report, arguments, console)
}

/// Whoever has no GPU is told so at once, and not by a process that failed.
fn look_for_a_gpu() -> Result<(), StressError> {
    match CudaDevice::count()? {
        0 => Err(StressError::Cuda(CudaError::NoDevice { ordinal: 0, available: 0 })),
        _ => Ok(()),
    }
}

fn palette_of(runs: u64) -> u64 {
    (runs / 2000).clamp(8, LARGEST_PALETTE)
}

fn program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|error| CliError::Usage(format!("this program cannot find itself: {error}")))
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
        if let (Verdict::Killed { how, .. }, true) = (&report.verdict, report.failures.is_empty()) {
            console.print(&format!("FAILED: {how}\n"))?;
        }
    }
    Ok(if matches!(report.verdict, Verdict::Survived { .. }) { EXIT_OK } else { EXIT_WRONG })
}

fn again(case: &str) -> String {
    format!("lookback stress --device cuda --replay '{case}'")
}

/// The column "GPU" of the kill table: each mutant in a process of its own.
pub(super) struct OnGpu {
    program: PathBuf,
    gpu: String,
}

impl OnGpu {
    pub(super) fn new() -> Result<Self, String> {
        let device = CudaDevice::open(0).map_err(|error| error.to_string())?;
        let program = program().map_err(|error| error.to_string())?;
        Ok(Self { program, gpu: device.description().name })
    }

    fn settings(mutant: Option<&'static Mutant>, limits: &Limits) -> GpuStressSettings {
        let settings = GpuStressSettings { seed: limits.first_seed, mutant, ..GpuStressSettings::default() };
        match limits.time {
            // Runs on a GPU are cheap: what ends the search for a fault is the time.
            Some(time) => GpuStressSettings {
                runs: u64::MAX,
                seconds: Some(time.as_secs_f64()),
                palette: PALETTE_OF_MUTANT,
                ..settings
            },
            None => GpuStressSettings { runs: limits.schedules, palette: palette_of(limits.schedules), ..settings },
        }
    }
}

impl Examiner for OnGpu {
    /// Compiles what all will need on all processors; the processes take it from the cache.
    fn prepare(&mut self, mutants: &[&'static Mutant], limits: &Limits) -> Result<(), String> {
        let device = CudaDevice::open(0).map_err(|error| error.to_string())?;
        let compiler = Compiler::new().map_err(|error| error.to_string())?;
        let cases: Vec<StressCase> =
            mutants.iter().flat_map(|mutant| Self::settings(Some(mutant), limits).palette_cases()).collect();
        compile(&compiler, device.architecture(), &cases).map(|_| ()).map_err(|error| error.to_string())
    }

    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell {
        match child::stress_in_child(&self.program, &Self::settings(mutant, limits), None) {
            Ok(report) => match report.verdict {
                Verdict::Survived { runs } => Cell::Survived { runs, seconds: report.seconds },
                Verdict::Killed { how, at_run, seed, seconds } => Cell::Killed {
                    seed: Some(seed),
                    runs: at_run,
                    seconds,
                    how: how.to_string(),
                    reproduce: report.failures.first().map(|failure| again(&failure.case)),
                },
            },
            Err(error) => Cell::NotRun { why: error.to_string() },
        }
    }

    fn facts(&self) -> Facts {
        vec![("GPU".to_owned(), self.gpu.clone())]
    }
}

/// The column "sanitizer" of the kill table: every tool of compute-sanitizer over a few runs.
pub(super) struct UnderSanitizer {
    program: PathBuf,
    gpu: String,
    reports: HashMap<&'static str, Vec<Result<SanitizerReport, String>>>,
}

impl UnderSanitizer {
    pub(super) fn new() -> Result<Self, String> {
        crate::lab::stress::gpu::sanitizer::find()
            .ok_or("compute-sanitizer was not found on the path, nor in CUDA_HOME or /usr/local/cuda")?;
        let OnGpu { program, gpu } = OnGpu::new()?;
        Ok(Self { program, gpu, reports: HashMap::new() })
    }

    /// All tools over all of `mutants`, some processes at once.
    fn examine_all(
        &self,
        mutants: &[Option<&'static Mutant>],
        runs: u64,
        seed: u64,
    ) -> Vec<(Option<&'static Mutant>, Result<SanitizerReport, String>)> {
        let work: Vec<_> =
            mutants.iter().flat_map(|&mutant| Tool::ALL.iter().map(move |&tool| (tool, mutant))).collect();
        let (next, reports) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..processors.min(SANITIZERS_AT_ONCE) {
                scope.spawn(|| {
                    while let Some(&(tool, mutant)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let report = sanitize(&self.program, tool, mutant, runs, seed);
                        let report = report.map_err(|error| error.to_string());
                        reports.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((mutant, report));
                    }
                });
            }
        });
        reports.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Examiner for UnderSanitizer {
    /// Most of a process's time is its start: that of all goes on side by side.
    fn prepare(&mut self, mutants: &[&'static Mutant], limits: &Limits) -> Result<(), String> {
        let all: Vec<_> = mutants.iter().copied().map(Some).collect();
        for (mutant, report) in self.examine_all(&all, SANITIZED_RUNS, limits.first_seed) {
            if let Some(mutant) = mutant {
                self.reports.entry(&mutant.name).or_default().push(report);
            }
        }
        Ok(())
    }

    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell {
        let reports = match mutant.and_then(|mutant| self.reports.remove(mutant.name.as_str())) {
            Some(reports) => reports,
            None => {
                let runs = if mutant.is_some() { SANITIZED_RUNS } else { limits.schedules };
                let reports = self.examine_all(&[mutant], runs, limits.first_seed);
                reports.into_iter().map(|(_, report)| report).collect()
            }
        };
        verdict_of(reports, limits.first_seed)
    }

    fn facts(&self) -> Facts {
        vec![("GPU".to_owned(), self.gpu.clone())]
    }
}

/// What the tools say together: the first error in the order of the tools, or how many runs all of them passed.
fn verdict_of(reports: Vec<Result<SanitizerReport, String>>, seed: u64) -> Cell {
    let mut reports = match reports.into_iter().collect::<Result<Vec<_>, _>>() {
        Ok(reports) => reports,
        Err(why) => return Cell::NotRun { why },
    };
    reports.sort_by_key(|report| Tool::ALL.iter().position(|&tool| tool == report.tool));
    let seconds = reports.iter().map(|report| report.seconds).sum();
    let runs = reports.iter().map(|report| report.runs).min().unwrap_or(0);
    if let Some(SanitizerReport { tool, errors: Some(errors), message, command, seconds, runs, .. }) =
        reports.iter().find(|report| report.errors.is_some_and(|errors| errors > 0))
    {
        return Cell::Killed {
            seed: Some(seed),
            runs: *runs,
            seconds: *seconds,
            how: format!("{tool}, {errors} error(s): {message}"),
            reproduce: Some(command.clone()),
        };
    }
    match reports.iter().find(|report| report.errors.is_none()) {
        Some(report) => Cell::NotRun { why: format!("{}: {}", report.tool, report.message) },
        None => Cell::Survived { runs, seconds },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(tool: Tool, errors: Option<u64>) -> Result<SanitizerReport, String> {
        let (message, command) = ("Race reported".to_owned(), "compute-sanitizer".to_owned());
        Ok(SanitizerReport { tool, mutant: None, errors, message, seconds: 2.0, runs: 24, command })
    }

    #[test]
    fn one_tool_that_reports_kills_and_one_that_is_silent_is_no_pass() {
        let all = |errors: [Option<u64>; 2]| {
            verdict_of(vec![report(Tool::Memcheck, errors[0]), report(Tool::Racecheck, errors[1])], 7)
        };
        assert!(matches!(all([Some(0), Some(0)]), Cell::Survived { runs: 24, .. }));
        assert!(matches!(all([Some(0), Some(3)]), Cell::Killed { how, .. } if how.contains("racecheck, 3")));
        assert!(matches!(all([Some(0), None]), Cell::NotRun { .. }));
        assert!(matches!(all([None, Some(1)]), Cell::Killed { .. }));
        assert!(matches!(verdict_of(vec![Err("no process".to_owned())], 7), Cell::NotRun { .. }));
    }
}
