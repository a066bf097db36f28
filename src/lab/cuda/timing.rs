//! The GPU behind [`crate::lab::measure`]: makes inputs in place, verifies on the device, and takes samples.
//!
//! How a sample is taken, per figure; everything stands on one stream:
//!
//! ```text
//! cold     hold · clock probe · overwrite L2 · event · run · event · clock probe      then release, wait
//! stream          clock probe ·                event · run … run · event · clock probe     then wait
//! graph    hold · clock probe ·                event · graph of runs · event · clock probe then release, wait
//! latency         clock probe, wait;  host clock · run · wait · host clock;  clock probe, wait
//! ```
//!
//! `hold` is a kernel that waits for the host's word, so that everything behind it is queued before the first
//! event: launch latency stays outside. It gives up after a limit of its own, so a host that dies, a driver
//! that will not queue behind a waiting kernel, or a subject that waits for the stream can never hang the
//! GPU; a cold sample that was released so is late and does not count. Subjects that wait inside the call
//! are not held.
//!
//! All subjects of a point read one input and write one output, and all launches share one workspace: on one
//! stream they run one after the other, which is what a workspace asks for (`crate::cuda::workspace`).

use super::device::{CudaDevice, attribute, elapsed_ns, kernel_module_version};
use crate::cuda::compile::{Architecture, Compiler, KernelResources, Variant};
use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::launch::{KernelSet, PreparedScan, function};
use crate::cuda::memory::{Buffer, DeviceMemory};
use crate::cuda::toolkit::probe_driver;
use crate::cuda::workspace::Workspace;
use crate::element::Instance;
use crate::lab::device::DeviceError;
use crate::lab::measure::environment::{self, Machine};
use crate::lab::measure::input::{self, Distribution};
use crate::lab::measure::point::{Offsets, Point, Subject};
use crate::lab::measure::run::{Laboratory, NotMeasured, OpenedPoint, SubjectFacts};
use crate::lab::measure::sampling::{Executor, Figure, Readiness, Sample};
use crate::lab::peers::{self, PeerError, PreparedPeer};
use crate::lab::verify::{Verification, error_factor};
use crate::strategy::plan::{Kernel, KernelConfig, Plan, ScanRequest};
use crate::strategy::{Mode, ScanConfig, Strategy};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUevent_flags};
use cudarc::driver::{CudaContext, CudaEvent, CudaFunction, CudaModule, CudaStream, result};
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of guard on each side of an array; a multiple of every alignment that a kernel could want.
const GUARD_BYTES: u64 = 4096;
/// Bytes that offsets move an array by at most.
const OFFSET_ROOM_BYTES: u64 = Offsets::MOST as u64 * 8;
/// What outputs, guards and temporary arrays hold before a verified run.
const FILLING: u8 = 0xA5;
/// How long anything may take before it counts as hung.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How long a clock probe lasts.
const PROBE_NS: u64 = 20_000;
/// How long `hold` waits for the host: queueing a cold sample takes some 20 µs.
const HOLD_LIMIT_NS: u64 = 50_000_000;
/// Likewise before a graph, where a driver that will not queue a long graph behind a waiting kernel would make
/// every sample wait for the limit.
const GRAPH_HOLD_LIMIT_NS: u64 = 2_000_000;
/// The most kernels in one graph.
const GRAPH_KERNELS: u64 = 2048;
/// The most runs in one sample.
const SAMPLE_RUNS: u32 = 1024;
/// Threads of a block of the measurement kernels, `__launch_bounds__` in `cuda/measure.cu`.
const THREADS: u32 = 256;
/// Bytes that a block of the copy kernels moves, `COPY_THREADS · COPY_WORDS_PER_THREAD` words of 16 bytes.
const COPY_TILE_BYTES: u64 = 256 * 4 * 16;
/// Elements of an input that are compared with the host's generator before anything is measured on it.
const CHECKED_ELEMENTS: u64 = 64;

/// A subject ready to run.
struct PreparedSubject {
    work: Work,
    mode: Option<Mode>,
    /// What bounds the error of a float sum; for a peer a stand-in.
    request: Option<ScanRequest>,
    /// Whether the call returns before the device is done.
    is_asynchronous: bool,
    /// Whether it may be captured.
    is_capturable: bool,
    /// Whether its result is wrong by design.
    is_bound: bool,
    graph: Option<Graph>,
    facts: SubjectFacts,
}

enum Work {
    Scan(Box<PreparedScan>),
    Peer(Box<PreparedPeer>),
    Memcpy { bytes: u64 },
    Copy { function: CudaFunction, blocks: u32, bytes: u64, tiles: u64 },
    Spin { function: CudaFunction, nanoseconds: u64 },
    Nothing,
}

/// An instantiated graph of some runs.
struct Graph {
    memory: Arc<DeviceMemory>,
    executable: sys::CUgraphExec,
}

impl Drop for Graph {
    fn drop(&mut self) {
        if !self.memory.is_abandoned() {
            // SAFETY: instantiated once, destroyed here alone; every launch of it was waited for.
            self.memory.context().record_err(unsafe { result::graph::exec_destroy(self.executable) });
        }
    }
}

/// The point whose subjects are ready.
struct OpenPoint {
    instance: Instance,
    n: u64,
    seed: u64,
    subjects: Vec<Option<PreparedSubject>>,
    /// Float sums: sums of everything before each chunk, and the length of a chunk.
    chunk_prefixes: Option<(Buffer, u64)>,
}

impl PreparedSubject {
    fn new(work: Work, mode: Option<Mode>, request: Option<ScanRequest>, facts: SubjectFacts) -> Self {
        Self { work, mode, request, is_asynchronous: true, is_capturable: true, is_bound: false, graph: None, facts }
    }

    /// What it is, for messages.
    fn describe(&self) -> String {
        match &self.work {
            Work::Scan(scan) => {
                let ScanRequest { instance, strategy, mode, config, n, .. } = scan.request();
                let (vt, threads) = (config.vt, config.block_threads);
                format!("{strategy}, {instance}, {mode}, {n} elements, VT {vt}, {threads} threads a block")
            }
            Work::Peer(peer) => {
                format!("{}, {}, {}, {} elements", peer.peer().name(), peer.instance(), peer.mode(), peer.n())
            }
            Work::Memcpy { bytes } => format!("copying {bytes} bytes on the device"),
            Work::Copy { bytes, .. } => format!("the copy kernel over {bytes} bytes"),
            Work::Spin { nanoseconds, .. } => format!("a kernel that runs for {nanoseconds} ns"),
            Work::Nothing => String::from("an empty frame"),
        }
    }

    /// Kernels and copies of one run.
    fn launches(&self) -> u64 {
        match &self.work {
            Work::Scan(scan) => scan.launches().max(1),
            // CUB and Thrust launch two kernels.
            Work::Peer(_) => 2,
            _ => 1,
        }
    }
}

