//! What comes of a run of a case on the CPU device, and what counts as a failure.

use super::case::{Case, MINIMUM_TILES, MINIMUM_WARPS};
use super::detector::CannotRun;

/// How a run showed that something is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// So many output elements are not what they must be, the first at `index`.
    #[error("{}: expected {expected}, got {actual}", wrong_elements(*index, *mismatches))]
    WrongResult { index: u64, mismatches: u64, expected: String, actual: String },
    /// Bytes beside the output, or the input, were written.
    #[error("bytes beside the output, or the input, were written")]
    WroteElsewhere,
    /// The workspace is not as a launch must leave it.
    #[error("the workspace after the launch: {what}")]
    Workspace { what: String },
    /// Whoever can run only polls: who waits for whom.
    #[error("{text}")]
    LostProgress { text: String },
    /// The executor or the memory found a fault: a race, an access outside all arrays, a barrier that diverges.
    #[error("{text}")]
    Execution { text: String },
    /// None of the kernel's: the machine could not run it.
    #[error(transparent)]
    CannotRun(CannotRun),
}

impl Fault {
    /// A word for tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::WrongResult { .. } => "wrong result",
            Self::WroteElsewhere => "wrote elsewhere",
            Self::Workspace { .. } => "workspace",
            Self::LostProgress { .. } => "lost progress",
            Self::Execution { .. } => "fault",
            Self::CannotRun(_) => "not run",
        }
    }
}

fn wrong_elements(index: u64, mismatches: u64) -> String {
    match mismatches {
        1 => format!("element {index} is wrong"),
        _ => format!("{mismatches} elements are wrong, the first at {index}"),
    }
}

/// A run that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("launch {}: {fault}", launch + 1)]
pub struct Failure {
    /// Which launch, from 0.
    pub launch: u32,
    /// How it showed.
    pub fault: Fault,
}

impl Failure {
    /// Why the machine could not run it, where the failure is not the kernel's.
    pub fn cannot_run(&self) -> Option<&CannotRun> {
        match &self.fault {
            Fault::CannotRun(error) => Some(error),
            _ => None,
        }
    }
}

/// What a run that passed did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passed {
    /// Launches of the whole scan with every element right, of at least 8 tiles and 2 warps a block.
    pub schedules: u64,
    /// Those with every element right and fewer tiles, or of a strategy without tiles.
    pub smaller: u64,
    /// Those that were cut short on purpose: nothing of their output is looked at, but that of the next launch.
    pub cut: u64,
    /// Elements that were right.
    pub elements: u64,
    /// Tiles of each of `schedules`, for who counts them; sums of several runs leave them out.
    pub(super) tiles: Vec<u64>,
}

impl Passed {
    /// Counts a launch of `n` elements with every one right.
    pub(super) fn count(&mut self, case: &Case, n: u64) {
        self.elements += n;
        let tiles = case.tiles_of(n);
        if tiles >= MINIMUM_TILES && case.request.config.block_threads.div_ceil(32) >= MINIMUM_WARPS {
            self.schedules += 1;
            self.tiles.push(tiles);
        } else {
            self.smaller += 1;
        }
    }

    /// Adds what another run did.
    pub fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.smaller += other.smaller;
        self.cut += other.cut;
        self.elements += other.elements;
    }

    /// All launches.
    pub fn launches(&self) -> u64 {
        self.schedules + self.smaller + self.cut
    }
}
