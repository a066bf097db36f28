//! From recorded steps to what a person looks at: slices by warp, arrows from publications to those who waited for them, and
//! the chain of steps that the end of the scan hung on.

use super::{Clock, Event, Phase, Recording, Step};
use std::collections::{BTreeMap, HashMap};

/// A warp of a block, where it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Track {
    /// On a GPU; on the CPU device one for each block that is resident at a time.
    pub multiprocessor: u32,
    /// Which of the blocks that a multiprocessor holds at one time.
    pub place: u32,
    /// The warp of the block.
    pub warp: u32,
}

/// What a warp did with a tile from one step to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// By its index in [`Story::tracks`].
    pub track: usize,
    /// The tile.
    pub tile: u64,
    /// What it did.
    pub phase: Phase,
    /// When.
    pub start: u64,
    /// Until when.
    pub end: u64,
}

/// All of a warp's work with one tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// By its index in [`Story::tracks`].
    pub track: usize,
    /// The tile.
    pub tile: u64,
    /// First and last step.
    pub start: u64,
    /// When the last one came.
    pub end: u64,
    /// Its slices, by their indices in [`Story::slices`], one behind the other.
    pub slices: std::ops::Range<usize>,
}

/// A publication that somebody waited for, and what he did when it had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    /// The slice in which a tile published, by its index.
    pub from: usize,
    /// The slice that the waiting tile went on with.
    pub to: usize,
}

/// A step on the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// What was come to.
    pub event: Event,
    /// Time since the link before, or since the scan's begin.
    pub took: u64,
    /// What went on meanwhile.
    pub during: &'static str,
}

/// What a link of the critical path waited for where it is no phase of the warp.
mod during {
    pub(super) const BEFORE: &str = "before its first step";
    pub(super) const COPY: &str = "copy into the ring";
    pub(super) const PUBLICATION: &str = "from publication to reader";
    pub(super) const BLOCK: &str = "wait for a block to end";
    pub(super) const TICKET: &str = "wait for a ticket or a free stage";
    pub(super) const WARP: &str = "from warp to warp";
    pub(super) const NEXT: &str = "from tile to tile";
    pub(super) const BETWEEN: &str = "between phases";
}

/// A round of reading descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Of which tile.
    pub tile: u64,
    /// Descriptors that it was about.
    pub descriptors: u32,
    /// How long it took.
    pub took: u64,
    /// Whose publication it waited for last, if it did.
    pub missing_tile: Option<u64>,
}

/// A recording, told.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// By multiprocessor, place and warp.
    pub tracks: Vec<Track>,
    /// By track and time.
    pub visits: Vec<Visit>,
    /// In the order of the visits.
    pub slices: Vec<Slice>,
    /// From publications to those who waited for them.
    pub arrows: Vec<Arrow>,
    /// From the scan's begin to its last store.
    pub critical_path: Vec<Link>,
    /// All rounds, by tile.
    pub rounds: Vec<Round>,
    /// For each tile: when it had landed, when its aggregate or, where there is none, its prefix was published, when its prefix
    /// was known, and when its last store was on its way. Tiles of which a step is not recorded have none.
    pub fronts: Vec<Front>,
    /// From the first step to the last.
    pub duration: u64,
    /// By how much a wait seems to have ended before the publication that it was for: on a GPU what its clocks are off by, on the
    /// CPU device how much later a warp said that it had published.
    pub earliest_arrow: u64,
}

/// When a tile came to what others wait for, from the first step on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Front {
    /// The tile.
    pub tile: u64,
    /// Its elements were there, for the first warp.
    pub landed: Option<u64>,
    /// It had published.
    pub published: Option<u64>,
    /// Its prefix was known.
    pub prefix: Option<u64>,
    /// The last store was on its way.
    pub stored: Option<u64>,
}

/// Events of a warp and a tile.
type VisitKey = (u32, u64, u32, u64);

