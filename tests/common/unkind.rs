//! Arrays that are as unkind to compactions, sorts and counts as they get, and what these make of them, on whatever scans: all
//! numbers equal, all different, in order, in the opposite order, all equal but one, and floats of NaNs and both zeros.

use bytemuck::Pod;
use lookback::element::{Definition, ElementType, Operator};
use lookback::run::AnyScanner;
use std::error::Error;

type Outcome = Result<(), Box<dyn Error>>;

/// By name, of `n` numbers each.
pub fn unkind(n: usize) -> Vec<(&'static str, Vec<u32>)> {
    let places = || 0..n as u32;
    let different = |place: u32| place.wrapping_mul(0x9e37_79b1);
    let special = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE / 2.0, -1.5];
    vec![
        ("all equal", vec![0xabcd_ef01; n]),
        ("all different", places().map(different).collect()),
        ("in order", places().collect()),
        ("in the opposite order", places().rev().collect()),
        ("one outlier", places().map(|place| if place as usize == n / 3 { 0 } else { u32::MAX }).collect()),
        ("long runs", places().map(|place| (place / 1000 % 7) << 29).collect()),
        ("special floats", places().map(|place| special[different(place) as usize >> 7 & 7].to_bits()).collect()),
    ]
}

/// Everything that is compacted, sorted, counted and shared out of the numbers, against loops.
///
/// # Errors
/// The first that is wrong.
pub fn check_all<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    check_partition(scanner, x)?;
    check_runs(scanner, x)?;
    check_firsts(scanner, x)?;
    check_totals(scanner, x)?;
    check_longer_runs(scanner, x)?;
    check_sorts(scanner, x)?;
    check_bytes(scanner, x)?;
    check_bins(scanner, x)?;
    check_places(scanner, x)?;
    check_scatter(scanner, x)
}

/// What an output holds before anything is stored there, in each byte.
const FILLING: u8 = 0x5a;

fn room<S: AnyScanner, T: Pod>(scanner: &mut S, elements: usize) -> Result<S::Array<T>, S::Error> {
    let mut filled = vec![T::zeroed(); elements];
    bytemuck::cast_slice_mut(&mut filled).fill(FILLING);
    scanner.array(&filled)
}

fn expect<T: PartialEq>(found: &[T], expected: &[T], what: &str) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{what} are others").into()) }
}

/// The first elements are these, and behind them is what was there.
fn expect_stored<S: AnyScanner, T: Pod + PartialEq>(
    scanner: &mut S,
    stored: &S::Array<T>,
    expected: &[T],
    what: &str,
) -> Outcome {
    let stored = scanner.read(stored)?;
    let (front, behind) = stored.split_at(expected.len());
    expect(front, expected, what)?;
    let is_untouched = bytemuck::cast_slice(behind).iter().all(|&byte: &u8| byte == FILLING);
    if is_untouched { Ok(()) } else { Err(format!("{what}: what lies behind them was written").into()) }
}

fn floats_of(x: &[u32]) -> Vec<f32> {
    x.iter().map(|&bits| f32::from_bits(bits)).collect()
}

fn bits_of(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|float| float.to_bits()).collect()
}

fn check_partition<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    let partition = Definition::partition::<u32>("return x < 0x60000000;").define()?;
    let (input, mut counts) = (scanner.array(x)?, room::<S, u32>(scanner, 2)?);
    let (mut kept, mut others) = (room::<S, u32>(scanner, x.len())?, room::<S, u32>(scanner, x.len())?);
    let run = scanner.run(partition).input(&input).output(&mut kept).output(&mut others);
    run.count_into(&mut counts).compact()?;
    let (below, above): (Vec<u32>, Vec<u32>) = x.iter().partition(|&&x| x < 0x6000_0000);
    expect(&scanner.read(&counts)?, &[below.len() as u32, above.len() as u32], "counts of a partition")?;
    expect_stored(scanner, &kept, &below, "those that are kept")?;
    expect_stored(scanner, &others, &above, "the others")?;

    // Of two counts the next run takes the first.
    let mut sums = room::<S, u32>(scanner, x.len())?;
    let sum = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
    scanner.run(sum).input(&kept).output(&mut sums).count_from(&counts).inclusive()?;
    scanner.check()?;
    let through = below.iter().scan(0_u32, |sum, &x| {
        *sum = sum.wrapping_add(x);
        Some(*sum)
    });
    expect_stored(scanner, &sums, &through.collect::<Vec<_>>(), "sums of those that are kept")
}

