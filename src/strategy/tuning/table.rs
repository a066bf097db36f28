//! A tuning table as its file has it: reading, checking, writing.

use crate::abi;
use crate::element::{ElementType, Instance, NoSuchInstance, Operator};
use crate::gpu::{Architecture, Gpu};
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{Blocks, Composition, ConfigError, Mode, ScanConfig, Strategy, UnknownName};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// Elements at which a row without a limit is tried.
pub(super) const LARGE: u64 = 1 << 32;

/// What a row says of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fixed {
    vt: u32,
    block_threads: u32,
    composition: Option<Composition>,
}

pub(super) fn configured(strategy: Strategy, fixed: Option<Fixed>, element_bytes: usize, n: u64) -> ScanConfig {
    fixed_in(ScanConfig::suggested(strategy, element_bytes, n), strategy, fixed, n)
}

/// What is suggested, with what a row says in its place.
pub(super) fn fixed_in(suggested: ScanConfig, strategy: Strategy, fixed: Option<Fixed>, n: u64) -> ScanConfig {
    match fixed {
        None => suggested,
        Some(Fixed { vt, block_threads, composition }) => {
            let composition = composition.unwrap_or(suggested.composition);
            let config = ScanConfig { vt, block_threads, composition, ..suggested };
            // What one block or one cluster would go round for twice has a tile of more threads, if there can be so many: a warp
            // more, half as many more, or twice as many and so on, so that few kernels do for all sizes.
            let most_blocks = match strategy.row().shape.blocks {
                Blocks::Single => 1,
                Blocks::Cluster => u64::from(abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS),
                Blocks::PerTile | Blocks::Persistent => return config,
            };
            const WARP: u32 = abi::LOOKBACK_WARP_LANES;
            const MOST: u32 = abi::LOOKBACK_MAXIMUM_BLOCK_THREADS;
            // What no block can have is refused as it stands.
            if !(WARP..=MOST).contains(&block_threads) || !block_threads.is_multiple_of(WARP) {
                return config;
            }
            (0..=(MOST / block_threads).ilog2())
                .map(|doublings| block_threads << doublings)
                .flat_map(|threads| [threads, threads + WARP, threads + threads / 2 / WARP * WARP])
                .filter(|&threads| threads <= MOST)
                .chain([MOST])
                .map(|block_threads| ScanConfig { block_threads, ..config })
                .find(|config| most_blocks * config.tile_elements() >= n)
                .unwrap_or(config)
        }
    }
}

/// Where a table came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuningHeader {
    /// The GPU, for example "NVIDIA H100 80GB HBM3".
    pub gpu: String,
    /// Its compute capability, for example "9.0"; a table of rules for many GPUs has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// Its multiprocessors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiprocessors: Option<u32>,
    /// Whether the rows were measured. Where not, `note` says what they rest on.
    pub measured: bool,
    /// Version of the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What compiled the kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// When it was measured, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Commit of the program that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The command that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Medians of one configuration at one size, in microseconds a scan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The device's own time, from a replayed graph.
    pub graph_us: f64,
    /// Launched on a stream one after the other.
    pub stream_us: f64,
    /// Nothing of the arrays in the L2.
    pub cold_us: f64,
}

/// The best of what was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunnerUp {
    /// Its strategy.
    pub strategy: Strategy,
    /// Its values per thread.
    pub vt: u32,
    /// Its threads per block.
    pub block_threads: u32,
    /// Its times.
    #[serde(flatten)]
    pub times: Times,
}

/// What a row rests on: one of the sizes at which its configuration was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Elements.
    pub n: u64,
    /// The times of the row's configuration.
    #[serde(flatten)]
    pub times: Times,
    /// The best other configuration there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<RunnerUp>,
}

/// What a row is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(untagged)]
pub enum Tuned {
    /// The plain scan of one array of a type by an operator.
    Plain {
        /// Element type.
        element: ElementType,
        /// Operator.
        operator: Operator,
    },
    /// What is scanned, sorted or counted otherwise.
    Problem {
        /// Its name, [`Problem::tuning_name`](crate::element::Problem::tuning_name).
        problem: String,
        /// Elements of a row or column, for which alone the row counts then; `None` for all that have no rows of their own.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u64>,
    },
}

