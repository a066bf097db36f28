//! What is measured against each other on one input: a point of a sweep.

use super::copies::CopyKernel;
use super::sampling::Figure;
use crate::element::{ElementType, Operator};
use crate::lab::workload::{ProblemKind, Workload};
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{ConfigError, Mode, ScanConfig, Strategy, StrategyChoice};
use crate::text::format_size;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How many elements input and output begin above a 16-byte boundary; in files `[input, output]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "[u32; 2]")]
pub struct Offsets {
    /// Elements from the boundary to the input.
    pub input: u32,
    /// Elements from the boundary to the output.
    pub output: u32,
}

impl Offsets {
    /// Larger ones repeat smaller ones, because 32 elements of any type are whole sectors of the L2 cache.
    pub const MOST: u32 = 31;

    /// Whether both arrays begin at a boundary.
    // serde passes a reference.
    pub fn is_aligned(&self) -> bool {
        *self == Self::default()
    }

    /// In bytes, of the user's first input and of the output.
    pub fn bytes(&self, workload: Workload) -> [u32; 2] {
        [(self.input, workload.input()), (self.output, workload.element())]
            .map(|(elements, element)| elements * element.bytes() as u32)
    }
}

/// Not from an array: of one that is longer, TOML would give the beginning.
impl TryFrom<Vec<u32>> for Offsets {
    type Error = String;

    fn try_from(numbers: Vec<u32>) -> Result<Self, String> {
        match numbers[..] {
            [input, output] => Ok(Self { input, output }),
            _ => Err(format!("offsets are two numbers, [input, output], and not {}", numbers.len())),
        }
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

/// What a subject is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A strategy of this crate.
    Strategy,
    /// A scan of another library.
    Peer,
    /// A copy: the floor.
    Copy,
    /// A reduction of another library, which reads the input and stores one number: the floor of what stores little.
    Reading,
    /// A strategy's kernel that waits for nothing: what its waiting costs. Not a scan.
    Bound,
}

impl Kind {
    /// Whether it does nothing of what is measured, but less.
    pub const fn is_floor(self) -> bool {
        matches!(self, Self::Copy | Self::Reading)
    }
}

/// What is measured against each other.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A strategy of this crate, with the choices inside it.
    Scan { strategy: Strategy, mode: Mode, config: ScanConfig },
    /// What the tuning table names for the size: the strategy that it came to, and the choices inside that.
    Auto { strategy: Strategy, mode: Mode, config: ScanConfig },
    /// A strategy whose kernel was compiled so that tiles wait for nothing: how fast it could be at best. Its result is
    /// wrong by design.
    Bound { strategy: Strategy, mode: Mode, config: ScanConfig },
    /// A scan of another library.
    Peer { name: String, mode: Mode },
    /// A reduction of another library over the one input.
    Reading { name: String },
    /// The driver's copy on the device.
    Memcpy,
    /// A copy kernel with accesses of 16 bytes.
    Copy16,
    /// Another copy kernel.
    Copy(CopyKernel),
    /// The same kernel, compiled under another name.
    Copy16Again,
    /// The same kernel, moving 5 % more bytes.
    Copy16Slower,
    /// Nothing at all: what the events and the queue around them take.
    EmptyFrame,
    /// A copy of as many bytes at every point, by which a change of the machine shows.
    Sentinel,
    /// A kernel that runs for a given time.
    Spin { nanoseconds: u64 },
}

/// Whether a subject is a peer in another variant than the one its users call: a 64-bit count, sums in the elements' own
/// type, a fixed order, a call that waits; or a copy kernel.
pub fn is_variant(subject: &str) -> bool {
    ["-64-bit-count", "-narrow-sum", "-synchronous", "-run-to-run"].iter().any(|part| subject.contains(part))
        || subject.starts_with("copy-")
}

impl Subject {
    /// Name in tables and plots.
    pub fn name(&self) -> String {
        match self {
            Self::Scan { strategy, .. } => strategy.name().to_owned(),
            Self::Bound { strategy, .. } => bound_name(strategy.name()),
            Self::Auto { .. } => StrategyChoice::Auto.name().to_owned(),
            Self::Peer { name, .. } | Self::Reading { name } => name.clone(),
            Self::Memcpy => "memcpy".to_owned(),
            Self::Copy16 => "copy-16-byte".to_owned(),
            Self::Copy16Again => "copy-16-byte-again".to_owned(),
            Self::Copy16Slower => "copy-16-byte-slower".to_owned(),
            Self::Copy(kernel) => kernel.to_string(),
            Self::EmptyFrame => "empty-frame".to_owned(),
            Self::Sentinel => "sentinel".to_owned(),
            Self::Spin { nanoseconds } => format!("spin-{nanoseconds}-ns"),
        }
    }

    /// What it is.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Scan { .. } | Self::Auto { .. } => Kind::Strategy,
            Self::Bound { .. } => Kind::Bound,
            Self::Peer { .. } => Kind::Peer,
            Self::Reading { .. } => Kind::Reading,
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

/// What tells a point from every other, in the order in which points are measured. Records keep all of it in each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointKey {
    /// Which problem is scanned.
    pub problem: ProblemKind,
    /// Element type of what is stored.
    pub element: ElementType,
    /// The operator; of a recurrence, which has none, the sum.
    pub operator: Operator,
    /// Element type of what is loaded, where it is another one.
    pub input_element: Option<ElementType>,
    /// Elements of a row or column, or of a run or of a segment between offsets on average, where the problem has such.
    pub segment_elements: Option<u64>,
    /// Elements.
    pub n: u64,
    /// Where input and output begin.
    pub offsets: Offsets,
}

impl PointKey {
    /// That of `n` elements of a workload.
    pub fn new(workload: Workload, n: u64, offsets: Offsets) -> Self {
        let element = workload.element();
        Self {
            problem: workload.kind(),
            element,
            operator: workload.instance().operator(),
            input_element: Some(workload.input()).filter(|&input| input != element),
            segment_elements: workload.segment_elements(),
            n,
            offsets,
        }
    }

    /// What is scanned.
    ///
    /// # Errors
    /// When there is no such scan: a damaged record may hold what does not exist.
    pub fn workload(&self) -> Result<Workload, String> {
        let Self { problem, element, operator, input_element, segment_elements, n, .. } = *self;
        if !problem.has_operator() && operator != Operator::Sum {
            return Err(format!("it says the operator {operator} of '{problem}', which has none"));
        }
        if input_element == Some(element) {
            return Err(format!("it says {element} twice; the type of the input is left out where it is no other"));
        }
        let input = input_element.unwrap_or(element);
        let workload = Workload::with_halves(problem, operator, input, element, segment_elements);
        let workload = workload.map_err(|error| error.to_string())?.storing(element)?;
        workload.misfit(n).map_or(Ok(workload), Err)
    }

    /// Whether it is of one array of numbers from the first to the last, in one type: what all pictures by size and type are of.
    pub fn is_plain(&self) -> bool {
        self.workload().is_ok_and(Workload::is_plain)
    }

    /// The scan in words, whether or not there is one: "f32 sum, rows of 512".
    pub fn scan(&self) -> String {
        self.workload().map_or_else(|_| format!("{} {}", self.element, self.operator), |workload| workload.to_string())
    }
}

/// Everything that is measured on one input.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// What is scanned.
    pub workload: Workload,
    /// Elements.
    pub n: u64,
    /// Where input and output begin.
    pub offsets: Offsets,
    /// What is measured against each other, the copies first.
    pub entries: Vec<Entry>,
}

impl Point {
    /// What tells it from every other.
    pub fn key(&self) -> PointKey {
        PointKey::new(self.workload, self.n, self.offsets)
    }

    /// Bytes of the input; of several, of the user's first.
    pub fn input_bytes(&self) -> u64 {
        self.workload.own_elements(self.n) * self.workload.input().bytes() as u64
    }

    /// Bytes that the copies read, and write once more: half of what a scan must read and write, so that both move as many.
    /// Where that is no whole number of 16 bytes, which the copy kernel moves, of problems the next one.
    pub fn copied_bytes(&self) -> u64 {
        let half = self.workload.bytes(self.n).div_ceil(2);
        if self.workload.is_plain() { half } else { half.next_multiple_of(16) }
    }

    /// The scan of its arrays by a strategy of this crate, where they begin at boundaries.
    pub fn request(&self, strategy: Strategy, mode: Mode, config: ScanConfig) -> ScanRequest {
        let aligned = ScanRequest::aligned(self.workload.instance(), strategy, mode, config, self.n);
        ScanRequest { problem: self.workload.problem(self.n), ..aligned }
    }

    /// Why an entry of this point cannot be launched on any GPU, if it cannot.
    pub fn refusal(&self, entry: &Entry) -> Option<ConfigError> {
        let (strategy, mode, config) = entry.subject.scan()?;
        Plan::new(&self.request(strategy, mode, config)).err()
    }

    /// What is scanned, in words: "i32 sum n = 2^20, offsets 1,3".
    pub fn title(&self) -> String {
        let offsets = if self.offsets.is_aligned() { String::new() } else { format!(", {}", self.offsets) };
        format!("{} n = {}{offsets}", self.workload, format_size(self.n))
    }

    /// Seed of the order in rounds: another one at every point.
    pub fn seed(&self, sweep_seed: u64) -> u64 {
        let PointKey { problem, element, operator, input_element, segment_elements, .. } = self.key();
        let parts = [element as u64, operator as u64, self.n];
        let offsets = [u64::from(self.offsets.input), u64::from(self.offsets.output)];
        // Aligned points, and flat ones, have the order that they had before there were others.
        let offsets = offsets.iter().filter(|_| !self.offsets.is_aligned());
        let input = input_element.map_or(0, |input| input as u64 + 1);
        let problem = [problem as u64, input, segment_elements.unwrap_or(0)];
        let problem = problem.iter().filter(|_| !self.workload.is_plain());
        // FNV-1a over the parts; all that matters is that points differ.
        parts
            .iter()
            .chain(offsets)
            .chain(problem)
            .fold(sweep_seed ^ 0xcbf2_9ce4_8422_2325, |hash, part| (hash ^ part).wrapping_mul(0x0100_0000_01b3))
    }
}
