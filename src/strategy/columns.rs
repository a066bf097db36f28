//! How a scan down the columns of a tensor is laid out (`cuda/problem/columns.cuh`), and what its tiles are where nobody
//! chooses.

use super::planner::{KernelConfig, Place, Planner};
use super::{Composition, Pattern, ScanConfig, Strategy, StrategyChoice};
use crate::abi;
use crate::element::{Axis, Problem};

const WARP_LANES: u64 = abi::LOOKBACK_WARP_LANES as u64;

/// Neighbouring columns of a thread: what fits into 16 bytes of the widest element, and of the state in registers.
/// `columns_of_thread` in `cuda/problem/columns.cuh` is the same function.
fn columns_of_thread(problem: Problem) -> u64 {
    let widest = problem.access_bytes().max(problem.state_bytes()).max(size_of::<u32>());
    let mut width = 1;
    while 2 * width * widest <= abi::LOOKBACK_VECTOR_BYTES as usize {
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
    /// Tiles of each.
    tiles_down: u64,
}

impl Columns {
    /// Those of a scan of `n` elements, if it is one down columns.
    pub fn of(problem: Problem, config: KernelConfig, n: u64) -> Option<Self> {
        Some(Self::new(problem.axis()?, problem, (config.vt, config.block_threads), n))
    }

    fn new(axis: Axis, problem: Problem, (vt, block_threads): (u32, u32), n: u64) -> Self {
        let Axis { length, inner } = axis;
        let width = columns_of_thread(problem);
        let outer = n.div_ceil(length * inner);
        let strip_lanes = strip_lanes(outer, inner, width, problem.access_bytes() as u64);
        let strip_columns = strip_lanes * width;
        let strips = inner.div_ceil(strip_columns);
        let lines = outer * strips;
        let tile_rows = u64::from(vt) * u64::from(block_threads) / strip_lanes;
        Self { axis, strip_lanes, strip_columns, strips, lines, tiles_down: length.div_ceil(tile_rows) }
    }

    fn tiles(&self) -> u64 {
        self.lines.saturating_mul(self.tiles_down)
    }

    /// As the kernel reads it. A plan of more tiles than a grid has blocks is refused before.
    pub fn to_abi(self) -> abi::lookback_axis {
        let Self { axis: Axis { length, inner }, strip_lanes, strips, lines, tiles_down, .. } = self;
        let [strips, lines, tiles_down, strip_lanes] =
            [strips, lines, tiles_down, strip_lanes].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        abi::lookback_axis { length, inner, strips, lines, tiles_down, strip_lanes }
    }
}

/// Threads side by side in a strip. Rows of 256 bytes, or of 64 where there would be fewer than four lines: tiles of a line
/// wait for each other, and the narrower a strip, the more rows a tile has. Where more than one in four columns would be idle,
/// as few as leave the fewest, but no fewer than load a whole sector of the L2 cache, if there are so many columns.
fn strip_lanes(outer: u64, inner: u64, width: u64, element_bytes: u64) -> u64 {
    const ROW_BYTES: u64 = 256;
    const LEAST_ROW_BYTES: u64 = 64;
    const ENOUGH_LINES: u64 = 4;
    let bytes = |lanes: u64| lanes * width * element_bytes;
    let mut most = WARP_LANES;
    let has_few_lines = |lanes: u64| outer.saturating_mul(inner.div_ceil(lanes * width)) < ENOUGH_LINES;
    while bytes(most) > ROW_BYTES || (bytes(most) > LEAST_ROW_BYTES && has_few_lines(most)) {
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
    pub(super) fn down_columns(&mut self, columns: Columns) {
        let Some(kernel) = self.shape.kernel_of_columns else { return };
        // It scans in one way.
        let config =
            KernelConfig { pattern: Pattern::Shuffle, composition: Composition::ScanThenPropagate, ..self.config };
        let tiles = columns.tiles();
        let mut step = self.step(kernel, config, Place::Input, Place::Output, tiles);
        step.tiles = tiles;
        if columns.tiles_down > 1 {
            step.descriptors = tiles.saturating_mul(columns.strip_columns);
        }
        self.steps.push(step);
    }
}

/// Blocks that keep a large GPU busy: about three on each multiprocessor.
const BUSY_BLOCKS: u64 = 400;

/// What scans columns, where the user says no more than `strategy`: items of 128 bytes of registers a thread, and as many
/// threads as a column has rows for, up to 256, three blocks of which a multiprocessor has the registers for. Of arrays that
/// have too few tiles for a GPU they are fewer.
pub(crate) fn choose(strategy: StrategyChoice, problem: Problem, axis: Axis, n: u64) -> (Strategy, ScanConfig) {
    const ITEMS_BYTES: u64 = 128;
    const MOST_THREADS: u32 = 256;
    const LEAST_THREADS_FOR_BUSY_BLOCKS: u32 = 128;
    let strategy = match strategy {
        StrategyChoice::Auto => Strategy::Lookback,
        StrategyChoice::Named(strategy) => strategy,
    };
    let row_bytes = columns_of_thread(problem) * problem.state_bytes().max(size_of::<u32>()) as u64;
    let fit = (ITEMS_BYTES / row_bytes).clamp(4, 8);
    let vt = if fit.is_power_of_two() { fit as u32 } else { fit.next_power_of_two() as u32 / 2 };
    let laid_out = |block_threads| Columns::new(axis, problem, (vt, block_threads), n);
    let mut block_threads = MOST_THREADS;
    while block_threads > abi::LOOKBACK_WARP_LANES && laid_out(block_threads / 2).tiles_down == 1 {
        block_threads /= 2;
    }
    while block_threads > LEAST_THREADS_FOR_BUSY_BLOCKS && laid_out(block_threads).tiles() < BUSY_BLOCKS {
        block_threads /= 2;
    }
    (strategy, ScanConfig { vt, block_threads, ..ScanConfig::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Definition, ElementType, Operator, Segments};

    fn sums(element: ElementType) -> Problem {
        Problem::from(Definition::of_numbers(Operator::Sum, element, element).unwrap().define().unwrap())
    }

    #[test]
    fn a_strip_is_as_wide_as_its_memory_is_fast_unless_too_many_lanes_were_idle() {
        let of = |inner| strip_lanes(1, inner, 4, 4);
        assert_eq!([1 << 26, 1000, 1024, 256].map(of), [16; 4]);
        // Four lines, and below as many as rows of 64 bytes allow.
        assert_eq!([128, 96, 64, 32, 16].map(of), [8, 4, 4, 4, 4]);
        assert_eq!([7, 5, 4, 3, 2].map(of), [2, 2, 1, 1, 1]);
        // 132 columns for 129, 36 for 33.
        assert_eq!([129, 33].map(of), [8, 2]);
        assert_eq!(strip_lanes(64, 64, 4, 4), 16);
        for inner in 2..2000 {
            for (width, bytes) in [(4, 1), (4, 2), (4, 4), (2, 8), (1, 16)] {
                for outer in [1, 100] {
                    let lanes = strip_lanes(outer, inner, width, bytes);
                    assert!(lanes.is_power_of_two() && lanes <= 32);
                    assert!(lanes == 1 || lanes / 2 * width < inner, "half of the lanes are idle for {inner} columns");
                }
            }
        }
    }

    #[test]
    fn a_thread_has_as_many_columns_as_the_widest_of_its_values_allows() {
        use ElementType::{BF16, F32, F64, U8};
        let of = |problem| (columns_of_thread(problem), choose(StrategyChoice::Auto, problem, AXIS, 1 << 30).1.vt);
        const AXIS: Axis = Axis { length: 1 << 20, inner: 1 << 10 };
        assert_eq!([F32, F64, BF16, U8].map(|element| of(sums(element))), [(4, 8), (2, 8), (4, 8), (4, 8)]);
        let recurrence = Definition::linear_recurrence::<f32>().unwrap().define().unwrap();
        assert_eq!(of(recurrence.into()), (2, 8));
    }

    #[test]
    fn tiles_cover_every_column_and_are_as_short_as_the_columns() {
        let of = |length, inner, outer| {
            let axis = Axis { length, inner };
            let n = length * inner * outer;
            let problem = Problem::from(
                Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32)
                    .unwrap()
                    .define()
                    .unwrap()
                    .in_segments(Segments::Columns(axis)),
            );
            let (strategy, config) = choose(StrategyChoice::Auto, problem, axis, n);
            assert_eq!(strategy, Strategy::Lookback);
            let columns = Columns::new(axis, problem, (config.vt, config.block_threads), n);
            let rows = u64::from(config.vt * config.block_threads) / columns.strip_lanes;
            assert!(columns.tiles_down * rows >= length && columns.strips * columns.strip_columns >= inner);
            (config.block_threads, columns.lines, columns.tiles_down)
        };
        assert_eq!(of(1 << 18, 1024, 1), (256, 16, 2048));
        assert_eq!(of(8192, 1024, 8), (256, 128, 64));
        // One warp has more rows than the column.
        assert_eq!(of(4, 1024, 1 << 16), (32, 16 << 16, 1));
        assert_eq!(of(100, 1024, 64), (256, 1024, 1));
        // Tiles of 256 threads would leave half of a GPU idle.
        assert_eq!(of(8192, 128, 1), (128, 4, 64));
    }
}
