//! The interleaving of one case, tile by tile, as text.

use super::case::Case;
use super::cpu::{Failure, Passed, run_observed};
use super::replay_shared::{SharedAccesses, Told, number_of};
use super::watched::{Observer, Places};
use crate::abi;
use crate::cpu::{Access, AccessKind, Scope, Synchronization, TileStep};
use crate::lab::cpu_device::event_of;
use crate::lab::trace::{Clock, Event, Recording};
use crate::strategy::Descriptor;
use crate::strategy::plan::{ScanRequest, Step};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::mem::offset_of;

/// A case that was run again.
#[derive(Debug)]
pub struct Replayed {
    /// Its interleaving.
    pub text: String,
    /// What came of it.
    pub result: Result<Passed, Failure>,
    /// What warps came to with tiles in each launch that has such steps, with its number from 1. Of a case that failed the last
    /// one counts as wrong, and all of launches that are there at one time.
    pub launches: Vec<(u32, Recording)>,
}

/// Runs a case again and writes down every access of the protocol and to shared memory; the last `lines` of each launch
/// are kept, of either kind.
pub fn replay(case: &Case, lines: usize) -> Replayed {
    let mut narrator = Narrator { lines, ..Narrator::default() };
    let result = run_observed(case, Some(&mut narrator));
    narrator.close();
    let last = narrator.recorded.len();
    let launches = (1..).zip(narrator.recorded).map(|(number, OfLaunch { n, tiles, events, .. })| {
        let request = ScanRequest { n, ..case.request };
        let is_right = result.is_ok() || case.together <= 1 && (number as usize) < last;
        (number, Recording::new(&request, tiles, is_right, Clock::Steps, events))
    });
    let launches = launches.filter(|(_, recording)| !recording.events.is_empty()).collect();
    Replayed { text: narrator.text, result, launches }
}

/// Steps of a launch.
struct OfLaunch {
    n: u64,
    tiles: u64,
    first_block: u64,
    events: Vec<Event>,
}

/// Columns in front of what is told of a launch.
const INDENT: usize = 2;

#[derive(Default)]
struct Narrator {
    text: String,
    lines: usize,
    /// Of the launch so far.
    told: Vec<Told>,
    shared: SharedAccesses,
    /// How often the last line was repeated.
    repeated: u64,
    launches: u32,
    recorded: Vec<OfLaunch>,
    workspace: Option<Places>,
    /// Tile of each block, from the tickets that they drew.
    tiles: HashMap<u64, u64>,
    uses_tickets: bool,
}

impl Narrator {
    fn close(&mut self) {
        self.flush_repeats();
        // Of shared memory there is far more to tell: it must not hide the protocol.
        let protocol = self.told.iter().filter(|told| told.is_protocol()).count();
        let mut hidden = [self.told.len() - protocol, protocol].map(|count| count.saturating_sub(self.lines));
        for (hidden, what) in hidden.iter().zip(["lines of shared memory", "accesses"]).rev() {
            if *hidden > 0 {
                let _ = writeln!(self.text, "  … {hidden} {what} before these; --replay-lines shows more");
            }
        }
        for told in self.told.drain(..) {
            let hidden = &mut hidden[usize::from(told.is_protocol())];
            if *hidden > 0 {
                *hidden -= 1;
            } else {
                let _ = writeln!(self.text, "  {}", told.text(INDENT));
            }
        }
        self.shared.clear();
    }

    fn flush_repeats(&mut self) {
        if self.repeated > 0 {
            let times = self.repeated;
            if let Some(Told::Protocol(last)) = self.told.last_mut() {
                let _ = write!(last, "  (and {times} times more)");
            }
            self.repeated = 0;
        }
    }

    fn tell(&mut self, line: String) {
        if matches!(self.told.last(), Some(Told::Protocol(last)) if *last == line) {
            self.repeated += 1;
            return;
        }
        self.flush_repeats();
        self.told.push(Told::Protocol(line));
    }

    fn tell_event(&mut self, event: Option<String>) {
        if let Some(event) = event {
            self.flush_repeats();
            self.told.push(Told::Event(event));
        }
    }

    /// Who a thread is: its tile, once it is known.
    fn who(&self, access: &Access) -> String {
        let block = access.block;
        match self.tiles.get(&block) {
            Some(tile) => format!("tile {tile:<3} block {block:<3} thread {:<3}", access.thread),
            None => format!("         block {block:<3} thread {:<3}", access.thread),
        }
    }

