//! The programs that the protocol is checked by, and what every execution of each must keep.

use super::axioms::{Execution, ModelError};
use super::extract::ExtractError;
use super::program::{
    Access, Expression, Object, Operation, POISON, Place, Program, Register, Statement, Thread, describe_sequence,
    sequence_of, sequence_up_to,
};
use super::sequences::{Counter, Layout, RingBarrier, Role, Sequences, Status, Step, StepKind};
use super::skeleton::EventKind;
use crate::names::named;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Lanes of the narrow window: few, so that few tiles take several windows.
pub const NARROW_WINDOW: usize = 2;

/// With more tiles the clean-up is looked at with the wide window alone: what lanes beyond a prefix find multiplies with
/// the orders in which blocks count themselves.
const NARROW_HAND_OVER: usize = 4;

/// Why a protocol cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// Its PTX is not understood.
    #[error(transparent)]
    Extract(#[from] ExtractError),
    /// It has too many events for the search.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It may not go on.
    #[error("the executions of {tiles} tiles were not all looked at in the time allowed")]
    Unfinished { tiles: usize },
}

named! {
    /// What is checked.
    pub enum Part as "part of the protocol" {
        /// The prefixes of one launch.
        Composition = "composition",
        /// Descriptors at the end of a launch.
        HandOver = "hand-over",
        /// Ticket, count of finished blocks, epoch.
        Counters = "counters",
        /// Shared memory within a block.
        Block = "block",
    }
}

/// One way that look-back may take: which read of the kernel is meant, and how far each tile goes.
#[derive(Debug, Clone)]
pub(super) struct LookBack {
    pub read: usize,
    /// Lanes of a window.
    width: usize,
    /// By tile: how many aggregates it takes before it meets a prefix. Nothing for tile 0, nor where no tile
    /// publishes a prefix: then it takes all aggregates there are.
    stops: Vec<usize>,
}

/// The windows that a launch of so many tiles is looked at with: one that holds them all, and a narrow one.
pub(super) fn widths(tiles: usize) -> impl Iterator<Item = usize> {
    let narrow = (tiles > NARROW_WINDOW + 1).then_some(NARROW_WINDOW);
    [Some(tiles.max(1)), narrow].into_iter().flatten()
}

/// Calls `run` with every way for every read of the kernel.
pub(super) fn for_all_look_backs(
    sequences: &Sequences,
    tiles: usize,
    part: Part,
    run: &mut dyn FnMut(LookBack) -> Result<ControlFlow<()>, CheckError>,
) -> Result<(), CheckError> {
    let waits_for_either = sequences.protocol.statuses.len() > 1 && sequences.publish(Status::Aggregate).is_some();
    let choices = |tile: usize| if waits_for_either { tile.max(1) } else { 1 };
    // A chain reads one descriptor a tile.
    let is_narrow_too =
        sequences.protocol.reads(Status::Aggregate) && (part != Part::HandOver || tiles <= NARROW_HAND_OVER);
    let widths = widths(tiles).take(if is_narrow_too { 2 } else { 1 });
    for (read, width) in widths.flat_map(|width| (0..sequences.reads.len()).map(move |read| (read, width))) {
        let mut stops = vec![0; tiles];
        loop {
            if run(LookBack { read, width, stops: stops.clone() })?.is_break() {
                return Ok(());
            }
            // The next way, counted in digits of as many values as the tile has choices.
            let Some(tile) = (0..tiles).find(|&tile| stops[tile] + 1 < choices(tile)) else { break };
            stops[tile] += 1;
            stops[..tile].fill(0);
        }
    }
    Ok(())
}

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Tag,
    Value,
    Number,
}

/// The memory of one tile's descriptor.
#[derive(Debug, Clone)]
pub(super) enum Descriptor {
    Packed(Vec<Object>),
    Split { tag: Object, slots: Vec<Object> },
}

