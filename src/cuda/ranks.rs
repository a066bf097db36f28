//! One scan over several GPUs: the ranks of a [`Group`], threads of this process or processes of their own, whose GPUs exchange
//! their totals by NCCL, or meet in each other's memory.
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use lookback::cuda::{GpuRanks, Scanner};
//! use lookback::element::{Definition, ElementType, Operator};
//! use lookback::ranks::{Group, Place};
//! use lookback::strategy::Mode;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Started by torchrun, mpirun or srun, one process a GPU.
//! let group = Group::join(&Place::from_environment()?, Duration::from_secs(60))?;
//! let context = CudaContext::new(group.local_rank())?;
//! let stream = context.new_stream()?;
//! let scanner = Scanner::new(&context)?;
//! let ranks = GpuRanks::new(group, &scanner, &stream)?;
//!
//! let sums = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::U32)?.define()?;
//! let shard = stream.clone_htod(&vec![1_u8; 1 << 20])?;
//! let mut sum = stream.alloc_zeros::<u32>(1 << 20)?;
//! ranks.scan(scanner.run(&stream, sums).input(&shard).output(&mut sum), Mode::Inclusive)?;
//! ranks.wait()?; // and not by the stream: a rank that is lost is an error here
//! ranks.finish()?;
//! # Ok(())
//! # }
//! ```
//!
//! A call puts all of its work onto the stream and waits for nothing, so that it may be captured into a graph. A kernel that
//! exchanges totals waits on the GPU for those of all ranks. Where one is lost, the group says so to a thread of this object, which
//! gives the communicator up: the kernel ends, what follows it on the stream computes nothing that means anything, and
//! [`GpuRanks::wait`] returns the error. `stream.synchronize()` would end then, too, and say nothing.

use super::error::{Context as _, CudaError};
use super::launch::is_capturing;
#[cfg(feature = "lab")]
pub(crate) use super::mailbox::are_linked;
use super::mailbox::{Mailbox, Shape as MailboxShape};
use super::memory::{Buffer, DeviceMemory};
use super::nccl::{Communicator, Handle, ID_BYTES, Nccl};
use super::run::{Guards, Run, StreamLender};
use super::scanner::Scanner;
use super::workspace::capacity_for;
use crate::abi;
use crate::element::Defined;
use crate::ranks::{Deal, Group};
use crate::strategy::call::{Call, Lent, Prepared};
use crate::strategy::launch::Addresses;
use crate::strategy::plan::{Plan, RegionKey, ScanRequest};
use crate::strategy::{CallError, ConfigError, Mode, Shape};
use bytemuck::Pod;
use cudarc::driver::result::DriverError;
use cudarc::driver::{CudaStream, DevicePtrMut, sys};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two states of this object's memory, whatever their size.
const PLACE_BYTES: u64 = 256;
/// No state that a total is taken of has more.
const MOST_TOTAL_BYTES: usize = abi::LOOKBACK_VECTOR_BYTES as usize;
/// Between two looks at the communicator's errors.
const LOOK: Duration = Duration::from_millis(100);
/// For the news of a lost rank to come, and for a call on the communicator to come back.
const MOMENT: Duration = Duration::from_secs(1);
/// For kernels to end once the communicator was given up.
const GRACE: Duration = Duration::from_secs(10);

/// This rank's part in scans over all ranks, on one stream; see the [module](self). All ranks make the same calls in the same order.
/// Graphs that have captured some are dropped before it.
pub struct GpuRanks {
    shared: Arc<Shared>,
    watch: Option<JoinHandle<()>>,
    stream: Arc<CudaStream>,
    memory: Arc<DeviceMemory>,
    /// The own total, the carry, and then the totals of all ranks.
    states: Buffer,
    /// Scans that were put onto the stream.
    calls: AtomicU64,
    nccl: Nccl,
}

/// What the thread has that gives the communicator up.
struct Shared {
    group: Group,
    communicator: Mutex<Option<Communicator>>,
    handle: Arc<Handle>,
    /// Of tiles that are dealt, for each kind of descriptors; the last one is in use, and graphs may have those before.
    mailboxes: Mutex<HashMap<RegionKey, Vec<Mailbox>>>,
    is_closing: AtomicBool,
    /// Whether all ranks are done, so that none writes into this one's memory any more.
    is_finished: AtomicBool,
}

