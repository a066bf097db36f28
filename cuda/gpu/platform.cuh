// The platform on a GPU: CUDA's builtins. Included by `../platform.cuh`, which documents the interface.
#pragma once

#define DEVICE __device__ __forceinline__
#define DEVICE_CONSTEXPR __host__ __device__ constexpr
#define LOOKBACK_UNROLL _Pragma("unroll")
#define LOOKBACK_NOUNROLL _Pragma("unroll 1")
#define SHARED(Type, name) __shared__ Type name

namespace lookback {

// Where a call stands in the source; only the CPU device keeps it.
struct call_site {};

// The best number of bytes for a lane to hand over in one exchange. Here each word is an instruction of its own, so
// exchanging several values together only costs registers (123 against 80 for 56 u32 a thread on sm_90).
constexpr u32 exchange_bytes = 1;

constexpr u32 full_warp = 0xffffffffu;

DEVICE u32 thread_index() { return threadIdx.x; }
DEVICE u32 block_threads() { return blockDim.x; }
DEVICE u32 lane_index() { return threadIdx.x % LOOKBACK_WARP_LANES; }
DEVICE u32 warp_index() { return threadIdx.x / LOOKBACK_WARP_LANES; }
DEVICE u64 block_index() { return blockIdx.x; }
DEVICE u64 grid_blocks() { return gridDim.x; }

// Programmatic dependent launch (Hopper and later; without the launch attribute both instructions do nothing).
DEVICE void allow_next_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
DEVICE void wait_for_launches_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

DEVICE void block_barrier(call_site = {}) { __syncthreads(); }
DEVICE void warp_barrier(call_site = {}) { __syncwarp(); }

DEVICE u32 cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
DEVICE u32 cluster_blocks() {
  u32 blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

// `.aligned` asks for all lanes of the warp at once: behind a branch that some of them took, __syncwarp brings them
// together.
DEVICE void cluster_barrier_arrive(call_site = {}) {
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
DEVICE void cluster_barrier_wait(call_site = {}) {
  __syncwarp();
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The release of the other one is a fence of the whole device.
DEVICE void cluster_barrier_arrive_relaxed(call_site = {}) {
  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// A value as the 32-bit words that a shuffle moves.
template <class T>
struct shuffle_words {
  static constexpr u32 count = (sizeof(T) + 3) / 4;
  u32 word[count];
  DEVICE explicit shuffle_words(T value) {
    word[0] = 0;
    memcpy(word, &value, sizeof(T));
  }
  DEVICE T value() const {
    T result;
    memcpy(&result, word, sizeof(T));
    return result;
  }
};

template <class T>
DEVICE T shuffle_up(T value, u32 delta, call_site = {}) {
  shuffle_words<T> words(value);
  LOOKBACK_UNROLL
  for (u32 i = 0; i < words.count; ++i) words.word[i] = __shfl_up_sync(full_warp, words.word[i], delta);
  return words.value();
}

template <class T>
DEVICE T shuffle_down(T value, u32 delta, call_site = {}) {
  shuffle_words<T> words(value);
  LOOKBACK_UNROLL
  for (u32 i = 0; i < words.count; ++i) words.word[i] = __shfl_down_sync(full_warp, words.word[i], delta);
  return words.value();
}

template <class T>
DEVICE T shuffle_index(T value, u32 lane, call_site = {}) {
  shuffle_words<T> words(value);
  LOOKBACK_UNROLL
  for (u32 i = 0; i < words.count; ++i) words.word[i] = __shfl_sync(full_warp, words.word[i], lane);
  return words.value();
}

// The same for the first `count` values: independent instructions, so that their latencies overlap.
template <u32 capacity, class T>
DEVICE void shuffle_up_each(T (&values)[capacity], u32 count, u32 delta, call_site = {}) {
  LOOKBACK_UNROLL
  for (u32 i = 0; i < capacity; ++i) {
    if (i < count) values[i] = shuffle_up(values[i], delta);
  }
}

template <u32 capacity, class T>
DEVICE void shuffle_down_each(T (&values)[capacity], u32 count, u32 delta, call_site = {}) {
  LOOKBACK_UNROLL
  for (u32 i = 0; i < capacity; ++i) {
    if (i < count) values[i] = shuffle_down(values[i], delta);
  }
}

template <u32 capacity, class T>
DEVICE void shuffle_index_each(T (&values)[capacity], u32 count, u32 lane, call_site = {}) {
  LOOKBACK_UNROLL
  for (u32 i = 0; i < capacity; ++i) {
    if (i < count) values[i] = shuffle_index(values[i], lane);
  }
}

DEVICE u32 add_over_warp(u32 value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  // One instruction for five shuffles and additions that wait for each other.
  return __reduce_add_sync(full_warp, value);
#else
  LOOKBACK_UNROLL
  for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) value += __shfl_xor_sync(full_warp, value, distance);
  return value;
#endif
}

// In parts: what is to be carried into the next one is kept, and the highest one wraps as the sum does.
DEVICE u64 add_over_warp(u64 value) {
  const u64 low = add_over_warp(static_cast<u32>(value) & 0xffff);
  const u64 middle = add_over_warp(static_cast<u32>(value) >> 16);
  const u64 high = add_over_warp(static_cast<u32>(value >> 32));
  return low + (middle << 16) + (high << 32);
}

template <u32 capacity, class T>
DEVICE void add_over_warp_each(T (&values)[capacity], u32 count, call_site = {}) {
  LOOKBACK_UNROLL
  for (u32 i = 0; i < capacity; ++i) {
    if (i < count) values[i] = add_over_warp(values[i]);
  }
}

DEVICE u32 ballot(bool predicate, call_site = {}) { return __ballot_sync(full_warp, predicate); }

// A vote on each bit, four of them at a time. Written as `lanes &= is_set ? votes : ~votes` each took twice the instructions; of eight
// at a time ptxas 13.0 tests all bits by one instruction (R2P) and may then have no predicate left for anything else, and fails.
DEVICE u32 lanes_with_byte(u32 byte, call_site = {}) {
  const auto lanes_with_half = [](u32 half) {
    u32 lanes;
    asm volatile(
        "{ .reg .pred is_set; .reg .b32 bit, a, b, c, d;"
        " and.b32 bit, %1, 1; setp.ne.u32 is_set, bit, 0; vote.sync.ballot.b32 a, is_set, 0xffffffff; @!is_set not.b32 a, a;"
        " and.b32 bit, %1, 2; setp.ne.u32 is_set, bit, 0; vote.sync.ballot.b32 b, is_set, 0xffffffff; @!is_set not.b32 b, b;"
        " and.b32 bit, %1, 4; setp.ne.u32 is_set, bit, 0; vote.sync.ballot.b32 c, is_set, 0xffffffff; @!is_set not.b32 c, c;"
        " and.b32 bit, %1, 8; setp.ne.u32 is_set, bit, 0; vote.sync.ballot.b32 d, is_set, 0xffffffff; @!is_set not.b32 d, d;"
        " lop3.b32 a, a, b, c, 0x80; and.b32 %0, a, d; }"
        : "=r"(lanes)
        : "r"(half));
    return lanes;
  };
  return lanes_with_half(byte) & lanes_with_half(byte >> 4);
}

// The loops that wait re-read a descriptor; nothing makes that read come back sooner.
DEVICE void spin_pause(call_site = {}) {}

#if defined(LOOKBACK_STRESS)

// The host finds it by this name (src/lab/stress/gpu/lane.rs).
extern "C" {
__device__ lookback_stress lookback_stress_state;
}

DEVICE u64 global_nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

DEVICE u64 multiprocessor_cycles() {
  u64 now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now));
  return now;
}

// Loses time at some of its calls, chosen by the seed, the point, the block, the warp and `salt`: a whole warp
// at a time, since it is other warps and other blocks that must get ahead of it. In `rate` of 65536 calls.
DEVICE void lose_time(u32 point, u32 salt, u32 rate) {
  if (rate == 0) return;
  u64 mixed = lookback_stress_state.seed ^ (static_cast<u64>(point) << 32) ^ (block_index() << 20) ^
              (static_cast<u64>(salt) << 5) ^ warp_index();
  // The finaliser of SplitMix64 (Steele, Lea & Flood 2014).
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
  mixed ^= mixed >> 31;
  if ((mixed & 0xffff) >= rate) return;
  if (lane_index() + 1 == __ffs(static_cast<int>(__activemask()))) atomicAdd(&lookback_stress_state.delays, 1u);
  // By the multiprocessor's clock, at about 2 GHz: the global timer advances in steps of up to 1 us.
  const u64 start = multiprocessor_cycles();
  const u64 cycles = 2 * ((mixed >> 32) % (static_cast<u64>(lookback_stress_state.delay_nanoseconds) + 1));
  while (multiprocessor_cycles() - start < cycles) {
  }
}

// Before each access to shared memory, so that a warp is late where a barrier should have held the others.
// There are many of them: one in 16 of the rate. Lanes of one access mostly share a line of 128 bytes.
#define SHARED_DELAY_POINT(where)                                                         \
  ::lookback::lose_time(0x5ca1ab1eu, static_cast<u32>(reinterpret_cast<u64>(where) >> 7), \
                        lookback_stress_state.delay_rate / 16)

// Bounds how long a tile waits for another: lost progress becomes a report, and a launch that is lost ends soon.
struct waiting {
  u64 start;

  DEVICE waiting() : start(global_nanoseconds()) {}

  DEVICE bool gives_up(u64 tile, u64 missing, call_site = {}) const {
    constexpr u64 long_wait = 1000000;
    const u64 waited = global_nanoseconds() - start;
    const u64 bound = lookback_stress_state.wait_nanoseconds;
    if (waited < long_wait && waited < bound) return false;
    // Volatile: other blocks write it. Once one block gave up the result is lost, and the others need not wait on.
    if (*const_cast<const volatile u32*>(&lookback_stress_state.faults) != 0) return true;
    if (waited < bound) return false;
    if (atomicAdd(&lookback_stress_state.faults, 1u) == 0) {
      lookback_stress_state.waiting_tile = tile;
      lookback_stress_state.missing_tile = missing;
    }
    return true;
  }

  DEVICE bool warp_gives_up(u64 tile, u64 missing, bool is_waiting, call_site = {}) const {
    return __any_sync(full_warp, is_waiting && gives_up(tile, missing));
  }
};

#else

#define SHARED_DELAY_POINT(where)

#if defined(LOOKBACK_TRACE)

constexpr u32 no_missing_tile = 0xffffffff;

// Keeps for whom a warp waited last.
struct waiting {
  mutable u32 missing_tile = no_missing_tile;

  DEVICE bool gives_up(u64, u64 missing, call_site = {}) const {
    missing_tile = static_cast<u32>(missing);
    return false;
  }

  DEVICE bool warp_gives_up(u64, u64 missing, bool is_waiting, call_site = {}) const {
    const u32 lanes = ballot(is_waiting);
    if (lanes != 0) missing_tile = shuffle_index(static_cast<u32>(missing), __ffs(static_cast<int>(lanes)) - 1);
    return false;
  }
};

// What lane 0 records of a tile into, if it does. From the begin of the kernel's parameters (`entry.cu`): hooks stand where no launch is at
// hand, and a variable of the module would be one more trip to memory before the first step.
struct trace_record {
  lookback_trace_tile* of_tile;
  bool is_on;

  DEVICE explicit trace_record(u64 tile) {
    u64 tiles, count;
    asm("ld.param.v2.u64 {%0, %1}, [lookback_entry_param_0];" : "=l"(tiles), "=l"(count));
    of_tile = reinterpret_cast<lookback_trace_tile*>(tiles) + static_cast<u32>(tile);
    is_on = lane_index() == 0 && tiles != 0 && static_cast<u32>(tile) < static_cast<u32>(count);
  }

  // A predicate and no branch, behind which lanes would have to meet again; and the first to leave the cache, which is the scan's.
  DEVICE void store(const u32& at, u32 word, bool if_so = true) const {
    const u32 stores = is_on && if_so ? 1 : 0;
    asm volatile("{ .reg .pred stores; setp.ne.u32 stores, %0, 0; @stores st.global.cs.u32 [%1], %2; }"
                 :
                 : "r"(stores), "l"(&at), "r"(word));
  }

  // Several words at once, which must be aligned so.
  DEVICE void store_together(const u32& at, const u32 (&words)[1]) const { store(at, words[0]); }
  DEVICE void store_together(const u32& at, const u32 (&words)[2]) const {
    const u32 stores = is_on ? 1 : 0;
    asm volatile("{ .reg .pred stores; setp.ne.u32 stores, %0, 0; @stores st.global.cs.v2.u32 [%1], {%2, %3}; }"
                 :
                 : "r"(stores), "l"(&at), "r"(words[0]), "r"(words[1]));
  }
  DEVICE void store_together(const u32& at, const u32 (&words)[4]) const {
    const u32 stores = is_on ? 1 : 0;
    asm volatile("{ .reg .pred stores; setp.ne.u32 stores, %0, 0; @stores st.global.cs.v4.u32 [%1], {%2, %3, %4, %5}; }"
                 :
                 : "r"(stores), "l"(&at), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]));
  }
};

