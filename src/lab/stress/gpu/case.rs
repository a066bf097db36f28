//! One configuration of stress: what runs and what disturbs it, as one line of text that can be run again.

use super::random::Random;
use crate::abi;
use crate::element::{ElementType, Instance, Operator};
use crate::lab::stress::{Kind, Mutant, Need, ONE_WORKSPACE};
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{Composition, Descriptor, Mode, Pattern, ScanConfig, Strategy, TileOrder, named};
use std::fmt;
use std::str::FromStr;

/// Elements of the longest scan.
pub(super) const MAXIMUM_ELEMENTS: u64 = 1 << 17;

named! {
    /// How the launches of a lane reach the device.
    pub enum Launching as "way of launching" {
        /// One by one.
        Stream = "stream",
        /// A graph of some runs, replayed: its arguments are those of the capture.
        Graph = "graph",
    }
}

named! {
    /// What the descriptors of a workspace hold before its first launch. Its control block is valid always.
    pub enum Poison as "poison" {
        /// What the allocation of a workspace promises.
        Zeros = "zeros",
        /// Random words; none of an epoch that is to come.
        Random = "random",
        /// All bits set: a tag of the largest epoch.
        Ones = "ones",
        /// Prefixes of earlier launches, with random values.
        PreviousEpochs = "previous-epochs",
    }
}

/// What runs and what disturbs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StressCase {
    /// The fault, if any.
    pub mutant: Option<&'static Mutant>,
    /// Element type and operator.
    pub instance: Instance,
    /// Strategy.
    pub strategy: Strategy,
    /// Mode.
    pub mode: Mode,
    /// The kernels' configuration; the descriptor layout is never left open.
    pub config: ScanConfig,
    /// Whether the output is the input.
    pub in_place: bool,
    /// Address of the input modulo 32.
    pub input_offset: u32,
    /// Address of the output modulo 32.
    pub output_offset: u32,
    /// Elements; runs take turns.
    pub sizes: Vec<u64>,
    /// Lanes: streams with a workspace each.
    pub streams: u32,
    /// How launches reach the device.
    pub launching: Launching,
    /// Runs of one replay.
    pub cycle: u32,
    /// Runs of each lane.
    pub runs: u64,
    /// What descriptors hold at first.
    pub poison: Poison,
    /// Launches that the workspace has completed at first.
    pub completed_epochs: u32,
    /// Whether each cycle of runs is brought there again, so that each passes the wrap.
    pub wraps: bool,
    /// Blocks that fit on a multiprocessor; 0 for as many as would.
    pub blocks_per_multiprocessor: u32,
    /// Multiprocessors in 100 that another kernel holds at the start of each cycle.
    pub occupied_percent: u32,
    /// How long it holds them.
    pub occupied_nanoseconds: u32,
    /// Delays in 65536 passes of a delay point.
    pub delay_rate: u32,
    /// The longest delay.
    pub delay_nanoseconds: u32,
    /// Of the delays and the order of sizes.
    pub seed: u64,
}

/// How much a case may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// For a GPU at full speed.
    Full,
    /// The same with fewer runs of a case: another configuration comes sooner.
    Short,
    /// For a tool that makes every access slow: a few small runs on one stream, without delays.
    Small,
}

/// Instances that are compared bit for bit, with the share of each.
const INSTANCES: [(ElementType, Operator); 10] = [
    (ElementType::U8, Operator::Sum),
    (ElementType::U16, Operator::Sum),
    (ElementType::U32, Operator::Sum),
    (ElementType::U32, Operator::Sum),
    (ElementType::U64, Operator::Sum),
    (ElementType::I32, Operator::Max),
    (ElementType::F32, Operator::Max),
    (ElementType::AffineMap, Operator::Affine),
    (ElementType::BicyclicPair, Operator::Bicyclic),
    (ElementType::IndexInterval, Operator::Intervals),
];

