//! The column "TSan": drawn cases in a program that ThreadSanitizer watches.

use super::side_by_side::side_by_side;
use crate::lab::stress::Mutant;
use crate::lab::stress::detector::{CannotRun, Cell, Detector, Facts, Found, Limits};
use crate::lab::stress::thread_sanitizer::{Search, ThreadSanitizer, ThreadSanitizerError, search};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a case of ThreadSanitizer begins with on the command line.
pub const THREAD_SANITIZER_CASE: &str = "thread-sanitizer ";

/// Drawn cases in a program that ThreadSanitizer watches.
pub(super) struct Sanitized {
    detector: ThreadSanitizer,
    /// Schedules of all mutants.
    schedules: AtomicU64,
}

impl Sanitized {
    /// Schedules of a mutant. It goes by happens-before and not by what a schedule brings about, so it needs few.
    const SCHEDULES: u64 = 100;

    pub(super) fn new() -> Result<Self, String> {
        let detector = ThreadSanitizer::new().map_err(|error| error.to_string())?;
        Ok(Self { detector, schedules: AtomicU64::new(0) })
    }

    fn search(&self, mutant: Option<&'static Mutant>, limits: &Limits) -> Cell {
        // The kernels as they are over as many as all mutants together.
        let enough = match mutant {
            Some(_) => Self::SCHEDULES,
            None => self.schedules.load(Ordering::Relaxed).max(Self::SCHEDULES),
        };
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
}

impl Detector for Sanitized {
    /// A process is one thread, and most mutants take one process.
    fn examine_all(&mut self, mutants: &[&'static Mutant], limits: &Limits, found: &Found) -> Result<(), CannotRun> {
        let one_thread = Limits { threads: 1, ..*limits };
        side_by_side(mutants, limits, |mutant| {
            let cell = self.search(Some(mutant), &one_thread);
            self.schedules.fetch_add(cell.runs().unwrap_or(0), Ordering::Relaxed);
            found(mutant, cell);
        });
        Ok(())
    }

    fn examine_unmutated(&mut self, limits: &Limits) -> Result<Cell, CannotRun> {
        Ok(self.search(None, limits))
    }

    fn facts(&self) -> Facts {
        vec![("ThreadSanitizer's compiler".to_owned(), self.detector.compiler().to_owned())]
    }
}
