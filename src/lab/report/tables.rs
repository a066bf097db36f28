//! Tables of sweeps, once as data and then as Markdown or HTML.

use super::page::escaped;
use super::sweep::{Family, is_variant, median};
use crate::cli::arguments::format_size;
use crate::cli::table::significant;
use crate::lab::measure::record::{FigureRecord, Kind, Status, SweepRecord, SweepRow};
use crate::lab::measure::sampling::{Figure, Stop};
use crate::lab::measure::statistics::Verdict;
use crate::lab::measure::targets;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Columns and rows of text, with a sentence on what they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// How many columns from the left are words; the others are figures.
    pub(super) words: usize,
}

const NONE: &str = "–";

impl Table {
    /// As Markdown, the sentence first.
    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("{}\n\n{}", self.caption, line(&self.columns));
        for index in 0..self.columns.len() {
            text.push_str(if index < self.words { "|---" } else { "|---:" });
        }
        text.push_str("|\n");
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text.push_str(&line(&cells));
        }
        text
    }

    /// As HTML, without the sentence.
    pub(super) fn html(&self) -> String {
        let mut text = "<div class=\"scroll\">\n<table>\n<thead><tr>".to_owned();
        let class = |index: usize| if index < self.words { " class=\"word\"" } else { "" };
        for (index, column) in self.columns.iter().enumerate() {
            let _ = write!(text, "<th{}>{}</th>", class(index), escaped(column));
        }
        text.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            text.push_str("<tr>");
            for (index, cell) in row.iter().enumerate() {
                let _ = write!(text, "<td{}>{}</td>", class(index), escaped(cell));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</tbody>\n</table>\n</div>\n");
        text
    }
}

const TWO_PEAKS: char = '≈';
const NOT_TRUSTED: char = '?';

/// The median, with a mark where it is less than it seems.
fn microseconds(row: &SweepRow, figure: Figure) -> Option<String> {
    let time = significant(median(row, figure)? / 1e3, 12);
    Some(match row.figure(figure)? {
        record if !record.is_trusted => format!("{time}{NOT_TRUSTED}"),
        record if record.stop == Some(Stop::TwoPeaks) => format!("{TWO_PEAKS}{time}"),
        _ => time,
    })
}

/// Says what the marks of a table mean, if it has any.
fn explain_marks(mut table: Table) -> Table {
    let has = |mark: char| table.rows.iter().flatten().any(|cell| cell.contains(mark));
    let (has_two_peaks, has_unmet) = (has(TWO_PEAKS), has(NOT_TRUSTED));
    if has_two_peaks {
        let _ = write!(table.caption, " {TWO_PEAKS}: samples have two peaks, and the median lies somewhere between.");
    }
    if has_unmet {
        let _ = write!(table.caption, " {NOT_TRUSTED}: no noise criterion was met.");
    }
    table
}

/// 2^20 and 10^8, which are easier read than their digits.
fn size(n: u64) -> String {
    match n.checked_ilog10() {
        Some(exponent) if exponent >= 3 && n == 10u64.pow(exponent) => format!("10^{exponent}"),
        _ => format_size(n),
    }
}

fn or_none(text: Option<impl ToString>) -> String {
    text.map_or_else(|| NONE.to_owned(), |text| text.to_string())
}

/// Where figures are from, at the end of a caption.
fn origin(record: &SweepRecord) -> String {
    let day = record.header.date.split('T').next().unwrap_or_default();
    let commit = record.header.program.git_commit.as_deref().and_then(|commit| commit.get(..7));
    let commit = commit.map_or(String::new(), |commit| format!("commit {commit}, "));
    format!("{}, {day}, {commit}`{}`", record.header.machine.gpu, record.header.command)
}

/// The newest Thrust that is measured, in the call that does not wait.
fn newest_thrust<'a>(subjects: &[&'a str]) -> Option<&'a str> {
    subjects.iter().copied().filter(|name| name.starts_with("thrust") && !is_variant(name)).max()
}

