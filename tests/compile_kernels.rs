//! Every kernel compiles for every architecture that is promised, and fits: what it takes in registers,
//! stack, spills and shared memory is listed (`--nocapture`), and a spill in a default configuration of the
//! strategies that are written to be fast fails.
//!
//! Needs NVRTC and no GPU. `scripts/install-cuda.sh` installs it without root; without it the tests print that they
//! skipped, and fail if LOOKBACK_REQUIRE_CUDA_COMPILER is 1.
#![cfg(all(feature = "cuda", feature = "lab"))]

mod common;

use common::{compiler, number};
use lookback::cuda::compile::{Cache, CompiledKernel, Compiler, ENTRY_POINT, Variant};
use lookback::cuda::{Architecture, CudaError, KernelResources, Nvrtc};
use lookback::element::{Definition, ElementType, Instance, Operator, Problem};
use lookback::lab::workload::{ProblemKind, Workload};
use lookback::ranks::Deal;
use lookback::strategy::plan::{Kernel, KernelConfig, Plan, ScanRequest, Step};
use lookback::strategy::ring::Ring;
use lookback::strategy::tuning::{Gpu, Resolved, TunedConfiguration, Tuning, tuned_configurations};
use lookback::strategy::{
    Alignment, Blocks, Composition, ConfigError, Descriptor, Mode, Pattern, ScanConfig, Strategy, StrategyChoice,
    TileOrder,
};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

const HOPPER: Architecture = Architecture::HOPPER;

/// One compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Job {
    kernel: Kernel,
    problem: Problem,
    config: KernelConfig,
    architecture: Architecture,
}

impl Job {
    fn ring(&self) -> Ring {
        Ring::of((self.kernel, self.problem, self.config))
    }

    fn stages(&self) -> u32 {
        self.ring().most_stages(self.architecture.shared_bytes())
    }

    fn describe(&self) -> String {
        let KernelConfig { vt, block_threads, mode, pattern, composition, descriptor, tile_order, alignment } =
            self.config;
        format!(
            "{:<7} {:<19} {:<14} VT {vt:>2} x {block_threads:>4} {mode} {pattern} {composition} {descriptor} {tile_order} {alignment}",
            self.architecture.to_string(),
            self.kernel.name(),
            self.problem.to_string(),
        )
    }
}

/// Instances that differ in their kernels.
fn instances() -> BTreeSet<Instance> {
    Instance::all().map(Instance::canonical).collect()
}

/// The kernels of every strategy on this instance with the configurations that it takes where nobody chooses.
fn default_kernels_of(instance: Instance, mode: Mode, architecture: Architecture, jobs: &mut Vec<Job>) {
    for &strategy in Strategy::ALL {
        for config in ScanConfig::suggestions(strategy, instance.element().bytes()) {
            kernels_of_strategies(&[strategy], instance, mode, config, architecture, jobs);
        }
    }
}

/// Of these the inclusive ones of large arrays.
fn large_kernels_of(instance: Instance, architecture: Architecture, jobs: &mut Vec<Job>) {
    for &strategy in Strategy::ALL {
        let [.., large] = ScanConfig::suggestions(strategy, instance.element().bytes());
        kernels_of_strategies(&[strategy], instance, Mode::Inclusive, large, architecture, jobs);
    }
}

/// The kernels of every strategy on this instance with one configuration.
fn kernels_of(instance: Instance, mode: Mode, config: ScanConfig, architecture: Architecture, jobs: &mut Vec<Job>) {
    kernels_of_strategies(Strategy::ALL, instance, mode, config, architecture, jobs);
}

/// The kernels as plans ask for them. A size with a spine of two levels.
fn kernels_of_strategies(
    strategies: &[Strategy],
    problem: impl Into<Problem> + Copy,
    mode: Mode,
    config: ScanConfig,
    architecture: Architecture,
    jobs: &mut Vec<Job>,
) {
    for &strategy in strategies {
        let tile = u64::from(config.vt * config.block_threads);
        let problem = problem.into();
        let n = tile * tile + 1;
        let aligned = ScanRequest::aligned(problem.instance().expect("numbers"), strategy, mode, config, n);
        // Some have a kernel for arrays that begin at vectors and one for all others, which has all of the code: elsewhere than on
        // Hopper it stands for both.
        let off = problem.input_bytes() as u32 % 16;
        let requests = [if architecture == HOPPER { 0 } else { off }, off].map(|input_offset| ScanRequest {
            problem,
            input_offset,
            ..aligned
        });
        // Modes and descriptors that the instance does not have, grids that are too large.
        for step in requests.iter().filter_map(|request| Plan::new(request).ok()).flat_map(|plan| plan.steps) {
            if step.kernel.is_cluster() && !architecture.has_clusters() {
                continue;
            }
            let job = Job { kernel: step.kernel, problem: step.problem, config: step.config, architecture };
            if !jobs.contains(&job) {
                jobs.push(job);
            }
        }
    }
}

/// Compiles on all cores. What `keep` makes of each kernel comes back, in any order, and so do failures.
fn compile_each<T: Send>(
    compiler: &Compiler,
    jobs: &[Job],
    keep: impl Fn(&CompiledKernel) -> T + Sync,
) -> (Vec<(Job, T)>, Vec<String>) {
    let next = AtomicUsize::new(0);
    let results = Mutex::new((Vec::new(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let compiled = compiler.scan_kernel(job.kernel, job.problem, &job.config, job.architecture);
                    let kept = compiled.map(|compiled| keep(&compiled));
                    let mut results = results.lock().expect("no thread panics with the lock");
                    match kept {
                        Ok(kept) => results.0.push((*job, kept)),
                        Err(error) => results.1.push(format!("{}\n{error}", job.describe())),
                    }
                }
            });
        }
    });
    results.into_inner().expect("no thread panicked with the lock")
}

/// All of these. Where `LOOKBACK_COMPILED_SHARE` is a number s, the first of each kernel for each architecture and of the others one in
/// s, drawn by `LOOKBACK_COMPILED_SEED`: `.ci/run` asks for others at each commit.
fn sampled(jobs: &[Job]) -> Vec<Job> {
    let Some(share) = number("LOOKBACK_COMPILED_SHARE") else { return jobs.to_vec() };
    let seed = number("LOOKBACK_COMPILED_SEED").unwrap_or(0);
    let mut seen = HashSet::new();
    let is_drawn = |job: &Job| {
        let digest = Sha256::digest(format!("{seed} {}", job.describe()));
        u64::from_le_bytes(*digest.first_chunk().expect("it has 32 bytes")).is_multiple_of(share)
    };
    jobs.iter().filter(|job| seen.insert((job.kernel, job.architecture)) || is_drawn(job)).copied().collect()
}

/// The same of what each kernel takes, listed in the test's output. What does not fit is a failure too. What another test of this
/// process has compiled is not compiled again.
fn compile_all(compiler: &Compiler, jobs: &[Job]) -> (Vec<(Job, KernelResources)>, Vec<String>) {
    static KNOWN: LazyLock<Mutex<HashMap<Job, KernelResources>>> = LazyLock::new(Mutex::default);
    let jobs = &sampled(jobs);
    let known = |job: &Job| KNOWN.lock().expect("no thread panics with the lock").get(job).copied();
    let mut listed: Vec<_> = jobs.iter().filter_map(|job| Some((*job, known(job)?))).collect();
    let mut seen = HashSet::new();
    let new: Vec<Job> = jobs.iter().filter(|job| known(job).is_none() && seen.insert(**job)).copied().collect();
    let (compiled, mut failures) = compile_each(compiler, &new, |compiled| compiled.resources);
    KNOWN.lock().expect("no thread panics with the lock").extend(compiled.iter().copied());
    listed.extend(compiled);
    listed.sort_by_key(|(job, _)| jobs.iter().position(|other| other == job));
    for (job, resources) in &listed {
        let KernelResources { registers, spill_store_bytes, spill_load_bytes, stack_bytes, shared_bytes } = *resources;
        println!(
            "{}: {registers} registers, stack {stack_bytes} B, spills {spill_store_bytes}/{spill_load_bytes} B, shared {shared_bytes} B",
            job.describe()
        );
        if shared_bytes > KernelResources::SHARED_BYTES_LIMIT {
            failures.push(format!("{}: {shared_bytes} bytes of shared memory", job.describe()));
        }
        if job.kernel.has_ring() {
            let ring = job.ring().bytes(job.stages());
            if u64::from(shared_bytes) + ring > job.architecture.shared_bytes() {
                failures.push(format!("{}: {ring} bytes of tiles do not fit beside {shared_bytes}", job.describe()));
            }
        }
        if registers == 0 {
            failures.push(format!("{}: the assembler reported no registers", job.describe()));
        }
    }
    (listed, failures)
}

