//! Accesses of the protocol: which store a load returns, where in modification order a store goes, and what they
//! hand over.

use super::history::{Entry, Location, NO_LOCATION};
use super::knowledge::Release;
use super::shadow::Observer;
use super::state::{WeakEvent, WeakMemory};
use crate::cpu::backend::{Access, AccessKind, Scope};
use rand_core::Rng;
use std::ops::Range;
use std::rc::Rc;

/// Locations that an access covers, from its first byte to its last.
type Covered = ([u32; 4], usize);

/// What a load or a store met, for the record.
#[derive(Clone, Copy, Default)]
pub(super) struct Met {
    store: u32,
    stale_by: u32,
    is_torn: bool,
}

/// Whether `entry` and an access that reads it are morally strong, without which nothing that it carries is acquired.
fn reaches(entry: &Entry, access: &Access, own_block: &Range<u32>) -> bool {
    own_block.contains(&entry.thread) || entry.scope == Scope::Gpu && access.scope == Scope::Gpu
}

impl WeakMemory {
    pub(super) fn protocol_load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String> {
        let (at, offset) = self.find_array(access)?;
        let met = if access.is_vector {
            let half = value.len() / 2;
            let (low, high) = value.split_at_mut(half);
            let low = self.load_scalar(access, at, offset, low)?;
            let high = self.load_scalar(access, at, offset + half, high)?;
            Met {
                store: 0,
                stale_by: low.stale_by.max(high.stale_by),
                is_torn: low.is_torn || high.is_torn || low.store ^ high.store > 1,
            }
        } else {
            self.load_scalar(access, at, offset, value)?
        };
        self.record(access, at, offset, value, met);
        Ok(())
    }

    pub(super) fn protocol_store(&mut self, access: &Access, value: &[u8]) -> Result<(), String> {
        let (at, offset) = self.find_array(access)?;
        let me = self.number(access);
        let state = self.blocks.thread(access);
        let release = (access.kind == AccessKind::ReleaseStore)
            .then(|| Release { message: state.release(me), scope: access.scope });
        let store = self.next_store();
        let met = if access.is_vector {
            let half = value.len() / 2;
            let (low, high) = value.split_at(half);
            let low = self.store_scalar(access, at, offset, low, release.as_ref(), store)?;
            let high = self.store_scalar(access, at, offset + half, high, release.as_ref(), store + 1)?;
            Met { stale_by: low.stale_by.max(high.stale_by), ..low }
        } else {
            self.store_scalar(access, at, offset, value, release.as_ref(), store)?
        };
        self.record(access, at, offset, value, met);
        Ok(())
    }

    pub(super) fn protocol_fetch_add(&mut self, access: &Access, value: u32) -> Result<u32, String> {
        let (at, offset) = self.find_array(access)?;
        let covered = self.locate(at, offset, 4)?;
        let number = covered.0[0];
        self.check_protocol(access, at, offset..offset + 4, covered)?;
        let me = self.number(access);
        let site = self.sites.number(access);
        let orders = (access.kind == AccessKind::AcquireReleaseFetchAdd).then_some(access.scope);
        let own_block = self.own_block(access);
        let store = self.next_store();
        let state = self.blocks.thread(access);
        let location = &mut self.locations[number as usize];

        let newest = location.newest();
        let before = newest.value as u32;
        // The release sequence goes on through this read-modify-write, whatever its own order.
        let sequence = if reaches(newest, access, &own_block) { &newest.releases[..] } else { &[] };
        for release in sequence {
            state.read(me, release, orders, &own_block);
        }
        let time = state.time;
        let released = orders.map(|scope| Release { message: state.release(me), scope });
        let carried = location.carried(me, &state.fences);
        let mut releases = Release::latest(carried.iter().chain(&released));
        // What the thread itself released is all carried.
        releases.extend(sequence.iter().filter(|release| release.message.thread != me).cloned());
        let timestamp = location.next_timestamp()?;
        let after = before.wrapping_add(value);
        location.entries.push(Entry {
            timestamp,
            store,
            thread: me,
            time,
            site,
            scope: access.scope,
            is_update: true,
            value: u128::from(after),
            releases,
        });
        location.has_block_scope |= access.scope == Scope::Block;
        self.arrays[at].write_native(location, u128::from(after));
        Rc::make_mut(&mut state.knowledge).see(number, timestamp);
        self.record(access, at, offset, &before.to_le_bytes(), Met::default());
        Ok(before)
    }

