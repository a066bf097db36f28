//! Plots and one page from records: nothing but the records goes in, so the same data gives the same bytes.
//!
//! A record of `lookback compare` has [`write()`], the records of `lookback sweep` have [`SweepSource::read_all`],
//! [`write_sweeps`] and, for tables in documents, [`splice`].

mod axis;
mod chart;
mod kill_table;
mod look;
mod page;
mod plots;
mod splice;
mod sweep;
mod sweep_page;
mod tables;

pub use plots::{Plot, plots};
pub use splice::{SpliceError, Spliced, splice};

use crate::lab::measure::record::{SweepRecord, SweepRecordError};
use crate::lab::record::{Record, RecordError, write_atomically};
use crate::lab::stress::table::KillTable;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A report that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder refused a file.
    #[error(transparent)]
    Write(#[from] RecordError),
    /// The records of sweeps cannot be read.
    #[error(transparent)]
    Sweep(#[from] SweepRecordError),
    /// A document's markers cannot be filled.
    #[error(transparent)]
    Splice(#[from] SpliceError),
    /// A file named as a table of mutants is none.
    #[error("{} is no table of mutants: {reason}", path.display())]
    KillTable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The drawing library refused.
    #[error("cannot draw the plot {plot}: {reason}")]
    Drawing {
        /// Which.
        plot: String,
        /// What it said.
        reason: String,
    },
}

/// Renders the plots and `index.html` of `record` into `directory` and returns the page's path. Plots of
/// an earlier record in the same folder that this one has not are removed.
///
/// # Errors
/// When a plot cannot be drawn or the folder cannot be written.
pub fn write(record: &Record, directory: &Path) -> Result<PathBuf, ReportError> {
    let plots = plots(record)?;
    write_plots(&plots, directory, &plots::KINDS.map(str::to_owned))?;
    let page = directory.join("index.html");
    write_atomically(&page, page::html(record, &plots).as_bytes())?;
    Ok(page)
}

/// Writes the plots and removes those of an earlier report, whose names start in one of these ways.
fn write_plots(plots: &[Plot], directory: &Path, starts: &[String]) -> Result<(), ReportError> {
    for plot in plots {
        write_if_changed(&directory.join(plot.file_name()), &plot.svg)?;
    }
    let current: BTreeSet<String> = plots.iter().map(Plot::file_name).collect();
    if let Ok(entries) = fs::read_dir(directory) {
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours = name.ends_with(".svg") && starts.iter().any(|start| name.starts_with(start));
            if ours && !current.contains(&name) {
                // A plot that stays behind is no error of this report.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
    Ok(())
}

/// A file that is the same already is left alone, its time of change too.
fn write_if_changed(path: &Path, text: &str) -> Result<(), RecordError> {
    if fs::read(path).is_ok_and(|present| present == text.as_bytes()) {
        return Ok(());
    }
    write_atomically(path, text.as_bytes())
}

/// The tables of mutants in a folder: files named `mutants-….json`, in the order of their names.
///
/// # Errors
/// When one cannot be read.
pub fn kill_tables(directory: &Path) -> Result<Vec<(String, KillTable)>, ReportError> {
    let mut tables = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".json").filter(|stem| stem.starts_with(KILL_TABLE)) else { continue };
        let broken = |reason: String| ReportError::KillTable { path: path.clone(), reason };
        let text = fs::read_to_string(&path).map_err(|error| broken(error.to_string()))?;
        let table = serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        tables.push((stem.to_owned(), table));
    }
    tables.sort_by(|left, right| left.0.cmp(&right.0));
    Ok(tables)
}

/// Renders picture and page of every table of mutants in a folder, beside its record; returns how many there are.
///
/// # Errors
/// When a record cannot be read, or the folder cannot be written.
pub fn write_kill_tables(directory: &Path) -> Result<usize, ReportError> {
    let tables = kill_tables(directory)?;
    for (stem, table) in &tables {
        let picture = kill_table::svg(table, stem)?;
        write_if_changed(&directory.join(format!("{stem}.svg")), &picture)?;
        write_if_changed(&directory.join(format!("{stem}.html")), &kill_table::html(table, &picture))?;
    }
    Ok(tables.len())
}

/// How the names of tables of mutants start.
const KILL_TABLE: &str = "mutants-";

/// A sweep's record and where it lies.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepSource {
    /// The folder of the record, and of its pictures.
    pub directory: PathBuf,
    /// Name of the record's file.
    pub file_name: String,
    /// The same without its ending, for example `size-h100`.
    pub stem: String,
    /// What the file holds.
    pub record: SweepRecord,
}

impl SweepSource {
    /// Whether this is a file, or a folder with files, whose names are those of sweep records.
    pub fn is_at(path: &Path) -> bool {
        Self::files(path).is_ok_and(|files| !files.is_empty())
    }

    /// Reads a file, or every record in a folder in the order of their names.
    ///
    /// # Errors
    /// When there is none or one is damaged.
    pub fn read_all(path: &Path) -> Result<Vec<Self>, SweepRecordError> {
        let files = Self::files(path)?;
        if files.is_empty() {
            return Err(SweepRecordError::Missing { path: path.to_owned() });
        }
        let read = |file: &PathBuf| {
            let file_name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let stem = stem(&file_name).unwrap_or(&file_name).to_owned();
            let directory = file.parent().unwrap_or(Path::new("")).to_owned();
            Ok(Self { directory, file_name, stem, record: SweepRecord::read(file)? })
        };
        files.iter().map(read).collect()
    }

    fn files(path: &Path) -> Result<Vec<PathBuf>, SweepRecordError> {
        if !path.is_dir() {
            return Ok(vec![path.to_owned()]);
        }
        let error = |source| SweepRecordError::Io { action: "read", path: path.to_owned(), source };
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(error)? {
            let file = entry.map_err(error)?.path();
            if file.file_name().is_some_and(|name| stem(&name.to_string_lossy()).is_some()) {
                files.push(file);
            }
        }
        files.sort();
        Ok(files)
    }
}

/// The name of a sweep record without its ending; `None` if it is none.
fn stem(file_name: &str) -> Option<&str> {
    // `data.partial.jsonl` is of `lookback compare`.
    let stem = file_name.strip_suffix(".jsonl.gz").or_else(|| file_name.strip_suffix(".jsonl"))?;
    (stem != "data.partial").then_some(stem)
}

/// Renders the pictures of these records, each beside its file, and one page into `page`; returns how many
/// pictures there are.
///
/// # Errors
/// When a picture cannot be drawn or the folder cannot be written.
pub fn write_sweeps(sources: &[SweepSource], page: &Path) -> Result<usize, ReportError> {
    let mut parts = Vec::new();
    for source in sources {
        let plots = sweep::plots(&source.record, &source.stem)?;
        let starts = sweep::KINDS.map(|kind| format!("{}-{kind}-", source.stem));
        write_plots(&plots, &source.directory, &starts)?;
        parts.push((source, plots));
    }
    write_if_changed(page, &sweep_page::html(&parts))?;
    Ok(parts.iter().map(|(_, plots)| plots.len()).sum())
}
