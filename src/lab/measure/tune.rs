//! From candidates to a tuning table: which points are measured, how, and what follows from their record.
//!
//! The candidates (`tuning/candidates.toml`) are a sweep like any other: types, sizes, strategies, VTs, blocks. Only
//! the measuring has two passes at each point. The first takes a few samples of every candidate, in common rounds; the
//! second samples the best few by the sweep's full stopping rule. Every candidate is verified in both. The rows say in
//! which pass their figures were made ([`Pass`]).
//!
//! [`derive()`] makes the table from the record alone, so that the same record gives the same bytes on any machine:
//!
//! - a candidate's *cost* at a size is the geometric mean of its six medians (graph, stream and cold, inclusive and
//!   exclusive), those of a figure by the best there; those of the full pass count, and none that spills registers if
//!   one does not, nor look-ahead with tiles of more than 32 KiB if there is another,
//! - candidates *within noise* of the least cost are as good as it: within 1 %, or three standard errors up to 3 %,
//! - from the smallest size on, a range goes as far as one candidate is within noise of the best at every size in it; of
//!   several such candidates it takes the one of least cost over the range,
//! - ranges meet at the geometric mean of the two sizes beside the boundary,
//! - where the record was not finished, or a size of a type is missing in it, the last range of the type ends with the
//!   largest size that was measured. Larger arrays, and types of which nothing was measured, take the strategies of the
//!   committed table for the GPU in the configurations that are suggested for the size; the table's `note` says so.

use super::record::{Kind, Pass, Status, SweepRecord, SweepRecorder, SweepRow};
use super::run::{
    FIRST_WARM_UP, Laboratory, MeasuredPoint, Progress, SweepError, SweepSummary, keep_point, measure_point, summarize,
};
use super::sampling::{Clocks, Figure};
use super::sweep::{Entry, Group, Limits, Offsets, Point, Subject, SweepFile};
use crate::element::{ElementType, Instance, Operator};
use crate::strategy::tuning::{Evidence, RunnerUp, Times, Tuning, TuningError, TuningHeader, TuningRow, TuningTable};
use crate::strategy::{Composition, Mode, ScanConfig, Strategy, StrategyChoice};
use crate::text::{format_size, parse_array_size};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Name of the sweep, and first part of its record's.
pub const NAME: &str = "tune";
/// Types that are tuned; the others take the rows of the one of their size.
pub const TYPES: [ElementType; 6] =
    [ElementType::U8, ElementType::U16, ElementType::I32, ElementType::F32, ElementType::I64, ElementType::F64];
/// What a table rests on.
const FIGURES: [Figure; 3] = [Figure::Graph, Figure::Stream, Figure::Cold];
/// A table's rows are for both.
const MODES: [Mode; 2] = [Mode::Inclusive, Mode::Exclusive];
/// Candidates of a point that come into the full pass.
const FINALISTS: usize = 6;
/// The same where time is short.
const QUICK_FINALISTS: usize = 3;
/// Shares of the budget for the samples of the two passes; compiling, preparing and verifying take the rest.
const BUDGET_SHARES: [f64; 2] = [0.35, 0.35];

/// `tuning/candidates.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Candidates {
    sizes: Vec<String>,
    quick_sizes: Vec<String>,
    #[serde(rename = "candidate")]
    candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Candidate {
    element_bytes: Vec<usize>,
    /// Bytes of input.
    from: Option<String>,
    /// The same.
    up_to: Option<String>,
    strategies: Vec<Strategy>,
    #[serde(default)]
    vts: Vec<u32>,
    #[serde(default)]
    blocks: Vec<u32>,
}

const CANDIDATES: &str = include_str!("../../../tuning/candidates.toml");

/// What is measured for a table, and how long.
#[derive(Debug, Clone, PartialEq)]
pub struct TunePlan {
    /// The candidates at all their sizes, with the limits of the full pass.
    pub sweep: SweepFile,
    /// Limits of the pass over all candidates.
    pub coarse: Limits,
    /// Candidates of a point that come into the full pass.
    pub finalists: usize,
    /// After this no further point is begun.
    pub budget: Duration,
}

/// Why there is no table, or nothing to measure for one.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The embedded candidates, or the types asked for, make no sweep.
    #[error("nothing can be tuned: {0}")]
    Plan(String),
    /// A record of another sweep, whose candidates were not chosen for a table.
    #[error(
        "it is a record of the sweep '{found}', not of '{NAME}': what it measured are no candidates for a table; \
         measure them with `lookback tune --output FILE`"
    )]
    OtherSweep {
        /// The sweep.
        found: String,
    },
    /// The record has nothing that a row could rest on.
    #[error(
        "the record has no point at which a scan's graph, stream and cold time were all measured; \
         measure with `lookback tune --output FILE`, or go on with --resume"
    )]
    NothingMeasured,
    /// What was chosen is no table.
    #[error(transparent)]
    Table(#[from] TuningError),
}

