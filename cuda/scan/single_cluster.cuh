// One thread block cluster scans the whole array: one launch, nothing shared through global memory, nothing to clear.
// Each block scans a tile and exchanges totals through distributed shared memory, whose latency is a fraction of that of
// the L2 cache. For arrays that are too long for one block and short enough for one cluster. A longer array is a loop
// over rounds of a tile a block; the prefix is carried in registers.
//
// Each block stores its total into all others, which wait for those stores alone: a fence and a cluster barrier instead
// were measured to take half a microsecond longer. A cluster barrier tells when the stores of a round may begin. Threads
// arrive at it long before they wait for it: in the first round before anything else, later as soon as they have read
// the totals of a round. Why that is enough:
//
//   A round's totals are read behind the wait for its stores, and those of the next round are not stored before all
//   threads of all blocks have read them.
//   The first store into another block comes behind that block's start and the initialisation of its barrier.
//   No block ends while others may store into its shared memory: every thread waits for all stores of the last round.
//   The totals of the warps have one place, inside their block: a warp that writes those of the next round has passed
//   the cluster barrier, at which no warp arrives before it has read those of this round.
#pragma once

#include "../block/tile.cuh"
#include "cluster_start.cuh"

namespace lookback {
namespace scan {

template <class Problem>
struct single_cluster_totals {
  using published_type = typename Problem::published_type;
  // What is stored into another block is whole words.
  using word = typename choice<(sizeof(published_type) < sizeof(u32)), u32, published_type>::type;

  // Aligned, so that several are read with one access.
  alignas(16) word of_blocks[LOOKBACK_MAXIMUM_CLUSTER_BLOCKS];
  copy_barrier stored;

  DEVICE static word word_of(typename Problem::state_type total) { return static_cast<word>(Problem::publish(total)); }
  DEVICE typename Problem::state_type of_block(u32 rank) const {
    return Problem::adopt(static_cast<published_type>(memory::shared_load(of_blocks[rank])));
  }
};

// Blocks whose totals are combined before the next test whether there are more.
constexpr u32 blocks_joined_together = 8;

// Adds the totals of a round to `running`, what stands left of it, and returns what stands left of this block. One block
// after the other, so that the result does not depend on how many blocks a round has. Every thread does all of it: a
// step is then one operator and no shuffle.
template <class Problem, class T>
DEVICE T pass_blocks(const single_cluster_totals<Problem>& totals, u32 rank, u32 blocks, T& running) {
  using Operator = typename Problem::operator_type;
  T before = running;
  LOOKBACK_UNROLL
  for (u32 from = 0; from < LOOKBACK_MAXIMUM_CLUSTER_BLOCKS; from += blocks_joined_together) {
    if (from >= blocks) break;
    LOOKBACK_UNROLL
    for (u32 i = from; i < from + blocks_joined_together; ++i) {
      if (i == rank) before = running;
      const T next = totals.of_block(i);
      running = combine<Operator>(running, next);
    }
  }
  return before;
}

// Reads: input, output, n, tiles, lead. One cluster of 2 to 16 blocks.
template <class Problem, class Config>
DEVICE void single_cluster(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  using storage_type = tile_storage<Problem, Config>;
  using totals_type = single_cluster_totals<Problem>;
  SHARED(storage_type, storage);
  SHARED(totals_type, totals);

  const u32 rank = cluster_rank();
  const u32 blocks = cluster_blocks();
  const u32 thread = thread_index();
  const u32 round_bytes = blocks * static_cast<u32>(sizeof(typename totals_type::word));
  start_cluster(totals.stored, round_bytes);
  tile<Problem, Config> mine(config, storage, launch, rank);
  mine.load(launch);
  // Blocks that the cluster does not have count as the identity.
  if (thread >= blocks && thread < LOOKBACK_MAXIMUM_CLUSTER_BLOCKS) {
    memory::shared_store(totals.of_blocks[thread], totals_type::word_of(Operator::identity()));
  }
  T carry = Operator::identity();
  u32 parity = 0;
  for (u64 first = 0;; first += blocks) {
    const bool is_last = first + blocks >= launch.tiles;
    tile<Problem, Config> next(config, storage, launch, first + blocks + rank);
    if (!is_last) next.load(launch);  // on its way while this one is scanned

    // Tiles behind the end of the array are all padding.
    const T total = mine.reduce_and_join(storage.warp_totals);
    if (first == 0) await_cluster();
    if (thread < blocks) {
      cluster_store_async(totals.of_blocks[rank], thread, totals_type::word_of(total), totals.stored);
    }
    // Pairs with the stores of all blocks: their totals of this round are there. In the last round the first block
    // needs no other's total, but it must wait all the same.
    barrier_wait_for_cluster(totals.stored, parity);
    const T before = pass_blocks(totals, rank, blocks, carry);
    if (!is_last) {
      if (thread == 0) barrier_arrive_expecting(totals.stored, round_bytes);
      // Release, pairs with the wait before the stores of the next round: this one's totals are read.
      cluster_barrier_arrive();
    }
    mine.finish(launch, before);
    mine.store(launch);
    if (is_last) break;
    cluster_barrier_wait();  // Pairs with the arrivals above.
    parity ^= 1;
    mine.adopt(next);
  }
}

}  // namespace scan
}  // namespace lookback
