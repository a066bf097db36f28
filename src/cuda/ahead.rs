//! The kernels of a program of yours, made ahead where there is no GPU.
//!
//! A function that is generic over [`AnyScanner`] scans nothing on [`Ahead`]: of each of its scans the kernels are compiled that
//! GPUs of some kinds would run, definitions and operators of your own included, into a folder that
//! [`Scanner::without_nvrtc`](super::Scanner::without_nvrtc) takes.
//!
//! ```no_run
//! use lookback::cuda::{Ahead, Architecture, Compiler};
//! use lookback::element::Definition;
//! use lookback::gpu::Gpu;
//! use lookback::run::AnyScanner;
//!
//! fn smooth<S: AnyScanner>(scanner: &mut S, a: &S::Array<f32>, x: &mut S::Array<f32>) -> Result<(), Box<dyn std::error::Error>> {
//!     let recurrence = Definition::linear_recurrence::<f32>()?.define()?;
//!     Ok(scanner.run(recurrence).input(a).in_place(x).rows(8192).inclusive()?)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let a100 = Gpu { architecture: Architecture { major: 8, minor: 0 }, multiprocessors: 108 };
//! let mut ahead = Ahead::new(Compiler::new()?.keeping_in("kernels"), [Gpu::H100, a100]);
//! let (a, mut x) = (ahead.zeros(1 << 26)?, ahead.zeros(1 << 26)?); // of no memory
//! smooth(&mut ahead, &a, &mut x)?;
//! println!("{} kernels", ahead.kernels());
//! # Ok(())
//! # }
//! ```
//!
//! Which kernels these are depends on types, lengths, the GPU, and where arrays begin within 16 bytes. Arrays begin at a boundary here, as
//! allocations do: of a view that does not, the kernel may be missing. Arrays hold nothing, and are zeros when they are read: a
//! function that reads how long its next array is reads 0.

use super::Architecture;
use super::compile::Compiler;
use super::error::CudaError;
use crate::element::{Defined, Element, Operator, Problem};
use crate::run::lending::{Place, Role};
use crate::run::{AnyScanner, Lends, LendsMut, Memory, Run};
use crate::strategy::plan::{KernelKey, Plan, ScanRequest, Step};
use crate::strategy::{Choices, ConfigError, Mode, check_lengths};
use bytemuck::Pod;
use std::collections::HashSet;
use std::marker::PhantomData;

/// Makes the kernels of scans, and runs none of them; see the [module](self).
#[derive(Debug)]
pub struct Ahead {
    compiler: Compiler,
    choices: Vec<Choices>,
    made: HashSet<(Architecture, KernelKey)>,
    /// Where the next array would lie.
    free: u64,
}

/// What the driver aligns arrays to.
const ALIGNMENT: u64 = 256;

impl Ahead {
    /// For scanners on GPUs of these kinds, with the compiler that names the [folder](Compiler::keeping_in). A GPU is a
    /// [`Gpu`](crate::gpu::Gpu), or [`Choices`] where its scanner has a strategy, a configuration or a tuning table of its own.
    pub fn new(compiler: Compiler, gpus: impl IntoIterator<Item: Into<Choices>>) -> Self {
        let choices = gpus.into_iter().map(Into::into).collect();
        Self { compiler, choices, made: HashSet::new(), free: ALIGNMENT }
    }

    /// How many kernels were made so far, those counted that were there already.
    pub fn kernels(&self) -> usize {
        self.made.len()
    }

    /// What went wrong with the compiler's cache, which keeps no kernel from being made.
    pub fn warnings(&self) -> Vec<String> {
        self.compiler.warnings()
    }

    /// Makes what each GPU would run.
    fn make(&mut self, request: impl Fn(&Choices) -> Result<Option<ScanRequest>, CudaError>) -> Result<(), CudaError> {
        for choices in &self.choices {
            let Some(request) = request(choices)? else { continue };
            for key in Plan::new(&request)?.steps.iter().map(Step::key) {
                let architecture = choices.gpu.architecture;
                if !self.made.contains(&(architecture, key)) {
                    self.compiler.make_ahead(key, architecture)?;
                    self.made.insert((architecture, key));
                }
            }
        }
        Ok(())
    }

