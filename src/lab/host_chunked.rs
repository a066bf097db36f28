//! Scans in chunks on CPU devices: [`cuda::ChunkedScan`](crate::cuda::ChunkedScan) without a GPU, by the same plan and pipeline.
//!
//! ```
//! use lookback::element::{Definition, ElementType, Operator};
//! use lookback::lab::host_chunked::HostChunkedScan;
//! use lookback::lab::host_scanner::HostScanner;
//! use lookback::run::AnyScanner;
//! use lookback::out_of_core::{HostArrays, Limits};
//! use lookback::strategy::Mode;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
//! let (x, mut y) = ([3_u32, 1, 4, 1, 5, 9, 2], [0_u32; 7]);
//! let limits = Limits { chunk_elements: Some(2), ..Limits::default() };
//! let mut scan = HostChunkedScan::new(HostScanner::default(), sum, Mode::Inclusive, 7, &limits)?;
//! scan.scan(HostArrays::new().input(&x).output(&mut y))?;
//! assert_eq!(y, [3, 4, 8, 9, 14, 23, 25]);
//! # Ok(())
//! # }
//! ```

use super::cpu_device::HostArray;
use super::device::DeviceError;
use super::host_scanner::HostScanner;
use crate::element::Defined;
use crate::out_of_core::pipeline::{self, Checkpoint, ChunkDevice, Job, Stopped};
use crate::out_of_core::{ChunkPlan, HostArrays, Limits, PlanError};
use crate::strategy::Mode;
use std::io;
use std::sync::{Mutex, PoisonError};

/// See the [module](self).
pub struct HostChunkedScan {
    devices: HostChunks,
    slots: Vec<HostSlot>,
}

struct HostChunks {
    plan: ChunkPlan,
    scanners: Vec<Mutex<HostScanner>>,
}

/// The memory of a chunk, and whose it is.
struct HostSlot {
    device: usize,
    staging: Vec<u8>,
}

impl HostChunkedScan {
    /// Divides the scan of `n` elements, and allocates what it needs. The scanner's memory is the host's, but bounded as the device's
    /// would be.
    ///
    /// # Errors
    /// As [`ChunkPlan::new`].
    pub fn new(scanner: HostScanner, defined: Defined, mode: Mode, n: u64, limits: &Limits) -> Result<Self, PlanError> {
        Self::on(vec![scanner], defined, mode, n, limits)
    }

    /// The same on several devices, each of which takes the next chunk when it has room for one. [`Limits::for_devices`] has enough
    /// chunks under way for all of them.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn on(
        scanners: Vec<HostScanner>,
        defined: Defined,
        mode: Mode,
        n: u64,
        limits: &Limits,
    ) -> Result<Self, PlanError> {
        let plan = ChunkPlan::new(defined, mode, n, limits, scanners.len(), 0)?;
        let staging = || vec![0; plan.host_layout().bytes as usize];
        let slots = plan.devices_of_slots().map(|device| HostSlot { device, staging: staging() }).collect();
        Ok(Self { devices: HostChunks { plan, scanners: scanners.into_iter().map(Mutex::new).collect() }, slots })
    }

    /// How the scan is divided.
    pub const fn plan(&self) -> &ChunkPlan {
        &self.devices.plan
    }

    /// Scans slices.
    ///
    /// # Errors
    /// Arrays that are not those of the definition, and as [`Self::run`].
    pub fn scan(&mut self, arrays: HostArrays<'_>) -> Result<(), Stopped<DeviceError>> {
        let plan = *self.plan();
        pipeline::scan_arrays(&arrays, &plan, |job| self.run(job, |_| Ok(())))
    }

    /// Scans what is left of the arrays; `keep` is told of each checkpoint. Returns the last one.
    ///
    /// # Errors
    /// What cannot be read, scanned, written or kept, with the checkpoint up to which outputs are valid.
    pub fn run(
        &mut self,
        job: Job<'_>,
        mut keep: impl FnMut(&Checkpoint) -> io::Result<()>,
    ) -> Result<Checkpoint, Stopped<DeviceError>> {
        pipeline::run(&self.devices, &mut self.slots, &self.devices.plan, job, &mut keep)
    }
}

impl ChunkDevice for HostChunks {
    type Slot = HostSlot;
    type State = Vec<u8>;
    type Error = DeviceError;

    fn begin(&self, state: Option<&[u8]>) -> Result<Option<Vec<u8>>, DeviceError> {
        Ok(state.map(<[u8]>::to_vec))
    }

    fn staging<'a>(&self, slot: &'a mut HostSlot) -> &'a mut [u8] {
        &mut slot.staging
    }

    fn upload(&self, _slot: &mut HostSlot, _elements: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn scan(&self, slot: &mut HostSlot, elements: u64, before: Option<Vec<u8>>) -> Result<Vec<u8>, DeviceError> {
        let mut scanner = self.scanners[slot.device].lock().unwrap_or_else(PoisonError::into_inner);
        let slot = &mut slot.staging;
        let plan = &self.plan;
        let layout = plan.host_layout();
        let part = |start: u64, bytes: u64| start as usize..(start + bytes) as usize;
        let mut arrays = Vec::new();
        let mut lend = |mut array: HostArray| {
            let address = array.address();
            arrays.push(array);
            address
        };
        let room = |bytes: u64| vec![0; (plan.device_elements(elements) * bytes) as usize];
        let mut inputs = Vec::new();
        let mut outputs = Vec::new();
        let places = layout.inputs.iter().zip(plan.input_bytes());
        if plan.is_in_place() {
            // As on a GPU, where memory counts.
            for (place, bytes) in places {
                let mut contents = room(bytes);
                contents[..(elements * bytes) as usize].copy_from_slice(&slot[part(place.start, elements * bytes)]);
                inputs.push(lend(HostArray::state_to_change(&contents)));
            }
            outputs.clone_from(&inputs);
        } else {
            inputs.extend(
                places.map(|(place, bytes)| lend(HostArray::state(&slot[part(place.start, elements * bytes)]))),
            );
            let stored = plan.output_bytes().into_iter();
            outputs.extend(stored.map(|bytes| lend(HostArray::state_to_write(&room(bytes)))));
        }
        let initial = before.map(|state| lend(HostArray::state(&state)));
        let last = lend(HostArray::state_to_write(&slot[plan.host_state()]));
        let call = plan.call(elements, [&inputs, &outputs], initial, last);
        scanner.run_call(call, plan.mode(), &mut arrays)?;
        let first = if plan.is_in_place() { 0 } else { inputs.len() };
        let stored = &arrays[first..][..outputs.len()];
        for ((array, place), bytes) in stored.iter().zip(&layout.outputs).zip(plan.output_bytes()) {
            let bytes = elements * bytes;
            slot[part(place.start, bytes)].copy_from_slice(&array.contents()[..bytes as usize]);
        }
        let last = arrays.last().map(|array| array.contents().to_vec()).unwrap_or_default();
        slot[plan.host_state()].copy_from_slice(&last);
        Ok(last)
    }

    fn finish(&self, _slot: &mut HostSlot) -> Result<(), DeviceError> {
        Ok(())
    }
}
