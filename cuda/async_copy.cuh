// Copies from global to shared memory that go on while the warp that asked for them does something else, and
// the barriers that tell when they have landed. Two implementations of one interface: on the GPU one bulk copy
// and a hardware barrier from compute capability 9.0 on, loads through registers and a barrier of two words
// before that (`gpu/async_copy.cuh`); on the CPU device the executor, which lets a copy land at any later
// scheduling point (`host/async_copy.h`).
//
//   copy_barrier b                             in shared memory. It goes through phases; a phase is over when as many
//                                              arrivals have come as it was initialised for, and all that was to be
//                                              copied under it has landed. Phases are numbered from 0; what is said
//                                              of them is the parity of the number
//   void barrier_initialize(b, arrivals, site)     by one thread
//   void barriers_initialized(site)            by that thread behind the last of them, and before the block
//                                              barrier behind which others use them
//   void barrier_arrive(b, site)               by one thread. Release, pairs with the acquire in `barrier_wait`
//   void barrier_arrive_relaxed(b, site)       an arrival that releases nothing
//   void barrier_wait(b, parity, site)         by all lanes of a warp: until the latest phase of that parity is over;
//                                              at once for parity 1 in phase 0. Acquire, pairs with the release of
//                                              every arrival in that phase, and with its copies
//   void barrier_wait_relaxed(b, parity, site)     a wait that sees the phase and acquires nothing
//   void copy_and_arrive(T* to, const T* from, count, b, site)   by all lanes of a warp: copies `count` elements to
//                                              shared memory and arrives once, for all that the lanes stored there
//                                              before, too. Both addresses and the size are multiples of 16 bytes;
//                                              of no elements it is an arrival alone. Whoever may have read or
//                                              written what is overwritten is ordered before by a `barrier_wait` of
//                                              the caller
//   void copy_and_arrive_relaxed(T* to, const T* from, count, b, site)     the same, but the arrival releases nothing
//   void copy_before_arrival(T* to, const T* from, count, b, site)   the same without the arrival, which has to come
//                                              later from the same warp. From 9.0 on two copies are under way side by
//                                              side then
//   void copy_rows_before_arrival(T* to, const T* from, columns, rows, to_pitch, from_pitch, b, site)   the same for the rows
//                                              of a matrix, whose begins are so many elements apart. From 9.0 on each lane
//                                              has copies under way
// From compute capability 9.0 on, where there are clusters:
//   void barriers_initialized_for_cluster(site)    as `barriers_initialized`, for blocks of the cluster: before the
//                                              cluster barrier behind which they store
//   void barrier_arrive_expecting(b, bytes, site)  by one thread: arrives, and the phase is not over before so many
//                                              bytes that others store in it have landed
//   void barrier_arrive_expecting_relaxed(b, bytes, site)  the same, but releases nothing
//   void cluster_store_async(T& where, rank, T value, b, site)   to the same place in the shared memory of block `rank`
//                                              of the cluster, which has started and not ended. Lands at some later
//                                              time, and counts as sizeof(T) bytes, which are 4, 8 or 16, in the
//                                              current phase of that block's `b`. Hands over nothing but the value
//   void barrier_wait_for_cluster(b, parity, site)  as `barrier_wait`, and acquires what other blocks stored
//   void barrier_wait_for_cluster_relaxed(b, parity, site)  the same, but acquires nothing
// No kernel waits or arrives relaxed: that is what a fault of the rule `weakened` does (`src/kernels/rules.rs`).
// Everywhere:
//   u8*  dynamic_shared(bytes, site)           the block's shared memory whose size the launch gives, aligned to 128
#pragma once

#include "memory.cuh"

#if defined(__CUDACC__)
#include "gpu/async_copy.cuh"
#else
#include "host/async_copy.h"
#endif
