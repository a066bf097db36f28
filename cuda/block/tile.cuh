// A tile: block threads x VT consecutive elements, held in registers by one block; or those of the whole rows among them.
//
// Layout. A row is the elements that a team (a warp, or the block) loads with one access a lane: consecutive lanes hold
// consecutive vectors, so every access is coalesced and as wide as VT and the element types allow (16 bytes where it can
// be). A warp owns VT / width consecutive rows; with the composition 'block' a row spans the block.
//
// Alignment. Tiles are laid over the array from a boundary of an access at or below the input (`lead` elements before
// it), so that all full vectors of the input are aligned. The first tile starts with `lead` missing elements, the last
// one ends where the array does; missing elements count as the identity (`cut_ends.cuh`). An output that is not aligned
// as the input is gets its rows shifted (`misaligned_output.cuh`).
#pragma once

#include "../config.cuh"
#include "lane_items.cuh"
#include "team.cuh"
#include "team_scan.cuh"
#include "warp_totals.cuh"

namespace lookback {

using i64 = long long;

// Shared memory of the scan of one tile.
template <class Problem, class Config>
struct tile_storage {
  using T = typename Problem::state_type;
  static constexpr u32 maximum_warps = Config::maximum_block_threads / LOOKBACK_WARP_LANES;
  static constexpr u32 scratch_values = team_scratch_values<Config>(Config::maximum_block_threads);
  static constexpr u32 width = maximum_access_width<access_type<Problem>, Config>();
  // A shifted row touches one vector more than it has. Cut vectors and the two ends of a warp's rows pass through here,
  // too: two vectors each.
  static constexpr u32 shifted_row_values = width == 1 || Problem::has_arrays ? 1 : (LOOKBACK_WARP_LANES + 1) * width;

  alignas(16) access_type<Problem> shifted_row[maximum_warps][shifted_row_values];
  T scratch[scratch_values == 0 ? 1 : scratch_values];
  alignas(16) T warp_totals[maximum_warps];  // aligned, so that several are read with one access
  T tile_prefix;
};

struct cut_vectors;
struct realigned_extent;

template <class Problem, class Config>
struct tile {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  using input_type = typename Problem::input_type;
  using output_type = typename Problem::output_type;
  using element_type = access_type<Problem>;
  using storage_type = tile_storage<Problem, Config>;
  using items_type = items_of<Problem, Config>;
  static constexpr u32 maximum_rows = Config::maximum_vt == LOOKBACK_MAXIMUM_VT
                                          ? Config::maximum_vt
                                          : Config::maximum_vt / run_elements<element_type, Config>(Config::maximum_vt);

  // Rows whose totals lanes exchange together: as many as one exchange has bytes for, and no fewer than share a word.
  DEVICE_CONSTEXPR static u32 rows_exchanged() {
    constexpr u32 row_bytes = exchanged_bytes<Operator>();
    constexpr u32 least = packed<Operator>::totals_in_word;
    const u32 most = exchange_bytes <= row_bytes * least ? least : exchange_bytes / row_bytes;
    return maximum_rows < most ? maximum_rows : most;
  }
  static constexpr u32 rows_per_exchange = rows_exchanged();

  Config config;
  storage_type& storage;
  i64 first;          // index of the tile's first element; negative for the lead of tile 0
  u64 tile_elements;  // block threads x VT
  u64 step;           // from there to the next tile's first: as many, or those of whole rows that end with a vector
  items_type items;
  T lane_prefix[maximum_rows];  // of each row: what stands left of this lane, within the team's rows
  T warp_prefix;                // what stands left of this warp, within the tile
  bool splits_runs = false;     // whether a segment begins within a run of one of the warp's lanes

  DEVICE tile(Config config_, storage_type& storage_, const lookback_launch& launch, u64 index)
      : tile(config_, storage_, launch, index, static_cast<u64>(config_.block_threads) * config_.vt) {}
  DEVICE tile(Config config_, storage_type& storage_, const lookback_launch& launch, u64 index, u64 step_)
      : config(config_), storage(storage_), step(step_) {
    tile_elements = static_cast<u64>(config.block_threads) * config.vt;
    first = static_cast<i64>(index * step) - static_cast<i64>(begins_at_vectors() ? 0 : launch.lead);
  }

  // Whether the vectors of a row are scanned a word at a time. An access width that VT does not allow is compiled as
  // well, and never run.
  template <u32 width>
  DEVICE_CONSTEXPR static bool is_packed() {
    return items_type::are_words && ::lookback::is_packed<Operator, width>();
  }

