//! Running a case on the CPU device.

use super::arrays::{Scan, Scratch, Workspace};
use super::case::{Case, Disturbance, Memory};
use super::dealt;
use super::detector::CannotRun;
use super::draw::Draw;
use super::launches::{Ended, OneScan, launch_all, resident_blocks};
pub use super::outcome::{Failure, Fault, Passed};
use super::watched::{Interruption, Observer, Places};
use super::workspace;
use crate::cpu::LaunchSettings;
use crate::element::Problem;
use crate::file::reason;
use crate::kernels::mutant::{ONE_WORKSPACE, RELAUNCH_AFTER_ABORT};
use crate::lab::bounds::Array;
use crate::lab::cpu_device::step_settings;
use crate::strategy::plan::{Kernel, Plan, RegionKey, Step};

/// Runs a case.
///
/// # Errors
/// With what was wrong.
pub fn run(case: &Case) -> Result<Passed, Failure> {
    run_observed(case, None)
}

/// The kernels that a case runs, each with the problem that it is for.
pub(super) fn kernels_of(case: &Case) -> Vec<(Problem, Kernel)> {
    // What is asked for beside the elements is a part of the problem.
    let scan = Scan::new(case, case.request.n, 0);
    let kernel = |step: &Step| if case.ranks > 1 { Kernel::Dealt } else { step.kernel };
    scan.map_or(Vec::new(), |scan| {
        scan.plan.steps.iter().map(|step| (step.problem.canonical(), kernel(step))).collect()
    })
}

/// Coroutine stacks that a case needs at one time.
pub(super) fn stacks_of(case: &Case) -> usize {
    let Ok(plan) = Plan::new(&case.planned()) else { return 0 };
    let stacks_of_step = |step: &Step| {
        // With this seed the clusters are the largest.
        let (_, settings) = step_settings(step, 0);
        LaunchSettings { resident_blocks: resident_blocks(case, step, &settings), ..settings }.stacks()
    };
    let stacks = plan.steps.iter().map(stacks_of_step).max().unwrap_or(0) * case.together as usize;
    let stacks = if case.ranks > 1 { stacks * (case.ranks * case.launches) as usize } else { stacks };
    if matches!(case.disturbance, Disturbance::Overlap { .. }) { 2 * stacks } else { stacks }
}

/// Runs a case and tells an observer of what happens.
pub(super) fn run_observed(case: &Case, mut observer: Option<&mut dyn Observer>) -> Result<Passed, Failure> {
    let mut draw = Draw::new(case.seed ^ 0x005e_ed0f_0b0d_7e57);
    let failed = |launch: u32| move |fault: Fault| Failure { launch, fault };
    let data = draw.word();
    let scan = Scan::new(case, case.request.n, data).map_err(failed(0))?;
    if case.ranks > 1 {
        return dealt::run(case, &scan, &mut draw).map_err(failed(0));
    }
    let layout = scan.plan.layout;
    // Room for more than is needed: a wrap must clear that too.
    let capacity = scan.plan.descriptors + draw.below(8);
    let mut workspace = Workspace::new(RegionKey::of(&scan.plan), capacity);
    workspace.control.completed_epochs = case.completed_epochs;
    let (shape, launches) = ((layout, workspace.capacity), u64::from(case.launches) * u64::from(scan.epochs().max(1)));
    let descriptors = workspace.descriptors.bytes_mut();
    workspace::fill(descriptors, shape, case.workspace, case.completed_epochs, launches, &mut draw);
    let host_epoch = case.completed_epochs + 1;
    if case.together > 1 {
        return run_together(case, scan, data, &mut workspace, &mut draw, observer);
    }

    let mut passed = Passed::default();
    let mut first = Some(scan);
    for launch in 0..case.launches {
        let mut scan = match first.take() {
            Some(scan) => scan,
            // Behind a small launch a large one must find the workspace as good as new.
            None => Scan::new(case, case.later_size(&mut draw), data).map_err(failed(launch))?,
        };
        workspace.reserve([&scan.plan]);
        let disturbance = if launch == 0 { case.disturbance } else { Disturbance::None };
        let run = OneScan { case, host_epoch, disturbance, seed: draw.word() };
        let completed = workspace.control.completed_epochs;
        let observer = reborrow(&mut observer);
        let ended = run.execute(&mut scan, workspace.places(), observer).map_err(failed(launch))?;
        match ended {
            Ended::Whole => {
                scan.check().map_err(failed(launch))?;
                workspace.check(completed, scan.epochs()).map_err(failed(launch))?;
                passed.count(case, scan.dataset.n);
            }
            Ended::Cut => {
                passed.cut += 1;
                if case.mutant.is_none_or(|mutant| mutant.name != RELAUNCH_AFTER_ABORT) {
                    workspace.clean();
                }
            }
        }
    }
    Ok(passed)
}

