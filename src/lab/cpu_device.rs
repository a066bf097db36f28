//! The CPU device: plans executed by the coroutine executor.

use crate::abi;
use crate::cpu::backend::NEAR_BYTES;
use crate::cpu::{BlockOrder, LaunchReport, LaunchSettings, Schedule, TileStep};
use crate::cpu::{MemoryBackend, Stage, launch, launch_in_streams, launch_on, most_stacks};
use crate::element::ElementType;
use crate::lab::arrays::{FILLING, Guarded};
use crate::lab::bounds::{Array, BoundsCheck};
use crate::lab::cpu_kernels::kernel_body;
use crate::lab::dataset::Dataset;
use crate::lab::device::{Counters, Device, DeviceDescription, DeviceError, Outcome, RunSettings, TraceSettings};
use crate::lab::trace::{self, Clock, Event, Recording};
use crate::lab::verify::verify;
use crate::lab::workload::Workload;
use crate::ranks::{Hand, RankError};
use crate::strategy::call::{Lent, Prepared, check_findings};
use crate::strategy::launch::{Addresses, Arrays};
use crate::strategy::plan::{Plan, RegionKey, ScanRequest, Step};
use crate::strategy::ring::Ring;
use crate::strategy::{Choices, Mode};
use bytemuck::Pod;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut, Range};
use std::time::Instant;

/// How the CPU device runs every launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuSettings {
    /// Blocks that may be started and not yet ended at one time; fewer where so many coroutine stacks
    /// would not fit into one process.
    pub resident_blocks: u32,
    /// In which order blocks start.
    pub block_order: BlockOrder,
    /// Who runs next.
    pub schedule: Schedule,
    /// Whether every access is checked to lie inside an array of its launch (slow).
    pub check_bounds: bool,
    /// Whether plain and shared accesses are scheduling points too, so that a random schedule shows a
    /// missing barrier (slow).
    pub plain_points: bool,
}

impl Default for CpuSettings {
    fn default() -> Self {
        Self {
            resident_blocks: 4,
            block_order: BlockOrder::InOrder,
            schedule: Schedule::Fair,
            check_bounds: false,
            plain_points: false,
        }
    }
}

impl CpuSettings {
    /// As many blocks as there is work for, and who runs next drawn from the seed: nearest to a GPU, and what the command line
    /// takes where it says nothing.
    pub fn like_a_gpu() -> Self {
        Self { resident_blocks: 64, schedule: Schedule::Random { preemption: 0.0 }, ..Self::default() }
    }

    /// For one of so many devices that run side by side: of more than a few each lets fewer blocks be resident, so that the
    /// coroutine stacks of all, whatever their blocks, fit into one process.
    #[must_use]
    pub fn beside_others(self, devices: usize) -> Self {
        if devices <= LAUNCHES_AT_ONCE {
            return self;
        }
        let of_all = LAUNCHES_AT_ONCE as u32 * most_resident_blocks(abi::LOOKBACK_MAXIMUM_BLOCK_THREADS);
        let room = (of_all / devices as u32).max(1);
        Self { resident_blocks: self.resident_blocks.min(room), ..self }
    }
}

/// Guard bytes before and after input and output; a multiple of what offsets count within.
const GUARD_BYTES: u64 = NEAR_BYTES as u64 + 64;

/// A line of the L2 cache: kernels place what they read by where it lies in one.
#[derive(Debug, Clone, Copy, bytemuck::Zeroable, bytemuck::Pod)]
#[repr(C, align(128))]
struct CacheLine([u8; abi::LOOKBACK_CACHE_LINE_BYTES as usize]);

/// Lines on either side of whatever a kernel has, which nothing else uses: what is beside one array is not beside another.
const MARGIN_LINES: usize = NEAR_BYTES / size_of::<CacheLine>() + 1;

/// Bytes whose first is aligned to a line of the L2 cache, far from all others.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    lines: Vec<CacheLine>,
    bytes: usize,
}

impl AlignedBytes {
    pub fn new(bytes: usize, fill: u8) -> Self {
        let line = CacheLine([fill; abi::LOOKBACK_CACHE_LINE_BYTES as usize]);
        Self { lines: vec![line; bytes.div_ceil(size_of::<CacheLine>()) + 2 * MARGIN_LINES], bytes }
    }

    /// These values.
    pub fn of<T: Pod>(values: &[T]) -> Self {
        let mut memory = Self::new(size_of_val(values), 0);
        memory.bytes_mut().copy_from_slice(bytemuck::cast_slice(values));
        memory
    }

    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines[MARGIN_LINES..])[..self.bytes]
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines[MARGIN_LINES..])[..self.bytes]
    }
}

/// A value of the host's that kernels write, far from all others: the middle one of so many.
pub(crate) struct Apart<T>(Vec<T>);

impl<T> Apart<T> {
    const MARGIN: usize = NEAR_BYTES / size_of::<T>() + 1;
}

impl<T: Clone + Default> Default for Apart<T> {
    fn default() -> Self {
        Self(vec![T::default(); 2 * Self::MARGIN + 1])
    }
}

impl<T> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0[Self::MARGIN]
    }
}

impl<T> DerefMut for Apart<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0[Self::MARGIN]
    }
}

