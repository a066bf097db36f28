//! The stores of one protocol location in modification order, and who loaded from it.

use super::knowledge::{Knowledge, NOBODY, Release};
use super::shadow::{Conflict, Observer, Reads};
use crate::cpu::backend::Scope;

/// Timestamps of neighbours in modification order lie this far apart, so that stores fit in between.
const GAP: u32 = 256;

/// No location.
pub(super) const NO_LOCATION: u32 = u32::MAX;

/// One store, or what was there before the launch.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Position in modification order.
    pub timestamp: u32,
    /// The store that it is part of; the parts of one scalar store are seen together.
    pub store: u32,
    pub thread: u32,
    pub time: u32,
    pub site: u32,
    pub scope: Scope,
    /// A read-modify-write's own: nothing may come between it and what it read.
    pub is_update: bool,
    pub value: u128,
    /// What whoever acquires it learns: what its own thread released here or before, and for an update what those
    /// released whose stores it goes on with.
    pub releases: Vec<Release>,
}

impl Entry {
    /// A store that releases nothing and is no part of a scalar store of the protocol.
    pub fn plain(thread: u32, value: u128) -> Self {
        Self {
            timestamp: 0,
            store: 0,
            thread,
            time: 0,
            site: 0,
            scope: Scope::Gpu,
            is_update: false,
            value,
            releases: Vec::new(),
        }
    }
}

/// A word of 4, 8 or 16 bytes that the protocol accesses as a whole; once it has been accessed in parts it
/// is retired, and every 4 bytes of it are a location of their own.
#[derive(Debug)]
pub(super) struct Location {
    pub array: u32,
    pub offset: u32,
    pub bytes: u32,
    /// The location that this one was a part of: what was seen of that one counts here too.
    pub parent: u32,
    pub entries: Vec<Entry>,
    pub reads: Vec<Reads>,
    /// Whether anybody accessed it with block scope.
    pub has_block_scope: bool,
}

impl Location {
    /// With 0 from before the launch.
    pub fn new(array: u32, offset: u32, bytes: u32) -> Self {
        let entries = vec![Entry::plain(NOBODY, 0)];
        Self { array, offset, bytes, parent: NO_LOCATION, entries, reads: Vec::new(), has_block_scope: false }
    }

    /// The 4 bytes at `offset` of the array, as a location of their own.
    pub fn part(&self, own_number: u32, offset: u32) -> Self {
        let shift = (offset - self.offset) * 8;
        let cut = |entry: &Entry| Entry { value: entry.value >> shift & u128::from(u32::MAX), ..entry.clone() };
        Self {
            array: self.array,
            offset,
            bytes: 4,
            parent: own_number,
            entries: self.entries.iter().map(cut).collect(),
            reads: self.reads.clone(),
            has_block_scope: self.has_block_scope,
        }
    }

    /// The timestamp of the newest store that somebody knows.
    pub fn seen(&self, own_number: u32, knowledge: &Knowledge) -> u32 {
        let seen = knowledge.seen(own_number);
        if self.parent == NO_LOCATION { seen } else { seen.max(knowledge.seen(self.parent)) }
    }

    pub fn newest(&self) -> &Entry {
        &self.entries[self.entries.len() - 1]
    }

    /// Position of the newest entry that is not newer than `timestamp`.
    pub fn position(&self, timestamp: u32) -> usize {
        self.entries.partition_point(|entry| entry.timestamp <= timestamp).saturating_sub(1)
    }

    /// The timestamp of a store behind all others.
    pub fn next_timestamp(&self) -> Result<u32, &'static str> {
        self.newest().timestamp.checked_add(GAP).ok_or("too many stores to one location in one launch")
    }

    /// The timestamp of a store between `position - 1` and `position`, if one fits in.
    pub fn timestamp_before(&self, position: usize) -> Option<u32> {
        let (before, after) = (&self.entries[position - 1], &self.entries[position]);
        let timestamp = before.timestamp + (after.timestamp - before.timestamp) / 2;
        (!after.is_update && timestamp != before.timestamp).then_some(timestamp)
    }

    /// What a store of `thread` carries on of what the thread released before: at its `fences`, or to this location.
    pub fn carried(&self, thread: u32, fences: &[Release]) -> Vec<Release> {
        let of_thread = |release: &&Release| release.message.thread == thread;
        let own = |entry: &&Entry| entry.thread == thread && entry.releases.iter().any(|release| of_thread(&release));
        let here = self.entries.iter().rev().find(own).map_or(&[][..], |entry| &entry.releases);
        Release::latest(here.iter().filter(of_thread).chain(fences))
    }

    /// A store that `me` knows nothing of, among those that `is_wanted` accepts.
    pub fn find_unknown_store(&self, me: Observer<'_>, is_wanted: impl Fn(&Entry) -> bool) -> Option<Conflict> {
        let is_unknown = |entry: &&Entry| !me.knows(entry.thread, entry.time) && is_wanted(entry);
        let found = self.entries.iter().rev().find(is_unknown);
        found.map(|entry| Conflict { thread: entry.thread, site: entry.site })
    }
}
