//! Who touched memory last: for every granule of an array the last plain store and the plain loads since,
//! as in FastTrack (Flanagan & Freund, PLDI 2009). Two accesses of one granule, one of them a store, must
//! be ordered by happens-before. An atomic addition is remembered beside the loads: it must be ordered with plain accesses, and
//! not with other additions.

use super::knowledge::{Knowledge, NOBODY, ThreadState};

/// An access that somebody else's is checked against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conflict {
    pub thread: u32,
    /// Its line and kind, by number.
    pub site: u32,
}

/// Whoever makes an access now.
#[derive(Clone, Copy)]
pub(super) struct Observer<'a> {
    pub thread: u32,
    pub time: u32,
    pub knowledge: &'a Knowledge,
}

impl<'a> Observer<'a> {
    pub fn of(thread: u32, state: &'a ThreadState) -> Self {
        Self { thread, time: state.time, knowledge: &state.knowledge }
    }

    #[inline]
    pub fn knows(&self, thread: u32, time: u32) -> bool {
        thread == self.thread || thread == NOBODY || self.knowledge.covers(thread, time)
    }

    fn lane_bit(&self) -> u32 {
        1 << (self.thread % 32)
    }

    /// Additions of which this thread knows nothing, or loads.
    fn find_unknown_of(&self, is_add: bool, reads: &[Reads]) -> Option<Conflict> {
        let mut unknown = reads.iter().filter(|reads| reads.is_add == is_add);
        unknown.find_map(|&reads| self.unknown_lane(reads).map(|thread| Conflict { thread, site: reads.site }))
    }

    /// A lane of `reads` that this thread knows nothing of.
    #[inline]
    fn unknown_lane(&self, reads: Reads) -> Option<u32> {
        let is_own = reads.warp == self.thread / 32;
        let others = reads.lanes & !if is_own { self.lane_bit() } else { 0 };
        if others == 0 || self.knowledge.covers_warp(reads.warp, reads.time) {
            return None;
        }
        let lanes = (0..32).filter(|lane| others >> lane & 1 != 0);
        lanes.map(|lane| reads.warp * 32 + lane).find(|&thread| !self.knowledge.covers(thread, reads.time))
    }

    pub fn find_unknown(&self, reads: &[Reads]) -> Option<Conflict> {
        reads.iter().find_map(|&reads| self.unknown_lane(reads).map(|thread| Conflict { thread, site: reads.site }))
    }

    fn reads(&self, site: u32, is_add: bool) -> Reads {
        Reads { warp: self.thread / 32, time: self.time, lanes: self.lane_bit(), site, is_add }
    }

    /// Adds a load of this thread to `list`; its earlier ones need not be remembered.
    pub fn add_to(&self, list: &mut Vec<Reads>, site: u32) {
        self.put_into(list, self.reads(site, false));
    }

    /// The same of a load or an addition: what it is not is remembered beside it.
    fn put_into(&self, list: &mut Vec<Reads>, new: Reads) {
        let mut is_there = false;
        let mut at = 0;
        while at < list.len() {
            let reads = &mut list[at];
            if reads.warp == new.warp {
                if reads.time == new.time && reads.site == new.site {
                    reads.lanes |= new.lanes;
                    is_there = true;
                } else if reads.is_add == new.is_add {
                    reads.lanes &= !new.lanes;
                    if reads.lanes == 0 {
                        list.swap_remove(at);
                        continue;
                    }
                }
            }
            at += 1;
        }
        if !is_there {
            list.push(new);
        }
    }
}

/// Loads of lanes of one warp, at one time of each and one line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reads {
    warp: u32,
    time: u32,
    /// One bit each; none, if nobody has read.
    lanes: u32,
    pub site: u32,
    /// Whether they are additions.
    is_add: bool,
}

impl Reads {
    const NONE: Self = Self { warp: 0, time: 0, lanes: 0, site: 0, is_add: false };

    /// The lowest lane.
    pub fn thread(&self) -> u32 {
        self.warp * 32 + self.lanes.trailing_zeros()
    }
}

/// What is remembered of a granule.
#[derive(Debug, Clone, Copy)]
struct Cell {
    writer: u32,
    written: u32,
    write_site: u32,
    /// The loads since, or the first ones: `list` names the others.
    reads: Reads,
    /// Position in [`ReadLists`]; 0 for none.
    list: u32,
}

impl Cell {
    const UNTOUCHED: Self = Self { writer: NOBODY, written: 0, write_site: 0, reads: Reads::NONE, list: 0 };

