// Associative operators, each with its value type and identity. `a` stands left of `b`; operands may be swapped only
// where `is_commutative` says so.
#pragma once

#include "platform.cuh"

namespace lookback {

// x -> multiplier * x + addend, modulo 2^64.
struct alignas(16) affine_map {
  u64 multiplier;
  u64 addend;
};

// Unmatched closing and opening brackets: the bicyclic monoid.
struct alignas(8) bicyclic_pair {
  u32 closing;
  u32 opening;
};

// The indices first ... last, modulo 2^32; (1, 0) is empty, (2, 0) is the error that nothing mends.
struct alignas(8) index_interval {
  u32 first;
  u32 last;
};

// Limits of the number types, because neither NVRTC nor a kernel includes <limits>; the smaller and the larger of two.
template <class T>
struct number;
template <class T>
struct integer_number {
  static constexpr bool is_integer = true;
  DEVICE static T minimum(T a, T b) { return b < a ? b : a; }
  DEVICE static T maximum(T a, T b) { return b > a ? b : a; }
};
template <class T, class Wrapping>
struct unsigned_number : integer_number<T> {
  using wrapping = Wrapping;
  static constexpr T lowest = 0;
  static constexpr T highest = static_cast<T>(~T(0));
};
template <class T, class Unsigned, class Wrapping = Unsigned>
struct signed_number : integer_number<T> {
  using wrapping = Wrapping;
  static constexpr T highest = static_cast<T>(static_cast<Unsigned>(~Unsigned(0)) >> 1);
  static constexpr T lowest = -highest - 1;
};
template <class T, class Bits>
struct float_number {
  static constexpr bool is_integer = false;
  using wrapping = T;
  // Infinity by its bits: the one spelling that g++, clang, nvcc and NVRTC all take in a constant.
  static constexpr T highest = static_cast<T>(__builtin_bit_cast(double, 0x7ff0000000000000ull));
  static constexpr T lowest = -highest;

  // As in IEEE 754-2019: NaN if either is NaN, and -0 below +0, so that both are commutative. The sum of a NaN and
  // anything is NaN. Of equal numbers only zeros differ, in the sign.
  DEVICE static T minimum(T a, T b) {
    if (a != a || b != b) return a + b;
    if (a == b) return from_bits(to_bits(a) | to_bits(b));
    return b < a ? b : a;
  }
  DEVICE static T maximum(T a, T b) {
    if (a != a || b != b) return a + b;
    if (a == b) return from_bits(to_bits(a) & to_bits(b));
    return b > a ? b : a;
  }

