//! All state of a launch: the contexts of its CUDA threads, warps and blocks, and its own. The heads that kernels see
//! are those of `cuda/host/executor.h`.
//!
//! Kernels and callbacks reach a context through shared pointers while coroutines come and go, so
//! everything that changes is a `Cell`: no unique reference ever exists to be broken.

use super::abi::{lookback_executor, lookback_memory_backend, lookback_thread, lookback_warp};
use super::clocks::Clocks;
use super::copy_barrier::BlockCopies;
use super::grids::Grid;
use super::shared_memory::SharedMemory;
use super::trace::Trace;
use crate::cpu::backend::{Access, AccessKind, MemoryBackend, guarded};
use crate::cpu::error::{Activity, Collective, ExecutionError, RawSite};
use crate::cpu::settings::{Counters, LaunchSettings, TileStep};
use corosensei::Yielder;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ops::Deref;
use std::ptr;

pub(super) use super::abi::LOOKBACK_FULL_WARP as FULL_WARP;
pub(super) use crate::abi::LOOKBACK_WARP_LANES as WARP_LANES;

/// Why a coroutine gave up control. What it waits for is in the masks of its warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Suspension {
    /// It waits, or was preempted.
    Waiting,
    /// It returned from the kernel; resuming it runs the kernel again, for the next block in its slot.
    Finished,
    /// It has left an error in the launch and must not be resumed.
    Failed,
}

/// `lookback_warp`, and behind it what only the executor knows.
#[repr(C)]
pub(super) struct Warp {
    pub head: lookback_warp,

    /// Lanes that can run.
    pub ready: Cell<u32>,
    /// Lanes that sleep in `spin_pause`.
    pub sleeping: Cell<u32>,
    /// Lanes that wait in the collective of the whole warp, and which one it is.
    pub arrived: Cell<u32>,
    pub collective: Cell<u32>,
    pub site: Cell<RawSite>,
    /// Lanes that cannot arrive there: exited, or at the block barrier.
    pub unavailable: Cell<u32>,
    pub exited: Cell<u32>,
    pub at_barrier: Cell<u32>,
    /// Latest clock of the lanes that have arrived, and of the last complete collective.
    pub clock: Cell<u64>,
    pub released_clock: Cell<u64>,
    /// Lanes that wait for a phase of a barrier of copies.
    pub at_copy_barrier: Cell<u32>,
    /// Lanes that wait at the barrier of the cluster.
    pub at_cluster_barrier: Cell<u32>,
    /// Lanes that wait for the launch before.
    pub at_launch_wait: Cell<u32>,
    /// Lanes in the masks of `groups`.
    pub wanted: Cell<u32>,
    /// Collectives of some lanes that wait for others. Rare, so it may allocate.
    pub groups: RefCell<Vec<Group>>,
}

impl Warp {
    pub fn new() -> Self {
        Self {
            head: lookback_warp::default(),
            ready: Cell::new(0),
            sleeping: Cell::new(0),
            arrived: Cell::new(0),
            collective: Cell::new(0),
            site: Cell::new(RawSite::NONE),
            unavailable: Cell::new(0),
            exited: Cell::new(0),
            at_barrier: Cell::new(0),
            clock: Cell::new(0),
            released_clock: Cell::new(0),
            at_copy_barrier: Cell::new(0),
            at_cluster_barrier: Cell::new(0),
            at_launch_wait: Cell::new(0),
            wanted: Cell::new(0),
            groups: RefCell::new(Vec::new()),
        }
    }

    /// For the next block in this slot.
    pub fn reset(&self) {
        self.parity.set(0);
        self.ballots[0].set(0);
        self.ballots[1].set(0);
        self.ready.set(FULL_WARP);
        self.sleeping.set(0);
        self.arrived.set(0);
        self.unavailable.set(0);
        self.exited.set(0);
        self.at_barrier.set(0);
        self.clock.set(0);
        self.released_clock.set(0);
        self.at_copy_barrier.set(0);
        self.at_cluster_barrier.set(0);
        self.at_launch_wait.set(0);
        self.wanted.set(0);
        self.groups.borrow_mut().clear();
    }

    /// To be called when `groups` changed.
    pub fn update_wanted(&self) {
        self.wanted.set(self.groups.borrow().iter().fold(0, |wanted, group| wanted | group.mask));
    }

