//! `lookback stress`: drawn runs of the kernels as they are, one mutant, all mutants, or one case again.

use super::compare::command_line;
use super::console::Console;
use super::error::{CliError, EXIT_NO_DEVICE, EXIT_OK, EXIT_WRONG};
use super::interrupt;
use super::stress_arguments::{MemoryChoice, Mode, StressArguments, StressFormat};
use super::trace::{TraceFolder, summary};
use crate::kernels::mutant::Kind;
use crate::lab::cpu_device::{CpuDevice, CpuSettings};
use crate::lab::device::Device as _;
use crate::lab::measure::environment::{Program, processor};
use crate::lab::recorder::write_atomically;
use crate::lab::stress::cpu::Passed;
use crate::lab::stress::detector::{CannotRun, Cell, Limits};
use crate::lab::stress::detectors::thread_sanitizer::THREAD_SANITIZER_CASE;
use crate::lab::stress::detectors::{DetectorName, Made};
use crate::lab::stress::replay::{Replayed, replay};
use crate::lab::stress::search::{Census, Search, search, shrink};
use crate::lab::stress::selection::select;
use crate::lab::stress::table::{KillTable, MutantOutcome, Row};
use crate::lab::stress::thread_sanitizer::{self, Job, ThreadSanitizer};
use crate::lab::stress::{Case, Mutant, PLAIN};
use crate::lab::trace::record::RecordedScan;
use indicatif::HumanCount;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long a failing case is made smaller.
const SHRINKING: Duration = Duration::from_secs(10);
/// What a detector that draws may take for a mutant.
const SECONDS_A_MUTANT: Duration = Duration::from_secs(6);
/// And for one that all have left: a few show in one of some hundred runs alone, which on a slow machine take longer than that.
const SECONDS_AGAIN: Duration = Duration::from_secs(120);
const RUNS_A_MUTANT: u64 = 3000;
/// Accesses of each launch that a replay shows.
const REPLAYED_LINES: usize = 200;

/// What helps where a run has too little memory.
const MORE_MEMORY: &str = "let the process have more: address space (ulimit -v), mappings (vm.max_map_count)";

impl From<CannotRun> for CliError {
    fn from(cause: CannotRun) -> Self {
        Self::CannotRun { cause, helps: "use fewer --threads, or let the process have more memory (ulimit -v)" }
    }
}

/// Runs `lookback stress` and returns the exit code.
///
/// # Errors
/// When the arguments make no sense, or a file cannot be read or written.
pub fn stress(arguments: &StressArguments) -> Result<u8, CliError> {
    let mut console = Console::new(arguments.quiet);
    arguments.check()?;
    let case = arguments.replay.as_deref().unwrap_or_default();
    match arguments.mode() {
        Mode::List => list(arguments, &mut console),
        Mode::Replay => replay_case(case, arguments, &mut console),
        Mode::ReplayWatched => replay_under_thread_sanitizer(case, &mut console),
        Mode::ReplayOnGpu => gpu_replay(case, arguments, &mut console),
        mode @ (Mode::Table | Mode::Campaign | Mode::CampaignOnGpu) => look_for_faults(mode, arguments, &mut console),
    }
}

/// Draws runs of the kernels as they are, of one mutant or of all.
fn look_for_faults(mode: Mode, arguments: &StressArguments, console: &mut Console) -> Result<u8, CliError> {
    // Before the faults are read and cases of each are drawn, which takes a while where nothing is optimised.
    let stop = interrupt::watch().map_err(CliError::Interrupt)?;
    let mutant = arguments.mutant.as_deref().map(Mutant::named).transpose().map_err(usage)?;
    let mutants = Mutant::all().map_err(usage)?;
    if let Some(mutant) = mutants.iter().find(|mutant| !Case::can_draw(PLAIN, mutant)) {
        let place = format!("{}:{}", mutant.file, mutant.line);
        return Err(CliError::Usage(format!(
            "{place}: no case can show the mutant {mutant}: its \"when\" excludes all"
        )));
    }
    if let Some(mutant) = mutant.filter(|mutant| !Case::can_draw(arguments.problems(), mutant)) {
        return Err(CliError::Usage(format!(
            "no case of these problems can show the mutant {mutant}, which shows in strategies, types or layouts that they \
             do not have; leave --problem out, or choose others"
        )));
    }
    match mode {
        Mode::Table => kill_table(arguments, stop, console),
        Mode::CampaignOnGpu => gpu_campaign(mutant, arguments, stop, console),
        _ => campaign(mutant, arguments, stop, console),
    }
}

