//! The column "GPU": each mutant in a process of its own.

use super::side_by_side::side_by_side;
use crate::cuda::Compiler;
use crate::kernels::mutant::Mutant;
use crate::lab::cuda::CudaDevice;
use crate::lab::device::Device as _;
use crate::lab::stress::detector::{CannotRun, Cell, Detector, Facts, Found, Limits};
use crate::lab::stress::gpu::{
    Finding, GpuStressReport, GpuStressSettings, Scale, StressCase, StressError, StressOutcome, child,
};
use crate::lab::stress::scan_case::problems_of_all;
use crate::lab::workload::ProblemKind;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};

/// Processes that share the GPU in turns. A tile that waits goes on waiting while the others have theirs, so that what was found by
/// waiting is looked for once more [alone](looked_for).
const PROCESSES_AT_ONCE: usize = 8;

/// Different configurations of kernels that a mutant is tried in.
pub const PALETTE_OF_MUTANT: u64 = 6;

/// Different configurations of the kernels as they are, for so many runs.
pub fn palette_of(runs: u64) -> u64 {
    (runs / 2000).clamp(8, 128)
}

/// The command that runs the case of a failure again.
pub fn again(case: &str) -> String {
    format!("lookback stress --device cuda --replay '{case}'")
}

/// Looks at a mutant, or at the kernels as they are, in cases of these problems.
pub(super) type Ask = fn(&OnGpu, Option<&'static Mutant>, &[ProblemKind], &Limits) -> Cell;

/// Processes that look for faults on the first GPU.
pub(super) struct OnGpu {
    problems: Vec<ProblemKind>,
    /// Those that the kernels as they are run.
    of_unmutated: Vec<ProblemKind>,
    pub(super) program: PathBuf,
    gpu: String,
    /// Mutants that are looked at side by side, at most.
    at_once: usize,
    /// Read while the GPU is shared, and written by who needs it alone.
    sharing: RwLock<()>,
    ask: Ask,
}

impl OnGpu {
    pub(super) fn new(problems: &[ProblemKind], at_once: usize, ask: Ask) -> Result<Self, String> {
        let device = CudaDevice::open(0).map_err(|error| error.to_string())?;
        // Where there is none, no process could compile anything.
        Compiler::new().map_err(|error| error.to_string())?;
        let program = child::program().map_err(|error| error.to_string())?;
        let (problems, of_unmutated) = (problems.to_vec(), problems.to_vec());
        let (gpu, sharing) = (device.description().name, RwLock::new(()));
        Ok(Self { problems, of_unmutated, program, gpu, at_once, sharing, ask })
    }
}

impl Detector for OnGpu {
    /// Most of a process's time is its start and its compiling: those of all mutants go on side by side.
    fn examine_all(&mut self, mutants: &[&'static Mutant], limits: &Limits, found: &Found) -> Result<(), CannotRun> {
        let (shown, others): (Vec<&'static Mutant>, Vec<_>) =
            mutants.iter().partition(|mutant| StressCase::can_draw(&self.problems, mutant, Scale::Short));
        let why = "no case of the problems asked for can show the fault on one GPU";
        others.into_iter().for_each(|mutant| found(mutant, Cell::NotModelled { why: why.to_owned() }));
        if !shown.is_empty() {
            self.of_unmutated = problems_of_all(&self.problems, &shown);
        }
        let limits = Limits { threads: limits.threads.min(self.at_once), ..*limits };
        side_by_side(&shown, &limits, |mutant| {
            found(mutant, (self.ask)(self, Some(mutant), &self.problems, &limits));
        });
        Ok(())
    }

    fn examine_unmutated(&mut self, limits: &Limits) -> Result<Cell, CannotRun> {
        Ok((self.ask)(self, None, &self.of_unmutated, limits))
    }

    fn facts(&self) -> Facts {
        vec![("GPU".to_owned(), self.gpu.clone())]
    }
}

/// Stress, each mutant in a process of its own.
pub(super) fn stressed(problems: &[ProblemKind]) -> Result<OnGpu, String> {
    OnGpu::new(problems, PROCESSES_AT_ONCE, |on_gpu, mutant, problems, limits| {
        let settings = settings(mutant, problems, limits);
        let is_stopped = || limits.is_stopped();
        match looked_for(&on_gpu.sharing, is_stopped, || child::stress_in_child(&on_gpu.program, &settings, None)) {
            Ok(report) => match report.verdict {
                StressOutcome::Survived { runs } => Cell::Survived { runs, seconds: report.seconds },
                StressOutcome::Killed { how, at_run, seed, seconds } => Cell::Killed {
                    seed: Some(seed),
                    runs: at_run,
                    seconds,
                    how: how.to_string(),
                    reproduce: report.failures.first().map(|failure| again(&failure.case)),
                },
            },
            Err(error) => Cell::NotRun { why: error.to_string() },
        }
    })
}

/// What is found beside others, or, where somebody waited in vain and may have waited for these, alone.
fn looked_for(
    sharing: &RwLock<()>,
    is_stopped: impl Fn() -> bool,
    look: impl Fn() -> Result<GpuStressReport, StressError>,
) -> Result<GpuStressReport, StressError> {
    let report = {
        let _shared = sharing.read().unwrap_or_else(PoisonError::into_inner);
        look()?
    };
    let StressOutcome::Killed { how: Finding::LostProgress { .. } | Finding::Hung { .. }, .. } = report.verdict else {
        return Ok(report);
    };
    let _alone = sharing.write().unwrap_or_else(PoisonError::into_inner);
    if is_stopped() {
        return Err(StressError::Process(String::from("interrupted before it was looked for alone")));
    }
    look()
}

fn settings(mutant: Option<&'static Mutant>, problems: &[ProblemKind], limits: &Limits) -> GpuStressSettings {
    let settings = GpuStressSettings {
        seed: limits.first_seed,
        problems: problems.to_vec(),
        mutant,
        seconds: limits.time.map(|time| time.as_secs_f64()),
        ..GpuStressSettings::default()
    };
    match (mutant, limits.time) {
        // Runs on a GPU are cheap: what ends the search for a fault is the time.
        (Some(_), Some(_)) => GpuStressSettings { runs: u64::MAX, palette: PALETTE_OF_MUTANT, ..settings },
        _ => GpuStressSettings { runs: limits.schedules, palette: palette_of(limits.schedules), ..settings },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell as Counter;

    #[test]
    fn a_tile_that_waited_in_vain_beside_others_is_looked_for_alone() {
        let settings = GpuStressSettings::default();
        let report = |verdict| GpuStressReport { verdict, ..GpuStressReport::before(&settings) };
        let lost = Finding::LostProgress { waiting_tile: 2, missing_tile: 1, waits: 1 };
        let killed = |how| StressOutcome::Killed { how, at_run: 1, seed: 1, seconds: 0.1 };
        let wrong = Finding::Mismatch { run: 0, wrong_runs: 1, wrong_elements: 1, first_index: 0 };
        let sharing = RwLock::new(());
        for (found, looks) in [(lost.clone(), 2), (Finding::Hung { seconds: 30.0 }, 2), (wrong, 1)] {
            let looked = Counter::new(0);
            let end = looked_for(
                &sharing,
                || false,
                || {
                    let is_alone = sharing.try_read().is_err();
                    looked.set(looked.get() + 1);
                    Ok(report(if is_alone { StressOutcome::Survived { runs: 9 } } else { killed(found.clone()) }))
                },
            );
            let verdict = end.expect("a report").verdict;
            assert_eq!((looked.get(), verdict == StressOutcome::Survived { runs: 9 }), (looks, looks == 2));
        }
    }
}