/// What must hold.
#[derive(Debug, Clone)]
pub(super) enum Requirement {
    /// A register holds a value.
    Register { register: Register, value: u64, what: String },
    /// Registers differ from each other.
    Different { registers: Vec<Register>, what: &'static str },
    /// All accesses to a cell come before the last ones, which are stores of that thread.
    ClearedBy { cell: usize, thread: usize, what: String },
    /// Each arrival at an mbarrier counts in the phase that the program says, and each wait is for it.
    Phases,
    /// A cell ends with a value.
    Final { cell: usize, value: u64, what: &'static str },
}

const INVALID: u64 = 0;
/// The epoch that is completed when a launch begins.
const EPOCH: u64 = 7;

/// The words that all blocks of a launch share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counters {
    pub ticket: Object,
    pub finished: Object,
    pub epochs: Object,
}

impl Counters {
    fn object(self, counter: Counter) -> Object {
        match counter {
            Counter::Ticket => self.ticket,
            Counter::Finished => self.finished,
            Counter::Epochs => self.epochs,
        }
    }
}

pub(super) struct Model<'a> {
    pub sequences: &'a Sequences,
    pub program: Program,
    meanings: Vec<Meaning>,
    descriptors: Vec<Descriptor>,
    pub requirements: Vec<Requirement>,
}

impl<'a> Model<'a> {
    pub fn new(sequences: &'a Sequences) -> Self {
        Self {
            sequences,
            program: Program::default(),
            meanings: Vec::new(),
            descriptors: Vec::new(),
            requirements: Vec::new(),
        }
    }

    pub fn object(&mut self, name: String, cells: &[(u64, Meaning)]) -> Object {
        self.meanings.extend(cells.iter().map(|(_, meaning)| *meaning));
        self.program.object(name, cells.iter().map(|(value, _)| *value).collect(), false)
    }

    /// Descriptors as a launch finds them: tags of no tile of this epoch, values of nobody.
    pub fn with_descriptors(mut self, tiles: usize) -> Self {
        for tile in 0..tiles {
            let value = (POISON, Meaning::Value);
            let tag = (INVALID, Meaning::Tag);
            let descriptor = match self.sequences.layout {
                Layout::Packed64 | Layout::Packed128 => Descriptor::Packed(
                    (0..self.sequences.words())
                        .map(|word| self.object(format!("word {word} of tile {tile}"), &[value, tag]))
                        .collect(),
                ),
                Layout::Split => Descriptor::Split {
                    tag: self.object(format!("tag of tile {tile}"), &[tag]),
                    slots: (0..self.sequences.slots())
                        .map(|slot| self.object(format!("slot {slot} of tile {tile}"), &[value]))
                        .collect(),
                },
            };
            self.descriptors.push(descriptor);
        }
        self
    }

    pub fn access(step: &Step, object: Object, first: u8, cells: u8, elements: u8) -> Access {
        Access { object, first, cells, elements, semantics: step.semantics, scope: step.scope }
    }

    /// A fence or barrier.
    pub fn order(step: &Step) -> Option<Statement> {
        match step.kind {
            StepKind::Fence(sequential) => Some(Statement::Fence { sequential, scope: step.scope }),
            StepKind::Barrier(number) => Some(Statement::Barrier { number }),
            _ => None,
        }
    }

    /// Stores to a descriptor: the steps of `publish` or of `invalidate`.
    pub fn store(&self, steps: &[Step], tile: usize, status: Option<Status>, value: &Expression) -> Vec<Statement> {
        let tag = Expression::Constant(status.map_or(INVALID, Status::tag));
        let name = match status {
            Some(Status::Aggregate) => "publish aggregate",
            Some(Status::Prefix) => "publish prefix",
            None => "clear",
        };
        let make = |step: &Step, object, first, cells, elements, values: &[&Expression]| Statement::Store {
            access: Self::access(step, object, first, cells, elements),
            values: values.iter().map(|&value| value.clone()).collect(),
            address: Vec::new(),
            label: format!("{name}: {}", step.opcode),
        };
        steps
            .iter()
            .filter_map(|step| match (&self.descriptors[tile], step.role) {
                // Each word has a part of the value: here what the whole value is.
                (Descriptor::Packed(words), Role::Word { word, first, halves, elements, .. }) => {
                    let both = [value, &tag];
                    let values = &both[usize::from(first)..usize::from(first + halves).min(2)];
                    Some(make(step, *words.get(usize::from(word))?, first, halves, elements, values))
                }
                (Descriptor::Split { tag: object, .. }, Role::Tag) => Some(make(step, *object, 0, 1, 1, &[&tag])),
                (Descriptor::Split { slots, .. }, role @ Role::Value { .. }) => {
                    Some(make(step, *slots.get(role.slot(status)?)?, 0, 1, 1, &[value]))
                }
                _ => Self::order(step),
            })
            .collect()
    }

