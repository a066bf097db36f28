//! Reproducible scans: the bits of the documented order, in every strategy that has them.

use super::columns::Shape;
use super::index_order::{Order, OrderDown, bits, floats};
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

/// The bits, where all that are no numbers are one.
fn one_nan(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
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
    made.then(|| h[to..].iter().map(|&value| one_nan(value)).collect())
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

/// Shapes of one strip and of several, whose rows are whole lines of 16 bytes or not, with a tile that is not full.
fn shapes_of_columns() -> impl proptest::strategy::Strategy<Value = Shape> {
    let any = (1_usize..4, 1_usize..2000, prop::sample::select(vec![2_usize, 3, 4, 8, 31, 33, 64, 100, 132, 260]));
    // So many that a case takes less than a second.
    any.prop_map(|(outer, length, inner)| Shape { outer, length: length.min(60_000 / (outer * inner)).max(1), inner })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// In the crate's tiles and in small ones, of which columns have several periods; wherever the arrays begin and however many
    /// matrices there are.
    #[test]
    fn a_reproducible_sum_down_columns_has_the_bits_of_the_order_that_is_documented(
        shape in shapes_of_columns(),
        tile in prop::sample::select(vec![None, Some((4, 32)), Some((1, 32)), Some((3, 64)), Some((8, 128))]),
        seed: u64,
        from in 0_usize..4,
        to in 0_usize..4,
        is_reversed: bool,
        is_exclusive: bool,
        is_in_place: bool,
    ) {
        let n = shape.elements();
        let order = OrderDown::of(shape.inner, [&[4], &[4]], 4, tile);
        let x = [vec![f32::NAN; from], floats(n, seed)].concat();
        let mut y = if is_in_place { x.clone() } else { vec![f32::INFINITY; n + to] };
        let config = tile.map(|(vt, block_threads)| ScanConfig {
            vt: vt as u32,
            block_threads: block_threads as u32,
            ..ScanConfig::default()
        });
        let mut scanner = hostile(Strategy::Lookahead, 3);
        if let Some(config) = config {
            scanner = scanner.with_config(config);
        }
        let run = scanner.run(sums());
        let run = match is_in_place {
            true => run.in_place(&mut y[from..]),
            false => run.input(&x[from..]).output(&mut y[to..]),
        };
        let run = run.axis(shape.length, shape.inner).reproducible();
        let run = if is_reversed { run.reversed() } else { run };
        if !is_made(if is_exclusive { run.exclusive() } else { run.inclusive() }) {
            return Ok(());
        }
        let y = &y[if is_in_place { from } else { to }..];
        for places in shape.columns(is_reversed) {
            let column: Vec<f32> = places.iter().map(|&place| x[from + place]).collect();
            let expected = bits(&order.scan(&column, 0.0, 0.0, is_exclusive, |a, b| a + b));
            let made: Vec<f32> = places.iter().map(|&place| y[place]).collect();
            prop_assert_eq!(bits(&made), expected, "{:?}", order);
        }
    }
}

/// Narrow elements in wide states, wide ones, and no more rows than a number says, which are no whole tile.
#[test]
fn columns_of_other_widths_and_counted_ones_have_their_order() {
    let shape = Shape { outer: 1, length: 700, inner: 132 };
    let n = shape.elements();
    let (order, x) = (OrderDown::of(shape.inner, [&[1], &[4]], 4, None), floats(n, 41));
    let bytes: Vec<u8> = x.iter().map(|x| (x.to_bits() >> 11) as u8).collect();
    let of_bytes = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::F32).expect("numbers");
    // Thirds, whose sums are rounded.
    let thirds = of_bytes.load("return static_cast<float>(x) / 3.0f;").define().expect("sums");
    let (mut y, mut z, rows) = (vec![0.0_f32; n], vec![0.0_f64; n], 411 * shape.inner as u32);
    let mut scanner = hostile(Strategy::Lookahead, 3);
    let run = scanner.run(thirds).input(&bytes).output(&mut y).columns(shape.inner).count_from(&rows);
    if !is_made(run.reproducible().inclusive()) {
        return;
    }
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x) / 3.0).collect();
    let doubles = Definition::of_numbers(Operator::Sum, ElementType::F64, ElementType::F64).expect("numbers");
    let run = scanner.run(doubles.define().expect("sums")).input(&wide).output(&mut z).columns(shape.inner);
    run.reproducible().inclusive().expect("it is made");
    let order_of_doubles = OrderDown::of(shape.inner, [&[8], &[8]], 8, None);
    for places in shape.columns(false) {
        let column: Vec<f32> = places[..411].iter().map(|&place| f32::from(bytes[place]) / 3.0).collect();
        let expected = order.scan(&column, 0.0, 0.0, false, |a, b| a + b);
        assert!(places.iter().zip(expected).all(|(&place, expected)| y[place].to_bits() == expected.to_bits()));
        assert!(places[411..].iter().all(|&place| y[place].to_bits() == 0));
        let column: Vec<f64> = places.iter().map(|&place| wide[place]).collect();
        let expected = order_of_doubles.scan(&column, 0.0, 0.0, false, |a, b| a + b);
        assert!(places.iter().zip(expected).all(|(&place, expected)| z[place].to_bits() == expected.to_bits()));
    }
}

