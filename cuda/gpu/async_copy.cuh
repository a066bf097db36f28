// Asynchronous copies on a GPU. Included by `../async_copy.cuh`, which documents the interface.
#pragma once

namespace lookback {

DEVICE u8* dynamic_shared(u32, call_site = {}) {
  // Aligned as whole lines of memory are: a bulk copy asks for 16.
  extern __shared__ __align__(128) u8 lookback_dynamic_shared[];
  return lookback_dynamic_shared;
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// An mbarrier.
struct alignas(8) copy_barrier {
  u64 word;
};

DEVICE u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

DEVICE void barrier_initialize(copy_barrier& barrier, u32 arrivals, call_site = {}) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}

DEVICE void barriers_initialized(call_site = {}) {
  // The copy engine sees shared memory through another proxy than the store that made the barrier.
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

DEVICE void barrier_arrive(copy_barrier& barrier, call_site = {}) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

DEVICE void barrier_arrive_relaxed(copy_barrier& barrier, call_site = {}) {
  asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

DEVICE bool barrier_phase_is_over(copy_barrier& barrier, u32 parity) {
  u32 is_over;
  asm volatile(
      "{ .reg .pred over; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 over, [%1], %2; selp.u32 %0, 1, 0, over; }"
      : "=r"(is_over)
      : "r"(shared_address(&barrier)), "r"(parity)
      : "memory");
  return is_over != 0;
}

DEVICE bool barrier_phase_is_over_relaxed(copy_barrier& barrier, u32 parity) {
  u32 is_over;
  asm volatile(
      "{ .reg .pred over; mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 over, [%1], %2; selp.u32 %0, 1, 0, over; }"
      : "=r"(is_over)
      : "r"(shared_address(&barrier)), "r"(parity)
      : "memory");
  return is_over != 0;
}

DEVICE void barriers_initialized_for_cluster(call_site = {}) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

DEVICE void barrier_arrive_expecting(copy_barrier& barrier, u32 bytes, call_site = {}) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}

DEVICE void barrier_arrive_expecting_relaxed(copy_barrier& barrier, u32 bytes, call_site = {}) {
  asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}

DEVICE void barrier_wait_for_cluster(copy_barrier& barrier, u32 parity, call_site = {}) {
  constexpr u64 no_tile = ~static_cast<u64>(0);
  const waiting wait;
  for (;;) {
    u32 is_over;
    asm volatile(
        "{ .reg .pred over; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%1], %2; selp.u32 %0, 1, 0, "
        "over; }"
        : "=r"(is_over)
        : "r"(shared_address(&barrier)), "r"(parity)
        : "memory");
    if (is_over != 0 || wait.gives_up(no_tile, no_tile)) break;
  }
  __syncwarp();  // lanes may come back from the wait one by one
}

DEVICE void barrier_wait_for_cluster_relaxed(copy_barrier& barrier, u32 parity, call_site = {}) {
  constexpr u64 no_tile = ~static_cast<u64>(0);
  const waiting wait;
  for (;;) {
    u32 is_over;
    asm volatile(
        "{ .reg .pred over; mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 over, [%1], %2; selp.u32 %0, 1, 0, "
        "over; }"
        : "=r"(is_over)
        : "r"(shared_address(&barrier)), "r"(parity)
        : "memory");
    if (is_over != 0 || wait.gives_up(no_tile, no_tile)) break;
  }
  __syncwarp();
}

// A window of shared memory is addressed by 32 bits; `mapa` gives that of another block's.
DEVICE u32 address_in_cluster(const void* p, u32 rank) {
  u32 there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(p)), "r"(rank));
  return there;
}

template <class T>
DEVICE void cluster_store_async(T& where, u32 rank, T value, copy_barrier& barrier, call_site = {}) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "whole words");
  const u32 p = address_in_cluster(&where, rank);
  const u32 counted_by = address_in_cluster(&barrier, rank);
  u32 words[sizeof(T) / 4];
  memcpy(words, &value, sizeof(T));
  if constexpr (sizeof(T) == 16) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(p),
        "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(counted_by)
        : "memory");
  } else if constexpr (sizeof(T) == 8) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(p),
                 "r"(words[0]), "r"(words[1]), "r"(counted_by)
                 : "memory");
  } else {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(p), "r"(words[0]),
                 "r"(counted_by)
                 : "memory");
  }
}

