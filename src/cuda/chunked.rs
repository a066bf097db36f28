//! Scans of arrays that are larger than the device's memory, in chunks: copies in, scans and copies out at the same time.
//!
//! ```no_run
//! # use cudarc::driver::CudaContext;
//! # use lookback::{cuda::Scanner, element::{Definition, ElementType, Operator}, strategy::Mode};
//! # use lookback::out_of_core::{HostArrays, Limits};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let context = CudaContext::new(0)?;
//! let scanner = Scanner::new(&context)?;
//! let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
//! let (x, mut y) = (vec![1_u32; 1 << 32], vec![0_u32; 1 << 32]);
//! let limits = Limits { device_bytes: 2 << 30, ..Limits::default() };
//! let mut scan = scanner.chunked(sum, Mode::Inclusive, 1 << 32, &limits)?;
//! scan.scan(HostArrays::new().input(&x).output(&mut y))?;
//! # Ok(())
//! # }
//! ```
//!
//! Several GPUs share the chunks, and each has the state from the one that had the chunk before ([`ChunkedScan::on`]).
//!
//! Copies go over staging memory that is pinned, because the driver copies from other memory by its own small buffer and makes
//! the caller wait. A GPU has a stream for each direction and one for the scans, ordered by events.

use super::error::{Context as _, CudaError};
use super::memory::{Buffer, DeviceMemory};
use super::scanner::Scanner;
use crate::element::Defined;
use crate::out_of_core::pipeline::{self, Cause, Checkpoint, ChunkDevice, CopyRates, Job, Stopped};
use crate::out_of_core::{ChunkPlan, HostArrays, Limits};
use crate::strategy::Mode;
use cudarc::driver::{CudaStream, result, sys};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// See the [module](self). Made by [`Scanner::chunked`].
pub struct ChunkedScan<'a> {
    // Before what their copies go over.
    slots: Vec<Slot>,
    gpus: Gpus<'a>,
}

struct Gpus<'a> {
    plan: ChunkPlan,
    /// At least one.
    all: Vec<Gpu<'a>>,
    /// The most that the scans of one of them work with.
    workspace_bytes: u64,
    /// On the first of them, the state that a run starts from.
    first_state: Buffer,
}

struct Gpu<'a> {
    scanner: &'a Scanner,
    copies_in: OwnStream,
    scans: OwnStream,
    copies_out: OwnStream,
}

/// The memory of a chunk.
pub(super) struct Slot {
    /// Whose it is.
    gpu: usize,
    /// Behind them two states: that behind the chunk, and the one before it where it came from another GPU or from this very memory.
    arrays: Buffer,
    staging: Pinned,
    copied_in: Event,
    scanned: Arc<Event>,
    copied_out: Event,
}

/// A state that a scan leaves in the memory of its chunk, where it stays until the next chunk's scan has read it: that chunk's memory
/// is used again by a scan that comes behind this one alone.
pub(super) struct State {
    gpu: usize,
    address: u64,
    /// Marks the scan, on another stream than the reader's where the GPU is another one.
    scanned: Option<Arc<Event>>,
}

impl Scanner {
    /// A scan of host arrays of `n` elements in chunks. Kernels are compiled and memory is allocated here, and not when it runs.
    ///
    /// # Errors
    /// Too little memory by `limits` or on the machine, a scan that is not divided, and as [`Self::inclusive`].
    pub fn chunked(&self, defined: Defined, mode: Mode, n: u64, limits: &Limits) -> Result<ChunkedScan<'_>, CudaError> {
        ChunkedScan::on(std::slice::from_ref(self), defined, mode, n, limits)
    }
}

impl<'a> ChunkedScan<'a> {
    /// A scan by the GPUs of these scanners, each of which takes the next chunk when it has room for one. Between two of them the state
    /// is copied over whatever connects them. [`Limits::for_devices`] has enough chunks under way for all of them.
    ///
    /// # Errors
    /// As [`Scanner::chunked`], and when there is no scanner.
    pub fn on(
        scanners: &'a [Scanner],
        defined: Defined,
        mode: Mode,
        n: u64,
        limits: &Limits,
    ) -> Result<Self, CudaError> {
        // What the scans work with is known when they are prepared, and what is left is divided.
        let first = ChunkPlan::new(defined, mode, n, limits, scanners.len(), 0)?;
        let used = scanners.iter().take(first.devices() as usize);
        let all = used.map(Gpu::new).collect::<Result<Vec<_>, _>>()?;
        let mut workspace_bytes = 0;
        for gpu in &all {
            workspace_bytes = workspace_bytes.max(gpu.warm_up(&first, first.chunk_elements())?);
        }
        let plan = ChunkPlan::new(defined, mode, n, limits, scanners.len(), workspace_bytes)?;
        let first_state = all[0].memory().allocate(ChunkPlan::STATE_STRIDE, "the state before all chunks")?;
        let slots = plan.devices_of_slots().map(|gpu| Slot::new(gpu, all[gpu].memory(), &plan));
        Ok(Self { slots: slots.collect::<Result<_, _>>()?, gpus: Gpus { plan, all, workspace_bytes, first_state } })
    }

