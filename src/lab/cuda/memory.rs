//! What the laboratory does with device memory and a scan does not: waits with a limit, copies to and from the host,
//! poisons scratch memory, and moves the count of epochs.

use crate::abi;
use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::memory::{Buffer, DeviceMemory};
use crate::cuda::workspace::Workspace;
use crate::lab::arrays::FILLING;
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaStream, sys};
use std::mem::offset_of;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl DeviceMemory {
    /// Waits until everything on the stream is done, at most `limit`. After that the device counts as
    /// hung: nothing of it is freed or waited for again.
    pub(crate) fn finish(&self, stream: &CudaStream, limit: Duration, what: &str) -> Result<(), CudaError> {
        self.context().bind_to_thread().during(|| String::from("making the context current"))?;
        let start = Instant::now();
        loop {
            // SAFETY: the stream is alive and of this context.
            match unsafe { sys::cuStreamQuery(stream.cu_stream()) } {
                sys::CUresult::CUDA_SUCCESS => return Ok(()),
                sys::CUresult::CUDA_ERROR_NOT_READY => {}
                error => return Err(CudaError::driver(what, DriverError(error))),
            }
            let waited = start.elapsed();
            if waited > limit {
                self.abandon();
                return Err(CudaError::DidNotFinish { what: what.to_owned(), seconds: limit.as_secs() });
            }
            // Short launches are polled, long ones are slept for.
            if waited > Duration::from_millis(5) {
                std::thread::sleep(Duration::from_micros(200));
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// Memory that holds these bytes.
    pub(crate) fn upload(self: &Arc<Self>, bytes: &[u8], what: &str, stream: &CudaStream) -> Result<Buffer, CudaError> {
        let buffer = self.allocate(bytes.len() as u64, what)?;
        buffer.upload(0, bytes, stream)?;
        Ok(buffer)
    }
}

impl Buffer {
    /// Copies from the host, in stream order. Pageable memory is staged by the driver before this returns.
    pub(crate) fn upload(&self, offset: u64, bytes: &[u8], stream: &CudaStream) -> Result<(), CudaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let target = self.range(offset, bytes.len() as u64);
        // SAFETY: the range was checked; the driver has read `bytes` when the stream is synchronised below.
        unsafe { result::memcpy_htod_async(target, bytes, stream.cu_stream()) }
            .and_then(|()| stream.synchronize())
            .during(|| format!("copying {} bytes to the device", bytes.len()))
    }

    /// Copies to the host and waits for it.
    pub(crate) fn download(&self, offset: u64, bytes: &mut [u8], stream: &CudaStream) -> Result<(), CudaError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let source = self.range(offset, bytes.len() as u64);
        let count = bytes.len();
        // SAFETY: the range was checked; `bytes` is borrowed until the stream is synchronised below.
        unsafe { result::memcpy_dtoh_async(bytes, source, stream.cu_stream()) }
            .and_then(|()| stream.synchronize())
            .during(|| format!("copying {count} bytes from the device"))
    }

    /// Copies `count` bytes of another buffer, in stream order.
    pub(crate) fn copy_from(
        &self,
        offset: u64,
        source: &Self,
        source_offset: u64,
        count: u64,
        stream: &CudaStream,
    ) -> Result<(), CudaError> {
        if count == 0 {
            return Ok(());
        }
        let (target, source) = (self.range(offset, count), source.range(source_offset, count));
        // SAFETY: both ranges were checked; both buffers outlive the work.
        unsafe { result::memcpy_dtod_async(target, source, count as usize, stream.cu_stream()) }
            .during(|| format!("copying {count} bytes on the device"))
    }
}

impl Workspace {
    /// Fills the scratch memory, which kernels may not expect anything of.
    pub(crate) fn poison_scratch(&self) -> Result<(), CudaError> {
        let Some(scratch) = &self.scratch else { return Ok(()) };
        scratch.fill(0, scratch.bytes(), FILLING, &self.stream)
    }

    /// Sets how many launches every region has completed, so that a test stands right before the wrap
    /// instead of 2^30 launches before it. Raising the count keeps the descriptors, as launches would;
    /// lowering it would make old ones valid, so that clears them.
    pub(crate) fn set_completed_epochs(&mut self, epochs: u32) -> Result<(), CudaError> {
        for region in self.regions.values() {
            if epochs < completed_epochs(&region.buffer, &self.stream)? {
                region.buffer.fill(0, region.buffer.bytes(), 0, &self.stream)?;
            }
            let offset = offset_of!(abi::lookback_control, completed_epochs) as u64;
            region.buffer.upload(offset, &epochs.to_le_bytes(), &self.stream)?;
        }
        Ok(())
    }

    /// How many launches each region has completed since its last clean-up.
    pub(crate) fn completed_epochs(&self) -> Result<Vec<u32>, CudaError> {
        self.regions.values().map(|region| completed_epochs(&region.buffer, &self.stream)).collect()
    }
}

fn completed_epochs(region: &Buffer, stream: &CudaStream) -> Result<u32, CudaError> {
    let mut bytes = [0; 4];
    region.download(offset_of!(abi::lookback_control, completed_epochs) as u64, &mut bytes, stream)?;
    Ok(u32::from_le_bytes(bytes))
}
