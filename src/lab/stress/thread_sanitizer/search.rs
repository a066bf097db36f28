//! Drawing jobs until one is not clean.

use super::{Ending, Job, ThreadSanitizer, ThreadSanitizerError};
use crate::cpu::BlockOrder;
use crate::lab::stress::detector::Limits;
use crate::lab::stress::{Case, Disturbance, Memory, Mutant, Need, WorkspaceStart};
use crate::lab::workers::on_threads;
use crate::strategy::{Blocks, Strategy, TileOrder};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A case that was not clean.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The case of the one schedule that showed it ([`Job::of_case`]).
    pub case: Case,
    /// What it showed.
    pub ending: Ending,
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The case of the lowest number that was not clean, if there is one.
    pub found: Option<Found>,
    /// Schedules, each of one launch or a few.
    pub schedules: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// Schedules of a case: what a fault needs is more often another case than another schedule. The first of every other
/// case is the plain order ([`Job::seeds`]).
const SCHEDULES_A_CASE: u64 = 2;
/// Cases of a process: starting one, with its fibers and its canary, takes as long as twenty schedules. But most faults
/// show at once, so the first processes are small.
const fn cases_of_process(process: u64) -> u64 {
    if process < 2 { 2 } else { 20 }
}
/// Draws that may be beyond the detector, one after the other, before all are taken to be.
const DRAWS: u64 = 200;

/// A case that could show the mutant, or any case of the kernels as they are, within what the detector takes. One
/// number, one case.
///
/// # Errors
/// When the detector takes no case that could show the mutant, with the reason.
pub fn draw(mutant: Option<&'static Mutant>, number: u64) -> Result<Case, ThreadSanitizerError> {
    if let Some(mutant) = mutant {
        let beyond = |why: &str| Err(ThreadSanitizerError::NotCovered(why.to_owned()));
        if mutant.is_of_host() {
            return beyond("the fault is in what the host does");
        }
        if !mutant.when.problems.is_empty() {
            return beyond("plain scans alone are drawn here");
        }
        if mutant.when.needs(Need::Windows) && !one_block_sees_windows(mutant) {
            return beyond("a look-back of two windows takes more than 32 resident blocks, and so too many threads");
        }
        if mutant.when.needs(Need::Together) {
            return beyond("launches come one behind the end of the other here");
        }
        if mutant.when.needs(Need::WideBlocks) {
            return beyond("blocks of more threads than live at once here");
        }
    }
    let mut refusal = None;
    for draw in 0..DRAWS {
        // Schedules are numbered through, so that no two cases share one.
        let drawn = number.wrapping_mul(DRAWS).wrapping_add(draw);
        let mut case = Case::draw(mutant, Memory::Strong, drawn);
        case.seed = number.wrapping_mul(SCHEDULES_A_CASE);
        let case = within_reach(case);
        match Job::of_case(&case, 1) {
            Ok(_) => return Ok(case),
            Err(why) => refusal = Some(why),
        }
    }
    Err(refusal.unwrap_or_else(|| ThreadSanitizerError::NotCovered("no case was drawn".to_owned())))
}

/// Whether the fault shows where blocks stay: one alone meets all tiles, and the blocks of a cluster all rounds.
fn one_block_sees_windows(mutant: &Mutant) -> bool {
    let stays = |strategy: &Strategy| matches!(strategy.row().shape.blocks, Blocks::Persistent | Blocks::Cluster);
    mutant.when.strategies.iter().any(stays)
}

/// The nearest case that the detector takes. Types and operators remain.
fn within_reach(mut case: Case) -> Case {
    let shape = case.request.strategy.row().shape;
    let beside = shape.helper_threads(case.request.config.composition, case.request.problem);
    let config = &mut case.request.config;
    config.block_threads = match config.block_threads {
        // One warp leaves room for more blocks.
        96 => 32,
        // A block of four helpers has no room for a second one in any case.
        _ if shape.blocks == Blocks::Persistent => 64,
        _ => 64_u32.saturating_sub(beside),
    };
    let room = Job::THREADS_AT_ONCE / (config.block_threads + beside);
    case.resident_blocks = match shape.blocks {
        Blocks::Persistent => room,
        // All of them are there at one time.
        Blocks::Cluster => case.resident_blocks.clamp(2, room),
        // One block fewer than there is room for: see the program on fibers that one block takes over from another.
        Blocks::PerTile | Blocks::Single => case.resident_blocks.min(room - 1),
    };
    case.block_order = match case.block_order {
        BlockOrder::Random => BlockOrder::InOrder,
        order => order,
    };
    // Static ids need all blocks at one time.
    case.request.config.tile_order = TileOrder::Ticket;
    case.plain_points = false;
    case.disturbance = Disturbance::None;
    case.together = 1;
    case.workspace = WorkspaceStart::Zeros;
    let needs_relaunch = case.mutant.is_some_and(|mutant| mutant.when.needs(Need::Relaunch));
    // Nobody looks at the workspace here: what the second launch left wrong, the third must show.
    if needs_relaunch || case.completed_epochs == Job::EPOCHS_BEFORE_WRAP {
        case.launches = case.launches.max(3);
    }
    if case.completed_epochs != Job::EPOCHS_BEFORE_WRAP {
        case.completed_epochs = 0;
    }
    case
}

