//! A record of several problems: a table of all their lines, and a picture of what the length of rows and columns costs. Times
//! are told by those of the copy that moves as many bytes in the same rounds.

use super::axis::Axis;
use super::chart::{Chart, Point, QUARTILES, Series, places};
use super::family::{is_trusted, median, point};
use super::marks::{NOT_TRUSTED, microseconds};
use super::pen::Pen;
use super::table::Table;
use crate::lab::measure::point::{Kind, PointKey, Subject};
use crate::lab::measure::record::{Status, SweepRecord, SweepRow};
use crate::lab::measure::sampling::Figure;
use crate::strategy::{Mode, StrategyChoice};
use crate::text::{format_size, or_dash};
use std::collections::{BTreeMap, BTreeSet};

/// The picture by the length of rows and columns.
pub(super) const SEGMENTS: &str = "segments";

/// Whether anything but flat scans of one type was measured.
pub(super) fn has_problems(record: &SweepRecord) -> bool {
    record.rows.iter().any(|row| !row.point().is_plain())
}

/// The measured rows of a record by their points.
struct Points<'a>(BTreeMap<PointKey, Vec<&'a SweepRow>>);

impl<'a> Points<'a> {
    fn of(record: &'a SweepRecord) -> Self {
        let mut points: BTreeMap<PointKey, Vec<&SweepRow>> = BTreeMap::new();
        for row in record.rows.iter().filter(|row| row.status == Status::Measured) {
            points.entry(row.point()).or_default().push(row);
        }
        Self(points)
    }

    fn beside(&self, row: &SweepRow) -> impl Iterator<Item = &'a SweepRow> + use<'a> {
        self.0.get(&row.point()).cloned().unwrap_or_default().into_iter()
    }

    /// What the copy beside a row took, and whether a noise criterion was met. In a graph it is the faster of its figures in a
    /// graph and on a stream: large copies take longer when they are replayed, which is nothing that a scan has earned.
    fn copy(&self, row: &SweepRow, figure: Figure) -> Option<(f64, bool)> {
        let copy = self.beside(row).find(|row| row.subject == Subject::Memcpy.name())?;
        let figures: &[Figure] = if figure == Figure::Graph { &[Figure::Graph, Figure::Stream] } else { &[figure] };
        let times = figures.iter().filter_map(|&of| Some((median(copy, of)?, is_trusted(copy, of))));
        times.min_by(|left, right| left.0.total_cmp(&right.0))
    }

    /// How many times as long as the copy a row takes.
    fn times_copy(&self, row: &SweepRow, figure: Figure) -> Option<f64> {
        Some(median(row, figure)? / self.copy(row, figure)?.0)
    }

    /// The fastest of other people's scans beside a row.
    fn best_peer(&self, row: &SweepRow, figure: Figure) -> Option<&'a SweepRow> {
        let time = |row: &&SweepRow| median(row, figure);
        let peers = self.beside(row).filter(|other| other.kind == Kind::Peer && other.mode == row.mode);
        let timed = peers.filter(|row| time(row).is_some());
        timed.min_by(|left, right| time(left).partial_cmp(&time(right)).expect("both have a time"))
    }
}

/// The words, and the mode and the offsets where they are not the usual ones.
fn with_variant(words: impl Iterator<Item = String>, row: &SweepRow) -> String {
    let mode = row.mode.filter(|&mode| mode != Mode::Inclusive).map(|mode| mode.to_string());
    let offsets = (!row.offsets.is_aligned()).then(|| row.offsets.to_string());
    words.chain(mode).chain(offsets).collect::<Vec<_>>().join(", ")
}

/// "rows, sum": the problem, and its operator where it has one.
fn problem(row: &SweepRow) -> String {
    let operator = row.problem.has_operator().then(|| row.operator.to_string());
    with_variant([Some(row.problem.to_string()), operator].into_iter().flatten(), row)
}

/// "u32 of u8", "f32".
fn types(row: &SweepRow) -> String {
    match row.input_element {
        Some(input) => format!("{} of {input}", row.element),
        None => row.element.to_string(),
    }
}

/// "lookahead, VT 16, 512 threads".
fn configuration(row: &SweepRow) -> String {
    let strategy = row.chosen_strategy.map_or_else(|| row.subject.clone(), |strategy| strategy.to_string());
    let vt = row.vt.map(|vt| format!("VT {vt}"));
    let threads = row.block_threads.map(|threads| format!("{threads} threads"));
    [Some(strategy), vt, threads].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

type Column = (&'static str, fn(&Points<'_>, &SweepRow) -> String);

