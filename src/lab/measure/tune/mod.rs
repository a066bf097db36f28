//! From candidates to a tuning table: which points are measured, and how. [`mod@derive`] says what follows from their
//! record.
//!
//! The candidates (`tuning/candidates.toml`) are a sweep like any other: problems, types, sizes, strategies, VTs, blocks. One of
//! the candidates of a problem is what `auto` takes without a row for it. Only the measuring has two passes at each point. The
//! first takes a few samples of every candidate, in common rounds; the second samples the best few by the sweep's full stopping
//! rule. Every candidate is verified in both. The rows say in which pass their figures were made ([`Pass`]).

pub mod derive;
mod rivals;

use super::clocks::Clocks;
use super::point::{Entry, Offsets, Point, Subject};
use super::record::{Pass, SweepRecorder, SweepRow};
use super::run::{Laboratory, MeasuredPoint, Progress, SweepError, SweepSummary, measure_point, run_points};
use super::sweep::{Group, Limits, SweepFile};
use crate::element::{ElementType, Instance, Operator};
use crate::lab::device::DeviceError;
use crate::lab::workload::{ProblemKind, Workload};
use crate::strategy::tuning::{Gpu, Tuned, Tuning, TuningError};
use crate::strategy::{Blocks, Composition, Strategy, StrategyChoice};
use crate::text::{LARGEST_SIZE, parse_array_size};
use rivals::{FIGURES, Rival, modes_of, rivals};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Name of the sweep, and first part of its record's.
pub const NAME: &str = "tune";
/// Types that are tuned; the others take the rows of the one of their size.
pub const TYPES: [ElementType; 6] =
    [ElementType::U8, ElementType::U16, ElementType::I32, ElementType::F32, ElementType::I64, ElementType::F64];
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
    problem_sizes: Vec<String>,
    quick_problem_sizes: Vec<String>,
    /// Problems by a name that stands for all of them.
    alike: BTreeMap<String, Vec<ProblemKind>>,
    #[serde(rename = "candidate")]
    candidates: Vec<Candidate>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Candidate {
    /// Their names, or such that stand for several.
    #[serde(default = "flat_alone")]
    problems: Vec<String>,
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

fn flat_alone() -> Vec<String> {
    vec![ProblemKind::Flat.to_string()]
}

impl Candidates {
    /// Whether a name is that of the problem, or stands for it and others.
    fn names(&self, name: &str, kind: ProblemKind) -> bool {
        self.alike.get(name).map_or_else(|| kind.name() == name, |alike| alike.contains(&kind))
    }
}

const CANDIDATES: &str = include_str!("../../../../tuning/candidates.toml");

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
    /// Two problems that `auto` cannot tell apart.
    #[error(
        "'{first}' and '{second}' are one problem to auto, '{tuned}', and a table has one row for both at a size; tune one of \
         them, or each into a table of its own"
    )]
    OneProblem { first: String, second: String, tuned: String },
    /// A record of another sweep, whose candidates were not chosen for a table.
    #[error(
        "it is a record of the sweep '{found}', not of '{NAME}': what it measured are no candidates for a table; \
         measure them with `lookback tune --output FILE`"
    )]
    OtherSweep { found: String },
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
    /// The committed candidates for plain sums of `types`, in a budget of `seconds`; `quick` for fewer sizes.
    ///
    /// # Errors
    /// When a type is no number, or there is none.
    pub fn new(types: &[ElementType], seconds: f64, quick: bool) -> Result<Self, TuneError> {
        if let Some(other) = types.iter().find(|element| !ElementType::NUMBERS.contains(element)) {
            return Err(no_number(*other));
        }
        let sums = types.iter().map(|&element| Instance::new(element, Operator::Sum));
        let sums = sums.map(|sum| Ok((sum.map_err(|error| TuneError::Plan(error.to_string()))?.into(), None)));
        Self::of_workloads(&sums.collect::<Result<Vec<_>, TuneError>>()?, seconds, quick)
    }

    /// The same for workloads, each at the sizes of its kind, and at so many elements, if it says how many.
    ///
    /// # Errors
    /// When one is of a type that is no number, two are one problem to `auto`, or there is none.
    pub fn of_workloads(asked: &[(Workload, Option<u64>)], seconds: f64, quick: bool) -> Result<Self, TuneError> {
        let broken = |reason: String| TuneError::Plan(reason);
        let mut types = asked.iter().flat_map(|(workload, _)| [workload.input(), workload.element()]);
        if let Some(other) = types.find(|element| !element.is_number()) {
            return Err(no_number(other));
        }
        let mut known = HashMap::new();
        for &(second, _) in asked {
            let tuned = tuned(second);
            if let Some(first) = known.insert(tuned.clone(), second).filter(|&first| first != second) {
                let [first, second] = [first, second].map(|workload| workload.to_string());
                return Err(TuneError::OneProblem { first, second, tuned: tuned.to_string() });
            }
        }
        let candidates: Candidates = toml::from_str(CANDIDATES).map_err(|error| broken(error.to_string()))?;
        let bytes = |text: &String| parse_array_size(text, 1).map_err(|error| broken(format!("'{text}': {error}")));
        let mut groups = Vec::new();
        for &(workload, own_size) in asked {
            let sizes = match (workload.is_plain(), quick) {
                (true, false) => &candidates.sizes,
                (true, true) => &candidates.quick_sizes,
                (false, false) => &candidates.problem_sizes,
                (false, true) => &candidates.quick_problem_sizes,
            };
            let input_bytes = workload.input().bytes() as u64;
            let sizes = sizes.iter().map(|text| Ok(bytes(text)? / input_bytes)).chain(own_size.map(Ok));
            // A matrix of one line is scanned as a sequence is, or a column as a row, and says nothing of more of them.
            let is_several = |n: &u64| workload.line_elements().is_none_or(|_| n / workload.least() > 1);
            let sizes = sizes.collect::<Result<BTreeSet<u64>, TuneError>>()?.into_iter().filter(is_several);
            let sizes: Vec<u64> = sizes.collect();
            let mut add = |strategies: Vec<StrategyChoice>, vts: &[u32], blocks: &[u32], range: RangeInclusive<u64>| {
                let within = sizes.iter().filter(|&n| range.contains(&(n * input_bytes)));
                let sizes: Vec<String> = within.map(u64::to_string).collect();
                if sizes.is_empty() {
                    return;
                }
                let input = Some(workload.input()).filter(|&input| input != workload.element());
                groups.push(Group {
                    types: vec![workload.element()],
                    operators: vec![workload.instance().operator()],
                    problems: vec![workload.kind()],
                    inputs: input.into_iter().collect(),
                    segments: workload.segment_elements().iter().map(u64::to_string).collect(),
                    modes: modes_of(workload).to_vec(),
                    sizes,
                    offsets: vec![Offsets::default()],
                    strategies,
                    vts: vts.to_vec(),
                    blocks: blocks.to_vec(),
                    peers: Vec::new(),
                    figures: FIGURES.to_vec(),
                    bounds: false,
                    copies: false,
                    every_process: false,
                });
            };
            // So that a table is never slower than what there is without one.
            if !workload.is_plain() {
                add(vec![StrategyChoice::Auto], &[], &[], 0..=u64::MAX);
            }
            let is_of = |of: &&Candidate| {
                let is_named = of.problems.iter().any(|name| candidates.names(name, workload.kind()));
                is_named && of.element_bytes.contains(&workload.access_bytes())
            };
            for candidate in candidates.candidates.iter().filter(is_of) {
                let from = candidate.from.as_ref().map(bytes).transpose()?.unwrap_or(0);
                let up_to = candidate.up_to.as_ref().map(bytes).transpose()?.unwrap_or(u64::MAX);
                let strategies = candidate.strategies.iter().copied().map(StrategyChoice::Named).collect();
                add(strategies, &candidate.vts, &candidate.blocks, from..=up_to);
            }
        }
        let mut sweep = SweepFile {
            name: NAME.to_owned(),
            purpose: "Which strategy and configuration is fastest for each type and size on this GPU.".to_owned(),
            seed: 42,
            limits: Limits { latency_up_to: "0".to_owned(), ..Limits::default() },
            groups,
            process: None,
            tuning: None,
        };
        let finalists = if quick { QUICK_FINALISTS } else { FINALISTS };
        let (points, _) = sweep.points(&[]);
        if points.is_empty() {
            let reason = match asked {
                [] => "no type is left",
                _ => "no matrix has two rows or columns of so many elements; give a --shape that has",
            };
            return Err(broken(reason.to_owned()));
        }
        let figures = FIGURES.len() as f64;
        let copies = 2;
        let of_coarse = points.iter().map(|point| point.entries.len()).sum::<usize>() as f64 * figures;
        let modes = |point: &Point| modes_of(point.workload).len();
        let of_full = points.iter().map(|point| finalists * modes(point) + copies).sum::<usize>() as f64 * figures;
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

    /// The points in the order in which they are measured on a GPU: every second size of all types first, so that what a
    /// short budget leaves out lies between measured sizes.
    pub fn points(&self, gpu: Gpu) -> Vec<Point> {
        let (mut points, _) = self.sweep.points_by(&[], &Tuning::committed(gpu));
        points.iter_mut().for_each(name_choices);
        let bytes: BTreeSet<u64> = points.iter().map(Point::input_bytes).collect();
        let is_second = |point: &Point| bytes.range(..point.input_bytes()).count() % 2;
        let mut points: Vec<(usize, Point)> = points.into_iter().map(|point| (is_second(&point), point)).collect();
        points.sort_by_key(|(second, _)| *second);
        points.into_iter().map(|(_, point)| point).collect()
    }
}

