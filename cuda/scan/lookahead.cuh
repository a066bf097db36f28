// Single pass with look-ahead: persistent blocks, each with a ring of tiles in shared memory. The warps of a block have
// one task each:
//
//   producer    draws tickets ahead of time and copies each tile into the next free stage of the ring
//   reducers    reduce a tile as soon as it has landed, each its share; the first one publishes the aggregate
//   finder      combines the aggregates of all tiles into the prefixes of the block's own ones, 32 tiles at a time in
//               fixed, aligned groups, or one by one if the operator is `reproducible`: sums of floats are the same bit for
//               bit whichever block scans which tile
//   the others  scan the tile from shared memory to global memory
//
// No inclusive prefix is published or waited for, so no chain runs from tile to tile. To publish an aggregate a block
// waits for no other block, only for its own ring, which holds earlier tiles: one running block is enough for progress.
// 2n element-moves.
#pragma once

#include "../async_copy.cuh"
#include "../block/tile.cuh"
#include "../descriptor.cuh"
#include "../problem/fold.cuh"
#include "../problem/reduce_segments.cuh"
#include "ring_position.cuh"
#include "single_pass.cuh"

namespace lookback {
namespace scan {

// Warps of a block that reduce.
template <class Problem>
DEVICE_CONSTEXPR u32 reducing_warps() {
  constexpr u32 of_one = LOOKBACK_REDUCING_WARPS;
  constexpr u32 of_several = LOOKBACK_ARRAYS_REDUCING_WARPS;
  return Problem::has_arrays ? of_several : of_one;
}

// What the warps of a block tell each other about the tile in each stage.
template <class Problem, class Config>
struct lookahead_ring {
  using T = typename Problem::state_type;
  static constexpr u32 maximum_warps = Config::maximum_block_threads / LOOKBACK_WARP_LANES;

  T warp_prefix[Config::maximum_stages][maximum_warps];  // what stands left of a scanning warp, within its share
  T share_total[Config::maximum_stages][reducing_warps<Problem>()];
  T share_prefix[Config::maximum_stages][reducing_warps<Problem>()];  // what stands left of a share, within the tile
  T tile_prefix[Config::maximum_stages];                 // what stands left of the tile
  u64 tile[Config::maximum_stages];                      // its index; `lookback_launch::tiles` and more is the end
  copy_barrier drawn[Config::maximum_stages];            // the index is there
  copy_barrier landed[Config::maximum_stages];           // index and elements are there
  copy_barrier reduced[Config::maximum_stages];          // the totals of all shares but the first are there
  copy_barrier ready[Config::maximum_stages];            // and all prefixes; by rank, those that scan have loaded
  copy_barrier drained[Config::maximum_stages];          // the scanning warps are done with it
};

// The stages: the input of a tile each, and a vector more where some elements are skipped (`tile::load_staged`).
template <class Input>
struct ring_stages {
  static constexpr u32 gap = sizeof(Input) == sizeof(u32) ? LOOKBACK_CACHE_LINE_BYTES / sizeof(Input) : 0;

  Input* first;
  u32 tile_elements;
  u32 skipped;  // elements

  DEVICE Input* at(u32 stage, u64) const { return first + static_cast<u64>(stage) * (tile_elements + gap); }

  // What is copied.
  DEVICE u32 elements() const { return tile_elements + (skipped == 0 ? 0 : LOOKBACK_VECTOR_BYTES / sizeof(Input)); }
};

// Those of a block, in its dynamic shared memory.
template <class Problem, class Config>
DEVICE auto make_stages(Config config, const lookback_launch& launch, u32 skipped) {
  if constexpr (Problem::has_arrays) {
    return Problem::stages_type::make(config, launch);
  } else {
    const u32 tile_elements = config.block_threads * config.vt;
    using Input = typename Problem::input_type;
    const u32 stage_bytes = (tile_elements + ring_stages<Input>::gap) * static_cast<u32>(sizeof(Input));
    // A stage begins at the same offset in a cache line as its tile: a copy that shifts by part of a line takes longer.
    const u64 begin = reinterpret_cast<u64>(launch.input) - launch.lead * sizeof(Input);
    u8* const shared = dynamic_shared(config.stages * stage_bytes + LOOKBACK_CACHE_LINE_BYTES - LOOKBACK_VECTOR_BYTES);
    return ring_stages<Input>{reinterpret_cast<Input*>(shared + begin % LOOKBACK_CACHE_LINE_BYTES), tile_elements,
                              skipped};
  }
}

// The elements of a stage that may be read: `begin` up to `end`, counted from the tile's first.
struct stage_extent {
  i64 first;  // negative for the lead of tile 0
  u32 elements;
  u32 begin;
  u32 end;

