//! Sweeps as data: TOML files that say what is measured and for what, shipped in `sweeps/` and embedded.
//!
//! ```toml
//! name = "example"
//! purpose = "A sentence on the question that the sweep answers."
//!
//! [limits]                            # all optional
//! seconds_per_figure = 0.5            # a point's time-out: this × its subjects, a figure
//! minimum_samples = 10
//!
//! [[measure]]
//! types = ["i32"]                     # default: i32
//! operators = ["sum"]                 # default: sum
//! modes = ["inclusive", "exclusive"]  # default: inclusive
//! problems = ["rows", "by-key"]       # default: flat
//! inputs = ["u8"]                     # types of what is loaded, with each of `types`; default: what is stored
//! segments = ["32", "2^10"]           # of a row or column; on average of a run or segment, or of those of which one is kept
//! sizes = ["2^20", "10^8", "2^16+1"]  # elements; "1MiB" and "1MiB-1": bytes of the input, and one element less
//! offsets = [[0, 0], [1, 3]]          # input and output, elements above a 16-byte boundary; default: [[0, 0]]
//! strategies = ["auto", "lookback", "reduce-then-scan"]
//! vts = [16, 32]                      # default: what is suggested for the size; not for auto
//! blocks = [256]                      # likewise
//! peers = ["all"]                     # default: none
//! figures = ["cold", "graph"]         # default: cold, stream, graph, latency
//! bounds = true                       # beside each strategy that waits, the same without waiting; default: false
//! copies = true                       # every copy kernel, beside the one at every point; default: false
//! every_process = true                # measured by every process, and not by the first alone; default: false
//! ```
//!
//! `problems` are those of `lookback compare --problem`: a [`ProblemKind`] by its name. Rows, columns, runs and segments have
//! each of the lengths in `segments`; a recurrence has rows of them, or is one sequence where there are none. Sizes that are
//! no whole rows or columns are rounded down to such. The size "switches" is those on both sides of each switch of the table that
//! `auto` goes by. Recurrences have no operator, and `operators` is not looked at.
//!
//! Entries of all `[[measure]]` tables that have problem, types, operator, segments, n and offsets in common are one
//! [`Point`](super::point::Point) and are measured in common rounds. `memcpy` and the 16-byte copy kernel are at every
//! point: they are the floor. Beside what is more than a flat scan of one type they copy half of the bytes that the scan must
//! read and write, between two arrays of their own that begin at boundaries.

use super::point::Offsets;
use super::sampling::{Figure, SamplingSettings};
use super::stopping::StoppingRule;
use crate::element::{ElementType, Instance, Operator};
use crate::lab::workload::ProblemKind;
use crate::strategy::tuning::{TuningError, TuningTable};
use crate::strategy::{Mode, ScanConfig, StrategyChoice};
use crate::text::{SizeError, parse_array_size, parse_count};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A sweep as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepFile {
    /// Name in file names: letters, digits and hyphens.
    pub name: String,
    /// What it is for.
    pub purpose: String,
    /// Seed of inputs and of the order in rounds.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Budgets and criteria.
    #[serde(default)]
    pub limits: Limits,
    /// Which of several processes measures it, from 1 on: its points come in an order of its own, and from the second on they are
    /// those of the groups that every process measures. Without it, all points in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// What is measured.
    #[serde(rename = "measure")]
    pub groups: Vec<Group>,
    /// The table that `auto` goes by; without it, the committed one of the GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<TuningTable>,
}

const fn default_seed() -> u64 {
    42
}

/// Budgets and criteria of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Time-out of a figure at a point, for each subject there.
    pub seconds_per_figure: f64,
    /// Never fewer accepted samples.
    pub minimum_samples: usize,
    /// Never more.
    pub maximum_samples: usize,
    /// Standard error of the median, relative to it, that is good enough.
    pub relative_standard_error: f64,
    /// What a sample of many runs lasts at least.
    pub sample_microseconds: f64,
    /// Sampled for nothing before each figure of a point.
    pub warm_up_milliseconds: f64,
    /// Latency is measured up to this many elements.
    pub latency_up_to: String,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            seconds_per_figure: 0.5,
            minimum_samples: 10,
            maximum_samples: 100,
            relative_standard_error: 0.005,
            sample_microseconds: 500.0,
            warm_up_milliseconds: 5.0,
            latency_up_to: "2^20".to_owned(),
        }
    }
}

