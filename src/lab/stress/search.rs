//! Drawing cases until one fails, and making the failing one small.

use super::case::{Case, Disturbance, MINIMUM_TILES, Memory};
use super::counted::DeviceCount;
use super::cpu::{Failure, Passed, run, stacks_of};
use super::detector::{CannotRun, Limits};
use super::room::Room;
use super::scan_case::NO_OPERATOR;
use crate::cpu::{BlockOrder, most_stacks};
use crate::kernels::mutant::{Mutant, Need};
use crate::lab::workers::on_threads;
use crate::lab::workload::{ProblemKind, Workload};
use crate::strategy::{Composition, Descriptor, Mode, Pattern, Strategy};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A case that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// As it was drawn.
    pub case: Case,
    /// How it failed.
    pub failure: Failure,
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The failing case of the lowest seed, if there is one.
    pub found: Option<Found>,
    /// Cases that were run.
    pub cases: u64,
    /// What those that passed did.
    pub passed: Passed,
    /// What those that passed were.
    pub census: Census,
    /// How long it took.
    pub elapsed: Duration,
}

/// Schedules that passed (`Passed::schedules`), by what they were: property, its value, schedules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Census(BTreeMap<&'static str, BTreeMap<String, u64>>);

impl Census {
    /// How many schedules had the value of the property.
    pub fn count(&self, property: &str, value: &str) -> u64 {
        self.0.get(property).and_then(|values| values.get(value)).copied().unwrap_or(0)
    }

    /// Every property with its values, the most frequent first.
    pub fn properties(&self) -> impl Iterator<Item = (&'static str, Vec<(&str, u64)>)> {
        self.0.iter().map(|(&property, values)| {
            let mut values: Vec<_> = values.iter().map(|(value, &schedules)| (value.as_str(), schedules)).collect();
            values.sort_by_key(|&(value, schedules)| (std::cmp::Reverse(schedules), value));
            (property, values)
        })
    }

    /// Adds the launches that count, given by the tiles of each.
    fn add(&mut self, case: &Case, tiles: &[u64]) {
        let request = &case.request;
        let threads = request.config.block_threads;
        let values = [
            ("memory", case.memory.to_string()),
            ("problem", case.workload.kind().to_string()),
            ("strategy", request.strategy.to_string()),
            ("type", case.workload.element().to_string()),
            ("operator", case.workload.operator().map_or(NO_OPERATOR.to_owned(), |operator| operator.to_string())),
            ("layout", request.config.descriptor.map_or("none", Descriptor::name).to_owned()),
            ("mode", request.mode.to_string()),
            ("resident blocks", range_of(u64::from(case.resident_blocks), &[1, 2, 4])),
            ("start order", case.block_order.to_string()),
            ("workspace", case.workspace.to_string()),
            ("warps a block", range_of(u64::from(threads.div_ceil(32)), &[1, 2, 4])),
            ("disturbance", case.disturbance.name().to_owned()),
            ("launches at one time", case.together.to_string()),
            ("elements known to", if case.count.is_some() { "the device" } else { "the host" }.to_owned()),
        ];
        let mut count = |property, value, schedules| {
            *self.0.entry(property).or_default().entry(value).or_default() += schedules;
        };
        for &tiles in tiles {
            count("tiles", range_of(tiles, &[1, MINIMUM_TILES, 16, 33]), 1);
        }
        if !tiles.is_empty() {
            for (property, value) in values {
                count(property, value, tiles.len() as u64);
            }
        }
    }

    fn join(&mut self, other: Self) {
        for (property, values) in other.0 {
            let mine = self.0.entry(property).or_default();
            for (value, schedules) in values {
                *mine.entry(value).or_default() += schedules;
            }
        }
    }
}

/// `4 to 7`, where 4 and 8 are among the beginnings of ranges.
fn range_of(number: u64, beginnings: &[u64]) -> String {
    let at = beginnings.iter().rposition(|&beginning| beginning <= number).unwrap_or(0);
    match (beginnings[at], beginnings.get(at + 1)) {
        (first, Some(&next)) if next == first + 1 => first.to_string(),
        (first, Some(next)) => format!("{first} to {}", next - 1),
        (first, None) => format!("{first} and more"),
    }
}

