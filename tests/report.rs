//! Reports of sweeps from records that no GPU made: what is drawn, that it stays the same, and what is spliced.

#![cfg(feature = "cli")]

mod common;

use assert_cmd::cargo::cargo_bin;
use common::{H100, PEER_SCANS, committed};
use lookback::element::{ElementType, Operator};
use lookback::lab::measure::environment::{Machine, NvmlFacts};
use lookback::lab::measure::point::{Kind, Point, Subject};
use lookback::lab::measure::record::{Beside, FigureRecord, Finished, PointDone, Status, SweepHeader, SweepRow};
use lookback::lab::measure::sampling::Figure;
use lookback::lab::measure::stopping::Stop;
use lookback::lab::measure::sweep::SweepFile;
use lookback::lab::measure::targets::evaluation::{TargetResult, evaluate};
use lookback::lab::report::{ReportError, SpliceError, SweepSource, splice, write_sweeps};
use lookback::lab::statistics::Summary;
use lookback::lab::verify::Verification;
use lookback::strategy::Strategy;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

fn machine() -> Machine {
    Machine {
        maximum_core_clock_mhz: Some(1980),
        maximum_memory_clock_mhz: Some(2619),
        nvml: Some(NvmlFacts { ecc: Some(true), ..NvmlFacts::default() }),
        peers: vec!["CUB 3.0.1".to_owned(), "CUB 3.5.0 & <Thrust>".to_owned()],
        ..common::machine(H100)
    }
}

/// Microseconds that stay and bytes a nanosecond, made up but in the order that an H100 has them in.
fn model(subject: &str, n: u64) -> Option<(f64, f64)> {
    let levels = (n as f64).log2();
    Some(match subject {
        "memcpy" => (1.0, 2780.0),
        "auto" => (1.6, 2700.0),
        "copy-16-byte" => (1.1, 2760.0),
        "lookback" => (2.9, 2480.0),
        "reduce-then-scan" => (4.6, 1750.0),
        "scan-then-propagate" => (4.9, 1320.0),
        "chained" => (3.1, if n > 1 << 22 { 1400.0 } else { 2000.0 }),
        "hillis-steele" => (1.2 * levels, 2700.0 / levels),
        "blelloch" => (2.4 * levels, 520.0),
        "sequential" => (2.0, 0.15),
        "naive" => (2.0, 2e6 / n as f64),
        "cub-3.0.1" => (2.6, 2440.0),
        "cub-3.5.0" => (2.4, 2510.0),
        _ if subject.starts_with("cub") => (2.7, 2390.0),
        _ if subject.starts_with("thrust") => (3.4, 2370.0),
        _ => return None,
    })
}

/// Between 0 and 1, and the same for the same words.
fn noise(words: &str, index: usize) -> f64 {
    let hash = words
        .bytes()
        .chain(index.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 40) as f64 / (1u64 << 24) as f64
}

fn figure(figure: Figure, row: &SweepRow, configuration: f64, copy_ns: Option<f64>) -> FigureRecord {
    let (constant, gigabytes) = model(&row.subject, row.n).expect("a subject of the model");
    if figure != Figure::Cold && row.subject.ends_with("synchronous") {
        return FigureRecord { unavailable: Some("it waits for the device".to_owned()), ..FigureRecord::default() };
    }
    let launch = match figure {
        Figure::Cold => 1.6,
        Figure::Stream => 2.9,
        Figure::Graph => 0.0,
        Figure::Behind => 0.2,
        Figure::Call | Figure::UntrackedCall => 4.0,
        Figure::Latency => 8.0,
    };
    let exact = 1e3 * (constant + launch) + row.bytes as f64 / (gigabytes * configuration);
    let mut samples_ns: Vec<f64> =
        (0..12).map(|index| (10.0 * exact * (1.0 + 0.06 * noise(&row.key(), index).powi(2))).round() / 10.0).collect();
    samples_ns.sort_by(f64::total_cmp);
    let summary = Summary::of(&samples_ns).expect("samples");
    let median = summary.median;
    FigureRecord {
        median_ns: Some(median),
        lower_quartile_ns: Some(summary.lower_quartile),
        upper_quartile_ns: Some(summary.upper_quartile),
        minimum_ns: Some(summary.minimum),
        maximum_ns: Some(summary.maximum),
        gigabytes_per_second: Some(row.bytes as f64 / median),
        percent_of_copy: copy_ns.map(|copy| 100.0 * copy / median),
        is_trusted: true,
        stop: Some(Stop::Noise),
        runs_per_sample: 1,
        clock_mhz: Some(1980.0),
        samples_ns,
        ..FigureRecord::default()
    }
}

fn row(point: &Point, subject: &Subject, figures: &[Figure], copies: &mut BTreeMap<String, f64>) -> SweepRow {
    let mut row = SweepRow::new(subject, point.workload, point.n);
    row.status = Status::Measured;
    row.verification = Some(Verification::right(point.n));
    let mut configuration = 1.0;
    if let (Some(vt), Some(block)) = (row.vt, row.block_threads) {
        let bytes = row.element.bytes() as u32;
        let access = (1..=16 / bytes).rev().find(|width| vt % width == 0).unwrap_or(1) * bytes;
        row.access_bytes = Some(access);
        row.registers = Some(24 + vt);
        row.spill_bytes = Some(if vt * block > 40_000 { 8 * vt } else { 0 });
        if vt * block > 50_000 {
            row.status = Status::NotLaunchable;
            row.reason = Some("the block needs more shared memory than there is".to_owned());
            return row;
        }
        let tile = f64::from(vt * block);
        configuration = (tile / 8192.0).min(8192.0 / tile).powf(0.3) * (f64::from(access) / 16.0).powf(0.15);
    }
    for &of in figures {
        let record = figure(of, &row, configuration, copies.get(of.name()).copied());
        if let (Kind::Copy, "memcpy", Some(median)) = (row.kind, row.subject.as_str(), record.median_ns) {
            copies.insert(of.name().to_owned(), median);
        }
        *row.figure_mut(of) = Some(record);
    }
    row
}

