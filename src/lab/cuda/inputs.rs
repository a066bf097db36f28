//! The inputs of a dataset on the device beside the user's first: what tells segments, and the addends of a recurrence or
//! what goes with the keys of a sort.

use super::harness::{GpuHarness, Slot};
use crate::cuda::error::CudaError;
use crate::cuda::memory::Buffer;
use crate::element::ElementType;
use crate::lab::dataset::Dataset;
use crate::strategy::call::Prepared;
use crate::strategy::plan::ScanRequest;
use cudarc::driver::CudaStream;

/// Bytes that another input may lie above the begin of its memory.
const OFFSET_ROOM: u64 = ScanRequest::OFFSETS as u64;

/// Those of one dataset, in the kernels' order. The user's first lies where a scan in place replaces it.
pub(super) struct OtherInputs(Vec<OtherInput>);

struct OtherInput {
    element: ElementType,
    elements: u64,
    /// What kernels are given, with room for an offset.
    array: Buffer,
    /// What it holds as long as nobody writes there.
    master: Buffer,
}

impl OtherInputs {
    pub(super) fn upload(gpu: &GpuHarness, dataset: &Dataset) -> Result<Self, CudaError> {
        let own = dataset.workload.own_place();
        let others = dataset.inputs().enumerate().filter(|(place, _)| *place != own);
        let upload = |(_, (element, contents)): (_, (ElementType, &[u8]))| {
            let bytes = contents.len() as u64;
            let master = gpu.memory.upload(contents, "an input", &gpu.stream)?;
            let array = gpu.memory.allocate(bytes + OFFSET_ROOM, "an input")?;
            Ok(OtherInput { element, elements: bytes / element.bytes() as u64, array, master })
        };
        Ok(Self(others.map(upload).collect::<Result<_, CudaError>>()?))
    }

    /// Where they lie if the user's first begins `offset` bytes above a boundary: as many elements above one.
    fn addresses(&self, dataset: &Dataset, offset: u32) -> Vec<u64> {
        let mut offsets: Vec<u32> = dataset.workload.input_offsets(dataset.n, offset).collect();
        offsets.remove(dataset.workload.own_place());
        self.0.iter().zip(offsets).map(|(other, offset)| other.array.address() + u64::from(offset)).collect()
    }

    /// Where all inputs lie in the kernels' order; `input` is the address of the user's first.
    pub(super) fn all_addresses(&self, dataset: &Dataset, offset: u32, input: u64) -> Vec<u64> {
        let mut inputs = self.addresses(dataset, offset);
        inputs.insert(dataset.workload.own_place(), input);
        inputs
    }

    /// The run over all inputs, or over one in reverse or in segments; none where the kernels are given one array of numbers,
    /// or there are no elements.
    pub(super) fn prepare(
        &self,
        dataset: &Dataset,
        request: &ScanRequest,
        input: u64,
        output: u64,
    ) -> Result<Option<Prepared>, CudaError> {
        let inputs = self.all_addresses(dataset, request.input_offset, input);
        Ok(dataset.workload.prepare(request, &inputs, output)?)
    }

    /// Writes what they hold where they lie, in stream order.
    pub(super) fn place(&self, dataset: &Dataset, offset: u32, stream: &CudaStream) -> Result<(), CudaError> {
        for (other, address) in self.0.iter().zip(self.addresses(dataset, offset)) {
            let OtherInput { element, elements, array, master } = other;
            array.copy_from(address - array.address(), master, 0, elements * element.bytes() as u64, stream)?;
        }
        Ok(())
    }

    /// Compares them with what they held: what differs counts as the input's.
    pub(super) fn compare(&self, gpu: &GpuHarness, dataset: &Dataset, offset: u32) -> Result<(), CudaError> {
        for (other, address) in self.0.iter().zip(self.addresses(dataset, offset)) {
            let elements = (other.element.bytes(), other.elements);
            gpu.compare_with_master(address, &other.master, elements, Slot::Input)?;
        }
        Ok(())
    }
}
