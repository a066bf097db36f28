//! What a record says of every target, figure by figure.

use super::super::compare::{THRESHOLD, judge};
use super::super::point::{Kind, Offsets, bound_name};
use super::super::record::{FigureRecord, Status, SweepRecord, SweepRow};
use super::super::sampling::Figure;
use super::super::sweep::SweepFile;
use super::{SUBJECT, SWEEP, TARGETS, Target, Yardstick};
use crate::element::{ElementType, Operator};
use crate::lab::statistics::{Difference, Summary};
use crate::names::named;
use crate::strategy::{Blocks, Mode, Strategy};
use crate::text::format_array_size;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

const RUN_TO_RUN: &str = "cub-3.5.0-run-to-run";
const MEMCPY: &str = "memcpy";
/// A miss within this share of its bound is as near as can be asked for.
pub const NEAR_BOUND: f64 = 0.05;

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
    /// Time of what it is compared with, by ours; `None` where one of them is missing.
    pub ratio: Option<f64>,
    /// Whether it reaches the target.
    pub passed: bool,
    /// What the samples say against CUB, where that decides.
    pub samples: Option<Difference>,
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
        let (ratio, samples, problem, bound) = (None, None, None, None);
        Self { place, ratio, passed: false, samples, problem, strategy, bound, is_trusted: false }
    }

    /// The figure does not count.
    fn because(self, problem: impl Into<String>) -> Self {
        Self { passed: false, problem: Some(problem.into()), ..self }
    }

    /// Whether there is no waiting that it could do without: one block has no other to wait for.
    pub fn waits_for_nothing(&self) -> bool {
        self.strategy.is_some_and(|strategy| strategy.row().shape.blocks == Blocks::Single)
    }

    /// The place, and the strategy that ran there.
    pub(super) fn title(&self) -> String {
        match self.strategy {
            Some(strategy) => format!("{} ({strategy})", self.place),
            None => self.place.to_string(),
        }
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
    /// Whether the target decides, and with this result.
    pub fn decides(&self, result: TargetResult) -> bool {
        self.target.decides && self.result == result
    }

    /// How many figures reach the target.
    pub fn passed(&self) -> usize {
        self.findings.iter().filter(|finding| finding.passed).count()
    }

    /// The figures that do not, the worst first.
    pub fn misses(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| !finding.passed)
    }

    /// The worst of those that have a ratio; where the samples decide, the worst of those that they find slower, if any.
    pub fn worst(&self) -> Option<&Finding> {
        let slower = self.findings.iter().find(|finding| finding.samples.is_some() && !finding.passed);
        slower.filter(|finding| finding.ratio.is_some()).or_else(|| self.findings.iter().find(|f| f.ratio.is_some()))
    }

    /// The middle of the ratios.
    pub fn median(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.findings.iter().filter_map(|finding| finding.ratio).collect();
        Summary::of(&ratios).map(|summary| summary.median)
    }

    /// How many figures reach the stretch of the target, if it has one.
    pub fn stretched(&self) -> Option<usize> {
        let stretch = self.target.stretch?;
        Some(self.findings.iter().filter(|finding| finding.ratio.is_some_and(|ratio| ratio >= stretch)).count())
    }

    /// How many figures the samples find so.
    pub fn samples(&self, difference: Difference) -> usize {
        self.findings.iter().filter(|finding| finding.samples == Some(difference)).count()
    }
}

/// All targets on one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The GPU's name.
    pub gpu: String,
    /// One a target, in order.
    pub outcomes: Vec<Outcome>,
}

/// The measured rows of a record by what tells them apart.
struct Rows<'a> {
    rows: HashMap<RowKey<'a>, Vec<&'a SweepRow>>,
    /// Names of other people's scans.
    peers: BTreeSet<&'a str>,
}

type RowKey<'a> = (&'a str, ElementType, Operator, u64, Offsets, Option<Mode>);

