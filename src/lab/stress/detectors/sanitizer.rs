//! The column "sanitizer": compute-sanitizer over a few runs of each mutant.

use super::gpu::{OnGpu, shown_on_one_gpu};
use super::side_by_side::side_by_side;
use crate::kernels::mutant::Mutant;
use crate::lab::stress::detector::{CannotRun, Cell, Detector, Facts, Found, Limits};
use crate::lab::stress::gpu::sanitizer::{SanitizerReport, Tool, find, sanitize};
use crate::lab::stress::scan_case::problems_of_all;
use crate::lab::workload::ProblemKind;
use std::path::PathBuf;

/// Runs of a mutant.
const SANITIZED_RUNS: u64 = 24;
/// A process of compute-sanitizer holds about as much host memory as a compiler.
const SANITIZERS_AT_ONCE: usize = 12;

/// Every tool over a few runs of stress on the first GPU.
pub(super) struct UnderSanitizer {
    problems: Vec<ProblemKind>,
    /// Those that the kernels as they are run.
    of_unmutated: Vec<ProblemKind>,
    program: PathBuf,
    gpu: String,
}

impl UnderSanitizer {
    pub(super) fn new(problems: &[ProblemKind]) -> Result<Self, String> {
        find().ok_or("compute-sanitizer was not found on the path, nor in CUDA_HOME or /usr/local/cuda")?;
        let OnGpu { problems, program, gpu, .. } = OnGpu::new(problems)?;
        Ok(Self { of_unmutated: problems.clone(), problems, program, gpu })
    }

    /// What the tools say, one after the other until one of them reports something.
    fn ask(&self, mutant: Option<&'static Mutant>, runs: u64, limits: &Limits) -> Cell {
        let problems = if mutant.is_some() { &self.problems } else { &self.of_unmutated };
        cell_of(
            Tool::ALL.iter().take_while(|_| !limits.is_stopped()).map(|&tool| {
                let report = sanitize(&self.program, tool, problems, mutant, runs, limits);
                report.map_err(|error| error.to_string())
            }),
            limits.first_seed,
        )
    }
}

impl Detector for UnderSanitizer {
    /// Most of a process's time is its start: those of all mutants go on side by side.
    fn examine_all(&mut self, mutants: &[&'static Mutant], limits: &Limits, found: &Found) -> Result<(), CannotRun> {
        let shown = shown_on_one_gpu(&self.problems, mutants, found);
        if !shown.is_empty() {
            self.of_unmutated = problems_of_all(&self.problems, &shown);
        }
        let limits = Limits { threads: limits.threads.min(SANITIZERS_AT_ONCE), ..*limits };
        side_by_side(&shown, &limits, |mutant| found(mutant, self.ask(Some(mutant), SANITIZED_RUNS, &limits)));
        Ok(())
    }

    fn examine_unmutated(&mut self, limits: &Limits) -> Result<Cell, CannotRun> {
        Ok(self.ask(None, limits.schedules, limits))
    }

    fn facts(&self) -> Facts {
        vec![("GPU".to_owned(), self.gpu.clone())]
    }
}

/// What the tools say together: the first error, or how many runs all of them passed. None is asked after one that reports.
fn cell_of(reports: impl Iterator<Item = Result<SanitizerReport, String>>, seed: u64) -> Cell {
    let (mut passed, mut total, mut silent) = (u64::MAX, 0.0, None);
    for report in reports {
        let SanitizerReport { tool, errors, message, command, seconds, runs, .. } = match report {
            Ok(report) => report,
            Err(why) => return Cell::NotRun { why },
        };
        match errors {
            None => silent = silent.or(Some(format!("{tool}: {message}"))),
            Some(0) => (passed, total) = (passed.min(runs), total + seconds),
            Some(errors) => {
                let how = format!("{tool}, {errors} error(s): {message}");
                return Cell::Killed { seed: Some(seed), runs, seconds, how, reproduce: Some(command) };
            }
        }
    }
    match silent {
        Some(why) => Cell::NotRun { why },
        None => Cell::Survived { runs: passed, seconds: total },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(tool: Tool, errors: Option<u64>) -> Result<SanitizerReport, String> {
        let (message, command) = ("Race reported".to_owned(), "compute-sanitizer".to_owned());
        Ok(SanitizerReport { tool, mutant: None, errors, message, seconds: 2.0, runs: 24, command })
    }

    #[test]
    fn one_tool_that_reports_kills_and_one_that_is_silent_is_no_pass() {
        let all = |errors: [Option<u64>; 2]| {
            cell_of([report(Tool::Memcheck, errors[0]), report(Tool::Racecheck, errors[1])].into_iter(), 7)
        };
        assert!(matches!(all([Some(0), Some(0)]), Cell::Survived { runs: 24, .. }));
        assert!(matches!(all([Some(0), Some(3)]), Cell::Killed { how, .. } if how.contains("racecheck, 3")));
        assert!(matches!(all([Some(0), None]), Cell::NotRun { .. }));
        assert!(matches!(all([None, Some(1)]), Cell::Killed { .. }));
        assert!(matches!(cell_of([Err("no process".to_owned())].into_iter(), 7), Cell::NotRun { .. }));
    }
}
