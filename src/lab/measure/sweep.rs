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
//! sizes = ["2^20", "10^8", "2^16+1"]  # elements; "1MiB" and "1MiB-1": bytes of the input, and one element less
//! offsets = [[0, 0], [1, 3]]          # input and output, elements above a 16-byte boundary; default: [[0, 0]]
//! strategies = ["auto", "lookback", "reduce-then-scan"]
//! vts = [16, 32]                      # default: what is suggested for the size; not for auto
//! blocks = [256]                      # likewise
//! peers = ["all"]                     # default: none
//! figures = ["cold", "graph"]         # default: all
//! bounds = true                       # beside each strategy that waits, the same without waiting; default: false
//! ```
//!
//! Entries of all `[[measure]]` tables that have type, operator, n and offsets in common are one [`Point`] and are
//! measured in common rounds. `memcpy` and the 16-byte copy kernel are at every point: they are the floor.

use super::input;
use super::record::Kind;
use super::sampling::{Figure, SamplingSettings, StoppingRule};
use crate::element::{ElementType, Instance, Operator};
use crate::lab::record::Skipped;
use crate::strategy::tuning::{Gpu, Resolved, Tuning, TuningError, TuningTable};
use crate::strategy::{Mode, ScanConfig, Strategy, StrategyChoice};
use crate::text::{format_size, parse_array_size};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
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
    /// Sizes as on the command line, 10^k, and bytes of the input as 64KiB, 1MiB or 1MiB-1.
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
}

/// How many elements input and output begin above a 16-byte boundary; in files `[input, output]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(from = "[u32; 2]", into = "[u32; 2]")]
pub struct Offsets {
    /// Elements from the boundary to the input.
    pub input: u32,
    /// Elements from the boundary to the output.
    pub output: u32,
}

impl Offsets {
    /// More would only repeat what fewer are: 32 elements of any type end at a sector of the L2 cache.
    pub const MOST: u32 = 31;

    /// Whether both arrays begin at a boundary.
    // serde passes a reference.
    pub fn is_aligned(&self) -> bool {
        *self == Self::default()
    }
}

impl From<[u32; 2]> for Offsets {
    fn from([input, output]: [u32; 2]) -> Self {
        Self { input, output }
    }
}

impl From<Offsets> for [u32; 2] {
    fn from(Offsets { input, output }: Offsets) -> Self {
        [input, output]
    }
}

/// "offsets 1,3".
impl fmt::Display for Offsets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "offsets {},{}", self.input, self.output)
    }
}

fn default_offsets() -> Vec<Offsets> {
    vec![Offsets::default()]
}

// What a file leaves out is left out of records, too, so that older ones are gone on with and drawn as before.
fn is_aligned(offsets: &[Offsets]) -> bool {
    offsets == [Offsets::default()]
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "for serde")]
fn is_false(value: &bool) -> bool {
    !value
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
    Figure::ALL.to_vec()
}

/// What is measured against each other.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A strategy of this crate.
    Scan {
        /// The strategy.
        strategy: Strategy,
        /// What is computed.
        mode: Mode,
        /// The choices inside the strategy.
        config: ScanConfig,
    },
    /// What the tuning table names for the size.
    Auto {
        /// The strategy that it came to.
        strategy: Strategy,
        /// What is computed.
        mode: Mode,
        /// The choices inside that strategy.
        config: ScanConfig,
    },
    /// A strategy whose kernel was compiled so that tiles wait for nothing: how fast it could be at best. Its result is
    /// wrong by design.
    Bound {
        /// The strategy.
        strategy: Strategy,
        /// What it would compute.
        mode: Mode,
        /// The choices inside the strategy.
        config: ScanConfig,
    },
    /// A scan of another library.
    Peer {
        /// Its name.
        name: String,
        /// What is computed.
        mode: Mode,
    },
    /// The driver's copy on the device.
    Memcpy,
    /// A copy kernel with accesses of 16 bytes.
    Copy16,
    /// The same kernel, compiled under another name.
    Copy16Again,
    /// The same kernel, moving 5 % more bytes.
    Copy16Slower,
    /// Nothing at all: what the events and the queue around them take.
    EmptyFrame,
    /// A kernel that runs for a given time.
    Spin {
        /// How long.
        nanoseconds: u64,
    },
}

