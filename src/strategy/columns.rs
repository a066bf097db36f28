//! How a scan down the columns of a tensor is laid out (`cuda/problem/columns.cuh`, `cuda/problem/columns_ahead.cuh`), and what
//! its tiles are where nobody chooses.

use super::planner::{KernelConfig, Place, Planner};
use super::shape::Blocks;
use super::{Composition, Kernel, Pattern, ScanConfig, Strategy, suggestion};
use crate::abi;
use crate::element::{Axis, Problem};
use crate::gpu::Architecture;

const WARP_LANES: u64 = abi::LOOKBACK_WARP_LANES as u64;

/// Neighbouring columns of a thread that holds its tile in registers: what fits into 16 bytes of the widest element, and of the
/// state in registers. `columns_of_thread` in `cuda/problem/columns.cuh` is the same function.
fn columns_of_thread(problem: Problem) -> u64 {
    let widest = problem.access_bytes().max(problem.state_bytes()).max(size_of::<u32>());
    widest_power(|width| width * widest <= abi::LOOKBACK_VECTOR_BYTES as usize)
}

/// The same of a thread that has its tile in shared memory: what fits into 16 bytes of the widest element, and into 32 of states;
/// of a warp there are not more than the finders have lanes for, and of a thread no more than a narrow tensor has.
/// `staged_columns_of_thread` in `cuda/problem/columns_ahead.cuh` is the same function.
pub(super) fn staged_columns_of_thread(problem: Problem) -> u64 {
    const VECTOR: usize = abi::LOOKBACK_VECTOR_BYTES as usize;
    let most = problem.axis().map_or(1, Axis::columns_of_thread);
    widest_power(|width| {
        width <= most && width * problem.access_bytes() <= VECTOR && width * problem.state_bytes() <= 2 * VECTOR
    })
}

/// The largest power of two that fits; 1, if none does.
fn widest_power(fits: impl Fn(usize) -> bool) -> u64 {
    let mut width = 1;
    while fits(2 * width) {
        width *= 2;
    }
    width as u64
}

/// The strips of a tensor and the tiles that go down them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Columns {
    axis: Axis,
    /// Threads side by side in a strip.
    strip_lanes: u64,
    /// Columns of a strip.
    strip_columns: u64,
    /// Strips of one outer index.
    strips: u64,
    /// Strips of all outer indices.
    lines: u64,
    /// Rows of a tile.
    tile_rows: u64,
    /// Tiles of each line.
    tiles_down: u64,
    /// Tiles of a line from one that publishes a prefix to the next, and within them from one that publishes the total of its
    /// group to the next.
    levels: [u64; 2],
    /// Tiles of a block.
    block_tiles: u64,
}

impl Columns {
    /// Those of a kernel's scan of `n` elements, if it is one down columns.
    pub fn of(kernel: Kernel, problem: Problem, config: KernelConfig, n: u64) -> Option<Self> {
        let threads = (config.vt, config.block_threads);
        let new = if kernel.is_persistent() { Self::staged } else { Self::in_registers };
        Some(new(problem.axis()?, problem, threads, n))
    }

    /// Where tiles are held in registers: those of a block, or of each of its warps, if one has rows enough for a column.
    fn in_registers(axis: Axis, problem: Problem, (vt, block_threads): (u32, u32), n: u64) -> Self {
        let outer = n.div_ceil(axis.length * axis.inner);
        let width = columns_of_thread(problem);
        let strip_lanes = strip_lanes(outer, axis, width, problem.access_bytes() as u64);
        let of_threads = |threads| Self::new(axis, outer, (vt, threads), strip_lanes, strip_lanes * width);
        let of_warp = of_threads(abi::LOOKBACK_WARP_LANES);
        let block_tiles = u64::from(block_threads) / WARP_LANES;
        let are_short = of_warp.tiles_down == 1 && block_threads <= abi::LOOKBACK_SHORT_COLUMNS_THREADS;
        if are_short { Self { block_tiles, ..of_warp } } else { of_threads(block_threads) }
    }

