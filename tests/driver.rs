//! `Scanner`, its workspaces and its launches without a GPU: on a driver that runs nothing (`tests/driver/driver.cpp`), whose
//! launches are compared with the plan, and which watches what a GPU would punish at some other time. It is loaded under
//! the name of the driver before anybody asks for that one.
//!
//! Needs NVRTC and a C++ compiler for the host (`CXX`, or `c++`) and no GPU. Without them the tests print that they skipped,
//! and fail if LOOKBACK_REQUIRE_CUDA_COMPILER is 1.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr as _};
use half::{bf16, f16};
use libloading::Library;
use lookback::abi::{lookback_axis, lookback_control, lookback_launch};
use lookback::cuda::compile::{Cache, Compiler};
use lookback::cuda::{Ahead, Architecture, ChunkedScan, CudaError, Nvrtc, OnStream, ScanElement, Scanner};
use lookback::element::{Definition, ElementType, Operator, Problem};
use lookback::gpu::Gpu;
use lookback::out_of_core::{Cause, Checkpoint, Job, Limits, PlanError, Sink, Source, Stopped};
use lookback::run::AnyScanner;
use lookback::strategy::launch::Addresses;
use lookback::strategy::plan::{Place, Plan, ScanRequest};
use lookback::strategy::ring::Ring;
use lookback::strategy::{CallError, Choices, ConfigError, Descriptor, Mode, ScanConfig, Strategy, StrategyChoice};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier, Mutex, MutexGuard, OnceLock, PoisonError};

/// A launch as the driver was asked for it; the same in `tests/driver/driver.cpp`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Record {
    launch: lookback_launch,
    stream: u64,
    control_allocation: u64,
    scratch_allocation: u64,
    bytes_behind_descriptors: u64,
    image: *const c_void,
    image_bytes: u64,
    blocks: u32,
    threads: u32,
    shared_bytes: u32,
    cluster_blocks: u32,
    is_programmatic: u32,
    is_captured: u32,
}

/// As many multiprocessors, and of a kernel whose blocks stay so many blocks on each, as the driver says.
const RESIDENT_BLOCKS: u32 = 4 * 2;
const CLUSTER_BLOCKS: u32 = 16;

/// The driver, and a folder for compiled kernels.
struct Driver {
    library: Library,
    folder: tempfile::TempDir,
}

impl Driver {
    fn load() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let library = folder.path().join("libcuda.so");
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let compiler = std::env::var_os("CXX").filter(|name| !name.is_empty()).unwrap_or_else(|| "c++".into());
        let made = Command::new(&compiler)
            // Its name for the dynamic linker: whoever loads libcuda.so later gets this one.
            .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-Wl,-soname,libcuda.so", "-I"])
            .arg(root.join("cuda"))
            .arg(root.join("tests/driver/driver.cpp"))
            .arg("-o")
            .arg(&library)
            .output()
            .map_err(|error| format!("no C++ compiler {}: {error}", compiler.display()))?;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // SAFETY: the library was compiled right above; what it does when it is loaded is to make an empty machine.
        let library = unsafe { Library::new(&library) }.map_err(|error| error.to_string())?;
        Ok(Self { library, folder })
    }

    fn reset(&self, architecture: Architecture) {
        // SAFETY: the function of that name has that type.
        unsafe {
            self.library.get::<extern "C" fn(c_int, c_int)>(b"stub_reset").expect("it is there")(
                architecture.major,
                architecture.minor,
            );
        }
    }

    fn fail_next(&self, call: &CStr) {
        // SAFETY: as above; the driver copies the text.
        unsafe {
            self.library.get::<extern "C" fn(*const c_char)>(b"stub_fail_next").expect("it is there")(call.as_ptr())
        }
    }

    /// What was wrong since the last call, a line each.
    fn violations(&self) -> String {
        let mut text = vec![0_u8; 1 << 16];
        // SAFETY: as above; room for as many bytes as it says.
        let bytes = unsafe {
            self.library.get::<extern "C" fn(*mut u8, usize) -> usize>(b"stub_violations").expect("it is there")(
                text.as_mut_ptr(),
                text.len(),
            )
        };
        String::from_utf8_lossy(&text[..bytes]).into_owned()
    }

    /// What was launched since the last call.
    fn launches(&self) -> Vec<Record> {
        let mut records = Vec::with_capacity(1024);
        // SAFETY: as above; room for as many as it says, and so many are written.
        unsafe {
            let function = self.library.get::<extern "C" fn(*mut Record, usize) -> usize>(b"stub_launches");
            let count = function.expect("it is there")(records.as_mut_ptr(), records.capacity());
            records.set_len(count);
        }
        records
    }

    /// Whether this thread's calls fail where they would break another stream's capture, as they do unless asked not to.
    fn guards_captures(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.library.get::<extern "C" fn() -> c_int>(b"stub_capture_mode").expect("it is there")() == 0 }
    }

    /// How often streams were made to wait for events.
    fn waits(&self) -> u64 {
        // SAFETY: as above.
        unsafe { self.library.get::<extern "C" fn() -> u64>(b"stub_waits").expect("it is there")() }
    }

    fn allocations(&self) -> usize {
        // SAFETY: as above.
        unsafe { self.library.get::<extern "C" fn() -> usize>(b"stub_allocations").expect("it is there")() }
    }

    /// Whether a stream may still use memory that this thread is about to read or write.
    fn uses(&self, memory: &[u8]) -> bool {
        // SAFETY: as above.
        let is_in_use =
            unsafe { self.library.get::<extern "C" fn(u64, u64) -> c_int>(b"stub_is_in_use").expect("it is there") };
        is_in_use(memory.as_ptr().addr() as u64, memory.len() as u64) != 0
    }

    fn bytes_behind(&self, address: u64) -> u64 {
        // SAFETY: as above.
        unsafe { self.library.get::<extern "C" fn(u64) -> u64>(b"stub_bytes_behind").expect("it is there")(address) }
    }
}

/// A scanner on a machine of its own.
struct Bench {
    // First, so that it goes before what it was made of.
    scanner: Option<Scanner>,
    stream: Arc<CudaStream>,
    context: Arc<CudaContext>,
    driver: &'static Driver,
    compiler: Compiler,
    architecture: Architecture,
    /// By allocation of a control block: stream, layout, bytes of what is published, capacity.
    regions: HashMap<u64, (u64, Descriptor, u64, u64)>,
    _turn: MutexGuard<'static, ()>,
}

/// Nothing, with a word, where something is missing.
fn bench(test: &str, architecture: Architecture) -> Option<Bench> {
    static TURN: Mutex<()> = Mutex::new(());
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = DRIVER.get_or_init(Driver::load).as_ref().map_err(Clone::clone);
    let found = found.and_then(|driver| Ok((driver, Nvrtc::shared().map_err(|error| error.to_string())?)));
    let (driver, nvrtc) = match found {
        Ok(found) => found,
        Err(error) => {
            assert!(std::env::var("LOOKBACK_REQUIRE_CUDA_COMPILER").as_deref() != Ok("1"), "{error}");
            println!("{test} skipped: {error}");
            return None;
        }
    };
    driver.reset(architecture);
    let context = CudaContext::new(0).expect("the driver's GPU");
    let stream = context.new_stream().expect("a stream");
    let compiler = || Compiler::with_cache(Arc::clone(&nvrtc), Cache::in_folder(driver.folder.path()));
    let scanner = Scanner::with_compiler(&context, compiler()).expect("a scanner");
    Some(Bench {
        scanner: Some(scanner),
        stream,
        context,
        driver,
        compiler: compiler(),
        architecture,
        regions: HashMap::new(),
        _turn: turn,
    })
}

/// What was asked for, by addresses.
#[derive(Debug, Clone, Copy)]
struct Asked {
    problem: Problem,
    strategy: Strategy,
    mode: Mode,
    config: ScanConfig,
    input: u64,
    output: u64,
    n: usize,
}

/// Small, so that it is compiled soon and has many tiles.
const SMALL: ScanConfig = ScanConfig {
    vt: 4,
    block_threads: 32,
    pattern: lookback::strategy::Pattern::Shuffle,
    composition: lookback::strategy::Composition::ScanThenPropagate,
    descriptor: None,
    tile_order: lookback::strategy::TileOrder::Ticket,
};

impl Bench {
    fn scanner(&self) -> &Scanner {
        self.scanner.as_ref().expect("it was not dropped")
    }

    fn choose(&mut self, strategy: Strategy, config: ScanConfig) {
        self.scanner = self.scanner.take().map(|scanner| scanner.with_strategy(strategy).with_config(config));
    }