impl TunePlan {
    /// The committed candidates for sums of `types`, in a budget of `seconds`; `quick` for fewer sizes.
    ///
    /// # Errors
    /// When a type is no number, or there is none.
    pub fn new(types: &[ElementType], seconds: f64, quick: bool) -> Result<Self, TuneError> {
        let broken = |reason: String| TuneError::Plan(reason);
        if let Some(other) = types.iter().find(|element| !ElementType::NUMBERS.contains(element)) {
            return Err(broken(format!("{other} is no number; choose among u8, u16, u32, i32, u64, i64, f32, f64")));
        }
        let candidates: Candidates = toml::from_str(CANDIDATES).map_err(|error| broken(error.to_string()))?;
        let bytes = |text: &String| parse_array_size(text, 1).ok_or_else(|| broken(format!("'{text}' is no size")));
        let sizes = if quick { &candidates.quick_sizes } else { &candidates.sizes };
        let sizes = sizes.iter().map(bytes).collect::<Result<Vec<u64>, _>>()?;
        let mut groups = Vec::new();
        for &element in types {
            for candidate in candidates.candidates.iter().filter(|of| of.element_bytes.contains(&element.bytes())) {
                let from = candidate.from.as_ref().map(bytes).transpose()?.unwrap_or(0);
                let up_to = candidate.up_to.as_ref().map(bytes).transpose()?.unwrap_or(u64::MAX);
                let within = sizes.iter().filter(|bytes| (from..=up_to).contains(bytes));
                let sizes: Vec<String> = within.map(|bytes| (bytes / element.bytes() as u64).to_string()).collect();
                if sizes.is_empty() {
                    continue;
                }
                groups.push(Group {
                    types: vec![element],
                    operators: vec![Operator::Sum],
                    modes: MODES.to_vec(),
                    sizes,
                    offsets: vec![Offsets::default()],
                    strategies: candidate.strategies.iter().copied().map(StrategyChoice::Named).collect(),
                    vts: candidate.vts.clone(),
                    blocks: candidate.blocks.clone(),
                    peers: Vec::new(),
                    figures: FIGURES.to_vec(),
                    bounds: false,
                });
            }
        }
        let mut sweep = SweepFile {
            name: NAME.to_owned(),
            purpose: "Which strategy and configuration is fastest for each type and size on this GPU.".to_owned(),
            seed: 42,
            limits: Limits { latency_up_to: "0".to_owned(), ..Limits::default() },
            groups,
            tuning: None,
        };
        let finalists = if quick { QUICK_FINALISTS } else { FINALISTS };
        let (points, _) = sweep.points(&[]);
        if points.is_empty() {
            return Err(broken("no type is left".to_owned()));
        }
        let figures = FIGURES.len() as f64;
        let copies = 2;
        let of_coarse = points.iter().map(|point| point.entries.len()).sum::<usize>() as f64 * figures;
        let of_full = (points.len() * (finalists * MODES.len() + copies)) as f64 * figures;
        // Rounded, so that a record shows the number that was meant.
        let share = |share: f64, of: f64, most: f64| (1e4 * (share * seconds / of).clamp(1e-3, most)).round() / 1e4;
        sweep.limits = Limits { seconds_per_figure: share(BUDGET_SHARES[1], of_full, 0.5), ..sweep.limits };
        let coarse = Limits {
            seconds_per_figure: share(BUDGET_SHARES[0], of_coarse, 0.1),
            minimum_samples: 5,
            maximum_samples: 8,
            relative_standard_error: 0.02,
            sample_microseconds: 150.0,
            warm_up_milliseconds: 1.0,
            ..sweep.limits.clone()
        };
        Ok(Self { sweep, coarse, finalists, budget: Duration::from_secs_f64(seconds) })
    }

    /// The points in the order in which they are measured: every second size of all types first, so that what a
    /// short budget leaves out lies between measured sizes.
    pub fn points(&self) -> Vec<Point> {
        let (points, _) = self.sweep.points(&[]);
        let bytes: BTreeSet<u64> = points.iter().map(Point::input_bytes).collect();
        let is_second = |point: &Point| bytes.range(..point.input_bytes()).count() % 2;
        let mut points: Vec<(usize, Point)> = points.into_iter().map(|point| (is_second(&point), point)).collect();
        points.sort_by_key(|(second, _)| *second);
        points.into_iter().map(|(_, point)| point).collect()
    }
}

