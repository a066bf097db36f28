//! Tuning without a GPU: both passes on a laboratory of made-up times, the table that follows from a record, and the
//! command line.
#![cfg(feature = "cli")]

mod common;

use assert_cmd::cargo::cargo_bin;
use common::laboratory::{MadeUp, MockLaboratory};
use common::{FINISHED, H100, committed, recorder};
use lookback::element::{ElementType, Instance, Operator};
use lookback::gpu::Architecture;
use lookback::lab::measure::point::{Entry, Offsets, Point, PointKey, Subject};
use lookback::lab::measure::record::{
    Beside, FigureRecord, Pass, PointDone, Status, SweepHeader, SweepRecord, SweepRow,
};
use lookback::lab::measure::run::{NotMeasured, SubjectFacts};
use lookback::lab::measure::sampling::Figure;
use lookback::lab::measure::stopping::Stop;
use lookback::lab::measure::sweep::SweepFile;
use lookback::lab::measure::tune::derive::derive;
use lookback::lab::measure::tune::{TYPES, TuneError, TunePlan, run_tuning, tuned};
use lookback::lab::verify::Verification;
use lookback::lab::workload::{ProblemKind, Workload};
use lookback::strategy::plan::{Plan, ScanRequest};
use lookback::strategy::tuning::{Gpu, Resolved, Tuned, Tuning, TuningHeader, TuningRow, TuningTable, kernels_of};
use lookback::strategy::{Mode, ScanConfig, Strategy, StrategyChoice};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

fn header(sweep: SweepFile) -> SweepHeader {
    common::header(H100, sweep, "lookback tune --output 'my table.toml'")
}

/// Microseconds that a launch and a byte take, made up so that each strategy is best somewhere.
fn microseconds(strategy: Strategy, config: &ScanConfig, bytes: f64) -> f64 {
    let time = match strategy {
        Strategy::SingleBlock => 1.0 + bytes / 20e3,
        Strategy::OneWave => 2.0 + bytes / 1e6,
        _ => 6.0 + bytes / 2e6,
    };
    // The configuration matters by a few percent, and one is best.
    time * (1.0 + 0.01 * f64::from((config.vt * config.block_threads).abs_diff(4096).min(8192)) / 1024.0)
}

/// A configuration of 1024 threads spills, and `lookback` is wrong.
const MADE_UP: MadeUp = MadeUp {
    peers: &[],
    nanoseconds: |point, subject, figure, _| {
        let overhead = if figure == Figure::Cold { 2.0 } else { 0.5 };
        let time = subject
            .scan()
            .map_or(0.0, |(strategy, _, config)| microseconds(strategy, &config, point.input_bytes() as f64));
        1e3 * (overhead + time)
    },
    facts: |_, subject| {
        let spills = subject.scan().is_some_and(|(_, _, config)| config.block_threads == 1024);
        Ok(SubjectFacts { spill_bytes: Some(if spills { 8 } else { 0 }), ..SubjectFacts::default() })
    },
    is_wrong: |subject| matches!(subject.scan(), Some((Strategy::Lookback, ..))),
};

fn i32_sum() -> Instance {
    Instance::new(ElementType::I32, Operator::Sum).expect("sums are defined on numbers")
}

fn sum_of(element: ElementType) -> Tuned {
    Tuned::Plain { element, operator: Operator::Sum }
}

/// A row with the three figures in microseconds, graph first, and a standard error of that share.
fn row(n: u64, (strategy, vt, block_threads): (Strategy, u32, u32), times: [f64; 3], error: f64) -> SweepRow {
    let config = ScanConfig { vt, block_threads, ..ScanConfig::suggested(strategy, 4, n) };
    let subject = Subject::Scan { strategy, mode: Mode::Inclusive, config };
    let mut row = SweepRow::new(&subject, i32_sum(), n);
    row.status = Status::Measured;
    row.verification = Some(Verification::right(n));
    for (figure, time) in [Figure::Graph, Figure::Stream, Figure::Cold].into_iter().zip(times) {
        *row.figure_mut(figure) = Some(FigureRecord {
            median_ns: Some(1e3 * time),
            samples_ns: vec![1e3 * time],
            standard_error_ns: Some(1e3 * time * error),
            is_trusted: true,
            stop: Some(Stop::Noise),
            runs_per_sample: 1,
            ..FigureRecord::default()
        });
    }
    row
}

/// The file of a record of these rows, every point of them complete.
fn record(folder: &Path, rows: Vec<SweepRow>) -> PathBuf {
    let mut sweep = TunePlan::new(&[ElementType::I32], 60.0, true).unwrap_or_else(|error| panic!("{error}")).sweep;
    let sizes: BTreeSet<u64> = rows.iter().map(|row| row.n).collect();
    // The sweep asks for what is there.
    sweep.groups.truncate(1);
    sweep.groups[0].sizes = sizes.iter().map(u64::to_string).collect();
    let is_there = |mode: &Mode| rows.iter().any(|row| row.mode == Some(*mode));
    sweep.groups[0].modes = [Mode::Inclusive, Mode::Exclusive].into_iter().filter(is_there).collect();
    let mut recorder = recorder(folder, &header(sweep), false);
    for row in rows {
        recorder.row(row).expect("a row is kept");
    }
    for n in sizes {
        let key = PointKey::new(i32_sum().into(), n, Offsets::default());
        let point = PointDone::new(key, 1, Beside::default(), 1.0);
        recorder.point(point).expect("a point is kept");
    }
    recorder.finish(FINISHED).expect("a record")
}

const SMALL: (Strategy, u32, u32) = (Strategy::SingleBlock, 4, 64);
const MIDDLE: (Strategy, u32, u32) = (Strategy::OneWave, 16, 256);
const LARGE: (Strategy, u32, u32) = (Strategy::Lookahead, 32, 128);

/// Three candidates at five sizes. At 2^12 the second is best by less than its noise, so the first goes on; at 2^14 it
/// no more does. At 2^20 and 2^24 the third is best, by graph and cold though not by stream.
fn small_record(folder: &Path) -> PathBuf {
    let mut rows = Vec::new();
    for (n, small, middle, large) in [
        (1 << 10, [1.0, 2.0, 1.5], [2.0, 2.5, 2.2], [4.0, 4.0, 4.0]),
        (1 << 12, [2.03, 3.0, 2.5], [2.0, 3.0, 2.5], [4.0, 4.0, 4.0]),
        (1 << 14, [6.0, 7.0, 6.0], [3.0, 3.5, 3.0], [4.0, 4.0, 4.0]),
        (1 << 20, [600.0, 700.0, 600.0], [12.0, 10.0, 12.0], [9.0, 10.1, 9.5]),
        (1 << 24, [9000.0, 9000.0, 9000.0], [90.0, 90.0, 90.0], [50.0, 50.0, 50.1]),
    ] {
        rows.extend([row(n, SMALL, small, 0.003), row(n, MIDDLE, middle, 0.003), row(n, LARGE, large, 0.003)]);
    }
    record(folder, rows)
}

type Range = (Option<u64>, (Strategy, Option<u32>, Option<u32>));

fn ranges_of(table: &TuningTable) -> Vec<Range> {
    table.rows().iter().map(|row| (row.up_to, (row.strategy, row.vt, row.block_threads))).collect()
}

