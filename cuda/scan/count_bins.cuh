// How many elements fall into each of several bins: a histogram, or how often each digit of keys has each of its values. The blocks
// of a launch count apart, in shared memory, and each adds what it has counted to counts that a launch before has cleared. Of more
// bins than a block has room for all blocks add each element there. What problems that count have is in `problem/binned.cuh`.
#pragma once

#include "../config.cuh"
#include "../problem/elements.cuh"

namespace lookback {
namespace scan {

// Whether a block has room for so many counts.
constexpr bool has_room_for(u32 counts) { return counts <= 1u << 13; }

// Up to 256 counts have a copy for each lane of a warp, in a bank of shared memory of its own, so that no lane waits for another one
// of its warp. More have no room for so many.
constexpr u32 copies_of(u32 counts) { return counts <= LOOKBACK_DIGITS ? LOOKBACK_WARP_LANES : 1; }

// The counts of a block.
template <u32 size, u32 copies>
struct block_counts {
  u32 counts[size * copies];

  DEVICE void clear(u32 threads) {
    for (u32 i = thread_index(); i < size * copies; i += threads) memory::shared_store(counts[i], 0u);
  }

  // Those of the lane.
  DEVICE memory::shared_counts<copies> of_lane() { return memory::shared_counts<copies>(counts + lane_index() % copies); }

  // From the lane's own copy on, so that lanes meet in no bank here, either. A few loads at once, because all would take registers
  // that more threads need.
  DEVICE u32 total(u32 number) const {
    constexpr u32 at_once = copies < 8 ? copies : 8;
    u32 sum = 0;
    LOOKBACK_NOUNROLL
    for (u32 i = 0; i < copies; i += at_once) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < at_once; ++j) sum += memory::shared_load(counts[number * copies + (lane_index() + i + j) % copies]);
    }
    return sum;
  }