fn usage(error: impl std::fmt::Display) -> CliError {
    CliError::Usage(error.to_string())
}

fn list(arguments: &StressArguments, console: &mut Console) -> Result<u8, CliError> {
    let mutants = select(&arguments.of, None, 0).map_err(usage)?;
    let names = mutants.iter().map(|mutant| mutant.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for mutant in mutants {
        text += &format!("{:<names$}  {:<9}  {}\n", mutant.name, mutant.kind.name(), mutant.text);
    }
    console.print(&text)?;
    Ok(EXIT_OK)
}

fn replay_case(text: &str, arguments: &StressArguments, console: &mut Console) -> Result<u8, CliError> {
    let case: Case = text.parse().map_err(usage)?;
    let folder = arguments.trace.as_deref().map(TraceFolder::claim).transpose()?;
    let lines = arguments.replay_lines.unwrap_or(REPLAYED_LINES);
    let Replayed { text: told, result, launches } = replay(&case, lines);
    console.print(&told)?;
    if let Some(folder) = folder {
        if launches.is_empty() {
            return Err(usage(
                "no launch of the case has a step to record, so there is nothing for --trace; leave it out",
            ));
        }
        let scans = launches.into_iter().map(|(number, recording)| RecordedScan {
            name: format!("launch-{number}"),
            summary: summary(&recording),
            recording,
        });
        folder.keep(CpuDevice::new(CpuSettings::default()).description(), scans.collect(), console)?;
    }
    match result {
        Ok(passed) => {
            let right = check_looked(&passed, "give the case more launches, or leave its disturbance out")?;
            console.print(&format!("passed: {right} launches with every element right{}\n", cut_too(passed.cut)))?;
            Ok(EXIT_OK)
        }
        Err(failure) => match failure.cannot_run() {
            Some(cause) => Err(CliError::CannotRun { cause: cause.clone(), helps: MORE_MEMORY }),
            None => {
                let told = console.fitted(&format!("FAILED in {failure}\n"));
                console.print(&told)?;
                Ok(EXIT_WRONG)
            }
        },
    }
}

/// One schedule in the program that ThreadSanitizer watches, and its report.
fn replay_under_thread_sanitizer(text: &str, console: &mut Console) -> Result<u8, CliError> {
    let text = text.strip_prefix(THREAD_SANITIZER_CASE).unwrap_or(text);
    let case: Case = text.parse().map_err(usage)?;
    let job = Job::of_case(&case, 1)?;
    let verdict = ThreadSanitizer::new().and_then(|detector| detector.run(&job))?;
    if let thread_sanitizer::Ending::Race(race) = &verdict {
        console.print(&race.text)?;
    }
    console.print(&format!("{verdict}\n"))?;
    Ok(if verdict.is_clean() { EXIT_OK } else { EXIT_WRONG })
}

/// Processors, if nobody chose.
pub(super) fn threads(arguments: &StressArguments) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    arguments.threads.map_or_else(all, |threads| threads as usize)
}

