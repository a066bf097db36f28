//! Decoupled look-back prefix scans on NVIDIA GPUs, beside every textbook strategy, and a CPU device
//! that runs the very same kernels.

pub mod abi;
pub mod axiomatic;
#[cfg(any(feature = "cpu", feature = "cuda"))]
mod cache;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod dataset;
pub mod device;
pub mod element;
pub mod kernel_sources;
#[cfg(feature = "cli")]
pub mod measure;
pub mod monoid;
pub mod peers;
pub mod plan;
#[cfg(feature = "cli")]
pub mod record;
#[cfg(feature = "cli")]
pub mod report;
pub mod strategy;
pub mod stress;
pub mod tuning;
pub mod verify;
