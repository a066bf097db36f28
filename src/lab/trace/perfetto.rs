//! A recording as a trace of Perfetto: <https://ui.perfetto.dev> opens it. Multiprocessors are processes, warps of the blocks
//! on them threads; each tile of a warp is a slice with the phases in it, and an arrow goes from each publication that was
//! waited for to what the waiting tile did next.
//!
//! The messages are the few of `perfetto/trace/*.proto` that this takes, with their fields' published numbers.

use super::Recording;
use super::story::{Arrow, Slice, Story, Track};
use prost::Message;
use std::collections::HashMap;

/// `perfetto.protos.Trace`.
#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

/// `perfetto.protos.TracePacket`.
#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

/// `perfetto.protos.TrackEvent`.
#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(enumeration = "Kind", optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

/// `perfetto.protos.TrackEvent.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
enum Kind {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
}

/// `perfetto.protos.TrackDescriptor`.
#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")]
    thread: Option<ThreadDescriptor>,
}

/// `perfetto.protos.ProcessDescriptor`.
#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

/// `perfetto.protos.ThreadDescriptor`.
#[derive(Clone, PartialEq, Message)]
struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    thread_name: Option<String>,
}

/// All packets are of one writer, ...
const SEQUENCE: u32 = 1;
/// ... which begins with no state: `SEQ_INCREMENTAL_STATE_CLEARED`.
const STATE_CLEARED: u32 = 1;
/// Places of blocks on a multiprocessor, and warps of a block: more than there are.
const TRACKS_OF_MULTIPROCESSOR: u64 = 64 * 32;

/// The trace of what was recorded.
pub fn encode(recording: &Recording, story: &Story) -> Vec<u8> {
    let mut packets = vec![TracePacket { sequence_flags: Some(STATE_CLEARED), ..packet() }];
    let mut last_multiprocessor = None;
    let word = match recording.clock {
        super::Clock::Steps => "resident block",
        super::Clock::Nanoseconds { .. } => "multiprocessor",
    };
    for track in &story.tracks {
        let pid = Some(process(track));
        if last_multiprocessor.replace(track.multiprocessor) != Some(track.multiprocessor) {
            let process_name = Some(format!("{word} {}", track.multiprocessor));
            let process = Some(ProcessDescriptor { pid, process_name });
            packets.push(described(TrackDescriptor {
                uuid: Some(u64::from(process_id(track))),
                process,
                thread: None,
            }));
        }
        let name = match track.place {
            0 => format!("warp {}", track.warp),
            place => format!("block {place} warp {}", track.warp),
        };
        let tid = Some(thread_id(track) as i32);
        let thread = Some(ThreadDescriptor { pid, tid, thread_name: Some(name) });
        packets.push(described(TrackDescriptor { uuid: Some(thread_id(track)), process: None, thread }));
    }
    let mut outgoing: HashMap<usize, Vec<u64>> = HashMap::new();
    let mut incoming: HashMap<usize, Vec<u64>> = HashMap::new();
    for (id, &Arrow { from, to }) in (1..).zip(&story.arrows) {
        outgoing.entry(from).or_default().push(id);
        incoming.entry(to).or_default().push(id);
    }
    // By track, which keeps what begins and ends at one time nested; then by time, which a stable sort keeps so.
    let mut events = Vec::new();
    for visit in &story.visits {
        let uuid = thread_id(&story.tracks[visit.track]);
        events.push(begin(uuid, visit.start, &format!("tile {}", visit.tile)));
        for index in visit.slices.clone() {
            let Slice { phase, start, end: until, .. } = story.slices[index];
            let mut packet = begin(uuid, start, phase.name());
            if let Some(event) = &mut packet.track_event {
                event.flow_ids = outgoing.remove(&index).unwrap_or_default();
                event.terminating_flow_ids = incoming.remove(&index).unwrap_or_default();
            }
            events.push(packet);
            events.push(end(uuid, until));
        }
        events.push(end(uuid, visit.end));
    }
    events.sort_by_key(|packet| packet.timestamp);
    packets.extend(events);
    Trace { packet: packets }.encode_to_vec()
}

fn packet() -> TracePacket {
    TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..TracePacket::default() }
}

fn described(track: TrackDescriptor) -> TracePacket {
    TracePacket { track_descriptor: Some(track), ..packet() }
}

fn begin(track: u64, time: u64, name: &str) -> TracePacket {
    let event = TrackEvent { name: Some(name.to_owned()), ..event(Kind::SliceBegin, track) };
    TracePacket { timestamp: Some(time), track_event: Some(event), ..packet() }
}

fn end(track: u64, time: u64) -> TracePacket {
    TracePacket { timestamp: Some(time), track_event: Some(event(Kind::SliceEnd, track)), ..packet() }
}

