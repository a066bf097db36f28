// The scan along an axis of a tensor whose elements do not lie side by side, by blocks that stay, each with a ring of
// tiles in shared memory, as `../scan/lookahead.cuh` has one: single pass, and few tiles wait for another's prefix.
//
// The arrays have the shape (outer, length, inner), and element (o, t, j) lies at (o * length + t) * inner + j. A strip
// is `strip_columns` neighbouring columns of one outer index, and a line of tiles goes down it. In a stage of the ring a
// tile lies as a matrix of its own:
//
//   thread   VT rows that follow each other, of `width` neighbouring columns
//   warp     `strip_lanes` threads side by side, and as many such groups as it has lanes for, one below the other
//   block    scanning warps one below the other
//
// The warps of a block have one task each:
//
//   fetchers    one draws a ticket for each stage that is free; each copies its share of the tile's rows there
//   reducers    reduce a tile as soon as it has landed, say what stands above each thread's rows in it, and publish its totals
//   finders     find what stands above a tile: a column each lane, and a tile each team in turn
//   the others  scan the tile from shared memory to global memory, a row at a time
//
// A descriptor is for one column of one tile. What it says depends on the tile alone: the last tile of a period
// publishes the prefix behind it, the last one of a group in a period the total of its group, and any other one its own
// total. So each tile combines one prefix, the totals of the groups since, and those of the tiles since, all of them in
// order: sums of floats are the same bit for bit whichever block scans which tile. A chain runs from period to period
// alone. A period of all lines together, or of those of one matrix if the scan is reproducible, takes about as long as a prefix
// from one multiprocessor to another: the more lines there are, the fewer tiles of each.
//
// Tickets run over the first tiles of all lines, then over the second ones: a tile waits for tiles with smaller tickets
// alone, and its total waits for no other block, so that any number of resident blocks makes progress. 2n
// element-moves.
#pragma once

#include "../scan/ring_position.cuh"
#include "../scan/single_pass.cuh"
#include "columns.cuh"

namespace lookback {

// Neighbouring columns of a thread: what fits into 16 bytes of the widest element, and into 32 of states; of a warp there
// are not more than the finders have lanes for, and of a thread no more than a narrow tensor has.
// `staged_columns_of_thread` in `src/strategy/columns.rs` is the same function.
template <class Problem>
DEVICE_CONSTEXPR u32 staged_columns_of_thread() {
  u32 width = 1;
  while (2 * width <= Problem::segments_type::columns_of_thread &&
         2 * width * sizeof(typename Problem::input_type) <= LOOKBACK_VECTOR_BYTES &&
         2 * width * sizeof(typename Problem::state_type) <= 2 * LOOKBACK_VECTOR_BYTES) {
    width *= 2;
  }
  return width;
}

// Where a thread's columns and rows are in a tile; the same in every tile.
template <class Problem, class Config>
struct strip_thread {
  static constexpr u32 width = staged_columns_of_thread<Problem>();
  Config config;
  u32 lanes;   // threads side by side
  u32 groups;  // of so many, one below the other
  u32 group;   // this thread's; `groups` where the warp has no lanes for another one
  u32 column;  // its first one

  DEVICE strip_thread(Config config_, const lookback_launch& launch)
      : config(config_),
        lanes(launch.axis.strip_lanes),
        groups(LOOKBACK_WARP_LANES / lanes),
        group(lane_index() / lanes),
        column(lane_index() % lanes * width) {}

  DEVICE u32 warps() const { return config.block_threads / LOOKBACK_WARP_LANES; }
  DEVICE u32 tile_rows() const { return warps() * groups * config.vt; }
  // Its first row in a scanning warp's part of a tile.
  DEVICE u32 first_row(u32 warp) const { return (warp * groups + group) * config.vt; }
};

// Where a tile lies in the tensor.
template <class Problem>
struct strip_tile {
  u32 line;         // among those of all strips
  u32 down;         // in its line
  u32 columns;      // that there are
  u32 rows;         // likewise
  u64 first_state;  // of the strip's first column among the columns of all outer indices
  u64 first_place;  // of its element that is lowest in memory

  DEVICE strip_tile(const lookback_launch& launch, u32 tile_rows, u64 tile) {
    const lookback_axis& axis = launch.axis;
    down = static_cast<u32>(tile) / axis.lines;
    line = static_cast<u32>(tile) % axis.lines;
    const u64 outer = line / axis.strips;
    const u64 first_column = static_cast<u64>(line % axis.strips) * axis.strip_columns;
    const u64 right = axis.inner - first_column;
    columns = right < axis.strip_columns ? static_cast<u32>(right) : axis.strip_columns;
    first_state = outer * axis.inner + first_column;
    const u64 above = static_cast<u64>(down) * tile_rows;
    const u64 below = axis.length - above;
    rows = below < tile_rows ? static_cast<u32>(below) : tile_rows;
    const u64 lowest = Problem::is_backward ? below - rows : above;
    first_place = (outer * axis.length + lowest) * axis.inner + first_column;
  }