    /// A read that nobody waits for: of any status, and of the value only if there is one.
    fn glance(&mut self, steps: &[Step], tile: usize) -> Vec<Statement> {
        let read = |model: &mut Self, status| model.read(steps, tile, status).0;
        if let Descriptor::Packed(_) = self.descriptors[tile] {
            // Value and tag come together.
            let mut statements = read(self, Status::Aggregate);
            statements.retain(|statement| !matches!(statement, Statement::Await(_)));
            return statements;
        }
        let (aggregate, prefix) = (read(self, Status::Aggregate), read(self, Status::Prefix));
        // Both are the same up to where the one that came with a status waits for it.
        let Some(asked) = aggregate.iter().position(|statement| matches!(statement, Statement::Await(_))) else {
            return Vec::new();
        };
        let Statement::Await(condition) = &aggregate[asked] else { return Vec::new() };
        let loads = |statements: &[Statement]| {
            statements.iter().filter(|s| matches!(s, Statement::Load { .. })).cloned().collect::<Vec<_>>()
        };
        let (mut statements, behind) = (aggregate[..asked].to_vec(), &aggregate[asked + 1..]);
        if !loads(behind).is_empty() {
            let Expression::Equal(tag, _) = condition else { return statements };
            let is_prefix = Expression::Equal(tag.clone(), Box::new(Expression::Constant(Status::Prefix.tag())));
            let otherwise = vec![Statement::If {
                condition: is_prefix,
                then: prefix.get(asked + 1..).unwrap_or_default().to_vec(),
                otherwise: Vec::new(),
            }];
            statements.push(Statement::If { condition: condition.clone(), then: behind.to_vec(), otherwise });
        }
        statements
    }

    /// A wait that ends with that status, and the value that it brings.
    pub fn read(&mut self, steps: &[Step], tile: usize, status: Status) -> (Vec<Statement>, Expression) {
        let mut statements = Vec::new();
        let mut value = Expression::Constant(POISON);
        let mut parts = BTreeSet::new();
        let descriptor = self.descriptors[tile].clone();
        let wanted = self.sequences.slot_of(status);
        for step in steps {
            let label = format!("read: {}", step.opcode);
            let mut load = |access: Access, into: Vec<Register>| {
                statements.push(Statement::Load { access, into, address: Vec::new(), label: label.clone() });
            };
            let tag = match (&descriptor, step.role) {
                (Descriptor::Packed(words), Role::Word { word, first, halves, elements, is_asked }) => {
                    let into: Vec<Register> = (0..halves).map(|_| self.program.register()).collect();
                    load(Self::access(step, words[usize::from(word)], first, halves, elements), into.clone());
                    if first == 0 {
                        let part = Expression::Register(into[0]);
                        value = if parts.is_empty() { part } else { value.same(part) };
                        parts.insert(word);
                    }
                    if is_asked && first + halves == 2 { into.last().copied() } else { None }
                }
                (Descriptor::Split { tag, .. }, Role::Tag) => {
                    let register = self.program.register();
                    load(Self::access(step, *tag, 0, 1, 1), vec![register]);
                    Some(register)
                }
                (Descriptor::Split { slots, .. }, role @ Role::Value { .. }) => {
                    let slot = role.slot(Some(status));
                    let register = self.program.register();
                    if let Some(&object) = slot.and_then(|slot| slots.get(slot)) {
                        load(Self::access(step, object, 0, 1, 1), vec![register]);
                    }
                    // Where several slots are loaded, the one that a publish of this status writes counts.
                    if slot == Some(wanted) || value == Expression::Constant(POISON) {
                        value = Expression::Register(register);
                    }
                    None
                }
                _ => {
                    statements.extend(Self::order(step));
                    None
                }
            };
            if let Some(register) = tag {
                statements.push(Statement::Await(Expression::register_is(register, status.tag())));
            }
        }
        // Of a value of which a part is not loaded nothing is known.
        if matches!(descriptor, Descriptor::Packed(_)) && parts.len() < self.sequences.words() {
            value = Expression::Constant(POISON);
        }
        (statements, value)
    }

