// Radix sort from the lowest digit of the keys to the highest, each digit in a single pass with decoupled look-back (Adinets &
// Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022). How often each digit has each of its 256 values
// is counted ahead (`count_bins.cuh`, `reduce_columns.cuh`). Then a launch a digit moves every element: a tile publishes how many items
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

// Items that a thread loads at once: as many as hide the latency, and divide VT. An item counts the padding behind its arrays.
template <class Item, class Config>
DEVICE_CONSTEXPR u32 loads_at_once() {
  if (!Config::is_fixed) return 1;
  u32 count = 8;
  while (count > 1 && (count * sizeof(Item) > 64 || Config::maximum_vt % count != 0)) --count;
  return count;
}

// What the threads of a block tell each other of the digits.
template <class Count>
struct digit_table {
  u32 counts[LOOKBACK_DIGITS];   // items of the tile
  u32 begins[LOOKBACK_DIGITS];   // where those of a digit begin, once the tile is in order
  Count moves[LOOKBACK_DIGITS];  // how far items move from their place in the tile in order
};

// The items of a tile: a warp has neighbours, of which each lane has every 32nd. Keys are loaded twice, to be counted and to be put in
// order, so that no thread keeps any: more threads fit, and the second time the L2 cache has them.
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
  u8* stage;         // the items in order, array behind array

  DEVICE digit_tile(Config config_, const lookback_launch& launch_, u64 index, u8* shared)
      : config(config_), launch(launch_), warp_counts(reinterpret_cast<u32*>(shared)) {
    first = index * elements_of_tile();
    const u64 left = launch.n > first ? launch.n - first : 0;
    size = static_cast<u32>(left < elements_of_tile() ? left : elements_of_tile());
    first_item = warp_index() * config.vt * LOOKBACK_WARP_LANES + lane_index();
    stage = shared + config.block_threads / LOOKBACK_WARP_LANES * LOOKBACK_DIGITS * sizeof(u32);
  }

  DEVICE u32 elements_of_tile() const { return config.block_threads * config.vt; }

  // Calls `body` with whether all items of the tile are there, as a constant.
  template <class Body>
  DEVICE void with_fullness(Body body) const {
    if (size == elements_of_tile()) return body(constant<true>());
    body(constant<false>());
  }

  // Calls `body` with each item of the thread and its digit. What is no element stands behind all others, and has the largest digit.
  template <class Item, class Body>
  DEVICE void each_item(Body body) const {
    constexpr u32 at_once = loads_at_once<Item, Config>();
    with_fullness([&](auto is_full) {
      LOOKBACK_NOUNROLL
      for (u64 i = 0; i < config.vt; i += at_once) {
        Item items[at_once];
        LOOKBACK_UNROLL
        for (u64 j = 0; j < at_once; ++j) {
          const u64 item = first_item + (i + j) * LOOKBACK_WARP_LANES;
          items[j] = Item();
          if (is_full.value || item < size) load_elements<0>(launch, first + item, items[j]);
        }
        LOOKBACK_UNROLL
        for (u64 j = 0; j < at_once; ++j) {
          const bool exists = is_full.value || first_item + (i + j) * LOOKBACK_WARP_LANES < size;
          body(items[j], exists ? Problem::digit(items[j].first, launch.key_bits) : LOOKBACK_DIGITS - 1);
        }
      }
    });
  }

  DEVICE void count() {
    u32* const counts = warp_counts + warp_index() * LOOKBACK_DIGITS;
    each_item<elements<key_word>>([&](const elements<key_word>&, u32 digit) { memory::shared_add(counts[digit], 1u); });
  }

  // Calls `body` with what each warp has counted of a digit.
  template <class Body>
  DEVICE void each_count(u32 digit, Body body) {
    for (u32 warp = 0; warp < config.block_threads / LOOKBACK_WARP_LANES; ++warp) {
      body(warp_counts[warp * LOOKBACK_DIGITS + digit]);
    }
  }

  DEVICE void put_in_order() {
    u32* const next = warp_counts + warp_index() * LOOKBACK_DIGITS;
    each_item<inputs>([&](const inputs& items, u32 digit) {
      const u32 lanes = lanes_with_byte(digit);
      const u32 lanes_before = count_bits(lanes & ((1u << lane_index()) - 1));
      const u32 begin = memory::shared_load(next[digit]);
      warp_barrier();  // all lanes have read
      if (lanes_before == 0) memory::shared_store(next[digit], begin + count_bits(lanes));
      warp_barrier();  // the first lane of each digit has counted
      put(stage, begin + lanes_before, items);
    });
  }

  DEVICE void put(u8*, u32, const elements<>&) const {}
  template <class First, class... Rest>
  DEVICE void put(u8* array, u32 slot, const elements<First, Rest...>& items) const {
    memory::shared_store(reinterpret_cast<First*>(array)[slot], items.first);
    put(array + elements_of_tile() * sizeof(First), slot, items.rest);
  }

  // Neighbours in order are stored by neighbouring threads.
  DEVICE void store(const digit_table<Count>& table) const {
    with_fullness([&](auto is_full) {
      LOOKBACK_UNROLL
      for (u32 i = 0; i < config.vt; ++i) {
        const u32 slot = i * config.block_threads + thread_index();
        if (!is_full.value && slot >= size) continue;
        const key_word key = memory::shared_load(reinterpret_cast<const key_word*>(stage)[slot]);
        const Count place = slot + memory::shared_load(table.moves[Problem::digit(key, launch.key_bits)]);
        memory::store(static_cast<key_word*>(launch.outputs[0]) + place, key);
        using values = decltype(inputs::rest);
        store_values<1>(stage + elements_of_tile() * sizeof(key_word), slot, place, static_cast<values*>(nullptr));
      }
    });
  }

  template <u32 number>
  DEVICE void store_values(const u8*, u32, Count, elements<>*) const {}
  template <u32 number, class First, class... Rest>
  DEVICE void store_values(const u8* array, u32 slot, Count place, elements<First, Rest...>*) const {
    const First value = memory::shared_load(reinterpret_cast<const First*>(array)[slot]);
    memory::store(static_cast<First*>(launch.outputs[number]) + place, value);
    store_values<number + 1>(array + elements_of_tile() * sizeof(First), slot, place, static_cast<elements<Rest...>*>(nullptr));
  }
};

