//! What is compacted, sorted and counted of arrays that are as unkind as they get, over slices on the CPU device.

use super::unkind::unkind;
use super::{is_made, scanner};
use lookback::element::{Definition, ElementType, Operator};
use lookback::lab::host_scanner::HostScanner;
use lookback::run::AnyScanner;
use lookback::strategy::Strategy;

fn each(check: impl Fn(&mut HostScanner, &[u32])) {
    for n in [1, 2, 511, 3001] {
        for (name, x) in unkind(n) {
            println!("{n}, {name}");
            check(&mut scanner(Strategy::Lookback, 5), &x);
        }
    }
}

#[test]
fn they_are_parted_and_their_runs_are_found_and_repeated() {
    let partition = Definition::partition::<u32>("return x < 0x60000000;").define().expect("a partition");
    let encode = Definition::run_length_encode::<u32>().expect("numbers").define().expect("runs");
    let repeated = Definition::repeated::<u32>().define().expect("an expansion");
    each(|scanner, x| {
        let n = x.len();
        let (mut kept, mut others, mut count) = (vec![0_u32; n], vec![0_u32; n], 0_u64);
        let run = scanner.run(partition).input(x).output(&mut kept).output(&mut others).count_into(&mut count);
        if !is_made(run.compact()) {
            return;
        }
        let (below, above): (Vec<u32>, Vec<u32>) = x.iter().partition(|&&x| x < 0x6000_0000);
        assert_eq!(count as usize, below.len());
        assert!(kept[..below.len()] == below && others[..above.len()] == above);

        let runs: Vec<(u32, u64)> = x.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect();
        let (mut values, mut lengths) = (vec![0_u32; n], vec![0_u64; n]);
        let run = scanner.run(encode).input(x).output(&mut values).output(&mut lengths).count_into(&mut count);
        assert!(is_made(run.compact()));
        let found = values.iter().copied().zip(lengths).take(count as usize);
        assert!(found.eq(runs.iter().copied()));

        let offsets: Vec<u64> =
            (0..=runs.len()).map(|run| runs[..run].iter().map(|(_, length)| length).sum()).collect();
        let mut again = vec![0_u32; n];
        let run = scanner.run(repeated).offsets(&offsets).input(&values[..runs.len()]).output(&mut again);
        assert!(is_made(run.expand()));
        assert_eq!(again, x);
    });
}

#[test]
fn the_first_of_their_runs_their_places_and_totals_are_found() {
    let unique = Definition::unique::<u32>().expect("numbers").define().expect("a selection");
    let nonzero = Definition::nonzero::<f32>().expect("numbers").define().expect("a selection");
    let longer = Definition::non_trivial_runs::<u32>().expect("numbers").define().expect("a selection");
    let totals = Definition::reduce_by_key::<u32>(Operator::Sum, ElementType::U32, ElementType::U32);
    let totals = totals.expect("numbers").define().expect("totals");
    each(|scanner, x| {
        let (n, mut count) = (x.len(), 0_u64);
        let runs: Vec<&[u32]> = x.chunk_by(|a, b| a == b).collect();
        let mut first = vec![0_u32; n];
        if !is_made(scanner.run(unique).input(x).output(&mut first).count_into(&mut count).compact()) {
            return;
        }
        assert!(first[..count as usize].iter().copied().eq(runs.iter().map(|run| run[0])));

        // Neither zero is kept, every NaN is.
        let floats: &[f32] = bytemuck::cast_slice(x);
        let mut places = vec![0_u64; n];
        let run = scanner.run(nonzero).input(floats).output(&mut places).count_into(&mut count);
        assert!(is_made(run.compact()));
        let kept = floats.iter().zip(0..).filter(|(float, _)| **float != 0.0).map(|(_, place)| place);
        assert!(places[..count as usize].iter().copied().eq(kept));

        let mut lengths = vec![0_u64; n];
        let run = scanner.run(longer).input(x).output(&mut places).output(&mut lengths).count_into(&mut count);
        assert!(is_made(run.compact()));
        let begins =
            runs.iter().scan(0, |end, run| Some((std::mem::replace(end, *end + run.len() as u64), run.len() as u64)));
        let found = places.iter().copied().zip(lengths).take(count as usize);
        assert!(found.eq(begins.filter(|(_, length)| *length > 1)));

        let mut sums = vec![0_u32; n];
        let run = scanner.run(totals).input(x).input(x).output(&mut first).output(&mut sums).count_into(&mut count);
        assert!(is_made(run.compact()));
        let found = first.iter().copied().zip(sums).take(count as usize);
        assert!(found.eq(runs.iter().map(|run| (run[0], run[0].wrapping_mul(run.len() as u32)))));
    });
}

#[test]
fn they_are_sorted_and_their_bytes_are_counted() {
    let pairs = Definition::sort::<u32>().expect("a key").with::<u32>("place").define().expect("a sort");
    let floats = Definition::sort::<f32>().expect("a key").descending().define().expect("a sort");
    let histogram = Definition::byte_histogram::<u8, u32>().expect("bytes").define().expect("a histogram");
    each(|scanner, x| {
        let n = x.len();
        let mut places: Vec<u32> = (0..n as u32).collect();
        let (mut sorted, mut moved) = (vec![0_u32; n], vec![0_u32; n]);
        if !is_made(scanner.run(pairs).input(x).input(&places).output(&mut sorted).output(&mut moved).sort()) {
            return;
        }
        places.sort_by_key(|&place| x[place as usize]);
        assert_eq!(moved, places);
        assert!(sorted.iter().copied().eq(places.iter().map(|&place| x[place as usize])));

        let (mut x_as_floats, mut sorted) = (bytemuck::cast_slice::<u32, f32>(x).to_vec(), vec![0_f32; n]);
        assert!(is_made(scanner.run(floats).input(&x_as_floats).output(&mut sorted).sort()));
        x_as_floats.sort_by(|a, b| b.total_cmp(a));
        assert!(sorted.iter().map(|x| x.to_bits()).eq(x_as_floats.iter().map(|x| x.to_bits())));

        let bytes: &[u8] = bytemuck::cast_slice(x);
        let (mut counts, mut expected) = ([0_u32; 256], [0; 256]);
        assert!(is_made(scanner.run(histogram).input(bytes).output(&mut counts).histogram()));
        bytes.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
        assert_eq!(counts, expected);
    });
}
