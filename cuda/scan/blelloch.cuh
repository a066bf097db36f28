// Blelloch (1990) over the whole array, for any n. The tree lies in the array: the node that spans
// [s, s + 2d) keeps its value at s + 2d - 1. On the way up it is the sum of the node, on the way down
// the prefix left of the node.
//
// Where n is no power of two, one node a level reaches past the end and has no place in the array. Its sum is not needed,
// because nothing stands right of it; its prefix is kept in `spine`, one slot a level. The element n - 1 is never read,
// because nothing stands right of it either.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../problem/problem.cuh"

namespace lookback {
namespace scan {

DEVICE u32 level_of(u64 width) {
  u32 level = 0;
  while (width > 1) {
    width /= 2;
    ++level;
  }
  return level;
}

// The tree lies in an array of outputs.
template <class Problem>
DEVICE typename Problem::state_type* tree_in(void* array) {
  static_assert(is_same<typename Problem::output_type, typename Problem::state_type>::value,
                "the tree lies in the output, so what is stored must be what is scanned");
  return static_cast<typename Problem::state_type*>(array);
}

// One level up. Reads: output (the tree), n, stride = half the span of a node. A thread a node.
template <class Problem, class Config>
DEVICE void blelloch_upsweep(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  auto* const tree = tree_in<Problem>(launch.output);
  const u64 node = block_index() * config.block_threads + thread_index();
  const u64 right = (node + 1) * 2 * launch.stride - 1;
  if (right + 1 >= launch.n) return;
  const auto left_sum = memory::load(tree + right - launch.stride);
  memory::store(tree + right, combine<Operator>(left_sum, memory::load(tree + right)));
}

// One level down. Reads: output (the tree), spine (prefixes of the nodes that reach past the end), n,
// stride = half the span of a node. A thread a node.
template <class Problem, class Config>
DEVICE void blelloch_downsweep(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  T* const tree = tree_in<Problem>(launch.output);
  T* const partial = static_cast<T*>(launch.spine);
  const u64 span = 2 * launch.stride;
  const u64 first = (block_index() * config.block_threads + thread_index()) * span;
  if (first >= launch.n) return;
  const u64 middle = first + launch.stride;
  const u64 end = first + span;
  const bool is_root = first == 0 && end >= launch.n;
  const u32 child_level = level_of(launch.stride);

  T prefix = Operator::identity();
  if (!is_root) prefix = end <= launch.n ? memory::load(tree + end - 1) : memory::load_spine(partial + child_level + 1);

  if (middle > launch.n) {  // the left child reaches past the end, there is no right one
    memory::store_spine(partial + child_level, prefix);
  } else if (middle == launch.n) {  // there is no right child
    memory::store(tree + middle - 1, prefix);
  } else {
    const T right_prefix = combine<Operator>(prefix, memory::load(tree + middle - 1));
    memory::store(tree + middle - 1, prefix);
    if (end <= launch.n) {
      memory::store(tree + end - 1, right_prefix);
    } else {
      memory::store_spine(partial + child_level, right_prefix);
    }
  }
}

// From exclusive prefixes to the output of the other modes. Reads: spine = the tree, input, output, n.
template <class Problem, class Config>
DEVICE void blelloch_finish(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  const T* const tree = tree_in<Problem>(launch.spine);
  const auto* const input = static_cast<const typename Problem::input_type*>(launch.input);
  auto* const output = static_cast<typename Problem::output_type*>(launch.output);
  const u64 first = block_index() * config.block_threads * config.vt;
  LOOKBACK_UNROLL
  for (u32 k = 0; k < config.vt; ++k) {
    const u64 i = first + static_cast<u64>(k) * config.block_threads + thread_index();
    if (i >= launch.n) continue;
    const T item = Problem::load(memory::load(input + i));
    const T before = memory::load(tree + i);
    const T through = combine<Operator>(before, item);
    memory::store(output + i, Problem::store(result_at<Problem>(config.mode, before, through, item)));
  }
}

}  // namespace scan
}  // namespace lookback
