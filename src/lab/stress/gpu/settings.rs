//! What stress on a GPU runs, and at which pace.

use super::case::{Scale, StressCase};
use crate::kernels::mutant::Mutant;
use crate::lab::stress::PLAIN;
use crate::lab::workload::ProblemKind;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What to run.
#[derive(Debug, Clone)]
pub struct GpuStressSettings {
    /// The GPU's number.
    pub device: usize,
    /// Runs to make at least.
    pub runs: u64,
    /// Seconds after which no further case begins, compilation not counted.
    pub seconds: Option<f64>,
    /// What everything is drawn from.
    pub seed: u64,
    /// What is scanned: cases are of one of these, or of those that the fault shows in. None stands for the plain scan.
    pub problems: Vec<ProblemKind>,
    /// The fault that the kernels or the host are to have.
    pub mutant: Option<&'static Mutant>,
    /// Different configurations of kernels to compile.
    pub palette: u64,
    /// Whether a slow tool looks on: few small runs, no delays, patience.
    pub is_small: bool,
    /// Whether that tool does not follow how blocks hand a ring of tiles on, so that strategies with one are left out.
    pub without_rings: bool,
    /// No further case begins once this is true. Another process does not know it.
    pub stop: Option<&'static AtomicBool>,
}

impl Default for GpuStressSettings {
    fn default() -> Self {
        Self {
            device: 0,
            runs: 100_000,
            seconds: None,
            seed: 1,
            problems: PLAIN.to_vec(),
            mutant: None,
            palette: 96,
            is_small: false,
            without_rings: false,
            stop: None,
        }
    }
}

impl GpuStressSettings {
    pub(super) fn pace(&self) -> Pace {
        let pace = |scale, wait_ms, limit_s| Pace {
            scale,
            wait: Duration::from_millis(wait_ms),
            limit: Duration::from_secs(limit_s),
        };
        match (self.is_small, self.mutant) {
            (true, _) => pace(Scale::Small { has_rings: !self.without_rings }, 20_000, 300),
            // Other processes have the GPU in between, and what is found by waiting is looked for again (`detectors/gpu.rs`).
            (false, Some(_)) => pace(Scale::Short, 100, 30),
            (false, None) => pace(Scale::Full, 2_000, 60),
        }
    }

    pub(super) fn draw(&self, index: u64) -> StressCase {
        StressCase::draw(self.problems(), self.seed, index, self.palette, self.mutant, self.pace().scale)
    }

    /// Whether any case can be drawn.
    pub fn can_draw(&self) -> bool {
        self.mutant.is_none_or(|mutant| StressCase::can_draw(self.problems(), mutant, self.pace().scale))
    }

    /// What cases are drawn of.
    pub(super) fn problems(&self) -> &[ProblemKind] {
        if self.problems.is_empty() { PLAIN } else { &self.problems }
    }

    /// The cases that are drawn first: what their kernels are is what all later cases use.
    pub fn palette_cases(&self) -> Vec<StressCase> {
        (0..self.palette.max(1)).map(|index| self.draw(index)).collect()
    }
}

/// How long things may take.
pub(super) struct Pace {
    scale: Scale,
    /// Until a tile that waits gives up.
    pub(super) wait: Duration,
    /// For the launches between two looks.
    pub(super) limit: Duration,
}