fn check_runs<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    let encode = Definition::run_length_encode::<u32>()?.define()?;
    let (input, mut count) = (scanner.array(x)?, room::<S, u64>(scanner, 1)?);
    let (mut values, mut lengths) = (room::<S, u32>(scanner, x.len())?, room::<S, u64>(scanner, x.len())?);
    let run = scanner.run(encode).input(&input).output(&mut values).output(&mut lengths);
    run.count_into(&mut count).compact()?;
    let runs = x.chunk_by(|a, b| a == b);
    let (firsts, expected): (Vec<u32>, Vec<u64>) = runs.map(|run| (run[0], run.len() as u64)).unzip();
    expect(&scanner.read(&count)?, &[firsts.len() as u64], "numbers of runs")?;
    expect_stored(scanner, &values, &firsts, "values of runs")?;
    expect_stored(scanner, &lengths, &expected, "lengths of runs")?;

    // And back again.
    let sums = expected.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    });
    let offsets: Vec<u64> = std::iter::once(0).chain(sums).collect();
    let (offsets, values) = (scanner.array(&offsets)?, scanner.array(&firsts)?);
    let mut again = room::<S, u32>(scanner, x.len())?;
    let repeated = Definition::repeated::<u32>().define()?;
    scanner.run(repeated).offsets(&offsets).input(&values).output(&mut again).expand()?;
    scanner.check()?;
    expect_stored(scanner, &again, x, "repeated values")
}

/// Unique words and floats, and places of what is not 0: of floats neither zero, but every NaN.
fn check_firsts<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    let (words, floats) = (scanner.array(x)?, floats_of(x));
    let floats_there = scanner.array(&floats)?;
    let mut first = room::<S, u32>(scanner, x.len())?;
    let unique = Definition::unique::<u32>()?.define()?;
    scanner.run(unique).input(&words).output(&mut first).compact()?;
    let firsts: Vec<u32> = x.chunk_by(|a, b| a == b).map(|run| run[0]).collect();
    expect_stored(scanner, &first, &firsts, "unique words")?;

    let mut first = room::<S, f32>(scanner, x.len())?;
    let unique = Definition::unique::<f32>()?.define()?;
    scanner.run(unique).input(&floats_there).output(&mut first).compact()?;
    let firsts: Vec<f32> = floats.chunk_by(|a, b| a == b).map(|run| run[0]).collect();
    let found = scanner.read(&first)?;
    expect(&bits_of(&found[..firsts.len()]), &bits_of(&firsts), "unique floats")?;

    let mut places = room::<S, u32>(scanner, x.len())?;
    let nonzero = Definition::nonzero_as::<f32, u32>()?.define()?;
    scanner.run(nonzero).input(&floats_there).output(&mut places).compact()?;
    let expected: Vec<u32> = (0..).zip(&floats).filter(|&(_, &x)| x != 0.0).map(|(place, _)| place).collect();
    expect_stored(scanner, &places, &expected, "places of what is not 0")
}

/// Of keys that are their own numbers.
fn check_totals<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    let by_key = Definition::reduce_by_key::<u32>(Operator::Sum, ElementType::U32, ElementType::U32)?.define()?;
    let input = scanner.array(x)?;
    let (mut keys, mut totals) = (room::<S, u32>(scanner, x.len())?, room::<S, u32>(scanner, x.len())?);
    scanner.run(by_key).input(&input).input(&input).output(&mut keys).output(&mut totals).compact()?;
    let runs = x.chunk_by(|a, b| a == b);
    let (firsts, sums): (Vec<u32>, Vec<u32>) = runs.map(|run| (run[0], run[0].wrapping_mul(run.len() as u32))).unzip();
    expect_stored(scanner, &keys, &firsts, "keys of totals")?;
    expect_stored(scanner, &totals, &sums, "totals by key")
}

fn check_longer_runs<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    let begins = x.chunk_by(|a, b| a == b).scan(0, |end, run| {
        *end += run.len() as u64;
        Some((*end - run.len() as u64, run.len() as u64))
    });
    let (begins, expected): (Vec<u64>, Vec<u64>) = begins.filter(|(_, length)| *length > 1).unzip();
    let longer = Definition::non_trivial_runs::<u32>()?.define()?;
    let (input, mut count) = (scanner.array(x)?, room::<S, u64>(scanner, 1)?);
    let (mut places, mut lengths) = (room::<S, u64>(scanner, x.len())?, room::<S, u64>(scanner, x.len())?);
    let run = scanner.run(longer).input(&input).output(&mut places).output(&mut lengths);
    run.count_into(&mut count).compact()?;
    expect(&scanner.read(&count)?, &[begins.len() as u64], "numbers of longer runs")?;
    expect_stored(scanner, &places, &begins, "places of longer runs")?;
    expect_stored(scanner, &lengths, &expected, "lengths of longer runs")
}

/// Words with their places, and floats from the largest to the smallest.
fn check_sorts<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    let mut expected: Vec<u32> = (0..x.len() as u32).collect();
    let (keys, places) = (scanner.array(x)?, scanner.array(&expected)?);
    let (mut sorted, mut moved) = (room::<S, u32>(scanner, x.len())?, room::<S, u32>(scanner, x.len())?);
    let pairs = Definition::sort::<u32>()?.with::<u32>("place").define()?;
    scanner.run(pairs).input(&keys).input(&places).output(&mut sorted).output(&mut moved).sort()?;
    expected.sort_by_key(|&place| x[place as usize]);
    expect_stored(scanner, &moved, &expected, "places of sorted words")?;
    let keys: Vec<u32> = expected.iter().map(|&place| x[place as usize]).collect();
    expect_stored(scanner, &sorted, &keys, "sorted words")?;

    let mut floats = floats_of(x);
    let (keys, mut sorted) = (scanner.array(&floats)?, room::<S, f32>(scanner, x.len())?);
    let descending = Definition::sort::<f32>()?.descending().define()?;
    scanner.run(descending).input(&keys).output(&mut sorted).sort()?;
    floats.sort_by(|a, b| b.total_cmp(a));
    expect(&bits_of(&scanner.read(&sorted)?), &bits_of(&floats), "sorted floats")
}

