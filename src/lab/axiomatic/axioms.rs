//! The axioms of the PTX memory consistency model, and the search for all executions that keep them.
//!
//! Written after the chapter "Memory Consistency Model" of the PTX ISA and after Lustig, Sahasrabuddhe and
//! Giroux, "A Formal Analysis of the NVIDIA PTX Memory Consistency Model" (ASPLOS 2019). The names of the
//! relations are theirs:
//!
//! - *morally strong*: two operations of one thread, or two strong ones whose scopes include each other's thread;
//!   memory operations must also overlap completely.
//! - *observation order*: a write before a read that reads from it, morally strong, through any chain of
//!   read-modify-write operations.
//! - *release pattern*: a release write, alone or with a later strong write to the location; or a fence with a later
//!   strong write. *Acquire pattern*: a strong read with a later acquire read of the location, or with a later fence,
//!   or an acquire read alone. The read of a reduction (`red`) makes no pattern with a fence.
//! - *synchronizes*: a release pattern whose write is observed by the read of an acquire pattern, the first and
//!   the last operation being morally strong; `fence.sc` in Fence-SC order; arrival and departure of a barrier; an
//!   arrival at an mbarrier that releases, and a wait for the phase in which it counts that acquires.
//! - *base causality order*: program order, synchronizes, and what follows from both in turn. *Causality order*:
//!   base causality between overlapping operations, also behind one step of observation.
//! - *coherence order*: a partial order of overlapping writes, total where they are morally strong or in causality
//!   order. Writes in a race may stay unordered.
//!
//! An execution is what each read reads from, the order of `fence.sc` operations, and coherence. The search
//! chooses one after the other and drops a choice as soon as an axiom is broken; all relations only grow, so nothing
//! is lost by it. Coherence is kept as small as the axioms allow, since more of it only forbids more.

use super::program::{Expression, Program, Register, Scope, Semantics};
use super::skeleton::{Definition, Event, EventKind, Skeleton};
use std::fmt::Write as _;
use std::ops::ControlFlow;

/// A set of events, a bit each.
type Set = u128;

/// The largest number of events of one execution.
pub const MAXIMUM_EVENTS: usize = 128;

fn bit(event: usize) -> Set {
    1 << event
}

fn members(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (set != 0).then(|| {
            let event = set.trailing_zeros() as usize;
            set &= set - 1;
            event
        })
    })
}

/// Why a program cannot be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// One bit an event: the sets have only so many.
    #[error("an execution of {events} events is more than the {MAXIMUM_EVENTS} that the search holds")]
    TooManyEvents { events: usize },
}

/// A relation that is kept transitive: the followers of each event.
#[derive(Debug, Clone)]
struct Order {
    after: Vec<Set>,
}

impl Order {
    fn new(events: usize) -> Self {
        Self { after: vec![0; events] }
    }

    fn has(&self, first: usize, second: usize) -> bool {
        self.after[first] & bit(second) != 0
    }

    fn add(&mut self, first: usize, second: usize) {
        if self.has(first, second) {
            return;
        }
        let reached = self.after[second] | bit(second);
        for event in 0..self.after.len() {
            if event == first || self.has(event, first) {
                self.after[event] |= reached;
            }
        }
    }

    fn before(&self, event: usize) -> Set {
        (0..self.after.len()).filter(|&other| self.has(other, event)).map(bit).fold(0, |set, one| set | one)
    }

    fn is_acyclic(&self) -> bool {
        (0..self.after.len()).all(|event| !self.has(event, event))
    }
}

/// Where a read's cell comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The value before the program.
    Initial,
    /// A write event.
    Write(usize),
}

/// One cell of one read event.
#[derive(Debug, Clone, Copy)]
struct Slot {
    read: usize,
    cell: usize,
}

