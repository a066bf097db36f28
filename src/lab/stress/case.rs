//! One reproducible run on the CPU device, as text and drawn from a seed.

use super::counted::DeviceCount;
use super::draw::Draw;
use super::scan_case::{
    CaseError, Fields, PLAIN, Usual, WIDE_BLOCKS, Words, check, draw_offset, draw_scan, in_drawn_segments, in_lines_of,
    in_segments, problems_of, strategies, takes, workloads,
};
use super::workspace::WorkspaceStart;
use crate::abi;
use crate::cpu::{BlockOrder, Pause};
use crate::element::{Instance, Operator};
use crate::kernels::mutant::{Kind, Mutant, Need, OPERATORS_WITH_MUTANTS};
use crate::lab::cpu_device::CountedArrays;
use crate::lab::workload::{ProblemKind, Shape, Workload};
use crate::names::named;
use crate::strategy::plan::{Plan, ScanRequest, Step};
use crate::strategy::{Blocks, Limit, Mode, TileOrder};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Tiles that a launch must have to count as a schedule of the kernels as they are.
pub const MINIMUM_TILES: u64 = 8;
/// Warps a block that it must have.
pub const MINIMUM_WARPS: u32 = 2;

named! {
    /// What a load may return.
    pub enum Memory as "memory" {
        /// The last value stored: every interleaving is one of sequential consistency.
        Strong = "strong",
        /// Any store that the thread's view does not rule out; plain accesses are checked for races.
        Weak = "weak",
    }
}

/// Launches of kernels at one time that a text may ask for.
const MOST_TOGETHER: u32 = 16;

/// Of a hundred cases so many have blocks of more than 256 threads.
const WIDE_PERCENT: u64 = 4;
/// Switches in which look-ahead blocks of 64 threads beside its helpers scan a tile, about.
const PAUSE_OF_A_TILE: u64 = 1000;
/// Of a hundred cases of another problem than the plain scan so many have three tiles or fewer.
const FEW_TILES_PERCENT: u64 = 12;

/// Of a hundred cases that can have a count which the device alone knows so many have one.
const COUNTED_PERCENT: u64 = 20;

/// Columns side by side of which look-back has strips as wide as they get.
const WIDE_COLUMNS: u64 = 256;

/// Ranks that tiles may be dealt to.
const MOST_RANKS: u32 = 8;

/// Something that happens in the middle of the first launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Disturbance {
    /// Nothing.
    None,
    /// A block stands still from its k-th scheduling point on, for so many switches of the others. k is `after_points`.
    Pause { block: u64, after_points: u64, switches: u64 },
    /// A block never runs on after its k-th scheduling point; then the workspace is cleaned.
    Kill { block: u64, after_points: u64 },
    /// The launch ends after its k-th scheduling point; then the workspace is cleaned.
    Abort { after_points: u64 },
    /// Another launch runs at the k-th access of the protocol, on a workspace of its own.
    Overlap { after_accesses: u64 },
}

impl Disturbance {
    /// A word for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pause { .. } => "pause",
            Self::Kill { .. } => "kill",
            Self::Abort { .. } => "abort",
            Self::Overlap { .. } => "overlap",
        }
    }
}

/// One run: a few launches of one scan on one workspace. The text form reproduces it.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The fault that the kernels have, if any.
    pub mutant: Option<&'static Mutant>,
    /// What loads may return.
    pub memory: Memory,
    /// Everything random in the run is drawn from it.
    pub seed: u64,
    /// What is scanned.
    pub workload: Workload,
    /// How, and how much; its problem is that of so many elements.
    pub request: ScanRequest,
    /// Blocks that may be started and not ended at one time.
    pub resident_blocks: u32,
    /// In which order blocks start.
    pub block_order: BlockOrder,
    /// Probability in percent that a scheduling point switches to another warp; `None` is round robin.
    pub preemption: Option<u32>,
    /// Whether plain and shared accesses are scheduling points too.
    pub plain_points: bool,
    /// Launches, one after the other; those behind the first have sizes of their own up to that of the first.
    pub launches: u32,
    /// Launches of kernels, whichever of these they are of, that are there at one time: blocks of the next one run with those
    /// of the one before, and wait for its end as its kernel says. 1 is one behind the end of the other.
    pub together: u32,
    /// Ranks that tiles are dealt to in turn, each with launches and a workspace of its own; 1 is one that has all.
    pub ranks: u32,
    /// How many elements there are as the device is told, where the host does not know it.
    pub count: Option<DeviceCount>,
    /// Launches that the workspace claims to have completed before.
    pub completed_epochs: u32,
    /// What its descriptors hold.
    pub workspace: WorkspaceStart,
    /// What happens in the middle of the first launch.
    pub disturbance: Disturbance,
}

impl Case {
    /// A run of a plain scan: [`Self::draw_of`] of [`PLAIN`].
    pub fn draw(mutant: Option<&'static Mutant>, memory: Memory, seed: u64) -> Self {
        Self::draw_of(PLAIN, mutant, memory, seed)
    }

