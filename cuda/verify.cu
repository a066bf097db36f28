// Comparison of an output with its reference, on the device: at 2^32 elements the trip over the bus would
// take longer than everything else. Plain loads: nothing of this is measured.

#include "comparison.cuh"
#include "instances.h"

// Element i of the output must be element i of the inclusive reference; of an exclusive scan
// (`shift` 1) element i - 1, and the identity at the front.
template <class T>
__device__ void compare_exact(const void* output, const void* reference, u64 n, u64 shift, u64 identity_low,
                              u64 identity_high, comparison* result) {
  const T* found = static_cast<const T*>(output);
  const T* expected = static_cast<const T*>(reference);
  const u64 identity_words[2] = {identity_low, identity_high};
  T identity;
  memcpy(&identity, identity_words, sizeof(T));
  u64 mismatches = 0;
  u64 first = ~0ull;
  for (u64 i = first_index(); i < n; i += index_stride()) {
    const T want = i < shift ? identity : expected[i - shift];
    if (same(found[i], want)) continue;
    ++mismatches;
    if (i < first) first = i;
  }
  add_to(result, mismatches, first);
}

// |output - (high + low)| <= factor * magnitude. NaN and infinity must be met as such, except that where the prefix sum of
// |x| passes the type's largest number some order of additions overflows, and no finite result can be asked for. What
// such inputs come to is decided on the host, by src/lab/verify.rs, and not by this verdict.
template <class T>
__device__ bool within_bound(T found, double high, double low, double magnitude, double factor, double largest) {
  const double infinity = __longlong_as_double(0x7ff0000000000000ll);
  const double value = static_cast<double>(found);
  const bool is_finite = value == value && value != infinity && value != -infinity;
  if (high != high) return value != value;
  if (magnitude > largest && !is_finite) return true;
  if (high == infinity || high == -infinity) return value == high;
  const double error = (value - high) - low;
  return (error < 0.0 ? -error : error) <= factor * magnitude;
}

template <class T>
__device__ void compare_rounded(const void* output, const double* high, const double* low, const double* magnitude,
                                u64 n, u64 shift, double factor, double largest, comparison* result) {
  const T* found = static_cast<const T*>(output);
  u64 mismatches = 0;
  u64 first = ~0ull;
  for (u64 i = first_index(); i < n; i += index_stride()) {
    const bool right = i < shift ? found[i] == T(0)
                                 : within_bound(found[i], high[i - shift], low == nullptr ? 0.0 : low[i - shift],
                                                magnitude[i - shift], factor, largest);
    if (right) continue;
    ++mismatches;
    if (i < first) first = i;
  }
  add_to(result, mismatches, first);
}

#define EXACT(name, type)                                                                                        \
  extern "C" __global__ void __launch_bounds__(256)                                                              \
      name(const void* output, const void* reference, u64 n, u64 shift, u64 identity_low, u64 identity_high,      \
           comparison* result) {                                                                                 \
    compare_exact<type>(output, reference, n, shift, identity_low, identity_high, result);                       \
  }
EXACT(compare_exact_1, u8)
EXACT(compare_exact_2, u16)
EXACT(compare_exact_4, u32)
EXACT(compare_exact_8, u64)
EXACT(compare_exact_16, bits128)
#define EXACT_FLOAT(suffix, type) EXACT(compare_exact_##suffix, type)
LOOKBACK_FLOATS(EXACT_FLOAT)

#define ROUNDED(suffix, type)                                                                                     \
  extern "C" __global__ void __launch_bounds__(256)                                                               \
      compare_rounded_##suffix(const void* output, const double* high, const double* low,                         \
                               const double* magnitude, u64 n, u64 shift, double factor, double largest,          \
                               comparison* result) {                                                              \
    compare_rounded<type>(output, high, low, magnitude, n, shift, factor, largest, result);                       \
  }
LOOKBACK_FLOATS(ROUNDED)