fn expected(up_to: Option<u64>, (strategy, vt, block_threads): (Strategy, u32, u32)) -> Range {
    (up_to, (strategy, Some(vt), Some(block_threads)))
}

fn derived(path: &Path) -> TuningTable {
    derive(&SweepRecord::read(path).unwrap_or_else(|error| panic!("{error}"))).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn each_size_takes_its_best_and_neighbours_within_noise_join_into_ranges() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = derived(&small_record(folder.path()));
    // Boundaries at the geometric means of 2^12 and 2^14, of 2^14 and 2^20.
    let wanted = [expected(Some(1 << 13), SMALL), expected(Some(1 << 17), MIDDLE), expected(None, LARGE)];
    assert_eq!(ranges_of(&table), wanted);
    let sizes: Vec<Vec<u64>> =
        table.rows().iter().map(|row| row.evidence.iter().map(|evidence| evidence.n).collect()).collect();
    assert_eq!(sizes, [vec![1 << 10, 1 << 12], vec![1 << 14], vec![1 << 20, 1 << 24]]);
    let evidence = &table.rows()[0].evidence[1];
    assert_eq!((evidence.times.graph_us, evidence.times.stream_us, evidence.times.cold_us), (2.03, 3.0, 2.5));
    let runner_up = evidence.runner_up.expect("there were others");
    assert_eq!((runner_up.strategy, runner_up.vt, runner_up.block_threads), MIDDLE);
    assert_eq!((runner_up.times.graph_us, runner_up.times.cold_us), (2.0, 2.5));
    let header = &table.header;
    assert_eq!((header.gpu.as_str(), header.compute_capability.as_deref()), ("NVIDIA H100 80GB HBM3", Some("9.0")));
    assert_eq!(header.command.as_deref(), Some("lookback tune --output 'my table.toml'"));
    assert!(header.measured);
    // And it is what `auto` then takes.
    let tuning = Tuning::with_table(&table, Gpu::H100).expect("an H100 holds it");
    let u32_sum = Instance::new(ElementType::U32, Operator::Sum).expect("defined");
    for (n, (strategy, vt, block_threads)) in [(1 << 13, SMALL), ((1 << 13) + 1, MIDDLE), (1 << 30, LARGE)] {
        let found = tuning.resolve(u32_sum, n);
        assert_eq!((found.strategy, found.config.vt, found.config.block_threads), (strategy, vt, block_threads));
    }
}

#[test]
fn a_range_ends_where_one_tile_more_takes_a_round_more() {
    let boundary = |first: (Strategy, u32, u32), sizes: [u64; 2]| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let times = |is_best: bool| if is_best { [1.0; 3] } else { [2.0; 3] };
        let at = |n| [row(n, first, times(n == sizes[0]), 0.001), row(n, LARGE, times(n == sizes[1]), 0.001)];
        ranges_of(&derived(&record(folder.path(), sizes.into_iter().flat_map(at).collect())))[0].0
    };
    // Tiles of 2048 on 132 multiprocessors: the fourth time that each has had one.
    assert_eq!(boundary((Strategy::OneWave, 16, 128), [1 << 20, 1 << 22]), Some(4 * 132 * 2048));
    assert_eq!(boundary((Strategy::OneWave, 16, 128), [1 << 20, (1 << 20) + 64]), Some((1 << 20) + 31));
    // 16 blocks of a cluster.
    assert_eq!(boundary((Strategy::SingleCluster, 16, 256), [1 << 16, 1 << 18]), Some(1 << 16));
    assert_eq!(boundary((Strategy::Lookback, 16, 128), [1 << 20, 1 << 22]), Some(1 << 21));
}

#[test]
fn what_was_wrong_or_spills_or_was_only_sampled_coarsely_is_not_taken() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let choose = |change: &dyn Fn(&mut Vec<SweepRow>)| {
        let mut rows = vec![row(1000, SMALL, [1.0; 3], 0.001), row(1000, MIDDLE, [2.0; 3], 0.001)];
        change(&mut rows);
        let folder = tempfile::tempdir_in(folder.path()).expect("a temporary folder");
        derived(&record(folder.path(), rows)).rows()[0].strategy
    };
    assert_eq!(choose(&|_| {}), Strategy::SingleBlock);
    assert_eq!(choose(&|rows| rows[0].status = Status::Wrong), Strategy::OneWave);
    assert_eq!(choose(&|rows| rows[0].spill_bytes = Some(4)), Strategy::OneWave);
    assert_eq!(choose(&|rows| rows.iter_mut().for_each(|row| row.spill_bytes = Some(4))), Strategy::SingleBlock);
    assert_eq!(choose(&|rows| rows[0].cold = None), Strategy::OneWave);
    let passes = |rows: &mut Vec<SweepRow>| {
        rows[0].pass = Some(Pass::Coarse);
        rows[1].pass = Some(Pass::Full);
    };
    assert_eq!(choose(&passes), Strategy::OneWave);
    // What `auto` came to is no candidate.
    let auto = |row: &mut SweepRow| {
        (row.subject, row.chosen_strategy) = (StrategyChoice::Auto.name().to_owned(), Some(Strategy::SingleBlock));
    };
    assert_eq!(choose(&|rows| auto(&mut rows[0])), Strategy::OneWave);
}

#[test]
fn lookahead_keeps_tiles_of_at_most_32_kib_where_it_can() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Tiles of 32 and of 48 KiB, of which the larger ones are faster on aligned arrays.
    const FITS: (Strategy, u32, u32) = (Strategy::Lookahead, 32, 256);
    const EXCEEDS: (Strategy, u32, u32) = (Strategy::Lookahead, 24, 512);
    let choose_with = |candidates: &[(Strategy, u32, u32)], change: &dyn Fn(&mut Vec<SweepRow>)| {
        let times = candidates.iter().zip([1.0, 2.0]);
        let mut rows = times.map(|(&candidate, time)| row(1 << 22, candidate, [time; 3], 0.001)).collect();
        change(&mut rows);
        let folder = tempfile::tempdir_in(folder.path()).expect("a temporary folder");
        let table = derived(&record(folder.path(), rows));
        let chosen = &table.rows()[0];
        (chosen.strategy, chosen.vt, chosen.block_threads)
    };
    let choose = |candidates: &[(Strategy, u32, u32)]| choose_with(candidates, &|_| {});
    let chosen = |(strategy, vt, block_threads)| (strategy, Some(vt), Some(block_threads));
    assert_eq!(choose(&[EXCEEDS, FITS]), chosen(FITS));
    assert_eq!(choose(&[EXCEEDS, MIDDLE]), chosen(MIDDLE));
    assert_eq!(choose(&[EXCEEDS]), chosen(EXCEEDS));
    // Spills are worse.
    assert_eq!(choose_with(&[EXCEEDS, FITS], &|rows| rows[1].spill_bytes = Some(4)), chosen(EXCEEDS));
    // It is about rings: other strategies have no more than one tile.
    let wave = (Strategy::OneWave, 24, 512);
    assert_eq!(choose(&[wave, FITS]), chosen(wave));
}