impl GpuRanks {
    /// Joins the GPU of the scanner and the stream to those of the other ranks, and exchanges something once, so that no later call
    /// has to make connections.
    ///
    /// # Errors
    /// When there is no NCCL, a rank is lost or does not come to this in time, or the stream is of another GPU than the scanner.
    pub fn new(group: Group, scanner: &Scanner, stream: &Arc<CudaStream>) -> Result<Self, CudaError> {
        let made = Self::joined(&group, scanner, stream);
        match made {
            Ok((nccl, communicator, states)) => {
                let shared = Arc::new(Shared {
                    group,
                    handle: communicator.handle(),
                    communicator: Mutex::new(Some(communicator)),
                    mailboxes: Mutex::default(),
                    is_closing: AtomicBool::new(false),
                    is_finished: AtomicBool::new(false),
                });
                let watch = std::thread::spawn({
                    let shared = Arc::clone(&shared);
                    move || shared.watch()
                });
                let (stream, memory) = (Arc::clone(stream), Arc::clone(scanner.memory()));
                let calls = AtomicU64::new(0);
                let ranks = Self { shared, watch: Some(watch), stream, memory, states, calls, nccl };
                ranks.wait()?;
                Ok(ranks)
            }
            Err(error) => Err(told(&group, error)),
        }
    }

    fn joined(
        group: &Group,
        scanner: &Scanner,
        stream: &Arc<CudaStream>,
    ) -> Result<(Nccl, Communicator, Buffer), CudaError> {
        scanner.check_context("stream", stream.context())?;
        let nccl = Nccl::load()?;
        let states = scanner
            .memory()
            .allocate_zeroed(2 * PLACE_BYTES + (group.size() * MOST_TOTAL_BYTES) as u64, "the totals of ranks")?;
        let own_id = if group.rank() == 0 { nccl.unique_id()? } else { [0; ID_BYTES] };
        let ids = group.all_gather(&own_id)?;
        let id: [u8; ID_BYTES] = ids[..ID_BYTES].try_into().expect("rank 0 gave as many");
        let (rank, size) = (group.rank(), group.size());
        let (context, own_stream) = (Arc::clone(stream.context()), Arc::clone(stream));
        let (own, all) = (states.range(0, PLACE_BYTES), states.range(2 * PLACE_BYTES, 0));
        // Both wait for all ranks, for ever if one is lost meanwhile: a thread of its own is left behind then.
        let (tell_made, made) = mpsc::channel();
        std::thread::spawn(move || {
            let make = || -> Result<Communicator, CudaError> {
                context.bind_to_thread().during(|| String::from("making the context current"))?;
                let mut communicator = nccl.communicator(id, rank, size)?;
                // SAFETY: the memory has room for a state of each rank; it is not freed before the stream was waited for, or is
                // abandoned with the error of this. The stream is of this context.
                unsafe { communicator.all_gather(own, all, MOST_TOTAL_BYTES, &own_stream) }?;
                Ok(communicator)
            };
            let _ = tell_made.send(make()); // Nobody may wait any more.
        });
        let begin = Instant::now();
        loop {
            match made.recv_timeout(Duration::from_millis(20)) {
                Ok(made) => return Ok((nccl, made?, states)),
                Err(_) => {
                    let lost = group.check();
                    let lost =
                        if begin.elapsed() > group.timeout() { lost.and(Err(group.lose_the_last())) } else { lost };
                    if let Err(error) = lost {
                        // The thread may still come to use it.
                        std::mem::forget(states);
                        return Err(error.into());
                    }
                }
            }
        }
    }

    /// The group that this is a rank of.
    pub fn group(&self) -> &Group {
        &self.shared.group
    }

    /// The version of NCCL, `2.28.9`.
    ///
    /// # Errors
    /// When NCCL does not say.
    pub fn nccl_version(&self) -> Result<String, CudaError> {
        self.nccl.version()
    }