    /// A run of one of these problems, at least one, or of those that [`problems_of`] says, that could show the mutant, or any
    /// run of the kernels as they are: at least 8 tiles and 2 warps a block in the strategies with tiles, but for a few of wide
    /// blocks and of tiny arrays. One seed, one case.
    pub fn draw_of(problems: &[ProblemKind], mutant: Option<&'static Mutant>, memory: Memory, seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        loop {
            // Some draws cannot be launched; `can_draw` says whether a mutant leaves any that can.
            if let Some(case) = Self::draw_once(problems, mutant, memory, seed, &mut draw) {
                return case;
            }
        }
    }

    /// Whether any case of these problems can be drawn at all where a mutant says that it can show.
    pub fn can_draw(problems: &[ProblemKind], mutant: &'static Mutant) -> bool {
        const ATTEMPTS: usize = 1000;
        let mut draw = Draw::new(0);
        (0..ATTEMPTS).any(|_| Self::draw_once(problems, Some(mutant), Memory::Strong, 0, &mut draw).is_some())
    }

    fn draw_once(
        problems: &[ProblemKind],
        mutant: Option<&'static Mutant>,
        memory: Memory,
        seed: u64,
        draw: &mut Draw,
    ) -> Option<Self> {
        let when = mutant.map(|mutant| mutant.when.clone()).unwrap_or_default();
        let needs = |need| when.needs(need);
        let kind = match *problems_of(problems, mutant) {
            [] => return None,
            [kind] => kind,
            ref several => draw.of(several),
        };
        let is_flat = kind == ProblemKind::Flat;
        // Flat scans are drawn of far more types, below.
        let of_problem = if is_flat { Vec::new() } else { workloads(kind) };
        let takes_problem = |strategy| of_problem.first().is_none_or(|&workload| takes(strategy, workload));
        let strategy = draw.possible(&when.strategies, &strategies(|stress| stress.cpu_share), takes_problem)?;
        let row = strategy.row();
        let windows = row.stress.windows;
        let blocks = row.shape.blocks;
        let is_long = needs(Need::Windows) || draw.percent(u64::from(windows.percent));
        let is_longer = is_long && draw.percent(25);
        let waits = is_long && windows.needs_pause;
        // Few tiles, and few blocks at one time, whose threads are then as many as in other cases.
        let is_wide = !is_long && strategy.has_blocks() && (needs(Need::WideBlocks) || draw.percent(WIDE_PERCENT));
        // Where blocks meet through no descriptors, an array may be about as long as a vector.
        let is_tiny =
            is_flat && !is_long && !is_wide && matches!(blocks, Blocks::Single | Blocks::Cluster) && draw.percent(30);
        let has_few_tiles = !is_flat && !is_long && !is_wide && draw.percent(FEW_TILES_PERCENT);
        // Work that grows with the square of the elements; and where segments are told by offsets, blocks that mark them.
        let is_small = row.limit == Some(Limit::QuadraticWork) || is_long && (!waits || !is_flat);
        let (own, all) = instances();
        let mut instances = match () {
            () if !is_flat => Vec::new(),
            () if mutant.is_some() || draw.percent(60) => own,
            () => all,
        };
        if is_tiny {
            // Only values of one or two bytes have vectors that an array can begin and end in, and far from both ends;
            // a sum shows each of them that is lost, where a maximum hides most.
            let sums_only = draw.percent(70);
            let is_wanted = |instance: &Instance| !sums_only || instance.operator() == Operator::Sum;
            instances.retain(|instance| instance.element().bytes() <= 2 && is_wanted(instance));
        }
        let workloads = [of_problem, instances.into_iter().map(Workload::from).collect()].concat();
        let usual = Usual {
            workloads: &workloads,
            modes: Mode::ALL,
            shuffles: 60,
            vts: match () {
                () if is_small => &[1],
                () if is_tiny => &[8, 16, 16, 32],
                () if is_wide && needs(Need::Misaligned) => &[2, 4],
                () if is_wide => &[1, 2, 4],
                () if needs(Need::Misaligned) => &[2, 4, 8],
                // Several rows an exchange, and more vectors a row than one.
                () if draw.percent(8) => &[16, 32, 64],
                // Of 6 and 12 wide elements are in runs.
                () => &[1, 1, 2, 2, 3, 4, 4, 6, 8, 12],
            },
            block_threads: match () {
                () if is_wide => WIDE_BLOCKS,
                () if is_small || waits || is_tiny => &[64],
                () => &[64, 64, 64, 96, 128],
            },
        };
        let (workload, mut request) = draw_scan(draw, strategy, &when, &usual)?;
        request.config.descriptor = request.config.descriptor.filter(|_| strategy.is_single_pass());
        if is_longer && waits && strategy.is_single_pass() && blocks == Blocks::PerTile {
            // All blocks are resident, so that this is right too, and the block that pauses has the first tile: none of
            // the others finds a prefix within two windows.
            request.config.tile_order = TileOrder::Static;
        }
        let tile = request.config.tile_elements();
        let tiles = match () {
            () if is_longer => windows.cpu_tiles_of_more.0 + draw.below(windows.cpu_tiles_of_more.1),
            () if is_long => windows.cpu_tiles.0 + draw.below(windows.cpu_tiles.1),
            () if is_wide => 2 + draw.below(2),
            () if has_few_tiles => 1 + draw.below(3),
            () if mutant.is_none() && draw.percent(6) => 13 + draw.below(24),
            () => MINIMUM_TILES + draw.below(5),
        };
        let vector = u64::from(abi::LOOKBACK_VECTOR_BYTES) / workload.element().bytes() as u64;
        let n = match draw.below(4) {
            _ if is_tiny => 1 + draw.below(3 * vector),
            // Round a tile boundary, or anywhere in the last tile.
            0 if !needs(Need::Partial) => tiles * tile,
            1 => tiles * tile - 1,
            2 => (tiles - 1) * tile + 1,
            _ => (tiles - 1) * tile + 1 + draw.below(tile - 1),
        };
        // Of each matrix, so that all together have about as many as one would.
        let rows = n.div_ceil(workload.matrices());
        let (workload, n) = match () {
            // Look-backs of several windows down more columns than a warp has lanes.
            () if waits && is_of_columns(kind) && draw.percent(50) => {
                in_lines_of(workload, Shape { rows: tiles, columns: WIDE_COLUMNS / workload.matrices() })
            }
            // Rows that are elements, if they begin where vectors do.
            () if is_of_columns(kind) && needs(Need::Narrow) => in_lines_of(workload, Shape { rows, columns: 2 }),
            () if is_of_columns(kind) && draw.percent(20) => {
                in_lines_of(workload, Shape { rows, columns: draw.of(&[2, 2, 4]) })
            }
            () if needs(Need::ShortSegments) => (in_segments(workload, 1), n),
            () => in_drawn_segments(draw, workload, n, tile),
        };
        (request.problem, request.n) = (workload.problem(n), n);
        let misaligned = match () {
            () if needs(Need::Misaligned) => 100,
            () if needs(Need::Narrow) => 0,
            () => 25 + 50 * u64::from(is_tiny),
        };
        let (input, output) = (workload.input(), workload.element());
        let mut offset = |element| if draw.percent(misaligned) { draw_offset(draw, strategy, element) } else { 0 };
        let (input_offset, output_offset) = (offset(input), offset(output));
        let wants_in_place = needs(Need::InPlace) || draw.percent(30);
        if needs(Need::InPlace) && !workload.may_be_in_place() {
            return None;
        }
        request.in_place = wants_in_place && workload.may_be_in_place();
        request.input_offset = input_offset;
        request.output_offset = if request.in_place { input_offset } else { output_offset };

        let kind = mutant.map(|mutant| mutant.kind);
        let plain_points =
            kind == Some(Kind::Barrier) || needs(Need::InPlace) || (mutant.is_none() && draw.percent(10));
        let mut launches = match () {
            () if needs(Need::Wrap) => 2 + draw.below(2) as u32,
            () if needs(Need::Relaunch) || needs(Need::Frozen) || needs(Need::Abort) => 2,
            () => draw.of(&[1, 1, 2]),
        };
        let wraps = needs(Need::Wrap) || (mutant.is_none() && launches > 1 && draw.percent(20));
        let mut completed_epochs = if wraps {
            abi::LOOKBACK_MAXIMUM_EPOCH - 1
        } else if needs(Need::Frozen) {
            0
        } else {
            draw.of(&[0, 0, 1, 5, 1 << 20])
        };
        let workspace = if needs(Need::Wrap) { WorkspaceStart::Earlier } else { draw.of(WorkspaceStart::ALL) };
        let reverse = needs(Need::Reverse);
        let mut resident_blocks = if waits {
            // A misaligned array may begin one tile earlier.
            tiles as u32 + 1
        } else if is_wide {
            draw.of(&[1, 2])
        } else if reverse {
            draw.of(&[1, 2, 3])
        } else {
            draw.of(&[1, 2, 3, 4, 6, 8])
        };
        let block_order = if reverse { BlockOrder::Reverse } else { draw.of(BlockOrder::ALL) };
        let block = draw.below(match blocks {
            Blocks::PerTile | Blocks::Single => tiles,
            Blocks::Persistent => 6,
            Blocks::Cluster => 8,
        });
        let after_points = draw.below(40);
        let pause = Disturbance::Pause { block, after_points, switches: 1 + draw.below(3000) };
        let mut disturbance = match () {
            // The blocks of a cluster wait for each other too.
            () if blocks == Blocks::Cluster && draw.percent(30) => pause,
            () if !strategy.is_single_pass() => Disturbance::None,
            () if needs(Need::Abort) => Disturbance::Abort { after_points: 5 + draw.below(200) },
            () if needs(Need::Overlap) => Disturbance::Overlap { after_accesses: draw.below(40) },
            // A block that takes one tile after the other has taken none by then: it finds many behind it at once.
            () if is_longer && blocks == Blocks::Persistent => {
                Disturbance::Pause { block: 0, after_points: 0, switches: PAUSE_OF_A_TILE * (200 + draw.below(tiles)) }
            }
            // Without it whoever comes late may find the one prefix at the far end of its first window.
            () if waits && draw.percent(30) => Disturbance::None,
            () if waits => Disturbance::Pause { block: 0, after_points: 1, switches: 600 * tiles },
            () if kind == Some(Kind::Protocol) => Disturbance::None,
            () => match draw.below(20) {
                0..=4 => pause,
                5 if mutant.is_none() => Disturbance::Kill { block, after_points },
                6 if mutant.is_none() => Disturbance::Abort { after_points: draw.below(400) },
                7 if mutant.is_none() && memory == Memory::Strong => {
                    Disturbance::Overlap { after_accesses: draw.below(60) }
                }
                _ => Disturbance::None,
            },
        };
        let preemption = match disturbance {
            Disturbance::None if memory == Memory::Strong && draw.percent(10) && !plain_points => None,
            _ => Some(draw.of(&[0, 5, 20, 50, 100])),
        };
        let goes_through = matches!(disturbance, Disturbance::None | Disturbance::Pause { .. });
        let mut together = match () {
            () if needs(Need::Together) => 2 + draw.below(2) as u32,
            // As many threads at one time as other cases have.
            () if mutant.is_none() && goes_through && !is_long && !is_wide && draw.percent(30) => draw.of(&[2, 2, 3]),
            () => 1,
        };
        if together > launches && Plan::new(&request).is_ok_and(|plan| plan.steps.len() == 1) {
            launches = together;
        }
        let can_be_dealt = can_be_dealt(workload, &request) && !is_long && !is_wide;
        let ranks = match () {
            () if needs(Need::Ranks) && !can_be_dealt => return None,
            () if needs(Need::Ranks) => 2 + draw.below(3) as u32,
            () if can_be_dealt && mutant.is_none() && goes_through && draw.percent(40) => 2 + draw.below(3) as u32,
            () => 1,
        };
        if ranks > 1 {
            // One launch ahead of the other ranks, and two.
            launches = if needs(Need::Ranks) { 3 } else { 1 + draw.below(3) as u32 };
            if needs(Need::Wrap) || draw.percent(50) {
                completed_epochs = abi::LOOKBACK_MAXIMUM_EPOCH - 1 - draw.below(launches.into()) as u32;
            }
            // A block of any rank, which is then behind, soon or when it has published its last tile.
            let (block, most_points) = (draw.below(u64::from(ranks) * 6), 2 << draw.below(12));
            let after_points = draw.below(most_points);
            disturbance = match draw.percent(50) {
                true => Disturbance::Pause { block, after_points, switches: 1 + draw.below(30_000) },
                false => Disturbance::None,
            };
            (together, request.in_place) = (1, false);
            resident_blocks = resident_blocks.min(2);
        }
        let counted_in = workload.counted_in(n).filter(|_| ranks == 1 && !is_long);
        let count = match counted_in {
            None if needs(Need::Counted) => return None,
            Some(counted_in) if needs(Need::Counted) || mutant.is_none() && draw.percent(COUNTED_PERCENT) => {
                Some(DeviceCount::draw(draw, counted_in, tile))
            }
            _ => None,
        };
        let case = Self {
            mutant,
            memory,
            seed,
            workload,
            request,
            resident_blocks,
            block_order,
            preemption,
            plain_points,
            launches,
            together,
            ranks,
            count,
            completed_epochs,
            workspace,
            disturbance,
        };
        case.can_end().then_some(case)
    }

    /// Whether the launch is possible, and the kernels as they are end: who has a static tile id waits for blocks that are
    /// not resident for ever.
    pub(super) fn can_end(&self) -> bool {
        let has_tickets = self.request.config.tile_order == TileOrder::Ticket;
        let is_resident = |step: &Step| step.grid_blocks <= u64::from(self.resident_blocks);
        Plan::new(&self.planned()).is_ok_and(|plan| has_tickets || plan.steps.iter().all(is_resident))
    }

    /// The arrays of a launch of `n` elements, where the device alone knows how many these are. None has room for more than the first
    /// one, for which there is a workspace.
    pub(super) fn counted(&self, workload: Workload, n: u64) -> Option<CountedArrays> {
        let count = self.count?;
        let first = count.arrays(self.workload, self.request.n)?;
        let without_room = DeviceCount { spare: 0, ..count };
        count.arrays(workload, n).filter(|arrays| arrays.n <= first.n).or_else(|| without_room.arrays(workload, n))
    }

    /// What the host plans for, which may be more than there is.
    pub(super) fn planned(&self) -> ScanRequest {
        match self.counted(self.workload, self.request.n) {
            None => self.request,
            Some(CountedArrays { workload, n, .. }) => ScanRequest { problem: workload.problem(n), n, ..self.request },
        }
    }

    /// Whether it could be read from its text: its problem is one of so many elements, and its launch possible and ending.
    pub(super) fn is_possible(&self) -> bool {
        self.check().is_ok() && self.can_end()
    }

    /// Tiles of the first launch, had the strategy any.
    pub fn tiles(&self) -> u64 {
        self.request.n.div_ceil(self.request.config.tile_elements()).max(1)
    }

    /// The same scan of so many elements, or as many as its rows and columns need.
    pub(super) fn sized(&self, n: u64) -> (Workload, ScanRequest) {
        let (workload, n) = self.workload.resized(self.request.n, n);
        (workload, ScanRequest { problem: workload.problem(n), n, ..self.request })
    }

    /// Changes the number of elements.
    pub(super) fn resize(&mut self, n: u64) {
        (self.workload, self.request) = self.sized(n);
    }

    /// Changes what is scanned, of so many elements.
    pub(super) fn reshape(&mut self, (workload, n): (Workload, u64)) {
        self.workload = workload;
        (self.request.problem, self.request.n) = (workload.problem(n), n);
    }

    /// Tiles of a launch of `n` elements; 0 in strategies without tiles.
    pub(super) fn tiles_of(&self, n: u64) -> u64 {
        let strategy = self.request.strategy;
        let (_, request) = self.sized(n);
        match () {
            () if !strategy.has_tiles() || strategy.row().shape.blocks == Blocks::Single => 0,
            // Columns are cut otherwise.
            () if request.problem.axis().is_some() => {
                Plan::new(&request).map_or(0, |plan| plan.steps.iter().map(|step| step.tiles).sum())
            }
            () => n.div_ceil(request.config.tile_elements()),
        }
    }

    /// Elements of a launch behind the first: most often of at least 8 tiles too.
    pub(super) fn later_size(&self, draw: &mut Draw) -> u64 {
        let n = self.request.n;
        let fewest = (MINIMUM_TILES - 1) * self.request.config.tile_elements();
        let below = if self.mutant.is_none() && draw.percent(75) { fewest.min(n - 1) } else { 0 };
        below + 1 + draw.below(n - below)
    }

    /// The pause of the first launch, if there is one.
    pub(super) fn pause(&self) -> Option<Pause> {
        match self.disturbance {
            Disturbance::Pause { block, after_points, switches } => Some(Pause { block, after_points, switches }),
            _ => None,
        }
    }
}