/// Drawn runs on the CPU device until one fails or all are done.
fn campaign(
    mutant: Option<&'static Mutant>,
    arguments: &StressArguments,
    stop: &'static AtomicBool,
    console: &mut Console,
) -> Result<u8, CliError> {
    let start = Instant::now();
    let limits = Limits {
        first_seed: arguments.seed,
        schedules: arguments.runs,
        time: arguments.seconds,
        threads: threads(arguments),
        stop: Some(stop),
    };
    console.start_progress(arguments.runs);
    let memories = arguments.memory.unwrap_or(MemoryChoice::Both).memories();
    let found = search(arguments.problems(), mutant, memories, limits, &console.advancer());
    console.end_progress();
    let Search { found, cases, passed, census, elapsed } = found?;
    let seconds = elapsed.as_secs_f64();
    if found.is_none() && !stop.load(Ordering::Relaxed) {
        check_looked(&passed, "give more --seconds")?;
    }
    let Some(found) = found else {
        let what = mutant.map_or("the kernels as they are".to_owned(), |mutant| format!("the mutant {mutant}"));
        if arguments.format == StressFormat::Json {
            let document = serde_json::json!({
                "verdict": "survived", "runs": passed.schedules, "smaller_runs": passed.smaller,
                "runs_cut_on_purpose": passed.cut, "cases": cases, "elements": passed.elements,
                "seconds": seconds, "first_seed": arguments.seed, "counts": census,
                "interrupted": stop.load(Ordering::Relaxed),
            });
            console.print(&format!("{document:#}\n"))?;
        } else {
            let told = console.fitted(&format!(
                "{what}: no failure in {seconds:.1} s\n{} runs of at least 8 tiles and 2 warps a block, every element right\n\
                 beside them {} smaller or without tiles, every element right{}\n{} cases, {} elements\n{}",
                HumanCount(passed.schedules),
                HumanCount(passed.smaller),
                cut_too(passed.cut),
                HumanCount(cases),
                HumanCount(passed.elements),
                counts(&census),
            ));
            console.print(&told)?;
        }
        return Ok(interrupt::exit_code(stop, EXIT_OK, console));
    };
    let time = limits.remaining(start).map_or(SHRINKING, |time| time.min(SHRINKING));
    let small = shrink(&found, &Limits { time: Some(time), ..limits });
    if arguments.format == StressFormat::Json {
        let document = serde_json::json!({
            "verdict": "killed", "runs": passed.launches() + 1, "cases": cases, "seconds": seconds,
            "seed": found.case.seed, "how": found.failure.to_string(),
            "case": found.case.to_string(), "smallest_case": small.case.to_string(),
            "smallest_how": small.failure.to_string(),
        });
        console.print(&format!("{document:#}\n"))?;
    } else {
        let after =
            format!("FAILED after {} runs, {seconds:.1} s: {}\n", HumanCount(passed.launches() + 1), found.failure);
        let smallest = format!("smallest case found that fails so: {}\n", small.failure);
        // In one piece, to be copied.
        for (told, case) in [(after, &found.case), (smallest, &small.case)] {
            let told = console.fitted(&told);
            console.print(&format!("{told}  lookback stress --replay '{case}'\n"))?;
        }
    }
    Ok(EXIT_WRONG)
}

/// Launches whose elements were looked at; that there were none is no pass.
fn check_looked(passed: &Passed, helps: &str) -> Result<u64, CliError> {
    match (passed.schedules + passed.smaller, passed.cut) {
        (0, 0) => Err(CliError::Usage(format!("no run ended in the time asked for, which shows nothing; {helps}"))),
        (0, cut) => Err(CliError::Usage(format!(
            "no element was checked, which shows nothing: what ran was cut short on purpose ({cut} of {cut} launches); \
             {helps}"
        ))),
        (looked, _) => Ok(looked),
    }
}

/// Behind a number of launches.
fn cut_too(cut: u64) -> String {
    if cut == 0 { String::new() } else { format!(", {} cut short on purpose", HumanCount(cut)) }
}

/// What the runs were: a property a line, for a terminal of 80 columns.
fn counts(census: &Census) -> String {
    const COLUMNS: usize = 80;
    let mut text = String::new();
    for (property, values) in census.properties() {
        let mut line = format!("  {property:<15} ");
        let indent = line.len();
        for (index, (value, schedules)) in values.iter().enumerate() {
            let comma = if index + 1 < values.len() { ", " } else { "" };
            let entry = format!("{value} {}{comma}", HumanCount(*schedules));
            if line.len() + entry.trim_end().len() > COLUMNS {
                text += line.trim_end();
                line = format!("\n{:indent$}", "");
            }
            line += &entry;
        }
        text += &line;
        text.push('\n');
    }
    text
}

#[cfg(feature = "cuda")]
use super::stress_gpu::{campaign as gpu_campaign, replay as gpu_replay};

#[cfg(not(feature = "cuda"))]
const NO_CUDA: CliError = CliError::NotBuilt { device: "CUDA device", feature: "cuda-13000" };

