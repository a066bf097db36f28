//! The tuning table that follows from a record.
//!
//! [`derive()`] makes the table from the record alone, so that the same record gives the same bytes on any machine:
//!
//! - a candidate's *cost* at a size is the geometric mean of its six medians (graph, stream and cold, inclusive and
//!   exclusive; of a problem of three), those of a figure by the best there; those of the full pass count, and of plain scans
//!   none that spills registers if one does not, nor look-ahead with tiles of more than 32 KiB if there is another,
//! - candidates *within noise* of the least cost are as good as it: within 1 %, or three standard errors up to 3 %,
//! - from the smallest size on, a range goes as far as one candidate is within noise of the best at every size in it; of
//!   several such candidates it takes the one of least cost over the range,
//! - ranges meet at the geometric mean of the two sizes beside the boundary, or where the lower one has had a whole number of rounds
//!   of tiles ([`Shape::tiles_of_a_round`]), if that is before,
//!
//!   [`Shape::tiles_of_a_round`]: crate::strategy::Shape::tiles_of_a_round
//!
//! - where the record was not finished, or a size of a type is missing in it, the last range of the type ends with the
//!   largest size that was measured. Larger arrays, and types of which nothing was measured, take the strategies of the
//!   committed table for the GPU in the configurations that are suggested for the size; the table's `note` says so. Of a problem
//!   there are no rows for these, and `auto` goes by its rules.

use super::super::record::SweepRecord;
use super::super::sweep::SweepFile;
use super::rivals::{Key, Rival, modes_of, rivals, within_noise};
use super::{NAME, TuneError, tuned};
use crate::element::Instance;
use crate::strategy::Mode;
use crate::strategy::tuning::{Evidence, RunnerUp, Tuned, Tuning, TuningHeader, TuningRow, TuningTable};
use crate::text::format_size;
use std::collections::{BTreeMap, BTreeSet};

/// The table that follows from a record. Of a record that is not complete it says so in its `note`.
///
/// # Errors
/// When the record is of another sweep, has no point with all three figures, or what was measured does not make a
/// table.
pub fn derive(record: &SweepRecord) -> Result<TuningTable, TuneError> {
    let header = &record.header;
    if header.sweep.name != NAME {
        return Err(TuneError::OtherSweep { found: header.sweep.name.clone() });
    }
    // Older records have inclusive scans alone.
    let is_measured = |mode: &Mode| header.sweep.groups.iter().any(|group| group.modes.contains(mode));
    let mut points: BTreeMap<Tuned, BTreeMap<u64, Vec<Rival>>> = BTreeMap::new();
    // Other offsets are other work, and a table has nothing to say of them.
    for point in record.points.iter().filter(|point| point.offsets.is_aligned()) {
        let Ok(workload) = point.key().workload() else { continue };
        let modes: Vec<Mode> = modes_of(workload).iter().copied().filter(is_measured).collect();
        let rivals = rivals(record.rows.iter().filter(|row| row.point() == point.key()), &modes);
        if !rivals.is_empty() {
            points.entry(tuned(workload)).or_default().insert(point.n, rivals);
        }
    }
    if points.is_empty() {
        return Err(TuneError::NothingMeasured);
    }
    let planned = planned(&header.sweep);
    let machine = &header.machine;
    let committed = Tuning::committed(machine.tuning_gpu());
    let mut rows = Vec::new();
    let mut unmeasured = Unmeasured::default();
    let nothing = BTreeMap::new();
    for tuned in points.keys().chain(planned.keys()).collect::<BTreeSet<_>>() {
        let sizes = points.get(tuned).unwrap_or(&nothing);
        rows.extend(ranges(sizes, machine.multiprocessors).into_iter().map(|(key, sizes, up_to)| TuningRow {
            tuned: tuned.clone(),
            up_to,
            strategy: key.strategy,
            vt: Some(key.vt),
            block_threads: Some(key.block_threads),
            composition: key.composition,
            evidence: sizes.iter().filter_map(|(n, rivals)| evidence(key, *n, rivals)).collect(),
        }));
        let mut wanted = planned.get(tuned).into_iter().flatten();
        if record.finished.is_some() && wanted.all(|n| sizes.contains_key(n)) {
            continue;
        }
        let largest = sizes.keys().next_back().copied();
        if let (Some(_), Some(row)) = (largest, rows.last_mut()) {
            row.up_to = largest;
        }
        let what = match largest {
            Some(n) => format!("{tuned} above n = {}", format_size(n)),
            None => format!("{tuned} at all sizes"),
        };
        match tuned {
            Tuned::Plain { element, operator } => {
                let instance =
                    Instance::new(*element, *operator).map(|of| rows_above(largest.unwrap_or(0), of, &committed));
                rows.extend(instance.into_iter().flatten());
                unmeasured.plain.push(what);
            }
            Tuned::Problem { .. } => unmeasured.problems.push(what),
        }
    }
    let commit = header.program.git_commit.as_ref().map(|commit| {
        let dirty = if header.program.git_dirty == Some(true) { "-dirty" } else { "" };
        format!("{commit}{dirty}")
    });
    let header = TuningHeader {
        gpu: machine.gpu.clone(),
        compute_capability: Some(machine.compute_capability.clone()),
        multiprocessors: u32::try_from(machine.multiprocessors).ok(),
        measured: true,
        driver: Some(machine.driver.clone()),
        compiler: Some(machine.compiler.clone()),
        date: Some(header.date.clone()),
        commit,
        command: Some(header.command.clone()),
        note: unmeasured.note(record, committed.name()),
    };
    Ok(TuningTable::new(header, rows)?)
}