    /// Puts the scan of this rank's shard, the arrays of `run`, from what stands left of it, onto the stream. Shards may be empty.
    /// The place `i` of a definition's text is counted from the shard's first element. What is captured into a graph shares this
    /// object's memory with whatever else it puts onto the stream, so that the graph is launched on this stream, too, and by all
    /// ranks. Run it once before it is captured, so that kernels are loaded and NCCL has its connections.
    ///
    /// # Errors
    /// When a rank is lost or fails, a run on another stream, one that is rehearsed, segments, states before and behind, states of
    /// other than 1, 2, 4, 8 or 16 bytes, and as [`Run::inclusive`]. Every other rank has an error then, too.
    pub fn scan(&self, run: Run<'_>, mode: Mode) -> Result<(), CudaError> {
        self.telling(|| {
            let (scanner, mut call, guards) = self.opened(run)?;
            let (defined, rank) = (call.defined(), self.group().rank());
            let total = self.total_of(&call);
            // Of the second rank it is the total of the first one.
            let (carry, fold) = match rank {
                0 => (None, None),
                1 => (Some(self.gathered()), None),
                _ => {
                    (Some(self.carry()), Some(Prepared::of_states(defined, self.gathered(), rank as u64, self.carry())))
                }
            };
            if let Some(address) = carry {
                call.initial_state(Lent::states_of(defined.own_state_bytes(), address, 1));
            }
            self.put(scanner, defined, &[(total, Mode::Inclusive)], fold, &[(call, mode)])?;
            drop(guards);
            Ok(())
        })
    }

    /// Puts the scan of this rank's shard as if nothing stood before it onto the stream, and leaves beside it what does: at each
    /// place the state of the whole scan is `carry` ⊕ the state of the shard's, which whoever reads combines. An exclusive scan
    /// does not come by its last element, so that the shard is read once more for it.
    ///
    /// # Errors
    /// As [`Self::scan`], and a carry that is not one state in this GPU's memory.
    pub fn scan_deferred<T: Pod>(
        &self,
        run: Run<'_>,
        mode: Mode,
        carry: &mut impl DevicePtrMut<T>,
    ) -> Result<(), CudaError> {
        self.telling(|| {
            run.lender.scanner.check_context("carry", carry.stream().context())?;
            if carry.len() != 1 {
                let (scan, array, elements) =
                    (run.call.defined().to_string(), String::from("carry"), carry.len() as u64);
                return Err(CallError::States { scan, array, elements, expected: 1 }.into());
            }
            let (address, _written) = carry.device_ptr_mut(&self.stream);
            self.put_deferred(run, mode, (address, size_of::<T>()))
        })
    }

    /// The same into memory whose use the caller orders: an address and its bytes.
    #[cfg(feature = "lab")]
    pub(crate) fn scan_deferred_into(&self, run: Run<'_>, mode: Mode, carry: (u64, usize)) -> Result<(), CudaError> {
        self.telling(|| self.put_deferred(run, mode, carry))
    }

    fn put_deferred(&self, run: Run<'_>, mode: Mode, (address, given): (u64, usize)) -> Result<(), CudaError> {
        let (scanner, mut call, guards) = self.opened(run)?;
        let defined = call.defined();
        let bytes = defined.own_state_bytes();
        if bytes != given {
            let (scan, array) = (defined.to_string(), String::from("carry"));
            let error = CallError::StateBytes { scan, array, defined: bytes as u64, given: given as u64 };
            return Err(error.into());
        }
        let mut before = Vec::new();
        if mode != Mode::Inclusive || call.is_empty() {
            before.push((self.total_of(&call), Mode::Inclusive));
        } else {
            call.final_state(Lent::states_of(bytes, self.own(), 1));
        }
        before.push((call, mode));
        let fold = Prepared::of_states(defined, self.gathered(), self.group().rank() as u64, address);
        self.put(scanner, defined, &before, Some(fold), &[])?;
        drop(guards);
        Ok(())
    }