#[cfg(not(feature = "cuda"))]
fn gpu_campaign(
    _: Option<&'static Mutant>,
    _: &StressArguments,
    _: &'static AtomicBool,
    _: &mut Console,
) -> Result<u8, CliError> {
    Err(NO_CUDA)
}

#[cfg(not(feature = "cuda"))]
fn gpu_replay(_: &str, _: &StressArguments, _: &mut Console) -> Result<u8, CliError> {
    Err(NO_CUDA)
}

/// How long a table takes, and at most.
fn estimate(detectors: &[DetectorName], mutants: usize, limits: &Limits) -> String {
    let usual: f64 = detectors.iter().map(|detector| detector.row().seconds_a_mutant).sum();
    let most = limits.time.map_or(usual, |time| time.as_secs_f64().max(usual)) * detectors.len() as f64;
    format!(
        "{} mutants, {} detectors: about {} on two processors, {} if all survived",
        HumanCount(mutants as u64),
        detectors.len(),
        span(mutants as f64 * usual),
        span(mutants as f64 * most),
    )
}

/// A time that somebody plans by.
fn span(seconds: f64) -> String {
    let minutes = (seconds / 60.0).ceil().max(1.0);
    let hours = (minutes / 60.0).round();
    match minutes {
        0.0..120.0 => format!("{minutes} min"),
        _ if hours < 48.0 => format!("{hours} h"),
        _ if hours < 24.0 * 365.0 => format!("{:.0} days", hours / 24.0),
        _ => "more than a year".to_owned(),
    }
}

