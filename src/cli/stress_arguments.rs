//! The options of `lookback stress`.

use crate::lab::stress::Memory;
use crate::lab::stress::detectors::DetectorName;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Where the kernels run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StressDevice {
    /// The kernels compiled for the host.
    Cpu,
    /// The first CUDA device.
    Cuda,
}

/// What loads may return on the CPU device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MemoryChoice {
    /// The last value stored.
    Strong,
    /// What a model of weak memory allows.
    Weak,
    /// Three runs of five weak, two strong.
    Both,
}

impl MemoryChoice {
    pub(super) const fn memories(self) -> &'static [Memory] {
        match self {
            Self::Strong => &[Memory::Strong],
            Self::Weak => &[Memory::Weak],
            Self::Both => &[Memory::Weak, Memory::Strong, Memory::Weak, Memory::Strong, Memory::Weak],
        }
    }
}

/// How results go to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StressFormat {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

/// `lookback stress`.
#[derive(Debug, Clone, Args)]
pub struct StressArguments {
    /// Where to run
    #[arg(long, value_enum, default_value_t = StressDevice::Cpu, hide_possible_values = true, value_name = "cpu|cuda")]
    pub device: StressDevice,
    /// Runs to make: launches, each with a schedule of its own; with --mutants
    /// at least so many of the kernels as they are
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = parse_runs)]
    pub runs: u64,
    /// Seconds after which to end, whatever has been run
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub seconds: Option<Duration>,
    /// Seed of the first case; the others follow
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// What loads may return on the CPU device
    #[arg(long, value_enum, default_value_t = MemoryChoice::Both, hide_possible_values = true,
        value_name = "strong|weak|both")]
    pub memory: MemoryChoice,
    /// OS threads [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Give the kernels this fault
    #[arg(long, value_name = "NAME", conflicts_with = "mutants")]
    pub mutant: Option<String>,
    /// Ask every detector about every mutant
    #[arg(long)]
    pub mutants: bool,
    /// Detectors to ask [default: all that need no GPU, with --device cuda all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "mutants")]
    pub detectors: Option<Vec<DetectorName>>,
    /// Columns that are not asked for now, from the JSON of an earlier table
    #[arg(long, value_name = "FILE", requires = "mutants")]
    pub add: Option<PathBuf>,
    /// text or json
    #[arg(long, value_enum, default_value_t = StressFormat::Text, hide_possible_values = true,
        value_name = "text|json")]
    pub format: StressFormat,
    /// Write the JSON of the table of mutants here too
    #[arg(long, value_name = "FILE", requires = "mutants")]
    pub output: Option<PathBuf>,
    /// List the mutants and what they are
    #[arg(long)]
    pub list_mutants: bool,
    /// Run one case again and show its interleaving; CASE is what a failure printed
    #[arg(long, value_name = "CASE")]
    pub replay: Option<String>,
    /// Accesses to show of each launch of a replay, the last ones
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub replay_lines: usize,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

fn parse_runs(text: &str) -> Result<u64, String> {
    match crate::text::parse_count(text).map_err(|error| error.to_string())? {
        0 => Err("no run shows nothing; at least 1".to_owned()),
        runs => Ok(runs),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    if time.is_zero() { Err("a number of seconds above 0".to_owned()) } else { Ok(time) }
}