fn reborrow<'a>(observer: &'a mut Option<&mut dyn Observer>) -> Option<&'a mut dyn Observer> {
    match observer {
        Some(observer) => Some(&mut **observer),
        None => None,
    }
}

/// Runs the launches of a case with several of the kernels' launches at one time, whichever scans they are of. In place
/// each scan goes on with what the one before has left.
fn run_together(
    case: &Case,
    first: Scan,
    data: u64,
    workspace: &mut Workspace,
    draw: &mut Draw,
    mut observer: Option<&mut dyn Observer>,
) -> Result<Passed, Failure> {
    let failed = |launch: u32| move |fault: Fault| Failure { launch, fault };
    let in_place = case.request.in_place;
    let (mut own, mut sizes, mut runs) = (vec![first], Vec::new(), Vec::new());
    for launch in 0..case.launches {
        // What the scan before left may be beyond the operator's range: it was the last then.
        if launch > 0 && in_place && !own[0].goes_on() {
            break;
        }
        if launch > 0 && !in_place {
            own.push(Scan::new(case, case.later_size(draw), data).map_err(failed(launch))?);
        }
        sizes.push(own[own.len() - 1].dataset.n);
        let disturbance = if launch == 0 { case.disturbance } else { Disturbance::None };
        runs.push(OneScan { case, host_epoch: case.completed_epochs + 1, disturbance, seed: draw.word() });
    }
    let mut scratch = Scratch::new(own.iter().map(|scan| &scan.plan));
    workspace.reserve(own.iter().map(|scan| &scan.plan));
    let plans: Vec<Plan> = own.iter().map(|scan| scan.plan.clone()).collect();

    // Each launch of a kernel, by scan and step.
    let steps_of = |scan: usize| &plans[scan.min(plans.len() - 1)].steps;
    let all: Vec<(usize, usize)> =
        (0..runs.len()).flat_map(|scan| (0..steps_of(scan).len()).map(move |step| (scan, step))).collect();
    let together = case.together as usize;
    // Which of them come together is drawn where it is not all.
    let mut count = if all.len() > together { 1 + draw.below(together as u64) as usize } else { together };
    let mut rest = &all[..];
    while let Some(&(scan, first_step)) = rest.first() {
        let (now, later) = rest.split_at(count.min(rest.len()));
        (rest, count) = (later, together);
        let (mut ready, mut first_block) = (Vec::new(), 0);
        for &(scan, step) in now {
            let place = scan.min(own.len() - 1);
            let (run, step_of_plan) = (&runs[scan], &steps_of(scan)[step]);
            if let Some(observer) = reborrow(&mut observer) {
                observer.begins(step_of_plan, &workspace.places(), first_block);
            }
            let seed = run.seed.wrapping_add(step as u64);
            let stage = run
                .ready(step_of_plan, seed, own[place].addresses(), &mut scratch, workspace.places())
                .map_err(failed(scan as u32))?;
            first_block += stage.settings.grid_blocks;
            ready.push(stage);
        }
        let mut regions: Vec<Array> = own.iter_mut().flat_map(Scan::regions).collect();
        regions.push(scratch.region());
        regions.extend(workspace.places().regions());
        let seed = runs[scan].seed.wrapping_add(first_step as u64);
        let observer = reborrow(&mut observer);
        let protocol = workspace.places().protocol();
        launch_all(case, seed, (&ready, 1), regions, &protocol, None, observer).map_err(failed(scan as u32))?;
    }

    let scans = runs.len() as u32;
    for (launch, scan) in (0..).zip(&own) {
        // In place there is one array, and the last scan has left it.
        scan.check().map_err(failed(if in_place { scans - 1 } else { launch }))?;
    }
    let epochs = (0..runs.len()).map(|scan| own[scan.min(own.len() - 1)].epochs()).sum();
    workspace.check(case.completed_epochs, epochs).map_err(failed(scans - 1))?;
    let mut passed = Passed::default();
    sizes.iter().for_each(|&n| passed.count(case, n));
    Ok(passed)
}

