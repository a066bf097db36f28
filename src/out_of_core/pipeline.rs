//! Chunks that are read, scanned and written at the same time, whatever the device.

use super::arrays::{HostArrays, Sink, Source};
use super::plan::{ChunkPlan, PlanError};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Devices that scan chunks. What a chunk needs on one of them and in staging memory is a slot, which one thread has.
pub trait ChunkDevice: Sync {
    /// Memory of a chunk, on one device.
    type Slot: Send;
    /// The state between two chunks, wherever it lies.
    type State: Send;
    /// What can go wrong.
    type Error: std::error::Error + Send + 'static;

    /// Before the first chunk: lays down the state that it starts from, if not from the identity.
    ///
    /// # Errors
    /// When the device fails.
    fn begin(&self, state: Option<&[u8]>) -> Result<Option<Self::State>, Self::Error>;

    /// The staging memory, laid out as [`ChunkPlan::host_layout`] says.
    fn staging<'a>(&self, slot: &'a mut Self::Slot) -> &'a mut [u8];

    /// Begins to copy so many elements of each input to the slot's device.
    ///
    /// # Errors
    /// When the device fails.
    fn upload(&self, slot: &mut Self::Slot, elements: u64) -> Result<(), Self::Error>;

    /// Begins to scan them from the state that the chunk before has left, maybe on another device, and to copy back what is stored
    /// and the state behind them, which is returned. Called for one chunk at a time, in their order, from the [`Self::begin`] on. A slot is
    /// not used again before [`Self::finish`].
    ///
    /// # Errors
    /// When the device fails.
    fn scan(
        &self,
        slot: &mut Self::Slot,
        elements: u64,
        before: Option<Self::State>,
    ) -> Result<Self::State, Self::Error>;

    /// Waits for what [`Self::scan`] began. Then outputs and state are in the staging memory.
    ///
    /// # Errors
    /// When the device fails.
    fn finish(&self, slot: &mut Self::Slot) -> Result<(), Self::Error>;
}

/// How far a scan has come: outputs up to there are valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Elements that are scanned and written.
    pub elements: u64,
    /// The state behind them, what a scan goes on from; empty before the first element.
    pub state: Vec<u8>,
}