/// Whether its tiles may be dealt to ranks: one sequence of a problem that is given arrays, by blocks that stay.
fn can_be_dealt(workload: Workload, request: &ScanRequest) -> bool {
    workload.kind() == ProblemKind::Reproducible && request.strategy.row().shape.kernel_of_deals.is_some()
}

/// Whether neighbours in memory belong to different scans.
fn is_of_columns(kind: ProblemKind) -> bool {
    kind.needs_shape() && kind.line_elements(Shape { rows: 1, columns: 2 }) == Some(1)
}

/// Instances that are compiled with mutants, and all that are compiled but sums of floats, which have no exact reference.
fn instances() -> (Vec<Instance>, Vec<Instance>) {
    let has_mutants = |instance: &Instance| OPERATORS_WITH_MUTANTS.contains(&(instance.element(), instance.operator()));
    let exact = || Instance::all().filter(|instance| instance.is_built_in() && !instance.is_rounded());
    (exact().filter(has_mutants).collect(), exact().collect())
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Words::of_scan(',', self.mutant, self.workload, &self.request, "type");
        words.add("n", self.request.n);
        words.add_workload(self.workload, self.request.n);
        words
            .add("order", self.request.config.tile_order)
            .add("memory", self.memory)
            .add("seed", self.seed)
            .add("resident", self.resident_blocks)
            .add("blocks", self.block_order)
            .add("preemption", self.preemption.map_or("fair".to_owned(), |percent| percent.to_string()))
            .add("plain-points", self.plain_points)
            .add("launches", self.launches)
            .add("epochs", self.completed_epochs)
            .add("workspace", self.workspace);
        if self.together > 1 {
            words.add("together", self.together);
        }
        if self.ranks > 1 {
            words.add("ranks", self.ranks);
        }
        if let Some(DeviceCount { spare, excess }) = self.count {
            words.add("count", format_args!("{spare}:{excess}"));
        }
        let disturbance = match self.disturbance {
            Disturbance::None => return formatter.write_str(&words.text),
            Disturbance::Pause { block, after_points, switches } => format!("{block}:{after_points}:{switches}"),
            Disturbance::Kill { block, after_points } => format!("{block}:{after_points}"),
            Disturbance::Abort { after_points: point } | Disturbance::Overlap { after_accesses: point } => {
                point.to_string()
            }
        };
        formatter.write_str(&words.add(self.disturbance.name(), disturbance).text)
    }
}

