// Zeros, before launches that add bits of segments or what blocks have counted.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"

namespace lookback {
namespace scan {

// Reads: output (written), n (its words). A thread four words.
template <class Problem, class Config>
DEVICE void clear_words(Config config, const lookback_launch& launch) {
  constexpr u32 width = LOOKBACK_VECTOR_BYTES / sizeof(u32);
  u32* const words = static_cast<u32*>(launch.output);
  const u64 first = (block_index() * config.block_threads + thread_index()) * width;
  if (reinterpret_cast<u64>(words) % LOOKBACK_VECTOR_BYTES == 0 && first + width <= launch.n) {
    const u32 none[width] = {};
    memory::store_vector<width>(words + first, none);
    return;
  }
  const u64 end = first + width < launch.n ? first + width : launch.n;
  for (u64 i = first; i < end; ++i) memory::store(words + i, 0u);
}

}  // namespace scan
}  // namespace lookback
