//! Recorded scans on the CPU device: each warp's steps are there, once and in order, arrows go from publications to those who
//! waited for them, and what is written can be read with Perfetto's own messages.
#![cfg(all(feature = "cpu", feature = "cli"))]

mod common;
#[path = "common/recordings.rs"]
mod recordings;

use assert_cmd::cargo::cargo_bin;
use common::{instance, intervals, sums_of_u32};
use lookback::cpu::Schedule;
use lookback::element::{ElementType, Instance, Operator};
use lookback::lab::cpu_device::{CpuDevice, CpuSettings};
use lookback::lab::dataset::Dataset;
use lookback::lab::device::{Device, TraceSettings};
use lookback::lab::trace::record::TraceRecord;
use lookback::lab::trace::story::Story;
use lookback::lab::trace::{Phase, Recording, Step};
use lookback::strategy::plan::ScanRequest;
use lookback::strategy::{Mode, ScanConfig, Strategy};
use proptest::prelude::*;
use recordings::{check, count, expected, recording_strategies};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

fn recorded(instance: Instance, strategy: Strategy, mode: Mode, n: u64, config: ScanConfig, seed: u64) -> Recording {
    let schedule = Schedule::Random { preemption: 0.01 };
    let mut device = CpuDevice::new(CpuSettings { resident_blocks: 6, schedule, ..CpuSettings::default() });
    device.load(&Dataset::random(instance, n, seed)).unwrap();
    let request = ScanRequest::aligned(instance, strategy, mode, config, n);
    let settings = TraceSettings { seed, ..TraceSettings::default() };
    let recording = device.trace(&request, &settings).unwrap();
    assert!(recording.is_right, "{strategy} {n}");
    recording
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_warp_has_its_slices_once_and_in_order(
        strategy in prop::sample::select(recording_strategies()),
        vt in prop::sample::select(vec![1_u32, 3, 4, 8]),
        warps in 1_u32..4,
        tiles in 1_u64..40,
        off in -1_i64..2,
        seed in any::<u64>(),
        does_not_commute in any::<bool>(),
        exclusive in any::<bool>(),
    ) {
        let config = ScanConfig { vt, block_threads: 32 * warps, ..ScanConfig::default() };
        let n = (tiles * u64::from(vt * 32 * warps)).saturating_add_signed(off).max(1);
        let instance = if does_not_commute { intervals() } else { sums_of_u32() };
        let mode = if exclusive { Mode::Exclusive } else { Mode::Inclusive };
        let recording = recorded(instance, strategy, mode, n, config, seed);
        let story = Story::new(&recording);
        check(&recording, &story, 0);
        if strategy != Strategy::SingleCluster {
            let rounds = recording.events.iter().filter(|event| event.step == Step::Found).count();
            let expected = expected(strategy, recording.tiles as usize, warps as usize, rounds);
            prop_assert_eq!(count(&story), expected);
        }
    }
}

#[test]
fn one_seed_is_one_recording() {
    let config = ScanConfig { vt: 4, block_threads: 64, ..ScanConfig::default() };
    let record = |seed| recorded(sums_of_u32(), Strategy::Lookback, Mode::Inclusive, 5000, config, seed);
    assert_eq!(record(3), record(3));
    assert_ne!(record(3).events, record(4).events);
}

#[test]
fn a_chain_waits_for_the_tile_before_and_look_back_for_others_too() {
    let config = ScanConfig { vt: 1, block_threads: 32, ..ScanConfig::default() };
    let distances = |strategy| {
        let recording = recorded(instance(ElementType::U32, Operator::Max), strategy, Mode::Inclusive, 3000, config, 1);
        let waits = recording.events.iter().filter_map(|event| Some(event.tile - event.missing_tile?));
        waits.collect::<Vec<_>>()
    };
    let of_chain = distances(Strategy::Chained);
    assert!(!of_chain.is_empty() && of_chain.iter().all(|&distance| distance == 1), "{of_chain:?}");
    assert!(distances(Strategy::Lookback).iter().any(|&distance| distance > 1));
}

fn trace(words: &[&str]) -> Output {
    let mut command = Command::new(cargo_bin!("lookback"));
    command.args([&["trace", "--device", "cpu"], words].concat()).output().expect("the program starts")
}

