//! Memory back ends: whoever wants to see, check or answer the memory accesses of a kernel.

use super::context::Thread;
use super::error::{Collective, RawSite, SourceSite};
use super::executor::fail_in_backend;
use std::ffi::{c_char, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The kinds of access that `cuda/memory.cuh` offers; numbered as in `cuda/host/executor.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum AccessKind {
    ElementLoad = 0,
    ElementStore = 1,
    SpineLoad = 2,
    SpineStore = 3,
    SharedLoad = 4,
    SharedStore = 5,
    RelaxedLoad = 6,
    RelaxedStore = 7,
    AcquireLoad = 8,
    ReleaseStore = 9,
    PayloadLoad = 10,
    PayloadStore = 11,
    RelaxedFetchAdd = 12,
    AcquireReleaseFetchAdd = 13,
    Fence = 14,
    ClusterStore = 15,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// How far an access of the protocol reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// `.gpu`: all blocks of the device.
    Gpu,
    /// `.cta`: the threads of the block.
    Block,
}

/// `LOOKBACK_ACCESS_BLOCK_SCOPE` and `LOOKBACK_ACCESS_VECTOR`, added to the number of a kind.
const BLOCK_SCOPE: u32 = 0x100;
const VECTOR: u32 = 0x200;

impl AccessKind {
    /// Every kind, by number.
    pub const ALL: [Self; 16] = [
        Self::ElementLoad,
        Self::ElementStore,
        Self::SpineLoad,
        Self::SpineStore,
        Self::SharedLoad,
        Self::SharedStore,
        Self::RelaxedLoad,
        Self::RelaxedStore,
        Self::AcquireLoad,
        Self::ReleaseStore,
        Self::PayloadLoad,
        Self::PayloadStore,
        Self::RelaxedFetchAdd,
        Self::AcquireReleaseFetchAdd,
        Self::Fence,
        Self::ClusterStore,
    ];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ElementLoad => "load of elements",
            Self::ElementStore => "store of elements",
            Self::SpineLoad => "load of totals",
            Self::SpineStore => "store of totals",
            Self::SharedLoad => "load from shared memory",
            Self::SharedStore => "store to shared memory",
            Self::RelaxedLoad => "relaxed load",
            Self::RelaxedStore => "relaxed store",
            Self::AcquireLoad => "acquire load",
            Self::ReleaseStore => "release store",
            Self::PayloadLoad => "load of a payload",
            Self::PayloadStore => "store of a payload",
            Self::RelaxedFetchAdd => "relaxed fetch-and-add",
            Self::AcquireReleaseFetchAdd => "acquire-release fetch-and-add",
            Self::Fence => "fence",
            Self::ClusterStore => "store to shared memory of the cluster",
        }
    }

    pub(super) fn from_number(number: u32) -> Self {
        Self::ALL[(number & 0xff) as usize]
    }

    /// Whether threads of different blocks communicate by it; payloads do, ordered by their tag.
    pub const fn is_protocol(self) -> bool {
        self as u32 >= Self::RelaxedLoad as u32 && !matches!(self, Self::ClusterStore)
    }

    /// Whether the access changes memory.
    pub const fn is_store(self) -> bool {
        matches!(
            self,
            Self::ElementStore
                | Self::SpineStore
                | Self::SharedStore
                | Self::ClusterStore
                | Self::RelaxedStore
                | Self::ReleaseStore
                | Self::PayloadStore
                | Self::RelaxedFetchAdd
                | Self::AcquireReleaseFetchAdd
        )
    }
}

/// One access of one thread.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// How.
    pub kind: AccessKind,
    /// How far it reaches, if it is one of the protocol.
    pub scope: Scope,
    /// Whether it is two accesses of half the width, neither ordered nor atomic together (`.v2`).
    pub is_vector: bool,
    /// Where in memory.
    pub address: usize,
    /// Width; a vector access of a lane is one access.
    pub bytes: u32,
    /// Block of the thread.
    pub block: u64,
    /// Its index in the block.
    pub thread: u32,
    pub(super) site: RawSite,
}

impl Access {
    /// A scalar access of gpu scope that no line of kernel source makes: for tests that drive a back end
    /// without a kernel.
    pub fn new(kind: AccessKind, address: usize, bytes: u32, block: u64, thread: u32) -> Self {
        Self { kind, scope: Scope::Gpu, is_vector: false, address, bytes, block, thread, site: RawSite::NONE }
    }

    /// The line of kernel source that makes the access.
    pub fn site(&self) -> Option<SourceSite> {
        self.site.resolve()
    }
}

/// What orders plain accesses: a back end that checks or models order is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Synchronization {
    /// All threads of a block have met at its barrier.
    BlockBarrier {
        /// The block's index.
        block: u64,
    },
    /// Lanes of a warp have met in a collective.
    Warp {
        /// The block's index.
        block: u64,
        /// The warp's index in the block.
        warp: u32,
        /// The lanes, one bit each.
        mask: u32,
        /// Which one. Only a warp barrier orders memory: PTX promises nothing of the kind for shuffles and votes.
        collective: Collective,
    },
    /// A block is given shared memory with unspecified contents.
    SharedStorage {
        /// The block's index.
        block: u64,
        /// First byte.
        address: usize,
        /// Length.
        bytes: u32,
    },
    /// A thread arrives at a barrier of copies: a release.
    CopyBarrierArrival {
        /// The block's index.
        block: u64,
        /// The thread's index in the block.
        thread: u32,
        /// The barrier's address.
        barrier: usize,
    },
    /// A phase of such a barrier is over.
    CopyBarrierPhase {
        /// The block's index.
        block: u64,
        /// The barrier's address.
        barrier: usize,
    },
    /// A thread has waited for the latest phase that is over: an acquire of all that arrived in it.
    CopyBarrierWait {
        /// The block's index.
        block: u64,
        /// The thread's index in the block.
        thread: u32,
        /// The barrier's address.
        barrier: usize,
    },
    /// A thread arrives at the barrier of its thread block cluster.
    ClusterArrival {
        /// The block's index.
        block: u64,
        /// The thread's index in the block.
        thread: u32,
        /// Whether it releases what it did before.
        is_release: bool,
    },
    /// All threads of the cluster have arrived.
    ClusterPhase,
    /// A thread has waited for that: an acquire of all arrivals that released.
    ClusterWait {
        /// The block's index.
        block: u64,
        /// The thread's index in the block.
        thread: u32,
    },
    /// All threads of a block have returned; its shared memory may be given to another block.
    BlockEnd {
        /// The block's index.
        block: u64,
    },
}

/// A copy from global to shared memory that goes on beside the thread which asked for it.
#[derive(Debug, Clone, Copy)]
pub struct Copy {
    /// Numbered through the block.
    pub number: u64,
    /// What is read: a load of elements.
    pub source: Access,
    /// What is written: a store to shared memory.
    pub target: Access,
    /// The address of the barrier whose phase is not over before the copy has landed.
    pub barrier: usize,
}

/// A store to the shared memory of another block of the cluster that goes on beside the thread which made it.
#[derive(Debug, Clone, Copy)]
pub struct AsyncStore {
    /// Numbered through the block that is stored into.
    pub number: u64,
    /// Who stores, and where.
    pub access: Access,
    /// The first `access.bytes` are stored.
    pub value: [u8; 16],
    /// The block that is stored into.
    pub block: u64,
    /// The address of that block's barrier whose phase is not over before the store has landed.
    pub barrier: usize,
}

impl AsyncStore {
    /// What is stored.
    pub fn bytes(&self) -> &[u8] {
        &self.value[..self.access.bytes as usize]
    }
}

/// Answers every memory access of a launch. Native memory is not touched unless the back end does it.
///
/// An `Err` ends the launch with [`ExecutionError::Backend`](super::ExecutionError::Backend); so does a
/// panic. The calls are made on the small stack of a coroutine.
pub trait MemoryBackend {
    /// Told before the first thread of a launch runs.
    ///
    /// # Errors
    /// Whatever keeps the launch from starting.
    fn launch_begins(&mut self, grid_blocks: u64, block_threads: u32) -> Result<(), String> {
        let _ = (grid_blocks, block_threads);
        Ok(())
    }

    /// Fills `value` (`access.bytes` long) with what a load finds.
    ///
    /// # Errors
    /// Whatever should end the launch.
    fn load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String>;

    /// Takes what a store writes.
    ///
    /// # Errors
    /// Whatever should end the launch.
    fn store(&mut self, access: &Access, value: &[u8]) -> Result<(), String>;

    /// Adds atomically; returns what was there before.
    ///
    /// # Errors
    /// Whatever should end the launch.
    fn fetch_add(&mut self, access: &Access, value: u32) -> Result<u32, String>;

    /// A fence that acquires and releases. `access` has no address.
    ///
    /// # Errors
    /// Whatever should end the launch.
    fn fence(&mut self, access: &Access) -> Result<(), String> {
        let _ = access;
        Ok(())
    }

    /// A thread asks for a copy.
    ///
    /// # Errors
    /// Whatever should end the launch.
    fn copy_begins(&mut self, copy: &Copy) -> Result<(), String> {
        let _ = copy;
        Ok(())
    }

    /// The copy lands: it reads and writes now. Other than all other calls not made on the stack of a coroutine.
    ///
    /// # Errors
    /// Whatever should end the launch.
    fn copy_lands(&mut self, copy: &Copy) -> Result<(), String> {
        let mut bytes = vec![0; copy.source.bytes as usize];
        self.load(&copy.source, &mut bytes)?;
        self.store(&copy.target, &bytes)
    }

    /// A thread makes a store that lands later.
    ///
    /// # Errors
    /// Whatever should end the launch.
    fn store_begins(&mut self, store: &AsyncStore) -> Result<(), String> {
        let _ = store;
        Ok(())
    }

    /// The store lands: it writes now. As [`copy_lands`](Self::copy_lands), not called on the stack of a coroutine.
    ///
    /// # Errors
    /// Whatever should end the launch.
    fn store_lands(&mut self, store: &AsyncStore) -> Result<(), String> {
        self.store(&store.access, store.bytes())
    }

    /// Told after threads have met, before any of them goes on.
    ///
    /// # Errors
    /// Whatever should end the launch.
    fn synchronize(&mut self, event: Synchronization) -> Result<(), String> {
        let _ = event;
        Ok(())
    }
}

/// `lookback_memory_backend` of `cuda/host/executor.h`.
#[repr(C)]
pub(super) struct BackendFunctions {
    pub load: unsafe extern "C" fn(*const Thread, u32, *const c_void, *mut c_void, u32, *const c_char, u32),
    pub store: unsafe extern "C" fn(*const Thread, u32, *const c_void, *const c_void, u32, *const c_char, u32),
    pub fetch_add: unsafe extern "C" fn(*const Thread, u32, *const c_void, u32, *const c_char, u32) -> u32,
    pub fence: unsafe extern "C" fn(*const Thread, u32, *const c_char, u32),
}

pub(super) static BACKEND_FUNCTIONS: BackendFunctions = BackendFunctions { load, store, fetch_add, fence };

/// Runs a call into the back end; whatever goes wrong becomes a message.
pub(super) fn guarded<R>(call: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(format!("panicked: {}", text.unwrap_or_else(|| "no message".to_owned())))
    })
}

/// Calls the back end for the running thread.
///
/// # Safety
/// `thread` is the context of the running coroutine of a launch that has a back end.
unsafe fn call<R>(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    bytes: u32,
    site: RawSite,
    action: impl FnOnce(&mut dyn MemoryBackend, &Access) -> Result<R, String>,
) -> R {
    // SAFETY: the caller's promise; contexts outlive their coroutines.
    let thread = unsafe { &*thread };
    let access = Access {
        kind: AccessKind::from_number(access),
        scope: if access & BLOCK_SCOPE != 0 { Scope::Block } else { Scope::Gpu },
        is_vector: access & VECTOR != 0,
        address: address.addr(),
        bytes,
        block: thread.block_index.get(),
        thread: thread.thread_index,
        site,
    };
    match guarded(|| {
        let backend = thread.launch().backend.ok_or_else(|| "no back end is set".to_owned())?;
        // SAFETY: `launch_on` holds the back end exclusively while the launch runs, and no call into it
        // switches coroutines, so this is the only reference.
        action(unsafe { &mut *backend }, &access)
    }) {
        Ok(result) => result,
        Err(message) => fail_in_backend(thread, message, site),
    }
}

unsafe extern "C" fn load(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    value: *mut c_void,
    bytes: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: `memory.h` passes its current thread, and `value` as `bytes` bytes of its own; it may be
    // uninitialised, so it is cleared before it becomes a slice.
    unsafe {
        value.cast::<u8>().write_bytes(0, bytes as usize);
        let value = std::slice::from_raw_parts_mut(value.cast::<u8>(), bytes as usize);
        call(thread, access, address, bytes, RawSite { file, line }, |backend, access| backend.load(access, value));
    }
}

unsafe extern "C" fn store(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    value: *const c_void,
    bytes: u32,
    file: *const c_char,
    line: u32,
) {
    // SAFETY: as in `load`; the value was written by the kernel.
    unsafe {
        let value = std::slice::from_raw_parts(value.cast::<u8>(), bytes as usize);
        call(thread, access, address, bytes, RawSite { file, line }, |backend, access| backend.store(access, value));
    }
}

unsafe extern "C" fn fetch_add(
    thread: *const Thread,
    access: u32,
    address: *const c_void,
    value: u32,
    file: *const c_char,
    line: u32,
) -> u32 {
    // SAFETY: as in `load`.
    unsafe {
        call(thread, access, address, 4, RawSite { file, line }, |backend, access| backend.fetch_add(access, value))
    }
}

unsafe extern "C" fn fence(thread: *const Thread, access: u32, file: *const c_char, line: u32) {
    // SAFETY: as in `load`.
    unsafe {
        call(thread, access, std::ptr::null(), 0, RawSite { file, line }, |backend, access| backend.fence(access));
    }
}
