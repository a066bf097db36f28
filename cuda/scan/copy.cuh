// output[i] = input[i]; a block copies block threads x VT consecutive elements. In exclusive mode the
// last element, which an exclusive scan has no use for, is not read: the identity stands in its place.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../operators.cuh"

namespace lookback {
namespace scan {

// Reads: input, output, n.
template <class Operator, class Config>
DEVICE void copy(Config config, const lookback_launch& launch) {
  using T = typename Operator::value_type;
  const T* const input = static_cast<const T*>(launch.input);
  T* const output = static_cast<T*>(launch.output);
  const u64 readable = config.mode == LOOKBACK_MODE_EXCLUSIVE ? launch.n - 1 : launch.n;
  const u64 first = block_index() * config.block_threads * config.vt;
  LOOKBACK_UNROLL
  for (u32 k = 0; k < config.vt; ++k) {
    const u64 i = first + static_cast<u64>(k) * config.block_threads + thread_index();
    if (i < launch.n) memory::store(output + i, i < readable ? memory::load(input + i) : Operator::identity());
  }
}

}  // namespace scan
}  // namespace lookback
