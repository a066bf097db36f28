//! What a user chooses inside a strategy, what is suggested where he does not, and what cannot be launched.

use super::{Composition, Descriptor, Pattern, Strategy, TileOrder, Tiling};
use crate::abi;
use crate::element::NoSuchInstance;
use serde::{Deserialize, Serialize};

/// The choices inside a strategy. All of them are run-time choices of the user: the CUDA device compiles
/// a kernel for them on demand, the CPU device reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScanConfig {
    /// Values per thread, 1 … 64.
    pub vt: u32,
    /// Threads per block that hold values: a multiple of 32, 32 … 1024. `lookahead` adds four warps, so that it
    /// takes up to 896.
    pub block_threads: u32,
    /// The scan over one value a lane.
    pub pattern: Pattern,
    /// How a block composes the scan of its tile.
    pub composition: Composition,
    /// Layout of the tile descriptors; `None` takes the smallest that holds the element.
    pub descriptor: Option<Descriptor>,
    /// How a block learns which tile is its own.
    pub tile_order: TileOrder,
}

impl Default for ScanConfig {
    fn default() -> Self {
        Self {
            vt: 32,
            block_threads: 256,
            pattern: Pattern::Shuffle,
            composition: Composition::ScanThenPropagate,
            descriptor: None,
            tile_order: TileOrder::Ticket,
        }
    }
}

impl ScanConfig {
    /// What to take where the user says nothing, for small, middle and large arrays: what did best for sums
    /// on an H100 (README, "Which VT?").
    ///
    /// A block of a small scan works alone, so short threads finish sooner; a large scan is bound by how
    /// many bytes are in flight and how seldom tiles wait for each other, so long threads win.
    pub fn suggested(strategy: Strategy, element_bytes: usize, n: u64) -> Self {
        let row = strategy.row();
        let (vt, block_threads) = (row.suggested)(element_bytes as u32, n.saturating_mul(element_bytes as u64));
        // Narrow elements are scanned several at a time, and a prefix added to them afterwards is not. Where warps scan
        // by shuffles alone, their prefix is known before.
        let scans_from_prefix = element_bytes < 4 || row.tiling == Tiling::Shuffled;
        let composition = if scans_from_prefix { Composition::ReduceThenScan } else { Composition::ScanThenPropagate };
        Self { vt, block_threads, composition, ..Self::default() }
    }

    /// The configurations that `suggested` chooses from for a strategy and an element size.
    pub fn suggestions(strategy: Strategy, element_bytes: usize) -> [Self; 3] {
        [0, suggestion::MIDDLE_BYTES, u64::MAX]
            .map(|bytes| Self::suggested(strategy, element_bytes, bytes / element_bytes as u64))
    }
}

/// VT and threads a block by bytes of an element and of the array, for each strategy's row.
pub(super) mod suggestion {
    use crate::abi;

    /// Up to here an array counts as small: 2^16 elements of 4 bytes.
    const SMALL_BYTES: u64 = 1 << 18;
    /// Up to here as middle: 2^23 elements of 4 bytes.
    pub(super) const MIDDLE_BYTES: u64 = 1 << 25;
    /// Up to here, 2^18 elements of 4 bytes, `one-wave` takes short threads.
    const ONE_WAVE_SHORT_BYTES: u64 = 1 << 20;
    const SMALL: (u32, u32) = (8, 128);

    pub fn three_phase(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
        match element_bytes {
            _ if array_bytes <= SMALL_BYTES => SMALL,
            1 => (48, 512),
            2 => (32, 512),
            4 => (16, 512),
            8 => (8, 512),
            _ => (4, 512),
        }
    }

    pub fn look_back(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
        match (element_bytes, array_bytes <= MIDDLE_BYTES) {
            _ if array_bytes <= SMALL_BYTES => SMALL,
            (1, _) => (48, 512),
            (2, _) => (64, 512),
            (4, true) => (32, 384),
            (4, false) => (56, 384),
            (8, true) => (24, 256),
            (8, false) => (48, 384),
            _ => (8, 384),
        }
    }

    /// Tiles of 32 KB: seven of them fit on a multiprocessor of a data centre's GPU, and its one prefix a tile is known
    /// in time. Of u8 half as much, because 64 values a thread spill under other operators than the sum.
    pub fn look_ahead(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
        match element_bytes {
            _ if array_bytes <= SMALL_BYTES => SMALL,
            1 | 2 => (32, 512),
            4 => (16, 512),
            8 => (16, 256),
            _ => (8, 256),
        }
    }

    /// 64 bytes a thread while there are tiles for every multiprocessor; then longer threads, so that fewer
    /// descriptors are read and the array still is on the GPU at once.
    pub fn one_wave(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
        if array_bytes <= ONE_WAVE_SHORT_BYTES {
            return (64 / element_bytes, 256);
        }
        match element_bytes {
            1 => (32, 512),
            2 => (64, 256),
            4 => (64, 128),
            8 => (32, 128),
            _ => (16, 128),
        }
    }

