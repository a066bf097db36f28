//! ThreadSanitizer over the kernels: sound ones are clean over many schedules, and it finds the mutants that are data
//! races, barriers left out foremost.
//!
//! Needs a C++ compiler with ThreadSanitizer's library and no GPU. Without it the tests print that they skipped, and
//! fail if LOOKBACK_REQUIRE_THREAD_SANITIZER is 1.
#![cfg(all(feature = "cpu", feature = "cli"))]

use lookback::element::{ElementType, Instance, Operator};
use lookback::kernels::mutant::Mutant;
use lookback::lab::host_compiler::HostCompilerError;
use lookback::lab::stress::detector::Limits;
use lookback::lab::stress::thread_sanitizer::{AccessSite, Ending, Job, ThreadSanitizer, ThreadSanitizerError, search};
use lookback::strategy::plan::ScanRequest;
use lookback::strategy::{Composition, Descriptor, Mode, Pattern, ScanConfig, Strategy};
use std::sync::OnceLock;
use std::time::Duration;

/// The detector, made once; nothing, with a word, where it cannot be had.
fn detector(test: &str) -> Option<&'static ThreadSanitizer> {
    static DETECTOR: OnceLock<Result<ThreadSanitizer, ThreadSanitizerError>> = OnceLock::new();
    match DETECTOR.get_or_init(ThreadSanitizer::new) {
        Ok(detector) => Some(detector),
        Err(
            error @ (ThreadSanitizerError::Compiler(HostCompilerError::Compile { .. })
            | ThreadSanitizerError::Process(_)),
        ) => panic!("{error}"),
        Err(error) => {
            assert!(
                std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"),
                "LOOKBACK_REQUIRE_THREAD_SANITIZER is 1: {error}"
            );
            println!("{test} skipped: {error}");
            None
        }
    }
}

/// Nine full tiles of 256 elements and a part of one.
fn request(strategy: Strategy, descriptor: Descriptor) -> ScanRequest {
    let instance = Instance::new(ElementType::U32, Operator::Sum).expect("it exists");
    let config = ScanConfig { vt: 4, block_threads: 64, descriptor: Some(descriptor), ..ScanConfig::default() };
    ScanRequest::aligned(instance, strategy, Mode::Inclusive, config, 9 * 256 + 100)
}

fn with_pattern(pattern: Pattern, composition: Composition) -> ScanRequest {
    let plain = request(Strategy::Lookback, Descriptor::Packed64);
    // One element an access, and so three rows a tile: the scratch is used again.
    ScanRequest { config: ScanConfig { vt: 3, pattern, composition, ..plain.config }, n: 9 * 192 + 100, ..plain }
}

fn split(strategy: Strategy) -> Job {
    Job::new(request(strategy, Descriptor::Split))
}

/// One block of 64 scanning threads and its four warps more, and 13 tiles: a ring of up to four goes round.
fn look_ahead(block_threads: u32, instance: (ElementType, Operator)) -> Job {
    let plain = request(Strategy::Lookahead, Descriptor::Split);
    let config = ScanConfig { block_threads, ..plain.config };
    let problem = Instance::new(instance.0, instance.1).expect("it exists").into();
    let n = 12 * 4 * u64::from(block_threads) + 100;
    Job { resident_blocks: 1, ..Job::new(ScanRequest { config, problem, n, ..plain }) }
}

/// Three blocks of 64 threads, or as many of 32 as the detector takes, and rounds enough that each follows another.
fn cluster(block_threads: u32) -> Job {
    let plain = request(Strategy::SingleCluster, Descriptor::Split);
    let config = ScanConfig { block_threads, descriptor: None, ..plain.config };
    Job {
        resident_blocks: Job::THREADS_AT_ONCE / block_threads,
        ..Job::new(ScanRequest { config, n: 25 * 256, ..plain })
    }
}

fn packed() -> Job {
    Job::new(request(Strategy::Lookback, Descriptor::Packed64))
}

/// The line of a kernel that a race names, `scan/lookahead.cuh:133`.
fn line_of(site: &str) -> String {
    let (file, line) = site.split_once(':').expect("file and line");
    let text = std::fs::read_to_string(format!("{}/cuda/{file}", env!("CARGO_MANIFEST_DIR"))).expect("a kernel file");
    let line: usize = line.parse().expect("a number");
    text.lines().nth(line - 1).unwrap_or_default().to_owned()
}

