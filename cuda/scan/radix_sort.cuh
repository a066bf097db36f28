// Radix sort from the lowest digit of the keys to the highest, each digit in a single pass with decoupled look-back (Adinets &
// Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022). How often each digit has each of its 256 values
// is counted ahead (`count_bins.cuh`). Then a launch a digit moves every element: a tile publishes how many items
// it has of each digit, puts them in order in shared memory, looks back for where those of each digit go, and stores them.
#pragma once

#include "../async_copy.cuh"
#include "../descriptor.cuh"
#include "../problem/sorted.cuh"
#include "digits.cuh"
#include "single_pass.cuh"

namespace lookback {
namespace scan {

// Calls `body` with each digit, a thread a digit at a time.
template <class Config, class Body>
DEVICE void each_digit(Config config, Body body) {
  for (u32 digit = thread_index(); digit < LOOKBACK_DIGITS; digit += config.block_threads) body(digit);
}

// Where items of one digit go that a tile has, by one thread: it goes back to a tile that knows its prefix, and looks at so many at
// once.
template <class Count, u32 at_once, class Descriptors>
DEVICE Count count_before(Descriptors descriptors, tile_start start, u32 digit) {
  Count count = 0;
  u64 end = start.tile;
  const waiting wait;
  while (end > 0) {
    const u32 asked = end < at_once ? static_cast<u32>(end) : at_once;
    descriptor_view<Count> views[at_once];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < at_once; ++i) {
      if (i < asked) views[i] = descriptors.read((end - 1 - i) * LOOKBACK_DIGITS + digit, start.epoch);
    }
    LOOKBACK_UNROLL
    for (u32 i = 0; i < at_once; ++i) {
      if (i == asked) break;
      if (views[i].status == LOOKBACK_STATUS_INVALID) {
        if (wait.gives_up(start.tile, end - 1)) return count;
        break;
      }
      count = combine<operators::sum<Count>>(views[i].value, count);
      if (views[i].status == LOOKBACK_STATUS_PREFIX) return count;
      --end;
    }
  }
  return count;
}

// Of about as many tiles as a GPU has at one time most begin together, and none knows its prefix at first: some are asked at once,
// because each look takes a trip to the L2 cache. Of more tiles most would be asked in vain.
template <class Count, class Descriptors>
DEVICE Count place_of_digit(Descriptors descriptors, tile_start start, u32 digit) {
  constexpr u64 few_tiles = 512;
  if (grid_blocks() > few_tiles) return count_before<Count, 1>(descriptors, start, digit);
  return count_before<Count, 4>(descriptors, start, digit);
}

// What the threads of a block tell each other of the digits.
template <class Count>
struct digit_table {
  u32 counts[LOOKBACK_DIGITS];   // items of the tile
  u32 begins[LOOKBACK_DIGITS];   // where those of a digit begin, once the tile is in order
  Count moves[LOOKBACK_DIGITS];  // how far items move from their place in the tile in order
};

// What all warps count of each digit is 0 again.
template <class Config>
DEVICE void clear_counts(Config config, u32* warp_counts) {
  for (u32 i = 0; i < LOOKBACK_DIGITS / LOOKBACK_WARP_LANES; ++i) {
    memory::shared_store(warp_counts[i * config.block_threads + thread_index()], 0u);
  }
}

// Small numbers side by side in words, so that a thread keeps them in few registers.
template <u32 bits, u32 count>
struct packed_numbers {
  static constexpr u32 in_word = 32 / bits;

  u32 words[(count + in_word - 1) / in_word] = {};

  // Once for each.
  DEVICE void set(u32 index, u32 number) { words[index / in_word] |= number << index % in_word * bits; }
  DEVICE u32 get(u32 index) const { return words[index / in_word] >> index % in_word * bits & ((1u << bits) - 1); }
};

// The items of a tile: a warp has neighbours, of which each lane has every 32nd. Keys are loaded at once, and kept until they are in
// order. What goes with them follows array after array on the same stage, each on its way while the one before is stored.
template <class Problem, class Config>
struct digit_tile {
  using inputs = typename Problem::inputs;
  using key_word = typename Problem::key_word;
  using Count = typename Problem::state_type;