    /// The mask of a waiting collective of some lanes that names the lane.
    pub fn group_that_wants(&self, lane_bit: u32) -> Option<u32> {
        self.groups.borrow().iter().map(|group| group.mask).find(|mask| mask & lane_bit != 0)
    }

    /// What a lane does, from the masks it is in.
    pub fn activity(&self, lane: u32) -> Activity {
        let is_in = |mask: u32| mask >> lane & 1 != 0;
        if is_in(self.exited.get()) {
            Activity::Exited
        } else if is_in(self.at_barrier.get()) {
            Activity::BlockBarrier
        } else if is_in(self.arrived.get()) {
            Activity::WarpCollective { collective: Collective::from_number(self.collective.get()), mask: FULL_WARP }
        } else if is_in(self.sleeping.get()) {
            Activity::SpinWait
        } else if is_in(self.at_copy_barrier.get()) {
            Activity::CopyBarrier
        } else if is_in(self.at_cluster_barrier.get()) {
            Activity::ClusterBarrier
        } else if is_in(self.at_launch_wait.get()) {
            Activity::LaunchWait
        } else if let Some(group) = self.groups.borrow().iter().find(|group| is_in(group.arrived)) {
            Activity::WarpCollective { collective: Collective::from_number(group.collective), mask: group.mask }
        } else {
            Activity::Runnable
        }
    }
}

/// A collective of some lanes of a warp that waits for the others in its mask.
#[derive(Debug)]
pub(super) struct Group {
    pub mask: u32,
    pub arrived: u32,
    pub collective: u32,
    pub site: RawSite,
    pub bytes: u32,
    pub clock: u64,
    /// For each lane that has arrived: its value, on the stack of its suspended coroutine, and the lane
    /// whose value it wants.
    pub lanes: [(*mut u8, u32); WARP_LANES as usize],
}

/// `lookback_thread`, and behind it what only the executor knows.
#[repr(C)]
pub(super) struct Thread {
    pub head: lookback_thread,

    pub block: Cell<*const Block>,
    pub launch: Cell<*const Launch>,
    pub yielder: Cell<*const Yielder<(), Suspension>>,
    /// The last scheduling point, barrier or poll.
    pub site: Cell<RawSite>,
    /// The launch's count of polls when this thread polled last.
    pub last_poll: Cell<u64>,
    /// Protocol accesses since then.
    pub accesses_since_poll: Cell<u32>,
    /// The phase of the cluster's barrier that it has arrived in and not waited for.
    pub cluster_arrival: Cell<Option<u64>>,
}

impl Deref for Warp {
    type Target = lookback_warp;
    fn deref(&self) -> &lookback_warp {
        &self.head
    }
}

impl Deref for Thread {
    type Target = lookback_thread;
    fn deref(&self) -> &lookback_thread {
        &self.head
    }
}

/// What all threads of a launch are given.
#[derive(Clone, Copy)]
pub(super) struct ThreadOrigin {
    pub counters: *mut Counters,
    pub executor: *const lookback_executor,
    pub backend: *const lookback_memory_backend,
    pub grid_blocks: u64,
    pub block_threads: u32,
    pub intercept: u32,
    pub mutant: u32,
}

/// In place of a tile's index where a thread has not said that it waits for one.
pub(super) const NO_TILE: u64 = u64::MAX;

impl Thread {
    fn new(origin: ThreadOrigin, thread_index: u32) -> Self {
        Self {
            head: lookback_thread {
                counters: origin.counters,
                executor: origin.executor,
                backend: origin.backend,
                grid_blocks: origin.grid_blocks,
                thread_index,
                lane_index: thread_index % WARP_LANES,
                warp_index: thread_index / WARP_LANES,
                block_threads: origin.block_threads,
                intercept: origin.intercept,
                mutant: origin.mutant,
                waiting_tile: Cell::new(NO_TILE),
                missing_tile: Cell::new(NO_TILE),
                ..lookback_thread::default()
            },
            block: Cell::new(ptr::null()),
            launch: Cell::new(ptr::null()),
            yielder: Cell::new(ptr::null()),
            site: Cell::new(RawSite::NONE),
            last_poll: Cell::new(0),
            accesses_since_poll: Cell::new(0),
            cluster_arrival: Cell::new(None),
        }
    }

    pub fn lane_bit(&self) -> u32 {
        1 << self.lane_index
    }

