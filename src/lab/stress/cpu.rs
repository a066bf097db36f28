//! Running a case on the CPU device, and what counts as a failure.

use super::case::{Case, Disturbance, MINIMUM_TILES, MINIMUM_WARPS, Memory, NO_REFERENCE};
use super::detector::NoMemory;
use super::draw::Draw;
use super::workspace;
use crate::abi;
use crate::cpu::{
    Access, AsyncStore, Copy, ExecutionError, LaunchSettings, MemoryBackend, Schedule, Stop, Synchronization,
    WeakMemory, WeakSettings, launch_on,
};
use crate::element::Instance;
use crate::file::reason;
use crate::kernels::mutant::{ONE_WORKSPACE, RELAUNCH_AFTER_ABORT};
use crate::lab::bounds::{Array, BoundsCheck};
use crate::lab::cpu_device::{AlignedBytes, GuardedArray, step_settings};
use crate::lab::cpu_kernels::kernel_body;
use crate::lab::dataset::Dataset;
use crate::strategy::launch::Addresses;
use crate::strategy::plan::{Plan, ScanRequest, Step};
use crate::strategy::{Descriptor, Mode};

/// How a run showed that something is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// So many output elements are not what they must be, the first at `index`.
    #[error("{}: expected {expected}, got {actual}", wrong_elements(*index, *mismatches))]
    WrongResult { index: u64, mismatches: u64, expected: String, actual: String },
    /// Bytes beside the output, or the input, were written.
    #[error("bytes beside the output, or the input, were written")]
    WroteElsewhere,
    /// The workspace is not as a launch must leave it.
    #[error("the workspace after the launch: {what}")]
    Workspace { what: String },
    /// Whoever can run only polls: who waits for whom.
    #[error("{text}")]
    LostProgress { text: String },
    /// The executor or the memory found a fault: a race, an access outside all arrays, a barrier that diverges.
    #[error("{text}")]
    Execution { text: String },
    /// None of the kernel's: the machine could not run it.
    #[error(transparent)]
    NoMemory(NoMemory),
}

impl Fault {
    /// A word for tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::WrongResult { .. } => "wrong result",
            Self::WroteElsewhere => "wrote elsewhere",
            Self::Workspace { .. } => "workspace",
            Self::LostProgress { .. } => "lost progress",
            Self::Execution { .. } => "fault",
            Self::NoMemory(_) => "no memory",
        }
    }
}

fn wrong_elements(index: u64, mismatches: u64) -> String {
    match mismatches {
        1 => format!("element {index} is wrong"),
        _ => format!("{mismatches} elements are wrong, the first at {index}"),
    }
}

/// A run that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("launch {}: {fault}", launch + 1)]
pub struct Failure {
    /// Which launch, from 0.
    pub launch: u32,
    /// How it showed.
    pub fault: Fault,
}

impl Failure {
    /// What the machine had no memory for, where the failure is not the kernel's.
    pub fn no_memory(&self) -> Option<&NoMemory> {
        match &self.fault {
            Fault::NoMemory(error) => Some(error),
            _ => None,
        }
    }
}

/// What a run that passed did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passed {
    /// Launches of the whole scan with every element right, of at least 8 tiles and 2 warps a block.
    pub schedules: u64,
    /// Those with every element right and fewer tiles, or of a strategy without tiles.
    pub smaller: u64,
    /// Those that were cut short on purpose: nothing of their output is looked at, but that of the next launch.
    pub cut: u64,
    /// Elements that were right.
    pub elements: u64,
    /// Tiles of each of `schedules`, for who counts them; sums of several runs leave them out.
    pub(super) tiles: Vec<u64>,
}

impl Passed {
    /// Adds what another run did.
    pub fn add(&mut self, other: &Self) {
        self.schedules += other.schedules;
        self.smaller += other.smaller;
        self.cut += other.cut;
        self.elements += other.elements;
    }

    /// All launches.
    pub fn launches(&self) -> u64 {
        self.schedules + self.smaller + self.cut
    }
}

