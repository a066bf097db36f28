// Radix sort from the lowest digit of the keys to the highest, each digit in a single pass with decoupled look-back (Adinets &
// Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022). How often each digit has each of its 256 values
// is counted ahead (`count_bins.cuh`, `reduce_columns.cuh`). Then a launch a digit moves every element: a tile ranks its items among
// those of the same digit, publishes how many it has of each, looks back for how many the tiles before have, each digit by itself, and
// stores its items by way of shared memory, where those of a digit lie side by side.
#pragma once

#include "../async_copy.cuh"
#include "../descriptor.cuh"
#include "../problem/sorted.cuh"
#include "../warp/shuffle.cuh"
#include "single_pass.cuh"

namespace lookback {
namespace scan {

// Calls `body` with each digit, a thread a digit at a time.
template <class Config, class Body>
DEVICE void each_digit(Config config, Body body) {
  for (u32 digit = thread_index(); digit < LOOKBACK_DIGITS; digit += config.block_threads) body(digit);
}

// Of the lanes of a warp those that have the same digit as the calling one, by a vote on each of its bits.
DEVICE u32 lanes_with_digit(u32 digit) {
  u32 lanes = full_warp;
  LOOKBACK_UNROLL
  for (u32 bit = 0; bit < LOOKBACK_DIGIT_BITS; ++bit) {
    const bool is_set = (digit >> bit & 1) != 0;
    const u32 with_bit = ballot(is_set);
    lanes &= is_set ? with_bit : ~with_bit;
  }
  return lanes;
}

// By all lanes of a warp: for each digit the sum of what `count_of` says of the digits below it.
template <class Count, class CountOf>
DEVICE void add_up_digits(Count (&below)[LOOKBACK_DIGITS], CountOf count_of) {
  constexpr u32 of_lane = LOOKBACK_DIGITS / LOOKBACK_WARP_LANES;
  const u32 first = lane_index() * of_lane;
  Count before[of_lane];
  Count total = 0;
  LOOKBACK_UNROLL
  for (u32 i = 0; i < of_lane; ++i) {
    before[i] = total;
    total += count_of(first + i);
  }
  const Count of_lanes_below = shuffle_scan<operators::sum<Count>>(total).exclusive;
  LOOKBACK_UNROLL
  for (u32 i = 0; i < of_lane; ++i) memory::shared_store(below[first + i], static_cast<Count>(of_lanes_below + before[i]));
}

// What stands before a tile of one digit, by one thread: it goes back tile by tile to one that knows its prefix.
template <class Count, class Descriptors>
DEVICE Count count_before(Descriptors descriptors, tile_start start, u32 digit) {
  Count count = 0;
  u64 end = start.tile;
  const waiting wait;
  while (end > 0) {
    const descriptor_view<Count> view = descriptors.read((end - 1) * LOOKBACK_DIGITS + digit, start.epoch);
    if (view.status == LOOKBACK_STATUS_INVALID) {
      if (wait.gives_up(start.tile, end - 1)) break;
      continue;
    }
    count = combine<operators::sum<Count>>(view.value, count);
    if (view.status == LOOKBACK_STATUS_PREFIX) break;
    --end;
  }
  return count;
}

// What the threads of a block tell each other of the digits.
template <class Count>
struct digit_table {
  u32 counts[LOOKBACK_DIGITS];    // items of the tile
  u32 begins[LOOKBACK_DIGITS];    // where those of a digit begin, once the tile is in order
  Count before[LOOKBACK_DIGITS];  // items of the tiles before
  Count moves[LOOKBACK_DIGITS];   // elements of the digits below; then how far items move from their place in the tile in order
};

// The items of a tile: a warp has neighbours, of which each lane has every 32nd.
template <class Problem, class Config>
struct digit_tile {
  using key_word = typename Problem::key_word;
  using Count = typename Problem::state_type;