  // A row, counted in the order of the scan, as it is counted in memory.
  DEVICE u32 row_in_memory(u32 row) const { return Problem::is_backward ? rows - 1 - row : row; }
  DEVICE bool is_last(const lookback_launch& launch) const { return down + 1 == launch.axis.tiles_down; }
};

// A stage of the ring with a tile: its part of each array, and what the warps tell each other of it.
template <class Problem, class Config>
struct columns_stage {
  using T = typename Problem::state_type;
  using inputs = typename Problem::inputs;
  static constexpr u32 width = staged_columns_of_thread<Problem>();
  static constexpr u32 most_columns = LOOKBACK_WARP_LANES * width;
  // What one access moves: a vector, if states are aligned as one.
  static constexpr u32 states_at_once = (sizeof(T) & (sizeof(T) - 1)) != 0 || sizeof(T) > LOOKBACK_VECTOR_BYTES ? 1
                                        : width * sizeof(T) <= LOOKBACK_VECTOR_BYTES ? width : width / 2;

  const lookback_launch& launch;
  strip_tile<Problem> tile;
  T* states;
  // The tile's lowest element of each array.
  void* arrays[count_of<inputs>::value];

  DEVICE_CONSTEXPR static u32 whole_lines(u32 bytes) {
    return (bytes + LOOKBACK_CACHE_LINE_BYTES - 1) / LOOKBACK_CACHE_LINE_BYTES * LOOKBACK_CACHE_LINE_BYTES;
  }
  DEVICE_CONSTEXPR static u32 elements_of(Config config) { return config.block_threads * config.vt * width; }
  // Bytes of an array's part, in which a tile may begin inside a line of 16 bytes.
  DEVICE_CONSTEXPR static u32 part_bytes(Config config, u32 element_bytes) {
    return whole_lines(elements_of(config) * element_bytes + LOOKBACK_VECTOR_BYTES);
  }
  DEVICE_CONSTEXPR static u32 parts_bytes(Config, const elements<>*) { return 0; }
  template <class First, class... Rest>
  DEVICE_CONSTEXPR static u32 parts_bytes(Config config, const elements<First, Rest...>*) {
    return part_bytes(config, sizeof(First)) + parts_bytes(config, static_cast<const elements<Rest...>*>(nullptr));
  }
  // For each column what stands above the tile, its total, and that of each thread's rows.
  DEVICE_CONSTEXPR static u32 states_bytes(Config config) {
    return whole_lines((config.block_threads / LOOKBACK_WARP_LANES + 2) * most_columns * static_cast<u32>(sizeof(T)));
  }
  // From one stage to the next. `Ring::of_columns` in `src/strategy/ring.rs` is the same function.
  DEVICE_CONSTEXPR static u32 bytes(Config config) {
    return states_bytes(config) + parts_bytes(config, static_cast<const inputs*>(nullptr));
  }

  DEVICE columns_stage(const strip_thread<Problem, Config>& thread, const lookback_launch& launch_, u8* ring, u32 stage, u64 index)
      : launch(launch_), tile(launch_, thread.tile_rows(), index) {
    u8* const first = ring + stage * bytes(thread.config);
    states = reinterpret_cast<T*>(first);
    place_each<0>(static_cast<const inputs*>(nullptr), thread.config, first + states_bytes(thread.config));
  }

  DEVICE T& prefix(u32 column) const { return states[column]; }
  DEVICE T& total(u32 column) const { return states[most_columns + column]; }
  // The total of the rows of a group in a scanning warp's part of the tile and of those above it there.
  DEVICE T& of_group(u32 warp, u32 group, u32 column) const {
    return states[(2 + warp) * most_columns + group * launch.axis.strip_lanes * width + column];
  }

  // The states of a thread's columns, which lie side by side.
  DEVICE static void load_states(const T& first, T (&to)[width]) {
    LOOKBACK_UNROLL
    for (u32 from = 0; from < width; from += states_at_once) {
      T some[states_at_once];
      if constexpr (states_at_once == 1) {
        some[0] = memory::shared_load((&first)[from]);
      } else {
        memory::shared_load_vector<states_at_once>(&first + from, some);
      }
      LOOKBACK_UNROLL
      for (u32 j = 0; j < states_at_once; ++j) to[from + j] = some[j];
    }
  }
  DEVICE static void store_states(T& first, const T (&from)[width]) {
    LOOKBACK_UNROLL
    for (u32 to = 0; to < width; to += states_at_once) {
      T some[states_at_once];
      LOOKBACK_UNROLL
      for (u32 j = 0; j < states_at_once; ++j) some[j] = from[to + j];
      if constexpr (states_at_once == 1) {
        memory::shared_store((&first)[to], some[0]);
      } else {
        memory::shared_store_vector<states_at_once>(&first + to, some);
      }
    }
  }

  // By all lanes of each fetching warp: its share of the tile is on its way. One arrival at `landed` is for it, and for what the
  // lanes have stored there themselves.
  DEVICE void fetch(u32 fetcher, copy_barrier& landed) const {
    fetch_each<0>(static_cast<const inputs*>(nullptr), fetcher, landed);
    // Of words, because a state may be more than a lane moves at once.
    u32* const nothing = reinterpret_cast<u32*>(states);
    copy_and_arrive(nothing, nothing, 0, landed);
  }

  // Whether all rows are there, and a thread's columns are one vector of each array and there or not as a whole.
  DEVICE bool is_whole(const strip_thread<Problem, Config>& thread) const {
    return tile.rows == thread.tile_rows() && launch.axis.strip_columns % width == 0 && tile.columns % width == 0 &&
           are_aligned<width>(static_cast<const inputs*>(nullptr), arrays);
  }