/// The record of a shipped sweep on a GPU that never was.
fn record(folder: &Path, sweep: &str) -> PathBuf {
    let sweep = SweepFile::open(sweep).expect("a shipped sweep");
    let command = format!("lookback sweep {} --output reports", sweep.name);
    let header = SweepHeader { machine: machine(), ..common::header(H100, sweep.clone(), &command) };
    let mut recorder = common::recorder(folder, &header, false);
    let (points, skipped) = sweep.points(&PEER_SCANS.map(str::to_owned));
    for note in skipped {
        recorder.skipped(note).unwrap();
    }
    for point in points {
        let mut copies = BTreeMap::new();
        for entry in &point.entries {
            // Thrust has an exclusive scan only, CUB's fixed order is for floats, sums in a narrow type for narrow ones.
            let mode = entry.subject.mode().map(|mode| mode.to_string()).unwrap_or_default();
            let name = entry.subject.name();
            let is_float = matches!(point.workload.instance().element(), ElementType::F32 | ElementType::F64);
            let is_narrow = point.workload.instance().element().bytes() < 4;
            if (name.starts_with("thrust") && mode != "exclusive")
                || (name.ends_with("run-to-run") && !is_float)
                || (name.ends_with("narrow-sum") && !is_narrow)
            {
                continue;
            }
            recorder.row(row(&point, &entry.subject, &entry.figures, &mut copies)).unwrap();
        }
        recorder.point(PointDone::new(point.key(), 1, Beside::default(), 1.0)).unwrap();
    }
    let finished = Finished { seconds: 100.0, median_clock_mhz: Some(1980.0), temperature_celsius: Some(40) };
    recorder.finish(finished).unwrap()
}

fn run(arguments: &[&str]) -> Output {
    Command::new(cargo_bin("lookback")).args(arguments).output().expect("the program starts")
}

#[track_caller]
fn run_well(arguments: &[&str]) {
    let output = run(arguments);
    let text = [output.stdout, output.stderr].concat();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&text));
}

/// A record alone in a folder.
fn source(folder: &Path, sweep: &str) -> SweepSource {
    SweepSource::read_all(&record(folder, sweep)).unwrap().remove(0)
}

/// Draws one record; returns the number of pictures and the page.
fn draw(source: SweepSource) -> (usize, String) {
    let page = source.directory.join("index.html");
    let pictures = write_sweeps(&[source], &page).unwrap();
    (pictures, fs::read_to_string(page).unwrap())
}

fn files(folder: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.is_file())
        .map(|path| {
            let changed = path.metadata().unwrap().modified().unwrap();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), (fs::read(&path).unwrap(), changed))
        })
        .collect()
}

fn render(folder: &Path) -> usize {
    write_sweeps(&SweepSource::read_all(folder).unwrap(), &folder.join("index.html")).unwrap()
}

#[test]
fn every_kind_of_picture_is_drawn_and_the_page_needs_no_network() {
    // Stays, so that one can look at the pictures.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    let _ = fs::remove_dir_all(&folder);
    for sweep in ["size", "vt", "types", "seeds"] {
        record(&folder, sweep);
    }
    run_well(&["report", folder.to_str().unwrap()]);
    let files = files(&folder);
    let expected = [
        "size-h100-throughput-i32-sum-inclusive.svg",
        "size-h100-throughput-i32-sum-exclusive.svg",
        "size-h100-copy-u8-sum-inclusive.svg",
        "size-h100-time-graph-i32-sum-inclusive.svg",
        "size-h100-time-stream-i32-sum-inclusive.svg",
        "size-h100-time-latency-i32-sum-inclusive.svg",
        "size-h100-relative-i32-sum-inclusive.svg",
        "size-h100-speed-up-graph-i32-sum-inclusive.svg",
        "vt-h100-vt-lines-lookback-2-16-i32-sum-inclusive.svg",
        "vt-h100-vt-map-reduce-then-scan-2-28-i32-sum-inclusive.svg",
        "types-h100-types-sum-inclusive-2-28.svg",
        "index.html",
    ];
    for name in expected {
        assert!(files.contains_key(name), "{name} is not among {:?}", files.keys());
    }
    for (name, (bytes, _)) in files.iter().filter(|(name, _)| name.ends_with(".svg") || name.ends_with(".html")) {
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(!text.contains("NaN") && !text.contains("=\"inf"), "{name}");
        assert!(!text.contains("src=") && !text.contains("href=\"http"), "{name} needs the network");
        for tag in text.split('<') {
            assert!(tag.matches(" class=").count() <= 1, "two classes in <{tag} of {name}");
        }
    }
    let page = String::from_utf8(files["index.html"].0.clone()).unwrap();
    for part in
        ["NVIDIA H100 80GB HBM3", "lookback sweep vt --output reports", "data-series=\"cub-3.5.0\"", "&lt;Thrust"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("not launchable: the block needs more shared memory"));
}

#[test]
fn auto_is_a_line_by_size_and_the_table_says_what_it_came_to() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = folder.path().join("sweep.toml");
    let sizes = r#"sizes = ["2^10", "2^14", "2^18", "2^20", "2^24", "2^28"]"#;
    let text =
        format!("name = \"chosen\"\npurpose = \"test\"\n[[measure]]\n{sizes}\nstrategies = [\"auto\", \"lookback\"]\n");
    fs::write(&sweep, text).unwrap();
    record(folder.path(), sweep.to_str().unwrap());
    render(folder.path());
    let files = files(folder.path());
    let text = |name: &str| String::from_utf8(files[name].0.clone()).unwrap();
    assert!(text("chosen-h100-throughput-i32-sum-inclusive.svg").contains("data-series=\"auto\""));
    for strategy in ["single-block", "one-wave", "lookahead"] {
        assert!(text("index.html").contains(&format!("auto: {strategy}")), "{strategy}");
    }
    // One configuration a size, whatever its VT: nothing to draw by VT.
    assert!(!files.keys().any(|name| name.contains("-vt-")), "{:?}", files.keys());
}

