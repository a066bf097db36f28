//! Scans that a user defines, over slices on the CPU device: every one against the loop that it stands for. Kernels of a
//! definition are compiled when it is run for the first time; without a C++ compiler the tests print that they skipped, and
//! fail if LOOKBACK_REQUIRE_THREAD_SANITIZER is 1, which asks for one.
#![cfg(all(feature = "cpu", feature = "lab"))]

#[path = "defined/by_rank.rs"]
mod by_rank;
#[path = "defined/columns.rs"]
mod columns;
#[path = "defined/histogram.rs"]
mod histogram;
#[path = "common/index_order.rs"]
mod index_order;
#[path = "defined/moved.rs"]
mod moved;
#[path = "defined/parameters.rs"]
mod parameters;
#[path = "defined/reproducible.rs"]
mod reproducible;
#[path = "defined/sorted.rs"]
mod sorted;
#[path = "defined/strided.rs"]
mod strided;
#[path = "common/unkind.rs"]
mod unkind;
#[path = "defined/unkind_arrays.rs"]
mod unkind_arrays;

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use lookback::element::monoid::{Bicyclic, Monoid};
use lookback::element::{ArrayElement, Defined, Definition, Element, ElementType, NoSuchProblem, Operator};
use lookback::lab::cpu_device::CpuSettings;
use lookback::lab::cpu_kernels::NoKernel;
use lookback::lab::device::DeviceError;
use lookback::lab::host_compiler::HostCompilerError;
use lookback::lab::host_scanner::{HostRun, HostScanner};
use lookback::run::AnyScanner;
use lookback::strategy::{CallError, ConfigError, ScanConfig, Strategy};
use proptest::prelude::*;
use std::slice;

/// Those that scan tiles of several arrays.
const STRATEGIES: [Strategy; 6] = {
    use Strategy::{Chained, Lookahead, Lookback, OneWave, ReduceThenScan, SingleBlock};
    [Lookahead, Lookback, OneWave, SingleBlock, ReduceThenScan, Chained]
};

/// No number.
type Pair = <Bicyclic as Monoid>::Value;

/// Every access is looked at, and tiles are small, so that there are many.
fn scanner(strategy: Strategy, vt: u32) -> HostScanner {
    let config = ScanConfig { vt, block_threads: 64, ..ScanConfig::default() };
    HostScanner::new(CpuSettings { check_bounds: true, ..CpuSettings::default() })
        .with_strategy(strategy)
        .with_config(config)
}

