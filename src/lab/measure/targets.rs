//! What this crate wants to reach, as data, and the verdict on it from a record alone.
//!
//! A [`Target`] names points (types, operators, sizes of the input, how the arrays lie), figures, and what they are
//! compared with. [`evaluate`] looks every such figure up in the record of the sweep `targets` and says how many reach
//! the target, which is the worst, and how near the misses are to their bound: the same kernel without its waiting,
//! measured in the same rounds. A target that nothing was measured for is a miss, and so is a figure that is missing
//! where it has to be.

use super::compare::{THRESHOLD, judge};
use super::record::{FigureRecord, Kind, Status, SweepRecord, SweepRow};
use super::sampling::Figure;
use super::statistics::Verdict as Samples;
use super::sweep::{Offsets, SweepFile, bound_name};
use crate::element::{ElementType, Operator};
use crate::strategy::{Mode, Strategy};
use crate::text::{format_bytes, format_size, wrapped};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fmt::Write as _;

/// The sweep that measures what the targets ask for.
pub const SWEEP: &str = "targets";
/// The subject whose figures are this crate's.
pub const SUBJECT: &str = "auto";
/// The subject whose sums of floats may differ from run to run.
const NOT_DETERMINISTIC: &str = "lookback";
/// The better of these at a point and figure is "CUB".
const CUBS: [&str; 2] = ["cub-3.0.1", "cub-3.5.0"];
const RUN_TO_RUN: &str = "cub-3.5.0-run-to-run";
const MEMCPY: &str = "memcpy";
/// A miss within this share of its bound is as near as can be asked for.
pub const NEAR_BOUND: f64 = 0.05;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Something to reach.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Where, in a few words.
    pub place: &'static str,
    /// Element types.
    pub types: &'static [ElementType],
    /// Operators; those that a type does not have are passed over.
    pub operators: &'static [Operator],
    /// Bytes of the input, from and to.
    pub bytes: (u64, u64),
    /// How input and output lie.
    pub arrays: Arrays,
    /// The figures.
    pub figures: &'static [Figure],
    /// What they are compared with.
    pub comparison: Comparison,
    /// The least time of what it is compared with, by ours, that reaches the target. Of no use to
    /// [`Comparison::NotSlower`].
    pub threshold: f64,
    /// What would be better still.
    pub stretch: Option<f64>,
    /// Short name of the GPU that the target is for, as in file names.
    pub gpu: &'static str,
    /// Whether it decides. What follows from another target is shown and decides nothing.
    pub decides: bool,
}

/// How the arrays of a target's points lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrays {
    /// Both at a 16-byte boundary, whole vectors of 16 bytes.
    Aligned,
    /// Everything else: some array off a boundary, or a last vector that is not full.
    Odd,
    /// Anyhow.
    Any,
}

/// What a figure is compared with, always at the same point and in the same rounds, but for [`Self::Neighbour`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The faster of CUB 3.0.1 and CUB 3.5.0.
    Cub,
    /// CUB 3.5.0 with `determinism::run_to_run`, and whether ours is the same from run to run.
    RunToRun,
    /// The driver's copy. In a graph it is the faster of its figures in a graph and on a stream, because large copies
    /// take longer when they are replayed, which says nothing about a scan.
    Memcpy,
    /// The same with n rounded up to 16 bytes and both arrays at a boundary.
    Neighbour,
    /// Our own look-back, whose sums of floats need not be the same from run to run.
    NotDeterministic,
    /// CUB, by the samples: a figure misses if it is slower beyond noise.
    NotSlower,
}

impl Comparison {
    /// What stands behind the threshold.
    const fn of(self) -> &'static str {
        match self {
            Self::Cub | Self::NotSlower => "CUB",
            Self::RunToRun => "run-to-run CUB",
            Self::Memcpy => "memcpy",
            Self::Neighbour => "aligned",
            Self::NotDeterministic => "look-back",
        }
    }

    /// Whether the ratio is read as a percentage.
    const fn is_percent(self) -> bool {
        matches!(self, Self::Memcpy | Self::Neighbour | Self::NotDeterministic)
    }

    /// The ratio as a reader wants it.
    pub fn show(self, ratio: f64) -> String {
        if self.is_percent() { format!("{:.1} %", 100.0 * ratio) } else { format!("{ratio:.2} x") }
    }
}

