// One block scans the whole array: one launch, nothing shared with other blocks, nothing to clear. For arrays so small
// that communication between blocks would take longer than their work. A longer array is a loop over tiles: each is
// loaded while the one before it is scanned, and the prefix is carried in registers.
//
// One block barrier a tile, because the totals of the warps have two places that are used in turn: a warp that writes
// the totals of tile i + 2 has passed the barrier of tile i + 1, to which no warp comes before it has read those of tile i.
#pragma once

#include "../block/tile.cuh"

namespace lookback {
namespace scan {

template <class T, class Config>
struct single_block_totals {
  static constexpr u32 maximum_warps = Config::maximum_block_threads / LOOKBACK_WARP_LANES;
  // Aligned, so that several are read with one access.
  alignas(16) T of_warps[2][maximum_warps];
};

// Reads: input, output, n, tiles, lead. One block.
template <class Problem, class Config>
DEVICE void single_block(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  using storage_type = tile_storage<Problem, Config>;
  using totals_type = single_block_totals<T, Config>;
  SHARED(storage_type, storage);
  SHARED(totals_type, totals);

  tile<Problem, Config> mine(config, storage, launch, 0);
  mine.load(launch);
  T carry = Operator::identity();
  for (u64 index = 0;; ++index) {
    const bool is_last = index + 1 == launch.tiles;
    tile<Problem, Config> next(config, storage, launch, index + 1);
    if (!is_last) next.load(launch);  // on its way while this one is scanned

    const u32 place = static_cast<u32>(index % 2);
    const T total = mine.reduce_and_join(totals.of_warps[place]);
    mine.finish(launch, carry);
    mine.store(launch);
    if (is_last) break;
    carry = combine<Operator>(carry, total);
    mine.adopt(next);
  }
}

}  // namespace scan
}  // namespace lookback
