//! Histograms over slices on the CPU device, each against a loop.

use super::{is_made, scanner};
use half::f16;
use lookback::element::{Defined, Definition, DefinitionError, Element, NoSuchProblem, WholeNumber};
use lookback::lab::device::DeviceError;
use lookback::run::AnyScanner;
use lookback::strategy::{ConfigError, Strategy};
use proptest::prelude::*;

/// Counts by the kernels of both strategies that count; nothing where there is no compiler.
fn counted<T: Element, C: WholeNumber + PartialEq>(
    defined: Defined,
    bins: usize,
    vt: u32,
    numbers: &[T],
) -> Option<Vec<C>> {
    let [by_blocks, by_cluster] = [Strategy::Lookback, Strategy::SingleCluster].map(|strategy| {
        let mut counts = vec![C::zeroed(); bins];
        bytemuck::cast_slice_mut(&mut counts).fill(0xa5_u8);
        let result = scanner(strategy, vt).run(defined).input(numbers).output(&mut counts).histogram();
        if let Err(DeviceError::Config(ConfigError::ClusterBins { bins: refused, .. })) = result {
            assert!(strategy == Strategy::SingleCluster && refused > 256, "{refused}");
            return None;
        }
        is_made(result).then_some(counts)
    });
    if bins <= 256 {
        assert!(by_cluster == by_blocks, "{defined:?} of {}", numbers.len());
    } else {
        // Of no elements nothing is planned, so that nothing is refused.
        assert_eq!(by_cluster.is_some(), numbers.is_empty());
    }
    by_blocks
}

/// How many numbers lie between neighbouring levels.
fn between(levels: &[f64], numbers: impl Iterator<Item = f64>) -> Vec<u32> {
    let mut counts = vec![0; levels.len() - 1];
    for number in numbers {
        if let Some(bin) = levels.windows(2).position(|level| level[0] <= number && number < level[1]) {
            counts[bin] += 1;
        }
    }
    counts
}

fn words(n: usize, seed: u64) -> impl Iterator<Item = u64> {
    (1..=n as u64).map(move |place| place.wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 13)
}