#[track_caller]
fn assert_race(detector: &ThreadSanitizer, job: Job, mutant: &str) {
    let verdict = detector.run(&job.with_mutant(mutant)).expect("a verdict");
    println!("{mutant}: {verdict}");
    assert!(matches!(verdict, Ending::Race(_)), "{mutant}: {verdict}");
}

#[track_caller]
fn assert_found(detector: &ThreadSanitizer, job: Job, mutant: &str) {
    let verdict = detector.run(&job.with_mutant(mutant)).expect("a verdict");
    println!("{mutant}: {verdict}");
    assert!(!verdict.is_clean(), "{mutant}: {verdict}");
}

#[track_caller]
fn assert_clean(detector: &ThreadSanitizer, job: &Job, what: &str) {
    let verdict = detector.run(job).expect("a verdict");
    assert!(verdict.is_clean(), "{what}: {verdict}\n{verdict:?}");
}

#[test]
fn the_canary_is_found_where_it_stands() {
    let Some(detector) = detector("the_canary_is_found_where_it_stands") else { return };
    let job = split(Strategy::Lookback).with_mutant("relaxed_tag_store");
    let Ending::Race(race) = detector.run(&job).expect("a verdict") else { panic!("no race") };
    for access in [&race.access, &race.earlier] {
        assert!(access.site.as_deref().is_some_and(|site| site.starts_with("descriptor.cuh:")), "{race}");
    }
}

#[test]
fn sound_kernels_are_clean() {
    let Some(detector) = detector("sound_kernels_are_clean") else { return };
    for strategy in [Strategy::Lookback, Strategy::Chained] {
        for descriptor in [Descriptor::Split, Descriptor::Packed64] {
            let job = Job { seeds: 0..40, ..Job::new(request(strategy, descriptor)) };
            assert_clean(detector, &job, &format!("{strategy} {descriptor}"));
        }
    }
    for strategy in [Strategy::ReduceThenScan, Strategy::ScanThenPropagate] {
        assert_clean(detector, &Job { seeds: 0..40, ..split(strategy) }, strategy.name());
    }
    for strategy in [Strategy::HillisSteele, Strategy::Blelloch] {
        assert_clean(detector, &Job { seeds: 0..20, ..split(strategy) }, strategy.name());
    }
}

#[test]
fn sound_kernels_are_clean_for_every_instance_pattern_and_place() {
    let Some(detector) = detector("sound_kernels_are_clean_for_every_instance_pattern_and_place") else { return };
    for (element, operator) in Job::INSTANCES {
        let plain = request(Strategy::Lookback, Descriptor::Split);
        for (mode, in_place, output_offset) in [(Mode::Inclusive, false, 0), (Mode::Exclusive, true, 0)] {
            let instance = Instance::new(element, operator).expect("it exists");
            let request = ScanRequest {
                problem: instance.into(),
                mode,
                in_place,
                output_offset,
                config: ScanConfig { descriptor: None, ..plain.config },
                ..plain
            };
            assert_clean(detector, &Job { seeds: 0..10, ..Job::new(request) }, &format!("{instance} {mode}"));
        }
    }
    for &pattern in Pattern::ALL {
        for &composition in Composition::ALL {
            if (pattern, composition) != (Pattern::Shuffle, Composition::Block) {
                let job = Job { seeds: 0..10, ..Job::new(with_pattern(pattern, composition)) };
                assert_clean(detector, &job, &format!("{pattern} {composition}"));
            }
        }
    }
    let plain = request(Strategy::Lookback, Descriptor::Split);
    let misaligned = ScanRequest { input_offset: 4, output_offset: 8, ..plain };
    assert_clean(detector, &Job { seeds: 0..20, ..Job::new(misaligned) }, "misaligned");
    assert_clean(detector, &Job { seeds: 0..20, launches: 3, wrap: true, ..Job::new(plain) }, "wrap");
    assert_clean(detector, &Job { seeds: 0..20, resident_blocks: 1, ..Job::new(plain) }, "one resident block");
    assert_clean(detector, &Job { seeds: 0..20, reverse: true, ..Job::new(plain) }, "reverse");
}

