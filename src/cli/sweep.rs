//! `lookback sweep` and `lookback compare-records`.

use super::arguments::refuse_idle;
use super::console::Console;
use super::error::{CliError, EXIT_OK, EXIT_WRONG};
use crate::lab::measure::call_times::CallTimes;
use crate::lab::measure::compare::{THRESHOLD, compare_records};
use crate::lab::measure::environment::{Program, processor};
use crate::lab::measure::point::{Entry, Point};
use crate::lab::measure::record::{FORMAT, Opened, Status, SweepHeader, SweepRecord, SweepRecorder, SweepRow};
use crate::lab::measure::run::{self, Laboratory, Progress, SweepError, SweepSummary};
use crate::lab::measure::sampling::Figure;
use crate::lab::measure::selftest::selftest;
use crate::lab::measure::stopping::Stop;
use crate::lab::measure::sweep::{SHIPPED, SweepFile};
use crate::lab::peers;
use crate::strategy::StrategyChoice;
use crate::strategy::tuning::{Gpu, TuningTable};
use crate::text::{format_size, wrapped};
use clap::Args;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The word that runs the timer's own test in place of a sweep.
const SELF_TEST: &str = "selftest";

/// `lookback sweep`.
#[derive(Debug, Clone, Args)]
pub struct SweepArguments {
    /// A shipped sweep, a TOML file, or selftest; without it the shipped ones are listed
    #[arg(value_name = "NAME|FILE")]
    pub name: Option<String>,
    /// Folder of the record, which is named by sweep and GPU: size-h100.jsonl.gz
    #[arg(long, value_name = "DIR", requires = "name")]
    pub output: Option<PathBuf>,
    /// Go on where an interrupted sweep in DIR stopped; same GPU, driver and commit only
    #[arg(long, requires = "output")]
    pub resume: bool,
    /// Say what would be measured and how long it takes; no GPU is needed
    #[arg(long, requires = "name", conflicts_with_all = ["output", "resume", "ordinal"])]
    pub dry_run: bool,
    /// What auto goes by: a tuning table [default: the one for the GPU]
    #[arg(long, value_name = "FILE", requires = "name")]
    pub tuning: Option<PathBuf>,
    /// Which GPU, as CUDA counts
    #[arg(long, value_name = "N", default_value_t = 0, requires = "name")]
    pub ordinal: usize,
    /// No table, no progress and no remarks
    #[arg(long, short, requires = "name")]
    pub quiet: bool,
}

/// `lookback compare-records`.
#[derive(Debug, Clone, Args)]
pub struct CompareRecordsArguments {
    /// The records before: a file or a folder
    #[arg(value_name = "OLD")]
    pub old: PathBuf,
    /// The records now
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
    /// Exit with 1 if anything is slower, right no more, or measured no more
    #[arg(long)]
    pub fail_on_regression: bool,
    /// Differences up to this many percent are of no consequence
    #[arg(long, value_name = "PERCENT", default_value_t = 100.0 * THRESHOLD, value_parser = parse_percent)]
    pub threshold: f64,
    /// List what stayed the same, too
    #[arg(long)]
    pub all: bool,
}

fn parse_percent(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("the threshold is a percentage from 0 to 100".to_owned()),
    }
}

