//! The tables of a sweep's record.

use super::family::{FEWEST_SIZES, Family, median, subjects_of};
use super::marks::{NOT_TRUSTED, explain_marks, microseconds};
use super::problems;
use super::table::Table;
use crate::lab::measure::point::Kind;
use crate::lab::measure::point::is_variant;
use crate::lab::measure::record::{FigureRecord, Status, SweepHeader, SweepRecord, SweepRow};
use crate::lab::measure::sampling::Figure;
use crate::lab::measure::targets;
use crate::lab::measure::targets::evaluation::{Evaluation, Finding, TargetResult};
use crate::text::{NONE, format_size, or_dash, significant};
use std::collections::BTreeSet;

/// The day of a record.
pub(super) fn day(record: &SweepRecord) -> &str {
    record.header.date.split('T').next().unwrap_or_default()
}

/// The commit that a record's header names, abridged.
pub(super) fn commit(record: &SweepRecord) -> Option<&str> {
    record.header.program.git_commit.as_deref().and_then(|commit| commit.get(..7))
}

/// Where figures are from, at the end of a caption.
fn origin(record: &SweepRecord) -> String {
    let commit = commit(record).map_or(String::new(), |commit| format!("commit {commit}, "));
    format!("{}, {}, {commit}`{}`", record.header.machine.gpu, day(record), record.header.command)
}

/// The figures of a record, but those that could not be measured.
pub(super) fn measured_figures(record: &SweepRecord) -> impl Iterator<Item = (&SweepRow, Figure, &FigureRecord)> {
    record.rows.iter().flat_map(|row| {
        let figures = Figure::ALL.iter().filter_map(move |&figure| Some((row, figure, row.figure(figure)?)));
        figures.filter(|(_, _, found)| found.unavailable.is_none())
    })
}

/// The newest Thrust that is measured, in the call that does not wait.
fn newest_thrust<'a>(subjects: &[&'a str]) -> Option<&'a str> {
    subjects.iter().copied().filter(|name| name.starts_with("thrust") && !is_variant(name)).max()
}

/// Whether several VTs of one subject were measured at one size.
fn has_vts(record: &SweepRecord) -> bool {
    let mut seen = BTreeSet::new();
    let kind = |row: &SweepRow| (row.subject.clone(), row.point(), row.mode);
    let distinct: BTreeSet<_> = record
        .rows
        .iter()
        .filter(|row| row.vt.is_some() && row.kind != Kind::Bound)
        .map(|row| (kind(row), row.vt))
        .collect();
    distinct.into_iter().any(|(kind, _)| !seen.insert(kind))
}

/// What the targets come to in a record of their sweep, with those of further processes among `all`; it takes its time, so it is
/// asked for once.
pub(super) fn evaluation_of(record: &SweepRecord, all: &[&SweepRecord]) -> Option<Evaluation> {
    if record.header.sweep.name != targets::SWEEP || !is_first(record) {
        return None;
    }
    let gpu = record.header.machine.gpu_slug();
    let belongs = |other: &&SweepRecord| {
        let SweepHeader { sweep, machine, .. } = &other.header;
        sweep.name == targets::SWEEP && machine.gpu_slug() == gpu && sweep.process.is_some_and(|process| process > 1)
    };
    let others = all.iter().copied().filter(belongs);
    Some(targets::evaluation::evaluate(&Vec::from_iter(std::iter::once(record).chain(others))))
}

/// Whether a record is of the process that measures all. Sweeps of earlier targets knew no processes.
pub(super) fn is_first(record: &SweepRecord) -> bool {
    record.header.sweep.process == Some(1)
}

/// The main tables of a record with its [`evaluation_of`]: what is spliced and what a page shows first.
pub(super) fn main_tables(record: &SweepRecord, evaluation: Option<&Evaluation>) -> Vec<Table> {
    if let Some(evaluation) = evaluation {
        return vec![targets_reached(record, evaluation)];
    }
    // Of earlier targets, and of a further process beside the first one's.
    if record.header.sweep.name == targets::SWEEP {
        return Vec::new();
    }
    if problems::has_problems(record) {
        return vec![explain_marks(problems::lines(record, &origin(record)))];
    }
    let families = Family::all(record);
    let types: BTreeSet<_> = families.iter().map(|family| family.element).collect();
    let sizes: BTreeSet<u64> = record.rows.iter().map(|row| row.n).collect();
    let is_by_size = families.iter().any(|family| family.sizes().len() >= FEWEST_SIZES);
    let table = if has_vts(record) {
        Some(best_vts(record, &families))
    } else if is_by_size {
        by_size(record, &families)
    } else if types.len() > 1 {
        Some(percent_by_type(record, &families))
    } else if sizes.len() == 1 {
        families.first().map(|family| one_size(record, family))
    } else {
        by_size(record, &families)
    };
    table.into_iter().filter(|table| !table.rows.is_empty()).map(explain_marks).collect()
}

