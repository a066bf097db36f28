//! The GPU behind [`crate::lab::measure`]: makes inputs in place, verifies on the device, and takes samples. Scans of several
//! arrays, of two types, in another order or in segments are made on the host and verified there (`uploaded`).
//!
//! How a sample is taken, per figure; everything stands on one stream:
//!
//! ```text
//! cold     hold · clock probe · overwrite L2 · event · run · event · clock probe      then release, wait
//! stream          clock probe ·                event · run … run · event · clock probe     then wait
//! graph    hold · clock probe ·                event · graph of runs · event · clock probe then release, wait
//! behind   as graph, of a foreign kernel before each run
//! latency         clock probe, wait;  host clock · run · wait · host clock;  clock probe, wait
//! call            clock probe, wait;  host clock · call … call · wait · host clock;  clock probe, wait
//! ```
//!
//! `hold` is a kernel that waits for the host's word, so that everything behind it is queued before the first
//! event: launch latency stays outside. It gives up after a limit of its own, so a host that dies, a driver
//! that will not queue behind a waiting kernel, or a subject that waits for the stream can never hang the
//! GPU; a cold sample that was released so is late and does not count. Subjects that wait inside the call
//! are not held.
//!
//! All scans of a point read the same inputs and write one output, and all launches share one workspace: on one
//! stream they run one after the other, which is what a workspace asks for (`crate::cuda::workspace`).

mod calls;
mod machine;
mod signals;
mod subjects;
mod timer;
mod uploaded;
mod verification;

use super::harness::{GpuHarness, on_all_cores};
use crate::cuda::compile::{Compiler, KernelResources, Variant};
use crate::cuda::error::CudaError;
use crate::cuda::launch::KernelSet;
use crate::lab::dataset::Dataset;
use crate::lab::device::DeviceError;
use crate::lab::measure::environment::{self, Machine};
use crate::lab::measure::point::{Point, Subject};
use crate::lab::measure::run::{Laboratory, NotMeasured, OpenedPoint};
use crate::lab::measure::sampling::{Figure, Readiness, Sample, Sampler};
use crate::lab::peers;
use crate::lab::verify::Verification;
use crate::strategy::plan::{KernelKey, Plan, ScanRequest};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use subjects::{Preparation, PreparedSubject, Work, request};
use timer::Timer;
use uploaded::Uploaded;
use verification::{ChunkPrefixes, Input};

/// The most kernels in one graph.
const GRAPH_KERNELS: u64 = 2048;
/// The most runs in one sample.
const SAMPLE_RUNS: u32 = 1024;

/// The point whose subjects are ready.
struct OpenPoint {
    // Before what they are bound to.
    subjects: Vec<Option<PreparedSubject>>,
    arrays: Arrays,
}

/// The arrays of a point.
enum Arrays {
    /// Of a flat scan of one type: made and verified on the device, whatever their size.
    Made { input: Input, chunk_prefixes: Option<ChunkPrefixes> },
    /// Of every other scan.
    Uploaded(Box<Uploaded>),
}

/// One GPU that points are measured on.
pub struct GpuLaboratory {
    // In the order in which they have to go: graphs and prepared work, then what they use.
    open: Option<OpenPoint>,
    timer: Timer,
    resources: HashMap<KernelKey, KernelResources>,
    /// The kernels without their waiting.
    bounds: KernelSet,
    machine: Machine,
    identity: [u8; 16],
    opened_at: Instant,
}

impl Drop for GpuLaboratory {
    fn drop(&mut self) {
        if self.timer.gpu.memory.is_abandoned() {
            self.bounds.never_unload();
            self.timer.never_close();
            std::mem::forget(self.open.take());
        }
    }
}

