//! Measuring from end to end: sweeps on a laboratory without a GPU, their records, the command line, and the
//! measurement kernels through the compiler.
#![cfg(feature = "cli")]

mod common;

use assert_cmd::Command;
use common::laboratory::{MadeUp, MockLaboratory};
use common::{FINISHED, H100, header, recorder};
use lookback::element::Operator;
use lookback::lab::measure::call_times::{CallTimes, Calls};
use lookback::lab::measure::point::{Kind, Subject, bound_name};
use lookback::lab::measure::record::{FigureRecord, Line, Status, SweepHeader, SweepRecord, SweepRecorder, SweepRow};
use lookback::lab::measure::run::{self, NotMeasured, SubjectFacts, SweepError, run_sweep};
use lookback::lab::measure::sampling::Figure;
use lookback::lab::measure::stopping::Stop;
use lookback::lab::measure::sweep::SweepFile;
use lookback::lab::recorder::RecordError;
use lookback::lab::statistics::Summary;
use lookback::lab::verify::Verification;
use lookback::strategy::Strategy;
use std::path::Path;

const SWEEP: &str = r#"
name = "test"
purpose = "Whether the way from file to record holds."

[limits]
minimum_samples = 10
maximum_samples = 20
latency_up_to = "1000"

[[measure]]
sizes = ["1000", "2^16", "2^20"]
strategies = ["lookback", "reduce-then-scan", "sequential"]
peers = ["all"]
"#;

/// `sequential` is always wrong, reduce-then-scan cannot be launched at 1000 elements, and the peer takes no 2^20
/// elements.
const MADE_UP: MadeUp = MadeUp {
    peers: &["peer"],
    nanoseconds: |point, subject, figure, sample| {
        let factor = match subject {
            Subject::Memcpy => 1.0,
            Subject::Copy16 => 1.02,
            Subject::Scan { strategy: Strategy::Lookback, .. } => 1.25,
            Subject::Bound { .. } => 1.2,
            Subject::EmptyFrame => 2.0 / 3.0,
            _ => 1.6,
        };
        let n = if *subject == Subject::EmptyFrame { 0.0 } else { point.n as f64 };
        let overhead = if figure == Figure::Cold { 3000.0 } else { 1000.0 };
        let noise = 1.0 + 0.0004 * (sample * 7 % 11) as f64;
        (overhead + 8.0 * n / 3000.0) * factor * noise
    },
    facts: |point, subject| match subject {
        Subject::Scan { strategy: Strategy::ReduceThenScan, .. } if point.n == 1000 => {
            Err(NotMeasured::NotLaunchable("too many registers".into()))
        }
        Subject::Peer { .. } if point.n == 1 << 20 => Err(NotMeasured::Unsupported("too large".into())),
        _ => Ok(SubjectFacts { access_bytes: Some(16), ..SubjectFacts::default() }),
    },
    is_wrong: |subject| match subject {
        Subject::Scan { strategy, .. } => *strategy == Strategy::Sequential,
        _ => matches!(subject, Subject::Bound { .. }),
    },
};

/// What [`SWEEP`] has not: arrays off a boundary, and strategies without their waiting.
const OFF_A_BOUNDARY: &str = r#"
name = "test"
purpose = "Whether points that differ in their offsets alone stay apart."

[limits]
minimum_samples = 10
maximum_samples = 20

[[measure]]
sizes = ["1MiB"]
offsets = [[0, 0], [1, 3]]
strategies = ["lookback"]
figures = ["cold", "graph"]
bounds = true
"#;

