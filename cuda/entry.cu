// The translation unit that NVRTC compiles: one kernel, one instance, one configuration, all of them
// from the command line. The only file, with `instances.cuh`, in which the preprocessor chooses a kernel; in `gpu/` it
// chooses instructions by architecture.
#include "abi.h"
#include "config.cuh"
#include "instances.cuh"
#include "operators.cuh"
#include "platform.cuh"
#include "problem/plain.cuh"
#include "scan/blelloch.cuh"
#include "scan/chained.cuh"
#include "scan/copy.cuh"
#include "scan/hillis_steele.cuh"
#include "scan/lookahead.cuh"
#include "scan/lookback.cuh"
#include "scan/naive.cuh"
#include "scan/one_wave.cuh"
#include "scan/sequential.cuh"
#include "scan/single_block.cuh"
#include "scan/single_cluster.cuh"
#include "scan/three_phase.cuh"

using entry_config = lookback::constant_config<LOOKBACK_VT, LOOKBACK_BLOCK_THREADS, LOOKBACK_MODE, LOOKBACK_PATTERN,
                                               LOOKBACK_COMPOSITION, LOOKBACK_DESCRIPTOR, LOOKBACK_TILE_ORDER,
                                               LOOKBACK_STAGES>;

#if LOOKBACK_KERNEL == 0
#define LOOKBACK_KERNEL_FUNCTION copy
#elif LOOKBACK_KERNEL == 1
#define LOOKBACK_KERNEL_FUNCTION sequential
#elif LOOKBACK_KERNEL == 2
#define LOOKBACK_KERNEL_FUNCTION naive
#elif LOOKBACK_KERNEL == 3
#define LOOKBACK_KERNEL_FUNCTION hillis_steele_step
#elif LOOKBACK_KERNEL == 4
#define LOOKBACK_KERNEL_FUNCTION blelloch_upsweep
#elif LOOKBACK_KERNEL == 5
#define LOOKBACK_KERNEL_FUNCTION blelloch_downsweep
#elif LOOKBACK_KERNEL == 6
#define LOOKBACK_KERNEL_FUNCTION blelloch_finish
#elif LOOKBACK_KERNEL == 7
#define LOOKBACK_KERNEL_FUNCTION reduce_tiles
#elif LOOKBACK_KERNEL == 8
#define LOOKBACK_KERNEL_FUNCTION scan_tiles
#elif LOOKBACK_KERNEL == 9
#define LOOKBACK_KERNEL_FUNCTION scan_tile_totals
#elif LOOKBACK_KERNEL == 10
#define LOOKBACK_KERNEL_FUNCTION propagate
#elif LOOKBACK_KERNEL == 11
#define LOOKBACK_KERNEL_FUNCTION chained
#elif LOOKBACK_KERNEL == 12
#define LOOKBACK_KERNEL_FUNCTION lookback
#elif LOOKBACK_KERNEL == 13
#define LOOKBACK_KERNEL_FUNCTION single_block
#elif LOOKBACK_KERNEL == 14
#define LOOKBACK_KERNEL_FUNCTION one_wave
#elif LOOKBACK_KERNEL == 15
#define LOOKBACK_KERNEL_FUNCTION lookahead
#elif LOOKBACK_KERNEL == 16
#define LOOKBACK_KERNEL_FUNCTION single_cluster
#else
#error "LOOKBACK_KERNEL is no lookback_kernel"
#endif

// The launch stays in the parameter bank: __grid_constant__ spares the copy into registers or local memory
// that passing it on by reference would take otherwise.
extern "C" __global__ void __launch_bounds__(LOOKBACK_LAUNCH_BOUNDS)
    lookback_entry(const __grid_constant__ lookback_launch launch) {
#if LOOKBACK_KERNEL != 14  // which says so itself, when its blocks wait no more
  ::lookback::allow_next_launch();
#endif
  ::lookback::wait_for_launches_before();
  ::lookback::scan::LOOKBACK_KERNEL_FUNCTION< ::lookback::plain<LOOKBACK_OPERATOR_TYPE>>(entry_config{}, launch);
}