const fn layout_bytes(layout: Descriptor) -> usize {
    match layout {
        Descriptor::Packed64 => 4,
        Descriptor::Packed128 => 8,
        Descriptor::Split => usize::MAX,
    }
}

/// What a mutant lists, or `otherwise`.
fn or_else<T: Copy>(listed: Option<&[T]>, otherwise: &[T]) -> Vec<T> {
    listed.filter(|listed| !listed.is_empty()).unwrap_or(otherwise).to_vec()
}

impl StressCase {
    /// Case number `index` of `seed`. Its kernels are those of case `index` modulo `palette`, so that a long run
    /// does not wait for the compiler.
    pub fn draw(seed: u64, index: u64, palette: u64, mutant: Option<&'static Mutant>, scale: Scale) -> Self {
        let mut case = Self::draw_kernel(&mut Random::new(seed, 2 * (index % palette.max(1))), mutant);
        case.draw_disturbance(&mut Random::new(seed, 2 * index + 1), mutant, scale);
        case
    }

    fn draw_kernel(random: &mut Random, mutant: Option<&'static Mutant>) -> Self {
        use Strategy::{
            Chained, Lookahead, Lookback, OneWave, ReduceThenScan, ScanThenPropagate, SingleBlock, SingleCluster,
        };
        let needs = |need: Need| mutant.is_some_and(|mutant| mutant.when.needs(need));
        let usual = match mutant {
            None => vec![Lookback; 9]
                .into_iter()
                .chain([Lookahead; 3])
                .chain([Chained; 5])
                .chain([OneWave; 4])
                .chain([ReduceThenScan, ReduceThenScan, ScanThenPropagate, SingleBlock, SingleCluster])
                .collect(),
            Some(_) => vec![Lookback, Lookback, Chained, OneWave],
        };
        let strategy = random.pick(&or_else(mutant.map(|mutant| &mutant.when.strategies[..]), &usual));
        let noncommutative = needs(Need::NonCommutative);
        let fits = |element: ElementType, operator: Operator, layouts: &[Descriptor]| {
            (!noncommutative || !operator.is_commutative())
                && (!needs(Need::Misaligned) || element.bytes() <= 4)
                && layouts.iter().any(|&layout| element.bytes() <= layout_bytes(layout))
        };
        let layouts = or_else(mutant.map(|mutant| &mutant.when.layouts[..]), Descriptor::ALL);
        let instances: Vec<_> =
            INSTANCES.into_iter().filter(|&(element, operator)| fits(element, operator, &layouts)).collect();
        let (element, operator) = random.pick(&instances);
        let Ok(instance) = Instance::new(element, operator) else { unreachable!("the table holds defined pairs") };
        let layouts: Vec<_> = layouts.into_iter().filter(|&layout| element.bytes() <= layout_bytes(layout)).collect();
        let has_inverse = element.is_integer() && operator == Operator::Sum;
        let mut modes = or_else(
            mutant.map(|mutant| &mutant.when.modes[..]),
            &[Mode::Inclusive, Mode::Inclusive, Mode::Exclusive, Mode::Exclusive, Mode::InclusiveMinusInput],
        );
        modes.retain(|&mode| mode != Mode::InclusiveMinusInput || has_inverse);
        let shuffles = [[Pattern::Shuffle; 6].as_slice(), Pattern::ALL].concat();
        let pattern = random.pick(&or_else(mutant.map(|mutant| &mutant.when.patterns[..]), &shuffles));
        let mut compositions = or_else(mutant.map(|mutant| &mutant.when.compositions[..]), Composition::ALL);
        compositions.retain(|&composition| pattern != Pattern::Shuffle || composition != Composition::Block);
        let is_inside_block = mutant.is_some_and(|mutant| matches!(mutant.kind, Kind::Barrier | Kind::Algorithm));
        let vts: &[u32] = match (needs(Need::Misaligned), needs(Need::Windows)) {
            (true, _) => &[2, 4, 8, 16],
            (_, true) => &[1, 2, 3, 4],
            // Vectors of four and more, more often: what is wrong inside a thread shows there.
            _ if is_inside_block => &[1, 2, 3, 4, 4, 8, 8, 16],
            _ => &[1, 1, 2, 2, 3, 4, 4, 5, 8, 16],
        };
        let threads: &[u32] = if is_inside_block { &[64, 128, 256] } else { &[32, 64, 64, 128, 128, 256] };
        let config = ScanConfig {
            vt: random.pick(vts),
            block_threads: random.pick(threads),
            pattern,
            composition: random.pick(&compositions),
            descriptor: Some(random.pick(&layouts)),
            tile_order: TileOrder::Ticket,
        };
        Self {
            mutant,
            instance,
            strategy,
            mode: random.pick(&modes),
            config,
            in_place: false,
            input_offset: 0,
            output_offset: 0,
            sizes: Vec::new(),
            streams: 1,
            launching: Launching::Stream,
            cycle: 1,
            runs: 1,
            poison: Poison::Zeros,
            completed_epochs: 0,
            wraps: false,
            blocks_per_multiprocessor: 0,
            occupied_percent: 0,
            occupied_nanoseconds: 0,
            delay_rate: 0,
            delay_nanoseconds: 0,
            seed: 0,
        }
    }

