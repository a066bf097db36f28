//! The timer: queues a sample on the stream behind a held kernel, and reads clocks and events.

use super::calls::{Called, Program};
use super::signals::Signals;
use super::subjects::{PreparedSubject, Work};
use crate::cuda::error::CudaError;
use crate::cuda::memory::Buffer;
use crate::lab::cuda::graph::Graph;
use crate::lab::cuda::harness::{GpuHarness, GuardedBuffer, THREADS, TIME_LIMIT, elapsed_ns};
use crate::lab::measure::sampling::{Figure, Readiness, Sample};
use crate::strategy::tuning::Tuning;
use cudarc::driver::{CudaEvent, CudaFunction, CudaStream, result, sys};
use std::time::{Duration, Instant};

/// How long a clock probe lasts.
const PROBE_NS: u64 = 20_000;
/// How long `hold` waits for the host: queueing a cold sample takes some 20 µs.
const HOLD_LIMIT_NS: u64 = 50_000_000;
/// Likewise before a graph, where a driver that will not queue a long graph behind a waiting kernel would make
/// every sample wait for the limit.
const GRAPH_HOLD_LIMIT_NS: u64 = 2_000_000;
/// How long the foreign kernel runs, on every multiprocessor: a launch of what is behind it is ready before it ends.
const FOREIGN_NS: u64 = 3000;

/// A GPU with what every sample needs.
pub(super) struct Timer {
    // Before the memory of the timer's own kernels: its drop waits for them.
    pub(super) gpu: GpuHarness,
    overwritten: Buffer,
    signals: Signals,
    hold: CudaFunction,
    clock_probe: CudaFunction,
    overwrite: CudaFunction,
    foreign: CudaFunction,
    /// The programs whose calls are measured, by whether events are tracked: opened for the first of them.
    programs: [Option<Program>; 2],
    start: CudaEvent,
    end: CudaEvent,
}

impl Timer {
    /// `l2_bytes` is the size of the L2 cache, in bytes.
    pub(super) fn new(gpu: GpuHarness, l2_bytes: u64) -> Result<Self, CudaError> {
        // More than twice the L2, so that whatever share of it the writes go past, nothing else stays.
        let overwritten_bytes = (l2_bytes * 5 / 2).next_multiple_of(1 << 20).max(16 << 20);
        let mut timer = Self {
            overwritten: gpu.memory.allocate(overwritten_bytes, "what overwrites the L2")?,
            signals: Signals::new(&gpu.memory)?,
            hold: gpu.tool("hold")?,
            clock_probe: gpu.tool("clock_probe")?,
            overwrite: gpu.tool("overwrite")?,
            foreign: gpu.tool("spin")?,
            programs: [None, None],
            start: gpu.event()?,
            end: gpu.event()?,
            gpu,
        };
        timer.run_tools_once()?;
        Ok(timer)
    }

    /// The first launch of a kernel may load it, which may wait for the device: not behind a kernel that waits
    /// for the host.
    fn run_tools_once(&mut self) -> Result<(), CudaError> {
        self.probe_clock(0)?;
        self.probe_clock(1)?;
        self.overwrite_l2(0)?;
        self.run_foreign_kernel()?;
        let ticket = self.signals.next_ticket();
        self.signals.release(ticket);
        self.hold(ticket, HOLD_LIMIT_NS)?;
        self.gpu.finish("the timer's own kernels")
    }

    /// Leaves the programs open: what their streams wait for does not end.
    pub(super) fn never_close(&mut self) {
        std::mem::forget(std::mem::take(&mut self.programs));
    }

    fn run_foreign_kernel(&self) -> Result<(), CudaError> {
        self.gpu.launch(&self.foreign, self.gpu.gpu().multiprocessors, 32, &[FOREIGN_NS])
    }

