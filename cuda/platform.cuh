// What the kernels need from the machine they run on: who am I, wait for the others, exchange a
// value with another lane, storage shared by the block. Two implementations of one interface: the
// GPU (CUDA builtins) and the CPU device (a coroutine a CUDA thread, see `host/`).
//
//   u32 thread_index()  block_threads()  lane_index()  warp_index()      u64 block_index()  grid_blocks()
//   void allow_next_launch()                   once all blocks have called it or ended, blocks of the next launch may
//                                              become resident, and wait there
//   void wait_for_launches_before()            what launches before this one wrote is there behind it. Every kernel
//                                              does so before it touches memory (`entry.cuh`), so that a launch also
//                                              waits for all that its predecessor waited for
//   void block_barrier(site)                   all threads of the block
//   void warp_barrier(site)                    all lanes of the warp
//   T    shuffle_up(value, delta, site)        value of lane - delta; lanes below delta keep their own
//   T    shuffle_down(value, delta, site)      value of lane + delta; the last delta lanes keep their own
//   T    shuffle_index(value, lane, site)      value of one lane
//   void shuffle_up_each(values, count, delta, site)     the first `count` of an array of at most 96 bytes,
//   void shuffle_index_each(values, count, lane, site)   all in one exchange
//   void shuffle_down_each(values, count, delta, site)   likewise
//   void add_over_warp_each(values, count, site)         the sum of all lanes' for each of the first `count`: u32 or u64
//   u32  ballot(predicate, site)               one bit a lane
//   u32  lanes_with_byte(byte, site)           those that have the same byte, a bit a lane; no higher bit of it is set
//   void spin_pause(site)                      inside every loop that waits for another block
//   u32  cluster_rank()  cluster_blocks()      this block's place in its thread block cluster, and how many it has. The
//                                              grid is one cluster; from compute capability 9.0 on
//   void cluster_barrier_arrive(site)          release, by all threads of the cluster, each of which then waits before
//   void cluster_barrier_wait(site)            it arrives again. Acquire: until all threads of the cluster have arrived
//   void cluster_barrier_arrive_relaxed(site)  an arrival that releases nothing: it says no more than that the thread runs
//   waiting w                                  the same for a wait that can be named, made before such a loop:
//   bool w.gives_up(tile, missing, site)       once a round by a thread of `tile` that waits for tile `missing`,
//   bool w.warp_gives_up(tile, missing, is_waiting, site)   or by a whole warp, some of whose lanes wait. True
//                                              only in a stress build whose bound on waiting has passed: the
//                                              scan then ends with a wrong result and a report of both tiles
//   void count_operator()                      counted on the CPU device, nothing on the GPU
//   void count_operators(count)                the same for so many, one behind the other
//   u32  add_bytes(word, sum)  add_halves(word, sum)     `sum` and the 4 bytes or 2 halves of a word
//   u32  add_lower_bytes(word, sum)            `sum` and the 2 lower bytes of a word
//   u32  select_bytes(low, high, selector)     the byte of each of the selector's 4 digits, from 0 for the lowest of
//                                              `low` to 7 for the highest of `high`, the lowest first
//   u32  count_bits(word)                      those that are set
//   u32  leading_zeros(word)                   of a word that is not 0, those above its highest bit
//   u64  multiply_high(a, b)                   the upper 64 of the 128 bits of a product
//   SHARED(Type, name)                         uninitialised storage of the block, named `name`
//
// `site` is where the call stands in the source; it defaults to the caller's line on the CPU device
// and is empty on the GPU. Collectives and barriers take every lane (thread) that exists: blocks are
// multiples of 32 threads, and no kernel returns before its last collective.
#pragma once

#include "abi.h"

namespace lookback {
using u8 = lookback_u8;
using u16 = unsigned short;
using u32 = lookback_u32;
using u64 = lookback_u64;
}  // namespace lookback

#if defined(__CUDACC__)
#include "gpu/platform.cuh"
#else
#include "host/platform.h"
#endif