    pub fn thread(&mut self, block: usize, name: String, body: Vec<Statement>) -> usize {
        let number = u16::try_from(block).unwrap_or(u16::MAX);
        let place = Place { gpu: 0, cluster: number, cta: number };
        self.program.threads.push(Thread { name, place, body });
        self.program.threads.len() - 1
    }

    /// The threads of all tiles: by tile, lane 0 first. Returns the numbers of the threads.
    fn launch(&mut self, look_back: &LookBack) -> Vec<Vec<usize>> {
        let sequences = self.sequences;
        let steps = &sequences.reads[look_back.read];
        let mut threads = Vec::new();
        for (tile, &stop) in look_back.stops.iter().enumerate() {
            let total = Expression::Constant(sequence_of(tile));
            let mut bodies = vec![Vec::new()];
            let mut prefix = Expression::Constant(0);
            if sequences.protocol.publishes_aggregate(tile)
                && let Some(steps) = sequences.publish(Status::Aggregate)
            {
                bodies[0].extend(self.store(steps, tile, Some(Status::Aggregate), &total));
            }
            if tile > 0 {
                let with_prefix = sequences.protocol.reads(Status::Prefix).then_some(stop);
                let count = with_prefix.map_or(tile, |stop| stop + 1);
                bodies.resize(count.min(look_back.width).max(1), Vec::new());
                for back in 0..count {
                    let status = if with_prefix == Some(back) { Status::Prefix } else { Status::Aggregate };
                    let (statements, value) = self.read(steps, tile - 1 - back, status);
                    bodies[back % look_back.width].extend(statements);
                    prefix = value.then(prefix);
                }
                if with_prefix.is_some() && look_back.width < look_back.stops.len() {
                    // The lanes of the last window beyond the prefix read, too: whatever is there.
                    for back in (count..tile).take_while(|back| back % look_back.width != 0) {
                        bodies.resize(bodies.len().max(back % look_back.width + 1), Vec::new());
                        let statements = self.glance(steps, tile - 1 - back);
                        bodies[back % look_back.width].extend(statements);
                    }
                }
                let register = self.program.register();
                bodies[0].push(Statement::Set { register, value: prefix.clone() });
                self.requirements.push(Requirement::Register {
                    register,
                    value: sequence_up_to(tile),
                    what: format!("the prefix of tile {tile}"),
                });
            }
            if let Some(steps) = sequences.publish(Status::Prefix) {
                bodies[0].extend(self.store(steps, tile, Some(Status::Prefix), &prefix.then(total)));
            }
            let numbers = bodies
                .into_iter()
                .enumerate()
                .map(|(lane, body)| self.thread(tile, format!("tile {tile} lane {lane}"), body))
                .collect();
            threads.push(numbers);
        }
        threads
    }

    pub fn composition(sequences: &'a Sequences, look_back: &LookBack) -> Self {
        let mut model = Self::new(sequences).with_descriptors(look_back.stops.len());
        model.launch(look_back);
        model
    }