  // Calls `body` with each of the first `end` counts to which something was added, and what that was.
  template <class Body>
  DEVICE void each_total(u32 end, u32 threads, Body body) const {
    for (u32 i = thread_index(); i < end; i += threads) {
      const u32 sum = total(i);
      if (sum != 0) body(i, sum);
    }
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

// Adds to a count, to one of 8 bytes in two words: whoever finds that the lower one wraps carries into the upper one. Relaxed, pairs with
// nothing: sums do not depend on who adds first, and launches behind this one are ordered by the stream.
template <class Count>
DEVICE void add_to_count(Count* count, u32 value) {
  u32* const words = reinterpret_cast<u32*>(count);
  const u32 before = memory::fetch_add_relaxed(words, value);
  if constexpr (sizeof(Count) > sizeof(u32)) {
    if (before + value < before) memory::fetch_add_relaxed(words + 1, 1u);
  }
}

// Calls `add` with each count that an element of this block adds to.
template <class Problem, class Config, class Add>
DEVICE void count_elements(Config config, const lookback_launch& launch, Add add) {
  using items_type = typename Problem::binned_type;
  const auto count = [&](u64 index, const items_type& items) { Problem::each_count(launch, index, items, add); };
  const u32 threads = config.block_threads;
  // Fewer elements than a vector has, a thread each.
  const auto count_singly = [&](u64 first, u64 end) {
    const u64 index = first + thread_index();
    if (index >= end) return;
    items_type items;
    load_elements<0>(launch, index, items);
    count(index, items);
  };
  with_loaded_elements<items_type>(config, launch, [&](auto access, u32 lead) {
    constexpr u32 width = decltype(access)::value;
    const u64 head = (width - lead) % width;  // elements before the first vector
    if (block_index() == 0) count_singly(0, head < launch.n ? head : launch.n);
    if (launch.n <= head) return;
    const u64 tile_elements = static_cast<u64>(threads) * config.vt;
    for (u64 first = head + block_index() * tile_elements; first + tile_elements <= launch.n; first += grid_blocks() * tile_elements) {
      const u64 mine = first + thread_index() * width;
      const auto index_of = [&](u64 i) { return mine + i / width * width * threads + i % width; };
      items_type loaded[Config::maximum_vt];
      LOOKBACK_UNROLL
      for (u64 i = 0; i < config.vt; i += width) {
        const auto at = [&](u32 j) -> items_type& { return loaded[i + j]; };
        load_vectors<width, 0>(launch, index_of(i), at, static_cast<items_type*>(nullptr));
      }
      LOOKBACK_UNROLL
      for (u64 i = 0; i < config.vt; ++i) count(index_of(i), loaded[i]);
    }
    // What is left is less than a tile. All blocks share it, from the last one on, which may have had no tile.
    const u64 turn = grid_blocks() - 1 - block_index();
    const u64 step = grid_blocks() * threads * width;
    constexpr u32 at_once = width == 1 ? Config::maximum_vt : width;
    u64 mine = launch.n - (launch.n - head) % tile_elements + (turn * threads + thread_index()) * width;
    for (; mine + width <= launch.n; mine += at_once / width * step) {
      const auto index_of = [&](u32 i) { return mine + i / width * step + i % width; };
      const auto has = [&](u32 i) { return width > 1 || index_of(i) < launch.n; };
      items_type loaded[at_once];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < at_once; i += width) {
        const auto at = [&](u32 j) -> items_type& { return loaded[i + j]; };
        if (has(i)) load_vectors<width, 0>(launch, index_of(i), at, static_cast<items_type*>(nullptr));
      }
      LOOKBACK_UNROLL
      for (u32 i = 0; i < at_once; ++i) {
        if (has(i)) count(index_of(i), loaded[i]);
      }
    }
    if (turn == 0) count_singly(launch.n - (launch.n - head) % width, launch.n);
  });
}

// Counts the block's elements in its shared memory, and calls `body` with bins and how many elements fall into each, the same bin with
// several counts where `Problem::shares_bins`. No thread calls it before all have come here.
template <class Problem, class Config, class Body>
DEVICE void count_in_block(Config config, const lookback_launch& launch, Body body) {
  const u32 threads = config.block_threads;
  using counts_type = block_counts<Problem::maximum_counts, copies_of(Problem::maximum_counts)>;
  SHARED(counts_type, shared);
  shared.clear(threads);
  block_barrier();  // nothing is counted yet
  const auto of_lane = shared.of_lane();
  count_elements<Problem>(config, launch, [&](u32 count) { of_lane.add(count, 1); });
  block_barrier();  // all is counted
  shared.each_total(Problem::counts(launch), threads, [&](u32 count, u32 total) {
    Problem::with_bin(count, [&](u32 bin) { body(bin, total); });
  });
}

// Reads: output (added to: a count a bin), n, and what the problem loads. Any number of blocks.
template <class Problem, class Config>
DEVICE void count_bins(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    using Count = typename Problem::state_type;
    const auto add = [&](u32 bin, u32 value) { add_to_count(static_cast<Count*>(launch.output) + bin, value); };
    if constexpr (has_room_for(Problem::maximum_counts)) {
      if constexpr (Problem::shares_bins) {
        // The block adds them up by itself first, because all blocks wait for each other at a bin.
        using bins_type = block_counts<Problem::bins, 1>;
        SHARED(bins_type, bins);
        bins.clear(config.block_threads);  // before a barrier of the block behind which it counts
        const auto of_block = bins.of_lane();
        count_in_block<Problem>(config, launch, [&](u32 bin, u32 total) { of_block.add(bin, total); });
        block_barrier();  // all is in its bin
        bins.each_total(Problem::bins, config.block_threads, add);
      } else {
        count_in_block<Problem>(config, launch, add);
      }
    } else {
      count_elements<Problem>(config, launch, [&](u32 bin) { add(bin, 1u); });
    }
  }
}

}  // namespace scan
}  // namespace lookback