/// Whether the scan was made; not where there is no compiler.
fn is_made(result: Result<(), DeviceError>) -> bool {
    match result {
        Ok(()) => true,
        Err(DeviceError::NoKernel(NoKernel::Compiler(
            error @ (HostCompilerError::NoCompiler { .. } | HostCompilerError::NotAble { .. }),
        ))) => {
            assert!(std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"), "{error}");
            println!("skipped: {error}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

/// x -> factor · x + addend, modulo 2^32: does not commute, and every mistake shows.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
struct Map {
    factor: u32,
    addend: u32,
}

impl Map {
    const IDENTITY: Self = Self { factor: 1, addend: 0 };

    fn then(self, next: Self) -> Self {
        Self {
            factor: self.factor.wrapping_mul(next.factor),
            addend: next.factor.wrapping_mul(self.addend).wrapping_add(next.addend),
        }
    }
}

/// Arrays of two widths in, of two widths out, and a state that knows its place.
fn maps() -> Defined {
    maps_of(Definition::new::<Map>("maps", "map").input::<u8>("a").input::<u32>("b"))
}

/// The same of arrays in which both outputs have room.
fn roomy_maps() -> Defined {
    maps_of(Definition::new::<Map>("roomy_maps", "map").input::<u32>("b").input::<u32>("a"))
}

fn maps_of(arrays: Definition) -> Defined {
    arrays
        .declare("struct map { u32 factor; u32 addend; };")
        .identity("{1, 0}")
        .combine("return {left.factor * right.factor, right.factor * left.addend + right.addend};")
        .load("return {2u * a + 1, b + static_cast<u32>(i)};")
        .output::<u32>("addend")
        .output::<u16>("factor")
        .store("addend = state.addend;\nfactor = static_cast<u16>(state.factor ^ i);")
        .define()
        .expect("a definition")
}

/// What the loop over `maps` gives; `begins` says of an element, in the direction of the scan, from which state a segment
/// begins there. `ends` has what each state is where the next one begins, and at the end.
struct Reference {
    addends: Vec<u32>,
    factors: Vec<u16>,
    ends: Vec<Map>,
}

fn reference(
    a: &[u8],
    b: &[u32],
    is_exclusive: bool,
    is_reversed: bool,
    initial: Map,
    begins: impl Fn(usize) -> Option<Map>,
) -> Reference {
    let n = b.len();
    let (mut addends, mut factors) = (vec![0; n], vec![0; n]);
    let (mut state, mut last) = (initial, initial);
    let mut ends = Vec::new();
    for index in 0..n {
        let place = if is_reversed { n - 1 - index } else { index };
        if let Some(begun) = begins(place) {
            if index > 0 {
                ends.push(last);
            }
            state = begun;
        }
        let item = Map {
            factor: 2 * u32::from(a.get(place).copied().unwrap_or(0)) + 1,
            addend: b[place].wrapping_add(place as u32),
        };
        let before = state;
        state = state.then(item);
        last = if is_exclusive { before } else { state };
        addends[place] = last.addend;
        factors[place] = (last.factor ^ place as u32) as u16;
    }
    ends.push(last);
    if is_reversed {
        ends.reverse();
    }
    Reference { addends, factors, ends }
}

fn arrays(n: usize, seed: u64) -> (Vec<u8>, Vec<u32>) {
    let word = |i: usize| (i as u64 + 1).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
    ((0..n).map(|i| word(i) as u8).collect(), (0..n).map(|i| (word(i) >> 8) as u32).collect())
}

#[test]
fn a_recurrence_is_the_loop_in_every_strategy() {
    let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a definition");
    // Halves and small whole numbers: every step is exact.
    let a: Vec<f32> = (0..3000).map(|i| [0.5, -0.5, 1.0, 0.0][i * i % 7 % 4]).collect();
    let b: Vec<f32> = (0..3000).map(|i| (i % 5) as f32 - 2.0).collect();
    for strategy in STRATEGIES {
        let mut h = vec![f32::NAN; 3000];
        let run = scanner(strategy, 4)
            .run(recurrence)
            .input(&a)
            .input(&b)
            .output(&mut h)
            .initial(&[0.0_f32, 8.0])
            .inclusive();
        if !is_made(run) {
            return;
        }
        let mut state = 8.0_f32;
        for i in 0..3000 {
            state = a[i] * state + b[i];
            assert!((h[i] - state).abs() <= 1e-3, "{strategy}: {} for {state} at {i}", h[i]);
        }
    }
}

#[test]
fn a_recurrence_is_in_any_numbers_and_in_place() {
    fn check<T: Element + PartialEq + std::fmt::Debug>(number: fn(i32) -> T) {
        let recurrence = Definition::linear_recurrence::<T>().expect("numbers").define().expect("a definition");
        let a: Vec<T> = (0..1000).map(|i| number([1, -1, 0, 1][i * i % 7 % 4])).collect();
        let mut h: Vec<T> = (0..1000).map(|i| number(i % 5 - 2)).collect();
        let run = scanner(Strategy::Lookahead, 4).run(recurrence).input(&a).in_place(&mut h).rows(50).inclusive();
        if !is_made(run) {
            return;
        }
        let mut state = 0;
        for i in 0..1000 {
            let factor = [1, -1, 0, 1][i * i % 7 % 4];
            state = if i % 50 == 0 { 0 } else { state } * factor + i as i32 % 5 - 2;
            assert_eq!(h[i], number(state), "at {i}");
        }
    }
    check(|value| bf16::from_f32(value as f32));
    check(|value| f16::from_f32(value as f32));
    check(f64::from);
    check(|value| value as u8);
    check(|value| value as i16);
    assert!(matches!(Definition::linear_recurrence::<Pair>(), Err(NoSuchProblem::NotANumber(_))));
}

#[test]
fn the_largest_and_the_smallest_are_found_with_their_indices() {
    fn check<T: Element>(numbers: &[T], value_of: fn(T) -> f64) {
        for (is_max, is_reversed, is_exclusive) in [(true, false, false), (false, true, true)] {
            let definition = if is_max { Definition::arg_max::<T>() } else { Definition::arg_min::<T>() };
            let definition = definition.expect("numbers").define().expect("a definition");
            let n = numbers.len();
            let (mut values, mut indices) = (vec![T::zeroed(); n], vec![0_u64; n]);
            let mut scanner = scanner(Strategy::Lookback, 4);
            let run = scanner.run(definition).input(numbers).output(&mut values).output(&mut indices);
            let run = if is_reversed { run.reversed() } else { run };
            if !is_made(if is_exclusive { run.exclusive() } else { run.inclusive() }) {
                return;
            }
            let mut best: Option<usize> = None;
            for step in 0..n {
                let place = if is_reversed { n - 1 - step } else { step };
                let wins = |best: usize| {
                    let (own, other) = (value_of(numbers[place]), value_of(numbers[best]));
                    let is_beyond = if is_max { own > other } else { own < other };
                    let is_as_far = own == other || own.is_nan() && other.is_nan();
                    own.is_nan() && !other.is_nan() || is_beyond && !other.is_nan() || is_as_far && place < best
                };
                let next = if best.is_none_or(wins) { Some(place) } else { best };
                let expected = if is_exclusive { best } else { next };
                best = next;
                assert_eq!(indices[place], expected.map_or(u64::MAX, |index| index as u64), "{definition} at {place}");
                let value = expected.map_or(T::zeroed(), |index| numbers[index]);
                assert_eq!(bytemuck::bytes_of(&values[place]), bytemuck::bytes_of(&value), "{definition} at {place}");
            }
        }
    }
    let mut floats: Vec<f32> = (0..2000_u32).map(|i| (i * 7919 % 1013) as f32 - 500.0).collect();
    check(&floats, f64::from);
    (floats[700], floats[1300]) = (f32::NAN, f32::NAN);
    check(&floats, f64::from);
    check(&floats.iter().map(|&value| value as i8).collect::<Vec<_>>(), f64::from);
    assert!(matches!(Definition::arg_max::<Pair>(), Err(NoSuchProblem::NotANumber(_))));
}

#[test]
fn runs_of_halves_are_told_as_numbers_are() {
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).expect("numbers");
    let sums = sums.define().expect("a definition");
    // Both zeros are one number, and a NaN is none.
    let keys = [0.0, -0.0, 1.0, 1.0, f32::NAN, f32::NAN].map(bf16::from_f32);
    let mut y = [0_u32; 6];
    let mut scanner = scanner(Strategy::Lookback, 4);
    if is_made(scanner.run(sums).input(&[1_u32; 6]).output(&mut y).by_key(&keys).inclusive()) {
        assert_eq!(y, [1, 2, 1, 2, 1, 1]);
    }
}

#[test]
fn chunks_go_on_where_the_last_one_ended() {
    let (a, b) = arrays(2500, 7);
    let expected = reference(&a, &b, false, false, Map::IDENTITY, |_| None);
    let mut state = Map::IDENTITY;
    let (mut addends, mut factors) = (Vec::new(), Vec::new());
    for (a, b) in a.chunks(700).zip(b.chunks(700)) {
        let (mut some_addends, mut some_factors) = (vec![0_u32; a.len()], vec![0_u16; a.len()]);
        let before = state;
        // The load knows the place, which begins anew in each chunk.
        let shifted: Vec<u32> = b.iter().map(|b| b.wrapping_add(addends.len() as u32)).collect();
        let run = scanner(Strategy::Lookback, 8)
            .run(maps())
            .input(a)
            .input(&shifted)
            .output(&mut some_addends)
            .output(&mut some_factors)
            .initial_from(&[before])
            .final_state(slice::from_mut(&mut state))
            .inclusive();
        if !is_made(run) {
            return;
        }
        addends.extend(some_addends);
        factors.extend(some_factors);
    }
    assert_eq!((addends, vec![state]), (expected.addends, expected.ends));
}

/// Four words that are aligned further in CUDA than here.
#[test]
fn a_state_is_handed_over_wherever_it_lies() {
    let sums = Definition::new::<[u32; 4]>("sums of four", "four")
        .declare("struct alignas(16) four { u32 a; u32 b; u32 c; u32 d; };")
        .identity("{0, 0, 0, 0}")
        .combine("return {left.a + right.a, left.b + right.b, left.c + right.c, left.d + right.d};")
        .commutative()
        .input::<u32>("x")
        .load("return {x, 2 * x, 3 * x, 4 * x};")
        .output::<u32>("y")
        .store("y = state.d;")
        .define()
        .expect("a definition");
    let states = [7_u32; 9];
    let mut finals = [0_u32; 9];
    let x = vec![1_u32; 1000];
    let mut y = vec![0_u32; 1000];
    let initial: &[u32; 4] = states[1..5].try_into().expect("four");
    let last: &mut [u32; 4] = (&mut finals[3..7]).try_into().expect("four");
    let run = scanner(Strategy::Lookahead, 4)
        .run(sums)
        .input(&x)
        .output(&mut y)
        .initial_from(slice::from_ref(initial))
        .final_state(slice::from_mut(last))
        .inclusive();
    if is_made(run) {
        assert!(y.iter().enumerate().all(|(i, &y)| y == 7 + 4 * (i as u32 + 1)));
        assert_eq!(finals, [0, 0, 0, 1007, 2007, 3007, 4007, 0, 0]);
    }
}

/// Of 16 bytes, which a mark makes 32: descriptors, spines and shared memory have to have room for it.
#[test]
fn large_states_in_segments_have_room() {
    let sums = |name: &str, bytes: &str| {
        Definition::new::<[u32; 4]>(name, "four")
            .declare(&format!("struct {bytes} four {{ u32 a; u32 b; u32 c; u32 d; }};"))
            .identity("{0, 0, 0, 0}")
            .combine("return {left.a + right.a, left.b + right.b, left.c + right.c, left.d + right.d};")
            .input::<u32>("x")
            .load("return {x, 2 * x, 3 * x, 4 * x};")
            .output::<u32>("y")
            .store("y = state.d;")
            .define()
            .expect("a definition")
    };
    let x: Vec<u32> = (0..6000).collect();
    for strategy in [Strategy::Lookahead, Strategy::ReduceThenScan] {
        for sums in [sums("sums of four words", "alignas(16)"), sums("sums of loose words", "")] {
            let mut y = vec![0_u32; 6000];
            let run = scanner(strategy, 4).run(sums).input(&x).output(&mut y).rows(300).inclusive();
            if strategy == Strategy::ReduceThenScan {
                assert!(
                    matches!(run, Err(DeviceError::Config(ConfigError::SpineOfStates { state_bytes: 32, .. }))),
                    "{run:?}"
                );
                continue;
            }
            if !is_made(run) {
                return;
            }
            let mut sum = 0;
            for (i, &y) in y.iter().enumerate() {
                sum = if i % 300 == 0 { 4 * i as u32 } else { sum + 4 * i as u32 };
                assert_eq!(y, sum, "{strategy}, {sums}, at {i}");
            }
        }
    }
}

/// No instruction loads 12 or 3 bytes.
#[test]
fn a_state_may_have_any_size() {
    let states = |name: &str, number: &str, state: usize| {
        let definition = match state {
            12 => Definition::new::<[u32; 3]>(name, "words"),
            _ => Definition::new::<[u8; 3]>(name, "words"),
        };
        definition
            .declare(&format!("struct words {{ {number} a; {number} b; {number} c; }};"))
            .identity("{0, 0, 0}")
            .combine(&format!(
                "return {{static_cast<{number}>(left.a + right.a), static_cast<{number}>(left.b + right.b), \
                 static_cast<{number}>(left.c + right.c)}};"
            ))
            .input::<u8>("x")
            .load(&format!("return {{x, static_cast<{number}>(2 * x), static_cast<{number}>(3 * x)}};"))
            .output::<u8>("y")
            .store("y = static_cast<u8>(state.c - state.b);")
            .define()
            .expect("a definition")
    };
    let x: Vec<u8> = (0..3000_u32).map(|i| (i * i) as u8).collect();
    for states in [states("sums of three words", "u32", 12), states("sums of three bytes", "u8", 3)] {
        for strategy in [Strategy::Lookahead, Strategy::ReduceThenScan] {
            let mut y = vec![0_u8; x.len()];
            let run = scanner(strategy, 4).run(states).input(&x).output(&mut y).inclusive();
            if strategy == Strategy::ReduceThenScan {
                assert!(matches!(run, Err(DeviceError::Config(ConfigError::SpineOfStates { .. }))), "{run:?}");
                continue;
            }
            if !is_made(run) {
                return;
            }
            let mut sum = 0_u8;
            for (i, (&x, &y)) in x.iter().zip(&y).enumerate() {
                sum = sum.wrapping_add(x);
                assert_eq!(y, sum, "{strategy}, {states}, at {i}");
            }
        }
        // Vectors of such states are not aligned as one.
        for columns in [2, 5, 8, 100] {
            let mut y = vec![0_u8; x.len()];
            let run = scanner(Strategy::Lookahead, 4).run(states).input(&x).output(&mut y).columns(columns).inclusive();
            if !is_made(run) {
                return;
            }
            let mut sums = vec![0_u8; columns];
            for (i, (&x, &y)) in x.iter().zip(&y).enumerate() {
                let sum = &mut sums[i % columns];
                *sum = sum.wrapping_add(x);
                assert_eq!(y, *sum, "{columns} columns, {states}, at {i}");
            }
        }
    }
}

#[test]
fn a_state_of_another_size_in_cuda_is_refused() {
    let wrong = Definition::new::<u32>("small outside", "large")
        .declare("struct large { u32 words[4]; };")
        .identity("{}")
        .combine("return left;")
        .input::<u32>("x")
        .load("return {};")
        .output::<u32>("y")
        .store("y = 0;")
        .define()
        .expect("a definition");
    match scanner(Strategy::Lookback, 4).run(wrong).input(&[1_u32]).output(&mut [0_u32]).inclusive() {
        Err(DeviceError::NoKernel(NoKernel::Compiler(HostCompilerError::Compile { output, .. }))) => {
            assert!(output.contains("has 4 bytes in Rust"), "{output}");
        }
        other => assert!(!is_made(other), "it compiles"),
    }
}

#[test]
fn what_does_not_fit_is_refused_and_says_which() {
    let (a, b) = arrays(100, 1);
    let (mut addends, mut factors) = (vec![0_u32; 100], vec![0_u16; 100]);
    let mut scanner = scanner(Strategy::Lookback, 4);
    let refused = |run: Result<(), DeviceError>, is_right: fn(&CallError) -> bool| match run {
        Err(DeviceError::Config(ConfigError::Call(error))) => assert!(is_right(&error), "{error}"),
        other => panic!("{other:?}"),
    };
    let run = scanner.run(maps()).input(&a).output(&mut addends).output(&mut factors).inclusive();
    refused(run, |error| matches!(error, CallError::Count { verb: "loads", defined: 2, given: 1, .. }));
    let run = scanner.run(maps()).input(&b).input(&b).output(&mut addends).output(&mut factors).inclusive();
    refused(run, |error| matches!(error, CallError::ElementType { array, .. } if array == "a"));
    let run = scanner.run(maps()).input(&a[1..]).input(&b).output(&mut addends).output(&mut factors).inclusive();
    refused(run, |error| matches!(error, CallError::Length { elements: 99, n: 100, .. }));
    let run = scanner.run(maps()).input(&a).input(&b).output(&mut addends).output(&mut factors).rows(7).inclusive();
    refused(run, |error| matches!(error, CallError::Columns { columns: 7, .. }));
    let run = scanner.run(maps()).input(&a).input(&b).output(&mut addends).output(&mut factors).rows(0).inclusive();
    refused(run, |error| matches!(error, CallError::Columns { columns: 0, .. }));
    let run =
        scanner.run(maps()).input(&a).input(&b).output(&mut addends).output(&mut factors).initial(&1_u8).inclusive();
    refused(run, |error| matches!(error, CallError::StateBytes { defined: 8, given: 1, .. }));
    let run = scanner
        .run(maps())
        .input(&a)
        .input(&b)
        .output(&mut addends)
        .output(&mut factors)
        .rows(10)
        .by_key(&a)
        .inclusive();
    refused(run, |error| matches!(error, CallError::SegmentsTwice(_)));
    macro_rules! refused {
        ($($call:ident $arguments:tt).+, $error:pat) => {
            let run = scanner.run(maps()).input(&a).input(&b).output(&mut addends).output(&mut factors);
            refused(run.$($call $arguments).+.inclusive(), |error| matches!(error, $error));
        };
    }
    let state = Map::IDENTITY;
    let states = [state; 11];
    refused!(initial(&state).initial_from(&[state]), CallError::InitialTwice(_));
    refused!(initial(&state).by_key(&a), CallError::InitialByKey(_));
    refused!(initial_from(&states), CallError::States { elements: 11, expected: 1, .. });
    refused!(initial_from(&states).rows(10), CallError::States { elements: 11, expected: 10, .. });
    refused!(final_state(&mut [state; 0]), CallError::States { elements: 0, expected: 1, .. });
    refused!(final_state(&mut [0_u8]), CallError::StateBytes { defined: 8, given: 1, .. });
    refused!(by_key(&[Pair::zeroed(); 100]), CallError::Key { .. });
    let signed: Vec<i32> = bytemuck::cast_slice(&b).to_vec();
    let run = scanner.run(maps()).input(&a).input(&signed).output(&mut addends).output(&mut factors).inclusive();
    refused(run, |error| matches!(error, CallError::ElementType { given, .. } if given == "'int' of 4 bytes"));
    let run = scanner.run(maps()).input::<u8>(&[]).input::<u32>(&[]).output::<u32>(&mut []).output::<u16>(&mut []);
    refused(run.final_state(&mut [state]).inclusive(), |error| matches!(error, CallError::NoFinalState(_)));
    let mut untiled = HostScanner::default().with_strategy(Strategy::Naive);
    let run = untiled.run(maps()).input(&a).input(&b).output(&mut addends).output(&mut factors).inclusive();
    assert!(matches!(run, Err(DeviceError::Config(ConfigError::TakesNoArrays { .. }))), "{run:?}");
    scanner
        .run(maps())
        .input::<u8>(&[])
        .input::<u32>(&[])
        .output::<u32>(&mut [])
        .output::<u16>(&mut [])
        .inclusive()
        .expect("nothing");
}

#[test]
fn what_the_device_finds_wrong_is_said_and_nothing_is_written_beside_the_arrays() {
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).expect("numbers");
    let sums = sums.define().expect("a definition");
    let x = vec![1_u32; 1000];
    let found = |result: Result<(), DeviceError>| match result {
        Err(DeviceError::Config(ConfigError::Call(error))) => Some(*error),
        other => {
            is_made(other);
            None
        }
    };
    for strategy in [Strategy::Lookahead, Strategy::Lookback] {
        let mut y = vec![0_u32; 1000];
        let mut scan = |offsets: &[i64]| {
            found(scanner(strategy, 4).run(sums).input(&x).output(&mut y).offsets(offsets).inclusive())
        };
        assert_eq!(scan(&[0, 7, 7, 1000]), None);
        let of_segment = |segment| Some(CallError::Offsets { segment });
        for (offsets, segment) in [
            (&[0, 7, 5, 1000][..], 1),
            (&[1, 1000], 0),
            (&[0, 999], 0),
            (&[0, 10, 1001], 1),
            (&[0, -1, 1000], 0),
            (&[0, i64::MAX, 1000], 0),
        ] {
            let found = scan(offsets);
            if found.is_none() {
                return; // no compiler
            }
            // A fall is seen from both sides.
            assert!(found == of_segment(segment) || found == of_segment(segment + 1), "{offsets:?}: {found:?}");
        }
        assert!(matches!(scan(&[0]), Some(CallError::NoOffsets(_))));
        let mut counted = |count: u32, columns: usize| {
            let mut scanner = scanner(strategy, 4);
            let run = scanner.run(sums).input(&x).output(&mut y).count_from(&count);
            found(if columns == 0 { run.inclusive() } else { run.rows(columns).inclusive() })
        };
        assert_eq!((counted(1000, 0), counted(0, 0), counted(900, 100)), (None, None, None));
        assert_eq!(counted(1001, 0), Some(CallError::Counted { count: 1001 }));
        assert_eq!(counted(150, 100), Some(CallError::Counted { count: 150 }));
    }
}

/// 8 bytes, which CUDA loads at once and Rust puts at any multiple of 4.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Weighted {
    weight: f32,
    count: u32,
}

impl ArrayElement for Weighted {
    const CUDA_TYPE: &'static str = "weighted";
}

#[test]
fn arrays_of_a_type_of_ones_own_lie_where_rust_puts_them() {
    let sums = Definition::new::<Weighted>("weighted sums", "weighted")
        .declare("struct alignas(8) weighted { float weight; u32 count; };")
        .identity("weighted{0.0f, 0u}")
        .combine("return {left.weight + right.weight, left.count + right.count};")
        .commutative()
        .input::<Weighted>("x")
        .load("return x;")
        .output::<Weighted>("y")
        .store("y = state;")
        .define()
        .expect("a definition");
    // Of words, so that one of two begins at an odd one.
    let words: Vec<u32> = (0..404).map(|number| if number % 2 == 0 { 1_f32.to_bits() } else { number }).collect();
    for first in [0, 1] {
        let x: &[Weighted] = bytemuck::cast_slice(&words[first..first + 400]);
        let mut room = [0_u32; 404];
        let y: &mut [Weighted] = bytemuck::cast_slice_mut(&mut room[1 - first..401 - first]);
        if !is_made(scanner(Strategy::Lookback, 4).run(sums).input(x).output(y).inclusive()) {
            return;
        }
        let count = x.iter().fold(0, |sum: u32, element| sum.wrapping_add(element.count));
        assert_eq!(y.last().map(|sum| sum.count), Some(count), "{first}");
    }
}

#[test]
fn the_compiler_speaks_of_the_lines_of_the_text() {
    for (combine, line) in [
        ("u32 sum = left;\nsum += no_such_name;\nreturn sum;", "the combining of 'wrong sum':2"),
        // What the end lacks.
        ("u32 sum = left + right;\nreturn sum", "the combining of 'wrong sum':2"),
        // Statements, as the identity is none.
        ("left + right;", "the combining of 'wrong sum':1"),
    ] {
        let wrong = Definition::new::<u32>("wrong sum", "u32")
            .identity("0")
            .combine(combine)
            .input::<u32>("x")
            .load("return x;")
            .output::<u32>("y")
            .store("y = state;")
            .define()
            .expect("a definition");
        match scanner(Strategy::Lookback, 4).run(wrong).input(&[1_u32]).output(&mut [0_u32]).inclusive() {
            Err(DeviceError::NoKernel(NoKernel::Compiler(HostCompilerError::Compile { output, .. }))) => {
                assert!(output.contains(line), "{output}");
            }
            other => assert!(!is_made(other), "it compiles"),
        }
    }
}

/// An array that does not begin with a vector has elements before its first that are none.
#[test]
fn of_none_a_final_state_is_left_as_it_is() {
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).expect("numbers");
    let sums = sums.define().expect("a definition");
    let x = vec![1_u32; 1001];
    for strategy in [Strategy::Lookahead, Strategy::Lookback] {
        for begin in [0, 1] {
            let (mut y, mut end) = (vec![7_u32; 1000], [99_u32]);
            let mut scanner = scanner(strategy, 4);
            let run = scanner.run(sums).input(&x[begin..][..1000]).output(&mut y).count_from(&0_u32);
            if is_made(run.final_state(&mut end).inclusive()) {
                assert_eq!((end, &y), ([99], &vec![7; 1000]), "{strategy}, from {begin}");
            }
        }
    }
}

/// Tiles of 256 elements: of whole rows, which none waits for, all or most of a tile, and of others, whose look-back goes on.
#[test]
fn rows_are_scanned_in_tiles_of_whole_rows_and_in_others() {
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::U32).expect("numbers");
    let sums = sums.define().expect("a definition");
    let own = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).expect("numbers");
    let own = own.define().expect("a definition");
    for columns in [1, 3, 32, 61, 100, 250, 256, 300] {
        let (bytes, _) = arrays(columns * (1000 / columns + 2), 1);
        for (is_reversed, is_exclusive) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut sum_of = vec![0_u32; bytes.len()];
            let mut scanner = scanner(Strategy::Lookback, 4);
            let run = scanner.run(sums).input(&bytes).output(&mut sum_of).rows(columns);
            let run = if is_reversed { run.reversed() } else { run };
            if !is_made(if is_exclusive { run.exclusive() } else { run.inclusive() }) {
                continue;
            }
            // A block must not load what the one before it has stored.
            let mut in_place: Vec<_> = bytes.iter().map(|&byte| u32::from(byte)).collect();
            let run = scanner.run(own).in_place(&mut in_place).rows(columns);
            let run = if is_reversed { run.reversed() } else { run };
            assert!(is_made(if is_exclusive { run.exclusive() } else { run.inclusive() }));
            assert_eq!(in_place, sum_of, "rows of {columns} in place, {is_reversed} {is_exclusive}");
            for (found, bytes) in sum_of.chunks(columns).zip(bytes.chunks(columns)) {
                let mut sum = 0;
                let mut expected = vec![0; columns];
                for step in 0..columns {
                    let place = if is_reversed { columns - 1 - step } else { step };
                    let next = sum + u32::from(bytes[place]);
                    expected[place] = if is_exclusive { sum } else { next };
                    sum = next;
                }
                assert_eq!(found, expected, "rows of {columns}, {is_reversed} {is_exclusive}");
            }
        }
    }
}

