//! `lookback costs`: what a scan costs, strategy by strategy.

use super::arguments::{CompareArguments, Format, refuse_idle};
use super::compare::{Consequence, dataset, jobs, origin};
use super::console::Console;
use super::devices;
use super::error::{CliError, EXIT_OK, EXIT_WRONG};
use super::jobs::{Job, Jobs, nothing_ran};
use super::sweep::open_laboratory;
use crate::element::ElementType;
use crate::lab::costs::{BY_DEFINITION, CONFIGURATION, Column, CostRecord, CostRow, FORMAT, MEASURED};
use crate::lab::device::{Device, RunSettings};
use crate::lab::measure::clocks::Clocks;
use crate::lab::measure::point::{Entry, Offsets, Point, Subject};
use crate::lab::measure::record::{Status, SweepRow};
use crate::lab::measure::run::measure_point;
use crate::lab::measure::sampling::Figure;
use crate::lab::measure::sweep::Limits;
use crate::lab::record::Row;
use crate::lab::recorder::Skipped;
use crate::strategy::StrategyChoice;
use crate::text::{SizeError, format_size, wrapped};
use clap::Args;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// `lookback costs`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("sweep", |arg| arg.hide(true)),
    mut_arg("record", |arg| arg.hide(true)),
    mut_arg("process", |arg| arg.hide(true)),
    mut_arg("verbose", |arg| arg.hide(true)),
    mut_arg("problem", |arg| arg.hide(true)),
    mut_arg("shape", |arg| arg.hide(true)),
    mut_arg("run_length", |arg| arg.hide(true)),
    mut_arg("input_types", |arg| arg.hide(true)),
    mut_arg("in_place", |arg| arg.hide(true)),
    mut_arg("input", |arg| arg.hide(true)),
    mut_arg("input_offset", |arg| arg.hide(true)),
    mut_arg("output_offset", |arg| arg.hide(true)),
    mut_arg("save_output", |arg| arg.hide(true)),
    mut_arg("resume", |arg| arg.hide(true)),
    mut_arg("format", |arg| arg.hide(true)),
    mut_arg("samples", |arg| arg.hide(true)),
    mut_arg("ranks", |arg| arg.hide(true)),
    mut_arg("manners", |arg| arg.hide(true)),
    mut_arg("chunks", |arg| arg.hide(true)),
    mut_arg("timeout", |arg| arg.hide(true)),
    mut_arg("sizes", |arg| arg.help("Elements, as 1000, 10M, 8Ki, or bytes of them, as 64MiB; --n is the same \
        [default: 64Ki, on a GPU 64MiB]")),
    mut_arg("output", |arg| arg.value_name("FILE").help("Keep the account as this JSON file, called \
        costs-….json: lookback report --splice puts its table into a document"))
)]
pub struct CostsArguments {
    /// What is scanned, by which kernels.
    #[command(flatten)]
    pub scans: CompareArguments,
}