    /// Scans `n` elements from one place to another, in place if there is no other, and compares all launches with the
    /// plan.
    fn scan<T: ScanElement, U: ScanElement>(
        &mut self,
        (strategy, mode, config): (Strategy, Mode, ScanConfig),
        (operator, n): (Operator, usize),
        input: Option<(&CudaSlice<T>, usize)>,
        (output, at): (&mut CudaSlice<U>, usize),
    ) {
        self.choose(strategy, config);
        let stream = Arc::clone(&self.stream);
        let problem = Problem::accumulating(operator, T::ELEMENT, U::ELEMENT).expect("numbers and their operator");
        let to = output.slice(at..at + n).device_ptr(&stream).0;
        let mut view = output.slice_mut(at..at + n);
        let from = match input {
            Some((input, begin)) => {
                let input = input.slice(begin..begin + n);
                let scanned = match mode {
                    Mode::Inclusive => self.scanner().inclusive(&stream, operator, &input, &mut view),
                    _ => self.scanner().exclusive(&stream, operator, &input, &mut view),
                };
                scanned.unwrap_or_else(|error| panic!("{strategy}: {error}"));
                input.device_ptr(&stream).0
            }
            None => {
                let scanned = self.scanner().in_place(&stream, operator, mode, &mut view);
                scanned.unwrap_or_else(|error| panic!("{strategy}: {error}"));
                to
            }
        };
        let records = self.driver.launches();
        self.check(Asked { problem, strategy, mode, config, input: from, output: to, n }, &records);
    }

    /// The launches of one scan against its plan, which knows no GPU, and the memory behind them.
    fn check(&mut self, asked: Asked, records: &[Record]) {
        let offset = |address: u64| (address % u64::from(ScanRequest::OFFSETS)) as u32;
        let request = ScanRequest {
            in_place: asked.input == asked.output,
            input_offset: offset(asked.input),
            output_offset: offset(asked.output),
            ..ScanRequest::of(asked.problem, asked.strategy, asked.mode, asked.config, asked.n as u64)
        };
        let plan = Plan::new(&request).expect("the scanner made it, too");
        assert_eq!(records.len(), plan.steps.len(), "{asked:?}");
        for (step, record) in plan.steps.iter().zip(records) {
            let launch = &record.launch;
            let places = [
                (step.input, launch.input.addr()),
                (step.output, launch.output.addr()),
                (step.spine, launch.spine.addr()),
            ];
            let scratch = places.iter().find_map(|&(place, address)| match place {
                Place::Scratch(begin) => Some((address as u64).wrapping_sub(begin)),
                _ => None,
            });
            if let Some(scratch) = scratch {
                assert!(
                    self.driver.bytes_behind(scratch) >= plan.scratch_bytes,
                    "{asked:?}: too little scratch memory"
                );
            }
            let addresses = Addresses {
                input: asked.input,
                output: asked.output,
                scratch: scratch.unwrap_or(0),
                control: launch.control.addr() as u64,
                descriptors: launch.descriptors.addr() as u64,
                capacity: launch.capacity,
                ..Addresses::default()
            };
            let expected = step.launch(&addresses);
            assert_eq!(format!("{launch:?}"), format!("{expected:?}"), "{asked:?}, {step:?}");

            let blocks = if step.kernel.is_persistent() {
                step.grid_blocks.min(RESIDENT_BLOCKS.into())
            } else if step.kernel.is_cluster() {
                step.grid_blocks.min(CLUSTER_BLOCKS.into())
            } else {
                step.grid_blocks
            };
            assert_eq!((u64::from(record.blocks), record.threads), (blocks, step.block_threads()), "{asked:?}");
            let cluster = if step.kernel.is_cluster() { record.blocks } else { 0 };
            assert_eq!(record.cluster_blocks, cluster, "{asked:?}");
            let is_programmatic = u32::from(self.architecture.has_programmatic_launch() && plan.begins_early());
            assert_eq!(record.is_programmatic, is_programmatic, "{asked:?}");
            let ring = Ring::of(step.key());
            let stages = ring.most_stages(self.architecture.shared_bytes());
            let is_persistent = step.kernel.is_persistent();
            let shared = if is_persistent { ring.bytes(stages) } else { 0 };
            assert_eq!(u64::from(record.shared_bytes), shared, "{asked:?}");

            let (kernel, problem, config) = step.key();
            let compiled = self.compiler.scan_kernel(kernel, problem, &config, self.architecture);
            let cubin = compiled.unwrap_or_else(|error| panic!("{error}")).cubin;
            // SAFETY: the driver keeps the images of modules for good.
            let image = unsafe { std::slice::from_raw_parts(record.image.cast::<u8>(), record.image_bytes as usize) };
            assert!(!image.is_empty() && cubin.starts_with(image), "{asked:?}: another kernel was launched");

            if step.uses_descriptors() {
                assert!(launch.capacity >= step.descriptors && launch.capacity.is_multiple_of(4), "{asked:?}");
                let room = launch.capacity * plan.descriptor_bytes;
                assert!(record.bytes_behind_descriptors >= room, "{asked:?}: more descriptors than memory");
                let control_bytes = (launch.descriptors.addr() - launch.control.addr()) as u64;
                assert!(control_bytes >= size_of::<lookback_control>() as u64 && control_bytes.is_multiple_of(128));
                let is = (record.stream, plan.layout, plan.descriptor_bytes, launch.capacity);
                let was = *self.regions.entry(record.control_allocation).or_insert(is);
                assert_eq!(is, was, "{asked:?}: a region of another stream, layout or size");
            }
        }
        self.assert_nothing_wrong();
    }

    fn assert_nothing_wrong(&self) {
        assert_eq!(self.driver.violations(), "");
    }
}

fn zeros<T: ScanElement + cudarc::driver::ValidAsZeroBits>(stream: &Arc<CudaStream>, n: usize) -> CudaSlice<T> {
    stream.alloc_zeros(n).expect("memory")
}

#[test]
fn every_launch_is_that_of_its_plan() {
    use Mode::{Exclusive, Inclusive};
    for architecture in [Architecture::HOPPER, Architecture { major: 8, minor: 0 }] {
        let Some(mut bench) = bench("every_launch_is_that_of_its_plan", architecture) else { return };
        let stream = Arc::clone(&bench.stream);
        let (input, mut output) = (zeros::<u32>(&stream, 40_000), zeros::<u32>(&stream, 40_000));
        let (floats, mut float_sums) = (zeros::<f32>(&stream, 40_000), zeros::<f32>(&stream, 40_000));
        let (wide, mut wide_sums) = (zeros::<u64>(&stream, 5000), zeros::<u64>(&stream, 5000));
        let (bytes, mut halves) = (zeros::<u8>(&stream, 6000), zeros::<u16>(&stream, 1000));
        let mut doubles = zeros::<f64>(&stream, 1000);
        let (f16s, mut bf16s) = (zeros::<f16>(&stream, 6000), zeros::<bf16>(&stream, 1000));
        let split = ScanConfig { descriptor: Some(Descriptor::Split), ..SMALL };
        // Its ring has more shared memory than a launch may ask for unless the kernel was allowed it.
        let large_ring = ScanConfig { block_threads: 512, ..SMALL };
        // Each differs from one before it in one thing (the second in addresses alone); the second time all that are remembered come from there.
        for _ in 0..2 {
            for (from, to) in [(0, 0), (8, 8), (1, 0), (0, 1), (4, 4), (3, 2)] {
                for n in [1000, 1001] {
                    let arrays = (Some((&input, from)), (&mut output, to));
                    bench.scan((Strategy::Lookback, Inclusive, SMALL), (Operator::Sum, n), arrays.0, arrays.1);
                }
            }
            for at in [0, 1] {
                bench.scan(
                    (Strategy::Lookback, Inclusive, SMALL),
                    (Operator::Sum, 1000),
                    None::<(&CudaSlice<u32>, usize)>,
                    (&mut output, at),
                );
            }
            for (strategy, mode, config) in [
                (Strategy::Lookback, Inclusive, SMALL),
                (Strategy::Lookback, Exclusive, SMALL),
                (Strategy::Lookback, Inclusive, split),
                (Strategy::OneWave, Inclusive, SMALL),
                (Strategy::Lookahead, Inclusive, SMALL),
                (Strategy::ReduceThenScan, Inclusive, SMALL),
                (Strategy::HillisSteele, Inclusive, SMALL),
                (Strategy::SingleCluster, Inclusive, SMALL),
            ] {
                // Where launches do not overlap, a kernel of each kind is enough.
                let is_of_each_kind = mode == Inclusive
                    && config == SMALL
                    && matches!(strategy, Strategy::Lookback | Strategy::Lookahead);
                if !architecture.has_programmatic_launch() && !is_of_each_kind {
                    continue;
                }
                // The first lies as the scan in place below does; the output's place is look-ahead's business.
                for (from, n, to) in [(1, 2500, 1), (5, 2500, 1), (5, 2500, 2), (5, 2500, 6), (5, 20_000, 1)] {
                    bench.scan((strategy, mode, config), (Operator::Sum, n), Some((&input, from)), (&mut output, to));
                }
                bench.scan(
                    (strategy, mode, config),
                    (Operator::Sum, 2500),
                    None::<(&CudaSlice<u32>, usize)>,
                    (&mut output, 1),
                );
            }
            bench.scan(
                (Strategy::Lookahead, Inclusive, large_ring),
                (Operator::Sum, 20_000),
                Some((&input, 0)),
                (&mut output, 0),
            );
            if !architecture.has_programmatic_launch() {
                continue;
            }
            let lookback = (Strategy::Lookback, Inclusive, SMALL);
            bench.scan(lookback, (Operator::Max, 1000), Some((&input, 0)), (&mut output, 0));
            bench.scan(lookback, (Operator::Sum, 1000), Some((&floats, 0)), (&mut float_sums, 0));
            bench.scan(lookback, (Operator::Sum, 1000), Some((&wide, 0)), (&mut wide_sums, 0));
            // Types that differ: bytes counted in words, and in numbers of two bytes, floats summed in doubles.
            bench.scan(lookback, (Operator::Sum, 1000), Some((&bytes, 3)), (&mut output, 1));
            bench.scan(
                (Strategy::Lookahead, Inclusive, SMALL),
                (Operator::Sum, 5000),
                Some((&bytes, 1)),
                (&mut output, 2),
            );
            bench.scan(lookback, (Operator::Sum, 1000), Some((&bytes, 0)), (&mut halves, 0));
            bench.scan(lookback, (Operator::Max, 1000), Some((&f16s, 1)), (&mut bf16s, 0));
            bench.scan(lookback, (Operator::Product, 1000), None::<(&CudaSlice<bf16>, usize)>, (&mut bf16s, 0));
            bench.scan(
                (Strategy::ReduceThenScan, Exclusive, SMALL),
                (Operator::Sum, 1000),
                Some((&floats, 1)),
                (&mut doubles, 0),
            );
            let split = (Strategy::Lookback, Inclusive, split);
            bench.scan(split, (Operator::Sum, 1000), Some((&wide, 0)), (&mut wide_sums, 0));
        }
    }
}