/// Something that is told of accesses as they happen.
pub(super) trait Observer {
    /// An access by a thread, with the value that it moved; a fetch-and-add with the value before.
    fn observe(&mut self, access: &Access, value: &[u8]);
    /// So many bytes have landed in shared memory of a block, by a copy or a store that went on beside its thread.
    fn landed(&mut self, block: u64, access: &Access);
    /// Threads have met, or shared memory is there.
    fn synchronized(&mut self, event: &Synchronization);
    /// A launch of a kernel begins.
    fn begins(&mut self, step: &Step, workspace: &Places);
}

/// Runs a case.
///
/// # Errors
/// With what was wrong.
pub fn run(case: &Case) -> Result<Passed, Failure> {
    run_observed(case, None)
}

/// Coroutine stacks that a case needs at one time.
pub(super) fn stacks_of(case: &Case) -> usize {
    let Ok(plan) = Plan::new(&case.request) else { return 0 };
    let stacks_of_step = |step: &Step| {
        // With this seed the clusters are the largest.
        let (_, settings) = step_settings(step, 0);
        LaunchSettings { resident_blocks: case.resident_blocks, ..settings }.stacks()
    };
    let stacks = plan.steps.iter().map(stacks_of_step).max().unwrap_or(0);
    if matches!(case.disturbance, Disturbance::Overlap { .. }) { 2 * stacks } else { stacks }
}

/// Where a workspace lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// Address of the control block.
    pub control: usize,
    /// Address of the first descriptor.
    pub descriptors: usize,
    /// Bytes of all of them.
    pub descriptor_bytes: usize,
    /// Descriptors.
    pub capacity: u64,
    /// How they are laid out.
    pub layout: Descriptor,
    /// Bytes of a value.
    pub element_bytes: usize,
}

/// A control block and descriptors, kept by the kernels from launch to launch.
struct Workspace {
    control: Box<abi::lookback_control>,
    descriptors: AlignedBytes,
    capacity: u64,
    layout: Descriptor,
    element_bytes: usize,
}

impl Workspace {
    fn new(capacity: u64, layout: Descriptor, element_bytes: usize) -> Self {
        // The split layout asks for a multiple of 4.
        let capacity = capacity.next_multiple_of(4);
        let bytes = capacity * Plan::descriptor_bytes(layout, element_bytes);
        Self {
            control: Box::default(),
            descriptors: AlignedBytes::new(bytes as usize, 0),
            capacity,
            layout,
            element_bytes,
        }
    }

    fn places(&mut self) -> Places {
        Places {
            control: (&raw mut *self.control).expose_provenance(),
            descriptors: self.descriptors.bytes_mut().as_mut_ptr().expose_provenance(),
            descriptor_bytes: self.descriptors.bytes().len(),
            capacity: self.capacity,
            layout: self.layout,
            element_bytes: self.element_bytes,
        }
    }

    fn tag(&self, tile: u64) -> u32 {
        workspace::tag(self.descriptors.bytes(), self.layout, tile)
    }

    /// What a host does behind a launch that did not end: nothing of it may reach the next one.
    fn clean(&mut self) {
        let completed = self.control.completed_epochs + 1;
        *self.control = abi::lookback_control { completed_epochs: completed, ..Default::default() };
        if completed == abi::LOOKBACK_MAXIMUM_EPOCH {
            self.descriptors.bytes_mut().fill(0);
            self.control.completed_epochs = 0;
        }
    }

    /// Whether a launch at `epoch` left it as it must.
    fn check(&self, epoch: u32) -> Result<(), Fault> {
        let abi::lookback_control { ticket, finished_blocks, completed_epochs, .. } = *self.control;
        let wraps = epoch == abi::LOOKBACK_MAXIMUM_EPOCH;
        let expected = if wraps { 0 } else { epoch };
        let wrong = |what: String| Err(Fault::Workspace { what });
        if (ticket, finished_blocks, completed_epochs) != (0, 0, expected) {
            return wrong(format!(
                "ticket {ticket}, finished blocks {finished_blocks}, completed epochs {completed_epochs}; must be 0, 0, {expected}"
            ));
        }
        let left = (0..self.capacity).find(|&tile| self.tag(tile) != 0);
        match left.filter(|_| wraps) {
            Some(tile) => wrong(format!("descriptor {tile} has tag {:#x} after the wrap, must be 0", self.tag(tile))),
            None => Ok(()),
        }
    }
}

