//! `lookback trace`: record scans step by step, say what they waited for, and leave pictures and traces.

use super::arguments::{CompareArguments, Format, Names, refuse_idle};
use super::compare::{Consequence, dataset, jobs, origin, read_input};
use super::console::Console;
use super::devices;
use super::error::{CliError, EXIT_OK, EXIT_WRONG};
use super::input::Array;
use super::jobs::{Job, nothing_ran};
use crate::lab::device::{Device, DeviceDescription, TraceSettings};
use crate::lab::recorder::{Lock, Skipped, claim_folder};
use crate::lab::report;
use crate::lab::trace::record::{FORMAT, RecordedScan, TraceRecord};
use crate::lab::trace::story::Story;
use crate::lab::trace::{Clock, Recording, records};
use crate::strategy::{Strategy, StrategyChoice};
use crate::text::{SizeError, format_array_size, format_size, significant, wrapped};
use clap::Args;
use std::fmt::Write as _;
use std::path::Path;

/// `lookback trace`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("sweep", |arg| arg.hide(true)),
    mut_arg("record", |arg| arg.hide(true)),
    mut_arg("process", |arg| arg.hide(true)),
    mut_arg("verbose", |arg| arg.hide(true)),
    mut_arg("save_output", |arg| arg.hide(true)),
    mut_arg("resume", |arg| arg.hide(true)),
    mut_arg("format", |arg| arg.hide(true)),
    mut_arg("samples", |arg| arg.hide(true)),
    mut_arg("ranks", |arg| arg.hide(true)),
    mut_arg("manners", |arg| arg.hide(true)),
    mut_arg("chunks", |arg| arg.hide(true)),
    mut_arg("timeout", |arg| arg.hide(true)),
    mut_arg("strategies", |arg| arg.help("Of chained, lookback, one-wave, lookahead, single-cluster, and auto where it comes \
        to one of these [default: lookback]")),
    mut_arg("sizes", |arg| arg.help("Elements, as 1000, 10M, 8Ki, or bytes of them, as 64MiB; --n is the same \
        [default: 16Ki, on a GPU 1Mi]")),
    mut_arg("output", |arg| arg.help("Leave a page with pictures, and traces for ui.perfetto.dev, in this folder"))
)]
pub struct TraceArguments {
    /// What is scanned, by which kernels.
    #[command(flatten)]
    pub scans: CompareArguments,
    /// Begin with other data in the L2 cache of a GPU; else the scan has run right
    /// before
    #[arg(long, help_heading = "Recording")]
    pub cold: bool,
    /// Tiles in a trace: of more, so many, in runs from begin, middle and end
    /// [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Recording")]
    pub tiles: Option<u64>,
}