    /// The loads and additions since the last store.
    #[inline]
    fn remembered<'a>(&'a self, lists: &'a ReadLists) -> &'a [Reads] {
        if self.list != 0 { lists.lists[self.list as usize].as_slice() } else { std::slice::from_ref(&self.reads) }
    }

    #[inline]
    fn remember(&mut self, me: Observer<'_>, new: Reads, lists: &mut ReadLists) {
        let old = self.reads;
        if self.list != 0 {
            me.put_into(&mut lists.lists[self.list as usize], new);
        } else if old.lanes == 0 {
            self.reads = new;
        } else if old.warp == new.warp && old.time == new.time && old.site == new.site {
            self.reads.lanes |= new.lanes;
        } else if old.is_add == new.is_add && me.unknown_lane(old).is_none() {
            // Those happen before this one, so whatever happens after it happens after them too.
            self.reads = new;
        } else {
            self.list = lists.allocate();
            let list = &mut lists.lists[self.list as usize];
            list.push(old);
            me.put_into(list, new);
        }
    }
}

/// Loads of granules that more than one warp reads. Number 0 stays empty.
#[derive(Debug)]
pub(super) struct ReadLists {
    lists: Vec<Vec<Reads>>,
    unused: Vec<u32>,
}

impl ReadLists {
    pub fn new() -> Self {
        Self { lists: vec![Vec::new()], unused: Vec::new() }
    }

    fn allocate(&mut self) -> u32 {
        self.unused.pop().unwrap_or_else(|| {
            self.lists.push(Vec::new());
            self.lists.len() as u32 - 1
        })
    }

    fn free(&mut self, number: u32) {
        self.lists[number as usize].clear();
        self.unused.push(number);
    }
}

/// What goes wrong with a plain access.
pub(super) enum PlainFault {
    Race(Conflict),
    /// A load of what nobody wrote.
    Unwritten,
}

/// What is remembered of an array.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    cells: Vec<Cell>,
    /// Bytes of a granule, as a power of two.
    granule_log2: u32,
    /// One bit for every `PAGE` cells: set where they are not all untouched.
    touched: Vec<u64>,
    /// Whether anything was added atomically.
    has_adds: bool,
}

/// Cells that are cleared together.
const PAGE: usize = 64;

impl Shadow {
    pub fn new(bytes: usize, granule_bytes: u32) -> Self {
        let mut shadow = Self::default();
        shadow.prepare(bytes, granule_bytes);
        shadow
    }

    /// For memory of this size. Nothing may have been touched since the last `reset`.
    pub fn prepare(&mut self, bytes: usize, granule_bytes: u32) {
        self.granule_log2 = granule_bytes.trailing_zeros();
        let cells = bytes.div_ceil(1 << self.granule_log2);
        if self.cells.len() < cells {
            self.cells.resize(cells, Cell::UNTOUCHED);
            self.touched.resize(cells.div_ceil(PAGE * 64), 0);
        }
    }

    /// Forgets all accesses.
    pub fn reset(&mut self, lists: &mut ReadLists) {
        self.has_adds = false;
        for (word, touched) in self.touched.iter_mut().enumerate() {
            while *touched != 0 {
                let first = (word * 64 + touched.trailing_zeros() as usize) * PAGE;
                *touched &= *touched - 1;
                let end = (first + PAGE).min(self.cells.len());
                for cell in &mut self.cells[first..end] {
                    if cell.list != 0 {
                        lists.free(cell.list);
                    }
                    *cell = Cell::UNTOUCHED;
                }
            }
        }
    }

    pub fn granule_bytes(&self) -> u32 {
        1 << self.granule_log2
    }

    /// Makes granules so small that the access covers whole ones.
    #[inline]
    fn fit(&mut self, offset: usize, bytes: usize, lists: &mut ReadLists) {
        if (offset | bytes) & ((1 << self.granule_log2) - 1) != 0 {
            self.refine(offset, bytes, lists);
        }
    }

