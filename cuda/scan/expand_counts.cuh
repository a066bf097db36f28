// Keys of one byte in order: how often each of the 256 occurs says where its run lies, and no key moves (distribution counting;
// Knuth, The Art of Computer Programming, volume 3, 5.2).
#pragma once

#include "../config.cuh"
#include "../problem/sorted.cuh"
#include "digits.cuh"

namespace lookback {
namespace scan {

// The largest digit that begins at the index or before. Of those that nothing has this is the last.
template <class Count>
DEVICE u32 digit_at(const Count (&begins)[LOOKBACK_DIGITS], u64 index) {
  u32 digit = 0;
  for (u32 step = LOOKBACK_DIGITS / 2; step > 0; step /= 2) {
    if (memory::shared_load(begins[digit + step]) <= index) digit += step;
  }
  return digit;
}

// Reads: outputs (the first is written), spine (how many elements have each digit), n. Each thread stores VT vectors; those of all
// blocks are counted from the boundary of a vector at or below the output.
template <class Problem, class Config>
DEVICE void expand_counts(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    using Count = typename Problem::state_type;
    using key_word = typename Problem::key_word;
    constexpr u32 width = LOOKBACK_VECTOR_BYTES / sizeof(key_word);
    using begins_type = Count[LOOKBACK_DIGITS];
    SHARED(begins_type, begins);
    if (warp_index() == 0) {
      const Count* const counts = static_cast<const Count*>(launch.spine);
      add_up_digits(begins, [&](u32 digit) { return memory::load_spine(counts + digit); });
    }
    block_barrier();  // where runs begin is written
    key_word* const output = static_cast<key_word*>(launch.outputs[0]);
    const u64 lead = reinterpret_cast<u64>(output) / sizeof(key_word) % width;
    for (u32 i = 0; i < config.vt; ++i) {
      const u64 boundary = ((block_index() * config.vt + i) * config.block_threads + thread_index()) * width;
      const u64 first = boundary > lead ? boundary - lead : 0;
      if (first >= launch.n) continue;
      const u64 end = boundary + width - lead < launch.n ? boundary + width - lead : launch.n;
      u32 digit = digit_at(begins, first);
      key_word keys[width];
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) {
        while (digit + 1 < LOOKBACK_DIGITS && memory::shared_load(begins[digit + 1]) <= first + j) ++digit;
        keys[j] = Problem::key_of(digit);
      }
      if (end - first == width) {
        memory::store_vector<width>(output + first, keys);
      } else {
        // One is missing at least.
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width - 1; ++j) {
          if (first + j < end) memory::store(output + first + j, keys[j]);
        }
      }
    }
  }
}

}  // namespace scan
}  // namespace lookback
