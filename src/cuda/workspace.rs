//! Descriptors and scratch memory of the launches of one stream.
//!
//! Descriptors are zeroed once, when they are allocated, and never again by the host: a descriptor's tag
//! names the launch it belongs to (its epoch), and the control block at the head of the same region counts
//! those launches. That is sound as long as every word that a launch reads as a tag was written as a tag
//! under the same control block. So there is one region, with a control block of its own, for each
//! descriptor layout and size of a descriptor; and a region that is too small is replaced by a fresh one, because
//! the split layout places its slots by the capacity.
//!
//! Launches that may overlap in time must not share a region. A [`Workspace`] therefore belongs to one
//! stream: [`super::scanner::Scanner`] keeps one a stream.

use super::error::{Context as _, CudaError};
use super::memory::{Buffer, DeviceMemory, RelaxedCapture};
use crate::abi;
use crate::strategy::launch::{Addresses, CONTROL_BYTES};
use crate::strategy::plan::RegionKey;
use cudarc::driver::CudaStream;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) buffer: Buffer,
    capacity: u64,
}

/// What one stream's launches work in.
#[derive(Debug)]
pub(crate) struct Workspace {
    memory: Arc<DeviceMemory>,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) regions: HashMap<RegionKey, Region>,
    pub(crate) scratch: Option<Buffer>,
    /// `lookback_findings`.
    findings: Option<Buffer>,
}

/// How many descriptors a region of at least `needed` gets: some room to grow without a replacement, and as many as
/// [`RegionKey::capacity`] asks for.
pub(super) fn capacity_for(needed: u64) -> u64 {
    const SMALLEST: u64 = 4096;
    const STEP: u64 = 1 << 16;
    if needed <= 1 << 20 { needed.next_power_of_two().max(SMALLEST) } else { needed.div_ceil(STEP) * STEP }
}

impl Workspace {
    pub(crate) fn new(memory: &Arc<DeviceMemory>, stream: &Arc<CudaStream>) -> Self {
        Self {
            memory: Arc::clone(memory),
            stream: Arc::clone(stream),
            regions: HashMap::new(),
            scratch: None,
            findings: None,
        }
    }

    /// Makes room and says where it is; input and output stay 0. Allocates only where there was less before; then it waits for the
    /// stream's earlier launches, which may still use what is replaced.
    pub(crate) fn reserve(
        &mut self,
        key: RegionKey,
        descriptors: u64,
        scratch_bytes: u64,
    ) -> Result<Addresses, CudaError> {
        let mut addresses = Addresses::default();
        if scratch_bytes > 0 {
            if self.scratch.as_ref().is_none_or(|scratch| scratch.bytes() < scratch_bytes) {
                let replaced = self.scratch.take();
                self.release_later_than_launches(replaced)?;
                self.scratch = Some(self.memory.allocate(scratch_bytes, "temporary arrays")?);
            }
            addresses.scratch = self.scratch.as_ref().map_or(0, Buffer::address);
        }
        if descriptors > 0 {
            if self.regions.get(&key).is_none_or(|region| region.capacity < descriptors) {
                let replaced = self.regions.remove(&key);
                self.release_later_than_launches(replaced)?;
                let capacity = capacity_for(descriptors);
                let bytes = CONTROL_BYTES + capacity * key.descriptor_bytes;
                let buffer = self.memory.allocate_zeroed(bytes, "tile descriptors")?;
                self.regions.insert(key, Region { buffer, capacity });
            }
            if let Some(region) = self.regions.get(&key) {
                addresses.control = region.buffer.address();
                addresses.descriptors = region.buffer.address() + CONTROL_BYTES;
                addresses.capacity = region.capacity;
            }
        }
        Ok(addresses)
    }

    /// Where kernels note what is wrong with numbers that the device alone knows. Allocates it in the first call.
    pub(crate) fn findings(&mut self) -> Result<u64, CudaError> {
        if self.findings.is_none() {
            let bytes = size_of::<abi::lookback_findings>() as u64;
            self.findings = Some(self.memory.allocate_zeroed(bytes, "what kernels find")?);
        }
        Ok(self.findings.as_ref().map_or(0, Buffer::address))
    }

    /// Waits for the stream's launches, and hands out what they noted since the last call.
    pub(crate) fn take_findings(&mut self) -> Result<abi::lookback_findings, CudaError> {
        self.wait()?;
        let [segment, count] = self.findings.as_ref().map_or(Ok([0; 2]), Buffer::take_words)?;
        Ok(abi::lookback_findings { segment, count })
    }

    /// Bytes of all that is allocated.
    pub(crate) fn bytes(&self) -> u64 {
        let buffers = self.regions.values().map(|region| &region.buffer).chain(&self.scratch).chain(&self.findings);
        buffers.map(Buffer::bytes).sum()
    }

    /// Drops what is replaced once no launch uses it. If there is nothing, nobody waits: a stream that is captured for the
    /// first time could not be waited for.
    fn release_later_than_launches<T>(&self, replaced: Option<T>) -> Result<(), CudaError> {
        replaced.map_or(Ok(()), |_replaced| self.wait())
    }

    fn wait(&self) -> Result<(), CudaError> {
        let _relaxed = RelaxedCapture::begin(self.memory.context())?;
        self.stream.synchronize().during(|| String::from("waiting for earlier scans"))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // Launches may still use the buffers, which are freed after this. An error means that there is
        // no such launch any more: the context is lost, or the stream is.
        if !self.memory.is_abandoned() {
            let _ = self.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::capacity_for;

    #[test]
    fn a_region_has_room_for_what_was_asked_and_keeps_slots_aligned() {
        for needed in [1, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 25) + 7] {
            let capacity = capacity_for(needed);
            assert!(capacity >= needed && capacity.is_multiple_of(4) && capacity <= 2 * needed.max(4096), "{needed}");
        }
    }
}
