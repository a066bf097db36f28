//! Litmus tests with published verdicts, which the enumerator must reproduce before anything it says of the
//! descriptor protocol counts.
//!
//! A test is a few threads, a line each, in the style of PTX: `cta 0: st.weak [x], 1; st.release.gpu [y], 1`, and an
//! outcome. It is *allowed* if some consistent execution ends in the outcome and *forbidden* if none does. The tests
//! are written for this crate; what is taken from elsewhere is the verdict, and each test names whose it is:
//!
//! - **mixedproxy**: `NVlabs/mixedproxy`, directory `tests`: NVIDIA's tests of its Alloy model.
//! - **Dat3M**: `hernanponcedeleon/Dat3M`, directory `litmus/PTX`, with the results that
//!   `dartagnan/src/test/resources/PTXv6_0-expected.csv` asserts.
//! - **compound**: `goens/lost-pop-lean`, `Litmus/PTX.lean`, the tests of "Compound Memory Models" (PLDI 2023).
//! - **PTX ISA**: the litmus tests in the chapter "Memory Consistency Model" of NVIDIA's manual.
//! - **from the axioms**: no published table has this very test; the sentence of the manual that decides it is named.
//!
//! Where two sources disagree the test says so.

use super::axioms::{self, Execution, ModelError, Statistics};
use super::program::{Access, Expression, Operation, Place, Program, Register, Scope, Semantics, Statement, Thread};
use crate::names::named;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

named! {
    /// Whether an outcome can happen.
    pub enum Verdict as "verdict" {
        /// Some consistent execution ends so.
        Allowed = "allowed",
        /// None does.
        Forbidden = "forbidden",
    }
}

named! {
    /// Where a verdict was published.
    pub enum Origin as "origin of a verdict" {
        /// `NVlabs/mixedproxy`
        MixedProxy = "mixedproxy",
        /// `hernanponcedeleon/Dat3M`
        Dat3m = "Dat3M",
        /// `goens/lost-pop-lean`
        Compound = "compound",
        /// A litmus test of the PTX ISA manual.
        PtxIsa = "PTX ISA",
        /// A sentence of the PTX ISA manual, applied to a test that no table has.
        Axioms = "from the axioms",
    }
}

/// One litmus test.
#[derive(Debug, Clone, Copy)]
pub struct Litmus {
    /// Its name here.
    pub name: &'static str,
    /// The threads, a line each.
    pub threads: &'static str,
    /// What is asked: `r0 == 1 && [x] == 2`. A location stands for its value at the end.
    pub outcome: &'static str,
    /// The published answer.
    pub verdict: Verdict,
    /// Whose answer.
    pub origin: Origin,
    /// Where exactly.
    pub source: &'static str,
}

/// A test that cannot be read or searched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LitmusError {
    /// A part of its text is not in the form of this module.
    #[error("'{text}' is not {expected}")]
    Syntax { text: String, expected: &'static str },
    /// Its program cannot be searched.
    #[error(transparent)]
    Model(#[from] ModelError),
}

fn syntax(text: &str, expected: &'static str) -> LitmusError {
    LitmusError::Syntax { text: text.trim().to_owned(), expected }
}

/// What one test came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What the enumerator says.
    pub verdict: Verdict,
    /// How much it looked at.
    pub statistics: Statistics,
}

impl Litmus {
    /// Searches all executions.
    ///
    /// # Errors
    /// When the text is not in the form of this module or the program is too large.
    pub fn run(&self) -> Result<Answer, LitmusError> {
        let parsed = parse(self.threads)?;
        let outcome = parsed.outcome(self.outcome)?;
        let mut verdict = Verdict::Forbidden;
        let statistics = axioms::search(&parsed.program, &mut |execution| {
            if outcome.iter().all(|term| term.holds(execution)) {
                verdict = Verdict::Allowed;
            }
            ControlFlow::Continue(())
        })?;
        Ok(Answer { verdict, statistics })
    }
}

/// A program with the names of its registers and locations.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The program.
    pub program: Program,
    registers: BTreeMap<String, Register>,
    objects: BTreeMap<String, usize>,
}

/// One equation of an outcome.
enum Term {
    Register(Register, u64),
    Cell(usize, u64),
}

impl Term {
    fn holds(&self, execution: &Execution<'_>) -> bool {
        match *self {
            Self::Register(register, value) => execution.register(register) == Some(value),
            Self::Cell(cell, value) => execution.finals(cell).contains(&value),
        }
    }
}

const CELL_BYTES: u64 = 4;

/// Reads the threads of a test. All memory is 0 before; locations are words of 32 bits, or more of them where an
/// access is wider.
///
/// # Errors
/// When the text is not in the form of this module.
pub fn parse(text: &str) -> Result<Parsed, LitmusError> {
    let mut parsed = Parsed { program: Program::default(), registers: BTreeMap::new(), objects: BTreeMap::new() };
    for (index, line) in text.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let (place, body) = line.split_once(':').ok_or_else(|| syntax(line, "a thread, as in 'cta 0: …'"))?;
        let place = parse_place(place)?;
        let mut statements = Vec::new();
        for statement in body.split(';').map(str::trim).filter(|statement| !statement.is_empty()) {
            statements.push(parsed.statement(statement)?);
        }
        parsed.program.threads.push(Thread { name: format!("T{index}"), place, body: statements });
    }
    Ok(parsed)
}

fn parse_place(text: &str) -> Result<Place, LitmusError> {
    let mut place = Place::default();
    let mut words = text.split_whitespace();
    while let (Some(level), Some(number)) = (words.next(), words.next()) {
        let number = number.parse().map_err(|_| syntax(text, "a place, as in 'gpu 0 cta 1'"))?;
        match level {
            "gpu" => place.gpu = number,
            "cluster" => place.cluster = number,
            "cta" => place.cta = number,
            _ => return Err(syntax(text, "a place, as in 'gpu 0 cta 1'")),
        }
    }
    Ok(place)
}

/// The qualifiers of an instruction's name.
struct Qualifiers {
    semantics: Semantics,
    scope: Scope,
    bytes: u64,
    elements: u8,
    rest: Vec<String>,
}