/// Runs cases of consecutive seeds, each of one of these problems, until one fails or a limit is reached. `progress` is told
/// of schedules done.
///
/// # Errors
/// When the machine could not run a case, and none of the others failed.
pub fn search(
    problems: &[ProblemKind],
    mutant: Option<&'static Mutant>,
    memories: &[Memory],
    limits: Limits,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Search, CannotRun> {
    let start = Instant::now();
    let room = Room::new(most_stacks(limits.threads));
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let result = Mutex::new((None::<Found>, 0_u64, Passed::default(), Census::default()));
    let shortage = OnceLock::new();
    let is_over = || limits.are_over(start);
    let work = || {
        let (mut passed, mut census) = (Passed::default(), Census::default());
        let mut cases = 0;
        while !stop.load(Ordering::Relaxed) && done.load(Ordering::Relaxed) < limits.schedules && !is_over() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let memory = memories[(number % memories.len() as u64) as usize];
            let case = Case::draw_of(problems, mutant, memory, limits.first_seed.wrapping_add(number));
            let _taken = room.take(stacks_of(&case));
            // It may have waited long.
            if is_over() {
                break;
            }
            cases += 1;
            match run(&case) {
                Ok(more) => {
                    passed.add(&more);
                    census.add(&case, &more.tiles);
                    // A fault may show in any launch; of the kernels as they are only the larger ones count.
                    let counted = if mutant.is_some() { more.launches() } else { more.schedules };
                    done.fetch_add(counted, Ordering::Relaxed);
                    progress(counted);
                }
                Err(failure) => {
                    stop.store(true, Ordering::Relaxed);
                    if let Some(error) = failure.cannot_run() {
                        shortage.get_or_init(|| error.clone());
                        break;
                    }
                    let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
                    // The lowest seed wins, so that the answer does not depend on who is faster.
                    if result.0.as_ref().is_none_or(|found| case.seed < found.case.seed) {
                        result.0 = Some(Found { case, failure });
                    }
                }
            }
        }
        let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
        result.1 += cases;
        result.2.add(&passed);
        result.3.join(census);
    };
    on_threads(limits.threads, work);
    let (found, cases, passed, census) = result.into_inner().unwrap_or_else(PoisonError::into_inner);
    match (found, shortage.into_inner()) {
        (None, Some(error)) => Err(error),
        (found, _) => Ok(Search { found, cases, passed, census, elapsed: start.elapsed() }),
    }
}

/// Schedules that a smaller case is tried with: another size is another interleaving, so the seed that failed says
/// little about it.
const SEEDS_A_STEP: u64 = 24;

