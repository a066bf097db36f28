//! The targets and the verdict on them, from records that were made up.
#![cfg(feature = "cli")]

mod common;

use assert_cmd::Command;
use common::{FINISHED, H100, PEER_SCANS, header, recorder};
use lookback::element::{ElementType, Operator};
use lookback::lab::measure::point::{Kind, Point};
use lookback::lab::measure::record::{FigureRecord, Status, SweepRecord, SweepRow};
use lookback::lab::measure::run::estimate_sweep;
use lookback::lab::measure::sampling::Figure;
use lookback::lab::measure::stopping::Stop;
use lookback::lab::measure::sweep::SweepFile;
use lookback::lab::measure::targets::evaluation::{Evaluation, Outcome, TargetResult, evaluate};
use lookback::lab::measure::targets::{SUBJECT, SWEEP, TARGETS, Yardstick};
use lookback::lab::statistics::Difference;
use lookback::lab::verify::Verification;
use lookback::strategy::{Mode, Strategy};
use std::path::{Path, PathBuf};

const PEERS: [&str; 4] = ["cub-3.0.1", "cub-3.5.0", "cub-3.5.0-run-to-run", "thrust-3.5.0"];

/// Samples around a time with a spread of 0.4 %.
fn figure(nanoseconds: f64) -> FigureRecord {
    let samples_ns: Vec<f64> = (0..11).map(|index| nanoseconds * (1.0 + 0.0004 * f64::from(index * 5 % 11))).collect();
    FigureRecord {
        median_ns: Some(nanoseconds * 1.002),
        is_trusted: true,
        stop: Some(Stop::Noise),
        runs_per_sample: 1,
        samples_ns,
        ..FigureRecord::default()
    }
}

/// How many times as long as the copy a subject takes.
fn factor(row: &SweepRow) -> f64 {
    match row.kind {
        Kind::Copy => 1.0,
        Kind::Bound => 1.001,
        Kind::Strategy => 1.002,
        Kind::Peer => 4.0,
    }
}

/// A record in which every target is reached.
fn record(gpu: &str) -> SweepRecord {
    let sweep = SweepFile::open(SWEEP).expect("shipped");
    let (points, _) = sweep.points(&PEERS.map(str::to_owned));
    let rows = points.iter().flat_map(rows).collect();
    let header = header(gpu, sweep, "lookback compare --sweep targets --output records");
    SweepRecord { rows, finished: Some(FINISHED), ..SweepRecord::from(header) }
}

fn h100() -> SweepRecord {
    record(H100)
}

fn rows(point: &Point) -> Vec<SweepRow> {
    let is_float = matches!(point.workload.instance().element(), ElementType::F32 | ElementType::F64);
    let exists = |name: &str| is_float || !name.ends_with("run-to-run");
    let entries = point.entries.iter().filter(|entry| exists(&entry.subject.name()));
    entries
        .map(|entry| {
            let mut row = SweepRow::new(&entry.subject, point.workload, point.n);
            row.offsets = point.offsets;
            row.status = if row.kind == Kind::Bound { Status::NotVerified } else { Status::Measured };
            row.verification = Some(Verification::right(row.n));
            let copy_ns = 1000.0 + row.bytes as f64 / 2800.0;
            for &of in &entry.figures {
                *row.figure_mut(of) = Some(figure(copy_ns * factor(&row)));
            }
            row
        })
        .collect()
}

#[test]
fn the_sweep_takes_less_than_eight_minutes_on_an_h100() {
    let sweep = SweepFile::open(SWEEP).expect("shipped");
    let (points, _) = sweep.points(&PEER_SCANS.map(str::to_owned));
    let estimate = estimate_sweep(&points, &sweep.limits, 16);
    println!("{} points, {estimate:?}", points.len());
    assert!(estimate.expected_seconds < 480.0, "{estimate:?}");
}