  // Calls `body(k, states)` for the rows of a thread in a scanning warp's part of a tile that `is_whole`, or that need not be:
  // there the identity is where there is no element.
  template <bool is_whole, class Body>
  DEVICE void for_each_row(const strip_thread<Problem, Config>& thread, u32 warp, Body body) const {
    const u32 first_row = thread.first_row(warp);
    const u32 pitch = launch.axis.strip_columns;
    T row_states[width];
    if constexpr (is_whole) {
      // A thread beside the last column or below the last group takes what another one has, and nobody stores it again.
      const u32 column = thread.column < tile.columns ? thread.column : 0;
      const u32 row = tile.row_in_memory(thread.group < thread.groups ? first_row : 0);
      LOOKBACK_UNROLL
      for (u32 k = 0; k < thread.config.vt; ++k) {
        typename vectors_of<width, inputs>::type loaded;
        const u32 at = Problem::is_backward ? row - k : row + k;
        load_from(at * pitch + column, loaded);
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) row_states[j] = Problem::own_type::load(place(at, column + j), loaded.get(j));
        body(k, row_states);
      }
    } else {
      LOOKBACK_NOUNROLL
      for (u32 k = 0; k < thread.config.vt; ++k) {
        const bool is_row = thread.group < thread.groups && first_row + k < tile.rows;
        const u32 at = is_row ? tile.row_in_memory(first_row + k) : 0;
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) {
          row_states[j] = Problem::operator_type::identity();
          if (!is_row || thread.column + j >= tile.columns) continue;
          typename vectors_of<1, inputs>::type loaded;
          load_from(at * pitch + thread.column + j, loaded);
          row_states[j] = Problem::own_type::load(place(at, thread.column + j), loaded.get(0));
        }
        body(k, row_states);
      }
    }
  }

  // In the arrays, of an element whose row is counted in memory.
  DEVICE u64 place(u32 row, u32 column) const { return tile.first_place + row * launch.axis.inner + column; }

 private:
  template <u32 number>
  DEVICE void place_each(const elements<>*, Config, u8*) {}
  template <u32 number, class First, class... Rest>
  DEVICE void place_each(const elements<First, Rest...>*, Config config, u8* part) {
    // A strip as wide as the tensor is one stretch of memory, and lies in its stage as it does in a line of 16 bytes.
    const u64 address = reinterpret_cast<u64>(launch.inputs[number]) + tile.first_place * sizeof(First);
    arrays[number] = part + (launch.axis.strips == 1 ? address % LOOKBACK_VECTOR_BYTES : 0);
    place_each<number + 1>(static_cast<const elements<Rest...>*>(nullptr), config, part + part_bytes(config, sizeof(First)));
  }

  template <u32 number>
  DEVICE void fetch_each(const elements<>*, u32, copy_barrier&) const {}
  template <u32 number, class First, class... Rest>
  DEVICE void fetch_each(const elements<First, Rest...>*, u32 fetcher, copy_barrier& landed) const {
    const First* const from = static_cast<const First*>(launch.inputs[number]) + tile.first_place;
    First* const to = static_cast<First*>(arrays[number]);
    if (launch.axis.strips == 1) {
      if (fetcher == 0) fetch_stretch(to, from, tile.rows * tile.columns, landed);
    } else {
      fetch_rows(to, from, fetcher, landed);
    }
    fetch_each<number + 1>(static_cast<const elements<Rest...>*>(nullptr), fetcher, landed);
  }

  // Each fetcher has one row in so many.
  template <class First>
  DEVICE void fetch_rows(First* to, const First* from, u32 fetcher, copy_barrier& landed) const {
    constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(First);
    constexpr u32 fetchers = LOOKBACK_COLUMNS_FETCHING_WARPS;
    const u64 inner = launch.axis.inner;
    const u32 pitch = launch.axis.strip_columns;
    const bool are_lines = reinterpret_cast<u64>(from) % LOOKBACK_VECTOR_BYTES == 0 && inner % line == 0 &&
                           tile.columns % line == 0 && pitch % line == 0;
    if (are_lines) {
      const u32 rows = (tile.rows + fetchers - 1 - fetcher) / fetchers;
      copy_rows_before_arrival(to + fetcher * pitch, from + fetcher * inner, tile.columns, rows, fetchers * pitch,
                               fetchers * inner, landed);
      return;
    }
    // A row is not in whole lines.
    LOOKBACK_NOUNROLL
    for (u32 row = fetcher; row < tile.rows; row += fetchers) {
      for (u32 column = lane_index(); column < tile.columns; column += LOOKBACK_WARP_LANES) {
        memory::shared_store(to[row * pitch + column], memory::load(from + row * inner + column));
      }
    }
  }

  template <u32 number, u32 count>
  DEVICE void load_from(u32, vectors<number, count>&) const {}
  template <u32 number, u32 count, class First, class... Rest>
  DEVICE void load_from(u32 offset, vectors<number, count, First, Rest...>& loaded) const {
    memory::shared_load_vector<count>(static_cast<const First*>(arrays[number]) + offset, loaded.first);
    load_from(offset, loaded.rest);
  }
};

// What the warps of a block tell each other about the tile in each stage, beside the states there.
template <class Config>
struct columns_ring {
  u64 tile[Config::maximum_stages];              // its index; `lookback_launch::tiles` and more is the end
  copy_barrier drawn[Config::maximum_stages];    // the index is there
  copy_barrier landed[Config::maximum_stages];   // the elements are there
  copy_barrier reduced[Config::maximum_stages];  // the totals of all groups are there
  copy_barrier summed[Config::maximum_stages];   // the tile's totals are there
  copy_barrier ready[Config::maximum_stages];    // all prefixes are there
  copy_barrier drained[Config::maximum_stages];  // the scanning warps have read all of it
  copy_barrier found;                            // the other finders have read their last descriptor
};