fn qualifiers<'a>(words: impl Iterator<Item = &'a str>) -> Result<Qualifiers, LitmusError> {
    let mut found =
        Qualifiers { semantics: Semantics::Weak, scope: Scope::Gpu, bytes: 4, elements: 1, rest: Vec::new() };
    for word in words {
        match word {
            "weak" => found.semantics = Semantics::Weak,
            "relaxed" => found.semantics = Semantics::Relaxed,
            "acquire" => found.semantics = Semantics::Acquire,
            "release" => found.semantics = Semantics::Release,
            "acq_rel" => found.semantics = Semantics::AcquireRelease,
            "volatile" => {
                found.semantics = Semantics::Relaxed;
                found.scope = Scope::System;
            }
            "cta" => found.scope = Scope::Cta,
            "cluster" => found.scope = Scope::Cluster,
            "gpu" => found.scope = Scope::Gpu,
            "sys" => found.scope = Scope::System,
            "v2" => found.elements = 2,
            "v4" => found.elements = 4,
            other => match other.strip_prefix('b').map(str::parse::<u64>) {
                Some(Ok(bits)) => found.bytes = bits / 8,
                _ => found.rest.push(other.to_owned()),
            },
        }
    }
    Ok(found)
}

impl Parsed {
    fn register(&mut self, name: &str) -> Result<Register, LitmusError> {
        if !name.starts_with('r') {
            return Err(syntax(name, "a register, as in 'r0'"));
        }
        if let Some(&register) = self.registers.get(name) {
            return Ok(register);
        }
        let register = self.program.register();
        self.registers.insert(name.to_owned(), register);
        Ok(register)
    }

    /// `[x]` or `[x+4]`.
    fn access(&mut self, text: &str, found: &Qualifiers) -> Result<Access, LitmusError> {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let inner = inner.ok_or_else(|| syntax(text, "a location, as in '[x]'"))?;
        let (name, offset) = inner.split_once('+').unwrap_or((inner, "0"));
        let offset: u64 = offset.parse().map_err(|_| syntax(text, "a location, as in '[x+4]'"))?;
        let object = match self.objects.get(name) {
            Some(&object) => object,
            None => {
                let object = self.program.object(name, Vec::new(), false);
                self.objects.insert(name.to_owned(), object);
                object
            }
        };
        let first = offset / CELL_BYTES;
        let cells = (found.bytes / CELL_BYTES) * u64::from(found.elements);
        let initial = &mut self.program.objects[object].initial;
        let wanted = usize::try_from(first + cells).unwrap_or(usize::MAX).min(4);
        if initial.len() < wanted {
            initial.resize(wanted, 0);
        }
        Ok(Access {
            object,
            first: u8::try_from(first).unwrap_or(u8::MAX),
            cells: u8::try_from(cells).unwrap_or(u8::MAX),
            elements: found.elements,
            semantics: found.semantics,
            scope: found.scope,
        })
    }

    fn value(&mut self, text: &str) -> Result<Expression, LitmusError> {
        let text = text.trim();
        if let Some((left, right)) = text.split_once('+') {
            return Ok(Expression::Add(Box::new(self.value(left)?), Box::new(self.value(right)?)));
        }
        if text.starts_with('r') {
            return Ok(Expression::Register(self.register(text)?));
        }
        text.parse().map(Expression::Constant).map_err(|_| syntax(text, "a number or a register"))
    }

    fn condition(&mut self, text: &str) -> Result<Expression, LitmusError> {
        let (left, right) = text.split_once("==").ok_or_else(|| syntax(text, "an equation, as in 'r0 == 1'"))?;
        Ok(Expression::Equal(Box::new(self.value(left)?), Box::new(self.value(right)?)))
    }

    fn statement(&mut self, text: &str) -> Result<Statement, LitmusError> {
        // `if r0 == 1 then …`: one statement, else nothing.
        if let Some((condition, then)) = text.strip_prefix("if ").and_then(|rest| rest.split_once(" then ")) {
            let condition = self.condition(condition)?;
            return Ok(Statement::If { condition, then: vec![self.statement(then)?], otherwise: Vec::new() });
        }
        if let Some(condition) = text.strip_prefix("await ") {
            return Ok(Statement::Await(self.condition(condition)?));
        }
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
        let operand = |index: usize| operands.get(index).copied().ok_or_else(|| syntax(text, "complete"));
        let mut words = name.split('.');
        let opcode = words.next().unwrap_or_default();
        let found = qualifiers(words)?;
        let label = text.to_owned();
        match opcode {
            "ld" => {
                let (last, into) = operands.split_last().ok_or_else(|| syntax(text, "a load"))?;
                let access = self.access(last, &found)?;
                let into = into.iter().map(|name| self.register(name)).collect::<Result<Vec<_>, _>>()?;
                Ok(Statement::Load { access, into, address: Vec::new(), label })
            }
            "st" => {
                let access = self.access(operand(0)?, &found)?;
                let values = operands[1..].iter().map(|value| self.value(value)).collect::<Result<Vec<_>, _>>()?;
                Ok(Statement::Store { access, values, address: Vec::new(), label })
            }
            "atom" | "red" => {
                let returns = opcode == "atom";
                let mut found = found;
                if found.semantics == Semantics::Weak {
                    found.semantics = Semantics::Relaxed;
                }
                let into = if returns { Some(self.register(operand(0)?)?) } else { None };
                let rest = usize::from(returns);
                let access = self.access(operand(rest)?, &found)?;
                let first = self.value(operand(rest + 1)?)?;
                let operation = match found.rest.first().map(String::as_str) {
                    Some("add") => Operation::Add(first),
                    Some("exch") => Operation::Exchange(first),
                    Some("cas") => Operation::CompareExchange(first, self.value(operand(rest + 2)?)?),
                    _ => return Err(syntax(text, "add, exch or cas")),
                };
                Ok(Statement::Update { access, into, operation, label })
            }
            "fence" => {
                let sequential = found.rest.iter().any(|word| word == "sc");
                Ok(Statement::Fence { sequential, scope: found.scope })
            }
            "bar" => {
                let number = operand(0)?.parse().map_err(|_| syntax(text, "a barrier with its number"))?;
                Ok(Statement::Barrier { number })
            }
            _ => Err(syntax(text, "an instruction")),
        }
    }

