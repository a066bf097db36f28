//! The peers: what the table holds (needs the feature `peers`, no GPU), and that every one of them is right (needs a
//! GPU; where there is none each test prints that it skipped and passes). The test binary runs alone on another machine.
#![cfg(all(feature = "cuda", feature = "lab"))]

#[cfg(feature = "peers")]
mod common;

use lookback::lab::peers::{self, PeerError};

#[cfg(not(feature = "peers"))]
#[test]
fn a_build_without_peers_says_how_to_get_them() {
    assert!(peers::all().is_empty());
    let error = peers::by_name("cub-3.5.0").expect_err("there is none");
    assert!(matches!(error, PeerError::Unknown { .. }));
    assert!(error.to_string().contains("--features peers"), "{error}");
}

#[cfg(feature = "peers")]
mod with_peers {
    use super::common::{PEER_PROBLEM_SCANS, PEER_SCANS, instance};
    use super::*;
    use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
    use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DevicePtrMut};
    use lookback::cuda::toolkit::probe_driver;
    use lookback::element::{ElementType, Operator};
    use lookback::lab::dataset::Dataset;
    use lookback::lab::peers::{Peer, PeerKind, PeerScan};
    use lookback::lab::verify::verify;
    use lookback::lab::workload::{ProblemKind, Workload};
    use lookback::strategy::Mode;
    use std::collections::{BTreeMap, HashSet};
    use std::sync::Arc;

    /// A stream on the first GPU; nothing, with a word, where there is none.
    fn stream(test: &str) -> Option<Arc<CudaStream>> {
        if let Err(error) = probe_driver() {
            println!("{test} skipped: no CUDA device ({error})");
            return None;
        }
        if CudaContext::device_count().is_ok_and(|count| count > 0) {
            let context = CudaContext::new(0).expect("the device opens");
            return Some(context.new_stream().expect("a stream"));
        }
        println!("{test} skipped: no CUDA device");
        None
    }

    fn peer(name: &str) -> &'static Peer {
        peers::by_name(name).expect("a peer")
    }

    #[test]
    fn every_peer_is_there_once() {
        let names: Vec<_> = peers::all().iter().map(Peer::name).collect();
        let mut scans = [&PEER_SCANS[..], &PEER_PROBLEM_SCANS].concat();
        scans.sort_unstable();
        let floors = ["copy-16-byte", "memcpy", "reduction-cub-3.0.1", "reduction-cub-3.5.0"];
        let expected = [&scans[..], &floors].concat();
        assert_eq!(names, expected);
        let error = peers::by_name("cub").expect_err("no peer is just 'cub'").to_string();
        assert!(expected.iter().all(|name| error.contains(name)), "{error}");
    }

    #[test]
    fn names_carry_the_version_of_the_headers_that_were_compiled() {
        for peer in peers::all().iter().filter(|peer| peer.is_scan()) {
            let (major, minor, patch) = peer.library_version().expect("a library");
            let library = peer.name().split('-').next().expect("never empty");
            let start = format!("{library}-{major}.{minor}.{patch}");
            assert!(peer.name() == start || peer.name().starts_with(&format!("{start}-")), "{peer:?}");
        }
        assert_eq!(peer("memcpy").library_version().map(|(major, ..)| major), Some(13));
        assert_eq!(peer("copy-16-byte").library_version(), None);
        assert_eq!(peer("reduction-cub-3.5.0").library_version(), Some((3, 5, 0)));
    }

    const BOTH: [Mode; 2] = [Mode::Inclusive, Mode::Exclusive];

    /// What a peer of this name has to scan; a copy nothing.
    fn expected_scans(name: &str) -> HashSet<PeerScan> {
        use ElementType::{BF16, F16, F32, F64, I32, I64, U8, U16, U32, U64};
        type Row = (ProblemKind, ElementType, ElementType, Option<Operator>);
        let of = |problem, elements: &[ElementType], operator| -> Vec<Row> {
            elements.iter().map(|&element| (problem, element, element, operator)).collect()
        };
        let (sum, max) = (Some(Operator::Sum), Some(Operator::Max));
        let narrow: Vec<_> = ElementType::NUMBERS.iter().copied().filter(|element| element.bytes() < 4).collect();
        let of_narrow = [(U8, U32), (F16, F32), (F16, F16), (BF16, BF16)];
        let of_narrow = of_narrow.map(|(input, element)| (ProblemKind::Flat, input, element, sum)).to_vec();
        let flat = [of(ProblemKind::Flat, ElementType::NUMBERS, sum), of(ProblemKind::Flat, &[I32, U32, F32], max)];
        let others = [
            of(ProblemKind::Reverse, &[I32, U32, F32], sum),
            of(ProblemKind::ByKey, &[I32, F32], sum),
            of(ProblemKind::Recurrence, &[F32], None),
            of(ProblemKind::ReverseRecurrence, &[F32], None),
            of(ProblemKind::Select, &[U8, U16, I32, I64], None),
            of(ProblemKind::SelectMost, &[U8, U16, I32, I64], None),
            of(ProblemKind::Partition, &[U8, U16, I32, I64], None),
            of(ProblemKind::PartitionMost, &[U8, U16, I32, I64], None),
            of(ProblemKind::Unique, &[U8, U16, I32, I64], None),
            of(ProblemKind::UniqueMost, &[U8, U16, I32, I64], None),
            of(ProblemKind::ReduceByKey, &[I32, F32], sum),
            of(ProblemKind::RunLengthEncode, &[U32, I32, I64], None),
            [U8, I32].map(|input| (ProblemKind::NonZero, input, U64, None)).to_vec(),
            of(ProblemKind::Sort, &[U8, U16, U32, I64, F32], None),
            of(ProblemKind::SortByHalf, &[I64], None),
            of(ProblemKind::SortPairs, &[U32], None),
            vec![(ProblemKind::NonTrivialRuns, I32, U64, None)],
            [ProblemKind::Histogram, ProblemKind::CumulatedHistogram].map(|kind| (kind, U8, U32, None)).to_vec(),
            [U8, U32].map(|input| (ProblemKind::EvenHistogram, input, U32, None)).to_vec(),
            [U8, I32, F32].map(|input| (ProblemKind::HistogramBetween, input, U32, None)).to_vec(),
            of_narrow.clone(),
        ];
        let (library, rest) = name.split_once('-').unwrap_or((name, ""));
        let rows = match (library, rest.split_once('-').map_or("", |(_, variant)| variant)) {
            ("cub", "") => [flat.concat(), others.concat()].concat(),
            ("cub", "64-bit-count") => flat.concat(),
            ("cub", "narrow-sum") => of(ProblemKind::Flat, &narrow, sum),
            ("cub", "wide-sum") => of_narrow,
            ("cub", "run-to-run") => of(ProblemKind::Flat, &[F32, F64], sum),
            ("cub", "computed-keys") => of(ProblemKind::Rows, &[F32], sum),
            ("cub", "segmented") => {
                [ProblemKind::Rows, ProblemKind::Offsets].map(|problem| of(problem, &[F32], sum)).concat()
            }
            ("thrust", _) => of(ProblemKind::Flat, &[I32, I64, F32, F64], sum),
            _ => Vec::new(),
        };
        let modes = if library == "thrust" { &BOTH[1..] } else { &BOTH };
        let scan = |(problem, input, element, operator): Row| {
            let scans = modes.iter().map(move |&mode| PeerScan { problem, input, element, operator, mode });
            // What is stored by rank has one mode.
            scans.filter(|scan| scan.workload(1).expect("a workload").has_mode(scan.mode))
        };
        rows.into_iter().flat_map(scan).collect()
    }

    #[test]
    fn every_peer_has_the_scans_of_the_baselines_and_each_once() {
        for peer in peers::all() {
            let (name, scans) = (peer.name(), peer.scans().collect::<Vec<_>>());
            let distinct: HashSet<_> = scans.iter().copied().collect();
            assert_eq!(distinct.len(), scans.len(), "{name}");
            assert_eq!(distinct, expected_scans(name), "{name}");
            assert_eq!(peer.is_scan(), !scans.is_empty(), "{name}");
            assert_eq!(peer.is_capturable(), !name.ends_with("-synchronous"), "{name}");
        }
    }

    #[test]
    fn the_problems_that_have_a_peer_have_one_of_the_newest_cub() {
        let newest = || peers::all().iter().filter(|peer| peer.name().starts_with("cub-3.5.0"));
        let has = |kind| newest().any(|peer| peer.scans().any(|scan| scan.problem == kind));
        let found: Vec<ProblemKind> = ProblemKind::ALL.iter().copied().filter(|&kind| has(kind)).collect();
        let names: Vec<&str> = found.iter().map(|kind| kind.name()).collect();
        let of_scans = ["flat", "reverse", "rows", "by-key", "offsets", "recurrence", "reverse-recurrence"];
        let by_rank = [
            "partition",
            "partition-most",
            "reduce-by-key",
            "select",
            "select-most",
            "unique",
            "unique-most",
            "run-length-encode",
            "non-trivial-runs",
            "nonzero",
        ];
        let no_scans = [
            "sort",
            "sort-by-half",
            "sort-pairs",
            "histogram",
            "cumulated-histogram",
            "even-histogram",
            "histogram-between",
        ];
        assert_eq!(names, [&of_scans[..], &by_rank, &no_scans].concat());
    }

    #[test]
    fn a_count_of_32_bits_ends_where_it_must_and_one_of_64_does_not() {
        let sum = instance(ElementType::I32, Operator::Sum);
        let supports = |name, n| peer(name).supports(sum, Mode::Exclusive, n);
        assert!(supports("cub-3.5.0", u64::from(u32::MAX)));
        assert!(!supports("cub-3.5.0", 1 << 32));
        for name in ["cub-3.0.1-64-bit-count", "cub-3.5.0-run-to-run", "thrust-3.5.0", "memcpy", "copy-16-byte"] {
            let element = if name.ends_with("run-to-run") { ElementType::F32 } else { ElementType::I32 };
            assert!(peer(name).supports(instance(element, Operator::Sum), Mode::Exclusive, (1 << 40) + 1), "{name}");
        }
    }

    #[test]
    fn copies_take_one_array_into_another_of_its_type_and_scans_only_theirs() {
        let affine = instance(ElementType::AffineMap, Operator::Affine);
        assert!(peer("memcpy").supports(affine, Mode::InclusiveMinusInput, 10));
        assert!(peer("copy-16-byte").supports(affine, Mode::Inclusive, 10));
        assert!(!peer("cub-3.5.0").supports(affine, Mode::Inclusive, 10));
        let sum = instance(ElementType::I32, Operator::Sum);
        assert!(peer("thrust-3.5.0").supports(sum, Mode::Exclusive, 10));
        assert!(!peer("thrust-3.5.0").supports(sum, Mode::Inclusive, 10));

        let of = |kind, input, segment| {
            Workload::new(kind, Operator::Sum, input, ElementType::F32, segment).expect("a workload")
        };
        let rows = of(ProblemKind::Rows, ElementType::F32, Some(5));
        for name in ["memcpy", "cub-3.5.0-segmented", "cub-3.0.1-computed-keys"] {
            assert!(peer(name).supports(rows, Mode::Inclusive, 10), "{name}");
            assert!(!peer(name).supports(rows, Mode::Inclusive, 11), "{name}: no whole rows");
        }
        assert!(!peer("memcpy").supports(of(ProblemKind::Flat, ElementType::F16, None), Mode::Inclusive, 10));
        assert!(!peer("memcpy").supports(of(ProblemKind::ByKey, ElementType::F32, Some(5)), Mode::Inclusive, 10));
        let recurrence = |segment| of(ProblemKind::Recurrence, ElementType::F32, segment);
        assert!(peer("cub-3.5.0").supports(recurrence(None), Mode::Inclusive, 10));
        assert!(!peer("cub-3.5.0").supports(recurrence(Some(5)), Mode::Inclusive, 10), "one sequence, not one a row");
        assert!(!peer("memcpy").supports(recurrence(None), Mode::Inclusive, 10), "two arrays");
        let of_i32s =
            |kind| Workload::new(kind, Operator::Sum, ElementType::I32, ElementType::I32, Some(5)).expect("a workload");
        for name in ["cub-3.0.1", "cub-3.5.0"] {
            assert!(peer(name).supports(of_i32s(ProblemKind::Select), Mode::Inclusive, 10), "{name}");
            assert!(!peer(name).supports(of_i32s(ProblemKind::Select), Mode::Exclusive, 10), "{name}");
            assert!(!peer(name).supports(of_i32s(ProblemKind::TotalsFirst), Mode::Inclusive, 10), "{name}");
        }
        assert!(!peer("memcpy").supports(of_i32s(ProblemKind::Unique), Mode::Inclusive, 10), "less than all is stored");
    }

    /// What a peer stores of these inputs, which it does not change.
    fn run(
        peer: &'static Peer,
        stream: &Arc<CudaStream>,
        workload: Workload,
        mode: Mode,
        n: u64,
        inputs: &[&[u8]],
    ) -> Vec<u8> {
        let what = format!("{}, {workload}, {mode}, {n} elements", peer.name());
        let inputs: Vec<_> = inputs.iter().map(|input| (stream.clone_htod(*input).expect("upload"), *input)).collect();
        let poison = vec![UNTOUCHED; workload.output_bytes(n) as usize];
        let mut output = stream.clone_htod(&poison).expect("poison");
        let mut prepared = peer.prepare(stream, workload, mode, n).expect(&what);
        {
            let addresses: Vec<u64> = inputs.iter().map(|(input, _)| input.device_ptr(stream).0).collect();
            let (to, _written) = output.device_ptr_mut(stream);
            // SAFETY: the arrays are those of the workload and live until the downloads below, which wait; all is on one
            // stream; `prepare` made the context current on this thread.
            unsafe { prepared.launch_addresses(&addresses, to) }.expect(&what);
        }
        for (input, given) in &inputs {
            assert!(stream.clone_dtoh(input).expect("download") == *given, "{what}: an input changed");
        }
        stream.clone_dtoh(&output).expect("download")
    }

    /// Runs a peer over a dataset, and compares every element.
    fn check(peer: &'static Peer, stream: &Arc<CudaStream>, dataset: &Dataset, mode: Mode) {
        let inputs: Vec<&[u8]> = dataset.inputs().map(|(_, input)| input).collect();
        let found = run(peer, stream, dataset.workload, mode, dataset.n, &inputs);
        let what = format!("{}, {}, {mode}, {} elements", peer.name(), dataset.workload, dataset.n);
        if peer.is_scan() {
            let prepared = peer.prepare(stream, dataset.workload, mode, dataset.n).expect(&what);
            let verification = verify(&prepared.verification_request(), dataset, &found);
            assert!(verification.passed(), "{what}: {verification:?}");
        } else {
            assert!(found.starts_with(&floor_of(peer, dataset)), "{what}");
        }
    }

    /// What a copy stores, or a reading in front.
    fn floor_of(peer: &Peer, dataset: &Dataset) -> Vec<u8> {
        let words = dataset.input.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")));
        match peer.kind() {
            PeerKind::Reading => words.fold(0, u32::wrapping_add).to_le_bytes().to_vec(),
            _ => dataset.input.clone(),
        }
    }

    /// The workloads of all peers, in segments of these lengths, each with the number of elements next to `n` that it takes.
    fn workloads(n: u64, segments: [u64; 4]) -> Vec<(Workload, u64)> {
        let mut workloads = Vec::new();
        for scan in peers::all().iter().flat_map(Peer::scans) {
            for workload in segments.map(|length| scan.workload(length).expect("a workload")) {
                let n = workload.line_elements().map_or(n, |line| n.next_multiple_of(line));
                if !workloads.contains(&(workload, n)) {
                    workloads.push((workload, n));
                }
            }
        }
        workloads
    }

    /// Every peer with a mode that it has of this workload.
    fn peers_of(workload: Workload, n: u64) -> impl Iterator<Item = (&'static Peer, Mode)> {
        let pairs = peers::all().iter().flat_map(|peer| BOTH.map(|mode| (peer, mode)));
        pairs.filter(move |(peer, mode)| peer.supports(workload, *mode, n))
    }

    #[test]
    fn every_peer_is_right_for_every_scan_it_has() {
        let Some(stream) = stream("every_peer_is_right_for_every_scan_it_has") else { return };
        for n in [1, 17, 1000, 4096, 100_003, 3_000_001] {
            for (workload, n) in workloads(n, [1, 33, 1000, 200_000]) {
                let dataset = Dataset::random(workload, n, n);
                for (peer, mode) in peers_of(workload, n) {
                    check(peer, &stream, &dataset, mode);
                }
            }
        }
    }

    /// Whole numbers whose sums every order of additions comes to, in floats too: of signed integers from −2 to 2, else from
    /// 0 to 4.
    fn small_numbers(element: ElementType, n: u64) -> Vec<i8> {
        let mixed = |place: u64| place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let least = if element.is_signed() || element.is_half() { -2 } else { 0 };
        (0..n).map(|place| least + (mixed(place) % 5) as i8).collect()
    }

    /// Those as bytes of an element.
    fn bytes_of(element: ElementType, numbers: &[i8]) -> Vec<u8> {
        let bytes = |&number: &i8| match element {
            ElementType::F32 => f32::from(number).to_le_bytes().to_vec(),
            ElementType::F16 => half::f16::from(number).to_le_bytes().to_vec(),
            ElementType::BF16 => half::bf16::from(number).to_le_bytes().to_vec(),
            _ => i64::from(number).to_le_bytes()[..element.bytes()].to_vec(),
        };
        numbers.iter().flat_map(bytes).collect()
    }

    /// Whether a segment begins at each place, by what the arrays say. `told` are keys or offsets.
    fn begins(workload: Workload, told: &[u32], n: u64) -> Vec<bool> {
        let starts: HashSet<u64> = told.iter().map(|&offset| offset.into()).collect();
        let begins = |place: u64| match (workload.kind(), workload.line_elements()) {
            (ProblemKind::Offsets, _) => starts.contains(&place),
            (ProblemKind::ByKey, _) => place == 0 || told[place as usize] != told[place as usize - 1],
            (_, line) => line.is_some_and(|line| place.is_multiple_of(line)),
        };
        (0..n).map(begins).collect()
    }

    /// The scan as a loop. A factor is what the state is multiplied with before the number is added.
    fn loop_over(mode: Mode, is_reversed: bool, begins: &[bool], factors: &[i8], numbers: &[i8]) -> Vec<f64> {
        let mut scanned = vec![0.0; numbers.len()];
        let mut state = 0.0;
        for step in 0..numbers.len() {
            let place = if is_reversed { numbers.len() - 1 - step } else { step };
            let before = if begins[place] { 0.0 } else { state };
            state = before * f64::from(factors[place]) + f64::from(numbers[place]);
            scanned[place] = if mode == Mode::Exclusive { before } else { state };
        }
        scanned
    }

    #[test]
    fn peers_of_other_problems_agree_with_a_loop_over_whole_numbers() {
        let Some(stream) = stream("peers_of_other_problems_agree_with_a_loop_over_whole_numbers") else { return };
        // Each scan's first wrong place, if one is wrong.
        let mut verdicts: BTreeMap<String, Option<String>> = BTreeMap::new();
        for n in [1, 31, 4099, 2_000_003] {
            for (workload, n) in workloads(n, [1, 8, 61, 100_000]) {
                if workload.is_plain() || !workload.stores_in_place() {
                    continue;
                }
                let numbers = small_numbers(workload.input(), n);
                // Where there are none in the arrays, 1. Else now and then 0, so that what is carried does not grow.
                let is_recurrence = workload.operator().is_none();
                let factor = |place: u64| match (is_recurrence, place % 509, place % 3) {
                    (true, 7, _) => 0,
                    (true, _, 1) => -1,
                    _ => 1,
                };
                let factors: Vec<i8> = (0..n).map(factor).collect();
                // For its keys or offsets, both of u32.
                let telling = Dataset::random(workload, n, n).telling;
                let told: Vec<u32> = telling.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
                let begins = begins(workload, &told, n);
                let [factor_bytes, number_bytes] = [&factors, &numbers].map(|own| bytes_of(workload.input(), own));
                let is_there = [!telling.is_empty(), is_recurrence, true];
                let inputs = [&telling, &factor_bytes, &number_bytes].into_iter().zip(is_there);
                let inputs: Vec<&[u8]> =
                    inputs.filter(|(_, is_there)| *is_there).map(|(input, _)| input.as_slice()).collect();
                for (peer, mode) in peers_of(workload, n).filter(|(peer, _)| peer.is_scan()) {
                    let found = run(peer, &stream, workload, mode, n, &inputs);
                    let number = |bytes: &[u8]| match workload.element() {
                        ElementType::F32 => f64::from(bytemuck::pod_read_unaligned::<f32>(bytes)),
                        ElementType::F16 => bytemuck::pod_read_unaligned::<half::f16>(bytes).into(),
                        ElementType::BF16 => bytemuck::pod_read_unaligned::<half::bf16>(bytes).into(),
                        ElementType::U32 => f64::from(bytemuck::pod_read_unaligned::<u32>(bytes)),
                        _ => f64::from(bytemuck::pod_read_unaligned::<i32>(bytes)),
                    };
                    let found: Vec<f64> = found.chunks_exact(workload.element().bytes()).map(number).collect();
                    // Sums in f32 are exact, and are rounded once.
                    let stored = |sum: f64| match workload.element() {
                        ElementType::F16 => half::f16::from_f64(sum).into(),
                        ElementType::BF16 => half::bf16::from_f64(sum).into(),
                        _ => sum,
                    };
                    let expected = loop_over(mode, workload.is_reversed(), &begins, &factors, &numbers);
                    let expected: Vec<f64> = expected.into_iter().map(stored).collect();
                    let wrong = (0..n as usize).find(|&place| found[place] != expected[place]).map(|place| {
                        let (found, expected) = (found[place], expected[place]);
                        format!("{workload}, {n} elements: {found} at {place}, not {expected}")
                    });
                    let scan = PeerScan::asked_by(workload, mode).expect("a peer's");
                    let verdict = verdicts.entry(format!("{}: {scan}", peer.name())).or_default();
                    *verdict = verdict.take().or(wrong);
                }
            }
        }
        for (scan, wrong) in &verdicts {
            println!("{scan}: {}", wrong.as_deref().unwrap_or("right"));
        }
        assert!(verdicts.values().all(Option::is_none), "some are wrong: {verdicts:#?}");
        let mut expected: Vec<String> = Vec::new();
        for peer in peers::all() {
            let workload = |scan: &PeerScan| scan.workload(1).expect("a workload");
            let others = peer.scans().filter(|scan| !workload(scan).is_plain() && workload(scan).stores_in_place());
            expected.extend(others.map(|scan| format!("{}: {scan}", peer.name())));
        }
        expected.sort_unstable();
        assert_eq!(verdicts.into_keys().collect::<Vec<_>>(), expected);
    }

    /// What is there before a run.
    const UNTOUCHED: u8 = 0xA5;

    /// What is not stored at its place, of numbers on both sides of the middle of their type's range. `told` are keys, or what
    /// goes with the numbers.
    fn loop_elsewhere(workload: Workload, flags: &[u8], told: &[u32], numbers: &[i64], middle: i64) -> Vec<i64> {
        let between = |levels: &[f64]| -> Vec<i64> {
            let is_in = |number: i64, levels: &[f64]| (levels[0]..levels[1]).contains(&(number as f64));
            let count = |levels: &[f64]| numbers.iter().filter(|&&number| is_in(number, levels)).count() as i64;
            levels.windows(2).map(count).collect()
        };
        // The parts of the range that src/lab/bins.rs has.
        let level = |part: f64| match workload.input() {
            ElementType::F32 => part / 32.0 - 0.5,
            input => middle as f64 + (part - 32.0) * 2f64.powi(8 * input.bytes() as i32 - 6),
        };
        match workload.kind() {
            ProblemKind::Histogram => return between(&(0..=256).map(f64::from).collect::<Vec<_>>()),
            ProblemKind::CumulatedHistogram => {
                return (1..=256).map(|end| numbers.iter().filter(|&&number| number < end).count() as i64).collect();
            }
            ProblemKind::HistogramBetween => return between(&[3.0, 4.0, 6.0, 10.0, 18.0, 34.0, 61.0].map(level)),
            ProblemKind::EvenHistogram => {
                let [lower, width] = [level(13.0), level(51.0) - level(13.0)];
                // A level is the first number that is not below it.
                let levels: Vec<f64> = (0..=100).map(|bin| (lower + f64::from(bin) * width / 100.0).ceil()).collect();
                return between(&levels);
            }
            _ => {}
        }
        if workload.kind() == ProblemKind::SortPairs {
            let mut pairs: Vec<(i64, i64)> = numbers.iter().copied().zip(told.iter().copied().map(i64::from)).collect();
            pairs.sort_by_key(|pair| pair.0);
            let (sorted, values): (Vec<i64>, Vec<i64>) = pairs.into_iter().unzip();
            return [sorted, values].concat();
        }
        if let ProblemKind::Sort | ProblemKind::SortByHalf = workload.kind() {
            let half = if workload.kind() == ProblemKind::Sort { 0 } else { 4 * workload.element().bytes() };
            let mut sorted = numbers.to_vec();
            sorted.sort_by_key(|number| number >> half);
            return sorted;
        }
        if let ProblemKind::RunLengthEncode | ProblemKind::NonTrivialRuns = workload.kind() {
            let mut begin = 0;
            let runs = numbers.chunk_by(|left, right| left == right).map(|run| {
                begin += run.len();
                (begin - run.len(), run)
            });
            let is_longer = workload.kind() == ProblemKind::NonTrivialRuns;
            let runs: Vec<_> = runs.filter(|(_, run)| !is_longer || run.len() > 1).collect();
            let first = |&(begin, run): &(usize, &[i64])| if is_longer { begin as i64 } else { run[0] };
            let mut encoded: Vec<i64> = runs.iter().map(first).collect();
            encoded.resize(numbers.len(), i64::from_le_bytes([UNTOUCHED; 8]));
            encoded.extend(runs.iter().map(|(_, run)| run.len() as i64));
            return encoded;
        }
        let (mut kept, mut others, mut total) = (Vec::new(), Vec::new(), 0);
        for (place, &number) in numbers.iter().enumerate() {
            match workload.kind() {
                ProblemKind::Select | ProblemKind::SelectMost if number < middle => kept.push(number),
                ProblemKind::Partition | ProblemKind::PartitionMost if flags[place] != 0 => kept.push(number),
                ProblemKind::Partition | ProblemKind::PartitionMost => others.push(number),
                ProblemKind::Unique | ProblemKind::UniqueMost if place == 0 || numbers[place - 1] != number => {
                    kept.push(number);
                }
                ProblemKind::NonZero if number != 0 => kept.push(place as i64),
                ProblemKind::ReduceByKey => {
                    total += number;
                    if told.get(place + 1) != Some(&told[place]) {
                        kept.push(std::mem::take(&mut total));
                    }
                }
                _ => {}
            }
        }
        others.reverse();
        [kept, others].concat()
    }

    #[test]
    fn peers_that_store_elsewhere_agree_with_a_loop() {
        let Some(stream) = stream("peers_that_store_elsewhere_agree_with_a_loop") else { return };
        let mut runs = 0;
        for n in [1, 31, 4099, 2_000_003] {
            for (workload, n) in
                workloads(n, [3, 3, 3, 3]).into_iter().filter(|(workload, _)| !workload.stores_in_place())
            {
                let element = workload.input();
                let is_signed = element.is_signed() || element.is_float();
                let middle: i64 = if is_signed { 0 } else { 1 << (8 * element.bytes() - 1) };
                // One random number for three neighbours or fewer, so that there are runs.
                let mixed = |place: u64| (place - place % 3 % 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                let numbers: Vec<i64> = (0..n).map(|place| middle + (mixed(place) % 5) as i64 - 2).collect();
                let flags: Vec<u8> = (0..n).map(|place| [0, 1, 255, 0, 0][(mixed(place + 7) % 5) as usize]).collect();
                let told: Vec<u32> = (0..n).map(|place| (mixed(place + 11) % 3) as u32).collect();
                let array = |element: ElementType, numbers: &[i64]| -> Vec<u8> {
                    let bytes = |&number: &i64| match element {
                        ElementType::F32 => (number as f32).to_le_bytes().to_vec(),
                        _ => number.to_le_bytes()[..element.bytes()].to_vec(),
                    };
                    numbers.iter().flat_map(bytes).collect()
                };
                let input = array(element, &numbers);
                let telling: Vec<u8> = match workload.kind() {
                    ProblemKind::Partition | ProblemKind::PartitionMost => flags.clone(),
                    _ => told.iter().flat_map(|key| key.to_le_bytes()).collect(),
                };
                let inputs: Vec<&[u8]> = match (workload.inputs(n).count(), workload.kind()) {
                    (2, ProblemKind::SortPairs) => vec![&input, &telling],
                    (2, _) => vec![&telling, &input],
                    _ => vec![&input],
                };
                let expected = loop_elsewhere(workload, &flags, &told, &numbers, middle);
                let mut expected = array(workload.element(), &expected);
                expected.resize(workload.output_bytes(n) as usize, UNTOUCHED);
                for (peer, mode) in peers_of(workload, n).filter(|(peer, _)| peer.is_scan()) {
                    let found = run(peer, &stream, workload, mode, n, &inputs);
                    assert!(found == expected, "{}, {workload}, {n} elements", peer.name());
                    runs += 1;
                }
            }
        }
        // Of two versions, in so many types: six compactions, totals, run lengths, longer runs, places, sorts, pairs, counts of bytes
        // and cumulated ones, even bins, bins between levels.
        assert_eq!(runs, 4 * 2 * (6 * 4 + 2 + 3 + 1 + 2 + 6 + 1 + 2 + 2 + 3));
    }

    #[test]
    fn peers_survive_an_empty_array() {
        let Some(stream) = stream("peers_survive_an_empty_array") else { return };
        for peer in peers::all() {
            let name = peer.name();
            for scan in peer.scans() {
                let workload = scan.workload(10).expect("a workload");
                let mut prepared = peer.prepare(&stream, workload, scan.mode, 0).expect(name);
                // SAFETY: no element is asked for.
                unsafe { prepared.launch_addresses(&vec![0; workload.inputs(0).count()], 0) }.expect(name);
            }
        }
        stream.synchronize().expect("nothing went wrong");
    }

    #[test]
    fn capturable_peers_replay_from_a_graph() {
        let Some(stream) = stream("capturable_peers_replay_from_a_graph") else { return };
        // SAFETY: one stream for everything.
        unsafe { stream.context().disable_event_tracking() };
        let n = 200_000;
        for peer in peers::all().iter().filter(|peer| peer.is_capturable()) {
            // The first scan of each problem, and of a copy one of any.
            let of_problem = |&problem: &ProblemKind| peer.scans().find(|scan| scan.problem == problem);
            let scans = ProblemKind::ALL.iter().filter_map(of_problem);
            let mut workloads: Vec<_> = scans.map(|scan| (scan.workload(50).expect("a workload"), scan.mode)).collect();
            if !peer.is_scan() {
                workloads.push((instance(ElementType::F32, Operator::Sum).into(), Mode::Exclusive));
            }
            for (workload, mode) in workloads {
                replay(peer, &stream, &Dataset::random(workload, n, 7), mode);
            }
        }
    }

    /// Captures a run of a peer, and compares what the graph stores.
    fn replay(peer: &'static Peer, stream: &Arc<CudaStream>, dataset: &Dataset, mode: Mode) {
        let what = format!("{}, {}, {mode}", peer.name(), dataset.workload);
        let inputs: Vec<_> = dataset.inputs().map(|(_, input)| stream.clone_htod(input).expect("upload")).collect();
        let bytes = dataset.workload.output_bytes(dataset.n) as usize;
        let mut output = stream.clone_htod(&vec![UNTOUCHED; bytes]).expect("poison");
        let mut prepared = peer.prepare(stream, dataset.workload, mode, dataset.n).expect(&what);
        let from: Vec<u64> = inputs.iter().map(|input| input.device_ptr(stream).0).collect();
        let to = output.device_ptr_mut(stream).0;
        // SAFETY: the dataset's arrays, which live until the wait below; the context is current.
        unsafe { prepared.launch_addresses(&from, to) }.expect(&what);
        stream.memcpy_htod(&vec![UNTOUCHED; bytes], &mut output).expect(&what);
        stream.synchronize().expect(&what);
        stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).expect(&what);
        // SAFETY: as above; the graph is dropped before the arrays and the peer.
        let launched = unsafe { prepared.launch_addresses(&from, to) };
        let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = stream.end_capture(flags).expect(&what).expect("something was captured");
        launched.expect(&what);
        for _ in 0..3 {
            graph.launch().expect(&what);
        }
        let found = stream.clone_dtoh(&output).expect(&what);
        if peer.is_scan() {
            let verification = verify(&prepared.verification_request(), dataset, &found);
            assert!(verification.passed(), "{what}: {verification:?}");
        } else {
            assert!(found.starts_with(&floor_of(peer, dataset)), "{what}");
        }
        drop(graph);
    }

    #[test]
    fn run_to_run_sums_are_the_same_bits_every_time() {
        let Some(stream) = stream("run_to_run_sums_are_the_same_bits_every_time") else { return };
        let n = 5_000_011;
        let dataset = Dataset::random(instance(ElementType::F32, Operator::Sum), n, 3);
        let numbers: Vec<f32> = dataset.input.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
        let input = stream.clone_htod(&numbers).expect("upload");
        let mut output = stream.alloc_zeros::<f32>(numbers.len()).expect("memory");
        let mut prepared = peer("cub-3.5.0-run-to-run")
            .prepare(&stream, dataset.instance, Mode::Inclusive, n)
            .expect("it sums floats");
        let mut first: Option<Vec<f32>> = None;
        for run in 0..20 {
            prepared.launch(&input, &mut output).expect("launched");
            let found = stream.clone_dtoh(&output).expect("download");
            let first = first.get_or_insert_with(|| found.clone());
            let same = first.iter().zip(&found).all(|(left, right)| left.to_bits() == right.to_bits());
            assert!(same, "run {run} differs from the first");
        }
    }

    #[test]
    fn arrays_that_were_not_prepared_for_are_refused() {
        let Some(stream) = stream("arrays_that_were_not_prepared_for_are_refused") else { return };
        let sum = instance(ElementType::U32, Operator::Sum);
        let input = stream.clone_htod(&[1_u32; 8]).expect("upload");
        let mut output = stream.alloc_zeros::<u32>(8).expect("memory");
        let mut prepared = peer("cub-3.5.0").prepare(&stream, sum, Mode::Inclusive, 8).expect("it has sums");
        prepared.launch(&input, &mut output).expect("these fit");
        assert_eq!(stream.clone_dtoh(&output).expect("download"), [1, 2, 3, 4, 5, 6, 7, 8]);

        let mut short = stream.alloc_zeros::<u32>(7).expect("memory");
        let error = prepared.launch(&input, &mut short).expect_err("one element is missing");
        assert!(matches!(error, PeerError::LengthMismatch { array: "output", found: 7, expected: 8 }), "{error}");
        let floats = stream.clone_htod(&[1_f32; 8]).expect("upload");
        let mut sums = stream.alloc_zeros::<f32>(8).expect("memory");
        let error = prepared.launch(&floats, &mut sums).expect_err("floats are no u32");
        assert!(matches!(error, PeerError::ElementMismatch { .. }), "{error}");
        let error = peer("cub-3.5.0").prepare(&stream, sum, Mode::Inclusive, 1 << 32).expect_err("too many");
        assert!(matches!(error, PeerError::TooLarge { .. }), "{error}");
        let error = peer("thrust-3.5.0").prepare(&stream, sum, Mode::Inclusive, 8).expect_err("exclusive only");
        assert!(matches!(error, PeerError::Unsupported { .. }), "{error}");
    }

    #[test]
    fn the_copy_kernel_refuses_what_it_cannot_load_and_the_next_launch_is_not_blamed() {
        let Some(stream) = stream("the_copy_kernel_refuses_what_it_cannot_load_and_the_next_launch_is_not_blamed")
        else {
            return;
        };
        let bytes = instance(ElementType::U8, Operator::Sum);
        let input = stream.clone_htod(&[1_u8; 64]).expect("upload");
        let mut output = stream.alloc_zeros::<u8>(64).expect("memory");
        let (from, to) = (input.device_ptr(&stream).0, output.device_ptr_mut(&stream).0);
        let mut copy = peer("copy-16-byte").prepare(&stream, bytes, Mode::Inclusive, 32).expect("it copies");
        // SAFETY: 32 bytes from each address lie inside the arrays.
        let error = unsafe { copy.launch_addresses(&[from + 1], to) }.expect_err("an odd address");
        assert!(error.to_string().contains("cudaErrorMisalignedAddress"), "{error}");
        let mut scan = peer("cub-3.0.1").prepare(&stream, bytes, Mode::Inclusive, 64).expect("it scans");
        // SAFETY: 64 bytes each.
        unsafe { scan.launch_addresses(&[from], to) }.expect("nothing is wrong with this one");
        stream.synchronize().expect("it ran");
    }
}