/// What tells segments.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Telling {
    Nothing,
    Rows(usize),
    Keys,
    Flags,
    Offsets,
}

/// Where what stands left of the first element comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Given {
    Nothing,
    Value,
    Memory,
}

/// The states that stand before so many rows or columns.
fn states_of(given: Given, lines: usize) -> Vec<Map> {
    let of_line = |line: u32| match given {
        Given::Nothing => Map::IDENTITY,
        Given::Value => Map { factor: 3, addend: 5 },
        Given::Memory => Map { factor: 2 * line + 3, addend: line ^ 5 },
    };
    (0..lines as u32).map(of_line).collect()
}

/// The end of a call: what stands left of the first elements, from which end it goes, and the scan itself.
fn made_from<'a>(
    mut run: HostRun<'a>,
    given: Given,
    states: &'a [Map],
    is_reversed: bool,
    is_exclusive: bool,
) -> Result<(), DeviceError> {
    if is_reversed {
        run = run.reversed();
    }
    run = match given {
        Given::Nothing => run,
        Given::Value => run.initial(&states[0]),
        Given::Memory => run.initial_from(states),
    };
    if is_exclusive { run.exclusive() } else { run.inclusive() }
}

/// A scan of `maps` to compare with the loop.
#[derive(Debug, Clone)]
struct Drawn {
    n: usize,
    offsets: [usize; 4],
    vt: u32,
    strategy: Strategy,
    telling: Telling,
    is_reversed: bool,
    is_exclusive: bool,
    given: Given,
    has_ends: bool,
    /// Whether each output has room where the input of the same number lies.
    has_room: bool,
    /// The part that the device alone knows to be scanned.
    counted: Option<f64>,
    seed: u64,
}

