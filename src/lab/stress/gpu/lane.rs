//! One stream of a case: its modules, workspace and output, and the launches of its runs.

use super::case::{Launching, StressCase};
use crate::abi;
use crate::cuda::compile::ENTRY_POINT;
use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::launch::{LaunchLimits, function, launch_limits, launch_scan};
use crate::cuda::memory::{Buffer, DeviceMemory};
use crate::gpu::Architecture;
use crate::lab::arrays::FILLING;
use crate::lab::cuda::graph::Graph;
use crate::lab::cuda::harness::launch_words;
use crate::lab::stress::draw::Draw;
use crate::lab::stress::{ONE_WORKSPACE, RELAUNCH_AFTER_ABORT, workspace};
use crate::strategy::launch::{Addresses, CONTROL_BYTES};
use crate::strategy::plan::{KernelKey, Plan, RegionKey};
use crate::strategy::{ConfigError, Descriptor, Mode};
use cudarc::driver::sys::{self, CUfunction_attribute as FunctionAttribute};
use cudarc::driver::{CudaFunction, CudaModule, CudaStream, DevicePtrMut, result};
use cudarc::nvrtc::Ptx;
use std::ffi::c_void;
use std::sync::Arc;

/// Bytes around the output that nobody may write; a multiple of 16.
const GUARD_BYTES: u64 = 64;
/// Modules that a turn tells the next seed; no strategy has more kernels.
const MODULES: usize = 6;
/// Threads of the kernels in `cuda/stress.cu`.
const THREADS: u32 = 256;

/// The kernels of `cuda/stress.cu`.
#[derive(Debug)]
pub(super) struct Tools {
    module: Arc<CudaModule>,
    raise_epochs: CudaFunction,
    abort_launch: CudaFunction,
    occupy: CudaFunction,
}

impl Tools {
    pub(super) fn new(module: Arc<CudaModule>, occupied_bytes: u32) -> Result<Self, CudaError> {
        let occupy = function(&module, "stress_occupy")?;
        allow_shared(&occupy, occupied_bytes)?;
        Ok(Self {
            raise_epochs: function(&module, "stress_raise_epochs")?,
            abort_launch: function(&module, "stress_abort_launch")?,
            occupy,
            module,
        })
    }

    fn turn(&self, element_bytes: usize) -> Result<CudaFunction, CudaError> {
        function(&self.module, &format!("stress_turn_{element_bytes}"))
    }

    /// Holds `blocks` multiprocessors for a while.
    pub(super) fn occupy(
        &self,
        stream: &CudaStream,
        blocks: u32,
        shared_bytes: u32,
        nanoseconds: u64,
    ) -> Result<(), CudaError> {
        launch_words(&self.occupy, (blocks, 32), shared_bytes, &[nanoseconds], stream)
    }
}

/// Lets launches of a kernel ask for so much dynamic shared memory.
fn allow_shared(kernel: &CudaFunction, bytes: u32) -> Result<(), CudaError> {
    kernel
        .set_attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32)
        .during(|| format!("allowing a kernel {bytes} bytes of shared memory"))
}

/// Shared memory of the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedMemory {
    /// The most that a block may have.
    pub(super) block_bytes: u64,
    /// What a multiprocessor has.
    pub(super) multiprocessor_bytes: u64,
    /// What each block takes beside its own.
    pub(super) reserved_bytes: u64,
}

impl SharedMemory {
    /// Dynamic shared memory with which `blocks` blocks fit on a multiprocessor and no more.
    fn dynamic_bytes(self, blocks: u32, static_bytes: u64) -> u32 {
        if blocks == 0 {
            return 0;
        }
        let share = (self.multiprocessor_bytes / u64::from(blocks)).saturating_sub(self.reserved_bytes);
        // A multiple of what shared memory is handed out in.
        (share.min(self.block_bytes).saturating_sub(static_bytes) / 128 * 128) as u32
    }

    /// With which nothing else fits beside a block.
    pub(super) fn all(self) -> u32 {
        self.dynamic_bytes(1, 0)
    }
}

/// What a run loads and must store, as it is on the device before any run.
#[derive(Debug)]
pub(super) struct Data {
    /// The inputs, in the kernels' order.
    pub(super) inputs: Vec<Buffer>,
    /// What is stored, from the first place of the output on.
    pub(super) stored: Buffer,
    /// Elements of that.
    pub(super) elements: u64,
}

