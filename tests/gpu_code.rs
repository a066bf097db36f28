//! What only a GPU runs (`cuda/gpu`), looked at in the PTX: the order and the operands of fences, barriers and copies, and
//! what the arithmetic computes. Every fault of `cuda/faults/gpu` must be seen.
//!
//! Needs NVRTC and no GPU. Without it the tests print that they skipped, and fail if LOOKBACK_REQUIRE_CUDA_COMPILER is 1.
#![cfg(all(feature = "cuda", feature = "lab"))]

mod common;

use common::{compiler, sums_of_u32};
use lookback::cuda::compile::Variant;
use lookback::cuda::{Architecture, Compiler};
use lookback::kernels::mutant::{Check, GpuFault};
use lookback::lab::axiomatic::arithmetic::{Words, evaluate};
use lookback::lab::axiomatic::platform::{Platform, check_ptx};
use lookback::strategy::plan::{Kernel, Plan, ScanRequest, Step};
use lookback::strategy::{Mode, ScanConfig, Strategy};
use proptest::prelude::{Just, ProptestConfig, any, prop_assert, prop_oneof, proptest};
use proptest::strategy::Strategy as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The oldest, which has neither mbarriers nor sums over a warp, and the one that has all.
const ARCHITECTURES: [Architecture; 2] = [Architecture { major: 7, minor: 5 }, Architecture::HOPPER];

/// Does the work of all items on all cores; what comes of each, in any order.
fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = work(item);
                    results.lock().expect("no thread panics with the lock").push(result);
                }
            });
        }
    });
    results.into_inner().expect("no thread panicked with the lock")
}

/// The first step of a strategy's plan, small, so that it is compiled soon.
fn step(strategy: Strategy) -> Step {
    let config = ScanConfig { vt: 1, block_threads: 32, ..ScanConfig::default() };
    let request = ScanRequest::aligned(sums_of_u32(), strategy, Mode::Inclusive, config, 1000);
    Plan::new(&request).unwrap_or_else(|error| panic!("{strategy}: {error}")).steps.swap_remove(0)
}

fn platform(compiler: &Compiler, step: &Step, architecture: Architecture, fault: u32) -> Platform {
    let variant = Variant { mutant: fault, ..Variant::default() };
    let ptx = compiler.ptx(step.kernel, step.problem, &step.config, architecture, variant);
    let ptx = ptx.unwrap_or_else(|error| panic!("{}: {error}", step.kernel.name()));
    check_ptx(&ptx, architecture.has_programmatic_launch())
}

#[test]
fn fences_barriers_and_copies_of_every_kernel_are_in_order() {
    let Some(compiler) = compiler("fences_barriers_and_copies_of_every_kernel_are_in_order") else { return };
    let mut jobs = Vec::new();
    for &strategy in Strategy::ALL {
        let config = ScanConfig { vt: 4, block_threads: 64, ..ScanConfig::default() };
        for architecture in ARCHITECTURES {
            let request = ScanRequest::aligned(sums_of_u32(), strategy, Mode::Inclusive, config, 100_000);
            for step in Plan::new(&request).expect("a small tile").steps {
                let is_known = |(other, _): &(Step, Architecture)| other.kernel == step.kernel;
                let is_there = jobs.iter().any(|job| is_known(job) && job.1 == architecture);
                // Before Hopper there are no launches to wait for, and no barriers but those of look-ahead.
                if !is_there && (architecture == Architecture::HOPPER || step.kernel == Kernel::Lookahead) {
                    jobs.push((step, architecture));
                }
            }
        }
    }
    assert!(jobs.len() > Strategy::ALL.len(), "{} kernels", jobs.len());
    let looked_at = on_all_cores(&jobs, |(step, architecture)| {
        (step.kernel, *architecture, platform(&compiler, step, *architecture, 0))
    });
    for (kernel, architecture, Platform { found, violations }) in looked_at {
        assert!(violations.is_empty(), "{} for {architecture}:\n{}", kernel.name(), violations.join("\n"));
        // A rule that finds nothing to look at holds of anything.
        let least: &[(&str, usize)] = match (kernel, architecture.has_programmatic_launch()) {
            (Kernel::Lookahead, true) => {
                &[("waits for launches", 1), ("copies", 2), ("arrivals", 6), ("waits", 7), ("initialisations", 5)]
            }
            (Kernel::Lookahead, false) => &[("arrivals", 6), ("waits", 7)],
            (Kernel::SingleCluster, _) => &[
                ("waits for launches", 1),
                ("initialisations", 1),
                ("arrivals", 2),
                ("waits", 1),
                ("asynchronous stores", 1),
                ("cluster barriers", 4),
            ],
            (_, true) => &[("waits for launches", 1)],
            (_, false) => &[],
        };
        for (what, count) in least {
            let seen = found.get(what).copied().unwrap_or(0);
            assert!(seen >= *count, "{} for {architecture}: {seen} of {count} {what}", kernel.name());
        }
    }
}

