//! What the records of one or several processes say of every target, figure by figure.

use super::super::copies::{COPY_KERNELS, CopyKernel};
use super::super::point::{Entry, Kind, Offsets, Point, PointKey, Subject, bound_name};
use super::super::record::{FigureRecord, Status, SweepHeader, SweepRecord, SweepRow};
use super::super::sampling::Figure;
use super::super::sweep::SweepFile;
use super::{GPU, HOST_TARGETS, HostTarget, SUBJECT, SWEEP, TARGETS, Target, Yardstick};
use crate::element::{ElementType, Operator};
use crate::lab::statistics::Summary;
use crate::names::named;
use crate::strategy::tuning::Tuning;
use crate::strategy::{Mode, Strategy};
use crate::text::format_array_size;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

const MEMCPY: &str = "memcpy";
/// A miss within this share of its bound is as near as can be asked for.
pub const NEAR_BOUND: f64 = 0.05;
/// Where the sentinel is off its median by more, the machine was not what it was elsewhere.
pub const SENTINEL_STEP: f64 = 0.03;

/// The strategy that ran: that of the subject's name, or what it resolved to.
pub fn resolved(row: &SweepRow) -> Option<Strategy> {
    row.chosen_strategy.or_else(|| row.subject.parse().ok())
}

/// A scan and a figure of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Element type.
    pub element: ElementType,
    /// Operator.
    pub operator: Operator,
    /// Elements.
    pub n: u64,
    /// Where input and output begin.
    pub offsets: Offsets,
    /// What is computed.
    pub mode: Mode,
    /// The figure.
    pub figure: Figure,
}

impl Place {
    fn of(row: &SweepRow, figure: Figure) -> Option<Self> {
        let SweepRow { element, operator, n, offsets, .. } = *row;
        Some(Self { element, operator, n, offsets, mode: row.mode?, figure })
    }

    fn size(&self) -> String {
        format_array_size(self.n, self.element.bytes())
    }
}

/// "u8 sum, 4 KiB, exclusive, graph", with the offsets if there are any.
impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}, {}, {}, {}", self.element, self.operator, self.size(), self.mode, self.figure)?;
        if self.offsets.is_aligned() { Ok(()) } else { write!(formatter, ", {}", self.offsets) }
    }
}

/// How near a figure comes to the same kernel without its waiting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// What the bound reaches, in the target's terms.
    pub ratio: f64,
    /// Its time by ours: 1 where waiting costs nothing.
    pub share: f64,
}

/// One figure of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Which.
    pub place: Place,
    /// Time of what it is compared with, by ours; of several processes the median; `None` where one of them is missing.
    pub ratio: Option<f64>,
    /// The least and the largest of several processes.
    pub between: Option<[f64; 2]>,
    /// What it is compared with.
    pub reference: Option<String>,
    /// Whether it reaches the target.
    pub passed: bool,
    /// Why it does not count, whatever the ratio.
    pub problem: Option<String>,
    /// The strategy that ran, where something did.
    pub strategy: Option<Strategy>,
    /// The bound at this place, where one was measured.
    pub bound: Option<Bound>,
    /// Whether both times met a noise criterion.
    pub is_trusted: bool,
}

impl Finding {
    const fn new(place: Place, strategy: Option<Strategy>) -> Self {
        let (ratio, between, reference, problem, bound) = (None, None, None, None, None);
        Self { place, ratio, between, reference, passed: false, problem, strategy, bound, is_trusted: false }
    }

    /// The figure does not count.
    fn because(self, problem: impl Into<String>) -> Self {
        Self { passed: false, problem: Some(problem.into()), ..self }
    }

    /// The place, the strategy that ran there, and what it is compared with.
    pub fn title(&self) -> String {
        let who = [self.strategy.map(|strategy| strategy.to_string()), self.reference.clone()];
        let who: Vec<String> = who.into_iter().flatten().collect();
        if who.is_empty() { self.place.to_string() } else { format!("{} ({})", self.place, who.join(", by ")) }
    }

    /// Whether it stands so near to its bound that waiting is not what it lacks.
    pub fn is_near_bound(&self) -> bool {
        self.bound.is_some_and(|bound| bound.share >= 1.0 / (1.0 + NEAR_BOUND))
    }
}

named! {
    /// What is said of a target.
    pub enum TargetResult as "result of a target" {
        /// Every figure reaches it.
        Pass = "pass",
        /// Some do not, or nothing was measured.
        Miss = "MISS",
        /// It is for another GPU than the record's.
        OtherGpu = "-",
    }
}