/// What ended a scan early.
#[derive(Debug, thiserror::Error)]
pub enum Cause<E> {
    /// The source.
    #[error("cannot read the input")]
    Read(#[source] io::Error),
    /// The sink.
    #[error("cannot write the output")]
    Write(#[source] io::Error),
    /// Whoever was told of checkpoints.
    #[error("cannot keep how far the scan has come")]
    Keep(#[source] io::Error),
    /// The device.
    #[error(transparent)]
    Device(E),
    /// The scan cannot be run so.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// A scan that ended early.
#[derive(Debug, thiserror::Error)]
#[error("the scan stopped behind element {}", done.elements)]
pub struct Stopped<E: std::error::Error + 'static> {
    /// Up to here the outputs are valid.
    pub done: Checkpoint,
    /// Why it ended.
    #[source]
    pub cause: Box<Cause<E>>,
}

/// What is to be scanned.
pub struct Job<'a> {
    /// Where chunks come from.
    pub source: &'a dyn Source,
    /// Where they go.
    pub sink: &'a dyn Sink,
    /// Where an earlier run ended; the default begins at the beginning.
    pub start: Checkpoint,
    /// When this becomes true, chunks that are under way are ended, and no more are begun.
    pub stop: &'a AtomicBool,
    /// Whether chunks are read, scanned and written at the same time; else one after the other.
    pub is_overlapped: bool,
}

impl<'a> Job<'a> {
    /// All of the arrays, as fast as it goes, until `stop` becomes true.
    pub fn new(source: &'a dyn Source, sink: &'a dyn Sink, stop: &'a AtomicBool) -> Self {
        Self { source, sink, start: Checkpoint::default(), stop, is_overlapped: true }
    }
}

/// Scans what is left of the arrays, and tells `keep` of each checkpoint that is reached, on the calling thread, while chunks go on.
/// Returns the last one: of all elements, unless it was stopped.
///
/// # Errors
/// When a chunk cannot be read, scanned or written, or `keep` says so. Those before it are valid.
pub(crate) fn run<D: ChunkDevice>(
    device: &D,
    slots: &mut [D::Slot],
    plan: &ChunkPlan,
    job: Job<'_>,
    keep: &mut dyn FnMut(&Checkpoint) -> io::Result<()>,
) -> Result<Checkpoint, Stopped<D::Error>> {
    let Job { source, sink, start, stop, is_overlapped } = job;
    let begun = check_state(plan, &start)
        .map_err(Cause::from)
        .and_then(|()| device.begin((!start.state.is_empty()).then_some(&start.state[..])).map_err(Cause::Device));
    let state = match begun {
        Ok(state) => state,
        Err(cause) => return Err(Stopped { done: start, cause: Box::new(cause) }),
    };
    let begin = start.elements;
    let work = Work {
        device,
        plan,
        source,
        sink,
        stop,
        begin,
        chunks: plan.chunks_from(begin),
        progress: Mutex::new(Progress::begun(start, state)),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        let under_way = if is_overlapped { slots.len() } else { 1 };
        let slots = slots.iter_mut().take(under_way);
        let threads = slots.map(|slot| scope.spawn(|| work.take_chunks(slot))).count();
        work.observe(threads, keep);
    });
    let Progress { done, failure, .. } = work.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failure {
        None => Ok(done),
        Some((_, cause)) => Err(Stopped { done, cause: Box::new(cause) }),
    }
}

/// Has a device scan arrays of the host by `run`, if they are those that its plan asks for.
///
/// # Errors
/// Other arrays, and as [`run`].
pub(crate) fn scan_arrays<E: std::error::Error>(
    arrays: &HostArrays<'_>,
    plan: &ChunkPlan,
    run: impl FnOnce(Job<'_>) -> Result<Checkpoint, Stopped<E>>,
) -> Result<(), Stopped<E>> {
    let refused = |error| Stopped { done: Checkpoint::default(), cause: Box::new(Cause::Plan(error)) };
    arrays.check(plan).map_err(refused)?;
    run(Job::new(arrays, arrays, &AtomicBool::new(false))).map(drop)
}

fn check_state(plan: &ChunkPlan, start: &Checkpoint) -> Result<(), PlanError> {
    let (expected, given) = (plan.defined().own_state_bytes(), start.state.len());
    let is_right = if start.elements == 0 { given == 0 || given == expected } else { given == expected };
    if is_right { Ok(()) } else { Err(PlanError::State { scan: plan.defined().to_string(), expected, given }) }
}

/// What the threads share.
struct Work<'a, D: ChunkDevice> {
    device: &'a D,
    plan: &'a ChunkPlan,
    source: &'a dyn Source,
    sink: &'a dyn Sink,
    stop: &'a AtomicBool,
    /// Elements before the first chunk.
    begin: u64,
    chunks: u64,
    progress: Mutex<Progress<D>>,
    /// Whenever `progress` changes.
    changed: Condvar,
}

struct Progress<D: ChunkDevice> {
    /// The next chunk that a thread takes.
    next: u64,
    /// The next chunk whose scan is put onto a device.
    turn: u64,
    /// What it starts from.
    state: Option<D::State>,
    /// States behind chunks that are written, while one before them is not.
    written: BTreeMap<u64, Checkpoint>,
    /// Chunks up to here are written.
    chunks: u64,
    done: Checkpoint,
    /// Threads that have ended.
    ended: usize,
    /// The lowest chunk that failed, and why.
    failure: Option<(u64, Cause<D::Error>)>,
    /// Chunks from here on never get their turn.
    blocked_from: u64,
}

impl<D: ChunkDevice> Progress<D> {
    fn begun(done: Checkpoint, state: Option<D::State>) -> Self {
        Self {
            next: 0,
            turn: 0,
            state,
            written: BTreeMap::new(),
            chunks: 0,
            done,
            ended: 0,
            failure: None,
            blocked_from: u64::MAX,
        }
    }
}

/// Why a thread does not go on with its chunk.
enum Ending<E> {
    Failed(Cause<E>),
    /// One before it failed.
    Blocked,
}

impl<D: ChunkDevice> Work<'_, D> {
    fn locked(&self) -> MutexGuard<'_, Progress<D>> {
        // Whoever panicked has left it whole: it changes in single steps.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, progress: MutexGuard<'a, Progress<D>>) -> MutexGuard<'a, Progress<D>> {
        self.changed.wait(progress).unwrap_or_else(PoisonError::into_inner)
    }

    /// What each thread does.
    fn take_chunks(&self, slot: &mut D::Slot) {
        let mut life = Life { work: self, chunk: None };
        while let Some(chunk) = self.draw() {
            life.chunk = Some(chunk);
            let ending = self.process(slot, chunk);
            life.chunk = None;
            match ending {
                Ok(()) => {}
                Err(Ending::Blocked) => return,
                Err(Ending::Failed(cause)) => return self.fail(chunk, Some(cause)),
            }
        }
    }

    fn draw(&self) -> Option<u64> {
        let mut progress = self.locked();
        let goes_on = progress.failure.is_none()
            && progress.blocked_from == u64::MAX
            && progress.next < self.chunks
            && !self.stop.load(Ordering::Relaxed);
        goes_on.then(|| {
            progress.next += 1;
            progress.next - 1
        })
    }

    /// A chunk's five steps.
    fn process(&self, slot: &mut D::Slot, chunk: u64) -> Result<(), Ending<D::Error>> {
        let elements = self.plan.chunk(self.begin, chunk);
        let count = elements.end - elements.start;
        let layout = self.plan.host_layout();
        for (array, (place, bytes)) in layout.inputs.iter().zip(self.plan.input_bytes()).enumerate() {
            let into = &mut self.device.staging(slot)[part(place, count * bytes)];
            self.source
                .read(array, elements.start * bytes, into)
                .map_err(|error| Ending::Failed(Cause::Read(error)))?;
        }
        let of_device = |error| Ending::Failed(Cause::Device(error));
        self.device.upload(slot, count).map_err(of_device)?;
        let before = self.wait_for_turn(chunk)?;
        let behind = self.device.scan(slot, count, before).map_err(of_device)?;
        self.hand_on(behind);
        self.device.finish(slot).map_err(of_device)?;
        let staging = self.device.staging(slot);
        let state = staging[self.plan.host_state()].to_vec();
        for (array, (place, bytes)) in layout.outputs.iter().zip(self.plan.output_bytes()).enumerate() {
            self.sink
                .write(array, elements.start * bytes, &staging[part(place, count * bytes)])
                .map_err(|error| Ending::Failed(Cause::Write(error)))?;
        }
        self.is_written(chunk, Checkpoint { elements: elements.end, state });
        Ok(())
    }

    /// Returns what the chunk starts from.
    fn wait_for_turn(&self, chunk: u64) -> Result<Option<D::State>, Ending<D::Error>> {
        let mut progress = self.locked();
        while progress.turn != chunk {
            if progress.blocked_from <= chunk {
                return Err(Ending::Blocked);
            }
            progress = self.wait(progress);
        }
        Ok(progress.state.take())
    }

    fn hand_on(&self, state: D::State) {
        let mut progress = self.locked();
        progress.turn += 1;
        progress.state = Some(state);
        drop(progress);
        self.changed.notify_all();
    }

    fn is_written(&self, chunk: u64, checkpoint: Checkpoint) {
        let mut progress = self.locked();
        progress.written.insert(chunk, checkpoint);
        while let Some(done) = {
            let chunks = progress.chunks;
            progress.written.remove(&chunks)
        } {
            progress.chunks += 1;
            progress.done = done;
        }
        drop(progress);
        self.changed.notify_all();
    }

    /// A chunk that comes to no end; `None` where its thread panicked, which the scope passes on.
    fn fail(&self, chunk: u64, cause: Option<Cause<D::Error>>) {
        let mut progress = self.locked();
        if progress.turn <= chunk || cause.is_none() {
            progress.blocked_from = progress.blocked_from.min(chunk);
        }
        let is_first = progress.failure.as_ref().is_none_or(|(earlier, _)| chunk < *earlier);
        if let Some(cause) = cause.filter(|_| is_first) {
            progress.failure = Some((chunk, cause));
        }
        drop(progress);
        self.changed.notify_all();
    }

    /// Tells of checkpoints until all threads have ended.
    fn observe(&self, threads: usize, keep: &mut dyn FnMut(&Checkpoint) -> io::Result<()>) {
        let mut told = self.begin;
        let mut progress = self.locked();
        loop {
            let has_ended = progress.ended == threads;
            if progress.done.elements > told {
                let done = progress.done.clone();
                told = done.elements;
                drop(progress);
                let kept = keep(&done);
                progress = self.locked();
                if let Err(error) = kept {
                    // In front of all others: what is behind it is not kept either.
                    progress.failure = Some((0, Cause::Keep(error)));
                    // No more is told.
                    told = u64::MAX;
                }
            } else if has_ended {
                return;
            } else {
                progress = self.wait(progress);
            }
        }
    }
}

