//! One launch: its state, what kernels ask of it, and the faults it finds.

use super::backend::{BACKEND_FUNCTIONS, MemoryBackend, Synchronization, guarded};
use super::clusters::{self, ClusterBarrier};
use super::context::{Block, Counters, FULL_WARP, Group, NO_TILE, Thread, ThreadOrigin, WARP_LANES, Warp};
use super::copies;
use super::error::{Activity, Collective, ExecutionError, MaskFault, Party, RawSite};
use super::order::StartOrder;
use super::schedule::{Fiber, Fibers, Suspension, preemption_threshold};
use super::settings::{LaunchReport, LaunchSettings, Stop};
use super::stack::ColouredStack;
use super::trace::Trace;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr;

/// `lookback_executor` of `cuda/host/executor.h`.
#[repr(C)]
pub(super) struct ExecutorFunctions {
    pub rendezvous: unsafe extern "C" fn(*const Thread, u32, *const c_char, u32),
    pub exchange: unsafe extern "C" fn(*const Thread, u32, u32, u32, *mut c_void, u32, *const c_char, u32),
    pub block_barrier: unsafe extern "C" fn(*const Thread, *const c_char, u32),
    pub spin_pause: unsafe extern "C" fn(*const Thread, *const c_char, u32),
    pub access_point: unsafe extern "C" fn(*const Thread, u32, *const c_void, u32, *const c_char, u32),
    pub shared_storage: unsafe extern "C" fn(*const Thread, *const c_void, u32, u32, *const c_char, u32) -> *mut c_void,
    pub misaligned: unsafe extern "C" fn(*const Thread, *const c_void, u32, *const c_char, u32),
    pub copy_barrier_initialize: unsafe extern "C" fn(*const Thread, *const c_void, u32, *const c_char, u32),
    pub copy_barrier_arrive: unsafe extern "C" fn(*const Thread, *const c_void, *const c_char, u32),
    pub copy_barrier_expect: unsafe extern "C" fn(*const Thread, *const c_void, u32, *const c_char, u32),
    pub copy_barrier_wait: unsafe extern "C" fn(*const Thread, *const c_void, u32, *const c_char, u32),
    pub copy_to_shared:
        unsafe extern "C" fn(*const Thread, *mut c_void, *const c_void, u32, *const c_void, *const c_char, u32),
    pub cluster_barrier_arrive: unsafe extern "C" fn(*const Thread, u32, *const c_char, u32),
    pub cluster_barrier_wait: unsafe extern "C" fn(*const Thread, *const c_char, u32),
    pub store_to_cluster:
        unsafe extern "C" fn(*const Thread, *const c_void, *const c_void, u32, u32, *const c_void, *const c_char, u32),
}

static EXECUTOR_FUNCTIONS: ExecutorFunctions = ExecutorFunctions {
    rendezvous,
    exchange,
    block_barrier,
    spin_pause,
    access_point,
    shared_storage,
    misaligned,
    copy_barrier_initialize: copies::initialize,
    copy_barrier_arrive: copies::arrive,
    copy_barrier_expect: copies::expect,
    copy_barrier_wait: copies::wait,
    copy_to_shared: copies::copy_to_shared,
    cluster_barrier_arrive: clusters::arrive,
    cluster_barrier_wait: clusters::wait,
    store_to_cluster: copies::store_to_cluster,
};

const INTERCEPT_BACKEND: u32 = 1;
const INTERCEPT_PLAIN_POINTS: u32 = 2;

/// Numbers of `lookback_access` where protocol accesses begin, and where fetch-and-adds do; among the
/// protocol's loads and stores the stores are odd.
const FIRST_PROTOCOL_ACCESS: u32 = 6;
const FIRST_FETCH_ADD: u32 = 12;
const FENCE: u32 = 14;

/// A thread that makes this many protocol accesses without `spin_pause` is treated as if it had called
/// it: it may be a polling loop that forgot to.
const ACCESSES_BETWEEN_POLLS: u32 = 4096;

unsafe extern "C" {
    fn lookback_current_thread_slot() -> *mut *const c_void;
}

