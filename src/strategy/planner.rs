//! Lays out the launches of a scan: which kernels, in which order, on which buffers.

use super::config::access_width;
use super::shape::{Blocks, Shape, Tiling};
use super::{Alignment, Composition, ConfigError, Descriptor, Kernel, Mode, Pattern, TileOrder, suggestion};
use crate::abi;
use crate::element::{Defined, Histogram, Instance, KeyBits, Problem, Verb};
use crate::ranks::Hand;

/// Where an array of a step lives. Offsets are in bytes from the start of the workspace, whose first
/// byte is aligned to 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The user's input.
    Input,
    /// The user's output; the input itself in an in-place scan.
    Output,
    /// `offset` bytes into the scratch memory of the plan; needs no initialisation.
    Scratch(u64),
    /// Not used by the kernel: a null pointer.
    None,
}

/// One kernel launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What runs.
    pub kernel: Kernel,
    /// What it scans: of a spine the totals of another scan's tiles.
    pub problem: Problem,
    /// The compile-time constants of the kernel (on the CPU device: its run-time values).
    pub config: KernelConfig,
    /// Blocks of the grid, at least 1; the most that have work, where [`Kernel::is_persistent`] or
    /// [`Kernel::is_cluster`] says that fewer do.
    pub grid_blocks: u64,
    /// What it reads.
    pub input: Place,
    /// What it writes.
    pub output: Place,
    /// What the kernel has beside both, as `lookback_launch` says: totals of tiles, nodes or all of a tree, or the input.
    pub spine: Place,
    /// The bits that say where segments begin, if they are told by bits.
    pub bits: Place,
    /// Elements of this step.
    pub n: u64,
    /// Tiles of this step.
    pub tiles: u64,
    /// Distance of a Hillis-Steele step or a Blelloch level, or from a tile of whole rows to the next one.
    pub stride: u64,
    /// Elements from a boundary of an access at or below the input to the input: the nearest one, but in look-ahead.
    pub lead: u32,
    /// Tile descriptors that the launch works with; 0 where it needs neither them nor the control block.
    pub descriptors: u64,
    /// Which bits of keys a sort goes by, or this step of it.
    pub key_bits: Option<KeyBits>,
    /// Which tiles these are, where they are dealt to several ranks.
    pub hand: Option<Hand>,
    /// 0 for the user's array, 1 and more for the spine and the spine of the spine: their traffic is
    /// counted apart.
    pub level: u32,
}

impl Step {
    /// Whether it needs the control block and the descriptors.
    pub const fn uses_descriptors(&self) -> bool {
        self.descriptors > 0
    }

    /// What is compiled for it; the same for all steps that can share a kernel.
    pub fn key(&self) -> KernelKey {
        (self.kernel, self.problem.canonical(), self.config)
    }

    /// Threads of a block as it is launched.
    pub fn block_threads(&self) -> u32 {
        self.kernel.block_threads(self.config.block_threads, self.config.composition, self.problem)
    }
}

/// Whose descriptors a region of memory holds: what a launch reads there as a tag was written as one if all launches that use
/// the region have descriptors of one layout and as many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RegionKey {
    /// How they are laid out.
    pub layout: Descriptor,
    /// Bytes of one.
    pub descriptor_bytes: u64,
}

impl RegionKey {
    /// How many a region of at least so many has: a multiple of 4, so that the split layout's slots are aligned.
    pub const fn capacity(needed: u64) -> u64 {
        needed.next_multiple_of(4)
    }
}

/// A kernel with all that it is compiled for.
pub type KernelKey = (Kernel, Problem, KernelConfig);

/// What a kernel is compiled for, beside the problem. Fields that a kernel does not depend on hold
/// their default, so that one compiled kernel serves all launches that agree in the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelConfig {
    /// Values per thread.
    pub vt: u32,
    /// Threads per block.
    pub block_threads: u32,
    /// What is computed.
    pub mode: Mode,
    /// The scan over one value a lane.
    pub pattern: Pattern,
    /// How a block composes the scan of its tile.
    pub composition: Composition,
    /// Layout of the tile descriptors.
    pub descriptor: Descriptor,
    /// How a block learns which tile is its own.
    pub tile_order: TileOrder,
    /// Where the arrays begin.
    pub alignment: Alignment,
}

