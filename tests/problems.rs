//! Every problem of the laboratory on the CPU device, drawn: problem, strategy, mode, size round the ends of tiles, where
//! arrays lie, in place or not. Kernels of a problem are compiled when it is run for the first time; without a C++ compiler
//! the test prints that it skipped, and fails if LOOKBACK_REQUIRE_THREAD_SANITIZER is 1, which asks for one.
#![cfg(all(feature = "cpu", feature = "lab"))]

use lookback::element::{ElementType, Operator};
use lookback::lab::cpu_device::{CpuDevice, CpuSettings};
use lookback::lab::cpu_kernels::NoKernel;
use lookback::lab::dataset::Dataset;
use lookback::lab::device::{Device, DeviceError, RunSettings};
use lookback::lab::host_compiler::HostCompilerError;
use lookback::lab::workload::{ProblemKind, Workload};
use lookback::strategy::plan::{Plan, ScanRequest};
use lookback::strategy::{Composition, ConfigError, Mode, ScanConfig, Strategy};
use proptest::prelude::*;
use proptest::strategy::Strategy as _;

/// Look-ahead, and one of the others for each problem: a kernel of each takes the compiler a second or two. Two tests, because
/// one would keep one core busy.
const OTHERS: [Strategy; 3] = [Strategy::Lookback, Strategy::ReduceThenScan, Strategy::SingleBlock];
const BLOCK_THREADS: u32 = 64;

/// One workload a problem, because each takes kernels of its own: sums that are exact and that are rounded, an operator that
/// does not commute, narrow elements, and wide ones.
fn workload(kind: ProblemKind, segment: u64) -> Workload {
    use ElementType::{BicyclicPair, F32, F64, I8, I32, I64, IndexInterval, U8, U16, U32};
    let (operator, input, element) = match kind {
        ProblemKind::Flat => (Operator::Sum, U8, U32),
        ProblemKind::Reverse => (Operator::Bicyclic, BicyclicPair, BicyclicPair),
        ProblemKind::Reproducible | ProblemKind::ReproducibleColumns => {
            (Operator::Intervals, IndexInterval, IndexInterval)
        }
        ProblemKind::Rows => (Operator::Sum, F32, F32),
        ProblemKind::ReverseRows => (Operator::Max, U16, U16),
        ProblemKind::StridedRows => (Operator::Bicyclic, BicyclicPair, BicyclicPair),
        ProblemKind::ByKey => (Operator::Sum, I64, I64),
        ProblemKind::HeadFlags => (Operator::Or, U32, U32),
        ProblemKind::Recurrence => (Operator::Sum, F64, F64),
        ProblemKind::ReverseRecurrence => (Operator::Sum, U32, U32),
        ProblemKind::Columns => (Operator::Bicyclic, BicyclicPair, BicyclicPair),
        ProblemKind::ReverseColumns => (Operator::Sum, U8, F32),
        ProblemKind::BatchedColumns => (Operator::Max, I32, I32),
        ProblemKind::Offsets => (Operator::Sum, I32, I32),
        ProblemKind::RecurrenceColumns | ProblemKind::BatchedRecurrence => (Operator::Sum, F64, F64),
        ProblemKind::ReverseRecurrenceColumns | ProblemKind::ReverseBatchedRecurrence => (Operator::Sum, U32, U32),
        ProblemKind::Partition | ProblemKind::PartitionMost => (Operator::Sum, U16, U16),
        ProblemKind::ReduceByKey => (Operator::Sum, F32, F32),
        ProblemKind::TotalsFirst => (Operator::Bicyclic, BicyclicPair, BicyclicPair),
        ProblemKind::Select | ProblemKind::SelectMost => (Operator::Sum, U8, U8),
        ProblemKind::Unique | ProblemKind::UniqueMost => (Operator::Sum, I64, I64),
        ProblemKind::RunLengthEncode => (Operator::Sum, U16, U16),
        ProblemKind::NonTrivialRuns => (Operator::Sum, I32, ElementType::U64),
        ProblemKind::NonZero => (Operator::Sum, F32, ElementType::U64),
        ProblemKind::Sort => (Operator::Sum, F32, F32),
        ProblemKind::SortByHalf | ProblemKind::SortPairs => (Operator::Sum, U16, U16),
        ProblemKind::Histogram | ProblemKind::CumulatedHistogram => (Operator::Sum, I8, U32),
        ProblemKind::EvenHistogram => (Operator::Sum, I32, U32),
        ProblemKind::HistogramBetween => (Operator::Sum, F64, U32),
        ProblemKind::Expand => (Operator::Sum, U16, U16),
        ProblemKind::Scatter => (Operator::Sum, I64, I64),
    };
    // Recurrences have rows now and then.
    let has_segment = kind.needs_shape() || kind.has_runs() || kind.takes_shape() && segment.is_multiple_of(2);
    Workload::new(kind, operator, input, element, has_segment.then_some(segment)).unwrap()
}

/// Sizes about whole tiles, which are whole rows or columns where there are some.
fn size(workload: Workload, tiles: u64, tile: u64, more: i64) -> u64 {
    let n = (tiles * tile).saturating_add_signed(more);
    n.next_multiple_of(workload.least())
}

/// What is drawn beside the strategy.
#[derive(Debug, Clone)]
struct Drawn {
    kind: ProblemKind,
    mode: Mode,
    vt: u32,
    composition: Composition,
    segment: u64,
    tiles: u64,
    more: i64,
    offsets: (u32, u32),
    is_in_place: bool,
    seed: u64,
}

