//! Runs of scans over the device's memory: how its arrays are lent, and what is put onto a stream.

use super::error::{Context as _, CudaError};
use super::scanner::{Deed, Scanner};
use crate::element::{Defined, Element, ElementType, Operator, Problem};
use crate::run::lending::{Place, Role};
use crate::run::{AnyScanner, Lends, LendsMut, Memory};
use crate::strategy::{ConfigError, Mode, check_lengths};
use bytemuck::Pod;
use cudarc::driver::sys::CUresult;
use cudarc::driver::{
    CudaSlice, CudaStream, CudaViewMut, DevicePtr, DevicePtrMut, DeviceRepr, DriverError, SyncOnDrop, result,
};
use std::sync::Arc;

/// A number that arrays may hold: one of [`ElementType::NUMBERS`] or [`ElementType::HALVES`].
pub trait ScanElement: DeviceRepr + Element {}
impl<T: DeviceRepr + Element> ScanElement for T {}

/// The memory of a GPU, of which arrays are lent as cudarc lends them.
#[derive(Debug, Clone, Copy)]
pub struct GpuMemory;

/// A [run](crate::run::Run) over a GPU's memory, made by [`Scanner::run`].
pub type Run<'a> = crate::run::Run<'a, GpuMemory>;

/// What a run on a stream has been lent.
pub struct StreamLender<'a> {
    pub(super) scanner: &'a Scanner,
    pub(super) stream: &'a Arc<CudaStream>,
    /// Nothing is launched.
    pub(super) is_rehearsed: bool,
    /// They order the arrays' events behind the launch.
    guards: Guards<'a>,
    error: Option<CudaError>,
}

pub(super) type Guards<'a> = Vec<SyncOnDrop<'a>>;

impl<'a> StreamLender<'a> {
    pub(super) fn new(scanner: &'a Scanner, stream: &'a Arc<CudaStream>) -> Self {
        let error = scanner.check_context("stream", stream.context()).err();
        Self { scanner, stream, is_rehearsed: false, guards: Vec::new(), error }
    }

    /// The guards, which hold the arrays' events until the launches are on the stream.
    ///
    /// # Errors
    /// When something that was lent is of another context.
    pub(super) fn opened(self) -> Result<Guards<'a>, CudaError> {
        self.error.map_or(Ok(self.guards), Err)
    }

    /// Whether the array may be asked for its address: an event of another context cannot be recorded on the stream.
    fn takes<T>(&mut self, what: &'static str, array: &impl cudarc::driver::DeviceSlice<T>) -> bool {
        if self.error.is_none() {
            self.error = self.scanner.check_context(what, array.stream().context()).err();
        }
        self.error.is_none()
    }

    fn hold(&mut self, guard: SyncOnDrop<'a>) {
        // Without cudarc's event tracking they do nothing.
        if !matches!(guard, SyncOnDrop::Record(None) | SyncOnDrop::Sync(None)) {
            self.guards.push(guard);
        }
    }
}

impl<T, A: DevicePtr<T>> Lends<GpuMemory, T> for A {
    fn count(&self) -> usize {
        self.len()
    }

    fn lend<'a>(&'a self, lender: &mut StreamLender<'a>, _: Role) -> Place {
        let elements = self.len();
        if !lender.takes("input", self) {
            return Place { address: 0, elements };
        }
        let (address, guard) = self.device_ptr(lender.stream);
        lender.hold(guard);
        Place { address, elements }
    }
}

impl<T, A: DevicePtrMut<T>> LendsMut<GpuMemory, T> for A {
    fn count_mut(&mut self) -> usize {
        self.len()
    }

    fn lend_mut<'a>(&'a mut self, lender: &mut StreamLender<'a>, _: Role) -> Place {
        let elements = self.len();
        if !lender.takes("output", self) {
            return Place { address: 0, elements };
        }
        let (address, guard) = self.device_ptr_mut(lender.stream);
        lender.hold(guard);
        Place { address, elements }
    }
}

impl Memory for GpuMemory {
    type Error = CudaError;
    type Lender<'a> = StreamLender<'a>;

    fn launch(run: Run<'_>, mode: Mode) -> Result<(), CudaError> {
        let Run { lender, call, .. } = run;
        let of_nothing = call.counts_of_nothing();
        let StreamLender { scanner, stream, is_rehearsed, .. } = lender;
        let guards = lender.opened()?;
        if is_rehearsed {
            return scanner.scan_defined(stream, call, mode, Scanner::warm).map(drop);
        }
        scanner.scan_defined(stream, call, mode, Scanner::enqueue)?;
        // What is counted of no elements, for which nothing is launched, is 0 all the same.
        let counted = of_nothing.map_or(Ok(()), |(address, bytes)| {
            // SAFETY: the counts were lent to this run, whose guards are still held: their memory lives, and nobody else uses it
            // before the stream has come here. It is of the stream's context, which is current.
            unsafe { result::memset_d8_async(address, 0, bytes as usize, stream.cu_stream()) }
                .during(|| String::from("counting no elements"))
        });
        drop(guards);
        counted
    }
}

