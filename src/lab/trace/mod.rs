//! What the warps of a scan do with its tiles, a step at a time: which publication let which tile go on.
//!
//! | module | what it does |
//! |---|---|
//! | `story` | from steps to slices, arrows and the critical path |
//! | `record` | recordings in a file, from which pictures are drawn again |
//! | `perfetto` | all of it as a trace that <https://ui.perfetto.dev> opens |
//! | `team` | the scan inside a warp or a block, lane by lane |
//!
//! Steps are recorded by hooks that are woven into the kernels as faults and delays are (`cuda/faults`), on the CPU device
//! in each launch that asks for them, on a GPU by kernels that are compiled with them (`lab/cuda/tracing.rs`).

pub mod perfetto;
pub mod record;
pub mod story;
#[cfg(feature = "cpu")]
pub mod team;

use crate::abi;
use crate::kernels::sources::woven;
use crate::names::named;
use crate::strategy::kernel::Kernel;
use crate::strategy::plan::ScanRequest;
use crate::strategy::{Blocks, Strategy};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

named! {
    /// What a warp has come to with a tile: `lookback_trace_step` in `cuda/abi.h`, in the order of its numbers.
    pub enum Step as "step of a tile" {
        /// The warp has its elements.
        Landed = "landed",
        /// The warp has its total.
        Reduced = "reduced",
        /// What stands left of the tile is known.
        Prefix = "prefix",
        /// The last store is on its way.
        Stored = "stored",
        /// The tile's index is known.
        Ticket = "ticket",
        /// Its copy into the ring is asked for.
        Requested = "requested",
        /// The aggregate is published.
        Aggregate = "aggregate",
        /// The inclusive prefix is published.
        Published = "published",
        /// Descriptors are about to be read, once a round.
        Read = "read",
        /// All that are needed of them are there.
        Found = "found",
    }
}

const _: () = assert!(Step::ALL.len() == abi::LOOKBACK_TRACE_STEPS as usize);

impl Step {
    /// The step of this number; none where kernels and host do not agree.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }

    /// The place of a step of this round among those of a warp and a tile at one time.
    const fn rank(self, round: u32) -> u32 {
        match self {
            Self::Ticket => 0,
            Self::Requested => 1,
            Self::Landed => 2,
            Self::Reduced => 3,
            Self::Aggregate => 4,
            Self::Read => 5 + 2 * round,
            Self::Found => 6 + 2 * round,
            Self::Prefix => u32::MAX - 2,
            Self::Published => u32::MAX - 1,
            Self::Stored => u32::MAX,
        }
    }

    /// What the warp has done since it came to `previous`, with the same tile.
    const fn phase(self, previous: Self) -> Option<Phase> {
        Some(match self {
            Self::Ticket => return None,
            Self::Requested => Phase::Request,
            Self::Landed => Phase::Load,
            // It has no part of the tile, and waits for those that have.
            Self::Reduced if matches!(previous, Self::Ticket) => Phase::Load,
            Self::Reduced => Phase::Reduce,
            Self::Aggregate => Phase::Publish,
            Self::Read if matches!(previous, Self::Found) => Phase::Combine,
            Self::Read => return None,
            Self::Found => Phase::Read,
            Self::Prefix if matches!(previous, Self::Found) => Phase::Combine,
            Self::Prefix => Phase::Wait,
            Self::Published => Phase::PublishPrefix,
            Self::Stored => Phase::Store,
        })
    }
}

named! {
    /// What a warp does from one step to the next.
    pub enum Phase as "phase of a tile" {
        /// Asks for the copy of a tile into the ring.
        Request = "request the copy",
        /// Waits for the elements, its own or those of others.
        Load = "load",
        /// Scans or reduces what it has.
        Reduce = "reduce",
        /// Publishes the aggregate.
        Publish = "publish aggregate",
        /// Reads descriptors until all are there that it needs.
        Read = "read descriptors",
        /// Combines what it has read.
        Combine = "combine",
        /// Waits for the warp that finds the prefix.
        Wait = "wait for prefix",
        /// Publishes the inclusive prefix.
        PublishPrefix = "publish prefix",
        /// Combines the prefix with its values and stores them.
        Store = "scan and store",
    }
}

