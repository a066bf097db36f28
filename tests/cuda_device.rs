//! The CUDA device and the scanner, on a GPU. Where there is none each test prints that it skipped and passes.
//! The test binary runs alone on another machine: the kernels are embedded, NVRTC is looked for there.
#![cfg(all(feature = "cuda", feature = "lab"))]

#[path = "cuda_device/adversarial.rs"]
mod adversarial;
#[path = "cuda_device/chunked.rs"]
mod chunked;
mod common;
#[path = "common/index_order.rs"]
mod index_order;
#[path = "../examples/own_kernel/keep_odd.rs"]
mod keep_odd;
#[path = "common/recordings.rs"]
mod recordings;
#[path = "common/unkind.rs"]
mod unkind;

use bytemuck::Pod;
use common::instance;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{
    CudaContext, CudaGraph, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, LaunchConfig, PushKernelArg,
    ValidAsZeroBits,
};
use cudarc::nvrtc::Ptx;
use half::{bf16, f16};
use index_order::{Order, OrderDown, bits, floats};
use keep_odd::{BLOCK_THREADS, KEEP_ODD, OddArguments, TILE, odd};
use lookback::abi;
use lookback::cuda::compile::ENTRY_POINT;
use lookback::cuda::{Compiler, CudaError, Run, Scanner};
use lookback::element::{Defined, Definition, Element, ElementType, Instance, Operator};
use lookback::gpu::Architecture;
use lookback::kernels::own::ChainMemory;
use lookback::lab::cuda::CudaDevice;
use lookback::lab::dataset::Dataset;
use lookback::lab::device::{Device, RunSettings, TraceSettings};
use lookback::lab::trace::story::Story;
use lookback::lab::trace::{Clock, Step};
use lookback::strategy::plan::{Plan, ScanRequest};
use lookback::strategy::tuning::TuningTable;
use lookback::strategy::{Composition, ConfigError, Descriptor, Mode, Pattern, ScanConfig, Strategy, TileOrder};
use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const VERIFY: RunSettings = RunSettings { seed: 0, samples: 0, keeps_output: false };

