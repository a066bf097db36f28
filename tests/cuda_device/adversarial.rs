//! What is compacted, sorted, counted and shared out of arrays that are as unkind as they get: all numbers equal, all different,
//! in order, in the opposite order, all equal but one, and floats of NaNs and both zeros.

use super::unkind::unkind;
use super::{scanner, turn};
use cudarc::driver::{CudaSlice, CudaStream};
use lookback::cuda::Scanner;
use lookback::element::{Definition, ElementType, Operator};
use std::sync::Arc;

/// What the device has, and what fills an output before anything is stored there.
struct Device<'a> {
    scanner: &'a Scanner,
    stream: &'a Arc<CudaStream>,
}

impl Device<'_> {
    fn words(&self, n: usize) -> CudaSlice<u32> {
        self.stream.clone_htod(&vec![0x5a5a_5a5a_u32; n]).expect("memory")
    }

    fn longs(&self, n: usize) -> CudaSlice<u64> {
        self.stream.clone_htod(&vec![0x5a5a_5a5a_u64; n]).expect("memory")
    }

    fn back(&self, words: &CudaSlice<u32>) -> Vec<u32> {
        self.stream.clone_dtoh(words).expect("memory")
    }
}

#[test]
fn unkind_arrays_are_compacted_sorted_counted_and_shared_out_rightly() {
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("unkind_arrays") else { return };
    let device = Device { scanner: &scanner, stream: &stream };
    for n in [1, 2, 4096, 100_003, 3_000_000] {
        for (name, x) in unkind(n) {
            let on_gpu = stream.clone_htod(&x).expect("memory");
            check_partition(&device, &x, &on_gpu).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
            check_runs(&device, &x, &on_gpu).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
            check_firsts_and_totals(&device, &x, &on_gpu).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
            check_longer_runs(&device, &x, &on_gpu).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
            check_bins(&device, &x, &on_gpu).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
            check_sorts(&device, &x, &on_gpu).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
            check_counts(&device, &x).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
            check_places(&device, &x).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
            check_scatter(&device, &x, &on_gpu).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
        }
    }
}

