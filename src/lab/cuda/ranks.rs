//! A GPU as a rank.

use super::graph::Graph;
use super::harness::{attribute, driver_cuda, elapsed_ns, kernel_module_version, open_context};
use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::memory::{Buffer, DeviceMemory};
use crate::cuda::{GpuRanks, Scanner};
use crate::lab::device::{DeviceDescription, DeviceError};
use crate::lab::ranks::{Check, Manner, Part, RankDevice, Subject, Work};
use crate::ranks::Group;
use crate::strategy::Mode;
use crate::strategy::call::Lent;
use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, result, sys};
use std::collections::HashMap;
use std::sync::Arc;

/// Scans of a graph: of small shards many, so that what begins and ends a graph counts little, of large ones few.
fn runs_of(input_bytes: u64) -> u32 {
    const MOST: u64 = 20;
    (MOST << 28).checked_div(input_bytes.max(1 << 28)).unwrap_or(MOST).clamp(2, MOST) as u32
}

/// A GPU that is a rank of a group.
pub struct CudaRank {
    // Before the memory that they use.
    graphs: HashMap<Subject, (Graph, u32)>,
    ranks: GpuRanks,
    scanner: Scanner,
    loaded: Option<Loaded>,
    state: Buffer,
    start: CudaEvent,
    end: CudaEvent,
    stream: Arc<CudaStream>,
    memory: Arc<DeviceMemory>,
    context: Arc<CudaContext>,
}

struct Loaded {
    work: Work,
    part: Part,
    input: Buffer,
    output: Buffer,
}

impl CudaRank {
    /// The GPU with the number of the rank on its host.
    ///
    /// # Errors
    /// When there is no such GPU, no driver, no compiler or no NCCL, or a rank is lost meanwhile.
    pub fn open(group: Group) -> Result<Self, CudaError> {
        let opened = open_context(group.local_rank()).and_then(|(compiler, context)| {
            let stream = context.new_stream().during(|| String::from("making a stream"))?;
            Ok((Scanner::with_compiler(&context, compiler)?, context, stream))
        });
        let (scanner, context, stream) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                group.fail(&error.to_string());
                return Err(error);
            }
        };
        let ranks = GpuRanks::new(group, &scanner, &stream)?;
        // Of the scanner, so that what is left alone behind a launch that hangs is all left alone.
        let memory = Arc::clone(scanner.memory());
        let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let event = || context.new_event(timed).during(|| String::from("making an event"));
        Ok(Self {
            graphs: HashMap::new(),
            start: event()?,
            end: event()?,
            state: memory.allocate(64, "a carry and a count")?,
            ranks,
            scanner,
            loaded: None,
            stream,
            memory,
            context,
        })
    }

    /// The version of NCCL.
    ///
    /// # Errors
    /// When NCCL does not say.
    pub fn nccl_version(&self) -> Result<String, CudaError> {
        self.ranks.nccl_version()
    }

    /// Leaves, once all ranks have come to this.
    ///
    /// # Errors
    /// When a rank is lost.
    pub fn finish(self) -> Result<(), CudaError> {
        let Self { graphs, ranks, .. } = self;
        drop(graphs);
        ranks.finish()
    }

    /// Puts a scan of the part onto the stream.
    fn enqueue(&self, subject: Subject) -> Result<(), DeviceError> {
        let Loaded { work, part, input, output } = self.loaded.as_ref().ok_or(DeviceError::NoDataset)?;
        let n = part.elements();
        let mut run = self.scanner.run(&self.stream, work.defined()?);
        run.call.input(Lent::of(work.input, input.address(), n));
        run.call.output(Lent::of(work.output, output.address(), n));
        Ok(match subject {
            None => run.launch(work.mode),
            Some(Manner::Contiguous) => self.ranks.scan(run, work.mode),
            Some(Manner::Deferred) => {
                self.ranks.scan_deferred_into(run, work.mode, (self.state.address(), work.output.bytes()))
            }
            Some(Manner::Cyclic) => self.ranks.scan_cyclic(run, work.mode, part.deal()?),
        }?)
    }

    fn download<const BYTES: usize>(&self, offset: u64) -> Result<[u8; BYTES], CudaError> {
        let mut bytes = [0; BYTES];
        self.state.download(offset, &mut bytes, &self.stream)?;
        Ok(bytes)
    }

    fn record(&self, event: &CudaEvent) -> Result<(), CudaError> {
        event.record(&self.stream).during(|| String::from("recording an event"))
    }
}

/// Where the carry of a deferred scan and the count of wrong results lie.
const COUNT_PLACE: u64 = 32;

