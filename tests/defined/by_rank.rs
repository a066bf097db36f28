//! Compactions: what is kept, side by side, against the loop that each stands for.

use super::*;
use proptest::strategy::Strategy as _;

/// What is drawn for one run.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    /// By their numbers in [`STRATEGIES`].
    strategy: usize,
    vt: u32,
    /// Elements of the arrays, and how many of them the run is told of, if it is.
    n: usize,
    count: Option<u64>,
    is_reversed: bool,
    /// Elements by which inputs and outputs lie above a boundary.
    shifts: (usize, usize),
    /// Of 8, so many are kept, or are like the element before them.
    eighths: u64,
    seed: u64,
}

/// Two strategies for each test, in one direction: each kernel takes the compiler a second or two.
fn drawn(
    strategies: [usize; 2],
    is_reversed: bool,
    is_counted: bool,
) -> impl proptest::strategy::Strategy<Value = Drawn> {
    let sizes = (0_usize..5, -3_isize..4, prop::sample::select(&[1_u32, 4, 8, 12][..]));
    let numbers = (0_usize..5, 0_usize..5, 0_u64..9, any::<u64>());
    (prop::sample::select(strategies.to_vec()), sizes, any::<prop::sample::Index>(), numbers).prop_map(
        move |(strategy, (tiles, more, vt), count, (input, output, eighths, seed))| {
            let n = (tiles * 64 * vt as usize).saturating_add_signed(more);
            let count = is_counted.then(|| count.index(n + 1) as u64);
            Drawn { strategy, vt, n, count, is_reversed, shifts: (input, output), eighths, seed }
        },
    )
}

impl Drawn {
    fn scanner(&self) -> HostScanner {
        scanner(STRATEGIES[self.strategy], self.vt)
    }

    fn word(&self, place: usize) -> u64 {
        (place as u64 + 1).wrapping_mul(self.seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
    }

    /// Bytes of which so many eighths are below 128.
    fn bytes(&self) -> Vec<u8> {
        let byte = |place: usize| {
            (self.word(place) % 128) as u8 | if self.word(place) >> 32 & 7 < self.eighths { 0 } else { 128 }
        };
        (0..self.n).map(byte).collect()
    }

    /// Few numbers, in runs.
    fn in_runs(&self) -> Vec<u32> {
        let mut last = 0;
        (0..self.n)
            .map(|place| {
                if self.word(place) >> 32 & 7 >= self.eighths {
                    last = self.word(place) as u32 % 3;
                }
                last
            })
            .collect()
    }

    /// The places that are scanned, in their order.
    fn order(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.count.map_or(self.n, |count| count as usize)).collect();
        if self.is_reversed {
            places.reverse();
        }
        places
    }

    /// An array whose elements lie by so many above a boundary; use `[shift..]`.
    fn input<T: Pod>(&self, elements: &[T]) -> Vec<T> {
        [&vec![T::zeroed(); self.shifts.0], elements].concat()
    }

    fn output<T: Pod>(&self, filling: T) -> Vec<T> {
        vec![filling; self.shifts.1 + self.n]
    }

    /// How many were kept, and how many were not.
    fn numbers(&self, kept: usize) -> [u64; 2] {
        [kept, self.count.map_or(self.n, |count| count as usize) - kept].map(|number| number as u64)
    }

    /// Ends the run, and says how many were kept and how many were not; false where there is no compiler.
    fn compact<'a>(&'a self, mut run: HostRun<'a>, numbers: &'a mut [u64; 2]) -> bool {
        run = run.count_into(numbers);
        if let Some(count) = &self.count {
            run = run.count_from(count);
        }
        is_made(if self.is_reversed { run.reversed() } else { run }.compact())
    }
}

/// What was stored: `expected` in front, and nothing behind it.
#[track_caller]
fn assert_stored<T: Pod + PartialEq + std::fmt::Debug>(stored: &[T], shift: usize, expected: &[T], filling: T) {
    let (front, rest) = stored.split_at(shift);
    let (kept, behind) = rest.split_at(expected.len());
    assert_eq!(kept, expected);
    assert!(front.iter().chain(behind).all(|&element| element == filling), "nothing beside what is kept is written");
}

pub fn definition(definition: Definition) -> Defined {
    definition.define().expect("a definition")
}

fn numbers(of_numbers: Result<Definition, NoSuchProblem>) -> Defined {
    definition(of_numbers.expect("numbers"))
}