impl Story {
    /// Tells a recording.
    pub fn new(recording: &Recording) -> Self {
        let events = &recording.events;
        let duration = events.iter().map(|event| event.time).max().unwrap_or(0);
        let places = places(events);
        let is_gpu = matches!(recording.clock, Clock::Nanoseconds { .. });
        let mut by_visit: BTreeMap<(Track, u64, VisitKey), Vec<Event>> = BTreeMap::new();
        let mut starts: HashMap<VisitKey, u64> = HashMap::new();
        for event in events {
            let start = starts.entry(key(event)).or_insert(event.time);
            *start = event.time.min(*start);
        }
        for event in events {
            let place = places[&(event.multiprocessor, event.block)];
            // Blocks of the CPU device are each resident by themselves.
            let (multiprocessor, place) = if is_gpu { (event.multiprocessor, place) } else { (place, 0) };
            let track = Track { multiprocessor, place, warp: event.warp };
            by_visit.entry((track, starts[&key(event)], key(event))).or_default().push(*event);
        }
        let mut story = Self {
            tracks: Vec::new(),
            visits: Vec::new(),
            slices: Vec::new(),
            arrows: Vec::new(),
            critical_path: Vec::new(),
            rounds: Vec::new(),
            fronts: fronts(events),
            duration,
            earliest_arrow: 0,
        };
        let mut publications: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut awaited: Vec<(usize, u64)> = Vec::new();
        for ((track, _, (.., tile)), mut steps) in by_visit {
            steps.sort_by_key(|event| (event.time, event.step.rank(event.round)));
            if story.tracks.last() != Some(&track) {
                story.tracks.push(track);
            }
            let track = story.tracks.len() - 1;
            let first_slice = story.slices.len();
            for pair in steps.windows(2) {
                let [before, event] = [pair[0], pair[1]];
                if event.step == Step::Found {
                    let (descriptors, took) = (event.descriptors, event.time - before.time);
                    story.rounds.push(Round { tile, descriptors, took, missing_tile: event.missing_tile });
                }
                let Some(phase) = event.step.phase(before.step) else { continue };
                let index = story.slices.len();
                story.slices.push(Slice { track, tile, phase, start: before.time, end: event.time });
                if matches!(phase, Phase::Publish | Phase::PublishPrefix) {
                    publications.entry(tile).or_default().push(index);
                }
                if let (Step::Found, Some(missing)) = (before.step, before.missing_tile) {
                    awaited.push((index, missing));
                }
            }
            let (start, end) = (steps[0].time, steps[steps.len() - 1].time);
            story.visits.push(Visit { track, tile, start, end, slices: first_slice..story.slices.len() });
        }
        story.rounds.sort_by_key(|round| round.tile);
        for (to, missing) in awaited {
            let found_at = story.slices[to].start;
            let published = publications.get(&missing).into_iter().flatten();
            // The latest that had come; where clocks are apart none may seem to have.
            let (before, after): (Vec<usize>, Vec<usize>) =
                published.partition(|&&slice| story.slices[slice].end <= found_at);
            let from = before.into_iter().max_by_key(|&slice| story.slices[slice].end);
            let from = from.or_else(|| after.into_iter().min_by_key(|&slice| story.slices[slice].end));
            if let Some(from) = from {
                let published_at = story.slices[from].end;
                story.earliest_arrow = story.earliest_arrow.max(published_at.saturating_sub(found_at));
                story.arrows.push(Arrow { from, to });
            }
        }
        story.critical_path = critical_path(events, &places);
        story
    }

    /// Time of all warps in a phase, and of all phases; the time of one tile, and how often.
    pub fn phases(&self) -> Vec<PhaseFigures> {
        let all: u64 = self.slices.iter().map(|slice| slice.end - slice.start).sum();
        let figures = |&phase: &Phase| {
            let times: Vec<u64> =
                self.slices.iter().filter(|slice| slice.phase == phase).map(|slice| slice.end - slice.start).collect();
            let (count, sum) = (times.len(), times.iter().sum::<u64>());
            (count > 0).then(|| PhaseFigures {
                phase,
                count,
                share: sum as f64 / all.max(1) as f64,
                mean: sum as f64 / count as f64,
                longest: times.into_iter().max().unwrap_or(0),
            })
        };
        Phase::ALL.iter().filter_map(figures).collect()
    }

