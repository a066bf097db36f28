//! All state of the model: arrays, blocks and what their threads know, locations; and how it is named in errors.

use super::history::{Location, NO_LOCATION};
use super::knowledge::{Knowledge, Message, Phase, ThreadState};
use super::launches::Launches;
use super::shadow::{Conflict, ReadLists, Shadow};
use crate::cpu::backend::{Access, AccessKind, Scope, out_of_bounds};
use crate::cpu::error::{RawSite, SourceSite};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use std::rc::Rc;

/// How weak memory is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeakSettings {
    /// Probability that a load returns an older value where it may.
    pub stale: f64,
    /// How often one after the other a thread may be served old values: stores become visible eventually,
    /// and a thread that polls must get on.
    pub most_stale_in_a_row: u32,
    /// Probability that a store goes before stores that its thread knows nothing of.
    pub reorder: f64,
    /// Whether every access of the protocol is recorded ([`WeakMemory::drain_events`]).
    pub record_events: bool,
}

impl Default for WeakSettings {
    fn default() -> Self {
        Self { stale: 0.5, most_stale_in_a_row: 6, reorder: 0.5, record_events: false }
    }
}

/// How often memory was weak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WeakStatistics {
    /// Loads of the protocol; the halves of a vector access count one each.
    pub protocol_loads: u64,
    /// Those that returned an older value than there was.
    pub stale_loads: u64,
    /// Loads whose parts are of different stores.
    pub torn_loads: u64,
    /// Stores that went before others in modification order.
    pub reordered_stores: u64,
}

/// One access of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct WeakEvent {
    /// Block of the thread.
    pub block: u64,
    /// Its index in the block.
    pub thread: u32,
    /// How.
    pub kind: AccessKind,
    /// How far it reaches.
    pub scope: Scope,
    /// The line of kernel source.
    pub site: Option<SourceSite>,
    /// The array, by the order of [`WeakMemory::add_array`]; 0 for a fence.
    pub array: usize,
    /// Where in the array, in bytes.
    pub offset: usize,
    /// Width.
    pub bytes: u32,
    /// What a load or a read-modify-write returned or a store wrote, as a little-endian number.
    pub value: u128,
    /// Stores that were newer than what a load returned, or that a store went before.
    pub stale_by: u32,
    /// Whether a load put its value together from different stores.
    pub is_torn: bool,
}

/// An access that may be named again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    pub line: RawSite,
    pub kind: AccessKind,
    pub scope: Scope,
}

/// Numbers for sites: shadows are small.
#[derive(Debug)]
pub(super) struct Sites {
    pub all: Vec<Site>,
    /// The last site that had each hash.
    recent: Box<[(Site, u32); 256]>,
}

impl Sites {
    pub fn new() -> Self {
        let none = Site { line: RawSite::NONE, kind: AccessKind::Fence, scope: Scope::Gpu };
        Self { all: vec![none], recent: Box::new([(none, 0); 256]) }
    }

    #[inline]
    pub fn number(&mut self, access: &Access) -> u32 {
        let site = Site { line: access.site, kind: access.kind, scope: access.scope };
        let hash = (access.site.line ^ (access.kind as u32) << 5) as usize % 256;
        if self.recent[hash].0 == site {
            return self.recent[hash].1;
        }
        let number = self.all.iter().position(|&known| known == site).unwrap_or_else(|| {
            self.all.push(site);
            self.all.len() - 1
        });
        self.recent[hash] = (site, number as u32);
        number as u32
    }
}

/// An array of the launch.
#[derive(Debug)]
pub(super) struct Array {
    pub name: String,
    pub address: usize,
    pub bytes: usize,
    pub writable: bool,
    pub shadow: Shadow,
    /// For every 4 bytes the location that they are part of; empty before the protocol's first access.
    pub locations: Vec<u32>,
}

impl Array {
    pub fn contains(&self, address: usize, bytes: usize) -> bool {
        self.address <= address
            && address - self.address <= self.bytes
            && bytes <= self.bytes - (address - self.address)
    }

    /// What native memory holds at a location.
    pub fn read_native(&self, location: &Location) -> u128 {
        let mut word = [0; 16];
        // SAFETY: the location lies inside the array, which whoever added it keeps where it is while launches
        // run; they run on one OS thread, and no Rust reference into the arrays is alive meanwhile.
        unsafe {
            let from = (self.address + location.offset as usize) as *const u8;
            std::ptr::copy_nonoverlapping(from, word.as_mut_ptr(), location.bytes as usize);
        }
        u128::from_le_bytes(word)
    }

