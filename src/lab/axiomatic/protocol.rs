//! The descriptor protocol as small programs, and what every execution of them must keep.
//!
//! The programs are made of the sequences that [`super::extract`] finds in a kernel's PTX. Values are sequences of
//! tiles, so a prefix tells which tiles it is made of. There are four parts:
//!
//! - [`Part::Composition`]: one launch. Tile 0 publishes its prefix; each other tile publishes its aggregate, looks
//!   back lane by lane (a lane a thread, results shuffled) until it meets a prefix, and publishes its own. With one
//!   wave each tile publishes its aggregate alone and reads those of all tiles before it, a lane a tile. The prefix
//!   that each tile computes is that of all tiles before it, each once and in order; nothing is in a data race. All of
//!   it with a window that holds all tiles, and again with one of [`NARROW_WINDOW`] lanes.
//! - [`Part::HandOver`]: the same, then the end of a launch at the largest epoch. Every access to a descriptor comes
//!   before the clean-up of that descriptor in causality order, and nothing is in coherence order behind it.
//! - [`Part::Counters`]: no two blocks take one ticket, no two are counted done by one number, no block sees the
//!   epoch that this launch ends with, and the next launch finds both counters 0.
//! - [`Part::Block`]: what one thread hands to its block in shared memory (tile and epoch, the prefix) arrives.
//!
//! A wait is its last read, the successful one: the failed ones before it only add constraints. That every wait ends
//! is not shown here.

use super::axioms::{self, Statistics};
use super::extract;
use super::look_ahead;
pub use super::model::{CheckError, NARROW_WINDOW, Part};
use super::model::{Model, for_all_look_backs};
use super::sequences::{Counter, Role, Sequences};
use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// An execution that breaks the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong.
    pub what: String,
    /// The execution: every event, what reads read, the order of writes.
    pub execution: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.what)?;
        self.execution.iter().try_for_each(|line| write!(formatter, "\n  {line}"))
    }
}

/// What came of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartReport {
    /// The part.
    pub part: Part,
    /// How many programs it took.
    pub programs: u64,
    /// How many executions.
    pub statistics: Statistics,
    /// How long it took.
    pub elapsed: Duration,
    /// The first execution that breaks it; the search ends there.
    pub violation: Option<Violation>,
}

/// What came of all parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How many tiles, each with a block of its own.
    pub tiles: usize,
    /// The parts.
    pub parts: Vec<PartReport>,
}

impl Report {
    /// The first violation.
    pub fn violation(&self) -> Option<(Part, &Violation)> {
        self.parts.iter().find_map(|part| Some((part.part, part.violation.as_ref()?)))
    }

    /// Executions of all parts.
    pub fn statistics(&self) -> Statistics {
        let mut sum = Statistics::default();
        self.parts.iter().for_each(|part| sum.add(part.statistics));
        sum
    }

    /// Time of all parts.
    pub fn elapsed(&self) -> Duration {
        self.parts.iter().map(|part| part.elapsed).sum()
    }
}

/// Checks the protocol of a kernel, given its PTX with line information, with that many tiles.
///
/// # Errors
/// When the PTX is not understood or the model gets too large.
pub fn check_ptx(ptx: &str, tiles: usize) -> Result<Report, CheckError> {
    check(&extract::extract(ptx)?, tiles)
}

/// Checks a protocol with that many tiles.
///
/// # Errors
/// When the model gets too large.
pub fn check(sequences: &Sequences, tiles: usize) -> Result<Report, CheckError> {
    check_while(sequences, tiles, &|| true)
}

/// The same as long as it may go on.
///
/// # Errors
/// When the model gets too large, or it may not go on.
pub fn check_while(sequences: &Sequences, tiles: usize, goes_on: &dyn Fn() -> bool) -> Result<Report, CheckError> {
    let part = |&part: &Part| check_part_while(sequences, tiles, part, goes_on);
    Ok(Report { tiles, parts: Part::ALL.iter().map(part).collect::<Result<_, _>>()? })
}

/// Checks one part.
///
/// # Errors
/// When the model gets too large.
pub fn check_part(sequences: &Sequences, tiles: usize, part: Part) -> Result<PartReport, CheckError> {
    check_part_while(sequences, tiles, part, &|| true)
}

fn check_part_while(
    sequences: &Sequences,
    tiles: usize,
    part: Part,
    goes_on: &dyn Fn() -> bool,
) -> Result<PartReport, CheckError> {
    let started = Instant::now();
    let mut report = PartReport {
        part,
        programs: 0,
        statistics: Statistics::default(),
        elapsed: Duration::ZERO,
        violation: structure(sequences, part),
    };
    if report.violation.is_none() {
        let mut run = |model: Model<'_>| -> Result<ControlFlow<()>, CheckError> {
            report.programs += 1;
            let mut is_finished = goes_on();
            let statistics = axioms::search(&model.program, &mut |execution| match model.judge(execution) {
                _ if !is_finished => ControlFlow::Break(()),
                Some(what) => {
                    let execution = execution.transcript(&|cell, value| model.describe(cell, value));
                    report.violation = Some(Violation { what, execution });
                    ControlFlow::Break(())
                }
                None => {
                    is_finished = goes_on();
                    ControlFlow::Continue(())
                }
            })?;
            if !is_finished {
                return Err(CheckError::Unfinished { tiles });
            }
            report.statistics.add(statistics);
            Ok(if report.violation.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        match part {
            _ if sequences.ring.is_some() => look_ahead::for_all(sequences, tiles, part, &mut run)?,
            Part::Composition => for_all_look_backs(sequences, tiles, part, &mut |look_back| {
                run(Model::composition(sequences, &look_back))
            })?,
            Part::HandOver => for_all_look_backs(sequences, tiles, part, &mut |look_back| {
                for last in 0..tiles {
                    if run(Model::hand_over(sequences, &look_back, last))?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?,
            Part::Counters => {
                let models =
                    [Counter::Ticket, Counter::Finished].map(|counter| Model::numbers(sequences, tiles, counter));
                for model in models.into_iter().flatten().chain([Model::counters(sequences, tiles)]) {
                    if run(model)?.is_break() {
                        break;
                    }
                }
            }
            Part::Block => {
                let handed = [(&sequences.start, &sequences.start), (&sequences.hand_over, &sequences.result)];
                for (writer, reader) in handed {
                    if run(Model::block(sequences, writer, reader))?.is_break() {
                        break;
                    }
                }
            }
        }
    }
    report.elapsed = started.elapsed();
    Ok(report)
}

/// What is wrong before any execution: a part of the protocol that is not there.
fn structure(sequences: &Sequences, part: Part) -> Option<Violation> {
    let resets = |counter| sequences.resets.iter().any(|step| step.role == Role::Counter(counter));
    let hands_out_tickets = sequences.start.iter().any(|step| step.role == Role::Counter(Counter::Ticket));
    if let (Part::Block, Some(ring)) = (part, &sequences.ring)
        && let Some(what) = look_ahead::miscounted(ring)
    {
        return Some(Violation { what, execution: Vec::new() });
    }
    let what = match part {
        Part::HandOver if sequences.invalidate.is_empty() => "nothing clears the descriptors at the epoch's wrap",
        Part::Counters if hands_out_tickets && !resets(Counter::Ticket) => "nothing resets the ticket",
        Part::Counters if !resets(Counter::Finished) => "nothing resets the count of finished blocks",
        Part::Counters if !resets(Counter::Epochs) => "nothing completes the epoch",
        _ => return None,
    };
    Some(Violation { what: what.to_owned(), execution: Vec::new() })
}
