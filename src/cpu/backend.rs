//! Memory back ends: whoever wants to see, check or answer the memory accesses of a kernel.

use super::error::{Collective, RawSite, SourceSite, numbered};
use super::settings::TileStep;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

numbered! {
    /// The kinds of access that `cuda/memory.cuh` offers.
    AccessKind:
    ElementLoad = 0 "load of elements",
    ElementStore = 1 "store of elements",
    SpineLoad = 2 "load of totals",
    SpineStore = 3 "store of totals",
    SharedLoad = 4 "load from shared memory",
    SharedStore = 5 "store to shared memory",
    RelaxedLoad = 6 "relaxed load",
    RelaxedStore = 7 "relaxed store",
    AcquireLoad = 8 "acquire load",
    ReleaseStore = 9 "release store",
    PayloadLoad = 10 "load of a payload",
    PayloadStore = 11 "store of a payload",
    RelaxedFetchAdd = 12 "relaxed fetch-and-add",
    AcquireReleaseFetchAdd = 13 "acquire-release fetch-and-add",
    Fence = 14 "fence",
    ClusterStore = 15 "store to shared memory of the cluster",
    SharedAdd = 16 "addition in shared memory",
}

/// How far an access of the protocol reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// `.gpu`: all blocks of the device.
    Gpu,
    /// `.cta`: the threads of the block.
    Block,
}

impl AccessKind {
    /// Whether threads of different blocks communicate by it; payloads do, ordered by their tag.
    pub const fn is_protocol(self) -> bool {
        self as u32 >= Self::RelaxedLoad as u32 && !matches!(self, Self::ClusterStore | Self::SharedAdd)
    }

    /// Whether the access changes memory.
    pub const fn is_store(self) -> bool {
        matches!(
            self,
            Self::ElementStore
                | Self::SpineStore
                | Self::SharedStore
                | Self::ClusterStore
                | Self::SharedAdd
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
    BlockBarrier { block: u64 },
    /// Lanes of a warp, one bit each, have met in a collective. Only a warp barrier orders memory: PTX promises
    /// nothing of the kind for shuffles and votes.
    Warp { block: u64, warp: u32, mask: u32, collective: Collective },
    /// A block is given shared memory with unspecified contents, so many bytes from this address on.
    SharedStorage { block: u64, address: usize, bytes: u32 },
    /// A thread arrives at a barrier of copies, and may release what it did before.
    CopyBarrierArrival { block: u64, thread: u32, barrier: usize, is_release: bool },
    /// A phase of such a barrier is over.
    CopyBarrierPhase { block: u64, barrier: usize },
    /// A thread has waited for the latest phase that is over, and may acquire what those released who arrived in it.
    CopyBarrierWait { block: u64, thread: u32, barrier: usize, is_acquire: bool },
    /// A thread arrives at the barrier of its thread block cluster, and may release what it did before.
    ClusterArrival { block: u64, thread: u32, is_release: bool },
    /// All threads of the cluster that a block is of have arrived.
    ClusterPhase { block: u64 },
    /// A thread has waited for that: an acquire of all arrivals that released.
    ClusterWait { block: u64, thread: u32 },
    /// A thread has waited for the launch before: an acquire of all that its threads did.
    LaunchWait { block: u64, thread: u32 },
    /// All threads of a block have returned; its shared memory may be given to another block.
    BlockEnd { block: u64 },
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

/// What a lane does that is no access of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneStep {
    /// It takes the value of this lane of its warp.
    Took(u32),
    /// It applies the operator, once.
    Applied,
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

    /// The same of several launches that are taken together, on so many streams in turn: the blocks of each, and the threads of the
    /// largest block. Blocks are numbered through all of them.
    ///
    /// # Errors
    /// Whatever keeps the launches from starting.
    fn launches_begin(&mut self, grids: &[u64], streams: usize, block_threads: u32) -> Result<(), String> {
        let _ = streams;
        self.launch_begins(grids.iter().sum(), block_threads)
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

    /// A warp has come to a step with a tile, where steps are recorded.
    fn tile_step(&mut self, step: &TileStep) {
        let _ = step;
    }

    /// A thread takes something from another lane or combines, where [`LaunchSettings::tells_lanes`](super::LaunchSettings)
    /// asks for it.
    fn lane_step(&mut self, block: u64, thread: u32, step: LaneStep) {
        let _ = (block, thread, step);
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

/// Runs a call into the back end; whatever goes wrong becomes a message.
pub(super) fn guarded<R>(call: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(format!("panicked: {}", text.unwrap_or_else(|| "no message".to_owned())))
    })
}

/// So far from an array an access beside it is still said to be beside that array: less than the margins of each array, so
/// that the array that is named is the same in every run.
pub(crate) const NEAR_BYTES: usize = 1 << 12;

/// What is said of an access outside these arrays, which are each a name, an address and bytes.
#[cold]
pub(crate) fn out_of_bounds<'a>(access: &Access, arrays: impl Iterator<Item = (&'a str, usize, usize)>) -> String {
    let mut message = format!("{} of {} bytes outside all arrays that it may touch", access.kind, access.bytes);
    let distance = |address| access.address.abs_diff(address);
    let nearest = arrays.min_by_key(|&(_, address, bytes)| distance(address).min(distance(address + bytes)));
    // Farther off it is no slip of an index, and which array is nearest changes from run to run.
    let is_near = |address, bytes| distance(address).min(distance(address + bytes)) <= NEAR_BYTES;
    if let Some((name, address, bytes)) = nearest.filter(|&(_, address, bytes)| is_near(address, bytes)) {
        let offset = access.address as i128 - address as i128;
        message += &format!(", at byte {offset} of {name} ({bytes} bytes)");
    }
    message
}
