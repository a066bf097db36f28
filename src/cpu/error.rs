//! What a kernel can do wrong, and who took part in it.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::ptr;

/// A line of kernel source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceSite {
    /// As the host compiler was given it.
    pub file: &'static str,
    /// From 1.
    pub line: u32,
}

impl fmt::Display for SourceSite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", below_repository(self.file), self.line)
    }
}

/// `/home/somebody/lookback/cuda/host/../scan/../descriptor.cuh` as `cuda/descriptor.cuh`: where the program was
/// built is of no use to whoever reads of a fault.
fn below_repository(file: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in file.split('/') {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let first = parts.iter().rposition(|part| *part == "cuda").unwrap_or(0);
    parts[first..].join("/")
}

/// A [`SourceSite`] as kernels pass it, not looked at until somebody wants to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct RawSite {
    pub file: *const c_char,
    pub line: u32,
}

impl RawSite {
    pub const NONE: Self = Self { file: ptr::null(), line: 0 };

    /// Whether both are the same line. One file's name may be more than one literal.
    pub fn is_same(self, other: Self) -> bool {
        self.line == other.line && (ptr::eq(self.file, other.file) || self.resolve() == other.resolve())
    }

    pub fn resolve(self) -> Option<SourceSite> {
        if self.file.is_null() {
            return None;
        }
        // SAFETY: a site that is not null comes from `__builtin_FILE()`: a string literal, which ends in 0
        // and lives as long as the program.
        let file = unsafe { CStr::from_ptr::<'static>(self.file) };
        Some(SourceSite { file: file.to_str().unwrap_or("(file name is not UTF-8)"), line: self.line })
    }
}

/// An enum of `cuda/host/executor.h`, a row for each variant: its number, from 0 on, and what it is called in errors.
macro_rules! numbered {
    ($(#[$attribute:meta])* $name:ident: $($variant:ident = $number:literal $words:literal,)*) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum $name {
            $(#[doc = $words] $variant = $number,)*
        }

        impl $name {
            /// Every one, by number.
            pub const ALL: [Self; [$($number),*].len()] = [$(Self::$variant),*];

            /// In words.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $words,)*
                }
            }

            pub(super) fn from_number(number: u32) -> Self {
                Self::ALL[number as usize]
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.name())
            }
        }
    };
}
pub(super) use numbered;

numbered! {
    /// The collectives of a warp.
    Collective:
    WarpBarrier = 0 "warp_barrier",
    ShuffleUp = 1 "shuffle_up",
    ShuffleDown = 2 "shuffle_down",
    ShuffleIndex = 3 "shuffle_index",
    Ballot = 4 "ballot",
}

/// What a thread was doing when a fault was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activity {
    /// At the block barrier.
    BlockBarrier,
    /// In a collective of the lanes in the mask, one bit each.
    WarpCollective { collective: Collective, mask: u32 },
    /// Waits for a phase of a barrier of copies.
    CopyBarrier,
    /// Waits at the barrier of the thread block cluster.
    ClusterBarrier,
    /// Waits for the launch before.
    LaunchWait,
    /// Polls with `spin_pause`, or with one protocol access after the other.
    SpinWait,
    /// Could go on; its site is its last scheduling point.
    Runnable,
    /// Returned from the kernel.
    Exited,
    /// Its block was stopped by [`Stop::Block`](super::Stop::Block).
    Stopped,
    /// Made a memory access, or asked for shared memory.
    Access,
}

impl fmt::Display for Activity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlockBarrier => formatter.write_str("at the block barrier"),
            Self::WarpCollective { collective, mask } => {
                write!(formatter, "in {} with lanes {mask:#010x}", collective.name())
            }
            Self::CopyBarrier => formatter.write_str("waiting for copies or arrivals"),
            Self::ClusterBarrier => formatter.write_str("at the cluster barrier"),
            Self::LaunchWait => formatter.write_str("waiting for the launch before"),
            Self::SpinWait => formatter.write_str("polling"),
            Self::Runnable => formatter.write_str("able to run"),
            Self::Exited => formatter.write_str("returned from the kernel"),
            Self::Stopped => formatter.write_str("stopped"),
            Self::Access => formatter.write_str("accessing memory"),
        }
    }
}

/// Threads of one block that do the same thing at the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// Which launch, from 0, of those that were taken together.
    pub launch: u32,
    /// The block's index.
    pub block: u64,
    /// The lowest thread index among them.
    pub thread: u32,
    /// How many threads.
    pub threads: u32,
    /// What they do.
    pub activity: Activity,
    /// Where; nothing for threads that returned or were never at a site.
    pub site: Option<SourceSite>,
    /// Of threads that poll and said what for: their tile, and the tile that they wait for.
    pub tiles: Option<(u64, u64)>,
}

impl fmt::Display for Party {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.launch > 0 {
            write!(formatter, "launch {} ", self.launch + 1)?;
        }
        write!(formatter, "block {} thread {}", self.block, self.thread)?;
        if self.threads > 1 {
            write!(formatter, " (and {} more)", self.threads - 1)?;
        }
        write!(formatter, " {}", self.activity)?;
        if let Some((waiting, missing)) = self.tiles {
            write!(formatter, " in tile {waiting} for tile {missing}")?;
        }
        if let Some(site) = self.site {
            write!(formatter, ", {site}")?;
        }
        Ok(())
    }
}

/// What is wrong with the lanes of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MaskFault {
    /// The caller leaves itself out.
    #[error("the calling lane is not in its own mask")]
    CallerNotInMask,
    /// A lane that is waited for returned from the kernel.
    #[error("a lane in the mask returned from the kernel")]
    LaneExited,
    /// A lane that is waited for waits in another collective.
    #[error("a lane in the mask waits in another collective")]
    LaneElsewhere,
    /// A shuffle reads from a lane outside the mask.
    #[error("the lane that is read is not in the mask")]
    SourceNotInMask,
}

