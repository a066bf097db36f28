//! Decoupled look-back prefix scans on NVIDIA GPUs, beside every textbook strategy, and a CPU device
//! that runs the very same kernels.
//!
//! Each room knows those earlier in this table and none later in it; `tests/rooms.rs` reads the imports and says so.
//!
//! | room | what it is for |
//! |---|---|
//! | [`abi`] | the contract with the kernels, generated from `cuda/abi.h` |
//! | [`names`] | enums that people call by name |
//! | [`text`] | sizes, numbers and lines as people write and read them |
//! | [`mod@file`] | files that a user names: a device or what is too large is refused unread |
//! | [`ranks`] | several devices, of one process or many: who is there, who is lost |
//! | [`gpu`] | architecture and limits of a GPU |
//! | [`element`] | element types, operators, and reference scans of them |
//! | [`strategy`] | one row a strategy; its configuration, its plan of launches, tuning tables |
//! | [`run`] | what is asked of a scanner, wherever arrays lie |
//! | [`out_of_core`] | arrays of any size in chunks: how they are divided, and reading, scanning and writing at once |
//! | [`kernels`] | the kernels' sources, their faults, and where compiled ones are kept |
//! | `cuda` | toolkit, compiler, launches and the public `Scanner` (feature `cuda`) |
//! | `cpu` | the executor of the same kernels on the CPU (feature `cpu`) |
//! | `lab` | devices, verification, measuring, stress, memory models, reports (feature `lab`) |
//! | `cli` | the program `lookback` (feature `cli`) |

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