/// Runs of equal elements in the order of the scan, as places.
fn runs<T: PartialEq>(keys: &[T], order: &[usize]) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for &place in order {
        match runs.last_mut() {
            Some(run) if keys[run[0]] == keys[place] => run.push(place),
            _ => runs.push(vec![place]),
        }
    }
    runs
}

/// The same key, and Map's product over each run: an operator that does not commute, in 8 bytes.
fn maps_by_key() -> Defined {
    let maps = Definition::new::<Map>("maps by key", "map")
        .declare("struct map { u32 factor; u32 addend; };")
        .identity("{1, 0}")
        .combine("return {left.factor * right.factor, right.factor * left.addend + right.addend};")
        .input_in_runs::<u32>("key")
        .input::<u8>("x")
        .load("return {2u * x + 1, static_cast<u32>(i) + key};")
        .groups("return key_begins;", "return key_ends;")
        .output::<u64>("last")
        .output::<u32>("addend")
        .store("last = i; addend = state.addend;");
    definition(maps)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn what_is_selected_and_the_others_keep_their_order(drawn in drawn([0, 1], false, true)) {
        let x = drawn.input(&drawn.bytes());
        let (mut kept, mut others, mut number) = (drawn.output(7_u8), drawn.output(7_u8), [u64::MAX; 2]);
        let (from, to) = drawn.shifts;
        let mut scanner = drawn.scanner();
        let partition = definition(Definition::partition::<u8>("return x < 128;"));
        let run = scanner.run(partition).input(&x[from..]).output(&mut kept[to..]).output(&mut others[to..]);
        if drawn.compact(run, &mut number) {
            let order = drawn.order();
            let (low, high): (Vec<u8>, Vec<u8>) = order.iter().map(|&place| x[from + place]).partition(|&x| x < 128);
            prop_assert_eq!(number, drawn.numbers(low.len()));
            assert_stored(&kept, to, &low, 7);
            assert_stored(&others, to, &high, 7);
        }
    }

    #[test]
    fn what_is_not_flagged_may_stand_behind_from_the_last_place_on(drawn in drawn([0, 2], true, false)) {
        let x = drawn.input(&drawn.in_runs().iter().map(|&x| u64::from(x) << 40).collect::<Vec<_>>());
        let flags = drawn.input(&drawn.bytes().iter().map(|&byte| byte & 1).collect::<Vec<_>>());
        let (mut y, mut number) = (drawn.output(7_u64), [u64::MAX; 2]);
        let (from, to) = drawn.shifts;
        let mut scanner = drawn.scanner();
        let flagged = definition(Definition::select_flagged::<u64>().others_behind());
        let run = scanner.run(flagged).input(&x[from..]).input(&flags[from..]).output(&mut y[to..]);
        if drawn.compact(run, &mut number) {
            let (mut expected, rest): (Vec<usize>, Vec<usize>) =
                drawn.order().iter().partition(|&place| flags[from + place] != 0);
            prop_assert_eq!(number, drawn.numbers(expected.len()));
            expected.extend(rest.iter().rev());
            let expected: Vec<u64> = expected.iter().map(|place| x[from + place]).collect();
            assert_stored(&y, to, &expected, 7);
        }
    }

    #[test]
    fn places_of_what_is_not_zero(drawn in drawn([3, 4], false, false)) {
        let x = drawn.input(&drawn.in_runs().iter().map(|&x| f16::from_f32(x as f32)).collect::<Vec<_>>());
        let (mut y, mut number) = (drawn.output(7_u64), [u64::MAX; 2]);
        let (from, to) = drawn.shifts;
        let mut scanner = drawn.scanner();
        let run = scanner.run(numbers(Definition::nonzero::<f16>())).input(&x[from..]).output(&mut y[to..]);
        if drawn.compact(run, &mut number) {
            let is_kept = |&place: &usize| x[from + place] != f16::ZERO;
            let expected: Vec<u64> = drawn.order().into_iter().filter(is_kept).map(|place| place as u64).collect();
            prop_assert_eq!(number, drawn.numbers(expected.len()));
            assert_stored(&y, to, &expected, 7);
        }
    }

    #[test]
    fn the_first_of_each_run_is_unique(drawn in drawn([0, 5], true, true)) {
        let keys = drawn.in_runs();
        let x = drawn.input(&keys);
        let (mut y, mut number) = (drawn.output(7_u32), [u64::MAX; 2]);
        let (from, to) = drawn.shifts;
        let mut scanner = drawn.scanner();
        let run = scanner.run(numbers(Definition::unique::<u32>())).input(&x[from..]).output(&mut y[to..]);
        if drawn.compact(run, &mut number) {
            let expected: Vec<u32> = runs(&keys, &drawn.order()).iter().map(|run| keys[run[0]]).collect();
            prop_assert_eq!(number, drawn.numbers(expected.len()));
            assert_stored(&y, to, &expected, 7);
        }
    }

    #[test]
    fn runs_are_encoded_by_their_lengths(drawn in drawn([0, 1], true, false)) {
        let keys: Vec<i16> = drawn.in_runs().iter().map(|&key| key as i16 - 1).collect();
        let x = drawn.input(&keys);
        let (mut values, mut lengths, mut number) = (drawn.output(7_i16), drawn.output(7_u64), [u64::MAX; 2]);
        let (from, to) = drawn.shifts;
        let mut scanner = drawn.scanner();
        let encoding = numbers(Definition::run_length_encode::<i16>());
        // Where an output begins in a line is its own.
        let run = scanner.run(encoding).input(&x[from..]).output(&mut values[to..]).output(&mut lengths);
        if drawn.compact(run, &mut number) {
            let runs = runs(&keys, &drawn.order());
            prop_assert_eq!(number, drawn.numbers(runs.len()));
            assert_stored(&values, to, &runs.iter().map(|run| keys[run[0]]).collect::<Vec<_>>(), 7);
            assert_stored(&lengths, 0, &runs.iter().map(|run| run.len() as u64).collect::<Vec<_>>(), 7);
        }
    }

    #[test]
    fn runs_of_several_elements_are_told_by_place_and_length(drawn in drawn([0, 4], true, true)) {
        let keys = drawn.in_runs();
        let x = drawn.input(&keys);
        let (mut places, mut lengths, mut number) = (drawn.output(7_u64), drawn.output(7_u64), [u64::MAX; 2]);
        let (from, to) = drawn.shifts;
        let mut scanner = drawn.scanner();
        let longer = numbers(Definition::non_trivial_runs::<u32>());
        let run = scanner.run(longer).input(&x[from..]).output(&mut places[to..]).output(&mut lengths[to..]);
        if drawn.compact(run, &mut number) {
            let runs: Vec<_> = runs(&keys, &drawn.order()).into_iter().filter(|run| run.len() > 1).collect();
            prop_assert_eq!(number, drawn.numbers(runs.len()));
            let lowest = |run: &Vec<usize>| run[run.len() - 1] as u64;
            assert_stored(&places, to, &runs.iter().map(lowest).collect::<Vec<_>>(), 7);
            assert_stored(&lengths, to, &runs.iter().map(|run| run.len() as u64).collect::<Vec<_>>(), 7);
        }
    }

    #[test]
    fn runs_of_keys_are_reduced_by_an_operator_that_does_not_commute(drawn in drawn([0, 1], false, false)) {
        let (keys, bytes) = (drawn.in_runs(), drawn.bytes());
        let (key, x) = (drawn.input(&keys), drawn.input(&bytes));
        let (mut last, mut addends, mut number) = (drawn.output(7_u64), drawn.output(7_u32), [u64::MAX; 2]);
        let (from, to) = drawn.shifts;
        let mut scanner = drawn.scanner();
        let run = scanner.run(maps_by_key()).input(&key[from..]).input(&x[from..]);
        let run = run.output(&mut last[to..]).output(&mut addends[to..]);
        if drawn.compact(run, &mut number) {
            let runs = runs(&keys, &drawn.order());
            prop_assert_eq!(number, drawn.numbers(runs.len()));
            let item = |&place: &usize| Map {
                factor: 2 * u32::from(bytes[place]) + 1,
                addend: (place as u32).wrapping_add(keys[place]),
            };
            let total = |run: &Vec<usize>| run.iter().map(item).fold(Map::IDENTITY, Map::then).addend;
            assert_stored(&addends, to, &runs.iter().map(total).collect::<Vec<_>>(), 7);
            assert_stored(&last, to, &runs.iter().map(|run| run[run.len() - 1] as u64).collect::<Vec<_>>(), 7);
        }
    }
}