DEVICE u32 trace_clock() {
  u32 cycles;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles));
  return cycles;
}

// The same once `held` has arrived, of which the last word counts and the one in the middle: a reading is no access to memory, and the
// compiler moves it before the branch that waits for one. So it takes place unless the word is one that is not to be expected; that
// would cost one record. (Behind the values of a segmented scan stand the bits that say where segments begin.)
template <class Held>
DEVICE u32 trace_clock_after(const Held& held) {
  constexpr u32 bytes = sizeof(Held) < sizeof(u32) ? sizeof(Held) : sizeof(u32);
  const u8* const begin = reinterpret_cast<const u8*>(&held);
  u32 last = 0;
  u32 middle = 0;
  memcpy(&last, begin + sizeof(Held) - bytes, bytes);
  memcpy(&middle, begin + (sizeof(Held) - bytes) / 2 / bytes * bytes, bytes);
  u32 cycles = 0;
  asm volatile("{ .reg .pred is_there; setp.ne.u32 is_there, %1, %2; @is_there mov.u32 %0, %%clock; }"
               : "+r"(cycles)
               : "r"(last), "r"(middle ^ 0x9e3779b9u));
  return cycles;
}

// Where the block is, by its first warp.
DEVICE void trace_place(const trace_record& record) {
  u32 multiprocessor;
  asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  constexpr u32 block_bits = LOOKBACK_TRACE_BLOCK_BITS;
  const u32 block = static_cast<u32>(block_index()) & ((1u << block_bits) - 1);
  const u32 place = static_cast<u32>(LOOKBACK_TRACE_PLACE_IS_SET) | multiprocessor << block_bits | block;
  record.store(record.of_tile->place, place, warp_index() == 0);
}

