//! Reproducible scans: the bits of the documented order, in every strategy that has them.

use super::index_order::{Order, bits, floats};
use super::*;
use lookback::cpu::{BlockOrder, Schedule};
use lookback::run::AnyScanner;
use lookback::strategy::{Composition, Pattern};
use proptest::strategy::Strategy as _;

/// Those that combine tiles one after the other.
const OFFERING: [Strategy; 5] = {
    use Strategy::{Chained, Lookahead, Lookback, OneWave, SingleBlock};
    [Lookahead, Lookback, OneWave, SingleBlock, Chained]
};

fn sums() -> Defined {
    Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32).expect("numbers").define().expect("sums")
}

/// Few blocks, of which any may go on, so that tiles find aggregates as often as prefixes.
fn hostile(strategy: Strategy, resident_blocks: u32) -> HostScanner {
    let schedule = Schedule::Random { preemption: 0.01 };
    let block_order = BlockOrder::Random;
    let settings = CpuSettings { check_bounds: true, schedule, block_order, resident_blocks, ..CpuSettings::default() };
    HostScanner::new(settings).with_strategy(strategy)
}

#[test]
fn a_reproducible_sum_has_the_bits_of_the_order_that_is_documented() {
    let order = Order::OF_4_BYTES;
    for n in [1, 130, order.tile() - 1, order.tile() + 1, 4 * order.tile() + 77] {
        let x = floats(n, 7 + n as u64);
        let expected = bits(&order.scan(&x, 0.0, 0.0, |a, b| a + b));
        for strategy in OFFERING {
            let mut y = vec![0.0_f32; n];
            let mut scanner = hostile(strategy, 3);
            if !is_made(scanner.run(sums()).input(&x).output(&mut y).reproducible().inclusive()) {
                return;
            }
            assert_eq!(bits(&y), expected, "{strategy}, {n}");
        }
    }
}

#[test]
fn by_default_strategies_round_differently_so_that_the_comparison_can_fail() {
    let n = 3 * Order::OF_4_BYTES.tile() + 77;
    let x = floats(n, 3);
    let of = |strategy| {
        let mut y = vec![0.0_f32; n];
        hostile(strategy, 3).inclusive(Operator::Sum, &x, &mut y).expect("it is compiled into the crate");
        bits(&y)
    };
    assert_ne!(of(Strategy::Lookahead), of(Strategy::Chained));
}

/// A recurrence whose products are rounded before they are added, of two arrays and a state of 8 bytes.
#[test]
fn a_reproducible_recurrence_has_them_too() {
    let n = 2 * Order::OF_4_BYTES.tile() + 4321;
    let (a, b) = (floats(n, 11), floats(n, 12));
    let a: Vec<f32> = a.iter().map(|a| 0.5 + a.fract() / 2.0).collect();
    let items: Vec<[f32; 2]> = a.iter().zip(&b).map(|(&a, &b)| [a, b]).collect();
    let combine = |left: [f32; 2], right: [f32; 2]| [left[0] * right[0], right[0] * left[1] + right[1]];
    let states = Order::OF_4_BYTES.scan(&items, [1.0, 0.0], [1.0, 0.25], combine);
    let expected: Vec<u32> = states.iter().map(|state| state[1].to_bits()).collect();
    let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a recurrence");
    for strategy in [Strategy::Lookahead, Strategy::Lookback, Strategy::OneWave] {
        let mut h = vec![0.0_f32; n];
        let mut scanner = hostile(strategy, 4);
        let run = scanner.run(recurrence).input(&a).input(&b).output(&mut h).initial(&[1.0_f32, 0.25]).reproducible();
        if !is_made(run.inclusive()) {
            return;
        }
        assert_eq!(bits(&h), expected, "{strategy}");
    }
}

#[test]
fn doubles_and_wider_sums_have_their_order() {
    let n = Order::OF_8_BYTES.tile() + 999;
    let x = floats(n, 21);
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let expected = Order::OF_8_BYTES.scan(&wide, 0.0, 0.0, |a, b| a + b);
    let of_floats = Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F64).expect("numbers");
    for strategy in [Strategy::Lookahead, Strategy::Lookback] {
        let mut y = vec![0.0_f64; n];
        let defined = of_floats.clone().define().expect("sums");
        if !is_made(hostile(strategy, 2).run(defined).input(&x).output(&mut y).reproducible().inclusive()) {
            return;
        }
        assert!(y.iter().zip(&expected).all(|(y, expected)| y.to_bits() == expected.to_bits()), "{strategy}");
    }
}

