//! `lookback stress-gpu`: stress on a GPU in this process, and of mutants in processes of their own.

use super::{EXIT_NO_DEVICE, EXIT_OK, EXIT_USAGE, EXIT_WRONG};
use crate::cuda::stress::sanitizer::{Tool, sanitize};
use crate::cuda::stress::{
    GpuStressReport, GpuStressSettings, Hook, StressError, Verdict, child, compile, reproduce, stress,
};
use crate::cuda::{Architecture, Compiler};
use clap::Args;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Arguments of the hidden subcommand.
#[derive(Debug, Args)]
pub struct StressGpuArguments {
    /// The GPU's number.
    #[arg(long, default_value_t = 0)]
    device: usize,
    /// Runs to make at least.
    #[arg(long, default_value_t = 100_000)]
    runs: u64,
    /// Seconds after which no further case begins.
    #[arg(long)]
    seconds: Option<f64>,
    /// What everything is drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The fault that the kernels are to have; `all`, or several separated by commas, each in a process of its own.
    #[arg(long)]
    mutant: Option<String>,
    /// Kernel configurations to compile.
    #[arg(long, default_value_t = 96)]
    palette: u64,
    /// A line that a failure printed.
    #[arg(long)]
    replay: Option<String>,
    /// Few small runs, for a tool that makes every access slow.
    #[arg(long)]
    small: bool,
    /// Exit with 0 whatever is found.
    #[arg(long)]
    keep_going: bool,
    /// Only compile, for compute capability 9.0.
    #[arg(long)]
    compile_only: bool,
    /// Tools of compute-sanitizer to run over the mutants of `--mutant`, separated by commas.
    #[arg(long, value_delimiter = ',')]
    sanitize: Vec<String>,
    /// Only mutants of these kinds, separated by commas.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// Processes of compute-sanitizer at once.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// The report on stdout, as JSON.
    #[arg(long)]
    json: bool,
    /// Reports of all mutants, as JSON.
    #[arg(long)]
    output: Option<PathBuf>,
}

/// Runs the subcommand.
///
/// # Errors
/// When stdout or the output file cannot be written.
pub fn run(arguments: &StressGpuArguments) -> anyhow::Result<u8> {
    match run_what(arguments) {
        Ok(code) => Ok(code),
        Err(error) => match error.downcast_ref::<StressError>() {
            Some(stress_error) => {
                eprintln!("error: {stress_error}");
                let is_absence = matches!(stress_error, StressError::Cuda(error) if error.is_absence());
                Ok(if is_absence { EXIT_NO_DEVICE } else { EXIT_USAGE })
            }
            None => Err(error),
        },
    }
}

fn run_what(arguments: &StressGpuArguments) -> anyhow::Result<u8> {
    let is_all = arguments.mutant.as_deref() == Some("all");
    let listed = arguments.mutant.as_deref().filter(|names| names.contains(','));
    let is_several = is_all || listed.is_some();
    let settings = GpuStressSettings {
        device: arguments.device,
        runs: arguments.runs,
        seconds: arguments.seconds,
        seed: arguments.seed,
        mutant: arguments.mutant.clone().filter(|_| !is_several),
        palette: arguments.palette,
        is_small: arguments.small,
    };
    let names: Vec<Option<String>> = if is_all {
        let hooks = Hook::all().into_iter();
        hooks
            .filter(|hook| arguments.kinds.is_empty() || arguments.kinds.contains(&hook.kind))
            .map(|hook| Some(hook.name))
            .collect()
    } else if let Some(listed) = listed {
        listed.split(',').map(|name| Some(name.to_owned())).collect()
    } else {
        vec![settings.mutant.clone()]
    };
    if arguments.compile_only {
        return compile_only(&settings, names);
    }
    if !arguments.sanitize.is_empty() {
        return sanitize_all(arguments, &names);
    }
    if is_several {
        return mutants(arguments, &settings, &names);
    }
    let is_json = arguments.json;
    let mut last = 0;
    let mut progress = |at: &crate::cuda::stress::GpuStressProgress| {
        let seconds = at.seconds as u64;
        if !is_json && seconds >= last + 5 {
            last = seconds;
            println!(
                "{} runs, {} configurations, {} failures, {:.0} s",
                at.runs, at.configurations, at.failures, at.seconds
            );
        }
    };
    let report = match &arguments.replay {
        Some(line) => reproduce(line, &settings, &mut progress),
        None => stress(&settings, &mut progress),
    }?;
    if is_json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print(&report);
    }
    if let Some(path) = &arguments.output {
        std::fs::write(path, serde_json::to_string_pretty(&report)?)?;
    }
    let is_right = matches!(report.verdict, Verdict::Survived { .. }) || arguments.keep_going;
    Ok(if is_right { EXIT_OK } else { EXIT_WRONG })
}

