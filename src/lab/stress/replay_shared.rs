//! Accesses to shared memory in a replay. There are hundreds a tile, most of them alike, so what the lanes of a warp do
//! at one line of source is one line of text, as long as nobody could tell their order.

use crate::abi::LOOKBACK_WARP_LANES as WARP_LANES;
use crate::cpu::{Access, AccessKind, Synchronization};
use std::collections::{BTreeSet, HashMap};

/// Columns that a line may have; what is longer goes on in another one.
const COLUMNS: usize = 80;

/// What a replay tells.
#[derive(Debug)]
pub(super) enum Told {
    /// An access of the protocol.
    Protocol(String),
    /// Accesses to shared memory.
    Shared(Fold),
    /// What else is told of shared memory.
    Event(String),
}

impl Told {
    pub fn is_protocol(&self) -> bool {
        matches!(self, Self::Protocol(_))
    }

    /// As [`Fold::text`].
    pub fn text(&self, indent: usize) -> String {
        match self {
            Self::Protocol(text) | Self::Event(text) => text.clone(),
            Self::Shared(fold) => fold.text(indent),
        }
    }
}

/// The accesses of one warp at one line of source.
#[derive(Debug)]
pub(super) struct Fold {
    block: u64,
    /// What is done, as the text says it.
    verb: &'static str,
    /// Which line of source that is, for comparison and for the text.
    site: String,
    accesses: Vec<Place>,
    /// What the first access moved.
    value: u128,
}

/// Bytes that a thread has accessed.
#[derive(Debug, Clone, Copy)]
struct Place {
    thread: u32,
    is_store: bool,
    address: usize,
    bytes: usize,
    /// The piece of shared memory, in the order in which the block has declared them, and where in it.
    piece: usize,
    offset: usize,
}

impl Place {
    fn overlaps(&self, other: &Self) -> bool {
        self.address < other.address + other.bytes && other.address < self.address + self.bytes
    }
}

impl Fold {
    /// The line, and one more where the columns do not suffice; `indent` is how far each is moved to the right.
    pub fn text(&self, indent: usize) -> String {
        let (first, last) = (&self.accesses[0], self.accesses.len() - 1);
        let threads: BTreeSet<u32> = self.accesses.iter().map(|place| place.thread).collect();
        let of = |edge: Option<&u32>| edge.copied().unwrap_or_default();
        let (lowest, highest) = (of(threads.first()), of(threads.last()));
        let who = match threads.len() {
            1 => format!("thread {lowest}"),
            count if count as u32 == highest - lowest + 1 => format!("threads {lowest}-{highest}"),
            count => format!("{count} threads in {lowest}-{highest}"),
        };
        let begin = self.accesses.iter().map(|place| place.offset).min().unwrap_or_default();
        let end = self.accesses.iter().map(|place| place.offset + place.bytes).max().unwrap_or_default();
        let piece = first.piece;
        let what = match last {
            0 => format!("shared {piece}+{begin} = {:#x}", self.value),
            _ if last + 1 == threads.len() => format!("shared {piece}+{begin}..{}", end - 1),
            _ => format!("shared {piece}+{begin}..{}, {} accesses", end - 1, last + 1),
        };
        let line = format!("block {:<3} {who:<13} {} {what}", self.block, self.verb);
        if self.site.is_empty() {
            return line;
        }
        let site = self.site.trim_start_matches("cuda/");
        if indent + line.chars().count() + 2 + site.chars().count() <= COLUMNS {
            format!("{line}  {site}")
        } else {
            format!("{line}\n{:1$}{site}", "", indent + 10)
        }
    }
}

/// What is known of the blocks that run: their shared memory, and accesses to which more may be added.
#[derive(Debug, Default)]
pub(super) struct SharedAccesses {
    blocks: HashMap<u64, OfBlock>,
}

#[derive(Debug, Default)]
struct OfBlock {
    /// Address and bytes of each piece.
    pieces: Vec<(usize, usize)>,
    /// Folds that are not closed: where they stand in what is told, and of which warp each is.
    open: Vec<(usize, u32)>,
}

