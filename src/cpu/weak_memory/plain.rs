//! Plain accesses, by threads and by copies: they must be ordered with all others to the same place.

use super::history::{Entry, NO_LOCATION};
use super::knowledge::Message;
use super::shadow::{Observer, PlainFault};
use super::state::{BlockState, WeakMemory};
use crate::cpu::backend::{Access, AccessKind, AsyncStore, Copy};
use std::rc::Rc;

impl WeakMemory {
    /// A plain access. Returns the array that it lies in, and where; nothing where that is shared memory.
    pub(super) fn plain_access(&mut self, access: &Access) -> Result<Option<(usize, usize)>, String> {
        if matches!(access.kind, AccessKind::SharedLoad | AccessKind::SharedStore) {
            return self.shared_access(access).map(|()| None);
        }
        let (at, offset) = self.find_array(access)?;
        let me = self.number(access);
        let site = self.sites.number(access);
        let bytes = access.bytes as usize;
        let observer = Observer::of(me, self.blocks.thread(access));
        let array = &mut self.arrays[at];
        let result = if access.kind.is_store() {
            array.shadow.store(offset, bytes, observer, site, &mut self.lists)
        } else {
            array.shadow.load(offset, bytes, observer, site, false, &mut self.lists)
        };
        if let Err(PlainFault::Race(conflict)) = result {
            return Err(self.race(&self.arrays[at].name, offset, access, conflict));
        }
        if !array.locations.is_empty() {
            self.check_against_protocol(access, at, offset)?;
        }
        Ok(Some((at, offset)))
    }

    /// An atomic addition in shared memory, which orders nothing. Returns what was there before.
    pub(super) fn add_to_shared(&mut self, access: &Access, value: u32) -> Result<u32, String> {
        self.shared_access(access)?;
        let word = access.address as *mut u32;
        // SAFETY: the word lies inside shared memory of the block; launches run on one OS thread, and no Rust reference into it
        // is alive meanwhile.
        unsafe {
            let before = word.read();
            word.write(before.wrapping_add(value));
            Ok(before)
        }
    }

    fn shared_access(&mut self, access: &Access) -> Result<(), String> {
        let me = self.number(access);
        let site = self.sites.number(access);
        let bytes = access.bytes as usize;
        let BlockState { threads, shared, .. } = self.blocks.of(access.block);
        let observer = Observer::of(me, &threads[access.thread as usize]);
        let Some((region, offset)) = shared.find(access) else {
            return Err(format!(
                "{} of {bytes} bytes outside the shared memory that the block has declared",
                access.kind
            ));
        };
        let result = match access.kind {
            AccessKind::SharedAdd => region.shadow.add(offset, bytes, observer, site, &mut self.lists),
            AccessKind::SharedStore => region.shadow.store(offset, bytes, observer, site, &mut self.lists),
            _ => region.shadow.load(offset, bytes, observer, site, true, &mut self.lists),
        };
        self.shared_granule_bytes = region.shadow.granule_bytes().min(self.shared_granule_bytes);
        result.map_err(|fault| match fault {
            PlainFault::Race(conflict) => self.race("shared memory", offset, access, conflict),
            PlainFault::Unwritten => {
                format!("{} of {bytes} bytes at byte {offset} of shared memory, which nobody has written", access.kind)
            }
        })
    }

    /// A plain access to what the protocol accesses too must be ordered with that.
    fn check_against_protocol(&mut self, access: &Access, at: usize, offset: usize) -> Result<(), String> {
        let observer = Observer::of(self.number(access), self.blocks.thread(access));
        let is_store = access.kind.is_store();
        let granules = offset / 4..(offset + access.bytes as usize).div_ceil(4);
        for &number in self.arrays[at].locations[granules].iter().filter(|&&number| number != NO_LOCATION) {
            let location = &self.locations[number as usize];
            let conflict = location
                .find_unknown_store(observer, |_| true)
                .or_else(|| observer.find_unknown(&location.reads).filter(|_| is_store));
            if let Some(conflict) = conflict {
                return Err(self.race(&self.arrays[at].name, offset, access, conflict));
            }
        }
        Ok(())
    }