/// What is wrong with a barrier of copies, or with a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CopyFault {
    /// Nobody has initialised the barrier.
    #[error("the barrier was not initialised")]
    NotInitialized,
    /// It was initialised, but nobody said so to those who count under it.
    #[error("the barrier was initialised, but no barriers_initialized() says so to copies, or to the other blocks")]
    NotThere,
    /// More arrivals than the barrier expects in a phase.
    #[error("one arrival too many in a phase")]
    TooManyArrivals,
    /// The threads that share it no longer wait for each other.
    #[error("the barrier goes through more phases than a launch has: {phases}")]
    TooManyPhases { phases: u64 },
    /// The block's shared memory goes while something is still to be written to it.
    #[error("the block ends before its copies have landed")]
    StillUnderWay,
}

/// What is wrong with the use of a thread block cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ClusterFault {
    /// The launch has no clusters.
    #[error("the grid is not launched as a cluster")]
    NoCluster,
    /// A thread arrives at the barrier twice without a wait between.
    #[error("the thread arrives at the barrier again without having waited")]
    ArrivedTwice,
    /// A thread waits without having arrived.
    #[error("the thread waits at the barrier without having arrived")]
    NotArrived,
    /// More blocks are addressed than there are; `rank` is the place in the cluster, here and below.
    #[error("the cluster has no block {rank}")]
    NoSuchBlock { rank: u32 },
    /// A store to what is not shared memory.
    #[error("the place is not in the shared memory that the block has declared")]
    NotShared,
    /// A store into a block that may not be there yet.
    #[error("block {rank} may not have started: nobody waited for it")]
    NotStarted { rank: u32 },
    /// A store into a block whose shared memory may be another's.
    #[error("block {rank} has ended, and its shared memory with it")]
    Ended { rank: u32 },
}

/// Why a launch did not end. The first party is the one whose call showed the fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    /// Not all threads of a block reach the same barrier: who is at which, and who is at none.
    #[error("barrier divergence: {}", list(parties))]
    BarrierDivergence { parties: Vec<Party> },
    /// The lanes of a warp collective are not those that its mask names: the mask of the caller, or that of the
    /// collective that waits for it.
    #[error("wrong mask {mask:#010x}: {fault}: {}", list(parties))]
    WrongMask { fault: MaskFault, mask: u32, parties: Vec<Party> },
    /// Nobody can run and nobody polls. `waiting_blocks` found no free slot.
    #[error("deadlock, {waiting_blocks} blocks not started: {}", list(parties))]
    Deadlock { parties: Vec<Party>, waiting_blocks: u64 },
    /// Whoever can run only polls, and nobody stores what they poll for. `waiting_blocks` found no free slot.
    #[error("lost progress, {waiting_blocks} blocks not started: {}", list(parties))]
    LostProgress { parties: Vec<Party>, waiting_blocks: u64 },
    /// With this declaration a block has more shared memory than `LaunchSettings::shared_limit_bytes`.
    #[error("shared memory: {needed_bytes} bytes needed, {limit_bytes} allowed: {party}")]
    SharedMemory { needed_bytes: u64, limit_bytes: u32, party: Party },
    /// A block takes more dynamic shared memory for its own than `LaunchSettings::dynamic_shared_bytes`, which nobody
    /// notices on a GPU.
    #[error("dynamic shared memory: {asked_bytes} bytes asked for, {given_bytes} given by the launch: {party}")]
    DynamicSharedMemory { asked_bytes: u32, given_bytes: u32, party: Party },
    /// A vector access at an address that is no multiple of its width; a GPU faults on it.
    #[error("misaligned access of {bytes} bytes at {address:#x}: {party}")]
    Misaligned { address: usize, bytes: u32, party: Party },
    /// A barrier of copies is used wrongly.
    #[error("asynchronous copies: {fault}: {party}")]
    Copy { fault: CopyFault, party: Party },
    /// The barrier or the shared memory of a thread block cluster is used wrongly.
    #[error("thread block cluster: {fault}: {party}")]
    Cluster { fault: ClusterFault, party: Party },
    /// The memory back end rejected an access or an event.
    #[error("the memory back end stopped the launch: {message}: {party}")]
    Backend { message: String, party: Party },
    /// [`Stop::Launch`](super::Stop::Launch) took effect.
    #[error("stopped on request after {points} scheduling points")]
    Stopped { points: u64 },
    /// The settings cannot be launched.
    #[error("invalid launch settings: {fault}")]
    InvalidSettings { fault: String },
    /// No memory for the stacks of the coroutines.
    #[error(
        "no memory for {stacks} coroutine stacks ({message}); let fewer blocks be resident, or choose fewer threads per block"
    )]
    Stacks { stacks: usize, message: String },
}

fn list(parties: &[Party]) -> String {
    const SHOWN: usize = 12;
    let mut text = parties.iter().take(SHOWN).map(Party::to_string).collect::<Vec<_>>().join("; ");
    if parties.len() > SHOWN {
        text.push_str(&format!("; and {} more groups of threads", parties.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_named_from_the_repository_on() {
        for (given, shown) in [
            ("/home/a/cuda/lookback/cuda/host/../scan/../descriptor.cuh", "cuda/descriptor.cuh"),
            ("cuda/host/executor.h", "cuda/host/executor.h"),
            ("../kernel.cpp", "../kernel.cpp"),
        ] {
            assert_eq!(below_repository(given), shown);
        }
    }
}
