// The scan along an axis of a tensor whose elements do not lie side by side: single pass down the columns, with decoupled
// look-back (Merrill & Garland, 2016) for each column by itself.
//
// The arrays have the shape (outer, length, inner), and element (o, t, j) lies at (o * length + t) * inner + j. A column is
// what is scanned: all t of one (o, j). A strip is `lanes` times `width` neighbouring columns of one outer index, a line of
// tiles goes down it, and a tile is as many rows of it as a block holds in registers:
//
//   thread   `width` columns, VT rows
//   warp     `lanes` threads side by side, and 32 / `lanes` of them one below the other, whose rows alternate: what a warp
//            loads at one time are neighbouring rows, which are neighbouring memory where a strip is as wide as the tensor
//   block    warps one below the other; or, of one or two, side by side, each with a tile of its own, where one has rows enough
//            for a column
//
// Tickets run over the first tiles of all lines, then over the second ones: a tile waits for tiles with smaller tickets alone,
// so that any number of resident blocks makes progress. There is a descriptor for each column of each tile.
#pragma once

#include "../descriptor.cuh"
#include "../scan/single_pass.cuh"
#include "../warp/shuffle.cuh"
#include "defined.cuh"

namespace lookback {

// Neighbouring columns of a thread: what fits into 16 bytes of the widest element, and of the state in registers.
// `columns_of_thread` in `src/strategy/columns.rs` is the same function.
template <class Problem>
DEVICE_CONSTEXPR u32 columns_of_thread() {
  u32 widest = sizeof(u32);
  if (widest < sizeof(typename Problem::state_type)) widest = sizeof(typename Problem::state_type);
  if (widest < sizeof(typename Problem::input_type)) widest = sizeof(typename Problem::input_type);
  u32 width = 1;
  while (2 * width * widest <= LOOKBACK_VECTOR_BYTES) width *= 2;
  return width;
}

// An element of each array, or a vector of neighbouring ones, from a place on; vectors are aligned.
template <class Problem, u32 number, u32 width>
DEVICE void load_at(const lookback_launch&, u64, vectors<number, width>&) {}
template <class Problem, u32 number, u32 width, class First, class... Rest>
DEVICE void load_at(const lookback_launch& launch, u64 place, vectors<number, width, First, Rest...>& loaded) {
  const i64 at = in_memory<Problem>(launch.strides, launch.strides.inputs[number], static_cast<i64>(place));
  memory::load_vector<width>(static_cast<const First*>(launch.inputs[number]) + at, loaded.first);
  load_at<Problem>(launch, place, loaded.rest);
}
template <class Problem, u32 number, u32 width>
DEVICE void store_at(const lookback_launch&, u64, const vectors<number, width>&) {}
template <class Problem, u32 number, u32 width, class First, class... Rest>
DEVICE void store_at(const lookback_launch& launch, u64 place, const vectors<number, width, First, Rest...>& stored) {
  const i64 at = in_memory<Problem>(launch.strides, launch.strides.outputs[number], static_cast<i64>(place));
  memory::store_vector<width>(static_cast<First*>(launch.outputs[number]) + at, stored.first);
  store_at<Problem>(launch, place, stored.rest);
}

// Whether all arrays of a list begin with a whole vector.
template <u32 width>
DEVICE bool are_aligned(const elements<>*, const void* const*) { return true; }
template <u32 width, class First, class... Rest>
DEVICE bool are_aligned(const elements<First, Rest...>*, const void* const* arrays) {
  return is_aligned_vector<width>(static_cast<const First*>(*arrays)) &&
         are_aligned<width>(static_cast<const elements<Rest...>*>(nullptr), arrays + 1);
}

// Whether the rows of all arrays of a list are whole vectors apart.
template <class Problem, u32 width>
DEVICE bool are_whole_vectors_apart(const elements<>*, const lookback_strides&, const lookback_u64*) { return true; }
template <class Problem, u32 width, class First, class... Rest>
DEVICE bool are_whole_vectors_apart(const elements<First, Rest...>*, const lookback_strides& strides, const lookback_u64* of_arrays) {
  return are_vectors_of_rows<Problem, width>(strides, *of_arrays) &&
         are_whole_vectors_apart<Problem, width>(static_cast<const elements<Rest...>*>(nullptr), strides, of_arrays + 1);
}

// Shared memory of a tile, by warps and columns of the strip.
template <class Problem, class Config>
struct column_storage {
  using T = typename Problem::state_type;
  static constexpr u32 most_columns = LOOKBACK_WARP_LANES * columns_of_thread<Problem>();
  // The total of each warp; from `join` on what stands above it in the tile.
  T warps[Config::maximum_block_threads / LOOKBACK_WARP_LANES][most_columns];
  T tile_prefix[most_columns];
};

// Of a block, or of one of its warps.
template <class Problem, class Config, bool is_of_warp>
struct column_tile {
  using Operator = typename Problem::operator_type;
  using Own = typename Problem::own_type;
  using T = typename Problem::state_type;
  using storage_type = column_storage<Problem, Config>;
  static constexpr u32 width = columns_of_thread<Problem>();
  // Descriptors that a lane reads at one time, while it holds its items in registers.
  static constexpr u32 most_in_flight = sizeof(T) <= 4 ? 4 : sizeof(T) <= 8 ? 2 : 1;

