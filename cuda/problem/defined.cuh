// The scan of what a user has defined: elements of several arrays become a state, states are combined, and a state becomes
// elements of several other arrays; from either end, in one piece or in segments, from an initial state.
//
// `Own` is what the user's text becomes (`src/element/definition.rs`):
//
//   operator_type                     how states are combined
//   inputs   outputs                  `elements` of the arrays' types
//   beside_inputs                     those whose widths bound accesses as the inputs' do: outputs that are stored in vectors, and
//                                     those that say how wide a state is
//   value_type load(u64 i, inputs)    the state of place i
//   outputs store(u64 i, value_type)  what is stored at place i
#pragma once

#include "../config.cuh"
#include "elements.cuh"
#include "marked_items.cuh"
#include "narrow.cuh"
#include "problem.cuh"
#include "ranked_items.cuh"
#include "segments.cuh"
#include "tile_sources.cuh"
#include "vectors.cuh"

namespace lookback {

// What is done with an element that is loaded, where its state is all that matters.
struct nothing_noted {
  template <class... Anything>
  DEVICE void operator()(const Anything&...) const {}
};

template <class Own, class Segments, bool is_reversed, bool is_counted_ = false, bool is_reproducible_ = false,
          bool has_final_state_ = false>
struct defined {
  using stages_type = array_stages<defined>;
  using own_type = Own;
  using segments_place = typename Segments::place;
  static constexpr bool has_arrays = true;
  static constexpr bool is_backward = is_reversed;
  using inputs = typename Segments::template inputs_with<typename Own::inputs>;
  using outputs = typename Own::outputs;
  using own_operator = typename Own::operator_type;
  using combining = typename choice<is_reproducible_, operators::reproducible<own_operator>, own_operator>::type;
  using operator_type = typename Segments::template operator_on<combining>;
  using state_type = typename operator_type::value_type;
  using published_type = state_type;
  // What accesses are counted by.
  using input_type = typename widest_in<typename widest_in<u8, inputs>::type, typename Own::beside_inputs>::type;
  using output_type = input_type;
  using own_state = typename own_operator::value_type;
  using segments_type = Segments;
  // The same over elements of one segment.
  using unbroken = defined<Own, within_segment<Segments>, is_reversed, false, false, has_final_state_>;
  // Whether the device alone knows how many elements there are.
  static constexpr bool is_counted = is_counted_;
  // Whether the state at the last element is stored. Where it is not, what outputs do not show of a state is not computed: the product
  // of a recurrence's factors.
  static constexpr bool has_final_state = has_final_state_;

  DEVICE static published_type publish(state_type state) { return state; }
  DEVICE static state_type adopt(published_type published) { return published; }

  // What an exclusive scan has at an item: nothing, where it is the first of its segment.
  DEVICE static state_type before(state_type prefix, state_type item) { return Segments::before(prefix, item, operator_type::identity()); }

  // Indices whose elements may be read: an exclusive scan does not need the last one, unless a segment begins there, or other
  // ranks' tiles stand behind it.
  DEVICE static u64 readable(const lookback_launch& launch, u32 mode) {
    const bool is_all_read =
        is_reversed || Segments::are_several || mode != LOOKBACK_MODE_EXCLUSIVE || launch.deal.ranks != 0;
    return is_all_read || launch.n == 0 ? launch.n : launch.n - 1;
  }

  // The tile in which the row begins that has the first element of a tile.
  template <class Config>
  DEVICE static u64 tile_of_begin(Config config, const lookback_launch& launch, u64 tile) {
    const u64 tile_elements = config.block_threads * config.vt;
    const u64 begin = tile * tile_elements;
    if (begin <= launch.lead) return 0;
    return (row_at(launch, begin - launch.lead) * launch.columns + launch.lead) / tile_elements;
  }

  // What stands left of index 0.
  DEVICE static state_type initial(const lookback_launch& launch) {
    if constexpr (Segments::has_states) return operator_type::identity();
    return Segments::template state_of<own_operator>(given_state(launch, 0), 0);
  }

  // The user's state that stands left of elements of one segment, which begins with them or before. Nobody gives one that
  // stands left of all of them: rows have their own, segments between offsets none.
  DEVICE static own_state left_within(state_type left, bool begins) {
    return begins ? own_operator::identity() : Segments::value_of(left);
  }

