//! `lookback compare --ranks`: one scan over several devices.

use super::arguments::{CompareArguments, DeviceChoice, Format, Ranks, refuse_idle};
use super::compare::origin;
use super::console::Console;
use super::error::{CliError, EXIT_OK, EXIT_WRONG};
use crate::element::{ElementType, Operator};
use crate::lab::device::{DeviceDescription, DeviceError};
use crate::lab::ranks::record::{FORMAT, RankRecord, Row};
use crate::lab::ranks::{Came, Manner, RankDevice, Way, Work, run, ways};
use crate::lab::recorder::{Lock, claim_folder};
use crate::lab::report;
use crate::ranks::{Group, Place, RankError};
use crate::strategy::Mode;
use crate::text::{ArraySize, SizeError, format_size, significant};
use std::path::Path;
use std::time::Duration;

/// Seconds that ranks wait for each other.
const TIMEOUT_SECONDS: u64 = 60;

/// What runs at every rank.
#[derive(Debug, Clone)]
struct Jobs {
    /// Scans, with their elements, and how these are shared.
    works: Vec<(Work, u64, Way)>,
    samples: u32,
}

/// What connects ranks, and what their devices are.
struct Told {
    description: DeviceDescription,
    method: &'static str,
    connection: String,
}

/// Runs the scans over all ranks and returns the exit code; of several processes only that of rank 0 prints.
///
/// # Errors
/// When an option has no meaning here, a device is missing, or a rank is lost, which the error names.
pub fn compare(arguments: &CompareArguments, ranks: Ranks, console: &mut Console) -> Result<u8, CliError> {
    refuse(arguments)?;
    let timeout = Duration::from_secs(arguments.timeout.unwrap_or(TIMEOUT_SECONDS));
    let is_cuda = is_cuda(arguments, console)?;
    let chunks: &[u64] = match ranks {
        Ranks::Here(count) if is_cuda && !are_linked(count) => {
            console.remark("these GPUs do not reach each other's memory: no tiles are dealt");
            &[]
        }
        Ranks::Here(_) if is_cuda => &[1 << 14],
        Ranks::Here(_) => &[1 << 10],
        Ranks::Environment => &[],
    };
    let jobs = Jobs::new(arguments, chunks, is_cuda)?;
    let place = match ranks {
        Ranks::Here(_) => None,
        Ranks::Environment => Some(Place::from_environment().map_err(lost)?),
    };
    // Which alone prints and keeps a record.
    let leads = place.as_ref().is_none_or(|place| place.rank == 0);
    let _lock = arguments.output.as_deref().filter(|_| leads).map(claim).transpose()?;
    let groups = match (ranks, &place) {
        (_, Some(place)) => vec![Group::join(place, timeout).map_err(lost)?],
        (Ranks::Here(count), None) => Group::in_process(count, timeout).map_err(lost)?,
        (Ranks::Environment, None) => Vec::new(),
    };
    let mut printer = Printer { console, is_table: arguments.format == Format::Table && leads, heading: None };
    let mut rows = Vec::new();
    let (mut told, mut skipped) = (None, Vec::new());
    // A thread for each rank of this process, and this one hears of the first.
    let (tell, hear) = std::sync::mpsc::channel();
    let ends: Vec<Result<(), DeviceError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = groups
            .into_iter()
            .enumerate()
            .map(|(index, group)| {
                let (jobs, tell) = (&jobs, (index == 0).then(|| tell.clone()));
                scope.spawn(move || {
                    rank(group, is_cuda, arguments, jobs, |news| {
                        if let Some(tell) = &tell {
                            let _ = tell.send(news); // It listens until all have ended.
                        }
                    })
                })
            })
            .collect();
        drop(tell);
        for news in hear {
            match news {
                News::Told(facts) => {
                    printer.begin(&facts)?;
                    told = Some(facts);
                }
                News::Skipped(what) => {
                    printer.console.remark(&what);
                    skipped.push(what);
                }
                News::Row(row) => {
                    printer.row(&row, is_cuda)?;
                    rows.push(*row);
                }
            }
        }
        Ok::<_, CliError>(
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect(),
        )
    })?;
    let ended = ends.into_iter().collect::<Result<(), _>>().map_err(end_of);
    if rows.is_empty() && leads {
        ended?;
        let reasons: String = skipped.iter().map(|what| format!("\n  {what}")).collect();
        return Err(CliError::Usage(format!("nothing was scanned:{reasons}")));
    }
    // What was scanned before a rank failed is kept, too.
    let wrong = rows.iter().any(|row| row.wrong > 0);
    if let (true, Some(told)) = (leads, told) {
        let record = RankRecord {
            header: origin(FORMAT, told.description),
            connection: told.connection,
            method: told.method.to_owned(),
            rows,
        };
        if arguments.format == Format::Json {
            console.print(&format!("{}\n", record.json()))?;
        }
        if let Some(directory) = &arguments.output {
            record.write(directory)?;
            let pictures = report::write_ranks(&record, directory)?;
            console.remark(&format!("data and {pictures} picture(s): {}", directory.display()));
        }
    }
    ended?;
    Ok(if wrong { EXIT_WRONG } else { EXIT_OK })
}

