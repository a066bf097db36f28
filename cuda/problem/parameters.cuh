// What a call gives the text of a definition beside arrays (`Definition::parameter` in Rust): it lies in the launch, so that one kernel
// serves all values.
#pragma once

#include "../platform.cuh"

namespace lookback {

// The one of that type that lies `at` bytes behind the first.
template <class T, u32 at>
DEVICE T parameter() {
  constexpr u32 word = sizeof(u32);
  static_assert(at % word == 0 && at + sizeof(T) <= LOOKBACK_PARAMETER_BYTES, "parameters lie in words, side by side");
  u32 words[(sizeof(T) + word - 1) / word];
  words[0] = parameter_word<at>();
  if constexpr (sizeof(T) > word) words[1] = parameter_word<at + word>();
  if constexpr (sizeof(T) > 2 * word) {
    words[2] = parameter_word<at + 2 * word>();
    words[3] = parameter_word<at + 3 * word>();
  }
  T value;
  memcpy(&value, words, sizeof(value));
  return value;
}

}  // namespace lookback
