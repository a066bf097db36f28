//! One litmus test, and its answer.

use super::parse::{LitmusError, parse};
use crate::lab::axiomatic::axioms::{self, Statistics};
use crate::names::named;
use std::ops::ControlFlow;

named! {
    /// Whether an outcome can happen.
    pub enum Verdict as "verdict" {
        /// Some consistent execution ends so.
        Allowed = "allowed",
        /// None does.
        Forbidden = "forbidden",
    }
}

named! {
    /// Where a verdict was published.
    pub enum Origin as "origin of a verdict" {
        /// `NVlabs/mixedproxy`
        MixedProxy = "mixedproxy",
        /// `hernanponcedeleon/Dat3M`
        Dat3m = "Dat3M",
        /// `goens/lost-pop-lean`
        Compound = "compound",
        /// A litmus test of the PTX ISA manual.
        PtxIsa = "PTX ISA",
        /// A sentence of the PTX ISA manual, applied to a test that no table has.
        Axioms = "from the axioms",
    }
}

/// One litmus test.
#[derive(Debug, Clone, Copy)]
pub struct Litmus {
    /// Its name here.
    pub name: &'static str,
    /// The threads, a line each.
    pub threads: &'static str,
    /// What is asked: `r0 == 1 && [x] == 2`. A location stands for its value at the end.
    pub outcome: &'static str,
    /// The published answer.
    pub verdict: Verdict,
    /// Whose answer.
    pub origin: Origin,
    /// Where exactly.
    pub source: &'static str,
}

/// What one test came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What the enumerator says.
    pub verdict: Verdict,
    /// How much it looked at.
    pub statistics: Statistics,
}

impl Litmus {
    /// Searches all executions.
    ///
    /// # Errors
    /// When the text is not in the form of this module or the program is too large.
    pub fn run(&self) -> Result<Answer, LitmusError> {
        let parsed = parse(self.threads)?;
        let outcome = parsed.outcome(self.outcome)?;
        let mut verdict = Verdict::Forbidden;
        let statistics = axioms::search(&parsed.program, &mut |execution| {
            if outcome.iter().all(|term| term.holds(execution)) {
                verdict = Verdict::Allowed;
            }
            ControlFlow::Continue(())
        })?;
        Ok(Answer { verdict, statistics })
    }
}