    /// After a plain store, which is ordered behind all accesses of the protocol to the same place: it is
    /// the newest there.
    pub(super) fn overwrite_locations(&mut self, access: &Access, at: usize, offset: usize) -> Result<(), String> {
        if self.arrays[at].locations.is_empty() {
            return Ok(());
        }
        let me = self.number(access);
        let site = self.sites.number(access);
        let state = self.blocks.thread(access);
        let granules = offset / 4..(offset + access.bytes as usize).div_ceil(4);
        for &number in self.arrays[at].locations[granules].iter().filter(|&&number| number != NO_LOCATION) {
            let location = &mut self.locations[number as usize];
            let timestamp = location.next_timestamp()?;
            let value = self.arrays[at].read_native(location);
            location.entries.push(Entry { timestamp, time: state.time, site, ..Entry::plain(me, value) });
            Rc::make_mut(&mut state.knowledge).see(number, timestamp);
        }
        Ok(())
    }

    pub(super) fn land_copy(&mut self, copy: &Copy) -> Result<(), String> {
        let Copy { number, source, target, barrier } = copy;
        let (at, from) = self.find_array(source)?;
        let read = self.sites.number(source);
        let me = self.copier(source.block);
        let bytes = source.bytes as usize;
        let landed = self.blocks.of(source.block).land(*number);
        let (knowledge, time) = landed.ok_or("nobody asked for this copy")?;
        let observer = Observer { thread: me, time, knowledge: &knowledge };
        // Elements: no protocol is beside them.
        let loaded = self.arrays[at].shadow.load(from, bytes, observer, read, false, &mut self.lists);
        if let Err(PlainFault::Race(conflict)) = loaded {
            return Err(self.race_of(me, &self.arrays[at].name, from, source, conflict));
        }
        self.store_landed(source.block, target, observer, "copy")?;
        let landed = Message { knowledge: Rc::new(knowledge), thread: me, time };
        self.blocks.of(source.block).copy_barrier(*barrier).arrive(landed);
        // SAFETY: both ranges lie inside an array of the launch and shared memory of the block; launches run on one
        // OS thread, and no Rust reference into either is alive meanwhile.
        unsafe { std::ptr::copy(source.address as *const u8, target.address as *mut u8, bytes) };
        Ok(())
    }

    pub(super) fn land_store(&mut self, store: &AsyncStore) -> Result<(), String> {
        let AsyncStore { number, access, block: owner, barrier, .. } = store;
        let me = self.copier(*owner);
        // It comes behind what the thread that made it knew then, and hands over nothing but itself.
        let (knowledge, time) = self.blocks.of(*owner).land(*number).ok_or("nobody made this store")?;
        self.store_landed(*owner, access, Observer { thread: me, time, knowledge: &knowledge }, "store")?;
        let landed = Message { knowledge: Rc::clone(&self.blocks.nothing), thread: me, time };
        self.blocks.of(*owner).copy_barrier(*barrier).arrive(landed);
        // SAFETY: shared memory of a block that has not ended; launches run on one OS thread, and no Rust reference
        // into it is alive meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(store.value.as_ptr(), access.address as *mut u8, store.bytes().len()) };
        Ok(())
    }

    /// The store into shared memory of `owner` with which a copy or an asynchronous store ends.
    fn store_landed(&mut self, owner: u64, access: &Access, me: Observer<'_>, what: &str) -> Result<(), String> {
        let site = self.sites.number(access);
        let bytes = access.bytes as usize;
        let Some((region, offset)) = self.blocks.of(owner).shared.find(access) else {
            return Err(format!("a {what} of {bytes} bytes outside the shared memory that the block has declared"));
        };
        let stored = region.shadow.store(offset, bytes, me, site, &mut self.lists);
        self.shared_granule_bytes = region.shadow.granule_bytes().min(self.shared_granule_bytes);
        match stored {
            Err(PlainFault::Race(conflict)) => Err(self.race_of(me.thread, "shared memory", offset, access, conflict)),
            _ => Ok(()),
        }
    }
}
