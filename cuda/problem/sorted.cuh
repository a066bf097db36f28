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

// Those of one of the digits, the lowest of number 0.
DEVICE lookback_key_bits bits_of_pass(lookback_key_bits bits, u32 pass) {
  const u32 first = bits.first + pass * LOOKBACK_DIGIT_BITS;
  const u32 end = first + LOOKBACK_DIGIT_BITS;
  return {first, end < bits.end ? end : bits.end};
}

// What is scanned are counts, for each digit by itself.
template <class Own, key_type type, bool is_descending, class Count, bool is_counted_>
struct sorted : plain<operators::sum<Count>> {
  using inputs = typename Own::inputs;
  using key_word = decltype(inputs::first);
  static constexpr bool has_arrays = true;
  static constexpr bool is_counted = is_counted_;

  // How often each digit has each of its values, pass after pass. Those behind the last pass are counted and not asked for: without
  // branches a digit takes the fewest instructions.
  using binned_type = elements<key_word>;
  static constexpr u32 maximum_counts = sizeof(key_word) * LOOKBACK_DIGITS;
  static constexpr bool shares_bins = false;

  DEVICE static u32 counts(const lookback_launch& launch) { return passes_of(launch.key_bits) * LOOKBACK_DIGITS; }

  template <class Body>
  DEVICE static void each_count(const lookback_launch& launch, u64, const binned_type& key, Body body) {
    const key_word bits = bits_of(key.first, launch.key_bits);
    LOOKBACK_UNROLL
    for (u32 pass = 0; pass < sizeof(key_word); ++pass) {
      body(pass * LOOKBACK_DIGITS + static_cast<u32>(bits >> pass * LOOKBACK_DIGIT_BITS) % LOOKBACK_DIGITS);
    }
  }

  template <class Body>
  DEVICE static void with_bin(u32 count, Body body) {
    body(count);
  }

  // At most 8 bits of a key.
  DEVICE static u32 digit(key_word key, lookback_key_bits bits) { return static_cast<u32>(bits_of(key, bits)); }

  // The key of one byte that has such a digit: what turns an integer turns it back.
  DEVICE static key_word key_of(u32 digit) { return ordered_bits<type, is_descending>(static_cast<key_word>(digit)); }

  // The lowest of the result.
  DEVICE static key_word bits_of(key_word key, lookback_key_bits bits) {
    const u32 above = 8 * sizeof(key_word) - (bits.end - bits.first);
    const key_word mask = static_cast<key_word>(static_cast<key_word>(~static_cast<key_word>(0)) >> above);
    return static_cast<key_word>(ordered_bits<type, is_descending>(key) >> bits.first) & mask;
  }
};

}  // namespace lookback
