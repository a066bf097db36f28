//! The scans of [`Scanner`](crate::cuda::Scanner) over slices in this machine's memory, by the same plans and kernels on the
//! CPU device: what a program that scans on a GPU is tested with where there is none.
//!
//! ```
//! use lookback::element::Operator;
//! use lookback::lab::host_scanner::HostScanner;
//! use lookback::run::AnyScanner;
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

use crate::element::{Defined, Element, Operator, Problem};
use crate::gpu::Gpu;
use crate::lab::cpu_device::{CpuDevice, CpuSettings, Dealt, HostArray};
use crate::lab::dataset::available_memory_bytes;
use crate::lab::device::DeviceError;
use crate::run::lending::{Place, Role};
use crate::run::{AnyScanner, Lends, LendsMut, Memory};
use crate::strategy::call::{Call, Prepared};
use crate::strategy::plan::ScanRequest;
use crate::strategy::{Choices, ConfigError, Mode, ScanConfig, StrategyChoice, check_lengths};
use bytemuck::Pod;

/// See the [module](self).
pub struct HostScanner {
    device: CpuDevice,
    choices: Choices,
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
        Self { device: CpuDevice::new(settings), choices: Choices::on(Gpu::H100), seed: 0 }
    }

    /// Takes another strategy, or `auto` again, for the scans from here on.
    #[must_use]
    pub fn with_strategy(mut self, strategy: impl Into<StrategyChoice>) -> Self {
        self.choices = self.choices.with_strategy(strategy);
        self
    }

    /// Takes other choices inside the strategy for the scans from here on.
    #[must_use]
    pub fn with_config(mut self, config: ScanConfig) -> Self {
        self.choices = self.choices.with_config(config);
        self
    }

    /// What is to be launched, if anything is.
    pub(super) fn prepare(&self, call: Call, mode: Mode) -> Result<Option<Prepared>, DeviceError> {
        Ok(call.prepare(mode, &self.choices)?)
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
}

/// This machine's memory: of a run kernels have copies, with guards around them.
#[derive(Debug, Clone, Copy)]
pub struct HostMemory;

/// A [run](crate::run::Run) over slices.
pub type HostRun<'a> = crate::run::Run<'a, HostMemory>;

/// What a run over slices has been lent.
pub struct HostLender<'a> {
    pub(super) scanner: &'a mut HostScanner,
    pub(super) arrays: Vec<HostArray>,
    /// By their places among `arrays`.
    pub(super) outputs: Vec<(usize, &'a mut [u8])>,
}

impl<'a> HostLender<'a> {
    fn new(scanner: &'a mut HostScanner) -> Self {
        Self { scanner, arrays: Vec::new(), outputs: Vec::new() }
    }

    pub(super) fn keep(&mut self, mut array: HostArray) -> u64 {
        let address = array.address();
        self.arrays.push(array);
        address
    }

    /// And takes there what it holds when the run is done.
    pub(super) fn keep_output(&mut self, array: HostArray, output: &'a mut [u8]) -> u64 {
        let address = self.keep(array);
        self.outputs.push((self.arrays.len() - 1, output));
        address
    }

    /// Scans the numbers of the first array, which lies at `from`, into the only output.
    fn scan(self, problem: Problem, mode: Mode, from: u64, to: Place) -> Result<(), DeviceError> {
        let Self { scanner, arrays, outputs } = self;
        let n = to.elements as u64;
        let (Some(input), Some((_, output))) = (arrays.first().filter(|_| n > 0), outputs.into_iter().next()) else {
            return Ok(());
        };
        let request = scanner.choices.scan_of_numbers((problem, mode), [from, to.address], n);
        let request = ScanRequest { in_place: from == to.address, ..request };
        scanner.seed += 1;
        scanner.device.scan(&request, input.contents(), output, scanner.seed)?;
        Ok(())
    }
}

/// What is a slice of elements in this machine's memory.
pub trait AsElements<T> {
    /// The elements.
    fn as_elements(&self) -> &[T];
}

/// What is one that may be written.
pub trait AsElementsMut<T> {
    /// The elements.
    fn as_elements_mut(&mut self) -> &mut [T];
}

/// Of what coerces to a slice.
macro_rules! read {
    ($([$($parameters:tt)*] $slice:ty;)*) => {
        $(impl<T, $($parameters)*> AsElements<T> for $slice {
            fn as_elements(&self) -> &[T] {
                self
            }
        })*
    };
}
read! { [] &[T]; [] &Vec<T>; }

/// Of what coerces to one that can be written.
macro_rules! read_and_written {
    ($([$($parameters:tt)*] $slice:ty;)*) => {
        read! { $([$($parameters)*] $slice;)* }
        $(impl<T, $($parameters)*> AsElementsMut<T> for $slice {
            fn as_elements_mut(&mut self) -> &mut [T] {
                self
            }
        })*
    };
}
read_and_written! { [] [T]; [const N: usize] [T; N]; [] Vec<T>; [] Box<[T]>; [] &mut [T]; [] &mut Vec<T>; }

