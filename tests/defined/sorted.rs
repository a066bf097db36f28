//! Sorts over slices on the CPU device, each against a stable sort by the numbers themselves.

use super::{is_made, scanner};
use half::{bf16, f16};
use lookback::element::{Definition, DefinitionError, Element};
use lookback::lab::device::DeviceError;
use lookback::run::AnyScanner;
use lookback::strategy::{ConfigError, Strategy};
use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use std::cmp::Ordering;
use std::ops::Range;

/// A type of keys: how drawn bits become one, and how two are ordered.
trait Key: Element + Copy {
    fn of_bits(bits: u64) -> Self;
    fn order(self, other: Self) -> Ordering;
    /// The bits of a number that is ordered as the keys are.
    fn ordered(self) -> u64;
}

macro_rules! keys {
    ($($key:ty: $order:ident, $bits:ty, $ordered:expr;)+) => {$(
        impl Key for $key {
            fn of_bits(bits: u64) -> Self {
                bytemuck::cast(bits as $bits)
            }
            fn order(self, other: Self) -> Ordering {
                self.$order(&other)
            }
            fn ordered(self) -> u64 {
                let ordered: fn($bits) -> $bits = $ordered;
                u64::from(ordered(bytemuck::cast(self)))
            }
        }
    )+};
}
keys! {
    u8: cmp, u8, |bits| bits;
    u16: cmp, u16, |bits| bits;
    u32: cmp, u32, |bits| bits;
    u64: cmp, u64, |bits| bits;
    i8: cmp, u8, |bits| bits ^ 0x80;
    i16: cmp, u16, |bits| bits ^ 0x8000;
    i32: cmp, u32, |bits| bits ^ 0x8000_0000;
    i64: cmp, u64, |bits| bits ^ (1 << 63);
    f16: total_cmp, u16, |bits| if bits >> 15 == 1 { !bits } else { bits | 0x8000 };
    bf16: total_cmp, u16, |bits| if bits >> 15 == 1 { !bits } else { bits | 0x8000 };
    f32: total_cmp, u32, |bits| if bits >> 31 == 1 { !bits } else { bits | 0x8000_0000 };
    f64: total_cmp, u64, |bits| if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
}

/// What keys are like.
#[derive(Debug, Clone, Copy)]
enum Like {
    Random,
    Equal,
    Few,
    Sorted,
    Reversed,
    OneOutlier,
    /// Zeros and NaNs of both signs, infinities, the smallest and the largest.
    Special,
}

fn keys<K: Key>(like: Like, n: usize, seed: u64) -> Vec<K> {
    let mut state = seed | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let bits = 8 * size_of::<K>() as u32;
    let (sign, all) = (1_u64 << (bits - 1), u64::MAX >> (64 - bits));
    // Infinities of the four types of floats, and what is behind them.
    let special = [0, sign, all, all >> 1, 1, sign | 1, 0x7c00, 0x7c01, 0x7f80, 0x7f81, 0x7f80_0000, 0xff80_0001]
        .into_iter()
        .chain([0x7ff0 << 48, 0xfff0 << 48 | 1]);
    let special: Vec<u64> = special.collect();
    let mut keys: Vec<K> = (0..n)
        .map(|place| {
            let drawn = draw();
            K::of_bits(match like {
                Like::Equal => seed,
                Like::Few => (drawn % 3) * (all / 3),
                Like::OneOutlier if place != (seed % n as u64) as usize => seed >> 3,
                Like::Special => special[drawn as usize % special.len()],
                _ => drawn,
            })
        })
        .collect();
    match like {
        Like::Sorted => keys.sort_by(|a, b| a.order(*b)),
        Like::Reversed => keys.sort_by(|a, b| b.order(*a)),
        _ => {}
    }
    keys
}

#[derive(Debug, Clone)]
struct Drawn {
    like: Like,
    vt: u32,
    tiles: usize,
    more: i64,
    bits: Option<(u32, u32)>,
    seed: u64,
}

fn drawn() -> impl proptest::strategy::Strategy<Value = Drawn> {
    use Like::{Equal, Few, OneOutlier, Random, Reversed, Sorted, Special};
    (
        prop::sample::select(&[Random, Equal, Few, Sorted, Reversed, OneOutlier, Special][..]),
        prop::sample::select(&[1_u32, 2, 3, 5][..]),
        (0_usize..5, -2_i64..3),
        prop::option::of((0_u32..64, 1_u32..64)),
        any::<u64>(),
    )
        .prop_map(|(like, vt, (tiles, more), bits, seed)| Drawn { like, vt, tiles, more, bits, seed })
}

/// Each kernel takes the compiler a second, so that a type of keys is sorted in one direction, alone or with other arrays.
#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Ascending,
    Descending,
    AscendingWithOthers,
    DescendingWithOthers,
}

