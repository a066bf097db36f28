//! Device-wide scans for programs that use cudarc.
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use lookback::cuda::Scanner;
//! use lookback::element::Operator;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! lookback::cuda::toolkit::probe_driver()?; // cudarc panics where there is no driver
//! let context = CudaContext::new(0)?;
//! let stream = context.new_stream()?;
//! let scanner = Scanner::new(&context)?;
//!
//! let counts = stream.clone_htod(&[3_u32, 1, 4, 1, 5])?;
//! let mut offsets = stream.alloc_zeros::<u32>(6)?;
//! // One offset more than there are counts: the last input of an exclusive scan is never read.
//! scanner.exclusive(&stream, Operator::Sum, &counts, &mut offsets)?;
//! assert_eq!(stream.clone_dtoh(&offsets)?, [0, 3, 4, 8, 9, 14]);
//! # Ok(())
//! # }
//! ```
//!
//! A scan is put onto the stream and returns; it waits for nothing and allocates nothing, except the first
//! time that an instance (its kernel is compiled, or read from the cache) or a larger n is asked for. With
//! cudarc's event tracking on, the arrays' events are waited for and recorded as by every cudarc call.
//!
//! **Overlapping launches never share descriptors.** Each stream has a workspace of its own inside the
//! scanner, and one stream's launches run one after the other. The scanner keeps the stream alive, so
//! that its handle cannot come back as another stream while launches are under way, and it tells the
//! per-thread default streams apart by thread. A scan that is captured into a graph gets a workspace that
//! nothing else ever uses; it lives as long as the scanner, or until [`Scanner::forget_captured`], and like the
//! captured arrays and kernels it has to outlive the graph's replays. One instantiated graph never runs beside itself; instantiating one
//! graph twice and running both at once is up to the caller.
//!
//! **Kernels of others that are launched programmatically** (`programmaticStreamSerializationAllowed`, on Hopper and later)
//! may begin while a scan before them on the stream still runs: every one of their threads must call `griddepcontrol.wait`
//! (`cudaGridDependencySynchronize`) before it touches what a scan wrote or reads, and before it ends even if it touches
//! nothing of that, because a scan behind such a kernel waits for that kernel alone. Scans do so themselves, and whatever is
//! launched in the ordinary way waits anyhow.

use super::compile::{Compiler, Variant};
use super::error::{Context as _, CudaError};
use super::launch::{KernelSet, PreparedScan, is_capturing, multiprocessors};
use super::memory::DeviceMemory;
use super::toolkit::probe_driver;
use super::workspace::Workspace;
use crate::element::Problem;
use crate::gpu::Gpu;
use crate::run::lending::Place;
use crate::strategy::call::{Call, Prepared, check_findings};
use crate::strategy::launch::Addresses;
use crate::strategy::plan::ScanRequest;
use crate::strategy::tuning::{TuningError, TuningTable};
use crate::strategy::{Choices, Mode, ScanConfig, StrategyChoice};
use cudarc::driver::{CudaContext, CudaStream};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// Which stream a workspace belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct StreamKey {
    handle: usize,
    /// The per-thread default stream has one handle for as many streams as there are threads.
    thread: Option<ThreadId>,
}

/// CU_STREAM_PER_THREAD
const PER_THREAD_HANDLE: usize = 2;

impl StreamKey {
    fn of(stream: &CudaStream) -> Self {
        let handle = stream.cu_stream() as usize;
        Self { handle, thread: (handle == PER_THREAD_HANDLE).then(|| std::thread::current().id()) }
    }
}

/// Scans that were prepared before, so that the next one like it costs a comparison.
const REMEMBERED_SCANS: usize = 16;

/// What one stream's scans work with.
struct StreamState {
    // Waits for the stream's launches when it goes, so before the stream.
    workspace: Workspace,
    stream: Arc<CudaStream>,
    prepared: Vec<PreparedScan>,
    /// Which of `prepared` gives way next.
    next: usize,
}

impl StreamState {
    fn new(memory: &Arc<DeviceMemory>, stream: &Arc<CudaStream>) -> Self {
        Self { workspace: Workspace::new(memory, stream), stream: Arc::clone(stream), prepared: Vec::new(), next: 0 }
    }

