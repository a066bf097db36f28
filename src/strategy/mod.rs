//! The choices a user makes: strategy, mode, VT, block size, and how blocks and warps scan inside.

pub mod plan;
pub mod tuning;

use crate::abi;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A word that names no choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is no {what}; choose one of: {choices}")]
pub struct UnknownName {
    /// What was asked for, for example "strategy".
    pub what: &'static str,
    /// The word that was given.
    pub found: String,
    /// All words that would do.
    pub choices: String,
}

/// Declares an enum whose variants have names on the command line, in files and in plots.
macro_rules! named {
    ($(#[$meta:meta])* $visibility:vis enum $name:ident as $what:literal { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        $visibility enum $name { $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every choice, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name on the command line, in files and in plots.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;
            fn from_str(text: &str) -> Result<Self, UnknownName> {
                Self::ALL.iter().copied().find(|choice| choice.name() == text).ok_or_else(|| UnknownName {
                    what: $what,
                    found: text.to_owned(),
                    choices: Self::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}
pub(crate) use named;

named! {
    /// A way to scan a whole device array.
    pub enum Strategy as "strategy" {
        /// One thread, from front to back.
        Sequential = "sequential",
        /// Every thread sums its own prefix: O(n²) work.
        Naive = "naive",
        /// Hillis & Steele (1986): ⌈log₂ n⌉ steps over the whole array.
        HillisSteele = "hillis-steele",
        /// Blelloch (1990): an up-sweep and a down-sweep over a tree of the whole array.
        Blelloch = "blelloch",
        /// Tiles scan, their totals are scanned, the prefixes are added: 4n element-moves.
        ScanThenPropagate = "scan-then-propagate",
        /// Tiles reduce, their totals are scanned, tiles scan from their prefix: 3n element-moves.
        ReduceThenScan = "reduce-then-scan",
        /// One pass; each tile waits for its neighbour's inclusive prefix.
        Chained = "chained",
        /// One pass with decoupled look-back (Merrill & Garland, 2016).
        Lookback = "lookback",
        /// One block takes tile after tile and carries the prefix: for small arrays.
        SingleBlock = "single-block",
        /// One pass; each tile reads the totals of all tiles before it: for arrays that the GPU holds at once.
        OneWave = "one-wave",
        /// One pass by blocks that stay: tiles are fetched ahead of time, and their prefixes come from all aggregates.
        Lookahead = "lookahead",
        /// One thread block cluster takes a tile a block, and its blocks meet through distributed shared memory: for
        /// small arrays on GPUs of compute capability 9.0 and later.
        SingleCluster = "single-cluster",
    }
}

/// A strategy by name, or what the tuning table of the GPU names for the size ([`crate::strategy::tuning`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StrategyChoice {
    /// This one.
    Named(Strategy),
    /// The one that the tuning table names for the instance, the size and the GPU.
    Auto,
}

impl StrategyChoice {
    /// Every choice: the strategies in their order, then `auto`.
    pub const ALL: &'static [Self] = &{
        let mut all = [Self::Auto; Strategy::ALL.len() + 1];
        let mut index = 0;
        while index < Strategy::ALL.len() {
            all[index] = Self::Named(Strategy::ALL[index]);
            index += 1;
        }
        all
    };

    /// The name on the command line, in files and in plots.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Named(strategy) => strategy.name(),
            Self::Auto => "auto",
        }
    }
}

impl From<Strategy> for StrategyChoice {
    fn from(strategy: Strategy) -> Self {
        Self::Named(strategy)
    }
}

impl fmt::Display for StrategyChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for StrategyChoice {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Self::ALL.iter().copied().find(|choice| choice.name() == text).ok_or_else(|| UnknownName {
            what: "strategy",
            found: text.to_owned(),
            choices: Self::ALL.iter().map(|choice| choice.name()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl TryFrom<String> for StrategyChoice {
    type Error = UnknownName;
    fn try_from(text: String) -> Result<Self, UnknownName> {
        text.parse()
    }
}

impl From<StrategyChoice> for String {
    fn from(choice: StrategyChoice) -> Self {
        choice.name().to_owned()
    }
}

named! {
    /// What is computed from `x[0]`, `x[1]`, ….
    pub enum Mode as "mode" {
        /// `y[i] = x[0] ⊕ … ⊕ x[i]`
        Inclusive = "inclusive",
        /// `y[i] = x[0] ⊕ … ⊕ x[i−1]`, `y[0]` the identity; `x[n−1]` is never read.
        Exclusive = "exclusive",
        /// The exclusive scan computed as inclusive minus input; integer sums only.
        InclusiveMinusInput = "inclusive-minus-input",
    }
}

named! {
    /// The scan over one value a lane (or a thread of a block).
    pub enum Pattern as "scan pattern" {
        /// Kogge-Stone in registers, by warp shuffles.
        Shuffle = "shuffle",
        /// Hillis-Steele in shared memory, double-buffered.
        HillisSteele = "hillis-steele",
        /// Kogge-Stone in shared memory, one buffer, a barrier between read and write.
        KoggeStone = "kogge-stone",
        /// Brent-Kung in shared memory: fewest operators, twice the depth.
        BrentKung = "brent-kung",
        /// Sklansky in shared memory: divide and conquer, least depth.
        Sklansky = "sklansky",
        /// Blelloch's exclusive up-sweep and down-sweep in shared memory.
        Blelloch = "blelloch",
    }
}

named! {
    /// How a block composes the scan of its tile.
    pub enum Composition as "composition" {
        /// Each warp scans its part, the warp totals are scanned, then each warp adds its prefix.
        ScanThenPropagate = "scan-then-propagate",
        /// Each warp reduces its part, the warp totals are scanned, then each warp scans from its prefix.
        ReduceThenScan = "reduce-then-scan",
        /// The pattern spans the whole block, one row of the tile after the other.
        Block = "block",
    }
}

named! {
    /// How a tile descriptor is laid out in memory.
    pub enum Descriptor as "descriptor" {
        /// One 64-bit word: a value of up to 4 bytes and its tag.
        Packed64 = "packed-64",
        /// One 128-bit word: a value of up to 8 bytes and its tag.
        Packed128 = "packed-128",
        /// A tag and separate slots for aggregate and inclusive prefix, ordered by release and acquire.
        Split = "split",
    }
}

named! {
    /// How a block learns which tile is its own.
    pub enum TileOrder as "tile order" {
        /// From an atomic ticket: tiles are taken in the order in which blocks start.
        Ticket = "ticket",
        /// The block index; progress then rests on blocks starting in order, which CUDA does not promise.
        Static = "static",
    }
}

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
    pub const fn suggested(strategy: Strategy, element_bytes: usize, n: u64) -> Self {
        let array_bytes = n.saturating_mul(element_bytes as u64);
        let (vt, block_threads) = match strategy {
            Strategy::Sequential => (16, 32),
            // One value a thread is the textbook's; a few hide the latency of the memory.
            Strategy::Naive | Strategy::HillisSteele | Strategy::Blelloch => (4, 256),
            Strategy::ReduceThenScan
            | Strategy::ScanThenPropagate
            | Strategy::Chained
            | Strategy::Lookback
            | Strategy::Lookahead
                if array_bytes <= SMALL_BYTES =>
            {
                (8, 128)
            }
            Strategy::ReduceThenScan | Strategy::ScanThenPropagate => match element_bytes {
                1 => (48, 512),
                2 => (32, 512),
                4 => (16, 512),
                8 => (8, 512),
                _ => (4, 512),
            },
            Strategy::Chained | Strategy::Lookback => match (element_bytes, array_bytes <= MIDDLE_BYTES) {
                (1, _) => (48, 512),
                (2, _) => (64, 512),
                (4, true) => (32, 384),
                (4, false) => (56, 384),
                (8, true) => (24, 256),
                (8, false) => (48, 384),
                _ => (8, 384),
            },
            Strategy::SingleBlock => single_block_tile(element_bytes as u32, array_bytes),
            // 64 bytes a thread while there are tiles for every multiprocessor; then longer threads, so that fewer
            // descriptors are read and the array still is on the GPU at once.
            Strategy::OneWave => match (element_bytes, array_bytes <= ONE_WAVE_SHORT_BYTES) {
                (1, true) => (64, 256),
                (2, true) => (32, 256),
                (4, true) => (16, 256),
                (8, true) => (8, 256),
                (_, true) => (4, 256),
                (1, false) => (32, 512),
                (2, false) => (64, 256),
                (4, false) => (64, 128),
                (8, false) => (32, 128),
                (_, false) => (16, 128),
            },
            // Tiles of 32 KB: seven of them fit on a multiprocessor of a data centre's GPU, and its one prefix a tile
            // is known in time. Of u8 half as much, because 64 values a thread spill under other operators than the sum.
            Strategy::Lookahead => match element_bytes {
                1 => (32, 512),
                2 => (32, 512),
                4 => (16, 512),
                8 => (16, 256),
                _ => (8, 256),
            },
            Strategy::SingleCluster => single_cluster_tile(element_bytes as u32, array_bytes),
        };
        Self {
            vt,
            block_threads,
            pattern: Pattern::Shuffle,
            composition: match strategy {
                Strategy::Lookahead => Composition::ReduceThenScan,
                // Narrow elements are scanned several at a time, and a prefix added to them afterwards is not.
                _ if element_bytes < 4 => Composition::ReduceThenScan,
                _ => Composition::ScanThenPropagate,
            },
            descriptor: None,
            tile_order: TileOrder::Ticket,
        }
    }

    /// The configurations that `suggested` chooses from for a strategy and an element size.
    pub fn suggestions(strategy: Strategy, element_bytes: usize) -> [Self; 3] {
        [0, MIDDLE_BYTES, u64::MAX].map(|bytes| Self::suggested(strategy, element_bytes, bytes / element_bytes as u64))
    }
}

/// Up to here an array counts as small: 2^16 elements of 4 bytes.
const SMALL_BYTES: u64 = 1 << 18;
/// Up to here as middle: 2^23 elements of 4 bytes.
const MIDDLE_BYTES: u64 = 1 << 25;

/// Up to here, 2^18 elements of 4 bytes, `one-wave` takes short threads.
const ONE_WAVE_SHORT_BYTES: u64 = 1 << 20;

/// VT and threads of `single-block`: 16 bytes a lane and as many warps as the array needs. More than 8 warps cost
/// more to join than they save, so from there on threads get longer, up to 4 vectors or 16 values; then more warps
/// again, and what is left takes more than one tile.
const fn single_block_tile(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
    const JOINED_SOON: u32 = 256;
    let vector = abi::LOOKBACK_VECTOR_BYTES / element_bytes;
    let most_vectors = if element_bytes < 4 { element_bytes } else { 4 };
    let (mut vectors, mut threads) = (1, abi::LOOKBACK_WARP_LANES);
    while ((vectors * threads * abi::LOOKBACK_VECTOR_BYTES) as u64) < array_bytes {
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

/// VT and threads of `single-cluster`: 8 to 16 blocks have a tile while a cluster holds the array at all, and threads
/// get longer before blocks get more warps to join. A thread of 64 values of one or two bytes would not have the registers
/// for this tile and the next; there more threads take them, and of the largest arrays more rounds.
const fn single_cluster_tile(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
    const MOST_VALUES: u32 = 32;
    const MOST_THREADS: u32 = 512;
    let (vectors, threads) = if array_bytes <= 1 << 15 {
        (1, 256)
    } else if array_bytes <= 1 << 17 {
        (2, 256)
    } else if array_bytes <= 1 << 18 {
        (4, 256)
    } else if array_bytes <= 1 << 19 {
        (4, 512)
    } else {
        (8, 512)
    };
    let vt = vectors * (abi::LOOKBACK_VECTOR_BYTES / element_bytes);
    if vt > MOST_VALUES { (MOST_VALUES, MOST_THREADS) } else { (vt, threads) }
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
    #[error("the operator '{operator}' is not defined on {element}")]
    NoSuchInstance {
        /// The operator that was asked for.
        operator: String,
        /// The element type that was asked for.
        element: String,
    },
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

impl Strategy {
    /// Whether VT matters: the array is cut into tiles of block threads × VT.
    pub const fn has_tiles(self) -> bool {
        self.has_patterns() || matches!(self, Self::Lookahead)
    }

    /// Whether pattern and composition matter. The warps of [`Self::Lookahead`] never meet inside a tile, so they
    /// always scan by shuffles.
    pub const fn has_patterns(self) -> bool {
        matches!(self, Self::ScanThenPropagate | Self::ReduceThenScan | Self::SingleBlock | Self::SingleCluster)
            || (self.is_single_pass() && !matches!(self, Self::Lookahead))
    }

    /// Whether tiles meet through descriptors in one launch.
    pub const fn is_single_pass(self) -> bool {
        matches!(self, Self::Chained | Self::Lookback | Self::OneWave | Self::Lookahead)
    }
}