/// The strategies by which people will judge the algorithms may not spill where nobody chose anything.
fn is_fast(kernel: Kernel) -> bool {
    use Kernel::{
        Columns, ColumnsAhead, Lookahead, Lookback, OneWave, ReduceTiles, ScanTiles, SingleBlock, SingleCluster,
    };
    matches!(
        kernel,
        Columns | ColumnsAhead | Lookahead | Lookback | OneWave | ReduceTiles | ScanTiles | SingleBlock | SingleCluster
    )
}

fn spills(listed: &[(Job, KernelResources)], counts: fn(Kernel) -> bool) -> impl Iterator<Item = String> {
    let spilled = listed.iter().filter(move |(job, resources)| counts(job.kernel) && resources.spill_bytes() > 0);
    spilled.map(|(job, resources)| format!("{} spills: {resources:?}", job.describe()))
}

fn assert_no_fast_kernel_spills(compiler: &Compiler, jobs: &[Job]) {
    let (listed, mut failures) = compile_all(compiler, jobs);
    failures.extend(spills(&listed, is_fast));
    report(&failures);
}

fn report(failures: &[String]) {
    assert!(failures.is_empty(), "{} failure(s):\n{}", failures.len(), failures.join("\n"));
}

/// Whether no plan of a plain scan has it. `copy` is a kernel of plans for single elements and in-place preparation only.
fn is_elsewhere(kernel: Kernel) -> bool {
    kernel == Kernel::Copy
        || kernel.scans_columns()
        || kernel == Kernel::Dealt
        || Kernel::MARKING.contains(&kernel)
        || kernel.strategy().row().shape.has_beside_scans(kernel)
}

fn u32_sum() -> Instance {
    Instance::new(ElementType::U32, Operator::Sum).expect("u32 has a sum")
}

/// In the tiles of large arrays. Those of smaller ones, other types and architectures are for the tests that `.ci/run` asks for.
#[test]
fn every_kernel_compiles_for_the_oldest_architecture_and_for_hopper_by_default() {
    let Some(compiler) = compiler("every_kernel_compiles_for_the_oldest_architecture_and_for_hopper") else { return };
    let mut jobs = Vec::new();
    let architectures = [Architecture::CHECKED[0], HOPPER];
    for architecture in architectures {
        large_kernels_of(u32_sum(), architecture, &mut jobs);
        // Descriptors of 128 bits, where the architectures differ most.
        let f64_sum = Instance::new(ElementType::F64, Operator::Sum).expect("f64 has a sum");
        let mut wide = Vec::new();
        large_kernels_of(f64_sum, architecture, &mut wide);
        let wanted = |job: &Job| matches!(job.kernel, Kernel::Lookback | Kernel::OneWave | Kernel::Lookahead);
        jobs.extend(wide.into_iter().filter(wanted));
    }
    for architecture in architectures {
        for &kernel in Kernel::ALL {
            if kernel.is_cluster() && !architecture.has_clusters() {
                continue;
            }
            let planned = jobs.iter().any(|job| (job.kernel, job.architecture) == (kernel, architecture));
            assert!(planned || is_elsewhere(kernel), "no plan uses {}", kernel.name());
        }
    }
    assert_no_fast_kernel_spills(&compiler, &jobs);
}

/// Blocks of several GPUs meet by accesses of system scope, in each layout of descriptors, and by none of another one.
#[test]
fn tiles_that_are_dealt_to_ranks_meet_in_the_system() {
    let Some(compiler) = compiler("tiles_that_are_dealt_to_ranks_meet_in_the_system") else { return };
    let hand = Deal::new(1 << 20, 1 << 13).expect("chunks have elements").hand(1, 2);
    let mut jobs = Vec::new();
    for (operator, input, output, layout) in [
        (Operator::Sum, ElementType::U8, ElementType::U32, Descriptor::Packed64),
        (Operator::Sum, ElementType::U32, ElementType::U32, Descriptor::Packed128),
        (Operator::Intervals, ElementType::IndexInterval, ElementType::IndexInterval, Descriptor::Packed128),
        (Operator::Affine, ElementType::AffineMap, ElementType::AffineMap, Descriptor::Split),
    ] {
        let definition = Definition::of_numbers(operator, input, output).expect("an operator of the crate");
        let problem = Problem::from(definition.define().expect("a whole definition"));
        for mode in [Mode::Inclusive, Mode::Exclusive] {
            let config = ScanConfig { descriptor: Some(layout), ..ScanConfig::of_dealt(problem, 1 << 13) };
            let aligned = ScanRequest::aligned(u32_sum(), Strategy::Lookahead, mode, config, hand.elements());
            let plan = Plan::new(&ScanRequest { problem, hand: Some(hand), ..aligned }).expect("whole tiles");
            let Step { kernel, problem, config, .. } = plan.steps[0];
            assert_eq!(kernel, Kernel::Dealt);
            for architecture in [Architecture::CHECKED[0], HOPPER] {
                jobs.push(Job { kernel, problem, config, architecture });
                let ptx =
                    compiler.ptx(kernel, problem, &config, architecture, Variant::default()).expect("it compiles");
                for access in [".relaxed.sys.", "ld.acquire.sys.", "st.release.sys.", ".acq_rel.sys."] {
                    assert!(ptx.contains(access), "{problem} {layout}: no {access}");
                }
                assert!(!ptx.contains(".gpu.") && !ptx.contains(".gpu;"), "{problem} {layout}");
            }
        }
    }
    assert_no_fast_kernel_spills(&compiler, &jobs);
}

/// In the tiles that are a part of their results, by every strategy that has them. Of f64 look-ahead spills one register.
#[test]
fn reproducible_scans_are_compiled_without_spills_on_the_oldest_architecture_and_on_hopper() {
    let Some(compiler) = compiler("reproducible_scans_are_compiled_without_spills") else { return };
    let mut jobs = Vec::new();
    let (flat, columns) = ((ProblemKind::Reproducible, None), (ProblemKind::ReproducibleColumns, Some(1 << 10)));
    for (input, output, (kind, length)) in [
        (ElementType::F32, ElementType::F32, flat),
        (ElementType::U8, ElementType::F32, flat),
        (ElementType::F32, ElementType::F32, columns),
    ] {
        let workload = Workload::new(kind, Operator::Sum, input, output, length).expect("sums");
        let n = 1 << 20;
        let problem = workload.problem(n);
        let is_asked = |strategy: &&Strategy| match length {
            Some(_) => **strategy == Strategy::Lookahead,
            None => strategy.row().is_reproducible,
        };
        for &strategy in Strategy::ALL.iter().filter(is_asked) {
            let Resolved { config, .. } = Tuning::suggested(strategy, problem, n);
            let aligned = ScanRequest::aligned(workload.instance(), strategy, Mode::Inclusive, config, n);
            let plan = Plan::new(&ScanRequest { problem, ..aligned }).expect("it is offered");
            // On the oldest architecture look-ahead spills down columns.
            let architectures = [Architecture::CHECKED[0], HOPPER].into_iter();
            let architectures = architectures.filter(|&gpu| length.is_none() || gpu == HOPPER);
            let architectures = architectures.filter(|&architecture| plan.fits(architecture));
            jobs.extend(architectures.map(|architecture| {
                let Step { kernel, problem, config, .. } = plan.steps[0];
                Job { kernel, problem, config, architecture }
            }));
        }
    }
    assert!(jobs.len() > 10);
    assert_no_fast_kernel_spills(&compiler, &jobs);
}