/// Keeps others out of a folder that is to have a record, unless it has one.
fn claim(folder: &Path) -> Result<Lock, CliError> {
    let lock = claim_folder(folder)?;
    if RankRecord::is_in(folder) {
        let folder = folder.display();
        return Err(CliError::Usage(format!(
            "{folder} has a record of ranks already, which stays; choose another folder"
        )));
    }
    Ok(lock)
}

enum News {
    Told(Told),
    Skipped(String),
    Row(Box<Row>),
}

/// What a rank does.
fn rank(
    group: Group,
    is_cuda: bool,
    arguments: &CompareArguments,
    jobs: &Jobs,
    tell: impl Fn(News),
) -> Result<(), DeviceError> {
    if is_cuda {
        return cuda_rank(group, jobs, tell);
    }
    cpu_rank(group, arguments, jobs, tell)
}

#[cfg(feature = "cpu")]
fn cpu_rank(group: Group, arguments: &CompareArguments, jobs: &Jobs, tell: impl Fn(News)) -> Result<(), DeviceError> {
    let asked = super::devices::cpu_settings(arguments);
    let settings = if arguments.resident_blocks.is_some() { asked } else { asked.beside_others(group.size()) };
    let mut device = crate::lab::ranks::host::CpuRank::new(group, settings);
    jobs.run(&mut device, String::from("the group's own connections"), tell)?;
    device.finish()
}

/// Nobody comes here: `is_cuda` has refused it.
#[cfg(not(feature = "cpu"))]
fn cpu_rank(_: Group, _: &CompareArguments, _: &Jobs, _: impl Fn(News)) -> Result<(), DeviceError> {
    Err(DeviceError::NoDataset)
}

#[cfg(feature = "nccl")]
fn cuda_rank(group: Group, jobs: &Jobs, tell: impl Fn(News)) -> Result<(), DeviceError> {
    let mut device = crate::lab::cuda::ranks::CudaRank::open(group)?;
    let connection = format!("NCCL {}", device.nccl_version()?);
    jobs.run(&mut device, connection, tell)?;
    Ok(device.finish()?)
}

/// Likewise.
#[cfg(not(feature = "nccl"))]
fn cuda_rank(_: Group, _: &Jobs, _: impl Fn(News)) -> Result<(), DeviceError> {
    Err(DeviceError::NoDataset)
}