  template <class Input, class Config>
  DEVICE stage_extent(Config config, const lookback_launch& launch, const ring_stages<Input>& stages, u64 index) {
    elements = stages.elements();
    first = static_cast<i64>(index * stages.tile_elements) - static_cast<i64>(launch.lead);
    // An exclusive scan has no use for the last element, and its caller need not have one.
    const i64 readable = static_cast<i64>(launch.n) - (config.mode == LOOKBACK_MODE_EXCLUSIVE ? 1 : 0);
    begin = first < 0 ? static_cast<u32>(-first) : 0;
    end = readable - first < static_cast<i64>(elements) ? static_cast<u32>(readable - first) : elements;
    if (end < begin) end = begin;
  }

  DEVICE bool is_whole() const { return begin == 0 && end == elements; }
};

// Elements `begin` to `end` of a tile, fewer than the warp has lanes, from the array to its stage; by all lanes.
template <class T>
DEVICE void fetch_elements(const T* from, T* stage, u32 begin, u32 end) {
  const u32 at = begin + lane_index();
  if (at < end) memory::shared_store(stage[at], memory::load(from + static_cast<i64>(at)));
}

// The same, but all of them become `value`.
template <class T>
DEVICE void fill_elements(T* stage, u32 begin, u32 end, T value) {
  const u32 at = begin + lane_index();
  if (at < end) memory::shared_store(stage[at], value);
}

// Any number of whole lines of 16 bytes.
template <class T>
DEVICE void fill_lines(T* stage, u32 begin, u32 end, T value) {
  constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(T);
  T vector[line];
  LOOKBACK_UNROLL
  for (u32 j = 0; j < line; ++j) vector[j] = value;
  for (u32 at = begin + lane_index() * line; at < end; at += LOOKBACK_WARP_LANES * line) {
    memory::shared_store_vector<line>(stage + at, vector);
  }
}

// The producer: fills one stage after the other until there are no tiles. Lane 0 has the first tile's index in `next`.
template <class Problem, class Config, class Stages>
DEVICE void fetch_tiles(Config config, const lookback_launch& launch, lookahead_ring<Problem, Config>& ring,
                        Stages stages, u64 next) {
  const u32 lane = lane_index();
  // Whether the rings of all blocks together hold the whole array.
  const bool all_fit = launch.tiles <= grid_blocks() * config.stages;
  ring_position at = {0, 0};
  for (u64 round = 1;; ++round) {
    // Pairs with the arrivals of the scanning warps, which come behind those of the reducers and the finder: all are
    // done with the stage before it is overwritten. The first round finds the ring empty.
    barrier_wait(ring.drained[at.stage], at.parity ^ 1);
    // Read behind the wait, so that the ticket arrives meanwhile.
    const u64 index = shuffle_index(next, 0);
    if (lane == 0) {
      memory::shared_store(ring.tile[at.stage], index);
      barrier_arrive(ring.drawn[at.stage]);
    }
    if (index >= launch.tiles) {
      if (lane == 0) {
        barrier_arrive(ring.landed[at.stage]);
        barrier_arrive(ring.landed[at.stage]);
      }
      return;
    }
    if constexpr (Problem::has_arrays) {
      stages.at(at.stage, index).fetch(ring.landed[at.stage]);
    } else {
      using Input = typename Problem::input_type;
      constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(Input);
      constexpr u32 cache_line = LOOKBACK_CACHE_LINE_BYTES / sizeof(Input);
      const Input* const input = static_cast<const Input*>(launch.input);
      const stage_extent tile(config, launch, stages, index);
      Input* const stage = stages.at(at.stage, index);
      // The first and the last tile may begin and end inside a line of 16 bytes, the rest of which is not the array's. Only
      // whole lines are copied; the elements beside them are loaded one by one meanwhile, and the rest of the stage is
      // padded. So no other warp need tell such a tile from a whole one.
      const u32 inner_begin = (tile.begin + line - 1) / line * line;
      const u32 inner_end = tile.end / line * line;
      const u32 count = inner_begin < inner_end ? inner_end - inner_begin : 0;
      const Input* const from = input + (tile.first + static_cast<i64>(inner_begin));
      // Copies that are under way delay the first aggregates. So while the ring fills, no more than one and a half tiles are
      // under way if the rings hold the whole array, and two if more tiles follow, because then the memory must not idle;
      // later the ring itself is the limit. The waits pair with both arrivals and the copies of a tile; they only delay,
      // nothing is read behind them.
      const u32 first_part = all_fit ? count / (2 * cache_line) * cache_line : 0;
      if (round <= config.stages && !all_fit && round > 2) barrier_wait(ring.landed[round - 3], 0);
      copy_before_arrival(stage + inner_begin, from, first_part, ring.landed[at.stage]);
      if (round <= config.stages && all_fit && round > 1) barrier_wait(ring.landed[round - 2], 0);
      copy_and_arrive(stage + inner_begin + first_part, from + first_part, count - first_part, ring.landed[at.stage]);
      if (!tile.is_whole()) {
        const u32 head_end = inner_begin < tile.end ? inner_begin : tile.end;
        const u32 tail_begin = inner_begin < inner_end ? inner_end : head_end;
        fetch_elements(input + tile.first, stage, tile.begin, head_end);
        fetch_elements(input + tile.first, stage, tail_begin, tile.end);
        const u32 lead_lines = tile.begin / line * line;
        fill_lines(stage, 0, lead_lines, Problem::padding());
        fill_elements(stage, lead_lines, tile.begin, Problem::padding());
        const u32 lines_begin = (tile.end + line - 1) / line * line;
        fill_elements(stage, tile.end, lines_begin, Problem::padding());
        fill_lines(stage, lines_begin, tile.elements, Problem::padding());
        warp_barrier();  // all lanes have written theirs
      }
    }
    if (lane == 0) barrier_arrive(ring.landed[at.stage]);
    if (lane == 0) next = draw_ticket(config, launch, round);
    at.advance(config.stages);
  }
}

// The type of totals that are still to be combined.
template <class Operator>
using total_of = typename totals_operator<Operator>::type::value_type;

// The combination of a vector in a stage.
template <class Problem, u32 width, class Stage, class Operator = typename Problem::operator_type>
DEVICE total_of<Operator> reduce_vector(Stage from) {
  if constexpr (Problem::has_arrays) {
    return from.template combined<width>();
  } else {
    typename Problem::input_type vector[width];
    memory::shared_load_vector<width>(from, vector);
    if constexpr (is_packed<Operator, width>()) {
      u32 words[vector_words];
      memcpy(words, vector, sizeof(words));
      return sum_packed<Operator>(words);
    } else {
      total_of<Operator> value = Problem::load(vector[0]);
      LOOKBACK_UNROLL
      for (u32 j = 1; j < width; ++j) {
        value = combine<typename totals_operator<Operator>::type>(value, Problem::load(vector[j]));
      }
      return value;
    }
  }
}

// Values of a lane that are combined over the warp together.
template <class T>
DEVICE_CONSTEXPR u32 values_per_exchange() {
  // What lanes of the CPU device exchange at once (`LOOKBACK_EXCHANGE_BYTES`, which more would not compile with); 8 values
  // hide the latency of combining one.
  constexpr u32 most_bytes = 96;
  return 8 * sizeof(T) <= most_bytes ? 8 : most_bytes / sizeof(T);
}

// Scanning warps whose part of the tile one reducer reduces; the last one may have fewer.
template <class Problem, class Config>
DEVICE u32 warps_of_share(Config config) {
  return (config.block_threads / LOOKBACK_WARP_LANES + reducing_warps<Problem>() - 1) / reducing_warps<Problem>();
}

// The total of a share of the tile in a stage, for lane 0. Leaves what stands left of each of its scanning warps.
template <class Problem, class T, class Config, class Stage>
DEVICE T reduce_stage(Config config, Stage stage, u32 share, T* warp_prefixes) {
  using Operator = typename Problem::operator_type;
  using totals_type = typename totals_operator<Operator>::type;
  // Narrow elements are many a vector, and each that is unpacked takes a register.
  constexpr bool is_unpacked = sizeof(typename Problem::input_type) < 4 && !packed<Operator>::exists;
  constexpr u32 together = is_unpacked ? 2 : values_per_exchange<T>();
  const u32 warps = config.block_threads / LOOKBACK_WARP_LANES;
  const u32 each = warps_of_share<Problem>(config);
  const u32 first_warp = share * each;
  T running = Operator::identity();
  with_run_elements<access_type<Problem>>(config, [&](auto access) {
    constexpr u32 width = decltype(access)::value;
    constexpr u32 row_elements = LOOKBACK_WARP_LANES * width;
    const u32 rows = config.vt / width;
    const u32 lane_offset = lane_index() * width;
    if constexpr (Operator::is_commutative) {
      // The rows of a scanning warp are added up lane by lane, then the lanes of several warps together.
      LOOKBACK_NOUNROLL
      for (u32 from = 0; from < each; from += together) {
        const u32 count = each - from < together ? each - from : together;
        total_of<Operator> totals[together];
        LOOKBACK_UNROLL
        for (u32 i = 0; i < together; ++i) {
          if (i >= count) continue;
          totals[i] = Operator::identity();
          if (warps % reducing_warps<Problem>() != 0 && first_warp + from + i >= warps) continue;
          const u32 offset = (first_warp + from + i) * rows * row_elements + lane_offset;
          totals[i] = reduce_vector<Problem, width>(stage + offset);
          LOOKBACK_UNROLL
          for (u32 row = 1; row < rows; ++row) {
            const auto next = reduce_vector<Problem, width>(stage + (offset + row * row_elements));
            totals[i] = combine<totals_type>(totals[i], next);
          }
        }
        warp_reduce_each<totals_type>(totals, count);
        LOOKBACK_UNROLL
        for (u32 i = 0; i < together; ++i) {
          if (i >= count) continue;
          if (warps % reducing_warps<Problem>() != 0 && first_warp + from + i >= warps) continue;
          if (lane_index() == 0) memory::shared_store(warp_prefixes[first_warp + from + i], running);
          running = combine<Operator>(running, static_cast<T>(totals[i]));
        }
      }
    } else {
      // Row by row, because a lane's elements of two rows are no neighbours.
      LOOKBACK_NOUNROLL
      for (u32 warp = first_warp; warp < warps && warp < first_warp + each; ++warp) {
        if (lane_index() == 0) memory::shared_store(warp_prefixes[warp], running);
        LOOKBACK_UNROLL
        for (u32 from = 0; from < rows; from += together) {
          const u32 count = rows - from < together ? rows - from : together;
          T totals[together];
          LOOKBACK_UNROLL
          for (u32 i = 0; i < together; ++i) {
            if (i >= count) continue;
            const u32 offset = (warp * rows + from + i) * row_elements + lane_offset;
            totals[i] = reduce_vector<Problem, width>(stage + offset);
          }
          if constexpr (is_reproducible<Operator>::value) {
            running = join_rows<Operator>(running, totals, count, from == 0);
            continue;
          }
          warp_reduce_each<Operator>(totals, count);
          LOOKBACK_UNROLL
          for (u32 i = 0; i < together; ++i) {
            if (i < count) running = combine<Operator>(running, totals[i]);
          }
        }
      }
    }
  });
  return running;
}

// The same of a problem of any kind.
template <class Problem, class T, class Config, class Stages>
DEVICE T reduce_share(Config config, Stages stages, u32 stage, u64 index, u32 share, T* warp_prefixes) {
  if constexpr (has_findable_segments<Problem>()) {
    constexpr u32 together = values_per_exchange<typename Problem::unbroken::state_type>();
    const u32 warps = config.block_threads / LOOKBACK_WARP_LANES;
    const u32 each = warps_of_share<Problem>(config);
    const u32 end = (share + 1) * each < warps ? (share + 1) * each : warps;
    return reduce_segments<together, Problem>(config, stages, stage, index, share * each, end, warp_prefixes);
  } else {
    return reduce_stage<Problem>(config, stages.at(stage, index), share, warp_prefixes);
  }
}

// A reducer.
template <class Problem, class Config, class Stages, class Descriptors>
DEVICE void publish_aggregates(Config config, const lookback_launch& launch, lookahead_ring<Problem, Config>& ring,
                               Stages stages, u32 share, Descriptors descriptors, u32 epoch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  ring_position at = {0, 0};
  if (share == 0) descriptors.await_others(epoch);
  for (;; at.advance(config.stages)) {
    // Pairs with both arrivals and the copies of the producer: the tile is in its stage.
    barrier_wait(ring.landed[at.stage], at.parity);
    const u64 index = memory::shared_load(ring.tile[at.stage]);
    if (index >= launch.tiles) return;
    const T mine = reduce_share<Problem>(config, stages, at.stage, index, share, ring.warp_prefix[at.stage]);
    if (share != 0) {
      if (lane_index() == 0) memory::shared_store(ring.share_total[at.stage][share], mine);
      warp_barrier();  // all lanes have read the stage and written prefixes
      if (lane_index() == 0) barrier_arrive(ring.reduced[at.stage]);
      continue;
    }
    T total = mine;
    // Pairs with the arrivals of the other reducers: their totals are there, and the prefixes of their warps, which
    // the arrival below hands on.
    barrier_wait(ring.reduced[at.stage], at.parity);
    LOOKBACK_UNROLL
    for (u32 other = 1; other < reducing_warps<Problem>(); ++other) {
      // Beyond the last scanning warp there is no total, and the identity is not to be combined with.
      if (is_reproducible<Operator>::value && other * LOOKBACK_WARP_LANES >= config.block_threads) continue;
      if (lane_index() == 0) memory::shared_store(ring.share_prefix[at.stage][other], total);
      total = combine<Operator>(total, memory::shared_load(ring.share_total[at.stage][other]));
    }
    if (lane_index() == 0) {
      memory::shared_store(ring.share_prefix[at.stage][0], Operator::identity());
      descriptors.publish(descriptors.place_of(index), epoch, LOOKBACK_STATUS_AGGREGATE, total);
    }
    warp_barrier();  // all lanes have read the stage and the totals
    if (lane_index() == 0) barrier_arrive(ring.ready[at.stage]);
  }
}

// What the finder combines of tiles' totals: states. Where it is known by arithmetic in which tile a row begins, that tile is the
// first that counts, and no other one that does has a begin, so that values without marks do.
template <class Problem>
DEVICE_CONSTEXPR bool finds_values() {
  return has_known_rows<Problem>() && !is_reproducible<typename Problem::operator_type>::value;
}
template <class Problem, bool are_values = finds_values<Problem>()>
struct found_in {
  using operator_type = typename Problem::operator_type;
  using T = typename Problem::state_type;
  DEVICE static T value_of(T state) { return state; }
  DEVICE static T state_of(T value) { return value; }
};
template <class Problem>
struct found_in<Problem, true> {
  using operator_type = typename Problem::own_operator;
  using T = typename Problem::state_type;
  DEVICE static typename Problem::own_state value_of(T state) { return Problem::segments_type::value_of(state); }
  DEVICE static T state_of(typename Problem::own_state value) { return Problem::state_of(value, 0); }
};

// What stands left of a tile, from the aggregates of all tiles before it. Kept by one warp; tiles are asked for in
// ascending order.
//
// A group is 32 neighbouring tiles, a lane each. If the operator is commutative, each lane combines its own tiles of all
// groups, and lanes are combined for the result only; else each group is combined by itself. In both cases groups begin
// at multiples of 32 and are combined in order, so a prefix depends on the tile alone, to the last bit. A `reproducible`
// operator combines tile after tile, from wherever it was asked last: `value` is then what stands before `tiles`, any number.
template <class Problem, class Descriptors>
struct running_prefix {
  using found = found_in<Problem>;
  using Operator = typename found::operator_type;
  using T = typename Problem::state_type;
  using totals_type = typename totals_operator<Operator>::type;
  using total_type = total_of<Operator>;
  // Of values of several words, which all lanes exchange, as few as are not spilled.
  static constexpr u32 maximum_groups =
      Operator::is_commutative || Descriptors::count == 1 ? values_per_exchange<total_type>() : 6 / Descriptors::count;
  static_assert(Descriptors::count <= 6, "a group's words fit");
  // Groups whose descriptors are on their way at one time: more than 8 words a lane would be spilled.
  static constexpr u32 groups_in_flight = maximum_groups * Descriptors::count <= 8 ? maximum_groups : 8 / Descriptors::count;

