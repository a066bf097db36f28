// The blocks of the scans for a kernel of one's own, which includes this file (docs/problems.md, "A kernel of your own").
// Each is a file that the scans are made of, and is stressed with them: warp and block scans (`warp/`, `block/`), descriptors
// (`descriptor.cuh`), tickets and epochs (`scan/single_pass.cuh`), the look-back (`scan/lookback.cuh`). `tile_chain` puts them
// together.
#pragma once

#include "../block/warp_totals.cuh"
#include "../problem/plain.cuh"
#include "../scan/lookback.cuh"

namespace lookback {

// Memory of a chain; `lookback::kernels::own::ChainMemory` says how much it is and what lies where.
struct chain_memory {
  struct lookback_control* control;
  void* descriptors;
  u64 capacity;  // descriptors that there are, no fewer than blocks
};

// What stands left of each block of a launch, by decoupled look-back (Merrill & Garland, 2016): a block comes to a total of its
// own, and learns what those before it come to together, in order, while blocks behind it are still at work or have not begun.
// Every thread of every block makes one, asks it once, and meets the others of its block in both. Grid and blocks have one
// dimension, and blocks whole warps.
template <class Operator>
class tile_chain {
  using problem = plain<Operator>;

  // As the kernels are configured at compile time.
  struct config {
    static constexpr u32 tile_order = LOOKBACK_TILE_ORDER_TICKET;
    static constexpr u32 descriptor = sizeof(typename Operator::value_type) <= 4 ? LOOKBACK_DESCRIPTOR_PACKED_64
                                                                                 : LOOKBACK_DESCRIPTOR_PACKED_128;
  };

 public:
  using value_type = typename Operator::value_type;
  static_assert(sizeof(value_type) <= LOOKBACK_MAXIMUM_STATE_BYTES, "values of a chain are no larger than states of a scan");

  // Of the block: `SHARED(tile_chain<…>::shared_type, name)`.
  struct shared_type {
    scan::tile_start start;
    value_type prefix;
  };

  DEVICE tile_chain(const chain_memory& memory, shared_type& shared) : shared_(shared), launch_() {
    launch_.control = memory.control;
    launch_.descriptors = memory.descriptors;
    launch_.capacity = memory.capacity;
    start_ = scan::start_tile(config(), launch_, shared.start);
  }

  // Which part of the work the block has: blocks are numbered as they begin, so that none waits for one that has not.
  DEVICE u64 tile() const { return start_.tile; }

  // The combination of the totals of all tiles before, for all threads. `total` is the block's, from its first warp.
  DEVICE value_type prefix(value_type total) {
    with_descriptors<problem>(config(), launch_, [&](auto descriptors) {
      if (warp_index() == 0) {
        const value_type prefix = scan::pass_on<Operator>(descriptors, start_, total);
        if (lane_index() == 0) memory::shared_store(shared_.prefix, prefix);
      }
      block_barrier();  // the prefix is written, the descriptor accesses of the block are done
      if (thread_index() == 0) scan::finish_tile(launch_, descriptors, start_.epoch);
    });
    return memory::shared_load(shared_.prefix);
  }

 private:
  shared_type& shared_;
  lookback_launch launch_;
  scan::tile_start start_;
};

}  // namespace lookback