    pub fn warp(&self) -> &Warp {
        // SAFETY: `Launch::connect` points it at the thread's warp, which lives as long as the thread.
        unsafe { &*self.warp.get() }
    }

    pub fn block(&self) -> &Block {
        // SAFETY: as in `warp`.
        unsafe { &*self.block.get() }
    }

    pub fn launch(&self) -> &Launch {
        // SAFETY: as in `warp`; the launch owns the thread.
        unsafe { &*self.launch.get() }
    }

    /// The launch of this thread, among those that the run takes together.
    pub fn grid(&self) -> &Grid {
        &self.launch().grids[self.block().grid]
    }

    /// An access of gpu scope that this thread makes.
    pub fn access(&self, kind: AccessKind, address: usize, bytes: u32, site: RawSite) -> Access {
        Access { site, ..Access::new(kind, address, bytes, self.block().number(), self.thread_index) }
    }

    /// Lets the scheduler choose; returns when it has chosen this thread again.
    pub fn suspend(&self, suspension: Suspension) {
        // SAFETY: the coroutine of this thread set the pointer when it started, it refers to that
        // coroutine's own stack, and only that coroutine calls this.
        unsafe { (*self.yielder.get()).suspend(suspension) }
    }
}

/// A slot for a resident block.
pub(super) struct Block {
    pub threads: Box<[Thread]>,
    pub warps: Box<[Warp]>,
    /// Which launch of the run it takes blocks of, and the number of that launch's first block.
    pub grid: usize,
    first_block: u64,
    pub index: Cell<u64>,
    /// Whether the next launch need not wait for this block to begin.
    pub allows_next: Cell<bool>,
    /// Threads of the block in the slot that have not returned; 0 when the slot is free.
    pub live_threads: Cell<u32>,
    /// Whether any of its threads has run.
    pub has_begun: Cell<bool>,
    pub stopped: Cell<bool>,
    /// The switch up to which it stands still; 0 if it does not.
    pub paused_until: Cell<u64>,
    /// Scheduling points, counted when a stop is asked for.
    pub points: Cell<u64>,
    /// Warps with lanes that can run.
    pub ready_warps: Cell<u32>,
    pub barrier_arrived: Cell<u32>,
    pub barrier_site: Cell<RawSite>,
    pub barrier_clock: Cell<u64>,
    pub released_clock: Cell<u64>,
    /// Barriers of copies in its shared memory, and copies into it.
    pub copies: RefCell<BlockCopies>,
    pub shared: SharedMemory,
}

impl Block {
    pub fn new(origin: ThreadOrigin, grid: usize, first_block: u64) -> Self {
        let warps = origin.block_threads / WARP_LANES;
        Self {
            threads: (0..origin.block_threads).map(|thread| Thread::new(origin, thread)).collect(),
            warps: (0..warps).map(|_| Warp::new()).collect(),
            grid,
            first_block,
            index: Cell::new(0),
            allows_next: Cell::new(false),
            live_threads: Cell::new(0),
            has_begun: Cell::new(false),
            stopped: Cell::new(false),
            paused_until: Cell::new(0),
            points: Cell::new(0),
            ready_warps: Cell::new(0),
            barrier_arrived: Cell::new(0),
            barrier_site: Cell::new(RawSite::NONE),
            barrier_clock: Cell::new(0),
            released_clock: Cell::new(0),
            copies: RefCell::default(),
            shared: SharedMemory::default(),
        }
    }

    /// Its number among the blocks of all launches of the run, which is what memory back ends call it by.
    pub fn number(&self) -> u64 {
        self.first_block + self.index.get()
    }

    /// Puts block `index` into this slot.
    pub fn start(&self, index: u64) {
        let warps = self.warps.len() as u32;
        self.index.set(index);
        self.allows_next.set(false);
        self.live_threads.set(self.threads.len() as u32);
        self.has_begun.set(false);
        self.stopped.set(false);
        self.paused_until.set(0);
        self.points.set(0);
        self.ready_warps.set(FULL_WARP >> (WARP_LANES - warps));
        self.barrier_arrived.set(0);
        self.barrier_clock.set(0);
        self.released_clock.set(0);
        self.copies.borrow_mut().clear();
        self.shared.clear();
        for warp in &self.warps {
            warp.reset();
        }
        for thread in &self.threads {
            thread.block_index.set(index);
            thread.clock.set(0);
            thread.site.set(RawSite::NONE);
            thread.last_poll.set(0);
            thread.accesses_since_poll.set(0);
            thread.cluster_arrival.set(None);
            thread.waiting_tile.set(NO_TILE);
            thread.missing_tile.set(NO_TILE);
        }
    }