#[test]
fn points_that_differ_in_offsets_stay_apart_and_bounds_are_timed_and_not_verified() {
    let file = SweepFile::parse(OFF_A_BOUNDARY, "test".into()).unwrap_or_else(|error| panic!("{error}"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    // The device fails at the second point, and the sweep is gone on with.
    let mut laboratory = MockLaboratory::failing_at(1, MADE_UP);
    let head = header(H100, file.clone(), "lookback sweep test");
    let mut writer = recorder(folder.path(), &head, false);
    assert!(run_sweep(&mut laboratory, &file, &mut writer, &mut |_| {}).is_err());
    drop(writer);
    let mut writer = recorder(folder.path(), &head, true);
    let mut laboratory = MockLaboratory::new(MADE_UP);
    let summary = run_sweep(&mut laboratory, &file, &mut writer, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((laboratory.opened.len(), summary.wrong), (1, 0));
    let path = writer.finish(FINISHED).unwrap_or_else(|error| panic!("{error}"));
    let record = SweepRecord::read(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(record.points.iter().map(|point| <[u32; 2]>::from(point.offsets)).collect::<Vec<_>>(), [[0, 0], [1, 3]]);
    assert_eq!(record.rows.len(), 8);
    let keys: std::collections::BTreeSet<String> = record.rows.iter().map(SweepRow::key).collect();
    assert_eq!(keys.len(), 8, "{keys:?}");
    for row in record.rows.iter().filter(|row| row.subject == "lookback-without-waiting") {
        assert_eq!((row.kind, row.status, row.verification.is_none()), (Kind::Bound, Status::NotVerified, true));
        assert!(row.reason.as_deref().is_some_and(|reason| reason.contains("wrong by design")));
        assert!(row.graph.as_ref().is_some_and(|graph| graph.median_ns.is_some()));
    }
    // Bounds and offsets are drawn in no picture of aligned scans.
    let report = |arguments: &[&str]| {
        Command::cargo_bin("lookback").expect("cargo builds the program").args(arguments).assert().success()
    };
    report(&["report", folder.path().to_str().expect("a plain name")]);
    let page = std::fs::read_to_string(folder.path().join("index.html")).expect("a page");
    assert!(page.contains("a bound, not verified") && page.contains("offsets 1,3"));
}

/// What [`SWEEP`] has not: other problems than the flat scan, with types and segments of their own.
const PROBLEMS: &str = r#"
name = "test"
purpose = "Whether points of different problems stay apart."

[limits]
minimum_samples = 10
maximum_samples = 20

[[measure]]
problems = ["flat", "rows", "columns", "by-key"]
segments = ["16", "256"]
sizes = ["2^20"]
strategies = ["auto"]
peers = ["all"]
figures = ["cold", "stream", "graph"]

[[measure]]
types = ["u32"]
inputs = ["u8"]
sizes = ["2^20"]
strategies = ["auto"]
figures = ["cold", "stream", "graph"]
"#;

#[test]
fn problems_stay_apart_from_file_to_page_and_comparison() {
    let made_up = MadeUp {
        // Rows and columns take the longer the shorter they are.
        nanoseconds: |point, subject, _, sample| {
            let length = point.workload.line_elements().map_or(0.0, |elements| 1.0 / elements as f64);
            let times = if matches!(subject, Subject::Auto { .. }) { 1.0 + length } else { 1.0 };
            let n = if *subject == Subject::EmptyFrame { 0.0 } else { point.workload.bytes(point.n) as f64 };
            (1000.0 + n / 4000.0) * times * (1.0 + 0.0004 * (sample * 7 % 11) as f64)
        },
        facts: |point, subject| match subject {
            Subject::Peer { .. } if !point.workload.is_plain() => Err(NotMeasured::Unsupported("flat alone".into())),
            _ => Ok(SubjectFacts::default()),
        },
        ..MADE_UP
    };
    let file = SweepFile::parse(PROBLEMS, "test".into()).unwrap_or_else(|error| panic!("{error}"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let head = header(H100, file.clone(), "lookback sweep test");
    // The device fails at the third point, and the sweep is gone on with.
    let mut writer = recorder(folder.path(), &head, false);
    let mut laboratory = MockLaboratory::failing_at(2, made_up);
    assert!(run_sweep(&mut laboratory, &file, &mut writer, &mut |_| {}).is_err());
    drop(writer);
    let mut writer = recorder(folder.path(), &head, true);
    let mut laboratory = MockLaboratory::new(made_up);
    let summary = run_sweep(&mut laboratory, &file, &mut writer, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((laboratory.opened.len(), summary.wrong), (6, 0));
    let path = writer.finish(FINISHED).unwrap_or_else(|error| panic!("{error}"));
    let record = SweepRecord::read(&path).unwrap_or_else(|error| panic!("{error}"));
    let scans: Vec<String> = record.points.iter().map(|point| point.key().scan()).collect();
    assert_eq!(
        scans,
        [
            "u32 sum of u8",
            "i32 sum",
            "i32 sum, rows of 16",
            "i32 sum, rows of 256",
            "i32 sum, columns of 16",
            "i32 sum, columns of 256",
            "i32 sum, by key in runs of 16",
            "i32 sum, by key in runs of 256",
        ]
    );
    let keys: std::collections::BTreeSet<String> = record.rows.iter().map(SweepRow::key).collect();
    assert_eq!(keys.len(), record.rows.len(), "{keys:?}");
    assert!(record.skipped.iter().any(|skipped| skipped.what == "peer inclusive of i32 sum, rows of 16"));

    let folder = folder.path().to_str().expect("a plain name");
    let lookback = |arguments: &[&str]| {
        let command = Command::cargo_bin("lookback").expect("cargo builds the program").args(arguments).assert();
        String::from_utf8(command.success().get_output().stdout.clone()).expect("text")
    };
    lookback(&["report", folder]);
    let page = std::fs::read_to_string(path.with_file_name("index.html")).expect("a page");
    for part in ["by-key, sum", "u32 of u8", "its × copy", "test-h100-segments-rows-and-columns.svg"] {
        assert!(page.contains(part), "{part}");
    }
    let compared = lookback(&["compare-records", folder, folder, "--all"]);
    for scan in &scans {
        assert!(compared.contains(&format!("test: {scan} n=1048576 auto inclusive\n")), "{scan}: {compared}");
    }
}

fn sweep() -> SweepFile {
    SweepFile::parse(SWEEP, "test".into()).unwrap_or_else(|error| panic!("{error}"))
}

/// A whole sweep, and the file it left.
fn run(folder: &Path) -> SweepRecord {
    let mut laboratory = MockLaboratory::new(MADE_UP);
    let mut recorder = recorder(folder, &header(H100, sweep(), "lookback sweep test"), false);
    run_sweep(&mut laboratory, &sweep(), &mut recorder, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    let path = recorder.finish(FINISHED).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(path.file_name().and_then(|name| name.to_str()), Some("test-h100.jsonl.gz"));
    SweepRecord::read(&path).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_sweep_leaves_a_row_a_configuration_with_all_its_figures() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let record = run(folder.path());
    assert_eq!(record.points.iter().map(|point| point.n).collect::<Vec<_>>(), [1000, 1 << 16, 1 << 20]);
    // Two copies, three strategies, one peer; the peer does not exist at the last size.
    assert_eq!(record.rows.len(), 6 + 6 + 5);
    for row in record.rows.iter().filter(|row| row.status == Status::Measured) {
        for figure in [Figure::Cold, Figure::Stream, Figure::Graph] {
            let found = row.figure(figure).unwrap_or_else(|| panic!("{} has no {figure}", row.subject));
            if row.subject == "peer" && figure == Figure::Graph {
                assert_eq!(found.unavailable.as_deref(), Some("it waits"));
                assert!(found.median_ns.is_none() && !found.is_trusted);
                continue;
            }
            assert_eq!((found.samples_ns.len(), found.stop), (10, Some(Stop::Noise)), "{}", row.subject);
            assert!(found.is_trusted && found.gigabytes_per_second.is_some_and(|rate| rate > 0.0));
            let percent = found.percent_of_copy.expect("the copy was there");
            let expected = if row.subject == "lookback" && figure != Figure::Cold { 80.0 } else { percent };
            assert!((percent - expected).abs() < 1.0, "{} {percent}", row.subject);
            assert_eq!(found.runs_per_sample == 1, figure == Figure::Cold || row.n == 1 << 30);
        }
        assert_eq!(row.latency.is_some(), row.n <= 1000, "{} at {}", row.subject, row.n);
        assert_eq!(row.bytes, 8 * row.n);
        assert!(row.verification.as_ref().is_some_and(Verification::passed));
    }
    // The frame takes 2 us, and a cold time is what remains without it: less than the stream's at small n here.
    for point in &record.points {
        let frame =
            point.beside.empty_frame.as_ref().and_then(|frame| frame.median_ns).expect("the frame was measured");
        assert!((2000.0..2020.0).contains(&frame), "{frame}");
        for row in record.rows.iter().filter(|row| row.n == point.n && row.status == Status::Measured) {
            let (cold, stream) = (row.cold.as_ref().expect("asked for"), row.stream.as_ref().expect("asked for"));
            assert_eq!((cold.empty_frame_ns, stream.empty_frame_ns), (Some(frame), None));
            let raw = cold.raw_samples_ns()[0];
            assert!((raw - frame - cold.samples_ns[0]).abs() < 0.11, "{raw}");
            if row.subject == "memcpy" {
                assert!((cold.median_ns.unwrap_or(0.0) - stream.median_ns.unwrap_or(0.0)).abs() < 40.0, "{}", row.n);
            }
        }
    }
    assert!(record.finished.is_some());
    assert!(record.skipped.iter().any(|skipped| skipped.why == "too large"));
}

#[test]
fn what_is_wrong_is_never_timed_and_what_cannot_be_launched_is_a_row() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let record = run(folder.path());
    for row in record.rows.iter().filter(|row| row.subject == "sequential") {
        assert_eq!(row.status, Status::Wrong);
        assert!(Figure::ALL.iter().all(|&figure| row.figure(figure).is_none()));
        assert_eq!(row.verification.as_ref().and_then(|verification| verification.first_mismatch), Some(3));
    }
    let row = record.rows.iter().find(|row| row.subject == "reduce-then-scan" && row.n == 1000).expect("a row");
    assert_eq!((row.status, row.reason.as_deref()), (Status::NotLaunchable, Some("too many registers")));
}

#[test]
fn a_sweep_that_was_killed_anywhere_goes_on_and_ends_with_the_same_rows() {
    let whole_folder = tempfile::tempdir().expect("a temporary folder");
    let whole = run(whole_folder.path());
    let keys = |record: &SweepRecord| {
        let mut keys: Vec<String> = record.rows.iter().map(lookback::lab::measure::record::SweepRow::key).collect();
        keys.sort();
        keys
    };
    // The file of a run that the device ended after two points.
    let killed = tempfile::tempdir().expect("a temporary folder");
    let mut laboratory = MockLaboratory::failing_at(2, MADE_UP);
    let head = header(H100, sweep(), "lookback sweep test");
    let mut writer = recorder(killed.path(), &head, false);
    let times = CallTimes { tracked: Calls { returned_us: vec![3.0], done_us: vec![9.0] }, ..CallTimes::default() };
    writer.call_times(times.clone()).unwrap_or_else(|error| panic!("{error}"));
    let result = run_sweep(&mut laboratory, &sweep(), &mut writer, &mut |_| {});
    assert!(matches!(result, Err(SweepError::Device(_))));
    let path = writer.path().to_owned();
    drop(writer);
    let text = std::fs::read(&path).expect("it was written");
    let mut line_ends = text.iter().zip(1..).filter(|(byte, _)| **byte == b'\n').map(|(_, end)| end);
    let [header_end, times_end] = [(); 2].map(|()| line_ends.next().expect("a line"));
    for cut in (header_end..=text.len()).step_by(997).chain([text.len()]) {
        std::fs::write(&path, &text[..cut]).expect("a file");
        let mut laboratory = MockLaboratory::new(MADE_UP);
        let mut writer = recorder(killed.path(), &head, true);
        let points_before = writer.record().points.len();
        run_sweep(&mut laboratory, &sweep(), &mut writer, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(laboratory.opened.len(), 3 - points_before, "cut at {cut}");
        let compressed = writer.finish(FINISHED).unwrap_or_else(|error| panic!("{error}"));
        let record = SweepRecord::read(&compressed).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(keys(&record), keys(&whole), "cut at {cut}");
        assert_eq!(record.resumed.len(), 1);
        assert!(cut < times_end || record.call_times.as_ref() == Some(&times), "cut at {cut}");
        std::fs::remove_file(compressed).expect("it is there");
    }
}

#[test]
fn a_sweep_is_not_gone_on_with_on_another_gpu_driver_commit_or_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let head = header(H100, sweep(), "lookback sweep test");
    drop(recorder(folder.path(), &head, false));
    let refusal = |change: &dyn Fn(&mut SweepHeader)| {
        let mut other = head.clone();
        change(&mut other);
        match SweepRecorder::open(folder.path(), &other, true) {
            Err(RecordError::CannotResume { what, .. }) => what,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refusal(&|header| header.machine.gpu = "NVIDIA H200".into()), "GPU");
    assert_eq!(refusal(&|header| header.machine.gpu_digest = "bb".into()), "GPU");
    assert_eq!(refusal(&|header| header.machine.driver = "590.1".into()), "driver");
    assert_eq!(refusal(&|header| header.machine.compiler = "NVRTC 13.1".into()), "compiler");
    assert_eq!(refusal(&|header| header.program.git_commit = Some("def".into())), "commit");
    assert_eq!(refusal(&|header| header.program.git_dirty = Some(true)), "commit");
    assert_eq!(refusal(&|header| header.program.kernels_sha256 = "11".into()), "commit");
    assert_eq!(refusal(&|header| header.sweep.limits.minimum_samples = 11), "sweep file");
    assert!(matches!(SweepRecorder::open(folder.path(), &head, false), Err(RecordError::Exists { .. })));
    drop(recorder(folder.path(), &head, true));
}

#[test]
fn damaged_records_are_typed_errors() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert!(matches!(SweepRecord::read_all(folder.path()), Err(RecordError::Missing { .. })));
    assert!(matches!(SweepRecord::read(&folder.path().join("none")), Err(RecordError::Io { .. })));
    let path = folder.path().join("a.jsonl");
    for (text, is_format) in [
        ("", false),
        ("{\"row\":{}}\n", false),
        ("nonsense\n", false),
        ("{\"header\":{\"format\":99}}\n", true),
        ("{\"header\":{\"format\":1}}\n", false),
    ] {
        std::fs::write(&path, text).expect("a file");
        match SweepRecord::read(&path) {
            Err(RecordError::Format { found: 99, .. }) if is_format => {}
            Err(RecordError::Damaged { line: 1, .. }) if !is_format => {}
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn the_largest_sweep_stays_small_when_compressed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    run(folder.path());
    let file = folder.path().join("test-h100.jsonl.gz");
    let bytes = std::fs::metadata(file).expect("it was written").len();
    // 17 rows here, some 900 in `size` and 500 in `vt`, each with up to ten times the samples.
    assert!(bytes * 60 * 10 < 16 << 20, "{bytes} bytes");
}

mod command_line {
    use super::*;

    fn lookback() -> Command {
        Command::cargo_bin("lookback").expect("cargo builds the program")
    }

    #[test]
    fn sweeps_are_listed_with_their_purpose_and_described_without_a_gpu() {
        let output = lookback().arg("sweep").output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}");
        for (name, _) in lookback::lab::measure::sweep::SHIPPED {
            assert!(text.contains(name), "{text}");
            lookback().args(["sweep", name, "--dry-run"]).assert().success();
        }
    }

    #[test]
    fn a_machine_without_a_gpu_is_exit_code_3() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // No GPU is visible, whatever the machine has.
        for arguments in [&["sweep", "selftest"][..], &["sweep", "quick", "--output"][..]] {
            let mut command = lookback();
            command.env("CUDA_VISIBLE_DEVICES", "").args(arguments);
            if arguments.ends_with(&["--output"]) {
                command.arg(folder.path());
            }
            command.assert().code(3);
        }
    }

    #[test]
    fn unusable_sweeps_are_exit_code_2() {
        lookback().args(["sweep", "none-such", "--dry-run"]).assert().code(2);
        lookback().args(["sweep", "quick"]).assert().code(2);
        lookback().args(["compare-records", "none-such", "none-such"]).assert().code(2);
    }

    /// A figure as it would be with other samples.
    fn change_samples(figure: &mut FigureRecord, change: impl FnOnce(&mut Vec<f64>)) {
        change(&mut figure.samples_ns);
        let median_ns = Summary::of(&figure.samples_ns).map(|summary| summary.median);
        let derived = FigureRecord { median_ns, ..FigureRecord::default() };
        let FigureRecord { unavailable, is_trusted, stop, runs_per_sample, empty_frame_ns, samples_ns, .. } =
            std::mem::take(figure);
        *figure =
            FigureRecord { unavailable, is_trusted, stop, runs_per_sample, empty_frame_ns, samples_ns, ..derived };
    }

    #[test]
    fn a_record_compared_with_itself_is_no_regression_and_a_slower_one_is() {
        let (old, new) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        run(old.path());
        let compare = |new: &Path| {
            lookback().arg("compare-records").arg(old.path()).arg(new).arg("--fail-on-regression").assert()
        };
        compare(old.path()).success();
        let mut record = SweepRecord::read(&old.path().join("test-h100.jsonl.gz")).unwrap();
        let mut writer = recorder(new.path(), &record.header, false);
        for row in &mut record.rows {
            if let Some(graph) = &mut row.graph {
                change_samples(graph, |samples| samples.iter_mut().for_each(|time| *time *= 1.06));
            }
            writer.row(row.clone()).unwrap();
        }
        drop(writer);
        compare(new.path()).code(1);
        lookback().arg("compare-records").arg(old.path()).arg(new.path()).assert().success();

        // Too few samples to tell anything by.
        let unclear = tempfile::tempdir().expect("a folder");
        let mut writer = recorder(unclear.path(), &record.header, false);
        for row in &mut record.rows {
            for figure in [Figure::Cold, Figure::Stream, Figure::Graph, Figure::Latency] {
                let Some(figure) = row.figure_mut(figure) else { continue };
                change_samples(figure, |samples| samples.truncate(1));
            }
            writer.row(row.clone()).unwrap();
        }
        drop(writer);
        compare(unclear.path()).code(2);

        // Bounds alone, which no scan is.
        let bounds = tempfile::tempdir().expect("a folder");
        let record = SweepRecord::read(&old.path().join("test-h100.jsonl.gz")).unwrap();
        let mut writer = recorder(bounds.path(), &record.header, false);
        for row in record.rows.into_iter().filter(|row| row.subject == "lookback") {
            let subject = bound_name(&row.subject);
            let row = SweepRow { subject, kind: Kind::Bound, status: Status::NotVerified, verification: None, ..row };
            writer.row(row).unwrap();
        }
        drop(writer);
        let compare_bounds =
            |more: &[&str]| lookback().arg("compare-records").args([bounds.path(), bounds.path()]).args(more).assert();
        compare_bounds(&[]).success();
        compare_bounds(&["--fail-on-regression"]).code(2);
    }

    #[test]
    fn a_row_that_contradicts_itself_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        run(folder.path());
        let record = SweepRecord::read(&folder.path().join("test-h100.jsonl.gz")).unwrap();
        let refused = |change: &dyn Fn(&mut SweepRow), says: &str| {
            let changed = tempfile::tempdir().expect("a folder");
            let mut writer = recorder(changed.path(), &record.header, false);
            let mut row = record.rows.iter().find(|row| row.status == Status::Measured).expect("one").clone();
            change(&mut row);
            writer.row(row).unwrap();
            drop(writer);
            let output = lookback().arg("report").arg(changed.path()).assert().code(2).get_output().clone();
            let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(says), "{said}");
        };
        refused(&|row| row.verification = None, "not all of its");
        refused(&|row| row.verification.as_mut().unwrap().mismatches = 5, "not all of its");
        refused(&|row| row.verification.as_mut().unwrap().compared = 0, "not all of its");
        let graph = |row: &mut SweepRow, by: f64| {
            let graph = row.graph.as_mut().unwrap();
            graph.median_ns = graph.median_ns.map(|median| median * by);
        };
        refused(&|row| graph(row, 50.0), "its figure graph cannot be: its median_ns is");
        refused(&|row| graph(row, 1e-9), "its figure graph cannot be: its median_ns is");
        refused(&|row| graph(row, -1.0), "its median is no time above 0");
        refused(&|row| row.graph.as_mut().unwrap().samples_ns.clear(), "its median is not that of its samples");
        refused(&|row| row.n = 1 << 45, "more than any array here has");
        refused(&|row| graph(row, 1e-300), "times are rounded to 0.1 ns");
        refused(&|row| row.operator = Operator::Affine, "not defined on");
        refused(&|row| row.offsets.input = 32, "offsets 32,0 are more than");
        refused(&|row| row.vt = Some(0), "VT (values per thread) is 0");
        refused(&|row| row.block_threads = Some(33), "threads per block is 33");
        for (kind, subject) in [(Kind::Strategy, "lookforward"), (Kind::Bound, "lookforward-without-waiting")] {
            let unknown = |row: &mut SweepRow| (row.kind, row.subject) = (kind, subject.to_owned());
            refused(&unknown, &format!("there is no strategy '{subject}'"));
        }
        refused(&|row| row.chosen_strategy = Some(Strategy::Chained), "auto comes to a strategy");
        refused(&|row| row.verification.as_mut().unwrap().first_mismatch = Some(0), "not all of its");
        refused(&|row| row.launches = Some(0), "nothing was launched");
        refused(&|row| row.status = Status::NotVerified, "as a bound alone is");
        let figure = |change: fn(&mut FigureRecord), says: &str| {
            refused(&|row| change(row.graph.as_mut().unwrap()), says);
        };
        figure(|graph| graph.clock_mhz = Some(-1.0), "its clock_mhz is -1");
        figure(|graph| graph.standard_error_ns = Some(-1.0), "its standard_error_ns is -1");
        figure(|graph| graph.percent_of_copy = Some(1e308), "its percent_of_copy is");
        figure(|graph| graph.runs_per_sample = 0, "its samples are of no scan");
        figure(|graph| graph.samples_ns.push(1e16), "a sample is no time");
        figure(
            |graph| *graph = FigureRecord { gigabytes_per_second: Some(1.0), ..FigureRecord::default() },
            "it has no samples to follow from",
        );
        // Times of 5e-324 ns in all that is said, which agree with each other.
        let tiny = |graph: &mut FigureRecord| {
            *graph = FigureRecord {
                median_ns: Some(5e-324),
                samples_ns: vec![5e-324],
                runs_per_sample: 1,
                ..FigureRecord::default()
            };
        };
        figure(tiny, "times are rounded to 0.1 ns");
    }

    #[test]
    fn a_line_behind_the_last_one_and_a_point_that_cannot_be_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        run(folder.path());
        let record = SweepRecord::read(&folder.path().join("test-h100.jsonl.gz")).unwrap();
        let refused = |lines: Vec<Line>, says: &str| {
            let changed = tempfile::tempdir().expect("a folder");
            let mut writer = recorder(changed.path(), &record.header, false);
            lines.into_iter().for_each(|line| writer.keep(line).unwrap());
            drop(writer);
            let output = lookback().arg("report").arg(changed.path()).assert().code(2).get_output().clone();
            let said = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(said.contains(says), "{said}");
        };
        let row = || Line::Row(Box::new(record.rows[0].clone()));
        refused(vec![Line::Finished(FINISHED), row()], "behind the line that ends the record");
        refused(vec![row(), Line::Finished(FINISHED), Line::Finished(FINISHED)], "behind the line that ends");
        let mut point = record.points[0].clone();
        point.beside.empty_frame.as_mut().expect("it was measured").clock_mhz = Some(-1.0);
        refused(
            vec![row(), Line::Point(Box::new(point))],
            "what was measured beside its rows cannot be: its clock_mhz is -1",
        );
    }
}

#[cfg(feature = "cuda")]
mod tools {
    use super::common;
    use lookback::cuda::Architecture;
    use lookback::element::{ElementType, Instance};
    use lookback::lab::measure::input::is_supported;
    use object::{Object as _, ObjectSymbol as _};
    use std::collections::BTreeSet;

    /// The kernels of a file for an architecture, by name, which must not spill.
    fn kernels(compiler: &lookback::cuda::Compiler, file: &str, architecture: Architecture) -> BTreeSet<String> {
        let compiled = compiler.tools(file, architecture).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(compiled.resources.spill_bytes(), 0, "{file} for {architecture}");
        let cubin = object::File::parse(&*compiled.cubin).expect("a cubin is an ELF file");
        cubin.symbols().map(|symbol| symbol.name().expect("symbols have names").to_owned()).collect()
    }

    #[test]
    fn the_measurement_kernels_compile_without_spills_for_every_row() {
        let name = "the_measurement_kernels_compile_without_spills_for_every_row";
        let Some(compiler) = common::compiler(name) else { return };
        for architecture in [Architecture::CHECKED[0], Architecture::HOPPER] {
            let found = kernels(&compiler, "measure.cu", architecture);
            let of_type = |&element: &ElementType| {
                let kernels = ["generate", "check_copy", "sum_chunks", "check_rounded"];
                let count = if element.is_float() { 4 } else { 2 };
                kernels.into_iter().take(count).map(move |kernel| format!("{kernel}_{element}"))
            };
            let of_operator =
                |instance: Instance| format!("check_exact_{}_{}", instance.element(), instance.operator());
            let measured = Instance::all().filter(|&instance| is_supported(instance)).map(of_operator);
            for wanted in ElementType::NUMBERS.iter().flat_map(of_type).chain(measured) {
                assert!(found.contains(&wanted), "{wanted} for {architecture}");
            }
        }
    }

    #[test]
    fn every_copy_kernel_compiles_without_spills() {
        let Some(compiler) = common::compiler("every_copy_kernel_compiles_without_spills") else { return };
        let found = kernels(&compiler, "copies.cu", Architecture::HOPPER);
        for kernel in lookback::lab::measure::copies::COPY_KERNELS {
            assert!(found.contains(&kernel.function()), "{kernel}");
        }
        // Those that need no copy engine are there before it, too.
        assert!(!kernels(&compiler, "copies.cu", Architecture::CHECKED[0]).is_empty());
    }

    #[test]
    fn the_kernels_that_verify_know_every_float() {
        let Some(compiler) = common::compiler("the_kernels_that_verify_know_every_float") else { return };
        let found = kernels(&compiler, "verify.cu", Architecture::HOPPER);
        for element in ElementType::NUMBERS.iter().filter(|element| element.is_float()) {
            for wanted in ["compare_exact", "compare_rounded"].map(|kernel| format!("{kernel}_{element}")) {
                assert!(found.contains(&wanted), "{wanted}");
            }
        }
    }
}

#[test]
fn what_a_sweep_is_said_to_take_is_what_the_recorded_sweeps_took() {
    let Some(reports) = common::committed("reports") else { return };
    let records = SweepRecord::read_all(&reports).unwrap();
    for record in &records {
        let header = &record.header;
        let mut peers: Vec<String> =
            record.rows.iter().filter(|row| row.kind == Kind::Peer).map(|row| row.subject.clone()).collect();
        peers.sort();
        peers.dedup();
        let tuning = header.sweep.tuning_on(header.machine.tuning_gpu()).unwrap();
        let (mut points, _) = header.sweep.points_by(&peers, &tuning);
        // A build without the peers does not know which scans they have; the record does.
        for point in &mut points {
            let rows: Vec<&str> =
                record.rows.iter().filter(|row| row.point() == point.key()).map(|row| row.subject.as_str()).collect();
            point
                .entries
                .retain(|entry| entry.subject.kind() != Kind::Peer || rows.contains(&entry.subject.name().as_str()));
        }
        let expected: f64 =
            points.iter().map(|point| run::estimate(point, &header.sweep.limits).expected_seconds).sum();
        let took: f64 = record.points.iter().map(|point| point.seconds).sum();
        // Nobody waits for less than half a minute.
        assert!(
            (0.5..2.0).contains(&(expected / took)) || expected.max(took) < 30.0,
            "{}: {expected:.1} s expected, {took:.1} s",
            header.sweep.name
        );
    }
}

#[test]
fn a_dry_run_checks_what_a_run_would() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sweep.toml");
    let dry_run = |measure: &str| {
        std::fs::write(&path, format!("name = \"a\"\npurpose = \"b\"\n[[measure]]\nsizes = [\"1000\"]\n{measure}"))
            .unwrap();
        let output = assert_cmd::Command::cargo_bin("lookback")
            .unwrap()
            .arg("sweep")
            .arg(&path)
            .arg("--dry-run")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), said)
    };
    for (measure, says) in [
        ("strategies = [\"lookback\"]\nvts = [0]", "VT (values per thread) is 0"),
        ("strategies = [\"lookback\"]\nblocks = [33]", "threads per block is 33"),
    ] {
        let (code, said) = dry_run(measure);
        assert!(code == Some(2) && said.contains(says), "{said}");
    }
    // The copies, and one of the two; the other would need four warps more than a block has.
    let (code, said) = dry_run("strategies = [\"lookahead\"]\nblocks = [256, 1024]");
    assert!(code == Some(0) && said.contains(" 3 subjects"), "{said}");
    assert!(said.contains("cannot be launched (1 times): lookahead: threads per block is 1024"), "{said}");
}