// By one lane, for a barrier that expects the bytes.
DEVICE void copy_bulk(void* to, const void* from, u32 bytes, copy_barrier& barrier) {
  // Loads and stores of the threads come before what the copy engine writes, which goes through another proxy.
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  // An address of the block's own shared memory is one of its cluster's; spelled so, the instruction needs no
  // newer PTX than the architecture does.
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}

template <class T>
DEVICE void copy_and_arrive(T* to, const T* from, u32 count, copy_barrier& barrier, call_site = {}) {
  __syncwarp();  // what the other lanes stored is there before the arrival says so
  if (lane_index() != 0) return;
  const u32 bytes = count * static_cast<u32>(sizeof(T));
  barrier_arrive_expecting(barrier, bytes);
  if (bytes != 0) copy_bulk(to, from, bytes, barrier);
}

template <class T>
DEVICE void copy_and_arrive_relaxed(T* to, const T* from, u32 count, copy_barrier& barrier, call_site = {}) {
  __syncwarp();
  if (lane_index() != 0) return;
  const u32 bytes = count * static_cast<u32>(sizeof(T));
  barrier_arrive_expecting_relaxed(barrier, bytes);
  if (bytes != 0) copy_bulk(to, from, bytes, barrier);
}

template <class T>
DEVICE void copy_before_arrival(T* to, const T* from, u32 count, copy_barrier& barrier, call_site = {}) {
  const u32 bytes = count * static_cast<u32>(sizeof(T));
  if (lane_index() != 0 || bytes == 0) return;
  // Relaxed: it hands over nothing, and comes before the arrival of the same thread.
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
  copy_bulk(to, from, bytes, barrier);
}

template <class T>
DEVICE void copy_rows_before_arrival(T* to, const T* from, u32 columns, u32 rows, u32 to_pitch, u64 from_pitch,
                                     copy_barrier& barrier, call_site = {}) {
  const u32 bytes = columns * static_cast<u32>(sizeof(T));
  if (lane_index() == 0) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(rows * bytes)
                 : "memory");
  }
  __syncwarp();  // the bytes are expected before the first of them lands
  for (u32 row = lane_index(); row < rows; row += LOOKBACK_WARP_LANES) {
    copy_bulk(to + row * to_pitch, from + row * from_pitch, bytes, barrier);
  }
}

#else

// Two counters: an mbarrier would need 8.0, and its transaction counts 9.0.
struct copy_barrier {
  u32 phase;
  u32 arrived;
  u32 arrivals;
};

DEVICE void barrier_initialize(copy_barrier& barrier, u32 arrivals, call_site = {}) {
  barrier.phase = 0;
  barrier.arrived = 0;
  barrier.arrivals = arrivals;
}

DEVICE void barriers_initialized(call_site = {}) {}

DEVICE void barrier_arrive(copy_barrier& barrier, call_site = {}) {
  u32 before;
  // Acquire-release, pairs with itself: whoever comes last has seen what the others did, and hands it on.
  asm volatile("atom.acq_rel.cta.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(&barrier.arrived) : "memory");
  if (before + 1 != barrier.arrivals) return;
  // Nobody arrives for the next phase before this one is over.
  asm volatile("st.relaxed.cta.u32 [%0], 0;" ::"l"(&barrier.arrived) : "memory");
  u32 phase;
  asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(phase) : "l"(&barrier.phase) : "memory");
  // Release, pairs with the acquire in `barrier_phase_is_over`.
  asm volatile("st.release.cta.u32 [%0], %1;" ::"l"(&barrier.phase), "r"(phase + 1) : "memory");
}