const TIMES: &[Figure] = &[Figure::Cold, Figure::Stream, Figure::Graph];
const FLOATS: &[ElementType] = &[ElementType::F32, ElementType::F64];
const WIDE: &[ElementType] =
    &[ElementType::U32, ElementType::I32, ElementType::U64, ElementType::I64, ElementType::F32, ElementType::F64];
const EVERY_OPERATOR: &[Operator] =
    &[Operator::Sum, Operator::Min, Operator::Max, Operator::And, Operator::Or, Operator::Xor];
const EVERY_SIZE: (u64, u64) = (0, u64::MAX);

/// A target of aligned sums against CUB on an H100, which the others are variations of.
const SUMS: Target = Target {
    place: "",
    types: ElementType::NUMBERS,
    operators: &[Operator::Sum],
    bytes: EVERY_SIZE,
    arrays: Arrays::Aligned,
    figures: TIMES,
    comparison: Comparison::Cub,
    threshold: 1.0,
    stretch: None,
    gpu: "h100",
    decides: true,
};

const UP_TO_64_KIB: Target = Target { place: "<= 64 KiB", bytes: (0, 64 * KIB), ..SUMS };
const UP_TO_1_MIB: Target = Target { place: "256 KiB, 1 MiB", bytes: (256 * KIB, MIB), ..SUMS };
const AT_4_MIB: Target = Target { place: "4 MiB", bytes: (4 * MIB, 4 * MIB), stretch: Some(1.5), ..SUMS };
const AT_16_MIB: Target = Target { bytes: (16 * MIB, 16 * MIB), ..SUMS };
const OF_MEMCPY: Target = Target { comparison: Comparison::Memcpy, ..SUMS };
const FROM_1_GIB: Target = Target { place: ">= 1 GiB", bytes: (GIB, u64::MAX), ..SUMS };

/// All targets, in the order of the table.
pub const TARGETS: &[Target] = &[
    Target { figures: &[Figure::Graph], threshold: 1.4, ..UP_TO_64_KIB },
    Target { figures: &[Figure::Stream], threshold: 2.0, ..UP_TO_64_KIB },
    Target { figures: &[Figure::Cold], threshold: 1.4, ..UP_TO_64_KIB },
    Target { figures: &[Figure::Graph], threshold: 1.3, ..UP_TO_1_MIB },
    Target { figures: &[Figure::Stream], threshold: 1.8, ..UP_TO_1_MIB },
    Target { figures: &[Figure::Cold], threshold: 1.3, ..UP_TO_1_MIB },
    Target { figures: &[Figure::Graph], threshold: 1.3, ..AT_4_MIB },
    Target { figures: &[Figure::Cold, Figure::Stream], threshold: 1.15, ..AT_4_MIB },
    Target { place: "16 MiB, 4 or 8 bytes", types: WIDE, threshold: 1.15, stretch: Some(1.3), ..AT_16_MIB },
    Target { place: "16 MiB, u16", types: &[ElementType::U16], threshold: 1.5, ..AT_16_MIB },
    Target { place: "16 MiB, u8", types: &[ElementType::U8], threshold: 2.5, ..AT_16_MIB },
    Target { place: "64 MiB", bytes: (64 * MIB, 64 * MIB), threshold: 0.95, ..OF_MEMCPY },
    Target { place: "256 MiB", bytes: (256 * MIB, 256 * MIB), threshold: 0.98, ..OF_MEMCPY },
    Target { comparison: Comparison::Memcpy, threshold: 0.99, ..FROM_1_GIB },
    Target { place: "  so u8", types: &[ElementType::U8], threshold: 2.8, decides: false, ..FROM_1_GIB },
    Target { place: "  so u16", types: &[ElementType::U16], threshold: 1.6, decides: false, ..FROM_1_GIB },
    Target {
        place: "  so 4 bytes",
        types: &[ElementType::U32, ElementType::I32, ElementType::F32],
        threshold: 1.2,
        decides: false,
        ..FROM_1_GIB
    },
    Target {
        place: "  so 8 bytes",
        types: &[ElementType::U64, ElementType::I64, ElementType::F64],
        threshold: 1.1,
        decides: false,
        ..FROM_1_GIB
    },
    Target {
        place: "everywhere",
        operators: EVERY_OPERATOR,
        arrays: Arrays::Any,
        comparison: Comparison::NotSlower,
        ..SUMS
    },
    Target {
        place: ">= 1 GiB, H200",
        gpu: "h200",
        comparison: Comparison::Memcpy,
        threshold: 0.96,
        stretch: Some(0.98),
        ..FROM_1_GIB
    },
    Target {
        place: "any n, any offsets",
        operators: EVERY_OPERATOR,
        arrays: Arrays::Odd,
        comparison: Comparison::Neighbour,
        threshold: 1.0 / 1.03,
        ..SUMS
    },
    Target { place: "deterministic floats", types: FLOATS, comparison: Comparison::RunToRun, threshold: 1.15, ..SUMS },
    Target {
        place: "deterministic floats",
        types: FLOATS,
        comparison: Comparison::NotDeterministic,
        threshold: 1.0 / 1.02,
        ..SUMS
    },
    Target {
        place: "min, max, bitwise",
        types: &[ElementType::I32, ElementType::F32],
        operators: &[Operator::Min, Operator::Max, Operator::And, Operator::Or, Operator::Xor],
        comparison: Comparison::Memcpy,
        threshold: 0.98,
        ..FROM_1_GIB
    },
];