  Config config;
  const lookback_launch& launch;
  storage_type& storage;
  u32 lanes;         // threads of a warp side by side
  u32 row_lanes;     // and one below the other
  u32 line;          // among those of all strips
  u32 tile_down;     // in its line
  u32 columns_here;  // of the strip
  u32 rows;          // of this thread, that there are
  u32 below;         // rows of the column below the first of this thread, cut; what has none of its own has more
  u64 first_place;   // where this thread's first row has the strip's first column
  u64 next_row;      // from there to its next row, modulo 2^64
  u64 first_state;   // of the strip's first column among the columns of all outer indices
  bool has_vectors;  // whether a thread's columns are neighbours and its rows are all there; else they are `lanes` apart
  T items[Config::maximum_vt][width];

  DEVICE column_tile(Config config_, const lookback_launch& launch_, storage_type& storage_, u64 tile)
      : config(config_), launch(launch_), storage(storage_) {
    const lookback_axis& axis = launch.axis;
    lanes = axis.strip_lanes;
    row_lanes = LOOKBACK_WARP_LANES / lanes;
    tile_down = static_cast<u32>(tile) / axis.lines;
    line = static_cast<u32>(tile) % axis.lines;
    const u64 outer = line / axis.strips;
    const u64 first_column = static_cast<u64>(line % axis.strips) * (lanes * width);
    const u64 left = axis.inner - first_column;
    columns_here = left < lanes * width ? static_cast<u32>(left) : lanes * width;
    first_state = outer * axis.inner + first_column;
    const u32 warp_rows = config.vt * row_lanes;
    const u32 tile_rows = is_of_warp ? warp_rows : warps() * warp_rows;
    const u64 tile_first = static_cast<u64>(tile_down) * tile_rows;
    const u64 first_row = tile_first + (is_of_warp ? 0 : warp_index() * warp_rows) + lane_row();
    rows = 0;
    below = ~0u;
    if (first_row < axis.length) {
      const u64 all_below = axis.length - 1 - first_row;
      below = all_below < tile_rows ? static_cast<u32>(all_below) : tile_rows;
      rows = below / row_lanes + 1 < config.vt ? below / row_lanes + 1 : config.vt;
    }
    const u64 time = Problem::is_backward ? axis.length - 1 - first_row : first_row;
    first_place = (outer * axis.length + time) * axis.inner + first_column;
    next_row = Problem::is_backward ? 0 - axis.inner * row_lanes : axis.inner * row_lanes;
    const auto* const inputs = static_cast<const typename Problem::inputs*>(nullptr);
    const auto* const outputs = static_cast<const typename Problem::outputs*>(nullptr);
    has_vectors = tile_first + tile_rows <= axis.length && axis.inner % width == 0 &&
                  are_aligned<width>(inputs, launch.inputs) && are_aligned<width>(outputs, launch.outputs) &&
                  are_whole_vectors_apart<Problem, width>(inputs, launch.strides, launch.strides.inputs) &&
                  are_whole_vectors_apart<Problem, width>(outputs, launch.strides, launch.strides.outputs);
  }

  DEVICE u32 warps() const { return config.block_threads / LOOKBACK_WARP_LANES; }

  DEVICE u32 lane_column() const { return lane_index() % lanes; }
  DEVICE u32 lane_row() const { return lane_index() / lanes; }

