//! The descriptor protocol on [loom](https://docs.rs/loom), a second opinion from another model of memory: that of
//! C11, whose executions loom enumerates by running the code.
//!
//! The orderings are those of the [`Sequences`] that a kernel's PTX has. A tile is one thread and reads its window lane
//! by lane; a wait that would go on ends the tile instead, or the model would not end. Payloads are cells that
//! loom watches for races, packed words are one atomic (their value and tag fit into 64 bits here, whatever the
//! width), of several words each has the value that it is a part of, and a word that is stored or loaded in parts is an
//! atomic a half. C11 has no scopes: an access or a fence of
//! block scope orders nothing between the blocks, and a strong access of that scope counts as a plain one, so it
//! races. In the end of a launch every access to a descriptor must happen before its clean-up.
//!
//! Not seen by loom: writes that come later in coherence order than in the run, load buffering, and lanes that are
//! threads of their own; [`super::protocol`] has them.

use super::program::{POISON, Scope, Semantics, concatenate, describe_sequence, sequence_of, sequence_up_to};
use super::sequences::{Counter, Layout, Role, Sequences, Status, Step, StepKind};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use std::cell::Cell;
use std::sync::Once;
use std::sync::atomic::{AtomicU64 as StandardAtomicU64, Ordering as StandardOrdering};
use std::time::{Duration, Instant};

/// The largest number of tiles: loom holds five threads, and the one that starts the others is one of them.
pub const MAXIMUM_TILES: usize = 4;

/// Up to so many tiles every execution is run. With more it is every one with at most [`PREEMPTIONS`] preemptions:
/// without that bound loom takes hours.
pub const MAXIMUM_TILES_WITHOUT_BOUND: usize = 3;

/// The bound for more tiles.
pub const PREEMPTIONS: usize = 3;

/// What a run of loom came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoomReport {
    /// How many tiles.
    pub tiles: usize,
    /// The most times that a thread is interrupted in one execution; nothing if there is no bound.
    pub preemptions: Option<usize>,
    /// How many executions ran.
    pub executions: u64,
    /// Executions in which every tile got its prefix.
    pub finished: u64,
    /// Whether all executions within the bound were run, or time ended before.
    pub complete: bool,
    /// How long it took.
    pub elapsed: Duration,
    /// The first thing that went wrong; loom ends there.
    pub violation: Option<String>,
}

/// Why loom cannot run a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoomError {
    /// It holds only so many threads.
    #[error("loom runs 1 to {MAXIMUM_TILES} tiles, not {tiles}")]
    Tiles { tiles: usize },
}

/// Runs the protocol with that many tiles, for at most that long.
///
/// # Errors
/// When there are too many tiles.
pub fn check(sequences: &Sequences, tiles: usize, limit: Duration) -> Result<LoomReport, LoomError> {
    if tiles == 0 || tiles > MAXIMUM_TILES {
        return Err(LoomError::Tiles { tiles });
    }
    let started = Instant::now();
    let mut report = LoomReport {
        tiles,
        preemptions: (tiles > MAXIMUM_TILES_WITHOUT_BOUND).then_some(PREEMPTIONS),
        executions: 0,
        finished: 0,
        complete: true,
        elapsed: Duration::ZERO,
        violation: None,
    };
    for read in 0..sequences.reads.len() {
        let executions = std::sync::Arc::new(StandardAtomicU64::new(0));
        let finished = std::sync::Arc::new(StandardAtomicU64::new(0));
        let mut builder = loom::model::Builder::new();
        builder.max_branches = 10_000;
        builder.preemption_bound = report.preemptions;
        builder.max_duration = Some(limit.saturating_sub(started.elapsed()));
        let sequences = std::sync::Arc::new(sequences.clone());
        let (counted, done) = (std::sync::Arc::clone(&executions), std::sync::Arc::clone(&finished));
        let ended = quietly(move || {
            builder.check(move || {
                counted.fetch_add(1, StandardOrdering::Relaxed);
                if launch(&sequences, read, tiles) {
                    done.fetch_add(1, StandardOrdering::Relaxed);
                }
            });
        });
        report.executions += executions.load(StandardOrdering::Relaxed);
        report.finished += finished.load(StandardOrdering::Relaxed);
        if started.elapsed() >= limit {
            report.complete = false;
        }
        if let Err(what) = ended {
            report.violation = Some(what);
            break;
        }
    }
    report.elapsed = started.elapsed();
    Ok(report)
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs loom, which reports by panicking, and hands its message back instead of printing it.
fn quietly(run: impl FnOnce()) -> Result<(), String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |information| {
            // loom's threads are coroutines of this one, so the flag of this thread is theirs.
            if !QUIET.with(Cell::get) {
                before(information);
            }
        }));
    });
    QUIET.with(|quiet| quiet.set(true));
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    QUIET.with(|quiet| quiet.set(false));
    ended.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        // loom goes on for pages about where its objects were made.
        let text = text.unwrap_or_else(|| String::from("loom panicked"));
        text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("loom panicked").to_owned()
    })
}