    fn outcome(&self, text: &str) -> Result<Vec<Term>, LitmusError> {
        text.split("&&")
            .map(|equation| {
                let (left, right) = equation.split_once("==").ok_or_else(|| syntax(equation, "an equation"))?;
                let value = right.trim().parse().map_err(|_| syntax(equation, "an equation with a number"))?;
                let left = left.trim();
                if let Some(name) = left.strip_prefix('[').and_then(|left| left.strip_suffix(']')) {
                    let object = self.objects.get(name).ok_or_else(|| syntax(equation, "about a known location"))?;
                    return Ok(Term::Cell(self.program.first_cell(*object), value));
                }
                let register = self.registers.get(left).ok_or_else(|| syntax(equation, "about a known register"))?;
                Ok(Term::Register(*register, value))
            })
            .collect()
    }
}

macro_rules! tests {
    ($($name:literal $verdict:ident $origin:ident $source:literal { $($thread:literal)* } $outcome:literal)*) => {
        &[$(Litmus {
            name: $name,
            threads: concat!($($thread, "\n"),*),
            outcome: $outcome,
            verdict: Verdict::$verdict,
            origin: Origin::$origin,
            source: $source,
        }),*]
    };
}

/// All tests.
pub const TESTS: &[Litmus] = tests! {
    // Message passing.
    "MP+weak" Allowed Axioms "PTX ISA, Causality Order: without a synchronises edge nothing is ordered" {
        "cta 0: st.weak [x], 1; st.weak [y], 1"
        "cta 1: ld.weak r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+relaxed" Allowed Compound "MP" {
        "cta 0: st.relaxed.sys [x], 1; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.cta+acquire.cta, same block" Forbidden MixedProxy "tests/MP_cta.test, first row" {
        "cta 0: st.weak [x], 2; st.release.cta [flag], 1"
        "cta 0: ld.acquire.cta r0, [flag]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.gpu+acquire.gpu, other block" Forbidden MixedProxy "tests/MP_gpu.test, first row" {
        "cta 0: st.weak [x], 2; st.release.gpu [flag], 1"
        "cta 1: ld.acquire.gpu r0, [flag]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.cta+acquire.gpu, same block" Forbidden MixedProxy "tests/Manual/MP-cta-gpu.test" {
        "cta 0: st.weak [x], 1; st.release.cta [y], 1"
        "cta 0: ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 0"
    "MP+release.cta+acquire.cta, other block" Allowed Axioms
        "PTX ISA, Morally strong operations: a scope must include the other thread" {
        "cta 0: st.weak [x], 1; st.release.cta [y], 1"
        "cta 1: ld.acquire.cta r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.gpu+acquire.cta, other block" Allowed Axioms
        "PTX ISA, Morally strong operations: both scopes must include the other thread" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: ld.acquire.cta r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release.gpu+acquire.gpu, other GPU" Allowed Axioms
        "PTX ISA, Scope: the gpu scope ends at the GPU" {
        "gpu 0 cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "gpu 1 cta 0: ld.acquire.gpu r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release+acquire, flag read relaxed" Allowed MixedProxy "tests/Manual/MP-relaxed.test" {
        "cta 0: st.release.sys [x], 1; st.release.sys [y], 1"
        "cta 0: ld.relaxed.sys r1, [y]; ld.acquire.gpu r2, [x]"
    } "r1 == 1 && r2 == 0"
    "MP+fence.acq_rel.sys" Forbidden Dat3m "Manual/MP-sys-fence.litmus" {
        "cta 0: st.weak [x], 1; fence.acq_rel.sys; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r1, [y]; fence.acq_rel.sys; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 0"
    "MP+fence.acq_rel.sys, other block" Forbidden PtxIsa "Axioms, Causality, litmus test Message Passing" {
        "cta 0: st.weak [data], 1; fence.acq_rel.sys; st.relaxed.sys [flag], 1"
        "cta 1: ld.relaxed.sys r0, [flag]; fence.acq_rel.sys; ld.weak r1, [data]"
    } "r0 == 1 && r1 == 0"
    "MP+fence.sc" Forbidden Compound "MP_fence" {
        "cta 0: st.relaxed.sys [x], 1; fence.sc.sys; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; fence.sc.sys; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fence in the writer alone" Allowed Compound "MP_fence1" {
        "cta 0: st.relaxed.sys [x], 1; fence.sc.sys; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fence in the reader alone" Allowed Compound "MP_fence2" {
        "cta 0: st.relaxed.sys [x], 1; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; fence.sc.sys; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fences.cta, other block" Allowed Compound "MP_fence_cta" {
        "cta 0: st.relaxed.sys [x], 1; fence.sc.cta; st.relaxed.sys [y], 1"
        "cta 1: ld.relaxed.sys r0, [y]; fence.sc.cta; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fence.sys+fence.cta, other block" Allowed Compound "MP_fence_cta_1fence" {
        "cta 0: st.relaxed.sys [x], 1; fence.sc.sys; st.relaxed.sys [y], 1"
        "cta 1: ld.relaxed.sys r0, [y]; fence.sc.cta; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+fences around weak flags" Allowed Axioms
        "PTX ISA, Release and Acquire Patterns: the write and the read of the flag must be strong" {
        "cta 0: st.weak [x], 1; fence.acq_rel.sys; st.weak [y], 1"
        "cta 1: ld.weak r0, [y]; fence.acq_rel.sys; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    "MP+release+later strong write" Forbidden Compound "MP_rel_seq" {
        "cta 0: st.relaxed.sys [x], 1; st.release.sys [y], 1; st.relaxed.sys [y], 2"
        "cta 0: ld.acquire.sys r0, [y]; ld.relaxed.sys r1, [x]"
    } "r0 == 2 && r1 == 0"
    "MP+release, later write, fence" Forbidden Dat3m
        "Nvidia/Release-acquire-pattern.litmus; mixedproxy permits it because its Alloy text leaves out acquire fences" {
        "cta 0: st.weak [y], 1; st.release.sys [x], 1; st.relaxed.sys [x], 2"
        "cta 1: ld.relaxed.sys r1, [x]; fence.acq_rel.sys; ld.weak r2, [y]"
    } "r1 == 2 && r2 == 0"
    "MP+flag read relaxed, then acquired from a later write" Forbidden Axioms
        "PTX ISA, Release and Acquire Patterns: a strong read with a later acquire of the location" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: st.relaxed.gpu [y], 2"
        "cta 2: ld.relaxed.gpu r0, [y]; ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 0"
    "MP+flag advanced by an atom" Forbidden Axioms "PTX ISA, Observation Order: through read-modify-write operations" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: atom.relaxed.gpu.add r0, [y], 1"
        "cta 2: ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 0"
    "MP+flag advanced by an atom of another scope" Allowed Axioms
        "PTX ISA, Observation Order: the first step must be morally strong" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: atom.relaxed.cta.add r0, [y], 1"
        "cta 2: ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 0"
    "MP+flag overwritten by a store" Allowed Axioms "PTX ISA, Observation Order: a plain store ends it" {
        "cta 0: st.weak [x], 1; st.release.gpu [y], 1"
        "cta 1: ld.relaxed.gpu r0, [y]; st.relaxed.gpu [y], 2"
        "cta 2: ld.acquire.gpu r1, [y]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 0"
    "MP+atom.acq_rel on the flag" Forbidden Axioms "PTX ISA, Release and Acquire Patterns: an atom is both" {
        "cta 0: st.weak [x], 1; atom.acq_rel.gpu.add r0, [y], 1"
        "cta 1: atom.acq_rel.gpu.add r1, [y], 1; ld.weak r2, [x]"
    } "r0 == 0 && r1 == 1 && r2 == 0"
    "MP+atom.relaxed on the flag" Allowed Axioms "PTX ISA, Release and Acquire Patterns: a relaxed atom is neither" {
        "cta 0: st.weak [x], 1; atom.relaxed.gpu.add r0, [y], 1"
        "cta 1: atom.relaxed.gpu.add r1, [y], 1; ld.weak r2, [x]"
    } "r0 == 0 && r1 == 1 && r2 == 0"
    "MP+red and a fence in the reader" Allowed PtxIsa
        "Special Cases, Reductions do not form Acquire Patterns" {
        "cta 0: st.weak [x], 42; fence.acq_rel.gpu; st.relaxed.gpu [flag], 1"
        "cta 1: red.relaxed.gpu.add [flag], 1; fence.acq_rel.gpu; ld.weak r0, [x]"
    } "[flag] == 2 && r0 == 0"
    "MP+atom and a fence in the reader" Forbidden PtxIsa
        "Special Cases, Reductions do not form Acquire Patterns, the same with atom" {
        "cta 0: st.weak [x], 42; fence.acq_rel.gpu; st.relaxed.gpu [flag], 1"
        "cta 1: atom.relaxed.gpu.add r1, [flag], 1; fence.acq_rel.gpu; ld.weak r0, [x]"
    } "r1 == 1 && r0 == 0"
    "MP+deque of Sorensen et al." Forbidden Dat3m
        "Manual/MP-dlb.litmus, after figure 7 of GPU Concurrency (ASPLOS 2015)" {
        "cta 0: st.relaxed.gpu [d], 1; fence.sc.gpu; ld.weak r2, [t]; st.weak [t], r2+1"
        "cta 1: ld.weak r0, [t]; if r0 == 1 then fence.sc.gpu; ld.relaxed.gpu r1, [d]"
    } "r0 == 1 && r1 == 0"
    "MP+deque without its writer's fence" Allowed Dat3m "Manual/MP-dlb-no-fence-1.litmus" {
        "cta 0: st.relaxed.gpu [d], 1; ld.weak r2, [t]; st.weak [t], r2+1"
        "cta 1: ld.weak r0, [t]; fence.sc.gpu; ld.relaxed.gpu r1, [d]"
    } "r0 == 1 && r1 == 0"
    "MP+volatile" Allowed MixedProxy "tests/CoMP_volatile.test" {
        "cta 0: st.weak [x], 1; st.volatile [x], 2"
        "cta 1: ld.weak r0, [x]; ld.volatile r1, [x]"
    } "r0 == 2 && r1 == 1"
    "MP+bar.sync" Forbidden Axioms "PTX ISA, Synchronizes: barriers of a block" {
        "cta 0: st.weak [x], 1; bar.sync 0"
        "cta 0: bar.sync 0; ld.weak r0, [x]"
    } "r0 == 0"
    "MP+bar.sync, then release" Forbidden Axioms "PTX ISA, Base causality order: release is cumulative behind a barrier" {
        "cta 0: st.weak [x], 1; bar.sync 0"
        "cta 0: bar.sync 0; st.release.gpu [y], 1"
        "cta 1: ld.acquire.gpu r0, [y]; ld.weak r1, [x]"
    } "r0 == 1 && r1 == 0"
    // Three threads in a chain.
    "ISA2+release.cta, release.gpu" Forbidden MixedProxy "tests/ISA2.test" {
        "cta 0: st.weak [x], 42; st.release.cta [flag1], 1"
        "cta 0: ld.acquire.cta r0, [flag1]; st.release.gpu [flag2], 1"
        "cta 1: ld.acquire.gpu r1, [flag2]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "ISA2+release.cta to another block" Allowed Compound "MP3_scoped" {
        "cta 0: st.release.cta [x], 1; st.release.cta [y], 1"
        "cta 1: ld.acquire.cta r0, [y]; st.release.cta [z], 1"
        "cta 1: ld.acquire.cta r1, [z]; ld.acquire.cta r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "ISA2+fences" Forbidden Compound "MP3_fences'" {
        "cta 0: st.relaxed.sys [x], 1; fence.acq_rel.sys; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; fence.acq_rel.sys; st.relaxed.sys [z], 1"
        "cta 0: ld.relaxed.sys r1, [z]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "ISA2+relaxed" Allowed Compound "MP3" {
        "cta 0: st.relaxed.sys [x], 1; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r0, [y]; st.relaxed.sys [z], 1"
        "cta 0: ld.relaxed.sys r1, [z]; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+release+acquire" Forbidden Compound "WRC_acqrel" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.acquire.sys r0, [x]; st.release.sys [y], 1"
        "cta 0: ld.acquire.sys r1, [y]; ld.acquire.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+acquire in the middle alone" Allowed Compound "WRC_acq_mid" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.acquire.sys r0, [x]; st.relaxed.sys [y], 1"
        "cta 0: ld.relaxed.sys r1, [y]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+release in the middle, fence" Forbidden Compound "WRC_rel_mid_no_fence" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.relaxed.sys r0, [x]; st.release.sys [y], 1"
        "cta 0: ld.relaxed.sys r1, [y]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+flag of cta scope within the block" Forbidden Compound "WRC_cta_1_2_acqrel" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.acq_rel.sys; st.relaxed.cta [y], 1"
        "cta 1: ld.relaxed.cta r1, [y]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+flag of cta scope between blocks" Allowed Compound "WRC_cta_1_1_1_cta_rf_right" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.acq_rel.sys; st.relaxed.cta [y], 1"
        "cta 2: ld.relaxed.cta r1, [y]; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "WRC+first write of cta scope" Allowed Compound "WRC_cta_1_1_1_cta_rf_left_sc" {
        "cta 0: st.relaxed.cta [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.sc.sys; st.relaxed.sys [y], 1"
        "cta 2: ld.relaxed.sys r1, [y]; fence.sc.sys; ld.relaxed.sys r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    "MP in three steps, one thread twice" Forbidden MixedProxy "tests/Manual/MP-3-transitive.test" {
        "cta 0: st.weak [x], 1; st.release.cta [y], 1"
        "cta 0: ld.acquire.cta r0, [y]; st.release.gpu [z], 1"
        "cta 1: ld.acquire.gpu r1, [z]; ld.weak r2, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 0"
    // Store buffering.
    "SB+weak" Allowed MixedProxy "tests/Manual/SB-weak.test" {
        "cta 0: st.weak [x], 1; ld.weak r1, [y]"
        "cta 1: st.weak [y], 1; ld.weak r2, [x]"
    } "r1 == 0 && r2 == 0"
    "SB+release+acquire" Allowed Compound "dekkers_acqrel" {
        "cta 0: st.release.sys [x], 1; ld.acquire.sys r1, [y]"
        "cta 0: st.release.sys [y], 1; ld.acquire.sys r2, [x]"
    } "r1 == 0 && r2 == 0"
    "SB+fence.acq_rel" Allowed Compound "dekkers_acqrelfence" {
        "cta 0: st.relaxed.sys [x], 1; fence.acq_rel.sys; ld.relaxed.sys r1, [y]"
        "cta 0: st.relaxed.sys [y], 1; fence.acq_rel.sys; ld.relaxed.sys r2, [x]"
    } "r1 == 0 && r2 == 0"
    "SB+fence.acq_rel.cta, one side seen" Allowed MixedProxy "tests/Manual/SB+acq_rel-cta.test" {
        "cta 0: st.release.cta [x], 1; fence.acq_rel.cta; ld.acquire.cta r1, [y]"
        "cta 0: st.release.cta [y], 1; fence.acq_rel.cta; ld.acquire.cta r2, [x]"
    } "r1 == 1 && r2 == 0"
    "SB+fence.sc.cta, same block" Forbidden MixedProxy "tests/SB_cta.test" {
        "cta 0: st.weak [x], 1; fence.sc.cta; ld.weak r0, [y]"
        "cta 0: st.weak [y], 2; fence.sc.cta; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "SB+fence.sc.cta, other block" Allowed Axioms
        "PTX ISA, Fence-SC: fences out of each other's scope are in no order; mixedproxy SB+sc-cta-outScope.test asks for more" {
        "cta 0: st.weak [x], 1; fence.sc.cta; ld.weak r0, [y]"
        "cta 1: st.weak [y], 1; fence.sc.cta; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "SB+fence.sc.sys+fence.sc.gpu" Forbidden Dat3m "Manual/SB+sc-sys-gpu.litmus" {
        "cta 0: st.weak [x], 1; fence.sc.sys; ld.weak r1, [y]"
        "cta 1: st.weak [y], 1; fence.sc.gpu; ld.weak r2, [x]"
    } "r1 == 0 && r2 == 0"
    "SB+two fences each" Forbidden MixedProxy "tests/Manual/SB+sc-gpu-multipleFence.test" {
        "cta 0: st.weak [x], 1; fence.sc.gpu; st.weak [x], 2; fence.sc.gpu; ld.weak r1, [y]"
        "cta 1: st.weak [y], 1; fence.sc.gpu; st.weak [y], 2; fence.sc.gpu; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 1"
    "SB+atoms" Forbidden MixedProxy "tests/SB_rmw.test" {
        "cta 0: atom.acq_rel.gpu.add r1, [x], 1; atom.acq_rel.gpu.add r2, [y], 1"
        "cta 1: atom.acq_rel.gpu.add r3, [y], 1; atom.acq_rel.gpu.add r4, [x], 1"
    } "r2 == 0 && r4 == 0"
    "SB+atoms against a load" Allowed MixedProxy "tests/SB_rmw_2.test" {
        "cta 0: atom.acq_rel.gpu.add r1, [x], 1; atom.acq_rel.gpu.add r2, [y], 1"
        "cta 1: st.relaxed.gpu [y], 1; ld.relaxed.gpu r3, [x]"
    } "r2 == 0 && r3 == 0"
    "SB+bar.sync" Forbidden Dat3m "Manual/SB+bar-const-equal.litmus" {
        "cta 0: st.weak [x], 1; bar.sync 0; ld.weak r0, [y]"
        "cta 0: st.weak [y], 1; bar.sync 0; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "SB+bar.sync of two numbers" Allowed Dat3m "Manual/SB+bar-const-diff.litmus" {
        "cta 0: st.weak [x], 1; bar.sync 0; ld.weak r0, [y]"
        "cta 0: st.weak [y], 1; bar.sync 1; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "SB+bar.sync of two blocks" Allowed Dat3m "Manual/SB+bar-diff-cta.litmus" {
        "cta 0: st.weak [x], 1; bar.sync 0; ld.weak r0, [y]"
        "cta 1: st.weak [y], 1; bar.sync 0; ld.weak r1, [x]"
    } "r0 == 0 && r1 == 0"
    "R+fence.sc" Forbidden Axioms "PTX ISA, Fence-SC and Causality" {
        "cta 0: st.relaxed.gpu [x], 1; fence.sc.gpu; st.relaxed.gpu [y], 1"
        "cta 1: st.relaxed.gpu [y], 2; fence.sc.gpu; ld.relaxed.gpu r0, [x]"
    } "[y] == 2 && r0 == 0"
    "R+fence.acq_rel" Allowed Axioms "PTX ISA, Coherence: without synchronisation the order of the writes is open" {
        "cta 0: st.relaxed.gpu [x], 1; fence.acq_rel.gpu; st.relaxed.gpu [y], 1"
        "cta 1: st.relaxed.gpu [y], 2; fence.acq_rel.gpu; ld.relaxed.gpu r0, [x]"
    } "[y] == 2 && r0 == 0"
    "RWC+fence.sc" Forbidden Axioms "PTX ISA, Fence-SC and Causality through observation" {
        "cta 0: st.relaxed.gpu [x], 1"
        "cta 1: ld.relaxed.gpu r0, [x]; fence.sc.gpu; ld.relaxed.gpu r1, [y]"
        "cta 2: st.relaxed.gpu [y], 1; fence.sc.gpu; ld.relaxed.gpu r2, [x]"
    } "r0 == 1 && r1 == 0 && r2 == 0"
    // Load buffering.
    "LB+relaxed" Allowed Axioms "PTX ISA, No Thin Air: only dependencies count" {
        "cta 0: ld.relaxed.gpu r0, [x]; st.relaxed.gpu [y], 1"
        "cta 1: ld.relaxed.gpu r1, [y]; st.relaxed.gpu [x], 1"
    } "r0 == 1 && r1 == 1"
    "LB+true dependencies" Forbidden PtxIsa "Axioms, No Thin Air, litmus test Load Buffering; Dat3M LB+NoThinAir-register" {
        "cta 0: ld.weak r0, [x]; st.weak [y], r0"
        "cta 1: ld.weak r1, [y]; st.weak [x], r1"
    } "r0 == 1 && r1 == 1"
    "LB+one dependency" Allowed Axioms "PTX ISA, No Thin Air: the chain must be whole" {
        "cta 0: ld.weak r0, [x]; st.weak [y], r0"
        "cta 1: ld.weak r1, [y]; st.weak [x], 1"
    } "r0 == 1 && r1 == 1"
    "LB+acquire, release" Forbidden Axioms "PTX ISA, Causality: a read cannot see a write that it causes" {
        "cta 0: ld.acquire.gpu r0, [x]; st.release.gpu [y], 1"
        "cta 1: ld.acquire.gpu r1, [y]; st.release.gpu [x], 1"
    } "r0 == 1 && r1 == 1"
    "LB+deque of Sorensen et al." Forbidden Dat3m
        "Manual/LB-dlb.litmus, after figure 8 of GPU Concurrency (ASPLOS 2015)" {
        "cta 0: atom.relaxed.gpu.cas r0, [h], 0, 1; fence.sc.gpu; st.weak [t], 1"
        "cta 1: ld.weak r1, [t]; fence.sc.gpu; atom.relaxed.gpu.cas r3, [h], 0, 1"
    } "r0 == 1 && r1 == 1"
    "LB+deque without its first fence" Allowed Dat3m "Manual/LB-dlb-no-fence-1.litmus" {
        "cta 0: atom.relaxed.gpu.cas r0, [h], 0, 1; st.relaxed.gpu [t], 1"
        "cta 1: ld.relaxed.gpu r1, [t]; fence.sc.gpu; atom.relaxed.gpu.cas r3, [h], 0, 1"
    } "r0 == 1 && r1 == 1"
    "LB+bar.sync" Forbidden Dat3m "Manual/PC-bar-sync-sync-1.litmus" {
        "cta 0: ld.weak r0, [x]; bar.sync 0; bar.sync 1"
        "cta 0: bar.sync 0; st.weak [x], 1; bar.sync 1"
    } "r0 == 1"
    // Independent reads of independent writes.
    "IRIW+relaxed" Allowed Compound "IRIW" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.relaxed.sys r0, [x]; ld.relaxed.sys r1, [y]"
        "cta 0: ld.relaxed.sys r2, [y]; ld.relaxed.sys r3, [x]"
        "cta 0: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+release+acquire" Allowed Compound "IRIW_relacq" {
        "cta 0: st.release.sys [x], 1"
        "cta 0: ld.acquire.sys r0, [x]; ld.acquire.sys r1, [y]"
        "cta 0: ld.acquire.sys r2, [y]; ld.acquire.sys r3, [x]"
        "cta 0: st.release.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc" Forbidden Compound "IRIW_fences" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.relaxed.sys r0, [x]; fence.sc.sys; ld.relaxed.sys r1, [y]"
        "cta 0: ld.relaxed.sys r2, [y]; fence.sc.sys; ld.relaxed.sys r3, [x]"
        "cta 0: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc and fence.acq_rel" Allowed Compound "IRIW_sc_acqrel_fence" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: ld.relaxed.sys r0, [x]; fence.sc.sys; ld.relaxed.sys r1, [y]"
        "cta 0: ld.relaxed.sys r2, [y]; fence.acq_rel.sys; ld.relaxed.sys r3, [x]"
        "cta 0: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc.cta, readers in one block" Forbidden Compound "IRIW_3ctas" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.sc.cta; ld.relaxed.sys r1, [y]"
        "cta 1: ld.relaxed.sys r2, [y]; fence.sc.cta; ld.relaxed.sys r3, [x]"
        "cta 2: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc.cta, a write of cta scope" Allowed Compound "IRIW_3ctas_1scoped_w" {
        "cta 0: st.relaxed.cta [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.sc.cta; ld.relaxed.sys r1, [y]"
        "cta 1: ld.relaxed.sys r2, [y]; fence.sc.cta; ld.relaxed.sys r3, [x]"
        "cta 2: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc.cta, readers in two blocks" Allowed Compound "IRIW_2ctas" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; fence.sc.cta; ld.relaxed.sys r1, [y]"
        "cta 0: ld.relaxed.sys r2, [y]; fence.sc.cta; ld.relaxed.sys r3, [x]"
        "cta 1: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    "IRIW+fence.sc.sys, reads of cta scope" Allowed Compound "IRIW_4ctas" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.cta r0, [x]; fence.sc.sys; ld.relaxed.cta r1, [y]"
        "cta 2: ld.relaxed.cta r2, [y]; fence.sc.sys; ld.relaxed.sys r3, [x]"
        "cta 3: st.relaxed.sys [y], 1"
    } "r0 == 1 && r1 == 0 && r2 == 1 && r3 == 0"
    // One location.
    "CoRR+relaxed" Forbidden PtxIsa "Axioms, Sequential Consistency Per Location, litmus test CoRR" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 1: ld.relaxed.sys r0, [x]; ld.relaxed.sys r1, [x]"
    } "r0 == 1 && r1 == 0"
    "CoRR+acquire, then weak" Forbidden MixedProxy "tests/Manual/CoRR-acquire-weak.test" {
        "cta 0: st.release.gpu [x], 1"
        "cta 1: ld.acquire.gpu r1, [x]; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 0"
    "CoRR+weak" Allowed Dat3m "Manual/CoRR-weak-weak.litmus" {
        "gpu 0 cta 0: st.release.gpu [x], 1"
        "gpu 1 cta 1: ld.weak r1, [x]; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 0"
    "CoRR+four threads" Forbidden MixedProxy "tests/Manual/Coherence.test" {
        "cta 0: st.relaxed.sys [x], 1"
        "cta 0: st.relaxed.sys [x], 2"
        "cta 0: ld.acquire.sys r0, [x]; ld.acquire.sys r1, [x]"
        "cta 0: ld.acquire.sys r2, [x]; ld.acquire.sys r3, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 2 && r3 == 1"
    "CoRR+four threads, weak writes" Allowed MixedProxy "tests/Manual/Coherence-weak.test" {
        "cta 0: st.weak [x], 1"
        "cta 0: st.weak [x], 2"
        "cta 0: ld.acquire.sys r0, [x]; ld.acquire.sys r1, [x]"
        "cta 0: ld.acquire.sys r2, [x]; ld.acquire.sys r3, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 2 && r3 == 1"
    "CoRR+cta scope, other block" Allowed Compound "write_serialization" {
        "cta 0: st.relaxed.cta [x], 1; st.relaxed.cta [x], 2"
        "cta 0: ld.relaxed.cta r0, [x]; ld.relaxed.cta r1, [x]"
        "cta 1: ld.relaxed.cta r2, [x]; ld.relaxed.cta r3, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 2 && r3 == 1"
    "CoRR+cta scope, same block" Forbidden Compound "write_serialization_unscoped" {
        "cta 0: st.relaxed.cta [x], 1; st.relaxed.cta [x], 2"
        "cta 0: ld.relaxed.cta r0, [x]; ld.relaxed.cta r1, [x]"
        "cta 0: ld.relaxed.cta r2, [x]; ld.relaxed.cta r3, [x]"
    } "r0 == 1 && r1 == 2 && r2 == 2 && r3 == 1"
    "CoWW" Forbidden Dat3m "Manual/CoWW_.litmus" {
        "cta 0: st.weak [x], 1; st.weak [x], 2"
    } "[x] == 1"
    "CoWW+weak reads" Allowed MixedProxy "tests/Manual/CoWW-RR.test" {
        "cta 0: st.weak [x], 1; st.weak [x], 2"
        "cta 0: ld.weak r0, [x]; ld.weak r1, [x]"
    } "r0 == 2 && r1 == 1"
    "CoWW+own acquire" Forbidden MixedProxy "tests/Manual/CoWW-R.test" {
        "cta 0: st.weak [x], 1; st.weak [x], 2; ld.acquire.sys r1, [x]"
    } "r1 == 1"
    "CoWR" Forbidden MixedProxy "tests/CoWR.test, first row" {
        "cta 0: st.weak [x], 1; ld.weak r0, [x]"
    } "r0 == 0"
    "CoWR+another's write" Allowed MixedProxy "tests/Manual/CoWR-R.test" {
        "cta 0: st.release.gpu [x], 1"
        "cta 1: st.release.sys [x], 2; ld.weak r1, [x]; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 1"
    "CoRW" Forbidden MixedProxy "tests/Manual/CoRW-R.test" {
        "cta 0: st.release.sys [x], 1"
        "cta 1: ld.acquire.sys r1, [x]; st.weak [x], 2; ld.weak r2, [x]"
    } "r1 == 1 && r2 == 1"
    "CoRW+two threads" Forbidden Compound "co_two_thread" {
        "cta 0: st.relaxed.sys [x], 1; ld.relaxed.sys r0, [x]"
        "cta 0: st.relaxed.sys [x], 2; ld.relaxed.sys r1, [x]"
    } "r0 == 2 && r1 == 1"
    "CoRW, observed" Forbidden MixedProxy "tests/Manual/Cause-base-strong.test" {
        "cta 0: st.release.gpu [x], 1; st.release.sys [f1], 1"
        "cta 1: ld.acquire.gpu r1, [x]; st.weak [x], 2; st.release.sys [f2], 1"
        "cta 2: ld.acquire.sys r2, [f2]; ld.acquire.sys r3, [f2]; ld.weak r4, [x]"
    } "r1 == 1 && r2 == 1 && r3 == 1 && r4 == 1"
    "CoRW, not observed" Allowed MixedProxy "tests/Manual/Cause-base-weak.test" {
        "cta 0: st.weak [x], 1; st.release.sys [f1], 1"
        "cta 1: ld.acquire.gpu r1, [x]; st.weak [x], 2; st.release.sys [f2], 1"
        "cta 2: ld.acquire.sys r2, [f2]; ld.acquire.sys r3, [f2]; ld.weak r4, [x]"
    } "r1 == 1 && r2 == 1 && r3 == 1 && r4 == 1"
    "Coherence is partial" Allowed MixedProxy "tests/Manual/Co-Total-4-threads.test" {
        "cta 0: st.weak [x], 1; st.release.sys [f1], 1"
        "cta 0: st.weak [x], 2; st.release.sys [f2], 1"
        "cta 0: ld.acquire.sys r0, [f1]; ld.acquire.sys r1, [f2]; ld.weak r2, [x]"
        "cta 0: ld.acquire.sys r3, [f1]; ld.acquire.sys r4, [f2]; ld.weak r5, [x]"
    } "r0 == 1 && r1 == 1 && r2 == 1 && r3 == 1 && r4 == 1 && r5 == 2"
    // Writes alone.
    "2+2W+relaxed" Allowed Axioms "PTX ISA, Coherence Order: orders of two locations are independent" {
        "cta 0: st.relaxed.gpu [x], 1; st.relaxed.gpu [y], 2"
        "cta 1: st.relaxed.gpu [y], 1; st.relaxed.gpu [x], 2"
    } "[x] == 1 && [y] == 1"
    "2+2W+release, seen by acquire" Allowed Compound "two_plus_two2" {
        "cta 0: st.release.sys [x], 1; st.release.sys [y], 2; ld.acquire.sys r0, [y]"
        "cta 0: st.release.sys [y], 1; st.release.sys [x], 2; ld.acquire.sys r1, [x]"
    } "r0 == 1 && r1 == 1"
    "2+2W+fence.sc" Forbidden Axioms "PTX ISA, Fence-SC and Coherence" {
        "cta 0: st.relaxed.gpu [x], 1; fence.sc.gpu; st.relaxed.gpu [y], 2"
        "cta 1: st.relaxed.gpu [y], 1; fence.sc.gpu; st.relaxed.gpu [x], 2"
    } "[x] == 1 && [y] == 1"
    "S+release+acquire" Forbidden Axioms "PTX ISA, Coherence: causality order of writes is their coherence order" {
        "cta 0: st.relaxed.gpu [x], 2; st.release.gpu [y], 1"
        "cta 1: ld.acquire.gpu r0, [y]; st.relaxed.gpu [x], 1"
    } "r0 == 1 && [x] == 2"
    "S+relaxed" Allowed Axioms "PTX ISA, Coherence: without causality order the order is open" {
        "cta 0: st.relaxed.gpu [x], 2; st.relaxed.gpu [y], 1"
        "cta 1: ld.relaxed.gpu r0, [y]; st.relaxed.gpu [x], 1"
    } "r0 == 1 && [x] == 2"
    // Atomicity.
    "Atomicity of atoms" Forbidden PtxIsa "Axioms, Atomicity, litmus test 1; Dat3M Nvidia/Atom-plus-location_" {
        "cta 0: atom.relaxed.sys.add r0, [x], 1"
        "cta 1: atom.relaxed.sys.add r1, [x], 1"
    } "[x] == 1"
    "Atomicity of atoms of cta scope" Allowed PtxIsa "Axioms, Atomicity, litmus test 2; Dat3M Manual/Atom-plus-location-weak_" {
        "cta 0: atom.acq_rel.cta.add r0, [x], 1"
        "cta 1: atom.acq_rel.cta.add r1, [x], 1"
    } "[x] == 1"
    "Atomicity of reductions" Forbidden Dat3m "Nvidia/Red-plus-location_.litmus" {
        "cta 0: red.acq_rel.sys.add [x], 1"
        "cta 1: red.acq_rel.sys.add [x], 1"
    } "[x] == 1"
    "Two atoms take one number" Forbidden Axioms "PTX ISA, Atomicity: one would come between the other's read and write" {
        "cta 0: atom.relaxed.gpu.add r0, [x], 1"
        "cta 1: atom.relaxed.gpu.add r1, [x], 1"
        "cta 2: atom.relaxed.gpu.add r2, [x], 1"
    } "r0 == 1 && r1 == 1"
    // Width.
    "A 64-bit scalar in halves" Forbidden PtxIsa "Axioms, Atomicity, Single-Copy Atomicity" {
        "cta 0: st.relaxed.gpu.b64 [x], 1, 1"
        "cta 1: ld.relaxed.gpu.b64 r0, r1, [x]"
    } "r0 == 1 && r1 == 0"
    "A 64-bit scalar in halves, weak" Allowed Axioms
        "PTX ISA, Single-Copy Atomicity: of morally strong operations only" {
        "cta 0: st.weak.b64 [x], 1, 1"
        "cta 1: ld.relaxed.gpu.b64 r0, r1, [x]"
    } "r0 == 1 && r1 == 0"
    "A vector of two words" Allowed PtxIsa "Vector Data-types: as many scalar accesses, in no order" {
        "cta 0: st.relaxed.gpu.v2.b32 [x], 1, 1"
        "cta 1: ld.relaxed.gpu.v2.b32 r0, r1, [x]"
    } "r0 == 1 && r1 == 0"
    "A vector store against a scalar load" Allowed PtxIsa
        "Vector Data-types, and Mixed-size Data-races: the axioms promise nothing" {
        "cta 0: st.relaxed.gpu.v2.b32 [x], 1, 1"
        "cta 1: ld.relaxed.gpu.b64 r0, r1, [x]"
    } "r0 == 0 && r1 == 1"
    "Two halves stored one after the other" Allowed PtxIsa "Mixed-size Data-races: the axioms promise nothing" {
        "cta 0: st.relaxed.gpu.b32 [x], 1; st.relaxed.gpu.b32 [x+4], 1"
        "cta 1: ld.relaxed.gpu.b64 r0, r1, [x]"
    } "r0 == 0 && r1 == 1"
    "A 128-bit scalar in halves" Forbidden Axioms "PTX ISA, ld and st with .b128: one scalar; the chapter's text names 64 bits" {
        "cta 0: st.relaxed.gpu.b128 [x], 1, 1, 1, 1"
        "cta 1: ld.relaxed.gpu.b128 r0, r1, r2, r3, [x]"
    } "r0 == 1 && r3 == 0"
};

/// All tests as a Markdown table, as `docs/memory-model.md` has it.
pub fn table() -> String {
    let mut text = String::from("| test | outcome | verdict | source |\n|---|---|---|---|\n");
    for test in TESTS {
        let Litmus { name, outcome, verdict, origin, source, .. } = test;
        text += &format!("| {name} | `{outcome}` | {verdict} | {origin}: {source} |\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_most_verdicts_are_listed_somewhere() {
        for (index, test) in TESTS.iter().enumerate() {
            assert!(TESTS[index + 1..].iter().all(|other| other.name != test.name), "{}", test.name);
        }
        let listed = TESTS.iter().filter(|test| test.origin != Origin::Axioms).count();
        assert!(listed >= 30, "{listed} of {}", TESTS.len());
    }

    #[test]
    fn what_is_no_test_is_an_error() {
        for text in ["no thread", "cta x: st.weak [x], 1", "cta 0: jump", "cta 0: ld.weak q, [x]", "cta 0: atom.add"] {
            assert!(parse(text).is_err(), "{text}");
        }
        let unknown = Litmus { outcome: "r7 == 1", ..TESTS[0] };
        assert!(matches!(unknown.run(), Err(LitmusError::Syntax { .. })));
    }
}