    #[cold]
    fn refine(&mut self, offset: usize, bytes: usize, lists: &mut ReadLists) {
        let granule_log2 = (offset | bytes).trailing_zeros();
        let parts = 1 << (self.granule_log2 - granule_log2);
        let mut finer = Self::default();
        finer.prepare(self.cells.len() << self.granule_log2, 1 << granule_log2);
        finer.has_adds = self.has_adds;
        for (at, cell) in self.cells.iter().enumerate() {
            for part in 0..parts {
                let mut copy = *cell;
                if cell.list != 0 && part != 0 {
                    copy.list = lists.allocate();
                    lists.lists[copy.list as usize] = lists.lists[cell.list as usize].clone();
                }
                finer.cells[at * parts + part] = copy;
            }
        }
        // Whatever was touched is somewhere in there.
        finer.touched.fill(u64::MAX);
        let pages = finer.cells.len().div_ceil(PAGE);
        if let Some(last) = finer.touched.last_mut().filter(|_| pages % 64 != 0) {
            *last = (1 << (pages % 64)) - 1;
        }
        *self = finer;
    }

    fn range(&self, offset: usize, bytes: usize) -> std::ops::Range<usize> {
        offset >> self.granule_log2..(offset + bytes).div_ceil(1 << self.granule_log2)
    }

    #[inline]
    fn touch(&mut self, range: &std::ops::Range<usize>) {
        for page in range.start / PAGE..=(range.end - 1) / PAGE {
            self.touched[page / 64] |= 1 << (page % 64);
        }
    }

    /// A plain load; `bytes` is not 0.
    #[inline]
    pub fn load(
        &mut self,
        offset: usize,
        bytes: usize,
        me: Observer<'_>,
        site: u32,
        must_be_written: bool,
        lists: &mut ReadLists,
    ) -> Result<(), PlainFault> {
        self.fit(offset, bytes, lists);
        let range = self.range(offset, bytes);
        self.touch(&range);
        for cell in &mut self.cells[range] {
            if cell.writer != me.thread {
                if cell.writer == NOBODY {
                    if must_be_written {
                        return Err(PlainFault::Unwritten);
                    }
                } else if !me.knowledge.covers(cell.writer, cell.written) {
                    return Err(PlainFault::Race(Conflict { thread: cell.writer, site: cell.write_site }));
                }
            }
            if self.has_adds
                && let Some(conflict) = me.find_unknown_of(true, cell.remembered(lists))
            {
                return Err(PlainFault::Race(conflict));
            }
            cell.remember(me, me.reads(site, false), lists);
        }
        Ok(())
    }

    /// An atomic addition to what somebody has written; `bytes` is not 0.
    pub fn add(
        &mut self,
        offset: usize,
        bytes: usize,
        me: Observer<'_>,
        site: u32,
        lists: &mut ReadLists,
    ) -> Result<(), PlainFault> {
        self.fit(offset, bytes, lists);
        self.has_adds = true;
        let range = self.range(offset, bytes);
        self.touch(&range);
        for cell in &mut self.cells[range] {
            if cell.writer == NOBODY {
                return Err(PlainFault::Unwritten);
            }
            check_cell(cell, me, false, lists).map_err(PlainFault::Race)?;
            if let Some(conflict) = me.find_unknown_of(false, cell.remembered(lists)) {
                return Err(PlainFault::Race(conflict));
            }
            cell.remember(me, me.reads(site, true), lists);
        }
        Ok(())
    }

    /// A plain store; `bytes` is not 0.
    #[inline]
    pub fn store(
        &mut self,
        offset: usize,
        bytes: usize,
        me: Observer<'_>,
        site: u32,
        lists: &mut ReadLists,
    ) -> Result<(), PlainFault> {
        self.fit(offset, bytes, lists);
        let range = self.range(offset, bytes);
        self.touch(&range);
        for cell in &mut self.cells[range] {
            check_cell(cell, me, true, lists).map_err(PlainFault::Race)?;
            if cell.list != 0 {
                lists.free(cell.list);
            }
            *cell = Cell { writer: me.thread, written: me.time, write_site: site, ..Cell::UNTOUCHED };
        }
        Ok(())
    }

    /// Whether an access of the protocol conflicts with a plain one; remembers nothing.
    pub fn check(
        &self,
        offset: usize,
        bytes: usize,
        me: Observer<'_>,
        is_store: bool,
        lists: &ReadLists,
    ) -> Result<(), Conflict> {
        self.cells[self.range(offset, bytes)].iter().try_for_each(|cell| check_cell(cell, me, is_store, lists))
    }
}

#[inline]
fn check_cell(cell: &Cell, me: Observer<'_>, is_store: bool, lists: &ReadLists) -> Result<(), Conflict> {
    if !me.knows(cell.writer, cell.written) {
        return Err(Conflict { thread: cell.writer, site: cell.write_site });
    }
    if !is_store {
        return Ok(());
    }
    me.find_unknown(cell.remembered(lists)).map_or(Ok(()), Err)
}