/// Where somebody waits too little, one schedule in a few is a race: so this is over many, for rings of every length.
#[test]
fn copies_and_their_barriers_are_clean() {
    let Some(detector) = detector("copies_and_their_barriers_are_clean") else { return };
    for block_threads in [32, 64] {
        for instance in Job::INSTANCES {
            let job = Job { seeds: 0..16, ..look_ahead(block_threads, instance) };
            assert_clean(detector, &job, &format!("look-ahead of {block_threads} threads, {instance:?}"));
        }
    }
    let plain = look_ahead(64, Job::INSTANCES[0]);
    for descriptor in [Descriptor::Packed64, Descriptor::Packed128] {
        let config = ScanConfig { descriptor: Some(descriptor), ..plain.request.config };
        let job = Job { seeds: 0..12, request: ScanRequest { config, ..plain.request }, ..plain.clone() };
        assert_clean(detector, &job, &format!("look-ahead, {descriptor}"));
    }
    for (mode, in_place, output_offset) in [(Mode::Exclusive, true, 4), (Mode::Inclusive, false, 8)] {
        let request = ScanRequest { mode, in_place, input_offset: 4, output_offset, ..plain.request };
        let job = Job { seeds: 0..12, launches: 3, wrap: true, request, ..plain.clone() };
        assert_clean(detector, &job, "look-ahead, misaligned, three launches");
    }
}

#[test]
fn clusters_are_clean() {
    let Some(detector) = detector("clusters_are_clean") else { return };
    for block_threads in [32, 64] {
        let plain = cluster(block_threads);
        for (element, operator) in Job::INSTANCES {
            let problem = Instance::new(element, operator).expect("it exists").into();
            let job = Job { seeds: 0..8, request: ScanRequest { problem, ..plain.request }, ..plain.clone() };
            assert_clean(
                detector,
                &job,
                &format!("cluster of blocks of {block_threads} threads, {element} {operator}"),
            );
        }
        for &composition in Composition::ALL {
            let config = ScanConfig { composition, pattern: Pattern::KoggeStone, ..plain.request.config };
            let request = ScanRequest { config, mode: Mode::Exclusive, in_place: true, ..plain.request };
            let job = Job { seeds: 0..8, launches: 2, reverse: true, request, ..plain.clone() };
            assert_clean(detector, &job, &format!("cluster, {composition}"));
        }
    }
    // No block has more than one tile, and most have none.
    let short = cluster(32);
    let job = Job { seeds: 0..8, request: ScanRequest { n: 300, ..short.request }, ..short };
    assert_clean(detector, &job, "a cluster of more blocks than tiles");
}

/// Three rounds of reading, and as many descriptors as a case is drawn with: 266 tiles of 64 threads, of which the
/// program's blocks may have half.
#[test]
fn a_wave_of_more_tiles_than_a_round_reads_is_clean() {
    let Some(detector) = detector("a_wave_of_more_tiles_than_a_round_reads_is_clean") else { return };
    for descriptor in [Descriptor::Packed64, Descriptor::Packed128, Descriptor::Split] {
        let plain = request(Strategy::OneWave, descriptor);
        let config = ScanConfig { vt: 1, block_threads: 32, ..plain.config };
        let job = Job { seeds: 0..2, ..Job::new(ScanRequest { config, n: 266 * 64 - 5, ..plain }) };
        assert_clean(detector, &job, &format!("one-wave, 532 tiles, {descriptor}"));
    }
}

#[test]
fn harmless_variants_are_clean() {
    let Some(detector) = detector("harmless_variants_are_clean") else { return };
    for mutant in ["redundant_fence", "stronger_ticket", "narrow_window", "second_read", "prefixes_only"] {
        assert_clean(detector, &Job { seeds: 0..24, ..packed().with_mutant(mutant) }, mutant);
    }
    for strategy in [Strategy::Lookback, Strategy::Chained] {
        assert_clean(detector, &Job { seeds: 0..24, ..split(strategy).with_mutant("fences") }, "fences");
    }
}