/// One test after the other has the GPU: while one captures a stream, the driver refuses others what waits for the context.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first GPU; nothing, with a word, where something is missing. A failure is a failure.
fn device(test: &str) -> Option<CudaDevice> {
    match CudaDevice::open(0) {
        Ok(device) => Some(device),
        Err(error @ CudaError::CompilerMissing { .. }) => {
            // There is a GPU, then, and a run that wanted these tests would pass without one of them.
            assert!(std::env::var("LOOKBACK_REQUIRE_CUDA_COMPILER").as_deref() != Ok("1"), "{error}");
            println!("{test} skipped: no NVRTC ({error})");
            None
        }
        Err(error) if error.is_absence() => {
            println!("{test} skipped: no CUDA device ({error})");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Every mode that the instance has.
fn modes(instance: Instance) -> Vec<Mode> {
    let has_inverse = instance.element().is_integer() && instance.operator() == Operator::Sum;
    Mode::ALL.iter().copied().filter(|&mode| mode != Mode::InclusiveMinusInput || has_inverse).collect()
}

fn request(instance: Instance, strategy: Strategy, mode: Mode, n: u64) -> ScanRequest {
    ScanRequest::aligned(instance, strategy, mode, ScanConfig::default(), n)
}

fn check(device: &mut CudaDevice, request: &ScanRequest, failures: &mut Vec<String>) {
    match device.run(request, &VERIFY) {
        Ok(outcome) if outcome.verification.passed() && outcome.verification.compared == request.n => {}
        Ok(outcome) => failures.push(format!("{request:?}: {:?}", outcome.verification)),
        Err(error) => failures.push(format!("{request:?}: {error}")),
    }
}

fn report(failures: &[String]) {
    assert!(
        failures.is_empty(),
        "{} failure(s), the first:\n{}",
        failures.len(),
        failures[..failures.len().min(20)].join("\n")
    );
}

#[test]
fn every_strategy_is_right_on_every_instance_mode_and_placement() {
    let _turn = turn();
    let Some(mut device) = device("every_strategy_is_right_on_every_instance_mode_and_placement") else { return };
    let requests = |instance: Instance, n: u64| {
        let bytes = instance.element().bytes() as u32;
        let mut requests = Vec::new();
        for &strategy in Strategy::ALL {
            for mode in modes(instance) {
                let plain = request(instance, strategy, mode, n);
                requests.push(plain);
                requests.push(ScanRequest { in_place: true, ..plain });
                requests.push(ScanRequest {
                    input_offset: bytes,
                    output_offset: 3 * bytes % ScanRequest::OFFSETS,
                    ..plain
                });
                requests.push(ScanRequest { output_offset: 16, ..plain });
            }
        }
        requests
    };
    let sizes = [0, 1, 31, 33, 1000, 8192, 70_001];
    let all: Vec<_> =
        Instance::all().flat_map(|instance| sizes.into_iter().flat_map(move |n| requests(instance, n))).collect();
    device.compile_ahead(&all).expect("every kernel compiles");
    let mut failures = Vec::new();
    for instance in Instance::all() {
        for n in sizes {
            device.load(&Dataset::random(instance, n, 1 + n)).expect("a small dataset fits");
            for request in requests(instance, n) {
                check(&mut device, &request, &mut failures);
            }
        }
    }
    report(&failures);
}

/// Nanoseconds that readings of a multiprocessor's clock may lie off their line: more than was ever seen.
const CLOCK_ERROR: f64 = 200.0;
/// Nanoseconds that the global timer may reach one multiprocessor later than another: more than was ever seen.
const TIMER_ERROR: u64 = 500;

#[test]
fn a_scan_can_be_recorded_step_by_step() {
    let _turn = turn();
    let Some(mut device) = device("a_scan_can_be_recorded_step_by_step") else { return };
    let instance = instance(ElementType::U32, Operator::Sum);
    for (n, is_cold) in [(100_000, false), (3_000_000, true), (3_000_001, false)] {
        device.load(&Dataset::random(instance, n, 7)).unwrap();
        for strategy in recordings::recording_strategies() {
            let config = ScanConfig { vt: 16, block_threads: 256, ..ScanConfig::suggested(strategy, 4, n) };
            let request = ScanRequest::aligned(instance, strategy, Mode::Inclusive, config, n);
            let recording = device.trace(&request, &TraceSettings { seed: 0, is_cold }).unwrap();
            assert!(recording.is_right, "{strategy} {n}");
            let Clock::Nanoseconds { error, ordinary, recording: recorded } = recording.clock else {
                panic!("of a GPU")
            };
            assert!(error < CLOCK_ERROR && ordinary > 0.0 && recorded > 0.0, "{error} {ordinary} {recorded}");
            // Two multiprocessors are apart by twice that, and by what the global timer reaches one later than the other, which no
            // reading shows.
            let apart = (2.0 * error).ceil() as u64 + TIMER_ERROR;
            let story = Story::new(&recording);
            recordings::check(&recording, &story, apart);
            let rounds = recording.events.iter().filter(|event| event.step == Step::Found).count();
            if strategy != Strategy::SingleCluster {
                let expected = recordings::expected(strategy, recording.tiles as usize, 8, rounds);
                assert_eq!(recordings::count(&story), expected, "{strategy} {n}");
            }
            assert!(story.earliest_arrow <= apart, "{strategy} {n}: {} ns of {apart}", story.earliest_arrow);
        }
    }
}

#[test]
fn every_alignment_of_both_arrays_is_right() {
    let _turn = turn();
    let Some(mut device) = device("every_alignment_of_both_arrays_is_right") else { return };
    let mut failures = Vec::new();
    for element in [ElementType::U8, ElementType::U16, ElementType::U32, ElementType::F64] {
        let instance = instance(element, Operator::Max);
        let bytes = element.bytes();
        let n = 20_011;
        device.load(&Dataset::random(instance, n, 5)).expect("a small dataset fits");
        for &strategy in Strategy::ALL.iter().filter(|strategy| strategy.has_tiles()) {
            for input_offset in (0..16).step_by(bytes) {
                for output_offset in (0..16).step_by(bytes) {
                    for mode in [Mode::Inclusive, Mode::Exclusive] {
                        let request =
                            ScanRequest { input_offset, output_offset, ..request(instance, strategy, mode, n) };
                        check(&mut device, &request, &mut failures);
                        if input_offset == output_offset {
                            check(&mut device, &ScanRequest { in_place: true, ..request }, &mut failures);
                        }
                    }
                }
            }
        }
    }
    report(&failures);
}

#[test]
fn every_choice_inside_lookback_is_right() {
    let _turn = turn();
    let Some(mut device) = device("every_choice_inside_lookback_is_right") else { return };
    let mut failures = Vec::new();
    for (element, operator) in [
        (ElementType::U32, Operator::Sum),
        (ElementType::IndexInterval, Operator::Intervals),
        (ElementType::F64, Operator::Sum),
    ] {
        let instance = instance(element, operator);
        let n = 100_003;
        device.load(&Dataset::random(instance, n, 9)).expect("a small dataset fits");
        let mut configs = Vec::new();
        for &pattern in Pattern::ALL {
            for &composition in Composition::ALL {
                configs.push(ScanConfig { pattern, composition, vt: 7, block_threads: 128, ..ScanConfig::default() });
            }
        }
        configs.extend(
            Descriptor::ALL.iter().map(|&layout| ScanConfig { descriptor: Some(layout), ..ScanConfig::default() }),
        );
        configs.extend(TileOrder::ALL.iter().map(|&tile_order| ScanConfig { tile_order, ..ScanConfig::default() }));
        configs.extend([1, 5, 16, 64].map(|vt| ScanConfig { vt, ..ScanConfig::default() }));
        configs.extend([32, 1024].map(|block_threads| ScanConfig { block_threads, vt: 3, ..ScanConfig::default() }));
        let mut requests = Vec::new();
        for config in configs {
            for mode in [Mode::Inclusive, Mode::Exclusive] {
                requests.push(ScanRequest { config, ..request(instance, Strategy::Lookback, mode, n) });
            }
        }
        // Layouts that are too small for the element, shuffles across a block.
        requests.retain(|request| Plan::new(request).is_ok());
        device.compile_ahead(&requests).expect("every kernel compiles");
        for request in &requests {
            check(&mut device, request, &mut failures);
        }
    }
    report(&failures);
}

#[test]
fn launches_across_the_epochs_wrap_are_right_and_restart_at_one() {
    let _turn = turn();
    let Some(mut device) = device("launches_across_the_epochs_wrap_are_right_and_restart_at_one") else { return };
    let mut failures = Vec::new();
    for layout in [Descriptor::Packed64, Descriptor::Packed128, Descriptor::Split] {
        for &strategy in Strategy::ALL.iter().filter(|strategy| strategy.is_single_pass()) {
            let small = device_again(&mut device);
            let config = ScanConfig { descriptor: Some(layout), vt: 4, ..ScanConfig::default() };
            let instance = instance(ElementType::U32, Operator::Sum);
            let n = 300_000;
            small.load(&Dataset::random(instance, n, 3)).expect("a small dataset fits");
            let request = ScanRequest { config, ..request(instance, strategy, Mode::Inclusive, n) };
            // Descriptors of the epochs 1, 2 and 3, which the launches after the wrap must not take for theirs.
            for _ in 0..3 {
                check(small, &request, &mut failures);
            }
            assert_eq!(small.completed_epochs().expect("readable"), [3]);
            small.set_completed_epochs(abi::LOOKBACK_MAXIMUM_EPOCH - 2).expect("writable");
            let mut seen = Vec::new();
            for _ in 0..4 {
                check(small, &request, &mut failures);
                seen.extend(small.completed_epochs().expect("readable"));
            }
            assert_eq!(seen, [abi::LOOKBACK_MAXIMUM_EPOCH - 1, 0, 1, 2], "{layout} {strategy}");
        }
    }
    report(&failures);
}

/// A device whose workspace nothing has used.
fn device_again(device: &mut CudaDevice) -> &mut CudaDevice {
    *device = CudaDevice::open(0).expect("it opened before");
    device
}

#[test]
fn a_wrong_dataset_is_refused_and_timing_gives_as_many_samples_as_asked_for() {
    let _turn = turn();
    let Some(mut device) = device("a_wrong_dataset_is_refused_and_timing_gives_as_many_samples_as_asked_for") else {
        return;
    };
    let instance = instance(ElementType::U32, Operator::Sum);
    let asked = request(instance, Strategy::Lookback, Mode::Inclusive, 1 << 20);
    assert!(device.run(&asked, &VERIFY).is_err(), "nothing is loaded");
    device.load(&Dataset::random(instance, 1000, 1)).expect("a small dataset fits");
    assert!(device.run(&asked, &VERIFY).is_err(), "another n is loaded");
    device.load(&Dataset::random(instance, 1 << 20, 1)).expect("a small dataset fits");
    for in_place in [false, true] {
        let outcome = device
            .run(&ScanRequest { in_place, ..asked }, &RunSettings { samples: 11, ..VERIFY })
            .expect("the scan runs");
        assert!(outcome.verification.passed(), "{:?}", outcome.verification);
        let timing = outcome.timing.expect("samples were asked for");
        assert_eq!(timing.samples_ns.len(), 11);
        assert!(timing.median_ns > 500.0 && timing.median_ns < 1e6, "{timing:?}");
        assert!(outcome.registers.is_some_and(|registers| registers > 0));
    }
    let description = device.description();
    println!("{description:?}");
    assert_eq!(description.kind, "cuda");
}

/// The scanner with a context and a stream; nothing, with a word, where something is missing.
fn scanner(test: &str) -> Option<(Scanner, Arc<CudaContext>, Arc<CudaStream>)> {
    drop(device(test)?);
    let context = CudaContext::new(0).expect("it opened before");
    let stream = context.new_stream().expect("a stream");
    let scanner = Scanner::new(&context).expect("it opened before");
    Some((scanner, context, stream))
}

/// What is put onto the stream, behind all that is there, as a graph.
fn captured(stream: &Arc<CudaStream>, enqueue: impl FnOnce()) -> CudaGraph {
    stream.synchronize().expect("the stream");
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).expect("capture");
    enqueue();
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    stream.end_capture(flags).expect("a graph").expect("something in it")
}

fn numbers(n: usize, seed: u32) -> Vec<u32> {
    (0..n as u32).map(|i| i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 7).collect()
}

fn inclusive(input: &[u32]) -> Vec<u32> {
    input
        .iter()
        .scan(0_u32, |sum, &x| {
            *sum = sum.wrapping_add(x);
            Some(*sum)
        })
        .collect()
}

fn exclusive(input: &[u32]) -> Vec<u32> {
    std::iter::once(0).chain(inclusive(input)).collect()
}

#[test]
fn the_scanner_scans_slices_views_and_in_place() {
    let _turn = turn();
    let Some((scanner, _context, stream)) = scanner("the_scanner_scans_slices_views_and_in_place") else { return };
    let mut output: CudaSlice<u32> = stream.alloc_zeros(200_001).expect("memory");
    for n in [0, 1, 33, 8193, 200_000] {
        let host = numbers(n, 7);
        let input = stream.clone_htod(&host).expect("upload");
        scanner.inclusive(&stream, Operator::Sum, &input, &mut output.slice_mut(1..n + 1)).expect("inclusive");
        assert_eq!(stream.clone_dtoh(&output.slice(1..n + 1)).expect("download"), inclusive(&host), "n = {n}");
        scanner.exclusive(&stream, Operator::Sum, &input, &mut output.slice_mut(..n + 1)).expect("n + 1 offsets");
        assert_eq!(stream.clone_dtoh(&output.slice(..n + 1)).expect("download"), exclusive(&host), "n = {n}");
        let mut data = input;
        scanner.in_place(&stream, Operator::Sum, Mode::Exclusive, &mut data).expect("in place");
        assert_eq!(stream.clone_dtoh(&data).expect("download"), exclusive(&host)[..n], "n = {n}");
    }
    let floats = stream.clone_htod(&[0.5_f64, -2.0, 3.0]).expect("upload");
    let mut largest = stream.alloc_zeros::<f64>(3).expect("memory");
    scanner.inclusive(&stream, Operator::Max, &floats, &mut largest).expect("a maximum");
    assert_eq!(stream.clone_dtoh(&largest).expect("download"), [0.5, 0.5, 3.0]);
}

/// As `halves_are_summed_in_floats_and_rounded_once` of tests/host_scanner.rs: here a GPU's instructions convert.
#[test]
fn the_scanner_sums_halves_in_floats_and_rounds_once() {
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("the_scanner_sums_halves_in_floats_and_rounds_once") else { return };
    // Whole numbers, whose sums f32 holds exactly, up to what f16 has no number for.
    let input: Vec<f16> = numbers(100_000, 3).iter().map(|number| f16::from_f32((number >> 21) as f32 - 3.0)).collect();
    let from = stream.clone_htod(&input).expect("memory");
    let mut halves = stream.alloc_zeros::<f16>(input.len()).expect("memory");
    let mut upper = stream.alloc_zeros::<bf16>(input.len()).expect("memory");
    let mut floats = stream.alloc_zeros::<f32>(input.len()).expect("memory");
    scanner.inclusive(&stream, Operator::Sum, &from, &mut halves).expect("a scan");
    scanner.inclusive(&stream, Operator::Sum, &from, &mut upper).expect("a scan");
    scanner.inclusive(&stream, Operator::Sum, &upper, &mut floats).expect("a scan");
    let (halves, upper) = (stream.clone_dtoh(&halves).expect("a copy"), stream.clone_dtoh(&upper).expect("a copy"));
    let floats = stream.clone_dtoh(&floats).expect("a copy");
    let (mut sum, mut sum_of_upper) = (0.0_f32, 0.0_f64);
    for (i, item) in input.iter().enumerate() {
        sum += item.to_f32();
        assert_eq!((halves[i], upper[i]), (f16::from_f32(sum), bf16::from_f32(sum)), "at {i}");
        sum_of_upper += upper[i].to_f64();
        assert!((f64::from(floats[i]) - sum_of_upper).abs() <= 1e-4 * sum_of_upper.abs() + 1.0, "at {i}");
    }
    let largest = stream.clone_htod(&[f16::NAN, f16::MAX, f16::INFINITY, f16::from_f32(-1e-7)]).expect("memory");
    let mut before = stream.alloc_zeros::<f16>(4).expect("memory");
    scanner.exclusive(&stream, Operator::Max, &largest.slice(1..), &mut before.slice_mut(..3)).expect("a scan");
    let before = stream.clone_dtoh(&before).expect("a copy");
    assert_eq!(before[..3], [f16::NEG_INFINITY, f16::MAX, f16::INFINITY]);
}

#[test]
fn the_scanner_is_right_on_both_sides_of_a_change_of_strategy_and_by_a_table_of_ones_own() {
    let _turn = turn();
    let name = "the_scanner_is_right_on_both_sides_of_a_change_of_strategy_and_by_a_table_of_ones_own";
    let Some((mut scanner, _context, stream)) = scanner(name) else { return };
    let row = |rest: &str| format!("[[row]]\nelement = \"u32\"\noperator = \"sum\"\n{rest}\n");
    let rows = [row("up_to = 1000\nstrategy = \"chained\""), row("strategy = \"reduce-then-scan\"")].concat();
    let table =
        TuningTable::parse(&format!("[table]\ngpu = \"any\"\nmeasured = false\n{rows}"), "here").expect("a table");
    for is_own in [false, true] {
        for n in [1000, 1001, (1 << 13) - 1, 1 << 13, (1 << 13) + 1, 1 << 21, (1 << 21) + 1] {
            let host = numbers(n, 11);
            let input = stream.clone_htod(&host).expect("upload");
            let mut output: CudaSlice<u32> = stream.alloc_zeros(n).expect("memory");
            scanner.inclusive(&stream, Operator::Sum, &input, &mut output).expect("inclusive");
            assert!(stream.clone_dtoh(&output).expect("download") == inclusive(&host), "n = {n}, own table: {is_own}");
        }
        scanner = scanner.with_tuning(&table).expect("every GPU holds its rows");
    }
}

#[test]
fn the_scanner_refuses_what_does_not_fit_together() {
    let _turn = turn();
    let Some((scanner, _context, stream)) = scanner("the_scanner_refuses_what_does_not_fit_together") else { return };
    let four = stream.alloc_zeros::<u32>(4).expect("memory");
    let mut three = stream.alloc_zeros::<u32>(3).expect("memory");
    let mut six = stream.alloc_zeros::<u32>(6).expect("memory");
    assert!(matches!(
        scanner.inclusive(&stream, Operator::Sum, &four, &mut three),
        Err(CudaError::Config(ConfigError::LengthMismatch { input: 4, output: 3, .. }))
    ));
    assert!(matches!(
        scanner.exclusive(&stream, Operator::Sum, &four, &mut six),
        Err(CudaError::Config(ConfigError::LengthMismatch { input: 4, output: 6, .. }))
    ));
    let floats = stream.alloc_zeros::<f32>(4).expect("memory");
    let mut output = stream.alloc_zeros::<f32>(4).expect("memory");
    assert!(matches!(scanner.inclusive(&stream, Operator::Xor, &floats, &mut output), Err(CudaError::Config(_))));
}

#[test]
fn two_streams_and_two_threads_scan_at_once() {
    let _turn = turn();
    let Some((scanner, context, _)) = scanner("two_streams_and_two_threads_scan_at_once") else { return };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (scanner, context) = (&scanner, &context);
            scope.spawn(move || {
                let stream = context.new_stream().expect("a stream");
                let n = 1_000_000 + thread;
                let host = numbers(n, thread as u32);
                let input = stream.clone_htod(&host).expect("upload");
                let mut outputs: Vec<CudaSlice<u32>> =
                    (0..50).map(|_| stream.alloc_zeros(n).expect("memory")).collect();
                // No wait between: scans of four streams are on the device together.
                for output in &mut outputs {
                    scanner.inclusive(&stream, Operator::Sum, &input, output).expect("inclusive");
                }
                let expected = inclusive(&host);
                for output in &outputs {
                    assert!(stream.clone_dtoh(output).expect("download") == expected, "thread {thread}");
                }
                scanner.forget(&stream).expect("its scans are done");
            });
        }
    });
}