/// An array between guard bytes, at a chosen address modulo [`ScanRequest::OFFSETS`].
pub(crate) struct GuardedArray {
    memory: AlignedBytes,
    place: Guarded,
}

impl GuardedArray {
    pub fn new(bytes: usize, offset: u32) -> Self {
        // At one size or another at every place within a line, and at one size always at the same.
        let sector = bytes as u64 / u64::from(ScanRequest::OFFSETS) % 4;
        let start = GUARD_BYTES + sector * u64::from(ScanRequest::OFFSETS) + u64::from(offset);
        let place = Guarded { start, bytes: bytes as u64, after: GUARD_BYTES };
        Self { memory: AlignedBytes::new(place.total_bytes() as usize, FILLING), place }
    }

    pub fn contents(&self) -> &[u8] {
        &self.memory.bytes()[indices(self.place.array())]
    }

    pub fn contents_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[indices(self.place.array())]
    }

    pub fn address(&mut self) -> *mut u8 {
        self.contents_mut().as_mut_ptr()
    }

    /// Whether nobody wrote beside the array.
    pub fn guards_are_whole(&self) -> bool {
        let whole = |guard| self.memory.bytes()[indices(guard)].iter().all(|&byte| byte == FILLING);
        self.place.guards().into_iter().all(whole)
    }
}

fn indices(bytes: Range<u64>) -> Range<usize> {
    bytes.start as usize..bytes.end as usize
}

/// Control block and descriptors, zeroed when made and kept by the kernels from then on. One for each [`RegionKey`].
struct Workspace {
    control: Apart<abi::lookback_control>,
    descriptors: AlignedBytes,
    capacity: u64,
}

impl Workspace {
    fn new(key: RegionKey, descriptors: u64) -> Self {
        let capacity = RegionKey::capacity(descriptors);
        let descriptors = AlignedBytes::new((capacity * key.descriptor_bytes) as usize, 0);
        Self { control: Apart::default(), descriptors, capacity }
    }
}

/// The CPU as a device: the kernels run as coroutines, deterministically for a seed. Its wall time says
/// nothing about a GPU.
pub struct CpuDevice {
    settings: CpuSettings,
    dataset: Option<Dataset>,
    workspaces: HashMap<RegionKey, Workspace>,
    /// What warps came to with tiles, while somebody looks.
    recorded: Option<Vec<Event>>,
}

impl CpuDevice {
    /// A device with no dataset and no workspace.
    pub fn new(settings: CpuSettings) -> Self {
        Self { settings, dataset: None, workspaces: HashMap::new(), recorded: None }
    }

    /// The settings of the launches to come.
    pub(crate) fn settings(&self) -> CpuSettings {
        self.settings
    }

    /// Replaces the settings of the launches to come.
    pub fn configure(&mut self, settings: CpuSettings) {
        self.settings = settings;
    }

    /// Sets the number of completed launches of every workspace, as if so many had run: for tests of the
    /// epoch's wrap. The largest is `LOOKBACK_MAXIMUM_EPOCH - 1`.
    pub fn set_completed_epochs(&mut self, completed: u32) {
        for workspace in self.workspaces.values_mut() {
            workspace.control.completed_epochs = completed;
        }
    }

    /// Completed launches of the workspace of such descriptors, if there is one.
    pub fn completed_epochs(&self, key: RegionKey) -> Option<u32> {
        self.workspaces.get(&key).map(|workspace| workspace.control.completed_epochs)
    }

    /// Scans `input` into `output` once. In place, `input` is copied to where the output is to be.
    ///
    /// # Errors
    /// When the configuration cannot be launched or the executor finds a fault in a kernel.
    ///
    /// # Panics
    /// When the slices are not `request.n` elements long (`input` may lack the last one of an exclusive
    /// scan).
    pub fn scan(
        &mut self,
        request: &ScanRequest,
        input: &[u8],
        output: &mut [u8],
        seed: u64,
    ) -> Result<Counters, DeviceError> {
        let scanned = self.execute(request, input, seed)?;
        output.copy_from_slice(scanned.output.contents());
        Ok(scanned.counters)
    }

    /// Runs a scan that a user has defined, over copies of the user's arrays. `arrays` are theirs, `names` what each is called.
    ///
    /// # Errors
    /// As [`Self::scan`], and when a kernel writes beside an output.
    pub(crate) fn run_defined(
        &mut self,
        request: &ScanRequest,
        given: Arrays,
        arrays: &mut [HostArray],
        seed: u64,
    ) -> Result<(), DeviceError> {
        let plan = Plan::new(request)?;
        self.launch_over(&plan, given, arrays, seed)?;
        if arrays.iter().all(HostArray::is_whole) { Ok(()) } else { Err(DeviceError::WroteElsewhere) }
    }

    /// Launches the steps of a plan over several arrays.
    fn launch_over(
        &mut self,
        plan: &Plan,
        given: Arrays,
        arrays: &mut [HostArray],
        seed: u64,
    ) -> Result<Counters, DeviceError> {
        let mut known: Vec<Array> = arrays.iter_mut().map(HostArray::region).collect();
        let mut findings = Apart::<abi::lookback_findings>::default();
        let place = (&raw mut *findings).expose_provenance() as u64;
        known.push(array("the findings", place, size_of::<abi::lookback_findings>(), true));
        let addresses = Addresses { findings: place, ..Addresses::over(given) };
        let counters = self.launch(plan, addresses, known, seed)?;
        check_findings(&findings)?;
        Ok(counters)
    }