#[test]
fn orders_of_the_protocol_that_are_missing_are_races() {
    let Some(detector) = detector("orders_of_the_protocol_that_are_missing_are_races") else { return };
    for strategy in [Strategy::Lookback, Strategy::Chained] {
        for mutant in [
            "relaxed_tag_store",
            "relaxed_tag_load",
            "relaxed_tag",
            "tag_before_value",
            "value_before_tag",
            "tag_block_scope",
            "writer_fence_dropped",
            "reader_fence_dropped",
        ] {
            assert_race(detector, split(strategy), mutant);
        }
    }
    assert_race(detector, split(Strategy::Lookback), "shared_slot");
    assert_race(detector, packed(), "packed_block_scope");
    for mutant in ["torn_descriptor", "packed_64_vector"] {
        assert_found(detector, packed(), mutant);
    }
}

#[test]
fn barriers_that_are_missing_are_races() {
    let Some(detector) = detector("barriers_that_are_missing_are_races") else { return };
    for mutant in ["start_barrier_dropped", "totals_barrier_dropped", "finish_barrier_dropped"] {
        assert_race(detector, packed(), mutant);
    }
    assert_race(detector, split(Strategy::Chained), "chained_finish_barrier_dropped");
    for (pattern, mutants) in [
        (
            Pattern::HillisSteele,
            &["single_buffer", "hillis_steele_step", "hillis_steele_last", "hillis_steele_reuse"][..],
        ),
        (Pattern::KoggeStone, &["kogge_stone_written", "kogge_stone_read", "kogge_stone_last", "kogge_stone_reuse"]),
        (Pattern::BrentKung, &["brent_kung_up", "brent_kung_down", "brent_kung_last", "brent_kung_reuse"]),
        (Pattern::Sklansky, &["sklansky_step", "sklansky_last", "sklansky_reuse"]),
        (Pattern::Blelloch, &["blelloch_up", "blelloch_root", "blelloch_total", "blelloch_down", "blelloch_leaves"]),
    ] {
        // In a warp the barriers are others; the mutants are the same, so one pattern stands for all.
        let compositions = [Composition::Block, Composition::ScanThenPropagate];
        for &composition in &compositions[..if pattern == Pattern::KoggeStone { 2 } else { 1 }] {
            for &mutant in mutants {
                let name =
                    if mutant == "single_buffer" { mutant.to_owned() } else { format!("{mutant}_barrier_dropped") };
                assert_race(detector, Job::new(with_pattern(pattern, composition)), &name);
            }
        }
        assert_race(detector, Job::new(with_pattern(pattern, Composition::ScanThenPropagate)), "aliased_shared_arrays");
    }
    let plain = request(Strategy::Lookback, Descriptor::Packed64);
    let shifted = ScanRequest {
        config: ScanConfig { vt: 8, ..plain.config },
        input_offset: 4,
        output_offset: 8,
        n: 9 * 512 + 100,
        ..plain
    };
    for mutant in ["shifted_write_barrier_dropped", "shifted_read_barrier_dropped"] {
        assert_race(detector, Job::new(shifted), mutant);
    }
    assert_found(detector, split(Strategy::ReduceThenScan), "divergent_return");
}