    /// Puts the scan of this rank's chunks of an array that is dealt, the arrays of `run`, onto the stream: tiles of all ranks are
    /// taken at once, and their descriptors lie in the memory of each. What NVLink connects meets so, on one host. Chunks are whole
    /// tiles, of which the ring of a GPU holds a few hundred: larger ones than all of these are waited for. The place `i` of a
    /// definition's text is counted from the rank's first element. `reproducible` gives the bits that one GPU gives. Kernels of all
    /// ranks run at one time, so that none may wait for what comes behind another rank's scan.
    ///
    /// The first call with more tiles than any before, and the first with states of another size, waits for all ranks, to exchange addresses. Graphs as for [`Self::scan`].
    ///
    /// # Errors
    /// When a GPU does not reach another one's memory, ranks deal otherwise, chunks are no whole tiles, an array has not as many elements as the deal gives
    /// the rank, and as [`Self::scan`].
    pub fn scan_cyclic(&self, run: Run<'_>, mode: Mode, deal: Deal) -> Result<(), CudaError> {
        self.telling(|| {
            let (scanner, mut call, guards) = self.of_stream(run)?;
            let hand = deal.hand(self.group().rank(), self.group().size());
            call.deal(hand)?;
            let Some((request, places)) = scanner.prepare_defined(call, mode)? else { return Ok(()) };
            if !is_capturing(&self.stream)? {
                // Before a kernel of another rank waits for this one's.
                scanner.warm(&self.stream, &request, places)?;
            }
            let tile = request.config.tile_elements();
            let places = self.with_mailbox(&request, [deal.n(), deal.chunk(), tile], places)?;
            self.group().advance(self.calls.fetch_add(1, Ordering::Relaxed) + 1);
            scanner.enqueue(&self.stream, &request, places)?;
            drop(guards);
            Ok(())
        })
    }

    /// Those of the descriptors that all ranks share, which are made where there are none or too few.
    fn with_mailbox(
        &self,
        request: &ScanRequest,
        elements: [u64; 3],
        places: Addresses,
    ) -> Result<Addresses, CudaError> {
        let plan = Plan::new(request)?;
        let key = RegionKey::of(&plan);
        let known = || {
            let mailboxes = locked(&self.shared.mailboxes);
            let last = mailboxes.get(&key).and_then(|mailboxes| mailboxes.last());
            last.filter(|mailbox| mailbox.holds(plan.descriptors)).map(Mailbox::places)
        };
        let found = match known() {
            Some(found) => found,
            None => {
                // As many at every rank, in two halves. Not under the lock, which whoever gives up takes.
                let capacity = 2 * capacity_for(plan.descriptors / 2);
                let shape = MailboxShape { capacity, descriptor_bytes: plan.descriptor_bytes, elements };
                let mailbox = Mailbox::exchange(self.group(), &self.memory, shape)?;
                let places = mailbox.places();
                locked(&self.shared.mailboxes).entry(key).or_default().push(mailbox);
                places
            }
        };
        let (control, descriptors, capacity, mailboxes) = found;
        Ok(Addresses { control, descriptors, capacity, mailboxes, ..places })
    }

