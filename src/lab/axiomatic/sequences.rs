//! The protocol of one kernel as sequences of steps: what [`super::extract`] finds and [`super::protocol`] checks.

use super::program::{Scope, Semantics};
use crate::names::named;
use std::fmt;

/// How tiles hear of each other: one row for each kernel that is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocol {
    /// The C++ function of the kernel.
    pub name: &'static str,
    /// What tiles publish, in the order of the kernel's text, and what those behind them wait for.
    pub statuses: &'static [Status],
}

impl Protocol {
    /// Each tile looks back until it meets an inclusive prefix.
    pub const LOOK_BACK: Self = Self { name: "lookback", statuses: &[Status::Aggregate, Status::Prefix] };
    /// Each tile waits for its neighbour's inclusive prefix.
    pub const CHAINED: Self = Self { name: "chained", statuses: &[Status::Prefix] };
    /// Each tile reads the aggregates of all tiles before it.
    pub const ONE_WAVE: Self = Self { name: "one_wave", statuses: &[Status::Aggregate] };

    /// The same by blocks that stay, whose warps have a task each and meet at barriers in shared memory.
    pub const LOOK_AHEAD: Self = Self { name: "lookahead", statuses: &[Status::Aggregate] };

    /// All of them.
    pub const ALL: [Self; 4] = [Self::LOOK_BACK, Self::CHAINED, Self::ONE_WAVE, Self::LOOK_AHEAD];

    /// Whether a tile may wait for a descriptor of that status.
    pub fn reads(self, status: Status) -> bool {
        self.statuses.contains(&status)
    }

    /// Whether a tile publishes its aggregate, if the kernel has a publish for one. Tile 0 knows its prefix at once.
    pub fn publishes_aggregate(self, tile: usize) -> bool {
        self.reads(Status::Aggregate) && (tile > 0 || !self.reads(Status::Prefix))
    }

    /// What the publish at `index` of `count` in the kernel's text announces, where its constant is not found.
    pub(super) fn default_status(self, index: usize, count: usize) -> Status {
        let index = if count == self.statuses.len() { index } else { self.statuses.len() - 1 };
        self.statuses[index]
    }
}

/// How a descriptor lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Value and tag in one 64-bit word.
    Packed64,
    /// Value and tag in one 128-bit word; or parts of the value in several, the tag in each.
    Packed128,
    /// A tag, and slots for values.
    Split,
}

impl Layout {
    /// The name of the C++ structure.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed64 => "packed_64",
            Self::Packed128 => "packed_128",
            Self::Split => "split",
        }
    }

    pub(super) const ALL: [Self; 3] = [Self::Packed64, Self::Packed128, Self::Split];

    pub(super) fn half_bytes(self) -> i64 {
        if self == Self::Packed128 { 8 } else { 4 }
    }
}

/// What a published descriptor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// The tile's own total.
    Aggregate,
    /// The total of all tiles up to it.
    Prefix,
}

impl Status {
    /// The status bits of a tag.
    pub(super) fn tag(self) -> u64 {
        match self {
            Self::Aggregate => 1,
            Self::Prefix => 2,
        }
    }

    /// The status of a tag with these status bits.
    pub(super) fn of_tag(tag: u64) -> Option<Self> {
        [Self::Aggregate, Self::Prefix].into_iter().find(|status| status.tag() == tag)
    }
}

named! {
    /// A word of the workspace that all blocks share.
    pub enum Counter as "counter" {
        /// The next tile to hand out.
        Ticket = "ticket",
        /// Blocks that are done.
        Finished = "finished",
        /// Launches that are done.
        Epochs = "epochs",
    }
}

named! {
    /// What the warps of a block of `lookahead` are there for.
    pub enum Task as "task of a warp" {
        /// Draws tickets and fetches tiles.
        Producer = "producer",
        /// Reduces a share of a tile and publishes the aggregate.
        FirstReducer = "first reducer",
        /// Reduces another share.
        OtherReducer = "other reducer",
        /// Reads the aggregates of all tiles, and ends the launch.
        Finder = "finder",
        /// Scans.
        Scanner = "scanner",
    }
}

