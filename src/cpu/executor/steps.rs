//! What warps have come to with tiles: told by the hooks that are woven into the kernels, kept where somebody looks. And what
//! lanes take from each other and combine.

use super::abi::LOOKBACK_LANE_TOOK;
use super::context::{NO_TILE, Thread, WARP_LANES};
use super::faults::fail_in_backend;
use crate::abi::{LOOKBACK_TRACE_FOUND, LOOKBACK_TRACE_READ};
use crate::cpu::backend::LaneStep;
use crate::cpu::settings::TileStep;

pub(super) unsafe extern "C" fn record(thread: *const Thread, step: u32, tile: u64, round: u32, descriptors: u32) {
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { &*thread };
    let launch = thread.launch();
    let Some(steps) = &launch.steps else { return };
    let first_lane = (thread.warp_index * WARP_LANES) as usize;
    let lanes = &thread.block().threads[first_lane..first_lane + WARP_LANES as usize];
    let mut missing_tile = None;
    if step == LOOKBACK_TRACE_READ {
        lanes.iter().for_each(|lane| lane.missing_tile.set(NO_TILE));
    } else if step == LOOKBACK_TRACE_FOUND {
        // Those that did not wait in the last poll have said so.
        missing_tile = lanes.iter().map(|lane| lane.missing_tile.get()).find(|&missing| missing != NO_TILE);
    }
    let time = launch.switches.get() + steps.borrow().len() as u64;
    let (block, warp) = (thread.block().number(), thread.warp_index);
    let step = TileStep { time, block, warp, step, round, tile, missing_tile, descriptors };
    steps.borrow_mut().push(step);
    // A launch that fails has no report; whoever looks on has seen it.
    let told = launch.call_backend(|backend| {
        backend.tile_step(&step);
        Ok(())
    });
    if let Err(message) = told {
        fail_in_backend(thread, message, thread.site.get());
    }
}

pub(super) unsafe extern "C" fn lane(thread: *const Thread, step: u32, number: u32) {
    // SAFETY: as in `rendezvous`.
    let thread = unsafe { &*thread };
    let (step, times) =
        if step == LOOKBACK_LANE_TOOK { (LaneStep::Took(number), 1) } else { (LaneStep::Applied, number) };
    let (block, index) = (thread.block().number(), thread.thread_index);
    let told = thread.launch().call_backend(|backend| {
        (0..times).for_each(|_| backend.lane_step(block, index, step));
        Ok(())
    });
    if let Err(message) = told {
        fail_in_backend(thread, message, thread.site.get());
    }
}