fn ordering(step: &Step, is_load: bool) -> Ordering {
    if step.scope == Scope::Cta {
        return Ordering::Relaxed;
    }
    match (step.semantics, step.kind) {
        (Semantics::AcquireRelease, StepKind::Update) => Ordering::AcqRel,
        (Semantics::Acquire, _) if is_load => Ordering::Acquire,
        (Semantics::Release, _) if !is_load => Ordering::Release,
        (Semantics::Acquire, StepKind::Update) => Ordering::Acquire,
        (Semantics::Release, StepKind::Update) => Ordering::Release,
        _ => Ordering::Relaxed,
    }
}

/// Whether an access is strong towards other blocks.
fn is_strong(step: &Step) -> bool {
    step.semantics != Semantics::Weak && step.scope != Scope::Cta
}

/// An atomic, and cells by which loom finds accesses to it that are not ordered as they must be.
struct Location {
    value: AtomicU64,
    guard: UnsafeCell<()>,
    /// Read by loads that are not strong, which race with every store; written by all stores. No two threads store to one
    /// location but for the clean-up, which all must come before.
    plain: UnsafeCell<()>,
}

impl Location {
    fn new(value: u64) -> Self {
        Self { value: AtomicU64::new(value), guard: UnsafeCell::new(()), plain: UnsafeCell::new(()) }
    }

    fn load(&self, step: &Step) -> u64 {
        self.guard.with(|_| ());
        if !is_strong(step) {
            self.plain.with(|_| ());
        }
        self.value.load(ordering(step, true))
    }

    fn store(&self, step: &Step, value: u64) {
        if is_strong(step) {
            self.guard.with(|_| ());
        } else {
            self.guard.with_mut(|_| ());
        }
        self.plain.with_mut(|_| ());
        self.value.store(value, ordering(step, false));
    }

    /// A store that everything before it must happen before.
    fn clear(&self, step: &Step, value: u64) {
        self.guard.with_mut(|_| ());
        self.value.store(value, ordering(step, false));
    }
}

const TAG_BITS: u32 = 2;

/// One descriptor.
enum Descriptor {
    Words(Vec<Location>),
    Halves(Vec<[Location; 2]>),
    Split { tag: Location, slots: Vec<UnsafeCell<u64>> },
}

/// What all tiles share.
struct Launch {
    descriptors: Vec<Descriptor>,
    finished: AtomicU64,
}

// SAFETY: the cells are loom's, which reports every access to them that another thread's access does not happen
// before or after; finding such accesses is what the model is for.
unsafe impl Send for Launch {}
// SAFETY: as above.
unsafe impl Sync for Launch {}

fn order(step: &Step) {
    if let (StepKind::Fence(sequential), true) = (step.kind, step.scope != Scope::Cta) {
        fence(if sequential { Ordering::SeqCst } else { Ordering::AcqRel });
    }
}

impl Launch {
    fn new(sequences: &Sequences, tiles: usize) -> Self {
        let descriptors = (0..tiles).map(|_| match sequences.layout {
            Layout::Split => Descriptor::Split {
                tag: Location::new(0),
                slots: (0..sequences.slots()).map(|_| UnsafeCell::new(POISON)).collect(),
            },
            _ if sequences.is_torn() => {
                Descriptor::Halves((0..sequences.words()).map(|_| [Location::new(POISON), Location::new(0)]).collect())
            }
            _ => Descriptor::Words((0..sequences.words()).map(|_| Location::new(0)).collect()),
        });
        Self { descriptors: descriptors.collect(), finished: AtomicU64::new(0) }
    }

    fn store(&self, steps: &[Step], tile: usize, status: Option<Status>, value: u64) {
        let tag = status.map_or(0, Status::tag);
        let put = |location: &Location, step: &Step, value: u64| match status {
            Some(_) => location.store(step, value),
            None => location.clear(step, value),
        };
        for step in steps {
            match (&self.descriptors[tile], step.role) {
                (Descriptor::Words(words), Role::Word { word, .. }) => {
                    put(&words[usize::from(word)], step, value << TAG_BITS | tag);
                }
                (Descriptor::Halves(words), Role::Word { word, first, halves, .. }) => {
                    for half in first..first + halves {
                        put(&words[usize::from(word)][usize::from(half)], step, if half == 0 { value } else { tag });
                    }
                }
                (Descriptor::Split { tag: location, .. }, Role::Tag) => put(location, step, tag),
                (Descriptor::Split { slots, .. }, role @ Role::Value { .. }) => {
                    let Some(slot) = role.slot(status) else { continue };
                    // SAFETY: loom has just checked that no other access to the cell is concurrent.
                    slots[slot].with_mut(|place| unsafe { *place = value });
                }
                _ => order(step),
            }
        }
    }