/// For each size of a case some that runs take turns with.
pub(super) type DataOfSizes = Vec<Vec<Arc<Data>>>;

/// The inputs of a run where kernels load them.
#[derive(Debug)]
pub(super) struct Placed {
    _arrays: Vec<Buffer>,
    /// In the kernels' order; 0 for the one that is scanned in place.
    addresses: Vec<u64>,
}

/// Those of each size and each of its data.
pub(super) type PlacedOfSizes = Arc<Vec<Vec<Placed>>>;

/// `stress_turn` in `cuda/stress.cu`, whose members are all 8 bytes wide.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Turn {
    buffer: u64,
    elements: u64,
    first: u64,
    n: u64,
    is_first: u64,
    reference: u64,
    next_input: u64,
    next_n: u64,
    tally: u64,
    seed: u64,
    states: [u64; MODULES],
}

/// `stress_tally` in `cuda/stress.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct Tally {
    pub(super) run: u64,
    pub(super) wrong_runs: u64,
    pub(super) wrong_elements: u64,
    pub(super) first_wrong: u64,
    finished_blocks: u32,
    is_wrong: u32,
}

/// What a lane's modules report.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waits {
    pub(super) faults: u64,
    pub(super) waiting_tile: u64,
    pub(super) missing_tile: u64,
    pub(super) delays: u64,
}

#[derive(Debug)]
struct LoadedModule {
    key: KernelKey,
    function: CudaFunction,
    limits: LaunchLimits,
    state: u64,
}

struct PreparedStep {
    module: usize,
    grid_blocks: u32,
    launch: abi::lookback_launch,
}

struct Run {
    n: u64,
    steps: Vec<PreparedStep>,
    turn: Turn,
}

/// One stream with all that its runs use. Forgotten, not dropped, once a launch hangs.
pub(super) struct Lane {
    graph: Option<Graph>,
    pub(super) stream: Arc<CudaStream>,
    modules: Vec<LoadedModule>,
    turn: CudaFunction,
    turn_blocks: u32,
    runs: Vec<Run>,
    control: u64,
    descriptors: u64,
    layout: Descriptor,
    tally: Buffer,
    first: u64,
    _output: Buffer,
    _workspace: Option<Buffer>,
    _scratch: Option<Buffer>,
    _findings: Option<Buffer>,
    _inputs: PlacedOfSizes,
}

/// What all lanes of a case share.
pub(super) struct LaneSetup<'a> {
    pub(super) case: &'a StressCase,
    pub(super) plans: &'a [Plan],
    pub(super) memory: &'a Arc<DeviceMemory>,
    pub(super) tools: &'a Tools,
    pub(super) shared: SharedMemory,
    pub(super) data: &'a DataOfSizes,
    pub(super) inputs: &'a PlacedOfSizes,
    pub(super) wait_nanoseconds: u64,
    pub(super) architecture: Architecture,
    pub(super) cubin: &'a dyn Fn(KernelKey) -> Result<Vec<u8>, CudaError>,
}