  // Whether the output's vectors have 16 bytes. Then they are never narrower than what its misalignment is counted in.
  template <u32 width>
  DEVICE_CONSTEXPR static bool is_full_vector() {
    return width * sizeof(output_type) == LOOKBACK_VECTOR_BYTES;
  }

  // Whether tiles of `load_staged` are realigned when they come from the stage, and not when they are stored. A warp has
  // time before its prefix is known, but it takes two loads a vector and the combination of what is skipped. For values
  // of 4 bytes that was measured to be faster, for 1, 2 and 8 bytes slower. `Planner::lead_of_copies` relies on it.
  template <u32 width>
  DEVICE_CONSTEXPR static bool is_realigned_on_load() {
    return !Problem::has_arrays && is_full_vector<width>() && sizeof(input_type) == sizeof(u32) && sizeof(output_type) == sizeof(u32);
  }

  // Becomes `other`, of which only the items are loaded yet.
  DEVICE void adopt(const tile& other) {
    first = other.first;
    items = other.items;
  }

  // Whether both arrays begin at vectors. Then a kernel is spared the code for others (`Shape::is_aligned_apart`).
  DEVICE bool begins_at_vectors() const { return config.alignment == LOOKBACK_ALIGNMENT_VECTORS; }

  DEVICE bool spans_block() const { return config.composition == LOOKBACK_COMPOSITION_BLOCK; }

  // Elements of a row.
  template <u32 width>
  DEVICE u32 row_elements() const {
    return (spans_block() ? config.block_threads : LOOKBACK_WARP_LANES) * width;
  }

  // Elements from the tile's first to this lane's first in `row`.
  template <u32 width>
  DEVICE u32 row_offset(u32 row) const {
    if (spans_block()) return row * config.block_threads * width + thread_index() * width;
    return warp_index() * LOOKBACK_WARP_LANES * config.vt + row * LOOKBACK_WARP_LANES * width + lane_index() * width;
  }

  // Whether all elements of the tile are among the first `count` of the array.
  DEVICE bool lies_within(u64 count) const { return first >= 0 && static_cast<u64>(first) + step <= count; }

  // Whether a later tile's elements follow before its room ends; and whether these stand so many elements from its first.
  DEVICE bool ends_early() const { return step != tile_elements; }
  DEVICE bool is_beyond(i64 offset) const { return offset >= static_cast<i64>(step); }

  // Elements that may be read: an exclusive scan does not need the last one, and its caller need not have one.
  DEVICE u64 readable(const lookback_launch& launch) const {
    if constexpr (Problem::has_arrays) return Problem::readable(launch, config.mode);
    return config.mode == LOOKBACK_MODE_EXCLUSIVE ? launch.n - 1 : launch.n;
  }

  DEVICE void load(const lookback_launch& launch) {
    if constexpr (Problem::has_arrays) {
      Problem::load_tile(*this, launch);
    } else {
      const input_type* const input = static_cast<const input_type*>(launch.input);
      const u64 count = readable(launch);
      const bool whole = lies_within(count);
      with_run_elements<element_type>(config, [&](auto access) {
        constexpr u32 width = decltype(access)::value;
        if (whole) {
          const input_type* const from = input + first;
          LOOKBACK_UNROLL
          for (u32 row = 0; row < config.vt / width; ++row) {
            input_type vector[width];
            memory::load_vector<width>(from + row_offset<width>(row), vector);
            items.load(row * width, vector);
          }
        } else {
          if constexpr (width <= elements_of_one_lane) {
            LOOKBACK_UNROLL
            for (u32 row = 0; row < config.vt / width; ++row) {
              input_type vector[width];
              load_guarded_vector<width>(input, first + row_offset<width>(row), count, vector);
              items.load(row * width, vector);
            }
          } else {
            load_cut_tile<width>(input, count);
          }
        }
      });
    }
  }

  // From a copy of the tile in shared memory, which has `Problem::padding` where the array has no element. With `skipped`
  // elements it becomes the tile that begins so many later; the copy then goes on for a vector behind the tile's end.
  template <class Stage>
  DEVICE void load_staged(Stage stage, u32 skipped) {
    if constexpr (Problem::has_arrays) {
      stage.load_into(*this);
    } else {
      first += skipped;
      with_run_elements<element_type>(config, [&](auto access) {
        constexpr u32 width = decltype(access)::value;
        if constexpr (is_realigned_on_load<width>()) {
          // The compiler then knows which elements of two vectors are taken.
          if (skipped == 1) return load_realigned<width, 1>(stage);
          if (skipped == 2) return load_realigned<width, 2>(stage);
          if (skipped == 3) return load_realigned<width, 3>(stage);
        }
        LOOKBACK_UNROLL
        for (u32 row = 0; row < config.vt / width; ++row) {
          input_type vector[width];
          memory::shared_load_vector<width>(stage + row_offset<width>(row), vector);
          items.load(row * width, vector);
        }
      });
    }
  }

