//! Who runs next: the loop that resumes coroutines until every block has ended or a fault is found.

use super::context::{Block, Launch, Suspension, Thread, WARP_LANES};
use super::faults::Failed;
use super::stack::{self, ColouredStack};
use crate::cpu::error::ExecutionError;
use crate::cpu::settings::Schedule;
use corosensei::{Coroutine, CoroutineResult};

pub(super) type Fiber = Coroutine<(), Suspension, (), ColouredStack>;

/// The coroutines of a launch, by slot and thread.
pub(super) struct Fibers {
    pub slots: Vec<Vec<Fiber>>,
}

impl Drop for Fibers {
    fn drop(&mut self) {
        let mut stacks = Vec::new();
        for mut fiber in self.slots.drain(..).flatten() {
            // SAFETY: what is on a suspended coroutine's stack needs no destructor: kernels hold trivially
            // destructible data only (`platform.h` asserts it where it can), the executor's callbacks hold
            // nothing across a suspension, and the coroutine's closure captures pointers.
            unsafe { fiber.force_reset() };
            stacks.push(fiber.into_stack().into_inner());
        }
        stack::keep(stacks);
    }
}

/// A scheduling point preempts where the next draw is below this.
pub(super) fn preemption_threshold(schedule: Schedule) -> u32 {
    match schedule {
        Schedule::Fair => 0,
        Schedule::Random { preemption } => (preemption * f64::from(u32::MAX)) as u32,
    }
}

/// In a random schedule every eighth switch wakes the threads that sleep in `spin_pause`, so that they
/// poll between any two steps of the others and not only when nobody else can go on.
const WAKE_THRESHOLD: u32 = 1 << 29;

/// In a random schedule every sixteenth switch lands one of the copies under way: some land soon, some only when
/// nobody can go on without them.
const LAND_THRESHOLD: u32 = 1 << 28;

impl Launch {
    /// Runs the launch to its end.
    ///
    /// # Errors
    /// The fault that ended it.
    pub fn run(&self, fibers: &mut Fibers) -> Result<(), ExecutionError> {
        self.begin();
        let result = match self.settings.schedule {
            Schedule::Fair => self.run_fair(fibers),
            Schedule::Random { .. } => self.run_random(fibers),
        };
        match result {
            Ok(()) if self.is_done() => Ok(()),
            Ok(()) => Err(self.deadlock()),
            Err(Failed) => Err(self.failure()),
        }
    }

    /// Puts the next block of its launch into a free slot, if that has begun.
    pub fn start_next(&self, slot: &Block) {
        let grid = &self.grids[slot.grid];
        let position = grid.started_blocks.get();
        if position == grid.settings.grid_blocks || !grid.has_begun.get() {
            return;
        }
        grid.started_blocks.set(position + 1);
        slot.start(grid.start_order.block(position));
        self.made_progress();
    }

    fn run_fair(&self, fibers: &mut Fibers) -> Result<(), Failed> {
        loop {
            let mut anybody = false;
            for (slot, fibers) in self.slots.iter().zip(&mut fibers.slots) {
                // A warp that becomes ready meanwhile has its turn in the next round.
                let mut warps = slot.ready_warps.get();
                anybody |= warps != 0;
                while warps != 0 {
                    let warp = warps.trailing_zeros();
                    warps &= warps - 1;
                    self.run_warp(slot, fibers, warp)?;
                }
                if slot.live_threads.get() == 0 && anybody {
                    self.start_next(slot);
                }
            }
            let landed = self.land_all_copies()?;
            let woken = self.wake_sleepers();
            if !anybody && !woken && !landed {
                return Ok(());
            }
        }
    }

    /// Runs a warp until none of its lanes can go on.
    fn run_warp(&self, slot: &Block, fibers: &mut [Fiber], warp_index: u32) -> Result<(), Failed> {
        let warp = &slot.warps[warp_index as usize];
        let first_thread = (warp_index * WARP_LANES) as usize;
        let fibers = &mut fibers[first_thread..first_thread + WARP_LANES as usize];
        let threads = &slot.threads[first_thread..first_thread + WARP_LANES as usize];
        loop {
            let ready = warp.ready.get();
            if ready == 0 {
                slot.ready_warps.set(slot.ready_warps.get() & !(1 << warp_index));
                return Ok(());
            }
            let lane = ready.trailing_zeros() as usize;
            warp.ready.set(ready & (ready - 1));
            self.resume(&mut fibers[lane], &threads[lane])?;
        }
    }