impl FromStr for Case {
    type Err = CaseError;

    fn from_str(text: &str) -> Result<Self, CaseError> {
        let mut fields = Fields::new(text.trim().split(','))?;
        let n = fields.value("n")?;
        let workload = fields.workload("type", n)?;
        let (mutant, mut request) = fields.scan(workload, n)?;
        request.config.tile_order = fields.value("order")?;
        let mut disturbance = Disturbance::None;
        if let Some([block, after_points, switches]) = fields.numbers("pause", ':')? {
            disturbance = Disturbance::Pause { block, after_points, switches };
        }
        if let Some([block, after_points]) = fields.numbers("kill", ':')? {
            disturbance = Disturbance::Kill { block, after_points };
        }
        if let Some([after_points]) = fields.numbers("abort", ':')? {
            disturbance = Disturbance::Abort { after_points };
        }
        if let Some([after_accesses]) = fields.numbers("overlap", ':')? {
            disturbance = Disturbance::Overlap { after_accesses };
        }
        let case = Self {
            mutant,
            memory: fields.value("memory")?,
            seed: fields.value("seed")?,
            workload,
            request,
            resident_blocks: fields.value("resident")?,
            block_order: fields.value("blocks")?,
            preemption: fields.unless("preemption", "fair")?,
            plain_points: fields.value("plain-points")?,
            launches: fields.value("launches")?,
            together: fields.numbers("together", ':')?.map_or(1, |[together]| together),
            ranks: fields.numbers("ranks", ':')?.map_or(1, |[ranks]| ranks),
            count: fields.numbers("count", ':')?.map(|[spare, excess]| DeviceCount { spare, excess }),
            completed_epochs: fields.value("epochs")?,
            workspace: fields.value("workspace")?,
            disturbance,
        };
        fields.end()?;
        case.check()?;
        Ok(case)
    }
}

