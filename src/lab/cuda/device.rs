//! The CUDA device of the laboratory: holds a dataset, runs plans over it, verifies on the device, times.
//!
//! A run leaves nothing to trust: the output and the temporary arrays are filled with 0xA5 before it, guard
//! bytes stand on both sides of input and output, and afterwards every element is compared on the device,
//! the guards are checked, and an input that was not to be changed is compared with its master copy. The
//! same again after timing. Descriptors are the exception: they are zeroed once, when they are allocated,
//! and stay what earlier runs left, because that is what users' launches find.

use crate::cuda::compile::{Architecture, Compiler};
use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::launch::{KernelSet, PreparedScan, function};
use crate::cuda::memory::{Buffer, DeviceMemory};
use crate::cuda::toolkit::probe_driver;
use crate::cuda::workspace::Workspace;
use crate::element::{ElementType, Instance};
use crate::lab::dataset::{Dataset, Reference};
use crate::lab::device::{Device, DeviceDescription, DeviceError, Outcome, RunSettings, Timing};
use crate::lab::verify::{Verification, error_factor};
use crate::strategy::Mode;
use crate::strategy::plan::ScanRequest;
use crate::strategy::tuning::Gpu;
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUevent_flags};
use cudarc::driver::{CudaContext, CudaEvent, CudaModule, CudaStream, result};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of guard on each side of an array; more than the widest access of a warp is off by.
const GUARD_BYTES: u64 = 1024;
/// What guards, outputs and temporary arrays hold before a run.
const FILLING: u8 = 0xA5;
/// How long a scan may take before it counts as hung, and longer where its first run was slow.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// What a sample has to last at least, against the resolution of the events (0.5 µs).
const SAMPLE_NS: f64 = 1e6;
/// How long to launch before the first sample, so that the clocks are up.
const WARM_UP_NS: f64 = 20e6;

/// One NVIDIA GPU.
pub struct CudaDevice {
    description: DeviceDescription,
    stream: Arc<CudaStream>,
    // Before the workspace: freed after every launch is waited for by its drop.
    workspace: Workspace,
    comparisons: Comparisons,
    loaded: Option<Loaded>,
    input: Option<Buffer>,
    output: Option<Buffer>,
    kernels: KernelSet,
    memory: Arc<DeviceMemory>,
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        if self.memory.is_abandoned() {
            // Unloading a module waits for its kernels, and one of them hangs: the process's end unloads.
            std::mem::forget(self.kernels.take_modules());
            std::mem::forget(Arc::clone(&self.comparisons.module));
            std::mem::forget(Arc::clone(&self.stream));
        }
    }
}

/// The dataset on the device.
struct Loaded {
    instance: Instance,
    n: u64,
    master: Buffer,
    reference: LoadedReference,
}

enum LoadedReference {
    Exact(Buffer),
    Rounded { high: Buffer, low: Option<Buffer>, magnitude: Buffer },
}

/// One array of a run inside its buffer, guards on both sides.
#[derive(Clone, Copy)]
struct Placed {
    offset: u64,
    bytes: u64,
}

impl Placed {
    /// `modulo` is the address of the array modulo 32: buffers start at multiples of 256.
    fn new(bytes: u64, modulo: u32) -> Self {
        Self { offset: GUARD_BYTES + u64::from(modulo), bytes }
    }

    fn buffer_bytes(self) -> u64 {
        self.offset + self.bytes + GUARD_BYTES
    }
}

