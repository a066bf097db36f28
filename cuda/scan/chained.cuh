// Single pass, serial chain: each tile waits for the inclusive prefix of its neighbour, adds its own
// total and passes it on (the chain of StreamScan, Yan, Long & Zhang 2013). 2n element-moves, but the
// chain is as long as there are tiles.
#pragma once

#include "../block/tile.cuh"
#include "../descriptor.cuh"
#include "single_pass.cuh"

namespace lookback {
namespace scan {

// Reads: input, output, control, descriptors, n, capacity, lead. A block a tile.
template <class Problem, class Config>
DEVICE void chained(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  using storage_type = tile_storage<Problem, Config>;
  SHARED(storage_type, storage);
  SHARED(tile_start, shared_start);

  const tile_start start = start_tile(config, launch, shared_start);
  tile<Problem, Config> mine(config, storage, launch, start.tile);
  mine.load(launch);
  const T total = mine.reduce();

  with_descriptors<Problem>(config, launch, [&](auto descriptors) {
    if (thread_index() == 0) {
      T prefix = Operator::identity();
      if (start.tile > 0) {
        const waiting wait;
        auto left = descriptors.read(start.tile - 1, start.epoch);
        while (left.status != LOOKBACK_STATUS_PREFIX) {
          if (wait.gives_up(start.tile, start.tile - 1)) break;
          left = descriptors.read(start.tile - 1, start.epoch);
        }
        prefix = left.value;
      }
      descriptors.publish(start.tile, start.epoch, LOOKBACK_STATUS_PREFIX, combine<Operator>(prefix, total));
      memory::shared_store(storage.tile_prefix, prefix);
    }
    block_barrier();  // the prefix is written, the descriptor accesses of the block are done
    if (thread_index() == 0) finish_tile(launch, descriptors, start.epoch);
  });

  mine.finish(launch, memory::shared_load(storage.tile_prefix));
  mine.store(launch);
}

}  // namespace scan
}  // namespace lookback