  Config config;
  const lookback_launch& launch;
  u64 first;
  u32 size;           // items that there are
  u32* warp_counts;   // of each warp how often it has each digit; then the same of the warps before it
  u8* stage;          // lies where these do, and is written when nobody reads them any more
  key_word keys[Config::maximum_vt];
  u32 slots[Config::maximum_vt];      // where an item is staged: its place in the tile in order
  Count places[Config::maximum_vt];   // where what is staged in a slot of the thread is stored

  DEVICE digit_tile(Config config_, const lookback_launch& launch_, u64 index, u8* shared)
      : config(config_), launch(launch_), warp_counts(reinterpret_cast<u32*>(shared)), stage(shared) {
    const u64 tile_elements = static_cast<u64>(config.block_threads) * config.vt;
    first = index * tile_elements;
    const u64 left = launch.n > first ? launch.n - first : 0;
    size = static_cast<u32>(left < tile_elements ? left : tile_elements);
  }

  DEVICE u32 item(u32 i) const {
    return (warp_index() * config.vt + i) * LOOKBACK_WARP_LANES + lane_index();
  }

  // What is no element stands behind all others, and counts for the largest digit.
  DEVICE u32 digit_of(u32 i) const {
    return item(i) < size ? Problem::digit(keys[i], launch.key_bits) : LOOKBACK_DIGITS - 1;
  }

  DEVICE void load_keys() {
    const key_word* const from = static_cast<const key_word*>(launch.inputs[0]) + first;
    LOOKBACK_UNROLL
    for (u32 i = 0; i < config.vt; ++i) {
      if (item(i) < size) keys[i] = memory::load(from + item(i));
    }
  }

  // Counts the digits of each warp. A slot says how many of its digit stand before an item in the warp.
  DEVICE void rank() {
    u32* const counts = warp_counts + warp_index() * LOOKBACK_DIGITS;
    for (u32 digit = lane_index(); digit < LOOKBACK_DIGITS; digit += LOOKBACK_WARP_LANES) {
      memory::shared_store(counts[digit], 0u);
    }
    warp_barrier();  // nothing is counted yet
    LOOKBACK_UNROLL
    for (u32 i = 0; i < config.vt; ++i) {
      const u32 digit = digit_of(i);
      const u32 lanes = lanes_with_digit(digit);
      const u32 lanes_before = count_bits(lanes & ((1u << lane_index()) - 1));
      const u32 before = memory::shared_load(counts[digit]);
      warp_barrier();  // all lanes have read
      if (lanes_before == 0) memory::shared_store(counts[digit], before + count_bits(lanes));
      warp_barrier();  // the first lane of each digit has counted
      slots[i] = before + lanes_before;
    }
  }

  // How many items have a digit. Leaves how many of them the warps before each have.
  DEVICE u32 join_warps(u32 digit) {
    u32 sum = 0;
    for (u32 warp = 0; warp < config.block_threads / LOOKBACK_WARP_LANES; ++warp) {
      u32& place = warp_counts[warp * LOOKBACK_DIGITS + digit];
      const u32 count = memory::shared_load(place);
      memory::shared_store(place, sum);
      sum += count;
    }
    return sum;
  }

  DEVICE void find_slots(const digit_table<Count>& table) {
    LOOKBACK_UNROLL
    for (u32 i = 0; i < config.vt; ++i) {
      const u32 digit = digit_of(i);
      slots[i] += memory::shared_load(warp_counts[warp_index() * LOOKBACK_DIGITS + digit]);
      slots[i] += memory::shared_load(table.begins[digit]);
    }
  }

  DEVICE void store(const digit_table<Count>& table) {
    using inputs = typename Problem::inputs;
    put_in_order<key_word>([&](u32 i) { return keys[i]; });
    each_in_order<key_word>([&](u32 i, u32 slot, key_word key) {
      places[i] = slot + memory::shared_load(table.moves[Problem::digit(key, launch.key_bits)]);
      memory::store(static_cast<key_word*>(launch.outputs[0]) + places[i], key);
    });
    store_values<1>(static_cast<decltype(inputs::rest)*>(nullptr));
  }

