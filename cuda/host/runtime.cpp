// The one definition that host kernels share: the pointer to the running CUDA thread's context.
#include <cstddef>

#include "executor.h"
#include "../platform.cuh"

extern "C" {
__thread lookback_thread* lookback_current_thread = nullptr;

lookback_thread** lookback_current_thread_slot() { return &lookback_current_thread; }
}

extern "C" lookback_u32 lookback_executor_layout(lookback_u32* out, lookback_u32 capacity) {
  const std::size_t layout[] = {
      sizeof(lookback_counters),
      sizeof(lookback_warp),
      offsetof(lookback_warp, parity),
      offsetof(lookback_warp, ballots),
      offsetof(lookback_warp, slots),
      sizeof(lookback_memory_backend),
      offsetof(lookback_memory_backend, load),
      offsetof(lookback_memory_backend, store),
      offsetof(lookback_memory_backend, fetch_add),
      offsetof(lookback_memory_backend, fence),
      sizeof(lookback_executor),
      offsetof(lookback_executor, rendezvous),
      offsetof(lookback_executor, exchange),
      offsetof(lookback_executor, block_barrier),
      offsetof(lookback_executor, spin_pause),
      offsetof(lookback_executor, access_point),
      offsetof(lookback_executor, shared_storage),
      offsetof(lookback_executor, misaligned),
      offsetof(lookback_executor, copy_barrier_initialize),
      offsetof(lookback_executor, copy_barrier_arrive),
      offsetof(lookback_executor, copy_barrier_expect),
      offsetof(lookback_executor, copy_barrier_wait),
      offsetof(lookback_executor, copy_to_shared),
      offsetof(lookback_executor, cluster_barrier_arrive),
      offsetof(lookback_executor, cluster_barrier_wait),
      offsetof(lookback_executor, store_to_cluster),
      sizeof(lookback_thread),
      offsetof(lookback_thread, warp),
      offsetof(lookback_thread, counters),
      offsetof(lookback_thread, executor),
      offsetof(lookback_thread, backend),
      offsetof(lookback_thread, clock),
      offsetof(lookback_thread, block_index),
      offsetof(lookback_thread, grid_blocks),
      offsetof(lookback_thread, thread_index),
      offsetof(lookback_thread, lane_index),
      offsetof(lookback_thread, warp_index),
      offsetof(lookback_thread, block_threads),
      offsetof(lookback_thread, intercept),
      offsetof(lookback_thread, mutant),
      offsetof(lookback_thread, waiting_tile),
      offsetof(lookback_thread, missing_tile),
  };
  const lookback_u32 count = sizeof(layout) / sizeof(layout[0]);
  for (lookback_u32 i = 0; i < count && i < capacity; ++i) out[i] = static_cast<lookback_u32>(layout[i]);
  return count;
}
