// The translation unit that NVRTC compiles: one kernel, one problem, one configuration, all of them from the command
// line. LOOKBACK_KERNEL is the kernel's function, whose file stands in front of this one; LOOKBACK_PROBLEM is the
// problem's type (`src/element/problem.rs`).
#include "abi.h"
#include "config.cuh"
#include "entry.cuh"
#include "problem/converting.cuh"
#include "problem/count.cuh"
#include "problem/plain.cuh"

using entry_config = lookback::constant_config<LOOKBACK_VT, LOOKBACK_BLOCK_THREADS, LOOKBACK_MODE, LOOKBACK_PATTERN,
                                               LOOKBACK_COMPOSITION, LOOKBACK_DESCRIPTOR, LOOKBACK_TILE_ORDER,
                                               LOOKBACK_ALIGNMENT, LOOKBACK_STAGES>;

// An enumerator and no constant: those become variables of the module.
#ifdef LOOKBACK_KERNEL_ALLOWS_NEXT_LAUNCH
enum : bool { kernel_allows_next_launch = true };
#else
enum : bool { kernel_allows_next_launch = false };
#endif

// The launch stays in the parameter bank: __grid_constant__ spares the copy into registers or local memory
// that passing it on by reference would take otherwise.
extern "C" __global__ void __launch_bounds__(LOOKBACK_LAUNCH_BOUNDS)
    lookback_entry(const __grid_constant__ lookback_launch launch) {
  ::lookback::enter<kernel_allows_next_launch>(
      [&] {
        ::lookback::with_count<LOOKBACK_PROBLEM>(entry_config{}, launch, [](const lookback_launch& counted) {
          ::lookback::scan::LOOKBACK_KERNEL<LOOKBACK_PROBLEM>(entry_config{}, counted);
        });
      });
}