  template <u32 number>
  DEVICE void store_values(elements<>*) {}
  template <u32 number, class First, class... Rest>
  DEVICE void store_values(elements<First, Rest...>*) {
    const First* const from = static_cast<const First*>(launch.inputs[number]) + first;
    put_in_order<First>([&](u32 i) { return memory::load(from + item(i)); });
    each_in_order<First>([&](u32 i, u32, First value) {
      memory::store(static_cast<First*>(launch.outputs[number]) + places[i], value);
    });
    store_values<number + 1>(static_cast<elements<Rest...>*>(nullptr));
  }

  // Stages what `value_of` says of each item.
  template <class Word, class ValueOf>
  DEVICE void put_in_order(ValueOf value_of) {
    block_barrier();  // nobody reads the counts of the warps or an array before any more
    LOOKBACK_UNROLL
    for (u32 i = 0; i < config.vt; ++i) {
      if (item(i) < size) memory::shared_store(reinterpret_cast<Word*>(stage)[slots[i]], value_of(i));
    }
    block_barrier();  // the items are staged
  }

  // Calls `body` with the slots of the thread, neighbours by neighbouring threads, and what is staged there.
  template <class Word, class Body>
  DEVICE void each_in_order(Body body) const {
    LOOKBACK_UNROLL
    for (u32 i = 0; i < config.vt; ++i) {
      const u32 slot = i * config.block_threads + thread_index();
      if (slot < size) body(i, slot, memory::shared_load(reinterpret_cast<const Word*>(stage)[slot]));
    }
  }
};

// Reads: inputs, outputs, spine (how many elements have each digit), control, descriptors (one for each digit of each tile), n,
// capacity, key_bits (of one digit); as dynamic shared memory the counts of the warps or the widest elements of a tile, whichever
// are larger. A block a tile.
template <class Problem, class Config>
DEVICE void sort_by_digit(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    using Count = typename Problem::state_type;
    using table_type = digit_table<Count>;
    SHARED(table_type, table);
    SHARED(tile_start, shared_start);
    const tile_start start = start_tile(config, launch, shared_start);
    digit_tile<Problem, Config> mine(config, launch, start.tile, dynamic_shared(0));
    mine.load_keys();
    mine.rank();
    block_barrier();  // all warps have counted

    with_descriptors<Problem>(config, launch, [&](auto descriptors) {
      each_digit(config, [&](u32 digit) {
        const u32 count = mine.join_warps(digit);
        memory::shared_store(table.counts[digit], count);
        const u32 status = start.tile == 0 ? LOOKBACK_STATUS_PREFIX : LOOKBACK_STATUS_AGGREGATE;
        descriptors.publish(start.tile * LOOKBACK_DIGITS + digit, start.epoch, status, count);
      });
      block_barrier();  // the counts of the tile are written
      if (warp_index() == 0) {
        const Count* const totals = static_cast<const Count*>(launch.spine);
        add_up_digits(table.begins, [&](u32 digit) { return memory::shared_load(table.counts[digit]); });
        add_up_digits(table.moves, [&](u32 digit) { return memory::load_spine(totals + digit); });
      }
      each_digit(config, [&](u32 digit) {
        const Count before = count_before<Count>(descriptors, start, digit);
        if (start.tile > 0) {
          const Count through = before + memory::shared_load(table.counts[digit]);
          descriptors.publish(start.tile * LOOKBACK_DIGITS + digit, start.epoch, LOOKBACK_STATUS_PREFIX, through);
        }
        memory::shared_store(table.before[digit], before);
      });
      block_barrier();  // where digits begin is written, the descriptor accesses of the block are done
      if (thread_index() == 0) finish_tile(launch, descriptors, start.epoch);
    });

    mine.find_slots(table);
    each_digit(config, [&](u32 digit) {
      const Count from = memory::shared_load(table.moves[digit]) + memory::shared_load(table.before[digit]);
      memory::shared_store(table.moves[digit], static_cast<Count>(from - memory::shared_load(table.begins[digit])));
    });
    mine.store(table);
  }
}

}  // namespace scan
}  // namespace lookback
