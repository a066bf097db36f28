// The digits of a radix sort, and where those of each value begin.
#pragma once

#include "../memory.cuh"
#include "../operators.cuh"
#include "../warp/shuffle.cuh"

namespace lookback {
namespace scan {

// By all lanes of a warp: for each digit the sum of what `count_of` says of the digits below it.
template <class Count, class CountOf>
DEVICE void add_up_digits(Count (&below)[LOOKBACK_DIGITS], CountOf count_of) {
  constexpr u32 of_lane = LOOKBACK_DIGITS / LOOKBACK_WARP_LANES;
  const u32 first = lane_index() * of_lane;
  Count before[of_lane];
  Count total = 0;
  LOOKBACK_UNROLL
  for (u32 i = 0; i < of_lane; ++i) {
    before[i] = total;
    total += count_of(first + i);
  }
  const Count of_lanes_below = shuffle_scan<operators::sum<Count>>(total).exclusive;
  LOOKBACK_UNROLL
  for (u32 i = 0; i < of_lane; ++i) memory::shared_store(below[first + i], static_cast<Count>(of_lanes_below + before[i]));
}

}  // namespace scan
}  // namespace lookback
