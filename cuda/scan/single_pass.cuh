// What the single-pass scans share: how a block draws its tile, and how a launch ends.
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

// The epoch that this launch runs at. To be asked for before the block counts itself as done.
DEVICE u32 launch_epoch(const lookback_launch& launch) {
  // Relaxed, pairs with the store at the end of `finish_tile` in the launch before, which the stream orders.
  return memory::load_relaxed(&launch.control->completed_epochs) + 1;
}

// The index of the next tile, for one thread; the `round`-th of its block. `launch.tiles` and more says that there is none.
template <class Config>
DEVICE u64 draw_ticket(Config config, const lookback_launch& launch, u64 round) {
  // Relaxed: the ticket hands out numbers and orders nothing else; pairs with itself, and with its reset in
  // `finish_tile` of the launch before.
  if (config.tile_order == LOOKBACK_TILE_ORDER_STATIC) return block_index() + round * grid_blocks();
  return memory::fetch_add_relaxed(&launch.control->ticket, 1u);
}

// Draws the one tile of a block. Every thread of the block gets the same answer. `shared` is written once.
template <class Config>
DEVICE tile_start start_tile(Config config, const lookback_launch& launch, tile_start& shared) {
  if (thread_index() == 0) {
    tile_start mine;
    mine.epoch = launch_epoch(launch);
    mine.tile = draw_ticket(config, launch, 0);
    memory::shared_store(shared, mine);
  }
  block_barrier();  // the start is written
  return memory::shared_load(shared);
}

// Called by one thread behind a barrier that orders the descriptor accesses of its block before it. Only a publication that a
// tile of another block waits for may come later: that block counts itself as done behind its read, and the clean-up comes
// behind all counts, so by coherence it comes behind the publication, too.
template <class Descriptors>
DEVICE void finish_tile(const lookback_launch& launch, Descriptors descriptors, u32 epoch) {
  // Acquire-release, pairs with itself in the other blocks: their descriptor accesses (before the barrier before their
  // increment) happen before the clean-up of the block that sees them all.
  const u32 before = memory::fetch_add_acquire_release(&launch.control->finished_blocks, 1u);
  if (before + 1 != grid_blocks()) return;
  // The last block, alone with the workspace: all accesses of the others are ordered before by the count. Relaxed: the
  // next launch of this workspace is ordered behind by its stream.
  u32 completed = epoch;
  if (epoch == LOOKBACK_MAXIMUM_EPOCH) {
    // Tags are about to repeat: clear all that the workspace holds, not only what this launch used.
    descriptors.await_last_publications();
    const u64 capacity = launch.capacity;
    for (u64 i = 0; i < capacity; ++i) descriptors.invalidate(i);
    completed = 0;
  }
  memory::store_relaxed(&launch.control->ticket, 0u);
  memory::store_relaxed(&launch.control->finished_blocks, 0u);
  memory::store_relaxed(&launch.control->completed_epochs, completed);
  descriptors.complete(completed);
}

}  // namespace scan
}  // namespace lookback
