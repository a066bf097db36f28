//! Scans over slices on the CPU device, of one type into another ones whose kernels the build left out.
//!
//! Those need a C++ compiler when they run. Without it the tests print that they skipped, and fail if
//! LOOKBACK_REQUIRE_THREAD_SANITIZER is 1, which asks for one.
#![cfg(all(feature = "cpu", feature = "lab"))]

use lookback::element::{NoSuchProblem, Operator};
use lookback::lab::cpu_device::CpuSettings;
use lookback::lab::cpu_kernels::NoKernel;
use lookback::lab::device::DeviceError;
use lookback::lab::host_compiler::HostCompilerError;
use lookback::lab::host_scanner::HostScanner;
use lookback::strategy::{ConfigError, Mode, ScanConfig, Strategy};
use proptest::prelude::*;

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
}
