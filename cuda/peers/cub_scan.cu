// CUB's cub::DeviceScan over one array of one element type. Compiled once for each version of CUB and each element type:
// the include path says which CUB, and CUB_WRAPPED_NAMESPACE keeps two of them apart in one program.
//
// LOOKBACK_CUB_VERSION         what CUB_VERSION must be, for example 300500
// LOOKBACK_CUB_VERSION_TEXT    the same for people, "3.5.0"
// LOOKBACK_PEER_ELEMENT        name of the element type, "u8"
// LOOKBACK_PEER_ELEMENT_TYPE   the type, std::uint8_t
// LOOKBACK_PEER_TABLE          name of the function that hands out this file's table
#include "peers.h"

#include <cub/device/device_scan.cuh>
#include <cub/version.cuh>

#include <cstdint>
#include <cuda/functional>
#include <cuda/std/functional>
#include <limits>
#include <new>
#include <type_traits>

#if CUB_VERSION != LOOKBACK_CUB_VERSION
#error "another CUB than the peers are named after was found: run scripts/install-cuda.sh, and let LOOKBACK_CUDA_HOME name its folder"
#endif

// Version 3.5.0 brought sums of floats that are the same in every run, on request.
#if CUB_VERSION >= 300500
#define LOOKBACK_HAS_RUN_TO_RUN 1
#include <cuda/memory_resource>
#include <cuda/std/execution>
#include <cuda/stream_ref>
#else
#define LOOKBACK_HAS_RUN_TO_RUN 0
#endif

namespace {

using DeviceScan = CUB_NS_QUALIFIER::DeviceScan;

using Element = LOOKBACK_PEER_ELEMENT_TYPE;

// NARROW_SUM adds up in the element's own type. The other sums leave the type to CUB, which takes that of `x + x`: int for
// 8 and 16 bits.
enum Operation { SUM, NARROW_SUM, MAXIMUM };
// lookback_mode in ../abi.h.
enum Mode : std::uint32_t { INCLUSIVE = 0, EXCLUSIVE = 1 };

// What max(x, nothing) is x for.
constexpr Element lowest() {
  return std::numeric_limits<Element>::has_infinity ? -std::numeric_limits<Element>::infinity()
                                                    : std::numeric_limits<Element>::lowest();
}

// The calls as CUB's documentation has them. The type of the count is the caller's choice and decides the type of all
// offsets inside (`cub::detail::choose_offset_t`: std::uint32_t up to 4 bytes, else unsigned long long).
template <Operation operation, Mode mode, typename Count>
struct Scan {
  static cudaError_t call(void *temporary, std::size_t &bytes, const Element *input, Element *output, Count n,
                          cudaStream_t stream) {
    if constexpr (operation == SUM && mode == INCLUSIVE) {
      return DeviceScan::InclusiveSum(temporary, bytes, input, output, n, stream);
    } else if constexpr (operation == SUM) {
      return DeviceScan::ExclusiveSum(temporary, bytes, input, output, n, stream);
    } else if constexpr (operation == NARROW_SUM && mode == INCLUSIVE) {
      return DeviceScan::InclusiveScan(temporary, bytes, input, output, ::cuda::std::plus<Element>{}, n, stream);
    } else if constexpr (operation == NARROW_SUM) {
      return DeviceScan::ExclusiveScan(temporary, bytes, input, output, ::cuda::std::plus<Element>{}, Element{0}, n,
                                       stream);
    } else if constexpr (mode == INCLUSIVE) {
      return DeviceScan::InclusiveScan(temporary, bytes, input, output, ::cuda::maximum<>{}, n, stream);
    } else {
      return DeviceScan::ExclusiveScan(temporary, bytes, input, output, ::cuda::maximum<>{}, lowest(), n, stream);
    }
  }

  static int temporary_bytes(const lookback_peer_size *size, std::size_t *bytes) {
    *bytes = 0;
    return call(nullptr, *bytes, nullptr, nullptr, static_cast<Count>(size->n), nullptr);
  }

  static int launch(void *temporary, std::size_t bytes, const void *const *inputs, void *output,
                    const lookback_peer_size *size, void *stream) {
    return call(temporary, bytes, static_cast<const Element *>(inputs[0]), static_cast<Element *>(output),
                static_cast<Count>(size->n), static_cast<cudaStream_t>(stream));
  }

  static constexpr lookback_peer_entry entry(const char *name) {
    return {name,
            CUB_VERSION,
            LOOKBACK_PEER_SCAN,
            "flat",
            LOOKBACK_PEER_ELEMENT,
            LOOKBACK_PEER_ELEMENT,
            operation == MAXIMUM ? "max" : "sum",
            mode,
            1,
            std::numeric_limits<Count>::max(),
            temporary_bytes,
            launch};
  }
};

#if LOOKBACK_HAS_RUN_TO_RUN
// The calls that take an environment allocate their temporary memory themselves, from the environment's resource. This
// one hands out memory that is there already, so that no allocation is timed. Without any it notes how much was wanted.
class PreparedMemory {
public:
  PreparedMemory(void *memory, std::size_t bytes, std::size_t *wanted)
      : memory_(memory), bytes_(bytes), wanted_(wanted) {}

  void *allocate(::cuda::stream_ref, std::size_t bytes, std::size_t) {
    if (wanted_ != nullptr) {
      *wanted_ = bytes;
    }
    if (memory_ == nullptr || bytes > bytes_) {
      throw std::bad_alloc();
    }
    return memory_;
  }
  void deallocate(::cuda::stream_ref, void *, std::size_t, std::size_t) noexcept {}

