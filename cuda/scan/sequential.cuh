// One thread, from front to back: n operators, n steps. It loads VT elements before it scans them, so
// that it waits for memory once a batch and not once an element.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../operators.cuh"

namespace lookback {
namespace scan {

// Reads: input, output, n.
template <class Operator, class Config>
DEVICE void sequential(Config config, const lookback_launch& launch) {
  using T = typename Operator::value_type;
  if (block_index() != 0 || thread_index() != 0) return;
  const T* const input = static_cast<const T*>(launch.input);
  T* const output = static_cast<T*>(launch.output);
  const u64 readable = config.mode == LOOKBACK_MODE_EXCLUSIVE ? launch.n - 1 : launch.n;
  T running = Operator::identity();
  for (u64 first = 0; first < launch.n; first += config.vt) {
    T items[Config::maximum_vt];
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k) {
      items[k] = first + k < readable ? memory::load(input + first + k) : Operator::identity();
    }
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k) {
      if (first + k >= launch.n) break;
      const T next = combine<Operator>(running, items[k]);
      T result = next;
      if (config.mode == LOOKBACK_MODE_EXCLUSIVE) result = running;
      if (config.mode == LOOKBACK_MODE_SUBTRACT) result = Operator::without(next, items[k]);
      memory::store(output + first + k, result);
      running = next;
    }
  }
}

}  // namespace scan
}  // namespace lookback
