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
    use super::common::{PEER_SCANS, instance};
    use super::*;
    use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
    use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DevicePtrMut};
    use lookback::cuda::toolkit::probe_driver;
    use lookback::element::{ElementType, Instance, Operator};
    use lookback::lab::dataset::Dataset;
    use lookback::lab::peers::Peer;
    use lookback::lab::verify::verify;
    use lookback::strategy::Mode;
    use std::collections::HashSet;
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
        let expected = [&PEER_SCANS[..], &["copy-16-byte", "memcpy"]].concat();
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
    }

    #[test]
    fn every_peer_has_the_scans_of_the_baselines_and_each_once() {
        let both = [Mode::Inclusive, Mode::Exclusive];
        for peer in peers::all() {
            let scans: Vec<_> = peer.scans().collect();
            let distinct: HashSet<_> = scans.iter().collect();
            assert_eq!(distinct.len(), scans.len(), "{}", peer.name());
            let mut expected = HashSet::new();
            let mut expect = |elements: &[ElementType], operator, modes: &[Mode]| {
                for &element in elements {
                    expected.extend(modes.iter().map(|&mode| (instance(element, operator), mode)));
                }
            };
            let name = peer.name();
            if name.ends_with("-run-to-run") {
                expect(&[ElementType::F32, ElementType::F64], Operator::Sum, &both);
            } else if name.ends_with("-narrow-sum") {
                let narrow = ElementType::NUMBERS.iter().copied().filter(|element| element.bytes() < 4);
                expect(&narrow.collect::<Vec<_>>(), Operator::Sum, &both);
            } else if name.starts_with("cub-") {
                expect(ElementType::NUMBERS, Operator::Sum, &both);
                expect(&[ElementType::I32, ElementType::U32, ElementType::F32], Operator::Max, &both);
            } else if name.starts_with("thrust-") {
                let elements = [ElementType::I32, ElementType::I64, ElementType::F32, ElementType::F64];
                expect(&elements, Operator::Sum, &[Mode::Exclusive]);
            }
            assert_eq!(scans.into_iter().collect::<HashSet<_>>(), expected, "{name}");
            assert_eq!(peer.is_scan(), !expected.is_empty(), "{name}");
            assert_eq!(peer.is_capturable(), !name.ends_with("-synchronous"), "{name}");
        }
    }

    #[test]
    fn a_count_of_32_bits_ends_where_it_must_and_one_of_64_does_not() {
        let sum = instance(ElementType::I32, Operator::Sum);
        assert_eq!(peer("cub-3.5.0").largest_n(sum), u64::from(u32::MAX));
        for name in ["cub-3.0.1-64-bit-count", "cub-3.5.0-run-to-run", "thrust-3.5.0", "memcpy", "copy-16-byte"] {
            assert!(peer(name).largest_n(sum) > 1 << 40, "{name}");
        }
    }

    #[test]
    fn copies_take_every_instance_and_scans_only_theirs() {
        let affine = instance(ElementType::AffineMap, Operator::Affine);
        assert!(peer("memcpy").supports(affine, Mode::InclusiveMinusInput));
        assert!(peer("copy-16-byte").supports(affine, Mode::Inclusive));
        assert!(!peer("cub-3.5.0").supports(affine, Mode::Inclusive));
        let sum = instance(ElementType::I32, Operator::Sum);
        assert!(peer("thrust-3.5.0").supports(sum, Mode::Exclusive));
        assert!(!peer("thrust-3.5.0").supports(sum, Mode::Inclusive));
    }

    /// Runs a peer over a dataset that lies on the device, and compares every element.
    fn check(peer: &'static Peer, stream: &Arc<CudaStream>, dataset: &Dataset, mode: Mode) {
        let input = stream.clone_htod(&dataset.input).expect("upload");
        let mut output = stream.clone_htod(&vec![0xA5_u8; dataset.input.len()]).expect("poison");
        let what = format!("{}, {}, {mode}, {} elements", peer.name(), dataset.instance, dataset.n);
        let mut prepared = peer.prepare(stream, dataset.instance, mode, dataset.n).expect(&what);
        {
            let (from, _read) = input.device_ptr(stream);
            let (to, _written) = output.device_ptr_mut(stream);
            // SAFETY: both arrays have the dataset's length and live until the download below, which waits; `prepare`
            // made the context current on this thread.
            unsafe { prepared.launch_addresses(from, to) }.expect(&what);
        }
        let found = stream.clone_dtoh(&output).expect("download");
        if peer.is_scan() {
            let verification = verify(&prepared.verification_request(), dataset, &found);
            assert!(verification.passed(), "{what}: {verification:?}");
        } else {
            assert!(found == dataset.input, "{what}");
        }
        assert!(stream.clone_dtoh(&input).expect("download") == dataset.input, "{what}: the input changed");
    }

    #[test]
    fn every_peer_is_right_for_every_scan_it_has() {
        let Some(stream) = stream("every_peer_is_right_for_every_scan_it_has") else { return };
        for n in [1, 17, 1000, 4096, 100_003, 3_000_001] {
            for instance in Instance::all() {
                let dataset = Dataset::random(instance, n, n);
                for peer in peers::all() {
                    for mode in [Mode::Inclusive, Mode::Exclusive] {
                        if peer.supports(instance, mode) {
                            check(peer, &stream, &dataset, mode);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn peers_survive_an_empty_array() {
        let Some(stream) = stream("peers_survive_an_empty_array") else { return };
        for peer in peers::all() {
            let name = peer.name();
            for (instance, mode) in peer.scans() {
                let mut prepared = peer.prepare(&stream, instance, mode, 0).expect(name);
                // SAFETY: no element is asked for.
                unsafe { prepared.launch_addresses(0, 0) }.expect(name);
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
        let dataset = Dataset::random(instance(ElementType::F32, Operator::Sum), n, 7);
        let input = stream.clone_htod(&dataset.input).expect("upload");
        for peer in peers::all().iter().filter(|peer| peer.is_capturable()) {
            let name = peer.name();
            let mut output = stream.clone_htod(&vec![0xA5_u8; dataset.input.len()]).expect("poison");
            let mut prepared = peer.prepare(&stream, dataset.instance, Mode::Exclusive, n).expect(name);
            let (from, to) = (input.device_ptr(&stream).0, output.device_ptr_mut(&stream).0);
            // SAFETY: arrays of n elements, which live until the wait below; the context is current.
            unsafe { prepared.launch_addresses(from, to) }.expect(name);
            stream.memset_zeros(&mut output).expect(name);
            stream.synchronize().expect(name);
            stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).expect(name);
            // SAFETY: as above; the graph is dropped before the arrays and the peer.
            let launched = unsafe { prepared.launch_addresses(from, to) };
            let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            let graph = stream.end_capture(flags).expect(name).expect("something was captured");
            launched.expect(name);
            for _ in 0..3 {
                graph.launch().expect(name);
            }
            let found = stream.clone_dtoh(&output).expect(name);
            if peer.is_scan() {
                let verification = verify(&prepared.verification_request(), &dataset, &found);
                assert!(verification.passed(), "{name}: {verification:?}");
            } else {
                assert!(found == dataset.input, "{name}");
            }
            drop(graph);
        }
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
        let error = unsafe { copy.launch_addresses(from + 1, to) }.expect_err("an odd address");
        assert!(error.to_string().contains("cudaErrorMisalignedAddress"), "{error}");
        let mut scan = peer("cub-3.0.1").prepare(&stream, bytes, Mode::Inclusive, 64).expect("it scans");
        // SAFETY: 64 bytes each.
        unsafe { scan.launch_addresses(from, to) }.expect("nothing is wrong with this one");
        stream.synchronize().expect("it ran");
    }
}
