//! `lookback tune`: measures candidates and writes the table that `auto` goes by.

use super::arguments::{Names, parse_run, refuse_idle_of_problems};
use super::console::Console;
use super::error::{CliError, EXIT_OK, EXIT_WRONG};
use super::jobs::{nothing_ran, segments};
use super::sweep::{in_a_sentence, in_words, open_laboratory, open_record, record_into};
use crate::element::{ElementType, Operator};
use crate::lab::measure::record::{Opened, SweepRecord};
use crate::lab::measure::run::Laboratory;
use crate::lab::measure::tune::{self, TunePlan};
use crate::lab::recorder::{Skipped, folder_of, write_atomically};
use crate::lab::workload::{ProblemKind, Shape, Workload};
use crate::strategy::tuning::TuningTable;
use crate::text::format_size;
use clap::Args;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// `lookback tune`.
#[derive(Debug, Clone, Args)]
pub struct TuneArguments {
    /// The table to write; its record, tune-h200.jsonl.gz or the like, stays beside it as the evidence
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// Measure these problems, as `compare` names them: recurrence, rows, sort, …, or
    /// all [default: flat]
    #[arg(long, value_name = "LIST")]
    pub problem: Option<Names<ProblemKind>>,
    /// Rows and columns, as 4096x16384, of problems that scan a matrix: rows or
    /// columns of that length at all sizes and at this one [default: of 256
    /// elements; recurrences are one sequence]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub shape: Option<Vec<Shape>>,
    /// Elements of a run of equal keys, from flag to flag or from offset to offset, or
    /// of which one is kept, on average [default: 64]
    #[arg(long, value_name = "N", value_parser = parse_run)]
    pub run_length: Option<u64>,
    /// Element types [default, and what all means: u8,u16,i32,f32,i64,f64. Plain scans
    /// of other types use the rows of these; for problems other types have to be
    /// named, such as u32 or f16]
    #[arg(long, value_name = "LIST")]
    pub types: Option<Names<ElementType>>,
    /// Element types that are loaded, where those of --types are stored [default:
    /// the same]
    #[arg(long, value_name = "LIST")]
    pub input_types: Option<Names<ElementType>>,
    /// Time for everything, compilation included [default: 240, quick: 60]
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// 6 of the 28 sizes (of problems 4 of 9), and in the second pass three candidates
    /// for six
    #[arg(long)]
    pub quick: bool,
    /// Go on where an interrupted run stopped; same GPU, driver, commit and options only
    #[arg(long)]
    pub resume: bool,
    /// Measure nothing: write the table that this record gives; no GPU is needed
    #[arg(long, value_name = "RECORD", conflicts_with_all = [
        "problem", "shape", "run_length", "types", "input_types", "seconds", "quick", "resume", "ordinal",
    ])]
    pub from: Option<PathBuf>,
    /// Which GPU, as CUDA counts
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub ordinal: usize,
    /// No table of what was chosen, no progress and no remarks
    #[arg(long, short)]
    pub quiet: bool,
}

/// What the command says where there is no GPU.
const INSTEAD: &str = "a table from a record needs neither: lookback tune --from RECORD --output FILE; \
                       `lookback compare --device cpu` runs the strategies here";

/// Time for everything where the user says nothing.
const SECONDS: f64 = 240.0;
const QUICK_SECONDS: f64 = 60.0;

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(seconds) if (1.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("a budget is a number of seconds from 1 to 86400".to_owned()),
    }
}

/// Runs `lookback tune` and returns the exit code.
///
/// # Errors
/// When there is no GPU, the record cannot be read or written, or it makes no table.
pub fn tune(arguments: &TuneArguments) -> Result<u8, CliError> {
    let mut console = Console::new(arguments.quiet);
    // Before anything is measured: minutes would be spent for a table that has no place.
    check_output(&arguments.output, arguments.from.as_deref())?;
    if let Some(path) = &arguments.from {
        write_table(path, &arguments.output, &mut console)?;
        return Ok(EXIT_OK);
    }
    let types = arguments.types.as_ref().map_or(tune::TYPES.to_vec(), |names| match names.all {
        true => tune::TYPES.to_vec(),
        false => names.choices.clone(),
    });
    let problems = arguments.problem.as_ref();
    let is_given = [arguments.shape.is_some(), arguments.run_length.is_some(), arguments.input_types.is_some()];
    refuse_idle_of_problems(problems.map_or(&[], |names| &names.choices), is_given)?;
    let seconds = arguments.seconds.unwrap_or(if arguments.quick { QUICK_SECONDS } else { SECONDS });
    let plan = match problems {
        Some(problems) => {
            let asked = workloads(arguments, problems, &types, &console)?;
            TunePlan::of_workloads(&asked, seconds, arguments.quick)?
        }
        None => TunePlan::new(&types, seconds, arguments.quick)?,
    };
    let mut laboratory = open_laboratory(arguments.ordinal, "tune", INSTEAD)?;
    measure_and_write(laboratory.as_mut(), &plan, &arguments.output, arguments.resume, &mut console)
}