/// A tile of so many elements; a region has at least 4096 descriptors.
const TILE: usize = 4 * 32;

#[test]
fn a_workspace_grows_and_goes_while_launches_may_use_it() {
    let Some(mut bench) = bench("a_workspace_grows_and_goes_while_launches_may_use_it", Architecture::HOPPER) else {
        return;
    };
    let stream = Arc::clone(&bench.stream);
    let most = 16_385 * TILE;
    let (input, mut output) = (zeros::<u32>(&stream, most), zeros::<u32>(&stream, most));
    let users = bench.driver.allocations();
    // Nobody waits between: what is replaced is still in use. First where there are no descriptors.
    for tiles in [100, 1000] {
        let choice = (Strategy::ReduceThenScan, Mode::Inclusive, SMALL);
        bench.scan(choice, (Operator::Sum, tiles * TILE), Some((&input, 0)), (&mut output, 0));
    }
    for tiles in [1, 4096, 4097, 8192, 8193, 100, 16_384, 16_385] {
        for strategy in [Strategy::Lookback, Strategy::ReduceThenScan] {
            let choice = (strategy, Mode::Inclusive, SMALL);
            bench.scan(choice, (Operator::Sum, tiles * TILE), Some((&input, 0)), (&mut output, 0));
        }
    }
    assert!(bench.driver.allocations() > users, "workspaces");
    bench.scan(
        (Strategy::Lookback, Mode::Inclusive, SMALL),
        (Operator::Sum, 1000),
        Some((&input, 0)),
        (&mut output, 0),
    );
    bench.scanner().forget(&stream).expect("nothing failed");
    assert_eq!(bench.driver.allocations(), users, "the workspace of a stream that is let go is freed");
    bench.scan(
        (Strategy::Lookback, Mode::Inclusive, SMALL),
        (Operator::Sum, 1000),
        Some((&input, 0)),
        (&mut output, 0),
    );
    bench.scan(
        (Strategy::ReduceThenScan, Mode::Inclusive, SMALL),
        (Operator::Sum, 1000),
        Some((&input, 0)),
        (&mut output, 0),
    );
    bench.scanner = None;
    assert_eq!(bench.driver.allocations(), users, "a scanner that goes frees all");
    bench.assert_nothing_wrong();
}

/// Where rows begin, of how long they are.
fn row_offsets<S: AnyScanner>(scanner: &mut S, lengths: &[u32]) -> Result<Vec<u32>, S::Error> {
    let lengths_there = scanner.array(lengths)?;
    assert_eq!(scanner.read(&lengths_there)?, lengths);
    let mut offsets = scanner.zeros(lengths.len() + 1)?;
    scanner.exclusive(Operator::Sum, &lengths_there, &mut offsets)?;
    scanner.in_place(Operator::Max, Mode::Inclusive, &mut offsets)?;
    scanner.check()?;
    scanner.read(&offsets)
}

#[test]
fn what_is_generic_over_scanners_is_put_onto_the_stream() {
    let Some(mut bench) = bench("what_is_generic_over_scanners", Architecture::HOPPER) else { return };
    bench.choose(Strategy::Lookback, SMALL);
    let stream = Arc::clone(&bench.stream);
    for lengths in [&[3_u32, 1, 4][..], &[]] {
        let found = row_offsets(&mut bench.scanner().on(&stream), lengths).expect("it is launched");
        // Kernels do nothing here.
        assert_eq!(found, vec![0; lengths.len() + 1]);
    }
    assert_eq!(bench.driver.launches().len(), 4);
    // A rehearsal leaves a workspace beside its own arrays, of which two are still there; what comes after it those alone.
    let mut allocations = Vec::new();
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U64, ElementType::U64).expect("numbers");
    let sums = sums.define().expect("a definition");
    let mut sum = |mut scanner: OnStream<'_>| {
        let before = bench.driver.allocations();
        let (x, mut total) = (scanner.array(&[7_u64; 900]).expect("room"), scanner.zeros::<u64>(1).expect("room"));
        scanner.run(sums).input(&x).total(&mut total).expect("it is ready");
        row_offsets(&mut scanner, &[1; 70_000]).expect("it is ready");
        allocations.push(bench.driver.allocations() - before);
    };
    sum(bench.scanner().on(&stream).rehearsing());
    assert_eq!(bench.driver.launches().len(), 0);
    sum(bench.scanner().on(&stream));
    assert!(bench.driver.launches().len() > 2 && allocations == [3, 2], "{allocations:?}");
    bench.driver.fail_next(c"cuMemAlloc");
    let refused = bench.scanner().on(&stream).zeros::<u64>(5);
    assert!(matches!(refused, Err(CudaError::OutOfMemory { needed_bytes: 40, .. })), "{:?}", refused.err());
    bench.assert_nothing_wrong();
}

#[test]
fn what_is_warm_is_launched_without_an_allocation() {
    let Some(mut bench) = bench("what_is_warm_is_launched_without_an_allocation", Architecture::HOPPER) else { return };
    bench.choose(Strategy::Lookback, SMALL);
    let stream = Arc::clone(&bench.stream);
    let (input, mut output) = (zeros::<u32>(&stream, 40_000), zeros::<u64>(&stream, 40_000));
    let mut short = zeros::<u32>(&stream, 40_000);
    let scanner = bench.scanner();
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U64).expect("numbers");
    let sums = sums.define().expect("a definition");
    {
        let (nothing, mut nowhere) = (input.slice(..0), output.slice_mut(..0));
        let empty = scanner.run(&stream, sums).input(&nothing).output(&mut nowhere);
        assert_eq!(empty.warm_up(Mode::Inclusive).expect("nothing"), 0);
    }
    let before = bench.driver.allocations();
    let run = || scanner.run(&stream, sums).reversed();
    let bytes = [
        scanner.warm_up(&stream, Operator::Sum, Mode::Exclusive, &input, &mut output).expect("it is ready"),
        run().input(&input).output(&mut output).warm_up(Mode::Inclusive).expect("it is ready"),
        run().input(&input).output(&mut output).rows(100).warm_up(Mode::Inclusive).expect("it is ready"),
        scanner.warm_up(&stream, Operator::Sum, Mode::Inclusive, &input, &mut short).expect("it is ready"),
    ];
    // Descriptors of 16 bytes, which three scans share, one of them with a mark in them; and of 8.
    assert!(0 < bytes[0] && bytes[..3] == [bytes[0]; 3] && bytes[2] < bytes[3], "{bytes:?}");
    assert_eq!(bench.driver.launches().len(), 0);
    let ready = bench.driver.allocations();
    assert!(ready > before);
    scanner.exclusive(&stream, Operator::Sum, &input, &mut output).expect("it is launched");
    run().input(&input).output(&mut output).inclusive().expect("it is launched");
    run().input(&input).output(&mut output).rows(100).inclusive().expect("it is launched");
    scanner.inclusive(&stream, Operator::Sum, &input, &mut short).expect("it is launched");
    assert_eq!((bench.driver.launches().len(), bench.driver.allocations()), (4, ready));
    bench.assert_nothing_wrong();
}

