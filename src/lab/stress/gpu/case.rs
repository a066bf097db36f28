//! One configuration of stress: what runs and what disturbs it, as one line of text that can be run again.

use crate::abi;
use crate::element::{ElementType, Instance, Operator};
use crate::kernels::mutant::{Kind, Mutant, Need, ONE_WORKSPACE};
use crate::lab::stress::draw::Draw;
use crate::lab::stress::scan_case::{
    CaseError, Fields, Usual, WIDE_BLOCKS, Words, check, draw_offset, draw_scan, in_drawn_segments, problems_of,
    strategies, takes, workloads,
};
use crate::lab::stress::workspace::WorkspaceStart;
use crate::lab::workload::{ProblemKind, Workload};
use crate::names::named;
use crate::strategy::call::Prepared;
use crate::strategy::launch::Addresses;
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{Blocks, ConfigError, Descriptor, Mode, Strategy, Stress};
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

/// What runs and what disturbs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StressCase {
    /// The fault, if any.
    pub mutant: Option<&'static Mutant>,
    /// What is scanned, of the longest size.
    pub workload: Workload,
    /// The scan of the longest size; its descriptor layout is never left open.
    pub request: ScanRequest,
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
    pub workspace: WorkspaceStart,
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
    /// For a tool that makes every access slow: a few small runs on one stream, without delays; of strategies whose blocks hand a
    /// ring of tiles on by barriers in shared memory, or without these.
    Small {
        /// Whether they are among them.
        has_rings: bool,
    },
}

/// Instances of plain scans, which are compared bit for bit, with the share of each.
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

impl StressCase {
    /// Case number `index` of `seed`, of one of these problems or of those that [`problems_of`] says, at least one. Its kernels
    /// are those of case `index` modulo `palette`, so that a long run does not wait for the compiler.
    pub fn draw(
        problems: &[ProblemKind],
        seed: u64,
        index: u64,
        palette: u64,
        mutant: Option<&'static Mutant>,
        scale: Scale,
    ) -> Self {
        const ATTEMPTS: usize = 100;
        let mut of_kernel = Draw::for_purpose(seed, 2 * (index % palette.max(1)));
        loop {
            // `can_draw` says whether a mutant leaves anything to draw.
            let Some(kernel) = Self::draw_kernel(&mut of_kernel, problems, mutant, scale) else { continue };
            let mut draw = Draw::for_purpose(seed, 2 * index + 1);
            let mut disturbed = (0..ATTEMPTS).map(|_| Self::draw_disturbance(&mut draw, mutant, kernel, scale));
            if let Some(case) = disturbed.find_map(|case| case) {
                return case;
            }
        }
    }

    /// Whether any case of these problems can be drawn at all where a mutant says that it can show.
    pub fn can_draw(problems: &[ProblemKind], mutant: &'static Mutant, scale: Scale) -> bool {
        const ATTEMPTS: usize = 200;
        let mut draw = Draw::new(0);
        (0..ATTEMPTS).any(|_| {
            let kernel = Self::draw_kernel(&mut draw, problems, Some(mutant), scale);
            kernel.is_some_and(|kernel| Self::draw_disturbance(&mut draw, Some(mutant), kernel, scale).is_some())
        })
    }

