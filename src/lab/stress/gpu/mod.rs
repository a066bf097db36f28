//! Stress of the scan kernels on a GPU: launches disturbed on purpose, every element of every output compared,
//! for the kernels as they are and for each fault on purpose (`cuda/faults`).
//!
//! What is run is drawn from a seed, case by case ([`StressCase`]): types, operators, modes, layouts and small
//! tiles; tiny grids and grids far beyond what can be resident; delays inside the kernels; one block a
//! multiprocessor; another kernel that holds most of the device for a while; several streams at once; replayed
//! graphs; workspaces that start full of other launches' descriptors, and right before the epoch's wrap.
//!
//! ```text
//! a run     scan · turn: compare the output and its guards, fill both, draw the next run's delays
//! a cycle   8 to 24 runs of other data and sizes, launched one by one or as one graph
//! a look    some 256 runs, then the host waits and reads what the device has counted
//! ```
//!
//! A tile that waits too long gives up and says whom it missed, so that lost progress is a finding and no hang.
//! For what hangs all the same there is a limit on the host; such a process must end, and kernels with a fault
//! run in a process of their own ([`child`]).

mod case;
pub mod child;
mod lane;
mod report;
pub mod sanitizer;
mod settings;

pub use super::scan_case::CaseError;
pub use case::{Launching, Scale, StressCase};
pub use report::{Finding, GpuStressProgress, GpuStressReport, StressFailure, StressOutcome};
pub use settings::GpuStressSettings;

use crate::cuda::compile::{Compiler, Variant};
use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::memory::DeviceMemory;
use crate::element::ElementType;
use crate::gpu::Architecture;
use crate::kernels::mutant::Mutant;
use crate::lab::cuda::harness::{attribute, on_all_cores, open_context};
use crate::lab::dataset::Dataset;
use crate::lab::workload::Workload;
use crate::strategy::Mode;
use crate::strategy::plan::KernelKey;
use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::nvrtc::Ptx;
use lane::{Data, DataOfSizes, Lane, LaneSetup, SharedMemory, Tools, place_inputs, shares_workspace};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Runs of a lane between two looks of the host.
const LOOK_RUNS: u64 = 256;
/// Arrays of data that the runs of a lane take turns with.
const DATA_SETS: u64 = 3;
/// Failures after which stress of the kernels as they are has seen enough.
const MOST_FAILURES: usize = 5;

