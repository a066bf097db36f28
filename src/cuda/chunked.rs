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
//! Copies go over staging memory that is pinned, because the driver copies from other memory by its own small buffer and makes
//! the caller wait. There is a stream for each direction and one for the scans, ordered by events.

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
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// See the [module](self). Made by [`Scanner::chunked`].
pub struct ChunkedScan<'a> {
    // Before what their copies go over.
    slots: Vec<Slot>,
    device: DeviceChunks<'a>,
}

struct DeviceChunks<'a> {
    scanner: &'a Scanner,
    plan: ChunkPlan,
    workspace_bytes: u64,
    copies_in: OwnStream,
    scans: OwnStream,
    copies_out: OwnStream,
    /// A ring: that of chunk k lies at k modulo their number.
    states: Buffer,
    next: Mutex<Next>,
}

/// The chunk that is scanned next.
#[derive(Debug, Clone, Copy)]
struct Next {
    index: u64,
    /// Whether a state stands before it.
    has_state: bool,
}

/// The memory of a chunk.
pub(super) struct Slot {
    arrays: Buffer,
    staging: Pinned,
    copied_in: Event,
    scanned: Event,
    copied_out: Event,
}

impl Scanner {
    /// A scan of host arrays of `n` elements in chunks. Kernels are compiled and memory is allocated here, and not when it runs.
    ///
    /// # Errors
    /// Too little memory by `limits` or on the machine, a scan that is not divided, and as [`Self::inclusive`].
    pub fn chunked(&self, defined: Defined, mode: Mode, n: u64, limits: &Limits) -> Result<ChunkedScan<'_>, CudaError> {
        ChunkedScan::new(self, defined, mode, n, limits)
    }
}

impl<'a> ChunkedScan<'a> {
    fn new(scanner: &'a Scanner, defined: Defined, mode: Mode, n: u64, limits: &Limits) -> Result<Self, CudaError> {
        let memory = scanner.memory();
        let (copies_in, scans, copies_out) =
            (OwnStream::new(memory)?, OwnStream::new(memory)?, OwnStream::new(memory)?);
        // What the scans work with is known when they are prepared, and what is left is divided.
        let first = ChunkPlan::new(defined, mode, n, limits, 0)?;
        let made = warm_up(scanner, &scans, &first, first.chunk_elements()).and_then(|workspace_bytes| {
            let plan = ChunkPlan::new(defined, mode, n, limits, workspace_bytes)?;
            let states = memory.allocate(plan.states() * ChunkPlan::STATE_STRIDE, "the states between chunks")?;
            let slots = (0..plan.chunks_under_way()).map(|_| Slot::new(memory, &plan)).collect::<Result<_, _>>()?;
            Ok((workspace_bytes, plan, states, slots))
        });
        let (workspace_bytes, plan, states, slots) = match made {
            Ok(made) => made,
            Err(error) => {
                // The scanner would keep a stream that is destroyed.
                let _ = scanner.forget(&scans.stream);
                return Err(error);
            }
        };
        let next = Mutex::new(Next { index: 0, has_state: false });
        let device = DeviceChunks { scanner, plan, workspace_bytes, copies_in, scans, copies_out, states, next };
        Ok(Self { slots, device })
    }

    /// How the scan is divided.
    pub const fn plan(&self) -> &ChunkPlan {
        &self.device.plan
    }

    /// Bytes of the device's memory that it has, the scans' workspace included.
    pub fn device_bytes(&self) -> u64 {
        self.device.plan.device_bytes() + self.device.workspace_bytes
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
        let device = &self.device;
        // The last chunk has a length of its own, and maybe kernels: they are not compiled while the others wait.
        let left = device.plan.elements().saturating_sub(job.start.elements);
        let last = left % device.plan.chunk_elements();
        let prepared = [left.min(device.plan.chunk_elements()), last].into_iter().filter(|&elements| elements > 0);
        for elements in prepared {
            if let Err(error) = warm_up(device.scanner, &device.scans, &device.plan, elements) {
                return Err(Stopped { done: job.start, cause: Box::new(Cause::Device(error)) });
            }
        }
        let unwinding = WaitsWhenUnwinding(device);
        let ended = pipeline::run(device, &mut self.slots, &device.plan, job, &mut keep);
        drop(unwinding);
        // After an error a chunk that was given up may still be copied.
        let waited = device.wait();
        match (ended, waited) {
            (Ok(done), Err(error)) => Err(Stopped { done, cause: Box::new(Cause::Device(error)) }),
            (ended, _) => ended,
        }
    }

