// Rows and tiles combined one after the other, for operators that are `reproducible`: a chain's result, whoever has read what
// together.
#pragma once

#include "../descriptor.cuh"
#include "../operators.cuh"
#include "../warp/shuffle.cuh"

namespace lookback {

// `prefix`, and then the values of `count` lanes, one after the other: from lane 0 up, or from lane `count` - 1 down. `count` is
// that of the warp. All lanes' values are exchanged, also those behind `count`: then no exchange waits for a step, and a step takes
// no longer than its operator.
template <class Operator, bool is_downward = false>
DEVICE typename Operator::value_type fold_lanes(typename Operator::value_type prefix, typename Operator::value_type value, u32 count) {
  LOOKBACK_UNROLL
  for (u32 i = 0; i < LOOKBACK_WARP_LANES; ++i) {
    const u32 lane = is_downward ? (count - 1 - i) % LOOKBACK_WARP_LANES : i;
    const typename Operator::value_type next = shuffle_index(value, lane);
    if (i < count) prefix = combine<Operator>(prefix, next);
  }
  return prefix;
}

// `prefix`, and then the first `count` of several values a lane, of which neighbouring lanes have neighbours. By all lanes; all get
// the result, and `values` are used up.
template <class Operator, u32 capacity>
DEVICE typename Operator::value_type fold_each(typename Operator::value_type prefix,
                                               typename Operator::value_type (&values)[capacity], u32 count) {
  // A lane's next value becomes its first one, so that there is one copy of a warp's steps.
  LOOKBACK_NOUNROLL
  for (u32 before = 0; before < count; before += LOOKBACK_WARP_LANES) {
    const u32 left = count - before;
    prefix = fold_lanes<Operator>(prefix, values[0], left < LOOKBACK_WARP_LANES ? left : u32{LOOKBACK_WARP_LANES});
    LOOKBACK_UNROLL
    for (u32 i = 1; i < capacity; ++i) values[i - 1] = values[i];
  }
  return prefix;
}

// Folds a window of look-back, whose lane 0 has the last tile: from its nearest inclusive prefix on, or onto `prefix` if it has
// none. `with_prefix` has a bit for each lane with one.
template <class Operator>
DEVICE typename Operator::value_type fold_window(typename Operator::value_type prefix,
                                                 descriptor_view<typename Operator::value_type> view, u32 with_prefix) {
  const u32 nearest = with_prefix == 0 ? u32{LOOKBACK_WARP_LANES} : lowest_set_bit(with_prefix);
  if (with_prefix != 0) prefix = shuffle_index(view.value, nearest);
  return fold_lanes<Operator, true>(prefix, view.value, nearest);
}

// What a reducer of look-ahead has of several rows of a warp, from one value a lane of each: their totals as the scan has them,
// one after the other. The first row of all begins it.
template <class Operator, u32 capacity>
DEVICE typename Operator::value_type join_rows(typename Operator::value_type running, typename Operator::value_type (&values)[capacity],
                                               u32 count, bool is_first) {
  typename Operator::value_type totals[capacity];
  shuffle_scan_each<Operator>(values, count, totals);
  LOOKBACK_UNROLL
  for (u32 i = 0; i < capacity; ++i) {
    if (i < count) running = is_first && i == 0 ? totals[i] : combine<Operator>(running, totals[i]);
  }
  return running;
}

}  // namespace lookback
