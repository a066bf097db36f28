//! The candidates of one point that a table may name, what each costs, and which are as good as the best.

use super::super::point::Kind;
use super::super::record::{Pass, Status, SweepRow};
use super::super::sampling::Figure;
use crate::lab::workload::Workload;
use crate::strategy::tuning::{Times, Tuning};
use crate::strategy::{Composition, Mode, Strategy};
use std::collections::BTreeMap;

/// The figures that a table rests on.
pub(super) const FIGURES: [Figure; 3] = [Figure::Graph, Figure::Stream, Figure::Cold];
/// A row of a table for plain scans is for both.
const MODES: [Mode; 2] = [Mode::Inclusive, Mode::Exclusive];
/// So is one for a problem, most of which have this one alone.
const MODES_OF_PROBLEMS: [Mode; 1] = [Mode::Inclusive];

/// The modes that a row for a workload rests on.
pub(super) fn modes_of(workload: Workload) -> &'static [Mode] {
    if workload.is_plain() { &MODES } else { &MODES_OF_PROBLEMS }
}

/// What tells candidates apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) strategy: Strategy,
    pub(super) vt: u32,
    pub(super) block_threads: u32,
    /// Where it is not what is suggested.
    pub(super) composition: Option<Composition>,
}

/// A candidate at a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rival {
    pub(super) key: Key,
    /// Geometric means over the modes, in nanoseconds, in the order of [`FIGURES`].
    medians: [f64; FIGURES.len()],
    /// Logarithm of the geometric mean of the medians by the best ones.
    pub(super) cost: f64,
    /// Standard error of the cost.
    error: f64,
}

impl Rival {
    pub(super) fn by_cost(&self, other: &Self) -> std::cmp::Ordering {
        self.cost.total_cmp(&other.cost).then(self.key.cmp(&other.key))
    }

    pub(super) fn times(&self) -> Times {
        // What is written is what is kept: three digits after the point are nanoseconds.
        let [graph_us, stream_us, cold_us] = self.medians.map(|nanoseconds| nanoseconds.round() / 1e3);
        Times { graph_us, stream_us, cold_us }
    }
}

/// The candidates of one point that a table may name, with their costs.
pub(super) fn rivals<'a>(rows: impl Iterator<Item = &'a SweepRow>, modes: &[Mode]) -> Vec<Rival> {
    let is_usable = |row: &&SweepRow| {
        let is_named = row.kind == Kind::Strategy && row.chosen_strategy.is_none();
        is_named && row.status == Status::Measured && row.mode.is_some_and(|mode| modes.contains(&mode))
    };
    let rows: Vec<&SweepRow> = rows.filter(is_usable).collect();
    // Of problems no candidate is left out for spills or large tiles: the rules take kernels that spill where these were measured to
    // be faster.
    let has_faults = rows.first().is_some_and(|row| row.point().is_plain());
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
            let faults = if has_faults { 2 * u32::from(spills) + u32::from(has_large_tiles) } else { 0 };
            Some((rival(key, &rows)?, faults))
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
    let problem = row.point().workload().ok()?.problem(row.n);
    let suggested = Tuning::suggested(strategy, problem, row.n).config.composition;
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
pub(super) fn within_noise(rivals: &[Rival]) -> Vec<Rival> {
    let Some(best) = rivals.iter().min_by(|left, right| left.by_cost(right)) else { return Vec::new() };
    let is_as_good = |rival: &&Rival| {
        let noise = (ERRORS * rival.error.hypot(best.error)).clamp(INDIFFERENT, MOST_NOISE);
        rival.cost - best.cost <= noise.ln_1p()
    };
    rivals.iter().filter(is_as_good).copied().collect()
}