#[test]
fn a_captured_scan_replays_rightly_beside_launches_on_its_stream() {
    let _turn = turn();
    let Some((scanner, context, stream)) = scanner("a_captured_scan_replays_rightly_beside_launches_on_its_stream")
    else {
        return;
    };
    // SAFETY: one stream for the arrays; the other one below works on arrays of its own, and both are waited for.
    unsafe { context.disable_event_tracking() };
    let n = 500_000;
    let host = numbers(n, 3);
    let mut input = stream.clone_htod(&host).expect("upload");
    let mut output = stream.alloc_zeros::<u32>(n).expect("memory");
    let graph = captured(&stream, || {
        // The first scan of all, so that compiling, loading and the workspace happen during the capture.
        scanner.inclusive(&stream, Operator::Sum, &input, &mut output).expect("captured");
    });
    let other = context.new_stream().expect("a stream");
    let other_input = other.clone_htod(&host).expect("upload");
    let mut other_output = other.alloc_zeros::<u32>(n).expect("memory");
    other.synchronize().expect("uploaded");
    for seed in 3..8 {
        let host = numbers(n, seed);
        stream.memcpy_htod(&host, &mut input).expect("upload");
        graph.launch().expect("replay");
        for _ in 0..5 {
            scanner.inclusive(&other, Operator::Sum, &other_input, &mut other_output).expect("inclusive");
        }
        assert!(stream.clone_dtoh(&output).expect("download") == inclusive(&host), "replay with seed {seed}");
    }
    assert!(other.clone_dtoh(&other_output).expect("download") == inclusive(&host));
    drop(graph);
}

