// The start of a thread block cluster whose blocks store into each other's shared memory: a block may do so when the other one has
// started and its barrier, which counts what lands there, has been made.
#pragma once

#include "../async_copy.cuh"

namespace lookback {
namespace scan {

// By all threads of each block, before anything else: makes `stored`, and opens its first phase for so many bytes that blocks of the
// cluster are going to store into this one.
DEVICE void start_cluster(copy_barrier& stored, u32 bytes) {
  if (thread_index() == 0) {
    barrier_initialize(stored, 1);
    barriers_initialized_for_cluster();
    barrier_arrive_expecting(stored, bytes);
  }
  // Pairs with the wait in `await_cluster`: this block has started and its barrier is there, which the fence above hands over. Relaxed:
  // others read nothing else of it.
  cluster_barrier_arrive_relaxed();
}

// By all threads, before the first store into another block.
DEVICE void await_cluster() {
  cluster_barrier_wait();  // Pairs with the arrivals in `start_cluster`.
}

}  // namespace scan
}  // namespace lookback