    /// Copies so many bytes, or a little more, each way, and each way at the same time. The arrays of no scan are there afterwards.
    ///
    /// # Errors
    /// When a copy fails.
    pub fn copy_rates(&mut self, bytes: u64) -> Result<CopyRates, CudaError> {
        let length = self.slots[0].staging.bytes.min(self.slots[0].arrays.bytes() as usize);
        let rounds = bytes.div_ceil(length as u64).max(1);
        let mut rate = |goes_in: bool, comes_out: bool| -> Result<f64, CudaError> {
            self.device.wait()?;
            let slots = self.slots.len() as u64;
            let begin = Instant::now();
            for round in 0..rounds {
                // Each way with memory of its own, if there is that of two chunks.
                let (here, there) = ((2 * round % slots) as usize, ((2 * round + 1) % slots) as usize);
                if goes_in {
                    let slot = &mut self.slots[here];
                    copy_in(&slot.arrays, 0, &slot.staging.bytes()[..length], &self.device.copies_in)?;
                }
                if comes_out {
                    let Slot { arrays, staging, .. } = &mut self.slots[there];
                    copy_out(&mut staging.bytes_mut()[..length], arrays, 0, &self.device.copies_out)?;
                }
            }
            self.device.wait()?;
            Ok((rounds * length as u64) as f64 / begin.elapsed().as_secs_f64())
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
        let _ = self.device.wait();
        let _ = self.device.scanner.forget(&self.device.scans.stream);
    }
}

/// Compiles, loads and allocates for a chunk of so many elements; returns the bytes of the workspace.
fn warm_up(scanner: &Scanner, scans: &OwnStream, plan: &ChunkPlan, elements: u64) -> Result<u64, CudaError> {
    // Addresses of arrays that are nowhere: of them only the alignment counts, and whether they overlap.
    const NOWHERE: u64 = 1 << 40;
    let layout = plan.device_layout();
    let places = |ranges: &[Range<u64>]| ranges.iter().map(|range| NOWHERE + range.start).collect::<Vec<_>>();
    let (inputs, outputs) = (places(&layout.inputs), places(&layout.outputs));
    let states = NOWHERE + layout.bytes;
    let call = plan.call(elements, [&inputs, &outputs], Some(states), states + ChunkPlan::STATE_STRIDE);
    scanner.scan_defined(&scans.stream, call, plan.mode(), Scanner::warm)
}

/// Where a source, a sink or who is told of checkpoints panics, chunks may still be copied, into memory that a later run would read.
struct WaitsWhenUnwinding<'a>(&'a DeviceChunks<'a>);

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

impl DeviceChunks<'_> {
    fn wait(&self) -> Result<(), CudaError> {
        self.bind()?;
        for stream in [&self.copies_in, &self.scans, &self.copies_out] {
            stream.stream.synchronize().during(|| String::from("waiting for chunks"))?;
        }
        Ok(())
    }

    /// Makes the context current for this thread.
    fn bind(&self) -> Result<(), CudaError> {
        self.scanner.memory().context().bind_to_thread().during(|| String::from("making the context current"))
    }

    /// Where the state behind a chunk lies, from the beginning of the states.
    fn state_of(&self, index: u64) -> u64 {
        index % self.plan.states() * ChunkPlan::STATE_STRIDE
    }
}

impl ChunkDevice for DeviceChunks<'_> {
    type Slot = Slot;
    type Error = CudaError;

    fn begin(&self, state: Option<&[u8]>) -> Result<(), CudaError> {
        self.bind()?;
        if let Some(state) = state {
            // Where the state before the first chunk would lie. In the order of the scans, and waited for, because `state` may go.
            copy_in(&self.states, self.state_of(self.plan.states() - 1), state, &self.scans)?;
            self.scans.stream.synchronize().during(|| String::from("copying a state to the device"))?;
        }
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Next { index: 0, has_state: state.is_some() };
        Ok(())
    }

    fn staging<'a>(&self, slot: &'a mut Slot) -> &'a mut [u8] {
        slot.staging.bytes_mut()
    }

    fn upload(&self, slot: &mut Slot, elements: u64) -> Result<(), CudaError> {
        self.bind()?;
        let (on_host, on_device) = (self.plan.host_layout(), self.plan.device_layout());
        let places = on_host.inputs.iter().zip(&on_device.inputs).zip(self.plan.input_bytes());
        for ((from, to), bytes) in places {
            let part = &slot.staging.bytes()[from.start as usize..(from.start + elements * bytes) as usize];
            copy_in(&slot.arrays, to.start, part, &self.copies_in)?;
        }
        slot.copied_in.record(&self.copies_in)
    }

    fn scan(&self, slot: &mut Slot, elements: u64) -> Result<(), CudaError> {
        self.bind()?;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let layout = self.plan.device_layout();
        let places =
            |ranges: &[Range<u64>]| ranges.iter().map(|range| slot.arrays.address() + range.start).collect::<Vec<_>>();
        let (inputs, outputs) = (places(&layout.inputs), places(&layout.outputs));
        let (before, behind) = (self.state_of(next.index + self.plan.states() - 1), self.state_of(next.index));
        let initial = next.has_state.then_some(self.states.address() + before);
        let call = self.plan.call(elements, [&inputs, &outputs], initial, self.states.address() + behind);
        slot.copied_in.make_wait(&self.scans)?;
        self.scanner.scan_defined(&self.scans.stream, call, self.plan.mode(), Scanner::enqueue)?;
        slot.scanned.record(&self.scans)?;
        slot.scanned.make_wait(&self.copies_out)?;
        let staging = slot.staging.bytes_mut();
        let on_host = self.plan.host_layout();
        let places = on_host.outputs.iter().zip(&layout.outputs).zip(self.plan.output_bytes());
        for ((to, from), bytes) in places {
            let part = &mut staging[to.start as usize..(to.start + elements * bytes) as usize];
            copy_out(part, &slot.arrays, from.start, &self.copies_out)?;
        }
        copy_out(&mut staging[self.plan.host_state()], &self.states, behind, &self.copies_out)?;
        slot.copied_out.record(&self.copies_out)?;
        *next = Next { index: next.index + 1, has_state: true };
        Ok(())
    }

    fn finish(&self, slot: &mut Slot) -> Result<(), CudaError> {
        self.bind()?;
        slot.copied_out.wait()
    }
}

impl Slot {
    fn new(memory: &Arc<DeviceMemory>, plan: &ChunkPlan) -> Result<Self, CudaError> {
        Ok(Self {
            arrays: memory.allocate(plan.device_layout().bytes, "a chunk")?,
            staging: Pinned::new(memory, plan.host_layout().bytes as usize)?,
            copied_in: Event::new(memory)?,
            scanned: Event::new(memory)?,
            copied_out: Event::new(memory)?,
        })
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
        // SAFETY: both live, in one context.
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