impl Lane {
    /// Lane number `index`; `sharing` is the lane whose workspace it is to use, by fault.
    pub(super) fn new(setup: &LaneSetup<'_>, index: u64, sharing: Option<&Self>) -> Result<Self, CudaError> {
        let LaneSetup { case, plans, memory, .. } = *setup;
        let context = memory.context();
        let stream = context.new_stream().during(|| String::from("making a stream"))?;
        let bytes = case.workload.element().bytes() as u64;
        let first = (GUARD_BYTES + u64::from(case.request.output_offset)) / bytes;
        let most = case.sizes.iter().map(|&n| case.workload_of(n).output_elements(n)).max().unwrap_or(0);
        let elements = first + most + GUARD_BYTES / bytes;
        let output = memory.allocate(elements * bytes, "an output under stress")?;
        let tally = memory.allocate(size_of::<Tally>() as u64, "the tally of a lane")?;
        let nothing =
            Tally { run: 0, wrong_runs: 0, wrong_elements: 0, first_wrong: u64::MAX, finished_blocks: 0, is_wrong: 0 };
        tally.upload(0, bytemuck::bytes_of(&nothing), &stream)?;
        let largest = plans.iter().max_by_key(|plan| plan.descriptors);
        let capacity = RegionKey::capacity(largest.map_or(0, |plan| plan.descriptors));
        let mut draw = Draw::for_purpose(case.seed, index);
        let workspace = match sharing {
            None if let Some(plan) = largest.filter(|_| capacity > 0) => {
                let workspace = first_workspace(case, RegionKey::of(plan), capacity, &mut draw);
                let buffer = memory.allocate(workspace.len() as u64, "a workspace under stress")?;
                buffer.upload(0, &workspace, &stream)?;
                Some(buffer)
            }
            _ => None,
        };
        let scratch_bytes = plans.iter().map(|plan| plan.scratch_bytes).max().unwrap_or(0);
        let scratch = if scratch_bytes > 0 {
            let scratch = memory.allocate(scratch_bytes, "temporary arrays under stress")?;
            scratch.fill(0, scratch_bytes, FILLING, &stream)?;
            Some(scratch)
        } else {
            None
        };
        let findings = match case.request.problem.has_findings() {
            true => Some(memory.allocate_zeroed(size_of::<abi::lookback_findings>() as u64, "what kernels find")?),
            false => None,
        };
        let (control, descriptors) = match (&workspace, sharing) {
            (Some(buffer), _) => (buffer.address(), buffer.address() + CONTROL_BYTES),
            (None, Some(lane)) => (lane.control, lane.descriptors),
            (None, None) => (0, 0),
        };
        let mut lane = Self {
            graph: None,
            modules: Vec::new(),
            turn: setup.tools.turn(bytes as usize)?,
            turn_blocks: elements.div_ceil(4 * u64::from(THREADS)).clamp(1, 64) as u32,
            runs: Vec::new(),
            control,
            descriptors,
            layout: largest.map_or(Descriptor::Packed64, |plan| plan.layout),
            tally,
            first,
            stream,
            _output: output,
            _workspace: workspace,
            _scratch: scratch,
            _findings: findings,
            _inputs: Arc::clone(setup.inputs),
        };
        for plan in plans {
            for step in &plan.steps {
                lane.load(setup, step.key())?;
            }
        }
        lane.prepare_runs(setup, elements, capacity, &mut draw)?;
        lane.reset_states(case, setup.wait_nanoseconds)?;
        lane.turn_first(setup)?;
        Ok(lane)
    }

    /// A module of its own for each lane: its state is the lane's alone.
    fn load(&mut self, setup: &LaneSetup<'_>, key: KernelKey) -> Result<(), CudaError> {
        if self.modules.iter().any(|module| module.key == key) {
            return Ok(());
        }
        let context = setup.memory.context();
        let module = context
            .load_module(Ptx::from_binary((setup.cubin)(key)?))
            .during(|| String::from("loading a kernel made for stress"))?;
        let function = function(&module, ENTRY_POINT)?;
        let static_bytes = function.shared_size_bytes().during(|| String::from("asking about a kernel"))?;
        let mut limits = launch_limits(&function, context, key, setup.architecture)?;
        // Beside what the kernel takes, as much as keeps other blocks out. A cluster is resident as a whole or not at
        // all, and takes what multiprocessors it finds.
        if !limits.is_cluster {
            limits.shared_bytes = setup
                .shared
                .dynamic_bytes(setup.case.blocks_per_multiprocessor, static_bytes.max(0) as u64)
                .max(limits.shared_bytes);
        }
        if limits.shared_bytes > 0 {
            allow_shared(&function, limits.shared_bytes)?;
        }
        let state = {
            let mut view = module
                .get_global("lookback_stress_state", &self.stream)
                .during(|| String::from("looking up the state of a kernel made for stress"))?;
            let (address, _written) = view.device_ptr_mut(&self.stream);
            address
        };
        self.modules.push(LoadedModule { key, function, limits, state });
        Ok(())
    }

