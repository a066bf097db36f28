// Kogge & Stone (1973) in registers: log2(32) steps of warp shuffles, no shared memory.
#pragma once

#include "../operators.cuh"
#include "team.cuh"

namespace lookback {

// Scans each of the first `count` values over the warp, all of them step by step together. Each becomes
// the combination of all lower lanes; `totals` those of all lanes.
template <class Operator, u32 capacity>
DEVICE void shuffle_scan_each(typename Operator::value_type (&values)[capacity], u32 count,
                              typename Operator::value_type (&totals)[capacity]) {
  using T = typename Operator::value_type;
  const u32 lane = lane_index();
  LOOKBACK_UNROLL
  for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
    T left[capacity];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i < count) left[i] = values[i];
    }
    shuffle_up_each(left, count, distance);
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i < count && lane >= distance) values[i] = combine<Operator>(left[i], values[i]);
    }
  }
  LOOKBACK_UNROLL
  for (u32 i = 0; i < capacity; ++i) {
    if (i < count) totals[i] = values[i];
  }
  shuffle_index_each(totals, count, LOOKBACK_WARP_LANES - 1);
  shuffle_up_each(values, count, 1);
  LOOKBACK_UNROLL
  for (u32 i = 0; i < capacity; ++i) {
    if (i < count && lane == 0) values[i] = Operator::identity();
  }
}

// Combines each value over the warp, all of them step by step together, for lane 0; the other lanes get anything.
template <class Operator, u32 capacity>
DEVICE void shuffle_reduce_each(typename Operator::value_type (&values)[capacity]) {
  using T = typename Operator::value_type;
  const u32 lane = lane_index();
  LOOKBACK_UNROLL
  for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
    T right[capacity];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) right[i] = values[i];
    shuffle_down_each(right, distance);
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      // The last lanes have nobody to their right; what they hold never comes to lane 0.
      if (lane + distance < LOOKBACK_WARP_LANES) values[i] = combine<Operator>(values[i], right[i]);
    }
  }
}

// The same as `shuffle_scan_each` for one value.
template <class Operator>
DEVICE team_scan_result<typename Operator::value_type> shuffle_scan(typename Operator::value_type value) {
  using T = typename Operator::value_type;
  T values[1] = {value};
  T totals[1];
  shuffle_scan_each<Operator>(values, 1, totals);
  return {values[0], totals[0]};
}

}  // namespace lookback
