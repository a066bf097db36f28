//! The options of `lookback stress`.

use super::arguments::{Names, refuse_idle};
use super::error::CliError;
use crate::lab::stress::detectors::DetectorName;
use crate::lab::stress::detectors::thread_sanitizer::THREAD_SANITIZER_CASE;
use crate::lab::stress::{Memory, PLAIN};
use crate::lab::workload::ProblemKind;
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
    /// Where to run [default: cpu]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "cpu|cuda")]
    pub device: Option<StressDevice>,
    /// Problems that cases are drawn of: reverse, rows, by-key, ... (those of
    /// compare), or all; in segments of drawn lengths, by strategies that scan
    /// them. Kernels are compiled when first asked for [default: flat]
    #[arg(long, value_name = "LIST")]
    pub problem: Option<Names<ProblemKind>>,
    /// Runs to make: launches, each with a schedule of its own; with --mutants
    /// at least so many of the kernels as they are
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = parse_runs)]
    pub runs: u64,
    /// Seconds after which to end, whatever has been run; with --mutants after
    /// which each detector leaves each mutant, and the kernels as they are
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub seconds: Option<Duration>,
    /// Seconds for which each detector that draws on the CPU looks once more for a
    /// mutant that all have left [default: 120, without --seconds]
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub again: Option<Duration>,
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
    /// Of these mutants alone: names, kernel files or folders (cuda/scan), rules,
    /// by-hand for those of no rule
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub of: Vec<String>,
    /// And of so many of the others, drawn by --seed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub sample: Option<u64>,
    /// Detectors to ask [default: all that need no GPU, with --device cuda all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "device")]
    pub detectors: Option<Vec<DetectorName>>,
    /// Columns and rows that are not asked for now, from the JSON of an earlier
    /// table; of the same commit what a detector has killed is not asked again
    #[arg(long, value_name = "FILE")]
    pub add: Option<PathBuf>,
    /// text or json
    #[arg(long, value_enum, default_value_t = StressFormat::Text, hide_possible_values = true,
        value_name = "text|json")]
    pub format: StressFormat,
    /// Write the JSON of the table of mutants here too; over one that is there only
    /// beside --add of the same file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// List the mutants and what they are
    #[arg(long, conflicts_with_all = ["device", "runs", "seconds", "again", "seed", "memory", "threads", "mutant",
        "mutants", "format", "replay", "replay_lines"])]
    pub list_mutants: bool,
    /// Run one case again and show its interleaving; CASE is what a failure printed
    #[arg(long, value_name = "CASE", conflicts_with_all = ["runs", "seed", "memory", "threads", "mutant", "mutants"])]
    pub replay: Option<String>,
    /// Accesses to show of each launch of a replay, the last ones [default: 200]
    #[arg(long, value_name = "N")]
    pub replay_lines: Option<usize>,
    /// Leave what the warps of a replay did as pictures, and as traces for
    /// ui.perfetto.dev, in this folder
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

impl StressArguments {
    /// What cases are drawn of, where the user says nothing plain scans.
    pub(super) fn problems(&self) -> &[ProblemKind] {
        self.problem.as_ref().map_or(PLAIN, |names| &names.choices)
    }

    /// Whether a GPU is asked for.
    pub(super) fn on_gpu(&self) -> bool {
        self.device == Some(StressDevice::Cuda)
    }

    /// What the options ask for.
    pub(super) fn mode(&self) -> Mode {
        match &self.replay {
            _ if self.list_mutants => Mode::List,
            Some(case) if case.starts_with(GPU_CASE) => Mode::ReplayOnGpu,
            Some(case) if case.starts_with(THREAD_SANITIZER_CASE) => Mode::ReplayWatched,
            Some(_) => Mode::Replay,
            None if self.mutants => Mode::Table,
            None if self.on_gpu() => Mode::CampaignOnGpu,
            None => Mode::Campaign,
        }
    }

