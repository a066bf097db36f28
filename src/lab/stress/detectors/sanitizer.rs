//! The column "sanitizer": compute-sanitizer over a few runs of each mutant.

use super::gpu::{NOT_ON_ONE_GPU, OnGpu};
use super::side_by_side::side_by_side;
use crate::kernels::mutant::Mutant;
use crate::lab::stress::detector::{CannotRun, Cell, Detector, Facts, Limits};
use crate::lab::stress::gpu::StressCase;
use crate::lab::stress::gpu::sanitizer::{SanitizerReport, Tool, find, sanitize};
use crate::lab::stress::scan_case::problems_of_all;
use crate::lab::workload::ProblemKind;
use std::collections::HashMap;
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
    reports: HashMap<&'static str, Vec<Result<SanitizerReport, String>>>,
}

impl UnderSanitizer {
    pub(super) fn new(problems: &[ProblemKind]) -> Result<Self, String> {
        find().ok_or("compute-sanitizer was not found on the path, nor in CUDA_HOME or /usr/local/cuda")?;
        let OnGpu { problems, program, gpu, .. } = OnGpu::new(problems)?;
        Ok(Self { of_unmutated: problems.clone(), problems, program, gpu, reports: HashMap::new() })
    }

    fn can_draw(&self, mutant: &'static Mutant) -> bool {
        StressCase::can_draw(&self.problems, mutant)
    }

    /// All tools over all of `mutants`, some processes at once.
    fn examine_all(
        &self,
        mutants: &[Option<&'static Mutant>],
        runs: u64,
        limits: &Limits,
    ) -> Vec<(Option<&'static Mutant>, Result<SanitizerReport, String>)> {
        let work: Vec<_> =
            mutants.iter().flat_map(|&mutant| Tool::ALL.iter().map(move |&tool| (tool, mutant))).collect();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        side_by_side(&work, processors.min(SANITIZERS_AT_ONCE), |(tool, mutant)| {
            let problems = if mutant.is_some() { &self.problems } else { &self.of_unmutated };
            let report = sanitize(&self.program, tool, problems, mutant, runs, limits);
            (mutant, report.map_err(|error| error.to_string()))
        })
    }
}

impl Detector for UnderSanitizer {
    /// Most of a process's time is its start: that of all goes on side by side.
    fn prepare(&mut self, mutants: &[&'static Mutant], limits: &Limits) -> Result<(), String> {
        let shown: Vec<&'static Mutant> = mutants.iter().copied().filter(|mutant| self.can_draw(mutant)).collect();
        if !shown.is_empty() {
            self.of_unmutated = problems_of_all(&self.problems, &shown);
        }
        let all: Vec<_> = shown.into_iter().map(Some).collect();
        for (mutant, report) in self.examine_all(&all, SANITIZED_RUNS, limits) {
            if let Some(mutant) = mutant {
                self.reports.entry(&mutant.name).or_default().push(report);
            }
        }
        Ok(())
    }

    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Result<Cell, CannotRun> {
        if mutant.is_some_and(|mutant| !self.can_draw(mutant)) {
            return Ok(Cell::NotModelled { why: NOT_ON_ONE_GPU.to_owned() });
        }
        let reports = match mutant.and_then(|mutant| self.reports.remove(mutant.name.as_str())) {
            Some(reports) => reports,
            None => {
                let runs = if mutant.is_some() { SANITIZED_RUNS } else { limits.schedules };
                let reports = self.examine_all(&[mutant], runs, limits);
                reports.into_iter().map(|(_, report)| report).collect()
            }
        };
        Ok(cell_of(reports, limits.first_seed))
    }

    fn facts(&self) -> Facts {
        vec![("GPU".to_owned(), self.gpu.clone())]
    }
}

/// What the tools say together: the first error in the order of the tools, or how many runs all of them passed.
fn cell_of(reports: Vec<Result<SanitizerReport, String>>, seed: u64) -> Cell {
    let mut reports = match reports.into_iter().collect::<Result<Vec<_>, _>>() {
        Ok(reports) => reports,
        Err(why) => return Cell::NotRun { why },
    };
    reports.sort_by_key(|report| Tool::ALL.iter().position(|&tool| tool == report.tool));
    let seconds = reports.iter().map(|report| report.seconds).sum();
    let runs = reports.iter().map(|report| report.runs).min().unwrap_or(0);
    if let Some(SanitizerReport { tool, errors: Some(errors), message, command, seconds, runs, .. }) =
        reports.iter().find(|report| report.errors.is_some_and(|errors| errors > 0))
    {
        return Cell::Killed {
            seed: Some(seed),
            runs: *runs,
            seconds: *seconds,
            how: format!("{tool}, {errors} error(s): {message}"),
            reproduce: Some(command.clone()),
        };
    }
    match reports.iter().find(|report| report.errors.is_none()) {
        Some(report) => Cell::NotRun { why: format!("{}: {}", report.tool, report.message) },
        None => Cell::Survived { runs, seconds },
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
            cell_of(vec![report(Tool::Memcheck, errors[0]), report(Tool::Racecheck, errors[1])], 7)
        };
        assert!(matches!(all([Some(0), Some(0)]), Cell::Survived { runs: 24, .. }));
        assert!(matches!(all([Some(0), Some(3)]), Cell::Killed { how, .. } if how.contains("racecheck, 3")));
        assert!(matches!(all([Some(0), None]), Cell::NotRun { .. }));
        assert!(matches!(all([None, Some(1)]), Cell::Killed { .. }));
        assert!(matches!(cell_of(vec![Err("no process".to_owned())], 7), Cell::NotRun { .. }));
    }
}
