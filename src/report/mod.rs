//! Plots and one page from a record: nothing but the record goes in, so the same data gives the same bytes.

mod page;
mod plots;

pub use plots::{Plot, plots};

use crate::record::{Record, RecordError, write_atomically};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A report that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The folder refused a file.
    #[error(transparent)]
    Write(#[from] RecordError),
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
    for plot in &plots {
        write_atomically(&directory.join(plot.file_name()), plot.svg.as_bytes())?;
    }
    let current: BTreeSet<String> = plots.iter().map(Plot::file_name).collect();
    if let Ok(entries) = fs::read_dir(directory) {
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let ours = name.ends_with(".svg") && plots::KINDS.iter().any(|kind| name.starts_with(kind));
            if ours && !current.contains(&name) {
                // A plot that stays behind is no error of this report.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
    let page = directory.join("index.html");
    write_atomically(&page, page::html(record, &plots).as_bytes())?;
    Ok(page)
}