    /// The status and the value, or nothing if the tile would have to wait.
    fn read(&self, sequences: &Sequences, steps: &[Step], tile: usize) -> Option<(Status, u64)> {
        let mut statuses = Vec::new();
        let mut parts = Vec::new();
        let mut loaded: Vec<(usize, u64)> = Vec::new();
        for step in steps {
            match (&self.descriptors[tile], step.role) {
                (Descriptor::Words(words), Role::Word { word, is_asked, .. }) => {
                    let found = words[usize::from(word)].load(step);
                    if is_asked {
                        statuses.push(Status::of_tag(found & 3)?);
                    }
                    parts.push(found >> TAG_BITS);
                }
                (Descriptor::Halves(words), Role::Word { word, first, halves, is_asked, .. }) => {
                    for half in first..first + halves {
                        let found = words[usize::from(word)][usize::from(half)].load(step);
                        if half == 0 {
                            parts.push(found);
                        } else if is_asked {
                            statuses.push(Status::of_tag(found)?);
                        }
                    }
                }
                (Descriptor::Split { tag, .. }, Role::Tag) => statuses.push(Status::of_tag(tag.load(step))?),
                (Descriptor::Split { slots, .. }, role @ Role::Value { .. }) => {
                    let Some(slot) = role.slot(statuses.last().copied()) else { continue };
                    // SAFETY: loom has just checked that no write of the cell is concurrent.
                    let found = slots[slot].with(|place| unsafe { *place });
                    loaded.push((slot, found));
                }
                _ => order(step),
            }
        }
        if statuses.iter().any(|status| *status != statuses[0]) {
            return None;
        }
        if sequences.layout == Layout::Split {
            let &status = statuses.first()?;
            let wanted = sequences.slot_of(status);
            let found = loaded.iter().find(|(slot, _)| *slot == wanted).or(loaded.last());
            return Some((status, found.map_or(POISON, |(_, value)| *value)));
        }
        // What nobody asks for is believed at once; of parts of different values nothing is made.
        let status = statuses.first().or(sequences.protocol.statuses.first()).copied()?;
        let is_whole = parts.len() >= sequences.words();
        let value = parts.first().copied().filter(|value| is_whole && parts.iter().all(|other| other == value));
        Some((status, value.unwrap_or(POISON)))
    }

    /// What the block of a tile does. Whether it got to its end.
    fn tile(&self, sequences: &Sequences, read: usize, tile: usize) -> bool {
        let tiles = self.descriptors.len();
        let steps = &sequences.reads[read];
        let mut prefix = 0;
        if sequences.protocol.publishes_aggregate(tile)
            && let Some(steps) = sequences.publish(Status::Aggregate)
        {
            self.store(steps, tile, Some(Status::Aggregate), sequence_of(tile));
        }
        if tile > 0 {
            for other in (0..tile).rev() {
                let Some((status, value)) = self.read(sequences, steps, other) else { return false };
                if status == Status::Aggregate && !sequences.protocol.reads(status) {
                    return false;
                }
                prefix = concatenate(value, prefix);
                if status == Status::Prefix {
                    break;
                }
            }
            let expected = sequence_up_to(tile);
            assert!(prefix == expected, "the prefix of tile {tile} is made of {}", describe_sequence(prefix));
        }
        if let Some(steps) = sequences.publish(Status::Prefix) {
            self.store(steps, tile, Some(Status::Prefix), concatenate(prefix, sequence_of(tile)));
        }
        // The barrier of the block is its one thread here.
        sequences.hand_over.iter().for_each(order);
        for step in &sequences.finish {
            if step.role != Role::Counter(Counter::Finished) {
                order(step);
                continue;
            }
            if self.finished.fetch_add(1, ordering(step, false)) + 1 == tiles as u64 {
                for other in 0..tiles {
                    self.store(&sequences.invalidate, other, None, POISON >> TAG_BITS);
                }
            }
        }
        true
    }
}

/// One execution. Whether every tile got its prefix.
fn launch(sequences: &std::sync::Arc<Sequences>, read: usize, tiles: usize) -> bool {
    let launch = Arc::new(Launch::new(sequences, tiles));
    let threads: Vec<_> = (1..tiles)
        .map(|tile| {
            let (launch, sequences) = (Arc::clone(&launch), std::sync::Arc::clone(sequences));
            loom::thread::spawn(move || launch.tile(&sequences, read, tile))
        })
        .collect();
    let mut finished = launch.tile(sequences, read, 0);
    for thread in threads {
        finished &= thread.join().unwrap_or(false);
    }
    finished
}
