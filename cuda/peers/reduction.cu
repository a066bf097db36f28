// The floor of what reads more than it stores: CUB's sum of the input's words, which reads each byte once and stores one number.
// Compiled once for each version, with the definitions of cub_scan.cu but for the element.
#include "peers.h"

#include <cub/device/device_reduce.cuh>
#include <cub/version.cuh>

#include <cstdint>
#include <limits>

#if CUB_VERSION != LOOKBACK_CUB_VERSION
#error "another CUB than the peers are named after was found: run scripts/install-cuda.sh, and let LOOKBACK_CUDA_HOME name its folder"
#endif

namespace {

using Word = std::uint32_t;
// The type of the count is that of all offsets inside, as in the other calls.
using Count = std::uint32_t;

cudaError_t sum(void *temporary, std::size_t &bytes, const void *input, void *output, std::uint64_t input_bytes, cudaStream_t stream) {
  return CUB_NS_QUALIFIER::DeviceReduce::Sum(temporary, bytes, static_cast<const Word *>(input), static_cast<Word *>(output),
                                             static_cast<Count>(input_bytes / sizeof(Word)), stream);
}

int temporary_bytes(const lookback_peer_size *size, std::size_t *bytes) {
  *bytes = 0;
  return sum(nullptr, *bytes, nullptr, nullptr, size->n, nullptr);
}

int launch(void *temporary, std::size_t bytes, const void *const *inputs, void *output, const lookback_peer_size *size,
           void *stream) {
  const auto low_bits = [](const void *address) { return reinterpret_cast<std::uintptr_t>(address) % sizeof(Word); };
  if (low_bits(inputs[0]) != 0 || low_bits(output) != 0) {
    return cudaErrorMisalignedAddress;
  }
  return sum(temporary, bytes, inputs[0], output, size->n, static_cast<cudaStream_t>(stream));
}

constexpr lookback_peer_entry ENTRIES[] = {
  {"reduction-cub-" LOOKBACK_CUB_VERSION_TEXT, CUB_VERSION, LOOKBACK_PEER_READING, nullptr, nullptr, nullptr, nullptr, 0, 1,
   std::numeric_limits<Count>::max() * std::uint64_t{sizeof(Word)}, temporary_bytes, launch},
};

} // namespace

extern "C" std::size_t LOOKBACK_PEER_TABLE(const lookback_peer_entry **entries) {
  *entries = ENTRIES;
  return sizeof(ENTRIES) / sizeof(ENTRIES[0]);
}
