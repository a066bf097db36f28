// thrust::exclusive_scan, as the published comparison called it. Compiled once for each version, as cub_scan.cu is, and
// with the same definitions but for the element: Thrust has CUB's version, and its headers take so long that all types
// share this file.
//
// Two peers. The plain name runs with `thrust::cuda::par_nosync` and an allocator that hands out memory which is there
// already: what a program gets that cares. "-synchronous" runs with `thrust::cuda::par`: it calls cudaMalloc, waits for
// the stream, and calls cudaFree, each time, which is what `thrust::device` does, except that `thrust::device` does so
// on the default stream, where our events are not.
#include "peers.h"

#include <cub/version.cuh>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>
#include <thrust/system/cuda/error.h>
#include <thrust/system_error.h>

#include <cstdint>
#include <limits>
#include <new>

#if CUB_VERSION != LOOKBACK_CUB_VERSION
#error "another CUB than the peers are named after was found: run scripts/install-cuda.sh, and let LOOKBACK_CUDA_HOME name its folder"
#endif

namespace {

namespace thrust = THRUST_NS_QUALIFIER;

// Hands out memory that is there already. Without any it notes how much was wanted.
struct PreparedMemory {
  using value_type = char;
  char *memory;
  std::size_t bytes;
  std::size_t *wanted;

  char *allocate(std::ptrdiff_t count) {
    const std::size_t asked = static_cast<std::size_t>(count);
    if (wanted != nullptr) {
      *wanted = asked;
    }
    if (memory == nullptr || asked > bytes) {
      throw std::bad_alloc();
    }
    return memory;
  }
  void deallocate(char *, std::size_t) noexcept {}
};

int no_temporary_bytes(const lookback_peer_size *, std::size_t *bytes) {
  *bytes = 0;
  return cudaSuccess;
}

template <typename Element>
struct ExclusiveSum {
  template <typename Policy>
  static cudaError_t call(const Policy &policy, const void *input, void *output, std::uint64_t n) {
    const Element *const first = static_cast<const Element *>(input);
    try {
      thrust::exclusive_scan(policy, first, first + n, static_cast<Element *>(output));
      return cudaSuccess;
    } catch (const thrust::system_error &error) {
      return error.code().category() == thrust::cuda_category() ? static_cast<cudaError_t>(error.code().value())
                                                                : cudaErrorUnknown;
    } catch (const std::bad_alloc &) {
      return cudaErrorMemoryAllocation;
    } catch (...) {
      return cudaErrorUnknown;
    }
  }

  static int temporary_bytes(const lookback_peer_size *size, std::size_t *bytes) {
    *bytes = 0;
    PreparedMemory memory{nullptr, 0, bytes};
    // Only the distance of the pointers counts: refusing the memory ends the call before anything is launched.
    const cudaError_t error = call(thrust::cuda::par_nosync(memory).on(nullptr), nullptr, nullptr, size->n);
    return error == cudaErrorMemoryAllocation && *bytes > 0 ? cudaSuccess : error;
  }

  static int launch(void *temporary, std::size_t bytes, const void *const *inputs, void *output,
                    const lookback_peer_size *size, void *stream) {
    PreparedMemory memory{static_cast<char *>(temporary), bytes, nullptr};
    return call(thrust::cuda::par_nosync(memory).on(static_cast<cudaStream_t>(stream)), inputs[0], output, size->n);
  }

  static int launch_synchronous(void *, std::size_t, const void *const *inputs, void *output,
                                const lookback_peer_size *size, void *stream) {
    return call(thrust::cuda::par.on(static_cast<cudaStream_t>(stream)), inputs[0], output, size->n);
  }
};

// lookback_mode of ../abi.h.
constexpr std::uint32_t EXCLUSIVE = 1;

// `element` is the name of `Element`.
template <typename Element>
constexpr lookback_peer_entry entry(const char *element, bool synchronous) {
  // The distance of the pointers is signed.
  constexpr std::uint64_t largest_n = std::numeric_limits<std::ptrdiff_t>::max() / sizeof(Element);
  using Scan = ExclusiveSum<Element>;
  return {synchronous ? "thrust-" LOOKBACK_CUB_VERSION_TEXT "-synchronous" : "thrust-" LOOKBACK_CUB_VERSION_TEXT,
          CUB_VERSION,
          LOOKBACK_PEER_SCAN,
          "flat",
          element,
          element,
          "sum",
          EXCLUSIVE,
          synchronous ? 0u : 1u,
          largest_n,
          synchronous ? no_temporary_bytes : Scan::temporary_bytes,
          synchronous ? Scan::launch_synchronous : Scan::launch};
}

const lookback_peer_entry ENTRIES[] = {
  entry<std::int32_t>("i32", false), entry<std::int64_t>("i64", false), entry<float>("f32", false),
  entry<double>("f64", false),       entry<std::int32_t>("i32", true),  entry<std::int64_t>("i64", true),
  entry<float>("f32", true),         entry<double>("f64", true),
};

} // namespace

extern "C" std::size_t LOOKBACK_PEER_TABLE(const lookback_peer_entry **entries) {
  *entries = ENTRIES;
  return sizeof(ENTRIES) / sizeof(ENTRIES[0]);
}
