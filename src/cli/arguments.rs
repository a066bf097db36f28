//! Words of the command line that need more than a name: lists, ranges, and the whole of `compare`.

use super::error::CliError;
use crate::abi;
use crate::element::{ElementType, Operator};
use crate::lab::ranks::Manner;
use crate::lab::workload::{ProblemKind, Shape};
use crate::strategy::{Composition, Descriptor, Mode, Pattern, Strategy, StrategyChoice, TileOrder};
use crate::text::{ArraySize, parse_count};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;

/// Where scans run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeviceChoice {
    /// The GPU if there is one, the CPU device if not.
    Auto,
    /// The kernels compiled for the host.
    Cpu,
    /// The first CUDA device.
    #[value(alias = "gpu")]
    Cuda,
}

impl DeviceChoice {
    /// What a description of the device calls its kind, if it is known before one is looked for.
    pub(super) const fn kind(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Cpu => Some("cpu"),
            Self::Cuda => Some("cuda"),
        }
    }
}

/// In which order the CPU device starts blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BlockOrderChoice {
    /// By block index.
    InOrder,
    /// From the last to the first.
    Reverse,
    /// A permutation drawn from the seed.
    Random,
}

/// Who runs next on the CPU device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScheduleChoice {
    /// Round robin over warps: fast, and tiles end in their order, so that look-back hardly looks back.
    Fair,
    /// A warp drawn from the seed: blocks overtake each other as on a GPU.
    Random,
}

/// How results go to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people.
    Table,
    /// The whole record as one JSON document.
    Json,
    /// One line of CSV a configuration.
    Csv,
}

/// Where ranks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranks {
    /// So many in this process, a thread each.
    Here(usize),
    /// This process is one, as its launcher says.
    Environment,
}

impl FromStr for Ranks {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let count = |text: &str| parse_count(text).ok().and_then(|count| usize::try_from(count).ok());
        match text.trim() {
            "env" => Ok(Self::Environment),
            text => count(text).filter(|&count| count > 0).map(Self::Here).ok_or_else(|| {
                String::from("expected the number of devices, or env in a process that a launcher has started")
            }),
        }
    }
}