impl Target {
    /// What is asked for: "graph: 1.40 x CUB".
    pub fn demand(&self) -> String {
        let figures = match self.figures {
            figures if figures == TIMES => String::new(),
            figures => format!("{}: ", figures.iter().map(|figure| figure.name()).collect::<Vec<_>>().join(", ")),
        };
        match self.comparison {
            Comparison::NotSlower => format!("{figures}not slower than CUB"),
            comparison => format!("{figures}{} {}", comparison.show(self.threshold), comparison.of()),
        }
    }

    /// Whether a row of our subject is one of the target's points. Every such row of the committed sweep has to be in a
    /// record, with all figures.
    fn covers(&self, row: &SweepRow) -> bool {
        let bytes = input_bytes(row);
        let is_aligned = row.offsets.is_aligned() && bytes.is_multiple_of(16);
        self.types.contains(&row.element)
            && self.operators.contains(&row.operator)
            && (self.bytes.0..=self.bytes.1).contains(&bytes)
            && match self.arrays {
                Arrays::Aligned => is_aligned,
                Arrays::Odd => !is_aligned,
                Arrays::Any => true,
            }
    }
}

const fn input_bytes(row: &SweepRow) -> u64 {
    row.n.saturating_mul(row.element.bytes() as u64)
}

/// The strategy that ran: that of the subject's name, or what it resolved to.
pub fn resolved(row: &SweepRow) -> Option<Strategy> {
    row.chosen_strategy.or_else(|| row.subject.parse().ok())
}

/// Whether a strategy combines the same partial sums in the same order in every run. Look-back adds up whatever
/// prefixes its neighbours have by then.
pub fn is_deterministic(strategy: Strategy) -> bool {
    strategy != Strategy::Lookback
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

    /// Bytes as 4 KiB, or the number of elements where they are no whole KiB.
    fn size(&self) -> String {
        let bytes = self.n.saturating_mul(self.element.bytes() as u64);
        format_bytes(bytes).unwrap_or_else(|| format!("n = {}", format_size(self.n)))
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
    pub samples: Option<Samples>,
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
    /// Whether there is no waiting that it could do without: one block has no other to wait for.
    pub fn waits_for_nothing(&self) -> bool {
        self.strategy == Some(Strategy::SingleBlock)
    }

    /// The place, and the strategy that ran there.
    fn title(&self) -> String {
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

/// What is said of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every figure reaches it.
    Pass,
    /// Some do not, or nothing was measured.
    Miss,
    /// It is for another GPU than the record's.
    OtherGpu,
}

impl Verdict {
    /// The word in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Miss => "MISS",
            Self::OtherGpu => "-",
        }
    }
}

