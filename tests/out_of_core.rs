//! Scans in chunks: whatever the chunks, the result is that of the whole array; what is interrupted, killed or fails leaves a valid
//! prefix, from which it goes on. On the CPU device.
//!
//! Kernels of definitions need a C++ compiler when they run, as do those of `tests/defined.rs`; without it tests print that they skipped.
#![cfg(all(feature = "cpu", feature = "lab"))]

#[cfg(all(feature = "cli", unix))]
#[path = "out_of_core/program.rs"]
mod program;

use bytemuck::Pod;
use lookback::element::monoid::{Bicyclic, BicyclicPair, Monoid};
use lookback::element::{Defined, Definition, ElementType, Operator};
use lookback::lab::cpu_device::CpuSettings;
use lookback::lab::cpu_kernels::NoKernel;
use lookback::lab::device::DeviceError;
use lookback::lab::host_chunked::HostChunkedScan;
use lookback::lab::host_scanner::HostScanner;
use lookback::out_of_core::pipeline::copy;
use lookback::out_of_core::{
    Cause, Checkpoint, ChunkPlan, HostArrays, Job, Limits, NoFile, PlanError, Sink, Source, Stopped,
};
use lookback::run::AnyScanner;
use lookback::strategy::{Mode, ScanConfig, Strategy};
use proptest::prelude::*;
use proptest::strategy::Strategy as Drawn;
use std::fmt::Debug;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Small tiles, so that a chunk has several, and every access is looked at.
fn scanner() -> HostScanner {
    HostScanner::new(CpuSettings { check_bounds: true, ..CpuSettings::default() })
        .with_strategy(Strategy::Lookback)
        .with_config(ScanConfig { vt: 2, block_threads: 32, ..ScanConfig::default() })
}

/// Whether kernels of definitions can be compiled here.
pub fn has_compiler() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let mut y = [0_u32];
        match scanner().run(sums()).input(&[7_u32]).output(&mut y).inclusive() {
            Ok(()) => true,
            Err(error @ DeviceError::NoKernel(NoKernel::Compiler(_))) => {
                assert!(std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"), "{error}");
                println!("skipped: {error}");
                false
            }
            Err(error) => panic!("{error}"),
        }
    })
}

fn sums() -> Defined {
    of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)
}

fn of_numbers(operator: Operator, from: ElementType, to: ElementType) -> Defined {
    Definition::of_numbers(operator, from, to).expect("it is defined").define().expect("a definition")
}

/// Chunks of so many elements, so many of them under way.
fn limits(chunk_elements: u64, chunks_under_way: u32) -> Limits {
    Limits { chunk_elements: Some(chunk_elements), chunks_under_way, ..Limits::default() }
}

/// On two devices, of which one does all where one chunk is under way.
fn chunked(defined: Defined, mode: Mode, n: usize, limits: &Limits) -> HostChunkedScan {
    HostChunkedScan::on(vec![scanner(), scanner()], defined, mode, n as u64, limits).expect("a plan")
}

/// The states at each element, or before it.
fn states<S: Copy>(mode: Mode, identity: S, elements: impl Iterator<Item = S>, combine: impl Fn(S, S) -> S) -> Vec<S> {
    let mut state = identity;
    elements
        .map(|element| {
            let before = state;
            state = combine(state, element);
            if mode == Mode::Exclusive { before } else { state }
        })
        .collect()
}

/// Scans one array, and compares.
fn agrees<T, U>(defined: Defined, mode: Mode, limits: &Limits, x: &[T], expected: &[U]) -> Result<(), TestCaseError>
where
    T: lookback::element::ArrayElement,
    U: lookback::element::ArrayElement + PartialEq + Debug,
{
    let mut y = vec![U::zeroed(); x.len()];
    let mut scan = chunked(defined, mode, x.len(), limits);
    scan.scan(HostArrays::new().input(x).output(&mut y)).map_err(|stopped| TestCaseError::fail(stopped.to_string()))?;
    prop_assert_eq!(&y, expected);
    Ok(())
}

fn mode() -> impl Drawn<Value = Mode> {
    prop_oneof![Just(Mode::Inclusive), Just(Mode::Exclusive)]
}

