//! The pictures of a sweep's record. What was measured decides what is drawn, not the sweep's name: many sizes give
//! pictures by size, several VTs at one size pictures by VT, several types pictures by type. No line has rows that
//! were wrong or could not be launched.

use super::axis::Axis;
use super::chart::{Chart, Point, QUARTILES, Series, Standing, places};
use super::contest::{self, Contest};
use super::error::ReportError;
use super::family::{FEWEST_SIZES, Family, is_trusted, median, point, slug_of, subjects_of};
use super::heat_map::{Cell, HeatMap};
use super::pen::Pen;
use super::problems;
use super::svg::{Drawing, Plot, Refusal};
use super::tables::is_first;
use crate::element::{ElementType, Operator};
use crate::lab::measure::point::{Kind, Offsets, is_variant};
use crate::lab::measure::record::{Status, SweepRecord, SweepRow};
use crate::lab::measure::sampling::Figure;
use crate::lab::measure::targets;
use crate::strategy::Mode;
use crate::text::{format_power, format_size};
use std::collections::{BTreeMap, BTreeSet};

/// What stands behind the record's name in the file names of its pictures.
pub(super) const KINDS: [&str; 11] = [
    contest::COPY,
    contest::RELATIVE,
    "throughput",
    "time-stream",
    "time-graph",
    "time-latency",
    SPEED_UP,
    "vt-lines",
    "vt-map",
    "types",
    problems::SEGMENTS,
];

const SPEED_UP: &str = "speed-up-graph";

/// Time by size is drawn up to here: beyond it, memory decides and throughput says it better.
const SMALL: u64 = 1 << 20;

/// The peers of a record, main ones first and newest first: a peer's place decides its look in every picture.
fn peers(record: &SweepRecord) -> Vec<String> {
    let names: BTreeSet<&str> =
        record.rows.iter().filter(|row| row.kind == Kind::Peer).map(|row| row.subject.as_str()).collect();
    let mut names: Vec<String> = names.into_iter().rev().map(str::to_owned).collect();
    names.sort_by_key(|name| (is_variant(name), !name.starts_with("cub")));
    names
}

/// A figure as a title calls it.
const fn describe(figure: Figure) -> &'static str {
    match figure {
        Figure::Cold => "cold L2",
        Figure::Stream => "on a stream",
        Figure::Graph => "in a graph",
        Figure::Latency => "from call to result",
        Figure::Behind => "behind a foreign kernel",
        Figure::Call => "by calls of the public API",
        Figure::UntrackedCall => "by calls of the public API without event tracking",
    }
}

/// Whether the cold figures of a record are without the time of an empty frame.
pub(super) fn is_without_frame(record: &SweepRecord) -> bool {
    record.rows.iter().any(|row| row.cold.as_ref().is_some_and(|cold| cold.empty_frame_ns.is_some()))
}

const GIGABYTES: &str = "GB/s, counting 2n elements";
const PERCENT: &str = "percent of the copy's speed";

/// A chart by size in words.
struct BySize {
    kind: &'static str,
    what: &'static str,
    figure: Figure,
    y_description: &'static str,
    unit: &'static str,
    caption: String,
    /// Where the subjects are as fast as what they are compared with.
    reference: Option<f64>,
    /// What it shows, in place of `what`.
    answer: Option<String>,
}

struct Renderer<'a> {
    stem: &'a str,
    gpu: String,
    peers: Vec<String>,
    is_without_frame: bool,
    plots: Vec<Plot>,
}

/// Sizes of a scan from which on a record of targets has pictures of it: some two an octave.
const TARGET_SIZES: usize = 48;

/// All pictures of a record whose file is called `stem`.
///
/// # Errors
/// When the drawing library refuses.
pub(super) fn plots(record: &SweepRecord, stem: &str) -> Result<Vec<Plot>, ReportError> {
    let gpu = record.header.machine.gpu.replace("NVIDIA ", "");
    let mut renderer =
        Renderer { stem, gpu, peers: peers(record), is_without_frame: is_without_frame(record), plots: Vec::new() };
    let families = Family::all(record);
    let copies = contest::copies(record);
    let is_of_targets = record.header.sweep.name == targets::SWEEP;
    for family in &families {
        // Of scans at few sizes, and of further processes, the table of targets says what pictures would hide.
        let is_shown = is_first(record) && family.mode == Mode::Inclusive && family.sizes().len() >= TARGET_SIZES;
        if is_of_targets && !is_shown {
            continue;
        }
        let has_vts = renderer.by_vt(family)?;
        if !has_vts && family.sizes().len() >= FEWEST_SIZES {
            for Contest { kind, caption, chart } in contest::contests(family, &copies, &renderer.gpu) {
                renderer.add_chart(kind, &family.slug(), caption, &chart)?;
            }
            if !is_of_targets {
                renderer.by_size(family)?;
            }
        }
    }
    if !is_of_targets {
        renderer.by_type(&families)?;
    }
    if let Some((caption, chart)) = problems::by_length(record, &renderer.gpu) {
        renderer.add_chart(problems::SEGMENTS, "rows-and-columns", caption, &chart)?;
    }
    Ok(renderer.plots)
}