// The steps that a warp comes to once, of which `together` (1, 2 or 4) are kept in registers and stored at once. Several only where
// registers are left: one that costs a block its place on the multiprocessor costs more than the stores (docs/tracing.md).
template <u32 together>
struct traced_warp {
  u64 tile = 0;
  u32 stamps[together] = {};

  DEVICE void step(u32 step) { keep(step, trace_clock()); }

  // LANDED, once the warp holds them.
  template <class Items>
  DEVICE void landed(const Items& items) {
    keep(LOOKBACK_TRACE_LANDED, trace_clock_after(items));
  }

 private:
  DEVICE void keep(u32 step, u32 cycles) {
    stamps[step % together] = cycles;
    if (step % together != together - 1) return;
    const trace_record record(tile);
    const u32 first = step % LOOKBACK_TRACE_HALF / together * together;
    record.store_together(record.of_tile->halves[step / LOOKBACK_TRACE_HALF][warp_index()][first], stamps);
    if (step == LOOKBACK_TRACE_STORED) trace_place(record);
  }
};

DEVICE void trace_step(u32 step, u64 tile) {
  traced_warp<1> warp;
  warp.tile = tile;
  warp.step(step);
}

// A round of reading descriptors, from its begin.
struct traced_round {
  u32 round;
  u64 tile;
  bool if_so;
  u32 read;