fn equal<T: PartialEq>(found: &[T], expected: &[T], what: &'static str) -> Result<(), &'static str> {
    if found == expected { Ok(()) } else { Err(what) }
}

fn check_partition(device: &Device<'_>, x: &[u32], on_gpu: &CudaSlice<u32>) -> Result<(), &'static str> {
    let Device { scanner, stream } = device;
    let (mut kept, mut others, mut count) = (device.words(x.len()), device.words(x.len()), device.longs(1));
    let partition = Definition::partition::<u32>("return x < 0x60000000;").define().expect("a partition");
    let run = scanner.run(stream, partition).input(on_gpu).output(&mut kept).output(&mut others);
    run.count_into(&mut count).compact().expect("it is launched");
    let (below, above): (Vec<u32>, Vec<u32>) = x.iter().partition(|&&x| x < 0x6000_0000);
    equal(&stream.clone_dtoh(&count).expect("memory"), &[below.len() as u64], "how many are kept")?;
    equal(&device.back(&kept)[..below.len()], &below, "those that are kept")?;
    equal(&device.back(&others)[..above.len()], &above, "the others")
}

fn check_runs(device: &Device<'_>, x: &[u32], on_gpu: &CudaSlice<u32>) -> Result<(), &'static str> {
    let Device { scanner, stream } = device;
    let runs: Vec<&[u32]> = x.chunk_by(|a, b| a == b).collect();
    let (mut values, mut lengths, mut count) = (device.words(x.len()), device.longs(x.len()), device.longs(1));
    let encode = Definition::run_length_encode::<u32>().expect("numbers").define().expect("runs");
    let run = scanner.run(stream, encode).input(on_gpu).output(&mut values).output(&mut lengths);
    run.count_into(&mut count).compact().expect("it is launched");
    equal(&stream.clone_dtoh(&count).expect("memory"), &[runs.len() as u64], "how many runs")?;
    let (firsts, expected): (Vec<u32>, Vec<u64>) = runs.iter().map(|run| (run[0], run.len() as u64)).unzip();
    equal(&device.back(&values)[..runs.len()], &firsts, "values of runs")?;
    equal(&stream.clone_dtoh(&lengths).expect("memory")[..runs.len()], &expected, "lengths of runs")?;

    // And back again.
    let sums = expected.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    });
    let offsets: Vec<u64> = std::iter::once(0).chain(sums).collect();
    let offsets = stream.clone_htod(&offsets).expect("memory");
    let values = stream.clone_htod(&firsts).expect("memory");
    let mut again = device.words(x.len());
    let repeated = Definition::repeated::<u32>().define().expect("an expansion");
    let run = scanner.run(stream, repeated).offsets(&offsets).input(&values).output(&mut again);
    run.expand().expect("it is launched");
    scanner.check(stream).expect("the offsets are right");
    equal(&device.back(&again), x, "repeated values")
}

/// Unique words and floats, places of what is not 0, and totals by key, of keys that are their own numbers.
fn check_firsts_and_totals(device: &Device<'_>, x: &[u32], on_gpu: &CudaSlice<u32>) -> Result<(), &'static str> {
    let Device { scanner, stream } = device;
    let runs: Vec<&[u32]> = x.chunk_by(|a, b| a == b).collect();
    let firsts: Vec<u32> = runs.iter().map(|run| run[0]).collect();
    let mut unique = device.words(x.len());
    let defined = Definition::unique::<u32>().expect("numbers").define().expect("a selection");
    scanner.run(stream, defined).input(on_gpu).output(&mut unique).compact().expect("it is launched");
    equal(&device.back(&unique)[..firsts.len()], &firsts, "unique words")?;

    let floats: Vec<f32> = x.iter().map(|&bits| f32::from_bits(bits)).collect();
    let firsts_of_floats: Vec<u32> = floats.chunk_by(|a, b| a == b).map(|run| run[0].to_bits()).collect();
    let floats_on_gpu = stream.clone_htod(&floats).expect("memory");
    let mut unique = stream.alloc_zeros::<f32>(x.len()).expect("memory");
    let defined = Definition::unique::<f32>().expect("numbers").define().expect("a selection");
    scanner.run(stream, defined).input(&floats_on_gpu).output(&mut unique).compact().expect("it is launched");
    let found: Vec<u32> = stream.clone_dtoh(&unique).expect("memory").iter().map(|float| float.to_bits()).collect();
    equal(&found[..firsts_of_floats.len()], &firsts_of_floats, "unique floats")?;

    let expected: Vec<u64> = (0..).zip(x).filter(|&(_, &x)| x != 0).map(|(place, _)| place).collect();
    let mut places = device.longs(x.len());
    let defined = Definition::nonzero::<u32>().expect("numbers").define().expect("a selection");
    scanner.run(stream, defined).input(on_gpu).output(&mut places).compact().expect("it is launched");
    equal(&stream.clone_dtoh(&places).expect("memory")[..expected.len()], &expected, "places of what is not 0")?;

    let sums: Vec<u32> = runs.iter().map(|run| run[0].wrapping_mul(run.len() as u32)).collect();
    let (mut keys, mut totals) = (device.words(x.len()), device.words(x.len()));
    let by_key = Definition::reduce_by_key::<u32>(Operator::Sum, ElementType::U32, ElementType::U32);
    let defined = by_key.expect("numbers").define().expect("totals");
    let run = scanner.run(stream, defined).input(on_gpu).input(on_gpu);
    run.output(&mut keys).output(&mut totals).compact().expect("it is launched");
    equal(&device.back(&keys)[..firsts.len()], &firsts, "keys of totals")?;
    equal(&device.back(&totals)[..sums.len()], &sums, "totals by key")
}

/// Runs of more than one element.
fn check_longer_runs(device: &Device<'_>, x: &[u32], on_gpu: &CudaSlice<u32>) -> Result<(), &'static str> {
    let Device { scanner, stream } = device;
    let mut place = 0;
    let mut expected = Vec::new();
    for run in x.chunk_by(|a, b| a == b) {
        if run.len() > 1 {
            expected.push((place, run.len() as u64));
        }
        place += run.len() as u64;
    }
    let (mut places, mut lengths, mut count) = (device.longs(x.len()), device.longs(x.len()), device.longs(1));
    let longer = Definition::non_trivial_runs::<u32>().expect("numbers").define().expect("runs");
    let run = scanner.run(stream, longer).input(on_gpu).output(&mut places).output(&mut lengths);
    run.count_into(&mut count).compact().expect("it is launched");
    equal(&stream.clone_dtoh(&count).expect("memory"), &[expected.len() as u64], "how many longer runs")?;
    let [places, lengths] = [places, lengths].map(|longs| stream.clone_dtoh(&longs).expect("memory"));
    let found: Vec<(u64, u64)> = places.into_iter().zip(lengths).take(expected.len()).collect();
    equal(&found, &expected, "longer runs")
}

/// Words in bins of the same width, and floats between levels.
fn check_bins(device: &Device<'_>, x: &[u32], on_gpu: &CudaSlice<u32>) -> Result<(), &'static str> {
    const BINS: u32 = 7;
    let (lower, upper) = (0x1000_u32, 0xf000_0000);
    let Device { scanner, stream } = device;
    let mut expected = vec![0_u32; BINS as usize];
    for x in x.iter().filter(|&&x| (lower..upper).contains(&x)) {
        let bin = u64::from(x - lower) * u64::from(BINS) / u64::from(upper - lower);
        expected[bin as usize] += 1;
    }
    let mut counts = device.words(BINS as usize);
    let even = Definition::even_histogram::<u32, u32>(BINS, lower, upper).expect("ends").define().expect("bins");
    scanner.run(stream, even).input(on_gpu).output(&mut counts).histogram().expect("it is launched");
    equal(&device.back(&counts), &expected, "counts of even bins")?;

    let levels = [f32::MIN, -1.0, -0.0, f32::MIN_POSITIVE, 1.0, 1.0e30];
    let floats: Vec<f32> = x.iter().map(|&bits| f32::from_bits(bits)).collect();
    let expected: Vec<u64> = levels
        .windows(2)
        .map(|ends| floats.iter().filter(|&&float| ends[0] <= float && float < ends[1]).count() as u64)
        .collect();
    let floats = stream.clone_htod(&floats).expect("memory");
    let mut counts = device.longs(expected.len());
    let between = Definition::histogram_between::<f32, u64>(&levels).expect("levels").define().expect("bins");
    scanner.run(stream, between).input(&floats).output(&mut counts).histogram().expect("it is launched");
    equal(&stream.clone_dtoh(&counts).expect("memory"), &expected, "counts between levels")
}

fn check_sorts(device: &Device<'_>, x: &[u32], on_gpu: &CudaSlice<u32>) -> Result<(), &'static str> {
    let Device { scanner, stream } = device;
    let places: Vec<u32> = (0..x.len() as u32).collect();
    let places_on_gpu = stream.clone_htod(&places).expect("memory");
    let (mut sorted, mut moved) = (device.words(x.len()), device.words(x.len()));
    let pairs = Definition::sort::<u32>().expect("a key").with::<u32>("place").define().expect("a sort");
    let run = scanner.run(stream, pairs).input(on_gpu).input(&places_on_gpu);
    run.output(&mut sorted).output(&mut moved).sort().expect("it is launched");
    let mut expected = places.clone();
    expected.sort_by_key(|&place| x[place as usize]);
    equal(&device.back(&moved), &expected, "places of sorted words")?;
    let keys: Vec<u32> = expected.iter().map(|&place| x[place as usize]).collect();
    equal(&device.back(&sorted), &keys, "sorted words")?;

    let floats: Vec<f32> = x.iter().map(|&bits| f32::from_bits(bits)).collect();
    let floats_on_gpu = stream.clone_htod(&floats).expect("memory");
    let mut sorted = stream.alloc_zeros::<f32>(x.len()).expect("memory");
    let descending = Definition::sort::<f32>().expect("a key").descending().define().expect("a sort");
    scanner.run(stream, descending).input(&floats_on_gpu).output(&mut sorted).sort().expect("it is launched");
    let mut expected = floats;
    expected.sort_by(|a, b| b.total_cmp(a));
    let bits = |floats: &[f32]| floats.iter().map(|float| float.to_bits()).collect::<Vec<_>>();
    equal(&bits(&stream.clone_dtoh(&sorted).expect("memory")), &bits(&expected), "sorted floats")
}

fn check_counts(device: &Device<'_>, x: &[u32]) -> Result<(), &'static str> {
    let Device { scanner, stream } = device;
    let bytes: &[u8] = bytemuck::cast_slice(x);
    let mut expected = vec![0_u32; 256];
    bytes.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
    let on_gpu = stream.clone_htod(bytes).expect("memory");
    // From any address on.
    for first in [0, 3] {
        let mut counts = device.words(256);
        let histogram = Definition::byte_histogram::<u8, u32>().expect("bytes").define().expect("a histogram");
        let input = on_gpu.slice(first..);
        scanner.run(stream, histogram).input(&input).output(&mut counts).histogram().expect("it is launched");
        let mut expected = expected.clone();
        bytes[..first].iter().for_each(|&byte| expected[usize::from(byte)] -= 1);
        equal(&device.back(&counts), &expected, "counts")?;
    }
    Ok(())
}

/// Items of as many places as two bits of the numbers say, by 1000: many of none in a row, or none of none.
fn check_places(device: &Device<'_>, x: &[u32]) -> Result<(), &'static str> {
    let Device { scanner, stream } = device;
    let mut offsets = vec![0_u64];
    let mut expected = Vec::new();
    for (item, x) in (0..).zip(x) {
        let length = if item % 1009 == 7 { (x >> 30) as usize * 1000 } else { (x >> 31) as usize };
        expected.resize(expected.len() + length, item);
        offsets.push(expected.len() as u64);
    }
    let on_gpu = stream.clone_htod(&offsets).expect("memory");
    expected.extend([0x5a5a_5a5a; 3]);
    let mut owners = device.words(expected.len());
    let defined = Definition::owners::<u32>().define().expect("an expansion");
    scanner.run(stream, defined).offsets(&on_gpu).output(&mut owners).expand().expect("it is launched");
    scanner.check(stream).expect("the offsets are right");
    equal(&device.back(&owners), &expected, "owners")
}

/// Backwards, those with their lowest bit set.
fn check_scatter(device: &Device<'_>, x: &[u32], on_gpu: &CudaSlice<u32>) -> Result<(), &'static str> {
    let Device { scanner, stream } = device;
    let n = x.len();
    let text = format!("return x % 2 == 1 ? {n} - 1 - i : ~0ull;");
    let scatter = Definition::scattered("backwards", &text).input::<u32>("x").output::<u32>("y").store("y = x;");
    let mut y = device.words(n);
    let defined = scatter.define().expect("a scatter");
    scanner.run(stream, defined).input(on_gpu).output(&mut y).scatter().expect("it is launched");
    let expected: Vec<u32> = x.iter().rev().map(|&x| if x % 2 == 1 { x } else { 0x5a5a_5a5a }).collect();
    equal(&device.back(&y), &expected, "scattered words")
}

#[test]
fn wrong_offsets_of_an_expansion_are_found() {
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("wrong_offsets_of_an_expansion") else { return };
    let right: Vec<u32> = (0..=100_000).map(|item| 7 * item).collect();
    let defined = Definition::owners::<u32>().define().expect("an expansion");
    for (place, wrong) in [(0, 1), (1, u32::MAX), (50_000, 0), (99_999, 700_001), (100_000, 700_001), (100_000, 0)] {
        let mut offsets = right.clone();
        offsets[place] = wrong;
        let on_gpu = stream.clone_htod(&offsets).expect("memory");
        let mut owners = stream.alloc_zeros::<u32>(700_000).expect("memory");
        scanner.run(&stream, defined).offsets(&on_gpu).output(&mut owners).expand().expect("it is launched");
        let found = scanner.check(&stream).expect_err("wrong offsets").to_string();
        assert!(found.contains("fall"), "{place}: {found}");
    }
}
