//! What the device and the timer of the laboratory share: one GPU opened, its stream and its kernels, two arrays between
//! guards, comparisons on the device, and events.

use crate::cuda::compile::{CompiledKernel, Compiler, Variant};
use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::launch::{KernelSet, LoadedKernel, function, multiprocessors};
use crate::cuda::memory::{Buffer, DeviceMemory};
use crate::cuda::toolkit::probe_driver;
use crate::cuda::workspace::Workspace;
use crate::gpu::{Architecture, Gpu};
use crate::kernels::sources::{arithmetic_source, tools_source};
use crate::lab::arrays::{FILLING, Guarded};
use crate::lab::device::DeviceError;
use crate::lab::measure::point::Offsets;
use crate::strategy::plan::ScanRequest;
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUevent_flags};
use cudarc::driver::{CudaContext, CudaEvent, CudaFunction, CudaModule, CudaStream, result};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Bytes of guard on each side of an array: a multiple of every alignment that a kernel could want, and more than the
/// widest access of a warp is off by.
const GUARD_BYTES: u64 = 4096;
/// Bytes that offsets move an array by at most.
const OFFSET_ROOM_BYTES: u64 = Offsets::MOST as u64 * 8;
/// How long anything may take before it counts as hung, and longer where its first run was slow.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);
/// Threads of a block of the tools, `__launch_bounds__` in `cuda/verify.cu` and `cuda/measure.cu`.
pub(crate) const THREADS: u32 = 256;

/// One GPU as the laboratory works on it.
pub(crate) struct GpuHarness {
    // First, because its drop waits for every launch.
    pub(crate) workspace: Workspace,
    pub(crate) input: GuardedBuffer,
    pub(crate) output: GuardedBuffer,
    results: Buffer,
    pub(crate) kernels: KernelSet,
    tools: Vec<Arc<CudaModule>>,
    /// Blocks of a tool that strides over its array.
    pub(crate) tool_blocks: u32,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) memory: Arc<DeviceMemory>,
    pub(crate) name: String,
    gpu: Gpu,
}

impl Drop for GpuHarness {
    fn drop(&mut self) {
        if self.memory.is_abandoned() {
            // Unloading a module waits for its kernels, and one of them hangs: the process's end unloads.
            self.kernels.never_unload();
            std::mem::forget(self.tools.clone());
            std::mem::forget(Arc::clone(&self.stream));
        }
    }
}

/// How many GPUs the driver reports.
///
/// # Errors
/// When there is no driver. A driver without a GPU is none: that is 0.
pub(crate) fn count() -> Result<usize, CudaError> {
    probe_driver()?;
    match CudaContext::device_count() {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(0),
        Err(error) => Err(CudaError::driver("starting the CUDA driver", error)),
    }
}

/// The compiler, and a context of the GPU with this number whose streams and arrays carry no events.
pub(crate) fn open_context(ordinal: usize) -> Result<(Compiler, Arc<CudaContext>), CudaError> {
    let available = count()?;
    if ordinal >= available {
        return Err(CudaError::NoDevice { ordinal, available });
    }
    // The compiler first: it needs no device, and without it there is nothing to do on one.
    let compiler = Compiler::new()?;
    let context = CudaContext::new(ordinal).during(|| format!("opening CUDA device {ordinal}"))?;
    // SAFETY: the laboratory waits for a stream before it frees what the stream's work uses, and orders its streams
    // itself; the context object was made right above and is nobody else's.
    unsafe { context.disable_event_tracking() };
    Ok((compiler, context))
}

impl GpuHarness {
    /// Bytes that both arrays take beside what they hold, and some for a third one.
    pub(crate) const ROOM_BESIDE_ARRAYS: u64 = 3 * (2 * GUARD_BYTES + OFFSET_ROOM_BYTES);

