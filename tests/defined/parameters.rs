//! What a definition is given beside arrays, over slices on the CPU device: each place that its text is run at, against a loop.

use super::by_rank::definition;
use super::{STRATEGIES, is_made, scanner};
use bytemuck::{Pod, Zeroable};
use lookback::element::{ArrayElement, Definition, DefinitionError};
use lookback::lab::cpu_kernels::NoKernel;
use lookback::lab::device::DeviceError;
use lookback::lab::host_compiler::HostCompilerError;
use lookback::run::AnyScanner;
use lookback::strategy::Strategy;
use proptest::prelude::*;

/// Of sixteen bytes, so that it takes every word.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
struct Terms {
    factor: u64,
    addend: u32,
    modulus: u32,
}

impl ArrayElement for Terms {
    const CUDA_TYPE: &'static str = "terms";
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn numbers_below_one_that_is_given_are_kept(
        x in prop::collection::vec(any::<i32>(), 1..1500),
        limits in prop::collection::vec(any::<i32>(), 1..4),
        strategy in prop::sample::select(STRATEGIES.to_vec()),
    ) {
        let below = definition(Definition::select::<i32>("return x < limit;").parameter::<i32>("limit"));
        let mut scanner = scanner(strategy, 4);
        for limit in limits {
            let (mut kept, mut number) = (vec![0; x.len()], [0_u32]);
            let run = scanner.run(below).parameter(limit).input(&x).output(&mut kept).count_into(&mut number);
            if !is_made(run.compact()) {
                return Ok(());
            }
            let expected: Vec<i32> = x.iter().copied().filter(|&x| x < limit).collect();
            prop_assert_eq!(number[0] as usize, expected.len());
            prop_assert_eq!(&kept[..expected.len()], &expected[..]);
        }
    }

    #[test]
    fn loading_and_storing_have_parameters_of_every_size(
        x in prop::collection::vec(any::<u32>(), 1..1500),
        (small, half, word) in (any::<u8>(), any::<i16>(), -1000_i32..1000),
        (factor, addend, modulus) in (any::<u64>(), any::<u32>(), 1_u32..1000),
        is_reversed in any::<bool>(),
        strategy in prop::sample::select(STRATEGIES.to_vec()),
    ) {
        let terms = Terms { factor, addend, modulus };
        let sums = definition(
            Definition::new::<u64>("terms", "u64")
                .declare("struct terms { u64 factor; u32 addend; u32 modulus; };")
                .identity("0")
                .combine("return left + right;")
                .commutative()
                .parameter::<u8>("small")
                .parameter::<i16>("half")
                // As its type is called.
                .parameter::<Terms>("terms")
                .parameter::<f32>("word")
                .input::<u32>("x")
                .load("return x * terms.factor + small + (terms.addend + i) % terms.modulus;")
                .output::<u64>("y")
                .store("y = state + static_cast<u64>(static_cast<long long>(half)) + static_cast<u64>(static_cast<long long>(word));"),
        );
        let mut y = vec![0_u64; x.len()];
        let mut scanner = scanner(strategy, 4);
        let run = scanner.run(sums).parameter(small).parameter(half).parameter(terms).parameter(word as f32);
        let run = run.input(&x).output(&mut y);
        let run = if is_reversed { run.reversed() } else { run };
        if !is_made(run.inclusive()) {
            return Ok(());
        }
        let load = |i: usize| {
            let place = (u64::from(terms.addend) + i as u64) % u64::from(terms.modulus);
            u64::from(x[i]).wrapping_mul(terms.factor).wrapping_add(u64::from(small)).wrapping_add(place)
        };
        let order: Vec<usize> = if is_reversed { (0..x.len()).rev().collect() } else { (0..x.len()).collect() };
        let mut sum = 0_u64;
        for i in order {
            sum = sum.wrapping_add(load(i));
            prop_assert_eq!(y[i], sum.wrapping_add(half as u64).wrapping_add(i64::from(word) as u64), "{}", i);
        }
    }
}

