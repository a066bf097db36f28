//! The stress harness, end to end: every mutant dies, nothing harmless does, what fails can be run again.
#![cfg(all(feature = "cpu", feature = "cli"))]

mod common;

use assert_cmd::Command;
use common::committed;
use lookback::cpu::BlockOrder;
use lookback::lab::stress::cpu::{Fault, run};
use lookback::lab::stress::detector::{CannotRun, Cell, Limits};
use lookback::lab::stress::replay::{Replayed, replay};
use lookback::lab::stress::search::{self, Search, shrink};
use lookback::lab::stress::selection::select;
use lookback::lab::stress::table::{KillTable, MutantOutcome, Row};
use lookback::lab::stress::{Case, Disturbance, Kind, Memory, Mutant, PLAIN};
use lookback::lab::trace::story::Story;
use lookback::lab::workload::ProblemKind;
use lookback::strategy::{Strategy, TileOrder};
use std::time::{Duration, Instant};

fn limits(schedules: u64) -> Limits {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Limits { first_seed: 0, schedules, time: None, stop: None, threads }
}

fn search(
    mutant: Option<&'static Mutant>,
    memories: &[Memory],
    limits: Limits,
    progress: &(dyn Fn(u64) + Sync),
) -> Search {
    search::search(PLAIN, mutant, memories, limits, progress).expect("there is memory")
}

/// Whether kernels of problems can be compiled here.
fn has_compiler() -> bool {
    let of_rows = Case::draw_of(&[ProblemKind::Rows], None, Memory::Strong, 0);
    !matches!(run(&of_rows), Err(failure) if failure.cannot_run().is_some_and(has_no_compiler))
}

/// Those that somebody thought of. Those by rule are `.ci/run`'s: some take a thousand runs.
fn mutants() -> impl Iterator<Item = &'static Mutant> {
    Mutant::all().expect("every fault can be read").iter().filter(|mutant| mutant.rule.is_none())
}

#[test]
fn every_mutant_is_killed_and_no_harmless_variant_is() {
    let has_compiler = has_compiler();
    for mutant in mutants().filter(|mutant| has_compiler || mutant.when.problems.is_empty()) {
        // What only orders memory shows only where memory is weak.
        let memories = match mutant.kind {
            Kind::Ordering => &[Memory::Weak][..],
            _ => &[Memory::Strong, Memory::Weak],
        };
        for &memory in memories {
            let found = search(Some(mutant), &[memory], limits(if mutant.is_harmless() { 100 } else { 400 }), &|_| {});
            match found.found {
                Some(found) if mutant.is_harmless() => {
                    panic!("{mutant} is harmless: {}\n{}", found.failure, found.case)
                }
                Some(found) => assert_eq!(run(&found.case), Err(found.failure), "{}", found.case),
                None => assert!(mutant.is_harmless(), "{mutant} survived {memory:?} memory"),
            }
        }
    }
}

#[test]
fn weak_memory_kills_the_ordering_mutants_at_almost_every_seed() {
    let has_compiler = has_compiler();
    let is_asked =
        |mutant: &&Mutant| mutant.kind == Kind::Ordering && (has_compiler || mutant.when.problems.is_empty());
    for mutant in mutants().filter(is_asked) {
        let killed = (0..40).filter(|&seed| run(&Case::draw(Some(mutant), Memory::Weak, seed)).is_err()).count();
        // With one wave a clean-up that nothing orders is mostly ordered all the same: by the reads of every aggregate.
        let least = if mutant.name == "relaxed_finish" { 10 } else { 20 };
        assert!(killed >= least, "{mutant}: {killed} of 40 seeds");
    }
}

/// A wait at an mbarrier acquires and an arrival releases: relaxed, either is seen where memory is weak, and there alone.
#[test]
fn relaxed_waits_and_arrivals_at_mbarriers_are_found_and_those_that_order_nothing_are_not() {
    let chosen = select(&["weakened".to_owned()], None, 0).expect("a rule");
    let of_mbarriers: Vec<_> =
        chosen.into_iter().filter(|mutant| mutant.text.contains("arrive") || mutant.text.contains("wait")).collect();
    assert!(of_mbarriers.len() >= 20, "{of_mbarriers:?}");
    for mutant in of_mbarriers {
        let found =
            search(Some(mutant), &[Memory::Weak], limits(if mutant.is_harmless() { 100 } else { 400 }), &|_| {});
        match found.found {
            Some(found) if mutant.is_harmless() => panic!("{mutant} is harmless: {}\n{}", found.failure, found.case),
            Some(_) => {
                let strong = search(Some(mutant), &[Memory::Strong], limits(40), &|_| {});
                assert_eq!(strong.found, None, "{mutant} changes no value");
            }
            None => assert!(mutant.is_harmless(), "{mutant} survived"),
        }
    }
}

