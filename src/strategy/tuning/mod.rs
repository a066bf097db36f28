//! What `auto` takes: a strategy and its configuration by GPU, element type, operator and size, or by problem.
//!
//! The choice stands in tables (`tuning/*.toml`, embedded), which `lookback tune` measures and writes. How a table is written, which one
//! counts on a GPU, and which of its rows for a scan, is in `docs/tuning.md`.

mod table;

pub use crate::gpu::Gpu;
pub use table::{
    Evidence, RowFault, RunnerUp, Times, Tuned, TuningError, TuningHeader, TuningRow, TuningRule, TuningTable,
};
use table::{Fixed, LARGE, configured, fixed_in};

use crate::abi;
use crate::element::{ElementType, Histogram, Instance, Operator, Problem};
use crate::gpu::Architecture;
use crate::strategy::plan::{KernelKey, Plan, ScanRequest, Step};
use crate::strategy::{Blocks, Mode, ScanConfig, Strategy, StrategyChoice};
use crate::strategy::{columns, suggestion};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

/// What `auto` came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// The strategy.
    pub strategy: Strategy,
    /// The choices inside it.
    pub config: ScanConfig,
}

/// The tables in `tuning/`, by name.
pub const COMMITTED: &[(&str, &str)] = &[
    ("sm_90", include_str!("../../../tuning/sm_90.toml")),
    (BEFORE_HOPPER, include_str!("../../../tuning/before_sm_90.toml")),
];
const BEFORE_HOPPER: &str = "before_sm_90";

/// Read once; a test holds that they can be.
static COMMITTED_TABLES: LazyLock<Vec<(&'static str, TuningTable)>> = LazyLock::new(|| {
    COMMITTED.iter().filter_map(|&(name, text)| Some((name, TuningTable::parse(text, name).ok()?))).collect()
});

/// What is taken up to a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    /// Elements; the last range of an instance has `u64::MAX`.
    up_to: u64,
    strategy: Strategy,
    fixed: Option<Fixed>,
}

/// What is taken for a problem.
#[derive(Debug, Clone)]
struct OfProblem {
    name: String,
    /// Elements of a row or column, if it is for such alone.
    line: Option<u64>,
    ranges: Vec<Range>,
}

/// A table as it counts on one GPU, ready for [`Self::resolve`].
#[derive(Debug, Clone)]
pub struct Tuning {
    name: String,
    is_measured: bool,
    /// Whether the table is of a GPU with as many multiprocessors of the same capability.
    is_of_its_kind: bool,
    ranges: HashMap<Instance, Vec<Range>>,
    problems: Vec<OfProblem>,
    architecture: Architecture,
}

impl Default for Tuning {
    fn default() -> Self {
        Self::committed(Gpu::H100)
    }
}

impl Tuning {
    /// The committed table that counts on a GPU.
    pub fn committed(gpu: Gpu) -> Self {
        let tables = &*COMMITTED_TABLES;
        let of_capability = |wanted: &dyn Fn(Architecture) -> bool| {
            let fits = tables.iter().filter(|(_, table)| table.architecture().is_some_and(wanted));
            fits.max_by_key(|(_, table)| table.architecture())
        };
        let own = of_capability(&|architecture| architecture == gpu.architecture);
        let table = own.or_else(|| {
            if gpu.architecture >= Architecture::HOPPER {
                of_capability(&|architecture| (Architecture::HOPPER..=gpu.architecture).contains(&architecture))
            } else {
                tables.iter().find(|(name, _)| *name == BEFORE_HOPPER)
            }
        });
        match table {
            Some((name, table)) => Self::of(table, gpu, (*name).to_owned()),
            None => Self {
                name: "none".to_owned(),
                is_measured: false,
                is_of_its_kind: false,
                ranges: HashMap::new(),
                problems: Vec::new(),
                architecture: gpu.architecture,
            },
        }
    }

    /// A user's table on a GPU. Of what it has no row for, if all of its rows are for problems, the committed table has.
    ///
    /// # Errors
    /// When one of its rows has a tile that a block of this GPU cannot hold, or asks for a cluster where the GPU has
    /// none.
    pub fn with_table(table: &TuningTable, gpu: Gpu) -> Result<Self, TuningError> {
        let mut below = HashMap::new();
        for (index, row) in table.rows.iter().enumerate() {
            let start = below.insert(&row.tuned, row.up_to.unwrap_or(u64::MAX)).unwrap_or(0);
            row.check(start, Some(gpu)).map_err(|fault| table.fault("the tuning table", index, fault))?;
        }
        let own = Self::of(table, gpu, format!("of {}", table.header.gpu));
        if !table.is_of_problems() {
            return Ok(own);
        }
        let committed = Self::committed(gpu);
        let name = format!("{}, with the problems {}", committed.name, own.name);
        Ok(Self { name, problems: own.problems, ..committed })
    }

    fn of(table: &TuningTable, gpu: Gpu, name: String) -> Self {
        let mut ranges = HashMap::new();
        for instance in Instance::all() {
            let bytes = instance.element().bytes() as u64;
            let own = table.rows_of(instance);
            let limits: Vec<Range> = if !own.is_empty() {
                own.into_iter().map(Range::of).collect()
            } else if table.rules.is_empty() {
                let range = |(element, row): (ElementType, &TuningRow)| Range {
                    up_to: row.up_to.map_or(u64::MAX, |n| n.saturating_mul(element.bytes() as u64) / bytes),
                    strategy: row.strategy,
                    fixed: None,
                };
                table.widest_rows().map(range).collect()
            } else {
                table.rules.iter().map(|rule| rule.range(gpu, bytes)).collect()
            };
            let mut kept: Vec<Range> = Vec::with_capacity(limits.len());
            for range in limits {
                // A limit below the one before holds for nothing.
                if kept.last().is_none_or(|last| last.up_to < range.up_to) {
                    kept.push(range.held(gpu, instance));
                }
            }
            ranges.insert(instance, kept);
        }
        let is_of_its_kind =
            table.architecture() == Some(gpu.architecture) && table.header.multiprocessors == Some(gpu.multiprocessors);
        let mut problems: Vec<OfProblem> = Vec::new();
        for row in &table.rows {
            let Tuned::Problem { problem, line } = &row.tuned else { continue };
            let range = Range::of(row);
            match problems.iter_mut().find(|of| (&of.name, of.line) == (problem, *line)) {
                Some(of) => of.ranges.push(range),
                None => problems.push(OfProblem { name: problem.clone(), line: *line, ranges: vec![range] }),
            }
        }
        let (is_measured, architecture) = (table.header.measured, gpu.architecture);
        Self { name, is_measured, is_of_its_kind, ranges, problems, architecture }
    }

