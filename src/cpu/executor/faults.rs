//! Who does what where a launch goes wrong, and the end of the launch.

use super::context::{Block, Launch, NO_TILE, Suspension, Thread};
use crate::cpu::backend::Synchronization;
use crate::cpu::error::{Activity, ExecutionError, MaskFault, Party, RawSite};
use std::ptr;

/// An error is in `Launch::failure`.
pub(super) struct Failed;

impl Launch {
    /// The error that ended the launch.
    pub fn failure(&self) -> ExecutionError {
        self.failure.take().unwrap_or_else(|| ExecutionError::InvalidSettings {
            fault: "the executor stopped without a reason; this is a bug of the executor".to_owned(),
        })
    }

    pub fn deadlock(&self) -> ExecutionError {
        ExecutionError::Deadlock { parties: self.everybody(None), waiting_blocks: self.waiting_blocks() }
    }

    /// Everybody who has not returned, `caller` first.
    pub fn everybody(&self, caller: Option<&Thread>) -> Vec<Party> {
        let mut parties = Vec::new();
        if let Some(caller) = caller {
            add_party(&mut parties, caller, activity_of(caller), site_of(caller));
        }
        for block in self.slots.iter().filter(|block| block.live_threads.get() != 0) {
            gather(&mut parties, block, caller, |_, activity| activity != Activity::Exited);
        }
        parties
    }

    /// Leaves an error that no running thread has made.
    pub fn fail_outside(&self, error: ExecutionError) {
        self.failure.borrow_mut().get_or_insert(error);
    }

    /// Tells a back end of threads that have met.
    pub fn tell(&self, thread: &Thread, event: Synchronization, site: RawSite) {
        if let Err(message) = self.call_backend(|backend| backend.synchronize(event)) {
            fail_in_backend(thread, message, site);
        }
    }
}

/// Adds the threads of a block that do what `wanted` accepts.
fn gather(
    parties: &mut Vec<Party>,
    block: &Block,
    caller: Option<&Thread>,
    wanted: impl Fn(&Thread, Activity) -> bool,
) {
    for thread in &block.threads {
        let activity = activity_of(thread);
        if wanted(thread, activity) && !caller.is_some_and(|caller| ptr::eq(caller, thread)) {
            add_party(parties, thread, activity, site_of(thread));
        }
    }
}

fn activity_of(thread: &Thread) -> Activity {
    match thread.warp().activity(thread.lane_index) {
        Activity::Exited => Activity::Exited,
        _ if thread.block().stopped.get() => Activity::Stopped,
        activity => activity,
    }
}

fn site_of(thread: &Thread) -> RawSite {
    let warp = thread.warp();
    if warp.exited.get() & thread.lane_bit() != 0 {
        RawSite::NONE
    } else if warp.arrived.get() & thread.lane_bit() != 0 {
        warp.site.get()
    } else {
        thread.site.get()
    }
}

fn add_party(parties: &mut Vec<Party>, thread: &Thread, activity: Activity, site: RawSite) {
    let new = party(thread, activity, site);
    let is_same = |p: &&mut Party| {
        (p.launch, p.block) == (new.launch, new.block)
            && p.activity == new.activity
            && p.site == new.site
            && p.tiles == new.tiles
    };
    match parties.iter_mut().find(is_same) {
        Some(party) => party.threads += 1,
        None => parties.push(new),
    }
}

pub(super) fn party(thread: &Thread, activity: Activity, site: RawSite) -> Party {
    let waits = matches!(activity, Activity::SpinWait) && thread.waiting_tile.get() != NO_TILE;
    Party {
        launch: thread.block().grid as u32,
        block: thread.block_index.get(),
        thread: thread.thread_index,
        threads: 1,
        activity,
        site: site.resolve(),
        tiles: waits.then(|| (thread.waiting_tile.get(), thread.missing_tile.get())),
    }
}

/// Ends the launch. The coroutine is never resumed, so nothing that needs dropping may be alive here.
#[cold]
pub(super) fn fail(thread: &Thread, error: ExecutionError) -> ! {
    thread.launch().failure.borrow_mut().get_or_insert(error);
    loop {
        thread.suspend(Suspension::Failed);
    }
}

/// Ends the launch with what a back end said.
#[cold]
pub(super) fn fail_in_backend(thread: &Thread, message: String, site: RawSite) -> ! {
    fail(thread, ExecutionError::Backend { message, party: party(thread, Activity::Access, site) })
}

/// Ends the launch because not all threads of the block come to the barrier. The caller is in the masks
/// of its warp already where it waits.
#[cold]
pub(super) fn fail_in_barrier(thread: &Thread, activity: Activity, site: RawSite) -> ! {
    let mut parties = vec![party(thread, activity, site)];
    gather(&mut parties, thread.block(), Some(thread), |_, other| match activity {
        // A thread that returns leaves those waiting that have reached the barrier.
        Activity::Exited => other == Activity::BlockBarrier,
        // A lane that waits in a collective keeps the others waiting at the barrier.
        Activity::WarpCollective { .. } => other == Activity::BlockBarrier,
        _ => !matches!(other, Activity::Runnable | Activity::SpinWait),
    });
    fail(thread, ExecutionError::BarrierDivergence { parties })
}

/// Ends the launch because a collective of the warp does not get the lanes it names.
#[cold]
pub(super) fn fail_in_collective(thread: &Thread, fault: MaskFault, mask: u32, activity: Activity, site: RawSite) -> ! {
    let mut parties = vec![party(thread, activity, site)];
    gather(&mut parties, thread.block(), Some(thread), |other, activity| {
        let is_waiting = matches!(activity, Activity::WarpCollective { .. });
        let is_missing = activity == Activity::Exited && mask & other.lane_bit() != 0;
        other.warp_index == thread.warp_index
            && match fault {
                MaskFault::CallerNotInMask | MaskFault::SourceNotInMask => false,
                MaskFault::LaneElsewhere => is_waiting,
                MaskFault::LaneExited => is_waiting || is_missing,
            }
    });
    fail(thread, ExecutionError::WrongMask { fault, mask, parties })
}
