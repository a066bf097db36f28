// Sorting: elements of one or several arrays are stored in the order of their keys, those of the first array, and where keys are
// equal in the order in which they stand. Which of its bits order a key the launch says; kernels sort by a digit of them at a time.
//
// `Own` has the arrays alone, as unsigned words:
//
//   inputs   `elements<Key, Values...>`, which are those that are stored, too
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "elements.cuh"
#include "plain.cuh"

namespace lookback {

// What the bits of a key are.
enum key_type : u32 { keys_are_unsigned, keys_are_signed, keys_are_floats };

// A key as a word whose numbers are ordered as keys are. Two's complement has its sign turned. Of a float of IEEE 754 that has its
// sign set all bits are turned, so that the order is the standard's total order: the negative NaNs, numbers, -0, +0, numbers, the
// positive NaNs.
template <key_type type, bool is_descending, class Word>
DEVICE Word ordered_bits(Word key) {
  constexpr Word sign = static_cast<Word>(static_cast<Word>(1) << (8 * sizeof(Word) - 1));
  constexpr Word all = static_cast<Word>(~static_cast<Word>(0));
  Word turned = is_descending ? all : 0;
  if (type == keys_are_signed) turned ^= sign;
  if (type == keys_are_floats) turned ^= (key & sign) != 0 ? all : sign;
  return key ^ turned;
}

// Digits of the bits that are sorted by.
DEVICE u32 passes_of(lookback_key_bits bits) {
  return (bits.end - bits.first + LOOKBACK_DIGIT_BITS - 1) / LOOKBACK_DIGIT_BITS;
}

// The bits of a digit, the lowest one of number 0.
DEVICE lookback_key_bits digit_bits(lookback_key_bits bits, u32 pass) {
  const u32 first = bits.first + pass * LOOKBACK_DIGIT_BITS;
  return {first, first + LOOKBACK_DIGIT_BITS < bits.end ? first + LOOKBACK_DIGIT_BITS : bits.end};
}

// What is scanned are counts, for each digit by itself.
template <class Own, key_type type, bool is_descending, class Count, bool is_counted_>
struct sorted : plain<operators::sum<Count>> {
  using inputs = typename Own::inputs;
  using key_word = decltype(inputs::first);
  static constexpr bool has_arrays = true;
  static constexpr bool is_counted = is_counted_;

  // How often each digit has each of its values, pass after pass.
  using binned_type = key_word;
  static constexpr u32 maximum_bins = LOOKBACK_MAXIMUM_PASSES * LOOKBACK_DIGITS;

  DEVICE static u32 bins(const lookback_launch& launch) { return passes_of(launch.key_bits) * LOOKBACK_DIGITS; }

  DEVICE static key_word load_binned(const lookback_launch& launch, u64 index) {
    return memory::load(static_cast<const key_word*>(launch.inputs[0]) + index);
  }

  template <class Body>
  DEVICE static void each_bin(const lookback_launch& launch, u64, key_word key, Body body) {
    const u32 passes = passes_of(launch.key_bits);
    for (u32 pass = 0; pass < passes; ++pass) body(pass * LOOKBACK_DIGITS + digit(key, digit_bits(launch.key_bits, pass)));
  }

  // At most 8 bits of a key.
  DEVICE static u32 digit(key_word key, lookback_key_bits bits) {
    const key_word low = static_cast<key_word>(ordered_bits<type, is_descending>(key) >> bits.first);
    return static_cast<u32>(low) & ((1u << (bits.end - bits.first)) - 1);
  }
};

}  // namespace lookback