fn kill_table(arguments: &StressArguments, stop: &'static AtomicBool, console: &mut Console) -> Result<u8, CliError> {
    // Before anything runs: minutes would be spent for a table that has no place.
    let there = arguments.output.as_deref().map(check_output).transpose()?.flatten();
    let earlier = arguments.add.as_deref().map(read_table).transpose()?;
    let mut file = TableFile { path: arguments.output.as_deref(), there, earlier: earlier.as_ref() };
    if let (Some(path), Some(text)) = (&arguments.output, &file.there)
        && earlier != KillTable::from_json(text).ok()
    {
        return Err(CliError::OutputHasResults { path: path.clone() });
    }
    let mut chosen = arguments.detectors.clone().unwrap_or_else(|| {
        let is_asked = |detector: &DetectorName| arguments.on_gpu() || !detector.row().needs_gpu;
        DetectorName::ALL.iter().copied().filter(is_asked).collect()
    });
    chosen.sort_unstable();
    chosen.dedup();
    if arguments.problems() != PLAIN {
        let others: Vec<_> = chosen.extract_if(.., |detector| !detector.row().knows_problems).collect();
        let others = others.iter().map(|detector| detector.name()).collect::<Vec<_>>().join(", ");
        match others.as_str() {
            "" => {}
            others if arguments.detectors.is_some() => {
                return Err(CliError::Usage(format!(
                    "--problem: plain scans alone are drawn by {others}; leave --problem out, or what draws no others"
                )));
            }
            others => console.remark(&format!("plain scans alone are drawn by {others}, which is not asked")),
        }
    }
    let limits = Limits {
        first_seed: arguments.seed,
        schedules: RUNS_A_MUTANT,
        time: Some(arguments.seconds.unwrap_or(SECONDS_A_MUTANT)),
        threads: threads(arguments),
        stop: Some(stop),
    };
    let mutants = select(&arguments.of, arguments.sample, arguments.seed).map_err(usage)?;
    let (name, processors) = processor();
    let mut table = KillTable {
        program: format!("lookback {}", env!("CARGO_PKG_VERSION")),
        git_commit: Program::this().commit(),
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: command_line(),
        machine: BTreeMap::from([("processor".to_owned(), format!("{name}, {processors} processors"))]),
        detectors: chosen.clone(),
        unmutated: BTreeMap::new(),
        mutants: mutants.iter().copied().map(Row::new).collect(),
    };
    // By kind, so that the table reads in groups.
    table.mutants.sort_by_key(|row| row.kind);
    // Who names mutants asks about these, whatever is known of them.
    let goes_on = arguments.of.is_empty() && earlier.as_ref().is_some_and(|earlier| table.is_of_commit(earlier));
    // Ctrl-C ends the compilers that a detector needs, too: that it cannot be made then says nothing of this machine.
    let or_interrupted = |why: String| if stop.load(Ordering::Relaxed) { INTERRUPTED.to_owned() } else { why };
    let mut detectors: Vec<_> =
        chosen.iter().map(|&name| (name, (name.row().new)(arguments.problems()).map_err(or_interrupted))).collect();
    console.remark(&estimate(&chosen, mutants.len(), &limits));
    console.start_progress((detectors.len() * (mutants.len() + 1)) as u64);
    for (name, detector) in &mut detectors {
        if let Ok(detector) = detector {
            table.machine.extend(detector.facts());
        }
        // An interrupted table is gone on with.
        let is_found =
            |mutant: &Mutant| earlier.as_ref().is_some_and(|earlier| goes_on && earlier.has_found(*name, mutant));
        let left: Vec<&'static Mutant> = mutants.iter().copied().filter(|mutant| !is_found(mutant)).collect();
        if left.len() < mutants.len() {
            let found = mutants.len() - left.len();
            console.remark(&format!("{name} has found {found} of {} in the table that is added", mutants.len()));
            console.advance(found as u64);
        }
        let filled = fill_column(*name, detector, &left, &mut table, &mut file, &limits, console);
        // What was found is not lost if the rest is interrupted.
        let kept = file.keep(&table);
        filled?;
        let runs = table.mutants.iter().filter_map(|row| row.detectors.get(name)?.runs()).sum();
        // Beside the mutants the kernels as they are, over as many runs as all of them had together, in the time asked for.
        console.show_progress(format!("{name} unmutated"));
        let limits = Limits { schedules: arguments.runs.max(runs), time: arguments.seconds, ..limits };
        let cell = match detector {
            Ok(_) if limits.is_stopped() => Cell::NotRun { why: INTERRUPTED.to_owned() },
            Ok(detector) => as_told(detector.examine_unmutated(&limits)?, &limits),
            Err(why) => Cell::NotRun { why: why.clone() },
        };
        table.unmutated.insert(*name, cell);
        console.advance(1);
        if let Err(error) = kept.and_then(|()| file.keep(&table)) {
            console.end_progress();
            console.print(&with_columns(&table, earlier.as_ref()).0.text())?;
            return Err(error);
        }
    }
    console.end_progress();
    if let Some(time) = arguments.again.or(arguments.seconds.is_none().then_some(SECONDS_AGAIN)) {
        let limits = Limits { time: Some(time), ..limits };
        look_again(&mut detectors, &mutants, &mut table, &mut file, &limits, console)?;
    }
    let (table, json) = with_columns(&table, earlier.as_ref());
    match arguments.format {
        StressFormat::Json => console.print(&json)?,
        StressFormat::Text => console.print(&table.text())?,
    }
    // What was asked for by name, or with the device, and is not here is a failure; a default that is not here is a
    // remark.
    let mut is_missing = false;
    for (name, detector) in &detectors {
        if let Err(why) = detector
            && why != INTERRUPTED
        {
            console.remark(&format!("{name} was not asked: {why}"));
            is_missing |= arguments.detectors.is_some() || name.row().needs_gpu;
        }
    }
    let is_interrupted = stop.load(Ordering::Relaxed);
    for row in table.wrong_rows().filter(|_| !is_interrupted) {
        let what = match (row.verdict, row.kind) {
            (MutantOutcome::Killed, _) => "is harmless, but was reported",
            (_, Kind::Harmless) => "is harmless, which no detector has seen",
            _ => "survived every detector",
        };
        console.remark(&format!("{} {what} ({})", row.name, row.place));
    }
    for (detector, cell) in table.false_alarms() {
        if let Cell::Killed { how, reproduce, .. } = cell {
            let again = reproduce.as_deref().map(|line| format!("; {line}")).unwrap_or_default();
            console.remark(&format!("{} reports the kernels as they are: {how}{again}", detector.name()));
        }
    }
    for (detector, why) in table.unproven().filter(|_| !is_interrupted) {
        let name = detector.name();
        console.remark(&format!("{name} has not let the kernels as they are pass ({why}), so its kills prove nothing"));
    }
    let is_unproven = table.unproven().next().is_some();
    if let Some(row) = table.unasked_rows().next().filter(|_| !(is_interrupted || is_missing || is_unproven))
        && !table.is_wrong()
    {
        let why = row.detectors.values().find_map(|cell| match cell {
            Cell::NotRun { why } => Some(why.as_str()),
            _ => None,
        });
        return Err(CliError::Usage(format!(
            "nothing is known of {}, which no detector has looked at ({}); give more --seconds, or ask other detectors",
            row.name,
            why.unwrap_or("it was not asked"),
        )));
    }
    let code = match (is_missing, table.is_right()) {
        // Nobody knows what the mutants that were not asked about would have come to.
        _ if is_interrupted && table.false_alarms().next().is_none() => EXIT_OK,
        (true, _) => EXIT_NO_DEVICE,
        (false, true) => EXIT_OK,
        (false, false) => EXIT_WRONG,
    };
    Ok(interrupt::exit_code(stop, code, console))
}

