// Single pass without a chain. A block keeps its tile in registers, publishes the tile's aggregate, and combines the
// aggregates of all tiles before it by itself: no inclusive prefix is published or waited for. 2n element-moves, and
// of the order of tiles^2 descriptor reads, so it is for arrays whose tiles are all resident together. Tiles come from
// the ticket: a tile waits only for tiles that have started before it, so any number of resident blocks is enough.
//
// A further warp reads the aggregates; it also ends the launch, a fence and a round trip, while the others store. All
// blocks read the same descriptors at the same time, so there are several copies of them, on lines of their own: a
// block reads one.
#pragma once

#include "../block/tile.cuh"
#include "../descriptor.cuh"
#include "../problem/fold.cuh"
#include "single_pass.cuh"

// It says itself when the next launch may start: once its blocks wait no more.
#define LOOKBACK_KERNEL_ALLOWS_NEXT_LAUNCH

namespace lookback {
namespace scan {

// Descriptors that a lane reads in one round trip to the L2 cache: 256 for a warp.
constexpr u32 descriptors_in_flight = 8;

// Copies of the descriptors. Each tile publishes to all of them, a lane a copy.
constexpr u32 descriptor_copies = LOOKBACK_DESCRIPTOR_COPIES;

// Where a copy begins. One line of memory more than the tiles take keeps copies of 2^k tiles off the same slice of the
// L2 cache.
DEVICE u64 first_of_copy(const lookback_launch& launch, u64 copy) {
  return copy * (launch.tiles + LOOKBACK_DESCRIPTOR_COPY_GAP);
}

// Shared memory by way of which the warps of a block store by rank, lanes side by side: there is no stage, because tiles are in registers.
template <class Config>
struct room_for_ranks {
  static constexpr u32 warps = Config::maximum_block_threads / LOOKBACK_WARP_LANES;
  static constexpr u32 most_bytes = 24 << 10;
  static constexpr u32 most_bytes_of_warp = 4 << 10;
  alignas(LOOKBACK_VECTOR_BYTES) u8 bytes[warps * most_bytes_of_warp < most_bytes ? warps * most_bytes_of_warp : most_bytes];
};

// The same, as `store_through` asks for it.
struct room_of_block {
  u8* first;
  u32 bytes;
  DEVICE u8* free_room() const { return first; }
  DEVICE u32 free_bytes() const { return bytes; }
};

// The combination of all tiles before `start.tile`, from the copy of the descriptors that begins at `copy_first`.
// Called by all lanes of one warp; lane 0 gets the result, the others anything.
template <class Operator, class Descriptors>
DEVICE typename Operator::value_type combine_aggregates(Descriptors descriptors, u64 copy_first, tile_start start) {
  using T = typename Operator::value_type;
  const u32 lane = lane_index();
  T prefix = Operator::identity();
  const u64 end = start.tile;
  const waiting wait;
  u64 first = 0;
  while (first < end) {
    const u64 left = end - first;
    const u32 each = left >= LOOKBACK_WARP_LANES * descriptors_in_flight
                         ? descriptors_in_flight
                         : static_cast<u32>(left + LOOKBACK_WARP_LANES - 1) / LOOKBACK_WARP_LANES;
    // If the operator is commutative, or tiles are combined one by one, neighbouring lanes read neighbouring tiles, which
    // touches the fewest lines; else a lane reads neighbouring tiles, so that lanes are in the order of their tiles.
    constexpr bool are_neighbours = Operator::is_commutative || is_reproducible<Operator>::value;
    const u64 mine = first + (are_neighbours ? lane : lane * each);
    const u64 stride = are_neighbours ? LOOKBACK_WARP_LANES : 1;
    descriptor_view<T> views[descriptors_in_flight];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < descriptors_in_flight; ++i) {
      // A lane without a tile has nothing to wait for.
      const bool exists = i < each && mine + i * stride < end;
      views[i].status = exists ? LOOKBACK_STATUS_INVALID : LOOKBACK_STATUS_AGGREGATE;
      views[i].value = Operator::identity();
    }
    // Read what is missing, at first all, until nothing is.
    for (;;) {
      LOOKBACK_UNROLL
      for (u32 i = 0; i < descriptors_in_flight; ++i) {
        if (views[i].status != LOOKBACK_STATUS_INVALID) continue;
        views[i] = descriptors.read(copy_first + mine + i * stride, start.epoch);
      }
      bool is_waiting = false;
      u64 missing = 0;
      LOOKBACK_UNROLL
      for (u32 i = 0; i < descriptors_in_flight; ++i) {
        if (!is_waiting && views[i].status == LOOKBACK_STATUS_INVALID) {
          is_waiting = true;
          missing = mine + i * stride;
        }
      }
      if (ballot(is_waiting) == 0 || wait.warp_gives_up(start.tile, missing, is_waiting)) break;
    }

    if constexpr (is_reproducible<Operator>::value) {
      const u32 count = left < LOOKBACK_WARP_LANES * each ? static_cast<u32>(left) : LOOKBACK_WARP_LANES * each;
      T values[descriptors_in_flight];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < descriptors_in_flight; ++i) values[i] = views[i].value;
      prefix = fold_each<Operator>(prefix, values, count);
      first += count;
      continue;
    }

