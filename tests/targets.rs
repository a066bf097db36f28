//! The targets and the verdict on them, from records that were made up.
#![cfg(feature = "cli")]

mod common;

use assert_cmd::Command;
use common::{FINISHED, H100, PEER_SCANS, header, recorder};
use lookback::element::{ElementType, Operator};
use lookback::lab::measure::call_times::{CallTimes, Calls, Start};
use lookback::lab::measure::point::{Kind, Point};
use lookback::lab::measure::record::{Beside, FigureRecord, PointDone, Status, SweepRecord, SweepRow};
use lookback::lab::measure::run::estimate_sweep;
use lookback::lab::measure::sampling::Figure;
use lookback::lab::measure::stopping::Stop;
use lookback::lab::measure::sweep::SweepFile;
use lookback::lab::measure::targets::evaluation::{Evaluation, Outcome, TargetResult, evaluate};
use lookback::lab::measure::targets::{HOST_TARGETS, SUBJECT, SWEEP, TARGETS};
use lookback::lab::verify::Verification;
use lookback::strategy::Mode;
use std::path::{Path, PathBuf};

const H200: &str = "NVIDIA H200";
const PEERS: [&str; 3] = ["cub-3.0.1", "cub-3.5.0", "thrust-3.5.0"];

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

/// How many times as long as a copy kernel a subject takes.
fn factor(row: &SweepRow) -> f64 {
    match row.kind {
        Kind::Copy if row.subject == "memcpy" => 0.9,
        Kind::Copy | Kind::Reading => 1.0,
        Kind::Bound => 0.98,
        Kind::Strategy => 0.99,
        Kind::Peer => 4.0,
    }
}

/// What a process that reaches every target leaves.
fn record_of(gpu: &str, process: u32) -> SweepRecord {
    let sweep = SweepFile { process: Some(process), ..SweepFile::open(SWEEP).expect("shipped") };
    let header = header(gpu, sweep.clone(), "lookback compare --sweep targets --output records");
    let tuning = sweep.tuning_on(header.machine.tuning_gpu()).expect("the committed table");
    let (points, _) = sweep.points_by(&PEERS.map(str::to_owned), &tuning);
    let rows = points.iter().flat_map(rows).collect();
    let sentinel = Beside { sentinel: Some(figure(3000.0)), ..Beside::default() };
    let done = points.iter().map(|point| PointDone::new(point.key(), 1, sentinel.clone(), 1.0)).collect();
    let starts =
        [false, true].map(|has_kernels| Start { has_kernels, context_ms: 90.0, scanner_ms: 2.0, first_scan_ms: 3.0 });
    let calls = Calls { returned_us: vec![2.5; 3], done_us: vec![9.0; 3] };
    let call_times = CallTimes { starts: starts.to_vec(), tracked: calls.clone(), untracked: calls };
    SweepRecord {
        rows,
        points: done,
        call_times: (process == 1).then_some(call_times),
        finished: Some(FINISHED),
        ..SweepRecord::from(header)
    }
}

fn h200() -> SweepRecord {
    record_of(H200, 1)
}

fn rows(point: &Point) -> Vec<SweepRow> {
    point
        .entries
        .iter()
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
fn the_sweep_takes_less_than_twenty_minutes_on_an_h100_and_each_further_process_a_quarter_of_it() {
    let sweep = SweepFile::open(SWEEP).expect("shipped");
    let estimate = |process| {
        let (points, _) = SweepFile { process: Some(process), ..sweep.clone() }.points(&PEER_SCANS.map(str::to_owned));
        let estimate = estimate_sweep(&points, &sweep.limits, 16);
        println!("{} points, {estimate:?}", points.len());
        estimate.expected_seconds
    };
    assert!(estimate(1) < 1200.0 && estimate(2) < 400.0);
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
            && (row.element, row.operator) == (element, Operator::Sum)
            && row.mode.is_none_or(|of| of == mode)
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

fn outcome<'a>(evaluation: &'a Evaluation, place: &str, figure: Figure) -> &'a Outcome {
    let is_it = |outcome: &&Outcome| outcome.target.place == place && outcome.target.figures.contains(&figure);
    evaluation.outcomes.iter().find(is_it).unwrap_or_else(|| panic!("there is no target at {place}"))
}