    fn draw_kernel(
        draw: &mut Draw,
        problems: &[ProblemKind],
        mutant: Option<&'static Mutant>,
        scale: Scale,
    ) -> Option<(Workload, ScanRequest)> {
        let when = mutant.map(|mutant| mutant.when.clone()).unwrap_or_default();
        // Tiles are dealt to the ranks of several GPUs, and counts are drawn on the CPU device.
        if when.needs(Need::Ranks) || when.needs(Need::Counted) {
            return None;
        }
        let kind = match *problems_of(problems, mutant) {
            [] => return None,
            [kind] => kind,
            ref several => draw.of(several),
        };
        let is_misaligned = when.needs(Need::Misaligned);
        let plain = || {
            let plain = INSTANCES.iter().filter_map(|&(element, operator)| Instance::new(element, operator).ok());
            plain.map(Workload::from).collect()
        };
        let of_problem = if kind == ProblemKind::Flat { plain() } else { workloads(kind) };
        let is_wanted = |workload: &Workload| workload.is_exact() && !(is_misaligned && workload.element().bytes() > 4);
        let workloads: Vec<Workload> = of_problem.into_iter().filter(is_wanted).collect();
        let share = |stress: &Stress| if mutant.is_some() { stress.gpu_share_of_faults } else { stress.gpu_share };
        let is_drawn = |strategy: Strategy| {
            let is_left_out = scale == Scale::Small { has_rings: false } && strategy.row().shape.is_persistent();
            !is_left_out && workloads.iter().any(|&workload| takes(strategy, workload))
        };
        let strategy = draw.possible(&when.strategies, &strategies(share), is_drawn)?;
        let is_inside_block = mutant.is_some_and(|mutant| matches!(mutant.kind, Kind::Barrier | Kind::Algorithm));
        let usual = Usual {
            workloads: &workloads,
            modes: &[Mode::Inclusive, Mode::Inclusive, Mode::Exclusive, Mode::Exclusive, Mode::InclusiveMinusInput],
            shuffles: 50,
            vts: match () {
                () if is_misaligned => &[2, 4, 8, 16],
                () if when.needs(Need::Windows) => &[1, 2, 3, 4],
                // Vectors of four and more, more often: what is wrong inside a thread shows there.
                () if is_inside_block => &[1, 2, 3, 4, 4, 8, 8, 16],
                () => &[1, 1, 2, 2, 3, 4, 4, 5, 8, 16],
            },
            block_threads: if when.needs(Need::WideBlocks) {
                WIDE_BLOCKS
            } else if is_inside_block {
                &[64, 128, 256]
            } else {
                &[32, 64, 64, 128, 128, 256]
            },
        };
        draw_scan(draw, strategy, &when, &usual)
    }

    fn draw_disturbance(
        draw: &mut Draw,
        mutant: Option<&'static Mutant>,
        (mut workload, mut request): (Workload, ScanRequest),
        scale: Scale,
    ) -> Option<Self> {
        let needs = |need: Need| mutant.is_some_and(|mutant| mutant.when.needs(need));
        let is_small = matches!(scale, Scale::Small { .. });
        let seed = draw.word();
        place(draw, workload, &mut request, needs(Need::InPlace), needs(Need::Misaligned));
        if needs(Need::InPlace) && !request.in_place {
            return None;
        }
        let mut sizes = draw_sizes(draw, workload, &request, needs(Need::Windows), needs(Need::Partial), is_small);
        let longest = sizes.iter().max().copied().unwrap_or(1);
        (workload, request.n) = in_drawn_segments(draw, workload, longest, request.config.tile_elements());
        request.problem = workload.problem(request.n);
        for size in &mut sizes {
            *size = if *size == longest { request.n } else { workload.resized(request.n, *size).1 };
        }
        let fewest_streams = if mutant.is_some_and(|mutant| mutant.name == ONE_WORKSPACE) { 2 } else { 1 };
        let cycle = if is_small { 6 } else { 8 + draw.below(17) as u32 };
        let cycles = match scale {
            Scale::Full => 512 / cycle,
            Scale::Short => 128 / cycle,
            Scale::Small { .. } => 2,
        };
        let is_graph = needs(Need::Frozen) || !is_small && draw.percent(75);
        let wraps = needs(Need::Wrap) || (mutant.is_none() && draw.percent(12));
        let starts: &[_] = match wraps {
            true => &[WorkspaceStart::Zeros, WorkspaceStart::Earlier, WorkspaceStart::Earlier],
            false => WorkspaceStart::ALL,
        };
        let workspace = draw.of(starts);
        let mut case = Self {
            mutant,
            workload,
            request,
            sizes,
            streams: if is_small { fewest_streams } else { fewest_streams.max(draw.of(&[1, 1, 2, 3, 4])) },
            launching: if is_graph { Launching::Graph } else { Launching::Stream },
            cycle,
            runs: u64::from(cycle * cycles.max(1)),
            workspace,
            completed_epochs: match () {
                () if wraps => abi::LOOKBACK_MAXIMUM_EPOCH - 2 - draw.below(u64::from(cycle) - 4) as u32,
                () if workspace == WorkspaceStart::Earlier || draw.percent(70) => 16 + draw.below(1 << 29) as u32,
                () => 0,
            },
            wraps,
            blocks_per_multiprocessor: 0,
            occupied_percent: 0,
            occupied_nanoseconds: 0,
            delay_rate: 0,
            delay_nanoseconds: 0,
            seed,
        };
        if !is_small {
            case.blocks_per_multiprocessor = draw.of(&[0, 0, 0, 1, 2]);
            if draw.percent(40) {
                case.occupied_percent = draw.of(&[30, 60, 90]);
                case.occupied_nanoseconds = 20_000 + draw.below(180_000) as u32;
            }
            case.draw_delays(draw);
        }
        case.check().is_ok().then_some(case)
    }