impl GpuLaboratory {
    /// Opens the GPU with this number and finds the compiler.
    ///
    /// # Errors
    /// No driver, no such device, no compiler: the error says what was looked for and what to do.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        let gpu = GpuHarness::open(ordinal, &["measure.cu", "copies.cu", "verify.cu"])?;
        let bounds = KernelSet::new(gpu.context(), Compiler::new()?, Variant::without_waiting)?;
        let identity = machine::identity(&gpu)?;
        let machine = machine::machine(&gpu, identity)?;
        let timer = Timer::new(gpu, machine.l2_bytes)?;
        let (resources, opened_at) = (HashMap::new(), Instant::now());
        Ok(Self { open: None, timer, resources, bounds, machine, identity, opened_at })
    }

    /// Time of `runs` runs of a subject of the open point, launched one after the other, in nanoseconds. For
    /// benchmarks that count runs themselves.
    ///
    /// # Errors
    /// When the device failed.
    pub fn time_runs(&mut self, entry: usize, runs: u64) -> Result<f64, DeviceError> {
        let mut total = 0.0;
        let mut left = runs;
        while left > 0 {
            let part = left.min(u64::from(SAMPLE_RUNS)) as u32;
            total += self.sample(entry, Figure::Stream, part)?.nanoseconds * f64::from(part);
            left -= u64::from(part);
        }
        Ok(total)
    }

    fn device_error(&self, error: CudaError) -> DeviceError {
        self.timer.gpu.device_error(error)
    }

    fn subject(&self, entry: usize) -> Option<&PreparedSubject> {
        self.open.as_ref()?.subjects.get(entry)?.as_ref()
    }

    /// Makes the arrays of a point; the inner error says why there is no room.
    fn arrays(&mut self, point: &Point, seed: u64) -> Result<Result<Arrays, String>, CudaError> {
        let gpu = &mut self.timer.gpu;
        let [input_offset, output_offset] = point.offsets.bytes(point.workload).map(u64::from);
        let output_bytes = point.workload.output_bytes(point.n);
        let room = gpu.make_room((point.input_bytes(), input_offset), Some((output_bytes, output_offset)));
        let arrays = room.and_then(|()| {
            if point.workload.is_plain() {
                let input = Input { instance: point.workload.instance(), n: point.n, seed };
                input.make(gpu)?;
                return Ok(Arrays::Made { input, chunk_prefixes: input.chunk_prefixes(gpu)? });
            }
            let uploaded = Uploaded::new(gpu, point, seed, input_offset as u32 % ScanRequest::OFFSETS)?;
            Ok(Arrays::Uploaded(Box::new(uploaded)))
        });
        match arrays {
            Err(error @ CudaError::OutOfMemory { .. }) => Ok(Err(error.to_string())),
            arrays => Ok(Ok(arrays?)),
        }
    }

    fn open_point(&mut self, point: &Point, seed: u64) -> Result<OpenedPoint, CudaError> {
        self.timer.gpu.bind()?;
        self.open = None;
        if !point.workload.is_plain()
            && let Err(error) = Dataset::fits(point.workload, point.n)
        {
            return Ok(OpenedPoint::DoesNotFit(error.to_string()));
        }
        let arrays = match self.arrays(point, seed)? {
            Ok(arrays) => arrays,
            Err(why) => return Ok(OpenedPoint::DoesNotFit(why)),
        };
        let uploaded = match &arrays {
            Arrays::Made { .. } => None,
            Arrays::Uploaded(uploaded) => Some(&**uploaded),
        };
        let gpu = &self.timer.gpu;
        let sentinel = self.timer.sentinel_address();
        let preparation = Preparation { gpu, bounds: &self.bounds, resources: &self.resources, uploaded, sentinel };
        let mut prepared: Vec<Result<PreparedSubject, NotMeasured>> =
            point.entries.iter().map(|entry| preparation.subject(point, &entry.subject)).collect();
        let gpu = &mut self.timer.gpu;
        // Each pass may replace memory that an earlier subject was bound to; from the one on that replaces
        // nothing, every address stands. A pass that drops a subject for want of memory may shrink it again.
        for _ in 0..3 {
            for subject in &mut prepared {
                let Ok(PreparedSubject { work: Work::Scan { scan, places }, .. }) = subject else { continue };
                match scan.bind(**places, &mut gpu.workspace) {
                    Err(error @ CudaError::OutOfMemory { .. }) => {
                        *subject = Err(NotMeasured::NotLaunchable(error.to_string()));
                    }
                    bound => bound?,
                }
            }
        }
        let answers = prepared
            .iter()
            .map(|subject| subject.as_ref().map(|subject| subject.facts).map_err(NotMeasured::clone))
            .collect();
        let subjects = prepared.into_iter().map(Result::ok).collect();
        self.open = Some(OpenPoint { subjects, arrays });
        Ok(OpenedPoint::Ready(answers))
    }
}

impl Sampler for GpuLaboratory {
    type Error = DeviceError;

    fn maximum_runs(&self, subject: usize, figure: Figure) -> u32 {
        let launches = self.subject(subject).map_or(1, PreparedSubject::launches);
        match figure {
            Figure::Cold | Figure::Latency => 1,
            Figure::Stream | Figure::Call | Figure::UntrackedCall => SAMPLE_RUNS,
            Figure::Graph | Figure::Behind => {
                let launches = launches + u64::from(figure == Figure::Behind);
                (GRAPH_KERNELS / launches).clamp(1, u64::from(SAMPLE_RUNS)) as u32
            }
        }
    }