    /// How the scan is divided.
    pub const fn plan(&self) -> &ChunkPlan {
        &self.gpus.plan
    }

    /// Bytes of the memory that it has on the device where it has most, the scans' workspace included.
    pub fn device_bytes(&self) -> u64 {
        self.gpus.plan.device_bytes() + self.gpus.workspace_bytes
    }

    /// Scans slices, mapped files among them.
    ///
    /// # Errors
    /// Arrays that are not those of the definition, and as [`Self::run`].
    pub fn scan(&mut self, arrays: HostArrays<'_>) -> Result<(), Stopped<CudaError>> {
        let plan = *self.plan();
        pipeline::scan_arrays(&arrays, &plan, |job| self.run(job, |_| Ok(())))
    }

    /// Scans what is left of the arrays; `keep` is told of each checkpoint, on the calling thread. Returns the last one: of all
    /// elements, unless the job was stopped.
    ///
    /// # Errors
    /// What cannot be read, scanned, written or kept, with the checkpoint up to which outputs are valid.
    pub fn run(
        &mut self,
        job: Job<'_>,
        mut keep: impl FnMut(&Checkpoint) -> io::Result<()>,
    ) -> Result<Checkpoint, Stopped<CudaError>> {
        let gpus = &self.gpus;
        // The last chunk has a length of its own, and maybe kernels: they are not compiled while the others wait.
        let left = gpus.plan.elements().saturating_sub(job.start.elements);
        let last = left % gpus.plan.chunk_elements();
        let prepared = [left.min(gpus.plan.chunk_elements()), last].into_iter().filter(|&elements| elements > 0);
        for (gpu, elements) in prepared.flat_map(|elements| gpus.all.iter().map(move |gpu| (gpu, elements))) {
            if let Err(error) = gpu.warm_up(&gpus.plan, elements) {
                return Err(Stopped { done: job.start, cause: Box::new(Cause::Device(error)) });
            }
        }
        let unwinding = WaitsWhenUnwinding(gpus);
        let ended = pipeline::run(gpus, &mut self.slots, &gpus.plan, job, &mut keep);
        drop(unwinding);
        // After an error a chunk that was given up may still be copied.
        let waited = gpus.wait();
        match (ended, waited) {
            (Ok(done), Err(error)) => Err(Stopped { done, cause: Box::new(Cause::Device(error)) }),
            (ended, _) => ended,
        }
    }

    /// Copies so many bytes, or a little more, each way on each GPU, and each way at the same time; all GPUs do it at once. The
    /// arrays of no scan are there afterwards.
    ///
    /// # Errors
    /// When a copy fails.
    pub fn copy_rates(&mut self, bytes: u64) -> Result<CopyRates, CudaError> {
        let length = self.slots[0].staging.bytes.min(self.slots[0].arrays.bytes() as usize);
        let rounds = bytes.div_ceil(length as u64).max(1);
        let mut rate = |goes_in: bool, comes_out: bool| -> Result<f64, CudaError> {
            self.gpus.wait()?;
            let (slots, gpus) = (self.slots.len(), self.gpus.all.len());
            let begin = Instant::now();
            for (round, gpu) in (0..rounds as usize).flat_map(|round| (0..gpus).map(move |gpu| (round, gpu))) {
                let (own, Gpu { copies_in, copies_out, .. }) = ((slots - gpu).div_ceil(gpus), &self.gpus.all[gpu]);
                self.gpus.all[gpu].bind()?;
                // Each way with memory of its own, if the GPU has that of two chunks.
                let [here, there] = [2 * round, 2 * round + 1].map(|chunk| gpu + chunk % own * gpus);
                if goes_in {
                    let slot = &mut self.slots[here];
                    copy_in(&slot.arrays, 0, &slot.staging.bytes()[..length], copies_in)?;
                }
                if comes_out {
                    let Slot { arrays, staging, .. } = &mut self.slots[there];
                    copy_out(&mut staging.bytes_mut()[..length], arrays, 0, copies_out)?;
                }
            }
            self.gpus.wait()?;
            Ok((rounds * (length * gpus) as u64) as f64 / begin.elapsed().as_secs_f64())
        };
        // Once before, so that no first use is measured.
        rate(true, true)?;
        Ok(CopyRates {
            to_device: rate(true, false)?,
            from_device: rate(false, true)?,
            each_way_at_once: rate(true, true)?,
        })
    }
}

