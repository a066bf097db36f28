//! What offsets share out, and elements that say where they go, over slices on the CPU device, each against a loop.

use super::{is_made, scanner};
use lookback::element::{Defined, Definition, DefinitionError, ElementType, Operator, WholeNumber};
use lookback::lab::device::DeviceError;
use lookback::run::AnyScanner;
use lookback::strategy::Strategy;
use proptest::prelude::*;

/// Items by their numbers of places: many of none, some of a few, and one of many.
fn lengths() -> impl proptest::strategy::Strategy<Value = Vec<u32>> {
    use proptest::strategy::Strategy as _;
    let few = prop::collection::vec(prop_oneof![4 => Just(0_u32), 4 => 1_u32..5, 1 => 30_u32..70], 1..300);
    let empty = prop_oneof![3 => Just(0_usize), 1 => 60_usize..700];
    (few, empty, prop_oneof![3 => Just(0_u32), 1 => 100_u32..900], any::<prop::sample::Index>()).prop_map(
        |(mut lengths, empty, many, place)| {
            let place = place.index(lengths.len());
            lengths.splice(place..place, std::iter::repeat_n(0, empty).chain([many]));
            lengths
        },
    )
}

fn offsets_of(lengths: &[u32]) -> Vec<u32> {
    let sums = lengths.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    });
    std::iter::once(0).chain(sums).collect()
}

/// The item of each place and its rank there.
fn places_of(lengths: &[u32]) -> Vec<(u32, u32)> {
    (0..).zip(lengths).flat_map(|(item, &length)| (0..length).map(move |rank| (item, rank))).collect()
}