    /// Which of `prepared` is the scan, with its kernels loaded and all its addresses.
    fn ready(&mut self, request: &ScanRequest, places: Addresses, kernels: &KernelSet) -> Result<usize, CudaError> {
        let known = self.prepared.iter().position(|scan| scan.request == *request);
        let index = match known {
            Some(index) => index,
            None => {
                let scan = PreparedScan::new(request, kernels)?;
                if self.prepared.len() < REMEMBERED_SCANS {
                    self.prepared.push(scan);
                    self.prepared.len() - 1
                } else {
                    let index = self.next;
                    self.next = (index + 1) % REMEMBERED_SCANS;
                    self.prepared[index] = scan;
                    index
                }
            }
        };
        let scan = &mut self.prepared[index];
        scan.bind(places, &mut self.workspace)?;
        Ok(index)
    }

    fn enqueue(&mut self, request: &ScanRequest, places: Addresses, kernels: &KernelSet) -> Result<(), CudaError> {
        let index = self.ready(request, places, kernels)?;
        // SAFETY: bound there. The caller's guards keep input and output ordered behind this launch; the
        // workspace is this stream's and waits for its launches before it frees anything; `Scanner::scan`
        // has checked that stream and arrays are of the kernels' context and made that current.
        unsafe { self.prepared[index].launch(&self.stream) }
    }
}

/// What is done with a scan whose arrays were checked: [`Scanner::enqueue`] or [`Scanner::warm`].
pub(super) type Deed<R> = fn(&Scanner, &Arc<CudaStream>, &ScanRequest, Addresses) -> Result<R, CudaError>;

/// Device-wide scans in one CUDA context; see the [module](self). May be used from several threads.
pub struct Scanner {
    streams: Mutex<HashMap<StreamKey, Arc<Mutex<StreamState>>>>,
    captured: Mutex<Vec<StreamState>>,
    choices: Choices,
    memory: Arc<DeviceMemory>,
    kernels: KernelSet,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic between two launches leaves a workspace that the stream still orders rightly.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scanner {
    /// Scans by `auto`: the strategy and the configuration that the tuning table of the GPU names for type, operator
    /// and size ([`crate::strategy::tuning`]).
    ///
    /// # Errors
    /// When there is no driver or no NVRTC; the errors say where they were looked for.
    pub fn new(context: &Arc<CudaContext>) -> Result<Self, CudaError> {
        probe_driver()?;
        Self::with_compiler(context, Compiler::new()?)
    }

    /// With the kernels of a folder that were made ahead (`lookback kernels`, [`Ahead`](super::Ahead), [`Compiler::keeping_in`]): no NVRTC is
    /// needed or loaded, nothing is compiled, and a scan whose kernel is not there is an error.
    ///
    /// # Errors
    /// When there is no driver, or it fails. Scans whose kernel is not in the folder fail with [`CudaError::NotMadeAhead`].
    pub fn without_nvrtc(context: &Arc<CudaContext>, folder: impl Into<PathBuf>) -> Result<Self, CudaError> {
        Self::with_compiler(context, Compiler::without_nvrtc(folder))
    }

    /// With a given compiler, for example one whose cache lies elsewhere.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn with_compiler(context: &Arc<CudaContext>, compiler: Compiler) -> Result<Self, CudaError> {
        probe_driver()?;
        let kernels = KernelSet::new(context, compiler, |_| Variant::default())?;
        let gpu = Gpu { architecture: kernels.architecture(), multiprocessors: multiprocessors(context)? };
        Ok(Self {
            streams: Mutex::new(HashMap::new()),
            captured: Mutex::new(Vec::new()),
            choices: Choices::on(gpu),
            memory: DeviceMemory::new(context)?,
            kernels,
        })
    }

    /// Takes another strategy, or `auto` again, for the scans from here on.
    #[must_use]
    pub fn with_strategy(mut self, strategy: impl Into<StrategyChoice>) -> Self {
        self.choices = self.choices.with_strategy(strategy);
        self
    }

    /// Takes what another tuning table says for the scans from here on: see [`Choices::with_tuning`].
    ///
    /// # Errors
    /// As that.
    pub fn with_tuning(mut self, table: &TuningTable) -> Result<Self, TuningError> {
        self.choices = self.choices.with_tuning(table)?;
        Ok(self)
    }

    /// What to do for `auto` where no tuning table was measured on a GPU like this one; `None` where one was. A program that scans
    /// much may want to say it once.
    pub fn tuning_advice(&self) -> Option<String> {
        self.choices.tuning.advice()
    }

    /// Takes other choices inside the strategy for the scans from here on; with `auto`, inside whatever strategy the
    /// table names.
    #[must_use]
    pub fn with_config(mut self, config: ScanConfig) -> Self {
        self.choices = self.choices.with_config(config);
        self
    }

