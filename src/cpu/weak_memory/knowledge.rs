//! What a thread knows of the others: what happened before its next step (a vector clock), and how far it
//! has seen the stores of every protocol location (a view).
//!
//! Threads and warps are numbered through the grid. The time of a thread is its own: it advances where the
//! thread hands knowledge over. Most of what threads know of each other they learn at barriers, for whole
//! warps, so the clock has one entry a warp and single threads only where they are known further.

use crate::cpu::backend::Scope;
use std::ops::Range;
use std::rc::Rc;

/// In place of a thread's number: whoever wrote before the launch, or several threads together.
pub(super) const NOBODY: u32 = u32::MAX;

/// See the module. Behind an `Rc`, and shared by the threads of a block from barrier to barrier.
#[derive(Debug, Clone, Default)]
pub(super) struct Knowledge {
    /// By warp: what its lanes did up to this time is known. Entries that are missing are 0.
    warps: Vec<u32>,
    /// Threads that are known further than their warp, sorted, each with its time.
    threads: Vec<(u32, u32)>,
    /// By location: the timestamp of the newest store that is known. Entries that are missing are 0.
    seen: Vec<u32>,
}

impl Knowledge {
    /// Whether what `thread` did at `time` is known.
    #[inline]
    pub fn covers(&self, thread: u32, time: u32) -> bool {
        self.warps.get((thread / 32) as usize).is_some_and(|&known| known >= time) || self.covers_alone(thread, time)
    }

    fn covers_alone(&self, thread: u32, time: u32) -> bool {
        let found = self.threads.binary_search_by_key(&thread, |&(known, _)| known);
        found.is_ok_and(|at| self.threads[at].1 >= time)
    }

    /// Whether what all lanes of `warp` did up to `time` is known, as far as that is known for whole warps.
    #[inline]
    pub fn covers_warp(&self, warp: u32, time: u32) -> bool {
        self.warps.get(warp as usize).is_some_and(|&known| known >= time)
    }

    pub fn seen(&self, location: u32) -> u32 {
        self.seen.get(location as usize).copied().unwrap_or(0)
    }

    pub fn see(&mut self, location: u32, timestamp: u32) {
        let location = location as usize;
        if self.seen.len() <= location {
            self.seen.resize(location + 1, 0);
        }
        self.seen[location] = self.seen[location].max(timestamp);
    }

    pub fn join(&mut self, other: &Self) {
        raise_to(&mut self.seen, &other.seen);
        if self.warps != other.warps {
            raise_to(&mut self.warps, &other.warps);
            let warps = &self.warps;
            self.threads.retain(|&(thread, time)| warps.get((thread / 32) as usize).is_none_or(|&known| known < time));
        }
        for &(thread, time) in &other.threads {
            self.learn_thread(thread, time);
        }
    }

    pub fn learn_thread(&mut self, thread: u32, time: u32) {
        if self.covers_warp(thread / 32, time) {
            return;
        }
        match self.threads.binary_search_by_key(&thread, |&(known, _)| known) {
            Ok(at) => self.threads[at].1 = self.threads[at].1.max(time),
            Err(at) => self.threads.insert(at, (thread, time)),
        }
    }

    pub fn learn_warp(&mut self, warp: u32, time: u32) {
        let at = warp as usize;
        if self.warps.len() <= at {
            self.warps.resize(at + 1, 0);
        }
        self.warps[at] = self.warps[at].max(time);
        let known = self.warps[at];
        self.threads.retain(|&(thread, time)| thread / 32 != warp || time > known);
    }
}

fn raise_to(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, &from) in into.iter_mut().zip(from) {
        *into = (*into).max(from);
    }
}

/// What a release hands over: all that `thread` knew, and what it did itself up to `time`.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub knowledge: Rc<Knowledge>,
    /// [`NOBODY`] where the messages of several threads were joined.
    pub thread: u32,
    pub time: u32,
}

impl Message {
    /// Both together: a read-modify-write that releases goes on with the release sequence that it reads.
    pub fn joined(&self, other: &Self) -> Self {
        let mut knowledge = Knowledge::clone(&self.knowledge);
        knowledge.join(&other.knowledge);
        for message in [self, other] {
            if message.thread != NOBODY {
                knowledge.learn_thread(message.thread, message.time);
            }
        }
        Self { knowledge: Rc::new(knowledge), thread: NOBODY, time: 0 }
    }
}

