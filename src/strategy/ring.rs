//! The ring of tiles that a block which stays has in shared memory.

use super::columns::staged_columns_of_thread;
use super::planner::{KernelConfig, KernelKey};
use super::{Kernel, ScanConfig, suggestion};
use crate::abi;
use crate::element::{Problem, Verb};
use crate::gpu::Architecture;

const LINE: u64 = abi::LOOKBACK_CACHE_LINE_BYTES as u64;
/// A tile's index, and a barrier of two words and a count, where the architecture has none.
const INDEX_BYTES: u64 = 8;
const BARRIER_BYTES: u64 = 12;

/// What the ring of a kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// From one stage to the next, in dynamic shared memory.
    pub stage_bytes: u64,
    /// Beside the stages there.
    slack_bytes: u64,
    /// What the warps tell each other in shared memory that the kernel declares: of a stage, and once.
    told_bytes: [u64; 2],
    /// The most stages.
    most: u32,
}

impl Ring {
    /// That of a kernel which has one ([`Kernel::has_ring`](crate::strategy::Kernel::has_ring)).
    pub fn of(key: KernelKey) -> Self {
        match key.0 {
            Kernel::SortByDigit | Kernel::SortInBlock => Self::of_sort(key.1, (key.2.vt, key.2.block_threads)),
            Kernel::Expand => Self::of_expansion(key.2),
            kernel if kernel.scans_columns() => Self::of_columns(key),
            _ => Self::of_tiles(key),
        }
    }

    /// Kernels of `cuda/scan/radix_sort.cuh`: their one tile, of which the counts of the warps and one array at a time lie there,
    /// and a table of the digits.
    fn of_sort(problem: Problem, (vt, block_threads): (u32, u32)) -> Self {
        const DIGITS: u64 = abi::LOOKBACK_DIGITS as u64;
        let warps = u64::from(block_threads / abi::LOOKBACK_WARP_LANES);
        let elements = u64::from(vt) * u64::from(block_threads) * problem.access_bytes().max(2) as u64;
        Self {
            stage_bytes: warps * DIGITS * 4 + elements,
            slack_bytes: 0,
            // Of each digit two numbers of 4 bytes and a count; which tile it is, and at which epoch.
            told_bytes: [0, DIGITS * (2 * 4 + problem.state_bytes() as u64) + 2 * INDEX_BYTES],
            most: 1,
        }
    }

    /// `expand` in `cuda/scan/expand.cuh`: a mark for each step of its one tile, one of each warp, and where the tile begins and ends.
    fn of_expansion(config: KernelConfig) -> Self {
        const WARPS: u32 = abi::LOOKBACK_MAXIMUM_BLOCK_THREADS / abi::LOOKBACK_WARP_LANES;
        let told_bytes = [0, u64::from(WARPS) * 4 + 2 * 8];
        Self { stage_bytes: config.tile_elements() * 4, slack_bytes: 0, told_bytes, most: 1 }
    }

    /// The tile of a sort where a multiprocessor has so much shared memory: as is wanted, values a thread and threads, or halved
    /// until it fits. As many blocks have to fit together as have 1024 threads, or one of more; the only block of a sort by itself.
    fn largest_of_sort(problem: Problem, wanted: (u32, u32), n: u64, shared_bytes: u64) -> (u32, u32) {
        const THREADS: u32 = 1024;
        let (mut vt, mut block_threads) = wanted;
        let is_one_tile = n <= u64::from(vt) * u64::from(block_threads);
        let share = shared_bytes / if is_one_tile { 1 } else { u64::from((THREADS / block_threads).max(1)) };
        while block_threads > abi::LOOKBACK_WARP_LANES
            && Self::of_sort(problem, (vt, block_threads)).most_stages(share) == 0
        {
            if vt > 1 {
                vt /= 2;
            } else {
                block_threads /= 2;
            }
        }
        (vt, block_threads)
    }

    /// `lookahead_ring` and `make_stages` in `cuda/scan/lookahead.cuh`: stages lie as tiles do in lines of the L2 cache.
    fn of_tiles((_, problem, config): KernelKey) -> Self {
        // For each scanning warp a row on its way to a misaligned output, and a total; in each stage a prefix for each
        // scanning warp, two for each that reduces, and one.
        const ROW_BYTES: u64 = 33 * 16;
        const VALUE_BYTES: u64 = 16;
        const BARRIERS: u64 = 5;
        let warps = u64::from(config.block_threads / abi::LOOKBACK_WARP_LANES);
        let shares = if problem.defined().is_some() { 2 * u64::from(abi::LOOKBACK_ARRAYS_REDUCING_WARPS) } else { 4 };
        let values = (warps + shares + 1) * problem.state_bytes() as u64;
        Self {
            stage_bytes: problem.stage_bytes(config.tile_elements()),
            slack_bytes: u64::from(abi::LOOKBACK_CACHE_LINE_BYTES - abi::LOOKBACK_VECTOR_BYTES),
            told_bytes: [values + INDEX_BYTES + BARRIERS * BARRIER_BYTES, 512 + warps * (ROW_BYTES + VALUE_BYTES)],
            most: abi::LOOKBACK_MAXIMUM_STAGES,
        }
    }