/// Down columns, in the tiles that are taken where nobody chooses, and leaves room for other blocks.
#[test]
fn columns_are_scanned_without_spills_on_the_oldest_architecture_and_on_hopper() {
    let Some(compiler) = compiler("columns_are_scanned_without_spills") else { return };
    const LENGTH: u64 = 1 << 18;
    let down =
        |kind, element| Workload::with_halves(kind, Operator::Sum, element, element, Some(LENGTH)).expect("columns");
    let mut jobs = Vec::new();
    // Blocks for which a multiprocessor is to have registers: two of the widest states, else three.
    let mut least_blocks = BTreeMap::new();
    for (workload, blocks) in [
        (down(ProblemKind::Columns, ElementType::F32), 3),
        (down(ProblemKind::Columns, ElementType::BF16), 3),
        (down(ProblemKind::Columns, ElementType::F64), 2),
        (down(ProblemKind::RecurrenceColumns, ElementType::F32), 3),
    ] {
        // Narrow tensors have kernels of their width. Rows of two are elements of look-ahead, which is asked for arrays like them.
        for columns in [2, 3, 1024] {
            let n = LENGTH * columns;
            let problem = workload.problem(n);
            least_blocks.insert(problem.to_string(), blocks);
            let chosen = [
                Tuning::suggested(Strategy::Lookback, problem, n),
                Tuning::suggested(Strategy::Lookahead, problem, n),
                Tuning::default().choose(StrategyChoice::Auto, problem, n, None, [0, 0]),
            ];
            for (Resolved { strategy, config }, mode) in
                chosen.into_iter().flat_map(|chosen| [Mode::Inclusive, Mode::Exclusive].map(|mode| (chosen, mode)))
            {
                let aligned = ScanRequest::aligned(workload.instance(), strategy, mode, config, n);
                let plan = Plan::new(&ScanRequest { problem, ..aligned }).expect("it is offered");
                let architectures = [Architecture::CHECKED[0], HOPPER].into_iter();
                // Look-ahead is for Hopper and later.
                let architectures = architectures.filter(|&gpu| strategy == Strategy::Lookback || gpu == HOPPER);
                let Step { kernel, problem, config, .. } = plan.steps[0];
                assert_eq!(kernel.scans_columns(), strategy == Strategy::Lookback || columns != 2, "{}", kernel.name());
                jobs.extend(architectures.filter(|_| kernel.scans_columns()).map(|architecture| {
                    assert!(plan.fits(architecture), "{}", kernel.name());
                    Job { kernel, problem, config, architecture }
                }));
            }
        }
    }
    let (listed, mut failures) = compile_all(&compiler, &jobs);
    // Of recurrences look-ahead spills up to seven registers, and is faster than look-back all the same (docs/experiments.md).
    let spills_few = |(job, resources): &&(Job, KernelResources)| {
        job.kernel == Kernel::ColumnsAhead && job.problem.state_bytes() == 8 && resources.spill_load_bytes <= 28
    };
    let counted: Vec<_> = listed.iter().filter(|listed| !spills_few(listed)).copied().collect();
    failures.extend(spills(&counted, is_fast));
    // One that scans nothing has few registers.
    let empty = listed.iter().filter(|(_, resources)| resources.registers < 24);
    failures.extend(empty.map(|(job, _)| format!("{}: it does nothing", job.describe())));
    // Blocks that stay have a multiprocessor each.
    let crowded = listed
        .iter()
        .filter(|(job, _)| !job.kernel.is_persistent())
        .filter(|(job, resources)| least_blocks[&job.problem.to_string()] * 256 * resources.registers > 1 << 16);
    failures.extend(crowded.map(|(job, resources)| format!("{}: {resources:?}", job.describe())));
    report(&failures);
}

/// As `auto` takes them on Hopper: registers for as many blocks as a multiprocessor had when they were measured. A question asked
/// of each vector, whether it is the tile's, once made loads wait for each other and took 221 registers for 128.
#[test]
fn tiles_of_whole_rows_leave_registers_for_other_blocks() {
    let Some(compiler) = compiler("tiles_of_whole_rows_leave_registers") else { return };
    const ROW: u64 = 8192;
    let n = ROW << 13;
    let mut most: Vec<(Job, u32)> = Vec::new();
    for (kind, element, registers) in [
        (ProblemKind::Rows, ElementType::F32, 96),
        (ProblemKind::Rows, ElementType::BF16, 64),
        (ProblemKind::Recurrence, ElementType::F32, 128),
        (ProblemKind::ReverseRecurrence, ElementType::F32, 128),
        (ProblemKind::Recurrence, ElementType::BF16, 128),
    ] {
        let workload = Workload::with_halves(kind, Operator::Sum, element, element, Some(ROW)).expect("rows");
        let problem = workload.problem(n);
        let Resolved { strategy, config } =
            Tuning::default().choose(StrategyChoice::Auto, problem, n, Some(ROW), [0, 0]);
        let aligned = ScanRequest::aligned(workload.instance(), strategy, Mode::Inclusive, config, n);
        let plan = Plan::new(&ScanRequest { problem, row: Some(ROW), ..aligned }).expect("it is offered");
        let Step { kernel, problem, config, descriptors, .. } = plan.steps[0];
        assert_eq!((kernel, descriptors), (Kernel::Lookback, 0), "tiles that wait for nobody: {problem}");
        most.push((Job { kernel, problem, config, architecture: HOPPER }, registers));
    }
    let jobs: Vec<Job> = most.iter().map(|&(job, _)| job).collect();
    let (listed, mut failures) = compile_all(&compiler, &jobs);
    failures.extend(spills(&listed, |_| true));
    let is_crowded = |(job, resources): &&(Job, KernelResources)| {
        most.iter().any(|(of, most)| of == job && resources.registers > *most)
    };
    failures
        .extend(listed.iter().filter(is_crowded).map(|(job, resources)| format!("{}: {resources:?}", job.describe())));
    report(&failures);
}

/// By look-back on every architecture, and as `auto` takes them on Hopper.
#[test]
#[ignore = "half a minute; .ci/run asks for it"]
fn compactions_are_compiled_without_spills_on_every_architecture() {
    let Some(compiler) = compiler("compactions_are_compiled_without_spills") else { return };
    let mut jobs = Vec::new();
    let sums = Definition::reduce_by_key::<u32>(Operator::Sum, ElementType::F32, ElementType::F32);
    let maps = Definition::reduce_by_key::<u64>(Operator::Affine, ElementType::AffineMap, ElementType::AffineMap);
    for definition in [
        Definition::select::<u32>("return x < 1000;"),
        Definition::select_flagged::<u8>(),
        Definition::select_flagged::<u32>(),
        Definition::partition::<u64>("return x < 1000;"),
        Definition::nonzero::<u8>().expect("numbers"),
        Definition::unique::<u16>().expect("numbers"),
        Definition::run_length_encode::<u32>().expect("numbers"),
        Definition::run_length_encode::<u8>().expect("numbers"),
        Definition::non_trivial_runs::<u32>().expect("numbers"),
        sums.expect("numbers"),
        maps.expect("maps"),
    ] {
        let defined = definition.define().expect("a definition");
        let problem_of = |n| Problem::from(defined.of_length(n));
        let hopper = Tuning::committed(Gpu { architecture: HOPPER, multiprocessors: 132 });
        let large = 1 << 26;
        let back = Tuning::suggested(Strategy::Lookback, problem_of(large), large);
        // Below and above each limit of one wave and of small tiles, and with counts of 64 bits.
        let chosen = [17, 18, 20, 21, 22, 26, 27, 33].map(|power| {
            let n = 1 << power;
            (hopper.choose(StrategyChoice::Auto, problem_of(n), n, None, [0, 0]), n, &[HOPPER][..])
        });
        assert_eq!(chosen[0].0.strategy, Strategy::OneWave, "{}", problem_of(large));
        assert_eq!(chosen[5].0.strategy, Strategy::Lookahead, "{}", problem_of(large));
        for (Resolved { strategy, config }, n, architectures) in
            chosen.into_iter().chain([(back, large, &Architecture::CHECKED[..])])
        {
            let problem = problem_of(n);
            let aligned = ScanRequest::aligned(problem.tuned_as(), strategy, Mode::Inclusive, config, n);
            let plan = Plan::new(&ScanRequest { problem, ..aligned }).expect("it is offered");
            let Step { kernel, problem, config, .. } = plan.steps[0];
            jobs.extend(architectures.iter().map(|&architecture| Job { kernel, problem, config, architecture }));
        }
    }
    let (listed, mut failures) = compile_all(&compiler, &jobs);
    // Look-ahead spills up to fourteen words of states of 8 bytes and more: of run lengths, which was measured to be faster than tiles where
    // it spills none (docs/experiments.md), of totals with their keys and of counts beyond 2^32, where it was not measured. One wave spills
    // up to twelve of run lengths and of elements of 8 bytes, measured likewise.
    let spills_few = |(job, resources): &&(Job, KernelResources)| {
        let is_one = |names: &[&str]| names.iter().any(|name| job.problem.to_string().contains(name));
        match job.kernel {
            Kernel::Lookahead => job.problem.state_bytes() >= 8 && resources.spill_store_bytes <= 56,
            Kernel::OneWave => is_one(&["runs of", "u64"]) && resources.spill_store_bytes <= 48,
            _ => false,
        }
    };
    let counted: Vec<_> = listed.iter().filter(|listed| !spills_few(listed)).copied().collect();
    failures.extend(spills(&counted, is_fast));
    report(&failures);
}