/// Whether a subject is a peer in another variant than the one its users call: a 64-bit count, a fixed order, a call
/// that waits.
pub fn is_variant(subject: &str) -> bool {
    ["-64-bit-count", "-synchronous", "-run-to-run", "copy-16-byte"].iter().any(|part| subject.contains(part))
}

impl Subject {
    /// Name in tables and plots.
    pub fn name(&self) -> String {
        match self {
            Self::Scan { strategy, .. } => strategy.name().to_owned(),
            Self::Bound { strategy, .. } => bound_name(strategy.name()),
            Self::Auto { .. } => StrategyChoice::Auto.name().to_owned(),
            Self::Peer { name, .. } => name.clone(),
            Self::Memcpy => "memcpy".to_owned(),
            Self::Copy16 => "copy-16-byte".to_owned(),
            Self::Copy16Again => "copy-16-byte-again".to_owned(),
            Self::Copy16Slower => "copy-16-byte-slower".to_owned(),
            Self::EmptyFrame => "empty-frame".to_owned(),
            Self::Spin { nanoseconds } => format!("spin-{nanoseconds}-ns"),
        }
    }

    /// What it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Scan { .. } | Self::Auto { .. } => Kind::Strategy,
            Self::Bound { .. } => Kind::Bound,
            Self::Peer { .. } => Kind::Peer,
            _ => Kind::Copy,
        }
    }

    /// What is computed, if it is a scan.
    pub const fn mode(&self) -> Option<Mode> {
        match self {
            Self::Peer { mode, .. } => Some(*mode),
            _ => match self.scan() {
                Some((_, mode, _)) => Some(mode),
                None => None,
            },
        }
    }

    /// Strategy, mode and configuration of a scan of this crate, or of its bound.
    pub const fn scan(&self) -> Option<(Strategy, Mode, ScanConfig)> {
        match self {
            Self::Scan { strategy, mode, config }
            | Self::Auto { strategy, mode, config }
            | Self::Bound { strategy, mode, config } => Some((*strategy, *mode, *config)),
            _ => None,
        }
    }
}

/// Name of the subject that is a strategy without its waiting.
pub fn bound_name(strategy: &str) -> String {
    format!("{strategy}-without-waiting")
}

/// A subject and the figures that are measured of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The subject.
    pub subject: Subject,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// Everything that is measured on one input.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Element type and operator.
    pub instance: Instance,
    /// Elements.
    pub n: u64,
    /// Where input and output begin.
    pub offsets: Offsets,
    /// What is measured against each other, the copies first.
    pub entries: Vec<Entry>,
}

impl Point {
    /// Bytes of the input.
    pub const fn input_bytes(&self) -> u64 {
        self.n * self.instance.element().bytes() as u64
    }

    /// What is scanned, in words: "i32 sum n = 2^20, offsets 1,3".
    pub fn title(&self) -> String {
        let offsets = if self.offsets.is_aligned() { String::new() } else { format!(", {}", self.offsets) };
        format!("{} n = {}{offsets}", self.instance, format_size(self.n))
    }

    /// Seed of the order in rounds: another one at every point.
    pub fn seed(&self, sweep_seed: u64) -> u64 {
        let parts = [self.instance.element() as u64, self.instance.operator() as u64, self.n];
        let offsets = [u64::from(self.offsets.input), u64::from(self.offsets.output)];
        // Aligned points have the order that they had before there were others.
        let offsets = offsets.iter().filter(|_| !self.offsets.is_aligned());
        // FNV-1a over the parts; all that matters is that points differ.
        parts
            .iter()
            .chain(offsets)
            .fold(sweep_seed ^ 0xcbf2_9ce4_8422_2325, |hash, part| (hash ^ part).wrapping_mul(0x0100_0000_01b3))
    }
}