    pub fn hand_over(sequences: &'a Sequences, look_back: &LookBack, last: usize) -> Self {
        let tiles = look_back.stops.len();
        let mut model = Self::new(sequences).with_descriptors(tiles);
        let finished = model.object(String::from("finished"), &[(0, Meaning::Number)]);
        let threads = model.launch(look_back);
        for (tile, numbers) in threads.iter().enumerate() {
            for &number in numbers {
                let is_first = number == numbers[0];
                let steps = sequences.hand_over.iter().filter(|step| {
                    // The other lanes go to the barrier; what else stands here is done by thread 0.
                    is_first || matches!(step.kind, StepKind::Barrier(_))
                });
                let order: Vec<Statement> = steps.filter_map(Self::order).collect();
                model.program.threads[number].body.extend(order);
            }
            let before = model.program.register();
            let mut body = Vec::new();
            for step in &sequences.finish {
                body.extend(if step.kind == StepKind::Update {
                    Some(Self::update(step, finished, before))
                } else {
                    Self::order(step)
                });
            }
            if tile == last {
                body.push(Statement::Await(Expression::register_is(before, tiles as u64 - 1)));
                for other in 0..tiles {
                    body.extend(model.store(&sequences.invalidate, other, None, &Expression::Constant(POISON)));
                }
            }
            model.program.threads[numbers[0]].body.extend(body);
        }
        model.require_cleared(threads[last][0]);
        model
    }

    /// That a thread's clean-up comes behind all other accesses to the descriptors.
    pub fn require_cleared(&mut self, thread: usize) {
        for (tile, descriptor) in self.descriptors.iter().enumerate() {
            let first_cell = |object: &Object| self.program.first_cell(*object);
            let tags: Vec<usize> = match descriptor {
                Descriptor::Packed(words) => words.iter().map(|word| first_cell(word) + 1).collect(),
                Descriptor::Split { tag, .. } => vec![first_cell(tag)],
            };
            self.requirements.extend(tags.into_iter().map(|cell| {
                let what = format!("the descriptor of tile {tile}");
                Requirement::ClearedBy { cell, thread, what }
            }));
        }
    }

    /// Ticket, count of finished blocks and epochs, as a launch finds them.
    pub fn with_counters(mut self) -> (Self, Counters) {
        let mut number = |name: &str, value| self.object(name.to_owned(), &[(value, Meaning::Number)]);
        let counters =
            Counters { ticket: number("ticket", 0), finished: number("finished", 0), epochs: number("epochs", EPOCH) };
        (self, counters)
    }

    /// What the last block writes for the next launch, once it knows from the count before its own that it is the last of so
    /// many.
    pub fn reset(&self, counters: Counters, (before, blocks): (Register, usize)) -> Vec<Statement> {
        let store = |step: &Step| match (step.kind, step.role) {
            (StepKind::Store, Role::Counter(counter)) => Some(Statement::Store {
                access: Self::access(step, counters.object(counter), 0, 1, 1),
                values: vec![Expression::Constant(if counter == Counter::Epochs { EPOCH + 1 } else { 0 })],
                address: Vec::new(),
                label: format!("reset: {}", step.opcode),
            }),
            _ => Self::order(step),
        };
        let is_last = Statement::Await(Expression::register_is(before, blocks as u64 - 1));
        [is_last].into_iter().chain(self.sequences.resets.iter().filter_map(store)).collect()
    }

    /// A load of the epoch, which has to be the one that the launch runs at.
    pub fn load_epoch(&mut self, step: &Step, counters: Counters, block: usize) -> Statement {
        let register = self.program.register();
        let what = format!("the epoch of block {block}");
        self.requirements.push(Requirement::Register { register, value: EPOCH, what });
        let access = Self::access(step, counters.epochs, 0, 1, 1);
        Statement::Load { access, into: vec![register], address: Vec::new(), label: step.opcode.clone() }
    }

    /// That the next launch finds both counters at 0.
    pub fn require_reset(&mut self, counters: Counters) {
        let hands_out = self.sequences.start.iter().any(|step| step.role == Role::Counter(Counter::Ticket));
        let ticket = hands_out.then_some((counters.ticket, "the ticket"));
        for (object, what) in [(counters.finished, "the count of finished blocks")].into_iter().chain(ticket) {
            let cell = self.program.first_cell(object);
            self.requirements.push(Requirement::Final { cell, value: 0, what });
        }
    }

    pub fn update(step: &Step, object: Object, into: Register) -> Statement {
        Statement::Update {
            access: Self::access(step, object, 0, 1, 1),
            into: Some(into),
            operation: Operation::Add(Expression::Constant(1)),
            label: step.opcode.clone(),
        }
    }