#[test]
fn kernels_that_were_made_ahead_are_launched_without_a_compiler_and_no_others_are() {
    let Some(bench) = bench("kernels_that_were_made_ahead", Architecture { major: 8, minor: 0 }) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nvrtc = Nvrtc::shared().expect("it was found above");
    let making = Compiler::with_cache(nvrtc, Cache::disabled()).keeping_in(folder.path());
    let making = Scanner::with_compiler(&bench.context, making).expect("a scanner");
    let made = Scanner::without_nvrtc(&bench.context, folder.path()).expect("a scanner");
    let [making, made] = [making, made].map(|scanner| scanner.with_strategy(Strategy::Lookback).with_config(SMALL));
    let (input, mut output) = (zeros::<u32>(&bench.stream, 1000), zeros::<u32>(&bench.stream, 1000));
    let missing = made.inclusive(&bench.stream, Operator::Sum, &input, &mut output).expect_err("nothing is made yet");
    assert!(matches!(missing, CudaError::NotMadeAhead { .. }) && !missing.is_absence(), "{missing}");
    assert!(missing.to_string().contains("lookback kernels --architectures 8.0"), "{missing}");
    for scanner in [&making, &made] {
        scanner.inclusive(&bench.stream, Operator::Sum, &input, &mut output).expect("it is launched");
        assert_eq!(bench.driver.launches().len(), 1);
    }
    // Another operator was not made, and what is damaged does not count.
    let other = made.inclusive(&bench.stream, Operator::Max, &input, &mut output);
    assert!(matches!(other, Err(CudaError::NotMadeAhead { .. })), "{other:?}");
    assert!(made.cache_warnings().is_empty());
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        std::fs::write(entry.expect("an entry").path(), b"half a kern").expect("a file");
    }
    let made = Scanner::without_nvrtc(&bench.context, folder.path()).expect("a scanner");
    let made = made.with_strategy(Strategy::Lookback).with_config(SMALL);
    let damaged = made.inclusive(&bench.stream, Operator::Sum, &input, &mut output);
    assert!(matches!(damaged, Err(CudaError::NotMadeAhead { .. })), "{damaged:?}");
    assert_eq!((made.cache_warnings().len(), bench.driver.launches().len()), (1, 0));
    bench.assert_nothing_wrong();
}

/// Scans of several kinds: of numbers, of rows, down columns, by key, from the end; what is kept, and a next one of as many; a total,
/// one input fewer, none; a sort.
fn many_kinds<S: AnyScanner>(scanner: &mut S) -> Result<(), S::Error> {
    const N: usize = 100_000;
    let define = |definition: Result<Definition, _>| definition.expect("numbers").define().expect("a definition");
    let (a, mut h): (S::Array<f32>, S::Array<f32>) = (scanner.zeros(N)?, scanner.zeros(N)?);
    scanner.inclusive(Operator::Sum, &a, &mut h)?;
    scanner.in_place::<f32>(Operator::Max, Mode::Inclusive, &mut h)?;
    let recurrence = define(Definition::linear_recurrence::<f32>());
    scanner.run(recurrence).input(&a).in_place(&mut h).rows(1000).inclusive()?;
    scanner.run(recurrence).input(&a).in_place(&mut h).columns(50).inclusive()?;
    // Two columns are one array of rows.
    scanner.run(recurrence).input(&a).in_place(&mut h).columns(2).inclusive()?;
    let (keys, mut sorted): (S::Array<u32>, S::Array<u32>) = (scanner.array(&vec![7; N])?, scanner.zeros(N)?);
    let sum = define(Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32));
    scanner.run(sum).input(&a).output(&mut h).by_key(&keys).reversed().inclusive()?;
    let mut count = scanner.zeros::<u32>(1)?;
    let large =
        Definition::select::<f32>("return x > limit;").parameter::<f32>("limit").define().expect("a definition");
    scanner.run(large).parameter(1.0_f32).input(&a).output(&mut h).count_into(&mut count).compact()?;
    scanner.run(sum).in_place(&mut h).count_from(&count).inclusive()?;
    scanner.run(sum).in_place(&mut h).columns(50).count_from(&count).inclusive()?;
    let mut total = scanner.zeros::<f32>(1)?;
    scanner.run(sum).input(&h).total(&mut total)?;
    let (shorter, mut nothing): (S::Array<f32>, S::Array<f32>) = (scanner.zeros(N - 1)?, scanner.zeros(0)?);
    scanner.exclusive(Operator::Sum, &shorter, &mut h)?;
    scanner.in_place::<f32>(Operator::Sum, Mode::Inclusive, &mut nothing)?;
    scanner.run(define(Definition::sort::<u32>())).input(&keys).output(&mut sorted).sort()?;
    scanner.read(&sorted).map(drop)
}

#[test]
fn the_kernels_of_a_program_are_made_for_gpus_that_are_not_here() {
    let old = Architecture { major: 8, minor: 0 };
    let Some(bench) = bench("the_kernels_of_a_program_are_made", old) else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let compiler = || Compiler::with_cache(Nvrtc::shared().expect("it was found above"), Cache::disabled());
    let gpu = |architecture| Gpu { architecture, multiprocessors: 4 };
    let mut ahead = Ahead::new(compiler().keeping_in(folder.path()), [gpu(old)]);
    many_kinds(&mut ahead).expect("kernels for one");
    let of_one = ahead.kernels();
    many_kinds(&mut ahead).expect("the same ones");
    assert!(of_one > 8 && ahead.kernels() == of_one, "{of_one} and {}", ahead.kernels());
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), of_one);
    // All that the GPU runs are there, and it launches what a scanner does that compiles.
    let made = Scanner::without_nvrtc(&bench.context, folder.path()).expect("a scanner");
    let launched = |scanner: &Scanner| {
        many_kinds(&mut scanner.on(&bench.stream)).expect("all are there");
        let records = bench.driver.launches().into_iter();
        records
            .map(|record| (record.blocks, record.threads, record.shared_bytes, record.image_bytes))
            .collect::<Vec<_>>()
    };
    assert_eq!(launched(&made), launched(bench.scanner()));
    // Another strategy has others, and so has another GPU.
    let by_one_wave = Choices::on(gpu(old)).with_strategy(Strategy::OneWave);
    let mut others = Ahead::new(compiler().keeping_in(folder.path()), [by_one_wave, gpu(Architecture::HOPPER).into()]);
    let sum = |ahead: &mut Ahead| {
        let (input, mut output) = (ahead.zeros::<u32>(1000)?, ahead.zeros::<u32>(1000)?);
        ahead.exclusive(Operator::Sum, &input, &mut output)
    };
    sum(&mut others).expect("one for each");
    assert_eq!(others.kernels(), 2);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), of_one + 2);
    // Blocks that stay go down as much of columns as the device says.
    let staying = Choices::on(gpu(Architecture::HOPPER)).with_strategy(Strategy::Lookahead);
    let mut staying = Ahead::new(compiler().keeping_in(folder.path()), [staying]);
    let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a definition");
    let [a, mut h] = [(); 2].map(|()| staying.zeros::<f32>(1000).expect("an array"));
    let count = staying.zeros::<u32>(1).expect("an array");
    let run = staying.run(recurrence).input(&a).in_place(&mut h).columns(10).count_from(&count);
    run.inclusive().expect("a kernel");
    assert_eq!(staying.kernels(), 1);
    // Without a folder, or where there can be none, nothing is made.
    let homeless = sum(&mut Ahead::new(compiler(), [gpu(old)]));
    assert!(matches!(homeless, Err(CudaError::NoFolder)), "{homeless:?}");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let unkept = sum(&mut Ahead::new(compiler().keeping_in(file.path()), [gpu(old)])).expect_err("a file is no folder");
    assert!(matches!(unkept, CudaError::NotKept { .. }) && unkept.to_string().contains("cannot be kept"), "{unkept}");
    bench.assert_nothing_wrong();
}