/// How long `auto` takes by size in a record of other scans, if it was measured.
pub(super) fn by_size_of_problems(record: &SweepRecord) -> Option<Table> {
    problems::auto_by_size(record, &origin(record)).map(explain_marks)
}

/// Which targets a record reaches, where it is worst, and how near the misses are to their bound.
fn targets_reached(record: &SweepRecord, evaluation: &Evaluation) -> Table {
    let outcomes = &evaluation.outcomes;
    let verdict = |result: TargetResult| (result != TargetResult::OtherGpu).then_some(result == TargetResult::Pass);
    let results =
        outcomes.iter().map(|outcome| outcome.result).chain(evaluation.host.iter().map(|outcome| outcome.result));
    let verdicts = results.map(verdict).collect();
    let rows = outcomes.iter().map(|outcome| {
        let target = outcome.target;
        let show = |ratio: Option<f64>| or_dash(ratio.map(|ratio| target.yardstick.show(ratio)));
        let worst = outcome.worst();
        let bound = worst.filter(|worst| !worst.passed).and_then(|worst| worst.bound);
        let bound =
            bound.map(|bound| format!("{} ({:.0} % of it)", target.yardstick.show(bound.ratio), 100.0 * bound.share));
        let doubt = worst.filter(|worst| !worst.is_trusted).map_or(String::new(), |_| NOT_TRUSTED.to_string());
        let between = worst.and_then(|worst| worst.between);
        vec![
            target.place.to_owned(),
            targets::text::word(outcome.result),
            target.demand(),
            format!("{}{doubt}", show(worst.and_then(|worst| worst.ratio))),
            or_dash(between.map(|between| between.map(|ratio| target.yardstick.show(ratio)).join(" to "))),
            show(outcome.median()),
            format!("{} of {}", outcome.passed(), outcome.findings.len()),
            or_dash(worst.map(Finding::title)),
            or_dash(outcome.uncounted()),
            or_dash(bound),
        ]
    });
    let on_host = evaluation.host.iter().map(|outcome| {
        let mut row = vec![
            outcome.target.place.to_owned(),
            targets::text::word(outcome.result),
            format!("at most {}", targets::text::microseconds(outcome.target.most_us)),
            or_dash(outcome.found_us.map(targets::text::microseconds)),
        ];
        row.resize(10, or_dash(None::<String>));
        row
    });
    let rows = rows.chain(on_host);
    let columns = [
        "target",
        "verdict",
        "at least",
        "worst",
        "by process",
        "median",
        "reached",
        "worst at",
        "not counted",
        "without waiting",
    ];
    let sentinel = evaluation.sentinel.map_or(String::new(), |sentinel| format!(" {sentinel}"));
    let caption = format!(
        "Time of what a scan is compared with by its own, in the same rounds, by {}; \"without waiting\" is what the \
         kernel of the worst miss reaches when it does not wait for other tiles, and how much of that the scan does: {}.{sentinel}",
        evaluation.processes_in_words(),
        origin(record)
    );
    explain_marks(Table::new(caption, &columns, rows.collect(), 3).judged(1, verdicts))
}

/// The sizes that the table shows, of those that were measured.
const TABLE_SIZES: [u64; 6] = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 30];

