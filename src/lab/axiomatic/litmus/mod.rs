//! Litmus tests with published verdicts, which the enumerator must reproduce before anything it says of the
//! descriptor protocol counts.
//!
//! A test is a few threads, a line each, in the style of PTX: `cta 0: st.weak [x], 1; st.release.gpu [y], 1`, and an
//! outcome. It is *allowed* if some consistent execution ends in the outcome and *forbidden* if none does. The tests
//! are written for this crate; what is taken from elsewhere is the verdict, and each test names whose it is:
//!
//! - **mixedproxy**: `NVlabs/mixedproxy`, directory `tests`: NVIDIA's tests of its Alloy model.
//! - **Dat3M**: `hernanponcedeleon/Dat3M`, directory `litmus/PTX`, with the results that
//!   `dartagnan/src/test/resources/PTXv6_0-expected.csv` asserts.
//! - **compound**: `goens/lost-pop-lean`, `Litmus/PTX.lean`, the tests of "Compound Memory Models" (PLDI 2023).
//! - **PTX ISA**: the litmus tests in the chapter "Memory Consistency Model" of NVIDIA's manual.
//! - **from the axioms**: no published table has this very test; the sentence of the manual that decides it is named.
//!
//! Where two sources disagree the test says so.

mod parse;
mod published;

pub use published::TESTS;

use super::axioms::{self, ModelError, Statistics};
use crate::names::named;
use parse::parse;
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

/// A test that cannot be read or searched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LitmusError {
    /// A part of its text is not in the form of this module.
    #[error("'{text}' is not {expected}")]
    Syntax { text: String, expected: &'static str },
    /// Its program cannot be searched.
    #[error(transparent)]
    Model(#[from] ModelError),
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

/// All tests as a Markdown table, as `docs/memory-model.md` has it.
pub fn table() -> String {
    let mut text = String::from("| test | outcome | verdict | source |\n|---|---|---|---|\n");
    for test in TESTS {
        let Litmus { name, outcome, verdict, origin, source, .. } = test;
        text += &format!("| {name} | `{outcome}` | {verdict} | {origin}: {source} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_most_verdicts_are_listed_somewhere() {
        for (index, test) in TESTS.iter().enumerate() {
            assert!(TESTS[index + 1..].iter().all(|other| other.name != test.name), "{}", test.name);
        }
        let listed = TESTS.iter().filter(|test| test.origin != Origin::Axioms).count();
        assert!(listed >= 30, "{listed} of {}", TESTS.len());
    }

    #[test]
    fn what_is_no_test_is_an_error() {
        for text in ["no thread", "cta x: st.weak [x], 1", "cta 0: jump", "cta 0: ld.weak q, [x]", "cta 0: atom.add"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let unknown = Litmus { outcome: "r7 == 1", ..TESTS[0] };
        assert!(matches!(unknown.run(), Err(LitmusError::Syntax { .. })));
    }
}