// What a tile's descriptors say, and whom it asks.
struct descriptor_levels {
  u32 period;  // tiles of a line from one prefix to the next
  u32 group;   // tiles that are told together within it

  DEVICE explicit descriptor_levels(const lookback_launch& launch) : period(launch.axis.period), group(launch.axis.group) {}

  DEVICE bool ends_period(u32 down) const { return (down + 1) % period == 0; }
  DEVICE bool ends_group(u32 down) const { return (down + 1) % group == 0; }

  // What stands above a tile, from the nearest on: tiles of its group, groups of its period, and the prefix above the period.
  DEVICE u32 tiles_above(u32 down) const { return down % period % group; }
  DEVICE u32 told_above(u32 down) const { return tiles_above(down) + down % period / group; }
  // The tile that tells the `i`-th of them; the prefix is the one behind the others.
  DEVICE u32 told_by(u32 down, u32 i) const {
    const u32 tiles = tiles_above(down);
    return i < tiles ? down - 1 - i : down - tiles - 1 - (i - tiles) * group;
  }
};

template <class Problem, class Config>
struct columns_block {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  using ring_type = columns_ring<Config>;
  using stage_type = columns_stage<Problem, Config>;
  static constexpr u32 width = staged_columns_of_thread<Problem>();
  static_assert(width <= LOOKBACK_COLUMNS_FINDING_WARPS, "finders have a lane for each column of a warp");

  Config config;
  const lookback_launch& launch;
  ring_type& ring;
  u8* stages;
  strip_thread<Problem, Config> thread;

  DEVICE columns_block(Config config_, const lookback_launch& launch_, ring_type& ring_, u8* stages_)
      : config(config_), launch(launch_), ring(ring_), stages(stages_), thread(config_, launch_) {}

  DEVICE stage_type at(u32 stage, u64 tile) const { return stage_type(thread, launch, stages, stage, tile); }

  // Finders that are at work on a tile, a column each lane; and how many tiles that is at one time. Not more than there are
  // stages, so that each team finds the stage of its next tile as it expects it.
  DEVICE u32 team_warps() const { return (launch.axis.strip_columns + LOOKBACK_WARP_LANES - 1) / LOOKBACK_WARP_LANES; }
  DEVICE u32 teams() const {
    const u32 most = LOOKBACK_COLUMNS_FINDING_WARPS / team_warps();
    return config.stages < most ? config.stages : most;
  }

  // The descriptor of a column of a tile in the line of `tile`.
  DEVICE u64 slot(const strip_tile<Problem>& tile, u32 down, u32 column) const {
    const u64 of_line = static_cast<u64>(tile.line) * launch.axis.strip_columns + column;
    return down * (static_cast<u64>(launch.axis.lines) * launch.axis.strip_columns) + of_line;
  }

  // A fetcher. The first one draws the tickets.
  DEVICE void fetch_tiles(u32 fetcher) const {
    const u32 lane = lane_index();
    u32 ends = 0;
    u64 index = 0;
    scan::ring_position at_stage = {0, 0};
    for (u64 round = 0;; ++round, at_stage.advance(config.stages)) {
      const u32 stage = at_stage.stage;
      // Pairs with the arrivals of the scanning warps, which come behind those of the reducers and the finders: all have read the
      // stage before it is overwritten. The first round finds the ring empty.
      barrier_wait(ring.drained[stage], at_stage.parity ^ 1);
      if (fetcher == 0) {
        // Not ahead of time: until the tile is copied, those with later tickets wait for it.
        if (ends == 0) {
          if (lane == 0) index = scan::draw_ticket(config, launch, round);
          index = shuffle_index(index, 0);
        }
        if (lane == 0) {
          memory::shared_store(ring.tile[stage], index);
          barrier_arrive(ring.drawn[stage]);
        }
      } else {
        // Pairs with the arrival of the first fetcher.
        barrier_wait(ring.drawn[stage], at_stage.parity);
        index = memory::shared_load(ring.tile[stage]);
      }
      if (index >= launch.tiles) {
        if (ends == 0 && lane == 0) barrier_arrive(ring.landed[stage]);
        // Each team of finders looks into a stage of its own.
        if (fetcher != 0 || ++ends == teams()) return;
        continue;
      }
      at(stage, index).fetch(fetcher, ring.landed[stage]);
    }
  }

  // A reducer.
  template <class Descriptors>
  DEVICE void publish_totals(u32 reducer, Descriptors descriptors, u32 epoch) const {
    const u32 warps = thread.warps();
    scan::ring_position at_stage = {0, 0};
    for (;; at_stage.advance(config.stages)) {
      const u32 stage = at_stage.stage;
      // Pairs with the arrivals and the copies of the fetchers: the tile is in its stage.
      barrier_wait(ring.landed[stage], at_stage.parity);
      const u64 index = memory::shared_load(ring.tile[stage]);
      if (index >= launch.tiles) return;
      const stage_type mine = at(stage, index);
      const bool is_whole = mine.is_whole(thread);
      LOOKBACK_NOUNROLL
      for (u32 warp = reducer; warp < warps; warp += LOOKBACK_COLUMNS_REDUCING_WARPS) {
        if (is_whole) {
          reduce_part<true>(mine, warp);
        } else {
          reduce_part<false>(mine, warp);
        }
      }
      warp_barrier();  // all lanes have read the stage and written totals
      if (lane_index() == 0) barrier_arrive(ring.reduced[stage]);
      // Pairs with the arrivals of all reducers: the totals of all groups are there.
      barrier_wait(ring.reduced[stage], at_stage.parity);
      publish_total(mine, reducer, descriptors, epoch);
      warp_barrier();  // all lanes have read and written totals
      if (lane_index() == 0) {
        barrier_arrive(ring.summed[stage]);
        barrier_arrive(ring.ready[stage]);
      }
    }
  }

