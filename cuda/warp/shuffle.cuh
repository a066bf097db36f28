// Scans and reductions of a warp in registers, no shared memory. Scans are those of Kogge & Stone (1973), log2(32) steps
// of shuffles; reductions are trees of shuffles, or one instruction where there is one.
#pragma once

#include "../packed.cuh"
#include "team.cuh"

namespace lookback {

// `shuffle_scan_each` with a shuffle for each value.
template <bool by_subtraction, class Operator, u32 capacity>
DEVICE void shuffle_scan_singly(typename Operator::value_type (&values)[capacity], u32 count,
                                typename Operator::value_type (&totals)[capacity]) {
  using T = typename Operator::value_type;
  const u32 lane = lane_index();
  [[maybe_unused]] T own[capacity];
  LOOKBACK_UNROLL
  for (u32 i = 0; i < capacity; ++i) {
    if (by_subtraction && i < count) own[i] = values[i];
  }
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
  if constexpr (by_subtraction && Operator::is_exactly_undone) {
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i < count) values[i] = Operator::without(values[i], own[i]);
    }
  } else {
    shuffle_up_each(values, count, 1);
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i < count && lane == 0) values[i] = Operator::identity();
    }
  }
}

// Scans each of the first `count` values over the warp, all of them step by step together. Each becomes the combination
// of all lower lanes, `totals` those of all lanes. With `by_subtraction` a lane subtracts its own integer from its
// inclusive sum. That saves a shuffle and takes a register, which was measured to cost up to a tenth where many blocks
// share a multiprocessor, as those of `lookback` do.
template <class Operator, bool by_subtraction = false, u32 capacity>
DEVICE void shuffle_scan_each(typename Operator::value_type (&values)[capacity], u32 count,
                              typename Operator::value_type (&totals)[capacity]) {
  if constexpr (segments<Operator>::exist) {
    segments<Operator>::scan_each(values, count, totals);
  } else if constexpr (packed<Operator>::exists) {
    // In whole registers, several values side by side if their sums over the warp have room; cut to size once.
    using T = typename Operator::value_type;
    constexpr u32 in_word = packed<Operator>::totals_in_word;
    constexpr u32 bits = 8 * sizeof(u32) / in_word;
    u32 words[(capacity + in_word - 1) / in_word] = {};
    u32 word_totals[(capacity + in_word - 1) / in_word];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i < count) words[i / in_word] |= static_cast<u32>(values[i]) << i % in_word * bits;
    }
    const u32 word_count = (count + in_word - 1) / in_word;
    shuffle_scan_singly<by_subtraction, operators::sum<u32>>(words, word_count, word_totals);
    // An addition of words counts once for every value in them.
    LOOKBACK_UNROLL
    for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
      if (lane_index() >= distance) count_operators(count - word_count);
    }
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i >= count) continue;
      values[i] = static_cast<T>(words[i / in_word] >> i % in_word * bits);
      totals[i] = static_cast<T>(word_totals[i / in_word] >> i % in_word * bits);
    }
  } else {
    shuffle_scan_singly<by_subtraction, Operator>(values, count, totals);
  }
}

// Combines each of the first `count` values over the warp, all of them step by step together, for lane 0; the other
// lanes get anything.
template <class Operator, u32 capacity>
DEVICE void warp_reduce_each(typename Operator::value_type (&values)[capacity], u32 count) {
  using T = typename Operator::value_type;
  if constexpr (segments<Operator>::exist) {
    segments<Operator>::reduce_each(values, count);
  } else if constexpr (Operator::is_exactly_undone) {
    // Sums of integers wrap alike in whatever order and width they are added up.
    using wrapping = typename number<T>::wrapping;
    wrapping sums[capacity];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i < count) sums[i] = static_cast<wrapping>(values[i]);
    }
    add_over_warp_each(sums, count);
    // As many as the tree below has steps.
    LOOKBACK_UNROLL
    for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) count_operators(count);
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i < count) values[i] = static_cast<T>(sums[i]);
    }
  } else {
    const u32 lane = lane_index();
    LOOKBACK_UNROLL
    for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
      T right[capacity];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < capacity; ++i) {
        if (i < count) right[i] = values[i];
      }
      shuffle_down_each(right, count, distance);
      LOOKBACK_UNROLL
      for (u32 i = 0; i < capacity; ++i) {
        // The last lanes have no lane to their right; their values do not reach lane 0.
        if (i >= count || lane + distance >= LOOKBACK_WARP_LANES) continue;
        values[i] = combine<Operator>(values[i], right[i]);
      }
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