/// A step of a warp with a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// In the unit of the recording.
    pub time: u64,
    /// Where, on a GPU; 0 on the CPU device.
    pub multiprocessor: u32,
    /// The block; on a GPU its lower 16 bits.
    pub block: u64,
    /// The warp of the block.
    pub warp: u32,
    /// What it has come to.
    pub step: Step,
    /// From 0, for steps that come once a round of reading.
    pub round: u32,
    /// With which tile.
    pub tile: u64,
    /// Of [`Step::Found`]: for whose publication the warp waited last in this round, if it did.
    pub missing_tile: Option<u64>,
    /// Of [`Step::Read`] and [`Step::Found`]: descriptors that the round is about.
    pub descriptors: u32,
}

/// What one unit of time is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Switches of the CPU device's scheduler and recorded steps.
    Steps,
    /// Nanoseconds of a GPU.
    Nanoseconds {
        /// How far a reading of a multiprocessor's clock lies off the line through its readings at most, in nanoseconds.
        error: f64,
        /// A scan by the ordinary kernel, back to back, in nanoseconds: the median.
        ordinary: f64,
        /// The same by the kernel that records.
        recording: f64,
    },
}

impl Clock {
    /// What times are told in, and how many units of a recording that is.
    pub const fn unit(self) -> (&'static str, f64) {
        match self {
            Self::Steps => ("steps", 1.0),
            Self::Nanoseconds { .. } => ("µs", 1e3),
        }
    }
}

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// By which strategy.
    pub strategy: Strategy,
    /// Which scan, in words.
    pub scan: String,
    /// Of how many elements.
    pub n: u64,
    /// Bytes of one that is loaded.
    pub input_bytes: usize,
    /// Values per thread.
    pub vt: u32,
    /// Threads of a block that scan.
    pub block_threads: u32,
}

impl Subject {
    /// What a request asks for.
    pub fn of(request: &ScanRequest) -> Self {
        let ScanRequest { strategy, problem, config, n, .. } = request;
        Self {
            strategy: *strategy,
            scan: problem.to_string(),
            n: *n,
            input_bytes: problem.input_bytes(),
            vt: config.vt,
            block_threads: config.block_threads,
        }
    }
}

/// One scan, recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// What ran.
    pub subject: Subject,
    /// Tiles of the array.
    pub tiles: u64,
    /// Whether every element of the recorded scan was right.
    pub is_right: bool,
    /// What the times of `events` mean.
    pub clock: Clock,
    /// By warp and time, which begins with 0.
    #[serde(with = "columns")]
    pub events: Vec<Event>,
}

impl Recording {
    /// The steps of a scan as a device has them, in any order.
    pub(crate) fn new(request: &ScanRequest, tiles: u64, is_right: bool, clock: Clock, mut events: Vec<Event>) -> Self {
        let begin = events.iter().map(|event| event.time).min().unwrap_or(0);
        events.iter_mut().for_each(|event| event.time -= begin);
        events.sort_by_key(Event::place);
        if matches!(request.strategy.row().shape.blocks, Blocks::Cluster) {
            find_missing_in_cluster(&mut events);
        }
        Self { subject: Subject::of(request), tiles, is_right, clock, events }
    }

    /// The same with some of the tiles.
    #[must_use]
    pub fn of_tiles(&self, is_kept: impl Fn(u64) -> bool) -> Self {
        let events = self.events.iter().copied().filter(|event| is_kept(event.tile)).collect();
        Self { events, subject: self.subject.clone(), ..*self }
    }
}

impl Event {
    /// The warp, among all of the launch.
    pub(crate) const fn who(&self) -> (u32, u64, u32) {
        (self.multiprocessor, self.block, self.warp)
    }

    /// What recordings are sorted by.
    const fn place(&self) -> impl Ord + use<> {
        (self.who(), self.time, self.tile, self.step.rank(self.round))
    }
}

