// Elements of one or several arrays go where the user's text says.
#pragma once

#include "../config.cuh"
#include "../problem/moved.cuh"

namespace lookback {
namespace scan {

// Reads: inputs, outputs, n, places, and what the problem loads. Each thread moves VT elements, those of a block side by side.
template <class Problem, class Config>
DEVICE void scatter(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    using Own = typename Problem::Own;
    const u64 first = block_index() * config.block_threads * config.vt + thread_index();
    typename Problem::inputs items[Config::maximum_vt];
    LOOKBACK_UNROLL
    for (u64 i = 0; i < config.vt; ++i) {
      const u64 index = first + i * config.block_threads;
      if (index < launch.n) load_elements<0>(launch, index, items[i]);
    }
    LOOKBACK_UNROLL
    for (u64 i = 0; i < config.vt; ++i) {
      const u64 index = first + i * config.block_threads;
      if (index >= launch.n) continue;
      const u64 place = Own::place(index, items[i]);
      if (place < launch.places) store_elements<0>(launch, place, Own::store(index, items[i]));
    }
  }
}

}  // namespace scan
}  // namespace lookback