#[test]
fn the_program_says_what_it_saw_and_what_it_cannot_see() {
    let output = trace(&["--n", "4096", "--seed", "7"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("every element right") && text.contains("critical path: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for (words, why) in [
        (&["--strategies", "naive", "--n", "1000"][..], "lookahead, single-cluster have steps to record"),
        (&["--n", "0"], "nothing is launched"),
        (&["--problem", "histogram", "--types", "u8", "--n", "1000"], "no step to record"),
        (&["--n", "1000", "--resume"], "--resume has no effect"),
        (&["--n", "1000", "--cold"], "no cache"),
        (&["--n", "1000", "--tiles", "3"], "--output"),
    ] {
        let output = trace(words);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(why), "{text}");
    }
}

#[test]
fn what_was_recorded_is_kept_and_drawn_again_and_nothing_is_lost_to_what_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_string_lossy().into_owned();
    let words = ["--strategies", "lookback,naive", "--n", "2000", "--vts", "4", "--blocks", "64", "--output", &path];
    let output = trace(&words);
    let remarks = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && remarks.contains("skipped naive"), "{remarks}");
    let files = || {
        let entries = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<BTreeMap<_, _>>()
    };
    let before = files();
    let names: Vec<_> = before.keys().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    let expected = [
        "index.html",
        "lookback.perfetto-trace.gz",
        "rounds-lookback.svg",
        "tiles-lookback.svg",
        "traces.json.gz",
        "wave-lookback.svg",
    ];
    assert_eq!(names, expected);
    let refused = trace(&words);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("recorded scans already"));
    before.keys().filter(|path| !path.ends_with("traces.json.gz")).for_each(|path| std::fs::remove_file(path).unwrap());
    let report = || Command::new(cargo_bin!("lookback")).args(["report", &path]).output().unwrap();
    assert!(report().status.success());
    assert_eq!(files(), before, "the same bytes");

    // Files that lie are refused in words.
    let record = TraceRecord::read(folder.path()).unwrap();
    let spoil = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = serde_json::to_value(&record).unwrap();
        change(&mut value);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&serde_json::to_vec(&value).unwrap()).unwrap();
        std::fs::write(folder.path().join("traces.json.gz"), encoder.finish().unwrap()).unwrap();
        let output = report();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let columns = "/scans/0/recording/events";
    for (column, value, why) in [
        ("time", serde_json::json!([5]), "one length"),
        ("time", serde_json::json!(vec![1_u64 << 60; record.scans[0].recording.events.len()]), "later than"),
        ("warp", serde_json::json!(vec![32; record.scans[0].recording.events.len()]), "no GPU has a warp"),
    ] {
        let error = spoil(&|record| record.pointer_mut(&format!("{columns}/{column}")).unwrap().clone_from(&value));
        assert!(error.contains(why), "{error}");
    }
    let reversed = |record: &mut serde_json::Value| {
        record.pointer_mut(&format!("{columns}/time")).unwrap().as_array_mut().unwrap().reverse();
    };
    assert!(spoil(&reversed).contains("by warp and time"));
    assert!(spoil(&|record| record["header"]["format"] = 7.into()).contains("format 7"));
    assert!(spoil(&|record| record["scans"][0]["name"] = "../a".into()).contains("no name of a recording"));
}

/// Reads traces with the messages that Perfetto publishes (PyPI: perfetto) and prints slices, and arrows with their ends.
const READER: &str = "
import collections.abc, gzip, sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
trace = Trace()
trace.ParseFromString(gzip.open(sys.argv[1]).read())
def check_known(message):
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in (value if isinstance(value, collections.abc.Iterable) else [value]): check_known(part)
check_known(trace)
tracks = {p.track_descriptor.uuid for p in trace.packet if p.HasField('track_descriptor')}
slices, begun, ended, open_slices, last = 0, {}, {}, {}, 0
for packet in trace.packet:
    if not packet.HasField('track_event'): continue
    event = packet.track_event
    assert packet.timestamp >= last and event.track_uuid in tracks
    last = packet.timestamp
    stack = open_slices.setdefault(event.track_uuid, [])
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        assert len(stack) < 2
        stack.append(event.name)
        slices += 1
        for flow in event.flow_ids: begun[flow] = list(stack)
        for flow in event.terminating_flow_ids: ended[flow] = list(stack)
    else:
        assert event.type == TrackEvent.TYPE_SLICE_END
        stack.pop()
assert not any(open_slices.values()) and begun.keys() == ended.keys()
assert all(stack[1].startswith('publish ') for stack in begun.values())
assert all(stack[1] == 'combine' for stack in ended.values())
print(slices, len(begun))
";