    /// The threads of the block that makes an access.
    pub(super) fn own_block(&self, access: &Access) -> Range<u32> {
        let first = self.blocks.first_thread(access.block);
        first..first + self.blocks.threads
    }

    /// The locations under `bytes` bytes of an array, made or taken apart where need be.
    fn locate(&mut self, at: usize, offset: usize, bytes: usize) -> Result<Covered, String> {
        let array = &mut self.arrays[at];
        if !(array.address + offset).is_multiple_of(bytes) || !offset.is_multiple_of(4) || !bytes.is_multiple_of(4) {
            return Err(format!("misaligned access of {bytes} bytes at byte {offset} of {}", array.name));
        }
        if array.locations.is_empty() {
            array.locations.resize(array.bytes.div_ceil(4), NO_LOCATION);
        }
        let granules = offset / 4..(offset + bytes) / 4;
        let number = array.locations[granules.start];
        if let Some(location) = self.locations.get(number as usize)
            && location.offset as usize == offset
            && location.bytes as usize == bytes
        {
            return Ok(([number; 4], 1));
        }
        if array.locations[granules.clone()].iter().all(|&number| number == NO_LOCATION) {
            return Ok(([self.make_location(at, offset, bytes); 4], 1));
        }
        Ok(self.locate_parts(at, granules))
    }

    fn make_location(&mut self, at: usize, offset: usize, bytes: usize) -> u32 {
        let mut location = Location::new(at as u32, offset as u32, bytes as u32);
        location.entries[0].value = self.arrays[at].read_native(&location);
        self.locations.push(location);
        let number = self.locations.len() as u32 - 1;
        self.arrays[at].locations[offset / 4..(offset + bytes) / 4].fill(number);
        number
    }

    /// The same where accesses of different widths meet: 4 bytes a location.
    #[cold]
    fn locate_parts(&mut self, at: usize, granules: std::ops::Range<usize>) -> Covered {
        for granule in granules.clone() {
            let number = self.arrays[at].locations[granule];
            if number == NO_LOCATION {
                self.make_location(at, granule * 4, 4);
                continue;
            }
            let whole = &self.locations[number as usize];
            if whole.bytes == 4 {
                continue;
            }
            let (first, bytes) = (whole.offset, whole.bytes);
            for part in (first..first + bytes).step_by(4) {
                let part = self.locations[number as usize].part(number, part);
                self.arrays[at].locations[part.offset as usize / 4] = self.locations.len() as u32;
                self.locations.push(part);
            }
            self.locations[number as usize].entries.clear();
        }
        let mut covered = ([NO_LOCATION; 4], granules.len());
        covered.0[..granules.len()].copy_from_slice(&self.arrays[at].locations[granules]);
        covered
    }