/// The scan of a point's arrays.
fn request(point: &Point, strategy: Strategy, mode: Mode, config: ScanConfig) -> ScanRequest {
    // Buffers and guards are multiples of 256, so only the offsets are off a boundary.
    let beyond_boundary = |elements: u32| elements * point.instance.element().bytes() as u32 % ScanRequest::OFFSETS;
    ScanRequest {
        instance: point.instance,
        strategy,
        mode,
        config,
        n: point.n,
        in_place: false,
        input_offset: beyond_boundary(point.offsets.input),
        output_offset: beyond_boundary(point.offsets.output),
    }
}

/// One GPU that points are measured on.
pub struct GpuLaboratory {
    // In the order in which they have to go: graphs and prepared work, then what they use.
    open: Option<OpenPoint>,
    workspace: Workspace,
    input: Option<Buffer>,
    output: Option<Buffer>,
    overwritten: Buffer,
    results: Buffer,
    signals: Signals,
    tools: Tools,
    start: CudaEvent,
    end: CudaEvent,
    resources: HashMap<KernelKey, KernelResources>,
    /// Bytes from the aligned places of input and output to where the open point has them.
    offset_bytes: (u64, u64),
    kernels: KernelSet,
    /// The same kernels without their waiting.
    bounds: KernelSet,
    stream: Arc<CudaStream>,
    memory: Arc<DeviceMemory>,
    machine: Machine,
    identity: [u8; 16],
    opened_at: Instant,
}

type KernelKey = (Kernel, Instance, KernelConfig);

/// The kernels that every sample needs, looked up once.
struct Tools {
    module: Arc<CudaModule>,
    hold: CudaFunction,
    clock_probe: CudaFunction,
    overwrite: CudaFunction,
    /// Blocks of a kernel that strides over its array.
    blocks: u32,
}

impl Drop for GpuLaboratory {
    fn drop(&mut self) {
        if self.memory.is_abandoned() {
            // Unloading a module waits for its kernels, and one of them hangs: the process's end unloads.
            std::mem::forget(self.kernels.take_modules());
            std::mem::forget(self.bounds.take_modules());
            std::mem::forget(Arc::clone(&self.tools.module));
            std::mem::forget(Arc::clone(&self.stream));
            std::mem::forget(self.open.take());
        }
    }
}

/// Memory of the host that kernels read and write: the word that releases `hold`, and what kernels report.
struct Signals {
    memory: Arc<DeviceMemory>,
    host: NonNull<u8>,
    device: u64,
    ticket: u32,
}

// SAFETY: the pointer is to pinned memory of the process, which any thread may use; `Signals` is the only one
// on the host that does.
unsafe impl Send for Signals {}

impl Signals {
    /// Each on a line of its own: the host writes the first, the device the others.
    const RELEASE: usize = 0;
    const LATE: usize = 128;
    const PROBES: usize = 256;
    const PROBE_BYTES: usize = 16;
    const BYTES: usize = 512;

    fn new(memory: &Arc<DeviceMemory>) -> Result<Self, CudaError> {
        memory.context().bind_to_thread().during(|| String::from("making the context current"))?;
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: written right below before anything reads it.
        let host = unsafe { result::malloc_host(Self::BYTES, flags) }
            .during(|| String::from("allocating pinned memory for signals"))?;
        let Some(host) = NonNull::new(host.cast::<u8>()) else {
            return Err(CudaError::OutOfMemory {
                what: String::from("pinned signals"),
                needed_bytes: Self::BYTES as u64,
                available_bytes: 0,
            });
        };
        // SAFETY: as many bytes as were allocated.
        unsafe { host.as_ptr().write_bytes(0, Self::BYTES) };
        let mut signals = Self { memory: Arc::clone(memory), host, device: 0, ticket: 0 };
        // SAFETY: a valid place for the address; memory that was allocated for being mapped.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut signals.device, signals.host.as_ptr().cast(), 0) }
            .result()
            .during(|| String::from("mapping pinned memory"))?;
        Ok(signals)
    }

    fn device_address(&self, offset: usize) -> u64 {
        self.device + offset as u64
    }

    /// A word that no `hold` before has waited for.
    fn next_ticket(&mut self) -> u32 {
        // 0 is what the memory held at first.
        self.ticket = self.ticket.wrapping_add(1).max(1);
        self.ticket
    }

    /// Lets the `hold` that waits for `ticket` go.
    fn release(&self, ticket: u32) {
        // SAFETY: aligned, inside the allocation, alive as long as `self`; device and host access it by atomic
        // accesses alone.
        let word = unsafe { AtomicU32::from_ptr(self.host.as_ptr().add(Self::RELEASE).cast()) };
        // Release, pairs with the acquire in `read_from_host` of cuda/measure.cu.
        word.store(ticket, Ordering::Release);
    }

    /// Whether the `hold` of this ticket gave up. Only to be asked after the stream was waited for.
    fn was_late(&self, ticket: u32) -> bool {
        // SAFETY: as in `release`; the wait for the stream orders the kernel's write before this.
        let word = unsafe { AtomicU32::from_ptr(self.host.as_ptr().add(Self::LATE).cast()) };
        word.load(Ordering::Acquire) == ticket
    }

    /// The clock that probe 0 or 1 found, in megahertz. Only to be asked after the stream was waited for.
    fn clock_megahertz(&self, probe: usize) -> Option<f64> {
        let offset = Self::PROBES + probe * Self::PROBE_BYTES;
        // SAFETY: two aligned words inside the allocation, which the probe wrote before the wait.
        let [cycles, nanoseconds] = unsafe { self.host.as_ptr().add(offset).cast::<[u64; 2]>().read_volatile() };
        (nanoseconds > 0 && cycles > 0).then(|| cycles as f64 * 1000.0 / nanoseconds as f64)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if !self.memory.is_abandoned() {
            let context = self.memory.context();
            context.record_err(context.bind_to_thread());
            // SAFETY: allocated in `new`, freed here alone; every kernel that uses it was waited for.
            context.record_err(unsafe { result::free_host(self.host.as_ptr().cast()) });
        }
    }
}