    /// What an address is, and the tag and value that the bytes there are.
    fn what(&self, access: &Access, value: &[u8]) -> String {
        let Some(places) = self.workspace else { return String::from("memory") };
        let word = number_of;
        if let Some(offset) = access.address.checked_sub(places.control)
            && offset < size_of::<abi::lookback_control>()
        {
            let name = match offset {
                o if o == offset_of!(abi::lookback_control, ticket) => "ticket",
                o if o == offset_of!(abi::lookback_control, finished_blocks) => "finished blocks",
                o if o == offset_of!(abi::lookback_control, completed_epochs) => "completed epochs",
                _ => "control",
            };
            return format!("{name} = {}", word(value));
        }
        let Some(offset) = access.address.checked_sub(places.descriptors).filter(|o| *o < places.descriptor_bytes)
        else {
            return format!("{:#x} = {:#x}", access.address, word(value));
        };
        let capacity = places.capacity as usize;
        let of_each = places.descriptor_bytes.checked_div(capacity).unwrap_or(0);
        // Words of a packed one.
        let of_tile = (of_each / 16).max(1);
        match places.layout {
            Descriptor::Packed64 if value.len() == 8 => {
                format!("descriptor {} = {} {:#x}", offset / 8, tag(word(&value[4..]) as u32), word(&value[..4]))
            }
            Descriptor::Packed128 if value.len() == 16 => {
                let (word_of, tile) = (offset / 16 % of_tile, offset / 16 / of_tile);
                let which = if of_tile > 1 { format!("word {word_of} of ") } else { String::new() };
                format!("{which}descriptor {tile} = {} {:#x}", tag(word(&value[8..12]) as u32), word(&value[..8]))
            }
            Descriptor::Packed64 => format!("half of descriptor {} = {:#x}", offset / 8, word(value)),
            Descriptor::Packed128 => format!("part of descriptor {} = {:#x}", offset / 16 / of_tile, word(value)),
            Descriptor::Split if offset < 4 * capacity => format!("tag {} = {}", offset / 4, tag(word(value) as u32)),
            Descriptor::Split => {
                // A tag and two slots.
                let slot = (offset - 4 * capacity) / (of_each.saturating_sub(4) / 2).max(1);
                let (name, tile) = if slot < capacity { ("aggregate", slot) } else { ("prefix", slot - capacity) };
                format!("{name} {tile} = {:#x}", word(value))
            }
        }
    }
}

fn tag(tag: u32) -> String {
    let status = match tag & ((1 << abi::LOOKBACK_STATUS_BITS) - 1) {
        abi::LOOKBACK_STATUS_INVALID => "invalid",
        abi::LOOKBACK_STATUS_AGGREGATE => "aggregate",
        abi::LOOKBACK_STATUS_PREFIX => "prefix",
        _ => "no status",
    };
    format!("[epoch {} {status}]", tag >> abi::LOOKBACK_STATUS_BITS)
}

impl Observer for Narrator {
    fn begins(&mut self, step: &Step, workspace: &Places, first_block: u64) {
        self.close();
        self.tiles.clear();
        self.workspace = Some(*workspace);
        self.launches += 1;
        self.recorded.push(OfLaunch { n: step.n, tiles: step.tiles, first_block, events: Vec::new() });
        self.uses_tickets = step.uses_descriptors();
        let numbered = if first_block > 0 { format!(" from {first_block} on") } else { String::new() };
        let _ = writeln!(
            self.text,
            "kernel launch {}: {}, {} blocks{numbered}, {} elements in {} tiles",
            self.launches,
            step.kernel.name(),
            step.grid_blocks,
            step.n,
            step.tiles
        );
    }

    fn observe(&mut self, access: &Access, value: &[u8]) {
        let scope = if access.scope == Scope::Block { " with .cta scope" } else { "" };
        let halves = if access.is_vector { " as two halves" } else { "" };
        let verb = match access.kind {
            AccessKind::RelaxedLoad => "loads relaxed  ",
            AccessKind::AcquireLoad => "loads acquire  ",
            AccessKind::PayloadLoad => "loads          ",
            AccessKind::RelaxedStore => "stores relaxed ",
            AccessKind::ReleaseStore => "stores release ",
            AccessKind::PayloadStore => "stores         ",
            AccessKind::RelaxedFetchAdd => "adds relaxed to",
            AccessKind::AcquireReleaseFetchAdd => "adds acq_rel to",
            AccessKind::Fence => "fence          ",
            AccessKind::SharedLoad | AccessKind::SharedStore | AccessKind::SharedAdd => {
                self.flush_repeats();
                self.shared.add(access, value, &mut self.told);
                return;
            }
            _ => return,
        };
        self.shared.close_warp(access.block, access.thread / abi::LOOKBACK_WARP_LANES);
        let what = if access.kind == AccessKind::Fence { String::new() } else { self.what(access, value) };
        let site = access.site().map(|site| format!("  {site}")).unwrap_or_default();
        let line = format!("{} {verb} {what}{scope}{halves}{site}", self.who(access));
        if self.uses_tickets
            && matches!(access.kind, AccessKind::RelaxedFetchAdd | AccessKind::AcquireReleaseFetchAdd)
            && self
                .workspace
                .is_some_and(|places| access.address == places.control + offset_of!(abi::lookback_control, ticket))
            && let Ok(bytes) = value.try_into()
        {
            self.tiles.insert(access.block, u64::from(u32::from_ne_bytes(bytes)));
        }
        self.tell(line);
    }

    fn landed(&mut self, block: u64, access: &Access) {
        let event = self.shared.landed(block, access);
        self.tell_event(event);
    }

    fn stepped(&mut self, step: &TileStep) {
        // Of launches that are taken together, the blocks of one begin behind those of the one before.
        let launch = self.recorded.iter_mut().rev().find(|launch| launch.first_block <= step.block);
        if let Some((launch, event)) = launch.filter(|launch| step.tile < launch.tiles).zip(event_of(step)) {
            launch.events.push(event);
        }
    }

    fn synchronized(&mut self, event: &Synchronization) {
        let event = self.shared.synchronized(event);
        self.tell_event(event);
    }
}
