// The one definition that host kernels share: the pointer to the running CUDA thread's context.
#include "executor.h"
#include "../platform.cuh"

extern "C" {
__thread lookback_thread* lookback_current_thread = nullptr;

lookback_thread** lookback_current_thread_slot() { return &lookback_current_thread; }
}
