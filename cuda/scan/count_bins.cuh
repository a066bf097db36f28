// How many elements fall into each of several bins: a histogram, or how often each digit of keys has each of its values. The blocks
// of a launch count apart, in shared memory; another launch adds up what they have counted (`reduce_columns.cuh`).
#pragma once

#include "../config.cuh"
#include "../memory.cuh"

namespace lookback {
namespace scan {

// Reads: output (written: a row of counts a block, of whole warps' widths), n, and what the problem loads. Any number of blocks.
template <class Problem, class Config>
DEVICE void count_bins(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    using Count = typename Problem::state_type;
    using bin_counts = u32[Problem::maximum_bins];
    SHARED(bin_counts, counts);
    for (u32 bin = thread_index(); bin < Problem::maximum_bins; bin += config.block_threads) memory::shared_store(counts[bin], 0u);
    block_barrier();  // nothing is counted yet
    const u64 tile_elements = static_cast<u64>(config.block_threads) * config.vt;
    const auto count_tile = [&](u64 first, auto is_full) {
      const u64 mine = first + thread_index();
      typename Problem::binned_type loaded[Config::maximum_vt];
      LOOKBACK_UNROLL
      for (u64 i = 0; i < config.vt; ++i) {
        const u64 index = mine + i * config.block_threads;
        if (is_full.value || index < launch.n) loaded[i] = Problem::load_binned(launch, index);
      }
      LOOKBACK_UNROLL
      for (u64 i = 0; i < config.vt; ++i) {
        const u64 index = mine + i * config.block_threads;
        if (!is_full.value && index >= launch.n) continue;
        Problem::each_bin(launch, index, loaded[i], [&](u32 bin) { memory::shared_add(counts[bin], 1u); });
      }
    };
    u64 first = block_index() * tile_elements;
    for (; first + tile_elements <= launch.n; first += grid_blocks() * tile_elements) count_tile(first, constant<true>());
    if (first < launch.n) count_tile(first, constant<false>());
    block_barrier();  // all is counted
    const u32 bins = Problem::bins(launch);
    const u64 columns = (bins + LOOKBACK_WARP_LANES - 1) / LOOKBACK_WARP_LANES * LOOKBACK_WARP_LANES;
    Count* const row = static_cast<Count*>(launch.output) + block_index() * columns;
    for (u32 bin = thread_index(); bin < bins; bin += config.block_threads) {
      memory::store_spine(row + bin, static_cast<Count>(memory::shared_load(counts[bin])));
    }
  }
}

}  // namespace scan
}  // namespace lookback