impl Run<'_> {
    /// Makes ready for the same run, and launches nothing: see [`Scanner::warm_up`]. What is no scan has one mode, and does not look at
    /// `mode`. Returns the bytes of the stream's workspace, 0 if there are no elements.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn warm_up(self, mode: Mode) -> Result<u64, CudaError> {
        let Self { lender, mut call, .. } = self;
        let mode = call.as_defined(mode);
        let StreamLender { scanner, stream, .. } = lender;
        let _guards = lender.opened()?;
        scanner.scan_defined(stream, call, mode, Scanner::warm)
    }
}

impl Scanner {
    /// `output[i] = input[0] ⊕ … ⊕ input[i]`, put onto `stream`. Of two types the scan is in that of the output, in which
    /// bytes may be counted; `half::f16` and `half::bf16` are scanned in `f32`: [`Problem::accumulating`].
    ///
    /// # Errors
    /// Lengths that differ, an operator that the type does not have, types that cannot be converted, a stream or array of
    /// another context, arrays that overlap, a kernel that cannot be compiled, not enough memory for a workspace. Nothing
    /// was launched then.
    pub fn inclusive<T: ScanElement, U: ScanElement>(
        &self,
        stream: &Arc<CudaStream>,
        operator: Operator,
        input: &impl DevicePtr<T>,
        output: &mut impl DevicePtrMut<U>,
    ) -> Result<(), CudaError> {
        self.out_of_place(stream, (operator, Mode::Inclusive), input, output, Self::enqueue)
    }

    /// `output[i] = input[0] ⊕ … ⊕ input[i−1]`, `output[0]` the identity, put onto `stream`. The input may be
    /// one element shorter than the output: n counts give n + 1 offsets.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn exclusive<T: ScanElement, U: ScanElement>(
        &self,
        stream: &Arc<CudaStream>,
        operator: Operator,
        input: &impl DevicePtr<T>,
        output: &mut impl DevicePtrMut<U>,
    ) -> Result<(), CudaError> {
        self.out_of_place(stream, (operator, Mode::Exclusive), input, output, Self::enqueue)
    }

    /// Makes ready for [`Self::inclusive`] or [`Self::exclusive`] with these arrays, and launches nothing: kernels are compiled
    /// and loaded, and the stream has a workspace, whose bytes are returned. From then on that call compiles nothing,
    /// allocates nothing and waits for nothing, until [`Self::forget`]. A call that is captured gets a workspace of its own,
    /// for the graph.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn warm_up<T: ScanElement, U: ScanElement>(
        &self,
        stream: &Arc<CudaStream>,
        operator: Operator,
        mode: Mode,
        input: &impl DevicePtr<T>,
        output: &mut impl DevicePtrMut<U>,
    ) -> Result<u64, CudaError> {
        self.out_of_place(stream, (operator, mode), input, output, Self::warm)
    }

    /// The scan of an array into itself, put onto `stream`.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn in_place<T: ScanElement>(
        &self,
        stream: &Arc<CudaStream>,
        operator: Operator,
        mode: Mode,
        data: &mut impl DevicePtrMut<T>,
    ) -> Result<(), CudaError> {
        self.scan_in_place(stream, (operator, mode), data, Self::enqueue)
    }

    /// A scan that was [defined](crate::element::Definition), whose arrays are named one after the other.
    pub fn run<'a>(&'a self, stream: &'a Arc<CudaStream>, defined: Defined) -> Run<'a> {
        Run::new(StreamLender::new(self, stream), defined)
    }

    /// This scanner on a stream, for functions that are generic over [`AnyScanner`].
    pub fn on<'a>(&'a self, stream: &'a Arc<CudaStream>) -> OnStream<'a> {
        OnStream { scanner: self, stream, is_rehearsed: false }
    }

    fn out_of_place<T: Element, U: Element, R: Default>(
        &self,
        stream: &Arc<CudaStream>,
        (operator, mode): (Operator, Mode),
        input: &(impl Lends<GpuMemory, T> + ?Sized),
        output: &mut (impl LendsMut<GpuMemory, U> + ?Sized),
        deed: Deed<R>,
    ) -> Result<R, CudaError> {
        let mut lender = StreamLender::new(self, stream);
        // Before anything waits for the arrays.
        let problem = problem(operator, T::ELEMENT, U::ELEMENT)?;
        check_lengths(mode, input.count(), output.count_mut())?;
        let input = input.lend(&mut lender, Role::Elements);
        let output = output.lend_mut(&mut lender, Role::Elements);
        let _guards = lender.opened()?;
        self.scan(stream, (problem, mode), input, output, deed)
    }

    fn scan_in_place<T: Element>(
        &self,
        stream: &Arc<CudaStream>,
        (operator, mode): (Operator, Mode),
        data: &mut (impl LendsMut<GpuMemory, T> + ?Sized),
        deed: Deed<()>,
    ) -> Result<(), CudaError> {
        let mut lender = StreamLender::new(self, stream);
        let problem = problem(operator, T::ELEMENT, T::ELEMENT)?;
        let array = data.lend_mut(&mut lender, Role::InPlace);
        let _guards = lender.opened()?;
        self.scan(stream, (problem, mode), array, array, deed)
    }
}