/// Makes a failing case smaller, step by step, as long as it still fails in the same way and the limits leave time.
pub fn shrink(found: &Found, limits: &Limits) -> Found {
    let start = Instant::now();
    let mut best = found.clone();
    loop {
        let smaller = steps(&best.case).into_iter().find_map(|case| {
            (0..SEEDS_A_STEP).find_map(|offset| {
                if limits.are_over(start) {
                    return None;
                }
                let case = Case { seed: best.case.seed.wrapping_add(offset), ..case.clone() };
                let failure = run(&case).err()?;
                (failure.fault.name() == best.failure.fault.name()).then_some(Found { case, failure })
            })
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

/// Simpler cases, the greatest step first.
fn steps(case: &Case) -> Vec<Case> {
    let request = case.request;
    let config = request.config;
    let when = case.mutant.map(|mutant| mutant.when.clone()).unwrap_or_default();
    let needs = |need| when.needs.contains(&need);
    let mut steps = Vec::new();
    let mut try_case = |change: &dyn Fn(&mut Case)| {
        let mut smaller = case.clone();
        change(&mut smaller);
        let is_possible = smaller.request.n > 0 && smaller.is_possible();
        if is_possible && smaller != *case && !steps.contains(&smaller) {
            steps.push(smaller);
        }
    };
    // Nor is it of the problem, if the plain scan fails likewise.
    let has_types = case.workload.input() == case.workload.element() && case.workload.operator().is_some();
    if has_types && !case.workload.is_plain() {
        try_case(&|case| {
            case.count = None;
            case.reshape((Workload::from(case.workload.instance()), case.request.n));
        });
    }
    if !needs(Need::Counted) {
        try_case(&|case| case.count = None);
    }
    if let Some(DeviceCount { spare, excess }) = case.count {
        try_case(&|case| case.count = Some(DeviceCount { spare, excess: 0 }));
        try_case(&|case| case.count = Some(DeviceCount { spare: spare / 2, excess }));
    }
    // A case that fails without its disturbance fails for a simpler reason.
    if !needs(Need::Abort) && !needs(Need::Overlap) {
        try_case(&|case| case.disturbance = Disturbance::None);
    }
    try_case(&|case| case.launches = 1);
    try_case(&|case| case.launches = case.launches.saturating_sub(1).max(1));
    // Fewer threads and values keep the number of tiles.
    let with_tile = |case: &mut Case, vt: u32, threads: u32| {
        let tiles = case.tiles();
        case.request.config.vt = vt;
        case.request.config.block_threads = threads;
        case.resize(tiles * u64::from(vt * threads));
    };
    if config.block_threads > 32 {
        try_case(&|case| with_tile(case, config.vt, 32));
        try_case(&|case| with_tile(case, config.vt, config.block_threads - 32));
    }
    if config.vt > 1 {
        try_case(&|case| with_tile(case, 1, config.block_threads));
        try_case(&|case| with_tile(case, config.vt / 2, config.block_threads));
    }
    let tile = u64::from(config.vt * config.block_threads);
    let tiles = case.tiles();
    for fewer in [2, tiles / 2, tiles - 1] {
        if fewer >= 1 && fewer < tiles {
            try_case(&|case| case.resize(fewer * tile));
        }
    }
    try_case(&|case| case.resize(tiles * tile));
    if let Some(elements) = case.workload.segment_elements().filter(|&elements| elements > 1) {
        try_case(&|case| case.reshape(case.workload.in_segments_of(elements / 2, case.request.n)));
    }
    for fewer in [1, 2, case.resident_blocks / 2, case.resident_blocks.saturating_sub(1)] {
        if fewer >= 1 && fewer < case.resident_blocks {
            try_case(&|case| case.resident_blocks = fewer);
        }
    }
    if !needs(Need::Reverse) {
        try_case(&|case| case.block_order = BlockOrder::InOrder);
    }
    try_case(&|case| case.plain_points = false);
    try_case(&|case| case.together = 1.max(case.together - 1));
    if !needs(Need::Ranks) {
        try_case(&|case| case.ranks = 1.max(case.ranks - 1));
    }
    try_case(&|case| case.memory = Memory::Strong);
    try_case(&|case| {
        case.request.input_offset = 0;
        case.request.output_offset = 0;
    });
    try_case(&|case| {
        case.request.in_place = false;
    });
    try_case(&|case| case.request.mode = Mode::Inclusive);
    try_case(&|case| case.request.config.pattern = Pattern::Shuffle);
    if config.pattern == Pattern::Shuffle {
        try_case(&|case| case.request.config.composition = Composition::ScanThenPropagate);
    }
    if request.strategy == Strategy::Lookback {
        try_case(&|case| case.request.strategy = Strategy::Chained);
    }
    try_case(&|case| case.workspace = super::WorkspaceStart::Zeros);
    if !needs(Need::Wrap) {
        try_case(&|case| case.completed_epochs = 0);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::super::PLAIN;
    use super::*;

    #[test]
    fn every_step_is_a_case_of_its_own_and_ends() {
        for problems in [PLAIN, ProblemKind::ALL] {
            for seed in 0..200 {
                let case = Case::draw_of(problems, None, Memory::Strong, seed);
                for step in steps(&case) {
                    assert_ne!(step, case);
                    assert_eq!(step.to_string().parse::<Case>().as_ref(), Ok(&step));
                }
            }
        }
    }
}
