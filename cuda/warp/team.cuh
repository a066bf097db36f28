// A team is the set of threads that scan one value each: a warp, or a whole block. The patterns of
// `../block` are written once for both.
#pragma once

#include "../memory.cuh"

namespace lookback {

struct warp_team {
  DEVICE static u32 size() { return LOOKBACK_WARP_LANES; }
  DEVICE static u32 rank() { return lane_index(); }
  DEVICE static void barrier(call_site site = {}) { warp_barrier(site); }
};

// What a scan of one value a thread leaves with each thread: the combination of all lower ranks, and
// of all ranks.
template <class T>
struct team_scan_result {
  T exclusive;
  T total;
};

}  // namespace lookback
