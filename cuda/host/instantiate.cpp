// The kernels of one instance for the CPU device. Compiled once an instance, with LOOKBACK_PROBLEM (the problem's type)
// and LOOKBACK_BODIES (the name of the table) defined. build.rs writes kernels.h, which includes and lists the kernels.
#include "../faults/hooks.cuh"
#include "../entry.cuh"
#include "../problem/plain.cuh"

#include "kernels.h"

// One CUDA thread of a kernel, as the executor calls it.
#define LOOKBACK_BODY(kernel, allows_next_launch)                                                      \
  [](const lookback_config* config, const lookback_launch* launch) {                                   \
    using lookback::runtime_config;                                                                    \
    lookback::enter<allows_next_launch>([=] {                                                          \
      lookback::scan::kernel<LOOKBACK_PROBLEM, runtime_config>(runtime_config(*config), *launch);      \
    });                                                                                                \
  },

// The body of a kernel by its number (`Kernel` in Rust), null where there is none of that number.
extern "C" lookback_kernel_body LOOKBACK_BODIES(lookback_u32 kernel) {
  static const lookback_kernel_body bodies[] = {LOOKBACK_KERNELS(LOOKBACK_BODY)};
  return kernel < sizeof(bodies) / sizeof(bodies[0]) ? bodies[kernel] : nullptr;
}