  // A column of this thread, counted from the strip's first.
  DEVICE u32 column(u32 j) const { return has_vectors ? lane_column() * width + j : lane_column() + j * lanes; }
  DEVICE bool has_column(u32 column) const { return column < columns_here; }

  DEVICE bool has_item(u32 k, u32 j) const { return k < rows && has_column(column(j)); }

  // All arrays are loaded before the first element becomes a state, so that all loads are on their way at one time.
  DEVICE void load() {
    if (has_vectors) {
      load_vectors();
    } else {
      load_elements();
    }
  }

  // A thread beside the last column takes the strip's first ones, which nobody stores again.
  DEVICE void load_vectors() {
    typename vectors_of<width, typename Problem::inputs>::type loaded[Config::maximum_vt];
    const u64 first = first_place + (has_column(column(0)) ? column(0) : 0);
    u64 place = first;
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k, place += next_row) load_at<Problem>(launch, place, loaded[k]);
    place = first;
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k, place += next_row) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) items[k][j] = Own::load(place + j, loaded[k].get(j));
    }
  }

  // Without a branch for each element: what is beside the last column or below the last row takes the first column or this
  // thread's last row instead.
  DEVICE void load_elements() {
    typename vectors_of<1, typename Problem::inputs>::type loaded[Config::maximum_vt][width];
    if (rows > 0) {
      u64 place = first_place;
      LOOKBACK_UNROLL
      for (u32 k = 0; k < config.vt; ++k) {
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) load_at<Problem>(launch, place + (has_column(column(j)) ? column(j) : 0), loaded[k][j]);
        if (k + 1 < rows) place += next_row;
      }
    }
    u64 place = first_place;
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k, place += next_row) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) {
        items[k][j] = Operator::identity();
        if (k < rows) items[k][j] = Own::load(place + column(j), loaded[k][j].get(0));
      }
    }
  }

  // The scan of the warp's rows in registers; the total of each column is stored in shared memory. An item becomes what the
  // scan has there without what stands above the warp: the identity in its first row, if the scan is exclusive.
  DEVICE void scan_in_warp() {
    // Lanes that lie one below the other have neighbouring rows.
    for (u32 distance = lanes; distance < LOOKBACK_WARP_LANES; distance *= 2) {
      LOOKBACK_UNROLL
      for (u32 k = 0; k < config.vt; ++k) {
        T above[width];
        copy(items[k], above);
        shuffle_up_each(above, width, distance);
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) {
          if (lane_index() >= distance) items[k][j] = combine<Operator>(above[j], items[k][j]);
        }
      }
    }
    const u32 last_lane = LOOKBACK_WARP_LANES - lanes + lane_column();
    T carry[width];
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k) {
      T through[width];
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) through[j] = k == 0 ? items[k][j] : combine<Operator>(carry[j], items[k][j]);
      if (config.mode == LOOKBACK_MODE_EXCLUSIVE) {
        T before[width];
        copy(through, before);
        if (row_lanes > 1) shuffle_up_each(before, width, lanes);
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) {
          const T first = k == 0 ? Operator::identity() : carry[j];
          items[k][j] = lane_row() == 0 ? first : before[j];
        }
      } else {
        copy(through, items[k]);
      }
      copy(through, carry);
      if (row_lanes > 1) {
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) carry[j] = shuffle_index(carry[j], last_lane);
      }
    }
    if (!is_of_warp && lane_row() == 0) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) memory::shared_store(storage.warps[warp_index()][column(j)], carry[j]);
    }
  }

  // Behind a barrier that orders the totals before it: what stands above the tile is stored in shared memory, and above each
  // warp in the tile. The columns are divided among the warps, and those of a warp among its lanes: several look back from
  // each, over tiles that are further and further away.
  template <class Descriptors>
  DEVICE void join(Descriptors descriptors, u32 epoch) {
    const u32 strip_columns = lanes * width;
    u32 side_by_side = 1;
    while (side_by_side < LOOKBACK_WARP_LANES && side_by_side * warps() < strip_columns) side_by_side *= 2;
    const u32 distance = lane_index() / side_by_side;
    const bool has_next = tile_down + 1 < launch.axis.tiles_down;
    LOOKBACK_NOUNROLL
    for (u32 first = warp_index() * side_by_side; first < strip_columns; first += warps() * side_by_side) {
      const u32 mine = first + lane_index() % side_by_side;
      const bool is_told = distance == 0 && has_column(mine);
      T total = Operator::identity();
      if (distance == 0) {
        LOOKBACK_NOUNROLL
        for (u32 warp = 0; warp < warps(); ++warp) {
          T& place = storage.warps[warp][mine];
          const T part = memory::shared_load(place);
          memory::shared_store(place, total);
          total = warp == 0 ? part : combine<Operator>(total, part);
        }
      }
      T prefix = Operator::identity();
      if (tile_down == 0) {
        if (is_told) prefix = Problem::given_state(launch, first_state + mine);
      } else {
        if (is_told && has_next) descriptors.publish(slot(tile_down, mine), epoch, LOOKBACK_STATUS_AGGREGATE, total);
        prefix = look_back(descriptors, epoch, mine, side_by_side);
      }
      if (is_told && has_next) {
        descriptors.publish(slot(tile_down, mine), epoch, LOOKBACK_STATUS_PREFIX, combine<Operator>(prefix, total));
      }
      if (distance == 0) memory::shared_store(storage.tile_prefix[mine], prefix);
    }
  }

  // The descriptor of a column in a tile of this line.
  DEVICE u64 slot(u32 tile, u32 column) const {
    return (static_cast<u64>(tile) * launch.axis.lines + line) * (lanes * width) + column;
  }

  // The combination of all tiles above this one, which is not the first of its line, in the column `mine`. Called by all lanes
  // of a warp, of which the first `side_by_side` get the result, the others anything.
  template <class Descriptors>
  DEVICE T look_back(Descriptors descriptors, u32 epoch, u32 mine, u32 side_by_side) {
    const u32 reach = LOOKBACK_WARP_LANES / side_by_side;
    const u32 distance = lane_index() / side_by_side;
    // As many tiles as may be on their way in a line: the fewer, the more lines there are.
    const u32 wanted = 1 + 128 / launch.axis.lines;
    const u32 enough = (wanted + reach - 1) / reach;
    const u32 each = enough < most_in_flight ? enough : most_in_flight;
    bool is_open = has_column(mine);
    T prefix = Operator::identity();
    u32 end = tile_down;  // the window is the tiles before this one
    const waiting wait;
    for (;;) {
      // The nearest tile comes first. A lane without a tile has nothing to wait for.
      const u32 nearest = distance * each;
      descriptor_view<T> views[most_in_flight];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < most_in_flight; ++i) {
        const bool exists = is_open && i < each && nearest + i < end;
        views[i].status = exists ? LOOKBACK_STATUS_INVALID : LOOKBACK_STATUS_AGGREGATE;
        views[i].value = Operator::identity();
      }
      for (;;) {
        LOOKBACK_UNROLL
        for (u32 i = 0; i < most_in_flight; ++i) {
          if (views[i].status != LOOKBACK_STATUS_INVALID) continue;
          views[i] = descriptors.read(slot(end - 1 - nearest - i, mine), epoch);
        }
        // What stands behind a prefix is not needed.
        bool is_waiting = false;
        bool is_needed = true;
        u32 missing = 0;
        LOOKBACK_UNROLL
        for (u32 i = 0; i < most_in_flight; ++i) {
          if (is_needed && !is_waiting && views[i].status == LOOKBACK_STATUS_INVALID) {
            is_waiting = true;
            missing = end - 1 - nearest - i;
          }
          is_needed = is_needed && views[i].status != LOOKBACK_STATUS_PREFIX;
        }
        if (ballot(is_waiting) == 0) break;
        const u64 waiting_tile = static_cast<u64>(tile_down) * launch.axis.lines + line;
        if (wait.warp_gives_up(waiting_tile, static_cast<u64>(missing) * launch.axis.lines + line, is_waiting)) break;
      }
      // Up to the nearest prefix; first of a lane's tiles, then of those of the lanes that look further.
      T window = views[0].value;
      u32 has_prefix = views[0].status == LOOKBACK_STATUS_PREFIX ? 1 : 0;
      LOOKBACK_UNROLL
      for (u32 i = 1; i < most_in_flight; ++i) {
        if (i >= each || has_prefix != 0) continue;
        window = combine<Operator>(views[i].value, window);
        has_prefix = views[i].status == LOOKBACK_STATUS_PREFIX ? 1 : 0;
      }
      for (u32 apart = 1; apart < reach; apart *= 2) {
        const T further = shuffle_down(window, apart * side_by_side);
        const u32 further_has_prefix = shuffle_down(has_prefix, apart * side_by_side);
        if (distance + apart >= reach || has_prefix != 0) continue;
        window = combine<Operator>(further, window);
        has_prefix = further_has_prefix;
      }
      if (is_open) prefix = combine<Operator>(window, prefix);
      if (shuffle_index(has_prefix, lane_index() % side_by_side) != 0) is_open = false;
      if (ballot(is_open) == 0 || end <= reach * each) return prefix;
      end -= reach * each;
    }
  }

  // From what stands above the tile and the warp to the values of the scan: behind a barrier that orders `join` before it,
  // unless the tile is of this warp alone.
  DEVICE void finish() {
    T prefix[width];
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      if constexpr (is_of_warp) {
        prefix[j] = Operator::identity();
        if (has_column(column(j))) prefix[j] = Problem::given_state(launch, first_state + column(j));
      } else {
        prefix[j] = combine<Operator>(memory::shared_load(storage.tile_prefix[column(j)]),
                                      memory::shared_load(storage.warps[warp_index()][column(j)]));
      }
    }
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) items[k][j] = combine<Operator>(prefix[j], items[k][j]);
    }
  }

  DEVICE void store() const {
    if (has_vectors) {
      if (has_column(column(0))) store_vectors();
    } else {
      store_elements();
    }
    if constexpr (Problem::has_final_state) store_final_states();
  }

  DEVICE void store_vectors() const {
    u64 place = first_place + column(0);
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k, place += next_row) {
      typename vectors_of<width, typename Problem::outputs>::type stored;
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) stored.set(j, Own::store(place + j, items[k][j]));
      store_at<Problem>(launch, place, stored);
    }
  }

  DEVICE void store_elements() const {
    u64 place = first_place;
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k, place += next_row) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) {
        if (!has_item(k, j)) continue;
        typename vectors_of<1, typename Problem::outputs>::type stored;
        stored.set(0, Own::store(place + column(j), items[k][j]));
        store_at<Problem>(launch, place + column(j), stored);
      }
    }
  }

  DEVICE void store_final_states() const {
    LOOKBACK_UNROLL
    for (u32 k = 0; k < config.vt; ++k) {
      if (k * row_lanes != below) continue;
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) {
        if (has_column(column(j))) {
          memory::store(static_cast<T*>(launch.final_state) + first_state + column(j), items[k][j]);
        }
      }
    }
  }

 private:
  DEVICE static void copy(const T (&from)[width], T (&to)[width]) {
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) to[j] = from[j];
  }
};

