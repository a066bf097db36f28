//! The columns "schedules" and "weak": drawn cases on the CPU device.

use crate::lab::stress::detector::{Cell, Detector, Limits, NoMemory};
use crate::lab::stress::search::{Search, search};
use crate::lab::stress::{Memory, Mutant};

/// Drawn cases on the CPU device.
pub(super) struct OnCpu {
    pub(super) memory: Memory,
}

impl Detector for OnCpu {
    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Result<Cell, NoMemory> {
        let Search { found, passed, elapsed, .. } = search(mutant, &[self.memory], *limits, &|_| {})?;
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