#[test]
fn what_is_no_scan_has_parameters_too() {
    let x: Vec<u32> = (0..1000).map(|i| i * 7919 % 1009).collect();
    let mut scanner = scanner(Strategy::Lookback, 4);
    let width =
        Definition::binned::<u32>("by width", 10, "return x / width;").parameter::<u32>("width").input::<u32>("x");
    let width = definition(width);
    let mut counts = [0_u32; 10];
    if !is_made(scanner.run(width).parameter(150_u32).input(&x).output(&mut counts).histogram()) {
        return;
    }
    let counted = |bin| x.iter().filter(|&&x| x / 150 == bin).count() as u32;
    assert_eq!(counts.to_vec(), (0..10).map(counted).collect::<Vec<_>>());

    let rotated = definition(
        Definition::scattered("rotated", "return (i + by) % n;")
            .parameter::<u64>("by")
            .parameter::<u64>("n")
            .input::<u32>("x")
            .output::<u32>("y")
            .store("y = x + static_cast<u32>(by);"),
    );
    let mut y = vec![0_u32; 1000];
    assert!(is_made(scanner.run(rotated).parameter(3_u64).parameter(1000_u64).input(&x).output(&mut y).scatter()));
    assert!((0..1000).all(|i| y[(i + 3) % 1000] == x[i] + 3));

    let shared = Definition::expansion("scaled").parameter::<f32>("scale").input::<f32>("x").output::<f32>("y");
    let shared = definition(shared.store("y = x * scale;"));
    let (items, offsets, mut places) = ([1.0_f32, 2.0, 3.0], [0_u32, 2, 2, 5], [0.0_f32; 5]);
    let run = scanner.run(shared).parameter(0.5_f32).offsets(&offsets).input(&items).output(&mut places);
    assert!(is_made(run.expand()));
    assert_eq!(places, [0.5, 0.5, 1.5, 1.5, 1.5]);

    let far =
        Definition::new::<u32>("groups", "u32").identity("0").combine("return left + right;").parameter::<u32>("far");
    let far = far.input::<u32>("x").load("return x;").output::<u32>("sum").store("sum = state;");
    let far = definition(far.groups("return x >= far;", "return x >= far;").load("return x;"));
    let (mut sums, mut number) = (vec![0_u32; 1000], [0_u32]);
    assert!(is_made(
        scanner.run(far).parameter(1000_u32).input(&x).output(&mut sums).count_into(&mut number).compact()
    ));
    let begun: Vec<u32> = x.iter().copied().filter(|&x| x >= 1000).collect();
    assert_eq!(sums[..number[0] as usize], begun);
}