named! {
    /// A barrier of each stage of the ring of `lookahead`, in the order in which they are initialised.
    pub enum RingBarrier as "barrier of the ring" {
        /// The index of the tile is there.
        Drawn = "drawn",
        /// Index and elements are there.
        Landed = "landed",
        /// The totals of all shares but the first are there.
        Reduced = "reduced",
        /// And all prefixes.
        Ready = "ready",
        /// All of it has been read.
        Drained = "drained",
    }
}

named! {
    /// What a stage of the ring of `lookahead` holds.
    pub enum RingArray as "array of the ring" {
        /// What stands left of a scanning warp.
        WarpPrefix = "warp prefix",
        /// The total of a share.
        ShareTotal = "share total",
        /// What stands left of a share.
        SharePrefix = "share prefix",
        /// What stands left of the tile.
        TilePrefix = "tile prefix",
        /// The index of the tile.
        Tile = "tile index",
        /// The tile.
        Elements = "elements",
    }
}

/// What a step touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The tag of a split descriptor.
    Tag,
    /// A value of a split descriptor: the slot that is meant under an aggregate's status, and under a prefix's. Slots
    /// are numbered as the publishes write them.
    Value { aggregate: usize, prefix: usize },
    /// So many halves of a word of a packed descriptor from the first on, of which 0 is the value and 1 the tag; `elements`
    /// is 2 if they are the elements of a vector access. Of one of several words `is_asked` says whether the tag that is
    /// loaded is compared.
    Word { word: u8, first: u8, halves: u8, elements: u8, is_asked: bool },
    /// A counter.
    Counter(Counter),
    /// What one thread of a block hands to the others in shared memory.
    Shared,
    /// A barrier of the ring.
    Phase(RingBarrier),
    /// What a stage of the ring holds.
    Ring(RingArray),
    /// Nothing: a fence or a barrier.
    Nothing,
}

impl Role {
    /// The number of the word of a packed descriptor.
    pub fn word(self) -> Option<usize> {
        if let Self::Word { word, .. } = self { Some(word.into()) } else { None }
    }

    /// The slot that is meant under a status; under no status, that of a prefix.
    pub(super) fn slot(self, status: Option<Status>) -> Option<usize> {
        match self {
            Self::Value { aggregate, .. } if status == Some(Status::Aggregate) => Some(aggregate),
            Self::Value { prefix, .. } => Some(prefix),
            _ => None,
        }
    }
}

/// What a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A read-modify-write.
    Update,
    /// A fence; `true` for `fence.sc`.
    Fence(bool),
    /// A block barrier with its number.
    Barrier(u32),
    /// A barrier of the lanes of a warp.
    WarpBarrier,
    /// An arrival at a barrier of the ring.
    Arrive,
    /// A wait for the end of its phase.
    Wait,
    /// The place of `publish`, whose steps are [`Sequences::publishes`].
    Publish,
    /// The place of all calls of `read`, whose steps are [`Sequences::reads`].
    Read,
}

/// One instruction of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it is.
    pub kind: StepKind,
    /// What it touches.
    pub role: Role,
    /// What it orders.
    pub semantics: Semantics,
    /// Whom it reaches.
    pub scope: Scope,
    /// Its opcode.
    pub opcode: String,
    /// Where it stands in the source, outermost call first.
    pub source: String,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Tag => String::from(" tag"),
            Role::Value { aggregate, prefix } if aggregate == prefix => format!(" slot {aggregate}"),
            Role::Value { .. } => String::from(" slot of the status"),
            Role::Word { first, halves: 1, .. } => String::from(if first == 0 { " value half" } else { " tag half" }),
            Role::Word { word: 0, .. } => String::from(" word"),
            Role::Word { word, .. } => format!(" word {word}"),
            Role::Counter(counter) => format!(" {counter}"),
            Role::Shared => String::from(" shared"),
            Role::Phase(barrier) => format!(" {barrier}"),
            Role::Ring(array) => format!(" {array}"),
            Role::Nothing => String::new(),
        };
        write!(formatter, "{}{role}", self.opcode)
    }
}

