//! The programs of `lookahead`, whose blocks stay and whose warps have a task each.
//!
//! - Composition and hand-over: two blocks, every way to hand the tiles out to them in ascending order. Of a block there
//!   are the first reducer, which publishes, and the lanes of the finder, which reads, arrives and ends the launch.
//!   Here and for the counters each tile has a stage of its own.
//! - Counters: two blocks, every number of tiles for each. Producer, first reducer and finder: tickets, epochs, the count.
//! - Block: one stage of one block's ring, used twice. All tasks, of each in turn two lanes: what one lane does comes
//!   before what another one does only by a barrier of the warp.
//!
//! A wait for a phase is behind all arrivals that count in it, if they release and the wait acquires. Which phase that is
//! stands in the program: the how-manieth of the warp. That it is so ([`Requirement::Phases`]) is checked with the rest.
//! What another task orders besides is left out where it is not named: that makes executions more, not fewer.

use super::model::{CheckError, Meaning, Model, Part, Requirement, widths};
use super::program::{Expression, POISON, Phase, Register, Statement, WARP_BARRIERS, sequence_of, sequence_up_to};
use super::sequences::{Counter, Ring, RingArray, RingBarrier, Role, Sequences, Status, Step, StepKind, Task};
use crate::abi;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Rounds of the ring in the programs of one stage: the second one uses it again.
const ROUNDS: usize = 2;
/// Blocks of the other programs.
const BLOCKS: usize = 2;

type Run<'r, 'a> = &'r mut dyn FnMut(Model<'a>) -> Result<ControlFlow<()>, CheckError>;

