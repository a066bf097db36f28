// Compaction: of the elements of a defined scan those that are kept are stored side by side. Each has the rank that the scan
// counts; what is loaded, combined and published is as in `defined.cuh`.
//
// `Own` has, beside what it has there:
//
//   bool keeps(u64 i, inputs)                  whether the element of place i is kept
//   u64 count(value_type)                      how many are, up to and with the one whose state it is; with `has_groups`, how
//                                              many groups began, of each of which one element is kept
//   outputs store(u64 i, value_type, inputs)   what is stored of it
//   others                                     what becomes of the others; in groups, each element is in one then, whose last
//                                              one is kept
//
// Source: ranks by a scan, as in the split of Blelloch, "Prefix Sums and Their Applications" (1990), in the one pass of Merrill
// and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016).
#pragma once

#include "defined.cuh"

namespace lookback {

// Elements that are not kept. Apart: each to the arrays behind those of the kept ones, by a rank of their own. Behind: to the
// same arrays, the first one last.
enum others : u32 { others_are_dropped, others_are_apart, others_are_behind };

// A state, and how many groups began.
template <class T, class Count>
struct alignas(sizeof(T) <= 4 && sizeof(Count) <= 4 ? 8 : 16) counted {
  T value;
  Count groups;
};

// The count stands right behind the value.
template <class T, class Count>
struct used_bytes<counted<T, Count>> {
  enum : u32 { value = (sizeof(T) + sizeof(Count) - 1) / sizeof(Count) * sizeof(Count) + sizeof(Count) };
};

// States in groups: where one begins, the state begins anew.
template <class Operator, class Count>
struct in_groups {
  using value_type = counted<typename Operator::value_type, Count>;
  static constexpr bool is_commutative = false;
  static constexpr bool is_exactly_undone = false;
  DEVICE static value_type identity() { return {Operator::identity(), 0}; }
  DEVICE static value_type combine(value_type a, value_type b) {
    return {b.groups != 0 ? b.value : Operator::combine(a.value, b.value), static_cast<Count>(a.groups + b.groups)};
  }
  DEVICE static value_type without(value_type total, value_type) { return total; }
};

// Stores an element of each of several arrays, the first one of number `number`, at an index of its own.
template <u32 number>
DEVICE void store_elements(const lookback_launch&, u64, elements<>) {}
template <u32 number, class First, class... Rest>
DEVICE void store_elements(const lookback_launch& launch, u64 index, elements<First, Rest...> items) {
  memory::store(static_cast<First*>(launch.outputs[number]) + index, items.first);
  store_elements<number + 1>(launch, index, items.rest);
}

template <class Own, bool is_reversed, bool is_counted, bool is_reproducible>
struct by_rank : defined<Own, one_segment, is_reversed, is_counted, is_reproducible> {
  using placed = defined<Own, one_segment, is_reversed, is_counted, is_reproducible>;
  using typename placed::input_type;
  using typename placed::inputs;
  using typename placed::outputs;
  static constexpr bool is_stored_from_stage = true;

  // Nobody gives a state that stands before all.
  DEVICE static typename placed::state_type initial(const lookback_launch&) { return placed::operator_type::identity(); }

  template <class Tile>
  DEVICE static void store_tile(const Tile& tile, const lookback_launch& launch) {
    const u32 tile_elements = static_cast<u32>(tile.tile_elements);
    store_from(tile, launch, global_arrays<placed>(launch, tile.first, tile_elements, tile.readable(launch)));
  }

  // The same by a warp whose part of the tile is still in its stage.
  template <class Tile, class Stage>
  DEVICE static bool store_through(const Tile& tile, const lookback_launch& launch, const Stage& stage) {
    store_from(tile, launch, stage);
    return true;
  }

 private:
  DEVICE static void store_count(const lookback_launch& launch, u64 kept) {
    if (launch.kept == nullptr) return;
    if (launch.kept_bytes == sizeof(u32)) {
      memory::store(static_cast<u32*>(launch.kept), static_cast<u32>(kept));
    } else {
      memory::store(static_cast<u64*>(launch.kept), kept);
    }
  }

  // What is stored is loaded once more: no output is an input.
  template <class Tile, class Source>
  DEVICE static void store_from(const Tile& tile, const lookback_launch& launch, const Source& source) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const bool is_simple = placed::template is_simple<width>(source);
      LOOKBACK_UNROLL
      for (u32 row = 0; row < tile.config.vt / width; ++row) {
        const int offset = static_cast<int>(tile.template row_offset<width>(row));
        if (is_simple) {
          store_run<width>(tile, launch, source, offset, row * width);
        } else {
          LOOKBACK_UNROLL
          for (u32 j = 0; j < width; ++j) {
            const int at = offset + static_cast<int>(j);
            if (source.has(at)) store_run<1>(tile, launch, source, at, row * width + j);
          }
        }
      }
    });
    if (launch.n == 0 && tile.first <= 0 && thread_index() == 0) store_count(launch, 0);
  }

  // Of `count` elements from `offset` on, whose states are the tile's from `item` on.
  template <u32 count, class Tile, class Source>
  DEVICE static void store_run(const Tile& tile, const lookback_launch& launch, const Source& source, int offset, u32 item) {
    typename vectors_of<count, inputs>::type loaded;
    loaded.load(source, offset);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < count; ++j) {
      const u64 index = static_cast<u64>(source.first + (offset + static_cast<int>(j)));
      const u64 place = static_cast<u64>(place_of<is_reversed>(launch.n, static_cast<i64>(index), 1));
      const auto state = tile.items.get(item + j);
      const bool is_kept = Own::keeps(place, loaded.get(j));
      const u64 kept_before = Own::count(state) - (Own::has_groups || is_kept ? 1 : 0);
      if (is_kept) {
        store_elements<0>(launch, kept_before, Own::store(place, state, loaded.get(j)));
      } else if constexpr (Own::others == others_are_apart) {
        store_elements<count_of<outputs>::value>(launch, index - kept_before, Own::store(place, state, loaded.get(j)));
      } else if constexpr (Own::others == others_are_behind) {
        store_elements<0>(launch, launch.n - 1 - (index - kept_before), Own::store(place, state, loaded.get(j)));
      }
      if (index + 1 == launch.n) store_count(launch, Own::count(state));
    }
  }
};

}  // namespace lookback