impl Limits {
    /// The limits as the sampling loop takes them.
    pub fn sampling(&self) -> SamplingSettings {
        SamplingSettings {
            rule: StoppingRule {
                minimum_samples: self.minimum_samples,
                maximum_samples: self.maximum_samples,
                relative_standard_error: self.relative_standard_error,
            },
            sample_time: Duration::from_secs_f64(self.sample_microseconds * 1e-6),
            warm_up: Duration::from_secs_f64(self.warm_up_milliseconds * 1e-3),
            time_out_per_subject: Duration::from_secs_f64(self.seconds_per_figure),
        }
    }
}

/// A part of a sweep: every combination of its lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Element types.
    #[serde(default = "default_types")]
    pub types: Vec<ElementType>,
    /// Operators.
    #[serde(default = "default_operators")]
    pub operators: Vec<Operator>,
    /// Modes.
    #[serde(default = "default_modes")]
    pub modes: Vec<Mode>,
    /// Problems.
    #[serde(default = "default_problems", skip_serializing_if = "is_flat")]
    pub problems: Vec<ProblemKind>,
    /// Types of what is loaded; empty for those of what is stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ElementType>,
    /// Elements of a row or column, or of a run or segment on average, as on the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<String>,
    /// Sizes as on the command line.
    pub sizes: Vec<String>,
    /// Where input and output begin.
    #[serde(default = "default_offsets", skip_serializing_if = "is_aligned")]
    pub offsets: Vec<Offsets>,
    /// Strategies, or `auto`, which the tuning table resolves.
    #[serde(default)]
    pub strategies: Vec<StrategyChoice>,
    /// Values per thread; empty for what is suggested for the size.
    #[serde(default)]
    pub vts: Vec<u32>,
    /// Threads per block; empty for what is suggested for the size.
    #[serde(default)]
    pub blocks: Vec<u32>,
    /// Peers by name, or "all".
    #[serde(default)]
    pub peers: Vec<String>,
    /// Figures.
    #[serde(default = "default_figures")]
    pub figures: Vec<Figure>,
    /// Whether each strategy that waits is measured without waiting, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bounds: bool,
    /// Whether every copy kernel is measured.
    #[serde(default, skip_serializing_if = "is_false")]
    pub copies: bool,
    /// Whether every process measures it, and not the first alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub every_process: bool,
}

/// The size in a file that stands for those on both sides of each switch of the table.
pub(super) const SWITCHES: &str = "switches";

fn default_offsets() -> Vec<Offsets> {
    vec![Offsets::default()]
}

// A field that a file leaves out is left out of its record, so that older records can be resumed and look as before.
fn is_aligned(offsets: &[Offsets]) -> bool {
    offsets == [Offsets::default()]
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "for serde")]
fn is_false(value: &bool) -> bool {
    !value
}

fn default_problems() -> Vec<ProblemKind> {
    vec![ProblemKind::default()]
}

fn is_flat(problems: &[ProblemKind]) -> bool {
    problems == [ProblemKind::default()]
}

fn default_types() -> Vec<ElementType> {
    vec![ElementType::I32]
}

fn default_operators() -> Vec<Operator> {
    vec![Operator::Sum]
}

fn default_modes() -> Vec<Mode> {
    vec![Mode::Inclusive]
}

fn default_figures() -> Vec<Figure> {
    Figure::USUAL.to_vec()
}