/// A sweep file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SweepFileError {
    /// Neither shipped nor a file.
    #[error("there is no sweep '{name}': it is none of {shipped} and no file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        shipped: String,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// No TOML, or not the fields of a sweep.
    #[error("{origin} is no sweep file")]
    Toml {
        /// The file, or the shipped sweep.
        origin: String,
        /// What is wrong, with line and column.
        source: Box<toml::de::Error>,
    },
    /// A value that makes no sense.
    #[error("the sweep '{sweep}' cannot be run: {reason}")]
    Value {
        /// The sweep.
        sweep: String,
        /// What is wrong and what would do.
        reason: String,
    },
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
];

fn parse_latency_limit(text: &str) -> Option<u64> {
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
        match std::fs::read_to_string(path) {
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
        if parse_latency_limit(&limits.latency_up_to).is_none() {
            return wrong(format!("latency_up_to '{}' is no number of elements", limits.latency_up_to));
        }
        for group in &self.groups {
            for (text, &element) in group.sizes.iter().flat_map(|text| group.types.iter().map(move |of| (text, of))) {
                match parse_array_size(text, element.bytes()) {
                    None => {
                        return wrong(format!(
                            "'{text}' is no size up to 2^44; write 2^20, 10^8, 2^16+1, 1000, 64KiB or 1MiB-1"
                        ));
                    }
                    Some(0) => return wrong("a size of 0 takes no time".to_owned()),
                    Some(_) => {}
                }
            }
            if group.offsets.is_empty() {
                return wrong("offsets is empty; leave it out, or write [[0, 0]]".to_owned());
            }
            if let Some(far) = group.offsets.iter().find(|offsets| offsets.input.max(offsets.output) > Offsets::MOST) {
                return wrong(format!(
                    "the offsets {:?} are more than {} elements, which repeats smaller ones",
                    <[u32; 2]>::from(*far),
                    Offsets::MOST
                ));
            }
            if group.strategies.is_empty() && group.peers.is_empty() {
                return wrong("a [[measure]] names neither strategies nor peers".to_owned());
            }
            for &element in &group.types {
                if !ElementType::NUMBERS.contains(&element) {
                    return wrong(format!("{element} is no number; measured inputs are numbers"));
                }
            }
        }
        if self.groups.iter().all(|group| group.sizes.is_empty()) {
            return wrong("it names no size".to_owned());
        }
        Ok(())
    }

    /// The points in the order in which they are measured, and what is left out. `peers` are those that can
    /// be run: their names. `auto` goes by the table of an H100.
    pub fn points(&self, peers: &[String]) -> (Vec<Point>, Vec<Skipped>) {
        self.points_by(peers, &Tuning::default())
    }

    /// What `auto` goes by on a GPU: the sweep's own table, or the committed one.
    ///
    /// # Errors
    /// When the sweep's own table has a row that does not fit the GPU.
    pub fn tuning_on(&self, gpu: Gpu) -> Result<Tuning, TuningError> {
        match &self.tuning {
            Some(table) => Tuning::with_table(table, gpu),
            None => Ok(Tuning::committed(gpu)),
        }
    }

    /// The points, with `auto` resolved by `tuning`.
    pub fn points_by(&self, peers: &[String], tuning: &Tuning) -> (Vec<Point>, Vec<Skipped>) {
        let mut points: BTreeMap<(Instance, u64, Offsets), Vec<Entry>> = BTreeMap::new();
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut skip = |what: String, why: &str| {
            let note = Skipped { what, why: why.to_owned() };
            if !skipped.contains(&note) {
                skipped.push(note);
            }
        };
        let latency_limit = parse_latency_limit(&self.limits.latency_up_to).unwrap_or(0);
        for group in &self.groups {
            for (&element, &operator) in
                group.types.iter().flat_map(|element| group.operators.iter().map(move |operator| (element, operator)))
            {
                let Ok(instance) = Instance::new(element, operator) else {
                    skip(format!("{element} {operator}"), "the operator is not defined on the type");
                    continue;
                };
                if !input::is_supported(instance) {
                    skip(instance.to_string(), "measured inputs are numbers");
                    continue;
                }
                let sizes = group.sizes.iter().filter_map(|text| parse_array_size(text, element.bytes()));
                for (n, &offsets) in sizes.flat_map(|n| group.offsets.iter().map(move |offsets| (n, offsets))) {
                    let figures: Vec<Figure> = group
                        .figures
                        .iter()
                        .copied()
                        .filter(|&figure| figure != Figure::Latency || n <= latency_limit)
                        .collect();
                    let entries = points.entry((instance, n, offsets)).or_default();
                    let mut add = |subject: Subject| match entries.iter_mut().find(|entry| entry.subject == subject) {
                        Some(entry) => {
                            for &figure in &figures {
                                if !entry.figures.contains(&figure) {
                                    entry.figures.push(figure);
                                }
                            }
                        }
                        None => entries.push(Entry { subject, figures: figures.clone() }),
                    };
                    add(Subject::Memcpy);
                    add(Subject::Copy16);
                    for &mode in &group.modes {
                        if mode == Mode::InclusiveMinusInput && !instance.has_inverse() {
                            skip(format!("{mode} of {instance}"), "it exists for integer sums only");
                            continue;
                        }
                        for &choice in &group.strategies {
                            let (strategy, configs) = match choice {
                                StrategyChoice::Named(strategy) => {
                                    let configs = group.configs(strategy, element.bytes(), n);
                                    for &config in &configs {
                                        add(Subject::Scan { strategy, mode, config });
                                    }
                                    (strategy, configs)
                                }
                                StrategyChoice::Auto => {
                                    let Resolved { strategy, config } = tuning.resolve(instance, n);
                                    add(Subject::Auto { strategy, mode, config });
                                    (strategy, vec![config])
                                }
                            };
                            if group.bounds && strategy.row().fault_without_waiting.is_some() {
                                for config in configs {
                                    add(Subject::Bound { strategy, mode, config });
                                }
                            }
                        }
                        for name in group.peer_names(peers, &mut skip) {
                            if mode != Mode::InclusiveMinusInput {
                                add(Subject::Peer { name, mode });
                            }
                        }
                    }
                }
            }
        }
        let point = |((instance, n, offsets), entries)| Point { instance, n, offsets, entries };
        (points.into_iter().map(point).collect(), skipped)
    }
}

