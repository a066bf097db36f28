//! Where threads meet: collectives of whole warps and of some lanes, block barriers. And where they leave.

use super::context::{FULL_WARP, Group, Suspension, Thread, WARP_LANES, Warp};
use super::copies;
use super::faults::{fail_in_barrier, fail_in_collective};
use crate::cpu::backend::Synchronization;
use crate::cpu::error::{Activity, Collective, MaskFault, RawSite};
use std::ffi::{c_char, c_void};
use std::ptr;

/// The thread returned from the kernel; comes back when it is to run it for another block.
pub(super) fn exit(thread: &Thread) {
    let (block, warp, launch) = (thread.block(), thread.warp(), thread.launch());
    if block.barrier_arrived.get() != 0 {
        fail_in_barrier(thread, Activity::Exited, RawSite::NONE);
    }
    if warp.arrived.get() != 0 {
        fail_in_collective(thread, MaskFault::LaneExited, FULL_WARP, Activity::Exited, RawSite::NONE);
    }
    if let Some(mask) = warp.group_that_wants(thread.lane_bit()) {
        fail_in_collective(thread, MaskFault::LaneExited, mask, Activity::Exited, RawSite::NONE);
    }
    if block.live_threads.get() == 1 {
        copies::check_none_left(thread);
    }
    warp.exited.set(warp.exited.get() | thread.lane_bit());
    warp.unavailable.set(warp.unavailable.get() | thread.lane_bit());
    block.live_threads.set(block.live_threads.get() - 1);
    launch.count(|counters| counters.span_steps = counters.span_steps.max(thread.clock.get()));
    launch.made_progress();
    if block.live_threads.get() == 0 {
        launch.tell(thread, Synchronization::BlockEnd { block: block.number() }, RawSite::NONE);
        launch.end_block(thread);
    }
    thread.suspend(Suspension::Finished);
}

pub(super) unsafe extern "C" fn rendezvous(thread: *const Thread, collective: u32, file: *const c_char, line: u32) {
    // SAFETY: `platform.h` passes its current thread; contexts outlive their coroutines.
    let thread = unsafe { &*thread };
    let warp = thread.warp();
    let bit = thread.lane_bit();
    let arrived = warp.arrived.get();
    if warp.unavailable.get() | (warp.wanted.get() & bit) != 0 {
        refuse_rendezvous(thread, warp, collective, RawSite { file, line });
    }
    if arrived == 0 {
        warp.collective.set(collective);
        warp.site.set(RawSite { file, line });
        warp.clock.set(thread.clock.get());
    } else {
        if warp.collective.get() != collective || !warp.site.get().is_same(RawSite { file, line }) {
            refuse_rendezvous(thread, warp, collective, RawSite { file, line });
        }
        warp.clock.set(warp.clock.get().max(thread.clock.get()));
    }
    let arrived = arrived | bit;
    if arrived == FULL_WARP {
        complete_rendezvous(thread, warp);
    } else {
        warp.arrived.set(arrived);
        thread.suspend(Suspension::Waiting);
    }
    thread.clock.set(warp.released_clock.get());
}

fn complete_rendezvous(thread: &Thread, warp: &Warp) {
    let launch = thread.launch();
    let next_parity = warp.parity.get() ^ 1;
    warp.parity.set(next_parity);
    // Every lane has read the ballot of the collective before this one: it had to, to come here.
    warp.ballots[next_parity as usize].set(0);
    warp.arrived.set(0);
    warp.released_clock.set(warp.clock.get());
    thread.block().make_ready(thread.warp_index, FULL_WARP & !thread.lane_bit());
    launch.count(|counters| counters.warp_collectives += 1);
    if launch.is_watched {
        let event = Synchronization::Warp {
            block: thread.block().number(),
            warp: thread.warp_index,
            mask: FULL_WARP,
            collective: Collective::from_number(warp.collective.get()),
        };
        launch.tell(thread, event, warp.site.get());
    }
    launch.scheduling_point(thread);
}

#[cold]
fn refuse_rendezvous(thread: &Thread, warp: &Warp, collective: u32, site: RawSite) -> ! {
    let activity = Activity::WarpCollective { collective: Collective::from_number(collective), mask: FULL_WARP };
    if warp.exited.get() != 0 {
        fail_in_collective(thread, MaskFault::LaneExited, FULL_WARP, activity, site);
    }
    if warp.at_barrier.get() != 0 {
        fail_in_barrier(thread, activity, site);
    }
    fail_in_collective(thread, MaskFault::LaneElsewhere, FULL_WARP, activity, site);
}

pub(super) unsafe extern "C" fn exchange(
    thread: *const Thread,
    mask: u32,
    collective: u32,
    source_lane: u32,
    value: *mut c_void,
    bytes: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { &*thread };
    let warp = thread.warp();
    let launch = thread.launch();
    let site = RawSite { file, line };
    let kind = Collective::from_number(collective);
    thread.site.set(site);
    check_mask(thread, mask, kind, source_lane, site);

    let complete = {
        let mut groups = warp.groups.borrow_mut();
        let number = groups.iter().position(|group| group.mask == mask).unwrap_or_else(|| {
            let lanes = [(ptr::null_mut(), 0); WARP_LANES as usize];
            groups.push(Group { mask, arrived: 0, collective, site, bytes, clock: 0, lanes });
            groups.len() - 1
        });
        let group = &mut groups[number];
        group.arrived |= thread.lane_bit();
        group.clock = group.clock.max(thread.clock.get());
        group.lanes[thread.lane_index as usize] = (value.cast(), source_lane);
        (group.arrived == mask).then(|| groups.swap_remove(number))
    };
    match complete {
        Some(group) => {
            // SAFETY: every lane of the group passed the address of a value of `bytes` bytes on its stack and
            // is suspended, or is the caller.
            unsafe { deliver(&group) };
            for other in thread.block().threads.iter().filter(|other| other.warp_index == thread.warp_index) {
                if mask & other.lane_bit() != 0 {
                    other.clock.set(group.clock);
                }
            }
            warp.update_wanted();
            thread.block().make_ready(thread.warp_index, mask & !thread.lane_bit());
            launch.count(|counters| counters.warp_collectives += 1);
            let event = Synchronization::Warp {
                block: thread.block().number(),
                warp: thread.warp_index,
                mask,
                collective: kind,
            };
            launch.tell(thread, event, site);
            launch.scheduling_point(thread);
        }
        None => {
            warp.update_wanted();
            thread.suspend(Suspension::Waiting);
        }
    }
}