    /// Lets go of a stream: waits for its scans, frees their workspace, and no longer keeps it alive.
    ///
    /// # Errors
    /// When an earlier scan on the stream failed.
    pub fn forget(&self, stream: &Arc<CudaStream>) -> Result<(), CudaError> {
        let state = locked(&self.streams).remove(&StreamKey::of(stream));
        drop(state);
        stream.synchronize().during(|| String::from("waiting for earlier scans"))
    }

    /// Frees the workspaces of all scans that were captured into graphs, once all work of the context is done: of a program that
    /// captures anew whenever a shape changes they would only grow in number. What these scans found wrong is forgotten with them:
    /// ask [`Self::check`] before.
    ///
    /// # Errors
    /// When some work of the context failed, or a stream of it is captured right now. Then nothing is freed.
    ///
    /// # Safety
    /// No graph into which a scan of this scanner was captured before is launched any more.
    pub unsafe fn forget_captured(&self) -> Result<(), CudaError> {
        let mut captured = locked(&self.captured);
        self.memory.context().synchronize().during(|| String::from("waiting for graphs"))?;
        captured.clear();
        Ok(())
    }

    /// Waits for the stream's scans, and says what they found wrong since the last call with numbers that the device alone
    /// knows: offsets that fall or run out of the array, a count of more elements than there are. Scans that are captured
    /// into graphs are asked together, whatever their streams.
    ///
    /// # Errors
    /// The first thing that was found, and when a scan on the stream failed.
    pub fn check(&self, stream: &Arc<CudaStream>) -> Result<(), CudaError> {
        self.check_context("stream", stream.context())?;
        stream.synchronize().during(|| String::from("waiting for earlier scans"))?;
        let mut found = Vec::new();
        let state = locked(&self.streams).get(&StreamKey::of(stream)).cloned();
        if let Some(state) = state {
            found.push(locked(&state).workspace.take_findings()?);
        }
        for state in locked(&self.captured).iter_mut() {
            found.push(state.workspace.take_findings()?);
        }
        Ok(found.iter().try_for_each(check_findings)?)
    }

    /// What went wrong with the folders of compiled kernels, which keeps no scan from running where there is NVRTC.
    pub fn cache_warnings(&self) -> Vec<String> {
        self.kernels.compiler().warnings()
    }

    /// Where buffers of this scanner's context come from.
    pub(crate) const fn memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }

    pub(super) fn check_context(&self, what: &'static str, context: &Arc<CudaContext>) -> Result<(), CudaError> {
        // cudarc compares device, handle and ordinal: two objects of one primary context are the same.
        if context == self.memory.context() { Ok(()) } else { Err(CudaError::WrongContext { what }) }
    }

    /// The scan of arrays that were checked for length and context and are ordered before the stream.
    pub(super) fn scan<R: Default>(
        &self,
        stream: &Arc<CudaStream>,
        (problem, mode): (Problem, Mode),
        input: Place,
        output: Place,
        deed: Deed<R>,
    ) -> Result<R, CudaError> {
        if output.elements == 0 {
            return Ok(R::default());
        }
        self.memory.context().bind_to_thread().during(|| String::from("making the context current"))?;
        let in_place = same_or_apart(problem, input, output)?;
        let n = output.elements as u64;
        let request = self.choices.scan_of_numbers((problem, mode), [input.address, output.address], n);
        let request = ScanRequest { in_place, ..request };
        deed(self, stream, &request, Addresses::between(input.address, output.address))
    }

    /// The same for the arrays of a defined scan, which this checks.
    pub(super) fn scan_defined<R: Default>(
        &self,
        stream: &Arc<CudaStream>,
        call: Call,
        mode: Mode,
        deed: Deed<R>,
    ) -> Result<R, CudaError> {
        self.memory.context().bind_to_thread().during(|| String::from("making the context current"))?;
        let Some((request, places)) = self.prepare_defined(call, mode)? else { return Ok(R::default()) };
        deed(self, stream, &request, places)
    }

    /// What is launched for it, if anything is.
    pub(super) fn prepare_defined(
        &self,
        call: Call,
        mode: Mode,
    ) -> Result<Option<(ScanRequest, Addresses)>, CudaError> {
        let prepared = call.prepare(mode, &self.choices)?;
        Ok(prepared.map(Prepared::placed))
    }

    /// Compiles, loads and allocates what the scan needs on the stream; returns the bytes of the stream's workspace.
    pub(super) fn warm(
        &self,
        stream: &Arc<CudaStream>,
        request: &ScanRequest,
        places: Addresses,
    ) -> Result<u64, CudaError> {
        let state = self.state_of(stream);
        let mut state = locked(&state);
        state.ready(request, places, &self.kernels)?;
        Ok(state.workspace.bytes())
    }

    /// Puts the scan onto the stream.
    pub(super) fn enqueue(
        &self,
        stream: &Arc<CudaStream>,
        request: &ScanRequest,
        places: Addresses,
    ) -> Result<(), CudaError> {
        if is_capturing(stream)? {
            let mut state = StreamState::new(&self.memory, stream);
            let enqueued = state.enqueue(request, places, &self.kernels);
            // Kept even after an error: some of its launches may be in the graph.
            locked(&self.captured).push(state);
            return enqueued;
        }
        let state = self.state_of(stream);
        // Held until every launch of the scan is on the stream: another thread's may not come between.
        let mut state = locked(&state);
        state.enqueue(request, places, &self.kernels)
    }

    fn state_of(&self, stream: &Arc<CudaStream>) -> Arc<Mutex<StreamState>> {
        let mut streams = locked(&self.streams);
        let new = || Arc::new(Mutex::new(StreamState::new(&self.memory, stream)));
        Arc::clone(streams.entry(StreamKey::of(stream)).or_insert_with(new))
    }
}