    /// A delay of every length, so often that a run is not much longer than it is disturbed.
    fn draw_delays(&mut self, draw: &mut Draw) {
        if draw.percent(15) {
            return;
        }
        self.delay_nanoseconds = draw.of(&[1_000, 3_000, 10_000, 50_000]);
        let rate = draw.of(&[64, 512, 4096, 32_768]);
        let most_tiles = self.request.n / self.request.config.tile_elements() + 1;
        let row = self.request.strategy.row();
        // Delays of blocks that do not wait for each other pass together.
        let parallel = most_tiles.min(match row.shape.blocks {
            _ if row.stress.is_serial => 1,
            Blocks::Cluster => u64::from(abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS),
            _ => 512,
        });
        let delays_in_turn = 2 * (most_tiles.div_ceil(parallel)) * u64::from(self.delay_nanoseconds);
        // Nanoseconds of a run that may pass in delays, on average.
        let budget = 50_000;
        self.delay_rate = rate.min((65_536 * budget / delays_in_turn).min(65_536)).max(1) as u32;
    }

    /// What is scanned of one of its sizes.
    pub(super) fn workload_of(&self, n: u64) -> Workload {
        self.workload.resized(self.request.n, n).0
    }

    /// What is planned for one of its sizes, and what launches are told, over arrays that lie at these addresses.
    ///
    /// # Errors
    /// When the configuration cannot be launched so.
    pub(super) fn prepare(&self, n: u64, inputs: &[u64], output: u64) -> Result<(ScanRequest, Addresses), ConfigError> {
        let workload = self.workload_of(n);
        let request = ScanRequest { problem: workload.problem(n), n, ..self.request };
        let prepared = workload.prepare(&request, inputs, output)?;
        Ok(prepared.map_or_else(|| (request, Addresses::between(inputs[0], output)), Prepared::placed))
    }

    /// The plans of its sizes.
    ///
    /// # Errors
    /// When the configuration cannot be launched.
    pub fn plans(&self) -> Result<Vec<Plan>, ConfigError> {
        self.sizes
            .iter()
            .map(|&n| {
                Plan::new(&self.prepare(n, &self.apart(n), OUTPUT_APART + u64::from(self.request.output_offset))?.0)
            })
            .collect()
    }

    /// Addresses of the inputs of a size as it has them above a boundary, far from each other.
    fn apart(&self, n: u64) -> Vec<u64> {
        let workload = self.workload_of(n);
        let offsets = workload.input_offsets(n, self.request.input_offset).enumerate();
        let mut inputs: Vec<u64> =
            offsets.map(|(at, offset)| (at as u64 + 1) * INPUT_APART + u64::from(offset)).collect();
        if self.request.in_place {
            inputs[workload.own_place()] = OUTPUT_APART + u64::from(self.request.output_offset);
        }
        inputs
    }
}

