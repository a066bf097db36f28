//! What a launch is asked for and what it reports.

use super::error::ExecutionError;
use crate::abi;
pub use crate::abi::lookback_counters as Counters;
use crate::names::named;
use serde::{Deserialize, Serialize};
use std::fmt;

named! {
    /// In which order blocks start.
    #[derive(Default)]
    pub enum BlockOrder as "order of blocks" {
        /// By block index.
        #[default]
        InOrder = "in-order",
        /// From the last block index to the first.
        Reverse = "reverse",
        /// A permutation drawn from the seed.
        Random = "random",
    }
}

/// Who runs next.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// Round robin over the warps of all resident blocks; a warp runs until each of its lanes waits or
    /// polls. Nothing is drawn, so this is the fast one.
    #[default]
    Fair,
    /// A warp drawn from the seed goes on, with a lane drawn from the seed, wherever a thread waits, and with the
    /// probability `preemption`, `0.0 ..= 1.0`, at every scheduling point too.
    Random { preemption: f64 },
}

impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fair => formatter.write_str("fair"),
            Self::Random { preemption } => write!(formatter, "random, preemption {preemption}"),
        }
    }
}

/// A launch or a block that dies in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// No thread of this block runs on after the block's k-th scheduling point, counted over its threads: k is
    /// `after_points`. The others go on, and a launch whose other blocks all end is a success that reports the stopped
    /// block. It keeps its slot.
    Block { block: u64, after_points: u64 },
    /// The launch ends with [`ExecutionError::Stopped`] after its k-th scheduling point, counted over all threads.
    Launch { after_points: u64 },
}

/// A block that nobody lets run for a while, in the middle of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The block's index.
    pub block: u64,
    /// It stands still from its k-th scheduling point on, counted over its threads.
    pub after_points: u64,
    /// For so many switches between the threads of others, or until none of them can go on.
    pub switches: u64,
}

/// What one launch is run with. `LaunchSettings::new` gives the fast and fair choice of everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchSettings {
    /// Blocks of the grid; 0 launches nothing.
    pub grid_blocks: u64,
    /// Threads of a block: a multiple of 32 up to 1024.
    pub block_threads: u32,
    /// Blocks that may be started and not yet ended at one time.
    pub resident_blocks: u32,
    /// Whether the grid is one thread block cluster: then all its blocks, up to 16, are resident together, whatever
    /// `resident_blocks` says, as a GPU starts a cluster as a whole or not at all.
    pub is_cluster: bool,
    /// In which order blocks start.
    pub block_order: BlockOrder,
    /// Who runs next.
    pub schedule: Schedule,
    /// Everything random is drawn from this.
    pub seed: u64,
    /// Whether plain and shared accesses are scheduling points too (slow).
    pub plain_points: bool,
    /// Whether switches and protocol accesses are recorded in [`LaunchReport::trace`].
    pub trace: bool,
    /// Whether what warps come to with tiles is recorded in [`LaunchReport::steps`].
    pub records_steps: bool,
    /// Whether the back end is told what lanes take from each other and combine.
    pub tells_lanes: bool,
    /// Shared memory a block may declare; 48 KiB is what every GPU grants a static declaration.
    pub shared_limit_bytes: u32,
    /// Dynamic shared memory of a block (`dynamic_shared` in `cuda/async_copy.cuh`), which is part of that.
    pub dynamic_shared_bytes: u32,
    /// Phases that a barrier of copies may go through. Without a bound, warps that no longer wait for each other might go
    /// round their ring for ever.
    pub most_phases: u64,
    /// What uninitialised shared memory holds.
    pub poison: u8,
    /// How often every thread may poll with nobody storing before progress counts as lost.
    pub lost_progress_rounds: u32,
    /// Somebody who dies in the middle.
    pub stop: Option<Stop>,
    /// A block that stands still for a while. Only random schedules do that.
    pub pause: Option<Pause>,
    /// The fault that the kernels are to have, by the number of its name
    /// ([`crate::kernels::mutant::mutant_number`]); 0 for none. Only kernels compiled for it have any.
    pub mutant: u32,
}

impl LaunchSettings {
    /// Four resident blocks in order, fair, nothing recorded.
    pub fn new(grid_blocks: u64, block_threads: u32) -> Self {
        Self {
            grid_blocks,
            block_threads,
            resident_blocks: 4,
            is_cluster: false,
            block_order: BlockOrder::InOrder,
            schedule: Schedule::Fair,
            seed: 0,
            plain_points: false,
            trace: false,
            records_steps: false,
            tells_lanes: false,
            shared_limit_bytes: 48 * 1024,
            dynamic_shared_bytes: 0,
            most_phases: u64::MAX,
            poison: 0xA5,
            lost_progress_rounds: 256,
            stop: None,
            pause: None,
            mutant: 0,
        }
    }

    /// Blocks that are resident at one time.
    pub(super) fn slots(&self) -> u64 {
        if self.is_cluster { self.grid_blocks } else { self.grid_blocks.min(u64::from(self.resident_blocks)) }
    }

    /// Coroutines, and so stacks, that the launch has at one time.
    pub fn stacks(&self) -> usize {
        self.slots() as usize * self.block_threads as usize
    }

    pub(super) fn check(&self) -> Result<(), ExecutionError> {
        let fault = if self.block_threads == 0 || self.block_threads > 1024 || !self.block_threads.is_multiple_of(32) {
            Some(format!("threads per block is {}; it must be a multiple of 32 from 32 to 1024", self.block_threads))
        } else if self.resident_blocks == 0 {
            Some("no block may be resident; at least one must be".to_owned())
        } else if self.is_cluster && self.grid_blocks > u64::from(abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS) {
            Some(format!(
                "a cluster of {} blocks; it has at most {}",
                self.grid_blocks,
                abi::LOOKBACK_MAXIMUM_CLUSTER_BLOCKS
            ))
        } else {
            match self.schedule {
                Schedule::Random { preemption } if !(0.0..=1.0).contains(&preemption) => {
                    Some(format!("the probability of preemption is {preemption}; it must be from 0 to 1"))
                }
                _ => None,
            }
        };
        fault.map_or(Ok(()), |fault| Err(ExecutionError::InvalidSettings { fault }))
    }
}

/// What one launch did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaunchReport {
    /// Accesses, operator applications, collectives, polls.
    pub counters: Counters,
    /// How often a coroutine was resumed.
    pub switches: u64,
    /// Blocks that [`Stop::Block`] stopped.
    pub stopped_blocks: u64,
    /// Every switch and protocol access in order, if asked for; equal bytes mean equal runs.
    pub trace: Option<Vec<u8>>,
    /// What warps came to with tiles, in order, if asked for.
    pub steps: Vec<TileStep>,
}

/// What a warp has come to with a tile (`lookback_trace_step` in `cuda/abi.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileStep {
    /// Switches of the scheduler and recorded steps so far.
    pub time: u64,
    /// The block.
    pub block: u64,
    /// Its warp.
    pub warp: u32,
    /// The step's number in `cuda/abi.h`.
    pub step: u32,
    /// From 0, for steps that come once a round of reading.
    pub round: u32,
    /// The tile.
    pub tile: u64,
    /// Of a round: for whose publication it waited last, if it did.
    pub missing_tile: Option<u64>,
    /// Of a round: how many descriptors it is about.
    pub descriptors: u32,
}