  Config config;
  const lookback_launch& launch;
  u64 first;
  u32 size;          // items that there are
  u32 first_item;    // of the thread
  u32* warp_counts;  // of each warp how often it has each digit; then where its next item of that digit goes in order
  u8* stage;         // an array in order
  const lookback_key_bits* bits;  // of the digit
  key_word keys[Config::maximum_vt];
  packed_numbers<16, Config::maximum_vt> slots;  // where the thread's items go in order
  packed_numbers<8, Config::maximum_vt> digits;  // of the items in order that the thread stores

  DEVICE digit_tile(Config config_, const lookback_launch& launch_, u64 index, u8* shared)
      : config(config_), launch(launch_), warp_counts(reinterpret_cast<u32*>(shared)), bits(&launch_.key_bits) {
    first = index * elements_of_tile();
    const u64 left = launch.n > first ? launch.n - first : 0;
    size = static_cast<u32>(left < elements_of_tile() ? left : elements_of_tile());
    first_item = warp_index() * config.vt * LOOKBACK_WARP_LANES + lane_index();
    stage = shared + config.block_threads / LOOKBACK_WARP_LANES * LOOKBACK_DIGITS * sizeof(u32);
    load<0>(keys);
  }

  DEVICE u32 elements_of_tile() const { return config.block_threads * config.vt; }

  // Calls `body` with whether all items of the tile are there, as a constant.
  template <class Body>
  DEVICE void with_fullness(Body body) const {
    if (size == elements_of_tile()) return body(constant<true>());
    body(constant<false>());
  }

  template <u32 number, class T>
  DEVICE void load(T (&items)[Config::maximum_vt]) const {
    with_fullness([&](auto is_full) {
      LOOKBACK_UNROLL
      for (u32 i = 0; i < config.vt; ++i) {
        const u32 item = first_item + i * LOOKBACK_WARP_LANES;
        items[i] = T();
        if (is_full.value || item < size) items[i] = memory::load(static_cast<const T*>(launch.inputs[number]) + first + item);
      }
    });
  }

  // Calls `body` with the number of each item of the thread, and its digit. What is no element stands behind all others, and has the
  // largest digit.
  template <class Body>
  DEVICE void each_item(Body body) const {
    with_fullness([&](auto is_full) {
      LOOKBACK_UNROLL
      for (u32 i = 0; i < config.vt; ++i) {
        const bool exists = is_full.value || first_item + i * LOOKBACK_WARP_LANES < size;
        body(i, exists ? Problem::digit(keys[i], *bits) : LOOKBACK_DIGITS - 1);
      }
    });
  }

  DEVICE void count() {
    u32* const counts = warp_counts + warp_index() * LOOKBACK_DIGITS;
    each_item([&](u32, u32 digit) { memory::shared_add(counts[digit], 1u); });
  }

  // Calls `body` with what each warp has counted of a digit.
  template <class Body>
  DEVICE void each_count(u32 digit, Body body) {
    for (u32 warp = 0; warp < config.block_threads / LOOKBACK_WARP_LANES; ++warp) {
      body(warp_counts[warp * LOOKBACK_DIGITS + digit]);
    }
  }

  DEVICE void put_keys_in_order() {
    u32* const next = warp_counts + warp_index() * LOOKBACK_DIGITS;
    slots = {};
    each_item([&](u32 i, u32 digit) {
      const u32 lanes = lanes_with_byte(digit);
      const u32 lanes_before = count_bits(lanes & ((1u << lane_index()) - 1));
      const u32 begin = memory::shared_load(next[digit]);
      warp_barrier();  // all lanes have read
      if (lanes_before == 0) memory::shared_store(next[digit], begin + count_bits(lanes));
      warp_barrier();  // the first lane of each digit has counted
      memory::shared_store(reinterpret_cast<key_word*>(stage)[begin + lanes_before], keys[i]);
      slots.set(i, begin + lanes_before);
    });
  }