/// Whether several VTs of one subject were measured at one size.
fn has_vts(record: &SweepRecord) -> bool {
    let mut seen = BTreeSet::new();
    let kind = |row: &SweepRow| (row.subject.clone(), row.element, row.operator, row.mode, row.n, row.offsets);
    let distinct: BTreeSet<_> = record
        .rows
        .iter()
        .filter(|row| row.vt.is_some() && row.kind != Kind::Bound)
        .map(|row| (kind(row), row.vt))
        .collect();
    distinct.into_iter().any(|(kind, _)| !seen.insert(kind))
}

/// The main tables of a record: what is spliced and what the page begins with.
pub(super) fn main_tables(record: &SweepRecord) -> Vec<Table> {
    if record.header.sweep.name == targets::SWEEP {
        return vec![targets_reached(record)];
    }
    let families = Family::all(record);
    let types: BTreeSet<_> = families.iter().map(|family| family.element).collect();
    let sizes: BTreeSet<u64> = record.rows.iter().map(|row| row.n).collect();
    let table = if has_vts(record) {
        Some(best_vts(record, &families))
    } else if types.len() > 1 {
        Some(percent_by_type(record, &families))
    } else if sizes.len() == 1 {
        families.first().map(|family| one_size(record, family))
    } else {
        by_size(record, &families)
    };
    table.into_iter().filter(|table| !table.rows.is_empty()).map(explain_marks).collect()
}

/// Which targets a record reaches, where it is worst, and how near the misses are to their bound.
fn targets_reached(record: &SweepRecord) -> Table {
    let rows = targets::evaluate(record).outcomes.into_iter().map(|outcome| {
        let target = outcome.target;
        let show = |ratio: Option<f64>| or_none(ratio.map(|ratio| target.comparison.show(ratio)));
        let worst = outcome.worst();
        let bound = worst.filter(|worst| !worst.passed).and_then(|worst| worst.bound);
        let bound =
            bound.map(|bound| format!("{} ({:.0} % of it)", target.comparison.show(bound.ratio), 100.0 * bound.share));
        let undecided = match outcome.samples(Verdict::Unclear) {
            0 => String::new(),
            count => format!(", {count} of them undecided"),
        };
        let doubt = worst.filter(|worst| !worst.is_trusted).map_or(String::new(), |_| NOT_TRUSTED.to_string());
        let stretch = target.stretch.zip(outcome.stretched()).map(|(stretch, reached)| {
            format!("{}: {reached} of {}", target.comparison.show(stretch), outcome.findings.len())
        });
        vec![
            target.place.trim().to_owned(),
            target.demand(),
            or_none(worst.map(|worst| worst.place)),
            format!("{}{doubt}", show(worst.and_then(|worst| worst.ratio))),
            show(outcome.median()),
            format!("{} of {}{undecided}", outcome.passed(), outcome.findings.len()),
            or_none(stretch),
            or_none(bound),
            targets::word(&outcome),
        ]
    });
    let columns =
        ["target", "at least", "worst at", "worst", "median", "reached", "stretch", "without waiting", "verdict"];
    let caption = format!(
        "Time of what a scan is compared with by its own, in the same rounds; \"without waiting\" is what the kernel of \
         the worst miss reaches when it does not wait for other tiles, and how much of that the scan does: {}.",
        origin(record)
    );
    explain_marks(Table { caption, columns: columns.map(str::to_owned).to_vec(), rows: rows.collect(), words: 3 })
}

/// The sizes that the table shows, of those that were measured.
const TABLE_SIZES: [u64; 6] = [1 << 10, 1 << 16, 1 << 20, 1 << 24, 1 << 28, 1 << 30];

