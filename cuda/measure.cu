// What a measurement needs beside the scans that are measured: inputs, verdicts, and the tools that keep a
// time honest. None of this is a scan. Verdicts share one file with the kernels that are measured, operators.cuh:
// what an operator does with two values. The rest of a scan is checked without a line of it: the input is made anew
// from its seed, loads are plain, each element is compared with its predecessor, and the identity is the host's. So
// a wrong operator is right here; `lookback compare` and the tests compare scans with the host's
// (src/element/monoid.rs).
//
// Inputs come from a counter: element i is a function of (seed, i), the same function as `generate` in
// src/lab/measure/input.rs. So the input needs no second copy: whoever verifies makes it anew, and sees also
// whether a kernel has changed it.
//
// - `hold`, `clock_probe`, `overwrite`, `spin`, `empty`: tools of the timer (src/lab/cuda/timing/timer.rs).
// - `copy_16_*`: the floor, the same once more under another name, and one that is slower on purpose.
// - `generate_*`: inputs. `check_*`: verdicts, added to one `comparison`, which the host sets to {0, ~0} before.

#include "comparison.cuh"
#include "instances.h"
#include "operators.cuh"

typedef int i32;
typedef long long i64;

// ---------------------------------------------------------------------------------------------------------
// Tools of the timer

__device__ u64 global_nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

__device__ u64 multiprocessor_cycles() {
  u64 now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return now;
}

// Acquire at system scope, pairs with the host's release store in `Signals::release`: the host has queued
// everything that must start behind this kernel.
__device__ u32 read_from_host(const u32* word) {
  u32 value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}

// Keeps the stream back until the host writes `ticket`, so that launch latency stays outside the events that
// follow. Gives up after `limit_ns`, whatever happened to the host, and says so in `late`.
extern "C" __global__ void __launch_bounds__(32) hold(const u32* release, u32 ticket, u64 limit_ns, u32* late) {
  if (threadIdx.x != 0) return;
  const u64 start = global_nanoseconds();
  while (read_from_host(release) != ticket) {
    if (global_nanoseconds() - start < limit_ns) continue;
    *late = ticket;
    return;
  }
}

// result[0] cycles in result[1] nanoseconds. The timer advances in steps of up to 1 us on some GPUs, so the
// window begins and ends at a step and its length is exact to the time of one poll.
extern "C" __global__ void __launch_bounds__(32) clock_probe(u64* result, u64 window_ns) {
  if (threadIdx.x != 0) return;
  const u64 before = global_nanoseconds();
  u64 start = before;
  while (start == before) start = global_nanoseconds();
  const u64 start_cycles = multiprocessor_cycles();
  u64 end = start;
  while (end - start < window_ns) end = global_nanoseconds();
  const u64 end_cycles = multiprocessor_cycles();
  result[0] = end_cycles - start_cycles;
  result[1] = end - start;
}

// Writes `words` 16-byte words: with more than the L2 holds, nothing else is left in it.
extern "C" __global__ void __launch_bounds__(256) overwrite(bits128* words, u64 count, u64 value) {
  const u64 stride = static_cast<u64>(gridDim.x) * blockDim.x;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    words[i] = bits128{value, i};
  }
}

// Runs for `duration_ns`: what the timer is tested with.
extern "C" __global__ void __launch_bounds__(32) spin(u64 duration_ns) {
  const u64 start = global_nanoseconds();
  while (global_nanoseconds() - start < duration_ns) {
  }
}

extern "C" __global__ void empty() {}

// ---------------------------------------------------------------------------------------------------------
// Copies

constexpr u32 COPY_THREADS = 256;
constexpr u32 COPY_WORDS_PER_THREAD = 4;