    /// Whether an access of the protocol is ordered with all that it races with otherwise: plain accesses,
    /// and those of another block if either has block scope.
    fn check_protocol(
        &mut self,
        access: &Access,
        at: usize,
        place: std::ops::Range<usize>,
        covered: Covered,
    ) -> Result<(), String> {
        let me = self.number(access);
        let own_block = self.own_block(access);
        let observer = Observer::of(me, self.blocks.thread(access));
        let is_store = access.kind.is_store();
        let array = &self.arrays[at];
        let mut conflict = array.shadow.check(place.start, place.len(), observer, is_store, &self.lists).err();
        for &number in &covered.0[..covered.1] {
            let location = &self.locations[number as usize];
            if conflict.is_some() || !location.has_block_scope && access.scope == Scope::Gpu {
                continue;
            }
            let is_weak =
                |site: u32| access.scope == Scope::Block || self.sites.all[site as usize].scope == Scope::Block;
            conflict = location
                .find_unknown_store(observer, |entry| !own_block.contains(&entry.thread) && is_weak(entry.site));
            if conflict.is_none() && is_store {
                let foreign =
                    location.reads.iter().filter(|reads| !own_block.contains(&reads.thread()) && is_weak(reads.site));
                conflict = foreign.copied().find_map(|reads| observer.find_unknown(&[reads]));
            }
        }
        conflict.map_or(Ok(()), |conflict| Err(self.race(&array.name, place.start, access, conflict)))
    }

