//! `lookback kernels`: compiles ahead what `auto` runs, for programs that run without NVRTC.

use super::arguments::Names;
use super::console::Console;
use super::error::{CliError, EXIT_OK};
use crate::cuda::{Compiler, CudaError};
use crate::element::{ElementType, Instance, Operator};
use crate::gpu::Architecture;
use crate::lab::device::DeviceError;
use crate::lab::workers::on_threads;
use crate::strategy::Mode;
use crate::strategy::tuning::kernels_of;
use clap::Args;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// `lookback kernels`.
#[derive(Debug, Clone, Args)]
pub struct KernelsArguments {
    /// Compute capabilities, such as 9.0,8.0
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true, value_parser = parse_architecture)]
    pub architectures: Vec<Architecture>,
    /// The folder for the kernels; what is there stays
    #[arg(long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// Element types, or all [default: all numbers]
    #[arg(long, value_name = "LIST")]
    pub types: Option<Names<ElementType>>,
    /// Operators, or all [default: sum]
    #[arg(long, value_name = "LIST")]
    pub operators: Option<Names<Operator>>,
    /// inclusive, exclusive, inclusive-minus-input, or all [default:
    /// inclusive,exclusive]
    #[arg(long, value_name = "LIST")]
    pub modes: Option<Names<Mode>>,
    /// No progress and no remarks
    #[arg(long, short)]
    pub quiet: bool,
}

fn parse_architecture(text: &str) -> Result<Architecture, String> {
    Architecture::parse(text.trim())
        .ok_or_else(|| String::from("write a compute capability as MAJOR.MINOR, such as 9.0"))
}

/// Runs `lookback kernels` and returns the exit code.
///
/// # Errors
/// When there is no NVRTC, it does not know an architecture, a kernel does not compile, or the folder cannot be written.
pub fn kernels(arguments: &KernelsArguments) -> Result<u8, CliError> {
    let mut console = Console::new(arguments.quiet);
    let types = arguments.types.as_ref().map_or(ElementType::NUMBERS.to_vec(), |names| names.choices.clone());
    let operators = arguments.operators.as_ref().map_or(vec![Operator::Sum], |names| names.choices.clone());
    let modes = arguments.modes.as_ref().map_or(vec![Mode::Inclusive, Mode::Exclusive], |names| names.choices.clone());
    let pairs = types.iter().flat_map(|&element| operators.iter().map(move |&operator| (element, operator)));
    let instances: Vec<Instance> =
        pairs.filter_map(|(element, operator)| Instance::new(element, operator).ok()).collect();
    let jobs: Vec<_> = (arguments.architectures.iter())
        .flat_map(|&architecture| {
            kernels_of(architecture, &instances, &modes).into_iter().map(move |key| (architecture, key))
        })
        .collect();
    if jobs.is_empty() {
        let message = "no operator asked for is defined on a type asked for, so there is no kernel to compile; see \
                       `lookback compare --help` for types and operators";
        return Err(CliError::Usage(message.to_owned()));
    }
    let compiler = Compiler::new().map_err(|source| CliError::NoCompiler { source })?.keeping_in(&arguments.output);
    console.remark(&format!("{} kernels", jobs.len()));
    console.start_progress(jobs.len() as u64);
    let advance = console.advancer();
    let next = AtomicUsize::new(0);
    let threads = available_parallelism().map_or(1, usize::from);
    let compiled = on_threads(threads, || {
        while let Some(&(architecture, key)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            compiler.make_ahead(key, architecture)?;
            advance(1);
        }
        Ok(())
    });
    compiled.into_iter().collect::<Result<(), _>>().map_err(|error| match error {
        CudaError::NotKept { .. } => CliError::Usage(error.to_string()),
        error => CliError::Device(DeviceError::Cuda(error)),
    })?;
    console.end_progress();
    for warning in compiler.warnings() {
        console.remark(&warning);
    }
    let architectures: Vec<String> = arguments.architectures.iter().map(Architecture::to_string).collect();
    console.print(&format!(
        "{} kernels for {} in {}, by {}\n",
        jobs.len(),
        architectures.join(", "),
        arguments.output.display(),
        compiler.name()
    ))?;
    Ok(EXIT_OK)
}