/// n and a chunk, one of them next to a multiple of the other, or anything.
fn n_and_chunk() -> impl Drawn<Value = (usize, u64)> {
    let near = (1_u64..150, 0_u64..4, -1_i64..=1)
        .prop_map(|(chunk, chunks, change)| ((chunk * chunks) as i64 + change, chunk))
        .prop_map(|(n, chunk)| (n.max(0) as usize, chunk));
    prop_oneof![near, (0_usize..400, 1_u64..500).prop_filter("few chunks", |(n, chunk)| *n as u64 / chunk < 40)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn chunks_are_scanned_as_the_whole_array_is(
        (n, chunk) in n_and_chunk(), under_way in 1_u32..6, mode in mode(), seed: u32,
    ) {
        if !has_compiler() {
            return Ok(());
        }
        let limits = limits(chunk, under_way);
        let drawn = |i: usize| (i as u32 ^ seed).wrapping_mul(2_654_435_761) >> 7;
        let x: Vec<u32> = (0..n).map(drawn).collect();
        let expected = states(mode, 0, x.iter().copied(), u32::wrapping_add);
        agrees(sums(), mode, &limits, &x, &expected)?;
        let x: Vec<u8> = (0..n).map(|i| drawn(i) as u8).collect();
        let expected = states(mode, 0, x.iter().map(|&x| u64::from(x)), u64::wrapping_add);
        agrees(of_numbers(Operator::Sum, ElementType::U8, ElementType::U64), mode, &limits, &x, &expected)?;
        // Not commutative.
        let x: Vec<BicyclicPair> = (0..n).map(|i| bytemuck::cast([drawn(i) & 3, drawn(i) >> 2 & 3])).collect();
        let expected = states(mode, Bicyclic::IDENTITY, x.iter().copied(), Bicyclic::combine);
        agrees(of_numbers(Operator::Bicyclic, ElementType::BicyclicPair, ElementType::BicyclicPair), mode, &limits, &x, &expected)?;
        // Of two arrays, with a state that is not an element.
        let (a, b): (Vec<u32>, Vec<u32>) = ((0..n).map(drawn).collect(), (0..n).map(|i| drawn(i + n)).collect());
        let maps = a.iter().zip(&b).map(|(&a, &b)| [a, b]);
        let compose = |f: [u32; 2], g: [u32; 2]| [f[0].wrapping_mul(g[0]), g[0].wrapping_mul(f[1]).wrapping_add(g[1])];
        let expected: Vec<u32> = states(mode, [1, 0], maps, compose).into_iter().map(|map| map[1]).collect();
        let mut h = vec![0; n];
        let recurrence = Definition::linear_recurrence::<u32>().expect("numbers").define().expect("a definition");
        let scanned = chunked(recurrence, mode, n, &limits).scan(HostArrays::new().input(&a).input(&b).output(&mut h));
        prop_assert!(scanned.is_ok(), "{:?}", scanned);
        prop_assert_eq!(h, expected);
    }
}

const N: usize = 1000;
const CHUNK: u64 = 64;
const CHUNKS: u64 = (N as u64).div_ceil(CHUNK);

fn numbers() -> Vec<u32> {
    (0..N as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect()
}

/// Asks for the end when a chunk is read that begins at this element.
struct Stopping<'a, 'b> {
    arrays: &'a HostArrays<'b>,
    stop: &'a AtomicBool,
    at: u64,
}

impl Source for Stopping<'_, '_> {
    fn read(&self, array: usize, offset: u64, into: &mut [u8]) -> io::Result<()> {
        if offset >= 4 * self.at {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.arrays.read(array, offset, into)
    }
}

#[test]
fn what_was_stopped_anywhere_has_a_valid_prefix_and_goes_on_from_it() {
    if !has_compiler() {
        return;
    }
    let x = numbers();
    let n = N as u64;
    for mode in [Mode::Inclusive, Mode::Exclusive] {
        let expected = states(mode, 0, x.iter().copied(), u32::wrapping_add);
        let mut scan = chunked(sums(), mode, N, &limits(CHUNK, 3));
        for chunk in 0..CHUNKS {
            let mut y = vec![0; N];
            let stop = AtomicBool::new(false);
            let arrays = HostArrays::new().input(&x).output(&mut y);
            let stopping = Stopping { arrays: &arrays, stop: &stop, at: chunk * CHUNK };
            let done = scan.run(Job::new(&stopping, &arrays, &stop), |_| Ok(())).expect("it is stopped");
            // Those under way are ended, and no more are begun.
            let possible = ((chunk + 1) * CHUNK).min(n)..=((chunk + 3) * CHUNK).min(n);
            assert!(possible.contains(&done.elements), "{done:?} at chunk {chunk}");
            drop(arrays);
            assert_eq!(y[..done.elements as usize], expected[..done.elements as usize], "{mode}, {chunk}");
            stop.store(false, Ordering::Relaxed);
            let arrays = HostArrays::new().input(&x).output(&mut y);
            let job = Job { start: done, ..Job::new(&arrays, &arrays, &stop) };
            assert_eq!(scan.run(job, |_| Ok(())).expect("it goes on").elements, n);
            drop(arrays);
            assert_eq!(y, expected, "{mode}, {chunk}");
        }
        let stop = AtomicBool::new(true);
        let none = scan.run(Job::new(&NoFile, &NoFile, &stop), |_| Ok(())).expect("it is stopped");
        assert_eq!(none, Checkpoint::default());
    }
}

#[test]
fn a_scan_goes_on_with_chunks_of_another_size() {
    if !has_compiler() {
        return;
    }
    let x = numbers();
    let expected = states(Mode::Exclusive, 0, x.iter().copied(), u32::wrapping_add);
    let mut y = vec![0; N];
    let stop = AtomicBool::new(false);
    let arrays = HostArrays::new().input(&x).output(&mut y);
    let stopping = Stopping { arrays: &arrays, stop: &stop, at: 300 };
    let job = Job { is_overlapped: false, ..Job::new(&stopping, &arrays, &stop) };
    let done = chunked(sums(), Mode::Exclusive, N, &limits(64, 3)).run(job, |_| Ok(())).expect("it is stopped");
    assert_eq!(done.elements, 384);
    stop.store(false, Ordering::Relaxed);
    let job = Job { start: done, ..Job::new(&arrays, &arrays, &stop) };
    chunked(sums(), Mode::Exclusive, N, &limits(77, 2)).run(job, |_| Ok(())).expect("it goes on");
    drop(arrays);
    assert_eq!(y, expected);
}

/// Fails, or panics, where a chunk begins at this element.
struct Faulty<'a, 'b> {
    arrays: &'a HostArrays<'b>,
    fails_at: u64,
    panics: bool,
}

impl Faulty<'_, '_> {
    fn check(&self, offset: u64) -> io::Result<()> {
        if offset != 4 * self.fails_at {
            return Ok(());
        }
        // Meanwhile others get to where they wait for this one.
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(!self.panics, "a panic on purpose");
        Err(io::ErrorKind::StorageFull.into())
    }
}

impl Source for Faulty<'_, '_> {
    fn read(&self, array: usize, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.check(offset)?;
        self.arrays.read(array, offset, into)
    }
}

impl Sink for Faulty<'_, '_> {
    fn write(&self, array: usize, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check(offset)?;
        self.arrays.write(array, offset, bytes)
    }
}

#[test]
fn what_fails_anywhere_says_up_to_where_outputs_are_valid() {
    if !has_compiler() {
        return;
    }
    let x = numbers();
    let expected = states(Mode::Inclusive, 0, x.iter().copied(), u32::wrapping_add);
    let stop = AtomicBool::new(false);
    for (under_way, chunk) in
        [1, 3, 5].into_iter().flat_map(|under_way| (0..CHUNKS).map(move |chunk| (under_way, chunk)))
    {
        let mut scan = chunked(sums(), Mode::Inclusive, N, &limits(CHUNK, under_way));
        for fails_to_read in [true, false] {
            let mut y = vec![0; N];
            let arrays = HostArrays::new().input(&x).output(&mut y);
            let faulty = Faulty { arrays: &arrays, fails_at: chunk * CHUNK, panics: false };
            let job = match fails_to_read {
                true => Job::new(&faulty, &arrays, &stop),
                false => Job::new(&arrays, &faulty, &stop),
            };
            let mut told = 0;
            let Stopped { done, cause } = scan
                .run(job, |done| {
                    told = done.elements;
                    Ok(())
                })
                .expect_err("it fails");
            assert!(matches!((fails_to_read, &*cause), (true, Cause::Read(_)) | (false, Cause::Write(_))), "{cause}");
            // All chunks before it are ended, and none behind counts.
            assert_eq!((done.elements, told), (chunk * CHUNK, chunk * CHUNK));
            drop(arrays);
            assert_eq!(y[..told as usize], expected[..told as usize]);
        }
    }
    let mut y = vec![0; N];
    let arrays = HostArrays::new().input(&x).output(&mut y);
    let mut scan = chunked(sums(), Mode::Inclusive, N, &limits(CHUNK, 3));
    let full = |done: &Checkpoint| if done.elements < 200 { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) };
    let stopped = scan.run(Job::new(&arrays, &arrays, &stop), full).expect_err("it cannot be kept");
    assert!(matches!(*stopped.cause, Cause::Keep(_)) && stopped.done.elements >= 200, "{stopped}");
}

#[test]
fn a_panic_of_a_source_is_passed_on_and_nobody_waits_for_its_chunk() {
    if !has_compiler() {
        return;
    }
    let x = numbers();
    let mut y = vec![0; N];
    let arrays = HostArrays::new().input(&x).output(&mut y);
    let faulty = Faulty { arrays: &arrays, fails_at: 5 * CHUNK, panics: true };
    let stop = AtomicBool::new(false);
    let mut scan = chunked(sums(), Mode::Inclusive, N, &limits(CHUNK, 4));
    let run = std::panic::AssertUnwindSafe(|| scan.run(Job::new(&faulty, &arrays, &stop), |_| Ok(())));
    assert!(std::panic::catch_unwind(run).is_err());
}

#[test]
fn slices_are_read_and_written_wherever_chunks_lie() {
    let x: Vec<u32> = (0..100_000).collect();
    let stop = AtomicBool::new(false);
    // Outputs are written in pieces of 64 KiB.
    for chunk in [1 << 14, (1 << 14) - 1, (1 << 14) + 1, 5000, 40_000, 100_000] {
        let mut y = vec![0; x.len()];
        let plan = ChunkPlan::new(sums(), Mode::Inclusive, x.len() as u64, &limits(chunk, 3), 1, 0).expect("a plan");
        let arrays = HostArrays::new().input(&x).output(&mut y);
        let done = copy(&plan, Job::new(&arrays, &arrays, &stop)).expect("it is copied");
        assert_eq!(done.elements, x.len() as u64);
        assert_eq!(arrays.write(0, 399_997, &[0; 4]).expect_err("behind the end").kind(), io::ErrorKind::WriteZero);
        assert_eq!(
            arrays.read(0, 399_997, &mut [0; 4]).expect_err("behind the end").kind(),
            io::ErrorKind::UnexpectedEof
        );
        drop(arrays);
        assert!(x == y, "chunks of {chunk}");
    }
}

/// Counts what is read at one time.
struct Counting(AtomicU64, AtomicU64);

impl Source for Counting {
    fn read(&self, _array: usize, _offset: u64, _into: &mut [u8]) -> io::Result<()> {
        let now = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.1.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(std::time::Duration::from_millis(20));
        self.0.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn chunks_are_under_way_at_the_same_time_unless_one_goes_after_the_other() {
    if !has_compiler() {
        return;
    }
    let stop = AtomicBool::new(false);
    let mut scan = chunked(sums(), Mode::Inclusive, N, &limits(CHUNK, 4));
    for (is_overlapped, at_once) in [(true, 2..=4), (false, 1..=1)] {
        let source = Counting(AtomicU64::new(0), AtomicU64::new(0));
        scan.run(Job { is_overlapped, ..Job::new(&source, &NoFile, &stop) }, |_| Ok(())).expect("it is scanned");
        assert!(at_once.contains(&source.1.load(Ordering::SeqCst)), "{:?}", source.1);
    }
}

fn refusal<T: Pod + lookback::element::ArrayElement>(x: &[T], y: &mut [u32], n: usize) -> PlanError {
    let scanned = chunked(sums(), Mode::Inclusive, n, &Limits::default()).scan(HostArrays::new().input(x).output(y));
    match *scanned.expect_err("it is refused").cause {
        Cause::Plan(error) => error,
        cause => panic!("{cause}"),
    }
}

#[test]
fn what_cannot_be_scanned_in_chunks_is_a_typed_error() {
    assert!(matches!(refusal(&[0_u8; 7], &mut [0; 7], 7), PlanError::Arrays(text) if text.contains("'x'")));
    assert!(matches!(refusal(&[0_u32; 7], &mut [0; 6], 7), PlanError::Arrays(text) if text.contains("'y' has 6")));
    let mut scan = chunked(sums(), Mode::Inclusive, 7, &Limits::default());
    let missing = scan.scan(HostArrays::new().input(&[0_u32; 7])).expect_err("no output");
    assert!(matches!(*missing.cause, Cause::Plan(PlanError::Arrays(_))), "{missing}");
    let stop = AtomicBool::new(false);
    let start = Checkpoint { elements: 3, state: vec![1, 2] };
    let state = scan.run(Job { start, ..Job::new(&NoFile, &NoFile, &stop) }, |_| Ok(())).expect_err("half a state");
    assert!(matches!(*state.cause, Cause::Plan(PlanError::State { expected: 4, given: 2, .. })), "{state}");
    let nobody = ChunkPlan::new(sums(), Mode::Inclusive, 7, &Limits::default(), 0, 0);
    assert_eq!(nobody, Err(PlanError::NoDevice));
    for (device_bytes, host_bytes, word) in [(1700, 1 << 20, "device"), (1 << 20, 1000, "host")] {
        let limits = Limits { device_bytes, host_bytes, ..Limits::default() };
        let little = ChunkPlan::new(sums(), Mode::Inclusive, 7000, &limits, 1, 0).expect_err("too little");
        assert!(matches!(&little, PlanError::TooLittle { of, .. } if *of == word), "{little}");
    }
}