/// What does not change during the search through one skeleton.
struct Frame<'a> {
    skeleton: &'a Skeleton,
    initial: Vec<u64>,
    slots: Vec<Slot>,
    /// The order in which slots are chosen.
    slot_order: Vec<usize>,
    /// Index of the slot of an event's first cell.
    first_slot: Vec<usize>,
    reads: Set,
    writes: Set,
    fences: Set,
    strong_memory: Set,
    overlap: Vec<Set>,
    program_order: Vec<Set>,
    morally_strong: Vec<Set>,
    /// By write: the first operations of release patterns that end in it.
    release_heads: Vec<Set>,
    /// By read: the last operations of acquire patterns that begin with it.
    acquire_tails: Vec<Set>,
    /// By cell: the writes to it.
    cell_writes: Vec<Vec<usize>>,
    /// Pairs of morally strong fence.sc of different threads.
    fence_pairs: Vec<(usize, usize)>,
}

/// The choices so far and what follows.
#[derive(Debug, Clone)]
struct State {
    from: Vec<Option<Source>>,
    base: Order,
    observation: Order,
    coherence: Order,
    /// Dependencies and what is read.
    thin: Order,
}

/// One consistent execution.
pub struct Execution<'a> {
    program: &'a Program,
    frame: &'a Frame<'a>,
    state: &'a State,
    cause: Vec<Set>,
}

/// Two operations in a data race: conflicting, not morally strong, in no causality order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Race {
    /// The one.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// They overlap in part only. The axioms then promise nothing.
    pub mixed_size: bool,
}

/// What a search did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Executions and beginnings of executions that were tested.
    pub candidates: u64,
    /// Executions that keep all axioms.
    pub consistent: u64,
}

impl Statistics {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.candidates += other.candidates;
        self.consistent += other.consistent;
    }
}

