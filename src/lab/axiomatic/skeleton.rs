//! The skeletons of a program's executions: the events of each way through its threads.

use super::program::{
    Access, Expression, Operation, POISON, Phase, Program, Register, Scope, Semantics, Statement, WARP_BARRIERS,
};
use std::collections::BTreeMap;

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Reads cells.
    Read,
    /// Writes cells.
    Write,
    /// A fence; `true` for `fence.sc`.
    Fence(bool),
    /// The arrival at a barrier of that number, the how-manieth of its thread.
    Arrive(u32, u32),
    /// The departure from it.
    Depart(u32, u32),
    /// An arrival at an mbarrier, in that phase.
    PhaseArrival(Phase),
    /// The end of a wait for that phase.
    PhaseWait(Phase),
}

/// One event of an execution.
#[derive(Debug, Clone)]
pub struct Event {
    /// Index of its thread.
    pub thread: usize,
    /// What it is.
    pub kind: EventKind,
    /// What it orders. `AcquireRelease` for fences and block barriers.
    pub semantics: Semantics,
    /// Whom it reaches.
    pub scope: Scope,
    /// The program-wide cells that it touches, ascending.
    pub cells: Vec<usize>,
    /// What a write writes, a value for each cell.
    pub values: Vec<Expression>,
    /// The other event of a read-modify-write.
    pub partner: Option<usize>,
    /// Whether it is the read of a reduction, which returns nothing.
    pub reduction: bool,
    /// Its place in the thread: elements of one vector access have the same.
    pub position: usize,
    /// For people.
    pub label: String,
}

/// Where a register's value comes from.
#[derive(Debug, Clone)]
pub enum Definition {
    /// One cell of a read event: the event, and the cell's position in it.
    Read(usize, usize),
    /// Computed.
    Computed(Expression),
}

/// The events of one way through all threads. What reads read is open.
#[derive(Debug, Clone, Default)]
pub struct Skeleton {
    /// The events, by thread and in program order there.
    pub events: Vec<Event>,
    /// Registers that have a definition on this way.
    pub definitions: BTreeMap<Register, Definition>,
    /// Conditions of this way, and whether they hold.
    pub constraints: Vec<(Expression, bool)>,
    /// Event pairs: the first is a read on whose value the second depends.
    pub dependencies: Vec<(usize, usize)>,
}

impl Program {
    /// Every way through all threads.
    pub fn skeletons(&self) -> Vec<Skeleton> {
        let mut skeletons = Vec::new();
        let mut walk = Walk { program: self, skeletons: &mut skeletons };
        let first = self.threads.first().map_or(&[][..], |thread| &thread.body);
        walk.step(Partial::default(), 0, vec![first.iter().collect()]);
        skeletons
    }
}

/// A way that is being walked.
#[derive(Debug, Clone, Default)]
struct Partial {
    skeleton: Skeleton,
    /// Registers whose value a condition has fixed.
    facts: BTreeMap<Register, u64>,
    /// Reads that the rest of the thread is control dependent on.
    control: Vec<usize>,
    /// Steps of the thread so far, and barriers by number.
    position: usize,
    barriers: BTreeMap<u32, u32>,
}

struct Walk<'a> {
    program: &'a Program,
    skeletons: &'a mut Vec<Skeleton>,
}

impl<'a> Walk<'a> {
    /// Goes on with the statements in `stack` (innermost last) of `thread`, then with the threads behind it.
    fn step(&mut self, mut partial: Partial, mut thread: usize, mut stack: Vec<Vec<&'a Statement>>) {
        loop {
            let Some(block) = stack.last_mut() else {
                thread += 1;
                let Some(next) = self.program.threads.get(thread) else { break };
                partial.control.clear();
                partial.position = 0;
                partial.barriers.clear();
                stack.push(next.body.iter().collect());
                continue;
            };
            if block.is_empty() {
                stack.pop();
                continue;
            }
            let statement = block.remove(0);
            match statement {
                Statement::If { condition, then, otherwise } => {
                    let known = partial.evaluate(condition);
                    partial.depend_on(condition);
                    match known {
                        Some(value) => {
                            partial.skeleton.constraints.push((condition.clone(), value != 0));
                            stack.push(if value != 0 { then } else { otherwise }.iter().collect());
                        }
                        None => {
                            let mut other = partial.clone();
                            let mut other_stack = stack.clone();
                            other.assume(condition, true);
                            other_stack.push(then.iter().collect());
                            self.step(other, thread, other_stack);
                            partial.assume(condition, false);
                            stack.push(otherwise.iter().collect());
                        }
                    }
                }
                Statement::Await(condition) => {
                    if partial.evaluate(condition) == Some(0) {
                        return;
                    }
                    partial.depend_on(condition);
                    partial.assume(condition, true);
                }
                Statement::Update { access, into, operation: Operation::CompareExchange(compare, new), label } => {
                    // It fails: the read alone.
                    let mut other = partial.clone();
                    let register = into.unwrap_or(usize::MAX);
                    let read = other.push(self.program, thread, EventKind::Read, *access, 0, label);
                    let condition =
                        Expression::Equal(Box::new(Expression::Register(register)), Box::new(compare.clone()));
                    other.skeleton.definitions.insert(register, Definition::Read(read, 0));
                    other.depend_on(&condition);
                    other.skeleton.constraints.push((condition.clone(), false));
                    other.position += 1;
                    self.step(other, thread, stack.clone());
                    // It succeeds.
                    partial.update(self.program, thread, *access, Some(register), new.clone(), label);
                    partial.depend_on(&condition);
                    partial.assume(&condition, true);
                }
                simple => partial.simple(self.program, thread, simple),
            }
        }
        partial.depend_on_values();
        self.skeletons.push(partial.skeleton);
    }
}