impl Tuned {
    /// The instance, unless it is a problem.
    pub(super) fn plain(&self) -> Option<(ElementType, Operator)> {
        match *self {
            Self::Plain { element, operator } => Some((element, operator)),
            Self::Problem { .. } => None,
        }
    }

    /// What a row is tried with: of a problem, whose definition the table does not have, the sum of bytes, because what no
    /// block holds of these none holds of anything.
    fn tried_as(&self) -> Result<Instance, NoSuchInstance> {
        let (element, operator) = self.plain().unwrap_or((ElementType::U8, Operator::Sum));
        Instance::new(element, operator)
    }
}

/// "i32 sum", "i32 sum, by rows: int -> int, lines of 256".
impl fmt::Display for Tuned {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Plain { element, operator } => format!("{element} {operator}"),
            Self::Problem { problem, line: None } => problem.clone(),
            Self::Problem { problem, line: Some(elements) } => format!("{problem}, lines of {elements}"),
        };
        formatter.pad(&text)
    }
}

/// What is taken up to a size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TuningRow {
    /// What it is for.
    #[serde(flatten)]
    pub tuned: Tuned,
    /// Elements up to which it counts. `None` in the last row of an instance; above the last one of a problem, if it has a limit,
    /// `auto` does as it does without a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to: Option<u64>,
    /// The strategy.
    pub strategy: Strategy,
    /// Values per thread; `None`, as `block_threads` is then, for what is suggested for the size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vt: Option<u32>,
    /// Threads per block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_threads: Option<u32>,
    /// How a block composes its tile, where it is not what is suggested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub composition: Option<Composition>,
    /// What it rests on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
}

impl TuningRow {
    pub(super) fn fixed(&self) -> Option<Fixed> {
        Some(Fixed { vt: self.vt?, block_threads: self.block_threads?, composition: self.composition })
    }
}

/// What is taken of any instance up to a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TuningRule {
    /// Bytes of the input up to which it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_bytes: Option<u64>,
    /// The same for each multiprocessor of the GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to_bytes_per_multiprocessor: Option<u64>,
    /// The strategy, in the configuration that is suggested for the size.
    pub strategy: Strategy,
}

impl TuningRule {
    /// Bytes in all, and for each multiprocessor; the smaller one counts.
    fn limits(&self) -> [u64; 2] {
        [self.up_to_bytes, self.up_to_bytes_per_multiprocessor].map(|limit| limit.unwrap_or(u64::MAX))
    }

    /// Whether this rule's limit is at least that of the other one, however many multiprocessors there are.
    fn covers(&self, other: &Self) -> bool {
        let ([bytes, each], [other_bytes, other_each]) = (self.limits(), other.limits());
        // With many multiprocessors the bytes in all decide; with one, the smaller of the two.
        other_bytes <= bytes && other_bytes.min(other_each) <= each
    }
}

/// A table as its file has it, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawTable")]
pub struct TuningTable {
    /// Where it came from.
    #[serde(rename = "table")]
    pub header: TuningHeader,
    #[serde(rename = "row", skip_serializing_if = "Vec::is_empty")]
    pub(super) rows: Vec<TuningRow>,
    #[serde(rename = "rule", skip_serializing_if = "Vec::is_empty")]
    pub(super) rules: Vec<TuningRule>,
}

/// A table that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TuningError {
    /// The file cannot be read.
    #[error("cannot read the tuning table {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// No TOML, or not the fields of a table.
    #[error("{origin} is no tuning table: {fault}")]
    Toml {
        /// The file.
        origin: String,
        /// What is wrong, with line and column. Part of the message and so no source of it, which would say it twice.
        fault: Box<toml::de::Error>,
    },
    /// The header says what cannot be.
    #[error("{origin} is no tuning table: {reason}")]
    Table { origin: String, reason: &'static str },
    /// A row that cannot be used: which, counted from 1, and what it is about.
    #[error("{origin}, {row}: {fault}")]
    Row { origin: String, row: String, fault: RowFault },
}