/// Launches overlap (compute capability 9.0 and later): each scan begins while the one before it ends, and reads what that
/// one wrote into the same array. With two scanners neighbours share no workspace, so that nothing but the wait for the launch
/// before orders them. About ten seconds.
#[test]
fn scans_in_place_follow_each_other_rightly_for_every_pair_of_strategies() {
    let _turn = turn();
    let Some((mut first, context, stream)) =
        scanner("scans_in_place_follow_each_other_rightly_for_every_pair_of_strategies")
    else {
        return;
    };
    // SAFETY: all arrays are used on one stream.
    unsafe { context.disable_event_tracking() };
    let mut second = Scanner::new(&context).expect("it opened before");
    // Small blocks leave room for those of the next launch.
    let config = ScanConfig { vt: 8, block_threads: 128, ..ScanConfig::default() };
    (first, second) = (first.with_config(config), second.with_config(config));
    let has_clusters = context.compute_capability().expect("it opened before").0 >= 9;
    let mut failures = Vec::new();
    let mut pairs = 0;
    // Some tiles, and more than are resident at one time.
    for (n, is_large) in [(20_011, false), (1_000_003, true)] {
        let host = numbers(n, 5);
        // Modes that differ, so that a scan that is left out or done twice shows, too.
        let after_pair = |values: &[u32]| exclusive(&inclusive(values))[..n].to_vec();
        let after_two = after_pair(&after_pair(&host));
        let after_four = after_pair(&after_pair(&after_two));
        let mut data = stream.clone_htod(&host).expect("upload");
        let takes_part = |strategy: Strategy| {
            (strategy != Strategy::SingleCluster || has_clusters) && (!is_large || strategy.has_tiles())
        };
        for &left in Strategy::ALL.iter().filter(|&&strategy| takes_part(strategy)) {
            for &right in Strategy::ALL.iter().filter(|&&strategy| takes_part(strategy)) {
                (first, second) = (first.with_strategy(left), second.with_strategy(right));
                pairs += 1;
                let chain = |data: &mut CudaSlice<u32>, pairs: usize| {
                    for _ in 0..pairs {
                        first.in_place(&stream, Operator::Sum, Mode::Inclusive, data).expect("the first of a pair");
                        second.in_place(&stream, Operator::Sum, Mode::Exclusive, data).expect("the second of a pair");
                    }
                };
                let mut check = |how: &str, data: &CudaSlice<u32>| {
                    if stream.clone_dtoh(data).expect("download") != after_four {
                        failures.push(format!("{left} before {right}, n = {n}, {how}"));
                    }
                };
                // Kernels are compiled and workspaces made here; then nothing comes between.
                chain(&mut data, 1);
                stream.memcpy_htod(&host, &mut data).expect("upload");
                chain(&mut data, 4);
                check("by the stream", &data);

                stream.memcpy_htod(&host, &mut data).expect("upload");
                let graph = captured(&stream, || chain(&mut data, 2));
                // One replay behind the other.
                graph.launch().expect("replay");
                graph.launch().expect("replay");
                check("by a graph", &data);
                drop(graph);
            }
        }
        // What captured scans worked in is kept as long as their scanner.
        first = Scanner::new(&context).expect("it opened before").with_config(config);
        second = Scanner::new(&context).expect("it opened before").with_config(config);
    }
    println!("{pairs} pairs");
    report(&failures);
}

/// The sizes that take a while and much memory: `cargo test --test cuda_device -- --ignored`.
#[test]
#[ignore = "takes tens of GiB of memory on both sides"]
fn more_than_2_to_the_32_bytes_are_right() {
    let _turn = turn();
    let Some(mut device) = device("more_than_2_to_the_32_bytes_are_right") else { return };
    let instance = instance(ElementType::U8, Operator::Sum);
    let n = (1 << 32) + 5;
    device.load(&Dataset::random(instance, n, 2)).expect("17 GiB on the device");
    let mut failures = Vec::new();
    for strategy in [Strategy::Lookback, Strategy::ReduceThenScan] {
        for mode in [Mode::Inclusive, Mode::Exclusive] {
            check(&mut device, &request(instance, strategy, mode, n), &mut failures);
        }
    }
    report(&failures);
}

#[cfg(feature = "cpu")]
#[test]
fn stress_passes_the_kernels_kills_a_mutant_and_runs_its_line_again() {
    let _turn = turn();
    use lookback::kernels::mutant::Mutant;
    use lookback::lab::stress::gpu::{GpuStressSettings, StressOutcome, reproduce, stress};
    if device("stress_passes_the_kernels_kills_a_mutant_and_runs_its_line_again").is_none() {
        return;
    }
    let settings = GpuStressSettings { runs: 4000, palette: 6, ..GpuStressSettings::default() };
    let report = stress(&settings, &mut |_| {}).expect("stress runs");
    assert!(matches!(report.verdict, StressOutcome::Survived { runs } if runs >= 4000), "{report:?}");
    assert!(report.delays > 0 && report.elements > report.runs, "{report:?}");
    // One that neither hangs nor writes where it should not: this process has other tests to run.
    let settings = GpuStressSettings {
        mutant: Some(Mutant::named("prefix_without_total").expect("it is there")),
        palette: 2,
        ..settings
    };
    let report = stress(&settings, &mut |_| {}).expect("stress runs");
    assert!(matches!(report.verdict, StressOutcome::Killed { .. }), "{report:?}");
    let again = reproduce(&report.failures[0].case, &settings, &mut |_| {}).expect("its own line");
    assert!(matches!(again.verdict, StressOutcome::Killed { .. }), "{again:?}");
}

/// Narrow and wide tensors, of one tile a column and of many, whose arrays begin with a vector and beside one.
#[test]
fn the_columns_of_a_tensor_are_scanned_each_by_itself() {
    let _turn = turn();
    if device("the_columns_of_a_tensor_are_scanned_each_by_itself").is_none() {
        return;
    }
    let context = CudaContext::new(0).expect("a GPU");
    let stream = context.new_stream().expect("a stream");
    let scanner = Scanner::new(&context).expect("a scanner");
    // To it the rows of two columns are elements.
    let ahead = Scanner::new(&context).expect("a scanner").with_strategy(Strategy::Lookahead);
    // y = a y + b, modulo 2^32.
    let recurrence = Definition::linear_recurrence::<u32>().expect("numbers").define().expect("a definition");
    for (outer, length, inner) in [
        (1, 1_000_000, 2),
        (1, 1_000_001, 2),
        (1, 300_000, 3),
        (5, 20_000, 7),
        (1, 100_000, 32),
        (3, 2_000, 33),
        (2, 10_000, 128),
        (8, 1_000, 1024),
        (1000, 5, 130),
        (1, 100, 65_536),
        (1, 2, 1_000_001),
    ] {
        let n = outer * length * inner;
        let (a, b) = (numbers(n + 1, 3), numbers(n + 1, 4));
        let (on_gpu_a, on_gpu_b) = (stream.clone_htod(&a).expect("memory"), stream.clone_htod(&b).expect("memory"));
        let mut h = stream.alloc_zeros::<u32>(n + 1).expect("memory");
        let mut ends = stream.alloc_zeros::<u64>(outer * inner).expect("memory");
        for (shift, is_reversed, is_exclusive) in
            [(0, false, false), (0, true, true), (1, true, false), (1, false, true)]
        {
            let (from_a, from_b) = (on_gpu_a.slice(shift..n + shift), on_gpu_b.slice(shift..n + shift));
            stream.memset_zeros(&mut h).expect("memory");
            let mut to = h.slice_mut(shift..n + shift);
            let scanner = if inner == 2 { &ahead } else { &scanner };
            let run = scanner.run(&stream, recurrence).input(&from_a).input(&from_b).output(&mut to);
            // Of a matrix that begins off a vector the GPU is told how many rows there are.
            let is_counted = outer == 1 && shift == 1;
            let length = if is_counted { length / 2 } else { length };
            let count = stream.clone_htod(&[(length * inner) as u64]).expect("memory");
            let run = if is_counted { run.columns(inner).count_from(&count) } else { run.axis(length, inner) };
            let run = run.initial(&[1_u32, 9]).final_state(&mut ends);
            let run = if is_reversed { run.reversed() } else { run };
            if is_exclusive { run.exclusive() } else { run.inclusive() }.expect("it is launched");
            let found = stream.clone_dtoh(&h).expect("memory");
            let found_ends = stream.clone_dtoh(&ends).expect("memory");
            let what =
                format!("({outer}, {length}, {inner}), {shift}, reversed {is_reversed}, exclusive {is_exclusive}");
            for o in 0..outer {
                let mut states = vec![9_u32; inner];
                let mut last = states.clone();
                for step in 0..length {
                    let t = if is_reversed { length - 1 - step } else { step };
                    for (j, (state, last)) in states.iter_mut().zip(&mut last).enumerate() {
                        let place = (o * length + t) * inner + j + shift;
                        let before = *state;
                        *state = a[place].wrapping_mul(*state).wrapping_add(b[place]);
                        *last = if is_exclusive { before } else { *state };
                        assert_eq!(found[place], *last, "{what} at {place}");
                    }
                }
                let ends = &found_ends[o * inner..][..inner];
                assert!(ends.iter().zip(&last).all(|(end, last)| (end >> 32) as u32 == *last), "{what}");
            }
            let behind = &found[outer * length * inner + shift..];
            assert!(behind.iter().all(|&value| value == 0), "{what}: written behind what counts");
        }
    }
}