  // Elements by which `load_staged` moves every tile, so that its vectors are those of the output.
  DEVICE u32 elements_skipped(const lookback_launch& launch) const;
  // The combination of the elements that `load_staged` skips of the warp's part of a stage, for all lanes.
  template <class Stage>
  DEVICE T reduce_skipped(Stage stage, u32 skipped) const;

  // Scans lanes and rows of the team. Every thread gets the total of its team: of its warp, or of the tile with the
  // composition 'block'. No block barrier beyond those of the pattern. `by_subtraction`: see `shuffle_scan_each`.
  template <bool by_subtraction = false>
  DEVICE T reduce_team() {
    T carry = Operator::identity();
    if constexpr (are_marked<Problem>()) splits_runs = ballot(items.begins_within != 0) != 0;
    with_run_elements<element_type>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const u32 rows = config.vt / width;
      // Each row is reduced right before its scan: that goes on while later rows are still being loaded.
      LOOKBACK_UNROLL
      for (u32 from = 0; from < rows; from += rows_per_exchange) {
        const u32 count = rows - from < rows_per_exchange ? rows - from : rows_per_exchange;
        T prefixes[rows_per_exchange];
        T totals[rows_per_exchange];
        LOOKBACK_UNROLL
        for (u32 i = 0; i < rows_per_exchange; ++i) {
          if (i >= count) continue;
          prefixes[i] = combine_row<width>(from + i);
        }
        scan_rows<by_subtraction>(prefixes, count, totals);
        LOOKBACK_UNROLL
        for (u32 i = 0; i < rows_per_exchange; ++i) {
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

  // The same, and then the totals of the warps. Every thread gets the total of the tile. One block barrier, none with
  // the composition 'block' beyond those of its pattern.
  DEVICE T reduce() {
    const T carry = reduce_team();
    if (spans_block()) {
      warp_prefix = Operator::identity();
      return carry;
    }
    const u32 warps = config.block_threads / LOOKBACK_WARP_LANES;
    if (lane_index() == 0) memory::shared_store(storage.warp_totals[warp_index()], carry);
    block_barrier();  // the totals of all warps are written
    if constexpr (is_reproducible<Operator>::value) {
      const team_scan_result<T> joined = join_warps<Operator>(config, storage.warp_totals);
      warp_prefix = joined.exclusive;
      return joined.total;
    }
    // Every warp scans them for itself: that saves a second barrier.
    const T warp_total =
        lane_index() < warps ? memory::shared_load(storage.warp_totals[lane_index()]) : Operator::identity();
    const team_scan_result<T> scanned = team_scan<warp_team, Operator>(config, warp_total, warp_scratch());
    warp_prefix = shuffle_index(scanned.exclusive, warp_index());
    return scanned.total;
  }

  // The same result with less latency, for blocks that have nothing else to do meanwhile: warps are joined by the
  // shortest way, whatever pattern the user chose. `totals` has one place a warp, which nobody may still read. A warp
  // that has no part of the tile gets the total, too.
  DEVICE T reduce_and_join(T* totals, bool has_part = true) {
    T total = Operator::identity();
    if (has_part) total = reduce_team();
    warp_prefix = Operator::identity();
    if (spans_block()) return total;
    if (has_part && lane_index() == 0) memory::shared_store(totals[warp_index()], total);
    block_barrier();  // the totals of all warps are written
    const team_scan_result<T> joined = join_warps<Operator>(config, totals);
    warp_prefix = joined.exclusive;
    return joined.total;
  }

  // From `tile_prefix`, what stands left of the tile, to the values of the scan.
  DEVICE void finish(const lookback_launch& launch, T tile_prefix) {
    if constexpr (Problem::has_arrays) tile_prefix = combine<Operator>(Problem::initial(launch), tile_prefix);
    const T prefix = spans_block() ? tile_prefix : combine<Operator>(tile_prefix, warp_prefix);
    with_run_elements<element_type>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      if (config.composition == LOOKBACK_COMPOSITION_SCAN_THEN_PROPAGATE) {
        if constexpr (is_by_rank<Problem>()) {
          LOOKBACK_UNROLL
          for (u32 row = 0; row < config.vt / width; ++row) items.template propagate<Operator, width>(row, prefix);
        } else {
          LOOKBACK_UNROLL
          for (u32 i = 0; i < config.vt; ++i) items.set(i, combine<Operator>(prefix, items.get(i)));
        }
      } else {
        LOOKBACK_UNROLL
        for (u32 row = 0; row < config.vt / width; ++row) {
          scan_row<width>(row, combine<Operator>(prefix, lane_prefix[row]));
        }
      }
    });
  }

  // `from_stage`: for tiles of `load_staged`. Their vectors are stored by one instruction each (`store_vector_unsplit` in
  // `../memory.cuh`; those of a user's arrays always are), and vectors of 16 bytes that must be shifted are joined in
  // registers. That is more code, which costs a block that runs it once more than it saves.
  template <bool from_stage = false>
  DEVICE void store(const lookback_launch& launch) {
    if constexpr (Problem::has_arrays) {
      Problem::store_tile(*this, launch);
    } else {
      output_type* const output = static_cast<output_type*>(launch.output);
      const bool whole = lies_within(launch.n);
      with_run_elements<element_type>(config, [&](auto access) {
        constexpr u32 width = decltype(access)::value;
        constexpr bool is_full = is_full_vector<width>();
        constexpr bool is_realigned = from_stage && is_realigned_on_load<width>();
        const u32 shift = is_realigned || begins_at_vectors() ? 0 : misaligned_elements<width>(output);
        if (shift != 0) {
          if constexpr (from_stage && is_full && !is_realigned) {
            store_realigned<width>(output, shift, launch.n, whole);
          } else {
            LOOKBACK_UNROLL
            for (u32 row = 0; row < config.vt / width; ++row) store_shifted_row<width>(output, row, shift, launch.n);
          }
          return;
        }
        if constexpr (width > elements_of_one_lane && (is_full || !from_stage)) {
          if (!whole) {
            store_cut_tile<width, from_stage>(output, launch.n);
            return;
          }
        }
        // Whether the tile is whole is asked row by row: with a loop for each case, scans of whole tiles of 4-byte values
        // were measured to take up to a fifth longer.
        LOOKBACK_UNROLL
        for (u32 row = 0; row < config.vt / width; ++row) {
          output_type vector[width];
          items.store(row * width, vector);
          const i64 element = first + row_offset<width>(row);
          if (whole) {
            store_vector<width, from_stage>(output + element, vector);
          } else {
            store_guarded_vector<width, from_stage>(output, element, launch.n, vector);
          }
        }
      });
    }
  }

  // The same by way of the stage that the warp's part was loaded from, which nobody reads any more; false if that cannot be.
  template <class Stage>
  DEVICE bool store_through(const lookback_launch& launch, const Stage& stage) const {
    return Problem::store_through(*this, launch, stage);
  }

 private:
  // The combination of this lane's vector in a row.
  template <u32 width>
  DEVICE T combine_row(u32 row) {
    if constexpr (is_packed<width>()) {
      return combine_packed<Operator>(items.words + row * vector_words);
    } else if constexpr (is_by_rank<Problem>()) {
      return items.template combined<Operator, width>(row, first + row_offset<width>(row));
    } else if constexpr (are_marked<Problem>()) {
      if (splits_runs) return items.template combined<Operator, width, true>(row * width);
      return items.template combined<Operator, width, false>(row * width);
    } else {
      T value = items.get(row * width);
      LOOKBACK_UNROLL
      for (u32 j = 1; j < width; ++j) value = combine<Operator>(value, items.get(row * width + j));
      return value;
    }
  }

  // Replaces the items of a row by their scan from `running`.
  template <u32 width>
  DEVICE void scan_row(u32 row, T running) {
    if constexpr (is_packed<width>()) {
      u32* const words = items.words + row * vector_words;
      if (config.mode == LOOKBACK_MODE_INCLUSIVE) return scan_packed<Operator, true>(words, running);
      if (config.mode == LOOKBACK_MODE_EXCLUSIVE) return scan_packed<Operator, false>(words, running);
    }
    if constexpr (is_by_rank<Problem>()) {
      items.template scan<Operator, width>(row, running);
    } else {
      scan_items_of_row<width>(row, running);
    }
  }

  // The same where each item is held.
  template <u32 width>
  DEVICE void scan_items_of_row(u32 row, T running) {
    const auto scan = [&](auto is_split) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) {
        const T item = item_at<decltype(is_split)::value != 0>(row * width, j);
        const T next = combine<Operator>(running, item);
        set_result(row * width + j, result_at<Problem>(config.mode, running, next, item));
        running = next;
      }
    };
    if constexpr (are_marked<Problem>()) {
      if (!splits_runs) return scan(constant<0>());
    }
    scan(constant<1>());
  }

