//! Ranks: one scan over several devices, of one process or many.
//!
//! An array is cut into as many contiguous shards as there are ranks, and each rank scans its own. What stands left of a shard,
//! its *carry*, is the combination of the totals of all shards before it, in order, so that operators need not commute. There are
//! two ways to have it, and a third one that does without:
//!
//! - *contiguous*: each rank reduces its shard to its total, all exchange their totals, and then each scans from its carry.
//!   Every shard is read twice.
//! - *deferred*: each rank scans its shard as if nothing stood before it, and then the totals are exchanged. The carry is left
//!   beside the output, and whoever reads combines it with what is there. Every shard is read once.
//! - *cyclic*: the array is no row of shards but a [`Deal`], small chunks to each rank in turn, so that all ranks come to one place
//!   of it at about the same time. They meet inside their kernels, by descriptors in each other's memory. Every chunk is read once,
//!   and no carry is left.
//!
//! A [`Group`] is how ranks know of each other: threads of one process ([`Group::in_process`]), or processes that a launcher has
//! started ([`Group::join`]), each with a connection to rank 0. It carries a few bytes a rank, and the news that a rank is lost:
//! every other one then ends with an error that names it, at the latest after the time-out. GPUs exchange their totals by NCCL
//! (`cuda::GpuRanks`), CPU devices over the group itself (`lab::host_ranks::HostRanks`).

mod deal;
mod error;
mod meeting;
mod message;
mod place;
mod wire;

pub use deal::{Deal, Hand};
pub use error::{Loss, RankError};
pub use place::Place;

use meeting::Meeting;
use message::MOST_BYTES;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use wire::{Hub, Remote};

/// The most ranks of a group: what names a communicator of NCCL, 128 bytes of each, fits into one message.
const MOST_RANKS: usize = 1 << 13;

/// The elements of a rank's shard of `n`, among `size` ranks: contiguous, in the order of the ranks, and none more than one longer
/// than another one.
pub fn shard(n: u64, rank: usize, size: usize) -> Range<u64> {
    let (rank, size) = (rank as u64, size as u64);
    let (each, more) = (n / size, n % size);
    let first = |rank: u64| rank * each + rank.min(more);
    first(rank)..first(rank + 1)
}

/// How many times the rate of one device `size` of them have by the bytes that they move, of elements that are loaded as `read` bytes and
/// stored as `written`: p where each is read once, and where it is read twice p · (r + w) / (2r + w). Memory that reads faster
/// than it writes gives more.
pub fn by_bytes(size: usize, read_bytes: f64, written_bytes: f64, readings: u32) -> f64 {
    size as f64 * (read_bytes + written_bytes) / (f64::from(readings) * read_bytes + written_bytes)
}

/// A rank's membership of a group of ranks; see the [module](self). All ranks call the same collective functions in the same
/// order. A rank that is dropped has left: to the others that is an error where its part is needed. Rank 0, where all meet, had
/// better leave last: [`Self::finish`].
pub struct Group {
    rank: usize,
    local_rank: usize,
    link: Link,
}

enum Link {
    /// Where all meet, and at rank 0 of several processes those who are elsewhere.
    Here(Arc<Meeting>, Option<Hub>),
    There(Box<Remote>),
}

impl Group {
    /// The ranks of a group in this process, in order: give each to a thread of its own. Nothing waits for longer than `timeout`.
    ///
    /// # Errors
    /// When `size` is 0 or more than a group has room for.
    pub fn in_process(size: usize, timeout: Duration) -> Result<Vec<Self>, RankError> {
        check_size(size)?;
        let meeting = Arc::new(Meeting::new(size, timeout));
        let rank = |rank| Self { rank, local_rank: rank, link: Link::Here(Arc::clone(&meeting), None) };
        Ok((0..size).map(rank).collect())
    }

    /// Joins the ranks of other processes, and waits until all have come, for `timeout` at most; the same bounds everything that
    /// the group waits for.
    ///
    /// # Errors
    /// When a rank does not come, or comes twice, when rank 0 cannot listen at the address, or the ranks are not of one mind how many
    /// they are.
    pub fn join(place: &Place, timeout: Duration) -> Result<Self, RankError> {
        check_size(place.size)?;
        let link = if place.rank == 0 {
            let meeting = Arc::new(Meeting::new(place.size, timeout));
            let hub = Hub::open(&place.address, &meeting)?;
            Link::Here(meeting, Some(hub))
        } else {
            Link::There(Box::new(Remote::join(place, timeout)?))
        };
        Ok(Self { rank: place.rank, local_rank: place.local_rank, link })
    }

    /// This rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The rank among those of its host: the ordinal of its device.
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// Ranks of the group.
    pub fn size(&self) -> usize {
        match &self.link {
            Link::Here(meeting, _) => meeting.size(),
            Link::There(remote) => remote.place().size,
        }
    }

    /// What bounds all waiting.
    pub fn timeout(&self) -> Duration {
        match &self.link {
            Link::Here(meeting, _) => meeting.timeout(),
            Link::There(remote) => remote.timeout(),
        }
    }

    /// The parts of all ranks, one behind the other in their order; each has as many bytes as this rank's.
    ///
    /// # Errors
    /// When a rank is lost, does not take part in time, or gives a part of another length, and when the parts are together more than a
    /// message holds.
    pub fn all_gather(&self, part: &[u8]) -> Result<Arc<[u8]>, RankError> {
        let bytes = part.len().saturating_mul(self.size());
        if bytes > MOST_BYTES {
            return Err(RankError::Parts { bytes, most: MOST_BYTES });
        }
        match &self.link {
            Link::Here(meeting, _) => {
                self.check()?;
                meeting.wait(meeting.put(self.rank, part.to_vec()))
            }
            Link::There(remote) => remote.all_gather(part.to_vec()),
        }
    }