fn print(report: &GpuStressReport) {
    println!(
        "{}, {}: {} runs, {} configurations, {} kernels, {} elements, {} delays in {:.1} s ({:.0} runs/s; compiling {:.1} s), {} failure(s)",
        report.device,
        report.mutant.as_deref().unwrap_or("no mutant"),
        report.runs,
        report.configurations,
        report.kernels,
        report.elements,
        report.delays,
        report.seconds,
        report.runs as f64 / report.seconds.max(1e-9),
        report.compile_seconds,
        report.failures.len(),
    );
    for failure in &report.failures {
        println!(
            "  {:?} at run {}, {:.2} s\n  lookback stress-gpu --replay '{}'",
            failure.found, failure.at_run, failure.seconds, failure.case
        );
    }
}

fn compile_only(settings: &GpuStressSettings, names: Vec<Option<String>>) -> anyhow::Result<u8> {
    let compiler = Compiler::new().map_err(StressError::from)?;
    let mut cases = Vec::new();
    for mutant in names {
        cases.extend(GpuStressSettings { mutant, ..settings.clone() }.palette_cases()?);
    }
    let architecture = Architecture { major: 9, minor: 0 };
    compiler.stress_kernels(architecture).map_err(StressError::from)?;
    let kernels = compile(&compiler, architecture, &cases).map_err(StressError::from)?;
    println!("{kernels} kernels of {} cases", cases.len());
    Ok(EXIT_OK)
}

fn mutants(
    arguments: &StressGpuArguments,
    settings: &GpuStressSettings,
    names: &[Option<String>],
) -> anyhow::Result<u8> {
    let program = std::env::current_exe()?;
    let mut reports = Vec::new();
    for mutant in names {
        let settings = GpuStressSettings { mutant: mutant.clone(), ..settings.clone() };
        let name = mutant.as_deref().unwrap_or("none");
        match child::stress_in_child(&program, &settings) {
            Ok(report) => {
                let verdict = match &report.verdict {
                    Verdict::Killed { how, at_run, seconds, .. } => {
                        format!("killed at run {at_run} in {seconds:.2} s: {how:?}")
                    }
                    Verdict::Survived { runs } => format!("survived {runs} runs in {:.2} s", report.seconds),
                };
                println!("{name:40} {verdict}");
                reports.push(report);
            }
            Err(error @ StressError::Cuda(_)) => return Err(error.into()),
            Err(error) => println!("{name:40} {error}"),
        }
        // After each: an interrupted run has what it did.
        if let Some(path) = &arguments.output {
            std::fs::write(path, serde_json::to_string_pretty(&reports)?)?;
        }
    }
    Ok(EXIT_OK)
}

fn sanitize_all(arguments: &StressGpuArguments, names: &[Option<String>]) -> anyhow::Result<u8> {
    let program = std::env::current_exe()?;
    let tools = arguments.sanitize.iter().map(|tool| tool.parse::<Tool>()).collect::<Result<Vec<_>, _>>()?;
    let work: Vec<(Tool, Option<&str>)> =
        names.iter().flat_map(|name| tools.iter().map(move |&tool| (tool, name.as_deref()))).collect();
    let (next, reports) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                while let Some(&(tool, mutant)) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = mutant.unwrap_or("none");
                    match sanitize(&program, tool, mutant, arguments.runs, arguments.seed) {
                        Ok(report) => {
                            let errors = report.errors.map_or_else(|| String::from("?"), |errors| errors.to_string());
                            println!(
                                "{name:40} {tool:10} {errors:>6} errors {:6.1} s  {}",
                                report.seconds, report.message
                            );
                            let mut reports = reports.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                            reports.push(report);
                        }
                        Err(error) => println!("{name:40} {tool:10} {error}"),
                    }
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(path) = &arguments.output {
        std::fs::write(path, serde_json::to_string_pretty(&reports)?)?;
    }
    Ok(EXIT_OK)
}
