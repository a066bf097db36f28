//! What can be missing or fail on the way to a CUDA kernel, and what to do about it.

use crate::gpu::Architecture;
use crate::kernels::sources::SourceMissing;
use crate::out_of_core::PlanError;
use crate::strategy::{CallError, ConfigError};
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult;
use std::path::PathBuf;

/// CUDA is missing, or something in it failed.
#[derive(Debug, thiserror::Error)]
pub enum CudaError {
    /// The driver's library is not there, under none of its names: no NVIDIA driver on this machine.
    #[error(
        "no NVIDIA driver: none of {searched} could be loaded; install the driver (nvidia-smi must work), \
         or put the folder of libcuda.so.1 on LD_LIBRARY_PATH"
    )]
    DriverLibraryMissing { searched: String },
    /// The driver lacks a function that this build calls.
    #[error(
        "the NVIDIA driver is too old for this build: its libcuda has no function {function}; update the driver, \
         or build with an earlier CUDA version (cargo feature cuda-12080)"
    )]
    DriverTooOld { function: &'static str },
    /// The driver is there and sees no such GPU.
    #[error(
        "no CUDA device {ordinal}: the driver reports {available} device(s); check nvidia-smi and CUDA_VISIBLE_DEVICES"
    )]
    NoDevice { ordinal: usize, available: usize },
    /// A driver call failed: what was being done ("allocating 64 bytes for the output"), and the driver's name of the
    /// error ("CUDA_ERROR_LAUNCH_FAILED") and sentence about it.
    #[error("{action} failed: {message} ({name})")]
    Driver { action: String, name: String, message: String },
    /// NVRTC is nowhere to be found; `searched` are the places, in order.
    #[error(
        "no CUDA compiler: NVRTC (libnvrtc) was not found. Looked at: {searched}. Run scripts/install-cuda.sh \
         (no root needed), or set CUDA_HOME to an installed CUDA toolkit"
    )]
    CompilerMissing { searched: String },
    /// NVRTC was found and cannot be used.
    #[error("the CUDA compiler {} cannot be used: {reason}; point CUDA_HOME at another toolkit or run scripts/install-cuda.sh", path.display())]
    CompilerUnusable { path: PathBuf, reason: String },
    /// The compiler does not know the GPU.
    #[error("NVRTC {version} compiles for {supported}, not for {architecture}; install another CUDA toolkit")]
    ArchitectureUnsupported { architecture: Architecture, supported: String, version: String },
    /// A kernel does not compile: `what` names it with its instance and configuration.
    #[error("NVRTC could not compile {what} for {architecture}\noptions: {options}\n{log}")]
    CompilationFailed { what: String, architecture: Architecture, options: String, log: String },
    /// A folder of kernels that were made ahead lacks one.
    #[error(
        "{} has no whole {what} for {architecture}, and nothing is compiled here: make it where NVRTC is, by a run of this \
         program with `Compiler::keeping_in`, without a GPU by `cuda::Ahead`, or, if `auto` scans an array of numbers, by \
         `lookback kernels --architectures {}.{} --output FOLDER`{}{remarks}",
        folder.display(), architecture.major, architecture.minor, if remarks.is_empty() { "" } else { "; " }
    )]
    NotMadeAhead { what: String, architecture: Architecture, folder: PathBuf, remarks: String },
    /// Kernels are to be made ahead, and nobody said where.
    #[error("kernels that are made ahead go into a folder: name it by `Compiler::keeping_in`")]
    NoFolder,
    /// A kernel was made ahead, and cannot be read where it should be.
    #[error(
        "a kernel was compiled and is not in {}: {}", folder.display(),
        if remarks.is_empty() { "it was removed at once; choose a folder of its own" } else { remarks }
    )]
    NotKept { folder: PathBuf, remarks: String },
    /// A kernel source includes a file that is not embedded.
    #[error(transparent)]
    SourceMissing(#[from] SourceMissing),
    /// Not enough memory on the device.
    #[error("{what} need {needed_bytes} bytes, the device has {available_bytes} free; choose a smaller n")]
    OutOfMemory { what: String, needed_bytes: u64, available_bytes: u64 },
    /// A kernel (`what` names strategy and configuration) wrote "before" or "after" the "input" or "output" that it
    /// was given. `distance` is that of the lowest changed byte from the array's edge: 1 for the byte next to it.
    #[error(
        "{what} wrote outside its {array}: {bytes} guard byte(s) {side} it changed, the one at the lowest address \
         {distance} byte(s) from the array's edge"
    )]
    WroteOutside { what: String, array: &'static str, side: &'static str, bytes: u64, distance: u64 },
    /// A kernel changed its input in a scan that is not in place; `what` names strategy and configuration.
    #[error("{what} changed {elements} element(s) of its input, the first at index {first}")]
    InputChanged { what: String, elements: u64, first: u64 },
    /// A launch did not come to its end.
    #[error(
        "{what} did not finish within {seconds} s; the launch hangs (the device stays busy until this process ends)"
    )]
    DidNotFinish { what: String, seconds: u64 },
    /// The dataset that is loaded is not the one that is asked for, by instance and n.
    #[error("the request is for {requested}, the loaded dataset holds {loaded}")]
    DatasetMismatch { requested: String, loaded: String },
    /// Arrays that overlap without being one and the same.
    #[error(
        "input ({input_address:#x}, {input_bytes} bytes) and output ({output_address:#x}, {output_bytes} bytes) overlap \
         without being the same array; scan in place or into another array"
    )]
    PartialOverlap { input_address: u64, input_bytes: u64, output_address: u64, output_bytes: u64 },
    /// The address of the "input" or "output" is no multiple of the element size.
    #[error("the {array} at {address:#x} is not aligned to its element size of {alignment} bytes")]
    Misaligned { array: &'static str, address: u64, alignment: u64 },
    /// A "stream", "input" or "output" of another context.
    #[error("the {what} belongs to another CUDA context than the scanner")]
    WrongContext { what: &'static str },
    /// A scan over ranks that is put onto another stream than theirs.
    #[error("the ranks exchange their totals on one stream: run the scan on the stream that `GpuRanks::new` was given")]
    OtherStream,
    /// A scan over ranks that is to be made ready alone.
    #[error(
        "a scan over ranks is not rehearsed: make its run by `Scanner::run`, or by `Scanner::on` without `rehearsing`"
    )]
    Rehearsed,
    /// A GPU does not reach the memory of another rank's.
    #[error(
        "this GPU does not reach the memory of rank {rank}'s, which tiles that are dealt to ranks need: take GPUs that NVLink \
         connects (nvidia-smi topo -p2p n), or scan shards instead, contiguous or deferred"
    )]
    NoPeer { rank: usize },
    /// A rank of another host.
    #[error(
        "rank {rank} is on another host, and tiles are dealt to GPUs of one: scan shards instead, contiguous or deferred"
    )]
    OtherHost { rank: usize },
    /// NCCL is nowhere to be found; `searched` are the places, in order.
    #[error(
        "no NCCL, by which GPUs exchange what ranks need: none of {searched} could be loaded; install libnccl2 or the wheel \
         nvidia-nccl-cu13, and put the folder of libnccl.so.2 on LD_LIBRARY_PATH or the file's path into LOOKBACK_NCCL"
    )]
    NcclMissing { searched: String },
    /// A call of NCCL failed: what was being done, NCCL's name of the error, and what it says of it.
    #[error("{action} failed: {message}{}{detail}", if detail.is_empty() { "" } else { ": " })]
    Nccl { action: String, message: String, detail: String },
    /// A rank is lost, or ranks do not come together.
    #[error(transparent)]
    Ranks(#[from] crate::ranks::RankError),
    /// The configuration cannot be launched.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A scan that cannot be divided into chunks.
    #[error(transparent)]
    Chunks(#[from] PlanError),
    /// A block cannot hold a tile in shared memory.
    #[error(
        "a tile of {tile_bytes} bytes does not fit into the {shared_bytes} bytes of shared memory that a block of \
         {architecture} may have; lower VT or threads per block"
    )]
    TileTooLarge { tile_bytes: u64, architecture: Architecture, shared_bytes: u64 },
}

