//! Runs of scans that a user has defined, over the device's memory.

use super::error::{Context as _, CudaError};
use super::scanner::{Deed, Scanner};
use crate::element::{ArrayElement, Defined, Element, Verb, WholeNumber};
use crate::strategy::Mode;
use crate::strategy::call::{Call, Lent, methods_without_arrays};
use bytemuck::Pod;
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop, result};
use std::sync::Arc;

/// A run of a defined scan that is being put together: arrays are named one after the other, and [`Run::inclusive`],
/// [`Run::exclusive`] or the function that is named by what is defined puts it onto the stream: [`Run::compact`], [`Run::sort`],
/// [`Run::histogram`], [`Run::expand`], [`Run::scatter`]. Made by [`Scanner::run`].
///
/// ```no_run
/// # use bytemuck::{Pod, Zeroable};
/// # use cudarc::driver::CudaContext;
/// # use lookback::{cuda::Scanner, element::Definition};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let context = CudaContext::new(0)?;
/// # let stream = context.new_stream()?;
/// # let scanner = Scanner::new(&context)?;
/// let a = stream.clone_htod(&[0.5_f32, 0.5, 0.5, 0.5])?;
/// let b = stream.clone_htod(&[1.0_f32, 1.0, 1.0, 1.0])?;
/// let mut h = stream.alloc_zeros::<f32>(4)?;
/// let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
/// scanner.run(&stream, recurrence).input(&a).input(&b).output(&mut h).inclusive()?;
/// assert_eq!(stream.clone_dtoh(&h)?, [1.0, 1.5, 1.75, 1.875]);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing runs before `inclusive`, `exclusive`, or what is named by the definition is called"]
pub struct Run<'a> {
    scanner: &'a Scanner,
    stream: &'a Arc<CudaStream>,
    call: Call,
    /// They order the arrays' events behind the launch.
    guards: Guards<'a>,
    error: Option<CudaError>,
}

pub(super) type Guards<'a> = Vec<SyncOnDrop<'a>>;

impl Scanner {
    /// A scan that was [defined](crate::element::Definition), whose arrays are named one after the other.
    pub fn run<'a>(&'a self, stream: &'a Arc<CudaStream>, defined: Defined) -> Run<'a> {
        let error = self.check_context("stream", stream.context()).err();
        Run { scanner: self, stream, call: Call::new(defined), guards: Vec::new(), error }
    }
}

impl<'a> Run<'a> {
    /// The next array of those that are loaded, in the order of the definition.
    pub fn input<T: ArrayElement>(mut self, array: &'a impl DevicePtr<T>) -> Self {
        let (address, elements) = self.lend(array);
        self.call.input(Lent::array::<T>(address, elements));
        self
    }

    /// The next array of those that are stored.
    pub fn output<T: ArrayElement>(mut self, array: &'a mut impl DevicePtrMut<T>) -> Self {
        let (address, elements) = self.lend_to_write(array);
        self.call.output(Lent::array::<T>(address, elements));
        self
    }

    /// An array that is the next one to be loaded and the next one to be stored.
    pub fn in_place<T: ArrayElement>(mut self, array: &'a mut impl DevicePtrMut<T>) -> Self {
        let (address, elements) = self.lend_to_write(array);
        self.call.in_place(Lent::array::<T>(address, elements));
        self
    }

    methods_without_arrays!();

    /// Scans each run of equal neighbouring keys by itself.
    pub fn by_key<T: Element>(mut self, keys: &'a impl DevicePtr<T>) -> Self {
        let (address, elements) = self.lend(keys);
        self.call.keys(T::ELEMENT, Lent::array::<T>(address, elements));
        self
    }

    /// Scans anew from each element whose flag is not 0, in the direction of the scan.
    pub fn head_flags(mut self, flags: &'a impl DevicePtr<u8>) -> Self {
        let (address, elements) = self.lend(flags);
        self.call.head_flags(Lent::array::<u8>(address, elements));
        self
    }

    /// Scans each segment between neighbouring offsets by itself: s + 1 offsets of s segments, the first one 0, none less than
    /// the one before, the last one the number of elements. Segments may be empty. Of an expansion they are items, and outputs may have
    /// more elements than the last one says. What is wrong with them the device finds
    /// out: [`Scanner::check`] says so; nothing is written beside the arrays then.
    pub fn offsets<T: WholeNumber>(mut self, offsets: &'a impl DevicePtr<T>) -> Self {
        let (address, elements) = self.lend(offsets);
        self.call.offsets(Lent::array::<T>(address, elements));
        self
    }

    /// Scans the first elements of the arrays, as many as this one number in the device's memory says when the scan begins;
    /// what lies behind them is neither read nor written. Of a number that is larger than the arrays, or no whole rows, as many
    /// count as there are: [`Scanner::check`] says so. Of none, a final state is left as it is.
    /// Of an expansion it counts items, which have one offset more.
    pub fn count_from<T: WholeNumber>(mut self, count: &'a impl DevicePtr<T>) -> Self {
        let (address, elements) = self.lend(count);
        self.call.count(Lent::array::<T>(address, elements));
        self
    }