/// What is wrong with a row of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RowFault {
    /// A word that names nothing.
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// A type without the operator, or a configuration that no device can launch.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A row for nothing, or for two things.
    #[error("a row is for an element and an operator, or for a problem: give it these two, or that one")]
    NotOneSubject,
    /// The length of what there is not.
    #[error(
        "line is of a problem's rows or columns, which have at least 1 element: give it with `problem`, or leave it out"
    )]
    NoLine,
    /// VT without threads per block, or the other way round.
    #[error("vt and block_threads belong together: give both, or neither for what is suggested for the size")]
    HalfConfigured,
    /// Rows out of order: the row's limit, and that of the row before.
    #[error("up_to is {found}, which is not above the {before} of the row before; rows of a type must ascend")]
    NotAscending { found: u64, before: u64 },
    /// A row behind the one that holds for everything larger.
    #[error("the row before has no up_to and holds for all larger sizes; only the last one of a type may have none")]
    AfterLast,
    /// A rule whose limit is no higher than that of one before, counted from 1, on whatever GPU.
    #[error(
        "its limit is not above that of rule {before}, which comes first, so it would hold for nothing; \
         rules must ascend"
    )]
    Covered { before: usize },
    /// A rule with a limit of nothing.
    #[error("its limit is 0, so it would hold for nothing; give it bytes, or leave it out")]
    Nothing,
    /// Sizes that no row holds for.
    #[error("it is the last row of its type, so it must hold for all larger sizes: leave up_to out")]
    NoLast,
    /// A tile that no block can hold.
    #[error("a block on {gpu} cannot hold a tile of {strategy} with VT {vt} and {block_threads} threads; choose less")]
    TooLarge { strategy: Strategy, vt: u32, block_threads: u32, gpu: String },
    /// A cluster on a GPU without.
    #[error("{gpu} has no thread block clusters, which {strategy} needs; choose another strategy, or 9.0 and later")]
    NoClusters { strategy: Strategy, gpu: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    table: TuningHeader,
    #[serde(default, rename = "row")]
    rows: Vec<RawRow>,
    #[serde(default, rename = "rule")]
    rules: Vec<RawRule>,
}

/// Names as words, so that a wrong one is reported with its row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    element: Option<String>,
    operator: Option<String>,
    problem: Option<String>,
    line: Option<u64>,
    up_to: Option<u64>,
    strategy: String,
    vt: Option<u32>,
    block_threads: Option<u32>,
    composition: Option<String>,
    #[serde(default)]
    evidence: Vec<Evidence>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    up_to_bytes: Option<u64>,
    up_to_bytes_per_multiprocessor: Option<u64>,
    strategy: String,
}

impl TryFrom<RawTable> for TuningTable {
    type Error = TuningError;
    fn try_from(raw: RawTable) -> Result<Self, TuningError> {
        Self::check(raw, "the tuning table")
    }
}