    /// Captures `runs` runs into the subject's graph.
    pub(super) fn capture(
        &self,
        subject: &mut PreparedSubject,
        figure: Figure,
        runs: u32,
    ) -> Result<Readiness, CudaError> {
        subject.graph = None;
        if !subject.is_capturable {
            let reason = "it allocates or waits inside the call, which a graph cannot hold";
            return Ok(Readiness::Unavailable(reason.to_owned()));
        }
        self.gpu.bind()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let enqueue = || {
            (0..runs).try_for_each(|_| {
                if figure == Figure::Behind {
                    self.run_foreign_kernel()?;
                }
                subject.enqueue(&self.gpu)
            })
        };
        let graph = match Graph::capture(&self.gpu.memory, &self.gpu.stream, mode, enqueue)? {
            Ok(graph) => graph,
            Err(error) => return Ok(Readiness::Unavailable(format!("it cannot be captured: {error}"))),
        };
        graph.upload(&self.gpu.stream)?;
        self.gpu.finish("uploading a graph")?;
        subject.graph = Some(graph);
        Ok(Readiness::Ready)
    }

    /// Makes ready the calls of a user's program that come to the same as a scan of this crate, and makes the first of them: it
    /// has to store what the scan does.
    pub(super) fn prepare_calls(
        &mut self,
        subject: &mut PreparedSubject,
        figure: Figure,
    ) -> Result<Readiness, CudaError> {
        if subject.calls.as_ref().is_some_and(|(of, _)| *of == figure) {
            return Ok(Readiness::Ready);
        }
        subject.calls = None;
        let unavailable = |why: &str| Ok(Readiness::Unavailable(why.to_owned()));
        let Work::Scan { scan, .. } = &subject.work else { return Ok(Readiness::Ready) };
        let request = scan.request;
        let Some(instance) = request.problem.instance().filter(|_| subject.is_auto) else {
            return unavailable("calls are measured as most users make them: of auto, over arrays of one type");
        };
        let chosen = Tuning::committed(self.gpu.gpu()).resolve(instance, request.n);
        if (chosen.strategy, chosen.config) != (request.strategy, request.config) {
            return unavailable("a call goes by the committed table, and this is by another one");
        }
        self.gpu.bind()?;
        subject.enqueue(&self.gpu)?;
        self.gpu.finish(&subject.describe())?;
        let download = |array: &GuardedBuffer| -> Result<Vec<u8>, CudaError> {
            let mut bytes = vec![0; array.place.bytes as usize];
            array.download(0, &mut bytes, &self.gpu.stream)?;
            Ok(bytes)
        };
        let (input, expected) = (download(&self.gpu.input)?, download(&self.gpu.output)?);
        let has_tracking = figure == Figure::Call;
        let program = match &mut self.programs[usize::from(has_tracking)] {
            Some(program) => program,
            none => none.insert(Program::new(self.gpu.context().ordinal(), has_tracking)?),
        };
        let called =
            Called { element: instance.element(), operator: instance.operator(), mode: request.mode, input: &input };
        let Some(mut calls) = program.calls(&called)? else { return unavailable("a call takes no such numbers") };
        calls.call()?;
        let output = calls.output()?;
        // Rounded sums whose order is open may differ from one run to the next.
        let has_one_result = !instance.is_rounded() || request.strategy.row().has_fixed_order;
        if has_one_result && output != expected {
            let action = format!("a call of the public API instead of {}", subject.describe());
            return Err(CudaError::unexpected(action, "WRONG", "it stores something else"));
        }
        subject.calls = Some((figure, calls));
        Ok(Readiness::Ready)
    }

    fn probe_clock(&self, probe: usize) -> Result<(), CudaError> {
        self.gpu.launch(&self.clock_probe, 1, 1, &[self.signals.probe_address(probe), PROBE_NS])
    }

    fn hold(&self, ticket: u32, limit_ns: u64) -> Result<(), CudaError> {
        let release = self.signals.device_address(Signals::RELEASE);
        let late = self.signals.device_address(Signals::LATE);
        self.gpu.launch(&self.hold, 1, 1, &[release, u64::from(ticket), limit_ns, late])
    }

    /// Memory that holds nothing of a scan's.
    pub(super) fn sentinel_address(&self) -> u64 {
        self.overwritten.address()
    }

    pub(super) fn overwrite_l2(&self, value: u64) -> Result<(), CudaError> {
        let words = self.overwritten.bytes() / 16;
        self.gpu.launch(&self.overwrite, self.gpu.tool_blocks, THREADS, &[self.overwritten.address(), words, value])
    }