/// Records what `arguments` ask for and returns the exit code.
///
/// # Errors
/// When there is nothing to record, the output folder cannot be written, or the device is missing something.
pub fn trace(arguments: TraceArguments) -> Result<u8, CliError> {
    let TraceArguments { mut scans, cold, tiles } = arguments;
    let of_compare = "trace records scans; lookback compare takes it";
    refuse_idle([
        ("--sweep", scans.sweep.is_some(), false, of_compare),
        ("--record", !scans.record.is_empty(), false, of_compare),
        ("--process", scans.process.is_some(), false, of_compare),
        ("--verbose", scans.verbose, false, of_compare),
        ("--save-output", scans.save_output.is_some(), false, of_compare),
        ("--resume", scans.resume, false, of_compare),
        ("--format", scans.format != Format::Table, false, of_compare),
        ("--ranks", scans.ranks.is_some(), false, of_compare),
        ("--samples", scans.samples.is_some(), false, of_compare),
        ("--tiles", tiles.is_some(), scans.output.is_some(), "it says what a trace in the folder of --output has"),
    ])?;
    let lookback = StrategyChoice::Named(Strategy::Lookback);
    scans.strategies.get_or_insert(Names { choices: vec![lookback], all: false });
    scans.check_without_sweep()?;
    if let Some(kind) = scans.device.kind() {
        scans.check_device(kind)?;
    }
    let file = scans.input.as_deref().map(|path| read_input(&scans, path)).transpose()?;
    let mut console = Console::new(scans.quiet);
    let mut device = devices::open(&scans, &console)?;
    let description = device.description();
    scans.check_device(&description.kind)?;
    let is_gpu = description.kind == "cuda";
    refuse_idle([("--cold", cold, is_gpu, "the CPU device has no cache")])?;
    if scans.sizes.is_none() && scans.shape.is_none() && file.is_none() {
        let size = if is_gpu { "1Mi" } else { "16Ki" };
        scans.sizes = Some(vec![size.parse().map_err(|error: SizeError| CliError::Usage(error.to_string()))?]);
    }
    let (jobs, _) = jobs(&scans, file.as_ref(), device.as_ref())?;
    let folder = scans.output.as_deref().map(TraceFolder::claim).transpose()?;
    console.print(&format!("{}\n", description.name))?;
    let settings = TraceSettings { seed: scans.seed(), is_cold: cold };
    let mut kept = Vec::new();
    let mut skipped = jobs.skipped;
    let mut loaded = None;
    for job in &jobs.requests {
        let Job { workload, request, .. } = job;
        let is_new = loaded.replace((*workload, request.n)) != Some((*workload, request.n));
        let recording = match recorded(job, is_new, file.as_ref(), &scans, device.as_mut(), &settings)? {
            Ok(recording) => recording,
            Err(why) => {
                let what = format!("{}, {workload}, n = {}", job.choice, format_size(request.n));
                // The next one of this size does not find it loaded.
                loaded = None;
                skipped.push(Skipped { what, why });
                continue;
            }
        };
        let name = name(job, &jobs.requests);
        let summary = summary(&recording);
        console.print(&format!("\n{name}\n{}", console.fitted(&summary)))?;
        let recording = recording.of_tiles(|tile| is_shown(tile, tiles, recording.tiles));
        kept.push(RecordedScan { name, summary, recording });
    }
    if kept.is_empty() {
        let CliError::Usage(why) = nothing_ran(&skipped) else { unreachable!("it is one of what was asked for") };
        // Another strategy records what this one does not; what none records is told as it is.
        let (recording, silent): (Vec<_>, Vec<_>) = Strategy::ALL.iter().partition(|&&strategy| records(strategy));
        let is_of_strategy = jobs.requests.iter().any(|job| silent.contains(&job.request.strategy));
        let recording = recording.iter().map(Strategy::to_string).collect::<Vec<_>>().join(", ");
        let instead = if is_of_strategy { format!("; {recording} have steps to record") } else { String::new() };
        return Err(CliError::Usage(format!("{why}{instead}")));
    }
    for Skipped { what, why } in &skipped {
        console.remark(&format!("skipped {what}: {why}"));
    }
    let is_right = kept.iter().all(|scan| scan.recording.is_right);
    if let Some(folder) = folder {
        folder.keep(description, kept, &console)?;
    }
    Ok(if is_right { EXIT_OK } else { EXIT_WRONG })
}

/// A folder that takes the recordings of one run.
pub(super) struct TraceFolder<'a> {
    path: &'a Path,
    _lock: Lock,
}

impl<'a> TraceFolder<'a> {
    /// Makes it if need be, and keeps others out.
    ///
    /// # Errors
    /// When it cannot be written, or has recordings already.
    pub(super) fn claim(path: &'a Path) -> Result<Self, CliError> {
        let lock = claim_folder(path)?;
        if TraceRecord::is_in(path) {
            let path = path.display();
            return Err(CliError::Usage(format!(
                "{path} has recorded scans already, which stay; choose another folder"
            )));
        }
        Ok(Self { path, _lock: lock })
    }

    /// Leaves record, traces, pictures and page.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(super) fn keep(
        self,
        device: DeviceDescription,
        scans: Vec<RecordedScan>,
        console: &Console,
    ) -> Result<(), CliError> {
        let header = origin(FORMAT, device);
        let record = TraceRecord { header, scans };
        record.write(self.path)?;
        let page = report::write_traces(&record, self.path)?;
        console.remark(&format!("\nrecord, traces, pictures and page: {}", page.display()));
        Ok(())
    }
}