  // A finder. The first one also ends the block's part of the launch.
  template <class Descriptors>
  DEVICE void find_prefixes(u32 finder, Descriptors descriptors, u32 epoch) const {
    const u32 team = finder / team_warps();
    if (team >= teams()) return;
    const u32 column = finder % team_warps() * LOOKBACK_WARP_LANES + lane_index();
    scan::ring_position at_stage = {0, 0};
    for (u32 i = 0; i < team; ++i) at_stage.advance(config.stages);
    for (;;) {
      const u32 stage = at_stage.stage;
      // Pairs with the arrival of the first fetcher: the tile's index is there. What stands above can be known before it has
      // landed.
      barrier_wait(ring.drawn[stage], at_stage.parity);
      const u64 index = memory::shared_load(ring.tile[stage]);
      if (index >= launch.tiles) break;
      find_prefix(at(stage, index), at_stage, column, descriptors, epoch);
      warp_barrier();  // all lanes have read the index and written prefixes
      if (lane_index() == 0) barrier_arrive(ring.ready[stage]);
      for (u32 i = 0; i < teams(); ++i) at_stage.advance(config.stages);
    }
    // This finder's descriptor accesses are done. What the reducers publish is what the tile below asks for, and the block that
    // has that one counts itself as done when it has read it: nobody need wait for the reducers.
    if (finder != 0) {
      if (lane_index() == 0) barrier_arrive(ring.found);
      return;
    }
    // Pairs with the arrivals of the other finders, so that all they read for tiles of the block has been read. The first fetcher has
    // handed on its last ticket.
    if (team_warps() * teams() > 1) barrier_wait(ring.found, 0);
    if (lane_index() == 0) scan::finish_tile(launch, descriptors, epoch);
  }

  // A scanning warp. A scan in place is right, because the whole tile has landed before any of it is written.
  DEVICE void scan_tiles() const {
    scan::ring_position at_stage = {0, 0};
    for (;; at_stage.advance(config.stages)) {
      const u32 stage = at_stage.stage;
      // Pairs with the arrivals and the copies of the fetchers: the tile is in its stage.
      barrier_wait(ring.landed[stage], at_stage.parity);
      const u64 index = memory::shared_load(ring.tile[stage]);
      if (index >= launch.tiles) return;
      const stage_type mine = at(stage, index);
      // Pairs with the arrivals of the reducers and of the finders: all totals and prefixes are there.
      barrier_wait(ring.ready[stage], at_stage.parity);
      T running[width];
      above_rows(mine, running);
      bool is_stored = false;
      if constexpr (has_room_in_stage()) {
        if (stores_through_stage(mine)) {
          scan_rows(mine, running, in_stage{mine}, mine.is_whole(thread));
          store_stretch(mine);
          is_stored = true;
        }
      }
      if (!is_stored) {
        const in_arrays to = {mine};
        scan_rows(mine, running, to, mine.is_whole(thread) && to.has_vectors());
      }
      warp_barrier();  // all lanes have read elements and prefixes
      // Hands the stage back.
      if (lane_index() == 0) barrier_arrive(ring.drained[stage]);
    }
  }