fn check_bytes<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    let bytes: &[u8] = bytemuck::cast_slice(x);
    let mut expected = vec![0_u32; 256];
    bytes.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
    let (input, mut counts) = (scanner.array(bytes)?, room::<S, u32>(scanner, 256)?);
    let histogram = Definition::byte_histogram::<u8, u32>()?.define()?;
    scanner.run(histogram).input(&input).output(&mut counts).histogram()?;
    expect_stored(scanner, &counts, &expected, "counts of bytes")
}

/// Words in a few bins of the same width, floats between levels, and the upper halves of words in more bins than a block has room
/// for.
fn check_bins<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    const BINS: u32 = 7;
    let (lower, upper) = (0x1000_u32, 0xf000_0000);
    let mut expected = vec![0_u32; BINS as usize];
    for x in x.iter().filter(|&&x| (lower..upper).contains(&x)) {
        let bin = u64::from(x - lower) * u64::from(BINS) / u64::from(upper - lower);
        expected[bin as usize] += 1;
    }
    let (words, mut counts) = (scanner.array(x)?, room::<S, u32>(scanner, BINS as usize)?);
    let even = Definition::even_histogram::<u32, u32>(BINS, lower, upper)?.define()?;
    scanner.run(even).input(&words).output(&mut counts).histogram()?;
    expect_stored(scanner, &counts, &expected, "counts of even bins")?;

    let levels = [f32::MIN, -1.0, -0.0, f32::MIN_POSITIVE, 1.0, 1.0e30];
    let floats = floats_of(x);
    let between = |ends: &[f32]| floats.iter().filter(|&&float| ends[0] <= float && float < ends[1]).count() as u64;
    let expected: Vec<u64> = levels.windows(2).map(between).collect();
    let (floats_there, mut counts) = (scanner.array(&floats)?, room::<S, u64>(scanner, expected.len())?);
    let defined = Definition::histogram_between::<f32, u64>(&levels)?.define()?;
    scanner.run(defined).input(&floats_there).output(&mut counts).histogram()?;
    expect_stored(scanner, &counts, &expected, "counts between levels")?;

    let mut expected = vec![0_u64; 1 << 16];
    x.iter().for_each(|&x| expected[(x >> 16) as usize] += 1);
    let mut counts = room::<S, u64>(scanner, expected.len())?;
    let upper = Definition::binned::<u64>("upper halves", 1 << 16, "return x >> 16;").input::<u32>("x").define()?;
    scanner.run(upper).input(&words).output(&mut counts).histogram()?;
    expect_stored(scanner, &counts, &expected, "counts of upper halves")
}

/// Items of as many places as two bits of the numbers say, by 1000: many of none in a row, or none of none.
fn check_places<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    let mut offsets = vec![0_u64];
    let mut expected = Vec::new();
    for (item, x) in (0_u32..).zip(x) {
        let length = if item % 1009 == 7 { (x >> 30) as usize * 1000 } else { (x >> 31) as usize };
        expected.resize(expected.len() + length, item);
        offsets.push(expected.len() as u64);
    }
    let (offsets, mut owners) = (scanner.array(&offsets)?, room::<S, u32>(scanner, expected.len() + 3)?);
    let defined = Definition::owners::<u32>().define()?;
    scanner.run(defined).offsets(&offsets).output(&mut owners).expand()?;
    scanner.check()?;
    expect_stored(scanner, &owners, &expected, "owners")
}

/// Backwards, those with their lowest bit set.
fn check_scatter<S: AnyScanner>(scanner: &mut S, x: &[u32]) -> Outcome {
    let scatter = Definition::scattered("backwards", "return x % 2 == 1 ? place : ~0ull;");
    let scatter = scatter.input::<u32>("x").input::<u64>("place").output::<u32>("y").store("y = x;").define()?;
    let places: Vec<u64> = (0..x.len() as u64).rev().collect();
    let (input, places, mut y) = (scanner.array(x)?, scanner.array(&places)?, room::<S, u32>(scanner, x.len())?);
    scanner.run(scatter).input(&input).input(&places).output(&mut y).scatter()?;
    let filling = u32::from_le_bytes([FILLING; 4]);
    let expected: Vec<u32> = x.iter().rev().map(|&x| if x % 2 == 1 { x } else { filling }).collect();
    expect_stored(scanner, &y, &expected, "scattered words")
}
