// Compaction: of the elements of a defined scan those that are kept are stored side by side. Each has the rank that the scan
// counts; what is loaded, combined and published is as in `defined.cuh`.
//
// `Own` has, beside what it has there:
//
//   bool keeps(u64 i, inputs)                  whether the element of place i is kept
//   has_groups                                 whether elements are in groups, whose states begin anew, and one of each is kept
//   keeps_last                                 whether that is the last one
//   has_lengths                                whether what is stored of it is told how many elements there are since the one that
//                                              was kept before, itself included. `load` then says whether it is kept, and no index:
//                                              that is known where a whole run is combined (`last_and_count_of`)
//   outputs store(u64 i, value_type, inputs)   what is stored of it
//   may_store_any                              whether that may be asked of what is not stored, too
//   others                                     what becomes of the others
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

// The last element that is kept of a stretch, as one more than its index (0 where none is), and how many are. Stretches may be combined
// in any order, because the last one of all has the highest index.
template <class Count>
struct last_and_count {
  using value_type = counted<Count, Count>;
  static constexpr bool is_commutative = true;
  static constexpr bool is_exactly_undone = false;
  DEVICE static value_type identity() { return {0, 0}; }
  DEVICE static value_type combine(value_type a, value_type b) {
    return {a.value > b.value ? a.value : b.value, static_cast<Count>(a.groups + b.groups)};
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
  struct slots {
    template <int step>
    DEVICE void put_if(u32, elements<>) {}
    template <int step>
    DEVICE void put_if(u32, elements<>, const staged_outputs&, u32) {}
    DEVICE void pass_if(u32) {}
  };
  DEVICE slots from_slot(u32) const { return {}; }
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

  // Where a lane puts what it stores of each, one after the other.
  struct slots {
    memory::shared_slots<First> first;
    typename rest_type::slots rest;
    template <int step>
    DEVICE void put_if(u32 put, const elements<First, Rest...>& items) {
      first.template put_if<step>(put, items.first);
      rest.template put_if<step>(put, items.rest);
    }
    // Goes on to the next one.
    DEVICE void pass_if(u32 pass) {
      first.pass_if(pass);
      rest.pass_if(pass);
    }
    // The same as `put_if`, passing by what is not among the first `count` slots.
    template <int step>
    DEVICE void put_if(u32 put, const elements<First, Rest...>& items, const staged_outputs& all, u32 count) {
      first.template put_if<step>(put, items.first, all.staged, count);
      rest.template put_if<step>(put, items.rest, all.rest, count);
    }
  };
  DEVICE slots from_slot(u32 slot) const {
    return {memory::shared_slots<First>(staged + static_cast<int>(slot)), rest.from_slot(slot)};
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
  static constexpr bool drops_others = Own::others == others_are_dropped;

  // Nobody gives a state that stands before all.
  DEVICE static state_type initial(const lookback_launch&) { return placed::operator_type::identity(); }

  template <class Tile>
  DEVICE static void load_tile(Tile& tile, const lookback_launch& launch) {
    const u32 tile_elements = static_cast<u32>(tile.tile_elements);
    load_items(tile, global_arrays<placed>(launch, tile.first, tile_elements, tile.readable(launch), tile_elements));
  }

  template <class Tile, class Source>
  DEVICE static void load_items(Tile& tile, const Source& source) {
    placed::load_items(tile, source, [&](u32 item, u64 place, const inputs& loaded, bool is_there) {
      // An item that is not there yet is noted once more when it is: narrow ones are joined bit by bit, with zeros until then.
      tile.items.note(item, is_there ? loaded : inputs{}, is_there && Own::keeps(place, loaded));
    });
    if constexpr (Tile::items_type::most != 0) load_few(tile, source);
  }

  // Where each lane has one row, and no lane keeps more than a few of it.
  template <class Tile, class Source>
  DEVICE static void load_few(Tile& tile, const Source& source) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      if (tile.config.vt != width) return;
      constexpr u32 most = Tile::items_type::most;
      u32 kept = tile.items.kept.template of_row<width>(0);
      tile.items.few.are_few = ballot(count_bits(kept) > most) == 0;
      if (!tile.items.few.are_few) return;
      const int offset = static_cast<int>(tile.template row_offset<width>(0));
      LOOKBACK_UNROLL
      for (u32 number = 0; number < most; ++number, kept &= kept - 1) {
        if (kept == 0) continue;
        typename vectors_of<1, inputs>::type loaded;
        loaded.load(source, offset + static_cast<int>(lowest_set_bit(kept)));
        tile.items.few.loaded[number] = loaded.get(0);
      }
    });
  }

  template <class Tile>
  DEVICE static void store_few(const Tile& tile, const lookback_launch& launch) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const i64 first_index = tile.first + static_cast<i64>(tile.template row_offset<width>(0));
      const u64 rank = tile.items.template kept_before<width>(0, false);
      u32 kept = tile.items.kept.template of_row<width>(0);
      u32 previous = 0;
      LOOKBACK_UNROLL
      for (u32 number = 0; number < Tile::items_type::most; ++number, kept &= kept - 1) {
        if (kept == 0) continue;
        const u32 j = lowest_set_bit(kept);
        const u64 place = static_cast<u64>(place_of<is_reversed>(launch.n, first_index + static_cast<int>(j), 1));
        const state_type state = tile.items.state_of_kept(0, first_index, number, j, previous);
        store_elements<0>(launch, rank + number, Own::store(place, state, tile.items.few.loaded[number]));
        previous = j;
      }
    });
  }

  // Each element by itself. None is kept where there is none.
  template <class Tile>
  DEVICE static void store_tile(const Tile& tile, const lookback_launch& launch) {
    each_item(tile, [&](u32 item, i64 index, state_type state, u64 kept_before) {
      if (tile.items.kept.get(item)) {
        store_elements<0>(launch, kept_before, stored_of(tile, launch, item, index, state));
      } else if constexpr (Own::others != others_are_dropped) {
        if (index < 0 || static_cast<u64>(index) >= launch.n) return;
        const u64 others = others_before(kept_before, index);
        constexpr bool are_behind = Own::others == others_are_behind;
        store_elements<(are_behind ? 0 : count_of<outputs>::value)>(launch, are_behind ? launch.n - 1 - others : others,
                                                                    stored_of(tile, launch, item, index, state));
      }
    });
    store_count(tile, launch);
  }

  // By way of the stage of the warp's tile, which all that scan have loaded and nobody reads any more: lanes store side by side. Few
  // elements, which were loaded again before that, each lane stores by itself.
  template <class Tile, class Stage>
  DEVICE static bool store_through(const Tile& tile, const lookback_launch& launch, const Stage& stage) {
    if constexpr (Tile::items_type::most != 0) {
      if (tile.items.few.are_few) {
        store_few(tile, launch);
        store_count(tile, launch);
        return true;
      }
    }
    const u32 warps = tile.config.block_threads / LOOKBACK_WARP_LANES;
    const u32 bytes = stage.free_bytes() / warps / LOOKBACK_VECTOR_BYTES * LOOKBACK_VECTOR_BYTES;
    const room_of_warp room = {stage.free_room() + warp_index() * bytes, bytes};
    if constexpr (stores_by_positions) {
      store_by_positions(tile, launch, room);
    } else {
      constexpr direction to = Own::has_groups && !Own::keeps_last ? with_groups : upward;
      store_arrays<0, to>(tile, launch, room, tile.items.kept, [](u64 kept_before, i64) { return kept_before; });
    }
    if constexpr (Own::others != others_are_dropped) {
      constexpr bool are_behind = Own::others == others_are_behind;
      auto others = tile.items.kept;
      others.invert();
      if (!tile.lies_within(launch.n)) {
        each_item(tile, [&](u32 item, i64 index, state_type, u64) {
          if (index < 0 || static_cast<u64>(index) >= launch.n) others.clear(item);
        });
      }
      store_arrays<are_behind ? 0 : count_of<outputs>::value, are_behind ? downward : upward>(
          tile, launch, room, others, [](u64 kept_before, i64 index) { return others_before(kept_before, index); });
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

  // How many are not kept before an element, of those of the lower indices.
  DEVICE static u64 others_before(u64 kept_before, i64 index) { return static_cast<u64>(index) - kept_before; }

  template <class Tile>
  DEVICE static outputs stored_of(const Tile& tile, const lookback_launch& launch, u32 item, i64 index, state_type state) {
    return Own::store(static_cast<u64>(place_of<is_reversed>(launch.n, index, 1)), state, tile.items.loaded.get(item));
  }

  // Calls `body` with each row of the lane and the index of its first item; its elements as a constant.
  template <class Tile, class Body>
  DEVICE static void each_row(const Tile& tile, Body body) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      LOOKBACK_UNROLL
      for (u32 row = 0; row < tile.config.vt / width; ++row) {
        body(access, row, tile.first + static_cast<i64>(tile.template row_offset<width>(row)));
      }
    });
  }

  // And with each item, its index, its state and how many are kept before it, also where there is no element.
  template <class Tile, class Body>
  DEVICE static void each_item(const Tile& tile, Body body) {
    each_row(tile, [&](auto access, u32 row, i64 first_index) {
      constexpr u32 width = decltype(access)::value;
      tile.items.template each_of_row<width>(row, first_index, [&](u32 j, state_type state, u64 kept_before) {
        body(row * width + j, first_index + static_cast<int>(j), state, kept_before);
      });
    });
  }

  template <class Tile>
  DEVICE static void store_count(const Tile& tile, const lookback_launch& launch) {
    if (launch.kept == nullptr) return;
    // Of no elements the first thread of the first tile knows it, else the thread that has the last one.
    bool is_known = launch.n == 0 && tile.first <= 0 && thread_index() == 0;
    u64 kept = 0;
    if (launch.n > 0) {
      if (tile.lies_within(launch.n - 1)) return;
      each_row(tile, [&](auto access, u32 row, i64 first_index) {
        constexpr u32 width = decltype(access)::value;
        const i64 last = static_cast<i64>(launch.n) - 1;
        if (first_index > last || last - first_index >= static_cast<int>(width)) return;
        is_known = true;
        kept = tile.items.template count_through<width>(row);
      });
    }
    if (!is_known) return;
    const auto store = [&](u32 place, u64 number) {
      if (launch.kept_bytes == sizeof(u32)) {
        memory::store(static_cast<u32*>(launch.kept) + place, static_cast<u32>(number));
      } else {
        memory::store(static_cast<u64*>(launch.kept) + place, number);
      }
    };
    store(0, kept);
    if (launch.kept_numbers > 1) store(1, launch.n - kept);
  }

  // How many are stored before a row, of those that `before` tells of an index from how many are kept before it.
  template <u32 width, class Tile, class Before>
  DEVICE static u64 stored_before(const Tile& tile, const lookback_launch& launch, u32 row, Before before) {
    i64 index = tile.first + static_cast<i64>(tile.template row_offset<width>(row));
    const bool is_behind = index >= static_cast<i64>(launch.n);
    if (index < 0) index = 0;
    if (is_behind) index = static_cast<i64>(launch.n);
    return before(static_cast<u64>(tile.items.template kept_before<width>(row, is_behind)), index);
  }

  // Where the items of a warp belong that have a bit in `stored`: side by side.
  template <class Tile, class Bits, class Before>
  DEVICE static stretch stretch_of(const Tile& tile, const lookback_launch& launch, const Bits& stored, Before before) {
    stretch found;
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const u32 last_row = tile.config.vt / width - 1;
      const u64 of_last_row = count_bits(stored.template of_row<width>(last_row * width));
      const u64 first = shuffle_index(stored_before<width>(tile, launch, 0, before), 0);
      const u64 end = shuffle_index(stored_before<width>(tile, launch, last_row, before) + of_last_row, LOOKBACK_WARP_LANES - 1);
      found = {first, static_cast<u32>(end - first)};
    });
    return found;
  }

  // The same of what is kept of groups, whose ranks are those of the groups: of one whose last element is not kept it is not known
  // whether that has been already.
  template <class Tile>
  DEVICE static stretch stretch_of_groups(const Tile& tile) {
    stretch found = {0, 0};
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      LOOKBACK_UNROLL
      for (u32 row = 0; row < tile.config.vt / width; ++row) {
        const u32 kept = tile.items.kept.template of_row<width>(row * width);
        const u32 lanes = ballot(kept != 0);
        if (lanes == 0) continue;
        const auto begun_at = [&](u32 item) { return static_cast<u64>(tile.items.template begun_through<width>(row, item)); };
        const u64 begin = shuffle_index(kept == 0 ? 0 : begun_at(lowest_set_bit(kept)) - 1, lowest_set_bit(lanes));
        const u64 end = shuffle_index(kept == 0 ? 0 : begun_at(31 - leading_zeros(kept)), 31 - leading_zeros(lanes));
        if (found.count == 0) found.first = begin;
        found.count = static_cast<u32>(end - found.first);
      }
    });
    return found;
  }

  // How a lane goes on to the slot of the next item: behind each, to the next or to the one before, or with each group that begins.
  enum direction : int { upward = 1, downward = -1, with_groups = 0 };

  // Outputs from `number` on of those items; downwards from the array's end on.
  template <u32 number, direction to, class Tile, class Bits, class Before>
  DEVICE static void store_arrays(const Tile& tile, const lookback_launch& launch, room_of_warp room, const Bits& stored, Before before) {
    stretch ranks;
    if constexpr (to == with_groups) {
      ranks = stretch_of_groups(tile);
    } else {
      ranks = stretch_of(tile, launch, stored, before);
    }
    const u64 first = to == downward ? launch.n - ranks.first - ranks.count : ranks.first;
    const auto item_of = [&](u32 item, i64 index, state_type state) { return stored_of(tile, launch, item, index, state); };
    // Calls `put` with the slots of a row, from `from` on, each item's bit, and what is stored of it.
    const auto put_all = [&](const auto& staged, u32 from, auto what_of, auto put) {
      each_row(tile, [&](auto access, u32 row, i64 first_index) {
        constexpr u32 width = decltype(access)::value;
        u32 slot;
        if constexpr (to == with_groups) {
          slot = static_cast<u32>(tile.items.before[row] - 1 - ranks.first);
        } else {
          slot = static_cast<u32>(stored_before<width>(tile, launch, row, before) - ranks.first);
        }
        auto slots = staged.from_slot((to == downward ? ranks.count - 1 - slot : slot) - from);
        tile.items.template each_of_row<width>(row, first_index, [&](u32 j, state_type state, u64) {
          const u32 i = row * width + j;
          if constexpr (to == with_groups) slots.pass_if(tile.items.begins.bit(i));
          const u32 bit = stored.bit(i);
          if (bit != 0 || (lanes_wait_for_each_other && Own::may_store_any)) put(slots, bit, what_of(i, first_index + static_cast<int>(j), state));
        });
      });
    };
    store_each<number, to>(static_cast<outputs*>(nullptr), launch, room, {first, ranks.count}, put_all, item_of);
  }

  // Bytes that a stage has of an element of each array.
  template <class... Elements>
  DEVICE_CONSTEXPR static u32 staged_bytes(elements<Elements...>*) {
    return static_cast<u32>((sizeof(typename array_of<Elements>::type) + ... + 0));
  }

  // Whether some output is wider than all that is loaded of an element, so that the stage has room for few, and what is stored follows
  // from its place, its rank, and what is loaded.
  static constexpr bool stores_by_positions = drops_others && !Own::has_groups && !Own::has_lengths &&
                                              outputs::widest_bytes > staged_bytes(static_cast<inputs*>(nullptr));

  // A warp writes where in the tile its kept elements are, side by side, as many as there is room for; then each lane stores what
  // belongs at one rank after the other.
  template <class Tile>
  DEVICE static void store_by_positions(const Tile& tile, const lookback_launch& launch, room_of_warp room) {
    using position = u16;  // a tile has no more than 2^16 elements
    position* const positions = reinterpret_cast<position*>(room.first);
    const u32 capacity = room.bytes / sizeof(position);
    const stretch ranks = stretch_of(tile, launch, tile.items.kept, [](u64 kept_before, i64) { return kept_before; });
    const u32 tile_elements = static_cast<u32>(tile.tile_elements);
    const global_arrays<placed> source(launch, tile.first, tile_elements, tile.readable(launch), tile_elements);
    LOOKBACK_NOUNROLL
    for (u32 from = 0; from < ranks.count; from += capacity) {
      each_row(tile, [&](auto access, u32 row, i64) {
        constexpr u32 width = decltype(access)::value;
        const u32 slot = static_cast<u32>(tile.items.template kept_before<width>(row, false) - ranks.first);
        memory::shared_slots<position> slots(positions + static_cast<int>(slot - from));
        const u32 first = static_cast<u32>(tile.template row_offset<width>(row));
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) {
          slots.template put_if<1>(tile.items.kept.bit(row * width + j), static_cast<position>(first + j), positions, capacity);
        }
      });
      warp_barrier();  // all lanes have written theirs
      const u32 left = ranks.count - from;
      const u32 count = left < capacity ? left : capacity;
      for (u32 at = lane_index(); at < count; at += LOOKBACK_WARP_LANES) {
        const u32 offset = memory::shared_load(positions[at]);
        typename vectors_of<1, inputs>::type loaded;
        loaded.load(source, static_cast<int>(offset));
        const u64 rank = ranks.first + from + at;
        const u64 place = static_cast<u64>(place_of<is_reversed>(launch.n, tile.first + static_cast<i64>(offset), 1));
        store_elements<0>(launch, rank, Own::store(place, static_cast<state_type>(rank + 1), loaded.get(0)));
      }
      warp_barrier();  // all lanes have read what others have written
    }
  }

  template <u32 number, int step, class... Anything>
  DEVICE static void store_each(elements<>*, const Anything&...) {}
  template <u32 number, int step, class First, class... Rest, class PutAll, class Item>
  DEVICE static void store_each(elements<First, Rest...>*, const lookback_launch& launch, room_of_warp room, stretch filled,
                                PutAll put_all, Item item_of) {
    if (filled.count == 0) return;
    // All at once where they have room, and else one by one, by as many as there is room for.
    using all = staged_outputs<number, First, Rest...>;
    if (all::slots_in(room.bytes) >= filled.count) {
      const all staged(launch, filled.first, room.first, all::slots_in(room.bytes));
      put_all(staged, 0, item_of, [&](auto& slots, u32 bit, const auto& items) { slots.template put_if<step>(bit, items); });
      warp_barrier();  // all lanes have written theirs
      staged.store(0, filled.count);
      warp_barrier();  // all lanes have read what others have written
      return;
    }
    const auto first_of = [&](u32 item, i64 index, state_type state) { return elements<First>{item_of(item, index, state).first, {}}; };
    const auto rest_of = [&](u32 item, i64 index, state_type state) { return item_of(item, index, state).rest; };
    using one = staged_outputs<number, First>;
    const u32 capacity = one::slots_in(room.bytes);
    const one staged(launch, filled.first, room.first, capacity);
    LOOKBACK_NOUNROLL
    for (u32 from = 0; from < filled.count; from += capacity) {
      put_all(staged, from, first_of,
              [&](auto& slots, u32 bit, const auto& items) { slots.template put_if<step>(bit, items, staged, capacity); });
      warp_barrier();  // all lanes have written theirs
      const u32 left = filled.count - from;
      staged.store(from, left < capacity ? left : capacity);
      warp_barrier();  // all lanes have read what others have written
    }
    store_each<number + 1, step>(static_cast<elements<Rest...>*>(nullptr), launch, room, filled, put_all, rest_of);
  }
};

}  // namespace lookback