fn is_as_by_the_loop(drawn: &Drawn) -> Result<(), TestCaseError> {
    let &Drawn {
        n,
        offsets,
        vt,
        strategy,
        telling,
        is_reversed,
        is_exclusive,
        given,
        has_ends,
        has_room,
        counted,
        seed,
    } = drawn;
    let all = match telling {
        Telling::Rows(columns) => n.next_multiple_of(columns),
        _ => n,
    };
    let (a, b) = arrays(all + 17, seed);
    let wide: Vec<u32> = a.iter().map(|&a| a.into()).collect();
    let wide = &wide[offsets[0]..][..all];
    let (a, b) = (&a[offsets[0]..][..all], &b[offsets[1]..][..all]);
    // What the device is to scan of them.
    let n = counted.map_or(all, |part: f64| (all as f64 * part) as usize);
    let n = if let Telling::Rows(columns) = telling { n / columns * columns } else { n };
    // Of all lengths, some of nothing.
    let mut borders: Vec<u32> = vec![0];
    while *borders.last().expect("one") < n as u32 {
        let length = [1, 0, 3, 200, 0, 0, 31, 5][(borders.len() + seed as usize) % 8] << ((seed >> 8) % 4);
        borders.push((borders[borders.len() - 1] + length).min(n as u32));
    }
    if borders.len() == 1 {
        borders.push(0);
    }
    let keys: Vec<u16> = (0..all).map(|i| (i / 5 % 3 + i / 61) as u16).collect();
    let flags: Vec<u8> = (0..all).map(|i| u8::from(i % 37 == 5) * 3).collect();
    let rows = match telling {
        Telling::Rows(columns) => all / columns,
        _ => 1,
    };
    // Runs of keys and segments between offsets have none.
    let given = if matches!(telling, Telling::Keys | Telling::Offsets) { Given::Nothing } else { given };
    let states: Vec<Map> = (0..rows as u32)
        .map(|row| match given {
            Given::Nothing => Map::IDENTITY,
            Given::Value => Map { factor: 3, addend: 5 },
            Given::Memory => Map { factor: 2 * row + 3, addend: row ^ 5 },
        })
        .collect();
    let begins = |place: usize| match telling {
        Telling::Nothing => None,
        Telling::Rows(columns) => {
            (place + usize::from(is_reversed)).is_multiple_of(columns).then(|| states[place / columns])
        }
        Telling::Keys if is_reversed => (place + 1 == n || keys[place] != keys[place + 1]).then_some(Map::IDENTITY),
        Telling::Keys => (place == 0 || keys[place] != keys[place - 1]).then_some(Map::IDENTITY),
        Telling::Flags => (flags[place] != 0).then_some(Map::IDENTITY),
        Telling::Offsets => borders.contains(&((place + usize::from(is_reversed)) as u32)).then_some(Map::IDENTITY),
    };
    let expected = reference(&a[..n], &b[..n], is_exclusive, is_reversed, states[0], begins);
    let (mut addends, mut factors) = (vec![7_u32; all + 17], vec![7_u16; all + 17]);
    let mut ends = vec![Map { factor: 99, addend: 99 }; rows];
    let mut scanner = scanner(strategy, vt);
    let count = n as u64;
    // The last one of an exclusive scan is not there.
    let readable = if is_exclusive && !is_reversed && telling == Telling::Nothing { all - 1 } else { all };
    let mut run = scanner.run(if has_room { roomy_maps() } else { maps() });
    run = if has_room { run.input(&b[..readable]).input(wide) } else { run.input(&a[..readable]).input(b) };
    run = run.output(&mut addends[offsets[2]..][..all]).output(&mut factors[offsets[3]..][..all]);
    if counted.is_some() {
        run = run.count_from(&count);
    }
    if has_ends {
        run = run.final_state(&mut ends);
    }
    run = match telling {
        Telling::Nothing => run,
        Telling::Rows(columns) => run.rows(columns),
        Telling::Keys => run.by_key(&keys),
        Telling::Flags => run.head_flags(&flags),
        Telling::Offsets => run.offsets(&borders),
    };
    let made = made_from(run, given, &states, is_reversed, is_exclusive);
    if is_made(made) {
        prop_assert_eq!(&addends[offsets[2]..][..n], &expected.addends[..]);
        prop_assert_eq!(&factors[offsets[3]..][..n], &expected.factors[..]);
        prop_assert!(addends[offsets[2] + n..].iter().all(|&addend| addend == 7), "written behind what was counted");
        if n == 0 {
            prop_assert!(ends.iter().all(|end| end.factor == 99), "of none, a final state is left as it is");
        } else if has_ends {
            // Of runs and flags there is the last one.
            let rows = rows.min(expected.ends.len());
            let found = if is_reversed { &expected.ends[..rows] } else { &expected.ends[expected.ends.len() - rows..] };
            prop_assert_eq!(&ends[..rows], found);
            prop_assert!(ends[rows..].iter().all(|end| end.factor == 99));
        }
    }
    Ok(())
}