/// Blocks of a cluster wait at one barrier for the totals of all, so nobody asks whose is missing: it is the one that said last, from
/// the begin of the wait to its end, that it had published. A round of the cluster is as many tiles as it has blocks.
fn find_missing_in_cluster(events: &mut [Event]) {
    let Some(blocks) = events.iter().find(|event| event.step == Step::Found).map(|event| event.descriptors) else {
        return;
    };
    let round = |event: &Event| event.tile / u64::from(blocks.max(1));
    let mut published: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    let mut begins: BTreeMap<u64, u64> = BTreeMap::new();
    for event in events.iter() {
        if event.step == Step::Aggregate {
            published.entry(round(event)).or_default().push((event.time, event.tile));
        } else if event.step == Step::Read {
            begins.insert(event.tile, event.time);
        }
    }
    for event in events.iter_mut().filter(|event| event.step == Step::Found) {
        let begin = begins.get(&event.tile).copied().unwrap_or(event.time);
        let of_others = published.get(&round(event)).into_iter().flatten().filter(|&&(_, tile)| tile != event.tile);
        let meanwhile = of_others.filter(|&&(time, _)| begin < time && time <= event.time);
        event.missing_tile = meanwhile.max().map(|&(_, tile)| tile);
    }
}

/// Whether kernels of a strategy have hooks that record.
pub fn records(strategy: Strategy) -> bool {
    let has_hooks = |kernel: &Kernel| woven().any(|(file, text)| file == kernel.file() && text.contains("TRACE("));
    strategy.row().shape.kernels.iter().any(has_hooks)
}

/// Events as a file has them: a list a column, which compresses well.
mod columns {
    use super::{Event, Step};
    use crate::abi;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Default, Serialize, Deserialize)]
    struct Columns {
        time: Vec<u64>,
        multiprocessor: Vec<u32>,
        block: Vec<u64>,
        warp: Vec<u32>,
        step: Vec<Step>,
        round: Vec<u32>,
        tile: Vec<u64>,
        missing_tile: Vec<Option<u64>>,
        descriptors: Vec<u32>,
    }

    pub(super) fn serialize<S: Serializer>(events: &[Event], serializer: S) -> Result<S::Ok, S::Error> {
        let mut columns = Columns::default();
        for event in events {
            columns.time.push(event.time);
            columns.multiprocessor.push(event.multiprocessor);
            columns.block.push(event.block);
            columns.warp.push(event.warp);
            columns.step.push(event.step);
            columns.round.push(event.round);
            columns.tile.push(event.tile);
            columns.missing_tile.push(event.missing_tile);
            columns.descriptors.push(event.descriptors);
        }
        columns.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Event>, D::Error> {
        // Nothing takes so long, and sums of what is smaller stay numbers.
        const LONGEST: u64 = 1 << 40;
        const MOST: u32 = 1 << 20;
        let columns = Columns::deserialize(deserializer)?;
        let count = columns.time.len();
        let lengths = [
            columns.multiprocessor.len(),
            columns.block.len(),
            columns.warp.len(),
            columns.step.len(),
            columns.round.len(),
            columns.tile.len(),
            columns.missing_tile.len(),
            columns.descriptors.len(),
        ];
        if lengths.iter().any(|&length| length != count) {
            return Err(D::Error::custom("the columns of a recording are not of one length"));
        }
        if columns.time.iter().any(|&time| time > LONGEST) {
            return Err(D::Error::custom("a step of a recording is later than any scan takes"));
        }
        let is_beyond = columns.multiprocessor.iter().any(|&multiprocessor| multiprocessor > MOST)
            || columns.round.iter().any(|&round| round > MOST)
            || columns.warp.iter().any(|&warp| warp >= abi::LOOKBACK_TRACE_WARPS);
        if is_beyond {
            return Err(D::Error::custom(
                "a step of a recording is where no GPU has a warp, or in a round that no scan has",
            ));
        }
        let event = |at: usize| Event {
            time: columns.time[at],
            multiprocessor: columns.multiprocessor[at],
            block: columns.block[at],
            warp: columns.warp[at],
            step: columns.step[at],
            round: columns.round[at],
            tile: columns.tile[at],
            missing_tile: columns.missing_tile[at],
            descriptors: columns.descriptors[at],
        };
        let events: Vec<Event> = (0..count).map(event).collect();
        if !events.is_sorted_by_key(|event| event.place()) {
            return Err(D::Error::custom("the steps of a recording are not by warp and time"));
        }
        Ok(events)
    }
}
