//! Scheduling points: where the schedule may switch to another thread, and stops and pauses take effect.

use super::context::{Block, Launch, Suspension, Thread};
use super::faults::fail;
use crate::cpu::error::{ExecutionError, RawSite};
use crate::cpu::settings::Stop;

/// The running thread, behind a scheduling point at `site`.
///
/// # Safety
/// `thread` is the context of the running coroutine.
pub(super) unsafe fn enter<'a>(thread: *const Thread, site: RawSite) -> &'a Thread {
    // SAFETY: the caller's promise; contexts outlive their coroutines.
    let thread = unsafe { &*thread };
    thread.site.set(site);
    thread.launch().scheduling_point(thread);
    thread
}

impl Launch {
    /// Somewhere that the schedule may switch to another thread, or a stop take effect.
    #[inline]
    pub fn scheduling_point(&self, thread: &Thread) {
        if self.has_points {
            self.interrupt(thread);
        }
    }

    fn interrupt(&self, thread: &Thread) {
        if let Some(stop) = self.settings.stop {
            self.stop_at_point(thread, stop);
        }
        if let Some(pause) = self.settings.pause.filter(|pause| pause.block == thread.block().number()) {
            let block = thread.block();
            let points = block.points.get();
            block.points.set(points + 1);
            if points == pause.after_points {
                block.paused_until.set(self.switches.get() + pause.switches);
                block.make_ready(thread.warp_index, thread.lane_bit());
                thread.suspend(Suspension::Waiting);
            }
        }
        if self.preemption != 0 && self.draw() < self.preemption {
            thread.block().make_ready(thread.warp_index, thread.lane_bit());
            thread.suspend(Suspension::Waiting);
        }
    }

    fn stop_at_point(&self, thread: &Thread, stop: Stop) {
        match stop {
            Stop::Launch { after_points } => {
                let points = self.points.get();
                if points >= after_points {
                    fail(thread, ExecutionError::Stopped { points });
                }
                self.points.set(points + 1);
            }
            Stop::Block { block, after_points } if block == thread.block().number() => {
                let points = thread.block().points.get();
                if points >= after_points {
                    self.stop_block(thread.block());
                    // Nobody resumes a thread of a stopped block.
                    thread.suspend(Suspension::Waiting);
                }
                thread.block().points.set(points + 1);
            }
            Stop::Block { .. } => {}
        }
    }

    /// Stops a block: none of its threads runs on.
    pub fn stop_block(&self, block: &Block) {
        block.stopped.set(true);
        let dropped = std::mem::take(&mut block.copies.borrow_mut().under_way).len() as u32;
        self.copies_under_way.set(self.copies_under_way.get() - dropped);
        block.ready_warps.set(0);
        for warp in &block.warps {
            warp.ready.set(0);
            let sleeping = warp.sleeping.replace(0);
            self.sleepers.set(self.sleepers.get() - sleeping.count_ones());
        }
        self.stopped_blocks.set(self.stopped_blocks.get() + 1);
    }
}