impl KernelConfig {
    /// Elements of a tile.
    pub const fn tile_elements(&self) -> u64 {
        self.vt as u64 * self.block_threads as u64
    }

    /// The configuration as the kernels read it on the CPU device. `stages` are the tiles that a block may hold at
    /// one time, where [`Kernel::is_persistent`] says that it takes several.
    pub fn to_abi(self, stages: u32) -> abi::lookback_config {
        abi::lookback_config {
            vt: self.vt,
            block_threads: self.block_threads,
            mode: self.mode as u32,
            pattern: self.pattern as u32,
            composition: self.composition as u32,
            descriptor: self.descriptor as u32,
            tile_order: self.tile_order as u32,
            alignment: self.alignment as u32,
            stages,
        }
    }

    /// The same for kernels that do not depend on how a tile is scanned.
    fn untiled(self) -> Self {
        Self {
            pattern: Pattern::Shuffle,
            composition: Composition::ScanThenPropagate,
            descriptor: Descriptor::Packed64,
            tile_order: TileOrder::Ticket,
            alignment: Alignment::Any,
            ..self
        }
    }

    /// The same for kernels that scan tiles but know no descriptors.
    fn without_descriptors(self) -> Self {
        Self { descriptor: Descriptor::Packed64, tile_order: TileOrder::Ticket, ..self }
    }
}

/// Scratch arrays start at multiples of this, which is more than any access needs.
const SCRATCH_ALIGNMENT: u64 = 256;

/// What an array of scratch takes.
pub(super) const fn scratch_bytes(count: u64, bytes: usize) -> u64 {
    (count * bytes as u64).next_multiple_of(SCRATCH_ALIGNMENT)
}

/// The array, the kernels, and the launches so far.
pub(super) struct Planner {
    pub shape: Shape,
    pub config: KernelConfig,
    pub problem: Problem,
    pub n: u64,
    pub in_place: bool,
    pub input_offset: u32,
    pub output_offset: u32,
    pub row: Option<u64>,
    pub steps: Vec<Step>,
    pub scratch_bytes: u64,
    pub bits: Place,
}

/// A scan in three phases: of the user's array, or of a spine.
struct Level {
    problem: Problem,
    input: Place,
    output: Place,
    n: u64,
    lead: u32,
    mode: Mode,
    /// [`Step::level`].
    level: u32,
    /// Whether tiles are reduced first and scanned last, or scanned first and given their prefix last.
    reduces_first: bool,
}

impl Planner {
    /// Elements from the boundary of an access at or below the input to the input.
    fn lead(&self) -> u32 {
        let width = access_width(self.config.vt, self.problem.access_bytes());
        self.input_offset / self.problem.input_bytes() as u32 % width
    }

    /// The same to a boundary of 16 bytes, where copies begin however narrow the accesses of the lanes are.
    ///
    /// The nearest or the next but one or two: rows are to begin with whole sectors of the output, because the L2 cache
    /// takes longer for half of one. They begin with the first boundary of 16 bytes of the output in a tile
    /// (`cuda/block/misaligned_output.cuh`). What values of 4 bytes skip before that must not be an
    /// element of the array, so they alone may have to go back by more than 31 bytes. A lead is always less than 32
    /// elements, which the smallest tile has.
    fn lead_of_copies(&self) -> u32 {
        const VECTOR: u32 = abi::LOOKBACK_VECTOR_BYTES;
        const SECTOR: u32 = abi::LOOKBACK_SECTOR_BYTES;
        let Self { input_offset, output_offset, in_place, .. } = *self;
        let output_offset = if in_place { input_offset } else { output_offset } % SECTOR;
        let bytes = self.problem.input_bytes() as u32;
        let nearest = input_offset % VECTOR;
        let skipped = (nearest + SECTOR - output_offset) % VECTOR;
        let is_realigned_on_load = bytes == 4 && access_width(self.config.vt, 4) * bytes == VECTOR;
        let leads = [nearest, nearest + VECTOR, nearest + 2 * VECTOR];
        let is_right = |lead: &u32| {
            let row = output_offset + 2 * SECTOR + skipped - lead;
            row.is_multiple_of(SECTOR) && (*lead >= skipped || !is_realigned_on_load)
        };
        let is_moved = self.problem.types().is_some_and(|[input, _, output]| input.bytes() == output.bytes());
        leads.into_iter().find(|lead| is_moved && is_right(lead)).unwrap_or(nearest) / bytes
    }