// Reads: inputs, outputs, spine (how many elements have each digit), control, descriptors (one for each digit of each tile), n,
// capacity, key_bits (of one digit); as dynamic shared memory the counts of the warps and the items of a tile. A block a tile.
template <class Problem, class Config>
DEVICE void sort_by_digit(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    using Count = typename Problem::state_type;
    using table_type = digit_table<Count>;
    SHARED(table_type, table);
    SHARED(tile_start, shared_start);
    u8* const shared = dynamic_shared(0);
    for (u32 i = 0; i < LOOKBACK_DIGITS / LOOKBACK_WARP_LANES; ++i) {
      memory::shared_store(reinterpret_cast<u32*>(shared)[i * config.block_threads + thread_index()], 0u);
    }
    const tile_start start = start_tile(config, launch, shared_start);  // nothing is counted yet
    digit_tile<Problem, Config> mine(config, launch, start.tile, shared);
    mine.count();
    block_barrier();  // all warps have counted

    with_descriptors<Problem>(config, launch, [&](auto descriptors) {
      each_digit(config, [&](u32 digit) {
        u32 count = 0;
        mine.each_count(digit, [&](const u32& of_warp) { count += memory::shared_load(of_warp); });
        memory::shared_store(table.counts[digit], count);
        if (start.tile == 0) return;
        descriptors.publish(start.tile * LOOKBACK_DIGITS + digit, start.epoch, LOOKBACK_STATUS_AGGREGATE, count);
      });
      block_barrier();  // the counts of the tile are written
      if (warp_index() == 0) {
        add_up_digits(table.begins, [&](u32 digit) { return memory::shared_load(table.counts[digit]); });
        const Count* const totals = static_cast<const Count*>(launch.spine);
        if (start.tile == 0) add_up_digits(table.moves, [&](u32 digit) { return memory::load_spine(totals + digit); });
      }
      block_barrier();  // where digits begin is written
      each_digit(config, [&](u32 digit) {
        u32 next = memory::shared_load(table.begins[digit]);
        mine.each_count(digit, [&](u32& of_warp) {
          const u32 count = memory::shared_load(of_warp);
          memory::shared_store(of_warp, next);
          next += count;
        });
      });
      block_barrier();  // where items of each warp go is written
      mine.put_in_order();
      each_digit(config, [&](u32 digit) {
        // Before the first tile stand the elements of the digits below.
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

}  // namespace scan
}  // namespace lookback