    /// Time of the critical path by what went on, the most first.
    pub fn critical_phases(&self) -> Vec<(&'static str, u64)> {
        let mut times: BTreeMap<&'static str, u64> = BTreeMap::new();
        for link in &self.critical_path {
            *times.entry(link.during).or_default() += link.took;
        }
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_by_key(|&(_, time)| std::cmp::Reverse(time));
        times
    }

    /// The tiles that the critical path passes, from the first.
    pub fn critical_tiles(&self) -> Vec<u64> {
        let mut tiles: Vec<u64> = self.critical_path.iter().map(|link| link.event.tile).collect();
        tiles.dedup();
        tiles
    }
}

/// How much time all warps spent in a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhaseFigures {
    /// Which.
    pub phase: Phase,
    /// How often a warp was in it.
    pub count: usize,
    /// Of the time of all warps in any phase.
    pub share: f64,
    /// Of one time.
    pub mean: f64,
    /// The longest.
    pub longest: u64,
}

const fn key(event: &Event) -> VisitKey {
    (event.multiprocessor, event.block, event.warp, event.tile)
}

/// For each block, which of those that its multiprocessor holds at one time it is: the first place that is free when it comes.
fn places(events: &[Event]) -> HashMap<(u32, u64), u32> {
    let mut spans: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
    for event in events {
        let span = spans.entry((event.multiprocessor, event.block)).or_insert((event.time, event.time));
        *span = (span.0.min(event.time), span.1.max(event.time));
    }
    let mut spans: Vec<_> = spans.into_iter().collect();
    spans.sort_by_key(|&((multiprocessor, block), (start, _))| (multiprocessor, start, block));
    let mut ends: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut places = HashMap::new();
    for ((multiprocessor, block), (start, end)) in spans {
        let ends = ends.entry(multiprocessor).or_default();
        let free = ends.iter().position(|&end| end < start);
        let place = free.unwrap_or(ends.len());
        if place == ends.len() {
            ends.push(end);
        } else {
            ends[place] = end;
        }
        places.insert((multiprocessor, block), place as u32);
    }
    places
}

fn fronts(events: &[Event]) -> Vec<Front> {
    let mut fronts: BTreeMap<u64, Front> = BTreeMap::new();
    for event in events {
        let new = Front { tile: event.tile, landed: None, published: None, prefix: None, stored: None };
        let front = fronts.entry(event.tile).or_insert(new);
        let first = |of: &mut Option<u64>| *of = Some(of.map_or(event.time, |time| time.min(event.time)));
        match event.step {
            Step::Landed => first(&mut front.landed),
            Step::Aggregate | Step::Published => first(&mut front.published),
            Step::Prefix => first(&mut front.prefix),
            Step::Stored => front.stored = front.stored.max(Some(event.time)),
            _ => {}
        }
    }
    fronts.into_values().collect()
}

/// What the warps of a block do with a tile.
#[derive(Default)]
struct Team {
    /// Their steps, by index.
    steps: Vec<usize>,
    /// Whether a ring stands between loads and those who work: then nobody joins the others' totals at a barrier of the block.
    has_ring: bool,
    /// Those that publish or read descriptors, and those that store.
    find: Vec<u32>,
    store: Vec<u32>,
}