    /// What [`Self::initial`] names, from the device's memory, as [`Self::final_state`] of an earlier run has left it: one state, or one a row.
    pub fn initial_from<T: Pod>(mut self, states: &'a impl DevicePtr<T>) -> Self {
        let (address, elements) = self.lend(states);
        self.call.initial_state(Lent::states::<T>(address, elements));
        self
    }

    /// Where the state at the last element goes, in the device's memory: one state, or one a row. It is the state that the
    /// last output was stored from. An exclusive scan that is to go on therefore has one input less than outputs, which one
    /// that is reversed or in segments cannot have.
    pub fn final_state<T: Pod>(mut self, states: &'a mut impl DevicePtrMut<T>) -> Self {
        let (address, elements) = self.lend_to_write(states);
        self.call.final_state(Lent::states::<T>(address, elements));
        self
    }

    /// Where the number of elements goes that a compaction keeps: one number in the device's memory, which
    /// [`Self::count_from`] of a next run takes. It is 8 bytes long if there are 2^31 elements or more.
    pub fn count_into<T: WholeNumber>(mut self, number: &'a mut impl DevicePtrMut<T>) -> Self {
        let (address, elements) = self.lend_to_write(number);
        self.call.kept(Lent::array::<T>(address, elements));
        self
    }

    /// Each output's element has the state that ends with the input's.
    ///
    /// # Errors
    /// Arrays of other types, numbers or lengths than defined, overlapping ones, rows that do not fill the array, text that
    /// does not compile, a definition that is compacted, and as [`Scanner::inclusive`]. Nothing was launched then.
    pub fn inclusive(self) -> Result<(), CudaError> {
        self.scan(Mode::Inclusive, Scanner::enqueue)
    }

    /// Stores side by side what the definition keeps, a [`Definition::filter`](crate::element::Definition::filter) or one of
    /// [`groups`](crate::element::Definition::groups): each output has as many elements as the inputs, or more, unless the
    /// others fill it; those behind what is kept stay as they are. No output is an input.
    ///
    /// # Errors
    /// Segments, states before and behind, a number of less than 8 bytes where 2^31 elements may be kept, a definition that is
    /// scanned, and as [`Self::inclusive`]. Nothing was launched then.
    pub fn compact(mut self) -> Result<(), CudaError> {
        self.call.ask_for(Verb::Compact);
        self.scan_and_count_nothing()
    }

    /// Counts what falls into the bins of a [`Definition::binned`](crate::element::Definition::binned), into one output of as many
    /// elements as there are bins.
    ///
    /// # Errors
    /// What a scan alone has, a definition that counts nothing, and as [`Self::inclusive`]. Nothing was launched then.
    pub fn histogram(mut self) -> Result<(), CudaError> {
        self.call.ask_for(Verb::Histogram);
        self.scan_and_count_nothing()
    }

    /// What is counted of no elements, for which nothing is launched, is 0 all the same.
    fn scan_and_count_nothing(self) -> Result<(), CudaError> {
        let of_nothing = self.call.counts_of_nothing();
        self.scan_then(Mode::Inclusive, Scanner::enqueue, |stream| {
            let Some((address, bytes)) = of_nothing else { return Ok(()) };
            // SAFETY: the counts were lent to this run, whose guards are still held: their memory lives, and nobody else uses it
            // before the stream has come here. It is of the stream's context, which is current.
            unsafe { result::memset_d8_async(address, 0, bytes as usize, stream.cu_stream()) }
                .during(|| String::from("counting no elements"))
        })
    }

    /// Sorts, as a [`Definition::sort`](crate::element::Definition::sort) says, into arrays that are no inputs and have as many
    /// elements. Equal keys stay in their order.
    ///
    /// # Errors
    /// What a scan alone has, a definition that sorts nothing, and as [`Self::inclusive`]. Nothing was launched then.
    pub fn sort(mut self) -> Result<(), CudaError> {
        self.call.ask_for(Verb::Sort);
        self.scan(Mode::Inclusive, Scanner::enqueue)
    }

    /// Stores what offsets share out, as a [`Definition::expansion`](crate::element::Definition::expansion) says: `offsets` names one
    /// more than there are items, rising from 0 to the number of places. Outputs have as many elements or more, and those behind stay as
    /// they are; inputs have one for each item.
    ///
    /// # Errors
    /// No offsets, what a scan alone has, a definition that shares nothing out, and as [`Self::inclusive`]. Nothing was launched then.
    pub fn expand(mut self) -> Result<(), CudaError> {
        self.call.ask_for(Verb::Expand);
        self.scan(Mode::Inclusive, Scanner::enqueue)
    }

