//! The columns "schedules" and "weak": drawn cases on the CPU device.

use super::side_by_side::side_by_side;
use crate::lab::cpu_kernels::kernel_body;
use crate::lab::stress::cpu::kernels_of;
use crate::lab::stress::detector::{CannotRun, Cell, Detector, Found, Limits};
use crate::lab::stress::scan_case::problems_of_all;
use crate::lab::stress::search::{Search, search};
use crate::lab::stress::{Case, Memory, Mutant};
use crate::lab::workload::ProblemKind;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Drawn cases on the CPU device.
pub(super) struct OnCpu {
    /// Those that are asked for.
    problems: Vec<ProblemKind>,
    /// Those that the kernels as they are run with: what faults are looked for in.
    of_unmutated: Vec<ProblemKind>,
    memory: Memory,
}

/// First cases of a fault whose kernels are compiled before it is looked for. Most faults show in fewer.
const CASES_COMPILED: u64 = 6;

impl OnCpu {
    pub(super) fn new(problems: &[ProblemKind], memory: Memory) -> Self {
        Self { problems: problems.to_vec(), of_unmutated: problems.to_vec(), memory }
    }

    /// Compiles the kernels that faults of other problems than the plain scan are looked for in, so that the time that a fault
    /// is given goes into runs; as long as these faults may take together.
    fn compile(&mut self, mutants: &[&'static Mutant], limits: &Limits) {
        let of_problems = |mutant: &&&'static Mutant| !mutant.when.problems.is_empty();
        let named: Vec<_> = mutants.iter().filter(of_problems).collect();
        let seeds = (0..CASES_COMPILED).map(|number| limits.first_seed.wrapping_add(number));
        let cases = named.iter().flat_map(|mutant| {
            seeds.clone().map(|seed| Case::draw_of(&self.problems, Some(mutant), self.memory, seed))
        });
        let kernels: HashSet<_> = cases.flat_map(|case| kernels_of(&case)).collect();
        let kernels: Vec<_> = kernels.into_iter().collect();
        let start = Instant::now();
        let together = Limits { time: limits.time.map(|time| time * named.len() as u32), ..*limits };
        // Where one cannot be compiled, none can, and the search says why.
        let has_failed = AtomicBool::new(false);
        side_by_side(&kernels, limits, |(problem, kernel)| {
            let is_over = has_failed.load(Ordering::Relaxed) || together.are_over(start);
            if !is_over && kernel_body(problem, kernel, true).is_err() {
                has_failed.store(true, Ordering::Relaxed);
            }
        });
        // The kernels as they are run as often with each problem as the faults do.
        if !named.is_empty() {
            self.of_unmutated = problems_of_all(&self.problems, mutants);
        }
    }

    fn search(&self, mutant: Option<&'static Mutant>, limits: &Limits) -> Result<Cell, CannotRun> {
        let problems = if mutant.is_some() { &self.problems } else { &self.of_unmutated };
        let Search { found, passed, elapsed, .. } = search(problems, mutant, &[self.memory], *limits, &|_| {})?;
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

impl Detector for OnCpu {
    fn examine_all(&mut self, mutants: &[&'static Mutant], limits: &Limits, found: &Found) -> Result<(), CannotRun> {
        let (shown, others): (Vec<&'static Mutant>, Vec<_>) =
            mutants.iter().partition(|mutant| Case::can_draw(&self.problems, mutant));
        let why = "no case of the problems asked for can show the fault";
        others.into_iter().for_each(|mutant| found(mutant, Cell::NotModelled { why: why.to_owned() }));
        self.compile(&shown, limits);
        for mutant in shown {
            if limits.is_stopped() {
                break;
            }
            found(mutant, self.search(Some(mutant), limits)?);
        }
        Ok(())
    }

    fn examine_unmutated(&mut self, limits: &Limits) -> Result<Cell, CannotRun> {
        self.search(None, limits)
    }
}