/// A sweep by size whose cold times are these, with the frame: nanoseconds by subject and bytes of the array.
fn contest(folder: &Path, types: &str, sizes: &str, time: impl Fn(&str, u64) -> f64) -> SweepSource {
    let sweep = folder.join("sweep.toml");
    let text = format!(
        "name = \"contest\"\npurpose = \"test\"\n[[measure]]\ntypes = [{types}]\nmodes = [\"inclusive\"]\nsizes = [{sizes}]\n\
         strategies = [\"auto\", \"lookback\", \"reduce-then-scan\"]\npeers = [\"all\"]\n"
    );
    fs::write(&sweep, text).unwrap();
    let mut source = source(folder, sweep.to_str().unwrap());
    const FRAME: f64 = 1000.0;
    for row in &mut source.record.rows {
        let nanoseconds = time(&row.subject, row.bytes / 2) - FRAME;
        for figure in [Figure::Cold, Figure::Stream, Figure::Graph] {
            let Some(record) = row.figure_mut(figure) else { continue };
            // What a GPU's cache makes of small arrays on a stream is no yardstick of a cold run.
            let of = nanoseconds + if figure == Figure::Cold { 0.0 } else { -900.0 };
            (record.median_ns, record.lower_quartile_ns, record.upper_quartile_ns) = (Some(of), Some(of), Some(of));
            record.samples_ns.fill(of);
            record.empty_frame_ns = (figure == Figure::Cold).then_some(FRAME);
        }
    }
    source
}

/// The titles of the pictures of these two kinds, by the ends of their names.
fn answers(folder: &Path) -> BTreeMap<String, String> {
    let title = |svg: &str| {
        let (_, rest) = svg.split_once("<title>").unwrap();
        rest.split_once("</title>").unwrap().0.to_owned()
    };
    let of = |(name, (bytes, _)): (String, (Vec<u8>, SystemTime))| {
        let name = name.strip_prefix("contest-h100-")?.strip_suffix("-sum-inclusive.svg")?.to_owned();
        let is_contest = name.starts_with("copy-") || name.starts_with("relative-");
        is_contest.then(|| (name, title(&String::from_utf8(bytes).unwrap())))
    };
    files(folder).into_iter().filter_map(of).collect()
}

const QUARTERS: &str =
    "\"4KiB\", \"5KiB\", \"6KiB\", \"7KiB\", \"8KiB\", \"64KiB\", \"1MiB\", \"8MiB\", \"64MiB\", \"512MiB\", \"1GiB\"";

#[test]
fn two_pictures_say_how_fast_it_is_beside_the_copy_and_beside_the_best_cub() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |bytes: u64| 2000.0 + bytes as f64 / 2.0;
    // `auto` is slower than CUB at 8 MiB alone, and CUB's fastest is a variant that other pictures leave out.
    let source = contest(folder.path(), "\"i32\", \"u8\"", QUARTERS, |subject, bytes| match subject {
        "memcpy" => copy(bytes),
        "copy-16-byte" => copy(bytes) / 3.0,
        "auto" if bytes >= 64 << 20 => copy(bytes) / 0.978,
        "auto" if bytes == 8 << 20 => copy(bytes) / 0.5,
        "auto" => copy(bytes) / 0.9,
        "cub-3.0.1-64-bit-count" => copy(bytes) / 0.755,
        subject if subject.starts_with("cub") => copy(bytes) / 0.6,
        _ => copy(bytes) / 0.4,
    });
    let (_, page) = draw(source.clone());
    let answers = answers(folder.path());
    for element in ["i32", "u8"] {
        let place = format!("{element} sum scans, inclusive, cold L2, H100 80GB HBM3");
        assert_eq!(
            answers[&format!("copy-{element}")],
            format!("{place}: auto reaches at least 97 % of cudaMemcpy's rate from 64 MiB on, the best CUB 75 %")
        );
        assert_eq!(
            answers[&format!("relative-{element}")],
            format!(
                "{place}: auto takes 0.77 (64 MiB) to 1.51 times (8 MiB) as long as the best CUB, longer at 1 of 11 sizes"
            )
        );
    }
    let picture = fs::read_to_string(folder.path().join("contest-h100-copy-i32-sum-inclusive.svg")).unwrap();
    for part in ["data-series=\"auto\"", "data-series=\"best CUB\"", "data-series=\"reduce-then-scan\"", ">64 KiB<"] {
        let picture = picture.replace('\n', "");
        assert!(picture.contains(part), "{part}");
    }
    assert!(!picture.contains("thrust") && !picture.contains("data-series=\"cub"), "four lines");
    assert_eq!(picture.matches("stroke-dasharray").count(), 2 * 3, "dashes tell them apart, in the legend too");
    assert!(picture.contains("<title>cub-3.0.1-64-bit-count, 64 KiB: 75.5"), "which CUB it is, is shown on hover");
    assert!(page.contains("left in, on both sides"), "the caption says what the figure is");
    // Types that have pictures by size have none by type: a picture for each of many sizes.
    assert!(!files(folder.path()).keys().any(|name| name.contains("-types-")));
}