/// As `auto` takes them: sorts of keys alone and of keys with what goes with them, histograms, of which the largest table of levels
/// has no copy in a thread, expansions and scatters.
#[test]
#[ignore = "half a minute; .ci/run asks for it"]
fn what_is_no_scan_is_compiled_without_spills_on_every_architecture() {
    let Some(compiler) = compiler("what_is_no_scan_is_compiled_without_spills") else { return };
    let mut jobs = Vec::new();
    let (large, long) = (1 << 26, 1 << 33);
    let levels: Vec<f64> = (0..8193).map(f64::from).collect();
    let of_two = Definition::binned::<u64>("of two", 8192, "return a * b;").input::<u8>("a").input::<u32>("b");
    let joint = Definition::binned::<u32>("of pairs", 1 << 16, "return a << 8 | b;");
    let shared = Definition::expansion("places").input::<u8>("x").output::<u8>("y").output::<u64>("z");
    let moved = Definition::scattered("moved", "return i ^ a;").input::<u8>("a").input::<u64>("b").output::<u64>("c");
    for (defined, n) in [
        (Definition::sort::<u8>(), large),
        (Definition::sort::<i16>(), large),
        (Definition::sort::<f32>(), large),
        // One tile, of few items and of most.
        (Definition::sort::<u32>(), 1000),
        (Definition::sort::<f32>(), 1 << 13),
        (Definition::sort::<u64>(), 1 << 13),
        (Definition::sort::<u32>().map(|sort| sort.with::<f64>("value")), 1 << 13),
        (Definition::sort::<u32>().map(|sort| sort.with::<u32>("value")), long),
        (Definition::sort::<u64>(), large),
        (Definition::sort::<i64>().map(|sort| sort.with::<u32>("a").with::<f64>("b").descending()), long),
        (Definition::byte_histogram::<i8, u32>(), large),
        (Definition::byte_histogram::<u8, u64>().map(Definition::cumulated), 1 << 16),
        (Definition::even_histogram::<half::f16, u64>(7, half::f16::ZERO, half::f16::ONE), large),
        (Definition::even_histogram::<i64, u32>(7, -3, 1 << 50), large),
        (Definition::histogram_between::<f64, u32>(&levels), large),
        (Ok(of_two.cumulated()), large),
        (Ok(Definition::binned::<u64>("of words", 1 << 16, "return x;").input::<u16>("x")), large),
        (Ok(joint.input::<u8>("a").input::<u8>("b")), large),
        (Ok(Definition::owners::<u32>()), large),
        (Ok(shared.store("y = x; z = i * rank;")), large),
        (Ok(moved.store("c = b;")), large),
    ] {
        let defined = defined.expect("numbers").define().expect("it is whole");
        let problem = Problem::from(defined.of_length(n));
        for architecture in Architecture::CHECKED {
            let config = ScanConfig::of_no_scan(problem, n, architecture);
            let plan_by = |strategy| {
                let aligned = ScanRequest::aligned(problem.tuned_as(), strategy, Mode::Inclusive, config, n);
                Plan::new(&ScanRequest { problem, ..aligned })
            };
            // A cluster counts few bins, and does nothing else of these.
            let by_cluster = plan_by(Strategy::SingleCluster).ok().filter(|plan| plan.has_its_clusters(architecture));
            for plan in by_cluster.into_iter().chain([plan_by(Strategy::Lookback).expect("it is offered")]) {
                assert!(plan.fits(architecture), "{problem} on {architecture}");
                for Step { kernel, problem, config, .. } in plan.steps.iter().take(3).cloned() {
                    jobs.push(Job { kernel, problem, config, architecture });
                }
            }
        }
    }
    assert!(jobs.iter().any(|job| job.kernel == Kernel::CountInCluster));
    // What others share is compiled once.
    jobs.sort_unstable_by_key(Job::describe);
    jobs.dedup_by_key(|job| job.describe());
    let (listed, mut failures) = compile_all(&compiler, &jobs);
    failures.extend(spills(&listed, |_| true));
    let has_stack = |(_, resources): &&(Job, KernelResources)| resources.stack_bytes > 0;
    failures.extend(listed.iter().filter(has_stack).map(|(job, found)| format!("{}: {found:?}", job.describe())));
    report(&failures);
}

/// As `auto` takes them.
#[test]
#[ignore = "minutes; .ci/run asks for it"]
fn tiles_of_whole_rows_are_compiled_without_spills() {
    let Some(compiler) = compiler("tiles_of_whole_rows_are_compiled_without_spills") else { return };
    let mut jobs = Vec::new();
    let rows = [
        (ProblemKind::Rows, ElementType::U8, 4),
        (ProblemKind::Rows, ElementType::BF16, 4096),
        (ProblemKind::Rows, ElementType::F32, 32),
        (ProblemKind::Rows, ElementType::F32, 8192),
        (ProblemKind::ReverseRows, ElementType::F64, 4),
        (ProblemKind::Recurrence, ElementType::F32, 1024),
        // No tile is full of these.
        (ProblemKind::Rows, ElementType::F32, 1401),
        (ProblemKind::Recurrence, ElementType::F32, 1000),
    ];
    // Of few elements, and of many.
    for ((kind, element, row), n) in rows.into_iter().flat_map(|rows| [1 << 19, 1 << 26].map(|n| (rows, n))) {
        let workload = Workload::with_halves(kind, Operator::Sum, element, element, Some(row)).expect("rows");
        let problem = workload.problem(n);
        let gpu = Tuning::committed(Gpu { architecture: HOPPER, multiprocessors: 132 });
        let Resolved { strategy, config } = gpu.choose(StrategyChoice::Auto, problem, n, Some(row), [0, 0]);
        assert_eq!(strategy, Strategy::Lookback, "{problem}");
        for (mode, &architecture) in [Mode::Inclusive, Mode::Exclusive]
            .into_iter()
            .flat_map(|mode| Architecture::CHECKED.iter().map(move |gpu| (mode, gpu)))
        {
            let aligned = ScanRequest::aligned(workload.instance(), strategy, mode, config, n);
            let plan = Plan::new(&ScanRequest { problem, row: Some(row), ..aligned }).expect("it is offered");
            let Step { kernel, problem, config, descriptors, .. } = plan.steps[0];
            assert_eq!(descriptors, 0, "{problem}");
            jobs.push(Job { kernel, problem, config, architecture });
        }
    }
    let (listed, mut failures) = compile_all(&compiler, &jobs);
    // Threads of 64 bytes took less time than shorter ones (docs/experiments.md); that was measured when they spilled nothing.
    let spills_few =
        |(job, resources): &&(Job, KernelResources)| job.config.vt == 64 && resources.spill_store_bytes <= 16;
    let counted: Vec<_> = listed.iter().filter(|listed| !spills_few(listed)).copied().collect();
    failures.extend(spills(&counted, is_fast));
    report(&failures);
}

#[test]
#[ignore = "minutes; .ci/run asks for it"]
fn every_instance_compiles_on_hopper_without_spills_by_default() {
    let Some(compiler) = compiler("every_instance_compiles_on_hopper_without_spills_by_default") else { return };
    let mut jobs = Vec::new();
    // In all tiles for one operator a type, whose other operators differ in an instruction or two, but where several values share a
    // register under some of them.
    let mut known = BTreeSet::new();
    for instance in instances() {
        if instance.element().bytes() < 4 || known.insert(instance.element().name()) {
            default_kernels_of(instance, Mode::Inclusive, HOPPER, &mut jobs);
        } else {
            large_kernels_of(instance, HOPPER, &mut jobs);
        }
    }
    jobs.retain(|job| is_fast(job.kernel));
    assert_no_fast_kernel_spills(&compiler, &jobs);
}

