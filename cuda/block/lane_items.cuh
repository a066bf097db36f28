// The states that a thread holds, in registers. Sums of narrow integers are kept in words: one by one each would be a
// register, and stay one even where it is only moved.
#pragma once

#include "../config.cuh"
#include "../packed.cuh"
#include "../problem/problem.cuh"

namespace lookback {

template <class Problem, u32 capacity, bool in_words>
struct lane_items {
  using T = typename Problem::state_type;
  static constexpr bool are_words = false;

  T values[capacity];

  DEVICE T get(u32 i) const { return values[i]; }
  DEVICE void set(u32 i, T value) { values[i] = value; }

  // A vector of the input becomes the values from `first` on.
  template <u32 width>
  DEVICE void load(u32 first, const typename Problem::input_type (&vector)[width]) {
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) values[first + j] = Problem::load(vector[j]);
  }
  // And these a vector of the output.
  template <u32 width>
  DEVICE void store(u32 first, typename Problem::output_type (&vector)[width]) const {
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) vector[j] = Problem::store(values[first + j]);
  }
};

template <class Problem, u32 capacity>
struct lane_items<Problem, capacity, true> {
  using T = typename Problem::state_type;
  static_assert(is_same<typename Problem::input_type, T>::value && is_same<typename Problem::output_type, T>::value,
                "sums of narrow integers are scanned in the words in which they are loaded and stored");
  static constexpr bool are_words = true;
  static constexpr u32 in_word = sizeof(u32) / sizeof(T);
  static constexpr u32 bits = 8 * sizeof(T);

  u32 words[capacity / in_word];

  DEVICE T get(u32 i) const { return static_cast<T>(words[i / in_word] >> i % in_word * bits); }
  DEVICE void set(u32 i, T value) {
    const u32 place = i % in_word * bits;
    const u32 others = words[i / in_word] & ~(((1u << bits) - 1) << place);
    words[i / in_word] = others | static_cast<u32>(value) << place;
  }

  template <u32 width>
  DEVICE void load(u32 first, const T (&vector)[width]) {
    if constexpr (width % in_word == 0) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; j += in_word) memcpy(words + (first + j) / in_word, vector + j, sizeof(u32));
    } else {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) set(first + j, vector[j]);
    }
  }
  template <u32 width>
  DEVICE void store(u32 first, T (&vector)[width]) const {
    if constexpr (width % in_word == 0) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; j += in_word) memcpy(vector + j, words + (first + j) / in_word, sizeof(u32));
    } else {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) vector[j] = get(first + j);
    }
  }
};

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
    const u32 bits = begins[first / 32] >> first % 32 & static_cast<u32>((1ull << width) - 1);
    auto value = values[first];
    LOOKBACK_UNROLL
    for (u32 j = 1; j < width; ++j) value = combine<Operator>({value, 0}, {values[first + j], bits >> j & 1}).value;
    return {value, bits};
  }
};

template <class Problem>
DEVICE_CONSTEXPR bool are_marked() {
  return Problem::has_arrays && segments<typename Problem::operator_type>::exist;
}

// Those of a thread for a problem and a configuration.
template <class Problem, class Config>
using items_of =
    typename choice<are_marked<Problem>(), marked_items<Problem, Config::maximum_vt>,
                    lane_items<Problem, Config::maximum_vt,
                               packed<typename Problem::operator_type>::exists && !Problem::has_arrays &&
                                   Config::maximum_vt * sizeof(typename Problem::state_type) % sizeof(u32) == 0>>::type;

}  // namespace lookback
