//! The kernels for the CPU device: those of plain problems are compiled into the crate but for a few, and a few of them with
//! faults, too. Those of another problem are compiled by the machine's C++ compiler when they are asked for the first time, with
//! the faults or without.

use crate::abi;
use crate::cpu::{CurrentThreadSlot, current_thread_slot};
use crate::element::{ElementType, Operator, Problem};
use crate::kernels::own::OwnKernel;
use crate::lab::host_compiler::{HostCompilerError, Product, Recipe, Unit};
use crate::strategy::plan::Kernel;
use libloading::Library;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// A kernel of one problem, entered once for every CUDA thread.
pub type KernelBody = unsafe extern "C" fn(*const abi::lookback_config, *const abi::lookback_launch);

include!(concat!(env!("OUT_DIR"), "/instances.rs"));

/// Why there is no such kernel.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NoKernel {
    /// It could not be compiled.
    #[error(transparent)]
    Compiler(#[from] HostCompilerError),
    /// What was compiled could not be loaded.
    #[error("the kernel {kernel} for {problem} does not load: {reason}")]
    NotLoaded {
        /// The kernel.
        kernel: String,
        /// What it is for.
        problem: String,
        /// What the system's loader says.
        reason: String,
    },
}

/// The compiled kernel. The first call for a problem that the build left out takes the seconds of a compiler, or as long as a
/// file is read that was kept.
///
/// # Errors
/// Where no compiler makes the kernel.
pub fn kernel_body(problem: Problem, kernel: Kernel, has_mutants: bool) -> Result<KernelBody, NoKernel> {
    let canonical = problem.canonical();
    let plain = canonical.instance().filter(|_| canonical.is_plain());
    let built_in = plain.and_then(|plain| bodies(plain.element(), plain.operator(), has_mutants));
    // SAFETY: the table is a pure function of any number, in `cuda/host/instantiate.cpp`.
    match built_in.and_then(|table| unsafe { table(kernel as u32) }) {
        Some(body) => Ok(body),
        None => loaded(canonical, kernel, has_mutants),
    }
}

/// A kernel that the build left out, which stays loaded from then on. The one with faults is the one without where none is
/// chosen, and stands for it where it is there.
fn loaded(problem: Problem, kernel: Kernel, has_mutants: bool) -> Result<KernelBody, NoKernel> {
    type Slot = &'static Mutex<Option<Loaded>>;
    type Slots = HashMap<(Problem, Kernel, bool), Slot>;
    static SLOTS: Mutex<Option<Slots>> = Mutex::new(None);
    let (slot, has_mutants): (Slot, bool) = {
        let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
        let slots = slots.get_or_insert_default();
        // One that others compile right now counts as there; one that could not be compiled does not.
        let is_there = |slot: &Slot| slot.try_lock().map_or(true, |slot| slot.is_some());
        let has_mutants = has_mutants || slots.get(&(problem, kernel, true)).is_some_and(is_there);
        (slots.entry((problem, kernel, has_mutants)).or_insert_with(|| Box::leak(Box::default())), has_mutants)
    };
    // Under the kernel's own lock: threads of one process had better wait for each other than compile the same one twice.
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*slot {
        return Ok(known.body);
    }
    let made = Loaded::new(recipe(problem, kernel, has_mutants).make()?).map_err(|error| NoKernel::NotLoaded {
        kernel: kernel.name().to_owned(),
        problem: problem.to_string(),
        reason: error.to_string(),
    });
    Ok(slot.insert(made?).body)
}

/// A kernel in a library that was loaded.
#[derive(Debug)]
struct Loaded {
    body: KernelBody,
    /// If it went, the kernel would.
    _library: Library,
    _product: Product,
}

impl Loaded {
    fn new(product: Product) -> Result<Self, libloading::Error> {
        // SAFETY: it is whole (its name says what its bytes are), and was compiled from our sources, which do nothing when they
        // are loaded, and text of the user's, which is trusted. `lookback_connect` has the type that `cuda/host/` gives it, and the
        // kernel is a function of two pointers, which nobody runs before it is connected; what they point to is the business of
        // whoever runs it.
        unsafe {
            let library = Library::new(&product.path)?;
            library.get::<unsafe extern "C" fn(CurrentThreadSlot)>(b"lookback_connect\0")?(current_thread_slot);
            let body = *library.get::<KernelBody>(b"lookback_entry\0")?;
            Ok(Self { body, _library: library, _product: product })
        }
    }
}

