//! The column "GPU": each mutant in a process of its own.

use super::side_by_side::side_by_side;
use crate::cuda::Compiler;
use crate::kernels::mutant::Mutant;
use crate::lab::cuda::CudaDevice;
use crate::lab::device::Device as _;
use crate::lab::stress::detector::{CannotRun, Cell, Detector, Facts, Found, Limits};
use crate::lab::stress::gpu::{GpuStressSettings, StressCase, StressOutcome, child};
use crate::lab::stress::scan_case::problems_of_all;
use crate::lab::workload::ProblemKind;
use std::path::PathBuf;

/// Processes that share the GPU in turns. A tile that waits goes on waiting while the others have theirs, and with more of them might
/// do so for longer than a tile may (`pace` in `gpu/settings.rs`).
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
    ask: Ask,
}

impl OnGpu {
    pub(super) fn new(problems: &[ProblemKind], at_once: usize, ask: Ask) -> Result<Self, String> {
        let device = CudaDevice::open(0).map_err(|error| error.to_string())?;
        // Where there is none, no process could compile anything.
        Compiler::new().map_err(|error| error.to_string())?;
        let program = child::program().map_err(|error| error.to_string())?;
        let (problems, of_unmutated) = (problems.to_vec(), problems.to_vec());
        Ok(Self { problems, of_unmutated, program, gpu: device.description().name, at_once, ask })
    }
}

impl Detector for OnGpu {
    /// Most of a process's time is its start and its compiling: those of all mutants go on side by side.
    fn examine_all(&mut self, mutants: &[&'static Mutant], limits: &Limits, found: &Found) -> Result<(), CannotRun> {
        let (shown, others): (Vec<&'static Mutant>, Vec<_>) =
            mutants.iter().partition(|mutant| StressCase::can_draw(&self.problems, mutant));
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
        match child::stress_in_child(&on_gpu.program, &settings(mutant, problems, limits), None) {
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
