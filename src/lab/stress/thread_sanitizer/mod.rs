//! The detector "ThreadSanitizer": the same kernels, compiled with `-fsanitize=thread`, each CUDA thread a fiber
//! of ThreadSanitizer. A second opinion beside the CPU device's own model of weak memory.
//!
//! `cuda/host/thread_sanitizer/` is the program that runs them; it says what ThreadSanitizer is told and what it
//! cannot see. It is compiled on demand by the machine's C++ compiler and kept in the user's cache folder, so the
//! first [`ThreadSanitizer::new`] takes about ten seconds and needs g++ or clang with the sanitizer's library.
//!
//! What it sees: data races between plain accesses, or a plain and an atomic one, that no release and acquire, no
//! fence and no barrier orders, asynchronous copies and stores into other blocks of a cluster among them, under any schedule that comes near them. What it does not see: orders that matter only
//! between atomics (a descriptor that is one word needs none), stale values, and whatever takes more blocks at once
//! than [`Job::THREADS_AT_ONCE`] threads make, such as a look-back of two windows or look-ahead by two blocks.
//!
//! Clean is said only by a process that, on the same fibers, has then found the race of a mutant that must be
//! found: the canary.

mod job;
mod program;
mod report;
mod search;

pub use job::{Job, ThreadSanitizerError};
pub use report::{AccessSite, Counts, Ending, Race};
pub use search::{Found, Search, draw, search};

use program::Program;

/// The compiled program, ready to run.
#[derive(Debug)]
pub struct ThreadSanitizer {
    program: Program,
}

impl ThreadSanitizer {
    /// Finds the program in the cache folder, or compiles it (about ten seconds), and sees whether it runs.
    ///
    /// # Errors
    /// When there is no compiler or no ThreadSanitizer, or it does not run on this machine.
    pub fn new() -> Result<Self, ThreadSanitizerError> {
        Ok(Self { program: Program::find()? })
    }

    /// The compiler that made it, in its own words.
    pub fn compiler(&self) -> &str {
        self.program.compiler()
    }

    /// Runs the job until the first schedule that is not clean.
    ///
    /// # Errors
    /// When the job is beyond this detector, the process fails, or it would end clean and the canary was not
    /// found.
    pub fn run(&self, job: &Job) -> Result<Ending, ThreadSanitizerError> {
        self.run_all(std::slice::from_ref(job)).map(|(ending, _)| ending)
    }

    /// Runs jobs one after the other in one process, which takes less time than one each, until the first that is not
    /// clean: how it ended and its place among them. Clean is said of all together.
    ///
    /// # Errors
    /// As [`ThreadSanitizer::run`].
    pub fn run_all(&self, jobs: &[Job]) -> Result<(Ending, usize), ThreadSanitizerError> {
        let text = jobs.iter().map(Job::text).collect::<Result<String, _>>()?;
        if text.is_empty() {
            return Err(ThreadSanitizerError::NotCovered(String::from("there is nothing to run")));
        }
        self.program.run(&text, jobs.iter().map(|job| job.time_limit).max().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detector_that_sleeps_is_an_error() {
        let mut detector = match ThreadSanitizer::new() {
            Ok(detector) => detector,
            Err(error) => {
                let required = std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() == Ok("1");
                assert!(!required, "LOOKBACK_REQUIRE_THREAD_SANITIZER is 1: {error}");
                println!("skipped: {error}");
                return;
            }
        };
        let job = Job::of_case(&draw(None, 0).expect("a case"), 1).expect("a job");
        assert!(detector.run(&job).expect("a verdict").is_clean());
        detector.program.options = "report_bugs=0";
        assert!(matches!(detector.run(&job), Err(ThreadSanitizerError::Asleep)));
    }
}