#[test]
fn a_picture_does_not_hide_where_cub_is_faster_nor_flatters_beside_a_slow_copy() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |bytes: u64| 2000.0 + bytes as f64 / 2.0;
    let sizes =
        "\"4KiB\", \"5KiB\", \"64KiB\", \"1MiB\", \"8MiB+1\", \"8MiB+16\", \"64MiB\", \"512MiB+1\", \"512MiB+16\"";
    let source = contest(folder.path(), "\"u8\"", sizes, |subject, bytes| match subject {
        // Slow at odd sizes, and once for no reason.
        "memcpy" if bytes % 16 != 0 => 10.0 * copy(bytes),
        "memcpy" => copy(bytes),
        "auto" if bytes < 64 << 10 => copy(bytes) / 0.405,
        "auto" => copy(bytes) / 0.505,
        subject if subject.starts_with("cub") => copy(bytes) / 1.255,
        _ => copy(bytes) / 0.4,
    });
    draw(source);
    let answers = answers(folder.path());
    let place = "u8 sum scans, inclusive, cold L2, H100 80GB HBM3";
    // At 8 and 512 MiB and a byte it is the copy of 15 bytes more that counts, or it would be 505 %.
    assert_eq!(
        answers["copy-u8"],
        format!("{place}: auto reaches at least 50 % of cudaMemcpy's rate from 64 KiB on, the best CUB 125 %")
    );
    let relative = &answers["relative-u8"];
    assert!(relative.contains("auto takes 2.49 (") && relative.contains(") to 3.10 times ("), "{relative}");
    assert!(relative.ends_with("as long as the best CUB, longer at 9 of 9 sizes"), "{relative}");
    // Beyond 100, nothing clamped.
    let picture = fs::read_to_string(folder.path().join("contest-h100-copy-u8-sum-inclusive.svg")).unwrap();
    assert!(picture.replace('\n', "").contains(">120<"));
}

#[test]
fn records_without_auto_cub_or_copy_have_the_pictures_that_they_can_have() {
    let kinds = |leave_out: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let mut source = contest(folder.path(), "\"i32\"", QUARTERS, |_, bytes| 2000.0 + bytes as f64);
        source.record.rows.retain(|row| !leave_out.iter().any(|start| row.subject.starts_with(start)));
        draw(source);
        answers(folder.path())
    };
    let titles = kinds(&["auto"]);
    assert!(titles.len() == 2 && titles.values().all(|title| title.contains(": lookback ")), "{titles:?}");
    let titles = kinds(&["cub"]);
    assert!(titles.len() == 1 && !titles["copy-i32"].contains("CUB"), "{titles:?}");
    assert_eq!(kinds(&["memcpy"]).into_keys().collect::<Vec<_>>(), ["relative-i32"]);
    assert!(kinds(&["auto", "lookback", "reduce-then-scan"]).is_empty());
}

#[test]
fn rendering_again_changes_no_file_and_removes_pictures_that_are_no_more() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "quick");
    assert!(render(folder.path()) > 0);
    let before = files(folder.path());
    let (old, _) = before.iter().find(|(name, _)| name.ends_with(".svg")).unwrap();
    fs::copy(folder.path().join(old), folder.path().join("quick-h100-throughput-of-yesterday.svg")).unwrap();
    // Named as ours are, and drawn by somebody else.
    let others = ["drawn-by-hand.svg", "quick-h100-throughput-holiday.svg"];
    others.iter().for_each(|name| fs::write(folder.path().join(name), "<svg>mine</svg>").unwrap());
    render(folder.path());
    let mut after = files(folder.path());
    assert!(others.iter().all(|name| after.remove(*name).is_some()));
    assert_eq!(after, before, "neither bytes nor times of change differ");
    let elsewhere = tempfile::tempdir().unwrap();
    let record = "quick-h100.jsonl.gz";
    fs::copy(folder.path().join(record), elsewhere.path().join(record)).unwrap();
    render(elsewhere.path());
    for (name, (bytes, _)) in files(elsewhere.path()) {
        assert!(before[&name].0 == bytes, "{name} depends on the folder or on the past");
    }
}

#[test]
fn records_whose_names_begin_alike_keep_their_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let first = record(folder.path(), "quick");
    let copy = folder.path().join("quick-h100-copy.jsonl.gz");
    fs::copy(&first, &copy).unwrap();
    let pictures = || files(folder.path()).into_keys().filter(|name| name.ends_with(".svg")).count();
    let drawn = render(folder.path());
    assert!(drawn > 0 && pictures() == drawn, "{drawn} drawn, {} left", pictures());
    // Nor does a report of one of them remove the other's.
    run_well(&["report", first.to_str().unwrap()]);
    assert_eq!(pictures(), drawn);

    let twice = folder.path().join("quick-h100.jsonl");
    fs::write(&twice, decompressed(&first)).unwrap();
    let output = run(&["report", folder.path().to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("quick-h100.jsonl.gz") && said.contains("quick-h100.jsonl and "), "{said}");
}

/// The committed pictures and pages, and the tables in documents, are what the committed records give: bytes that
/// depended on a machine, a build or a past would differ here.
#[test]
fn committed_reports_are_reproduced_byte_for_byte() {
    if committed("reports").is_none() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let is_data = |name: &str| name.ends_with(".jsonl.gz") || name.ends_with(".json");
    let is_drawn = |name: &str| name.ends_with(".svg") || name.ends_with(".html");
    for reports in ["reports", "reports/h100", "reports/h100/compare"] {
        let kept = files(&root.join(reports));
        let copy = folder.path().join(reports);
        fs::create_dir_all(&copy).unwrap();
        for (name, (bytes, _)) in kept.iter().filter(|(name, _)| is_data(name)) {
            fs::write(copy.join(name), bytes).unwrap();
        }
        run_well(&["report", copy.to_str().unwrap()]);
        let drawn = files(&copy);
        let names = |files: &BTreeMap<String, (Vec<u8>, SystemTime)>| {
            files.keys().filter(|name| is_drawn(name)).cloned().collect::<Vec<_>>()
        };
        assert!(!names(&drawn).is_empty());
        assert_eq!(names(&drawn), names(&kept), "render them anew: lookback report {reports}");
        for name in names(&drawn) {
            assert!(drawn[&name].0 == kept[&name].0, "{name} differs; render it anew: lookback report {reports}");
        }
    }
    for (document, records) in [
        ("docs/strategies.md", "reports"),
        ("reports/README.md", "reports"),
        ("reports/h100/README.md", "reports/h100"),
    ] {
        let (document, records) = (root.join(document), root.join(records));
        run_well(&["report", "--splice", document.to_str().unwrap(), records.to_str().unwrap(), "--check"]);
    }
}