impl Team {
    /// Whether a step of one warp may have to wait for one of another.
    fn may_wait(&self, event: &Event, other: &Event) -> bool {
        let finds = |warp| self.find.contains(&warp);
        match (event.step, other.step) {
            (Step::Landed, Step::Requested) | (Step::Read, Step::Ticket) => self.has_ring,
            // The barrier at which the warps' totals meet.
            (Step::Reduced, Step::Landed) => !self.has_ring,
            // Of the other reducers.
            (Step::Aggregate, Step::Reduced) => self.has_ring && !self.store.contains(&other.warp),
            (Step::Prefix, Step::Prefix) => !finds(event.warp) && finds(other.warp),
            // Stages are ready when the first reducer has said so, too.
            (Step::Prefix, Step::Aggregate) => self.has_ring && !finds(event.warp),
            _ => false,
        }
    }
}

/// From the last step back, of events by warp and time: each step hangs on the latest of what it may have waited for.
fn critical_path(events: &[Event], places: &HashMap<(u32, u64), u32>) -> Vec<Link> {
    let mut teams: HashMap<(u32, u64, u64), Team> = HashMap::new();
    let mut ends: HashMap<(u32, u32), Vec<usize>> = HashMap::new();
    let mut publications: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, event) in events.iter().enumerate() {
        let team = teams.entry((event.multiprocessor, event.block, event.tile)).or_default();
        team.steps.push(index);
        match event.step {
            Step::Requested => team.has_ring = true,
            Step::Aggregate | Step::Published | Step::Found => team.find.push(event.warp),
            Step::Stored => {
                team.store.push(event.warp);
                let place = places[&(event.multiprocessor, event.block)];
                ends.entry((event.multiprocessor, place)).or_default().push(index);
            }
            _ => {}
        }
        if matches!(event.step, Step::Aggregate | Step::Published) {
            publications.entry(event.tile).or_default().push(index);
        }
    }
    let mut path = Vec::new();
    let mut at = (0..events.len()).max_by_key(|&index| events[index].time);
    while let Some(index) = at {
        let event = events[index];
        // What comes at the same time may hang on this one in turn.
        let latest = |of: Option<&Vec<usize>>, is_awaited: &dyn Fn(&Event) -> bool| {
            let before = of.into_iter().flatten().copied();
            let before = before.filter(|&other| events[other].time < event.time && is_awaited(&events[other]));
            before.max_by_key(|&other| events[other].time)
        };
        let own = index.checked_sub(1).filter(|&before| events[before].who() == event.who());
        let team = &teams[&(event.multiprocessor, event.block, event.tile)];
        let own_label = |before: usize| {
            let before = &events[before];
            match event.step.phase(before.step).filter(|_| before.tile == event.tile) {
                Some(phase) => phase.name(),
                None if event.step == Step::Ticket && team.has_ring => during::TICKET,
                None if before.tile == event.tile => during::BETWEEN,
                None => during::NEXT,
            }
        };
        let in_block = latest(Some(&team.steps), &|other| other.warp != event.warp && team.may_wait(&event, other));
        let by_warp = match event.step {
            Step::Landed => during::COPY,
            Step::Reduced => Phase::Reduce.name(),
            _ => during::WARP,
        };
        let awaited = event.missing_tile.filter(|_| event.step == Step::Found);
        let published = awaited.and_then(|tile| latest(publications.get(&tile), &|_| true));
        let place = (event.multiprocessor, places[&(event.multiprocessor, event.block)]);
        let is_first = event.step == Step::Ticket && own.is_none();
        let ended = latest(ends.get(&place).filter(|_| is_first), &|other| other.block != event.block);
        let candidates = [
            own.map(|before| (before, own_label(before))),
            in_block.map(|before| (before, by_warp)),
            ended.map(|before| (before, during::BLOCK)),
            published.map(|before| (before, during::PUBLICATION)),
        ];
        let before = candidates.into_iter().flatten().max_by_key(|&(before, _)| events[before].time);
        let (took, during) =
            before.map_or((event.time, during::BEFORE), |(before, during)| (event.time - events[before].time, during));
        path.push(Link { event, took, during });
        at = before.map(|(before, _)| before);
    }
    path.reverse();
    path
}