impl Drop for ChunkedScan<'_> {
    fn drop(&mut self) {
        // Nothing is freed or destroyed that is still copied or scanned. Whoever ran it was told of errors.
        let _ = self.gpus.wait();
    }
}

/// Where a source, a sink or who is told of checkpoints panics, chunks may still be copied, into memory that a later run would read.
struct WaitsWhenUnwinding<'a>(&'a Gpus<'a>);

impl Drop for WaitsWhenUnwinding<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.wait(); // Nobody is left to be told.
        }
    }
}

/// Bytes to the device, in the order of the stream.
fn copy_in(to: &Buffer, offset: u64, from: &[u8], stream: &OwnStream) -> Result<(), CudaError> {
    let place = to.range(offset, from.len() as u64);
    // SAFETY: the range was checked. Both places are a slot's, or a state and where it goes: they are not freed, and nobody else
    // touches their bytes, before the stream was waited for.
    unsafe { result::memcpy_htod_async(place, from, stream.stream.cu_stream()) }
        .during(|| format!("copying {} bytes to the device", from.len()))
}

/// Bytes from the device, likewise.
fn copy_out(to: &mut [u8], from: &Buffer, offset: u64, stream: &OwnStream) -> Result<(), CudaError> {
    let place = from.range(offset, to.len() as u64);
    // SAFETY: as above.
    unsafe { result::memcpy_dtoh_async(to, place, stream.stream.cu_stream()) }
        .during(|| format!("copying {} bytes from the device", to.len()))
}

impl<'a> Gpu<'a> {
    fn new(scanner: &'a Scanner) -> Result<Self, CudaError> {
        let stream = || OwnStream::new(scanner.memory());
        Ok(Self { scanner, copies_in: stream()?, scans: stream()?, copies_out: stream()? })
    }

    fn memory(&self) -> &'a Arc<DeviceMemory> {
        self.scanner.memory()
    }

    /// Makes the context current for this thread.
    fn bind(&self) -> Result<(), CudaError> {
        self.memory().context().bind_to_thread().during(|| String::from("making the context current"))
    }

    fn wait(&self) -> Result<(), CudaError> {
        // All streams, whatever one says, because their memory is used again. An error of before that the context kept is told once, and
        // only the call behind it binds.
        let (kept, bound) = (self.bind(), self.bind());
        let wait = |stream: &OwnStream| {
            // SAFETY: the stream lives.
            unsafe { result::stream::synchronize(stream.stream.cu_stream()) }
                .during(|| String::from("waiting for chunks"))
        };
        let waited = [&self.copies_in, &self.scans, &self.copies_out].map(wait);
        waited.into_iter().fold(kept.and(bound), Result::and)
    }

    /// Compiles, loads and allocates for a chunk of so many elements; returns the bytes of the workspace.
    fn warm_up(&self, plan: &ChunkPlan, elements: u64) -> Result<u64, CudaError> {
        // Addresses of arrays that are nowhere: of them only the alignment counts, and whether they overlap.
        const NOWHERE: u64 = 1 << 40;
        let layout = plan.device_layout();
        let places = |ranges: &[Range<u64>]| ranges.iter().map(|range| NOWHERE + range.start).collect::<Vec<_>>();
        let (inputs, outputs) = (places(&layout.inputs), places(&layout.outputs));
        let states = NOWHERE + layout.bytes;
        let call = plan.call(elements, [&inputs, &outputs], Some(states + ChunkPlan::STATE_STRIDE), states);
        self.scanner.scan_defined(&self.scans.stream, call, plan.mode(), Scanner::warm)
    }

    /// The state before a chunk, where a scan on this GPU reads it: the first of the two behind the chunk, if another GPU has left it.
    fn fetch(&self, before: &State, from: &Gpu<'_>, slot: &Slot) -> Result<u64, CudaError> {
        if before.gpu == slot.gpu {
            return Ok(before.address);
        }
        if let Some(scanned) = &before.scanned {
            scanned.make_wait(&self.scans)?;
        }
        let [place, _] = slot.states();
        let [to, from] = [self, from].map(|gpu| gpu.memory().context().cu_ctx());
        // SAFETY: both places have so many bytes and live as long as `self`, each in its context. This one is read by scans of its
        // stream alone, behind it. That one was written by the scan that the stream waits for, or before the run, and is overwritten
        // by a scan that is ordered behind the chunk's.
        unsafe {
            result::memcpy_peer_async(
                to,
                place,
                from,
                before.address,
                ChunkPlan::STATE_STRIDE as usize,
                self.scans.stream.cu_stream(),
            )
        }
        .during(|| String::from("copying a state from another GPU"))?;
        Ok(place)
    }
}

