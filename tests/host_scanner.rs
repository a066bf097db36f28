//! Scans over slices on the CPU device, of one type into another ones whose kernels the build left out.
//!
//! Those need a C++ compiler when they run. Without it the tests print that they skipped, and fail if
//! LOOKBACK_REQUIRE_THREAD_SANITIZER is 1, which asks for one.
#![cfg(all(feature = "cpu", feature = "lab"))]

use half::{bf16, f16};
use lookback::element::{Element, NoSuchProblem, Operator};
use lookback::lab::cpu_device::CpuSettings;
use lookback::lab::cpu_kernels::NoKernel;
use lookback::lab::device::DeviceError;
use lookback::lab::host_compiler::HostCompilerError;
use lookback::lab::host_scanner::HostScanner;
use lookback::run::AnyScanner;
use lookback::strategy::{ConfigError, Mode, ScanConfig, Strategy};
use proptest::prelude::*;
use std::fmt::Debug;

/// Every access is looked at.
fn scanner() -> HostScanner {
    HostScanner::new(CpuSettings { check_bounds: true, ..CpuSettings::default() })
}

/// Whether the scan was made; not where there is no compiler.
fn is_made(test: &str, result: Result<(), DeviceError>) -> bool {
    match result {
        Ok(()) => true,
        Err(DeviceError::NoKernel(NoKernel::Compiler(
            error @ (HostCompilerError::NoCompiler { .. } | HostCompilerError::NotAble { .. }),
        ))) => {
            assert!(std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"), "{test}: {error}");
            println!("{test} skipped: {error}");
            false
        }
        Err(error) => panic!("{test}: {error}"),
    }
}

/// Small tiles, so that there are many.
fn small(vt: u32) -> ScanConfig {
    ScanConfig { vt, block_threads: 64, ..ScanConfig::default() }
}

#[test]
fn a_scan_over_slices_is_that_of_the_array() {
    let mut scanner = scanner();
    let input: Vec<u64> = (0..10_000).map(|i| i * i).collect();
    let (mut inclusive, mut exclusive) = (vec![0; input.len()], vec![7; input.len() + 1]);
    scanner.inclusive(Operator::Sum, &input, &mut inclusive).expect("a scan");
    scanner.exclusive(Operator::Sum, &input, &mut exclusive).expect("a scan");
    let mut sum = 0;
    for (i, item) in input.iter().enumerate() {
        assert_eq!(exclusive[i], sum);
        sum += item;
        assert_eq!(inclusive[i], sum);
    }
    assert_eq!(exclusive[input.len()], sum);
    let mut data = input;
    scanner.in_place(Operator::Sum, Mode::Inclusive, &mut data).expect("a scan");
    assert_eq!(data, inclusive);
}

#[test]
fn bytes_are_counted_in_words_and_floats_summed_in_doubles() {
    let test = "bytes_are_counted_in_words_and_floats_summed_in_doubles";
    let bytes: Vec<u8> = (0..5000_u32).map(|i| (i * i % 251) as u8).collect();
    use Strategy::{Chained, Lookahead, Lookback, ReduceThenScan, SingleBlock, SingleCluster};
    for strategy in [Lookahead, Lookback, SingleBlock, SingleCluster, ReduceThenScan, Chained] {
        let mut scanner = scanner().with_strategy(strategy).with_config(small(8));
        // From an odd address to one that no vector begins at.
        let mut offsets = vec![0_u32; 4999];
        let (input, output) = (&bytes[3..4999], &mut offsets[2..]);
        if !is_made(test, scanner.exclusive(Operator::Sum, input, output)) {
            return;
        }
        let mut sum = 0;
        for (offset, &byte) in output.iter().zip(input.iter().chain(&[0])) {
            assert_eq!(*offset, sum, "{strategy}");
            sum += u32::from(byte);
        }
    }
    // Each is exact in f64, and none but the first in f32.
    let floats: Vec<f32> = (0..3000).map(|i| if i == 0 { 16_777_216.0 } else { 1.0 }).collect();
    let mut sums = vec![0_f64; floats.len()];
    if is_made(test, scanner().inclusive(Operator::Sum, &floats, &mut sums)) {
        assert!(sums.iter().enumerate().all(|(i, &sum)| sum == 16_777_216.0 + i as f64));
    }
}

/// A float of two bytes, with what crate `half` makes of it.
trait Half: Element + PartialEq + Debug {
    fn of(value: f32) -> Self;
    fn value(self) -> f32;
}

impl Half for f16 {
    fn of(value: f32) -> Self {
        Self::from_f32(value)
    }
    fn value(self) -> f32 {
        self.to_f32()
    }
}

impl Half for bf16 {
    fn of(value: f32) -> Self {
        Self::from_f32(value)
    }
    fn value(self) -> f32 {
        self.to_f32()
    }
}

/// Whole numbers from -3 to 12, whose sums f32 holds exactly: in every order a sum is one number.
fn small_halves<H: Half>(n: usize, seed: u32) -> Vec<H> {
    let step = |i: usize| ((i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed) >> 28) as f32 - 3.0;
    (0..n).map(|i| H::of(step(i))).collect()
}

/// The sums of an array, rounded once each.
fn sums_of_halves<H: Half>(input: &[H]) -> Vec<H> {
    let mut sum = 0.0;
    let sums = input.iter().map(|item| {
        sum += item.value();
        H::of(sum)
    });
    sums.collect()
}

/// Whether the scan was made.
fn halves_are_summed_in_floats<H: Half>(strategy: Strategy, n: usize, (from, to): (usize, usize), seed: u32) -> bool {
    let test = "halves_are_summed_in_floats";
    let input: Vec<H> = small_halves(n + from, seed);
    let input = &input[from..];
    let expected = sums_of_halves(input);
    let same = |found: &[H], wanted: &[H]| {
        let differs = found.iter().zip(wanted).position(|(found, wanted)| found != wanted);
        assert_eq!((differs.map(|at| (at, found[at], wanted[at])), found.len()), (None, n), "{strategy} of {n}");
    };
    let mut output = vec![H::of(0.5); n + to + 1];
    let mut scanner = scanner().with_strategy(strategy).with_config(small(8));
    if !is_made(test, scanner.inclusive(Operator::Sum, input, &mut output[to..to + n])) {
        return false;
    }
    same(&output[to..to + n], &expected);
    is_made(test, scanner.exclusive(Operator::Sum, input, &mut output[to..]));
    same(&output[to + 1..], &expected);
    assert_eq!(output[to], H::of(0.0));
    let mut data = input.to_vec();
    is_made(test, scanner.in_place(Operator::Sum, Mode::Inclusive, &mut data));
    same(&data, &expected);
    true
}

#[test]
fn halves_are_summed_in_floats_and_rounded_once() {
    // A kernel of its own each, which the compiler takes seconds for.
    for strategy in [Strategy::Lookback, Strategy::Lookahead, Strategy::SingleBlock] {
        if !halves_are_summed_in_floats::<f16>(strategy, 5000, (3, 2), 0) {
            return;
        }
    }
    halves_are_summed_in_floats::<bf16>(Strategy::Lookback, 5000, (1, 6), 7);
    // Sums in the halves themselves would stand still.
    let input: Vec<f16> = small_halves(5000, 0);
    let stalled = input.iter().fold(f16::ZERO, |sum, item| f16::from_f32(sum.to_f32() + item.to_f32()));
    assert_ne!(stalled, sums_of_halves(&input)[4999]);
}

#[test]
fn halves_and_other_numbers_are_converted_into_each_other() {
    let test = "halves_and_other_numbers_are_converted_into_each_other";
    let mut scanner = scanner().with_strategy(Strategy::Lookback).with_config(small(4));
    let halves: Vec<f16> = small_halves(3000, 5);
    let (mut floats, mut doubles) = (vec![0_f32; 3000], vec![0_f64; 3000]);
    if !is_made(test, scanner.inclusive(Operator::Sum, &halves, &mut floats)) {
        return;
    }
    is_made(test, scanner.inclusive(Operator::Sum, &halves, &mut doubles));
    let mut sum = 0.0;
    for (i, half) in halves.iter().enumerate() {
        sum += half.to_f32();
        assert_eq!((floats[i], doubles[i]), (sum, f64::from(sum)), "at {i}");
    }
    // Quarters, of which the sums have more digits than a half.
    let quarters: Vec<f32> = (0..3000).map(|i| (i * i % 23) as f32 / 4.0).collect();
    let mut rounded = vec![bf16::ZERO; 3000];
    is_made(test, scanner.inclusive(Operator::Sum, &quarters, &mut rounded));
    let bytes: Vec<u8> = (0..3000).map(|i| (i * i % 251) as u8).collect();
    let mut counted = vec![f16::ZERO; 3000];
    is_made(test, scanner.inclusive(Operator::Sum, &bytes, &mut counted));
    let (mut sum, mut count) = (0.0, 0.0);
    for i in 0..3000 {
        sum += quarters[i];
        count += f32::from(bytes[i]);
        // 65520 and above are infinite.
        assert_eq!((rounded[i], counted[i]), (bf16::from_f32(sum), f16::from_f32(count)), "at {i}");
    }
    assert_eq!(counted[2999], f16::INFINITY);
}

#[test]
fn the_least_and_the_largest_of_halves_begin_with_infinity() {
    let test = "the_least_and_the_largest_of_halves_begin_with_infinity";
    let mut scanner = scanner().with_strategy(Strategy::Lookback).with_config(small(4));
    // Falls, and then is no number.
    let falling: Vec<f16> =
        (0..2000).map(|i| if i == 1700 { f16::NAN } else { f16::from_f32(-60_000.0 - i as f32 * 2.75) }).collect();
    let mut largest = vec![f16::ZERO; 1999];
    if !is_made(test, scanner.exclusive(Operator::Max, &falling[1..], &mut largest)) {
        return;
    }
    assert_eq!(largest[0], f16::NEG_INFINITY);
    for (i, found) in largest.iter().enumerate().skip(1) {
        assert!(if i < 1700 { *found == falling[1] } else { found.is_nan() }, "{found} at {i}");
    }
    let mut least = vec![0_f64; 1999];
    is_made(test, scanner.inclusive(Operator::Min, &falling[1..], &mut least));
    for (i, &found) in least.iter().enumerate() {
        let wanted = falling[i + 1].to_f64();
        assert!(if i < 1699 { found == wanted } else { found.is_nan() }, "{found} at {i}");
    }
}

/// What an operator makes of two integers, in a type that has room for it.
fn of_integers(operator: Operator, left: i64, right: i64) -> i64 {
    match operator {
        Operator::Product => left * right,
        Operator::Min => left.min(right),
        Operator::Max => left.max(right),
        Operator::And => left & right,
        Operator::Or => left | right,
        Operator::Xor => left ^ right,
        Operator::Sum => left + right,
        other => panic!("{other} is not of numbers"),
    }
}

macro_rules! narrow_signed_integers_are_scanned {
    ($type:ident, $operator:expr, $vt:expr, $n:expr, $seed:expr) => {{
        let value = |i: usize| (i as u32).wrapping_mul(2_654_435_761).wrapping_add($seed).rotate_right(11) as $type;
        let input: Vec<$type> = (0..$n).map(value).collect();
        let mut output = vec![0; $n];
        let mut scanner = scanner().with_strategy(Strategy::Lookback).with_config(small($vt));
        if is_made("narrow_signed_integers_are_scanned", scanner.inclusive($operator, &input, &mut output)) {
            let mut prefix = input[0];
            for i in 0..$n {
                if i > 0 {
                    prefix = of_integers($operator, prefix.into(), input[i].into()) as $type;
                }
                assert_eq!(output[i], prefix, "{} of {} at {i} of {}", $operator, stringify!($type), $n);
            }
        }
    }};
}

/// Of kernels that the build left out, those of strategies that differ most.
#[test]
fn products_wrap_in_integers_and_keep_their_powers_of_two_in_floats() {
    let test = "products_wrap_in_integers_and_keep_their_powers_of_two_in_floats";
    // Odd numbers: no product is 0.
    let odd: Vec<u64> = (0..3000_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).collect();
    let expected: Vec<u64> = odd
        .iter()
        .scan(1_u64, |product, &factor| {
            *product = product.wrapping_mul(factor);
            Some(*product)
        })
        .collect();
    for strategy in [Strategy::Lookback, Strategy::Lookahead, Strategy::ReduceThenScan, Strategy::Blelloch] {
        let mut scanner = scanner().with_strategy(strategy).with_config(small(2));
        let mut products = vec![0; odd.len()];
        if !is_made(test, scanner.exclusive(Operator::Product, &odd, &mut products)) {
            return;
        }
        assert_eq!((products[0], &products[1..]), (1, &expected[..2999]), "{strategy}");
    }
    // Their neighbours' products are 1/2, 1 and 2, of either sign.
    let factors: Vec<f32> = (0..3000).map(|i| [2.0, 0.5, -1.0, -0.5, 2.0][i % 5]).collect();
    let (mut floats, mut doubles) = (vec![0_f32; 3000], vec![0_f64; 3000]);
    let mut scanner = scanner().with_strategy(Strategy::Lookback);
    is_made(test, scanner.inclusive(Operator::Product, &factors, &mut floats));
    is_made(test, scanner.inclusive(Operator::Product, &factors, &mut doubles));
    let mut product = 1.0;
    for (i, factor) in factors.iter().enumerate() {
        product *= factor;
        assert_eq!((floats[i], doubles[i]), (product, f64::from(product)), "at {i}");
    }
}

#[test]
fn what_cannot_be_scanned_is_an_error_that_says_why() {
    let mut scanner = scanner();
    let (mut words, mut floats) = ([0_u32; 4], [0_f32; 4]);
    let mismatch = scanner.inclusive(Operator::Sum, &words[..3], &mut [0_u32; 4]);
    let is_mismatch = |error| matches!(error, Err(DeviceError::Config(ConfigError::LengthMismatch { input: 3, .. })));
    assert!(is_mismatch(mismatch));
    assert!(is_mismatch(scanner.exclusive(Operator::Sum, &words[..3], &mut [0_u32; 5])));
    let bits = scanner.inclusive(Operator::Xor, &words, &mut floats);
    let is_refused = |error: Result<(), DeviceError>, why: fn(&NoSuchProblem) -> bool| matches!(error, Err(DeviceError::Config(ConfigError::NoSuchProblem(found))) if why(&found));
    assert!(is_refused(bits, |why| matches!(why, NoSuchProblem::NoSuchInstance(_))));
    let cut = scanner.inclusive(Operator::Sum, &floats, &mut words);
    assert!(is_refused(cut, |why| matches!(why, NoSuchProblem::FloatToInteger { .. })));
    // Nothing is scanned, of whatever.
    scanner.inclusive::<u32, u32>(Operator::Sum, &[], &mut []).expect("nothing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sums_of_any_length_at_any_place_in_any_tile_come_out(
        n in prop::sample::select(vec![1_usize, 2, 31, 33, 255, 256, 257, 1023, 1024, 1025, 3000]),
        (from, to) in (0_usize..16, 0_usize..16),
        vt in prop::sample::select(vec![1_u32, 2, 3, 4, 8]),
        strategy in prop::sample::select(vec![Strategy::Lookahead, Strategy::Lookback, Strategy::OneWave]),
        seed: u8,
    ) {
        let bytes: Vec<u8> = (0..n + from).map(|i| (i as u8).wrapping_mul(37).wrapping_add(seed)).collect();
        let mut sums = vec![0_u16; n + to];
        let mut scanner = scanner().with_strategy(strategy).with_config(small(vt));
        if is_made("sums_of_any_length", scanner.inclusive(Operator::Sum, &bytes[from..], &mut sums[to..])) {
            let mut sum = 0_u16;
            for (i, &byte) in bytes[from..].iter().enumerate() {
                sum = sum.wrapping_add(byte.into());
                prop_assert_eq!(sums[to + i], sum, "at {}", i);
            }
        }
    }
    #[test]
    fn halves_of_any_length_at_any_place_are_summed_in_floats(
        n in prop::sample::select(vec![1_usize, 2, 7, 8, 9, 511, 512, 513, 1025, 3000]),
        places in (0_usize..16, 0_usize..16),
        strategy in prop::sample::select(vec![Strategy::Lookahead, Strategy::Lookback]),
        seed: u32,
    ) {
        if halves_are_summed_in_floats::<f16>(strategy, n, places, seed) {
            halves_are_summed_in_floats::<bf16>(Strategy::Lookback, n, places, seed);
        }
    }

    #[test]
    fn operators_of_narrow_signed_integers_know_their_sign(
        n in prop::sample::select(vec![1_usize, 2, 31, 33, 255, 256, 257, 1023, 1025, 3000]),
        vt in prop::sample::select(vec![1_u32, 2, 4, 8, 16]),
        operator in prop::sample::select(Operator::OF_NUMBERS),
        seed: u32,
    ) {
        narrow_signed_integers_are_scanned!(i8, operator, vt, n, seed);
        narrow_signed_integers_are_scanned!(i16, operator, vt, n, seed);
    }
}

#[test]
fn whatever_holds_a_slice_is_lent() {
    let counts: Box<[u32]> = Box::new([3, 1, 4]);
    let (mut sums, mut one) = ([0_u32; 3], 0_u32);
    let slice: &[u32] = &counts;
    for input in [&slice, &&*counts] {
        scanner().inclusive(Operator::Sum, input, &mut &mut sums[..]).expect("a scan");
        assert_eq!(std::mem::take(&mut sums), [3, 4, 8]);
    }
    scanner().inclusive(Operator::Sum, &counts[1], &mut one).expect("a scan");
    assert_eq!(one, 1);
    let mut boxed = counts;
    scanner().in_place(Operator::Sum, Mode::Inclusive, &mut boxed).expect("a scan");
    assert_eq!(*boxed, [3, 4, 8]);
}

#[test]
fn arrays_of_any_device_are_made_and_read_and_too_large_ones_are_an_error() {
    fn round_trip<S: AnyScanner>(scanner: &mut S, elements: &[[u16; 3]]) -> Result<Vec<[u16; 3]>, S::Error> {
        let array = scanner.array(elements)?;
        scanner.check()?;
        scanner.read(&array)
    }
    let mut scanner = scanner();
    for elements in [&[[1, 2, 3], [4, 5, 6]][..], &[]] {
        assert_eq!(round_trip(&mut scanner, elements).expect("room"), elements);
    }
    assert_eq!(scanner.zeros::<i64>(2).expect("room"), [0, 0]);
    let refused = scanner.zeros::<u64>(usize::MAX).expect_err("there is no such room").to_string();
    assert!(refused.contains("choose a smaller n"), "{refused}");
}