#[test]
fn the_kernels_as_they_are_pass() {
    let found = search(None, &[Memory::Weak, Memory::Strong], limits(1500), &|_| {});
    if let Some(found) = found.found {
        panic!("{}\nlookback stress --replay '{}'", found.failure, found.case);
    }
    assert!(found.passed.schedules >= 1500);
}

/// Whether there is no compiler for kernels of problems, and none is asked for.
fn has_no_compiler(why: &CannotRun) -> bool {
    let CannotRun::Kernel { why } = why else { return false };
    assert!(std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"), "{why}");
    println!("skipped: {why}");
    why.contains("no C++ compiler") || why.contains("makes nothing with")
}

#[test]
fn cases_of_each_problem_are_drawn_and_right() {
    let mut counted = 0;
    for (number, kind) in (0..).zip(ProblemKind::ALL) {
        let drawn = |seed: u64| {
            let memory = if (number + seed).is_multiple_of(2) { Memory::Weak } else { Memory::Strong };
            Case::draw_of(&[*kind], None, memory, seed)
        };
        // Of every other problem one whose elements the device counts, if there is one.
        let is_counted = !number.is_multiple_of(2) && (0..100).map(drawn).any(|case| case.count.is_some());
        // A whole launch of tiles that meet; more of them, each with a kernel that somebody compiles, are `.ci/run`'s.
        let is_usual = |case: &Case| {
            case.tiles() < 16 && case.request.strategy.is_single_pass() && case.count.is_some() == is_counted
        };
        let case = (0..).map(drawn).find(is_usual).expect("one of all");
        counted += u64::from(is_counted);
        match run(&case) {
            Ok(passed) => assert_eq!(passed.elements == 0, passed.launches() == passed.cut, "{case}"),
            Err(failure) if failure.cannot_run().is_some_and(has_no_compiler) => return,
            Err(failure) => panic!("{failure}\nlookback stress --replay '{case}'"),
        }
        // The line is the run.
        assert_eq!(run(&case.to_string().parse().expect("a case")), run(&case));
    }
    assert!(counted > 10, "{counted}");
}

/// Runs a case that was found by drawing, and has to pass since.
fn assert_mended(text: &str) {
    let case: Case = text.parse().expect("a case");
    match run(&case) {
        Ok(passed) => {
            // Launches behind the first one have other sizes.
            let is_whole =
                if case.launches == 1 { passed.elements == case.request.n } else { passed.elements > case.request.n };
            assert!(is_whole && passed.cut == 0);
        }
        Err(failure) if failure.cannot_run().is_some_and(has_no_compiler) => {}
        Err(failure) => panic!("{failure}"),
    }
}

/// Drawn: a lane beside the last column loaded, in place, what another lane of its warp stores.
#[test]
fn lanes_beside_the_last_column_load_before_others_store() {
    assert_mended(
        "mutant=none,strategy=lookback,type=f64,operator=none,mode=inclusive,layout=split,pattern=shuffle,\
         composition=scan-then-propagate,vt=1,threads=64,in-place=true,input-offset=0,output-offset=0,n=191,\
         problem=recurrence-columns,shape=1x191,order=ticket,memory=weak,seed=5,resident=1,blocks=in-order,\
         preemption=20,plain-points=false,launches=1,epochs=0,workspace=zeros",
    );
}

/// Drawn: a lane read the word of bits behind its tile's last one from shared memory that nobody had written.
#[test]
fn bits_of_offsets_are_read_from_where_they_were_fetched_to() {
    assert_mended(
        "mutant=none,strategy=lookahead,type=f32,operator=sum,mode=inclusive,layout=split,pattern=shuffle,\
         composition=scan-then-propagate,vt=1,threads=32,in-place=false,input-offset=0,output-offset=0,n=128,\
         problem=offsets,input-type=u8,run-length=1,order=ticket,memory=weak,seed=105,resident=1,\
         blocks=in-order,preemption=20,plain-points=false,launches=1,epochs=0,workspace=zeros",
    );
}

/// Drawn: the first launch has one tile a line and no descriptors, and its workspace had room for those of another layout.
#[test]
fn a_launch_with_descriptors_finds_room_behind_one_without() {
    assert_mended(
        "mutant=none,strategy=lookback,type=f32,operator=sum,mode=inclusive,layout=split,pattern=shuffle,\
         composition=scan-then-propagate,vt=1,threads=96,in-place=false,input-offset=0,output-offset=0,n=864,\
         problem=reverse-columns,input-type=u8,shape=9x96,order=ticket,memory=strong,seed=1000139,resident=1,\
         blocks=in-order,preemption=100,plain-points=false,launches=2,epochs=0,workspace=zeros",
    );
}

/// Barriers of the strategies that scan problems, and what only order shows.
#[test]
fn faults_of_plain_scans_are_found_in_scans_of_rows_too() {
    for (name, strategy) in [
        ("finish_barrier_dropped", Strategy::Lookback),
        ("publish_aggregates_barrier_wait_1_dropped", Strategy::Lookahead),
        ("prefix_without_total", Strategy::Lookback),
    ] {
        let mutant = Mutant::named(name).expect("it is one of the kernels'");
        let rows = &[ProblemKind::Rows];
        let found = match search::search(rows, Some(mutant), &[Memory::Strong, Memory::Weak], limits(200), &|_| {}) {
            Ok(found) => found.found.unwrap_or_else(|| panic!("{mutant} survived")),
            Err(why) if has_no_compiler(&why) => return,
            Err(why) => panic!("{why}"),
        };
        assert_eq!((found.case.workload.kind(), found.case.request.strategy), (ProblemKind::Rows, strategy));
        assert_eq!(run(&found.case.to_string().parse().expect("a case")), Err(found.failure.clone()));
        // Another problem that fails likewise is no smaller case of this one, but the plain scan is.
        let small = shrink(&found, &Limits { time: Some(Duration::from_secs(5)), ..limits(1) }).case;
        assert!([ProblemKind::Rows, ProblemKind::Flat].contains(&small.workload.kind()), "{small}");
        assert!(small.request.n <= found.case.request.n, "{small}");
    }
}

#[test]
fn tickets_need_one_resident_block_and_static_ids_need_order() {
    for seed in 0..60 {
        for memory in [Memory::Strong, Memory::Weak] {
            let mut case = Case::draw(None, memory, seed);
            // A tile alone waits for nobody, and wide blocks take longer.
            if case.tiles() < 8 || case.request.config.block_threads > 128 {
                continue;
            }
            case.request.strategy = match seed % 4 {
                0 => Strategy::Chained,
                1 => Strategy::OneWave,
                _ => Strategy::Lookback,
            };
            case.disturbance = Disturbance::None;
            for resident_blocks in [1, 2] {
                for block_order in [BlockOrder::InOrder, BlockOrder::Reverse, BlockOrder::Random] {
                    let case = Case { resident_blocks, block_order, ..case.clone() };
                    run(&case).unwrap_or_else(|failure| panic!("{failure}\n{case}"));
                }
            }
            // The same with static ids, the last block first: whoever runs waits for blocks that cannot start.
            case.request.config.tile_order = TileOrder::Static;
            case.request.in_place = false;
            let case = Case { resident_blocks: 1, block_order: BlockOrder::Reverse, ..case };
            let start = Instant::now();
            let failure = run(&case).expect_err("progress is lost");
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
            match failure.fault {
                Fault::LostProgress { text } => assert!(text.contains("for tile "), "{text}"),
                other => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_failing_case_is_made_smaller_and_told_step_by_step() {
    let mutant = Mutant::named("relaxed_tag_store").expect("it is one of the kernels'");
    let found = search(Some(mutant), &[Memory::Weak], limits(100), &|_| {}).found.expect("it is killed");
    let small = shrink(&found, &Limits { time: Some(Duration::from_secs(10)), ..limits(1) });
    assert!(small.case.request.n < found.case.request.n, "{}", small.case);
    assert_eq!(run(&small.case), Err(small.failure.clone()));
    let Replayed { text, result, launches } = replay(&small.case, 1000);
    assert_eq!(result, Err(small.failure));
    // It can be looked at, whatever came of it.
    let (number, recording) = launches.last().expect("tiles came to something");
    assert!(!recording.is_right && launches.iter().all(|(other, recording)| other == number || recording.is_right));
    let story = Story::new(recording);
    assert!(!story.slices.is_empty());
    assert_eq!(story.critical_path.iter().map(|link| link.took).sum::<u64>(), story.duration);
    for part in ["kernel launch 1", "ticket = 0", "stores relaxed", "[epoch "] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn a_replay_tells_of_shared_memory_too_and_of_no_more_than_it_is_asked_for() {
    let text = "mutant=none,strategy=single-block,type=u32,operator=sum,mode=inclusive,layout=none,pattern=shuffle,\
                composition=reduce-then-scan,vt=1,threads=64,in-place=false,input-offset=0,output-offset=0,n=200,\
                order=ticket,memory=weak,seed=1,resident=1,blocks=in-order,preemption=20,plain-points=false,\
                launches=1,epochs=0,workspace=zeros";
    let case: Case = text.parse().expect("a case");
    let Replayed { text: told, result, .. } = replay(&case, 1000);
    result.expect("the kernels are right");
    // Lane 0 of either warp stores the warp's total, and behind the barrier all read both.
    for part in [
        "block 0                 has    shared 0, ",
        "block 0   thread 32     stores shared 1+4 = 0x",
        "block 0   all threads   meet at the block barrier",
        "block 0   threads 0-31  loads  shared 1+4..7  block/warp_totals.cuh:",
    ] {
        assert!(told.contains(part), "no '{part}' in\n{told}");
    }
    assert!(told.lines().skip(1).all(|line| line.chars().count() <= 80), "{told}");
    let few = replay(&case, 5).text;
    assert!(few.contains("lines of shared memory before these"), "{few}");
    // The launch, what is hidden, and five lines of which some may be broken.
    assert!((7..=12).contains(&few.lines().count()), "{few}");
    let last = told.lines().last().expect("there are lines");
    assert!(few.ends_with(&format!("{last}\n")), "{few}");
}

#[test]
fn the_lines_of_recorded_failures_are_still_cases() {
    let Some(table) = committed("reports/h100/mutants-h100.json") else { return };
    let table = std::fs::read_to_string(table).expect("the recorded table of mutants");
    let lines: Vec<_> = table.split("--replay '").skip(1).filter_map(|rest| rest.split('\'').next()).collect();
    assert!(lines.len() > 200, "{} lines", lines.len());
    for line in lines {
        if line.starts_with("gpu-stress") {
            #[cfg(feature = "cuda")]
            line.parse::<lookback::lab::stress::gpu::StressCase>().unwrap_or_else(|error| panic!("{error}: {line}"));
            continue;
        }
        let case = line.trim_start_matches("thread-sanitizer ");
        case.parse::<Case>().unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

fn lookback() -> Command {
    Command::cargo_bin("lookback").expect("the program is built")
}

#[test]
fn the_program_says_what_it_found_and_how_to_see_it_again() {
    let fine = lookback().args(["stress", "--runs", "60", "--quiet"]).assert().code(0);
    let text = String::from_utf8_lossy(&fine.get_output().stdout).into_owned();
    assert!(text.contains("no failure"), "{text}");

    let killed = lookback().args(["stress", "--mutant", "stops_at_aggregate", "--quiet"]).assert().code(1);
    let text = String::from_utf8_lossy(&killed.get_output().stdout).into_owned();
    let case = text.split('\'').nth(1).expect("the command to run it again");
    let again = lookback().args(["stress", "--replay", case]).assert().code(1);
    assert!(String::from_utf8_lossy(&again.get_output().stdout).contains("FAILED in launch"));

    lookback().args(["stress", "--replay", "seed=1"]).assert().code(2);
    // Nor is a launch that the case itself cuts short.
    let cut = "mutant=none,strategy=lookback,type=u32,operator=sum,mode=inclusive,layout=packed-64,pattern=shuffle,\
               composition=reduce-then-scan,vt=1,threads=64,in-place=false,input-offset=0,output-offset=0,n=1000,\
               order=ticket,memory=strong,seed=1,resident=1,blocks=in-order,preemption=20,plain-points=false,\
               launches=1,epochs=0,workspace=zeros,abort=0";
    let replay = |case: &str, code: i32| {
        let run = lookback().args(["stress", "--replay", case]).assert().code(code);
        String::from_utf8_lossy(&run.get_output().stderr).into_owned()
    };
    let why = replay(cut, 2);
    assert!(why.contains("no element was checked"), "{why}");
    replay(&cut.replace("launches=1", "launches=2"), 0);
    let why = replay(&cut.replace("n=1000", "n=0"), 2);
    assert!(why.contains("nothing to run"), "{why}");
    // No run is no pass.
    lookback().args(["stress", "--seconds", "1e-9"]).assert().code(2);
    lookback().args(["stress", "--mutant", "no_such"]).assert().code(2);
    lookback().args(["stress", "--mutants", "--detectors", "luck"]).assert().code(2);
}

#[test]
fn the_program_draws_cases_of_problems_and_says_where_it_cannot() {
    let run = |words: &[&str]| {
        let output = lookback().arg("stress").args(words).arg("--quiet").output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let of_rows = ["--problem", "rows,by-key", "--mutant", "prefix_without_total"];
    let (code, said, why) = run(&of_rows);
    if code == Some(3) && why.contains("no C++ compiler") {
        return println!("skipped: {why}");
    }
    assert_eq!(code, Some(1), "{said}{why}");
    let case = said.split('\'').nth(1).expect("the command to run it again");
    assert!(case.contains("problem=rows,shape=") || case.contains("problem=by-key,run-length="), "{case}");
    assert_eq!(run(&["--replay", case]).0, Some(1), "{case}");
    // What cannot be drawn is said, and nothing is drawn in its place.
    for (words, says) in [
        (&["--problem", "rows", "--replay", case][..], "a case says its problem"),
        (&["--problem", "diagonals"], "reverse-rows"),
        (&["--problem", "columns", "--mutant", "cluster_start_unawaited"], "no case of these problems can show"),
        (
            &["--problem", "rows", "--mutants", "--detectors", "thread-sanitizer"],
            "plain scans alone are drawn by thread-sanitizer",
        ),
    ] {
        let (code, said, why) = run(words);
        assert!(code == Some(2) && why.contains(says), "{words:?}: {said}{why}");
    }
    // A fault that names problems is drawn of these without being asked, and of no others.
    let (code, said, why) = run(&["--mutant", "alone_where_rows_are_cut"]);
    let is_of_rows = ["problem=rows,", "problem=reverse-rows,"].iter().any(|problem| said.contains(problem));
    assert!(code == Some(1) && is_of_rows, "{said}{why}");
    let elsewhere = ["--problem", "columns", "--mutant", "alone_where_rows_are_cut"];
    let (code, _, why) = run(&elsewhere);
    assert!(code == Some(2) && why.contains("no case of these problems can show"), "{why}");
    let on_gpu = ["--device", "cuda", "--mutant", "dealt_published_to_itself"];
    let (code, _, why) = run(&on_gpu);
    assert!(code == Some(2) && why.contains("on one GPU"), "{why}");
    let (_, _, why) = run(&["--replay", &format!("thread-sanitizer {case}")]);
    assert!(why.contains("plain scans alone"), "{why}");
    let table = ["--problem", "rows", "--mutants", "--of", "prefix_without_total"];
    let (code, said, why) = run(&[&table[..], &["--detectors", "cpu-schedules", "--runs", "20"]].concat());
    assert!(code == Some(0) && said.contains("1 of 1 mutants killed"), "{said}{why}");
    // Beside one of plain scans, in a table of detectors of which one draws no others, with the kernels as they are in both.
    let table =
        ["--mutants", "--of", "alone_where_rows_are_cut,prefix_without_total", "--format", "json", "--runs", "20"];
    let (code, said, why) = run(&[&table[..], &["--detectors", "cpu-schedules,thread-sanitizer"]].concat());
    let table: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{why}"));
    let row = |name: &str| {
        let rows = table["mutants"].as_array().expect("rows").iter();
        rows.clone().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"))["detectors"].clone()
    };
    let of_rows = row("alone_where_rows_are_cut");
    assert_eq!(
        (&of_rows["cpu-schedules"]["verdict"], &of_rows["thread-sanitizer"]["verdict"]),
        (&"killed".into(), &"not-run".into())
    );
    assert_eq!(row("prefix_without_total")["cpu-schedules"]["verdict"], "killed");
    assert!(code == Some(0) || why.contains("thread-sanitizer was not asked"), "{said}{why}");
}

/// Faults of a chained scan, by hand and by rule, one of order and a harmless one.
const OF_THE_CHAIN: [&str; 2] = ["--of", "cuda/scan/chained.cuh,relaxed_tag,redundant_fence"];

#[test]
fn the_table_of_mutants_has_a_verdict_for_each() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("mutants-cpu.json");
    let path = file.to_str().expect("temporary folders have plain names");
    // What survives takes all the time that it may, and what does not takes a hundredth of a second.
    let run = lookback()
        .args(["stress", "--mutants", "--detectors", "weak-memory", "--seconds", "4", "--format", "json"])
        .args(OF_THE_CHAIN)
        .args(["--output", path, "--quiet"])
        .assert()
        .code(0);
    let table: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).expect("JSON");
    let rows = table["mutants"].as_array().expect("rows");
    let chosen: Vec<String> = OF_THE_CHAIN[1].split(',').map(str::to_owned).collect();
    assert_eq!(rows.len(), select(&chosen, None, 0).expect("faults of them").len());
    for row in rows {
        let expected = if row["kind"] == "harmless" { "survived" } else { "killed" };
        assert_eq!(row["verdict"], expected, "{row:#}");
    }
    // Its columns can be taken over, and a survivor is an error.
    lookback()
        .args(["stress", "--mutants", "--detectors", "cpu-schedules", "--seconds", "0.02", "--quiet"])
        .args(OF_THE_CHAIN)
        .assert()
        .code(1);
    lookback()
        .args(["stress", "--mutants", "--detectors", "cpu-schedules", "--seconds", "0.02", "--add", path, "--quiet"])
        .args(OF_THE_CHAIN)
        .assert()
        .code(0);
}

/// Faults that show in one of some hundred runs, of which few end in the first time.
#[test]
fn what_all_detectors_have_left_is_looked_for_once_more() {
    const RARE: &str = "reduce_skipped_loop_a_round_short,shuffle_scan_singly_loop_6_a_round_short,\
                        hillis_steele_scan_loop_a_round_short";
    let survivors = |again: &[&str]| {
        let words = ["stress", "--mutants", "--detectors", "cpu-schedules,weak-memory", "--seconds", "0.01"];
        let run = lookback().args(words).args(["--of", RARE, "--format", "json", "--quiet"]).args(again).output();
        let table: KillTable = serde_json::from_slice(&run.expect("it runs").stdout).expect("JSON");
        table.survivors().map(|row| row.name.clone()).collect::<Vec<_>>()
    };
    assert!(!survivors(&[]).is_empty());
    assert_eq!(survivors(&["--again", "120"]), [""; 0]);
}

#[test]
fn every_run_keeps_the_time_asked_for() {
    let start = Instant::now();
    let words = [
        "stress",
        "--mutants",
        "--detectors",
        "cpu-schedules",
        "--seconds",
        "0.02",
        "--runs",
        "2^30",
        // Of plain scans: a kernel that is compiled on the way takes the time that a compiler takes.
        "--of",
        "cuda/block/brent_kung.cuh,cuda/block/kogge_stone.cuh,cuda/scan/one_wave.cuh,cuda/scan/chained.cuh",
    ];
    let output =
        Command::cargo_bin("lookback").unwrap().args(words).args(["--format", "json", "--quiet"]).output().unwrap();
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = |cells: &serde_json::Value| cells["cpu-schedules"]["seconds"].as_f64();
    // No run may have ended.
    let unmutated = cells(&table["unmutated"]).unwrap_or(0.0);
    let longest =
        table["mutants"].as_array().unwrap().iter().filter_map(|row| cells(&row["detectors"])).fold(0.0, f64::max);
    // One case may be on the way when the time is over, which takes seconds where much else runs; all would take days.
    assert!(unmutated < 30.0 && longest < 30.0, "{unmutated} s of the kernels as they are, {longest} s of a mutant");
    assert!(start.elapsed() < Duration::from_secs(300), "{:?}", start.elapsed());
}

#[cfg(unix)]
#[test]
fn who_is_interrupted_says_what_was_done() {
    let interrupt = |words: &[&str], after: Duration| {
        let mut program = std::process::Command::new(assert_cmd::cargo::cargo_bin!("lookback"));
        program.args(words).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let child = program.spawn().unwrap();
        std::thread::sleep(after);
        let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, said, remarks) = interrupt(&["stress", "--runs", "2^30"], Duration::from_secs(2));
    assert_eq!(code, Some(130), "{said}{remarks}");
    assert!(said.contains("runs of at least 8 tiles") && remarks.contains("interrupted"), "{said}{remarks}");
    let table = ["stress", "--mutants", "--detectors", "cpu-schedules,weak-memory", "--seconds", "30"];
    let (code, said, remarks) = interrupt(&table, Duration::from_secs(2));
    assert_eq!(code, Some(130), "{said}{remarks}");
    assert!(said.contains("mutants killed") && remarks.contains("interrupted"), "{said}{remarks}");
    let (code, said, _) = interrupt(&["stress", "--runs", "2^30", "--format", "json"], Duration::from_secs(1));
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&said).unwrap()["interrupted"], true);
}

/// The program with so many KiB of address space.
#[cfg(target_os = "linux")]
fn with_little_memory(kib: u32, words: &[&str]) -> std::process::Output {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {kib} && exec \"$0\" \"$@\"")]);
    shell.arg(assert_cmd::cargo::cargo_bin!("lookback")).args(words).output().expect("there is a shell")
}

#[cfg(target_os = "linux")]
#[test]
fn a_shortage_of_memory_is_no_verdict_on_the_kernels() {
    const KIB: u32 = 200_000;
    let large = (0..).map(|seed| Case::draw(None, Memory::Weak, seed)).find(|case| case.resident_blocks > 40);
    let large = large.expect("one of all").to_string();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = folder.path().join("table.json");
    let table = table.to_str().expect("temporary folders have plain names");
    let of_the_chain = [
        &["--mutants", "--detectors", "cpu-schedules", "--seconds", "0.2", "--threads", "1", "--output", table],
        &OF_THE_CHAIN[..],
    ]
    .concat();
    for (words, helps) in [
        (&["--replay", &large][..], "address space (ulimit -v)"),
        (&["--runs", "2000", "--threads", "1"], "use fewer --threads"),
        (&["--mutant", "windows_swapped", "--threads", "1"], "use fewer --threads"),
        (&of_the_chain, "use fewer --threads"),
    ] {
        let output = with_little_memory(KIB, &[&["stress", "--quiet"], words].concat());
        let [said, why] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert_eq!(output.status.code(), Some(3), "{words:?}: {said}{why}");
        assert!(why.contains("coroutine stacks") && why.contains(helps), "{words:?}: {why}");
        assert!(!said.contains("FAILED") && !said.contains("killed") && !why.contains("os error"), "{said}{why}");
    }
}

#[test]
fn a_table_of_mutants_replaces_nothing_but_a_table_of_mutants() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("temporary folders have plain names").to_owned();
    let write = |output: &str, more: &[&str]| {
        let words = ["stress", "--mutants", "--detectors", "cpu-schedules", "--seconds", "0.01", "--output", output];
        lookback().args(words).args(OF_THE_CHAIN).args(["--runs", "1", "--quiet"]).args(more).output().expect("it runs")
    };
    let refused = |output: &str, says: &str| {
        let start = Instant::now();
        let refusal = write(output, &[]);
        let why = String::from_utf8_lossy(&refusal.stderr);
        assert_eq!(refusal.status.code(), Some(2), "{output}: {why}");
        assert!(why.contains(says) && why.contains("--output"), "{output}: {why}");
        assert!(start.elapsed() < Duration::from_secs(20), "nothing has run: {:?}", start.elapsed());
    };
    std::fs::write(path("notes.txt"), "mine").expect("a file");
    refused(&path("notes.txt"), "is no file with a table of mutants, so it is not replaced");
    assert_eq!(std::fs::read_to_string(path("notes.txt")).expect("it is there"), "mine");
    refused(folder.path().to_str().expect("plain"), "is no file with a table of mutants");
    refused(&path("none/table.json"), "there is no folder");

    let table = path("table.json");
    assert_eq!(write(&table, &[]).status.code(), Some(1), "survivors");
    let first = std::fs::read(&table).expect("it is written");
    // A table is replaced by one that holds its results, too.
    refused(&table, "has results that would be lost; keep them by --add");
    let other = path("other.json");
    assert_eq!(write(&other, &["--of", "windows_swapped", "--add", &table]).status.code(), Some(1), "survivors");
    let refusal = write(&table, &["--add", &other]);
    assert_eq!(refusal.status.code(), Some(2), "another table");
    assert_eq!(std::fs::read(&table).expect("it is there"), first);
    assert_eq!(write(&table, &["--add", &table]).status.code(), Some(1), "survivors");
    assert_ne!(std::fs::read(&table).expect("it is there"), first);
    #[cfg(unix)]
    {
        refused("/dev/null", "is no file with a table of mutants");
        for target in [&table, &path("none")] {
            let link = path("link");
            std::os::unix::fs::symlink(target, &link).expect("a link");
            refused(&link, "is no file with a table of mutants");
            assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
            std::fs::remove_file(&link).expect("removed");
        }
    }
}

#[test]
fn a_table_of_the_same_commit_is_gone_on_with() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("table.json").to_string_lossy().into_owned();
    let run = |more: &[&str]| {
        let words =
            ["stress", "--mutants", "--detectors", "weak-memory", "--seconds", "2", "--output", &path, "--quiet"];
        lookback().args(words).args(more).output().expect("it runs")
    };
    let read = || -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(&path).expect("it is written")).expect("JSON")
    };
    let some = ["--sample", "4", "--seed", "9"];
    run(&some);
    let first = read();
    if first["git_commit"].as_str().is_none_or(|commit| commit.ends_with("-dirty")) {
        println!("skipped: this build is of no known commit, or has changes");
        return;
    }
    let cells = |table: &serde_json::Value| -> Vec<serde_json::Value> {
        let rows = table["mutants"].as_array().expect("rows").iter();
        rows.map(|row| row["detectors"]["weak-memory"].clone()).filter(|cell| cell["verdict"] == "killed").collect()
    };
    assert!(!cells(&first).is_empty(), "{first:#}");
    run(&[&some[..], &["--add", &path]].concat());
    let second = read();
    // To the nanoseconds that they took.
    assert!(cells(&first).iter().all(|cell| cells(&second).contains(cell)), "{second:#}");
    assert!(second["machine"]["part of column weak"].is_string(), "{second:#}");
    // Who names them asks about them.
    let name = first["mutants"][0]["name"].as_str().expect("a name");
    run(&["--of", name, "--add", &path]);
    assert_ne!(read()["mutants"], second["mutants"]);
}