#[test]
fn streams_and_threads_have_workspaces_of_their_own() {
    let Some(mut bench) = bench("streams_and_threads_have_workspaces_of_their_own", Architecture::HOPPER) else {
        return;
    };
    bench.choose(Strategy::Lookback, SMALL);
    let scanner = bench.scanner();
    let once = |stream: &Arc<CudaStream>| {
        let (input, mut output) = (zeros::<u32>(stream, 1000), zeros::<u32>(stream, 1000));
        scanner.inclusive(stream, Operator::Sum, &input, &mut output).expect("a scan");
        // Else dropping them waits for the stream.
        (input, output)
    };
    let mut kept = vec![once(&bench.stream)];
    for _ in 0..3 {
        // The last handle of the stream: a driver may give it to the next one.
        let stream = bench.context.new_stream().expect("a stream");
        kept.push(once(&stream));
    }
    let kept = Mutex::new(kept);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let arrays = once(&bench.context.per_thread_stream());
                kept.lock().expect("no thread panics with the lock").push(arrays);
            });
        }
    });
    let records = bench.driver.launches();
    assert_eq!(records.len(), 6);
    for (index, record) in records.iter().enumerate() {
        for other in &records[..index] {
            let same = [record.stream == other.stream, record.control_allocation == other.control_allocation];
            assert!(same == [false; 2] || same == [true; 2], "{record:?} {other:?}");
        }
    }
    bench.assert_nothing_wrong();
}

#[test]
fn a_thread_that_has_no_context_may_scan() {
    let Some(mut bench) = bench("a_thread_that_has_no_context_may_scan", Architecture::HOPPER) else { return };
    // Else cudarc makes it current when it waits for the arrays.
    // SAFETY: all arrays are used on one stream.
    unsafe { bench.context.disable_event_tracking() };
    bench.choose(Strategy::Lookback, SMALL);
    let (scanner, stream) = (bench.scanner(), &bench.stream);
    let (input, mut output) = (zeros::<u32>(stream, 1000), zeros::<u32>(stream, 1000));
    let mut scan = || scanner.inclusive(stream, Operator::Sum, &input, &mut output).expect("a scan");
    // Kernel and workspace are there when the other thread comes.
    scan();
    std::thread::scope(|scope| scope.spawn(scan).join()).expect("the thread did not panic");
    assert_eq!(bench.driver.launches().len(), 2);
    bench.assert_nothing_wrong();
    stream.synchronize().expect("two scans");
}

#[test]
fn arrays_of_another_stream_are_waited_for_and_handed_back() {
    let Some(mut bench) = bench("arrays_of_another_stream_are_waited_for_and_handed_back", Architecture::HOPPER) else {
        return;
    };
    bench.choose(Strategy::Lookback, SMALL);
    let other = bench.context.new_stream().expect("a stream");
    let mut input = other.clone_htod(&[1_u32; 1000]).expect("upload");
    let mut output = zeros::<u32>(&other, 1000);
    let scan = |input: &CudaSlice<u32>, output: &mut CudaSlice<u32>| {
        bench.scanner().inclusive(&bench.stream, Operator::Sum, input, output).expect("a scan");
        bench.assert_nothing_wrong();
    };
    // Behind what the scan read; and, after another one, behind what that one wrote.
    scan(&input, &mut output);
    other.memcpy_htod(&[2_u32; 1000], &mut input).expect("upload");
    bench.assert_nothing_wrong();
    scan(&input, &mut output);
    other.memset_zeros(&mut output).expect("zeros");
    bench.assert_nothing_wrong();
    bench.scanner().in_place(&bench.stream, Operator::Sum, Mode::Exclusive, &mut output).expect("a scan");
    other.memset_zeros(&mut output).expect("zeros");
    bench.assert_nothing_wrong();
    // Of a defined scan, over parts of them.
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).expect("numbers");
    let sums = sums.define().expect("a definition");
    let (part, mut into) = (input.slice(10..500), output.slice_mut(..490));
    bench.scanner().run(&bench.stream, sums).input(&part).output(&mut into).reversed().inclusive().expect("a scan");
    other.memset_zeros(&mut output).expect("zeros");
    bench.assert_nothing_wrong();
}

#[test]
fn arrays_that_a_scanner_makes_are_waited_for() {
    let Some(mut bench) = bench("arrays_that_a_scanner_makes_are_waited_for", Architecture::HOPPER) else { return };
    bench.choose(Strategy::Lookback, SMALL);
    let other = bench.context.new_stream().expect("a stream");
    let mut maker = bench.scanner().on(&other);
    let (input, mut output) = (maker.array(&[1_u32; 1000]).expect("room"), maker.zeros::<u32>(1000).expect("room"));
    bench.scanner().inclusive(&bench.stream, Operator::Sum, &input, &mut output).expect("a scan");
    bench.assert_nothing_wrong();
    assert_eq!(bench.scanner().on(&bench.stream).read(&input).expect("it is read"), [1; 1000]);
    bench.assert_nothing_wrong();
}

#[test]
fn what_is_refused_waits_for_no_array() {
    let Some(bench) = bench("what_is_refused_waits_for_no_array", Architecture::HOPPER) else { return };
    let other = bench.context.new_stream().expect("a stream");
    let (input, mut output) = (other.clone_htod(&[1_u32; 10]).expect("upload"), zeros::<f32>(&bench.stream, 9));
    let before = bench.driver.waits();
    let lengths = bench.scanner().inclusive(&bench.stream, Operator::Sum, &input, &mut output);
    assert!(matches!(lengths, Err(CudaError::Config(_))), "{lengths:?}");
    let operator = bench.scanner().inclusive(&bench.stream, Operator::Or, &input, &mut output);
    assert!(matches!(operator, Err(CudaError::Config(_))), "{operator:?}");
    assert_eq!(bench.driver.waits(), before);
    bench.context.check_err().expect("nothing went wrong that nobody was told of");
    bench.assert_nothing_wrong();
}

#[test]
fn a_captured_scan_keeps_a_workspace_that_nothing_else_uses() {
    let Some(mut bench) = bench("a_captured_scan_keeps_a_workspace_that_nothing_else_uses", Architecture::HOPPER)
    else {
        return;
    };
    // SAFETY: all arrays are used on one stream, and their scans are waited for before they go.
    unsafe { bench.context.disable_event_tracking() };
    let stream = Arc::clone(&bench.stream);
    let (input, mut output) = (zeros::<u32>(&stream, 600_000), zeros::<u32>(&stream, 600_000));
    stream.synchronize().expect("zeros");
    bench.choose(Strategy::Lookback, SMALL);
    // A stream that is not captured, whose workspace grows while the other one is.
    let other = bench.context.new_stream().expect("a stream");
    let (own_input, mut own_output) = (zeros::<u32>(&other, 600_000), zeros::<u32>(&other, 600_000));
    let mut beside = |n: usize| {
        let (input, mut output) = (own_input.slice(..n), own_output.slice_mut(..n));
        // Exclusive: the kernel of the captured scans is loaded while they are captured.
        bench.scanner().exclusive(&other, Operator::Sum, &input, &mut output).expect("a scan");
        assert_eq!(bench.driver.launches().len(), 1);
    };
    beside(1000);
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).expect("a capture");
    for n in [1000, 600_000] {
        let scanner = bench.scanner();
        scanner.inclusive(&stream, Operator::Sum, &input.slice(..n), &mut output.slice_mut(..n)).expect("a scan");
    }
    let captured = bench.driver.launches();
    beside(600_000);
    assert!(bench.driver.guards_captures(), "the thread's calls may break captures again");
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = stream.end_capture(flags).expect("a graph").expect("two scans in it");
    assert!(captured.len() == 2 && captured.iter().all(|record| record.is_captured == 1), "{captured:?}");
    assert_ne!(captured[0].control_allocation, captured[1].control_allocation);
    graph.launch().expect("a replay");
    for n in [1000, 600_000] {
        let scanner = bench.scanner();
        scanner.inclusive(&stream, Operator::Sum, &input.slice(..n), &mut output.slice_mut(..n)).expect("a scan");
    }
    for record in bench.driver.launches() {
        assert!(captured.iter().all(|other| other.control_allocation != record.control_allocation), "{record:?}");
    }
    bench.scanner().forget(&stream).expect("nothing failed");
    graph.launch().expect("a replay");
    bench.assert_nothing_wrong();
    drop(graph);
    let kept = bench.driver.allocations();
    // SAFETY: the only graph is gone.
    unsafe { bench.scanner().forget_captured() }.expect("nothing failed");
    assert_eq!(bench.driver.allocations(), kept - 2, "two scans had a workspace each");
    bench.scanner = None;
    bench.assert_nothing_wrong();
}

