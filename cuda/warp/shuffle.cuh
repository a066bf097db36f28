// Kogge & Stone (1973) in registers: log2(32) steps of warp shuffles, no shared memory.
#pragma once

#include "../operators.cuh"
#include "team.cuh"

namespace lookback {

template <class Operator>
DEVICE team_scan_result<typename Operator::value_type> shuffle_scan(typename Operator::value_type value) {
  using T = typename Operator::value_type;
  const u32 lane = lane_index();
  LOOKBACK_UNROLL
  for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
    const T left = shuffle_up(value, distance);
    if (lane >= distance) value = combine<Operator>(left, value);
  }
  team_scan_result<T> result;
  result.total = shuffle_index(value, LOOKBACK_WARP_LANES - 1);
  result.exclusive = shuffle_up(value, 1);
  if (lane == 0) result.exclusive = Operator::identity();
  return result;
}

}  // namespace lookback