/// Takes look-back for sums of floats, whose results then differ from run to run.
#[test]
fn look_back_for_floats_is_a_miss_of_the_deterministic_rows() {
    let mut record = h100();
    let row = record.rows.iter_mut().find(|row| row.subject == SUBJECT && row.element == ElementType::F32);
    row.expect("floats are measured").chosen_strategy = Some(Strategy::Lookback);
    let evaluation = evaluate(&record);
    assert_eq!(missed(&evaluation), ["deterministic floats", "deterministic floats"]);
    let row = record.rows.iter_mut().find(|row| row.subject == SUBJECT && row.element == ElementType::I64);
    row.expect("integers are measured").chosen_strategy = Some(Strategy::Lookback);
    assert_eq!(missed(&evaluate(&record)).len(), 2, "sums of integers are the same however they are added");
}

/// Changes the figure of a subject where the arrays are aligned.
fn change(
    record: &mut SweepRecord,
    subject: &str,
    at: (ElementType, u64, Mode, Figure),
    by: impl Fn(&mut FigureRecord),
) {
    let (element, bytes, mode, figure) = at;
    let mut changed = 0;
    for row in &mut record.rows {
        let is_here = row.subject == subject
            && (row.element, row.operator, row.mode) == (element, Operator::Sum, Some(mode))
            && row.n * row.element.bytes() as u64 == bytes
            && row.offsets.is_aligned();
        if is_here && let Some(figure) = row.figure_mut(figure) {
            by(figure);
            changed += 1;
        }
    }
    assert_eq!(changed, 1, "{subject} {at:?}");
}

fn slower(figure: &mut FigureRecord, by: f64) {
    figure.median_ns = figure.median_ns.map(|median| median * by);
    figure.samples_ns.iter_mut().for_each(|sample| *sample *= by);
}

fn outcome<'a>(evaluation: &'a Evaluation, place: &str, yardstick: Yardstick, figure: Figure) -> &'a Outcome {
    let is_it = |outcome: &&Outcome| {
        let target = outcome.target;
        target.place == place && target.yardstick == yardstick && target.figures.contains(&figure)
    };
    evaluation.outcomes.iter().find(is_it).unwrap_or_else(|| panic!("there is no target at {place}"))
}

fn missed(evaluation: &Evaluation) -> Vec<&'static str> {
    let missed = evaluation.outcomes.iter().filter(|outcome| outcome.result == TargetResult::Miss);
    missed.map(|outcome| outcome.target.place.trim()).collect()
}

#[test]
fn a_record_that_reaches_everything_passes_and_every_target_has_figures() {
    let evaluation = evaluate(&h100());
    assert_eq!(missed(&evaluation), [""; 0], "{}", evaluation.text(true));
    assert!(!evaluation.is_missed());
    for outcome in &evaluation.outcomes {
        assert_eq!(outcome.passed(), outcome.findings.len(), "{}", outcome.target.place);
        assert!(!outcome.findings.is_empty(), "{}", outcome.target.place);
    }
    // Eight types, two modes, three figures; of 4 GiB there is one type.
    let at = |place, yardstick| outcome(&evaluation, place, yardstick, Figure::Cold).findings.len();
    assert_eq!(at("64 MiB", Yardstick::Memcpy), 48);
    assert_eq!(at(">= 1 GiB", Yardstick::Memcpy), 48 + 6);
    assert_eq!(at("<= 64 KiB", Yardstick::Cub), 32);
    assert_eq!(at("min, max, bitwise", Yardstick::Memcpy), (5 + 2) * 6);
    // Four types, three sizes, five ways to lie.
    assert_eq!(at("any n, any offsets", Yardstick::Neighbour), 4 * 3 * 5 * 6);
    assert!(outcome(&evaluation, "4 MiB", Yardstick::Cub, Figure::Graph).notes().join(" ").contains("reached"));
}