// Every load of a thread is under way before its first store.
__device__ void copy_tile(const u8* input, u8* output, u64 bytes, u64 tile) {
  const bits128* source = reinterpret_cast<const bits128*>(input);
  bits128* target = reinterpret_cast<bits128*>(output);
  const u64 words = bytes / sizeof(bits128);
  const u64 first = tile * (COPY_THREADS * COPY_WORDS_PER_THREAD) + threadIdx.x;
  if (first + (COPY_WORDS_PER_THREAD - 1) * COPY_THREADS < words) {
    bits128 values[COPY_WORDS_PER_THREAD];
#pragma unroll
    for (u32 k = 0; k < COPY_WORDS_PER_THREAD; ++k) values[k] = source[first + k * COPY_THREADS];
#pragma unroll
    for (u32 k = 0; k < COPY_WORDS_PER_THREAD; ++k) target[first + k * COPY_THREADS] = values[k];
  } else {
    for (u64 i = first; i < words && i < first + COPY_WORDS_PER_THREAD * COPY_THREADS; i += COPY_THREADS) {
      target[i] = source[i];
    }
  }
  const u64 rest = words * sizeof(bits128) + threadIdx.x;
  if (tile == 0 && rest < bytes) output[rest] = input[rest];
}

// Blocks from `tiles` on copy the first tiles again: with `tiles` / 20 of them the kernel moves 5 % more bytes.
#define COPY(name)                                                                                         \
  extern "C" __global__ void __launch_bounds__(256) name(const u8* input, u8* output, u64 bytes, u64 tiles) { \
    copy_tile(input, output, bytes, blockIdx.x < tiles ? blockIdx.x : blockIdx.x - tiles);                   \
  }
COPY(copy_16)
COPY(copy_16_again)
COPY(copy_16_slower)

// ---------------------------------------------------------------------------------------------------------
// Inputs

// The numbers of `Distribution` in src/element/mod.rs.
constexpr u32 UNIFORM = 0;
constexpr u32 FALLING = 1;
constexpr u32 RISING = 2;
constexpr u32 SPARSE_ZEROS = 3;
constexpr u32 SPARSE_ONES = 4;
constexpr u32 WALK = 5;
constexpr u32 FACTORS = 6;

constexpr u64 PLATEAUS = 4096;

struct generator {
  u64 seed;
  u64 n;
  u32 distribution;
};

// SplitMix64: the output function of Steele, Lea & Flood (2014) over a counter.
__device__ u64 random_bits(u64 seed, u64 index) {
  u64 bits = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
  return bits ^ (bits >> 31);
}

using lookback::number;

// From -0.5 to 1.5 on a grid that the type holds exactly.
template <class T>
__device__ T uniform(u64 bits) {
  if constexpr (number<T>::is_integer) {
    return static_cast<T>(bits >> (64 - 8 * sizeof(T)));
  } else if constexpr (sizeof(T) == 4) {
    return static_cast<T>(static_cast<u32>(bits >> 40)) * 0x1p-23f - 0.5f;
  } else {
    return static_cast<T>(bits >> 11) * 0x1p-52 - 0.5;
  }
}

// A share of the type's range, as 64-bit fraction, in the order of the type.
template <class T>
__device__ T at_share(u64 share) {
  if constexpr (!number<T>::is_integer) {
    return static_cast<T>(static_cast<double>(static_cast<i64>(share ^ (1ull << 63))) * 0x1p-63);
  } else {
    const bool is_signed = number<T>::lowest != 0;
    const u64 ordered = is_signed ? share ^ (1ull << 63) : share;
    return static_cast<T>(ordered >> (64 - 8 * sizeof(T)));
  }
}