/// Sizes round whole tiles, of tiles of so many elements a thread, and so many before them that are not asked for.
fn sizes() -> impl proptest::strategy::Strategy<Value = (u32, (usize, usize), u64)> {
    use proptest::strategy::Strategy as _;
    let vts = prop::sample::select(&[1_u32, 2, 5, 16, 24][..]);
    (vts, 0_usize..4, -20_isize..21, 0_usize..17, any::<u64>()).prop_map(|(vt, tiles, more, before, seed)| {
        (vt, (before, (tiles * 64 * vt as usize).saturating_add_signed(more)), seed)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn bytes_are_counted((vt, (before, n), seed) in sizes()) {
        let bytes: Vec<i8> = words(before + n, seed).map(|word| (word % 11 * (word & 1)) as i8 - 5).collect();
        let histogram = Definition::byte_histogram::<i8, u32>().unwrap();
        let mut expected = vec![0_u32; 256];
        bytes[before..].iter().for_each(|&byte| expected[(i16::from(byte) + 128) as usize] += 1);
        if let Some(counts) = counted::<_, u32>(histogram.clone().define().unwrap(), 256, vt, &bytes[before..]) {
            prop_assert_eq!(&counts, &expected);
            let sums = counted::<_, u32>(histogram.cumulated().define().unwrap(), 256, vt, &bytes[before..]).unwrap();
            let through = expected.iter().scan(0, |sum, count| { *sum += count; Some(*sum) });
            prop_assert_eq!(sums, through.collect::<Vec<_>>());
        }
    }

    /// Fewer bins than values, and more. The text is asked once a value, or once an element where it has the place.
    #[test]
    fn bytes_are_counted_in_bins_of_their_values(
        (vt, (before, n), seed) in sizes(),
        bins in prop::sample::select(&[1_u32, 100, 255, 256, 9000][..]),
        is_placed: bool,
    ) {
        let bytes: Vec<u8> = words(before + n, seed).map(|word| (word % 256 * (word >> 20 & 1)) as u8).collect();
        let place = if is_placed { " + 0 * (u32)i" } else { "" };
        let text = format!("return x == 7 ? {bins} : x * 3u % {bins}{place};");
        let histogram = Definition::binned::<u64>("thirds", bins, &text).input::<u8>("x").define().unwrap();
        let mut expected = vec![0_u64; bins as usize];
        for &byte in bytes[before..].iter().filter(|&&byte| byte != 7) {
            expected[(u32::from(byte) * 3 % bins) as usize] += 1;
        }
        if let Some(counts) = counted::<_, u64>(histogram, bins as usize, vt, &bytes[before..]) {
            prop_assert_eq!(counts, expected);
        }
        let signed: Vec<i8> = bytes.iter().map(|&byte| byte as i8).collect();
        let even = Definition::even_histogram::<i8, u32>(100, -77, 75).unwrap().define().unwrap();
        let mut expected = vec![0_u32; 100];
        for &byte in signed[before..].iter().filter(|&&byte| (-77..75).contains(&byte)) {
            expected[((i32::from(byte) + 77) * 100 / 152) as usize] += 1;
        }
        if let Some(counts) = counted::<_, u32>(even, 100, vt, &signed[before..]) {
            prop_assert_eq!(counts, expected);
        }
        let levels = Definition::histogram_between::<i8, u32>(&[-128, -3, 0, 127]).unwrap().define().unwrap();
        if let Some(counts) = counted::<_, u32>(levels, 3, vt, &signed[before..]) {
            let numbers = signed[before..].iter().map(|&number| f64::from(number));
            prop_assert_eq!(counts, between(&[-128.0, -3.0, 0.0, 127.0], numbers));
        }
    }

    #[test]
    fn integers_are_counted_in_bins_of_the_same_width((vt, (before, n), seed) in sizes()) {
        let numbers: Vec<i32> = words(before + n, seed).map(|word| (word % 400) as i32 - 200).collect();
        let histogram = Definition::even_histogram::<i32, u64>(7, -101, 102).unwrap().define().unwrap();
        let mut expected = vec![0_u64; 7];
        for &number in numbers[before..].iter().filter(|&&number| (-101..102).contains(&number)) {
            expected[((number + 101) * 7 / 203) as usize] += 1;
        }
        if let Some(counts) = counted::<_, u64>(histogram, 7, vt, &numbers[before..]) {
            prop_assert_eq!(counts, expected);
        }
    }

    /// As far apart as so many bins may be: the largest product of 64 bits.
    #[test]
    fn integers_are_counted_in_bins_as_many_as_may_be(seed in any::<u64>()) {
        let (lower, upper) = (-1_i64 << 49, 1_i64 << 49);
        let ends = [lower - 1, lower, lower + (1 << 36) - 1, lower + (1 << 36), -1, 0, upper - 1, upper];
        let drawn = words(300, seed).map(|word| (word as i64) << 3 >> 13);
        let numbers: Vec<i64> = ends.into_iter().chain(drawn).collect();
        let histogram = Definition::even_histogram::<i64, u32>(1 << 14, lower, upper).unwrap().define().unwrap();
        let mut expected = vec![0_u32; 1 << 14];
        for &number in numbers.iter().filter(|&&number| (lower..upper).contains(&number)) {
            expected[((number - lower) >> 36) as usize] += 1;
        }
        if let Some(counts) = counted::<_, u32>(histogram, 1 << 14, 5, &numbers) {
            prop_assert_eq!(counts, expected);
        }
    }

    #[test]
    fn floats_are_counted_between_levels((vt, (before, n), seed) in sizes()) {
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.1, 1.0];
        let numbers: Vec<f32> = words(before + n, seed)
            .map(|word| if word % 8 == 0 { special[(word >> 8) as usize % 6] } else { (word % 1000) as f32 / 400.0 - 0.5 })
            .collect();
        let levels = [-0.25_f32, 0.0, 0.1, 0.7, 1.0];
        let histogram = Definition::histogram_between::<f32, u32>(&levels).unwrap().define().unwrap();
        if let Some(counts) = counted::<_, u32>(histogram, 4, vt, &numbers[before..]) {
            let levels = levels.map(f64::from);
            prop_assert_eq!(counts, between(&levels, numbers[before..].iter().map(|&number| f64::from(number))));
        }
        // Multiples of a power of two, so that no quotient is rounded.
        let halves: Vec<f16> = words(before + n, seed).map(|word| f16::from_f32((word % 64) as f32 / 8.0 - 2.0)).collect();
        let even = Definition::even_histogram::<f16, u32>(16, f16::from_f32(-1.0), f16::from_f32(3.0)).unwrap();
        if let Some(counts) = counted::<_, u32>(even.define().unwrap(), 16, vt, &halves[before..]) {
            let levels: Vec<f64> = (0..=16).map(|level| f64::from(level) / 4.0 - 1.0).collect();
            prop_assert_eq!(counts, between(&levels, halves[before..].iter().map(|number| number.to_f64())));
        }
    }
}

/// Each has its own ones, though both texts name them alike.
#[test]
fn levels_of_one_histogram_are_none_of_another_one() {
    let numbers = [0.5_f32, 1.5, 2.5, 3.5];
    for (levels, expected) in [([0.0_f32, 1.0, 2.0], [1_u32, 1]), ([2.0, 3.0, 4.0], [1, 1]), ([1.0, 9.0, 10.0], [3, 0])]
    {
        let histogram = Definition::histogram_between::<f32, u32>(&levels).unwrap().define().unwrap();
        let Some(counts) = counted::<_, u32>(histogram, 2, 4, &numbers) else { return };
        assert_eq!(counts, expected, "{levels:?}");
    }
}

/// Blocks count in shared memory, or all of them where the counts lie.
#[test]
fn bins_are_more_than_a_block_has_room_for() {
    let of = |bins: u32| {
        let key = Definition::binned::<u64>(format!("{bins} values"), bins, "return key;").input::<u16>("key");
        [key.clone(), key.cumulated()].map(|definition| definition.define().expect("a histogram"))
    };
    let keys: Vec<u16> = words(20_000, 7).map(|word| if word % 3 == 0 { 0xffff } else { (word >> 5) as u16 }).collect();
    for bins in [8192_u32, 8193, 65_536] {
        let mut expected = vec![0_u64; bins as usize];
        keys.iter().for_each(|&key| {
            if let Some(count) = expected.get_mut(usize::from(key)) {
                *count += 1;
            }
        });
        let [alone, cumulated] = of(bins);
        let Some(counts) = counted::<u16, u64>(alone, bins as usize, 8, &keys[..]) else { return };
        assert!(counts == expected, "{bins} bins");
        let sums = counted::<u16, u64>(cumulated, bins as usize, 8, &keys[..]).expect("it was compiled");
        let through = expected.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        assert!(sums.into_iter().eq(through), "{bins} cumulated bins");
    }
}

#[test]
fn several_arrays_and_places_say_the_bin_and_a_number_of_the_device_how_many() {
    let grey = Definition::binned::<u32>("grey", 40, "return i < 7 ? 39 : (red + green) / 20;")
        .input::<u8>("red")
        .input::<u16>("green")
        .define()
        .expect("a histogram");
    let red: Vec<u8> = (0..300_u32).map(|place| (place * 37 % 251) as u8).collect();
    let green: Vec<u16> = (0..300).map(|place| place * 53 % 509).collect();
    // Vectors of both begin at the same places, or not.
    for (vt, offsets) in [(3, [0, 0]), (8, [0, 0]), (2, [1, 3]), (2, [1, 2]), (8, [5, 5]), (8, [0, 1])] {
        let (red, green) = (&red[offsets[0]..][..294], &green[offsets[1]..][..294]);
        for count in [0_u64, 5, 290, 294] {
            let mut expected = vec![0_u32; 40];
            for place in 0..count as usize {
                let bin = if place < 7 { 39 } else { (usize::from(red[place]) + usize::from(green[place])) / 20 };
                expected.get_mut(bin).into_iter().for_each(|count| *count += 1);
            }
            let mut counts = vec![1; 40];
            let mut scanner = scanner(Strategy::Lookback, vt);
            let run = scanner.run(grey).input(red).input(green).output(&mut counts).count_from(&count);
            if is_made(run.histogram()) {
                assert_eq!(counts, expected, "{count} of {vt} a thread, {offsets:?}");
            }
        }
    }
}

#[test]
fn what_is_no_histogram_is_refused() {
    let levels = |result: Result<Definition, NoSuchProblem>, says: &str| {
        let text = result.expect_err("no levels").to_string();
        assert!(text.contains(says), "{text}");
    };
    levels(Definition::histogram_between::<u8, u32>(&[3]), "two");
    levels(Definition::histogram_between::<u8, u32>(&[3, 9, 9]), "rise");
    levels(Definition::histogram_between::<i64, u32>(&[3, -9]), "rise");
    levels(Definition::histogram_between::<f64, u32>(&[0.0, f64::NAN]), "finite");
    levels(Definition::even_histogram::<f32, u32>(4, 1.0, 1.0), "rise");
    levels(Definition::even_histogram::<u64, u32>(4, 0, u64::MAX), "2^64");
    levels(Definition::even_histogram::<i64, u32>((1 << 14) + 1, -1 << 49, 1 << 49), "2^64");
    levels(Definition::even_histogram::<f32, u32>(4, -3e38, 3e38), "apart");
    levels(Definition::even_histogram::<f64, u32>(4, -1e308, 1e308), "apart");
    levels(Definition::byte_histogram::<u16, u32>(), "u16");
    levels(Definition::histogram_between::<u32, u32>(&(0..8194).collect::<Vec<_>>()), "8193");
    let bins = || Definition::binned::<u32>("bins", 16, "return x;").input::<u32>("x");
    assert!(bins().define().is_ok());
    for refused in [
        Definition::binned::<u32>("bins", 0, "return x;").input::<u32>("x"),
        bins().load("return x;"),
        bins().output::<u32>("y"),
        bins().keep("return true;"),
        bins().input_in_runs::<u32>("z"),
        Definition::select::<u32>("return x > 4;").cumulated(),
    ] {
        let error = refused.define().expect_err("no histogram");
        assert!(matches!(error, DefinitionError::Kind { .. }), "{error}");
    }
    let missing = |definition: Definition| {
        let error = definition.define().expect_err("it lacks something");
        assert!(matches!(error, DefinitionError::Missing { .. }), "{error}");
    };
    missing(Definition::binned::<u32>("bins", 16, " ").input::<u32>("x"));
    missing(Definition::binned::<u32>("bins", 16, "return 0;"));

    let defined = bins().define().expect("a histogram");
    let x = [3_u32, 1, 2];
    let mut counts = [0_u32; 16];
    let refused = |result: Result<(), DeviceError>, words: &str| {
        let text = result.expect_err("refused").to_string();
        assert!(text.contains(words), "{text}");
    };
    let mut lookback = scanner(Strategy::Lookback, 2);
    refused(lookback.run(defined).input(&x).output(&mut counts).inclusive(), "`histogram`");
    refused(lookback.run(defined).input(&x).output(&mut counts).reversed().histogram(), "one result");
    refused(lookback.run(defined).input(&x).output(&mut counts[..15]).histogram(), "as there are bins");
    refused(lookback.run(defined).input(&x).output(&mut counts).rows(3).histogram(), "no scan");
    refused(scanner(Strategy::OneWave, 2).run(defined).input(&x).output(&mut counts).histogram(), "'lookback'");
}