#[test]
fn a_figure_that_met_no_criterion_is_marked_in_pictures_and_tables() {
    let folder = tempfile::tempdir().unwrap();
    let source = source(folder.path(), "quick");
    let picture = |rows: &[&str]| {
        let mut source = source.clone();
        for row in source.record.rows.iter_mut().filter(|row| rows.contains(&row.subject.as_str()) && row.n == 1 << 20)
        {
            let cold = row.cold.as_mut().unwrap();
            (cold.is_trusted, cold.stop) = (false, Some(Stop::MaximumSamples));
        }
        let (_, page) = draw(source);
        let picture = |kind: &str| {
            fs::read_to_string(folder.path().join(format!("quick-h100-{kind}-i32-sum-exclusive.svg"))).unwrap()
        };
        // The background is the first thing in the colour of the paper.
        let hollow = |kind: &str| picture(kind).matches("class=\"paper-fill\"").count() - 1;
        (["throughput", "copy", "relative"].map(hollow), page)
    };
    let (hollow, text) = picture(&[]);
    assert_eq!(hollow, [0, 0, 0]);
    assert!(!text.contains("hollow: no noise criterion") && !text.contains("no noise criterion was met"));
    // The point, and the sign that the picture's own key explains.
    let (hollow, text) = picture(&["lookback"]);
    assert_eq!(hollow, [2, 2, 2]);
    assert!(text.contains("hollow: no noise criterion") && text.contains("?: no noise criterion was met"));
    let (hollow, _) = picture(&["memcpy"]);
    assert!(
        hollow[0] == 2 && hollow[1] > 3 && hollow[2] == 0,
        "a percentage of a copy that is not trusted: {hollow:?}"
    );
}

#[test]
fn wrong_rows_are_in_no_picture_and_in_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = source(folder.path(), "quick");
    let is_lookback = |row: &&mut SweepRow| row.subject == Strategy::Lookback.name();
    source.record.rows.iter_mut().filter(is_lookback).for_each(|row| row.status = Status::Wrong);
    let (_, page) = draw(source);
    assert!(page.contains("WRONG") && !page.contains("data-series=\"lookback\""));
    assert!(page.contains("data-series=\"reduce-then-scan\""));
}

#[test]
fn a_record_without_rows_has_a_page_and_no_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = source(folder.path(), "seeds");
    source.record.rows.clear();
    source.record.finished = None;
    let (pictures, page) = draw(source);
    assert!(pictures == 0 && page.contains("interrupted"));
}

/// Where a part of a page begins.
#[track_caller]
fn place(page: &str, part: &str) -> usize {
    page.find(part).unwrap_or_else(|| panic!("{part} is not on the page"))
}

#[test]
fn a_page_begins_with_what_came_out_and_folds_what_few_ask_for() {
    let Some(reports) = committed("reports") else { return };
    let folder = tempfile::tempdir().unwrap();
    for (from, name) in [(".", "targets-h200.jsonl.gz"), ("h100", "seeds-h100.jsonl.gz"), ("h100", "mutants-h100.json")]
    {
        fs::copy(reports.join(from).join(name), folder.path().join(name)).unwrap();
    }
    let contest = contest(folder.path(), "\"i32\"", QUARTERS, |_, bytes| 2000.0 + bytes as f64);
    let mut sources = SweepSource::read_all(folder.path()).unwrap();
    sources.retain(|source| source.stem != contest.stem);
    sources.push(contest);
    let page = folder.path().join("index.html");
    write_sweeps(&sources, &page).unwrap();
    let page = fs::read_to_string(page).unwrap();

    // Conclusion, contents, targets, what pictures answer, the rest: not by the alphabet.
    let order = [
        "<h2>What came out</h2>",
        "<h2>Contents</h2>",
        "<h2 id=\"targets-h200\">",
        "<h2 id=\"contest-h100\">",
        "<h2 id=\"seeds-h100\">",
    ];
    let places = order.map(|part| place(&page, part));
    assert!(places.is_sorted(), "{places:?}");
    let (conclusion, contents) = (&page[places[0]..places[1]], &page[places[1]..places[2]]);
    // Whatever the committed record says.
    let targets = &sources.iter().find(|source| source.stem == "targets-h200").unwrap().record;
    let evaluation = evaluate(&[targets]);
    let (missed, rows) = (evaluation.count(TargetResult::Miss), targets.rows.len());
    let verdict = if missed == 0 { "good" } else { "bad" };
    for part in [
        format!("<span class=\"{verdict}\">{}</span>", evaluation.summary()),
        ": auto reaches at least 99 % of cudaMemcpy's rate at every size".to_owned(),
        " mutants killed, ".to_owned(),
    ] {
        assert!(conclusion.contains(&part), "{part} is not in {conclusion}");
    }
    assert_eq!(conclusion.matches("<br>Missed: ").count(), missed);
    for part in ["#targets-h200", "#contest-h100", "#seeds-h100", "mutants-h100.html"] {
        assert!(contents.contains(&format!("href=\"{part}\"")), "{part} is not in {contents}");
    }
    // Every place that is linked to is there.
    for link in page.split("href=\"#").skip(1) {
        let id = link.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    for source in &sources {
        assert!(page.contains(&format!("href=\"{}\"", source.file_name)), "a link to {}", source.file_name);
    }
    // The verdict stands beside the target, in colour.
    assert!(page.contains("<th>target</th><th>verdict</th>"));
    assert_eq!(page.matches("<td class=\"good\">pass</td>").count(), evaluation.count(TargetResult::Pass));
    assert_eq!(page.matches("<td class=\"bad\">MISS</td>").count(), missed);
    // Long tables are folded, and so are all but the pictures that answer.
    let all_rows = place(&page, &format!("<summary>All {rows} rows</summary>"));
    let opened = page[..all_rows].matches("<details>").count();
    assert_eq!(opened, page[..all_rows].matches("</details>").count() + 1);
    let mut open_rows = 0;
    let mut depth = 0;
    for line in page.lines() {
        depth += line.matches("<details").count();
        depth -= line.matches("</details>").count();
        open_rows += usize::from(depth == 0 && line.starts_with("<tr>"));
    }
    assert!(open_rows < 80, "{open_rows} rows are open");
    let contest = &page[place(&page, "<h2 id=\"contest-h100\">")..];
    let more = place(contest, "more pictures</summary>");
    assert!(place(contest, "<figure id=\"contest-h100-relative") < more);
    assert!(place(contest, "<figure id=\"contest-h100-throughput") > more);
}

#[test]
fn a_page_has_a_narrow_layout_and_shows_values_on_hover() {
    let folder = tempfile::tempdir().unwrap();
    let (pictures, page) = draw(source(folder.path(), "quick"));
    assert_eq!(page.matches("<div class=\"wide\">").count(), pictures);
    assert_eq!(page.matches("<div class=\"narrow\">").count(), pictures);
    // A telephone of 420 pixels has 388 between its margins.
    for narrow in page.split("<div class=\"narrow\">").skip(1) {
        let (_, rest) = narrow.split_once("width=\"").unwrap();
        assert!(rest.split('"').next().unwrap().parse::<u32>().unwrap() <= 386);
    }
    assert!(page.contains("@media(max-width:640px){.wide{display:none}.narrow{display:block}}"));
    assert!(page.contains("<title>lookback, n = 2^20: "), "{}", folder.path().display());
    // What is committed is wide and by itself.
    for (name, (bytes, _)) in files(folder.path()).iter().filter(|(name, _)| name.ends_with(".svg")) {
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.contains("<svg role=\"img\" width=\"900\""), "{name}");
        assert!(text.contains("prefers-color-scheme:dark") && text.contains("--dark:#"), "{name}");
    }
}