    /// Scratch for `count` values of so many bytes.
    fn scratch(&mut self, count: u64, bytes: usize) -> Place {
        let offset = self.scratch_bytes;
        self.scratch_bytes += scratch_bytes(count, bytes);
        Place::Scratch(offset)
    }

    /// A launch over the user's array with everything that most kernels do not need left empty.
    pub(super) fn step(
        &self,
        kernel: Kernel,
        config: KernelConfig,
        input: Place,
        output: Place,
        grid_blocks: u64,
    ) -> Step {
        Step {
            kernel,
            problem: self.problem,
            config,
            grid_blocks,
            input,
            output,
            spine: Place::None,
            bits: self.bits,
            n: self.n,
            tiles: 0,
            stride: 0,
            lead: 0,
            descriptors: 0,
            key_bits: None,
            hand: None,
            level: 0,
        }
    }

    /// The launch that clears so many words.
    fn clear(&mut self, words: u64, output: Place) {
        const WORDS_OF_THREAD: u64 = abi::LOOKBACK_VECTOR_BYTES as u64 / 4;
        let config = KernelConfig { vt: 1, block_threads: 256, mode: Mode::Inclusive, ..self.config.untiled() };
        let blocks = words.div_ceil(WORDS_OF_THREAD * u64::from(config.block_threads));
        let clear = self.step(Kernel::ClearWords, config, Place::None, output, blocks);
        self.steps.push(Step { problem: Problem::plain(Instance::SUM_OF_WORDS), n: words, ..clear });
    }

    /// How many elements fall into each of so many bins, `into` a place that is cleared before. Of a sort the bins are those of all
    /// digits of these bits.
    fn count(&mut self, bins: u64, bits: Option<KeyBits>, into: Place) {
        // Blocks that count more elements than a tile has add fewer counts. With so many threads all blocks are on a data
        // centre's GPU at once.
        const MOST_BLOCKS: u64 = 512;
        const MOST_THREADS: u64 = 1 << 18;
        let blocks =
            self.blocks_of_elements().min(MOST_BLOCKS).min(MOST_THREADS / u64::from(self.config.block_threads));
        self.clear(bins * self.problem.published_bytes() as u64 / 4, into);
        let count = self.step(Kernel::CountBins, self.config.untiled(), Place::Input, into, blocks);
        self.steps.push(Step { key_bits: bits, ..count });
    }

    /// How many elements fall into each of so many bins: by one cluster, or by blocks that add to cleared counts.
    fn count_bins(&mut self, bins: u64, into: Place) {
        if self.shape.blocks != Blocks::Cluster {
            return self.count(bins, None, into);
        }
        // As of scans, a cluster has at least two.
        let blocks = self.blocks_of_elements().clamp(2, u64::from(abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS));
        let count = self.step(Kernel::CountInCluster, self.config.untiled(), Place::Input, into, blocks);
        self.steps.push(count);
    }

    /// The launches of a histogram: its counts, and where it is cumulated their sums by one block.
    pub(super) fn histogram(&mut self, Histogram { bins, is_cumulated }: Histogram) {
        let n = u64::from(bins);
        if !is_cumulated {
            return self.count_bins(n, Place::Output);
        }
        let bytes = self.problem.published_bytes();
        let counts = self.scratch(n, bytes);
        self.count_bins(n, counts);
        let (vt, block_threads) = suggestion::single_block(bytes as u32, n * bytes as u64);
        let config = KernelConfig { vt, block_threads, ..self.config.untiled() };
        let sum = if bytes == 8 { Instance::SUM_OF_LONG_WORDS } else { Instance::SUM_OF_WORDS };
        let (problem, tiles) = (Problem::plain(sum), n.div_ceil(u64::from(vt * block_threads)));
        let sums = self.step(Kernel::SingleBlock, config, counts, Place::Output, 1);
        self.steps.push(Step { problem, n, tiles, level: 1, ..sums });
    }

