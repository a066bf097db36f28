//! The options of `lookback stress`.

use super::arguments::refuse_idle;
use super::error::CliError;
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
    #[value(alias = "gpu")]
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
    /// Seconds after which to end, whatever has been run; with --mutants after
    /// which each detector leaves each mutant, and the kernels as they are
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub seconds: Option<Duration>,
    /// Seed of the first case; the others follow
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// What loads may return on the CPU device [default: both]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "strong|weak|both", conflicts_with = "mutants")]
    pub memory: Option<MemoryChoice>,
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
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "mutants", conflicts_with = "device")]
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
    #[arg(long, conflicts_with_all = ["device", "runs", "seconds", "seed", "memory", "threads", "mutant", "mutants",
        "format", "replay", "replay_lines"])]
    pub list_mutants: bool,
    /// Run one case again and show its interleaving; CASE is what a failure printed
    #[arg(long, value_name = "CASE", conflicts_with_all = ["runs", "seed", "memory", "threads", "mutant", "mutants"])]
    pub replay: Option<String>,
    /// Accesses to show of each launch of a replay, the last ones [default: 200]
    #[arg(long, value_name = "N", requires = "replay")]
    pub replay_lines: Option<usize>,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

impl StressArguments {
    /// Refuses what has no effect on the run that is asked for; `replayed` is how a case
    /// runs again, if one does.
    ///
    /// # Errors
    /// When there is such an option.
    pub(super) fn check(&self, replayed: Option<Replayed>) -> Result<(), CliError> {
        let on_gpu = self.device == StressDevice::Cuda;
        let is_campaign_on_gpu = on_gpu && !self.mutants && replayed.is_none();
        let (is_replay, gpu_replay) = (replayed.is_some(), replayed == Some(Replayed::OnGpu));
        let of_cpu = "a campaign on a GPU has no such choice";
        let by_case = "the case says what runs, and where";
        refuse_idle([
            ("--memory", self.memory.is_some(), !is_campaign_on_gpu, of_cpu),
            ("--threads", self.threads.is_some(), !is_campaign_on_gpu, of_cpu),
            ("--device", on_gpu, !is_replay || gpu_replay, by_case),
            ("--seconds", self.seconds.is_some(), !is_replay || gpu_replay, "this case runs once"),
            (
                "--format",
                self.format == StressFormat::Json,
                !is_replay || gpu_replay,
                "the replay of this case is text",
            ),
            (
                "--replay-lines",
                self.replay_lines.is_some(),
                replayed == Some(Replayed::Told),
                "the replay of this case shows no accesses",
            ),
        ])
    }
}

/// How a case runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replayed {
    /// On the CPU device, access by access.
    Told,
    /// In the program that ThreadSanitizer watches.
    Watched,
    /// On a GPU, with other seeds too.
    OnGpu,
}

fn parse_runs(text: &str) -> Result<u64, String> {
    match crate::text::parse_count(text).map_err(|error| error.to_string())? {
        0 => Err("no run shows nothing; at least 1".to_owned()),
        runs => Ok(runs),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "a number of seconds".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds)
        .map_err(|_| "a number of seconds above 0 that a clock can count".to_owned())?;
    if time.is_zero() { Err("a number of seconds above 0".to_owned()) } else { Ok(time) }
}
