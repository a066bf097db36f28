//! Drawing of [`Case`]s: runs that could show a fault, or any of the kernels as they are.

use super::case::{Case, Disturbance, MINIMUM_TILES, Memory, can_be_dealt, is_of_columns};
use super::counted::DeviceCount;
use super::draw::Draw;
use super::scan_case::{
    PLAIN, Usual, WIDE_BLOCKS, draw_offset, draw_scan, in_drawn_segments, in_lines_of, in_segments, problems_of,
    strategies, takes, workloads,
};
use super::workspace::WorkspaceStart;
use crate::abi;
use crate::cpu::BlockOrder;
use crate::element::{Instance, Operator};
use crate::kernels::mutant::{Kind, Mutant, Need, OPERATORS_WITH_MUTANTS, When};
use crate::lab::workload::{ProblemKind, Shape, Workload};
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{Blocks, Limit, Mode, Strategy, TileOrder, Windows};

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
        let aim = Aim::draw(problems, mutant, memory, draw)?;
        let array = aim.draw_array(draw)?;
        let mut case = aim.draw_launches(array, seed, draw);
        aim.deal(&mut case, draw)?;
        aim.count(&mut case, array.tile, draw)?;
        case.can_end().then_some(case)
    }
}

/// What a run is to show: what a fault needs, and how far it goes from the usual sizes.
struct Aim {
    mutant: Option<&'static Mutant>,
    when: When,
    memory: Memory,
    kind: ProblemKind,
    strategy: Strategy,
    /// Workloads of the problem; none of the plain scan, which is drawn of far more types.
    of_problem: Vec<Workload>,
    /// Look-backs of several windows.
    is_long: bool,
    /// And of one reading more.
    is_longer: bool,
    /// Few tiles, and few blocks at one time, whose threads are then as many as in other cases.
    is_wide: bool,
    /// An array that may be about as long as a vector.
    is_tiny: bool,
    has_few_tiles: bool,
}

/// What is scanned, and the tiles that it was drawn for.
#[derive(Clone, Copy)]
struct Array {
    workload: Workload,
    request: ScanRequest,
    /// Elements of a tile.
    tile: u64,
    tiles: u64,
}

impl Aim {
    fn draw(
        problems: &[ProblemKind],
        mutant: Option<&'static Mutant>,
        memory: Memory,
        draw: &mut Draw,
    ) -> Option<Self> {
        let when = mutant.map(|mutant| mutant.when.clone()).unwrap_or_default();
        let kind = match *problems_of(problems, mutant) {
            [] => return None,
            [kind] => kind,
            ref several => draw.of(several),
        };
        let is_flat = kind == ProblemKind::Flat;
        let of_problem = if is_flat { Vec::new() } else { workloads(kind) };
        let takes_problem = |strategy| of_problem.first().is_none_or(|&workload| takes(strategy, workload));
        let strategy = draw.possible(&when.strategies, &strategies(|stress| stress.cpu_share), takes_problem)?;
        let row = strategy.row();
        let is_long = when.needs(Need::Windows) || draw.percent(u64::from(row.stress.windows.percent));
        let is_longer = is_long && draw.percent(25);
        let is_wide = !is_long && strategy.has_blocks() && (when.needs(Need::WideBlocks) || draw.percent(WIDE_PERCENT));
        // Where blocks meet through no descriptors.
        let may_be_tiny = is_flat && matches!(row.shape.blocks, Blocks::Single | Blocks::Cluster);
        let is_tiny = may_be_tiny && !is_long && !is_wide && draw.percent(30);
        let has_few_tiles = !is_flat && !is_long && !is_wide && draw.percent(FEW_TILES_PERCENT);
        Some(Self {
            mutant,
            when,
            memory,
            kind,
            strategy,
            of_problem,
            is_long,
            is_longer,
            is_wide,
            is_tiny,
            has_few_tiles,
        })
    }

    fn needs(&self, need: Need) -> bool {
        self.when.needs(need)
    }

    fn blocks(&self) -> Blocks {
        self.strategy.row().shape.blocks
    }