    /// The launches of a sort by these bits: how often each digit occurs, and then a pass a digit, between the output and as many
    /// arrays of scratch, so that the last one ends in the output. Keys of one byte, all of it and alone, are what was counted; what is
    /// one tile is sorted by one launch.
    pub(super) fn sort(&mut self, bits: KeyBits) {
        const DIGITS: u64 = abi::LOOKBACK_DIGITS as u64;
        let KernelConfig { descriptor, tile_order, .. } = self.config;
        let config = KernelConfig { descriptor, tile_order, ..self.config.untiled() };
        let (tiles, passes) = (self.blocks_of_elements(), bits.passes());
        if tiles == 1 {
            let sort = self.step(Kernel::SortInBlock, config.untiled(), Place::Input, Place::Output, 1);
            self.steps.push(Step { key_bits: Some(bits), ..sort });
            return;
        }
        let count_bytes = self.problem.published_bytes() as u64;
        let first_count = self.scratch_bytes;
        let counts = self.scratch(u64::from(passes) * DIGITS, count_bytes as usize);
        self.count(u64::from(passes) * DIGITS, Some(bits), counts);
        if self.problem.bytes_of_all_inputs() == 1 && bits == (KeyBits { first: 0, end: 8 }) {
            return self.expand_counts(counts);
        }
        let other = if passes == 1 { Place::None } else { self.scratch_arrays() };
        let mut from = Place::Input;
        for pass in 0..passes {
            let to = if (passes - 1 - pass).is_multiple_of(2) { Place::Output } else { other };
            let mut step = self.step(Kernel::SortByDigit, config, from, to, tiles);
            step.key_bits = Some(bits.of_pass(pass));
            step.spine = Place::Scratch(first_count + u64::from(pass) * DIGITS * count_bytes);
            (step.tiles, step.descriptors) = (tiles, tiles * DIGITS);
            self.steps.push(step);
            from = to;
        }
    }

    /// The launch that stores each key as often as it was counted.
    fn expand_counts(&mut self, counts: Place) {
        const VECTOR: u64 = abi::LOOKBACK_VECTOR_BYTES as u64;
        const BLOCK_THREADS: u32 = 256;
        // About as many as a GPU has at once.
        const BLOCKS: u64 = 512;
        // Of an output at a boundary and of others.
        let vectors = self.n.div_ceil(VECTOR) + 1;
        // Enough for a thread that few blocks look at the counts, and few enough that small arrays have many blocks.
        let vt = (vectors / (BLOCKS * u64::from(BLOCK_THREADS))).clamp(1, 8) as u32;
        let config = KernelConfig { vt, block_threads: BLOCK_THREADS, ..self.config.untiled() };
        let blocks = vectors.div_ceil(config.tile_elements());
        let expand = self.step(Kernel::ExpandCounts, config, Place::None, Place::Output, blocks);
        self.steps.push(Step { spine: counts, ..expand });
    }

    /// The launch that moves elements where they say, a tile a block.
    pub(super) fn scatter(&mut self) {
        self.moves(Kernel::Scatter, self.blocks_of_elements());
    }

    /// The launch that goes from offsets back to owners. Blocks take tiles in turn: there may be many more items than places.
    pub(super) fn expand(&mut self) {
        const LEAST_BLOCKS: u64 = 128;
        self.moves(Kernel::Expand, self.blocks_of_elements().max(LEAST_BLOCKS));
    }

    fn moves(&mut self, kernel: Kernel, blocks: u64) {
        self.steps.push(self.step(kernel, self.config.untiled(), Place::Input, Place::Output, blocks));
    }

    /// Scratch for arrays like those that are stored, one behind the other.
    fn scratch_arrays(&mut self) -> Place {
        let first = Place::Scratch(self.scratch_bytes);
        for (_, bytes) in self.problem.defined().into_iter().flat_map(Defined::outputs) {
            let _ = self.scratch(self.n, bytes);
        }
        first
    }

