// output[i] = input[i]; a block copies block threads x VT consecutive elements. In exclusive mode the last element,
// which an exclusive scan does not need, is not read: the identity stands in its place.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../problem/problem.cuh"

namespace lookback {
namespace scan {

// Reads: input, output, n.
template <class Problem, class Config>
DEVICE void copy(Config config, const lookback_launch& launch) {
  const auto* const input = static_cast<const typename Problem::input_type*>(launch.input);
  auto* const output = static_cast<typename Problem::output_type*>(launch.output);
  const u64 readable = config.mode == LOOKBACK_MODE_EXCLUSIVE ? launch.n - 1 : launch.n;
  const u64 first = block_index() * config.block_threads * config.vt;
  LOOKBACK_UNROLL
  for (u32 k = 0; k < config.vt; ++k) {
    const u64 i = first + static_cast<u64>(k) * config.block_threads + thread_index();
    if (i >= launch.n) continue;
    auto* const place = output + i;
    const auto item = i < readable ? memory::load(input + i) : Problem::padding();
    memory::store(place, Problem::store(Problem::load(item)));
  }
}

}  // namespace scan
}  // namespace lookback