/// A target and what the record says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The target.
    pub target: &'static Target,
    /// Every figure of it, those without a ratio first, then the worst first.
    pub findings: Vec<Finding>,
    /// Whether the record reaches it.
    pub result: TargetResult,
}

impl Outcome {
    /// How many figures reach the target.
    pub fn passed(&self) -> usize {
        self.findings.iter().filter(|finding| finding.passed).count()
    }

    /// The figures that do not, the worst first.
    pub fn misses(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.passed)
    }

    /// The worst of those that have a ratio.
    pub fn worst(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.ratio.is_some())
    }

    /// The middle of the ratios.
    pub fn median(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.findings.iter().filter_map(|finding| finding.ratio).collect();
        Summary::of(&ratios).map(|summary| summary.median)
    }
}

/// A target on the host and what the records say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct HostOutcome {
    /// The target.
    pub target: &'static HostTarget,
    /// Microseconds, of several processes the median; `None` where it was not measured.
    pub found_us: Option<f64>,
    /// Whether the records reach it.
    pub result: TargetResult,
}

/// What the sentinel took at all points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sentinel {
    /// Points that have it.
    pub points: usize,
    /// Microseconds.
    pub median_us: f64,
    /// Likewise.
    pub least_us: f64,
    /// Likewise.
    pub most_us: f64,
    /// Points where it is off the median of its process by more than [`SENTINEL_STEP`].
    pub steps: usize,
}

/// All targets on the records of one or several processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The GPU's name.
    pub gpu: String,
    /// How many processes.
    pub processes: usize,
    /// One a target, in order.
    pub outcomes: Vec<Outcome>,
    /// One a target on the host, in order.
    pub host: Vec<HostOutcome>,
    /// What the sentinel took, where it was measured.
    pub sentinel: Option<Sentinel>,
}

/// The measured rows of a record by what tells them apart.
struct Rows<'a> {
    rows: HashMap<RowKey<'a>, Vec<&'a SweepRow>>,
    /// Names of other people's scans.
    peers: BTreeSet<&'a str>,
    /// Names of the copy kernels.
    copies: BTreeSet<&'a str>,
    /// Sizes at which our subject was measured, in elements.
    sizes: BTreeSet<u64>,
}

type RowKey<'a> = (&'a str, ElementType, Operator, u64, Offsets, Option<Mode>);

impl<'a> Rows<'a> {
    fn new(record: &'a SweepRecord) -> Self {
        let mut rows: HashMap<_, Vec<&SweepRow>> = HashMap::new();
        let names = |kind: Kind| {
            record
                .rows
                .iter()
                .filter(move |row| row.kind == kind)
                .map(|row| row.subject.as_str())
                .collect::<BTreeSet<_>>()
        };
        let copies = names(Kind::Copy).into_iter().filter(|name| *name != MEMCPY).collect();
        let is_used = |row: &&SweepRow| matches!(row.status, Status::Measured | Status::NotVerified);
        for row in record.rows.iter().filter(is_used).filter(|row| is_flat(row)) {
            let key = (row.subject.as_str(), row.element, row.operator, row.n, row.offsets, row.mode);
            rows.entry(key).or_default().push(row);
        }
        let sizes = record.rows.iter().filter(|row| row.subject == SUBJECT).map(|row| row.n).collect();
        Self { rows, peers: names(Kind::Peer), copies, sizes }
    }

    /// The rows of a subject at a place, in all their configurations.
    fn at(&self, subject: &str, place: &Place) -> impl Iterator<Item = &'a SweepRow> + use<'a> {
        let mode = (!self.copies.contains(subject)).then_some(place.mode);
        let key = (subject, place.element, place.operator, place.n, place.offsets, mode);
        self.rows.get(&key).cloned().unwrap_or_default().into_iter()
    }

    /// The figure of a subject at a place, of several configurations the fastest.
    fn figure(&self, subject: &'a str, place: &Place) -> Option<Timed<'a>> {
        let figures = self.at(subject, place).filter_map(|row| row.figure(place.figure));
        fastest(figures.filter_map(|figure| Timed::new(subject, figure)))
    }

    /// The fastest of other people's scans at a place, of any version, width of the count and way of adding up.
    fn best_peer(&self, place: &Place) -> Option<Timed<'a>> {
        fastest(self.peers.iter().filter_map(|peer| self.figure(peer, place)))
    }