impl Drop for Gpu<'_> {
    fn drop(&mut self) {
        // The scanner would keep a stream that is destroyed.
        let _ = self.scanner.forget(&self.scans.stream);
    }
}

impl Gpus<'_> {
    fn wait(&self) -> Result<(), CudaError> {
        // All of them, whatever one says.
        let waited: Vec<_> = self.all.iter().map(Gpu::wait).collect();
        waited.into_iter().collect()
    }
}

impl ChunkDevice for Gpus<'_> {
    type Slot = Slot;
    type State = State;
    type Error = CudaError;

    fn begin(&self, state: Option<&[u8]>) -> Result<Option<State>, CudaError> {
        let Some(state) = state else { return Ok(None) };
        let gpu = &self.all[0];
        gpu.bind()?;
        copy_in(&self.first_state, 0, state, &gpu.scans)?;
        // `state` may go.
        gpu.scans.stream.synchronize().during(|| String::from("copying a state to the device"))?;
        Ok(Some(State { gpu: 0, address: self.first_state.address(), scanned: None }))
    }

    fn staging<'a>(&self, slot: &'a mut Slot) -> &'a mut [u8] {
        slot.staging.bytes_mut()
    }

    fn upload(&self, slot: &mut Slot, elements: u64) -> Result<(), CudaError> {
        let gpu = &self.all[slot.gpu];
        gpu.bind()?;
        let (on_host, on_device) = (self.plan.host_layout(), self.plan.device_layout());
        let places = on_host.inputs.iter().zip(&on_device.inputs).zip(self.plan.input_bytes());
        for ((from, to), bytes) in places {
            let part = &slot.staging.bytes()[from.start as usize..(from.start + elements * bytes) as usize];
            copy_in(&slot.arrays, to.start, part, &gpu.copies_in)?;
        }
        slot.copied_in.record(&gpu.copies_in)
    }

    fn scan(&self, slot: &mut Slot, elements: u64, before: Option<State>) -> Result<State, CudaError> {
        let gpu = &self.all[slot.gpu];
        gpu.bind()?;
        let layout = self.plan.device_layout();
        let places =
            |ranges: &[Range<u64>]| ranges.iter().map(|range| slot.arrays.address() + range.start).collect::<Vec<_>>();
        let (inputs, outputs) = (places(&layout.inputs), places(&layout.outputs));
        let initial = before.map(|before| gpu.fetch(&before, &self.all[before.gpu], slot)).transpose()?;
        let [first, second] = slot.states();
        let behind = if initial == Some(first) { second } else { first };
        let call = self.plan.call(elements, [&inputs, &outputs], initial, behind);
        slot.copied_in.make_wait(&gpu.scans)?;
        gpu.scanner.scan_defined(&gpu.scans.stream, call, self.plan.mode(), Scanner::enqueue)?;
        slot.scanned.record(&gpu.scans)?;
        slot.scanned.make_wait(&gpu.copies_out)?;
        let staging = slot.staging.bytes_mut();
        let on_host = self.plan.host_layout();
        let places = on_host.outputs.iter().zip(&layout.outputs).zip(self.plan.output_bytes());
        for ((to, from), bytes) in places {
            let part = &mut staging[to.start as usize..(to.start + elements * bytes) as usize];
            copy_out(part, &slot.arrays, from.start, &gpu.copies_out)?;
        }
        copy_out(&mut staging[self.plan.host_state()], &slot.arrays, behind - slot.arrays.address(), &gpu.copies_out)?;
        slot.copied_out.record(&gpu.copies_out)?;
        Ok(State { gpu: slot.gpu, address: behind, scanned: Some(Arc::clone(&slot.scanned)) })
    }

    fn finish(&self, slot: &mut Slot) -> Result<(), CudaError> {
        self.all[slot.gpu].bind()?;
        slot.copied_out.wait()
    }
}

impl Slot {
    fn new(gpu: usize, memory: &Arc<DeviceMemory>, plan: &ChunkPlan) -> Result<Self, CudaError> {
        Ok(Self {
            gpu,
            arrays: memory.allocate(plan.slot_bytes(), "a chunk")?,
            staging: Pinned::new(memory, plan.host_layout().bytes as usize)?,
            copied_in: Event::new(memory)?,
            scanned: Arc::new(Event::new(memory)?),
            copied_out: Event::new(memory)?,
        })
    }

