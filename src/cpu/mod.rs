//! The CPU device's executor: runs the CUDA kernels of `cuda/`, compiled by the host compiler, with every
//! CUDA thread a stackful coroutine and the interleaving decided here.
//!
//! It is an adversary, not an emulator of speed. Every launch is a function of its settings and seed:
//! the same launch makes the same switches in the same order, whatever else the machine does, because
//! all of its state hangs off one object on one OS thread. What a GPU answers with a hang or with
//! garbage (a barrier that not all threads reach, a shuffle of lanes that are not there, a block that
//! waits for a block which cannot start) is an [`ExecutionError`] that names blocks, threads and lines.
//!
//! How a launch runs:
//!
//! - `resident_blocks` slots hold a block each; when a block ends the next one in [`BlockOrder`] takes
//!   its slot, with poisoned shared memory.
//! - A warp collective is a rendezvous of its lanes: all but the last to arrive are suspended, the last
//!   goes on at once. Block barriers are the same for the block.
//! - A protocol access (the relaxed, acquire and release operations of `cuda/memory.cuh`) is a
//!   scheduling point; so are plain accesses when [`LaunchSettings::plain_points`] says so.
//! - A copy to shared memory (`cuda/async_copy.cuh`) lands at a later switch, drawn from the seed where the
//!   schedule is random; until then nothing of it is there. Who waits at its barrier is suspended.
//! - A grid that is one thread block cluster ([`LaunchSettings::is_cluster`]) has a slot for each of its blocks, however
//!   few may be resident otherwise. Arrival at its barrier and the wait are apart; a store into the shared memory of
//!   a block that has not begun or has ended is an error.
//! - Launches that are taken together ([`launch_together`]) overlap as on a GPU: blocks of the next one run with those of
//!   the one before once all of these have allowed it or ended, and wait for it in `wait_for_launches_before`. Launches of
//!   several devices ([`launch_in_streams`]) all begin at once.
//! - A thread that calls `spin_pause` sleeps until the others have had their turn. When every thread
//!   that can run does nothing but poll, and nobody stores, progress is lost, and that is reported.
//!
//! Only the kernels' accesses are modelled: a loop that touches neither the protocol nor `spin_pause`
//! is never interrupted, and one without an end hangs the launch as it would hang any function.

pub(crate) mod backend;
mod error;
mod executor;
mod settings;
mod weak_memory;

pub use backend::{Access, AccessKind, AsyncStore, Copy, LaneStep, MemoryBackend, Scope, Synchronization};
pub use error::{Activity, ClusterFault, Collective, CopyFault, ExecutionError, MaskFault, Party, SourceSite};
#[cfg(feature = "lab")]
pub(crate) use executor::{CurrentThreadSlot, current_thread_slot};
pub use executor::{Stage, launch, launch_in_streams, launch_on, launch_together, most_stacks};
pub use settings::{BlockOrder, Counters, LaunchReport, LaunchSettings, Pause, Schedule, Stop, TileStep};
pub use weak_memory::{WeakEvent, WeakMemory, WeakSettings, WeakStatistics};