/// What happens in the middle of a launch.
type Interruption<'a> = (u64, &'a mut dyn FnMut() -> Result<(), String>);

/// The memory of a case, as the executor sees it: the model, and whoever looks on.
struct Watched<'a, 'observer> {
    inner: &'a mut dyn MemoryBackend,
    observer: Option<&'a mut (dyn Observer + 'observer)>,
    /// At the k-th access of the protocol something else happens first.
    at_access: Option<Interruption<'a>>,
    accesses: u64,
}

impl Watched<'_, '_> {
    fn before(&mut self, access: &Access) -> Result<(), String> {
        if !access.kind.is_protocol() {
            return Ok(());
        }
        if let Some((at, action)) = &mut self.at_access
            && *at == self.accesses
        {
            action()?;
        }
        self.accesses += 1;
        Ok(())
    }

    fn after(&mut self, access: &Access, value: &[u8]) {
        if let Some(observer) = self.observer.as_mut() {
            observer.observe(access, value);
        }
    }

    fn landed(&mut self, block: u64, access: &Access) {
        if let Some(observer) = self.observer.as_mut() {
            observer.landed(block, access);
        }
    }
}

impl MemoryBackend for Watched<'_, '_> {
    fn launch_begins(&mut self, grid_blocks: u64, block_threads: u32) -> Result<(), String> {
        self.inner.launch_begins(grid_blocks, block_threads)
    }

    fn load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String> {
        self.before(access)?;
        self.inner.load(access, value)?;
        self.after(access, value);
        Ok(())
    }

    fn store(&mut self, access: &Access, value: &[u8]) -> Result<(), String> {
        self.before(access)?;
        self.inner.store(access, value)?;
        self.after(access, value);
        Ok(())
    }

    fn fetch_add(&mut self, access: &Access, value: u32) -> Result<u32, String> {
        self.before(access)?;
        let before = self.inner.fetch_add(access, value)?;
        self.after(access, &before.to_ne_bytes());
        Ok(before)
    }

    fn fence(&mut self, access: &Access) -> Result<(), String> {
        self.inner.fence(access)?;
        if let Some(observer) = self.observer.as_mut() {
            observer.observe(access, &[]);
        }
        Ok(())
    }

    fn copy_begins(&mut self, copy: &Copy) -> Result<(), String> {
        self.inner.copy_begins(copy)
    }

    fn copy_lands(&mut self, copy: &Copy) -> Result<(), String> {
        self.inner.copy_lands(copy)?;
        self.landed(copy.target.block, &copy.target);
        Ok(())
    }

    fn store_begins(&mut self, store: &AsyncStore) -> Result<(), String> {
        self.inner.store_begins(store)
    }

    fn store_lands(&mut self, store: &AsyncStore) -> Result<(), String> {
        self.inner.store_lands(store)?;
        self.landed(store.block, &store.access);
        Ok(())
    }

    fn synchronize(&mut self, event: Synchronization) -> Result<(), String> {
        self.inner.synchronize(event)?;
        if let Some(observer) = self.observer.as_mut() {
            observer.synchronized(&event);
        }
        Ok(())
    }
}

/// Arrays of one launch of a scan.
struct Arrays {
    output: GuardedArray,
    separate_input: Option<GuardedArray>,
    scratch: AlignedBytes,
    readable: usize,
}