/// `lookback compare`.
// What says how strategies are run conflicts with --sweep, whose file says it for itself.
#[derive(Debug, Clone, Args)]
pub struct CompareArguments {
    /// Where to run: auto takes the GPU if there is one
    #[arg(long, value_enum, default_value_t = DeviceChoice::Auto, hide_possible_values = true,
        value_name = "auto|cpu|cuda", help_heading = "What to run")]
    pub device: DeviceChoice,
    /// What is scanned: flat, reverse, rows, columns, by-key, …, or all [default: flat]
    #[arg(long, value_name = "LIST", conflicts_with = "sweep", help_heading = "What to run")]
    pub problem: Option<Names<ProblemKind>>,
    /// Rows and columns, as 4096x16384, of problems that scan a matrix, or of each of
    /// eight matrices (batched-columns and others) [default: rows or columns of 256
    /// elements; recurrences are one sequence]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["sizes", "sweep"],
        help_heading = "What to run")]
    pub shape: Option<Vec<Shape>>,
    /// Elements of a run of equal keys, from flag to flag or from offset to offset, or
    /// of which one is kept, on average [default: 64]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_run,
        conflicts_with = "sweep", help_heading = "What to run")]
    pub run_length: Option<Vec<u64>>,
    /// Strategies, auto among them, or all [default: all]
    #[arg(long, value_name = "LIST", conflicts_with = "sweep", help_heading = "What to run")]
    pub strategies: Option<Names<StrategyChoice>>,
    /// Element types, or all [default: u32, or the type of an operator with its own]
    #[arg(long, value_name = "LIST", conflicts_with = "sweep", help_heading = "What to run")]
    pub types: Option<Names<ElementType>>,
    /// Element types that are loaded, where those of --types are stored [default:
    /// the same]
    #[arg(long, value_name = "LIST", conflicts_with_all = ["input", "sweep"], help_heading = "What to run")]
    pub input_types: Option<Names<ElementType>>,
    /// Operators, or all [default: sum, or the operator of a type with its own]
    #[arg(long, value_name = "LIST", conflicts_with = "sweep", help_heading = "What to run")]
    pub operators: Option<Names<Operator>>,
    /// inclusive, exclusive, inclusive-minus-input, or all [default: inclusive]
    #[arg(long, value_name = "LIST", conflicts_with = "sweep", help_heading = "What to run")]
    pub modes: Option<Names<Mode>>,
    /// Elements, as 1000, 10M, 8Ki, 2^16-1, or bytes of them, as 64KiB; 10MiB-1
    /// is one element less [default: several, at one of them several VTs]
    #[arg(
        long,
        alias = "n",
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "sweep",
        help_heading = "What to run"
    )]
    pub sizes: Option<Vec<ArraySize>>,
    /// Values per thread (VT), 1 to 64 [default: what is suggested for the size]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_vt,
        conflicts_with = "sweep", help_heading = "What to run")]
    pub vts: Option<Vec<u32>>,
    /// Threads per block, multiples of 32 to 1024 [default: what is suggested for
    /// the size]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_block,
        conflicts_with = "sweep", help_heading = "What to run")]
    pub blocks: Option<Vec<u32>>,
    /// What auto goes by: a tuning table [default: the one for the GPU]
    #[arg(long, value_name = "FILE", help_heading = "What to run")]
    pub tuning: Option<PathBuf>,
    /// Write the output over the input
    #[arg(long, conflicts_with = "sweep", help_heading = "What to run")]
    pub in_place: bool,

    /// Scans inside a warp or block, or all [default: shuffle]
    #[arg(long, value_name = "LIST", conflicts_with = "sweep", help_heading = "Inside the kernels")]
    pub pattern: Option<Names<Pattern>>,
    /// How a block composes its tile, or all [default: scan-then-propagate]
    #[arg(long, value_name = "LIST", conflicts_with = "sweep", help_heading = "Inside the kernels")]
    pub composition: Option<Names<Composition>>,
    /// Layouts of tile descriptors, or all [default: the smallest that fits]
    #[arg(long, value_name = "LIST", conflicts_with = "sweep", help_heading = "Inside the kernels")]
    pub descriptor: Option<Names<Descriptor>>,
    /// How blocks learn their tile, or all [default: ticket]
    #[arg(long, value_name = "LIST", conflicts_with = "sweep", help_heading = "Inside the kernels")]
    pub tile_order: Option<Names<TileOrder>>,

    /// Scan this .npy file, or raw binary of the one type in --types
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sizes", "sweep"], help_heading = "Input")]
    pub input: Option<PathBuf>,
    /// Seed of the random input and of the CPU device's schedule [default: 42]
    #[arg(long, value_name = "N", conflicts_with = "sweep", help_heading = "Input")]
    pub seed: Option<u64>,
    /// Address of the input modulo 32
    #[arg(long, value_name = "BYTES", default_value_t = 0,
        conflicts_with = "sweep", help_heading = "Input", value_parser = clap::value_parser!(u32).range(0..32))]
    pub input_offset: u32,
    /// Address of the output modulo 32 [default: 0, in place the input's]
    #[arg(long, value_name = "BYTES",
        conflicts_with = "sweep", help_heading = "Input", value_parser = clap::value_parser!(u32).range(0..32))]
    pub output_offset: Option<u32>,

    /// Who runs next: a warp in turn, or one drawn from the seed [default: random]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "fair|random",
        conflicts_with = "sweep",
        help_heading = "Schedule of the CPU device"
    )]
    pub schedule: Option<ScheduleChoice>,
    /// Probability of a switch wherever a thread may be interrupted, if random
    /// [default: 0]
    #[arg(long, value_name = "P", value_parser = parse_probability,
        conflicts_with = "sweep", help_heading = "Schedule of the CPU device")]
    pub preemption: Option<f64>,
    /// In which order blocks start [default: in-order]
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "in-order|reverse|random",
        conflicts_with = "sweep",
        help_heading = "Schedule of the CPU device"
    )]
    pub block_order: Option<BlockOrderChoice>,
    /// Blocks that run at one time [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024),
        conflicts_with = "sweep", help_heading = "Schedule of the CPU device")]
    pub resident_blocks: Option<u32>,

    /// Scan over so many devices in this process; env where torchrun, mpirun or srun
    /// has started one for each: docs/ranks.md. Kept in --output at its end
    #[arg(long, value_name = "N|env", conflicts_with = "sweep", help_heading = "Several devices")]
    pub ranks: Option<Ranks>,
    /// Ways in which ranks share a scan: contiguous, deferred, cyclic [default: all]
    #[arg(long, value_name = "LIST", requires = "ranks", conflicts_with = "sweep", help_heading = "Several devices")]
    pub manners: Option<Names<Manner>>,
    /// Chunks in which tiles are dealt to ranks in turn, in elements [default: 16384, on CPU
    /// devices 1024; of several processes none is dealt unless this is given]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        requires = "ranks",
        conflicts_with = "sweep",
        help_heading = "Several devices"
    )]
    pub chunks: Option<Vec<ArraySize>>,
    /// Seconds that ranks wait for each other [default: 60]
    #[arg(long, value_name = "SECONDS", requires = "ranks", value_parser = clap::value_parser!(u64).range(1..=31_536_000),
        conflicts_with = "sweep", help_heading = "Several devices")]
    pub timeout: Option<u64>,

    /// Measure the sweep `targets` on a GPU instead, and say which targets it reaches
    #[arg(long, value_name = "targets", help_heading = "Targets")]
    pub sweep: Option<String>,
    /// Judge these records of the sweep, one a process; no GPU is needed
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["output", "resume"],
        help_heading = "Targets")]
    pub record: Vec<PathBuf>,
    /// Which of several processes this is: the first measures all, others what shows
    /// how far processes differ [default: 1]
    #[arg(long, value_name = "K", conflicts_with = "record",
        value_parser = clap::value_parser!(u32).range(1..), help_heading = "Targets")]
    pub process: Option<u32>,
    /// List every figure that misses a target
    #[arg(long, short, help_heading = "Targets")]
    pub verbose: bool,

    /// Leave data (CSV, JSON), plots (SVG) and a page (HTML) in this folder; with
    /// --sweep the record and the verdicts
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Save the scanned array as this .npy file, where one configuration runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sweep", "resume"], help_heading = "Output")]
    pub save_output: Option<PathBuf>,
    /// Go on with the run in the folder of --output: what it has is not run again
    #[arg(long, help_heading = "Output")]
    pub resume: bool,
    /// What goes to stdout
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true,
        value_name = "table|json|csv", conflicts_with = "sweep", help_heading = "Output")]
    pub format: Format,
    /// Timed runs of each configuration on a GPU [default: 30]
    #[arg(long, value_name = "N", conflicts_with = "sweep", help_heading = "Output")]
    pub samples: Option<u32>,
    /// No progress and no remarks on stderr
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

