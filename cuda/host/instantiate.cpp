// The kernels of one instance for the CPU device. `build.rs` compiles this file once an instance, with
// LOOKBACK_ELEMENT, LOOKBACK_OPERATOR (positions, see `../instances.cuh`) and LOOKBACK_BODIES (the name of
// the table) defined.
#include "../instances.cuh"
#include "../problem/plain.cuh"

#include "../scan/blelloch.cuh"
#include "../scan/chained.cuh"
#include "../scan/copy.cuh"
#include "../scan/hillis_steele.cuh"
#include "../scan/lookahead.cuh"
#include "../scan/lookback.cuh"
#include "../scan/naive.cuh"
#include "../scan/one_wave.cuh"
#include "../scan/sequential.cuh"
#include "../scan/single_block.cuh"
#include "../scan/single_cluster.cuh"
#include "../scan/three_phase.cuh"

namespace {

using problem = lookback::plain<LOOKBACK_OPERATOR_TYPE>;
using lookback::runtime_config;

// One CUDA thread of a kernel, as the executor calls it.
#define LOOKBACK_BODY(kernel)                                                                    \
  [](const lookback_config* config, const lookback_launch* launch) {                             \
    lookback::scan::kernel<problem, runtime_config>(runtime_config(*config), *launch);           \
  }

}  // namespace

extern "C" {

typedef void (*lookback_body)(const lookback_config*, const lookback_launch*);

// The body of a `lookback_kernel`, null where there is none of that number.
lookback_body LOOKBACK_BODIES(lookback_u32 kernel) {
  switch (kernel) {
    case LOOKBACK_KERNEL_COPY: return LOOKBACK_BODY(copy);
    case LOOKBACK_KERNEL_SEQUENTIAL: return LOOKBACK_BODY(sequential);
    case LOOKBACK_KERNEL_NAIVE: return LOOKBACK_BODY(naive);
    case LOOKBACK_KERNEL_HILLIS_STEELE_STEP: return LOOKBACK_BODY(hillis_steele_step);
    case LOOKBACK_KERNEL_BLELLOCH_UPSWEEP: return LOOKBACK_BODY(blelloch_upsweep);
    case LOOKBACK_KERNEL_BLELLOCH_DOWNSWEEP: return LOOKBACK_BODY(blelloch_downsweep);
    case LOOKBACK_KERNEL_BLELLOCH_FINISH: return LOOKBACK_BODY(blelloch_finish);
    case LOOKBACK_KERNEL_REDUCE_TILES: return LOOKBACK_BODY(reduce_tiles);
    case LOOKBACK_KERNEL_SCAN_TILES: return LOOKBACK_BODY(scan_tiles);
    case LOOKBACK_KERNEL_SCAN_TILE_TOTALS: return LOOKBACK_BODY(scan_tile_totals);
    case LOOKBACK_KERNEL_PROPAGATE: return LOOKBACK_BODY(propagate);
    case LOOKBACK_KERNEL_CHAINED: return LOOKBACK_BODY(chained);
    case LOOKBACK_KERNEL_LOOKBACK: return LOOKBACK_BODY(lookback);
    case LOOKBACK_KERNEL_SINGLE_BLOCK: return LOOKBACK_BODY(single_block);
    case LOOKBACK_KERNEL_ONE_WAVE: return LOOKBACK_BODY(one_wave);
    case LOOKBACK_KERNEL_LOOKAHEAD: return LOOKBACK_BODY(lookahead);
    case LOOKBACK_KERNEL_SINGLE_CLUSTER: return LOOKBACK_BODY(single_cluster);
    default: return nullptr;
  }
}

}  // extern "C"