    fn prepare_runs(
        &mut self,
        setup: &LaneSetup<'_>,
        elements: u64,
        capacity: u64,
        draw: &mut Draw,
    ) -> Result<(), ConfigError> {
        let LaneSetup { case, plans, data, .. } = *setup;
        let mut states = [0; MODULES];
        for (state, module) in states.iter_mut().zip(&self.modules) {
            *state = module.state;
        }
        let cycle = u64::from(case.cycle);
        let sizes: Vec<usize> = (0..cycle).map(|_| draw.below(plans.len() as u64) as usize).collect();
        let seed = draw.word();
        let output = self._output.address() + self.first * case.workload.element().bytes() as u64;
        let own = case.workload.own_place();
        for (index, &size) in sizes.iter().enumerate() {
            let next = (index + 1) % sizes.len();
            // Other data than the run before: what that one left would be right otherwise.
            let of = |index: usize| &data[sizes[index]][index % data[sizes[index]].len()];
            let (now, then) = (of(index), of(next));
            let n = case.sizes[size];
            let mut inputs = setup.inputs[size][index % data[size].len()].addresses.clone();
            if case.request.in_place {
                inputs[own] = output;
            }
            let (_, places) = case.prepare(n, &inputs, output)?;
            let addresses = Addresses {
                scratch: self._scratch.as_ref().map_or(0, Buffer::address),
                control: self.control,
                descriptors: self.descriptors,
                capacity,
                findings: self._findings.as_ref().map_or(0, Buffer::address),
                ..places
            };
            let steps = plans[size].steps.iter().map(|step| PreparedStep {
                module: self.modules.iter().position(|module| module.key == step.key()).unwrap_or_default(),
                // `MAXIMUM_ELEMENTS` blocks at most.
                grid_blocks: step.grid_blocks as u32,
                // An epoch that is never advanced: what a graph makes of one that the host passes.
                launch: abi::lookback_launch { host_epoch: 1, ..step.launch(&addresses) },
            });
            let steps = steps.collect();
            let turn = Turn {
                buffer: self._output.address(),
                elements,
                first: self.first,
                n: now.elements.min(case.workload_of(n).output_elements(n)),
                is_first: 0,
                reference: now.stored.address(),
                next_input: if case.request.in_place { then.inputs[own].address() } else { 0 },
                next_n: case.sizes[sizes[next]],
                tally: self.tally.address(),
                seed,
                states,
            };
            self.runs.push(Run { n, steps, turn });
        }
        Ok(())
    }

    /// What the modules are told.
    fn reset_states(&self, case: &StressCase, wait_nanoseconds: u64) -> Result<(), CudaError> {
        let state = abi::lookback_stress {
            seed: 0,
            wait_nanoseconds,
            delay_rate: case.delay_rate,
            delay_nanoseconds: case.delay_nanoseconds,
            faults: 0,
            delays: 0,
            waiting_tile: 0,
            missing_tile: 0,
        };
        for module in &self.modules {
            // SAFETY: the module's own variable, of this type (the modules are compiled from `cuda/abi.h`); `state`
            // outlives the wait.
            unsafe { result::memcpy_htod_async(module.state, std::slice::from_ref(&state), self.stream.cu_stream()) }
                .and_then(|()| self.stream.synchronize())
                .during(|| String::from("telling a kernel how to delay"))?;
        }
        Ok(())
    }

    /// Fills the output for the first run and draws its seed.
    fn turn_first(&self, setup: &LaneSetup<'_>) -> Result<(), CudaError> {
        let Some(last) = self.runs.last() else { return Ok(()) };
        let turn = Turn { is_first: 1, ..last.turn };
        self.launch_turn(&turn)?;
        setup.memory.finish(&self.stream, std::time::Duration::from_secs(20), "filling the first output")
    }

    fn launch_turn(&self, turn: &Turn) -> Result<(), CudaError> {
        let mut arguments = [std::ptr::from_ref(turn).cast_mut().cast::<c_void>()];
        // SAFETY: the kernel takes one `stress_turn` by value, which the driver copies during the call; the
        // addresses in it are of buffers that live as long as the lane, and of data that outlives it.
        unsafe {
            result::launch_kernel(
                self.turn.cu_function(),
                (self.turn_blocks, 1, 1),
                (THREADS, 1, 1),
                0,
                self.stream.cu_stream(),
                &mut arguments,
            )
        }
        .during(|| String::from("launching a comparison"))
    }

    /// Puts the launches of a cycle onto the stream.
    fn enqueue(&self, case: &StressCase, tools: &Tools) -> Result<(), CudaError> {
        let fault = case.mutant.map(|mutant| mutant.name.as_str());
        if self.control != 0 && case.wraps {
            let words = [self.control, u64::from(case.completed_epochs)];
            launch_words(&tools.raise_epochs, (1, 32), 0, &words, &self.stream)?;
        }
        if self.control != 0 && fault == Some(RELAUNCH_AFTER_ABORT) {
            let tiles = self.runs.first().and_then(|run| run.steps.first()).map_or(0, |step| step.launch.tiles);
            let words = [self.control, self.descriptors, self.layout as u64, tiles.div_ceil(2), tiles / 3];
            launch_words(&tools.abort_launch, (1, THREADS), 0, &words, &self.stream)?;
        }
        for run in &self.runs {
            for step in &run.steps {
                let module = &self.modules[step.module];
                let blocks = module.limits.blocks(step.grid_blocks);
                let (kernel, problem, config) = &module.key;
                let threads = kernel.block_threads(config.block_threads, config.composition, *problem);
                // SAFETY: the addresses are of buffers that live as long as the lane. What a kernel with a fault does
                // beyond them is the fault that is looked for: such kernels run in a process of their own.
                unsafe { launch_scan(&module.function, (blocks, threads), module.limits, &step.launch, &self.stream) }?;
            }
            self.launch_turn(&run.turn)?;
        }
        Ok(())
    }