    fn windows(&self) -> &'static Windows {
        &self.strategy.row().stress.windows
    }

    /// Whether the first block pauses, so that the others read more than once.
    fn waits(&self) -> bool {
        self.is_long && self.windows().needs_pause
    }

    /// Work that grows with the square of the elements; and where segments are told by offsets, blocks that mark them.
    fn is_small(&self) -> bool {
        let is_flat = self.kind == ProblemKind::Flat;
        self.strategy.row().limit == Some(Limit::QuadraticWork) || self.is_long && (!self.waits() || !is_flat)
    }

    fn draw_array(&self, draw: &mut Draw) -> Option<Array> {
        let workloads = self.workloads(draw);
        let (workload, mut request) = self.draw_request(&workloads, draw)?;
        let tile = request.config.tile_elements();
        let tiles = self.draw_tiles(draw);
        let n = self.draw_elements(workload, tile, tiles, draw);
        let (workload, n) = self.draw_lines(workload, n, tile, tiles, draw);
        (request.problem, request.n) = (workload.problem(n), n);
        self.place(workload, &mut request, draw)?;
        Some(Array { workload, request, tile, tiles })
    }

    /// What may be scanned.
    fn workloads(&self, draw: &mut Draw) -> Vec<Workload> {
        let (own, all) = instances();
        let mut instances = match () {
            () if !self.of_problem.is_empty() => Vec::new(),
            () if self.mutant.is_some() || draw.percent(60) => own,
            () => all,
        };
        if self.is_tiny {
            // Only values of one or two bytes have vectors that an array can begin and end in, and far from both ends;
            // a sum shows each of them that is lost, where a maximum hides most.
            let sums_only = draw.percent(70);
            let is_wanted = |instance: &Instance| !sums_only || instance.operator() == Operator::Sum;
            instances.retain(|instance| instance.element().bytes() <= 2 && is_wanted(instance));
        }
        self.of_problem.iter().copied().chain(instances.into_iter().map(Workload::from)).collect()
    }

    /// One of them in a configuration.
    fn draw_request(&self, workloads: &[Workload], draw: &mut Draw) -> Option<(Workload, ScanRequest)> {
        let usual = Usual {
            workloads,
            modes: Mode::ALL,
            shuffles: 60,
            vts: match () {
                () if self.is_small() => &[1],
                () if self.is_tiny => &[8, 16, 16, 32],
                () if self.is_wide && self.needs(Need::Misaligned) => &[2, 4],
                () if self.is_wide => &[1, 2, 4],
                () if self.needs(Need::Misaligned) => &[2, 4, 8],
                // Several rows an exchange, and more vectors a row than one.
                () if draw.percent(8) => &[16, 32, 64],
                // Of 6 and 12 wide elements are in runs.
                () => &[1, 1, 2, 2, 3, 4, 4, 6, 8, 12],
            },
            block_threads: match () {
                () if self.is_wide => WIDE_BLOCKS,
                () if self.is_small() || self.waits() || self.is_tiny => &[64],
                () => &[64, 64, 64, 96, 128],
            },
        };
        let (workload, mut request) = draw_scan(draw, self.strategy, &self.when, &usual)?;
        let is_single_pass = self.strategy.is_single_pass();
        request.config.descriptor = request.config.descriptor.filter(|_| is_single_pass);
        if self.is_longer && self.waits() && is_single_pass && self.blocks() == Blocks::PerTile {
            // All blocks are resident, so that this is right too, and the block that pauses has the first tile: none of
            // the others finds a prefix within two windows.
            request.config.tile_order = TileOrder::Static;
        }
        Some((workload, request))
    }

    fn draw_tiles(&self, draw: &mut Draw) -> u64 {
        let windows = self.windows();
        match () {
            () if self.is_longer => windows.cpu_tiles_of_more.0 + draw.below(windows.cpu_tiles_of_more.1),
            () if self.is_long => windows.cpu_tiles.0 + draw.below(windows.cpu_tiles.1),
            () if self.is_wide => 2 + draw.below(2),
            () if self.has_few_tiles => 1 + draw.below(3),
            () if self.mutant.is_none() && draw.percent(6) => 13 + draw.below(24),
            () => MINIMUM_TILES + draw.below(5),
        }
    }

    /// Round a tile boundary, or anywhere in the last tile.
    fn draw_elements(&self, workload: Workload, tile: u64, tiles: u64, draw: &mut Draw) -> u64 {
        let vector = u64::from(abi::LOOKBACK_VECTOR_BYTES) / workload.element().bytes() as u64;
        match draw.below(4) {
            _ if self.is_tiny => 1 + draw.below(3 * vector),
            0 if !self.needs(Need::Partial) => tiles * tile,
            1 => tiles * tile - 1,
            2 => (tiles - 1) * tile + 1,
            _ => (tiles - 1) * tile + 1 + draw.below(tile - 1),
        }
    }

    /// The workload in rows, columns or segments, and its elements: about as many as were asked for.
    fn draw_lines(&self, workload: Workload, n: u64, tile: u64, tiles: u64, draw: &mut Draw) -> (Workload, u64) {
        let of_columns = is_of_columns(self.kind);
        // Of each matrix, so that all together have about as many as one would.
        let rows = n.div_ceil(workload.matrices());
        match () {
            // Look-backs of several windows down more columns than a warp has lanes.
            () if self.waits() && of_columns && draw.percent(50) => {
                in_lines_of(workload, Shape { rows: tiles, columns: WIDE_COLUMNS / workload.matrices() })
            }
            // Rows that are elements, if they begin where vectors do.
            () if of_columns && self.needs(Need::Narrow) => in_lines_of(workload, Shape { rows, columns: 2 }),
            () if of_columns && draw.percent(20) => in_lines_of(workload, Shape { rows, columns: draw.of(&[2, 2, 4]) }),
            () if self.needs(Need::ShortSegments) => (in_segments(workload, 1), n),
            () => in_drawn_segments(draw, workload, n, tile),
        }
    }

    /// Where the arrays begin in memory, and whether they are one.
    fn place(&self, workload: Workload, request: &mut ScanRequest, draw: &mut Draw) -> Option<()> {
        let misaligned = match () {
            () if self.needs(Need::Misaligned) => 100,
            () if self.needs(Need::Narrow) => 0,
            () => 25 + 50 * u64::from(self.is_tiny),
        };
        let mut offset = |element| match draw.percent(misaligned) {
            true => draw_offset(draw, self.strategy, element),
            false => 0,
        };
        let (input_offset, output_offset) = (offset(workload.input()), offset(workload.element()));
        let is_wanted = self.needs(Need::InPlace) || draw.percent(30);
        if self.needs(Need::InPlace) && !workload.may_be_in_place() {
            return None;
        }
        request.in_place = is_wanted && workload.may_be_in_place();
        request.input_offset = input_offset;
        request.output_offset = if request.in_place { input_offset } else { output_offset };
        Some(())
    }

    /// One rank's launches over the array, with no count that the device alone knows.
    fn draw_launches(&self, array: Array, seed: u64, draw: &mut Draw) -> Case {
        let Array { workload, request, tiles, .. } = array;
        let of_kernels = self.mutant.is_none();
        let kind = self.mutant.map(|mutant| mutant.kind);
        let plain_points = kind == Some(Kind::Barrier) || self.needs(Need::InPlace) || (of_kernels && draw.percent(10));
        let mut launches = match () {
            () if self.needs(Need::Wrap) => 2 + draw.below(2) as u32,
            () if [Need::Relaunch, Need::Frozen, Need::Abort].iter().any(|&need| self.needs(need)) => 2,
            () => draw.of(&[1, 1, 2]),
        };
        let wraps = self.needs(Need::Wrap) || (of_kernels && launches > 1 && draw.percent(20));
        let completed_epochs = match () {
            () if wraps => abi::LOOKBACK_MAXIMUM_EPOCH - 1,
            () if self.needs(Need::Frozen) => 0,
            () => draw.of(&[0, 0, 1, 5, 1 << 20]),
        };
        let workspace = match self.needs(Need::Wrap) {
            true => WorkspaceStart::Earlier,
            false => draw.of(WorkspaceStart::ALL),
        };
        let reverse = self.needs(Need::Reverse);
        let resident_blocks = match () {
            // A misaligned array may begin one tile earlier.
            () if self.waits() => tiles as u32 + 1,
            () if self.is_wide => draw.of(&[1, 2]),
            () if reverse => draw.of(&[1, 2, 3]),
            () => draw.of(&[1, 2, 3, 4, 6, 8]),
        };
        let block_order = if reverse { BlockOrder::Reverse } else { draw.of(BlockOrder::ALL) };
        let disturbance = self.draw_disturbance(tiles, draw);
        let preemption = match disturbance {
            Disturbance::None if self.memory == Memory::Strong && draw.percent(10) && !plain_points => None,
            _ => Some(draw.of(&[0, 5, 20, 50, 100])),
        };
        let together = match () {
            () if self.needs(Need::Together) => 2 + draw.below(2) as u32,
            // As many threads at one time as other cases have.
            () if of_kernels && disturbance.goes_through() && !self.is_long && !self.is_wide && draw.percent(30) => {
                draw.of(&[2, 2, 3])
            }
            () => 1,
        };
        if together > launches && Plan::new(&request).is_ok_and(|plan| plan.steps.len() == 1) {
            launches = together;
        }
        Case {
            mutant: self.mutant,
            memory: self.memory,
            seed,
            workload,
            request,
            resident_blocks,
            block_order,
            preemption,
            plain_points,
            launches,
            together,
            ranks: 1,
            count: None,
            completed_epochs,
            workspace,
            disturbance,
        }
    }

    fn draw_disturbance(&self, tiles: u64, draw: &mut Draw) -> Disturbance {
        let blocks = self.blocks();
        let block = draw.below(match blocks {
            Blocks::PerTile | Blocks::Single => tiles,
            Blocks::Persistent => 6,
            Blocks::Cluster => 8,
        });
        let after_points = draw.below(40);
        let pause = Disturbance::Pause { block, after_points, switches: 1 + draw.below(3000) };
        match () {
            // The blocks of a cluster wait for each other too.
            () if blocks == Blocks::Cluster && draw.percent(30) => pause,
            () if !self.strategy.is_single_pass() => Disturbance::None,
            () if self.needs(Need::Abort) => Disturbance::Abort { after_points: 5 + draw.below(200) },
            () if self.needs(Need::Overlap) => Disturbance::Overlap { after_accesses: draw.below(40) },
            // A block that takes one tile after the other has taken none by then: it finds many behind it at once.
            () if self.is_longer && blocks == Blocks::Persistent => {
                Disturbance::Pause { block: 0, after_points: 0, switches: PAUSE_OF_A_TILE * (200 + draw.below(tiles)) }
            }
            // Without it whoever comes late may find the one prefix at the far end of its first window.
            () if self.waits() && draw.percent(30) => Disturbance::None,
            () if self.waits() => Disturbance::Pause { block: 0, after_points: 1, switches: 600 * tiles },
            () if self.mutant.is_some_and(|mutant| mutant.kind == Kind::Protocol) => Disturbance::None,
            () => match draw.below(20) {
                0..=4 => pause,
                5 if self.mutant.is_none() => Disturbance::Kill { block, after_points },
                6 if self.mutant.is_none() => Disturbance::Abort { after_points: draw.below(400) },
                7 if self.mutant.is_none() && self.memory == Memory::Strong => {
                    Disturbance::Overlap { after_accesses: draw.below(60) }
                }
                _ => Disturbance::None,
            },
        }
    }

    /// Deals the tiles to ranks, or leaves them to one.
    fn deal(&self, case: &mut Case, draw: &mut Draw) -> Option<()> {
        let is_possible = can_be_dealt(case.workload, &case.request) && !self.is_long && !self.is_wide;
        let is_wanted = match self.needs(Need::Ranks) {
            true if !is_possible => return None,
            true => true,
            false => is_possible && self.mutant.is_none() && case.disturbance.goes_through() && draw.percent(40),
        };
        if !is_wanted {
            return Some(());
        }
        case.ranks = 2 + draw.below(3) as u32;
        // One launch ahead of the other ranks, and two.
        case.launches = if self.needs(Need::Ranks) { 3 } else { 1 + draw.below(3) as u32 };
        if self.needs(Need::Wrap) || draw.percent(50) {
            case.completed_epochs = abi::LOOKBACK_MAXIMUM_EPOCH - 1 - draw.below(case.launches.into()) as u32;
        }
        // A block of any rank, which is then behind, soon or when it has published its last tile.
        let (block, most_points) = (draw.below(u64::from(case.ranks) * 6), 2 << draw.below(12));
        let after_points = draw.below(most_points);
        case.disturbance = match draw.percent(50) {
            true => Disturbance::Pause { block, after_points, switches: 1 + draw.below(30_000) },
            false => Disturbance::None,
        };
        (case.together, case.request.in_place) = (1, false);
        case.resident_blocks = case.resident_blocks.min(2);
        Some(())
    }

    /// Leaves it to the device, or not, to know how many elements there are.
    fn count(&self, case: &mut Case, tile: u64, draw: &mut Draw) -> Option<()> {
        let is_possible = case.ranks == 1 && !self.is_long;
        let counted_in = case.workload.counted_in(case.request.n).filter(|_| is_possible);
        let is_needed = self.needs(Need::Counted);
        case.count = match counted_in {
            None if is_needed => return None,
            Some(counted_in) if is_needed || self.mutant.is_none() && draw.percent(COUNTED_PERCENT) => {
                Some(DeviceCount::draw(draw, counted_in, tile))
            }
            _ => None,
        };
        Some(())
    }
}

/// Instances that are compiled with mutants, and all that are compiled but sums of floats, which have no exact reference.
fn instances() -> (Vec<Instance>, Vec<Instance>) {
    let has_mutants = |instance: &Instance| OPERATORS_WITH_MUTANTS.contains(&(instance.element(), instance.operator()));
    let exact = || Instance::all().filter(|instance| instance.is_built_in() && !instance.is_rounded());
    (exact().filter(has_mutants).collect(), exact().collect())
}