    /// Every block takes a number from a counter.
    pub fn numbers(sequences: &'a Sequences, blocks: usize, counter: Counter) -> Option<Self> {
        let steps = if counter == Counter::Ticket { &sequences.start } else { &sequences.finish };
        let step = steps.iter().find(|step| step.kind == StepKind::Update && step.role == Role::Counter(counter))?;
        let mut model = Self::new(sequences);
        let object = model.object(counter.to_string(), &[(0, Meaning::Number)]);
        let registers: Vec<Register> = (0..blocks)
            .map(|block| {
                let register = model.program.register();
                model.thread(block, format!("block {block}"), vec![Self::update(step, object, register)]);
                register
            })
            .collect();
        let what = if counter == Counter::Ticket { "two blocks take one ticket" } else { "two blocks count as one" };
        model.requirements.push(Requirement::Different { registers, what });
        Some(model)
    }

    /// Every block starts and finishes; the last one ends the launch. Blocks are alike, so it is the last by number.
    pub fn counters(sequences: &'a Sequences, blocks: usize) -> Self {
        let (mut model, counters) = Self::new(sequences).with_counters();
        for block in 0..blocks {
            let mut body = Vec::new();
            let before = model.program.register();
            for step in sequences.start.iter().chain(&sequences.hand_over).chain(&sequences.finish) {
                match (step.kind, step.role) {
                    (StepKind::Update, Role::Counter(Counter::Finished)) => {
                        body.push(Self::update(step, counters.finished, before));
                    }
                    (StepKind::Update, Role::Counter(counter)) => {
                        let register = model.program.register();
                        body.push(Self::update(step, counters.object(counter), register));
                    }
                    (StepKind::Load, Role::Counter(Counter::Epochs)) => {
                        body.push(model.load_epoch(step, counters, block));
                    }
                    // One thread stands for the block here, so a barrier would order nothing.
                    (StepKind::Fence(_), _) => body.extend(Self::order(step)),
                    _ => {}
                }
            }
            if block + 1 == blocks {
                body.extend(model.reset(counters, (before, blocks)));
            }
            model.thread(block, format!("block {block}"), body);
        }
        model.require_reset(counters);
        model
    }

    /// One thread writes, the others of its block read.
    pub fn block(sequences: &'a Sequences, writer: &[Step], reader: &[Step]) -> Self {
        let mut model = Self::new(sequences);
        let shared = model.object(String::from("shared"), &[(POISON, Meaning::Number)]);
        let mut first = Vec::new();
        let mut others = Vec::new();
        let mut wrote = false;
        for step in writer {
            match (step.kind, step.role) {
                (StepKind::Store, Role::Shared) if !wrote => {
                    wrote = true;
                    first.push(Statement::Store {
                        access: Self::access(step, shared, 0, 1, 1),
                        values: vec![Expression::Constant(1)],
                        address: Vec::new(),
                        label: step.opcode.clone(),
                    });
                }
                (StepKind::Barrier(_), _) => {
                    first.extend(Self::order(step));
                    others.extend(Self::order(step));
                }
                _ => {}
            }
        }
        let load = reader.iter().find(|step| step.kind == StepKind::Load && step.role == Role::Shared);
        if let (Some(step), true) = (load, wrote) {
            let register = model.program.register();
            others.push(Statement::Load {
                access: Self::access(step, shared, 0, 1, 1),
                into: vec![register],
                address: Vec::new(),
                label: step.opcode.clone(),
            });
            let what = String::from("what a thread of another warp finds in shared memory");
            model.requirements.push(Requirement::Register { register, value: 1, what });
        }
        model.thread(0, String::from("thread 0"), first);
        model.thread(0, String::from("thread 32"), others);
        model
    }

