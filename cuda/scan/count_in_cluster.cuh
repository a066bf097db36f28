// A histogram of few elements in one launch: the blocks of one thread block cluster count apart, and exchange what they have counted
// through distributed shared memory. Where blocks add to counts in global memory (`count_bins.cuh`), a launch before has to clear these,
// and blocks wait for each other at every one of them. Here each block owns a share of the bins: the others store their counts into it,
// and it stores the sums.
//
// That no block ends while others may store into its shared memory follows from the wait of its threads for all of those stores (as in
// `single_cluster.cuh`).
#pragma once

#include "cluster_start.cuh"
#include "count_bins.cuh"

namespace lookback {
namespace scan {

// What the blocks of a cluster have counted of the bins of one of them, one block's counts behind the other's.
template <u32 bins>
struct counts_of_blocks {
  // As many more as a share of the bins may be rounded up by.
  u32 counts[bins + LOOKBACK_MAXIMUM_CLUSTER_BLOCKS];
  copy_barrier stored;
};

// Reads: output (written: a count a bin), n, and what the problem loads. One cluster of 2 to 16 blocks.
template <class Problem, class Config>
DEVICE void count_in_cluster(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    if constexpr (Problem::bins <= LOOKBACK_CLUSTER_BINS) {
      using Count = typename Problem::state_type;
      constexpr u32 bins = Problem::bins;
      using bins_type = block_counts<bins, 1>;
      using counts_type = counts_of_blocks<bins>;
      SHARED(bins_type, own);
      SHARED(counts_type, of_blocks);
      const u32 rank = cluster_rank();
      const u32 blocks = cluster_blocks();
      const u32 thread = thread_index();
      const u32 threads = config.block_threads;
      const u32 share = (bins + blocks - 1) / blocks;
      const u32 first = rank * share;
      const u32 mine = first >= bins ? 0 : (bins - first < share ? bins - first : share);
      start_cluster(of_blocks.stored, blocks * mine * static_cast<u32>(sizeof(u32)));
      own.clear(threads);  // before a barrier of the block behind which it counts
      const auto of_block = own.of_lane();
      count_in_block<Problem>(config, launch, [&](u32 bin, u32 total) { of_block.add(bin, total); });
      block_barrier();  // all is in its bin
      await_cluster();
      for (u32 bin = thread; bin < bins; bin += threads) {
        const u32 owner = bin / share;
        cluster_store_async(of_blocks.counts[rank * share + bin - owner * share], owner, own.total(bin), of_blocks.stored);
      }
      // Pairs with the stores of all blocks: their counts of this block's bins are there.
      barrier_wait_for_cluster(of_blocks.stored, 0);
      Count* const output = static_cast<Count*>(launch.output);
      for (u32 i = thread; i < mine; i += threads) {
        Count sum = 0;
        for (u32 block = 0; block < blocks; ++block) sum += memory::shared_load(of_blocks.counts[block * share + i]);
        memory::store(output + first + i, sum);
      }
    }
  }
}

}  // namespace scan
}  // namespace lookback