/// Inside a ring, where racecheck cannot follow an arrival that one lane makes for its warp.
#[test]
fn waits_and_arrivals_that_are_missing_are_races() {
    let Some(detector) = detector("waits_and_arrivals_that_are_missing_are_races") else { return };
    for mutant in [
        "landed_wait_dropped",
        "drained_wait_dropped",
        "drained_too_early",
        "ready_wait_dropped",
        "reduced_wait_dropped",
    ] {
        assert_race(detector, look_ahead(64, Job::INSTANCES[0]), mutant);
    }
    // A copy is an access of the line that asked for it.
    let job = look_ahead(64, Job::INSTANCES[0]).with_mutant("read_after_drained");
    let Ending::Race(race) = detector.run(&job).expect("a verdict") else { panic!("no race") };
    let is_copy = |access: &AccessSite| access.site.as_deref().is_some_and(|site| line_of(site).contains("copy_"));
    assert!(is_copy(&race.access) || is_copy(&race.earlier), "{race}");
    // A stage's index is written before its elements are copied. Of both races one is reported: that of which the sanitizer, who
    // remembers a few accesses of a word, still knows the read.
    let job = look_ahead(64, Job::INSTANCES[0]).with_mutant("scan_tiles_ahead_warp_barrier_2_dropped");
    let Ending::Race(race) = detector.run(&job).expect("a verdict") else { panic!("no race") };
    let is_index = |access: &AccessSite| access.site.as_deref().is_some_and(|site| line_of(site).contains("ring.tile"));
    let is_of_index = is_index(&race.access) && is_index(&race.earlier);
    assert!(is_of_index || is_copy(&race.access) || is_copy(&race.earlier), "{race}");
    // The aggregates of a block's own tiles, from one warp to another.
    assert_race(detector, look_ahead(64, Job::INSTANCES[0]), "relaxed_tag");
    for mutant in ["phase_not_flipped", "ring_longer_than_given"] {
        assert_found(detector, look_ahead(64, Job::INSTANCES[0]), mutant);
    }
}

/// The stores of one block are accesses of a fiber that only the barrier of the other orders.
#[test]
fn waits_and_arrivals_of_a_cluster_that_are_missing_are_races() {
    let Some(detector) = detector("waits_and_arrivals_of_a_cluster_that_are_missing_are_races") else { return };
    for mutant in ["cluster_round_unawaited", "cluster_arrival_relaxed", "cluster_totals_unawaited"] {
        assert_race(detector, cluster(64), mutant);
    }
    // A scan that spans the block has no totals of warps, whose race would come first.
    let mut job = cluster(64).with_mutant("cluster_arrival_relaxed");
    (job.request.config.composition, job.request.config.pattern) = (Composition::Block, Pattern::KoggeStone);
    let Ending::Race(race) = detector.run(&job).expect("a verdict") else { panic!("no race") };
    for access in [&race.access, &race.earlier] {
        assert!(access.site.as_deref().is_some_and(|site| site.starts_with("scan/single_cluster.cuh:")), "{race}");
    }
    for mutant in ["cluster_start_unawaited", "first_block_leaves"] {
        assert_found(detector, cluster(64), mutant);
    }
}

#[test]
fn what_no_kernel_may_touch_is_watched() {
    let Some(detector) = detector("what_no_kernel_may_touch_is_watched") else { return };
    let exclusive = ScanRequest { mode: Mode::Exclusive, ..request(Strategy::Lookback, Descriptor::Split) };
    assert_race(detector, Job::new(exclusive), "last_input_read");
    assert_race(detector, split(Strategy::ReduceThenScan), "element_before_first");
    assert_race(detector, Job::new(ScanRequest { in_place: true, ..exclusive }), "next_tile_written");
}

#[test]
fn faults_of_a_workspace_and_of_starts_are_found() {
    let Some(detector) = detector("faults_of_a_workspace_and_of_starts_are_found") else { return };
    let again = Job { launches: 3, ..split(Strategy::Lookback) };
    for mutant in ["epoch_ignored", "epoch_not_advanced", "ticket_not_reset", "finish_not_reset"] {
        assert_found(detector, again.clone(), mutant);
    }
    assert_found(detector, Job { frozen: true, ..again.clone() }, "epoch_from_host");
    for mutant in ["wrap_not_cleared", "wrap_clears_tiles"] {
        assert_found(detector, Job { wrap: true, ..again.clone() }, mutant);
    }
    let reverse = Job { reverse: true, ..split(Strategy::Lookback) };
    let verdict = detector.run(&reverse.with_mutant("static_tile_ids")).expect("a verdict");
    assert!(matches!(verdict, Ending::LostProgress { waiting: Some(_), missing: Some(_), .. }), "{verdict}");
}

fn drawn(
    detector: &ThreadSanitizer,
    mutant: Option<&str>,
    schedules: u64,
) -> Result<lookback::lab::stress::thread_sanitizer::Search, ThreadSanitizerError> {
    let mutant = mutant.map(|name| Mutant::named(name).expect("it is one of the kernels'"));
    search(detector, mutant, Limits { first_seed: 0, schedules, time: None, stop: None, threads: 2 })
}