    /// Lets native memory hold `value` at a location.
    pub fn write_native(&self, location: &Location, value: u128) {
        if !self.writable {
            return;
        }
        // SAFETY: as in `read_native`; the array is writable.
        unsafe {
            let to = (self.address + location.offset as usize) as *mut u8;
            std::ptr::copy_nonoverlapping(value.to_le_bytes().as_ptr(), to, location.bytes as usize);
        }
    }
}

/// Shared memory that a block declared.
#[derive(Debug, Default)]
pub(super) struct Region {
    address: usize,
    bytes: usize,
    pub shadow: Shadow,
}

/// All shared memory of a block.
#[derive(Debug, Default)]
pub(super) struct SharedMemory {
    regions: Vec<Region>,
    /// Regions that this block declared; the others wait to be used again.
    declared: usize,
}

impl SharedMemory {
    pub fn declare(&mut self, address: usize, bytes: usize, granule_bytes: u32) {
        if self.regions.len() == self.declared {
            self.regions.push(Region::default());
        }
        let region = &mut self.regions[self.declared];
        self.declared += 1;
        region.address = address;
        region.bytes = bytes;
        region.shadow.prepare(bytes, granule_bytes);
    }

    /// The region that an access lies in, and where.
    pub fn find(&mut self, access: &Access) -> Option<(&mut Region, usize)> {
        let end = access.address + access.bytes as usize;
        let contains = |region: &&mut Region| region.address <= access.address && end <= region.address + region.bytes;
        let region = self.regions[..self.declared].iter_mut().find(contains)?;
        let offset = access.address - region.address;
        Some((region, offset))
    }
}

/// A barrier of copies.
#[derive(Debug)]
pub(super) struct CopyBarrier {
    pub address: usize,
    /// What those hand over who arrived in the current phase.
    pub arriving: Option<Message>,
    /// The phase before.
    pub arrived: Phase,
}

impl CopyBarrier {
    pub fn arrive(&mut self, message: Message) {
        self.arriving = Some(match self.arriving.take() {
            None => message,
            Some(others) => others.joined(&message),
        });
    }
}

/// A block that has started and not ended.
#[derive(Debug, Default)]
pub(super) struct BlockState {
    pub threads: Vec<ThreadState>,
    pub shared: SharedMemory,
    pub copy_barriers: Vec<CopyBarrier>,
    /// Copies that have not landed: what whoever asked for each handed over, by the number of the copy.
    pub copies: Vec<(u64, Message)>,
    /// Copies that have landed.
    landed: u32,
}

impl BlockState {
    pub fn copy_barrier(&mut self, address: usize) -> &mut CopyBarrier {
        let known = self.copy_barriers.iter().position(|barrier| barrier.address == address);
        let at = known.unwrap_or_else(|| {
            self.copy_barriers.push(CopyBarrier { address, arriving: None, arrived: Phase::default() });
            self.copy_barriers.len() - 1
        });
        &mut self.copy_barriers[at]
    }

    /// A copy lands: what it knows, and the time of the copier. Nothing if nobody asked for it.
    pub fn land(&mut self, number: u64) -> Option<(Knowledge, u32)> {
        let asked = self.copies.iter().position(|&(asked, _)| asked == number)?;
        let (_, message) = self.copies.swap_remove(asked);
        let mut knowledge = Knowledge::clone(&message.knowledge);
        knowledge.learn_thread(message.thread, message.time);
        self.landed += 1;
        Some((knowledge, self.landed))
    }

    /// What all copies that have landed hand over together, as `copier`: nothing but that they are done.
    pub fn landed_copies(&self, copier: u32) -> Option<Message> {
        (self.landed > 0).then(|| Message { knowledge: Rc::default(), thread: copier, time: self.landed })
    }

    /// Makes the state ready for another block.
    fn clear(&mut self, lists: &mut ReadLists) {
        for region in &mut self.shared.regions[..self.shared.declared] {
            region.shadow.reset(lists);
        }
        self.shared.declared = 0;
        self.copy_barriers.clear();
        self.copies.clear();
        self.landed = 0;
    }
}

/// The blocks of the launch that have started.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Of a block.
    pub threads: u32,
    started: Vec<Option<Box<BlockState>>>,
    #[expect(clippy::vec_box, reason = "a box moves between the two lists, its contents stay")]
    ended: Vec<Box<BlockState>>,
    pub nothing: Rc<Knowledge>,
}