// The count decides who comes last, and nothing is handed over by it or by the phase.
DEVICE void barrier_arrive_relaxed(copy_barrier& barrier, call_site = {}) {
  u32 before;
  asm volatile("atom.relaxed.cta.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(&barrier.arrived) : "memory");
  if (before + 1 != barrier.arrivals) return;
  asm volatile("st.relaxed.cta.u32 [%0], 0;" ::"l"(&barrier.arrived) : "memory");
  u32 phase;
  asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(phase) : "l"(&barrier.phase) : "memory");
  asm volatile("st.relaxed.cta.u32 [%0], %1;" ::"l"(&barrier.phase), "r"(phase + 1) : "memory");
}

DEVICE bool barrier_phase_is_over(copy_barrier& barrier, u32 parity) {
  u32 phase;
  // Acquire, pairs with the release in `barrier_arrive`.
  asm volatile("ld.acquire.cta.u32 %0, [%1];" : "=r"(phase) : "l"(&barrier.phase) : "memory");
  return (phase & 1) != parity;
}

DEVICE bool barrier_phase_is_over_relaxed(copy_barrier& barrier, u32 parity) {
  u32 phase;
  asm volatile("ld.relaxed.cta.u32 %0, [%1];" : "=r"(phase) : "l"(&barrier.phase) : "memory");
  return (phase & 1) != parity;
}

template <class T>
DEVICE void copy_before_arrival(T* to, const T* from, u32 count, copy_barrier&, call_site = {}) {
  constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(T);
  // Loads in flight at one time: 8 of 16 bytes a lane.
  constexpr u32 loads = 8;
  const u32 lines = count / line;
  for (u32 base = 0; base < lines; base += loads * LOOKBACK_WARP_LANES) {
    T vectors[loads][line];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < loads; ++i) {
      const u32 at = base + i * LOOKBACK_WARP_LANES + lane_index();
      if (at < lines) memory::load_vector<line>(from + at * line, vectors[i]);
    }
    LOOKBACK_UNROLL
    for (u32 i = 0; i < loads; ++i) {
      const u32 at = base + i * LOOKBACK_WARP_LANES + lane_index();
      if (at < lines) memory::shared_store_vector<line>(to + at * line, vectors[i]);
    }
  }
}

template <class T>
DEVICE void copy_rows_before_arrival(T* to, const T* from, u32 columns, u32 rows, u32 to_pitch, u64 from_pitch,
                                     copy_barrier& barrier, call_site = {}) {
  for (u32 row = 0; row < rows; ++row) copy_before_arrival(to + row * to_pitch, from + row * from_pitch, columns, barrier);
}

template <class T>
DEVICE void copy_and_arrive(T* to, const T* from, u32 count, copy_barrier& barrier, call_site = {}) {
  copy_before_arrival(to, from, count, barrier);
  __syncwarp();  // what all lanes stored is there before the arrival says so
  if (lane_index() == 0) barrier_arrive(barrier);
}

template <class T>
DEVICE void copy_and_arrive_relaxed(T* to, const T* from, u32 count, copy_barrier& barrier, call_site = {}) {
  copy_before_arrival(to, from, count, barrier);
  __syncwarp();
  if (lane_index() == 0) barrier_arrive_relaxed(barrier);
}

#endif

DEVICE void barrier_wait(copy_barrier& barrier, u32 parity, call_site = {}) {
  constexpr u64 no_tile = ~static_cast<u64>(0);
  const waiting wait;
  while (!barrier_phase_is_over(barrier, parity)) {
    if (wait.gives_up(no_tile, no_tile)) break;
  }
  __syncwarp();  // lanes may come back from the wait one by one
}

DEVICE void barrier_wait_relaxed(copy_barrier& barrier, u32 parity, call_site = {}) {
  constexpr u64 no_tile = ~static_cast<u64>(0);
  const waiting wait;
  while (!barrier_phase_is_over_relaxed(barrier, parity)) {
    if (wait.gives_up(no_tile, no_tile)) break;
  }
  __syncwarp();
}

}  // namespace lookback