impl TuningTable {
    /// A table of measured rows.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn new(header: TuningHeader, rows: Vec<TuningRow>) -> Result<Self, TuningError> {
        let table = Self { header, rows, rules: Vec::new() };
        table.check_rows("the tuning table")?;
        Ok(table)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or as [`Self::parse`].
    pub fn open(path: &Path) -> Result<Self, TuningError> {
        let text = crate::file::read_text(path).map_err(|source| TuningError::Io { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads a table; `origin` is for the error.
    ///
    /// # Errors
    /// When it is no table, or one of its rows names something unknown, cannot be launched, is out of order, or has a
    /// tile that a block of the table's own GPU cannot hold. The error names the row.
    pub fn parse(text: &str, origin: &str) -> Result<Self, TuningError> {
        let raw: RawTable = toml::from_str(text)
            .map_err(|fault| TuningError::Toml { origin: origin.to_owned(), fault: Box::new(fault) })?;
        Self::check(raw, origin)
    }

    fn check(raw: RawTable, origin: &str) -> Result<Self, TuningError> {
        let mut rows = Vec::with_capacity(raw.rows.len());
        for (index, raw) in raw.rows.into_iter().enumerate() {
            let place = place(index, raw.subject(), raw.up_to);
            let row = TuningRow::try_from(raw).map_err(|fault| TuningError::Row {
                origin: origin.to_owned(),
                row: place,
                fault,
            })?;
            rows.push(row);
        }
        let mut rules = Vec::with_capacity(raw.rules.len());
        for (index, rule) in raw.rules.iter().enumerate() {
            let strategy = rule.strategy.parse().map_err(|error| TuningError::Row {
                origin: origin.to_owned(),
                row: format!("rule {}", index + 1),
                fault: RowFault::Name(error),
            })?;
            rules.push(TuningRule {
                up_to_bytes: rule.up_to_bytes,
                up_to_bytes_per_multiprocessor: rule.up_to_bytes_per_multiprocessor,
                strategy,
            });
        }
        let table = Self { header: raw.table, rows, rules };
        table.check_rows(origin)?;
        Ok(table)
    }

    fn check_rows(&self, origin: &str) -> Result<(), TuningError> {
        let wrong = |reason| Err(TuningError::Table { origin: origin.to_owned(), reason });
        if self.rows.is_empty() && self.rules.is_empty() {
            return wrong("it has neither a [[row]] nor a [[rule]]");
        }
        let is_last = |rule: &TuningRule| rule.up_to_bytes.is_none() && rule.up_to_bytes_per_multiprocessor.is_none();
        if let Some((last, others)) = self.rules.split_last()
            && (!is_last(last) || others.iter().any(is_last))
        {
            return wrong("each [[rule]] but the last needs a limit, and the last must have none");
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let fault = match self.rules[..index].iter().position(|before| before.covers(rule)) {
                _ if rule.limits().contains(&0) => RowFault::Nothing,
                Some(before) => RowFault::Covered { before: before + 1 },
                None => continue,
            };
            return Err(TuningError::Row { origin: origin.to_owned(), row: format!("rule {}", index + 1), fault });
        }
        let gpu = match &self.header.compute_capability {
            None => None,
            Some(text) => match Gpu::parse(text, u64::from(self.header.multiprocessors.unwrap_or(1))) {
                None => {
                    return wrong("its compute_capability must be two numbers with a point between them, as \"9.0\"");
                }
                gpu => gpu,
            },
        };
        let mut limits: HashMap<&Tuned, (usize, Option<u64>)> = HashMap::new();
        for (index, row) in self.rows.iter().enumerate() {
            let before = limits.insert(&row.tuned, (index, row.up_to));
            let below = match (before, row.up_to) {
                (Some((_, None)), _) => return Err(self.fault(origin, index, RowFault::AfterLast)),
                (Some((_, Some(before))), _) => before,
                (None, _) => 0,
            };
            if let Some(found) = row.up_to.filter(|&found| found <= below) {
                return Err(self.fault(origin, index, RowFault::NotAscending { found, before: below }));
            }
            row.check(below, gpu).map_err(|fault| self.fault(origin, index, fault))?;
        }
        // Of a problem there is something to go by beyond its rows.
        let is_open =
            |(tuned, (_, up_to)): &(&&Tuned, &(usize, Option<u64>))| tuned.plain().is_some() && up_to.is_some();
        match limits.iter().filter(is_open).map(|(_, &(index, _))| index).min() {
            Some(index) => Err(self.fault(origin, index, RowFault::NoLast)),
            None => Ok(()),
        }
    }

    pub(super) fn fault(&self, origin: &str, index: usize, fault: RowFault) -> TuningError {
        let row = &self.rows[index];
        let row = place(index, row.tuned.to_string(), row.up_to);
        TuningError::Row { origin: origin.to_owned(), row, fault }
    }

    /// The rows, ascending within an instance.
    pub fn rows(&self) -> &[TuningRow] {
        &self.rows
    }

    /// Whether it says nothing of plain scans.
    pub(super) fn is_of_problems(&self) -> bool {
        self.rules.is_empty() && self.rows.iter().all(|row| row.tuned.plain().is_none())
    }

    /// The rules by bytes.
    pub fn rules(&self) -> &[TuningRule] {
        &self.rules
    }

    /// The same choices without what they rest on.
    #[must_use]
    pub fn without_evidence(mut self) -> Self {
        for row in &mut self.rows {
            row.evidence.clear();
        }
        self
    }

    pub(super) fn architecture(&self) -> Option<Architecture> {
        Architecture::parse(self.header.compute_capability.as_deref()?)
    }

    /// The table as TOML: the same table gives the same bytes.
    pub fn to_toml(&self) -> String {
        fn quoted(text: &str) -> String {
            toml::Value::String(text.to_owned()).to_string()
        }
        fn times(times: &Times) -> String {
            let Times { graph_us, stream_us, cold_us } = times;
            format!("graph_us = {graph_us:.3}, stream_us = {stream_us:.3}, cold_us = {cold_us:.3}")
        }
        let header = &self.header;
        let mut text = format!("[table]\ngpu = {}\n", quoted(&header.gpu));
        let mut line = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(text, "{name} = {value}");
            }
        };
        line("compute_capability", header.compute_capability.as_deref().map(quoted));
        line("multiprocessors", header.multiprocessors.map(|count| count.to_string()));
        line("measured", Some(header.measured.to_string()));
        line("driver", header.driver.as_deref().map(quoted));
        line("compiler", header.compiler.as_deref().map(quoted));
        line("date", header.date.as_deref().map(quoted));
        line("commit", header.commit.as_deref().map(quoted));
        line("command", header.command.as_deref().map(quoted));
        line("note", header.note.as_deref().map(quoted));
        for row in &self.rows {
            text.push_str("\n[[row]]\n");
            let mut line = |name: &str, value: Option<String>| {
                if let Some(value) = value {
                    let _ = writeln!(text, "{name} = {value}");
                }
            };
            match &row.tuned {
                Tuned::Plain { element, operator } => {
                    line("element", Some(format!("\"{element}\"")));
                    line("operator", Some(format!("\"{operator}\"")));
                }
                Tuned::Problem { problem, line: elements } => {
                    line("problem", Some(quoted(problem)));
                    line("line", elements.map(|elements| elements.to_string()));
                }
            }
            line("up_to", row.up_to.map(|n| n.to_string()));
            line("strategy", Some(format!("\"{}\"", row.strategy)));
            line("vt", row.vt.map(|vt| vt.to_string()));
            line("block_threads", row.block_threads.map(|threads| threads.to_string()));
            line("composition", row.composition.map(|composition| format!("\"{composition}\"")));
            if row.evidence.is_empty() {
                continue;
            }
            text.push_str("evidence = [\n");
            for evidence in &row.evidence {
                let _ = write!(text, "    {{ n = {}, {}", evidence.n, times(&evidence.times));
                if let Some(RunnerUp { strategy, vt, block_threads, times: of }) = &evidence.runner_up {
                    let _ = write!(
                        text,
                        ", runner_up = {{ strategy = \"{strategy}\", vt = {vt}, block_threads = {block_threads}, {} }}",
                        times(of)
                    );
                }
                text.push_str(" },\n");
            }
            text.push_str("]\n");
        }
        for rule in &self.rules {
            text.push_str("\n[[rule]]\n");
            if let Some(bytes) = rule.up_to_bytes {
                let _ = writeln!(text, "up_to_bytes = {bytes}");
            }
            if let Some(bytes) = rule.up_to_bytes_per_multiprocessor {
                let _ = writeln!(text, "up_to_bytes_per_multiprocessor = {bytes}");
            }
            let _ = writeln!(text, "strategy = \"{}\"", rule.strategy);
        }
        text
    }

    /// The rows that count for an instance.
    pub(super) fn rows_of(&self, instance: Instance) -> Vec<&TuningRow> {
        let (element, operator) = (instance.element(), instance.operator());
        let of = |element: ElementType, operator: Operator| -> Vec<&TuningRow> {
            self.rows.iter().filter(|row| row.tuned.plain() == Some((element, operator))).collect()
        };
        // There is one float type of each size.
        let is_like =
            |other: &ElementType| other.bytes() == element.bytes() && other.is_integer() && element.is_integer();
        std::iter::once(element)
            .chain(ElementType::NUMBERS.iter().copied().filter(is_like))
            .flat_map(|element| [of(element, operator), of(element, Operator::Sum)])
            .find(|rows| !rows.is_empty())
            .unwrap_or_default()
    }

    /// The rows by whose bytes an instance goes that has none of its own.
    pub(super) fn widest_rows(&self) -> impl Iterator<Item = (ElementType, &TuningRow)> {
        let widest = ElementType::NUMBERS
            .iter()
            .rev()
            .copied()
            .filter(|&element| self.rows.iter().any(|row| row.tuned.plain() == Some((element, Operator::Sum))))
            .max_by_key(|element| (element.bytes(), element.is_integer()));
        let is_of = |element, row: &TuningRow| row.tuned.plain() == Some((element, Operator::Sum));
        let rows = self.rows.iter();
        rows.filter_map(move |row| widest.filter(|&element| is_of(element, row)).map(|element| (element, row)))
    }
}

/// "row 3 (i32 sum, up_to 4096)".
fn place(index: usize, subject: String, up_to: Option<u64>) -> String {
    let limit = up_to.map_or_else(|| "without up_to".to_owned(), |n| format!("up_to {n}"));
    let subject = if subject.is_empty() { subject } else { subject + ", " };
    format!("row {} ({subject}{limit})", index + 1)
}

impl RawRow {
    /// What it says that it is for, whatever that is.
    fn subject(&self) -> String {
        [&self.element, &self.operator, &self.problem].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ")
    }