/// Runs `lookback sweep` and returns the exit code.
///
/// # Errors
/// When the sweep is not to be found, there is no GPU, or the record cannot be written.
pub fn sweep(arguments: &SweepArguments) -> Result<u8, CliError> {
    let mut console = Console::new(arguments.quiet);
    let Some(name) = &arguments.name else {
        console.print(&list()?)?;
        return Ok(EXIT_OK);
    };
    if name == SELF_TEST {
        let why = "selftest measures the timer alone, and keeps no record";
        refuse_idle([
            ("--output", arguments.output.is_some(), false, why),
            ("--dry-run", arguments.dry_run, false, why),
            ("--tuning", arguments.tuning.is_some(), false, why),
        ])?;
        let mut laboratory = open_laboratory(arguments.ordinal, "sweep", INSTEAD)?;
        console.remark("measuring kernels of known time, and copies against copies; about a minute");
        let test = selftest(laboratory.as_mut(), 42).map_err(|error| CliError::Sweep(error.into()))?;
        let machine = laboratory.machine();
        let verdict = if test.passed { "The timer passed." } else { "The timer FAILED: believe none of its figures." };
        console.print(&format!("{}, driver {}\n\n{}\n{verdict}\n", machine.gpu, machine.driver, test.text))?;
        return Ok(if test.passed { EXIT_OK } else { EXIT_WRONG });
    }
    let mut file = SweepFile::open(name)?;
    let has_auto = file.groups.iter().any(|group| group.strategies.contains(&StrategyChoice::Auto));
    refuse_idle([(
        "--tuning",
        arguments.tuning.is_some(),
        has_auto,
        "only auto goes by a table, and the sweep has none",
    )])?;
    if let Some(path) = &arguments.tuning {
        file.tuning = Some(TuningTable::open(path)?.without_evidence());
    }
    if arguments.dry_run {
        console.print(&describe(&file)?)?;
        return Ok(EXIT_OK);
    }
    let Some(output) = &arguments.output else {
        return Err(CliError::Usage("a sweep needs a folder for its record: --output DIR".to_owned()));
    };
    let mut laboratory = open_laboratory(arguments.ordinal, "sweep", INSTEAD)?;
    run_and_record(laboratory.as_mut(), file, output, arguments.resume, &mut console)
}

/// Runs a sweep on a laboratory, prints its rows and keeps its record.
///
/// # Errors
/// When the device failed or the record cannot be written.
pub fn run_and_record(
    laboratory: &mut dyn Laboratory,
    file: SweepFile,
    output: &Path,
    resume: bool,
    console: &mut Console,
) -> Result<u8, CliError> {
    let mut table = Table::default();
    let kept = Keeping { folder: output, resume, call_times: None };
    measure(laboratory, file, &kept, console, &mut |rows| Some(table.lines(rows))).map(|(code, _)| code)
}

/// Where a record is kept, and what it has beside the sweep's points.
pub(super) struct Keeping<'a> {
    pub(super) folder: &'a Path,
    /// Whether to go on with one that is there.
    pub(super) resume: bool,
    /// What measures the calls on the host, where the record has them.
    pub(super) call_times: Option<&'a dyn Fn() -> Result<CallTimes, CliError>>,
}

/// Runs a sweep on a laboratory, prints what `shown` makes of the rows of each point, and keeps the record. Returns the
/// exit code and where the record is.
pub(super) fn measure(
    laboratory: &mut dyn Laboratory,
    file: SweepFile,
    kept: &Keeping<'_>,
    console: &mut Console,
    shown: &mut dyn FnMut(&[SweepRow]) -> Option<String>,
) -> Result<(u8, PathBuf), CliError> {
    let (header, opened) = open_record(laboratory, &file, kept.folder, kept.resume)?;
    let mut recorder = match opened {
        Opened::Recorder(recorder) => *recorder,
        Opened::Finished(path) => {
            console.print(&format!("{} is finished; nothing is left to do\n", path.display()))?;
            return Ok((EXIT_OK, path));
        }
    };
    let tuning = file.tuning_on(header.machine.tuning_gpu())?;
    let (mut points, _) = file.points_by(&laboratory.peers(), &tuning);
    points.retain(|point| !recorder.has_point(point));
    let estimate = run::estimate_sweep(&points, &file.limits, header.machine.processors);
    console.print(&format!("{} on {}, driver {}\n", file.name, header.machine.gpu, header.machine.driver))?;
    console.remark(&format!(
        "{} points, about {} (time-outs allow {}), and up to {} to compile what is not kept yet",
        points.len(),
        in_words(estimate.expected_seconds),
        in_words(estimate.at_most_seconds),
        in_words(estimate.compile_seconds),
    ));
    console.start_progress(points.iter().map(|point| cost(point, &file)).sum());
    let has_auto = file.groups.iter().any(|group| group.strategies.contains(&StrategyChoice::Auto));
    if let Some(advice) = tuning.advice().filter(|_| has_auto) {
        console.remark(&advice);
    }
    if let Some(measure) = kept.call_times.filter(|_| recorder.record().call_times.is_none()) {
        recorder.call_times(measure()?)?;
    }
    let mut failed = None;
    let shown = &mut |console: &mut Console, point: &Point, rows: &[SweepRow]| {
        console.advance(cost(point, &file));
        if !console.is_quiet()
            && let Some(text) = shown(rows)
            && let Err(error) = console.print(&text)
        {
            failed.get_or_insert(error);
        }
    };
    let (recorder, summary) = record_into(recorder, console, shown, |recorder, progress| {
        run::run_sweep(laboratory, &file, recorder, progress)
    })?;
    let path = recorder.finish(summary.finished.clone())?;
    console.print(&format!("\n{}\n{}\n", in_a_sentence(&summary), path.display()))?;
    match failed {
        Some(error) => Err(error),
        None => Ok((if summary.wrong == 0 { EXIT_OK } else { EXIT_WRONG }, path)),
    }
}