    fn draw_disturbance(&mut self, random: &mut Random, mutant: Option<&'static Mutant>, scale: Scale) {
        let needs = |need: Need| mutant.is_some_and(|mutant| mutant.when.needs(need));
        let is_small = scale == Scale::Small;
        self.seed = random.bits();
        self.draw_placement(random, needs(Need::InPlace), needs(Need::Misaligned));
        self.draw_sizes(random, needs(Need::Windows), needs(Need::Partial), is_small);
        self.streams = if is_small { 1 } else { random.pick(&[1, 1, 2, 3, 4]) };
        if mutant.is_some_and(|mutant| mutant.name == ONE_WORKSPACE) {
            self.streams = self.streams.max(2);
        }
        self.launching =
            if needs(Need::Frozen) || !is_small && random.chance(75) { Launching::Graph } else { Launching::Stream };
        self.cycle = if is_small { 6 } else { 8 + random.below(17) as u32 };
        let cycles = match scale {
            Scale::Full => 512 / self.cycle,
            Scale::Short => 128 / self.cycle,
            Scale::Small => 2,
        };
        self.runs = u64::from(self.cycle * cycles.max(1));
        let wraps = needs(Need::Wrap) || (mutant.is_none() && random.chance(12));
        self.draw_workspace(random, wraps);
        if is_small {
            return;
        }
        self.blocks_per_multiprocessor = random.pick(&[0, 0, 0, 1, 2]);
        if random.chance(40) {
            self.occupied_percent = random.pick(&[30, 60, 90]);
            self.occupied_nanoseconds = 20_000 + random.below(180_000) as u32;
        }
        self.draw_delays(random);
    }

    fn draw_placement(&mut self, random: &mut Random, in_place: bool, misaligned: bool) {
        let bytes = self.instance.element().bytes() as u32;
        self.in_place = !misaligned && (in_place || random.chance(25));
        if misaligned || random.chance(40) {
            let places = ScanRequest::offsets_that_matter(self.strategy) / bytes;
            self.input_offset = random.below(u64::from(places)) as u32 * bytes;
            self.output_offset = random.below(u64::from(places)) as u32 * bytes;
            if misaligned {
                // An odd place is above the boundary of any access, and one off the input's is shifted.
                self.input_offset |= bytes;
                self.output_offset = self.input_offset ^ bytes;
            }
        }
        if self.in_place {
            self.output_offset = self.input_offset;
        }
    }