impl CompareArguments {
    /// The problems, where the user says nothing the flat scan alone.
    pub(super) fn problems(&self) -> &[ProblemKind] {
        self.problem.as_ref().map_or(&[ProblemKind::Flat], |names| &names.choices)
    }

    /// Addresses of input and output modulo 32.
    pub(super) fn offsets(&self) -> [u32; 2] {
        let output = self.output_offset.unwrap_or(if self.in_place { self.input_offset } else { 0 });
        [self.input_offset, output]
    }

    /// The seed, where the user says nothing the same always.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(42)
    }

    /// Refuses options of targets where strategies are run, and those that have no effect beside the others. clap's
    /// `requires` would not do: it is ignored where an option that conflicts with --sweep is given, such as --sizes.
    ///
    /// # Errors
    /// When there is one.
    pub(super) fn check_without_sweep(&self) -> Result<(), CliError> {
        let found = [
            (!self.record.is_empty(), "--record LIST is judged by targets"),
            (self.process.is_some(), "--process K is one of several that measure targets"),
            (self.verbose, "--verbose lists the figures that miss a target"),
        ];
        match found.into_iter().find(|(is_there, _)| *is_there) {
            Some((_, meaning)) => Err(CliError::Usage(format!(
                "{meaning}, and has no meaning for strategies that are run; leave it out, or write --sweep targets in \
                 place of what says how strategies are run"
            ))),
            None if self.resume && self.output.is_none() => {
                Err(CliError::Usage("--resume goes on with the run in a folder: name it by --output".to_owned()))
            }
            None => self.check_effects(),
        }
    }

    /// Refuses what has no effect on the strategies that run.
    fn check_effects(&self) -> Result<(), CliError> {
        let chosen = self.strategies.as_ref().map_or(StrategyChoice::ALL, |names| &names.choices);
        let some = |has: fn(Strategy) -> bool| {
            chosen.iter().any(|choice| matches!(choice, StrategyChoice::Named(strategy) if has(*strategy)))
        };
        let of_tiles = "none of the strategies has tiles of a chosen size (auto takes what its tuning table says)";
        let of_blocks = "none of the strategies has blocks of a chosen size (auto takes what its tuning table says)";
        let inside = "none of the strategies has a choice inside its blocks (auto takes what its tuning table says)";
        let of_passes = "none of the strategies has tile descriptors to choose (auto takes what its tuning table says)";
        let fair = self.schedule == Some(ScheduleChoice::Fair);
        let problems = self.problems();
        let has_operator = problems.iter().any(|problem| problem.has_operator());
        let no_operator = "none of the problems has an operator to choose";
        refuse_idle_of_problems(
            problems,
            [self.shape.is_some(), self.run_length.is_some(), self.input_types.is_some()],
        )?;
        refuse_idle([
            ("--operators", self.operators.is_some(), has_operator, no_operator),
            ("--preemption", self.preemption.is_some(), !fair, "with --schedule fair no warp is interrupted"),
            ("--tuning", self.tuning.is_some(), chosen.contains(&StrategyChoice::Auto), "only auto goes by a table"),
            ("--vts", self.vts.is_some(), some(Strategy::has_tiles), of_tiles),
            ("--blocks", self.blocks.is_some(), some(Strategy::has_blocks), of_blocks),
            ("--pattern", self.pattern.is_some(), some(Strategy::has_patterns), inside),
            ("--composition", self.composition.is_some(), some(Strategy::has_patterns), inside),
            ("--descriptor", self.descriptor.is_some(), some(Strategy::is_single_pass), of_passes),
            ("--tile-order", self.tile_order.is_some(), some(Strategy::is_single_pass), of_passes),
        ])
    }

    /// Refuses what has no effect on a device of a kind, as its description names it.
    ///
    /// # Errors
    /// When there is one.
    pub(super) fn check_device(&self, kind: &str) -> Result<(), CliError> {
        let (on_cpu, is_drawn) = (kind != "cuda", self.input.is_none());
        let of_cpu = "a GPU schedules by itself; --device cpu goes by it";
        refuse_idle([
            ("--schedule", self.schedule.is_some(), on_cpu, of_cpu),
            ("--preemption", self.preemption.is_some(), on_cpu, of_cpu),
            ("--block-order", self.block_order.is_some(), on_cpu, of_cpu),
            ("--resident-blocks", self.resident_blocks.is_some(), on_cpu, of_cpu),
            ("--seed", self.seed.is_some(), on_cpu || is_drawn, "on a GPU it draws the input, which is --input's"),
            ("--samples", self.samples.is_some(), !on_cpu, "the CPU device counts and is not timed; a GPU is"),
        ])
    }
}

