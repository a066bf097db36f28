//! Copies from global to shared memory that go on beside the threads, and the barriers that tell when they have
//! landed (`cuda/async_copy.cuh`).
//!
//! Stores into another block of a cluster land likewise, and the barrier of that block counts them.
//!
//! A copy reads and writes at one moment, some switches after it was asked for: whoever does not wait for it finds
//! what was there before. A barrier that is used wrongly, or a block that ends before its copies have landed, is an
//! error; threads that wait for a phase that nobody completes are a deadlock.

use super::clusters;
use super::context::{Block, Launch, Suspension, Thread};
use super::copy_barrier::{Barrier, Task, UnderWay};
use super::faults::{Failed, fail, fail_in_backend, party};
use super::points::enter;
use crate::cpu::backend::{AccessKind, AsyncStore, Copy, Synchronization};
use crate::cpu::error::{Activity, CopyFault, ExecutionError, RawSite};
use std::ffi::{c_char, c_void};

#[cold]
fn refuse(thread: &Thread, fault: CopyFault, site: RawSite) -> ! {
    fail(thread, ExecutionError::Copy { fault, party: party(thread, Activity::Access, site) })
}

/// What `action` makes of a barrier of `block`; ends the launch if nobody has initialised it.
fn with_barrier<R>(
    thread: &Thread,
    block: &Block,
    address: usize,
    site: RawSite,
    action: impl FnOnce(&mut Barrier) -> R,
) -> R {
    let result = block.copies.borrow_mut().barrier(address).map(action);
    result.unwrap_or_else(|| refuse(thread, CopyFault::NotInitialized, site))
}

pub(super) unsafe extern "C" fn initialize(
    thread: *const Thread,
    barrier: *const c_void,
    arrivals: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: `async_copy.h` passes its current thread.
    let thread = unsafe { enter(thread, RawSite { file, line }) };
    let address = barrier.addr();
    let mut copies = thread.block().copies.borrow_mut();
    copies.barriers.retain(|barrier| barrier.address != address);
    copies.barriers.push(Barrier { address, arrivals, ..Barrier::default() });
}

pub(super) unsafe extern "C" fn initialized(thread: *const Thread, for_cluster: u32, file: *const c_char, line: u32) {
    // SAFETY: as in `initialize`.
    let thread = unsafe { enter(thread, RawSite { file, line }) };
    for barrier in &mut thread.block().copies.borrow_mut().barriers {
        let is_there =
            if for_cluster == 0 { &mut barrier.is_there_for_copies } else { &mut barrier.is_there_for_cluster };
        *is_there = true;
    }
}

pub(super) unsafe extern "C" fn arrive(
    thread: *const Thread,
    barrier: *const c_void,
    is_release: u32,
    file: *const c_char,
    line: u32,
) {
    let site = RawSite { file, line };
    // SAFETY: as in `initialize`.
    let thread = unsafe { enter(thread, site) };
    let (block, launch) = (thread.block(), thread.launch());
    let barrier = barrier.addr();
    let is_expected = with_barrier(thread, block, barrier, site, |barrier| {
        barrier.arrived += 1;
        barrier.clock = barrier.clock.max(thread.clock.get());
        barrier.arrived <= barrier.arrivals
    });
    if !is_expected {
        refuse(thread, CopyFault::TooManyArrivals, site);
    }
    launch.made_progress();
    let (index, thread_index) = (block.number(), thread.thread_index);
    let is_release = is_release != 0;
    let event = Synchronization::CopyBarrierArrival { block: index, thread: thread_index, barrier, is_release };
    launch.tell(thread, event, site);
    if let Err(message) = launch.complete_phase(block, barrier) {
        fail_in_backend(thread, message, site);
    }
    let phases = with_barrier(thread, block, barrier, site, |barrier| u64::from(barrier.phase));
    if phases > thread.grid().settings.most_phases {
        refuse(thread, CopyFault::TooManyPhases { phases }, site);
    }
}

