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
//!   with relaxed accesses behind and before them. An access of block scope synchronises with its own block
//!   only. What a thread knows grows along happens-before.
//! - **Plain accesses** (elements, spines, payloads, shared memory) find and leave their values in native
//!   memory. Two of them that touch one granule, one of them a store, must be ordered by happens-before;
//!   if they are not, the launch ends with an error that names both. The same holds for a plain access and
//!   one of the protocol, and for two of different blocks of which one has block scope.
//! - A **copy to shared memory** (`cuda/async_copy.cuh`) is a plain load and a plain store by nobody's thread: it
//!   happens after what the thread that asked for it did before, and before whatever waits for the phase of its
//!   barrier, as arrivals do. The copies of one block count as ordered among themselves.
//! - The **barrier of a cluster** takes what each arrival released to whoever waits for its phase; what a thread does
//!   between arrival and wait is not part of it. A store into another block's shared memory is a plain store there.
//! - Every access must lie inside an array of the launch or the block's own shared memory, and shared memory
//!   must be written before it is read.
//! - The end of a launch orders everything.
//!
//! Not modelled: loads that see stores which their threads make later (load buffering), sequentially
//! consistent fences, an acquire that follows a relaxed load of the same location in the same thread and
//! reads an older store than that did not, the proxies of PTX. Read-modify-writes read the newest store in
//! modification order. Whatever happens in this model may happen in PTX; the converse is not claimed.

mod history;
mod knowledge;
mod shadow;

use super::backend::{Access, AccessKind, AsyncStore, Copy, MemoryBackend, Scope, Synchronization};
use super::bounds::NEAR_BYTES;
use super::error::{Collective, RawSite, SourceSite};
use history::{Entry, Location, NO_LOCATION};
use knowledge::{Knowledge, Message, NOBODY, ThreadState, join_messages, meet_in_block, meet_in_warp};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use shadow::{Conflict, Observer, PlainFault, ReadLists, Shadow};
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
    /// Whether every access of the protocol is recorded ([`WeakMemory::take_events`]).
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
struct Site {
    line: RawSite,
    kind: AccessKind,
    scope: Scope,
}

/// Numbers for sites: shadows are small.
#[derive(Debug)]
struct Sites {
    all: Vec<Site>,
    /// The last site that had each hash.
    recent: Box<[(Site, u32); 256]>,
}

impl Sites {
    fn new() -> Self {
        let none = Site { line: RawSite::NONE, kind: AccessKind::Fence, scope: Scope::Gpu };
        Self { all: vec![none], recent: Box::new([(none, 0); 256]) }
    }