    /// Lets lanes of a warp run.
    pub fn make_ready(&self, warp_index: u32, lanes: u32) {
        let warp = &self.warps[warp_index as usize];
        warp.ready.set(warp.ready.get() | lanes);
        self.ready_warps.set(self.ready_warps.get() | 1 << warp_index);
    }
}

/// The barrier of the cluster that a launch is.
#[derive(Debug, Default)]
pub(super) struct ClusterBarrier {
    /// Phases that are over.
    pub phase: Cell<u64>,
    /// Threads that have arrived in this one.
    pub arrived: Cell<u64>,
    /// Latest clock of those, and of those in the phase before.
    pub clock: Cell<u64>,
    pub released_clock: Cell<u64>,
}

/// All state of a run: of a launch, or of several that are taken together.
pub(super) struct Launch {
    /// Those of the first launch; what is each launch's own is in `grids`.
    pub settings: LaunchSettings,
    pub grids: Box<[Grid]>,
    /// Streams that they are on in turn: each follows the one so many before.
    pub streams: usize,
    pub slots: Box<[Block]>,
    pub current_thread: *mut *const Thread,
    pub backend: Option<*mut dyn MemoryBackend>,
    pub trace: Option<RefCell<Trace>>,
    /// What warps have come to with tiles, if somebody looks.
    pub steps: Option<RefCell<Vec<TileStep>>>,
    pub switches: Cell<u64>,
    pub preemption: u32,
    /// Threads that sleep in `spin_pause`.
    pub sleepers: Cell<u32>,
    pub stopped_blocks: Cell<u64>,
    /// Copies to shared memory that have not landed.
    pub copies_under_way: Cell<u32>,
    pub counters: UnsafeCell<Counters>,
    pub random: RefCell<Pcg64Mcg>,
    pub points: Cell<u64>,
    /// Polls so far, and at the start of the window in which somebody must make progress.
    pub polls: Cell<u64>,
    pub window_start: Cell<u64>,
    pub clocks: RefCell<Clocks>,
    pub failure: RefCell<Option<ExecutionError>>,
    /// Whether meeting lanes have to be reported to a back end, and whether points may preempt or stop:
    /// what the fast paths ask once.
    pub is_watched: bool,
    pub has_points: bool,
}

impl Launch {
    pub fn count<R>(&self, action: impl FnOnce(&mut Counters) -> R) -> R {
        // SAFETY: the reference ends with the action, which calls nobody that counts; kernels count through
        // a pointer on the same OS thread, never at the same time.
        action(unsafe { &mut *self.counters.get() })
    }

    /// A random number. Only random schedules ask.
    pub fn draw(&self) -> u32 {
        self.random.borrow_mut().next_u32()
    }

    /// A random number below `bound`, almost evenly.
    pub fn draw_below(&self, bound: u32) -> u32 {
        ((u64::from(self.draw()) * u64::from(bound)) >> 32) as u32
    }

    /// Somebody stored, returned or started, so whoever polls may find something new.
    pub fn made_progress(&self) {
        self.window_start.set(self.polls.get());
    }

    /// Whether every block has ended, but for those that were stopped.
    pub fn is_done(&self) -> bool {
        let blocks = self.grids.iter().map(|grid| grid.settings.grid_blocks).sum::<u64>();
        let finished = self.grids.iter().map(|grid| grid.finished_blocks.get()).sum::<u64>();
        finished + self.stopped_blocks.get() == blocks
    }

    pub fn waiting_blocks(&self) -> u64 {
        self.grids.iter().map(|grid| grid.settings.grid_blocks - grid.started_blocks.get()).sum()
    }

    /// Calls the back end, if there is one; whatever goes wrong in it becomes a message.
    pub fn call_backend<R>(
        &self,
        call: impl FnOnce(&mut dyn MemoryBackend) -> Result<R, String>,
    ) -> Result<Option<R>, String> {
        let Some(backend) = self.backend else { return Ok(None) };
        // SAFETY: `launch_on` holds the back end exclusively while the launch runs, and no call into it switches
        // coroutines, so this is the only reference.
        guarded(|| call(unsafe { &mut *backend })).map(Some)
    }
}
