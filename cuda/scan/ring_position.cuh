// Where a warp is in a ring of tiles in shared memory, which the warps of a block go round by themselves.
#pragma once

#include "../platform.cuh"

namespace lookback {
namespace scan {

// The stage, and the parity of the phase that the stage's barriers are in for its tile.
struct ring_position {
  u32 stage;
  u32 parity;

  DEVICE void advance(u32 stages) {
    if (++stage != stages) return;
    stage = 0;
    parity ^= 1;
  }
};

}  // namespace scan
}  // namespace lookback