    /// Gives `own` to the first rank, which does something to those of all ranks, in their order, and takes it back.
    ///
    /// # Errors
    /// As [`Self::all_gather`], where ranks are processes of their own, and what the deed says, of which the others are told.
    #[cfg(all(feature = "cpu", feature = "lab"))]
    pub(crate) fn at_first<T: Send + 'static, E: From<RankError> + std::fmt::Display>(
        &self,
        own: T,
        deed: impl FnOnce(&mut [T]) -> Result<(), E>,
    ) -> Result<T, E> {
        let other_process = RankError::OtherProcess { rank: self.rank };
        let meeting = match &self.link {
            Link::Here(meeting, None) => meeting,
            _ => return Err(other_process.into()),
        };
        meeting.lay(self.rank, own);
        self.barrier()?;
        if self.rank == 0 {
            let all: Option<Vec<T>> = (0..self.size()).map(|rank| meeting.take(rank)).collect();
            let mut all = all.ok_or(other_process.clone())?;
            deed(&mut all).inspect_err(|error| self.fail(&error.to_string()))?;
            all.into_iter().enumerate().for_each(|(rank, own)| meeting.lay(rank, own));
        }
        self.barrier()?;
        Ok(meeting.take(self.rank).ok_or(other_process)?)
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// As [`Self::all_gather`].
    pub fn barrier(&self) -> Result<(), RankError> {
        self.all_gather(&[]).map(drop)
    }

    /// Leaves, once all ranks have come to this.
    ///
    /// # Errors
    /// As [`Self::all_gather`].
    pub fn finish(self) -> Result<(), RankError> {
        self.barrier()
    }

    /// Says whether all ranks are still there, as far as this one has heard.
    ///
    /// # Errors
    /// When a rank is lost.
    pub fn check(&self) -> Result<(), RankError> {
        self.await_loss(Duration::ZERO)
    }

    /// Waits for `most` at most, for as long as no rank is lost.
    ///
    /// # Errors
    /// When a rank is lost.
    pub fn await_loss(&self, most: Duration) -> Result<(), RankError> {
        let lost = match &self.link {
            Link::Here(meeting, _) => meeting.await_loss(most),
            Link::There(remote) => remote.await_loss(most),
        };
        lost.map_or(Ok(()), |(rank, loss)| Err(RankError::Lost { rank, size: self.size(), loss }))
    }

    /// Says to all ranks that this one is lost, and why.
    pub fn fail(&self, why: &str) {
        self.lose(self.rank, Loss::Failed(why.to_owned()));
    }

    /// Says how far this rank is, so that others who wait for it can name it.
    #[cfg_attr(not(feature = "nccl"), allow(dead_code))]
    pub(crate) fn advance(&self, progress: u64) {
        match &self.link {
            Link::Here(meeting, _) => meeting.advance(self.rank, progress),
            Link::There(remote) => remote.advance(progress),
        }
    }

    /// The rank that is behind by what all have said last, or else this one, is lost.
    #[cfg_attr(not(feature = "nccl"), allow(dead_code))]
    pub(crate) fn lose_the_last(&self) -> RankError {
        let progress = match &self.link {
            Link::Here(meeting, _) => meeting.progress(),
            Link::There(remote) => remote.progress(),
        };
        let least = progress.iter().enumerate().min_by_key(|(_, progress)| **progress);
        let own = progress.get(self.rank).copied().unwrap_or(0);
        let (rank, loss) = match least {
            Some((rank, &progress)) if progress < own => (rank, Loss::Late(self.timeout())),
            _ => (self.rank, Loss::Late(self.timeout())),
        };
        self.lose(rank, loss.clone());
        // Another rank may have said something else before.
        self.check().err().unwrap_or(RankError::Lost { rank, size: self.size(), loss })
    }

    fn lose(&self, rank: usize, loss: Loss) {
        match &self.link {
            Link::Here(meeting, _) => meeting.lose(rank, loss),
            Link::There(remote) => remote.lose(rank, loss),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.fail("it panicked");
        }
        // A connection says so by itself.
        if let Link::Here(meeting, hub) = &mut self.link {
            meeting.leave(self.rank);
            drop(hub.take());
        }
    }
}

fn check_size(size: usize) -> Result<(), RankError> {
    if (1..=MOST_RANKS).contains(&size) { Ok(()) } else { Err(RankError::Size { size, most: MOST_RANKS }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_contiguous_and_of_one_length_but_for_one() {
        for n in [0, 1, 2, 3, 4, 5, 1000, 1 << 40] {
            for size in 1..=5 {
                let shards: Vec<_> = (0..size).map(|rank| shard(n, rank, size)).collect();
                assert!(shards.windows(2).all(|pair| pair[0].end == pair[1].start));
                assert_eq!((shards[0].start, shards[size - 1].end), (0, n));
                let lengths = shards.iter().map(|shard| shard.end - shard.start);
                assert!(lengths.clone().max().unwrap_or(0) - lengths.min().unwrap_or(0) <= 1, "{n} among {size}");
            }
        }
    }

    #[test]
    fn the_rate_by_bytes_is_what_memory_has_to_move() {
        assert!((by_bytes(2, 4.0, 4.0, 2) - 4.0 / 3.0).abs() < 1e-9);
        assert!((by_bytes(2, 1.0, 4.0, 2) - 5.0 / 3.0).abs() < 1e-9);
        assert!((by_bytes(2, 1.0, 4.0, 1) - 2.0).abs() < 1e-9);
    }
}
