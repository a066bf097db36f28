//! One launch from its settings to its report.
//!
//! | module | what it does |
//! |---|---|
//! | `abi` | what it shares with kernels, generated from `cuda/host/executor.h` |
//! | `context` | the state of a launch, its blocks, warps and threads, as kernels see it |
//! | `shared_memory`, `clocks`, `copy_barrier`, `trace` | parts of that state with rules of their own |
//! | `faults` | who does what where something goes wrong, and the end of the launch |
//! | `points` | scheduling points, stops and pauses |
//! | `meetings`, `accesses`, `copies`, `clusters`, `interception` | what kernels call |
//! | `grids` | the launches that a run takes together |
//! | `order`, `schedule` | which block starts next, which thread runs next |
//! | `steps` | what warps have come to with tiles, for whoever looks |
//! | `stack` | stacks of the coroutines that threads are |

mod abi;
mod accesses;
mod clocks;
mod clusters;
mod context;
mod copies;
mod copy_barrier;
mod faults;
mod grids;
mod interception;
mod meetings;
mod order;
mod points;
mod schedule;
mod shared_memory;
mod stack;
mod steps;
mod trace;

use super::backend::{MemoryBackend, guarded};
use super::error::ExecutionError;
use super::settings::{LaunchReport, LaunchSettings};
use abi::{
    LOOKBACK_INTERCEPT_BACKEND, LOOKBACK_INTERCEPT_LANES, LOOKBACK_INTERCEPT_PLAIN_POINTS,
    lookback_current_thread_slot, lookback_executor,
};
use accesses::{access_point, misaligned, shared_storage, spin_pause};
use context::{Block, Launch, Thread, ThreadOrigin};
use grids::Grid;
use interception::BACKEND_FUNCTIONS;
use meetings::{block_barrier, exchange, exit, rendezvous};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use schedule::{Fiber, Fibers, preemption_threshold};
use stack::ColouredStack;
pub use stack::most_stacks;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::c_void;
use std::ptr;

static EXECUTOR_FUNCTIONS: lookback_executor = lookback_executor {
    rendezvous: Some(rendezvous),
    exchange: Some(exchange),
    block_barrier: Some(block_barrier),
    spin_pause: Some(spin_pause),
    access_point: Some(access_point),
    shared_storage: Some(shared_storage),
    misaligned: Some(misaligned),
    copy_barrier_initialize: Some(copies::initialize),
    copy_barriers_initialized: Some(copies::initialized),
    copy_barrier_arrive: Some(copies::arrive),
    copy_barrier_expect: Some(copies::expect),
    copy_barrier_wait: Some(copies::wait),
    copy_to_shared: Some(copies::copy_to_shared),
    cluster_barrier_arrive: Some(clusters::arrive),
    cluster_barrier_wait: Some(clusters::wait),
    store_to_cluster: Some(copies::store_to_cluster),
    allow_next_launch: Some(grids::allow_next),
    wait_for_launches_before: Some(grids::wait_for_those_before),
    trace_step: Some(steps::record),
    lane_step: Some(steps::lane),
};

/// Where kernels find the CUDA thread that this OS thread runs.
#[cfg(feature = "lab")]
pub(crate) type CurrentThreadSlot = unsafe extern "C" fn() -> *mut c_void;

/// For kernels in a library that is loaded at run time.
#[cfg(feature = "lab")]
pub(crate) extern "C" fn current_thread_slot() -> *mut c_void {
    // SAFETY: the function only takes an address.
    unsafe { lookback_current_thread_slot() }.cast()
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
    unsafe { run(&[Kernel::new(body, config, arguments)], std::slice::from_ref(settings), None, 1) }
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
        run(&[Kernel::new(body, config, arguments)], std::slice::from_ref(settings), Some(lengthened(backend)), 1)
    }
}