    /// Where tiles are held in shared memory. A narrow tensor is one strip, which is one stretch of memory. Of a wider one the rows
    /// of a strip are copied one by one, in whole lines of 16 bytes where that is possible: of half a warp, which has 256 bytes
    /// of elements of 2 and 4 bytes, because each column of a tile takes its part in finding prefixes.
    fn staged(axis: Axis, problem: Problem, threads: (u32, u32), n: u64) -> Self {
        let outer = n.div_ceil(axis.length * axis.inner);
        let width = staged_columns_of_thread(problem);
        let line = (u64::from(abi::LOOKBACK_VECTOR_BYTES) / narrowest_bytes(problem)).max(width);
        let lanes = if axis.inner.is_multiple_of(line) { WARP_LANES / 2 } else { WARP_LANES };
        let strips = axis.inner.div_ceil(lanes * width);
        let strip_columns = if strips == 1 { axis.inner } else { axis.inner.div_ceil(strips).next_multiple_of(line) };
        let columns = Self::new(axis, outer, threads, strip_columns.div_ceil(width), strip_columns);
        // Tiles of so many bytes in all lines take about as long as a prefix from one multiprocessor to another: shorter periods wait
        // for their chain, longer ones ask for more totals (measured on an H200, docs/experiments.md). A small tile takes no less
        // time than one of `LEAST_BYTES`, by which cases under stress, whose tiles are small, have several periods.
        const BYTES_OF_A_HOP: u64 = 2 << 20;
        const LEAST_BYTES: u64 = 32 << 10;
        const GROUP: u64 = 8;
        let tile_bytes = columns.tile_rows * strip_columns * problem.bytes_of_all_inputs() as u64;
        // What is reproducible does not depend on how many matrices are scanned together.
        let side_by_side = if problem.is_reproducible() { strips } else { columns.lines };
        let tiles = BYTES_OF_A_HOP / tile_bytes.max(LEAST_BYTES) / side_by_side;
        let period = 1 << tiles.max(1).ilog2();
        Self { levels: [period, period.min(GROUP)], ..columns }
    }

    fn new(axis: Axis, outer: u64, (vt, block_threads): (u32, u32), strip_lanes: u64, strip_columns: u64) -> Self {
        let strips = axis.inner.div_ceil(strip_columns);
        let warps = u64::from(block_threads) / WARP_LANES;
        let tile_rows = u64::from(vt) * warps * (WARP_LANES / strip_lanes);
        let tiles_down = axis.length.div_ceil(tile_rows);
        let lines = outer * strips;
        Self { axis, strip_lanes, strip_columns, strips, lines, tile_rows, tiles_down, levels: [1, 1], block_tiles: 1 }
    }

    fn tiles(&self) -> u64 {
        self.lines.saturating_mul(self.tiles_down)
    }

    /// With so many tiles each.
    fn blocks(&self) -> u64 {
        self.tiles().div_ceil(self.block_tiles)
    }

    /// As the kernel reads it. A plan of more tiles than a grid has blocks is refused before.
    pub fn to_abi(self) -> abi::lookback_axis {
        let Self {
            axis: Axis { length, inner, .. },
            strip_lanes,
            strip_columns,
            strips,
            lines,
            tiles_down,
            levels: [period, group],
            block_tiles,
            ..
        } = self;
        let cut = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let [strip_lanes, strip_columns, strips, lines, tiles_down, period, group, block_tiles] =
            [strip_lanes, strip_columns, strips, lines, tiles_down, period, group, block_tiles].map(cut);
        abi::lookback_axis {
            length,
            inner,
            strips,
            lines,
            tiles_down,
            strip_lanes,
            strip_columns,
            period,
            group,
            block_tiles,
        }
    }
}