pub(super) unsafe extern "C" fn wait(
    thread: *const Thread,
    barrier: *const c_void,
    parity: u32,
    is_acquire: u32,
    file: *const c_char,
    line: u32,
) {
    let site = RawSite { file, line };
    // SAFETY: as in `initialize`.
    let thread = unsafe { enter(thread, site) };
    let (block, lane) = (thread.block(), thread.lane_bit());
    let barrier = barrier.addr();
    let is_over = |barrier: &mut Barrier| {
        if barrier.phase & 1 != parity {
            thread.clock.set(thread.clock.get().max(barrier.released_clock));
            return true;
        }
        match barrier.waiting.iter_mut().find(|(warp, _)| *warp == thread.warp_index) {
            Some((_, lanes)) => *lanes |= lane,
            None => barrier.waiting.push((thread.warp_index, lane)),
        }
        false
    };
    while !with_barrier(thread, block, barrier, site, is_over) {
        let warp = thread.warp();
        warp.at_copy_barrier.set(warp.at_copy_barrier.get() | lane);
        // As on a GPU, a thread that comes a whole phase too late waits for the next one of that parity.
        thread.suspend(Suspension::Waiting);
    }
    let (index, thread_index) = (block.number(), thread.thread_index);
    let is_acquire = is_acquire != 0;
    let event = Synchronization::CopyBarrierWait { block: index, thread: thread_index, barrier, is_acquire };
    thread.launch().tell(thread, event, site);
}

pub(super) unsafe extern "C" fn expect(
    thread: *const Thread,
    barrier: *const c_void,
    bytes: u32,
    file: *const c_char,
    line: u32,
) {
    let site = RawSite { file, line };
    // SAFETY: as in `initialize`.
    let thread = unsafe { enter(thread, site) };
    let expect = |barrier: &mut Barrier| barrier.expected_bytes += i64::from(bytes);
    with_barrier(thread, thread.block(), barrier.addr(), site, expect);
}

pub(super) unsafe extern "C" fn copy_to_shared(
    thread: *const Thread,
    to: *mut c_void,
    from: *const c_void,
    bytes: u32,
    barrier: *const c_void,
    file: *const c_char,
    line: u32,
) {
    let site = RawSite { file, line };
    // SAFETY: as in `initialize`.
    let thread = unsafe { enter(thread, site) };
    let block = thread.block();
    let copy = Copy {
        number: block.copies.borrow_mut().next_number(),
        source: thread.access(AccessKind::ElementLoad, from.expose_provenance(), bytes, site),
        target: thread.access(AccessKind::SharedStore, to.expose_provenance(), bytes, site),
        barrier: barrier.addr(),
    };
    begin(thread, block, Task::Copy(copy), site);
}

pub(super) unsafe extern "C" fn store_to_cluster(
    thread: *const Thread,
    place: *const c_void,
    value: *const c_void,
    bytes: u32,
    rank: u32,
    barrier: *const c_void,
    file: *const c_char,
    line: u32,
) {
    let site = RawSite { file, line };
    // SAFETY: as in `initialize`.
    let thread = unsafe { enter(thread, site) };
    let find = |place: *const c_void, bytes| {
        let found = thread.launch().find_in_cluster(thread.block(), place.addr(), bytes, rank);
        found.unwrap_or_else(|fault| clusters::refuse(thread, fault, site))
    };
    let (block, to) = find(place, bytes as usize);
    let (_, counted_by) = find(barrier, 1);
    let mut stored = [0; 16];
    // SAFETY: `async_copy.h` passes a value of so many bytes, at most 16.
    unsafe { std::ptr::copy_nonoverlapping(value.cast::<u8>(), stored.as_mut_ptr(), bytes as usize) };
    let store = AsyncStore {
        number: block.copies.borrow_mut().next_number(),
        access: thread.access(AccessKind::ClusterStore, to.expose_provenance(), bytes, site),
        value: stored,
        block: block.number(),
        barrier: counted_by.addr(),
    };
    begin(thread, block, Task::Store(store), site);
}

/// Puts what `thread` asked for under way, with a barrier of `block` to count it.
fn begin(thread: &Thread, block: &Block, task: Task, site: RawSite) {
    let launch = thread.launch();
    let begun = launch.call_backend(|backend| match &task {
        Task::Copy(copy) => backend.copy_begins(copy),
        Task::Store(store) => backend.store_begins(store),
    });
    if let Err(message) = begun {
        fail_in_backend(thread, message, site);
    }
    let is_copy = matches!(task, Task::Copy(_));
    let is_there = with_barrier(thread, block, task.barrier(), site, |barrier| {
        barrier.copies += u32::from(is_copy);
        if is_copy { barrier.is_there_for_copies } else { barrier.is_there_for_cluster }
    });
    if !is_there {
        refuse(thread, CopyFault::NotThere, site);
    }
    block.copies.borrow_mut().under_way.push(UnderWay { task, party: party(thread, Activity::Access, site) });
    launch.copies_under_way.set(launch.copies_under_way.get() + 1);
}