impl SharedAccesses {
    /// The piece of shared memory of a block that an address lies in, and where in it.
    fn place(&self, block: u64, access: &Access) -> Option<Place> {
        let pieces = &self.blocks.get(&block)?.pieces;
        let holds = |&(address, bytes): &(usize, usize)| (address..address + bytes).contains(&access.address);
        let piece = pieces.iter().position(holds)?;
        let offset = access.address - pieces[piece].0;
        Some(Place {
            thread: access.thread,
            is_store: access.kind != AccessKind::SharedLoad,
            address: access.address,
            bytes: access.bytes as usize,
            piece,
            offset,
        })
    }

    /// Adds an access to what is told, if it is one to shared memory.
    pub fn add(&mut self, access: &Access, value: &[u8], told: &mut Vec<Told>) {
        let verb = match access.kind {
            AccessKind::SharedLoad => "loads ",
            AccessKind::SharedStore => "stores",
            AccessKind::SharedAdd => "adds to",
            _ => return,
        };
        let Some(place) = self.place(access.block, access) else { return };
        let site = access.site().map(|site| site.to_string()).unwrap_or_default();
        let open = &mut self.blocks.entry(access.block).or_default().open;
        // Whoever accesses what another thread accesses, one of them to store, could tell which was first.
        let would_tell = |other: &Place| {
            other.thread != place.thread && (place.is_store || other.is_store) && other.overlaps(&place)
        };
        let tells = |at: usize| matches!(&told[at], Told::Shared(fold) if fold.accesses.iter().any(would_tell));
        if open.iter().any(|&(at, _)| tells(at)) {
            open.clear();
        }
        let warp = access.thread / WARP_LANES;
        for &(at, _) in open.iter().filter(|&&(_, other)| other == warp) {
            if let Told::Shared(fold) = &mut told[at]
                && fold.verb == verb
                && fold.site == site
                && fold.accesses[0].piece == place.piece
            {
                fold.accesses.push(place);
                return;
            }
        }
        open.push((told.len(), warp));
        let (block, accesses, value) = (access.block, vec![place], number_of(value));
        told.push(Told::Shared(Fold { block, verb, site, accesses, value }));
    }

    /// What has landed in shared memory of a block.
    pub fn landed(&mut self, block: u64, access: &Access) -> Option<String> {
        self.close(block);
        let Place { piece, offset, bytes, .. } = self.place(block, access)?;
        Some(format!("block {block:<3} {:<13} lands  shared {piece}+{offset}..{}", "a copy", offset + bytes - 1))
    }

    /// Threads have met, or shared memory is there: what is told of it.
    pub fn synchronized(&mut self, event: &Synchronization) -> Option<String> {
        match *event {
            Synchronization::SharedStorage { block, address, bytes } => {
                let pieces = &mut self.blocks.entry(block).or_default().pieces;
                pieces.push((address, bytes as usize));
                Some(format!("block {block:<3} {:<13} has    shared {}, {bytes} bytes", "", pieces.len() - 1))
            }
            Synchronization::BlockBarrier { block } => {
                self.close(block);
                Some(format!("block {block:<3} {:<13} meet at the block barrier", "all threads"))
            }
            Synchronization::BlockEnd { block } => {
                self.blocks.remove(&block);
                None
            }
            Synchronization::Warp { block, warp, .. } => {
                self.close_warp(block, warp);
                None
            }
            Synchronization::CopyBarrierArrival { block, thread, .. }
            | Synchronization::CopyBarrierWait { block, thread, .. }
            | Synchronization::ClusterArrival { block, thread, .. }
            | Synchronization::ClusterWait { block, thread }
            | Synchronization::LaunchWait { block, thread } => {
                self.close_warp(block, thread / WARP_LANES);
                None
            }
            Synchronization::CopyBarrierPhase { .. } | Synchronization::ClusterPhase { .. } => None,
        }
    }

    /// Nothing is added to what the block has done so far.
    fn close(&mut self, block: u64) {
        if let Some(block) = self.blocks.get_mut(&block) {
            block.open.clear();
        }
    }

    /// The same of one of its warps: it does something else.
    pub fn close_warp(&mut self, block: u64, warp: u32) {
        if let Some(block) = self.blocks.get_mut(&block) {
            block.open.retain(|&(_, other)| other != warp);
        }
    }