#[test]
fn a_selection_is_the_next_ones_input() {
    let x: Vec<u32> = (0..5000).collect();
    let (mut third, mut fifth, mut numbers) = (vec![0_u32; 5000], vec![0_u32; 5000], [9_u32; 2]);
    let [first, second] = &mut numbers;
    let mut scanner = scanner(Strategy::Lookahead, 4);
    let select = |predicate| definition(Definition::select::<u32>(predicate));
    let run = scanner.run(select("return x % 3 == 0;")).input(&x).output(&mut third).count_into(first);
    if !is_made(run.compact()) {
        return;
    }
    let run = scanner.run(select("return x % 5 == 0;")).input(&third).output(&mut fifth).count_from(first);
    assert!(is_made(run.count_into(second).compact()));
    assert_eq!(numbers, [1667, 334]);
    assert!(fifth[..334].iter().enumerate().all(|(rank, &x)| x == 15 * rank as u32));
    assert_eq!(fifth[334..], [0; 4666]);
}

#[test]
fn totals_by_key_of_the_table_are_those_of_every_strategy() {
    let keys: Vec<u8> = (0..3000_u32).map(|i| (i * i / 900) as u8).collect();
    let x: Vec<f32> = (0..3000_u32).map(|i| (i * 7919 % 1013) as f32 / 7.0).collect();
    let totals = numbers(Definition::reduce_by_key::<u8>(Operator::Sum, ElementType::F32, ElementType::F32));
    let expected = runs(&keys, &(0..3000).collect::<Vec<_>>());
    let mut bits: Option<Vec<u32>> = None;
    for strategy in STRATEGIES {
        let (mut unique, mut sums, mut number) = (vec![0_u8; 3000], vec![0_f32; 3000], 0_i32);
        let mut scanner = HostScanner::default().with_strategy(strategy);
        let run = scanner.run(totals).input(&keys).input(&x).output(&mut unique).output(&mut sums);
        let run = run.count_into(&mut number);
        // Of each strategy that offers it, the same bits.
        let is_reproducible = strategy != Strategy::ReduceThenScan;
        if !is_made(if is_reproducible { run.reproducible() } else { run }.compact()) {
            return;
        }
        assert_eq!(number as usize, expected.len());
        for (rank, run) in expected.iter().enumerate() {
            let sum: f64 = run.iter().map(|&place| f64::from(x[place])).sum();
            assert_eq!(unique[rank], keys[run[0]]);
            assert!((f64::from(sums[rank]) - sum).abs() <= 1e-4 * sum, "{strategy}: {} for {sum}", sums[rank]);
        }
        let found: Vec<u32> = sums.iter().map(|sum| sum.to_bits()).collect();
        if is_reproducible {
            assert_eq!(*bits.get_or_insert_with(|| found.clone()), found, "{strategy}");
        }
    }
}

