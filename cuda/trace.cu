// What a recorded scan needs beside its kernels: readings by which the clocks of all multiprocessors are brought to one time.
#include "abi.h"

// A block a multiprocessor, by as much shared memory as it may have: first the multiprocessor's number, then `samples` pairs of
// nanoseconds and cycles, each right behind a step of the global timer. That timer is one for all multiprocessors and
// advances in steps of its own; the cycles count on between launches.
extern "C" __global__ void trace_clocks(lookback_u64* readings, lookback_u64 samples) {
  if (threadIdx.x != 0) return;
  lookback_u64* const mine = readings + blockIdx.x * (1 + 2 * samples);
  lookback_u32 multiprocessor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
  mine[0] = multiprocessor;
  lookback_u64 last;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(last)::"memory");
  for (lookback_u64 i = 0; i < samples; ++i) {
    lookback_u64 now, cycles;
    do {
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
      asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    } while (now == last);
    last = now;
    mine[1 + 2 * i] = now;
    mine[2 + 2 * i] = cycles;
  }
}
