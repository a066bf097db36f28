//! The detectors of the kill table behind one interface.

use super::CliError;
use super::console::Console;
use super::stress::StressArguments;
use crate::stress::search::{Limits, Search, search};
use crate::stress::table::{Cell, Detector};
use crate::stress::{Memory, Mutant};

/// What a detector ran on: name and value.
pub(super) type Facts = Vec<(String, String)>;

/// Somebody who looks for faults.
pub(super) trait Examiner {
    /// Looks at the kernels with a fault, or as they are.
    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell;

    /// What it ran on.
    fn facts(&self) -> Facts {
        Vec::new()
    }
}

/// The detectors asked for; those that are not here, with the reason.
pub(super) fn examiners(chosen: &[Detector], limits: &Limits) -> Vec<(Detector, Result<Box<dyn Examiner>, String>)> {
    let make = |detector: Detector| -> Result<Box<dyn Examiner>, String> {
        match detector {
            Detector::CpuSchedules => Ok(Box::new(OnCpu { memory: Memory::Strong })),
            Detector::WeakMemory => Ok(Box::new(OnCpu { memory: Memory::Weak })),
            _ => Err("not part of this build".to_owned()),
        }
    };
    let _ = limits;
    chosen.iter().map(|&detector| (detector, make(detector))).collect()
}

/// Drawn cases on the CPU device.
struct OnCpu {
    memory: Memory,
}

impl Examiner for OnCpu {
    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell {
        let Search { found, cases, passed, elapsed } = search(mutant, &[self.memory], *limits, &|_| {});
        let seconds = elapsed.as_secs_f64();
        match found {
            Some(found) => Cell::Killed {
                seed: Some(found.case.seed),
                runs: cases,
                seconds,
                how: found.failure.to_string(),
                reproduce: Some(format!("lookback stress --replay '{}'", found.case)),
            },
            None => Cell::Survived { runs: passed.schedules, seconds },
        }
    }
}

/// Stress on a GPU: the kernels as they are, or with one fault.
pub(super) fn gpu_campaign(
    mutant: Option<&'static Mutant>,
    arguments: &StressArguments,
    console: &mut Console,
) -> Result<u8, CliError> {
    let _ = (mutant, arguments, console);
    Err(CliError::NotBuilt { device: "CUDA", feature: "cuda-13000" })
}
