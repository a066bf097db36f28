//! The CUDA device: finding CUDA, compiling kernels on demand, running and verifying scans, and the
//! scans that a cudarc program calls.
//!
//! | module | what it does |
//! |---|---|
//! | [`toolkit`] | finds the driver, NVRTC and nvcc; nothing here panics where they are missing |
//! | [`sources`] | the kernel sources, embedded in the binary |
//! | [`compile`] | kernels compiled by NVRTC, kept on disk |
//! | [`device`] | [`CudaDevice`]: the laboratory's device |
//! | [`scanner`] | [`Scanner`]: device-wide scans for cudarc programs |
//! | `stress` | launches disturbed on purpose, of kernels with and without faults (feature `cli`) |
//! | `timing` | what [`crate::measure`] measures with (feature `cli`) |

pub mod compile;
pub mod device;
pub mod error;
mod launch;
mod memory;
pub mod scanner;
pub mod sources;
#[cfg(feature = "cli")]
pub mod stress;
#[cfg(feature = "cli")]
pub mod timing;
pub mod toolkit;
mod workspace;

pub use compile::{Architecture, Compiler, KernelResources};
pub use device::CudaDevice;
pub use error::CudaError;
pub use scanner::{ScanElement, Scanner};
pub use toolkit::{Nvrtc, SearchPath};