    /// 16 bytes a lane and as many warps as the array needs. More than 8 warps cost more to join than they save, so
    /// from there on threads get longer, up to 4 vectors or 16 values; then more warps again, and what is left takes
    /// more than one tile.
    pub fn single_block(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
        const JOINED_SOON: u32 = 256;
        let vector = abi::LOOKBACK_VECTOR_BYTES / element_bytes;
        let most_vectors = if element_bytes < 4 { element_bytes } else { 4 };
        let (mut vectors, mut threads) = (1, abi::LOOKBACK_WARP_LANES);
        while u64::from(vectors * threads * abi::LOOKBACK_VECTOR_BYTES) < array_bytes {
            if threads < JOINED_SOON {
                threads *= 2;
            } else if vectors < most_vectors {
                vectors *= 2;
            } else if threads < abi::LOOKBACK_MAXIMUM_BLOCK_THREADS {
                threads *= 2;
            } else {
                break;
            }
        }
        (vectors * vector, threads)
    }

    /// 8 to 16 blocks have a tile while a cluster holds the array at all, and threads get longer before blocks get more
    /// warps to join. A thread of 64 values of one or two bytes would not have the registers for this tile and the
    /// next; there more threads take them, and of the largest arrays more rounds.
    pub fn single_cluster(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
        const MOST_VALUES: u32 = 32;
        const MOST_THREADS: u32 = 512;
        const STEPS: [(u64, (u32, u32)); 4] =
            [(1 << 15, (1, 256)), (1 << 17, (2, 256)), (1 << 18, (4, 256)), (1 << 19, (4, 512))];
        let step = STEPS.into_iter().find(|&(up_to, _)| array_bytes <= up_to);
        let (vectors, threads) = step.map_or((8, MOST_THREADS), |(_, tile)| tile);
        let vt = vectors * (abi::LOOKBACK_VECTOR_BYTES / element_bytes);
        if vt > MOST_VALUES { (MOST_VALUES, MOST_THREADS) } else { (vt, threads) }
    }
}

/// A configuration that cannot be launched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// VT outside 1 … 64.
    #[error("VT (values per thread) is {0}; it must be from 1 to {max}", max = abi::LOOKBACK_MAXIMUM_VT)]
    Vt(u32),
    /// Threads per block not a multiple of 32 from 32 to 1024.
    #[error("threads per block is {0}; it must be a multiple of 32 from 32 to {max}", max = abi::LOOKBACK_MAXIMUM_BLOCK_THREADS)]
    BlockThreads(u32),
    /// No room for the warps that a strategy adds.
    #[error("threads per block is {block_threads}; {strategy} adds {added} to them, and a block has at most {max}", max = abi::LOOKBACK_MAXIMUM_BLOCK_THREADS)]
    HelperThreads {
        /// The strategy.
        strategy: Strategy,
        /// Threads that hold values.
        block_threads: u32,
        /// Those that it adds.
        added: u32,
    },
    /// Shuffles exchange values inside a warp only.
    #[error("the scan pattern 'shuffle' works inside a warp; with the composition 'block' choose another pattern")]
    ShuffleAcrossBlock,
    /// The element does not fit the descriptor.
    #[error(
        "the descriptor '{descriptor}' holds values of up to {holds} bytes, the element has {bytes}; choose 'split' or leave the choice out"
    )]
    DescriptorTooSmall {
        /// The layout that was asked for.
        descriptor: Descriptor,
        /// Bytes of value it holds.
        holds: usize,
        /// Bytes of the element.
        bytes: usize,
    },
    /// 'inclusive minus input' needs an inverse.
    #[error("the mode 'inclusive-minus-input' exists for integer sums only, not for {0}; choose 'exclusive'")]
    NoInverse(String),
    /// The operator is not defined on the element type.
    #[error(transparent)]
    NoSuchInstance(#[from] NoSuchInstance),
    /// The GPU is too old for the strategy.
    #[error(
        "the strategy '{strategy}' needs thread block clusters, which GPUs have from compute capability 9.0 on; this one \
         has {major}.{minor}: choose '{}' for arrays of up to 64 KiB, '{}' for larger ones",
        Strategy::SingleBlock,
        Strategy::OneWave
    )]
    NoClusters {
        /// The strategy that was asked for.
        strategy: Strategy,
        /// Compute capability of the GPU, in front of the point.
        major: i32,
        /// And behind it.
        minor: i32,
    },
    /// More elements than a grid of blocks can cover.
    #[error("{n} elements need {blocks} blocks, a grid has at most 2^31 - 1; raise VT or threads per block")]
    TooManyBlocks {
        /// Elements asked for.
        n: u64,
        /// Blocks they would need.
        blocks: u64,
    },
}
