//! What is asked of a scanner, wherever its arrays lie: scans of numbers ([`AnyScanner`]) and runs of a definition ([`Run`]), by the
//! same calls in a GPU's memory and in this machine's.
//!
//! A function that is generic over [`AnyScanner`] scans on a GPU, and a program's own tests run it where there is none:
//!
//! ```
//! use lookback::element::Operator;
//! use lookback::lab::host_scanner::HostScanner;
//! use lookback::run::AnyScanner;
//!
//! /// Where each row of a sparse matrix begins, of how many elements it has.
//! fn row_offsets<S: AnyScanner>(
//!     scanner: &mut S,
//!     lengths: &S::Array<u32>,
//!     offsets: &mut S::Array<u32>,
//! ) -> Result<(), S::Error> {
//!     scanner.exclusive(Operator::Sum, lengths, offsets)
//! }
//!
//! let mut scanner = HostScanner::default();
//! let mut offsets = vec![0; 4];
//! row_offsets(&mut scanner, &vec![3, 1, 4], &mut offsets)?;
//! assert_eq!(offsets, [0, 3, 4, 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! On a stream of a GPU it is `row_offsets(&mut scanner.on(&stream), &lengths, &mut offsets)`, of arrays of cudarc.

use crate::element::{ArrayElement, Defined, Element, Operator, Verb, WholeNumber};
use crate::strategy::Mode;
use crate::strategy::call::{Call, Lent};
use bytemuck::Pod;
use lending::{Place, Role};
use std::error::Error;
use std::marker::PhantomData;

/// Memory that arrays lie in: [`cuda::GpuMemory`](crate::cuda::GpuMemory), [`HostMemory`](crate::lab::host_scanner::HostMemory),
/// or [none](crate::cuda::ahead::NoMemory).
pub trait Memory: Sized {
    /// What a run says where it fails.
    type Error: Error + Send + Sync + 'static;
    /// Holds the arrays that are lent to a run, until it is launched.
    type Lender<'a>;

    /// Checks what is asked for, and launches it.
    #[doc(hidden)]
    fn launch(run: Run<'_, Self>, mode: Mode) -> Result<(), Self::Error>;
}

/// How arrays are lent. Nobody outside can name it, so that nobody lends what is no array.
pub(crate) mod lending {
    /// An array that is lent.
    #[derive(Debug, Clone, Copy)]
    pub struct Place {
        pub address: u64,
        pub elements: usize,
    }

    /// As what it is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Role {
        /// Elements that are read; or written, and not read.
        Elements,
        /// Elements that are read and then written.
        InPlace,
        /// States, which kernels may align further than the user.
        States,
    }
}

/// An array that a run may read: on a GPU whatever cudarc reads from, in this machine's memory a slice, a vector, an array, or
/// a number, which is an array of one.
pub trait Lends<M: Memory, T> {
    /// Its elements.
    #[doc(hidden)]
    fn count(&self) -> usize;
    #[doc(hidden)]
    fn lend<'a>(&'a self, lender: &mut M::Lender<'a>, role: Role) -> Place;
}

/// An array that a run may write, likewise.
pub trait LendsMut<M: Memory, T> {
    /// Its elements.
    #[doc(hidden)]
    fn count_mut(&mut self) -> usize;
    #[doc(hidden)]
    fn lend_mut<'a>(&'a mut self, lender: &mut M::Lender<'a>, role: Role) -> Place;
}

/// What scans: a [`cuda::Scanner`](crate::cuda::Scanner) [on a stream](crate::cuda::Scanner::on), or a
/// [`HostScanner`](crate::lab::host_scanner::HostScanner); see the [module](self). Or what makes their kernels
/// [ahead](crate::cuda::Ahead).
pub trait AnyScanner {
    /// What says what went wrong.
    type Error: Error + Send + Sync + 'static;
    /// The memory of its arrays.
    type Memory: Memory<Error = Self::Error>;
    /// An array that it can make: `CudaSlice<T>`, for example, or `Vec<T>`.
    type Array<T: Pod>: Lends<Self::Memory, T> + LendsMut<Self::Memory, T>;

    /// A copy of these elements in its memory.
    ///
    /// # Errors
    /// When there is no room for it.
    fn array<T: Pod>(&mut self, elements: &[T]) -> Result<Self::Array<T>, Self::Error>;

