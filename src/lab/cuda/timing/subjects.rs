//! What is measured: our scans, their bounds, peers, copies and the timer's own kernels, ready to run.

use super::calls::Calls;
use super::uploaded::Uploaded;
use crate::cuda::compile::KernelResources;
use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::launch::{KernelSet, PreparedScan, allow_shared_bytes};
use crate::gpu::Architecture;
use crate::lab::cuda::graph::Graph;
use crate::lab::cuda::harness::{self, GpuHarness, THREADS, launch_words};
use crate::lab::measure::copies::{COPY_KERNELS, CopyKernel, Manner};
use crate::lab::measure::point::{Point, Subject};
use crate::lab::measure::run::{NotMeasured, SubjectFacts};
use crate::lab::measure::sampling::Figure;
use crate::lab::peers::{self, PeerError, PreparedPeer};
use crate::strategy::launch::Addresses;
use crate::strategy::plan::{KernelKey, ScanRequest, Step};
use crate::strategy::{Mode, ScanConfig, Strategy};
use cudarc::driver::{CudaFunction, result};
use std::collections::HashMap;

/// Bytes that a block of the copy kernels moves, `COPY_THREADS · COPY_WORDS_PER_THREAD` words of 16 bytes.
const COPY_TILE_BYTES: u64 = 256 * 4 * 16;

/// Bytes that the sentinel copies, at every point as many.
const SENTINEL_BYTES: u64 = 4 << 20;

/// A subject ready to run.
pub(super) struct PreparedSubject {
    pub(super) work: Work,
    pub(super) mode: Option<Mode>,
    /// What bounds the error of a float sum; for a peer a stand-in.
    pub(super) request: Option<ScanRequest>,
    /// Whether the call returns before the device is done.
    pub(super) is_asynchronous: bool,
    /// Whether it may be captured.
    pub(super) is_capturable: bool,
    /// Whether its result is wrong by design.
    pub(super) is_bound: bool,
    /// Whether the table chose it.
    pub(super) is_auto: bool,
    /// Some runs of it.
    pub(super) graph: Option<Graph>,
    /// A user's calls that come to it, and the figure that they are ready for.
    pub(super) calls: Option<(Figure, Box<dyn Calls>)>,
    pub(super) facts: SubjectFacts,
}

pub(super) enum Work {
    /// With the places of the user's arrays.
    Scan {
        scan: Box<PreparedScan>,
        places: Box<Addresses>,
    },
    /// With the addresses of the arrays that it loads.
    Peer {
        peer: Box<PreparedPeer>,
        inputs: Vec<u64>,
    },
    Memcpy(Copied),
    /// With what the kernel is told behind addresses and bytes.
    Copy {
        function: CudaFunction,
        grid: CopyGrid,
        copied: Copied,
        words: Vec<u64>,
    },
    Spin {
        function: CudaFunction,
        nanoseconds: u64,
    },
    Nothing,
}

/// What the copies move, and between which addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copied {
    from: u64,
    to: u64,
    bytes: u64,
}

/// How a copy kernel is launched.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyGrid {
    blocks: u32,
    threads: u32,
    shared_bytes: u32,
}

impl PreparedSubject {
    fn new(work: Work, mode: Option<Mode>, request: Option<ScanRequest>, facts: SubjectFacts) -> Self {
        let (is_asynchronous, is_capturable, is_bound, is_auto) = (true, true, false, false);
        let (graph, calls) = (None, None);
        Self { work, mode, request, is_asynchronous, is_capturable, is_bound, is_auto, graph, calls, facts }
    }

    /// What it is, for messages.
    pub(super) fn describe(&self) -> String {
        match &self.work {
            Work::Scan { scan, .. } => harness::describe(&scan.request),
            Work::Peer { peer, .. } => {
                format!("{}, {}, {}, {} elements", peer.peer().name(), peer.workload(), peer.mode(), peer.n())
            }
            Work::Memcpy(Copied { bytes, .. }) => format!("copying {bytes} bytes on the device"),
            Work::Copy { copied: Copied { bytes, .. }, .. } => format!("the copy kernel over {bytes} bytes"),
            Work::Spin { nanoseconds, .. } => format!("a kernel that runs for {nanoseconds} ns"),
            Work::Nothing => String::from("an empty frame"),
        }
    }

    /// Kernels and copies of one run.
    pub(super) fn launches(&self) -> u64 {
        match &self.work {
            Work::Scan { scan, .. } => scan.kernels.len().max(1) as u64,
            // CUB and Thrust launch two kernels.
            Work::Peer { .. } => 2,
            _ => 1,
        }
    }