#[test]
fn one_file_has_a_page_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = record(folder.path(), "seeds");
    run_well(&["report", path.to_str().unwrap()]);
    assert!(folder.path().join("seeds-h100.html").exists() && !folder.path().join("index.html").exists());
}

const DOCUMENT: &str = "# A document\n\n<!-- lookback:begin size-h100 -->\nold\n<!-- lookback:end size-h100 -->\n\n\
    Between.\n\n<!-- lookback:begin seeds-h100 -->\n<!-- lookback:end seeds-h100 -->\n\
    <!-- lookback:begin records -->\n<!-- lookback:end records -->\n\
    <!-- lookback:begin figures -->\n<!-- lookback:end figures -->\nAfter.\n";

#[test]
fn splicing_fills_tables_checks_them_and_is_idempotent() {
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("README.md");
    let reports = folder.path().join("reports");
    record(&reports, "size");
    record(&reports, "seeds");
    fs::write(&document, DOCUMENT).unwrap();
    let name = document.to_str().unwrap();
    assert_eq!(run(&["report", "--splice", name, "--check"]).status.code(), Some(1));
    let advice = run(&["report", "--splice", name, reports.to_str().unwrap(), "--check"]).stdout;
    let command = format!("run lookback report --splice {name} {}\n", reports.display());
    assert!(String::from_utf8_lossy(&advice).ends_with(&command), "{}", String::from_utf8_lossy(&advice));
    assert_eq!(fs::read_to_string(&document).unwrap(), DOCUMENT, "a check writes nothing");
    assert_eq!(run(&["report", "--splice", name]).status.code(), Some(0));
    let filled = fs::read_to_string(&document).unwrap();
    println!("{filled}");
    let head = "| n | figure | auto | reduce-then-scan | lookback | cub-3.0.1 | cub-3.5.0 | memcpy |";
    for part in [head, "| 2^10 | cold |", "| 2^30 | graph |", "cold, × thrust-3.5.0", "\nBetween.\n", "\nAfter.\n"] {
        assert!(filled.contains(part), "{part} is not in\n{filled}");
    }
    assert!(filled.contains("](reports/size-h100-throughput-i32-sum-inclusive.svg)") && !filled.contains("\nold\n"));
    // Where a record is from: its header's day, commit, kernels and card.
    let header = &SweepSource::read_all(&reports).unwrap()[0].record.header;
    let (day, _) = header.date.split_once('T').unwrap();
    let commit = header.program.git_commit.as_deref().and_then(|commit| commit.get(..7)).unwrap_or("–");
    let (kernels, card) = (&header.program.kernels_sha256, &header.machine.gpu_digest);
    let row = format!("| [seeds-h100](reports/seeds-h100.jsonl.gz) | {day} | {commit} | {kernels} | {card} | ");
    assert!(filled.contains(&row), "{row} is not in\n{filled}");
    assert_eq!(run(&["report", "--splice", name, "--check"]).status.code(), Some(0));
    assert_eq!(run(&["report", "--splice", name, reports.to_str().unwrap()]).status.code(), Some(0));
    assert_eq!(fs::read_to_string(&document).unwrap(), filled);
}