#[test]
fn other_numbers_and_types_of_parameters_than_are_defined_are_refused() {
    fn select() -> Definition {
        Definition::select::<i32>("return low < x && x < high;")
    }
    let between = || select().parameter::<i32>("low").parameter::<i32>("high");
    let defined = definition(between());
    let (x, mut kept) = (vec![1_i32; 10], vec![0_i32; 10]);
    let mut scanner = scanner(Strategy::Lookback, 4);
    let mut refused = |values: &[i32]| {
        let run = values.iter().fold(scanner.run(defined), |run, &value| run.parameter(value));
        run.input(&x).output(&mut kept).compact().unwrap_err().to_string()
    };
    let told = "selection of int has 2 parameters and is given 1: call `parameter` once for each of these: low, high";
    assert_eq!(refused(&[1]), told);
    assert!(refused(&[1, 2, 3]).contains("is given 3"));
    let wrong = scanner.run(defined).parameter(0_i32).parameter(0.5_f32).input(&x).output(&mut kept).compact();
    let told = "selection of int: the parameter 'high' is 'int' of 4 bytes, and it is given 'float' of 4 bytes";
    assert_eq!(wrong.as_ref().unwrap_err().to_string(), told);

    let names = |definition: fn() -> Definition, taken: &[&'static str]| {
        taken.iter().map(move |&name| (definition(), name)).collect::<Vec<_>>()
    };
    let in_runs = || {
        Definition::filter("runs").input_in_runs::<u32>("x").keep("return x_begins;").output::<u32>("y").store("y = x;")
    };
    let shared = || Definition::expansion("shared").input::<u8>("x").output::<u8>("y").store("y = x;");
    let taken = [
        names(select, &["x", "kept", "i", "low", "1st", ""]),
        names(in_runs, &["x_begins", "x_ends"]),
        names(shared, &["item", "rank"]),
    ];
    for (definition, name) in taken.into_iter().flatten() {
        let refused = definition.parameter::<u8>("low").parameter::<u8>("high").parameter::<u8>(name).define();
        assert!(matches!(&refused, Err(DefinitionError::Name { name: told, .. }) if told == name), "{refused:?}");
    }
    let wide = between().parameter::<Terms>("a").parameter::<Terms>("b").parameter::<Terms>("c");
    // 8 bytes, and 8 to the next multiple of 16; then three times 16.
    assert!(wide.clone().define().is_ok());
    assert!(matches!(wide.parameter::<u8>("d").define(), Err(DefinitionError::Bytes { bytes: 65, .. })));
    let sort = Definition::sort::<u32>().expect("keys are numbers").parameter::<u32>("pivot").define();
    assert!(matches!(sort, Err(DefinitionError::Kind { .. })));
}

/// Of segments, of columns, in the strategies' first passes, and where nothing is stored.
#[test]
fn rows_columns_and_totals_are_given_them() {
    let x: Vec<u32> = (0..3000).collect();
    let scaled =
        Definition::new::<u32>("scaled", "u32").identity("0").combine("return left + right;").parameter::<u32>("by");
    let scaled =
        definition(scaled.input::<u32>("x").load("return x * by;").output::<u32>("y").store("y = state + by;"));
    for (strategy, by) in [(Strategy::Lookback, 3_u32), (Strategy::Lookahead, 5), (Strategy::ReduceThenScan, 7)] {
        let (mut scanner, mut y) = (scanner(strategy, 4), vec![0_u32; 3000]);
        if !is_made(scanner.run(scaled).parameter(by).input(&x).output(&mut y).rows(100).inclusive()) {
            return;
        }
        let row = |i: usize| x[i / 100 * 100..=i].iter().sum::<u32>() * by + by;
        assert!((0..3000).all(|i| y[i] == row(i)), "{strategy}");
        let mut total = 0_u32;
        let run = scanner.run(scaled).parameter(by).input(&x);
        assert!(is_made(run.total(std::slice::from_mut(&mut total))));
        assert_eq!(total, x.iter().sum::<u32>() * by, "{strategy}");
        if strategy == Strategy::ReduceThenScan {
            continue;
        }
        assert!(is_made(scanner.run(scaled).parameter(by).input(&x).output(&mut y).columns(20).inclusive()));
        let column = |i: usize| x[i % 20..=i].iter().step_by(20).sum::<u32>() * by + by;
        assert!((0..3000).all(|i| y[i] == column(i)), "{strategy}");
    }
}

/// Identity and combination are of states alone.
#[test]
fn the_combination_of_states_has_no_parameters() {
    let decayed = Definition::new::<f32>("decayed", "float").identity("0").combine("return left * decay + right;");
    let decayed =
        decayed.parameter::<f32>("decay").input::<f32>("x").load("return x;").output::<f32>("y").store("y = state;");
    let (x, mut y) = ([1.0_f32; 4], [0.0_f32; 4]);
    let run =
        scanner(Strategy::Lookback, 4).run(definition(decayed)).parameter(0.5_f32).input(&x).output(&mut y).inclusive();
    match run {
        Err(DeviceError::NoKernel(NoKernel::Compiler(HostCompilerError::Compile { output, .. }))) => {
            assert!(output.contains("decay"), "{output}");
        }
        other => assert!(!is_made(other), "it compiles"),
    }
}