/// Runs `lookback costs` and returns the exit code.
///
/// # Errors
/// When there is nothing to run, the file cannot be written, or the device failed or is missing something.
pub fn costs(arguments: CostsArguments) -> Result<u8, CliError> {
    let CostsArguments { mut scans } = arguments;
    let of_compare = "costs counts scans; lookback compare takes it";
    let of_flat = "costs are those of a scan of one array of numbers into another one, at boundaries; lookback compare \
                   takes it";
    refuse_idle([
        ("--sweep", scans.sweep.is_some(), false, of_compare),
        ("--record", !scans.record.is_empty(), false, of_compare),
        ("--process", scans.process.is_some(), false, of_compare),
        ("--verbose", scans.verbose, false, of_compare),
        ("--save-output", scans.save_output.is_some(), false, of_compare),
        ("--resume", scans.resume, false, of_compare),
        ("--format", scans.format != Format::Table, false, of_compare),
        ("--ranks", scans.ranks.is_some(), false, of_compare),
        (
            "--samples",
            scans.samples.is_some(),
            false,
            "samples are taken until noise is low; lookback compare takes it",
        ),
        ("--problem", scans.problem.is_some(), false, of_flat),
        ("--shape", scans.shape.is_some(), false, of_flat),
        ("--run-length", scans.run_length.is_some(), false, of_flat),
        ("--input-types", scans.input_types.is_some(), false, of_flat),
        ("--in-place", scans.in_place, false, of_flat),
        ("--input", scans.input.is_some(), false, of_flat),
        ("--input-offset", scans.input_offset != 0, false, of_flat),
        ("--output-offset", scans.output_offset.is_some(), false, of_flat),
    ])?;
    scans.check_without_sweep()?;
    if let Some(kind) = scans.device.kind() {
        scans.check_device(kind)?;
    }
    // Before anything runs: minutes would be spent for an account that has no place.
    scans.output.as_deref().map(check_output).transpose()?;
    let mut console = Console::new(scans.quiet);
    let mut device = devices::open(&scans, &console)?;
    let description = device.description();
    scans.check_device(&description.kind)?;
    let is_gpu = description.kind == "cuda";
    if scans.sizes.is_none() {
        let size = if is_gpu { "64MiB" } else { "64Ki" };
        scans.sizes = Some(vec![size.parse().map_err(|error: SizeError| CliError::Usage(error.to_string()))?]);
    }
    let (jobs, _) = jobs(&scans, None, device.as_ref())?;
    console.print(&format!("{}\n", description.name))?;
    let header = origin(FORMAT, description);
    let mut record =
        CostRecord { header, seed: scans.seed(), rows: Vec::new(), skipped: Vec::new(), not_counted: None };
    let done = if is_gpu {
        // The laboratory opens the GPU itself.
        drop(device);
        measure(jobs, &mut record, &mut console)
    } else {
        run(jobs, &scans, device.as_mut(), &mut record, &mut console)
    };
    console.end_progress();
    done?;
    if is_gpu {
        record.not_counted = count(&mut record.rows, record.seed, &mut console);
    }
    if record.costs().is_empty() {
        return Err(nothing_ran(&record.skipped));
    }
    console.print(&text(&record, &console))?;
    if let Some(path) = &scans.output {
        record.write(path)?;
        console.remark(&format!("\nthe account: {}", path.display()));
    }
    Ok(exit_code(&record))
}

/// What the worst of a record's rows ends the program with.
pub(super) fn exit_code(record: &CostRecord) -> u8 {
    let is_right = |row: &CostRow| row.measured.status == Status::Measured && row.not_counted.is_none();
    if record.rows.iter().all(is_right) { EXIT_OK } else { EXIT_WRONG }
}

/// Refuses a place where the account cannot be kept, or is not looked for.
fn check_output(path: &Path) -> Result<(), CliError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let reason = if !CostRecord::is_named(&name) {
        "is not called costs-….json, by which lookback report knows an account; choose such a name"
    } else if path.symlink_metadata().is_ok() {
        "is there already and is not replaced; choose another name, or delete it"
    } else if path.parent().is_some_and(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        "is in a folder that is not there; make the folder, or choose another"
    } else {
        return Ok(());
    };
    Err(CliError::Usage(format!("--output: {} {reason}", path.display())))
}

/// What a job is among what is measured.
fn subject(job: &Job) -> Subject {
    let (strategy, mode, config) = (job.request.strategy, job.request.mode, job.request.config);
    match job.choice {
        StrategyChoice::Auto => Subject::Auto { strategy, mode, config },
        StrategyChoice::Named(_) => Subject::Scan { strategy, mode, config },
    }
}