/// Why stress did not run. What it finds is no error but a [`Finding`].
#[derive(Debug, thiserror::Error)]
pub enum StressError {
    /// CUDA is missing or failed before any launch.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// A line that is no case.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// A fault that no case can show.
    #[error("no case of the problems asked for can show the mutant {0} on one GPU; leave --problem or --device out")]
    CannotShow(&'static Mutant),
    /// A process of its own could not be started or said nothing.
    #[error("a process for stress failed: {0}")]
    Process(String),
}

/// Runs drawn cases until there are enough runs, the time is up, or something is found.
///
/// After a hang or a lost context nothing of CUDA is freed: the process should end.
///
/// # Errors
/// When CUDA is missing, a kernel does not compile, or no case can show the fault.
pub fn stress(
    settings: &GpuStressSettings,
    progress: &mut dyn FnMut(&GpuStressProgress),
) -> Result<GpuStressReport, StressError> {
    if let Some(mutant) = settings.mutant.filter(|_| !settings.can_draw()) {
        return Err(StressError::CannotShow(mutant));
    }
    // Where the GPU lacks what a case needs, the next one that it can run.
    let next = |index, architecture| {
        let mut from_here = (index..).take(settings.palette.max(1) as usize).map(|index| settings.draw(index));
        from_here.find(|case| runs_on(case, architecture)).unwrap_or_else(|| settings.draw(index))
    };
    // Most faults are found in the first configuration that shows them: the others need not be compiled.
    let ahead = if settings.mutant.is_some() { Vec::new() } else { settings.palette_cases() };
    run_cases(settings, &ahead, &next, progress)
}

/// Runs the case of a failure again, once with its own seed and then with others, until there are enough runs
/// or something is found.
///
/// # Errors
/// As [`stress`], and for a line that is no case.
pub fn reproduce(
    line: &str,
    settings: &GpuStressSettings,
    progress: &mut dyn FnMut(&GpuStressProgress),
) -> Result<GpuStressReport, StressError> {
    let case: StressCase = line.parse()?;
    let settings = GpuStressSettings { mutant: case.mutant, ..settings.clone() };
    let again = |index: u64| StressCase { seed: case.seed.wrapping_add(index), ..case.clone() };
    run_cases(&settings, std::slice::from_ref(&case), &|index, _| again(index), progress)
}

/// Compiles the kernels of these cases, but those that the architecture cannot run, on all cores, into the compiler's cache. Returns
/// how many there are.
///
/// # Errors
/// When a kernel does not compile.
pub fn compile(compiler: &Compiler, architecture: Architecture, cases: &[StressCase]) -> Result<u64, CudaError> {
    let wanted = kernels_of(cases, architecture)?;
    compile_all(compiler, architecture, &wanted).map(|cubins| cubins.len() as u64)
}

/// A kernel and the mutant: what a cubin is made for.
type CubinKey = (KernelKey, u32);

fn mutant_number(case: &StressCase) -> u32 {
    case.mutant.map_or(0, Mutant::number)
}

/// Whether the GPU has what the case needs.
fn runs_on(case: &StressCase, architecture: Architecture) -> bool {
    case.plans().is_ok_and(|plans| plans.iter().all(|plan| plan.runs_on(architecture)))
}

/// The kernels of those cases that the GPU can run.
fn kernels_of(cases: &[StressCase], architecture: Architecture) -> Result<Vec<CubinKey>, CudaError> {
    let mut seen = HashSet::new();
    let mut wanted = Vec::new();
    for case in cases.iter().filter(|case| runs_on(case, architecture)) {
        for plan in case.plans()? {
            for step in plan.steps {
                let key = (step.key(), mutant_number(case));
                if seen.insert(key) {
                    wanted.push(key);
                }
            }
        }
    }
    Ok(wanted)
}

fn compile_one(compiler: &Compiler, architecture: Architecture, key: CubinKey) -> Result<Vec<u8>, CudaError> {
    let ((kernel, problem, config), mutant) = key;
    let variant = Variant { mutant, is_stressed: true, without_line_info: true, ..Variant::default() };
    Ok(compiler.scan_kernel_variant(kernel, problem, &config, architecture, variant)?.cubin)
}

fn compile_all(
    compiler: &Compiler,
    architecture: Architecture,
    wanted: &[CubinKey],
) -> Result<HashMap<CubinKey, Vec<u8>>, CudaError> {
    let one = |&key: &CubinKey| Ok((key, compile_one(compiler, architecture, key)?));
    Ok(on_all_cores(wanted, one)?.into_iter().collect())
}

/// What one case came to.
#[derive(Debug, Default)]
struct CaseOutcome {
    runs: u64,
    elements: u64,
    delays: u64,
    found: Option<Finding>,
    /// The context is of no use any more.
    is_fatal: bool,
}

fn run_cases(
    settings: &GpuStressSettings,
    ahead: &[StressCase],
    next: &dyn Fn(u64, Architecture) -> StressCase,
    progress: &mut dyn FnMut(&GpuStressProgress),
) -> Result<GpuStressReport, StressError> {
    let begin = Instant::now();
    let mut harness = GpuHarness::open(settings)?;
    harness.compile_missing(ahead)?;
    let compile_seconds = begin.elapsed().as_secs_f64();
    let mut report =
        GpuStressReport { device: harness.name.clone(), compile_seconds, ..GpuStressReport::before(settings) };
    let enough = |report: &GpuStressReport| {
        let failures = if settings.mutant.is_some() { 1 } else { MOST_FAILURES };
        report.failures.len() >= failures
            || report.runs >= settings.runs
            || settings.seconds.is_some_and(|seconds| report.seconds >= seconds)
            || settings.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    };
    let mut is_fatal = false;
    while !is_fatal && !enough(&report) {
        let case = next(report.configurations, harness.architecture);
        let before = Instant::now();
        harness.compile_missing(std::slice::from_ref(&case))?;
        report.compile_seconds += before.elapsed().as_secs_f64();
        let outcome = harness.run(&case, settings)?;
        is_fatal = outcome.is_fatal;
        report.runs += outcome.runs;
        report.elements += outcome.elements;
        report.delays += outcome.delays;
        report.configurations += 1;
        report.seconds = begin.elapsed().as_secs_f64() - report.compile_seconds;
        if let Some(found) = outcome.found {
            let (at_run, seconds) = (report.runs, report.seconds);
            report.failures.push(StressFailure { found, at_run, seconds, case: case.to_string() });
        }
        progress(&GpuStressProgress {
            runs: report.runs,
            configurations: report.configurations,
            failures: report.failures.len(),
            seconds: report.seconds,
        });
    }
    report.kernels = harness.cubins.len() as u64;
    report.verdict = match report.failures.first() {
        None => StressOutcome::Survived { runs: report.runs },
        Some(first) => StressOutcome::Killed {
            how: first.found.clone(),
            at_run: first.at_run,
            seed: settings.seed,
            seconds: first.seconds,
        },
    };
    if is_fatal {
        // Freeing and unloading would wait for the launch that hangs, or fail one by one.
        std::mem::forget(harness);
    }
    Ok(report)
}

/// What cases run on.
struct GpuHarness {
    name: String,
    compiler: Compiler,
    architecture: Architecture,
    cubins: HashMap<CubinKey, Vec<u8>>,
    /// Of plain scans, for all of their cases.
    data: HashMap<(Workload, Mode), Vec<Arc<Data>>>,
    tools: Tools,
    shared: SharedMemory,
    multiprocessors: u32,
    /// For copies, and for the kernel that holds multiprocessors.
    stream: Arc<CudaStream>,
    memory: Arc<DeviceMemory>,
}

impl GpuHarness {
    fn open(settings: &GpuStressSettings) -> Result<Self, CudaError> {
        let (compiler, context) = open_context(settings.device)?;
        let (major, minor) =
            context.compute_capability().during(|| String::from("asking for the compute capability"))?;
        let architecture = Architecture { major, minor };
        let number = |which| attribute(&context, which);
        let shared = SharedMemory {
            block_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            multiprocessor_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            reserved_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
        };
        let multiprocessors = number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
        let module = context
            .load_module(Ptx::from_binary(compiler.tools("stress.cu", architecture)?.cubin))
            .during(|| String::from("loading the kernels of stress"))?;
        Ok(Self {
            name: context.name().during(|| String::from("asking for the device's name"))?,
            compiler,
            architecture,
            cubins: HashMap::new(),
            data: HashMap::new(),
            tools: Tools::new(module, shared.all())?,
            shared,
            multiprocessors,
            stream: context.new_stream().during(|| String::from("making a stream"))?,
            memory: DeviceMemory::new(&context)?,
        })
    }