/// Calls `visit` with every consistent execution, until it breaks.
///
/// # Errors
/// When the program has more events than the search holds.
pub fn search(
    program: &Program,
    visit: &mut dyn FnMut(&Execution<'_>) -> ControlFlow<()>,
) -> Result<Statistics, ModelError> {
    let mut statistics = Statistics::default();
    for skeleton in program.skeletons() {
        if skeleton.events.len() > MAXIMUM_EVENTS {
            return Err(ModelError::TooManyEvents { events: skeleton.events.len() });
        }
        let frame = Frame::new(program, &skeleton);
        let mut search = Search { program, frame: &frame, statistics: &mut statistics, visit };
        if search.start().is_break() {
            break;
        }
    }
    Ok(statistics)
}

impl<'a> Frame<'a> {
    fn new(program: &Program, skeleton: &'a Skeleton) -> Self {
        let events = &skeleton.events;
        let count = events.len();
        let cells = program.initial_values();
        let set = |test: &dyn Fn(&Event) -> bool| {
            events.iter().enumerate().filter(|(_, event)| test(event)).fold(0, |set, (index, _)| set | bit(index))
        };
        let reads = set(&|event| event.kind == EventKind::Read);
        let writes = set(&|event| event.kind == EventKind::Write);
        let fences = set(&|event| matches!(event.kind, EventKind::Fence(_)));
        let strong_memory = set(&|event| event.semantics != Semantics::Weak) & (reads | writes);
        let relation = |test: &dyn Fn(usize, usize) -> bool| -> Vec<Set> {
            (0..count)
                .map(|first| {
                    (0..count)
                        .filter(|&second| second != first && test(first, second))
                        .fold(0, |set, second| set | bit(second))
                })
                .collect()
        };
        let overlap = relation(&|first, second| events[first].cells.iter().any(|c| events[second].cells.contains(c)));
        let program_order = relation(&|first, second| {
            let (one, other) = (&events[first], &events[second]);
            one.thread == other.thread && one.position < other.position
        });
        let place = |event: usize| program.threads[events[event].thread].place;
        let is_memory = |event: usize| (reads | writes) & bit(event) != 0;
        let is_strong = |event: usize| (strong_memory | fences) & bit(event) != 0;
        let reaches = |first: usize, second: usize| place(first).reaches(events[first].scope, place(second));
        let morally_strong = relation(&|first, second| {
            let ordered = events[first].thread == events[second].thread
                || (is_strong(first) && is_strong(second) && reaches(first, second) && reaches(second, first));
            let whole = !(is_memory(first) && is_memory(second)) || events[first].cells == events[second].cells;
            ordered && whole
        });
        let strong_write = |event: usize| writes & strong_memory & bit(event) != 0;
        let strong_read = |event: usize| reads & strong_memory & bit(event) != 0;
        let release_heads = (0..count)
            .map(|write| {
                let mut heads = 0;
                if strong_write(write) {
                    for head in 0..count {
                        let before = program_order[head] & bit(write) != 0;
                        let releases = writes & bit(head) != 0 && events[head].semantics.releases();
                        if (releases && (head == write || (before && overlap[head] & bit(write) != 0)))
                            || (fences & bit(head) != 0 && before)
                        {
                            heads |= bit(head);
                        }
                    }
                }
                heads
            })
            .collect();
        let acquire_tails = (0..count)
            .map(|read| {
                let mut tails = 0;
                if strong_read(read) {
                    for tail in 0..count {
                        let after = program_order[read] & bit(tail) != 0;
                        let acquires = reads & bit(tail) != 0 && events[tail].semantics.acquires();
                        if (acquires && (tail == read || (after && overlap[read] & bit(tail) != 0)))
                            || (fences & bit(tail) != 0 && after && !events[read].reduction)
                        {
                            tails |= bit(tail);
                        }
                    }
                }
                tails
            })
            .collect();
        let mut slots = Vec::new();
        let mut first_slot = vec![usize::MAX; count];
        for read in members(reads) {
            first_slot[read] = slots.len();
            slots.extend(events[read].cells.iter().map(|&cell| Slot { read, cell }));
        }
        // First the counters that a condition asks for: much follows from who counted when.
        let is_counted = |slot: &Slot| {
            events[slot.read].partner.is_some()
                && slots_of_conditions(skeleton)
                    .any(|read| events[read].partner.is_some() && events[read].cells == events[slot.read].cells)
        };
        let (mut slot_order, rest): (Vec<usize>, Vec<usize>) =
            (0..slots.len()).partition(|&slot| is_counted(&slots[slot]));
        slot_order.extend(rest);
        let cell_writes = (0..cells.len())
            .map(|cell| members(writes).filter(|&write| events[write].cells.contains(&cell)).collect())
            .collect();
        let mut fence_pairs = Vec::new();
        let sequential = set(&|event| event.kind == EventKind::Fence(true));
        for first in members(sequential) {
            for second in members(sequential & morally_strong[first]).filter(|&second| second > first) {
                if events[first].thread != events[second].thread {
                    fence_pairs.push((first, second));
                }
            }
        }
        Self {
            skeleton,
            initial: cells,
            slots,
            slot_order,
            first_slot,
            reads,
            writes,
            fences,
            strong_memory,
            overlap,
            program_order,
            morally_strong,
            release_heads,
            acquire_tails,
            cell_writes,
            fence_pairs,
        }
    }

    fn start(&self, program: &Program) -> State {
        let events = &self.skeleton.events;
        let count = events.len();
        let mut state = State {
            from: vec![None; self.slots.len()],
            base: Order { after: self.program_order.clone() },
            observation: Order::new(count),
            coherence: Order::new(count),
            thin: Order::new(count),
        };
        for (first, event) in events.iter().enumerate() {
            if let (EventKind::Read, Some(write)) = (event.kind, event.partner) {
                state.observation.add(first, write);
            }
            for (second, other) in events.iter().enumerate() {
                let (here, there) = (program.threads[event.thread].place, program.threads[other.thread].place);
                let synchronizes = match (event.kind, other.kind) {
                    (EventKind::Arrive(number, time), EventKind::Depart(same, then)) => {
                        (number, time) == (same, then) && here.reaches(Scope::Cta, there)
                    }
                    (EventKind::PhaseArrival(phase), EventKind::PhaseWait(same)) => {
                        let orders = event.semantics.releases() && other.semantics.acquires();
                        phase == same && orders && here.reaches(event.scope, there) && there.reaches(other.scope, here)
                    }
                    _ => false,
                };
                if synchronizes {
                    state.base.add(first, second);
                }
            }
        }
        for &(read, event) in &self.skeleton.dependencies {
            state.thin.add(read, event);
        }
        state
    }

    /// The events that overlap and are morally strong with it.
    fn strongly_conflicting(&self, event: usize) -> Set {
        self.overlap[event] & self.morally_strong[event]
    }

    /// Lets a slot read from a source. `false` if No-Thin-Air forbids it.
    fn read_from(&self, state: &mut State, slot: usize, source: Source) -> bool {
        state.from[slot] = Some(source);
        let Source::Write(write) = source else { return true };
        let read = self.slots[slot].read;
        if state.thin.has(read, write) {
            return false;
        }
        state.thin.add(write, read);
        if self.morally_strong[read] & bit(write) == 0 {
            return true;
        }
        if let (Some(own), true) = (self.skeleton.events[read].partner, self.strongly_conflicting(write) != 0)
            && own != write
            && self.morally_strong[own] & bit(write) != 0
        {
            // Otherwise the own write would come before the one that its read has seen.
            state.coherence.add(write, own);
        }
        if state.observation.has(write, read) {
            return true;
        }
        state.observation.add(write, read);
        let heads = members(state.observation.before(write) | bit(write)).fold(0, |set, w| set | self.release_heads[w]);
        let tails = members(state.observation.after[read] | bit(read)).fold(0, |set, r| set | self.acquire_tails[r]);
        for head in members(heads) {
            for tail in members(tails & self.morally_strong[head]) {
                state.base.add(head, tail);
            }
        }
        true
    }

    /// The causality order between overlapping memory operations.
    fn cause(&self, state: &State) -> Vec<Set> {
        (0..self.skeleton.events.len())
            .map(|event| {
                let mut after = state.base.after[event];
                for observer in members(state.observation.after[event]) {
                    after |= state.base.after[observer] & self.overlap[observer];
                }
                after & self.overlap[event]
            })
            .collect()
    }

    /// Whether the source of a read comes before that write in coherence order.
    fn precedes(&self, state: &State, source: Source, write: usize) -> bool {
        match source {
            Source::Initial => true,
            Source::Write(from) => state.coherence.has(from, write),
        }
    }

    /// Tests all axioms on what is chosen so far, and lets coherence follow causality.
    fn holds(&self, state: &mut State) -> bool {
        // Fence-SC: its order is part of base causality, which then must not come round to a fence.
        if members(self.fences).any(|fence| state.base.has(fence, fence)) {
            return false;
        }
        // Coherence.
        let cause = self.cause(state);
        for first in members(self.writes) {
            for second in members(cause[first] & self.writes) {
                state.coherence.add(first, second);
            }
        }
        if !state.coherence.is_acyclic() {
            return false;
        }
        let events = &self.skeleton.events;
        let mut location = Order::new(0);
        location.after = (0..events.len()).map(|event| self.program_order[event] & self.overlap[event]).collect();
        for first in members(self.writes) {
            location.after[first] |= state.coherence.after[first] & self.strongly_conflicting(first);
        }
        for (slot, &Slot { read, cell }) in self.slots.iter().enumerate() {
            let Some(source) = state.from[slot] else { continue };
            // Causality: nothing from the future, nothing that was replaced before.
            if let Source::Write(write) = source {
                if cause[read] & bit(write) != 0 || write == read {
                    return false;
                }
                if self.strongly_conflicting(read) & bit(write) != 0 {
                    location.after[write] |= bit(read);
                }
            }
            for &write in &self.cell_writes[cell] {
                if source == Source::Write(write) || !self.precedes(state, source, write) {
                    continue;
                }
                if cause[write] & bit(read) != 0 {
                    return false;
                }
                if self.strongly_conflicting(read) & bit(write) != 0 {
                    location.after[read] |= bit(write);
                }
                // Atomicity of read-modify-write operations.
                if let Some(own) = events[read].partner
                    && own != write
                    && self.strongly_conflicting(own) & bit(write) != 0
                    && state.coherence.has(write, own)
                {
                    return false;
                }
            }
            // Single-copy atomicity: not in part from a write and in part from before it.
            if let Source::Write(write) = source
                && self.strongly_conflicting(read) & bit(write) != 0
            {
                let first = self.first_slot[read];
                for other in first..first + events[read].cells.len() {
                    if let Some(before) = state.from[other]
                        && before != source
                        && self.precedes(state, before, write)
                    {
                        return false;
                    }
                }
            }
        }
        // Sequential consistency per location.
        let memory = self.reads | self.writes;
        for middle in members(memory) {
            let after = location.after[middle];
            if after != 0 {
                for event in members(memory) {
                    if location.after[event] & bit(middle) != 0 {
                        location.after[event] |= after;
                    }
                }
            }
        }
        location.is_acyclic()
    }

    /// The value of a register, as far as it is known.
    fn register(&self, state: &State, register: Register) -> Option<u64> {
        match self.skeleton.definitions.get(&register)? {
            Definition::Computed(expression) => self.evaluate(state, expression),
            &Definition::Read(event, cell) => {
                let slot = self.first_slot[event] + cell;
                match state.from[slot]? {
                    Source::Initial => Some(self.initial[self.slots[slot].cell]),
                    Source::Write(write) => self.written(state, write, self.slots[slot].cell),
                }
            }
        }
    }

    fn evaluate(&self, state: &State, expression: &Expression) -> Option<u64> {
        expression.evaluate(&mut |register| self.register(state, register))
    }

    /// What a write writes to a cell.
    fn written(&self, state: &State, write: usize, cell: usize) -> Option<u64> {
        let event = &self.skeleton.events[write];
        let position = event.cells.iter().position(|&other| other == cell)?;
        self.evaluate(state, event.values.get(position)?)
    }
}

/// The reads that conditions ask for directly.
fn slots_of_conditions(skeleton: &Skeleton) -> impl Iterator<Item = usize> {
    skeleton.constraints.iter().filter_map(|(condition, _)| {
        let Expression::Equal(left, _) = condition else { return None };
        let Expression::Register(register) = &**left else { return None };
        match skeleton.definitions.get(register)? {
            Definition::Read(event, _) => Some(*event),
            Definition::Computed(_) => None,
        }
    })
}

struct Search<'a, 'b> {
    program: &'a Program,
    frame: &'a Frame<'a>,
    statistics: &'b mut Statistics,
    visit: &'b mut dyn FnMut(&Execution<'_>) -> ControlFlow<()>,
}