#[test]
fn a_call_that_fails_leaves_nothing_half_done() {
    let Some(mut bench) = bench("a_call_that_fails_leaves_nothing_half_done", Architecture::HOPPER) else { return };
    let stream = Arc::clone(&bench.stream);
    let most = 8193 * TILE;
    let (input, mut output) = (zeros::<u32>(&stream, most), zeros::<u32>(&stream, most));
    let scan = (Strategy::Lookback, Mode::Inclusive, SMALL);
    let calls = [c"cuModuleLoadData", c"cuMemAlloc", c"cuMemsetD8Async", c"cuLaunchKernelEx"];
    // The first of all, and one that needs a larger workspace, for which the kernel is there.
    for (n, calls) in [(1000, &calls[..]), (most, &calls[1..])] {
        for &call in calls {
            bench.choose(Strategy::Lookback, SMALL);
            bench.driver.fail_next(call);
            let (from, mut to) = (input.slice(..n), output.slice_mut(..n));
            match (call == c"cuMemAlloc", bench.scanner().inclusive(&stream, Operator::Sum, &from, &mut to)) {
                (true, Err(CudaError::OutOfMemory { .. })) | (false, Err(CudaError::Driver { .. })) => {}
                (_, other) => panic!("{call:?} failed: {other:?}"),
            }
            assert_eq!(bench.driver.launches().len(), 0, "{call:?}");
        }
        bench.scan(scan, (Operator::Sum, n), Some((&input, 0)), (&mut output, 0));
    }
    bench.assert_nothing_wrong();
}

#[test]
fn a_defined_scan_is_launched_over_the_arrays_that_it_is_given() {
    let Some(mut bench) = bench("a_defined_scan", Architecture::HOPPER) else { return };
    bench.choose(Strategy::Lookback, SMALL);
    let stream = Arc::clone(&bench.stream);
    let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a definition");
    let [a, mut b, mut h] = [(); 3].map(|()| zeros::<f32>(&stream, 1000));
    // A state of two f32 has 8 bytes.
    let (before, mut behind) = (zeros::<u64>(&stream, 9), zeros::<u64>(&stream, 9));
    let [at_a, at_b, at_h] = [&a, &b, &h].map(|array| array.device_ptr(&stream).0);
    let [at_before, at_behind] = [&before, &behind].map(|array| array.device_ptr(&stream).0);
    bench.driver.launches();

    let run = bench.scanner().run(&stream, recurrence).input(&a).input(&b).output(&mut h);
    run.initial(&[0.0_f32, 8.0]).final_state(&mut behind.slice_mut(8..)).exclusive().expect("it is launched");
    let (some_a, mut some_b) = (a.slice(1..901), b.slice_mut(3..903));
    let run = bench.scanner().run(&stream, recurrence).input(&some_a).in_place(&mut some_b);
    let run = run.reversed().rows(100).initial_from(&before).final_state(&mut behind);
    run.inclusive().expect("it is launched");
    let records = bench.driver.launches();
    assert_eq!(records.len(), 2);
    let [whole, rows] = [0, 1].map(|number| records[number].launch);
    let inputs = |launch: lookback_launch| launch.inputs.map(|pointer| pointer.addr() as u64);
    let outputs = |launch: lookback_launch| launch.outputs.map(|pointer| pointer.addr() as u64);
    assert_eq!((inputs(whole), outputs(whole)), ([at_a, at_b, 0, 0, 0], [at_h, 0, 0, 0, 0]));
    assert_eq!((whole.n, whole.columns, whole.has_initial, whole.initial[0]), (1000, 0, 1, 0x4100_0000_0000_0000));
    assert_eq!((whole.initial_state.addr() as u64, whole.final_state.addr() as u64), (0, at_behind + 64));
    assert_eq!((inputs(rows), outputs(rows)), ([at_a + 4, at_b + 12, 0, 0, 0], [at_b + 12, 0, 0, 0, 0]));
    assert_eq!((rows.n, rows.columns, rows.has_initial, rows.initial), (900, 100, 0, [0; 4]));
    assert_eq!((rows.initial_state.addr() as u64, rows.final_state.addr() as u64), (at_before, at_behind));

    // Bits are cleared and made of offsets before they are read, in front of the user's arrays; in a capture, too.
    let (offsets, count) = (zeros::<i64>(&stream, 11), zeros::<u32>(&stream, 1));
    let [at_offsets, at_count] = [offsets.device_ptr(&stream).0, count.device_ptr(&stream).0];
    for is_captured in [false, true] {
        if is_captured {
            stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).expect("capture");
        }
        let run = bench.scanner().run(&stream, recurrence).input(&a).input(&b).output(&mut h);
        run.reversed().offsets(&offsets).count_from(&count).inclusive().expect("it is launched");
        if is_captured {
            let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            stream.end_capture(flags).expect("a graph");
        }
        let records = bench.driver.launches();
        let [clear, mark, scan] = &records[..] else { panic!("{} launches", records.len()) };
        let bits = clear.launch.output.addr() as u64;
        assert!(clear.launch.n >= (1000 + 128) / 32 && bits != 0);
        assert_eq!((mark.launch.output.addr() as u64, mark.launch.n, mark.launch.segments), (bits, 1000, 10));
        assert_eq!((mark.launch.offsets.addr() as u64, mark.launch.offset_bytes), (at_offsets, 8));
        assert_eq!((mark.launch.is_reversed, mark.launch.findings), (1, scan.launch.findings));
        assert_eq!((scan.launch.count.addr() as u64, scan.launch.count_bytes), (at_count, 4));
        assert_eq!(inputs(scan.launch), [bits, at_a, at_b, 0, 0]);
    }

    let refused = |run: Result<(), CudaError>| match run {
        Err(CudaError::Config(ConfigError::Call(error))) => *error,
        other => panic!("{other:?}"),
    };
    let run = bench.scanner().run(&stream, recurrence).input(&a).input(&before).output(&mut h).inclusive();
    assert!(matches!(refused(run), CallError::ElementType { array, .. } if array == "b"));
    let run = bench.scanner().run(&stream, recurrence).input(&a).in_place(&mut b).output(&mut h).inclusive();
    assert!(matches!(refused(run), CallError::Count { given: 2, .. }));
    assert_eq!(bench.driver.launches().len(), 0);
    bench.assert_nothing_wrong();
}

/// A number in the driver's memory.
fn number_at(address: u64) -> u64 {
    // SAFETY: what this driver calls memory is this process's own, allocated, aligned and written by a copy before.
    unsafe { std::ptr::with_exposed_provenance::<u64>(address as usize).read() }
}

#[test]
fn a_compaction_is_told_where_its_count_goes_and_of_nothing_counts_none() {
    let Some(mut bench) = bench("a_compaction", Architecture::HOPPER) else { return };
    bench.choose(Strategy::Lookahead, SMALL);
    let stream = Arc::clone(&bench.stream);
    let partition = Definition::partition::<u32>("return x < 7;").define().expect("a definition");
    // One number is the count; the other stays as it is.
    let (x, mut numbers) = (zeros::<u32>(&stream, 1000), stream.clone_htod(&[9_u64; 2]).expect("an array"));
    let [mut kept, mut others] = [(); 2].map(|()| zeros::<u32>(&stream, 1000));
    let [at_x, at_kept, at_others] = [&x, &kept, &others].map(|array| array.device_ptr(&stream).0);
    let at_numbers = numbers.device_ptr(&stream).0;
    bench.driver.launches();

    let run = bench.scanner().run(&stream, partition).input(&x).output(&mut kept).output(&mut others);
    run.count_into(&mut numbers.slice_mut(1..)).compact().expect("it is launched");
    let records = bench.driver.launches();
    let [Record { launch, .. }] = &records[..] else { panic!("{} launches", records.len()) };
    assert_eq!((launch.n, launch.inputs[0].addr() as u64), (1000, at_x));
    assert_eq!(launch.outputs[..2].iter().map(|at| at.addr() as u64).collect::<Vec<_>>(), [at_kept, at_others]);
    assert_eq!((launch.kept.addr() as u64, launch.kept_bytes, launch.kept_numbers), (at_numbers + 8, 8, 1));

    // No kernel runs over no elements, so that the count is cleared; a call that makes ready for it clears nothing.
    let empty = x.slice(0..0);
    for compacts in [false, true] {
        let run = bench.scanner().run(&stream, partition).input(&empty).output(&mut kept).output(&mut others);
        let mut number = numbers.slice_mut(1..);
        let run = run.count_into(&mut number);
        if compacts {
            run.compact().expect("nothing to launch");
        } else {
            assert_eq!(run.warm_up(Mode::Inclusive).expect("nothing to make ready"), 0);
        }
        assert_eq!(number_at(at_numbers), 9);
        assert_eq!(number_at(at_numbers + 8), if compacts { 0 } else { 9 });
    }
    // Two are both cleared.
    let mut counts = stream.clone_htod(&[9_u32; 3]).expect("an array");
    let at_counts = counts.device_ptr(&stream).0;
    let run = bench.scanner().run(&stream, partition).input(&empty).output(&mut kept).output(&mut others);
    run.count_into(&mut counts.slice_mut(..2)).compact().expect("nothing to launch");
    assert_eq!((number_at(at_counts), stream.clone_dtoh(&counts).expect("numbers")), (0, vec![0, 0, 9]));
    let run = bench.scanner().run(&stream, partition).input(&x).output(&mut kept).output(&mut others);
    run.count_into(&mut counts.slice_mut(..2)).compact().expect("it is launched");
    let records = bench.driver.launches();
    assert_eq!((records[0].launch.kept_bytes, records[0].launch.kept_numbers), (4, 2));
    for numbers in [0, 3] {
        let run = bench.scanner().run(&stream, partition).input(&x).output(&mut kept).output(&mut others);
        let refused = run.count_into(&mut counts.slice_mut(..numbers)).compact();
        assert!(refused.is_err_and(|error| error.to_string().contains("one number, or two")), "{numbers}");
    }
    // One more is refused before anything is cleared.
    let mut count = stream.clone_htod(&[9_u64]).expect("an array");
    let run = bench.scanner().run(&stream, partition).input(&empty).output(&mut kept).count_into(&mut count);
    assert!(matches!(run.compact(), Err(CudaError::Config(ConfigError::Call(_)))));
    assert_eq!(number_at(count.device_ptr(&stream).0), 9);
    assert_eq!(bench.driver.launches().len(), 0);
    bench.assert_nothing_wrong();
}