impl From<CallError> for CudaError {
    fn from(error: CallError) -> Self {
        Self::Config(error.into())
    }
}

impl CudaError {
    /// The error of a driver call. `action` says what was being done, as in "loading a module".
    ///
    /// Only to be called after the library was probed: cudarc's own text comes from the driver.
    pub(crate) fn driver(action: impl Into<String>, error: DriverError) -> Self {
        let text = |found: Result<&std::ffi::CStr, DriverError>| {
            found.map_or_else(|_| String::from("no description"), |text| text.to_string_lossy().into_owned())
        };
        Self::Driver { action: action.into(), name: text(error.error_name()), message: text(error.error_string()) }
    }

    /// Whether this says that something is missing on the machine, not that something failed.
    pub fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::DriverLibraryMissing { .. }
                | Self::DriverTooOld { .. }
                | Self::NoDevice { .. }
                | Self::CompilerMissing { .. }
                | Self::NcclMissing { .. }
        )
    }
}

/// Names the action of a driver call in its error.
pub(crate) trait Context<T> {
    /// `action` completes "… failed".
    fn during(self, action: impl FnOnce() -> String) -> Result<T, CudaError>;
}

impl<T> Context<T> for Result<T, DriverError> {
    fn during(self, action: impl FnOnce() -> String) -> Result<T, CudaError> {
        self.map_err(|error| CudaError::driver(action(), error))
    }
}

impl<T> Context<T> for Result<T, CUresult> {
    fn during(self, action: impl FnOnce() -> String) -> Result<T, CudaError> {
        self.map_err(|error| CudaError::driver(action(), DriverError(error)))
    }
}