    fn tuned(&self) -> Result<Tuned, RowFault> {
        match (&self.element, &self.operator, &self.problem, self.line) {
            (Some(element), Some(operator), None, None) => {
                Ok(Tuned::Plain { element: element.parse()?, operator: operator.parse()? })
            }
            (Some(_), Some(_), None, Some(_)) | (None, None, Some(_), Some(0)) => Err(RowFault::NoLine),
            (None, None, Some(problem), line) => Ok(Tuned::Problem { problem: problem.clone(), line }),
            _ => Err(RowFault::NotOneSubject),
        }
    }
}

impl TryFrom<RawRow> for TuningRow {
    type Error = RowFault;
    fn try_from(raw: RawRow) -> Result<Self, RowFault> {
        if raw.vt.is_some() != raw.block_threads.is_some() {
            return Err(RowFault::HalfConfigured);
        }
        Ok(Self {
            tuned: raw.tuned()?,
            up_to: raw.up_to,
            strategy: raw.strategy.parse()?,
            vt: raw.vt,
            block_threads: raw.block_threads,
            composition: raw.composition.map(|word| word.parse()).transpose()?,
            evidence: raw.evidence,
        })
    }
}

impl TuningRow {
    /// Whether it can be launched at both ends of its sizes.
    pub(super) fn check(&self, below: u64, gpu: Option<Gpu>) -> Result<(), RowFault> {
        let instance = self.tuned.tried_as().map_err(ConfigError::from)?;
        for n in [below.saturating_add(1), self.up_to.unwrap_or(LARGE.max(below))] {
            let config = configured(self.strategy, self.fixed(), instance.element().bytes(), n);
            let plan = Plan::new(&ScanRequest::aligned(instance, self.strategy, Mode::Inclusive, config, n))?;
            if let Some(gpu) = gpu.filter(|gpu| !plan.has_its_clusters(gpu.architecture)) {
                return Err(RowFault::NoClusters { strategy: self.strategy, gpu: gpu.to_string() });
            }
            if let Some(gpu) = gpu.filter(|gpu| !plan.fits(gpu.architecture)) {
                let ScanConfig { vt, block_threads, .. } = config;
                let gpu = gpu.to_string();
                return Err(RowFault::TooLarge { strategy: self.strategy, vt, block_threads, gpu });
            }
        }
        Ok(())
    }
}
