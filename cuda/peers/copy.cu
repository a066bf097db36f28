// The floor: what moving the data alone costs. The copy engine's way (cudaMemcpyAsync), and a kernel's.
#include "peers.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

namespace {

int no_temporary_bytes(const lookback_peer_size *, std::size_t *bytes) {
  *bytes = 0;
  return cudaSuccess;
}

int launch_memcpy(void *, std::size_t, const void *const *inputs, void *output, const lookback_peer_size *size,
                  void *stream) {
  return cudaMemcpyAsync(output, inputs[0], size->n, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream));
}

constexpr unsigned BLOCK_THREADS = 256;
// Loads that a thread has under way before it stores the first of them. One tile a block.
constexpr unsigned VECTORS_PER_THREAD = 4;
constexpr std::uint64_t TILE_VECTORS = BLOCK_THREADS * VECTORS_PER_THREAD;

__global__ void __launch_bounds__(BLOCK_THREADS)
  copy_16_byte(const uint4 *__restrict__ input, uint4 *__restrict__ output, std::uint64_t bytes) {
  const std::uint64_t vectors = bytes / sizeof(uint4);
  const std::uint64_t first = blockIdx.x * TILE_VECTORS + threadIdx.x;
  if (blockIdx.x * TILE_VECTORS + TILE_VECTORS <= vectors) {
    uint4 values[VECTORS_PER_THREAD];
#pragma unroll
    for (unsigned index = 0; index < VECTORS_PER_THREAD; ++index) {
      values[index] = input[first + index * BLOCK_THREADS];
    }
#pragma unroll
    for (unsigned index = 0; index < VECTORS_PER_THREAD; ++index) {
      output[first + index * BLOCK_THREADS] = values[index];
    }
    return;
  }
  for (unsigned index = 0; index < VECTORS_PER_THREAD; ++index) {
    if (first + index * BLOCK_THREADS < vectors) {
      output[first + index * BLOCK_THREADS] = input[first + index * BLOCK_THREADS];
    }
  }
  // What is left of the array behind its last whole vector: fewer bytes than a block has threads.
  const std::uint64_t rest = vectors * sizeof(uint4) + threadIdx.x;
  if (blockIdx.x == gridDim.x - 1 && rest < bytes) {
    reinterpret_cast<unsigned char *>(output)[rest] = reinterpret_cast<const unsigned char *>(input)[rest];
  }
}

int launch_copy_16_byte(void *, std::size_t, const void *const *inputs, void *output, const lookback_peer_size *size,
                        void *stream) {
  const void *const input = inputs[0];
  const std::uint64_t bytes = size->n;
  if (bytes == 0) {
    return cudaSuccess;
  }
  const auto low_bits = [](const void *address) { return reinterpret_cast<std::uintptr_t>(address) % sizeof(uint4); };
  if (low_bits(input) != 0 || low_bits(output) != 0) {
    return cudaErrorMisalignedAddress;
  }
  const std::uint64_t vectors = bytes / sizeof(uint4);
  // One block more where bytes remain and the last tile is full.
  const std::uint64_t blocks = vectors / TILE_VECTORS + (bytes % (TILE_VECTORS * sizeof(uint4)) != 0 ? 1 : 0);
  if (blocks > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    return cudaErrorInvalidValue;
  }
  copy_16_byte<<<static_cast<unsigned>(blocks), BLOCK_THREADS, 0, static_cast<cudaStream_t>(stream)>>>(
    static_cast<const uint4 *>(input), static_cast<uint4 *>(output), bytes);
  // Takes the error with it, so that a later call does not report this one's.
  return cudaGetLastError();
}

const lookback_peer_entry ENTRIES[] = {
  {"memcpy", CUDART_VERSION, LOOKBACK_PEER_COPY, 0, 0, 0, 0, 0, 1, std::numeric_limits<std::size_t>::max(),
   no_temporary_bytes, launch_memcpy},
  {"copy-16-byte", 0, LOOKBACK_PEER_COPY, 0, 0, 0, 0, 0, 1,
   std::numeric_limits<int>::max() * TILE_VECTORS * sizeof(uint4), no_temporary_bytes, launch_copy_16_byte},
};

} // namespace

extern "C" std::size_t LOOKBACK_PEER_TABLE(const lookback_peer_entry **entries) {
  *entries = ENTRIES;
  return sizeof(ENTRIES) / sizeof(ENTRIES[0]);
}

// Name and sentence of a cudaError_t. Takes the thread's last error with it: CUB looks at it after each launch, and
// would report a failure again that was reported already.
extern "C" void lookback_peer_error(int error, const char **name, const char **text) {
  *name = cudaGetErrorName(static_cast<cudaError_t>(error));
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  static_cast<void>(cudaGetLastError());
}
