//! A memory back end that models the weak memory of a GPU, so that a missing release, acquire, fence or
//! barrier shows although the host's memory would hide it.
//!
//! The model is operational and based on views, as in Kang et al. (*A promising semantics for
//! relaxed-memory concurrency*, POPL 2017) without promises, with the scopes and the morally strong
//! accesses of the PTX memory model (Lustig, Sahasrabuddhe & Giroux, ASPLOS 2019):
//!
//! - A **protocol location** keeps all its stores of the launch in modification order. A load may return
//!   any that is not older than what its thread knows of; the seed chooses. A store that its thread does
//!   not know to come after the newest one may be put before it, though never between a read-modify-write
//!   and what that read. Parts of one scalar store are seen together; a vector access (`.v2`) is two
//!   accesses of half the width.
//! - **Happens-before** is program order, block barriers, warp barriers (of the collectives no other: PTX
//!   promises nothing for shuffles and votes), and synchronisation through locations: an acquire that reads
//!   a release, directly, through read-modify-writes, or through a later store of the same thread; fences
//!   with relaxed accesses behind and before them. An access or fence of block scope synchronises with its own block
//!   only. What a thread knows grows along happens-before.
//! - **Plain accesses** (elements, spines, payloads, shared memory) find and leave their values in native
//!   memory. Two of them that touch one granule, one of them a store, must be ordered by happens-before;
//!   if they are not, the launch ends with an error that names both. The same holds for a plain access and
//!   one of the protocol, and for two of different blocks of which one has block scope.
//! - A **copy to shared memory** (`cuda/async_copy.cuh`) is a plain load and a plain store by nobody's thread: it
//!   happens after what the thread that asked for it did before, and before whatever waits for the phase of its
//!   barrier, as arrivals do. The copies of one block count as ordered among themselves.
//! - Whoever arrives at a barrier of copies relaxed hands over nothing, and whoever waits relaxed learns nothing of what
//!   others handed over, a fence before or behind it or not.
//! - The **barrier of a cluster** takes what each arrival released to whoever waits for its phase; what a thread does
//!   between arrival and wait is not part of it. A store into another block's shared memory is a plain store there.
//! - Every access must lie inside an array of the launch or the block's own shared memory, and shared memory
//!   must be written before it is read.
//! - The end of a launch orders everything, but for a launch that is taken together with it: there a thread that has waited
//!   for the launch before knows what that one's threads knew at their ends, and what it does before is not ordered at all.
//!
//! Not modelled: loads that see stores which their threads make later (load buffering), sequentially
//! consistent fences, an acquire that follows a relaxed load of the same location in the same thread and
//! reads an older store than that did not, the proxies of PTX. Read-modify-writes read the newest store in
//! modification order. Whatever happens in this model may happen in PTX; the converse is not claimed.

mod history;
mod knowledge;
mod launches;
mod meetings;
mod plain;
mod protocol;
mod shadow;
mod state;

use super::backend::{Access, AccessKind, AsyncStore, Copy, MemoryBackend, Synchronization};
use launches::Launches;
use protocol::Met;
pub use state::{WeakEvent, WeakMemory, WeakSettings, WeakStatistics};

impl MemoryBackend for WeakMemory {
    fn launch_begins(&mut self, grid_blocks: u64, block_threads: u32) -> Result<(), String> {
        self.launches_begin(&[grid_blocks], 1, block_threads)
    }

    fn launches_begin(&mut self, grids: &[u64], streams: usize, block_threads: u32) -> Result<(), String> {
        let grid_blocks: u64 = grids.iter().sum();
        self.forget();
        self.launches = Launches::of(grids, streams);
        self.blocks.begin_launch(block_threads);
        let threads = grid_blocks.checked_mul(u64::from(block_threads) + 32);
        self.first_copier = (grid_blocks as u32).wrapping_mul(block_threads);
        if threads.is_none_or(|threads| threads >= u64::from(u32::MAX)) {
            return Err(format!("weak memory takes up to 2^32 threads, not {grid_blocks} blocks of {block_threads}"));
        }
        Ok(())
    }

    fn load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String> {
        if matches!(access.kind, AccessKind::RelaxedLoad | AccessKind::AcquireLoad) {
            return self.protocol_load(access, value);
        }
        let place = self.plain_access(access)?;
        // SAFETY: the access lies inside an array of the launch or shared memory of the block; launches run
        // on one OS thread, and no Rust reference into either is alive meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(access.address as *const u8, value.as_mut_ptr(), value.len()) };
        if let (AccessKind::PayloadLoad, Some((at, offset))) = (access.kind, place) {
            self.record(access, at, offset, value, Met::default());
        }
        Ok(())
    }

    fn store(&mut self, access: &Access, value: &[u8]) -> Result<(), String> {
        if matches!(access.kind, AccessKind::RelaxedStore | AccessKind::ReleaseStore) {
            return self.protocol_store(access, value);
        }
        let place = self.plain_access(access)?;
        // SAFETY: as in `load`; the array is writable.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), access.address as *mut u8, value.len()) };
        let Some((at, offset)) = place else { return Ok(()) };
        self.overwrite_locations(access, at, offset)?;
        if access.kind == AccessKind::PayloadStore {
            self.record(access, at, offset, value, Met::default());
        }
        Ok(())
    }

    fn fetch_add(&mut self, access: &Access, value: u32) -> Result<u32, String> {
        if access.kind == AccessKind::SharedAdd {
            return self.add_to_shared(access, value);
        }
        self.protocol_fetch_add(access, value)
    }

    fn fence(&mut self, access: &Access) -> Result<(), String> {
        let me = self.number(access);
        let own_block = self.own_block(access);
        self.blocks.thread(access).fence(me, access.scope, &own_block);
        self.record(access, 0, 0, &[], Met::default());
        Ok(())
    }

    fn copy_begins(&mut self, copy: &Copy) -> Result<(), String> {
        let me = self.number(&copy.source);
        let message = self.blocks.thread(&copy.source).release(me);
        self.blocks.of(copy.source.block).copies.push((copy.number, message));
        Ok(())
    }

    fn copy_lands(&mut self, copy: &Copy) -> Result<(), String> {
        self.land_copy(copy)
    }

    fn store_begins(&mut self, store: &AsyncStore) -> Result<(), String> {
        let me = self.number(&store.access);
        let message = self.blocks.thread(&store.access).release(me);
        self.blocks.of(store.block).copies.push((store.number, message));
        Ok(())
    }

    fn store_lands(&mut self, store: &AsyncStore) -> Result<(), String> {
        self.land_store(store)
    }

    fn synchronize(&mut self, event: Synchronization) -> Result<(), String> {
        self.meet(event);
        Ok(())
    }
}