    /// Puts one run onto the stream.
    pub(super) fn enqueue(&mut self, gpu: &GpuHarness) -> Result<(), CudaError> {
        match &mut self.work {
            // SAFETY: bound to the buffers of the open point, which live until the next one is opened, and that waits
            // first; stream, workspace, kernels and context are the laboratory's.
            Work::Scan { scan, .. } => unsafe { scan.launch(&gpu.stream) },
            // SAFETY: the inputs are those of the workload, as long as it says, and so is the output; they lie apart, at
            // multiples of their elements' sizes; they live until the stream was waited for; the context was made current by
            // the caller.
            Work::Peer { peer, inputs } => {
                unsafe { peer.launch_addresses(inputs, gpu.output.address()) }.map_err(|error| match error {
                    PeerError::Cuda(error) => error,
                    other => CudaError::unexpected("launching a peer", "refused", other.to_string()),
                })
            }
            // SAFETY: as above; both arrays have as many bytes or more.
            Work::Memcpy(Copied { from, to, bytes }) => {
                unsafe { result::memcpy_dtod_async(*to, *from, *bytes as usize, gpu.stream.cu_stream()) }
                    .during(|| String::from("copying on the device"))
            }
            Work::Copy { function, grid, copied: Copied { from, to, bytes }, words } => {
                let CopyGrid { blocks, threads, shared_bytes } = *grid;
                let words = [&[*from, *to, *bytes], words.as_slice()].concat();
                launch_words(function, (blocks, threads), shared_bytes, &words, &gpu.stream)
            }
            Work::Spin { function, nanoseconds } => gpu.launch(function, 1, 1, &[*nanoseconds]),
            Work::Nothing => Ok(()),
        }
    }
}

/// The scan of a point's arrays.
pub(super) fn request(point: &Point, strategy: Strategy, mode: Mode, config: ScanConfig) -> ScanRequest {
    // Buffers and guards are multiples of 256, so only the offsets are off a boundary.
    let [input_offset, output_offset] = point.offsets.bytes(point.workload).map(|bytes| bytes % ScanRequest::OFFSETS);
    ScanRequest { input_offset, output_offset, ..point.request(strategy, mode, config) }
}

/// What subjects are prepared with.
pub(super) struct Preparation<'a> {
    pub(super) gpu: &'a GpuHarness,
    pub(super) bounds: &'a KernelSet,
    /// The arrays of the point, where they were made on the host.
    pub(super) uploaded: Option<&'a Uploaded>,
    /// Memory of the timer's that the sentinel copies, twice as many bytes.
    pub(super) sentinel: u64,
    /// Registers and spills of the kernels as they are, from `compile_ahead`.
    pub(super) resources: &'a HashMap<KernelKey, KernelResources>,
}