    /// Captures a cycle, if the case asks for a graph.
    pub(super) fn capture(
        &mut self,
        case: &StressCase,
        tools: &Tools,
        memory: &Arc<DeviceMemory>,
    ) -> Result<(), CudaError> {
        if case.launching != Launching::Graph {
            return Ok(());
        }
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        let graph = Graph::capture(memory, &self.stream, mode, || self.enqueue(case, tools))??;
        self.graph = Some(graph);
        Ok(())
    }

    /// Starts a cycle of runs.
    pub(super) fn start_cycle(&self, case: &StressCase, tools: &Tools) -> Result<(), CudaError> {
        match &self.graph {
            // SAFETY: what the graph's launches use is the lane's.
            Some(graph) => unsafe { graph.launch(&self.stream) },
            None => self.enqueue(case, tools),
        }
    }

    /// Elements that a cycle scans.
    pub(super) fn elements_of_cycle(&self) -> u64 {
        self.runs.iter().map(|run| run.n).sum()
    }

    /// Index of the element at this place of the buffer: negative in front of the output.
    pub(super) fn index_of(&self, place: u64) -> i64 {
        place as i64 - self.first as i64
    }

    /// What the lane has seen so far; the stream was waited for.
    pub(super) fn tally(&self) -> Result<Tally, CudaError> {
        let mut bytes = [0; size_of::<Tally>()];
        self.tally.download(0, &mut bytes, &self.stream)?;
        Ok(bytemuck::pod_read_unaligned(&bytes))
    }

    /// Likewise of the modules.
    pub(super) fn waits(&self) -> Result<Waits, CudaError> {
        let mut waits = Waits::default();
        for module in &self.modules {
            let mut state = [abi::lookback_stress::default()];
            // SAFETY: the module's own variable, of this type; `state` is borrowed until the wait.
            unsafe { result::memcpy_dtoh_async(&mut state, module.state, self.stream.cu_stream()) }
                .and_then(|()| self.stream.synchronize())
                .during(|| String::from("reading what a kernel reports"))?;
            let [state] = state;
            waits.delays += u64::from(state.delays);
            if state.faults > 0 {
                waits.faults += u64::from(state.faults);
                (waits.waiting_tile, waits.missing_tile) = (state.waiting_tile, state.missing_tile);
            }
        }
        Ok(waits)
    }
}

/// Whether a fault of the host lets lanes share a workspace.
pub(super) fn shares_workspace(case: &StressCase) -> bool {
    case.mutant.is_some_and(|mutant| mutant.name == ONE_WORKSPACE)
}

/// The inputs of a case, each ending where its buffer ends, so that a tool sees a read beyond it.
pub(super) fn place_inputs(
    case: &StressCase,
    data: &DataOfSizes,
    memory: &Arc<DeviceMemory>,
    stream: &CudaStream,
) -> Result<PlacedOfSizes, CudaError> {
    let replaced = case.request.in_place.then(|| case.workload.own_place());
    // The exclusive scan of one array of numbers must do without the last element.
    let unread = u64::from(case.request.mode == Mode::Exclusive && case.workload.defined().is_none());
    let place = |(&n, sets): (&u64, &Vec<Arc<Data>>)| {
        let workload = case.workload_of(n);
        let offsets: Vec<u32> = workload.input_offsets(n, case.request.input_offset).collect();
        let place = |set: &Arc<Data>| {
            let mut placed = Placed { _arrays: Vec::new(), addresses: Vec::new() };
            for (at, (((element, elements), master), &offset)) in
                workload.inputs(n).zip(&set.inputs).zip(&offsets).enumerate()
            {
                if replaced == Some(at) {
                    placed.addresses.push(0);
                    continue;
                }
                let (bytes, offset) = ((elements - unread) * element.bytes() as u64, u64::from(offset));
                let input = memory.allocate(offset + bytes, "an input under stress")?;
                input.copy_from(offset, master, 0, bytes, stream)?;
                placed.addresses.push(input.address() + offset);
                placed._arrays.push(input);
            }
            Ok(placed)
        };
        sets.iter().map(place).collect::<Result<Vec<_>, CudaError>>()
    };
    Ok(Arc::new(case.sizes.iter().zip(data).map(place).collect::<Result<_, CudaError>>()?))
}

