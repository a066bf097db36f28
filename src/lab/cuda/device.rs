//! The CUDA device of the laboratory: holds a dataset, runs plans over it, verifies on the device, times.
//!
//! A run leaves nothing to trust: the output and the temporary arrays are filled with 0xA5 before it, guard
//! bytes stand on both sides of input and output, and afterwards every element is compared on the device,
//! the guards are checked, and an input that was not to be changed is compared with its master copy. The
//! same again after timing. Descriptors are the exception: they are zeroed once, when they are allocated,
//! and stay what earlier runs left, because that is what users' launches find.

use super::harness::{
    self, Found, GpuHarness, Slot, TIME_LIMIT, driver_cuda, elapsed_ns, exact_name, kernel_module_version, on_all_cores,
};
use super::inputs::OtherInputs;
use super::tracing::Recorder;
use crate::cuda::compile::Compiler;
use crate::cuda::error::CudaError;
use crate::cuda::launch::PreparedScan;
use crate::cuda::memory::Buffer;
use crate::element::Problem;
use crate::gpu::{Architecture, Gpu};
use crate::lab::arrays::FILLING;
use crate::lab::dataset::{Dataset, Reference};
use crate::lab::device::{Device, DeviceDescription, DeviceError, Outcome, RunSettings, Timing, TraceSettings};
use crate::lab::statistics::Summary;
use crate::lab::trace::{Clock, Recording};
use crate::lab::verify::{Sum, Verification, error_factor, may_overflow, verify};
use crate::lab::workload::Workload;
use crate::strategy::call::{Prepared, check_findings};
use crate::strategy::launch::Addresses;
use crate::strategy::plan::{Plan, ScanRequest};
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use std::collections::HashSet;
use std::time::Duration;

/// What a sample has to last at least, against the resolution of the events (0.5 µs).
const SAMPLE_NS: f64 = 1e6;
/// How long to launch before the first sample, so that the clocks are up.
const WARM_UP_NS: f64 = 20e6;

/// One NVIDIA GPU.
pub struct CudaDevice {
    description: DeviceDescription,
    // Before the dataset: its drop waits for every launch.
    gpu: GpuHarness,
    loaded: Option<Loaded>,
}

/// The dataset on the device.
struct Loaded {
    workload: Workload,
    n: u64,
    /// Of the array that a scan in place replaces: the user's first.
    master: Buffer,
    others: OtherInputs,
    reference: LoadedReference,
}

enum LoadedReference {
    Exact(Buffer),
    Rounded {
        high: Buffer,
        low: Option<Buffer>,
        magnitude: Buffer,
    },
    /// Compared by [`verify`] after a copy to the host: where sums of floats may overflow, and of scans in reverse or in
    /// segments, whose references the tools on the device do not know.
    OnHost(Box<Dataset>),
}

