// One thread block cluster scans the whole array: one launch, nothing shared through global memory, nothing to clear.
// Its blocks take a tile each and meet through distributed shared memory, which is several times nearer than the L2
// cache that tiles of `one_wave` meet in. For arrays that one block is too slow for and one cluster is enough. A longer
// array is a loop over rounds of a tile a block; the prefix is carried in registers.
//
// Two cluster barriers, the first of which costs nothing: it is arrived at before anything else and waited for only
// where all blocks must have started, right before the first store into another block's shared memory. The other comes
// once a round, when the totals of the blocks are stored. Why that is enough:
//
//   A round's totals are read behind its barrier: stored, arrived at (release), waited for (acquire), read.
//   The totals of the blocks have two places that are used in turn. A block that stores those of the next round but
//   one has passed the barrier of the next, and all threads come to that one with the totals of this round read.
//   No block ends while others may store into its shared memory: all that is stored there in a round is stored before
//   the storing block arrives at that round's barrier, which every thread waits for before it goes on, in the last
//   round to the end.
//   The totals of the warps are the block's own and have one place: a warp that writes those of the next round has
//   passed the cluster barrier of this one, to which all warps come with them read.
#pragma once

#include "../block/tile.cuh"

namespace lookback {
namespace scan {

template <class Operator>
struct single_cluster_totals {
  // Aligned, so that several are read at once.
  alignas(16) typename Operator::value_type of_blocks[2][LOOKBACK_MAXIMUM_CLUSTER_BLOCKS];
};

// Blocks whose totals are combined without asking in between whether there are more.
constexpr u32 blocks_joined_at_once = 8;

// Moves `running`, what stands left of the round, behind its last block, and returns what stands left of this one.
// One block after the other, so that the result does not depend on how many blocks a round has. Every thread works it
// out for itself: a step is one operator, where an exchange between lanes is a shuffle more.
template <class Operator>
DEVICE typename Operator::value_type pass_blocks(const typename Operator::value_type* totals, u32 rank, u32 blocks,
                                                 typename Operator::value_type& running) {
  using T = typename Operator::value_type;
  T before = running;
  LOOKBACK_UNROLL
  for (u32 from = 0; from < LOOKBACK_MAXIMUM_CLUSTER_BLOCKS; from += blocks_joined_at_once) {
    if (from >= blocks) break;
    LOOKBACK_UNROLL
    for (u32 i = from; i < from + blocks_joined_at_once; ++i) {
      if (i == rank) before = running;
      const T next = memory::shared_load(totals[i]);
      running = MUTANT(blocks_swapped, "kind=algorithm strategy=single-cluster need=non-commutative",
                       "totals of blocks combined the wrong way round")
                    ? combine<Operator>(next, running)
                    : combine<Operator>(running, next);
    }
  }
  return before;
}

// Reads: input, output, n, tiles, lead. One cluster of at most 16 blocks.
template <class Operator, class Config>
DEVICE void single_cluster(Config config, const lookback_launch& launch) {
  using T = typename Operator::value_type;
  using storage_type = tile_storage<Operator, Config>;
  using totals_type = single_cluster_totals<Operator>;
  SHARED(storage_type, storage);
  SHARED(totals_type, totals);

  const bool start_is_awaited = !MUTANT(cluster_start_unawaited, "kind=barrier strategy=single-cluster",
                                        "a store into a block that may not have started");
  // Pairs with the wait before the first store into another block: this one has started. Nothing is stored yet that
  // others could ask for, so there is nothing to release.
  if (start_is_awaited) cluster_barrier_arrive_relaxed();
  const u32 rank = cluster_rank();
  const u32 blocks = cluster_blocks();
  const u32 thread = thread_index();
  tile<Operator, Config> mine(config, storage, launch, rank);
  mine.load(launch);
  // Totals of blocks that the cluster does not have.
  if (thread >= blocks && thread < LOOKBACK_MAXIMUM_CLUSTER_BLOCKS) {
    memory::shared_store(totals.of_blocks[0][thread], Operator::identity());
    memory::shared_store(totals.of_blocks[1][thread], Operator::identity());
  }
  T carry = Operator::identity();
  u32 place = 0;
  for (u64 first = 0;; first += blocks) {
    const bool is_last = first + blocks >= launch.tiles;
    tile<Operator, Config> next(config, storage, launch, first + blocks + rank);
    if (!is_last) next.load(launch);  // on its way while this one is scanned

    // Behind the end of the array there are the identity's tiles.
    const T total = mine.reduce_and_join(storage.warp_totals);
    if (first == 0 && start_is_awaited) {
      cluster_barrier_wait();  // Pairs with the arrivals at the start.
    }
    DELAY_POINT(before_cluster_store);
    if (thread < blocks) memory::cluster_store(totals.of_blocks[place][rank], thread, total);
    // Pairs with the wait below: the totals are stored.
    const bool is_met = !MUTANT(cluster_barrier_dropped, "kind=barrier strategy=single-cluster",
                                "none after the totals of the blocks");
    if (is_met) {
      if (MUTANT(cluster_arrival_relaxed, "kind=ordering strategy=single-cluster",
                 "the arrival behind the totals of the blocks releases nothing")) {
        cluster_barrier_arrive_relaxed();
      } else {
        cluster_barrier_arrive();
      }
      // Nobody's total stands left of the first block, which needs this wait all the same.
      const bool leaves = MUTANT(first_block_leaves, "kind=barrier strategy=single-cluster",
                                 "the first block ends while others may store into its shared memory") &&
                          is_last && rank == 0;
      if (!leaves) cluster_barrier_wait();  // Pairs with the arrivals above.
      if (leaves) {
        mine.finish(carry);
        mine.store(launch);
        return;
      }
    }
    const T before = pass_blocks<Operator>(totals.of_blocks[place], rank, blocks, carry);
    mine.finish(before);
    mine.store(launch);
    if (is_last) break;
    if (MUTANT(round_carry_dropped, "kind=algorithm strategy=single-cluster need=windows",
               "the prefix of a round is left out")) {
      carry = Operator::identity();
    }
    if (!MUTANT(cluster_totals_in_one_place, "kind=barrier strategy=single-cluster need=windows",
                "the next round's totals over those that other blocks still read")) {
      place ^= 1;
    }
    mine.take_items(next);
  }
}

}  // namespace scan
}  // namespace lookback
