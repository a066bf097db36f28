//! What host and kernels tell each other while a sample is under way.

use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::memory::DeviceMemory;
use cudarc::driver::{result, sys};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Memory of the host that kernels read and write: the word that releases `hold`, and what kernels report.
pub(super) struct Signals {
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
    pub(super) const RELEASE: usize = 0;
    pub(super) const LATE: usize = 128;
    const PROBES: usize = 256;
    const PROBE_BYTES: usize = 16;
    const BYTES: usize = 512;

    pub(super) fn new(memory: &Arc<DeviceMemory>) -> Result<Self, CudaError> {
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

    pub(super) fn device_address(&self, offset: usize) -> u64 {
        self.device + offset as u64
    }

    /// Where probe 0 or 1 is to report.
    pub(super) fn probe_address(&self, probe: usize) -> u64 {
        self.device_address(Self::PROBES + probe * Self::PROBE_BYTES)
    }

    /// A word that no `hold` before has waited for.
    pub(super) fn next_ticket(&mut self) -> u32 {
        // 0 is what the memory held at first.
        self.ticket = self.ticket.wrapping_add(1).max(1);
        self.ticket
    }

    /// Lets the `hold` that waits for `ticket` go.
    pub(super) fn release(&self, ticket: u32) {
        // SAFETY: aligned, inside the allocation, alive as long as `self`; device and host access it by atomic
        // accesses alone.
        let word = unsafe { AtomicU32::from_ptr(self.host.as_ptr().add(Self::RELEASE).cast()) };
        // Release, pairs with the acquire in `read_from_host` of cuda/measure.cu.
        word.store(ticket, Ordering::Release);
    }

    /// Whether the `hold` of this ticket gave up. Only to be asked after the stream was waited for.
    pub(super) fn was_late(&self, ticket: u32) -> bool {
        // SAFETY: as in `release`; the wait for the stream orders the kernel's write before this.
        let word = unsafe { AtomicU32::from_ptr(self.host.as_ptr().add(Self::LATE).cast()) };
        word.load(Ordering::Acquire) == ticket
    }

    /// The lower of the clocks that both probes found, in megahertz. Only to be asked after the stream was waited for.
    pub(super) fn clock_megahertz(&self) -> Option<f64> {
        Some(self.probed_megahertz(0)?.min(self.probed_megahertz(1)?))
    }

    fn probed_megahertz(&self, probe: usize) -> Option<f64> {
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
