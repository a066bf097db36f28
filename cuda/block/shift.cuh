// Vectors that begin a few elements before those that a lane has.
#pragma once

#include "../config.cuh"

namespace lookback {

// For `select_bytes`: the four bytes of two words that begin `skipped` bytes behind the first one's.
DEVICE u32 byte_selector(u32 skipped) { return 0x3210 + 0x1111 * skipped; }

// The last `shift` elements of `before`, then the first of `own`; `shift` from 1 to width - 1, the same for all lanes.
// Whole words are chosen, then bytes of two neighbours: an index that is known at run time alone would send the arrays
// to memory.
template <u32 width, class T>
DEVICE void join_vectors(const T (&before)[width], const T (&own)[width], u32 shift, T (&joined)[width]) {
  constexpr u32 bytes = width * sizeof(T);
  const u32 shift_bytes = shift * static_cast<u32>(sizeof(T));
  if constexpr (bytes < sizeof(u32)) {
    u32 low = 0;
    u32 high = 0;
    memcpy(&low, before, bytes);
    memcpy(&high, own, bytes);
    const u32 both = low | high << 8 * bytes;
    const u32 result = both >> 8 * (bytes - shift_bytes);
    memcpy(joined, &result, bytes);
  } else {
    constexpr u32 words = bytes / sizeof(u32);
    u32 from[2 * words + 1];
    memcpy(from, before, bytes);
    memcpy(from + words, own, bytes);
    from[2 * words] = 0;  // chosen by no byte of the result
    const u32 skipped = bytes - shift_bytes;
    LOOKBACK_UNROLL
    for (u32 step = words / 2; step > 0; step /= 2) {
      const bool is_on = (skipped / sizeof(u32) & step) != 0;
      LOOKBACK_UNROLL
      for (u32 i = 0; i + step <= 2 * words; ++i) from[i] = is_on ? from[i + step] : from[i];
    }
    const u32 selector = byte_selector(skipped % sizeof(u32));
    u32 result[words];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < words; ++i) result[i] = select_bytes(from[i], from[i + 1], selector);
    memcpy(joined, result, bytes);
  }
}

}  // namespace lookback
