//! Inputs made on the device, and the verification of what subjects make of them and of uploaded arrays.

use super::subjects::{PreparedSubject, Work};
use super::uploaded::Uploaded;
use crate::cuda::error::CudaError;
use crate::cuda::memory::Buffer;
use crate::element::{Distribution, Instance};
use crate::lab::cuda::harness::{Comparisons, GpuHarness, Slot};
use crate::lab::dataset::two_sum;
use crate::lab::measure::input;
use crate::lab::measure::run::NotMeasured;
use crate::lab::verify::{Sum, Verification, error_factor};

/// Elements of an input that are compared with the host's generator before anything is measured on it.
const CHECKED_ELEMENTS: u64 = 64;

/// Bytes of a `precise_sum` in `cuda/measure.cu`: high, low, magnitude.
const SUM_BYTES: u64 = 24;

/// The input of a point: made where it is wanted, from its seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input {
    pub(super) instance: Instance,
    pub(super) n: u64,
    pub(super) seed: u64,
}

/// Float sums: sums of everything before each chunk.
pub(super) struct ChunkPrefixes {
    sums: Buffer,
    chunk_length: u64,
}

impl Input {
    /// The distribution that is measured.
    fn distribution(&self) -> Distribution {
        self.instance.operator().input()
    }

    /// Makes the input in place and compares its first and last elements with the host's generator: a wrong input would be
    /// verified by the same wrong generator and look right.
    pub(super) fn make(&self, gpu: &GpuHarness) -> Result<(), CudaError> {
        self.generate(gpu, self.distribution())?;
        gpu.finish("making the input")?;
        let element = self.instance.element();
        let bytes = element.bytes() as u64;
        let count = CHECKED_ELEMENTS.min(self.n);
        for first in [0, self.n - count] {
            let mut found = vec![0; (count * bytes) as usize];
            gpu.input.download(first * bytes, &mut found, &gpu.stream)?;
            let expected: Vec<u8> = (first..first + count)
                .flat_map(|index| input::generate(element, self.distribution(), self.seed, self.n, index))
                .collect();
            if found != expected {
                let action = format!("making {} elements of {element}", self.n);
                let message =
                    format!("elements {first} to {} are not those of the host's generator", first + count - 1);
                return Err(CudaError::unexpected(action, "wrong input", message));
            }
        }
        Ok(())
    }

    fn generate(&self, gpu: &GpuHarness, distribution: Distribution) -> Result<(), CudaError> {
        let words = [gpu.input.address(), self.n, self.seed, u64::from(distribution as u32)];
        gpu.launch_over(&format!("generate_{}", self.instance.element()), self.n, &words)
    }

    /// Sums of everything before each chunk of a float sum's input: one thread a chunk, then the host from
    /// front to back. `None` for exact instances.
    pub(super) fn chunk_prefixes(&self, gpu: &GpuHarness) -> Result<Option<ChunkPrefixes>, CudaError> {
        if !self.instance.is_rounded() {
            return Ok(None);
        }
        // Enough chunks to fill the GPU, and long enough that their sums are a small array.
        let chunk_length = (self.n >> 18).clamp(64, 4096);
        let chunks = self.n.div_ceil(chunk_length);
        let sums = gpu.memory.allocate(chunks * SUM_BYTES, "sums of chunks")?;
        let name = format!("sum_chunks_{}", self.instance.element());
        let distribution = u64::from(self.distribution() as u32);
        gpu.launch_over(&name, chunks, &[sums.address(), self.n, self.seed, distribution, chunk_length])?;
        gpu.finish("summing chunks")?;
        let mut bytes = vec![0; (chunks * SUM_BYTES) as usize];
        sums.download(0, &mut bytes, &gpu.stream)?;
        let mut before = PreciseSum::default();
        for sum in bytes.chunks_exact_mut(SUM_BYTES as usize) {
            let total: [f64; 3] = bytemuck::pod_read_unaligned(sum);
            sum.copy_from_slice(bytemuck::bytes_of(&[before.high, before.low, before.magnitude]));
            before.add(PreciseSum { high: total[0], low: total[1], magnitude: total[2] });
        }
        sums.upload(0, &bytes, &gpu.stream)?;
        Ok(Some(ChunkPrefixes { sums, chunk_length }))
    }