#[test]
#[cfg(feature = "cpu")]
fn an_account_of_costs_is_spliced_by_the_name_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("document.md");
    let reports = folder.path().join("reports");
    record(&reports, "seeds");
    let account = reports.join("costs-cpu.json");
    let words = ["costs", "--device", "cpu", "--n", "1000", "--strategies", "lookback,reduce-then-scan", "--output"];
    run_well(&[&words[..], &[account.to_str().unwrap()]].concat());
    fs::write(&document, "<!-- lookback:begin costs-cpu -->\n<!-- lookback:end costs-cpu -->\n").unwrap();
    run_well(&["report", "--splice", document.to_str().unwrap()]);
    let filled = fs::read_to_string(&document).unwrap();
    let head = "| strategy | VT | block | launches | element-moves | moves an element, counted |\n|---|---:";
    for part in ["\nWhat a scan costs, u32 sum, inclusive, n = 1000: ", head, "| 1 | 2n | 2.000 |\n"] {
        assert!(filled.contains(part), "{part} is not in\n{filled}");
    }
    let damaged = fs::read_to_string(&account).unwrap().replace("\"format\": 1", "\"format\": 7");
    fs::write(&account, damaged).unwrap();
    let error = run(&["report", "--splice", document.to_str().unwrap()]);
    assert_eq!(error.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&error.stderr).contains("has format 7"));
}

#[test]
fn markers_that_cannot_be_filled_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "seeds");
    let sources = SweepSource::read_all(folder.path()).unwrap();
    let document = folder.path().join("document.md");
    let refused = |text: &str| {
        fs::write(&document, text).unwrap();
        match splice(&document, &sources) {
            Err(ReportError::Splice(error)) => error,
            other => panic!("{text:?} gave {other:?}"),
        }
    };
    let error = refused("\n<!-- lookback:begin size-h200 -->\n<!-- lookback:end size-h200 -->\n");
    assert!(matches!(&error, SpliceError::Unknown { line: 2, name, .. } if name == "size-h200"), "{error}");
    assert!(error.to_string().contains("seeds-h100, records, figures"), "{error}");
    if let Some(kept) = committed("reports/h100/mutants-h100.json") {
        fs::copy(kept, folder.path().join("mutants-h100.json")).unwrap();
        let error = refused("<!-- lookback:begin size-h200 -->\n<!-- lookback:end size-h200 -->\n");
        assert!(error.to_string().contains("seeds-h100, mutants-h100, records, figures, strategies"), "{error}");
    }
    for text in [
        "<!-- lookback:begin seeds-h100 -->\n",
        "<!-- lookback:end seeds-h100 -->\n",
        "<!-- lookback:begin seeds-h100 -->\n<!-- lookback:end figures -->\n",
        "<!-- lookback:begin seeds-h100 -->\n<!-- lookback:begin figures -->\n",
    ] {
        assert!(matches!(refused(text), SpliceError::Unpaired { .. }), "{text}");
    }
    // Markers in code are an example, and code is what CommonMark takes for it.
    let marker = "<!-- lookback:begin seeds-h100 -->\n";
    for (before, is_code) in [
        ("```\n", true),
        ("   ~~~~ text\n", true),
        ("~~~ a`b\n```\n~~\n", true),
        ("````md\n```\n", true),
        ("```\n``` x\n", true),
        ("```\n    ```\n", true),
        ("````md\n```\n````\n", false),
        ("~~~\n~~~~ \r\n", false),
        ("```a``` is code in a line\n", false),
        ("    ```\n", false),
        ("``\n", false),
        ("    ", true),
        ("\t", true),
        ("- ```sh\n  lookback report\n", false),
        ("- ```sh\n  lookback report\n  ```\n", false),
        ("- ```sh\n  ", true),
        ("\u{feff}", false),
    ] {
        let error = refused(&format!("{before}{marker}"));
        assert_eq!(matches!(error, SpliceError::NoMarker { .. }), is_code, "{before}: {error}");
    }
    let output = run(&["report", "--check", folder.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "--check is for --splice");
}

#[test]
fn operators_and_types_of_a_record_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = source(folder.path(), "quick");
    let mut rows = source.record.rows.clone();
    rows.iter_mut().for_each(|row| row.operator = Operator::Max);
    source.record.rows.extend(rows);
    draw(source);
    let files = files(folder.path());
    for operator in ["sum", "max"] {
        assert!(files.contains_key(&format!("quick-h100-throughput-i32-{operator}-exclusive.svg")));
    }
}