/// Runs and counts everything on the CPU device.
fn run(
    jobs: Jobs,
    scans: &CompareArguments,
    device: &mut dyn Device,
    record: &mut CostRecord,
    console: &mut Console,
) -> Result<(), CliError> {
    record.skipped = jobs.skipped;
    console.start_progress(jobs.requests.len() as u64);
    let mut loaded = None;
    for job in &jobs.requests {
        let Job { workload, request, choice } = job;
        console.show_progress(choice.to_string());
        if request.n == 0 {
            record.skipped.push(skipped(job, "of no elements nothing is launched".to_owned()));
            continue;
        }
        let mut counted = || {
            if loaded.replace((*workload, request.n)) != Some((*workload, request.n)) {
                let dataset = dataset(*workload, request.n, None, scans).map_err(Consequence::Impossible)?;
                device.load(&dataset).map_err(Consequence::of)?;
            }
            device.run(request, &RunSettings { seed: scans.seed(), ..RunSettings::default() }).map_err(Consequence::of)
        };
        match counted() {
            Ok(outcome) => {
                let mut row = SweepRow::new(&subject(job), *workload, request.n);
                row.launches = Some(outcome.launches);
                row.access_bytes = Some(outcome.access_bytes);
                row.reason = outcome.verification.complaint();
                row.status = if row.reason.is_none() { Status::Measured } else { Status::Wrong };
                let moves = Row::of_outcome(*workload, request, &outcome).element_moves_per_element;
                let moves_per_element = moves.filter(|_| row.reason.is_none());
                row.verification = Some(outcome.verification);
                record.rows.push(CostRow { moves_per_element, ..CostRow::new(row) });
            }
            Err(Consequence::Impossible(why)) => {
                // The next one of this size does not find it loaded.
                loaded = None;
                record.skipped.push(skipped(job, why));
            }
            Err(Consequence::Failure { error, .. } | Consequence::Absence(error)) => {
                return Err(CliError::Device(error));
            }
        }
        console.advance(1);
    }
    Ok(())
}

fn skipped(job: &Job, why: String) -> Skipped {
    let Job { choice, workload, request } = job;
    Skipped { what: format!("{choice}, {workload}, n = {}", format_size(request.n)), why }
}

/// What the command says where there is no GPU.
const INSTEAD: &str = "`lookback costs --device cpu` counts element-moves here";
/// How long the GPU is kept busy before the first point.
const WARM_UP: Duration = Duration::from_millis(300);

/// Verifies and times everything on the GPU, beside the copy of as many bytes.
fn measure(jobs: Jobs, record: &mut CostRecord, console: &mut Console) -> Result<(), CliError> {
    let mut points: Vec<Point> = Vec::new();
    record.skipped = jobs.skipped;
    for job in &jobs.requests {
        let Job { workload, request, .. } = job;
        if request.n == 0 || !ElementType::NUMBERS.contains(&workload.element()) {
            record.skipped.push(skipped(job, "numbers are timed, at least one of them".to_owned()));
            continue;
        }
        let entry = |subject| Entry { subject, figures: vec![Figure::Cold] };
        let (workload, n) = (*workload, request.n);
        match points.iter_mut().find(|point| (point.workload, point.n) == (workload, n)) {
            Some(point) => point.entries.push(entry(subject(job))),
            None => {
                let entries = [Subject::Memcpy, subject(job)].map(entry).to_vec();
                points.push(Point { workload, n, offsets: Offsets::default(), entries });
            }
        }
    }
    if points.is_empty() {
        return Ok(());
    }
    let mut laboratory = open_laboratory(0, "costs", INSTEAD)?;
    console.start_progress(points.len() as u64 + 1);
    console.show_progress("compiling kernels".to_owned());
    laboratory.compile_ahead(&points);
    laboratory.warm_up(WARM_UP).map_err(CliError::Device)?;
    console.advance(1);
    let mut clocks = Clocks::default();
    for point in &points {
        console.show_progress(point.title());
        let seed = record.seed;
        let measured = measure_point(laboratory.as_mut(), point, seed, &Limits::default(), &mut clocks);
        let measured = measured.map_err(CliError::Device)?;
        record.skipped.extend(measured.skipped);
        for row in measured.rows {
            match row.status {
                Status::NotLaunchable => {
                    let what = format!("{}, {}", row.subject_with_choice(), point.title());
                    record.skipped.push(Skipped { what, why: row.reason.unwrap_or_default() });
                }
                _ => record.rows.push(CostRow::new(row)),
            }
        }
        console.advance(1);
    }
    laboratory.close();
    Ok(())
}