    /// Scans a dataset, of one array or several.
    fn scan_dataset(&mut self, request: &ScanRequest, dataset: &Dataset, seed: u64) -> Result<Scanned, DeviceError> {
        if dataset.workload.defined().is_none() {
            return self.execute(request, &dataset.input, seed);
        }
        let mut laid_out = LaidOut::new(request, dataset);
        let (request, given) = laid_out.prepare(request)?;
        let plan = Plan::new(&request)?;
        // Nothing is launched of no elements.
        let counters = match request.n {
            0 => Counters::default(),
            _ => self.launch_over(&plan, given, &mut laid_out.arrays, seed)?,
        };
        let untouched = laid_out.is_whole();
        Ok(Scanned { output: laid_out.arrays.swap_remove(laid_out.output).memory, counters, plan, untouched })
    }

    /// Launches the steps of a plan over arrays that have their places, with a workspace that is kept and scratch memory.
    fn launch(
        &mut self,
        plan: &Plan,
        addresses: Addresses,
        mut arrays: Vec<Array>,
        seed: u64,
    ) -> Result<Counters, DeviceError> {
        let mut scratch = AlignedBytes::new(plan.scratch_bytes as usize, FILLING);
        let key = RegionKey::of(plan);
        if self.workspaces.get(&key).is_none_or(|workspace| workspace.capacity < plan.descriptors) {
            self.workspaces.insert(key, Workspace::new(key, plan.descriptors));
        }
        let Some(workspace) = self.workspaces.get_mut(&key) else { unreachable!("inserted above") };
        let addresses = Addresses {
            scratch: scratch.bytes_mut().as_mut_ptr().expose_provenance() as u64,
            control: (&raw mut *workspace.control).expose_provenance() as u64,
            descriptors: workspace.descriptors.bytes_mut().as_mut_ptr().expose_provenance() as u64,
            capacity: workspace.capacity,
            ..addresses
        };
        arrays.extend([
            array("the scratch memory", addresses.scratch, scratch.bytes().len(), true),
            array("the control block", addresses.control, size_of::<abi::lookback_control>(), true),
            array("the descriptors", addresses.descriptors, workspace.descriptors.bytes().len(), true),
        ]);
        let mut counters = Counters::default();
        for (index, step) in plan.steps.iter().enumerate() {
            let seed = seed.wrapping_add(index as u64);
            let report = self.settings.launch(step, &addresses, &arrays, seed, self.recorded.is_some());
            match report {
                Ok(report) => {
                    add(&mut counters, &report, step.level);
                    if let Some(recorded) = &mut self.recorded {
                        record(recorded, &report.steps, step.tiles);
                    }
                }
                Err(error) => {
                    // The ticket and the counters of an aborted launch mean nothing to the next one.
                    self.workspaces.remove(&key);
                    return Err(error);
                }
            }
        }
        Ok(counters)
    }

    fn execute(&mut self, request: &ScanRequest, input: &[u8], seed: u64) -> Result<Scanned, DeviceError> {
        if request.problem.defined().is_some() {
            return Err(DeviceError::ArraysOfItsOwn(request.problem.to_string()));
        }
        let plan = Plan::new(request)?;
        let [input_bytes, output_bytes] =
            [request.problem.input_bytes(), request.problem.output_bytes()].map(|bytes| request.n as usize * bytes);
        // An exclusive scan must do without the last element, so the kernels do not get it.
        let unread = if request.mode == Mode::Exclusive { request.problem.input_bytes() } else { 0 };
        let readable = input_bytes.saturating_sub(unread);
        assert!(input.len() == input_bytes || input.len() == readable, "the input has as many elements as the request");

        let output_offset = if request.in_place { request.input_offset } else { request.output_offset };
        let mut output = GuardedArray::new(output_bytes, output_offset);
        let mut separate_input = (!request.in_place).then(|| GuardedArray::new(readable, request.input_offset));
        match &mut separate_input {
            Some(array) => array.contents_mut().copy_from_slice(&input[..readable]),
            None => output.contents_mut()[..readable].copy_from_slice(&input[..readable]),
        }
        let input_address = separate_input.as_mut().map_or_else(|| output.address(), GuardedArray::address);
        let addresses =
            Addresses::between(input_address.expose_provenance() as u64, output.address().expose_provenance() as u64);
        let arrays = vec![
            array("the output", addresses.output, output_bytes, true),
            array("the input", addresses.input, readable, request.in_place),
        ];
        let counters = self.launch(&plan, addresses, arrays, seed)?;
        let untouched = output.guards_are_whole()
            && separate_input
                .as_ref()
                .is_none_or(|array| array.guards_are_whole() && array.contents() == &input[..readable]);
        Ok(Scanned { output, counters, plan, untouched })
    }
}

/// One array of those that a user has lent, as the kernels see it: in place, an output is there as the input.
pub(crate) struct HostArray {
    memory: GuardedArray,
    before: Option<Vec<u8>>,
}

impl HostArray {
    /// A copy of `array` at an address like its own.
    pub(crate) fn input<T: Pod>(array: &[T]) -> Self {
        Self::copy_at(bytemuck::cast_slice(array), offset_of(array))
    }