    /// Opens the GPU with this number, with the tools in these files of `cuda/`. Scan kernels are compiled when they are asked
    /// for.
    pub(crate) fn open(ordinal: usize, tools: &[&str]) -> Result<Self, CudaError> {
        let (compiler, context) = open_context(ordinal)?;
        let stream = context.new_stream().during(|| String::from("making a stream"))?;
        let memory = DeviceMemory::new(&context)?;
        let kernels = KernelSet::new(&context, compiler, |_| Variant::default())?;
        let gpu = Gpu { architecture: kernels.architecture(), multiprocessors: multiprocessors(&context)? };
        let load = |file: &&str| kernels.load(kernels.compiler().tools(file, gpu.architecture)?.cubin);
        let tools = tools.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            workspace: Workspace::new(&memory, &stream),
            input: GuardedBuffer::default(),
            output: GuardedBuffer::default(),
            results: memory.allocate(RESULTS_BYTES as u64, "the results of comparisons")?,
            tools,
            tool_blocks: 8 * gpu.multiprocessors,
            kernels,
            stream,
            memory,
            name: context.name().during(|| String::from("asking for the device's name"))?,
            gpu,
        })
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        self.memory.context()
    }

    /// The GPU, as tuning tables tell GPUs apart.
    pub(crate) fn gpu(&self) -> Gpu {
        self.gpu
    }

    pub(crate) fn attribute(&self, which: Attribute) -> Result<u64, CudaError> {
        attribute(self.context(), which)
    }

    pub(crate) fn memory_bytes(&self) -> Result<u64, CudaError> {
        Ok(self.context().total_mem().during(|| String::from("asking for the device's memory"))? as u64)
    }

    /// The compiler in words.
    pub(crate) fn compiler_name(&self) -> String {
        self.kernels.compiler().name()
    }

    /// Compute capability in words, "9.0".
    pub(crate) fn compute_capability(&self) -> String {
        let Architecture { major, minor } = self.gpu.architecture;
        format!("{major}.{minor}")
    }

    pub(crate) fn device_error(&self, error: CudaError) -> DeviceError {
        match error {
            CudaError::OutOfMemory { what, needed_bytes, available_bytes } => {
                DeviceError::OutOfMemory { what, device: self.name.clone(), needed_bytes, available_bytes }
            }
            CudaError::Config(error) => DeviceError::Config(error),
            other => DeviceError::Cuda(other),
        }
    }

    /// Makes the context current on this thread.
    pub(crate) fn bind(&self) -> Result<(), CudaError> {
        self.context().bind_to_thread().during(|| String::from("making the context current"))
    }

    /// Waits for everything on the stream.
    pub(crate) fn finish(&self, what: &str) -> Result<(), CudaError> {
        self.memory.finish(&self.stream, TIME_LIMIT, what)
    }

    pub(crate) fn event(&self) -> Result<CudaEvent, CudaError> {
        // Without the flag cudarc makes an event that measures no time.
        self.context().new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).during(|| String::from("making an event"))
    }

    pub(crate) fn record(&self, event: &CudaEvent) -> Result<(), CudaError> {
        event.record(&self.stream).during(|| String::from("recording an event"))
    }

    /// A tool by its name, from the first file that has it.
    pub(crate) fn tool(&self, name: &str) -> Result<CudaFunction, CudaError> {
        let mut found = Err(CudaError::unexpected("looking for a tool", "not loaded", format!("no file has '{name}'")));
        for module in &self.tools {
            found = function(module, name);
            if found.is_ok() {
                break;
            }
        }
        found
    }

    /// Launches a tool.
    pub(crate) fn launch(
        &self,
        kernel: &CudaFunction,
        blocks: u32,
        threads: u32,
        words: &[u64],
    ) -> Result<(), CudaError> {
        launch_words(kernel, (blocks, threads), 0, words, &self.stream)
    }

    /// Launches a tool that strides over `n` elements.
    pub(crate) fn launch_over(&self, name: &str, n: u64, words: &[u64]) -> Result<(), CudaError> {
        if n == 0 {
            return Ok(());
        }
        let blocks = n.div_ceil(u64::from(THREADS)).min(u64::from(self.tool_blocks)) as u32;
        self.launch(&self.tool(name)?, blocks, THREADS, words)
    }

    /// Room for an input, and for an output where it is another array: bytes of each, and their distance from an aligned
    /// address. Whatever the distances, the same memory does.
    pub(crate) fn make_room(&mut self, input: (u64, u64), output: Option<(u64, u64)>) -> Result<(), CudaError> {
        let of_output = output.unwrap_or_default();
        // Both go before one comes: the device need not hold old and new.
        self.input.place(input.0, input.1);
        self.output.place(of_output.0, of_output.1);
        self.input.allocate(&self.memory, "the input")?;
        if output.is_some() { self.output.allocate(&self.memory, "the output") } else { Ok(()) }
    }

    /// Gives the memory of both arrays back.
    pub(crate) fn free_arrays(&mut self) {
        (self.input, self.output) = (GuardedBuffer::default(), GuardedBuffer::default());
    }

    /// Forgets what earlier comparisons found.
    pub(crate) fn reset_comparisons(&self) -> Result<(), CudaError> {
        let nothing: [[u64; 2]; SLOTS] = [[0, u64::MAX]; SLOTS];
        self.results.upload(0, bytemuck::cast_slice(&nothing), &self.stream)
    }

    /// Where a comparison of the tools leaves what it finds: the last word of its arguments.
    pub(crate) fn slot(&self, slot: Slot) -> u64 {
        self.results.address() + (slot as usize * size_of::<[u64; 2]>()) as u64
    }

    /// Compares the guards of an array with what they were filled with; `slots` are for those before and after it.
    pub(crate) fn compare_guards(&self, array: &GuardedBuffer, slots: [Slot; 2]) -> Result<(), CudaError> {
        for (guard, slot) in array.place.guards().into_iter().zip(slots) {
            let (address, count) = (array.start() + guard.start, guard.end - guard.start);
            self.launch_over("compare_filling", count, &[address, count, u64::from(FILLING), self.slot(slot)])?;
        }
        Ok(())
    }

    /// Compares an array bit for bit with its master copy.
    pub(crate) fn compare_with_master(
        &self,
        address: u64,
        master: &Buffer,
        (element_bytes, n): (usize, u64),
        slot: Slot,
    ) -> Result<(), CudaError> {
        let words = [address, master.address(), n, 0, 0, 0, self.slot(slot)];
        self.launch_over(exact_name(element_bytes), n, &words)
    }

    /// Waits for the comparisons and reads what they found.
    pub(crate) fn comparisons(&self) -> Result<Comparisons, CudaError> {
        self.finish("comparing the output")?;
        let mut words = [[0_u64; 2]; SLOTS];
        self.results.download(0, bytemuck::cast_slice_mut(&mut words), &self.stream)?;
        Ok(Comparisons(words.map(|[mismatches, first]| Found { mismatches, first })))
    }
}