impl Jobs {
    /// Dealt in these chunks, where nothing else is said.
    fn new(arguments: &CompareArguments, chunks: &[u64], is_cuda: bool) -> Result<Self, CliError> {
        let operators = arguments.operators.as_ref().map_or(&[Operator::Sum][..], |names| &names.choices);
        let modes = arguments.modes.as_ref().map_or(&[Mode::Inclusive][..], |names| &names.choices);
        let manners = arguments.manners.as_ref().map_or(Manner::ALL, |names| &names.choices);
        let types = arguments.types.as_ref().map(|names| &names.choices[..]);
        let mut works = Vec::new();
        for &operator in operators {
            for &output in types.unwrap_or(&[operator.usual_element()]) {
                let inputs =
                    arguments.input_types.as_ref().map_or(std::slice::from_ref(&output), |names| &names.choices);
                for &input in inputs {
                    for &mode in modes {
                        let work = Work::new(operator, input, output, mode).map_err(CliError::Usage)?;
                        let unsaid: &[u64] = if is_cuda { &[1 << 20, 1 << 24, 1 << 28] } else { &[1000, 30_000] };
                        let sizes = counts(arguments.sizes.as_deref(), output)?.unwrap_or(unsaid.to_vec());
                        let chunks = counts(arguments.chunks.as_deref(), output)?.unwrap_or(chunks.to_vec());
                        let ways = ways(manners, &chunks);
                        if ways.is_empty() {
                            let what = "--manners cyclic: say in which --chunks tiles are dealt to these ranks, 16384 for example";
                            return Err(CliError::Usage(String::from(what)));
                        }
                        works
                            .extend(sizes.into_iter().flat_map(|n| ways.iter().map(move |way| (work, n, way.clone()))));
                    }
                }
            }
        }
        Ok(Self { works, samples: arguments.samples.unwrap_or(if is_cuda { 10 } else { 1 }) })
    }

    fn run(&self, device: &mut dyn RankDevice, connection: String, tell: impl Fn(News)) -> Result<(), DeviceError> {
        tell(News::Told(Told { description: device.description(), method: device.method(), connection }));
        for (work, n, way) in &self.works {
            match run(device, *work, *n, way, self.samples)? {
                Came::Rows(rows) => rows.into_iter().for_each(|row| tell(News::Row(Box::new(row)))),
                Came::Skipped(why) => tell(News::Skipped(format!("n = {}: {why}", format_size(*n)))),
            }
        }
        Ok(())
    }
}

/// Whether so many GPUs reach each other's memory.
#[cfg(feature = "nccl")]
fn are_linked(count: usize) -> bool {
    crate::cuda::ranks::are_linked(count)
}

/// Nobody comes here: `is_cuda` has refused it.
#[cfg(not(feature = "nccl"))]
fn are_linked(_: usize) -> bool {
    false
}

/// Sizes in elements of a type.
fn counts(sizes: Option<&[ArraySize]>, element: ElementType) -> Result<Option<Vec<u64>>, CliError> {
    let elements = |sizes: &[ArraySize]| sizes.iter().map(|size| size.elements(element.bytes())).collect();
    sizes.map(elements).transpose().map_err(|error: SizeError| CliError::Usage(error.to_string()))
}

/// Whether ranks are GPUs.
fn is_cuda(arguments: &CompareArguments, console: &Console) -> Result<bool, CliError> {
    match (arguments.device, gpus()) {
        (DeviceChoice::Cpu, _) if cfg!(feature = "cpu") => Ok(false),
        (DeviceChoice::Cpu, _) => Err(CliError::NotBuilt { device: "CPU device", feature: "cpu" }),
        (_, Ok(())) => Ok(true),
        (DeviceChoice::Auto, Err(error)) if cfg!(feature = "cpu") => {
            let why = match &error {
                CliError::NoDevice { source, .. } => source.to_string(),
                other => other.to_string(),
            };
            console.remark(&format!("{why}\nrunning on CPU devices instead\n"));
            Ok(false)
        }
        (_, Err(error)) => Err(error),
    }
}

/// Whether there is a GPU, and this build brings several together.
#[cfg(feature = "nccl")]
fn gpus() -> Result<(), CliError> {
    let source = match crate::lab::cuda::CudaDevice::count() {
        Ok(1..) => return Ok(()),
        Ok(available) => crate::cuda::CudaError::NoDevice { ordinal: 0, available },
        Err(error) => error,
    };
    Err(CliError::NoDevice { device: "CUDA", source: source.into() })
}

#[cfg(not(feature = "nccl"))]
fn gpus() -> Result<(), CliError> {
    Err(CliError::NotBuilt { device: "ranks on GPUs", feature: "nccl" })
}