impl Case {
    fn check(&self) -> Result<(), CaseError> {
        let fault = |key, value: &dyn fmt::Display, fault: &str| Err(CaseError::part(key, value, fault));
        if self.request.n == 0 {
            return fault("n", &0, "there is nothing to run");
        }
        if self.request.n > 1 << 24 {
            return fault("n", &self.request.n, "at most 2^24 elements: every thread is a coroutine");
        }
        if let Some(DeviceCount { spare, excess }) = self.count {
            let text = format!("{spare}:{excess}");
            if spare > 1 << 24 || excess > 1 << 33 {
                return fault(
                    "count",
                    &text,
                    "room for at most 2^24 elements more, and at most 2^33 more that are counted",
                );
            }
            if self.ranks > 1 || self.workload.counted_in(self.request.n).is_none() {
                let why = "the device is told no count where one array of numbers or segments by offsets are scanned, a matrix of one \
                           column or several matrices, or tiles are dealt to ranks";
                return fault("count", &text, why);
            }
        }
        if !(1..=1000).contains(&self.launches) {
            return fault("launches", &self.launches, "1 to 1000");
        }
        if !(1..=MOST_TOGETHER).contains(&self.together) {
            return fault("together", &self.together, "1 to 16 launches of kernels at one time");
        }
        if self.together > 1 && self.planned().n * u64::from(self.launches) > 1 << 24 {
            let why = "launches of at most 2^24 elements in all: all arrays are there at one time";
            return fault("together", &self.together, why);
        }
        if self.together > 1 && !matches!(self.disturbance, Disturbance::None | Disturbance::Pause { .. }) {
            let why = "a launch that is cut short, or another one in its middle, comes one behind the end of the other";
            return fault("together", &self.together, why);
        }
        if !(1..=MOST_RANKS).contains(&self.ranks) {
            return fault("ranks", &self.ranks, "1 to 8 ranks that tiles are dealt to");
        }
        let is_cut = !matches!(self.disturbance, Disturbance::None | Disturbance::Pause { .. });
        let is_alone = self.together == 1 && !is_cut && !self.request.in_place;
        if self.ranks > 1 && !(can_be_dealt(self.workload, &self.request) && is_alone) {
            let why = "look-ahead over the problem 'reproducible' alone is dealt to ranks, all of it and not in place";
            return fault("ranks", &self.ranks, why);
        }
        if !(1..=4096).contains(&self.resident_blocks) {
            return fault("resident", &self.resident_blocks, "1 to 4096");
        }
        if let Some(percent) = self.preemption.filter(|&percent| percent > 100) {
            return fault("preemption", &percent, "fair, or 0 to 100 percent");
        }
        check(self.workload, &self.request, self.completed_epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Defined;
    use crate::strategy::{Strategy, StrategyRow};
    use std::collections::BTreeSet;

    #[test]
    fn a_case_comes_back_from_its_text() {
        let mutants = Mutant::all().expect("readable").iter().map(Some).chain([None]);
        for mutant in mutants {
            for seed in 0..40 {
                for memory in [Memory::Strong, Memory::Weak] {
                    let case = Case::draw(mutant, memory, seed);
                    assert_eq!(case.to_string().parse::<Case>().as_ref(), Ok(&case));
                    assert_eq!(Case::draw(mutant, memory, seed), case);
                }
            }
        }
    }

    #[test]
    fn a_fault_that_names_problems_is_drawn_of_those() {
        let mut named = 0;
        for mutant in Mutant::all().expect("readable").iter().filter(|mutant| !mutant.when.problems.is_empty()) {
            for name in mutant.when.problems.iter().filter(|&name| name != "all") {
                let kind: ProblemKind = name.parse().unwrap_or_else(|error| panic!("{mutant}: {error}"));
                assert_ne!(kind, ProblemKind::Flat, "{mutant}: that is what is drawn where none is named");
            }
            let all = problems_of(PLAIN, Some(mutant));
            assert!(!all.is_empty() && !all.contains(&ProblemKind::Flat), "{mutant}");
            assert_eq!(problems_of(&all[..1], Some(mutant))[..], all[..1]);
            assert!(all.contains(&Case::draw(Some(mutant), Memory::Weak, 1).workload.kind()), "{mutant}");
            named += 1;
        }
        assert!(named > 100, "{named}");
        let of_plain = Mutant::named("relaxed_tag").expect("one of the kernels'");
        assert_eq!(problems_of(ProblemKind::ALL, Some(of_plain))[..], *ProblemKind::ALL);
    }

    #[test]
    fn a_case_of_each_problem_names_it_and_comes_back_from_its_text() {
        for kind in ProblemKind::ALL {
            let (mut strategies, mut few, mut segments) = (BTreeSet::new(), 0, BTreeSet::new());
            for seed in 0..400 {
                let case = Case::draw_of(&[*kind], None, Memory::Weak, seed);
                let text = case.to_string();
                assert_eq!(text.parse::<Case>().as_ref(), Ok(&case), "{text}");
                assert_eq!(case.workload.kind(), *kind);
                assert_eq!(text.contains(&format!(",problem={kind},")), *kind != ProblemKind::Flat, "{text}");
                assert_eq!(case.workload.misfit(case.request.n), None, "{text}");
                strategies.insert(case.request.strategy);
                few += u64::from(case.tiles() < 4);
                segments.extend(case.workload.segment_elements());
            }
            // Those that take arrays, or columns, or combine tiles one after the other.
            let is_asked = |row: &StrategyRow| match kind {
                ProblemKind::Reproducible => row.is_reproducible,
                ProblemKind::ReproducibleColumns => row.shape.scans_columns_in_order(),
                ProblemKind::StridedRows => row.shape.takes_strides(),
                &kind if !kind.is_scan() => {
                    let verb = workloads(kind)[0].defined().map(Defined::verb).expect("it is defined");
                    row.shape.does(verb)
                }
                &kind if is_of_columns(kind) => row.shape.kernel_of_columns.is_some(),
                _ => row.shape.takes_arrays(),
            };
            let all: Vec<_> = Strategy::ALL.iter().filter(|strategy| is_asked(strategy.row())).collect();
            assert!(all.iter().all(|strategy| strategies.contains(strategy)), "{kind}: {strategies:?}");
            assert!((10..200).contains(&few), "{kind}: {few}");
            assert_eq!(segments.len() > 20, kind.takes_shape() || kind.has_runs(), "{kind}");
        }
        let one = |seed| Case::draw_of(&[ProblemKind::Flat], None, Memory::Weak, seed);
        assert!((0..40).all(|seed| one(seed) == Case::draw(None, Memory::Weak, seed)));
    }

    /// A misaligned array begins a tile earlier: 82 blocks wait here for one that finds no room among 81.
    #[test]
    fn static_tile_ids_have_room_for_all_blocks() {
        let text = "mutant=none,strategy=lookback,type=u32,operator=min,mode=exclusive,layout=packed-64,pattern=shuffle,\
                    composition=reduce-then-scan,vt=8,threads=64,in-place=false,input-offset=12,output-offset=0,n=41471,\
                    order=static,memory=weak,seed=8304,resident=81,blocks=reverse,preemption=100,plain-points=false,\
                    launches=1,epochs=0,workspace=zeros";
        let case: Case = text.parse().expect("a case");
        assert!(!case.can_end());
        assert!(Case { resident_blocks: 82, ..case.clone() }.can_end());
        let mut with_tickets = case;
        with_tickets.request.config.tile_order = TileOrder::Ticket;
        assert!(with_tickets.can_end());
    }

    #[test]
    fn what_is_drawn_has_enough_tiles_and_warps() {
        let (mut tiny, mut wide) = (0, 0);
        for seed in 0..2000 {
            let case = Case::draw(None, Memory::Weak, seed);
            let ScanRequest { config, strategy, n, .. } = case.request;
            assert!(config.block_threads >= 64, "{case}");
            let is_tiny = n <= 48 && case.request.instance().element().bytes() <= 2;
            if config.block_threads > 256 {
                // As many threads at one time as other cases have.
                assert!((2..=4).contains(&case.tiles()) && case.resident_blocks <= 2, "{case}");
                wide += 1;
            } else if is_tiny && matches!(strategy.row().shape.blocks, Blocks::Single | Blocks::Cluster) {
                tiny += 1;
            } else {
                assert!(case.tiles() >= 8, "{case}");
            }
        }
        assert!((20..200).contains(&wide) && (5..100).contains(&tiny), "{wide} wide, {tiny} tiny");
    }

    /// What a strategy can meet beyond the plain drawing is drawn for it, of the kernels as they are and soon.
    #[test]
    fn what_lies_beyond_the_usual_sizes_is_drawn_for_every_strategy_that_has_it() {
        let drawn: Vec<_> = (0..40_000).map(|seed| Case::draw(None, Memory::Strong, seed)).collect();
        for &strategy in Strategy::ALL.iter().filter(|strategy| strategy.has_tiles()) {
            let has = |what: &str, is: &dyn Fn(&Case) -> bool| {
                let found = drawn.iter().any(|case| case.request.strategy == strategy && is(case));
                assert!(found, "{strategy}: {what}");
            };
            let warps = |case: &Case| case.request.config.block_threads / abi::LOOKBACK_WARP_LANES;
            has("9 to 16 warps", &|case| (9..=16).contains(&warps(case)));
            has("more than 16 warps", &|case| warps(case) > 16);
            has("an odd number of more than 8 warps", &|case| warps(case) > 8 && warps(case) % 2 == 1);
            let row = strategy.row();
            if row.stress.windows.percent > 0 {
                has("more windows", &|case| case.tiles() >= row.stress.windows.cpu_tiles_of_more.0);
            }
            if matches!(row.shape.blocks, Blocks::Single | Blocks::Cluster) {
                let lead = |case: &Case| u64::from(case.request.input_offset % abi::LOOKBACK_VECTOR_BYTES);
                let bytes = |case: &Case| case.request.instance().element().bytes() as u64;
                has("both ends in one vector", &|case| {
                    bytes(case) <= 2 && lead(case) > 0 && lead(case) + case.request.n * bytes(case) < 16
                });
            }
        }
    }

    #[test]
    fn a_launch_counts_for_every_strategy_with_tiles() {
        for seed in 0..500 {
            let case = Case::draw(None, Memory::Strong, seed);
            let tiles = case.tiles_of(case.request.n);
            let strategy = case.request.strategy;
            let has_many = strategy.has_tiles() && strategy.row().shape.blocks != Blocks::Single;
            let wants = if has_many { case.tiles() } else { 0 };
            assert_eq!(tiles, wants, "{case}");
        }
    }

    #[test]
    fn texts_that_are_no_case_say_what_is_wrong() {
        let good = Case::draw(None, Memory::Strong, 1).to_string();
        let fault = |text: &str| text.parse::<Case>().expect_err(text).to_string();
        assert!(fault("").contains("key=value"));
        assert!(fault("seed=1").contains("a case needs n="));
        assert!(fault(&good.replace("seed=1", "seed=x")).contains("seed=x"));
        assert!(fault(&format!("{good},colour=red")).contains("colour=red"));
        assert!(fault(&good.replace("mutant=none", "mutant=none_such")).contains("none_such"));
        let n = good.split(',').find(|word| word.starts_with("n=")).expect("a size");
        for launches in [1, 2] {
            let nothing = good.replace(n, "n=0").replace("launches=1", &format!("launches={launches}"));
            assert!(fault(&nothing).contains("nothing to run"), "{nothing}");
        }
        let many = good.replace(n, "n=16777216").replace("launches=1", "launches=2");
        assert!(fault(&format!("{many},together=2")).contains("2^24 elements in all"), "{many}");
        let rows = "mutant=none,strategy=lookback,type=u32,operator=sum,mode=inclusive,layout=none,pattern=shuffle,\
                    composition=reduce-then-scan,vt=1,threads=64,in-place=false,input-offset=0,output-offset=0,n=200,\
                    problem=rows,shape=4x50,order=ticket,memory=weak,seed=1,resident=1,blocks=in-order,preemption=20,\
                    plain-points=false,launches=1,epochs=0,workspace=zeros";
        rows.parse::<Case>().expect("a case");
        format!("{rows},count=50:7").parse::<Case>().expect("a case");
        for (from, to, says) in [
            ("n=200", "n=201", "no such matrix"),
            ("problem=rows,", "", "no such segments"),
            ("shape=4x50", "run-length=50", "no such segments"),
            (",shape=4x50", "", "say how many"),
            ("problem=rows,shape=4x50", "problem=by-key", "say how many"),
            ("=lookback", "=naive", "naive"),
            ("in-place=false", "in-place=true,input-type=u8", "u8"),
            ("problem=rows", "problem=diagonals", "by-key"),
            ("epochs=0", "epochs=0,count=7", "count=7"),
            ("epochs=0", "epochs=0,count=99999999:0", "2^24 elements more"),
            ("epochs=0", "epochs=0,count=0:99999999999", "2^33 more"),
            ("launches=1,epochs=0", "launches=1000,epochs=0,together=2,count=9999999:0", "2^24 elements in all"),
            ("problem=rows,shape=4x50", "problem=offsets,run-length=50,count=50:7", "told no count"),
            (",problem=rows,shape=4x50", ",count=50:7", "told no count"),
        ] {
            assert!(fault(&rows.replace(from, to)).contains(says), "{to}: {}", fault(&rows.replace(from, to)));
        }
    }
}