fn by_size<'a>(record: &SweepRecord, families: &[Family<'a>]) -> Option<Table> {
    let subjects_of = |family: &Family<'a>| {
        let present = family.subjects();
        let mut subjects: Vec<&'a str> = Vec::new();
        subjects.extend(["auto", "reduce-then-scan", "lookback"].iter().filter(|name| present.contains(name)));
        let is_main_cub = |name: &&str| name.starts_with("cub-") && !is_variant(name);
        let mut cubs: Vec<&str> = present.iter().copied().filter(is_main_cub).collect();
        cubs.sort_unstable();
        subjects.extend(cubs);
        subjects.extend(newest_thrust(&present));
        subjects.extend(present.contains(&"memcpy").then_some("memcpy"));
        subjects
    };
    // The scan with the most to show: few subjects have both modes, and few modes all sizes. The first of several such.
    let cells = |family: &Family<'a>| {
        let subjects = subjects_of(family);
        family.measured().filter(|row| TABLE_SIZES.contains(&row.n) && subjects.contains(&row.subject.as_str())).count()
    };
    let family = families.iter().rev().max_by_key(|family| cells(family))?;
    let subjects = subjects_of(family);
    let mut rows = Vec::new();
    for n in TABLE_SIZES {
        for figure in [Figure::Cold, Figure::Stream, Figure::Graph] {
            let cells: Vec<Option<String>> = subjects
                .iter()
                .map(|subject| {
                    let row = family.row(subject, n, figure)?;
                    let time = microseconds(row, figure)?;
                    Some(match row.figure(figure)?.percent_of_copy {
                        Some(percent) if *subject != "memcpy" => format!("{time} ({percent:.0} %)"),
                        _ => time,
                    })
                })
                .collect();
            if cells.iter().any(Option::is_some) {
                let mut row = vec![format_size(n), figure.to_string()];
                row.extend(cells.into_iter().map(or_dash));
                rows.push(row);
            }
        }
    }
    let columns = [&["n", "figure"][..], &subjects].concat();
    let caption = format!("Median µs a scan (percent of the copy's speed), {}: {}.", family.title(), origin(record));
    Some(Table::new(caption, &columns, rows, 2))
}

fn one_size(record: &SweepRecord, family: &Family<'_>) -> Table {
    let subjects = family.subjects();
    let thrust = newest_thrust(&subjects);
    let n = family.rows.first().map_or(0, |row| row.n);
    let mut rows = Vec::new();
    for subject in &subjects {
        let time = |figure| family.row(subject, n, figure).and_then(|row| median(row, figure));
        let mut row = vec![(*subject).to_owned()];
        for figure in [Figure::Cold, Figure::Stream, Figure::Graph] {
            row.push(or_dash(family.row(subject, n, figure).and_then(|row| microseconds(row, figure))));
        }
        let of_thrust = |name: &str| {
            let of = family.row(name, n, Figure::Cold).and_then(|row| median(row, Figure::Cold))?;
            Some(format!("{:.2}", time(Figure::Cold)? / of))
        };
        row.push(or_dash(thrust.and_then(of_thrust)));
        let percent = family.row(subject, n, Figure::Cold).and_then(|row| row.cold.as_ref()?.percent_of_copy);
        row.push(or_dash(percent.map(|percent| format!("{percent:.1}"))));
        if row[1..].iter().any(|cell| cell != NONE) {
            rows.push(row);
        }
    }
    let against = thrust.unwrap_or("Thrust");
    let of_thrust = format!("cold, × {against}");
    let columns = ["subject", "cold, µs", "stream, µs", "graph, µs", &of_thrust, "cold, % of copy"];
    let caption = format!(
        "Median µs a scan of n = {} elements, {}, and how many times as long as {against} it takes: {}.",
        format_size(n),
        family.title(),
        origin(record)
    );
    Table::new(caption, &columns, rows, 1)
}