    /// The launches that make bits of offsets, where segments are told by them, before those of any strategy.
    pub(super) fn mark_segments(&mut self) {
        if !self.problem.defined().is_some_and(Defined::has_bits) {
            return;
        }
        const LINE_BITS: u64 = 8 * abi::LOOKBACK_VECTOR_BYTES as u64;
        const SEGMENTS_OF_THREAD: u64 = 4;
        const MOST_BLOCKS: u64 = 4096;
        // Whole tiles are read, in whole lines.
        let tile = self.config.tile_elements();
        let lines = (u64::from(abi::LOOKBACK_LEADING_BITS) + self.n + tile).div_ceil(LINE_BITS) + 1;
        let bits = self.scratch(lines, abi::LOOKBACK_VECTOR_BYTES as usize);
        self.clear(lines * u64::from(abi::LOOKBACK_VECTOR_BYTES) / 4, bits);
        let config = KernelConfig { vt: 1, block_threads: 256, mode: Mode::Inclusive, ..self.config.untiled() };
        // A few segments a thread, of as many as there may be; the blocks of a launch take them in turn.
        let blocks = self.n.div_ceil(SEGMENTS_OF_THREAD * u64::from(config.block_threads)).min(MOST_BLOCKS);
        let mark = self.step(Kernel::MarkSegments, config, Place::None, bits, blocks);
        self.steps.push(Step { problem: Problem::plain(Instance::SUM_OF_WORDS), ..mark });
        self.bits = bits;
    }

    /// Blocks of a kernel whose threads take VT elements each, in no particular order.
    fn blocks_of_elements(&self) -> u64 {
        self.n.div_ceil(self.config.tile_elements())
    }

    pub(super) fn sequential(&mut self) {
        // One thread works; a warp is the least that a block has.
        let config = KernelConfig { block_threads: abi::LOOKBACK_WARP_LANES, ..self.config.untiled() };
        self.steps.push(self.step(Kernel::Sequential, config, Place::Input, Place::Output, 1));
    }

    fn copy(&mut self, mode: Mode, input: Place, output: Place) {
        let config = KernelConfig { mode, ..self.config.untiled() };
        self.steps.push(self.step(Kernel::Copy, config, input, output, self.blocks_of_elements()));
    }

    pub(super) fn naive(&mut self) {
        let mut input = Place::Input;
        if self.in_place {
            input = self.scratch(self.n, self.problem.output_bytes());
            self.copy(self.config.mode, Place::Input, input);
        }
        // A thread an element, whatever VT says.
        let config = KernelConfig { vt: 1, ..self.config.untiled() };
        let blocks = self.n.div_ceil(u64::from(config.block_threads));
        self.steps.push(self.step(Kernel::Naive, config, input, Place::Output, blocks));
    }

    pub(super) fn hillis_steele(&mut self) {
        let n = self.n;
        let levels = n.next_power_of_two().trailing_zeros();
        if levels == 0 {
            // One element. Its exclusive scan is the identity, and that is what the subtraction gives.
            let mode = if self.config.mode == Mode::Inclusive { Mode::Inclusive } else { Mode::Exclusive };
            self.copy(mode, Place::Input, Place::Output);
            return;
        }
        // Arrays that the steps before the last one write. In place, none of them may be the output: the
        // first step still reads what stands there.
        let in_place = self.in_place;
        let mut temporaries = Vec::new();
        if in_place {
            for _ in 0..levels.saturating_sub(1).clamp(1, 2) {
                temporaries.push(self.scratch(n, self.problem.state_bytes()));
            }
        } else if levels > 1 {
            temporaries.push(self.scratch(n, self.problem.state_bytes()));
            temporaries.push(Place::Output);
        }
        let mut source = Place::Input;
        if in_place && levels == 1 {
            source = temporaries[0];
            self.copy(self.config.mode, Place::Input, source);
        }
        for level in 0..levels {
            let steps_after = levels - 1 - level;
            let target = match steps_after {
                0 => Place::Output,
                // Alternate, so that the step before the last one does not write the output.
                _ => temporaries[(steps_after as usize + 1) % temporaries.len()],
            };
            let blocks = self.blocks_of_elements();
            let mut step = self.step(Kernel::HillisSteeleStep, self.config.untiled(), source, target, blocks);
            step.stride = 1 << level;
            if steps_after == 0 && self.config.mode == Mode::InclusiveMinusInput {
                step.spine = Place::Input;
            }
            self.steps.push(step);
            source = target;
        }
    }