/// Refuses the first option of a list that is given and has no effect: its name, whether it is given, whether it has an
/// effect, and why it has none.
///
/// # Errors
/// When there is one.
pub(super) fn refuse_idle<const N: usize>(options: [(&str, bool, bool, &str); N]) -> Result<(), CliError> {
    match options.into_iter().find(|(_, is_given, has_effect, _)| *is_given && !has_effect) {
        Some((option, _, _, why)) => Err(CliError::Usage(format!("{option} has no effect here: {why}; leave it out"))),
        None => Ok(()),
    }
}

/// Refuses what has no effect on any of these problems: --shape, --run-length or --input-types, of each of which it says whether it
/// is given.
///
/// # Errors
/// When there is one.
pub(super) fn refuse_idle_of_problems(
    problems: &[ProblemKind],
    [shape, run_length, input_types]: [bool; 3],
) -> Result<(), CliError> {
    let any = |has: fn(ProblemKind) -> bool| problems.iter().any(|&problem| has(problem));
    let no_rows = "none of the problems scans rows or columns; choose one such as --problem rows";
    let no_runs = "none of the problems has runs; choose one such as --problem by-key";
    let one_type = "each of the problems loads what --types says";
    refuse_idle([
        ("--shape", shape, any(ProblemKind::takes_shape), no_rows),
        ("--run-length", run_length, any(ProblemKind::has_runs), no_runs),
        ("--input-types", input_types, any(ProblemKind::has_operator), one_type),
    ])
}

