//! The barriers of one block that tell when copies have landed, and the copies that have not.

use crate::cpu::backend::{AsyncStore, Copy};
use crate::cpu::error::Party;

/// A barrier, by its address in shared memory.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    pub address: usize,
    /// Arrivals that a phase takes, and those that have come.
    pub arrivals: u32,
    pub arrived: u32,
    /// Whether the copy engine sees it, and the other blocks of the cluster.
    pub is_there_for_copies: bool,
    pub is_there_for_cluster: bool,
    /// Copies under the current phase that have not landed.
    pub copies: u32,
    /// Bytes of other blocks' stores that the current phase expects and that have not landed; below 0 while some have
    /// landed that it does not expect yet.
    pub expected_bytes: i64,
    /// The number of the current phase.
    pub phase: u32,
    /// Latest clock of those who arrived, and of those in the phase before.
    pub clock: u64,
    pub released_clock: u64,
    /// Who waits for the current phase: warps, and lanes of each.
    pub waiting: Vec<(u32, u32)>,
}

/// What has not landed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Task {
    Copy(Copy),
    Store(AsyncStore),
}

impl Task {
    /// The address of the barrier that counts it.
    pub fn barrier(&self) -> usize {
        match self {
            Self::Copy(copy) => copy.barrier,
            Self::Store(store) => store.barrier,
        }
    }
}

/// The same, and who asked for it.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub task: Task,
    pub party: Party,
}

/// The barriers and copies of one block.
#[derive(Debug, Default)]
pub(super) struct BlockCopies {
    pub barriers: Vec<Barrier>,
    pub under_way: Vec<UnderWay>,
    /// Copies and stores asked for so far.
    asked: u64,
}

impl BlockCopies {
    /// For the next block in the slot.
    pub fn clear(&mut self) {
        self.barriers.clear();
        self.under_way.clear();
    }

    /// The number of a copy or store that is asked for now.
    pub fn next_number(&mut self) -> u64 {
        self.asked += 1;
        self.asked
    }

    pub fn barrier(&mut self, address: usize) -> Option<&mut Barrier> {
        self.barriers.iter_mut().find(|barrier| barrier.address == address)
    }
}