  DEVICE traced_round(u32 round_, u64 tile_, u32, bool if_so_) : round(round_), tile(tile_), if_so(if_so_), read(trace_clock()) {}

  template <class Held>
  DEVICE void found(const waiting& wait, u32 descriptors, const Held& held) const {
    trace_record record(tile);
    record.is_on = record.is_on && if_so;
    const u32 words[4] = {read, trace_clock_after(held), wait.missing_tile, descriptors << 5 | warp_index()};
    record.store_together(record.of_tile->rounds[round % LOOKBACK_TRACE_ROUNDS].read, words);
    wait.missing_tile = no_missing_tile;
  }
};

template <class Body>
struct traced_end {
  Body body;
  DEVICE explicit traced_end(Body body_) : body(body_) {}
  DEVICE ~traced_end() { body(); }
};

#else

struct waiting {
  DEVICE bool gives_up(u64, u64, call_site = {}) const { return false; }
  DEVICE bool warp_gives_up(u64, u64, bool, call_site = {}) const { return false; }
};

#endif
#endif

// Counted on the CPU device alone.
DEVICE void count_operator() {}
DEVICE void count_operators(u32) {}
DEVICE void count_lookback(u32, u64) {}

// A word of the launch's parameters (`problem/parameters.cuh`), which are the last of it. By the name of the kernel's own parameter,
// because the text of a definition stands where no launch is at hand.
template <u32 at>
DEVICE u32 parameter_word() {
  constexpr u32 offset = sizeof(lookback_launch) - LOOKBACK_PARAMETER_BYTES + at;
  u32 word;
  asm("ld.param.u32 %0, [lookback_entry_param_0+%1];" : "=r"(word) : "n"(offset));
  return word;
}