/// What tells where the scan begins anew.
#[derive(Debug, Clone, Copy)]
enum Anew {
    Never,
    /// From the end, too.
    EachRow(usize),
    AtFlags,
}

/// A recurrence whose identity (1, 0) changes bits: of zeros with a sign, and of infinite factors. All NaNs are one.
fn recurrence_bits(
    (strategy, config, resident): (Strategy, ScanConfig, u32),
    [a, b]: [&[f32]; 2],
    [from, to]: [usize; 2],
    anew: Anew,
    is_exclusive: bool,
) -> Option<Vec<u32>> {
    let n = a.len();
    let moved = |array: &[f32]| [&vec![0.0; from][..], array].concat();
    let (a, b) = (moved(a), moved(b));
    let flags: Vec<u8> = (0..n).map(|i| u8::from(i * i % 97 < 3)).collect();
    let mut h = vec![f32::INFINITY; n + to];
    let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a recurrence");
    let mut scanner = hostile(strategy, resident).with_config(config);
    let run = scanner.run(recurrence).input(&a[from..]).input(&b[from..]).output(&mut h[to..]).reproducible();
    let run = match anew {
        Anew::Never => run.initial(&[1.0_f32, 0.25]),
        Anew::EachRow(row) => run.rows(row).reversed(),
        Anew::AtFlags => run.head_flags(&flags),
    };
    let made = is_made(if is_exclusive { run.exclusive() } else { run.inclusive() });
    let bits_of = |value: &f32| if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() };
    made.then(|| h[to..].iter().map(bits_of).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// Wherever the arrays begin, in one piece, by rows from their ends and by flags, however blocks are scheduled, in tiles of
    /// any size.
    #[test]
    fn every_strategy_gives_the_same_bits_at_any_alignment(
        strategies in prop::sample::subsequence(OFFERING.to_vec(), 2),
        (vt, block_threads) in prop_oneof![Just((24, 256)), (1_u32..12, 1_u32..8).prop_map(|(vt, warps)| (vt, 32 * warps))],
        tiles in 0_usize..12,
        more in 1_usize..500,
        offsets in [0_usize..8, 0_usize..8],
        anew in prop_oneof![Just(Anew::Never), (1_usize..4_000).prop_map(Anew::EachRow), Just(Anew::AtFlags)],
        is_exclusive in any::<bool>(),
        has_infinity in any::<bool>(),
        resident in 1_u32..5,
        seed in any::<u64>(),
    ) {
        let n = (tiles * (vt * block_threads) as usize).min(15_000) + more;
        let n = if let Anew::EachRow(row) = anew { n.div_ceil(row) * row } else { n };
        let random = floats(n, seed);
        let a: Vec<f32> = random.iter().map(|x| [-1.0, 0.5, 0.75, 1.0][x.to_bits() as usize / 7 % 4]).collect();
        let b = random.iter().enumerate().map(|(i, x)| if i % 3 == 0 { -0.0 } else { *x });
        let b: Vec<f32> = b.map(|x| if has_infinity && x > 5e5 { f32::INFINITY } else { x }).collect();
        let config = ScanConfig { vt, block_threads, composition: Composition::ReduceThenScan, ..ScanConfig::default() };
        // Keys and flags take as many kernels again.
        let second = if matches!(anew, Anew::AtFlags) { Strategy::Lookback } else { strategies[1] };
        let first = if matches!(anew, Anew::AtFlags) { Strategy::Lookahead } else { strategies[0] };
        let of = |strategy, offsets| recurrence_bits((strategy, config, resident), [&a, &b], offsets, anew, is_exclusive);
        let expected = of(first, [0, 0]);
        for (strategy, offsets) in [(first, offsets), (second, [offsets[1], offsets[0]])] {
            let (expected, found) = (expected.as_ref(), of(strategy, offsets));
            let at = expected.zip(found.as_ref()).and_then(|(a, b)| a.iter().zip(b).position(|(a, b)| a != b));
            prop_assert_eq!(at, None, "{} and {}", first, strategy);
        }
    }
}

