// The totals of the columns of a small matrix, whose rows blocks of a launch before have stored: what all of them have counted.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../problem/problem.cuh"

namespace lookback {
namespace scan {

// Reads: input (`stride` rows of `n` columns, with room for whole warps' widths), output (written: a total a column). A block for as
// many columns as a warp has lanes: each warp takes a part of the rows.
template <class Problem, class Config>
DEVICE void reduce_columns(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  using totals_of_warps = T[Config::maximum_block_threads / LOOKBACK_WARP_LANES][LOOKBACK_WARP_LANES];
  SHARED(totals_of_warps, totals);
  const u32 warps = config.block_threads / LOOKBACK_WARP_LANES;
  const u64 column = block_index() * LOOKBACK_WARP_LANES + lane_index();
  const bool exists = column < launch.n;
  const u64 pitch = (launch.n + LOOKBACK_WARP_LANES - 1) / LOOKBACK_WARP_LANES * LOOKBACK_WARP_LANES;
  const u64 first = launch.stride * warp_index() / warps;
  const u64 end = exists ? launch.stride * (warp_index() + 1) / warps : first;
  const T* const rows = static_cast<const T*>(launch.input) + column;
  T total = Operator::identity();
  for (u64 row = first; row < end; ++row) total = combine<Operator>(total, memory::load_spine(rows + row * pitch));
  memory::shared_store(totals[warp_index()][lane_index()], total);
  block_barrier();  // the totals of all warps are written
  if (warp_index() != 0 || !exists) return;
  for (u32 warp = 1; warp < warps; ++warp) {
    total = combine<Operator>(total, memory::shared_load(totals[warp][lane_index()]));
  }
  memory::store_spine(static_cast<T*>(launch.output) + column, total);
}

}  // namespace scan
}  // namespace lookback
