//! From the text of a litmus test to its program and what is asked of it.

use crate::lab::axiomatic::axioms::{Execution, ModelError};
use crate::lab::axiomatic::program::{
    Access, Expression, Operation, Place, Program, Register, Scope, Semantics, Statement, Thread,
};
use std::collections::BTreeMap;

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

/// A program with the names of its registers and locations.
#[derive(Debug, Clone)]
pub(super) struct Parsed {
    /// The program.
    pub(super) program: Program,
    registers: BTreeMap<String, Register>,
    objects: BTreeMap<String, usize>,
}

/// One equation of an outcome.
pub(super) enum Term {
    Register(Register, u64),
    Cell(usize, u64),
}

impl Term {
    pub(super) fn holds(&self, execution: &Execution<'_>) -> bool {
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
pub(super) fn parse(text: &str) -> Result<Parsed, LitmusError> {
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

    pub(super) fn outcome(&self, text: &str) -> Result<Vec<Term>, LitmusError> {
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