/// What one thread released at a store, an update or a fence, and how far that reaches.
#[derive(Debug, Clone)]
pub(super) struct Release {
    pub message: Message,
    pub scope: Scope,
}

impl Release {
    /// Whether it and an acquire of that scope by a thread of `block` are morally strong: both of gpu scope, or of one
    /// block.
    fn pairs_with(&self, scope: Scope, block: &Range<u32>) -> bool {
        block.contains(&self.message.thread) || self.scope == Scope::Gpu && scope == Scope::Gpu
    }

    /// Of what one thread released, what says all: the last to everybody, and what its own block was told later.
    pub fn latest<'a>(releases: impl Iterator<Item = &'a Self> + Clone) -> Vec<Self> {
        let last = |releases: &mut dyn Iterator<Item = &'a Self>| releases.max_by_key(|release| release.message.time);
        let any = last(&mut releases.clone());
        let gpu = last(&mut releases.clone().filter(|release| release.scope == Scope::Gpu));
        let own = any.filter(|any| gpu.is_none_or(|gpu| any.message.time > gpu.message.time));
        own.into_iter().chain(gpu).cloned().collect()
    }
}

/// What those who arrived in a phase of a barrier hand over to those who wait for it.
#[derive(Debug, Default)]
pub(super) struct Phase {
    message: Option<Message>,
    /// What a thread knew before its last wait, and after: those of a warp or block mostly know the same.
    joined: Option<(Rc<Knowledge>, Rc<Knowledge>)>,
}

impl Phase {
    pub fn of(message: Option<Message>) -> Self {
        Self { message, joined: None }
    }

    /// Thread `me` has waited for the phase.
    pub fn wait(&mut self, me: u32, waiting: &mut ThreadState) {
        let Some(message) = &self.message else { return };
        match &self.joined {
            Some((before, after)) if Rc::ptr_eq(before, &waiting.knowledge) => waiting.knowledge = Rc::clone(after),
            _ => {
                let before = Rc::clone(&waiting.knowledge);
                waiting.acquire(me, message);
                // A thread that was the only one to arrive learns nothing here; the others do.
                self.joined = (message.thread != me).then(|| (before, Rc::clone(&waiting.knowledge)));
            }
        }
    }
}

/// One CUDA thread.
#[derive(Debug, Clone)]
pub(super) struct ThreadState {
    pub knowledge: Rc<Knowledge>,
    /// Its own time, from 1.
    pub time: u32,
    /// What its loads read from and did not acquire: a fence whose scope reaches that far does.
    pending: Vec<Release>,
    /// What it released at its last fences, of either scope: every store after that carries it.
    pub fences: Vec<Release>,
    /// Stale values that it was served one after the other.
    pub stale_in_a_row: u32,
}

impl ThreadState {
    pub fn new(knowledge: &Rc<Knowledge>) -> Self {
        Self { knowledge: Rc::clone(knowledge), time: 1, pending: Vec::new(), fences: Vec::new(), stale_in_a_row: 0 }
    }

    pub fn reset(&mut self, knowledge: &Rc<Knowledge>) {
        self.knowledge = Rc::clone(knowledge);
        self.time = 1;
        self.pending.clear();
        self.fences.clear();
        self.stale_in_a_row = 0;
    }

    /// Hands over what thread `me` knows and did so far.
    pub fn release(&mut self, me: u32) -> Message {
        let message = Message { knowledge: Rc::clone(&self.knowledge), thread: me, time: self.time };
        self.time += 1;
        message
    }

    /// Whether thread `me` knows all that the message says. Whoever knows of a thread's time has joined
    /// something that the thread released then or later, and with it all that the thread knew.
    fn knows(&self, me: u32, message: &Message) -> bool {
        message.thread == me
            || Rc::ptr_eq(&self.knowledge, &message.knowledge) && message.thread == NOBODY
            || message.thread != NOBODY && self.knowledge.covers(message.thread, message.time)
    }

    fn acquire(&mut self, me: u32, message: &Message) {
        if self.knows(me, message) {
            return;
        }
        let is_shared = Rc::ptr_eq(&self.knowledge, &message.knowledge);
        let knowledge = Rc::make_mut(&mut self.knowledge);
        if !is_shared {
            knowledge.join(&message.knowledge);
        }
        if message.thread != NOBODY {
            knowledge.learn_thread(message.thread, message.time);
        }
    }