fn missed(evaluation: &Evaluation) -> Vec<String> {
    let missed = evaluation.outcomes.iter().filter(|outcome| outcome.result == TargetResult::Miss);
    missed.map(|outcome| format!("{}, {}", outcome.target.place, outcome.target.demand())).collect()
}

#[test]
fn a_record_that_reaches_everything_passes_and_every_target_has_figures() {
    let record = h200();
    let evaluation = evaluate(&[&record]);
    assert_eq!(missed(&evaluation), [""; 0], "{}", evaluation.text(true));
    assert!(!evaluation.is_missed());
    for outcome in &evaluation.outcomes {
        assert_eq!(outcome.passed(), outcome.findings.len(), "{}", outcome.target.place);
        assert!(!outcome.findings.is_empty(), "{}", outcome.target.place);
    }
    let at = |place, figure| outcome(&evaluation, place, figure).findings.len();
    // Six types at four sizes an octave of 24 octaves at least, and both sides of each switch.
    assert!(at("anywhere", Figure::Graph) > 6 * 96, "{}", at("anywhere", Figure::Graph));
    assert_eq!(at("anywhere", Figure::Graph), at("anywhere", Figure::Behind));
    // Six types, two modes, three figures.
    assert_eq!(at("256 MiB", Figure::Cold), 36);
    assert_eq!(at("4 GiB", Figure::Cold), 36);
    // Four types at 24 sizes and two of halves at 22; six types at 24 sizes; two at six.
    let alone = 4 * 24 + 2 * 22;
    assert_eq!([Figure::Graph, Figure::Cold].map(|figure| at("other types", figure)), [alone, 2 * alone]);
    assert_eq!([Figure::Graph, Figure::Cold].map(|figure| at("exclusive", figure)), [6 * 24, 2 * 6 * 24]);
    assert_eq!([Figure::Graph, Figure::Cold].map(|figure| at("maximum", figure)), [2 * 6, 2 * 2 * 6]);
    assert_eq!(at("<= 64 KiB", Figure::Call), 6 * 9);
    // Four types, nine sizes, three ways to lie, three figures.
    assert_eq!(at("any offsets", Figure::Cold), 4 * 9 * 3 * 3);
    assert!(evaluation.host.iter().all(|outcome| outcome.result == TargetResult::Pass));
    let sentinel = evaluation.sentinel.expect("it stands beside every point");
    assert_eq!((sentinel.points, sentinel.steps), (record.points.len(), 0));
}

#[test]
fn one_figure_below_a_target_is_a_miss_that_names_it_its_peer_and_its_bound() {
    let mut record = h200();
    let at = (ElementType::U16, 256 << 20, Mode::Exclusive, Figure::Cold);
    change(&mut record, SUBJECT, at, |figure| slower(figure, 1.2));
    let evaluation = evaluate(&[&record]);
    assert_eq!(missed(&evaluation), ["256 MiB, 100.0 % copy kernel"]);
    // Of more misses than a screen has lines the worst.
    let mut slow = record.clone();
    for figure in slow.rows.iter_mut().filter(|row| row.subject == SUBJECT).filter_map(|row| row.cold.as_mut()) {
        slower(figure, 9.0);
    }
    let text = evaluate(&[&slow]).text(false);
    assert!(text.contains("Misses, of each target the worst first") && text.contains("--verbose lists them"), "{text}");
    let missed = outcome(&evaluation, "256 MiB", Figure::Cold);
    assert_eq!(missed.passed(), missed.findings.len() - 1);
    let worst = missed.worst().expect("it was measured");
    assert_eq!(worst.place.to_string(), "u16 sum, 256 MiB, exclusive, cold");
    assert!(worst.title().contains("by copy-"), "{}", worst.title());
    assert!((worst.ratio.unwrap_or(0.0) - 1.0 / 0.99 / 1.2).abs() < 1e-6);
    assert!(worst.bound.is_some_and(|bound| (bound.share - 0.98 / (0.99 * 1.2)).abs() < 1e-6));
}