#[test]
fn one_figure_below_a_target_is_a_miss_that_names_it_and_its_bound() {
    let mut record = h100();
    let at = (ElementType::U16, 4 << 20, Mode::Exclusive, Figure::Stream);
    change(&mut record, SUBJECT, at, |figure| slower(figure, 3.6));
    change(&mut record, "one-wave-without-waiting", at, |figure| slower(figure, 3.5));
    let evaluation = evaluate(&record);
    assert_eq!(missed(&evaluation), ["4 MiB"]);
    let missed = outcome(&evaluation, "4 MiB", Yardstick::Cub, Figure::Stream);
    assert_eq!(missed.passed(), missed.findings.len() - 1);
    let worst = missed.worst().expect("it was measured");
    assert_eq!(worst.place.to_string(), "u16 sum, 4 MiB, exclusive, stream");
    assert!((worst.ratio.unwrap_or(0.0) - 4.0 / 1.002 / 3.6).abs() < 1e-6);
    let bound = worst.bound.expect("it was measured");
    assert!((bound.share - 3.5 * 1.001 / (3.6 * 1.002)).abs() < 1e-6 && worst.is_near_bound());
    // The stretch of 1.5 is missed there and nowhere else.
    assert_eq!(missed.stretched(), Some(missed.findings.len() - 1));
    assert_eq!(outcome(&evaluation, "4 MiB", Yardstick::Cub, Figure::Graph).result, TargetResult::Pass);
}

#[test]
fn the_fastest_peer_is_what_counts() {
    let mut record = h100();
    let at = (ElementType::U8, 16 << 20, Mode::Inclusive, Figure::Graph);
    for peer in ["cub-3.0.1", "cub-3.5.0", "thrust-3.5.0"] {
        change(&mut record, peer, at, |figure| slower(figure, 0.5));
        let missed = evaluate(&record);
        let outcome = outcome(&missed, "16 MiB, u8", Yardstick::Cub, Figure::Graph);
        assert_eq!(outcome.misses().count(), 1, "{peer}");
        change(&mut record, peer, at, |figure| slower(figure, 2.0));
    }
    assert!(!evaluate(&record).is_missed());
}

#[test]
fn what_was_not_measured_is_a_miss_that_says_so() {
    let mut record = h100();
    record.rows.retain(|row| row.subject != SUBJECT || row.n * row.element.bytes() as u64 != 64 << 20);
    let evaluation = evaluate(&record);
    assert!(missed(&evaluation).contains(&"64 MiB"));
    let outcome = outcome(&evaluation, "64 MiB", Yardstick::Memcpy, Figure::Cold);
    assert_eq!((outcome.passed(), outcome.findings.len()), (0, 48));
    assert!(outcome.notes().iter().any(|note| note.contains("it was not measured")), "{:?}", outcome.notes());

    // 64 MiB of every type, in every figure, aligned: 8 types, 2 modes, 3 figures.
    let everywhere = self::outcome(&evaluation, "everywhere", Yardstick::NotSlower, Figure::Cold);
    assert_eq!((everywhere.result, everywhere.misses().count()), (TargetResult::Miss, 48));

    let mut incomplete = h100();
    incomplete.rows.retain(|row| row.subject != SUBJECT || row.offsets.is_aligned());
    let evaluation = evaluate(&incomplete);
    for (place, yardstick) in [("everywhere", Yardstick::NotSlower), ("any n, any offsets", Yardstick::Neighbour)] {
        assert_eq!(self::outcome(&evaluation, place, yardstick, Figure::Cold).result, TargetResult::Miss, "{place}");
    }

    record.rows.retain(|row| row.subject != SUBJECT);
    let evaluation = evaluate(&record);
    assert!(
        evaluation.outcomes.iter().all(|outcome| outcome.result != TargetResult::Pass),
        "{}",
        evaluation.text(false)
    );
    assert!(evaluation.text(false).contains("it was not measured"));
}

