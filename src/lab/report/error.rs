//! What keeps a report from being made.

use crate::lab::recorder::RecordError;
use std::path::PathBuf;

/// A report that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A record cannot be read, or the folder refused a file.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A document's markers cannot be filled.
    #[error(transparent)]
    Splice(#[from] SpliceError),
    /// A file named as a table of mutants is none.
    #[error(
        "{} is no table of mutants: {reason}; `lookback report` draws those (*.json), records of sweeps (*.jsonl.gz) and \
         folders of `lookback compare`",
        path.display()
    )]
    KillTable { path: PathBuf, reason: String },
    /// The drawing library refused.
    #[error("cannot draw the plot {plot}: {reason}")]
    Drawing { plot: String, reason: String },
    /// A run that the lesson shows did not come about.
    #[cfg(feature = "cpu")]
    #[error("the lesson: {0}")]
    Lesson(#[from] crate::lab::lesson::LessonError),
}

/// A document whose markers cannot be filled.
#[derive(Debug, thiserror::Error)]
pub enum SpliceError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// Nothing to fill.
    #[error("{} has no marker; write <!-- lookback:begin NAME --> and <!-- lookback:end NAME -->", path.display())]
    NoMarker { path: PathBuf },
    /// A marker names no record; lines count from 1.
    #[error("{}, line {line}: there is no table '{name}'; there are {known}", path.display())]
    Unknown { path: PathBuf, line: usize, name: String, known: String },
    /// A marker without its partner.
    #[error("{}, line {line}: the marker '{name}' is not closed by '<!-- lookback:end {name} -->' or not begun", path.display())]
    Unpaired { path: PathBuf, line: usize, name: String },
}