#[test]
fn drawn_cases_show_a_mutant_and_again_when_they_are_replayed() {
    let Some(detector) = detector("drawn_cases_show_a_mutant_and_again_when_they_are_replayed") else { return };
    let kernels = drawn(detector, None, 60).expect("a search");
    assert_eq!(kernels.found, None);
    assert!(kernels.schedules >= 60);
    for mutant in ["relaxed_tag", "finish_barrier_dropped", "epoch_ignored", "finish_not_reset", "commutes"] {
        let found = drawn(detector, Some(mutant), 100).expect("a search").found;
        let found = found.unwrap_or_else(|| panic!("{mutant} survived"));
        println!("{mutant}: {}", found.ending);
        let line = format!("thread-sanitizer {}", found.case);
        let mut program = assert_cmd::Command::cargo_bin("lookback").expect("the program is built");
        let again = program.args(["stress", "--replay", &line]).assert().code(1);
        let text = String::from_utf8_lossy(&again.get_output().stdout).into_owned();
        assert_eq!(text.contains("WARNING: ThreadSanitizer: data race"), matches!(found.ending, Ending::Race(_)));
        assert!(text.contains(&format!("seed {}", found.case.seed)), "{text}");
    }
}

#[test]
fn mutants_beyond_the_detector_are_refused_with_the_reason() {
    let Some(detector) = detector("mutants_beyond_the_detector_are_refused_with_the_reason") else { return };
    for (mutant, reason) in [("windows_swapped", "32 resident blocks"), ("relaunch_after_abort", "the host")] {
        match drawn(detector, Some(mutant), 1) {
            Err(ThreadSanitizerError::NotCovered(why)) => assert!(why.contains(reason), "{why}"),
            other => panic!("{mutant}: {other:?}"),
        }
    }
    let case = "mutant=none,strategy=chained,type=u32,operator=sum,mode=inclusive,layout=packed-64,pattern=shuffle,\
                composition=scan-then-propagate,vt=2,threads=64,in-place=true,input-offset=0,output-offset=0,n=1281,\
                order=ticket,memory=weak,seed=0,resident=2,blocks=in-order,preemption=20,plain-points=false,launches=2,\
                epochs=0,workspace=zeros";
    let refused = |text: &str, reason: &str| match Job::of_case(&text.parse().expect("a case"), 1) {
        Err(ThreadSanitizerError::NotCovered(why)) => assert!(why.contains(reason), "{why}"),
        other => panic!("{text}: {other:?}"),
    };
    assert!(Job::of_case(&case.parse().expect("a case"), 1).is_ok());
    refused(&format!("{case},together=2"), "one behind the end of the other");
    refused(&case.replace("seed=0", &format!("seed={}", u64::MAX)), "a smaller one");
}

#[test]
fn what_is_beyond_the_detector_is_an_error() {
    let Some(detector) = detector("what_is_beyond_the_detector_is_an_error") else { return };
    let refused = |job: &Job| match detector.run(job) {
        Err(ThreadSanitizerError::NotCovered(why)) => println!("{why}"),
        other => panic!("{other:?}"),
    };
    let job = split(Strategy::Lookback);
    refused(&Job { resident_blocks: 4, ..job.clone() });
    let mut wide = job.clone();
    wide.request.config.block_threads = 128;
    refused(&wide);
    let mut unknown = job.clone();
    unknown.request.problem = Instance::new(ElementType::F32, Operator::Max).expect("it exists").into();
    refused(&unknown);
    let mut empty = job.clone();
    empty.request.n = 0;
    refused(&empty);
    let mut long = split(Strategy::Naive);
    long.request.n = 64 * (Job::BLOCKS + 1);
    refused(&long);
    refused(&Job { resident_blocks: 2, ..look_ahead(32, Job::INSTANCES[0]) });
    refused(&Job { resident_blocks: 1, ..cluster(64) });
    refused(&Job { resident_blocks: 4, ..cluster(64) });
    let late =
        detector.run(&Job { seeds: 0..1_000_000, time_limit: Duration::from_millis(300), ..job }).expect("a verdict");
    assert!(matches!(late, Ending::Other(_)), "{late}");
}