template <class T>
__device__ T generate(generator from, u64 index) {
  const u64 bits = random_bits(from.seed, index);
  switch (from.distribution) {
    case FALLING:
    case RISING: {
      const u64 plateau_length = (from.n + PLATEAUS - 1) / PLATEAUS;
      const u64 width = (index / plateau_length + 1) * (~0ull / PLATEAUS);
      const u64 share = __umul64hi(bits, width);
      return at_share<T>(from.distribution == FALLING ? ~share : share);
    }
    case SPARSE_ZEROS:
    case SPARSE_ONES:
      if constexpr (!number<T>::is_integer) {
        return T(0);
      } else {
        const u64 expected_events = 16 * sizeof(T);
        const bool event = __umul64hi(bits, from.n) < expected_events;
        const u64 bit = random_bits(~from.seed, index) % (8 * sizeof(T));
        const u64 set = event ? 1ull << bit : 0;
        return static_cast<T>(from.distribution == SPARSE_ZEROS ? ~set : set);
      }
    case WALK: {
      // -4 ... 4 without 0: partial sums stay small integers, exact in any order.
      const i32 step = static_cast<i32>(bits >> 61) - 4;
      return static_cast<T>(step < 0 ? step : step + 1);
    }
    case FACTORS:
      if constexpr (number<T>::is_integer) {
        return static_cast<T>(uniform<T>(bits) | 1);
      } else {
        // The quotient of two powers of two, so that of the product of neighbours the ends are left.
        const u64 exponent = 1023 + (random_bits(~from.seed, index + 1) >> 59) - (random_bits(~from.seed, index) >> 59);
        return static_cast<T>(__longlong_as_double(static_cast<i64>((bits >> 63 << 63) | exponent << 52)));
      }
    case UNIFORM:
    default:
      return uniform<T>(bits);
  }
}

// ---------------------------------------------------------------------------------------------------------
// Verdicts

// output[i] = output[i-1] + input[i] for every i; of an exclusive scan (`shift` 1) output[i-1] + input[i-1],
// and the identity at the front. If every step is right, every element is.
template <class Operator, class T = typename Operator::value_type>
__device__ void check_exact(const T* output, generator from, u32 shift, T identity, comparison* result) {
  u64 mismatches = 0;
  u64 first = ~0ull;
  for (u64 i = first_index(); i < from.n; i += index_stride()) {
    const T value = generate<T>(from, i == 0 ? 0 : i - shift);
    const T front = shift == 0 ? value : identity;
    const T expected = i == 0 ? front : Operator::combine(output[i - 1], value);
    if (output[i] == expected) continue;
    ++mismatches;
    if (i < first) first = i;
  }
  add_to(result, mismatches, first);
}

// The array is the generated one: a copy's output, or an input that nobody may have changed.
template <class T>
__device__ void check_copy(const T* array, generator from, comparison* result) {
  u64 mismatches = 0;
  u64 first = ~0ull;
  for (u64 i = first_index(); i < from.n; i += index_stride()) {
    if (array[i] == generate<T>(from, i)) continue;
    ++mismatches;
    if (i < first) first = i;
  }
  add_to(result, mismatches, first);
}

template <class T>
__device__ void generate_array(T* array, generator from) {
  for (u64 i = first_index(); i < from.n; i += index_stride()) array[i] = generate<T>(from, i);
}

// T by value in a word of 8 bytes: what the host passes every parameter as.
template <class T>
__device__ T from_word(u64 word) {
  T value;
  memcpy(&value, &word, sizeof(T));
  return value;
}

#define NUMBER(suffix, type)                                                                                     \
  extern "C" __global__ void __launch_bounds__(256)                                                              \
      generate_##suffix(type* array, u64 n, u64 seed, u64 distribution) {                                        \
    generate_array<type>(array, generator{seed, n, static_cast<u32>(distribution)});                             \
  }                                                                                                              \
  extern "C" __global__ void __launch_bounds__(256)                                                              \
      check_copy_##suffix(const type* array, u64 n, u64 seed, u64 distribution, comparison* result) {            \
    check_copy<type>(array, generator{seed, n, static_cast<u32>(distribution)}, result);                         \
  }
LOOKBACK_NUMBERS(NUMBER)

#define OPERATOR(suffix, type)                                                                                   \
  extern "C" __global__ void __launch_bounds__(256)                                                              \
      check_exact_##suffix(const type::value_type* output, u64 n, u64 seed, u64 distribution, u64 shift,         \
                           u64 identity, comparison* result) {                                                   \
    check_exact<type>(output, generator{seed, n, static_cast<u32>(distribution)}, static_cast<u32>(shift),       \
                      from_word<type::value_type>(identity), result);                                            \
  }
