//! Arrays whose rows do not lie one behind the other: each against the loop over what is scanned, and what is between the rows.

use super::columns::{Shape, by_column};
use super::*;
use lookback::run::AnyScanner;
use lookback::strategy::{Composition, Pattern};
use proptest::strategy::Strategy as _;

/// Those that load tiles element by element or in vectors.
const OF_STRIDES: [Strategy; 5] = {
    use Strategy::{Chained, Lookback, OneWave, ReduceThenScan, SingleBlock};
    [Lookback, OneWave, SingleBlock, ReduceThenScan, Chained]
};

/// How an array lies: elements before its first row, elements from one row to the next if that is said, and whether what is
/// between rows is behind the last one, too.
#[derive(Debug, Clone, Copy)]
struct Lie {
    offset: usize,
    gap: Option<usize>,
    has_tail: bool,
}

const BETWEEN: u8 = 7;

impl Lie {
    /// Elements of an array of so many rows.
    fn elements(self, rows: usize, row: usize) -> usize {
        let gap = self.gap.unwrap_or(0);
        rows * (row + gap) - if self.has_tail { 0 } else { gap }
    }

    /// The places of all elements that are scanned.
    fn places(self, rows: usize, row: usize) -> impl Iterator<Item = usize> {
        let stride = row + self.gap.unwrap_or(0);
        (0..rows).flat_map(move |r| (0..row).map(move |c| self.offset + r * stride + c))
    }

    /// The array with these elements, and others around.
    fn spread<T: Copy + From<u8>>(self, elements: &[T], row: usize) -> Vec<T> {
        let rows = elements.len() / row;
        let mut spread = vec![T::from(BETWEEN); self.offset + self.elements(rows, row) + 17];
        for (place, &element) in self.places(rows, row).zip(elements) {
            spread[place] = element;
        }
        spread
    }
}

fn lies() -> impl proptest::strategy::Strategy<Value = Lie> {
    let gaps = vec![None, Some(0), Some(1), Some(3), Some(4), Some(8), Some(16), Some(200)];
    (prop::sample::select(vec![0_usize, 0, 0, 1, 4, 16]), prop::sample::select(gaps), any::<bool>())
        .prop_map(|(offset, gap, has_tail)| Lie { offset, gap, has_tail })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_lies_between_rows_is_neither_read_nor_written(
        strategy in prop::sample::select(OF_STRIDES.to_vec()),
        rows in 1_usize..40,
        row in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 15, 16, 31, 32, 33, 64, 96, 100, 128, 257, 1024]),
        outer in 1_usize..4,
        is_down_columns: bool,
        lies in prop::array::uniform4(lies()),
        vt in prop::sample::select(vec![1_u32, 2, 3, 4, 8]),
        is_reversed: bool,
        is_exclusive: bool,
        is_in_place: bool,
        given in prop::sample::select(vec![Given::Nothing, Given::Value, Given::Memory]),
        has_ends: bool,
        seed: u64,
    ) {
        let strategy = if is_down_columns { Strategy::Lookback } else { strategy };
        // Every row a whole number of vectors in one case of three.
        let row = if seed.is_multiple_of(3) { row.next_multiple_of(16) } else { row };
        let shape = match is_down_columns {
            true => Shape { outer, length: rows, inner: row },
            false => Shape { outer: rows * outer, length: row, inner: 1 },
        };
        let n = shape.elements();
        let (a, b) = arrays(n, seed);
        let states = states_of(given, shape.outer * shape.inner);
        let expected = by_column((&a, &b), shape, (is_exclusive, is_reversed), &states);
        let [of_a, of_b, of_addend, of_factor] = lies;
        let of_addend = if is_in_place { of_b } else { of_addend };
        let all_rows = n / row;
        let (a, b) = (of_a.spread(&a, row), of_b.spread(&b, row));
        let (mut addends, mut factors) = (of_addend.spread(&vec![0; n], row), of_factor.spread(&vec![0; n], row));
        if is_in_place {
            addends.clone_from(&b);
        }
        let mut ends = vec![Map { factor: 99, addend: 99 }; states.len()];
        let config = ScanConfig { vt, block_threads: 64, ..ScanConfig::default() };
        let mut scanner = HostScanner::new(CpuSettings { check_bounds: true, ..CpuSettings::default() })
            .with_config(config)
            .with_strategy(strategy);
        let mut run = scanner.run(maps()).input(&a[of_a.offset..][..of_a.elements(all_rows, row)]);
        run = stride_of(run, of_a, row);
        let addend = &mut addends[of_addend.offset..][..of_addend.elements(all_rows, row)];
        run = match is_in_place {
            true => stride_of(run.in_place(addend), of_b, row),
            false => {
                let run = stride_of(run.input(&b[of_b.offset..][..of_b.elements(all_rows, row)]), of_b, row);
                stride_of(run.output(addend), of_addend, row)
            }
        };
        run = run.output(&mut factors[of_factor.offset..][..of_factor.elements(all_rows, row)]);
        run = stride_of(run, of_factor, row);
        run = if is_down_columns { run.axis(rows, row) } else { run.rows(row) };
        if has_ends {
            run = run.final_state(&mut ends);
        }
        let made = made_from(run, given, &states, is_reversed, is_exclusive);
        if is_made(made) {
            prop_assert_eq!(&addends, &of_addend.spread(&expected.addends, row));
            prop_assert_eq!(&factors, &of_factor.spread(&expected.factors, row));
            if has_ends {
                prop_assert_eq!(&ends, &expected.ends);
            }
        }
    }
}

