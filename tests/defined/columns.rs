//! Scans along any axis of a tensor: each column against its own loop.

use super::*;
use lookback::cpu::{BlockOrder, Schedule};
use lookback::run::AnyScanner;
use proptest::strategy::Strategy as _;

/// The strategies that scan down columns.
const OF_COLUMNS: [Strategy; 2] = [Strategy::Lookback, Strategy::Lookahead];

/// The shape of a tensor that is scanned along its middle axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) outer: usize,
    pub(super) length: usize,
    pub(super) inner: usize,
}

impl Shape {
    pub(super) fn elements(self) -> usize {
        self.outer * self.length * self.inner
    }

    /// Places of the elements of each column, in the direction of the scan.
    pub(super) fn columns(self, is_reversed: bool) -> impl Iterator<Item = Vec<usize>> {
        let Self { outer, length, inner } = self;
        (0..outer).flat_map(move |o| {
            (0..inner).map(move |j| {
                let mut places: Vec<_> = (0..length).map(|t| (o * length + t) * inner + j).collect();
                if is_reversed {
                    places.reverse();
                }
                places
            })
        })
    }
}

/// What the loop gives of `maps` down each column, from a state of each; and the states at the ends.
pub(super) fn by_column(
    (a, b): (&[u8], &[u32]),
    shape: Shape,
    (is_exclusive, is_reversed): (bool, bool),
    states: &[Map],
) -> Reference {
    let n = shape.elements();
    let (mut addends, mut factors, mut ends) = (vec![0; n], vec![0; n], Vec::new());
    for (places, &initial) in shape.columns(is_reversed).zip(states) {
        let (mut state, mut last) = (initial, initial);
        for place in places {
            let before = state;
            let addend = b[place].wrapping_add(place as u32);
            state = state.then(Map { factor: 2 * u32::from(a[place]) + 1, addend });
            last = if is_exclusive { before } else { state };
            addends[place] = last.addend;
            factors[place] = (last.factor ^ place as u32) as u16;
        }
        ends.push(last);
    }
    Reference { addends, factors, ends }
}

fn shapes() -> impl proptest::strategy::Strategy<Value = Shape> {
    let lengths = vec![1_usize, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 129, 257, 300, 700];
    let inners = vec![1_usize, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 33, 62, 64, 65, 100, 128, 131];
    let narrow =
        prop::sample::select(lengths.clone()).prop_map(|length| Shape { outer: 1, length: 3 * length, inner: 2 });
    let any = (1_usize..4, prop::sample::select(lengths), prop::sample::select(inners));
    let any = any.prop_map(|(outer, length, inner)| {
        // So many that a case takes less than a second.
        let outer = if outer * length * inner > 30_000 { 1 } else { outer };
        Shape { outer, length: length.min(30_000 / inner), inner }
    });
    prop_oneof![4 => any, 1 => narrow]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_axis_of_any_tensor_is_scanned_as_by_the_loop(
        strategy in prop::sample::select(OF_COLUMNS.to_vec()),
        shape in shapes(),
        offsets in prop::array::uniform4(0_usize..17),
        vt in prop::sample::select(vec![1_u32, 2, 3, 8]),
        block_threads in prop::sample::select(vec![32_u32, 64, 96]),
        is_reversed: bool,
        is_exclusive: bool,
        is_in_place: bool,
        is_matrix: bool,
        told in prop::sample::select(vec![None, None, Some(0), Some(30), Some(95), Some(100)]),
        given in prop::sample::select(vec![Given::Nothing, Given::Value, Given::Memory]),
        has_ends: bool,
        is_hostile: bool,
        seed: u64,
    ) {
        let shape = if is_matrix { Shape { outer: 1, ..shape } } else { shape };
        let n = shape.elements();
        // All begin with a whole vector in one case of four, and in most of those in which the rows of a matrix may be elements.
        let is_aligned = seed.is_multiple_of(4) || shape.inner == 2 && !seed.is_multiple_of(3);
        let offsets = if is_aligned { [0; 4] } else { offsets };
        let (a, b) = arrays(n + 17, seed);
        let (a, b) = (&a[offsets[0]..][..n], &b[offsets[1]..][..n]);
        let states = states_of(given, shape.outer * shape.inner);
        // Of a matrix a number in memory may say how many of its rows there are.
        let told = told.filter(|_| is_matrix);
        let scanned = Shape { length: shape.length * told.unwrap_or(100) / 100, ..shape };
        let count = scanned.elements();
        let expected = by_column((a, b), scanned, (is_exclusive, is_reversed), &states);
        let (mut addends, mut factors) = (vec![7_u32; n + 17], vec![7_u16; n + 17]);
        addends[offsets[2]..][..n].copy_from_slice(b);
        let mut ends = vec![Map { factor: 99, addend: 99 }; states.len()];
        let config = ScanConfig { vt, block_threads, ..ScanConfig::default() };
        let mut settings = CpuSettings { check_bounds: true, ..CpuSettings::default() };
        // Any block first, and any thread at any access: a barrier that is missing shows, and tiles look back over more than
        // they read at one time.
        if is_hostile && n < 6000 {
            settings.resident_blocks = 24;
            settings.schedule = Schedule::Random { preemption: 0.05 };
            (settings.block_order, settings.plain_points) = (BlockOrder::Random, true);
        }
        let mut scanner = HostScanner::new(settings).with_config(config).with_strategy(strategy);
        let mut run = scanner.run(maps()).input(a);
        let addend = &mut addends[offsets[2]..][..n];
        run = if is_in_place { run.in_place(addend) } else { run.input(b).output(addend) };
        run = run.output(&mut factors[offsets[3]..][..n]);
        run = if is_matrix { run.columns(shape.inner) } else { run.axis(shape.length, shape.inner) };
        if has_ends {
            run = run.final_state(&mut ends);
        }
        let number = count as u64;
        if told.is_some() {
            run = run.count_from(&number);
        }
        let made = made_from(run, given, &states, is_reversed, is_exclusive);
        if is_made(made) {
            prop_assert_eq!(&addends[offsets[2]..][..count], &expected.addends[..]);
            prop_assert_eq!(&factors[offsets[3]..][..count], &expected.factors[..]);
            prop_assert_eq!(&addends[offsets[2]..][count..n], &b[count..]);
            let is_apart = |place: usize, offset: usize, n: usize| place < offset || place >= offset + n;
            prop_assert!((0..n + 17).all(|place| !is_apart(place, offsets[2], n) || addends[place] == 7));
            prop_assert!((0..n + 17).all(|place| !is_apart(place, offsets[3], count) || factors[place] == 7));
            if has_ends && count > 0 {
                prop_assert_eq!(&ends, &expected.ends);
            }
            prop_assert!(has_ends && count > 0 || ends.iter().all(|end| end.addend == 99), "no state was there");
        }
    }
}