/// The table with the columns of an earlier one, and its JSON.
fn with_columns(table: &KillTable, earlier: Option<&KillTable>) -> (KillTable, String) {
    let mut table = table.clone();
    if let Some(earlier) = earlier {
        table.add(earlier);
    }
    let json = serde_json::to_string_pretty(&table).expect("a table of text and numbers is JSON") + "\n";
    (table, json)
}

/// Why a detector is not asked about a fault of another problem.
const DRAWS_PLAIN_SCANS: &str = "it draws plain scans alone";
/// Why nothing is known of what has still to be asked about.
const NOT_YET: &str = "not asked about yet";
/// Why nothing is known of what was not run when somebody ended the program.
const INTERRUPTED: &str = "interrupted";

/// How often a column that is not full yet is kept, if something is found.
const KEPT_EVERY: Duration = Duration::from_secs(2);

/// Asks a detector about the mutants, and puts what is found into the table and, now and then, into its file.
fn fill_column(
    name: DetectorName,
    detector: &mut Made,
    mutants: &[&'static Mutant],
    table: &mut KillTable,
    file: &mut TableFile,
    limits: &Limits,
    console: &Console,
) -> Result<(), CliError> {
    let (asked, others): (Vec<&'static Mutant>, Vec<_>) =
        mutants.iter().partition(|mutant| name.row().knows_problems || mutant.when.problems.is_empty());
    // Until something is said of it; a detector that is not there says nothing.
    let nothing = detector.as_ref().err().map_or(NOT_YET, String::as_str);
    let places: HashMap<String, usize> =
        table.mutants.iter().enumerate().map(|(place, row)| (row.name.clone(), place)).collect();
    for (mutants, why) in [(&asked, nothing), (&others, DRAWS_PLAIN_SCANS)] {
        for mutant in mutants {
            table.mutants[places[&mutant.name]].set(name, Cell::NotRun { why: why.to_owned() });
        }
    }
    let Ok(detector) = detector else {
        console.advance(mutants.len() as u64);
        return Ok(());
    };
    console.advance(others.len() as u64);
    console.show_progress(format!("{name}: preparing"));
    let announce = console.announcer();
    let state = Mutex::new((table, file, Instant::now()));
    let found = |mutant: &'static Mutant, cell: Cell| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (table, file, kept) = &mut *state;
        table.mutants[places[&mutant.name]].set(name, as_told(cell, limits));
        announce(format!("{name} {}", mutant.name));
        if kept.elapsed() >= KEPT_EVERY {
            // What keeps it from being written is still there, and told, when the column is full.
            let _ = file.keep(table);
            *kept = Instant::now();
        }
    };
    let examined = detector.examine_all(&asked, limits, &found);
    if limits.is_stopped() {
        let (table, ..) = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        for row in &mut table.mutants {
            if matches!(row.detectors.get(&name), Some(Cell::NotRun { why }) if why == NOT_YET) {
                row.set(name, Cell::NotRun { why: INTERRUPTED.to_owned() });
            }
        }
    }
    Ok(examined?)
}

/// Looks for the faults that all detectors have left once more, by those that draw on the CPU.
fn look_again(
    detectors: &mut [(DetectorName, Made)],
    mutants: &[&'static Mutant],
    table: &mut KillTable,
    file: &mut TableFile,
    limits: &Limits,
    console: &mut Console,
) -> Result<(), CliError> {
    // Weak memory first, which alone shows what orders memory.
    for (name, detector) in detectors.iter_mut().rev().filter(|(name, _)| name.row().draws_on_cpu()) {
        let (known, _) = with_columns(table, file.earlier);
        let names: HashSet<&str> = known.survivors().map(|row| row.name.as_str()).collect();
        let left: Vec<&'static Mutant> =
            mutants.iter().copied().filter(|mutant| names.contains(mutant.name.as_str())).collect();
        if left.is_empty() || detector.is_err() || limits.is_stopped() {
            continue;
        }
        console.remark(&format!("{name} looks once more for {} that all have left", left.len()));
        console.start_progress(left.len() as u64);
        let filled = fill_column(*name, detector, &left, table, file, limits, console);
        console.end_progress();
        file.keep(table)?;
        filled?;
    }
    Ok(())
}

/// What the table says for a detector's answer.
fn as_told(cell: Cell, limits: &Limits) -> Cell {
    match cell {
        // It was not given the time to find anything.
        Cell::Survived { .. } | Cell::NotRun { .. } if limits.is_stopped() => {
            Cell::NotRun { why: INTERRUPTED.to_owned() }
        }
        Cell::Survived { runs: 0, .. } => Cell::NotRun { why: "no run ended in the time asked for".to_owned() },
        cell => cell,
    }
}

/// Where a table is kept, if anywhere.
struct TableFile<'a> {
    path: Option<&'a Path>,
    /// What stands there.
    there: Option<String>,
    /// The table whose columns it takes over.
    earlier: Option<&'a KillTable>,
}

impl TableFile<'_> {
    /// Writes the table in place of what nobody else has changed.
    fn keep(&mut self, table: &KillTable) -> Result<(), CliError> {
        let Some(path) = self.path else { return Ok(()) };
        if check_output(path)? != self.there {
            return Err(CliError::OutputChanged { path: path.to_owned() });
        }
        let (_, json) = with_columns(table, self.earlier);
        write_atomically(path, json.as_bytes())?;
        self.there = Some(json);
        Ok(())
    }
}

