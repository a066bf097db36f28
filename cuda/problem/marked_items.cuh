// The states that a thread holds of a problem in segments.
#pragma once

#include "../operators.cuh"
#include "problem.cuh"

namespace lookback {

// States that are loaded from arrays, in segments: a value and a bit each, which says whether one begins there.
template <class Problem, u32 capacity>
struct marked_items {
  using T = typename Problem::state_type;
  static constexpr bool are_words = false;

  decltype(T::value) values[capacity];
  u32 begins[(capacity + 31) / 32] = {};

  DEVICE T get(u32 i) const { return {values[i], begins[i / 32] >> i % 32 & 1}; }
  DEVICE void set(u32 i, T state) {
    u32& word = begins[i / 32];
    values[i] = state.value;
    word &= ~(1u << i % 32);
    set_bit_if(word, i % 32, state.begins != 0);
  }

  // A vector that is loaded, `bits` with one for each of its values. It lies in one word.
  template <u32 width>
  DEVICE void set_each(u32 first, const decltype(T::value) (&loaded)[width], u32 bits) {
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) values[first + j] = loaded[j];
    begins[first / 32] |= bits << first % 32;
  }

  // The combination of a vector.
  template <class Operator, u32 width>
  DEVICE T combined(u32 first) const {
    const u32 bits = begins[first / 32] >> first % 32 & ((1u << width) - 1);
    auto value = values[first];
    LOOKBACK_UNROLL
    for (u32 j = 1; j < width; ++j) value = combine<Operator>({value, 0}, {values[first + j], bits >> j & 1}).value;
    return {value, bits};
  }
};

// Whether the states of a problem are held so.
template <class Problem>
DEVICE_CONSTEXPR bool are_marked() {
  return Problem::has_arrays && segments<typename Problem::operator_type>::exist;
}

}  // namespace lookback