/// Threads side by side in a strip. Rows of 256 bytes, or of 64 where there would be fewer than four lines: tiles of a line
/// wait for each other, and the narrower a strip, the more rows a tile has. Where a thread can hold a column, all lanes of a
/// warp, so that none waits for another. Where more than one in four columns would be idle, as few as leave the fewest, but no
/// fewer than load a whole sector of the L2 cache, if there are so many columns.
fn strip_lanes(outer: u64, Axis { length, inner, .. }: Axis, width: u64, element_bytes: u64) -> u64 {
    const ROW_BYTES: u64 = 256;
    const LEAST_ROW_BYTES: u64 = 64;
    const ENOUGH_LINES: u64 = 4;
    let bytes = |lanes: u64| lanes * width * element_bytes;
    let mut most = WARP_LANES;
    let has_few_lines = |lanes: u64| outer.saturating_mul(inner.div_ceil(lanes * width)) < ENOUGH_LINES;
    let is_long = length > MOST_ROWS;
    while is_long && (bytes(most) > ROW_BYTES || bytes(most) > LEAST_ROW_BYTES && has_few_lines(most)) {
        most /= 2;
    }
    let covered = |lanes: u64| inner.next_multiple_of(lanes * width);
    let counts = || (0..=most.trailing_zeros()).rev().map(|power| 1 << power);
    let is_full = |lanes: &u64| 4 * inner >= 3 * covered(*lanes);
    let has_sectors = |lanes: &u64| bytes(*lanes) >= u64::from(abi::LOOKBACK_SECTOR_BYTES) || lanes * width >= inner;
    let full = counts().find(is_full);
    full.or_else(|| counts().filter(has_sectors).min_by_key(|&lanes| covered(lanes))).unwrap_or(1)
}

impl Planner {
    pub(super) fn down_columns(&mut self, kernel: Kernel) {
        // It scans in one way.
        let config =
            KernelConfig { pattern: Pattern::Shuffle, composition: Composition::ScanThenPropagate, ..self.config };
        let Some(columns) = Columns::of(kernel, self.problem, config, self.n) else { return };
        let tiles = columns.tiles();
        let mut step = self.step(kernel, config, Place::Input, Place::Output, columns.blocks());
        step.tiles = tiles;
        // Blocks that stay draw tickets, even if none waits for another.
        if columns.tiles_down > 1 || kernel.is_persistent() {
            step.descriptors = tiles.saturating_mul(columns.strip_columns);
        }
        self.steps.push(step);
    }
}

/// Blocks that keep a large GPU busy: about three on each multiprocessor.
const BUSY_BLOCKS: u64 = 400;

/// Rows of a thread where there are more: fewest, and most in registers.
const FEWEST_ROWS: u64 = 4;
const MOST_ROWS: u64 = 8;
/// Of elements of 2 bytes, where they are all that a warp or a few have of a column (measured on an H200).
const MOST_ROWS_OF_SHORT_COLUMNS: u64 = 16;
const MOST_THREADS: u32 = 256;

/// Rows of so many bytes of which a thread has so many bytes, a power of two.
fn rows_of_thread(bytes: u64, row_bytes: u64, most: u64) -> u32 {
    1 << (bytes / row_bytes).clamp(FEWEST_ROWS, most).ilog2()
}