/// Refuses a place for the table where something else would be lost; the table that is there.
fn check_output(path: &Path) -> Result<Option<String>, CliError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        return Err(CliError::Usage(format!("--output: there is no folder {}", folder.display())));
    }
    // The link itself, which the table would replace; a pipe or a device is not opened, which could wait for ever.
    match path.symlink_metadata() {
        Ok(found) if found.is_file() && read_table(path).is_ok() => Ok(crate::file::read_text(path).ok()),
        Ok(_) => Err(CliError::OutputIsNoTable { path: path.to_owned(), what: "file with a table of mutants" }),
        Err(_) => Ok(None),
    }
}

/// Reads the JSON of a table.
pub(crate) fn read_table(path: &std::path::Path) -> Result<KillTable, CliError> {
    let text = crate::file::read_text(path)
        .map_err(|error| usage(format!("cannot read {}: {}", path.display(), crate::file::reason(&error))))?;
    KillTable::from_json(&text).map_err(|error| usage(format!("{} is no table of mutants: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_that_were_all_cut_short_are_no_pass() {
        let mut passed = Passed::default();
        assert!(check_looked(&passed, "").is_err());
        passed.cut += 2;
        let error = check_looked(&passed, "give more").expect_err("nothing was looked at").to_string();
        assert!(error.contains("no element was checked") && error.ends_with("give more"), "{error}");
        passed.smaller += 1;
        assert_eq!(check_looked(&passed, "").ok(), Some(1));
    }

    #[test]
    fn an_estimate_is_one_that_people_read() {
        let said = [30.0, 90.0 * 60.0, 5.0 * 3600.0, 200.0 * 3600.0, 1e19].map(span);
        assert_eq!(said, ["1 min", "90 min", "5 h", "8 days", "more than a year"]);
    }
}