/// A sweep file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SweepFileError {
    /// Neither shipped nor a file.
    #[error(
        "there is no sweep '{name}': it is none of {shipped} and no file; others are files, such as sweeps/{name}.toml"
    )]
    Unknown { name: String, shipped: String },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The file, or the shipped sweep, is no TOML or has not the fields of a sweep.
    #[error("{origin} is no sweep file")]
    Toml { origin: String, source: Box<toml::de::Error> },
    /// A value that makes no sense.
    #[error("the sweep '{sweep}' cannot be run: {reason}")]
    Value { sweep: String, reason: String },
    /// Its tuning table does not fit the GPU.
    #[error(transparent)]
    Tuning(#[from] TuningError),
}

/// The sweeps in `sweeps/`, by name.
pub const SHIPPED: &[(&str, &str)] = &[
    ("quick", include_str!("../../../sweeps/quick.toml")),
    ("size", include_str!("../../../sweeps/size.toml")),
    ("vt", include_str!("../../../sweeps/vt.toml")),
    ("types", include_str!("../../../sweeps/types.toml")),
    ("seeds", include_str!("../../../sweeps/seeds.toml")),
    ("targets", include_str!("../../../sweeps/targets.toml")),
    ("problems", include_str!("../../../sweeps/problems.toml")),
];

pub(super) fn parse_latency_limit(text: &str) -> Result<u64, SizeError> {
    // Of elements of one byte: bytes are elements.
    parse_array_size(text, 1)
}