LOOKBACK_OPERATORS(OPERATOR)

// A sum of floats to about 106 bits, and the sum of |x| that its error bound grows with.
struct precise_sum {
  double high;
  double low;
  double magnitude;
};

// Knuth's two-sum: the sum rounded, and exactly what the rounding lost. Additions alone, which no compiler
// contracts or reorders here.
__device__ double two_sum(double left, double right, double* error) {
  const double sum = left + right;
  const double right_share = sum - left;
  const double left_share = sum - right_share;
  *error = (left - left_share) + (right - right_share);
  return sum;
}

__device__ void add(precise_sum* sum, double value) {
  double error;
  const double rounded = two_sum(sum->high, value, &error);
  sum->high = two_sum(rounded, sum->low + error, &sum->low);
  sum->magnitude += value < 0.0 ? -value : value;
}

// One thread a chunk walks it from front to back; the host adds the chunks' totals up, again from front to
// back, and `check_rounded` walks each chunk once more from there. No tree, no look-back, nothing shared
// between threads.
template <class T>
__device__ void sum_chunks(precise_sum* totals, generator from, u64 chunk_length) {
  const u64 chunks = (from.n + chunk_length - 1) / chunk_length;
  for (u64 chunk = first_index(); chunk < chunks; chunk += index_stride()) {
    precise_sum sum = {0.0, 0.0, 0.0};
    const u64 end = (chunk + 1) * chunk_length < from.n ? (chunk + 1) * chunk_length : from.n;
    for (u64 i = chunk * chunk_length; i < end; ++i) add(&sum, static_cast<double>(generate<T>(from, i)));
    totals[chunk] = sum;
  }
}

// |output - sum| <= factor * magnitude, the bound of src/lab/verify.rs; inputs are finite and small.
template <class T>
__device__ void check_rounded(const T* output, generator from, u64 chunk_length, const precise_sum* prefixes, u32 shift,
                              double factor, comparison* result) {
  const u64 chunks = (from.n + chunk_length - 1) / chunk_length;
  u64 mismatches = 0;
  u64 first = ~0ull;
  for (u64 chunk = first_index(); chunk < chunks; chunk += index_stride()) {
    precise_sum sum = prefixes[chunk];
    const u64 end = (chunk + 1) * chunk_length < from.n ? (chunk + 1) * chunk_length : from.n;
    for (u64 i = chunk * chunk_length; i < end; ++i) {
      const double value = static_cast<double>(generate<T>(from, i));
      if (shift == 0) add(&sum, value);
      const double difference = (static_cast<double>(output[i]) - sum.high) - sum.low;
      // A NaN compares false and is a mismatch.
      const bool right = (difference < 0.0 ? -difference : difference) <= factor * sum.magnitude;
      if (shift != 0) add(&sum, value);
      if (right) continue;
      ++mismatches;
      if (i < first) first = i;
    }
  }
  add_to(result, mismatches, first);
}

#define ROUNDED(suffix, type)                                                                                      \
  extern "C" __global__ void __launch_bounds__(256)                                                                \
      sum_chunks_##suffix(precise_sum* totals, u64 n, u64 seed, u64 distribution, u64 chunk_length) {              \
    sum_chunks<type>(totals, generator{seed, n, static_cast<u32>(distribution)}, chunk_length);                    \
  }                                                                                                                \
  extern "C" __global__ void __launch_bounds__(256)                                                                \
      check_rounded_##suffix(const type* output, u64 n, u64 seed, u64 distribution, u64 chunk_length,              \
                             const precise_sum* prefixes, u64 shift, double factor, comparison* result) {          \
    check_rounded<type>(output, generator{seed, n, static_cast<u32>(distribution)}, chunk_length, prefixes,        \
                        static_cast<u32>(shift), factor, result);                                                  \
  }
LOOKBACK_FLOATS(ROUNDED)
