//! Thread block clusters: a grid whose blocks are resident together, meet at a barrier of the cluster and store into the
//! shared memory of each other (`cuda/platform.cuh`, `cuda/memory.cuh`).
//!
//! Arrival and wait are apart, so a block may do much between them. A store into a block of which no thread has run yet,
//! or all have returned, is an error: on a GPU its shared memory need not be there. Whoever waits for an arrival that
//! does not come is in a deadlock.

use super::context::{Block, Launch, Suspension, Thread};
use super::faults::{fail, party};
use super::grids::Grid;
use crate::cpu::backend::Synchronization;
use crate::cpu::error::{Activity, ClusterFault, ExecutionError, RawSite};
use std::ffi::c_char;

#[cold]
pub(super) fn refuse(thread: &Thread, fault: ClusterFault, site: RawSite) -> ! {
    fail(thread, ExecutionError::Cluster { fault, party: party(thread, Activity::Access, site) })
}

/// The running thread, at a place where the schedule may switch.
///
/// # Safety
/// `thread` is the context of the running coroutine.
unsafe fn enter<'a>(thread: *const Thread, site: RawSite) -> &'a Thread {
    // SAFETY: the caller's promise; contexts outlive their coroutines.
    let thread = unsafe { &*thread };
    thread.site.set(site);
    if !thread.grid().settings.is_cluster {
        refuse(thread, ClusterFault::NoCluster, site);
    }
    thread.launch().scheduling_point(thread);
    thread
}

pub(super) unsafe extern "C" fn arrive(thread: *const Thread, is_release: u32, file: *const c_char, line: u32) {
    let site = RawSite { file, line };
    // SAFETY: `platform.h` passes its current thread.
    let thread = unsafe { enter(thread, site) };
    let (launch, grid) = (thread.launch(), thread.grid());
    let barrier = &grid.cluster_barrier;
    if thread.cluster_arrival.get().is_some() {
        refuse(thread, ClusterFault::ArrivedTwice, site);
    }
    thread.cluster_arrival.set(Some(barrier.phase.get()));
    barrier.arrived.set(barrier.arrived.get() + 1);
    barrier.clock.set(barrier.clock.get().max(thread.clock.get()));
    launch.made_progress();
    let (block, thread_index) = (thread.block().number(), thread.thread_index);
    let event = Synchronization::ClusterArrival { block, thread: thread_index, is_release: is_release != 0 };
    launch.tell(thread, event, site);
    if barrier.arrived.get() == grid.settings.grid_blocks * u64::from(thread.block_threads) {
        launch.tell(thread, Synchronization::ClusterPhase { block }, site);
        launch.end_cluster_phase(grid);
    }
}

pub(super) unsafe extern "C" fn wait(thread: *const Thread, file: *const c_char, line: u32) {
    let site = RawSite { file, line };
    // SAFETY: as in `arrive`.
    let thread = unsafe { enter(thread, site) };
    let launch = thread.launch();
    let barrier = &thread.grid().cluster_barrier;
    let Some(phase) = thread.cluster_arrival.take() else { refuse(thread, ClusterFault::NotArrived, site) };
    while barrier.phase.get() == phase {
        let warp = thread.warp();
        warp.at_cluster_barrier.set(warp.at_cluster_barrier.get() | thread.lane_bit());
        thread.suspend(Suspension::Waiting);
    }
    // The next phase is not over before this thread has arrived in it, so the clock is still that of this one.
    thread.clock.set(thread.clock.get().max(barrier.released_clock.get()));
    let event = Synchronization::ClusterWait { block: thread.block().number(), thread: thread.thread_index };
    launch.tell(thread, event, site);
}

impl Launch {
    fn end_cluster_phase(&self, grid: &Grid) {
        let barrier = &grid.cluster_barrier;
        barrier.phase.set(barrier.phase.get() + 1);
        barrier.arrived.set(0);
        barrier.released_clock.set(barrier.clock.get());
        for slot in &self.slots[grid.slots.clone()] {
            for (warp_index, warp) in (0..).zip(&slot.warps) {
                let lanes = warp.at_cluster_barrier.replace(0);
                if lanes != 0 {
                    slot.make_ready(warp_index, lanes);
                }
            }
        }
        // Every block passes it.
        self.count(|counters| counters.block_barriers += grid.settings.grid_blocks);
    }

    /// The block `rank`, and the place in its shared memory that is `place` in that of the caller.
    pub fn find_in_cluster(
        &self,
        caller: &Block,
        place: usize,
        bytes: usize,
        rank: u32,
    ) -> Result<(&Block, *mut u8), ClusterFault> {
        let grid = &self.grids[caller.grid];
        if !grid.settings.is_cluster {
            return Err(ClusterFault::NoCluster);
        }
        let (key, offset) = caller.shared.find_place(place, bytes).ok_or(ClusterFault::NotShared)?;
        let target = self.slots[grid.slots.clone()].iter().find(|slot| slot.index.get() == u64::from(rank));
        let target = target.ok_or(ClusterFault::NoSuchBlock { rank })?;
        if !target.has_begun.get() {
            return Err(ClusterFault::NotStarted { rank });
        }
        if target.live_threads.get() == 0 {
            return Err(ClusterFault::Ended { rank });
        }
        // A block that has begun and not declared it is not far enough either.
        let storage = target.shared.find(key).ok_or(ClusterFault::NotStarted { rank })?;
        Ok((target, storage.wrapping_add(offset)))
    }
}
