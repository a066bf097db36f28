//! CUDA: finding it, compiling kernels on demand, and the scans that a cudarc program calls.
//!
//! | module | what it does |
//! |---|---|
//! | [`toolkit`] | finds the driver, NVRTC and nvcc; nothing here panics where they are missing |
//! | [`sources`] | the kernel sources, embedded in the binary |
//! | [`compile`] | kernels compiled by NVRTC, kept on disk |
//! | [`ahead`] | [`Ahead`]: the kernels of a program of yours, made where there is no GPU |
//! | [`scanner`] | [`Scanner`]: device-wide scans for cudarc programs |
//! | [`chunked`] | [`ChunkedScan`]: scans of arrays that are larger than the device's memory |
//! | `ranks` | `GpuRanks`: scans over several GPUs by NCCL and in each other's memory (feature `nccl`) |

pub mod ahead;
pub mod chunked;
pub mod compile;
pub mod error;
pub(crate) mod launch;
#[cfg(feature = "nccl")]
mod mailbox;
pub(crate) mod memory;
#[cfg(feature = "nccl")]
mod nccl;
#[cfg(feature = "nccl")]
pub mod ranks;
mod run;
pub mod scanner;
pub mod toolkit;
pub(crate) mod workspace;

pub use crate::gpu::Architecture;
pub use crate::kernels::sources;
pub use ahead::Ahead;
pub use chunked::ChunkedScan;
pub use compile::{Compiler, KernelResources};
pub use error::CudaError;
#[cfg(feature = "nccl")]
pub use ranks::GpuRanks;
pub use run::{GpuMemory, OnStream, Run, ScanElement, StreamLender};
pub use scanner::Scanner;
pub use toolkit::{Nvrtc, SearchPath};
