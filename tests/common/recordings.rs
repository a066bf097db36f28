//! What holds of every recorded scan, on whatever device.

use lookback::lab::trace::story::Story;
use lookback::lab::trace::{Clock, Phase, Recording, Step, records};
use lookback::strategy::Strategy;
use std::collections::BTreeMap;

/// Those whose kernels have hooks.
pub fn recording_strategies() -> Vec<Strategy> {
    let strategies: Vec<Strategy> = Strategy::ALL.iter().copied().filter(|&strategy| records(strategy)).collect();
    assert!(strategies.len() >= 5, "{strategies:?}");
    strategies
}

/// How many slices of each phase a strategy has for so many tiles of so many scanning warps, and rounds of reading.
pub fn expected(strategy: Strategy, tiles: usize, warps: usize, rounds: usize) -> BTreeMap<Phase, usize> {
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
                [(Phase::Load, (warps + 1) * tiles), (Phase::Wait, warps * tiles + 1), (Phase::Publish, tiles)];
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

pub fn count(story: &Story) -> BTreeMap<Phase, usize> {
    let mut phases = BTreeMap::new();
    for slice in &story.slices {
        *phases.entry(slice.phase).or_default() += 1;
    }
    phases
}

/// What holds of every recording, whose clocks may be so many nanoseconds apart.
pub fn check(recording: &Recording, story: &Story, clock_error: u64) {
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
    // There lanes go on by themselves: of a wave any may publish a copy before lane 0 has said what the warp has come to.
    let is_by_lanes = recording.subject.strategy == Strategy::OneWave && recording.clock == Clock::Steps;
    for arrow in &story.arrows {
        let (from, to) = (story.slices[arrow.from], story.slices[arrow.to]);
        assert!(matches!(from.phase, Phase::Publish | Phase::PublishPrefix), "{from:?}");
        // A tile of columns that ends a group publishes at once what it has found.
        assert!(matches!(to.phase, Phase::Combine | Phase::Publish), "{to:?}");
        // Blocks of a cluster wait for all; others may read a publication before its warp has said that it is made.
        let is_cluster = recording.subject.strategy == Strategy::SingleCluster;
        assert!(
            (from.tile < to.tile || is_cluster) && (is_by_lanes || from.start <= to.start + clock_error),
            "{from:?} {to:?}, clocks {clock_error} ns apart at most"
        );
    }
    let waited = recording.events.iter().filter(|event| event.missing_tile.is_some());
    assert_eq!(story.arrows.len(), waited.count(), "an arrow for each wait");
    let took: u64 = story.critical_path.iter().map(|link| link.took).sum();
    assert_eq!(took, story.duration, "the critical path is as long as the scan");
    for pair in story.critical_path.windows(2) {
        let [before, event] = [pair[0].event, pair[1].event];
        if (before.block, before.warp) == (event.block, event.warp) {
            continue;
        }
        let may_wait = match event.step {
            Step::Found => event.missing_tile == Some(before.tile),
            // A block that begins where another one ended.
            Step::Ticket => before.step == Step::Stored,
            Step::Landed => before.step == Step::Requested,
            Step::Read => before.step == Step::Ticket,
            Step::Reduced => before.step == Step::Landed,
            Step::Aggregate => before.step == Step::Reduced,
            Step::Prefix => matches!(before.step, Step::Prefix | Step::Aggregate),
            _ => false,
        };
        assert!(may_wait, "{before:?} {event:?}");
        if event.step != Step::Found && event.step != Step::Ticket {
            assert_eq!((before.block, before.tile), (event.block, event.tile));
        }
        let stores = |warp| recording.events.iter().any(|event| event.step == Step::Stored && event.warp == warp);
        let is_ring = recording.events.iter().any(|event| event.step == Step::Requested);
        // Those that scan wait for helpers alone.
        assert!(!(is_ring && stores(before.warp) && stores(event.warp)), "{before:?} {event:?}");
    }
    let stored: Vec<u64> = story.fronts.iter().map(|front| front.tile).collect();
    assert_eq!(stored, (0..recording.tiles).collect::<Vec<_>>());
    assert!(story.fronts.iter().all(|front| front.prefix.is_some() && front.prefix <= front.stored));
}