impl CudaDevice {
    /// Opens the GPU with this number and finds the compiler. Kernels are compiled when they are asked for.
    ///
    /// # Errors
    /// No driver, no such device, no compiler: the error says what was looked for and what to do.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        let available = Self::count()?;
        if ordinal >= available {
            return Err(CudaError::NoDevice { ordinal, available });
        }
        // The compiler first: it needs no device, and without it there is nothing to do on one.
        let compiler = Compiler::new()?;
        let context = CudaContext::new(ordinal).during(|| format!("opening CUDA device {ordinal}"))?;
        // SAFETY: this device works on one stream and on buffers of its own, which are freed after a wait;
        // the context object was made right above and is nobody else's.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().during(|| String::from("making a stream"))?;
        let memory = DeviceMemory::new(&context)?;
        let kernels = KernelSet::new(&context, compiler)?;
        let comparisons = Comparisons::new(&kernels, &memory, &stream)?;
        Ok(Self {
            description: describe(&context, &kernels)?,
            workspace: Workspace::new(&memory, &stream),
            comparisons,
            stream,
            loaded: None,
            input: None,
            output: None,
            kernels,
            memory,
        })
    }

    /// How many GPUs the driver reports.
    ///
    /// # Errors
    /// When there is no driver. A driver without a GPU is none: that is 0.
    pub fn count() -> Result<usize, CudaError> {
        probe_driver()?;
        match CudaContext::device_count() {
            Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(0),
            Err(error) => Err(CudaError::driver("starting the CUDA driver", error)),
        }
    }

    /// What kernels are compiled for.
    pub fn architecture(&self) -> Architecture {
        self.kernels.architecture()
    }

    /// The compiler, with its cache and the cache's warnings.
    pub fn compiler(&self) -> &Compiler {
        self.kernels.compiler()
    }

    /// Compiles the kernels of all these scans on all cores, so that the runs do not do it one by one.
    /// Optional; requests that cannot be launched are passed over.
    ///
    /// # Errors
    /// When a kernel does not compile or load.
    pub fn compile_ahead(&self, requests: &[ScanRequest]) -> Result<(), CudaError> {
        self.kernels.compile_ahead(requests)
    }

    /// For tests of the epoch's wrap: sets how many launches the descriptors have seen. Only regions that
    /// some run has used exist.
    #[doc(hidden)]
    pub fn set_completed_epochs(&mut self, epochs: u32) -> Result<(), CudaError> {
        self.workspace.set_completed_epochs(epochs)
    }

    /// For tests of the epoch's wrap: launches since the last clean-up, a number a region.
    #[doc(hidden)]
    pub fn completed_epochs(&self) -> Result<Vec<u32>, CudaError> {
        self.workspace.completed_epochs()
    }

    fn device_error(&self, error: CudaError) -> DeviceError {
        match error {
            CudaError::OutOfMemory { what, needed_bytes, available_bytes } => {
                DeviceError::OutOfMemory { what, device: self.description.name.clone(), needed_bytes, available_bytes }
            }
            CudaError::Config(error) => DeviceError::Config(error),
            other => DeviceError::Cuda(other),
        }
    }

    fn load_dataset(&mut self, dataset: &Dataset) -> Result<(), CudaError> {
        // First, so that two datasets never have to fit at once.
        self.loaded = None;
        self.input = None;
        self.output = None;
        let bytes = dataset.input.len() as u64;
        let reference_bytes = match &dataset.reference {
            Reference::Exact(reference) => reference.len() as u64,
            Reference::Rounded { high, low, magnitude } => 8 * (high.len() + low.len() + magnitude.len()) as u64,
        };
        // Master, input and output; a plan's temporary arrays come on top where a strategy has some.
        let needed_bytes = 3 * (bytes + 3 * GUARD_BYTES) + reference_bytes;
        let available_bytes = self.memory.free_bytes()?;
        if needed_bytes > available_bytes {
            let what = format!("input, output and reference of {} elements", dataset.n);
            return Err(CudaError::OutOfMemory { what, needed_bytes, available_bytes });
        }
        let upload = |bytes: &[u8], what: &str| -> Result<Buffer, CudaError> {
            let buffer = self.memory.allocate(bytes.len() as u64, what)?;
            buffer.upload(0, bytes, &self.stream)?;
            Ok(buffer)
        };
        let reference = match &dataset.reference {
            Reference::Exact(reference) => LoadedReference::Exact(upload(reference, "the reference")?),
            Reference::Rounded { high, low, magnitude } => LoadedReference::Rounded {
                high: upload(bytemuck::cast_slice(high), "the reference")?,
                low: if low.is_empty() { None } else { Some(upload(bytemuck::cast_slice(low), "the reference")?) },
                magnitude: upload(bytemuck::cast_slice(magnitude), "the reference")?,
            },
        };
        let master = upload(&dataset.input, "the input")?;
        self.loaded = Some(Loaded { instance: dataset.instance, n: dataset.n, master, reference });
        Ok(())
    }

    fn run_request(&mut self, request: &ScanRequest, settings: &RunSettings) -> Result<Outcome, DeviceError> {
        let Some(loaded) = &self.loaded else { return Err(DeviceError::NoDataset) };
        if (loaded.instance, loaded.n) != (request.instance, request.n) {
            let text = |instance: Instance, n: u64| format!("{n} elements of {instance}");
            return Err(CudaError::DatasetMismatch {
                requested: text(request.instance, request.n),
                loaded: text(loaded.instance, loaded.n),
            }
            .into());
        }
        self.run_loaded(request, settings).map_err(|error| self.device_error(error))
    }

    fn run_loaded(&mut self, request: &ScanRequest, settings: &RunSettings) -> Result<Outcome, CudaError> {
        self.memory.context().bind_to_thread().during(|| String::from("making the context current"))?;
        let mut scan = PreparedScan::new(request, &self.kernels)?;
        let bytes = request.n * request.instance.element().bytes() as u64;
        let input = Placed::new(bytes, request.input_offset);
        let output = if request.in_place { input } else { Placed::new(bytes, request.output_offset) };
        self.make_room(request, input, output)?;
        let address = |buffer: &Option<Buffer>, placed: Placed| {
            buffer.as_ref().map_or(0, |buffer| buffer.address() + placed.offset)
        };
        let input_address = address(&self.input, input);
        let output_address = if request.in_place { input_address } else { address(&self.output, output) };
        scan.bind(input_address, output_address, &mut self.workspace)?;

        self.place(request, input, output)?;
        let first_ns = self.launch_timed(&mut scan, 1, TIME_LIMIT)?;
        let mut verification = self.verify(request, input, output)?;
        let mut timing = None;
        if settings.samples > 0 && verification.passed() && scan.launches() > 0 {
            timing = Some(self.time(&mut scan, settings.samples, first_ns)?);
            if request.in_place {
                // Scanned over and over, the array holds what no reference says; so once more from the start.
                self.place(request, input, output)?;
                self.launch_timed(&mut scan, 1, TIME_LIMIT)?;
            }
            verification = self.verify(request, input, output)?;
        }
        let (registers, local_bytes) = match scan.main_kernel() {
            Some(kernel) => {
                let attribute = |value: Result<i32, DriverError>| {
                    value
                        .map(|value| u32::try_from(value).unwrap_or(0))
                        .during(|| String::from("asking about a kernel"))
                };
                (Some(attribute(kernel.function.num_regs())?), Some(attribute(kernel.function.local_size_bytes())?))
            }
            None => (None, None),
        };
        Ok(Outcome {
            verification,
            counters: None,
            timing,
            executor_time: None,
            launches: scan.launches(),
            access_bytes: scan.access_bytes(),
            registers,
            local_bytes,
        })
    }

    /// Buffers that hold both arrays with their guards.
    fn make_room(&mut self, request: &ScanRequest, input: Placed, output: Placed) -> Result<(), CudaError> {
        fn grow(
            slot: &mut Option<Buffer>,
            bytes: u64,
            memory: &Arc<DeviceMemory>,
            what: &str,
        ) -> Result<(), CudaError> {
            if slot.as_ref().is_none_or(|buffer| buffer.bytes() < bytes) {
                // Runs end with a wait, so nothing uses the old buffer any more.
                *slot = None;
                // 16 more than this offset needs, so that no other offset needs a new one.
                *slot = Some(memory.allocate(bytes + 16, what)?);
            }
            Ok(())
        }
        grow(&mut self.input, input.buffer_bytes(), &self.memory, "the input")?;
        if !request.in_place {
            grow(&mut self.output, output.buffer_bytes(), &self.memory, "the output")?;
        }
        Ok(())
    }

    /// The state before a run: input in place between guards, everything that the run writes filled.
    fn place(&self, request: &ScanRequest, input: Placed, output: Placed) -> Result<(), CudaError> {
        let (Some(loaded), Some(buffer)) = (&self.loaded, &self.input) else { return Ok(()) };
        buffer.fill(0, input.offset, FILLING, &self.stream)?;
        buffer.fill(input.offset + input.bytes, GUARD_BYTES, FILLING, &self.stream)?;
        buffer.copy_from(input.offset, &loaded.master, 0, input.bytes, &self.stream)?;
        if !request.in_place
            && let Some(buffer) = &self.output
        {
            buffer.fill(0, output.buffer_bytes(), FILLING, &self.stream)?;
        }
        self.workspace.poison_scratch(FILLING)
    }

    /// Runs `scans` scans between two events and waits. Nanoseconds for all of them.
    fn launch_timed(&self, scan: &mut PreparedScan, scans: u64, limit: Duration) -> Result<f64, CudaError> {
        let start = self.event()?;
        self.record(&start)?;
        for _ in 0..scans {
            // SAFETY: the caller has bound the scan to buffers of this device, which keeps them until it
            // has waited, as this function does; context and stream are this device's.
            unsafe { scan.launch(&self.stream) }?;
        }
        let end = self.event()?;
        self.record(&end)?;
        self.memory.finish(&self.stream, limit, &what(scan.request()))?;
        elapsed_ns(&start, &end)
    }

    /// Samples of one scan's time: batches of launches between events, all put onto the stream in one go,
    /// so that the host waits for nothing in between.
    fn time(&self, scan: &mut PreparedScan, samples: u32, first_ns: f64) -> Result<Timing, CudaError> {
        let scans_in =
            |duration_ns: f64, scan_ns: f64| (duration_ns / scan_ns.max(100.0)).ceil().clamp(1.0, 10_000.0) as u64;
        // The first run included the cold caches and the loading of the kernel; a second one says more.
        let limit = |scans: u64, scan_ns: f64| {
            TIME_LIMIT + Duration::from_secs_f64(10.0 * scans as f64 * scan_ns.max(0.0) * 1e-9)
        };
        let mut scan_ns = first_ns;
        if first_ns < WARM_UP_NS {
            let few = 8;
            scan_ns = self.launch_timed(scan, few, limit(few, first_ns))? / few as f64;
            let warm_up = scans_in(WARM_UP_NS, scan_ns);
            scan_ns = self.launch_timed(scan, warm_up, limit(warm_up, scan_ns))? / warm_up as f64;
        }
        let scans = scans_in(SAMPLE_NS, scan_ns);
        let events = (0..=samples).map(|_| self.event()).collect::<Result<Vec<_>, _>>()?;
        self.record(&events[0])?;
        for event in &events[1..] {
            for _ in 0..scans {
                // SAFETY: as in `launch_timed`; the wait is below.
                unsafe { scan.launch(&self.stream) }?;
            }
            self.record(event)?;
        }
        let all = scans * u64::from(samples);
        self.memory.finish(&self.stream, limit(all, scan_ns), &what(scan.request()))?;
        let samples_ns = events
            .windows(2)
            .map(|pair| Ok(elapsed_ns(&pair[0], &pair[1])? / scans as f64))
            .collect::<Result<Vec<_>, CudaError>>()?;
        Ok(Timing { median_ns: median(&samples_ns), samples_ns })
    }

    fn event(&self) -> Result<CudaEvent, CudaError> {
        // Without the flag cudarc makes an event that measures no time.
        self.memory
            .context()
            .new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
            .during(|| String::from("making an event"))
    }

    fn record(&self, event: &CudaEvent) -> Result<(), CudaError> {
        event.record(&self.stream).during(|| String::from("recording an event"))
    }

    /// Compares every output element, and checks that nothing else was written.
    fn verify(&mut self, request: &ScanRequest, input: Placed, output: Placed) -> Result<Verification, CudaError> {
        let (Some(loaded), Some(input_buffer)) = (&self.loaded, &self.input) else {
            return Ok(Verification { compared: 0, mismatches: 0, first_mismatch: None });
        };
        let output_buffer = if request.in_place { input_buffer } else { self.output.as_ref().unwrap_or(input_buffer) };
        let comparisons = &mut self.comparisons;
        comparisons.reset(&self.stream)?;
        comparisons.output(loaded, request, output_buffer.address() + output.offset, &self.stream)?;
        let mut guards = vec![("output", output_buffer, output)];
        if !request.in_place {
            guards.push(("input", input_buffer, input));
        }
        for (index, (_, buffer, placed)) in guards.iter().enumerate() {
            let before = Slot::Guards as usize + 2 * index;
            comparisons.filling(before, buffer.address(), placed.offset, &self.stream)?;
            let after = buffer.address() + placed.offset + placed.bytes;
            comparisons.filling(before + 1, after, GUARD_BYTES, &self.stream)?;
        }
        if !request.in_place {
            comparisons.unchanged(loaded, input_buffer.address() + input.offset, &self.stream)?;
        }
        self.memory.finish(&self.stream, TIME_LIMIT, "comparing the output")?;
        let results = comparisons.results(&self.stream)?;
        for (index, (array, _, placed)) in guards.iter().enumerate() {
            let before = results[Slot::Guards as usize + 2 * index];
            let after = results[Slot::Guards as usize + 2 * index + 1];
            let sides = [
                ("before", before, placed.offset - before.first.min(placed.offset)),
                ("after", after, after.first.wrapping_add(1)),
            ];
            for (side, found, distance) in sides {
                if found.mismatches > 0 {
                    let what = what(request);
                    return Err(CudaError::WroteOutside { what, array, side, bytes: found.mismatches, distance });
                }
            }
        }
        let unchanged = results[Slot::Unchanged as usize];
        if unchanged.mismatches > 0 {
            let (elements, first) = (unchanged.mismatches, unchanged.first);
            return Err(CudaError::InputChanged { what: what(request), elements, first });
        }
        let found = results[Slot::Output as usize];
        Ok(Verification {
            compared: request.n,
            mismatches: found.mismatches,
            first_mismatch: (found.mismatches > 0).then_some(found.first),
        })
    }
}

