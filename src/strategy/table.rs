//! The strategies, one row each: what is known of a strategy stands here, what it does in its kernel's file in
//! `cuda/scan`, and nothing of it anywhere else.

use super::look::{self, Look};
use super::planner::Planner;
use super::shape::{Blocks, HelperWarps, Shape, Tiling};
use super::{Composition, Kernel, ScanConfig, named, suggestion};
use crate::abi;
use crate::element::{Defined, Problem, Verb};

/// What is known of a strategy.
#[derive(Debug)]
pub struct StrategyRow {
    /// Launches of one scan, for tables.
    pub launches: &'static str,
    /// Elements read and written by one scan of n, for tables.
    pub element_moves: &'static str,
    /// One line for tables, with the source of the algorithm.
    pub summary: &'static str,
    /// How it runs.
    pub shape: Shape,
    /// Lays out the launches.
    pub(super) plan: fn(&mut Planner),
    /// The fault whose kernel is this one without the waiting for other tiles: it bounds what waiting costs. Its
    /// result is wrong. `None` where no tile waits for another.
    pub fault_without_waiting: Option<&'static str>,
    /// VT and threads a block to take where the user says nothing, by bytes of an element and of the array.
    pub(super) suggested: fn(u32, u64) -> (u32, u32),
    /// How sums of floats are rounded.
    pub rounding: Rounding,
    /// Whether every run combines the same partial results in the same order, whichever block is first: sums of floats
    /// are then the same to the bit.
    pub has_fixed_order: bool,
    /// Whether it can combine tiles one after the other, so that scans other than down columns are reproducible.
    pub is_reproducible: bool,
    /// What keeps it from large arrays.
    pub limit: Option<Limit>,
    /// Time by the time of a copy of as many elements on an H100, roughly, by the elements.
    pub time_by_copy: fn(f64) -> f64,
    /// How it is drawn.
    pub look: Look,
    /// What stress draws of it.
    pub stress: Stress,
    /// Whether the models of the protocol (PTX, loom) read its kernel.
    pub is_modelled: bool,
}

/// How sums of floats are rounded on the way from an input to an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// One addition after the other.
    Serial,
    /// Up a tree of the whole array and down again.
    Tree,
    /// Inside a tile, once a level of the spine.
    Spine,
    /// Inside a tile, and then once a tile.
    Chain,
}

/// What keeps a strategy from large arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Its work grows with the square of the elements.
    QuadraticWork,
    /// It uses one thread.
    OneThread,
}

/// What stress draws of a strategy.
#[derive(Debug, Clone, Copy)]
pub struct Stress {
    /// Cases on the CPU device, as a share of the sum over all strategies.
    pub cpu_share: usize,
    /// Cases on a GPU, likewise; 0 where a disturbance shows nothing.
    pub gpu_share: usize,
    /// Likewise where a fault says no strategy.
    pub gpu_share_of_faults: usize,
    /// Cases with more tiles than one reading of descriptors covers.
    pub windows: Windows,
    /// Whether a delay of one tile delays all the others.
    pub is_serial: bool,
}

/// Cases with more tiles than one reading of descriptors, or one round, covers.
#[derive(Debug, Clone, Copy)]
pub struct Windows {
    /// Tiles on the CPU device: from here on, and below so many more.
    pub cpu_tiles: (u64, u64),
    /// The same where one reading more is to be had: the third, or the second of a block that reads ahead of its tile.
    pub cpu_tiles_of_more: (u64, u64),
    /// Tiles on a GPU from here on.
    pub gpu_tiles: u64,
    /// Of a hundred cases on the CPU device so many, beside those that a fault asks for.
    pub percent: u32,
    /// Whether the blocks that wait have to be resident, the first one paused, for a second reading.
    pub needs_pause: bool,
}