/// Calls `run` with all programs of a part.
pub(super) fn for_all<'a>(
    sequences: &'a Sequences,
    tiles: usize,
    part: Part,
    run: Run<'_, 'a>,
) -> Result<(), CheckError> {
    let Some(ring) = &sequences.ring else { return Ok(()) };
    match part {
        Part::Composition | Part::HandOver => {
            for (read, width) in
                widths(tiles).flat_map(|width| (0..sequences.reads.len()).map(move |read| (read, width)))
            {
                // A bit a tile: which block has it. Blocks are alike, so the first tile is the first block's.
                for hands in 0..1_usize << tiles.saturating_sub(1) {
                    let block_of = |tile: usize| (hands << 1 >> tile) & 1;
                    let all: Vec<Vec<usize>> =
                        (0..BLOCKS).map(|block| (0..tiles).filter(|&tile| block_of(tile) == block).collect()).collect();
                    let launch = Launch { ring, read, width, tiles: &all };
                    let lasts = if part == Part::HandOver { BLOCKS } else { 1 };
                    for last in 0..lasts {
                        let last = (part == Part::HandOver).then_some(last);
                        if run(launch.model(sequences, tiles, last))?.is_break() {
                            return Ok(());
                        }
                    }
                }
            }
        }
        Part::Counters => {
            let finish = Model::numbers(sequences, BLOCKS, Counter::Finished);
            let counts = (0..=tiles).map(|of_first| counters(sequences, ring, [of_first, tiles - of_first]));
            for model in tickets(sequences, ring).into_iter().chain(finish).chain(counts) {
                if run(model)?.is_break() {
                    return Ok(());
                }
            }
        }
        Part::Block => {
            for &task in Task::ALL {
                if run(stage(sequences, ring, task))?.is_break() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// A barrier whose phases are not over after just the arrivals that the tasks make.
pub(super) fn miscounted(ring: &Ring) -> Option<String> {
    RingBarrier::ALL.iter().find_map(|&barrier| {
        let of = |task: Task| {
            let arrives = |step: &&Step| step.kind == StepKind::Arrive && step.role == Role::Phase(barrier);
            u32::try_from(ring.round(task).iter().filter(arrives).count()).unwrap_or(u32::MAX)
        };
        let others = of(Task::OtherReducer) * (abi::LOOKBACK_REDUCING_WARPS - 1);
        let all = of(Task::Producer) + of(Task::FirstReducer) + others + of(Task::Finder);
        let expected = ring.expected.get(barrier as usize).copied().flatten();
        // Of the scanning warps there are as many as the launch says.
        let (come, expected) = match of(Task::Scanner) {
            0 => (all, expected),
            scanning => (all + scanning, Some(1)),
        };
        let expected = expected?;
        (come != expected).then(|| format!("a phase of '{barrier}' is over after {expected} arrivals and gets {come}"))
    })
}

/// Without barriers of lanes right behind a wait: each lane waits itself.
fn without_meeting_twice(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().enumerate().filter_map(|(index, step)| {
        let is_behind_wait = index > 0 && steps[index - 1].kind == StepKind::Wait;
        (step.kind != StepKind::WarpBarrier || !is_behind_wait).then_some(step)
    })
}

fn barrier_of(block: usize, stage: usize, barrier: RingBarrier) -> usize {
    (block * 64 + stage) * RingBarrier::ALL.len() + barrier as usize
}

/// An arrival or a wait.
fn meet(step: &Step, barrier: usize, number: usize) -> Statement {
    let phase = Phase { barrier, number };
    let (semantics, scope, label) = (step.semantics, step.scope, step.to_string());
    match step.kind {
        StepKind::Arrive => Statement::Arrive { phase, semantics, scope, label },
        _ => Statement::Wait { phase, semantics, scope, label },
    }
}

fn lanes_meet(task: Task) -> Statement {
    Statement::Barrier { number: WARP_BARRIERS + task as u32 }
}

/// One launch: who has which tiles.
struct Launch<'l> {
    ring: &'l Ring,
    read: usize,
    width: usize,
    tiles: &'l [Vec<usize>],
}

impl Launch<'_> {
    /// The program; up to the clean-up if there is a last block.
    fn model<'a>(&self, sequences: &'a Sequences, tiles: usize, last: Option<usize>) -> Model<'a> {
        let mut model = Model::new(sequences).with_descriptors(tiles);
        let finished = last.map(|_| model.object(String::from("finished"), &[(0, Meaning::Number)]));
        let mut clears = None;
        for (block, own) in self.tiles.iter().enumerate() {
            self.reducer(&mut model, block, own);
            let mut bodies = self.finder(&mut model, block, own);
            if let (Some(last), Some(finished)) = (last, finished) {
                let before = model.program.register();
                let mut body = Vec::new();
                for step in &sequences.finish {
                    match step.kind {
                        StepKind::Update => body.push(Model::update(step, finished, before)),
                        _ => body.extend(Model::order(step)),
                    }
                }
                if block == last {
                    body.push(Statement::Await(Expression::register_is(before, BLOCKS as u64 - 1)));
                    for tile in 0..tiles {
                        let value = Expression::Constant(POISON);
                        body.extend(model.store(&sequences.invalidate, tile, None, &value));
                    }
                }
                bodies[0].extend(body);
            }
            for (lane, body) in bodies.into_iter().enumerate() {
                let thread = model.thread(block, format!("block {block} finder lane {lane}"), body);
                if lane == 0 && last == Some(block) {
                    clears = Some(thread);
                }
            }
        }
        if let Some(thread) = clears {
            model.require_cleared(thread);
        }
        model
    }

    /// The lane of the first reducer that publishes.
    fn reducer(&self, model: &mut Model<'_>, block: usize, own: &[usize]) {
        let mut body = Vec::new();
        let sequences = model.sequences;
        for (round, &tile) in own.iter().enumerate() {
            for step in self.ring.round(Task::FirstReducer) {
                match (step.kind, step.role) {
                    (StepKind::Publish, _) => {
                        let steps = sequences.publish(Status::Aggregate).unwrap_or_default();
                        let total = Expression::Constant(sequence_of(tile));
                        body.extend(model.store(steps, tile, Some(Status::Aggregate), &total));
                    }
                    (StepKind::Arrive, Role::Phase(barrier)) => {
                        body.push(meet(step, barrier_of(block, round, barrier), 0));
                    }
                    (StepKind::Fence(_), _) => body.extend(Model::order(step)),
                    _ => {}
                }
            }
        }
        model.thread(block, format!("block {block} first reducer"), body);
    }

    /// The lanes of the finder. Of a group that a tile cuts all aggregates before it are read again for the next one; a
    /// whole one is kept.
    fn finder(&self, model: &mut Model<'_>, block: usize, own: &[usize]) -> Vec<Vec<Statement>> {
        let sequences = model.sequences;
        let lanes = own.last().map_or(1, |&tile| tile.clamp(1, self.width));
        let mut bodies = vec![Vec::new(); lanes];
        let (mut kept, mut prefix_of_kept) = (0, Expression::Constant(0));
        for (round, &tile) in own.iter().enumerate() {
            for step in without_meeting_twice(self.ring.round(Task::Finder)) {
                match (step.kind, step.role) {
                    (StepKind::Read, _) => {
                        let whole = tile / self.width * self.width;
                        let mut prefix = prefix_of_kept.clone();
                        for left in kept..tile {
                            let steps = &sequences.reads[self.read];
                            let (statements, value) = model.read(steps, left, Status::Aggregate);
                            bodies[left % self.width].extend(statements);
                            prefix = prefix.then(value);
                            if left + 1 == whole {
                                prefix_of_kept = prefix.clone();
                            }
                        }
                        kept = whole;
                        let register = model.program.register();
                        bodies[0].push(Statement::Set { register, value: prefix });
                        model.requirements.push(Requirement::Register {
                            register,
                            value: sequence_up_to(tile),
                            what: format!("the prefix of tile {tile}"),
                        });
                    }
                    (StepKind::WarpBarrier, _) => {
                        bodies.iter_mut().for_each(|body| body.push(lanes_meet(Task::Finder)))
                    }
                    (StepKind::Arrive, Role::Phase(barrier)) => {
                        bodies[0].push(meet(step, barrier_of(block, round, barrier), 0));
                    }
                    (StepKind::Fence(_), _) => bodies.iter_mut().for_each(|body| body.extend(Model::order(step))),
                    _ => {}
                }
            }
        }
        if let Some(last) = own.len().checked_sub(1) {
            for step in without_meeting_twice(&self.ring.end) {
                for body in &mut bodies {
                    match (step.kind, step.role) {
                        (StepKind::Wait, Role::Phase(barrier)) => {
                            body.push(meet(step, barrier_of(block, last, barrier), 0));
                        }
                        (StepKind::WarpBarrier, _) => body.push(lanes_meet(Task::Finder)),
                        _ => body.extend(Model::order(step)),
                    }
                }
            }
        }
        bodies
    }
}

