// Every thread combines its own prefix from the start: n(n+1)/2 loads and operators. The input must not
// be the output.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../problem/problem.cuh"

namespace lookback {
namespace scan {

// Reads: input, output, n. One thread an element.
template <class Problem, class Config>
DEVICE void naive(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  const auto* const input = static_cast<const typename Problem::input_type*>(launch.input);
  auto* const output = static_cast<typename Problem::output_type*>(launch.output);
  const u64 i = block_index() * config.block_threads + thread_index();
  if (i >= launch.n) return;
  const u64 end = config.mode == LOOKBACK_MODE_EXCLUSIVE ? i : i + 1;
  auto running = Operator::identity();
  for (u64 k = 0; k < end; ++k) running = combine<Operator>(running, Problem::load(memory::load(input + k)));
  if (config.mode == LOOKBACK_MODE_INCLUSIVE_MINUS_INPUT) {
    running = Operator::without(running, Problem::load(memory::load(input + i)));
  }
  memory::store(output + i, Problem::store(running));
}

}  // namespace scan
}  // namespace lookback