    pub(super) fn sample(
        &mut self,
        subject: &mut PreparedSubject,
        figure: Figure,
        runs: u32,
    ) -> Result<Sample, CudaError> {
        self.gpu.bind()?;
        if figure.is_by_host() {
            self.sample_by_host(subject, figure, runs)
        } else {
            self.sample_by_events(subject, figure, runs)
        }
    }

    fn sample_by_events(
        &mut self,
        subject: &mut PreparedSubject,
        figure: Figure,
        runs: u32,
    ) -> Result<Sample, CudaError> {
        let ticket = self.signals.next_ticket();
        let queued = self.queue(subject, figure, runs, ticket);
        // Also after an error: what was queued behind `hold` must not wait for its limit.
        self.signals.release(ticket);
        queued?;
        self.gpu.finish(&subject.describe())?;
        let nanoseconds = elapsed_ns(&self.start, &self.end)? / f64::from(runs);
        let is_late = figure == Figure::Cold && self.signals.was_late(ticket);
        Ok(Sample { nanoseconds, clock_megahertz: self.signals.clock_megahertz(), is_late })
    }

    fn queue(&self, subject: &mut PreparedSubject, figure: Figure, runs: u32, ticket: u32) -> Result<(), CudaError> {
        if subject.is_asynchronous && figure != Figure::Stream {
            let limit = if figure == Figure::Cold { HOLD_LIMIT_NS } else { GRAPH_HOLD_LIMIT_NS };
            self.hold(ticket, limit)?;
        }
        self.probe_clock(0)?;
        if figure == Figure::Cold {
            self.overwrite_l2(u64::from(ticket))?;
        }
        self.gpu.record(&self.start)?;
        match (&subject.graph, figure) {
            (Some(graph), Figure::Graph | Figure::Behind) => {
                // SAFETY: its runs use what the subject is bound to, which lives until the stream was waited for.
                unsafe { graph.launch(&self.gpu.stream) }?;
            }
            _ => (0..runs).try_for_each(|_| subject.enqueue(&self.gpu))?,
        }
        self.gpu.record(&self.end)?;
        self.probe_clock(1)
    }

    fn sample_by_host(
        &mut self,
        subject: &mut PreparedSubject,
        figure: Figure,
        runs: u32,
    ) -> Result<Sample, CudaError> {
        self.probe_clock(0)?;
        self.gpu.finish("a clock probe")?;
        let start = Instant::now();
        match &mut subject.calls {
            Some((of, calls)) if *of == figure => {
                (0..runs).try_for_each(|_| calls.call())?;
                self.wait_busily(calls.stream(), "calls of the public API", start)?;
            }
            _ => {
                (0..runs).try_for_each(|_| subject.enqueue(&self.gpu))?;
                self.wait_busily(&self.gpu.stream, &subject.describe(), start)?;
            }
        }
        let nanoseconds = start.elapsed().as_nanos() as f64 / f64::from(runs);
        self.probe_clock(1)?;
        self.gpu.finish("a clock probe")?;
        Ok(Sample { nanoseconds, clock_megahertz: self.signals.clock_megahertz(), is_late: false })
    }

    /// Waits without ever giving up the processor: going to sleep and being woken takes longer than a scan.
    fn wait_busily(&self, stream: &CudaStream, what: &str, since: Instant) -> Result<(), CudaError> {
        const BUSY: Duration = Duration::from_millis(200);
        loop {
            // SAFETY: the stream is alive.
            match unsafe { sys::cuStreamQuery(stream.cu_stream()) } {
                sys::CUresult::CUDA_SUCCESS => return Ok(()),
                sys::CUresult::CUDA_ERROR_NOT_READY if since.elapsed() < BUSY => std::hint::spin_loop(),
                sys::CUresult::CUDA_ERROR_NOT_READY => return self.gpu.memory.finish(stream, TIME_LIMIT, what),
                error => return Err(CudaError::driver(what, result::DriverError(error))),
            }
        }
    }
}