    /// How many times as fast as the best of them ours is.
    fn lead(&self, place: &Place) -> Option<f64> {
        let [peer, ours] = [self.best_peer(place)?, self.figure(SUBJECT, place)?];
        Some(peer.compared_ns(place.figure) / ours.compared_ns(place.figure))
    }

    /// The lead at a place by the lower of the leads at both ends of an octave around it: of all such octaves the worst.
    fn by_octave(&self, place: &Place) -> Option<f64> {
        let lead = self.lead(place)?;
        let ends = self.sizes.range(place.n / 2 + 1..place.n).filter(|&&n| n * 2 > place.n);
        let lower = ends.filter_map(|&n| {
            let [low, high] = [n, 2 * n].map(|n| self.lead(&Place { n, ..*place }));
            Some(low?.min(high?))
        });
        lower.map(|end| lead / end).min_by(f64::total_cmp)
    }
}

/// A figure that has a time.
#[derive(Clone, Copy)]
struct Timed<'a> {
    subject: &'a str,
    figure: &'a FigureRecord,
    median_ns: f64,
}

impl<'a> Timed<'a> {
    fn new(subject: &'a str, figure: &'a FigureRecord) -> Option<Self> {
        Some(Self { subject, figure, median_ns: figure.median_ns.filter(|&median| median > 0.0)? })
    }

    /// As scans are compared with each other by a figure: cold as the events said it, because what the queue takes by itself is part
    /// of both; behind a foreign kernel without that kernel, which is part of neither.
    fn compared_ns(&self, figure: Figure) -> f64 {
        let frame_ns = if figure == Figure::Cold { self.figure.empty_frame_ns } else { None };
        self.median_ns + frame_ns.unwrap_or(0.0)
    }
}

fn fastest<'a>(figures: impl Iterator<Item = Timed<'a>>) -> Option<Timed<'a>> {
    figures.min_by(|left, right| left.median_ns.total_cmp(&right.median_ns))
}

/// Whether a row is of a flat scan of arrays of one type: targets are of no other.
fn is_flat(row: &SweepRow) -> bool {
    row.problem.is_flat() && row.input_element.is_none()
}

/// Says of every target whether the records of one process or several reach it. The first is that of the process that measures all.
///
/// # Panics
/// Without a record.
pub fn evaluate(records: &[&SweepRecord]) -> Evaluation {
    let machine = &records[0].header.machine;
    let is_ours = machine.gpu_slug() == GPU;
    let judged = |passed: bool| match passed {
        _ if !is_ours => TargetResult::OtherGpu,
        true => TargetResult::Pass,
        false => TargetResult::Miss,
    };
    let processes: Vec<Process<'_>> = records.iter().map(|record| Process::new(record)).collect();
    let outcomes = TARGETS.iter().map(|target| {
        let findings = findings(target, &processes);
        let passed = findings.iter().all(|finding| finding.passed) && !findings.is_empty();
        Outcome { target, findings, result: judged(passed) }
    });
    let host = HOST_TARGETS.iter().map(|target| {
        let times = records.iter().filter_map(|record| target.found_us(record.call_times.as_ref()?));
        let found_us = Summary::of(&times.collect::<Vec<_>>()).map(|summary| summary.median);
        HostOutcome { target, found_us, result: judged(found_us.is_some_and(|found| found <= target.most_us)) }
    });
    Evaluation {
        gpu: machine.gpu.clone(),
        processes: records.len(),
        outcomes: outcomes.collect(),
        host: host.collect(),
        sentinel: sentinel(records),
    }
}

/// What the sentinel took, and where it is off the median of its process.
fn sentinel(records: &[&SweepRecord]) -> Option<Sentinel> {
    let (mut all, mut steps) = (Vec::new(), 0);
    for record in records {
        let points = record.points.iter().filter_map(|point| point.beside.sentinel.as_ref()?.median_ns);
        let times: Vec<f64> = points.map(|time| time / 1e3).collect();
        let Some(summary) = Summary::of(&times) else { continue };
        steps += times.iter().filter(|&&time| (time / summary.median - 1.0).abs() > SENTINEL_STEP).count();
        all.extend(times);
    }
    let Summary { count, median, minimum, maximum, .. } = Summary::of(&all)?;
    Some(Sentinel { points: count, median_us: median, least_us: minimum, most_us: maximum, steps })
}

/// A record, its rows by what tells them apart, and what had to be measured.
struct Process<'a> {
    record: &'a SweepRecord,
    rows: Rows<'a>,
    promised: Promised,
}