/// Addresses that stand for those of arrays that are not there yet: further from each other than any array is long.
const INPUT_APART: u64 = 1 << 40;
const OUTPUT_APART: u64 = 1 << 50;

fn place(draw: &mut Draw, workload: Workload, request: &mut ScanRequest, in_place: bool, is_misaligned: bool) {
    let (input, output) = (workload.input(), workload.element());
    request.in_place = workload.may_be_in_place() && !is_misaligned && (in_place || draw.percent(25));
    if is_misaligned || draw.percent(40) {
        request.input_offset = draw_offset(draw, request.strategy, input);
        request.output_offset = draw_offset(draw, request.strategy, output);
        if is_misaligned {
            // An odd place is above the boundary of any access, and one off the input's is shifted.
            let bytes = output.bytes() as u32;
            request.input_offset |= bytes;
            request.output_offset = request.input_offset ^ bytes;
        }
    }
    if request.in_place {
        request.output_offset = request.input_offset;
    }
}

fn draw_sizes(
    draw: &mut Draw,
    workload: Workload,
    request: &ScanRequest,
    windows: bool,
    partial: bool,
    is_small: bool,
) -> Vec<u64> {
    let tile = request.config.tile_elements();
    // A matrix may need more elements to have whole rows.
    let most_elements = if workload.is_plain() { MAXIMUM_ELEMENTS } else { MAXIMUM_ELEMENTS / 2 };
    let most = (most_elements / tile).saturating_sub(2).max(2);
    let smallest = if windows { request.strategy.row().stress.windows.gpu_tiles } else { 1 };
    let lead = u64::from(request.input_offset) / workload.input().bytes() as u64;
    let count = if is_small { 2 } else { 1 + draw.below(3) };
    let mut size = || {
        let tiles = match draw.below(10) {
            _ if is_small => 2 + draw.below(6),
            0..2 => 1 + draw.below(4),
            2..5 => 5 + draw.below(60),
            5..8 => 33 + draw.below(480),
            // Far more blocks than can be resident, of the small tiles.
            _ => most / 2 + draw.below(most / 2),
        };
        let end = (tiles.max(smallest).min(most) * tile).saturating_sub(lead);
        let n = match draw.below(5) {
            0 if !partial => end,
            1 => end + 1,
            2 => end.saturating_sub(1),
            _ => end.saturating_sub(draw.below(tile)),
        };
        n.max(1)
    };
    (0..count).map(|_| size()).collect()
}

/// What begins every line; the number is the version of the text.
const MAGIC: &str = "gpu-stress-1";

impl fmt::Display for StressCase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(u64::to_string).collect();
        let mut words = Words::of_scan(' ', self.mutant, self.workload, &self.request, "element");
        words.add_workload(self.workload, self.request.n);
        words
            .add("sizes", sizes.join(","))
            .add("streams", self.streams)
            .add("launching", self.launching)
            .add("cycle", self.cycle)
            .add("runs", self.runs)
            .add("poison", self.workspace)
            .add("completed-epochs", self.completed_epochs)
            .add("wraps", self.wraps)
            .add("blocks-per-multiprocessor", self.blocks_per_multiprocessor)
            .add("occupied", format_args!("{}x{}", self.occupied_percent, self.occupied_nanoseconds))
            .add("delays", format_args!("{}x{}", self.delay_rate, self.delay_nanoseconds))
            .add("seed", format_args!("{:#x}", self.seed));
        write!(formatter, "{MAGIC} {}", words.text)
    }
}

impl FromStr for StressCase {
    type Err = CaseError;

