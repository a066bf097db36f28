//! What is compacted, sorted, counted and shared out of arrays that are as unkind as they get.

use super::unkind::{check_all, unkind};
use super::{scanner, turn};
use lookback::element::Definition;

#[test]
fn unkind_arrays_are_compacted_sorted_counted_and_shared_out_rightly() {
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("unkind_arrays") else { return };
    for n in [1, 2, 4096, 100_003, 3_000_000] {
        for (name, x) in unkind(n) {
            check_all(&mut scanner.on(&stream), &x).unwrap_or_else(|what| panic!("{what}: {n}, {name}"));
        }
    }
}

/// From any address on.
#[test]
fn bytes_between_two_vectors_are_counted() {
    let _turn = turn();
    let Some((scanner, _, stream)) = scanner("bytes_between_two_vectors") else { return };
    let bytes: Vec<u8> = (0..1_000_003_u32).map(|place| (place.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    let on_gpu = stream.clone_htod(&bytes).expect("memory");
    let histogram = Definition::byte_histogram::<u8, u32>().expect("bytes").define().expect("a histogram");
    for range in [0..1_000_003, 3..1_000_000, 15..17, 7..7] {
        let mut expected = vec![0_u32; 256];
        bytes[range.clone()].iter().for_each(|&byte| expected[usize::from(byte)] += 1);
        let mut counts = stream.clone_htod(&[7_u32; 256]).expect("memory");
        let input = on_gpu.slice(range.clone());
        scanner.run(&stream, histogram).input(&input).output(&mut counts).histogram().expect("it is launched");
        assert_eq!(stream.clone_dtoh(&counts).expect("memory"), expected, "{range:?}");
    }
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
