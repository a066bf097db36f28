//! The laboratory's side of CUDA.

pub mod device;
pub(crate) mod graph;
pub(crate) mod harness;
mod inputs;
mod memory;
pub mod profiler;
#[cfg(feature = "nccl")]
pub mod ranks;
pub mod timing;
mod tracing;

pub use device::CudaDevice;