    /// Another launch begins.
    pub fn clear(&mut self) {
        self.blocks.clear();
    }
}

/// Bytes in memory as a number.
pub(super) fn number_of(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a replay would tell of shared memory of 1024 bytes at address 4096 of block 3.
    #[derive(Default)]
    struct Teller {
        told: Vec<Told>,
        shared: SharedAccesses,
    }

    impl Teller {
        fn new() -> Self {
            let mut teller = Self::default();
            let storage = Synchronization::SharedStorage { block: 3, address: 4096, bytes: 1024 };
            assert_eq!(
                teller.shared.synchronized(&storage).as_deref(),
                Some("block 3                 has    shared 0, 1024 bytes")
            );
            teller
        }

        fn access(&mut self, kind: AccessKind, thread: u32, place: u32) {
            let access = Access::new(kind, 4096 + 4 * place as usize, 4, 3, thread);
            self.shared.add(&access, &(7 * place).to_le_bytes(), &mut self.told);
        }

        fn lines(&self) -> Vec<String> {
            self.told.iter().map(|told| told.text(2)).collect()
        }
    }

    #[test]
    fn lanes_are_one_line_until_somebody_could_tell_their_order() {
        use AccessKind::{SharedLoad, SharedStore};
        let mut teller = Teller::new();
        for lane in 0..32 {
            teller.access(SharedStore, lane, lane);
            teller.access(SharedLoad, lane, lane);
        }
        assert_eq!(
            teller.lines(),
            ["block 3   threads 0-31  stores shared 0+0..127", "block 3   threads 0-31  loads  shared 0+0..127"]
        );
        // A lane that reads what another has written shows that it comes behind.
        teller.access(SharedLoad, 5, 4);
        teller.access(SharedStore, 6, 100);
        teller.access(SharedStore, 32, 101);
        teller.access(SharedStore, 7, 102);
        assert_eq!(
            teller.lines()[2..],
            [
                "block 3   thread 5      loads  shared 0+16 = 0x1c",
                "block 3   threads 6-7   stores shared 0+400..411",
                "block 3   thread 32     stores shared 0+404 = 0x2c3"
            ]
        );
        // So does a barrier, of the warp too.
        teller.shared.synchronized(&Synchronization::BlockBarrier { block: 3 });
        let warp = |collective| Synchronization::Warp { block: 3, warp: 0, mask: u32::MAX, collective };
        for event in [Synchronization::BlockBarrier { block: 3 }, warp(crate::cpu::Collective::WarpBarrier)] {
            let before = teller.told.len();
            teller.access(SharedLoad, 1, 9);
            teller.access(SharedLoad, 2, 9);
            teller.access(SharedLoad, 2, 10);
            assert_eq!(teller.lines()[before..], ["block 3   threads 1-2   loads  shared 0+36..43, 3 accesses"]);
            teller.shared.synchronized(&event);
        }
        // But not one of another warp.
        teller.access(SharedLoad, 33, 9);
        teller.shared.synchronized(&warp(crate::cpu::Collective::WarpBarrier));
        teller.access(SharedLoad, 34, 9);
        let lines = teller.lines();
        assert_eq!(lines[lines.len() - 1], "block 3   threads 33-34 loads  shared 0+36..39");
    }

    #[test]
    fn a_line_has_eighty_columns_at_most() {
        let place =
            |thread| Place { thread, is_store: true, address: 0, bytes: 16, piece: 1, offset: 16 * thread as usize };
        let mut fold = Fold {
            block: 117,
            verb: "stores",
            site: "cuda/block/misaligned_output.cuh:210".to_owned(),
            accesses: (960..1024).map(place).collect(),
            value: 0,
        };
        let text = fold.text(2);
        assert!(text.lines().count() == 2 && text.ends_with("          block/misaligned_output.cuh:210"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() + 2 <= COLUMNS), "{text}");
        fold.accesses = vec![place(3)];
        fold.site = "cuda/block/tile.cuh:21".to_owned();
        assert_eq!(fold.text(2), "block 117 thread 3      stores shared 1+48 = 0x0  block/tile.cuh:21");
    }
}
