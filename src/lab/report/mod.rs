//! Plots and one page from records: nothing but the records goes in, so the same data gives the same bytes.
//!
//! A record of `lookback compare` has [`write()`], the records of `lookback sweep` have [`SweepSource::read_all`],
//! [`write_sweeps`] and, for tables in documents, [`splice`].

mod axis;
mod chart;
mod contest;
mod costs;
mod error;
mod family;
mod heat_map;
mod html;
mod kill_table;
#[cfg(feature = "cpu")]
mod lesson;
mod marks;
mod page;
mod pen;
mod plots;
mod problems;
mod ranks;
mod source;
mod splice;
mod svg;
mod sweep;
mod sweep_page;
mod table;
mod tables;
mod trace;

pub use error::{ReportError, SpliceError};
#[cfg(feature = "cpu")]
pub use lesson::write_lesson;
pub use plots::plots;
pub use source::{SweepSource, kill_tables};
pub(crate) use splice::{BEGIN, END};
pub use splice::{Spliced, splice};
pub use svg::Plot;
pub use trace::write_traces;

use crate::file::{self, RECORD_BYTES};
use crate::lab::ranks::record::RankRecord;
use crate::lab::record::{PAGE, Record};
use crate::lab::recorder::{RecordError, io_error, write_atomically};
use crate::lab::stress::table::KillTable;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Draws the pictures of a run over ranks into `directory`, and returns how many there are.
///
/// # Errors
/// When one cannot be drawn or the folder cannot be written.
pub fn write_ranks(record: &RankRecord, directory: &Path) -> Result<usize, ReportError> {
    let plots = ranks::plots(record)?;
    for plot in &plots {
        write_if_changed(&directory.join(plot.file_name()), &plot.svg)?;
    }
    Ok(plots.len())
}

/// Renders the plots and `index.html` of `record` into `directory` and returns the page's path. Plots of
/// an earlier record in the same folder that this one has not are removed.
///
/// # Errors
/// When a plot cannot be drawn or the folder cannot be written.
pub fn write(record: &Record, directory: &Path) -> Result<PathBuf, ReportError> {
    let plots = plots(record)?;
    let starts: Vec<String> = plots::QUANTITIES.iter().map(|quantity| quantity.kind.to_owned()).collect();
    write_plots(&plots, directory, &starts, &[])?;
    let page = directory.join(PAGE);
    write_if_changed(&page, &page::html(record, &plots))?;
    Ok(page)
}

/// Writes the plots and removes those of an earlier report: what was drawn here and whose names start in one of these ways,
/// and not as those of others do.
fn write_plots(plots: &[Plot], directory: &Path, starts: &[String], others: &[String]) -> Result<(), ReportError> {
    for plot in plots {
        write_if_changed(&directory.join(plot.file_name()), &plot.svg)?;
    }
    let current: BTreeSet<String> = plots.iter().map(Plot::file_name).collect();
    if let Ok(entries) = fs::read_dir(directory) {
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let has_start = |starts: &[String]| starts.iter().any(|start| name.starts_with(start));
            let is_named_so = name.ends_with(".svg") && has_start(starts) && !has_start(others);
            if is_named_so && !current.contains(&name) && file::read(&entry.path(), RECORD_BYTES).is_ok_and(is_ours) {
                // A plot that stays behind is no error of this report.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
    Ok(())
}

/// Writes a page or a picture. One that is the same already is left alone, its time of change too, and so is what was not
/// made here.
fn write_if_changed(path: &Path, text: &str) -> Result<(), RecordError> {
    match file::read(path, RECORD_BYTES) {
        Ok(present) if present == text.as_bytes() => Ok(()),
        Ok(present) if !is_ours(&present) => Err(RecordError::NotOurs { path: path.to_owned(), command: "report" }),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error("write", path)(error)),
        Ok(_) | Err(_) => write_atomically(path, text.as_bytes()),
    }
}

/// Whether a page or a picture was made here.
fn is_ours(bytes: impl AsRef<[u8]>) -> bool {
    let text = String::from_utf8_lossy(bytes.as_ref());
    [html::MARK, svg::MARK].iter().any(|mark| text.contains(mark))
}

/// Renders picture and page of a table of mutants, or of every one in a folder, beside its record; returns the tables.
///
/// # Errors
/// When a record cannot be read, or the folder cannot be written.
pub fn write_kill_tables(path: &Path) -> Result<Vec<KillTable>, ReportError> {
    let tables = kill_tables(path)?;
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    for (stem, table) in &tables {
        let picture = kill_table::svg(table)
            .map_err(|refusal| ReportError::Drawing { plot: stem.clone(), reason: refusal.to_string() })?;
        write_if_changed(&directory.join(format!("{stem}.svg")), &picture)?;
        write_if_changed(&directory.join(format!("{stem}.html")), &kill_table::html(table, stem, &picture))?;
    }
    Ok(tables.into_iter().map(|(_, table)| table).collect())
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
        let starts_of = |stem: &str| sweep::KINDS.map(|kind| format!("{stem}-{kind}-"));
        // Whether or not the records beside it are drawn now.
        let others: Vec<String> = source::longer_stems(source).iter().flat_map(|stem| starts_of(stem)).collect();
        write_plots(&plots, &source.directory, &starts_of(&source.stem), &others)?;
        parts.push((source, plots));
    }
    // The page of one record is about that record alone.
    let is_of_folder = page.file_name().is_some_and(|name| name == PAGE);
    let kill_tables = if is_of_folder { kill_tables(page.parent().unwrap_or(Path::new("")))? } else { Vec::new() };
    write_if_changed(page, &sweep_page::html(&parts, &kill_tables))?;
    Ok(parts.iter().map(|(_, plots)| plots.len()).sum())
}