    /// So many elements whose bytes are 0.
    ///
    /// # Errors
    /// As [`Self::array`].
    fn zeros<T: Pod>(&mut self, elements: usize) -> Result<Self::Array<T>, Self::Error>;

    /// What an array holds once the runs before are done. Whether these found something wrong, [`Self::check`] says.
    ///
    /// # Errors
    /// When the device failed.
    fn read<T: Pod>(&mut self, array: &Self::Array<T>) -> Result<Vec<T>, Self::Error>;

    /// Waits for the runs before, and says what they found wrong with numbers that the device alone knows: see
    /// [`cuda::Scanner::check`](crate::cuda::Scanner::check). In this machine's memory each run says so itself.
    ///
    /// # Errors
    /// What was wrong.
    fn check(&mut self) -> Result<(), Self::Error>;

    /// A scan that was [defined](crate::element::Definition), whose arrays are named one after the other. The first run of a
    /// definition takes the time of a compiler: of a GPU's a tenth of a second, of C++ seconds.
    fn run(&mut self, defined: Defined) -> Run<'_, Self::Memory>;

    /// A scan of numbers in this mode. Of two types it is in that of the output, in which bytes may be counted;
    /// `half::f16` and `half::bf16` are scanned in `f32`:
    /// [`Problem::accumulating`](crate::element::Problem::accumulating).
    ///
    /// # Errors
    /// Lengths that differ, an operator that the type does not have, types that cannot be converted, arrays that overlap or are of
    /// another context, a kernel that cannot be compiled, not enough memory. On a GPU nothing was launched then; what an output in this
    /// machine's memory holds is not said.
    fn scan<T: Element, U: Element>(
        &mut self,
        operator: Operator,
        mode: Mode,
        input: &(impl Lends<Self::Memory, T> + ?Sized),
        output: &mut (impl LendsMut<Self::Memory, U> + ?Sized),
    ) -> Result<(), Self::Error>;

    /// The scan of an array into itself.
    ///
    /// # Errors
    /// As [`Self::scan`].
    fn in_place<T: Element>(
        &mut self,
        operator: Operator,
        mode: Mode,
        data: &mut (impl LendsMut<Self::Memory, T> + ?Sized),
    ) -> Result<(), Self::Error>;

    /// `output[i] = input[0] ⊕ … ⊕ input[i]`: see [`Self::scan`].
    ///
    /// # Errors
    /// As [`Self::scan`].
    fn inclusive<T: Element, U: Element>(
        &mut self,
        operator: Operator,
        input: &(impl Lends<Self::Memory, T> + ?Sized),
        output: &mut (impl LendsMut<Self::Memory, U> + ?Sized),
    ) -> Result<(), Self::Error> {
        self.scan(operator, Mode::Inclusive, input, output)
    }

    /// `output[i] = input[0] ⊕ … ⊕ input[i−1]`, `output[0]` the identity: see [`Self::scan`]. The input may be one element
    /// shorter than the output: n counts give n + 1 offsets.
    ///
    /// # Errors
    /// As [`Self::scan`].
    fn exclusive<T: Element, U: Element>(
        &mut self,
        operator: Operator,
        input: &(impl Lends<Self::Memory, T> + ?Sized),
        output: &mut (impl LendsMut<Self::Memory, U> + ?Sized),
    ) -> Result<(), Self::Error> {
        self.scan(operator, Mode::Exclusive, input, output)
    }
}

/// A run of a defined scan that is being put together: arrays are named one after the other, and [`Run::inclusive`],
/// [`Run::exclusive`], [`Run::total`] or the function that is named by what is defined launches it: [`Run::compact`],
/// [`Run::sort`], [`Run::histogram`], [`Run::expand`], [`Run::scatter`]. On a GPU it is put onto the stream then, and what is launched waits for
/// nothing. Made by [`cuda::Scanner::run`](crate::cuda::Scanner::run) and [`AnyScanner::run`].
///
/// ```no_run
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
// `L` is `M::Lender<'a>` wherever there is a run. If that stood in the field, `'a` could not be shortened, and a closure that returns
// runs would give all of them the lifetime of one.
pub struct Run<'a, M: Memory, L = <M as Memory>::Lender<'a>> {
    pub(crate) lender: L,
    pub(crate) call: Call,
    pub(crate) of: PhantomData<(&'a (), M)>,
}

impl<'a, M: Memory> Run<'a, M> {
    pub(crate) fn new(lender: M::Lender<'a>, defined: Defined) -> Self {
        Self { lender, call: Call::new(defined), of: PhantomData }
    }