fn times(points: &Points<'_>, row: &SweepRow, figure: Figure) -> String {
    or_dash(points.times_copy(row, figure).map(|times| format!("{times:.2}")))
}

const COLUMNS: [Column; 11] = [
    ("problem", |_, row| problem(row)),
    ("types", |_, row| types(row)),
    ("scan by", |_, row| configuration(row)),
    ("segment", |_, row| or_dash(row.segment_elements.map(format_size))),
    ("n", |_, row| format_size(row.n)),
    ("graph, µs", |_, row| or_dash(microseconds(row, Figure::Graph))),
    ("graph, × copy", |points, row| times(points, row, Figure::Graph)),
    ("cold, µs", |_, row| or_dash(microseconds(row, Figure::Cold))),
    ("cold, × copy", |points, row| times(points, row, Figure::Cold)),
    ("best peer, graph", |points, row| or_dash(points.best_peer(row, Figure::Graph).map(|peer| peer.subject.clone()))),
    ("its × copy", |points, row| {
        or_dash(points.best_peer(row, Figure::Graph).map(|peer| times(points, peer, Figure::Graph)))
    }),
];

/// All lines of a record: a scan of this crate each. `origin` says where they are from.
pub(super) fn lines(record: &SweepRecord, origin: &str) -> Table {
    let points = Points::of(record);
    let measured = points.0.values().flatten().filter(|row| row.kind == Kind::Strategy);
    let rows = measured.map(|row| COLUMNS.iter().map(|(_, cell)| cell(&points, row)).collect());
    let caption = format!(
        "Median times, and how many times as long as the copy that moves as many bytes they are; in a graph by the faster of \
         the copy's figures in a graph and on a stream. \"Segment\" is the length of a row or column, or of a run or segment on \
         average: {origin}."
    );
    Table::new(caption, &COLUMNS.map(|(name, _)| name), rows.collect(), 3)
}