/// One of the launches that [`launch_together`] and [`launch_in_streams`] take.
#[derive(Debug)]
pub struct Stage<'a, Config, Arguments> {
    /// The kernel.
    pub body: unsafe extern "C" fn(*const Config, *const Arguments),
    /// What it is given, beside its arguments.
    pub config: &'a Config,
    /// Its arguments.
    pub arguments: &'a Arguments,
    /// How it is run. Grid, blocks and shared memory are each launch's own; all else is that of the first one.
    pub settings: LaunchSettings,
}

/// Runs launches that follow each other on a stream, as programmatic dependent launches do: blocks of the next one start
/// when each block of the one before has called `allow_next_launch` or ended, and run with those that are still there.
/// What a kernel needs of the launches before it has to wait for (`cuda/platform.cuh`). What is reported is of all
/// together.
///
/// # Errors
/// What a kernel, the settings or the back end did wrong.
///
/// # Safety
/// As for [`launch_on`], of each launch.
pub unsafe fn launch_together<Config, Arguments>(
    backend: &mut dyn MemoryBackend,
    stages: &[Stage<'_, Config, Arguments>],
) -> Result<LaunchReport, ExecutionError> {
    // SAFETY: the caller's promise, and as in `launch_on`.
    unsafe { run_stages(Some(lengthened(backend)), stages, 1) }
}

/// Runs launches of several devices, each with a stream: the first of each, then the second of each, and so on. Those of different
/// devices wait for each other by what their kernels say alone. Else as [`launch_together`], also without a back end.
///
/// # Errors
/// As [`launch_together`].
///
/// # Safety
/// As for [`launch`], of each launch.
pub unsafe fn launch_in_streams<Config, Arguments>(
    backend: Option<&mut dyn MemoryBackend>,
    stages: &[Stage<'_, Config, Arguments>],
    streams: usize,
) -> Result<LaunchReport, ExecutionError> {
    // SAFETY: the caller's promise, and as in `launch_on`.
    unsafe { run_stages(backend.map(|backend| lengthened(backend)), stages, streams.max(1)) }
}

/// # Safety
/// As for [`run`].
unsafe fn run_stages<Config, Arguments>(
    backend: Option<*mut dyn MemoryBackend>,
    stages: &[Stage<'_, Config, Arguments>],
    streams: usize,
) -> Result<LaunchReport, ExecutionError> {
    let kernels: Vec<_> = stages.iter().map(|stage| Kernel::new(stage.body, stage.config, stage.arguments)).collect();
    let settings: Vec<_> = stages.iter().map(|stage| stage.settings.clone()).collect();
    // SAFETY: the caller's promise.
    unsafe { run(&kernels, &settings, backend, streams) }
}

/// A pointer to a back end that may be kept as long as the borrow lasts.
///
/// # Safety
/// The longer lifetime that the pointer's type claims is not used: the launch ends before the borrow does.
unsafe fn lengthened(backend: &mut dyn MemoryBackend) -> *mut (dyn MemoryBackend + 'static) {
    // SAFETY: both are pointers of one layout; the caller's promise.
    unsafe { std::mem::transmute::<*mut (dyn MemoryBackend + '_), *mut (dyn MemoryBackend + 'static)>(backend) }
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

/// Restores the current thread of the launch that this one is nested in: a memory back end may launch, too.
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

/// One launch, or several that are taken together.
///
/// # Safety
/// As for [`launch`]; `backend` outlives the call and is used by nobody else meanwhile.
unsafe fn run(
    kernels: &[Kernel],
    settings: &[LaunchSettings],
    backend: Option<*mut dyn MemoryBackend>,
    streams: usize,
) -> Result<LaunchReport, ExecutionError> {
    settings.iter().try_for_each(LaunchSettings::check)?;
    if settings.is_empty() {
        return Ok(LaunchReport::default());
    }
    if let Some(backend) = backend {
        let grids: Vec<u64> = settings.iter().map(|settings| settings.grid_blocks).collect();
        let block_threads = settings.iter().map(|settings| settings.block_threads).max().unwrap_or(0);
        // SAFETY: the caller's promise.
        let begun = guarded(|| unsafe { &mut *backend }.launches_begin(&grids, streams, block_threads));
        begun.map_err(|fault| ExecutionError::InvalidSettings { fault })?;
    }
    let launch = Launch::new(settings, backend, streams);
    launch.connect();
    // SAFETY: the slot is this OS thread's own and is initialised to null.
    let _restore = unsafe { RestoreCurrent { slot: launch.current_thread, previous: launch.current_thread.read() } };
    // Dropped before the launch: the coroutines point into it.
    let mut fibers = launch.make_fibers(kernels)?;
    launch.run(&mut fibers)?;
    drop(fibers);
    Ok(launch.report())
}

impl Launch {
    fn new(all: &[LaunchSettings], backend: Option<*mut dyn MemoryBackend>, streams: usize) -> Box<Self> {
        let settings = &all[0];
        let intercept = if backend.is_some() { LOOKBACK_INTERCEPT_BACKEND } else { 0 }
            | if settings.plain_points { LOOKBACK_INTERCEPT_PLAIN_POINTS } else { 0 }
            | if settings.tells_lanes { LOOKBACK_INTERCEPT_LANES } else { 0 };
        let preemption = preemption_threshold(settings.schedule);
        let mut launch = Box::new(Self {
            settings: settings.clone(),
            grids: Grid::all(all),
            streams,
            slots: Box::new([]),
            // SAFETY: the function only takes an address.
            current_thread: unsafe { lookback_current_thread_slot() }.cast(),
            backend,
            trace: settings.trace.then(RefCell::default),
            steps: settings.records_steps.then(RefCell::default),
            switches: Cell::new(0),
            preemption,
            sleepers: Cell::new(0),
            stopped_blocks: Cell::new(0),
            copies_under_way: Cell::new(0),
            counters: UnsafeCell::default(),
            random: RefCell::new(Pcg64Mcg::seed_from_u64(settings.seed)),
            points: Cell::new(0),
            polls: Cell::new(0),
            window_start: Cell::new(0),
            clocks: RefCell::default(),
            failure: RefCell::new(None),
            is_watched: backend.is_some(),
            has_points: preemption != 0 || settings.stop.is_some() || settings.pause.is_some(),
        });
        let origin = |grid: &Grid| ThreadOrigin {
            counters: launch.counters.get(),
            executor: &EXECUTOR_FUNCTIONS,
            backend: if backend.is_some() { &BACKEND_FUNCTIONS } else { ptr::null() },
            grid_blocks: grid.settings.grid_blocks,
            block_threads: grid.settings.block_threads,
            intercept,
            mutant: settings.mutant,
        };
        let slots = |(at, grid): (usize, &Grid)| {
            let (origin, first_block) = (origin(grid), grid.first_block);
            grid.slots.clone().map(move |_| Block::new(origin, at, first_block))
        };
        launch.slots = launch.grids.iter().enumerate().flat_map(slots).collect();
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

    fn make_fibers(&self, kernels: &[Kernel]) -> Result<Fibers, ExecutionError> {
        let count = self.grids.iter().map(|grid| grid.settings.stacks()).sum();
        let stacks = stack::reuse_or_map(count)
            .map_err(|error| ExecutionError::Stacks { stacks: count, message: crate::file::reason(&error) })?;
        let mut stacks = stacks.into_iter();
        let mut fibers = Fibers { slots: Vec::with_capacity(self.slots.len()) };
        for slot in &self.slots {
            let kernel = kernels[slot.grid];
            fibers.slots.push(Vec::with_capacity(slot.threads.len()));
            for (thread, stack) in slot.threads.iter().zip(&mut stacks) {
                let stack = ColouredStack::new(stack, thread.thread_index as usize);
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
            steps: self.steps.as_ref().map(RefCell::take).unwrap_or_default(),
        }
    }
}
