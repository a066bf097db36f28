// How many elements fall into each of several bins: a histogram, or how often each digit of keys has each of its values. The blocks
// of a launch count apart, in shared memory; another launch adds up what they have counted (`reduce_columns.cuh`).
#pragma once

#include "../config.cuh"
#include "../problem/elements.cuh"

namespace lookback {
namespace scan {

// The counts of a block. Up to 256 bins have a copy for each lane of a warp, in a bank of shared memory of its own, so that no lane
// waits for another one of its warp. More bins have no room for so many.
template <u32 bins>
struct bin_counts {
  static constexpr u32 copies = bins <= LOOKBACK_DIGITS ? LOOKBACK_WARP_LANES : 1;

  u32 counts[bins * copies];

  DEVICE void count(u32 bin) { memory::shared_add(counts[bin * copies + lane_index() % copies], 1u); }

  // From the lane's own copy on, so that lanes meet in no bank here, either. A few loads at once, because all would take registers
  // that more threads need.
  DEVICE u32 total(u32 bin) const {
    constexpr u32 at_once = copies < 8 ? copies : 8;
    u32 sum = 0;
    LOOKBACK_NOUNROLL
    for (u32 i = 0; i < copies; i += at_once) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < at_once; ++j) sum += memory::shared_load(counts[bin * copies + (lane_index() + i + j) % copies]);
    }
    return sum;
  }
};

// Calls `body` with the elements of an access, as a constant, and how many elements lie between a boundary of one and the first. An
// access is a vector of elements narrower than a word, because a load each would take as long as counting them; but where several
// arrays have no boundaries at the same places, it is one element.
template <class Items, class Config, class Body>
DEVICE void with_loaded_elements(Config config, const lookback_launch& launch, Body body) {
  const auto if_common = [&](auto access) {
    constexpr u32 width = decltype(access)::value;
    const u32 lead = common_lead<width, 0>(launch, 0, static_cast<Items*>(nullptr));
    if (lead < width) return body(access, lead);
    body(constant<1>(), 0u);
  };
  if constexpr (Items::widest_bytes == sizeof(u8)) return with_run_elements<u8>(config, if_common);
  if constexpr (Items::widest_bytes == sizeof(u16)) return with_run_elements<u16>(config, if_common);
  body(constant<1>(), 0u);
}

// Reads: output (written: a row of counts a block, of whole warps' widths), n, and what the problem loads. Any number of blocks.
template <class Problem, class Config>
DEVICE void count_bins(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    using Count = typename Problem::state_type;
    using items_type = typename Problem::binned_type;
    using counts_type = bin_counts<Problem::maximum_bins>;
    SHARED(counts_type, shared);
    for (u32 i = thread_index(); i < Problem::maximum_bins * counts_type::copies; i += config.block_threads) {
      memory::shared_store(shared.counts[i], 0u);
    }
    block_barrier();  // nothing is counted yet
    const auto count = [&](u64 index, const items_type& items) {
      Problem::each_bin(launch, index, items, [&](u32 bin) { shared.count(bin); });
    };
    with_loaded_elements<items_type>(config, launch, [&](auto access, u32 lead) {
      constexpr u32 width = decltype(access)::value;
      const u64 head = (width - lead) % width;  // elements before the first vector
      if (width > 1 && block_index() == 0 && thread_index() < head && thread_index() < launch.n) {
        items_type items;
        load_elements<0>(launch, thread_index(), items);
        count(thread_index(), items);
      }
      const u64 tile_elements = static_cast<u64>(config.block_threads) * config.vt;
      u64 first = head + block_index() * tile_elements;
      for (; first + tile_elements <= launch.n; first += grid_blocks() * tile_elements) {
        const u64 mine = first + thread_index() * width;
        const auto index_of = [&](u64 i) { return mine + i / width * width * config.block_threads + i % width; };
        items_type loaded[Config::maximum_vt];
        LOOKBACK_UNROLL
        for (u64 i = 0; i < config.vt; i += width) {
          const auto at = [&](u32 j) -> items_type& { return loaded[i + j]; };
          load_vectors<width, 0>(launch, index_of(i), at, static_cast<items_type*>(nullptr));
        }
        LOOKBACK_UNROLL
        for (u64 i = 0; i < config.vt; ++i) count(index_of(i), loaded[i]);
      }
      // What is left is less than a tile.
      const u32 left = first < launch.n ? static_cast<u32>(launch.n - first) : 0;
      constexpr u32 at_once = width == 1 ? Config::maximum_vt : width;
      for (u32 i = thread_index(); i < left; i += at_once * config.block_threads) {
        items_type loaded[at_once] = {};
        LOOKBACK_UNROLL
        for (u32 j = 0; j < at_once; ++j) {
          if (i + j * config.block_threads < left) load_elements<0>(launch, first + i + j * config.block_threads, loaded[j]);
        }
        LOOKBACK_UNROLL
        for (u32 j = 0; j < at_once; ++j) {
          if (i + j * config.block_threads < left) count(first + i + j * config.block_threads, loaded[j]);
        }
      }
    });
    block_barrier();  // all is counted
    const u32 bins = Problem::bins(launch);
    const u64 columns = (bins + LOOKBACK_WARP_LANES - 1) / LOOKBACK_WARP_LANES * LOOKBACK_WARP_LANES;
    Count* const row = static_cast<Count*>(launch.output) + block_index() * columns;
    for (u32 bin = thread_index(); bin < bins; bin += config.block_threads) {
      memory::store_spine(row + bin, static_cast<Count>(shared.total(bin)));
    }
  }
}

}  // namespace scan
}  // namespace lookback