    /// The next array of those that are loaded, in the order of the definition.
    pub fn input<T: ArrayElement>(mut self, array: &'a (impl Lends<M, T> + ?Sized)) -> Self {
        let lent = self.lend(array);
        self.call.input(lent);
        self
    }

    /// The next array of those that are stored.
    pub fn output<T: ArrayElement>(mut self, array: &'a mut (impl LendsMut<M, T> + ?Sized)) -> Self {
        let lent = self.lend_mut(array, Role::Elements);
        self.call.output(lent);
        self
    }

    /// An array that is the next one to be loaded and the next one to be stored.
    pub fn in_place<T: ArrayElement>(mut self, array: &'a mut (impl LendsMut<M, T> + ?Sized)) -> Self {
        let lent = self.lend_mut(array, Role::InPlace);
        self.call.in_place(lent);
        self
    }

    /// The next of what the definition has beside arrays ([`Definition::parameter`](crate::element::Definition::parameter)). Another value
    /// is the same kernel.
    pub fn parameter<T: ArrayElement>(mut self, value: T) -> Self {
        self.call.parameter(T::CUDA_TYPE, bytemuck::bytes_of(&value));
        self
    }

    /// Begins at the last element and ends at the first.
    pub fn reversed(mut self) -> Self {
        self.call.reverse();
        self
    }

    /// Gives the same bits whatever the alignment, the strategy, the GPU and the number of its blocks, and on the CPU device:
    /// partial results of operators that are not quite associative, such as sums of floats, are combined in an order that
    /// follows from indices alone (`docs/problems.md`), and products are rounded before they are added. A tile's values are a
    /// part of that order: another configuration rounds elsewhere. Slower, so leave it out for sums of integers, whose bits are
    /// the same anyhow. Down several columns that order depends on their number, too, but neither on their length nor on the number of
    /// matrices; a single column is a row. Strided columns are refused, and so are strategies and configurations that
    /// cannot; `auto` can.
    pub fn reproducible(mut self) -> Self {
        self.call.reproducible();
        self
    }

    /// Scans each row of `columns` elements by itself.
    pub fn rows(mut self, columns: usize) -> Self {
        self.call.rows(columns as u64);
        self
    }

    /// The rows of the input or output that was named last begin so many elements apart, and may have something between
    /// them: the parts of the rows of a larger matrix, or rows of a whole number of lines. What is between them is neither read nor
    /// written, and behind the last row there is as much or nothing. Rows are elements that lie side by side, whichever way they
    /// are scanned: those of [`Self::rows`], and of [`Self::columns`] and [`Self::axis`] as many as there are columns. By `auto`,
    /// `lookback` and others that load tiles element by element or in vectors; `lookahead` refuses it.
    pub fn row_stride(mut self, elements: usize) -> Self {
        self.call.row_stride(elements as u64);
        self
    }

    /// Scans along an axis: the arrays are contiguous tensors of the shape (outer, `length`, `inner`), and each column, all
    /// `length` elements that lie `inner` apart, is scanned by itself. Element (o, t, j) lies at (o · `length` + t) · `inner` + j,
    /// so that (batch, time, channel) is scanned along the time by `.axis(time, channels)`; with an `inner` of 1 these are rows.
    /// With a [row stride](Self::row_stride) it lies at (o · `length` + t) times the stride + j.
    /// States before and behind are one of each column, (o, j) at o · `inner` + j.
    pub fn axis(mut self, length: usize, inner: usize) -> Self {
        self.call.axis(Some(length as u64), inner as u64);
        self
    }

    /// Scans each column of a matrix of `columns` columns, whose rows lie one behind the other, by itself.
    pub fn columns(mut self, columns: usize) -> Self {
        self.call.axis(None, columns as u64);
        self
    }