impl CudaDevice {
    /// Opens the GPU with this number and finds the compiler. Kernels are compiled when they are asked for.
    ///
    /// # Errors
    /// No driver, no such device, no compiler: the error says what was looked for and what to do.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        let gpu = GpuHarness::open(ordinal, &["verify.cu"])?;
        Ok(Self { description: description(&gpu)?, gpu, loaded: None })
    }

    /// How many GPUs the driver reports.
    ///
    /// # Errors
    /// When there is no driver. A driver without a GPU is none: that is 0.
    pub fn count() -> Result<usize, CudaError> {
        harness::count()
    }

    /// What kernels are compiled for.
    pub fn architecture(&self) -> Architecture {
        self.gpu.gpu().architecture
    }

    /// The compiler, with its cache and the cache's warnings.
    pub fn compiler(&self) -> &Compiler {
        self.gpu.kernels.compiler()
    }

    /// Compiles and loads the kernels of all these scans on all cores, so that the runs do not do it one by one.
    /// Optional; requests that cannot be planned are passed over: running them says why.
    ///
    /// # Errors
    /// When a kernel does not compile or load.
    pub fn compile_ahead(&self, requests: &[ScanRequest]) -> Result<(), CudaError> {
        let wanted: HashSet<_> = requests
            .iter()
            .filter_map(|request| Plan::new(request).ok())
            .flat_map(|plan| plan.steps)
            .map(|step| step.key())
            .collect();
        let wanted: Vec<_> = wanted.into_iter().collect();
        on_all_cores(&wanted, |&key| self.gpu.kernels.kernel(key))?;
        Ok(())
    }

    /// For tests of the epoch's wrap: sets how many launches the descriptors have seen. Only regions that
    /// some run has used exist.
    #[doc(hidden)]
    pub fn set_completed_epochs(&mut self, epochs: u32) -> Result<(), CudaError> {
        self.gpu.workspace.set_completed_epochs(epochs)
    }

    /// For tests of the epoch's wrap: launches since the last clean-up, a number a region.
    #[doc(hidden)]
    pub fn completed_epochs(&self) -> Result<Vec<u32>, CudaError> {
        self.gpu.workspace.completed_epochs()
    }

    fn load_dataset(&mut self, dataset: &Dataset) -> Result<(), CudaError> {
        // First, so that two datasets never have to fit at once.
        self.loaded = None;
        self.gpu.free_arrays();
        let is_on_host = dataset.workload.defined().is_some() || may_overflow(dataset);
        let reference_bytes = match &dataset.reference {
            _ if is_on_host => 0,
            Reference::Exact(reference) => reference.len() as u64,
            Reference::Rounded { high, low, magnitude } => 8 * (high.len() + low.len() + magnitude.len()) as u64,
        };
        // Every array, and a master of each input; a plan's temporary arrays come on top where a strategy has some.
        let masters: u64 = dataset.inputs().map(|(_, contents)| contents.len() as u64).sum();
        let array_bytes = dataset.workload.array_bytes(dataset.n) + masters;
        let needed_bytes = array_bytes + GpuHarness::ROOM_BESIDE_ARRAYS + reference_bytes;
        let available_bytes = self.gpu.memory.free_bytes()?;
        if needed_bytes > available_bytes {
            let what = format!("input, output and reference of {} elements", dataset.n);
            return Err(CudaError::OutOfMemory { what, needed_bytes, available_bytes });
        }
        let upload = |bytes: &[u8], what: &str| self.gpu.memory.upload(bytes, what, &self.gpu.stream);
        let numbers = |values: &[f64]| upload(bytemuck::cast_slice(values), "the reference");
        let reference = match &dataset.reference {
            _ if is_on_host => LoadedReference::OnHost(Box::new(dataset.clone())),
            Reference::Exact(reference) => LoadedReference::Exact(upload(reference, "the reference")?),
            Reference::Rounded { high, low, magnitude } => LoadedReference::Rounded {
                high: numbers(high)?,
                low: if low.is_empty() { None } else { Some(numbers(low)?) },
                magnitude: numbers(magnitude)?,
            },
        };
        let master = upload(dataset.own_array(), "the input")?;
        let others = OtherInputs::upload(&self.gpu, dataset)?;
        self.loaded = Some(Loaded { workload: dataset.workload, n: dataset.n, master, others, reference });
        Ok(())
    }

    /// The scan of what is loaded, bound to its arrays; by its kernels as they are, or by those of a recorder.
    fn prepared(
        gpu: &mut GpuHarness,
        loaded: &Loaded,
        request: &ScanRequest,
        recorder: Option<&Recorder>,
    ) -> Result<PreparedScan, CudaError> {
        let holds = loaded.workload.problem(loaded.n);
        if (holds, loaded.n) != (request.problem, request.n) {
            let text = |problem: Problem, n: u64| format!("{n} elements of {problem}");
            return Err(CudaError::DatasetMismatch {
                requested: text(request.problem, request.n),
                loaded: text(holds, loaded.n),
            });
        }
        gpu.bind()?;
        let output = (loaded.workload.output_bytes(request.n), u64::from(request.output_offset));
        let input_bytes = loaded.workload.own_elements(request.n) * loaded.workload.input().bytes() as u64;
        let input = (input_bytes, u64::from(request.input_offset));
        gpu.make_room(input, (!request.in_place).then_some(output))?;
        let output = if request.in_place { &gpu.input } else { &gpu.output };
        let kernels = recorder.map_or(&gpu.kernels, |recorder| &recorder.kernels);
        let (mut scan, places) = match loaded.arrays(request, gpu.input.address(), output.address())? {
            Some(Prepared { request, arrays }) => (PreparedScan::new(&request, kernels)?, Addresses::over(arrays)),
            None => {
                let places = Addresses::between(gpu.input.address(), output.address());
                (PreparedScan::new(request, kernels)?, places)
            }
        };
        scan.bind(places, &mut gpu.workspace)?;
        Ok(scan)
    }

    fn run_loaded(
        gpu: &mut GpuHarness,
        loaded: &Loaded,
        request: &ScanRequest,
        settings: &RunSettings,
    ) -> Result<Outcome, CudaError> {
        let scan = Self::prepared(gpu, loaded, request, None)?;
        let run = Run { gpu, loaded, asked: *request, scan: &scan };
        run.place()?;
        let first_ns = run.launch_timed(1, TIME_LIMIT)?;
        let mut verification = run.verify()?;
        let mut timing = None;
        if settings.samples > 0 && verification.mismatches == 0 && !scan.kernels.is_empty() {
            timing = Some(run.time(settings.samples, first_ns)?);
            if request.in_place {
                // Scanned over and over, the array holds what no reference says; so once more from the start.
                run.place()?;
                run.launch_timed(1, TIME_LIMIT)?;
            }
            verification = run.verify()?;
        }
        let output = settings.keeps_output.then(|| run.output()).transpose()?;
        // The offsets were drawn right, whatever the kernels say.
        check_findings(&gpu.workspace.take_findings()?)?;
        // The kernel that does the scan proper is the last over the user's array.
        let resources = scan.kernels.last().map(|(kernel, _)| kernel.thread_resources()).transpose()?;
        Ok(Outcome {
            verification,
            counters: None,
            timing,
            executor_time: None,
            launches: scan.kernels.len() as u64,
            access_bytes: scan.plan.access_bytes,
            registers: resources.map(|(registers, _)| registers),
            local_bytes: resources.map(|(_, bytes)| bytes),
            output,
        })
    }
}