    /// One as `array`, to be written.
    pub(crate) fn output<T: Pod>(array: &[T]) -> Self {
        Self::room_at(size_of_val(array), offset_of(array))
    }

    /// A copy of `array`, to be written, too.
    pub(crate) fn input_output<T: Pod>(array: &[T]) -> Self {
        Self::input(array).made_writable()
    }

    /// The same, to be written, too.
    fn made_writable(self) -> Self {
        Self { before: None, ..self }
    }

    /// A copy of a state. The kernels' type may be aligned further than the user's.
    pub(crate) fn state(contents: &[u8]) -> Self {
        Self::copy_at(contents, 0)
    }

    /// A place for a state, likewise.
    pub(crate) fn state_to_write(contents: &[u8]) -> Self {
        Self::room_at(contents.len(), 0)
    }

    /// Room for so many bytes, so far above a boundary.
    pub(crate) fn room_at(bytes: usize, offset: u32) -> Self {
        Self { memory: GuardedArray::new(bytes, offset), before: None }
    }

    /// A copy of what is changed in its place, likewise.
    pub(crate) fn state_to_change(contents: &[u8]) -> Self {
        Self::state(contents).made_writable()
    }

    /// Puts `contents` where something is to be written.
    pub(crate) fn hold(&mut self, contents: &[u8]) {
        self.memory.contents_mut().copy_from_slice(contents);
    }

    /// A copy at an address so far above a boundary.
    pub(crate) fn copy_at(contents: &[u8], offset: u32) -> Self {
        let mut memory = GuardedArray::new(contents.len(), offset);
        memory.contents_mut().copy_from_slice(contents);
        Self { memory, before: Some(contents.to_vec()) }
    }

    pub(crate) fn address(&mut self) -> u64 {
        self.memory.address().expose_provenance() as u64
    }

    pub(crate) fn contents(&self) -> &[u8] {
        self.memory.contents()
    }

    /// What a launch may touch of it.
    pub(crate) fn region(&mut self) -> Array {
        let (address, is_output) = (self.address(), self.before.is_none());
        array(if is_output { "an output" } else { "an input" }, address, self.contents().len(), is_output)
    }

    /// Whether nobody wrote beside it, or into an input.
    pub(crate) fn is_whole(&self) -> bool {
        self.memory.guards_are_whole() && self.before.as_ref().is_none_or(|before| before == self.memory.contents())
    }
}

/// Arrays with room for more than a dataset has, of which the device alone knows how many elements there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountedArrays {
    /// What is scanned, were all of them there, and how many that are.
    pub workload: Workload,
    pub n: u64,
    /// How many there are, as the device is told.
    pub count: u64,
}

/// The arrays of a dataset and the one that its scan is stored in, where a request says that they lie.
pub(crate) struct LaidOut {
    /// Those that are loaded, in the kernels' order, and behind them the one that is stored, unless it is one of them.
    arrays: Vec<HostArray>,
    output: usize,
    /// What the host believes to be scanned.
    workload: Workload,
    n: u64,
    /// Bytes of each output that belong to the dataset, and what must still be behind them.
    stored: usize,
    behind: Vec<u8>,
    /// What the device is told of how many elements there are, and its type.
    count: Option<(HostArray, ElementType)>,
}

impl LaidOut {
    pub(crate) fn new(request: &ScanRequest, dataset: &Dataset) -> Self {
        Self::with_room(request, dataset, None)
    }

    /// The same in arrays that may have room for more. Behind the dataset's elements stand the same once more, the last one first: whoever
    /// takes them for elements of the scan stores more, or something else.
    pub(crate) fn with_room(request: &ScanRequest, dataset: &Dataset, counted: Option<CountedArrays>) -> Self {
        let (workload, n) = counted.map_or((dataset.workload, dataset.n), |counted| (counted.workload, counted.n));
        let own = dataset.workload.own_place();
        let bytes_of_each = |(workload, n): (Workload, u64)| {
            workload.outputs(n).next().unwrap_or(0) as usize * workload.element().bytes()
        };
        let [stored, all] = [(dataset.workload, dataset.n), (workload, n)].map(bytes_of_each);
        let mut behind = vec![FILLING; all - stored];
        // An exclusive scan of one array must do without the last element, so the kernels do not get it.
        let is_unread = request.mode == Mode::Exclusive && dataset.workload.defined().is_none() && dataset.n > 0;
        let rooms = workload.inputs(n).zip(workload.input_offsets(n, request.input_offset));
        let mut arrays = Vec::new();
        for (place, ((element, contents), ((_, elements), offset))) in dataset.inputs().zip(rooms).enumerate() {
            let room = elements as usize * element.bytes();
            let more = mirrored(contents, element.bytes(), room - contents.len());
            let read = &contents[..contents.len() - if is_unread { element.bytes() } else { 0 }];
            arrays.push(if request.in_place && place == own {
                let mut array = HostArray::room_at(room, offset);
                array.memory.contents_mut()[..read.len()].copy_from_slice(read);
                array.memory.contents_mut()[contents.len()..].copy_from_slice(&more);
                behind = more;
                array
            } else if more.is_empty() {
                HostArray::copy_at(read, offset)
            } else {
                HostArray::copy_at(&[contents, &more].concat(), offset)
            });
        }
        let output = if request.in_place {
            own
        } else {
            arrays.push(HostArray::room_at(workload.output_bytes(n) as usize, request.output_offset));
            arrays.len() - 1
        };
        // Even numbers that fit into 4 bytes are given in 4, all others in 8, so that kernels meet both.
        let count = counted.map(|CountedArrays { count, .. }| match u32::try_from(count) {
            Ok(count) if count % 2 == 0 => (HostArray::copy_at(&count.to_le_bytes(), 0), ElementType::U32),
            _ => (HostArray::copy_at(&count.to_le_bytes(), 0), ElementType::U64),
        });
        Self { arrays, output, workload, n, stored, behind, count }
    }

