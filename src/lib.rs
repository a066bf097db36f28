//! Decoupled look-back prefix scans on NVIDIA GPUs, beside every textbook strategy, and a CPU device
//! that runs the very same kernels.
//!
//! Each module is a room, which knows those earlier in the table of `docs/architecture.md` and none later; `tests/rooms.rs` reads the
//! imports and says so. `cuda`, `cpu`, `lab` and `cli` are there with the features of that name.

pub mod abi;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod element;
pub mod file;
pub mod gpu;
pub mod kernels;
#[cfg(feature = "lab")]
pub mod lab;
pub mod names;
pub mod out_of_core;
pub mod ranks;
pub mod run;
pub mod strategy;
pub mod text;