/// A strategy over the whole array, whose threads keep to their own elements in each launch.
const UNTILED: StrategyRow = StrategyRow {
    launches: "1",
    element_moves: "2n",
    summary: "",
    shape: Shape::UNTILED,
    plan: Planner::one_launch,
    fault_without_waiting: None,
    // One value a thread is the textbook's; a few hide the latency of the memory.
    suggested: |_, _| (4, 256),
    rounding: Rounding::Tree,
    has_fixed_order: true,
    is_reproducible: false,
    limit: None,
    time_by_copy: |_| 1.3,
    look: Look { color: (0, 0, 0), dark_color: (0, 0, 0), marker: &[] },
    stress: Stress {
        cpu_share: 1,
        gpu_share: 0,
        gpu_share_of_faults: 0,
        windows: Windows {
            cpu_tiles: (36, 16),
            cpu_tiles_of_more: (68, 16),
            gpu_tiles: 70,
            percent: 0,
            needs_pause: true,
        },
        is_serial: false,
    },
    is_modelled: false,
};

/// Tiles, their totals, the prefixes of these: three launches or more.
const THREE_PHASE: StrategyRow = StrategyRow {
    suggested: suggestion::three_phase,
    rounding: Rounding::Spine,
    stress: Stress {
        // With more tiles than a tile has elements the spine has a spine.
        windows: Windows { percent: 3, needs_pause: false, ..UNTILED.stress.windows },
        ..UNTILED.stress
    },
    ..UNTILED
};

/// Tiles that meet inside one launch.
const ONE_LAUNCH: StrategyRow = StrategyRow { rounding: Rounding::Chain, ..UNTILED };