/// Items, ranks and twice the items' elements by the kernels, `more` places than there are; nothing where there is no compiler.
fn expanded(vt: u32, offsets: &[impl WholeNumber], elements: &[u16], room: usize) -> Option<Vec<(u32, u32, u64)>> {
    let defined = Definition::expansion("places")
        .input::<u16>("x")
        .output::<u32>("owner")
        .output::<u32>("rank_in_it")
        .output::<u64>("y")
        .store("owner = static_cast<u32>(item); rank_in_it = static_cast<u32>(rank); y = 2 * x + i;")
        .define()
        .expect("an expansion");
    let (mut owners, mut ranks, mut y) = (vec![7_u32; room], vec![7_u32; room], vec![7_u64; room]);
    let mut scanner = scanner(Strategy::Lookback, vt);
    let run = scanner.run(defined).offsets(offsets).input(elements);
    let run = run.output(&mut owners).output(&mut ranks).output(&mut y);
    is_made(run.expand()).then(|| (0..room).map(|place| (owners[place], ranks[place], y[place])).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn each_place_finds_its_item(
        lengths in lengths(),
        vt in prop::sample::select(&[1_u32, 2, 5, 16][..]),
        more in 0_usize..90,
        are_long in any::<bool>(),
    ) {
        let elements: Vec<u16> = (0..lengths.len()).map(|item| (item * 37) as u16).collect();
        let offsets = offsets_of(&lengths);
        let mut expected: Vec<_> = places_of(&lengths)
            .into_iter()
            .zip(0..)
            .map(|((item, rank), place)| (item, rank, 2 * u64::from(elements[item as usize]) + place))
            .collect();
        let room = expected.len() + more;
        expected.resize(room, (7, 7, 7));
        let found = if are_long {
            let offsets: Vec<_> = offsets.iter().map(|&offset| u64::from(offset)).collect();
            expanded(vt, &offsets, &elements, room)
        } else {
            expanded(vt, &offsets, &elements, room)
        };
        if let Some(found) = found {
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn elements_go_where_they_say(
        n in 0_usize..700,
        room in 0_usize..700,
        factor in prop::sample::select(&[1_usize, 701, 353][..]),
        vt in prop::sample::select(&[1_u32, 3, 8][..]),
        counted in any::<prop::sample::Index>(),
    ) {
        // A permutation of the places below 709, a prime.
        let place = |i: usize| i * factor % 709;
        let (x, places): (Vec<u8>, Vec<u32>) = (0..n).map(|i| ((i * 7) as u8, place(i) as u32)).unzip();
        let count = counted.index(n + 1);
        let mut expected = vec![(9_u8, 9_u64); room];
        for (i, &x) in x.iter().enumerate().take(count) {
            if let Some(stored) = expected.get_mut(place(i)) {
                *stored = (x, i as u64);
            }
        }
        let scatter = Definition::scattered("places", "return place;")
            .input::<u8>("x")
            .input::<u32>("place")
            .output::<u8>("y")
            .output::<u64>("from")
            .store("y = x; from = i;")
            .define()
            .expect("a scatter");
        let (mut y, mut from) = (vec![9_u8; room], vec![9_u64; room]);
        let mut scanner = scanner(Strategy::Lookback, vt);
        let run = scanner.run(scatter).input(&x).input(&places).output(&mut y).output(&mut from);
        if is_made(run.count_from(&(count as u32)).scatter()) {
            prop_assert_eq!(y.into_iter().zip(from).collect::<Vec<_>>(), expected);
        }
    }
}

fn owners() -> Defined {
    Definition::owners::<u32>().define().expect("an expansion")
}

#[test]
fn elements_are_repeated_as_often_as_runs_were_long() {
    let x = [5_u32, 5, 5, 9, 1, 1, 1, 1, 5];
    // Behind what is counted stands anything.
    let (mut values, mut lengths, mut runs) = ([0_u32; 9], [u64::MAX; 9], 0_u32);
    let mut scanner = scanner(Strategy::Lookback, 2);
    let encode = Definition::run_length_encode::<u32>().unwrap().define().unwrap();
    let run = scanner.run(encode).input(&x).output(&mut values).output(&mut lengths).count_into(&mut runs);
    if !is_made(run.compact()) {
        return;
    }
    // No step needs their number but from memory.
    let mut offsets = [0, u64::MAX, 3, 2, 1, u64::MAX, 0, 0, 0, 0];
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U64, ElementType::U64).unwrap().define().unwrap();
    let run = scanner.run(sums).input(&lengths).output(&mut offsets[1..]).count_from(&runs);
    run.inclusive().expect("sums");
    let mut again = [0_u32; 9];
    let repeated = Definition::repeated::<u32>().define().unwrap();
    let run = scanner.run(repeated).offsets(&offsets).input(&values).output(&mut again).count_from(&runs);
    run.expand().expect("places");
    assert_eq!(again, x);
    let run = scanner.run(repeated).offsets(&offsets[..5]).input(&values[..4]).output(&mut again).count_from(&5_u32);
    let error = run.expand().expect_err("there are offsets of 4 items").to_string();
    assert!(error.contains("to expand as many items"), "{error}");
    again = [7; 9];
    let run = scanner.run(repeated).offsets(&offsets).input(&values).output(&mut again).count_from(&0_u32);
    run.expand().expect("no items");
    assert_eq!(again, [7; 9]);
}

#[test]
fn one_item_has_all_places_or_the_last_of_many_has() {
    let mut scanner = scanner(Strategy::Lookback, 4);
    for (items, owner) in [(1_u32, 0), (3000, 2999), (3000, 0)] {
        let offsets: Vec<u32> = (0..=items).map(|item| if item > owner { 5000 } else { 0 }).collect();
        let mut found = vec![u32::MAX; 5000];
        if is_made(scanner.run(owners()).offsets(&offsets).output(&mut found).expand()) {
            assert!(found.iter().all(|&item| item == owner), "{items} items");
        }
    }
}

#[test]
fn offsets_that_are_wrong_are_told_and_nothing_is_written_beside_the_outputs() {
    let right: Vec<u32> = (0..=400).map(|item| 3 * item).collect();
    let fall = |at: usize, to: u32| {
        let mut offsets = right.clone();
        offsets[at] = to;
        offsets
    };
    let mut twice = right.clone();
    // Items that are right themselves begin at one place.
    twice.splice(..6, [0, 2, 4, 1, 2, 6]);
    let wrong = [
        twice,
        fall(0, 1),
        fall(0, 900),
        fall(1, 5000),
        fall(100, 0),
        fall(200, u32::MAX),
        fall(400, 1201),
        fall(400, 2),
    ];
    for (case, offsets) in wrong.into_iter().enumerate() {
        for vt in [1, 4, 64] {
            let mut found = vec![0_u32; 1200];
            match scanner(Strategy::Lookback, vt).run(owners()).offsets(&offsets).output(&mut found).expand() {
                Err(error) if error.to_string().contains("fall") => {}
                result => assert!(!is_made(result), "case {case} of {vt} a thread is not told"),
            }
        }
    }
}

#[test]
fn no_items_have_no_places() {
    let mut found = [7_u32; 3];
    let mut scanner = scanner(Strategy::Lookback, 2);
    if is_made(scanner.run(owners()).offsets(&[0_u32]).output(&mut found).expand()) {
        assert_eq!(found, [7; 3]);
        let wrong = scanner.run(owners()).offsets(&[2_u32]).output(&mut found).expand().expect_err("it begins at 2");
        assert!(wrong.to_string().contains("fall"), "{wrong}");
    }
    let mut none = [0_u32; 0];
    assert!(is_made(scanner.run(owners()).offsets(&[0_u32, 0]).output(&mut none).expand()));
}

#[test]
fn what_is_not_whole_is_refused() {
    let places = || Definition::expansion("places").input::<u32>("x").output::<u32>("y").store("y = x;");
    let scatter = || Definition::scattered("scatter", "return i;").input::<u32>("x").output::<u32>("y").store("y = x;");
    assert!(places().define().is_ok() && scatter().define().is_ok());
    for mixed in [
        places().keep("return true;"),
        places().load("return x;"),
        places().identity("0").combine("return left + right;"),
        scatter().cumulated(),
        scatter().descending(),
        scatter().input_in_runs::<u32>("z"),
    ] {
        let error = mixed.define().expect_err("two things");
        assert!(matches!(error, DefinitionError::Kind { .. }), "{error}");
    }
    for lacking in [
        Definition::expansion("places").store("y = 1;"),
        Definition::expansion("places").output::<u32>("y"),
        Definition::scattered("scatter", " ").input::<u32>("x").output::<u32>("y").store("y = x;"),
        Definition::scattered("scatter", "return i;").output::<u32>("y").store("y = 0;"),
    ] {
        let error = lacking.define().expect_err("it lacks something");
        assert!(matches!(error, DefinitionError::Missing { .. }), "{error}");
    }
    let named = places().input::<u32>("rank").define();
    assert!(matches!(named, Err(DefinitionError::Name { .. })), "{named:?}");

    let (places, scatter) = (places().define().unwrap(), scatter().define().unwrap());
    let (x, mut y, offsets) = ([3_u32, 1], [0_u32; 4], [0_u32, 1, 4]);
    let refused = |result: Result<(), DeviceError>, words: &str| {
        let text = result.expect_err("refused").to_string();
        assert!(text.contains(words), "{text}");
    };
    let mut lookback = scanner(Strategy::Lookback, 2);
    refused(lookback.run(places).input(&x).output(&mut y).expand(), "give one more than there are segments");
    refused(lookback.run(places).offsets(&offsets).input(&x).output(&mut y).inclusive(), "`expand`");
    refused(lookback.run(places).offsets(&offsets[..2]).input(&x).output(&mut y).expand(), "for each item");
    refused(lookback.run(places).offsets(&offsets).offsets(&offsets).input(&x).output(&mut y).expand(), "choose one");
    refused(lookback.run(places).offsets(&offsets).input(&x).output(&mut y).reversed().expand(), "one result");
    refused(lookback.run(places).offsets(&offsets).input(&x).output(&mut y).rows(2).expand(), "no scan");
    refused(lookback.run(scatter).input(&x).output(&mut y).offsets(&offsets).scatter(), "no scan");
    refused(lookback.run(scatter).input(&x).output(&mut y).expand(), "`scatter`");
    refused(scanner(Strategy::OneWave, 2).run(scatter).input(&x).output(&mut y).scatter(), "'lookback'");
}
