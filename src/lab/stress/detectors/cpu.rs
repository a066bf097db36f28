//! The columns "schedules" and "weak": drawn cases on the CPU device.

use crate::lab::stress::detector::{CannotRun, Cell, Detector, Limits};
use crate::lab::stress::search::{Search, search};
use crate::lab::stress::{Case, Memory, Mutant};
use crate::lab::workload::ProblemKind;

/// Drawn cases on the CPU device.
pub(super) struct OnCpu {
    pub(super) problems: Vec<ProblemKind>,
    pub(super) memory: Memory,
}

impl Detector for OnCpu {
    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Result<Cell, CannotRun> {
        if mutant.is_some_and(|mutant| !Case::can_draw(&self.problems, mutant)) {
            return Ok(Cell::NotModelled { why: "no case of the problems asked for can show the fault".to_owned() });
        }
        let Search { found, passed, elapsed, .. } = search(&self.problems, mutant, &[self.memory], *limits, &|_| {})?;
        let seconds = elapsed.as_secs_f64();
        Ok(match found {
            Some(found) => Cell::Killed {
                seed: Some(found.case.seed),
                // Those before it, and itself.
                runs: passed.launches() + 1,
                seconds,
                how: found.failure.to_string(),
                reproduce: Some(format!("lookback stress --replay '{}'", found.case)),
            },
            None => {
                let runs = if mutant.is_some() { passed.launches() } else { passed.schedules };
                Cell::Survived { runs, seconds }
            }
        })
    }
}