fn drawn() -> impl proptest::strategy::Strategy<Value = Drawn> {
    (
        prop::sample::select(ProblemKind::ALL),
        prop::sample::select(&[Mode::Inclusive, Mode::Exclusive][..]),
        prop::sample::select(&[1_u32, 3, 4, 8][..]),
        prop::sample::select(&[Composition::ReduceThenScan, Composition::ScanThenPropagate][..]),
        1_u64..600,
        (0_u64..5, -3_i64..4),
        (0_u32..4, 0_u32..4),
        any::<bool>(),
        any::<u64>(),
    )
        .prop_map(|(kind, mode, vt, composition, segment, (tiles, more), offsets, is_in_place, seed)| Drawn {
            kind,
            mode,
            vt,
            composition,
            segment,
            tiles,
            more,
            offsets,
            is_in_place,
            seed,
        })
}

fn check(strategy: Strategy, drawn: Drawn) -> Result<(), TestCaseError> {
    let Drawn { kind, vt, segment, tiles, more, seed, .. } = drawn;
    let workload = workload(kind, segment);
    // What is stored by rank goes by inclusive counts, into another array.
    let mode = if workload.has_mode(drawn.mode) { drawn.mode } else { Mode::Inclusive };
    let in_place = drawn.is_in_place && workload.may_be_in_place();
    let n = size(workload, tiles, u64::from(vt * BLOCK_THREADS), more);
    let offset = |elements: u32, element: ElementType| elements * element.bytes() as u32 % ScanRequest::OFFSETS;
    let input_offset = offset(drawn.offsets.0, workload.input());
    let output_offset = if in_place { input_offset } else { offset(drawn.offsets.1, workload.element()) };
    let is_reproducible = matches!(kind, ProblemKind::Reproducible | ProblemKind::ReproducibleColumns);
    let composition = if is_reproducible { Composition::ReduceThenScan } else { drawn.composition };
    let config = ScanConfig { vt, block_threads: BLOCK_THREADS, composition, ..ScanConfig::default() };
    let problem = workload.problem(n);
    let of = ScanRequest::of(problem, strategy, mode, config, n);
    let request = ScanRequest { in_place, input_offset, output_offset, ..of };
    let request = match Plan::new(&request) {
        Err(ConfigError::TakesNoColumns { .. }) => {
            prop_assert!(workload.to_string().contains("columns") && strategy != Strategy::Lookback);
            ScanRequest { strategy: Strategy::Lookback, ..request }
        }
        Err(ConfigError::TakesNoStrides { .. }) => {
            prop_assert_eq!((kind, strategy), (ProblemKind::StridedRows, Strategy::Lookahead));
            ScanRequest { strategy: Strategy::Lookback, ..request }
        }
        Err(ConfigError::ScansAlone { .. }) => {
            prop_assert!(!kind.is_scan() && strategy != Strategy::Lookback);
            ScanRequest { strategy: Strategy::Lookback, ..request }
        }
        Err(ConfigError::NotReproducible { .. }) => {
            prop_assert!(is_reproducible && strategy == Strategy::ReduceThenScan);
            ScanRequest { strategy: Strategy::OneWave, ..request }
        }
        Err(ConfigError::ReproducibleColumns { .. }) => {
            prop_assert!(kind == ProblemKind::ReproducibleColumns && strategy != Strategy::Lookahead);
            ScanRequest { strategy: Strategy::Lookahead, ..request }
        }
        _ => request,
    };
    let mut device = CpuDevice::new(CpuSettings { check_bounds: true, ..CpuSettings::default() });
    device.load(&Dataset::random(workload, n, seed)).unwrap();
    match device.run(&request, &RunSettings { seed, keeps_output: true, ..RunSettings::default() }) {
        Ok(outcome) => {
            prop_assert!(outcome.verification.passed(), "{}: {:?}", workload, outcome.verification);
            prop_assert_eq!(outcome.verification.compared, workload.output_elements(n));
            let bytes = outcome.output.map(|output| output.len());
            prop_assert_eq!(bytes, Some(workload.output_bytes(n) as usize));
        }
        // Marked pairs of f64 are no elements of a spine.
        Err(DeviceError::Config(ConfigError::SpineOfStates { .. })) => {
            prop_assert_eq!((kind.has_operator(), strategy), (false, Strategy::ReduceThenScan));
        }
        Err(DeviceError::NoKernel(NoKernel::Compiler(
            error @ (HostCompilerError::NoCompiler { .. } | HostCompilerError::NotAble { .. }),
        ))) => {
            assert!(std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"), "{error}");
            println!("skipped: {error}");
        }
        Err(error) => prop_assert!(false, "{}, {}: {}", workload, strategy, error),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(42))]

    #[test]
    fn every_problem_is_right_round_the_ends_of_tiles_by_look_ahead(drawn in drawn()) {
        check(Strategy::Lookahead, drawn)?;
    }

    #[test]
    fn every_problem_is_right_round_the_ends_of_tiles_by_one_of_the_others(drawn in drawn()) {
        check(OTHERS[drawn.kind as usize % OTHERS.len()], drawn)?;
    }
}

#[test]
fn of_no_elements_every_problem_is_nothing() {
    for &kind in ProblemKind::ALL {
        let (mode, composition) = (Mode::Inclusive, Composition::ReduceThenScan);
        let of_none = Drawn {
            kind,
            mode,
            vt: 4,
            composition,
            segment: 7,
            tiles: 0,
            more: 0,
            offsets: (1, 2),
            is_in_place: false,
            seed: 1,
        };
        check(Strategy::Lookback, of_none).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}