/// Four maps side by side: 32 bytes, of which a thread holds one column.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
struct FourMaps([Map; 4]);

#[test]
fn states_of_32_bytes_of_two_and_of_one_go_down_columns() {
    let fours = Definition::new::<FourMaps>("four maps", "four_maps")
        .declare("struct map { u32 factor; u32 addend; }; struct four_maps { map part[4]; };")
        .identity("{{{1, 0}, {1, 0}, {1, 0}, {1, 0}}}")
        .combine(
            "four_maps both;
             for (u32 p = 0; p < 4; ++p) {
               both.part[p].factor = left.part[p].factor * right.part[p].factor;
               both.part[p].addend = right.part[p].factor * left.part[p].addend + right.part[p].addend;
             }
             return both;",
        )
        .input::<u32>("x")
        .load("return {{{3, x}, {5, x}, {7, x}, {9, x}}};")
        .output::<u32>("y")
        .store("y = state.part[0].addend ^ state.part[1].addend ^ state.part[2].addend ^ state.part[3].addend;")
        .define()
        .expect("a definition");
    let halves = Definition::of_numbers(Operator::Sum, ElementType::U16, ElementType::U16).expect("numbers");
    let halves = halves.define().expect("a definition");
    // As many columns of a strip as a warp may have.
    let bytes = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::U8).expect("numbers");
    let bytes = bytes.define().expect("a definition");
    let cases = [
        (Shape { outer: 2, length: 70, inner: 6 }, 2),
        (Shape { outer: 1, length: 300, inner: 132 }, 4),
        (Shape { outer: 3, length: 40, inner: 128 }, 8),
        (Shape { outer: 1, length: 100, inner: 257 }, 2),
        (Shape { outer: 1, length: 90, inner: 700 }, 4),
        // Rows that are elements: of two columns, of bytes and halves of four and eight, too.
        (Shape { outer: 1, length: 999, inner: 2 }, 2),
        (Shape { outer: 1, length: 1000, inner: 4 }, 3),
        (Shape { outer: 1, length: 777, inner: 8 }, 2),
    ];
    for ((shape, vt), strategy) in cases.into_iter().flat_map(|case| OF_COLUMNS.map(|strategy| (case, strategy))) {
        let (_, x) = arrays(shape.elements(), 5);
        let narrow: Vec<u16> = x.iter().map(|&x| x as u16).collect();
        let (mut y, mut sums) = (vec![0_u32; x.len()], vec![0_u16; x.len()]);
        let axis = (shape.length, shape.inner);
        let run = scanner(strategy, vt).run(fours).input(&x).output(&mut y).axis(axis.0, axis.1).inclusive();
        let run_of_halves =
            scanner(strategy, vt).run(halves).input(&narrow).output(&mut sums).axis(axis.0, axis.1).inclusive();
        let short: Vec<u8> = x.iter().map(|&x| x as u8).collect();
        let mut byte_sums = vec![0_u8; x.len()];
        let run_of_bytes =
            scanner(strategy, vt).run(bytes).input(&short).output(&mut byte_sums).axis(axis.0, axis.1).inclusive();
        if !is_made(run) || !is_made(run_of_halves) || !is_made(run_of_bytes) {
            return;
        }
        for places in shape.columns(false) {
            let (mut parts, mut sum, mut byte_sum) = ([0_u32; 4], 0_u16, 0_u8);
            for place in places {
                for (part, factor) in parts.iter_mut().zip([3_u32, 5, 7, 9]) {
                    *part = factor.wrapping_mul(*part).wrapping_add(x[place]);
                }
                sum = sum.wrapping_add(narrow[place]);
                assert_eq!(y[place], parts.iter().fold(0, |all, part| all ^ part), "{shape:?} at {place}");
                byte_sum = byte_sum.wrapping_add(short[place]);
                assert_eq!((sums[place], byte_sums[place]), (sum, byte_sum), "{shape:?} at {place}");
            }
        }
    }
}