impl<'a> Process<'a> {
    fn new(record: &'a SweepRecord) -> Self {
        let SweepHeader { sweep, machine, .. } = &record.header;
        // A table that does not fit its GPU was not measured by; `auto` then went by the committed one.
        let tuning = sweep.tuning_on(machine.tuning_gpu()).unwrap_or_else(|_| Tuning::committed(machine.tuning_gpu()));
        Self { record, rows: Rows::new(record), promised: Promised::of(sweep.process, &tuning) }
    }

    /// What it says of a target, figure by figure, those that are missing among them.
    fn findings(&self, target: &Target) -> Vec<Finding> {
        let Self { record, rows, promised } = self;
        let ours = |row: &&SweepRow| {
            row.subject == SUBJECT && row.kind == Kind::Strategy && is_flat(row) && promised.covers(target, row)
        };
        let mut findings = Vec::new();
        for row in record.rows.iter().filter(ours) {
            let figures = target.figures.iter().filter(|&&figure| row.figure(figure).is_some() || !is_timed(row));
            let places = figures.filter_map(|&figure| Place::of(row, figure));
            findings.extend(places.filter_map(|place| finding(target, row, place, rows)));
        }
        let found: HashSet<Place> = findings.iter().map(|finding| finding.place).collect();
        for (row, figures) in promised.rows.iter().filter(|(row, _)| promised.covers(target, row)) {
            let asked = figures.iter().filter(|figure| target.figures.contains(figure));
            let missing = asked.filter_map(|&figure| Place::of(row, figure)).filter(|place| !found.contains(place));
            // At the first and last sizes there is no octave around.
            let missing = missing.filter(|_| target.yardstick != Yardstick::Octave);
            findings.extend(missing.map(|place| Finding::new(place, None).because("it was not measured")));
        }
        findings
    }
}

/// What the committed sweep measures of our subject in one process, where `auto` goes by one table.
struct Promised {
    /// Its rows, with the figures of each.
    rows: Vec<(SweepRow, Vec<Figure>)>,
    /// Points at which peers stand beside it.
    with_peers: HashSet<PointKey>,
}

impl Promised {
    fn of(process: Option<u32>, tuning: &Tuning) -> Self {
        let Ok(sweep) = SweepFile::open(SWEEP) else { unreachable!("a test reads every sweep that is shipped") };
        // Any name stands for all peers.
        let (points, _) = SweepFile { process, ..sweep }.points_by(&["cub".to_owned()], tuning);
        let is_peer = |entry: &Entry| matches!(entry.subject, Subject::Peer { .. });
        let with_peers = points.iter().filter(|point| point.entries.iter().any(is_peer)).map(Point::key).collect();
        let rows = points.iter().flat_map(|point| {
            let ours = point.entries.iter().filter(|entry| entry.subject.name() == SUBJECT);
            ours.map(|entry| {
                let row = SweepRow::new(&entry.subject, point.workload, point.n);
                (SweepRow { offsets: point.offsets, ..row }, entry.figures.clone())
            })
        });
        Self { rows: rows.collect(), with_peers }
    }

    /// Whether a row is one of the target's, with what it is compared with beside it.
    fn covers(&self, target: &Target, row: &SweepRow) -> bool {
        let is_by_peers = matches!(target.yardstick, Yardstick::Cub | Yardstick::Octave);
        target.covers(row) && (!is_by_peers || self.with_peers.contains(&row.point()))
    }
}