/// Samples of the time of the ordinary kernel and of the recording one in a turn, and turns.
const RECORDED_SAMPLES: (u32, usize) = (15, 3);
/// Scans by the ordinary kernel right before a recorded one that is not cold.
const WARM_UP_SCANS: u64 = 3;
/// How often what overwrites the L2 cache is as large.
const CACHES_OVERWRITTEN: u64 = 4;

impl CudaDevice {
    fn trace_loaded(
        gpu: &mut GpuHarness,
        loaded: &Loaded,
        request: &ScanRequest,
        settings: &TraceSettings,
        recorder: &mut Recorder,
    ) -> Result<Recording, CudaError> {
        let ordinary = Self::prepared(gpu, loaded, request, None)?;
        let mut recording = Self::prepared(gpu, loaded, request, Some(recorder))?;
        recording.record_into(recorder.place());
        let [ordinary_run, recording_run] =
            [&ordinary, &recording].map(|scan| Run { gpu, loaded, asked: *request, scan });
        ordinary_run.place()?;
        let (samples, turns) = RECORDED_SAMPLES;
        let (mut ordinary_ns, mut recording_ns) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            for (run, times) in [(&ordinary_run, &mut ordinary_ns), (&recording_run, &mut recording_ns)] {
                let first_ns = run.launch_timed(1, TIME_LIMIT)?;
                times.extend(run.time(samples, first_ns)?.samples_ns);
            }
        }
        let other = if settings.is_cold {
            let cache = gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.max(1);
            Some(gpu.memory.allocate(CACHES_OVERWRITTEN * cache, "what overwrites the L2 cache")?)
        } else {
            None
        };
        recorder.clear(gpu)?;
        recorder.read_clocks(gpu)?;
        recording_run.place()?;
        match &other {
            Some(other) => other.fill(0, other.bytes(), FILLING, &gpu.stream)?,
            None => {
                ordinary_run.launch(WARM_UP_SCANS)?;
                // In place a scan leaves another input.
                if request.in_place {
                    recording_run.place()?;
                }
            }
        }
        recording_run.launch_timed(1, TIME_LIMIT)?;
        recorder.read_clocks(gpu)?;
        let verification = recording_run.verify()?;
        let (events, error) = recorder.events(gpu)?;
        let median = |times: &[f64]| Summary::of(times).map_or(0.0, |summary| summary.median);
        let clock = Clock::Nanoseconds { error, ordinary: median(&ordinary_ns), recording: median(&recording_ns) };
        let tiles = recording.plan.steps.iter().map(|step| step.tiles).max().unwrap_or(0);
        Ok(Recording::new(request, tiles, verification.passed(), clock, events))
    }
}

