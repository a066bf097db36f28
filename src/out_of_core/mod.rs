//! Scans of arrays that are larger than the device's memory, or than the machine's: chunk after chunk, with what is read,
//! scanned and written overlapped.
//!
//! A chunk goes through five steps: it is read into staging memory, copied to a device, scanned from the state that the chunk
//! before it has left, copied back, and written. One thread takes one chunk through all of them ([`pipeline`]). So that
//! copies in, scans and copies out run at the same time, several threads do this, each with memory of its own, and the
//! only thing they wait for is their turn to put a scan onto its device: the scans are in the order of the chunks, and each starts
//! from the state that the one before leaves in a device's memory, the *carry*. There are no queues between steps, and memory is
//! bounded by the number of chunks that are under way ([`plan`]).
//!
//! Threads read and write by position and not through mapped memory: a page fault fetches a few pages for one waiting thread,
//! a read of a chunk tells the operating system at once all that is wanted; a disk that fails, or a file that is cut off, is an
//! error of a call and not a SIGBUS that ends the process. Who has a mapped file lends it as a slice ([`HostArrays`]).
//!
//! What holds when a scan ends early: the outputs up to a [`Checkpoint`] are valid, and with its state a later run goes on
//! behind it, to the same result.
//!
//! Devices are [`ChunkedScan`](crate::cuda::ChunkedScan), and
//! [`HostChunkedScan`](crate::lab::host_chunked::HostChunkedScan) where there is no GPU.

pub mod arrays;
pub mod pipeline;
pub mod plan;

pub use arrays::{FileArray, HostArrays, NoFile, Sink, Source};
pub use pipeline::{Cause, Checkpoint, ChunkDevice, CopyRates, Job, Stopped};
pub use plan::{ChunkPlan, Limits, PlanError};