  // The thread's share of what is in order.
  template <class T>
  DEVICE void take(T (&items)[Config::maximum_vt]) const {
    LOOKBACK_UNROLL
    for (u32 i = 0; i < config.vt; ++i) {
      items[i] = memory::shared_load(reinterpret_cast<const T*>(stage)[first_item + i * LOOKBACK_WARP_LANES]);
    }
  }

  template <class T>
  DEVICE void put_in_order(const T (&items)[Config::maximum_vt]) const {
    LOOKBACK_UNROLL
    for (u32 i = 0; i < config.vt; ++i) memory::shared_store(reinterpret_cast<T*>(stage)[slots.get(i)], items[i]);
  }

  // Stores the array on the stage, and then those behind it.
  DEVICE void store(const digit_table<Count>& table) { store_arrays<0>(table, static_cast<inputs*>(nullptr)); }

  template <u32 number, class T>
  DEVICE void store_arrays(const digit_table<Count>& table, elements<T>*) { store_array<number, T>(table); }
  template <u32 number, class T, class Next, class... Rest>
  DEVICE void store_arrays(const digit_table<Count>& table, elements<T, Next, Rest...>*) {
    Next next[Config::maximum_vt];
    load<number + 1>(next);
    store_array<number, T>(table);
    block_barrier();  // all of the array is stored
    put_in_order(next);
    block_barrier();  // the next one is in order
    store_arrays<number + 1>(table, static_cast<elements<Next, Rest...>*>(nullptr));
  }

  // Neighbours in order are stored by neighbouring threads.
  template <u32 number, class T>
  DEVICE void store_array(const digit_table<Count>& table) {
    with_fullness([&](auto is_full) {
      LOOKBACK_UNROLL
      for (u32 i = 0; i < config.vt; ++i) {
        const u32 slot = i * config.block_threads + thread_index();
        if (!is_full.value && slot >= size) continue;
        const T item = memory::shared_load(reinterpret_cast<const T*>(stage)[slot]);
        if constexpr (number == 0) digits.set(i, Problem::digit(item, *bits));
        const Count place = slot + memory::shared_load(table.moves[digits.get(i)]);
        memory::store(static_cast<T*>(launch.outputs[number]) + place, item);
      }
    });
  }
};

// Puts the keys of a tile in the order of its digit; no warp has counted anything yet. Calls `tell` with each digit and how many items
// the tile has of it, as soon as that is known.
template <class Tile, class Table, class Tell>
DEVICE void put_in_order_of_digit(Tile& mine, Table& table, Tell tell) {
  mine.count();
  block_barrier();  // all warps have counted
  each_digit(mine.config, [&](u32 digit) {
    u32 count = 0;
    mine.each_count(digit, [&](const u32& of_warp) { count += memory::shared_load(of_warp); });
    memory::shared_store(table.counts[digit], count);
    tell(digit, count);
  });
  block_barrier();  // the counts of the tile are written
  if (warp_index() == 0) add_up_digits(table.begins, [&](u32 digit) { return memory::shared_load(table.counts[digit]); });
  block_barrier();  // where digits begin is written
  each_digit(mine.config, [&](u32 digit) {
    u32 next = memory::shared_load(table.begins[digit]);
    mine.each_count(digit, [&](u32& of_warp) {
      const u32 count = memory::shared_load(of_warp);
      memory::shared_store(of_warp, next);
      next += count;
    });
  });
  block_barrier();  // where items of each warp go is written
  mine.put_keys_in_order();
}

// Reads: inputs, outputs, spine (how many elements have each digit), control, descriptors (one for each digit of each tile), n,
// capacity, key_bits (of one digit); as dynamic shared memory the counts of the warps and an array of a tile. A block a tile.
template <class Problem, class Config>
DEVICE void sort_by_digit(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    using Count = typename Problem::state_type;
    using table_type = digit_table<Count>;
    SHARED(table_type, table);
    SHARED(tile_start, shared_start);
    u8* const shared = dynamic_shared(0);
    clear_counts(config, reinterpret_cast<u32*>(shared));
    const tile_start start = start_tile(config, launch, shared_start);  // nothing is counted yet
    digit_tile<Problem, Config> mine(config, launch, start.tile, shared);
    if (start.tile == 0 && warp_index() == 0) {
      // Before the first tile stand the elements of the digits below.
      const Count* const totals = static_cast<const Count*>(launch.spine);
      add_up_digits(table.moves, [&](u32 digit) { return memory::load_spine(totals + digit); });
    }
    with_descriptors<Problem>(config, launch, [&](auto descriptors) {
      put_in_order_of_digit(mine, table, [&](u32 digit, u32 count) {
        if (start.tile == 0) return;
        descriptors.publish(start.tile * LOOKBACK_DIGITS + digit, start.epoch, LOOKBACK_STATUS_AGGREGATE, count);
      });
      each_digit(config, [&](u32 digit) {
        const Count before = start.tile == 0 ? memory::shared_load(table.moves[digit]) : place_of_digit<Count>(descriptors, start, digit);
        const Count through = before + memory::shared_load(table.counts[digit]);
        descriptors.publish(start.tile * LOOKBACK_DIGITS + digit, start.epoch, LOOKBACK_STATUS_PREFIX, through);
        memory::shared_store(table.moves[digit], static_cast<Count>(before - memory::shared_load(table.begins[digit])));
      });
      block_barrier();  // the tile is in order, and where it goes is known; the descriptor accesses of the block are done
      if (thread_index() == 0) finish_tile(launch, descriptors, start.epoch);
    });
    mine.store(table);
  }
}