  Descriptors descriptors;
  u32 epoch;
  total_type value;  // the combination of the whole groups before `tiles`, or the lane's part of it
  u64 tiles;         // a multiple of the warp's width, unless tiles are combined one by one
  u64 first;         // of the tiles that count

  DEVICE running_prefix(Descriptors descriptors_, u32 epoch_)
      : descriptors(descriptors_), epoch(epoch_), value(totals_type::identity()), tiles(0), first(0) {}

  // What stands before this tile does not count any more.
  DEVICE void begin_at(u64 tile) {
    if (tile == first) return;
    first = tile;
    tiles = is_reproducible<Operator>::value ? tile : tile / LOOKBACK_WARP_LANES * LOOKBACK_WARP_LANES;
    value = totals_type::identity();
  }

  // Lane's tile of a group, from `tiles`.
  DEVICE static u32 place_of(u32 group) { return lane_index() + group * LOOKBACK_WARP_LANES; }
  DEVICE u64 tile_of(u32 group) const { return tiles + place_of(group); }

  // For lane 0; the other lanes get anything.
  DEVICE T left_of(u64 tile) {
    constexpr u32 window = maximum_groups * LOOKBACK_WARP_LANES;
    for (;;) {
      // Those that are read now. Counted in 32 bits: this warp alone has work of its own for every tile.
      const u64 all_left = tile - tiles;
      const u32 left = all_left < window ? static_cast<u32>(all_left) : window;
      const u32 whole = left / LOOKBACK_WARP_LANES;
      // Those among them that do not count.
      const u32 skipped = finds_values<Problem>() && tiles < first ? static_cast<u32>(first - tiles) : 0;
      total_type values[maximum_groups];
      u32 missing = 0;  // a bit a group
      LOOKBACK_UNROLL
      for (u32 group = 0; group < maximum_groups; ++group) {
        values[group] = totals_type::identity();
        if (place_of(group) >= skipped && place_of(group) < left) missing |= 1u << group;
      }
      read(missing, values, missing);
      const waiting wait;
      bool asks_all = false;
      while (ballot(missing != 0) != 0) {
        const bool is_waiting = missing != 0;
        if (wait.warp_gives_up(tile, tile_of(is_waiting ? lowest_set_bit(missing) : 0), is_waiting)) break;
        if (descriptors.warp_is_given_up()) break;
        // Polls the first missing group alone, because all waiting warps read the same lines again and again. Once it is
        // there the others probably are, too: they are read together, in one trip to the L2 cache.
        const u32 asked = asks_all ? missing : missing & (0u - missing);
        read(asked, values, missing);
        asks_all = ballot((asked & missing) != 0) == 0;
      }
      if constexpr (is_reproducible<Operator>::value) {
        // All that was read is kept, so that no tile is read twice.
        value = fold_each<Operator>(value, values, left);
        tiles += left;
        if (tiles == tile) return value;
        continue;
      }
      if constexpr (!Operator::is_commutative) warp_reduce_each<totals_type>(values, maximum_groups);

      // Whole groups are kept. One that the tile cuts is read again for the next tile, which needs more of it.
      total_type prefix = value;
      LOOKBACK_UNROLL
      for (u32 group = 0; group < maximum_groups; ++group) {
        prefix = combine<totals_type>(prefix, values[group]);
        if (group < whole) value = prefix;
      }
      tiles += whole * LOOKBACK_WARP_LANES;
      if (all_left <= window) {
        if constexpr (!Operator::is_commutative) return found::state_of(prefix);
        total_type joined[1] = {prefix};
        warp_reduce_each<totals_type>(joined, 1);
        return found::state_of(static_cast<typename Operator::value_type>(joined[0]));
      }
    }
  }