impl Arrays {
    fn new(request: &ScanRequest, plan: &Plan, input: &[u8]) -> Self {
        const POISON: u8 = 0xa5;
        let element_bytes = request.instance().element().bytes();
        let bytes = request.n as usize * element_bytes;
        // An exclusive scan must do without the last element, so the kernels do not get it.
        let readable = if request.mode == Mode::Exclusive { bytes.saturating_sub(element_bytes) } else { bytes };
        let output_offset = if request.in_place { request.input_offset } else { request.output_offset };
        let mut output = GuardedArray::new(bytes, output_offset);
        let mut separate_input = (!request.in_place).then(|| GuardedArray::new(readable, request.input_offset));
        let target = separate_input.as_mut().unwrap_or(&mut output);
        target.contents_mut()[..readable].copy_from_slice(&input[..readable]);
        Self { output, separate_input, scratch: AlignedBytes::new(plan.scratch_bytes as usize, POISON), readable }
    }

    fn input_address(&mut self) -> *mut u8 {
        self.separate_input.as_mut().unwrap_or(&mut self.output).address()
    }

    /// Compares with what must be there.
    fn check(&self, input: &[u8], expected: &[u8], instance: Instance) -> Result<(), Fault> {
        let (found, bytes) = (self.output.contents(), instance.element().bytes());
        let pairs = || found.chunks_exact(bytes).zip(expected.chunks_exact(bytes)).enumerate();
        let mut wrong = pairs().filter(|(_, (found, expected))| found != expected);
        if let Some((index, (actual, expected))) = wrong.next() {
            return Err(Fault::WrongResult {
                index: index as u64,
                mismatches: 1 + wrong.count() as u64,
                expected: instance.text(expected),
                actual: instance.text(actual),
            });
        }
        let input_is_whole = self
            .separate_input
            .as_ref()
            .is_none_or(|array| array.guards_are_whole() && array.contents() == &input[..self.readable]);
        if self.output.guards_are_whole() && input_is_whole { Ok(()) } else { Err(Fault::WroteElsewhere) }
    }
}

/// How a launch of the whole scan went.
enum Ended {
    Whole,
    /// A block was killed, or the launch was stopped on request.
    Cut,
}