#[test]
fn channels_of_batches_are_filtered_along_the_time_in_chunks() {
    let recurrence = Definition::linear_recurrence::<f32>().expect("numbers").define().expect("a definition");
    let shape = Shape { outer: 3, length: 50, inner: 20 };
    // Halves and small whole numbers: every step is exact.
    let a: Vec<f32> = (0..shape.elements()).map(|i| [0.5, -0.5, 1.0, 0.0][i * i % 7 % 4]).collect();
    let b: Vec<f32> = (0..shape.elements()).map(|i| (i % 5) as f32 - 2.0).collect();
    let (mut h, mut state) = (vec![f32::NAN; a.len()], vec![[f32::NAN; 2]; 60]);
    let mut scanner = HostScanner::default();
    let run = scanner.run(recurrence).input(&a).input(&b).output(&mut h).axis(50, 20).final_state(&mut state);
    if !is_made(run.initial(&[0.0_f32, 8.0]).inclusive()) {
        return;
    }
    let mut ends = Vec::new();
    for places in shape.columns(false) {
        let mut expected = 8.0_f32;
        for place in places {
            expected = a[place] * expected + b[place];
            assert!((h[place] - expected).abs() <= 1e-3, "{} for {expected} at {place}", h[place]);
        }
        ends.push(expected);
    }
    assert!(state.iter().zip(&ends).all(|(state, end)| (state[1] - end).abs() <= 1e-3));
    // The next chunk goes on.
    let before = state.clone();
    let run = scanner.run(recurrence).input(&a).input(&b).output(&mut h).axis(50, 20).initial_from(&before);
    assert!(is_made(run.inclusive()));
    for (places, mut expected) in shape.columns(false).zip(ends) {
        for place in places {
            expected = a[place] * expected + b[place];
            assert!((h[place] - expected).abs() <= 1e-3, "{} for {expected} at {place}", h[place]);
        }
    }
}

