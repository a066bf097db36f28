//! `lookback compare`: run, verify, print and keep one configuration after the other.

use super::arguments::{CompareArguments, Format};
use super::console::Console;
use super::error::{CliError, EXIT_OK, EXIT_UNDECIDABLE, EXIT_WRONG};
use super::input::{self, Array, npy_file};
use super::jobs::{Job, Jobs, Scale, nothing_ran};
use super::table::{CPU_LEGEND, Table};
#[cfg(feature = "cpu")]
use crate::cpu::ExecutionError;
use crate::element::ElementType;
use crate::lab::dataset::Dataset;
use crate::lab::device::{Device, DeviceDescription, DeviceError, RunSettings};
use crate::lab::measure::environment::Program;
use crate::lab::origin::Origin;
use crate::lab::ranking::Ranking;
use crate::lab::record::{FORMAT, Header, Record, Row, Verdict, to_csv};
use crate::lab::recorder::{Recorder, Skipped, write_anew};
use crate::lab::report;
use crate::lab::workload::Workload;
use crate::strategy::plan::ScanRequest;
use crate::strategy::tuning::{Tuning, TuningTable};
use crate::strategy::{Limit, Rounding, StrategyChoice};
use crate::text::{fitted, format_size, hexadecimal, wrapped};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::SystemTime;

/// Reads the array of `--input`; `--types` has to agree with it.
///
/// # Errors
/// When the file is unusable, or --types names several types.
pub fn read_input(arguments: &CompareArguments, path: &Path) -> Result<Array, CliError> {
    let asked = match &arguments.types {
        None => None,
        Some(names) => match names.choices[..] {
            [element] => Some(element),
            _ => return Err(CliError::Usage("--input holds one type; give one type in --types, or none".to_owned())),
        },
    };
    Ok(input::read(path, asked)?)
}

/// Schedules of the CPU device whose look-back distances make one point of a picture.
const SCHEDULES: u64 = 20;