/// Rows that fill tiles and that do not, of whole vectors and not, with as much between them or little, along rows and down columns.
#[test]
fn what_lies_between_rows_is_neither_read_nor_written() {
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("what_lies_between_rows_is_neither_read_nor_written") else { return };
    // y = a y + b, modulo 2^32.
    let recurrence = Definition::linear_recurrence::<u32>().expect("numbers").define().expect("a definition");
    for (rows, row, strides, is_down_columns) in [
        (20_000, 32, [32, 48, 64], false),
        (3_000, 1_000, [1_024, 1_000, 1_001], false),
        (100, 65_536, [65_540, 70_000, 65_536], false),
        (2, 3_000_001, [3_000_001, 3_000_008, 3_000_002], false),
        (100_000, 1, [3, 1, 2], true),
        (5_000, 128, [256, 128, 132], true),
        (3_000, 1_000, [1_001, 1_024, 4_096], true),
    ] {
        let ends = |stride: usize| (rows - 1) * stride + row;
        let [a, b] = [0, 1].map(|array| numbers(ends(strides[array]), array as u32 + 3));
        let (on_gpu_a, on_gpu_b) = (stream.clone_htod(&a).expect("memory"), stream.clone_htod(&b).expect("memory"));
        for is_reversed in [false, true] {
            let before = numbers(ends(strides[2]), 9);
            let mut h = stream.clone_htod(&before).expect("memory");
            let run = scanner.run(&stream, recurrence).input(&on_gpu_a).row_stride(strides[0]);
            let run = run.input(&on_gpu_b).row_stride(strides[1]).output(&mut h).row_stride(strides[2]);
            let run = if is_down_columns { run.columns(row) } else { run.rows(row) };
            let run = if is_reversed { run.reversed() } else { run };
            run.inclusive().expect("it is launched");
            let mut expected = before;
            let (lines, length) = if is_down_columns { (row, rows) } else { (rows, row) };
            for line in 0..lines {
                let mut state = 0_u32;
                for step in 0..length {
                    let along = if is_reversed { length - 1 - step } else { step };
                    let (r, c) = if is_down_columns { (along, line) } else { (line, along) };
                    let [in_a, in_b, in_h] = strides.map(|stride| r * stride + c);
                    state = a[in_a].wrapping_mul(state).wrapping_add(b[in_b]);
                    expected[in_h] = state;
                }
            }
            let found = stream.clone_dtoh(&h).expect("memory");
            let wrong = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            assert_eq!(wrong, None, "{rows} rows of {row}, columns {is_down_columns}, reversed {is_reversed}");
        }
    }
}

/// Of each type: an assembler that took predicates of one word for those of another had sums of f32 wrong, and of i32 right.
#[test]
fn runs_of_equal_keys_are_summed_each_by_itself() {
    let _turn = turn();
    let Some((_, context, stream)) = scanner("runs_of_equal_keys_are_summed_each_by_itself") else { return };
    let n = (1 << 20) + 77;
    let keys: Vec<u32> = numbers(n, 7).into_iter().map(|number| number >> 3 & 3).collect();
    let on_gpu = stream.clone_htod(&keys).expect("memory");
    macro_rules! check {
        ($type:ty, $element:expr) => {
            let x: Vec<$type> = (0..n).map(|i| (i % 5) as $type).collect();
            let sums = Definition::of_numbers(Operator::Sum, $element, $element).expect("sums");
            let sums = sums.define().expect("a definition");
            let (from, mut to) = (stream.clone_htod(&x).expect("memory"), stream.clone_htod(&x).expect("memory"));
            for strategy in [Strategy::Lookahead, Strategy::Lookback, Strategy::OneWave, Strategy::SingleBlock] {
                let scanner = Scanner::new(&context).expect("a scanner").with_strategy(strategy);
                let run = scanner.run(&stream, sums).input(&from).output(&mut to).by_key(&on_gpu);
                run.inclusive().expect("it is launched");
                let found = stream.clone_dtoh(&to).expect("memory");
                let mut sum: $type = 0 as $type;
                for (i, (&x, &y)) in x.iter().zip(&found).enumerate() {
                    sum = if i == 0 || keys[i] != keys[i - 1] { x } else { sum + x };
                    assert_eq!(y, sum, "{strategy}, {}, at {i}", stringify!($type));
                }
            }
        };
    }
    check!(f32, ElementType::F32);
    check!(f64, ElementType::F64);
    check!(i32, ElementType::I32);
    check!(u64, ElementType::U64);
}

/// A folder that one scanner filled serves another one that has no compiler, and soon.
#[test]
fn kernels_that_were_made_ahead_run_without_nvrtc() {
    let _turn = turn();
    let Some((_, context, stream)) = scanner("kernels_that_were_made_ahead_run_without_nvrtc") else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let host = numbers(100_000, 5);
    let (input, mut output) = (stream.clone_htod(&host).expect("memory"), stream.clone_htod(&host).expect("memory"));
    let making = Compiler::new().expect("it was found above").keeping_in(folder.path());
    let making = Scanner::with_compiler(&context, making).expect("a scanner");
    making.inclusive(&stream, Operator::Sum, &input, &mut output).expect("it is launched");
    stream.synchronize().expect("it ran");
    let start = Instant::now();
    let made = Scanner::without_nvrtc(&context, folder.path()).expect("a scanner");
    made.inclusive(&stream, Operator::Sum, &input, &mut output).expect("it is launched");
    stream.synchronize().expect("it ran");
    println!("a scanner without NVRTC and its first scan: {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
    assert_eq!(stream.clone_dtoh(&output).expect("memory"), inclusive(&host));
    let missing = made.inclusive(&stream, Operator::Max, &input, &mut output);
    assert!(matches!(missing, Err(CudaError::NotMadeAhead { .. })), "{missing:?}");
}

/// The bits of the documented order, which the CPU device has, too: in every strategy, wherever the arrays begin.
#[test]
fn reproducible_scans_have_the_bits_of_the_documented_order() {
    let _turn = turn();
    let Some((scanner, context, stream)) = scanner("reproducible_scans_have_the_bits") else { return };
    let sums = Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32).expect("sums");
    let sums = sums.define().expect("a definition");
    let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a definition");
    let n = (1 << 22) + 12_345;
    let (x, a) = (floats(n + 3, 3), floats(n + 3, 4));
    let a: Vec<f32> = a.iter().map(|a| 0.5 + a.fract() / 2.0).collect();
    let [x_on_gpu, a_on_gpu] = [&x, &a].map(|array| stream.clone_htod(array).expect("memory"));
    let mut y = stream.alloc_zeros::<f32>(n + 5).expect("memory");
    let named = [Strategy::Lookahead, Strategy::Lookback, Strategy::OneWave, Strategy::Chained, Strategy::SingleBlock];
    let named = named.map(|strategy| Scanner::new(&context).expect("a scanner").with_strategy(strategy));
    for (from, to) in [(0, 0), (1, 0), (3, 5)] {
        let expected = bits(&Order::OF_4_BYTES.scan(&x[from..][..n], 0.0, 0.0, |a, b| a + b));
        let items: Vec<[f32; 2]> = a[from..].iter().zip(&x[from..][..n]).map(|(&a, &b)| [a, b]).collect();
        let combine = |left: [f32; 2], right: [f32; 2]| [left[0] * right[0], right[0] * left[1] + right[1]];
        let states = Order::OF_4_BYTES.scan(&items, [1.0, 0.0], [1.0, 0.0], combine);
        let of_states: Vec<u32> = states.iter().map(|state| state[1].to_bits()).collect();
        for (number, scanner) in named.iter().chain([&scanner]).enumerate() {
            let (x, a) = (x_on_gpu.slice(from..from + n), a_on_gpu.slice(from..from + n));
            let mut out = y.slice_mut(to..to + n);
            let run = scanner.run(&stream, sums).input(&x).output(&mut out);
            run.reproducible().inclusive().expect("it is launched");
            assert!(bits(&stream.clone_dtoh(&out).expect("memory")) == expected, "sums, {from}, {to}, {number}");
            let run = scanner.run(&stream, recurrence).input(&a).input(&x).output(&mut out);
            run.reproducible().inclusive().expect("it is launched");
            assert!(bits(&stream.clone_dtoh(&out).expect("memory")) == of_states, "recurrence, {from}, {to}, {number}");
        }
    }
    // Down columns, of one strip and of several, of two matrices and at no vector.
    for (columns, rows, from) in [(3, 150_000, 1), (132, 9001, 0)] {
        let order = OrderDown::of(columns, [&[4], &[4]], 4, None);
        let n = 2 * rows * columns;
        let (x_there, mut out) = (x_on_gpu.slice(from..from + n), y.slice_mut(..n));
        let run = scanner.run(&stream, sums).input(&x_there).output(&mut out);
        run.axis(rows, columns).reproducible().inclusive().expect("it is launched");
        let made = bits(&stream.clone_dtoh(&out).expect("memory"));
        for first in (0..2).flat_map(|matrix| (0..columns).map(move |column| matrix * rows * columns + column)) {
            let column: Vec<f32> = (0..rows).map(|row| x[from + first + row * columns]).collect();
            let expected = bits(&order.scan(&column, 0.0, 0.0, false, |a, b| a + b));
            let is_right = expected.iter().enumerate().all(|(row, &bits)| made[first + row * columns] == bits);
            assert!(is_right, "{columns} columns, from {first} on");
        }
    }
}

