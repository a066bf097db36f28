// Hillis & Steele (1986) over the whole array: step k adds the element 2^k places to the left. One
// launch a step, each from one array to another, because blocks of one launch run in any order.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../problem/problem.cuh"

namespace lookback {
namespace scan {

// Reads: input and output (two arrays), n, stride = 2^k; spine = the input of the whole scan in the last
// step of 'inclusive minus input', null otherwise. An exclusive scan is the scan of the input shifted by
// one, identity first: its first step reads one place further left.
template <class Problem, class Config>
DEVICE void hillis_steele_step(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  static_assert(is_same<typename Problem::input_type, T>::value && is_same<typename Problem::output_type, T>::value,
                "a step reads what the step before has stored");
  const T* const input = static_cast<const T*>(launch.input);
  const T* const original = static_cast<const T*>(launch.spine);
  T* const output = static_cast<T*>(launch.output);
  const u64 first = block_index() * config.block_threads * config.vt;
  const u64 shift = config.mode == LOOKBACK_MODE_EXCLUSIVE && launch.stride == 1 ? 1 : 0;
  LOOKBACK_UNROLL
  for (u32 k = 0; k < config.vt; ++k) {
    const u64 i = first + static_cast<u64>(k) * config.block_threads + thread_index();
    if (i >= launch.n) continue;
    T value = i >= shift ? memory::load(input + i - shift) : Operator::identity();
    if (i >= launch.stride + shift) value = combine<Operator>(memory::load(input + i - shift - launch.stride), value);
    if (config.mode == LOOKBACK_MODE_INCLUSIVE_MINUS_INPUT && original != nullptr) {
      value = Operator::without(value, memory::load(original + i));
    }
    memory::store(output + i, value);
  }
}

}  // namespace scan
}  // namespace lookback