/// Runs drawn cases until one is not clean or a limit is reached.
///
/// # Errors
/// When the detector takes no case that could show the mutant, fails or sleeps.
pub fn search(
    detector: &ThreadSanitizer,
    mutant: Option<&'static Mutant>,
    limits: Limits,
) -> Result<Search, ThreadSanitizerError> {
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let schedules = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let lowest = Mutex::new(None::<(u64, Found)>);
    let is_over = || limits.are_over(start);
    let work = || -> Result<(), ThreadSanitizerError> {
        while !stop.load(Ordering::Relaxed) && schedules.load(Ordering::Relaxed) < limits.schedules && !is_over() {
            let process = next.fetch_add(1, Ordering::Relaxed);
            let number = limits.first_seed.wrapping_add((0..process).map(cases_of_process).sum());
            let cases = (0..cases_of_process(process)).map(|case| draw(mutant, number.wrapping_add(case)));
            let cases = cases.collect::<Result<Vec<_>, _>>()?;
            let mut jobs =
                cases.iter().map(|case| Job::of_case(case, SCHEDULES_A_CASE)).collect::<Result<Vec<_>, _>>()?;
            if let Some(time) = limits.remaining(start) {
                jobs.iter_mut().for_each(|job| job.time_limit = job.time_limit.min(time));
            }
            let (ending, place) = match detector.run_all(&jobs) {
                // Ended by the limit, or with this program: that says nothing of the kernels.
                Ok((Ending::Other(_), _)) | Err(_) if is_over() => break,
                ran => ran?,
            };
            if let Ending::Clean(counts) = &ending {
                schedules.fetch_add(counts.schedules, Ordering::Relaxed);
                continue;
            }
            stop.store(true, Ordering::Relaxed);
            let case = cases[place].clone();
            let seed = ending.seed().unwrap_or(case.seed);
            let done = place as u64 * SCHEDULES_A_CASE + seed.wrapping_sub(case.seed) + 1;
            schedules.fetch_add(done, Ordering::Relaxed);
            let case = Case { seed, ..case };
            let mut lowest = lowest.lock().unwrap_or_else(PoisonError::into_inner);
            // The lowest wins, so that the answer depends less on who is faster.
            if lowest.as_ref().is_none_or(|(other, _)| number < *other) {
                *lowest = Some((number, Found { case, ending }));
            }
        }
        Ok(())
    };
    let ended = on_threads(limits.threads, || {
        let result = work();
        if result.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        result
    });
    ended.into_iter().collect::<Result<(), _>>()?;
    let found = lowest.into_inner().unwrap_or_else(PoisonError::into_inner).map(|(_, found)| found);
    Ok(Search { found, schedules: schedules.into_inner(), elapsed: start.elapsed() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_within_reach_and_comes_back_from_its_text() {
        for mutant in Mutant::all().expect("readable").iter().map(Some).chain([None]) {
            for number in 0..20 {
                match draw(mutant, number) {
                    Ok(case) => {
                        assert_eq!(case.to_string().parse::<Case>().as_ref(), Ok(&case));
                        assert_eq!(draw(mutant, number).expect("it was drawn before"), case);
                        Job::of_case(&case, SCHEDULES_A_CASE).expect("within reach").text().expect("a job");
                    }
                    Err(ThreadSanitizerError::NotCovered(_)) => {
                        let mutant = mutant.expect("something of the kernels as they are is covered");
                        let needs_many = [Need::Windows, Need::WideBlocks, Need::Together]
                            .iter()
                            .any(|&need| mutant.when.needs(need));
                        let elements = &mutant.when.elements;
                        let is_compiled = |element| Job::INSTANCES.iter().any(|(known, _)| known == element);
                        let needs_others = !elements.is_empty() && !elements.iter().any(is_compiled);
                        let is_of_problem = !mutant.when.problems.is_empty();
                        assert!(mutant.is_of_host() || needs_many || needs_others || is_of_problem, "{mutant}");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}