#[test]
fn a_table_of_mutants_is_drawn_by_its_name_and_what_is_none_is_told_so() {
    let Some(kept) = committed("reports/h100/mutants-h100.json") else { return };
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("mutants-h100.json");
    fs::copy(kept, &table).unwrap();
    for path in [&table, &folder.path().to_path_buf()] {
        let output = run(&["report", path.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said} {}", String::from_utf8_lossy(&output.stderr));
        assert!(said.starts_with("1 table of mutants rendered in "), "{said}");
        for name in ["mutants-h100.svg", "mutants-h100.html"] {
            fs::remove_file(folder.path().join(name)).unwrap();
        }
    }
    // A survivor is a wrong result.
    let mut survivor: serde_json::Value = serde_json::from_slice(&fs::read(&table).unwrap()).unwrap();
    let row = &mut survivor["mutants"].as_array_mut().unwrap()[0];
    row["verdict"] = "survived".into();
    row["detectors"] = serde_json::json!({ "weak-memory": { "verdict": "survived", "runs": 9, "seconds": 1.0 } });
    fs::write(&table, survivor.to_string()).unwrap();
    for path in [&table, &folder.path().to_path_buf()] {
        assert_eq!(run(&["report", path.to_str().unwrap()]).status.code(), Some(1));
    }
    // Beside a comparison, too.
    let comparison = tempfile::tempdir().unwrap();
    let at = comparison.path().to_str().unwrap();
    run(&["compare", "--device", "cpu", "--sizes", "100", "--strategies", "chained", "--quiet", "--output", at]);
    assert_eq!(run(&["report", at]).status.code(), Some(0));
    fs::copy(&table, comparison.path().join("mutants-h100.json")).unwrap();
    assert_eq!(run(&["report", at]).status.code(), Some(1));
    fs::remove_file(&table).unwrap();
    let other = folder.path().join("package.json");
    fs::write(&other, "{}").unwrap();
    let output = run(&["report", other.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("package.json is no table of mutants") && said.contains("records of sweeps"), "{said}");
}

#[test]
fn a_row_that_stands_twice_and_a_row_of_another_gpu_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = record(folder.path(), "seeds");
    let text = decompressed(&path);
    let row = text.lines().find(|line| line.starts_with("{\"row\"")).unwrap();
    let digest = "\"gpu_digest\":\"";
    assert!(row.contains(digest), "each row says its GPU: {row}");
    let changed = folder.path().join("changed.jsonl");
    let refused = |text: String, says: &str| {
        fs::write(&changed, text).unwrap();
        for words in [
            &["report"][..],
            &["compare", "--sweep", "targets", "--record"],
            &["compare-records", path.to_str().unwrap()],
        ] {
            let output = run(&[words, &[changed.to_str().unwrap()]].concat());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
            assert!(said.contains(says), "{words:?}: {said}");
        }
    };
    refused(format!("{text}{row}\n"), "is the same configuration as line ");
    refused(text.replacen(digest, &format!("{digest}f"), 2).replacen(&format!("{digest}f"), digest, 1), "another GPU");
}

fn decompressed(path: &Path) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn times_that_are_none_and_what_does_not_follow_from_them_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = decompressed(&record(folder.path(), "quick"));
    let changed = folder.path().join("changed.jsonl");
    let read = |spoil: &dyn Fn(&mut serde_json::Value)| {
        let mut lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_lookback = |line: &&mut serde_json::Value| line["row"]["subject"] == "lookback";
        spoil(&mut lines.iter_mut().find(is_lookback).unwrap()["row"]);
        fs::write(&changed, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        SweepSource::read_all(&changed)
    };
    assert!(read(&|_| {}).is_ok());
    let times = ["median_ns", "lower_quartile_ns", "upper_quartile_ns", "minimum_ns", "maximum_ns"];
    let scaled = |row: &mut serde_json::Value, factor: f64| {
        let cold = &mut row["cold"];
        let all = cold["samples_ns"].as_array_mut().unwrap();
        all.iter_mut().for_each(|sample| *sample = (sample.as_f64().unwrap() * factor).into());
        times.iter().for_each(|name| cold[*name] = (cold[*name].as_f64().unwrap() * factor).into());
    };
    for factor in [-1.0, 0.0, 2.0, 1e-300, 1e-9, 1e14, 1e300] {
        assert!(read(&|row| scaled(row, factor)).is_err(), "all times by {factor}");
    }
    for name in times.iter().chain(&["gigabytes_per_second", "percent_of_copy"]) {
        let wrong = |row: &mut serde_json::Value| {
            row["cold"][*name] = (row["cold"][*name].as_f64().unwrap() * 1.01).into();
        };
        assert!(read(&wrong).is_err(), "{name}");
    }
    // The median lies among the samples, and is not theirs.
    assert!(read(&|row| row["cold"]["median_ns"] = row["cold"]["minimum_ns"].clone()).is_err());
    assert!(read(&|row| row["cold"]["samples_ns"] = serde_json::json!([])).is_err());
    assert!(read(&|row| row["bytes"] = 1.into()).is_err());
}

#[test]
fn a_page_or_picture_of_somebody_else_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = record(folder.path(), "quick");
    let others = |name: &str, words: &[&Path]| {
        let file = folder.path().join(name);
        fs::write(&file, "mine").unwrap();
        for path in words {
            let output = run(&["report", path.to_str().unwrap()]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(name) && said.contains("move it away"), "{said}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        fs::remove_file(file).unwrap();
    };
    others("index.html", &[folder.path()]);
    others("quick-h100.html", &[&path]);
    others("quick-h100-throughput-i32-sum-exclusive.svg", &[&path, folder.path()]);
    run_well(&["report", folder.path().to_str().unwrap()]);
    run_well(&["report", folder.path().to_str().unwrap()]);
}

/// What waits for a reader or a writer for ever.
#[cfg(unix)]
fn pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo is there");
    assert!(made.success());
}

#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_page_is_no_wait() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "seeds");
    pipe(&folder.path().join("index.html"));
    let output = run(&["report", folder.path().to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a pipe"), "{said}");
}

#[cfg(unix)]
#[test]
fn splicing_keeps_links_and_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let reports = folder.path().join("reports");
    record(&reports, "size");
    record(&reports, "seeds");
    let document = folder.path().join("document.md");
    fs::write(&document, DOCUMENT).unwrap();
    fs::set_permissions(&document, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.md");
    std::os::unix::fs::symlink("document.md", &link).unwrap();
    run_well(&["report", "--splice", link.to_str().unwrap()]);
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&document).unwrap().contains("| 2^10 | cold |"));
    assert_eq!(document.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    fs::write(&document, DOCUMENT).unwrap();
    fs::set_permissions(&document, fs::Permissions::from_mode(0o440)).unwrap();
    let output = run(&["report", "--splice", link.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("read-only"), "{said}");
    assert_eq!(fs::read_to_string(&document).unwrap(), DOCUMENT);
}

#[test]
fn a_table_of_mutants_that_cannot_be_is_refused_by_all_that_read_it() {
    let Some(kept) = committed("reports/h100/mutants-h100.json") else { return };
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "seeds");
    let mut table: serde_json::Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    let killed = table["mutants"].as_array_mut().unwrap().iter_mut().find(|row| row["verdict"] == "killed").unwrap();
    killed["verdict"] = "survived".into();
    let path = folder.path().join("mutants-h100.json");
    fs::write(&path, table.to_string()).unwrap();
    let document = folder.path().join("document.md");
    fs::write(&document, "<!-- lookback:begin mutants-h100 -->\n<!-- lookback:end mutants-h100 -->\n").unwrap();
    let [path, document, records] = [&*path, &*document, folder.path()].map(|path| path.to_str().unwrap());
    for words in [
        &["report", path][..],
        &["report", records],
        &["report", "--splice", document, records],
        &["stress", "--mutants", "--add", path],
    ] {
        let output = run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("is not that of its detectors"), "{words:?}: {said}");
    }
}