#[test]
#[ignore = "minutes; .ci/run asks for it"]
fn every_kernel_of_every_type_that_small_and_middle_arrays_suggest_does_not_spill() {
    let Some(compiler) = compiler("every_kernel_of_every_type_that_small_and_middle_arrays_suggest_does_not_spill")
    else {
        return;
    };
    // One instance a size of element; of 16 bytes there are affine maps.
    let instances = [ElementType::U8, ElementType::U16, ElementType::F32, ElementType::U64]
        .map(|element| Instance::new(element, Operator::Sum).expect("numbers have a sum"))
        .into_iter()
        .chain([Instance::new(ElementType::AffineMap, Operator::Affine).expect("affine maps are composed")]);
    let mut jobs = Vec::new();
    for instance in instances {
        let bytes = instance.element().bytes();
        for (strategy, powers) in
            [(Strategy::SingleBlock, 4..=17), (Strategy::SingleCluster, 13..=20), (Strategy::OneWave, 16..=24)]
        {
            for n in powers.map(|power| (1_u64 << power) / bytes as u64) {
                let config = ScanConfig::suggested(strategy, bytes, n);
                // The one where a block may take the least, and the one for which they were made.
                for architecture in [Architecture::CHECKED[0], HOPPER] {
                    kernels_of_strategies(&[strategy], instance, Mode::Inclusive, config, architecture, &mut jobs);
                }
            }
        }
    }
    assert_no_fast_kernel_spills(&compiler, &jobs);
}

#[test]
#[ignore = "minutes; .ci/run asks for it"]
fn no_tuned_configuration_spills_where_its_table_counts() {
    let Some(compiler) = compiler("no_tuned_configuration_spills_where_its_table_counts") else { return };
    let tuned = tuned_configurations();
    assert!(!tuned.is_empty(), "the committed tables name something");
    let mut jobs = Vec::new();
    for architecture in Architecture::CHECKED {
        let own_table = Tuning::committed(Gpu { architecture, multiprocessors: 100 });
        for TunedConfiguration { table, instance, strategy, config } in &tuned {
            // Where the table counts; somebody may name that of another GPU, and only the time is lost.
            for mode in [Mode::Inclusive, Mode::Exclusive].into_iter().filter(|_| *table == own_table.name()) {
                kernels_of_strategies(&[*strategy], *instance, mode, *config, architecture, &mut jobs);
            }
        }
    }
    assert!(jobs.iter().any(|job| job.architecture == HOPPER), "its table counts there");
    // A tile that an architecture cannot hold is not taken there.
    jobs.retain(|job| !job.kernel.is_persistent() || job.stages() > 0);
    let (listed, mut failures) = compile_all(&compiler, &jobs);
    failures.extend(spills(&listed, |_| true));
    report(&failures);
}

#[test]
#[ignore = "half a minute; .ci/run asks for it"]
fn every_choice_inside_the_strategies_compiles() {
    let Some(compiler) = compiler("every_choice_inside_the_strategies_compiles") else { return };
    let default = ScanConfig::default();
    let mut jobs = Vec::new();
    // Every kernel scans its tiles by the same function: the smallest stands for all.
    for &pattern in Pattern::ALL {
        for &composition in Composition::ALL {
            let config = ScanConfig { pattern, composition, vt: 8, ..default };
            kernels_of_strategies(&[Strategy::SingleBlock], u32_sum(), Mode::Inclusive, config, HOPPER, &mut jobs);
        }
    }
    let mut configs = Vec::new();
    configs.extend(TileOrder::ALL.iter().map(|&tile_order| ScanConfig { tile_order, ..default }));
    configs.extend(Descriptor::ALL.iter().map(|&descriptor| ScanConfig { descriptor: Some(descriptor), ..default }));
    configs.extend([1, 3, 31, 64].map(|vt| ScanConfig { vt, ..default }));
    configs.extend([32, 1024].map(|block_threads| ScanConfig { block_threads, vt: 4, ..default }));
    for config in configs {
        kernels_of(u32_sum(), Mode::Inclusive, config, HOPPER, &mut jobs);
    }
    for &mode in Mode::ALL {
        kernels_of(u32_sum(), mode, default, HOPPER, &mut jobs);
    }
    // The others do not depend on most of these choices.
    jobs.retain(|job| {
        use Kernel::{Lookahead, Lookback, OneWave, SingleBlock, SingleCluster};
        matches!(job.kernel, Lookback | OneWave | SingleBlock | Lookahead | SingleCluster)
            || job.config.mode != Mode::Inclusive
    });
    let (_, failures) = compile_all(&compiler, &jobs);
    report(&failures);
}

#[test]
#[ignore = "minutes; .ci/run asks for it"]
fn every_kernel_of_every_type_compiles_for_every_architecture() {
    let Some(compiler) = compiler("every_kernel_of_every_type_compiles_for_every_architecture") else { return };
    let mut jobs = Vec::new();
    for architecture in Architecture::CHECKED {
        // One operator a type: the other operators of a type differ in an instruction or two. And one type a size, but where
        // architectures differ most.
        let has_all = [Architecture::CHECKED[0], HOPPER].contains(&architecture);
        let mut known = BTreeSet::new();
        for instance in instances() {
            let element = instance.element();
            let (name, bytes) = (element.name(), element.bytes());
            if known.insert(if has_all { name.to_owned() } else { bytes.to_string() }) {
                large_kernels_of(instance, architecture, &mut jobs);
            }
        }
    }
    assert_no_fast_kernel_spills(&compiler, &jobs);
}

/// All kernels, instances, modes and architectures: minutes. `cargo test --test compile_kernels -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes on two cores"]
fn everything_compiles_for_every_architecture() {
    let Some(compiler) = compiler("everything_compiles_for_every_architecture") else { return };
    let mut jobs = Vec::new();
    for architecture in Architecture::CHECKED {
        for instance in instances() {
            for &mode in Mode::ALL {
                default_kernels_of(instance, mode, architecture, &mut jobs);
            }
        }
    }
    assert_no_fast_kernel_spills(&compiler, &jobs);
}

/// What the laboratory runs beside the scans.
#[test]
#[ignore = "a minute; .ci/run asks for it"]
fn every_tool_compiles_for_every_architecture() {
    let Some(compiler) = compiler("every_tool_compiles_for_every_architecture") else { return };
    for architecture in Architecture::CHECKED {
        for file in ["verify.cu", "measure.cu", "copies.cu", "stress.cu", "trace.cu"] {
            let kernels = compiler.tools(file, architecture).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(kernels.cubin.starts_with(b"\x7fELF"));
        }
    }
}

/// Each kernel in which tiles tell each other something, of a plain scan and of one that a user could have defined.
#[test]
fn kernels_that_record_compile_and_do_not_spill() {
    let Some(compiler) = compiler("kernels_that_record_compile_and_do_not_spill") else { return };
    let recording = Variant { is_recording: true, ..Variant::default() };
    let by_key = Workload::new(ProblemKind::ByKey, Operator::Sum, ElementType::F32, ElementType::F32, Some(64))
        .unwrap()
        .problem(1 << 16);
    let mut compiled = 0;
    let mut check_config = |kernel, problem, config, architecture| {
        let made = compiler.scan_kernel_variant(kernel, problem, &config, architecture, recording);
        let made = made.unwrap_or_else(|error| panic!("{error}"));
        let spilled = made.resources.spill_store_bytes;
        assert_eq!(spilled, 0, "{kernel:?} of {problem} for {architecture} spills");
        compiled += 1;
    };
    // Columns, and sorts with the kernels that count for them.
    for (kind, length, strategy) in [
        (ProblemKind::Columns, Some(4096), Strategy::Lookback),
        (ProblemKind::Columns, Some(4096), Strategy::Lookahead),
        (ProblemKind::Sort, None, Strategy::Lookback),
    ] {
        let n = 1 << 22;
        let workload = Workload::new(kind, Operator::Sum, ElementType::U32, ElementType::U32, length).unwrap();
        let problem = workload.problem(n);
        let Resolved { strategy, config } = Tuning::suggested(strategy, problem, n);
        let aligned = ScanRequest::aligned(workload.instance(), strategy, Mode::Inclusive, config, n);
        let plan = Plan::new(&ScanRequest { problem, ..aligned }).expect("it is offered");
        for Step { kernel, problem, config, .. } in &plan.steps {
            check_config(*kernel, *problem, *config, HOPPER);
        }
    }
    let mut check = |kernel, problem, (vt, block_threads), architecture| {
        check_config(kernel, problem, KernelConfig { vt, block_threads, ..lookback_config() }, architecture);
    };
    for architecture in [Architecture::CHECKED[0], HOPPER] {
        for kernel in [Kernel::Chained, Kernel::Lookback, Kernel::OneWave, Kernel::Lookahead, Kernel::SingleCluster] {
            if kernel.is_cluster() && architecture != HOPPER {
                continue;
            }
            for problem in [Problem::from(u32_sum()), by_key] {
                check(kernel, problem, (16, 256), architecture);
            }
        }
    }
    // As they are suggested from 4 MiB on.
    for (kernel, tile) in [(Kernel::Lookback, (32, 384)), (Kernel::Lookback, (56, 384)), (Kernel::Lookahead, (16, 512))]
    {
        check(kernel, u32_sum().into(), tile, HOPPER);
    }
    assert_eq!(compiled, 29);
}