    fn draw_sizes(&mut self, random: &mut Random, windows: bool, partial: bool, is_small: bool) {
        let tile = u64::from(self.config.vt) * u64::from(self.config.block_threads);
        let most = (MAXIMUM_ELEMENTS / tile - 2).max(2);
        // More than two windows of look-back, than one round of one-wave.
        let smallest = match (windows, self.strategy) {
            (true, Strategy::OneWave) => 300,
            (true, _) => 70,
            _ => 1,
        };
        let count = if is_small { 2 } else { 1 + random.below(3) };
        for _ in 0..count {
            let tiles = match random.below(10) {
                _ if is_small => 2 + random.below(6),
                0..2 => 1 + random.below(4),
                2..5 => 5 + random.below(60),
                5..8 => 33 + random.below(480),
                // Far more blocks than can be resident, of the small tiles.
                _ => most / 2 + random.below(most / 2),
            };
            let tiles = tiles.max(smallest).min(most);
            let end =
                (tiles * tile).saturating_sub(u64::from(self.input_offset) / self.instance.element().bytes() as u64);
            let n = match random.below(5) {
                0 if !partial => end,
                1 => end + 1,
                2 => end.saturating_sub(1),
                _ => end.saturating_sub(random.below(tile)),
            };
            self.sizes.push(n.max(1));
        }
    }

    fn draw_workspace(&mut self, random: &mut Random, wraps: bool) {
        self.wraps = wraps;
        if wraps {
            self.completed_epochs = abi::LOOKBACK_MAXIMUM_EPOCH - 2 - random.below(u64::from(self.cycle) - 4) as u32;
            self.poison = random.pick(&[Poison::Zeros, Poison::PreviousEpochs, Poison::PreviousEpochs]);
            return;
        }
        self.poison = random.pick(Poison::ALL);
        if self.poison == Poison::PreviousEpochs || random.chance(70) {
            self.completed_epochs = 16 + random.below(1 << 29) as u32;
        }
    }

    /// A delay of every length, so often that a run is not much longer than it is disturbed.
    fn draw_delays(&mut self, random: &mut Random) {
        if random.chance(15) {
            return;
        }
        self.delay_nanoseconds = random.pick(&[1_000, 3_000, 10_000, 50_000]);
        let rate = random.pick(&[64, 512, 4096, 32_768]);
        let most_tiles = self.sizes.iter().max().copied().unwrap_or(1) / self.tile_elements() + 1;
        // In a chain each delay delays everyone, in one block, too; those of resident blocks pass together.
        let together = match self.strategy {
            Strategy::Chained | Strategy::SingleBlock => 1,
            Strategy::SingleCluster => u64::from(abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS),
            _ => 512,
        };
        let parallel = most_tiles.min(together);
        let delays_in_turn = 2 * (most_tiles.div_ceil(parallel)) * u64::from(self.delay_nanoseconds);
        // Nanoseconds of a run that may pass in delays, on average.
        let budget = 50_000;
        self.delay_rate = rate.min((65_536 * budget / delays_in_turn).min(65_536)).max(1) as u32;
    }

    fn tile_elements(&self) -> u64 {
        u64::from(self.config.vt) * u64::from(self.config.block_threads)
    }

    /// The scan of `n` elements.
    pub fn request(&self, n: u64) -> ScanRequest {
        ScanRequest {
            instance: self.instance,
            strategy: self.strategy,
            mode: self.mode,
            config: self.config,
            n,
            in_place: self.in_place,
            input_offset: self.input_offset,
            output_offset: self.output_offset,
        }
    }

    /// The plans of its sizes.
    ///
    /// # Errors
    /// When the configuration cannot be launched.
    pub fn plans(&self) -> Result<Vec<Plan>, crate::strategy::ConfigError> {
        self.sizes.iter().map(|&n| Plan::new(&self.request(n))).collect()
    }
}

/// What begins every line; the number is the version of the text.
const MAGIC: &str = "gpu-stress-1";

