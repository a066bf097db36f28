//! `lookback compare --sweep targets`: which of this crate's targets a record reaches.

use super::arguments::{CompareArguments, DeviceChoice};
use super::call;
use super::console::Console;
use super::error::{CliError, EXIT_MISSED, EXIT_OK, EXIT_WRONG};
use super::sweep::{self, Keeping};
use crate::lab::measure::call_times::CallTimes;
use crate::lab::measure::record::{Status, SweepHeader, SweepRecord};
use crate::lab::measure::sweep::SweepFile;
use crate::lab::measure::targets::SWEEP;
use crate::lab::measure::targets::evaluation::{Evaluation, evaluate};
use crate::lab::recorder::write_atomically;
use crate::strategy::tuning::TuningTable;
use std::path::{Path, PathBuf};

/// What the command says where there is no GPU.
const INSTEAD: &str = "--record FILE judges a record that was measured elsewhere, without a GPU";

/// Measures the sweep or reads its record, prints the verdicts and returns the exit code.
///
/// # Errors
/// When there is no GPU and no record, the record cannot be read or written, or the device failed.
pub fn targets(name: &str, arguments: &CompareArguments, console: &mut Console) -> Result<u8, CliError> {
    let mut file = SweepFile::open(name)?;
    if file.name != SWEEP {
        let reason =
            format!("the sweep '{}' has no targets; write --sweep {SWEEP}, or run `lookback sweep`", file.name);
        return Err(CliError::Usage(reason));
    }
    if arguments.resume && arguments.output.is_none() {
        let reason = "--resume goes on with the record in a folder; name the folder by --output DIR";
        return Err(CliError::Usage(reason.to_owned()));
    }
    if !arguments.record.is_empty() {
        if arguments.tuning.is_some() {
            let reason = "a record is judged as it was measured, so --tuning has no effect on it; leave out --tuning, \
                          or leave out --record to measure by that table";
            return Err(CliError::Usage(reason.to_owned()));
        }
        if arguments.device != DeviceChoice::Auto {
            let reason =
                "--record LIST is judged without a device; leave out --device, or leave out --record to measure";
            return Err(CliError::Usage(reason.to_owned()));
        }
        return judge(&read_all(&arguments.record)?, arguments.verbose, None, console);
    }
    if arguments.device == DeviceChoice::Cpu {
        let reason = "targets are measured on a GPU; --record FILE judges a record without one";
        return Err(CliError::Usage(reason.to_owned()));
    }
    if let Some(path) = &arguments.tuning {
        file.tuning = Some(TuningTable::open(path)?.without_evidence());
    }
    file.process = Some(arguments.process.unwrap_or(1));
    let mut laboratory = sweep::open_laboratory(0, "compare --sweep targets", INSTEAD)?;
    // A record that nobody asked to keep.
    let temporary;
    let folder = match &arguments.output {
        Some(folder) => folder.as_path(),
        None => {
            console.remark("the record is not kept; --output DIR keeps it");
            temporary = tempfile::tempdir().map_err(|error| {
                CliError::Usage(format!("there is no place for a temporary record: {}", crate::file::reason(&error)))
            })?;
            temporary.path()
        }
    };
    let is_first = file.process == Some(1);
    let call_times = is_first.then_some(&call::measure as &dyn Fn() -> Result<CallTimes, CliError>);
    let kept = Keeping { folder, resume: arguments.resume, call_times };
    let (code, path) = sweep::measure(laboratory.as_mut(), file, &kept, console, &mut |_| None)?;
    if !is_first {
        let path = path.display();
        console.print(&format!("It is judged with the first process's: --record FIRST,{path}\n"))?;
        return Ok(code);
    }
    let text = arguments.output.as_ref().map(|_| beside(&path));
    judge(&[SweepRecord::read(&path)?], arguments.verbose, text.as_deref(), console)
}

/// Reads the records of one or several processes on one GPU, the first process's first.
fn read_all(paths: &[PathBuf]) -> Result<Vec<SweepRecord>, CliError> {
    let mut records = Vec::with_capacity(paths.len());
    for path in paths {
        let record = SweepRecord::read(path)?;
        if record.header.sweep.name != SWEEP {
            let found = &record.header.sweep.name;
            return Err(CliError::Usage(format!(
                "{} is a record of the sweep '{found}', not of '{SWEEP}'; give one that \
                 `lookback compare --sweep {SWEEP} --output DIR` made",
                path.display()
            )));
        }
        if record.header.sweep.process.is_none() {
            return Err(CliError::Usage(format!(
                "{} is of an earlier sweep '{SWEEP}', which measured other things; \
                 `lookback compare --sweep {SWEEP} --output DIR` makes one of today's",
                path.display()
            )));
        }
        records.push(record);
    }
    records.sort_by_key(|record| record.header.sweep.process);
    let processes: Vec<u32> = records.iter().filter_map(|record| record.header.sweep.process).collect();
    if processes.first() != Some(&1) || processes.windows(2).any(|pair| pair[0] == pair[1]) {
        let reason = "records are judged with that of the first process, which measures all, and each process once";
        return Err(CliError::Usage(reason.to_owned()));
    }
    let of = |record: &SweepRecord| {
        let SweepHeader { machine, program, .. } = &record.header;
        [&machine.gpu, &machine.driver, &program.kernels_sha256].map(String::clone)
    };
    if records.windows(2).any(|pair| of(&pair[0]) != of(&pair[1])) {
        let reason = "the records are of different GPUs, drivers or kernels; give those of one run of processes";
        return Err(CliError::Usage(reason.to_owned()));
    }
    Ok(records)
}

/// `targets-h200.txt` beside `targets-h200.jsonl.gz`.
fn beside(record: &Path) -> PathBuf {
    let name = record.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = name.split('.').next().unwrap_or(SWEEP);
    record.with_file_name(format!("{stem}.txt"))
}

/// Prints the verdicts on the records of one or several processes, keeps all of them where a file is named, and returns the exit code.
fn judge(records: &[SweepRecord], all: bool, kept: Option<&Path>, console: &mut Console) -> Result<u8, CliError> {
    let evaluation: Evaluation = evaluate(&Vec::from_iter(records));
    let record = &records[0];
    let heading = format!("{}, driver {}, {}\n\n", evaluation.gpu, record.header.machine.driver, record.header.date);
    console.print(&format!("{heading}{}", evaluation.text(all)))?;
    if records.iter().any(|record| record.finished.is_none()) {
        console.print("\nThe sweep was interrupted; --resume goes on with it.\n")?;
    }
    if let Some(path) = kept {
        write_atomically(path, format!("{heading}{}", evaluation.text(true)).as_bytes())?;
        console.print(&format!("\nAll of it is in {}\n", path.display()))?;
    }
    let is_wrong = records.iter().flat_map(|record| &record.rows).any(|row| row.status == Status::Wrong);
    if is_wrong {
        console.print("\nSome results are WRONG, and were not timed or are not used.\n")?;
    }
    Ok(match (is_wrong, evaluation.is_missed()) {
        (true, _) => EXIT_WRONG,
        (false, true) => EXIT_MISSED,
        (false, false) => EXIT_OK,
    })
}
