// Copy kernels beside the one of measure.cu: how near any kernel comes to the driver's copy. What each is called in records, and
// with how many threads and bytes it is launched, says `COPY_KERNELS` in src/lab/measure/copies.rs. All of them move whole words of
// 16 bytes, as many as `bytes` has.
#include "async_copy.cuh"
#include "comparison.cuh"

namespace lookback {

// A tile a block; every load of a thread is under way before its first store.
template <u32 THREADS, u32 WORDS>
DEVICE void copy_words(const bits128* input, bits128* output, u64 words) {
  const u64 first = static_cast<u64>(blockIdx.x) * (THREADS * WORDS) + threadIdx.x;
  bits128 values[WORDS];
#pragma unroll
  for (u32 k = 0; k < WORDS; ++k) {
    if (first + k * THREADS < words) values[k] = input[first + k * THREADS];
  }
#pragma unroll
  for (u32 k = 0; k < WORDS; ++k) {
    if (first + k * THREADS < words) output[first + k * THREADS] = values[k];
  }
}

#if __CUDA_ARCH__ >= 900

// The tiles of a block: every so many from its own on.
struct dealt_tiles {
  u64 bytes;
  u64 tile_bytes;

  DEVICE u64 count() const {
    const u64 tiles = (bytes + tile_bytes - 1) / tile_bytes;
    return tiles > blockIdx.x ? (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
  }
  DEVICE u64 begin(u64 i) const { return (blockIdx.x + i * gridDim.x) * tile_bytes; }
  DEVICE u32 size(u64 i) const {
    const u64 left = bytes - begin(i);
    return static_cast<u32>(left < tile_bytes ? left : tile_bytes);
  }
};

constexpr u32 MOST_STAGES = 32;

// How often a ring has come round to a stage says by its parity which phase of the barrier to wait for. Acquire, pairs with what ends
// that phase: for `full` the bytes that the copy engine has written, for `read` the release of every storing warp's `barrier_arrive`.
DEVICE void wait_for_phase(copy_barrier& barrier, u64 round) {
  while (!barrier_phase_is_over(barrier, static_cast<u32>(round & 1))) {
  }
}

// By one lane; the copy engine reads shared memory that it wrote itself, so no thread's store has to be seen.
DEVICE void store_bulk(u8* to, const u8* from, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// One lane a block feeds the copy engine, in and out.
DEVICE void copy_by_engine(const u8* input, u8* output, dealt_tiles tiles, u32 stages) {
  __shared__ copy_barrier full[MOST_STAGES];
  if (threadIdx.x != 0) return;
  u8* const room = dynamic_shared(0);
  for (u32 stage = 0; stage < stages; ++stage) barrier_initialize(full[stage], 1);
  barriers_initialized();
  const auto load = [&](u64 i) {
    const u32 stage = static_cast<u32>(i % stages);
    barrier_arrive_expecting(full[stage], tiles.size(i));
    copy_bulk(room + stage * tiles.tile_bytes, input + tiles.begin(i), tiles.size(i), full[stage]);
  };
  const u64 count = tiles.count();
  const u64 ahead = stages - 1;
  for (u64 i = 0; i < count && i < ahead; ++i) load(i);
  for (u64 i = 0; i < count; ++i) {
    const u32 stage = static_cast<u32>(i % stages);
    wait_for_phase(full[stage], i / stages);
    store_bulk(output + tiles.begin(i), room + stage * tiles.tile_bytes, tiles.size(i));
    // All but the newest store have been read out of shared memory: the next load goes where the one before it stood.
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    if (i + ahead < count) load(i + ahead);
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// The first warp feeds the copy engine; the others store what has come, 16 bytes a lane.
DEVICE void copy_by_engine_and_lanes(const u8* input, u8* output, dealt_tiles tiles, u32 stages) {
  constexpr u32 WORDS = 8;
  __shared__ copy_barrier full[MOST_STAGES];
  __shared__ copy_barrier read[MOST_STAGES];
  u8* const room = dynamic_shared(0);
  const u32 lanes = blockDim.x - LOOKBACK_WARP_LANES;
  if (threadIdx.x == 0) {
    for (u32 stage = 0; stage < stages; ++stage) {
      barrier_initialize(full[stage], 1);
      barrier_initialize(read[stage], lanes / LOOKBACK_WARP_LANES);
    }
    barriers_initialized();
  }
  __syncthreads();  // the barriers are there before anybody waits
  const u64 count = tiles.count();
  if (threadIdx.x < LOOKBACK_WARP_LANES) {
    if (threadIdx.x != 0) return;
    for (u64 i = 0; i < count; ++i) {
      const u32 stage = static_cast<u32>(i % stages);
      if (i >= stages) wait_for_phase(read[stage], i / stages - 1);
      barrier_arrive_expecting(full[stage], tiles.size(i));
      copy_bulk(room + stage * tiles.tile_bytes, input + tiles.begin(i), tiles.size(i), full[stage]);
    }
    return;
  }
  const u32 lane = threadIdx.x - LOOKBACK_WARP_LANES;
  for (u64 i = 0; i < count; ++i) {
    const u32 stage = static_cast<u32>(i % stages);
    wait_for_phase(full[stage], i / stages);
    const auto* const from = reinterpret_cast<const bits128*>(room + stage * tiles.tile_bytes);
    auto* const to = reinterpret_cast<bits128*>(output + tiles.begin(i));
    const u32 words = tiles.size(i) / sizeof(bits128);
    for (u32 base = 0; base < words; base += lanes * WORDS) {
      bits128 values[WORDS];
#pragma unroll
      for (u32 k = 0; k < WORDS; ++k) {
        if (base + k * lanes + lane < words) values[k] = from[base + k * lanes + lane];
      }
#pragma unroll
      for (u32 k = 0; k < WORDS; ++k) {
        if (base + k * lanes + lane < words) to[base + k * lanes + lane] = values[k];
      }
    }
    __syncwarp();  // what the other lanes read is read before the arrival says so
    // Release, pairs with the first warp's `wait_for_phase` on `read`: the stage may be filled again.
    if (lane_index() == 0) barrier_arrive(read[stage]);
  }
}

#endif

}  // namespace lookback

using namespace lookback;

#define COPY_WORDS(name, threads, words)                                                                        \
  extern "C" __global__ void __launch_bounds__(threads) name(const bits128* input, bits128* output, u64 bytes) { \
    copy_words<threads, words>(input, output, bytes / sizeof(bits128));                                         \
  }
COPY_WORDS(copy_words_8x256, 256, 8)
COPY_WORDS(copy_words_4x512, 512, 4)

#if __CUDA_ARCH__ >= 900
#define COPY_RING(name, threads, by)                                                                     \
  extern "C" __global__ void __launch_bounds__(threads, 1)                                               \
      name(const u8* input, u8* output, u64 bytes, u64 tile_bytes, u64 stages) {                         \
    by(input, output, dealt_tiles{bytes, tile_bytes}, static_cast<u32>(stages));                         \
  }
COPY_RING(copy_ring, 32, copy_by_engine)
COPY_RING(copy_ring_288, 288, copy_by_engine_and_lanes)
COPY_RING(copy_ring_544, 544, copy_by_engine_and_lanes)
#endif