    fn prepare(&mut self, subject: usize, figure: Figure, runs: u32) -> Result<Readiness, DeviceError> {
        if !figure.is_replayed() && !figure.is_of_calls() {
            return Ok(Readiness::Ready);
        }
        let Some(open) = &mut self.open else { return Err(DeviceError::NoDataset) };
        let Some(subject) = open.subjects.get_mut(subject).and_then(Option::as_mut) else {
            return Ok(Readiness::Unavailable(String::from("it was not prepared")));
        };
        let ready = match figure.is_of_calls() {
            true => self.timer.prepare_calls(subject, figure),
            false => self.timer.capture(subject, figure, runs),
        };
        ready.map_err(|error| self.device_error(error))
    }

    fn sample(&mut self, subject: usize, figure: Figure, runs: u32) -> Result<Sample, DeviceError> {
        let Some(open) = &mut self.open else { return Err(DeviceError::NoDataset) };
        let sampled = match open.subjects.get_mut(subject).and_then(Option::as_mut) {
            Some(subject) => self.timer.sample(subject, figure, runs),
            None => {
                let action = format!("sampling subject {subject}");
                Err(CudaError::unexpected(action, "not prepared", "its point was opened without it"))
            }
        };
        sampled.map_err(|error| self.device_error(error))
    }

    fn now(&self) -> Duration {
        self.opened_at.elapsed()
    }

    fn resolution_nanoseconds(&self, figure: Figure) -> f64 {
        /// Times between two events are multiples of this on an H100 and an H200.
        const EVENT_STEP_NS: f64 = 32.0;
        if figure.is_by_host() { 0.0 } else { EVENT_STEP_NS }
    }
}

impl Laboratory for GpuLaboratory {
    fn machine(&self) -> Machine {
        self.machine.clone()
    }

    fn peers(&self) -> Vec<String> {
        peers::names()
    }

    fn compile_ahead(&mut self, points: &[Point]) {
        let mut wanted: HashSet<(KernelKey, bool)> = HashSet::new();
        for (point, entry) in points.iter().flat_map(|point| point.entries.iter().map(move |entry| (point, entry))) {
            let Some((strategy, mode, config)) = entry.subject.scan() else { continue };
            let is_bound = matches!(entry.subject, Subject::Bound { .. });
            let Ok(plan) = Plan::new(&request(point, strategy, mode, config)) else { continue };
            wanted.extend(plan.steps.iter().map(|step| (step.key(), is_bound)));
        }
        let (kernels, bounds) = (&self.timer.gpu.kernels, &self.bounds);
        let compile = |&(key, is_bound): &(KernelKey, bool)| {
            // What does not compile or load says so again when its point is opened.
            if is_bound {
                let _ = bounds.kernel(key);
                return Ok(None);
            }
            let (kernel, problem, config) = key;
            let compiled = kernels.compiler().scan_kernel(kernel, problem, &config, kernels.architecture());
            let Ok(compiled) = compiled else { return Ok(None) };
            let _ = kernels.kernel(key);
            Ok(Some((key, compiled.resources)))
        };
        let wanted: Vec<_> = wanted.into_iter().collect();
        self.resources.extend(on_all_cores(&wanted, compile).into_iter().flatten().flatten());
    }

    fn warm_up(&mut self, duration: Duration) -> Result<(), DeviceError> {
        let start = Instant::now();
        let busy = || {
            self.timer.gpu.bind()?;
            while start.elapsed() < duration {
                for value in 0..16 {
                    self.timer.overwrite_l2(value)?;
                }
                self.timer.gpu.finish("warming up")?;
            }
            Ok(())
        };
        busy().map_err(|error| self.device_error(error))
    }

    fn open(&mut self, point: &Point, seed: u64) -> Result<OpenedPoint, DeviceError> {
        self.open_point(point, seed).map_err(|error| self.device_error(error))
    }

    fn verify(&mut self, entry: usize) -> Result<Result<Verification, NotMeasured>, DeviceError> {
        let Some(open) = &mut self.open else { return Err(DeviceError::NoDataset) };
        let Some(subject) = open.subjects.get_mut(entry).and_then(Option::as_mut) else {
            return Ok(Err(NotMeasured::Unsupported(String::from("it was not prepared"))));
        };
        let gpu = &self.timer.gpu;
        let verified = gpu.bind().and_then(|()| match &mut open.arrays {
            Arrays::Made { input, chunk_prefixes } => input.verify(gpu, subject, chunk_prefixes.as_ref()),
            Arrays::Uploaded(uploaded) => uploaded.verify(gpu, subject),
        });
        verified.map_err(|error| self.device_error(error))
    }

    fn sampler(&mut self) -> &mut dyn Sampler<Error = DeviceError> {
        self
    }

    fn close(&mut self) {
        self.open = None;
    }

    fn temperature_celsius(&self) -> Option<u32> {
        environment::ask_nvml(self.identity)?.temperature_celsius
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_gpu_gets_a_typed_error() {
        if let Err(error) = GpuLaboratory::open(usize::MAX) {
            assert!(error.is_absence(), "{error}");
        }
    }
}