#[test]
fn the_fastest_peer_is_what_counts_and_the_empty_frame_is_part_of_cold_times() {
    let mut record = h200();
    let at = (ElementType::U8, 11 << 20, Mode::Inclusive, Figure::Graph);
    for peer in PEERS {
        change(&mut record, peer, at, |figure| slower(figure, 0.26));
        let evaluation = evaluate(&[&record]);
        let outcome = outcome(&evaluation, "anywhere", Figure::Graph);
        assert_eq!(outcome.misses().count(), 1, "{peer}");
        assert!(outcome.worst().is_some_and(|worst| worst.title().ends_with(&format!("by {peer})"))), "{peer}");
        change(&mut record, peer, at, |figure| slower(figure, 1.0 / 0.26));
    }
    assert!(!evaluate(&[&record]).is_missed());
    // Twice as fast without the frame, and not with it.
    let cold = (ElementType::U8, 352, Mode::Inclusive, Figure::Cold);
    for subject in [SUBJECT, PEERS[0], PEERS[1], PEERS[2]] {
        change(&mut record, subject, cold, |figure| {
            slower(figure, if subject == SUBJECT { 1.0 } else { 0.5 });
            figure.empty_frame_ns = Some(1e6);
        });
    }
    let evaluation = evaluate(&[&record]);
    let outcome = outcome(&evaluation, "anywhere", Figure::Cold);
    assert_eq!(outcome.misses().count(), 1);
    assert!(outcome.worst().and_then(|worst| worst.ratio).is_some_and(|ratio| ratio < 1.01));
}

#[test]
fn a_lead_that_falls_between_the_ends_of_an_octave_is_a_notch() {
    let mut record = h200();
    let at = (ElementType::F64, 13 << 20, Mode::Inclusive, Figure::Graph);
    change(&mut record, SUBJECT, at, |figure| slower(figure, 1.2));
    let evaluation = evaluate(&[&record]);
    assert_eq!(missed(&evaluation), ["no notch, 90.0 % an octave's ends"]);
    let notch = outcome(&evaluation, "no notch", Figure::Graph);
    let places: Vec<String> = notch.misses().map(|finding| finding.place.to_string()).collect();
    assert_eq!(places, ["f64 sum, 13 MiB, inclusive, graph"]);
    // From there on slower by as much everywhere is none.
    let mut falling = h200();
    for row in falling.rows.iter_mut().filter(|row| row.subject == SUBJECT && row.element == ElementType::F64) {
        if row.n * 8 >= 13 << 20
            && let Some(figure) = &mut row.graph
        {
            slower(figure, 1.2);
        }
    }
    assert_eq!(outcome(&evaluate(&[&falling]), "no notch", Figure::Graph).result, TargetResult::Pass);
}

#[test]
fn of_several_processes_the_middle_counts_and_what_one_finds_wrong_is_wrong() {
    let [first, mut second, mut third] = [1, 2, 3].map(|process| record_of(H200, process));
    assert!(second.rows.len() * 3 < first.rows.len(), "further processes measure less");
    let order = |record: &SweepRecord| record.rows.iter().map(SweepRow::key).collect::<Vec<_>>();
    assert_ne!(order(&second), order(&third), "each has an order of its own");
    let at = (ElementType::I32, 704 << 10, Mode::Inclusive, Figure::Behind);
    change(&mut second, SUBJECT, at, |figure| slower(figure, 5.0));
    assert!(!evaluate(&[&first, &second, &third]).is_missed());
    change(&mut third, SUBJECT, at, |figure| slower(figure, 4.0));
    let evaluation = evaluate(&[&first, &second, &third]);
    let missed = outcome(&evaluation, "anywhere", Figure::Behind);
    let worst = missed.worst().expect("it was measured");
    let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-6;
    assert!(worst.ratio.is_some_and(|ratio| near(ratio, 1.0 / 0.99)), "{worst:?}");
    assert!(worst.between.is_some_and(|[least, most]| near(least, 4.0 / 0.99 / 5.0) && near(most, 4.0 / 0.99)));
    assert!(missed.notes().join(" ").contains("0.81 x to 4.04 x by process"), "{:?}", missed.notes());

    let wrong = third.rows.iter_mut().find(|row| row.subject == SUBJECT && row.element == ElementType::I64);
    let wrong = wrong.expect("it is measured by every process");
    (wrong.status, wrong.reason) = (Status::Wrong, Some("right before timing, wrong after it".to_owned()));
    let evaluation = evaluate(&[&first, &second, &third]);
    let problems =
        outcome(&evaluation, "anywhere", Figure::Graph).misses().filter(|miss| miss.problem.is_some()).count();
    assert_eq!(problems, 1);
}