impl fmt::Display for StressCase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScanConfig { vt, block_threads, pattern, composition, descriptor, .. } = self.config;
        let sizes: Vec<String> = self.sizes.iter().map(u64::to_string).collect();
        write!(
            formatter,
            "{MAGIC} mutant={} strategy={} element={} operator={} mode={} vt={vt} threads={block_threads} \
             pattern={pattern} composition={composition} layout={} in-place={} input-offset={} output-offset={} \
             sizes={} streams={} launching={} cycle={} runs={} poison={} completed-epochs={} wraps={} \
             blocks-per-multiprocessor={} occupied={}x{} delays={}x{} seed={:#x}",
            self.mutant.map_or("none", |mutant| mutant.name.as_str()),
            self.strategy,
            self.instance.element(),
            self.instance.operator(),
            self.mode,
            descriptor.unwrap_or(Descriptor::Split),
            self.in_place,
            self.input_offset,
            self.output_offset,
            sizes.join(","),
            self.streams,
            self.launching,
            self.cycle,
            self.runs,
            self.poison,
            self.completed_epochs,
            self.wraps,
            self.blocks_per_multiprocessor,
            self.occupied_percent,
            self.occupied_nanoseconds,
            self.delay_rate,
            self.delay_nanoseconds,
            self.seed,
        )
    }
}

/// A line that is no case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no line of stress on a GPU: {0}")]
pub struct CaseError(String);

struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl Fields<'_> {
    fn text(&self, key: &str) -> Result<&str, CaseError> {
        let found = self.0.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| *value).ok_or_else(|| CaseError(format!("it has no '{key}='")))
    }

    fn value<T: FromStr>(&self, key: &str) -> Result<T, CaseError> {
        let text = self.text(key)?;
        text.parse().map_err(|_| CaseError(format!("'{text}' is no value of '{key}='")))
    }

    fn pair(&self, key: &str) -> Result<(u32, u32), CaseError> {
        let text = self.text(key)?;
        let numbers = text.split_once('x').and_then(|(left, right)| Some((left.parse().ok()?, right.parse().ok()?)));
        numbers.ok_or_else(|| CaseError(format!("'{text}' is no value of '{key}='")))
    }
}

impl FromStr for StressCase {
    type Err = CaseError;

    fn from_str(line: &str) -> Result<Self, CaseError> {
        let mut words = line.split_whitespace();
        if words.next() != Some(MAGIC) {
            return Err(CaseError(format!("it does not begin with '{MAGIC}'")));
        }
        let fields = Fields(words.filter_map(|word| word.split_once('=')).collect());
        let instance = Instance::new(fields.value("element")?, fields.value("operator")?)
            .map_err(|error| CaseError(error.to_string()))?;
        let sizes = fields.text("sizes")?.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>();
        let sizes = sizes.map_err(|_| CaseError(String::from("'sizes=' holds numbers and commas")))?;
        let seed = fields.text("seed")?;
        let seed = u64::from_str_radix(seed.trim_start_matches("0x"), 16);
        let (occupied_percent, occupied_nanoseconds) = fields.pair("occupied")?;
        let (delay_rate, delay_nanoseconds) = fields.pair("delays")?;
        let mutant = Some(fields.text("mutant")?).filter(|name| *name != "none").map(Mutant::named).transpose();
        let mutant = mutant.map_err(|error| CaseError(error.to_string()))?;
        let case = Self {
            mutant,
            instance,
            strategy: fields.value("strategy")?,
            mode: fields.value("mode")?,
            config: ScanConfig {
                vt: fields.value("vt")?,
                block_threads: fields.value("threads")?,
                pattern: fields.value("pattern")?,
                composition: fields.value("composition")?,
                descriptor: Some(fields.value("layout")?),
                tile_order: TileOrder::Ticket,
            },
            in_place: fields.value("in-place")?,
            input_offset: fields.value("input-offset")?,
            output_offset: fields.value("output-offset")?,
            sizes,
            streams: fields.value("streams")?,
            launching: fields.value("launching")?,
            cycle: fields.value("cycle")?,
            runs: fields.value("runs")?,
            poison: fields.value("poison")?,
            completed_epochs: fields.value("completed-epochs")?,
            wraps: fields.value("wraps")?,
            blocks_per_multiprocessor: fields.value("blocks-per-multiprocessor")?,
            occupied_percent,
            occupied_nanoseconds,
            delay_rate,
            delay_nanoseconds,
            seed: seed.map_err(|_| CaseError(String::from("'seed=' is no hexadecimal number")))?,
        };
        case.check()?;
        Ok(case)
    }
}

