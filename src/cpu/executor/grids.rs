//! The launches that a run takes together, one behind the other on a stream: when blocks of the next one start, and when
//! the one before is over (`cuda/platform.cuh`). Where there are several streams they are on these
//! in turn.
//!
//! Each has slots of its own, so blocks of one never wait for room that blocks of another have. A launch begins when every
//! block of the one before has allowed it or ended, and it is over when its own blocks have ended, whatever those of
//! others do: that all launches before are over, too, rests on every thread's wait, as on a GPU.

use super::context::{ClusterBarrier, Launch, Suspension, Thread};
use super::order::StartOrder;
use super::points::enter;
use crate::cpu::backend::Synchronization;
use crate::cpu::error::RawSite;
use crate::cpu::settings::LaunchSettings;
use std::cell::Cell;
use std::ffi::c_char;
use std::ops::Range;

/// One of the launches.
pub(super) struct Grid {
    /// Of these what is each launch's own: grid, blocks, clusters, shared memory. All else is the run's.
    pub settings: LaunchSettings,
    /// The number of its first block among the blocks of all launches.
    pub first_block: u64,
    /// Its slots among those of the run.
    pub slots: Range<usize>,
    pub start_order: StartOrder,
    /// Whether its blocks may start.
    pub has_begun: Cell<bool>,
    pub started_blocks: Cell<u64>,
    pub finished_blocks: Cell<u64>,
    /// Blocks that have allowed the next launch to begin, or have ended.
    pub allowing_blocks: Cell<u64>,
    pub cluster_barrier: ClusterBarrier,
}

impl Grid {
    /// All of a run, in order.
    pub fn all(settings: &[LaunchSettings]) -> Box<[Self]> {
        let (mut first_block, mut first_slot) = (0, 0);
        let grid = |settings: &LaunchSettings| {
            let grid = Self {
                settings: settings.clone(),
                first_block,
                slots: first_slot..first_slot + settings.slots() as usize,
                start_order: StartOrder::new(settings.block_order, settings.grid_blocks, settings.seed),
                has_begun: Cell::new(false),
                started_blocks: Cell::new(0),
                finished_blocks: Cell::new(0),
                allowing_blocks: Cell::new(0),
                cluster_barrier: ClusterBarrier::default(),
            };
            first_block += settings.grid_blocks;
            first_slot = grid.slots.end;
            grid
        };
        settings.iter().map(grid).collect()
    }

    fn is_over(&self) -> bool {
        self.finished_blocks.get() == self.settings.grid_blocks
    }
}

pub(super) unsafe extern "C" fn allow_next(thread: *const Thread, _: *const c_char, _: u32) {
    // SAFETY: `platform.h` passes its current thread; contexts outlive their coroutines.
    let thread = unsafe { &*thread };
    thread.launch().allow_next(thread);
}

pub(super) unsafe extern "C" fn wait_for_those_before(thread: *const Thread, file: *const c_char, line: u32) {
    // SAFETY: as in `allow_next`.
    let (at, launch) = unsafe { ((*thread).block().grid, (*thread).launch()) };
    // The first one of a run waits for nobody, and its schedule is as if it had not asked.
    let Some(before) = at.checked_sub(launch.streams) else { return };
    let site = RawSite { file, line };
    // SAFETY: as in `allow_next`.
    let thread = unsafe { enter(thread, site) };
    let warp = thread.warp();
    while !launch.grids[before].is_over() {
        warp.at_launch_wait.set(warp.at_launch_wait.get() | thread.lane_bit());
        thread.suspend(Suspension::Waiting);
    }
    let event = Synchronization::LaunchWait { block: thread.block().number(), thread: thread.thread_index };
    launch.tell(thread, event, site);
}

impl Launch {
    /// Lets the first launch of each stream begin.
    pub fn begin(&self) {
        (0..self.streams).for_each(|at| self.begin_grid(at));
    }

    /// The block of `thread` does not hinder the next launch any more. Once is enough, by any of its threads.
    pub fn allow_next(&self, thread: &Thread) {
        let block = thread.block();
        if block.allows_next.replace(true) {
            return;
        }
        let grid = &self.grids[block.grid];
        grid.allowing_blocks.set(grid.allowing_blocks.get() + 1);
        if grid.allowing_blocks.get() == grid.settings.grid_blocks {
            self.begin_grid(block.grid + self.streams);
        }
    }

    /// The last thread of a block has returned.
    pub fn end_block(&self, thread: &Thread) {
        self.allow_next(thread);
        let at = thread.block().grid;
        let grid = &self.grids[at];
        grid.finished_blocks.set(grid.finished_blocks.get() + 1);
        if grid.is_over() {
            self.wake_behind(at);
        }
    }

    /// Starts blocks of a launch, if there is one. Those of one without blocks are over as it begins.
    fn begin_grid(&self, at: usize) {
        let Some(grid) = self.grids.get(at) else { return };
        grid.has_begun.set(true);
        for slot in &self.slots[grid.slots.clone()] {
            self.start_next(slot);
        }
        if grid.settings.grid_blocks == 0 {
            self.begin_grid(at + self.streams);
        }
    }

    /// Lets those run on who wait for a launch that is over.
    fn wake_behind(&self, at: usize) {
        let Some(grid) = self.grids.get(at + self.streams) else { return };
        for slot in &self.slots[grid.slots.clone()] {
            for (warp_index, warp) in (0..).zip(&slot.warps) {
                let lanes = warp.at_launch_wait.replace(0);
                if lanes != 0 {
                    slot.make_ready(warp_index, lanes);
                }
            }
        }
    }
}