#[test]
fn columns_that_do_not_fit_are_refused() {
    let (a, b) = arrays(100, 1);
    let (mut addends, mut factors) = (vec![0_u32; 100], vec![0_u16; 100]);
    let states = [Map::IDENTITY; 10];
    macro_rules! refused {
        ($strategy:expr, $($call:ident $arguments:tt).+, $error:pat) => {
            let mut scanner = scanner($strategy, 4);
            let run = scanner.run(maps()).input(&a).input(&b).output(&mut addends).output(&mut factors);
            match run.$($call $arguments).+.inclusive() {
                Err(DeviceError::Config($error)) => {}
                other => panic!("{other:?}"),
            }
        };
    }
    macro_rules! wrong_call {
        ($($call:ident $arguments:tt).+, $error:pat) => {
            let mut scanner = scanner(Strategy::Lookback, 4);
            let run = scanner.run(maps()).input(&a).input(&b).output(&mut addends).output(&mut factors);
            match run.$($call $arguments).+.inclusive() {
                Err(DeviceError::Config(ConfigError::Call(error))) => assert!(matches!(*error, $error), "{error}"),
                other => panic!("{other:?}"),
            }
        };
    }
    wrong_call!(axis(7, 2), CallError::Axis { n: 100, length: 7, inner: 2, .. });
    wrong_call!(axis(0, 2), CallError::Axis { length: 0, .. });
    wrong_call!(axis(2, 0), CallError::Axis { inner: 0, .. });
    wrong_call!(columns(0), CallError::Axis { inner: 0, .. });
    wrong_call!(columns(3), CallError::Axis { inner: 3, .. });
    wrong_call!(axis(usize::MAX, 2), CallError::Axis { .. });
    wrong_call!(columns(10).head_flags(&a), CallError::SegmentsTwice(_));
    wrong_call!(by_key(&a).columns(10), CallError::SegmentsTwice(_));
    wrong_call!(rows(10).axis(10, 1), CallError::SegmentsTwice(_));
    wrong_call!(axis(5, 10).initial_from(&states), CallError::States { elements: 10, expected: 20, .. });
    wrong_call!(axis(5, 10).count_from(&50_u32), CallError::CountedElsewhere(_));
    wrong_call!(axis(10, 10).count_from(&50_u32), CallError::CountedElsewhere(_));
    for strategy in STRATEGIES.into_iter().filter(|strategy| !OF_COLUMNS.contains(strategy)) {
        refused!(strategy, columns(10), ConfigError::TakesNoColumns { .. });
    }
    let empty = scanner(Strategy::Lookback, 4)
        .run(maps())
        .input::<u8>(&[])
        .input::<u32>(&[])
        .output::<u32>(&mut [])
        .output::<u16>(&mut [])
        .columns(7)
        .inclusive();
    empty.expect("nothing");
}

#[test]
fn a_count_of_columns_that_is_no_whole_rows_or_too_large_is_told() {
    let (a, b) = arrays(1000, 1);
    for (strategy, count) in OF_COLUMNS.into_iter().flat_map(|strategy| [55, 1001, 9].map(|count| (strategy, count))) {
        let (mut addends, mut factors) = (vec![7_u32; 1000], vec![7_u16; 1000]);
        let mut scanner = scanner(strategy, 2);
        let run = scanner.run(maps()).input(&a).input(&b).output(&mut addends).output(&mut factors);
        match run.columns(10).count_from(&count).inclusive() {
            Err(DeviceError::Config(ConfigError::Call(error))) => assert_eq!(*error, CallError::Counted { count }),
            other => {
                assert!(!is_made(other), "{strategy}: {count}");
                return;
            }
        }
        assert!(addends.iter().all(|&addend| addend == 7), "{strategy}: {count}");
    }
}

/// A sum by key of 8 bytes and its mark have one 128-bit word a descriptor, states of 16 bytes two.
#[test]
fn scans_of_as_many_bytes_and_other_descriptors_share_no_workspace() {
    const N: usize = 4000;
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U64, ElementType::U64).expect("numbers");
    let sums = sums.define().expect("a definition");
    let fours = Definition::new::<[u32; 4]>("four sums", "four_sums")
        .declare("struct four_sums { u32 part[4]; };")
        .identity("{{0, 0, 0, 0}}")
        .combine(
            "four_sums both; for (u32 p = 0; p < 4; ++p) both.part[p] = left.part[p] + right.part[p]; return both;",
        )
        .input::<u32>("x")
        .load("return {{x, 2 * x, 3 * x, 5 * x}};")
        .output::<u32>("y")
        .store("y = state.part[0] ^ state.part[1] ^ state.part[2] ^ state.part[3];")
        .define()
        .expect("a definition");
    let (_, x) = arrays(N, 9);
    let long: Vec<u64> = x.iter().map(|&x| x.into()).collect();
    let (keys, mut by_key, mut y) = (vec![3_u32; N], vec![0_u64; N], vec![0_u32; N]);
    let mut scanner = scanner(Strategy::Lookahead, 1);
    for _ in 0..2 {
        let first = scanner.run(sums).input(&long).output(&mut by_key).by_key(&keys).inclusive();
        let second = scanner.run(fours).input(&x).output(&mut y).inclusive();
        if !is_made(first) || !is_made(second) {
            return;
        }
        let (mut sum, mut total) = (0_u32, 0_u64);
        for place in 0..N {
            sum = sum.wrapping_add(x[place]);
            total += long[place];
            let expected = [1, 2, 3, 5].iter().fold(0, |all, factor| all ^ sum.wrapping_mul(*factor));
            assert_eq!((y[place], by_key[place]), (expected, total), "at {place}");
        }
    }
}
