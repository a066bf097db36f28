//! The laboratory's side of CUDA.

pub mod device;
pub mod timing;

pub use device::CudaDevice;