    pub(super) fn blelloch(&mut self) {
        let n = self.n;
        let exclusive = self.config.mode == Mode::Exclusive;
        // An exclusive scan needs the input no more once it is in the tree, so the output is the tree.
        let tree = if exclusive { Place::Output } else { self.scratch(n, self.problem.state_bytes()) };
        let partial = self.scratch(u64::from(abi::LOOKBACK_TREE_LEVELS), self.problem.state_bytes());
        if !(exclusive && self.in_place && n > 1) {
            self.copy(Mode::Exclusive, Place::Input, tree);
        }
        // A thread a node, and the sweeps know no mode.
        let config = KernelConfig { vt: 1, mode: Mode::Exclusive, ..self.config.untiled() };
        let threads = u64::from(config.block_threads);
        let mut stride = 1;
        while (n - 1) / (2 * stride) > 0 {
            let nodes = (n - 1) / (2 * stride);
            let mut step = self.step(Kernel::BlellochUpsweep, config, tree, tree, nodes.div_ceil(threads));
            step.stride = stride;
            self.steps.push(step);
            stride *= 2;
        }
        stride = n.next_power_of_two() / 2;
        while stride > 0 {
            let nodes = n.div_ceil(2 * stride);
            let mut step = self.step(Kernel::BlellochDownsweep, config, tree, tree, nodes.div_ceil(threads));
            step.stride = stride;
            step.spine = partial;
            self.steps.push(step);
            stride /= 2;
        }
        if !exclusive {
            let blocks = self.blocks_of_elements();
            let mut step =
                self.step(Kernel::BlellochFinish, self.config.untiled(), Place::Input, Place::Output, blocks);
            step.spine = tree;
            self.steps.push(step);
        }
    }

    fn tiles(&self, n: u64, lead: u32) -> u64 {
        (n + u64::from(lead)).div_ceil(self.config.tile_elements())
    }

    /// Elements from a tile to the next one, where the strategy knows tiles of whole rows and the array is cut into such.
    fn whole_rows(&self, lead: u32) -> Option<u64> {
        let row = self.row.filter(|_| lead == 0 && self.shape.knows_whole_rows)?;
        let tile = self.config.tile_elements();
        let width = access_width(self.config.vt, self.problem.access_bytes());
        // In what order elements are combined follows from where they lie in a tile of the usual size.
        let is_right = |&rows: &u64| rows == tile || !self.problem.is_reproducible();
        // A grid has no more blocks; tiles that rows fill in part are more than others.
        suggestion::rows_of_tile(tile, row, width)
            .filter(is_right)
            .filter(|rows| self.n.div_ceil(*rows) <= i32::MAX as u64)
    }

    pub(super) fn scan_then_propagate(&mut self) {
        self.three_phases(false);
    }

    pub(super) fn reduce_then_scan(&mut self) {
        self.three_phases(true);
    }

    fn three_phases(&mut self, reduces_first: bool) {
        let lead = self.lead();
        let Self { problem, n, config: KernelConfig { mode, .. }, .. } = *self;
        let (input, output, level) = (Place::Input, Place::Output, 0);
        self.three_phase(Level { problem, input, output, n, lead, mode, level, reduces_first });
    }

    fn three_phase(&mut self, scan: Level) {
        let Level { problem, input, output, n, lead, mode, level, reduces_first } = scan;
        let tiles = self.tiles(n, lead);
        let config = KernelConfig { mode, ..self.config.without_descriptors() };
        let of_array = self.step(Kernel::ScanTiles, config, input, output, tiles);
        let of_level = Step { problem, n, tiles, lead, level, ..of_array };
        let phase = |kernel, input, output, spine| Step { kernel, input, output, spine, ..of_level.clone() };
        if tiles == 1 {
            self.steps.push(phase(Kernel::ScanTiles, input, output, Place::None));
            return;
        }
        let spine = self.scratch(tiles, problem.published_bytes());
        let scan_of_spine = Level {
            problem: problem.of_spine(),
            input: spine,
            output: spine,
            n: tiles,
            lead: 0,
            mode: Mode::Exclusive,
            level: level + 1,
            reduces_first,
        };
        if reduces_first {
            let mut reduce = phase(Kernel::ReduceTiles, input, Place::None, spine);
            // Totals do not depend on the mode, but for the last element, which only an exclusive scan
            // must not read.
            if mode != Mode::Exclusive {
                reduce.config.mode = Mode::Inclusive;
            }
            self.steps.push(reduce);
            self.three_phase(scan_of_spine);
            self.steps.push(phase(Kernel::ScanTiles, input, output, spine));
        } else {
            self.steps.push(phase(Kernel::ScanTileTotals, input, output, spine));
            self.three_phase(scan_of_spine);
            let mut propagate = phase(Kernel::Propagate, output, output, spine);
            propagate.config = KernelConfig { mode: Mode::Inclusive, ..config.untiled() };
            self.steps.push(propagate);
        }
    }

