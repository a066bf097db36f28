//! How a strategy runs: what the planner of its launches, the compiler and the devices go by.

use super::{Composition, Kernel};
use crate::abi;
use crate::element::{Problem, Verb};

/// How a strategy runs.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The kernels in the order of their first launches. A kernel of two strategies is the same in both.
    pub kernels: &'static [Kernel],
    /// The one among them that scans down columns, if it has one.
    pub kernel_of_columns: Option<Kernel>,
    /// The one among them whose tiles are dealt to several ranks, if it has one.
    pub kernel_of_deals: Option<Kernel>,
    /// Warps of its blocks beside those that hold values, where they scan columns.
    pub helper_warps_of_columns: u32,
    /// What it does beside scans, and by what other kernels.
    pub(crate) beside_scans: &'static [(Verb, &'static [Kernel])],
    /// How the array is cut.
    pub tiling: Tiling,
    /// Who works on the tiles.
    pub blocks: Blocks,
    /// Whether tiles meet through descriptors in one launch.
    pub has_descriptors: bool,
    /// Whether tiles that are whole rows do not meet.
    pub knows_whole_rows: bool,
    /// Whether a launch loads what an earlier one has stored: all that it loads and stores are values that are scanned.
    pub works_in_output: bool,
    /// Copies of each descriptor, and how many descriptors lie between two copies.
    pub descriptor_copies: (u32, u32),
    /// Warps of a block beside those that hold values.
    pub helper_warps: HelperWarps,
    /// Blocks a multiprocessor that the registers have to leave room for, where the assembler needs to be told.
    pub resident_blocks: Option<u32>,
    /// Whether it is for as many tiles as multiprocessors take at once.
    pub is_one_wave: bool,
}

impl Shape {
    /// Tiles of a round, if the strategy is for a few rounds: one for each block of a cluster, or for each multiprocessor. A tile more
    /// takes nearly as long as a round more, because somebody has one more than the others.
    pub const fn tiles_of_a_round(self, multiprocessors: u64) -> Option<u64> {
        match self.blocks {
            Blocks::Cluster => Some(abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS as u64),
            _ if self.is_one_wave => Some(multiprocessors),
            _ => None,
        }
    }

    /// A block for each share of an untiled array.
    pub(super) const UNTILED: Self = Self {
        kernels: &[],
        kernel_of_columns: None,
        kernel_of_deals: None,
        helper_warps_of_columns: 0,
        beside_scans: &[],
        tiling: Tiling::Untiled,
        blocks: Blocks::PerTile,
        has_descriptors: false,
        knows_whole_rows: false,
        works_in_output: false,
        descriptor_copies: (1, 0),
        helper_warps: HelperWarps::Always(0),
        resident_blocks: None,
        is_one_wave: false,
    };
    /// A block for each tile.
    pub(super) const TILED: Self = Self { tiling: Tiling::Patterned, ..Self::UNTILED };
    /// The same, and tiles meet through descriptors inside one launch.
    pub(super) const SINGLE_PASS: Self = Self { has_descriptors: true, ..Self::TILED };

    /// Whether the kernel is one of its own.
    pub fn has(&self, kernel: Kernel) -> bool {
        self.kernels.contains(&kernel) || self.has_beside_scans(kernel)
    }

    /// Whether the kernel is one for what is no scan.
    pub fn has_beside_scans(&self, kernel: Kernel) -> bool {
        self.beside_scans.iter().any(|(_, kernels)| kernels.contains(&kernel))
    }

    /// Whether it does what puts a definition that is no scan onto a stream.
    pub(crate) fn does(&self, verb: Verb) -> bool {
        self.beside_scans.iter().any(|&(done, _)| done == verb)
    }

    /// Whether there is a kernel for arrays that begin at vectors, and one for all others. Blocks that run once wait for their
    /// code, so that code which is not run costs them time, too.
    pub fn is_aligned_apart(&self) -> bool {
        matches!(self.blocks, Blocks::Single | Blocks::Cluster) || self.is_one_wave
    }

    /// Whether its kernels scan what a user has defined: tiles of several arrays.
    pub fn takes_arrays(&self) -> bool {
        self.tiling != Tiling::Untiled && self.blocks != Blocks::Cluster && !self.works_in_output
    }

    /// Whether its kernels scan arrays whose rows do not lie one behind the other: a bulk copy knows of no rows.
    pub fn takes_strides(&self) -> bool {
        self.takes_arrays() && !self.is_persistent()
    }

    /// Whether it combines the tiles of a column in an order that the matrix alone says.
    pub fn scans_columns_in_order(&self) -> bool {
        self.kernel_of_columns.is_some() && self.is_persistent()
    }

    /// Whether its blocks stay and take one tile after the other, of which several are on their way to shared memory.
    pub fn is_persistent(&self) -> bool {
        self.blocks == Blocks::Persistent
    }

    /// Whether its tiles can hand on states of so many bytes. Those of a spine are loaded and stored as elements of an array
    /// are.
    pub fn hands_on(&self, state_bytes: usize) -> bool {
        let has_spine = self.blocks == Blocks::PerTile && !self.has_descriptors;
        !has_spine || Self::loads_states(state_bytes)
    }

    /// Whether tiles load states of so many bytes as they load elements of an array.
    pub fn loads_states(state_bytes: usize) -> bool {
        state_bytes.is_power_of_two() && state_bytes <= abi::LOOKBACK_VECTOR_BYTES as usize
    }

    /// Threads of a block beside those that hold values.
    pub fn helper_threads(&self, composition: Composition, problem: Problem) -> u32 {
        let warps = match self.helper_warps {
            HelperWarps::ByArrays { of_several, .. } if problem.defined().is_some() => of_several,
            HelperWarps::ByArrays { of_one, .. } => of_one,
            HelperWarps::UnlessBlockPattern(_) if composition == Composition::Block => 0,
            HelperWarps::Always(warps) | HelperWarps::UnlessBlockPattern(warps) => warps,
        };
        warps * abi::LOOKBACK_WARP_LANES
    }
}

/// How a strategy cuts an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tiling {
    /// Not at all: VT does not matter, or says only how many elements a thread has.
    Untiled,
    /// Into tiles of block threads × VT that are scanned by shuffles, whatever pattern and composition say.
    Shuffled,
    /// Into such tiles, scanned by any pattern in any composition.
    Patterned,
}

/// Who works on the tiles of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// A block for each tile, or for as many elements as it has threads.
    PerTile,
    /// One block takes all of them in turn.
    Single,
    /// As many blocks as the GPU holds take them in turn, in dynamic shared memory: any number of blocks will do.
    Persistent,
    /// The blocks of one thread block cluster take them in turn: any number of blocks will do, on compute capability
    /// 9.0 or later.
    Cluster,
}

/// Warps of a block beside those that hold values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperWarps {
    /// So many.
    Always(u32),
    /// So many where there is one array of numbers, and so many for what a user has defined.
    ByArrays {
        /// Of one array.
        of_one: u32,
        /// Of several.
        of_several: u32,
    },
    /// So many, unless the pattern spans the block.
    UnlessBlockPattern(u32),
}