impl Blocks {
    /// For a launch with blocks of so many threads.
    pub fn begin_launch(&mut self, threads: u32) {
        self.threads = threads;
        for block in &mut self.ended {
            block.threads.truncate(threads as usize);
        }
    }

    pub fn first_thread(&self, block: u64) -> u32 {
        block as u32 * self.threads
    }

    /// The block's state, made where it begins.
    pub fn of(&mut self, block: u64) -> &mut BlockState {
        let at = block as usize;
        if self.started.len() <= at {
            self.started.resize_with(at + 1, || None);
        }
        self.started[at].get_or_insert_with(|| {
            let mut state = self.ended.pop().unwrap_or_default();
            state.threads.resize_with(self.threads as usize, || ThreadState::new(&self.nothing));
            for thread in &mut state.threads {
                thread.reset(&self.nothing);
            }
            state
        })
    }

    /// The thread that makes an access.
    #[inline]
    pub fn thread(&mut self, access: &Access) -> &mut ThreadState {
        &mut self.of(access.block).threads[access.thread as usize]
    }

    pub fn end(&mut self, block: u64, lists: &mut ReadLists) {
        if let Some(mut state) = self.started.get_mut(block as usize).and_then(Option::take) {
            state.clear(lists);
            self.ended.push(state);
        }
    }

    fn end_all(&mut self, lists: &mut ReadLists) {
        (0..self.started.len() as u64).for_each(|block| self.end(block, lists));
        self.started.clear();
    }
}

