// A kernel of one's own on the blocks of the scans: the odd numbers of an array, in their order. What no definition says: a
// thread looks at its numbers once to count them and stores them once it knows where, and the last block leaves the count.
#include "own/chain.cuh"

using lookback::u32;
using lookback::u64;

struct odd_config {
  static constexpr u32 block_threads = 128;
  static constexpr u32 items_of_thread = 8;
};

struct odd_arguments {
  const u32* input;
  u32* output;  // room for n
  u32* kept;    // how many they are
  u64 n;
  lookback::chain_memory chain;
};

DEVICE void keep_odd(const odd_arguments& arguments) {
  using namespace lookback;
  using sum = operators::sum<u32>;
  using chain_type = tile_chain<sum>;
  struct totals_type {
    u32 of_warp[odd_config::block_threads / LOOKBACK_WARP_LANES];
  };
  SHARED(chain_type::shared_type, shared);
  SHARED(totals_type, totals);

  chain_type chain(arguments.chain, shared);
  constexpr u32 items_of_thread = odd_config::items_of_thread;
  const u64 first = (chain.tile() * odd_config::block_threads + thread_index()) * items_of_thread;
  u32 items[items_of_thread];
  u32 count = 0;
  for (u32 i = 0; i < items_of_thread; ++i) {
    items[i] = first + i < arguments.n ? memory::load(arguments.input + first + i) : 0;
    count += items[i] & 1;
  }

  // Counts of the lanes to the left, then of the warps to the left.
  u32 inclusive = count;
  for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
    const u32 left = shuffle_up(inclusive, distance);
    if (lane_index() >= distance) inclusive += left;
  }
  if (lane_index() == LOOKBACK_WARP_LANES - 1) memory::shared_store(totals.of_warp[warp_index()], inclusive);
  block_barrier();  // the totals of the warps are written
  const team_scan_result<u32> warps = join_warps<sum>(odd_config(), totals.of_warp);

  const u32 before = chain.prefix(warps.total);
  u32 place = before + warps.exclusive + inclusive - count;
  for (u32 i = 0; i < items_of_thread; ++i) {
    if (items[i] & 1) memory::store(arguments.output + place++, items[i]);
  }
  const bool is_last = chain.tile() + 1 == grid_blocks();
  if (is_last && thread_index() == 0) memory::store(arguments.kept, before + warps.total);
}