/// Sums of 3, 5 and 8 words: no instruction loads 12 or 20 bytes, or what a mark makes of 32.
#[test]
fn defined_scans_of_states_of_any_size_are_right() {
    fn sums<const COUNT: usize>() -> Defined
    where
        [u32; COUNT]: Pod,
    {
        Definition::new::<[u32; COUNT]>(format!("sums of {COUNT} words"), "words")
            .declare(&format!("struct words {{ u32 word[{COUNT}]; }};"))
            .identity("{}")
            .combine(&format!("for (u32 j = 0; j < {COUNT}; ++j) left.word[j] += right.word[j];\nreturn left;"))
            .input::<u32>("x")
            .load(&format!(
                "words state;\nfor (u32 j = 0; j < {COUNT}; ++j) state.word[j] = (j + 1) * x;\nreturn state;"
            ))
            .output::<u32>("y")
            .store(&format!("y = state.word[0] ^ state.word[{COUNT} - 1];"))
            .define()
            .expect("a definition")
    }
    let _turn = turn();
    if device("defined_scans_of_states_of_any_size_are_right").is_none() {
        return;
    }
    let context = CudaContext::new(0).expect("a GPU");
    let stream = context.new_stream().expect("a stream");
    let scanner = Scanner::new(&context).expect("a scanner");
    const ROW: usize = 1000;
    let x: Vec<u32> = (0..1000 * ROW as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let (on_gpu, mut y) = (stream.clone_htod(&x).expect("memory"), stream.alloc_zeros::<u32>(x.len()).expect("memory"));
    for (count, defined) in [(3, sums::<3>()), (5, sums::<5>()), (8, sums::<8>())] {
        for columns in [x.len(), ROW] {
            let run = scanner.run(&stream, defined).input(&on_gpu).output(&mut y);
            let run = if columns == ROW { run.rows(ROW) } else { run };
            run.inclusive().expect("it is launched");
            let found = stream.clone_dtoh(&y).expect("memory");
            let mut sum = 0_u32;
            for (i, (&x, &y)) in x.iter().zip(&found).enumerate() {
                sum = x.wrapping_add(if i % columns == 0 { 0 } else { sum });
                assert_eq!(y, sum ^ sum.wrapping_mul(count), "{defined}, rows of {columns}, at {i}");
            }
        }
    }
}

/// What a run gives beside arrays is read from the launch: of every size, and in a captured graph as it was captured.
#[test]
fn what_a_run_is_given_beside_arrays_is_what_its_text_has() {
    const N: usize = 100_000;
    let _turn = turn();
    let Some((scanner, context, stream)) = scanner("what_a_run_is_given_beside_arrays") else { return };
    // SAFETY: one stream for all arrays, which is waited for before they go.
    unsafe { context.disable_event_tracking() };
    let x: Vec<u32> = (0..N as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let (on_gpu, mut kept) = (stream.clone_htod(&x).expect("memory"), stream.alloc_zeros::<u32>(N).expect("memory"));
    let mut number = stream.alloc_zeros::<u64>(1).expect("memory");
    let below = Definition::select::<u32>("return x < limit;").parameter::<u32>("limit").define().expect("a filter");
    let limits = [0, 1 << 10, 1 << 31, u32::MAX];
    let mut select = |limit: u32| {
        let run = scanner.run(&stream, below).parameter(limit).input(&on_gpu).output(&mut kept);
        run.count_into(&mut number).compact().expect("it is launched");
    };
    select(1);
    let graphs = limits.map(|limit| captured(&stream, || select(limit)));
    for (limit, graph) in limits.iter().zip(&graphs).chain(limits.iter().zip(&graphs).rev()) {
        graph.launch().expect("replay");
        let expected: Vec<u32> = x.iter().copied().filter(|x| x < limit).collect();
        assert_eq!(stream.clone_dtoh(&number).expect("memory"), [expected.len() as u64], "below {limit}");
        assert!(stream.clone_dtoh(&kept).expect("memory")[..expected.len()] == expected, "below {limit}");
    }

    let sums =
        Definition::new::<u64>("sums of terms", "u64").identity("0").combine("return left + right;").commutative();
    let sums =
        sums.parameter::<u8>("small").parameter::<u64>("factor").parameter::<i16>("half").parameter::<f32>("float_");
    let sums = sums.input::<u32>("x").load("return x * factor + small;").output::<u64>("y");
    let sums =
        sums.store("y = state + static_cast<u64>(static_cast<long long>(half) + static_cast<long long>(float_));");
    let sums = sums.define().expect("a definition");
    let mut y = stream.alloc_zeros::<u64>(N).expect("memory");
    for (small, factor, half, float) in [(200_u8, 3_u64 << 40, -7_i16, 1e6_f32), (0, u64::MAX, i16::MAX, -1.0)] {
        let run = scanner.run(&stream, sums).parameter(small).parameter(factor).parameter(half).parameter(float);
        run.input(&on_gpu).output(&mut y).inclusive().expect("it is launched");
        let mut sum = 0_u64;
        for (i, (&x, y)) in x.iter().zip(stream.clone_dtoh(&y).expect("memory")).enumerate() {
            sum = sum.wrapping_add(u64::from(x).wrapping_mul(factor)).wrapping_add(u64::from(small));
            assert_eq!(y, sum.wrapping_add((i64::from(half) + float as i64) as u64), "at {i}");
        }
    }
}

/// Borders of segments of 0 to `longest` elements, from 0 to n.
fn borders(n: usize, longest: usize, seed: u32) -> Vec<u32> {
    let mut borders = vec![0_u32];
    let mut draw = seed | 1;
    while (borders[borders.len() - 1] as usize) < n {
        draw = draw.wrapping_mul(0x9e37_79b1).rotate_left(13) ^ seed;
        let length = (draw >> 8) as usize % (longest + 1);
        borders.push((borders[borders.len() - 1] as usize + length).min(n) as u32);
    }
    borders
}

fn sums_of_u32() -> Defined {
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).expect("numbers");
    sums.define().expect("a definition")
}

/// The sums of each segment by itself.
fn sums_by_segments(x: &[u32], borders: &[u32], is_reversed: bool) -> Vec<u32> {
    let mut y = vec![0; x.len()];
    for ends in borders.windows(2) {
        let places = ends[0] as usize..ends[1] as usize;
        let mut sum = 0_u32;
        let mut add = |place: usize| {
            sum = sum.wrapping_add(x[place]);
            y[place] = sum;
        };
        if is_reversed { places.rev().for_each(&mut add) } else { places.for_each(&mut add) }
    }
    y
}

#[test]
fn segments_between_offsets_are_scanned_each_by_itself_and_wrong_offsets_are_found() {
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("segments_between_offsets") else { return };
    for n in [1, 1000, 100_000, 3_000_001] {
        let x = numbers(n, 7);
        let (on_gpu, mut y) = (stream.clone_htod(&x).expect("memory"), stream.alloc_zeros::<u32>(n).expect("memory"));
        for longest in [3, 200, 50_000] {
            let borders = borders(n, longest, 5);
            let offsets = stream.clone_htod(&borders).expect("memory");
            for is_reversed in [false, true] {
                let run = scanner.run(&stream, sums_of_u32()).input(&on_gpu).output(&mut y).offsets(&offsets);
                let run = if is_reversed { run.reversed() } else { run };
                run.inclusive().expect("it is launched");
                scanner.check(&stream).expect("right offsets");
                let found = stream.clone_dtoh(&y).expect("memory");
                assert!(found == sums_by_segments(&x, &borders, is_reversed), "{n}, {longest}, {is_reversed}");
            }
        }
        let wrong = stream.clone_htod(&[0, 1, 0, n as u32]).expect("memory");
        let run = scanner.run(&stream, sums_of_u32()).input(&on_gpu).output(&mut y).offsets(&wrong);
        run.inclusive().expect("it is launched");
        let found = scanner.check(&stream).expect_err("the offsets fall");
        assert!(found.to_string().contains("offsets of segment"), "{found}");
        scanner.check(&stream).expect("it was said once");
    }
}

/// The graph is made once; numbers, borders and the count of elements are others at each replay.
#[test]
fn a_thousand_replays_over_other_contents_of_another_length_are_right() {
    const N: usize = 60_000;
    let _turn = turn();
    let Some((_, context, stream)) = scanner("a_thousand_replays") else { return };
    // SAFETY: one stream for all arrays, which is waited for before they go.
    unsafe { context.disable_event_tracking() };
    let strategies = [Strategy::Lookahead, Strategy::Lookback, Strategy::OneWave, Strategy::Chained];
    for (strategy, replays) in strategies.into_iter().zip([1000, 200, 200, 200]) {
        for has_offsets in [false, true] {
            let scanner = Scanner::new(&context).expect("a scanner").with_strategy(strategy);
            let all = numbers(2 * N, 11);
            let mut x = stream.alloc_zeros::<u32>(N).expect("memory");
            let mut y = stream.alloc_zeros::<u32>(N).expect("memory");
            let mut count = stream.alloc_zeros::<u64>(1).expect("memory");
            let segments = 3000;
            let mut offsets = stream.alloc_zeros::<u32>(segments + 1).expect("memory");
            let warm = |run: Run<'_>| run.warm_up(Mode::Inclusive).map(|_| ());
            warm(scanner.run(&stream, sums_of_u32()).input(&x).output(&mut y).count_from(&count)).expect("it is warm");
            let graph = captured(&stream, || {
                let run = scanner.run(&stream, sums_of_u32()).input(&x).output(&mut y).count_from(&count);
                let run = if has_offsets { run.offsets(&offsets) } else { run };
                run.inclusive().expect("it is captured");
            });
            for replay in 0..replays {
                let n = (replay * 7919 + replay / 3) % (N + 1);
                let contents = &all[replay % N..][..N];
                let mut borders = borders(n, 100, replay as u32);
                // As many as the graph was made for.
                borders.truncate(segments);
                borders.resize(segments + 1, n as u32);
                stream.memcpy_htod(contents, &mut x).expect("memory");
                stream.memcpy_htod(&[n as u64], &mut count).expect("memory");
                stream.memcpy_htod(&borders, &mut offsets).expect("memory");
                stream.memset_zeros(&mut y).expect("memory");
                graph.launch().expect("replay");
                let found = stream.clone_dtoh(&y).expect("memory");
                let one = [0, n as u32];
                let borders = if has_offsets { &borders[..] } else { &one[..] };
                assert!(found[..n] == sums_by_segments(&contents[..n], borders, false), "{strategy}, replay {replay}");
                assert!(found[n..].iter().all(|&y| y == 0), "{strategy}, replay {replay}: written behind what counts");
            }
            scanner.check(&stream).expect("nothing is wrong");
            drop(graph);
        }
    }
}

/// Keys with two arrays that go with them, of several tiles, against a stable sort.
fn check_sort<K: Pod + DeviceRepr + ValidAsZeroBits + Element>(
    name: &str,
    (scanner, stream): (&Scanner, &Arc<CudaStream>),
    is_descending: bool,
    key_of: impl Fn(u32) -> K,
    order: impl Fn(&K, &K) -> Ordering,
) {
    for n in [1, 4097, 300_007, 2_000_003] {
        let keys: Vec<K> = numbers(n, 3).into_iter().map(&key_of).collect();
        let (places, wide): (Vec<u32>, Vec<u64>) = (0..n as u32).map(|place| (place, u64::from(place) << 31)).unzip();
        let sort = Definition::sort::<K>().expect("a key").with::<u32>("place").with::<u64>("wide");
        let sort = if is_descending { sort.descending() } else { sort };
        let (on_gpu, places, wide) = (stream.clone_htod(&keys), stream.clone_htod(&places), stream.clone_htod(&wide));
        let (on_gpu, places, wide) = (on_gpu.expect("memory"), places.expect("memory"), wide.expect("memory"));
        let mut sorted = stream.alloc_zeros::<K>(n).expect("memory");
        let mut sorted_places = stream.alloc_zeros::<u32>(n).expect("memory");
        let mut sorted_wide = stream.alloc_zeros::<u64>(n).expect("memory");
        let run = scanner.run(stream, sort.define().expect("a sort")).input(&on_gpu).input(&places).input(&wide);
        run.output(&mut sorted).output(&mut sorted_places).output(&mut sorted_wide).sort().expect("it is launched");
        let mut expected: Vec<u32> = (0..n as u32).collect();
        expected.sort_by(|&a, &b| {
            let order = order(&keys[a as usize], &keys[b as usize]);
            if is_descending { order.reverse() } else { order }
        });
        let expected_keys: Vec<K> = expected.iter().map(|&place| keys[place as usize]).collect();
        let found = stream.clone_dtoh(&sorted).expect("memory");
        let bytes = |keys: &[K]| bytemuck::cast_slice::<K, u8>(keys).to_vec();
        assert!(bytes(&found) == bytes(&expected_keys), "{name}, {n}: keys");
        assert!(stream.clone_dtoh(&sorted_places).expect("memory") == expected, "{name}, {n}: stability");
        let found = stream.clone_dtoh(&sorted_wide).expect("memory");
        assert!(
            found.iter().zip(&expected).all(|(&wide, &place)| wide == u64::from(place) << 31),
            "{name}, {n}: values"
        );
    }
}

#[test]
fn sorts_of_keys_with_others_are_stable_and_right() {
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("sorts_of_keys_with_others") else { return };
    let with = (&scanner, &stream);
    check_sort("u8", with, false, |bits| bits as u8, u8::cmp);
    check_sort("i16 descending", with, true, |bits| bits as i16, i16::cmp);
    check_sort("u32", with, false, |bits| bits, u32::cmp);
    check_sort("u32 of three values", with, false, |bits| bits % 3 * 0x5555_5555, u32::cmp);
    check_sort("f32", with, false, f32::from_bits, f32::total_cmp);
    check_sort("i64 descending", with, true, |bits| i64::from(bits as i32) << 20, i64::cmp);
}

/// The graph is made once; keys and their number are others at each replay.
#[test]
fn a_captured_sort_replays_rightly_over_other_keys_of_another_number() {
    const N: usize = 60_000;
    let _turn = turn();
    let Some((scanner, context, stream)) = scanner("a_captured_sort") else { return };
    // SAFETY: one stream for all arrays, which is waited for before they go.
    unsafe { context.disable_event_tracking() };
    let sort = Definition::sort::<u32>().expect("a key").define().expect("a sort");
    let all = numbers(2 * N, 11);
    let mut x = stream.alloc_zeros::<u32>(N).expect("memory");
    let mut y = stream.alloc_zeros::<u32>(N).expect("memory");
    let mut count = stream.alloc_zeros::<u64>(1).expect("memory");
    let run = scanner.run(&stream, sort).input(&x).output(&mut y).count_from(&count);
    run.warm_up(Mode::Inclusive).expect("it is warm");
    let graph = captured(&stream, || {
        scanner.run(&stream, sort).input(&x).output(&mut y).count_from(&count).sort().expect("it is captured");
    });
    for replay in 0..300 {
        let n = (replay * 7919 + replay / 3) % (N + 1);
        let contents = &all[replay % N..][..N];
        stream.memcpy_htod(contents, &mut x).expect("memory");
        stream.memcpy_htod(&[n as u64], &mut count).expect("memory");
        stream.memset_zeros(&mut y).expect("memory");
        graph.launch().expect("replay");
        let found = stream.clone_dtoh(&y).expect("memory");
        let mut expected = contents[..n].to_vec();
        expected.sort_unstable();
        assert!(found[..n] == expected, "replay {replay} of {n} keys");
        assert!(found[n..].iter().all(|&y| y == 0), "replay {replay}: written behind what counts");
    }
}

/// How many runs there are, how long they are and where they begin is in the device's memory alone, and other at each replay.
#[test]
fn a_captured_chain_encodes_runs_sums_their_lengths_and_expands_them_again() {
    const N: usize = 60_000;
    let _turn = turn();
    let Some((scanner, context, stream)) = scanner("a_captured_chain") else { return };
    // SAFETY: one stream for all arrays, which is waited for before they go.
    unsafe { context.disable_event_tracking() };
    let encode = Definition::run_length_encode::<u32>().expect("numbers").define().expect("runs");
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U64, ElementType::U64).expect("numbers");
    let sums = sums.define().expect("sums");
    let repeated = Definition::repeated::<u32>().define().expect("an expansion");
    let mut x = stream.alloc_zeros::<u32>(N).expect("memory");
    let (mut values, mut again) =
        (stream.alloc_zeros::<u32>(N).expect("memory"), stream.alloc_zeros::<u32>(N).expect("memory"));
    let mut lengths = stream.alloc_zeros::<u64>(N).expect("memory");
    let mut offsets = stream.alloc_zeros::<u64>(N + 1).expect("memory");
    let mut runs = stream.alloc_zeros::<u64>(1).expect("memory");
    let mut chain = || {
        let run = scanner.run(&stream, encode).input(&x).output(&mut values).output(&mut lengths);
        run.count_into(&mut runs).compact().expect("runs");
        let mut ends = offsets.slice_mut(1..);
        let run = scanner.run(&stream, sums).input(&lengths).output(&mut ends).count_from(&runs);
        run.inclusive().expect("sums");
        let run = scanner.run(&stream, repeated).offsets(&offsets).input(&values).output(&mut again);
        run.count_from(&runs).expand().expect("places");
    };
    // Compiles and allocates what is captured.
    chain();
    let graph = captured(&stream, &mut chain);
    for replay in 1..=100 {
        // From runs of one to a single one.
        let contents: Vec<u32> = (0..N).map(|i| ((i + replay) >> (replay % 17)) as u32).collect();
        stream.memcpy_htod(&contents, &mut x).expect("memory");
        stream.memset_zeros(&mut again).expect("memory");
        graph.launch().expect("replay");
        assert!(stream.clone_dtoh(&again).expect("memory") == contents, "replay {replay}");
        let count = contents.chunk_by(|a, b| a == b).count() as u64;
        assert_eq!(stream.clone_dtoh(&runs).expect("memory"), [count], "replay {replay}");
        scanner.check(&stream).expect("counts and offsets are right");
    }
}