/// What is scanned of all lists, each with the elements that a shape says. What there is not is left out, with a remark where it was
/// asked for by its name.
fn workloads(
    arguments: &TuneArguments,
    problems: &Names<ProblemKind>,
    types: &[ElementType],
    console: &Console,
) -> Result<Vec<(Workload, Option<u64>)>, CliError> {
    let run_length = arguments.run_length.map(|elements| [elements]);
    let is_by_name = !problems.all && arguments.types.as_ref().is_some_and(|names| !names.all);
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    for &kind in &problems.choices {
        let lengths = segments(kind, arguments.shape.as_deref(), run_length.as_ref().map(<[u64; 1]>::as_slice));
        for ((length, n), &element) in lengths.iter().flat_map(|&of| types.iter().map(move |element| (of, element))) {
            let inputs = arguments.input_types.as_ref().filter(|_| kind.has_operator());
            for &input in inputs.map_or(&[element][..], |names| &names.choices) {
                match Workload::with_halves(kind, Operator::Sum, input, element, length) {
                    Ok(workload) => found.push((workload, n)),
                    Err(error) => skipped.push(Skipped { what: format!("{kind} of {input}"), why: error.to_string() }),
                }
            }
        }
    }
    if found.is_empty() {
        return Err(nothing_ran(&skipped));
    }
    if problems.all {
        // Of those that are one problem to `auto` the first.
        let mut first = HashMap::new();
        found.retain(|(workload, _)| first.entry(tune::tuned(*workload)).or_insert(*workload) == workload);
    }
    for Skipped { what, why } in skipped.iter().filter(|_| is_by_name) {
        console.remark(&format!("skipped: {what} ({why})"));
    }
    Ok(found)
}

/// Measures on a laboratory, keeps the record beside the table, and writes the table.
///
/// # Errors
/// When the device failed, the record cannot be written, or it makes no table.
pub fn measure_and_write(
    laboratory: &mut dyn Laboratory,
    plan: &TunePlan,
    output: &Path,
    resume: bool,
    console: &mut Console,
) -> Result<u8, CliError> {
    let folder = folder_of(output);
    let (header, opened) = open_record(laboratory, &plan.sweep, folder, resume)?;
    let recorder = match opened {
        Opened::Recorder(recorder) => *recorder,
        Opened::Finished(path) => {
            console.remark(&format!("{} is finished; nothing is left to measure", path.display()));
            write_table(&path, output, console)?;
            return Ok(EXIT_OK);
        }
    };
    let points = plan.points(header.machine.tuning_gpu());
    let candidates: usize = points.iter().map(|point| point.entries.len()).sum();
    console.print(&format!("tuning on {}, driver {}\n", header.machine.gpu, header.machine.driver))?;
    console.remark(&format!(
        "{} points, {candidates} candidates, at most about {}",
        points.len(),
        in_words(plan.budget.as_secs_f64())
    ));
    console.start_progress(points.len() as u64);
    let (recorder, summary) = record_into(recorder, console, &mut |console, _, _| console.advance(1), {
        |recorder, progress| tune::run_tuning(laboratory, plan, recorder, progress)
    })?;
    let path = if summary.points_left == 0 {
        recorder.finish(summary.sweep.finished.clone())?
    } else {
        console.remark(&format!(
            "the time was spent with {} points left; go on with --resume, or give more by --seconds",
            summary.points_left
        ));
        recorder.path().to_owned()
    };
    console.print(&format!("{}\n{}\n", in_a_sentence(&summary.sweep), path.display()))?;
    // From the file and not from memory: what --from gives later is the same.
    write_table(&path, output, console)?;
    Ok(if summary.sweep.wrong == 0 { EXIT_OK } else { EXIT_WRONG })
}

/// Refuses a place for the table where something else would be lost: a record, which is the evidence of a table and
/// cannot be made again, or any other file that is no tuning table. `record` is the one that the table is made from.
fn check_output(output: &Path, record: Option<&Path>) -> Result<(), CliError> {
    let name = output.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_same = |record: &Path| match (output.canonicalize(), record.canonicalize()) {
        (Ok(output), Ok(record)) => output == record,
        _ => false,
    };
    // By its name, too: the record of this run is not there yet.
    if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") || record.is_some_and(is_same) {
        return Err(CliError::OutputIsRecord { path: output.to_owned() });
    }
    match output.metadata() {
        // A pipe or a device is not opened, which could wait for ever.
        Ok(found) if !found.is_file() || TuningTable::open(output).is_err() => {
            Err(CliError::OutputIsNoTable { path: output.to_owned(), what: "tuning table" })
        }
        _ => Ok(()),
    }
}

/// Makes the table of a record and writes it, with a warning where the record is not complete.
fn write_table(record: &Path, output: &Path, console: &mut Console) -> Result<(), CliError> {
    // Again, because what is there now may not have been there when measuring began.
    check_output(output, Some(record))?;
    let table = tune::derive::derive(&SweepRecord::read(record)?)
        .map_err(|source| CliError::RecordMakesNoTable { path: record.to_owned(), source: Box::new(source) })?;
    if let Some(note) = &table.header.note {
        console.remark(&format!("warning: {note}"));
    }
    let text = format!(
        "# What `auto` takes on this GPU, measured by `lookback tune`; times are those of one scan.\n\n{}",
        table.to_toml()
    );
    write_atomically(output, text.as_bytes())?;
    if !console.is_quiet() {
        console.print(&describe(&table))?;
    }
    console.print(&format!("{}\n", output.display()))
}

/// What was chosen, a line a row.
fn describe(table: &TuningTable) -> String {
    let width = table.rows().iter().map(|row| row.tuned.to_string().chars().count()).max().unwrap_or(0).max(10);
    let mut text = format!("\n{:<width$} {:>12}  {:<20} {:>2} {:>5}\n", "", "up to n", "strategy", "VT", "block");
    for row in table.rows() {
        let number = |value: Option<u32>| value.map_or("-".to_owned(), |value| value.to_string());
        let _ = writeln!(
            text,
            "{:<width$} {:>12}  {:<20} {:>2} {:>5}",
            row.tuned,
            row.up_to.map_or("any".to_owned(), format_size),
            row.strategy,
            number(row.vt),
            number(row.block_threads)
        );
    }
    text.push('\n');
    text
}