impl OneScan<'_> {
    fn execute(
        &self,
        scan: &mut Scan,
        workspace: Places,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<Ended, Fault> {
        let mut scratch = Scratch::new([&scan.plan]);
        for (index, step) in scan.plan.steps.clone().iter().enumerate() {
            let seed = self.seed.wrapping_add(index as u64);
            if let Ended::Cut =
                self.launch(step, seed, (&mut *scan, &mut scratch), workspace, reborrow(&mut observer))?
            {
                return Ok(Ended::Cut);
            }
        }
        Ok(Ended::Whole)
    }

    fn launch(
        &self,
        step: &Step,
        seed: u64,
        (scan, scratch): (&mut Scan, &mut Scratch),
        workspace: Places,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<Ended, Fault> {
        let case = self.case;
        if let Some(observer) = reborrow(&mut observer) {
            observer.begins(step, &workspace, 0);
        }
        let ready = self.ready(step, seed, scan.addresses(), scratch, workspace)?;
        let regions = [scan.regions(), vec![scratch.region()], workspace.regions().into()].concat();
        let overlapping = Overlap { case, seed };
        let same_workspace = case.mutant.is_some_and(|mutant| mutant.name == ONE_WORKSPACE);
        let mut shortage = None;
        let mut nested = || {
            overlapping.run(same_workspace.then_some(workspace)).map_err(|fault| {
                let text = format!("the launch in between: {fault}");
                // The launch around it ends by it, too, and not by a fault of its own.
                shortage = matches!(fault, Fault::CannotRun(_)).then_some(fault);
                text
            })
        };
        let at_access: Option<Interruption> = match self.disturbance {
            Disturbance::Overlap { after_accesses } => Some((after_accesses, &mut nested)),
            _ => None,
        };

        let ended = launch_all(case, seed, (&[ready], 1), regions, &workspace.protocol(), at_access, observer);
        if let Some(shortage) = shortage {
            return Err(shortage);
        }
        ended
    }
}

/// Another launch in the middle of one.
struct Overlap<'a> {
    case: &'a Case,
    seed: u64,
}

impl Overlap<'_> {
    /// Runs on an OS thread of its own, because the caller stands on the small stack of a coroutine, while the
    /// launch around it waits.
    fn run(&self, shared: Option<Places>) -> Result<(), Fault> {
        let mut case = self.case.clone();
        case.disturbance = Disturbance::None;
        case.launches = 1;
        case.seed = self.seed ^ 1;
        case.memory = Memory::Strong;
        if shared.is_none() {
            case.mutant = None;
        }
        std::thread::scope(|scope| {
            let nested = std::thread::Builder::new().spawn_scoped(scope, || match shared {
                None => run(&case).map(drop).map_err(|failure| failure.fault),
                Some(workspace) => run_on(&case, workspace),
            });
            let nested = nested
                .map_err(|error| CannotRun::Memory { what: format!("a thread ({})", reason(&error)) })
                .map_err(Fault::CannotRun)?;
            nested.join().map_err(|_| Fault::Execution { text: "it panicked".to_owned() })?
        })
    }
}

/// One launch of a case on a workspace that another launch is using.
fn run_on(case: &Case, workspace: Places) -> Result<(), Fault> {
    let mut scan = Scan::new(case, case.request.n, case.seed)?;
    let run = OneScan { case, host_epoch: 0, disturbance: Disturbance::None, seed: case.seed };
    run.execute(&mut scan, workspace, None)?;
    scan.check()
}