/// What columns are scanned with where nobody chooses: in 256 threads, of which each has 128 bytes of items in registers or of
/// elements in shared memory, so that any GPU holds a tile.
pub(crate) fn suggested(strategy: Strategy, problem: Problem, axis: Axis, n: u64) -> ScanConfig {
    const THREAD_BYTES: u64 = 128;
    const LEAST_THREADS_FOR_BUSY_BLOCKS: u32 = 128;
    const FEWEST_ROWS_OF_SHORT_COLUMNS: u32 = 2;
    const MOST_LENGTH_OF_LONG_THREADS: u64 = 64;
    if strategy.row().shape.blocks == Blocks::Persistent {
        return narrow(problem, axis, n).unwrap_or_else(|| staged(problem, axis, n, THREAD_BYTES));
    }
    // As many threads as a column has rows for, up to those of which a multiprocessor has the registers for three blocks. Of
    // arrays that have too few tiles for a GPU they are fewer.
    let row_bytes = columns_of_thread(problem) * problem.state_bytes().max(size_of::<u32>()) as u64;
    let has_long_threads = problem.access_bytes() == 2 && axis.length <= MOST_LENGTH_OF_LONG_THREADS;
    let most = match has_long_threads {
        true => rows_of_thread(2 * THREAD_BYTES, row_bytes, MOST_ROWS_OF_SHORT_COLUMNS),
        false => rows_of_thread(THREAD_BYTES, row_bytes, MOST_ROWS),
    };
    let of_warp = Columns::in_registers(axis, problem, (most, abi::LOOKBACK_WARP_LANES), n);
    let fits_warp = of_warp.tiles_down == 1;
    // No more rows than there are.
    let shared_out = |length: u64| (length * of_warp.strip_lanes).div_ceil(WARP_LANES) as u32;
    let vt = if fits_warp { shared_out(axis.length).clamp(FEWEST_ROWS_OF_SHORT_COLUMNS, most) } else { most };
    let laid_out = |block_threads| Columns::in_registers(axis, problem, (vt, block_threads), n);
    // Blocks of two warps with a tile each are large enough to begin in time, and small enough to fill a multiprocessor
    // (docs/experiments.md).
    let mut block_threads = if fits_warp { abi::LOOKBACK_SHORT_COLUMNS_THREADS } else { MOST_THREADS };
    while !fits_warp && laid_out(block_threads / 2).tiles_down == 1 {
        block_threads /= 2;
    }
    while block_threads > LEAST_THREADS_FOR_BUSY_BLOCKS && laid_out(block_threads).blocks() < BUSY_BLOCKS {
        block_threads /= 2;
    }
    ScanConfig { vt, block_threads, ..ScanConfig::default() }
}

/// Those of the rows of a narrow matrix that are taken as elements.
fn narrow(problem: Problem, axis: Axis, n: u64) -> Option<ScanConfig> {
    let defined = problem.defined()?.narrow(n)?;
    let rows = Problem::from(defined);
    let config = ScanConfig::of_arrays(rows, defined, axis.length, None);
    let (inputs, state_bytes) = (defined.inputs().count(), defined.own_state_bytes());
    let measured = suggestion::rows_as_elements(rows.access_bytes() as u32, inputs, state_bytes);
    Some(measured.map_or(config, |(vt, block_threads)| ScanConfig { vt, block_threads, ..config }))
}

/// Tiles in shared memory, of which a thread has so many bytes.
fn staged(problem: Problem, axis: Axis, n: u64, thread_bytes: u64) -> ScanConfig {
    let row_bytes = staged_columns_of_thread(problem) * problem.bytes_of_all_inputs().max(1) as u64;
    let laid_out = |vt| Columns::staged(axis, problem, (vt, MOST_THREADS), n);
    let mut vt = rows_of_thread(thread_bytes, row_bytes, 16);
    // A tile that is not full takes as long as a full one. Where it is a part of what the scan gives, that does not depend on how
    // long columns are.
    while !problem.is_reproducible() && u64::from(vt) > FEWEST_ROWS && laid_out(vt).tile_rows > axis.length {
        vt /= 2;
    }
    // Where a quarter of a warp, whose vectors are read at one time, has those of several groups, an odd number of rows keeps
    // them in banks of their own. Where it has two, the smaller tile costs more.
    let is_narrow = laid_out(vt).strip_lanes < WARP_LANES / 8;
    ScanConfig { vt: if is_narrow { vt - 1 } else { vt }, block_threads: MOST_THREADS, ..ScanConfig::default() }
}