#[test]
fn both_modes_count_and_a_candidate_that_failed_in_one_is_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let exclusive = |mut row: SweepRow| {
        row.mode = Some(Mode::Exclusive);
        row
    };
    let chosen = |change: &dyn Fn(&mut Vec<SweepRow>)| {
        let mut rows = vec![
            row(1000, SMALL, [1.0; 3], 0.001),
            exclusive(row(1000, SMALL, [4.0; 3], 0.001)),
            row(1000, MIDDLE, [2.25; 3], 0.001),
            exclusive(row(1000, MIDDLE, [1.0; 3], 0.001)),
        ];
        change(&mut rows);
        let folder = tempfile::tempdir_in(folder.path()).expect("a temporary folder");
        let table = derived(&record(folder.path(), rows));
        (table.rows()[0].strategy, table.rows()[0].evidence[0].times.graph_us)
    };
    // Geometric means: 2 and 1.5.
    assert_eq!(chosen(&|_| {}), (Strategy::OneWave, 1.5));
    assert_eq!(chosen(&|rows| rows[3].status = Status::Wrong), (Strategy::SingleBlock, 2.0));
    assert_eq!(chosen(&|rows| rows[2].spill_bytes = Some(4)), (Strategy::SingleBlock, 2.0));
}

#[test]
fn more_noise_than_three_percent_hides_no_difference() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let choose = |ratio: f64, error: f64| {
        let rows = vec![
            row(1 << 10, SMALL, [1.0; 3], error),
            row(1 << 10, MIDDLE, [3.0; 3], error),
            row(1 << 14, SMALL, [ratio; 3], error),
            row(1 << 14, MIDDLE, [1.0; 3], error),
        ];
        let folder = tempfile::tempdir_in(folder.path()).expect("a temporary folder");
        derived(&record(folder.path(), rows)).rows().len()
    };
    assert_eq!((choose(1.009, 0.0), choose(1.02, 0.0)), (1, 2), "1 % is of no consequence");
    assert_eq!((choose(1.02, 0.01), choose(1.04, 0.1)), (1, 2), "noise counts up to 3 %");
}

#[test]
fn a_record_of_another_sweep_makes_no_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut record = SweepRecord::read(&small_record(folder.path())).expect("a record");
    record.header.sweep.name = "targets".to_owned();
    let error = derive(&record).expect_err("its candidates are none");
    assert!(matches!(&error, TuneError::OtherSweep { found } if found == "targets"), "{error}");
    assert!(error.to_string().contains("lookback tune --output"), "{error}");
}

#[test]
fn what_was_measured_at_other_offsets_decides_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut record = SweepRecord::read(&small_record(folder.path())).expect("a record");
    let aligned = derive(&record).unwrap_or_else(|error| panic!("{error}"));
    let offsets = Offsets { input: 1, output: 3 };
    // The largest size once more, where another candidate is the best; and a size that is there with offsets only.
    for n in [1 << 24, 1 << 26] {
        let mut fast = row(n, SMALL, [0.1; 3], 0.0);
        fast.offsets = offsets;
        record.rows.push(fast);
        let mut point = record.points[0].clone();
        (point.n, point.offsets) = (n, offsets);
        record.points.push(point);
    }
    assert_eq!(derive(&record).unwrap_or_else(|error| panic!("{error}")), aligned);
}

/// The committed record up to its first `points` points, as an interruption leaves it; none where there is none.
fn interrupted(points: usize) -> Option<SweepRecord> {
    let path = committed("tuning/tune-h200.jsonl.gz")?;
    let mut record = SweepRecord::read(&path).unwrap_or_else(|error| panic!("{error}"));
    record.points.truncate(points);
    let kept: BTreeSet<String> = record.points.iter().map(|point| format!("{} {}", point.element, point.n)).collect();
    record.rows.retain(|row| kept.contains(&format!("{} {}", row.element, row.n)));
    record.finished = None;
    Some(record)
}

#[test]
fn what_an_interrupted_record_has_not_measured_takes_what_is_suggested() {
    // One point; all of u8's first ones; some of u16's; all but the last point.
    for points in [1, 6, 8, 137] {
        let Some(record) = interrupted(points) else { return };
        let table = derive(&record).unwrap_or_else(|error| panic!("{points} points: {error}"));
        let note = table.header.note.as_deref().expect("it is not complete");
        assert!(note.contains("was not finished") && note.contains("sm_90"), "{note}");
        let command = format!(" Measure the rest with `{} --resume`.", record.header.command);
        assert!(command.contains("lookback tune") && command.contains("--output"), "{command}");
        assert!(note.ends_with(&command), "{note}");
        let mut resumed = record.clone();
        resumed.header.command += " --resume";
        let table = derive(&resumed).unwrap_or_else(|error| panic!("{points} points: {error}"));
        assert_eq!(table.header.note.as_deref(), Some(note), "the option is not given twice");
        let tuning = Tuning::with_table(&table, Gpu::H100).unwrap_or_else(|error| panic!("{error}"));
        let committed = Tuning::committed(Gpu::H100);
        for &element in ElementType::NUMBERS {
            let instance = Instance::new(element, Operator::Sum).expect("numbers are summed");
            for power in 20..34 {
                let found = tuning.resolve(instance, 1 << power);
                assert_ne!(found.strategy, Strategy::SingleBlock, "{points} points, {instance} at 2^{power}");
            }
            // The largest sizes are powers of two; so what is above the largest measured one is what is taken anyway.
            let rows: Vec<_> = table.rows().iter().filter(|row| row.tuned == sum_of(element)).collect();
            let measured = rows.iter().flat_map(|row| &row.evidence).map(|evidence| evidence.n).max();
            let last_measured = rows.iter().rev().find(|row| !row.evidence.is_empty());
            assert_eq!(last_measured.and_then(|row| row.up_to), measured, "{points} points, {instance}");
            if TYPES.contains(&element) {
                assert!(rows.last().is_some_and(|row| row.evidence.is_empty() && row.vt.is_none()), "{instance}");
                assert!(note.contains(&instance.to_string()), "{instance} is not in: {note}");
            }
            for n in (0..34).map(|power| 1u64 << power).filter(|&n| Some(n) > measured) {
                let (found, wanted) = (tuning.resolve(instance, n), committed.resolve(instance, n).strategy);
                if TYPES.contains(&element) && measured.is_none_or(|measured| n > 2 * measured) {
                    assert_eq!(
                        (found.strategy, found.config),
                        (wanted, ScanConfig::suggested(wanted, element.bytes(), n))
                    );
                }
            }
        }
    }
}

#[test]
fn a_finished_record_without_some_size_extends_no_row_over_it() {
    let Some(mut record) = interrupted(168) else { return };
    record.finished = Some(FINISHED);
    let whole = derive(&record).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(whole.header.note, None, "it is complete");
    // f32's largest size did not fit the memory.
    let largest = record.points.iter().filter(|point| point.element == ElementType::F32).map(|point| point.n).max();
    record.rows.retain(|row| row.element != ElementType::F32 || Some(row.n) != largest);
    let table = derive(&record).unwrap_or_else(|error| panic!("{error}"));
    let note = table.header.note.as_deref().expect("a size is missing");
    assert!(note.contains("f32 sum above n = 2^26") && !note.contains("u8") && !note.contains("--resume"), "{note}");
    let others = |table: &TuningTable| -> Vec<_> {
        table.rows().iter().filter(|row| row.tuned != sum_of(ElementType::F32)).cloned().collect()
    };
    assert_eq!(others(&table), others(&whole));
    assert!(table.rows().iter().any(|row| row.tuned == sum_of(ElementType::F32) && row.up_to == Some(1 << 26)));
}