/// All state of a launch.
pub(super) struct Launch {
    pub settings: LaunchSettings,
    pub slots: Box<[Block]>,
    pub current_thread: *mut *const Thread,
    pub backend: Option<*mut dyn MemoryBackend>,
    pub trace: Option<RefCell<Trace>>,
    pub switches: Cell<u64>,
    pub preemption: u32,
    /// Threads that sleep in `spin_pause`.
    pub sleepers: Cell<u32>,
    pub stopped_blocks: Cell<u64>,
    /// Copies to shared memory that have not landed.
    pub copies_under_way: Cell<u32>,
    pub cluster_barrier: ClusterBarrier,
    counters: UnsafeCell<Counters>,
    random: RefCell<Pcg64Mcg>,
    start_order: StartOrder,
    started_blocks: Cell<u64>,
    finished_blocks: Cell<u64>,
    points: Cell<u64>,
    /// Polls so far, and at the start of the window in which somebody must make progress.
    polls: Cell<u64>,
    window_start: Cell<u64>,
    /// For each address of the protocol: the clock of the latest chain that was stored there.
    clocks: RefCell<HashMap<usize, u64, BuildHasherDefault<AddressHasher>>>,
    failure: RefCell<Option<ExecutionError>>,
    /// Whether meeting lanes have to be reported to a back end, and whether points may preempt or stop:
    /// what the fast paths ask once.
    is_watched: bool,
    pub has_points: bool,
}

/// Spreads addresses: they are multiples of their size and close to each other.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, value: usize) {
        let mixed = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Runs a kernel over a grid.
///
/// # Errors
/// What the kernel or the settings did wrong.
///
/// # Safety
/// `body` is a kernel of `cuda/`, compiled for this executor; `config` and `arguments` are what it
/// expects, and the arrays that `arguments` points to are as large as the kernel and the grid need.
pub unsafe fn launch<Config, Arguments>(
    body: unsafe extern "C" fn(*const Config, *const Arguments),
    config: &Config,
    arguments: &Arguments,
    settings: &LaunchSettings,
) -> Result<LaunchReport, ExecutionError> {
    // SAFETY: the caller's promise.
    unsafe { run(Kernel::new(body, config, arguments), settings, None) }
}

/// Runs a kernel over a grid with all its memory accesses answered by `backend`.
///
/// # Errors
/// What the kernel, the settings or the back end did wrong.
///
/// # Safety
/// As for [`launch`]; what memory is touched is up to the back end.
pub unsafe fn launch_on<Config, Arguments>(
    backend: &mut dyn MemoryBackend,
    body: unsafe extern "C" fn(*const Config, *const Arguments),
    config: &Config,
    arguments: &Arguments,
    settings: &LaunchSettings,
) -> Result<LaunchReport, ExecutionError> {
    // SAFETY: the caller's promise. The launch ends before the borrow does, so the longer lifetime that
    // the pointer's type claims is never used.
    unsafe {
        let backend = std::mem::transmute::<*mut (dyn MemoryBackend + '_), *mut (dyn MemoryBackend + 'static)>(backend);
        run(Kernel::new(body, config, arguments), settings, Some(backend))
    }
}

/// A kernel with what it is given, whatever the types.
#[derive(Clone, Copy)]
struct Kernel {
    body: unsafe extern "C" fn(*const c_void, *const c_void),
    config: *const c_void,
    arguments: *const c_void,
}

impl Kernel {
    fn new<Config, Arguments>(
        body: unsafe extern "C" fn(*const Config, *const Arguments),
        config: &Config,
        arguments: &Arguments,
    ) -> Self {
        // SAFETY: pointers to sized types are passed alike, and the kernel is called with pointers to the
        // very objects that it was declared for.
        let body = unsafe {
            std::mem::transmute::<
                unsafe extern "C" fn(*const Config, *const Arguments),
                unsafe extern "C" fn(*const c_void, *const c_void),
            >(body)
        };
        Self { body, config: ptr::from_ref(config).cast(), arguments: ptr::from_ref(arguments).cast() }
    }
}

/// Restores the current thread of a launch that this one is nested in (from a memory back end, say).
struct RestoreCurrent {
    slot: *mut *const Thread,
    previous: *const Thread,
}

impl Drop for RestoreCurrent {
    fn drop(&mut self) {
        // SAFETY: the slot is this OS thread's own.
        unsafe { self.slot.write(self.previous) };
    }
}

/// # Safety
/// As for [`launch`]; `backend` outlives the call and is used by nobody else meanwhile.
unsafe fn run(
    kernel: Kernel,
    settings: &LaunchSettings,
    backend: Option<*mut dyn MemoryBackend>,
) -> Result<LaunchReport, ExecutionError> {
    settings.check()?;
    if let Some(backend) = backend {
        // SAFETY: the caller's promise.
        let begun = guarded(|| unsafe { &mut *backend }.launch_begins(settings.grid_blocks, settings.block_threads));
        begun.map_err(|fault| ExecutionError::InvalidSettings { fault })?;
    }
    let launch = Launch::new(settings, backend);
    launch.connect();
    // SAFETY: the slot is this OS thread's own and is initialised to null.
    let _restore = unsafe { RestoreCurrent { slot: launch.current_thread, previous: launch.current_thread.read() } };
    // Dropped before the launch: the coroutines point into it.
    let mut fibers = launch.make_fibers(kernel)?;
    launch.run(&mut fibers)?;
    drop(fibers);
    Ok(launch.report())
}