/// Look-ahead's tiles where it is the faster one down columns, as measured on an H200 (docs/problems.md): of elements of 2 or 4
/// bytes and states of 4, or of 4 and 8, from 32 MiB on. It needs columns of some length, full tiles, and rows of whole lines of
/// 16 bytes unless the tensor is one strip. The arrays themselves may begin anywhere: that costs time where there are several
/// strips, and is right.
pub(crate) fn ahead(problem: Problem, axis: Axis, n: u64, gpu: Architecture) -> Option<ScanConfig> {
    const LEAST_BYTES: u64 = 32 << 20;
    const LEAST_LENGTH: u64 = 128;
    // Of strips of half a warp, where a ring of three such tiles fits; of narrower ones, prefixes are what is waited for, and
    // smaller tiles do. Not of elements of 2 bytes, of which as many bytes have twice the columns (sums of bf16 were measured).
    const THREAD_BYTES: u64 = 256;
    const RING_BYTES: u64 = 3 * THREAD_BYTES * MOST_THREADS as u64;
    let element_bytes = problem.access_bytes() as u64;
    let is_measured = matches!((element_bytes, problem.state_bytes()), (2 | 4, 4) | (4, 8));
    if !gpu.has_clusters() || !is_measured || n < LEAST_BYTES / element_bytes || axis.length < LEAST_LENGTH {
        return None;
    }
    if let Some(config) = narrow(problem, axis, n) {
        return Some(config);
    }
    let small = suggested(Strategy::Lookahead, problem, axis, n);
    let Columns { strips, strip_lanes, .. } = Columns::staged(axis, problem, (small.vt, small.block_threads), n);
    let is_large = (strip_lanes >= WARP_LANES / 2 || element_bytes == 2) && gpu.shared_bytes() >= RING_BYTES;
    let config = if is_large { staged(problem, axis, n, THREAD_BYTES) } else { small };
    let columns = Columns::staged(axis, problem, (config.vt, config.block_threads), n);
    let narrowest = narrowest_bytes(problem);
    let has_lines = (axis.inner * narrowest).is_multiple_of(u64::from(abi::LOOKBACK_VECTOR_BYTES));
    ((has_lines || strips == 1) && 2 * axis.length > columns.tile_rows).then_some(config)
}