// Reads: inputs, outputs, axis, control, descriptors, capacity, initial, initial_state, final_state. A block has
// `axis.block_tiles` tiles. Where the first tile of each line is the last one, blocks are not told their tiles and do not meet:
// there is no control block then. Where tiles are of one warp, warps do not meet, either.
template <class Problem, class Config>
DEVICE void scan_columns(Config config, const lookback_launch& launch) {
  using storage_type = column_storage<Problem, Config>;
  SHARED(storage_type, storage);
  SHARED(scan::tile_start, shared_start);

  if (config.block_threads <= LOOKBACK_SHORT_COLUMNS_THREADS && launch.axis.block_tiles > 1) {
    const u64 tile = static_cast<u64>(block_index()) * launch.axis.block_tiles + warp_index();
    if (tile >= launch.axis.lines) return;  // a warp of the last block
    column_tile<Problem, Config, true> mine(config, launch, storage, tile);
    mine.load();
    mine.scan_in_warp();
    mine.finish();
    warp_barrier();  // all lanes have loaded: one beside the last column what another one stores, if the scan is in place
    mine.store();
    return;
  }
  const bool meet = launch.axis.tiles_down > 1;
  scan::tile_start start = {block_index(), 0};
  if (meet) start = scan::start_tile(config, launch, shared_start);
  column_tile<Problem, Config, false> mine(config, launch, storage, start.tile);
  mine.load();
  mine.scan_in_warp();
  block_barrier();  // the totals of all warps are written
  with_descriptors<Problem>(config, launch, [&](auto descriptors) {
    mine.join(descriptors, start.epoch);
    block_barrier();  // the prefixes are written, the descriptor accesses of the block are done
    if (meet && thread_index() == 0) scan::finish_tile(launch, descriptors, start.epoch);
  });
  mine.finish();
  mine.store();
}

}  // namespace lookback
