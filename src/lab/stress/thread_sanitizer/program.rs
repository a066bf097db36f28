//! The program: compiled, kept, started.

use super::job::{Job, ThreadSanitizerError};
use super::report::{self, Ending};
use crate::lab::host_compiler::{Ended, HostCompilerError, Product, Recipe, Unit, execute};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// For every file. The context of the running thread is one load away if the thread-local is resolved at link time;
/// line tables are what reports name lines from.
const OPTIONS: [&str; 6] =
    ["-std=c++17", "-g1", "-fno-exceptions", "-fno-rtti", "-ftls-model=initial-exec", "-DLOOKBACK_MUTANTS_AT_RUN_TIME"];

/// For the kernels. More optimisation takes longer to compile and saves little: most instructions are the sanitizer's.
const KERNEL_OPTIONS: [&str; 2] = ["-O1", "-fsanitize=thread"];

/// For the program around them: no call of memcpy or memset where none is written, because the sanitizer sees those.
const PROGRAM_OPTIONS: [&str; 2] = ["-O2", "-fno-builtin"];

/// The first race ends the process; a process that ends need not linger for others.
const SANITIZER_OPTIONS: &str = "halt_on_error=1:exitcode=66:atexit_sleep_ms=0:color=never";

/// How long the program may take to say that it is there.
const ANSWER_TIME: Duration = Duration::from_secs(30);

const DEFINITION: &str = "#define LOOKBACK_THREAD_SANITIZER\n";

/// How it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Plain,
    /// Without address space randomisation: some kernels put libraries where the sanitizer has its shadow.
    FixedAddresses,
}

/// A program that has answered.
#[derive(Debug)]
pub(super) struct Program {
    product: Product,
    start: Start,
    /// ThreadSanitizer's own.
    pub(super) options: &'static str,
}

impl Program {
    pub(super) fn find() -> Result<Self, ThreadSanitizerError> {
        // Threads of one process had better wait for each other than compile the same program twice.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let made = recipe().make().map_err(|error| match error {
            HostCompilerError::NotAble { compiler, output, .. } => ThreadSanitizerError::NoLibrary { compiler, output },
            other => other.into(),
        });
        Self::probe(made?)
    }

    /// What made it, in its own words.
    pub(super) fn compiler(&self) -> &str {
        &self.product.compiler
    }

    /// Finds out how the program starts here.
    fn probe(product: Product) -> Result<Self, ThreadSanitizerError> {
        let mut program = Self { product, start: Start::Plain, options: SANITIZER_OPTIONS };
        let mut said = String::new();
        for start in [Start::Plain, Start::FixedAddresses] {
            program.start = start;
            match program.execute("", ANSWER_TIME) {
                Ok(ended) if ended.output.trim() == "ready" => return Ok(program),
                Ok(ended) => said += &format!("{}{} ", ended.output, ended.errors),
                Err(error) => said += &format!("{error} "),
            }
        }
        Err(ThreadSanitizerError::CannotRun { output: said.trim().to_owned() })
    }

    /// How the jobs ended and the place of the one that this is about, as the program says it.
    pub(super) fn run(&self, jobs: &str, time_limit: Duration) -> Result<(Ending, usize), ThreadSanitizerError> {
        let ended = self.execute(jobs, time_limit)?;
        let status = match ended.status {
            None => format!("no verdict in {} s", time_limit.as_secs_f32()),
            Some(status) if status.success() => String::new(),
            Some(status) => format!("the program ended with {status}"),
        };
        report::parse(&ended.output, &ended.errors, &status)
    }

    fn execute(&self, jobs: &str, time_limit: Duration) -> Result<Ended, std::io::Error> {
        let mut command = match self.start {
            Start::Plain => Command::new(&self.product.path),
            Start::FixedAddresses => {
                let mut command = Command::new("setarch");
                command.arg(std::env::consts::ARCH).arg("-R").arg(&self.product.path);
                command
            }
        };
        execute(command.env("TSAN_OPTIONS", self.options), jobs, time_limit)
    }
}

fn recipe() -> Recipe {
    let mut units = Vec::new();
    let mut instances = String::from("#define LOOKBACK_INSTANCES(EACH)");
    for (number, (element, operator)) in Job::INSTANCES.into_iter().enumerate() {
        let operator = operator.cuda_type(element);
        let text = format!(
            "{DEFINITION}#define LOOKBACK_PROBLEM ::lookback::plain<{operator}>\n#define LOOKBACK_BODIES lookback_bodies_{number}\n\
             #include \"cuda/host/instantiate.cpp\"\n"
        );
        units.push(Unit { name: format!("kernels_{number}.cpp"), text, options: &KERNEL_OPTIONS });
        instances += &format!(" EACH({operator}, lookback_bodies_{number})");
    }
    for (name, file) in [("program.cpp", "thread_sanitizer/program.cpp"), ("runtime.cpp", "runtime.cpp")] {
        // A namespace of its own: the linker keeps one of two functions that have the same name, and that of a kernel
        // must be the instrumented one.
        let text = format!(
            "{DEFINITION}{instances}\n#define lookback lookback_uninstrumented\n#include \"cuda/host/{file}\"\n"
        );
        units.push(Unit { name: name.to_owned(), text, options: &PROGRAM_OPTIONS });
    }
    Recipe {
        purpose: "the ThreadSanitizer program",
        kind: "thread-sanitizer",
        options: &OPTIONS,
        units,
        link_options: &["-fsanitize=thread"],
    }
}