  // Where segments begin is not asked again behind the last scan of an item.
  DEVICE void set_result(u32 i, T result) {
    if constexpr (are_marked<Problem>()) {
      if (config.composition != LOOKBACK_COMPOSITION_SCAN_THEN_PROPAGATE) return items.set_value(i, result);
    }
    items.set(i, result);
  }

  // A value of the run at `first`, within which a segment may begin if it `is_split`.
  template <bool is_split>
  DEVICE T item_at(u32 first, u32 j) const {
    if constexpr (!is_split) return j == 0 ? items.get(first) : items.get_unmarked(first + j);
    return items.get(first + j);
  }

  DEVICE T* warp_scratch() {
    return storage.scratch + warp_index() * (LOOKBACK_WARP_LANES * Config::maximum_scratch_values_per_thread);
  }

  // Scans one value a lane for each of the first `count` rows, over the team that holds a row.
  template <bool by_subtraction>
  DEVICE void scan_rows(T (&values)[rows_per_exchange], u32 count, T (&totals)[rows_per_exchange]) {
    if (config.pattern == LOOKBACK_PATTERN_SHUFFLE) {
      shuffle_scan_each<Operator, by_subtraction>(values, count, totals);
    } else {
      LOOKBACK_UNROLL
      for (u32 i = 0; i < rows_per_exchange; ++i) {
        if (i >= count) continue;
        const team_scan_result<T> scanned =
            spans_block() ? team_scan<block_team, Operator>(config, values[i], storage.scratch)
                          : team_scan<warp_team, Operator>(config, values[i], warp_scratch());
        values[i] = scanned.exclusive;
        totals[i] = scanned.total;
      }
    }
  }