impl<'a> Rows<'a> {
    fn new(record: &'a SweepRecord) -> Self {
        let mut rows: HashMap<_, Vec<&SweepRow>> = HashMap::new();
        let peers = record.rows.iter().filter(|row| row.kind == Kind::Peer).map(|row| row.subject.as_str()).collect();
        let is_used = |row: &&SweepRow| matches!(row.status, Status::Measured | Status::NotVerified);
        // Targets are of flat scans.
        for row in record.rows.iter().filter(is_used).filter(|row| row.point().is_plain()) {
            let key = (row.subject.as_str(), row.element, row.operator, row.n, row.offsets, row.mode);
            rows.entry(key).or_default().push(row);
        }
        Self { rows, peers }
    }

    /// The rows of a subject at a place, in all their configurations.
    fn at(&self, subject: &str, place: &Place) -> impl Iterator<Item = &'a SweepRow> + use<'a> {
        let mode = (subject != MEMCPY).then_some(place.mode);
        let key = (subject, place.element, place.operator, place.n, place.offsets, mode);
        self.rows.get(&key).cloned().unwrap_or_default().into_iter()
    }

    /// The figure of a subject at a place, of several configurations the fastest.
    fn figure(&self, subject: &str, place: &Place) -> Option<&'a FigureRecord> {
        let figures = self.at(subject, place).filter_map(|row| row.figure(place.figure));
        fastest(figures)
    }

    /// The fastest of other people's scans at a place, of any version, width of the count and way of adding up.
    fn best_peer(&self, place: &Place) -> Option<&'a FigureRecord> {
        fastest(self.peers.iter().filter_map(|peer| self.figure(peer, place)))
    }
}

fn median(figure: &FigureRecord) -> Option<f64> {
    figure.median_ns.filter(|&median| median > 0.0)
}

fn fastest<'a>(figures: impl Iterator<Item = &'a FigureRecord>) -> Option<&'a FigureRecord> {
    let timed = figures.filter_map(|figure| Some((median(figure)?, figure)));
    timed.min_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, figure)| figure)
}

/// Says of every target whether a record reaches it.
pub fn evaluate(record: &SweepRecord) -> Evaluation {
    let slug = record.header.machine.gpu_slug();
    let rows = Rows::new(record);
    let promised = promised();
    let outcomes = TARGETS.iter().map(|target| outcome(target, record, &rows, &promised, &slug)).collect();
    Evaluation { gpu: record.header.machine.gpu.clone(), outcomes }
}

/// The rows of our subject that the committed sweep measures.
fn promised() -> Vec<SweepRow> {
    let Ok(sweep) = SweepFile::open(SWEEP) else { unreachable!("a test reads every sweep that is shipped") };
    let (points, _) = sweep.points(&[]);
    let rows = points.iter().flat_map(|point| {
        let ours = point.entries.iter().filter(|entry| entry.subject.name() == SUBJECT);
        ours.map(|entry| SweepRow { offsets: point.offsets, ..SweepRow::new(&entry.subject, point.workload, point.n) })
    });
    rows.collect()
}

fn outcome(
    target: &'static Target,
    record: &SweepRecord,
    rows: &Rows<'_>,
    promised: &[SweepRow],
    gpu: &str,
) -> Outcome {
    let mut findings: Vec<Finding> = Vec::new();
    let ours = |row: &&SweepRow| {
        row.subject == SUBJECT && row.kind == Kind::Strategy && row.point().is_plain() && target.covers(row)
    };
    for row in record.rows.iter().filter(ours) {
        for &figure in target.figures {
            let Some(place) = Place::of(row, figure) else { continue };
            findings.extend(finding(target, row, place, rows));
        }
    }
    let found: HashSet<Place> = findings.iter().map(|finding| finding.place).collect();
    let is_compared = |row: &&SweepRow| target.yardstick != Yardstick::NotSlower || row.operator == Operator::Sum;
    for row in promised.iter().filter(|row| target.covers(row)).filter(is_compared) {
        let places = target.figures.iter().filter_map(|&figure| Place::of(row, figure));
        let missing = places.filter(|place| !found.contains(place)).map(|place| Finding::new(place, None));
        findings.extend(missing.map(|finding| finding.because("it was not measured")));
    }
    let order = |finding: &Finding| finding.ratio.unwrap_or(f64::NEG_INFINITY);
    findings.sort_by(|left, right| order(left).total_cmp(&order(right)).then(left.place.cmp(&right.place)));
    let result = match findings.iter().all(|finding| finding.passed) && !findings.is_empty() {
        _ if target.gpu != gpu => TargetResult::OtherGpu,
        true => TargetResult::Pass,
        false => TargetResult::Miss,
    };
    Outcome { target, findings, result }
}

