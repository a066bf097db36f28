//! The scans of [`Scanner`](crate::cuda::Scanner) over slices in this machine's memory, by the same plans and kernels on the
//! CPU device: what a program that scans on a GPU is tested with where there is none.
//!
//! ```
//! use lookback::element::Operator;
//! use lookback::lab::host_scanner::HostScanner;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut scanner = HostScanner::default();
//! let counts = [3_u32, 1, 4, 1, 5];
//! let mut offsets = [0_u32; 6];
//! scanner.exclusive(Operator::Sum, &counts, &mut offsets)?;
//! assert_eq!(offsets, [0, 3, 4, 8, 9, 14]);
//! # Ok(())
//! # }
//! ```
//!
//! It is an executor of kernels and not a fast scan: a million elements take about a second.

use crate::element::{ArrayElement, Defined, Element, ElementType, Operator, Problem, Verb, WholeNumber};
use crate::gpu::Gpu;
use crate::lab::cpu_device::{CpuDevice, CpuSettings, Dealt, HostArray};
use crate::lab::device::DeviceError;
use crate::strategy::call::{Call, Lent, Prepared, methods_without_arrays};
use crate::strategy::plan::ScanRequest;
use crate::strategy::tuning::{Resolved, Tuning};
use crate::strategy::{ConfigError, Mode, ScanConfig, StrategyChoice, check_lengths};
use bytemuck::Pod;

/// See the [module](self).
pub struct HostScanner {
    device: CpuDevice,
    strategy: StrategyChoice,
    /// `None` takes what the tuning table names or, of a named strategy, what is suggested for the size.
    config: Option<ScanConfig>,
    tuning: Tuning,
    /// Of the next schedule.
    seed: u64,
}

impl Default for HostScanner {
    /// Scans as an H100 would, block by block in order.
    fn default() -> Self {
        Self::new(CpuSettings::default())
    }
}

impl HostScanner {
    /// With a scheduler of another kind, for example a hostile one, or with every access checked.
    pub fn new(settings: CpuSettings) -> Self {
        Self {
            device: CpuDevice::new(settings),
            strategy: StrategyChoice::Auto,
            config: None,
            tuning: Tuning::committed(Gpu::H100),
            seed: 0,
        }
    }

    /// Takes another strategy, or `auto` again, for the scans from here on.
    #[must_use]
    pub fn with_strategy(mut self, strategy: impl Into<StrategyChoice>) -> Self {
        self.strategy = strategy.into();
        self
    }

    /// Takes other choices inside the strategy for the scans from here on.
    #[must_use]
    pub fn with_config(mut self, config: ScanConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// `output[i] = input[0] ⊕ … ⊕ input[i]`. Of two types the scan is in that of the output, of `half::f16` and
    /// `half::bf16` in `f32` ([`Problem::accumulating`]). The first such scan, and that of an instance that the build left
    /// out ([`Instance::is_built_in`](crate::element::Instance::is_built_in)), takes the seconds of a C++ compiler.
    ///
    /// # Errors
    /// Lengths that differ, an operator that the type does not have, types that cannot be converted, a machine without a
    /// C++ compiler where one is needed, a configuration that cannot be launched, and whatever a kernel does wrong. What the
    /// output holds then is not said.
    pub fn inclusive<T: Element, U: Element>(
        &mut self,
        operator: Operator,
        input: &[T],
        output: &mut [U],
    ) -> Result<(), DeviceError> {
        self.out_of_place(operator, Mode::Inclusive, input, output)
    }

    /// `output[i] = input[0] ⊕ … ⊕ input[i−1]`, `output[0]` the identity. The input may be one element shorter than the
    /// output: n counts give n + 1 offsets.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn exclusive<T: Element, U: Element>(
        &mut self,
        operator: Operator,
        input: &[T],
        output: &mut [U],
    ) -> Result<(), DeviceError> {
        self.out_of_place(operator, Mode::Exclusive, input, output)
    }