/// Runs what `arguments` ask for and returns the exit code.
///
/// # Errors
/// When there is nothing to run, the output folder cannot be written, or the device is missing something.
pub fn compare(
    arguments: &CompareArguments,
    file: Option<Array>,
    device: &mut dyn Device,
    console: &mut Console,
) -> Result<u8, CliError> {
    let description = device.description();
    // The device that `auto` came to.
    arguments.check_device(&description.kind)?;
    let timed = description.kind == "cuda";
    let (jobs, tuning) = jobs(arguments, file.as_ref(), device)?;
    if let Some(path) = &arguments.save_output {
        check_saved(path, jobs.only("--save-output")?.workload.element())?;
    }
    let header = Header {
        format: FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        git_commit: Program::this().commit(),
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: command_line(),
        seed: arguments.seed(),
        input: source(arguments),
        input_sha256: file.as_ref().map(|array| hexadecimal(&Sha256::digest(&array.bytes))),
        device: description.clone(),
    };
    let mut recorder = Recorder::start(arguments.output.as_deref(), header, arguments.resume)?;
    let table = Table::new(jobs.has_patterns());
    for skipped in jobs.skipped {
        recorder.skipped(skipped)?;
    }
    let has_choices = jobs.requests.iter().any(|job| job.choice == StrategyChoice::Auto);
    let mut printer = Printer { format: arguments.format, table, timed, columns_printed: false, has_choices };
    if arguments.format == Format::Table {
        let auto =
            if has_choices { format!("auto goes by the tuning table {}\n", tuning.name()) } else { String::new() };
        console.print(&format!("{}\n{auto}\n", description.name))?;
    }
    if let Some(advice) = tuning.advice().filter(|_| has_choices && timed) {
        console.remark(&advice);
    }
    console.start_progress(jobs.requests.iter().map(|job| cost(&job.request)).sum());
    let settings = RunSettings {
        seed: arguments.seed(),
        samples: arguments.samples.unwrap_or(30),
        keeps_output: arguments.save_output.is_some(),
    };
    let mut output = None;
    let mut stored_bytes = 0;
    let mut input = None;
    let mut is_loaded = false;
    let mut fatal = None;
    let mut device_is_lost = false;
    for Job { choice, workload, request } in &jobs.requests {
        if recorder.has(*choice, *workload, request) {
            console.advance(cost(request));
            continue;
        }
        console.show_progress(format!("{choice} {}", format_size(request.n)));
        if input.replace((*workload, request.n)) != Some((*workload, request.n)) {
            let dataset = dataset(*workload, request.n, file.as_ref(), arguments).map_err(Consequence::Impossible);
            let loaded = dataset.and_then(|dataset| {
                stored_bytes = dataset.stored() as usize * workload.element().bytes();
                device.load(&dataset).map_err(Consequence::of)
            });
            is_loaded = loaded.is_ok();
            match loaded {
                Ok(()) => {}
                Err(Consequence::Impossible(why)) => {
                    let what = format!("{workload} at n = {}", format_size(request.n));
                    recorder.skipped(Skipped { what, why })?;
                }
                Err(Consequence::Failure { error, .. } | Consequence::Absence(error)) => fatal = Some(error),
            }
        }
        if is_loaded {
            let mut row = None;
            match device.run(request, &settings).map_err(Consequence::of) {
                Ok(mut outcome) => {
                    output = outcome.output.take().filter(|_| outcome.verification.passed());
                    // What only a picture shows is counted only where one is drawn and there is something to count.
                    let looked_back = outcome.counters.is_some_and(|counters| counters.lookback_tiles > 0);
                    let is_drawn = arguments.output.is_some() && looked_back && outcome.verification.passed();
                    let seeds = settings.seed..settings.seed.saturating_add(SCHEDULES);
                    let distances = if is_drawn { device.lookback_distances(request, seeds) } else { Ok(Vec::new()) };
                    row = Some(match distances.map_err(Consequence::of) {
                        Ok(distances) => Row::of_outcome(*workload, request, &outcome).with_schedules(&distances),
                        // The picture goes without what this machine cannot run.
                        Err(Consequence::Impossible(_)) => Row::of_outcome(*workload, request, &outcome),
                        Err(Consequence::Failure { error, .. } | Consequence::Absence(error)) => {
                            Row::of_failure(*workload, request, error.to_string())
                        }
                    });
                }
                Err(Consequence::Impossible(why)) => {
                    recorder.skipped(Skipped { what: describe(*workload, request), why })?
                }
                Err(Consequence::Failure { error, goes_on }) => {
                    row = Some(Row::of_failure(*workload, request, error.to_string()));
                    device_is_lost = !goes_on;
                }
                Err(Consequence::Absence(error)) => fatal = Some(error),
            }
            if let Some(row) = row {
                let row = if *choice == StrategyChoice::Auto { row.chosen_by_auto() } else { row };
                // Recorded before it is printed, so that nothing on the screen is lost.
                recorder.row(row.clone())?;
                printer.row(&row, console)?;
            }
        }
        console.advance(cost(request));
        if device_is_lost {
            console.remark("the device cannot be used after this failure: the run ends here");
        }
        if fatal.is_some() || device_is_lost || console.is_closed() && arguments.output.is_none() {
            break;
        }
    }
    console.end_progress();
    if recorder.record().rows.is_empty() {
        let (record, _lock) = recorder.discard_file()?;
        return Err(match fatal {
            Some(source) => CliError::NoDevice { device: device_word(&description.kind), source },
            None => nothing_ran(&record.skipped),
        });
    }
    // Nobody else writes into the folder until the page is there, too.
    let (record, _lock) = recorder.finish()?;
    printer.end(&record, console)?;
    if let Some(path) = &arguments.save_output {
        match (output, record.rows.first()) {
            (Some(mut bytes), Some(row)) => {
                // Behind it nothing was stored.
                bytes.truncate(stored_bytes);
                write_anew(path, &npy_file(&Array { element: row.element, bytes }))?;
                console.remark(&format!("the scanned array: {}", path.display()));
            }
            _ => console.remark("the result is not right, so it is not saved"),
        }
    }
    if let Some(directory) = &arguments.output {
        let page = report::write(&record, directory)?;
        console.remark(&format!("data, plots and page: {}", page.display()));
    }
    if let Some(source) = fatal {
        // A failed kernel has a row; here the device itself is missing something.
        return Err(CliError::NoDevice { device: device_word(&description.kind), source });
    }
    Ok(exit_code(&record))
}

/// What the arguments ask for on a device, and what `auto` goes by there.
pub(super) fn jobs(
    arguments: &CompareArguments,
    file: Option<&Array>,
    device: &dyn Device,
) -> Result<(Jobs, Tuning), CliError> {
    let file_size = file.map(|array| (array.element, (array.bytes.len() / array.element.bytes()) as u64));
    let tuning = match &arguments.tuning {
        Some(path) => Tuning::with_table(&TuningTable::open(path)?, device.gpu())?,
        None => Tuning::committed(device.gpu()),
    };
    let scale = Scale::of_kind(&device.description().kind);
    Ok((Jobs::new(arguments, &scale, file_size, &tuning)?, tuning))
}

