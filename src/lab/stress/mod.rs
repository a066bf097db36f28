//! Looking for races, and showing that the looking works: drawn runs of the scan kernels under hostile schedules
//! and weak memory, and the same detectors against kernels that were broken on purpose.
//!
//! A stress run that passes is worth what its mutants say: [`Mutant`] lists the faults that the kernels can be
//! given, [`Case`] is one reproducible run, and `lookback stress` draws cases, shrinks those that fail and prints
//! which detector kills which mutant.

#[cfg(feature = "cpu")]
mod arrays;
#[cfg(feature = "cpu")]
pub mod case;
#[cfg(feature = "cpu")]
mod counted;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cpu")]
mod dealt;
pub mod detector;
pub mod detectors;
#[cfg(feature = "cpu")]
mod draw;
#[cfg(feature = "cpu")]
mod drawing;
#[cfg(all(feature = "cuda", feature = "cpu"))]
pub mod gpu;
#[cfg(feature = "cpu")]
mod launches;
#[cfg(feature = "cpu")]
pub mod outcome;
#[cfg(feature = "cpu")]
pub mod replay;
#[cfg(feature = "cpu")]
mod replay_shared;
#[cfg(feature = "cpu")]
mod room;
#[cfg(feature = "cpu")]
pub mod scan_case;
#[cfg(feature = "cpu")]
pub mod search;
#[cfg(feature = "cpu")]
pub mod selection;
pub mod table;
#[cfg(feature = "cpu")]
pub mod thread_sanitizer;
#[cfg(feature = "cpu")]
mod watched;
#[cfg(feature = "cpu")]
pub mod workspace;

pub use crate::kernels::mutant::{
    Kind, Mutant, MutantError, Need, ONE_WORKSPACE, OPERATORS_WITH_MUTANTS, RELAUNCH_AFTER_ABORT, When, mutant_number,
};
#[cfg(feature = "cpu")]
pub use case::{Case, Disturbance, Memory};
#[cfg(feature = "cpu")]
pub use counted::DeviceCount;
#[cfg(feature = "cpu")]
pub use scan_case::{CaseError, PLAIN, problems_of};
#[cfg(feature = "cpu")]
pub use workspace::WorkspaceStart;