    /// Moves elements where a [`Definition::scattered`](crate::element::Definition::scattered) says. Outputs are no inputs, and may have any
    /// length.
    ///
    /// # Errors
    /// What a scan alone has, a definition that moves nothing so, and as [`Self::inclusive`]. Nothing was launched then.
    pub fn scatter(mut self) -> Result<(), CudaError> {
        self.call.ask_for(Verb::Scatter);
        self.scan(Mode::Inclusive, Scanner::enqueue)
    }

    /// Combines the states of all elements, from the first to the last, into one in the device's memory, and stores nothing else: no
    /// output is named. Of no elements it is the identity.
    ///
    /// # Errors
    /// What a scan alone has, states of other than 1, 2, 4, 8 or 16 bytes, a definition that is no scan, and as
    /// [`Self::inclusive`]. Nothing was launched then.
    pub fn total<T: Pod>(mut self, state: &'a mut impl DevicePtrMut<T>) -> Result<(), CudaError> {
        let (address, elements) = self.lend_to_write(state);
        self.call.total(Lent::states::<T>(address, elements));
        self.scan(Mode::Inclusive, Scanner::enqueue)
    }

    /// Each has the state that ends before the input's. Inputs of a scan that is neither reversed nor in segments may
    /// lack the last element.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn exclusive(self) -> Result<(), CudaError> {
        self.scan(Mode::Exclusive, Scanner::enqueue)
    }

    /// Makes ready for the same run, and launches nothing: see [`Scanner::warm_up`]. What is no scan has one mode, and does
    /// not look at `mode`. Returns the bytes of the stream's
    /// workspace, 0 if there are no elements.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn warm_up(mut self, mode: Mode) -> Result<u64, CudaError> {
        let mode = self.call.as_defined(mode);
        self.scan(mode, Scanner::warm)
    }

    /// Of arrays that are named already, whose memory the caller orders.
    #[cfg(all(feature = "lab", feature = "nccl"))]
    pub(crate) fn of_call(scanner: &'a Scanner, stream: &'a Arc<CudaStream>, call: Call) -> Self {
        let run = scanner.run(stream, call.defined());
        Self { call, ..run }
    }

    /// Refuses memory of another context.
    #[cfg(feature = "nccl")]
    pub(super) fn check_context<T>(
        &self,
        what: &'static str,
        array: &impl cudarc::driver::DeviceSlice<T>,
    ) -> Result<(), CudaError> {
        self.scanner.check_context(what, array.stream().context())
    }

    /// What is scanned, in words.
    #[cfg(feature = "nccl")]
    pub(super) fn scan_name(&self) -> String {
        self.call.defined().to_string()
    }

    /// [`Self::inclusive`] or [`Self::exclusive`], or what else was asked for.
    #[cfg(all(feature = "lab", feature = "nccl"))]
    pub(crate) fn of_mode(self, mode: Mode) -> Result<(), CudaError> {
        self.scan(mode, Scanner::enqueue)
    }

    /// What it is made of: the guards hold the arrays' events until the launches are on the stream.
    #[cfg(feature = "nccl")]
    pub(super) fn opened(self) -> Result<(&'a Scanner, &'a Arc<CudaStream>, Call, Guards<'a>), CudaError> {
        let Self { scanner, stream, call, guards, error } = self;
        error.map_or(Ok((scanner, stream, call, guards)), Err)
    }

    fn scan<R: Default>(self, mode: Mode, deed: Deed<R>) -> Result<R, CudaError> {
        self.scan_then(mode, deed, |_| Ok(()))
    }

    /// And then something else, while the arrays are still lent.
    fn scan_then<R: Default>(
        self,
        mode: Mode,
        deed: Deed<R>,
        then: impl FnOnce(&CudaStream) -> Result<(), CudaError>,
    ) -> Result<R, CudaError> {
        let Self { scanner, stream, call, guards, error } = self;
        let scanned = match error {
            Some(error) => Err(error),
            None => scanner.scan_defined(stream, call, mode, deed),
        };
        let scanned = scanned.and_then(|scanned| then(stream).map(|()| scanned));
        drop(guards);
        scanned
    }

    fn lend<T>(&mut self, array: &'a impl DevicePtr<T>) -> (u64, usize) {
        self.check("input", array);
        let (address, guard) = array.device_ptr(self.stream);
        self.guards.push(guard);
        (address, array.len())
    }

    fn lend_to_write<T>(&mut self, array: &'a mut impl DevicePtrMut<T>) -> (u64, usize) {
        self.check("output", array);
        let elements = array.len();
        let (address, guard) = array.device_ptr_mut(self.stream);
        self.guards.push(guard);
        (address, elements)
    }

    fn check<T>(&mut self, what: &'static str, array: &impl cudarc::driver::DeviceSlice<T>) {
        if self.error.is_none() {
            self.error = self.scanner.check_context(what, array.stream().context()).err();
        }
    }
}