    /// Refuses what has no effect on what is asked for, beside what clap finds by its conflicts. Its `requires` would not
    /// do: it is ignored where an option that conflicts with the required one is given, such as --mutant.
    ///
    /// # Errors
    /// When there is such an option.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let mode = self.mode();
        let is_table = mode == Mode::Table;
        let is_replay = matches!(mode, Mode::Replay | Mode::ReplayWatched);
        let of_cpu = "a campaign on a GPU has no such choice";
        let of_table = "it is of the table that --mutants makes";
        let draws_problems = is_table || matches!(mode, Mode::Campaign | Mode::CampaignOnGpu);
        let why_plain = "nothing is drawn, and a case says its problem";
        refuse_idle([
            ("--problem", self.problem.is_some(), draws_problems, why_plain),
            ("--memory", self.memory.is_some(), mode != Mode::CampaignOnGpu, of_cpu),
            ("--threads", self.threads.is_some(), mode != Mode::CampaignOnGpu, of_cpu),
            ("--again", self.again.is_some(), is_table, of_table),
            ("--of", !self.of.is_empty(), is_table || mode == Mode::List, of_table),
            ("--sample", self.sample.is_some(), is_table, of_table),
            ("--detectors", self.detectors.is_some(), is_table, of_table),
            ("--add", self.add.is_some(), is_table, of_table),
            ("--output", self.output.is_some(), is_table, of_table),
            ("--device", self.device.is_some(), !is_replay, "the case says what runs, and where"),
            ("--device", self.device == Some(StressDevice::Cpu), mode != Mode::ReplayOnGpu, "the case runs on a GPU"),
            ("--seconds", self.seconds.is_some(), !is_replay, "this case runs once"),
            ("--format", self.format == StressFormat::Json, !is_replay, "the replay of this case is text"),
            (
                "--replay-lines",
                self.replay_lines.is_some(),
                mode == Mode::Replay,
                "they are of a --replay on the CPU device, which shows its accesses",
            ),
            ("--trace", self.trace.is_some(), mode == Mode::Replay, "it is of a --replay on the CPU device"),
        ])
    }
}

/// The first word of the line that a failure on a GPU prints.
const GPU_CASE: &str = "gpu-stress-";

/// What `lookback stress` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Names the mutants.
    List,
    /// Runs a case again on the CPU device, access by access.
    Replay,
    /// Runs a case again in the program that ThreadSanitizer watches.
    ReplayWatched,
    /// Runs a case again on a GPU, with other seeds too.
    ReplayOnGpu,
    /// Asks detectors about every mutant.
    Table,
    /// Draws runs on the CPU device.
    Campaign,
    /// Draws runs on a GPU.
    CampaignOnGpu,
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{ArgAction, FromArgMatches};

    /// The words that choose each mode, and the options that have an effect in it.
    const MODES: [(Mode, &[&str], &[&str]); 7] = [
        (Mode::List, &["--list-mutants"], &["of", "quiet"]),
        (Mode::Replay, &["--replay=seed=1"], &["replay-lines", "trace", "quiet"]),
        (Mode::ReplayWatched, &["--replay=thread-sanitizer seed=1"], &["quiet"]),
        (Mode::ReplayOnGpu, &["--replay=gpu-stress-1"], &["device", "seconds", "format", "quiet"]),
        (
            Mode::Table,
            &["--mutants"],
            &[
                "problem",
                "device",
                "runs",
                "seconds",
                "again",
                "seed",
                "threads",
                "of",
                "sample",
                "detectors",
                "add",
                "format",
                "output",
                "quiet",
            ],
        ),
        (
            Mode::Campaign,
            &["--quiet"],
            &["problem", "device", "runs", "seconds", "seed", "memory", "threads", "mutant", "format"],
        ),
        (Mode::CampaignOnGpu, &["--device=cuda"], &["problem", "runs", "seconds", "seed", "mutant", "format", "quiet"]),
    ];

    fn parse(words: &[&str]) -> Option<StressArguments> {
        let command = StressArguments::augment_args(clap::Command::new("stress"));
        let matches = command.try_get_matches_from([&["stress"], words].concat()).ok()?;
        Some(StressArguments::from_arg_matches(&matches).expect("clap has taken them"))
    }

    /// Whether some value of the option is taken in the mode; `beside` stands with it.
    fn is_taken(mode: Mode, words: &[&str], option: &clap::Arg, beside: &[&str]) -> bool {
        let name = option.get_long().expect("all are long");
        let has_value = matches!(option.get_action(), ArgAction::Set | ArgAction::Append);
        let values: &[&str] =
            if has_value { &["=1", "=json", "=cpu", "=cuda", "=weak", "=weak-memory", "=rows"] } else { &[""] };
        values.iter().any(|value| {
            let option = format!("--{name}{value}");
            let parsed = parse(&[words, &[&option], beside].concat());
            parsed.is_some_and(|arguments| arguments.mode() == mode && arguments.check().is_ok())
        })
    }

    #[test]
    fn every_option_has_an_effect_or_is_refused_in_every_mode() {
        let command = StressArguments::augment_args(clap::Command::new("stress"));
        for (mode, words, effective) in MODES {
            assert_eq!(parse(words).map(|arguments| arguments.mode()), Some(mode));
            for option in command.get_arguments() {
                let name = option.get_long().expect("all are long");
                if words[0].split('=').next() == Some(&format!("--{name}")) {
                    continue;
                }
                let has_effect = effective.contains(&name);
                assert_eq!(is_taken(mode, words, option, &[]), has_effect, "{mode:?} --{name}");
                // Whatever stands beside it, because clap's `requires` is ignored beside a conflict.
                for beside in effective.iter().filter(|_| !has_effect) {
                    for value in ["", "=1", "=json"] {
                        let beside = format!("--{beside}{value}");
                        assert!(!is_taken(mode, words, option, &[&beside]), "{mode:?} --{name} {beside}");
                    }
                }
            }
        }
    }
}
