// What the kernels beside the scans share: every one strides a one-dimensional grid over its array, and those of
// `verify.cu` and `measure.cu` that compare add to one `comparison`, which the host sets to {0, ~0} before.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct comparison {
  u64 mismatches;
  u64 first_mismatch;  // smallest index that differs; all ones if none does
};

struct alignas(16) bits128 {
  u64 low;
  u64 high;
};

// Bit for bit, but any NaN for any NaN: which payload survives an operator is nobody's promise.
template <class T>
__device__ bool same(T a, T b) {
  u64 bits_of_a = 0;
  u64 bits_of_b = 0;
  memcpy(&bits_of_a, &a, sizeof(T));
  memcpy(&bits_of_b, &b, sizeof(T));
  return (a != a && b != b) || bits_of_a == bits_of_b;
}
__device__ bool same(bits128 a, bits128 b) { return a.low == b.low && a.high == b.high; }

__device__ u64 first_index() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ u64 index_stride() { return static_cast<u64>(gridDim.x) * blockDim.x; }

// Counted per thread first, so that a wholly wrong output does not serialise on two words.
__device__ void add_to(comparison* result, u64 mismatches, u64 first_mismatch) {
  if (mismatches == 0) return;
  atomicAdd(&result->mismatches, mismatches);
  atomicMin(&result->first_mismatch, first_mismatch);
}

// Bytes that must hold `filling` still: the guards around an array.
extern "C" __global__ void __launch_bounds__(256)
    compare_filling(const u8* bytes, u64 count, u64 filling, comparison* result) {
  u64 mismatches = 0;
  u64 first = ~0ull;
  for (u64 i = first_index(); i < count; i += index_stride()) {
    if (bytes[i] == filling) continue;
    ++mismatches;
    if (i < first) first = i;
  }
  add_to(result, mismatches, first);
}