    /// Whether the next draw is below a threshold.
    fn chance(&mut self, threshold: u32) -> bool {
        threshold != 0 && self.random.next_u32() <= threshold
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u64::from(self.random.next_u32()) * bound as u64) >> 32) as usize
    }

    /// One scalar load of the protocol.
    fn load_scalar(&mut self, access: &Access, at: usize, offset: usize, value: &mut [u8]) -> Result<Met, String> {
        let covered = self.locate(at, offset, value.len())?;
        let (numbers, count) = (&covered.0[..covered.1], covered.1);
        self.check_protocol(access, at, offset..offset + value.len(), covered)?;
        let me = self.number(access);
        let site = self.sites.number(access);
        self.statistics.protocol_loads += 1;

        // For each location a store that is not older than what the thread knows.
        let mut chosen = [0; 4];
        let mut may_be_stale = false;
        for (chosen, &number) in chosen.iter_mut().zip(numbers) {
            let location = &self.locations[number as usize];
            let newest = location.entries.len() - 1;
            *chosen = newest;
            if newest == 0 {
                continue;
            }
            let state = self.blocks.thread(access);
            let oldest = location.position(location.seen(number, &state.knowledge));
            if oldest < newest {
                may_be_stale = true;
                if state.stale_in_a_row < self.settings.most_stale_in_a_row && self.chance(self.stale_threshold) {
                    *chosen = oldest + self.below(newest - oldest);
                }
            }
        }
        if count > 1 {
            self.see_scalars_whole(numbers, &mut chosen);
        }

        let mut met = Met::default();
        let own_block = self.own_block(access);
        let acquires = (access.kind == AccessKind::AcquireLoad).then_some(access.scope);
        let state = self.blocks.thread(access);
        for (part, (&number, &chosen)) in numbers.iter().zip(&chosen).enumerate() {
            let location = &mut self.locations[number as usize];
            let entry = &location.entries[chosen];
            let bytes = location.bytes as usize;
            value[part * bytes..][..bytes].copy_from_slice(&entry.value.to_le_bytes()[..bytes]);
            let stale_by = (location.entries.len() - 1 - chosen) as u32;
            met.stale_by = met.stale_by.max(stale_by);
            met.is_torn |= part != 0 && entry.store != met.store;
            met.store = entry.store;
            if location.seen(number, &state.knowledge) < entry.timestamp {
                Rc::make_mut(&mut state.knowledge).see(number, entry.timestamp);
            }
            if reaches(entry, access, &own_block) {
                for release in &entry.releases {
                    state.read(me, release, acquires, &own_block);
                }
            }
            Observer::of(me, state).add_to(&mut location.reads, site);
            location.has_block_scope |= access.scope == Scope::Block;
        }
        if may_be_stale {
            state.stale_in_a_row = if met.stale_by == 0 { 0 } else { state.stale_in_a_row + 1 };
        }
        self.statistics.stale_loads += u64::from(met.stale_by != 0);
        Ok(met)
    }

    /// Where one location was chosen from a scalar store that covers others too, these must not be older.
    fn see_scalars_whole(&self, numbers: &[u32], chosen: &mut [usize; 4]) {
        loop {
            let mut is_whole = true;
            for from in 0..numbers.len() {
                let store = self.locations[numbers[from] as usize].entries[chosen[from]].store;
                for to in 0..numbers.len() {
                    let entries = &self.locations[numbers[to] as usize].entries;
                    if store != 0
                        && let Some(found) = entries.iter().position(|entry| entry.store == store)
                        && found > chosen[to]
                    {
                        chosen[to] = found;
                        is_whole = false;
                    }
                }
            }
            if is_whole {
                return;
            }
        }
    }

    /// One scalar store of the protocol. `release` is what a release hands over, `store` the store's number.
    fn store_scalar(
        &mut self,
        access: &Access,
        at: usize,
        offset: usize,
        value: &[u8],
        release: Option<&Release>,
        store: u32,
    ) -> Result<Met, String> {
        let covered = self.locate(at, offset, value.len())?;
        let (numbers, count) = (&covered.0[..covered.1], covered.1);
        self.check_protocol(access, at, offset..offset + value.len(), covered)?;
        let me = self.number(access);
        let site = self.sites.number(access);
        let mut met = Met { store, ..Met::default() };
        for (part, &number) in numbers.iter().enumerate() {
            let location = &self.locations[number as usize];
            let state = self.blocks.thread(access);
            // A release hands itself over too.
            let time = release.map_or(state.time, |release| release.message.time);
            let end = location.entries.len();
            let first = location.position(location.seen(number, &state.knowledge)) + 1;
            // The parts of a wide store stay in one order with those of others: they go to the end.
            let mut position = end;
            let mut timestamp = None;
            if first < end && count == 1 && self.chance(self.reorder_threshold) {
                let before = first + self.below(end - first);
                timestamp = self.locations[number as usize].timestamp_before(before);
                if timestamp.is_some() {
                    position = before;
                    met.stale_by = (end - before) as u32;
                    self.statistics.reordered_stores += 1;
                }
            }
            let carried = self.locations[number as usize].carried(me, &self.blocks.thread(access).fences);
            let location = &mut self.locations[number as usize];
            let timestamp = timestamp.map_or_else(|| location.next_timestamp(), Ok)?;
            let bytes = location.bytes as usize;
            let mut word = [0; 16];
            word[..bytes].copy_from_slice(&value[part * bytes..][..bytes]);
            let entry = Entry {
                timestamp,
                store: met.store,
                thread: me,
                time,
                site,
                scope: access.scope,
                is_update: false,
                value: u128::from_le_bytes(word),
                releases: Release::latest(carried.iter().chain(release)),
            };
            if position == end {
                self.arrays[at].write_native(location, entry.value);
            }
            location.entries.insert(position, entry);
            location.has_block_scope |= access.scope == Scope::Block;
            Rc::make_mut(&mut self.blocks.thread(access).knowledge).see(number, timestamp);
        }
        Ok(met)
    }

    /// The number of a store: even, so that the second half of a vector store has the odd one behind it.
    fn next_store(&mut self) -> u32 {
        self.stores += 2;
        self.stores
    }

    pub(super) fn record(&mut self, access: &Access, at: usize, offset: usize, value: &[u8], met: Met) {
        self.statistics.torn_loads += u64::from(met.is_torn);
        if !self.settings.record_events {
            return;
        }
        let site = self.sites.number(access);
        let mut word = [0; 16];
        let bytes = value.len().min(16);
        word[..bytes].copy_from_slice(&value[..bytes]);
        let event = WeakEvent {
            block: access.block,
            thread: access.thread,
            kind: access.kind,
            scope: access.scope,
            site: None,
            array: at,
            offset,
            bytes: access.bytes,
            value: u128::from_le_bytes(word),
            stale_by: met.stale_by,
            is_torn: met.is_torn,
        };
        self.events.push((event, site));
    }
}