fn check<K: Key>(sort: Sort, drawn: &Drawn) -> Result<(), TestCaseError> {
    let is_descending = matches!(sort, Sort::Descending | Sort::DescendingWithOthers);
    let has_others = matches!(sort, Sort::AscendingWithOthers | Sort::DescendingWithOthers);
    let Drawn { like, vt, tiles, more, bits, seed } = *drawn;
    let n = (tiles * 64 * vt as usize).saturating_add_signed(more as isize);
    let width = 8 * size_of::<K>() as u32;
    let bits: Range<u32> = bits.map_or(0..width, |(first, count)| {
        let first = first % width;
        first..(first + count).min(width)
    });
    let keys = keys::<K>(like, n, seed);
    let part = |place: usize| {
        let turned = if is_descending { !keys[place].ordered() } else { keys[place].ordered() };
        turned << (64 - bits.end) >> (64 - bits.end + bits.start)
    };
    let mut places: Vec<usize> = (0..n).collect();
    if bits == (0..width) {
        // By the numbers themselves.
        places.sort_by(|&a, &b| if is_descending { keys[b].order(keys[a]) } else { keys[a].order(keys[b]) });
    } else {
        places.sort_by_key(|&place| part(place));
    }
    let sort = Definition::sort::<K>().expect("numbers").bits(bits);
    let sort = if is_descending { sort.descending() } else { sort };
    let mut sorted = vec![K::of_bits(0); n];
    let mut scanner = scanner(Strategy::Lookback, vt);
    let owners: Vec<u32> = (0..n as u32).collect();
    let weights: Vec<Wide> = owners.iter().map(|&owner| Wide([u64::from(owner), !u64::from(owner)])).collect();
    let (mut sorted_owners, mut sorted_weights) = (vec![0; n], vec![Wide([0; 2]); n]);
    let made = if has_others {
        let sort = sort.with::<u32>("owner").with::<Wide>("weight").define().expect("a sort");
        let run = scanner.run(sort).input(&keys).input(&owners).input(&weights);
        run.output(&mut sorted).output(&mut sorted_owners).output(&mut sorted_weights).sort()
    } else {
        scanner.run(sort.define().expect("a sort")).input(&keys).output(&mut sorted).sort()
    };
    if !is_made(made) {
        return Ok(());
    }
    let expected: Vec<K> = places.iter().map(|&place| keys[place]).collect();
    prop_assert_eq!(bytemuck::cast_slice::<K, u8>(&sorted), bytemuck::cast_slice::<K, u8>(&expected));
    if has_others {
        prop_assert_eq!(&sorted_owners, &places.iter().map(|&place| place as u32).collect::<Vec<_>>());
        prop_assert_eq!(sorted_weights, places.iter().map(|&place| weights[place]).collect::<Vec<_>>());
    }
    Ok(())
}

/// 16 bytes that are no number.
#[repr(C, align(16))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
struct Wide([u64; 2]);

impl lookback::element::ArrayElement for Wide {
    const CUDA_TYPE: &'static str = "wide";
}

macro_rules! properties {
    ($($test:ident: $key:ty, $sort:ident;)+) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
            $(#[test]
            fn $test(drawn in drawn()) {
                check::<$key>(Sort::$sort, &drawn)?;
            })+
        }
    };
}
properties! {
    u8_are_sorted: u8, AscendingWithOthers;
    u16_are_sorted: u16, Descending;
    u32_are_sorted: u32, AscendingWithOthers;
    u64_are_sorted: u64, Descending;
    i8_are_sorted: i8, Descending;
    i16_are_sorted: i16, Ascending;
    i32_are_sorted: i32, Ascending;
    i64_are_sorted: i64, DescendingWithOthers;
    f16_are_sorted: f16, Ascending;
    bf16_are_sorted: bf16, Ascending;
    f32_are_sorted: f32, DescendingWithOthers;
    f64_are_sorted: f64, Ascending;
}

#[test]
fn as_many_are_sorted_as_the_device_says() {
    let sort = Definition::sort::<i32>().expect("numbers").define().expect("a sort");
    let keys: Vec<i32> = (0..1000).map(|place| (place * 7919) % 1009 - 500).collect();
    for count in [0_u32, 1, 128, 700, 1000] {
        let mut sorted = vec![i32::MAX; 1000];
        let mut scanner = scanner(Strategy::Lookback, 2);
        if !is_made(scanner.run(sort).input(&keys).output(&mut sorted).count_from(&count).sort()) {
            return;
        }
        let (first, behind) = sorted.split_at(count as usize);
        let mut expected = keys[..count as usize].to_vec();
        expected.sort_unstable();
        assert_eq!(first, expected);
        assert!(behind.iter().all(|&key| key == i32::MAX), "{count}");
    }
}