#[test]
fn a_figure_with_nothing_beside_it_or_a_wrong_result_is_a_miss() {
    let mut without = h100();
    without.rows.retain(|row| row.kind != Kind::Peer);
    let evaluation = evaluate(&without);
    assert!(missed(&evaluation).contains(&"everywhere") && missed(&evaluation).contains(&"4 MiB"));
    assert_eq!(outcome(&evaluation, "256 MiB", Yardstick::Memcpy, Figure::Cold).result, TargetResult::Pass);

    let mut wrong = h100();
    let row = wrong.rows.iter_mut().find(|row| row.subject == SUBJECT && row.n == 1 << 26).expect("64 MiB of u8");
    (row.status, row.reason) = (Status::Wrong, Some("right before timing, wrong after it".to_owned()));
    let evaluation = evaluate(&wrong);
    assert!(missed(&evaluation).contains(&"64 MiB") && missed(&evaluation).contains(&"everywhere"));
}

#[test]
fn everywhere_is_judged_by_the_samples() {
    let at = (ElementType::F64, 256 << 20, Mode::Inclusive, Figure::Cold);
    let judged = |by: f64, is_trusted: bool| {
        let mut record = h100();
        change(&mut record, "cub-3.5.0", at, |figure| {
            slower(figure, 1.002 / 4.0 / by);
            figure.is_trusted = is_trusted;
        });
        let evaluation = evaluate(&record);
        let everywhere = outcome(&evaluation, "everywhere", Yardstick::NotSlower, Figure::Cold);
        let counts = [Difference::Same, Difference::Unclear, Difference::Slower]
            .map(|difference| everywhere.samples(difference));
        (everywhere.result, counts)
    };
    assert_eq!(judged(1.002, true), (TargetResult::Pass, [1, 0, 0]));
    assert_eq!(judged(1.04, true), (TargetResult::Miss, [0, 0, 1]));
    assert_eq!(judged(1.04, false), (TargetResult::Pass, [0, 1, 0]));

    let mut record = h100();
    change(&mut record, SUBJECT, at, |figure| figure.samples_ns.clear());
    let evaluation = evaluate(&record);
    let everywhere = outcome(&evaluation, "everywhere", Yardstick::NotSlower, Figure::Cold);
    assert_eq!((everywhere.result, everywhere.samples(Difference::Unclear)), (TargetResult::Miss, 0));
}

#[test]
fn the_copy_in_a_graph_is_no_slower_than_on_a_stream() {
    let mut record = h100();
    let at = (ElementType::I64, 1 << 30, Mode::Inclusive, Figure::Graph);
    let copies = |row: &&mut SweepRow| row.subject == "memcpy" && row.bytes >= 1 << 30;
    for row in record.rows.iter_mut().filter(copies) {
        slower(row.graph.as_mut().expect("measured"), 1.3);
    }
    change(&mut record, SUBJECT, at, |figure| slower(figure, 1.2));
    let evaluation = evaluate(&record);
    assert_eq!(outcome(&evaluation, ">= 1 GiB", Yardstick::Memcpy, Figure::Graph).misses().count(), 1);
}

#[test]
fn arrays_off_a_boundary_are_compared_with_the_next_whole_vectors() {
    let mut record = h100();
    for row in &mut record.rows {
        let is_odd = !(row.n * row.element.bytes() as u64).is_multiple_of(16);
        if is_odd && row.subject == SUBJECT && row.element == ElementType::U16 && row.n == (8 << 20) - 1 {
            slower(row.cold.as_mut().expect("measured"), 1.035);
        }
    }
    let evaluation = evaluate(&record);
    assert_eq!(missed(&evaluation), ["any n, any offsets"]);
    let outcome = outcome(&evaluation, "any n, any offsets", Yardstick::Neighbour, Figure::Cold);
    let misses: Vec<String> = outcome.misses().map(|finding| finding.place.to_string()).collect();
    let expected = ["", ", offsets 1,3"]
        .map(|offsets| ["inclusive", "exclusive"].map(|mode| format!("u16 sum, n = 2^23-1, {mode}, cold{offsets}")));
    assert_eq!(misses, expected.concat());
}