#[test]
fn what_was_not_measured_is_a_miss_that_says_so() {
    let mut record = h200();
    record.rows.retain(|row| row.subject != SUBJECT || row.n * row.element.bytes() as u64 != 64 << 20);
    let evaluation = evaluate(&[&record]);
    let outcome = outcome(&evaluation, "64 MiB", Figure::Cold);
    assert_eq!((outcome.result, outcome.passed(), outcome.findings.len()), (TargetResult::Miss, 0, 36));
    assert!(outcome.notes().iter().any(|note| note.contains("it was not measured")), "{:?}", outcome.notes());

    record.rows.retain(|row| row.subject != SUBJECT);
    record.call_times = None;
    let evaluation = evaluate(&[&record]);
    assert_eq!(evaluation.count(TargetResult::Pass), 0, "{}", evaluation.text(false));
    assert_eq!(evaluation.count(TargetResult::Miss), TARGETS.len() + HOST_TARGETS.len());

    let mut without = h200();
    without.rows.retain(|row| row.kind != Kind::Peer);
    let evaluation = evaluate(&[&without]);
    assert!(missed(&evaluation).contains(&"anywhere, graph: 1.10 x CUB".to_owned()));
    assert_eq!(self::outcome(&evaluation, "256 MiB", Figure::Cold).result, TargetResult::Pass);
}

#[test]
fn what_a_further_process_or_a_copy_kernel_lacks_is_a_miss() {
    let [first, mut second] = [1, 2].map(|process| record_of(H200, process));
    let is_at = |row: &SweepRow, bytes: u64| row.n * row.element.bytes() as u64 == bytes;
    second.rows.retain(|row| row.subject != SUBJECT || row.element != ElementType::I32 || !is_at(row, 704 << 10));
    let evaluation = evaluate(&[&first, &second]);
    let anywhere = outcome(&evaluation, "anywhere", Figure::Graph);
    let missing: Vec<String> = anywhere.misses().map(|finding| finding.place.to_string()).collect();
    assert_eq!(missing, ["i32 sum, 704 KiB, inclusive, graph"]);

    let mut record = h200();
    record.rows.retain(|row| row.subject != "copy-8x256" || !is_at(row, 1 << 30));
    let evaluation = evaluate(&[&record]);
    assert_eq!(missed(&evaluation), ["1 GiB, 100.0 % copy kernel"]);
    let notes = outcome(&evaluation, "1 GiB", Figure::Graph).notes().join(" ");
    assert!(notes.contains("the copy kernel copy-8x256 was not measured"), "{notes}");
}

#[test]
fn arrays_off_a_boundary_are_compared_with_those_at_one() {
    let mut record = h200();
    for row in &mut record.rows {
        let is_here = !row.offsets.is_aligned() && row.n * 2 == 22 << 20 && row.element == ElementType::U16;
        if is_here && row.subject == SUBJECT {
            slower(row.cold.as_mut().expect("measured"), 1.09);
        }
    }
    let evaluation = evaluate(&[&record]);
    assert_eq!(missed(&evaluation), ["any offsets, 93.0 % aligned"]);
    assert_eq!(outcome(&evaluation, "any offsets", Figure::Cold).misses().count(), 3);
}

#[test]
fn a_target_of_another_gpu_decides_nothing() {
    let evaluation = evaluate(&[&record_of(H100, 1)]);
    assert!(!evaluation.is_missed() && evaluation.count(TargetResult::Pass) == 0);
    assert!(evaluation.text(false).contains("No target is for the"), "{}", evaluation.text(false));
}

#[test]
fn a_sentinel_that_is_off_is_counted_and_slow_calls_are_missed() {
    let mut record = h200();
    for point in &mut record.points[..3] {
        point.beside.sentinel = Some(figure(3175.0));
    }
    record.call_times.as_mut().expect("it has them").tracked.returned_us = vec![4.0; 3];
    let evaluation = evaluate(&[&record]);
    assert_eq!(evaluation.sentinel.map(|sentinel| sentinel.steps), Some(3));
    assert_eq!(evaluation.count(TargetResult::Miss), 1);
    let text = evaluation.text(false).split('\n').collect::<Vec<_>>().join(" ");
    assert!(text.contains("4.0 us  MISS") && text.contains("at 3 it was more than 3 % off"), "{text}");
}

