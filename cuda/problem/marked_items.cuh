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
  u32 begins_within = 0;  // not 0 if a segment begins within a run, and not with its first value

  DEVICE T get(u32 i) const { return {values[i], begins[i / 32] >> i % 32 & 1}; }
  // The same where it is known that none begins with it.
  DEVICE T get_unmarked(u32 i) const { return {values[i], 0}; }
  DEVICE void set(u32 i, T state) {
    u32& word = begins[i / 32];
    values[i] = state.value;
    word &= ~(1u << i % 32);
    set_bit_if(word, i % 32, state.begins != 0);
  }

  DEVICE void set_value(u32 i, T state) { values[i] = state.value; }

  // A run that is loaded, `bits` with one for each of its values.
  template <u32 width>
  DEVICE void set_each(u32 first, const decltype(T::value) (&loaded)[width], u32 bits) {
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) values[first + j] = loaded[j];
    begins_within |= bits >> 1;
    begins[first / 32] |= bits << first % 32;
    if (first % 32 + width > 32) begins[first / 32 + 1] |= bits >> (32 - first % 32);
  }

  // The combination of a run. `is_split`: a segment may begin within it.
  template <class Operator, u32 width, bool is_split>
  DEVICE T combined(u32 first) const {
    u32 bits = begins[first / 32] >> first % 32;
    if (first % 32 + width > 32) bits |= begins[first / 32 + 1] << (32 - first % 32);
    if (width < 32) bits &= (1u << width % 32) - 1;
    if constexpr (!is_split) bits &= 1;
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
