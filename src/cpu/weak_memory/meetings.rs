//! What threads know after they have met, at barriers of warps, blocks, copies and the cluster.

use super::knowledge::{Phase, meet_in_block, meet_in_warp};
use super::state::WeakMemory;
use crate::cpu::backend::Synchronization;
use crate::cpu::error::Collective;

impl WeakMemory {
    pub(super) fn meet(&mut self, event: Synchronization) {
        match event {
            Synchronization::BlockBarrier { block } => {
                let first_thread = self.blocks.first_thread(block);
                meet_in_block(&mut self.blocks.of(block).threads, first_thread);
            }
            Synchronization::Warp { block, warp, mask, collective: Collective::WarpBarrier } => {
                let first_thread = self.blocks.first_thread(block) + warp * 32;
                let threads = &mut self.blocks.of(block).threads[warp as usize * 32..][..32];
                meet_in_warp(threads, first_thread, mask);
            }
            Synchronization::Warp { .. } => {}
            Synchronization::SharedStorage { block, address, bytes } => {
                self.blocks.of(block).shared.declare(address, bytes as usize, self.shared_granule_bytes);
            }
            // Who waits or arrives relaxed sees the phase, and no order comes of it, with a fence neither.
            Synchronization::CopyBarrierArrival { is_release: false, .. }
            | Synchronization::CopyBarrierWait { is_acquire: false, .. } => {}
            Synchronization::CopyBarrierArrival { block, thread, barrier, .. } => {
                let me = self.blocks.first_thread(block) + thread;
                let state = self.blocks.of(block);
                let message = state.threads[thread as usize].release(me);
                state.copy_barrier(barrier).arrive(message);
            }
            Synchronization::CopyBarrierPhase { block, barrier } => {
                let barrier = self.blocks.of(block).copy_barrier(barrier);
                barrier.arrived = Phase::of(barrier.arriving.take());
            }
            Synchronization::CopyBarrierWait { block, thread, barrier, .. } => {
                let me = self.blocks.first_thread(block) + thread;
                let state = self.blocks.of(block);
                let known = state.copy_barriers.iter_mut().find(|known| known.address == barrier);
                if let Some(barrier) = known {
                    barrier.arrived.wait(me, &mut state.threads[thread as usize]);
                }
            }
            Synchronization::ClusterArrival { block, thread, is_release } => {
                let me = self.blocks.first_thread(block) + thread;
                if is_release {
                    let message = self.blocks.of(block).threads[thread as usize].release(me);
                    self.launches.arrive_at_cluster(block, message);
                }
            }
            Synchronization::ClusterPhase { block } => self.launches.end_cluster_phase(block),
            Synchronization::ClusterWait { block, thread } => {
                let me = self.blocks.first_thread(block) + thread;
                self.launches.wait_for_cluster(block, me, &mut self.blocks.of(block).threads[thread as usize]);
            }
            Synchronization::LaunchWait { block, thread } => {
                let me = self.blocks.first_thread(block) + thread;
                self.launches.wait(block, me, &mut self.blocks.of(block).threads[thread as usize]);
            }
            Synchronization::BlockEnd { block } => {
                if self.launches.is_awaited(block) {
                    let (first_thread, copier) = (self.blocks.first_thread(block), self.copier(block));
                    let state = self.blocks.of(block);
                    let copies = state.landed_copies(copier);
                    let threads = (first_thread..).zip(&mut state.threads).map(|(me, thread)| thread.release(me));
                    self.launches.block_ends(block, threads.chain(copies));
                }
                self.blocks.end(block, &mut self.lists);
            }
        }
    }
}
