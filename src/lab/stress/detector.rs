//! What is asked of a detector, and what it answers.

use crate::kernels::mutant::Mutant;
use crate::text::short_seconds;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a detector ran on: name and value.
pub type Facts = Vec<(String, String)>;

/// The machine could not make a run, which says nothing of the kernels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotRun {
    /// There was no memory.
    #[error("no memory for {what}, which says nothing of the kernels")]
    Memory {
        /// What there was no memory for, and the operating system's reason.
        what: String,
    },
    /// A kernel that the build left out could not be made.
    #[error("{why}; kernels of problems other than plain scans are compiled when a case asks for them")]
    Kernel {
        /// What the compiler or the loader says.
        why: String,
    },
}

/// Takes what a detector says of a mutant, from any thread.
pub type Found<'a> = dyn Fn(&'static Mutant, Cell) + Sync + 'a;

/// Looks for faults.
pub trait Detector {
    /// Looks at kernels with one fault each, and says of each what it found as soon as it knows, in no particular order. Once
    /// somebody asks it to stop, nothing more may be said of the others.
    ///
    /// # Errors
    /// When the machine cannot run what has to run.
    fn examine_all(&mut self, mutants: &[&'static Mutant], limits: &Limits, found: &Found) -> Result<(), CannotRun>;

    /// Looks at the kernels as they are, after those with faults.
    ///
    /// # Errors
    /// When the machine cannot run what has to run.
    fn examine_unmutated(&mut self, limits: &Limits) -> Result<Cell, CannotRun>;

    /// What it ran on.
    fn facts(&self) -> Facts {
        Vec::new()
    }
}

/// How far a search goes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The seed of the first case; the others follow.
    pub first_seed: u64,
    /// Schedules after which it ends.
    pub schedules: u64,
    /// Time after which it ends, whatever has been run.
    pub time: Option<Duration>,
    /// OS threads.
    pub threads: usize,
    /// Ends it as soon as this is true, whatever has been run.
    pub stop: Option<&'static AtomicBool>,
}

impl Limits {
    /// Whether what began at `start` has to end.
    pub fn are_over(&self, start: Instant) -> bool {
        self.remaining(start).is_some_and(|time| time.is_zero())
    }

    /// Whether somebody asks to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// How long what began at `start` may go on, if that is limited.
    pub fn remaining(&self, start: Instant) -> Option<Duration> {
        if self.is_stopped() {
            return Some(Duration::ZERO);
        }
        self.time.map(|time| time.saturating_sub(start.elapsed()))
    }
}

/// What a detector says of a mutant, or of the kernels as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Cell {
    /// It found the fault.
    Killed {
        /// The seed at which, if anything was drawn.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        seed: Option<u64>,
        /// After how many runs: schedules, launches or executions.
        runs: u64,
        /// After how many seconds.
        seconds: f64,
        /// What it saw.
        how: String,
        /// The command that shows it again.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reproduce: Option<String>,
    },
    /// It found nothing in so many runs and seconds.
    Survived { runs: u64, seconds: f64 },
    /// What the detector looks at does not hold the fault.
    NotModelled { why: String },
    /// It was not asked, or could not be.
    NotRun { why: String },
}

impl Cell {
    /// Whether the fault was found.
    pub const fn is_killed(&self) -> bool {
        matches!(self, Self::Killed { .. })
    }

    /// How many runs it made, if it was asked.
    pub const fn runs(&self) -> Option<u64> {
        match self {
            Self::Killed { runs, .. } | Self::Survived { runs, .. } => Some(*runs),
            Self::NotModelled { .. } | Self::NotRun { .. } => None,
        }
    }

    /// How long it took, if it was asked.
    pub const fn seconds(&self) -> Option<f64> {
        match self {
            Self::Killed { seconds, .. } | Self::Survived { seconds, .. } => Some(*seconds),
            Self::NotModelled { .. } | Self::NotRun { .. } => None,
        }
    }

    /// A few letters for a table.
    pub fn short(&self) -> String {
        match self {
            Self::Killed { seconds, .. } => short_seconds(*seconds),
            Self::Survived { .. } => "survived".to_owned(),
            Self::NotModelled { .. } => "·".to_owned(),
            Self::NotRun { .. } => "–".to_owned(),
        }
    }
}