    /// The request as the addresses have it, and what a launch is told of them.
    pub(crate) fn prepare(&mut self, request: &ScanRequest) -> Result<(ScanRequest, Arrays), DeviceError> {
        self.prepare_with_states(request, None)
    }

    /// The same, with a place for the states at the last elements, if any is given.
    pub(crate) fn prepare_with_states(
        &mut self,
        request: &ScanRequest,
        final_states: Option<Lent>,
    ) -> Result<(ScanRequest, Arrays), DeviceError> {
        let addresses: Vec<u64> = self.arrays.iter_mut().map(HostArray::address).collect();
        let output = addresses[self.output];
        let Some(mut call) = self.workload.call(self.n, &addresses, output) else {
            let mut given = Arrays::default();
            (given.inputs[0], given.outputs[0]) = (addresses[0], output);
            return Ok((*request, given));
        };
        if let Some(states) = final_states {
            call.final_state(states);
        }
        if let Some((count, element)) = &mut self.count {
            call.count(Lent::of(*element, count.address(), 1));
        }
        let prepared = call.prepare(request.mode, &Choices::made_by(request))?;
        Ok(prepared.map_or((*request, Arrays::default()), |prepared| (prepared.request, prepared.arrays)))
    }

    /// What a launch may touch.
    pub(crate) fn regions(&mut self) -> impl Iterator<Item = Array> {
        let count = self.count.iter_mut().map(|(count, _)| count);
        self.arrays.iter_mut().chain(count).map(HostArray::region)
    }

    /// What is stored, of each output the part that belongs to the dataset, and what is behind it.
    fn outputs(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let stored = self.arrays[self.output].contents();
        // Of nothing there is no part.
        let each = (self.stored + self.behind.len()).max(1);
        stored.chunks_exact(each).map(|output| output.split_at(self.stored))
    }

    /// What is stored of the dataset, one output behind the other.
    pub(crate) fn output(&self) -> Cow<'_, [u8]> {
        match self.behind.is_empty() {
            true => self.arrays[self.output].contents().into(),
            false => self.outputs().flat_map(|(stored, _)| stored).copied().collect(),
        }
    }

    /// Whether nobody wrote beside an array or behind what belongs to the dataset, or into one that is only loaded.
    pub(crate) fn is_whole(&self) -> bool {
        let count = self.count.iter().map(|(count, _)| count);
        self.arrays.iter().chain(count).all(HostArray::is_whole)
            && (self.behind.is_empty() || self.outputs().all(|(_, behind)| behind == self.behind))
    }
}

/// So many bytes of elements, those of an array from the last one to the first, and again.
fn mirrored(array: &[u8], element_bytes: usize, bytes: usize) -> Vec<u8> {
    array.rchunks_exact(element_bytes).cycle().flatten().copied().take(bytes).collect()
}

/// Where it begins above a boundary, in whole elements: the kernels' type may be aligned further than the user's.
fn offset_of<T>(array: &[T]) -> u32 {
    let offset = array.as_ptr().addr() % ScanRequest::OFFSETS as usize;
    (offset - offset % size_of::<T>().max(1)) as u32
}

fn array(name: &'static str, address: u64, bytes: usize, writable: bool) -> Array {
    Array { name, address: address as usize, bytes, writable }
}

/// What a rank launches that is dealt a part of an array.
pub(crate) struct Dealt {
    pub prepared: Prepared,
    pub arrays: Vec<HostArray>,
    pub settings: CpuSettings,
    pub seed: u64,
}

/// What a rank's kernel has beside its arrays: a control block, a mailbox and descriptors behind it.
pub(crate) struct DealtWorkspace {
    pub control: Apart<abi::lookback_control>,
    pub memory: AlignedBytes,
    pub capacity: u64,
}

impl DealtWorkspace {
    /// Room for so many descriptors, in two halves.
    pub fn new(plan: &Plan, capacity: u64) -> Self {
        let bytes = size_of::<abi::lookback_mailbox>() as u64 + capacity * plan.descriptor_bytes;
        Self { control: Apart::default(), memory: AlignedBytes::new(bytes as usize, 0), capacity }
    }

    pub fn mailbox(&mut self) -> u64 {
        self.memory.bytes_mut().as_mut_ptr().expose_provenance() as u64
    }

    /// With what all ranks have, whose mailboxes lie where the table says.
    pub fn addresses(&mut self, table: &AlignedBytes, between: Addresses) -> Addresses {
        Addresses {
            control: (&raw mut *self.control).expose_provenance() as u64,
            descriptors: self.mailbox() + size_of::<abi::lookback_mailbox>() as u64,
            capacity: self.capacity,
            mailboxes: table.bytes().as_ptr().expose_provenance() as u64,
            ..between
        }
    }
}

