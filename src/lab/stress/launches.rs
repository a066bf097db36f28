//! Launches of a case's steps: what they are given, and how they end.

use super::arrays::Scratch;
use super::case::{Case, Disturbance};
use super::detector::CannotRun;
use super::outcome::Fault;
use super::watched::{Interruption, Model, Observer, Places, Watched};
use crate::abi;
use crate::cpu::{ExecutionError, LaunchSettings, Schedule, Stage, Stop, launch_in_streams};
use crate::lab::bounds::Array;
use crate::lab::cpu_device::{most_resident_blocks, step_settings};
use crate::lab::cpu_kernels::{KernelBody, kernel_body};
use crate::strategy::launch::Addresses;
use crate::strategy::plan::Step;

/// Blocks of a step that are there at one time: where none waits for another, as many as a process has stacks for will do.
pub(super) fn resident_blocks(case: &Case, step: &Step, settings: &LaunchSettings) -> u32 {
    let most = if step.uses_descriptors() { u32::MAX } else { most_resident_blocks(settings.block_threads) };
    case.resident_blocks.min(most)
}

/// How a launch of the whole scan went.
pub(super) enum Ended {
    Whole,
    /// A block was killed, or the launch was stopped on request.
    Cut,
}

/// One launch of a whole scan.
pub(super) struct OneScan<'a> {
    pub case: &'a Case,
    pub host_epoch: u32,
    pub disturbance: Disturbance,
    pub seed: u64,
}

impl OneScan<'_> {
    /// What is launched for a step, on these arrays.
    pub(super) fn ready(
        &self,
        step: &Step,
        seed: u64,
        arrays: Addresses,
        scratch: &mut Scratch,
        workspace: Places,
    ) -> Result<Ready, Fault> {
        let case = self.case;
        let mutant = case.mutant.map_or(0, |mutant| mutant.number());
        let body = kernel_body(step.problem, step.kernel, mutant != 0)
            .map_err(|error| Fault::CannotRun(CannotRun::Kernel { why: error.to_string() }))?;
        let addresses = Addresses {
            scratch: scratch.region().address as u64,
            control: workspace.control as u64,
            descriptors: workspace.descriptors as u64,
            capacity: workspace.capacity,
            ..arrays
        };
        let arguments = abi::lookback_launch { host_epoch: self.host_epoch, ..step.launch(&addresses) };
        let (config, settings) = step_settings(step, seed);
        let settings = LaunchSettings {
            resident_blocks: resident_blocks(case, step, &settings),
            block_order: case.block_order,
            schedule: case
                .preemption
                .map_or(Schedule::Fair, |percent| Schedule::Random { preemption: f64::from(percent) / 100.0 }),
            plain_points: case.plain_points,
            stop: match self.disturbance {
                Disturbance::Kill { block, after_points } => Some(Stop::Block { block, after_points }),
                Disturbance::Abort { after_points } => Some(Stop::Launch { after_points }),
                _ => None,
            },
            pause: if self.disturbance == Disturbance::None { None } else { case.pause() },
            mutant,
            ..settings
        };
        Ok(Ready { body, config, arguments, settings })
    }
}

/// A step of a plan, ready to be launched.
pub(super) struct Ready {
    pub body: KernelBody,
    pub config: abi::lookback_config,
    pub arguments: abi::lookback_launch,
    pub settings: LaunchSettings,
}

/// Runs a step, or several together, on so many streams in turn; `protocol` are those of the regions, by address, in which single
/// words are accessed. An observer is told what warps come to with tiles, too.
pub(super) fn launch_all(
    case: &Case,
    seed: u64,
    (steps, streams): (&[Ready], usize),
    regions: Vec<Array>,
    protocol: &[usize],
    at_access: Option<Interruption<'_>>,
    observer: Option<&mut dyn Observer>,
) -> Result<Ended, Fault> {
    let stages: Vec<_> = steps
        .iter()
        .map(|Ready { body, config, arguments, settings }| Stage {
            body: *body,
            config,
            arguments,
            settings: LaunchSettings { records_steps: observer.is_some(), ..settings.clone() },
        })
        .collect();
    let element_bytes = case.workload.element().bytes();
    let mut model = Model::new(case.memory, seed, regions, protocol, element_bytes);
    let mut watched = Watched { inner: model.backend(), observer, at_access, accesses: 0 };
    // SAFETY: the bodies were compiled from `cuda/scan` for this executor and take these two structs; `Plan` sizes
    // grids and scratch for `n` elements, the arrays are as large as it says and stay where they are, and the back end
    // lets the kernels touch nothing else.
    let launched = unsafe { launch_in_streams(Some(&mut watched), &stages, streams) };
    model.finish_launch();
    let is_killed = steps.iter().any(|step| matches!(step.settings.stop, Some(Stop::Block { .. })));
    match launched {
        Ok(report) if report.stopped_blocks > 0 => Ok(Ended::Cut),
        Ok(_) => Ok(Ended::Whole),
        Err(ExecutionError::Stopped { .. }) => Ok(Ended::Cut),
        // Whoever waits for a block that was killed has lost progress by right.
        Err(ExecutionError::LostProgress { .. } | ExecutionError::Deadlock { .. }) if is_killed => Ok(Ended::Cut),
        Err(error @ ExecutionError::LostProgress { .. }) => Err(Fault::LostProgress { text: error.to_string() }),
        Err(ExecutionError::Stacks { stacks, message }) => {
            Err(Fault::CannotRun(CannotRun::Memory { what: format!("{stacks} coroutine stacks ({message})") }))
        }
        Err(error) => Err(Fault::Execution { text: error.to_string() }),
    }
}
