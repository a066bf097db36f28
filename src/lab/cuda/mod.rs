//! The laboratory's side of CUDA.

pub mod device;
pub(crate) mod graph;
pub(crate) mod harness;
mod inputs;
mod memory;
pub mod profiler;
pub mod timing;
mod tracing;

pub use device::CudaDevice;