/// How long `auto` takes by size, if it was measured: a line for each problem of a type and a column for each size, or the other way
/// round where there are more sizes. Scans and compactions are told by the copy that moves as many bytes, all else by its time.
pub(super) fn auto_by_size(record: &SweepRecord, origin: &str) -> Option<Table> {
    let points = Points::of(record);
    let rows: Vec<&SweepRow> =
        points.0.values().flatten().filter(|row| row.subject == StrategyChoice::Auto.name()).copied().collect();
    if rows.is_empty() {
        return None;
    }
    let by_copy = rows.iter().all(|row| row.problem.is_scan());
    let show = |row: &SweepRow, figure: Figure| {
        let mark = if is_trusted(row, figure) { String::new() } else { NOT_TRUSTED.to_string() };
        let times = || points.times_copy(row, figure).map(|times| format!("{times:.2}{mark}"));
        or_dash(if by_copy { times() } else { microseconds(row, figure) })
    };
    let cell = |row: &SweepRow| {
        let own = [Figure::Graph, Figure::Cold].map(|figure| show(row, figure)).join(", ");
        let peer = points.best_peer(row, Figure::Graph).map(|peer| format!(" ({})", show(peer, Figure::Graph)));
        own + &peer.unwrap_or_default()
    };
    let label = |row: &SweepRow| with_variant(std::iter::once(row.point().scan()), row);
    let mut labels: Vec<String> = Vec::new();
    for label in rows.iter().map(|row| label(row)) {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let sizes: BTreeSet<u64> = rows.iter().map(|row| row.n).collect();
    let cells: BTreeMap<(String, u64), String> = rows.iter().map(|row| ((label(row), row.n), cell(row))).collect();
    let of_line = |label: &String| {
        let at = |&n: &u64| cells.get(&(label.clone(), n)).cloned().unwrap_or_default();
        std::iter::once(label.clone()).chain(sizes.iter().map(at)).collect()
    };
    let head = std::iter::once(String::new()).chain(sizes.iter().copied().map(format_size)).collect();
    let mut grid: Vec<Vec<String>> = std::iter::once(head).chain(labels.iter().map(of_line)).collect();
    if labels.len() < sizes.len() {
        grid = (0..=sizes.len()).map(|column| grid.iter().map(|line| line[column].clone()).collect()).collect();
    }
    let what = if by_copy {
        "How many times as long as the copy that moves as many bytes `auto` takes in a graph (by the faster of the copy's figures \
         in a graph and on a stream) and"
    } else {
        "Median µs that `auto` takes in a graph and"
    };
    let caption =
        format!("{what} behind the caches' overwriting, and in brackets the fastest peer in a graph: {origin}.");
    let columns: Vec<&str> = grid[0].iter().map(String::as_str).collect();
    Some(Table::new(caption, &columns, grid[1..].to_vec(), 1))
}

/// What is drawn by the length of rows and columns, if several lengths were measured: caption, and chart.
pub(super) fn by_length(record: &SweepRecord, gpu: &str) -> Option<(String, Chart)> {
    let points = Points::of(record);
    let is_line = |row: &&&SweepRow| row.kind == Kind::Strategy && row.problem.takes_shape();
    let rows: Vec<&SweepRow> = points.0.values().flatten().filter(is_line).copied().collect();
    let has = |figure: Figure| rows.iter().any(|row| points.times_copy(row, figure).is_some());
    let figure = [Figure::Graph, Figure::Cold].into_iter().find(|&figure| has(figure))?;
    let subjects: BTreeSet<&str> = rows.iter().map(|row| row.subject.as_str()).collect();
    let mut lines: BTreeMap<String, Vec<(u64, Point)>> = BTreeMap::new();
    for row in rows {
        let (Some(length), Some((copy_ns, is_trusted))) = (row.segment_elements, points.copy(row, figure)) else {
            continue;
        };
        let subject = if subjects.len() > 1 { format!(", {}", row.subject) } else { String::new() };
        let label = format!("{}, {}{subject}", problem(row), types(row));
        let what = format!("{}, segments of {}, n = {}", configuration(row), format_size(length), format_size(row.n));
        let by_copy = |_: &SweepRow, nanoseconds: f64| Some(nanoseconds / copy_ns);
        let found = row.figure(figure).and_then(|figure| point(length as f64, what, row, figure, &by_copy));
        lines
            .entry(label)
            .or_default()
            .extend(found.map(|found| (row.n, Point { is_trusted: found.is_trusted && is_trusted, ..found })));
    }
    let lines = lines.into_iter().flat_map(|(label, points)| by_size(label, points));
    let series: Vec<Series> = lines
        // A single length is in the table.
        .filter(|(_, points)| points.len() >= 2)
        .enumerate()
        .map(|(index, (label, points))| Series { label, pen: Pen::of_index(index), points })
        .collect();
    if places(&series) < 2 {
        return None;
    }
    let points = || series.iter().flat_map(|series| &series.points);
    let least = points().map(|point| point.y).reduce(f64::min)?;
    let most = points().map(|point| point.y).reduce(f64::max)?;
    let how = if figure == Figure::Graph { "in a graph" } else { "cold L2" };
    let copy =
        if figure == Figure::Graph { ", by the faster of the copy's figures in a graph and on a stream" } else { "" };
    let caption = format!("Median of the scan by that of the copy that moves as many bytes in the same rounds{copy}.");
    let chart = Chart {
        title: format!(
            "Scans by the length of rows and columns, {how}, {gpu}: {least:.2} to {most:.2} times as long as the copy"
        ),
        x_description: "elements of a row or column",
        y_description: "times as long as the copy".to_owned(),
        unit: "× the copy's time",
        x: Axis::powers(points().map(|point| point.x), 14),
        y: Axis::from_zero(points().map(|point| point.upper.max(point.lower)).chain([1.0])),
        series,
        band: QUARTILES,
        reference: Some(1.0),
        is_joined: true,
    };
    Some((caption, chart))
}

/// A line of all points, or one of each n where a length was measured at several: of most lengths n is rounded down to whole rows.
fn by_size(label: String, points: Vec<(u64, Point)>) -> BTreeMap<String, Vec<Point>> {
    let lengths: BTreeSet<u64> = points.iter().map(|(_, point)| point.x as u64).collect();
    let is_one = lengths.len() == points.len();
    let mut lines: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for (n, point) in points {
        let name = if is_one { label.clone() } else { format!("{label}, n = {}", format_size(n)) };
        lines.entry(name).or_default().push(point);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ElementType, Operator};
    use crate::lab::measure::environment::{Machine, Program};
    use crate::lab::measure::record::{FORMAT, FigureRecord, SweepHeader};
    use crate::lab::measure::sampling::{Measured, Series as Samples};
    use crate::lab::measure::stopping::Stop;
    use crate::lab::measure::sweep::SweepFile;
    use crate::lab::workload::{ProblemKind, Workload};
    use crate::strategy::{ScanConfig, Strategy};

    fn figure(nanoseconds: f64) -> Option<FigureRecord> {
        let series = Samples {
            accepted_nanoseconds: vec![nanoseconds; 9],
            reduced_clock_nanoseconds: Vec::new(),
            late_samples: 0,
            runs_per_sample: 1,
            clock_megahertz: None,
            stop: Stop::Noise,
            unmet: None,
        };
        Some(FigureRecord::new(Measured::Series(series), 1000, None))
    }

    /// The rows of a point: the copy, whose graph is slow, a peer, and auto, which takes so many times as long as the copy.
    fn point_of(kind: ProblemKind, segment: Option<u64>, times: f64) -> Vec<SweepRow> {
        let f32s = ElementType::F32;
        let workload = Workload::new(kind, Operator::Sum, f32s, f32s, segment).unwrap();
        let config = ScanConfig { vt: 16, block_threads: 512, ..ScanConfig::default() };
        let mode = Mode::Inclusive;
        let subjects = [
            (Subject::Memcpy, [1500.0, 1000.0, 1100.0]),
            (Subject::Peer { name: "cub-3.5.0".to_owned(), mode }, [4000.0, 4000.0, 4400.0]),
            (
                Subject::Auto { strategy: Strategy::Lookahead, mode, config },
                [1000.0, 1000.0, 1100.0].map(|ns| times * ns),
            ),
        ];
        let rows = subjects.into_iter().map(|(subject, [graph, stream, cold])| {
            let mut row = SweepRow::new(&subject, workload, 1 << 12);
            row.status = Status::Measured;
            (row.graph, row.stream, row.cold) = (figure(graph), figure(stream), figure(cold));
            row
        });
        rows.collect()
    }

    fn record(rows: Vec<SweepRow>) -> SweepRecord {
        let program = Program { version: "0".into(), git_commit: None, git_dirty: None, kernels_sha256: String::new() };
        let machine = Machine {
            gpu: "NVIDIA H200".into(),
            gpu_digest: String::new(),
            driver: String::new(),
            cuda: String::new(),
            compiler: String::new(),
            compute_capability: "9.0".into(),
            multiprocessors: 132,
            memory_bytes: 1 << 37,
            l2_bytes: 50 << 20,
            maximum_core_clock_mhz: None,
            maximum_memory_clock_mhz: None,
            nvml: None,
            peers: Vec::new(),
            processor: String::new(),
            processors: 16,
        };
        let sweep = SweepFile::open("problems").unwrap();
        let (date, command) = (String::new(), String::new());
        let header = SweepHeader { format: FORMAT, program, date, command, sweep, machine };
        SweepRecord { rows, ..SweepRecord::from(header) }
    }

    #[test]
    fn every_line_is_told_by_the_copy_that_moves_as_much() {
        let record = record(
            [
                point_of(ProblemKind::Flat, None, 1.02),
                point_of(ProblemKind::Rows, Some(32), 1.16),
                point_of(ProblemKind::Rows, Some(64), 1.05),
                point_of(ProblemKind::Recurrence, None, 1.5),
            ]
            .concat(),
        );
        let table = lines(&record, "made up");
        let rows: Vec<String> = table.rows.iter().map(|row| row.join(" | ")).collect();
        let came_to = "lookahead, VT 16, 512 threads";
        assert_eq!(
            rows,
            [
                // By the copy's stream, which is faster than its graph.
                format!("flat, sum | f32 | {came_to} | – | 2^12 | 1.020 | 1.02 | 1.122 | 1.02 | cub-3.5.0 | 4.00"),
                format!("rows, sum | f32 | {came_to} | 32 | 2^12 | 1.160 | 1.16 | 1.276 | 1.16 | cub-3.5.0 | 4.00"),
                format!("rows, sum | f32 | {came_to} | 64 | 2^12 | 1.050 | 1.05 | 1.155 | 1.05 | cub-3.5.0 | 4.00"),
                format!("recurrence | f32 | {came_to} | – | 2^12 | 1.500 | 1.50 | 1.650 | 1.50 | cub-3.5.0 | 4.00"),
            ]
        );
        assert!(has_problems(&record));
        assert!(!has_problems(&self::record(point_of(ProblemKind::Flat, None, 1.0))));
        // Without the copy nobody knows.
        let alone = self::record(point_of(ProblemKind::Reverse, None, 1.0).split_off(2));
        assert_eq!(lines(&alone, "made up").rows[0][6], "–");
    }

    #[test]
    fn what_auto_takes_by_size_has_the_more_of_lines_and_sizes_downwards() {
        let of = |kind, run, n, times| {
            let mut rows = point_of(kind, run, times);
            rows.iter_mut().for_each(|row| row.n = n);
            rows
        };
        let select = |run, n, times| of(ProblemKind::Select, Some(run), n, times);
        let told = |rows: Vec<Vec<SweepRow>>| {
            let mut record = record(rows.concat());
            // A figure without a criterion.
            record.rows.last_mut().unwrap().cold.as_mut().unwrap().is_trusted = false;
            let table = auto_by_size(&record, "made up").unwrap();
            std::iter::once(&table.columns).chain(&table.rows).map(|row| row.join(" | ")).collect::<Vec<_>>()
        };
        assert_eq!(
            told(vec![select(1, 1 << 12, 1.5), select(2, 1 << 12, 1.25), select(2, 1 << 13, 1.0)]),
            [
                " | 2^12 | 2^13",
                "f32 select, one of 1 | 1.50, 1.50 (4.00) | ",
                "f32 select, one of 2 | 1.25, 1.25 (4.00) | 1.00, 1.00? (4.00)",
            ]
        );
        // What is no scan has times.
        let sort = |n| of(ProblemKind::Sort, None, n, 2.0);
        let line = "2.000, 2.200 (4.000)";
        assert_eq!(
            told(vec![sort(1 << 12), sort(1 << 13)]),
            [" | f32 sort".to_owned(), format!("2^12 | {line}"), "2^13 | 2.000, 2.200? (4.000)".to_owned()]
        );
        assert_eq!(auto_by_size(&record(Vec::new()), "made up"), None);
    }

    #[test]
    fn rows_and_columns_are_drawn_by_their_length_and_other_problems_are_not() {
        let rows = [
            point_of(ProblemKind::Rows, Some(32), 1.16),
            point_of(ProblemKind::Rows, Some(64), 1.05),
            point_of(ProblemKind::Columns, Some(64), 2.4),
            point_of(ProblemKind::Columns, Some(32), 1.2),
            point_of(ProblemKind::ByKey, Some(32), 9.0),
            point_of(ProblemKind::ByKey, Some(64), 9.0),
            point_of(ProblemKind::RecurrenceColumns, Some(64), 7.0),
        ];
        let (_, chart) = by_length(&record(rows.concat()), "H200").unwrap();
        let series: Vec<(&str, Vec<[f64; 2]>)> = chart
            .series
            .iter()
            .map(|series| (series.label.as_str(), series.points.iter().map(|point| [point.x, point.y]).collect()))
            .collect();
        assert_eq!(
            series,
            [
                ("columns, sum, f32", vec![[32.0, 1.2], [64.0, 2.4]]),
                ("rows, sum, f32", vec![[32.0, 1.16], [64.0, 1.05]]),
            ]
        );
        assert!(chart.title.ends_with("1.05 to 2.40 times as long as the copy"), "{}", chart.title);
        assert!(by_length(&record(rows[4..].concat()), "H200").is_none());
    }

    #[test]
    fn sizes_that_are_rounded_to_whole_rows_are_one_line_and_others_several() {
        let of = |length, n| {
            let mut rows = point_of(ProblemKind::Rows, Some(length), 1.1);
            rows.iter_mut().for_each(|row| row.n = n);
            rows
        };
        let names = |rows: [Vec<SweepRow>; 4]| {
            let (_, chart) = by_length(&record(rows.concat()), "H200").unwrap();
            chart.series.into_iter().map(|series| series.label).collect::<Vec<_>>()
        };
        assert_eq!(names([of(7, 4095), of(100, 4000), of(1000, 4000), of(3000, 3000)]), ["rows, sum, f32"]);
        let sizes = [of(32, 1 << 12), of(64, 1 << 12), of(32, 1 << 13), of(64, 1 << 13)];
        assert_eq!(names(sizes), ["rows, sum, f32, n = 2^12", "rows, sum, f32, n = 2^13"]);
    }
}
