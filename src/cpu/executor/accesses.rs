//! What single threads ask of the executor: accesses to memory, shared memory, and a pause while they poll.

use super::abi;
use super::context::{Launch, Suspension, Thread};
use super::faults::{fail, party};
use super::points::enter;
use crate::cpu::backend::Synchronization;
use crate::cpu::error::{Activity, ExecutionError, RawSite};
use std::ffi::{c_char, c_void};

/// Numbers of `lookback_access` where protocol accesses begin, and where fetch-and-adds do; among the
/// protocol's loads and stores the stores are odd.
const FIRST_PROTOCOL_ACCESS: u32 = abi::LOOKBACK_ACCESS_RELAXED_LOAD;
const FIRST_FETCH_ADD: u32 = abi::LOOKBACK_ACCESS_RELAXED_FETCH_ADD;
const FENCE: u32 = abi::LOOKBACK_ACCESS_FENCE;

/// A thread that makes this many protocol accesses without `spin_pause` is treated as if it had called
/// it: it may be a polling loop that forgot to.
const ACCESSES_BETWEEN_POLLS: u32 = 4096;

pub(super) unsafe extern "C" fn spin_pause(thread: *const Thread, file: *const c_char, line: u32) {
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { &*thread };
    let launch = thread.launch();
    launch.count(|counters| counters.spin_polls += 1);
    launch.scheduling_point(thread);
    poll(thread, RawSite { file, line });
}

/// Sleeps until the others have had their turn, unless none of them can help.
fn poll(thread: &Thread, site: RawSite) {
    let (warp, launch) = (thread.warp(), thread.launch());
    let polls = launch.polls.get() + 1;
    launch.polls.set(polls);
    thread.last_poll.set(polls);
    thread.accesses_since_poll.set(0);
    thread.site.set(site);
    warp.sleeping.set(warp.sleeping.get() | thread.lane_bit());
    launch.sleepers.set(launch.sleepers.get() + 1);
    let live_threads = launch.slots.iter().map(|slot| u64::from(slot.live_threads.get())).sum::<u64>();
    if polls - launch.window_start.get() > u64::from(launch.settings.lost_progress_rounds) * (live_threads + 1) {
        check_progress(thread, launch);
    }
    thread.suspend(Suspension::Waiting);
}

/// A window of polls has gone by and nobody stored, returned or started. Progress is lost if all threads that can run
/// have polled in that window; otherwise one of them still computes, and another window begins.
#[cold]
fn check_progress(thread: &Thread, launch: &Launch) {
    let window_start = launch.window_start.get();
    let somebody_computes = launch.slots.iter().any(|slot| {
        let is_ready = |thread: &Thread| thread.warp().ready.get() & thread.lane_bit() != 0;
        slot.live_threads.get() != 0
            && slot.threads.iter().any(|thread| is_ready(thread) && thread.last_poll.get() <= window_start)
    });
    // A block that stands still on request may be the one that they wait for.
    let somebody_is_paused = launch.slots.iter().any(|slot| slot.paused_until.replace(0) != 0);
    if somebody_computes || somebody_is_paused || launch.copies_under_way.get() != 0 {
        launch.made_progress();
        return;
    }
    // Whoever is about to poll again counts as polling.
    for slot in launch.slots.iter().filter(|slot| slot.live_threads.get() != 0) {
        for warp in &slot.warps {
            warp.sleeping.set(warp.sleeping.get() | warp.ready.replace(0));
        }
    }
    let error = ExecutionError::LostProgress {
        parties: launch.everybody(Some(thread)),
        waiting_blocks: launch.waiting_blocks(),
    };
    fail(thread, error);
}

pub(super) unsafe extern "C" fn access_point(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    _bytes: u32,
    file: *const c_char,
    line: u32,
) {
    let site = RawSite { file, line };
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { enter(thread, site) };
    let launch = thread.launch();
    // Scope and vector width are the back end's business.
    let access = access & 0xff;
    if !(FIRST_PROTOCOL_ACCESS..FENCE).contains(&access) {
        return;
    }

    let accesses = thread.accesses_since_poll.get() + 1;
    thread.accesses_since_poll.set(accesses);
    if accesses > ACCESSES_BETWEEN_POLLS {
        poll(thread, site);
    }
    if let Some(trace) = &launch.trace {
        trace.borrow_mut().access(thread.block().number(), thread.thread_index, access, line, address.addr());
    }
    // From here on nobody else runs before the access.
    let is_update = access >= FIRST_FETCH_ADD;
    let is_store = is_update || access % 2 == 1;
    launch.count(|counters| match (is_update, is_store) {
        (true, _) => counters.protocol_updates += 1,
        (false, true) => counters.protocol_stores += 1,
        (false, false) => counters.protocol_loads += 1,
    });
    let mut clocks = launch.clocks.borrow_mut();
    let clock = thread.clock.get();
    if is_store {
        launch.made_progress();
        let stored = clocks.store(address.addr(), clock);
        if is_update {
            thread.clock.set(stored);
        }
    } else {
        thread.clock.set(clock.max(clocks.load(address.addr())));
    }
}

pub(super) unsafe extern "C" fn shared_storage(
    thread: *const Thread,
    key: *const c_void,
    bytes: u32,
    alignment: u32,
    file: *const c_char,
    line: u32,
) -> *mut c_void {
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { &*thread };
    let (block, launch) = (thread.block(), thread.launch());
    let site = RawSite { file, line };
    let mut bytes = bytes;
    if key.is_null() {
        let given_bytes = thread.grid().settings.dynamic_shared_bytes;
        if bytes > given_bytes {
            let party = party(thread, Activity::Access, site);
            fail(thread, ExecutionError::DynamicSharedMemory { asked_bytes: bytes, given_bytes, party });
        }
        // What lies beyond it is nobody's, whatever the kernel believes to have.
        bytes = given_bytes;
    }
    if let Some(address) = block.shared.find(key.addr()) {
        return address.cast();
    }
    let limit_bytes = thread.grid().settings.shared_limit_bytes;
    let poison = launch.settings.poison;
    match block.shared.declare(key.addr(), bytes as usize, alignment as usize, limit_bytes as usize, poison) {
        Ok((address, declared)) => {
            launch.count(|counters| counters.shared_bytes = counters.shared_bytes.max(declared as u64));
            let event = Synchronization::SharedStorage { block: block.number(), address: address.addr(), bytes };
            launch.tell(thread, event, site);
            address.cast()
        }
        Err(needed) => fail(
            thread,
            ExecutionError::SharedMemory {
                needed_bytes: needed as u64,
                limit_bytes,
                party: party(thread, Activity::Access, site),
            },
        ),
    }
}

pub(super) unsafe extern "C" fn misaligned(
    thread: *const Thread,
    address: *const c_void,
    bytes: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { &*thread };
    let party = party(thread, Activity::Access, RawSite { file, line });
    fail(thread, ExecutionError::Misaligned { address: address.addr(), bytes, party });
}