/// A list of names, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names<T> {
    /// The choices in the order in which they were given.
    pub choices: Vec<T>,
    /// Whether the word was `all`: combinations that do not exist are then left out without a remark.
    pub all: bool,
}

/// A kind of choice that has a list of all.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every choice.
    const EVERY: &'static [Self];
}

macro_rules! choices {
    ($($type:ty),+) => {$(
        impl Choice for $type {
            const EVERY: &'static [Self] = Self::ALL;
        }
    )+};
}
impl Choice for ElementType {
    const EVERY: &'static [Self] = Self::SCANNED;
}
choices!(ProblemKind, StrategyChoice, Operator, Mode, Pattern, Composition, Descriptor, TileOrder, Manner);

impl<T: Choice + FromStr> FromStr for Names<T> {
    type Err = T::Err;
    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text.trim() == "all" {
            return Ok(Self { choices: T::EVERY.to_vec(), all: true });
        }
        let mut choices = Vec::new();
        for word in text.split(',') {
            let choice = word.trim().parse()?;
            if !choices.contains(&choice) {
                choices.push(choice);
            }
        }
        Ok(Self { choices, all: false })
    }
}

fn parse_probability(text: &str) -> Result<f64, String> {
    text.trim()
        .parse()
        .ok()
        .filter(|probability| (0.0..=1.0).contains(probability))
        .ok_or_else(|| "a probability is a number from 0 to 1".to_owned())
}

pub(super) fn parse_run(text: &str) -> Result<u64, String> {
    match parse_count(text) {
        Ok(0) => Err("a run has at least 1 element".to_owned()),
        Ok(elements) => Ok(elements),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_vt(text: &str) -> Result<u32, String> {
    let vt = text.trim().parse().map_err(|_| "VT is a number from 1 to 64".to_owned())?;
    if (1..=abi::LOOKBACK_MAXIMUM_VT).contains(&vt) {
        Ok(vt)
    } else {
        Err(crate::strategy::ConfigError::Vt(vt).to_string())
    }
}

fn parse_block(text: &str) -> Result<u32, String> {
    let block = text.trim().parse().map_err(|_| "threads per block is a number".to_owned())?;
    if (1..=abi::LOOKBACK_MAXIMUM_BLOCK_THREADS).contains(&block) && block % 32 == 0 {
        Ok(block)
    } else {
        Err(crate::strategy::ConfigError::BlockThreads(block).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    #[test]
    fn lists_keep_their_order_and_name_the_choices_of_a_wrong_word() {
        let names: Names<StrategyChoice> = "lookback, auto,lookback".parse().unwrap();
        assert_eq!(names.choices, [StrategyChoice::Named(Strategy::Lookback), StrategyChoice::Auto]);
        assert!("all".parse::<Names<StrategyChoice>>().unwrap().all);
        let error = "lookforward".parse::<Names<StrategyChoice>>().unwrap_err().to_string();
        let names_all = ["lookforward", "reduce-then-scan", "auto"].iter().all(|word| error.contains(word));
        assert!(names_all, "{error}");
    }

    #[test]
    fn what_says_how_strategies_are_run_conflicts_with_a_sweep() {
        const OF_SWEEPS: [&str; 8] = ["device", "tuning", "record", "process", "resume", "verbose", "output", "quiet"];
        let command = CompareArguments::augment_args(clap::Command::new("compare"));
        for argument in command.get_arguments().filter(|argument| argument.get_id() != "sweep") {
            let option = argument.get_long().expect("all are long");
            let kinds = ["", "=all", "=1", "=32", "=4x4", "=random", "=json", "=cuda"].map(|value| {
                let words = ["compare", "--sweep=targets", &format!("--{option}{value}")];
                command.clone().try_get_matches_from(words).err().map(|error| error.kind())
            });
            let is_of_sweeps = OF_SWEEPS.contains(&argument.get_id().as_str());
            assert_eq!(kinds.contains(&None), is_of_sweeps, "{option}: {kinds:?}");
            assert_eq!(kinds.contains(&Some(ErrorKind::ArgumentConflict)), !is_of_sweeps, "{option}: {kinds:?}");
        }
    }
}