    /// The scan of so many numbers between arrays.
    fn scan_numbers(&mut self, scan: (Problem, Mode), from: Place, to: Place) -> Result<(), CudaError> {
        let in_place = from.address == to.address;
        let addresses = [from.address, to.address];
        self.make(|choices| {
            let request = choices.scan_of_numbers(scan, addresses, to.elements as u64);
            Ok((to.elements > 0).then_some(ScanRequest { in_place, ..request }))
        })
    }
}

/// No memory: arrays have places and lengths alone.
#[derive(Debug, Clone, Copy)]
pub struct NoMemory;

/// An array of [`NoMemory`].
#[derive(Debug)]
pub struct NoArray<T> {
    place: Place,
    of: PhantomData<T>,
}

impl<T> Lends<NoMemory, T> for NoArray<T> {
    fn count(&self) -> usize {
        self.place.elements
    }

    fn lend<'a>(&'a self, _: &mut &'a mut Ahead, _: Role) -> Place {
        self.place
    }
}

impl<T> LendsMut<NoMemory, T> for NoArray<T> {
    fn count_mut(&mut self) -> usize {
        self.place.elements
    }

    fn lend_mut<'a>(&'a mut self, _: &mut &'a mut Ahead, _: Role) -> Place {
        self.place
    }
}

impl Memory for NoMemory {
    type Error = CudaError;
    type Lender<'a> = &'a mut Ahead;

    fn launch(run: Run<'_, Self>, mode: Mode) -> Result<(), CudaError> {
        let Run { lender, call, .. } = run;
        lender.make(|choices| Ok(call.clone().prepare(mode, choices)?.map(|prepared| prepared.request)))
    }
}

impl AnyScanner for Ahead {
    type Error = CudaError;
    type Memory = NoMemory;
    type Array<T: Pod> = NoArray<T>;

    fn array<T: Pod>(&mut self, elements: &[T]) -> Result<NoArray<T>, CudaError> {
        self.zeros(elements.len())
    }

    fn zeros<T: Pod>(&mut self, elements: usize) -> Result<NoArray<T>, CudaError> {
        let bytes = (elements as u64).saturating_mul(size_of::<T>() as u64).max(1);
        let behind = self.free.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
        let address = self.free;
        self.free = behind.ok_or_else(|| CudaError::OutOfMemory {
            what: String::from("an array"),
            needed_bytes: bytes,
            available_bytes: u64::MAX - address,
        })?;
        Ok(NoArray { place: Place { address, elements }, of: PhantomData })
    }

    fn read<T: Pod>(&mut self, array: &NoArray<T>) -> Result<Vec<T>, CudaError> {
        let (elements, needed_bytes) =
            (array.place.elements, array.place.elements.saturating_mul(size_of::<T>()) as u64);
        let mut zeros = Vec::new();
        zeros.try_reserve_exact(elements).map_err(|_| CudaError::OutOfMemory {
            what: String::from("the zeros that an array holds here"),
            needed_bytes,
            available_bytes: 0,
        })?;
        zeros.resize(elements, T::zeroed());
        Ok(zeros)
    }

    fn check(&mut self) -> Result<(), CudaError> {
        Ok(())
    }

    fn run(&mut self, defined: Defined) -> Run<'_, NoMemory> {
        Run::new(self, defined)
    }

    fn scan<T: Element, U: Element>(
        &mut self,
        operator: Operator,
        mode: Mode,
        input: &(impl Lends<NoMemory, T> + ?Sized),
        output: &mut (impl LendsMut<NoMemory, U> + ?Sized),
    ) -> Result<(), CudaError> {
        let problem = Problem::accumulating(operator, T::ELEMENT, U::ELEMENT).map_err(ConfigError::from)?;
        check_lengths(mode, input.count(), output.count_mut())?;
        let mut lender = self;
        let (from, to) = (input.lend(&mut lender, Role::Elements), output.lend_mut(&mut lender, Role::Elements));
        lender.scan_numbers((problem, mode), from, to)
    }

    fn in_place<T: Element>(
        &mut self,
        operator: Operator,
        mode: Mode,
        data: &mut (impl LendsMut<NoMemory, T> + ?Sized),
    ) -> Result<(), CudaError> {
        let problem = Problem::accumulating(operator, T::ELEMENT, T::ELEMENT).map_err(ConfigError::from)?;
        let mut lender = self;
        let place = data.lend_mut(&mut lender, Role::InPlace);
        lender.scan_numbers((problem, mode), place, place)
    }
}