impl GpuLaboratory {
    /// Opens the GPU with this number and finds the compiler.
    ///
    /// # Errors
    /// No driver, no such device, no compiler: the error says what was looked for and what to do.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        let available = CudaDevice::count()?;
        if ordinal >= available {
            return Err(CudaError::NoDevice { ordinal, available });
        }
        let compiler = Compiler::new()?;
        probe_driver()?;
        let context = CudaContext::new(ordinal).during(|| format!("opening CUDA device {ordinal}"))?;
        // SAFETY: this device works on one stream and on buffers of its own, which are freed after a wait;
        // the context object was made right above and is nobody else's.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().during(|| String::from("making a stream"))?;
        let memory = DeviceMemory::new(&context)?;
        let kernels = KernelSet::new(&context, compiler)?;
        let bounds = KernelSet::new(&context, Compiler::new()?)?.with_variant(Variant::without_waiting);
        let identity = identity(&context)?;
        let machine = describe(&context, &kernels, identity)?;
        let tools = Tools::new(&context, &kernels)?;
        // More than twice the L2, so that whatever share of it the writes go past, nothing else stays.
        let overwritten_bytes = (machine.l2_bytes * 5 / 2).next_multiple_of(1 << 20).max(16 << 20);
        let event = || {
            // Without the flag cudarc makes an event that measures no time.
            context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).during(|| String::from("making an event"))
        };
        let mut laboratory = Self {
            open: None,
            workspace: Workspace::new(&memory, &stream),
            input: None,
            output: None,
            overwritten: memory.allocate(overwritten_bytes, "what overwrites the L2")?,
            results: memory.allocate((Slot::COUNT * Slot::BYTES) as u64, "the results of comparisons")?,
            signals: Signals::new(&memory)?,
            tools,
            start: event()?,
            end: event()?,
            resources: HashMap::new(),
            offset_bytes: (0, 0),
            kernels,
            bounds,
            stream,
            memory,
            machine,
            identity,
            opened_at: Instant::now(),
        };
        laboratory.run_tools_once()?;
        Ok(laboratory)
    }

    /// The first launch of a kernel may load it, which may wait for the device: not behind a kernel that waits
    /// for the host.
    fn run_tools_once(&mut self) -> Result<(), CudaError> {
        self.probe_clock(0)?;
        self.probe_clock(1)?;
        self.overwrite_l2(0)?;
        let ticket = self.signals.next_ticket();
        self.signals.release(ticket);
        self.hold(ticket, HOLD_LIMIT_NS)?;
        self.finish("the timer's own kernels")
    }

    /// Time of `runs` runs of a subject of the open point, launched one after the other, in nanoseconds. For
    /// benchmarks that count runs themselves.
    ///
    /// # Errors
    /// When the device failed.
    pub fn time_runs(&mut self, entry: usize, runs: u64) -> Result<f64, DeviceError> {
        let mut total = 0.0;
        let mut left = runs;
        while left > 0 {
            let part = left.min(u64::from(SAMPLE_RUNS)) as u32;
            total += self.take(entry, Figure::Stream, part)?.nanoseconds * f64::from(part);
            left -= u64::from(part);
        }
        Ok(total)
    }

    fn device_error(&self, error: CudaError) -> DeviceError {
        match error {
            CudaError::OutOfMemory { what, needed_bytes, available_bytes } => {
                DeviceError::OutOfMemory { what, device: self.machine.gpu.clone(), needed_bytes, available_bytes }
            }
            CudaError::Config(error) => DeviceError::Config(error),
            other => DeviceError::Cuda(other),
        }
    }

    fn bind(&self) -> Result<(), CudaError> {
        self.memory.context().bind_to_thread().during(|| String::from("making the context current"))
    }

    fn finish(&self, what: &str) -> Result<(), CudaError> {
        self.memory.finish(&self.stream, TIME_LIMIT, what)
    }

    /// Launches a kernel of `cuda/measure.cu`. Every parameter of these fits a word of 8 bytes, and a
    /// narrower one takes the word's low bytes.
    fn launch(&self, kernel: &CudaFunction, blocks: u32, threads: u32, arguments: &[u64]) -> Result<(), CudaError> {
        launch(kernel, blocks, threads, arguments, &self.stream)
    }

    /// Launches a kernel that strides over `n` elements.
    fn launch_over(&self, name: &str, n: u64, arguments: &[u64]) -> Result<(), CudaError> {
        let kernel = function(&self.tools.module, name)?;
        let blocks = n.div_ceil(u64::from(THREADS)).clamp(1, u64::from(self.tools.blocks)) as u32;
        self.launch(&kernel, blocks, THREADS, arguments)
    }

    fn input_address(&self) -> u64 {
        self.input.as_ref().map_or(0, |buffer| buffer.address() + GUARD_BYTES + self.offset_bytes.0)
    }

    fn output_address(&self) -> u64 {
        self.output.as_ref().map_or(0, |buffer| buffer.address() + GUARD_BYTES + self.offset_bytes.1)
    }

    /// Buffers for `bytes` bytes between guards; `false` if they do not fit, with the reason.
    fn make_room(&mut self, bytes: u64) -> Result<Result<(), String>, CudaError> {
        // For any offsets, so that points that differ in these alone have the same memory.
        let needed = bytes + 2 * GUARD_BYTES + OFFSET_ROOM_BYTES;
        let is_large_enough = |buffer: &Option<Buffer>| buffer.as_ref().is_some_and(|buffer| buffer.bytes() >= needed);
        if is_large_enough(&self.input) && is_large_enough(&self.output) {
            return Ok(Ok(()));
        }
        self.input = None;
        self.output = None;
        let allocated = self
            .memory
            .allocate(needed, "the input")
            .and_then(|input| Ok((input, self.memory.allocate(needed, "the output")?)));
        match allocated {
            Ok((input, output)) => {
                (self.input, self.output) = (Some(input), Some(output));
                Ok(Ok(()))
            }
            Err(error @ CudaError::OutOfMemory { .. }) => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Makes the input of a point, in place.
    fn generate(&self, instance: Instance, n: u64, seed: u64, distribution: Distribution) -> Result<(), CudaError> {
        let name = format!("generate_{}", instance.element());
        self.launch_over(&name, n, &[self.input_address(), n, seed, u64::from(distribution as u32)])
    }

    /// Compares the first and the last elements with the host's generator: a wrong input would be verified by
    /// the same wrong generator and look right.
    fn check_input(&self, point: &Point, seed: u64, distribution: Distribution) -> Result<(), CudaError> {
        let element = point.instance.element();
        let Some(buffer) = &self.input else { return Ok(()) };
        let count = CHECKED_ELEMENTS.min(point.n);
        for first in [0, point.n - count] {
            let mut found = vec![0; count as usize * element.bytes()];
            let place = GUARD_BYTES + self.offset_bytes.0 + first * element.bytes() as u64;
            buffer.download(place, &mut found, &self.stream)?;
            let expected: Vec<u8> = (first..first + count)
                .flat_map(|index| input::generate(element, distribution, seed, point.n, index))
                .collect();
            if found != expected {
                return Err(CudaError::Driver {
                    action: format!("making {} elements of {element}", point.n),
                    name: String::from("wrong input"),
                    message: format!("elements {first} to {} are not those of the host's generator", first + count - 1),
                });
            }
        }
        Ok(())
    }

    fn open_point(&mut self, point: &Point, seed: u64) -> Result<OpenedPoint, CudaError> {
        self.bind()?;
        self.open = None;
        let element_bytes = point.instance.element().bytes() as u64;
        let Offsets { input, output } = point.offsets;
        self.offset_bytes = (u64::from(input) * element_bytes, u64::from(output) * element_bytes);
        if let Err(reason) = self.make_room(point.input_bytes())? {
            return Ok(OpenedPoint::DoesNotFit(reason));
        }
        let distribution = Distribution::of(point.instance);
        self.generate(point.instance, point.n, seed, distribution)?;
        self.finish("making the input")?;
        self.check_input(point, seed, distribution)?;
        let chunk_prefixes = match self.chunk_prefixes(point.instance, point.n, seed) {
            Err(error @ CudaError::OutOfMemory { .. }) => return Ok(OpenedPoint::DoesNotFit(error.to_string())),
            prefixes => prefixes?,
        };
        let mut prepared: Vec<Result<PreparedSubject, NotMeasured>> = Vec::with_capacity(point.entries.len());
        for entry in &point.entries {
            prepared.push(self.prepare_subject(point, &entry.subject));
        }
        // Each pass may replace memory that an earlier subject was bound to; from the one on that replaces
        // nothing, every address stands. A pass that drops a subject for want of memory may shrink it again.
        for _ in 0..3 {
            for subject in &mut prepared {
                let Ok(PreparedSubject { work: Work::Scan(scan), .. }) = subject else { continue };
                let bound = scan.bind(self.input_address(), self.output_address(), &mut self.workspace);
                match bound {
                    Ok(()) => {}
                    Err(error @ CudaError::OutOfMemory { .. }) => {
                        *subject = Err(NotMeasured::NotLaunchable(error.to_string()));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let answers = prepared
            .iter()
            .map(|subject| subject.as_ref().map(|subject| subject.facts).map_err(NotMeasured::clone))
            .collect();
        let subjects = prepared.into_iter().map(Result::ok).collect();
        self.open = Some(OpenPoint { instance: point.instance, n: point.n, seed, subjects, chunk_prefixes });
        Ok(OpenedPoint::Ready(answers))
    }

    fn prepare_subject(&self, point: &Point, subject: &Subject) -> Result<PreparedSubject, NotMeasured> {
        let not_launchable = |error: CudaError| NotMeasured::NotLaunchable(error.to_string());
        let copy = |name: &str, work: &dyn Fn(CudaFunction) -> Work, access_bytes: Option<u32>| {
            let kernel = function(&self.tools.module, name).map_err(not_launchable)?;
            let registers = kernel.num_regs().ok().and_then(|count| u32::try_from(count).ok());
            let facts = SubjectFacts { access_bytes, launches: Some(1), registers, spill_bytes: Some(0) };
            Ok(PreparedSubject::new(work(kernel), None, None, facts))
        };
        let bytes = point.input_bytes();
        let tiles = bytes.div_ceil(COPY_TILE_BYTES).max(1);
        let tile_copy = |extra: u64| {
            move |function: CudaFunction| Work::Copy {
                function,
                // 2^32 elements of 8 bytes are 2^21 tiles.
                blocks: u32::try_from(tiles + extra).unwrap_or(i32::MAX as u32),
                bytes,
                tiles,
            }
        };
        match subject {
            Subject::Scan { strategy, mode, config } | Subject::Auto { strategy, mode, config } => {
                let request = request(point, *strategy, *mode, *config);
                let scan = PreparedScan::new(&request, &self.kernels).map_err(not_launchable)?;
                let facts = self.facts(&request, &scan);
                Ok(PreparedSubject::new(Work::Scan(Box::new(scan)), Some(*mode), Some(request), facts))
            }
            Subject::Bound { strategy, mode, config } => {
                let request = request(point, *strategy, *mode, *config);
                let scan = PreparedScan::new(&request, &self.bounds).map_err(not_launchable)?;
                let facts = SubjectFacts {
                    access_bytes: Some(scan.access_bytes()),
                    launches: Some(scan.launches()),
                    ..SubjectFacts::default()
                };
                let mut subject = PreparedSubject::new(Work::Scan(Box::new(scan)), Some(*mode), Some(request), facts);
                subject.is_bound = true;
                Ok(subject)
            }
            Subject::Peer { name, mode } => {
                let unsupported = |error: PeerError| NotMeasured::Unsupported(error.to_string());
                let peer = peers::by_name(name).map_err(unsupported)?;
                let prepared =
                    peer.prepare(&self.stream, point.instance, *mode, point.n).map_err(|error| match error {
                        PeerError::Unsupported { .. } | PeerError::TooLarge { .. } => unsupported(error),
                        other => NotMeasured::NotLaunchable(other.to_string()),
                    })?;
                let request = prepared.verification_request();
                let work = Work::Peer(Box::new(prepared));
                let mut subject = PreparedSubject::new(work, Some(*mode), Some(request), SubjectFacts::default());
                // What may not be captured allocates or waits inside the call.
                subject.is_asynchronous = peer.is_capturable();
                subject.is_capturable = peer.is_capturable();
                Ok(subject)
            }
            Subject::Memcpy => Ok(PreparedSubject::new(Work::Memcpy { bytes }, None, None, SubjectFacts::default())),
            Subject::Copy16 | Subject::Copy16Again | Subject::Copy16Slower
                if !(self.input_address() | self.output_address()).is_multiple_of(16) =>
            {
                let why = "it moves 16 bytes a lane, and input or output does not begin at such a boundary";
                Err(NotMeasured::Unsupported(why.to_owned()))
            }
            Subject::Copy16 => copy("copy_16", &tile_copy(0), Some(16)),
            Subject::Copy16Again => copy("copy_16_again", &tile_copy(0), Some(16)),
            Subject::Copy16Slower => copy("copy_16_slower", &tile_copy(tiles.div_ceil(20)), Some(16)),
            Subject::EmptyFrame => Ok(PreparedSubject::new(Work::Nothing, None, None, SubjectFacts::default())),
            Subject::Spin { nanoseconds } => {
                let nanoseconds = *nanoseconds;
                copy("spin", &move |function| Work::Spin { function, nanoseconds }, None)
            }
        }
    }

    fn facts(&self, request: &ScanRequest, scan: &PreparedScan) -> SubjectFacts {
        let resources: Vec<KernelResources> = Plan::new(request)
            .map(|plan| {
                let key = |step: &crate::strategy::plan::Step| (step.kernel, request.instance.canonical(), step.config);
                plan.steps.iter().filter_map(|step| self.resources.get(&key(step)).copied()).collect()
            })
            .unwrap_or_default();
        SubjectFacts {
            access_bytes: Some(scan.access_bytes()),
            launches: Some(scan.launches()),
            registers: resources.iter().map(|kernel| kernel.registers).max(),
            spill_bytes: resources.iter().map(|kernel| kernel.spill_bytes()).max(),
        }
    }

    /// Sums of everything before each chunk of a float sum's input: one thread a chunk, then the host from
    /// front to back. `None` for exact instances.
    fn chunk_prefixes(&self, instance: Instance, n: u64, seed: u64) -> Result<Option<(Buffer, u64)>, CudaError> {
        /// `precise_sum` in `cuda/measure.cu`: high, low, magnitude.
        const SUM_BYTES: u64 = 24;
        if !instance.is_rounded() {
            return Ok(None);
        }
        // Enough chunks to fill the GPU, and long enough that their sums are a small array.
        let chunk_length = (n >> 18).clamp(64, 4096);
        let chunks = n.div_ceil(chunk_length);
        let buffer = self.memory.allocate(chunks * SUM_BYTES, "sums of chunks")?;
        let name = format!("sum_chunks_{}", instance.element());
        let distribution = u64::from(Distribution::of(instance) as u32);
        self.launch_over(&name, chunks, &[buffer.address(), n, seed, distribution, chunk_length])?;
        self.finish("summing chunks")?;
        let mut bytes = vec![0; (chunks * SUM_BYTES) as usize];
        buffer.download(0, &mut bytes, &self.stream)?;
        let mut before = PreciseSum::default();
        for sum in bytes.chunks_exact_mut(SUM_BYTES as usize) {
            let total: [f64; 3] = bytemuck::pod_read_unaligned(sum);
            sum.copy_from_slice(bytemuck::bytes_of(&[before.high, before.low, before.magnitude]));
            before.add(PreciseSum { high: total[0], low: total[1], magnitude: total[2] });
        }
        buffer.upload(0, &bytes, &self.stream)?;
        Ok(Some((buffer, chunk_length)))
    }

    fn verify_entry(
        &mut self,
        open: &mut OpenPoint,
        entry: usize,
    ) -> Result<Result<Verification, NotMeasured>, CudaError> {
        self.bind()?;
        let Some(subject) = open.subjects.get_mut(entry).and_then(Option::as_mut) else {
            return Ok(Err(NotMeasured::Unsupported(String::from("it was not prepared"))));
        };
        let (instance, n, seed) = (open.instance, open.n, open.seed);
        if subject.is_bound || matches!(subject.work, Work::Spin { .. } | Work::Nothing) {
            return Ok(match self.run_once(subject)? {
                Ok(()) => Ok(Verification { compared: 0, mismatches: 0, first_mismatch: None }),
                Err(reason) => Err(reason),
            });
        }
        let distribution = Distribution::of(instance);
        let mut verification = Verification { compared: n, mismatches: 0, first_mismatch: None };
        if subject.mode.is_some() && open.chunk_prefixes.is_some() {
            // Whole numbers first: their sums are exact in any order, so nothing hides in a rounding bound.
            self.generate(instance, n, seed, Distribution::Walk)?;
            let ran = self.run_once(subject)?;
            let found = match ran {
                Ok(()) => Some(self.compare(subject, instance, n, seed, Distribution::Walk, None)?),
                Err(_) => None,
            };
            self.generate(instance, n, seed, distribution)?;
            match (ran, found) {
                (Err(reason), _) => return Ok(Err(reason)),
                (Ok(()), Some(found)) => add(&mut verification, &found),
                (Ok(()), None) => {}
            }
        }
        if let Err(reason) = self.run_once(subject)? {
            return Ok(Err(reason));
        }
        let prefixes = open.chunk_prefixes.as_ref();
        let found = self.compare(subject, instance, n, seed, distribution, prefixes)?;
        let is_input_changed = found[Slot::Input as usize].mismatches > 0;
        add(&mut verification, &found);
        if is_input_changed {
            // The other subjects must not pay for it.
            self.generate(instance, n, seed, distribution)?;
            self.finish("making the input anew")?;
        }
        Ok(Ok(verification))
    }

    /// Poisons what a run writes, runs, waits.
    fn run_once(&mut self, subject: &mut PreparedSubject) -> Result<Result<(), NotMeasured>, CudaError> {
        if let Some(output) = &self.output {
            output.fill(0, output.bytes(), FILLING, &self.stream)?;
        }
        self.workspace.poison_scratch(FILLING)?;
        if let Err(error) = self.enqueue(subject) {
            // A launch that the driver refuses has started nothing. If it was more than that, waiting says so.
            self.finish("a launch that was refused")?;
            return Ok(Err(NotMeasured::NotLaunchable(error.to_string())));
        }
        self.finish(&subject.describe())?;
        Ok(Ok(()))
    }

    /// Puts one run onto the stream.
    fn enqueue(&self, subject: &mut PreparedSubject) -> Result<(), CudaError> {
        let (input, output) = (self.input_address(), self.output_address());
        match &mut subject.work {
            // SAFETY: bound in `open_point` to the buffers of this point, which live until the next one is
            // opened, and that waits first; stream, workspace, kernels and context are this laboratory's.
            Work::Scan(scan) => unsafe { scan.launch(&self.stream) },
            // SAFETY: both addresses are of n elements between guards, multiples of the element's size, and apart; they
            // live until the stream was waited for; the context was made current by the caller.
            Work::Peer(peer) => unsafe { peer.launch_addresses(input, output) }.map_err(peer_error),
            // SAFETY: as above.
            Work::Memcpy { bytes } => {
                unsafe { result::memcpy_dtod_async(output, input, *bytes as usize, self.stream.cu_stream()) }
                    .during(|| String::from("copying on the device"))
            }
            Work::Copy { function, blocks, bytes, tiles } => {
                self.launch(function, *blocks, THREADS, &[input, output, *bytes, *tiles])
            }
            Work::Spin { function, nanoseconds } => self.launch(function, 1, 1, &[*nanoseconds]),
            Work::Nothing => Ok(()),
        }
    }

    /// Compares the output, the input and the guards of a run that was waited for.
    fn compare(
        &self,
        subject: &PreparedSubject,
        instance: Instance,
        n: u64,
        seed: u64,
        distribution: Distribution,
        prefixes: Option<&(Buffer, u64)>,
    ) -> Result<[Found; Slot::COUNT], CudaError> {
        let element = instance.element();
        self.reset_results()?;
        let (input, output) = (self.input_address(), self.output_address());
        let slot = |slot: Slot| self.results.address() + (slot as usize * Slot::BYTES) as u64;
        let made = u64::from(distribution as u32);
        match (subject.mode, prefixes) {
            (None, _) => {
                self.launch_over(&format!("check_copy_{element}"), n, &[output, n, seed, made, slot(Slot::Output)])?;
            }
            (Some(mode), None) => {
                let mut identity = [0; 8];
                let bytes = instance.identity_bytes();
                identity[..bytes.len()].copy_from_slice(&bytes);
                let operation = input::operation_number(instance.operator()).map_or(u64::MAX, u64::from);
                let arguments =
                    [output, n, seed, made, operation, shift(mode), u64::from_le_bytes(identity), slot(Slot::Output)];
                self.launch_over(&format!("check_exact_{element}"), n, &arguments)?;
            }
            (Some(mode), Some((sums, chunk_length))) => {
                let factor = subject.request.as_ref().map_or(0.0, error_factor).to_bits();
                let arguments =
                    [output, n, seed, made, *chunk_length, sums.address(), shift(mode), factor, slot(Slot::Output)];
                self.launch_over(&format!("check_rounded_{element}"), n.div_ceil(*chunk_length), &arguments)?;
            }
        }
        self.launch_over(&format!("check_copy_{element}"), n, &[input, n, seed, made, slot(Slot::Input)])?;
        let bytes = n * element.bytes() as u64;
        for (guard, address) in [(Slot::GuardBefore, output - GUARD_BYTES), (Slot::GuardAfter, output + bytes)] {
            self.launch_over("check_filling", GUARD_BYTES, &[address, GUARD_BYTES, u64::from(FILLING), slot(guard)])?;
        }
        self.finish("comparing the output")?;
        let mut bytes = [0; Slot::COUNT * Slot::BYTES];
        self.results.download(0, &mut bytes, &self.stream)?;
        let mut found = [Found::default(); Slot::COUNT];
        for (found, bytes) in found.iter_mut().zip(bytes.chunks_exact(Slot::BYTES)) {
            let [mismatches, first] = bytemuck::pod_read_unaligned(bytes);
            *found = Found { mismatches, first };
        }
        Ok(found)
    }

    fn reset_results(&self) -> Result<(), CudaError> {
        let mut nothing = [0; Slot::COUNT * Slot::BYTES];
        for slot in nothing.chunks_exact_mut(Slot::BYTES) {
            slot[8..].fill(0xFF);
        }
        self.results.upload(0, &nothing, &self.stream)
    }

    /// Captures `runs` runs into a graph.
    fn capture(&self, subject: &mut PreparedSubject, runs: u32) -> Result<Readiness, CudaError> {
        subject.graph = None;
        if !subject.is_capturable {
            let reason = "it allocates or waits inside the call, which a graph cannot hold";
            return Ok(Readiness::Unavailable(reason.to_owned()));
        }
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive, and nothing else uses it.
        unsafe { result::stream::begin_capture(self.stream.cu_stream(), mode) }
            .during(|| String::from("beginning a capture"))?;
        let captured = (0..runs).try_for_each(|_| self.enqueue(subject));
        // Also after an error: only this takes the stream out of capture.
        // SAFETY: the capture was begun right above on this thread.
        let graph = unsafe { result::stream::end_capture(self.stream.cu_stream()) };
        let graph = match (captured, graph) {
            (Ok(()), Ok(graph)) if !graph.is_null() => graph,
            (Err(error), _) => return Ok(Readiness::Unavailable(format!("it cannot be captured: {error}"))),
            (Ok(()), graph) => {
                let error = graph.during(|| String::from("ending a capture")).err();
                let reason = error.map_or_else(|| String::from("the graph is empty"), |error| error.to_string());
                return Ok(Readiness::Unavailable(format!("it cannot be captured: {reason}")));
            }
        };
        let flags = sys::CUgraphInstantiate_flags(0);
        // SAFETY: a graph that the capture has just made.
        let executable = unsafe { result::graph::instantiate(graph, flags) };
        // SAFETY: the executable graph is a copy; this one is destroyed here alone.
        let destroyed = unsafe { result::graph::destroy(graph) };
        let executable = executable.during(|| format!("instantiating a graph of {runs} runs"))?;
        let graph = Graph { memory: Arc::clone(&self.memory), executable };
        destroyed.during(|| String::from("destroying a graph"))?;
        // SAFETY: graph and stream are alive.
        unsafe { result::graph::upload(graph.executable, self.stream.cu_stream()) }
            .during(|| String::from("uploading a graph"))?;
        self.finish("uploading a graph")?;
        subject.graph = Some(graph);
        Ok(Readiness::Ready)
    }

    fn probe_clock(&self, probe: usize) -> Result<(), CudaError> {
        let target = self.signals.device_address(Signals::PROBES + probe * Signals::PROBE_BYTES);
        self.launch(&self.tools.clock_probe, 1, 1, &[target, PROBE_NS])
    }

    fn hold(&self, ticket: u32, limit_ns: u64) -> Result<(), CudaError> {
        let release = self.signals.device_address(Signals::RELEASE);
        let late = self.signals.device_address(Signals::LATE);
        self.launch(&self.tools.hold, 1, 1, &[release, u64::from(ticket), limit_ns, late])
    }

    fn overwrite_l2(&self, value: u64) -> Result<(), CudaError> {
        let words = self.overwritten.bytes() / 16;
        self.launch(&self.tools.overwrite, self.tools.blocks, THREADS, &[self.overwritten.address(), words, value])
    }

    fn record(&self, event: &CudaEvent) -> Result<(), CudaError> {
        event.record(&self.stream).during(|| String::from("recording an event"))
    }

    /// The lower of the clocks right before and right after.
    fn clock_megahertz(&self) -> Option<f64> {
        Some(self.signals.clock_megahertz(0)?.min(self.signals.clock_megahertz(1)?))
    }

    /// Takes a sample of a subject of the open point.
    fn take(&mut self, entry: usize, figure: Figure, runs: u32) -> Result<Sample, DeviceError> {
        let Some(mut open) = self.open.take() else { return Err(DeviceError::NoDataset) };
        let taken = match open.subjects.get_mut(entry).and_then(Option::as_mut) {
            Some(subject) if figure == Figure::Latency => self.take_latency(subject),
            Some(subject) => self.take_by_events(subject, figure, runs),
            None => Err(CudaError::Driver {
                action: format!("sampling subject {entry}"),
                name: String::from("not prepared"),
                message: String::from("its point was opened without it"),
            }),
        };
        self.open = Some(open);
        taken.map_err(|error| self.device_error(error))
    }

    fn take_by_events(
        &mut self,
        subject: &mut PreparedSubject,
        figure: Figure,
        runs: u32,
    ) -> Result<Sample, CudaError> {
        self.bind()?;
        let ticket = self.signals.next_ticket();
        let queued = self.queue(subject, figure, runs, ticket);
        // Also after an error: what was queued behind `hold` must not wait for its limit.
        self.signals.release(ticket);
        queued?;
        self.finish(&subject.describe())?;
        let nanoseconds = elapsed_ns(&self.start, &self.end)? / f64::from(runs);
        let is_late = figure == Figure::Cold && self.signals.was_late(ticket);
        Ok(Sample { nanoseconds, clock_megahertz: self.clock_megahertz(), is_late })
    }

    fn queue(&self, subject: &mut PreparedSubject, figure: Figure, runs: u32, ticket: u32) -> Result<(), CudaError> {
        if subject.is_asynchronous && figure != Figure::Stream {
            let limit = if figure == Figure::Cold { HOLD_LIMIT_NS } else { GRAPH_HOLD_LIMIT_NS };
            self.hold(ticket, limit)?;
        }
        self.probe_clock(0)?;
        if figure == Figure::Cold {
            self.overwrite_l2(u64::from(ticket))?;
        }
        self.record(&self.start)?;
        match (&subject.graph, figure) {
            (Some(graph), Figure::Graph) => {
                // SAFETY: graph and stream are alive; its runs use what the subject is bound to.
                unsafe { result::graph::launch(graph.executable, self.stream.cu_stream()) }
                    .during(|| String::from("launching a graph"))?;
            }
            _ => (0..runs).try_for_each(|_| self.enqueue(subject))?,
        }
        self.record(&self.end)?;
        self.probe_clock(1)
    }

    fn take_latency(&mut self, subject: &mut PreparedSubject) -> Result<Sample, CudaError> {
        self.bind()?;
        self.probe_clock(0)?;
        self.finish("a clock probe")?;
        let start = Instant::now();
        self.enqueue(subject)?;
        self.wait_busily(&subject.describe(), start)?;
        let nanoseconds = start.elapsed().as_nanos() as f64;
        self.probe_clock(1)?;
        self.finish("a clock probe")?;
        Ok(Sample { nanoseconds, clock_megahertz: self.clock_megahertz(), is_late: false })
    }

    /// Waits without ever giving up the processor: going to sleep and being woken takes longer than a scan.
    fn wait_busily(&self, what: &str, since: Instant) -> Result<(), CudaError> {
        const BUSY: Duration = Duration::from_millis(200);
        loop {
            // SAFETY: the stream is alive.
            match unsafe { sys::cuStreamQuery(self.stream.cu_stream()) } {
                sys::CUresult::CUDA_SUCCESS => return Ok(()),
                sys::CUresult::CUDA_ERROR_NOT_READY if since.elapsed() < BUSY => std::hint::spin_loop(),
                sys::CUresult::CUDA_ERROR_NOT_READY => return self.finish(what),
                error => return Err(CudaError::driver(what, result::DriverError(error))),
            }
        }
    }
}

impl Executor for GpuLaboratory {
    type Error = DeviceError;

    fn maximum_runs(&self, subject: usize, figure: Figure) -> u32 {
        let launches = self
            .open
            .as_ref()
            .and_then(|open| open.subjects.get(subject)?.as_ref())
            .map_or(1, PreparedSubject::launches);
        match figure {
            Figure::Cold | Figure::Latency => 1,
            Figure::Stream => SAMPLE_RUNS,
            Figure::Graph => (GRAPH_KERNELS / launches).clamp(1, u64::from(SAMPLE_RUNS)) as u32,
        }
    }

    fn prepare(&mut self, subject: usize, figure: Figure, runs: u32) -> Result<Readiness, DeviceError> {
        if figure != Figure::Graph {
            return Ok(Readiness::Ready);
        }
        let Some(mut open) = self.open.take() else { return Err(DeviceError::NoDataset) };
        let captured = match open.subjects.get_mut(subject).and_then(Option::as_mut) {
            Some(subject) => self.bind().and_then(|()| self.capture(subject, runs)),
            None => Ok(Readiness::Unavailable(String::from("it was not prepared"))),
        };
        self.open = Some(open);
        captured.map_err(|error| self.device_error(error))
    }

    fn sample(&mut self, subject: usize, figure: Figure, runs: u32) -> Result<Sample, DeviceError> {
        self.take(subject, figure, runs)
    }

    fn now(&self) -> Duration {
        self.opened_at.elapsed()
    }

    fn resolution_nanoseconds(&self, figure: Figure) -> f64 {
        /// Times between two events are multiples of this on an H100 and an H200.
        const EVENT_STEP_NS: f64 = 32.0;
        if figure == Figure::Latency { 0.0 } else { EVENT_STEP_NS }
    }
}

impl Laboratory for GpuLaboratory {
    fn machine(&self) -> Machine {
        self.machine.clone()
    }

    fn peers(&self) -> Vec<String> {
        peers::all().iter().filter(|peer| peer.is_scan()).map(|peer| peer.name().to_owned()).collect()
    }

    fn compile_ahead(&mut self, points: &[Point]) {
        let mut wanted: Vec<(KernelKey, bool)> = Vec::new();
        let mut seen = HashSet::new();
        for point in points {
            for entry in &point.entries {
                let Some((strategy, mode, config)) = entry.subject.scan() else { continue };
                let is_bound = matches!(entry.subject, Subject::Bound { .. });
                let Ok(plan) = Plan::new(&request(point, strategy, mode, config)) else { continue };
                for step in plan.steps {
                    let wish = ((step.kernel, point.instance.canonical(), step.config), is_bound);
                    if seen.insert(wish) {
                        wanted.push(wish);
                    }
                }
            }
        }
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        let (kernels, bounds): (&KernelSet, &KernelSet) = (&self.kernels, &self.bounds);
        let architecture: Architecture = kernels.architecture();
        let worker = || {
            while let Some(&(key, is_bound)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (kernel, instance, config) = key;
                if is_bound {
                    let _ = bounds.kernel(kernel, instance, config);
                    continue;
                }
                // What does not compile or load says so again when its point is opened.
                if let Ok(compiled) = kernels.compiler().scan_kernel(kernel, instance, &config, architecture) {
                    found.lock().unwrap_or_else(PoisonError::into_inner).push((key, compiled.resources));
                    let _ = kernels.kernel(kernel, instance, config);
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(wanted.len());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(worker);
            }
        });
        self.resources.extend(found.into_inner().unwrap_or_else(PoisonError::into_inner));
    }

    fn warm_up(&mut self, duration: Duration) -> Result<(), DeviceError> {
        let start = Instant::now();
        let busy = || {
            self.bind()?;
            while start.elapsed() < duration {
                for value in 0..16 {
                    self.overwrite_l2(value)?;
                }
                self.finish("warming up")?;
            }
            Ok(())
        };
        busy().map_err(|error| self.device_error(error))
    }

    fn open(&mut self, point: &Point, seed: u64) -> Result<OpenedPoint, DeviceError> {
        self.open_point(point, seed).map_err(|error| self.device_error(error))
    }

    fn verify(&mut self, entry: usize) -> Result<Result<Verification, NotMeasured>, DeviceError> {
        let Some(mut open) = self.open.take() else { return Err(DeviceError::NoDataset) };
        let verified = self.verify_entry(&mut open, entry);
        self.open = Some(open);
        verified.map_err(|error| self.device_error(error))
    }

    fn executor(&mut self) -> &mut dyn Executor<Error = DeviceError> {
        self
    }

    fn close(&mut self) {
        self.open = None;
    }

    fn temperature_celsius(&self) -> Option<u32> {
        environment::ask_nvml(self.identity)?.temperature_celsius
    }
}

impl Tools {
    fn new(context: &CudaContext, kernels: &KernelSet) -> Result<Self, CudaError> {
        let compiled = kernels.compiler().measurement_kernels(kernels.architecture())?;
        let module = kernels.load(compiled.cubin)?;
        let multiprocessors = attribute(context, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        Ok(Self {
            hold: function(&module, "hold")?,
            clock_probe: function(&module, "clock_probe")?,
            overwrite: function(&module, "overwrite")?,
            blocks: u32::try_from(8 * multiprocessors.max(1)).unwrap_or(1024),
            module,
        })
    }
}

/// Launches a kernel whose parameters each fit a word of 8 bytes.
fn launch(
    kernel: &CudaFunction,
    blocks: u32,
    threads: u32,
    arguments: &[u64],
    stream: &CudaStream,
) -> Result<(), CudaError> {
    let mut pointers: Vec<*mut c_void> =
        arguments.iter().map(|argument| std::ptr::from_ref(argument).cast_mut().cast()).collect();
    // SAFETY: the arguments are, in order and number, those of the kernel in `cuda/measure.cu`: addresses of live
    // memory of the size that the kernel is told, and numbers. The driver copies them during the call.
    unsafe {
        result::launch_kernel(
            kernel.cu_function(),
            (blocks, 1, 1),
            (threads, 1, 1),
            0,
            stream.cu_stream(),
            &mut pointers,
        )
    }
    .during(|| String::from("launching a measurement kernel"))
}

/// Which comparison has which place in the results.
#[derive(Clone, Copy)]
enum Slot {
    Output = 0,
    Input = 1,
    GuardBefore = 2,
    GuardAfter = 3,
}

impl Slot {
    const COUNT: usize = 4;
    /// `comparison` in `cuda/measure.cu`.
    const BYTES: usize = 16;
}

#[derive(Debug, Clone, Copy, Default)]
struct Found {
    mismatches: u64,
    first: u64,
}

/// Counts what was found: a changed input or guard is as wrong as a wrong element.
fn add(verification: &mut Verification, found: &[Found; Slot::COUNT]) {
    verification.mismatches += found.iter().map(|found| found.mismatches).sum::<u64>();
    let output = found[Slot::Output as usize];
    if output.mismatches > 0 {
        let first = verification.first_mismatch.map_or(output.first, |first| first.min(output.first));
        verification.first_mismatch = Some(first);
    }
}

/// By how many elements the output lags behind the inclusive scan.
const fn shift(mode: Mode) -> u64 {
    match mode {
        Mode::Inclusive => 0,
        Mode::Exclusive | Mode::InclusiveMinusInput => 1,
    }
}

/// A sum to about 106 bits, and the sum of |x|: `precise_sum` in `cuda/measure.cu`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PreciseSum {
    high: f64,
    low: f64,
    magnitude: f64,
}

impl PreciseSum {
    fn add(&mut self, other: Self) {
        let (sum, error) = two_sum(self.high, other.high);
        (self.high, self.low) = two_sum(sum, error + self.low + other.low);
        self.magnitude += other.magnitude;
    }
}

/// Knuth's two-sum: `left + right` rounded, and exactly what the rounding lost.
fn two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let right_share = sum - left;
    let left_share = sum - right_share;
    (sum, (left - left_share) + (right - right_share))
}

fn peer_error(error: PeerError) -> CudaError {
    match error {
        PeerError::Cuda { action, name, message } => CudaError::Driver { action, name, message },
        other => CudaError::Driver {
            action: String::from("launching a peer"),
            name: String::from("refused"),
            message: other.to_string(),
        },
    }
}

fn identity(context: &CudaContext) -> Result<[u8; 16], CudaError> {
    let identity = context.uuid().during(|| String::from("asking for the device's identity"))?;
    Ok(identity.bytes.map(|byte| byte.cast_unsigned()))
}

fn describe(context: &Arc<CudaContext>, kernels: &KernelSet, identity: [u8; 16]) -> Result<Machine, CudaError> {
    let mut driver_cuda = 0;
    // SAFETY: a valid pointer to int.
    unsafe { sys::cuDriverGetVersion(&raw mut driver_cuda) }
        .result()
        .during(|| String::from("asking for the driver's version"))?;
    let fact = |which| attribute(context, which);
    let megahertz = |which| fact(which).ok().map(|kilohertz| kilohertz / 1000).filter(|&clock| clock > 0);
    let architecture = kernels.architecture();
    let nvrtc = kernels.compiler().nvrtc().version();
    let (processor, processors) = environment::processor();
    let peers = peers::all().iter().map(|peer| match peer.library_version() {
        Some((major, minor, patch)) => format!("{} ({major}.{minor}.{patch})", peer.name()),
        None => peer.name().to_owned(),
    });
    Ok(Machine {
        gpu: context.name().during(|| String::from("asking for the device's name"))?,
        gpu_digest: environment::digest_of_identity(identity),
        driver: kernel_module_version().unwrap_or_else(|| String::from("unknown")),
        cuda: format!("{}.{}", driver_cuda / 1000, driver_cuda % 1000 / 10),
        compiler: format!("NVRTC {}.{}", nvrtc.0, nvrtc.1),
        compute_capability: format!("{}.{}", architecture.major, architecture.minor),
        multiprocessors: fact(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory_bytes: context.total_mem().during(|| String::from("asking for the device's memory"))? as u64,
        l2_bytes: fact(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        maximum_core_clock_mhz: megahertz(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        maximum_memory_clock_mhz: megahertz(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
        nvml: environment::ask_nvml(identity),
        peers: peers.collect(),
        processor,
        processors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_chunks_keep_what_a_double_loses() {
        let mut sum = PreciseSum::default();
        for value in [1e16, 1.0, 1.0, -1e16] {
            sum.add(PreciseSum { high: value, low: 0.0, magnitude: value.abs() });
        }
        assert_eq!(sum.high + sum.low, 2.0);
        assert_eq!(sum.magnitude, 2e16 + 2.0);
    }

    #[test]
    fn whatever_changed_counts_and_the_first_wrong_element_is_named() {
        let mut verification = Verification { compared: 10, mismatches: 0, first_mismatch: None };
        let mut found = [Found { mismatches: 0, first: u64::MAX }; Slot::COUNT];
        add(&mut verification, &found);
        assert!(verification.passed() && verification.first_mismatch.is_none());
        found[Slot::GuardAfter as usize].mismatches = 1;
        add(&mut verification, &found);
        assert!(!verification.passed() && verification.first_mismatch.is_none());
        found[Slot::Output as usize] = Found { mismatches: 2, first: 7 };
        add(&mut verification, &found);
        assert_eq!(verification.first_mismatch, Some(7));
    }

    #[test]
    fn a_machine_without_a_gpu_gets_a_typed_error() {
        if let Err(error) = GpuLaboratory::open(usize::MAX) {
            assert!(error.is_absence(), "{error}");
        }
    }
}