  // What the concept of a resource asks for besides; memory out of stream order is not to be had.
  void *allocate_sync(std::size_t, std::size_t) { throw std::bad_alloc(); }
  void deallocate_sync(void *, std::size_t, std::size_t) noexcept {}
  friend bool operator==(const PreparedMemory &left, const PreparedMemory &right) {
    return left.memory_ == right.memory_;
  }
  friend bool operator!=(const PreparedMemory &left, const PreparedMemory &right) { return !(left == right); }

private:
  void *memory_;
  std::size_t bytes_;
  std::size_t *wanted_;
};

// A sum whose order of additions is fixed. The count has 64 bits.
template <Mode mode>
struct RunToRunSum {
  using Count = std::uint64_t;

  static cudaError_t call(PreparedMemory memory, const Element *input, Element *output, Count n, cudaStream_t stream) {
    const auto environment = ::cuda::std::execution::env{
      ::cuda::std::execution::prop{::cuda::get_stream, ::cuda::stream_ref{stream}},
      // In 3.5.0 the key has no name without underscores.
      ::cuda::std::execution::prop{::cuda::mr::__get_memory_resource, memory},
      ::cuda::execution::require(::cuda::execution::determinism::run_to_run)};
    if constexpr (mode == INCLUSIVE) {
      return DeviceScan::InclusiveSum(input, output, n, environment);
    } else {
      return DeviceScan::ExclusiveSum(input, output, n, environment);
    }
  }

  static int temporary_bytes(const lookback_peer_size *size, std::size_t *bytes) {
    *bytes = 0;
    const cudaError_t error = call(PreparedMemory(nullptr, 0, bytes), nullptr, nullptr, size->n, nullptr);
    // Refusing the memory is how the amount is learnt.
    return error == cudaErrorMemoryAllocation && *bytes > 0 ? cudaSuccess : error;
  }

  static int launch(void *temporary, std::size_t bytes, const void *const *inputs, void *output,
                    const lookback_peer_size *size, void *stream) {
    return call(PreparedMemory(temporary, bytes, nullptr), static_cast<const Element *>(inputs[0]),
                static_cast<Element *>(output), size->n, static_cast<cudaStream_t>(stream));
  }

  static constexpr lookback_peer_entry entry(const char *name) {
    return {name,
            CUB_VERSION,
            LOOKBACK_PEER_SCAN,
            "flat",
            LOOKBACK_PEER_ELEMENT,
            LOOKBACK_PEER_ELEMENT,
            "sum",
            mode,
            1,
            std::numeric_limits<Count>::max(),
            temporary_bytes,
            launch};
  }
};
#endif

constexpr const char *NAME_32 = "cub-" LOOKBACK_CUB_VERSION_TEXT;
constexpr const char *NAME_64 = "cub-" LOOKBACK_CUB_VERSION_TEXT "-64-bit-count";
constexpr const char *NAME_NARROW = "cub-" LOOKBACK_CUB_VERSION_TEXT "-narrow-sum";

// Maxima for three types stand for all: they show what another operator costs, at the price of compiling them.
constexpr bool HAS_MAXIMUM =
  std::is_same_v<Element, std::int32_t> || std::is_same_v<Element, std::uint32_t> || std::is_same_v<Element, float>;

template <typename Entries>
std::size_t fill(Entries &entries) {
  std::size_t count = 0;
  entries[count++] = Scan<SUM, INCLUSIVE, std::uint32_t>::entry(NAME_32);
  entries[count++] = Scan<SUM, EXCLUSIVE, std::uint32_t>::entry(NAME_32);
  entries[count++] = Scan<SUM, INCLUSIVE, std::uint64_t>::entry(NAME_64);
  entries[count++] = Scan<SUM, EXCLUSIVE, std::uint64_t>::entry(NAME_64);
  if constexpr (!std::is_same_v<decltype(Element{} + Element{}), Element>) {
    entries[count++] = Scan<NARROW_SUM, INCLUSIVE, std::uint32_t>::entry(NAME_NARROW);
    entries[count++] = Scan<NARROW_SUM, EXCLUSIVE, std::uint32_t>::entry(NAME_NARROW);
  }
  if constexpr (HAS_MAXIMUM) {
    entries[count++] = Scan<MAXIMUM, INCLUSIVE, std::uint32_t>::entry(NAME_32);
    entries[count++] = Scan<MAXIMUM, EXCLUSIVE, std::uint32_t>::entry(NAME_32);
    entries[count++] = Scan<MAXIMUM, INCLUSIVE, std::uint64_t>::entry(NAME_64);
    entries[count++] = Scan<MAXIMUM, EXCLUSIVE, std::uint64_t>::entry(NAME_64);
  }
#if LOOKBACK_HAS_RUN_TO_RUN
  // Sums of integers are the same in every run anyhow.
  if constexpr (std::is_floating_point_v<Element>) {
    constexpr const char *name = "cub-" LOOKBACK_CUB_VERSION_TEXT "-run-to-run";
    entries[count++] = RunToRunSum<INCLUSIVE>::entry(name);
    entries[count++] = RunToRunSum<EXCLUSIVE>::entry(name);
  }
#endif
  return count;
}

struct Table {
  lookback_peer_entry entries[10];
  std::size_t count;
  Table() : entries{}, count(fill(entries)) {}
};

} // namespace

extern "C" std::size_t LOOKBACK_PEER_TABLE(const lookback_peer_entry **entries) {
  static const Table table;
  *entries = table.entries;
  return table.count;
}