/// So many tiles that look-back goes back over windows without a prefix and forward again, and look-ahead and `one-wave` read
/// more than 256 at a time.
#[test]
fn windows_that_are_passed_over_are_read_again() {
    let config =
        ScanConfig { vt: 1, block_threads: 32, composition: Composition::ReduceThenScan, ..ScanConfig::default() };
    let x = floats(32 * 620, 77);
    let mut found = Vec::new();
    for (strategy, resident) in
        [(Strategy::Chained, 2), (Strategy::Lookback, 200), (Strategy::Lookahead, 2), (Strategy::OneWave, 2)]
    {
        let mut y = vec![0.0_f32; x.len()];
        let mut scanner = hostile(strategy, resident).with_config(config);
        if !is_made(scanner.run(sums()).input(&x).output(&mut y).reproducible().inclusive()) {
            return;
        }
        found.push(bits(&y));
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn sums_of_what_is_not_negative_never_fall_where_they_are_added_one_by_one() {
    let x = floats(1 << 17, 5);
    let mut y = vec![0.0_f32; x.len()];
    let mut scanner = HostScanner::new(CpuSettings::default()).with_strategy(Strategy::Sequential);
    scanner.inclusive(Operator::Sum, &x, &mut y).expect("it is compiled into the crate");
    assert!(y.windows(2).all(|pair| pair[0] <= pair[1]));
}

/// Neither the order of today nor the reproducible one is monotone: a tree of a few values more may come to a little less.
#[test]
fn sums_of_what_is_not_negative_may_fall_by_a_rounding_in_both_modes() {
    let n = 1 << 17;
    let x = floats(n, 5);
    for is_reproducible in [false, true] {
        let mut y = vec![0.0_f32; n];
        let mut scanner = HostScanner::new(CpuSettings::default()).with_strategy(Strategy::Chained);
        let made = match is_reproducible {
            true => scanner.run(sums()).input(&x).output(&mut y).reproducible().inclusive(),
            false => scanner.inclusive(Operator::Sum, &x, &mut y),
        };
        if !is_made(made) {
            return;
        }
        let falls = y.windows(2).filter(|pair| pair[1] < pair[0]).count();
        assert!(falls > 0, "reproducible: {is_reproducible}");
        // By no more than the roundings of a tile.
        assert!(y.windows(2).all(|pair| pair[1] >= pair[0] * (1.0 - 16.0 * f32::EPSILON)));
    }
}

#[test]
fn what_cannot_be_reproducible_is_refused() {
    let x = floats(600, 1);
    let mut y = vec![0.0_f32; 600];
    let refused = |error: Result<(), DeviceError>| match error {
        Err(DeviceError::Config(error)) => error,
        other => panic!("{other:?}"),
    };
    let mut trees = HostScanner::new(CpuSettings::default()).with_strategy(Strategy::ReduceThenScan);
    let error = refused(trees.run(sums()).input(&x).output(&mut y).reproducible().inclusive());
    assert!(matches!(error, ConfigError::NotReproducible { strategy: "reduce-then-scan", .. }), "{error}");
    let mut any = HostScanner::new(CpuSettings::default());
    let error = refused(any.run(sums()).input(&x).output(&mut y).columns(3).reproducible().inclusive());
    assert_eq!(error, ConfigError::ReproducibleColumns);
    let of = |config| HostScanner::new(CpuSettings::default()).with_strategy(Strategy::Lookback).with_config(config);
    let in_order = ScanConfig { composition: Composition::ReduceThenScan, ..ScanConfig::default() };
    for config in [
        ScanConfig { block_threads: 288, ..in_order },
        ScanConfig { pattern: Pattern::Sklansky, ..in_order },
        ScanConfig { composition: Composition::ScanThenPropagate, ..in_order },
    ] {
        let error = refused(of(config).run(sums()).input(&x).output(&mut y).reproducible().inclusive());
        assert_eq!(error, ConfigError::ReproducibleBlock);
    }
}