    /// `columns_stage` and `columns_ring` in `cuda/problem/columns_ahead.cuh`.
    fn of_columns((_, problem, config): KernelKey) -> Self {
        const BARRIERS: u64 = 6;
        let width = staged_columns_of_thread(problem);
        let elements = config.tile_elements() * width;
        let part =
            |bytes: usize| (elements * bytes as u64 + u64::from(abi::LOOKBACK_VECTOR_BYTES)).next_multiple_of(LINE);
        let parts: u64 = problem.defined().map_or(0, |defined| defined.inputs().map(|(_, bytes)| part(bytes)).sum());
        let warps = u64::from(config.block_threads / abi::LOOKBACK_WARP_LANES);
        let states = (warps + 2) * u64::from(abi::LOOKBACK_WARP_LANES) * width * problem.state_bytes() as u64;
        Self {
            stage_bytes: parts + states.next_multiple_of(LINE),
            slack_bytes: 0,
            told_bytes: [INDEX_BYTES + BARRIERS * BARRIER_BYTES, 512],
            most: abi::LOOKBACK_MAXIMUM_STAGES,
        }
    }

    /// Dynamic shared memory of a block that keeps so many tiles.
    pub fn bytes(&self, stages: u32) -> u64 {
        u64::from(stages) * self.stage_bytes + self.slack_bytes
    }

    /// Tiles that a block holds at one time: as many as fit into `shared_bytes` beside what its warps tell each other, at most
    /// 12, and of a sort one; 0 if not even one does.
    pub fn most_stages(&self, shared_bytes: u64) -> u32 {
        let [of_stage, once] = self.told_bytes;
        let fit = shared_bytes.saturating_sub(once + self.slack_bytes) / (self.stage_bytes + of_stage);
        fit.min(u64::from(self.most)) as u32
    }
}

impl ScanConfig {
    /// That of what is no scan, whatever the strategy.
    pub fn of_no_scan(problem: Problem, n: u64, architecture: Architecture) -> Self {
        let (vt, block_threads) = match problem.verb() {
            Verb::Sort if let Some(key) = problem.sort_key() => {
                let is_alone = problem.bytes_of_all_inputs() == key.bytes();
                let wanted = suggestion::sort(key, problem.access_bytes() as u32, is_alone, n);
                Ring::largest_of_sort(problem, wanted, n, architecture.shared_bytes())
            }
            Verb::Expand => suggestion::EXPANSION,
            Verb::Scatter => suggestion::SCATTER,
            Verb::Total => {
                let bytes = problem.access_bytes();
                suggestion::three_phase(bytes as u32, n * bytes as u64)
            }
            _ => suggestion::histogram(problem.bytes_of_all_inputs() as u32, n),
        };
        Self { vt, block_threads, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Definition, ElementType, Instance, Operator};
    use crate::strategy::{Alignment, Composition, Descriptor, Mode, Pattern, TileOrder};

    #[test]
    fn as_many_tiles_are_held_as_fit() {
        let of = |major, minor, vt, block_threads| {
            let config = KernelConfig {
                vt,
                block_threads,
                mode: Mode::Inclusive,
                pattern: Pattern::Shuffle,
                composition: Composition::ReduceThenScan,
                descriptor: Descriptor::Packed64,
                tile_order: TileOrder::Ticket,
                alignment: Alignment::Any,
            };
            let sums = Instance::new(ElementType::U32, Operator::Sum).unwrap();
            let ring = Ring::of((Kernel::Lookahead, sums.into(), config));
            // A line beside each tile of 4-byte values, and once what a tile may lie behind the begin of a line.
            let tile = u64::from(4 * vt * block_threads);
            assert_eq!(ring.bytes(3), 3 * (tile + 128) + 112);
            ring.most_stages(Architecture { major, minor }.shared_bytes())
        };
        // Tiles of 16 KB.
        let held = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)].map(|(a, b)| of(a, b, 32, 128));
        assert_eq!(held, [3, 9, 5, 5, 12, 12, 5]);
        assert_eq!(of(9, 0, 24, 256), 9);
        assert_eq!(of(9, 0, 64, 928), 0);
    }

    #[test]
    fn every_sort_has_a_tile_that_fits_wherever_kernels_are_checked() {
        #[repr(C)]
        #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
        struct Wide([u64; 2]);

        impl crate::element::ArrayElement for Wide {
            const CUDA_TYPE: &'static str = "wide";
        }

        let widths = |sort: Definition, arrays: &[usize]| {
            arrays.iter().enumerate().fold(sort, |sort, (place, bytes)| match bytes {
                1 => sort.with::<u8>(&format!("a{place}")),
                2 => sort.with::<u16>(&format!("a{place}")),
                8 => sort.with::<f64>(&format!("a{place}")),
                _ => sort.with::<Wide>(&format!("a{place}")),
            })
        };
        let sorts = [
            widths(Definition::sort::<u8>().unwrap(), &[]),
            widths(Definition::sort::<f64>().unwrap(), &[]),
            widths(Definition::sort::<u8>().unwrap(), &[2]),
            widths(Definition::sort::<u8>().unwrap(), &[8]),
            widths(Definition::sort::<u64>().unwrap(), &[8, 8, 8]),
            widths(Definition::sort::<u64>().unwrap(), &[16, 16, 16]),
        ];
        for defined in sorts.map(|sort| sort.define().unwrap()) {
            for n in [1_000, 1 << 20, 1 << 26, 1 << 33] {
                let problem = Problem::from(defined.of_length(n));
                for architecture in Architecture::CHECKED {
                    let ScanConfig { vt, block_threads, .. } = ScanConfig::of_no_scan(problem, n, architecture);
                    let ring = Ring::of_sort(problem, (vt, block_threads));
                    assert_eq!(ring.most_stages(architecture.shared_bytes()), 1, "{problem} of {n} on {architecture}");
                }
            }
            // And one that holds all of few.
            let few = Problem::from(defined.of_length(1 << 13));
            let hopper = Architecture { major: 9, minor: 0 };
            let ScanConfig { vt, block_threads, .. } = ScanConfig::of_no_scan(few, 1 << 13, hopper);
            assert!(vt * block_threads >= 1 << 13 || few.access_bytes() > 8, "{few}: {vt} x {block_threads}");
        }
    }
}