#[test]
fn perfettos_own_messages_read_a_trace() {
    let python = || {
        let mut python = Command::new("python3");
        if let Some(path) = std::env::var_os("LOOKBACK_PERFETTO_PATH") {
            python.env("PYTHONPATH", path);
        }
        python
    };
    let has_perfetto = python().args(["-c", "import perfetto"]).output().is_ok_and(|run| run.status.success());
    if !has_perfetto {
        let is_required = std::env::var_os("LOOKBACK_REQUIRE_PERFETTO").is_some();
        assert!(!is_required, "LOOKBACK_REQUIRE_PERFETTO is set, and python3 has no module perfetto");
        println!(
            "skipped: python3 has no module perfetto (pip install --target FOLDER perfetto, LOOKBACK_PERFETTO_PATH=FOLDER)"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let strategies = ["chained", "lookback", "lookahead", "one-wave", "single-cluster"];
    let output = trace(&[
        "--strategies",
        &strategies.join(","),
        "--n",
        "9000",
        "--vts",
        "4",
        "--blocks",
        "64",
        "--output",
        &folder.path().to_string_lossy(),
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |path: &Path| {
        let run = python().arg("-c").arg(READER).arg(path).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let words = String::from_utf8(run.stdout).unwrap();
        words.split_whitespace().map(|word| word.parse::<usize>().unwrap()).collect::<Vec<_>>()
    };
    let tiles = 9000_usize.div_ceil(256);
    for strategy in strategies {
        let found = read(&folder.path().join(format!("{strategy}.perfetto-trace.gz")));
        let [slices, arrows] = found[..] else { panic!("{strategy}: {found:?}") };
        assert!(slices > 8 * tiles, "{strategy}: {slices}");
        // A chain's tiles have no other way than through each other.
        assert!(strategy != "chained" || arrows > tiles / 2, "{strategy}: {arrows} arrows");
    }
}

/// What the program records of one scan.
fn recording(words: &[&str]) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("seen");
    let run = trace(&[words, &["--output", output.to_str().unwrap()]].concat());
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    TraceRecord::read(&output).unwrap().scans.remove(0).recording
}

const COLUMNS: [&str; 8] = ["--problem", "columns", "--vts", "4", "--blocks", "64", "--types", "u32"];

/// Down columns tiles wait for the tile above, in lines of their own.
#[test]
fn tiles_of_columns_wait_for_those_above_them() {
    let recording = &recording(&[&COLUMNS[..], &["--shape", "600x40", "--strategies", "lookback"]].concat());
    let story = Story::new(recording);
    assert!(recording.is_right && recording.tiles > 4, "{} tiles", recording.tiles);
    check(recording, &story, 0);
    // Each tile has its steps by both warps; those that are not the last of their line publish.
    let of_phase = |phase| count(&story).get(&phase).copied().unwrap_or(0) as u64;
    assert_eq!(of_phase(Phase::Load), 2 * recording.tiles);
    assert_eq!(of_phase(Phase::Store), 2 * recording.tiles);
    assert!(of_phase(Phase::PublishPrefix) > 0 && of_phase(Phase::PublishPrefix) < recording.tiles);
    assert!(of_phase(Phase::Read) > 0 && !story.arrows.is_empty());
}

/// A ring of strips: a tile that ends a group or a period publishes by its finder, and the last of a line by nobody.
#[test]
fn tiles_of_columns_ahead_wait_for_those_above_them() {
    let recording = &recording(&[&COLUMNS[..], &["--strategies", "lookahead", "--shape", "20000x40"]].concat());
    let story = Story::new(recording);
    assert!(recording.is_right && recording.tiles > 500, "{} tiles", recording.tiles);
    check(recording, &story, 0);
    let of_step = |step| recording.events.iter().filter(|event| event.step == step).count() as u64;
    assert_eq!(of_step(Step::Stored), 2 * recording.tiles, "by both warps that scan");
    assert!(of_step(Step::Published) > 0 && of_step(Step::Aggregate) > of_step(Step::Published));
    assert!(of_step(Step::Aggregate) + of_step(Step::Published) < recording.tiles);
    assert_eq!(of_step(Step::Read), of_step(Step::Found));
    assert!(!story.arrows.is_empty());
}

/// The pass of the last digit: each tile looks back for its counts.
#[test]
fn tiles_of_a_sort_wait_for_those_before_them() {
    let recording =
        &recording(&["--problem", "sort", "--n", "40000", "--vts", "4", "--blocks", "256", "--types", "u32"]);
    let story = Story::new(recording);
    let tiles = recording.tiles;
    assert!(recording.is_right && tiles > 30, "{tiles} tiles");
    check(recording, &story, 0);
    let of_step = |step| recording.events.iter().filter(|event| event.step == step).count() as u64;
    for step in [Step::Landed, Step::Reduced, Step::Prefix, Step::Stored] {
        assert_eq!(of_step(step), 8 * tiles, "{step}");
    }
    assert_eq!((of_step(Step::Aggregate), of_step(Step::Found)), (tiles - 1, tiles - 1));
    assert_eq!(of_step(Step::Published), tiles);
    assert!(!story.arrows.is_empty());
}

/// Blocks of a cluster wait for the one that publishes last.
#[test]
fn blocks_of_a_cluster_wait_for_the_latest() {
    let config = ScanConfig { vt: 4, block_threads: 64, ..ScanConfig::default() };
    let recording = recorded(sums_of_u32(), Strategy::SingleCluster, Mode::Inclusive, 9000, config, 2);
    let story = Story::new(&recording);
    check(&recording, &story, 0);
    let found: Vec<_> = recording.events.iter().filter(|event| event.step == Step::Found).collect();
    let waited = found.iter().filter(|event| event.missing_tile.is_some()).count();
    // The latest of a round waits for nobody, unless others have published since.
    assert!(waited * 2 > found.len() && waited < found.len(), "{waited} of {}", found.len());
    assert!(story.critical_tiles().len() > 1, "the path goes from block to block: {:?}", story.critical_tiles());
}