impl RankDevice for CudaRank {
    fn description(&self) -> DeviceDescription {
        let known = |fact: Result<String, CudaError>| fact.unwrap_or_else(|_| String::from("unknown"));
        let of_driver = |fact: Result<String, DriverError>| fact.unwrap_or_else(|_| String::from("a GPU"));
        let multiprocessors = attribute(&self.context, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        let facts = [
            ("driver", kernel_module_version()),
            ("CUDA of the driver", known(driver_cuda())),
            ("multiprocessors", known(multiprocessors.map(|count| count.to_string()))),
        ];
        DeviceDescription {
            kind: String::from("cuda"),
            name: of_driver(self.context.name()),
            facts: facts.into_iter().map(|(what, value)| (what.to_owned(), value)).collect(),
        }
    }

    fn group(&self) -> &Group {
        self.ranks.group()
    }

    fn load(&mut self, work: Work, part: Part) -> Result<(), DeviceError> {
        self.graphs.clear();
        self.loaded = None;
        let n = part.elements();
        let [input_bytes, output_bytes] = [work.input, work.output].map(|element| n * element.bytes() as u64);
        let input = self.memory.allocate(input_bytes, "the input")?;
        let output = self.memory.allocate(output_bytes, "the output")?;
        // What repeats is doubled on the device.
        let first = work.period(&part).map(|period| period << 12).filter(|period| *period < n).unwrap_or(n);
        input.upload(0, &work.elements(&part, first), &self.stream)?;
        let mut there = first * work.input.bytes() as u64;
        while there < input_bytes {
            let more = there.min(input_bytes - there);
            let (from, to) = (input.range(0, more), input.range(there, more));
            // SAFETY: both ranges were checked and do not overlap; the buffer lives until the stream was waited for below.
            unsafe { result::memcpy_dtod_async(to, from, more as usize, self.stream.cu_stream()) }
                .during(|| String::from("filling the input"))?;
            there += more;
        }
        self.ranks.wait()?;
        self.loaded = Some(Loaded { work, part, input, output });
        Ok(())
    }

    fn check(&mut self, manner: Manner) -> Result<u64, DeviceError> {
        let Loaded { output, .. } = self.loaded.as_ref().ok_or(DeviceError::NoDataset)?;
        // What an earlier scan left would be right, too.
        output.fill(0, output.bytes(), 0xa5, &self.stream)?;
        self.enqueue(Some(manner))?;
        self.ranks.wait()?;
        let Loaded { work, part, output, .. } = self.loaded.as_ref().ok_or(DeviceError::NoDataset)?;
        let is_deferred = manner == Manner::Deferred;
        let from = if is_deferred { part.place(0) } else { 0 };
        let mut run = self.scanner.run(&self.stream, work.count_of_wrong(Check { part, from })?);
        run.call.input(Lent::of(work.output, output.address(), part.elements()));
        run.call.total(Lent::states_of(8, self.state.address() + COUNT_PLACE, 1));
        run.launch(Mode::Inclusive)?;
        self.ranks.wait()?;
        let wrong = u64::from_le_bytes(self.download(COUNT_PLACE)?);
        let carry: [u8; 8] = self.download(0)?;
        let expected = work.carry(from);
        Ok(wrong + u64::from(is_deferred && carry[..expected.len()] != expected))
    }

    fn time(&mut self, subject: Subject) -> Result<f64, DeviceError> {
        if !self.graphs.contains_key(&subject) {
            let Loaded { work, part, .. } = self.loaded.as_ref().ok_or(DeviceError::NoDataset)?;
            let own_runs = runs_of(part.elements() * work.input.bytes() as u64);
            // As many on all ranks, which meet in each, and whose shards may be longer by one.
            let of_all = self.ranks.group().all_gather(&own_runs.to_le_bytes())?;
            let runs =
                of_all.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).min().unwrap_or(own_runs);
            let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            // Compiled and loaded before.
            self.enqueue(subject)?;
            self.ranks.wait()?;
            let mut refused = None;
            let enqueue = || {
                (0..runs).try_for_each(|_| {
                    self.enqueue(subject).map_err(|error| match error {
                        DeviceError::Cuda(error) => error,
                        other => {
                            let told = CudaError::OtherStream;
                            refused = Some(other);
                            told
                        }
                    })
                })
            };
            let graph = Graph::capture(&self.memory, &self.stream, mode, enqueue)?;
            if let Some(refused) = refused {
                return Err(refused);
            }
            let graph = graph?;
            graph.upload(&self.stream)?;
            self.ranks.wait()?;
            self.graphs.insert(subject, (graph, runs));
            self.ranks.group().barrier()?;
        }
        let (graph, runs) = &self.graphs[&subject];
        self.context.bind_to_thread().during(|| String::from("making the context current"))?;
        self.record(&self.start)?;
        // SAFETY: what its scans use is this object's, which waits for the stream below; the scanner keeps their workspaces.
        unsafe { graph.launch(&self.stream) }?;
        self.record(&self.end)?;
        self.ranks.wait()?;
        Ok(elapsed_ns(&self.start, &self.end)? / f64::from(*runs))
    }

    fn method(&self) -> &'static str {
        "between two events, by scan, of a graph of 2 to 20 scans in a row, caches as the scan before left them; the slowest rank of \
         each round, beside the fastest that scans a shard alone in a graph of as many"
    }
}