impl Launch {
    fn new(settings: &LaunchSettings, backend: Option<*mut dyn MemoryBackend>) -> Box<Self> {
        let intercept = if backend.is_some() { INTERCEPT_BACKEND } else { 0 }
            | if settings.plain_points { INTERCEPT_PLAIN_POINTS } else { 0 };
        let preemption = preemption_threshold(settings.schedule);
        let mut launch = Box::new(Self {
            settings: settings.clone(),
            slots: Box::new([]),
            // SAFETY: the function only takes an address.
            current_thread: unsafe { lookback_current_thread_slot() }.cast(),
            backend,
            trace: settings.trace.then(RefCell::default),
            switches: Cell::new(0),
            preemption,
            sleepers: Cell::new(0),
            stopped_blocks: Cell::new(0),
            copies_under_way: Cell::new(0),
            cluster_barrier: ClusterBarrier::default(),
            counters: UnsafeCell::default(),
            random: RefCell::new(Pcg64Mcg::seed_from_u64(settings.seed)),
            start_order: StartOrder::new(settings.block_order, settings.grid_blocks, settings.seed),
            started_blocks: Cell::new(0),
            finished_blocks: Cell::new(0),
            points: Cell::new(0),
            polls: Cell::new(0),
            window_start: Cell::new(0),
            clocks: RefCell::default(),
            failure: RefCell::new(None),
            is_watched: backend.is_some(),
            has_points: preemption != 0 || settings.stop.is_some() || settings.pause.is_some(),
        });
        let origin = ThreadOrigin {
            counters: launch.counters.get(),
            executor: &EXECUTOR_FUNCTIONS,
            backend: if backend.is_some() { &BACKEND_FUNCTIONS } else { ptr::null() },
            grid_blocks: settings.grid_blocks,
            block_threads: settings.block_threads,
            intercept,
            mutant: settings.mutant,
        };
        let slots = match settings.is_cluster {
            true => settings.grid_blocks,
            false => settings.grid_blocks.min(u64::from(settings.resident_blocks)),
        };
        launch.slots = (0..slots).map(|_| Block::new(origin)).collect();
        launch
    }

    /// Points threads at their warp, block and launch, all of which stay where they are from now on.
    fn connect(&self) {
        for block in &self.slots {
            for thread in &block.threads {
                thread.warp.set(&block.warps[thread.warp_index as usize]);
                thread.block.set(block);
                thread.launch.set(self);
            }
        }
    }

    fn make_fibers(&self, kernel: Kernel) -> Result<Fibers, ExecutionError> {
        let mut fibers = Fibers { slots: Vec::with_capacity(self.slots.len()) };
        for slot in &self.slots {
            fibers.slots.push(Vec::with_capacity(slot.threads.len()));
            for thread in &slot.threads {
                let stack = ColouredStack::take(thread.thread_index as usize).map_err(|error| {
                    ExecutionError::Stacks { stacks: self.slots.len() * slot.threads.len(), message: error.to_string() }
                })?;
                let thread = ptr::from_ref(thread);
                // SAFETY: the closure refers to the thread's context, which outlives the coroutine: `run`
                // drops the coroutines first.
                let fiber = unsafe {
                    Fiber::with_stack_unchecked(stack, move |yielder, ()| {
                        let thread = &*thread;
                        thread.yielder.set(yielder);
                        loop {
                            thread.block().has_begun.set(true);
                            (kernel.body)(kernel.config, kernel.arguments);
                            exit(thread);
                        }
                    })
                };
                if let Some(slot) = fibers.slots.last_mut() {
                    slot.push(fiber);
                }
            }
        }
        Ok(fibers)
    }

    fn report(&self) -> LaunchReport {
        LaunchReport {
            counters: self.count(|counters| *counters),
            switches: self.switches.get(),
            stopped_blocks: self.stopped_blocks.get(),
            trace: self.trace.as_ref().map(|trace| trace.take().into_bytes()),
        }
    }

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

    /// Puts the next block of the grid into a free slot.
    pub fn start_next(&self, slot: &Block) {
        let position = self.started_blocks.get();
        if position == self.settings.grid_blocks {
            return;
        }
        self.started_blocks.set(position + 1);
        slot.start(self.start_order.block(position));
        self.made_progress();
    }

