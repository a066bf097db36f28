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
mod test;

pub use parse::LitmusError;
pub use published::TESTS;
pub use test::{Answer, Litmus, Origin, Verdict};

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
    use super::parse::parse;
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