/// Launches the scans of all ranks side by side, each as if on a device of its own.
///
/// # Errors
/// As [`CpuDevice::run_defined`].
pub(crate) fn run_dealt(ranks: &mut [Dealt]) -> Result<(), DeviceError> {
    let deal_of = |request: &ScanRequest| request.hand.map(Hand::deal);
    for (number, Dealt { prepared: Prepared { request, .. }, .. }) in ranks.iter().enumerate() {
        let first = &ranks[0].prepared.request;
        let is_hand =
            request.hand.is_some_and(|hand| (hand.rank(), hand.ranks()) == (number as u64, ranks.len() as u64));
        let is_scan = (request.problem, request.mode, request.config) == (first.problem, first.mode, first.config);
        if !is_hand || !is_scan || deal_of(request) != deal_of(first) {
            return Err(RankError::OtherDeal { rank: number, this: 0 }.into());
        }
    }
    let plans = ranks.iter().map(|rank| Plan::new(&rank.prepared.request)).collect::<Result<Vec<_>, _>>()?;
    let mut workspaces: Vec<_> = plans.iter().map(|plan| DealtWorkspace::new(plan, plan.descriptors)).collect();
    let table = AlignedBytes::of(&workspaces.iter_mut().map(DealtWorkspace::mailbox).collect::<Vec<_>>());
    let address = table.bytes().as_ptr().expose_provenance() as u64;
    let mut known = vec![array("the addresses", address, table.bytes().len(), false)];
    let count = ranks.len() as u32;
    let mut launches = Vec::new();
    for ((rank, plan), workspace) in ranks.iter_mut().zip(&plans).zip(&mut workspaces) {
        let addresses = workspace.addresses(&table, Addresses::over(rank.prepared.arrays));
        known.extend(rank.arrays.iter_mut().map(HostArray::region));
        known.push(array("the control block", addresses.control, size_of::<abi::lookback_control>(), true));
        known.push(array("the descriptors", workspace.mailbox(), workspace.memory.bytes().len(), true));
        for step in &plan.steps {
            let body = kernel_body(step.problem, step.kernel, false)?;
            let (config, settings) = step_settings(step, rank.seed);
            let room = most_resident_blocks(settings.block_threads) / count;
            let settings = rank.settings.applied(LaunchSettings { resident_blocks: room.max(1), ..settings });
            launches.push((body, config, step.launch(&addresses), settings));
        }
    }
    let stages: Vec<_> = launches
        .iter()
        .map(|(body, config, arguments, settings)| Stage { body: *body, config, arguments, settings: settings.clone() })
        .collect();
    let checks_bounds = ranks.iter().any(|rank| rank.settings.check_bounds);
    let mut bounds = checks_bounds.then(|| BoundsCheck::new(known));
    // SAFETY: as in `CpuSettings::launch`, of each rank's launch; all ranks have one deal and one configuration, as was checked, so
    // that the mailbox of each is as large as what the others write there.
    unsafe {
        launch_in_streams(bounds.as_mut().map(|bounds| bounds as &mut dyn MemoryBackend), &stages, stages.len())
    }?;
    let are_whole = ranks.iter().all(|rank| rank.arrays.iter().all(HostArray::is_whole));
    if are_whole { Ok(()) } else { Err(DeviceError::WroteElsewhere) }
}

/// What a scan left.
struct Scanned {
    output: GuardedArray,
    counters: Counters,
    plan: Plan,
    /// Whether the input and the bytes beside both arrays are as they were.
    untouched: bool,
}

impl CpuSettings {
    /// Those of a launch that may have so many blocks resident.
    fn applied(&self, settings: LaunchSettings) -> LaunchSettings {
        LaunchSettings {
            resident_blocks: self.resident_blocks.min(settings.resident_blocks),
            block_order: self.block_order,
            schedule: self.schedule,
            plain_points: self.plain_points,
            ..settings
        }
    }

    fn launch(
        &self,
        step: &Step,
        addresses: &Addresses,
        arrays: &[Array],
        seed: u64,
        records_steps: bool,
    ) -> Result<LaunchReport, DeviceError> {
        let body = kernel_body(step.problem, step.kernel, false)?;
        let (config, settings) = step_settings(step, seed);
        let arguments = step.launch(addresses);
        let resident_blocks = most_resident_blocks(settings.block_threads);
        let settings = self.applied(LaunchSettings { resident_blocks, records_steps, ..settings });
        // SAFETY: the body was compiled from `cuda/scan` for this executor and takes these two structs;
        // `Plan` sizes grid and scratch for `n` elements, and the arrays of `Addresses` are as large as the
        // plan says. They stay where they are until the launch returns.
        let report = unsafe {
            if self.check_bounds {
                launch_on(&mut BoundsCheck::new(arrays.to_vec()), body, &config, &arguments, &settings)
            } else {
                launch(body, &config, &arguments, &settings)
            }
        };
        Ok(report?)
    }
}

/// Arrays that are scanned in many schedules are no larger, since every further schedule takes as long as the first.
const LARGEST_OF_SCHEDULES: u64 = 1 << 18;