    /// Waits until the stream has done all of it, for the group's time-out at most.
    ///
    /// # Errors
    /// When a rank is lost, or lets the others wait for too long, or work on the stream failed.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.memory.context().bind_to_thread().during(|| String::from("making the context current"))?;
        let begin = Instant::now();
        let waited = loop {
            let is_done = self.is_done();
            // Asked behind it, because a stream that was given up is done, too.
            if let Err(error) = self.group().check() {
                break Err(error.into());
            }
            match is_done {
                Ok(true) => break Ok(()),
                Ok(false) if begin.elapsed() > self.group().timeout() => {
                    break Err(self.group().lose_the_last().into());
                }
                Ok(false) => pause(begin),
                Err(error) => break Err(told(self.group(), error)),
            }
        };
        waited.inspect_err(|_| {
            self.shared.give_up_mailboxes();
            self.await_end();
        })
    }

    /// Waits for the stream, and leaves once all ranks have come to this.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn finish(self) -> Result<(), CudaError> {
        self.wait()?;
        self.group().barrier()?;
        // None writes into the memory of another one any more; none frees its own before all have let go of it.
        locked(&self.shared.mailboxes).values_mut().flatten().for_each(Mailbox::close);
        self.group().barrier()?;
        self.shared.is_finished.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether the stream has nothing more to do.
    fn is_done(&self) -> Result<bool, CudaError> {
        // SAFETY: the stream is alive and of the context that is current.
        match unsafe { sys::cuStreamQuery(self.stream.cu_stream()) } {
            sys::CUresult::CUDA_SUCCESS => Ok(true),
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            error => Err(CudaError::driver("waiting for a scan over ranks", DriverError(error))),
        }
    }

    /// Waits until the communicator was given up and the stream is done, so that memory may be freed. A launch that hangs even then
    /// is left alone, and so is its memory.
    fn await_end(&self) {
        let begin = Instant::now();
        while !self.is_done().unwrap_or(true) {
            if begin.elapsed() > GRACE {
                return self.memory.abandon();
            }
            pause(begin);
        }
    }

    fn own(&self) -> u64 {
        self.states.range(0, PLACE_BYTES)
    }

    fn carry(&self) -> u64 {
        self.states.range(PLACE_BYTES, PLACE_BYTES)
    }

    fn gathered(&self) -> u64 {
        self.states.range(2 * PLACE_BYTES, (self.group().size() * MOST_TOTAL_BYTES) as u64)
    }

    /// What a run is made of, if it is on this stream.
    fn of_stream<'a>(&self, run: Run<'a>) -> Result<(&'a Scanner, Call, Guards<'a>), CudaError> {
        let Run { lender, call, .. } = run;
        let StreamLender { scanner, stream, is_rehearsed, .. } = lender;
        let guards = lender.opened()?;
        if is_rehearsed {
            return Err(CudaError::Rehearsed);
        }
        scanner.check_context("stream", self.stream.context())?;
        if stream.cu_stream() != self.stream.cu_stream() {
            return Err(CudaError::OtherStream);
        }
        Ok((scanner, call, guards))
    }

    /// The same, if it is a shard.
    fn opened<'a>(&self, run: Run<'a>) -> Result<(&'a Scanner, Call, Guards<'a>), CudaError> {
        let (scanner, call, guards) = self.of_stream(run)?;
        call.check_shard()?;
        let state_bytes = call.defined().own_state_bytes();
        if !Shape::loads_states(state_bytes) {
            return Err(ConfigError::TotalOfStates { problem: call.defined().to_string(), state_bytes }.into());
        }
        Ok((scanner, call, guards))
    }

    /// What leaves the shard's total where the exchange takes it from.
    fn total_of(&self, call: &Call) -> Call {
        let mut total = call.clone().without_outputs();
        total.total(Lent::states_of(call.defined().own_state_bytes(), self.own(), 1));
        total
    }

    /// Puts all of it onto the stream: what comes before the exchange, the exchange, and what comes behind it.
    fn put(
        &self,
        scanner: &Scanner,
        defined: Defined,
        before: &[(Call, Mode)],
        fold: Option<Prepared>,
        after: &[(Call, Mode)],
    ) -> Result<(), CudaError> {
        let stream = &self.stream;
        let place = |fold: &Prepared| Addresses::over(fold.arrays);
        if !is_capturing(stream)? {
            // Kernels are loaded and memory is allocated before a kernel waits for other ranks, because both may wait for it.
            for (call, mode) in before.iter().chain(after) {
                scanner.scan_defined(stream, call.clone(), *mode, Scanner::warm)?;
            }
            if let Some(fold) = &fold {
                scanner.warm(stream, &fold.request, place(fold))?;
            }
        }
        for (call, mode) in before {
            scanner.scan_defined(stream, call.clone(), *mode, Scanner::enqueue)?;
        }
        self.gather(defined.own_state_bytes())?;
        if let Some(fold) = &fold {
            scanner.enqueue(stream, &fold.request, place(fold))?;
        }
        for (call, mode) in after {
            scanner.scan_defined(stream, call.clone(), *mode, Scanner::enqueue)?;
        }
        Ok(())
    }

    fn gather(&self, bytes: usize) -> Result<(), CudaError> {
        // Before the others can wait for it.
        self.group().advance(self.calls.fetch_add(1, Ordering::Relaxed) + 1);
        let mut communicator = locked(&self.shared.communicator);
        let Some(communicator) = communicator.as_mut() else {
            // It was given up because a rank is lost.
            return Err(self.group().check().err().unwrap_or_else(|| self.group().lose_the_last()).into());
        };
        // SAFETY: this object's memory has room for a state of no more than 16 bytes of each rank, which `opened` has
        // checked; it lives until the stream was waited for, or is abandoned. The stream is of the context, which
        // `scan_defined` has made current.
        unsafe { communicator.all_gather(self.own(), self.gathered(), bytes, &self.stream) }
    }

    fn telling<R>(&self, deed: impl FnOnce() -> Result<R, CudaError>) -> Result<R, CudaError> {
        self.group().check()?;
        deed().map_err(|error| told(self.group(), error))
    }
}