fn by_size<'a>(record: &SweepRecord, families: &[Family<'a>]) -> Option<Table> {
    let subjects_of = |family: &Family<'a>| {
        let present = family.subjects();
        let mut subjects: Vec<&'a str> = Vec::new();
        subjects.extend(["reduce-then-scan", "lookback"].iter().filter(|name| present.contains(name)));
        let is_main_cub = |name: &&str| name.starts_with("cub-") && !is_variant(name);
        let mut cubs: Vec<&str> = present.iter().copied().filter(is_main_cub).collect();
        cubs.sort_unstable();
        subjects.extend(cubs);
        subjects.extend(newest_thrust(&present));
        subjects.extend(present.contains(&"memcpy").then_some("memcpy"));
        subjects
    };
    // The mode that most of them have, since Thrust has one only; the first of several such.
    let most = families.iter().map(|family| subjects_of(family).len()).max()?;
    let (family, subjects) =
        families.iter().map(|family| (family, subjects_of(family))).find(|(_, subjects)| subjects.len() == most)?;
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
                let mut row = vec![size(n), figure.to_string()];
                row.extend(cells.into_iter().map(or_none));
                rows.push(row);
            }
        }
    }
    let mut columns = vec!["n".to_owned(), "figure".to_owned()];
    columns.extend(subjects.iter().map(|subject| (*subject).to_owned()));
    let caption = format!("Median µs a scan (percent of the copy's speed), {}: {}.", family.title(), origin(record));
    Some(Table { caption, columns, rows, words: 2 })
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
            row.push(or_none(family.row(subject, n, figure).and_then(|row| microseconds(row, figure))));
        }
        let of_thrust = |name: &str| {
            let of = family.row(name, n, Figure::Cold).and_then(|row| median(row, Figure::Cold))?;
            Some(format!("{:.2}", time(Figure::Cold)? / of))
        };
        row.push(or_none(thrust.and_then(of_thrust)));
        let percent = family.row(subject, n, Figure::Cold).and_then(|row| row.cold.as_ref()?.percent_of_copy);
        row.push(or_none(percent.map(|percent| format!("{percent:.1}"))));
        if row[1..].iter().any(|cell| cell != NONE) {
            rows.push(row);
        }
    }
    let against = thrust.unwrap_or("Thrust");
    let columns = ["subject", "cold, µs", "stream, µs", "graph, µs"].map(str::to_owned).into_iter();
    let columns = columns.chain([format!("cold, × {against}"), "cold, % of copy".to_owned()]).collect();
    let caption = format!(
        "Median µs a scan of n = {} elements, {}, and how many times as long as {against} it takes: {}.",
        size(n),
        family.title(),
        origin(record)
    );
    Table { caption, columns, rows, words: 1 }
}