/// Called where the last thread of a block returns.
pub(super) fn check_none_left(thread: &Thread) {
    if !thread.block().copies.borrow().under_way.is_empty() {
        refuse(thread, CopyFault::StillUnderWay, RawSite::NONE);
    }
}

impl Launch {
    /// Ends the current phase of a barrier if nothing is missing any more.
    fn complete_phase(&self, block: &Block, address: usize) -> Result<(), String> {
        let waiting = {
            let mut copies = block.copies.borrow_mut();
            match copies.barrier(address) {
                Some(barrier)
                    if barrier.arrived == barrier.arrivals && barrier.copies == 0 && barrier.expected_bytes == 0 =>
                {
                    barrier.phase = barrier.phase.wrapping_add(1);
                    barrier.arrived = 0;
                    barrier.released_clock = barrier.clock;
                    std::mem::take(&mut barrier.waiting)
                }
                _ => return Ok(()),
            }
        };
        for (warp_index, lanes) in waiting {
            let warp = &block.warps[warp_index as usize];
            warp.at_copy_barrier.set(warp.at_copy_barrier.get() & !lanes);
            block.make_ready(warp_index, lanes);
        }
        let event = Synchronization::CopyBarrierPhase { block: block.number(), barrier: address };
        self.call_backend(|backend| backend.synchronize(event)).map(drop)
    }

    /// Lets all copies land, in the order of blocks and as they were asked for; whether there were any.
    pub fn land_all_copies(&self) -> Result<bool, Failed> {
        let any = self.copies_under_way.get() != 0;
        for slot in self.slots.iter().filter(|_| any) {
            while !slot.copies.borrow().under_way.is_empty() {
                self.land(slot, 0)?;
            }
        }
        Ok(any)
    }

    /// Lets one of the copies under way land, drawn from the seed.
    pub fn land_a_copy(&self) -> Result<(), Failed> {
        let mut chosen = self.draw_below(self.copies_under_way.get()) as usize;
        for slot in &self.slots {
            let count = slot.copies.borrow().under_way.len();
            if chosen < count {
                return self.land(slot, chosen);
            }
            chosen -= count;
        }
        Ok(())
    }

    fn land(&self, block: &Block, position: usize) -> Result<(), Failed> {
        let UnderWay { task, party } = block.copies.borrow_mut().under_way.remove(position);
        self.copies_under_way.set(self.copies_under_way.get() - 1);
        let moved = self.call_backend(|backend| match &task {
            Task::Copy(copy) => backend.copy_lands(copy),
            Task::Store(store) => backend.store_lands(store),
        });
        if let Ok(None) = moved {
            move_natively(&task);
        }
        let address = task.barrier();
        let ended = moved.and_then(|_| {
            if let Some(barrier) = block.copies.borrow_mut().barrier(address) {
                match &task {
                    Task::Copy(_) => barrier.copies -= 1,
                    Task::Store(store) => barrier.expected_bytes -= i64::from(store.access.bytes),
                }
            }
            self.made_progress();
            self.complete_phase(block, address)
        });
        ended.map_err(|message| {
            self.fail_outside(ExecutionError::Backend { message, party });
            Failed
        })
    }
}

/// Moves the bytes where no back end does.
fn move_natively(task: &Task) {
    let (from, to, bytes) = match task {
        Task::Copy(Copy { source, target, .. }) => {
            (std::ptr::with_exposed_provenance(source.address), target.address, source.bytes)
        }
        Task::Store(store) => (store.value.as_ptr(), store.access.address, store.access.bytes),
    };
    // SAFETY: as for any plain access of a kernel, the arrays are as large as kernel and grid need (the promise of
    // `launch`); the target is shared memory of a block that has not ended.
    unsafe { std::ptr::copy(from, std::ptr::with_exposed_provenance_mut::<u8>(to), bytes as usize) };
}
