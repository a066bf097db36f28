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

/// A document whose markers cannot be filled.
#[derive(Debug, thiserror::Error)]
pub enum SpliceError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// Nothing to fill.
    #[error("{} has no marker; write <!-- lookback:begin NAME --> and <!-- lookback:end NAME -->", path.display())]
    NoMarker {
        /// The file.
        path: PathBuf,
    },
    /// A marker names no record.
    #[error("{}, line {line}: there is no table '{name}'; there are {known}", path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The name in the marker.
        name: String,
        /// What there is.
        known: String,
    },
    /// A marker without its partner.
    #[error("{}, line {line}: the marker '{name}' is not closed by '<!-- lookback:end {name} -->' or not begun", path.display())]
    Unpaired {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The name in the marker.
        name: String,
    },
}