/// A kernel of a user's own on the CPU device, compiled with the faults of all that it includes, of which a launch may choose
/// one ([`LaunchSettings::mutant`](crate::cpu::LaunchSettings)).
#[derive(Debug)]
pub struct OwnBody(Loaded);

impl OwnBody {
    /// Compiles it, or finds it where it was kept.
    ///
    /// # Errors
    /// Where no compiler makes it.
    pub fn compile(own: &OwnKernel<'_>) -> Result<Self, NoKernel> {
        let not_loaded = |error: libloading::Error| NoKernel::NotLoaded {
            kernel: own.function.to_owned(),
            problem: "arguments of one's own".to_owned(),
            reason: error.to_string(),
        };
        Loaded::new(recipe_of(true, &own.host_unit()).make()?).map(Self).map_err(not_loaded)
    }

    /// The kernel, for [`launch`](crate::cpu::launch) and its like.
    ///
    /// # Safety
    /// `Arguments` lies in memory as the kernel's structure does, and the kernel is not run once this is dropped.
    pub unsafe fn body<Arguments>(&self) -> unsafe extern "C" fn(*const abi::lookback_config, *const Arguments) {
        // SAFETY: both are functions of two pointers, and what the second one points to is what the caller promises.
        unsafe { std::mem::transmute::<KernelBody, _>(self.0.body) }
    }
}

fn recipe(problem: Problem, kernel: Kernel, has_mutants: bool) -> Recipe {
    let unit = format!(
        "#include \"cuda/{}\"\n{}#define LOOKBACK_KERNEL {}\n#define LOOKBACK_PROBLEM {}\n#include \"cuda/host/entry.cpp\"\n",
        kernel.file(),
        problem.declarations().replace("#include \"", "#include \"cuda/"),
        kernel.name(),
        problem.cuda_type()
    );
    recipe_of(has_mutants, &unit)
}

/// As the build compiles its own (`compile_cpu_kernels` in build.rs), but for where the running thread is found, and at
/// -O0: somebody waits for it. At -O1 a kernel takes nearly twice as long to compile, and a run hardly less, because most of it is
/// the executor's.
fn recipe_of(has_mutants: bool, unit: &str) -> Recipe {
    let mutants = if has_mutants { "#define LOOKBACK_MUTANTS_AT_RUN_TIME\n" } else { "" };
    let text = format!("{mutants}#define LOOKBACK_LOADED_AT_RUN_TIME\n#include \"cuda/faults/hooks.cuh\"\n{unit}");
    Recipe {
        purpose: "kernels on the CPU device",
        kind: "cpu-kernels",
        // A text without its `return` is an error on a GPU, too. Products are rounded before they are added, as in reproducible
        // scans on a GPU. A library shows nothing but what it is entered by: a static
        // variable of an inline function, such as a text's table of levels, would else be that of the first library that has one.
        options: &[
            "-std=c++17",
            "-O0",
            "-fPIC",
            "-fvisibility=hidden",
            "-fno-exceptions",
            "-fno-rtti",
            "-Werror=return-type",
            "-ffp-contract=off",
        ],
        units: vec![Unit { name: String::from("kernel.cpp"), text, options: &[] }],
        link_options: &["-shared", "-fPIC"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Instance;

    #[test]
    fn every_kernel_of_every_instance_is_compiled_or_left_out() {
        for instance in Instance::all() {
            let canonical = instance.canonical();
            let table = bodies(canonical.element(), canonical.operator(), false);
            assert_eq!(table.is_some(), instance.is_built_in(), "{instance}");
            for &kernel in Kernel::ALL.iter().filter(|_| instance.is_built_in()) {
                assert!(kernel_body(instance.into(), kernel, false).is_ok(), "{instance}, {}", kernel.name());
            }
        }
    }

    #[test]
    fn kernels_of_other_problems_have_faults_where_they_are_asked_for() {
        let widening = Problem::accumulating(Operator::Sum, ElementType::U8, ElementType::U32).expect("numbers");
        let text = |has_mutants| recipe(widening, Kernel::ALL[0], has_mutants).units[0].text.clone();
        assert_eq!(text(true).replacen("#define LOOKBACK_MUTANTS_AT_RUN_TIME\n", "", 1), text(false));
        assert_ne!(text(true), text(false));
    }
}