impl Device for CudaDevice {
    fn description(&self) -> DeviceDescription {
        self.description.clone()
    }

    fn gpu(&self) -> Gpu {
        let count = attribute(self.memory.context(), Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        // Only rules by multiprocessors need the number, and a GPU that hides it still has one.
        self.kernels.architecture().gpu(count.unwrap_or(1))
    }

    fn load(&mut self, dataset: &Dataset) -> Result<(), DeviceError> {
        self.load_dataset(dataset).map_err(|error| self.device_error(error))
    }

    fn run(&mut self, request: &ScanRequest, settings: &RunSettings) -> Result<Outcome, DeviceError> {
        self.run_request(request, settings)
    }
}

/// A request in the words of messages.
fn what(request: &ScanRequest) -> String {
    let ScanRequest { instance, strategy, mode, config, n, in_place, .. } = request;
    let in_place = if *in_place { ", in place" } else { "" };
    format!(
        "{strategy}, {instance}, {mode}{in_place}, {n} elements, VT {}, {} threads a block",
        config.vt, config.block_threads
    )
}

pub(crate) fn elapsed_ns(start: &CudaEvent, end: &CudaEvent) -> Result<f64, CudaError> {
    Ok(f64::from(start.elapsed_ms(end).during(|| String::from("reading events"))?) * 1e6)
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// Which comparison has which place in the results.
#[derive(Clone, Copy)]
enum Slot {
    Output = 0,
    Unchanged = 1,
    /// Before and after the output, before and after the input.
    Guards = 2,
}
const SLOTS: usize = 6;
/// `comparison` in `cuda/verify.cu`.
const COMPARISON_BYTES: usize = 16;

#[derive(Clone, Copy)]
struct Found {
    mismatches: u64,
    first: u64,
}

/// The comparison kernels and their results.
struct Comparisons {
    module: Arc<CudaModule>,
    results: Buffer,
    blocks: u64,
}

/// Threads of a comparison block, `__launch_bounds__` in `cuda/verify.cu`.
const COMPARISON_THREADS: u32 = 256;

impl Comparisons {
    fn new(kernels: &KernelSet, memory: &Arc<DeviceMemory>, stream: &CudaStream) -> Result<Self, CudaError> {
        let multiprocessors = attribute(memory.context(), Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let comparisons = Self {
            module: kernels.verification_module()?,
            results: memory.allocate((SLOTS * COMPARISON_BYTES) as u64, "the results of comparisons")?,
            blocks: 8 * multiprocessors.max(1),
        };
        comparisons.reset(stream)?;
        Ok(comparisons)
    }

    fn reset(&self, stream: &CudaStream) -> Result<(), CudaError> {
        let mut nothing = [0_u8; SLOTS * COMPARISON_BYTES];
        for slot in nothing.chunks_exact_mut(COMPARISON_BYTES) {
            slot[8..].fill(0xFF);
        }
        self.results.upload(0, &nothing, stream)
    }

    fn results(&self, stream: &CudaStream) -> Result<Vec<Found>, CudaError> {
        let mut bytes = [0_u8; SLOTS * COMPARISON_BYTES];
        self.results.download(0, &mut bytes, stream)?;
        let words: Vec<u64> = bytes.chunks_exact(8).map(bytemuck::pod_read_unaligned).collect();
        Ok(words.chunks_exact(2).map(|pair| Found { mismatches: pair[0], first: pair[1] }).collect())
    }

    /// The output against the reference.
    fn output(
        &self,
        loaded: &Loaded,
        request: &ScanRequest,
        output: u64,
        stream: &CudaStream,
    ) -> Result<(), CudaError> {
        let shift = match request.mode {
            Mode::Inclusive => 0_u64,
            Mode::Exclusive | Mode::InclusiveMinusInput => 1,
        };
        let element = loaded.instance.element();
        let result = self.slot(Slot::Output as usize);
        match &loaded.reference {
            LoadedReference::Exact(reference) => {
                let name = match element {
                    ElementType::F32 => "compare_exact_f32",
                    ElementType::F64 => "compare_exact_f64",
                    other => exact_name(other.bytes()),
                };
                let mut identity = [0_u8; 16];
                let bytes = loaded.instance.identity_bytes();
                identity[..bytes.len()].copy_from_slice(&bytes);
                let [low, high]: [u64; 2] = bytemuck::cast(identity);
                let arguments = [output, reference.address(), loaded.n, shift, low, high, result];
                self.launch(name, loaded.n, &arguments, stream)
            }
            LoadedReference::Rounded { high, low, magnitude } => {
                let (name, largest) = match element {
                    ElementType::F32 => ("compare_rounded_f32", f64::from(f32::MAX)),
                    _ => ("compare_rounded_f64", f64::MAX),
                };
                let low = low.as_ref().map_or(0, Buffer::address);
                let factor = error_factor(request).to_bits();
                let arguments = [
                    output,
                    high.address(),
                    low,
                    magnitude.address(),
                    loaded.n,
                    shift,
                    factor,
                    largest.to_bits(),
                    result,
                ];
                self.launch(name, loaded.n, &arguments, stream)
            }
        }
    }

    /// The input against its master copy, bit for bit.
    fn unchanged(&self, loaded: &Loaded, input: u64, stream: &CudaStream) -> Result<(), CudaError> {
        let arguments = [input, loaded.master.address(), loaded.n, 0, 0, 0, self.slot(Slot::Unchanged as usize)];
        self.launch(exact_name(loaded.instance.element().bytes()), loaded.n, &arguments, stream)
    }

    /// `count` bytes that must hold the filling.
    fn filling(&self, slot: usize, address: u64, count: u64, stream: &CudaStream) -> Result<(), CudaError> {
        self.launch("compare_filling", count, &[address, count, u64::from(FILLING), self.slot(slot)], stream)
    }

    fn slot(&self, slot: usize) -> u64 {
        self.results.address() + (slot * COMPARISON_BYTES) as u64
    }

    /// Launches a comparison of `n` elements. Every parameter of these kernels fits a word of 8 bytes, and
    /// a narrower one takes the word's low bytes.
    fn launch(&self, name: &str, n: u64, arguments: &[u64], stream: &CudaStream) -> Result<(), CudaError> {
        if n == 0 {
            return Ok(());
        }
        let kernel = function(&self.module, name)?;
        let blocks = n.div_ceil(u64::from(COMPARISON_THREADS)).min(self.blocks) as u32;
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|argument| std::ptr::from_ref(argument).cast_mut().cast()).collect();
        // SAFETY: the arguments are, in order and number, those of the kernel in `cuda/verify.cu`: addresses
        // of live buffers of at least `n` elements, and numbers. The driver copies them during the call.
        unsafe {
            result::launch_kernel(
                kernel.cu_function(),
                (blocks, 1, 1),
                (COMPARISON_THREADS, 1, 1),
                0,
                stream.cu_stream(),
                &mut pointers,
            )
        }
        .during(|| format!("launching {name}"))
    }
}

/// The comparison bit for bit of elements of that many bytes.
const fn exact_name(element_bytes: usize) -> &'static str {
    match element_bytes {
        1 => "compare_exact_1",
        2 => "compare_exact_2",
        4 => "compare_exact_4",
        8 => "compare_exact_8",
        _ => "compare_exact_16",
    }
}

pub(crate) fn attribute(context: &CudaContext, attribute: Attribute) -> Result<u64, CudaError> {
    let value = context.attribute(attribute).during(|| String::from("asking for an attribute of the device"))?;
    Ok(u64::try_from(value).unwrap_or(0))
}

fn describe(context: &Arc<CudaContext>, kernels: &KernelSet) -> Result<DeviceDescription, CudaError> {
    let name = context.name().during(|| String::from("asking for the device's name"))?;
    let memory_bytes = context.total_mem().during(|| String::from("asking for the device's memory"))?;
    let mut driver_cuda = 0;
    // SAFETY: a valid pointer to int.
    unsafe { sys::cuDriverGetVersion(&raw mut driver_cuda) }
        .result()
        .during(|| String::from("asking for the driver's version"))?;
    // A fact that the driver does not give is no reason to do without the device.
    let fact =
        |which, text: &dyn Fn(u64) -> String| attribute(context, which).map_or_else(|_| String::from("unknown"), text);
    let megahertz = |kilohertz: u64| format!("{} MHz", kilohertz / 1000);
    let nvrtc = kernels.compiler().nvrtc();
    let architecture = kernels.architecture();
    let facts = [
        ("driver", kernel_module_version().unwrap_or_else(|| String::from("unknown"))),
        ("CUDA of the driver", format!("{}.{}", driver_cuda / 1000, driver_cuda % 1000 / 10)),
        ("compute capability", format!("{}.{}", architecture.major, architecture.minor)),
        ("multiprocessors", fact(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &|count| count.to_string())),
        ("memory", format!("{:.1} GiB", memory_bytes as f64 / f64::from(1 << 30))),
        (
            "L2 cache",
            fact(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &|bytes| {
                format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
            }),
        ),
        ("largest core clock", fact(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &megahertz)),
        ("largest memory clock", fact(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &megahertz)),
        ("memory bus", fact(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &|bits| format!("{bits} bits"))),
        ("compiler", format!("NVRTC {}.{}", nvrtc.version().0, nvrtc.version().1)),
    ];
    Ok(DeviceDescription {
        kind: String::from("cuda"),
        name,
        facts: facts.into_iter().map(|(what, value)| (what.to_owned(), value)).collect(),
    })
}

/// The driver's own version, such as 580.159; CUDA's interface only tells which CUDA it speaks.
pub(crate) fn kernel_module_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_the_sorted_samples() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn a_machine_without_a_driver_or_a_gpu_gets_a_typed_error() {
        match CudaDevice::count() {
            Ok(0) => assert!(matches!(CudaDevice::open(0), Err(CudaError::NoDevice { ordinal: 0, available: 0 }))),
            Ok(count) => assert!(matches!(CudaDevice::open(count), Err(CudaError::NoDevice { .. }))),
            Err(error) => {
                assert!(error.is_absence(), "{error}");
                assert!(CudaDevice::open(0).is_err_and(|error| error.is_absence()));
            }
        }
    }
}
