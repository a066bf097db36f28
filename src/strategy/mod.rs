//! The choices a user makes: strategy, mode, VT, block size, and how blocks and warps scan inside.

pub(crate) mod call;
mod call_error;
mod choice;
mod choosing;
pub(crate) mod columns;
mod config;
pub mod kernel;
pub mod launch;
pub mod look;
pub mod plan;
mod planner;
pub mod ring;
mod shape;
mod suggestion;
mod table;
pub mod tuning;

pub use crate::names::UnknownName;
pub(crate) use crate::names::named;
pub use call_error::CallError;
pub use choice::StrategyChoice;
pub use choosing::Choices;
pub use config::{ConfigError, ScanConfig, check_lengths};
pub use kernel::Kernel;
pub use look::Look;
pub use shape::{Blocks, HelperWarps, Shape, Tiling};
pub use table::{Limit, Rounding, Strategy, StrategyRow, Stress, Windows};

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

impl Mode {
    /// By how many elements the output lags behind the inclusive scan, before the input is taken off again.
    pub const fn lag(self) -> u64 {
        match self {
            Self::Inclusive => 0,
            Self::Exclusive | Self::InclusiveMinusInput => 1,
        }
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
        /// 128-bit words: one with a value of up to 12 bytes and its tag, or as many as a larger value needs.
        Packed128 = "packed-128",
        /// A tag and separate slots for aggregate and inclusive prefix, ordered by release and acquire.
        Split = "split",
    }
}

impl Descriptor {
    /// Bytes of the largest value that a descriptor holds.
    pub const fn holds(self) -> usize {
        match self {
            Self::Packed64 => 4,
            Self::Packed128 | Self::Split => usize::MAX,
        }
    }

    /// The layouts for values of so many bytes, the smallest first.
    fn that_hold(bytes: usize) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |descriptor| descriptor.holds() >= bytes)
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

named! {
    /// Where the arrays begin that a kernel is compiled for.
    pub enum Alignment as "alignment" {
        /// Anywhere.
        Any = "any",
        /// Input and output at a boundary of 16 bytes.
        Vectors = "vectors",
    }
}