fn no_number(element: ElementType) -> TuneError {
    let numbers: Vec<&str> = ElementType::NUMBERS.iter().map(|element| element.name()).collect();
    TuneError::Plan(format!("{element} is no number; choose among {}", numbers.join(", ")))
}

/// What a row of a table for a workload is for: where that is a matrix, of more than one row or column.
pub fn tuned(workload: Workload) -> Tuned {
    let instance = workload.instance();
    if workload.is_plain() {
        return Tuned::Plain { element: instance.element(), operator: instance.operator() };
    }
    let problem = workload.problem(LARGEST_SIZE).tuning_name();
    Tuned::Problem { problem, line: workload.line_elements() }
}

/// What `auto` came to becomes the strategy that it is, unless that is a candidate anyway. Blocks that have one tile of several arrays
/// reduce it first, as they do by `auto`'s rules.
fn name_choices(point: &mut Point) {
    let problem = point.workload.problem(point.n);
    let reduces_first = problem.defined().is_some() && problem.is_scan() && problem.axis().is_none();
    let entries = &mut point.entries;
    for entry in &mut *entries {
        if let Subject::Auto { strategy, mode, config } = entry.subject {
            entry.subject = Subject::Scan { strategy, mode, config };
        } else if let Subject::Scan { strategy, config, .. } = &mut entry.subject
            && reduces_first
            && strategy.row().shape.blocks == Blocks::PerTile
        {
            config.composition = Composition::ReduceThenScan;
        }
    }
    let mut named: Vec<Subject> = Vec::with_capacity(entries.len());
    entries.retain(|entry| {
        let is_new = !named.contains(&entry.subject);
        named.push(entry.subject.clone());
        is_new
    });
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
    let (points, seed) = (plan.points(laboratory.machine().tuning_gpu()), plan.sweep.seed);
    let (sweep, points_left) =
        run_points(laboratory, points, seed, plan.budget, recorder, progress, &|laboratory, point, clocks| {
            measure_candidates(laboratory, point, plan, clocks)
        })?;
    Ok(TuneSummary { sweep, points_left })
}

/// Both passes at a point.
fn measure_candidates(
    laboratory: &mut dyn Laboratory,
    point: &Point,
    plan: &TunePlan,
    clocks: &mut Clocks,
) -> Result<MeasuredPoint, DeviceError> {
    let seed = plan.sweep.seed;
    let mut coarse = measure_point(laboratory, point, seed, &plan.coarse, clocks)?;
    mark(&mut coarse.rows, Pass::Coarse);
    let mut rivals = rivals(coarse.rows.iter(), modes_of(point.workload));
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
    Ok(MeasuredPoint { rows, beside: full.beside, skipped })
}

fn mark(rows: &mut [SweepRow], pass: Pass) {
    for row in rows {
        row.pass = Some(pass);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_candidate_is_that_of_a_problem_or_stands_for_several() {
        let candidates: Candidates = toml::from_str(CANDIDATES).expect("the candidates");
        for name in candidates.candidates.iter().flat_map(|candidate| &candidate.problems) {
            assert!(ProblemKind::ALL.iter().any(|&kind| candidates.names(name, kind)), "{name}");
        }
        // None is both.
        assert!(candidates.alike.keys().all(|name| name.parse::<ProblemKind>().is_err()));
    }
}
