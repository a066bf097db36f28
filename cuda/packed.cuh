// Several narrow elements at a time in a 32-bit word: sums of 8-bit and 16-bit integers. One at a time, each of them
// would take a register of its own, and two instructions to get it out of its word and back.
#pragma once

#include "operators.cuh"

namespace lookback {

// How the elements of a word are combined, where there is a way; `carry` is what stands left of a word, in the form
// that the next step adds.
template <class Operator>
struct packed {
  static constexpr bool exists = false;
};

// The even and the odd elements apart, in halves of 16 bits, whose upper bytes take what overflows.
template <>
struct packed<operators::sum<u8>> {
  static constexpr bool exists = true;
  static constexpr u32 even_bytes = 0x00ff00ff;

  // `running` and the sum of the elements.
  DEVICE static u32 total(u32 word, u32 running) { return add_bytes(word, running); }

  DEVICE static u32 carry(u8 value) { return value * 0x00010001u; }

  // Replaces the elements by their sums from `carry`.
  template <bool is_inclusive>
  DEVICE static void scan(u32& word, u32& carry) {
    const u32 even = word & even_bytes;
    const u32 odd = word >> 8 & even_bytes;
    // The first pair is added to the second one. With the carry at most 5 * 255 in a half, so nothing runs over.
    const u32 even_sums = even + ((even + odd) << 16) + carry;
    const u32 odd_sums = even_sums + odd;
    const u32 sums = select_bytes(even_sums, odd_sums, 0x6240);
    // Moved up by one element, what stands left of the word comes first.
    word = is_inclusive ? sums : select_bytes(sums, carry, 0x2104);
    carry = select_bytes(odd_sums, 0, 0x4242);
  }
};

template <>
struct packed<operators::sum<u16>> {
  static constexpr bool exists = true;

  DEVICE static u32 total(u32 word, u32 running) { return add_halves(word, running); }

  DEVICE static u32 carry(u16 value) { return value; }

  // The upper half of `carry` is of no account.
  template <bool is_inclusive>
  DEVICE static void scan(u32& word, u32& carry) {
    const u32 first = word + carry;
    const u32 second = (word >> 16) + first;
    word = is_inclusive ? select_bytes(first, second, 0x5410) : select_bytes(carry, first, 0x5410);
    carry = second;
  }
};

// Whether vectors of that many elements are taken a word at a time.
template <class Operator, u32 width>
DEVICE_CONSTEXPR bool is_packed() {
  return packed<Operator>::exists && width * sizeof(typename Operator::value_type) == LOOKBACK_VECTOR_BYTES;
}

constexpr u32 vector_words = LOOKBACK_VECTOR_BYTES / sizeof(u32);

// Replaces the elements of a vector by their scan from `running`.
template <class Operator, bool is_inclusive>
DEVICE void scan_packed(u32* words, typename Operator::value_type running) {
  u32 carry = packed<Operator>::carry(running);
  LOOKBACK_UNROLL
  for (u32 i = 0; i < vector_words; ++i) packed<Operator>::template scan<is_inclusive>(words[i], carry);
  count_operators(LOOKBACK_VECTOR_BYTES / sizeof(typename Operator::value_type));
}

// The combination of a vector.
template <class Operator>
DEVICE typename Operator::value_type combine_packed(const u32* words) {
  u32 total = 0;
  LOOKBACK_UNROLL
  for (u32 i = 0; i < vector_words; ++i) total = packed<Operator>::total(words[i], total);
  count_operators(LOOKBACK_VECTOR_BYTES / sizeof(typename Operator::value_type) - 1);
  return static_cast<typename Operator::value_type>(total);
}

}  // namespace lookback