#[test]
fn what_is_no_sort_is_refused() {
    let sort = || Definition::sort::<u16>().expect("numbers");
    assert!(sort().bits(3..16).descending().with::<u8>("flag").define().is_ok());
    for refused in [
        sort().bits(4..4),
        sort().bits(0..17),
        sort().bits(Range { start: 9, end: 3 }),
        sort().load("return key;"),
        sort().keep("return true;"),
        sort().input::<u32>("x"),
        sort().output::<u32>("y"),
        sort().input_in_runs::<u32>("x").output::<u32>("y"),
        sort().identity("0").combine("return left;"),
        Definition::filter("filter")
            .input::<u32>("x")
            .keep("return x;")
            .output::<u32>("y")
            .store("y = x;")
            .descending(),
        Definition::select::<u32>("return x > 4;").bits(0..8),
    ] {
        let error = refused.define().expect_err("no sort");
        assert!(matches!(error, DefinitionError::Kind { .. }), "{error}");
    }
    let twice = sort().with::<u8>("key").define();
    assert!(matches!(&twice, Err(DefinitionError::Name { name, .. }) if name == "key"), "{twice:?}");
    let many = ["a", "b", "c", "d"].into_iter().fold(sort(), |sort, name| sort.with::<u8>(name)).define();
    assert!(matches!(many, Err(DefinitionError::TooManyArrays { .. })));
}

#[test]
fn what_no_sort_has_is_refused_before_anything_is_compiled() {
    let sort = Definition::sort::<u16>().expect("numbers").define().expect("a sort");
    let keys = [3_u16, 1, 2];
    let mut sorted = [0_u16; 3];
    let of = |strategy| scanner(strategy, 2);
    let refused = |result: Result<(), DeviceError>, words: &[&str]| {
        let text = result.expect_err("refused").to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let mut lookback = of(Strategy::Lookback);
    refused(lookback.run(sort).input(&keys).output(&mut sorted).inclusive(), &["`sort`"]);
    refused(lookback.run(sort).input(&keys).output(&mut sorted).compact(), &["`sort`"]);
    refused(lookback.run(sort).input(&keys).output(&mut sorted).reversed().sort(), &["descending"]);
    refused(lookback.run(sort).input(&keys).output(&mut sorted).reproducible().sort(), &["descending"]);
    refused(lookback.run(sort).input(&keys).output(&mut sorted).rows(3).sort(), &["no scan"]);
    refused(lookback.run(sort).input(&keys).output(&mut sorted).initial(&0_u32).sort(), &["no scan"]);
    let mut kept = 0_u32;
    refused(lookback.run(sort).input(&keys).output(&mut sorted).count_into(&mut kept).sort(), &["count_into"]);
    refused(lookback.run(sort).input(&keys[..2]).output(&mut sorted).sort(), &["elements"]);
    refused(lookback.run(sort).in_place(&mut sorted).sort(), &["overlap"]);
    let scan = Definition::select::<u16>("return x > 1;").define().expect("a selection");
    refused(lookback.run(scan).input(&keys).output(&mut sorted).sort(), &["`compact`"]);
    let error = of(Strategy::Lookahead).run(sort).input(&keys).output(&mut sorted).sort().expect_err("it scans");
    let DeviceError::Config(ConfigError::ScansAlone { .. }) = error else { panic!("{error}") };
    assert!(error.to_string().contains("'lookback'"), "{error}");
}

/// What is stored by its counts, in vectors and at their ends.
#[test]
fn bytes_alone_are_stored_at_any_address() {
    let ascending = Definition::sort::<u8>().expect("numbers").define().expect("a sort");
    let descending = Definition::sort::<i8>().expect("numbers").descending().define().expect("a sort");
    for n in [1, 15, 16, 17, 1000, 3001] {
        let keys: Vec<u8> = (0..n).map(|place| (place * 7919 % 251) as u8 ^ 0x80).collect();
        let signed: &[i8] = bytemuck::cast_slice(&keys);
        for offset in [0, 1, 7, 15, 16] {
            let mut scanner = scanner(Strategy::Lookback, 2);
            let mut sorted = vec![0xaa_u8; n + 40];
            let output = &mut sorted[offset..offset + n];
            if !is_made(scanner.run(ascending).input(&keys).output(output).sort()) {
                return;
            }
            let mut expected = keys.clone();
            expected.sort_unstable();
            assert!(sorted[offset..offset + n] == expected, "{n} at {offset}");
            let mut around = sorted[..offset].iter().chain(&sorted[offset + n..]);
            assert!(around.all(|&byte| byte == 0xaa), "{n} at {offset}: written around it");
            let mut sorted = vec![0x55_i8; n + 40];
            assert!(is_made(scanner.run(descending).input(signed).output(&mut sorted[offset..offset + n]).sort()));
            let mut expected = signed.to_vec();
            expected.sort_unstable_by(|a, b| b.cmp(a));
            assert!(sorted[offset..offset + n] == expected, "{n} at {offset}, descending");
        }
    }
}