/// What the worst of a record's rows ends the program with.
pub(super) fn exit_code(record: &Record) -> u8 {
    if record.count(Verdict::Wrong) + record.count(Verdict::Failed) > 0 {
        EXIT_WRONG
    } else if record.count(Verdict::Undecidable) > 0 {
        EXIT_UNDECIDABLE
    } else {
        EXIT_OK
    }
}

/// Refuses a place where a result cannot be saved, before anything runs.
fn check_saved(path: &Path, element: ElementType) -> Result<(), CliError> {
    let reason = match why_not_new(path) {
        // First, so that nobody deletes a file whose name will not do.
        _ if !input::is_npy(path) => {
            "is no name of a .npy file, which is what is written; let it end in .npy".to_owned()
        }
        Some(reason) => reason.to_owned(),
        None if !ElementType::NUMBERS.contains(&element) => {
            format!("cannot hold {element}, for which NumPy has no type; choose a type of numbers")
        }
        None => return Ok(()),
    };
    Err(CliError::Usage(format!("--save-output: {} {reason}", path.display())))
}

/// Why no new file can be made there, if so.
pub(super) fn why_not_new(path: &Path) -> Option<&'static str> {
    // A path forgets the separator at its end, or a dot behind it.
    let is_folder =
        path.file_name().is_none_or(|name| !path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes()));
    if is_folder {
        Some("is the name of a folder; leave out what stands behind the file's name")
    } else if path.symlink_metadata().is_ok() {
        Some("is there already and is not replaced; choose another name, or delete it")
    } else if path.parent().is_some_and(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some("is in a folder that is not there; make the folder, or choose another")
    } else {
        None
    }
}

/// What a configuration scans, the elements of `--input` or drawn ones, or why it scans nothing.
pub(super) fn dataset(
    workload: Workload,
    n: u64,
    file: Option<&Array>,
    arguments: &CompareArguments,
) -> Result<Dataset, String> {
    match file {
        Some(array) => {
            Dataset::from_bytes(workload, array.bytes.clone(), source(arguments)).map_err(|error| error.to_string())
        }
        None => {
            Dataset::fits(workload, n).map_err(|error| error.to_string())?;
            Ok(Dataset::random(workload, n, arguments.seed()))
        }
    }
}

/// Where the elements are from.
fn source(arguments: &CompareArguments) -> String {
    arguments.input.as_ref().map_or("random".to_owned(), |path| path.display().to_string())
}

fn device_word(kind: &str) -> &'static str {
    if kind == "cuda" { "CUDA" } else { "CPU" }
}

/// What an error of a device means for the run.
pub(super) enum Consequence {
    /// This configuration does not exist here; the run goes on.
    Impossible(String),
    /// A kernel did wrong; `goes_on` says whether the device can be used further.
    Failure { error: DeviceError, goes_on: bool },
    /// Something is missing on this machine.
    Absence(DeviceError),
}

impl Consequence {
    pub(super) fn of(error: DeviceError) -> Self {
        match error {
            // The laboratory draws offsets that are right.
            DeviceError::Config(ref config) if config.is_found_by_kernels() => Self::Failure { error, goes_on: true },
            DeviceError::Config(_) | DeviceError::OutOfMemory { .. } | DeviceError::TooManyTiles { .. } => {
                Self::Impossible(error.to_string())
            }
            #[cfg(feature = "cpu")]
            DeviceError::Execution(ExecutionError::Stacks { .. }) => Self::Impossible(error.to_string()),
            #[cfg(feature = "cpu")]
            DeviceError::Execution(_) => Self::Failure { error, goes_on: true },
            #[cfg(feature = "cuda")]
            DeviceError::Cuda(ref cuda) => {
                use crate::cuda::CudaError;
                match cuda {
                    CudaError::Config(config) if config.is_found_by_kernels() => Self::Failure { error, goes_on: true },
                    CudaError::Config(_) => Self::Impossible(error.to_string()),
                    _ if cuda.is_absence() => Self::Absence(error),
                    // After these the driver refuses every further call.
                    CudaError::Driver { .. } | CudaError::DidNotFinish { .. } => {
                        Self::Failure { error, goes_on: false }
                    }
                    _ => Self::Failure { error, goes_on: true },
                }
            }
            #[cfg(feature = "cpu")]
            DeviceError::NoKernel(_) => Self::Absence(error),
            DeviceError::WroteElsewhere => Self::Failure { error, goes_on: true },
            DeviceError::NoDataset | DeviceError::ArraysOfItsOwn(_) | DeviceError::Ranks(_) => Self::Absence(error),
        }
    }
}