impl Preparation<'_> {
    pub(super) fn subject(&self, point: &Point, subject: &Subject) -> Result<PreparedSubject, NotMeasured> {
        let gpu = self.gpu;
        let not_launchable = |error: CudaError| NotMeasured::NotLaunchable(error.to_string());
        let tool = |name: &str, work: &dyn Fn(CudaFunction) -> Work, access_bytes: Option<u32>| {
            let kernel = gpu.tool(name).map_err(not_launchable)?;
            let registers = kernel.num_regs().ok().and_then(|count| u32::try_from(count).ok());
            let facts = SubjectFacts { access_bytes, launches: Some(1), registers, spill_bytes: Some(0) };
            Ok(PreparedSubject::new(work(kernel), None, None, facts))
        };
        let bytes = point.copied_bytes();
        let between = [gpu.input.address(), gpu.output.address()];
        let [from, to] = self.uploaded.map_or(between, Uploaded::copied_addresses);
        let copied = Copied { from, to, bytes };
        let tiles = bytes.div_ceil(COPY_TILE_BYTES).max(1);
        let copy_of = |name: &str, (blocks, threads, shared_bytes): (u64, u32, u32), copied: Copied, words: &[u64]| {
            if !(copied.from | copied.to).is_multiple_of(16) {
                let why = "it moves 16 bytes a lane, and input or output does not begin at such a boundary";
                return Err(NotMeasured::Unsupported(why.to_owned()));
            }
            // 2^32 elements of 8 bytes are 2^21 tiles.
            let blocks = u32::try_from(blocks).unwrap_or(i32::MAX as u32);
            let grid = CopyGrid { blocks, threads, shared_bytes };
            let prepared =
                tool(name, &|function| Work::Copy { function, grid, copied, words: words.to_vec() }, Some(16))?;
            if let Work::Copy { function, .. } = &prepared.work
                && shared_bytes > 0
            {
                // One function serves several of a point's subjects: what it may have is what the largest of them asks for.
                let of_function = COPY_KERNELS.iter().filter(|kernel| kernel.function() == name);
                let most = of_function.map(CopyKernel::shared_bytes).max().unwrap_or(shared_bytes);
                allow_shared_bytes(function, most).map_err(not_launchable)?;
            }
            Ok(prepared)
        };
        let copy = |name: &str, extra: u64| copy_of(name, (tiles + extra, THREADS, 0), copied, &[tiles]);
        let without_facts = |work| Ok(PreparedSubject::new(work, None, None, SubjectFacts::default()));
        match subject {
            Subject::Scan { strategy, mode, config }
            | Subject::Auto { strategy, mode, config }
            | Subject::Bound { strategy, mode, config } => {
                let is_bound = matches!(subject, Subject::Bound { .. });
                let request = request(point, *strategy, *mode, *config);
                let (request, places) = match self.uploaded {
                    Some(uploaded) => uploaded.prepare(gpu, &request).map_err(not_launchable)?,
                    None => (request, Addresses::between(gpu.input.address(), gpu.output.address())),
                };
                let kernels = if is_bound { self.bounds } else { &gpu.kernels };
                let scan = PreparedScan::new(&request, kernels).map_err(not_launchable)?;
                let facts = self.facts(&scan, is_bound);
                let work = Work::Scan { scan: Box::new(scan), places: Box::new(places) };
                let is_auto = matches!(subject, Subject::Auto { .. });
                Ok(PreparedSubject {
                    is_bound,
                    is_auto,
                    ..PreparedSubject::new(work, Some(*mode), Some(request), facts)
                })
            }
            Subject::Reading { .. } if self.uploaded.is_none() => {
                let why = "what it reads is made on the host, which the arrays of flat scans are not";
                Err(NotMeasured::Unsupported(why.to_owned()))
            }
            Subject::Peer { .. } | Subject::Reading { .. } => {
                let (name, mode) = (subject.name(), subject.mode());
                let unsupported = |error: PeerError| NotMeasured::Unsupported(error.to_string());
                let peer = peers::by_name(&name).map_err(unsupported)?;
                let asked = mode.unwrap_or(Mode::Inclusive);
                let prepared =
                    peer.prepare(&gpu.stream, point.workload, asked, point.n).map_err(|error| match error {
                        PeerError::Unsupported { .. } | PeerError::TooLarge { .. } | PeerError::Misfit(_) => {
                            unsupported(error)
                        }
                        other => NotMeasured::NotLaunchable(other.to_string()),
                    })?;
                let first = || vec![gpu.input.address()];
                let inputs = self.uploaded.map_or_else(first, |uploaded| uploaded.input_addresses(gpu));
                let request = mode.map(|_| prepared.verification_request());
                let work = Work::Peer { peer: Box::new(prepared), inputs };
                // What may not be captured allocates or waits inside the call.
                let (is_asynchronous, is_capturable) = (peer.is_capturable(), peer.is_capturable());
                let subject = PreparedSubject::new(work, mode, request, SubjectFacts::default());
                Ok(PreparedSubject { is_asynchronous, is_capturable, ..subject })
            }
            Subject::Memcpy => without_facts(Work::Memcpy(copied)),
            Subject::Copy16 => copy("copy_16", 0),
            Subject::Copy16Again => copy("copy_16_again", 0),
            Subject::Copy16Slower => copy("copy_16_slower", tiles.div_ceil(20)),
            Subject::Copy(kernel) if !bytes.is_multiple_of(16) => {
                Err(NotMeasured::Unsupported(format!("{kernel} moves whole words of 16 bytes")))
            }
            Subject::Copy(kernel) => {
                if matches!(kernel.manner, Manner::Ring { .. }) && gpu.gpu().architecture < Architecture::HOPPER {
                    let why = "the copy engine fills shared memory from compute capability 9.0 on";
                    return Err(NotMeasured::Unsupported(why.to_owned()));
                }
                let (blocks, words) = kernel.launch(bytes, gpu.gpu().multiprocessors);
                copy_of(&kernel.function(), (blocks, kernel.threads, kernel.shared_bytes()), copied, &words)
            }
            Subject::EmptyFrame => without_facts(Work::Nothing),
            Subject::Sentinel => {
                let tiles = SENTINEL_BYTES / COPY_TILE_BYTES;
                let copied = Copied { from: self.sentinel, to: self.sentinel + SENTINEL_BYTES, bytes: SENTINEL_BYTES };
                copy_of("copy_16", (tiles, THREADS, 0), copied, &[tiles])
            }
            Subject::Spin { nanoseconds } => {
                let nanoseconds = *nanoseconds;
                tool("spin", &|function| Work::Spin { function, nanoseconds }, None)
            }
        }
    }

    fn facts(&self, scan: &PreparedScan, is_bound: bool) -> SubjectFacts {
        let steps = if is_bound { &[][..] } else { &scan.plan.steps };
        let resources = |step: &Step| self.resources.get(&step.key()).copied();
        let resources: Vec<KernelResources> = steps.iter().filter_map(resources).collect();
        SubjectFacts {
            access_bytes: Some(scan.plan.access_bytes),
            launches: Some(scan.kernels.len() as u64),
            registers: resources.iter().map(|kernel| kernel.registers).max(),
            spill_bytes: resources.iter().map(|kernel| kernel.spill_bytes()).max(),
        }
    }
}
