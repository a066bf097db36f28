//! The kernels as text: their sources, the faults that they can be given on purpose, and where compiled ones are kept.

#[cfg(any(feature = "cuda", all(feature = "cpu", feature = "lab")))]
pub(crate) mod cache;
#[cfg(feature = "lab")]
pub mod mutant;
pub mod own;
pub mod sources;
// For its tests; `build.rs` weaves.
#[cfg(all(test, feature = "lab"))]
mod weave;