#[test]
fn the_comparison_kernels_compile_for_the_oldest_architecture_and_for_hopper() {
    let Some(compiler) = compiler("the_comparison_kernels_compile") else { return };
    for architecture in [Architecture::CHECKED[0], HOPPER] {
        let kernels = compiler.tools("verify.cu", architecture).unwrap_or_else(|error| panic!("{error}"));
        assert!(kernels.cubin.starts_with(b"\x7fELF"));
    }
}

#[test]
fn a_cubin_is_kept_and_a_damaged_one_is_compiled_anew() {
    let Some(compiler) = compiler("a_cubin_is_kept_and_a_damaged_one_is_compiled_anew") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nvrtc = Nvrtc::shared().expect("it was found above");
    drop(compiler);
    let compile = || {
        let compiler = Compiler::with_cache(nvrtc.clone(), Cache::in_folder(folder.path()));
        let config = lookback_config();
        let kernel = compiler
            .scan_kernel(Kernel::Lookback, u32_sum().into(), &config, HOPPER)
            .unwrap_or_else(|error| panic!("{error}"));
        (kernel, compiler.cache().warnings())
    };
    let (first, warnings) = compile();
    assert!(first.cubin.windows(ENTRY_POINT.len()).any(|bytes| bytes == ENTRY_POINT.as_bytes()));
    assert_eq!(warnings, Vec::<String>::new());
    let entries: Vec<_> = std::fs::read_dir(folder.path()).expect("it is there").flatten().collect();
    assert_eq!(entries.len(), 1);
    let path = entries[0].path();
    let whole = std::fs::read(&path).expect("the entry");
    assert_eq!(compile(), (first.clone(), Vec::new()), "the second comes from the cache and is the same");

    std::fs::write(&path, &whole[..whole.len() / 2]).expect("truncated");
    let (again, warnings) = compile();
    assert_eq!(again.resources, first.resources);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let (_, warnings) = compile();
    assert_eq!(warnings, Vec::<String>::new(), "the damaged entry was replaced");
}

#[test]
fn processes_that_compile_at_once_leave_one_whole_entry() {
    let Some(compiler) = compiler("processes_that_compile_at_once_leave_one_whole_entry") else { return };
    drop(compiler);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nvrtc = Nvrtc::shared().expect("it was found above");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // A cache each: they know as little of one another as processes do.
                let compiler = Compiler::with_cache(nvrtc.clone(), Cache::in_folder(folder.path()));
                let config = lookback_config();
                compiler
                    .scan_kernel(Kernel::Copy, u32_sum().into(), &config, HOPPER)
                    .unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(compiler.cache().warnings(), Vec::<String>::new());
            });
        }
    });
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 1);
}

#[test]
fn an_architecture_that_the_compiler_does_not_know_is_a_typed_error() {
    let Some(compiler) = compiler("an_architecture_that_the_compiler_does_not_know_is_a_typed_error") else { return };
    let old = Architecture { major: 3, minor: 5 };
    let error =
        compiler.scan_kernel(Kernel::Copy, u32_sum().into(), &lookback_config(), old).expect_err("Kepler is gone");
    assert!(matches!(error, CudaError::ArchitectureUnsupported { .. }), "{error}");
    // A newer minor version runs the cubins of the older ones of its major.
    let newer = Architecture { major: 9, minor: 9 };
    assert!(compiler.scan_kernel(Kernel::Copy, u32_sum().into(), &lookback_config(), newer).is_ok());
}

#[test]
fn a_cluster_on_a_gpu_without_clusters_is_a_typed_error() {
    let Some(compiler) = compiler("a_cluster_on_a_gpu_without_clusters_is_a_typed_error") else { return };
    for architecture in Architecture::CHECKED {
        let compiled = compiler.scan_kernel(Kernel::SingleCluster, u32_sum().into(), &lookback_config(), architecture);
        if architecture.major >= 9 {
            assert!(compiled.is_ok(), "{architecture}: {compiled:?}");
            continue;
        }
        let error = compiled.expect_err("clusters came with Hopper");
        assert!(matches!(error, CudaError::Config(ConfigError::NoClusters { .. })), "{error}");
        let text = error.to_string();
        for word in ["single-cluster", "compute capability 9.0", "choose 'auto'"] {
            assert!(text.contains(word), "{text}");
        }
    }
}

#[test]
fn a_kernel_that_does_not_compile_reports_its_log() {
    let Some(compiler) = compiler("a_kernel_that_does_not_compile_reports_its_log") else { return };
    // More threads than a block may have: refused by the compiler, since no plan was asked.
    let config = KernelConfig { block_threads: 0, ..lookback_config() };
    let error =
        compiler.scan_kernel(Kernel::Lookback, u32_sum().into(), &config, HOPPER).expect_err("no block has 0 threads");
    let CudaError::CompilationFailed { log, options, .. } = &error else { panic!("{error}") };
    assert!(log.contains("error"), "{log}");
    assert!(options.contains("-DLOOKBACK_BLOCK_THREADS=0"), "{options}");
}

#[test]
fn a_text_without_its_return_does_not_compile() {
    let Some(compiler) = compiler("a_text_without_its_return_does_not_compile") else { return };
    let definition = Definition::new::<u32>("sums", "u32").identity("0").combine("left + right;").input::<u32>("x");
    let sums = definition.load("return x;").output::<u32>("y").store("y = state;").define().expect("a definition");
    let error = compiler
        .scan_kernel(Kernel::Lookback, sums.into(), &lookback_config(), HOPPER)
        .expect_err("what it returned would be anything");
    let CudaError::CompilationFailed { log, .. } = &error else { panic!("{error}") };
    assert!(log.contains("the combining of 'sums'") && log.contains("missing return"), "{log}");
}

fn lookback_config() -> KernelConfig {
    let ScanConfig { vt, block_threads, pattern, composition, tile_order, .. } = ScanConfig::default();
    KernelConfig {
        vt,
        block_threads,
        mode: Mode::Inclusive,
        pattern,
        composition,
        descriptor: Descriptor::Packed64,
        tile_order,
        alignment: Alignment::Any,
    }
}

