//! Points whose arrays are made on the host, by [`Dataset::whole_numbers`], and whose outputs are compared there: those of
//! several arrays, of two types, in another order or in segments. The reference is made once a point.

use crate::cuda::error::CudaError;
use crate::cuda::memory::Buffer;
use crate::lab::arrays::FILLING;
use crate::lab::cuda::harness::{Comparisons, GpuHarness, Slot};
use crate::lab::cuda::inputs::OtherInputs;
use crate::lab::dataset::Dataset;
use crate::lab::measure::point::Point;
use crate::lab::verify::{Verification, verify};
use crate::strategy::call::Prepared;
use crate::strategy::launch::Addresses;
use crate::strategy::plan::ScanRequest;

/// What the copy kernel moves at once.
const WORD_BYTES: usize = 16;

/// The arrays of a point.
pub(super) struct Uploaded {
    dataset: Dataset,
    /// Of the user's first input.
    master: Buffer,
    others: OtherInputs,
    /// Where the user's first input begins above a boundary, in bytes.
    input_offset: u32,
    copied_bytes: u64,
    /// What the copies read and write, which need not be as long as any array of the scan.
    copied: [Buffer; 2],
    /// The output on the host, with room that is kept.
    output: Vec<u8>,
}

impl Uploaded {
    /// Makes the arrays of a point from `seed`; the harness has room for the user's first input, and for the output.
    pub(super) fn new(gpu: &GpuHarness, point: &Point, seed: u64, input_offset: u32) -> Result<Self, CudaError> {
        let dataset = Dataset::whole_numbers(point.workload, point.n, seed);
        let master = gpu.memory.upload(dataset.own_array(), "the input", &gpu.stream)?;
        let others = OtherInputs::upload(gpu, &dataset)?;
        let copied_bytes = point.copied_bytes();
        let allocate = |what| gpu.memory.allocate(copied_bytes, what);
        let copied = [allocate("what is copied")?, allocate("a copy")?];
        let uploaded = Self { dataset, master, others, input_offset, copied_bytes, copied, output: Vec::new() };
        // What is copied is no less random than what is scanned.
        let input_bytes = uploaded.dataset.own_array().len() as u64;
        for start in (0..copied_bytes).step_by(input_bytes.max(1) as usize) {
            let count = input_bytes.min(copied_bytes - start);
            uploaded.copied[0].copy_from(start, &uploaded.master, 0, count, &gpu.stream)?;
        }
        uploaded.place(gpu)?;
        Ok(uploaded)
    }

    /// Writes the inputs where they lie, and waits.
    pub(super) fn place(&self, gpu: &GpuHarness) -> Result<(), CudaError> {
        gpu.input.copy_from(&self.master, &gpu.stream)?;
        self.others.place(&self.dataset, self.input_offset, &gpu.stream)?;
        gpu.finish("placing the inputs")
    }

    /// Where the copies read and write.
    pub(super) fn copied_addresses(&self) -> [u64; 2] {
        self.copied.each_ref().map(Buffer::address)
    }

    /// Where the inputs lie, in the kernels' order.
    pub(super) fn input_addresses(&self, gpu: &GpuHarness) -> Vec<u64> {
        self.others.all_addresses(&self.dataset, self.input_offset, gpu.input.address())
    }

    /// A scan of these arrays: what is planned for them, and where they lie.
    pub(super) fn prepare(
        &self,
        gpu: &GpuHarness,
        request: &ScanRequest,
    ) -> Result<(ScanRequest, Addresses), CudaError> {
        let (input, output) = (gpu.input.address(), gpu.output.address());
        let prepared = self.others.prepare(&self.dataset, request, input, output)?;
        Ok(prepared.map_or_else(|| (*request, Addresses::between(input, output)), Prepared::placed))
    }

    /// Fills what the copies write, in stream order.
    pub(super) fn poison_copy(&self, gpu: &GpuHarness) -> Result<(), CudaError> {
        self.copied[1].fill(0, self.copied_bytes, FILLING, &gpu.stream)
    }

    /// Compares the inputs with what they were and the output's guards with what they were filled with, and after a copy what
    /// it wrote with what it read.
    pub(super) fn compare_arrays(&self, gpu: &GpuHarness, is_copy: bool) -> Result<Comparisons, CudaError> {
        gpu.reset_comparisons()?;
        let workload = self.dataset.workload;
        let elements = (workload.input().bytes(), workload.own_elements(self.dataset.n));
        gpu.compare_with_master(gpu.input.address(), &self.master, elements, Slot::Input)?;
        self.others.compare(gpu, &self.dataset, self.input_offset)?;
        gpu.compare_guards(&gpu.output, [Slot::BeforeOutput, Slot::AfterOutput])?;
        if is_copy {
            let [from, to] = &self.copied;
            let words = (WORD_BYTES, self.copied_bytes / WORD_BYTES as u64);
            gpu.compare_with_master(to.address(), from, words, Slot::Output)?;
        }
        gpu.comparisons()
    }

    /// Compares every element of the output of a scan that was waited for.
    pub(super) fn compare_output(
        &mut self,
        gpu: &GpuHarness,
        request: &ScanRequest,
    ) -> Result<Verification, CudaError> {
        let bytes = self.dataset.workload.output_bytes(self.dataset.n) as usize;
        if self.output.len() != bytes {
            self.output = vec![0; bytes];
        }
        gpu.output.download(0, &mut self.output, &gpu.stream)?;
        Ok(verify(request, &self.dataset, &self.output))
    }

    /// Compares what a reading that was waited for has stored with the sum of the input's words.
    pub(super) fn compare_sum(&self, gpu: &GpuHarness) -> Result<Verification, CudaError> {
        let words = self.dataset.own_array().chunks_exact(size_of::<u32>()).map(bytemuck::pod_read_unaligned::<u32>);
        let expected = words.fold(0, u32::wrapping_add);
        let mut found = [0; size_of::<u32>()];
        gpu.output.download(0, &mut found, &gpu.stream)?;
        let found = u32::from_ne_bytes(found);
        let right = Verification::right(self.n());
        Ok(if found == expected {
            right
        } else {
            let (expected, actual) = (Some(expected.to_string()), Some(found.to_string()));
            Verification { mismatches: 1, first_mismatch: Some(0), expected, actual, ..right }
        })
    }

    /// Elements.
    pub(super) fn n(&self) -> u64 {
        self.dataset.n
    }
}
