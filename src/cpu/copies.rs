//! Copies from global to shared memory that go on beside the threads, and the barriers that tell when they have
//! landed (`cuda/async_copy.cuh`).
//!
//! Stores into another block of a cluster land likewise, and the barrier of that block counts them.
//!
//! A copy reads and writes at one moment, some switches after it was asked for: whoever does not wait for it finds
//! what was there before. A barrier that is used wrongly, or a block that ends before its copies have landed, is an
//! error; threads that wait for a phase that nobody completes are a deadlock.

use super::backend::{Access, AccessKind, AsyncStore, Copy, Scope, Synchronization, guarded};
use super::clusters;
use super::context::{Block, Thread};
use super::error::{Activity, CopyFault, ExecutionError, Party, RawSite};
use super::executor::{Launch, fail, fail_in_backend, party};
use super::schedule::{Failed, Suspension};
use std::ffi::{c_char, c_void};

/// A barrier, by its address in shared memory.
#[derive(Debug)]
struct Barrier {
    address: usize,
    /// Arrivals that a phase takes, and those that have come.
    arrivals: u32,
    arrived: u32,
    /// Copies under the current phase that have not landed.
    copies: u32,
    /// Bytes of other blocks' stores that the current phase expects and that have not landed; below 0 while some have
    /// landed that it does not expect yet.
    expected_bytes: i64,
    /// The number of the current phase.
    phase: u32,
    /// Latest clock of those who arrived, and of those in the phase before.
    clock: u64,
    released_clock: u64,
    /// Who waits for the current phase: warps, and lanes of each.
    waiting: Vec<(u32, u32)>,
}

/// What has not landed.
#[derive(Debug, Clone, Copy)]
enum Task {
    Copy(Copy),
    Store(AsyncStore),
}

/// The same, and who asked for it.
#[derive(Debug)]
struct UnderWay {
    task: Task,
    party: Party,
}

/// The barriers and copies of one block.
#[derive(Debug, Default)]
pub(super) struct BlockCopies {
    barriers: Vec<Barrier>,
    under_way: Vec<UnderWay>,
    /// Copies and stores asked for so far.
    asked: u64,
}

impl BlockCopies {
    /// For the next block in the slot.
    pub fn clear(&mut self) {
        self.barriers.clear();
        self.under_way.clear();
    }

    fn barrier(&mut self, address: usize) -> Option<&mut Barrier> {
        self.barriers.iter_mut().find(|barrier| barrier.address == address)
    }
}

#[cold]
fn refuse(thread: &Thread, fault: CopyFault, site: RawSite) -> ! {
    fail(thread, ExecutionError::Copy { fault, party: party(thread, Activity::Access, site) })
}

/// The running thread, at a place where the schedule may switch.
///
/// # Safety
/// `thread` is the context of the running coroutine.
unsafe fn enter<'a>(thread: *const Thread, site: RawSite) -> &'a Thread {
    // SAFETY: the caller's promise; contexts outlive their coroutines.
    let thread = unsafe { &*thread };
    thread.site.set(site);
    if thread.launch().has_points {
        thread.launch().scheduling_point(thread);
    }
    thread
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
    copies.barriers.push(Barrier {
        address,
        arrivals,
        arrived: 0,
        copies: 0,
        expected_bytes: 0,
        phase: 0,
        clock: 0,
        released_clock: 0,
        waiting: Vec::new(),
    });
}

pub(super) unsafe extern "C" fn arrive(thread: *const Thread, barrier: *const c_void, file: *const c_char, line: u32) {
    let site = RawSite { file, line };
    // SAFETY: as in `initialize`.
    let thread = unsafe { enter(thread, site) };
    let (block, launch) = (thread.block(), thread.launch());
    let address = barrier.addr();
    let arrival = block.copies.borrow_mut().barrier(address).map(|barrier| {
        barrier.arrived += 1;
        barrier.clock = barrier.clock.max(thread.clock.get());
        barrier.arrived <= barrier.arrivals
    });
    match arrival {
        None => refuse(thread, CopyFault::NotInitialized, site),
        Some(false) => refuse(thread, CopyFault::TooManyArrivals, site),
        Some(true) => {}
    }
    launch.made_progress();
    let event =
        Synchronization::CopyBarrierArrival { block: block.index.get(), thread: thread.thread_index, barrier: address };
    launch.tell(thread, event, site);
    if let Err(message) = launch.complete_phase(block, address) {
        fail_in_backend(thread, message, site);
    }
}

