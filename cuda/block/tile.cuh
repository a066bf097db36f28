// A tile: block threads x VT consecutive elements, held in registers by one block.
//
// Layout. A row is the elements that a team (a warp, or the block) loads with one access a lane:
// consecutive lanes hold consecutive vectors, so every access is coalesced and as wide as VT and the
// element type allow (16 bytes where it can be). A warp owns VT / width consecutive rows; with the
// composition 'block' a row spans the block.
//
// Alignment. Tiles are laid over the array from a boundary of an access at or below the input (`lead`
// elements before it), so that all full vectors of the input are aligned; the first tile starts with
// `lead` missing elements, the last one ends where the array does. Missing elements hold the identity.
// Where the output is not aligned as the input is, rows are shifted on their way out, through shared memory
// or by shuffles, and are stored in full aligned vectors but for the two ends of what a warp stores; or on their
// way in, where they come from shared memory anyway.
#pragma once

#include "../config.cuh"
#include "lane_items.cuh"
#include "shift.cuh"
#include "team.cuh"
#include "team_scan.cuh"
#include "warp_totals.cuh"

namespace lookback {

using i64 = long long;

// Shared memory of the scan of one tile.
template <class Operator, class Config>
struct tile_storage {
  using T = typename Operator::value_type;
  static constexpr u32 maximum_warps = Config::maximum_block_threads / LOOKBACK_WARP_LANES;
  static constexpr u32 scratch_values = team_scratch_values<Config>(Config::maximum_block_threads);
  static constexpr u32 width = maximum_access_width<T, Config>();
  // One vector more than a row: a shifted row touches that many. Cut vectors and the ends of a warp's rows, two vectors
  // each, pass through here, too.
  static constexpr u32 shifted_row_values = width == 1 ? 1 : (LOOKBACK_WARP_LANES + 1) * width;

  alignas(16) T shifted_row[maximum_warps][shifted_row_values];
  T scratch[scratch_values == 0 ? 1 : scratch_values];
  alignas(16) T warp_totals[maximum_warps];  // so that several are read at once
  T tile_prefix;
};

template <class Operator, class Config>
struct tile {
  using T = typename Operator::value_type;
  using storage_type = tile_storage<Operator, Config>;
  static constexpr u32 maximum_rows = Config::maximum_vt == LOOKBACK_MAXIMUM_VT
                                          ? Config::maximum_vt
                                          : Config::maximum_vt / maximum_access_width<T, Config>();

  // Rows that are scanned together: as many as lanes may exchange at once, and no fewer than share a word then.
  DEVICE_CONSTEXPR static u32 rows_exchanged() {
    constexpr u32 row_bytes = exchanged_bytes<Operator>();
    constexpr u32 least = packed<Operator>::totals_in_word;
    const u32 most = exchange_bytes <= row_bytes * least ? least : exchange_bytes / row_bytes;
    return maximum_rows < most ? maximum_rows : most;
  }
  static constexpr u32 rows_at_once = rows_exchanged();

  Config config;
  storage_type& storage;
  i64 first;          // index of the tile's first element; negative for the lead of tile 0
  u64 tile_elements;  // block threads x VT
  items_of<Operator, Config> items;
  T lane_prefix[maximum_rows];  // of each row: what stands left of this lane, within the team's rows
  T warp_prefix;                // what stands left of this warp, within the tile

  DEVICE tile(Config config_, storage_type& storage_, const lookback_launch& launch, u64 index)
      : config(config_), storage(storage_) {
    tile_elements = static_cast<u64>(config.block_threads) * config.vt;
    first = static_cast<i64>(index * tile_elements) - static_cast<i64>(launch.lead);
  }

  // Whether the vectors of a row are scanned a word at a time. An access width that VT does not allow is compiled as
  // well, and never run.
  template <u32 width>
  DEVICE_CONSTEXPR static bool takes_words() {
    return items_of<Operator, Config>::are_words && is_packed<Operator, width>();
  }

  // Becomes `other`, of which no more than the items is known yet.
  DEVICE void take_items(const tile& other) {
    first = other.first;
    items = other.items;
  }

  DEVICE bool spans_block() const { return config.composition == LOOKBACK_COMPOSITION_BLOCK; }

  // Elements from the tile's first to this lane's first in `row`.
  template <u32 width>
  DEVICE u32 row_offset(u32 row) const {
    if (spans_block()) return row * config.block_threads * width + thread_index() * width;
    return warp_index() * LOOKBACK_WARP_LANES * config.vt + row * LOOKBACK_WARP_LANES * width + lane_index() * width;
  }

  // The warp that has the vector at an offset from the tile's first element.
  template <u32 width>
  DEVICE u32 warp_of(u32 offset) const {
    if (spans_block()) return offset / width % config.block_threads / LOOKBACK_WARP_LANES;
    return offset / (LOOKBACK_WARP_LANES * config.vt);
  }