    /// The scan of a slice into itself.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn in_place<T: Element>(&mut self, operator: Operator, mode: Mode, data: &mut [T]) -> Result<(), DeviceError> {
        let input = bytemuck::cast_slice(data).to_vec();
        let address = data.as_ptr().addr();
        self.scan(
            (operator, mode),
            (T::ELEMENT, &input, address),
            (T::ELEMENT, bytemuck::cast_slice_mut(data), address),
        )
    }

    /// A scan that was defined, over slices that are named one after the other; ended by [`HostRun::inclusive`],
    /// [`HostRun::exclusive`] or the function that is named by what is defined. The first run of a definition takes the seconds of
    /// a C++ compiler.
    pub fn run<'a>(&'a mut self, defined: Defined) -> HostRun<'a> {
        HostRun { scanner: self, call: Call::new(defined), arrays: Vec::new(), outputs: Vec::new() }
    }

    /// What is to be launched, if anything is.
    pub(super) fn prepare(&self, call: Call, mode: Mode) -> Result<Option<Prepared>, DeviceError> {
        Ok(call.prepare(mode, self.strategy, self.config, &self.tuning)?)
    }

    /// What a rank launches of it.
    pub(super) fn dealt(&mut self, prepared: Prepared, arrays: Vec<HostArray>) -> Dealt {
        self.seed += 1;
        Dealt { prepared, arrays, settings: self.device.settings(), seed: self.seed }
    }

    /// Launches it over these arrays.
    pub(super) fn launch(&mut self, prepared: &Prepared, arrays: &mut [HostArray]) -> Result<(), DeviceError> {
        self.seed += 1;
        self.device.run_defined(&prepared.request, prepared.arrays, arrays, self.seed)
    }

    /// Runs what is asked for over copies of its arrays, unless there are no elements: then it returns false.
    pub(crate) fn run_call(&mut self, call: Call, mode: Mode, arrays: &mut [HostArray]) -> Result<bool, DeviceError> {
        let Some(prepared) = self.prepare(call, mode)? else { return Ok(false) };
        self.launch(&prepared, arrays)?;
        Ok(true)
    }

    fn out_of_place<T: Element, U: Element>(
        &mut self,
        operator: Operator,
        mode: Mode,
        input: &[T],
        output: &mut [U],
    ) -> Result<(), DeviceError> {
        check_lengths(mode, input.len(), output.len())?;
        let (from, to) = (input.as_ptr().addr(), output.as_ptr().addr());
        let output = (U::ELEMENT, bytemuck::cast_slice_mut(output), to);
        self.scan((operator, mode), (T::ELEMENT, bytemuck::cast_slice(input), from), output)
    }

    /// Of arrays by their types, bytes and addresses. Slices overlap only where they are one.
    fn scan(
        &mut self,
        (operator, mode): (Operator, Mode),
        (from, input, input_address): (ElementType, &[u8], usize),
        (to, output, output_address): (ElementType, &mut [u8], usize),
    ) -> Result<(), DeviceError> {
        let problem = Problem::accumulating(operator, from, to).map_err(ConfigError::from)?;
        let n = (output.len() / to.bytes()) as u64;
        if n == 0 {
            return Ok(());
        }
        let offsets @ [input_offset, output_offset] =
            [input_address, output_address].map(|address| (address % ScanRequest::OFFSETS as usize) as u32);
        let Resolved { strategy, config } = self.tuning.choose(self.strategy, problem, n, None, offsets);
        let request = ScanRequest {
            in_place: input_address == output_address,
            input_offset,
            output_offset,
            ..ScanRequest::of(problem, strategy, mode, self.config.unwrap_or(config), n)
        };
        self.seed += 1;
        self.device.scan(&request, input, output, self.seed)?;
        Ok(())
    }
}

/// A run of a defined scan that is being put together, as [`Run`](crate::cuda::Run) over slices.
#[must_use = "nothing runs before `inclusive`, `exclusive`, or what is named by the definition is called"]
pub struct HostRun<'a> {
    pub(super) scanner: &'a mut HostScanner,
    pub(super) call: Call,
    pub(super) arrays: Vec<HostArray>,
    /// By their places among `arrays`.
    pub(super) outputs: Vec<(usize, &'a mut [u8])>,
}

impl<'a> HostRun<'a> {
    /// The next array of those that are loaded, in the order of the definition.
    pub fn input<T: ArrayElement>(mut self, array: &[T]) -> Self {
        let lent = self.lend(array);
        self.call.input(lent);
        self
    }

    /// The next array of those that are stored.
    pub fn output<T: ArrayElement>(mut self, array: &'a mut [T]) -> Self {
        let lent = self.lend_to_write(array, false);
        self.call.output(lent);
        self
    }