#[test]
fn a_target_of_another_gpu_decides_nothing_and_a_gpu_without_targets_reaches_none() {
    let evaluation = evaluate(&record("NVIDIA H200"));
    let passed: Vec<&str> = evaluation
        .outcomes
        .iter()
        .filter(|outcome| outcome.result == TargetResult::Pass)
        .map(|outcome| outcome.target.place)
        .collect();
    assert_eq!(passed, [">= 1 GiB, H200"]);
    assert!(!evaluation.is_missed());
    let evaluation = evaluate(&record("NVIDIA GeForce RTX 4090"));
    assert!(!evaluation.is_missed() && evaluation.text(false).contains("No target is for the NVIDIA GeForce RTX 4090"));
}

#[test]
fn the_table_fits_80_columns_and_shows_every_target_once() {
    let mut slow = h100();
    for row in slow.rows.iter_mut().filter(|row| row.subject == SUBJECT) {
        for &of in Figure::ALL {
            if let Some(figure) = row.figure_mut(of) {
                slower(figure, 3.9);
            }
        }
    }
    for record in [h100(), slow] {
        let text = evaluate(&record).text(true);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for target in TARGETS {
            let start = format!("{:<20} {}", target.place, target.demand());
            assert_eq!(text.lines().filter(|line| line.starts_with(&start)).count(), 1, "{start}");
        }
    }
}

mod command_line {
    use super::*;

    fn lookback() -> Command {
        Command::cargo_bin("lookback").expect("cargo builds the program")
    }

    fn write(record: &SweepRecord, folder: &Path) -> PathBuf {
        let mut recorder = recorder(folder, &record.header, false);
        for row in &record.rows {
            recorder.row(row.clone()).expect("a disk");
        }
        recorder.finish(FINISHED).expect("a disk")
    }

    #[test]
    fn a_miss_has_an_exit_code_of_its_own_and_the_report_has_the_table() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = write(&h100(), folder.path());
        let judge = |path: &Path| lookback().args(["compare", "--sweep", "targets", "--record"]).arg(path).assert();
        judge(&path).code(0);
        lookback().arg("report").arg(folder.path()).assert().success();
        let page = std::fs::read_to_string(folder.path().join("index.html")).expect("a page");
        assert!(page.contains("any n, any offsets"), "the page has no table of targets");

        let other = tempfile::tempdir().expect("a folder");
        let mut record = h100();
        for row in record.rows.iter_mut().filter(|row| row.subject == SUBJECT && row.element == ElementType::U8) {
            row.stream.iter_mut().chain(&mut row.cold).for_each(|figure| slower(figure, 2.5));
        }
        let path = write(&record, other.path());
        let output = judge(&path).code(4).get_output().clone();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("u8 sum, 4 KiB, exclusive, stream") && text.contains("--verbose lists them"), "{text}");
        let document = other.path().join("README.md");
        let marker = "<!-- lookback:begin targets-h100 -->\n<!-- lookback:end targets-h100 -->\n";
        std::fs::write(&document, marker).expect("a file");
        lookback().arg("report").arg(other.path()).arg("--splice").arg(&document).assert().success();
        let text = std::fs::read_to_string(&document).expect("a file");
        let row = text.lines().find(|line| line.starts_with("| 64 MiB | MISS | 95.0 % memcpy |"));
        assert!(row.is_some_and(|row| row.contains("| u8 sum, 64 MiB, inclusive, cold |")), "{text}");
    }

    #[test]
    fn without_a_gpu_or_with_another_sweep_the_exit_code_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = lookback();
        command.env("CUDA_VISIBLE_DEVICES", "").args(["compare", "--sweep", "targets"]).assert().code(3);
        lookback().args(["compare", "--sweep", "quick"]).assert().code(2);
        lookback().args(["compare", "--sweep", "targets", "--device", "cpu"]).assert().code(2);
        lookback().args(["compare", "--sweep", "targets", "--sizes", "1000"]).assert().code(2);
        lookback().args(["compare", "--verbose"]).assert().code(2);
        let missing = folder.path().join("none.jsonl.gz");
        lookback().args(["compare", "--sweep", "targets", "--record"]).arg(missing).assert().code(2);
    }
}
