// Single pass with decoupled look-back (Merrill & Garland, 2016). A tile publishes its aggregate as soon
// as it has it, then looks back over the descriptors of the tiles before it, a warp-wide window at a
// time, adding aggregates until it meets an inclusive prefix; it publishes its own inclusive prefix and
// is done. 2n element-moves, and nobody waits for a chain of neighbours.
#pragma once

#include "../block/tile.cuh"
#include "../descriptor.cuh"
#include "../problem/fold.cuh"
#include "single_pass.cuh"

namespace lookback {
namespace scan {

// The combination of all tiles before `start.tile`, which is not 0. Called by all lanes of one warp; all
// get the result.
template <class Operator, class Descriptors>
DEVICE typename Operator::value_type look_back(Descriptors descriptors, tile_start start) {
  using T = typename Operator::value_type;
  const u32 lane = lane_index();
  T prefix = Operator::identity();
  u64 window_end = start.tile;  // the window is the warp's width of tiles before this one
  [[maybe_unused]] bool has_begun = false;
  const waiting wait;
  for (;;) {
    // Lane 0 reads the nearest tile. Lanes beyond the first tile have nothing to wait for.
    const bool exists = lane < window_end;
    descriptor_view<T> view;
    view.status = LOOKBACK_STATUS_AGGREGATE;
    view.value = Operator::identity();
    if (exists) view = descriptors.read(window_end - 1 - lane, start.epoch);

    // Wait for the tiles up to the nearest inclusive prefix; what stands left of that one is not needed.
    u32 with_prefix = ballot(view.status == LOOKBACK_STATUS_PREFIX);
    u32 missing = ballot(view.status == LOOKBACK_STATUS_INVALID);
    while (missing != 0 && (with_prefix == 0 || lowest_set_bit(missing) < lowest_set_bit(with_prefix))) {
      const bool is_waiting = view.status == LOOKBACK_STATUS_INVALID;
      if (wait.warp_gives_up(start.tile, window_end - 1 - lane, is_waiting)) break;
      if (view.status == LOOKBACK_STATUS_INVALID) view = descriptors.read(window_end - 1 - lane, start.epoch);
      with_prefix = ballot(view.status == LOOKBACK_STATUS_PREFIX);
      missing = ballot(view.status == LOOKBACK_STATUS_INVALID);
    }

    if constexpr (is_reproducible<Operator>::value) {
      // Windows are passed over until one has a prefix, and read again from there on: tile after tile, as in a chain.
      has_begun |= with_prefix != 0;
      if (has_begun) prefix = fold_window<Operator>(prefix, view, with_prefix);
      if (has_begun && window_end == start.tile) return prefix;
      window_end = has_begun ? window_end + LOOKBACK_WARP_LANES : window_end - LOOKBACK_WARP_LANES;
      continue;
    }

    // Combine from the nearest prefix (or the window's far end) to lane 0: the higher the lane, the
    // further left its tile.
    const u32 last = with_prefix == 0 ? LOOKBACK_WARP_LANES - 1 : lowest_set_bit(with_prefix);
    T window = lane <= last ? view.value : Operator::identity();
    LOOKBACK_UNROLL
    for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
      const T left = shuffle_down(window, distance);
      if (lane + distance <= last) window = combine<Operator>(left, window);
    }
    window = shuffle_index(window, 0);
    prefix = combine<Operator>(window, prefix);
    if (with_prefix != 0 || window_end <= LOOKBACK_WARP_LANES) return prefix;
    window_end -= LOOKBACK_WARP_LANES;
  }
}

// Publishes a tile's total, looks back, and publishes the prefix behind the tile. What stands left of it, for all lanes of the one
// warp that calls this; `total` is that of lane 0.
template <class Operator, class Descriptors>
DEVICE typename Operator::value_type pass_on(Descriptors descriptors, tile_start start, typename Operator::value_type total) {
  typename Operator::value_type prefix = Operator::identity();
  if (start.tile > 0) {
    if (lane_index() == 0) descriptors.publish(start.tile, start.epoch, LOOKBACK_STATUS_AGGREGATE, total);
    prefix = look_back<Operator>(descriptors, start);
  }
  if (lane_index() == 0) {
    descriptors.publish(start.tile, start.epoch, LOOKBACK_STATUS_PREFIX, combine<Operator>(prefix, total));
  }
  return prefix;
}

// A tile of whole rows, of `launch.stride` elements together: nothing stands left of it.
template <class Problem, class Config>
DEVICE void scan_whole_rows(const lookback_launch& launch, Config config) {
  using storage_type = tile_storage<Problem, Config>;
  SHARED(storage_type, storage);
  tile<Problem, Config> mine(config, storage, launch, block_index(), launch.stride);
  mine.load(launch);
  mine.reduce();
  mine.finish(launch, Problem::operator_type::identity());
  mine.store(launch);
}

// Reads: input, output, control, descriptors, n, capacity, lead, stride, columns. A block a tile. Without a control block each tile is
// whole rows.
template <class Problem, class Config>
DEVICE void lookback(Config config, const lookback_launch& launch) {
  if constexpr (has_known_rows<Problem>()) {
    if (launch.control == nullptr) {
      // Within one row nothing is marked.
      if constexpr (has_findable_segments<Problem>()) {
        if (launch.stride == launch.columns) return scan_whole_rows<typename Problem::unbroken>(launch, config);
      }
      return scan_whole_rows<Problem>(launch, config);
    }
  }
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  using storage_type = tile_storage<Problem, Config>;
  SHARED(storage_type, storage);
  SHARED(tile_start, shared_start);

  const tile_start start = start_tile(config, launch, shared_start);
  tile<Problem, Config> mine(config, storage, launch, start.tile);
  mine.load(launch);
  const T total = mine.reduce();

  with_descriptors<Problem>(config, launch, [&](auto descriptors) {
    if (warp_index() == 0) {
      const T prefix = pass_on<Operator>(descriptors, start, total);
      if (lane_index() == 0) memory::shared_store(storage.tile_prefix, prefix);
    }
    block_barrier();  // the prefix is written, the descriptor accesses of the block are done
    if (thread_index() == 0) finish_tile(launch, descriptors, start.epoch);
  });

  mine.finish(launch, memory::shared_load(storage.tile_prefix));
  mine.store(launch);
}

}  // namespace scan
}  // namespace lookback
