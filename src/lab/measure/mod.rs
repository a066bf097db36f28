//! Measurements that can be believed.
//!
//! A time is worth something if one knows what was timed, that the result was right, what else went on, and
//! how sure it is. So nothing is timed before every element of its result was verified (but a bound, which is wrong
//! by design); everything that is compared is sampled in common rounds, in shuffled order; the floor, a copy, is always among it; the clock
//! is measured on the device around every sample; sampling stops by noise, not by count; and every raw
//! sample is kept beside the machine, the program and the command. `reports/METHOD.md` says it at length, and
//! what not to trust all the same.
//!
//! | module | what it does |
//! |---|---|
//! | [`sweep`] | what is measured: TOML files in `sweeps/` |
//! | [`input`] | inputs that are functions of an index |
//! | [`sampling`] | rounds, stopping rules, discarding; knows no GPU |
//! | [`statistics`] | medians, how sure they are, how two sets compare |
//! | [`run`] | from a sweep file to rows |
//! | [`record`] | the file that a sweep leaves, and how to read it |
//! | [`environment`] | the machine and the program |
//! | [`compare`] | two records: faster, slower, same, unclear |
//! | [`targets`] | what this crate wants to reach, and whether a record does |
//! | [`tune`] | candidates, and the tuning table that follows from their record |
//! | [`selftest`] | the timer measured by kernels of known time |
//!
//! The GPU behind it is [`crate::lab::cuda::timing`].

pub mod compare;
pub mod environment;
pub mod input;
pub mod record;
pub mod run;
pub mod sampling;
pub mod selftest;
pub mod statistics;
pub mod sweep;
pub mod targets;
pub mod tune;