fn problem(operator: Operator, input: ElementType, output: ElementType) -> Result<Problem, CudaError> {
    Ok(Problem::accumulating(operator, input, output).map_err(ConfigError::from)?)
}

/// A scanner whose scans are put onto one stream; made by [`Scanner::on`].
#[derive(Clone, Copy)]
pub struct OnStream<'s> {
    scanner: &'s Scanner,
    stream: &'s Arc<CudaStream>,
    is_rehearsed: bool,
}

impl OnStream<'_> {
    /// The same, but that scans and runs are made ready, as by [`Scanner::warm_up`], and not launched. A function that is generic over
    /// [`AnyScanner`] and was called with it compiles and allocates nothing for its scans from then on; arrays that it makes are made,
    /// and keep what they hold. Scans over ranks are not rehearsed: [`CudaError::Rehearsed`].
    #[must_use]
    pub fn rehearsing(self) -> Self {
        Self { is_rehearsed: true, ..self }
    }

    /// What is done with scans of numbers.
    fn deed(self) -> Deed<()> {
        match self.is_rehearsed {
            true => |scanner, stream, request, places| scanner.warm(stream, request, places).map(drop),
            false => Scanner::enqueue,
        }
    }

    /// Room for so many elements, whose bytes `fill` writes.
    fn made<T: Pod>(
        self,
        elements: usize,
        fill: impl FnOnce(&mut CudaViewMut<'_, u8>) -> Result<(), DriverError>,
    ) -> Result<CudaSlice<T>, CudaError> {
        self.scanner.check_context("stream", self.stream.context())?;
        let bytes = elements.saturating_mul(size_of::<T>());
        let during = || format!("making an array of {bytes} bytes");
        // An allocation of nothing is an error of the driver.
        // SAFETY: all that is asked for is written below.
        let memory = match unsafe { self.stream.alloc::<u8>(bytes.max(1)) } {
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                let available_bytes = self.scanner.memory().free_bytes()?;
                let (what, needed_bytes) = (String::from("an array"), bytes as u64);
                return Err(CudaError::OutOfMemory { what, needed_bytes, available_bytes });
            }
            made => made.during(during)?,
        };
        // SAFETY: an allocation of that many bytes, which nothing else owns any more and any bits of which are elements: `Pod`.
        let mut array: CudaSlice<T> = unsafe { self.stream.upgrade_device_ptr(memory.leak(), elements) };
        // The array's own events are recorded so, and other streams wait for what is written.
        // SAFETY: elements are as many bytes: `Pod`.
        if let Some(mut view) = unsafe { array.transmute_mut::<u8>(bytes) }.filter(|_| bytes > 0) {
            fill(&mut view).during(during)?;
        }
        Ok(array)
    }
}

impl AnyScanner for OnStream<'_> {
    type Error = CudaError;
    type Memory = GpuMemory;
    type Array<T: Pod> = CudaSlice<T>;

    fn array<T: Pod>(&mut self, elements: &[T]) -> Result<CudaSlice<T>, CudaError> {
        let bytes: &[u8] = bytemuck::cast_slice(elements);
        self.made(elements.len(), |memory| self.stream.memcpy_htod(bytes, memory))
    }

    fn zeros<T: Pod>(&mut self, elements: usize) -> Result<CudaSlice<T>, CudaError> {
        self.made(elements, |memory| self.stream.memset_zeros(memory))
    }

    fn read<T: Pod>(&mut self, array: &CudaSlice<T>) -> Result<Vec<T>, CudaError> {
        self.scanner.check_context("stream", self.stream.context())?;
        self.scanner.check_context("input", array.context())?;
        let mut elements = vec![T::zeroed(); array.len()];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut elements);
        // SAFETY: any element is as many bytes: `Pod`.
        if let Some(view) = unsafe { array.transmute::<u8>(bytes.len()) }.filter(|_| !bytes.is_empty()) {
            self.stream.memcpy_dtoh(&view, bytes).during(|| String::from("reading an array"))?;
        }
        self.stream.synchronize().during(|| String::from("waiting for earlier scans"))?;
        Ok(elements)
    }

    fn check(&mut self) -> Result<(), CudaError> {
        self.scanner.check(self.stream)
    }

    fn run(&mut self, defined: Defined) -> Run<'_> {
        let mut run = self.scanner.run(self.stream, defined);
        run.lender.is_rehearsed = self.is_rehearsed;
        run
    }

    fn scan<T: Element, U: Element>(
        &mut self,
        operator: Operator,
        mode: Mode,
        input: &(impl Lends<GpuMemory, T> + ?Sized),
        output: &mut (impl LendsMut<GpuMemory, U> + ?Sized),
    ) -> Result<(), CudaError> {
        self.scanner.out_of_place(self.stream, (operator, mode), input, output, self.deed())
    }

    fn in_place<T: Element>(
        &mut self,
        operator: Operator,
        mode: Mode,
        data: &mut (impl LendsMut<GpuMemory, T> + ?Sized),
    ) -> Result<(), CudaError> {
        self.scanner.scan_in_place(self.stream, (operator, mode), data, self.deed())
    }
}