impl Partial {
    fn evaluate(&self, expression: &Expression) -> Option<u64> {
        expression.evaluate(&mut |register| self.value(register))
    }

    fn value(&self, register: Register) -> Option<u64> {
        if let Some(&fact) = self.facts.get(&register) {
            return Some(fact);
        }
        match self.skeleton.definitions.get(&register)? {
            Definition::Read(..) => None,
            Definition::Computed(expression) => self.evaluate(expression),
        }
    }

    fn assume(&mut self, condition: &Expression, holds: bool) {
        if holds {
            self.learn(condition);
        }
        self.skeleton.constraints.push((condition.clone(), holds));
    }

    fn learn(&mut self, condition: &Expression) {
        match condition {
            Expression::Equal(left, right) => {
                if let (Expression::Register(register), Expression::Constant(value)) = (&**left, &**right) {
                    self.facts.insert(*register, *value);
                }
            }
            Expression::And(left, right) => {
                self.learn(left);
                self.learn(right);
            }
            _ => {}
        }
    }

    /// What writes write depends on the reads behind it, those of later threads (shuffles) included.
    fn depend_on_values(&mut self) {
        let mut dependencies = Vec::new();
        for (write, event) in self.skeleton.events.iter().enumerate() {
            for value in &event.values {
                dependencies.extend(self.reads(value).into_iter().map(|read| (read, write)));
            }
        }
        self.skeleton.dependencies.extend(dependencies);
    }

    /// The reads behind an expression.
    fn reads(&self, expression: &Expression) -> Vec<usize> {
        let mut registers = Vec::new();
        expression.registers(&mut registers);
        registers.iter().flat_map(|&register| self.reads_of(register)).collect()
    }

    fn reads_of(&self, register: Register) -> Vec<usize> {
        match self.skeleton.definitions.get(&register) {
            Some(Definition::Read(event, _)) => vec![*event],
            Some(Definition::Computed(expression)) => self.reads(expression),
            None => Vec::new(),
        }
    }

    fn depend_on(&mut self, condition: &Expression) {
        let reads = self.reads(condition);
        self.control.extend(reads);
        self.control.sort_unstable();
        self.control.dedup();
    }

    fn push(
        &mut self,
        program: &Program,
        thread: usize,
        kind: EventKind,
        access: Access,
        element: u8,
        label: &str,
    ) -> usize {
        let cells = access.cells / access.elements.max(1);
        let first = program.first_cell(access.object) + usize::from(access.first) + usize::from(element * cells);
        let index = self.skeleton.events.len();
        if kind == EventKind::Write {
            self.skeleton.dependencies.extend(self.control.iter().map(|&read| (read, index)));
        }
        self.skeleton.events.push(Event {
            thread,
            kind,
            semantics: access.semantics,
            scope: access.scope,
            cells: (first..first + usize::from(cells)).collect(),
            values: Vec::new(),
            partner: None,
            reduction: false,
            position: self.position,
            label: label.to_owned(),
        });
        index
    }

    fn update(
        &mut self,
        program: &Program,
        thread: usize,
        access: Access,
        into: Option<Register>,
        value: Expression,
        label: &str,
    ) {
        let read = self.push(program, thread, EventKind::Read, access, 0, label);
        self.position += 1;
        if let Some(register) = into {
            self.skeleton.definitions.insert(register, Definition::Read(read, 0));
        }
        let write = self.push(program, thread, EventKind::Write, access, 0, label);
        self.skeleton.dependencies.push((read, write));
        let events = &mut self.skeleton.events;
        events[write].values = vec![value];
        events[read].partner = Some(write);
        events[write].partner = Some(read);
        events[read].reduction = into.is_none();
        self.position += 1;
    }

