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

// Elements of a warp that are stored side by side: so many from an index of the output on. Or towards its begin, from there.
struct stretch {
  u64 first;
  u32 count;
};

// By all lanes of a warp: elements that follow each other in shared memory, where they lie as they do in lines of 16 bytes, to
// the array; whole lines by one access each.
template <class T>
DEVICE void store_stretch(T* to, const T* from, u32 size) {
  constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(T);
  const u32 lane = lane_index();
  const u32 misaligned = static_cast<u32>(reinterpret_cast<u64>(to) % LOOKBACK_VECTOR_BYTES / sizeof(T));
  const u32 up_to_line = (line - misaligned) % line;
  const u32 head = up_to_line < size ? up_to_line : size;
  const u32 tail = head + (size - head) / line * line;
  if (lane < head) memory::store(to + lane, memory::shared_load(from[lane]));
  for (u32 at = head + lane * line; at < tail; at += LOOKBACK_WARP_LANES * line) {
    T items[line];
    memory::shared_load_vector<line>(from + at, items);
    memory::store_vector_unsplit<line>(to + at, items);
  }
  if (tail + lane < size) memory::store(to + tail + lane, memory::shared_load(from[tail + lane]));
}

template <class Own, bool is_reversed, bool is_counted, bool is_reproducible>
struct by_rank : defined<Own, one_segment, is_reversed, is_counted, is_reproducible> {
  using placed = defined<Own, one_segment, is_reversed, is_counted, is_reproducible>;
  using stages_type = array_stages<by_rank>;
  using typename placed::input_type;
  using typename placed::inputs;
  using typename placed::outputs;
  static constexpr bool is_stored_by_rank = true;

  // Nobody gives a state that stands before all.
  DEVICE static typename placed::state_type initial(const lookback_launch&) { return placed::operator_type::identity(); }

  template <class Tile>
  DEVICE static void load_tile(Tile& tile, const lookback_launch& launch) {
    const u32 tile_elements = static_cast<u32>(tile.tile_elements);
    load_items(tile, global_arrays<placed>(launch, tile.first, tile_elements, tile.readable(launch)));
  }

  template <class Tile, class Source>
  DEVICE static void load_items(Tile& tile, const Source& source) {
    placed::load_items(tile, source, [&](u32 item, u64 place, const inputs& loaded) {
      tile.items.note(item, loaded, Own::keeps(place, loaded));
    });
  }

  // Each element by itself.
  template <class Tile>
  DEVICE static void store_tile(const Tile& tile, const lookback_launch& launch) {
    each_item(tile, [&](u32 item, i64 index) {
      if (index < 0 || static_cast<u64>(index) >= launch.n) return;
      if (tile.items.is_kept(item)) {
        store_elements<0>(launch, rank_of_kept(tile, item), stored_of(tile, launch, item, index));
      } else if constexpr (Own::others == others_are_apart) {
        store_elements<count_of<outputs>::value>(launch, rank_of_other(tile, item, index), stored_of(tile, launch, item, index));
      } else if constexpr (Own::others == others_are_behind) {
        store_elements<0>(launch, launch.n - 1 - rank_of_other(tile, item, index), stored_of(tile, launch, item, index));
      }
    });
    store_count(tile, launch);
  }

  // By way of the stage of the warp's tile, which all that scan have loaded and nobody reads any more: lanes store side by side.
  template <class Tile, class Stage>
  DEVICE static bool store_through(const Tile& tile, const lookback_launch& launch, const Stage& stage) {
    const u32 warps = tile.config.block_threads / LOOKBACK_WARP_LANES;
    const u32 lines = Stage::bytes(stage.tile_elements) / warps / LOOKBACK_VECTOR_BYTES;
    const room_of_warp room = {stage.stage + warp_index() * lines * LOOKBACK_VECTOR_BYTES, lines};
    const auto is_kept = [&](u32 item, i64) { return tile.items.is_kept(item); };
    const auto rank = [&](u32 item, i64) { return rank_of_kept(tile, item); };
    const stretch kept = stretch_of(tile, launch, is_kept, rank);
    store_arrays<0, false>(tile, launch, room, kept, is_kept, rank);
    if constexpr (Own::others != others_are_dropped) {
      constexpr bool are_behind = Own::others == others_are_behind;
      const auto is_other = [&](u32 item, i64 index) {
        return index >= 0 && static_cast<u64>(index) < launch.n && !tile.items.is_kept(item);
      };
      const auto rank_behind = [&](u32 item, i64 index) { return rank_of_other(tile, item, index); };
      const stretch others = stretch_of(tile, launch, is_other, rank_behind);
      store_arrays<are_behind ? 0 : count_of<outputs>::value, are_behind>(tile, launch, room, others, is_other, rank_behind);
    }
    store_count(tile, launch);
    return true;
  }

 private:
  // Lines of 16 bytes in shared memory that a warp may write.
  struct room_of_warp {
    u8* first;
    u32 lines;
  };

  // How many were kept before a kept item.
  template <class Tile>
  DEVICE static u64 rank_of_kept(const Tile& tile, u32 item) { return Own::count(tile.items.get(item)) - 1; }
  // How many were not before one that is not. A group that has begun has one element that is kept, and that is a later one.
  template <class Tile>
  DEVICE static u64 rank_of_other(const Tile& tile, u32 item, i64 index) {
    return static_cast<u64>(index) - (Own::count(tile.items.get(item)) - (Own::has_groups ? 1 : 0));
  }

