// Compaction: of the elements of a defined scan those that are kept are stored side by side. Each has the rank that the scan
// counts; what is loaded, combined and published is as in `defined.cuh`.
//
// `Own` has, beside what it has there:
//
//   bool keeps(u64 i, inputs)                  whether the element of place i is kept
//   u64 count(value_type)                      how many are, up to and with the one whose state it is; with `has_groups`, how
//                                              many groups began, of each of which one element is kept
//   has_lengths                                whether what is stored of it is told how many elements there are since the one that
//                                              was kept before, itself included: that is its state then
//   outputs store(u64 i, value_type, inputs)   what is stored of it
//   others                                     what becomes of the others; in groups, each element is in one then, whose last
//                                              one is kept
//
// Source: ranks by a scan, as in the split of Blelloch, "Prefix Sums and Their Applications" (1990), in the one pass of Merrill
// and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back" (2016).
#pragma once

#include "../warp/shuffle.cuh"
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

// What a warp stores side by side: so many ranks, or indices of the output, from one on.
struct stretch {
  u64 first;
  u32 count;
};

// By all lanes of a warp: elements that follow each other in shared memory, where they lie as they do in lines of 16 bytes, to
// the array; whole lines by one access each.
template <class T>
DEVICE void store_stretch(T* to, const T* from, u32 size) {
  constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(T);
  static_assert(line * sizeof(T) == LOOKBACK_VECTOR_BYTES, "lines are whole elements");
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

// What a warp stores side by side of each of several outputs, the first one of number `number`: in shared memory there is room for so
// many slots of each, a multiple of `granule`, and for one line more, because they lie there as they do in lines of the array.
template <u32 number, class... Types>
struct staged_outputs {
  static constexpr u32 slot_bytes = 0;
  static constexpr u32 line_bytes = 0;
  static constexpr u32 granule = 1;
  DEVICE staged_outputs(const lookback_launch&, u64, u8*, u32) {}
  DEVICE void put(u32, elements<>) const {}
  DEVICE void store(u32, u32) const {}
};
template <u32 number, class First, class... Rest>
struct staged_outputs<number, First, Rest...> {
  using rest_type = staged_outputs<number + 1, Rest...>;
  static constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(First);
  static constexpr u32 slot_bytes = sizeof(First) + rest_type::slot_bytes;
  static constexpr u32 line_bytes = LOOKBACK_VECTOR_BYTES + rest_type::line_bytes;
  static constexpr u32 granule = line > rest_type::granule ? line : rest_type::granule;
  First* to;
  First* staged;
  rest_type rest;

  DEVICE staged_outputs(const lookback_launch& launch, u64 first, u8* room, u32 slots)
      : to(static_cast<First*>(launch.outputs[number]) + first),
        staged(reinterpret_cast<First*>(room) + reinterpret_cast<u64>(to) % LOOKBACK_VECTOR_BYTES / sizeof(First)),
        rest(launch, first, room + LOOKBACK_VECTOR_BYTES + slots * sizeof(First), slots) {}

  // Slots that so many bytes have room for.
  DEVICE_CONSTEXPR static u32 slots_in(u32 bytes) {
    return bytes < line_bytes ? 0 : (bytes - line_bytes) / slot_bytes / granule * granule;
  }

  DEVICE void put(u32 slot, const elements<First, Rest...>& items) const {
    memory::shared_store(staged[slot], items.first);
    rest.put(slot, items.rest);
  }

  // Those of `count` slots, from an element on that begins a line as the first one does.
  DEVICE void store(u32 from, u32 count) const {
    store_stretch(to + from, staged, count);
    rest.store(from, count);
  }
};

template <class Own, bool is_reversed, bool is_counted, bool is_reproducible>
struct by_rank : defined<Own, one_segment, is_reversed, is_counted, is_reproducible> {
  using placed = defined<Own, one_segment, is_reversed, is_counted, is_reproducible>;
  using stages_type = array_stages<by_rank>;
  using typename placed::input_type;
  using typename placed::inputs;
  using typename placed::outputs;
  using typename placed::state_type;
  static constexpr bool is_stored_by_rank = true;

  // Nobody gives a state that stands before all.
  DEVICE static state_type initial(const lookback_launch&) { return placed::operator_type::identity(); }

  template <class Tile>
  DEVICE static void load_tile(Tile& tile, const lookback_launch& launch) {
    const u32 tile_elements = static_cast<u32>(tile.tile_elements);
    load_items(tile, global_arrays<placed>(launch, tile.first, tile_elements, tile.readable(launch), tile_elements));
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
    each_item(tile, [&](u32 item, i64 index, state_type state) {
      if (index < 0 || static_cast<u64>(index) >= launch.n) return;
      const u64 count = Own::count(state);
      if (tile.items.kept.get(item)) {
        store_elements<0>(launch, rank_of_kept(count, index), stored_of(tile, launch, item, index, state));
      } else if constexpr (Own::others == others_are_apart) {
        store_elements<count_of<outputs>::value>(launch, rank_of_other(count, index), stored_of(tile, launch, item, index, state));
      } else if constexpr (Own::others == others_are_behind) {
        store_elements<0>(launch, launch.n - 1 - rank_of_other(count, index), stored_of(tile, launch, item, index, state));
      }
    });
    store_count(tile, launch);
  }

  // By way of the stage of the warp's tile, which all that scan have loaded and nobody reads any more: lanes store side by side.
  template <class Tile, class Stage>
  DEVICE static bool store_through(const Tile& tile, const lookback_launch& launch, const Stage& stage) {
    const u32 warps = tile.config.block_threads / LOOKBACK_WARP_LANES;
    const u32 bytes = Stage::bytes(stage.tile_elements) / warps / LOOKBACK_VECTOR_BYTES * LOOKBACK_VECTOR_BYTES;
    const room_of_warp room = {stage.stage + warp_index() * bytes, bytes};
    store_arrays<0, false>(tile, launch, room, tile.items.kept, [](u64 count, i64 index) { return rank_of_kept(count, index); });
    if constexpr (Own::others != others_are_dropped) {
      constexpr bool are_behind = Own::others == others_are_behind;
      auto others = tile.items.kept;
      others.invert();
      if (!tile.lies_within(launch.n)) {
        each_item(tile, [&](u32 item, i64 index, state_type) {
          if (index < 0 || static_cast<u64>(index) >= launch.n) others.clear(item);
        });
      }
      store_arrays<are_behind ? 0 : count_of<outputs>::value, are_behind>(
          tile, launch, room, others, [](u64 count, i64 index) { return rank_of_other(count, index); });
    }
    store_count(tile, launch);
    return true;
  }

 private:
  // Shared memory that a warp may write, whole lines of 16 bytes.
  struct room_of_warp {
    u8* first;
    u32 bytes;
  };

  // How many are kept before an element that is, from how many are counted up to it.
  DEVICE static u64 rank_of_kept(u64 count, i64) { return count - 1; }
  // How many are not before one that is not. A group that has begun has one element that is kept, and that is a later one.
  DEVICE static u64 rank_of_other(u64 count, i64 index) {
    return static_cast<u64>(index) - (count - (Own::has_groups ? 1 : 0));
  }

  template <class Tile>
  DEVICE static outputs stored_of(const Tile& tile, const lookback_launch& launch, u32 item, i64 index, state_type state) {
    return Own::store(static_cast<u64>(place_of<is_reversed>(launch.n, index, 1)), state, tile.items.loaded.get(item));
  }

  // Calls `body` with each item of the lane, its index and its state, also where there is no element.
  template <class Tile, class Body>
  DEVICE static void each_item(const Tile& tile, Body body) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      LOOKBACK_UNROLL
      for (u32 row = 0; row < tile.config.vt / width; ++row) {
        const i64 first_index = tile.first + tile.template row_offset<width>(row);
        tile.items.template each_of_row<width>(row, first_index, [&](u32 j, state_type state) {
          body(row * width + j, first_index + static_cast<int>(j), state);
        });
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
    each_item(tile, [&](u32, i64 index, state_type state) {
      if (static_cast<u64>(index) + 1 == launch.n) store(Own::count(state));
    });
  }

  // Where the items of a warp belong that have a bit in `stored`: by their ranks, which follow each other.
  template <class Tile, class Bits, class Rank>
  DEVICE static stretch stretch_of(const Tile& tile, const lookback_launch& launch, const Bits& stored, Rank rank_of) {
    stretch found;
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const u32 last_row = tile.config.vt / width - 1;
      const auto rank_at = [&](u32 row, u32 j) {
        i64 index = tile.first + static_cast<i64>(tile.template row_offset<width>(row) + j);
        if (index < 0) index = -1;
        if (index >= static_cast<i64>(launch.n)) index = static_cast<i64>(launch.n) - 1;
        return rank_of(static_cast<u64>(tile.items.template count<width>(row, j)), index);
      };
      if constexpr (!Own::has_groups) {
        // A rank and 1 say how many are stored up to an item, whether it is itself or not.
        const u64 before = shuffle_index(rank_at(0, 0) + 1 - (stored.get(0) ? 1 : 0), 0);
        const u64 through = shuffle_index(rank_at(last_row, width - 1) + 1, LOOKBACK_WARP_LANES - 1);
        found = {before, static_cast<u32>(through - before)};
      } else {
        // 32 bits hold how far a rank is from here, which is below all.
        const u64 begin = shuffle_index(rank_at(0, 0), 0) - 1;
        // The lowest, and the highest with its bits turned: the minimum finds both.
        u32 ends[2] = {~0u, ~0u};
        LOOKBACK_UNROLL
        for (u32 row = 0; row <= last_row; ++row) {
          const u32 bits = stored.template of_row<width>(row * width);
          if (bits == 0) continue;
          const u32 first = static_cast<u32>(rank_at(row, lowest_set_bit(bits)) - begin);
          const u32 last = static_cast<u32>(rank_at(row, 31 - leading_zeros(bits)) - begin);
          ends[0] = first < ends[0] ? first : ends[0];
          ends[1] = ~last;
        }
        warp_reduce_each<operators::minimum<u32>>(ends, 2);
        const u32 first = shuffle_index(ends[0], 0);
        found = {begin + first, first == ~0u ? 0 : ~shuffle_index(ends[1], 0) - first + 1};
      }
    });
    return found;
  }

  // Outputs from `number` on of those items. `is_backward`: from the array's end on.
  template <u32 number, bool is_backward, class Tile, class Bits, class Rank>
  DEVICE static void store_arrays(const Tile& tile, const lookback_launch& launch, room_of_warp room, const Bits& stored, Rank rank_of) {
    const stretch ranks = stretch_of(tile, launch, stored, rank_of);
    const u64 first = is_backward ? launch.n - ranks.first - ranks.count : ranks.first;
    const auto slot_of = [&](i64 index, state_type state) {
      const u32 slot = static_cast<u32>(rank_of(Own::count(state), index) - ranks.first);
      return is_backward ? ranks.count - 1 - slot : slot;
    };
    const auto item_of = [&](u32 item, i64 index, state_type state) { return stored_of(tile, launch, item, index, state); };
    store_each<number>(static_cast<outputs*>(nullptr), tile, launch, room, {first, ranks.count}, stored, slot_of, item_of);
  }

  template <u32 number, class... Anything>
  DEVICE static void store_each(elements<>*, const Anything&...) {}
  template <u32 number, class First, class... Rest, class Tile, class Bits, class Slot, class Item>
  DEVICE static void store_each(elements<First, Rest...>*, const Tile& tile, const lookback_launch& launch, room_of_warp room,
                                stretch filled, const Bits& stored, Slot slot_of, Item item_of) {
    // All at once, unless there is room for few of them.
    constexpr u32 few = 2 * LOOKBACK_WARP_LANES;
    if (staged_outputs<number, First, Rest...>::slots_in(room.bytes) >= few) {
      return store_staged<staged_outputs<number, First, Rest...>>(tile, launch, room, filled, stored, slot_of, item_of);
    }
    const auto first_of = [&](u32 item, i64 index, state_type state) { return elements<First>{item_of(item, index, state).first, {}}; };
    const auto rest_of = [&](u32 item, i64 index, state_type state) { return item_of(item, index, state).rest; };
    store_staged<staged_outputs<number, First>>(tile, launch, room, filled, stored, slot_of, first_of);
    store_each<number + 1>(static_cast<elements<Rest...>*>(nullptr), tile, launch, room, filled, stored, slot_of, rest_of);
  }

  template <class Staged, class Tile, class Bits, class Slot, class Item>
  DEVICE static void store_staged(const Tile& tile, const lookback_launch& launch, room_of_warp room, stretch filled,
                                  const Bits& stored, Slot slot_of, Item item_of) {
    const u32 slots = Staged::slots_in(room.bytes);
    const Staged staged(launch, filled.first, room.first, slots);
    for (u32 from = 0; from < filled.count; from += slots) {
      each_item(tile, [&](u32 item, i64 index, state_type state) {
        const u32 slot = slot_of(index, state) - from;
        if (stored.get(item) && slot < slots) staged.put(slot, item_of(item, index, state));
      });
      warp_barrier();  // all lanes have written theirs
      const u32 left = filled.count - from;
      staged.store(from, left < slots ? left : slots);
      warp_barrier();  // all lanes have read what others have written
    }
  }
};

}  // namespace lookback