/// The words after the program's name that make it do the scan of a row once, verify it, and do nothing else by kernels of
/// scans. `None` of what is no scan.
#[cfg(feature = "cuda")]
fn words_of(row: &CostRow, seed: u64) -> Option<Vec<String>> {
    let (strategy, measured) = (row.strategy()?, &row.measured);
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let tiled = |word: Option<String>| word.filter(|_| strategy.has_patterns());
    let options = [
        ("--device", Some("cuda".to_owned())),
        ("--types", Some(measured.element.to_string())),
        ("--operators", Some(measured.operator.to_string())),
        ("--modes", measured.mode.map(|mode| mode.to_string())),
        ("--sizes", Some(measured.n.to_string())),
        ("--strategies", Some(strategy.to_string())),
        ("--vts", number(measured.vt)),
        ("--blocks", number(measured.block_threads).filter(|_| strategy.has_blocks())),
        ("--pattern", tiled(measured.pattern.map(|pattern| pattern.to_string()))),
        ("--composition", tiled(measured.composition.map(|composition| composition.to_string()))),
        ("--descriptor", measured.descriptor.map(|descriptor| descriptor.to_string())),
        ("--tile-order", measured.tile_order.map(|order| order.to_string())),
        ("--seed", Some(seed.to_string())),
        // It is verified, and not timed: launched once.
        ("--samples", Some("0".to_owned())),
        ("--format", Some("csv".to_owned())),
    ];
    let given = options.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?]));
    Some(["compare", "--quiet"].map(str::to_owned).into_iter().chain(given.flatten()).collect())
}

/// Lets Nsight Compute count each scan that is right; says why it counts none at all, if so.
#[cfg(feature = "cuda")]
fn count(rows: &mut [CostRow], seed: u64, console: &mut Console) -> Option<String> {
    use crate::lab::costs::counters::CountsError;
    use crate::lab::cuda::profiler::{Profiler, ProfilerError};
    let profiler = match Profiler::find() {
        Ok(Some(profiler)) => profiler,
        Ok(None) => {
            let why = "there is no ncu on PATH, in CUDA_HOME/bin, /usr/local/cuda/bin or /opt/nvidia/nsight-compute: install \
                       NVIDIA Nsight Compute, or put its ncu on PATH";
            return Some(why.to_owned());
        }
        Err(error) => return Some(error.to_string()),
    };
    console.start_progress(rows.len() as u64);
    let mut none_at_all = None;
    for row in rows {
        let is_right = row.measured.status == Status::Measured;
        let words = words_of(row, seed).filter(|_| is_right && none_at_all.is_none());
        if let Some((words, launches)) = words.zip(row.measured.launches) {
            console.show_progress(format!("counting {}", row.measured.subject));
            match profiler.count(&words, launches) {
                Ok(counts) => row.counts = Some(counts),
                Err(ProfilerError::Counts(error @ CountsError::NotPermitted)) => none_at_all = Some(error.to_string()),
                Err(error) => row.not_counted = Some(error.to_string()),
            }
        }
        console.advance(1);
    }
    console.end_progress();
    none_at_all
}

/// A build without CUDA has no GPU to count on.
#[cfg(not(feature = "cuda"))]
fn count(_: &mut [CostRow], _: u64, _: &mut Console) -> Option<String> {
    None
}

/// Characters of a strategy's name in a table.
const NAME_WIDTH: usize = 22;