    /// Whether every block has ended, but for those that were stopped.
    pub fn is_done(&self) -> bool {
        self.finished_blocks.get() + self.stopped_blocks.get() == self.settings.grid_blocks
    }

    pub fn take_failure(&self) -> ExecutionError {
        self.failure.take().unwrap_or_else(|| ExecutionError::InvalidSettings {
            fault: "the executor stopped without a reason; this is a bug of the executor".to_owned(),
        })
    }

    fn waiting_blocks(&self) -> u64 {
        self.settings.grid_blocks - self.started_blocks.get()
    }

    pub fn deadlock(&self) -> ExecutionError {
        ExecutionError::Deadlock { parties: self.everybody(None), waiting_blocks: self.waiting_blocks() }
    }

    /// Whoever polls may hope again.
    pub fn made_progress(&self) {
        self.window_start.set(self.polls.get());
    }

    /// Everybody who has not returned, `caller` first.
    fn everybody(&self, caller: Option<&Thread>) -> Vec<Party> {
        let mut parties = Vec::new();
        if let Some(caller) = caller {
            add_party(&mut parties, caller, activity_of(caller), site_of(caller));
        }
        for block in self.slots.iter().filter(|block| block.live_threads.get() != 0) {
            gather(&mut parties, block, caller, |_, activity| activity != Activity::Exited);
        }
        parties
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
        p.block == new.block && p.activity == new.activity && p.site == new.site && p.tiles == new.tiles
    };
    match parties.iter_mut().find(is_same) {
        Some(party) => party.threads += 1,
        None => parties.push(new),
    }
}

pub(super) fn party(thread: &Thread, activity: Activity, site: RawSite) -> Party {
    let waits = matches!(activity, Activity::SpinWait) && thread.waiting_tile.get() != NO_TILE;
    Party {
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
fn fail_in_barrier(thread: &Thread, activity: Activity, site: RawSite) -> ! {
    let mut parties = vec![party(thread, activity, site)];
    gather(&mut parties, thread.block(), Some(thread), |_, other| match activity {
        // Who returns shows up the ones that wait for it.
        Activity::Exited => other == Activity::BlockBarrier,
        // Who waits in a collective is in the way of the barrier of others.
        Activity::WarpCollective { .. } => other == Activity::BlockBarrier,
        _ => !matches!(other, Activity::Runnable | Activity::SpinWait),
    });
    fail(thread, ExecutionError::BarrierDivergence { parties })
}

/// Ends the launch because a collective of the warp does not get the lanes it names.
#[cold]
fn fail_in_collective(thread: &Thread, fault: MaskFault, mask: u32, activity: Activity, site: RawSite) -> ! {
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

impl Launch {
    /// Somewhere that the schedule may switch to another thread, or a stop take effect.
    pub fn scheduling_point(&self, thread: &Thread) {
        if let Some(stop) = self.settings.stop {
            self.stop_at_point(thread, stop);
        }
        if let Some(pause) = self.settings.pause.filter(|pause| pause.block == thread.block_index.get()) {
            let block = thread.block();
            let points = block.points.get();
            block.points.set(points + 1);
            if points == pause.after_points {
                block.paused_until.set(self.switches.get() + pause.switches);
                block.make_ready(thread.warp_index, thread.lane_bit());
                thread.suspend(Suspension::Waiting);
            }
        }
        if self.preemption != 0 && self.draw() < self.preemption {
            thread.block().make_ready(thread.warp_index, thread.lane_bit());
            thread.suspend(Suspension::Waiting);
        }
    }

    fn stop_at_point(&self, thread: &Thread, stop: Stop) {
        match stop {
            Stop::Launch { after_points } => {
                let points = self.points.get();
                if points >= after_points {
                    fail(thread, ExecutionError::Stopped { points });
                }
                self.points.set(points + 1);
            }
            Stop::Block { block, after_points } if block == thread.block_index.get() => {
                let points = thread.block().points.get();
                if points >= after_points {
                    self.stop_block(thread.block());
                    // Nobody resumes a thread of a stopped block.
                    thread.suspend(Suspension::Waiting);
                }
                thread.block().points.set(points + 1);
            }
            Stop::Block { .. } => {}
        }
    }

    /// Leaves an error that no running thread has made.
    pub fn fail_outside(&self, error: ExecutionError) {
        self.failure.borrow_mut().get_or_insert(error);
    }

    /// Tells a back end of threads that have met.
    pub fn tell(&self, thread: &Thread, event: Synchronization, site: RawSite) {
        let Some(backend) = self.backend else { return };
        // SAFETY: as in `backend::call`: the launch holds the back end exclusively.
        if let Err(message) = guarded(|| unsafe { &mut *backend }.synchronize(event)) {
            fail_in_backend(thread, message, site);
        }
    }
}

/// The thread returned from the kernel; comes back when it is to run it for another block.
fn exit(thread: &Thread) {
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
        launch.finished_blocks.set(launch.finished_blocks.get() + 1);
        launch.tell(thread, Synchronization::BlockEnd { block: block.index.get() }, RawSite::NONE);
    }
    thread.suspend(Suspension::Finished);
}

unsafe extern "C" fn rendezvous(thread: *const Thread, collective: u32, file: *const c_char, line: u32) {
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
            block: thread.block_index.get(),
            warp: thread.warp_index,
            mask: FULL_WARP,
            collective: Collective::from_number(warp.collective.get()),
        };
        launch.tell(thread, event, warp.site.get());
    }
    if launch.has_points {
        launch.scheduling_point(thread);
    }
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

unsafe extern "C" fn exchange(
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
                block: thread.block_index.get(),
                warp: thread.warp_index,
                mask,
                collective: kind,
            };
            launch.tell(thread, event, site);
            if launch.has_points {
                launch.scheduling_point(thread);
            }
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

unsafe extern "C" fn block_barrier(thread: *const Thread, file: *const c_char, line: u32) {
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
            launch.tell(thread, Synchronization::BlockBarrier { block: thread.block_index.get() }, site);
        }
        if launch.has_points {
            launch.scheduling_point(thread);
        }
    } else {
        block.barrier_arrived.set(arrived + 1);
        warp.at_barrier.set(warp.at_barrier.get() | thread.lane_bit());
        warp.unavailable.set(warp.unavailable.get() | thread.lane_bit());
        thread.suspend(Suspension::Waiting);
    }
    thread.clock.set(block.released_clock.get());
}

