// The states that a thread holds of a compaction.
#pragma once

#include "../operators.cuh"
#include "problem.cuh"

namespace lookback {

// States by which elements are ranked, the elements themselves, and a bit for each that is kept: nothing is loaded twice.
template <class Problem, u32 capacity>
struct ranked_items {
  using T = typename Problem::state_type;
  static constexpr bool are_words = false;

  T values[capacity];
  typename Problem::inputs loaded[capacity];
  u32 kept[(capacity + 31) / 32] = {};

  DEVICE T get(u32 i) const { return values[i]; }
  DEVICE void set(u32 i, T state) { values[i] = state; }

  DEVICE bool is_kept(u32 i) const { return (kept[i / 32] >> i % 32 & 1) != 0; }
  DEVICE void note(u32 i, const typename Problem::inputs& element, bool is_kept) {
    loaded[i] = element;
    set_bit_if(kept[i / 32], i % 32, is_kept);
  }
};

// Whether what a problem stores stands at ranks.
template <class Problem>
DEVICE_CONSTEXPR bool is_by_rank() {
  if constexpr (Problem::has_arrays) return Problem::is_stored_by_rank;
  return false;
}

}  // namespace lookback