fn best_vts(record: &SweepRecord, families: &[Family<'_>]) -> Table {
    let mut rows = Vec::new();
    for family in families {
        let sizes: BTreeSet<u64> = family.rows.iter().map(|row| row.n).collect();
        for subject in family.subjects() {
            for &n in &sizes {
                for figure in [Figure::Cold, Figure::Graph] {
                    let Some(row) = family.row(subject, n, figure).filter(|row| row.vt.is_some()) else { continue };
                    let gigabytes = median(row, figure).map(|time| significant(row.bytes as f64 / time, 12));
                    rows.push(vec![
                        subject.to_owned(),
                        figure.to_string(),
                        size(n),
                        or_none(row.vt),
                        or_none(row.block_threads),
                        or_none(row.access_bytes),
                        or_none(row.registers),
                        or_none(row.spill_bytes),
                        or_none(microseconds(row, figure)),
                        or_none(gigabytes),
                        or_none(row.figure(figure).and_then(percent)),
                    ]);
                }
            }
        }
    }
    let columns =
        ["strategy", "figure", "n", "VT", "block", "access, B", "registers", "spill, B", "µs", "GB/s", "% of copy"];
    Table {
        caption: format!("The fastest VT and block size at each n: {}.", origin(record)),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        words: 2,
    }
}

fn percent(figure: &FigureRecord) -> Option<String> {
    figure.percent_of_copy.map(|percent| format!("{percent:.1}"))
}

fn percent_by_type(record: &SweepRecord, families: &[Family<'_>]) -> Table {
    let sizes: BTreeSet<u64> = record.rows.iter().map(|row| row.n).collect();
    let mut subjects: Vec<&str> = Vec::new();
    for subject in families.iter().flat_map(Family::subjects) {
        if !subjects.contains(&subject) && !is_variant(subject) && subject != "memcpy" {
            subjects.push(subject);
        }
    }
    let mut rows = Vec::new();
    for family in families {
        for &n in &sizes {
            let cell = |subject: &&str| percent(family.row(subject, n, Figure::Cold)?.cold.as_ref()?);
            let cells: Vec<Option<String>> = subjects.iter().map(cell).collect();
            if cells.iter().any(Option::is_some) {
                let mut row = vec![family.title(), size(n)];
                row.extend(cells.into_iter().map(or_none));
                rows.push(row);
            }
        }
    }
    let mut columns = vec!["scan".to_owned(), "n".to_owned()];
    columns.extend(subjects.iter().map(|subject| (*subject).to_owned()));
    Table { caption: format!("Percent of the copy's speed, cold: {}.", origin(record)), columns, rows, words: 1 }
}

/// Every row of a record with all its medians.
pub(super) fn all_rows(record: &SweepRecord) -> Table {
    let columns = [
        "subject",
        "scan",
        "n",
        "VT",
        "block",
        "access, B",
        "registers",
        "spill, B",
        "cold, µs",
        "stream, µs",
        "graph, µs",
        "latency, µs",
        "cold, GB/s",
        "cold, % of copy",
        "result",
    ];
    let rows = record.rows.iter().map(|row| {
        let cold = row.cold.as_ref();
        let mode = row.mode.map_or_else(|| "copy".to_owned(), |mode| mode.to_string());
        let offsets = if row.offsets.is_aligned() { String::new() } else { format!(", {}", row.offsets) };
        let time = |figure: Figure| microseconds(row, figure);
        let result = match row.status {
            Status::Measured if row.kind == Kind::Copy => "copied".to_owned(),
            Status::Measured => "right".to_owned(),
            Status::Wrong => "WRONG".to_owned(),
            Status::NotLaunchable => format!("not launchable: {}", row.reason.as_deref().unwrap_or("unknown")),
            Status::NotVerified => "a bound, not verified".to_owned(),
        };
        vec![
            row.subject_with_choice(),
            format!("{} {}, {mode}{offsets}", row.element, row.operator),
            size(row.n),
            or_none(row.vt),
            or_none(row.block_threads),
            or_none(row.access_bytes),
            or_none(row.registers),
            or_none(row.spill_bytes),
            or_none(time(Figure::Cold)),
            or_none(time(Figure::Stream)),
            or_none(time(Figure::Graph)),
            or_none(time(Figure::Latency)),
            or_none(cold.and_then(|figure| figure.gigabytes_per_second).map(|value| significant(value, 12))),
            or_none(cold.and_then(percent)),
            result,
        ]
    });
    explain_marks(Table {
        caption: "Medians.".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        words: 2,
    })
}

/// The figures that met no noise criterion, and what was in the way.
pub(super) fn not_trusted(record: &SweepRecord) -> Table {
    let mut rows = Vec::new();
    for row in &record.rows {
        for &figure in Figure::ALL {
            let Some(found) = row.figure(figure).filter(|found| found.unavailable.is_none() && !found.is_trusted)
            else {
                continue;
            };
            rows.push(vec![
                row.key(),
                figure.to_string(),
                or_none(found.stop),
                or_none(found.not_met.as_deref()),
                found.samples_ns.len().to_string(),
                or_none(found.median_ns.map(|median| significant(median / 1e3, 12))),
            ]);
        }
    }
    let columns = ["configuration", "figure", "end", "in the way", "samples", "median, µs"];
    let caption = "Figures that met no noise criterion.".to_owned();
    Table { caption, columns: columns.map(str::to_owned).to_vec(), rows, words: 4 }
}
