//! What a user chooses inside a strategy, what is suggested where he does not, and what cannot be launched.

use super::call_error::CallError;
use super::{Composition, Descriptor, Mode, Pattern, TileOrder};
use crate::abi;
use crate::element::{DefinitionError, ElementType, NoSuchInstance, NoSuchProblem};
use serde::{Deserialize, Serialize};

/// Elements of one access of a lane: the largest power of two that divides VT and fits into 16 bytes.
/// `access_width` in `cuda/config.cuh` is the same function.
pub(super) const fn access_width(vt: u32, element_bytes: usize) -> u32 {
    let mut width = 1;
    while vt.is_multiple_of(2 * width) && 2 * width as usize * element_bytes <= abi::LOOKBACK_VECTOR_BYTES as usize {
        width *= 2;
    }
    width
}

/// The choices inside a strategy. All of them are run-time choices of the user: the CUDA device compiles
/// a kernel for them on demand, the CPU device reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScanConfig {
    /// Values per thread, 1 … 64.
    pub vt: u32,
    /// Threads per block that hold values: a multiple of 32, 32 … 1024, together with those of the warps that a strategy adds
    /// ([`ConfigError::HelperThreads`] says how many, where there are too many).
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
    /// Elements of a tile.
    pub(crate) const fn tile_elements(&self) -> u64 {
        self.vt as u64 * self.block_threads as u64
    }

    /// Whether some strategy takes it.
    ///
    /// # Errors
    /// When VT, the threads of a block, or pattern and composition together are nothing that any strategy takes.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { vt, block_threads, pattern, composition, .. } = *self;
        if !(1..=abi::LOOKBACK_MAXIMUM_VT).contains(&vt) {
            return Err(ConfigError::Vt(vt));
        }
        if !(abi::LOOKBACK_WARP_LANES..=abi::LOOKBACK_MAXIMUM_BLOCK_THREADS).contains(&block_threads)
            || !block_threads.is_multiple_of(abi::LOOKBACK_WARP_LANES)
        {
            return Err(ConfigError::BlockThreads(block_threads));
        }
        if pattern == Pattern::Shuffle && composition == Composition::Block {
            return Err(ConfigError::ShuffleAcrossBlock);
        }
        Ok(())
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
    /// No room for the threads of the warps that a strategy adds to those that hold values.
    #[error("threads per block is {block_threads}; {strategy} adds {added} to them, and a block has at most {max}: choose up to {}", abi::LOOKBACK_MAXIMUM_BLOCK_THREADS - added, max = abi::LOOKBACK_MAXIMUM_BLOCK_THREADS)]
    HelperThreads { strategy: &'static str, block_threads: u32, added: u32 },
    /// Shuffles exchange values inside a warp only.
    #[error("the scan pattern 'shuffle' works inside a warp; with the composition 'block' choose another pattern")]
    ShuffleAcrossBlock,
    /// The element does not fit the descriptor.
    #[error(
        "the descriptor '{descriptor}' holds values of up to {} bytes, the element has {bytes}; choose {} or leave the choice out",
        descriptor.holds(), Descriptor::that_hold(*bytes).map(|fits| format!("'{fits}'")).collect::<Vec<_>>().join(" or ")
    )]
    DescriptorTooSmall { descriptor: Descriptor, bytes: usize },
    /// 'inclusive minus input' needs an inverse.
    #[error("the mode 'inclusive-minus-input' exists for integer sums only, not for {0}; choose 'exclusive'")]
    NoInverse(String),
    /// A compaction or a sort that is to store something else, or elsewhere, than it can.
    #[error("{0} is no scan: it goes by inclusive counts, into other arrays than those that it loads")]
    Moved(String),
    /// An output of another type does not fit where the input was.
    #[error("a scan in place cannot load {input} and store {output}; give it an output of its own")]
    InPlace { input: ElementType, output: ElementType },
    /// The strategy loads again what it has stored.
    #[error(
        "the strategy '{strategy}' works in the output, so it scans one type of values, not {problem}; choose 'auto'"
    )]
    WorksInOutput { strategy: &'static str, problem: String },
    /// The strategy has no tiles of several arrays.
    #[error("the strategy '{strategy}' scans one array of numbers, not {problem}; choose 'auto' or 'lookback'")]
    TakesNoArrays { strategy: &'static str, problem: String },
    /// The strategy has no kernel that scans down columns.
    #[error("the strategy '{strategy}' scans along rows, and {problem} down columns; choose {}", Self::OF_COLUMNS)]
    TakesNoColumns { strategy: &'static str, problem: String },
    /// The strategy loads tiles by bulk copies, which know of no rows.
    #[error(
        "the strategy '{strategy}' loads tiles that lie in one piece, which those of {problem} do not; choose 'auto' or 'lookback'"
    )]
    TakesNoStrides { strategy: &'static str, problem: String },
    /// The strategy has no kernels that do it: most scan and do nothing else.
    #[error("the strategy '{strategy}' does no such thing; for the {problem} choose 'auto' or 'lookback'")]
    ScansAlone { strategy: &'static str, problem: String },
    /// Too many bins for the shared memory of a cluster's blocks, or elements for their counts of 4 bytes.
    #[error(
        "the strategy '{strategy}' counts fewer than 2^32 elements in up to {} bins; for the {problem} of {n} elements in {bins} bins choose \
         'auto' or 'lookback'",
        abi::LOOKBACK_CLUSTER_BINS
    )]
    ClusterBins { strategy: &'static str, problem: String, bins: u32, n: u64 },
    /// The strategy keeps totals in an array, and they are no elements of one.
    #[error(
        "the strategy '{strategy}' keeps totals of 1, 2, 4, 8 or 16 bytes, and those of {problem} have {state_bytes}, with the mark \
         of segments or the count of groups; choose 'auto' or 'lookback'"
    )]
    SpineOfStates { strategy: &'static str, problem: String, state_bytes: usize },
    /// A definition that no kernel can be made of.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// Totals of tiles are loaded as elements of an array are.
    #[error(
        "{problem}: a total is taken of states of 1, 2, 4, 8 or 16 bytes, and its own have {state_bytes}; give the state's struct \
         fields that fill it up"
    )]
    TotalOfStates { problem: String, state_bytes: usize },
    /// The strategy combines tiles of a column as it finds them.
    #[error(
        "the strategy '{strategy}' does not scan columns reproducibly: choose {}, or leave `reproducible` out",
        Self::OF_REPRODUCIBLE_COLUMNS
    )]
    ReproducibleColumns { strategy: &'static str },
    /// The strategy that scans columns in one order takes no strides.
    #[error(
        "strided columns are not scanned reproducibly: copy them into arrays without strides, or leave `reproducible` out"
    )]
    ReproducibleStrides,
    /// The strategy combines tiles in another order than one after the other.
    #[error(
        "the strategy '{strategy}' does not scan {problem}: choose 'auto', 'lookback', 'lookahead', 'one-wave', \
         'single-block' or 'chained'"
    )]
    NotReproducible { strategy: &'static str, problem: String },
    /// Blocks whose warps strategies would combine in different orders.
    #[error(
        "reproducible scans take blocks of up to {} threads, the pattern 'shuffle' and the composition 'reduce-then-scan'; \
         set these in the configuration, or give none",
        Self::REPRODUCIBLE_THREADS
    )]
    ReproducibleBlock,
    /// Tiles in the order of block indices, where blocks that stay take them in turn.
    #[error(
        "the blocks of the strategy '{0}' take tiles in turn, and with the tile order 'static' a tile would wait for blocks \
         that may never start; choose 'ticket'"
    )]
    StaticOrder(&'static str),
    /// The operator is not defined on the element type.
    #[error(transparent)]
    NoSuchInstance(#[from] NoSuchInstance),
    /// Arrays whose numbers of elements do not fit together.
    #[error("the output has {output} elements and the input {input}; {expected}")]
    LengthMismatch { input: usize, output: usize, expected: &'static str },
    /// Arrays that a defined scan cannot run on.
    #[error(transparent)]
    Call(Box<CallError>),
    /// Types that the operator's scan cannot convert.
    #[error(transparent)]
    NoSuchProblem(#[from] NoSuchProblem),
    /// The GPU, of compute capability `major.minor`, is too old for the strategy.
    #[error(
        "the strategy '{strategy}' needs thread block clusters, which GPUs have from compute capability 9.0 on; this one \
         has {major}.{minor}: choose 'auto'"
    )]
    NoClusters { strategy: &'static str, major: i32, minor: i32 },
    /// A scan whose tiles cannot be dealt to ranks.
    #[error("'{strategy}' deals no tiles of {problem} to ranks: take 'lookahead', and one sequence of what is defined")]
    NotDealt { strategy: &'static str, problem: String },
    /// Tiles that do not fill the chunks that ranks are dealt.
    #[error("chunks of {chunk} elements are no whole tiles of {tile}: deal chunks of a multiple of {tile} elements")]
    Chunk { chunk: u64, tile: u64 },
    /// More ranks than a rank's memory has room for.
    #[error("tiles are dealt to up to {max} ranks, not to {ranks}: scan shards instead", max = abi::LOOKBACK_MAXIMUM_DEALT_RANKS)]
    DealtRanks { ranks: u64 },
    /// More elements than a grid of blocks can cover.
    #[error("{n} elements need {blocks} blocks, a grid has at most 2^31 - 1; raise VT or threads per block")]
    TooManyBlocks { n: u64, blocks: u64 },
}

impl ConfigError {
    /// Of so many warps look-ahead has a reducer for each, and a block joins their totals one after the other
    /// (`warps_joined_serially` in `cuda/block/warp_totals.cuh`).
    pub(super) const REPRODUCIBLE_THREADS: u32 = abi::LOOKBACK_ARRAYS_REDUCING_WARPS * abi::LOOKBACK_WARP_LANES;

    /// What scans down columns.
    const OF_COLUMNS: &'static str = "'auto', 'lookback' or 'lookahead'";

    /// What scans down columns reproducibly.
    const OF_REPRODUCIBLE_COLUMNS: &'static str = "'auto' or 'lookahead'";

    /// Why several strategies do not scan a problem, where one would be told this.
    #[cfg(feature = "cli")]
    pub(crate) fn why_several(&self) -> Option<String> {
        match self {
            Self::TakesNoArrays { .. } => {
                Some("they scan one array of numbers, as a whole and from its first element to its last".to_owned())
            }
            Self::ReproducibleColumns { .. } => {
                Some(format!("they scan no columns reproducibly; choose {}", Self::OF_REPRODUCIBLE_COLUMNS))
            }
            Self::TakesNoColumns { .. } => Some(format!("they scan along rows; choose {}", Self::OF_COLUMNS)),
            Self::WorksInOutput { .. } => Some("they work in the output, so they scan one type of values".to_owned()),
            _ => None,
        }
    }

    /// Whether the strategy cannot scan the problem, whatever else is chosen.
    pub const fn is_of_problem(&self) -> bool {
        matches!(
            self,
            Self::TakesNoArrays { .. }
                | Self::TakesNoColumns { .. }
                | Self::TakesNoStrides { .. }
                | Self::ScansAlone { .. }
                | Self::WorksInOutput { .. }
                | Self::SpineOfStates { .. }
                | Self::NotReproducible { .. }
                | Self::ReproducibleColumns { .. }
                | Self::ReproducibleStrides
        )
    }

    /// Whether kernels have found it, in numbers that the device alone knows. Where those are known to be right, kernels are
    /// wrong.
    pub fn is_found_by_kernels(&self) -> bool {
        matches!(self, Self::Call(error) if matches!(**error, CallError::Offsets { .. } | CallError::Counted { .. }))
    }
}

impl From<CallError> for ConfigError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

/// Whether the arrays of a scan fit together, of so many elements. The last input of an exclusive scan is never read, so
/// that it may be left out: n counts give n + 1 offsets.
///
/// # Errors
/// When they do not.
pub fn check_lengths(mode: Mode, input: usize, output: usize) -> Result<(), ConfigError> {
    let is_one_shorter = input.checked_add(1) == Some(output);
    let expected = match mode {
        _ if input == output => return Ok(()),
        Mode::Exclusive if is_one_shorter => return Ok(()),
        Mode::Exclusive => "the input must have as many elements as the output, or one less",
        Mode::Inclusive | Mode::InclusiveMinusInput => "they must have the same length",
    };
    Err(ConfigError::LengthMismatch { input, output, expected })
}