    /// What the table is called: that of a committed one, or its GPU's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What to do where nothing was measured on a GPU like this one: how to make a table in minutes. `None` where something was.
    pub fn advice(&self) -> Option<String> {
        let Self { name, is_measured, is_of_its_kind, .. } = self;
        let what = match (is_measured, is_of_its_kind) {
            (true, true) => return None,
            (true, false) => "was measured on a GPU of another kind",
            (false, _) => "was not measured",
        };
        Some(format!(
            "the tuning table {name}, which auto goes by here, {what}; `lookback tune --output my.toml` measures this GPU \
             in four minutes, and --tuning my.toml or Scanner::with_tuning takes the table"
        ))
    }

    /// Strategy and configuration for `n` elements of a problem: of `auto` those of the table ([`Self::resolve`]), of a named
    /// strategy those that are suggested for the size. `row`: elements of one, if there are rows. `offsets`: bytes from a
    /// boundary of 16 to the input, and to the output.
    pub fn choose(
        &self,
        strategy: StrategyChoice,
        problem: Problem,
        n: u64,
        row: Option<u64>,
        offsets: [u32; 2],
    ) -> Resolved {
        match strategy {
            StrategyChoice::Auto if let Some(measured) = self.measured(problem, n, row) => measured,
            StrategyChoice::Auto if problem.axis().is_some() && problem.is_reproducible() => {
                Self::suggested(Strategy::Lookahead, problem, n)
            }
            StrategyChoice::Auto if let Some(axis) = problem.axis() => {
                let ahead = columns::ahead(problem, axis, n, self.architecture);
                let ahead = ahead.map(|config| Resolved { strategy: Strategy::Lookahead, config });
                let held = ahead.filter(|&ahead| self.holds(problem, ahead, n));
                held.unwrap_or_else(|| Self::suggested(Strategy::Lookback, problem, n))
            }
            StrategyChoice::Auto if let Some(by_cluster) = self.counted_by_cluster(problem, n) => by_cluster,
            // The one strategy that does all that is no scan, named or not.
            StrategyChoice::Auto | StrategyChoice::Named(Strategy::Lookback) if !problem.is_scan() => {
                let config = ScanConfig::of_no_scan(problem, n, self.architecture);
                Resolved { strategy: Strategy::Lookback, config }
            }
            StrategyChoice::Auto => {
                let found = self.resolve(problem.tuned_as(), n);
                let found = self.stored_by_rank(problem, found, n).unwrap_or(found);
                // A cluster scans one array of numbers; what is small enough for one is one wave, too.
                let found = match problem.defined() {
                    Some(defined) if found.strategy.row().shape.blocks == Blocks::Cluster => {
                        Resolved { strategy: Strategy::OneWave, config: ScanConfig::of_one_wave(problem, defined) }
                    }
                    _ => found,
                };
                let is_ahead = found.strategy == Strategy::Lookahead;
                // Numbers that are scanned in wider ones than both arrays have: halves.
                let is_narrow = problem.access_bytes() < problem.state_bytes();
                let config = match problem.defined() {
                    Some(_) if problem.is_reproducible() => ScanConfig::reproducible(problem),
                    Some(defined) if is_ahead => ScanConfig::of_arrays(problem, defined, n, row),
                    Some(_) => found.config,
                    None if is_ahead && is_narrow => ScanConfig::of_halves(),
                    None if is_ahead && let Some(config) = ScanConfig::of_widening(problem, n) => config,
                    None => return self.off_boundary(problem, found, n, offsets),
                };
                // Of one wave and of look-ahead it was measured that blocks which wait for nobody are faster.
                let row = row.filter(|_| is_ahead || found.strategy == Strategy::OneWave);
                let wanted = match row.and_then(|row| ScanConfig::of_whole_rows(problem, row, n)) {
                    Some(config) => Resolved { strategy: Strategy::Lookback, config },
                    None => Resolved { config, ..found },
                };
                if self.holds(problem, wanted, n) { wanted } else { Self::suggested(Strategy::Lookback, problem, n) }
            }
            StrategyChoice::Named(strategy) => Self::suggested(strategy, problem, n),
        }
    }

    /// What the rows for this very problem say of `n` elements, and of lines of this length, if there are such rows and a block of
    /// the GPU holds a tile.
    fn measured(&self, problem: Problem, n: u64, row: Option<u64>) -> Option<Resolved> {
        let line = problem.axis().map(|axis| axis.length).or(row);
        let is_of_line = |of: &&OfProblem| of.line.is_none() || of.line == line;
        let fitting = self.problems.iter().filter(is_of_line).filter(|of| problem.has_tuning_name(&of.name));
        // Some length comes before all lengths.
        let ranges = &fitting.max_by_key(|of| of.line)?.ranges;
        let Range { strategy, fixed, .. } = *ranges.get(ranges.partition_point(|range| range.up_to < n))?;
        // Other tiles would give other bits.
        let fixed = fixed.filter(|_| !problem.is_reproducible());
        let config = fixed_in(Self::suggested(strategy, problem, n).config, strategy, fixed, n);
        Some(Resolved { strategy, config }).filter(|&found| self.holds(problem, found, n))
    }

    /// What takes the place of `found` for a compaction, where the table has look-ahead for large arrays: measurements of its own,
    /// because those of a table are of scans that store each element at its place.
    fn stored_by_rank(&self, problem: Problem, found: Resolved, n: u64) -> Option<Resolved> {
        let defined = problem.defined().filter(|defined| defined.is_by_rank() && !problem.is_reproducible())?;
        let is_ahead = self.resolve(problem.tuned_as(), LARGE).strategy == Strategy::Lookahead;
        if !is_ahead || found.strategy == Strategy::SingleBlock {
            return None;
        }
        let bytes = problem.access_bytes().max(defined.own_state_bytes());
        Some(match suggestion::one_wave_by_rank(n, bytes as u32, defined.has_groups()) {
            Some((vt, block_threads)) => {
                let config = ScanConfig { vt, block_threads, ..ScanConfig::default() };
                Resolved { strategy: Strategy::OneWave, config }
            }
            None => Resolved { strategy: Strategy::Lookahead, ..found },
        })
    }

    /// A histogram of few bytes by one cluster, where the GPU has clusters.
    fn counted_by_cluster(&self, problem: Problem, n: u64) -> Option<Resolved> {
        let Histogram { is_cumulated, .. } = problem.histogram()?;
        let tile = suggestion::histogram_by_cluster(n, is_cumulated).filter(|_| problem.bytes_of_all_inputs() == 1);
        let (vt, block_threads) = tile?;
        let config = ScanConfig { vt, block_threads, ..ScanConfig::default() };
        Some(Resolved { strategy: Strategy::SingleCluster, config }).filter(|&found| self.holds(problem, found, n))
    }

    /// What takes the place of `found` where an array begins off a boundary: a table's measurements are of arrays at one.
    fn off_boundary(&self, problem: Problem, found: Resolved, n: u64, offsets: [u32; 2]) -> Resolved {
        const VECTOR: u32 = abi::LOOKBACK_VECTOR_BYTES;
        /// From so many single bytes on, one wave takes longer to shift its tiles than look-ahead does.
        const BYTES_AHEAD: u64 = 2 << 20;
        let [input, output] = offsets.map(|offset| offset % VECTOR);
        if (input, output) == (0, 0) {
            return found;
        }
        let (instance, bytes) = (problem.tuned_as(), problem.input_bytes() as u64);
        let other = match found.strategy {
            Strategy::SingleBlock | Strategy::SingleCluster => {
                Some(self.with_lead(instance, n, u64::from(input) / bytes))
            }
            Strategy::OneWave if bytes == 1 && n > BYTES_AHEAD => {
                Some(self.resolve(instance, LARGE)).filter(|large| large.strategy == Strategy::Lookahead)
            }
            _ => None,
        };
        other.unwrap_or(found)
    }