#[test]
#[ignore = "two minutes; .ci/run asks for it"]
fn faults_that_are_not_chosen_cost_nothing() {
    let Some(compiler) = compiler("faults_that_are_not_chosen_cost_nothing") else { return };
    let affine = Instance::new(ElementType::AffineMap, Operator::Affine).expect("the affine maps compose");
    let sum = |element| Instance::new(element, Operator::Sum).expect("sums are defined on numbers");
    let mut jobs = Vec::new();
    let u32_sum = sum(ElementType::U32);
    for (instance, mode) in [
        (u32_sum, Mode::Inclusive),
        (u32_sum, Mode::Exclusive),
        (sum(ElementType::U64), Mode::Inclusive),
        (affine, Mode::Inclusive),
    ] {
        default_kernels_of(instance, mode, HOPPER, &mut jobs);
    }
    for pattern in Pattern::ALL.iter().copied().filter(|&pattern| pattern != Pattern::Shuffle) {
        let config = ScanConfig { vt: 4, block_threads: 128, pattern, ..ScanConfig::default() };
        kernels_of(u32_sum, Mode::Inclusive, config, HOPPER, &mut jobs);
    }
    let split = ScanConfig { descriptor: Some(Descriptor::Split), ..ScanConfig::default() };
    kernels_of(u32_sum, Mode::Inclusive, split, HOPPER, &mut jobs);
    jobs.retain(|job| job.architecture == HOPPER);
    let jobs = sampled(&jobs);
    for job in &jobs {
        let cubin = |variant| {
            let compiled =
                compiler.scan_kernel_variant(job.kernel, job.problem, &job.config, job.architecture, variant);
            compiled.unwrap_or_else(|error| panic!("{}: {error}", job.describe())).cubin
        };
        let variant = Variant { without_line_info: true, ..Variant::default() };
        let plain = cubin(variant);
        let woven = cubin(Variant { is_woven: true, ..variant });
        assert!(plain == woven, "{}: faults that are not chosen change the cubin", job.describe());
    }
    println!("{} kernels, with faults woven in and without: the same to the last byte", jobs.len());
}

#[test]
fn what_is_loaded_scanned_published_and_stored_may_be_four_types() {
    use ElementType::{BF16, F16, F32, F64, U8, U16, U32, U64};
    let Some(compiler) = compiler("what_is_loaded_scanned_published_and_stored_may_be_four_types") else { return };
    let mut jobs = Vec::new();
    for (state, input, published, output) in [(U64, U8, U32, U16), (F32, F32, F64, F64), (F32, F16, F32, BF16)] {
        let sum = Instance::new(state, Operator::Sum).expect("sums are defined on numbers");
        let problem = Problem::converting(sum, input, published, output).expect("sums of numbers");
        for &strategy in Strategy::ALL.iter().filter(|strategy| !strategy.row().shape.works_in_output) {
            let [_, config, _] = ScanConfig::suggestions(strategy, problem.access_bytes());
            kernels_of_strategies(&[strategy], problem, Mode::Exclusive, config, HOPPER, &mut jobs);
        }
    }
    assert!(jobs.len() > 3 * 8, "{} kernels", jobs.len());
    // An older GPU rounds to bf16 in other code.
    let halves = Problem::accumulating(Operator::Max, F16, BF16).expect("floats have an infinity");
    for architecture in Architecture::CHECKED {
        let config = ScanConfig::default();
        kernels_of_strategies(&[Strategy::Lookback], halves, Mode::Exclusive, config, architecture, &mut jobs);
    }
    report(&compile_all(&compiler, &jobs).1);
}

/// Strategies whose tiles wait for others. It is their blocks' business, not the table's word for it: all that meet
/// through descriptors, and those of a cluster.
fn waiting_strategies() -> BTreeSet<Strategy> {
    let waits = |strategy: &Strategy| strategy.is_single_pass() || strategy.row().shape.blocks == Blocks::Cluster;
    Strategy::ALL.iter().copied().filter(waits).collect()
}

#[test]
fn a_strategy_without_its_waiting_is_another_kernel_and_every_other_kernel_is_the_same() {
    let Some(compiler) = compiler("a_strategy_without_its_waiting_is_another_kernel") else { return };
    let mut jobs = Vec::new();
    let sum = Instance::new(ElementType::U16, Operator::Sum).expect("sums are defined on numbers");
    default_kernels_of(sum, Mode::Exclusive, HOPPER, &mut jobs);
    let mut seen = BTreeSet::new();
    jobs.retain(|job| seen.insert(job.kernel));
    let mut without_waiting = BTreeSet::new();
    for job in &jobs {
        let variant = Variant { without_line_info: true, ..Variant::without_waiting(job.kernel) };
        let compiled = |variant| {
            let found = compiler.scan_kernel_variant(job.kernel, job.problem, &job.config, job.architecture, variant);
            found.unwrap_or_else(|error| panic!("{}: {error}", job.describe()))
        };
        let (plain, bound) = (compiled(Variant { mutant: 0, ..variant }), compiled(variant));
        let waits = job.kernel.strategy().row().fault_without_waiting.is_some();
        assert_eq!(plain.cubin != bound.cubin, waits, "{}", job.describe());
        assert!(bound.resources.spill_bytes() <= plain.resources.spill_bytes(), "{}", job.describe());
        if waits {
            without_waiting.insert(job.kernel.strategy());
        }
    }
    assert_eq!(without_waiting, waiting_strategies());
}

/// Of each mutant the kernels of one case that stress draws for it, and of each problem those of two.
#[cfg(feature = "cpu")]
#[test]
#[ignore = "a minute; .ci/run asks for it"]
fn every_mutant_compiles_in_a_configuration_where_it_can_show() {
    use lookback::kernels::mutant::Mutant;
    use lookback::lab::stress::gpu::{GpuStressSettings, compile};
    use lookback::lab::workload::ProblemKind;
    let Some(compiler) = compiler("every_mutant_compiles_in_a_configuration_where_it_can_show") else { return };
    compiler.tools("stress.cu", HOPPER).unwrap_or_else(|error| panic!("{error}"));
    let settings = |mutant| GpuStressSettings { mutant: Some(mutant), palette: 1, ..Default::default() };
    // Of those by rule and those of other problems, of which one compiles as the other, every tenth.
    let is_asked = |(index, mutant): &(usize, &Mutant)| {
        mutant.rule.is_none() && mutant.when.problems.is_empty() || index % 10 == 0
    };
    let all = Mutant::all().expect("readable").iter().filter(|&mutant| settings(mutant).can_draw());
    let mutants = all.enumerate().filter(is_asked).map(|(_, mutant)| mutant);
    let mut cases: Vec<_> = mutants.flat_map(|mutant| settings(mutant).palette_cases()).collect();
    let of_problem = |&kind| GpuStressSettings { problems: vec![kind], palette: 2, ..Default::default() };
    cases.extend(ProblemKind::ALL.iter().flat_map(|kind| of_problem(kind).palette_cases()));
    let kernels = compile(&compiler, HOPPER, &cases).unwrap_or_else(|error| panic!("{error}"));
    println!("{kernels} kernels of {} cases", cases.len());
    // The two of the host have no kernels of their own; few cases share all of theirs.
    assert!(kernels as usize >= cases.len() - 12, "{kernels}");
}

/// The kernels whose machine code is kept from one commit to the next. On Hopper: the suggested configurations of every
/// instance and mode. On every other architecture one instance a type, inclusive, for large arrays, as the other operators
/// of a type differ in an instruction or two. The tuned configurations where their table counts, inclusive and exclusive.
fn plain_jobs() -> Vec<Job> {
    let tuned = tuned_configurations();
    let mut jobs = Vec::new();
    for architecture in Architecture::CHECKED {
        let mut found = Vec::new();
        let mut types = BTreeSet::new();
        for instance in instances() {
            if architecture == HOPPER {
                for &mode in Mode::ALL {
                    default_kernels_of(instance, mode, architecture, &mut found);
                }
            } else if types.insert(instance.element()) {
                large_kernels_of(instance, architecture, &mut found);
            }
        }
        let own_table = Tuning::committed(Gpu { architecture, multiprocessors: 100 });
        for tuned in tuned.iter().filter(|tuned| tuned.table == own_table.name()) {
            for mode in [Mode::Inclusive, Mode::Exclusive] {
                let strategies = &[tuned.strategy];
                kernels_of_strategies(strategies, tuned.instance, mode, tuned.config, architecture, &mut found);
            }
        }
        // `copy` is a kernel of plans for single elements and in-place preparation only; it is configured like `naive`.
        let naive = found.iter().filter(|job| job.kernel == Kernel::Naive);
        jobs.extend(naive.map(|job| Job { kernel: Kernel::Copy, ..*job }).collect::<Vec<_>>());
        jobs.append(&mut found);
    }
    jobs.retain(|job| !job.kernel.is_persistent() || job.stages() > 0);
    jobs
}

/// Whether an instruction reads constant bank 4, in which the addresses of global variables stand. An instruction has 128
/// bits; those from 9 to 11 say what its operands are, and those from 54 to 58 the bank, if one is a constant.
fn reads_addresses(instruction: &[u8]) -> bool {
    let word = u64::from_le_bytes(instruction[..8].try_into().expect("an instruction has 16 bytes"));
    matches!(word >> 9 & 7, 3 | 5) && word >> 54 & 31 == 4
}

