// The states that a thread holds, in registers. Sums of narrow integers are kept in words: one by one each would be a
// register, and stay one even where it is only moved.
#pragma once

#include "../config.cuh"
#include "../packed.cuh"
#include "../problem/marked_items.cuh"
#include "../problem/problem.cuh"
#include "../problem/ranked_items.cuh"

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

// Those of a thread for a problem and a configuration.
template <class Problem, class Config>
using items_of = typename choice<
    are_marked<Problem>(), marked_items<Problem, Config::maximum_vt>,
    typename choice<is_by_rank<Problem>(), ranked_items<Problem, Config::maximum_vt, has_groups<Problem>(), has_lengths<Problem>(), few_of_lane<Problem, Config>()>,
                    lane_items<Problem, Config::maximum_vt,
                               packed<typename Problem::operator_type>::exists && !Problem::has_arrays &&
                                   Config::maximum_vt * sizeof(typename Problem::state_type) % sizeof(u32) == 0>>::type>::type;

}  // namespace lookback
