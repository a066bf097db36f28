// Floats of two bytes, as arrays hold them. Nothing is added up in them: a problem converts them when it loads and stores.
#pragma once

#include "platform.cuh"

namespace lookback {

DEVICE u32 bits_of_float(float value) {
  u32 bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}
DEVICE float float_of_bits(u32 bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

constexpr u32 float_infinity_bits = 0x7f800000;

// IEEE 754 binary16: a sign, 5 bits of exponent, 10 of significand.
struct alignas(2) f16 {
  u16 bits;

  f16() = default;
  // To the nearest, of two that are as near the even one. A double is rounded to a float first.
  DEVICE explicit f16(float value) {
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    const u32 all = bits_of_float(value);
    const u32 magnitude = all & 0x7fffffff;
    u32 rounded;
    if (magnitude > float_infinity_bits) {
      rounded = 0x7e00 | (magnitude >> 13 & 0x1ff);  // NaN, a quiet one
    } else if (magnitude >= 0x477ff000) {
      rounded = 0x7c00;  // 65520, half a step beyond the largest number, and above
    } else if (magnitude < 0x38800000) {
      // Below the least normal number, 2^-14, steps are of 2^-24, as those of floats from a half to 1.
      rounded = bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f);
    } else {
      const u32 rebiased = magnitude - (112u << 23);
      rounded = (rebiased + 0xfff + (rebiased >> 13 & 1)) >> 13;  // a carry goes into the exponent
    }
    bits = static_cast<u16>((all >> 16 & 0x8000) | rounded);
#endif
  }

  DEVICE explicit operator float() const {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    const u32 sign = (bits & 0x8000u) << 16;
    const u32 exponent = bits >> 10 & 31;
    const u32 fraction = bits & 0x3ff;
    if (exponent == 0) return float_of_bits(sign | bits_of_float(static_cast<float>(fraction) * 0x1p-24f));
    if (exponent < 31) return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const u32 quiet = fraction != 0 ? 0x400000 : 0;
    return float_of_bits(sign | float_infinity_bits | quiet | fraction << 13);
#endif
  }
  // C++ does not go by way of a float on its own.
  DEVICE explicit operator double() const { return static_cast<float>(*this); }
};

// The upper half of a float: a sign, 8 bits of exponent, 7 of significand.
struct alignas(2) bf16 {
  u16 bits;

  bf16() = default;
  // As f16's.
  DEVICE explicit bf16(float value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    const u32 all = bits_of_float(value);
    const bool is_nan = (all & 0x7fffffff) > float_infinity_bits;
    // The lower half of a NaN may be all that makes it one.
    bits = static_cast<u16>(is_nan ? all >> 16 | 0x40 : (all + 0x7fff + (all >> 16 & 1)) >> 16);
#endif
  }

  DEVICE explicit operator float() const { return float_of_bits(static_cast<u32>(bits) << 16); }
  DEVICE explicit operator double() const { return static_cast<float>(*this); }
};

// As floats: a NaN differs from everything, -0 from 0 in nothing.
DEVICE bool operator!=(f16 a, f16 b) { return static_cast<float>(a) != static_cast<float>(b); }
DEVICE bool operator!=(bf16 a, bf16 b) { return static_cast<float>(a) != static_cast<float>(b); }

}  // namespace lookback
