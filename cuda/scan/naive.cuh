// Every thread combines its own prefix from the start: n(n+1)/2 loads and operators. The input must not
// be the output.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../operators.cuh"

namespace lookback {
namespace scan {

// Reads: input, output, n. One thread an element.
template <class Operator, class Config>
DEVICE void naive(Config config, const lookback_launch& launch) {
  using T = typename Operator::value_type;
  const T* const input = static_cast<const T*>(launch.input);
  T* const output = static_cast<T*>(launch.output);
  const u64 i = block_index() * config.block_threads + thread_index();
  if (i >= launch.n) return;
  const u64 end = config.mode == LOOKBACK_MODE_EXCLUSIVE ? i : i + 1;
  T running = Operator::identity();
  for (u64 k = 0; k < end; ++k) running = combine<Operator>(running, memory::load(input + k));
  if (config.mode == LOOKBACK_MODE_SUBTRACT) running = Operator::without(running, memory::load(input + i));
  memory::store(output + i, running);
}

}  // namespace scan
}  // namespace lookback