/// Control block and descriptors before the first launch.
fn first_workspace(
    case: &StressCase,
    RegionKey { layout, descriptor_bytes }: RegionKey,
    capacity: u64,
    draw: &mut Draw,
) -> Vec<u8> {
    // More launches than any case has.
    const LAUNCHES: u64 = 1 << 24;
    let mut bytes = vec![0_u8; (CONTROL_BYTES + capacity * descriptor_bytes) as usize];
    let at = std::mem::offset_of!(abi::lookback_control, completed_epochs);
    bytes[at..at + 4].copy_from_slice(&case.completed_epochs.to_le_bytes());
    let descriptors = &mut bytes[CONTROL_BYTES as usize..];
    workspace::fill(descriptors, (layout, capacity), case.workspace, case.completed_epochs, LAUNCHES, draw);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::stress::PLAIN;
    use crate::lab::stress::gpu::case::Scale;
    use crate::lab::workload::ProblemKind;
    use crate::strategy::plan::Step;
    use std::collections::HashSet;

    #[test]
    fn no_case_has_more_kernels_than_a_turn_tells_seeds() {
        for kind in ProblemKind::ALL {
            for index in 0..40 {
                let case = StressCase::draw(&[*kind], 9, index, 40, None, Scale::Full);
                let plans = case.plans().expect("checked when it was drawn");
                let kernels: HashSet<_> = plans.iter().flat_map(|plan| &plan.steps).map(Step::key).collect();
                assert!((1..=MODULES).contains(&kernels.len()), "{case}: {}", kernels.len());
            }
        }
    }

    #[test]
    fn no_workspace_starts_with_a_descriptor_of_a_coming_launch() {
        for index in 0..2000 {
            let case = StressCase::draw(PLAIN, 5, index, 100, None, Scale::Full);
            let layout = case.request.config.descriptor.expect("drawn");
            let bytes = case.workload.element().bytes();
            let descriptor_bytes = Plan::descriptor_bytes(layout, bytes, bytes);
            let bytes = first_workspace(&case, RegionKey { layout, descriptor_bytes }, 64, &mut Draw::new(index));
            let (control, descriptors) = bytes.split_at(CONTROL_BYTES as usize);
            let control: Vec<u32> = control[..16].chunks(4).map(bytemuck::pod_read_unaligned).collect();
            assert_eq!(control, [0, 0, case.completed_epochs, 0], "the control block is valid");
            for number in 0..workspace::tags(descriptors, layout, 64) {
                let tag = workspace::tag(descriptors, layout, number);
                let epoch = u64::from(tag >> abi::LOOKBACK_STATUS_BITS);
                let first = u64::from(case.completed_epochs) + 1;
                let last = (first + case.runs).min(u64::from(abi::LOOKBACK_MAXIMUM_EPOCH));
                assert!(tag == 0 || !(first..=last).contains(&epoch), "{case}: {tag:#x}");
            }
        }
    }

    #[test]
    fn shared_memory_is_asked_for_until_so_many_blocks_fit() {
        let hopper = SharedMemory { block_bytes: 232_448, multiprocessor_bytes: 233_472, reserved_bytes: 1024 };
        assert_eq!(hopper.dynamic_bytes(0, 500), 0);
        assert_eq!(hopper.dynamic_bytes(1, 448), 232_000 / 128 * 128);
        for blocks in [1, 2, 4] {
            let block = u64::from(hopper.dynamic_bytes(blocks, 448)) + 448 + 1024;
            assert!(block * u64::from(blocks) <= 233_472 && block * u64::from(blocks + 1) > 233_472);
        }
    }

    #[test]
    fn turn_and_tally_have_the_size_of_the_kernels() {
        assert_eq!(size_of::<Turn>(), 8 * (10 + MODULES));
        assert_eq!(size_of::<Tally>(), 40);
    }
}
