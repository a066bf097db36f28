// `async_copy.cuh` on the CPU device: the executor keeps the barriers and lets the copies land.
#pragma once

namespace lookback {

DEVICE u8* dynamic_shared(u32 bytes, call_site where = {}) {
  constexpr u32 alignment = 128;
  lookback_thread* thread = host::current();
  return static_cast<u8*>(
      thread->executor->shared_storage(thread, nullptr, bytes, alignment, where.file, where.line));
}

// Its address names the barrier; what it counts is the executor's.
struct alignas(8) copy_barrier {
  u64 word;
};

DEVICE void barrier_initialize(copy_barrier& barrier, u32 arrivals, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->copy_barrier_initialize(thread, &barrier, arrivals, where.file, where.line);
}

DEVICE void barriers_initialized(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->copy_barriers_initialized(thread, 0, where.file, where.line);
}

DEVICE void barriers_initialized_for_cluster(call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->copy_barriers_initialized(thread, 1, where.file, where.line);
}

DEVICE void barrier_arrive(copy_barrier& barrier, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->copy_barrier_arrive(thread, &barrier, 1, where.file, where.line);
}

DEVICE void barrier_arrive_relaxed(copy_barrier& barrier, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->copy_barrier_arrive(thread, &barrier, 0, where.file, where.line);
}

DEVICE void barrier_wait(copy_barrier& barrier, u32 parity, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->copy_barrier_wait(thread, &barrier, parity, 1, where.file, where.line);
}

DEVICE void barrier_wait_relaxed(copy_barrier& barrier, u32 parity, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->copy_barrier_wait(thread, &barrier, parity, 0, where.file, where.line);
}

DEVICE void barrier_wait_for_cluster(copy_barrier& barrier, u32 parity, call_site where = {}) {
  barrier_wait(barrier, parity, where);
}

DEVICE void barrier_wait_for_cluster_relaxed(copy_barrier& barrier, u32 parity, call_site where = {}) {
  barrier_wait_relaxed(barrier, parity, where);
}

DEVICE void barrier_arrive_expecting(copy_barrier& barrier, u32 bytes, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->copy_barrier_expect(thread, &barrier, bytes, where.file, where.line);
  barrier_arrive(barrier, where);
}

DEVICE void barrier_arrive_expecting_relaxed(copy_barrier& barrier, u32 bytes, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->executor->copy_barrier_expect(thread, &barrier, bytes, where.file, where.line);
  barrier_arrive_relaxed(barrier, where);
}

template <class T>
DEVICE void cluster_store_async(T& place, u32 rank, T value, copy_barrier& barrier, call_site where = {}) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "whole words");
  lookback_thread* thread = host::current();
  thread->executor->store_to_cluster(thread, &place, &value, sizeof(T), rank, &barrier, where.file, where.line);
}

template <class T>
DEVICE void copy_before_arrival(T* to, const T* from, u32 count, copy_barrier& barrier, call_site where = {}) {
  lookback_thread* thread = host::current();
  const u32 bytes = count * static_cast<u32>(sizeof(T));
  if (thread->lane_index != 0 || bytes == 0) return;
  memory::host::check_alignment(thread, to, LOOKBACK_VECTOR_BYTES, where);
  memory::host::check_alignment(thread, from, LOOKBACK_VECTOR_BYTES, where);
  // A size that is no multiple is as wrong as an address that is none.
  memory::host::check_alignment(thread, to + count, LOOKBACK_VECTOR_BYTES, where);
  thread->counters->element_reads += count;
  thread->executor->copy_to_shared(thread, to, from, bytes, &barrier, where.file, where.line);
}

template <class T>
DEVICE void copy_rows_before_arrival(T* to, const T* from, u32 columns, u32 rows, u32 to_pitch, u64 from_pitch,
                                     copy_barrier& barrier, call_site where = {}) {
  for (u32 row = 0; row < rows; ++row) {
    copy_before_arrival(to + row * to_pitch, from + row * from_pitch, columns, barrier, where);
  }
}

template <class T>
DEVICE void copy_and_arrive(T* to, const T* from, u32 count, copy_barrier& barrier, call_site where = {}) {
  warp_barrier(where);  // what the other lanes stored is there before the arrival says so
  copy_before_arrival(to, from, count, barrier, where);
  if (lane_index() == 0) barrier_arrive(barrier, where);
}

template <class T>
DEVICE void copy_and_arrive_relaxed(T* to, const T* from, u32 count, copy_barrier& barrier, call_site where = {}) {
  warp_barrier(where);
  copy_before_arrival(to, from, count, barrier, where);
  if (lane_index() == 0) barrier_arrive_relaxed(barrier, where);
}

}  // namespace lookback