    /// Compiles those kernels of the cases that it has not yet.
    fn compile_missing(&mut self, cases: &[StressCase]) -> Result<(), CudaError> {
        let mut missing = kernels_of(cases, self.architecture)?;
        missing.retain(|key| !self.cubins.contains_key(key));
        self.cubins.extend(compile_all(&self.compiler, self.architecture, &missing)?);
        Ok(())
    }

    /// What the runs of a case load and must store.
    fn data_of(&mut self, case: &StressCase) -> Result<DataOfSizes, CudaError> {
        let (memory, stream, mode) = (&self.memory, &self.stream, case.request.mode);
        let upload = |workload, n| {
            let upload = |seed| {
                let dataset = dataset(workload, n, seed);
                let stored = dataset.expected_output(mode);
                let stored = stored.unwrap_or_else(|| unreachable!("what is drawn for stress is exact"));
                let upload = |bytes: &[u8], what: &str| memory.upload(bytes, what, stream);
                let inputs = dataset.inputs().map(|(_, array)| upload(array, "data for stress"));
                Ok(Arc::new(Data {
                    inputs: inputs.collect::<Result<_, _>>()?,
                    elements: (stored.len() / dataset.workload.element().bytes()) as u64,
                    stored: upload(&stored, "a reference for stress")?,
                }))
            };
            (0..DATA_SETS).map(upload).collect::<Result<Vec<_>, CudaError>>()
        };
        if !case.workload.is_plain() {
            return case.sizes.iter().map(|&n| upload(case.workload_of(n), n)).collect();
        }
        // Scans of shorter arrays are the beginnings of that of the longest.
        let sets = match self.data.entry((case.workload, mode)) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => place.insert(upload(case.workload, case::MAXIMUM_ELEMENTS)?),
        };
        Ok(vec![sets.clone(); case.sizes.len()])
    }

    fn run(&mut self, case: &StressCase, settings: &GpuStressSettings) -> Result<CaseOutcome, CudaError> {
        self.memory.context().bind_to_thread().during(|| String::from("making the context current"))?;
        let plans = case.plans()?;
        let data = self.data_of(case)?;
        let inputs = place_inputs(case, &data, &self.memory, &self.stream)?;
        self.memory.finish(&self.stream, settings.pace().limit, "placing inputs")?;
        let cubin = |key: KernelKey| -> Result<Vec<u8>, CudaError> {
            let key = (key, mutant_number(case));
            match self.cubins.get(&key) {
                Some(cubin) => Ok(cubin.clone()),
                None => compile_one(&self.compiler, self.architecture, key),
            }
        };
        let setup = LaneSetup {
            case,
            plans: &plans,
            memory: &self.memory,
            tools: &self.tools,
            shared: self.shared,
            data: &data,
            inputs: &inputs,
            wait_nanoseconds: settings.pace().wait.as_nanos() as u64,
            architecture: self.architecture,
            cubin: &cubin,
        };
        let mut lanes: Vec<Lane> = Vec::new();
        for index in 0..u64::from(case.streams) {
            let sharing = lanes.first().filter(|_| shares_workspace(case));
            let mut lane = Lane::new(&setup, index, sharing)?;
            lane.capture(case, &self.tools, &self.memory)?;
            lanes.push(lane);
        }
        let mut outcome = CaseOutcome::default();
        match self.drive(case, &lanes, settings.pace().limit, &mut outcome) {
            Ok(()) => {}
            // What failed is a launch: arguments and memory were all there before.
            Err(error) => {
                outcome.is_fatal = true;
                outcome.found = Some(match error {
                    CudaError::DidNotFinish { .. } => Finding::Hung { seconds: settings.pace().limit.as_secs_f64() },
                    error => Finding::Crashed { message: error.to_string() },
                });
                std::mem::forget((lanes, inputs));
            }
        }
        Ok(outcome)
    }