    /// Runs a subject over poisoned memory and compares all that it may have written. The inner error says why it could
    /// not run. A bound is run and not compared: its result is wrong by design.
    pub(super) fn verify(
        &self,
        gpu: &GpuHarness,
        subject: &mut PreparedSubject,
        prefixes: Option<&ChunkPrefixes>,
    ) -> Result<Result<Verification, NotMeasured>, CudaError> {
        if subject.is_bound || matches!(subject.work, Work::Spin { .. } | Work::Nothing) {
            return Ok(run_once(gpu, subject)?.map(|()| Verification::right(0)));
        }
        let mut verification = Verification::right(self.n);
        if subject.mode.is_some() && prefixes.is_some() {
            // Whole numbers first: their sums are exact in any order, so nothing hides in a rounding bound.
            self.generate(gpu, Distribution::Walk)?;
            let ran = run_once(gpu, subject)?;
            if ran.is_ok() {
                self.judge(gpu, subject, Distribution::Walk, None, &mut verification)?;
            }
            self.generate(gpu, self.distribution())?;
            if let Err(reason) = ran {
                return Ok(Err(reason));
            }
        }
        if let Err(reason) = run_once(gpu, subject)? {
            return Ok(Err(reason));
        }
        let found = self.judge(gpu, subject, self.distribution(), prefixes, &mut verification)?;
        if found.of(Slot::Input).mismatches > 0 {
            // The other subjects must not pay for it.
            self.generate(gpu, self.distribution())?;
            gpu.finish("making the input anew")?;
        }
        Ok(Ok(verification))
    }

    /// Compares a run that was waited for, and counts what was found.
    fn judge(
        &self,
        gpu: &GpuHarness,
        subject: &PreparedSubject,
        distribution: Distribution,
        prefixes: Option<&ChunkPrefixes>,
        verification: &mut Verification,
    ) -> Result<Comparisons, CudaError> {
        let found = self.compare(gpu, subject, distribution, prefixes)?;
        add(verification, &found);
        let output = found.of(Slot::Output);
        if output.mismatches > 0 && verification.first_mismatch == Some(output.first) {
            let bytes = self.instance.element().bytes();
            // The element and the one before it, which is right.
            let before = output.first.min(1);
            let mut found = vec![0; (1 + before) as usize * bytes];
            gpu.output.download((output.first - before) * bytes as u64, &mut found, &gpu.stream)?;
            let (previous, actual) = found.split_at(before as usize * bytes);
            let expected = self.expected(gpu, subject, distribution, prefixes, (output.first, previous))?;
            verification.expected = Some(expected);
            verification.actual = Some(self.instance.text(actual));
        }
        Ok(found)
    }

    /// What an element of the output must be, in words. `previous` is the output before it, if there is one.
    fn expected(
        &self,
        gpu: &GpuHarness,
        subject: &PreparedSubject,
        distribution: Distribution,
        prefixes: Option<&ChunkPrefixes>,
        (index, previous): (u64, &[u8]),
    ) -> Result<String, CudaError> {
        let generate = |index| input::generate(self.instance.element(), distribution, self.seed, self.n, index);
        let Some(mode) = subject.mode else { return Ok(self.instance.text(&generate(index))) };
        let Some(end) = (index + 1).checked_sub(mode.lag()).filter(|&end| end > 0) else {
            return Ok(self.instance.text(&self.instance.identity_bytes()));
        };
        let Some(ChunkPrefixes { sums, chunk_length }) = prefixes else {
            return Ok(self.instance.text(&match previous {
                [] => generate(0),
                _ => self.instance.combine(previous, &generate(end - 1)),
            }));
        };
        // As `check_rounded` walks the chunk of this element.
        let chunk = index / chunk_length;
        let mut bytes = [0; SUM_BYTES as usize];
        sums.download(chunk * SUM_BYTES, &mut bytes, &gpu.stream)?;
        let [high, low, magnitude]: [f64; 3] = bytemuck::pod_read_unaligned(&bytes);
        let mut sum = PreciseSum { high, low, magnitude };
        let read = self.instance.element().float().map_or((|_| 0.0) as fn(&[u8]) -> f64, |float| float.read);
        for index in chunk * chunk_length..end {
            let value = read(&generate(index));
            sum.add(PreciseSum { high: value, low: 0.0, magnitude: value.abs() });
        }
        let bound = subject.request.as_ref().map_or(0.0, error_factor) * sum.magnitude;
        Ok(Sum { high: sum.high, low: sum.low, bound }.text())
    }

