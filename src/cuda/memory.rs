//! Device memory that frees itself, and the calls on it.
//!
//! Not cudarc's slices: those carry events where the context tracks them, free on one stream in stream
//! order, and cannot be made while a stream is being captured. A workspace must be none of that.

use super::error::{Context as _, CudaError};
use cudarc::driver::result::DriverError;
use cudarc::driver::{CudaContext, CudaStream, result, sys};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where buffers come from: a context and a stream of its own for what must not go through a user's.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    context: Arc<CudaContext>,
    /// Made by hand and only borrowed by cudarc: a stream of cudarc's own making would switch the user's
    /// context to tracking events across streams.
    setup: Arc<CudaStream>,
    /// A launch hangs. Freeing would wait for it, so nothing is freed any more: the process's end does it.
    pub(crate) abandoned: AtomicBool,
}

/// Memory of the device, aligned to at least 256 bytes.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Arc<DeviceMemory>,
    address: sys::CUdeviceptr,
    bytes: u64,
}

impl DeviceMemory {
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<Arc<Self>, CudaError> {
        context.bind_to_thread().during(|| String::from("making the context current"))?;
        let setup = result::stream::create(result::stream::StreamKind::NonBlocking)
            .during(|| String::from("making a stream"))?;
        // SAFETY: made right above in this context; destroyed in `drop`, and the wrapper never leaves this object.
        let setup = unsafe { context.wrap_borrowed_stream(setup) };
        Ok(Arc::new(Self { context: Arc::clone(context), setup, abandoned: AtomicBool::new(false) }))
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Free bytes of the device.
    pub(crate) fn free_bytes(&self) -> Result<u64, CudaError> {
        let (free, _) = self.context.mem_get_info().during(|| String::from("asking for free memory"))?;
        Ok(free as u64)
    }

    /// Uninitialised memory; `what` names it in the error.
    pub(crate) fn allocate(self: &Arc<Self>, bytes: u64, what: &str) -> Result<Buffer, CudaError> {
        let _relaxed = RelaxedCapture::begin(&self.context)?;
        let out_of_memory =
            |available_bytes| CudaError::OutOfMemory { what: what.to_owned(), needed_bytes: bytes, available_bytes };
        // An allocation of nothing is an error of the driver, and a null address would look like "none".
        let Ok(size) = usize::try_from(bytes.max(256)) else { return Err(out_of_memory(0)) };
        // SAFETY: the context is current; the memory is not read before it is written.
        match unsafe { result::malloc_sync(size) } {
            Ok(address) => Ok(Buffer { memory: Arc::clone(self), address, bytes: size as u64 }),
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                Err(out_of_memory(self.free_bytes().unwrap_or(0)))
            }
            Err(error) => Err(CudaError::driver(format!("allocating {bytes} bytes for {what}"), error)),
        }
    }

    /// Memory that holds zeros when this returns, also for streams that know nothing of it.
    pub(crate) fn allocate_zeroed(self: &Arc<Self>, bytes: u64, what: &str) -> Result<Buffer, CudaError> {
        let buffer = self.allocate(bytes, what)?;
        let _relaxed = RelaxedCapture::begin(&self.context)?;
        buffer.fill(0, buffer.bytes, 0, &self.setup)?;
        self.setup.synchronize().during(|| format!("clearing {what}"))?;
        Ok(buffer)
    }

    /// A launch hangs: nothing is freed or waited for any more.
    #[cfg(any(feature = "lab", feature = "nccl"))]
    pub(crate) fn abandon(&self) {
        if !self.abandoned.swap(true, Ordering::Relaxed) {
            // Releasing the context would wait for the launch, too: keep it for ever.
            std::mem::forget(Arc::clone(self.context()));
        }
    }

    /// Whether a launch hangs.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.is_abandoned() {
            return;
        }
        self.context.record_err(self.context.bind_to_thread());
        // SAFETY: made in `new`, destroyed here alone; every use of it was waited for.
        self.context.record_err(unsafe { result::stream::destroy(self.setup.cu_stream()) });
    }
}

impl Buffer {
    /// The device address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device address `offset` bytes in, for an access of `count` bytes.
    ///
    /// # Panics
    /// Never with the ranges of this crate: they are computed from the buffer's own size. The check keeps
    /// a wrong one from becoming a write to someone else's memory.
    pub(crate) fn range(&self, offset: u64, count: u64) -> sys::CUdeviceptr {
        let end = offset.checked_add(count);
        assert!(end.is_some_and(|end| end <= self.bytes), "{count} bytes at {offset} of a buffer of {}", self.bytes);
        self.address + offset
    }

    /// The words at the front, which are 0 from then on. Whatever works on them was waited for.
    pub(crate) fn take_words<const COUNT: usize>(&self) -> Result<[u64; COUNT], CudaError> {
        let _relaxed = RelaxedCapture::begin(&self.memory.context)?;
        let mut words = [0; COUNT];
        let bytes = size_of_val(&words) as u64;
        // SAFETY: the range was checked, and the copy is done when the call returns.
        unsafe { result::memcpy_dtoh_sync(&mut words, self.range(0, bytes)) }
            .during(|| format!("reading {bytes} bytes"))?;
        self.fill(0, bytes, 0, &self.memory.setup)?;
        self.memory.setup.synchronize().during(|| format!("clearing {bytes} bytes"))?;
        Ok(words)
    }

    /// Copies from the host, whatever streams do meanwhile; it is there when this returns.
    #[cfg(feature = "nccl")]
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), CudaError> {
        let _relaxed = RelaxedCapture::begin(&self.memory.context)?;
        let (target, setup) = (self.range(offset, bytes.len() as u64), &self.memory.setup);
        // SAFETY: the range was checked; the driver has read `bytes` when the stream is synchronised.
        unsafe { result::memcpy_htod_async(target, bytes, setup.cu_stream()) }
            .and_then(|()| setup.synchronize())
            .during(|| format!("copying {} bytes to the device", bytes.len()))
    }

    /// Sets `count` bytes, in stream order.
    pub(crate) fn fill(&self, offset: u64, count: u64, value: u8, stream: &CudaStream) -> Result<(), CudaError> {
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the range was checked; the buffer outlives the work, because it is dropped after a wait.
        unsafe { result::memset_d8_async(self.range(offset, count), value, count as usize, stream.cu_stream()) }
            .during(|| format!("filling {count} bytes"))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.memory.is_abandoned() {
            return;
        }
        let context = &self.memory.context;
        let relaxed = RelaxedCapture::begin(context);
        // SAFETY: allocated by `allocate`, freed here alone; owners wait for the work on it first.
        context.record_err(unsafe { result::free_sync(self.address) });
        drop(relaxed);
    }
}

/// While this lives, the thread may allocate, free, load and wait although some stream is being captured:
/// what is done under it concerns no captured stream.
pub(crate) struct RelaxedCapture {
    before: sys::CUstreamCaptureMode,
}

impl RelaxedCapture {
    /// Makes the context current, too: the driver knows no capture mode without one.
    pub(crate) fn begin(context: &CudaContext) -> Result<Self, CudaError> {
        context.bind_to_thread().during(|| String::from("making the context current"))?;
        let mut mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: a valid pointer; the call swaps the thread's mode with it.
        unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) }
            .result()
            .during(|| String::from("changing the thread's capture mode"))?;
        Ok(Self { before: mode })
    }
}

impl Drop for RelaxedCapture {
    fn drop(&mut self) {
        // SAFETY: as above; restores what `begin` found. It fails only where the driver is shutting down.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut self.before) };
    }
}