/// The account in tables of 80 columns.
pub(super) fn text(record: &CostRecord, console: &Console) -> String {
    let mut text = String::new();
    let mut legend = String::new();
    for costs in record.costs() {
        let _ = writeln!(text, "\n{}", costs.title);
        for columns in [&BY_DEFINITION[..], &MEASURED] {
            let columns: Vec<&Column> = columns.iter().filter(|column| column.is_of(&costs)).collect();
            if columns.is_empty() {
                continue;
            }
            let columns: Vec<&Column> = CONFIGURATION.iter().chain(columns).collect();
            text.push('\n');
            for line in 0..2 {
                let name = ["", "strategy"][line];
                let heads = columns.iter().map(|column| format!("{:>1$}", column.heads[line], column.width));
                let _ = writeln!(text, "{}", format!("{name:<NAME_WIDTH$}{}", heads.collect::<String>()).trim_end());
            }
            // Of the copy nothing is said where it has nothing to say.
            let rows = costs.rows.iter().filter(|(_, row)| columns.iter().any(|column| (column.cell)(row).is_some()));
            for (name, row) in rows {
                let cell = |column: &&Column| format!("{:>1$}", (column.cell)(row).unwrap_or_default(), column.width);
                let cells: String = columns.iter().map(cell).collect();
                let long = name.chars().count() > NAME_WIDTH;
                let start = if long { format!("{name}\n{:NAME_WIDTH$}", "") } else { format!("{name:<NAME_WIDTH$}") };
                let _ = writeln!(text, "{}", format!("{start}{cells}").trim_end());
            }
        }
    }
    let has = |cell: fn(&CostRow) -> bool| record.rows.iter().any(cell);
    if has(|row| row.moves_per_element.is_some()) {
        legend += "Counted are the reads and writes of input, output and temporary arrays.\n";
    }
    if has(|row| row.measured.cold.is_some()) {
        legend += "Cold: nothing of the arrays is in the L2 cache. The copy is cudaMemcpy of as many bytes. A time with ? met \
                   no noise criterion.\n";
    }
    if has(|row| row.counts.is_some()) {
        legend += "Bytes and instructions are those of one element in one scan, as Nsight Compute counts them, with whatever \
                   lies in the L2 cache: bytes that the memory reads and writes, bytes that multiprocessors read from the L2 \
                   cache and write into it, and 32 for each instruction of a warp, idle lanes included.\n";
    }
    for CostRow { measured, not_counted, .. } in &record.rows {
        let subject = measured.subject_with_choice();
        if let Some(reason) = measured.reason.as_ref().filter(|_| measured.status == Status::Wrong) {
            let _ = writeln!(legend, "{subject} is WRONG: {reason}");
        }
        if let Some(reason) = not_counted {
            let _ = writeln!(legend, "{subject} was not counted: {reason}");
        }
    }
    if let Some(why) = &record.not_counted {
        let _ = writeln!(legend, "Bytes and instructions were not counted: {why}");
    }
    for Skipped { what, why } in &record.skipped {
        let _ = writeln!(legend, "skipped {what}: {why}");
    }
    let width = console.width().min(80);
    let legend: Vec<String> = legend.lines().map(|line| wrapped(line, width).join("\n")).collect();
    if legend.is_empty() { text } else { format!("{text}\n{}\n", legend.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Instance, Operator};
    use crate::lab::costs::counters::HardwareCounts;
    use crate::lab::device::DeviceDescription;
    use crate::lab::measure::record::FigureRecord;
    use crate::lab::origin::Origin;
    use crate::strategy::{Mode, ScanConfig, Strategy};

    #[test]
    #[cfg(feature = "cuda")]
    fn the_words_of_one_scan_ask_for_that_scan_and_no_other() {
        use super::super::jobs::Scale;
        use super::super::{Arguments, Command};
        use crate::strategy::tuning::{Gpu, Tuning};
        use clap::Parser;
        let parsed = |words: &[&str]| match Arguments::try_parse_from([&["lookback"], words].concat()).unwrap().command
        {
            Command::Compare(arguments) => *arguments,
            _ => panic!("the words are of compare"),
        };
        let tuning = Tuning::committed(Gpu::H100);
        let jobs = |arguments: &CompareArguments| Jobs::new(arguments, &Scale::GPU, None, &tuning).unwrap().requests;
        let mut seen = 0;
        for words in [
            &["--types=u8,i64,f64", "--operators=sum,max", "--modes=all"][..],
            &["--vts=4,16", "--blocks=64,256"],
            &["--strategies=lookback,scan-then-propagate,lookahead", "--pattern=all", "--composition=all"],
            &["--strategies=lookback,chained,one-wave", "--descriptor=all", "--tile-order=all"],
        ] {
            for job in jobs(&parsed(&[&["compare", "--sizes=1000,1Mi"], words].concat())) {
                let row = CostRow::new(SweepRow::new(&subject(&job), job.workload, job.request.n));
                let words = words_of(&row, 7).expect("it is a scan");
                let arguments = parsed(&words.iter().map(String::as_str).collect::<Vec<_>>());
                assert_eq!((arguments.samples, arguments.seed(), arguments.device.kind()), (Some(0), 7, Some("cuda")));
                assert!(arguments.check_without_sweep().is_ok() && arguments.check_device("cuda").is_ok(), "{words:?}");
                let asked: Vec<_> = jobs(&arguments).iter().map(|job| (job.workload, job.request)).collect();
                assert_eq!(asked, [(job.workload, job.request)], "{words:?}");
                seen += 1;
            }
        }
        assert!(seen > 300, "{seen}");
    }

    /// A row of a GPU whose strategy takes so many microseconds.
    fn row(subject: &Subject, microseconds: f64) -> CostRow {
        let instance = Instance::new(ElementType::U32, Operator::Sum).unwrap();
        let mut measured = SweepRow::new(subject, instance, 1 << 24);
        measured.status = Status::Measured;
        measured.launches = subject.scan().map(|_| 3);
        measured.cold = Some(FigureRecord { median_ns: Some(1e3 * microseconds), ..FigureRecord::default() });
        measured.cold.as_mut().unwrap().compare_with_copy(50_000.0);
        CostRow::new(measured)
    }

    #[test]
    fn tables_have_80_columns_and_say_what_was_counted_an_element() {
        let (mode, config) = (Mode::Inclusive, ScanConfig::default());
        let strategies = Strategy::ALL.iter().map(|&strategy| Subject::Scan { strategy, mode, config });
        let auto = Subject::Auto { strategy: Strategy::ScanThenPropagate, mode, config };
        let mut rows: Vec<CostRow> = strategies.chain([auto]).map(|subject| row(&subject, 123_456.7)).collect();
        rows.insert(0, row(&Subject::Memcpy, 50.0));
        let counts = HardwareCounts {
            dram_bytes_read: 5 << 24,
            dram_bytes_written: (7 << 24) / 2,
            l2_sectors_read: (3 << 24) / 8,
            l2_sectors_written: (1 << 24) / 8,
            warp_instructions: (9 << 24) / 32,
        };
        let lookback = rows.iter().position(|row| row.strategy() == Some(Strategy::Lookback)).unwrap();
        rows[lookback].counts = Some(counts);
        rows[lookback + 1].not_counted = Some("ncu read 0 launches".to_owned());
        let device = DeviceDescription { kind: "cuda".to_owned(), name: "a GPU".to_owned(), facts: Vec::new() };
        let header = Origin {
            format: FORMAT,
            tool_version: String::new(),
            git_commit: None,
            date: String::new(),
            command: String::new(),
            device,
        };
        let skipped =
            vec![Skipped { what: "naive above n = 2^20".to_owned(), why: "its work grows with n²".to_owned() }];
        let not_counted = Some("there is no ncu".to_owned());
        let record = CostRecord { header, seed: 1, rows, skipped, not_counted };
        let text = text(&record, &Console::writing_to(Box::new(std::io::sink()), true));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let lines = |start: &str| {
            let lines = text.lines().filter(|line| line.split_whitespace().next() == Some(start));
            lines.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        // The configuration, and then launches and moves, or time, share, DRAM both ways, L2, instructions.
        assert_eq!(
            lines("lookback"),
            ["16 256 3 2n", "16 256 123457? 0.0 5.000 3.500 16.000 9.0"]
                .map(|line| { line.replacen("16 256", &format!("{} {}", config.vt, config.block_threads), 1) })
        );
        // Of the copy there is nothing to define.
        assert_eq!(lines("memcpy"), ["50.00? 100.0"]);
        for said in ["ncu read 0 launches", "not counted: there is no ncu", "skipped naive above n = 2^20: its work"] {
            assert!(text.contains(said), "{text}");
        }
        assert_eq!(exit_code(&record), EXIT_WRONG, "one was not counted");
    }
}
