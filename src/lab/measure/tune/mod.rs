//! From candidates to a tuning table: which points are measured, and how. [`mod@derive`] says what follows from their
//! record.
//!
//! The candidates (`tuning/candidates.toml`) are a sweep like any other: types, sizes, strategies, VTs, blocks. Only
//! the measuring has two passes at each point. The first takes a few samples of every candidate, in common rounds; the
//! second samples the best few by the sweep's full stopping rule. Every candidate is verified in both. The rows say in
//! which pass their figures were made ([`Pass`]).

pub mod derive;
mod rivals;

use super::clocks::Clocks;
use super::point::{Entry, Offsets, Point, Subject};
use super::record::{Pass, SweepRecorder, SweepRow};
use super::run::{Laboratory, MeasuredPoint, Progress, SweepError, SweepSummary, measure_point, run_points};
use super::sweep::{Group, Limits, SweepFile};
use crate::element::{ElementType, Operator};
use crate::lab::device::DeviceError;
use crate::lab::workload::ProblemKind;
use crate::strategy::tuning::TuningError;
use crate::strategy::{Strategy, StrategyChoice};
use crate::text::parse_array_size;
use rivals::{FIGURES, MODES, Rival, rivals};
use serde::Deserialize;
use std::collections::BTreeSet;
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
    /// The committed candidates for sums of `types`, in a budget of `seconds`; `quick` for fewer sizes.
    ///
    /// # Errors
    /// When a type is no number, or there is none.
    pub fn new(types: &[ElementType], seconds: f64, quick: bool) -> Result<Self, TuneError> {
        let broken = |reason: String| TuneError::Plan(reason);
        if let Some(other) = types.iter().find(|element| !ElementType::NUMBERS.contains(element)) {
            let numbers: Vec<&str> = ElementType::NUMBERS.iter().map(|element| element.name()).collect();
            return Err(broken(format!("{other} is no number; choose among {}", numbers.join(", "))));
        }
        let candidates: Candidates = toml::from_str(CANDIDATES).map_err(|error| broken(error.to_string()))?;
        let bytes = |text: &String| parse_array_size(text, 1).map_err(|error| broken(format!("'{text}': {error}")));
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
                    problems: vec![ProblemKind::Flat],
                    inputs: Vec::new(),
                    segments: Vec::new(),
                    modes: MODES.to_vec(),
                    sizes,
                    offsets: vec![Offsets::default()],
                    strategies: candidate.strategies.iter().copied().map(StrategyChoice::Named).collect(),
                    vts: candidate.vts.clone(),
                    blocks: candidate.blocks.clone(),
                    peers: Vec::new(),
                    figures: FIGURES.to_vec(),
                    bounds: false,
                    copies: false,
                    every_process: false,
                });
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
    let (points, seed) = (plan.points(), plan.sweep.seed);
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
    Ok(MeasuredPoint { rows, beside: full.beside, skipped })
}

fn mark(rows: &mut [SweepRow], pass: Pass) {
    for row in rows {
        row.pass = Some(pass);
    }
}