#[test]
fn of_a_group_the_first_element_may_be_kept() {
    let keys: Vec<u8> = (0..3000_u32).map(|i| (i * i / 900) as u8).collect();
    let x: Vec<u32> = (0..3000_u32).map(|i| i * 7919 % 1013).collect();
    let totals = Definition::reduce_by_key::<u8>(Operator::Sum, ElementType::U32, ElementType::U32).expect("numbers");
    // What it does with the last ones no longer holds.
    let firsts = definition(totals.keep("return key_begins;"));
    let expected = runs(&keys, &(0..3000).collect::<Vec<_>>());
    for strategy in STRATEGIES {
        let (mut unique, mut sums, mut number) = (vec![0_u8; 3000], vec![0_u32; 3000], 0_u32);
        let mut scanner = HostScanner::default().with_strategy(strategy);
        let run = scanner.run(firsts).input(&keys).input(&x).output(&mut unique).output(&mut sums);
        if !is_made(run.count_into(&mut number).compact()) {
            return;
        }
        assert_eq!(number as usize, expected.len());
        for (rank, run) in expected.iter().enumerate() {
            assert_eq!((unique[rank], sums[rank]), (keys[run[0]], x[run[0]]), "{strategy}, {rank}");
        }
    }
}

#[test]
fn of_nothing_nothing_is_kept() {
    let mut number = 7_u64;
    let unique = numbers(Definition::unique::<u32>());
    let mut scanner = HostScanner::default();
    scanner.run(unique).input::<u32>(&[]).output::<u32>(&mut []).count_into(&mut number).compact().expect("no kernel");
    assert_eq!(number, 0);
}