/// What came of the part that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneSummary {
    /// As of a sweep.
    pub sweep: SweepSummary,
    /// Points that the budget left no time for.
    pub points_left: usize,
}

/// Measures the points that the record does not have yet, until the budget is spent.
///
/// # Errors
/// When the device failed or the record cannot be written.
pub fn run_tuning(
    laboratory: &mut dyn Laboratory,
    plan: &TunePlan,
    recorder: &mut SweepRecorder,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<TuneSummary, SweepError> {
    let start = Instant::now();
    let mut points = plan.points();
    points.retain(|point| !recorder.has_point(point));
    let mut clocks = Clocks::default();
    if !points.is_empty() {
        progress(Progress::Compiling(points.len()));
        laboratory.compile_ahead(&points);
        laboratory.warm_up(FIRST_WARM_UP)?;
    }
    let mut points_left = points.len();
    for point in &points {
        if start.elapsed() >= plan.budget {
            break;
        }
        progress(Progress::Point(point));
        let point_start = Instant::now();
        let measured = measure_candidates(laboratory, point, plan, &mut clocks)?;
        keep_point(recorder, point, plan.sweep.seed, measured, point_start, progress)?;
        points_left -= 1;
    }
    laboratory.close();
    Ok(TuneSummary { sweep: summarize(recorder, &clocks, start), points_left })
}

/// Both passes at a point.
fn measure_candidates(
    laboratory: &mut dyn Laboratory,
    point: &Point,
    plan: &TunePlan,
    clocks: &mut Clocks,
) -> Result<MeasuredPoint, SweepError> {
    let seed = plan.sweep.seed;
    let mut coarse = measure_point(laboratory, point, seed, &plan.coarse, clocks)?;
    mark(&mut coarse.rows, Pass::Coarse);
    let mut rivals = rivals(coarse.rows.iter(), &MODES);
    rivals.sort_by(Rival::by_cost);
    rivals.truncate(plan.finalists);
    if rivals.is_empty() {
        return Ok(coarse);
    }
    let is_finalist = |entry: &&Entry| match &entry.subject {
        Subject::Scan { strategy, config, .. } => rivals.iter().any(|rival| {
            (rival.key.strategy, rival.key.vt, rival.key.block_threads) == (*strategy, config.vt, config.block_threads)
        }),
        _ => true,
    };
    let entries = point.entries.iter().filter(is_finalist).cloned().collect();
    let finalists = Point { entries, ..point.clone() };
    let mut full = measure_point(laboratory, &finalists, seed, &plan.sweep.limits, clocks)?;
    mark(&mut full.rows, Pass::Full);
    let is_again = |row: &SweepRow| full.rows.iter().any(|other| other.key() == row.key());
    let mut rows: Vec<SweepRow> = coarse.rows.into_iter().filter(|row| !is_again(row)).collect();
    rows.extend(full.rows);
    let mut skipped = coarse.skipped;
    skipped.extend(full.skipped);
    Ok(MeasuredPoint { rows, empty_frame: full.empty_frame, skipped })
}

fn mark(rows: &mut [SweepRow], pass: Pass) {
    for row in rows {
        row.pass = Some(pass);
    }
}

/// What tells candidates apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    strategy: Strategy,
    vt: u32,
    block_threads: u32,
    /// Where it is not what is suggested.
    composition: Option<Composition>,
}

/// A candidate at a size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rival {
    key: Key,
    /// Geometric means over the modes, in nanoseconds, in the order of [`FIGURES`].
    medians: [f64; FIGURES.len()],
    /// Logarithm of the geometric mean of the medians by the best ones.
    cost: f64,
    /// Standard error of the cost.
    error: f64,
}

impl Rival {
    fn by_cost(&self, other: &Self) -> std::cmp::Ordering {
        self.cost.total_cmp(&other.cost).then(self.key.cmp(&other.key))
    }

    fn times(&self) -> Times {
        // What is written is what is kept: three digits after the point are nanoseconds.
        let [graph_us, stream_us, cold_us] = self.medians.map(|nanoseconds| nanoseconds.round() / 1e3);
        Times { graph_us, stream_us, cold_us }
    }
}