#[test]
fn an_interrupted_record_makes_a_table_on_every_gpu() {
    let Some(mut record) = interrupted(1) else { return };
    for capability in ["6.1", "7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"] {
        capability.clone_into(&mut record.header.machine.compute_capability);
        for multiprocessors in [1, 40, 188] {
            record.header.machine.multiprocessors = multiprocessors;
            let table = derive(&record).unwrap_or_else(|error| panic!("{capability}: {error}"));
            let gpu = record.header.machine.tuning_gpu();
            Tuning::with_table(&table, gpu).unwrap_or_else(|error| panic!("{capability}: {error}"));
        }
    }
}

#[test]
fn rules_out_of_order_are_refused_by_their_number() {
    let rule = |limits: &str| format!("[[rule]]\n{limits}\nstrategy = \"lookback\"\n");
    let parse = |limits: &[&str]| {
        let rules: String = limits.iter().map(|limits| rule(limits)).collect();
        let text = format!("[table]\ngpu = \"any\"\nmeasured = false\n{rules}{}", rule(""));
        TuningTable::parse(&text, "test").map(|_| ()).map_err(|error| error.to_string())
    };
    let (bytes, each) = ("up_to_bytes = ", "up_to_bytes_per_multiprocessor = ");
    let of = |name: &str, limit: u64| format!("{name}{limit}");
    for (first, second) in [
        (of(bytes, 100), of(bytes, 50)),
        (of(bytes, 100), of(bytes, 100)),
        (of(each, 100), of(each, 50)),
        (of(each, 100), of(bytes, 100)),
        (of(bytes, 100), format!("{}\n{}", of(bytes, 90), of(each, 1000))),
    ] {
        let error = parse(&[&first, &second]).expect_err("the second holds for nothing");
        assert!(error.contains("rule 2") && error.contains("that of rule 1") && error.contains("ascend"), "{error}");
    }
    for (first, second) in [
        (of(bytes, 100), of(bytes, 101)),
        // Which of these is larger is for the GPU to say.
        (of(bytes, 100), of(each, 50)),
        (of(each, 50), of(bytes, 100)),
        (format!("{}\n{}", of(bytes, 100), of(each, 10)), of(bytes, 101)),
    ] {
        assert_eq!(parse(&[&first, &second]), Ok(()), "{first}, {second}");
    }
    assert!(parse(&[&of(bytes, 0)]).is_err_and(|error| error.contains("rule 1") && error.contains("is 0")));
}

#[test]
fn a_record_without_complete_points_makes_no_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut whole = SweepRecord::read(&small_record(folder.path())).expect("a record");
    whole.points.clear();
    assert!(matches!(derive(&whole), Err(TuneError::NothingMeasured)));
}

#[test]
fn the_committed_candidates_are_at_every_size_and_none_is_at_a_size_twice() {
    let plan = TunePlan::new(&TYPES, 240.0, false).unwrap_or_else(|error| panic!("{error}"));
    let points = plan.points(Gpu::H100);
    assert_eq!(points.len(), TYPES.len() * 28);
    for point in &points {
        let candidates = point.entries.iter().filter(|entry| entry.subject.scan().is_some()).count();
        assert!((3..=72).contains(&candidates), "{} at {}: {candidates}", point.workload, point.n);
        for entry in &point.entries {
            assert_eq!(entry.figures.len(), 3, "a table rests on three figures");
            let alike = point.entries.iter().filter(|other| other.subject == entry.subject).count();
            assert_eq!(alike, 1, "{:?}", entry.subject);
        }
    }
    let text = toml::to_string(&plan.sweep).expect("a sweep is TOML");
    assert_eq!(SweepFile::parse(&text, "written".into()).unwrap_or_else(|error| panic!("{error}")), plan.sweep);
    // Every second size of all types comes before the others.
    let bytes: Vec<u64> = points.iter().map(Point::input_bytes).collect();
    let sizes: BTreeSet<u64> = bytes.iter().copied().collect();
    let first: BTreeSet<u64> = sizes.into_iter().step_by(2).collect();
    assert!(bytes[..first.len() * TYPES.len()].iter().all(|bytes| first.contains(bytes)), "{bytes:?}");
    let quick = TunePlan::new(&TYPES, 60.0, true).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(quick.points(Gpu::H100).len(), TYPES.len() * 6);
    assert!(matches!(TunePlan::new(&[ElementType::AffineMap], 60.0, true), Err(TuneError::Plan(_))));
}

#[test]
fn the_best_few_of_each_point_are_measured_again_and_the_table_follows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = TunePlan::new(&[ElementType::I32], 1000.0, true).unwrap_or_else(|error| panic!("{error}"));
    let mut laboratory = MockLaboratory::new(MADE_UP);
    let mut recorder = recorder(folder.path(), &header(plan.sweep.clone()), false);
    let summary =
        run_tuning(&mut laboratory, &plan, &mut recorder, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((summary.points_left, laboratory.compiled_points), (0, 6));
    // Two openings a point: all candidates, then the finalists, of both modes.
    assert_eq!(laboratory.opened.len(), 12);
    for pair in laboratory.opened.chunks(2) {
        assert!(pair[0] >= pair[1] && pair[1] <= 2 * plan.finalists, "{pair:?}");
    }
    let path = recorder.finish(FINISHED).expect("a record");
    let record = SweepRecord::read(&path).expect("a record");
    for row in record.rows.iter().filter(|row| row.pass == Some(Pass::Full) && row.vt.is_some()) {
        assert_ne!(row.subject, "lookback", "it was wrong");
        assert_ne!(row.block_threads, Some(1024), "it spills");
    }
    let keys: BTreeSet<String> = record.rows.iter().map(SweepRow::key).collect();
    assert_eq!(keys.len(), record.rows.len(), "a candidate has one row a size");
    let table = derived(&path);
    let strategies: Vec<Strategy> = table.rows().iter().map(|row| row.strategy).collect();
    let ascending = [Strategy::SingleBlock, Strategy::OneWave, Strategy::Lookahead];
    let mut distinct = strategies.clone();
    distinct.dedup();
    assert_eq!(distinct, ascending, "{strategies:?}");
    for row in table.rows().iter().filter(|row| row.strategy != Strategy::SingleBlock) {
        assert_eq!(row.vt.zip(row.block_threads).map(|(vt, threads)| vt * threads), Some(4096), "{row:?}");
    }
}