#[test]
fn parameters_lie_in_the_launch_and_another_value_is_the_same_kernel() {
    let Some(mut bench) = bench("parameters_lie_in_the_launch", Architecture::HOPPER) else { return };
    bench.choose(Strategy::Lookahead, SMALL);
    let stream = Arc::clone(&bench.stream);
    let between = Definition::select::<f32>("return low < x && x < high + i * step;");
    let between = between.parameter::<u8>("low").parameter::<f64>("step").parameter::<f32>("high").define();
    let between = between.expect("a definition");
    let (x, mut kept) = (zeros::<f32>(&stream, 1000), zeros::<f32>(&stream, 1000));
    bench.driver.launches();
    for (low, step, high) in [(1_u8, 0.25_f64, 8.0_f32), (7, -1.5, 3.0)] {
        let run = bench.scanner().run(&stream, between).parameter(low).parameter(step).parameter(high);
        run.input(&x).output(&mut kept).compact().expect("it is launched");
    }
    let records = bench.driver.launches();
    let [first, second] = &records[..] else { panic!("{} launches", records.len()) };
    let given = |low: u64, step: f64, high: f32| [low, step.to_bits(), u64::from(high.to_bits()), 0, 0, 0, 0, 0];
    assert_eq!(first.launch.parameters, given(1, 0.25, 8.0));
    assert_eq!(second.launch.parameters, given(7, -1.5, 3.0));
    assert_eq!(first.image, second.image);

    let run = bench.scanner().run(&stream, between).parameter(1_u8).parameter(0.5_f64).input(&x).output(&mut kept);
    let refused = run.compact().expect_err("a parameter is missing").to_string();
    assert!(refused.contains("has 3 parameters and is given 2"), "{refused}");
    assert_eq!(bench.driver.launches().len(), 0);
    bench.assert_nothing_wrong();
}

#[test]
fn a_scan_down_columns_is_told_its_axis() {
    let Some(mut bench) = bench("a_scan_down_columns_is_told_its_axis", Architecture::HOPPER) else { return };
    let config = ScanConfig { vt: 8, block_threads: 128, ..ScanConfig::default() };
    bench.choose(Strategy::Lookback, config);
    let stream = Arc::clone(&bench.stream);
    let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a definition");
    let [a, b, mut h] = [(); 3].map(|()| zeros::<f32>(&stream, 60_000));
    let (before, mut behind) = (zeros::<u64>(&stream, 300), zeros::<u64>(&stream, 300));
    let [at_before, at_behind] = [&before, &behind].map(|array| array.device_ptr(&stream).0);
    bench.driver.launches();
    let run = bench.scanner().run(&stream, recurrence).input(&a).input(&b).output(&mut h).axis(200, 100);
    run.initial_from(&before).final_state(&mut behind).inclusive().expect("it is launched");
    let run = bench.scanner().run(&stream, recurrence).input(&a).input(&b).output(&mut h).axis(20, 100);
    run.inclusive().expect("it is launched");
    let run = bench.scanner().run(&stream, recurrence).input(&a).input(&b).output(&mut h).axis(100, 1);
    run.inclusive().expect("it is launched");
    let run = bench.scanner().run(&stream, recurrence).input(&a).input(&b).output(&mut h).axis(200, 100);
    run.inclusive().expect("it is launched");
    let records = bench.driver.launches();
    let [tall, short, rows] = [0, 1, 2].map(|number| records[number].launch);
    // Strips of 32 lanes and two columns each, down which tiles go by 8 rows for each of 4 warps.
    let told = |launch: lookback_launch| {
        let lookback_axis { length, inner, strips, lines, tiles_down, strip_lanes, .. } = launch.axis;
        ([length, inner, launch.tiles], [strips, lines, tiles_down, strip_lanes])
    };
    assert_eq!(told(tall), ([200, 100, 2 * 3 * 7], [2, 6, 7, 32]));
    assert_eq!((records[0].blocks, records[0].threads), (42, 128));
    assert_eq!((tall.initial_state.addr() as u64, tall.final_state.addr() as u64), (at_before, at_behind));
    assert!(tall.capacity >= 42 * 64 && !tall.control.is_null());
    // Nobody waits where the first tile of a column is the last one.
    assert_eq!(told(short), ([20, 100, 60], [2, 60, 1, 32]));
    assert!(short.control.is_null() && short.descriptors.is_null());
    assert_eq!((rows.columns, rows.axis.inner), (100, 0));
    // What runs along another axis is the same kernel.
    assert_eq!(records[3].image, records[1].image);
    assert_ne!(records[3].image, records[0].image, "a final state is a kernel of its own");

    bench.choose(Strategy::OneWave, config);
    let run = bench.scanner().run(&stream, recurrence).input(&a).input(&b).output(&mut h).columns(100).inclusive();
    assert!(matches!(run, Err(CudaError::Config(ConfigError::TakesNoColumns { .. }))), "{run:?}");
    bench.scanner = bench.scanner.take().map(|scanner| scanner.with_strategy(StrategyChoice::Auto));
    let run = bench.scanner().run(&stream, recurrence).input(&a).input(&b).output(&mut h).columns(100);
    run.inclusive().expect("auto takes it");
    assert_eq!(bench.driver.launches().len(), 1);
    bench.assert_nothing_wrong();
}

#[test]
fn what_does_not_fit_together_is_refused_before_anything_is_launched() {
    let Some(mut bench) = bench("what_does_not_fit_together_is_refused", Architecture { major: 8, minor: 0 }) else {
        return;
    };
    let (stream, scanner) = (&bench.stream, bench.scanner());
    let (mut six, mut three) = (zeros::<u32>(stream, 6), zeros::<u32>(stream, 3));
    let four = zeros::<u32>(stream, 4);
    let mismatch = scanner.inclusive(stream, Operator::Sum, &four, &mut three);
    assert!(
        matches!(mismatch, Err(CudaError::Config(ConfigError::LengthMismatch { input: 4, output: 3, .. }))),
        "{mismatch:?}"
    );
    // One more is for an exclusive scan alone.
    let mismatch = scanner.inclusive(stream, Operator::Sum, &four, &mut six.slice_mut(..5));
    assert!(
        matches!(mismatch, Err(CudaError::Config(ConfigError::LengthMismatch { input: 4, output: 5, .. }))),
        "{mismatch:?}"
    );
    let mismatch = scanner.exclusive(stream, Operator::Sum, &four, &mut six);
    assert!(
        matches!(mismatch, Err(CudaError::Config(ConfigError::LengthMismatch { input: 4, output: 6, .. }))),
        "{mismatch:?}"
    );
    let (floats, mut float_sums) = (zeros::<f32>(stream, 4), zeros::<f32>(stream, 4));
    let xor = scanner.inclusive(stream, Operator::Xor, &floats, &mut float_sums);
    assert!(matches!(xor, Err(CudaError::Config(_))), "{xor:?}");
    for (operator, refused) in [
        (Operator::Sum, scanner.inclusive(stream, Operator::Sum, &floats, &mut six.slice_mut(..4))),
        (Operator::Min, scanner.inclusive(stream, Operator::Min, &four, &mut float_sums)),
    ] {
        let is_typed = matches!(refused, Err(CudaError::Config(ConfigError::NoSuchProblem(_))));
        assert!(is_typed, "{operator}: {refused:?}");
    }
    let nothing = scanner.inclusive(stream, Operator::Sum, &four.slice(..0), &mut three.slice_mut(..0));
    nothing.expect("nothing is scanned");
    assert_eq!(bench.driver.launches().len(), 0);
    bench.choose(Strategy::SingleCluster, SMALL);
    let clusters = bench.scanner().inclusive(&bench.stream, Operator::Sum, &four.slice(..3), &mut three);
    assert!(matches!(clusters, Err(CudaError::Config(_))), "{clusters:?}");
    assert_eq!(bench.driver.launches().len(), 0);
    bench.assert_nothing_wrong();
}