  // The warp's row in shared memory, for elements that are loaded or elements that are stored.
  template <class Element>
  DEVICE Element* shifted_row() const { return reinterpret_cast<Element*>(storage.shifted_row[warp_index()]); }

  template <u32 width, bool from_stage>
  DEVICE void store_vector(output_type* p, const output_type (&vector)[width]) const {
    if constexpr (from_stage) {
      memory::store_vector_unsplit<width>(p, vector);
    } else {
      memory::store_vector<width>(p, vector);
    }
  }

  // Of a vector that the array cuts, a lane accesses up to so many elements by itself. For more than that every thread
  // would have code for each element, and a block that runs once waits for its code: then each lane accesses one.
  static constexpr u32 elements_of_one_lane = 4;

  // What the array cuts of a tile: `cut_ends.cuh`.
  DEVICE bool is_within(u32 place, u64 count) const;
  template <u32 width>
  DEVICE u32 warp_of(u32 offset) const;
  template <u32 width, bool may_lead = false>
  DEVICE cut_vectors cuts(u64 count) const;
  template <u32 width>
  DEVICE void load_guarded_vector(const input_type* input, i64 element, u64 count, input_type (&vector)[width]) const;
  template <u32 width>
  DEVICE void load_cut_tile(const input_type* input, u64 count);
  template <u32 width, bool from_stage>
  DEVICE void store_cut_tile(output_type* output, u64 count);
  template <u32 width, bool from_stage>
  DEVICE void store_guarded_vector(output_type* output, i64 element, u64 count,
                                   const output_type (&vector)[width]) const;

  // An output that is not aligned as the input is: `misaligned_output.cuh`.
  template <u32 width>
  DEVICE u32 misaligned_elements(const output_type* output) const;
  template <u32 width, u32 skipped>
  DEVICE void load_realigned(const input_type* stage);
  template <u32 width>
  DEVICE void store_shifted_row(output_type* output, u32 row, u32 shift, u64 count);
  template <u32 width>
  DEVICE void store_realigned(output_type* output, u32 shift, u64 count, bool whole);
  template <u32 width, u32 skipped_words>
  DEVICE void store_realigned_words(output_type* output, u32 shift, u64 count, bool whole);
  template <u32 width>
  DEVICE void words_of(u32 row, u32 (&words)[vector_words]) const;
  template <u32 width>
  DEVICE void store_ends(output_type* output, u32 shift, u64 count, const realigned_extent& extent);
};

}  // namespace lookback

#include "cut_ends.cuh"
#include "misaligned_output.cuh"