impl Loaded {
    /// The run over several arrays, or one in reverse or in segments; none where the kernels are given one array of numbers,
    /// or there are no elements.
    fn arrays(&self, request: &ScanRequest, input: u64, output: u64) -> Result<Option<Prepared>, CudaError> {
        let LoadedReference::OnHost(dataset) = &self.reference else { return Ok(None) };
        self.others.prepare(dataset, request, input, output)
    }
}

/// A scan that is bound to the arrays of the GPU.
struct Run<'a> {
    gpu: &'a GpuHarness,
    loaded: &'a Loaded,
    /// As it was asked for, with the offsets of the arrays' begins; that of the scan has those of its direction.
    asked: ScanRequest,
    scan: &'a PreparedScan,
}

impl Run<'_> {
    /// The state before a run: input in place between guards, everything that the run writes filled.
    fn place(&self) -> Result<(), CudaError> {
        let stream = &self.gpu.stream;
        self.gpu.input.copy_from(&self.loaded.master, stream)?;
        if let LoadedReference::OnHost(dataset) = &self.loaded.reference {
            self.loaded.others.place(dataset, self.asked.input_offset, stream)?;
        }
        if !self.scan.request.in_place {
            self.gpu.output.fill(stream)?;
        }
        self.gpu.workspace.poison_scratch()
    }

    /// Runs `scans` scans between two events and waits. Nanoseconds for all of them.
    fn launch_timed(&self, scans: u64, limit: Duration) -> Result<f64, CudaError> {
        let start = self.gpu.event()?;
        self.gpu.record(&start)?;
        self.launch(scans)?;
        let end = self.gpu.event()?;
        self.gpu.record(&end)?;
        self.finish(limit)?;
        elapsed_ns(&start, &end)
    }

    fn launch(&self, scans: u64) -> Result<(), CudaError> {
        for _ in 0..scans {
            // SAFETY: the scan is bound to buffers of this device, which keeps them until it has waited, as every caller
            // does; context and stream are this device's.
            unsafe { self.scan.launch(&self.gpu.stream) }?;
        }
        Ok(())
    }

    fn finish(&self, limit: Duration) -> Result<(), CudaError> {
        self.gpu.memory.finish(&self.gpu.stream, limit, &harness::describe(&self.scan.request))
    }

    /// Samples of one scan's time: batches of launches between events, all put onto the stream in one go,
    /// so that the host waits for nothing in between.
    fn time(&self, samples: u32, first_ns: f64) -> Result<Timing, CudaError> {
        let scans_in =
            |duration_ns: f64, scan_ns: f64| (duration_ns / scan_ns.max(100.0)).ceil().clamp(1.0, 10_000.0) as u64;
        // The first run included the cold caches and the loading of the kernel; a second one says more.
        let limit = |scans: u64, scan_ns: f64| {
            TIME_LIMIT + Duration::from_secs_f64(10.0 * scans as f64 * scan_ns.max(0.0) * 1e-9)
        };
        let mut scan_ns = first_ns;
        if first_ns < WARM_UP_NS {
            let few = 8;
            scan_ns = self.launch_timed(few, limit(few, first_ns))? / few as f64;
            let warm_up = scans_in(WARM_UP_NS, scan_ns);
            scan_ns = self.launch_timed(warm_up, limit(warm_up, scan_ns))? / warm_up as f64;
        }
        let scans = scans_in(SAMPLE_NS, scan_ns);
        let events = (0..=samples).map(|_| self.gpu.event()).collect::<Result<Vec<_>, _>>()?;
        self.gpu.record(&events[0])?;
        for event in &events[1..] {
            self.launch(scans)?;
            self.gpu.record(event)?;
        }
        let all = scans * u64::from(samples);
        self.finish(limit(all, scan_ns))?;
        let samples_ns = events
            .windows(2)
            .map(|pair| Ok(elapsed_ns(&pair[0], &pair[1])? / scans as f64))
            .collect::<Result<Vec<_>, CudaError>>()?;
        let median_ns = Summary::of(&samples_ns).map_or(0.0, |summary| summary.median);
        Ok(Timing { median_ns, samples_ns })
    }

    /// Compares every output element, and checks that nothing else was written.
    fn verify(&self) -> Result<Verification, CudaError> {
        let (gpu, request) = (self.gpu, &self.scan.request);
        let what = || harness::describe(request);
        gpu.reset_comparisons()?;
        let output = if request.in_place { &gpu.input } else { &gpu.output };
        self.compare_output(output.address())?;
        gpu.compare_guards(output, [Slot::BeforeOutput, Slot::AfterOutput])?;
        let mut guards = vec![("output", output, Slot::BeforeOutput, Slot::AfterOutput)];
        if !request.in_place {
            gpu.compare_guards(&gpu.input, [Slot::BeforeInput, Slot::AfterInput])?;
            guards.push(("input", &gpu.input, Slot::BeforeInput, Slot::AfterInput));
            let workload = self.loaded.workload;
            let elements = (workload.input().bytes(), workload.own_elements(request.n));
            gpu.compare_with_master(gpu.input.address(), &self.loaded.master, elements, Slot::Input)?;
        }
        if let LoadedReference::OnHost(dataset) = &self.loaded.reference {
            self.loaded.others.compare(gpu, dataset, self.asked.input_offset)?;
        }
        let found = gpu.comparisons()?;
        for (array, buffer, before, after) in guards {
            let (before, after) = (found.of(before), found.of(after));
            let start = buffer.place.start;
            let sides =
                [("before", before, start - before.first.min(start)), ("after", after, after.first.wrapping_add(1))];
            for (side, found, distance) in sides {
                if found.mismatches > 0 {
                    return Err(CudaError::WroteOutside {
                        what: what(),
                        array,
                        side,
                        bytes: found.mismatches,
                        distance,
                    });
                }
            }
        }
        let input = found.of(Slot::Input);
        if input.mismatches > 0 {
            return Err(CudaError::InputChanged { what: what(), elements: input.mismatches, first: input.first });
        }
        if let LoadedReference::OnHost(dataset) = &self.loaded.reference {
            return Ok(verify(request, dataset, &self.output()?));
        }
        let mut verification = Verification::right(request.n);
        let Found { mismatches, first } = found.of(Slot::Output);
        if mismatches > 0 {
            let instance = self.loaded.workload.instance();
            let mut actual = vec![0; instance.element().bytes()];
            output.download(first * actual.len() as u64, &mut actual, &gpu.stream)?;
            verification.mismatches = mismatches;
            verification.first_mismatch = Some(first);
            verification.expected = Some(self.expected(first)?);
            verification.actual = Some(instance.text(&actual));
        }
        Ok(verification)
    }

    /// What the reference says of an element of the output, in words.
    fn expected(&self, index: u64) -> Result<String, CudaError> {
        let Loaded { workload, reference, .. } = self.loaded;
        let instance = workload.instance();
        let at = index.checked_sub(self.scan.request.mode.lag());
        match (reference, at) {
            (LoadedReference::OnHost(_), _) | (_, None) => Ok(instance.text(&instance.identity_bytes())),
            (LoadedReference::Exact(reference), Some(at)) => {
                let mut value = vec![0; instance.element().bytes()];
                reference.download(at * value.len() as u64, &mut value, &self.gpu.stream)?;
                Ok(instance.text(&value))
            }
            (LoadedReference::Rounded { high, low, magnitude }, Some(at)) => {
                let number = |array: &Buffer| -> Result<f64, CudaError> {
                    let mut bytes = [0; 8];
                    array.download(8 * at, &mut bytes, &self.gpu.stream)?;
                    Ok(f64::from_le_bytes(bytes))
                };
                let low = low.as_ref().map_or(Ok(0.0), number)?;
                let bound = error_factor(&self.scan.request) * number(magnitude)?;
                Ok(Sum { high: number(high)?, low, bound }.text())
            }
        }
    }

    /// The bytes of the output.
    fn output(&self) -> Result<Vec<u8>, CudaError> {
        let request = &self.scan.request;
        let array = if request.in_place { &self.gpu.input } else { &self.gpu.output };
        let mut bytes = vec![0; self.loaded.workload.output_bytes(request.n) as usize];
        array.download(0, &mut bytes, &self.gpu.stream)?;
        Ok(bytes)
    }

    /// The output against the reference.
    fn compare_output(&self, output: u64) -> Result<(), CudaError> {
        let (n, instance) = (self.loaded.n, self.loaded.workload.instance());
        let element = instance.element();
        let (lag, result) = (self.scan.request.mode.lag(), self.gpu.slot(Slot::Output));
        match &self.loaded.reference {
            LoadedReference::Exact(reference) => {
                let name = match element.float() {
                    Some(_) => &format!("compare_exact_{element}"),
                    None => exact_name(element.bytes()),
                };
                let mut identity = [0_u8; 16];
                let bytes = instance.identity_bytes();
                identity[..bytes.len()].copy_from_slice(&bytes);
                let [low, high]: [u64; 2] = bytemuck::cast(identity);
                self.gpu.launch_over(name, n, &[output, reference.address(), n, lag, low, high, result])
            }
            LoadedReference::Rounded { high, low, magnitude } => {
                let largest = element.float().map_or(f64::MAX, |float| float.largest);
                let [high, magnitude] = [high, magnitude].map(Buffer::address);
                let low = low.as_ref().map_or(0, Buffer::address);
                let factor = error_factor(&self.scan.request);
                let words = [output, high, low, magnitude, n, lag, factor.to_bits(), largest.to_bits(), result];
                self.gpu.launch_over(&format!("compare_rounded_{element}"), n, &words)
            }
            LoadedReference::OnHost(_) => Ok(()),
        }
    }
}