/// Numbers by their place, and a look at each chunk's memory before it is used.
struct Watched<'a> {
    driver: &'a Driver,
    /// Whether what is stored has to be what was loaded: nothing runs here, and outputs are inputs.
    is_in_place: bool,
    /// The next call of that name fails once the chunk that begins there is read.
    fails: Option<(u64, &'static CStr)>,
    /// All threads have a chunk before any goes on with its first one.
    begin: Option<Barrier>,
    wrong: Mutex<Vec<String>>,
}

impl Watched<'_> {
    fn byte(offset: u64) -> u8 {
        (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }

    fn look(&self, what: &str, offset: u64, memory: &[u8]) {
        let mut wrong = self.wrong.lock().expect("nobody panics with it");
        if self.driver.uses(memory) {
            wrong.push(format!("{what} at {offset} while a stream may use the memory"));
        }
        let is_right = |(place, &byte): (usize, &u8)| byte == Self::byte(offset + place as u64);
        if what == "written" && self.is_in_place && !memory.iter().enumerate().all(is_right) {
            wrong.push(format!("another chunk is written at {offset}"));
        }
    }
}

impl Source for Watched<'_> {
    fn read(&self, _array: usize, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        self.look("read", offset, into);
        if let Some((_, call)) = self.fails.filter(|&(at, _)| at == offset) {
            self.driver.fail_next(call);
        }
        for (place, byte) in into.iter_mut().enumerate() {
            *byte = Self::byte(offset + place as u64);
        }
        thread_local!(static HAS_BEGUN: Cell<bool> = const { Cell::new(false) });
        if let Some(begin) = self.begin.as_ref().filter(|_| !HAS_BEGUN.replace(true)) {
            begin.wait();
        }
        Ok(())
    }
}

impl Sink for Watched<'_> {
    fn write(&self, _array: usize, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.look("written", offset, bytes);
        Ok(())
    }
}

#[test]
fn chunks_wait_where_they_must_hand_on_their_states_and_leave_nothing_behind() {
    let Some(mut bench) = bench("chunks_wait_where_they_must", Architecture { major: 9, minor: 0 }) else { return };
    bench.choose(Strategy::Lookback, SMALL);
    let (scanner, driver) = (bench.scanner(), bench.driver);
    // As on several GPUs, whose streams nothing orders but events; these share a context.
    let compiler = || {
        let nvrtc = Nvrtc::shared().expect("it was there before");
        Compiler::with_cache(nvrtc, Cache::in_folder(driver.folder.path()))
    };
    let gpu = || Scanner::with_compiler(&bench.context, compiler()).expect("a scanner");
    let three: Vec<Scanner> = (0..3).map(|_| gpu().with_strategy(Strategy::Lookback).with_config(SMALL)).collect();
    let before = driver.allocations();
    let (n, chunk, stop) = (1030, 100, AtomicBool::new(false));
    let limits = Limits { chunk_elements: Some(chunk), chunks_under_way: 4, ..Limits::default() };
    let one = std::slice::from_ref(scanner);
    for (scanners, types, mode, start, is_overlapped) in [
        (one, [ElementType::U32; 2], Mode::Inclusive, 0, true),
        (one, [ElementType::U32; 2], Mode::Exclusive, 330, true),
        (one, [ElementType::U8, ElementType::U64], Mode::Inclusive, 0, false),
        (one, [ElementType::U8, ElementType::U64], Mode::Exclusive, 0, true),
        (&three[..], [ElementType::U32; 2], Mode::Inclusive, 0, true),
        (&three[..], [ElementType::U8, ElementType::U64], Mode::Exclusive, 330, true),
    ] {
        let definition = Definition::of_numbers(Operator::Sum, types[0], types[1]).expect("sums");
        let defined = definition.define().expect("a definition");
        let mut scan = ChunkedScan::on(scanners, defined, mode, n, &limits).expect("a plan");
        assert_eq!(scan.plan().devices() as usize, scanners.len());
        let is_in_place = types[0] == types[1];
        assert_eq!(scan.plan().is_in_place(), is_in_place);
        assert!(scan.device_bytes() <= limits.device_bytes);
        driver.launches();
        let threads = scan.plan().chunks_under_way() as usize;
        let begin = || (scanners.len() > 1).then(|| Barrier::new(threads));
        let watched = Watched { driver, is_in_place, fails: None, begin: begin(), wrong: Mutex::default() };
        let state = vec![7; if start == 0 { 0 } else { types[1].bytes() }];
        let start = Checkpoint { elements: start, state };
        let job = Job { start: start.clone(), is_overlapped, ..Job::new(&watched, &watched, &stop) };
        let done = scan.run(job, |_| Ok(())).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(done.elements, n);
        assert_eq!(watched.wrong.into_inner().expect("nobody panicked"), Vec::<String>::new(), "{types:?} {mode}");
        let records = driver.launches();
        let counts: Vec<u64> = records.iter().map(|record| record.launch.n).collect();
        let chunks = (start.elements..n).step_by(chunk as usize);
        let expected: Vec<u64> = chunks.map(|first| chunk.min(n - first) + mode.lag()).collect();
        assert_eq!(counts, expected, "{types:?} {mode}");
        assert_eq!(records[0].launch.initial_state.is_null(), start.elements == 0);
        for pair in records.windows(2) {
            let is_handed_on = pair[1].launch.initial_state == pair[0].launch.final_state.cast_const();
            assert_eq!(is_handed_on, pair[1].stream == pair[0].stream, "or copied to the other GPU");
            assert!(!pair[1].launch.initial_state.is_null());
        }
        let streams: HashSet<u64> = records.iter().map(|record| record.stream).collect();
        assert_eq!(streams.len(), scanners.len(), "each GPU takes chunks");
        bench.assert_nothing_wrong();
        // What fails in the middle of it ends it, and nothing is freed that is still used.
        let calls = [c"cuLaunchKernelEx", c"cuMemcpyHtoDAsync", c"cuMemcpyDtoHAsync", c"cuMemcpyPeerAsync"];
        for call in &calls[..if scanners.len() > 1 { 4 } else { 3 }] {
            let fails = Some((2 * chunk * types[0].bytes() as u64, *call));
            let watched = Watched { driver, is_in_place: false, fails, begin: begin(), wrong: Mutex::default() };
            let job = Job { is_overlapped, ..Job::new(&watched, &watched, &stop) };
            let Stopped { done, cause } = scan.run(job, |_| Ok(())).expect_err("a call fails");
            assert!(matches!(*cause, Cause::Device(CudaError::Driver { .. })), "{cause}");
            let is_possible =
                if is_overlapped { done.elements.is_multiple_of(chunk) } else { done.elements == 2 * chunk };
            assert!(is_possible, "{call:?}: {done:?}");
            assert_eq!(watched.wrong.into_inner().expect("nobody panicked"), Vec::<String>::new(), "{call:?}");
            bench.assert_nothing_wrong();
        }
        // On a thread that has no context yet.
        std::thread::scope(|scope| scope.spawn(|| drop(scan)).join()).expect("it is dropped");
        bench.assert_nothing_wrong();
        assert_eq!(driver.allocations(), before, "all is freed");
    }
    let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).expect("sums");
    let sum = sum.define().expect("a definition");
    for call in [c"cuMemAlloc", c"cuMemHostAlloc"] {
        let refused = || {
            driver.fail_next(call);
            scanner.chunked(sum, Mode::Inclusive, n, &limits).err()
        };
        assert!(refused().is_some(), "{call:?}");
        bench.assert_nothing_wrong();
        assert_eq!(driver.allocations(), before, "{call:?}: all is freed");
    }
    let nobody = ChunkedScan::on(&[], sum, Mode::Inclusive, n, &limits).err();
    assert!(matches!(nobody, Some(CudaError::Chunks(PlanError::NoDevice))), "{nobody:?}");
}