 private:
  DEVICE static Bits to_bits(T value) {
    Bits bits;
    memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  DEVICE static T from_bits(Bits bits) {
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
  }
};
template <>
struct number<u8> : unsigned_number<u8, u32> {};
template <>
struct number<u16> : unsigned_number<u16, u32> {};
template <>
struct number<u32> : unsigned_number<u32, u32> {};
template <>
struct number<u64> : unsigned_number<u64, u64> {};
template <>
struct number<signed char> : signed_number<signed char, u8, u32> {};
template <>
struct number<short> : signed_number<short, u16, u32> {};
template <>
struct number<int> : signed_number<int, u32> {};
template <>
struct number<long long> : signed_number<long long, u64> {};
template <>
struct number<float> : float_number<float, u32> {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  // One instruction.
  DEVICE static float minimum(float a, float b) {
    float result;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
  DEVICE static float maximum(float a, float b) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
  }
#endif
};
template <>
struct number<double> : float_number<double, u64> {};

// Whether states are marked where a segment begins (`problem/segmented.cuh`), which makes scans and reductions shorter.
template <class Operator>
struct segments {
  static constexpr bool exist = false;
};

namespace operators {

// Integers wrap: the addition is done unsigned, where overflow is defined.
template <class T>
struct sum {
  using value_type = T;
  static constexpr bool is_exactly_undone = number<T>::is_integer;  // by `without`; a float's sum is rounded
  static constexpr bool is_commutative = true;
  DEVICE static T identity() { return T(0); }
  DEVICE static T combine(T a, T b) {
    using wrapping = typename number<T>::wrapping;
    return static_cast<T>(static_cast<wrapping>(a) + static_cast<wrapping>(b));
  }
  // a + b - b
  DEVICE static T without(T total, T b) {
    using wrapping = typename number<T>::wrapping;
    return static_cast<T>(static_cast<wrapping>(total) - static_cast<wrapping>(b));
  }
};

// An operator that cannot be undone.
template <class T>
struct no_inverse {
  using value_type = T;
  static constexpr bool is_exactly_undone = false;
  DEVICE static T without(T total, T) { return total; }
};

// Integers wrap, as they do in a sum.
template <class T>
struct product : no_inverse<T> {
  static constexpr bool is_commutative = true;
  DEVICE static T identity() { return T(1); }
  DEVICE static T combine(T a, T b) {
    using wrapping = typename number<T>::wrapping;
    return static_cast<T>(static_cast<wrapping>(a) * static_cast<wrapping>(b));
  }
};

template <class T>
struct minimum : no_inverse<T> {
  static constexpr bool is_commutative = true;
  DEVICE static T identity() { return number<T>::highest; }
  DEVICE static T combine(T a, T b) { return number<T>::minimum(a, b); }
};

template <class T>
struct maximum : no_inverse<T> {
  static constexpr bool is_commutative = true;
  DEVICE static T identity() { return number<T>::lowest; }
  DEVICE static T combine(T a, T b) { return number<T>::maximum(a, b); }
};

template <class T>
struct bit_and : no_inverse<T> {
  static constexpr bool is_commutative = true;
  DEVICE static T identity() { return static_cast<T>(~T(0)); }
  DEVICE static T combine(T a, T b) { return static_cast<T>(a & b); }
};

template <class T>
struct bit_or : no_inverse<T> {
  static constexpr bool is_commutative = true;
  DEVICE static T identity() { return T(0); }
  DEVICE static T combine(T a, T b) { return static_cast<T>(a | b); }
};

template <class T>
struct bit_xor : no_inverse<T> {
  static constexpr bool is_commutative = true;
  DEVICE static T identity() { return T(0); }
  DEVICE static T combine(T a, T b) { return static_cast<T>(a ^ b); }
};

// First a, then b.
struct affine : no_inverse<affine_map> {
  static constexpr bool is_commutative = false;
  DEVICE static affine_map identity() { return {1, 0}; }
  DEVICE static affine_map combine(affine_map a, affine_map b) {
    return {a.multiplier * b.multiplier, b.multiplier * a.addend + b.addend};
  }
};

struct bicyclic : no_inverse<bicyclic_pair> {
  static constexpr bool is_commutative = false;
  DEVICE static bicyclic_pair identity() { return {0, 0}; }
  DEVICE static bicyclic_pair combine(bicyclic_pair a, bicyclic_pair b) {
    const u32 matched = a.opening < b.closing ? a.opening : b.closing;
    return {a.closing + b.closing - matched, a.opening + b.opening - matched};
  }
};

// Joins neighbours; anything out of order, missing or repeated gives the error, which absorbs.
struct intervals : no_inverse<index_interval> {
  static constexpr bool is_commutative = false;
  DEVICE static index_interval identity() { return {1, 0}; }
  DEVICE static bool is_empty(index_interval a) { return a.first == 1 && a.last == 0; }
  DEVICE static bool is_error(index_interval a) { return a.first == 2 && a.last == 0; }
  DEVICE static index_interval combine(index_interval a, index_interval b) {
    if (is_error(a) || is_error(b)) return {2, 0};
    if (is_empty(a)) return b;
    if (is_empty(b)) return a;
    if (b.first != a.last + 1) return {2, 0};
    return {a.first, b.last};
  }
};

// An operator whose partial results are combined in an order that follows from indices alone, so that sums of floats have the
// same bits in every strategy (docs/problems.md has the order).
template <class Operator>
struct reproducible : Operator {
  static constexpr bool is_commutative = false;
  static constexpr bool is_exactly_undone = false;
};

}  // namespace operators

// Whether it is such a one.
template <class Operator>
struct is_reproducible {
  static constexpr bool value = false;
};
template <class Operator>
struct is_reproducible<operators::reproducible<Operator>> {
  static constexpr bool value = true;
};

// a then b, counted as one application on the CPU device.
template <class Operator>
DEVICE typename Operator::value_type combine(typename Operator::value_type a, typename Operator::value_type b) {
  count_operator();
  return Operator::combine(a, b);
}

}  // namespace lookback