    /// A slice that is the next one to be loaded and the next one to be stored.
    pub fn in_place<T: ArrayElement>(mut self, array: &'a mut [T]) -> Self {
        let lent = self.lend_to_write(array, true);
        self.call.in_place(lent);
        self
    }

    methods_without_arrays!();

    /// Scans each run of equal neighbouring keys by itself.
    pub fn by_key<T: Element>(mut self, keys: &[T]) -> Self {
        let lent = self.lend(keys);
        self.call.keys(T::ELEMENT, lent);
        self
    }

    /// Scans anew from each element whose flag is not 0, in the direction of the scan.
    pub fn head_flags(mut self, flags: &[u8]) -> Self {
        let lent = self.lend(flags);
        self.call.head_flags(lent);
        self
    }

    /// Scans each segment between neighbouring offsets by itself: s + 1 offsets of s segments, the first one 0, none less than
    /// the one before, the last one the number of elements. Segments may be empty. Of an expansion they are items, and outputs may have
    /// more elements than the last one says.
    pub fn offsets<T: WholeNumber>(mut self, offsets: &[T]) -> Self {
        let lent = self.lend(offsets);
        self.call.offsets(lent);
        self
    }

    /// Scans the first `count` elements of the arrays. What lies behind them is neither read nor written.
    /// Of an expansion it counts items, which have one offset more.
    pub fn count_from<T: WholeNumber>(mut self, count: &T) -> Self {
        let lent = self.lend(std::slice::from_ref(count));
        self.call.count(lent);
        self
    }

    /// What [`Self::initial`] names, as [`Self::final_state`] of an earlier run has left it: one state, or one a row.
    pub fn initial_from<T: Pod>(mut self, states: &[T]) -> Self {
        let address = self.keep(HostArray::state(bytemuck::cast_slice(states)));
        self.call.initial_state(Lent::states::<T>(address, states.len()));
        self
    }

    /// Where the state at the last element goes: one state, or one a row. It is the state that the last output was stored
    /// from. An exclusive scan that is to go on therefore has one input less than outputs, which one that is reversed or in
    /// segments cannot have.
    pub fn final_state<T: Pod>(mut self, states: &'a mut [T]) -> Self {
        let count = states.len();
        let bytes = bytemuck::cast_slice_mut(states);
        let address = self.keep(HostArray::state_to_write(bytes));
        self.outputs.push((self.arrays.len() - 1, bytes));
        self.call.final_state(Lent::states::<T>(address, count));
        self
    }

    /// Where the number of elements goes that a compaction keeps. It is 8 bytes long if there are 2^31 elements or more.
    pub fn count_into<T: WholeNumber>(mut self, number: &'a mut T) -> Self {
        let lent = self.lend_to_write(std::slice::from_mut(number), false);
        self.call.kept(lent);
        self
    }

    /// Stores side by side what the definition keeps, a [`Definition::filter`](crate::element::Definition::filter) or one of
    /// [`groups`](crate::element::Definition::groups): each output has as many elements as the inputs, or more, unless the
    /// others fill it; those behind what is kept stay as they are. No output is an input.
    ///
    /// # Errors
    /// Segments, states before and behind, a number of less than 8 bytes where 2^31 elements may be kept, a definition that is
    /// scanned, and as [`Self::inclusive`].
    pub fn compact(mut self) -> Result<(), DeviceError> {
        self.call.ask_for(Verb::Compact);
        self.scan(Mode::Inclusive)
    }

    /// Sorts, as a [`Definition::sort`](crate::element::Definition::sort) says, into arrays that are no inputs and have as many
    /// elements. Equal keys stay in their order.
    ///
    /// # Errors
    /// What a scan alone has, a definition that sorts nothing, and as [`Self::inclusive`].
    pub fn sort(mut self) -> Result<(), DeviceError> {
        self.call.ask_for(Verb::Sort);
        self.scan(Mode::Inclusive)
    }

    /// Counts what falls into the bins of a [`Definition::binned`](crate::element::Definition::binned), into one output of as many
    /// elements as there are bins.
    ///
    /// # Errors
    /// What a scan alone has, a definition that counts nothing, and as [`Self::inclusive`].
    pub fn histogram(mut self) -> Result<(), DeviceError> {
        self.call.ask_for(Verb::Histogram);
        self.scan(Mode::Inclusive)
    }