/// A target and what the record says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The target.
    pub target: &'static Target,
    /// Every figure of it, those without a ratio first, then the worst first.
    pub findings: Vec<Finding>,
    /// The verdict.
    pub verdict: Verdict,
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

    /// The worst of those that have a ratio; where the samples decide, the worst of those that they find slower, if any.
    pub fn worst(&self) -> Option<&Finding> {
        let slower = self.findings.iter().find(|finding| finding.samples.is_some() && !finding.passed);
        slower.filter(|finding| finding.ratio.is_some()).or_else(|| self.findings.iter().find(|f| f.ratio.is_some()))
    }

    /// The middle of the ratios.
    pub fn median(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.findings.iter().filter_map(|finding| finding.ratio).collect();
        super::statistics::Summary::of(&ratios).map(|summary| summary.median)
    }

    /// How many figures reach the stretch of the target, if it has one.
    pub fn stretched(&self) -> Option<usize> {
        let stretch = self.target.stretch?;
        Some(self.findings.iter().filter(|finding| finding.ratio.is_some_and(|ratio| ratio >= stretch)).count())
    }

    /// How many figures the samples find so.
    pub fn samples(&self, verdict: Samples) -> usize {
        self.findings.iter().filter(|finding| finding.samples == Some(verdict)).count()
    }

    /// Sentences on what the columns do not say: the worst place, its bound, the stretch, the samples.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.findings.is_empty() {
            notes.push("nothing was measured".to_owned());
        }
        if let Some(worst) = self.worst() {
            let mark = if worst.is_trusted { "" } else { " (no noise criterion met)" };
            notes.push(format!("worst: {}{mark}", worst.title()));
            match worst.bound {
                Some(bound) if !worst.passed => notes.push(format!(
                    "without waiting: {}, we reach {:.1} % of that",
                    self.target.comparison.show(bound.ratio),
                    100.0 * bound.share
                )),
                None if !worst.passed && worst.waits_for_nothing() => {
                    notes.push("without waiting: the same, one block waits for no other".to_owned());
                }
                None if !worst.passed && worst.strategy.is_some() => {
                    notes.push("without waiting: not measured".to_owned());
                }
                _ => {}
            }
        }
        let misses = self.misses().count();
        if misses > 0 {
            let problems = self.misses().filter(|finding| finding.problem.is_some()).count();
            let near = self.misses().filter(|finding| finding.is_near_bound()).count();
            if problems > 0 {
                let why = self.misses().find_map(|finding| finding.problem.as_deref()).unwrap_or_default();
                notes.push(format!("{problems} do not count: {why}"));
            }
            if problems < misses {
                let nothing = self.misses().filter(|finding| finding.waits_for_nothing()).count();
                let percent = 100.0 * NEAR_BOUND;
                let unknown = misses - self.misses().filter(|finding| finding.bound.is_some()).count() - nothing;
                let mut note = format!("of {misses} misses {near} within {percent:.0} % of the same without waiting");
                if nothing > 0 {
                    let _ = write!(note, ", {nothing} of one block that waits for no other");
                }
                if unknown > 0 {
                    let _ = write!(note, ", {unknown} not measured without");
                }
                notes.push(note);
            }
        }
        if let (Some(stretched), Some(stretch)) = (self.stretched(), self.target.stretch) {
            let all = self.findings.len();
            let reached = if stretched == all && all > 0 { "reached" } else { "not reached" };
            notes.push(format!("stretch {}: {reached}, {stretched} of {all}", self.target.comparison.show(stretch)));
        }
        if self.target.comparison == Comparison::NotSlower && !self.findings.is_empty() {
            notes.push(format!(
                "{} faster, {} within noise, {} undecided, {} slower",
                self.samples(Samples::Faster),
                self.samples(Samples::Same),
                self.samples(Samples::Unclear),
                self.samples(Samples::Slower)
            ));
        }
        notes
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
}

type RowKey<'a> = (&'a str, ElementType, Operator, u64, Offsets, Option<Mode>);

