// What stress on a GPU needs beside the scans: verdicts that cost one launch a run, and what disturbs a scan.
// Nothing here shares a line with the scan kernels but the contract with the host.
//
// A run is the launches of one scan and one `turn`, which compares every element of the output and the guards
// around it, fills both for the next run, and hands that run its seed. So a graph of many runs can be
// replayed many times with other delays each time, and the host looks only every few hundred runs.
#include "abi.h"
#include "comparison.cuh"

// What a lane has seen so far. `Tally` in src/lab/stress/gpu/lane.rs is the same.
struct stress_tally {
  u64 run;             // the run that is on
  u64 wrong_runs;
  u64 wrong_elements;
  u64 first_wrong;     // of the first wrong run: run << 32 | place in the buffer; all ones if none is
  u32 finished_blocks;  // of the turn that is on
  u32 is_wrong;         // whether this turn has found a wrong element
};

// `Turn` in src/lab/stress/gpu/lane.rs is the same.
struct stress_turn {
  void* buffer;            // the output between guards
  u64 elements;            // of the buffer
  u64 first;               // the output's place in it
  u64 n;                   // elements that the run stores
  u64 is_first;            // nothing ran yet: fill, and compare nothing
  const void* reference;   // what they must be
  const void* next_input;  // in place: what the next run scans; null otherwise
  u64 next_n;
  stress_tally* tally;
  u64 seed;                // of the lane
  lookback_stress* states[6];  // of its modules; null where there are fewer
};

// The finaliser of SplitMix64 (Steele, Lea & Flood 2014).
__device__ u64 mix(u64 bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
  return bits ^ (bits >> 31);
}

template <class T>
__device__ void take_turn(const stress_turn& turn) {
  // Read before this block counts itself done, and changed by the block that sees all of them done.
  const u64 run = *const_cast<const volatile u64*>(&turn.tally->run);
  T* const buffer = static_cast<T*>(turn.buffer);
  const T* const reference = static_cast<const T*>(turn.reference);
  const T* const next_input = static_cast<const T*>(turn.next_input);
  T filling;
  memset(&filling, 0xa5, sizeof(T));
  u64 wrong = 0;
  u64 first = ~0ull;
  for (u64 place = first_index(); place < turn.elements; place += index_stride()) {
    const u64 i = place - turn.first;  // wraps in front of the array, to more than any n
    if (turn.is_first == 0) {
      const T want = i < turn.n ? reference[i] : filling;
      if (!same(buffer[place], want)) {
        ++wrong;
        if (place < first) first = place;
      }
    }
    buffer[place] = next_input != nullptr && i < turn.next_n ? next_input[i] : filling;
  }
  if (wrong != 0) {
    atomicAdd(&turn.tally->wrong_elements, wrong);
    atomicMin(&turn.tally->first_wrong, run << 32 | first);
    atomicExch(&turn.tally->is_wrong, 1u);
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (atomicAdd(&turn.tally->finished_blocks, 1u) + 1 != gridDim.x) return;
  __threadfence();
  turn.tally->finished_blocks = 0;
  if (atomicExch(&turn.tally->is_wrong, 0u) != 0) ++turn.tally->wrong_runs;
  const u64 next = run + (turn.is_first == 0 ? 1 : 0);
  turn.tally->run = next;
  for (u32 i = 0; i < 6; ++i) {
    if (turn.states[i] != nullptr) turn.states[i]->seed = mix(turn.seed + next * 0x9e3779b97f4a7c15ull);
  }
}

#define TURN(name, type)                                                                               \
  extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ stress_turn turn) {   \
    take_turn<type>(turn);                                                                             \
  }
TURN(stress_turn_1, u8)
TURN(stress_turn_2, u16)
TURN(stress_turn_4, u32)
TURN(stress_turn_8, u64)
TURN(stress_turn_16, bits128)

// Brings the workspace to right before the epoch's wrap, as 2^30 launches would. Never back: older
// descriptors would become valid.
extern "C" __global__ void __launch_bounds__(32) stress_raise_epochs(lookback_control* control, u64 completed) {
  if (threadIdx.x == 0 && control->completed_epochs < completed) {
    control->completed_epochs = static_cast<u32>(completed);
  }
}

// What a launch leaves that was killed in its middle: some tickets drawn, fewer blocks done, descriptors of
// its epoch.
extern "C" __global__ void __launch_bounds__(256)
    stress_abort_launch(lookback_control* control, u8* descriptors, u64 layout, u64 tickets, u64 finished) {
  const u32 tag = ((control->completed_epochs + 1) << LOOKBACK_STATUS_BITS) | LOOKBACK_STATUS_PREFIX;
  for (u64 tile = first_index(); tile < finished; tile += index_stride()) {
    if (layout == LOOKBACK_DESCRIPTOR_PACKED_64) {
      reinterpret_cast<u64*>(descriptors)[tile] = static_cast<u64>(tag) << 32 | mix(tile) >> 32;
    } else if (layout == LOOKBACK_DESCRIPTOR_PACKED_128) {
      reinterpret_cast<bits128*>(descriptors)[tile] = bits128{mix(tile), tag};
    } else {
      reinterpret_cast<u32*>(descriptors)[tile] = tag;
    }
  }
  if (first_index() == 0) {
    control->ticket = static_cast<u32>(tickets);
    control->finished_blocks = static_cast<u32>(finished);
  }
}

// Holds multiprocessors: launched with so much shared memory that nothing else fits beside a block.
extern "C" __global__ void __launch_bounds__(32) stress_occupy(u64 nanoseconds) {
  u64 start;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  for (u64 now = start; now - start < nanoseconds;) asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
}