/// The candidates of one point that a table may name, with their costs.
fn rivals<'a>(rows: impl Iterator<Item = &'a SweepRow>, modes: &[Mode]) -> Vec<Rival> {
    let is_usable = |row: &&SweepRow| {
        let is_named = row.kind == Kind::Strategy && row.chosen_strategy.is_none();
        is_named && row.status == Status::Measured && row.mode.is_some_and(|mode| modes.contains(&mode))
    };
    let rows: Vec<&SweepRow> = rows.filter(is_usable).collect();
    // Coarse and full figures come from different rounds, so only one of the two kinds is compared.
    let has_full = rows.iter().any(|row| row.pass == Some(Pass::Full));
    let mut candidates: BTreeMap<Key, Vec<&SweepRow>> = BTreeMap::new();
    for row in rows.into_iter().filter(|row| !has_full || row.pass == Some(Pass::Full)) {
        if let Some(key) = key(row) {
            candidates.entry(key).or_default().push(row);
        }
    }
    // A candidate that failed in one mode is none. With each, why it is left out if there are others: spills come first.
    let found: Vec<(Rival, u32)> = candidates
        .into_iter()
        .filter_map(|(key, rows)| {
            let of_mode = |mode| rows.iter().find(|row| row.mode == Some(mode)).copied();
            let rows = modes.iter().map(|&mode| of_mode(mode)).collect::<Option<Vec<_>>>()?;
            let spills = rows.iter().any(|row| row.spill_bytes.is_some_and(|bytes| bytes > 0));
            let has_large_tiles = rows.iter().any(|row| has_large_tiles(row));
            Some((rival(key, &rows)?, 2 * u32::from(spills) + u32::from(has_large_tiles)))
        })
        .collect();
    let least = found.iter().map(|(_, faults)| *faults).min().unwrap_or(0);
    let mut rivals: Vec<Rival> =
        found.into_iter().filter(|(_, faults)| *faults == least).map(|(rival, _)| rival).collect();
    let best: [f64; FIGURES.len()] =
        std::array::from_fn(|figure| rivals.iter().map(|rival| rival.medians[figure]).fold(f64::INFINITY, f64::min));
    for rival in &mut rivals {
        let logarithms = rival.medians.iter().zip(best).map(|(median, best)| (median / best).ln());
        rival.cost = logarithms.sum::<f64>() / FIGURES.len() as f64;
    }
    rivals
}

fn key(row: &SweepRow) -> Option<Key> {
    let strategy: Strategy = row.subject.parse().ok()?;
    let suggested = ScanConfig::suggested(strategy, row.element.bytes(), row.n).composition;
    Some(Key {
        strategy,
        vt: row.vt?,
        block_threads: row.block_threads?,
        composition: row.composition.filter(|&composition| composition != suggested),
    })
}

/// Of the rows of a candidate, one for each mode.
fn rival(key: Key, rows: &[&SweepRow]) -> Option<Rival> {
    let mut medians = [0.0; FIGURES.len()];
    let mut variance = 0.0;
    for (mean, &figure) in medians.iter_mut().zip(&FIGURES) {
        let mut logarithms = 0.0;
        for row in rows {
            let found = row.figure(figure)?;
            let median = found.median_ns.filter(|&median| median > 0.0)?;
            logarithms += median.ln();
            variance += (found.standard_error_ns.unwrap_or(0.0) / median).powi(2);
        }
        *mean = (logarithms / rows.len() as f64).exp();
    }
    Some(Rival { key, medians, cost: 0.0, error: variance.sqrt() / (FIGURES.len() * rows.len()) as f64 })
}

/// Bytes of the largest tiles of look-ahead: six of them are in a ring on an H100.
const LARGEST_TILE: u64 = 32 << 10;

/// Whether it is a look-ahead kernel with larger ones. What those cost where arrays are misaligned is not measured here.
fn has_large_tiles(row: &SweepRow) -> bool {
    let tile = u64::from(row.vt.unwrap_or(0)) * u64::from(row.block_threads.unwrap_or(0)) * row.element.bytes() as u64;
    row.subject == Strategy::Lookahead.name() && tile > LARGEST_TILE
}

/// Differences up to this share are of no consequence.
const INDIFFERENT: f64 = 0.01;
/// Nor are those within so many standard errors,
const ERRORS: f64 = 3.0;
/// unless they are larger than this.
const MOST_NOISE: f64 = 0.03;

/// The candidates that are as good as the best.
fn within_noise(rivals: &[Rival]) -> Vec<Rival> {
    let Some(best) = rivals.iter().min_by(|left, right| left.by_cost(right)) else { return Vec::new() };
    let is_as_good = |rival: &&Rival| {
        let noise = (ERRORS * rival.error.hypot(best.error)).clamp(INDIFFERENT, MOST_NOISE);
        rival.cost - best.cost <= noise.ln_1p()
    };
    rivals.iter().filter(is_as_good).copied().collect()
}