    fn from_str(line: &str) -> Result<Self, CaseError> {
        let mut words = line.split_whitespace();
        if words.next() != Some(MAGIC) {
            let (part, fault) = (line.to_owned(), format!("it does not begin with '{MAGIC}'"));
            return Err(CaseError::Part { part, fault });
        }
        let mut fields = Fields::new(words)?;
        let text: String = fields.value("sizes")?;
        let sizes = text.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>();
        let sizes = sizes.map_err(|_| CaseError::part("sizes", &text, "numbers with ',' between them"))?;
        let longest = sizes.iter().max().copied().unwrap_or(1);
        let workload = fields.workload("element", longest)?;
        let (mutant, mut request) = fields.scan(workload, longest)?;
        request.config.descriptor.get_or_insert(Descriptor::Split);
        let workspace: String = fields.value("poison")?;
        let mut pair = |key| fields.numbers(key, 'x')?.ok_or(CaseError::Missing { key });
        let ([occupied_percent, occupied_nanoseconds], [delay_rate, delay_nanoseconds]) =
            (pair("occupied")?, pair("delays")?);
        let seed: String = fields.value("seed")?;
        let case = Self {
            mutant,
            workload,
            request,
            sizes,
            streams: fields.value("streams")?,
            launching: fields.value("launching")?,
            cycle: fields.value("cycle")?,
            runs: fields.value("runs")?,
            workspace: match workspace.as_str() {
                // As lines of earlier versions have it.
                "previous-epochs" => WorkspaceStart::Earlier,
                name => name.parse().map_err(|error| CaseError::part("poison", name, error))?,
            },
            completed_epochs: fields.value("completed-epochs")?,
            wraps: fields.value("wraps")?,
            blocks_per_multiprocessor: fields.value("blocks-per-multiprocessor")?,
            occupied_percent,
            occupied_nanoseconds,
            delay_rate,
            delay_nanoseconds,
            seed: u64::from_str_radix(seed.trim_start_matches("0x"), 16)
                .map_err(|_| CaseError::part("seed", &seed, "a hexadecimal number"))?,
        };
        fields.end()?;
        case.check()?;
        Ok(case)
    }
}

impl StressCase {
    /// Numbers that someone wrote are such as `draw` gives.
    fn check(&self) -> Result<(), CaseError> {
        let limits = [
            ("streams", u64::from(self.streams), 1, 16),
            ("cycle", u64::from(self.cycle), 1, 4096),
            ("runs", self.runs, 1, u64::MAX),
            ("sizes", self.sizes.iter().min().copied().unwrap_or(0), 1, MAXIMUM_ELEMENTS),
            ("sizes", self.request.n, 1, MAXIMUM_ELEMENTS),
            ("delays", u64::from(self.delay_rate), 0, 65_536),
            ("occupied", u64::from(self.occupied_percent), 0, 100),
        ];
        if let Some((key, value, least, most)) =
            limits.into_iter().find(|(_, value, least, most)| !(least..=most).contains(&value))
        {
            return Err(CaseError::part(key, value, format_args!("{least} to {most}")));
        }
        if !self.workload.is_exact() {
            let fault = "sums of floats are rounded, and outputs are compared bit for bit";
            return Err(CaseError::part("element", self.workload.element(), fault));
        }
        if let Some(misfit) = self.sizes.iter().find_map(|&n| self.workload_of(n).misfit(n)) {
            return Err(CaseError::part("sizes", self.request.n, misfit));
        }
        check(self.workload, &self.request, self.completed_epochs)?;
        self.plans()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::stress::PLAIN;
    use std::collections::HashSet;

    fn draw(index: u64, mutant: Option<&'static Mutant>, scale: Scale) -> StressCase {
        StressCase::draw(PLAIN, 7, index, 64, mutant, scale)
    }

    /// Those that a GPU alone shows anything of.
    fn drawable() -> impl Iterator<Item = &'static Mutant> {
        Mutant::all().expect("readable").iter().filter(|mutant| StressCase::can_draw(PLAIN, mutant, Scale::Short))
    }