  template <class Tile>
  DEVICE static void load_tile(Tile& tile, const lookback_launch& launch) {
    const u32 tile_elements = static_cast<u32>(tile.tile_elements);
    const u32 step = static_cast<u32>(tile.step);
    load_items(tile, global_arrays<defined>(launch, tile.first, tile_elements, tile.readable(launch), step));
  }

  // All items of a tile, from the arrays or from a stage; `note` is told of each element, its item, its place, and whether it is the
  // tile's.
  template <class Tile, class Source, class Note = nothing_noted>
  DEVICE static void load_items(Tile& tile, const Source& source, Note note = {}) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const int first_offset = static_cast<int>(tile.template row_offset<width>(0));
      const int row_elements = static_cast<int>(tile.template row_elements<width>());
      const auto load_rows = [&](auto is_simple, auto ends_early) {
        LOOKBACK_UNROLL
        for (u32 row = 0; row < tile.config.vt / width; ++row) {
          const int offset = first_offset + static_cast<int>(row) * row_elements;
          const bool is_there = decltype(ends_early)::value == 0 || !source.is_beyond(offset);
          load_row<(decltype(is_simple)::value != 0), width>(tile, source, row, offset, is_there, note);
        }
      };
      // A loop for each case, so that addresses of whole vectors are one address and constants. What is not simple asks for each
      // element whether it is the tile's.
      if (is_simple<width>(source)) {
        if (source.ends_early()) {
          load_rows(constant<1>(), constant<1>());
        } else {
          load_rows(constant<1>(), constant<0>());
        }
        return;
      }
      if constexpr (!is_same<Note, nothing_noted>::value && is_same<typename Source::memory_kind, in_global_memory>::value) {
        // Few tiles store by rank from registers, and all wait for the last one: its whole vectors are read as such.
        const u32 end = source.end();
        if (source.first >= 0 && end >= width && vectors_of<width, inputs>::type::are_loadable(source)) {
          LOOKBACK_UNROLL
          for (u32 row = 0; row < tile.config.vt / width; ++row) {
            const u32 offset = static_cast<u32>(first_offset) + row * static_cast<u32>(row_elements);
            load_row<true, width>(tile, source, row, static_cast<int>(offset), offset + width <= end, note);
          }
          LOOKBACK_UNROLL
          for (u32 row = 0; row < tile.config.vt / width; ++row) {
            const u32 offset = static_cast<u32>(first_offset) + row * static_cast<u32>(row_elements);
            if (offset < end && end < offset + width) load_row<false, width>(tile, source, row, static_cast<int>(offset), true, note);
          }
          return;
        }
      }
      load_rows(constant<0>(), constant<0>());
    });
  }

  // The items of a lane's row. Of one that is not there the tile's first vector is loaded instead of none, so that no load waits for a
  // branch.
  template <bool is_simple, u32 width, class Tile, class Source, class Note>
  DEVICE static void load_row(Tile& tile, const Source& source, u32 row, int offset, bool is_there, Note note) {
    own_state values[width];
    u32 begins = load_values<is_simple>(source, is_there ? offset : 0, values, [&](u32 j, u64 place, const inputs& loaded) {
      note(row * width + j, place, loaded, is_there);
    });
    if (!is_there) {
      begins = 0;
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) values[j] = own_operator::identity();
    }
    if constexpr (are_marked<defined>()) {
      tile.items.set_each(row * width, values, begins);
    } else {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) tile.items.set(row * width + j, values[j]);
    }
  }

  // Whether the vectors of a tile are all there and each is read by one access.
  template <u32 width, class Source>
  DEVICE static bool is_simple(const Source& source) {
    return source.is_whole && vectors_of<width, inputs>::type::are_loadable(source);
  }

  // The user's states of a vector of a tile, from `offset` on: the identity where there is no element. A bit for each that
  // begins a segment.
  template <bool is_simple, class Source, u32 width, class Note = nothing_noted>
  DEVICE static u32 load_values(const Source& source, int offset, own_state (&values)[width], Note note = {}) {
    if constexpr (is_simple) {
      return load_run<width>(source, offset, 0, values, note);
    } else {
      u32 begins = 0;
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) {
        const int at = offset + static_cast<int>(j);
        values[j] = own_operator::identity();
        if (source.has(at)) begins |= load_run<1>(source, at, j, values, note);
      }
      return begins;
    }
  }

  DEVICE static state_type state_of(own_state value, u32 begins) {
    return Segments::template state_of<own_operator>(value, begins);
  }

  template <class Tile>
  DEVICE static void store_tile(const Tile& tile, const lookback_launch& launch) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const i64 first_index = tile.first + tile.template row_offset<width>(0);
      const int row_elements = static_cast<int>(tile.template row_elements<width>());
      const auto store_rows = [&](auto is_simple, auto ends_early) {
        LOOKBACK_UNROLL
        for (u32 row = 0; row < tile.config.vt / width; ++row) {
          state_type states[width];
          LOOKBACK_UNROLL
          for (u32 j = 0; j < width; ++j) states[j] = tile.items.get(row * width + j);
          const i64 index = first_index + static_cast<int>(row) * row_elements;
          if constexpr (decltype(is_simple)::value != 0) {
            const bool exists = decltype(ends_early)::value == 0 || !tile.is_beyond(index - tile.first);
            if (exists) store_run<width>(launch, index, 0, states, tile.config.mode);
          } else {
            LOOKBACK_UNROLL
            for (u32 j = 0; j < width; ++j) {
              const i64 at = index + static_cast<int>(j);
              const bool exists = at >= 0 && static_cast<u64>(at) < launch.n && !(tile.ends_early() && tile.is_beyond(at - tile.first));
              if (exists) store_run<1>(launch, at, j, states, tile.config.mode);
            }
          }
        }
      };
      if (tile.lies_within(launch.n) && vectors_of<width, outputs>::type::template are_storable<defined>(launch, first_index)) {
        if (tile.ends_early()) {
          store_rows(constant<1>(), constant<1>());
        } else {
          store_rows(constant<1>(), constant<0>());
        }
      } else {
        store_rows(constant<0>(), constant<1>());
      }
      if constexpr (has_final_state && !Segments::has_states) store_final_state<width>(tile, launch, first_index, row_elements);
    });
  }

  // Whether what is stored stands at ranks, and not each element at its own place.
  static constexpr bool is_stored_by_rank = false;
  // Whether the outputs of a tile have room in its stage, each where the user's input of the same number was.
  static constexpr bool has_room_in_stage = fit_into<outputs, typename Own::inputs>::value;

  // A warp's part of a tile, and the stage that it was loaded from.
  template <class Stage>
  struct part_of_tile {
    static constexpr bool is_backward = is_reversed;
    // Inputs in front of the user's: the one that tells where segments begin, if any does.
    static constexpr u32 in_front = count_of<inputs>::value - count_of<typename Own::inputs>::value;
    const Stage& source;
    const lookback_launch& launch;
    int first;  // from the tile's first element
    u32 elements;

    DEVICE int lowest(int offset, u32 width) const {
      return is_reversed ? static_cast<int>(elements) - offset - static_cast<int>(width) : offset;
    }
    template <u32 number, class T>
    DEVICE T* stage() const {
      return reinterpret_cast<T*>(source.template room<number + in_front>(first, static_cast<int>(elements)));
    }
    template <u32 number, class T>
    DEVICE T* array() const {
      return static_cast<T*>(launch.outputs[number]) + place_of<is_reversed>(launch.n, source.first + first, elements);
    }
  };

  template <u32 width, class Tile, class Stage>
  DEVICE static bool store_run_through(const Tile& tile, const lookback_launch& launch, const Stage& stage) {
    const u32 part_elements = LOOKBACK_WARP_LANES * tile.config.vt;
    const part_of_tile<Stage> part = {stage, launch, static_cast<int>(warp_index() * part_elements), part_elements};
    if (!tile.lies_within(launch.n) || !vectors_of<width, outputs>::type::have_vectors(part)) return false;
    const int row_elements = static_cast<int>(tile.template row_elements<width>());
    LOOKBACK_UNROLL
    for (u32 row = 0; row < tile.config.vt / width; ++row) {
      const int offset = static_cast<int>(row) * row_elements + static_cast<int>(lane_index() * width);
      auto stored = outputs_of<width>(launch, tile.first + part.first + offset, tile.config.mode,
                                      [&](u32 j) { return tile.items.get(row * width + j); });
      stored.store_in_stage(part, offset);
    }
    warp_barrier();  // all lanes have written theirs
    vectors_of<width, outputs>::type::copy_from_stage(part);
    if constexpr (has_final_state && !Segments::has_states) {
      store_final_state<width>(tile, launch, tile.first + tile.template row_offset<width>(0), row_elements);
    }
    return true;
  }

  // Stores a warp's part of a tile by way of its stage, which the reducers have read, so that lanes store side by side. False
  // if it can not be done so.
  template <class Tile, class Stage>
  DEVICE static bool store_through(const Tile& tile, const lookback_launch& launch, const Stage& stage) {
    bool is_done = false;
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      // A lane's vectors of several rows are side by side anyhow.
      if constexpr (width * sizeof(input_type) > LOOKBACK_VECTOR_BYTES) is_done = store_run_through<width>(tile, launch, stage);
    });
    return is_done;
  }

  // The user's state that stands left of a segment or above a column: the same of all, or one of each.
  DEVICE static own_state given_state(const lookback_launch& launch, u64 segment) {
    using states = given_states<own_state>;
    if (launch.initial_state != nullptr) return states::load(launch.initial_state, segment);
    return launch.has_initial != 0 ? states::from_bytes(launch.initial) : own_operator::identity();
  }

 private:
  DEVICE static u64 own_place(u64 n, i64 index) { return static_cast<u64>(place_of<is_reversed>(n, index, 1)); }

  // `count` elements that are there become `values[to]` and those behind it.
  template <u32 count, class Source, u32 width, class Note>
  DEVICE static u32 load_run(const Source& source, int offset, u32 to, own_state (&values)[width], Note note) {
    typename vectors_of<count, inputs>::type loaded;
    loaded.load(source, offset);
    const u32 begins = Segments::template begins<count>(source.segments, offset, loaded);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < count; ++j) {
      const u64 place = own_place(source.launch.n, source.first + (offset + static_cast<int>(j)));
      own_state value = Own::load(place, Segments::inputs_of(loaded.get(j)));
      if constexpr (Segments::has_states) {
        const bool is_begin = (begins >> j & 1) != 0;
        if (is_begin) value = combine<own_operator>(given_state(source.launch, row_at(source.launch, place)), value);
      }
      values[to + j] = value;
      note(to + j, place, loaded.get(j));
    }
    return begins << to;
  }

  template <u32 count, u32 width>
  DEVICE static void store_run(const lookback_launch& launch, i64 index, u32 from, const state_type (&states)[width], u32 mode) {
    auto stored = outputs_of<count>(launch, index, mode, [&](u32 j) { return states[from + j]; });
    stored.template store<defined>(launch, index);
  }

  // What is stored of `count` states from `index` on, which `get(j)` tells.
  template <u32 count, class Get>
  DEVICE static typename vectors_of<count, outputs>::type outputs_of(const lookback_launch& launch, i64 index, u32 mode, Get get) {
    typename vectors_of<count, outputs>::type stored;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < count; ++j) {
      const u64 place = own_place(launch.n, index + static_cast<i64>(j));
      own_state value = Segments::value_of(get(j));
      if constexpr (Segments::has_states) value = at_ends_of_row(launch, place, value, mode);
      stored.set(j, Own::store(place, value));
    }
    return stored;
  }

  // What the last index was stored from, by the lane that has it.
  template <u32 width, class Tile>
  DEVICE static void store_final_state(const Tile& tile, const lookback_launch& launch, i64 first_index, int row_elements) {
    LOOKBACK_UNROLL
    for (u32 i = 0; i < tile.config.vt; ++i) {
      const i64 index = first_index + static_cast<int>(i / width) * row_elements + static_cast<int>(i % width);
      // Of no elements there is no last one, and the index before the first is -1.
      if (index < 0 || static_cast<u64>(index) + 1 != launch.n) continue;
      given_states<own_state>::store(launch.final_state, Segments::value_of(tile.items.get(i)));
    }
  }

  // The first element of a row that is scanned exclusively has what stands left of it; what the last one has is kept.
  DEVICE static own_state at_ends_of_row(const lookback_launch& launch, u64 place, own_state value, u32 mode) {
    const u64 row = row_at(launch, place);
    const u64 position = place - row * launch.columns;
    const u64 last = launch.columns - 1;
    if (mode == LOOKBACK_MODE_EXCLUSIVE && position == (is_reversed ? last : 0)) value = given_state(launch, row);
    if constexpr (has_final_state) {
      if (position == (is_reversed ? 0 : last)) memory::store(static_cast<own_state*>(launch.final_state) + row, value);
    }
    return value;
  }
};

}  // namespace lookback