/// The comparison bit for bit of elements of that many bytes.
pub(crate) const fn exact_name(element_bytes: usize) -> &'static str {
    match element_bytes {
        1 => "compare_exact_1",
        2 => "compare_exact_2",
        4 => "compare_exact_4",
        8 => "compare_exact_8",
        _ => "compare_exact_16",
    }
}

/// An array on the device between guards.
#[derive(Debug, Default)]
pub(crate) struct GuardedBuffer {
    buffer: Option<Buffer>,
    pub(crate) place: Guarded,
}

impl GuardedBuffer {
    /// Decides where the array is to lie, and lets go of memory that is too small for it.
    fn place(&mut self, bytes: u64, offset: u64) {
        self.place = Guarded { start: GUARD_BYTES + offset, bytes, after: GUARD_BYTES };
        // Runs end with a wait, so nothing uses the old buffer any more.
        self.buffer.take_if(|buffer| buffer.bytes() < bytes + 2 * GUARD_BYTES + OFFSET_ROOM_BYTES);
    }

    fn allocate(&mut self, memory: &Arc<DeviceMemory>, what: &str) -> Result<(), CudaError> {
        if self.buffer.is_none() {
            self.buffer = Some(memory.allocate(self.place.bytes + 2 * GUARD_BYTES + OFFSET_ROOM_BYTES, what)?);
        }
        Ok(())
    }

    fn start(&self) -> u64 {
        self.buffer.as_ref().map_or(0, Buffer::address)
    }

    /// The device address of the array; meaningless before there was room for it.
    pub(crate) fn address(&self) -> u64 {
        self.start() + self.place.start
    }

    /// Fills guards and array, in stream order.
    pub(crate) fn fill(&self, stream: &CudaStream) -> Result<(), CudaError> {
        let Some(buffer) = &self.buffer else { return Ok(()) };
        buffer.fill(0, self.place.total_bytes(), FILLING, stream)
    }

    /// Fills the guards and copies the array, in stream order.
    pub(crate) fn copy_from(&self, source: &Buffer, stream: &CudaStream) -> Result<(), CudaError> {
        let Some(buffer) = &self.buffer else { return Ok(()) };
        for guard in self.place.guards() {
            buffer.fill(guard.start, guard.end - guard.start, FILLING, stream)?;
        }
        buffer.copy_from(self.place.start, source, 0, self.place.bytes, stream)
    }

    /// Copies bytes of the array, from `offset` bytes in, to the host and waits for it.
    pub(crate) fn download(&self, offset: u64, bytes: &mut [u8], stream: &CudaStream) -> Result<(), CudaError> {
        let Some(buffer) = &self.buffer else { return Ok(()) };
        buffer.download(self.place.start + offset, bytes, stream)
    }
}

/// Which comparison has which place in the results.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Slot {
    Output,
    Input,
    BeforeOutput,
    AfterOutput,
    BeforeInput,
    AfterInput,
}

const SLOTS: usize = 6;
const RESULTS_BYTES: usize = SLOTS * size_of::<[u64; 2]>();

/// What a comparison found: `comparison` in `cuda/comparison.cuh`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) mismatches: u64,
    /// The smallest index that differs; `u64::MAX` if none does.
    pub(crate) first: u64,
}

/// What all comparisons found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparisons(pub(crate) [Found; SLOTS]);

impl Comparisons {
    pub(crate) fn of(&self, slot: Slot) -> Found {
        self.0[slot as usize]
    }
}

impl CudaError {
    /// What no driver call reports: it did not fail, but what came of it cannot be.
    pub(crate) fn unexpected(action: impl Into<String>, name: &str, message: impl Into<String>) -> Self {
        Self::Driver { action: action.into(), name: name.to_owned(), message: message.into() }
    }
}