/// Opens the record of a sweep in a folder, with the header of this run.
pub(super) fn open_record(
    laboratory: &dyn Laboratory,
    sweep: &SweepFile,
    folder: &Path,
    resume: bool,
) -> Result<(SweepHeader, Opened), CliError> {
    let header = SweepHeader {
        format: FORMAT,
        program: Program::this(),
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: super::compare::command_line(),
        sweep: sweep.clone(),
        machine: laboratory.machine(),
    };
    let opened = SweepRecorder::open(folder, &header, resume)?;
    Ok((header, opened))
}

/// Measures into a record with progress on the console, which must have been started; `shown` is told of every point
/// that is finished. If it fails, a remark says where what was finished is.
pub(super) fn record_into<T>(
    mut recorder: SweepRecorder,
    console: &mut Console,
    shown: &mut dyn FnMut(&mut Console, &Point, &[SweepRow]),
    measure: impl FnOnce(&mut SweepRecorder, &mut dyn FnMut(Progress<'_>)) -> Result<T, SweepError>,
) -> Result<(SweepRecorder, T), CliError> {
    let result = measure(&mut recorder, &mut |progress| match progress {
        Progress::Compiling(points) => console.show_progress(format!("compiling kernels for {points} points")),
        Progress::Point(point) => console.show_progress(point.title()),
        Progress::Rows(point, rows) => shown(console, point, rows),
        Progress::Skipped(skipped) => console.remark(&format!("skipped: {} ({})", skipped.what, skipped.why)),
    });
    console.end_progress();
    match result {
        Ok(summary) => Ok((recorder, summary)),
        Err(error) => {
            console.remark(&format!("what was finished is in {}; go on with --resume", recorder.path().display()));
            Err(error.into())
        }
    }
}

/// Runs `lookback compare-records` and returns the exit code.
///
/// # Errors
/// When a record cannot be read.
pub fn compare(arguments: &CompareRecordsArguments) -> Result<u8, CliError> {
    let (old, new) = (SweepRecord::read_all(&arguments.old)?, SweepRecord::read_all(&arguments.new)?);
    let mut console = Console::new(false);
    console.start_progress(old.iter().map(|record| record.rows.len() as u64).sum());
    let comparison = compare_records(&old, &new, arguments.threshold / 100.0, &mut |done, all| {
        console.show_progress(format!("{done} of {all} configurations are compared"));
        console.advance(1);
    });
    console.end_progress();
    if comparison.changes.is_empty() {
        let text = "the two records have no configuration in common, so nothing was compared; `lookback report FILE` shows \
                    what is in each";
        return Err(CliError::Usage(text.to_owned()));
    }
    console.print(&comparison.text(arguments.all))?;
    if arguments.fail_on_regression && !comparison.is_decided() && !comparison.has_regression() {
        let text = "every figure is unclear or of a bound, whose result is not verified, so nothing says that no scan is \
                    slower; measure scans, with more samples";
        return Err(CliError::Usage(text.to_owned()));
    }
    Ok(if arguments.fail_on_regression && comparison.has_regression() { EXIT_WRONG } else { EXIT_OK })
}

/// What a sweep says where there is no GPU.
const INSTEAD: &str = "`lookback sweep NAME --dry-run` says what it would measure, and \
                       `lookback compare --device cpu` runs the strategies here";

/// The GPU to measure on. Where there is none, the error says that `what` needs one, and what can be done `instead`.
#[cfg(feature = "cuda")]
pub(super) fn open_laboratory(
    ordinal: usize,
    what: &'static str,
    instead: &'static str,
) -> Result<Box<dyn Laboratory>, CliError> {
    match crate::lab::cuda::timing::GpuLaboratory::open(ordinal) {
        Ok(laboratory) => Ok(Box::new(laboratory)),
        Err(error) => Err(CliError::NeedsGpu { what, instead, source: Box::new(error) }),
    }
}

#[cfg(not(feature = "cuda"))]
pub(super) fn open_laboratory(
    _ordinal: usize,
    what: &'static str,
    instead: &'static str,
) -> Result<Box<dyn Laboratory>, CliError> {
    let source = Box::new(CliError::NotBuilt { device: "CUDA device", feature: "cuda-13000" });
    Err(CliError::NeedsGpu { what, instead, source })
}

fn cost(point: &Point, file: &SweepFile) -> u64 {
    (1000.0 * run::estimate(point, &file.limits).expected_seconds) as u64 + 1
}

/// The shipped sweeps.
fn list() -> Result<String, CliError> {
    let without =
        if peers::names().is_empty() { "\nwithout CUB and Thrust, which this build does not have" } else { "" };
    let mut text =
        format!("Shipped sweeps, and how long they take on an H100 with 16 processors beside it{without}:\n\n");
    for (name, _) in SHIPPED {
        let file = SweepFile::open(name)?;
        let (points, _) = file.points(&peers::names());
        let estimate = run::estimate_sweep(&points, &file.limits, 16);
        let (measure, compile) = (in_words(estimate.expected_seconds), in_words(estimate.compile_seconds));
        let purpose = wrapped(&file.purpose, 70).join("\n          ");
        let _ = writeln!(text, "{name:<9} about {measure}, at first {compile} more to compile\n          {purpose}\n");
    }
    let _ =
        writeln!(text, "{SELF_TEST:<9} about a minute\n          Measures the timer itself, by kernels of known time.");
    Ok(text)
}

/// What a sweep would measure.
fn describe(file: &SweepFile) -> Result<String, CliError> {
    let (points, skipped) = file.points_by(&peers::names(), &file.tuning_on(Gpu::H100)?);
    let mut text = format!("{}: {}\n\n", file.name, file.purpose);
    for point in &points {
        let estimate = run::estimate(point, &file.limits);
        let offsets = if point.offsets.is_aligned() { String::new() } else { point.offsets.to_string() };
        let line = format!(
            "{:<12} n = {:<10} {:>4} subjects {:>8.1} s  {offsets}",
            point.workload.to_string(),
            format_size(point.n),
            point.entries.iter().filter(|entry| point.refusal(entry).is_none()).count(),
            estimate.expected_seconds
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for skipped in &skipped {
        let _ = writeln!(text, "skipped: {} ({})", skipped.what, skipped.why);
    }
    let refused = |point: &Point| {
        let of = |entry: &Entry| Some(format!("{}: {}", entry.subject.name(), point.refusal(entry)?));
        point.entries.iter().filter_map(of).collect::<Vec<_>>()
    };
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    points.iter().flat_map(refused).for_each(|refusal| *refusals.entry(refusal).or_default() += 1);
    for (refusal, times) in &refusals {
        for line in wrapped(&format!("cannot be launched ({times} times): {refusal}"), 80) {
            let _ = writeln!(text, "{line}");
        }
    }
    let estimate = run::estimate_sweep(&points, &file.limits, processor().1);
    let _ = writeln!(
        text,
        "\nabout {} on an H100, time-outs allow {};\nup to {} more to compile kernels on this machine's processors, where none are kept",
        in_words(estimate.expected_seconds),
        in_words(estimate.at_most_seconds),
        in_words(estimate.compile_seconds)
    );
    Ok(text)
}

pub(super) fn in_words(seconds: f64) -> String {
    if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.1} min", seconds / 60.0) }
}

pub(super) fn in_a_sentence(summary: &SweepSummary) -> String {
    let mut text = format!(
        "{} after {}",
        if summary.wrong == 0 { "done" } else { "DONE WITH ERRORS" },
        in_words(summary.finished.seconds)
    );
    if summary.wrong > 0 {
        let _ = write!(text, ", {} rows are WRONG", summary.wrong);
    }
    if summary.not_launchable > 0 {
        let _ = write!(text, ", {} configurations could not be launched", summary.not_launchable);
    }
    if summary.untrusted_figures > 0 {
        let _ = write!(text, ", {} figures met no noise criterion", summary.untrusted_figures);
    }
    if let Some(clock) = summary.finished.median_clock_mhz {
        let _ = write!(text, ", median clock {clock:.0} MHz");
    }
    text
}

/// The rows on stdout, as points are finished.
#[derive(Debug, Default)]
struct Table {
    has_heading: bool,
}

impl Table {
    fn lines(&mut self, rows: &[SweepRow]) -> String {
        let mut text = String::new();
        if !self.has_heading {
            self.has_heading = true;
            let _ = writeln!(
                text,
                "\n{:<24} {:<9} {:>2} {:>5} {:>10} {:>10} {:>10} {:>8} {:>6}",
                "", "mode", "VT", "block", "cold us", "stream us", "graph us", "GB/s", "% copy"
            );
        }
        if let Some(row) = rows.first() {
            let offsets = if row.offsets.is_aligned() { String::new() } else { format!(", {}", row.offsets) };
            let _ = writeln!(text, "\n{} n = {}{offsets}", row.point().scan(), format_size(row.n));
        }
        for row in rows {
            let number = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
            let start = format!(
                "{:<24} {:<9} {:>2} {:>5}",
                row.subject_with_choice(),
                row.mode.map_or(String::new(), |mode| mode.to_string().chars().take(9).collect()),
                number(row.vt),
                number(row.block_threads)
            );
            let verdict = match row.status {
                Status::Measured | Status::NotVerified => None,
                Status::Wrong => Some("WRONG"),
                Status::NotLaunchable => Some("not launchable"),
            };
            if let Some(verdict) = verdict {
                let reason = row.reason.as_deref().and_then(|reason| reason.lines().next()).unwrap_or("");
                let _ = writeln!(text, "{start}  {verdict}");
                for line in wrapped(reason, 76) {
                    let _ = writeln!(text, "    {line}");
                }
                continue;
            }
            let time = |figure: Figure| match row.figure(figure) {
                Some(record) => match record.median_ns {
                    Some(median) if !record.is_trusted => format!("{:.2}?", median / 1000.0),
                    Some(median) if record.stop == Some(Stop::TwoPeaks) => format!("~{:.2}", median / 1000.0),
                    Some(median) => format!("{:.2}", median / 1000.0),
                    None => "-".to_owned(),
                },
                None => String::new(),
            };
            let best = row.graph.as_ref().filter(|graph| graph.median_ns.is_some()).or(row.stream.as_ref());
            let rate = best.and_then(|figure| figure.gigabytes_per_second);
            let share = best.and_then(|figure| figure.percent_of_copy);
            let _ = writeln!(
                text,
                "{start} {:>10} {:>10} {:>10} {:>8} {:>6}",
                time(Figure::Cold),
                time(Figure::Stream),
                time(Figure::Graph),
                rate.map_or(String::new(), |rate| format!("{rate:.1}")),
                share.map_or(String::new(), |share| format!("{share:.1}")),
            );
        }
        text
    }
}