 private:
  // The totals of the groups of a scanning warp's part of a tile, each with those above it there.
  template <bool is_whole>
  DEVICE void reduce_part(const stage_type& mine, u32 warp) const {
    T totals[width];
    mine.template for_each_row<is_whole>(thread, warp, [&](u32 k, const T (&row)[width]) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) totals[j] = k == 0 ? row[j] : combine<Operator>(totals[j], row[j]);
    });
    through_groups(totals);
    if (thread.group < thread.groups) {
      stage_type::store_states(mine.of_group(warp, thread.group, thread.column), totals);
    }
  }

  // The tile's totals in a reducer's share of the columns, and their descriptors, if it is this tile's own totals that they tell.
  // What stands above each scanning warp's part takes the place of the total of its last group, for which no group asks.
  template <class Descriptors>
  DEVICE void publish_total(const stage_type& mine, u32 reducer, Descriptors descriptors, u32 epoch) const {
    const descriptor_levels levels(launch);
    const u32 down = mine.tile.down;
    const bool is_told = !levels.ends_group(down) && !levels.ends_period(down) && !mine.tile.is_last(launch);
    constexpr u32 share = LOOKBACK_COLUMNS_REDUCING_WARPS * LOOKBACK_WARP_LANES;
    LOOKBACK_NOUNROLL
    for (u32 first = reducer * LOOKBACK_WARP_LANES; first < mine.tile.columns; first += share) {
      const u32 column = first + lane_index();
      if (column >= mine.tile.columns) continue;
      T parts[Config::maximum_block_threads / LOOKBACK_WARP_LANES];
      LOOKBACK_UNROLL
      for (u32 warp = 0; warp < thread.warps(); ++warp) {
        parts[warp] = memory::shared_load(mine.of_group(warp, thread.groups - 1, column));
      }
      T total = Operator::identity();
      LOOKBACK_UNROLL
      for (u32 warp = 0; warp < thread.warps(); ++warp) {
        memory::shared_store(mine.of_group(warp, thread.groups - 1, column), total);
        total = warp == 0 ? parts[0] : combine<Operator>(total, parts[warp]);
      }
      if (is_told) descriptors.publish(slot(mine.tile, down, column), epoch, LOOKBACK_STATUS_AGGREGATE, total);
      memory::shared_store(mine.total(column), total);
    }
  }

  // The combination of a thread's values with those of the groups above its own.
  DEVICE void through_groups(T (&values)[width]) const {
    LOOKBACK_NOUNROLL
    for (u32 distance = 1; distance < thread.groups; distance *= 2) {
      T above[width];
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) above[j] = values[j];
      shuffle_up_each(above, width, distance * thread.lanes);
      if (thread.group < distance) continue;
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) values[j] = combine<Operator>(above[j], values[j]);
    }
  }

  // What stands above a thread's rows in each of its columns.
  DEVICE void above_rows(const stage_type& mine, T (&above)[width]) const {
    const u32 warp = warp_index();
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) above[j] = Operator::identity();
    if (thread.group >= thread.groups) return;
    T prefix[width];
    T of_warp[width];
    T of_groups[width];
    stage_type::load_states(mine.prefix(thread.column), prefix);
    stage_type::load_states(mine.of_group(warp, thread.groups - 1, thread.column), of_warp);
    if (thread.group != 0) stage_type::load_states(mine.of_group(warp, thread.group - 1, thread.column), of_groups);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      // Nobody has written what stands above a column that is not there.
      if (thread.column + j >= mine.tile.columns) continue;
      above[j] = combine<Operator>(prefix[j], of_warp[j]);
      if (thread.group != 0) above[j] = combine<Operator>(above[j], of_groups[j]);
    }
  }

  template <class To>
  DEVICE void scan_rows(const stage_type& mine, T (&running)[width], To to, bool is_whole) const {
    if (is_whole) {
      scan_rows<true>(mine, running, to);
    } else {
      scan_rows<false>(mine, running, to);
    }
  }
  // From what stands above a thread's rows to the values of the scan.
  template <bool is_whole, class To>
  DEVICE void scan_rows(const stage_type& mine, T (&running)[width], To to) const {
    const strip_tile<Problem>& tile = mine.tile;
    const u32 first_row = thread.first_row(warp_index());
    const bool has_final_states = Problem::has_final_state && tile.is_last(launch);
    if (thread.group >= thread.groups || thread.column >= tile.columns) return;
    mine.template for_each_row<is_whole>(thread, warp_index(), [&](u32 k, const T (&row)[width]) {
      T items[width];
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) {
        const T through = combine<Operator>(running[j], row[j]);
        items[j] = config.mode == LOOKBACK_MODE_EXCLUSIVE ? running[j] : through;
        running[j] = through;
      }
      if (first_row + k >= tile.rows) return;
      const u32 at = tile.row_in_memory(first_row + k);
      if constexpr (is_whole) {
        to.template store<width>(at, thread.column, items, 0);
      } else {
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) {
          if (thread.column + j < tile.columns) to.template store<1>(at, thread.column + j, items, j);
        }
      }
      if (!has_final_states || first_row + k + 1 != tile.rows) return;
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) {
        if (thread.column + j >= tile.columns) continue;
        memory::store(static_cast<T*>(launch.final_state) + tile.first_state + thread.column + j, items[j]);
      }
    });
  }

  // What stands above a column of a tile, for its stage; by all lanes of a warp, each with a column or none. A tile that ends a
  // group or a period tells what is asked of it, the group's total before it waits for anything outside of the group.
  template <class Descriptors>
  DEVICE void find_prefix(const stage_type& mine, scan::ring_position at_stage, u32 column, Descriptors descriptors, u32 epoch) const {
    // Descriptors that are on their way to a lane at one time: most tiles have no more to ask for.
    constexpr u32 in_flight = sizeof(T) <= 4 ? 14 : sizeof(T) <= 8 ? 7 : 2;
    const descriptor_levels levels(launch);
    const u32 down = mine.tile.down;
    const u32 tiles = levels.tiles_above(down);
    const u32 told = levels.told_above(down);
    const bool is_column = column < mine.tile.columns;
    const bool is_asked = !mine.tile.is_last(launch);
    const bool tells_prefix = is_asked && levels.ends_period(down);
    const bool tells_group = is_asked && !tells_prefix && levels.ends_group(down);
    T above = Operator::identity();
    LOOKBACK_NOUNROLL
    for (u32 from = 0; from < told;) {
      // The group's total waits for nothing outside of the group.
      const bool is_in_group = tells_group && from < tiles;
      const u32 end = is_in_group ? tiles : told;
      descriptor_view<T> views[in_flight];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < in_flight; ++i) {
        views[i].status = is_column && from + i < end ? LOOKBACK_STATUS_INVALID : LOOKBACK_STATUS_AGGREGATE;
        views[i].value = Operator::identity();
      }
      read_all(mine, views, descriptors, epoch, column, from);
      LOOKBACK_UNROLL
      for (u32 i = 0; i < in_flight; ++i) {
        // What was not asked for is an identity, which changes what has overflowed, and how much that is would depend on where the
        // line ends: its last tile tells nothing, so that it asks for groups together with tiles.
        if (is_reproducible<Operator>::value && from + i >= end) continue;
        above = combine<Operator>(views[i].value, above);
      }
      from += in_flight;
      if (is_in_group && from >= tiles) {
        tell(mine, at_stage, LOOKBACK_STATUS_AGGREGATE, column, above, descriptors, epoch);
        from = tiles;
      }
    }
    // The prefix comes last. A chain runs from one to the next, so whoever waits for it does nothing else.
    const bool is_first = down < levels.period;
    descriptor_view<T> prefix[1];
    prefix[0].status = is_column && !is_first ? LOOKBACK_STATUS_INVALID : LOOKBACK_STATUS_PREFIX;
    prefix[0].value = is_column && is_first ? Problem::given_state(launch, mine.tile.first_state + column) : Operator::identity();
    read_all(mine, prefix, descriptors, epoch, column, told);
    above = combine<Operator>(prefix[0].value, above);
    // Threads read the prefixes of all their columns, of which some may not be there.
    if (column < launch.axis.strip_lanes * width) memory::shared_store(mine.prefix(column), above);
    if (tells_prefix) tell(mine, at_stage, LOOKBACK_STATUS_PREFIX, column, above, descriptors, epoch);
  }

  // Waits for all descriptors that are invalid in `views`, of which the first tells the `from`-th thing above the tile; by all
  // lanes of a warp.
  template <u32 count, class Descriptors>
  DEVICE void read_all(const stage_type& mine, descriptor_view<T> (&views)[count], Descriptors descriptors, u32 epoch, u32 column,
                       u32 from) const {
    const descriptor_levels levels(launch);
    const u32 down = mine.tile.down;
    const waiting wait;
    for (;;) {
      LOOKBACK_UNROLL
      for (u32 i = 0; i < count; ++i) {
        if (views[i].status != LOOKBACK_STATUS_INVALID) continue;
        views[i] = descriptors.read(slot(mine.tile, levels.told_by(down, from + i), column), epoch);
      }
      bool is_waiting = false;
      u32 missing = 0;
      LOOKBACK_UNROLL
      for (u32 i = 0; i < count; ++i) {
        if (views[i].status != LOOKBACK_STATUS_INVALID) continue;
        is_waiting = true;
        missing = levels.told_by(down, from + i);
      }
      if (ballot(is_waiting) == 0) return;
      const u64 lines = launch.axis.lines;
      if (wait.warp_gives_up(down * lines + mine.tile.line, missing * lines + mine.tile.line, is_waiting)) return;
    }
  }

  // Publishes what stands above a tile, and its own total.
  template <class Descriptors>
  DEVICE void tell(const stage_type& mine, scan::ring_position at_stage, u32 status, u32 column, T above, Descriptors descriptors,
                   u32 epoch) const {
    // Pairs with the arrivals of the reducers: the tile's totals are there.
    barrier_wait(ring.summed[at_stage.stage], at_stage.parity);
    if (column >= mine.tile.columns) return;
    descriptors.publish(slot(mine.tile, mine.tile.down, column), epoch, status,
                        combine<Operator>(above, memory::shared_load(mine.total(column))));
  }

  // `count` neighbouring outputs, of the states from `items[from]` on.
  template <u32 count>
  DEVICE static auto outputs_of(u64 place, const T (&items)[width], u32 from) {
    typename vectors_of<count, typename Problem::outputs>::type stored;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < count; ++j) stored.set(j, Problem::own_type::store(place + j, items[from + j]));
    return stored;
  }

  // Where rows are stored, each counted in memory: in the arrays themselves.
  struct in_arrays {
    const stage_type& mine;

    DEVICE bool has_vectors() const {
      return mine.launch.axis.inner % width == 0 &&
             are_aligned<width>(static_cast<const typename Problem::outputs*>(nullptr), mine.launch.outputs);
    }
    template <u32 count>
    DEVICE void store(u32 row, u32 column, const T (&items)[width], u32 from) const {
      const u64 place = mine.place(row, column);
      store_at<Problem>(mine.launch, place, outputs_of<count>(place, items, from));
    }
  };

  // In the stage, each element in the place of one that the same thread has read there.
  struct in_stage {
    const stage_type& mine;

    template <u32 count>
    DEVICE void store(u32 row, u32 column, const T (&items)[width], u32 from) const {
      const auto stored = outputs_of<count>(mine.place(row, column), items, from);
      auto* const stage = array_of_first(static_cast<const typename Problem::outputs*>(nullptr), mine.arrays[0]);
      memory::shared_store_vector<count>(stage + row * mine.tile.columns + column, stored.first);
    }
  };

  template <class First, class... Rest>
  DEVICE static First* array_of_first(const elements<First, Rest...>*, void* array) {
    return static_cast<First*>(array);
  }

  // Whether an output takes as much room in a stage as the first input.
  DEVICE_CONSTEXPR static bool has_room_in_stage() {
    using outputs = typename Problem::outputs;
    if constexpr (count_of<outputs>::value == 1) {
      return sizeof(outputs{}.first) == sizeof(typename Problem::inputs{}.first);
    } else {
      return false;
    }
  }

  // Rows that are shorter than a sector of the L2 cache are stored by lanes side by side, so they are written to the stage first.
  DEVICE bool stores_through_stage(const stage_type& mine) const {
    return launch.axis.strips == 1 &&
           mine.tile.columns * static_cast<u32>(sizeof(typename Problem::inputs{}.first)) < LOOKBACK_SECTOR_BYTES;
  }

  DEVICE void store_stretch(const stage_type& mine) const {
    const typename Problem::outputs* const outputs = nullptr;
    store_stretch(mine, array_of_first(outputs, mine.arrays[0]), array_of_first(outputs, launch.outputs[0]));
  }
  // A warp's part of a tile, from the stage to the array.
  template <class Output>
  DEVICE void store_stretch(const stage_type& mine, const Output* stage, Output* array) const {
    constexpr u32 element_bytes = sizeof(Output);
    // As much as an element of the first input, of which `fetch_stretch` moves whole lines.
    constexpr u32 line = LOOKBACK_VECTOR_BYTES / element_bytes;
    warp_barrier();  // all lanes have written theirs
    const u32 rows = mine.tile.rows;
    const u32 part_rows = thread.groups * config.vt;
    const u32 begin = warp_index() * part_rows;
    if (begin >= rows) return;
    const u32 end = begin + part_rows < rows ? begin + part_rows : rows;
    const u32 low = (Problem::is_backward ? rows - end : begin) * mine.tile.columns;
    const u32 count = (end - begin) * mine.tile.columns;
    const Output* const from = stage + low;
    Output* const to = array + mine.tile.first_place + low;
    // Whole lines of 16 bytes, where they are lines in both places, and what is beside them.
    u32 lines_begin = count;
    u32 lines_end = count;
    if ((reinterpret_cast<u64>(from) - reinterpret_cast<u64>(to)) % LOOKBACK_VECTOR_BYTES == 0) {
      const u32 into_line = reinterpret_cast<u64>(from) % LOOKBACK_VECTOR_BYTES / element_bytes;
      const u32 to_line = (line - into_line) % line;
      if (to_line < count) {
        lines_begin = to_line;
        lines_end = count - (count - to_line) % line;
      }
    }
    const u32 lane = lane_index();
    LOOKBACK_NOUNROLL
    for (u32 at = lane; at < lines_begin; at += LOOKBACK_WARP_LANES) memory::store(to + at, memory::shared_load(from[at]));
    LOOKBACK_NOUNROLL
    for (u32 at = lines_begin + lane * line; at < lines_end; at += LOOKBACK_WARP_LANES * line) {
      Output vector[line];
      memory::shared_load_vector<line>(from + at, vector);
      memory::store_vector<line>(to + at, vector);
    }
    LOOKBACK_NOUNROLL
    for (u32 at = lines_end + lane; at < count; at += LOOKBACK_WARP_LANES) memory::store(to + at, memory::shared_load(from[at]));
  }
};