 private:
  // Asks for the lane's tiles of the groups that have a bit in `asked`; those that are there have none in `missing` afterwards. Reads
  // are under way together before the first result is looked at.
  DEVICE void read(u32 asked, total_type (&values)[maximum_groups], u32& missing) const {
    LOOKBACK_UNROLL
    for (u32 from = 0; from < maximum_groups; from += groups_in_flight) {
      descriptor_view<T> views[groups_in_flight];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < groups_in_flight; ++i) {
        if ((asked >> (from + i) & 1) != 0) views[i] = descriptors.read(tile_of(from + i), epoch);
      }
      LOOKBACK_UNROLL
      for (u32 i = 0; i < groups_in_flight; ++i) {
        const u32 group = from + i;
        if ((asked >> group & 1) == 0 || views[i].status == LOOKBACK_STATUS_INVALID) continue;
        if (group < maximum_groups) values[group] = found::value_of(views[i].value);
        missing &= ~(1u << group);
      }
    }
  }
};

// The finder. It also ends the block's part of the launch, a fence and a trip to the L2 cache, while the last tile is
// still being scanned.
template <class Problem, class Config, class Descriptors>
DEVICE void find_prefixes(Config config, const lookback_launch& launch, lookahead_ring<Problem, Config>& ring,
                          Descriptors descriptors, u32 epoch) {
  using T = typename Problem::state_type;
  running_prefix<Problem, Descriptors> running(descriptors, epoch);
  ring_position at = {0, 0};
  ring_position last = at;
  bool has_tile = false;
  descriptors.await_others(epoch);
  for (;; at.advance(config.stages)) {
    // Pairs with the arrival of the producer: the tile's index is there. Its prefix can be known before it has landed.
    barrier_wait(ring.drawn[at.stage], at.parity);
    const u64 index = memory::shared_load(ring.tile[at.stage]);
    if (index >= launch.tiles) break;
    if constexpr (has_known_rows<Problem>()) running.begin_at(Problem::tile_of_begin(config, launch, index));
    const T prefix = running.left_of(descriptors.place_of(index));
    if (lane_index() == 0) memory::shared_store(ring.tile_prefix[at.stage], prefix);
    warp_barrier();  // all lanes have read the index
    if (lane_index() == 0) barrier_arrive(ring.ready[at.stage]);
    last = at;
    has_tile = true;
  }
  // Behind this wait all tickets and descriptor accesses of the block are done: the producer has handed on its last
  // ticket, this warp has read its last aggregate, and the first reducer arrives behind its last publication.
  if (has_tile) barrier_wait(ring.ready[last.stage], last.parity);
  if (lane_index() == 0) finish_tile(launch, descriptors, epoch);
}

// What stands left of a scanning warp within its tile, once all prefixes are there.
template <class Problem, class Config>
DEVICE typename Problem::state_type left_of_warp(Config config, const lookahead_ring<Problem, Config>& ring, u32 stage) {
  const u32 share = warp_index() / warps_of_share<Problem>(config);
  // There a share is one warp.
  if constexpr (is_reproducible<typename Problem::operator_type>::value) return memory::shared_load(ring.share_prefix[stage][share]);
  return combine<typename Problem::operator_type>(memory::shared_load(ring.share_prefix[stage][share]),
                                                  memory::shared_load(ring.warp_prefix[stage][warp_index()]));
}

// Whether the warps that scan store by way of the stage: a run lies in one lane, and neighbours had better store side by side;
// or what is stored stands at ranks.
template <class Problem, class Config>
DEVICE_CONSTEXPR bool stores_through_stage() {
  if constexpr (Problem::has_arrays) {
    return is_by_rank<Problem>() || (Problem::has_room_in_stage && has_runs<access_type<Problem>, Config>());
  }
  return false;
}

// The warps that scan.
template <class Problem, class Config, class Stages>
DEVICE void scan_tiles_ahead(Config config, const lookback_launch& launch, lookahead_ring<Problem, Config>& ring,
                             tile_storage<Problem, Config>& storage, Stages stages) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  ring_position at = {0, 0};
  // The rest of what a warp does with its part of a tile, which it holds.
  const auto scan = [&](auto& mine, const auto& stage, T skipped, auto finish) {
    if constexpr (is_by_rank<Problem>()) {
      warp_barrier();  // all lanes have read the stage
      // Pairs with the wait below of the other warps, which overwrite the stage behind it.
      if (lane_index() == 0) barrier_arrive(ring.ready[at.stage]);
    }
    mine.template reduce_team<true>();
    // Pairs with the arrivals of the first reducer and of the finder: all prefixes are there. By rank, with those of the other
    // warps that scan, too: the stage may be overwritten anywhere.
    barrier_wait(ring.ready[at.stage], at.parity);
    const T tile_prefix = memory::shared_load(ring.tile_prefix[at.stage]);
    T warp_prefix = left_of_warp<Problem>(config, ring, at.stage);
    if (stages.skipped != 0) warp_prefix = combine<Operator>(warp_prefix, skipped);
    warp_barrier();  // all lanes have read elements and prefixes
    bool is_stored = false;
    if constexpr (stores_through_stage<Problem, Config>()) {
      finish(tile_prefix, warp_prefix);
      is_stored = mine.store_through(launch, stage);
      warp_barrier();  // all lanes have read what others have written
    }
    // Hands the stage back. A scan in place is right, because the whole tile has landed before any of it is written.
    if (lane_index() == 0) barrier_arrive(ring.drained[at.stage]);
    if constexpr (!stores_through_stage<Problem, Config>()) finish(tile_prefix, warp_prefix);
    if (!is_stored) mine.template store<true>(launch);
  };
  for (;; at.advance(config.stages)) {
    // Pairs with both arrivals and the copies of the producer: the tile is in its stage.
    barrier_wait(ring.landed[at.stage], at.parity);
    const u64 index = memory::shared_load(ring.tile[at.stage]);
    if (index >= launch.tiles) return;
    if constexpr (has_findable_segments<Problem>()) {
      const u32 part_elements = LOOKBACK_WARP_LANES * config.vt;
      const u32 part = warp_index() * part_elements;
      const u32 begin = Problem::segments_type::last_begin(stages.at(at.stage, index), part, part_elements);
      if (begin == no_begin || begin == part) {
        // No segment begins here, unless it is with the first element: as if there were no segments.
        using unbroken = typename Problem::unbroken;
        using unbroken_storage = tile_storage<unbroken, Config>;
        SHARED(unbroken_storage, storage_of_unbroken);
        tile<unbroken, Config> mine(config, storage_of_unbroken, launch, index);
        const auto stage = stages.template as<unbroken>().at(at.stage, index);
        mine.load_staged(stage, 0);
        scan(mine, stage, Operator::identity(), [&](T tile_prefix, T warp_prefix) {
          mine.warp_prefix = unbroken::operator_type::identity();
          mine.finish(launch, Problem::left_within(combine<Operator>(tile_prefix, warp_prefix), begin == part));
        });
        continue;
      }
    }
    tile<Problem, Config> mine(config, storage, launch, index);
    const auto stage = stages.at(at.stage, index);
    mine.load_staged(stage, stages.skipped);
    T skipped = Operator::identity();
    if (stages.skipped != 0) skipped = mine.reduce_skipped(stage, stages.skipped);
    scan(mine, stage, skipped, [&](T tile_prefix, T warp_prefix) {
      mine.warp_prefix = warp_prefix;
      mine.finish(launch, tile_prefix);
    });
  }
}