/// Ends the launch if the collective that the thread is about to enter cannot be meant. Lanes in the mask
/// may wait elsewhere as long as they do not wait for this one.
fn check_mask(thread: &Thread, mask: u32, kind: Collective, source_lane: u32, site: RawSite) {
    let warp = thread.warp();
    let activity = Activity::WarpCollective { collective: kind, mask };
    let is_waited_for = warp.groups.borrow().iter().any(|group| {
        let is_the_same = group.mask == mask && group.collective == kind as u32 && group.site.is_same(site);
        group.mask & thread.lane_bit() != 0 && group.arrived & mask != 0 && !is_the_same
    });
    let reads = matches!(kind, Collective::ShuffleUp | Collective::ShuffleDown | Collective::ShuffleIndex);
    let fault = if mask & thread.lane_bit() == 0 {
        MaskFault::CallerNotInMask
    } else if reads && mask >> source_lane & 1 == 0 {
        MaskFault::SourceNotInMask
    } else if warp.exited.get() & mask != 0 {
        MaskFault::LaneExited
    } else if warp.at_barrier.get() & mask != 0 {
        fail_in_barrier(thread, activity, site);
    } else if warp.arrived.get() & mask != 0 || is_waited_for {
        MaskFault::LaneElsewhere
    } else {
        return;
    };
    fail_in_collective(thread, fault, mask, activity, site);
}

/// Gives every lane of a complete group the value it asked for.
///
/// # Safety
/// The values of all lanes in the mask are readable and writable.
unsafe fn deliver(group: &Group) {
    let bytes = group.bytes as usize;
    let mut values = [[0u8; 16]; WARP_LANES as usize];
    let mut ballot = 0u32;
    let is_member = |lane: usize| group.mask >> lane & 1 != 0;
    for (lane, value) in values.iter_mut().enumerate().filter(|(lane, _)| is_member(*lane)) {
        // SAFETY: the caller's promise; values have at most 16 bytes.
        unsafe { ptr::copy_nonoverlapping(group.lanes[lane].0, value.as_mut_ptr(), bytes) };
        ballot |= u32::from(value.iter().any(|&byte| byte != 0)) << lane;
    }
    for (lane, &(target, source)) in group.lanes.iter().enumerate().filter(|(lane, _)| is_member(*lane)) {
        debug_assert!(is_member(lane));
        // SAFETY: the caller's promise; a ballot's value is a u32.
        unsafe {
            if group.collective == Collective::Ballot as u32 {
                ptr::copy_nonoverlapping(ptr::from_ref(&ballot).cast(), target, size_of::<u32>());
            } else {
                ptr::copy_nonoverlapping(values[source as usize].as_ptr(), target, bytes);
            }
        }
    }
}

pub(super) unsafe extern "C" fn block_barrier(thread: *const Thread, file: *const c_char, line: u32) {
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { &*thread };
    let (block, warp, launch) = (thread.block(), thread.warp(), thread.launch());
    let site = RawSite { file, line };
    thread.site.set(site);
    let arrived = block.barrier_arrived.get();
    let block_threads = thread.block_threads;
    let is_alone = block.live_threads.get() != block_threads;
    let is_elsewhere = arrived != 0 && !block.barrier_site.get().is_same(site);
    let is_waited_for = warp.arrived.get() != 0 || warp.wanted.get() & thread.lane_bit() != 0;
    if is_alone || is_elsewhere || is_waited_for {
        fail_in_barrier(thread, Activity::BlockBarrier, site);
    }
    if arrived == 0 {
        block.barrier_site.set(site);
        block.barrier_clock.set(0);
    }
    block.barrier_clock.set(block.barrier_clock.get().max(thread.clock.get()));
    if arrived + 1 == block_threads {
        block.barrier_arrived.set(0);
        block.released_clock.set(block.barrier_clock.get());
        for (warp_index, warp) in (0..).zip(&block.warps) {
            let released = warp.at_barrier.replace(0);
            warp.unavailable.set(warp.unavailable.get() & !released);
            if released != 0 {
                block.make_ready(warp_index, released);
            }
        }
        launch.count(|counters| counters.block_barriers += 1);
        if launch.is_watched {
            launch.tell(thread, Synchronization::BlockBarrier { block: thread.block().number() }, site);
        }
        launch.scheduling_point(thread);
    } else {
        block.barrier_arrived.set(arrived + 1);
        warp.at_barrier.set(warp.at_barrier.get() | thread.lane_bit());
        warp.unavailable.set(warp.unavailable.get() | thread.lane_bit());
        thread.suspend(Suspension::Waiting);
    }
    thread.clock.set(block.released_clock.get());
}