/// What a GPU runs of a cubin, in a line: hashes of its code and constants and of what the driver is told about the
/// launch, then what it takes. No names, source lines or options of the compiler. Every `constexpr` of the headers is a
/// global variable of the cubin; they count where the code finds one.
fn machine_code(compiled: &CompiledKernel) -> String {
    let cubin = object::File::parse(&*compiled.cubin).expect("a cubin is an ELF file");
    // What a section is, without the kernel or function that it belongs to.
    let kind =
        |name: &str| name.split('.').take(if name.starts_with(".nv") { 3 } else { 2 }).collect::<Vec<_>>().join(".");
    let (mut code, mut variables, mut launch) = (Vec::new(), Vec::new(), Vec::new());
    let mut finds_variables = false;
    for section in cubin.sections() {
        let name = section.name().expect("a section has a name");
        let data = section.data().expect("a section lies in its file");
        let relocations: Vec<_> = section
            .relocations()
            .map(|(offset, relocation)| {
                let RelocationTarget::Symbol(index) = relocation.target() else { panic!("{relocation:?}") };
                let symbol = cubin.symbol_by_index(index).expect("a relocation has its symbol");
                let section = symbol.section_index().map(|index| cubin.section_by_index(index).expect("its section"));
                let section = section.map(|section| kind(section.name().expect("a section has a name")));
                let (flags, addend) = (relocation.flags(), relocation.addend());
                format!("{offset} {flags:?} {addend} {section:?} {}", symbol.address())
            })
            .collect();
        let is_text = name.starts_with(".text");
        finds_variables |= is_text && (!relocations.is_empty() || data.chunks_exact(16).any(reads_addresses));
        let part = |size, data: &[u8]| (kind(name), size, data.to_vec(), relocations.clone());
        if name.starts_with(".nv.constant4") || name.starts_with(".nv.global") {
            variables.push(part(section.size(), data));
        } else if is_text || name.starts_with(".nv.constant") {
            code.push(part(section.size(), data));
        } else if name.starts_with(".nv.info.") {
            launch.push(part(0, &attributes(data)));
        } else if name.starts_with(".nv.shared") {
            launch.push(part(section.size(), &[]));
        }
    }
    assert!(code.iter().any(|(kind, size, ..)| kind == ".text" && *size > 0), "a cubin without code");
    if finds_variables {
        code.append(&mut variables);
    }
    let [code, launch] = [code, launch].map(|mut parts| {
        parts.sort();
        let hash = Sha256::digest(format!("{parts:?}"));
        hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>()
    });
    let KernelResources { registers, spill_store_bytes, spill_load_bytes, stack_bytes, shared_bytes } =
        compiled.resources;
    format!(
        "code {code} launch {launch} registers {registers} stack {stack_bytes} spills {spill_store_bytes}/{spill_load_bytes} \
         shared {shared_bytes}"
    )
}

/// The attributes of a kernel without the numbers of symbols, which depend on names. Each is a format, a kind and two bytes
/// of value, or of the length of the value that follows where the format is 4 (EIFMT_SVAL of `cuobjdump -elf`).
fn attributes(mut data: &[u8]) -> Vec<u8> {
    const WITH_LENGTH: u8 = 4;
    const PARAM_CBANK: u8 = 0x0a;
    const EXTERNS: u8 = 0x0f;
    let mut kept = Vec::new();
    while let Some((head, rest)) = data.split_first_chunk::<4>() {
        let length = if head[0] == WITH_LENGTH { usize::from(u16::from_le_bytes([head[2], head[3]])) } else { 0 };
        let (value, rest) = rest.split_at(length);
        kept.extend_from_slice(head);
        match head[1] {
            EXTERNS => {}
            PARAM_CBANK => kept.extend_from_slice(&value[4..]),
            _ => kept.extend_from_slice(value),
        }
        data = rest;
    }
    kept
}

/// The lines of a manifest: the kernel, a tab, its machine code.
fn manifest_lines(text: &str) -> BTreeMap<&str, &str> {
    text.lines().map(|line| line.split_once('\t').expect("a manifest has a tab a line")).collect()
}

/// Shows that a change of the kernels' text left the machine code alone. Run it in both trees, in the first without a
/// baseline. Compiled kernels go through the cache, so that a run which was interrupted goes on where it was. Of
/// LOOKBACK_MACHINE_CODE_ONLY every word must be in a kernel's line ("sm_90 lookback u32"); all kernels without it.
#[test]
#[ignore = "many minutes; set LOOKBACK_MACHINE_CODE_MANIFEST, and LOOKBACK_MACHINE_CODE_BASELINE to compare"]
fn machine_code_is_that_of_a_manifest() {
    let path = std::env::var("LOOKBACK_MACHINE_CODE_MANIFEST").expect(
        "set LOOKBACK_MACHINE_CODE_MANIFEST to the file to write, and LOOKBACK_MACHINE_CODE_BASELINE to one to compare with",
    );
    let compiler = Compiler::new().unwrap_or_else(|error| panic!("{error}"));
    let key = |job: &Job| job.describe().split_whitespace().collect::<Vec<_>>().join(" ");
    let only = std::env::var("LOOKBACK_MACHINE_CODE_ONLY").unwrap_or_default();
    let wanted = |key: &str| only.split_whitespace().all(|word| key.split(' ').any(|other| other == word));
    let mut jobs = plain_jobs();
    jobs.retain(|job| wanted(&key(job)));
    println!("{} kernels", jobs.len());
    let (listed, mut failures) = compile_each(&compiler, &jobs, machine_code);
    let lines: BTreeSet<_> = listed.iter().map(|(job, code)| format!("{}\t{code}\n", key(job))).collect();
    let manifest: String = lines.into_iter().collect();
    std::fs::write(&path, &manifest).unwrap_or_else(|error| panic!("{path}: {error}"));
    report(&failures);

    let Ok(path) = std::env::var("LOOKBACK_MACHINE_CODE_BASELINE") else { return };
    let baseline = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let (before, after) = (manifest_lines(&baseline), manifest_lines(&manifest));
    let added = after.keys().filter(|key| !before.contains_key(*key)).count();
    println!("{} kernels are compared, {added} are new", after.len() - added);
    let mut by_kernel = BTreeMap::new();
    for (key, code) in before.iter().filter(|(key, _)| wanted(key)) {
        match after.get(key) {
            Some(found) if found == code => continue,
            Some(found) => failures.push(format!("{key}\n  was {code}\n  is  {found}")),
            None => failures.push(format!("{key}\n  is missing")),
        }
        *by_kernel.entry(key.split(' ').nth(1)).or_insert(0) += 1;
    }
    let first = failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} kernels differ: {by_kernel:?}; the first:\n{first}", failures.len());
}

/// What no run without a GPU sees: calls that do nothing on the CPU device, and sums that it takes in another way. The order
/// of such instructions: `tests/gpu_code.rs`.
#[test]
fn what_only_a_gpu_does_is_in_the_ptx() {
    let Some(compiler) = compiler("what_only_a_gpu_does_is_in_the_ptx") else { return };
    let mut jobs = Vec::new();
    default_kernels_of(u32_sum(), Mode::Inclusive, HOPPER, &mut jobs);
    for &kernel in Kernel::ALL.iter().filter(|&&kernel| !is_elsewhere(kernel)) {
        let job = jobs.iter().find(|job| job.kernel == kernel).expect("a plan uses it");
        let ptx = compiler.ptx(kernel, job.problem, &job.config, HOPPER, Variant::default());
        let ptx = ptx.unwrap_or_else(|error| panic!("{}: {error}", job.describe()));
        let has_early_start = ptx.contains("griddepcontrol.launch_dependents");
        assert!(has_early_start, "{} never lets the next launch begin", kernel.name());
        // Integers are added up over a warp, prefixes and in look-ahead each scanning warp's part of a tile.
        let warp_sums = match kernel {
            Kernel::OneWave => 1,
            Kernel::Lookahead => 2,
            _ => 0,
        };
        let sums = ptx.matches("redux.sync.add").count();
        assert!(sums >= warp_sums, "{} has {sums} of {warp_sums} sums over a warp", kernel.name());
    }
}