    /// What is wrong with an execution, if anything.
    pub fn judge(&self, execution: &Execution<'_>) -> Option<String> {
        for requirement in &self.requirements {
            match requirement {
                Requirement::Register { register, value, what } => {
                    let found = execution.register(*register)?;
                    if found != *value {
                        return Some(match what.starts_with("the prefix") {
                            true => format!("{what} is made of {}", describe_sequence(found)),
                            false => format!(
                                "{what} is {}",
                                if found == POISON { "not there".to_owned() } else { found.to_string() }
                            ),
                        });
                    }
                }
                Requirement::Different { registers, what } => {
                    let values: Vec<Option<u64>> =
                        registers.iter().map(|&register| execution.register(register)).collect();
                    if (1..values.len()).any(|index| values[..index].contains(&values[index])) {
                        return Some((*what).to_owned());
                    }
                }
                Requirement::ClearedBy { cell, thread, what } => {
                    if let Some(wrong) = self.not_cleared(execution, *cell, *thread) {
                        return Some(format!("{what}: {wrong}"));
                    }
                }
                Requirement::Phases => {
                    if let Some(what) = Self::wrong_phase(execution) {
                        return Some(what);
                    }
                }
                Requirement::Final { cell, value, what } => {
                    if let Some(found) = execution.finals(*cell).into_iter().find(|found| found != value) {
                        return Some(format!("{what} may end as {found}"));
                    }
                }
            }
        }
        let race = execution.races().into_iter().next()?;
        let text = |event| execution.describe(event, &|cell, value| self.describe(cell, value));
        let kind = if race.mixed_size { "a data race of two sizes" } else { "a data race" };
        Some(format!("{kind} between [{}] and [{}]", text(race.first), text(race.second)))
    }

    /// An arrival that might count in the phase before, or a wait that the phase before the last one might end: what tells
    /// the phases apart is that those before are over when a thread comes to the next one.
    fn wrong_phase(execution: &Execution<'_>) -> Option<String> {
        let events = execution.events();
        // Whether an arrival comes before whatever its thread does behind the event.
        let comes_before = |arrival: usize, event: usize| {
            (0..events.len()).any(|earlier| {
                events[earlier].thread == events[event].thread
                    && events[earlier].position < events[event].position
                    && (earlier == arrival || execution.precedes(arrival, earlier))
            })
        };
        for (index, event) in events.iter().enumerate() {
            let (EventKind::PhaseArrival(phase) | EventKind::PhaseWait(phase)) = event.kind else { continue };
            for (before, other) in events.iter().enumerate() {
                let EventKind::PhaseArrival(earlier) = other.kind else { continue };
                if earlier.barrier == phase.barrier
                    && earlier.number + 1 == phase.number
                    && !comes_before(before, index)
                {
                    let name = RingBarrier::ALL[phase.barrier % RingBarrier::ALL.len()];
                    let what = if matches!(event.kind, EventKind::PhaseWait(_)) { "a wait" } else { "an arrival" };
                    return Some(format!("{what} for a phase of '{name}' may come while the phase before is not over"));
                }
            }
        }
        None
    }

    fn not_cleared(&self, execution: &Execution<'_>, cell: usize, thread: usize) -> Option<String> {
        let events = execution.events();
        let clears = |event: usize| events[event].thread == thread && events[event].label.starts_with("clear");
        if let Some(late) = execution.last_writes(cell).find(|&write| !clears(write)) {
            return Some(format!(
                "[{}] may outlive the clean-up",
                execution.describe(late, &|c, v| self.describe(c, v))
            ));
        }
        let touching: Vec<usize> = (0..events.len()).filter(|&event| events[event].cells.contains(&cell)).collect();
        let clear = touching.iter().copied().find(|&event| clears(event))?;
        let unordered = touching.iter().copied().find(|&event| !clears(event) && !execution.causes(event, clear))?;
        let kind = if events[unordered].kind == EventKind::Read { "read" } else { "write" };
        Some(format!(
            "the {kind} [{}] is not ordered before the clean-up",
            execution.describe(unordered, &|c, v| self.describe(c, v))
        ))
    }

    pub fn describe(&self, cell: usize, value: u64) -> String {
        match self.meanings.get(cell) {
            Some(Meaning::Tag) => String::from(match value {
                INVALID => "invalid",
                1 => "aggregate",
                2 => "prefix",
                _ => "?",
            }),
            Some(Meaning::Value) => format!("<{}>", describe_sequence(value)),
            _ if value == POISON => String::from("poison"),
            _ => value.to_string(),
        }
    }
}