/// What `auto` takes, of two arrays whose products are rounded, from a state a column, over more than a period of tiles.
#[test]
fn a_reproducible_recurrence_down_columns_has_them_too() {
    const COLUMNS: usize = 132;
    let order = OrderDown::of(COLUMNS, [&[4, 4], &[4]], 8, None);
    let shape = Shape { outer: 1, length: order.period_rows() + order.tile_rows() + 5, inner: COLUMNS };
    let n = shape.elements();
    let (a, b) = (floats(n, 31), floats(n, 32));
    let mut a: Vec<f32> = a.iter().map(|a| 0.5 + a.fract() / 2.0).collect();
    // An identity (1, 0) that is combined with it and has no place in the order makes NaN of it.
    a[COLUMNS * (order.tile_rows() / 2) + 7] = f32::INFINITY;
    let states: Vec<[f32; 2]> = (0..COLUMNS).map(|j| [1.0, j as f32 / 3.0]).collect();
    let mut h = vec![0.0_f32; n];
    let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a recurrence");
    let mut scanner = HostScanner::new(CpuSettings::default());
    let run = scanner.run(recurrence).input(&a).input(&b).output(&mut h).initial_from(&states);
    if !is_made(run.columns(COLUMNS).reproducible().inclusive()) {
        return;
    }
    let combine = |left: [f32; 2], right: [f32; 2]| [left[0] * right[0], right[0] * left[1] + right[1]];
    for (places, state) in shape.columns(false).zip(states) {
        let items: Vec<[f32; 2]> = places.iter().map(|&place| [a[place], b[place]]).collect();
        let expected = order.scan(&items, [1.0, 0.0], state, false, combine);
        let is_right = |(&place, state): (&usize, &[f32; 2])| one_nan(h[place]) == one_nan(state[1]);
        assert!(places.iter().zip(&expected).all(is_right), "column {}", places[0]);
    }
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
    for strategy in [Strategy::Lookback, Strategy::Chained, Strategy::ReduceThenScan] {
        let mut scanner = HostScanner::new(CpuSettings::default()).with_strategy(strategy);
        let error = refused(scanner.run(sums()).input(&x).output(&mut y).columns(3).reproducible().inclusive());
        assert_eq!(error, ConfigError::ReproducibleColumns { strategy: strategy.name() });
    }
    let mut any = HostScanner::new(CpuSettings::default());
    let run = any.run(sums()).input(&x[..597]).row_stride(6).output(&mut y[..300]);
    let error = refused(run.columns(3).reproducible().inclusive());
    assert_eq!(error, ConfigError::ReproducibleStrides);
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