/// They are stored by their counts, in vectors and at their ends.
#[test]
fn sorts_of_bytes_alone_are_right_at_any_address() {
    const ROOM: usize = 32;
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("sorts_of_bytes_alone") else { return };
    let sort = Definition::sort::<u8>().expect("a key").descending().define().expect("a sort");
    for n in [1, 15, 16, 17, 300_007, 3_000_000] {
        let keys: Vec<u8> = numbers(n, 5).into_iter().map(|bits| bits as u8).collect();
        let on_gpu = stream.clone_htod(&keys).expect("memory");
        for (offset, counted) in [(0, n), (1, n), (7, n / 2), (15, n), (16, n)] {
            let count = stream.clone_htod(&[counted as u64]).expect("memory");
            let mut sorted = stream.clone_htod(&vec![0xaa_u8; n + ROOM]).expect("memory");
            let mut output = sorted.slice_mut(offset..offset + n);
            let run = scanner.run(&stream, sort).input(&on_gpu).output(&mut output).count_from(&count);
            run.sort().expect("it is launched");
            let mut expected = vec![0xaa_u8; n + ROOM];
            expected[offset..offset + counted].copy_from_slice(&keys[..counted]);
            expected[offset..offset + counted].sort_unstable_by(|a, b| b.cmp(a));
            assert!(stream.clone_dtoh(&sorted).expect("memory") == expected, "{counted} of {n} at {offset}");
        }
    }
}