// Bit tricks that both platforms spell differently. `mask` is not 0.
DEVICE u32 lowest_set_bit(u32 mask) { return __ffs(static_cast<int>(mask)) - 1; }

// Whether lanes that skip something wait for those that do it: what is cheap had better be done by all of them, without a branch.
constexpr bool lanes_wait_for_each_other = true;

// Adds the bit at a place. Not as `bits | is_set << place`: of four in a row ptxas 13.0 makes an instruction that takes four
// predicates at once (P2R), and of several such words some took predicates that were another's. Sums of f32 by key of u32
// were wrong on an H200.
DEVICE void set_bit_if(u32& bits, u32 place, bool is_set) {
  asm("{ .reg .pred is_set; setp.ne.u32 is_set, %1, 0; @is_set or.b32 %0, %0, %2; }"
      : "+r"(bits)
      : "r"(is_set ? 1u : 0u), "r"(1u << place));
}

DEVICE u32 add_bytes(u32 word, u32 sum) { return __dp4a(word, 0x01010101u, sum); }
DEVICE u32 add_lower_bytes(u32 word, u32 sum) { return __dp4a(word, 0x00000101u, sum); }
DEVICE u32 add_halves(u32 word, u32 sum) { return __dp2a_lo(word, 0x00000101u, sum); }
DEVICE u32 select_bytes(u32 low, u32 high, u32 selector) { return __byte_perm(low, high, selector); }

DEVICE u32 count_bits(u32 word) { return static_cast<u32>(__popc(static_cast<int>(word))); }
DEVICE u32 leading_zeros(u32 word) { return static_cast<u32>(__clz(static_cast<int>(word))); }
DEVICE u64 multiply_high(u64 a, u64 b) { return __umul64hi(a, b); }

}  // namespace lookback