/// Says how the array lies that was named last.
fn stride_of(run: HostRun<'_>, lie: Lie, row: usize) -> HostRun<'_> {
    match lie.gap {
        Some(gap) => run.row_stride(row + gap),
        None => run,
    }
}

#[test]
fn strided_rows_have_the_bits_of_reproducible_ones() {
    let sums = Definition::of_numbers(Operator::Sum, ElementType::F32, ElementType::F32).expect("sums");
    let sums = sums.define().expect("a definition");
    let x: Vec<f32> = (0..30 * 100).map(|i| 1.0 / (i * i % 97 + 1) as f32).collect();
    let mut dense = vec![0.0_f32; x.len()];
    let mut scanner = scanner(Strategy::Lookback, 4).with_config(ScanConfig {
        vt: 4,
        block_threads: 64,
        pattern: Pattern::Shuffle,
        composition: Composition::ReduceThenScan,
        ..ScanConfig::default()
    });
    let made = scanner.run(sums).input(&x).output(&mut dense).rows(100).reproducible().inclusive();
    if !is_made(made) {
        return;
    }
    let lie = Lie { offset: 0, gap: Some(28), has_tail: true };
    let (from, mut to) = (lie.spread(&x, 100), lie.spread(&vec![0.0_f32; x.len()], 100));
    let run = scanner.run(sums).input(&from[..30 * 128]).row_stride(128).output(&mut to[..30 * 128]).row_stride(128);
    run.rows(100).reproducible().inclusive().expect("it is made");
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&to), bits(&lie.spread(&dense, 100)));
}

#[test]
fn what_are_no_rows_is_refused_and_says_why() {
    let sums = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).expect("sums");
    let sums = sums.define().expect("a definition");
    let x = vec![1_u32; 100];
    let refused = |run: Result<(), DeviceError>, is_right: fn(&CallError) -> bool| match run {
        Err(DeviceError::Config(ConfigError::Call(error))) => assert!(is_right(&error), "{error}"),
        other => panic!("{other:?}"),
    };
    macro_rules! refused {
        ($strategy:expr, $output:expr, $($call:ident $arguments:tt).+, $error:pat) => {
            let (mut scanner, mut y) = (scanner($strategy, 4), vec![0_u32; $output]);
            refused(scanner.run(sums).input(&x).$($call $arguments).+.output(&mut y).inclusive(), |error| matches!(error, $error));
        };
    }
    use Strategy::Lookback;
    // Of 100 elements rows of 8 that begin 23 apart leave 8, which are one more; 13 apart they leave 9, and 12 apart 4.
    refused!(Lookback, 32, row_stride(23).rows(8), CallError::Length { elements: 40, n: 32, .. });
    refused!(Lookback, 64, row_stride(13).rows(8), CallError::Stride { elements: 100, row: 8, stride: 13, .. });
    refused!(Lookback, 64, row_stride(12).rows(8), CallError::Stride { elements: 100, row: 8, stride: 12, .. });
    refused!(Lookback, 8, row_stride(usize::MAX).rows(8), CallError::Stride { row: 8, stride: u64::MAX, .. });
    // Rows that overlap.
    refused!(Lookback, 160, row_stride(5).rows(8), CallError::Stride { row: 8, stride: 5, .. });
    refused!(Lookback, 100, row_stride(0).rows(8), CallError::Stride { stride: 0, .. });
    refused!(Lookback, 100, row_stride(10).rows(0), CallError::Columns { columns: 0, .. });
    refused!(Lookback, 100, row_stride(10).columns(0), CallError::Axis { inner: 0, .. });
    refused!(Lookback, 100, row_stride(10), CallError::StrideOfNothing(_));
    refused!(Lookback, 100, row_stride(10).by_key(&x), CallError::StrideOfNothing(_));
    let (mut first, mut y) = (scanner(Lookback, 4), vec![0_u32; 100]);
    refused(first.run(sums).row_stride(10).input(&x).output(&mut y).rows(10).inclusive(), |error| {
        matches!(error, CallError::StrideOfNothing(_))
    });
    let ahead =
        scanner(Strategy::Lookahead, 4).run(sums).input(&x).row_stride(20).output(&mut y[..50]).rows(10).inclusive();
    assert!(matches!(ahead, Err(DeviceError::Config(ConfigError::TakesNoStrides { .. }))), "{ahead:?}");
    let none =
        scanner(Lookback, 4).run(sums).input::<u32>(&[]).row_stride(20).output::<u32>(&mut []).rows(10).inclusive();
    assert!(none.is_ok(), "{none:?}");
}