/// Blocks of a launch whose blocks take one tile after the other: more than some settings let be resident, so that a
/// block may come when all tiles are taken.
const BLOCKS_THAT_TAKE_TILES: u64 = 6;

/// Blocks of clusters here, by the seed: on a GPU it depends on the device how many there are.
const CLUSTER_BLOCKS: [u64; 4] = [16, 8, 16, 5];

/// How the CPU device launches a step: its configuration, and settings that are fair and fast but for the seed.
pub fn step_settings(step: &Step, seed: u64) -> (abi::lookback_config, LaunchSettings) {
    let settings = LaunchSettings::new(step.grid_blocks, step.block_threads());
    // One for each tile, and those in which nothing is left.
    let settings = LaunchSettings { seed, most_phases: step.tiles + 2, ..settings };
    // Kernels here declare room for the largest block there is, which takes two states a thread; with their marks and
    // without.
    let most_states = 4 * abi::LOOKBACK_MAXIMUM_BLOCK_THREADS * step.problem.state_bytes() as u32;
    let shared_limit_bytes =
        settings.shared_limit_bytes + if step.problem.is_declared_apart() { most_states } else { 0 };
    let settings = LaunchSettings { shared_limit_bytes, ..settings };
    if step.kernel.is_cluster() {
        let room = u64::from(most_resident_blocks(settings.block_threads));
        let grid_blocks = step.grid_blocks.min(CLUSTER_BLOCKS[(seed % 4) as usize]).min(room);
        return (step.config.to_abi(0), LaunchSettings { grid_blocks, is_cluster: true, ..settings });
    }
    if !step.kernel.has_ring() {
        return (step.config.to_abi(0), settings);
    }
    // A ring as short as can be now and then: whoever gives a stage back too soon meets the next tile there.
    let (stages, most_blocks) =
        if step.kernel.is_persistent() { (1 + (seed % 4) as u32, BLOCKS_THAT_TAKE_TILES) } else { (1, u64::MAX) };
    let ring_bytes = Ring::of(step.key()).bytes(stages) as u32;
    let settings = LaunchSettings {
        grid_blocks: step.grid_blocks.min(most_blocks),
        shared_limit_bytes: settings.shared_limit_bytes + ring_bytes.next_multiple_of(128),
        dynamic_shared_bytes: ring_bytes,
        ..settings
    };
    (step.config.to_abi(stages), settings)
}

/// Launches of a process that may run side by side whatever they are.
const LAUNCHES_AT_ONCE: usize = 4;

/// Resident blocks of a launch whose stacks a process may map, where a few launches run side by side.
pub(crate) fn most_resident_blocks(block_threads: u32) -> u32 {
    let blocks = most_stacks(LAUNCHES_AT_ONCE) / LAUNCHES_AT_ONCE / block_threads as usize;
    u32::try_from(blocks).unwrap_or(u32::MAX).max(1)
}

/// Keeps what one launch recorded, if it did: of a sort the pass of the last digit, as on a GPU, where each pass takes the places of
/// the one before. What only fills a cluster up is no tile.
fn record(recorded: &mut Vec<Event>, steps: &[TileStep], tiles: u64) {
    let of_tiles: Vec<Event> = steps.iter().filter(|step| step.tile < tiles).filter_map(event_of).collect();
    if !of_tiles.is_empty() {
        *recorded = of_tiles;
    }
}

/// A step as all devices tell it; none of a number that no step has.
pub(crate) fn event_of(step: &TileStep) -> Option<Event> {
    let TileStep { time, block, warp, round, tile, missing_tile, descriptors, step } = *step;
    let step = trace::Step::from_number(step)?;
    Some(Event { time, multiprocessor: 0, block, warp, step, round, tile, missing_tile, descriptors })
}

/// Adds what one launch counted. The moves of launches over a spine are no moves of the user's elements.
fn add(counters: &mut Counters, report: &LaunchReport, level: u32) {
    let launch = &report.counters;
    if level == 0 {
        counters.element_reads += launch.element_reads;
        counters.element_writes += launch.element_writes;
        counters.element_accesses += launch.element_accesses;
    } else {
        counters.spine_moves += launch.element_reads + launch.element_writes;
    }
    counters.spine_moves += launch.spine_reads + launch.spine_writes;
    counters.protocol_accesses += launch.protocol_loads + launch.protocol_stores + launch.protocol_updates;
    counters.operator_applications += launch.operator_applications;
    // Launches run one after the other, so their chains join.
    counters.span_steps += launch.span_steps;
    counters.barriers += launch.block_barriers;
    counters.lookback_rounds += launch.lookback_rounds;
    counters.lookback_distance += launch.lookback_distance_tiles;
    counters.lookback_tiles += launch.lookbacks;
    counters.spin_polls += launch.spin_polls;
    counters.launches += 1;
}

impl Device for CpuDevice {
    fn description(&self) -> DeviceDescription {
        DeviceDescription {
            kind: "cpu".to_owned(),
            name: "CPU device (kernels as coroutines)".to_owned(),
            facts: vec![
                ("built by".to_owned(), env!("LOOKBACK_HOST_COMPILER").to_owned()),
                ("resident blocks".to_owned(), self.settings.resident_blocks.to_string()),
                ("block order".to_owned(), self.settings.block_order.to_string()),
                ("schedule".to_owned(), self.settings.schedule.to_string()),
            ],
        }
    }