impl Drop for GpuRanks {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::Relaxed);
        if let Some(watch) = self.watch.take() {
            let _ = watch.join();
        }
        // Before the memory that its kernels use.
        let given_up = self.shared.give_up();
        self.shared.give_up_mailboxes();
        if self.memory.context().bind_to_thread().is_ok() && !self.memory.is_abandoned() {
            self.await_end();
        }
        // Not when it was given up before, or a graph still holds its work, for which NCCL waits.
        let _ = given_up.recv_timeout(GRACE);
        if !self.shared.is_finished.load(Ordering::Relaxed) {
            // Another rank may still write there.
            let mailboxes = std::mem::take(&mut *locked(&self.shared.mailboxes));
            mailboxes.into_values().flatten().for_each(Mailbox::leave);
        }
    }
}

impl Shared {
    /// Gives the communicator and the mailboxes up when a rank is lost.
    fn watch(&self) {
        while !self.is_closing.load(Ordering::Relaxed) {
            if self.group.await_loss(LOOK).is_err() {
                let given_up = self.give_up();
                self.give_up_mailboxes();
                // Whoever drops this waits for the thread: a process had better not end in the middle of it.
                let _ = given_up.recv_timeout(GRACE);
                return;
            }
            // Whoever has the lock is in a call that says as much.
            let mut communicator = self.communicator.try_lock().ok();
            let checked = communicator.as_mut().and_then(|communicator| communicator.as_mut()).map(Communicator::check);
            drop(communicator);
            if let Some(Err(error)) = checked {
                let _ = told(&self.group, error); // The loss that this is, or that is behind it, comes next.
            }
        }
    }

    /// Lets kernels end that wait for tiles of other ranks. What the driver says is not the reason why.
    fn give_up_mailboxes(&self) {
        for mailbox in locked(&self.mailboxes).values().flatten() {
            let _ = mailbox.give_up();
        }
    }

    /// Gives the communicator up on a thread of its own, because NCCL waits there for graphs that hold its work; kernels end at once.
    /// It says so when it is done.
    ///
    /// A call that is under way on another thread has the lock. It puts work onto the stream, so that it soon ends, unless the stream
    /// has no more room because of the very kernel that is to be ended: then NCCL is told to end both.
    fn give_up(&self) -> mpsc::Receiver<()> {
        let (done, is_done) = mpsc::channel();
        let begin = Instant::now();
        let taken = loop {
            match self.communicator.try_lock() {
                Ok(mut communicator) => break communicator.take(),
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner().take(),
                Err(TryLockError::WouldBlock) if begin.elapsed() > MOMENT => break None,
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let handle = Arc::clone(&self.handle);
        std::thread::spawn(move || {
            handle.give_up();
            drop(taken);
            let _ = done.send(()); // Nobody may wait any more.
        });
        is_done
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an error comes to. One of the driver or of NCCL may be what a lost rank leaves behind: then that is the error, once the
/// group has heard of it. Of another one all ranks are told.
fn told(group: &Group, error: CudaError) -> CudaError {
    let may_follow = matches!(error, CudaError::Driver { .. } | CudaError::Nccl { .. });
    match group.await_loss(if may_follow { MOMENT } else { Duration::ZERO }) {
        Err(lost) if may_follow => lost.into(),
        _ => {
            if !matches!(error, CudaError::Ranks(_)) {
                group.fail(&error.to_string());
            }
            error
        }
    }
}

/// Short work is polled, long work is slept for.
fn pause(since: Instant) {
    if since.elapsed() > Duration::from_millis(5) {
        std::thread::sleep(Duration::from_micros(200));
    } else {
        std::thread::yield_now();
    }
}