    /// Compares the output, the input and the guards of a run that was waited for.
    fn compare(
        &self,
        gpu: &GpuHarness,
        subject: &PreparedSubject,
        distribution: Distribution,
        prefixes: Option<&ChunkPrefixes>,
    ) -> Result<Comparisons, CudaError> {
        let (element, n, seed) = (self.instance.element(), self.n, self.seed);
        gpu.reset_comparisons()?;
        let (output, result) = (gpu.output.address(), gpu.slot(Slot::Output));
        let made = u64::from(distribution as u32);
        let copy = format!("check_copy_{element}");
        match (subject.mode, prefixes) {
            (None, _) => gpu.launch_over(&copy, n, &[output, n, seed, made, result])?,
            (Some(mode), None) => {
                let mut identity = [0; 8];
                let bytes = self.instance.identity_bytes();
                identity[..bytes.len()].copy_from_slice(&bytes);
                let words = [output, n, seed, made, mode.lag(), u64::from_le_bytes(identity), result];
                gpu.launch_over(&format!("check_exact_{}", self.instance.identifier()), n, &words)?;
            }
            (Some(mode), Some(ChunkPrefixes { sums, chunk_length })) => {
                let factor = subject.request.as_ref().map_or(0.0, error_factor).to_bits();
                let words = [output, n, seed, made, *chunk_length, sums.address(), mode.lag(), factor, result];
                gpu.launch_over(&format!("check_rounded_{element}"), n.div_ceil(*chunk_length), &words)?;
            }
        }
        gpu.launch_over(&copy, n, &[gpu.input.address(), n, seed, made, gpu.slot(Slot::Input)])?;
        gpu.compare_guards(&gpu.output, [Slot::BeforeOutput, Slot::AfterOutput])?;
        gpu.comparisons()
    }
}

impl Uploaded {
    /// Runs a subject over poisoned memory and compares all that it may have written. The inner error says why it could not
    /// run.
    pub(super) fn verify(
        &mut self,
        gpu: &GpuHarness,
        subject: &mut PreparedSubject,
    ) -> Result<Result<Verification, NotMeasured>, CudaError> {
        self.poison_copy(gpu)?;
        if let Err(reason) = run_once(gpu, subject)? {
            return Ok(Err(reason));
        }
        if matches!(subject.work, Work::Spin { .. } | Work::Nothing) {
            return Ok(Ok(Verification::right(0)));
        }
        let is_copy = matches!(subject.work, Work::Memcpy(_) | Work::Copy { .. });
        let found = self.compare_arrays(gpu, is_copy)?;
        let mut verification = match &subject.request {
            Some(request) => self.compare_output(gpu, request)?,
            None if is_copy => Verification::right(self.n()),
            None => self.compare_sum(gpu)?,
        };
        add(&mut verification, &found);
        if found.of(Slot::Input).mismatches > 0 {
            // The other subjects must not pay for it.
            self.place(gpu)?;
        }
        Ok(Ok(verification))
    }
}

/// Poisons what a run writes, runs, waits.
fn run_once(gpu: &GpuHarness, subject: &mut PreparedSubject) -> Result<Result<(), NotMeasured>, CudaError> {
    gpu.output.fill(&gpu.stream)?;
    gpu.workspace.poison_scratch()?;
    if let Err(error) = subject.enqueue(gpu) {
        // A launch that the driver refuses has started nothing. If it was more than that, waiting says so.
        gpu.finish("a launch that was refused")?;
        return Ok(Err(NotMeasured::NotLaunchable(error.to_string())));
    }
    gpu.finish(&subject.describe())?;
    Ok(Ok(()))
}

/// Counts what was found: a changed input or guard is as wrong as a wrong element.
fn add(verification: &mut Verification, found: &Comparisons) {
    verification.mismatches += found.0.iter().map(|found| found.mismatches).sum::<u64>();
    let output = found.of(Slot::Output);
    if output.mismatches > 0 {
        let first = verification.first_mismatch.map_or(output.first, |first| first.min(output.first));
        verification.first_mismatch = Some(first);
    }
}

/// A sum to about 106 bits, and the sum of |x|: `precise_sum` in `cuda/measure.cu`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct PreciseSum {
    high: f64,
    low: f64,
    magnitude: f64,
}

impl PreciseSum {
    fn add(&mut self, other: Self) {
        let (sum, error) = two_sum(self.high, other.high);
        (self.high, self.low) = two_sum(sum, error + self.low + other.low);
        self.magnitude += other.magnitude;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::cuda::harness::Found;

    #[test]
    fn sums_of_chunks_keep_what_a_double_loses() {
        let mut sum = PreciseSum::default();
        for value in [1e16, 1.0, 1.0, -1e16] {
            sum.add(PreciseSum { high: value, low: 0.0, magnitude: value.abs() });
        }
        assert_eq!(sum.high + sum.low, 2.0);
        assert_eq!(sum.magnitude, 2e16 + 2.0);
    }

    #[test]
    fn whatever_changed_counts_and_the_first_wrong_element_is_named() {
        let mut verification = Verification::right(10);
        let mut found = Comparisons([Found { mismatches: 0, first: u64::MAX }; 6]);
        add(&mut verification, &found);
        assert!(verification.passed() && verification.first_mismatch.is_none());
        found.0[Slot::AfterOutput as usize].mismatches = 1;
        add(&mut verification, &found);
        assert!(!verification.passed() && verification.first_mismatch.is_none());
        found.0[Slot::Output as usize] = Found { mismatches: 2, first: 7 };
        add(&mut verification, &found);
        assert_eq!(verification.first_mismatch, Some(7));
    }
}