    /// What a named strategy scans a problem of `n` elements with where nobody chooses more. No table is asked.
    pub fn suggested(strategy: Strategy, problem: Problem, n: u64) -> Resolved {
        let config = match problem.axis() {
            Some(axis) => columns::suggested(strategy, problem, axis, n),
            None if problem.is_reproducible() => ScanConfig::reproducible(problem),
            // A tile that fits everywhere.
            None if !problem.is_scan() => ScanConfig::of_no_scan(problem, n, Architecture::CHECKED[0]),
            None => {
                let bytes = problem.tuned_as().element().bytes();
                // Elements that wait to be stored by rank take registers, and the longest threads have none left.
                let most = if problem.is_by_rank() { suggestion::MIDDLE_BYTES / bytes as u64 } else { n };
                ScanConfig::suggested(strategy, bytes, n.min(most))
            }
        };
        Resolved { strategy, config }
    }

    /// Whether the strategy scans it, and a block of the GPU holds a tile of every array.
    fn holds(&self, problem: Problem, Resolved { strategy, config }: Resolved, n: u64) -> bool {
        let aligned = ScanRequest::aligned(problem.tuned_as(), strategy, Mode::Inclusive, config, n);
        let plan = Plan::new(&ScanRequest { problem, ..aligned });
        plan.is_ok_and(|plan| plan.runs_on(self.architecture))
    }

    /// The largest numbers of elements of an instance for which what the table names is not what it names for one more.
    pub fn switches(&self, instance: Instance) -> impl Iterator<Item = u64> {
        self.ranges_of(instance).iter().map(|range| range.up_to).filter(|&up_to| up_to < u64::MAX)
    }

    /// Strategy and configuration for `n` elements: one that [`Plan::new`] takes, up to 2^44 elements.
    pub fn resolve(&self, instance: Instance, n: u64) -> Resolved {
        self.resolved(instance, n, self.range_of(instance, n))
    }

    fn ranges_of(&self, instance: Instance) -> &[Range] {
        self.ranges.get(&instance).map_or(&[][..], Vec::as_slice)
    }

    /// Which range of an instance `n` elements are in.
    fn range_of(&self, instance: Instance, n: u64) -> usize {
        self.ranges_of(instance).partition_point(|range| range.up_to < n)
    }

    /// As [`Self::resolve`] for an array that begins `lead` elements behind a boundary: with them it may be more than a tile.
    fn with_lead(&self, instance: Instance, n: u64, lead: u64) -> Resolved {
        let range = self.range_of(instance, n);
        let found = self.resolved(instance, n + lead, range);
        let is_one_tile = n + lead <= found.config.tile_elements();
        // What one block goes round for twice the next range has sooner.
        if found.strategy == Strategy::SingleBlock && !is_one_tile {
            self.resolved(instance, n + lead, range + 1)
        } else {
            found
        }
    }

    /// What one of its ranges has for `n` elements; behind the last one there is look-back.
    fn resolved(&self, instance: Instance, n: u64, range: usize) -> Resolved {
        let found = self.ranges_of(instance).get(range);
        let (strategy, fixed) = found.map_or((Strategy::Lookback, None), |range| (range.strategy, range.fixed));
        // Sums alone take several narrow elements in a register, so others had better not hold as many.
        let is_narrow = instance.element().bytes() < 4 && instance.operator() != Operator::Sum;
        let fixed = if is_narrow { None } else { fixed };
        let config = configured(strategy, fixed, instance.element().bytes(), n);
        if n / config.tile_elements() >= i32::MAX as u64 && strategy.row().shape.blocks != Blocks::Single {
            // More tiles than a grid has blocks: the largest tile there is.
            let config = ScanConfig { vt: 64, block_threads: 512, ..ScanConfig::default() };
            return Resolved { strategy: Strategy::Lookback, config };
        }
        Resolved { strategy, config }
    }
}

/// The kernels that `auto` runs for arrays of these numbers on GPUs of an architecture, of any size up to 2^32 elements and
/// any number of multiprocessors, by the committed table.
pub fn kernels_of(architecture: Architecture, instances: &[Instance], modes: &[Mode]) -> Vec<KernelKey> {
    // Where a table says bytes a multiprocessor, its limits move with them, and what is suggested for a size does not.
    const MULTIPROCESSORS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for tuning in MULTIPROCESSORS.map(|multiprocessors| Tuning::committed(Gpu { architecture, multiprocessors })) {
        for &instance in instances {
            let ranges = tuning.ranges.get(&instance).map_or(&[][..], Vec::as_slice);
            let ends: Vec<u64> = ranges.iter().map(|range| range.up_to.min(LARGE)).collect();
            let begins = std::iter::once(0).chain(ends.iter().copied());
            for n in begins.zip(&ends).flat_map(|(begin, &end)| sizes_between(begin, end)) {
                // Both arrays at a boundary; the output off one; and the input, as far as can be.
                let bytes = instance.element().bytes() as u32;
                let most = abi::LOOKBACK_VECTOR_BYTES.saturating_sub(bytes);
                for (input_offset, output_offset) in [(0, 0), (0, most), (most, 0)] {
                    let Resolved { strategy, config } = tuning.with_lead(instance, n, u64::from(input_offset / bytes));
                    for &mode in modes {
                        let aligned = ScanRequest::aligned(instance, strategy, mode, config, n);
                        let request = ScanRequest { input_offset, output_offset, ..aligned };
                        let Ok(plan) = Plan::new(&request) else { continue };
                        found.extend(plan.steps.iter().map(Step::key).filter(|&key| known.insert(key)));
                    }
                }
            }
        }
    }
    found
}

impl TuningRule {
    fn range(&self, gpu: Gpu, element_bytes: u64) -> Range {
        let of_multiprocessors =
            self.up_to_bytes_per_multiprocessor.map(|bytes| bytes.saturating_mul(u64::from(gpu.multiprocessors)));
        let bytes = [self.up_to_bytes, of_multiprocessors].into_iter().flatten().min();
        Range { up_to: bytes.map_or(u64::MAX, |bytes| bytes / element_bytes), strategy: self.strategy, fixed: None }
    }
}

impl Range {
    /// What a row says.
    fn of(row: &TuningRow) -> Self {
        Self { up_to: row.up_to.unwrap_or(u64::MAX), strategy: row.strategy, fixed: row.fixed() }
    }

