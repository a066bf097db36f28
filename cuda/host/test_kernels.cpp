// Kernels that prove the executor: some do one thing right and say what they saw, the others do one
// thing wrong each. `tests/executor.rs` launches them and finds the lines by their `FAULT` comments. Last come scans of
// problems whose types differ, which no other code compiles.
#include "../async_copy.cuh"
#include "../faults/hooks.cuh"
#include "../memory.cuh"
#include "../problem/converting.cuh"
#include "../problem/plain.cuh"
#include "../scan/lookahead.cuh"
#include "../scan/lookback.cuh"
#include "../scan/sequential.cuh"
#include "../scan/single_cluster.cuh"
#include "../scan/three_phase.cuh"

namespace {

using namespace lookback;

// `input` and `output` of the launch as arrays.
template <class T>
const T* input_of(const lookback_launch* launch) {
  return static_cast<const T*>(launch->input);
}
template <class T>
T* output_of(const lookback_launch* launch) {
  return static_cast<T*>(launch->output);
}
u32* flag_of(const lookback_launch* launch) { return &launch->control->ticket; }

struct block_totals {
  u32 values[LOOKBACK_WARP_LANES];
};

// Declared by a function that is called twice: the same storage both times.
DEVICE u32* helper_storage() {
  SHARED(block_totals, totals);
  return totals.values;
}

// Where the block to the left stores.
struct cluster_places {
  u32 from_left;
  copy_barrier stored;
};

// A stage for copies, and its barriers.
constexpr u32 copied_values = 64;
struct copy_stage {
  alignas(16) u32 values[copied_values];
  copy_barrier landed;
  copy_barrier drained;
};

DEVICE void initialize_stage(copy_stage& stage) {
  if (thread_index() == 0) {
    barrier_initialize(stage.landed, 1);
    barrier_initialize(stage.drained, 1);
    barriers_initialized();
  }
  block_barrier();
}

template <class T>
struct sixteen {
  T values[16 / sizeof(T)];
};

using widening = converting<operators::sum<u32>, u8, u32, u32>;
using four_types = converting<operators::sum<u64>, u8, u32, u16>;

}  // namespace

DEVICE void initialize_places(cluster_places& places) {
  if (thread_index() == 0) {
    barrier_initialize(places.stored, 1);
    barriers_initialized_for_cluster();
  }
}

// `vt` times every block tells the next one its rank and the round.
template <bool arrival_releases, bool reads_in_time, bool waits>
DEVICE void tell_next_block(const lookback_config* config, const lookback_launch* launch) {
  SHARED(cluster_places, places);
  initialize_places(places);
  cluster_barrier_arrive_relaxed();
  const u32 rank = cluster_rank();
  const u32 next = (rank + 1) % cluster_blocks();
  for (u32 round = 0; round < config->vt; ++round) {
    if (thread_index() == 0) barrier_arrive_expecting(places.stored, sizeof(u32));
    cluster_barrier_wait();
    if (thread_index() == 0) cluster_store_async(places.from_left, next, 100 * round + rank, places.stored);
    if (waits) barrier_wait_for_cluster(places.stored, round % 2);
    u32 found = reads_in_time ? memory::shared_load(places.from_left) : 0;
    if (arrival_releases) {
      cluster_barrier_arrive();
    } else {
      cluster_barrier_arrive_relaxed();
    }
    if (!reads_in_time) found = memory::shared_load(places.from_left);
    memory::store(output_of<u32>(launch) + (round * cluster_blocks() + rank) * block_threads() + thread_index(), found);
  }
  cluster_barrier_wait();
}