/// Runs a case and tells an observer of what happens.
pub(super) fn run_observed(case: &Case, mut observer: Option<&mut dyn Observer>) -> Result<Passed, Failure> {
    let mut draw = Draw::new(case.seed ^ 0x005e_ed0f_0b0d_7e57);
    let request = &case.request;
    let element_bytes = request.instance().element().bytes();
    let failed = |launch: u32| move |fault: Fault| Failure { launch, fault };
    let broken = |text: String| Fault::Execution { text };
    let plan = Plan::new(request).map_err(|error| failed(0)(broken(error.to_string())))?;
    let dataset = Dataset::random(request.instance(), request.n, draw.word());
    let Some(expected) = dataset.expected_output(request.mode) else {
        return Err(failed(0)(broken(NO_REFERENCE.to_owned())));
    };
    let uses_descriptors = plan.steps.iter().any(|step| step.uses_descriptors());
    let layout = plan.layout;
    // Room for more than is needed: a wrap must clear that too.
    let capacity = plan.descriptors + draw.below(8);
    let mut workspace = Workspace::new(capacity, layout, element_bytes);
    workspace.control.completed_epochs = case.completed_epochs;
    let (shape, launches) = ((layout, workspace.capacity), u64::from(case.launches));
    let descriptors = workspace.descriptors.bytes_mut();
    workspace::fill(descriptors, shape, case.workspace, case.completed_epochs, launches, &mut draw);
    let host_epoch = case.completed_epochs + 1;

    let mut passed = Passed::default();
    for launch in 0..case.launches {
        // Behind a small launch a large one must find the workspace as good as new.
        let n = if launch == 0 { request.n } else { case.later_size(&mut draw) };
        let request = ScanRequest { n, ..*request };
        let bytes = n as usize * element_bytes;
        let disturbance = if launch == 0 { case.disturbance } else { Disturbance::None };
        let run = OneScan { case, request, host_epoch, disturbance, seed: draw.word() };
        let epoch = workspace.control.completed_epochs + 1;
        let plan = Plan::new(&request).map_err(|error| failed(launch)(broken(error.to_string())))?;
        let mut arrays = Arrays::new(&request, &plan, &dataset.input[..bytes]);
        let ended =
            run.execute(&plan, &mut arrays, workspace.places(), reborrow(&mut observer)).map_err(failed(launch))?;
        match ended {
            Ended::Whole => {
                arrays
                    .check(&dataset.input[..bytes], &expected[..bytes], request.instance())
                    .map_err(failed(launch))?;
                if uses_descriptors {
                    workspace.check(epoch).map_err(failed(launch))?;
                }
                passed.elements += n;
                let tiles = case.tiles_of(n);
                if tiles >= MINIMUM_TILES && request.config.block_threads.div_ceil(32) >= MINIMUM_WARPS {
                    passed.schedules += 1;
                    passed.tiles.push(tiles);
                } else {
                    passed.smaller += 1;
                }
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

/// One launch of a whole scan.
struct OneScan<'a> {
    case: &'a Case,
    request: ScanRequest,
    host_epoch: u32,
    disturbance: Disturbance,
    seed: u64,
}

impl OneScan<'_> {
    fn execute(
        &self,
        plan: &Plan,
        arrays: &mut Arrays,
        workspace: Places,
        mut observer: Option<&mut dyn Observer>,
    ) -> Result<Ended, Fault> {
        for (index, step) in plan.steps.iter().enumerate() {
            let seed = self.seed.wrapping_add(index as u64);
            if let Some(observer) = reborrow(&mut observer) {
                observer.begins(step, &workspace);
            }
            if let Ended::Cut = self.launch(step, seed, arrays, workspace, reborrow(&mut observer))? {
                return Ok(Ended::Cut);
            }
        }
        Ok(Ended::Whole)
    }

    fn launch(
        &self,
        step: &Step,
        seed: u64,
        arrays: &mut Arrays,
        workspace: Places,
        observer: Option<&mut dyn Observer>,
    ) -> Result<Ended, Fault> {
        let case = self.case;
        let fault = |text: String| Fault::Execution { text };
        let mutant = case.mutant.map_or(0, |mutant| mutant.number());
        let body = kernel_body(step.problem, step.kernel, mutant != 0).map_err(|error| fault(error.to_string()))?;
        let scratch = arrays.scratch.bytes_mut().as_mut_ptr();
        let (input, output) = (arrays.input_address(), arrays.output.address());
        let addresses = Addresses {
            input: input.expose_provenance() as u64,
            output: output.expose_provenance() as u64,
            scratch: scratch.expose_provenance() as u64,
            control: workspace.control as u64,
            descriptors: workspace.descriptors as u64,
            capacity: workspace.capacity,
        };
        let arguments = abi::lookback_launch { host_epoch: self.host_epoch, ..step.launch(&addresses) };
        let (config, settings) = step_settings(step, seed);
        let settings = LaunchSettings {
            resident_blocks: case.resident_blocks,
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

        let element_bytes = self.request.instance().element().bytes();
        let readable = arrays.readable;
        let mut regions = vec![
            Array { name: "the output", address: output.addr(), bytes: arrays.output.contents().len(), writable: true },
            Array {
                name: "the scratch memory",
                address: scratch.addr(),
                bytes: arrays.scratch.bytes().len(),
                writable: true,
            },
            Array {
                name: "the control block",
                address: workspace.control,
                bytes: size_of::<abi::lookback_control>(),
                writable: true,
            },
            Array {
                name: "the descriptors",
                address: workspace.descriptors,
                bytes: workspace.descriptor_bytes,
                writable: true,
            },
        ];
        if !self.request.in_place {
            regions.push(Array { name: "the input", address: input.addr(), bytes: readable, writable: false });
        }

        let overlapping = Overlap { case, seed };
        let same_workspace = case.mutant.is_some_and(|mutant| mutant.name == ONE_WORKSPACE);
        let mut shortage = None;
        let mut nested = || {
            overlapping.run(same_workspace.then_some(workspace)).map_err(|fault| {
                let text = format!("the launch in between: {fault}");
                // The launch around it ends by it, too, and not by a fault of its own.
                shortage = matches!(fault, Fault::NoMemory(_)).then_some(fault);
                text
            })
        };
        let at_access: Option<Interruption> = match self.disturbance {
            Disturbance::Overlap { after_accesses } => Some((after_accesses, &mut nested)),
            _ => None,
        };

        let mut model = match case.memory {
            Memory::Strong => Model::Strong(BoundsCheck::new(regions)),
            Memory::Weak => {
                let mut memory = WeakMemory::new(seed, WeakSettings::default());
                for Array { name, address, bytes, writable } in regions {
                    let granule = if address == workspace.control || address == workspace.descriptors {
                        4
                    } else {
                        element_bytes
                    };
                    memory.add_array(name, address, bytes, granule as u32, writable);
                }
                Model::Weak(Box::new(memory))
            }
        };
        let observer = observer.map(|observer| &mut *observer);
        let mut watched = Watched { inner: model.backend(), observer, at_access, accesses: 0 };
        // SAFETY: the body was compiled from `cuda/scan` for this executor and takes these two structs; `Plan`
        // sizes grid and scratch for `n` elements, the arrays are as large as it says and stay where they are, and
        // the back end lets the kernel touch nothing else.
        let launched = unsafe { launch_on(&mut watched, body, &config, &arguments, &settings) };
        if let Model::Weak(memory) = &mut model {
            memory.finish_launch();
        }
        if let Some(shortage) = shortage {
            return Err(shortage);
        }
        match launched {
            Ok(report) if report.stopped_blocks > 0 => Ok(Ended::Cut),
            Ok(_) => Ok(Ended::Whole),
            Err(ExecutionError::Stopped { .. }) => Ok(Ended::Cut),
            // Whoever waits for a block that was killed has lost progress by right.
            Err(ExecutionError::LostProgress { .. } | ExecutionError::Deadlock { .. })
                if matches!(self.disturbance, Disturbance::Kill { .. }) =>
            {
                Ok(Ended::Cut)
            }
            Err(error @ ExecutionError::LostProgress { .. }) => Err(Fault::LostProgress { text: error.to_string() }),
            Err(ExecutionError::Stacks { stacks, message }) => {
                Err(Fault::NoMemory(NoMemory { what: format!("{stacks} coroutine stacks ({message})") }))
            }
            Err(error) => Err(fault(error.to_string())),
        }
    }
}

/// What answers the accesses of a launch.
enum Model {
    Strong(BoundsCheck),
    Weak(Box<WeakMemory>),
}

impl Model {
    fn backend(&mut self) -> &mut dyn MemoryBackend {
        match self {
            Self::Strong(memory) => memory,
            Self::Weak(memory) => memory.as_mut(),
        }
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
                .map_err(|error| NoMemory { what: format!("a thread ({})", reason(&error)) })
                .map_err(Fault::NoMemory)?;
            nested.join().map_err(|_| Fault::Execution { text: "it panicked".to_owned() })?
        })
    }
}

/// One launch of a case on a workspace that another launch is using.
fn run_on(case: &Case, workspace: Places) -> Result<(), Fault> {
    let request = &case.request;
    let broken = |error: crate::strategy::ConfigError| Fault::Execution { text: error.to_string() };
    let plan = Plan::new(request).map_err(broken)?;
    let dataset = Dataset::random(request.instance(), request.n, case.seed);
    let expected = dataset.expected_output(request.mode).unwrap_or_default();
    let mut arrays = Arrays::new(request, &plan, &dataset.input);
    let run = OneScan { case, request: *request, host_epoch: 0, disturbance: Disturbance::None, seed: case.seed };
    run.execute(&plan, &mut arrays, workspace, None)?;
    arrays.check(&dataset.input, &expected, request.instance())
}