/// A recording of what is loaded, or `is_new` and first loaded; or why there is none.
fn recorded(
    job: &Job,
    is_new: bool,
    file: Option<&Array>,
    scans: &CompareArguments,
    device: &mut dyn Device,
    settings: &TraceSettings,
) -> Result<Result<Recording, String>, CliError> {
    let Job { workload, request, .. } = job;
    if request.n == 0 {
        return Ok(Err("nothing is launched of no elements".to_owned()));
    }
    if !records(request.strategy) {
        return Ok(Err("it has no step to record".to_owned()));
    }
    let mut record = || {
        if is_new {
            let dataset = dataset(*workload, request.n, file, scans).map_err(Consequence::Impossible)?;
            device.load(&dataset).map_err(Consequence::of)?;
        }
        device.trace(request, settings).map_err(Consequence::of)
    };
    match record() {
        Ok(recording) if recording.events.is_empty() => Ok(Err("its kernels have no step to record".to_owned())),
        Ok(recording) => Ok(Ok(recording)),
        Err(Consequence::Impossible(why)) => Ok(Err(why)),
        Err(Consequence::Failure { error, .. } | Consequence::Absence(error)) => Err(CliError::Device(error)),
    }
}

/// What a recording is called among the others: the strategy, and what else tells them apart.
fn name(job: &Job, jobs: &[Job]) -> String {
    let mut name = job.choice.to_string();
    let others = || jobs.iter().filter(|other| other.choice == job.choice);
    if others().any(|other| other.workload != job.workload) {
        let word = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        let workload: String = job.workload.to_string().chars().map(word).collect();
        let _ = write!(name, "-{}", workload.trim_matches('-'));
    }
    if others().any(|other| other.request.n != job.request.n) {
        let _ = write!(name, "-{}", job.request.n);
    }
    let config = job.request.config;
    let others = || others().filter(|other| (other.workload, other.request.n) == (job.workload, job.request.n));
    if others().any(|other| other.request.config != config) {
        let _ = write!(name, "-vt{}-block{}", config.vt, config.block_threads);
        if others().any(|other| {
            (other.request.config.pattern, other.request.config.composition) != (config.pattern, config.composition)
        }) {
            let _ = write!(name, "-{}-{}", config.pattern, config.composition);
        }
        if others().any(|other| {
            (other.request.config.descriptor, other.request.config.tile_order) != (config.descriptor, config.tile_order)
        }) {
            let descriptor = config.descriptor.map_or("smallest".to_owned(), |layout| layout.to_string());
            let _ = write!(name, "-{descriptor}-{}", config.tile_order);
        }
    }
    if others().any(|other| other.request.mode != job.request.mode) {
        let _ = write!(name, "-{}", job.request.mode);
    }
    name
}

/// Whether a tile is in a trace of at most so many: runs of neighbours, so that arrows stay.
fn is_shown(tile: u64, most: Option<u64>, tiles: u64) -> bool {
    let Some(most) = most.filter(|&most| most < tiles) else { return true };
    let (first, middle) = (most.div_ceil(3), most / 3);
    let last = most - first - middle;
    let begin = (tiles - middle) / 2;
    tile < first || (begin..begin + middle).contains(&tile) || tile >= tiles - last
}