    fn simple(&mut self, program: &Program, thread: usize, statement: &Statement) {
        match statement {
            Statement::Load { access, into, address, label } => {
                let elements = access.elements.max(1);
                let cells = usize::from(access.cells / elements);
                let dependencies: Vec<usize> = address.iter().flat_map(|&register| self.reads_of(register)).collect();
                for element in 0..elements {
                    let event = self.push(program, thread, EventKind::Read, *access, element, label);
                    self.skeleton.dependencies.extend(dependencies.iter().map(|&read| (read, event)));
                    for cell in 0..cells {
                        if let Some(&register) = into.get(usize::from(element) * cells + cell) {
                            self.skeleton.definitions.insert(register, Definition::Read(event, cell));
                        }
                    }
                }
                self.position += 1;
            }
            Statement::Store { access, values, address, label } => {
                let elements = access.elements.max(1);
                let cells = usize::from(access.cells / elements);
                let dependencies: Vec<usize> = address.iter().flat_map(|&register| self.reads_of(register)).collect();
                for element in 0..elements {
                    let part: Vec<Expression> = (0..cells)
                        .map(|cell| {
                            let index = usize::from(element) * cells + cell;
                            values.get(index).cloned().unwrap_or(Expression::Constant(POISON))
                        })
                        .collect();
                    let event = self.push(program, thread, EventKind::Write, *access, element, label);
                    self.skeleton.dependencies.extend(dependencies.iter().map(|&read| (read, event)));
                    self.skeleton.events[event].values = part;
                }
                self.position += 1;
            }
            Statement::Update { access, into, operation, label } => {
                // What was read needs a register even where no one receives it.
                let register = into.unwrap_or(program.registers + self.skeleton.events.len());
                let before = Box::new(Expression::Register(register));
                let value = match operation {
                    Operation::Add(operand) => Expression::Add(before, Box::new(operand.clone())),
                    Operation::Exchange(operand) | Operation::CompareExchange(_, operand) => operand.clone(),
                };
                self.update(program, thread, *access, Some(register), value, label);
                if into.is_none()
                    && let Some(Definition::Read(read, _)) = self.skeleton.definitions.get(&register)
                {
                    self.skeleton.events[*read].reduction = true;
                }
            }
            Statement::Fence { sequential, scope } => {
                let name = if *sequential { "fence.sc" } else { "fence.acq_rel" };
                self.fence(thread, EventKind::Fence(*sequential), *scope, name);
            }
            Statement::Barrier { number } => {
                let time = self.barriers.entry(*number).or_insert(0);
                let now = *time;
                *time += 1;
                let name = if *number < WARP_BARRIERS { "bar.sync" } else { "bar.warp.sync" };
                self.fence(thread, EventKind::Arrive(*number, now), Scope::Cta, &format!("{name} (arrive)"));
                self.fence(thread, EventKind::Depart(*number, now), Scope::Cta, &format!("{name} (depart)"));
            }
            Statement::Arrive { phase, semantics, scope, label } => {
                self.order(thread, EventKind::PhaseArrival(*phase), *semantics, *scope, label);
            }
            Statement::Wait { phase, semantics, scope, label } => {
                self.order(thread, EventKind::PhaseWait(*phase), *semantics, *scope, label);
            }
            Statement::Set { register, value } => {
                self.skeleton.definitions.insert(*register, Definition::Computed(value.clone()));
            }
            // The walk takes them itself.
            Statement::If { .. } | Statement::Await(_) => {}
        }
    }

    fn fence(&mut self, thread: usize, kind: EventKind, scope: Scope, label: &str) {
        self.order(thread, kind, Semantics::AcquireRelease, scope, label);
    }

    /// An event that touches no cell.
    fn order(&mut self, thread: usize, kind: EventKind, semantics: Semantics, scope: Scope, label: &str) {
        self.skeleton.events.push(Event {
            thread,
            kind,
            semantics,
            scope,
            cells: Vec::new(),
            values: Vec::new(),
            partner: None,
            reduction: false,
            position: self.position,
            label: label.to_owned(),
        });
        self.position += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::axiomatic::program::{Place, Thread};

    #[test]
    fn a_condition_that_is_known_is_not_walked_twice() {
        let mut program = Program::default();
        let x = program.object("x", vec![0], false);
        let (read, copy) = (program.register(), program.register());
        let access =
            Access { object: x, first: 0, cells: 1, elements: 1, semantics: Semantics::Weak, scope: Scope::Cta };
        let ask = |register| Statement::If {
            condition: Expression::register_is(register, 1),
            then: Vec::new(),
            otherwise: Vec::new(),
        };
        let body = vec![
            Statement::Load { access, into: vec![read], address: Vec::new(), label: String::new() },
            Statement::Await(Expression::register_is(read, 1)),
            Statement::Set { register: copy, value: Expression::Register(read) },
            ask(copy),
        ];
        program.threads.push(Thread { name: String::from("a"), place: Place::default(), body });
        assert_eq!(program.skeletons().len(), 1);
        program.threads[0].body.remove(1);
        assert_eq!(program.skeletons().len(), 2);
    }
}
