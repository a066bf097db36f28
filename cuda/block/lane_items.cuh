// The values that a thread holds. Where the operator takes several narrow ones at a time they are kept in words: one by
// one they would be a register each, and stay so even where they are only moved.
#pragma once

#include "../config.cuh"
#include "../packed.cuh"

namespace lookback {

template <class T, u32 capacity, bool in_words>
struct lane_items {
  static constexpr bool are_words = false;

  T values[capacity];

  DEVICE T get(u32 i) const { return values[i]; }
  DEVICE void set(u32 i, T value) { values[i] = value; }

  // A whole vector, whose first element is the `first`-th value.
  template <u32 width>
  DEVICE void put(u32 first, const T (&vector)[width]) {
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) values[first + j] = vector[j];
  }
  template <u32 width>
  DEVICE void take(u32 first, T (&vector)[width]) const {
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) vector[j] = values[first + j];
  }
};

template <class T, u32 capacity>
struct lane_items<T, capacity, true> {
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
  DEVICE void put(u32 first, const T (&vector)[width]) {
    if constexpr (width % in_word == 0) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; j += in_word) memcpy(words + (first + j) / in_word, vector + j, sizeof(u32));
    } else {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) set(first + j, vector[j]);
    }
  }
  template <u32 width>
  DEVICE void take(u32 first, T (&vector)[width]) const {
    if constexpr (width % in_word == 0) {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; j += in_word) memcpy(vector + j, words + (first + j) / in_word, sizeof(u32));
    } else {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) vector[j] = get(first + j);
    }
  }
};

// Those of a thread for an operator and a configuration.
template <class Operator, class Config>
using items_of = lane_items<typename Operator::value_type, Config::maximum_vt,
                            packed<Operator>::exists &&
                                Config::maximum_vt * sizeof(typename Operator::value_type) % sizeof(u32) == 0>;

}  // namespace lookback