impl Renderer<'_> {
    const fn explain(&self, figure: Figure) -> &'static str {
        match figure {
            Figure::Cold if self.is_without_frame => {
                "Figure cold: the L2 is overwritten before each run, launch latency stays outside the events, and what \
                 the events take by themselves is subtracted."
            }
            Figure::Cold => {
                "Figure cold: the L2 is overwritten before each run, launch latency stays outside the events."
            }
            Figure::Stream => {
                "Figure stream: many launches, prepared before, one after the other; at small n the host's launch rate."
            }
            Figure::Graph => {
                "Figure graph: from one scan to the next in a replayed CUDA graph; neighbours may overlap."
            }
            Figure::Latency => "Figure latency: from the host's call to the result visible on the host.",
            Figure::Behind => {
                "Figure behind: each run behind a kernel that takes no part in programmatic launches, in a replayed CUDA \
                 graph, without what that kernel takes alone."
            }
            Figure::Call | Figure::UntrackedCall => {
                "Figure call: calls of the public API one after the other, until the last of them is done, by the host's \
                 clock."
            }
        }
    }

    fn add(
        &mut self,
        kind: &str,
        slug: &str,
        title: &str,
        caption: String,
        draw: impl FnOnce() -> Result<Drawing, Refusal>,
    ) -> Result<(), ReportError> {
        debug_assert!(KINDS.contains(&kind));
        let name = format!("{}-{kind}-{slug}", self.stem);
        let is_answer = [contest::COPY, contest::RELATIVE, SPEED_UP, problems::SEGMENTS].contains(&kind);
        self.plots.push(Plot { is_answer, ..Plot::drawn(name, title.to_owned(), caption, draw)? });
        Ok(())
    }

    fn add_chart(&mut self, kind: &str, slug: &str, caption: String, chart: &Chart) -> Result<(), ReportError> {
        self.add(kind, slug, &chart.title, caption, || chart.drawing())
    }

    /// One line a subject, of the given value with its quartiles. Lines go through powers of two, if there are
    /// such: a line through 2^16 and 2^16+1 would be a vertical stroke.
    fn lines(
        &self,
        family: &Family<'_>,
        figure: Figure,
        is_shown: impl Fn(&SweepRow) -> bool,
        value: impl Fn(&SweepRow, f64) -> Option<f64>,
    ) -> Vec<Series> {
        let mut series = Vec::new();
        for subject in family.subjects() {
            let mut points: Vec<Point> = family
                .sizes()
                .into_iter()
                .filter_map(|n| {
                    let row = family.row(subject, n, figure).filter(|row| is_shown(row))?;
                    let what = format!("{}, n = {}", row.subject_with_choice(), format_size(n));
                    point(n as f64, what, row, row.figure(figure)?, &value)
                })
                .collect();
            if points.is_empty() {
                continue;
            }
            let is_power = |point: &Point| (point.x as u64).is_power_of_two();
            if points.iter().filter(|point| is_power(point)).count() >= 2 {
                for point in &mut points {
                    point.standing = if is_power(point) { Standing::OnLine } else { Standing::Beside };
                }
            }
            series.push(Series { label: subject.to_owned(), pen: Pen::of_subject(subject, &self.peers), points });
        }
        series
    }

    fn by_size(&mut self, family: &Family<'_>) -> Result<(), ReportError> {
        let throughput = |row: &SweepRow, nanoseconds: f64| Some(row.bytes as f64 / nanoseconds);
        let microseconds = |_: &SweepRow, nanoseconds: f64| Some(nanoseconds / 1e3);
        let band = "Medians; lines join powers of two.";
        let is_main = |row: &SweepRow| !is_variant(&row.subject);

        let series = self.lines(family, Figure::Cold, is_main, throughput);
        let caption =
            format!("{} {band} The thick grey line is the device's copy: the roof.", self.explain(Figure::Cold));
        let throughput = BySize {
            kind: "throughput",
            what: "Throughput by size",
            figure: Figure::Cold,
            y_description: GIGABYTES,
            unit: "GB/s",
            caption,
            reference: None,
            answer: None,
        };
        self.by_size_chart(family, throughput, series)?;

        for (kind, figure) in
            [("time-graph", Figure::Graph), ("time-stream", Figure::Stream), ("time-latency", Figure::Latency)]
        {
            let is_shown = |row: &SweepRow| is_main(row) && row.n <= SMALL;
            let series = self.lines(family, figure, is_shown, microseconds);
            let caption = format!("{} {band}", self.explain(figure));
            let (what, y_description) = ("Time at small n", "µs a scan");
            let time =
                BySize { kind, what, figure, y_description, unit: "µs", caption, reference: None, answer: None };
            self.by_size_chart(family, time, series)?;
        }
        let figure = Figure::Graph;
        let best = family.best_peer(figure);
        let best_ns = |n: u64| best.get(&n).and_then(|row| median(row, figure));
        let is_shown = |row: &SweepRow| {
            !row.kind.is_floor() && !row.subject.starts_with("cub-") && is_main(row) && best.contains_key(&row.n)
        };
        let speed_up = |row: &SweepRow, nanoseconds: f64| best_ns(row.n).map(|best| best / nanoseconds);
        let mut series = self.lines(family, figure, is_shown, speed_up);
        trust_no_more_than(&mut series, |n| best.get(&n).is_some_and(|row| is_trusted(row, figure)));
        let caption = format!(
            "{} Median of the fastest CUB at each size (any version and variant, Thrust's calls of it too) by the subject's: above \
             1 the subject is faster. {band}",
            self.explain(figure)
        );
        let size_at = |point: &Point| contest::size(family, point.x as u64);
        let speed_up = BySize {
            kind: SPEED_UP,
            what: "Speed-up over the best CUB",
            figure,
            y_description: "times as fast as the best CUB",
            unit: "×",
            caption,
            reference: Some(1.0),
            answer: contest::ratio_answer(&series, size_at, ["is", "as fast as", "slower"], |ratio| ratio < 1.0),
        };
        self.by_size_chart(family, speed_up, series)
    }

    fn by_size_chart(&mut self, family: &Family<'_>, of: BySize, series: Vec<Series>) -> Result<(), ReportError> {
        if places(&series) < 2 {
            return Ok(());
        }
        let points = || series.iter().flat_map(|series| &series.points);
        let x = Axis::powers(points().map(|point| point.x), 14);
        let ys = points().map(|point| point.y);
        let y = match of.reference {
            Some(reference) => Axis::from_zero(ys.chain([reference])),
            None => Axis::powers(ys, 11),
        };
        let (scan, figure, gpu) = (family.title(), describe(of.figure), &self.gpu);
        let chart = Chart {
            title: match of.answer {
                Some(answer) => format!("{scan}, {figure}, {gpu}: {answer}"),
                None => format!("{}, {figure}: {scan}, {gpu}", of.what),
            },
            x_description: "n, elements",
            y_description: of.y_description.to_owned(),
            unit: of.unit,
            x,
            y,
            series,
            band: QUARTILES,
            reference: of.reference,
            is_joined: true,
        };
        self.add_chart(of.kind, &family.slug(), of.caption, &chart)
    }

    /// Pictures of each strategy and n that was measured at several VTs; says whether there is any.
    fn by_vt(&mut self, family: &Family<'_>) -> Result<bool, ReportError> {
        let mut groups: BTreeMap<(&str, u64), Vec<&SweepRow>> = BTreeMap::new();
        // What `auto` came to is one configuration a size.
        let is_chosen = |row: &SweepRow| row.vt.is_some() && row.chosen_strategy.is_none();
        for row in family.rows.iter().filter(|row| is_chosen(row) && row.status != Status::Wrong) {
            groups.entry((&row.subject, row.n)).or_default().push(row);
        }
        groups.retain(|_, rows| rows.iter().map(|row| row.vt).collect::<BTreeSet<_>>().len() >= 2);
        for ((subject, n), rows) in &groups {
            let figure = main_figure(*n, rows);
            let place = format!(
                "{subject}, n = {}, {}: {}, {}",
                format_power(*n as f64),
                describe(figure),
                family.title(),
                self.gpu
            );
            let slug = format!("{subject}-{}-{}", format_size(*n).replace('^', "-"), family.slug());
            self.vt_lines(rows, figure, &place, &slug)?;
            self.vt_map(rows, figure, &place, &slug)?;
        }
        Ok(!groups.is_empty())
    }

    fn vt_lines(&mut self, rows: &[&SweepRow], figure: Figure, place: &str, slug: &str) -> Result<(), ReportError> {
        let mut blocks: BTreeMap<u32, Vec<Point>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.status == Status::Measured) {
            let value = |row: &SweepRow, nanoseconds: f64| Some(row.bytes as f64 / nanoseconds);
            let (Some(vt), Some(figure)) = (row.vt, row.figure(figure)) else { continue };
            let what = format!("VT {vt}, {} threads", row.block_threads.unwrap_or(0));
            if let Some(point) = point(f64::from(vt), what, row, figure, &value) {
                blocks.entry(row.block_threads.unwrap_or(0)).or_default().push(point);
            }
        }
        let mut series: Vec<Series> = Vec::new();
        for (index, (block, mut points)) in blocks.into_iter().enumerate() {
            points.sort_by(|left, right| left.x.total_cmp(&right.x));
            series.push(Series { label: format!("{block} threads"), pen: Pen::of_index(index), points });
        }
        if places(&series) < 2 {
            return Ok(());
        }
        let points = || series.iter().flat_map(|series| &series.points);
        let caption = format!(
            "{} Medians. Where VT is not a multiple of a 16-byte vector, accesses are \
             narrower: the map beside it names each width.",
            self.explain(figure)
        );
        let chart = Chart {
            title: format!("Throughput by VT: {place}"),
            x_description: "VT, values per thread",
            y_description: GIGABYTES.to_owned(),
            unit: "GB/s",
            x: Axis::powers(points().map(|point| point.x), 12),
            y: Axis::from_zero(points().map(|point| point.upper.max(point.lower))),
            series,
            band: QUARTILES,
            reference: None,
            is_joined: true,
        };
        self.add_chart("vt-lines", slug, caption, &chart)
    }

    fn vt_map(&mut self, rows: &[&SweepRow], figure: Figure, place: &str, slug: &str) -> Result<(), ReportError> {
        let vts: Vec<u32> = rows.iter().filter_map(|row| row.vt).collect::<BTreeSet<_>>().into_iter().collect();
        let blocks: Vec<u32> =
            rows.iter().filter_map(|row| row.block_threads).collect::<BTreeSet<_>>().into_iter().collect();
        let cell = |block: u32, vt: u32| {
            let of_cell = |row: &&&SweepRow| row.vt == Some(vt) && row.block_threads == Some(block);
            let Some(row) = rows.iter().find(of_cell) else { return Cell::Absent { why: "" } };
            match median(row, figure) {
                Some(nanoseconds) if row.status == Status::Measured => Cell::Value {
                    is_trusted: is_trusted(row, figure),
                    value: row.bytes as f64 / nanoseconds,
                    note: row.access_bytes.map_or(String::new(), |bytes| format!("{bytes} B")),
                    is_marked: row.spill_bytes.is_some_and(|bytes| bytes > 0),
                },
                _ if row.status == Status::NotLaunchable => Cell::Absent { why: "no launch" },
                _ => Cell::Absent { why: "no figure" },
            }
        };
        let title = format!("VT × block: {place}");
        let caption = format!(
            "{} The small number is the widest access of a lane in bytes. A corner marks configurations whose \
             registers spill, grey ones cannot be launched, the frame is the best; a question mark says that no noise \
             criterion was met.",
            self.explain(figure)
        );
        let map = HeatMap {
            title: title.clone(),
            x_description: "VT, values per thread",
            y_description: "threads per block",
            columns: vts.iter().map(u32::to_string).collect(),
            rows: blocks.iter().map(u32::to_string).collect(),
            cells: blocks.iter().map(|&block| vts.iter().map(|&vt| cell(block, vt)).collect()).collect(),
            unit: "GB/s",
            mark: "below each figure: widest access of a lane · ◤ registers spill · grey: cannot be launched · frame: the best",
        };
        self.add("vt-map", slug, &title, caption, || Ok(Drawing { wide: map.svg()?, narrow: None }))
    }

    /// Percent of copy by type, a picture for each n, operator and mode with three types or more. Types with pictures by size
    /// have said it there.
    fn by_type(&mut self, families: &[Family<'_>]) -> Result<(), ReportError> {
        let mut groups: BTreeMap<(Operator, Mode, u64, Offsets), Vec<&Family<'_>>> = BTreeMap::new();
        for family in families.iter().filter(|family| family.sizes().len() < FEWEST_SIZES) {
            for n in family.sizes() {
                groups.entry((family.operator, family.mode, n, family.offsets)).or_default().push(family);
            }
        }
        for ((operator, mode, n, offsets), families) in groups {
            if families.len() < 3 {
                continue;
            }
            let rows: Vec<&SweepRow> =
                families.iter().flat_map(|family| family.measured()).filter(|row| row.n == n).collect();
            let figure = main_figure(n, &rows);
            let mut types: Vec<ElementType> = families.iter().map(|family| family.element).collect();
            types.sort_unstable();
            let mut subjects = subjects_of(rows.iter().filter(|row| !row.kind.is_floor()).copied());
            subjects.retain(|subject| !is_variant(subject));
            // The table says all that there is to say of one.
            if subjects.len() < 2 {
                continue;
            }
            let mut series: Vec<Series> = Vec::new();
            for (index, subject) in subjects.iter().enumerate() {
                let offset = 0.64 * ((index as f64 + 0.5) / subjects.len() as f64 - 0.5);
                let points: Vec<Point> = types
                    .iter()
                    .enumerate()
                    .filter_map(|(place, &element)| {
                        let family = families.iter().find(|family| family.element == element)?;
                        let copy = family.row("memcpy", n, figure)?;
                        let copy_ns = median(copy, figure)?;
                        let row = family.row(subject, n, figure)?;
                        let percent = |_: &SweepRow, nanoseconds: f64| Some(100.0 * copy_ns / nanoseconds);
                        let what = format!("{}, {element}", row.subject_with_choice());
                        let mut point = point(place as f64 + offset, what, row, row.figure(figure)?, &percent)?;
                        point.is_trusted &= is_trusted(copy, figure);
                        Some(point)
                    })
                    .collect();
                if !points.is_empty() {
                    let pen = Pen::of_subject(subject, &self.peers);
                    series.push(Series { label: (*subject).to_owned(), pen, points });
                }
            }
            if series.is_empty() {
                continue;
            }
            let place = if offsets.is_aligned() { String::new() } else { format!(", {offsets}") };
            let title = format!(
                "Percent of copy by type, {}: {operator}, {mode}, n = {}{place}, {}",
                describe(figure),
                format_power(n as f64),
                self.gpu
            );
            let caption = format!(
                "{} Median of the device's copy of the same array by the subject's, in percent; whiskers are the \
                 subject's quartiles.",
                self.explain(figure)
            );
            let uppers = series.iter().flat_map(|series| &series.points).map(|point| point.upper.max(point.lower));
            let chart = Chart {
                title,
                x_description: "element type",
                y_description: PERCENT.to_owned(),
                unit: "%",
                x: Axis::of_names(types.iter().map(ToString::to_string).collect()),
                y: Axis::from_zero(uppers.chain([100.0])),
                series,
                band: QUARTILES,
                reference: Some(100.0),
                is_joined: false,
            };
            let slug = format!("{operator}-{mode}-{}{}", format_size(n).replace('^', "-"), slug_of(offsets));
            self.add_chart("types", &slug, caption, &chart)?;
        }
        Ok(())
    }
}

/// A ratio by size is worth no more than what it is the ratio to.
fn trust_no_more_than(series: &mut [Series], reference: impl Fn(u64) -> bool) {
    for point in series.iter_mut().flat_map(|series| &mut series.points) {
        point.is_trusted &= reference(point.x as u64);
    }
}

/// Cold where memory decides; at small n, where a cold launch is mostly waiting, graph; else what there is.
fn main_figure(n: u64, rows: &[&SweepRow]) -> Figure {
    let has = |figure: Figure| rows.iter().any(|row| median(row, figure).is_some());
    let order = if n > SMALL {
        [Figure::Cold, Figure::Graph, Figure::Stream, Figure::Latency]
    } else {
        [Figure::Graph, Figure::Cold, Figure::Stream, Figure::Latency]
    };
    order.into_iter().find(|&figure| has(figure)).unwrap_or(order[0])
}
