// What stands left of a warp, from the totals of all warps in shared memory, for scans whose latency nothing hides. Every
// warp computes it for itself, which saves a second barrier.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../operators.cuh"
#include "team.cuh"

namespace lookback {

// Up to this many warps each lane combines all totals by itself: a step is then one operator and no shuffle, and one read
// of shared memory brings several totals to all lanes.
constexpr u32 warps_joined_serially = 8;
static_assert(warps_joined_serially >= LOOKBACK_ARRAYS_REDUCING_WARPS,
              "reproducible scans have one order, in blocks and in the reducers of look-ahead");

// `exclusive` stands left of this warp, `total` is that of the block. The totals of all warps are written.
template <class Operator, class Config>
DEVICE team_scan_result<typename Operator::value_type> join_warps(Config config,
                                                                  const typename Operator::value_type* totals) {
  using T = typename Operator::value_type;
  const u32 warps = config.block_threads / LOOKBACK_WARP_LANES;
  const u32 warp = warp_index();
  team_scan_result<T> result = {Operator::identity(), Operator::identity()};
  if (warps <= warps_joined_serially) {
    result.total = memory::shared_load(totals[0]);
    LOOKBACK_UNROLL
    for (u32 i = 1; i < warps; ++i) {
      if (i == warp) result.exclusive = result.total;
      const T next = memory::shared_load(totals[i]);
      result.total = combine<Operator>(result.total, next);
    }
    return result;
  }
  const u32 lane = lane_index();
  T inclusive = lane < warps ? memory::shared_load(totals[lane]) : Operator::identity();
  LOOKBACK_UNROLL
  for (u32 distance = 1; distance < warps; distance *= 2) {
    const T left = shuffle_up(inclusive, distance);
    if (lane >= distance) inclusive = combine<Operator>(left, inclusive);
  }
  const T before = shuffle_index(inclusive, warp == 0 ? 0 : warp - 1);
  if (warp != 0) result.exclusive = before;
  result.total = shuffle_index(inclusive, warps - 1);
  return result;
}

}  // namespace lookback