/// Declares [`Strategy`] and the table of its rows in one.
macro_rules! strategies {
    ($($(#[$meta:meta])* $variant:ident = $name:literal $row:tt)+) => {
        named! {
            /// A way to scan a whole device array.
            pub enum Strategy as "strategy" { $($(#[$meta])* $variant = $name,)+ }
        }
        static ROWS: &[StrategyRow] = &[$(StrategyRow $row),+];
    };
}

strategies! {
    /// One thread, from front to back.
    Sequential = "sequential" {
        summary: "one thread",
        shape: Shape {
            kernels: &[Kernel::Sequential],
            ..Shape::UNTILED
        },
        plan: Planner::sequential,
        suggested: |_, _| (16, 32),
        rounding: Rounding::Serial,
        limit: Some(Limit::OneThread),
        // A copy of one element takes 2.8 ps at full rate, one thread takes about 15 ns.
        time_by_copy: |_| 5e3,
        look: look::GREY,
        ..UNTILED
    }
    /// Every thread sums its own prefix: O(n²) work.
    Naive = "naive" {
        element_moves: "n(n+1)/2 + n",
        summary: "every thread sums its own prefix",
        shape: Shape {
            kernels: &[Kernel::Naive, Kernel::Copy],
            ..Shape::UNTILED
        },
        plan: Planner::naive,
        rounding: Rounding::Serial,
        limit: Some(Limit::QuadraticWork),
        // Half of n² reads from a cache that serves about 2.5 · 10^12 of them a second.
        time_by_copy: |n| (0.5 * n * 0.4e-3 / 2.8e-3).max(1.0),
        look: look::BROWN,
        ..UNTILED
    }
    /// Hillis & Steele (1986): ⌈log₂ n⌉ steps over the whole array.
    HillisSteele = "hillis-steele" {
        launches: "⌈log₂ n⌉ = L",
        element_moves: "3nL − (2^L − 1)",
        summary: "Hillis & Steele 1986",
        shape: Shape {
            kernels: &[Kernel::HillisSteeleStep, Kernel::Copy],
            works_in_output: true,
            ..Shape::UNTILED
        },
        plan: Planner::hillis_steele,
        time_by_copy: |n| 1.5 * n.log2().max(1.0),
        look: look::SKY,
        ..UNTILED
    }
    /// Blelloch (1990): an up-sweep and a down-sweep over a tree of the whole array.
    Blelloch = "blelloch" {
        launches: "about 2 log₂ n",
        element_moves: "about 12n, exclusive 9n",
        summary: "Blelloch 1990, any n",
        shape: Shape {
            kernels: &[Kernel::Copy, Kernel::BlellochUpsweep, Kernel::BlellochDownsweep, Kernel::BlellochFinish],
            works_in_output: true,
            ..Shape::UNTILED
        },
        plan: Planner::blelloch,
        time_by_copy: |_| 5.0,
        look: look::ORANGE,
        ..UNTILED
    }
    /// Tiles scan, their totals are scanned, the prefixes are added: 4n element-moves.
    ScanThenPropagate = "scan-then-propagate" {
        launches: "3, more for a spine of spines",
        element_moves: "4n",
        summary: "tiles scan, totals are scanned, prefixes are added",
        shape: Shape {
            kernels: &[Kernel::ScanTileTotals, Kernel::ScanTiles, Kernel::Propagate],
            works_in_output: true,
            ..Shape::TILED
        },
        plan: Planner::scan_then_propagate,
        time_by_copy: |_| 2.2,
        look: look::GREEN,
        stress: Stress { cpu_share: 4, gpu_share: 1, ..THREE_PHASE.stress },
        ..THREE_PHASE
    }
    /// Tiles reduce, their totals are scanned, tiles scan from their prefix: 3n element-moves.
    ReduceThenScan = "reduce-then-scan" {
        launches: "3, likewise",
        element_moves: "3n (2n if one tile holds all)",
        summary: "tiles reduce, totals are scanned, tiles scan from their prefix",
        shape: Shape {
            kernels: &[Kernel::ReduceTiles, Kernel::ScanTiles],
            ..Shape::TILED
        },
        plan: Planner::reduce_then_scan,
        time_by_copy: |_| 1.7,
        look: look::BLUE,
        stress: Stress { cpu_share: 4, gpu_share: 2, ..THREE_PHASE.stress },
        ..THREE_PHASE
    }
    /// One pass; each tile waits for its neighbour's inclusive prefix.
    Chained = "chained" {
        summary: "each tile waits for its neighbour (StreamScan, Yan, Long & Zhang 2013)",
        shape: Shape {
            kernels: &[Kernel::Chained],
            ..Shape::SINGLE_PASS
        },
        fault_without_waiting: Some("missing_prefix_ignored"),
        is_reproducible: true,
        suggested: suggestion::look_back,
        look: look::PINK,
        stress: Stress { cpu_share: 8, gpu_share: 5, gpu_share_of_faults: 1, is_serial: true, ..UNTILED.stress },
        is_modelled: true,
        ..ONE_LAUNCH
    }
    /// One pass with decoupled look-back (Merrill & Garland, 2016).
    Lookback = "lookback" {
        summary: "Merrill & Garland 2016",
        shape: Shape {
            kernels: &[Kernel::Lookback, Kernel::Columns],
            beside_scans: &[
                (Verb::Histogram, &[Kernel::ClearWords, Kernel::CountBins]),
                // Its digits are counted by those of histograms.
                (Verb::Sort, &[Kernel::SortByDigit, Kernel::SortInBlock, Kernel::ExpandCounts]),
                (Verb::Expand, &[Kernel::Expand]),
                (Verb::Scatter, &[Kernel::Scatter]),
                // By kernels of scans.
                (Verb::Total, &[]),
            ],
            kernel_of_columns: Some(Kernel::Columns),
            knows_whole_rows: true,
            ..Shape::SINGLE_PASS
        },
        fault_without_waiting: Some("does_not_wait"),
        is_reproducible: true,
        suggested: suggestion::look_back,
        // A tile adds up whatever prefixes the tiles before it have by then.
        has_fixed_order: false,
        look: look::VERMILION,
        stress: Stress {
            cpu_share: 20,
            gpu_share: 9,
            gpu_share_of_faults: 2,
            windows: Windows { percent: 6, ..UNTILED.stress.windows },
            ..UNTILED.stress
        },
        is_modelled: true,
        ..ONE_LAUNCH
    }
    /// One block takes tile after tile and carries the prefix: for small arrays.
    SingleBlock = "single-block" {
        summary: "one block takes tile after tile, the next one on its way; nothing to meet, nothing to clear: for up to 8 KiB",
        shape: Shape {
            kernels: &[Kernel::SingleBlock],
            blocks: Blocks::Single,
            ..Shape::TILED
        },
        is_reproducible: true,
        suggested: suggestion::single_block,
        // One multiprocessor moves some 100 GB/s.
        time_by_copy: |n| if n > 65536.0 { 30.0 } else { 1.3 },
        look: Look {
            color: (0x88, 0x22, 0x55),
            dark_color: (0xc4, 0x52, 0x7f),
            marker: &[(-2, -5), (2, -5), (2, 5), (-2, 5)],
        },
        stress: Stress { gpu_share: 1, is_serial: true, ..UNTILED.stress },
        ..ONE_LAUNCH
    }
    /// One pass; each tile reads the totals of all tiles before it: for arrays that the GPU holds at once.
    OneWave = "one-wave" {
        summary: "each tile reads the totals of all tiles before it, no prefix is published; of the order of tiles² \
                  descriptor reads: for what the GPU holds at once, 256 KiB to 8 MiB (12 MiB of 4-byte elements)",
        shape: Shape {
            kernels: &[Kernel::OneWave],
            descriptor_copies: (abi::LOOKBACK_DESCRIPTOR_COPIES, abi::LOOKBACK_DESCRIPTOR_COPY_GAP),
            helper_warps: HelperWarps::UnlessBlockPattern(abi::LOOKBACK_READING_WARPS),
            // There is about a block a multiprocessor, and the next launch's blocks find a place beside it.
            resident_blocks: Some(2),
            is_one_wave: true,
            ..Shape::SINGLE_PASS
        },
        fault_without_waiting: Some("counts_missing_as_nothing"),
        is_reproducible: true,
        suggested: suggestion::one_wave,
        look: Look {
            color: (0x33, 0x22, 0x88),
            dark_color: (0x8f, 0x80, 0xe8),
            marker: &[(-5, 0), (4, -5), (4, 5)],
        },
        stress: Stress {
            cpu_share: 6,
            gpu_share: 4,
            gpu_share_of_faults: 1,
            // A warp reads 256 descriptors at once, whoever is resident.
            windows: Windows {
                cpu_tiles: (258, 8),
                cpu_tiles_of_more: (514, 8),
                gpu_tiles: 300,
                percent: 1,
                needs_pause: false,
            },
            ..UNTILED.stress
        },
        is_modelled: true,
        ..ONE_LAUNCH
    }
    /// One pass by blocks that stay: tiles are fetched ahead of time, and their prefixes come from all aggregates.
    Lookahead = "lookahead" {
        summary: "blocks that stay, a ring of tiles copied ahead of time, prefixes from all aggregates; for large n on \
                  Hopper and later",
        shape: Shape {
            kernels: &[Kernel::Lookahead, Kernel::ColumnsAhead, Kernel::Dealt],
            kernel_of_columns: Some(Kernel::ColumnsAhead),
            kernel_of_deals: Some(Kernel::Dealt),
            helper_warps_of_columns: abi::LOOKBACK_COLUMNS_HELPER_WARPS,
            tiling: Tiling::Shuffled,
            blocks: Blocks::Persistent,
            helper_warps: HelperWarps::ByArrays {
                of_one: abi::LOOKBACK_HELPER_WARPS,
                of_several: abi::LOOKBACK_ARRAYS_HELPER_WARPS,
            },
            // Its tiles take the shared memory of a whole multiprocessor.
            resident_blocks: Some(1),
            ..Shape::SINGLE_PASS
        },
        fault_without_waiting: Some("missing_aggregate_ignored"),
        is_reproducible: true,
        suggested: suggestion::look_ahead,
        look: Look {
            color: (0x7b, 0x4f, 0xd0),
            dark_color: (0xb7, 0x9b, 0xff),
            marker: &[(-5, -4), (0, -2), (5, -4), (3, 0), (5, 4), (0, 2), (-5, 4), (-3, 0)],
        },
        stress: Stress {
            cpu_share: 8,
            gpu_share: 3,
            // Up to 256 aggregates are read at once, in groups of 32.
            windows: Windows { cpu_tiles_of_more: (330, 60), percent: 6, ..UNTILED.stress.windows },
            ..UNTILED.stress
        },
        is_modelled: true,
        ..ONE_LAUNCH
    }
    /// One thread block cluster takes a tile a block, and its blocks meet through distributed shared memory: for
    /// small arrays on GPUs of compute capability 9.0 and later.
    SingleCluster = "single-cluster" {
        summary: "one thread block cluster, a tile a block and round; its blocks meet through distributed shared memory; \
                  nothing to clear: for 8 KiB to 256 KiB, and histograms of few bytes, on Hopper and later",
        shape: Shape {
            kernels: &[Kernel::SingleCluster],
            beside_scans: &[(Verb::Histogram, &[Kernel::CountInCluster])],
            blocks: Blocks::Cluster,
            ..Shape::TILED
        },
        fault_without_waiting: Some("cluster_totals_unawaited"),
        suggested: suggestion::single_cluster,
        // A cluster has at most 16 multiprocessors.
        time_by_copy: |n| if n > 1e6 { 2.0 } else { 1.3 },
        look: Look {
            color: (0x85, 0x85, 0x1a),
            dark_color: (0xbc, 0xbc, 0x4a),
            marker: &[(5, 0), (-4, -5), (-4, 5)],
        },
        stress: Stress { cpu_share: 2, gpu_share: 1, ..UNTILED.stress },
        ..ONE_LAUNCH
    }
}

impl Strategy {
    /// All that is known of it.
    pub fn row(self) -> &'static StrategyRow {
        &ROWS[self as usize]
    }

    /// Whether VT matters: the array is cut into tiles of block threads × VT.
    pub fn has_tiles(self) -> bool {
        self.row().shape.tiling != Tiling::Untiled
    }

    /// Whether the threads of a block matter.
    pub fn has_blocks(self) -> bool {
        self.row().limit != Some(Limit::OneThread)
    }

    /// Whether pattern and composition matter.
    pub fn has_patterns(self) -> bool {
        self.row().shape.tiling == Tiling::Patterned
    }

    /// Whether tiles meet through descriptors in one launch.
    pub fn is_single_pass(self) -> bool {
        self.row().shape.has_descriptors
    }
}

impl ScanConfig {
    /// What to take where the user says nothing, for small, middle and large arrays: what did best for sums
    /// on an H100 (the pictures of VT in reports/h100/).
    ///
    /// A block of a small scan works alone, so short threads finish sooner; a large scan is bound by how
    /// many bytes are in flight and how seldom tiles wait for each other, so long threads win.
    pub fn suggested(strategy: Strategy, element_bytes: usize, n: u64) -> Self {
        let row = strategy.row();
        let (vt, block_threads) = (row.suggested)(element_bytes as u32, n.saturating_mul(element_bytes as u64));
        // Narrow elements are scanned several at a time, and a prefix added to them afterwards is not. Where warps scan
        // by shuffles alone, their prefix is known before.
        let scans_from_prefix = element_bytes < 4 || row.shape.tiling == Tiling::Shuffled;
        let composition = if scans_from_prefix { Composition::ReduceThenScan } else { Composition::ScanThenPropagate };
        Self { vt, block_threads, composition, ..Self::default() }
    }

    /// VT and threads of look-ahead over `n` elements of the arrays of what a user has defined. `row`: elements of one, if there are rows
    /// of one length that begin where the array does.
    pub fn of_arrays(problem: Problem, defined: Defined, n: u64, row: Option<u64>) -> Self {
        let (element_bytes, inputs) = (problem.access_bytes() as u32, defined.inputs().count());
        let marks = defined.has_segments().then(|| problem.state_bytes());
        let widest_output = defined.outputs().map(|(_, bytes)| bytes as u32).max();
        let lengths = widest_output.filter(|_| defined.has_lengths());
        let (vt, block_threads) = match defined.is_by_rank() {
            true => suggestion::look_ahead_by_rank(element_bytes, inputs, defined.has_groups(), lengths, n),
            false => {
                let row = defined.has_rows().then(|| row.unwrap_or(0));
                let are_halves = defined.own_state_bytes() > problem.access_bytes();
                suggestion::look_ahead_over_arrays(element_bytes, inputs, marks, is_widened(problem), row, are_halves)
            }
        };
        Self { vt, block_threads, composition: Composition::ReduceThenScan, ..Self::default() }
    }

    /// Look-ahead over tiles of what a user has defined that ranks are dealt in chunks of so many elements.
    pub fn of_dealt(problem: Problem, chunk: u64) -> Self {
        if problem.is_reproducible() {
            return Self::reproducible(problem);
        }
        let (vt, block_threads) = suggestion::dealt(problem.access_bytes() as u32, chunk, is_widened(problem));
        Self { vt, block_threads, composition: Composition::ReduceThenScan, ..Self::default() }
    }

    /// One wave over small arrays of what a user has defined.
    pub fn of_one_wave(problem: Problem, defined: Defined) -> Self {
        let bytes = problem.access_bytes().max(defined.own_state_bytes());
        let (vt, block_threads) = suggestion::one_wave_over_arrays(bytes as u32);
        Self { vt, block_threads, composition: Composition::ReduceThenScan, ..Self::default() }
    }

    /// Look-back's tiles of whole rows of so many of `n` elements, where there are such tiles: none of them waits for another one.
    pub fn of_whole_rows(problem: Problem, row: u64, n: u64) -> Option<Self> {
        let bytes = problem.access_bytes() as u64;
        let tile = suggestion::whole_rows(bytes as u32, problem.state_bytes(), row, n.saturating_mul(bytes));
        let (vt, block_threads) = tile.filter(|_| !problem.is_reproducible())?;
        // Scanned at once, one row leaves more registers for other blocks.
        let is_one = 2 * row > u64::from(vt * block_threads);
        let composition = if is_one { Composition::ScanThenPropagate } else { Composition::ReduceThenScan };
        Some(Self { vt, block_threads, composition, ..Self::default() })
    }

    /// The one of reproducible scans of such a problem, whatever the strategy.
    pub fn reproducible(problem: Problem) -> Self {
        let (vt, block_threads) = suggestion::reproducible(problem.access_bytes() as u32);
        Self { vt, block_threads, composition: Composition::ReduceThenScan, ..Self::default() }
    }

    /// The same over arrays of 2 bytes an element that are scanned in 4.
    pub fn of_halves() -> Self {
        let (vt, block_threads) = suggestion::LOOK_AHEAD_OVER_HALVES;
        Self { vt, block_threads, composition: Composition::ReduceThenScan, ..Self::default() }
    }

    /// The same over `n` elements of one array that become wider ones of another, as plain scans of two types have them; nothing where
    /// what is found for the wider ones alone is as fast.
    pub fn of_widening(problem: Problem, n: u64) -> Option<Self> {
        let [narrow, bytes] = [problem.input_bytes(), problem.access_bytes()].map(|bytes| bytes as u64);
        let is_long = narrow < bytes && n.saturating_mul(bytes) >= suggestion::LONG_WIDENING_BYTES;
        let (vt, block_threads) = suggestion::look_ahead_widening(bytes as u32).filter(|_| is_long)?;
        Some(Self { vt, block_threads, composition: Composition::ReduceThenScan, ..Self::default() })
    }

    /// The configurations that `suggested` chooses from for a strategy and an element size.
    pub fn suggestions(strategy: Strategy, element_bytes: usize) -> [Self; 3] {
        [0, suggestion::MIDDLE_BYTES, u64::MAX]
            .map(|bytes| Self::suggested(strategy, element_bytes, bytes / element_bytes as u64))
    }
}

/// Whether the numbers of one array become wider ones of another, in states that are no wider.
fn is_widened(problem: Problem) -> bool {
    let is_one_array = |defined: Defined| defined.inputs().count() == 1 && defined.outputs().count() == 1;
    let widest = problem.access_bytes();
    problem.defined().is_some_and(is_one_array) && problem.input_bytes() < widest && problem.state_bytes() <= widest
}

impl Kernel {
    /// Those that make bits of offsets, before the ones of any strategy.
    pub const MARKING: &'static [Self] = &[Self::ClearWords, Self::MarkSegments];

    /// The strategy whose row speaks for the kernel: the first that has it.
    pub fn strategy(self) -> Strategy {
        let has_it = |strategy: &Strategy| strategy.row().shape.has(self);
        Strategy::ALL.iter().copied().find(has_it).unwrap_or(Strategy::Sequential)
    }

    /// Threads of a block as it is launched, of which so many hold values.
    pub fn block_threads(self, with_values: u32, composition: Composition, problem: Problem) -> u32 {
        with_values + self.helper_threads(composition, problem)
    }

    /// Threads of a block beside those that hold values.
    pub fn helper_threads(self, composition: Composition, problem: Problem) -> u32 {
        let shape = self.strategy().row().shape;
        if self.scans_columns() {
            shape.helper_warps_of_columns * abi::LOOKBACK_WARP_LANES
        } else {
            shape.helper_threads(composition, problem)
        }
    }

    /// Whether it scans down columns, and nothing else.
    pub fn scans_columns(self) -> bool {
        self.strategy().row().shape.kernel_of_columns == Some(self)
    }

    /// Blocks of so many threads that the registers of a multiprocessor have to leave room for, where the assembler needs to be
    /// told. Of a scan down columns, whose blocks wait for others while they hold their tiles, 768 threads; of a sort, whose threads
    /// keep keys, half as many more; of rows 1024: a block has one tile, and only other blocks hide how long it waits for its loads.
    pub fn resident_blocks(self, problem: Problem, threads: u32) -> Option<u32> {
        const THREADS_OF_COLUMNS: u32 = 768;
        const THREADS_OF_ROWS: u32 = 1024;
        // As many blocks as any multiprocessor takes.
        const MOST: u32 = 16;
        let shape = self.strategy().row().shape;
        let holds_columns = self.scans_columns() && !self.is_persistent();
        let holds_rows = shape.knows_whole_rows && problem.defined().is_some_and(Defined::has_rows);
        let blocks_of = |resident: u32| Some((resident / threads).clamp(1, MOST));
        match self {
            Self::SortByDigit | Self::SortInBlock => blocks_of(THREADS_OF_COLUMNS + THREADS_OF_COLUMNS / 2),
            _ if holds_columns => blocks_of(THREADS_OF_COLUMNS),
            _ if holds_rows => blocks_of(THREADS_OF_ROWS),
            _ => shape.resident_blocks,
        }
    }

    /// Whether its blocks have tiles in dynamic shared memory, as [`Ring`](super::ring::Ring) says.
    pub fn has_ring(self) -> bool {
        self.is_persistent() || matches!(self, Self::SortByDigit | Self::SortInBlock | Self::Expand)
    }

    /// Whether its blocks stay and take one tile after the other ([`Blocks::Persistent`]).
    pub fn is_persistent(self) -> bool {
        self.strategy().row().shape.is_persistent()
    }

    /// Whether the grid is one thread block cluster ([`Blocks::Cluster`]).
    pub fn is_cluster(self) -> bool {
        self.strategy().row().shape.blocks == Blocks::Cluster
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_a_strategy_and_strategies_that_share_one_agree_about_its_blocks() {
        for &kernel in Kernel::ALL.iter().filter(|kernel| **kernel != Kernel::MarkSegments) {
            let having: Vec<&StrategyRow> =
                Strategy::ALL.iter().map(|strategy| strategy.row()).filter(|row| row.shape.has(kernel)).collect();
            let (first, others) = having.split_first().unwrap_or_else(|| panic!("{} has no strategy", kernel.name()));
            for other in others {
                assert_eq!(
                    (first.shape.blocks, first.shape.helper_warps),
                    (other.shape.blocks, other.shape.helper_warps),
                    "{}",
                    kernel.name()
                );
                assert_eq!(first.fault_without_waiting, other.fault_without_waiting, "{}", kernel.name());
            }
        }
    }

    #[test]
    fn lines_are_told_apart_by_colour_and_by_marker() {
        for (index, one) in Strategy::ALL.iter().enumerate() {
            for other in &Strategy::ALL[..index] {
                let (one_look, other_look) = (one.row().look, other.row().look);
                assert!(one_look.color != other_look.color && one_look.marker != other_look.marker, "{one}, {other}");
                assert_ne!(one_look.dark_color, other_look.dark_color, "{one}, {other}");
            }
        }
    }
}