fn event(kind: Kind, track: u64) -> TrackEvent {
    TrackEvent { r#type: Some(kind.into()), track_uuid: Some(track), ..TrackEvent::default() }
}

/// From 1: 0 is the idle process of Linux.
const fn process(track: &Track) -> i32 {
    track.multiprocessor as i32 + 1
}

fn process_id(track: &Track) -> u32 {
    track.multiprocessor + 1
}

/// Behind those of all processes.
fn thread_id(track: &Track) -> u64 {
    (u64::from(track.multiprocessor) + 1) * TRACKS_OF_MULTIPROCESSOR
        + u64::from(track.place) * 32
        + u64::from(track.warp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ElementType, Instance, Operator};
    use crate::lab::trace::{Clock, Event, Step};
    use crate::strategy::plan::ScanRequest;
    use crate::strategy::{Mode, ScanConfig, Strategy};

    /// Two tiles of a chain, of which the second waits for the first.
    fn recording() -> Recording {
        let step = |tile, time, step, missing_tile| Event {
            time,
            multiprocessor: tile as u32,
            block: tile,
            warp: 0,
            step,
            round: 0,
            tile,
            missing_tile,
            descriptors: 1,
        };
        let events = vec![
            step(0, 10, Step::Ticket, None),
            step(0, 20, Step::Landed, None),
            step(0, 30, Step::Reduced, None),
            step(0, 31, Step::Prefix, None),
            step(0, 33, Step::Published, None),
            step(0, 50, Step::Stored, None),
            step(1, 10, Step::Ticket, None),
            step(1, 15, Step::Landed, None),
            step(1, 19, Step::Reduced, None),
            step(1, 20, Step::Read, None),
            step(1, 35, Step::Found, Some(0)),
            step(1, 36, Step::Prefix, None),
            step(1, 37, Step::Published, None),
            step(1, 44, Step::Stored, None),
        ];
        let instance = Instance::new(ElementType::U32, Operator::Sum).unwrap();
        let config = ScanConfig::default();
        let request = ScanRequest::aligned(instance, Strategy::Chained, Mode::Inclusive, config, 2);
        let clock = Clock::Nanoseconds { error: 0.0, ordinary: 1.0, recording: 1.0 };
        Recording::new(&request, 2, true, clock, events)
    }

    #[test]
    fn slices_nest_and_an_arrow_goes_from_the_publication_to_what_came_of_it() {
        let recording = recording();
        let story = Story::new(&recording);
        let trace = Trace::decode(encode(&recording, &story).as_slice()).unwrap();
        let mut open: HashMap<u64, Vec<String>> = HashMap::new();
        let (mut count, mut last, mut from, mut to) = (0, 0, None, None);
        for packet in &trace.packet {
            let Some(event) = &packet.track_event else { continue };
            let (time, track) = (packet.timestamp.unwrap(), event.track_uuid.unwrap());
            assert!(last <= time);
            last = time;
            let stack = open.entry(track).or_default();
            if event.r#type() == Kind::SliceEnd {
                stack.pop().expect("something is open");
                continue;
            }
            count += 1;
            let name = event.name.clone().unwrap();
            for id in &event.flow_ids {
                from = Some((*id, stack[0].clone(), name.clone(), time));
            }
            for id in &event.terminating_flow_ids {
                to = Some((*id, stack[0].clone(), name.clone(), time));
            }
            stack.push(name);
        }
        assert!(open.values().all(Vec::is_empty));
        // Each tile, five phases of the first and six of the second.
        assert_eq!(count, 2 + 5 + 6, "{trace:?}");
        assert_eq!(from, Some((1, "tile 0".to_owned(), "publish prefix".to_owned(), 21)));
        assert_eq!(to, Some((1, "tile 1".to_owned(), "combine".to_owned(), 25)));
    }

    #[test]
    fn the_critical_path_goes_through_whom_a_tile_waited_for() {
        let mut recording = recording();
        // The second tile ends last.
        recording.events.iter_mut().max_by_key(|event| (event.tile, event.time)).unwrap().time = 60;
        let story = Story::new(&recording);
        assert_eq!(story.critical_tiles(), [0, 1]);
        let took: u64 = story.critical_path.iter().map(|link| link.took).sum();
        assert_eq!(took, story.duration);
        assert_eq!(story.earliest_arrow, 0);
        let phases = story.critical_phases();
        assert!(phases.contains(&("from publication to reader", 2)), "{phases:?}");
    }

    #[test]
    fn tiles_that_are_left_out_leave_no_track_and_no_arrow() {
        let recording = recording().of_tiles(|tile| tile == 1);
        let story = Story::new(&recording);
        let trace = Trace::decode(encode(&recording, &story).as_slice()).unwrap();
        let tracks = trace.packet.iter().filter(|packet| packet.track_descriptor.is_some()).count();
        assert_eq!(tracks, 2, "a process and a thread");
        let mut events = trace.packet.iter().filter_map(|packet| packet.track_event.as_ref());
        assert!(events.all(|event| event.flow_ids.is_empty() && event.terminating_flow_ids.is_empty()));
    }
}