/// Refuses what says how one device is compared.
fn refuse(arguments: &CompareArguments) -> Result<(), CliError> {
    let why = "the scans of --ranks are those of auto, of arrays that are known by their index";
    refuse_idle([
        ("--problem", arguments.problem.is_some(), false, why),
        ("--shape", arguments.shape.is_some(), false, why),
        ("--run-length", arguments.run_length.is_some(), false, why),
        ("--strategies", arguments.strategies.is_some(), false, why),
        ("--vts", arguments.vts.is_some(), false, why),
        ("--blocks", arguments.blocks.is_some(), false, why),
        ("--tuning", arguments.tuning.is_some(), false, why),
        ("--in-place", arguments.in_place, false, why),
        ("--pattern", arguments.pattern.is_some(), false, why),
        ("--composition", arguments.composition.is_some(), false, why),
        ("--descriptor", arguments.descriptor.is_some(), false, why),
        ("--tile-order", arguments.tile_order.is_some(), false, why),
        ("--input", arguments.input.is_some(), false, why),
        ("--seed", arguments.seed.is_some(), false, why),
        ("--input-offset", arguments.input_offset != 0, false, why),
        ("--output-offset", arguments.output_offset.is_some(), false, why),
        ("--save-output", arguments.save_output.is_some(), false, why),
        ("--resume", arguments.resume, false, "a run over ranks is kept at its end, and begun anew"),
        ("--format", arguments.format == Format::Csv, false, "a run over ranks is printed as a table or as JSON"),
    ])
}

fn lost(error: RankError) -> CliError {
    CliError::Ranks(error)
}

fn end_of(source: DeviceError) -> CliError {
    match source {
        DeviceError::Ranks(error) => lost(error),
        DeviceError::Config(error) => CliError::Usage(error.to_string()),
        #[cfg(feature = "cuda")]
        DeviceError::Cuda(crate::cuda::CudaError::Ranks(error)) => lost(error),
        #[cfg(feature = "cuda")]
        DeviceError::Cuda(ref error) if error.is_absence() => CliError::NoDevice { device: "CUDA", source },
        #[cfg(feature = "cpu")]
        DeviceError::NoKernel(_) => CliError::NoDevice { device: "CPU", source },
        _ => CliError::Device(source),
    }
}

/// A line a row, under a heading wherever another scan begins.
struct Printer<'a> {
    console: &'a mut Console,
    is_table: bool,
    heading: Option<String>,
}

impl Printer<'_> {
    fn begin(&mut self, Told { description, connection, .. }: &Told) -> Result<(), CliError> {
        if !self.is_table {
            return Ok(());
        }
        self.console.print(&format!("{}, by {connection}\n", description.name))
    }

    fn row(&mut self, row: &Row, is_cuda: bool) -> Result<(), CliError> {
        if !self.is_table {
            return Ok(());
        }
        let heading = format!("{} ranks, {}", row.ranks, row.scan());
        if self.heading.as_ref() != Some(&heading) {
            let columns = if is_cuda { COLUMNS } else { CPU_COLUMNS };
            self.console.print(&format!("\n{heading}\n{columns}\n"))?;
            self.heading = Some(heading);
        }
        let verdict = if row.wrong == 0 { String::from("ok") } else { format!("WRONG {}", row.wrong) };
        let mut line = format!("{:<12} {:>9}", row.shared(), format_size(row.n));
        if is_cuda && !row.samples_ns.is_empty() {
            let microseconds = |nanoseconds: f64| significant(nanoseconds / 1e3, 9);
            line += &format!(
                " {:>9} {:>9} {:>9} {:>6.2} {:>6.2}",
                microseconds(row.time_ns()),
                microseconds(row.alone_ns()),
                significant(row.rate(), 9),
                row.times_one(),
                row.by_bytes
            );
        }
        self.console.print(&format!("{line}  {verdict}\n"))
    }
}

const COLUMNS: &str = "manner               n   time us  alone us   1e9 / s  x one  bytes";
const CPU_COLUMNS: &str = "manner               n";