pub(super) unsafe extern "C" fn wait(
    thread: *const Thread,
    barrier: *const c_void,
    parity: u32,
    file: *const c_char,
    line: u32,
) {
    let site = RawSite { file, line };
    // SAFETY: as in `initialize`.
    let thread = unsafe { enter(thread, site) };
    let (block, launch) = (thread.block(), thread.launch());
    let address = barrier.addr();
    loop {
        let is_over = block.copies.borrow_mut().barrier(address).map(|barrier| {
            let is_over = barrier.phase & 1 != parity;
            if is_over {
                thread.clock.set(thread.clock.get().max(barrier.released_clock));
            } else {
                let lane = thread.lane_bit();
                match barrier.waiting.iter_mut().find(|(warp, _)| *warp == thread.warp_index) {
                    Some((_, lanes)) => *lanes |= lane,
                    None => barrier.waiting.push((thread.warp_index, lane)),
                }
            }
            is_over
        });
        match is_over {
            None => refuse(thread, CopyFault::NotInitialized, site),
            Some(true) => break,
            Some(false) => {}
        }
        let warp = thread.warp();
        warp.at_copy_barrier.set(warp.at_copy_barrier.get() | thread.lane_bit());
        // Whoever is late finds, as on a GPU, the parity of a phase that is not the one it waited for.
        thread.suspend(Suspension::Waiting);
    }
    let event =
        Synchronization::CopyBarrierWait { block: block.index.get(), thread: thread.thread_index, barrier: address };
    launch.tell(thread, event, site);
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
    let (block, launch) = (thread.block(), thread.launch());
    let access = |kind, address| Access {
        kind,
        scope: Scope::Gpu,
        is_vector: false,
        address,
        bytes,
        block: block.index.get(),
        thread: thread.thread_index,
        site,
    };
    let copy = {
        let mut copies = block.copies.borrow_mut();
        copies.asked += 1;
        Copy {
            number: copies.asked,
            source: access(AccessKind::ElementLoad, from.expose_provenance()),
            target: access(AccessKind::SharedStore, to.expose_provenance()),
            barrier: barrier.addr(),
        }
    };
    if let Some(backend) = launch.backend {
        // SAFETY: as in `backend::call`: the launch holds the back end exclusively.
        if let Err(message) = guarded(|| unsafe { &mut *backend }.copy_begins(&copy)) {
            fail_in_backend(thread, message, site);
        }
    }
    let is_known = {
        let mut copies = block.copies.borrow_mut();
        let known = copies.barrier(copy.barrier).map(|barrier| barrier.copies += 1).is_some();
        if known {
            copies.under_way.push(UnderWay { task: Task::Copy(copy), party: party(thread, Activity::Access, site) });
        }
        known
    };
    if !is_known {
        refuse(thread, CopyFault::NotInitialized, site);
    }
    launch.copies_under_way.set(launch.copies_under_way.get() + 1);
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
    let mut copies = thread.block().copies.borrow_mut();
    let known = copies.barrier(barrier.addr()).map(|barrier| barrier.expected_bytes += i64::from(bytes));
    drop(copies);
    if known.is_none() {
        refuse(thread, CopyFault::NotInitialized, site);
    }
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
    let launch = thread.launch();
    let find = |place: *const c_void, bytes| {
        let found = launch.find_in_cluster(thread.block(), place.addr(), bytes, rank);
        found.unwrap_or_else(|fault| clusters::refuse(thread, fault, site))
    };
    let (block, to) = find(place, bytes as usize);
    let (_, counted_by) = find(barrier, 1);
    let mut stored = [0; 16];
    // SAFETY: `async_copy.h` passes a value of so many bytes, at most 16.
    unsafe { std::ptr::copy_nonoverlapping(value.cast::<u8>(), stored.as_mut_ptr(), bytes as usize) };
    let store = {
        let mut copies = block.copies.borrow_mut();
        copies.asked += 1;
        AsyncStore {
            number: copies.asked,
            access: Access {
                kind: AccessKind::ClusterStore,
                scope: Scope::Gpu,
                is_vector: false,
                address: to.expose_provenance(),
                bytes,
                block: thread.block_index.get(),
                thread: thread.thread_index,
                site,
            },
            value: stored,
            block: block.index.get(),
            barrier: counted_by.addr(),
        }
    };
    if let Some(backend) = launch.backend {
        // SAFETY: as in `backend::call`: the launch holds the back end exclusively.
        if let Err(message) = guarded(|| unsafe { &mut *backend }.store_begins(&store)) {
            fail_in_backend(thread, message, site);
        }
    }
    if block.copies.borrow_mut().barrier(store.barrier).is_none() {
        refuse(thread, CopyFault::NotInitialized, site);
    }
    let under_way = UnderWay { task: Task::Store(store), party: party(thread, Activity::Access, site) };
    block.copies.borrow_mut().under_way.push(under_way);
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
        let Some(backend) = self.backend else { return Ok(()) };
        let event = Synchronization::CopyBarrierPhase { block: block.index.get(), barrier: address };
        // SAFETY: as in `backend::call`: the launch holds the back end exclusively.
        guarded(|| unsafe { &mut *backend }.synchronize(event))
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
        let moved = match (self.backend, &task) {
            // SAFETY: as in `backend::call`: the launch holds the back end exclusively.
            (Some(backend), Task::Copy(copy)) => guarded(|| unsafe { &mut *backend }.copy_lands(copy)),
            // SAFETY: the same.
            (Some(backend), Task::Store(store)) => guarded(|| unsafe { &mut *backend }.store_lands(store)),
            (None, Task::Copy(copy)) => {
                // SAFETY: as for any plain access of a kernel, the arrays are as large as kernel and grid need (the
                // promise of `launch`); the target is shared memory of a block that has not ended.
                unsafe {
                    std::ptr::copy(
                        std::ptr::with_exposed_provenance::<u8>(copy.source.address),
                        std::ptr::with_exposed_provenance_mut::<u8>(copy.target.address),
                        copy.source.bytes as usize,
                    );
                }
                Ok(())
            }
            (None, Task::Store(store)) => {
                let to = std::ptr::with_exposed_provenance_mut::<u8>(store.access.address);
                // SAFETY: shared memory of a block that has not ended, found where the store was made.
                unsafe { std::ptr::copy_nonoverlapping(store.value.as_ptr(), to, store.access.bytes as usize) };
                Ok(())
            }
        };
        let address = match &task {
            Task::Copy(copy) => copy.barrier,
            Task::Store(store) => store.barrier,
        };
        let ended = moved.and_then(|()| {
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

    /// Forgets the copies of a block that is stopped.
    pub fn drop_copies(&self, block: &Block) {
        let dropped = std::mem::take(&mut block.copies.borrow_mut().under_way).len() as u32;
        self.copies_under_way.set(self.copies_under_way.get() - dropped);
    }
}