    #[inline]
    fn number(&mut self, access: &Access) -> u32 {
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
struct Array {
    name: String,
    address: usize,
    bytes: usize,
    writable: bool,
    shadow: Shadow,
    /// For every 4 bytes the location that they are part of; empty before the protocol's first access.
    locations: Vec<u32>,
}

impl Array {
    fn contains(&self, address: usize, bytes: usize) -> bool {
        self.address <= address
            && address - self.address <= self.bytes
            && bytes <= self.bytes - (address - self.address)
    }
}

/// Shared memory that a block declared.
#[derive(Debug, Default)]
struct Region {
    address: usize,
    bytes: usize,
    shadow: Shadow,
}

/// What the arrivals in the phases of a barrier of copies hand over.
#[derive(Debug)]
struct CopyBarrier {
    address: usize,
    /// In the current phase.
    arriving: Option<Message>,
    /// In the phase before.
    arrived: Option<Message>,
    /// What a thread knew before its last wait, and after: the lanes of a warp mostly know the same.
    joined: Option<(Rc<Knowledge>, Rc<Knowledge>)>,
}

/// What the arrivals in a phase of the barrier of a cluster hand over.
#[derive(Debug, Default)]
struct Released {
    knowledge: Option<Rc<Knowledge>>,
    /// What a thread knew before its last wait, and after: those of a block mostly know the same.
    joined: Option<(Rc<Knowledge>, Rc<Knowledge>)>,
}

/// A block that has started and not ended.
#[derive(Debug, Default)]
struct BlockState {
    threads: Vec<ThreadState>,
    copy_barriers: Vec<CopyBarrier>,
    /// Copies that have not landed: what whoever asked for each handed over, by the number of the copy.
    copies: Vec<(u64, Message)>,
    /// Copies that have landed.
    landed: u32,
    regions: Vec<Region>,
    /// Regions that this block declared; the others wait to be used again.
    declared: usize,
}

/// See the module. One back end serves any number of launches, one after the other; arrays stay.
#[derive(Debug)]
pub struct WeakMemory {
    settings: WeakSettings,
    stale_threshold: u32,
    reorder_threshold: u32,
    random: Pcg64Mcg,
    arrays: Vec<Array>,
    /// The array that each kind of access went to last.
    recent_array: [usize; AccessKind::ALL.len()],
    block_threads: u32,
    /// The copies of block b are made by a thread of its own, numbered behind those of the grid.
    first_copier: u32,
    blocks: Vec<Option<Box<BlockState>>>,
    #[expect(clippy::vec_box, reason = "a box moves between the two lists, its contents stay")]
    ended_blocks: Vec<Box<BlockState>>,
    locations: Vec<Location>,
    lists: ReadLists,
    sites: Sites,
    nothing: Rc<Knowledge>,
    stores: u32,
    /// The finest granule of shared memory so far: types that are small stay small.
    shared_granule_bytes: u32,
    /// What arrived at the barrier of the cluster and released, in this phase, and what those in the phase before did.
    cluster_arrivals: Vec<Message>,
    cluster_released: Released,
    statistics: WeakStatistics,
    events: Vec<(WeakEvent, u32)>,
}

/// Locations that an access covers, from its first byte to its last.
type Covered = ([u32; 4], usize);

/// What a load or a store met, for the record.
#[derive(Clone, Copy, Default)]
struct Met {
    store: u32,
    stale_by: u32,
    is_torn: bool,
}

fn threshold(probability: f64) -> u32 {
    (probability.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32
}

impl BlockState {
    fn copy_barrier(&mut self, address: usize) -> &mut CopyBarrier {
        let known = self.copy_barriers.iter().position(|barrier| barrier.address == address);
        let at = known.unwrap_or_else(|| {
            self.copy_barriers.push(CopyBarrier { address, arriving: None, arrived: None, joined: None });
            self.copy_barriers.len() - 1
        });
        &mut self.copy_barriers[at]
    }
}

impl CopyBarrier {
    fn arrive(&mut self, message: Message) {
        self.arriving = Some(match self.arriving.take() {
            None => message,
            Some(others) => others.joined(&message),
        });
    }
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
            block_threads: 32,
            first_copier: 0,
            blocks: Vec::new(),
            ended_blocks: Vec::new(),
            locations: Vec::new(),
            lists: ReadLists::new(),
            sites: Sites::new(),
            nothing: Rc::default(),
            stores: 0,
            shared_granule_bytes: 4,
            cluster_arrivals: Vec::new(),
            cluster_released: Released::default(),
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

    /// Everything from here on is drawn from `seed`.
    pub fn reseed(&mut self, seed: u64) {
        self.random = Pcg64Mcg::seed_from_u64(seed);
    }

    /// The end of a launch, whether it succeeded or not: native memory holds the newest value of every
    /// location, and nothing is known of anybody any more, because whatever comes is ordered behind.
    pub fn finish_launch(&mut self) {
        for location in self.locations.iter().filter(|location| !is_retired(location)) {
            write_native(&self.arrays[location.array as usize], location, location.newest().value);
        }
        self.forget();
    }

    /// How often memory was weak since this back end was made.
    pub fn statistics(&self) -> WeakStatistics {
        self.statistics
    }

    /// The accesses of the protocol so far, in order, if [`WeakSettings::record_events`] asked for them.
    pub fn take_events(&mut self) -> Vec<WeakEvent> {
        let name =
            |(event, site): (WeakEvent, u32)| WeakEvent { site: self.sites.all[site as usize].line.resolve(), ..event };
        std::mem::take(&mut self.events).into_iter().map(name).collect()
    }

    /// The name of an array of a [`WeakEvent`].
    pub fn array_name(&self, array: usize) -> &str {
        self.arrays.get(array).map_or("", |array| &array.name)
    }

    fn forget(&mut self) {
        for block in self.blocks.drain(..).flatten() {
            self.ended_blocks.push(block);
        }
        for array in &mut self.arrays {
            array.shadow.reset(&mut self.lists);
        }
        for location in self.locations.drain(..) {
            let granules = &mut self.arrays[location.array as usize].locations;
            let first = location.offset as usize / 4;
            granules[first..first + location.bytes as usize / 4].fill(NO_LOCATION);
        }
        for block in &mut self.ended_blocks {
            end_block(block, &mut self.lists);
        }
        self.cluster_arrivals.clear();
        self.cluster_released = Released::default();
        self.stores = 0;
    }

    fn first_thread(&self, block: u64) -> u32 {
        block as u32 * self.block_threads
    }

    fn number(&self, access: &Access) -> u32 {
        self.first_thread(access.block) + access.thread
    }

    /// The block's state, made where it begins.
    fn block(&mut self, block: u64) -> &mut BlockState {
        let at = block as usize;
        if self.blocks.len() <= at {
            self.blocks.resize_with(at + 1, || None);
        }
        self.blocks[at].get_or_insert_with(|| {
            let mut state = self.ended_blocks.pop().unwrap_or_default();
            state.threads.resize_with(self.block_threads as usize, || ThreadState::new(&self.nothing));
            for thread in &mut state.threads {
                thread.reset(&self.nothing);
            }
            state
        })
    }

    /// The array that the access lies in, and where.
    #[inline]
    fn find_array(&mut self, access: &Access) -> Result<(usize, usize), String> {
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
            _ => Err(self.out_of_bounds(access)),
        }
    }

    #[cold]
    fn out_of_bounds(&self, access: &Access) -> String {
        let mut message = format!("{} of {} bytes outside all arrays that it may touch", access.kind, access.bytes);
        let nearest = self.arrays.iter().min_by_key(|array| {
            access.address.abs_diff(array.address).min(access.address.abs_diff(array.address + array.bytes))
        });
        // Farther off it is no slip of an index, and which array is nearest changes from run to run.
        let nearest = nearest.filter(|array| access.address.abs_diff(array.address) <= array.bytes + NEAR_BYTES);
        if let Some(array) = nearest {
            let offset = access.address as i128 - array.address as i128;
            message += &format!(", at byte {offset} of {} ({} bytes)", array.name, array.bytes);
        }
        message
    }

    /// A warp for each block, of which one lane is used.
    fn copier(&self, block: u64) -> u32 {
        self.first_copier + 32 * block as u32
    }

    fn name_thread(&self, thread: u32) -> String {
        if thread >= self.first_copier {
            return format!("a copy of block {}", (thread - self.first_copier) / 32);
        }
        format!("block {} thread {}", thread / self.block_threads, thread % self.block_threads)
    }

    fn name_site(&self, site: u32) -> String {
        let Site { line, kind, scope } = self.sites.all[site as usize];
        let scope = if scope == Scope::Block { " of block scope" } else { "" };
        let line = line.resolve().map_or_else(|| "an unknown line".to_owned(), |line| line.to_string());
        format!("{kind}{scope} at {line}")
    }

    fn race(&self, place: &str, offset: usize, access: &Access, conflict: Conflict) -> String {
        self.race_of(self.number(access), place, offset, access, conflict)
    }

    #[cold]
    fn race_of(&self, thread: u32, place: &str, offset: usize, access: &Access, conflict: Conflict) -> String {
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

    fn shared_access(&mut self, access: &Access) -> Result<(), String> {
        let me = self.number(access);
        let site = self.sites.number(access);
        let bytes = access.bytes as usize;
        let state = &self.block(access.block).threads[access.thread as usize];
        let (time, knowledge) = (state.time, Rc::clone(&state.knowledge));
        let Some(Some(block)) = self.blocks.get_mut(access.block as usize) else { unreachable!("made above") };
        let BlockState { regions, declared, .. } = &mut **block;
        let contains = |region: &&mut Region| {
            region.address <= access.address && access.address + bytes <= region.address + region.bytes
        };
        let Some(region) = regions[..*declared].iter_mut().find(contains) else {
            return Err(format!(
                "{} of {bytes} bytes outside the shared memory that the block has declared",
                access.kind
            ));
        };
        let offset = access.address - region.address;
        region.shadow.fit(offset, bytes, &mut self.lists);
        self.shared_granule_bytes = region.shadow.granule_bytes().min(self.shared_granule_bytes);
        let observer = Observer { thread: me, time, knowledge: &knowledge };
        let result = if access.kind.is_store() {
            region.shadow.store(offset, bytes, observer, site, &mut self.lists)
        } else {
            region.shadow.load(offset, bytes, observer, site, true, &mut self.lists)
        };
        result.map_err(|fault| match fault {
            PlainFault::Race(conflict) => self.race("shared memory", offset, access, conflict),
            PlainFault::Unwritten => {
                format!("{} of {bytes} bytes at byte {offset} of shared memory, which nobody has written", access.kind)
            }
        })
    }

    /// A plain access to an array: whether it is ordered with all others.
    fn plain_access(&mut self, access: &Access) -> Result<(), String> {
        if matches!(access.kind, AccessKind::SharedLoad | AccessKind::SharedStore) {
            return self.shared_access(access);
        }
        let (at, offset) = self.find_array(access)?;
        let me = self.number(access);
        let site = self.sites.number(access);
        let bytes = access.bytes as usize;
        self.block(access.block);
        let Some(Some(block)) = self.blocks.get_mut(access.block as usize) else { unreachable!("made above") };
        let state = &block.threads[access.thread as usize];
        let observer = Observer { thread: me, time: state.time, knowledge: &state.knowledge };
        let array = &mut self.arrays[at];
        array.shadow.fit(offset, bytes, &mut self.lists);
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
        Ok(())
    }

    /// A plain access to what the protocol accesses too must be ordered with that.
    fn check_against_protocol(&mut self, access: &Access, at: usize, offset: usize) -> Result<(), String> {
        let me = self.number(access);
        let state = &self.block(access.block).threads[access.thread as usize];
        let (time, knowledge) = (state.time, Rc::clone(&state.knowledge));
        let observer = Observer { thread: me, time, knowledge: &knowledge };
        let granules = offset / 4..(offset + access.bytes as usize).div_ceil(4);
        let is_store = access.kind.is_store();
        for granule in granules {
            let number = self.arrays[at].locations[granule];
            if number == NO_LOCATION {
                continue;
            }
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
    fn overwrite_locations(&mut self, access: &Access) -> Result<(), String> {
        let (at, offset) = self.find_array(access)?;
        if self.arrays[at].locations.is_empty() {
            return Ok(());
        }
        let me = self.number(access);
        let site = self.sites.number(access);
        let granules = offset / 4..(offset + access.bytes as usize).div_ceil(4);
        for granule in granules {
            let number = self.arrays[at].locations[granule];
            if number == NO_LOCATION {
                continue;
            }
            let time = self.block(access.block).threads[access.thread as usize].time;
            let location = &mut self.locations[number as usize];
            let timestamp = location.next_timestamp().ok_or("too many stores to one location in one launch")?;
            let value = read_native(&self.arrays[at], location);
            location.entries.push(Entry {
                timestamp,
                store: 0,
                thread: me,
                time,
                site,
                scope: Scope::Gpu,
                is_update: false,
                is_release: false,
                value,
                message: None,
            });
            let state = &mut self.block(access.block).threads[access.thread as usize];
            Rc::make_mut(&mut state.knowledge).see(number, timestamp);
        }
        Ok(())
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
        let mut location = Location::new(at as u32, offset as u32, bytes as u32, 0);
        location.entries[0].value = read_native(&self.arrays[at], &location);
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
        let first_thread = self.first_thread(access.block);
        let own_block = first_thread..first_thread + self.block_threads;
        self.block(access.block);
        let Some(Some(block)) = self.blocks.get(access.block as usize) else { unreachable!("made above") };
        let state = &block.threads[access.thread as usize];
        let observer = Observer { thread: me, time: state.time, knowledge: &state.knowledge };
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
            let block = self.blocks[access.block as usize].as_ref();
            let Some(state) = block.map(|block| &block.threads[access.thread as usize]) else { continue };
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
        let [first_thread, block_threads] = [self.first_thread(access.block), self.block_threads];
        let Some(Some(block)) = self.blocks.get_mut(access.block as usize) else { unreachable!("made before") };
        let state = &mut block.threads[access.thread as usize];
        let time = state.time;
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
            let is_own_block = entry.thread.wrapping_sub(first_thread) < block_threads;
            let reaches = is_own_block || entry.scope == Scope::Gpu && access.scope == Scope::Gpu;
            if let Some(message) = entry.message.as_ref().filter(|_| reaches) {
                if access.kind == AccessKind::AcquireLoad {
                    state.acquire(me, message);
                } else {
                    state.acquire_at_fence(me, message);
                }
            }
            let observer = Observer { thread: me, time, knowledge: &state.knowledge };
            observer.add_to(&mut location.reads, site);
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

    /// One scalar store of the protocol. `message` is what a release hands over, `store` the store's number.
    fn store_scalar(
        &mut self,
        access: &Access,
        at: usize,
        offset: usize,
        value: &[u8],
        message: Option<&Message>,
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
            let state =
                &self.blocks[access.block as usize].as_ref().ok_or("no such block")?.threads[access.thread as usize];
            // A release hands itself over too.
            let time = message.map_or(state.time, |message| message.time);
            let fence = state.fence.clone();
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
            let location = &mut self.locations[number as usize];
            let timestamp = timestamp
                .or_else(|| location.next_timestamp())
                .ok_or("too many stores to one location in one launch")?;
            // A store that is no release carries on what the thread released before: at a fence, or to this
            // very location. The later one says more.
            let carried = || match (fence, location.own_release(me)) {
                (Some(fence), Some(own)) if own.time > fence.time => Some(own.clone()),
                (Some(fence), _) => Some(fence),
                (None, own) => own.cloned(),
            };
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
                is_release: message.is_some(),
                value: u128::from_le_bytes(word),
                message: message.cloned().or_else(carried),
            };
            if position == end {
                write_native(&self.arrays[at], location, entry.value);
            }
            location.entries.insert(position, entry);
            location.has_block_scope |= access.scope == Scope::Block;
            let state = &mut self.block(access.block).threads[access.thread as usize];
            Rc::make_mut(&mut state.knowledge).see(number, timestamp);
        }
        Ok(met)
    }

    /// The number of a store: even, so that the second half of a vector store has the odd one behind it.
    fn next_store(&mut self) -> u32 {
        self.stores += 2;
        self.stores
    }

    fn record(&mut self, access: &Access, at: usize, offset: usize, value: &[u8], met: Met) {
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

fn is_retired(location: &Location) -> bool {
    location.entries.is_empty()
}

/// Makes a state ready for another block.
fn end_block(block: &mut BlockState, lists: &mut ReadLists) {
    for region in &mut block.regions[..block.declared] {
        region.shadow.reset(lists);
    }
    block.declared = 0;
    block.copy_barriers.clear();
    block.copies.clear();
    block.landed = 0;
}

/// What native memory holds at a location.
fn read_native(array: &Array, location: &Location) -> u128 {
    let mut word = [0; 16];
    // SAFETY: the location lies inside the array, which whoever added it keeps where it is while launches
    // run; they run on one OS thread, and no Rust reference into the arrays is alive meanwhile.
    unsafe {
        let from = (array.address + location.offset as usize) as *const u8;
        std::ptr::copy_nonoverlapping(from, word.as_mut_ptr(), location.bytes as usize);
    }
    u128::from_le_bytes(word)
}

/// Lets native memory hold `value` at a location.
fn write_native(array: &Array, location: &Location, value: u128) {
    if !array.writable {
        return;
    }
    // SAFETY: as in `read_native`; the array is writable.
    unsafe {
        let to = (array.address + location.offset as usize) as *mut u8;
        std::ptr::copy_nonoverlapping(value.to_le_bytes().as_ptr(), to, location.bytes as usize);
    }
}

impl MemoryBackend for WeakMemory {
    fn launch_begins(&mut self, grid_blocks: u64, block_threads: u32) -> Result<(), String> {
        self.forget();
        for block in &mut self.ended_blocks {
            block.threads.truncate(block_threads as usize);
        }
        self.block_threads = block_threads;
        let threads = grid_blocks.checked_mul(u64::from(block_threads) + 32);
        self.first_copier = (grid_blocks as u32).wrapping_mul(block_threads);
        if threads.is_none_or(|threads| threads >= u64::from(u32::MAX)) {
            return Err(format!("weak memory takes up to 2^32 threads, not {grid_blocks} blocks of {block_threads}"));
        }
        Ok(())
    }

    fn load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String> {
        if !matches!(access.kind, AccessKind::RelaxedLoad | AccessKind::AcquireLoad) {
            self.plain_access(access)?;
            // SAFETY: the access lies inside an array of the launch or shared memory of the block; launches run
            // on one OS thread, and no Rust reference into either is alive meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(access.address as *const u8, value.as_mut_ptr(), value.len()) };
            if self.settings.record_events && access.kind == AccessKind::PayloadLoad {
                let (at, offset) = self.find_array(access)?;
                self.record(access, at, offset, value, Met::default());
            }
            return Ok(());
        }
        let (at, offset) = self.find_array(access)?;
        self.block(access.block);
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

    fn store(&mut self, access: &Access, value: &[u8]) -> Result<(), String> {
        if !matches!(access.kind, AccessKind::RelaxedStore | AccessKind::ReleaseStore) {
            self.plain_access(access)?;
            // SAFETY: as in `load`; the array is writable.
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), access.address as *mut u8, value.len()) };
            if access.kind != AccessKind::SharedStore {
                self.overwrite_locations(access)?;
            }
            if self.settings.record_events && access.kind == AccessKind::PayloadStore {
                let (at, offset) = self.find_array(access)?;
                self.record(access, at, offset, value, Met::default());
            }
            return Ok(());
        }
        let (at, offset) = self.find_array(access)?;
        let me = self.number(access);
        let state = &mut self.block(access.block).threads[access.thread as usize];
        let message = (access.kind == AccessKind::ReleaseStore).then(|| state.release(me));
        let store = self.next_store();
        let met = if access.is_vector {
            let half = value.len() / 2;
            let (low, high) = value.split_at(half);
            let low = self.store_scalar(access, at, offset, low, message.as_ref(), store)?;
            let high = self.store_scalar(access, at, offset + half, high, message.as_ref(), store + 1)?;
            Met { stale_by: low.stale_by.max(high.stale_by), ..low }
        } else {
            self.store_scalar(access, at, offset, value, message.as_ref(), store)?
        };
        self.record(access, at, offset, value, met);
        Ok(())
    }

    fn fetch_add(&mut self, access: &Access, value: u32) -> Result<u32, String> {
        let (at, offset) = self.find_array(access)?;
        let covered = self.locate(at, offset, 4)?;
        let number = covered.0[0];
        self.check_protocol(access, at, offset..offset + 4, covered)?;
        let me = self.number(access);
        let site = self.sites.number(access);
        let is_ordered = access.kind == AccessKind::AcquireReleaseFetchAdd;
        let [first_thread, block_threads] = [self.first_thread(access.block), self.block_threads];
        let store = self.next_store();
        let Some(Some(block)) = self.blocks.get_mut(access.block as usize) else { unreachable!("made before") };
        let state = &mut block.threads[access.thread as usize];
        let location = &mut self.locations[number as usize];

        let newest = location.newest();
        let before = newest.value as u32;
        let is_own_block = newest.thread.wrapping_sub(first_thread) < block_threads;
        let reaches = is_own_block || newest.scope == Scope::Gpu && access.scope == Scope::Gpu;
        // The release sequence goes on through this read-modify-write, whatever its own order.
        let sequence = newest.message.clone().filter(|_| reaches);
        if let Some(message) = &sequence {
            if is_ordered {
                state.acquire(me, message);
            } else {
                state.acquire_at_fence(me, message);
            }
        }
        let time = state.time;
        let released = if is_ordered { Some(state.release(me)) } else { state.fence.clone() };
        let message = match (released, sequence) {
            (Some(released), Some(sequence)) if !is_ordered => Some(released.joined(&sequence)),
            (released, sequence) => released.or(sequence),
        };
        let timestamp = location.next_timestamp().ok_or("too many stores to one location in one launch")?;
        let after = before.wrapping_add(value);
        location.entries.push(Entry {
            timestamp,
            store,
            thread: me,
            time,
            site,
            scope: access.scope,
            is_update: true,
            is_release: is_ordered,
            value: u128::from(after),
            message,
        });
        location.has_block_scope |= access.scope == Scope::Block;
        write_native(&self.arrays[at], location, u128::from(after));
        Rc::make_mut(&mut state.knowledge).see(number, timestamp);
        self.record(access, at, offset, &before.to_le_bytes(), Met::default());
        Ok(before)
    }

    fn fence(&mut self, access: &Access) -> Result<(), String> {
        let me = self.number(access);
        self.block(access.block).threads[access.thread as usize].fence(me);
        self.record(access, 0, 0, &[], Met::default());
        Ok(())
    }

    fn copy_begins(&mut self, copy: &Copy) -> Result<(), String> {
        let me = self.number(&copy.source);
        let block = self.block(copy.source.block);
        let message = block.threads[copy.source.thread as usize].release(me);
        block.copies.push((copy.number, message));
        Ok(())
    }

    fn copy_lands(&mut self, copy: &Copy) -> Result<(), String> {
        let Copy { number, source, target, barrier } = copy;
        let (at, from) = self.find_array(source)?;
        let [read, written] = [self.sites.number(source), self.sites.number(target)];
        let me = self.copier(source.block);
        self.block(source.block);
        let Some(Some(block)) = self.blocks.get_mut(source.block as usize) else { unreachable!("made above") };
        let asked = block.copies.iter().position(|(asked, _)| asked == number).ok_or("nobody asked for this copy")?;
        let (_, message) = block.copies.swap_remove(asked);
        let mut knowledge = Knowledge::clone(&message.knowledge);
        knowledge.learn_thread(message.thread, message.time);
        block.landed += 1;
        let time = block.landed;
        let observer = Observer { thread: me, time, knowledge: &knowledge };
        let bytes = source.bytes as usize;

        // Elements: no protocol is beside them.
        let array = &mut self.arrays[at];
        array.shadow.fit(from, bytes, &mut self.lists);
        let loaded = array.shadow.load(from, bytes, observer, read, false, &mut self.lists);
        if let Err(PlainFault::Race(conflict)) = loaded {
            return Err(self.race_of(me, &self.arrays[at].name, from, source, conflict));
        }
        let contains = |region: &&mut Region| {
            region.address <= target.address && target.address + bytes <= region.address + region.bytes
        };
        let Some(region) = block.regions[..block.declared].iter_mut().find(contains) else {
            return Err(format!("a copy of {bytes} bytes outside the shared memory that the block has declared"));
        };
        let to = target.address - region.address;
        region.shadow.fit(to, bytes, &mut self.lists);
        self.shared_granule_bytes = region.shadow.granule_bytes().min(self.shared_granule_bytes);
        if let Err(PlainFault::Race(conflict)) = region.shadow.store(to, bytes, observer, written, &mut self.lists) {
            return Err(self.race_of(me, "shared memory", to, target, conflict));
        }
        let landed = Message { knowledge: Rc::new(knowledge), thread: me, time };
        block.copy_barrier(*barrier).arrive(landed);
        // SAFETY: both ranges lie inside an array of the launch and shared memory of the block; launches run on one
        // OS thread, and no Rust reference into either is alive meanwhile.
        unsafe { std::ptr::copy(source.address as *const u8, target.address as *mut u8, bytes) };
        Ok(())
    }

    fn store_begins(&mut self, store: &AsyncStore) -> Result<(), String> {
        let me = self.number(&store.access);
        let message = self.block(store.access.block).threads[store.access.thread as usize].release(me);
        self.block(store.block).copies.push((store.number, message));
        Ok(())
    }

    fn store_lands(&mut self, store: &AsyncStore) -> Result<(), String> {
        let AsyncStore { number, access, block: owner, barrier, .. } = store;
        let site = self.sites.number(access);
        let me = self.copier(*owner);
        let (to, bytes) = (access.address, access.bytes as usize);
        self.block(*owner);
        let Some(Some(block)) = self.blocks.get_mut(*owner as usize) else { unreachable!("made above") };
        let asked = block.copies.iter().position(|(asked, _)| asked == number).ok_or("nobody made this store")?;
        let (_, message) = block.copies.swap_remove(asked);
        // It comes behind what the thread that made it knew then, and hands over nothing but itself.
        let mut knowledge = Knowledge::clone(&message.knowledge);
        knowledge.learn_thread(message.thread, message.time);
        block.landed += 1;
        let time = block.landed;
        let contains = |region: &&mut Region| region.address <= to && to + bytes <= region.address + region.bytes;
        let Some(region) = block.regions[..block.declared].iter_mut().find(contains) else {
            return Err(format!("a store of {bytes} bytes outside the shared memory that the block has declared"));
        };
        let offset = to - region.address;
        region.shadow.fit(offset, bytes, &mut self.lists);
        self.shared_granule_bytes = region.shadow.granule_bytes().min(self.shared_granule_bytes);
        let observer = Observer { thread: me, time, knowledge: &knowledge };
        if let Err(PlainFault::Race(conflict)) = region.shadow.store(offset, bytes, observer, site, &mut self.lists) {
            return Err(self.race_of(me, "shared memory", offset, access, conflict));
        }
        block.copy_barrier(*barrier).arrive(Message { knowledge: Rc::clone(&self.nothing), thread: me, time });
        // SAFETY: shared memory of a block that has not ended; launches run on one OS thread, and no Rust reference
        // into it is alive meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(store.value.as_ptr(), to as *mut u8, bytes) };
        Ok(())
    }

    fn synchronize(&mut self, event: Synchronization) -> Result<(), String> {
        match event {
            Synchronization::BlockBarrier { block } => {
                let first_thread = self.first_thread(block);
                meet_in_block(&mut self.block(block).threads, first_thread);
            }
            Synchronization::Warp { block, warp, mask, collective: Collective::WarpBarrier } => {
                let first_thread = self.first_thread(block) + warp * 32;
                let threads = &mut self.block(block).threads[warp as usize * 32..][..32];
                meet_in_warp(threads, first_thread, mask);
            }
            Synchronization::Warp { .. } => {}
            Synchronization::SharedStorage { block, address, bytes } => {
                let granule_bytes = self.shared_granule_bytes;
                let state = self.block(block);
                if state.regions.len() == state.declared {
                    state.regions.push(Region::default());
                }
                let region = &mut state.regions[state.declared];
                state.declared += 1;
                region.address = address;
                region.bytes = bytes as usize;
                region.shadow.prepare(bytes as usize, granule_bytes);
            }
            Synchronization::CopyBarrierArrival { block, thread, barrier } => {
                let me = self.first_thread(block) + thread;
                let state = self.block(block);
                let message = state.threads[thread as usize].release(me);
                state.copy_barrier(barrier).arrive(message);
            }
            Synchronization::CopyBarrierPhase { block, barrier } => {
                let barrier = self.block(block).copy_barrier(barrier);
                barrier.arrived = barrier.arriving.take();
                barrier.joined = None;
            }
            Synchronization::CopyBarrierWait { block, thread, barrier } => {
                let me = self.first_thread(block) + thread;
                let state = self.block(block);
                let at = state.copy_barriers.iter().position(|known| known.address == barrier);
                let Some(barrier) = at.map(|at| &mut state.copy_barriers[at]) else { return Ok(()) };
                let Some(message) = &barrier.arrived else { return Ok(()) };
                let waiting = &mut state.threads[thread as usize];
                match &barrier.joined {
                    Some((before, after)) if Rc::ptr_eq(before, &waiting.knowledge) => {
                        waiting.knowledge = Rc::clone(after);
                    }
                    _ => {
                        let before = Rc::clone(&waiting.knowledge);
                        waiting.acquire(me, message);
                        // Who arrived alone has learnt nothing, and the others will.
                        let is_own = message.thread == me;
                        barrier.joined = (!is_own).then(|| (before, Rc::clone(&waiting.knowledge)));
                    }
                }
            }
            Synchronization::ClusterArrival { block, thread, is_release } => {
                let me = self.first_thread(block) + thread;
                if is_release {
                    let message = self.block(block).threads[thread as usize].release(me);
                    self.cluster_arrivals.push(message);
                }
            }
            Synchronization::ClusterPhase => {
                let arrivals = std::mem::take(&mut self.cluster_arrivals);
                self.cluster_released = Released { knowledge: Some(Rc::new(join_messages(arrivals))), joined: None };
            }
            Synchronization::ClusterWait { block, thread } => {
                let me = self.first_thread(block) + thread;
                let Some(released) = self.cluster_released.knowledge.clone() else { return Ok(()) };
                let joined = self.cluster_released.joined.take();
                let waiting = &mut self.block(block).threads[thread as usize];
                let before = Rc::clone(&waiting.knowledge);
                match joined {
                    Some((known, after)) if Rc::ptr_eq(&known, &before) => waiting.knowledge = after,
                    _ => waiting.acquire(me, &Message { knowledge: released, thread: NOBODY, time: 0 }),
                }
                self.cluster_released.joined =
                    Some((before, Rc::clone(&self.block(block).threads[thread as usize].knowledge)));
            }
            Synchronization::BlockEnd { block } => {
                if let Some(mut state) = self.blocks.get_mut(block as usize).and_then(Option::take) {
                    end_block(&mut state, &mut self.lists);
                    self.ended_blocks.push(state);
                }
            }
        }
        Ok(())
    }
}
