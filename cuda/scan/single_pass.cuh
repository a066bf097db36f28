// What the single-pass scans share: how a block takes its tile, and how a launch ends.
//
// A launch runs at an epoch, one more than the launches that the workspace has completed. The epoch
// lives in device memory, so a captured graph advances it at each replay. The block that finishes last
// resets the ticket and completes the epoch; at the largest epoch it clears the descriptors, and the
// next launch runs at epoch 1 again.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"

namespace lookback {
namespace scan {

struct tile_start {
  u64 tile;
  u32 epoch;
};

// Takes the next tile. Every thread of the block gets the same answer. `shared` is written once.
template <class Config>
DEVICE tile_start start_tile(Config config, const lookback_launch& launch, tile_start& shared) {
  if (thread_index() == 0) {
    tile_start mine;
    // Relaxed: only the last block of a launch writes it, and launches are ordered by the stream.
    mine.epoch = memory::load_relaxed(&launch.control->completed_epochs) + 1;
    // Relaxed: the ticket hands out numbers and orders nothing else. It is reset by the last block of
    // the launch before.
    mine.tile = config.tile_order == LOOKBACK_TILE_ORDER_TICKET
                    ? memory::fetch_add_relaxed(&launch.control->ticket, 1u)
                    : block_index();
    memory::shared_store(shared, mine);
  }
  block_barrier();  // the start is written
  return memory::shared_load(shared);
}

// Called by thread 0 once its block has passed a barrier behind its last descriptor access.
template <class Descriptors>
DEVICE void finish_tile(const lookback_launch& launch, Descriptors descriptors, u32 epoch) {
  // Acquire-release, pairs with itself in the other blocks: their descriptor accesses (before the block
  // barrier before their increment) happen before the clean-up of the block that sees them all.
  const u32 before = memory::fetch_add_acquire_release(&launch.control->finished_blocks, 1u);
  if (before + 1 != grid_blocks()) return;
  // The last block. Relaxed: the next launch of this workspace is ordered behind by its stream.
  u32 completed = epoch;
  if (epoch == LOOKBACK_MAXIMUM_EPOCH) {
    // Tags are about to repeat: clear all that the workspace holds, not only what this launch used.
    for (u64 i = 0; i < launch.capacity; ++i) descriptors.invalidate(i);
    completed = 0;
  }
  memory::store_relaxed(&launch.control->ticket, 0u);
  memory::store_relaxed(&launch.control->finished_blocks, 0u);
  memory::store_relaxed(&launch.control->completed_epochs, completed);
}

}  // namespace scan
}  // namespace lookback