    /// Where the states lie.
    fn states(&self) -> [u64; 2] {
        let end = self.arrays.address() + self.arrays.bytes();
        [end - 2 * ChunkPlan::STATE_STRIDE, end - ChunkPlan::STATE_STRIDE]
    }
}

/// Memory of the host that stays where it is, so that the device copies from and to it by itself.
struct Pinned {
    memory: Arc<DeviceMemory>,
    address: *mut u8,
    bytes: usize,
}

// SAFETY: it is memory of the process as any other, and this its only owner.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(memory: &Arc<DeviceMemory>, bytes: usize) -> Result<Self, CudaError> {
        memory.context().bind_to_thread().during(|| String::from("making the context current"))?;
        let during = || format!("pinning {bytes} bytes of the host's memory");
        // SAFETY: the context is current. Portable, so that it is pinned for whatever context is.
        let address = unsafe { result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_PORTABLE) }.during(during)?.cast::<u8>();
        // SAFETY: made right above, of so many bytes. From here on they are initialised.
        unsafe { address.write_bytes(0, bytes) };
        Ok(Self { memory: Arc::clone(memory), address, bytes })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: allocated and initialised in `new`, freed in `drop`; borrowed as this is.
        unsafe { std::slice::from_raw_parts(self.address, self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.memory.is_abandoned() {
            return;
        }
        let context = self.memory.context();
        context.record_err(context.bind_to_thread());
        // SAFETY: of `malloc_host`, freed here alone; the streams that copy it were waited for.
        context.record_err(unsafe { result::free_host(self.address.cast()) });
    }
}

/// A stream that cudarc only borrows: one of its own making would switch the user's context to tracking events.
struct OwnStream {
    memory: Arc<DeviceMemory>,
    stream: Arc<CudaStream>,
}

impl OwnStream {
    fn new(memory: &Arc<DeviceMemory>) -> Result<Self, CudaError> {
        let context = memory.context();
        context.bind_to_thread().during(|| String::from("making the context current"))?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)
            .during(|| String::from("making a stream"))?;
        // SAFETY: made right above in this context; destroyed in `drop`, when the scanner, who alone keeps the wrapper, has let go
        // of it.
        let stream = unsafe { context.wrap_borrowed_stream(stream) };
        Ok(Self { memory: Arc::clone(memory), stream })
    }
}

impl Drop for OwnStream {
    fn drop(&mut self) {
        if self.memory.is_abandoned() {
            return;
        }
        let context = self.memory.context();
        context.record_err(context.bind_to_thread());
        // SAFETY: made in `new`, destroyed here alone; what is on it was waited for.
        context.record_err(unsafe { result::stream::destroy(self.stream.cu_stream()) });
    }
}

/// An event without a time, for which a waiting thread sleeps: there are more threads than cores, and those that read and write
/// need them.
struct Event {
    memory: Arc<DeviceMemory>,
    event: sys::CUevent,
}

// SAFETY: a handle, which the driver lets any thread use.
unsafe impl Send for Event {}
// SAFETY: likewise, several at once.
unsafe impl Sync for Event {}

impl Event {
    fn new(memory: &Arc<DeviceMemory>) -> Result<Self, CudaError> {
        memory.context().bind_to_thread().during(|| String::from("making the context current"))?;
        let flags =
            sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32 | sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        let mut event = std::ptr::null_mut();
        // SAFETY: a valid place for the handle, in the context that is current.
        unsafe { sys::cuEventCreate(&raw mut event, flags) }.result().during(|| String::from("making an event"))?;
        Ok(Self { memory: Arc::clone(memory), event })
    }

    /// Marks what is on the stream now.
    fn record(&self, stream: &OwnStream) -> Result<(), CudaError> {
        // SAFETY: both live, in one context.
        unsafe { result::event::record(self.event, stream.stream.cu_stream()) }
            .during(|| String::from("recording an event"))
    }

    /// What comes onto the stream from here on is behind what is marked.
    fn make_wait(&self, stream: &OwnStream) -> Result<(), CudaError> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both live; their contexts may be two.
        unsafe { result::stream::wait_event(stream.stream.cu_stream(), self.event, flags) }
            .during(|| String::from("ordering two streams"))
    }

    fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: it lives.
        unsafe { result::event::synchronize(self.event) }.during(|| String::from("waiting for a chunk"))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.memory.is_abandoned() {
            return;
        }
        let context = self.memory.context();
        context.record_err(context.bind_to_thread());
        // SAFETY: made in `new`, destroyed here alone.
        context.record_err(unsafe { result::event::destroy(self.event) });
    }
}