/// A configuration in words.
fn describe(workload: Workload, request: &ScanRequest) -> String {
    let ScanRequest { strategy, mode, config, n, .. } = request;
    let mut text = format!("{strategy}, {workload} {mode}, n = {}", format_size(*n));
    if strategy.has_tiles() {
        text.push_str(&format!(
            ", VT {}, {} threads, {} in {}",
            config.vt, config.block_threads, config.pattern, config.composition
        ));
    }
    text
}

/// Roughly how long a configuration takes, in elements: for the time left.
fn cost(request: &ScanRequest) -> u64 {
    let n = request.n;
    let row = request.strategy.row();
    let work = match (row.limit, row.rounding) {
        (Some(Limit::QuadraticWork), _) => n * (n / 16).max(1),
        (_, Rounding::Tree) => n * (u64::from(n.max(2).ilog2()) + 1),
        _ => n * 2,
    };
    work + 20_000
}

/// How what this run leaves came about.
pub(super) fn origin(format: u32, device: DeviceDescription) -> Origin {
    Origin {
        format,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        git_commit: Program::this().commit(),
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        command: command_line(),
        device,
    }
}

/// The command as a user would type it: the program by its name, words quoted where a shell needs it.
pub(super) fn command_line() -> String {
    // A word need not be UTF-8: a file's name may be any bytes.
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().map_or("lookback".into(), |name| name.to_string_lossy().into_owned());
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./,^+=:@%".contains(character);
    let is_plain = !word.is_empty() && word.chars().all(plain);
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Rows on stdout in the format asked for.
struct Printer {
    format: Format,
    table: Table,
    timed: bool,
    columns_printed: bool,
    has_choices: bool,
}

impl Printer {
    fn row(&mut self, row: &Row, console: &mut Console) -> Result<(), CliError> {
        match self.format {
            Format::Table => console.print(&self.table.lines(row, self.timed)),
            Format::Csv => {
                let column_names = !std::mem::replace(&mut self.columns_printed, true);
                let lines = to_csv(std::slice::from_ref(row), column_names, self.has_choices, Path::new("stdout"))?;
                console.print(&String::from_utf8_lossy(&lines))
            }
            Format::Json => Ok(()),
        }
    }

    fn end(&mut self, record: &Record, console: &mut Console) -> Result<(), CliError> {
        let wrong = record.count(Verdict::Wrong) + record.count(Verdict::Failed);
        let undecidable = record.count(Verdict::Undecidable);
        match self.format {
            Format::Table => {
                let mut text = String::from("\n");
                if !self.timed {
                    text.push_str(CPU_LEGEND);
                }
                for Skipped { what, why } in &record.skipped {
                    text.push_str(&console.fitted(&format!("skipped {what}: {why}\n")));
                }
                text.push_str(&ranking(record, console.width()));
                let results = match record.rows.len() {
                    1 => "1 result".to_owned(),
                    rows => format!("{rows} results"),
                };
                let undecidable = match undecidable {
                    0 => String::new(),
                    rows => format!(", {rows} undecidable: overflow depends on the order"),
                };
                text.push_str(&match (wrong, undecidable.is_empty()) {
                    (0, true) => format!("{results}, each verified in every element: all right\n"),
                    (0, false) => format!("{results}, none wrong{undecidable}\n"),
                    _ => format!("{results}, verified in every element: {wrong} WRONG or failed{undecidable}\n"),
                });
                console.print(&text)
            }
            Format::Json => console.print(&record.to_json()),
            Format::Csv => {
                for Skipped { what, why } in &record.skipped {
                    console.remark(&format!("skipped {what}: {why}"));
                }
                Ok(())
            }
        }
    }
}

/// What came out, in lines of up to `width` characters; nothing where nothing was compared.
fn ranking(record: &Record, width: usize) -> String {
    let rankings = Ranking::all(record);
    if rankings.is_empty() {
        return String::new();
    }
    let mut text = fitted(&format!("\nRanking: {}\n", Ranking::yardstick(record)), width);
    for Ranking { scan, sizes } in &rankings {
        text += &fitted(&format!("\n{scan}\n"), width);
        for place in sizes {
            let size = format!("{:>8}  ", format_size(place.n));
            // A ratio stays beside the name behind it.
            let ranks = place.ranks.iter().map(|rank| rank.to_string().replacen(' ', "\0", 1)).collect::<Vec<_>>();
            let lines = wrapped(&ranks.join("; "), width.saturating_sub(size.len()).max(20)).join("\n");
            text += &format!("{size}{}\n", lines.replace('\0', " ").replace('\n', &format!("\n{:1$}", "", size.len())));
            if !place.not_right.is_empty() {
                text += &format!("{:1$}{2}\n", "", size.len(), place.without_rank());
            }
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::device::{DeviceDescription, Outcome, TraceSettings};
    use crate::lab::record::tests::outcome;
    use crate::lab::trace::Recording;
    use crate::strategy::Strategy;
    use clap::Parser;
    use std::cell::RefCell;
    use std::io::{self, Write};
    use std::rc::Rc;

    #[derive(Parser)]
    struct Wrapper {
        #[command(flatten)]
        compare: CompareArguments,
    }

    /// A device that runs nothing and answers as it is told.
    struct Puppet {
        load: fn(&Dataset) -> Result<(), DeviceError>,
        run: fn(&ScanRequest) -> Result<Outcome, DeviceError>,
    }

    impl Device for Puppet {
        fn trace(&mut self, _: &ScanRequest, _: &TraceSettings) -> Result<Recording, DeviceError> {
            Err(DeviceError::NoDataset)
        }

        fn description(&self) -> DeviceDescription {
            DeviceDescription { kind: "cpu".to_owned(), name: "puppet".to_owned(), facts: Vec::new() }
        }
        fn load(&mut self, dataset: &Dataset) -> Result<(), DeviceError> {
            (self.load)(dataset)
        }
        fn run(&mut self, request: &ScanRequest, _: &RunSettings) -> Result<Outcome, DeviceError> {
            (self.run)(request)
        }
    }

    #[derive(Clone, Default)]
    struct Screen(Rc<RefCell<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn play(words: &[&str], mut puppet: Puppet) -> (Result<u8, CliError>, String) {
        let arguments = Wrapper::try_parse_from(["compare"].iter().chain(words)).unwrap().compare;
        let screen = Screen::default();
        let mut console = Console::writing_to(Box::new(screen.clone()), true);
        let result = compare(&arguments, None, &mut puppet, &mut console);
        let text = String::from_utf8(screen.0.take()).unwrap();
        (result, text)
    }

    fn right(request: &ScanRequest) -> Result<Outcome, DeviceError> {
        Ok(outcome(request.n, false))
    }

    #[test]
    fn what_kernels_find_wrong_in_offsets_that_are_right_is_a_failure() {
        use crate::strategy::CallError;
        let found = Consequence::of(DeviceError::from(CallError::Offsets { segment: 3 }));
        assert!(matches!(found, Consequence::Failure { goes_on: true, .. }));
        let refused = Consequence::of(DeviceError::from(CallError::Columns { scan: String::new(), n: 5, columns: 2 }));
        assert!(matches!(refused, Consequence::Impossible(_)));
    }

    #[test]
    fn a_wrong_result_is_shown_and_decides_the_exit_code() {
        let run = |request: &ScanRequest| {
            let mut outcome = outcome(request.n, false);
            if request.strategy == Strategy::Chained {
                outcome.verification.mismatches = 3;
                outcome.verification.first_mismatch = Some(7);
            }
            Ok(outcome)
        };
        let (result, text) = play(&["--sizes", "100"], Puppet { load: |_| Ok(()), run });
        assert_eq!(result.unwrap(), EXIT_WRONG);
        assert!(text.contains("3 of 100 elements are wrong, the first at index 7"), "{text}");
        assert!(text.contains("1 WRONG or failed"), "{text}");
    }

    #[test]
    fn the_end_says_what_came_out() {
        let run = |request: &ScanRequest| {
            let mut outcome = outcome(request.n, false);
            let counters = outcome.counters.as_mut().unwrap();
            counters.element_reads *= if request.strategy == Strategy::ReduceThenScan { 2 } else { 1 };
            outcome.verification.mismatches = u64::from(request.strategy == Strategy::Chained);
            Ok(outcome)
        };
        let words = ["--sizes", "100,2^20", "--strategies", "reduce-then-scan,chained,lookback,lookahead"];
        let (_, text) = play(&words, Puppet { load: |_| Ok(()), run });
        let end = text.split("Ranking: ").nth(1).unwrap();
        let ranks = "1.00 lookback, lookahead; 1.50 reduce-then-scan\n          WRONG or FAILED: chained\n";
        for size in [" 100", "2^20"] {
            assert!(end.contains(&format!("    {size}  {ranks}")), "{end}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let (_, text) = play(&["--sizes", "100", "--strategies", "lookback"], Puppet { load: |_| Ok(()), run: right });
        assert!(!text.contains("Ranking"), "nothing was compared: {text}");
    }

    #[test]
    fn a_result_that_is_not_right_is_not_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.npy");
        let words = ["--sizes", "3", "--strategies", "lookback", "--save-output", path.to_str().unwrap()];
        let mut puppet = Puppet {
            load: |_| Ok(()),
            run: |request| {
                let mut outcome = outcome(request.n, false);
                outcome.output = Some(vec![7; 12]);
                outcome.verification.mismatches = 1;
                Ok(outcome)
            },
        };
        assert_eq!(play(&words, puppet).0.unwrap(), EXIT_WRONG);
        assert!(!path.exists());
        puppet = Puppet {
            load: |_| Ok(()),
            run: |request| Ok(Outcome { output: Some(vec![7; 12]), ..outcome(request.n, false) }),
        };
        assert_eq!(play(&words, puppet).0.unwrap(), EXIT_OK);
        assert_eq!(input::read(&path, None).unwrap().bytes, [7; 12]);
    }

    #[test]
    fn what_does_not_fit_is_skipped_and_the_rest_runs() {
        let load = |dataset: &Dataset| match dataset.n {
            0..=500 => Ok(()),
            _ => Err(DeviceError::OutOfMemory {
                what: "the input".to_owned(),
                device: "puppet".to_owned(),
                needed_bytes: 4000,
                available_bytes: 10,
            }),
        };
        let words = ["--sizes", "100,1000", "--strategies", "lookback,chained"];
        let (result, text) = play(&words, Puppet { load, run: right });
        assert_eq!(result.unwrap(), EXIT_OK);
        assert!(text.contains("2 results") && text.contains("skipped u32 sum at n = 1000: the input needs"), "{text}");
    }

    #[test]
    #[cfg(feature = "cpu")]
    fn what_has_no_memory_for_its_stacks_is_skipped_and_nothing_wrong() {
        let run = |request: &ScanRequest| match request.strategy {
            Strategy::Chained => {
                Err(ExecutionError::Stacks { stacks: 7000, message: "Cannot allocate memory".to_owned() }.into())
            }
            _ => right(request),
        };
        let words = ["--sizes", "100", "--strategies", "lookback,chained"];
        let (result, text) = play(&words, Puppet { load: |_| Ok(()), run });
        assert_eq!(result.unwrap(), EXIT_OK);
        assert!(text.contains("1 result") && text.contains("no memory for 7000 coroutine stacks"), "{text}");
    }

    #[test]
    fn an_input_is_loaded_once_for_all_that_use_it() {
        thread_local!(static LOADS: RefCell<u32> = const { RefCell::new(0) });
        let load = |_: &Dataset| {
            LOADS.with_borrow_mut(|loads| *loads += 1);
            Ok(())
        };
        let words = ["--sizes", "100,200", "--modes", "inclusive,exclusive"];
        let (result, _) = play(&words, Puppet { load, run: right });
        assert_eq!(result.unwrap(), EXIT_OK);
        assert_eq!(LOADS.take(), 2);
    }

    #[test]
    fn a_device_that_is_lost_ends_the_run_and_keeps_the_finished_rows() {
        let directory = tempfile::tempdir().unwrap();
        let run = |request: &ScanRequest| if request.n < 200 { right(request) } else { Err(DeviceError::NoDataset) };
        let words =
            ["--sizes", "100,200,300", "--strategies", "lookback", "--output", directory.path().to_str().unwrap()];
        let (result, _) = play(&words, Puppet { load: |_| Ok(()), run });
        assert!(matches!(result, Err(CliError::NoDevice { .. })));
        assert_eq!(Record::read(directory.path()).unwrap().rows.len(), 1);
    }

    #[test]
    fn a_run_without_a_row_leaves_no_record_in_the_way_of_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let words = ["--sizes", "100", "--output", directory.path().to_str().unwrap()];
        let (result, _) = play(&words, Puppet { load: |_| Ok(()), run: |_| Err(DeviceError::NoDataset) });
        assert!(matches!(result, Err(CliError::NoDevice { .. })));
        assert_eq!(play(&words, Puppet { load: |_| Ok(()), run: right }).0.unwrap(), EXIT_OK);
    }
}