/// Whether the arrays are the same; an error where they overlap without that, or are misaligned. Arrays of two types are
/// never the same: what is stored could be what is yet to be loaded.
fn same_or_apart(problem: Problem, input: Place, output: Place) -> Result<bool, CudaError> {
    let alignments = [problem.input_bytes(), problem.output_bytes()].map(|bytes| bytes as u64);
    for (name, array, alignment) in [("input", input, alignments[0]), ("output", output, alignments[1])] {
        if !array.address.is_multiple_of(alignment) {
            return Err(CudaError::Misaligned { array: name, address: array.address, alignment });
        }
    }
    let (input_bytes, output_bytes) = (input.elements as u64 * alignments[0], output.elements as u64 * alignments[1]);
    let is_one_type = problem.types().is_some_and(|[from, _, to]| from == to);
    if is_one_type && input.address == output.address && input_bytes > 0 {
        return Ok(true);
    }
    if input.address < output.address + output_bytes && output.address < input.address + input_bytes {
        return Err(CudaError::PartialOverlap {
            input_address: input.address,
            input_bytes,
            output_address: output.address,
            output_bytes,
        });
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ElementType, Operator};

    fn problem(input: ElementType) -> Problem {
        Problem::accumulating(Operator::Sum, input, ElementType::U32).expect("a problem")
    }

    fn array(address: u64, elements: usize) -> Place {
        Place { address, elements }
    }

    fn same_or_apart(input: Place, output: Place) -> Result<bool, CudaError> {
        super::same_or_apart(problem(ElementType::U32), input, output)
    }

    #[test]
    fn arrays_of_two_types_are_apart_or_refused() {
        let widening = problem(ElementType::U8);
        assert!(!super::same_or_apart(widening, array(65, 15), array(80, 15)).expect("side by side"));
        for output in [array(64, 4), array(60, 4), array(76, 4)] {
            let refused = super::same_or_apart(widening, array(64, 16), output);
            assert!(matches!(refused, Err(CudaError::PartialOverlap { .. })), "{output:?}");
        }
        let misaligned = super::same_or_apart(widening, array(65, 4), array(82, 4));
        assert!(matches!(misaligned, Err(CudaError::Misaligned { array: "output", alignment: 4, .. })));
    }

    #[test]
    fn arrays_are_the_same_or_apart_or_refused() {
        assert!(same_or_apart(array(64, 4), array(64, 4)).expect("the same"));
        assert!(same_or_apart(array(64, 3), array(64, 4)).expect("the same, one longer"));
        assert!(!same_or_apart(array(64, 4), array(80, 4)).expect("side by side"));
        assert!(!same_or_apart(array(80, 4), array(64, 4)).expect("side by side"));
        assert!(!same_or_apart(array(64, 0), array(64, 1)).expect("no input at all"));
        for (input, output) in
            [(array(64, 4), array(76, 4)), (array(76, 4), array(64, 4)), (array(64, 8), array(68, 1))]
        {
            assert!(matches!(same_or_apart(input, output), Err(CudaError::PartialOverlap { .. })));
        }
        assert!(matches!(
            same_or_apart(array(64, 4), array(130, 4)),
            Err(CudaError::Misaligned { array: "output", .. })
        ));
    }

    #[test]
    fn a_scanner_may_be_shared_by_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Scanner>();
    }
}