impl Search<'_, '_> {
    fn start(&mut self) -> ControlFlow<()> {
        let state = self.frame.start(self.program);
        self.order_fences(state, 0)
    }

    /// Chooses the order of the fence.sc pairs from that one on.
    fn order_fences(&mut self, state: State, pair: usize) -> ControlFlow<()> {
        let Some(&(first, second)) = self.frame.fence_pairs.get(pair) else { return self.read(state, 0) };
        for (first, second) in [(first, second), (second, first)] {
            let mut next = state.clone();
            next.base.add(first, second);
            if members(self.frame.fences).all(|fence| !next.base.has(fence, fence)) {
                self.order_fences(next, pair + 1)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Chooses what the slots from that one on, in their order, read.
    fn read(&mut self, state: State, position: usize) -> ControlFlow<()> {
        let frame = self.frame;
        let Some(&slot) = frame.slot_order.get(position) else { return self.order_writes(state) };
        let Slot { read, cell } = frame.slots[slot];
        let writes = frame.cell_writes[cell].iter().map(|&write| Source::Write(write));
        for source in std::iter::once(Source::Initial).chain(writes) {
            let mut next = state.clone();
            if !frame.read_from(&mut next, slot, source) {
                continue;
            }
            // Before the costly test: do the conditions of this way hold, and has no other atomic taken it?
            let contradicted =
                frame.skeleton.constraints.iter().any(|(condition, holds)| {
                    frame.evaluate(&next, condition).is_some_and(|value| (value != 0) != *holds)
                });
            if contradicted || self.taken(&next, read, slot, source) {
                continue;
            }
            self.statistics.candidates += 1;
            if frame.holds(&mut next) {
                self.read(next, position + 1)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Whether a morally strong read-modify-write has read the same source: one would come between the other's
    /// read and write.
    fn taken(&self, state: &State, read: usize, slot: usize, source: Source) -> bool {
        let frame = self.frame;
        let events = &frame.skeleton.events;
        let Some(own) = events[read].partner else { return false };
        (0..frame.slots.len()).any(|other| {
            if other == slot || state.from[other].is_none() {
                return false;
            }
            let Slot { read: reader, cell } = frame.slots[other];
            let Some(theirs) = events[reader].partner else { return false };
            let strong = frame.morally_strong[own] & bit(theirs) != 0 && frame.morally_strong[read] & bit(theirs) != 0;
            let source_is_strong = match source {
                Source::Initial => true,
                Source::Write(write) => {
                    frame.morally_strong[own] & bit(write) != 0 && frame.morally_strong[theirs] & bit(write) != 0
                }
            };
            cell == frame.slots[slot].cell && state.from[other] == Some(source) && strong && source_is_strong
        })
    }

    /// Orders morally strong writes that nothing has ordered yet.
    fn order_writes(&mut self, state: State) -> ControlFlow<()> {
        let frame = self.frame;
        for first in members(frame.writes) {
            for second in members(frame.strongly_conflicting(first) & frame.writes).filter(|&second| second > first) {
                if state.coherence.has(first, second) || state.coherence.has(second, first) {
                    continue;
                }
                for (first, second) in [(first, second), (second, first)] {
                    let mut next = state.clone();
                    next.coherence.add(first, second);
                    self.statistics.candidates += 1;
                    if frame.holds(&mut next) {
                        self.order_writes(next)?;
                    }
                }
                return ControlFlow::Continue(());
            }
        }
        let mut state = state;
        if !frame.holds(&mut state) {
            return ControlFlow::Continue(());
        }
        self.statistics.consistent += 1;
        let cause = frame.cause(&state);
        (self.visit)(&Execution { program: self.program, frame, state: &state, cause })
    }
}

impl Execution<'_> {
    /// The events, by thread.
    pub fn events(&self) -> &[Event] {
        &self.frame.skeleton.events
    }

    /// What a register holds; nothing if this way through the program never sets it.
    pub fn register(&self, register: Register) -> Option<u64> {
        self.frame.register(self.state, register)
    }

    /// The values that a cell may have at the end: of the writes that no other follows in coherence order.
    pub fn finals(&self, cell: usize) -> Vec<u64> {
        let writes = &self.frame.cell_writes[cell];
        if writes.is_empty() {
            return vec![self.frame.initial[cell]];
        }
        self.last_writes(cell).filter_map(|write| self.frame.written(self.state, write, cell)).collect()
    }

    /// The writes to a cell that no other follows in coherence order.
    pub fn last_writes(&self, cell: usize) -> impl Iterator<Item = usize> {
        let writes = &self.frame.cell_writes[cell];
        writes.iter().copied().filter(move |&write| !writes.iter().any(|&other| self.state.coherence.has(write, other)))
    }

    /// Whether overlapping operations are in causality order.
    pub fn causes(&self, first: usize, second: usize) -> bool {
        self.cause[first] & bit(second) != 0
    }

    /// Whether base causality order has the one before the other, whatever they touch.
    pub fn precedes(&self, first: usize, second: usize) -> bool {
        self.state.base.has(first, second)
    }

    /// Whether overlapping writes are in coherence order.
    pub fn coherent(&self, first: usize, second: usize) -> bool {
        self.state.coherence.has(first, second)
    }

    /// The data races.
    pub fn races(&self) -> Vec<Race> {
        let mut races = Vec::new();
        let events = self.events();
        for first in members(self.frame.reads | self.frame.writes) {
            let others = self.frame.overlap[first] & !self.frame.morally_strong[first];
            for second in members(others).filter(|&second| second > first) {
                let conflicting = self.frame.writes & (bit(first) | bit(second)) != 0;
                let foreign = events[first].thread != events[second].thread;
                if conflicting && foreign && !self.causes(first, second) && !self.causes(second, first) {
                    races.push(Race { first, second, mixed_size: events[first].cells != events[second].cells });
                }
            }
        }
        races
    }

    /// Whether all operations of the pair are strong: for messages.
    pub fn is_strong(&self, event: usize) -> bool {
        self.frame.strong_memory & bit(event) != 0
    }

    /// An event in words: thread, instruction, cells, and for reads what is read from where.
    pub fn describe(&self, event: usize, value: &dyn Fn(usize, u64) -> String) -> String {
        let what = &self.events()[event];
        let thread = &self.program.threads[what.thread].name;
        let mut text = format!("{thread}: {}", what.label);
        for (position, &cell) in what.cells.iter().enumerate() {
            let name = self.program.cell_name(cell);
            match what.kind {
                EventKind::Read => {
                    let slot = self.frame.first_slot[event] + position;
                    let (read, from) = match self.state.from[slot] {
                        Some(Source::Write(write)) => {
                            let writer = &self.events()[write];
                            let from = format!("from {}: {}", self.program.threads[writer.thread].name, writer.label);
                            (self.frame.written(self.state, write, cell), from)
                        }
                        _ => (Some(self.frame.initial[cell]), String::from("as it was before")),
                    };
                    // Writing to a String cannot fail.
                    let _ = write!(text, ", {name} = {} ({from})", read.map_or(String::from("?"), |v| value(cell, v)));
                }
                _ => {
                    let written = self.frame.written(self.state, event, cell);
                    let _ = write!(text, ", {name} := {}", written.map_or(String::from("?"), |v| value(cell, v)));
                }
            }
        }
        text
    }

    /// All events by thread, what reads read, and the coherence order of each cell.
    pub fn transcript(&self, value: &dyn Fn(usize, u64) -> String) -> Vec<String> {
        let mut lines: Vec<String> = (0..self.events().len())
            .filter(|&event| !matches!(self.events()[event].kind, EventKind::Depart(..)))
            .map(|event| self.describe(event, value))
            .collect();
        for (cell, writes) in self.frame.cell_writes.iter().enumerate().filter(|(_, writes)| writes.len() > 1) {
            let name = |write: usize| {
                let event = &self.events()[write];
                let written = self.frame.written(self.state, write, cell).map_or(String::from("?"), |v| value(cell, v));
                format!("{}:{written}", self.program.threads[event.thread].name)
            };
            let mut ordered = writes.clone();
            ordered.sort_by_key(|&write| self.state.coherence.before(write).count_ones());
            let names: Vec<String> = ordered.iter().map(|&write| name(write)).collect();
            let total = ordered.windows(2).all(|pair| self.coherent(pair[0], pair[1]));
            let order = if total { names.join(" → ") } else { format!("{} (not all ordered)", names.join(", ")) };
            lines.push(format!("coherence of {}: {order}", self.program.cell_name(cell)));
        }
        lines
    }
}