/// Says of a thread that it has ended, in whatever way.
struct Life<'a, 'b, D: ChunkDevice> {
    work: &'a Work<'b, D>,
    /// The one that it is at.
    chunk: Option<u64>,
}

impl<D: ChunkDevice> Drop for Life<'_, '_, D> {
    fn drop(&mut self) {
        if let Some(chunk) = self.chunk {
            self.work.fail(chunk, None);
        }
        self.work.locked().ended += 1;
        self.work.changed.notify_all();
    }
}

/// Reads and writes by the same threads and chunks, and scans nothing: what a disk does by itself.
///
/// # Errors
/// What cannot be read or written.
pub fn copy(plan: &ChunkPlan, job: Job<'_>) -> Result<Checkpoint, Stopped<Infallible>> {
    let slot = || vec![0; plan.host_layout().bytes as usize];
    let mut slots: Vec<_> = (0..plan.chunks_under_way()).map(|_| slot()).collect();
    run(&NoDevice, &mut slots, plan, job, &mut |_| Ok(()))
}

struct NoDevice;

impl ChunkDevice for NoDevice {
    type Slot = Vec<u8>;
    type State = ();
    type Error = Infallible;

    fn begin(&self, _state: Option<&[u8]>) -> Result<Option<()>, Infallible> {
        Ok(None)
    }

    fn staging<'a>(&self, slot: &'a mut Vec<u8>) -> &'a mut [u8] {
        slot
    }

    fn upload(&self, _slot: &mut Vec<u8>, _elements: u64) -> Result<(), Infallible> {
        Ok(())
    }

    fn scan(&self, _slot: &mut Vec<u8>, _elements: u64, _before: Option<()>) -> Result<(), Infallible> {
        Ok(())
    }

    fn finish(&self, _slot: &mut Vec<u8>) -> Result<(), Infallible> {
        Ok(())
    }
}

/// What copies between staging memory and all devices of a scan do by themselves, in bytes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyRates {
    /// To the devices.
    pub to_device: f64,
    /// From the devices.
    pub from_device: f64,
    /// Each of both at the same time.
    pub each_way_at_once: f64,
}

/// The first bytes of an array in staging memory.
fn part(place: &Range<u64>, bytes: u64) -> Range<usize> {
    place.start as usize..(place.start + bytes) as usize
}