/// What a row of ours says of a target by one figure; `None` where there is nothing to compare it with and need not be.
fn finding(target: &Target, row: &SweepRow, place: Place, rows: &Rows<'_>) -> Option<Finding> {
    let mut finding = Finding::new(place, resolved(row));
    if target.yardstick == Yardstick::NotSlower && place.operator != Operator::Sum && rows.best_peer(&place).is_none() {
        // The peers have sums of every type, and of the others what shows that the operator matters little.
        return None;
    }
    if row.status != Status::Measured {
        let reason = row.reason.as_deref().and_then(|reason| reason.lines().next()).unwrap_or("it was not measured");
        return Some(finding.because(reason));
    }
    let Some((ours, ours_ns)) = row.figure(place.figure).and_then(|figure| Some((figure, median(figure)?))) else {
        return Some(finding.because("the figure was not measured"));
    };
    let reference = match target.yardstick {
        Yardstick::Cub | Yardstick::NotSlower => rows.best_peer(&place),
        Yardstick::RunToRun => rows.figure(RUN_TO_RUN, &place),
        Yardstick::Memcpy => {
            let on_stream = (place.figure == Figure::Graph).then_some(Place { figure: Figure::Stream, ..place });
            fastest([Some(place), on_stream].iter().flatten().filter_map(|place| rows.figure(MEMCPY, place)))
        }
        Yardstick::Neighbour => {
            let bytes = place.element.bytes() as u64;
            // A record that lies about n finds no neighbour.
            let n = place.n.saturating_mul(bytes).checked_next_multiple_of(16).unwrap_or(0) / bytes;
            rows.figure(SUBJECT, &Place { n, offsets: Offsets::default(), ..place })
        }
        Yardstick::NotDeterministic => {
            let strategies = Strategy::ALL.iter().filter(|strategy| !strategy.row().has_fixed_order);
            fastest(strategies.filter_map(|strategy| rows.figure(strategy.name(), &place)))
        }
    };
    let Some((reference, reference_ns)) = reference.and_then(|figure| Some((figure, median(figure)?))) else {
        return Some(finding.because(format!("there is no figure of {} beside it", target.yardstick.of())));
    };
    let ratio = reference_ns / ours_ns;
    finding.ratio = Some(ratio);
    finding.is_trusted = ours.is_trusted && reference.is_trusted;
    finding.bound =
        bound(row, place, rows).map(|bound_ns| Bound { ratio: reference_ns / bound_ns, share: bound_ns / ours_ns });
    finding.passed = ratio >= target.threshold;
    if target.yardstick == Yardstick::NotSlower {
        if [reference, ours].iter().any(|figure| figure.samples_ns.is_empty()) {
            return Some(finding.because("a time without its samples cannot be told from another"));
        }
        let samples = judge(reference, ours, THRESHOLD);
        finding.samples = Some(samples);
        finding.passed = samples != Difference::Slower;
    }
    if matches!(target.yardstick, Yardstick::RunToRun | Yardstick::NotDeterministic)
        && !resolved(row).is_some_and(|strategy| strategy.row().has_fixed_order)
    {
        return Some(finding.because("its sums of floats are not the same from run to run"));
    }
    Some(finding)
}

/// The time of the same configuration without its waiting.
fn bound(row: &SweepRow, place: Place, rows: &Rows<'_>) -> Option<f64> {
    let name = bound_name(resolved(row)?.name());
    let same = |bound: &&SweepRow| (bound.vt, bound.block_threads) == (row.vt, row.block_threads);
    let figure = rows.at(&name, &place).find(same)?.figure(place.figure)?;
    median(figure)
}

impl Evaluation {
    /// Whether a target that is for this GPU is missed.
    pub fn is_missed(&self) -> bool {
        self.deciding().any(|outcome| outcome.result == TargetResult::Miss)
    }

    pub(super) fn deciding(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.target.decides && outcome.result != TargetResult::OtherGpu)
    }
}