// All digits of keys that are no more than a tile, by one block and in shared memory. What goes with them is moved once, at the end.
//
// Reads: inputs, outputs, n, key_bits; dynamic shared memory as in `sort_by_digit`, which has room for two bytes an item at least.
template <class Problem, class Config>
DEVICE void sort_in_block(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    using table_type = digit_table<typename Problem::state_type>;
    SHARED(table_type, table);
    digit_tile<Problem, Config> mine(config, launch, 0, dynamic_shared(0));
    u16 sources[Config::maximum_vt];  // where the items stood
    LOOKBACK_UNROLL
    for (u32 i = 0; i < config.vt; ++i) sources[i] = static_cast<u16>(mine.first_item + i * LOOKBACK_WARP_LANES);
    for (u32 pass = 0; pass < passes_of(launch.key_bits); ++pass) {
      const lookback_key_bits of_pass = bits_of_pass(launch.key_bits, pass);
      mine.bits = &of_pass;
      clear_counts(config, mine.warp_counts);
      block_barrier();  // nothing is counted yet
      put_in_order_of_digit(mine, table, [](u32, u32) {});
      block_barrier();  // the keys are in order
      mine.take(mine.keys);
      block_barrier();  // all keys are taken
      mine.put_in_order(sources);
      block_barrier();  // the sources are in order
      // What the next pass writes there it writes behind other barriers.
      mine.take(sources);
    }
    LOOKBACK_UNROLL
    for (u32 i = 0; i < config.vt; ++i) {
      const u32 item = mine.first_item + i * LOOKBACK_WARP_LANES;
      if (item >= mine.size) continue;
      typename Problem::inputs items;
      items.first = mine.keys[i];
      load_elements<1>(launch, sources[i], items.rest);
      store_elements<0>(launch, item, items);
    }
  }
}

}  // namespace scan
}  // namespace lookback