    /// The same, or what is suggested where a block of the GPU cannot hold its tile or the GPU has no clusters.
    fn held(self, gpu: Gpu, instance: Instance) -> Self {
        let bytes = instance.element().bytes();
        let n = self.up_to.min(LARGE);
        let is_held = |range: &Self| {
            let config = configured(range.strategy, range.fixed, bytes, n);
            let plan = Plan::new(&ScanRequest::aligned(instance, range.strategy, Mode::Inclusive, config, n));
            plan.is_ok_and(|plan| plan.runs_on(gpu.architecture))
        };
        let choices = [self, Self { fixed: None, ..self }];
        choices.into_iter().find(is_held).unwrap_or(Self { strategy: Strategy::Lookback, fixed: None, ..self })
    }
}

/// A kernel that some committed table asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunedConfiguration {
    /// The table, by its name in [`COMMITTED`].
    pub table: &'static str,
    /// Element type and operator.
    pub instance: Instance,
    /// The strategy.
    pub strategy: Strategy,
    /// The choices inside it.
    pub config: ScanConfig,
}

/// Every distinct table, instance, strategy and configuration of the committed tables: what must not spill.
/// Rows that leave the configuration open stand for what is suggested for any size of theirs; rules, for sums of
/// every number type.
pub fn tuned_configurations() -> Vec<TunedConfiguration> {
    let mut found: Vec<TunedConfiguration> = Vec::new();
    let mut add = |table, instance: Instance, strategy, config| {
        let tuned = TunedConfiguration { table, instance: instance.canonical(), strategy, config };
        if !found.contains(&tuned) {
            found.push(tuned);
        }
    };
    for &(name, ref table) in &*COMMITTED_TABLES {
        let mut below: HashMap<Instance, u64> = HashMap::new();
        for row in &table.rows {
            let plain = row.tuned.plain().map(|(element, operator)| Instance::new(element, operator));
            let Some(Ok(instance)) = plain else { continue };
            let from = below.insert(instance, row.up_to.unwrap_or(u64::MAX)).unwrap_or(0);
            for n in sizes_between(from, row.up_to.unwrap_or(LARGE)) {
                // And with as much in front of it as an array off a boundary may have.
                let bytes = instance.element().bytes();
                let most_lead = u64::from(abi::LOOKBACK_VECTOR_BYTES) / bytes as u64;
                for n in [n, n + most_lead] {
                    add(name, instance, row.strategy, configured(row.strategy, row.fixed(), bytes, n));
                }
            }
        }
        for &element in if table.rules.is_empty() { &[][..] } else { ElementType::NUMBERS } {
            let Ok(instance) = Instance::new(element, Operator::Sum) else { continue };
            for rule in &table.rules {
                // Whatever GPU it is, up to this many multiprocessors.
                const MULTIPROCESSORS: u32 = 256;
                let gpu = Gpu { multiprocessors: MULTIPROCESSORS, ..Gpu::H100 };
                let up_to = rule.range(gpu, element.bytes() as u64).up_to.min(LARGE);
                for n in sizes_between(0, up_to) {
                    add(name, instance, rule.strategy, ScanConfig::suggested(rule.strategy, element.bytes(), n));
                }
            }
        }
    }
    found
}