#[test]
fn calls_that_no_compaction_is_made_of_are_refused() {
    let unique = numbers(Definition::unique::<u32>());
    let sums = numbers(Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32));
    let (x, mut y) = ([1_u32; 8], [0_u32; 8]);
    let mut scanner = HostScanner::default();
    let refused = |result: Result<(), DeviceError>| match result {
        Err(DeviceError::Config(ConfigError::Call(error))) => *error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(scanner.run(unique).input(&x).output(&mut y).inclusive()), CallError::Verb { .. }));
    assert!(matches!(refused(scanner.run(sums).input(&x).output(&mut y).compact()), CallError::Verb { .. }));
    let mut number = 0_u32;
    let counted = scanner.run(sums).input(&x).output(&mut y).count_into(&mut number).inclusive();
    assert!(matches!(refused(counted), CallError::NothingKept(_)));
    let by_rows = scanner.run(unique).input(&x).output(&mut y).rows(4).compact();
    assert!(matches!(refused(by_rows), CallError::OfScansAlone(_)));
    let from = scanner.run(unique).input(&x).output(&mut y).initial(&0_u32).compact();
    assert!(matches!(refused(from), CallError::OfScansAlone(_)));
    let in_place = scanner.run(unique).in_place(&mut y).compact();
    assert!(matches!(refused(in_place), CallError::Overlap { .. }));
    let short = scanner.run(unique).input(&x).output(&mut y[..7]).compact();
    assert!(matches!(refused(short), CallError::Length { elements: 7, n: 8, .. }));
    let behind = definition(Definition::select::<u32>("return x > 0;").others_behind());
    let mut longer = [0_u32; 9];
    let long = scanner.run(behind).input(&x).output(&mut longer).compact();
    assert!(matches!(refused(long), CallError::Length { elements: 9, n: 8, .. }));
}

/// With a count behind it a state of 32 bytes is no longer one that a launch has room for.
#[test]
fn the_largest_states_have_a_count_behind_them() {
    let declared = "struct four { u64 a; u64 b; u64 c; u64 d; };";
    let sums = Definition::new::<[u64; 4]>("sums of four by key", "four")
        .declare(declared)
        .identity("{0, 0, 0, 0}")
        .combine("return {left.a + right.a, left.b + right.b, left.c + right.c, left.d + right.d};")
        .input_in_runs::<u8>("key")
        .input::<u32>("x")
        .load("return {x, 2 * x, 3 * x, 4 * x};")
        .groups("return key_begins;", "return key_ends;")
        .output::<u64>("total")
        .store("total = state.a + state.d;");
    let sums = definition(sums);
    let (keys, x): (Vec<u8>, Vec<u32>) = (0..2000_u32).map(|i| ((i / 7 % 5) as u8, i)).unzip();
    let runs = runs(&keys, &(0..2000).collect::<Vec<_>>());
    for strategy in [Strategy::Lookahead, Strategy::Lookback] {
        let (mut totals, mut number) = (vec![0_u64; 2000], 0_u64);
        let mut scanner = scanner(strategy, 4);
        let run = scanner.run(sums).input(&keys).input(&x).output(&mut totals).count_into(&mut number);
        if !is_made(run.compact()) {
            return;
        }
        assert_eq!(number, runs.len() as u64);
        let total = |run: &Vec<usize>| run.iter().map(|&place| 5 * u64::from(x[place])).sum::<u64>();
        assert_stored(&totals, 0, &runs.iter().map(total).collect::<Vec<_>>(), 0);
    }
}

/// What the user declares is what his text means, whatever the crate calls its own.
#[test]
fn names_of_the_users_are_not_hidden() {
    let declared = "DEVICE u32 count(u32 bits) { u32 ones = 0; for (; bits != 0; bits /= 2) ones += bits % 2; return ones; }
                    constexpr u32 others = 3; constexpr bool has_groups = true; struct in_groups {}; struct in_run {};
                    DEVICE bool keeps(u32 x) { return x == others; } DEVICE bool kept(u32 x) { return has_groups && x == 5; }";
    let filter = Definition::filter("bits")
        .declare(declared)
        .input_in_runs::<u32>("x")
        .keep("return count(x) > 2 || keeps(x) || kept(x);")
        .output::<u32>("kept")
        .store("kept = x;");
    let x: Vec<u32> = (0..16).collect();
    let (mut kept, mut number) = (vec![0_u32; 16], 0_u32);
    let mut scanner = scanner(Strategy::Lookback, 4);
    let run = scanner.run(definition(filter)).input(&x).output(&mut kept).count_into(&mut number);
    if is_made(run.compact()) {
        assert_eq!(kept[..number as usize], [3, 5, 7, 11, 13, 14, 15]);
    }
}