    fn run_random(&self, fibers: &mut Fibers) -> Result<(), Failed> {
        // The warp that goes on, as slot and index.
        let (mut slot_number, mut warp_index) = (0, 0);
        loop {
            if self.sleepers.get() != 0 && self.draw() < WAKE_THRESHOLD {
                self.wake_sleepers();
            }
            if self.copies_under_way.get() != 0 && self.draw() < LAND_THRESHOLD {
                self.land_a_copy()?;
            }
            let current = &self.slots[slot_number];
            let runs_on = current.ready_warps.get() >> warp_index & 1 != 0 && !self.is_paused(current);
            if !runs_on || self.draw() < self.preemption {
                let Some(chosen) = self.choose_warp() else {
                    if self.copies_under_way.get() != 0 {
                        self.land_a_copy()?;
                        continue;
                    }
                    let somebody_was_paused = self.slots.iter().any(|slot| slot.paused_until.replace(0) != 0);
                    if somebody_was_paused || self.wake_sleepers() {
                        continue;
                    }
                    return Ok(());
                };
                (slot_number, warp_index) = chosen;
            }
            let slot = &self.slots[slot_number];
            let warp = &slot.warps[warp_index as usize];
            let lane = self.choose_bit(warp.ready.get());
            let ready = warp.ready.get() & !(1 << lane);
            warp.ready.set(ready);
            if ready == 0 {
                slot.ready_warps.set(slot.ready_warps.get() & !(1 << warp_index));
            }
            let thread = (warp_index * WARP_LANES + lane) as usize;
            self.resume(&mut fibers.slots[slot_number][thread], &slot.threads[thread])?;
            if slot.live_threads.get() == 0 {
                self.start_next(slot);
            }
        }
    }

    fn is_paused(&self, slot: &Block) -> bool {
        slot.paused_until.get() > self.switches.get()
    }

    fn choose_warp(&self) -> Option<(usize, u32)> {
        let ready = |slot: &&Block| slot.ready_warps.get() != 0 && !self.is_paused(slot);
        let candidates = self.slots.iter().filter(ready).count() as u32;
        if candidates == 0 {
            return None;
        }
        let chosen = self.draw_below(candidates) as usize;
        let (number, slot) = self.slots.iter().enumerate().filter(|(_, slot)| ready(slot)).nth(chosen)?;
        Some((number, self.choose_bit(slot.ready_warps.get())))
    }

    /// The position of one of the bits that are set in `mask`, which is not 0.
    fn choose_bit(&self, mask: u32) -> u32 {
        let mut rest = mask;
        for _ in 0..self.draw_below(mask.count_ones()) {
            rest &= rest - 1;
        }
        rest.trailing_zeros()
    }

    #[inline(always)]
    fn resume(&self, fiber: &mut Fiber, thread: &Thread) -> Result<(), Failed> {
        // SAFETY: the slot is the thread-local pointer of this OS thread, which outlives the launch.
        unsafe { self.current_thread.write(thread) };
        self.switches.set(self.switches.get() + 1);
        if let Some(trace) = &self.trace {
            trace.borrow_mut().resumed(thread.block().number(), thread.thread_index);
        }
        match fiber.resume(()) {
            CoroutineResult::Yield(Suspension::Waiting | Suspension::Finished) => Ok(()),
            CoroutineResult::Yield(Suspension::Failed) | CoroutineResult::Return(()) => Err(Failed),
        }
    }

    /// Lets everybody who polls poll again; whether there was anybody.
    fn wake_sleepers(&self) -> bool {
        if self.sleepers.get() == 0 {
            return false;
        }
        self.sleepers.set(0);
        for slot in self.slots.iter().filter(|slot| slot.live_threads.get() != 0) {
            for (warp_index, warp) in (0..).zip(&slot.warps) {
                let sleeping = warp.sleeping.replace(0);
                if sleeping != 0 {
                    slot.make_ready(warp_index, sleeping);
                }
            }
        }
        true
    }
}
