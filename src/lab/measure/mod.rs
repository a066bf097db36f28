//! Measurements that can be believed.
//!
//! A time is worth something if one knows what was timed, that the result was right, what else went on, and
//! how sure it is. So every element of a result is verified before it is timed (except a bound's, which is wrong by
//! design); everything that is compared is sampled in common rounds, in shuffled order; the floor, a copy, is always
//! among it; the clock is measured on the device around every sample; sampling stops by noise, not by count; and every
//! raw sample is kept beside the machine, the program and the command. `reports/METHOD.md` says it at length, and
//! what not to trust all the same.
//!
//! | module | what it does |
//! |---|---|
//! | [`sweep`] | what is measured: TOML files in `sweeps/` |
//! | [`point`] | what is measured against each other on one input |
//! | [`expansion`] | from a sweep file to its points |
//! | [`input`] | inputs that are functions of an index |
//! | [`sampling`] | samples in rounds; knows no GPU |
//! | [`stopping`] | when samples are enough |
//! | [`clocks`] | which samples count |
//! | [`run`] | from a sweep file to rows |
//! | [`record`] | the file that a sweep leaves, and how to read it |
//! | [`call_times`] | what a program waits for on the host |
//! | [`environment`] | the machine and the program |
//! | [`copies`] | copy kernels: what a kernel can reach |
//! | [`compare`] | two records: faster, slower, same, unclear |
//! | [`targets`] | what this crate wants to reach, and whether a record does |
//! | [`tune`] | candidates, and the tuning table that follows from their record |
//! | [`selftest`] | the timer measured by kernels of known time |
//!
//! A GPU stands behind the trait [`run::Laboratory`].

pub mod call_times;
pub mod clocks;
pub mod compare;
pub mod copies;
pub mod environment;
pub mod expansion;
pub mod input;
pub mod point;
pub mod record;
pub mod run;
pub mod sampling;
pub mod selftest;
pub mod stopping;
pub mod sweep;
pub mod targets;
pub mod tune;