/// What a recording says, in lines of up to 79 characters.
pub(super) fn summary(recording: &Recording) -> String {
    let story = Story::new(recording);
    let Recording { subject, tiles, clock, is_right, .. } = recording;
    let (unit, scale) = clock.unit();
    let time = |time: f64| match clock {
        Clock::Steps => format!("{time:.0} {unit}"),
        Clock::Nanoseconds { .. } => format!("{} {unit}", significant(time / scale, 9)),
    };
    let size = format_array_size(subject.n, subject.input_bytes);
    let mut text = format!(
        "{} of {}, {size}: {} tiles of {} x {}, {}\n",
        subject.strategy,
        subject.scan,
        tiles,
        subject.vt,
        subject.block_threads,
        if *is_right { "every element right" } else { "WRONG" }
    );
    let _ = writeln!(text, "from the first step to the last store: {}", time(story.duration as f64));
    if let Clock::Nanoseconds { error, ordinary, recording } = clock {
        let more = 100.0 * (recording / ordinary.max(1.0) - 1.0);
        let _ = writeln!(
            text,
            "back to back: {} by the ordinary kernel, {} by the recording one ({more:+.1} %)",
            time(*ordinary),
            time(*recording)
        );
        let _ = writeln!(
            text,
            "clocks: readings off their lines by up to {}, waits before what they waited for by up to {}",
            time(*error),
            time(story.earliest_arrow as f64)
        );
    }
    let _ = writeln!(text, "\n{:<20}{:>10}{:>9}{:>14}{:>14}", "phase of a warp", "times", "share", "mean", "longest");
    for figures in story.phases() {
        let share = format!("{:.1} %", 100.0 * figures.share);
        let (mean, longest) = (time(figures.mean), time(figures.longest as f64));
        let _ = writeln!(text, "{:<20}{:>10}{share:>9}{mean:>14}{longest:>14}", figures.phase.name(), figures.count);
    }
    if !story.rounds.is_empty() {
        let rounds = story.rounds.len();
        let waits: Vec<u64> =
            story.rounds.iter().filter(|round| round.missing_tile.is_some()).map(|round| round.took).collect();
        let mut tiles: Vec<u64> = story.rounds.iter().map(|round| round.tile).collect();
        tiles.dedup();
        let descriptors: u64 = story.rounds.iter().map(|round| u64::from(round.descriptors)).sum();
        let mean = |sum: u64, count: usize| sum as f64 / count.max(1) as f64;
        let _ = writeln!(
            text,
            "\n{} rounds of {} tiles; {} descriptors a tile; {} rounds waited, {} each",
            rounds,
            tiles.len(),
            significant(mean(descriptors, tiles.len()), 7),
            waits.len(),
            time(mean(waits.iter().sum(), waits.len()))
        );
    }
    let path = story.critical_tiles();
    let share = |took: u64| (100.0 * took as f64 / story.duration.max(1) as f64).round();
    let phases = story.critical_phases().into_iter().filter(|&(_, took)| share(took) >= 1.0);
    let phases: Vec<String> = phases.map(|(during, took)| format!("{during}\0{}\0%", share(took))).collect();
    // A share stays beside its sign.
    let phases = wrapped(&format!("critical path: {}", phases.join(", ")), 79).join("\n").replace('\0', " ");
    let _ = writeln!(text, "{phases}");
    let names: Vec<String> = path.iter().map(|&tile| format_size(tile)).collect();
    let shown = match names.len() {
        0..=24 => names.join(" "),
        count => format!("{} … {} ({count} tiles)", names[..12].join(" "), names[count - 12..].join(" ")),
    };
    let tiles = wrapped(&format!("through the tiles {shown}"), 79).join("\n");
    text + &tiles + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::jobs::{Jobs, Scale};
    use super::*;
    use crate::strategy::tuning::Tuning;

    #[test]
    fn a_recording_is_called_by_what_tells_it_from_the_others() {
        use clap::FromArgMatches;
        let names = |words: &[&str]| {
            let command = CompareArguments::augment_args(clap::Command::new("compare"));
            let matches = command.try_get_matches_from([&["compare"], words].concat()).unwrap();
            let arguments = CompareArguments::from_arg_matches(&matches).unwrap();
            let jobs = Jobs::new(&arguments, &Scale::CPU, None, &Tuning::default()).unwrap().requests;
            jobs.iter().map(|job| name(job, &jobs)).collect::<Vec<_>>()
        };
        assert_eq!(names(&["--strategies=lookback,chained", "--sizes=1000"]), ["lookback", "chained"]);
        assert_eq!(names(&["--strategies=chained", "--sizes=10,20"]), ["chained-10", "chained-20"]);
        assert_eq!(
            names(&["--strategies=chained", "--sizes=1000", "--vts=1,2", "--blocks=64"]),
            ["chained-vt1-block64", "chained-vt2-block64"]
        );
        let problems = names(&["--strategies=lookback", "--problem=reproducible,flat", "--types=f32", "--sizes=1000"]);
        assert_eq!(problems, ["lookback-reproducible-f32-sum", "lookback-f32-sum"]);
    }

    #[test]
    fn a_trace_of_some_tiles_has_runs_from_begin_middle_and_end() {
        let shown = |most| (0..100).filter(|&tile| is_shown(tile, most, 100)).collect::<Vec<_>>();
        assert_eq!(shown(Some(8)), [0, 1, 2, 49, 50, 97, 98, 99]);
        assert_eq!(shown(None).len(), 100);
        assert_eq!(shown(Some(100)).len(), 100);
        for most in 1..100 {
            assert_eq!(shown(Some(most)).len() as u64, most);
        }
    }
}