#[test]
fn a_budget_that_is_spent_leaves_points_for_later() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let plan = TunePlan::new(&[ElementType::I32], 1000.0, true).unwrap_or_else(|error| panic!("{error}"));
    let head = header(plan.sweep.clone());
    let spent = TunePlan { budget: Duration::ZERO, ..plan.clone() };
    let mut laboratory = MockLaboratory::new(MADE_UP);
    let mut first = recorder(folder.path(), &head, false);
    let summary =
        run_tuning(&mut laboratory, &spent, &mut first, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((summary.points_left, laboratory.opened.len()), (6, 0));
    drop(first);
    let mut again = recorder(folder.path(), &head, true);
    let summary = run_tuning(&mut laboratory, &plan, &mut again, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((summary.points_left, again.record().points.len()), (0, 6));
}

/// What the laboratory has of a problem: of a type, of lines or runs of a length.
fn workload(kind: ProblemKind, element: ElementType, segment: Option<u64>) -> Workload {
    Workload::with_halves(kind, Operator::Sum, element, element, segment).unwrap_or_else(|error| panic!("{error}"))
}

/// Every problem but the flat scan, of every type that it has and lines and runs of a usual length.
fn every_problem() -> Vec<Workload> {
    let mut found = Vec::new();
    for &kind in ProblemKind::ALL.iter().filter(|&&kind| kind != ProblemKind::Flat) {
        let segment = (kind.needs_shape() || kind.has_runs()).then_some(256);
        let of = |element| Workload::with_halves(kind, Operator::Sum, element, element, segment).ok();
        found.extend(TYPES.iter().chain(ElementType::HALVES).filter_map(|&element| of(element)));
    }
    found.push(workload(ProblemKind::Recurrence, ElementType::F32, Some(1000)));
    let bytes = Workload::with_halves(ProblemKind::Flat, Operator::Sum, ElementType::U8, ElementType::U32, None);
    found.push(bytes.unwrap_or_else(|error| panic!("{error}")));
    found
}

fn plan_of(workloads: &[Workload], quick: bool) -> TunePlan {
    let asked: Vec<(Workload, Option<u64>)> = workloads.iter().map(|&workload| (workload, None)).collect();
    TunePlan::of_workloads(&asked, 1000.0, quick).unwrap_or_else(|error| panic!("{error}"))
}

fn auto(tuning: &Tuning, workload: Workload, n: u64) -> Resolved {
    tuning.choose(StrategyChoice::Auto, workload.problem(n), n, workload.line_elements(), [0, 0])
}

/// What `auto` goes by of the rows for problems.
fn problems_alone(table: &TuningTable) -> Tuning {
    let is_of_problem = |row: &&TuningRow| matches!(row.tuned, Tuned::Problem { .. });
    let rows = table.rows().iter().filter(is_of_problem).cloned().collect();
    let table = TuningTable::new(table.header.clone(), rows).unwrap_or_else(|error| panic!("{error}"));
    Tuning::with_table(&table, Gpu::H100).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn what_auto_takes_is_a_candidate_of_every_problem_and_what_is_measured_is_what_auto_takes_of_its_row() {
    let (committed, header) = (Tuning::committed(Gpu::H100), header(plan_of(&every_problem()[..1], true).sweep));
    let header = TuningHeader {
        gpu: header.machine.gpu,
        compute_capability: Some("9.0".to_owned()),
        multiprocessors: Some(132),
        measured: true,
        driver: None,
        compiler: None,
        date: None,
        commit: None,
        command: None,
        note: None,
    };
    let mut compared = 0;
    for workload in every_problem() {
        let plan = plan_of(&[workload], false);
        let text = toml::to_string(&plan.sweep).expect("a sweep is TOML");
        assert_eq!(SweepFile::parse(&text, "written".into()).unwrap_or_else(|error| panic!("{error}")), plan.sweep);
        let points = plan.points(Gpu::H100);
        assert!(points.len() >= 6, "{workload}: {}", points.len());
        let mut candidates: BTreeMap<u64, Vec<(Strategy, ScanConfig)>> = BTreeMap::new();
        for point in &points {
            let scans = point.entries.iter().filter_map(|entry| entry.subject.scan());
            assert!(point.entries.iter().all(|entry| entry.subject.name() != "auto"), "it is called what it is");
            let scans: Vec<_> = scans.map(|(strategy, _, config)| (strategy, config)).collect();
            assert_eq!(scans.len(), scans.iter().collect::<HashSet<_>>().len(), "{}", point.title());
            let Resolved { strategy, config } = auto(&committed, workload, point.n);
            assert!(scans.contains(&(strategy, config)), "{}: {strategy}, {config:?}", point.title());
            // What no GPU launches is no candidate of a table.
            let is_launched = |&(strategy, config): &(Strategy, ScanConfig)| {
                Plan::new(&point.request(strategy, Mode::Inclusive, config))
                    .is_ok_and(|plan| plan.fits(Gpu::H100.architecture))
            };
            let launched: Vec<_> = scans.into_iter().filter(is_launched).collect();
            // Of a reproducible scan the strategy alone is chosen, and down columns there is one.
            let is_reproducible =
                matches!(workload.kind(), ProblemKind::Reproducible | ProblemKind::ReproducibleColumns);
            let fewest = if is_reproducible { 1 } else { 4 };
            assert!(launched.len() >= fewest, "{}: {launched:?}", point.title());
            candidates.insert(point.n, launched);
        }
        // A table with another candidate at each size, then with the next ones.
        for choice in 0..candidates.values().map(Vec::len).max().unwrap_or(0) {
            let chosen = candidates.iter().filter_map(|(&n, found)| Some((n, *found.get(choice)?)));
            let rows = chosen.clone().map(|(n, (strategy, config))| TuningRow {
                tuned: tuned(workload),
                up_to: Some(n),
                strategy,
                vt: Some(config.vt),
                block_threads: Some(config.block_threads),
                composition: Some(config.composition),
                evidence: Vec::new(),
            });
            let table = TuningTable::new(header.clone(), rows.collect()).unwrap_or_else(|error| panic!("{error}"));
            let written = TuningTable::parse(&table.to_toml(), "written").unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(written, table);
            let tuning = Tuning::with_table(&table, Gpu::H100).unwrap_or_else(|error| panic!("{error}"));
            for (n, (strategy, config)) in chosen {
                let found = auto(&tuning, workload, n);
                let tile = u64::from(config.vt) * u64::from(config.block_threads);
                // One block or cluster that would go round twice has more threads.
                let most_blocks = match strategy {
                    Strategy::SingleBlock => 1,
                    Strategy::SingleCluster => 16,
                    _ => u64::MAX,
                };
                if most_blocks.saturating_mul(tile) >= n {
                    assert_eq!((found.strategy, found.config), (strategy, config), "{workload}, {n}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 5000, "{compared}");
}

#[test]
fn a_problem_is_tuned_on_a_laboratory_and_auto_takes_its_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let f32s = ElementType::F32;
    let recurrence = workload(ProblemKind::Recurrence, f32s, None);
    let rows = workload(ProblemKind::Rows, f32s, Some(1000));
    // One size more for what has a shape.
    let asked = [(recurrence, None), (rows, Some(3_000_000)), (workload(ProblemKind::Flat, f32s, None), None)];
    let plan = TunePlan::of_workloads(&asked, 1000.0, true).unwrap_or_else(|error| panic!("{error}"));
    let mut laboratory = MockLaboratory::new(MADE_UP);
    let mut recorder = recorder(folder.path(), &header(plan.sweep.clone()), false);
    let summary =
        run_tuning(&mut laboratory, &plan, &mut recorder, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    // Rows of 1000 are four and more from 2^16 bytes on.
    assert_eq!((summary.points_left, laboratory.compiled_points), (0, 4 + 4 + 6));
    let path = recorder.finish(FINISHED).expect("a record");
    let table = derived(&path);
    assert_eq!(TuningTable::parse(&table.to_toml(), "written").unwrap_or_else(|error| panic!("{error}")), table);
    assert_eq!(table.header.note, None, "it is complete");
    let names: BTreeSet<String> = table.rows().iter().map(|row| row.tuned.to_string()).collect();
    let expected =
        ["f32 sum", "f32 sum, by rows: float -> float, lines of 1000", "recurrence of f32: float, float -> float"];
    assert_eq!(names, expected.map(str::to_owned).into());
    let (tuning, committed) =
        (Tuning::with_table(&table, Gpu::H100).unwrap_or_else(|error| panic!("{error}")), Tuning::committed(Gpu::H100));
    for workload in [recurrence, rows] {
        let of: Vec<_> = table.rows().iter().filter(|row| row.tuned == tuned(workload)).collect();
        assert!(of.len() > 1 && of.iter().all(|row| row.strategy != Strategy::Lookback), "it was wrong: {of:?}");
        assert_eq!(of.last().and_then(|row| row.up_to), None);
        for (row, evidence) in of.iter().flat_map(|row| row.evidence.iter().map(move |evidence| (row, evidence))) {
            let found = auto(&tuning, workload, evidence.n);
            let config = found.config;
            let same = (Some(config.vt), Some(config.block_threads)) == (row.vt, row.block_threads);
            assert!(found.strategy == row.strategy && same, "{workload}, {}: {found:?}", evidence.n);
        }
        assert_ne!(auto(&tuning, workload, 1 << 20), auto(&committed, workload, 1 << 20));
    }
    // For no other length, no other type, no other direction, and not by a named strategy.
    let others = [
        workload(ProblemKind::Rows, f32s, Some(1024)),
        workload(ProblemKind::Recurrence, f32s, Some(1000)),
        workload(ProblemKind::Recurrence, ElementType::F64, None),
        workload(ProblemKind::ReverseRecurrence, f32s, None),
    ];
    let alone = problems_alone(&table);
    for other in others {
        assert_eq!(auto(&alone, other, 1 << 20), auto(&committed, other, 1 << 20), "{other}");
    }
    assert_eq!(auto(&alone, recurrence, 1 << 20), auto(&tuning, recurrence, 1 << 20));
    for n in [100, 1 << 20, 1 << 28] {
        assert_eq!(
            alone.resolve(i32_sum(), n),
            committed.resolve(i32_sum(), n),
            "what it says nothing of is committed"
        );
    }
    assert!(alone.name().starts_with("sm_90, with the problems of NVIDIA H100"), "{}", alone.name());
    let named = StrategyChoice::Named(Strategy::Lookback);
    let problem = recurrence.problem(1 << 20);
    assert_eq!(
        tuning.choose(named, problem, 1 << 20, None, [0, 0]),
        committed.choose(named, problem, 1 << 20, None, [0, 0])
    );
    // What the record lacks has no row, and auto does as without.
    let mut cut = SweepRecord::read(&path).unwrap_or_else(|error| panic!("{error}"));
    let largest = cut.points.iter().filter(|point| point.problem == ProblemKind::Recurrence).map(|point| point.n).max();
    let is_kept = |problem: ProblemKind, n: u64| problem != ProblemKind::Recurrence || Some(n) != largest;
    cut.points.retain(|point| is_kept(point.problem, point.n));
    cut.rows.retain(|row| is_kept(row.problem, row.n));
    let table = derive(&cut).unwrap_or_else(|error| panic!("{error}"));
    let note = table.header.note.as_deref().expect("it is not complete");
    let says = "For these there are no rows, and auto goes by its rules: recurrence of f32: float, float -> float above n = 2^20.";
    assert!(note.ends_with(says) && !note.contains("rest on no measurement"), "{note}");
    let tuning = problems_alone(&table);
    let is_as_without = |n| auto(&tuning, recurrence, n) == auto(&committed, recurrence, n);
    assert_eq!([1 << 20, (1 << 20) + 1, 1 << 26].map(is_as_without), [false, true, true]);
}

#[test]
fn problems_are_measured_inclusively_and_of_them_kernels_that_spill_count_as_they_are() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let histogram = workload(ProblemKind::Histogram, ElementType::U8, None);
    let select = workload(ProblemKind::Select, ElementType::U8, Some(64));
    let plan = plan_of(&[select, histogram], true);
    let is_inclusive = |entry: &Entry| entry.subject.mode() != Some(Mode::Exclusive);
    assert!(plan.points(Gpu::H100).iter().all(|point| point.entries.iter().all(is_inclusive)));
    // The larger the tile, the faster, and large blocks spill.
    let fast = MadeUp {
        nanoseconds: |_, subject, _, _| {
            2e3 + subject.scan().map_or(0.0, |(_, _, config)| 1e9 / f64::from(config.vt * config.block_threads))
        },
        facts: |point, subject| {
            let spills = subject.scan().is_some_and(|(_, _, config)| config.block_threads >= 512);
            let facts = SubjectFacts { spill_bytes: Some(if spills { 8 } else { 0 }), ..SubjectFacts::default() };
            // What is counted has another number of elements than what is loaded.
            let is_scan = subject.scan().is_some() && point.workload.kind() == ProblemKind::Histogram;
            let stored = "counts are no elements of this laboratory".to_owned();
            if is_scan { Err(NotMeasured::NotLaunchable(stored)) } else { Ok(facts) }
        },
        is_wrong: |_| false,
        ..MADE_UP
    };
    let mut recorder = recorder(folder.path(), &header(plan.sweep.clone()), false);
    run_tuning(&mut MockLaboratory::new(fast), &plan, &mut recorder, &mut |_| {})
        .unwrap_or_else(|error| panic!("{error}"));
    let table = derived(&recorder.finish(FINISHED).expect("a record"));
    let last = table.rows().last().expect("it has rows");
    let (tile, name) = (last.vt.zip(last.block_threads).map(|(vt, threads)| vt * threads), last.tuned.to_string());
    assert_eq!(name, "selection of u8: u8 -> u8", "what cannot be launched has no row");
    assert!(tile >= Some(16 << 10), "{last:?}");
    let note = table.header.note.expect("one problem has no rows");
    assert!(note.contains("histogram of u8: u8 -> u32 at all sizes"), "{note}");
}

#[test]
fn what_auto_cannot_tell_apart_is_not_tuned_together_and_what_no_shape_has_is_refused() {
    let of = |kind| (workload(kind, ElementType::I32, Some(64)), None);
    for pair in [
        [ProblemKind::Select, ProblemKind::SelectMost],
        [ProblemKind::Unique, ProblemKind::UniqueMost],
        [ProblemKind::Partition, ProblemKind::PartitionMost],
    ] {
        let error = TunePlan::of_workloads(&pair.map(of), 60.0, true).expect_err("one row for both");
        assert!(matches!(error, TuneError::OneProblem { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("i32 select") || !text.contains("select"), "{text}");
        assert!(text.contains("all but one") || text.contains("gaps"), "{text}");
    }
    let columns = [ProblemKind::RecurrenceColumns, ProblemKind::BatchedRecurrence].map(of);
    let error = TunePlan::of_workloads(&columns, 60.0, true).expect_err("one row for both").to_string();
    assert!(error.contains("of each of 8 matrices"), "{error}");
    // All others are told apart, but for those that are the same to the launches that a table is of.
    let same = [
        ProblemKind::SortByHalf,
        ProblemKind::CumulatedHistogram,
        ProblemKind::BatchedColumns,
        ProblemKind::BatchedRecurrence,
        ProblemKind::ReverseBatchedRecurrence,
    ];
    let is_told = |workload: &Workload| !workload.kind().name().ends_with("-most") && !same.contains(&workload.kind());
    let told: Vec<Workload> = every_problem().into_iter().filter(is_told).collect();
    assert!(plan_of(&told, true).points(Gpu::H100).len() > 300);
    let one_row = [(workload(ProblemKind::Rows, ElementType::I32, Some(1 << 30)), Some(1 << 30))];
    let error = TunePlan::of_workloads(&one_row, 60.0, true).expect_err("a sequence").to_string();
    assert!(error.contains("two rows or columns") && error.contains("--shape"), "{error}");
    assert!(matches!(TunePlan::of_workloads(&[], 60.0, true), Err(TuneError::Plan(_))));
}

#[test]
fn auto_is_a_subject_of_its_own_that_says_what_it_came_to() {
    let text = "name = \"a\"\npurpose = \"b\"\n[[measure]]\nsizes = [\"1000\", \"2^28\"]\nstrategies = [\"auto\", \"lookahead\"]\nvts = [8, 16]";
    let mut sweep = SweepFile::parse(text, "test".into()).unwrap_or_else(|error| panic!("{error}"));
    let autos = |sweep: &SweepFile, tuning: &Tuning| -> Vec<(String, Option<Strategy>)> {
        let (points, _) = sweep.points_by(&[], tuning);
        let rows = points
            .iter()
            .flat_map(|point| point.entries.iter().map(|entry| SweepRow::new(&entry.subject, point.workload, point.n)));
        rows.filter(|row| row.subject == "auto").map(|row| (row.key(), row.chosen_strategy)).collect()
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let table = derived(&small_record(folder.path()));
    sweep.tuning = Some(table.without_evidence());
    let own = sweep.tuning_on(Gpu::H100).unwrap_or_else(|error| panic!("{error}"));
    let found = autos(&sweep, &own);
    // The key is without the configuration, so that two tables can be compared.
    assert_eq!(
        found,
        [
            ("i32 sum n=1000 auto inclusive".to_owned(), Some(Strategy::SingleBlock)),
            (format!("i32 sum n={} auto inclusive", 1 << 28), Some(Strategy::Lookahead)),
        ]
    );
    let written = toml::to_string(&sweep).expect("a sweep is TOML");
    assert_eq!(SweepFile::parse(&written, "written".into()).unwrap_or_else(|error| panic!("{error}")), sweep);
    let json = serde_json::to_string(&sweep).expect("a sweep is JSON");
    assert_eq!(serde_json::from_str::<SweepFile>(&json).expect("it was written"), sweep);
    assert_eq!("auto".parse(), Ok(StrategyChoice::Auto));
}

mod command_line {
    use super::*;

    fn run(words: &[&str]) -> Output {
        Command::new(cargo_bin("lookback"))
            .args(words)
            .env_remove("RUST_BACKTRACE")
            .env("CUDA_VISIBLE_DEVICES", "")
            .output()
            .expect("the program starts")
    }

    #[track_caller]
    fn assert_refused(output: &Output, code: i32, words: &[&str]) {
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        for word in words {
            assert!(text.contains(word), "'{word}' is not in: {text}");
        }
    }

    #[test]
    fn a_record_gives_the_same_table_again_to_the_last_byte() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let record = small_record(folder.path());
        let write = |name: &str| {
            let path = folder.path().join(name);
            let output = tune_from(&record, &path);
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            assert!(String::from_utf8_lossy(&output.stdout).contains("one-wave"), "{output:?}");
            fs::read(path).expect("it was written")
        };
        let first = write("first.toml");
        assert_eq!(first, write("second.toml"));
        let text = String::from_utf8(first).expect("TOML is UTF-8");
        let table = TuningTable::parse(&text, "first").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(table, derived(&record));
    }

    #[test]
    fn the_committed_table_is_that_of_the_committed_record() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (tuning, path) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("tuning"), folder.path().join("sm_90.toml"));
        let Some(record) = committed("tuning/tune-h200.jsonl.gz") else { return };
        let output = tune_from(&record, &path);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(fs::read(path).expect("it was written") == fs::read(tuning.join("sm_90.toml")).expect("it is there"));
    }

    /// `tune --from`, and what was there afterwards.
    fn tune_from(record: &Path, output: &Path) -> Output {
        run(&["tune", "--from", record.to_str().expect("UTF-8"), "--output", output.to_str().expect("UTF-8")])
    }

    #[test]
    fn a_table_replaces_tables_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let record = small_record(folder.path());
        let evidence = fs::read(&record).expect("it was written");
        assert_refused(&tune_from(&record, &record), 2, &["names a record", "choose another name", "tune-h100"]);
        let linked = folder.path().join("table.toml");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&record, &linked).expect("a link");
            assert_refused(&tune_from(&record, &linked), 2, &["names a record", "table.toml"]);
            fs::remove_file(&linked).expect("a link");
        }
        // The same file under another name that says nothing.
        fs::hard_link(&record, &linked).expect("a link");
        assert_refused(&tune_from(&record, &linked), 2, &["is no tuning table", "delete it"]);
        assert_eq!(fs::read(&record).expect("it is there"), evidence);
        // Before anything is measured, so before a GPU is looked for.
        for (name, text) in [("notes.toml", "answer = 42\n"), ("notes.txt", ""), ("candidates.toml", "[table]\n")] {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("a file");
            let output = run(&["tune", "--output", path.to_str().expect("UTF-8")]);
            assert_refused(
                &output,
                2,
                &["is no tuning table", "not replaced", "choose another name", "delete it", name],
            );
            assert_refused(&tune_from(&record, &path), 2, &["is no tuning table"]);
            assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        }
        assert_refused(&tune_from(&record, folder.path()), 2, &["is no tuning table"]);
        assert_refused(&run(&["tune", "--output", "tune-h200.jsonl.gz"]), 2, &["names a record"]);
        let table = folder.path().join("own.toml");
        for _ in 0..2 {
            assert_eq!(tune_from(&record, &table).status.code(), Some(0), "a table takes a table's place");
        }
    }

    #[test]
    fn a_record_of_another_sweep_or_a_damaged_one_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = folder.path().join("table.toml");
        let Some(targets) = committed("reports/h100/targets-h100.jsonl.gz") else { return };
        assert_refused(
            &tune_from(&targets, &output),
            2,
            &["targets-h100", "sweep 'targets'", "lookback tune --output"],
        );
        let damaged = folder.path().join("damaged.jsonl");
        let whole = fs::read(&targets).expect("it is committed");
        for (bytes, what) in [
            (b"{\"header\": 1}\n".to_vec(), "line 1, is not what this program writes"),
            (b"nonsense\n".to_vec(), "line 1, is not what this program writes"),
            (Vec::new(), "line 1, is not what this program writes"),
            (whole[..whole.len() / 2].to_vec(), "cannot be decompressed"),
        ] {
            fs::write(&damaged, bytes).expect("a file");
            let next = "measure again, or give another file";
            assert_refused(&tune_from(&damaged, &output), 2, &["damaged.jsonl", what, next]);
            let path = damaged.to_str().expect("UTF-8");
            assert_refused(&run(&["compare", "--sweep", "targets", "--record", path]), 2, &[what, next]);
            assert_refused(&run(&["report", path]), 2, &[what, next]);
        }
        assert!(!output.exists());
    }

    #[test]
    fn an_interrupted_record_makes_a_table_with_a_warning() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(cut) = interrupted(1) else { return };
        let mut unfinished = recorder(folder.path(), &cut.header, false);
        for row in cut.rows {
            unfinished.row(row).expect("a row is kept");
        }
        for point in cut.points {
            unfinished.point(point).expect("a point is kept");
        }
        let path = folder.path().join("table.toml");
        let output = tune_from(unfinished.path(), &path);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let warning = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(warning.contains("warning: The record was not finished") && warning.contains("u8 sum above n = 256"));
        let text = fs::read_to_string(&path).expect("it was written");
        let table = TuningTable::parse(&text, "cut").unwrap_or_else(|error| panic!("{error}"));
        assert!(table.header.note.is_some_and(|note| warning.contains(&note)), "{warning}");
    }

    #[test]
    fn a_fault_in_a_file_is_told_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("broken.toml");
        fs::write(&path, "name = \n").expect("a file");
        let path = path.to_str().expect("UTF-8");
        for words in [&["sweep", path, "--dry-run"][..], &["sweep", "targets", "--dry-run", "--tuning", path]] {
            let output = run(words);
            assert_refused(&output, 2, &["broken.toml", "TOML parse error at line 1"]);
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(text.matches("TOML parse error").count(), 1, "{text}");
        }
    }

    #[test]
    fn without_a_gpu_tune_says_what_it_needs() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("table.toml");
        let output = run(&["tune", "--output", path.to_str().expect("UTF-8")]);
        assert_refused(&output, 3, &["needs an NVIDIA GPU", "--from RECORD", "compare --device cpu"]);
        assert!(!path.exists());
        assert_refused(&run(&["tune"]), 2, &["--output"]);
        assert_refused(&run(&["tune", "--output", "x", "--types", "affine-map"]), 2, &["affine-map is no number"]);
        assert_refused(&run(&["tune", "--output", "x", "--seconds", "0"]), 2, &["from 1 to 86400"]);
        let problem = |words: &[&str]| run(&[&["tune", "--output", "x"], words].concat());
        assert_refused(&problem(&["--problem", "recurrence,rows", "--shape", "64x1000"]), 3, &["needs an NVIDIA GPU"]);
        for types in ["all", "f32", "bf16"] {
            assert_refused(&problem(&["--problem", "all", "--types", types]), 3, &["needs an NVIDIA GPU"]);
        }
        for (words, says) in [
            (&["--shape", "4x4"][..], "none of the problems scans rows or columns"),
            (&["--problem", "sort", "--shape", "4x4"], "none of the problems scans rows or columns"),
            (&["--problem", "rows", "--run-length", "4"], "none of the problems has runs"),
            (&["--problem", "sort", "--input-types", "u8"], "each of the problems loads what --types says"),
            (&["--input-types", "u8"], "each of the problems loads what --types says"),
            (&["--problem", "by-key", "--run-length", "0"], "at least 1 element"),
            (&["--problem", "sideways"], "reverse-recurrence"),
            (&["--problem", "histogram", "--types", "f32"], "nothing is left to run"),
            (&["--problem", "scatter", "--types", "affine-map"], "does not take affine-map"),
            (&["--problem", "rows", "--shape", "1x2^28", "--types", "u8", "--quick"], "--shape"),
            (&["--problem", "select,select-most"], "tune one of them"),
            (&["--problem", "rows", "--from", "none-such"], "--problem"),
        ] {
            assert_refused(&problem(words), 2, &[says]);
        }
        assert_refused(&run(&["tune", "--output", "x", "--from", "none-such"]), 2, &["none-such"]);
    }

    #[test]
    #[cfg(feature = "cpu")]
    fn compare_says_what_auto_chose_and_takes_another_table() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("table.toml");
        let compare = |words: &[&str]| {
            let start =
                ["compare", "--device", "cpu", "--strategies", "auto", "--types", "i32", "--sizes", "1000,20000"];
            run(&[&start[..], words].concat())
        };
        let output = compare(&[]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("tuning table sm_90") && text.contains("auto: single-block"), "{text}");
        let row = |strategy: &str, rest: &str| {
            format!(
                "[[row]]\nelement = \"i32\"\noperator = \"sum\"\n{rest}strategy = \"{strategy}\"\nvt = 3\nblock_threads = 96\n\n"
            )
        };
        let write = |rows: &[String]| {
            let header = "[table]\ngpu = \"mine\"\nmeasured = true\n\n";
            fs::write(&path, format!("{header}{}", rows.concat())).expect("a file");
        };
        let tuning = ["--tuning", path.to_str().expect("UTF-8"), "--format"];
        write(&[row("chained", "up_to = 1000\n"), row("one-wave", "")]);
        let output = compare(&[&tuning[..], &["csv"]].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(",chosen_strategy"), "{text}");
        assert!(lines[1].starts_with("auto,i32,sum,inclusive,false,1000,3,96,"), "{text}");
        assert!(lines[1].ends_with(",chained") && lines[2].ends_with(",one-wave"), "{text}");
        write(&[row("chained", "up_to = 1000\n")]);
        let place = "row 1 (i32 sum, up_to 1000)";
        assert_refused(&compare(&[&tuning[..], &["csv"]].concat()), 2, &[place, "leave up_to out", "table.toml"]);
        write(&[row("lookforward", "")]);
        assert_refused(&compare(&[&tuning[..], &["csv"]].concat()), 2, &["row 1 (i32 sum", "lookforward", "one-wave"]);
        let sweep = run(&["sweep", "targets", "--dry-run", "--tuning", path.to_str().expect("UTF-8")]);
        assert_refused(&sweep, 2, &["row 1 (i32 sum", "lookforward"]);
    }
}