impl Device for CudaDevice {
    fn description(&self) -> DeviceDescription {
        self.description.clone()
    }

    fn gpu(&self) -> Gpu {
        self.gpu.gpu()
    }

    fn load(&mut self, dataset: &Dataset) -> Result<(), DeviceError> {
        self.load_dataset(dataset).map_err(|error| self.gpu.device_error(error))
    }

    fn run(&mut self, request: &ScanRequest, settings: &RunSettings) -> Result<Outcome, DeviceError> {
        let Some(loaded) = &self.loaded else { return Err(DeviceError::NoDataset) };
        Self::run_loaded(&mut self.gpu, loaded, request, settings).map_err(|error| self.gpu.device_error(error))
    }

    fn trace(&mut self, request: &ScanRequest, settings: &TraceSettings) -> Result<Recording, DeviceError> {
        let Some(loaded) = &self.loaded else { return Err(DeviceError::NoDataset) };
        let tiles = Plan::new(request)?.steps.iter().map(|step| step.tiles).max().unwrap_or(0);
        let mut recorder = Recorder::new(&self.gpu, tiles)?;
        Self::trace_loaded(&mut self.gpu, loaded, request, settings, &mut recorder)
            .map_err(|error| self.gpu.device_error(error))
    }
}

fn description(gpu: &GpuHarness) -> Result<DeviceDescription, CudaError> {
    // A fact that the driver does not give is no reason to do without the device.
    let fact =
        |which, text: &dyn Fn(u64) -> String| gpu.attribute(which).map_or_else(|_| String::from("unknown"), text);
    let megahertz = |kilohertz: u64| format!("{} MHz", kilohertz / 1000);
    let mebibytes = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let facts = [
        ("driver", kernel_module_version()),
        ("CUDA of the driver", driver_cuda()?),
        ("compute capability", gpu.compute_capability()),
        ("multiprocessors", gpu.gpu().multiprocessors.to_string()),
        ("memory", format!("{:.1} GiB", gpu.memory_bytes()? as f64 / f64::from(1 << 30))),
        ("L2 cache", fact(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &mebibytes)),
        ("largest core clock", fact(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &megahertz)),
        ("largest memory clock", fact(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &megahertz)),
        ("memory bus", fact(Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &|bits| format!("{bits} bits"))),
        ("compiler", gpu.compiler_name()),
    ];
    Ok(DeviceDescription {
        kind: String::from("cuda"),
        name: gpu.name.clone(),
        facts: facts.into_iter().map(|(what, value)| (what.to_owned(), value)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
