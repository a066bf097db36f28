//! What ends the program early, and its exit codes.

use super::input::InputError;
use super::partial::PartialError;
use super::scan_error::ScanError;
use crate::lab::claims::ClaimError;
use crate::lab::device::DeviceError;
use crate::lab::measure::run::SweepError;
use crate::lab::measure::sweep::SweepFileError;
use crate::lab::measure::tune::TuneError;
use crate::lab::recorder::RecordError;
use crate::lab::report::ReportError;
#[cfg(feature = "cpu")]
use crate::lab::stress::detector::CannotRun;
#[cfg(feature = "cpu")]
use crate::lab::stress::thread_sanitizer::ThreadSanitizerError;
use crate::strategy::tuning::TuningError;
use std::path::PathBuf;

/// Everything was right.
pub const EXIT_OK: u8 = 0;
/// A result was wrong, or a kernel failed.
pub const EXIT_WRONG: u8 = 1;
/// The command line, an input or an output folder is unusable; clap's own code too.
pub const EXIT_USAGE: u8 = 2;
/// The device or compiler that was asked for is not there, or the machine has not the memory.
pub const EXIT_NO_DEVICE: u8 = 3;
/// Every result was right, and a target of `compare --sweep targets` was missed.
pub const EXIT_MISSED: u8 = 4;
/// No result was wrong, and some are neither right nor wrong, because overflow depends on the order of additions.
pub const EXIT_UNDECIDABLE: u8 = 5;
/// Ctrl-C ended `stress` or `scan` before it was done; what a shell says of a program that it ended.
pub const EXIT_INTERRUPTED: u8 = 130;

/// What ends the program early.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Arguments that cannot be put together.
    #[error("{0}")]
    Usage(String),
    /// `--input` is unusable.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The output of a scan of a file cannot be begun, gone on with or ended.
    #[error(transparent)]
    Partial(#[from] PartialError),
    /// A scan of a file that cannot be divided or run.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// A record cannot be read, written or gone on with.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Claims cannot be judged.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// A plot could not be drawn.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A sweep file is not to be found or unusable.
    #[error(transparent)]
    SweepFile(#[from] SweepFileError),
    /// A tuning table cannot be read, or does not fit the device.
    #[error(transparent)]
    Tuning(#[from] TuningError),
    /// Nothing to tune, or a record that makes no table.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// A record from which no table can be made.
    #[error("no table can be made from {}", path.display())]
    RecordMakesNoTable { path: PathBuf, source: Box<TuneError> },
    /// `tune` would put its table over a record.
    #[error(
        "--output {} names a record, the evidence of a table, which stays beside it; choose another name for the \
         table, such as tuning.toml",
        path.display()
    )]
    OutputIsRecord { path: PathBuf },
    /// `tune` or `stress` would put its table over something that it did not write.
    #[error(
        "{} is there and is no {what}, so it is not replaced; choose another name for --output, or delete it",
        path.display()
    )]
    OutputIsNoTable { path: PathBuf, what: &'static str },
    /// `stress` would lose what a table has and its own has not.
    #[error(
        "{0} has results that would be lost; keep them by --add {0}, or choose another file for --output",
        path.display()
    )]
    OutputHasResults { path: PathBuf },
    /// Another process has written there meanwhile.
    #[error(
        "{} is not as it was read or written before: another process writes there too, so it is not replaced; give each \
         its own --output and join the tables by --add",
        path.display()
    )]
    OutputChanged { path: PathBuf },
    /// Measuring without a GPU.
    #[error(
        "{what} measures, so it needs an NVIDIA GPU with its driver and NVRTC (`lookback info` says what is missing); \
         {instead}"
    )]
    NeedsGpu { what: &'static str, instead: &'static str, source: Box<dyn std::error::Error + Send + Sync> },
    /// A sweep ended early.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// Nothing to compile with.
    #[cfg(feature = "cuda")]
    #[error("kernels are compiled ahead by NVRTC, on a machine that has it")]
    NoCompiler { source: crate::cuda::CudaError },
    /// What was asked for is not part of this build.
    #[error("this build of lookback has no {device}; build it with the cargo feature '{feature}'")]
    NotBuilt { device: &'static str, feature: &'static str },
    /// The device is not there.
    #[error(
        "the {device} device cannot be used{}",
        if *device == "CUDA" && cfg!(feature = "cpu") { "; --device cpu runs the kernels without a GPU" } else { "" }
    )]
    NoDevice { device: &'static str, source: DeviceError },
    /// A case of a GPU, and none is there.
    #[error("the case is of a GPU, and none can be used here; replay it on a machine that has one")]
    NoGpuForCase { source: DeviceError },
    /// A rank is lost, or ranks do not come together.
    #[error(transparent)]
    Ranks(crate::ranks::RankError),
    /// The device failed.
    #[error(transparent)]
    Device(DeviceError),
    /// ThreadSanitizer is not there, or does not take the case.
    #[cfg(feature = "cpu")]
    #[error(transparent)]
    ThreadSanitizer(#[from] ThreadSanitizerError),
    /// The machine cannot run what `stress` asks for.
    #[cfg(feature = "cpu")]
    #[error("{cause}{}", if matches!(cause, CannotRun::Memory { .. }) { format!("; {helps}") } else { String::new() })]
    CannotRun {
        cause: CannotRun,
        /// Where there was too little memory.
        helps: &'static str,
    },
    /// Nobody can be asked whether to end early.
    #[error("cannot watch for Ctrl-C")]
    Interrupt(#[source] std::io::Error),
    /// stdout is gone for another reason than a reader that has read enough.
    #[error("cannot write to stdout")]
    Stdout(#[source] std::io::Error),
}

impl CliError {
    /// What the process ends with.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            #[cfg(feature = "cpu")]
            Self::CannotRun { .. } => EXIT_NO_DEVICE,
            #[cfg(feature = "cuda")]
            Self::NoCompiler { .. } => EXIT_NO_DEVICE,
            Self::NotBuilt { .. } | Self::NoDevice { .. } | Self::NoGpuForCase { .. } | Self::NeedsGpu { .. } => {
                EXIT_NO_DEVICE
            }
            #[cfg(feature = "cpu")]
            Self::ThreadSanitizer(error) if !matches!(error, ThreadSanitizerError::NotCovered(_)) => EXIT_NO_DEVICE,
            Self::Ranks(crate::ranks::RankError::Lost { .. }) => EXIT_WRONG,
            Self::Device(_) | Self::Sweep(SweepError::Device(_)) => EXIT_WRONG,
            Self::Scan(error) if error.is_failure() => EXIT_WRONG,
            _ => EXIT_USAGE,
        }
    }
}