#[test]
fn every_fault_of_order_is_seen() {
    let Some(compiler) = compiler("every_fault_of_order_is_seen") else { return };
    let mut jobs = Vec::new();
    for fault in GpuFault::all().expect("every row can be read") {
        if fault.check != Check::Order {
            continue;
        }
        let strategies = if fault.strategies.is_empty() { vec![Strategy::Naive] } else { fault.strategies.clone() };
        assert!(!fault.architectures.is_empty(), "{} names no architecture", fault.name);
        for strategy in strategies {
            jobs.extend(fault.architectures.iter().map(|&architecture| (fault.clone(), strategy, architecture)));
        }
    }
    assert!(jobs.len() >= 28, "{} faults", jobs.len());
    let missed: Vec<String> = on_all_cores(&jobs, |(fault, strategy, architecture)| {
        let Platform { violations, .. } = platform(&compiler, &step(*strategy), *architecture, fault.number());
        println!("{} in {strategy} for {architecture}: {violations:?}", fault.name);
        violations.is_empty().then(|| format!("{} in {strategy} for {architecture}", fault.name))
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(missed.is_empty(), "nobody sees\n{}", missed.join("\n"));
}

/// What a kernel of `cuda/arithmetic.cu` should write, as plain arithmetic says it.
type Expected = fn(&Words) -> Words;

/// Of lane and word of the input.
fn each_lane(of_lane: impl Fn(usize) -> [u64; 4]) -> Words {
    std::array::from_fn(of_lane)
}

fn elements<const BITS: u32>(word: u64) -> impl Iterator<Item = u64> {
    (0..32 / BITS).map(move |index| word >> (BITS * index) & ((1 << BITS) - 1))
}

/// The scan of a word's elements from a carry: the word, and the sum of all in the upper half.
fn packed_scan<const BITS: u32>(word: u64, carry: u64, is_inclusive: bool, sum_bits: u32) -> u64 {
    let (mut sum, mut scanned) = (carry, 0);
    for (index, element) in elements::<BITS>(word).enumerate() {
        let before = sum;
        sum += element;
        let value = if is_inclusive { sum } else { before };
        scanned |= (value & ((1 << BITS) - 1)) << (BITS * index as u32);
    }
    (sum & ((1 << sum_bits) - 1)) << 32 | scanned
}

/// Kernels, and what they write; the last one is only there where there are clusters.
const KERNELS: [(&str, Expected); 8] = [
    ("sums_over_warp", |input| {
        let sum = |word: usize| input.iter().fold(0_u64, |sum, lane| sum.wrapping_add(lane[word]));
        let last = u64::from(input.iter().fold(0_u32, |sum, lane| sum.wrapping_add(lane[3] as u32)));
        each_lane(|lane| [sum(0), sum(1), input[lane][2], last])
    }),
    ("sums_in_word", |input| {
        each_lane(|lane| {
            let [word, start, mask, _] = input[lane].map(|word| word & 0xffff_ffff);
            let bytes: Vec<u64> = elements::<8>(word).collect();
            let cut = |sum: u64| sum & 0xffff_ffff;
            let lowest = u64::from((mask as u32).trailing_zeros());
            [
                cut(start + bytes.iter().sum::<u64>()),
                cut(start + bytes[0] + bytes[1]),
                cut(start + elements::<16>(word).sum::<u64>()),
                lowest,
            ]
        })
    }),
    ("bytes_selected", |input| {
        each_lane(|lane| {
            let [low, high, selector, _] = input[lane].map(|word| word & 0xffff_ffff);
            let both = high << 32 | low;
            let digit = |index: u32| both >> (8 * (selector >> (4 * index) & 7)) & 0xff;
            [(0..4).map(|index| digit(index) << (8 * index)).sum(), 0, 0, 0]
        })
    }),
    ("packed_scans", |input| {
        each_lane(|lane| {
            let [word, carry, ..] = input[lane].map(|word| word & 0xffff_ffff);
            let (small, large) = (carry & 0xff, carry & 0xffff);
            [
                packed_scan::<8>(word, small, true, 32),
                packed_scan::<8>(word, small, false, 32),
                packed_scan::<16>(word, large, true, 32),
                packed_scan::<16>(word, large, false, 32),
            ]
        })
    }),
    ("shuffles", |input| {
        each_lane(|lane| {
            let short = |lane: usize, word: usize| input[lane][word] & 0xffff;
            let left = lane.saturating_sub(1);
            [
                input[if lane < 4 { lane } else { lane - 4 }][0],
                input[if lane > 29 { lane } else { lane + 2 }][1],
                input[input[lane][3] as usize % 32][2],
                short(lane, 2) << 32 | short(left, 1) << 16 | short(left, 0),
            ]
        })
    }),
    ("vectors", |input| *input),
    ("wide_words", |input| *input),
    (OF_CLUSTERS, |input| {
        each_lane(|lane| [input[lane][0], input[lane][1] & 0xffff_ffff, input[lane][2], input[lane][3]])
    }),
];
const OF_CLUSTERS: &str = "stores_into_cluster";

fn wrong_kernels(ptx: &str, input: &Words) -> Vec<String> {
    let mut wrong = Vec::new();
    let is_there = |kernel: &str| kernel != OF_CLUSTERS || ptx.contains("st.async");
    for (kernel, expected) in KERNELS.into_iter().filter(|(kernel, _)| is_there(kernel)) {
        match evaluate(ptx, kernel, input) {
            Ok(output) if output == expected(input) => {}
            Ok(output) => wrong.push(format!("{kernel}: {output:x?} and not {:x?}", expected(input))),
            Err(error) => panic!("{kernel}: {error}"),
        }
    }
    wrong
}

/// Words with extremes among them: carries go through all bits of those.
fn words() -> impl proptest::strategy::Strategy<Value = Words> {
    let word = prop_oneof![
        4 => any::<u64>(),
        2 => Just(u64::MAX),
        1 => Just(0),
        1 => Just(0xffff_ffff),
        1 => Just(0x0000_ffff_0000_ffff),
        1 => Just(0x8080_8080_8080_8080),
        1 => (0..64_u32).prop_map(|bit| 1 << bit),
    ];
    // The kernels ask for the lowest set bit of the third word.
    let with_a_bit = |[first, second, third, fourth]: [u64; 4]| {
        [first, second, if third & 0xffff_ffff == 0 { third | 1 << 31 } else { third }, fourth]
    };
    let lane = [word.clone(), word.clone(), word.clone(), word].prop_map(with_a_bit);
    proptest::collection::vec(lane, 32).prop_map(|lanes| lanes.try_into().expect("32 lanes"))
}

fn arithmetic(compiler: &Compiler, architecture: Architecture, fault: u32) -> String {
    compiler.arithmetic_ptx(architecture, fault).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_a_gpu_computes_is_plain_arithmetic() {
    let Some(compiler) = compiler("what_a_gpu_computes_is_plain_arithmetic") else { return };
    for architecture in ARCHITECTURES {
        let ptx = arithmetic(&compiler, architecture, 0);
        let instructions = ["dp4a", "dp2a", "prmt", "shfl.sync.up", "st.relaxed.gpu.b128", "st.global.v4.b32"];
        let own = if architecture.has_clusters() { ["redux.sync.add", "st.async"] } else { ["shfl.sync.bfly", "ret"] };
        for instruction in instructions.into_iter().chain(own) {
            assert!(ptx.contains(instruction), "{architecture}: no {instruction} is evaluated");
        }
        proptest!(ProptestConfig::with_cases(200), |(input in words())| {
            let wrong = wrong_kernels(&ptx, &input);
            prop_assert!(wrong.is_empty(), "{architecture}: {}", wrong.join("\n"));
        });
        assert_eq!(wrong_kernels(&ptx, &[[u64::MAX; 4]; 32]), Vec::<String>::new(), "{architecture}");
    }
}

#[test]
fn every_fault_of_arithmetic_is_seen() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    let Some(compiler) = compiler("every_fault_of_arithmetic_is_seen") else { return };
    let mut runner = TestRunner::deterministic();
    let inputs: Vec<Words> =
        (0..20).map(|_| words().new_tree(&mut runner).expect("words can be drawn").current()).collect();
    let mut jobs = Vec::new();
    for fault in GpuFault::all().expect("every row can be read") {
        if fault.check == Check::Arithmetic {
            // The same code for all, where the fault names none.
            let named = fault.architectures.clone();
            let of_all = if named.is_empty() { vec![Architecture::HOPPER] } else { named };
            jobs.extend(of_all.into_iter().map(|architecture| (fault.clone(), architecture)));
        }
    }
    assert!(jobs.len() >= 20, "{} faults", jobs.len());
    let missed: Vec<String> = on_all_cores(&jobs, |(fault, architecture)| {
        let ptx = arithmetic(&compiler, *architecture, fault.number());
        let is_seen = inputs.iter().any(|input| !wrong_kernels(&ptx, input).is_empty());
        (!is_seen).then(|| format!("{} for {architecture}", fault.name))
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(missed.is_empty(), "nobody sees\n{}", missed.join("\n"));
}