/// What `lookback kernels` compiles is what a scanner asks for, whatever the size and the GPU.
#[test]
fn the_kernels_made_ahead_are_those_that_auto_runs() {
    let instances: Vec<Instance> =
        [(ElementType::I32, Operator::Sum), (ElementType::F64, Operator::Max), (ElementType::U8, Operator::Sum)]
            .map(|(element, operator)| Instance::new(element, operator).expect("it is defined"))
            .to_vec();
    for architecture in Architecture::CHECKED {
        let made: HashSet<_> = kernels_of(architecture, &instances, &[Mode::Inclusive]).into_iter().collect();
        assert!(!made.is_empty());
        let mut draw = 7_u64;
        for _ in 0..400 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (power, multiprocessors) = (draw >> 33 & 31, (draw >> 40 & 255) as u32 + 1);
            let n = (1 << power) + (draw >> 48) % (1 << power);
            let tuning = Tuning::committed(Gpu { architecture, multiprocessors });
            for &instance in &instances {
                // At a boundary, or off one.
                let bytes = instance.element().bytes() as u32;
                let input_offset = (draw >> 20) as u32 % 2 * ((draw >> 8) as u32 % 16 / bytes * bytes);
                let Resolved { strategy, config } =
                    tuning.choose(StrategyChoice::Auto, instance.into(), n, None, [input_offset, 0]);
                let aligned = ScanRequest::aligned(instance, strategy, Mode::Inclusive, config, n);
                let request = ScanRequest { input_offset, ..aligned };
                for step in Plan::new(&request).expect("auto's plans can be launched").steps {
                    assert!(made.contains(&step.key()), "{architecture}, {n} of {instance}: {strategy}, {config:?}");
                }
            }
        }
    }
}