fn tellings() -> impl proptest::strategy::Strategy<Value = Telling> {
    prop::sample::select(vec![
        Telling::Nothing,
        Telling::Rows(1),
        Telling::Rows(3),
        Telling::Rows(32),
        Telling::Rows(100),
        Telling::Keys,
        Telling::Flags,
        Telling::Offsets,
    ])
}

fn givens() -> impl proptest::strategy::Strategy<Value = Given> {
    prop::sample::select(vec![Given::Nothing, Given::Value, Given::Memory])
}

#[test]
fn a_final_state_behind_offsets_is_stored() {
    for is_exclusive in [false, true] {
        let drawn = Drawn {
            n: 3584,
            offsets: [0; 4],
            vt: 12,
            strategy: Strategy::Lookahead,
            telling: Telling::Offsets,
            is_reversed: false,
            is_exclusive,
            given: Given::Nothing,
            has_ends: true,
            has_room: true,
            counted: None,
            seed: 9_614_636_859_516_174_034,
        };
        is_as_by_the_loop(&drawn).unwrap_or_else(|error| panic!("{error}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(14))]

    #[test]
    fn any_arrays_in_any_direction_in_any_segments_are_scanned_as_by_the_loop(
        n in prop::sample::select(vec![1_usize, 2, 31, 33, 255, 256, 257, 1023, 1024, 1026, 3000]),
        // Half of the time whole vectors can be moved.
        offsets in prop_oneof![Just([0_usize; 4]), prop::array::uniform4(0_usize..17)],
        vt in prop::sample::select(vec![1_u32, 3, 4, 8, 12]),
        strategy in prop::sample::select(STRATEGIES.to_vec()),
        telling in tellings(),
        is_reversed: bool,
        is_exclusive: bool,
        given in givens(),
        has_ends: bool,
        has_room: bool,
        counted in prop::option::of(0.0..=1.0),
        seed: u64,
    ) {
        is_as_by_the_loop(&Drawn {
            n, offsets, vt, strategy, telling, is_reversed, is_exclusive, given, has_ends, has_room, counted, seed,
        })?;
    }

    /// Lanes of look-ahead have runs of several vectors, of 36 values one that lies in two words of bits, and store by way of
    /// the stage, but for a last tile that is cut.
    #[test]
    fn runs_of_a_lane_are_scanned_as_by_the_loop(
        n in prop::sample::select(vec![1536_usize, 2304, 3584, 4608, 5000]),
        vt in prop::sample::select(vec![12_u32, 28, 36]),
        telling in tellings(),
        is_reversed: bool,
        is_exclusive: bool,
        given in givens(),
        has_ends: bool,
        counted in prop::option::of(0.7..=1.0),
        seed: u64,
    ) {
        is_as_by_the_loop(&Drawn {
            n, offsets: [0; 4], vt, strategy: Strategy::Lookahead, telling, is_reversed, is_exclusive, given, has_ends,
            has_room: true, counted, seed,
        })?;
    }

    #[test]
    fn operators_of_the_table_run_in_reverse_and_by_rows(
        rows in 1_usize..40,
        columns in prop::sample::select(vec![1_usize, 2, 7, 32, 100]),
        is_reversed: bool,
        seed: u64,
    ) {
        let sums = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::U32).expect("numbers");
        let (bytes, _) = arrays(rows * columns, seed);
        let mut sum_of = vec![0_u32; bytes.len()];
        let mut scanner = scanner(Strategy::Lookahead, 16);
        let mut run = scanner.run(sums.define().expect("a definition")).input(&bytes).output(&mut sum_of).rows(columns);
        if is_reversed {
            run = run.reversed();
        }
        if is_made(run.inclusive()) {
            for (sums, bytes) in sum_of.chunks(columns).zip(bytes.chunks(columns)) {
                for (place, &found) in sums.iter().enumerate() {
                    let range = if is_reversed { place..columns } else { 0..place + 1 };
                    prop_assert_eq!(found, bytes[range].iter().map(|&byte| u32::from(byte)).sum::<u32>());
                }
            }
        }
    }
}