#[test]
fn histograms_of_bytes_are_right_whatever_they_are() {
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("histograms") else { return };
    for n in [1, 5000, 1_000_003, 50_000_000] {
        for is_skewed in [false, true] {
            let bytes: Vec<u8> = numbers(n, 5).into_iter().map(|bits| if is_skewed { 7 } else { bits as u8 }).collect();
            let mut counts = vec![0_u32; 256];
            bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
            let on_gpu = stream.clone_htod(&bytes).expect("memory");
            for is_cumulated in [false, true] {
                let histogram = Definition::byte_histogram::<u8, u32>().expect("bytes");
                let histogram = if is_cumulated { histogram.cumulated() } else { histogram };
                let mut found = stream.alloc_zeros::<u32>(256).expect("memory");
                let run = scanner.run(&stream, histogram.define().expect("a histogram")).input(&on_gpu);
                run.output(&mut found).histogram().expect("it is launched");
                let expected = if is_cumulated { inclusive(&counts) } else { counts.clone() };
                assert!(stream.clone_dtoh(&found).expect("memory") == expected, "{n}, {is_skewed}, {is_cumulated}");
            }
        }
    }
}

// SAFETY: it lies as the kernel's structure does, and its addresses are of the device.
unsafe impl DeviceRepr for OddArguments {}

#[test]
fn blocks_of_a_kernel_of_ones_own_learn_what_stands_left_of_them() {
    let _turn = turn();
    let Some((_, context, stream)) = scanner("a kernel of one's own") else { return };
    let (major, minor) = context.compute_capability().expect("a device");
    let compiler = Compiler::new().expect("it opened before");
    let kernel = compiler.own_kernel(&KEEP_ODD, Architecture { major, minor }).expect("it compiles");
    let module = context.load_module(Ptx::from_binary(kernel.cubin)).expect("a module");
    let function = module.load_function(ENTRY_POINT).expect("a kernel");
    for n in [1_usize, 1023, 1025, 100_000, 50_000_000] {
        let blocks = n.div_ceil(TILE) as u64;
        let input = numbers(n, 9);
        let expected = odd(&input);
        let input = stream.clone_htod(&input).expect("memory");
        let bytes = ChainMemory::bytes(4, blocks) as usize;
        let mut workspace = stream.alloc_zeros::<u8>(bytes).expect("memory");
        for _ in 0..20 {
            let (mut output, mut kept) =
                (stream.alloc_zeros::<u32>(n).expect("memory"), stream.clone_htod(&[0]).expect("memory"));
            let arguments = OddArguments {
                input: input.device_ptr(&stream).0,
                output: output.device_ptr_mut(&stream).0,
                kept: kept.device_ptr_mut(&stream).0,
                n: n as u64,
                chain: ChainMemory::at(workspace.device_ptr_mut(&stream).0, blocks),
            };
            let config =
                LaunchConfig { grid_dim: (blocks as u32, 1, 1), block_dim: (BLOCK_THREADS, 1, 1), shared_mem_bytes: 0 };
            // SAFETY: the arrays are as large as the kernel is told, and are waited for below.
            unsafe { stream.launch_builder(&function).arg(&arguments).launch(config) }.expect("a launch");
            let count = stream.clone_dtoh(&kept).expect("memory")[0_usize] as usize;
            assert_eq!(count, expected.len(), "{n}");
            assert!(stream.clone_dtoh(&output.slice(..count.max(1))).expect("memory")[..count] == expected, "{n}");
        }
    }
}