    #[test]
    fn every_drawn_case_can_be_planned_and_read_back() {
        for mutant in drawable().map(Some).chain([None]) {
            // There are hundreds of mutants.
            for index in 0..if mutant.is_none() { 4000 } else { 10 } {
                for scale in [Scale::Full, Scale::Short, Scale::Small { has_rings: true }] {
                    let case = draw(index, mutant, scale);
                    assert_eq!(case.to_string().parse(), Ok(case.clone()), "{case}");
                    assert!(case.plans().is_ok(), "{case}");
                }
            }
        }
    }

    #[test]
    fn what_a_mutant_needs_is_drawn() {
        let mut of_problems = 0;
        for mutant in drawable() {
            of_problems += u32::from(!mutant.when.problems.is_empty());
            let (needs, when) = (|need| mutant.when.needs(need), &mutant.when);
            for index in 0..40 {
                let case = draw(index, Some(mutant), Scale::Short);
                assert!(!needs(Need::Wrap) || case.wraps, "{case}");
                assert!(!needs(Need::InPlace) || case.request.in_place, "{case}");
                assert!(!needs(Need::Misaligned) || case.request.input_offset != case.request.output_offset, "{case}");
                let is_ordered = case.workload.operator().is_some_and(|operator| !operator.is_commutative());
                assert!(!needs(Need::NonCommutative) || is_ordered || !case.workload.is_plain(), "{case}");
                assert!(
                    !needs(Need::Windows) || case.sizes.iter().all(|&n| n > 32 * case.request.config.tile_elements()),
                    "{case}"
                );
                assert!(
                    when.layouts.is_empty()
                        || case.request.config.descriptor.is_some_and(|x| when.layouts.contains(&x))
                );
                assert!(when.patterns.is_empty() || when.patterns.contains(&case.request.config.pattern));
                assert!(when.strategies.is_empty() || when.strategies.contains(&case.request.strategy));
            }
        }
        assert!(of_problems > 100, "{of_problems}");
    }

    #[test]
    fn every_problem_is_drawn_by_all_its_strategies_and_read_back() {
        for kind in ProblemKind::ALL {
            let mut strategies = HashSet::new();
            for index in 0..200 {
                let case = StressCase::draw(&[*kind], 5, index, 200, None, Scale::Full);
                assert_eq!(case.to_string().parse(), Ok(case.clone()), "{case}");
                assert_eq!(case.workload.kind(), *kind);
                strategies.insert(case.request.strategy);
            }
            let takes_kind = |strategy| workloads(*kind).iter().any(|&workload| takes(strategy, workload));
            let is_drawn = |strategy: &Strategy| strategy.row().stress.gpu_share > 0 && takes_kind(*strategy);
            let all: Vec<_> = Strategy::ALL.iter().filter(|strategy| is_drawn(strategy)).collect();
            assert!(
                !all.is_empty() && all.iter().all(|strategy| strategies.contains(strategy)),
                "{kind}: {strategies:?}"
            );
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_case_and_the_palette_bounds_the_kernels() {
        let draw = |index| StressCase::draw(PLAIN, 11, index, 5, None, Scale::Full);
        assert_eq!(draw(3), draw(3));
        let (first, again) = (draw(3), draw(8));
        let kernel = |case: &StressCase| (case.request.config, case.workload, case.request.mode);
        assert_eq!(kernel(&first), kernel(&again));
        assert_ne!(first, again);
    }

    #[test]
    fn a_line_that_is_none_is_refused() {
        let line = draw(1, None, Scale::Full).to_string();
        assert!("".parse::<StressCase>().is_err());
        assert!(line.replace("seed=", "speed=").parse::<StressCase>().is_err());
        assert!(line.replace("cycle=", "cycle=x").parse::<StressCase>().is_err());
        assert!(line.replace("streams=", "streams=99").parse::<StressCase>().is_err());
    }
}