/// Each element of its own is an array of one.
impl<T: Element> AsElements<T> for T {
    fn as_elements(&self) -> &[T] {
        std::slice::from_ref(self)
    }
}

impl<T: Element> AsElementsMut<T> for T {
    fn as_elements_mut(&mut self) -> &mut [T] {
        std::slice::from_mut(self)
    }
}

impl<T: Pod, A: AsElements<T> + ?Sized> Lends<HostMemory, T> for A {
    fn count(&self) -> usize {
        self.as_elements().len()
    }

    fn lend<'a>(&'a self, lender: &mut HostLender<'a>, role: Role) -> Place {
        let elements = self.as_elements();
        let array = match role {
            Role::States => HostArray::state(bytemuck::cast_slice(elements)),
            Role::Elements | Role::InPlace => HostArray::input(elements),
        };
        Place { address: lender.keep(array), elements: elements.len() }
    }
}

impl<T: Pod, A: AsElementsMut<T> + ?Sized> LendsMut<HostMemory, T> for A {
    fn count_mut(&mut self) -> usize {
        self.as_elements_mut().len()
    }

    fn lend_mut<'a>(&'a mut self, lender: &mut HostLender<'a>, role: Role) -> Place {
        let slice = self.as_elements_mut();
        let elements = slice.len();
        let array = match role {
            Role::States => HostArray::state_to_write(bytemuck::cast_slice(slice)),
            Role::Elements => HostArray::output(slice),
            Role::InPlace => HostArray::input_output(slice),
        };
        Place { address: lender.keep_output(array, bytemuck::cast_slice_mut(slice)), elements }
    }
}

impl Memory for HostMemory {
    type Error = DeviceError;
    type Lender<'a> = HostLender<'a>;

    fn launch(run: HostRun<'_>, mode: Mode) -> Result<(), DeviceError> {
        run.launch_and_keep(mode).map(drop)
    }
}

impl<'a> HostRun<'a> {
    /// Hands back what it was done with: the arrays as the kernels left them.
    pub(super) fn launch_and_keep(self, mode: Mode) -> Result<(&'a mut HostScanner, Vec<HostArray>), DeviceError> {
        let Self { lender: HostLender { scanner, mut arrays, outputs }, call, .. } = self;
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

/// The first scan of two types or of halves, and that of an instance that the build left out
/// ([`Instance::is_built_in`](crate::element::Instance::is_built_in)), takes the seconds of a C++ compiler, as the first run of a
/// definition does; without one they are errors.
impl AnyScanner for HostScanner {
    type Error = DeviceError;
    type Memory = HostMemory;
    type Array<T: Pod> = Vec<T>;

    fn array<T: Pod>(&mut self, elements: &[T]) -> Result<Vec<T>, DeviceError> {
        let mut array = self.zeros(elements.len())?;
        array.copy_from_slice(elements);
        Ok(array)
    }

    fn zeros<T: Pod>(&mut self, elements: usize) -> Result<Vec<T>, DeviceError> {
        let mut array = Vec::new();
        array.try_reserve_exact(elements).map_err(|_| DeviceError::OutOfMemory {
            what: String::from("an array"),
            device: String::from("this machine"),
            needed_bytes: elements.saturating_mul(size_of::<T>()) as u64,
            available_bytes: available_memory_bytes().unwrap_or(0),
        })?;
        array.resize(elements, T::zeroed());
        Ok(array)
    }

    fn read<T: Pod>(&mut self, array: &Vec<T>) -> Result<Vec<T>, DeviceError> {
        self.array(array)
    }

    fn check(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn run(&mut self, defined: Defined) -> HostRun<'_> {
        HostRun::new(HostLender::new(self), defined)
    }

    fn scan<T: Element, U: Element>(
        &mut self,
        operator: Operator,
        mode: Mode,
        input: &(impl Lends<HostMemory, T> + ?Sized),
        output: &mut (impl LendsMut<HostMemory, U> + ?Sized),
    ) -> Result<(), DeviceError> {
        let problem = Problem::accumulating(operator, T::ELEMENT, U::ELEMENT).map_err(ConfigError::from)?;
        check_lengths(mode, input.count(), output.count_mut())?;
        let mut lender = HostLender::new(self);
        let input = input.lend(&mut lender, Role::Elements);
        let output = output.lend_mut(&mut lender, Role::Elements);
        lender.scan(problem, mode, input.address, output)
    }

    fn in_place<T: Element>(
        &mut self,
        operator: Operator,
        mode: Mode,
        data: &mut (impl LendsMut<HostMemory, T> + ?Sized),
    ) -> Result<(), DeviceError> {
        let problem = Problem::accumulating(operator, T::ELEMENT, T::ELEMENT).map_err(ConfigError::from)?;
        let mut lender = HostLender::new(self);
        let data = data.lend_mut(&mut lender, Role::InPlace);
        lender.scan(problem, mode, data.address, data)
    }
}