/// Both ends, and the powers of two and what lies halfway between, which is where suggestions change and tiles are full.
fn sizes_between(below: u64, up_to: u64) -> BTreeSet<u64> {
    let powers = (0..=LARGE.ilog2()).map(|power| 1u64 << power);
    powers
        .flat_map(|n| [n, n + 1, n + n / 2])
        .chain([below.saturating_add(1), up_to])
        .filter(|&n| below < n && n <= up_to)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Axis, Definition, Segments};
    use crate::strategy::{Composition, Strategy};
    use proptest::prelude::*;

    fn instance(element: ElementType, operator: Operator) -> Instance {
        Instance::new(element, operator).unwrap()
    }

    fn sum(element: ElementType) -> Instance {
        instance(element, Operator::Sum)
    }

    const HEADER: &str = "[table]\ngpu = \"a GPU\"\ncompute_capability = \"9.0\"\nmeasured = true\n";

    fn row(element: &str, rest: &str) -> String {
        format!("[[row]]\nelement = \"{element}\"\noperator = \"sum\"\n{rest}\n")
    }

    fn table(rows: &[String]) -> TuningTable {
        TuningTable::parse(&format!("{HEADER}{}", rows.concat()), "test").unwrap_or_else(|error| panic!("{error}"))
    }

    fn refusal(rows: &[String]) -> (String, String) {
        match TuningTable::parse(&format!("{HEADER}{}", rows.concat()), "test") {
            Err(TuningError::Row { row, fault, .. }) => (row, fault.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[cfg(feature = "lab")]
    #[test]
    fn the_committed_tables_can_be_read_and_are_written_as_they_are_read() {
        assert_eq!(COMMITTED_TABLES.len(), COMMITTED.len());
        for (name, text) in COMMITTED {
            let table = TuningTable::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(TuningTable::parse(&table.to_toml(), name).unwrap(), table, "{name}");
            let (json, toml) = (serde_json::to_string(&table).unwrap(), toml::to_string(&table).unwrap());
            assert_eq!(serde_json::from_str::<TuningTable>(&json).unwrap(), table, "{name}");
            assert_eq!(toml::from_str::<TuningTable>(&toml).unwrap(), table, "{name}");
            assert!(table.header.measured || table.header.note.is_some(), "{name} says neither");
        }
        assert!(!tuned_configurations().is_empty());
    }

    #[test]
    fn a_row_that_lies_is_refused_by_its_name() {
        let last = "strategy = \"lookback\"\nvt = 8\nblock_threads = 128";
        let one_block = |threads: u32| format!("strategy = \"single-block\"\nvt = 16\nblock_threads = {threads}");
        let cases: &[(&[String], &str, &str)] = &[
            (&[row("i32", "strategy = \"lookforward\"")], "row 1 (i32 sum, without up_to)", "lookforward"),
            (&[row("i33", last)], "row 1", "i33"),
            (&[row("i32", "strategy = \"lookback\"\nvt = 0\nblock_threads = 128")], "row 1", "from 1 to 64"),
            (&[row("i32", "strategy = \"lookback\"\nvt = 65\nblock_threads = 128")], "row 1", "from 1 to 64"),
            (&[row("i32", "strategy = \"lookback\"\nvt = 8\nblock_threads = 100")], "row 1", "multiple of 32"),
            (&[row("i32", "strategy = \"lookback\"\nvt = 8")], "row 1", "belong together"),
            // Nor is it given more threads so that it could be launched.
            (&[row("i32", &one_block(0))], "row 1", "multiple of 32"),
            (&[row("i32", &one_block(16))], "row 1", "multiple of 32"),
            (&[row("i32", &one_block(100))], "row 1", "100"),
            (&[row("i32", &one_block(2048))], "row 1", "2048"),
            (&[row("i32", &format!("up_to = 4096\n{last}")), row("i32", &one_block(16))], "row 2", "multiple of 32"),
            (&[row("i32", "strategy = \"lookahead\"\nvt = 8\nblock_threads = 1024")], "row 1", "adds 128"),
            (&[row("f64", "strategy = \"lookahead\"\nvt = 64\nblock_threads = 896")], "row 1", "cannot hold a tile"),
            (
                &[
                    row("i32", &format!("up_to = 9\n{last}")),
                    row("i32", &format!("up_to = 9\n{last}")),
                    row("i32", last),
                ],
                "row 2 (i32 sum, up_to 9)",
                "not above the 9",
            ),
            (&[row("i32", &format!("up_to = 0\n{last}")), row("i32", last)], "row 1", "not above the 0"),
            (&[row("i32", last), row("i32", last)], "row 2", "holds for all larger sizes"),
            (&[row("u8", last), row("i32", &format!("up_to = 9\n{last}"))], "row 2", "leave up_to out"),
        ];
        for (rows, place, fault) in cases {
            let (found_place, found_fault) = refusal(rows);
            assert!(found_place.contains(place), "{found_place}");
            assert!(found_fault.contains(fault), "{found_fault}");
        }
        let of = |subject: &str| format!("[[row]]\n{subject}\nstrategy = \"lookback\"\n");
        let problem = "problem = \"p: int -> int\"";
        for (subject, place, fault) in [
            (String::new(), "row 1 (without up_to)", "an element and an operator, or for a problem"),
            ("element = \"i32\"".to_owned(), "row 1 (i32, without up_to)", "for a problem"),
            (format!("operator = \"sum\"\n{problem}"), "row 1 (sum p: int -> int,", "for a problem"),
            (format!("element = \"i32\"\noperator = \"sum\"\n{problem}"), "row 1", "for a problem"),
            ("element = \"i32\"\noperator = \"sum\"\nline = 2".to_owned(), "row 1", "rows or columns"),
            (format!("{problem}\nline = 0"), "row 1 (p: int -> int, without up_to)", "at least 1 element"),
            (format!("{problem}\nvt = 8"), "row 1 (p: int -> int, without up_to)", "belong together"),
            (format!("{problem}\nvt = 65\nblock_threads = 32"), "row 1", "from 1 to 64"),
            (format!("{problem}\nvt = 8\nblock_threads = 33"), "row 1", "multiple of 32"),
        ] {
            let (found_place, found_fault) = refusal(&[of(&subject)]);
            assert!(found_place.contains(place), "{found_place}");
            assert!(found_fault.contains(fault), "{found_fault}");
        }
        let limited = |limit: &str| of(&format!("{problem}\nline = 8\n{limit}"));
        let (place, fault) = refusal(&[limited("up_to = 9"), limited("up_to = 9")]);
        assert!(
            place.contains("row 2 (p: int -> int, lines of 8, up_to 9)") && fault.contains("not above the 9"),
            "{place}"
        );
        assert!(refusal(&[limited(""), of(problem), limited("")]).1.contains("holds for all larger sizes"));
        // Of another length, or of none, it is another matter; and above its last row there are the rules.
        let other_length = of(&format!("{problem}\nline = 9"));
        assert_eq!(table(&[limited("up_to = 9"), of(problem), other_length]).rows().len(), 3);
        let no_operator = "[[row]]\nelement = \"f32\"\noperator = \"and\"\nstrategy = \"lookback\"\n".to_owned();
        assert!(refusal(&[no_operator]).1.contains("not defined on f32"));
        let other = |text: &str| TuningTable::parse(text, "test").unwrap_err().to_string();
        assert!(other("nonsense").contains("no tuning table"));
        assert!(other(HEADER).contains("neither a [[row]] nor a [[rule]]"));
        assert!(other(&format!("{HEADER}typo = 1\n")).contains("typo"));
        assert!(other(&format!("{HEADER}[[rule]]\nup_to_bytes = 1\nstrategy = \"lookback\"")).contains("the last"));
        let no_capability = format!("{}{}", HEADER.replace("9.0", "nine"), row("i32", last));
        assert!(other(&no_capability).contains("compute_capability"));
        assert!(matches!(TuningTable::open(std::path::Path::new("none-such")), Err(TuningError::Io { .. })));
    }

    #[test]
    fn a_table_with_clusters_is_refused_where_there_are_none() {
        let text = row("i32", "strategy = \"single-cluster\"");
        let table = table(std::slice::from_ref(&text));
        assert!(Tuning::with_table(&table, Gpu::H100).is_ok());
        for (major, minor) in [(7, 5), (8, 0), (8, 9)] {
            let before_hopper = Gpu { architecture: Architecture { major, minor }, multiprocessors: 108 };
            let error = Tuning::with_table(&table, before_hopper).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("row 1 (i32 sum") && error.contains("clusters"), "{error}");
            let resolved = Tuning::of(&table, before_hopper, String::new());
            let sum = Instance::new(ElementType::I32, Operator::Sum).expect("it exists");
            assert_eq!(resolved.resolve(sum, 1000).strategy, Strategy::Lookback);
        }
        let of_ampere = format!("{}{text}", HEADER.replace("9.0", "8.0"));
        assert!(TuningTable::parse(&of_ampere, "test").unwrap_err().to_string().contains("clusters"));
    }

    #[test]
    fn a_row_for_a_problem_that_a_gpu_cannot_run_is_refused_there_and_one_that_the_problem_cannot_is_passed_over() {
        let row = |rest: &str| format!("[[row]]\nproblem = \"recurrence of f64: double, double -> double\"\n{rest}\n");
        let cluster = table(&[row("strategy = \"single-cluster\"")]);
        let ampere = Gpu { architecture: Architecture { major: 8, minor: 0 }, multiprocessors: 108 };
        let error = Tuning::with_table(&cluster, ampere).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("row 1 (recurrence of f64: double") && error.contains("clusters"), "{error}");
        let recurrence = Definition::linear_recurrence::<f64>().unwrap().define().unwrap().into();
        // No cluster scans two arrays, no block holds such a tile, and nobody takes threads that VT 64 of f64 would spill from.
        let large = table(&[row("strategy = \"lookahead\"\nvt = 64\nblock_threads = 512")]);
        for table in [cluster, large] {
            let tuning = Tuning::with_table(&table, Gpu::H100).unwrap();
            let of = |tuning: &Tuning| tuning.choose(StrategyChoice::Auto, recurrence, 1 << 24, None, [0, 0]);
            assert_eq!(of(&tuning), of(&Tuning::committed(Gpu::H100)));
        }
    }

    #[test]
    fn few_bytes_are_counted_by_one_cluster_where_there_are_clusters() {
        let histogram = Definition::byte_histogram::<u8, u32>().unwrap();
        let cumulated = histogram.clone().cumulated();
        let many_bins = Definition::binned::<u32>("many", 257, "return x;").input::<u8>("x");
        let words = Definition::even_histogram::<u32, u32>(7, 0, 100).unwrap();
        let ampere = Gpu { architecture: Architecture { major: 8, minor: 0 }, multiprocessors: 108 };
        for (definition, n, gpu, expected) in [
            (&histogram, 1 << 16, Gpu::H100, Strategy::SingleCluster),
            (&histogram, (1 << 16) + 1, Gpu::H100, Strategy::Lookback),
            (&cumulated, 1 << 20, Gpu::H100, Strategy::SingleCluster),
            (&cumulated, (1 << 20) + 1, Gpu::H100, Strategy::Lookback),
            (&histogram, 1 << 16, ampere, Strategy::Lookback),
            (&many_bins, 1 << 16, Gpu::H100, Strategy::Lookback),
            (&words, 1 << 10, Gpu::H100, Strategy::Lookback),
        ] {
            let problem = Problem::from(definition.clone().define().unwrap().of_length(n));
            let found = Tuning::committed(gpu).choose(StrategyChoice::Auto, problem, n, None, [0, 0]);
            assert_eq!(found.strategy, expected, "{problem} of {n} on {}", gpu.architecture);
        }
    }

    #[test]
    fn elements_that_become_wider_ones_have_tiles_of_their_own_in_long_arrays() {
        use ElementType::{F16, F32, I8, U8, U32, U64};
        for (from, to, n, expected) in [
            (U8, U32, 1 << 24, Some((24, 512))),
            (F16, F32, 1 << 28, Some((24, 512))),
            (U32, U64, 1 << 23, Some((16, 384))),
            (U8, U32, (1 << 24) - 1, None),
            (I8, I8, 1 << 28, None),
        ] {
            let problem = Problem::accumulating(Operator::Sum, from, to).unwrap();
            let config = ScanConfig::of_widening(problem, n);
            assert_eq!(config.map(|config| (config.vt, config.block_threads)), expected, "{from} to {to}");
            let chosen = Tuning::committed(Gpu::H100).choose(StrategyChoice::Auto, problem, n, None, [0, 0]);
            assert!(
                config.is_none_or(|config| chosen == Resolved { strategy: Strategy::Lookahead, config }),
                "{chosen:?}"
            );
        }
    }

    #[test]
    fn a_problem_goes_by_its_own_rows_up_to_their_last_limit() {
        let of = |line: &str, strategy: &str, vt: u32| {
            let problem = "problem = \"f32 sum, by rows: float -> float\"";
            format!("[[row]]\n{problem}\n{line}\nstrategy = \"{strategy}\"\nvt = {vt}\nblock_threads = 96\n")
        };
        let rows = [
            of("line = 100\nup_to = 1000", "one-wave", 7),
            of("line = 100\nup_to = 5000", "lookback", 9),
            of("", "chained", 5),
            of("", "chained", 5).replace("by rows", "by columns").replace("chained", "lookback"),
        ];
        let tuning = Tuning::with_table(&table(&rows), Gpu::H100).unwrap();
        let committed = Tuning::committed(Gpu::H100);
        let sums = Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32).unwrap().define().unwrap();
        let by_rows = |have_states| Problem::from(sums.in_segments(Segments::Rows { have_states }));
        let choose = |tuning: &Tuning, problem, n, line| {
            let Resolved { strategy, config } = tuning.choose(StrategyChoice::Auto, problem, n, line, [0, 0]);
            (strategy, config.vt, config.block_threads)
        };
        for (n, line, expected) in [
            (1000, Some(100), (Strategy::OneWave, 7, 96)),
            (1100, Some(100), (Strategy::Lookback, 9, 96)),
            (1100, Some(10), (Strategy::Chained, 5, 96)),
            // An array off a boundary has lines of nobody's length.
            (1000, None, (Strategy::Chained, 5, 96)),
        ] {
            // With states at the ends or without.
            let found = [true, false].map(|have_states| choose(&tuning, by_rows(have_states), n, line));
            assert_eq!(found, [expected; 2], "{n}, {line:?}");
        }
        let rows = by_rows(false);
        let is_as_without = choose(&tuning, rows, 5100, Some(100)) == choose(&committed, rows, 5100, Some(100));
        assert!(is_as_without && choose(&tuning, rows, 5100, Some(100)).1 != 9);
        let columns = sums.in_segments(Segments::Columns(Axis::new(1 << 10, 8))).into();
        assert_eq!(choose(&tuning, columns, 1 << 13, None), (Strategy::Lookback, 5, 96));
        // Other definitions, directions and types are other problems.
        for other in [
            sums.into(),
            sums.reversed(true).in_segments(Segments::Rows { have_states: false }).into(),
            sums.strided().in_segments(Segments::Rows { have_states: false }).into(),
            sums.in_segments(Segments::HeadFlags).into(),
        ] {
            assert_eq!(choose(&tuning, other, 1000, Some(100)), choose(&committed, other, 1000, Some(100)), "{other}");
        }
    }

    #[test]
    fn a_row_for_a_reproducible_scan_chooses_no_tile_because_that_is_a_part_of_the_result() {
        let problem: Problem = {
            let sums = Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32).unwrap();
            sums.define().unwrap().reproducible().into()
        };
        let text = "[[row]]\nproblem = \"f32 sum, reproducible: float -> float\"\nstrategy = \"one-wave\"\nvt = 4\nblock_threads = 64\n";
        let tuning = Tuning::with_table(&table(&[text.to_owned()]), Gpu::H100).unwrap();
        let found = tuning.choose(StrategyChoice::Auto, problem, 1 << 24, None, [0, 0]);
        assert_eq!(found, Resolved { strategy: Strategy::OneWave, config: ScanConfig::reproducible(problem) });
    }

    #[test]
    fn a_table_whose_tile_another_gpu_cannot_hold_is_refused_there() {
        let table = table(&[row("i32", "strategy = \"lookahead\"\nvt = 64\nblock_threads = 512")]);
        assert!(Tuning::with_table(&table, Gpu::H100).is_ok());
        let turing = Gpu { architecture: Architecture { major: 7, minor: 5 }, multiprocessors: 40 };
        let error = Tuning::with_table(&table, turing).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("row 1 (i32 sum") && error.contains("7.5"), "{error}");
    }

    #[test]
    fn own_rows_count_first_then_sums_then_the_types_of_the_same_size() {
        let fixed = |vt: u32| format!("strategy = \"lookback\"\nvt = {vt}\nblock_threads = 128");
        let max = row("i32", &fixed(1)).replace("sum", "max");
        let unlike = format!("up_to = 1000\n{}", fixed(4).replace("lookback", "one-wave"));
        let rows = [row("i32", &fixed(2)), max, row("f32", &fixed(3)), row("f64", &unlike), row("f64", &fixed(5))];
        let tuning = Tuning::with_table(&table(&rows), Gpu::H100).unwrap();
        let vt = |element, operator, n| tuning.resolve(instance(element, operator), n).config.vt;
        assert_eq!(vt(ElementType::I32, Operator::Max, 10), 1, "its own");
        assert_eq!(vt(ElementType::I32, Operator::Min, 10), 2, "the sum of the type");
        assert_eq!(vt(ElementType::U32, Operator::Max, 10), 1, "a type of the same size, the same operator");
        assert_eq!(vt(ElementType::U32, Operator::Xor, 10), 2, "a type of the same size, its sum");
        assert_eq!(vt(ElementType::F32, Operator::Min, 10), 3, "the sum of the type");
        // A float takes no integer's configuration.
        let integers = Tuning::with_table(&table(&[row("i32", &fixed(2))]), Gpu::H100).unwrap();
        let found = integers.resolve(sum(ElementType::F32), 10);
        assert_eq!(found.config, ScanConfig::suggested(Strategy::Lookback, 4, 10));
        // Nothing is like u8: the widest type's strategies by bytes, as suggested.
        for (n, strategy) in [(8000, Strategy::OneWave), (8001, Strategy::Lookback)] {
            let Resolved { strategy: found, config } = tuning.resolve(sum(ElementType::U8), n);
            assert_eq!((found, config), (strategy, ScanConfig::suggested(strategy, 1, n)));
        }
    }

    #[test]
    fn limits_are_inclusive() {
        let rows = [row("i32", "up_to = 100\nstrategy = \"single-block\""), row("i32", "strategy = \"chained\"")];
        let tuning = Tuning::with_table(&table(&rows), Gpu::H100).unwrap();
        for (n, strategy) in [(0, Strategy::SingleBlock), (100, Strategy::SingleBlock), (101, Strategy::Chained)] {
            assert_eq!(tuning.resolve(sum(ElementType::I32), n).strategy, strategy, "{n}");
        }
    }

    #[test]
    fn gpus_take_their_own_table_or_the_nearest_lower_one_and_older_ones_go_by_rules() {
        let gpu = |major, minor| Gpu { architecture: Architecture { major, minor }, multiprocessors: 100 };
        for (major, minor) in [(9, 0), (10, 0), (12, 1)] {
            let tuning = Tuning::committed(gpu(major, minor));
            assert_eq!(tuning.name(), "sm_90", "{major}.{minor}");
            assert!(tuning.advice().is_some_and(|advice| advice.contains("of another kind")), "{major}.{minor}");
        }
        for (major, minor) in [(5, 2), (7, 5), (8, 0), (8, 9)] {
            let tuning = Tuning::committed(gpu(major, minor));
            assert_eq!(tuning.name(), BEFORE_HOPPER, "{major}.{minor}");
            assert!(tuning.advice().is_some_and(|advice| advice.contains("was not measured")), "{major}.{minor}");
            for n in (0..34).map(|power| 1 << power) {
                assert_ne!(tuning.resolve(sum(ElementType::U32), n).strategy, Strategy::Lookahead);
            }
        }
        assert_eq!(Tuning::committed(Gpu::H100).advice(), None);
        // One wave for what all multiprocessors hold: more of them hold more.
        let strategy = |multiprocessors| {
            Tuning::committed(Gpu { multiprocessors, ..gpu(8, 0) }).resolve(sum(ElementType::U32), 1 << 20).strategy
        };
        assert_eq!((strategy(40), strategy(108)), (Strategy::Lookback, Strategy::OneWave));
    }

    #[test]
    fn arrays_off_a_boundary_are_scanned_by_what_shifts_them_sooner() {
        let row = |element: &str, up_to: &str, strategy: &str, vt: u32, block_threads: u32| {
            row(element, &format!("{up_to}\nstrategy = \"{strategy}\"\nvt = {vt}\nblock_threads = {block_threads}"))
        };
        let rows = [
            row("u8", "up_to = 8192", "single-block", 16, 256),
            row("u8", "up_to = 65536", "single-cluster", 32, 128),
            row("u8", "up_to = 8000000", "one-wave", 64, 256),
            row("u8", "", "lookahead", 64, 512),
            row("u16", "up_to = 8192", "single-block", 8, 256),
            row("u16", "", "single-cluster", 32, 128),
            row("i32", "", "one-wave", 16, 256),
        ];
        let tuning = Tuning::with_table(&table(&rows), Gpu::H100).unwrap();
        let at = |element: ElementType, n: u64, offsets: [u32; 2]| {
            let problem = Problem::accumulating(Operator::Sum, element, element).unwrap();
            tuning.choose(StrategyChoice::Auto, problem, n, None, offsets)
        };
        let element = ElementType::U8;
        let one_block = at(element, 4096, [0, 0]);
        assert_eq!((one_block.strategy, one_block.config.tile_elements()), (Strategy::SingleBlock, 4096));
        // One element more than a tile, with what stands before the array.
        let wider = at(element, 4096, [1, 0]);
        assert_eq!((wider.strategy, wider.config.tile_elements()), (Strategy::SingleBlock, 4096 + 512));
        let threads = |n| at(element, n, [0, 0]).config.block_threads;
        assert_eq!([4097, 4608, 4609, 6144, 6145, 8192].map(threads), [288, 288, 384, 384, 512, 512]);
        let cluster = |n, offsets| {
            let Resolved { strategy, config } = at(element, n, offsets);
            assert_eq!(strategy, Strategy::SingleCluster, "{n}");
            16 * config.tile_elements()
        };
        assert_eq!((cluster(65536, [0, 1]), cluster(65536, [1, 0])), (65536, 16 * 160 * 32));
        assert_eq!([at(element, 4096, [0, 1]), at(element, 4096, [16, 32]), at(element, 4095, [1, 0])], [one_block; 3]);
        assert_eq!(at(element, 4 << 20, [0, 0]).strategy, Strategy::OneWave);
        for offsets in [[1, 0], [0, 1]] {
            assert_eq!(at(element, 4 << 20, offsets).strategy, Strategy::Lookahead);
            assert_eq!(at(element, 1 << 20, offsets), at(element, 1 << 20, [0, 0]));
        }
        assert_eq!(at(ElementType::I32, 1 << 20, [4, 0]), at(ElementType::I32, 1 << 20, [0, 0]));
        // As much as a block of 1024 threads has, and an element more.
        let strategy = |offsets| at(ElementType::U16, 8192, offsets).strategy;
        assert_eq!([[0, 0], [2, 0]].map(strategy), [Strategy::SingleBlock, Strategy::SingleCluster]);
    }

    #[test]
    fn compactions_go_by_measurements_of_their_own_where_large_arrays_have_look_ahead() {
        let select: Problem = Definition::select::<u32>("return x < 7;").define().expect("a definition").into();
        let wide = Definition::reduce_by_key::<u64>(Operator::Affine, ElementType::AffineMap, ElementType::AffineMap);
        let totals: Problem = wide.expect("maps").define().expect("a definition").into();
        // One output of a word, and two.
        let totals_of_words =
            Definition::totals_by_key(ElementType::U32, Operator::Sum, ElementType::F32, ElementType::F32);
        let totals_of_words: Problem = totals_of_words.expect("numbers").define().expect("a definition").into();
        let apart: Problem = Definition::partition::<u32>("return x < 7;").define().expect("a definition").into();
        let choose = |tuning: &Tuning, problem, n| {
            let Resolved { strategy, config } = tuning.choose(StrategyChoice::Auto, problem, n, None, [0, 0]);
            (strategy, config.vt, config.block_threads)
        };
        let hopper = Tuning::committed(Gpu::H100);
        for (problem, n, expected) in [
            (select, 1 << 16, (Strategy::OneWave, 8, 128)),
            (select, 1 << 18, (Strategy::OneWave, 16, 256)),
            (select, (1 << 18) + 1, (Strategy::OneWave, 8, 512)),
            (select, 1 << 21, (Strategy::OneWave, 32, 512)),
            (select, (1 << 21) + 1, (Strategy::Lookahead, 20, 512)),
            (totals_of_words, 1 << 20, (Strategy::OneWave, 16, 512)),
            (totals_of_words, 1_500_000, (Strategy::OneWave, 24, 512)),
            (totals_of_words, 1_600_000, (Strategy::OneWave, 32, 256)),
            (apart, 1 << 20, (Strategy::OneWave, 16, 512)),
            // A thread has no more than 128 bytes of 16 each.
            (totals, 1 << 18, (Strategy::OneWave, 8, 256)),
            (totals, (1 << 19) + 1, (Strategy::Lookahead, 7, 192)),
        ] {
            assert_eq!(choose(&hopper, problem, n), expected, "{problem}, {n}");
        }
        assert_eq!(choose(&hopper, select, 100).0, Strategy::SingleBlock);
        // No look-ahead in the table, none for compactions.
        let of_table = Tuning::with_table(&table(&[row("u32", "strategy = \"lookback\"")]), Gpu::H100).unwrap();
        assert_eq!(choose(&of_table, select, 1 << 20).0, Strategy::Lookback);
    }

    /// Every plain one, and all that convert numbers for a sum.
    fn problems() -> Vec<Problem> {
        let numbers = || ElementType::NUMBERS.iter().copied();
        let pairs = numbers().flat_map(|input| numbers().map(move |output| (input, output)));
        let converting = pairs.filter_map(|(input, output)| Problem::accumulating(Operator::Sum, input, output).ok());
        Instance::all().map(Problem::from).chain(converting).chain(defined()).collect()
    }

    /// Of one array and of as many as there may be, with states of few and of many bytes, in segments and not.
    fn defined() -> Vec<Problem> {
        let recurrence = Definition::linear_recurrence::<f64>().expect("numbers").define().expect("a definition");
        let bytes = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::F16).expect("numbers");
        let bytes = bytes.define().expect("a definition");
        let wide = ["a", "b", "c", "d"].into_iter().fold(
            Definition::new::<[f64; 4]>("wide", "wide").identity("{}").combine("return left;"),
            |definition, name| definition.input::<f64>(name),
        );
        let wide = wide.load("return {};").output::<f32>("y").store("y = 0;").define().expect("a definition");
        let all = [recurrence, bytes, wide];
        let segments = [Segments::One, Segments::Rows { have_states: false }, Segments::Keys(ElementType::U64)];
        let strided = [Segments::Rows { have_states: true }, Segments::Columns(Axis::new(1 << 10, 1 << 7))];
        all.into_iter()
            .flat_map(|scan| {
                let strided = strided.map(|segments| scan.in_segments(segments).strided().into());
                segments.map(|segments| scan.in_segments(segments).into()).into_iter().chain(strided)
            })
            .collect()
    }

    /// Whatever it is called; of so many elements that no tile is too small for a grid.
    fn row_for_a_problem() -> impl proptest::strategy::Strategy<Value = TuningRow> {
        use proptest::strategy::Strategy as _;
        let tile = prop::option::of((1u32..=64, 1u32..=4));
        let limits = (prop::option::of(1u64..1 << 40), prop::option::of(1u64..1 << 30));
        let strategy = prop::sample::select(Strategy::ALL);
        ("(?s).*", limits, strategy, tile).prop_map(|(problem, (line, up_to), strategy, tile)| TuningRow {
            tuned: Tuned::Problem { problem, line },
            up_to,
            strategy,
            vt: tile.map(|(vt, _)| vt),
            block_threads: tile.map(|(_, warps)| 32 * warps),
            composition: tile.map(|_| Composition::ReduceThenScan),
            evidence: Vec::new(),
        })
    }

    proptest! {
        #[test]
        fn a_table_is_read_as_it_is_written(gpu in "(?s).*", problems in prop::collection::vec(row_for_a_problem(), 1..6)) {
            let plain = TuningRow { tuned: Tuned::Plain { element: ElementType::U16, operator: Operator::Max }, ..problems[0].clone() };
            let plain = TuningRow { up_to: None, ..plain };
            let header = TuningHeader { gpu, ..table(&[row("i32", "strategy = \"lookback\"")]).header };
            // Rows of one name may be out of order.
            let names: HashSet<Tuned> = problems.iter().map(|row| row.tuned.clone()).collect();
            prop_assume!(names.len() == problems.len());
            let table = TuningTable::new(header, problems.into_iter().chain([plain]).collect()).unwrap();
            prop_assert_eq!(&TuningTable::parse(&table.to_toml(), "written").unwrap(), &table);
            #[cfg(feature = "lab")]
            {
                let json = serde_json::to_string(&table).unwrap();
                prop_assert_eq!(&serde_json::from_str::<TuningTable>(&json).unwrap(), &table);
                prop_assert_eq!(&toml::from_str::<TuningTable>(&toml::to_string(&table).unwrap()).unwrap(), &table);
            }
        }

        #[test]
        fn every_choice_is_one_that_a_device_accepts(
            (major, minor) in prop::sample::select(vec![
                (3, 5), (5, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (12, 0), (13, 7),
            ]),
            multiprocessors in 1u32..200,
            problem in prop::sample::select(problems()),
            (power, offset) in (0u32..44, -2i64..3),
            row in prop::sample::select(vec![None, Some(1), Some(1 << 20)]),
            mode in prop::sample::select(vec![Mode::Inclusive, Mode::Exclusive]),
            (input, output) in (0..ScanRequest::OFFSETS, 0..ScanRequest::OFFSETS),
        ) {
            let gpu = Gpu { architecture: Architecture { major, minor }, multiprocessors };
            // Tiles of columns with wide states are small, and a grid has no more than 2^31 blocks.
            let most = if problem.axis().is_some() { 1 << 40 } else { u64::MAX };
            let n = (1u64 << power).saturating_add_signed(offset).min(most);
            let Resolved { strategy, config } = Tuning::committed(gpu).choose(StrategyChoice::Auto, problem, n, row, [0, 0]);
            let aligned = |offset: u32, bytes: usize| offset - offset % bytes as u32;
            let (input_offset, output_offset) = (aligned(input, problem.input_bytes()), aligned(output, problem.output_bytes()));
            let request =
                ScanRequest { input_offset, output_offset, ..ScanRequest::of(problem, strategy, mode, config, n) };
            let plan = Plan::new(&request);
            prop_assert!(plan.is_ok(), "{:?}: {:?}", request, plan);
            prop_assert!(plan.is_ok_and(|plan| plan.fits(gpu.architecture)), "{:?} on {}", request, gpu);
        }
    }
}