    /// What stands left of the first element: of each row, by rows, and of what comes before the first head flag.
    pub fn initial<T: Pod>(mut self, state: &T) -> Self {
        self.call.initial(state);
        self
    }

    /// Scans each run of equal neighbouring keys by itself.
    pub fn by_key<T: Element>(mut self, keys: &'a (impl Lends<M, T> + ?Sized)) -> Self {
        let lent = self.lend(keys);
        self.call.keys(T::ELEMENT, lent);
        self
    }

    /// Scans anew from each element whose flag is not 0, in the direction of the scan.
    pub fn head_flags(mut self, flags: &'a (impl Lends<M, u8> + ?Sized)) -> Self {
        let lent = self.lend(flags);
        self.call.head_flags(lent);
        self
    }

    /// Scans each segment between neighbouring offsets by itself: s + 1 offsets of s segments, the first one 0, none less than
    /// the one before, the last one the number of elements. Segments may be empty. Of an expansion they are items, and outputs may have
    /// more elements than the last one says. What is wrong with them a GPU finds out, and
    /// [`cuda::Scanner::check`](crate::cuda::Scanner::check) says so; over slices it is an error of the run. Nothing is written beside the
    /// arrays then.
    pub fn offsets<T: WholeNumber>(mut self, offsets: &'a (impl Lends<M, T> + ?Sized)) -> Self {
        let lent = self.lend(offsets);
        self.call.offsets(lent);
        self
    }

    /// Scans the first elements of the arrays, as many as this number in the device's memory says when the scan begins; what lies behind
    /// them is neither read nor written. Of two numbers, as [`Self::count_into`] leaves them, it is the first. Of a matrix that is scanned
    /// by [`Self::columns`] these are its first rows; [`Self::axis`] takes a number only where `inner` is 1 and no array has a stride. A
    /// number that is larger than the arrays, or no whole rows, counts as many as there are: on a GPU
    /// [`cuda::Scanner::check`](crate::cuda::Scanner::check) says so, and over slices it is an error of the run. Of none, a final state is
    /// left as it is. Of an expansion it counts items, which have one offset more.
    pub fn count_from<T: WholeNumber>(mut self, count: &'a (impl Lends<M, T> + ?Sized)) -> Self {
        let lent = self.lend(count);
        self.call.count(lent);
        self
    }

    /// What [`Self::initial`] names, from the device's memory, as [`Self::final_state`] of an earlier run has left it: one state, or one
    /// a row.
    pub fn initial_from<T: Pod>(mut self, states: &'a (impl Lends<M, T> + ?Sized)) -> Self {
        let Place { address, elements } = states.lend(&mut self.lender, Role::States);
        self.call.initial_state(Lent::states::<T>(address, elements));
        self
    }

    /// Where the state at the last element goes, in the device's memory: one state, or one a row. It is the state that the
    /// last output was stored from. An exclusive scan that is to go on therefore has one input less than outputs, which one
    /// that is reversed or in segments cannot have. A scan that stores one takes another kernel than a scan that does
    /// not, from a folder of kernels made ahead, too.
    pub fn final_state<T: Pod>(mut self, states: &'a mut (impl LendsMut<M, T> + ?Sized)) -> Self {
        let Place { address, elements } = states.lend_mut(&mut self.lender, Role::States);
        self.call.final_state(Lent::states::<T>(address, elements));
        self
    }

    /// Where the number of elements goes that a compaction keeps: one number in the device's memory, which
    /// [`Self::count_from`] of a next run takes; or two, of which the second one is that of all others. Numbers are 8 bytes long if there
    /// are 2^31 elements or more.
    pub fn count_into<T: WholeNumber>(mut self, number: &'a mut (impl LendsMut<M, T> + ?Sized)) -> Self {
        let lent = self.lend_mut(number, Role::Elements);
        self.call.kept(lent);
        self
    }

    /// Each output's element has the state that ends with the input's.
    ///
    /// # Errors
    /// Arrays of other types, numbers or lengths than defined, overlapping ones, rows that do not fill the array, text that
    /// does not compile, a definition that is no scan, and as [`AnyScanner::scan`]. On a GPU nothing was launched then; offsets that
    /// fall and a count of more elements than there are it finds out later, and over slices they are errors of the run.
    pub fn inclusive(self) -> Result<(), M::Error> {
        self.launch(Mode::Inclusive)
    }