    /// The launches that combine all elements into one state: tiles are reduced, and their totals, until there is one.
    pub(super) fn total(&mut self) {
        let (pattern, composition) = (Pattern::Shuffle, Composition::ReduceThenScan);
        let config = KernelConfig { mode: Mode::Inclusive, pattern, composition, ..self.config.without_descriptors() };
        let (mut problem, mut input, mut n, mut lead, mut level) = (self.problem, Place::Input, self.n, self.lead(), 0);
        loop {
            // Of no elements it is the identity, which a tile without elements leaves.
            let tiles = self.tiles(n, lead).max(1);
            let bytes = problem.published_bytes();
            let spine = if tiles == 1 { Place::Output } else { self.scratch(tiles, bytes) };
            let reduce = self.step(Kernel::ReduceTiles, config, input, Place::None, tiles);
            self.steps.push(Step { problem, spine, n, tiles, lead, level, ..reduce });
            if tiles == 1 {
                return;
            }
            (problem, input, n, lead, level) = (problem.of_spine(), spine, tiles, 0, level + 1);
        }
    }

    /// One launch over a rank's tiles, whose blocks meet those of the other ranks.
    pub(super) fn dealt(&mut self, strategy: &'static str, hand: Hand) -> Result<(), ConfigError> {
        let is_sequence = |of: Defined| !of.has_segments() && !of.is_reversed() && of.verb() == Verb::Scan;
        let is_sequence = self.problem.defined().is_some_and(is_sequence);
        let Some(kernel) = self.shape.kernel_of_deals.filter(|_| is_sequence) else {
            return Err(ConfigError::NotDealt { strategy, problem: self.problem.to_string() });
        };
        let (tile, chunk) = (self.config.tile_elements(), hand.deal().chunk());
        if !chunk.is_multiple_of(tile) {
            return Err(ConfigError::Chunk { chunk, tile });
        }
        if hand.ranks() > abi::LOOKBACK_MAXIMUM_DEALT_RANKS.into() {
            return Err(ConfigError::DealtRanks { ranks: hand.ranks() });
        }
        self.one_launch();
        for step in &mut self.steps {
            (step.kernel, step.hand) = (kernel, Some(hand));
            // A rank without tiles meets the others all the same.
            step.grid_blocks = step.grid_blocks.max(1);
            // Of all ranks, in two halves.
            step.descriptors = 2 * RegionKey::capacity(hand.deal().n().div_ceil(tile).max(1));
        }
        Ok(())
    }

    /// One launch over the whole array, whose blocks meet inside it.
    pub(super) fn one_launch(&mut self) {
        let Shape { tiling, blocks, has_descriptors, descriptor_copies: (copies, gap), kernels, .. } = self.shape;
        let lead = if blocks == Blocks::Persistent { self.lead_of_copies() } else { self.lead() };
        let tiles = self.tiles(self.n, lead);
        let mut config = if has_descriptors { self.config } else { self.config.without_descriptors() };
        if tiling == Tiling::Shuffled {
            // The prefix is known before a tile is scanned.
            config = KernelConfig { pattern: Pattern::Shuffle, composition: Composition::ReduceThenScan, ..config };
        }
        let grid_blocks = match blocks {
            Blocks::Single => 1,
            // Not one: compute-sanitizer reports asynchronous stores of a cluster of a single block as errors.
            Blocks::Cluster => tiles.clamp(2, u64::from(abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS)),
            Blocks::PerTile | Blocks::Persistent => tiles,
        };
        let mut step = self.step(kernels[0], config, Place::Input, Place::Output, grid_blocks);
        (step.tiles, step.lead) = (tiles, lead);
        if let Some(stride) = self.whole_rows(lead) {
            (step.stride, step.tiles) = (stride, self.n.div_ceil(stride));
            step.grid_blocks = step.tiles;
        } else if has_descriptors {
            step.descriptors = u64::from(copies) * (tiles + u64::from(gap));
        }
        self.steps.push(step);
    }
}