// Reads: input, output, control, descriptors, n, tiles, capacity, lead (to a 16-byte boundary, and no less than
// what is skipped of a tile). Any number of blocks of `config.block_threads` threads that scan and LOOKBACK_HELPER_WARPS or
// LOOKBACK_ARRAYS_HELPER_WARPS warps behind them; as dynamic shared memory `config.stages` tiles, of 4-byte values each with a line of
// the cache behind it, and what such a line is longer than a vector. `of_layout` makes of descriptors those that are worked with.
template <class Problem, class Config, class OfLayout>
DEVICE void scan_ahead(const lookback_launch& launch, Config config, OfLayout of_layout) {
  using storage_type = tile_storage<Problem, Config>;
  using ring_type = lookahead_ring<Problem, Config>;
  SHARED(storage_type, storage);
  SHARED(ring_type, ring);
  const auto stages = make_stages<Problem>(config, launch, tile<Problem, Config>(config, storage, launch, 0).elements_skipped(launch));
  const u32 scanning_warps = config.block_threads / LOOKBACK_WARP_LANES;

  // From lane 0, so that the GPU's compiler knows that a warp stays together; if not, it doubles every shuffle. Wraps
  // around for the warps that scan.
  const u32 helper = shuffle_index(warp_index(), 0) - scanning_warps;
  const u32 finder = reducing_warps<Problem>() + 1;

  // The first ticket and the epoch are read while the barriers are initialised, the epoch only by warps that need it.
  u64 first_tile = 0;
  if (helper == 0 && lane_index() == 0) first_tile = draw_ticket(config, launch, 0);
  const u32 epoch = helper == 1 || helper == finder ? launch_epoch(launch) : 0;
  if (thread_index() == 0) {
    for (u32 stage = 0; stage < config.stages; ++stage) {
      barrier_initialize(ring.drawn[stage], 1);   // the producer
      barrier_initialize(ring.landed[stage], 2);  // the producer, with the copy and behind what it writes itself
      barrier_initialize(ring.reduced[stage], reducing_warps<Problem>() - 1);
      // The first reducer and the finder; by rank, those that scan.
      barrier_initialize(ring.ready[stage], 2 + (is_by_rank<Problem>() ? scanning_warps : 0));
      barrier_initialize(ring.drained[stage], scanning_warps);
    }
    barriers_initialized();
  }
  block_barrier();  // the barriers are there

  with_descriptors<Problem>(config, launch, [&](auto layout) {
    const auto descriptors = of_layout(layout);
    if (helper == 0) {
      fetch_tiles(config, launch, ring, stages, first_tile);
    } else if (helper >= 1 && helper <= reducing_warps<Problem>()) {
      publish_aggregates(config, launch, ring, stages, helper - 1, descriptors, epoch);
    } else if (helper == finder) {
      find_prefixes(config, launch, ring, descriptors, epoch);
    } else {
      scan_tiles_ahead(config, launch, ring, storage, stages);
    }
  });
}

// Arrays of a user are scanned in runs, unless the order of combining is documented.
template <class Problem, class Config, class OfLayout>
DEVICE void scan_arrays_ahead(const lookback_launch& launch, Config config, OfLayout of_layout) {
  if constexpr (Problem::has_arrays && !is_reproducible<typename Problem::operator_type>::value) {
    scan_ahead<Problem>(launch, in_runs<Config>(config), of_layout);
  } else {
    scan_ahead<Problem>(launch, config, of_layout);
  }
}

// The kernel.
template <class Problem, class Config>
DEVICE void lookahead(Config config, const lookback_launch& launch) {
  scan_arrays_ahead<Problem>(launch, config, [](auto layout) { return layout; });
}

}  // namespace scan
}  // namespace lookback