    fn load(&mut self, dataset: &Dataset) -> Result<(), DeviceError> {
        self.dataset = Some(dataset.clone());
        Ok(())
    }

    fn run(&mut self, request: &ScanRequest, settings: &RunSettings) -> Result<Outcome, DeviceError> {
        let dataset = self.dataset.take().ok_or(DeviceError::NoDataset)?;
        let start = Instant::now();
        let scanned = self.scan_dataset(request, &dataset, settings.seed);
        let executor_time = start.elapsed();
        let outcome = scanned.map(|scanned| {
            let mut verification = verify(request, &dataset, scanned.output.contents());
            if !scanned.untouched {
                // Whoever writes beside the output is wrong even if the output is right.
                if verification.mismatches == 0 {
                    verification.mismatches = 1;
                    verification.expected = Some("nothing written beside the output".to_owned());
                    verification.actual = Some("other bytes beside it, or in the input".to_owned());
                }
            }
            Outcome {
                verification,
                counters: Some(scanned.counters),
                timing: None,
                executor_time: Some(executor_time),
                launches: scanned.plan.steps.len() as u64,
                access_bytes: scanned.plan.access_bytes,
                registers: None,
                local_bytes: None,
                output: settings.keeps_output.then(|| scanned.output.contents().to_vec()),
            }
        });
        self.dataset = Some(dataset);
        outcome
    }

    fn trace(&mut self, request: &ScanRequest, settings: &TraceSettings) -> Result<Recording, DeviceError> {
        let tiles = Plan::new(request)?.steps.iter().map(|step| step.tiles).max().unwrap_or(0);
        self.recorded = Some(Vec::new());
        let outcome = self.run(request, &RunSettings { seed: settings.seed, ..RunSettings::default() });
        let events = self.recorded.take().unwrap_or_default();
        let Outcome { verification, .. } = outcome?;
        Ok(Recording::new(request, tiles, verification.passed(), Clock::Steps, events))
    }

    fn lookback_distances(&mut self, request: &ScanRequest, seeds: Range<u64>) -> Result<Vec<f64>, DeviceError> {
        if !request.strategy.is_single_pass() || request.n > LARGEST_OF_SCHEDULES {
            return Ok(Vec::new());
        }
        let dataset = self.dataset.take().ok_or(DeviceError::NoDataset)?;
        let distance = |seed| Ok(self.scan_dataset(request, &dataset, seed)?.counters.mean_lookback_distance());
        let distances = seeds.map(distance).collect::<Result<Vec<_>, DeviceError>>();
        self.dataset = Some(dataset);
        Ok(distances?.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ElementType, Instance, Operator};
    use crate::strategy::{ScanConfig, Strategy};

    #[test]
    fn the_stacks_of_many_devices_fit_into_one_process() {
        let alone = CpuSettings::like_a_gpu();
        assert_eq!(alone.beside_others(LAUNCHES_AT_ONCE), alone);
        for devices in LAUNCHES_AT_ONCE + 1..=20 {
            let blocks = alone.beside_others(devices).resident_blocks;
            let stacks = devices * (blocks * abi::LOOKBACK_MAXIMUM_BLOCK_THREADS) as usize;
            assert!(blocks > 0 && stacks <= most_stacks(LAUNCHES_AT_ONCE), "{devices} devices of {blocks} blocks");
        }
    }

    #[test]
    fn what_is_near_an_array_is_of_its_own_allocation() {
        fn is_within<T, U>(all: Range<*const T>, own: Range<*const U>) -> bool {
            all.start.addr() + NEAR_BYTES < own.start.addr() && own.end.addr() + NEAR_BYTES < all.end.addr()
        }
        for count in [0, 1, 100, 128] {
            let bytes = AlignedBytes::new(count, 0);
            assert!(is_within(bytes.lines.as_ptr_range(), bytes.bytes().as_ptr_range()), "{count} bytes");
        }
        let control = Apart::<abi::lookback_control>::default();
        assert!(is_within(control.0.as_ptr_range(), std::slice::from_ref(&*control).as_ptr_range()));
    }

    #[test]
    fn a_distance_is_counted_over_many_schedules_of_what_looks_back_and_is_small() {
        let instance = Instance::new(ElementType::U32, Operator::Sum).unwrap();
        let mut device = CpuDevice::new(CpuSettings::like_a_gpu());
        let mut distances = |strategy: Strategy, n: u64| -> Vec<f64> {
            device.load(&Dataset::random(instance, n, 1)).unwrap();
            let config = ScanConfig { vt: 8, ..ScanConfig::default() };
            let request = ScanRequest::aligned(instance, strategy, Mode::Inclusive, config, n);
            let distances = device.lookback_distances(&request, 0..20).unwrap();
            assert!(device.run(&request, &RunSettings::default()).is_ok());
            distances
        };
        let of_lookback = distances(Strategy::Lookback, 1 << 14);
        assert_eq!(of_lookback.len(), 20);
        assert!(of_lookback.iter().any(|distance| *distance != of_lookback[0]), "{of_lookback:?}");
        assert!(distances(Strategy::ReduceThenScan, 1 << 14).is_empty());
        assert!(distances(Strategy::Lookback, 1).is_empty(), "a tile that has none before it");
    }
}
