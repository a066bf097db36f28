// The threads of a block as a team, see `../warp/team.cuh`.
#pragma once

#include "../warp/team.cuh"

namespace lookback {

struct block_team {
  DEVICE static u32 size() { return block_threads(); }
  DEVICE static u32 rank() { return thread_index(); }
  DEVICE static void barrier(call_site site = {}) { block_barrier(site); }
};

}  // namespace lookback