fn ticket_of(steps: &[Step]) -> Option<&Step> {
    steps.iter().find(|step| step.kind == StepKind::Update && step.role == Role::Counter(Counter::Ticket))
}

/// Two blocks draw two tickets each: the first one before the ring is there, the second one in a round.
fn tickets<'a>(sequences: &'a Sequences, ring: &Ring) -> Option<Model<'a>> {
    let draws = [ticket_of(&sequences.start)?, ticket_of(ring.round(Task::Producer))?];
    let mut model = Model::new(sequences);
    let object = model.object(String::from("ticket"), &[(0, Meaning::Number)]);
    let mut registers = Vec::new();
    for block in 0..BLOCKS {
        let mut body = Vec::new();
        for draw in draws {
            let register = model.program.register();
            registers.push(register);
            body.push(Model::update(draw, object, register));
        }
        model.thread(block, format!("block {block} producer"), body);
    }
    model.requirements.push(Requirement::Different { registers, what: "two tiles are drawn by one ticket" });
    Some(model)
}

/// From the first ticket to the reset; a block has so many tiles, and the second one is the last.
fn counters<'a>(sequences: &'a Sequences, ring: &Ring, tiles: [usize; BLOCKS]) -> Model<'a> {
    let (mut model, counters) = Model::new(sequences).with_counters();
    for (block, &count) in tiles.iter().enumerate() {
        let start = |model: &mut Model<'a>, task: Task| -> Vec<Statement> {
            let mut body = Vec::new();
            for step in &sequences.start {
                match (step.kind, step.role) {
                    (StepKind::Update, Role::Counter(Counter::Ticket)) if task == Task::Producer => {
                        let register = model.program.register();
                        body.push(Model::update(step, counters.ticket, register));
                    }
                    (StepKind::Load, Role::Counter(Counter::Epochs)) if task != Task::Producer => {
                        body.push(model.load_epoch(step, counters, block));
                    }
                    (StepKind::Barrier(_) | StepKind::Fence(_), _) => body.extend(Model::order(step)),
                    _ => {}
                }
            }
            body
        };
        let arrive = |body: &mut Vec<Statement>, step: &Step, round| {
            if let (StepKind::Arrive, Role::Phase(barrier)) = (step.kind, step.role) {
                body.push(meet(step, barrier_of(block, round, barrier), 0));
            }
        };
        let mut producer = start(&mut model, Task::Producer);
        let mut reducer = start(&mut model, Task::FirstReducer);
        let mut finder = start(&mut model, Task::Finder);
        for round in 0..=count {
            for step in ring.round(Task::Producer) {
                arrive(&mut producer, step, round);
                // Behind the last tile it hands on that there are no more, and draws nothing.
                if step.kind == StepKind::Update && round < count {
                    let register = model.program.register();
                    producer.push(Model::update(step, counters.ticket, register));
                }
            }
            // The finder sees it, and goes no further.
            let waits = ring.round(Task::Finder).iter().filter(|step| step.kind == StepKind::Wait);
            for step in waits {
                if let Role::Phase(barrier) = step.role {
                    finder.push(meet(step, barrier_of(block, round, barrier), 0));
                }
            }
            if round < count {
                ring.round(Task::FirstReducer).iter().for_each(|step| arrive(&mut reducer, step, round));
                ring.round(Task::Finder).iter().for_each(|step| arrive(&mut finder, step, round));
            }
        }
        for step in &ring.end {
            if let (Some(last), StepKind::Wait, Role::Phase(barrier)) = (count.checked_sub(1), step.kind, step.role) {
                finder.push(meet(step, barrier_of(block, last, barrier), 0));
            }
        }
        let before = model.program.register();
        for step in &sequences.finish {
            match step.kind {
                StepKind::Update => finder.push(Model::update(step, counters.finished, before)),
                _ => finder.extend(Model::order(step)),
            }
        }
        if block + 1 == BLOCKS {
            finder.extend(model.reset(counters, (before, BLOCKS)));
        }
        for (task, body) in [(Task::Producer, producer), (Task::FirstReducer, reducer), (Task::Finder, finder)] {
            model.thread(block, format!("block {block} {task}"), body);
        }
    }
    model.require_reset(counters);
    model
}