unsafe extern "C" fn spin_pause(thread: *const Thread, file: *const c_char, line: u32) {
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { &*thread };
    let launch = thread.launch();
    launch.count(|counters| counters.spin_polls += 1);
    if launch.has_points {
        launch.scheduling_point(thread);
    }
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

/// A window of polls has gone by and nobody stored, returned or started. Progress is lost if whoever can
/// run has polled in that window; if not, somebody still computes, and another window begins.
#[cold]
fn check_progress(thread: &Thread, launch: &Launch) {
    let window_start = launch.window_start.get();
    let somebody_computes = launch.slots.iter().any(|slot| {
        let is_ready = |thread: &Thread| thread.warp().ready.get() & thread.lane_bit() != 0;
        slot.live_threads.get() != 0
            && slot.threads.iter().any(|thread| is_ready(thread) && thread.last_poll.get() <= window_start)
    });
    // Whoever stands still on request may be the one that they wait for.
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

unsafe extern "C" fn access_point(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    _bytes: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { &*thread };
    let launch = thread.launch();
    let site = RawSite { file, line };
    // Scope and vector width are the back end's business.
    let access = access & 0xff;
    thread.site.set(site);
    if launch.has_points {
        launch.scheduling_point(thread);
    }
    if access < FIRST_PROTOCOL_ACCESS || access == FENCE {
        return;
    }

    let accesses = thread.accesses_since_poll.get() + 1;
    thread.accesses_since_poll.set(accesses);
    if accesses > ACCESSES_BETWEEN_POLLS {
        poll(thread, site);
    }
    if let Some(trace) = &launch.trace {
        trace.borrow_mut().access(thread.block_index.get(), thread.thread_index, access, line, address.addr());
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
    if is_store {
        launch.made_progress();
        let stored = clocks.entry(address.addr()).or_insert(0);
        *stored = thread.clock.get().max(*stored);
        if is_update {
            thread.clock.set(*stored);
        }
    } else if let Some(&stored) = clocks.get(&address.addr()) {
        thread.clock.set(thread.clock.get().max(stored));
    }
}

unsafe extern "C" fn shared_storage(
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
    if let Some(address) = block.find_shared(key.addr()) {
        return address.cast();
    }
    let site = RawSite { file, line };
    let limit_bytes = launch.settings.shared_limit_bytes;
    let poison = launch.settings.poison;
    match block.declare_shared(key.addr(), bytes as usize, alignment as usize, limit_bytes as usize, poison) {
        Ok((address, declared)) => {
            launch.count(|counters| counters.shared_bytes = counters.shared_bytes.max(declared as u64));
            let event =
                Synchronization::SharedStorage { block: thread.block_index.get(), address: address.addr(), bytes };
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

unsafe extern "C" fn misaligned(
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
