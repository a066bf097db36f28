// What a launch does before its kernel, on the GPU (`entry.cu`) and on the CPU device (`host/instantiate.cpp`).
#pragma once

#include "platform.cuh"

namespace lookback {

// Calls the kernel as `kernel()`. Blocks of the next launch may be there at once, unless the kernel says itself when; they
// wait here, too. Every thread waits: what the launches before wrote is there for whoever has waited, and for nobody else.
template <bool kernel_allows_next_launch, class Kernel>
DEVICE void enter(Kernel kernel) {
  if (!kernel_allows_next_launch) allow_next_launch();
  wait_for_launches_before();
  kernel();
}

}  // namespace lookback
