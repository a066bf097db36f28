//! What keeps `lookback scan` from its output.

use crate::element::{DefinitionError, NoSuchProblem};
use crate::lab::device::DeviceError;
use crate::lab::running::Difference;
use crate::out_of_core::{Cause, PlanError};
use std::io;
use std::path::PathBuf;

/// A scan of a file that cannot be run, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The types and the operator do not go together.
    #[error(transparent)]
    Problem(#[from] NoSuchProblem),
    /// No kernel can be made of it.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// It cannot be divided.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Something failed on the way.
    #[error("the scan stopped behind element {done} of {n}; once the cause is gone, --resume goes on from there")]
    Stopped { done: u64, n: u64, source: Cause<DeviceError> },
    /// Something failed where the speed was measured.
    #[error("the speed of {what} cannot be measured")]
    Measure { what: &'static str, source: io::Error },
    /// The output cannot be read back.
    #[error("cannot compare {} with a scan on the host", path.display())]
    Verify { path: PathBuf, source: io::Error },
    /// Somebody writes it.
    #[error("{} was changed while it was scanned, so that the output is of no array; begin again when it is complete", path.display())]
    InputChanged { path: PathBuf },
    /// A device was wrong.
    #[error("WRONG: {} is not the scan of the input", path.display())]
    Wrong { path: PathBuf, source: Box<Difference> },
}

impl ScanError {
    /// Whether the device or a kernel is at fault, and not what it was given.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Wrong { .. } | Self::Stopped { source: Cause::Device(_), .. })
    }
}