/// Ctrl-C ends the compilers of the terminal's process group, too; what they leave behind is no word on this machine.
#[cfg(unix)]
#[test]
fn who_is_interrupted_while_a_detector_is_compiled_has_no_compiler_missing() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let compiler = folder.path().join("compiler");
    // Takes the first file, which asks for the sanitizer's library, and is interrupted with the program at the others.
    let script = "#!/bin/sh\ncase \"$*\" in\n  --version) echo compiler 1;;\n  *empty.cpp*) : >empty;;\n  \
                  *) mkdir \"${0%/*}/interrupted\" 2>/dev/null && kill -INT $PPID\n     sleep 0.3; exit 1;;\nesac\n";
    std::fs::write(&compiler, script).expect("a script");
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).expect("it may be run");
    let run = lookback()
        .args(["stress", "--mutants", "--detectors", "thread-sanitizer", "--format", "json"])
        .env("CXX", &compiler)
        .env("LOOKBACK_CACHE_DIR", folder.path().join("cache"))
        .output()
        .expect("it runs");
    let why = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(130), "{why}");
    assert!(why.contains("interrupted") && !why.contains("was not asked"), "{why}");
    let table: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!(table["mutants"][0]["detectors"]["thread-sanitizer"]["why"], "interrupted");
}

#[test]
fn who_is_killed_while_a_column_is_filled_keeps_what_was_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("table.json");
    let mut run = std::process::Command::new(assert_cmd::cargo::cargo_bin!("lookback"))
        .args(["stress", "--mutants", "--detectors", "cpu-schedules", "--seconds", "2", "--quiet", "--output"])
        .arg(&path)
        // Those of plain scans: no kernel of them has to be compiled first.
        .args(["--of", "cuda/scan/lookback.cuh,cuda/scan/lookahead.cuh,cuda/scan/one_wave.cuh,cuda/descriptor.cuh"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it runs");
    let start = Instant::now();
    let table = loop {
        let text = std::fs::read_to_string(&path).ok();
        let table = text.map(|text| KillTable::from_json(&text).expect("a whole table, at any time"));
        if let Some(table) = table.filter(|table| table.mutants.iter().any(|row| row.verdict == MutantOutcome::Killed))
        {
            break table;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "nothing is kept of what was found");
        std::thread::sleep(Duration::from_millis(50));
    };
    run.kill().expect("it runs still");
    run.wait().expect("it has ended");
    let others: Vec<_> = table.mutants.iter().filter(|row| !row.was_asked()).collect();
    assert!(!others.is_empty(), "all were asked about within two seconds");
    let is_open =
        |row: &Row| matches!(row.detectors.values().next(), Some(Cell::NotRun { why }) if why == "not asked about yet");
    assert!(others.into_iter().all(is_open));
}

#[test]
fn a_table_of_mutants_passes_on_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("temporary folders have plain names").to_owned();
    let code = |words: &[&str]| {
        let output = lookback().args(["stress", "--mutants", "--quiet"]).args(words).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(code(&["--sample", "0"]).0, Some(2), "no mutant at all");
    let unseen = ["--detectors", "cpu-schedules", "--of", "redundant_fence", "--seconds", "1e-9"];
    let (unknown, why) = code(&unseen);
    assert_eq!(unknown, Some(2), "no run ended, so nothing let the harmless variant pass: {why}");
    assert!(why.contains("nothing is known of redundant_fence") && why.contains("no run ended"), "{why}");

    let table = path("table.json");
    let of = ["--detectors", "cpu-schedules", "--of", "missing_prefix_ignored", "--seconds", "20", "--runs", "10"];
    assert_eq!(code(&[&of[..], &["--output", &table]].concat()).0, Some(0));
    let text = std::fs::read_to_string(&table).expect("it is written");
    let survived = text.find("\"survived\"").expect("the kernels as they are");
    let runs = survived + text[survived..].find("\"runs\": ").expect("after so many runs");
    for (name, spoilt) in [
        ("long.json", text.replace("missing_prefix_ignored", &"x".repeat(70_000))),
        ("nothing.json", format!("{}\"runs\": 0, \"was\": {}", &text[..runs], &text[runs + "\"runs\": ".len()..])),
    ] {
        std::fs::write(path(name), spoilt).expect("a file");
        let (code, why) = code(&[&of[..], &["--add", &path(name)]].concat());
        assert!(code == Some(2) && why.contains("is no table of mutants"), "{name}: {code:?} {why}");
    }
}
