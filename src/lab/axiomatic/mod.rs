//! Every execution of a small program under the PTX memory consistency model, and the protocol between the blocks of
//! a scan checked by it.
//!
//! | module | what it does |
//! |---|---|
//! | [`program`], [`skeleton`] | small concurrent programs, and the events of each way through them |
//! | [`axioms`] | the axioms, and the search for all executions that keep them |
//! | [`litmus`] | tests with published verdicts, which the search must reproduce |
//! | `ptx`, `address` | the instructions of a kernel, and what their registers hold |
//! | [`sequences`], [`extract`] | the protocol of a kernel, as steps and read from its PTX |
//! | `ring`, `look_ahead` | the same for the warps of a block of `lookahead`: their steps, and the programs |
//! | [`protocol`] | the programs made of it, and what each execution must keep |
//! | [`platform`] | order and operands of the instructions that only a GPU runs: fences, barriers and copies |
//! | [`arithmetic`] | what such instructions compute, for a warp |
//! | `loom_model` | the same protocol on loom, which has C11's memory model (feature `cli`) |
//!
//! Nowhere is there a table of orderings: a kernel with a fault is checked by compiling it with the fault. What is
//! shown and what is not: `docs/memory-model.md`.
//!
//! ```
//! use lookback::lab::axiomatic::litmus::{TESTS, Verdict};
//!
//! let test = TESTS.iter().find(|test| test.name == "SB+weak").expect("a test of that name");
//! assert_eq!(test.run()?.verdict, Verdict::Allowed);
//! # Ok::<(), lookback::lab::axiomatic::litmus::LitmusError>(())
//! ```

mod address;
pub mod arithmetic;
pub mod axioms;
pub mod extract;
pub mod litmus;
mod look_ahead;
pub mod loom_model;
mod model;
pub mod platform;
pub mod program;
pub mod protocol;
mod ptx;
mod reader;
mod ring;
pub mod sequences;
pub mod skeleton;