/// The sizes at which the sweep measures aligned scans.
fn planned(sweep: &SweepFile) -> BTreeMap<Tuned, BTreeSet<u64>> {
    let mut planned: BTreeMap<Tuned, BTreeSet<u64>> = BTreeMap::new();
    for point in sweep.points(&[]).0.iter().filter(|point| point.offsets.is_aligned()) {
        planned.entry(tuned(point.workload)).or_default().insert(point.n);
    }
    planned
}

/// The rows for more than `below` elements, which nothing was measured for. Limits are powers of two: the committed ones were
/// measured for other configurations, perhaps on another GPU.
fn rows_above(below: u64, instance: Instance, committed: &Tuning) -> Vec<TuningRow> {
    /// Beyond this nothing changes any more.
    const LARGEST_POWER: u32 = 36;
    let row = |up_to, strategy| TuningRow {
        tuned: Tuned::Plain { element: instance.element(), operator: instance.operator() },
        up_to,
        strategy,
        vt: None,
        block_threads: None,
        composition: None,
        evidence: Vec::new(),
    };
    let first = below.saturating_add(1);
    let mut strategy = committed.resolve(instance, first).strategy;
    let mut rows = Vec::new();
    for n in (0..=LARGEST_POWER).map(|power| 1 << power).filter(|&n| n > first) {
        let next = committed.resolve(instance, n).strategy;
        if next != strategy {
            rows.push(row(Some(first.max(n / 2)), strategy));
            strategy = next;
        }
    }
    rows.push(row(None, strategy));
    rows
}

/// What was to be measured and was not.
#[derive(Default)]
struct Unmeasured {
    plain: Vec<String>,
    problems: Vec<String>,
}

impl Unmeasured {
    /// What a table says that does not rest on measurements alone, if there is something.
    fn note(&self, record: &SweepRecord, committed: &str) -> Option<String> {
        let (why, remedy) = if record.finished.is_some() {
            ("Not every size could be measured", String::new())
        } else {
            // Only with the same options the rest belongs to it.
            let command = &record.header.command;
            let resume = if command.split_whitespace().any(|word| word == "--resume") { "" } else { " --resume" };
            ("The record was not finished", format!(" Measure the rest with `{command}{resume}`."))
        };
        let plain = (!self.plain.is_empty()).then(|| {
            format!(
                " Rows for these rest on no measurement: {}. They take the strategies of the table {committed} in the \
                 configurations suggested for the size.",
                self.plain.join(", ")
            )
        });
        let problems = (!self.problems.is_empty()).then(|| {
            format!(" For these there are no rows, and auto goes by its rules: {}.", self.problems.join(", "))
        });
        let what: String = plain.into_iter().chain(problems).collect();
        (!what.is_empty()).then(|| format!("{why}.{what}{remedy}"))
    }
}

/// A candidate, the sizes at which it is taken, and the limit up to which it is.
type Chosen<'a> = (Key, Vec<(u64, &'a [Rival])>, Option<u64>);

/// As few ranges as there can be with one candidate within noise of the best at every size of each.
fn ranges(sizes: &BTreeMap<u64, Vec<Rival>>, multiprocessors: u64) -> Vec<Chosen<'_>> {
    let mut chosen: Vec<Chosen<'_>> = Vec::new();
    let mut rest: Vec<(u64, &[Rival])> = sizes.iter().map(|(&n, rivals)| (n, rivals.as_slice())).collect();
    while !rest.is_empty() {
        // Sums of costs of those that have been within noise since the range began.
        let mut standing: BTreeMap<Key, f64> = BTreeMap::new();
        let mut length = 0;
        for (_, rivals) in &rest {
            let good = within_noise(rivals);
            let sum = |rival: &Rival| standing.get(&rival.key).map(|sum| sum + rival.cost);
            let next: BTreeMap<Key, f64> = if length == 0 {
                good.iter().map(|rival| (rival.key, rival.cost)).collect()
            } else {
                good.iter().filter_map(|rival| Some((rival.key, sum(rival)?))).collect()
            };
            if next.is_empty() {
                break;
            }
            standing = next;
            length += 1;
        }
        let Some((&key, _)) = standing.iter().min_by(|left, right| left.1.total_cmp(right.1).then(left.0.cmp(right.0)))
        else {
            // No size is without a best candidate.
            break;
        };
        let after = rest.split_off(length);
        let up_to = match (rest.last(), after.first()) {
            (Some(&(last, _)), Some(&(first, _))) => {
                let between = (u128::from(last) * u128::from(first)).isqrt() as u64;
                let tiles = key.strategy.row().shape.tiles_of_a_round(multiprocessors);
                let round = tiles.map(|tiles| tiles.saturating_mul(u64::from(key.vt) * u64::from(key.block_threads)));
                let end = round.and_then(|round| last.checked_next_multiple_of(round));
                Some(end.map_or(between, |end| between.min(end)))
            }
            _ => None,
        };
        chosen.push((key, std::mem::replace(&mut rest, after), up_to));
    }
    chosen
}

fn evidence(key: Key, n: u64, rivals: &[Rival]) -> Option<Evidence> {
    let taken = rivals.iter().find(|rival| rival.key == key)?;
    let others = rivals.iter().filter(|rival| rival.key != key);
    let runner_up = others.min_by(|left, right| left.by_cost(right)).map(|rival| RunnerUp {
        strategy: rival.key.strategy,
        vt: rival.key.vt,
        block_threads: rival.key.block_threads,
        times: rival.times(),
    });
    Some(Evidence { n, times: taken.times(), runner_up })
}