extern "C" {

#define KERNEL(name) void name([[maybe_unused]] const lookback_config* config, [[maybe_unused]] const lookback_launch* launch)

// Row-wise inclusive scan of u32 as a single-pass scan does it: 16 bytes a lane, 5 + 1 shuffles a row of 128,
// one barrier a tile. Tiles are independent. For the speed of the executor.
KERNEL(lookback_test_row_scan) {
  SHARED(block_totals, totals);
  const u32 lane = lane_index();
  const u32 rows = config->vt / 4;
  const u64 warp_start =
      (block_index() * block_threads() + warp_index() * LOOKBACK_WARP_LANES) * static_cast<u64>(config->vt);
  const u32* input = input_of<u32>(launch) + warp_start;
  u32* output = output_of<u32>(launch) + warp_start;
  u32 items[LOOKBACK_MAXIMUM_VT / 4][4];
  u32 prefix = 0;
  for (u32 row = 0; row < rows; ++row) {
    memory::load_vector<4>(input + (row * LOOKBACK_WARP_LANES + lane) * 4, items[row]);
    for (u32 i = 1; i < 4; ++i) {
      items[row][i] += items[row][i - 1];
      count_operator();
    }
    u32 sum = items[row][3];
    for (u32 delta = 1; delta < LOOKBACK_WARP_LANES; delta *= 2) {
      const u32 left = shuffle_up(sum, delta);
      if (lane >= delta) {
        sum += left;
        count_operator();
      }
    }
    const u32 before = prefix + sum - items[row][3];
    for (u32 i = 0; i < 4; ++i) {
      items[row][i] += before;
      count_operator();
    }
    prefix += shuffle_index(sum, LOOKBACK_WARP_LANES - 1);
    count_operator();
  }
  if (lane == 0) memory::shared_store(totals.values[warp_index()], prefix);
  block_barrier();
  u32 earlier = 0;
  for (u32 warp = 0; warp < warp_index(); ++warp) {
    earlier += memory::shared_load(totals.values[warp]);
    count_operator();
  }
  for (u32 row = 0; row < rows; ++row) {
    for (u32 i = 0; i < 4; ++i) {
      items[row][i] += earlier;
      count_operator();
    }
    memory::store_vector<4>(output + (row * LOOKBACK_WARP_LANES + lane) * 4, items[row]);
  }
}

// Every thread writes what each collective gave it: 8 numbers a thread.
KERNEL(lookback_test_collectives) {
  u32* output = output_of<u32>(launch) + (block_index() * block_threads() + thread_index()) * 8;
  const u32 lane = lane_index();
  const u32 value = 1000 * warp_index() + lane;
  memory::store(output + 0, shuffle_up(value, 3));
  memory::store(output + 1, shuffle_down(value, 5));
  memory::store(output + 2, shuffle_index(value, (lane + 1) % LOOKBACK_WARP_LANES));
  memory::store(output + 3, ballot(lane % 3 == 0));
  memory::store(output + 4, ballot(lane % 5 == 0));
  sixteen<u8> wide;
  for (u32 i = 0; i < 16; ++i) wide.values[i] = static_cast<u8>(lane + i);
  wide = shuffle_index(wide, 31);
  memory::store(output + 5, static_cast<u32>(wide.values[0] + 256 * wide.values[15]));
  warp_barrier();
  // Odd and even lanes go different ways, and then a different number of times.
  const u32 mine = lane % 2 == 0 ? 0x55555555u : 0xaaaaaaaau;
  u32 seen = value;
  if (lane % 2 == 0) {
    for (u32 i = 0; i < 3; ++i) seen = shuffle_up_masked(mine, seen, 2);
  } else {
    seen = shuffle_down_masked(mine, seen, 2);
    warp_barrier_masked(mine);
  }
  memory::store(output + 6, seen);
  memory::store(output + 7, lane < 8 ? ballot_masked(0xffu, lane % 2 == 0) : shuffle_index_masked(0xffffff00u, value, 8));
}

// Warp 0 shuffles 100 times while the other warps wait at the barrier; then all see what it left.
KERNEL(lookback_test_warp_ahead_of_barrier) {
  SHARED(u32, total);
  if (warp_index() == 0) {
    u32 sum = lane_index();
    for (u32 i = 0; i < 100; ++i) sum += shuffle_index(sum, i % LOOKBACK_WARP_LANES) & 1u;
    if (lane_index() == 0) memory::shared_store(total, sum);
  }
  block_barrier();
  memory::store(output_of<u32>(launch) + block_index() * block_threads() + thread_index(), memory::shared_load(total));
}

// Writes what uninitialised shared memory holds, and whether two declarations are one.
KERNEL(lookback_test_shared) {
  SHARED(block_totals, first);
  SHARED(block_totals, second);
  u32* output = output_of<u32>(launch) + (block_index() * block_threads() + thread_index()) * 2;
  const bool are_distinct = &first != &second && helper_storage() == helper_storage() &&
                            helper_storage() != first.values && helper_storage() != second.values;
  memory::store(output, memory::shared_load(first.values[lane_index()]));
  memory::store(output + 1, static_cast<u32>(are_distinct));
  block_barrier();
  memory::shared_store(first.values[lane_index()], 1u);
}

// One access of every kind by thread 0 of every block.
KERNEL(lookback_test_every_access) {
  SHARED(sixteen<u32>, shared);
  if (thread_index() != 0) return;
  const u32* input = input_of<u32>(launch);
  u32* output = output_of<u32>(launch);
  u32* spine = static_cast<u32*>(launch->spine);
  u32 items[4];
  memory::load_vector<4>(input, items);
  memory::store_vector<4>(output, items);
  memory::store(output + 4, memory::load(input + 4));
  memory::store_spine(spine, memory::load_spine(spine + 1));
  memory::shared_store_vector<4>(shared.values, items);
  memory::shared_load_vector<4>(shared.values, items);
  memory::shared_store(shared.values[0], memory::shared_load(shared.values[1]));
  memory::shared_add(shared.values[2], 7);
  u32* words = static_cast<u32*>(launch->descriptors);
  memory::store_relaxed(words, memory::load_relaxed(words) + 1);
  memory::store_release(words + 1, memory::load_acquire(words + 1) + 1);
  u64* wide = reinterpret_cast<u64*>(words + 2);
  memory::store_relaxed(wide, memory::load_relaxed(wide) + 1);
  word128* widest = reinterpret_cast<word128*>(words + 4);
  word128 pair = memory::load_relaxed(widest);
  pair.high += 1;
  memory::store_relaxed(widest, pair);
  memory::fence_acquire_release();
  memory::store_payload(widest + 1, memory::load_payload(widest + 1));
  memory::fetch_add_relaxed(words + 12, 3);
  memory::fetch_add_acquire_release(words + 13, 5);
}

// Each block waits for the one before it to store, counts one operator, and stores: a chain.
KERNEL(lookback_test_chain) {
  u32* flags = static_cast<u32*>(launch->descriptors);
  if (thread_index() == 0) {
    const u64 block = block_index();
    u32 prefix = 0;
    if (block != 0) {
      while ((prefix = memory::load_acquire(flags + block - 1)) == 0) spin_pause();  // FAULT chain
      count_lookback(1, 1);
    }
    count_operator();
    memory::store_release(flags + block, prefix + 1);
  }
  block_barrier();
}

// As above with the place in the chain from a ticket, so that any start order will do.
KERNEL(lookback_test_ticket_chain) {
  SHARED(u32, place);
  u32* flags = static_cast<u32*>(launch->descriptors);
  if (thread_index() == 0) memory::shared_store(place, memory::fetch_add_relaxed(flag_of(launch), 1));
  block_barrier();
  const u32 mine = memory::shared_load(place);
  if (thread_index() == 0) {
    u32 prefix = 0;
    if (mine != 0) {
      while ((prefix = memory::load_acquire(flags + mine - 1)) == 0) spin_pause();
    }
    memory::store_release(flags + mine, prefix + 1);
  }
}

// Block 1 polls by warp, with collectives between, until block 0 has done many barriers without a store.
KERNEL(lookback_test_poll_by_warp) {
  u32* flag = flag_of(launch);
  if (block_index() == 0) {
    for (u32 i = 0; i < 2000; ++i) block_barrier();
    if (thread_index() == 0) memory::store_release(flag, 1);
  } else {
    while (ballot(memory::load_acquire(flag) == 0) != 0) spin_pause();
  }
}

// As above, in a loop that forgets spin_pause; it still ends because protocol accesses yield in time.
KERNEL(lookback_test_poll_without_pause) {
  u32* flag = flag_of(launch);
  if (block_index() == 0) {
    block_barrier();
    if (thread_index() == 0) memory::store_release(flag, 1);
  } else if (thread_index() == 0) {
    while (memory::load_acquire(flag) == 0) {  // FAULT poll_without_pause
    }
  }
}

// Two threads write one element each through one unordered counter: the outcome tells the schedule.
KERNEL(lookback_test_order_of_arrival) {
  const u32 place = memory::fetch_add_relaxed(flag_of(launch), 1);
  memory::store(output_of<u32>(launch) + place, static_cast<u32>(block_index() * block_threads() + thread_index()));
}

// Thread 5 does not come to the barrier.
KERNEL(lookback_test_missing_participant) {
  if (thread_index() == 5) return;
  block_barrier();  // FAULT missing_participant
}

// The upper half returns before the barrier that the lower half is already at.
KERNEL(lookback_test_early_return) {
  if (warp_index() != 0) {
    warp_barrier();
    return;
  }
  block_barrier();  // FAULT early_return
}

// Warps wait at barriers of different lines.
KERNEL(lookback_test_two_barriers) {
  if (warp_index() == 0) {
    block_barrier();  // FAULT two_barriers first
  } else {
    block_barrier();  // FAULT two_barriers second
  }
}

// Lane 7 of warp 1 waits at the barrier, the others of its warp in a shuffle.
KERNEL(lookback_test_barrier_in_collective) {
  if (warp_index() == 1 && lane_index() != 7) shuffle_up(1u, 1);  // FAULT barrier_in_collective shuffle
  block_barrier();                                               // FAULT barrier_in_collective barrier
}

// Lane 3 calls with a mask that does not name it.
KERNEL(lookback_test_caller_not_in_mask) {
  if (thread_index() == 3) shuffle_index_masked(0xf0u, 1u, 4);  // FAULT caller_not_in_mask
}

// Lane 9 returns; the others name it.
KERNEL(lookback_test_lane_exited) {
  if (thread_index() == 9) return;
  shuffle_down(1u, 1);  // FAULT lane_exited
}

// As above among some lanes.
KERNEL(lookback_test_masked_lane_exited) {
  if (lane_index() >= 8) return;
  if (lane_index() == 7) return;
  ballot_masked(0xff, true);  // FAULT masked_lane_exited
}

// Lanes of one warp wait in different collectives.
KERNEL(lookback_test_lanes_apart) {
  if (lane_index() < 16) {
    shuffle_up(1u, 1);  // FAULT lanes_apart first
  } else {
    shuffle_up(1u, 1);  // FAULT lanes_apart second
  }
}

// Masks that overlap: lane 3 waits for lane 4 and lane 4 for lane 3.
KERNEL(lookback_test_overlapping_masks) {
  const u32 lane = lane_index();
  if (lane < 4) {
    warp_barrier_masked(0x1f);  // FAULT overlapping_masks first
  } else if (lane < 8) {
    warp_barrier_masked(0xf8);  // FAULT overlapping_masks second
  }
}

// Warp 1 copies `vt` times 64 values through one stage, warp 0 takes them out; blocks of two warps.
KERNEL(lookback_test_copy) {
  SHARED(copy_stage, stage);
  initialize_stage(stage);
  const u64 first = block_index() * config->vt * copied_values;
  for (u32 round = 0; round < config->vt; ++round) {
    const u64 from = first + round * copied_values;
    if (warp_index() == 1) {
      barrier_wait(stage.drained, (round & 1) ^ 1);
      copy_and_arrive(stage.values, input_of<u32>(launch) + from, copied_values, stage.landed);
    } else {
      barrier_wait(stage.landed, round & 1);
      for (u32 i = lane_index(); i < copied_values; i += LOOKBACK_WARP_LANES) {
        memory::store(output_of<u32>(launch) + from + i, memory::shared_load(stage.values[i]));
      }
      warp_barrier();
      if (lane_index() == 0) barrier_arrive(stage.drained);
    }
  }
}

// The same once, by a warp that reads what may not have landed.
KERNEL(lookback_test_copy_without_wait) {
  SHARED(copy_stage, stage);
  initialize_stage(stage);
  copy_and_arrive(stage.values, input_of<u32>(launch), copied_values, stage.landed);
  memory::store(output_of<u32>(launch) + lane_index(), memory::shared_load(stage.values[lane_index()]));
  barrier_wait(stage.landed, 0);
}

// Warp 0 waits for an arrival that nobody makes.
KERNEL(lookback_test_missing_arrival) {
  SHARED(copy_stage, stage);
  initialize_stage(stage);
  if (warp_index() == 0) barrier_wait(stage.drained, 0);  // FAULT missing_arrival
}

// Two arrivals in a phase that takes one, which a copy keeps from being over.
KERNEL(lookback_test_too_many_arrivals) {
  SHARED(copy_stage, stage);
  initialize_stage(stage);
  copy_and_arrive(stage.values, input_of<u32>(launch), copied_values, stage.landed);
  if (lane_index() == 0) barrier_arrive(stage.landed);  // FAULT too_many_arrivals
  barrier_wait(stage.landed, 0);
}

KERNEL(lookback_test_barrier_not_initialized) {
  SHARED(copy_stage, stage);
  barrier_wait(stage.landed, 0);  // FAULT barrier_not_initialized
}

KERNEL(lookback_test_barrier_not_there) {
  SHARED(copy_stage, stage);
  if (thread_index() == 0) barrier_initialize(stage.landed, 1);
  block_barrier();
  copy_and_arrive(stage.values, input_of<u32>(launch), copied_values, stage.landed);  // FAULT barrier_not_there
}

KERNEL(lookback_test_copy_left_under_way) {
  SHARED(copy_stage, stage);
  initialize_stage(stage);
  copy_and_arrive(stage.values, input_of<u32>(launch), copied_values, stage.landed);
}

KERNEL(lookback_test_cluster) { tell_next_block<true, true, true>(config, launch); }

// Reading is not part of what an arrival releases if it comes after it, or if the arrival releases nothing.
KERNEL(lookback_test_cluster_without_release) { tell_next_block<false, true, true>(config, launch); }
KERNEL(lookback_test_cluster_reads_behind_arrival) { tell_next_block<true, false, true>(config, launch); }

// A store that nobody waits for.
KERNEL(lookback_test_cluster_without_wait) { tell_next_block<true, true, false>(config, launch); }

// Block 0 stores into block 1, for which it has not waited; blocks start in order.
KERNEL(lookback_test_cluster_store_too_soon) {
  SHARED(cluster_places, places);
  if (block_index() == 0) cluster_store_async(places.from_left, 1, 1u, places.stored);  // FAULT cluster_store_too_soon
}

// Block 1 stores into block 0 when that has ended.
KERNEL(lookback_test_cluster_store_too_late) {
  SHARED(cluster_places, places);
  cluster_barrier_arrive();
  if (block_index() == 0) return;
  for (u32 i = 0; i < 100; ++i) block_barrier();
  cluster_barrier_wait();
  cluster_store_async(places.from_left, 0, 1u, places.stored);  // FAULT cluster_store_too_late
}

KERNEL(lookback_test_cluster_no_such_block) {
  SHARED(cluster_places, places);
  cluster_barrier_arrive();
  cluster_barrier_wait();
  cluster_store_async(places.from_left, cluster_blocks(), 1u, places.stored);  // FAULT cluster_no_such_block
}

KERNEL(lookback_test_cluster_barrier_not_initialized) {
  SHARED(cluster_places, places);
  cluster_barrier_arrive();
  cluster_barrier_wait();
  cluster_store_async(places.from_left, 0, 1u, places.stored);  // FAULT cluster_barrier_not_initialized
}

// Nobody waits for what block 0 stores into block 1.
KERNEL(lookback_test_cluster_store_left_under_way) {
  SHARED(cluster_places, places);
  initialize_places(places);
  cluster_barrier_arrive_relaxed();
  cluster_barrier_wait();
  if (block_index() == 0 && thread_index() == 0) cluster_store_async(places.from_left, 1, 1u, places.stored);
  cluster_barrier_arrive();
  cluster_barrier_wait();
}

// Two values are expected, and one comes.
KERNEL(lookback_test_cluster_store_missing) {
  SHARED(cluster_places, places);
  initialize_places(places);
  cluster_barrier_arrive_relaxed();
  if (thread_index() == 0) barrier_arrive_expecting(places.stored, 2 * sizeof(u32));
  cluster_barrier_wait();
  const u32 next = (cluster_rank() + 1) % cluster_blocks();
  if (thread_index() == 0) cluster_store_async(places.from_left, next, 1u, places.stored);
  barrier_wait_for_cluster(places.stored, 0);  // FAULT cluster_store_missing
}

KERNEL(lookback_test_cluster_arrives_twice) {
  cluster_barrier_arrive();
  cluster_barrier_arrive();  // FAULT cluster_arrives_twice
}

KERNEL(lookback_test_cluster_waits_at_once) {
  cluster_barrier_wait();  // FAULT cluster_waits_at_once
}

// A thread of block 1 never arrives.
KERNEL(lookback_test_cluster_missing_arrival) {
  if (block_index() == 1 && thread_index() == 5) return;
  cluster_barrier_arrive();
  cluster_barrier_wait();  // FAULT cluster_missing_arrival
}

// Lane 0 reads from a lane that its mask does not name.
KERNEL(lookback_test_source_not_in_mask) {
  if (lane_index() < 2) shuffle_index_masked(0x3, 1u, 2);  // FAULT source_not_in_mask
}

// Thread 0 of every block waits for what nobody stores; the others wait for it.
KERNEL(lookback_test_spin_forever) {
  if (thread_index() == 0) {
    while (memory::load_acquire(flag_of(launch)) == 0) spin_pause();  // FAULT spin_forever poll
  }
  block_barrier();  // FAULT spin_forever barrier
}

// Block 0 waits for a store of block 1, which cannot start while block 0 is the only one resident.
KERNEL(lookback_test_wait_for_later_block) {
  if (thread_index() != 0) return;
  if (block_index() == 0) {
    while (memory::load_acquire(flag_of(launch)) == 0) spin_pause();  // FAULT wait_for_later_block
  } else {
    memory::store_release(flag_of(launch), 1);
  }
}

struct too_much {
  u8 bytes[40 * 1024];
};

KERNEL(lookback_test_too_much_shared) {
  SHARED(too_much, first);
  SHARED(too_much, second);  // FAULT too_much_shared
  memory::shared_store(first.bytes[0], u8{0});
  memory::shared_store(second.bytes[0], u8{0});
}

// Asks for `vt` bytes and stores the last one; or the one behind it.
KERNEL(lookback_test_dynamic_shared) {
  u8* const bytes = dynamic_shared(config->vt);  // FAULT dynamic_shared
  if (thread_index() == 0) memory::shared_store(bytes[config->vt - 1], u8{1});
}
KERNEL(lookback_test_beyond_dynamic_shared) {
  u8* const bytes = dynamic_shared(config->vt);
  if (thread_index() == 0) memory::shared_store(bytes[config->vt], u8{1});  // FAULT beyond_dynamic_shared
}

KERNEL(lookback_test_misaligned) {
  u32 items[4];
  if (thread_index() == 2) memory::load_vector<4>(input_of<u32>(launch) + 1, items);  // FAULT misaligned
}

// One of several launches: what the launch before has stored, in the other order and one more. `vt` has a bit for each of
// what it does: allows the next launch; waits for those before; lets one thread alone wait; waits behind its first access.
KERNEL(lookback_test_launch_behind) {
  SHARED(u32, unused);  // tells that the block has begun
  (void)unused;
  if ((config->vt & 1) != 0) allow_next_launch();
  if ((config->vt & 2) != 0) wait_for_launches_before();
  if ((config->vt & 4) != 0 && thread_index() == 0) wait_for_launches_before();
  const u64 all = grid_blocks() * block_threads();
  const u64 i = block_index() * block_threads() + thread_index();
  const u32 before = memory::load(input_of<u32>(launch) + (all - 1 - i));
  if ((config->vt & 8) != 0) wait_for_launches_before();
  memory::store(output_of<u32>(launch) + i, before + 1);
}

#define SCAN(name, kernel, problem) \
  KERNEL(name) { scan::kernel<problem>(runtime_config(*config), *launch); }
SCAN(lookback_test_sequential_widening, sequential, widening)
SCAN(lookback_test_reduce_tiles_widening, reduce_tiles, widening)
SCAN(lookback_test_scan_tiles_of_totals, scan_tiles, plain<operators::sum<u32>>)
SCAN(lookback_test_scan_tiles_widening, scan_tiles, widening)
SCAN(lookback_test_lookback_widening, lookback, widening)
SCAN(lookback_test_lookback_four_types, lookback, four_types)
SCAN(lookback_test_lookahead_widening, lookahead, widening)
SCAN(lookback_test_lookahead_four_types, lookahead, four_types)
SCAN(lookback_test_single_cluster_four_types, single_cluster, four_types)

// No kernels: what a load and a store make of a number of two bytes.
u16 lookback_test_f16_of_float(float value) { return f16(value).bits; }
u16 lookback_test_bf16_of_float(float value) { return bf16(value).bits; }
float lookback_test_float_of_f16(u16 bits) {
  f16 half;
  half.bits = bits;
  return static_cast<float>(half);
}
float lookback_test_float_of_bf16(u16 bits) {
  bf16 half;
  half.bits = bits;
  return static_cast<float>(half);
}

}  // extern "C"