// Reads: inputs, outputs, axis, control, descriptors, tiles, capacity, initial, initial_state, final_state. Any number of blocks
// of `config.block_threads` threads that scan and LOOKBACK_COLUMNS_HELPER_WARPS warps behind them; as dynamic shared memory
// `config.stages` stages (`columns_stage::bytes`).
template <class Problem, class Config>
DEVICE void scan_columns_ahead(Config config, const lookback_launch& launch) {
  using ring_type = columns_ring<Config>;
  SHARED(ring_type, ring);
  u8* const stages = dynamic_shared(config.stages * columns_stage<Problem, Config>::bytes(config));
  const columns_block<Problem, Config> block(config, launch, ring, stages);

  // From lane 0, so that the GPU's compiler knows that a warp stays together. Wraps around for the warps that scan.
  const u32 helper = shuffle_index(warp_index(), 0) - block.thread.warps();
  constexpr u32 fetchers = LOOKBACK_COLUMNS_FETCHING_WARPS;
  constexpr u32 first_finder = fetchers + LOOKBACK_COLUMNS_REDUCING_WARPS;

  // Read while the barriers are initialised, and only by warps that need it.
  const u32 epoch = helper >= fetchers && helper < LOOKBACK_COLUMNS_HELPER_WARPS ? scan::launch_epoch(launch) : 0;
  if (thread_index() == 0) {
    for (u32 stage = 0; stage < config.stages; ++stage) {
      barrier_initialize(ring.drawn[stage], 1);           // the first fetcher
      barrier_initialize(ring.landed[stage], fetchers);   // with their copies
      barrier_initialize(ring.reduced[stage], LOOKBACK_COLUMNS_REDUCING_WARPS);
      barrier_initialize(ring.summed[stage], LOOKBACK_COLUMNS_REDUCING_WARPS);
      barrier_initialize(ring.ready[stage], LOOKBACK_COLUMNS_REDUCING_WARPS + block.team_warps());
      barrier_initialize(ring.drained[stage], block.thread.warps());
    }
    const u32 finders = block.team_warps() * block.teams();
    barrier_initialize(ring.found, finders > 1 ? finders - 1 : 1);
    barriers_initialized();
  }
  block_barrier();  // the barriers are there

  with_descriptors<Problem>(config, launch, [&](auto descriptors) {
    if (helper < fetchers) {
      block.fetch_tiles(helper);
    } else if (helper < first_finder) {
      block.publish_totals(helper - fetchers, descriptors, epoch);
    } else if (helper < LOOKBACK_COLUMNS_HELPER_WARPS) {
      block.find_prefixes(helper - first_finder, descriptors, epoch);
    } else {
      block.scan_tiles();
    }
  });
}

}  // namespace lookback
