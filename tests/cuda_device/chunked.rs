//! Scans in chunks: whatever the chunks, the result is that of the whole array, and memory stays within its bounds.

use super::{scanner, turn};
use bytemuck::Pod;
use cudarc::driver::CudaContext;
use lookback::cuda::{ChunkedScan, Scanner};
use lookback::element::monoid::{Bicyclic, BicyclicPair, Monoid};
use lookback::element::{ArrayElement, Defined, Definition, ElementType, Operator};
use lookback::out_of_core::{Checkpoint, HostArrays, Job, Limits};
use lookback::strategy::Mode;
use std::sync::atomic::{AtomicBool, Ordering};

fn states<S: Copy>(mode: Mode, identity: S, elements: impl Iterator<Item = S>, combine: impl Fn(S, S) -> S) -> Vec<S> {
    let mut state = identity;
    let next = |element| {
        let before = state;
        state = combine(state, element);
        if mode == Mode::Exclusive { before } else { state }
    };
    elements.map(next).collect()
}

struct Case<'a> {
    scanners: &'a [Scanner],
    mode: Mode,
    limits: Limits,
}

impl Case<'_> {
    fn check<T: ArrayElement, U: ArrayElement + PartialEq>(&self, defined: Defined, inputs: &[&[T]], expected: &[U]) {
        let mut y = vec![U::zeroed(); expected.len()];
        let mut scan =
            ChunkedScan::on(self.scanners, defined, self.mode, y.len() as u64, &self.limits).expect("a plan");
        assert!(scan.device_bytes() <= self.limits.device_bytes);
        let arrays = inputs.iter().fold(HostArrays::new(), |arrays, input| arrays.input(input));
        scan.scan(arrays.output(&mut y)).unwrap_or_else(|error| panic!("{defined}: {error:?}"));
        let wrong = y.iter().zip(expected).position(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "{defined}, {}, {} elements, {:?}", self.mode, y.len(), self.limits);
    }
}

fn of_numbers(operator: Operator, from: ElementType, to: ElementType) -> Defined {
    Definition::of_numbers(operator, from, to).expect("it is defined").define().expect("a definition")
}

fn drawn<T: Pod>(n: usize, number: impl Fn(u32) -> T) -> Vec<T> {
    (0..n as u32).map(|i| number(i.wrapping_mul(2_654_435_761) >> 7)).collect()
}

#[test]
fn chunks_are_scanned_as_the_whole_array_is() {
    let _turn = turn();
    let Some((scanner, context, _)) = scanner("chunks_are_scanned_as_the_whole_array_is") else { return };
    // As many as there are; where there is one GPU, it has two parts.
    let second = CudaContext::new(1).unwrap_or(context);
    let scanners = [scanner, Scanner::new(&second).expect("it opened before")];
    let recurrence = Definition::linear_recurrence::<u32>().expect("numbers").define().expect("a definition");
    for (n, chunk, chunks_under_way, gpus) in [
        (0, 10, 3, 1),
        (1, 10, 3, 2),
        (999, 1, 4, 1),
        (1000, 1000, 3, 1),
        (1001, 1000, 1, 2),
        (100_003, 4097, 8, 1),
        (100_003, 4097, 8, 2),
        (3_000_001, 65_537, 5, 1),
        (3_000_001, 65_537, 5, 2),
    ] {
        for mode in [Mode::Inclusive, Mode::Exclusive] {
            let limits = Limits { chunk_elements: Some(chunk), chunks_under_way, ..Limits::default() };
            let case = Case { scanners: &scanners[..gpus], mode, limits };
            let x = drawn(n, |drawn| drawn);
            let expected = states(mode, 0, x.iter().copied(), u32::wrapping_add);
            case.check(of_numbers(Operator::Sum, ElementType::U32, ElementType::U32), &[&x], &expected);
            let bytes = drawn(n, |drawn| drawn as u8);
            let expected = states(mode, 0, bytes.iter().map(|&x| u64::from(x)), u64::wrapping_add);
            case.check(of_numbers(Operator::Sum, ElementType::U8, ElementType::U64), &[&bytes], &expected);
            // Not commutative.
            let pairs: Vec<BicyclicPair> = drawn(n, |drawn| bytemuck::cast([drawn & 3, drawn >> 2 & 3]));
            let expected = states(mode, Bicyclic::IDENTITY, pairs.iter().copied(), Bicyclic::combine);
            let bicyclic = of_numbers(Operator::Bicyclic, ElementType::BicyclicPair, ElementType::BicyclicPair);
            case.check(bicyclic, &[&pairs], &expected);
            let b = drawn(n, |drawn| !drawn);
            let maps = x.iter().zip(&b).map(|(&a, &b)| [a, b]);
            let compose =
                |f: [u32; 2], g: [u32; 2]| [f[0].wrapping_mul(g[0]), g[0].wrapping_mul(f[1]).wrapping_add(g[1])];
            let expected: Vec<u32> = states(mode, [1, 0], maps, compose).into_iter().map(|map| map[1]).collect();
            case.check(recurrence, &[&x, &b], &expected);
        }
    }
}

#[test]
fn a_scan_in_chunks_that_is_stopped_goes_on_from_its_checkpoint() {
    let _turn = turn();
    let Some((scanner, ..)) = scanner("a_scan_in_chunks_that_is_stopped") else { return };
    let n = 5_000_000;
    let x = drawn(n, |drawn| drawn);
    let sum = of_numbers(Operator::Sum, ElementType::U32, ElementType::U32);
    for mode in [Mode::Inclusive, Mode::Exclusive] {
        let expected = states(mode, 0, x.iter().copied(), u32::wrapping_add);
        let limits = Limits { chunk_elements: Some(10_000), chunks_under_way: 6, ..Limits::default() };
        let mut scan = scanner.chunked(sum, mode, n as u64, &limits).expect("a plan");
        let mut y = vec![0; n];
        let mut done = Checkpoint::default();
        while done.elements < n as u64 {
            let stop = AtomicBool::new(false);
            let arrays = HostArrays::new().input(&x).output(&mut y);
            let (begin, job) = (done.elements, Job { start: done, ..Job::new(&arrays, &arrays, &stop) });
            let told = |done: &Checkpoint| {
                stop.store(done.elements > begin + 1_000_000, Ordering::Relaxed);
                Ok(())
            };
            done = scan.run(job, told).expect("it is stopped, or at its end");
            drop(arrays);
            assert!(y[..done.elements as usize] == expected[..done.elements as usize], "{mode}, {}", done.elements);
        }
    }
}