#[test]
fn the_table_fits_80_columns_and_shows_every_target_once() {
    let mut slow = h200();
    for row in slow.rows.iter_mut().filter(|row| row.subject == SUBJECT) {
        for &of in Figure::ALL {
            if let Some(figure) = row.figure_mut(of) {
                slower(figure, 3.9);
            }
        }
    }
    for record in [h200(), slow] {
        let text = evaluate(&[&record]).text(true);
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
        if let Some(times) = &record.call_times {
            recorder.call_times(times.clone()).expect("a disk");
        }
        for row in &record.rows {
            recorder.row(row.clone()).expect("a disk");
        }
        recorder.finish(FINISHED).expect("a disk")
    }

    #[test]
    fn a_miss_has_an_exit_code_of_its_own_and_the_report_has_the_table() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut record = h200();
        // Of some rows the record is small, and most figures are not measured.
        record.rows.retain(|row| row.n * row.element.bytes() as u64 == 64 << 20);
        let first = write(&record, folder.path());
        let mut second = record_of(H200, 2);
        second.rows.retain(|row| row.n * row.element.bytes() as u64 == 44 << 10);
        let second = write(&second, folder.path());
        assert!(second.ends_with("targets-h200-process-2.jsonl.gz"), "{}", second.display());
        // Without the first process's, and with one twice.
        for refused in [second.display().to_string(), format!("{0},{0}", first.display())] {
            lookback().args(["compare", "--sweep", "targets", "--record", &refused]).assert().code(2);
        }
        let both = format!("{},{}", first.display(), second.display());
        let judged = lookback().args(["compare", "--sweep", "targets", "--record", &both]).assert().code(4);
        let text = String::from_utf8_lossy(&judged.get_output().stdout).into_owned();
        assert!(text.contains("by 2 processes") && text.contains("do not count: it was not measured"), "{text}");
        // Where nothing was measured the table says so, and no list.
        assert!(!text.contains("Misses, of each target"), "{text}");
        let document = folder.path().join("README.md");
        let marker = "<!-- lookback:begin targets-h200 -->\n<!-- lookback:end targets-h200 -->\n";
        std::fs::write(&document, marker).expect("a file");
        lookback().arg("report").arg(folder.path()).assert().success();
        let page = std::fs::read_to_string(folder.path().join("index.html")).expect("a page");
        assert!(page.contains("any offsets"), "the page has no table of targets");
        lookback().arg("report").arg(folder.path()).arg("--splice").arg(&document).assert().success();
        let text = std::fs::read_to_string(&document).expect("a file");
        let row = text.lines().find(|line| line.starts_with("| 64 MiB | pass | 100.0 % copy kernel |"));
        assert!(row.is_some_and(|row| row.contains("| 36 of 36 |")), "{text}");
    }

    #[test]
    fn without_a_gpu_or_with_another_sweep_the_exit_code_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = lookback();
        command.env("CUDA_VISIBLE_DEVICES", "").args(["compare", "--sweep", "targets"]).assert().code(3);
        lookback().args(["compare", "--sweep", "quick"]).assert().code(2);
        lookback().args(["compare", "--sweep", "targets", "--device", "cpu"]).assert().code(2);
        lookback().args(["compare", "--sweep", "targets", "--sizes", "1000"]).assert().code(2);
        lookback().args(["compare", "--sweep", "targets", "--process", "0"]).assert().code(2);
        lookback().args(["compare", "--process", "2"]).assert().code(2);
        lookback().args(["compare", "--verbose"]).assert().code(2);
        let missing = folder.path().join("none.jsonl.gz");
        lookback().args(["compare", "--sweep", "targets", "--record"]).arg(missing).assert().code(2);
    }

    #[test]
    #[cfg(feature = "cuda")]
    fn calls_need_a_gpu_and_say_so() {
        lookback().env("CUDA_VISIBLE_DEVICES", "").arg("call").assert().code(3);
    }
}
