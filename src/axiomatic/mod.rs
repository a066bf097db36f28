//! Every execution of a small program under the PTX memory consistency model, and the protocol between the blocks
//! of a scan checked by it.
//!
//! [`program`] holds programs, [`axioms`] the model and the search, [`litmus`] the tests with published verdicts that
//! the search must reproduce.

pub mod axioms;
pub mod extract;
pub mod litmus;
pub mod program;
pub mod protocol;