  // Whether a warp's part of a row stands right behind its part of the row before, and right before that of the next one.
  template <u32 width>
  DEVICE bool continues_row(u32 row) const { return row != 0 && !spans_block(); }
  template <u32 width>
  DEVICE bool goes_on_behind(u32 row) const { return row + 1 < config.vt / width && !spans_block(); }

  // Whether all elements of the tile are among the first `count` of the array.
  DEVICE bool lies_within(u64 count) const {
    return first >= 0 && static_cast<u64>(first) + tile_elements <= count;
  }

  // Elements that may be read: an exclusive scan has no use for the last one, and its caller need not
  // have one.
  DEVICE u64 readable(const lookback_launch& launch) const {
    if (MUTANT(last_input_read, "kind=algorithm strategy=lookback,chained,reduce-then-scan,scan-then-propagate mode=exclusive",
               "an exclusive scan reads the last input")) {
      return launch.n;
    }
    return config.mode == LOOKBACK_MODE_EXCLUSIVE ? launch.n - 1 : launch.n;
  }

  // Of a vector that the array cuts, a lane accesses so many elements by itself. Of more, every thread would have code
  // for each, and a block that runs once waits for its code: they are accessed side by side, a lane each.
  static constexpr u32 elements_of_one_lane = 4;

  template <u32 width>
  DEVICE void load_guarded_vector(const T* input, i64 element, u64 count, T (&vector)[width]) const {
    if (element >= 0 && static_cast<u64>(element) + width <= count) {
      memory::load_vector<width>(input + element, vector);
      return;
    }
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      const i64 index = element + j;
      vector[j] = index >= 0 && static_cast<u64>(index) < count ? memory::load(input + index) : padding(input);
    }
  }

  // What stands where the array has no element.
  DEVICE T padding(const T* input) const {
    if (MUTANT(padding_combined, "kind=algorithm strategy=lookback,chained,reduce-then-scan need=misaligned",
               "the operator is applied to padding")) {
      return memory::load(input);
    }
    return Operator::identity();
  }