    /// Each output's element has the state that ends with the input's.
    ///
    /// # Errors
    /// Arrays of other types, numbers or lengths than defined, overlapping ones, rows that do not fill the array, offsets that
    /// fall, a count of more elements than there are, text that does not compile, a definition that is compacted, and as
    /// [`HostScanner::inclusive`].
    pub fn inclusive(self) -> Result<(), DeviceError> {
        self.scan(Mode::Inclusive)
    }

    /// Stores what offsets share out, as a [`Definition::expansion`](crate::element::Definition::expansion) says: `offsets` names one
    /// more than there are items, rising from 0 to the number of places. Outputs have as many elements or more, and those behind stay as
    /// they are; inputs have one for each item.
    ///
    /// # Errors
    /// No offsets, what a scan alone has, a definition that shares nothing out, and as [`Self::inclusive`].
    pub fn expand(mut self) -> Result<(), DeviceError> {
        self.call.ask_for(Verb::Expand);
        self.scan(Mode::Inclusive)
    }

    /// Moves elements where a [`Definition::scattered`](crate::element::Definition::scattered) says. Outputs are no inputs, and may have any
    /// length.
    ///
    /// # Errors
    /// What a scan alone has, a definition that moves nothing so, and as [`Self::inclusive`].
    pub fn scatter(mut self) -> Result<(), DeviceError> {
        self.call.ask_for(Verb::Scatter);
        self.scan(Mode::Inclusive)
    }

    /// Combines the states of all elements, from the first to the last, into one, and stores nothing else: no output is named. Of
    /// no elements it is the identity.
    ///
    /// # Errors
    /// What a scan alone has, states of other than 1, 2, 4, 8 or 16 bytes, a definition that is no scan, and as
    /// [`Self::inclusive`].
    pub fn total<T: Pod>(mut self, state: &'a mut T) -> Result<(), DeviceError> {
        let bytes = bytemuck::bytes_of_mut(state);
        let address = self.keep(HostArray::state_to_write(bytes));
        self.outputs.push((self.arrays.len() - 1, bytes));
        self.call.total(Lent::states::<T>(address, 1));
        self.scan(Mode::Inclusive)
    }

    /// Each has the state that ends before the input's. Inputs of a scan that is neither reversed nor
    /// in segments may lack the last element.
    ///
    /// # Errors
    /// As [`Self::inclusive`].
    pub fn exclusive(self) -> Result<(), DeviceError> {
        self.scan(Mode::Exclusive)
    }

    fn lend<T: ArrayElement>(&mut self, array: &[T]) -> Lent {
        let address = self.keep(HostArray::input(array));
        Lent::array::<T>(address, array.len())
    }

    fn lend_to_write<T: ArrayElement>(&mut self, array: &'a mut [T], is_read: bool) -> Lent {
        let elements = array.len();
        let address = self.keep(if is_read { HostArray::input_output(array) } else { HostArray::output(array) });
        self.outputs.push((self.arrays.len() - 1, bytemuck::cast_slice_mut(array)));
        Lent::array::<T>(address, elements)
    }

    pub(super) fn keep(&mut self, mut array: HostArray) -> u64 {
        let address = array.address();
        self.arrays.push(array);
        address
    }

    pub(super) fn scan(self, mode: Mode) -> Result<(), DeviceError> {
        self.scan_and_keep(mode).map(drop)
    }

    /// And hands back what it was done with: the arrays as the kernels left them.
    pub(super) fn scan_and_keep(self, mode: Mode) -> Result<(&'a mut HostScanner, Vec<HostArray>), DeviceError> {
        let Self { scanner, call, mut arrays, outputs } = self;
        if call.stores_a_part() {
            // Not all of it will be written.
            for (place, output) in &outputs {
                arrays[*place].hold(output);
            }
        }
        let of_nothing = call.counts_of_nothing();
        if !scanner.run_call(call, mode, &mut arrays)? {
            for (place, output) in outputs {
                if of_nothing.is_some_and(|(address, _)| address == arrays[place].address()) {
                    output.fill(0);
                }
            }
            return Ok((scanner, arrays));
        }
        for (place, output) in outputs {
            output.copy_from_slice(arrays[place].contents());
        }
        Ok((scanner, arrays))
    }
}
