// One thread, from front to back: n operators, n steps. It loads VT elements before it scans them, so
// that it waits for memory once a batch and not once an element.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../problem/problem.cuh"

namespace lookback {
namespace scan {

// Reads: input, output, n.
template <class Problem, class Config>
DEVICE void sequential(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  if (block_index() != 0 || thread_index() != 0) return;
  const auto* const input = static_cast<const typename Problem::input_type*>(launch.input);
  auto* const output = static_cast<typename Problem::output_type*>(launch.output);
  const u64 readable = config.mode == LOOKBACK_MODE_EXCLUSIVE ? launch.n - 1 : launch.n;
  T running = Operator::identity();
  for (u64 first = 0; first < launch.n; first += config.vt) {
    T items[Config::maximum_vt];
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k) {
      items[k] = first + k < readable ? Problem::load(memory::load(input + first + k)) : Operator::identity();
    }
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k) {
      if (first + k >= launch.n) break;
      const T next = combine<Operator>(running, items[k]);
      memory::store(output + first + k, Problem::store(result_at<Problem>(config.mode, running, next, items[k])));
      running = next;
    }
  }
}

}  // namespace scan
}  // namespace lookback