  DEVICE void load(const lookback_launch& launch) {
    const T* const input = static_cast<const T*>(launch.input);
    const u64 count = readable(launch);
    const bool whole = lies_within(count);
    with_access_width<T>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      if (whole) {
        const T* const from = input + first;
        LOOKBACK_UNROLL
        for (u32 row = 0; row < config.vt / width; ++row) {
          T vector[width];
          memory::load_vector<width>(from + row_offset<width>(row), vector);
          items.put(row * width, vector);
        }
      } else {
        if constexpr (width <= elements_of_one_lane) {
          LOOKBACK_UNROLL
          for (u32 row = 0; row < config.vt / width; ++row) {
            T vector[width];
            load_guarded_vector<width>(input, first + row_offset<width>(row), count, vector);
            items.put(row * width, vector);
          }
        } else {
          load_cut_tile<width>(input, count);
        }
      }
    });
  }

  // What the array cuts of a tile: no more than two vectors, the one in which it begins and the one in which it ends.
  struct cut_vectors {
    bool has_head;
    bool has_tail;
    u32 head;  // where they begin, from the tile's first element
    u32 tail;

    // Whether the lane's element, of the tail's in the first lanes and of the head's behind them, is of such a vector.
    template <u32 width>
    DEVICE bool has_lane(u32 lane) const { return lane < width ? has_tail : has_head && lane < 2 * width; }
    // Where it stands, from the tile's first element.
    template <u32 width>
    DEVICE u32 place_of(u32 lane) const { return lane < width ? tail + lane : head + lane - width; }
  };

  // Those that the warp has, of an array of `count` elements. A vector in which the array begins and ends counts as the
  // end. With `may_lead` the lead may be longer than a vector; else it is not, and code that runs once does without.
  template <u32 width, bool may_lead = false>
  DEVICE cut_vectors cuts(u64 count) const {
    const i64 end = static_cast<i64>(count) - first;
    const bool tile_has_tail = end > 0 && end < static_cast<i64>(tile_elements) && end % width != 0;
    cut_vectors cut;
    cut.tail = tile_has_tail ? static_cast<u32>(end) / width * width : 0;
    cut.has_tail = tile_has_tail && warp_index() == warp_of<width>(cut.tail);
    cut.head = may_lead && first < 0 ? static_cast<u32>(-first) / width * width : 0;
    const bool has_cut_head = may_lead ? first < 0 && static_cast<u32>(-first) % width != 0 : first < 0;
    cut.has_head = has_cut_head && warp_index() == warp_of<width>(cut.head) && !(tile_has_tail && cut.tail == cut.head);
    return cut;
  }

  // Whether element `place` of the tile is one of the first `count` of the array.
  DEVICE bool is_within(u32 place, u64 count) const {
    const i64 index = first + static_cast<i64>(place);
    return index >= 0 && static_cast<u64>(index) < count;
  }

  // Whole vectors as in a whole tile. The elements of a cut one are loaded side by side and handed to its lane through
  // shared memory.
  template <u32 width>
  DEVICE void load_cut_tile(const T* input, u64 count) {
    LOOKBACK_UNROLL
    for (u32 row = 0; row < config.vt / width; ++row) {
      const u32 offset = row_offset<width>(row);
      T vector[width];
      if (is_within(offset, count) && is_within(offset + width - 1, count)) {
        memory::load_vector<width>(input + (first + static_cast<i64>(offset)), vector);
      } else {
        const T nothing = padding(input);
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) vector[j] = nothing;
      }
      items.put(row * width, vector);
    }
    const cut_vectors cut = cuts<width>(count);
    const u32 lane = lane_index();
    T* const elements = storage.shifted_row[warp_index()];
    if (cut.template has_lane<width>(lane)) {
      const u32 place = cut.template place_of<width>(lane);
      const T element = is_within(place, count) ? memory::load(input + (first + static_cast<i64>(place))) : padding(input);
      memory::shared_store(elements[lane], element);
    }
    if (!MUTANT(cut_load_barrier_dropped, "kind=barrier strategy=lookback,chained,reduce-then-scan need=partial",
                "none after the elements of a cut vector are loaded")) {
      warp_barrier();  // they are written
    }
    LOOKBACK_UNROLL
    for (u32 row = 0; row < config.vt / width; ++row) {
      const u32 offset = row_offset<width>(row);
      const bool is_tail = cut.has_tail && offset == cut.tail;
      if (!is_tail && !(cut.has_head && offset == cut.head)) continue;
      T vector[width];
      memory::shared_load_vector<width>(elements + (is_tail ? 0 : width), vector);
      items.put(row * width, vector);
    }
    // What is next written there stands behind a block barrier, that of the totals. But for the cut end of another tile,
    // which has a place of its own.
  }

  // Replaces the items of a row by their scan from `running`.
  template <u32 width>
  DEVICE void scan_row(u32 row, T running) {
    if constexpr (takes_words<width>()) {
      u32* const words = items.words + row * vector_words;
      if (config.mode == LOOKBACK_MODE_INCLUSIVE) {
        scan_packed<Operator, true>(words, running);
      } else if (config.mode == LOOKBACK_MODE_EXCLUSIVE) {
        scan_packed<Operator, false>(words, running);
      } else {
        scan_row_singly<width>(row, running);
      }
    } else {
      scan_row_singly<width>(row, running);
    }
  }

  // The same element by element.
  template <u32 width>
  DEVICE void scan_row_singly(u32 row, T running) {
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      const T item = items.get(row * width + j);
      const T next = MUTANT(commutes, "kind=algorithm strategy=lookback,chained,reduce-then-scan need=non-commutative",
                            "operands swapped within a thread")
                         ? combine<Operator>(item, running)
                         : combine<Operator>(running, item);
      if (config.mode == LOOKBACK_MODE_INCLUSIVE) {
        items.set(row * width + j, next);
      } else if (config.mode == LOOKBACK_MODE_EXCLUSIVE) {
        items.set(row * width + j, running);
      } else {
        items.set(row * width + j, Operator::without(next, item));
      }
      running = next;
    }
  }

  // Of 16 bytes, a vector is never narrower than what the array's lead or the output's misalignment is counted in.
  template <u32 width>
  DEVICE_CONSTEXPR static bool is_full_vector() { return width * sizeof(T) == LOOKBACK_VECTOR_BYTES; }

  // Whether vectors of a misaligned output are joined when they come from a stage, and not when they are stored. Before
  // the prefix is known a warp has time, but it needs two loads a vector and the combination of what it skips. For values
  // of 4 bytes that was measured to be faster, for 1, 2 and 8 bytes slower. `Planner::lead_of_copies` knows it, too.
  template <u32 width>
  DEVICE_CONSTEXPR static bool is_joined_early() { return is_full_vector<width>() && sizeof(T) == sizeof(u32); }

  // Elements from the first of a tile in its stage to the first with which a vector of the output begins, where they are
  // joined early. Every tile has as many.
  DEVICE u32 elements_skipped(const lookback_launch& launch) const {
    u32 skipped = 0;
    with_access_width<T>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      if constexpr (is_joined_early<width>()) {
        skipped = (width - misaligned_elements<width>(static_cast<const T*>(launch.output))) % width;
      }
    });
    return skipped;
  }

  // From a copy of the tile in shared memory, which has the identity where the array has no element. With `skipped`
  // elements it becomes the tile that begins so many later, and the copy goes on for a vector behind the tile's end.
  DEVICE void load_staged(const T* stage, u32 skipped) {
    first += skipped;
    with_access_width<T>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      if constexpr (is_joined_early<width>()) {
        // Which elements are taken is known to the compiler then.
        if (skipped == 1) return load_joined<width, 1>(stage);
        if (skipped == 2) return load_joined<width, 2>(stage);
        if (skipped == 3) return load_joined<width, 3>(stage);
      }
      LOOKBACK_UNROLL
      for (u32 row = 0; row < config.vt / width; ++row) {
        T vector[width];
        memory::shared_load_vector<width>(stage + row_offset<width>(row), vector);
        items.put(row * width, vector);
      }
    });
  }

  // Two neighbouring vectors of the stage make one of the output's.
  template <u32 width, u32 skipped>
  DEVICE void load_joined(const T* stage) {
    LOOKBACK_UNROLL
    for (u32 row = 0; row < config.vt / width; ++row) {
      T vectors[2][width];
      memory::shared_load_vector<width>(stage + row_offset<width>(row), vectors[0]);
      memory::shared_load_vector<width>(stage + row_offset<width>(row) + width, vectors[1]);
      T joined[width];
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) joined[j] = vectors[(skipped + j) / width][(skipped + j) % width];
      items.put(row * width, joined);
    }
  }

  // The combination of the elements of the warp's part of a stage that `load_staged` skips, for all lanes.
  DEVICE T reduce_skipped(const T* stage, u32 skipped) const {
    T value = Operator::identity();
    with_access_width<T>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      if constexpr (is_joined_early<width>()) {
        T vector[width];
        memory::shared_load_vector<width>(stage + (row_offset<width>(0) - lane_index() * width), vector);
        value = vector[0];
        LOOKBACK_UNROLL
        for (u32 j = 1; j < width - 1; ++j) {
          if (j < skipped) value = combine<Operator>(value, vector[j]);
        }
      }
    });
    return value;
  }

  // The combination of this lane's vector in a row.
  template <u32 width>
  DEVICE T combine_row(u32 row) const {
    if constexpr (takes_words<width>()) {
      return combine_packed<Operator>(items.words + row * vector_words);
    } else {
      T value = items.get(row * width);
      LOOKBACK_UNROLL
      for (u32 j = 1; j < width; ++j) {
        if (MUTANT(fixed_two, "kind=algorithm strategy=lookback,chained,reduce-then-scan",
                   "the last item of a vector taken for its first plus 2, whatever VT") &&
            j > 2) {
          break;
        }
        value = combine<Operator>(value, items.get(row * width + j));
      }
      return value;
    }
  }

  // Scans lanes and rows of the team. Every thread gets the total of its team: of its warp, or of the tile
  // with the composition 'block'. No block barrier beyond those of the pattern. `keeps_own`: `shuffle_scan_each`.
  template <bool keeps_own = false>
  DEVICE T reduce_team() {
    T carry = Operator::identity();
    with_access_width<T>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const u32 rows = config.vt / width;
      // Reducing a row right before its scan lets that go on while later rows are still on their way.
      LOOKBACK_UNROLL
      for (u32 from = 0; from < rows; from += rows_at_once) {
        const u32 count = rows - from < rows_at_once ? rows - from : rows_at_once;
        T prefixes[rows_at_once];
        T totals[rows_at_once];
        LOOKBACK_UNROLL
        for (u32 i = 0; i < rows_at_once; ++i) {
          if (i >= count) continue;
          prefixes[i] = combine_row<width>(from + i);
        }
        scan_rows<keeps_own>(prefixes, count, totals);
        LOOKBACK_UNROLL
        for (u32 i = 0; i < rows_at_once; ++i) {
          if (i >= count) continue;
          lane_prefix[from + i] = from + i == 0 ? prefixes[i] : combine<Operator>(carry, prefixes[i]);
          carry = from + i == 0 ? totals[i] : combine<Operator>(carry, totals[i]);
          if (config.composition == LOOKBACK_COMPOSITION_SCAN_THEN_PROPAGATE) {
            scan_row<width>(from + i, lane_prefix[from + i]);
          }
        }
      }
    });
    return carry;
  }

  // The same, and then the totals of the warps. Every thread gets the total of the tile. One block barrier,
  // none with the composition 'block' beyond those of its pattern.
  DEVICE T reduce() {
    const T carry = reduce_team();
    if (spans_block()) {
      warp_prefix = Operator::identity();
      return carry;
    }
    const u32 warps = config.block_threads / LOOKBACK_WARP_LANES;
    if (lane_index() == 0) memory::shared_store(warp_totals()[warp_index()], carry);
    if (!MUTANT(totals_barrier_dropped, "kind=barrier strategy=lookback,chained,reduce-then-scan composition=reduce-then-scan,scan-then-propagate",
                "none after the warps' totals")) {
      block_barrier();  // the totals of all warps are written
    }
    // Every warp scans them for itself: that saves a second barrier.
    const T warp_total =
        lane_index() < warps ? memory::shared_load(warp_totals()[lane_index()]) : Operator::identity();
    const team_scan_result<T> scanned = team_scan<warp_team, Operator>(config, warp_total, warp_scratch());
    warp_prefix = shuffle_index(scanned.exclusive, warp_index());
    return scanned.total;
  }

  // The same result sooner, for blocks that have nothing else to do: the join of the warps is the shortest one, and
  // the user's pattern has no say in it. `totals` is the block's, one a warp, and nobody may still read it. A warp that
  // has no part of the tile gets the total, too.
  DEVICE T reduce_and_join(T* totals, bool has_part = true) {
    T total = Operator::identity();
    if (has_part) total = reduce_team();
    warp_prefix = Operator::identity();
    if (spans_block()) return total;
    if (has_part && lane_index() == 0) memory::shared_store(totals[warp_index()], total);
    if (!MUTANT(join_barrier_dropped,
                "kind=barrier strategy=single-block,one-wave composition=reduce-then-scan,scan-then-propagate",
                "none after the warps' totals, where they are joined directly")) {
      block_barrier();  // the totals of all warps are written
    }
    const team_scan_result<T> joined = join_warps<Operator>(config, totals);
    warp_prefix = joined.exclusive;
    return joined.total;
  }

  // From `tile_prefix`, what stands left of the tile, to the values of the scan.
  DEVICE void finish(T tile_prefix) {
    const T prefix = spans_block() ? tile_prefix : combine<Operator>(tile_prefix, warp_prefix);
    with_access_width<T>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      if (config.composition == LOOKBACK_COMPOSITION_SCAN_THEN_PROPAGATE) {
        LOOKBACK_UNROLL
        for (u32 i = 0; i < config.vt; ++i) items.set(i, combine<Operator>(prefix, items.get(i)));
      } else {
        LOOKBACK_UNROLL
        for (u32 row = 0; row < config.vt / width; ++row) {
          scan_row<width>(row, combine<Operator>(prefix, lane_prefix[row]));
        }
      }
    });
  }

  // `at_once`: for tiles of `load_staged`. Vectors are stored by one instruction of PTX (`store_vector_at_once` in
  // `../memory.cuh`), and those of 16 bytes that must be shifted, and are not yet, are joined in registers: more code,
  // which costs a block that runs it once more than it saves.
  template <bool at_once = false>
  DEVICE void store(const lookback_launch& launch) {
    T* const output = static_cast<T*>(launch.output);
    const bool whole = lies_within(launch.n);
    with_access_width<T>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      constexpr bool is_full = is_full_vector<width>();
      // A tile of `load_staged` that was joined there begins with a vector of the output.
      const u32 shift = at_once && is_joined_early<width>() ? 0 : misaligned_elements<width>(output);
      if (shift != 0) {
        if constexpr (at_once && is_full && !is_joined_early<width>()) {
          store_joined<width>(output, shift, launch.n, whole);
        } else {
          LOOKBACK_UNROLL
          for (u32 row = 0; row < config.vt / width; ++row) {
            store_shifted_row<width>(output, row, shift, launch.n, continues_row<width>(row), goes_on_behind<width>(row));
          }
        }
        return;
      }
      if (!whole && MUTANT(partial_tile_dropped, "kind=algorithm strategy=lookback,chained,reduce-then-scan need=partial",
                           "a tile that is not full is not stored")) {
        return;
      }
      if constexpr (width > elements_of_one_lane && (is_full || !at_once)) {
        if (!whole) {
          store_cut_tile<width, at_once>(output, launch.n);
          return;
        }
      }
      // Whether the tile is whole is asked row by row: with a loop for each case, scans of whole tiles of 4-byte values
      // were measured to take up to a fifth longer.
      LOOKBACK_UNROLL
      for (u32 row = 0; row < config.vt / width; ++row) {
        T vector[width];
        items.take(row * width, vector);
        const i64 element = first + row_offset<width>(row);
        if (whole) {
          store_whole_vector<width, at_once>(output + element, vector);
        } else {
          store_guarded_vector<width, at_once>(output, element, launch.n, vector);
        }
      }
    });
  }

 private:
  // Two arrays of shared memory that are one and the same, as two `extern __shared__` declarations are.
  DEVICE T* warp_totals() const {
    return MUTANT(aliased_shared_arrays, "kind=algorithm strategy=lookback,chained,reduce-then-scan pattern=hillis-steele,kogge-stone,brent-kung,sklansky,blelloch composition=reduce-then-scan,scan-then-propagate",
                  "warp totals in the memory of the pattern's scratch")
               ? storage.scratch
               : storage.warp_totals;
  }

  DEVICE T* warp_scratch() {
    return storage.scratch + warp_index() * (LOOKBACK_WARP_LANES * Config::maximum_scratch_values_per_thread);
  }

  // Scans one value a lane for each of the first `count` rows, over the team that holds a row.
  template <bool keeps_own>
  DEVICE void scan_rows(T (&values)[rows_at_once], u32 count, T (&totals)[rows_at_once]) {
    if (config.pattern == LOOKBACK_PATTERN_SHUFFLE) {
      shuffle_scan_each<Operator, keeps_own>(values, count, totals);
    } else {
      LOOKBACK_UNROLL
      for (u32 i = 0; i < rows_at_once; ++i) {
        if (i >= count) continue;
        const team_scan_result<T> scanned =
            spans_block() ? team_scan<block_team, Operator>(config, values[i], storage.scratch)
                          : team_scan<warp_team, Operator>(config, values[i], warp_scratch());
        values[i] = scanned.exclusive;
        totals[i] = scanned.total;
      }
    }
  }

  // Elements by which the tile's first output element lies above a vector boundary.
  template <u32 width>
  DEVICE u32 misaligned_elements(const T* output) const {
    const u64 address = reinterpret_cast<u64>(output) + static_cast<u64>(first) * sizeof(T);
    return static_cast<u32>(address % (width * sizeof(T))) / static_cast<u32>(sizeof(T));
  }

  template <u32 width, bool at_once>
  DEVICE void store_whole_vector(T* p, const T (&vector)[width]) const {
    if constexpr (at_once) {
      memory::store_vector_at_once<width>(p, vector);
    } else {
      memory::store_vector<width>(p, vector);
    }
  }

  // As `load_cut_tile`.
  template <u32 width, bool at_once>
  DEVICE void store_cut_tile(T* output, u64 count) {
    const cut_vectors cut = cuts<width, at_once>(count);
    const u32 lane = lane_index();
    T* const elements = storage.shifted_row[warp_index()];
    LOOKBACK_UNROLL
    for (u32 row = 0; row < config.vt / width; ++row) {
      const u32 offset = row_offset<width>(row);
      T vector[width];
      items.take(row * width, vector);
      if (is_within(offset, count) && is_within(offset + width - 1, count)) {
        store_whole_vector<width, at_once>(output + (first + static_cast<i64>(offset)), vector);
        continue;
      }
      const bool is_tail = cut.has_tail && offset == cut.tail;
      const bool is_head = cut.has_head && offset == cut.head;
      if (is_tail || is_head) memory::shared_store_vector<width>(elements + (is_tail ? 0 : width), vector);
    }
    if (!MUTANT(cut_store_barrier_dropped, "kind=barrier strategy=lookback,chained,reduce-then-scan need=partial",
                "none before the elements of a cut vector are stored")) {
      warp_barrier();  // they are written
    }
    if (!cut.template has_lane<width>(lane)) return;
    const u32 place = cut.template place_of<width>(lane);
    if (!is_within(place, count)) return;
    memory::store(output + (first + static_cast<i64>(place)), memory::shared_load(elements[lane]));
  }

  template <u32 width, bool at_once>
  DEVICE void store_guarded_vector(T* output, i64 element, u64 count, const T (&vector)[width]) const {
    if (element >= 0 && static_cast<u64>(element) + width <= count) {
      store_whole_vector<width, at_once>(output + element, vector);
      return;
    }
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      const i64 index = element + j;
      if (index >= 0 && static_cast<u64>(index) < count) memory::store(output + index, vector[j]);
    }
  }

  // A warp's part of a row, whose first element lies `shift` above a vector boundary of the output. Through shared
  // memory it is cut anew at the boundaries: full vectors, and `width` single elements at its two ends. With
  // `continues` the row behind the one before it takes up what that one left at its end, which `goes_on` then.
  template <u32 width>
  DEVICE void store_shifted_row(T* output, u32 row, u32 shift, u64 count, bool continues, bool goes_on) {
    T* const shifted = storage.shifted_row[warp_index()];
    const u32 lane = lane_index();
    const i64 row_first = first + row_offset<width>(row) - static_cast<i64>(lane * width);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) memory::shared_store(shifted[shift + lane * width + j], items.get(row * width + j));
    shifted_row_is_written();
    if (lane != 0 || continues) {
      T vector[width];
      memory::shared_load_vector<width>(shifted + lane * width, vector);
      const i64 element = row_first + static_cast<i64>(lane * width) - static_cast<i64>(shift);
      store_guarded_vector<width, false>(output, element, count, vector);
    }
    const bool is_tail = lane < shift;
    T edge = Operator::identity();
    if (lane < width) {
      const u32 place = is_tail ? LOOKBACK_WARP_LANES * width + lane : lane;
      edge = memory::shared_load(shifted[place]);
      const i64 index = row_first + static_cast<i64>(place) - static_cast<i64>(shift);
      const bool is_alone = is_tail ? !goes_on : !continues;
      if (is_alone && index >= 0 && static_cast<u64>(index) < count) memory::store(output + index, edge);
    }
    shifted_row_is_read();
    if (goes_on && is_tail) memory::shared_store(shifted[lane], edge);
  }

  // The same for all rows of the warp, vectors of 16 bytes. Each lane joins two neighbours, its own vector and one that
  // comes by shuffles from the next lane; so no row waits for another. Through shared memory go only the elements at the
  // ends: of the warp's rows, and of the array. Rows begin with whole sectors of the L2 cache if the lead is such
  // (`Planner::lead_of_copies`).
  template <u32 width>
  DEVICE void store_joined(T* output, u32 shift, u64 count, bool whole) {
    // Which words are joined is known to the compiler then: fewer of them are exchanged, and none chosen.
    switch ((LOOKBACK_VECTOR_BYTES - shift * static_cast<u32>(sizeof(T))) / sizeof(u32)) {
      case 0:
        if constexpr (sizeof(T) < sizeof(u32)) store_joined_words<width, 0>(output, shift, count, whole);
        break;
      case 1:
        if constexpr (sizeof(T) < sizeof(u32)) store_joined_words<width, 1>(output, shift, count, whole);
        break;
      case 2:
        store_joined_words<width, 2>(output, shift, count, whole);
        break;
      default:
        if constexpr (sizeof(T) < sizeof(u32)) store_joined_words<width, 3>(output, shift, count, whole);
        break;
    }
  }

  // Of the left one of two vectors `skipped_words` words are left out, and some bytes of the next word.
  template <u32 width, u32 skipped_words>
  DEVICE void store_joined_words(T* output, u32 shift, u64 count, bool whole) {
    constexpr u32 words = vector_words;
    constexpr bool has_bytes = sizeof(T) < sizeof(u32);
    constexpr u32 left_words = words - skipped_words;
    constexpr u32 exchanged = skipped_words + (has_bytes ? 1 : 0);
    constexpr u32 row_elements = LOOKBACK_WARP_LANES * width;
    const u32 selector = byte_selector((LOOKBACK_VECTOR_BYTES - shift * static_cast<u32>(sizeof(T))) % sizeof(u32));
    const u32 lane = lane_index();
    const u32 next_lane = (lane + 1) % LOOKBACK_WARP_LANES;
    // The last lane's vector of a row is joined with the first one's of the next; in the last row with nothing.
    const bool is_first = lane == 0;
    const bool is_last = lane == LOOKBACK_WARP_LANES - 1;
    const u32 rows = config.vt / width;
    // Vectors are counted from `shift` elements before the tile's first.
    const i64 origin = first - static_cast<i64>(shift);
    const u32 first_offset = row_offset<width>(0) + width;
    const joined_extent extent = whole ? joined_extent::all() : joined_extent::template of<width>(origin, count);
    // Of the lane's vectors, a bit a row: which lie within the array, and which it cuts, at its end or its beginning.
    u32 is_within = ~0u;
    u32 is_cut[2] = {};
    if (!whole) {
      is_within = 0;
      LOOKBACK_NOUNROLL
      for (u32 row = 0; row < rows; ++row) {
        const u32 offset = first_offset + row * row_elements;
        is_within |= extent.has(offset) ? 1u << row : 0;
        is_cut[0] |= offset == extent.cut[0] ? 1u << row : 0;
        is_cut[1] |= offset == extent.cut[1] ? 1u << row : 0;
      }
    }
    if (is_last) {
      is_within &= ~(1u << (rows - 1));
      is_cut[0] &= ~(1u << (rows - 1));
      is_cut[1] &= ~(1u << (rows - 1));
    }
    T* const slots = storage.shifted_row[warp_index()] + 2 * width;
    T* const first_vector = output + (origin + static_cast<i64>(first_offset));
    u32 own[words];
    take_words<width>(0, own);
    write_head(own);
    LOOKBACK_UNROLL
    for (u32 row = 0; row < rows; ++row) {
      if (row + 1 == rows) write_tail<width>(own);
      u32 following[words] = {};
      if (row + 1 < rows) take_words<width>(row + 1, following);
      u32 next[exchanged];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < exchanged; ++i) next[i] = is_first ? following[i] : own[i];
      shuffle_index_each(next, exchanged, next_lane);
      u32 from[words + 1];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < words + (has_bytes ? 1 : 0); ++i) {
        from[i] = i < left_words ? own[(skipped_words + i) % words] : next[(i - left_words) % exchanged];
      }
      u32 joined[words];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < words; ++i) joined[i] = has_bytes ? select_bytes(from[i], from[i + has_bytes], selector) : from[i];
      if ((is_within >> row & 1) != 0) memory::store_words_at_once(first_vector + row * row_elements, joined);
      if ((is_cut[0] >> row & 1) != 0) memory::shared_store_words(slots, joined);
      if ((is_cut[1] >> row & 1) != 0) memory::shared_store_words(slots + width, joined);
      LOOKBACK_UNROLL
      for (u32 i = 0; i < words; ++i) own[i] = following[i];
    }
    store_ends<width>(output, shift, count, extent);
  }

  // The words of a vector of the lane.
  template <u32 width>
  DEVICE void take_words(u32 row, u32 (&words)[vector_words]) {
    if constexpr (items_of<Operator, Config>::are_words) {
      LOOKBACK_UNROLL
      for (u32 i = 0; i < vector_words; ++i) words[i] = items.words[row * vector_words + i];
    } else {
      T vector[width];
      items.take(row * width, vector);
      memcpy(words, vector, sizeof(vector));
    }
  }

  // Of the vectors that are joined, by where they begin: which lie within the array, and which it cuts.
  struct joined_extent {
    u32 begin;
    u32 size;
    u32 cut[2];  // at its end and at its beginning; `none` where it does not

    static constexpr u32 none = ~0u;

    DEVICE static joined_extent all() { return {0, none, {none, none}}; }

    // Of an array of `count` elements, for vectors that are counted from element `origin`, before its end.
    template <u32 width>
    DEVICE static joined_extent of(i64 origin, u64 count) {
      const u32 farthest = LOOKBACK_MAXIMUM_VT * LOOKBACK_MAXIMUM_BLOCK_THREADS + LOOKBACK_VECTOR_BYTES;
      const u32 before = origin < 0 ? static_cast<u32>(-origin) : 0;
      const i64 left = static_cast<i64>(count) - origin;
      const u32 end = left < static_cast<i64>(farthest) ? static_cast<u32>(left) : farthest;
      joined_extent extent;
      extent.begin = (before + width - 1) / width * width;
      extent.size = end / width * width > extent.begin ? end / width * width - extent.begin : 0;
      extent.cut[0] = end % width != 0 ? end / width * width : none;
      // One in which the array begins and ends counts as the end.
      extent.cut[1] = before % width != 0 && before / width != end / width ? before / width * width : none;
      return extent;
    }

    DEVICE bool has(u32 offset) const { return offset - begin < size; }
  };

  // The vectors at the ends of a warp's rows, of whose elements the vectors that it stores do not take all.
  DEVICE void write_head(const u32 (&words)[vector_words]) {
    if (lane_index() == 0) memory::shared_store_words(storage.shifted_row[warp_index()], words);
  }
  template <u32 width>
  DEVICE void write_tail(const u32 (&words)[vector_words]) {
    if (lane_index() != LOOKBACK_WARP_LANES - 1) return;
    memory::shared_store_words(storage.shifted_row[warp_index()] + width, words);
  }

  // Stores the elements of these that are not stored yet, one a lane, and those of the vectors that the array cuts, which
  // stand behind them.
  template <u32 width>
  DEVICE void store_ends(T* output, u32 shift, u64 count, const joined_extent& extent) {
    const T* const ends = storage.shifted_row[warp_index()];
    const u32 lane = lane_index();
    const u32 warp_offset = row_offset<width>(0) - lane * width;
    const i64 origin = first - static_cast<i64>(shift);
    const auto store_one = [&](u32 offset, u32 place) {
      const T end = memory::shared_load(ends[place]);
      const i64 index = origin + static_cast<i64>(offset);
      if (index >= 0 && static_cast<u64>(index) < count) memory::store(output + index, end);
    };
    shifted_row_is_written();
    if (lane < width) {
      const bool is_tail = lane < shift;
      store_one(warp_offset + (is_tail ? LOOKBACK_WARP_LANES * config.vt : 0) + lane, (is_tail ? 2 * width : 0) + lane - shift);
    }
    if (extent.size != joined_extent::none && lane < 2 * width) {
      const u32 cut = lane < width ? extent.cut[0] : extent.cut[1];
      // A vector in which the warp's rows begin is none that it stores: its elements are among those above.
      if (cut > warp_offset && cut < warp_offset + LOOKBACK_WARP_LANES * config.vt) {
        store_one(cut + lane % width, 2 * width + lane);
      }
    }
    shifted_row_is_read();
  }

  DEVICE void shifted_row_is_written(call_site where = {}) {
    if (!MUTANT(shifted_write_barrier_dropped, "kind=barrier strategy=lookback,chained,reduce-then-scan,lookahead need=misaligned",
                "none after a row is written for shifting")) {
      warp_barrier(where);
    }
  }
  // The next one may be written then.
  DEVICE void shifted_row_is_read(call_site where = {}) {
    if (!MUTANT(shifted_read_barrier_dropped, "kind=barrier strategy=lookback,chained,reduce-then-scan need=misaligned",
                "none before the next row is written for shifting")) {
      warp_barrier(where);
    }
  }
};

}  // namespace lookback