  template <class Tile>
  DEVICE static outputs stored_of(const Tile& tile, const lookback_launch& launch, u32 item, i64 index) {
    const u64 place = static_cast<u64>(place_of<is_reversed>(launch.n, index, 1));
    return Own::store(place, tile.items.get(item), tile.items.loaded[item]);
  }

  // Calls `body` with each item of the lane and its index, also where there is no element.
  template <class Tile, class Body>
  DEVICE static void each_item(const Tile& tile, Body body) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      LOOKBACK_UNROLL
      for (u32 item = 0; item < tile.config.vt; ++item) {
        body(item, tile.first + static_cast<i64>(tile.template row_offset<width>(item / width) + item % width));
      }
    });
  }

  template <class Tile>
  DEVICE static void store_count(const Tile& tile, const lookback_launch& launch) {
    if (launch.kept == nullptr) return;
    const auto store = [&](u64 kept) {
      if (launch.kept_bytes == sizeof(u32)) {
        memory::store(static_cast<u32*>(launch.kept), static_cast<u32>(kept));
      } else {
        memory::store(static_cast<u64*>(launch.kept), kept);
      }
    };
    if (launch.n == 0) {
      if (tile.first <= 0 && thread_index() == 0) store(0);
      return;
    }
    if (tile.lies_within(launch.n - 1)) return;
    each_item(tile, [&](u32 item, i64 index) {
      if (static_cast<u64>(index) + 1 == launch.n) store(Own::count(tile.items.get(item)));
    });
  }

  // Where the items of a warp belong of which `is_stored` is true: by `rank_of`, which follow each other.
  template <class Tile, class IsStored, class Rank>
  DEVICE static stretch stretch_of(const Tile& tile, const lookback_launch& launch, IsStored is_stored, Rank rank_of) {
    if constexpr (!Own::has_groups) {
      // A rank says how many are stored up to an item, whether it is itself or not.
      u64 before = 0;
      u64 through = 0;
      each_item(tile, [&](u32 item, i64 index) {
        const i64 within = index < 0 ? -1 : static_cast<u64>(index) < launch.n ? index : static_cast<i64>(launch.n) - 1;
        through = rank_of(item, within) + 1;
        if (item == 0) before = through - (is_stored(item, index) ? 1 : 0);
      });
      before = shuffle_index(before, 0);
      return {before, static_cast<u32>(shuffle_index(through, LOOKBACK_WARP_LANES - 1) - before)};
    }
    // Counted from there, because no item has a lower rank than the warp's first one but by 1.
    u64 begin = 0;
    u32 ends[2] = {~0u, ~0u};
    each_item(tile, [&](u32 item, i64 index) {
      const u64 rank = rank_of(item, index);
      if (item == 0) begin = shuffle_index(rank, 0) - 1;
      if (!is_stored(item, index)) return;
      const u32 further = static_cast<u32>(rank - begin);
      ends[0] = further < ends[0] ? further : ends[0];
      ends[1] = ~further;
    });
    warp_reduce_each<operators::minimum<u32>>(ends, 2);
    const u32 first = shuffle_index(ends[0], 0);
    return {begin + first, first == ~0u ? 0 : ~shuffle_index(ends[1], 0) - first + 1};
  }

  // Outputs from `number` on of those items. `is_backward`: from the array's end on.
  template <u32 number, bool is_backward, class Tile, class IsStored, class Rank>
  DEVICE static void store_arrays(const Tile& tile, const lookback_launch& launch, room_of_warp room, stretch stored, IsStored is_stored,
                                  Rank rank_of) {
    const u64 first = is_backward ? launch.n - stored.first - stored.count : stored.first;
    const auto slot_of = [&](u32 item, i64 index) {
      const u32 slot = static_cast<u32>(rank_of(item, index) - stored.first);
      return is_backward ? stored.count - 1 - slot : slot;
    };
    const auto item_of = [&](u32 item, i64 index) { return stored_of(tile, launch, item, index); };
    store_each<number>(static_cast<outputs*>(nullptr), tile, launch, room, {first, stored.count}, is_stored, slot_of, item_of);
  }

  template <u32 number, class... Anything>
  DEVICE static void store_each(elements<>*, const Anything&...) {}
  template <u32 number, class First, class... Rest, class Tile, class IsStored, class Slot, class Item>
  DEVICE static void store_each(elements<First, Rest...>*, const Tile& tile, const lookback_launch& launch, room_of_warp room,
                                stretch stored, IsStored is_stored, Slot slot_of, Item item_of) {
    constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(First);
    // There they lie as in lines of the array, so that one line less has room.
    First* const to = static_cast<First*>(launch.outputs[number]) + stored.first;
    First* const staged = reinterpret_cast<First*>(room.first) + reinterpret_cast<u64>(to) % LOOKBACK_VECTOR_BYTES / sizeof(First);
    const u32 together = (room.lines - 1) * line;
    for (u32 from = 0; from < stored.count; from += together) {
      each_item(tile, [&](u32 item, i64 index) {
        const u32 slot = slot_of(item, index) - from;
        if (is_stored(item, index) && slot < together) memory::shared_store(staged[slot], item_of(item, index).first);
      });
      warp_barrier();  // all lanes have written theirs
      const u32 left = stored.count - from;
      store_stretch(to + from, staged, left < together ? left : together);
      warp_barrier();  // all lanes have read what others have written
    }
    const auto rest_of = [&](u32 item, i64 index) { return item_of(item, index).rest; };
    store_each<number + 1>(static_cast<elements<Rest...>*>(nullptr), tile, launch, room, stored, is_stored, slot_of, rest_of);
  }
};

}  // namespace lookback