impl SweepFile {
    /// A shipped sweep by name, or a file by path.
    ///
    /// # Errors
    /// When there is neither, or it is no usable sweep.
    pub fn open(name: &str) -> Result<Self, SweepFileError> {
        if let Some((_, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            return Self::parse(text, format!("the shipped sweep '{name}'"));
        }
        let path = Path::new(name);
        match crate::file::read_text(path) {
            Ok(text) => Self::parse(&text, path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(SweepFileError::Unknown {
                name: name.to_owned(),
                shipped: SHIPPED.iter().map(|(shipped, _)| *shipped).collect::<Vec<_>>().join(", "),
            }),
            Err(source) => Err(SweepFileError::Io { path: path.to_owned(), source }),
        }
    }

    /// Reads a sweep; `origin` is for the error.
    ///
    /// # Errors
    /// When it is no usable sweep.
    pub fn parse(text: &str, origin: String) -> Result<Self, SweepFileError> {
        let sweep: Self =
            toml::from_str(text).map_err(|source| SweepFileError::Toml { origin, source: Box::new(source) })?;
        sweep.check()?;
        Ok(sweep)
    }

    fn check(&self) -> Result<(), SweepFileError> {
        let wrong = |reason: String| Err(SweepFileError::Value { sweep: self.name.clone(), reason });
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.name.is_empty() || !self.name.chars().all(is_plain) {
            return wrong("its name must be letters, digits and hyphens, because files are named by it".to_owned());
        }
        if self.purpose.trim().is_empty() {
            return wrong("it has no purpose; say in a sentence what it is for".to_owned());
        }
        if self.seed > i64::MAX as u64 {
            return wrong("its seed does not fit TOML's numbers; choose one below 2^63".to_owned());
        }
        let limits = &self.limits;
        let durations = [
            ("seconds_per_figure", limits.seconds_per_figure, 3600.0),
            ("sample_microseconds", limits.sample_microseconds, 1e9),
            ("warm_up_milliseconds", limits.warm_up_milliseconds, 1e6),
        ];
        for (name, value, largest) in durations {
            if !(0.0..=largest).contains(&value) {
                return wrong(format!("{name} is {value}; it must lie between 0 and {largest}"));
            }
        }
        if limits.minimum_samples < 2 || limits.maximum_samples < limits.minimum_samples {
            return wrong("minimum_samples must be at least 2, maximum_samples no smaller".to_owned());
        }
        if !(limits.relative_standard_error > 0.0 && limits.relative_standard_error < 1.0) {
            return wrong("relative_standard_error must lie between 0 and 1".to_owned());
        }
        if let Err(error) = parse_latency_limit(&limits.latency_up_to) {
            return wrong(format!("latency_up_to is '{}': {error}", limits.latency_up_to));
        }
        for group in &self.groups {
            let loaded = if group.inputs.is_empty() { &group.types } else { &group.inputs };
            if self.process == Some(0) {
                return wrong("processes are numbered from 1 on".to_owned());
            }
            let sizes = group.sizes.iter().filter(|text| *text != SWITCHES);
            for (text, &element) in sizes.flat_map(|text| loaded.iter().map(move |of| (text, of))) {
                match parse_array_size(text, element.bytes()) {
                    Err(error) => return wrong(format!("the size '{text}' of {element}: {error}")),
                    Ok(0) => return wrong(format!("the size '{text}' of {element} is 0 elements, which take no time")),
                    Ok(_) => {}
                }
            }
            if group.offsets.is_empty() {
                return wrong("offsets is empty; leave it out, or write [[0, 0]]".to_owned());
            }
            if let Some(far) = group.offsets.iter().find(|offsets| offsets.input.max(offsets.output) > Offsets::MOST) {
                return wrong(format!(
                    "the offsets [{}, {}] are more than {} elements, which repeats smaller ones",
                    far.input,
                    far.output,
                    Offsets::MOST
                ));
            }
            let default = ScanConfig::default();
            let vts = group.vts.iter().map(|&vt| ScanConfig { vt, ..default });
            let blocks = group.blocks.iter().map(|&block_threads| ScanConfig { block_threads, ..default });
            if let Some(error) = vts.chain(blocks).find_map(|config| config.check().err()) {
                return wrong(error.to_string());
            }
            if group.strategies.is_empty() && group.peers.is_empty() {
                return wrong("a [[measure]] names neither strategies nor peers".to_owned());
            }
            if group.figures.is_empty() {
                return wrong("a [[measure]] names no figures".to_owned());
            }
            for &element in group.types.iter().chain(&group.inputs) {
                if !element.is_number() {
                    return wrong(format!("{element} is no number; measured inputs are numbers"));
                }
            }
            for text in &group.segments {
                match parse_count(text) {
                    Err(error) => return wrong(format!("the length of segments '{text}': {error}")),
                    Ok(0) => return wrong("segments of 0 elements are none; name lengths of at least 1".to_owned()),
                    Ok(_) => {}
                }
            }
            if group.problems.is_empty() {
                return wrong("problems is empty; leave it out, or write [\"flat\"]".to_owned());
            }
            for problem in &group.problems {
                let needs = problem.needs_shape() || problem.has_runs();
                if needs && group.segments.is_empty() {
                    return wrong(format!(
                        "the problem '{problem}' has segments; name their lengths: segments = [\"2^10\"]"
                    ));
                }
            }
            if !group.segments.is_empty() && !group.problems.iter().any(|of| of.takes_shape() || of.has_runs()) {
                return wrong(
                    "segments are named, and no problem of its [[measure]] has any; leave them out".to_owned(),
                );
            }
            let is_defined =
                |&element| group.operators.iter().any(|&operator| Instance::of_stored(element, operator).is_ok());
            if !group.types.iter().any(is_defined) {
                return wrong("a [[measure]] has no operator that is defined on one of its types".to_owned());
            }
        }
        if self.groups.iter().all(|group| group.sizes.is_empty()) {
            return wrong("it names no size".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn shipped(name: &str) -> SweepFile {
        SweepFile::open(name).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The message with what is behind it, as the program prints it.
    fn whole(error: &dyn std::error::Error) -> String {
        std::iter::successors(Some(error), |error| error.source()).map(|error| format!("{error}: ")).collect()
    }

    const START: &str = "name = \"a\"\npurpose = \"b\"\n[[measure]]\n";

    pub(crate) fn parsed(measure: &str) -> Result<SweepFile, String> {
        SweepFile::parse(&format!("{START}{measure}"), "test".to_owned()).map_err(|error| whole(&error))
    }

    #[test]
    fn a_sweep_survives_being_written_and_read_as_toml_and_json() {
        for (name, _) in SHIPPED {
            let sweep = shipped(name);
            let text = toml::to_string(&sweep).unwrap();
            assert_eq!(SweepFile::parse(&text, "written".to_owned()).unwrap(), sweep, "{name}");
            let json = serde_json::to_string(&sweep).unwrap();
            assert_eq!(serde_json::from_str::<SweepFile>(&json).unwrap(), sweep, "{name}");
        }
    }

    #[test]
    fn mistakes_in_a_sweep_file_are_typed_errors_that_say_where() {
        let parse = |text: &str| whole(&SweepFile::parse(text, "test".to_owned()).unwrap_err());
        let (start, group) = ("name = \"a\"\npurpose = \"b\"\n", "[[measure]]\nstrategies = [\"lookback\"]\nsizes = ");
        for (text, says) in [
            ("name = ".to_owned(), "no sweep file"),
            (format!("{start}typo = 1\n{group}[]"), "typo"),
            (format!("{start}{group}[\"2^x\"]"), "2^x"),
            (format!("{start}[[measure]]\nsizes = [\"1\"]"), "neither strategies nor peers"),
            (format!("{start}[[measure]]\nsizes = [\"1\"]\nstrategies = [\"lookforward\"]"), "lookforward"),
            (format!("{start}[limits]\nminimum_samples = 1\n{group}[\"1\"]"), "at least 2"),
            (format!("{start}{group}[\"2^45\"]"), "2^44"),
            (format!("{start}{group}[\"1\"]\nfigures = []"), "no figures"),
            (format!("{start}{group}[\"1\"]\ntypes = [\"f32\"]\noperators = [\"xor\"]"), "no operator that is defined"),
            (format!("{start}{group}[\"1\"]\ntypes = []"), "no operator that is defined"),
            (format!("{start}{group}[\"1\"]\nvts = [8, 0]"), "VT (values per thread) is 0; it must be from 1 to 64"),
            (format!("{start}{group}[\"1\"]\nvts = [65]"), "VT (values per thread) is 65"),
            (format!("{start}{group}[\"1\"]\noffsets = [[1, 2, 3]]"), "offsets are two numbers"),
            (format!("{start}{group}[\"1\"]\noffsets = [[1]]"), "offsets are two numbers"),
            (format!("{start}{group}[\"1\"]\noffsets = [[1, 2, 3, 4, \"x\"]]"), "invalid type: string"),
            (format!("{start}{group}[\"1\"]\nproblems = [\"diagonals\"]"), "diagonals"),
            (format!("{start}{group}[\"1\"]\nproblems = []"), "problems is empty"),
            (format!("{start}{group}[\"1\"]\nproblems = [\"rows\"]"), "the problem 'rows' has segments"),
            (format!("{start}{group}[\"1\"]\nproblems = [\"offsets\"]\nsegments = [\"0\"]"), "at least 1"),
            (format!("{start}{group}[\"1\"]\nproblems = [\"offsets\"]\nsegments = [\"x\"]"), "'x'"),
            (format!("{start}{group}[\"1\"]\nsegments = [\"8\"]"), "no problem of its [[measure]] has any"),
            (format!("{start}{group}[\"1\"]\ninputs = [\"affine-map\"]"), "affine-map is no number"),
            (format!("{start}{group}[\"1\"]\nblocks = [33]"), "threads per block is 33; it must be a multiple of 32"),
            (format!("{start}{group}[\"1\"]\nblocks = [2048]"), "threads per block is 2048"),
        ] {
            assert!(parse(&text).contains(says), "{says}: {}", parse(&text));
        }
        let twice = parse(&format!("{start}typo = 1\n"));
        assert_eq!(twice.matches("TOML parse error").count(), 1, "{twice}");
        assert!(matches!(SweepFile::open("none-such"), Err(SweepFileError::Unknown { .. })));
    }
}
