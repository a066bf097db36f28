//! The column "TSan": drawn cases in a program that ThreadSanitizer watches.

use super::side_by_side::side_by_side;
use crate::lab::stress::Mutant;
use crate::lab::stress::detector::{CannotRun, Cell, Detector, Facts, Limits};
use crate::lab::stress::thread_sanitizer::{Search, ThreadSanitizer, ThreadSanitizerError, search};
use std::collections::BTreeMap;

/// What a case of ThreadSanitizer begins with on the command line.
pub const THREAD_SANITIZER_CASE: &str = "thread-sanitizer ";

/// Drawn cases in a program that ThreadSanitizer watches.
pub(super) struct Sanitized {
    detector: ThreadSanitizer,
    /// What is known of mutants, by their names.
    cells: BTreeMap<&'static str, Cell>,
    /// Schedules of all mutants.
    schedules: u64,
}

impl Sanitized {
    /// Schedules of a mutant. It goes by happens-before and not by what a schedule brings about, so it needs few.
    const SCHEDULES: u64 = 100;

    pub(super) fn new() -> Result<Self, String> {
        let detector = ThreadSanitizer::new().map_err(|error| error.to_string())?;
        Ok(Self { detector, cells: BTreeMap::new(), schedules: 0 })
    }

    fn search(&self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell {
        // The kernels as they are over as many as all mutants together.
        let enough = if mutant.is_some() { Self::SCHEDULES } else { self.schedules.max(Self::SCHEDULES) };
        let limits = Limits { schedules: limits.schedules.min(enough), ..*limits };
        match search(&self.detector, mutant, limits) {
            Ok(Search { found: Some(found), schedules, elapsed }) => Cell::Killed {
                seed: Some(found.case.seed),
                runs: schedules,
                seconds: elapsed.as_secs_f64(),
                how: found.ending.to_string(),
                reproduce: Some(format!("lookback stress --replay '{THREAD_SANITIZER_CASE}{}'", found.case)),
            },
            Ok(Search { found: None, schedules, elapsed }) => {
                Cell::Survived { runs: schedules, seconds: elapsed.as_secs_f64() }
            }
            Err(ThreadSanitizerError::NotCovered(why)) => Cell::NotModelled { why },
            Err(error) => Cell::NotRun { why: error.to_string() },
        }
    }

    fn keep(&mut self, mutant: &'static Mutant, cell: Cell) {
        if let Cell::Killed { runs, .. } | Cell::Survived { runs, .. } = cell {
            self.schedules += runs;
        }
        self.cells.insert(&mutant.name, cell);
    }
}

impl Detector for Sanitized {
    /// A process is one thread, and most mutants take one process.
    fn prepare(&mut self, mutants: &[&'static Mutant], limits: &Limits) -> Result<(), String> {
        let one_thread = Limits { threads: 1, ..*limits };
        let cells = side_by_side(mutants, limits.threads, |mutant| (mutant, self.search(Some(mutant), &one_thread)));
        for (mutant, cell) in cells {
            self.keep(mutant, cell);
        }
        Ok(())
    }

    fn examine(&mut self, mutant: Option<&'static Mutant>, limits: &Limits) -> Result<Cell, CannotRun> {
        Ok(match mutant {
            None => self.search(None, limits),
            Some(mutant) => match self.cells.get(mutant.name.as_str()) {
                Some(cell) => cell.clone(),
                None => {
                    let cell = self.search(Some(mutant), limits);
                    self.keep(mutant, cell.clone());
                    cell
                }
            },
        })
    }

    fn facts(&self) -> Facts {
        vec![("ThreadSanitizer's compiler".to_owned(), self.detector.compiler().to_owned())]
    }
}
