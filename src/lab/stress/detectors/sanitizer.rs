//! The column "sanitizer": compute-sanitizer over a few runs of each mutant.

use super::gpu::OnGpu;
use crate::lab::stress::detector::Cell;
use crate::lab::stress::gpu::sanitizer::{SanitizerReport, Tool, find, sanitize};
use crate::lab::workload::ProblemKind;

/// Runs of a mutant.
const SANITIZED_RUNS: u64 = 24;
/// A process of compute-sanitizer holds about as much host memory as a compiler.
const SANITIZERS_AT_ONCE: usize = 12;

/// Every tool that can judge them over a few runs of stress, one after the other until one of them reports something.
pub(super) fn sanitized(problems: &[ProblemKind]) -> Result<OnGpu, String> {
    find().ok_or("compute-sanitizer was not found on the path, nor in CUDA_HOME or /usr/local/cuda")?;
    OnGpu::new(problems, SANITIZERS_AT_ONCE, |on_gpu, mutant, problems, limits| {
        let runs = if mutant.is_some() { SANITIZED_RUNS } else { limits.schedules };
        let can_judge = |tool: &&Tool| mutant.is_none_or(|mutant| tool.can_judge(problems, mutant, limits));
        let reports = Tool::ALL.iter().filter(can_judge).take_while(|_| !limits.is_stopped()).map(|&tool| {
            let report = sanitize(&on_gpu.program, tool, problems, mutant, runs, limits);
            report.map_err(|error| error.to_string())
        });
        cell_of(reports, limits.first_seed)
    })
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
        None if passed == u64::MAX => Cell::NotRun { why: "no tool can judge it".to_owned() },
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
        assert!(matches!(cell_of(std::iter::empty(), 7), Cell::NotRun { .. }), "nothing was asked");
        assert!(matches!(cell_of([Err("no process".to_owned())].into_iter(), 7), Cell::NotRun { .. }));
    }
}