impl StressCase {
    /// Numbers that someone wrote are such as `draw` gives.
    fn check(&self) -> Result<(), CaseError> {
        let bytes = self.instance.element().bytes() as u32;
        let in_range = (1..=16).contains(&self.streams)
            && (1..=4096).contains(&self.cycle)
            && self.runs >= 1
            && self.sizes.iter().all(|size| (1..=MAXIMUM_ELEMENTS).contains(size))
            && [self.input_offset, self.output_offset]
                .iter()
                .all(|offset| *offset < ScanRequest::OFFSETS && offset.is_multiple_of(bytes))
            && (!self.in_place || self.input_offset == self.output_offset)
            && self.delay_rate <= 65_536
            && self.occupied_percent <= 100
            && self.completed_epochs < abi::LOOKBACK_MAXIMUM_EPOCH;
        if self.instance.is_rounded() {
            return Err(CaseError(String::from("sums of floats are rounded, and outputs are compared bit for bit")));
        }
        if !in_range || self.sizes.is_empty() {
            return Err(CaseError(String::from("a number is out of its range")));
        }
        self.plans().map(|_| ()).map_err(|error| CaseError(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drawn_case_can_be_planned_and_read_back() {
        let mutants = Mutant::all().expect("readable").iter().map(Some).chain([None]);
        for mutant in mutants {
            for index in 0..if mutant.is_none() { 4000 } else { 200 } {
                for scale in [Scale::Full, Scale::Short, Scale::Small] {
                    let case = StressCase::draw(7, index, 64, mutant, scale);
                    assert_eq!(case.to_string().parse(), Ok(case.clone()), "{case}");
                    assert!(case.plans().is_ok(), "{case}");
                }
            }
        }
    }

    #[test]
    fn what_a_mutant_needs_is_drawn() {
        for mutant in Mutant::all().expect("readable") {
            let (needs, when) = (|need| mutant.when.needs(need), &mutant.when);
            for index in 0..100 {
                let case = StressCase::draw(3, index, 8, Some(mutant), Scale::Short);
                assert!(!needs(Need::Wrap) || case.wraps, "{case}");
                assert!(!needs(Need::InPlace) || case.in_place, "{case}");
                assert!(!needs(Need::Misaligned) || case.input_offset != case.output_offset, "{case}");
                assert!(!needs(Need::NonCommutative) || !case.instance.operator().is_commutative(), "{case}");
                assert!(!needs(Need::Windows) || case.sizes.iter().all(|&n| n > 32 * case.tile_elements()), "{case}");
                assert!(when.layouts.is_empty() || case.config.descriptor.is_some_and(|x| when.layouts.contains(&x)));
                assert!(when.patterns.is_empty() || when.patterns.contains(&case.config.pattern));
                assert!(when.strategies.is_empty() || when.strategies.contains(&case.strategy));
            }
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_case_and_the_palette_bounds_the_kernels() {
        let draw = |index| StressCase::draw(11, index, 5, None, Scale::Full);
        assert_eq!(draw(3), draw(3));
        let (first, again) = (draw(3), draw(8));
        assert_eq!((first.config, first.instance, first.mode), (again.config, again.instance, again.mode));
        assert_ne!(first, again);
    }

    #[test]
    fn a_line_that_is_none_is_refused() {
        let line = StressCase::draw(1, 1, 8, None, Scale::Full).to_string();
        assert!("".parse::<StressCase>().is_err());
        assert!(line.replace("seed=", "speed=").parse::<StressCase>().is_err());
        assert!(line.replace("cycle=", "cycle=x").parse::<StressCase>().is_err());
        assert!(line.replace("streams=", "streams=99").parse::<StressCase>().is_err());
    }
}
