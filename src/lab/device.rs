//! What a device does for the laboratory: hold a dataset, run a scan over it, verify every element.

use crate::lab::dataset::Dataset;
use crate::lab::trace::Recording;
use crate::lab::verify::Verification;
use crate::strategy::plan::ScanRequest;
use crate::strategy::tuning::Gpu;
use crate::strategy::{CallError, ConfigError};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// Why a device could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The configuration cannot be launched.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The CPU device found a fault in a kernel.
    #[cfg(feature = "cpu")]
    #[error(transparent)]
    Execution(#[from] crate::cpu::ExecutionError),
    /// The CPU device has no such kernel.
    #[cfg(feature = "cpu")]
    #[error(transparent)]
    NoKernel(#[from] crate::lab::cpu_kernels::NoKernel),
    /// CUDA is missing or failed.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(#[from] crate::cuda::CudaError),
    /// Not enough memory.
    #[error("{what} needs {needed_bytes} bytes, {device} has {available_bytes} free; choose a smaller n")]
    OutOfMemory { what: String, device: String, needed_bytes: u64, available_bytes: u64 },
    /// A rank is lost, or ranks do not come together.
    #[error(transparent)]
    Ranks(#[from] crate::ranks::RankError),
    /// A kernel wrote beside the arrays of a defined scan, or into an input.
    #[error(
        "a kernel wrote beside an array, or into one that it only loads; the text of a definition may have an index of its own"
    )]
    WroteElsewhere,
    /// A scan that a user has defined, where one array is scanned into another one.
    #[error("{0} has arrays of its own: run it by `HostScanner::run`")]
    ArraysOfItsOwn(String),
    /// More tiles than there is room for.
    #[error("{tiles} tiles are more than can be recorded, {most}; choose a smaller n, a larger VT or larger blocks")]
    TooManyTiles { tiles: u64, most: u64 },
    /// `run` before `load`.
    #[error("no dataset is loaded on the device; call `load` first")]
    NoDataset,
}

impl From<CallError> for DeviceError {
    fn from(error: CallError) -> Self {
        Self::Config(error.into())
    }
}

/// What a device is.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct DeviceDescription {
    /// "cpu" or "cuda".
    pub kind: String,
    /// For example "NVIDIA H100 80GB HBM3", or the CPU executor with its compiler.
    pub name: String,
    /// Further facts in order: driver, CUDA version, architecture, memory, L2, clocks, compiler.
    pub facts: Vec<(String, String)>,
}

/// What the CPU device counted over all launches of one scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Elements read from input, output or temporary arrays by launches over the user's array.
    pub element_reads: u64,
    /// Elements written likewise.
    pub element_writes: u64,
    /// Accesses by which lanes did so, each of up to 16 bytes; bulk copies are none. Counted by the CPU device alone.
    pub element_accesses: u64,
    /// Elements read or written in spines, and by the launches that scan a spine.
    pub spine_moves: u64,
    /// Descriptor, ticket and counter accesses.
    pub protocol_accesses: u64,
    /// Operator applications: the work.
    pub operator_applications: u64,
    /// Longest chain of dependent operator applications: the span.
    pub span_steps: u64,
    /// Block barriers, one a block that passes it.
    pub barriers: u64,
    /// Look-back windows read, over all tiles.
    pub lookback_rounds: u64,
    /// Tiles looked back over, over all tiles.
    pub lookback_distance: u64,
    /// Tiles that looked back.
    pub lookback_tiles: u64,
    /// Polls that found a descriptor not yet valid.
    pub spin_polls: u64,
    /// Kernel launches.
    pub launches: u64,
}

impl Counters {
    /// Tiles looked back over, mean of the tiles that looked back, if any did.
    pub fn mean_lookback_distance(&self) -> Option<f64> {
        (self.lookback_tiles > 0).then(|| self.lookback_distance as f64 / self.lookback_tiles as f64)
    }
}

/// How long a scan took on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Time of one scan in nanoseconds, a sample each.
    pub samples_ns: Vec<f64>,
    /// Median of the samples in nanoseconds.
    pub median_ns: f64,
}

/// What came of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Comparison of every output element with the reference.
    pub verification: Verification,
    /// Counters (CPU device).
    pub counters: Option<Counters>,
    /// Time by events over repeated launches after warm-up (CUDA device).
    pub timing: Option<Timing>,
    /// Wall time of the CPU device's executor; says nothing about a GPU.
    pub executor_time: Option<Duration>,
    /// Kernel launches of one scan.
    pub launches: u64,
    /// Widest access of a lane in bytes.
    pub access_bytes: u32,
    /// Registers a thread and bytes of spill of the main kernel (CUDA device).
    pub registers: Option<u32>,
    /// Bytes of local memory a thread of the main kernel (CUDA device): 0 unless registers spill.
    pub local_bytes: Option<u32>,
    /// The bytes of the output, where they are asked for.
    pub output: Option<Vec<u8>>,
}

/// How a run is measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RunSettings {
    /// Seed of the CPU device's schedule.
    pub seed: u64,
    /// Samples to time on a GPU after warm-up; 0 verifies only.
    pub samples: u32,
    /// Whether the output is handed back.
    pub keeps_output: bool,
}

/// How a scan is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceSettings {
    /// Seed of the CPU device's schedule.
    pub seed: u64,
    /// Whether a GPU's L2 cache holds other things when the scan begins; else the scan has run right before.
    pub is_cold: bool,
}

/// A device on which scans run.
pub trait Device {
    /// What the device is.
    fn description(&self) -> DeviceDescription;

    /// The GPU whose tuning table counts for `auto`: an H100 where there is none.
    fn gpu(&self) -> Gpu {
        Gpu::H100
    }

    /// Makes `dataset` the one that `run` works on: uploads input and reference once.
    ///
    /// # Errors
    /// When it does not fit into the device's memory.
    fn load(&mut self, dataset: &Dataset) -> Result<(), DeviceError>;

    /// Poisons the output, runs the scan, verifies every element against the loaded dataset's reference,
    /// then times it. `request.n` and the values that are scanned are those of the dataset, and loaded and stored as such.
    ///
    /// # Errors
    /// When the scan could not be run. A wrong result is no error: `verification` says so.
    fn run(&mut self, request: &ScanRequest, settings: &RunSettings) -> Result<Outcome, DeviceError>;

    /// Runs the scan as `run` does and records what each warp comes to with each tile. Without a step where the strategy has
    /// none to record.
    ///
    /// # Errors
    /// When the scan could not be run, or there are more tiles than can be recorded.
    fn trace(&mut self, request: &ScanRequest, settings: &TraceSettings) -> Result<Recording, DeviceError>;

    /// Runs the scan in a schedule for each seed and returns the tiles looked back over in each, the mean of those that
    /// looked back. Nothing where none did, where it would take too long, or where the device does not count them.
    ///
    /// # Errors
    /// When the scan could not be run.
    fn lookback_distances(&mut self, _: &ScanRequest, _: Range<u64>) -> Result<Vec<f64>, DeviceError> {
        Ok(Vec::new())
    }
}