impl Group {
    /// The configurations of a strategy; what it does not depend on keeps its default, so that it runs once,
    /// and what the file leaves open is what is suggested for the size.
    fn configs(&self, strategy: Strategy, element_bytes: usize, n: u64) -> Vec<ScanConfig> {
        let default = ScanConfig::suggested(strategy, element_bytes, n);
        let list = |asked: &[u32], default: u32, matters: bool| {
            if matters && !asked.is_empty() { asked.to_vec() } else { vec![default] }
        };
        let vts = list(&self.vts, default.vt, strategy.has_tiles());
        let blocks = list(&self.blocks, default.block_threads, strategy != Strategy::Sequential);
        blocks
            .iter()
            .flat_map(|&block_threads| vts.iter().map(move |&vt| ScanConfig { vt, block_threads, ..default }))
            .collect()
    }

    fn peer_names(&self, available: &[String], skip: &mut impl FnMut(String, &str)) -> Vec<String> {
        // The copies are subjects of their own at every point.
        let is_copy = |name: &String| [Subject::Memcpy.name(), Subject::Copy16.name()].contains(name);
        let mut names: Vec<String> = Vec::new();
        for asked in &self.peers {
            if asked == "all" {
                names.extend(available.iter().filter(|name| !is_copy(name)).cloned());
                if available.is_empty() {
                    skip("peers".to_owned(), "this build has none; build it with the cargo feature 'peers'");
                }
            } else if available.contains(asked) {
                names.push(asked.clone());
            } else {
                skip(format!("peer {asked}"), "this build does not have it");
            }
        }
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> SweepFile {
        SweepFile::open(name).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_shipped_sweep_is_usable_named_as_its_file_and_has_a_purpose() {
        for (name, _) in SHIPPED {
            let sweep = shipped(name);
            assert_eq!(&sweep.name, name);
            let (points, _) = sweep.points(&[]);
            assert!(!points.is_empty(), "{name}");
            for point in &points {
                assert_eq!(point.entries[0].subject, Subject::Memcpy, "{name}");
                assert_eq!(point.entries[1].subject, Subject::Copy16, "{name}");
            }
        }
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
    fn the_vt_sweep_has_every_combination_at_four_sizes() {
        let (points, _) = shipped("vt").points(&[]);
        assert_eq!(points.iter().map(|point| point.n).collect::<Vec<_>>(), [1 << 16, 1 << 20, 1 << 24, 1 << 28]);
        for point in points {
            for strategy in [Strategy::ReduceThenScan, Strategy::Lookback] {
                let of = |entry: &&Entry| matches!(entry.subject, Subject::Scan { strategy: other, .. } if other == strategy);
                assert_eq!(point.entries.iter().filter(of).count(), 12 * 5);
            }
        }
    }

    #[test]
    fn the_size_sweep_covers_what_the_issue_asks_for() {
        let (points, _) = shipped("size").points(&["cub-3.5.0".to_owned()]);
        let has = |n: u64| points.iter().any(|point| point.n == n);
        assert!((8..=32).all(|exponent| has(1 << exponent)));
        assert!(has(100_000_000) && points.iter().any(|point| !point.n.is_power_of_two()));
        for point in &points {
            for mode in [Mode::Inclusive, Mode::Exclusive] {
                let peer = Subject::Peer { name: "cub-3.5.0".to_owned(), mode };
                assert!(point.entries.iter().any(|entry| entry.subject == peer), "{mode} at {}", point.n);
                for wanted in [Strategy::Lookback, Strategy::ReduceThenScan] {
                    assert!(point.entries.iter().any(|entry| matches!(&entry.subject,
                        Subject::Scan { strategy, mode: other, .. } if *strategy == wanted && *other == mode)));
                }
            }
        }
    }

    #[test]
    fn the_seeds_sweep_is_the_published_comparison() {
        let (points, _) = shipped("seeds").points(&["thrust-exclusive-scan".to_owned()]);
        assert_eq!(points.len(), 1);
        assert_eq!(points[0].n, 100_000_000);
        let thrust = Subject::Peer { name: "thrust-exclusive-scan".to_owned(), mode: Mode::Exclusive };
        assert!(points[0].entries.iter().any(|entry| entry.subject == thrust));
    }

    #[test]
    fn latency_is_measured_at_small_sizes_only() {
        let (points, _) = shipped("size").points(&[]);
        for point in points {
            for entry in &point.entries {
                assert_eq!(entry.figures.contains(&Figure::Latency), point.n <= 1 << 20, "{}", point.n);
            }
        }
    }

    #[test]
    fn peers_that_are_not_there_are_noted_and_copies_are_not_doubled() {
        let text = "name = \"a\"\npurpose = \"b\"\n[[measure]]\nsizes = [\"1000\"]\nstrategies = [\"lookback\"]\npeers = [\"all\", \"none-such\"]";
        let sweep = SweepFile::parse(text, "test".to_owned()).unwrap();
        let (_, skipped) = sweep.points(&[]);
        assert_eq!(skipped.len(), 2);
        let (points, _) = sweep.points(&["memcpy".to_owned(), "copy-16-byte".to_owned(), "cub".to_owned()]);
        let names: Vec<String> = points[0].entries.iter().map(|entry| entry.subject.name()).collect();
        assert_eq!(names, ["memcpy", "copy-16-byte", "lookback", "cub"]);
    }

    /// The message with what is behind it, as the program prints it.
    fn whole(error: &dyn std::error::Error) -> String {
        std::iter::successors(Some(error), |error| error.source()).map(|error| format!("{error}: ")).collect()
    }

    #[test]
    fn mistakes_in_a_sweep_file_are_typed_errors_that_say_where() {
        let parse = |text: &str| whole(&SweepFile::parse(text, "test".to_owned()).unwrap_err());
        let start = "name = \"a\"\npurpose = \"b\"\n";
        assert!(parse("name = ").contains("no sweep file"));
        assert!(parse(&format!("{start}typo = 1\n[[measure]]\nsizes = []")).contains("typo"));
        assert!(parse(&format!("{start}[[measure]]\nsizes = [\"2^x\"]\nstrategies = [\"lookback\"]")).contains("2^x"));
        assert!(parse(&format!("{start}[[measure]]\nsizes = [\"1\"]")).contains("neither strategies nor peers"));
        assert!(
            parse(&format!("{start}[[measure]]\nsizes = [\"1\"]\nstrategies = [\"lookforward\"]"))
                .contains("lookforward")
        );
        let limits = "[limits]\nminimum_samples = 1\n";
        assert!(
            parse(&format!("{start}{limits}[[measure]]\nsizes = [\"1\"]\nstrategies = [\"lookback\"]"))
                .contains("at least 2")
        );
        assert!(
            parse(&format!("{start}[[measure]]\nsizes = [\"2^45\"]\nstrategies = [\"lookback\"]")).contains("2^44")
        );
        let twice = parse(&format!("{start}typo = 1\n"));
        assert_eq!(twice.matches("TOML parse error").count(), 1, "{twice}");
        assert!(matches!(SweepFile::open("none-such"), Err(SweepFileError::Unknown { .. })));
    }

    const START: &str = "name = \"a\"\npurpose = \"b\"\n[[measure]]\n";

    fn parsed(measure: &str) -> Result<SweepFile, String> {
        SweepFile::parse(&format!("{START}{measure}"), "test".to_owned()).map_err(|error| whole(&error))
    }

    #[test]
    fn offsets_make_points_of_their_own() {
        let sweep = parsed("sizes = [\"1000\"]\noffsets = [[0, 0], [1, 3]]\nstrategies = [\"lookback\"]").unwrap();
        let (points, _) = sweep.points(&[]);
        assert_eq!(points.iter().map(|point| <[u32; 2]>::from(point.offsets)).collect::<Vec<_>>(), [[0, 0], [1, 3]]);
        assert_ne!(points[0].seed(42), points[1].seed(42));
        assert_eq!([points[0].title(), points[1].title()], ["i32 sum n = 1000", "i32 sum n = 1000, offsets 1,3"]);
        let plain = parsed("sizes = [\"1000\"]\nstrategies = [\"lookback\"]").unwrap();
        assert_eq!(plain.points(&[]).0[0], points[0], "without offsets a point is what it was");
        // What a file does not say is not in its record, so that records from before agree with files of now.
        let text = toml::to_string(&plain).unwrap();
        assert!(!text.contains("offsets") && !text.contains("bounds"), "{text}");
        for (wrong, says) in [("[]", "empty"), ("[[32, 0]]", "32"), ("[[1]]", "no sweep file"), ("[[-1, 0]]", "-1")] {
            let measure = format!("sizes = [\"1000\"]\noffsets = {wrong}\nstrategies = [\"lookback\"]");
            let error = parsed(&measure).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    #[test]
    fn beside_a_strategy_that_waits_stands_the_same_without_waiting() {
        let measure = "sizes = [\"2^20\"]\nbounds = true\nmodes = [\"exclusive\"]\nstrategies = ";
        let names = |strategies: &str| {
            let (points, _) = parsed(&format!("{measure}{strategies}")).unwrap().points(&[]);
            for pair in points[0].entries.windows(2) {
                if let [Entry { subject: Subject::Scan { config, .. }, .. }, Entry { subject: bound, figures }] = pair
                    && let Subject::Bound { config: same, .. } = bound
                {
                    assert_eq!((same, figures, bound.kind()), (config, &Figure::ALL.to_vec(), Kind::Bound));
                }
            }
            points[0].entries[2..].iter().map(|entry| entry.subject.name()).collect::<Vec<_>>()
        };
        let waiting: Vec<&str> = Strategy::ALL
            .iter()
            .filter(|strategy| strategy.row().fault_without_waiting.is_some())
            .map(|strategy| strategy.name())
            .collect();
        let all: Vec<String> = waiting.iter().flat_map(|name| [(*name).to_owned(), bound_name(name)]).collect();
        assert_eq!(names(&format!("{waiting:?}")), all);
        assert_eq!(names("[\"reduce-then-scan\", \"single-block\"]"), ["reduce-then-scan", "single-block"]);
    }

    #[test]
    fn points_have_different_seeds() {
        let (points, _) = shipped("size").points(&[]);
        let seeds: std::collections::BTreeSet<u64> = points.iter().map(|point| point.seed(42)).collect();
        assert_eq!(seeds.len(), points.len());
    }
}