/// One `publish` of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// What it announces.
    pub status: Status,
    /// Its instructions.
    pub steps: Vec<Step>,
}

/// What the warps of one block of `lookahead` do for each tile, in order. What one lane does for its warp is not told
/// from what all do: stores, arrivals and updates are one lane's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    /// By [`RingBarrier`]: after how many arrivals a phase is over. Nothing where it is no constant.
    pub expected: Vec<Option<u32>>,
    /// By [`Task`]: the steps of one tile.
    pub rounds: Vec<Vec<Step>>,
    /// What the finder does behind its last tile, before the count of finished blocks.
    pub end: Vec<Step>,
}

impl Ring {
    /// The steps of one tile.
    pub fn round(&self, task: Task) -> &[Step] {
        &self.rounds[task as usize]
    }
}

/// The protocol of one kernel, as its PTX has it. All of it can be changed, to see what a change does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequences {
    /// How tiles hear of each other.
    pub protocol: Protocol,
    /// How descriptors lie in memory.
    pub layout: Layout,
    /// How a block takes its tile: the epoch, the ticket, and how the block's threads learn of them.
    pub start: Vec<Step>,
    /// Every `publish`, in the order of the text.
    pub publishes: Vec<Publish>,
    /// Every `read` that differs from the others.
    pub reads: Vec<Vec<Step>>,
    /// From the last `publish` to the count of finished blocks: the prefix for the block's threads, the barrier.
    pub hand_over: Vec<Step>,
    /// The count of finished blocks.
    pub finish: Vec<Step>,
    /// How the last block clears one descriptor at the wrap of the epoch.
    pub invalidate: Vec<Step>,
    /// What the last block writes else.
    pub resets: Vec<Step>,
    /// How the block's threads load the prefix.
    pub result: Vec<Step>,
    /// How the warps of a block meet, where each has a task of its own.
    pub ring: Option<Ring>,
}

impl Sequences {
    /// The steps of the publish with that status.
    pub fn publish(&self, status: Status) -> Option<&[Step]> {
        self.publishes.iter().find(|publish| publish.status == status).map(|publish| publish.steps.as_slice())
    }

    fn steps_of_descriptors(&self) -> impl Iterator<Item = &Step> {
        self.publishes.iter().map(|publish| &publish.steps).chain(&self.reads).flatten()
    }

    /// How many slots for values the steps speak of.
    pub(super) fn slots(&self) -> usize {
        let highest = self.steps_of_descriptors().filter_map(|step| match step.role {
            Role::Value { aggregate, prefix } => Some(aggregate.max(prefix) + 1),
            _ => None,
        });
        highest.max().unwrap_or(0)
    }

    /// How many words a packed descriptor has.
    pub fn words(&self) -> usize {
        self.steps_of_descriptors().filter_map(|step| step.role.word()).max().map_or(0, |highest| highest + 1)
    }

    /// Whether a word of a packed descriptor is stored or loaded in parts.
    pub(super) fn is_torn(&self) -> bool {
        self.steps_of_descriptors().any(|step| match step.role {
            Role::Word { halves, elements, .. } => halves < 2 || elements > 1,
            _ => false,
        })
    }

    /// The slot that a publish with that status writes.
    pub(super) fn slot_of(&self, status: Status) -> usize {
        let steps = self.publish(status).unwrap_or_default();
        let written = steps.iter().find_map(|step| step.role.slot(Some(status)));
        written.unwrap_or(usize::from(status == Status::Prefix))
    }
}

/// A sequence on one line.
pub fn describe(steps: &[Step]) -> String {
    steps.iter().map(Step::to_string).collect::<Vec<_>>().join("; ")
}
