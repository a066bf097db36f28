//! Recorded scans on the CPU device: each warp's steps are there, once and in order, arrows go from publications to those who
//! waited for them, and what is written can be read with Perfetto's own messages.
#![cfg(all(feature = "cpu", feature = "cli"))]

mod common;

use assert_cmd::cargo::cargo_bin;
use common::{instance, intervals, sums_of_u32};
use lookback::cpu::Schedule;
use lookback::element::{ElementType, Instance, Operator};
use lookback::lab::cpu_device::{CpuDevice, CpuSettings};
use lookback::lab::dataset::Dataset;
use lookback::lab::device::{Device, TraceSettings};
use lookback::lab::trace::story::Story;
use lookback::lab::trace::{Phase, Recording, Step};
use lookback::strategy::plan::ScanRequest;
use lookback::strategy::{Mode, ScanConfig, Strategy};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

/// Those whose tiles tell each other something.
const RECORDED: [Strategy; 5] =
    [Strategy::Chained, Strategy::Lookback, Strategy::Lookahead, Strategy::OneWave, Strategy::SingleCluster];

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

/// How many slices of each phase a strategy has for so many tiles of so many scanning warps, and rounds of reading.
fn expected(strategy: Strategy, tiles: usize, warps: usize, rounds: usize) -> BTreeMap<Phase, usize> {
    let others = tiles - 1;
    let of_registers = [(Phase::Load, warps * tiles), (Phase::Reduce, warps * tiles), (Phase::Store, warps * tiles)];
    let reads = [(Phase::Read, rounds), (Phase::Combine, rounds)];
    let first_waits = (Phase::Wait, (warps - 1) * tiles + 1);
    let mut phases: BTreeMap<Phase, usize> = match strategy {
        Strategy::Chained => [&of_registers[..], &reads, &[first_waits, (Phase::PublishPrefix, tiles)]].concat(),
        Strategy::Lookback => {
            let published = [first_waits, (Phase::Publish, others), (Phase::PublishPrefix, tiles)];
            [&of_registers[..], &reads, &published].concat()
        }
        Strategy::OneWave => {
            // A further warp reads.
            let reading =
                [(Phase::Reduce, (warps + 1) * tiles), (Phase::Wait, warps * tiles + 1), (Phase::Publish, tiles)];
            [&of_registers[..], &reads, &reading].concat()
        }
        Strategy::Lookahead => {
            // Two warps reduce, one requests, and one reads.
            let of_ring = [(Phase::Request, tiles), (Phase::Reduce, (warps + 2) * tiles), (Phase::Publish, tiles)];
            let scanning = [(Phase::Wait, warps * tiles), (Phase::Store, warps * tiles)];
            [&of_ring[..], &reads, &scanning].concat()
        }
        _ => unreachable!("not counted here"),
    }
    .into_iter()
    .collect();
    phases.retain(|_, count| *count > 0);
    phases
}

fn count(story: &Story) -> BTreeMap<Phase, usize> {
    let mut phases = BTreeMap::new();
    for slice in &story.slices {
        *phases.entry(slice.phase).or_default() += 1;
    }
    phases
}

/// What holds of every recording.
fn check(recording: &Recording, story: &Story) {
    let mut last: BTreeMap<usize, u64> = BTreeMap::new();
    for visit in &story.visits {
        let before = last.insert(visit.track, visit.end);
        assert!(before.is_none_or(|end| end <= visit.start), "a warp has one tile at a time: {visit:?}");
        let mut at = visit.start;
        for slice in &story.slices[visit.slices.clone()] {
            assert!(
                (slice.track, slice.tile) == (visit.track, visit.tile) && at <= slice.start && slice.start <= slice.end
            );
            at = slice.end;
        }
        assert!(at <= visit.end);
    }
    for arrow in &story.arrows {
        let (from, to) = (story.slices[arrow.from], story.slices[arrow.to]);
        assert!(matches!(from.phase, Phase::Publish | Phase::PublishPrefix), "{from:?}");
        assert_eq!(to.phase, Phase::Combine);
        assert!(from.tile < to.tile && from.end <= to.start, "{from:?} {to:?}");
    }
    let waited = recording.events.iter().filter(|event| event.missing_tile.is_some());
    assert_eq!(story.arrows.len(), waited.count(), "an arrow for each wait");
    let took: u64 = story.critical_path.iter().map(|link| link.took).sum();
    assert_eq!(took, story.duration, "the critical path is as long as the scan");
    let stored: Vec<u64> = story.fronts.iter().map(|front| front.tile).collect();
    assert_eq!(stored, (0..recording.tiles).collect::<Vec<_>>());
    assert!(story.fronts.iter().all(|front| front.prefix.is_some() && front.prefix <= front.stored));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_warp_has_its_slices_once_and_in_order(
        which in 0..RECORDED.len(),
        vt in prop::sample::select(vec![1_u32, 3, 4, 8]),
        warps in 1_u32..4,
        tiles in 1_u64..40,
        off in -1_i64..2,
        seed in any::<u64>(),
        does_not_commute in any::<bool>(),
        exclusive in any::<bool>(),
    ) {
        let strategy = RECORDED[which];
        let config = ScanConfig { vt, block_threads: 32 * warps, ..ScanConfig::default() };
        let n = (tiles * u64::from(vt * 32 * warps)).saturating_add_signed(off).max(1);
        let instance = if does_not_commute { intervals() } else { sums_of_u32() };
        let mode = if exclusive { Mode::Exclusive } else { Mode::Inclusive };
        let recording = recorded(instance, strategy, mode, n, config, seed);
        let story = Story::new(&recording);
        check(&recording, &story);
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
        (&["--strategies", "naive", "--n", "1000"][..], "no step to record"),
        (&["--n", "1000", "--resume"], "--resume has no effect"),
        (&["--n", "1000", "--cold"], "no cache"),
        (&["--n", "1000", "--tiles", "3"], "--output"),
    ] {
        let output = trace(words);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(why), "{text}");
    }
}

/// Reads traces with the messages that Perfetto publishes (PyPI: perfetto) and prints slices, and arrows with their ends.
const READER: &str = "
import gzip, sys
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
trace = Trace()
trace.ParseFromString(gzip.open(sys.argv[1]).read())
assert trace.SerializeToString() == Trace.FromString(trace.SerializeToString()).SerializeToString()
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