/// Bytes of an element of the narrowest array that is loaded.
fn narrowest_bytes(problem: Problem) -> u64 {
    problem.defined().and_then(|defined| defined.inputs().map(|(_, bytes)| bytes as u64).min()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Definition, ElementType, Operator, Segments};

    const HOPPER: Architecture = Architecture { major: 9, minor: 0 };

    #[test]
    fn a_named_strategy_and_auto_have_tiles_that_a_gpu_holds() {
        use crate::strategy::plan::{Plan, ScanRequest};
        use crate::strategy::{Mode, ring::Ring};
        for element in [ElementType::U8, ElementType::BF16, ElementType::F32, ElementType::F64] {
            for inner in [2, 3, 8, 100, 1024, 1 << 20] {
                let axis = Axis::new((1 << 28) / inner, inner);
                let (problem, n) = (sums_down(element, axis), axis.length * inner);
                let stages = |config: ScanConfig, gpu: Architecture| {
                    let aligned =
                        ScanRequest::aligned(problem.tuned_as(), Strategy::Lookahead, Mode::Inclusive, config, n);
                    let plan = Plan::new(&ScanRequest { problem, ..aligned }).unwrap();
                    Ring::of(plan.steps[0].key()).most_stages(gpu.shared_bytes())
                };
                for gpu in Architecture::CHECKED {
                    assert!(
                        stages(suggested(Strategy::Lookahead, problem, axis, n), gpu) >= 1,
                        "{element} {inner} {gpu}"
                    );
                    // Of a ring of one, nothing is copied ahead.
                    let ahead = ahead(problem, axis, n, gpu);
                    assert!(ahead.is_none_or(|config| stages(config, gpu) >= 2), "{element} {inner} {gpu}");
                }
                let is_measured = [ElementType::BF16, ElementType::F32].contains(&element) && axis.length >= 256;
                assert_eq!(ahead(problem, axis, n, HOPPER).is_some(), is_measured, "{element} {inner}");
            }
        }
    }

    #[test]
    fn rows_of_a_narrow_matrix_are_elements_of_the_tiles_that_were_measured() {
        let of = |element, inner| {
            let axis = Axis::new((1 << 28) / inner, inner);
            ahead(sums_down(element, axis), axis, 1 << 28, HOPPER).map(|config| (config.vt, config.block_threads))
        };
        assert_eq!([2, 4].map(|inner| of(ElementType::F32, inner)), [Some((12, 384)), Some((7, 384))]);
        assert_eq!([2, 4].map(|inner| of(ElementType::BF16, inner)), [Some((28, 256)), Some((12, 320))]);
        // States of a row are more than a vector.
        assert_eq!(of(ElementType::BF16, 8), Some((15, 256)));
        assert_eq!(
            [16, 32, 64, 128].map(|inner| of(ElementType::BF16, inner)),
            [15, 16, 16, 16].map(|vt| Some((vt, 256)))
        );
        assert_eq!([8, 16, 32, 64].map(|inner| of(ElementType::F32, inner)), [7, 8, 8, 16].map(|vt| Some((vt, 256))));
    }

    fn sums_down(element: ElementType, axis: Axis) -> Problem {
        let sums = Definition::of_numbers(Operator::Sum, element, element).unwrap().define().unwrap();
        sums.in_segments(Segments::Columns(axis)).into()
    }

    #[test]
    fn a_strip_is_as_wide_as_its_memory_is_fast_unless_too_many_lanes_were_idle() {
        const LONG: u64 = 1 << 20;
        let of = |inner| strip_lanes(1, Axis::new(LONG, inner), 4, 4);
        assert_eq!([1 << 26, 1000, 1024, 256].map(of), [16; 4]);
        // Four lines, and below as many as rows of 64 bytes allow.
        assert_eq!([128, 96, 64, 32, 16].map(of), [8, 4, 4, 4, 4]);
        assert_eq!([7, 5, 4, 3, 2].map(of), [2, 2, 1, 1, 1]);
        // 132 columns for 129, 36 for 33.
        assert_eq!([129, 33].map(of), [8, 2]);
        assert_eq!(strip_lanes(64, Axis::new(LONG, 64), 4, 4), 16);
        // A thread holds each column.
        let of = |inner| strip_lanes(1, Axis::new(8, inner), 4, 4);
        assert_eq!([1 << 26, 1024, 128, 64].map(of), [32, 32, 32, 16]);
        for inner in 2..2000 {
            for (width, bytes) in [(4, 1), (4, 2), (4, 4), (2, 8), (1, 16)] {
                for outer in [1, 100] {
                    let lanes = strip_lanes(outer, Axis::new(LONG, inner), width, bytes);
                    assert!(lanes.is_power_of_two() && lanes <= 32);
                    assert!(lanes == 1 || lanes / 2 * width < inner, "half of the lanes are idle for {inner} columns");
                }
            }
        }
    }

    #[test]
    fn a_thread_has_as_many_columns_as_the_widest_of_its_values_allows() {
        use ElementType::{BF16, F32, F64, U8};
        let of = |problem| (columns_of_thread(problem), suggested(Strategy::Lookback, problem, AXIS, 1 << 30).vt);
        const AXIS: Axis = Axis::new(1 << 20, 1 << 10);
        assert_eq!([F32, F64, BF16, U8].map(|element| of(sums_down(element, AXIS))), [(4, 8), (2, 8), (4, 8), (4, 8)]);
        let recurrence = Definition::linear_recurrence::<f32>().unwrap().define().unwrap();
        assert_eq!(of(recurrence.into()), (2, 8));
    }

    #[test]
    fn tiles_cover_every_column_and_are_as_short_as_the_columns() {
        let of = |length, inner, outer| {
            let axis = Axis::new(length, inner);
            let n = length * inner * outer;
            let problem = sums_down(ElementType::F32, axis);
            let config = suggested(Strategy::Lookback, problem, axis, n);
            let columns = Columns::in_registers(axis, problem, (config.vt, config.block_threads), n);
            let rows = u64::from(config.vt * config.block_threads) / columns.strip_lanes / columns.block_tiles;
            assert!(columns.tiles_down * rows >= length && columns.strips * columns.strip_columns >= inner);
            (config.block_threads, columns.lines, columns.tiles_down, columns.block_tiles)
        };
        assert_eq!(of(1 << 18, 1024, 1), (256, 16, 2048, 1));
        assert_eq!(of(8192, 1024, 8), (256, 128, 64, 1));
        assert_eq!(of(100, 1024, 64), (256, 1024, 1, 1));
        // Two warps have the rows of a column, one has those of shorter ones, and a thread those of the shortest.
        assert_eq!(of(17, 1024, 1 << 16), (64, 16 << 16, 1, 1));
        assert_eq!(of(16, 1024, 1 << 16), (64, 16 << 16, 1, 2));
        assert_eq!(of(4, 1024, 1 << 16), (64, 8 << 16, 1, 2));
        // Tiles of 256 threads would leave half of a GPU idle.
        assert_eq!(of(8192, 128, 1), (128, 4, 64, 1));
    }

    #[test]
    fn a_staged_tile_has_a_narrow_tensor_or_half_a_warp_of_columns() {
        let of = |outer, length, inner| {
            // Rows that are aligned might be elements.
            let axis = Axis { are_rows_aligned: false, ..Axis::new(length, inner) };
            let problem = sums_down(ElementType::F32, axis);
            let n = outer * length * inner;
            let large = || staged(problem, axis, n, 256);
            let ScanConfig { vt, block_threads, .. } = ahead(problem, axis, n, HOPPER).unwrap_or_else(large);
            let columns = Columns::staged(axis, problem, (vt, block_threads), n);
            assert!(columns.strips * columns.strip_columns >= inner && columns.strip_lanes <= WARP_LANES);
            (vt, columns.strip_columns, columns.lines, columns.tiles_down, columns.levels)
        };
        // 1 lane side by side and 32 groups of 8 warps, of two columns and of four; 16 and 2.
        assert_eq!(of(1, 1 << 25, 2), (15, 2, 1, (1_u64 << 25).div_ceil(15 * 256), [64, 8]));
        assert_eq!(of(1, 1 << 24, 4), (7, 4, 1, (1_u64 << 24).div_ceil(7 * 256), [64, 8]));
        assert_eq!(of(1, 1 << 20, 64), (16, 64, 1, 1 << 12, [32, 8]));
        assert_eq!(of(1, 1 << 21, 32), (8, 32, 1, 1 << 13, [64, 8]));
        assert_eq!(of(1, 1 << 18, 1024), (16, 64, 16, 1 << 10, [2, 2]));
        assert_eq!(of(4, 1 << 10, 1 << 16), (16, 64, 4096, 4, [1, 1]));
        // No more rows than there are.
        assert_eq!(of(4, 100, 1 << 16), (4, 64, 4096, 2, [1, 1]));
        // Strips of one width, and as wide as they need be.
        assert_eq!(of(1, 1000, 100), (16, 52, 2, 4, [16, 8]));
        // Of rows that are not whole lines there is one strip, as long as a warp is wide enough.
        assert_eq!(of(1, 1000, 101), (16, 101, 1, 8, [32, 8]));
        assert_eq!(of(1, 1000, 129).2, 2);
    }
}