/// Every figure of a target by all processes, those without a ratio first, then the worst first.
fn findings(target: &Target, processes: &[Process<'_>]) -> Vec<Finding> {
    let mut found: BTreeMap<Place, Vec<Finding>> = BTreeMap::new();
    for finding in processes.iter().flat_map(|process| process.findings(target)) {
        found.entry(finding.place).or_default().push(finding);
    }
    let mut findings: Vec<Finding> =
        found.into_values().filter_map(|of_processes| Finding::of_processes(target, of_processes)).collect();
    let order = |finding: &Finding| finding.ratio.unwrap_or(f64::NEG_INFINITY);
    findings.sort_by(|left, right| order(left).total_cmp(&order(right)).then(left.place.cmp(&right.place)));
    findings
}

/// Whether a row's figures are to be used.
fn is_timed(row: &SweepRow) -> bool {
    row.status == Status::Measured
}

impl Finding {
    /// What several processes say of a figure: their middle, or that of them which does not count.
    fn of_processes(target: &Target, mut findings: Vec<Self>) -> Option<Self> {
        if let Some(wrong) = findings.iter().position(|finding| finding.problem.is_some()) {
            return Some(findings.swap_remove(wrong));
        }
        let ratios: Vec<f64> = findings.iter().filter_map(|finding| finding.ratio).collect();
        let Summary { median, minimum, maximum, count, .. } = Summary::of(&ratios)?;
        let is_trusted = findings.iter().all(|finding| finding.is_trusted);
        let middle = findings.into_iter().min_by(|left, right| {
            let distance = |finding: &Self| finding.ratio.map_or(f64::INFINITY, |ratio| (ratio - median).abs());
            distance(left).total_cmp(&distance(right))
        })?;
        let between = (count > 1).then_some([minimum, maximum]);
        Some(Self { ratio: Some(median), between, passed: median >= target.threshold, is_trusted, ..middle })
    }
}

/// What a row of ours says of a target by one figure; `None` where there is nothing to compare it with and need not be.
fn finding(target: &Target, row: &SweepRow, place: Place, rows: &Rows<'_>) -> Option<Finding> {
    let mut finding = Finding::new(place, resolved(row));
    if !is_timed(row) {
        let reason = row.reason.as_deref().and_then(|reason| reason.lines().next()).unwrap_or("it was not measured");
        return Some(finding.because(reason));
    }
    let Some(ours) = row.figure(place.figure).and_then(|figure| Timed::new(SUBJECT, figure)) else {
        let why = row.figure(place.figure).and_then(|figure| figure.unavailable.as_deref());
        return Some(finding.because(why.unwrap_or("the figure was not measured")));
    };
    let reference = match target.yardstick {
        Yardstick::Cub => rows.best_peer(&place),
        Yardstick::CopyKernel => fastest(rows.copies.iter().filter_map(|copy| rows.figure(copy, &place))),
        Yardstick::Neighbour => {
            let bytes = place.element.bytes() as u64;
            // A record that lies about n finds no neighbour.
            let n = place.n.saturating_mul(bytes).checked_next_multiple_of(16).unwrap_or(0) / bytes;
            rows.figure(SUBJECT, &Place { n, offsets: Offsets::default(), ..place })
        }
        Yardstick::Octave => {
            finding.ratio = Some(rows.by_octave(&place)?);
            finding.is_trusted = ours.figure.is_trusted;
            return Some(finding);
        }
    };
    let Some(reference) = reference else {
        return Some(finding.because(format!("there is no figure of {} beside it", target.yardstick.of())));
    };
    let time =
        |of: &Timed<'_>| if target.yardstick == Yardstick::Cub { of.compared_ns(place.figure) } else { of.median_ns };
    let ratio = time(&reference) / time(&ours);
    finding.ratio = Some(ratio);
    finding.reference = Some(reference.subject.to_owned()).filter(|subject| subject != SUBJECT);
    finding.is_trusted = ours.figure.is_trusted && reference.figure.is_trusted;
    finding.bound = bound(row, place, rows)
        .map(|bound| Bound { ratio: time(&reference) / time(&bound), share: time(&bound) / time(&ours) });
    if target.yardstick == Yardstick::CopyKernel {
        let is_timed = |kernel: &&CopyKernel| {
            let mut rows = rows.at(&kernel.to_string(), &place);
            rows.any(|row| row.figure(place.figure).is_some_and(|figure| figure.median_ns.is_some()))
        };
        // The fastest could be the one that is missing.
        if let Some(missing) = COPY_KERNELS.iter().find(|kernel| !is_timed(kernel)) {
            return Some(finding.because(format!("the copy kernel {missing} was not measured")));
        }
    }
    Some(finding)
}

/// The time of the same configuration without its waiting.
fn bound<'a>(row: &SweepRow, place: Place, rows: &Rows<'a>) -> Option<Timed<'a>> {
    let name = bound_name(resolved(row)?.name());
    let same = |bound: &&SweepRow| (bound.vt, bound.block_threads) == (row.vt, row.block_threads);
    Timed::new("", rows.at(&name, &place).find(same)?.figure(place.figure)?)
}

impl Evaluation {
    /// The results of all targets.
    fn results(&self) -> impl Iterator<Item = TargetResult> {
        let of_rows = self.outcomes.iter().map(|outcome| outcome.result);
        of_rows.chain(self.host.iter().map(|outcome| outcome.result))
    }

    /// Whether a target that is for this GPU is missed.
    pub fn is_missed(&self) -> bool {
        self.count(TargetResult::Miss) > 0
    }

    /// How many targets have this result.
    pub fn count(&self, result: TargetResult) -> usize {
        self.results().filter(|&other| other == result).count()
    }
}
