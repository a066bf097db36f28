// Sums of 8-bit and 16-bit integers, several in a 32-bit word. One at a time, each would take a register, and two
// instructions to get it out of its word and back.
#pragma once

#include "operators.cuh"

namespace lookback {

// How the elements of a word are combined, for operators that have a way. `carry` is the sum of all left of the word.
template <class Operator>
struct packed {
  static constexpr bool exists = false;
  // Totals that fit into a word side by side, with room for their sums over a warp.
  static constexpr u32 totals_in_word = 1;
};

// Even and odd elements are summed apart, in halves of 16 bits, whose upper bytes take the overflow.
template <>
struct packed<operators::sum<u8>> {
  static constexpr bool exists = true;
  static constexpr u32 totals_in_word = 2;
  static constexpr u32 even_bytes = 0x00ff00ff;

  // `running` and the sum of the elements.
  DEVICE static u32 total(u32 word, u32 running) { return add_bytes(word, running); }

  // Replaces the elements by their sums from `carry`. At most 17 values are added up, the vector's and the one left of
  // it, so no half overflows into the other.
  template <bool is_inclusive>
  DEVICE static void scan(u32& word, u32& carry) {
    const u32 first_pair = add_lower_bytes(word, carry);
    const u32 both_pairs = add_bytes(word, carry);
    if (is_inclusive) {
      const u32 odd_sums = (both_pairs << 16) + first_pair;
      const u32 even_sums = odd_sums - select_bytes(word, 0, 0x4341);
      word = select_bytes(even_sums, odd_sums, 0x6240);
    } else {
      const u32 left_of_even = (first_pair << 16) + carry;
      const u32 left_of_odd = left_of_even + (word & even_bytes);
      word = select_bytes(left_of_even, left_of_odd, 0x6240);
    }
    carry = both_pairs;
  }
};

template <>
struct packed<operators::sum<u16>> {
  static constexpr bool exists = true;
  static constexpr u32 totals_in_word = 1;

  DEVICE static u32 total(u32 word, u32 running) { return add_halves(word, running); }

  // The upper half of `carry` is ignored.
  template <bool is_inclusive>
  DEVICE static void scan(u32& word, u32& carry) {
    const u32 first = word + carry;
    const u32 second = add_halves(word, carry);
    word = is_inclusive ? select_bytes(first, second, 0x5410) : select_bytes(carry, first, 0x5410);
    carry = second;
  }
};

// The operator for totals: on whole registers where the sum allows it, which saves cutting each step to size.
template <class Operator, bool in_registers = packed<Operator>::exists>
struct totals_operator {
  using type = Operator;
};
template <class Operator>
struct totals_operator<Operator, true> {
  using type = operators::sum<u32>;
};

// Bytes that a total takes when lanes exchange totals.
template <class Operator>
DEVICE_CONSTEXPR u32 exchanged_bytes() {
  if constexpr (packed<Operator>::exists) {
    return sizeof(u32) / packed<Operator>::totals_in_word;
  } else {
    return sizeof(typename Operator::value_type);
  }
}

// Whether vectors of so many elements are combined a word at a time.
template <class Operator, u32 width>
DEVICE_CONSTEXPR bool is_packed() {
  return packed<Operator>::exists && width * sizeof(typename Operator::value_type) == LOOKBACK_VECTOR_BYTES;
}

constexpr u32 vector_words = LOOKBACK_VECTOR_BYTES / sizeof(u32);

// Replaces the elements of a vector by their scan from `running`.
template <class Operator, bool is_inclusive>
DEVICE void scan_packed(u32* words, typename Operator::value_type running) {
  u32 carry = running;
  LOOKBACK_UNROLL
  for (u32 i = 0; i < vector_words; ++i) packed<Operator>::template scan<is_inclusive>(words[i], carry);
  count_operators(LOOKBACK_VECTOR_BYTES / sizeof(typename Operator::value_type));
}

// The sum of a vector, which may have more bits than an element.
template <class Operator>
DEVICE u32 sum_packed(const u32* words) {
  u32 total = 0;
  LOOKBACK_UNROLL
  for (u32 i = 0; i < vector_words; ++i) total = packed<Operator>::total(words[i], total);
  count_operators(LOOKBACK_VECTOR_BYTES / sizeof(typename Operator::value_type) - 1);
  return total;
}

// The combination of a vector.
template <class Operator>
DEVICE typename Operator::value_type combine_packed(const u32* words) {
  return static_cast<typename Operator::value_type>(sum_packed<Operator>(words));
}

}  // namespace lookback