impl<'a> Rows<'a> {
    fn new(record: &'a SweepRecord) -> Self {
        let mut rows: HashMap<_, Vec<&SweepRow>> = HashMap::new();
        for row in record.rows.iter().filter(|row| matches!(row.status, Status::Measured | Status::NotVerified)) {
            let key = (row.subject.as_str(), row.element, row.operator, row.n, row.offsets, row.mode);
            rows.entry(key).or_default().push(row);
        }
        Self { rows }
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
        ours.map(|entry| SweepRow {
            offsets: point.offsets,
            ..SweepRow::new(&entry.subject, point.instance.element(), point.instance.operator(), point.n)
        })
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
    let ours = |row: &&SweepRow| row.subject == SUBJECT && row.kind == Kind::Strategy && target.covers(row);
    for row in record.rows.iter().filter(ours) {
        for &figure in target.figures {
            let Some(place) = Place::of(row, figure) else { continue };
            findings.extend(finding(target, row, place, rows));
        }
    }
    let found: HashSet<Place> = findings.iter().map(|finding| finding.place).collect();
    let is_compared = |row: &&SweepRow| target.comparison != Comparison::NotSlower || row.operator == Operator::Sum;
    for row in promised.iter().filter(|row| target.covers(row)).filter(is_compared) {
        let places = target.figures.iter().filter_map(|&figure| Place::of(row, figure));
        findings.extend(places.filter(|place| !found.contains(place)).map(|place| Finding {
            place,
            ratio: None,
            passed: false,
            samples: None,
            problem: Some("it was not measured".to_owned()),
            strategy: None,
            bound: None,
            is_trusted: false,
        }));
    }
    let order = |finding: &Finding| finding.ratio.unwrap_or(f64::NEG_INFINITY);
    findings.sort_by(|left, right| order(left).total_cmp(&order(right)).then(left.place.cmp(&right.place)));
    let verdict = match findings.iter().all(|finding| finding.passed) && !findings.is_empty() {
        _ if target.gpu != gpu => Verdict::OtherGpu,
        true => Verdict::Pass,
        false => Verdict::Miss,
    };
    Outcome { target, findings, verdict }
}

/// What a row of ours says of a target by one figure; `None` where there is nothing to compare it with and need not be.
fn finding(target: &Target, row: &SweepRow, place: Place, rows: &Rows<'_>) -> Option<Finding> {
    let mut finding = Finding {
        place,
        ratio: None,
        passed: false,
        samples: None,
        problem: None,
        strategy: resolved(row),
        bound: None,
        is_trusted: false,
    };
    let cub = |place: &Place| fastest(CUBS.iter().filter_map(|name| rows.figure(name, place)));
    if target.comparison == Comparison::NotSlower && place.operator != Operator::Sum && cub(&place).is_none() {
        // The peers have sums of every type, and of the others what shows that the operator matters little.
        return None;
    }
    if row.status != Status::Measured {
        let reason = row.reason.as_deref().and_then(|reason| reason.lines().next()).unwrap_or("it was not measured");
        finding.problem = Some(reason.to_owned());
        return Some(finding);
    }
    let Some((ours, ours_ns)) = row.figure(place.figure).and_then(|figure| Some((figure, median(figure)?))) else {
        finding.problem = Some("the figure was not measured".to_owned());
        return Some(finding);
    };
    let reference = match target.comparison {
        Comparison::Cub | Comparison::NotSlower => cub(&place),
        Comparison::RunToRun => rows.figure(RUN_TO_RUN, &place),
        Comparison::Memcpy => {
            let on_stream = (place.figure == Figure::Graph).then_some(Place { figure: Figure::Stream, ..place });
            fastest([Some(place), on_stream].iter().flatten().filter_map(|place| rows.figure(MEMCPY, place)))
        }
        Comparison::Neighbour => {
            let bytes = place.element.bytes() as u64;
            // A record that lies about n finds no neighbour.
            let n = place.n.saturating_mul(bytes).checked_next_multiple_of(16).unwrap_or(0) / bytes;
            rows.figure(SUBJECT, &Place { n, offsets: Offsets::default(), ..place })
        }
        Comparison::NotDeterministic => rows.figure(NOT_DETERMINISTIC, &place),
    };
    let Some((reference, reference_ns)) = reference.and_then(|figure| Some((figure, median(figure)?))) else {
        finding.problem = Some(format!("there is no figure of {} beside it", target.comparison.of()));
        return Some(finding);
    };
    let ratio = reference_ns / ours_ns;
    finding.ratio = Some(ratio);
    finding.is_trusted = ours.is_trusted && reference.is_trusted;
    finding.bound =
        bound(row, place, rows).map(|bound_ns| Bound { ratio: reference_ns / bound_ns, share: bound_ns / ours_ns });
    finding.passed = ratio >= target.threshold;
    if target.comparison == Comparison::NotSlower {
        if [reference, ours].iter().any(|figure| figure.samples_ns.is_empty()) {
            finding.problem = Some("a time without its samples cannot be told from another".to_owned());
            finding.passed = false;
            return Some(finding);
        }
        let samples = judge(reference, ours, THRESHOLD);
        finding.samples = Some(samples);
        finding.passed = samples != Samples::Slower;
    }
    if matches!(target.comparison, Comparison::RunToRun | Comparison::NotDeterministic)
        && !resolved(row).is_some_and(is_deterministic)
    {
        finding.passed = false;
        finding.problem = Some("its sums of floats are not the same from run to run".to_owned());
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

/// Misses that the short list shows.
const SHOWN_MISSES: usize = 20;

impl Evaluation {
    /// Whether a target that is for this GPU is missed.
    pub fn is_missed(&self) -> bool {
        self.deciding().any(|outcome| outcome.verdict == Verdict::Miss)
    }

    fn deciding(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.target.decides && outcome.verdict != Verdict::OtherGpu)
    }

    /// The table in 80 columns, and below it the figures that miss: all of them, or the worst.
    pub fn text(&self, all: bool) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{:<20} {:<24} {:>7} {:>7} {:>9}  verdict",
            "target", "at least", "worst", "median", "reached"
        );
        for outcome in &self.outcomes {
            let target = outcome.target;
            let show = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| target.comparison.show(ratio));
            let reached = format!("{}/{}", outcome.passed(), outcome.findings.len());
            let _ = writeln!(
                text,
                "{:<20} {:<24} {:>7} {:>7} {reached:>9}  {}",
                target.place,
                target.demand(),
                show(outcome.worst().and_then(|worst| worst.ratio)),
                show(outcome.median()),
                word(outcome)
            );
            for note in outcome.notes() {
                for line in wrapped(&note, 76) {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
        let _ = writeln!(text, "\n{}", self.summary());
        self.list_misses(&mut text, all);
        text
    }

    /// How many targets came out how.
    pub fn summary(&self) -> String {
        let count = |verdict: Verdict| self.deciding().filter(|outcome| outcome.verdict == verdict).count();
        let (passed, missed) = (count(Verdict::Pass), count(Verdict::Miss));
        if passed + missed == 0 {
            return format!("No target is for the {}: the figures are for information.", self.gpu);
        }
        format!("{} of {} targets reached on the {}.", passed, passed + missed, self.gpu)
    }

    fn list_misses(&self, text: &mut String, all: bool) {
        let misses: Vec<(&Outcome, &Finding)> =
            self.deciding().flat_map(|outcome| outcome.misses().map(move |finding| (outcome, finding))).collect();
        if misses.is_empty() {
            return;
        }
        let _ = writeln!(text, "\nMisses, of each target the worst first:");
        let mut shown: Vec<(&Outcome, &Finding)> = misses.clone();
        if !all && misses.len() > SHOWN_MISSES {
            // Of every target some, so that one with many does not hide the others.
            let targets = self.deciding().filter(|outcome| outcome.verdict == Verdict::Miss).count().max(1);
            let each = (SHOWN_MISSES / targets).max(1);
            shown = self
                .deciding()
                .flat_map(|outcome| outcome.misses().take(each).map(move |finding| (outcome, finding)))
                .collect();
        }
        for (outcome, finding) in &shown {
            let comparison = outcome.target.comparison;
            let found = match (&finding.problem, finding.ratio) {
                (Some(problem), _) => problem.clone(),
                (None, Some(ratio)) => format!("{} of {}", comparison.show(ratio), comparison.show_demand(outcome)),
                (None, None) => "-".to_owned(),
            };
            let bound = finding.bound.map_or(String::new(), |bound| {
                format!(", without waiting {} ({:.0} %)", comparison.show(bound.ratio), 100.0 * bound.share)
            });
            for line in wrapped(&finding.title(), 78) {
                let _ = writeln!(text, "  {line}");
            }
            for line in wrapped(&format!("{}: {found}{bound}", outcome.target.place.trim()), 74) {
                let _ = writeln!(text, "      {line}");
            }
        }
        if shown.len() < misses.len() {
            let _ = writeln!(text, "  and {} more; --verbose lists them", misses.len() - shown.len());
        }
    }
}

impl Comparison {
    /// What a ratio had to reach.
    fn show_demand(self, outcome: &Outcome) -> String {
        if self == Self::NotSlower { "1.00 x".to_owned() } else { self.show(outcome.target.threshold) }
    }
}

/// The verdict in a table; what decides nothing is in small letters.
pub fn word(outcome: &Outcome) -> String {
    match (outcome.verdict, outcome.target.decides) {
        (Verdict::OtherGpu, _) => format!("({})", outcome.target.gpu),
        (Verdict::Miss, false) => "no".to_owned(),
        (Verdict::Pass, false) => "yes".to_owned(),
        (verdict, true) => verdict.name().to_owned(),
    }
}