    T window = views[0].value;
    LOOKBACK_UNROLL
    for (u32 i = 1; i < descriptors_in_flight; ++i) {
      if (i < each) window = combine<Operator>(window, views[i].value);
    }
    T joined[1] = {window};
    warp_reduce_each<Operator>(joined, 1);
    window = joined[0];
    prefix = combine<Operator>(prefix, window);
    first += LOOKBACK_WARP_LANES * each;
  }
  return prefix;
}

// Reads: input, output, control, descriptors, n, tiles, capacity, lead. A block a tile, of `config.block_threads`
// threads and, unless a pattern spans the block, one warp behind them.
template <class Problem, class Config>
DEVICE void one_wave(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  using storage_type = tile_storage<Problem, Config>;
  SHARED(storage_type, storage);
  SHARED(tile_start, shared_start);

  const tile_start start = start_tile(config, launch, shared_start);
  // From lane 0, so that the GPU's compiler knows that a warp stays together.
  const u32 warp = shuffle_index(warp_index(), 0);
  const u32 scanning_warps = config.block_threads / LOOKBACK_WARP_LANES;
  // A pattern that spans the block has barriers, which a further warp would not come to.
  const bool has_reading_warp = config.composition != LOOKBACK_COMPOSITION_BLOCK;
  const u32 reading_warp = has_reading_warp ? scanning_warps : 0;
  const bool scans = !has_reading_warp || warp < scanning_warps;

  tile<Problem, Config> mine(config, storage, launch, start.tile);
  if (scans) mine.load(launch);
  const T total = mine.reduce_and_join(storage.warp_totals, scans);

  with_descriptors<Problem>(config, launch, [&](auto descriptors) {
    if (warp == reading_warp) {
      const u32 lane = lane_index();
      if (lane < descriptor_copies) {
        descriptors.publish(first_of_copy(launch, lane) + start.tile, start.epoch, LOOKBACK_STATUS_AGGREGATE, total);
      }
      const u64 copy_first = first_of_copy(launch, start.tile % descriptor_copies);
      const T prefix = combine_aggregates<Operator>(descriptors, copy_first, start);
      if (lane == 0) memory::shared_store(storage.tile_prefix, prefix);
    }
    block_barrier();  // the prefix is written, the descriptor accesses of the block are done
    // Not sooner: blocks of the next launch would take resources from those of this one that still wait.
    allow_next_launch();
    if (scans) {
      mine.finish(launch, memory::shared_load(storage.tile_prefix));
      bool is_stored = false;
      if constexpr (is_by_rank<Problem>()) {
        SHARED(room_for_ranks<Config>, room);
        // What a warp keeps of a row that spans the block does not stand side by side with what it keeps of the next one.
        if (!mine.spans_block()) is_stored = mine.store_through(launch, room_of_block{room.bytes, sizeof(room.bytes)});
      }
      if (!is_stored) mine.store(launch);
    }
    if (thread_index() == reading_warp * LOOKBACK_WARP_LANES) finish_tile(launch, descriptors, start.epoch);
  });
}

}  // namespace scan
}  // namespace lookback