    /// Each has the state that ends before the input's. Inputs of a scan that is neither reversed nor in segments may
    /// lack the last element.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn exclusive(self) -> Result<(), M::Error> {
        self.launch(Mode::Exclusive)
    }

    /// Stores side by side what the definition keeps, a [`Definition::filter`](crate::element::Definition::filter) or one of
    /// [`groups`](crate::element::Definition::groups): each output has as many elements as the inputs, or more, unless the
    /// others fill it; those behind what is kept stay as they are. No output is an input.
    ///
    /// # Errors
    /// Segments, states before and behind, a number of less than 8 bytes where 2^31 elements may be kept, a definition that keeps
    /// nothing, and as [`Self::inclusive`].
    pub fn compact(self) -> Result<(), M::Error> {
        self.ask_for(Verb::Compact)
    }

    /// Sorts, as a [`Definition::sort`](crate::element::Definition::sort) says, into arrays that are no inputs and have as many
    /// elements. Equal keys stay in their order.
    ///
    /// # Errors
    /// What a scan alone has, a definition that sorts nothing, and as [`Self::inclusive`].
    pub fn sort(self) -> Result<(), M::Error> {
        self.ask_for(Verb::Sort)
    }

    /// Counts what falls into the bins of a [`Definition::binned`](crate::element::Definition::binned), into one output of as many
    /// elements as there are bins.
    ///
    /// # Errors
    /// What a scan alone has, a definition that counts nothing, and as [`Self::inclusive`].
    pub fn histogram(self) -> Result<(), M::Error> {
        self.ask_for(Verb::Histogram)
    }

    /// Stores what offsets share out, as a [`Definition::expansion`](crate::element::Definition::expansion) says: `offsets` names one
    /// more than there are items, rising from 0 to the number of places. Outputs have as many elements or more, and those behind stay as
    /// they are; inputs have one for each item.
    ///
    /// # Errors
    /// No offsets, what a scan alone has, a definition that shares nothing out, and as [`Self::inclusive`].
    pub fn expand(self) -> Result<(), M::Error> {
        self.ask_for(Verb::Expand)
    }

    /// Moves elements where a [`Definition::scattered`](crate::element::Definition::scattered) says. Outputs are no inputs, and may have any
    /// length.
    ///
    /// # Errors
    /// What a scan alone has, a definition that moves nothing so, and as [`Self::inclusive`].
    pub fn scatter(self) -> Result<(), M::Error> {
        self.ask_for(Verb::Scatter)
    }

    /// Combines the states of all elements, from the first to the last, into one, and stores nothing else: no output is named. Of
    /// no elements it is the identity. A state that is no single number, such as `[f32; 2]`, is an array of one:
    /// [`std::slice::from_mut`].
    ///
    /// # Errors
    /// What a scan alone has, states of other than 1, 2, 4, 8 or 16 bytes, a definition that is no scan, and as
    /// [`Self::inclusive`].
    pub fn total<T: Pod>(mut self, state: &'a mut (impl LendsMut<M, T> + ?Sized)) -> Result<(), M::Error> {
        let Place { address, elements } = state.lend_mut(&mut self.lender, Role::States);
        self.call.total(Lent::states::<T>(address, elements));
        self.launch(Mode::Inclusive)
    }

    fn ask_for(mut self, verb: Verb) -> Result<(), M::Error> {
        self.call.ask_for(verb);
        self.launch(Mode::Inclusive)
    }

    /// [`Self::inclusive`] or [`Self::exclusive`], or what else was asked for.
    pub(crate) fn launch(self, mode: Mode) -> Result<(), M::Error> {
        M::launch(self, mode)
    }

    fn lend<T: ArrayElement>(&mut self, array: &'a (impl Lends<M, T> + ?Sized)) -> Lent {
        let Place { address, elements } = array.lend(&mut self.lender, Role::Elements);
        Lent::array::<T>(address, elements)
    }

    fn lend_mut<T: ArrayElement>(&mut self, array: &'a mut (impl LendsMut<M, T> + ?Sized), role: Role) -> Lent {
        let Place { address, elements } = array.lend_mut(&mut self.lender, role);
        Lent::array::<T>(address, elements)
    }
}