/// What a row is for.
type Kept = (ElementType, Operator);

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
    let modes: Vec<Mode> = MODES.into_iter().filter(is_measured).collect();
    let mut points: BTreeMap<Kept, BTreeMap<u64, Vec<Rival>>> = BTreeMap::new();
    // Other offsets are other work, and a table has nothing to say of them.
    for point in record.points.iter().filter(|point| point.offsets.is_aligned()) {
        let of_point = |row: &&SweepRow| {
            (row.element, row.operator, row.n, row.offsets) == (point.element, point.operator, point.n, point.offsets)
        };
        let rivals = rivals(record.rows.iter().filter(of_point), &modes);
        if !rivals.is_empty() && Instance::new(point.element, point.operator).is_ok() {
            points.entry((point.element, point.operator)).or_default().insert(point.n, rivals);
        }
    }
    if points.is_empty() {
        return Err(TuneError::NothingMeasured);
    }
    let planned = planned(&header.sweep);
    let machine = &header.machine;
    let committed = Tuning::committed(machine.tuning_gpu());
    let mut rows = Vec::new();
    let mut unmeasured = Vec::new();
    let nothing = BTreeMap::new();
    for &(element, operator) in points.keys().chain(planned.keys()).collect::<BTreeSet<_>>() {
        let Ok(instance) = Instance::new(element, operator) else { continue };
        let sizes = points.get(&(element, operator)).unwrap_or(&nothing);
        rows.extend(ranges(sizes).into_iter().map(|(key, sizes, up_to)| TuningRow {
            element,
            operator,
            up_to,
            strategy: key.strategy,
            vt: Some(key.vt),
            block_threads: Some(key.block_threads),
            composition: key.composition,
            evidence: sizes.iter().filter_map(|(n, rivals)| evidence(key, *n, rivals)).collect(),
        }));
        let mut wanted = planned.get(&(element, operator)).into_iter().flatten();
        if record.finished.is_some() && wanted.all(|n| sizes.contains_key(n)) {
            continue;
        }
        let largest = sizes.keys().next_back().copied();
        if let (Some(_), Some(row)) = (largest, rows.last_mut()) {
            row.up_to = largest;
        }
        rows.extend(rows_above(largest.unwrap_or(0), instance, &committed));
        unmeasured.push(match largest {
            Some(n) => format!("{instance} above n = {}", format_size(n)),
            None => format!("{instance} at all sizes"),
        });
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
        note: (!unmeasured.is_empty()).then(|| note(record.finished.is_some(), &unmeasured, committed.name())),
    };
    Ok(TuningTable::new(header, rows)?)
}

/// The sizes at which the sweep measures aligned scans.
fn planned(sweep: &SweepFile) -> BTreeMap<Kept, BTreeSet<u64>> {
    let mut planned: BTreeMap<Kept, BTreeSet<u64>> = BTreeMap::new();
    for group in sweep.groups.iter().filter(|group| group.offsets.iter().any(Offsets::is_aligned)) {
        for &element in &group.types {
            for &operator in &group.operators {
                let sizes = group.sizes.iter().filter_map(|text| parse_array_size(text, element.bytes()));
                planned.entry((element, operator)).or_default().extend(sizes);
            }
        }
    }
    planned
}

/// What is taken of more than `below` elements without a measurement. Limits are powers of two: the committed ones were
/// measured for other configurations, perhaps on another GPU.
fn rows_above(below: u64, instance: Instance, committed: &Tuning) -> Vec<TuningRow> {
    /// Beyond this nothing changes any more.
    const LARGEST_POWER: u32 = 36;
    let row = |up_to, strategy| TuningRow {
        element: instance.element(),
        operator: instance.operator(),
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

/// What a table says that does not rest on measurements alone.
fn note(is_finished: bool, unmeasured: &[String], committed: &str) -> String {
    let (why, remedy) = if is_finished {
        ("Not every size could be measured", "")
    } else {
        ("The record was not finished", " Measure the rest with `lookback tune --resume`.")
    };
    format!(
        "{why}. Rows for these rest on no measurement: {}. They take the strategies of the table {committed} in the \
         configurations suggested for the size.{remedy}",
        unmeasured.join(", ")
    )
}

/// A candidate, the sizes at which it is taken, and the limit up to which it is.
type Chosen<'a> = (Key, Vec<(u64, &'a [Rival])>, Option<u64>);

/// As few ranges as there can be with one candidate within noise of the best at every size of each.
fn ranges(sizes: &BTreeMap<u64, Vec<Rival>>) -> Vec<Chosen<'_>> {
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
            (Some((last, _)), Some((first, _))) => Some((u128::from(*last) * u128::from(*first)).isqrt() as u64),
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
