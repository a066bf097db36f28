// `platform.cuh` on the CPU device: a CUDA thread is a coroutine, and whatever waits for another thread
// goes through the executor (`executor.h`).
#pragma once

#include <cmath>  // for the text of definitions
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "executor.h"

// The compiler decides what it inlines: were all helpers inlined wherever they are called, a kernel would take it three
// times as long, be three times as large and no faster. ThreadSanitizer names the lines of a race right where helpers are
// inlined, and takes the order of an access from its instruction only if it is a constant there.
#if defined(LOOKBACK_THREAD_SANITIZER)
#define DEVICE inline __attribute__((always_inline))
#else
#define DEVICE inline
#endif
#define DEVICE_CONSTEXPR constexpr
#define LOOKBACK_UNROLL
#define LOOKBACK_NOUNROLL

// The static byte stands for this declaration: its address is one for all threads and differs between
// declarations and between instantiations of a template, as __shared__ variables do.
#define SHARED(Type, name)              \
  static lookback::u8 name##_shared_key; \
  Type& name = lookback::host::shared_storage<Type>(&name##_shared_key)

namespace lookback {

// Where a call stands in the source: `call_site where = {}` as the last parameter of a function is the
// line of the call, because defaults of defaults are filled in there too.
struct call_site {
  const char* file;
  u32 line;
  constexpr call_site(const char* caller_file = __builtin_FILE(), u32 caller_line = __builtin_LINE())
      : file(caller_file), line(caller_line) {}
};

// Bytes that a lane had best hand over in one exchange: a rendezvous costs 32 switches of coroutine.
constexpr u32 exchange_bytes = LOOKBACK_EXCHANGE_BYTES;

constexpr u32 full_warp = LOOKBACK_FULL_WARP;

namespace host {

#if defined(LOOKBACK_LOADED_AT_RUN_TIME)
// Kernels in a library that a program loads (`src/lab/cpu_kernels.rs`) ask the program, who says once where to ask.
static lookback_thread** (*current_thread_slot)() = nullptr;

extern "C" [[gnu::visibility("default")]] void lookback_connect(lookback_thread** (*slot)()) { current_thread_slot = slot; }

DEVICE lookback_thread* current() { return *current_thread_slot(); }
#else
// Plain thread storage without a constructor, so that an access is one load and no wrapper call. A
// coroutine never changes its OS thread, so its address may be kept across suspensions.
extern "C" __thread lookback_thread* lookback_current_thread;

DEVICE lookback_thread* current() { return lookback_current_thread; }
#endif

// What lanes exchange goes through registers on a GPU: it orders no memory and is no access of memory. So
// ThreadSanitizer (`thread_sanitizer/`) must not see the copies, and they are made by code that is not
// instrumented.
#if defined(LOOKBACK_THREAD_SANITIZER)
constexpr bool is_thread_sanitizer_build = true;
#else
constexpr bool is_thread_sanitizer_build = false;
#endif

DEVICE void copy_exchanged(void* to, const void* from, std::size_t bytes) {
#if defined(LOOKBACK_THREAD_SANITIZER)
  lookback_copy_unseen(to, from, static_cast<u32>(bytes));
#else
  std::memcpy(to, from, bytes);
#endif
}

template <class Type>
DEVICE Type& shared_storage(const void* key, call_site where = {}) {
  static_assert(std::is_trivially_destructible<Type>::value, "coroutines are torn down without destructors");
  lookback_thread* thread = current();
  return *static_cast<Type*>(thread->executor->shared_storage(thread, key, static_cast<u32>(sizeof(Type)),
                                                              static_cast<u32>(alignof(Type)), where.file,
                                                              where.line));
}

// All lanes put their value down and meet; returns the slots of this exchange.
template <class T>
DEVICE const u8 (*meet(lookback_thread* thread, const T& value, u32 collective, call_site where))[LOOKBACK_EXCHANGE_BYTES] {
  static_assert(std::is_trivially_copyable<T>::value, "lanes exchange bytes");
  static_assert(sizeof(T) <= LOOKBACK_EXCHANGE_BYTES, "lanes exchange up to a slot");
  lookback_warp* warp = thread->warp;
  const u32 parity = warp->parity;
  copy_exchanged(warp->slots[parity][thread->lane_index], &value, sizeof(T));
  thread->executor->rendezvous(thread, collective, where.file, where.line);
  return warp->slots[parity];
}

// The same for the first `count` of several values.
template <u32 capacity, class T>
DEVICE const u8 (*meet_each(lookback_thread* thread, const T (&values)[capacity], u32 count, u32 collective,
                            call_site where))[LOOKBACK_EXCHANGE_BYTES] {
  static_assert(std::is_trivially_copyable<T>::value, "lanes exchange bytes");
  lookback_warp* warp = thread->warp;
  const u32 parity = warp->parity;
  copy_exchanged(warp->slots[parity][thread->lane_index], values, count * sizeof(T));
  thread->executor->rendezvous(thread, collective, where.file, where.line);
  return warp->slots[parity];
}

// For whoever looks at lanes (`LOOKBACK_INTERCEPT_LANES`).
DEVICE void tell(lookback_thread* thread, u32 step, u32 number) {
  if (__builtin_expect((thread->intercept & LOOKBACK_INTERCEPT_LANES) != 0, 0)) {
    thread->executor->lane_step(thread, step, number);
  }
}

// The slot of a lane that the thread takes a value of.
DEVICE const u8* slot_of(lookback_thread* thread, const u8 (*slots)[LOOKBACK_EXCHANGE_BYTES], u32 lane) {
  tell(thread, LOOKBACK_LANE_TOOK, lane);
  return slots[lane];
}

template <class T>
DEVICE T take(lookback_thread* thread, const u8 (*slots)[LOOKBACK_EXCHANGE_BYTES], u32 lane) {
  T value;
  copy_exchanged(&value, slot_of(thread, slots, lane), sizeof(T));
  return value;
}

// The same for the lanes in `mask` only.
template <class T>
DEVICE T exchange(lookback_thread* thread, u32 mask, u32 collective, u32 source_lane, T value, call_site where) {
  static_assert(std::is_trivially_copyable<T>::value, "lanes exchange bytes");
  static_assert(sizeof(T) <= LOOKBACK_EXCHANGE_BYTES, "lanes exchange up to a slot");
  thread->executor->exchange(thread, mask, collective, source_lane, &value, static_cast<u32>(sizeof(T)),
                             where.file, where.line);
  return value;
}

DEVICE u32 lane_above(u32 lane, u32 delta) { return delta < LOOKBACK_WARP_LANES - lane ? lane + delta : lane; }
DEVICE u32 lane_below(u32 lane, u32 delta) { return delta <= lane ? lane - delta : lane; }

}  // namespace host

DEVICE u32 thread_index() { return host::current()->thread_index; }
DEVICE u32 block_threads() { return host::current()->block_threads; }
DEVICE u32 lane_index() { return host::current()->lane_index; }
DEVICE u32 warp_index() { return host::current()->warp_index; }
DEVICE u64 block_index() { return host::current()->block_index; }
DEVICE u64 grid_blocks() { return host::current()->grid_blocks; }

DEVICE void block_barrier(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->block_barrier(thread, where.file, where.line);
}

DEVICE void warp_barrier(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->rendezvous(thread, LOOKBACK_COLLECTIVE_WARP_BARRIER, where.file, where.line);
}

// The grid is one cluster.
DEVICE u32 cluster_rank() { return static_cast<u32>(block_index()); }
DEVICE u32 cluster_blocks() { return static_cast<u32>(grid_blocks()); }

DEVICE void cluster_barrier_arrive(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->cluster_barrier_arrive(thread, 1, where.file, where.line);
}

DEVICE void cluster_barrier_arrive_relaxed(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->cluster_barrier_arrive(thread, 0, where.file, where.line);
}

DEVICE void cluster_barrier_wait(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->cluster_barrier_wait(thread, where.file, where.line);
}

template <class T>
DEVICE T shuffle_up(T value, u32 delta, call_site where = {}) {
  lookback_thread* thread = host::current();
  const auto slots = host::meet(thread, value, LOOKBACK_COLLECTIVE_SHUFFLE_UP, where);
  return host::take<T>(thread, slots, host::lane_below(thread->lane_index, delta));
}

// `shuffle_up` of the first `count` values, in one rendezvous.
template <u32 capacity, class T>
DEVICE void shuffle_up_each(T (&values)[capacity], u32 count, u32 delta, call_site where = {}) {
  static_assert(sizeof(values) <= LOOKBACK_EXCHANGE_BYTES, "lanes exchange up to a slot");
  lookback_thread* thread = host::current();
  const auto slots = host::meet_each(thread, values, count, LOOKBACK_COLLECTIVE_SHUFFLE_UP, where);
  host::copy_exchanged(values, host::slot_of(thread, slots, host::lane_below(thread->lane_index, delta)), count * sizeof(T));
}

// `shuffle_down` likewise.
template <u32 capacity, class T>
DEVICE void shuffle_down_each(T (&values)[capacity], u32 count, u32 delta, call_site where = {}) {
  static_assert(sizeof(values) <= LOOKBACK_EXCHANGE_BYTES, "lanes exchange up to a slot");
  lookback_thread* thread = host::current();
  const auto slots = host::meet_each(thread, values, count, LOOKBACK_COLLECTIVE_SHUFFLE_DOWN, where);
  host::copy_exchanged(values, host::slot_of(thread, slots, host::lane_above(thread->lane_index, delta)), count * sizeof(T));
}

// `shuffle_index` likewise.
template <u32 capacity, class T>
DEVICE void shuffle_index_each(T (&values)[capacity], u32 count, u32 lane, call_site where = {}) {
  static_assert(sizeof(values) <= LOOKBACK_EXCHANGE_BYTES, "lanes exchange up to a slot");
  lookback_thread* thread = host::current();
  const auto slots = host::meet_each(thread, values, count, LOOKBACK_COLLECTIVE_SHUFFLE_INDEX, where);
  host::copy_exchanged(values, host::slot_of(thread, slots, lane % LOOKBACK_WARP_LANES), count * sizeof(T));
}

// In one rendezvous, too.
template <u32 capacity, class T>
DEVICE void add_over_warp_each(T (&values)[capacity], u32 count, call_site where = {}) {
  static_assert(sizeof(values) <= LOOKBACK_EXCHANGE_BYTES, "lanes exchange up to a slot");
  lookback_thread* thread = host::current();
  const auto slots = host::meet_each(thread, values, count, LOOKBACK_COLLECTIVE_SHUFFLE_INDEX, where);
  for (u32 i = 0; i < count; ++i) values[i] = 0;
  for (u32 lane = 0; lane < LOOKBACK_WARP_LANES; ++lane) {
    T others[capacity];
    host::copy_exchanged(others, slots[lane], count * sizeof(T));
    for (u32 i = 0; i < count; ++i) values[i] += others[i];
  }
}

template <class T>
DEVICE T shuffle_down(T value, u32 delta, call_site where = {}) {
  lookback_thread* thread = host::current();
  const auto slots = host::meet(thread, value, LOOKBACK_COLLECTIVE_SHUFFLE_DOWN, where);
  return host::take<T>(thread, slots, host::lane_above(thread->lane_index, delta));
}

// Like the instruction, takes the lane modulo 32.
template <class T>
DEVICE T shuffle_index(T value, u32 lane, call_site where = {}) {
  lookback_thread* thread = host::current();
  const auto slots = host::meet(thread, value, LOOKBACK_COLLECTIVE_SHUFFLE_INDEX, where);
  return host::take<T>(thread, slots, lane % LOOKBACK_WARP_LANES);
}

DEVICE u32 ballot(bool predicate, call_site where = {}) {
  lookback_thread* thread = host::current();
  if (host::is_thread_sanitizer_build) {
    return host::exchange(thread, full_warp, LOOKBACK_COLLECTIVE_BALLOT, thread->lane_index,
                          static_cast<u32>(predicate), where);
  }
  lookback_warp* warp = thread->warp;
  const u32 parity = warp->parity;
  warp->ballots[parity] |= static_cast<u32>(predicate) << thread->lane_index;
  thread->executor->rendezvous(thread, LOOKBACK_COLLECTIVE_BALLOT, where.file, where.line);
  return warp->ballots[parity];
}

DEVICE u32 lanes_with_byte(u32 byte, call_site where = {}) {
  lookback_thread* thread = host::current();
  const auto slots = host::meet(thread, byte, LOOKBACK_COLLECTIVE_SHUFFLE_INDEX, where);
  u32 lanes = 0;
  for (u32 lane = 0; lane < LOOKBACK_WARP_LANES; ++lane) lanes |= static_cast<u32>(host::take<u32>(thread, slots, lane) == byte) << lane;
  return lanes;
}

// The same among the lanes in `mask`, which must name the calling lane and only lanes that make the call.
DEVICE void warp_barrier_masked(u32 mask, call_site where = {}) {
  lookback_thread* thread = host::current();
  host::exchange(thread, mask, LOOKBACK_COLLECTIVE_WARP_BARRIER, thread->lane_index, u32{0}, where);
}

template <class T>
DEVICE T shuffle_up_masked(u32 mask, T value, u32 delta, call_site where = {}) {
  lookback_thread* thread = host::current();
  return host::exchange(thread, mask, LOOKBACK_COLLECTIVE_SHUFFLE_UP, host::lane_below(thread->lane_index, delta),
                        value, where);
}

template <class T>
DEVICE T shuffle_down_masked(u32 mask, T value, u32 delta, call_site where = {}) {
  lookback_thread* thread = host::current();
  return host::exchange(thread, mask, LOOKBACK_COLLECTIVE_SHUFFLE_DOWN, host::lane_above(thread->lane_index, delta),
                        value, where);
}

template <class T>
DEVICE T shuffle_index_masked(u32 mask, T value, u32 lane, call_site where = {}) {
  return host::exchange(host::current(), mask, LOOKBACK_COLLECTIVE_SHUFFLE_INDEX, lane % LOOKBACK_WARP_LANES, value,
                        where);
}

DEVICE u32 ballot_masked(u32 mask, bool predicate, call_site where = {}) {
  lookback_thread* thread = host::current();
  return host::exchange(thread, mask, LOOKBACK_COLLECTIVE_BALLOT, thread->lane_index, static_cast<u32>(predicate),
                        where);
}

DEVICE void spin_pause(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->spin_pause(thread, where.file, where.line);
}

struct waiting {
  DEVICE bool gives_up(u64 tile, u64 missing, call_site where = {}) const {
    lookback_thread* thread = host::current();
    thread->waiting_tile = tile;
    thread->missing_tile = missing;
    thread->executor->spin_pause(thread, where.file, where.line);
    return false;
  }

  DEVICE bool warp_gives_up(u64 tile, u64 missing, bool is_waiting, call_site where = {}) const {
    constexpr u64 no_tile = ~static_cast<u64>(0);
    return gives_up(is_waiting ? tile : no_tile, is_waiting ? missing : no_tile, where);
  }
};

// A word of the launch's parameters (`problem/parameters.cuh`).
template <u32 at>
DEVICE u32 parameter_word() {
  return reinterpret_cast<const u32*>(host::current()->parameters)[at / sizeof(u32)];
}

DEVICE void allow_next_launch(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->allow_next_launch(thread, where.file, where.line);
}

DEVICE void wait_for_launches_before(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->wait_for_launches_before(thread, where.file, where.line);
}

// One application of the scan operator: work, and a step on this thread's chain.
DEVICE void count_operator() {
  lookback_thread* thread = host::current();
  thread->counters->operator_applications += 1;
  thread->clock += 1;
  host::tell(thread, LOOKBACK_LANE_APPLIED, 1);
}

DEVICE void count_operators(u32 count) {
  lookback_thread* thread = host::current();
  thread->counters->operator_applications += count;
  thread->clock += count;
  host::tell(thread, LOOKBACK_LANE_APPLIED, count);
}

// What one look-back cost: how often a window of descriptors was read, and how many tiles back it went.
// Call it from one lane.
DEVICE void count_lookback(u32 rounds, u64 distance_tiles) {
  lookback_counters* counters = host::current()->counters;
  counters->lookbacks += 1;
  counters->lookback_rounds += rounds;
  counters->lookback_distance_tiles += distance_tiles;
}

// What the hooks of `../faults/hooks.cuh` call: a warp has come to a step with a tile. Whose publication it waited for the
// executor knows from `waiting`.
DEVICE void trace_step(u32 step, u64 tile, u32 round = 0, u32 descriptors = 0) {
  lookback_thread* thread = host::current();
  if (thread->lane_index == 0) thread->executor->trace_step(thread, step, tile, round, descriptors);
}
template <u32 together>
struct traced_warp {
  u64 tile = 0;
  DEVICE void step(u32 step) const { trace_step(step, tile); }
  template <class Items>
  DEVICE void landed(const Items&) const {
    step(LOOKBACK_TRACE_LANDED);
  }
};
struct traced_round {
  u32 round;
  u64 tile;
  bool if_so;
  DEVICE traced_round(u32 round_, u64 tile_, u32 descriptors, bool if_so_) : round(round_), tile(tile_), if_so(if_so_) {
    if (if_so) trace_step(LOOKBACK_TRACE_READ, tile, round, descriptors);
  }
  template <class Held>
  DEVICE void found(const waiting&, u32 descriptors, const Held&) const {
    if (if_so) trace_step(LOOKBACK_TRACE_FOUND, tile, round, descriptors);
  }
};
template <class Body>
struct traced_end {
  Body body;
  DEVICE explicit traced_end(Body body_) : body(body_) {}
  DEVICE ~traced_end() { body(); }
};

// `mask` is not 0.
DEVICE u32 lowest_set_bit(u32 mask) { return static_cast<u32>(__builtin_ctz(mask)); }

constexpr bool lanes_wait_for_each_other = false;

DEVICE void set_bit_if(u32& bits, u32 place, bool is_set) { bits |= (is_set ? 1u : 0u) << place; }

DEVICE u32 add_bytes(u32 word, u32 sum) {
  return sum + (word & 0xff) + (word >> 8 & 0xff) + (word >> 16 & 0xff) + (word >> 24);
}
DEVICE u32 add_lower_bytes(u32 word, u32 sum) { return sum + (word & 0xff) + (word >> 8 & 0xff); }
DEVICE u32 add_halves(u32 word, u32 sum) { return sum + (word & 0xffff) + (word >> 16); }
DEVICE u32 select_bytes(u32 low, u32 high, u32 selector) {
  const u64 bytes = static_cast<u64>(high) << 32 | low;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) result |= static_cast<u32>(bytes >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return result;
}

DEVICE u32 count_bits(u32 word) { return static_cast<u32>(__builtin_popcount(word)); }
DEVICE u32 leading_zeros(u32 word) { return static_cast<u32>(__builtin_clz(word)); }
DEVICE u64 multiply_high(u64 a, u64 b) {
  __extension__ using wide = unsigned __int128;
  return static_cast<u64>(static_cast<wide>(a) * b >> 64);
}

}  // namespace lookback