/// One stage of the ring, used twice: every task, of one of them two lanes.
fn stage<'a>(sequences: &'a Sequences, ring: &Ring, wide: Task) -> Model<'a> {
    let mut model = Model::new(sequences);
    // What reducers leave of their warps is each one's own.
    let owner = |array: RingArray, task: Task| (array == RingArray::WarpPrefix).then_some(task);
    let mut objects = BTreeMap::new();
    for &array in RingArray::ALL {
        let reducers = [Some(Task::FirstReducer), Some(Task::OtherReducer)];
        let owners = if array == RingArray::WarpPrefix { &reducers[..] } else { &[None] };
        for &of in owners {
            let name = of.map_or(array.to_string(), |task| format!("{array} of the {task}"));
            objects.insert((array, of), model.object(name, &[(POISON, Meaning::Number)]));
        }
    }
    for &task in Task::ALL {
        let lanes = if task == wide { 2 } else { 1 };
        for lane in 0..lanes {
            let mut body = Vec::new();
            for round in 0..ROUNDS {
                for step in without_meeting_twice(ring.round(task)) {
                    let load = |model: &mut Model<'a>, body: &mut Vec<Statement>, array, of| {
                        let register: Register = model.program.register();
                        let access = Model::access(step, objects[&(array, of)], 0, 1, 1);
                        let label = step.opcode.clone();
                        body.push(Statement::Load { access, into: vec![register], address: Vec::new(), label });
                        let what = format!("what the {task} finds as {array} in round {round}");
                        model.requirements.push(Requirement::Register { register, value: round as u64 + 1, what });
                    };
                    match (step.kind, step.role) {
                        // Before a stage is used for the first time there is nothing to wait for.
                        (StepKind::Wait, Role::Phase(RingBarrier::Drained)) if round == 0 => {}
                        (StepKind::Wait, Role::Phase(RingBarrier::Drained)) => {
                            body.push(meet(step, barrier_of(0, 0, RingBarrier::Drained), round - 1));
                        }
                        (StepKind::Wait, Role::Phase(barrier)) => {
                            body.push(meet(step, barrier_of(0, 0, barrier), round))
                        }
                        (StepKind::Arrive, Role::Phase(barrier)) if lane == 0 => {
                            body.push(meet(step, barrier_of(0, 0, barrier), round));
                        }
                        (StepKind::WarpBarrier, _) if lanes > 1 => body.push(lanes_meet(task)),
                        (StepKind::Load, Role::Ring(RingArray::WarpPrefix)) => {
                            for of in [Task::FirstReducer, Task::OtherReducer] {
                                load(&mut model, &mut body, RingArray::WarpPrefix, Some(of));
                            }
                        }
                        (StepKind::Load, Role::Ring(array)) => load(&mut model, &mut body, array, None),
                        // Elements are stored by all lanes, so also by the one that does not arrive.
                        (StepKind::Store, Role::Ring(array))
                            if lane == if array == RingArray::Elements { lanes - 1 } else { 0 } =>
                        {
                            body.push(Statement::Store {
                                access: Model::access(step, objects[&(array, owner(array, task))], 0, 1, 1),
                                values: vec![Expression::Constant(round as u64 + 1)],
                                address: Vec::new(),
                                label: step.opcode.clone(),
                            });
                        }
                        (StepKind::Fence(_), _) => body.extend(Model::order(step)),
                        _ => {}
                    }
                }
            }
            model.thread(0, format!("{task} lane {lane}"), body);
        }
    }
    model.requirements.push(Requirement::Phases);
    model
}