type Column = (&'static str, fn(&SweepRow) -> String);

/// What a row ran with, and what the compiler made of it.
const CONFIGURATION: [Column; 5] = [
    ("VT", |row| or_dash(row.vt)),
    ("block", |row| or_dash(row.block_threads)),
    ("access, B", |row| or_dash(row.access_bytes)),
    ("registers", |row| or_dash(row.registers)),
    ("spill, B", |row| or_dash(row.spill_bytes)),
];

fn best_vts(record: &SweepRecord, families: &[Family<'_>]) -> Table {
    let mut rows = Vec::new();
    for family in families {
        let sizes: BTreeSet<u64> = family.rows.iter().map(|row| row.n).collect();
        for subject in family.subjects() {
            for &n in &sizes {
                for figure in [Figure::Cold, Figure::Graph] {
                    let Some(row) = family.row(subject, n, figure).filter(|row| row.vt.is_some()) else { continue };
                    let gigabytes = median(row, figure).map(|time| significant(row.bytes as f64 / time, 12));
                    let mut cells = vec![subject.to_owned(), figure.to_string(), format_size(n)];
                    cells.extend(CONFIGURATION.iter().map(|(_, cell)| cell(row)));
                    let percent = row.figure(figure).and_then(percent);
                    cells.extend([microseconds(row, figure), gigabytes, percent].map(or_dash));
                    rows.push(cells);
                }
            }
        }
    }
    let columns = ["strategy", "figure", "n"].into_iter().chain(CONFIGURATION.map(|(name, _)| name));
    let columns: Vec<&str> = columns.chain(["µs", "GB/s", "% of copy"]).collect();
    Table::new(format!("The fastest VT and block size at each n: {}.", origin(record)), &columns, rows, 2)
}

fn percent(figure: &FigureRecord) -> Option<String> {
    figure.percent_of_copy.map(|percent| format!("{percent:.1}"))
}

fn percent_by_type(record: &SweepRecord, families: &[Family<'_>]) -> Table {
    let sizes: BTreeSet<u64> = record.rows.iter().map(|row| row.n).collect();
    let mut subjects = subjects_of(families.iter().flat_map(|family| family.rows.iter().copied()));
    subjects.retain(|subject| !is_variant(subject) && *subject != "memcpy");
    let mut rows = Vec::new();
    for family in families {
        for &n in &sizes {
            let cell = |subject: &&str| percent(family.row(subject, n, Figure::Cold)?.cold.as_ref()?);
            let cells: Vec<Option<String>> = subjects.iter().map(cell).collect();
            if cells.iter().any(Option::is_some) {
                let mut row = vec![family.title(), format_size(n)];
                row.extend(cells.into_iter().map(or_dash));
                rows.push(row);
            }
        }
    }
    let columns = [&["scan", "n"][..], &subjects].concat();
    Table::new(format!("Percent of the copy's speed, cold: {}.", origin(record)), &columns, rows, 1)
}

const SCAN: [Column; 3] = [
    ("subject", SweepRow::subject_with_choice),
    ("scan", |row| {
        let floor = if row.kind == Kind::Reading { "reading" } else { "copy" };
        let mode = row.mode.map_or_else(|| floor.to_owned(), |mode| mode.to_string());
        let offsets = if row.offsets.is_aligned() { String::new() } else { format!(", {}", row.offsets) };
        format!("{}, {mode}{offsets}", row.point().scan())
    }),
    ("n", |row| format_size(row.n)),
];

const MEDIANS: [Column; 7] = [
    ("cold, µs", |row| or_dash(microseconds(row, Figure::Cold))),
    ("stream, µs", |row| or_dash(microseconds(row, Figure::Stream))),
    ("graph, µs", |row| or_dash(microseconds(row, Figure::Graph))),
    ("latency, µs", |row| or_dash(microseconds(row, Figure::Latency))),
    ("cold, GB/s", |row| {
        let gigabytes = row.cold.as_ref().and_then(|figure| figure.gigabytes_per_second);
        or_dash(gigabytes.map(|value| significant(value, 12)))
    }),
    ("cold, % of copy", |row| or_dash(row.cold.as_ref().and_then(percent))),
    ("result", |row| match row.status {
        Status::Measured if row.kind == Kind::Copy => "copied".to_owned(),
        Status::Measured if row.kind == Kind::Reading => "read".to_owned(),
        Status::Measured => "right".to_owned(),
        Status::Wrong => "WRONG".to_owned(),
        Status::NotLaunchable => format!("not launchable: {}", row.reason.as_deref().unwrap_or("unknown")),
        Status::NotVerified => "a bound, not verified".to_owned(),
    }),
];

/// Every row of a record with all its medians.
pub(super) fn all_rows(record: &SweepRecord) -> Table {
    let columns: Vec<Column> = SCAN.into_iter().chain(CONFIGURATION).chain(MEDIANS).collect();
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let rows = record.rows.iter().map(|row| columns.iter().map(|(_, cell)| cell(row)).collect());
    // Of many rows, only what is wrong asks for the eye.
    let verdicts = record.rows.iter().map(|row| (row.status == Status::Wrong).then_some(false));
    let table = Table::new("Medians.".to_owned(), &names, rows.collect(), 2);
    explain_marks(table.judged(names.len() - 1, verdicts.collect()))
}

/// The figures that met no noise criterion, and what was in the way.
pub(super) fn not_trusted(record: &SweepRecord) -> Table {
    let untrusted = measured_figures(record).filter(|(_, _, found)| !found.is_trusted);
    let row = |(row, figure, found): (&SweepRow, Figure, &FigureRecord)| {
        vec![
            row.key(),
            figure.to_string(),
            or_dash(found.stop),
            or_dash(found.not_met.as_deref()),
            found.samples_ns.len().to_string(),
            or_dash(found.median_ns.map(|median| significant(median / 1e3, 12))),
        ]
    };
    let rows = untrusted.map(row).collect();
    let columns = ["configuration", "figure", "end", "in the way", "samples", "median, µs"];
    let caption = "Figures that met no noise criterion.".to_owned();
    Table::new(caption, &columns, rows, 4)
}