impl Compiler {
    /// The kernels of a file of `cuda/` that the laboratory runs beside the scans: `verify.cu`, `measure.cu`, `stress.cu`.
    ///
    /// # Errors
    /// As [`Self::scan_kernel`].
    pub fn tools(&self, file: &str, architecture: Architecture) -> Result<CompiledKernel, CudaError> {
        let source = tools_source(file)?;
        self.compile(&source, true, &[], &[Vec::new()], architecture, &|| format!("the kernels of cuda/{file}"))
    }

    /// The PTX of the kernels of `cuda/arithmetic.cu`, with a fault by its number or, for 0, without.
    ///
    /// # Errors
    /// As [`Self::scan_kernel`].
    pub fn arithmetic_ptx(&self, architecture: Architecture, fault: u32) -> Result<String, CudaError> {
        let source = arithmetic_source(fault)?;
        self.compile_to_ptx(&source, &[], architecture, &|| String::from("the kernels of cuda/arithmetic.cu"))
    }
}

impl KernelSet {
    /// Keeps all that is loaded for as long as the process lives.
    pub(crate) fn never_unload(&self) {
        std::mem::forget(std::mem::take(&mut *self.loaded.lock().unwrap_or_else(PoisonError::into_inner)));
    }
}

impl LoadedKernel {
    /// Registers, and bytes of local memory, a thread.
    pub(crate) fn thread_resources(&self) -> Result<(u32, u32), CudaError> {
        let attribute = |value: Result<i32, DriverError>| {
            value.map(|value| u32::try_from(value).unwrap_or(0)).during(|| String::from("asking about a kernel"))
        };
        Ok((attribute(self.function.num_regs())?, attribute(self.function.local_size_bytes())?))
    }
}

/// Does the work of all items on all cores, in no particular order; the first error ends what has not begun.
pub(crate) fn on_all_cores<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, CudaError> + Sync,
) -> Result<Vec<R>, CudaError> {
    let next = AtomicUsize::new(0);
    let worker = || -> Result<Vec<R>, CudaError> {
        let mut done = Vec::new();
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(work(item)?);
        }
        Ok(done)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let mut all = Vec::with_capacity(items.len());
        for worker in workers {
            all.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(all)
    })
}

/// Launches a kernel whose parameters each fit a word of 8 bytes; a narrower one takes the word's low bytes.
pub(crate) fn launch_words(
    kernel: &CudaFunction,
    (blocks, threads): (u32, u32),
    shared_bytes: u32,
    words: &[u64],
    stream: &CudaStream,
) -> Result<(), CudaError> {
    let mut pointers: Vec<*mut c_void> = words.iter().map(|word| std::ptr::from_ref(word).cast_mut().cast()).collect();
    // SAFETY: number and order of the words are those of the kernel, one of the laboratory's tools: addresses of live
    // memory of the size that the kernel is told, and numbers. The driver copies them during the call.
    unsafe {
        result::launch_kernel(
            kernel.cu_function(),
            (blocks, 1, 1),
            (threads, 1, 1),
            shared_bytes,
            stream.cu_stream(),
            &mut pointers,
        )
    }
    .during(|| String::from("launching a kernel of the laboratory"))
}

pub(crate) fn elapsed_ns(start: &CudaEvent, end: &CudaEvent) -> Result<f64, CudaError> {
    Ok(f64::from(start.elapsed_ms(end).during(|| String::from("reading events"))?) * 1e6)
}

pub(crate) fn attribute(context: &CudaContext, attribute: Attribute) -> Result<u64, CudaError> {
    let value = context.attribute(attribute).during(|| String::from("asking for an attribute of the device"))?;
    Ok(u64::try_from(value).unwrap_or(0))
}

/// The CUDA that the driver speaks, such as "13.0".
pub(crate) fn driver_cuda() -> Result<String, CudaError> {
    let mut version = 0;
    // SAFETY: a valid pointer to int.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }
        .result()
        .during(|| String::from("asking for the driver's version"))?;
    Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
}

/// The driver's own version, such as "580.159"; CUDA's interface only tells which CUDA it speaks.
pub(crate) fn kernel_module_version() -> String {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let version = text.lines().next().and_then(|line| line.split_whitespace().find(is_version));
    version.map_or_else(|| String::from("unknown"), str::to_owned)
}

/// A request in the words of messages.
pub(crate) fn describe(request: &ScanRequest) -> String {
    let ScanRequest { problem, strategy, mode, config, n, in_place, .. } = request;
    let in_place = if *in_place { ", in place" } else { "" };
    format!(
        "{strategy}, {problem}, {mode}{in_place}, {n} elements, VT {}, {} threads a block",
        config.vt, config.block_threads
    )
}