    /// A load of thread `me` in `block` read what carries a release: acquires it at once if the load itself is an
    /// acquire of a scope that reaches so far, or else at a fence to come.
    pub fn read(&mut self, me: u32, release: &Release, acquires: Option<Scope>, block: &Range<u32>) {
        if acquires.is_some_and(|scope| release.pairs_with(scope, block)) {
            self.acquire(me, &release.message);
        } else if release.pairs_with(Scope::Gpu, block) {
            self.acquire_at_fence(me, release);
        }
    }

    fn acquire_at_fence(&mut self, me: u32, release: &Release) {
        if self.knows(me, &release.message) {
            return;
        }
        match self.pending.iter_mut().find(|known| known.message.thread == release.message.thread) {
            // A thread's later release says all that its earlier ones said; what other blocks may not acquire is
            // not among those of their threads.
            Some(known) if known.message.time < release.message.time => *known = release.clone(),
            Some(_) => {}
            None => self.pending.push(release.clone()),
        }
    }

    /// A fence of thread `me` in `block`.
    pub fn fence(&mut self, me: u32, scope: Scope, block: &Range<u32>) {
        let pending = std::mem::take(&mut self.pending);
        let (reached, out_of_reach): (Vec<_>, _) =
            pending.into_iter().partition(|release| release.pairs_with(scope, block));
        self.pending = out_of_reach;
        for release in &reached {
            self.acquire(me, &release.message);
        }
        let message = self.release(me);
        self.fences.push(Release { message, scope });
        self.fences = Release::latest(self.fences.iter());
    }
}

/// Lets the lanes in `mask` of a warp, whose 32 threads these are, know all that each of them knows and did.
pub(super) fn meet_in_warp(threads: &mut [ThreadState], first_thread: u32, mask: u32) {
    let lanes = || (0..threads.len()).filter(|lane| mask >> lane & 1 != 0);
    let mut knowledge = join_all(lanes().map(|lane| &threads[lane].knowledge));
    let latest = lanes().map(|lane| threads[lane].time).max().unwrap_or(0);
    if mask == u32::MAX {
        knowledge.learn_warp(first_thread / 32, latest);
    } else {
        for lane in lanes() {
            knowledge.learn_thread(first_thread + lane as u32, threads[lane].time);
        }
    }
    let knowledge = Rc::new(knowledge);
    for lane in (0..threads.len()).filter(|lane| mask >> lane & 1 != 0) {
        let thread = &mut threads[lane];
        thread.knowledge = Rc::clone(&knowledge);
        thread.time = if mask == u32::MAX { latest } else { thread.time } + 1;
    }
}

/// Lets the threads of a block know all that each of them knows and did.
pub(super) fn meet_in_block(threads: &mut [ThreadState], first_thread: u32) {
    let mut knowledge = join_all(threads.iter().map(|thread| &thread.knowledge));
    for (warp, lanes) in (first_thread / 32..).zip(threads.chunks_mut(32)) {
        let latest = lanes.iter().map(|thread| thread.time).max().unwrap_or(0);
        knowledge.learn_warp(warp, latest);
        for thread in lanes {
            thread.time = latest + 1;
        }
    }
    let knowledge = Rc::new(knowledge);
    for thread in threads {
        thread.knowledge = Rc::clone(&knowledge);
    }
}

/// What all these messages of single threads say together.
pub(super) fn join_messages(mut messages: Vec<Message>) -> Message {
    messages.sort_unstable_by_key(|message| message.thread);
    let mut joined = join_all(messages.iter().map(|message| &message.knowledge));
    for warp in messages.chunk_by(|one, other| one.thread / 32 == other.thread / 32) {
        let time = warp[0].time;
        // What lanes do after different times is known for each alone.
        if warp.len() == 32 && warp.iter().all(|message| message.time == time) {
            joined.learn_warp(warp[0].thread / 32, time);
        } else {
            warp.iter().for_each(|message| joined.learn_thread(message.thread, message.time));
        }
    }
    Message { knowledge: Rc::new(joined), thread: NOBODY, time: 0 }
}

fn join_all<'a>(all: impl Iterator<Item = &'a Rc<Knowledge>>) -> Knowledge {
    let mut joined: Option<(Knowledge, &Rc<Knowledge>)> = None;
    for knowledge in all {
        match &mut joined {
            None => joined = Some((Knowledge::clone(knowledge), knowledge)),
            Some((_, last)) if Rc::ptr_eq(last, knowledge) => {}
            Some((joined, last)) => {
                joined.join(knowledge);
                *last = knowledge;
            }
        }
    }
    joined.map(|(joined, _)| joined).unwrap_or_default()
}