fn threshold(probability: f64) -> u32 {
    (probability.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32
}

/// A memory back end that models the weak memory of a GPU: what it models and what not is said at the head of
/// `cpu/weak_memory.rs`. One serves any number of launches, one after the other; arrays stay.
#[derive(Debug)]
pub struct WeakMemory {
    pub(super) settings: WeakSettings,
    pub(super) stale_threshold: u32,
    pub(super) reorder_threshold: u32,
    pub(super) random: Pcg64Mcg,
    pub(super) arrays: Vec<Array>,
    /// The array that each kind of access went to last.
    pub(super) recent_array: [usize; AccessKind::ALL.len()],
    /// The copies of block b are made by a thread of its own, numbered behind those of the grid.
    pub(super) first_copier: u32,
    pub(super) blocks: Blocks,
    pub(super) locations: Vec<Location>,
    pub(super) lists: ReadLists,
    pub(super) sites: Sites,
    pub(super) stores: u32,
    /// The finest granule of shared memory so far: types that are small stay small.
    pub(super) shared_granule_bytes: u32,
    /// The launches that are taken together.
    pub(super) launches: Launches,
    pub(super) statistics: WeakStatistics,
    pub(super) events: Vec<(WeakEvent, u32)>,
}

impl WeakMemory {
    /// Memory without arrays. Everything that it chooses is drawn from `seed`.
    pub fn new(seed: u64, settings: WeakSettings) -> Self {
        Self {
            settings,
            stale_threshold: threshold(settings.stale),
            reorder_threshold: threshold(settings.reorder),
            random: Pcg64Mcg::seed_from_u64(seed),
            arrays: Vec::new(),
            recent_array: [0; AccessKind::ALL.len()],
            first_copier: 0,
            blocks: Blocks { threads: 32, started: Vec::new(), ended: Vec::new(), nothing: Rc::default() },
            locations: Vec::new(),
            lists: ReadLists::new(),
            sites: Sites::new(),
            stores: 0,
            shared_granule_bytes: 4,
            launches: Launches::default(),
            statistics: WeakStatistics::default(),
            events: Vec::new(),
        }
    }

    /// Lets launches touch `bytes` bytes from `address`. Accesses of different granules do not conflict; a
    /// granule is an element, or what two threads may touch apart, and is made smaller where an access asks
    /// for it. Of arrays that overlap the one added first counts, so of an array that is scanned in place the
    /// output is added before the input.
    ///
    /// The array stays where it is while launches use it, and nobody else holds a reference into it then.
    ///
    /// # Panics
    /// When `granule_bytes` is not a power of two.
    pub fn add_array(&mut self, name: &str, address: usize, bytes: usize, granule_bytes: u32, writable: bool) {
        assert!(granule_bytes.is_power_of_two(), "a granule is a power of two");
        let shadow = Shadow::new(bytes, granule_bytes);
        self.arrays.push(Array { name: name.to_owned(), address, bytes, writable, shadow, locations: Vec::new() });
    }

    /// Forgets all arrays, for launches on others.
    pub fn clear_arrays(&mut self) {
        self.forget();
        self.arrays.clear();
    }

    /// The end of a launch, whether it succeeded or not: native memory holds the newest value of every
    /// location, and nothing is known of anybody any more, because whatever comes is ordered behind.
    pub fn finish_launch(&mut self) {
        for location in self.locations.iter().filter(|location| !location.entries.is_empty()) {
            self.arrays[location.array as usize].write_native(location, location.newest().value);
        }
        self.forget();
    }

    /// How often memory was weak since this back end was made.
    pub fn statistics(&self) -> WeakStatistics {
        self.statistics
    }

    /// The accesses of the protocol so far, in order, if [`WeakSettings::record_events`] asked for them.
    pub fn drain_events(&mut self) -> Vec<WeakEvent> {
        let name =
            |(event, site): (WeakEvent, u32)| WeakEvent { site: self.sites.all[site as usize].line.resolve(), ..event };
        std::mem::take(&mut self.events).into_iter().map(name).collect()
    }

    /// The name of an array of a [`WeakEvent`].
    pub fn array_name(&self, array: usize) -> &str {
        self.arrays.get(array).map_or("", |array| &array.name)
    }

    pub(super) fn forget(&mut self) {
        self.blocks.end_all(&mut self.lists);
        for array in &mut self.arrays {
            array.shadow.reset(&mut self.lists);
        }
        for location in self.locations.drain(..) {
            let granules = &mut self.arrays[location.array as usize].locations;
            let first = location.offset as usize / 4;
            granules[first..first + location.bytes as usize / 4].fill(NO_LOCATION);
        }
        self.launches = Launches::default();
        self.stores = 0;
    }

    pub(super) fn number(&self, access: &Access) -> u32 {
        self.blocks.first_thread(access.block) + access.thread
    }

    /// The array that the access lies in, and where.
    #[inline]
    pub(super) fn find_array(&mut self, access: &Access) -> Result<(usize, usize), String> {
        let bytes = access.bytes as usize;
        let recent = self.recent_array[access.kind as usize];
        let found = match self.arrays.get(recent) {
            Some(array) if array.contains(access.address, bytes) => Some(recent),
            _ => self.arrays.iter().position(|array| array.contains(access.address, bytes)),
        };
        match found {
            Some(at) if self.arrays[at].writable || !access.kind.is_store() => {
                self.recent_array[access.kind as usize] = at;
                Ok((at, access.address - self.arrays[at].address))
            }
            _ => {
                let arrays = self.arrays.iter().map(|array| (array.name.as_str(), array.address, array.bytes));
                Err(out_of_bounds(access, arrays))
            }
        }
    }

    /// A warp for each block, of which one lane is used.
    pub(super) fn copier(&self, block: u64) -> u32 {
        self.first_copier + 32 * block as u32
    }

    fn name_thread(&self, thread: u32) -> String {
        if thread >= self.first_copier {
            return format!("a copy of {}", self.launches.name(u64::from((thread - self.first_copier) / 32)));
        }
        let block = self.launches.name(u64::from(thread / self.blocks.threads));
        format!("{block} thread {}", thread % self.blocks.threads)
    }

    pub(super) fn name_site(&self, site: u32) -> String {
        let Site { line, kind, scope } = self.sites.all[site as usize];
        let scope = if scope == Scope::Block { " of block scope" } else { "" };
        let line = line.resolve().map_or_else(|| "an unknown line".to_owned(), |line| line.to_string());
        format!("{kind}{scope} at {line}")
    }

    pub(super) fn race(&self, place: &str, offset: usize, access: &Access, conflict: Conflict) -> String {
        self.race_of(self.number(access), place, offset, access, conflict)
    }

    #[cold]
    pub(super) fn race_of(
        &self,
        thread: u32,
        place: &str,
        offset: usize,
        access: &Access,
        conflict: Conflict,
    ) -> String {
        let scope = if access.scope == Scope::Block { " of block scope" } else { "" };
        let line = access.site().map_or_else(|| "an unknown line".to_owned(), |line| line.to_string());
        format!(
            "data race at byte {offset} of {place}: {}{scope} of {} bytes by {} at {line}, not ordered with {} by {}",
            access.kind,
            access.bytes,
            self.name_thread(thread),
            self.name_site(conflict.site),
            self.name_thread(conflict.thread),
        )
    }
}