    /// Starts the runs of a case and looks at what they give.
    fn drive(
        &self,
        case: &StressCase,
        lanes: &[Lane],
        limit: Duration,
        outcome: &mut CaseOutcome,
    ) -> Result<(), CudaError> {
        let cycle = u64::from(case.cycle);
        let cycles = case.runs.div_ceil(cycle);
        let cycles_of_look = (LOOK_RUNS / cycle).max(1);
        let occupied = (self.multiprocessors * case.occupied_percent / 100).min(self.multiprocessors);
        let mut done = 0;
        while done < cycles && outcome.found.is_none() {
            let now = cycles_of_look.min(cycles - done);
            for _ in 0..now {
                if occupied > 0 {
                    let nanoseconds = u64::from(case.occupied_nanoseconds);
                    self.tools.occupy(&self.stream, occupied, self.shared.all(), nanoseconds)?;
                }
                for lane in lanes {
                    lane.start_cycle(case, &self.tools)?;
                }
            }
            done += now;
            for lane in lanes {
                self.memory.finish(&lane.stream, limit, "scans under stress")?;
            }
            self.memory.finish(&self.stream, limit, "the kernel that holds multiprocessors")?;
            (outcome.runs, outcome.delays) = (0, 0);
            for lane in lanes {
                let (tally, waits) = (lane.tally()?, lane.waits()?);
                outcome.runs += tally.run;
                outcome.delays += waits.delays;
                if waits.faults > 0 {
                    outcome.found = Some(Finding::LostProgress {
                        waiting_tile: waits.waiting_tile,
                        missing_tile: waits.missing_tile,
                        waits: waits.faults,
                    });
                } else if tally.wrong_runs > 0 && outcome.found.is_none() {
                    outcome.found = Some(Finding::Mismatch {
                        run: tally.first_wrong >> 32,
                        wrong_runs: tally.wrong_runs,
                        wrong_elements: tally.wrong_elements,
                        first_index: lane.index_of(tally.first_wrong & 0xffff_ffff),
                    });
                }
            }
        }
        outcome.elements = lanes.iter().map(|lane| lane.elements_of_cycle() * done).sum();
        Ok(())
    }
}

/// Data of so many elements. Intervals of plain scans begin elsewhere in each set, since their values say where they stand.
fn dataset(workload: Workload, n: u64, seed: u64) -> Dataset {
    if !workload.is_plain() || workload.element() != ElementType::IndexInterval {
        return Dataset::random(workload, n, 1 + seed);
    }
    let first = seed as u32 * 1_000_003;
    let input: Vec<[u32; 2]> = (0..n as u32).map(|index| [first + index; 2]).collect();
    let input: Vec<u8> = bytemuck::cast_slice(&input).to_vec();
    Dataset::flat(workload.instance(), input, format!("intervals from {first}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::dataset::Reference;
    use crate::lab::stress::PLAIN;
    use crate::lab::workload::ProblemKind;

    #[test]
    fn every_instance_that_is_drawn_has_an_exact_reference_and_data_that_differ() {
        let drawn = |problems: &[ProblemKind], palette| {
            GpuStressSettings { problems: problems.to_vec(), palette, ..GpuStressSettings::default() }.palette_cases()
        };
        let plain: HashSet<Workload> = drawn(PLAIN, 200).iter().map(|case| case.workload).collect();
        assert!(plain.len() >= 8, "{plain:?}");
        for workload in plain {
            let sets: Vec<Dataset> =
                (0..DATA_SETS).map(|seed| dataset(workload, case::MAXIMUM_ELEMENTS, seed)).collect();
            for set in &sets {
                assert!(matches!(&set.reference, Reference::Exact(reference) if reference.len() == set.input.len()));
            }
            assert!(sets[0].input != sets[1].input && sets[1].input != sets[2].input);
        }
        for kind in ProblemKind::ALL {
            for case in drawn(&[*kind], 20) {
                assert_eq!(case.workload.kind(), *kind);
                let stored = |&n| dataset(case.workload_of(n), n, 0).expected_output(case.request.mode);
                assert!(case.sizes.iter().all(|n| stored(n).is_some()), "{case}");
            }
        }
    }
}
