// Memory accesses on a GPU: plain accesses for elements and shared memory, PTX with explicit semantics
// and scope for the protocol between blocks (PTX ISA, "Memory Consistency Model"). Included by
// `../memory.cuh`, which documents the interface.
#pragma once

namespace lookback {
namespace memory {

// The widest access that divides so many bytes, by which whatever has them is aligned.
DEVICE_CONSTEXPR u32 access_bytes(u32 bytes) {
  const u32 lowest_bit = bytes & (0 - bytes);
  return lowest_bit < LOOKBACK_VECTOR_BYTES ? lowest_bit : LOOKBACK_VECTOR_BYTES;
}

// The built-in type whose load or store is one instruction of that many bytes; several of them where none is.
template <u32 bytes>
struct access_word {
  struct type {
    typename access_word<access_bytes(bytes)>::type words[bytes / access_bytes(bytes)];
  };
};
template <>
struct access_word<1> {
  using type = u8;
};
template <>
struct access_word<2> {
  using type = u16;
};
template <>
struct access_word<4> {
  using type = u32;
};
template <>
struct access_word<8> {
  using type = uint2;
};
template <>
struct access_word<16> {
  using type = uint4;
};

// Elements. Never through the non-coherent path: a scan in place reads what the launch itself writes.
template <class T>
DEVICE T load(const T* p) {
  using word_type = typename access_word<sizeof(T)>::type;
  const word_type word = *reinterpret_cast<const word_type*>(p);
  T value;
  memcpy(&value, &word, sizeof(T));
  return value;
}

template <class T>
DEVICE void store(T* p, T value) {
  using word_type = typename access_word<sizeof(T)>::type;
  word_type word;
  memcpy(&word, &value, sizeof(T));
  *reinterpret_cast<word_type*>(p) = word;
}

template <u32 width, class T>
DEVICE void load_vector(const T* p, T (&items)[width]) {
  using word_type = typename access_word<width * sizeof(T)>::type;
  const word_type word = *reinterpret_cast<const word_type*>(p);
  memcpy(items, &word, sizeof(word));
}

template <u32 width, class T>
DEVICE void store_vector(T* p, const T (&items)[width]) {
  using word_type = typename access_word<width * sizeof(T)>::type;
  word_type word;
  memcpy(&word, items, sizeof(word));
  *reinterpret_cast<word_type*>(p) = word;
}

template <u32 width, class T>
DEVICE void store_vector_unsplit(T* p, const T (&items)[width]) {
  using word_type = typename access_word<width * sizeof(T)>::type;
  word_type word;
  memcpy(&word, items, sizeof(word));
  if constexpr (sizeof(word) == 16) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "r"(word.x), "r"(word.y),
                 "r"(word.z), "r"(word.w)
                 : "memory");
  } else if constexpr (sizeof(word) == 8) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(word.x), "r"(word.y)
                 : "memory");
  } else {
    *reinterpret_cast<word_type*>(p) = word;
  }
}

template <class T>
DEVICE void store_words_unsplit(T* p, const u32 (&words)[LOOKBACK_VECTOR_BYTES / sizeof(u32)]) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)), "r"(words[0]),
               "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
}

template <class T>
DEVICE T load_spine(const T* p) {
  return load(p);
}
template <class T>
DEVICE void store_spine(T* p, T value) {
  store(p, value);
}

template <class T>
DEVICE T shared_load(const T& where) {
  SHARED_DELAY_POINT(&where);
  return where;
}
template <class T>
DEVICE void shared_store(T& where, T value) {
  SHARED_DELAY_POINT(&where);
  where = value;
}
template <u32 width, class T>
DEVICE void shared_load_vector(const T* p, T (&items)[width]) {
  SHARED_DELAY_POINT(p);
  load_vector<width>(p, items);
}
template <u32 width, class T>
DEVICE void shared_store_vector(T* p, const T (&items)[width]) {
  SHARED_DELAY_POINT(p);
  using word_type = typename access_word<width * sizeof(T)>::type;
  word_type word;
  memcpy(&word, items, sizeof(word));
  *reinterpret_cast<word_type*>(p) = word;
}

// One statement that skips by one predicate: of several the compiler would test for each.
#define LOOKBACK_PUT_IF(store, ...)                                                             \
  asm volatile("{ .reg .pred is_put; setp.ne.u32 is_put, %1, 0; @is_put " store                 \
               " @is_put add.u32 %0, %0, %2; }"                                                 \
               : "+r"(next)                                                                     \
               : "r"(put), "n"(step * static_cast<int>(sizeof(T))), __VA_ARGS__                 \
               : "memory")
#define LOOKBACK_PUT_IF_AMONG(store, ...)                                                       \
  asm volatile("{ .reg .pred is_put, is_among; .reg .u32 at; setp.ne.u32 is_put, %1, 0; "       \
               "sub.u32 at, %0, %3; setp.lt.and.u32 is_among, at, %4, is_put; @is_among " store \
               " @is_put add.u32 %0, %0, %2; }"                                                 \
               : "+r"(next)                                                                     \
               : "r"(put), "n"(step * static_cast<int>(sizeof(T))), "r"(begin), "r"(bytes), __VA_ARGS__ \
               : "memory")

template <class T>
struct shared_slots {
  u32 next;
  DEVICE explicit shared_slots(T* next_) : next(address_of(next_)) {}

  template <int step>
  DEVICE void put_if(u32 put, T value) {
    if (put != 0) SHARED_DELAY_POINT(__cvta_shared_to_generic(next));
    const words_of word(value);
    if constexpr (sizeof(T) == 1) {
      LOOKBACK_PUT_IF("st.shared.b8 [%0], %3;", "r"(word.low));
    } else if constexpr (sizeof(T) == 2) {
      LOOKBACK_PUT_IF("st.shared.b16 [%0], %3;", "r"(word.low));
    } else if constexpr (sizeof(T) == 4) {
      LOOKBACK_PUT_IF("st.shared.b32 [%0], %3;", "r"(word.low));
    } else if constexpr (sizeof(T) == 8) {
      LOOKBACK_PUT_IF("st.shared.v2.b32 [%0], {%3, %4};", "r"(word.low), "r"(word.high));
    } else if (put != 0) {
      store(static_cast<T*>(__cvta_shared_to_generic(next)), value);
      next += step * static_cast<int>(sizeof(T));
    }
  }

  template <int step>
  DEVICE void put_if(u32 put, T value, const T* begin_, u32 count) {
    if (put != 0) SHARED_DELAY_POINT(__cvta_shared_to_generic(next));
    const words_of word(value);
    const u32 begin = address_of(begin_);
    const u32 bytes = count * static_cast<u32>(sizeof(T));
    if constexpr (sizeof(T) == 1) {
      LOOKBACK_PUT_IF_AMONG("st.shared.b8 [%0], %5;", "r"(word.low));
    } else if constexpr (sizeof(T) == 2) {
      LOOKBACK_PUT_IF_AMONG("st.shared.b16 [%0], %5;", "r"(word.low));
    } else if constexpr (sizeof(T) == 4) {
      LOOKBACK_PUT_IF_AMONG("st.shared.b32 [%0], %5;", "r"(word.low));
    } else if constexpr (sizeof(T) == 8) {
      LOOKBACK_PUT_IF_AMONG("st.shared.v2.b32 [%0], {%5, %6};", "r"(word.low), "r"(word.high));
    } else if (put != 0) {
      if (next - begin < bytes) store(static_cast<T*>(__cvta_shared_to_generic(next)), value);
      next += step * static_cast<int>(sizeof(T));
    }
  }

  DEVICE void pass_if(u32 pass) {
    asm("{ .reg .pred is_passed; setp.ne.u32 is_passed, %1, 0; @is_passed add.u32 %0, %0, %2; }"
        : "+r"(next)
        : "r"(pass), "n"(sizeof(T)));
  }

 private:
  struct words_of {
    u32 low = 0;
    u32 high = 0;
    DEVICE explicit words_of(const T& value) {
      if constexpr (sizeof(T) <= 4) memcpy(&low, &value, sizeof(T));
      if constexpr (sizeof(T) == 8) memcpy(this, &value, sizeof(T));
    }
  };
  DEVICE static u32 address_of(const T* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
};
#undef LOOKBACK_PUT_IF
#undef LOOKBACK_PUT_IF_AMONG

template <class T>
DEVICE void shared_store_words(T* p, const u32 (&words)[LOOKBACK_VECTOR_BYTES / sizeof(u32)]) {
  SHARED_DELAY_POINT(p);
  *reinterpret_cast<uint4*>(p) = make_uint4(words[0], words[1], words[2], words[3]);
}

DEVICE void shared_add(u32& where, u32 value) {
  SHARED_DELAY_POINT(&where);
  atomicAdd_block(&where, value);
}

// Counts, each so many words behind the one before. Both asm statements only hide from the compiler what it knows of the first count's
// address and of the number: else it may join their bits, by an instruction more for each addition (docs/experiments.md).
template <u32 pitch>
struct shared_counts {
  u32 first;
  DEVICE explicit shared_counts(u32* first_) { asm("mov.b32 %0, %1;" : "=r"(first) : "r"(static_cast<u32>(__cvta_generic_to_shared(first_)))); }
  DEVICE void add(u32 number, u32 value) const {
    asm("" : "+r"(number));
    shared_add(*static_cast<u32*>(__cvta_shared_to_generic(first + number * static_cast<u32>(pitch * sizeof(u32)))), value);
  }
};

// The protocol between blocks. `volatile` keeps the instruction, the memory clobber keeps the compiler
// from moving plain accesses across it; what the hardware may move is in the instruction's semantics.
// Its scope is the GPU, but for a kernel whose blocks are on several GPUs.
#ifndef LOOKBACK_SCOPE
#define LOOKBACK_SCOPE "gpu"
#endif
DEVICE u32 load_relaxed(const u32* p, call_site = {}) {
  u32 value;
  asm volatile("ld.relaxed." LOOKBACK_SCOPE ".b32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
DEVICE u64 load_relaxed(const u64* p, call_site = {}) {
  u64 value;
  asm volatile("ld.relaxed." LOOKBACK_SCOPE ".b64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
DEVICE word128 load_relaxed(const word128* p, call_site = {}) {
  word128 value;
  asm volatile(
      "{ .reg .b128 word; ld.relaxed." LOOKBACK_SCOPE ".b128 word, [%2]; mov.b128 {%0, %1}, word; }"
      : "=l"(value.low), "=l"(value.high)
      : "l"(p)
      : "memory");
  return value;
}

DEVICE void store_relaxed(u32* p, u32 value, call_site = {}) {
  asm volatile("st.relaxed." LOOKBACK_SCOPE ".b32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
DEVICE void store_relaxed(u64* p, u64 value, call_site = {}) {
  asm volatile("st.relaxed." LOOKBACK_SCOPE ".b64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
DEVICE void store_relaxed(word128* p, word128 value, call_site = {}) {
  asm volatile("{ .reg .b128 word; mov.b128 word, {%1, %2}; st.relaxed." LOOKBACK_SCOPE ".b128 [%0], word; }" ::"l"(p),
               "l"(value.low), "l"(value.high)
               : "memory");
}

DEVICE u32 load_acquire(const u32* p, call_site = {}) {
  u32 value;
  asm volatile("ld.acquire." LOOKBACK_SCOPE ".b32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
DEVICE void store_release(u32* p, u32 value, call_site = {}) {
  asm volatile("st.release." LOOKBACK_SCOPE ".b32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

DEVICE u32 fetch_add_relaxed(u32* p, u32 value, call_site = {}) {
  u32 before;
  asm volatile("atom.relaxed." LOOKBACK_SCOPE ".add.u32 %0, [%1], %2;" : "=r"(before) : "l"(p), "r"(value) : "memory");
  return before;
}
DEVICE u32 fetch_add_acquire_release(u32* p, u32 value, call_site = {}) {
  u32 before;
  asm volatile("atom.acq_rel." LOOKBACK_SCOPE ".add.u32 %0, [%1], %2;" : "=r"(before) : "l"(p), "r"(value) : "memory");
  return before;
}

DEVICE void fence_acquire_release(call_site = {}) { asm volatile("fence.acq_rel." LOOKBACK_SCOPE ";" ::: "memory"); }

// What only mutants use.
DEVICE u32 load_relaxed_block(const u32* p, call_site = {}) {
  u32 value;
  asm volatile("ld.relaxed.cta.b32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
DEVICE u64 load_relaxed_block(const u64* p, call_site = {}) {
  u64 value;
  asm volatile("ld.relaxed.cta.b64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
DEVICE word128 load_relaxed_block(const word128* p, call_site = {}) {
  word128 value;
  asm volatile(
      "{ .reg .b128 word; ld.relaxed.cta.b128 word, [%2]; mov.b128 {%0, %1}, word; }"
      : "=l"(value.low), "=l"(value.high)
      : "l"(p)
      : "memory");
  return value;
}
DEVICE void store_relaxed_block(u32* p, u32 value, call_site = {}) {
  asm volatile("st.relaxed.cta.b32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
DEVICE void store_relaxed_block(u64* p, u64 value, call_site = {}) {
  asm volatile("st.relaxed.cta.b64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
DEVICE void store_relaxed_block(word128* p, word128 value, call_site = {}) {
  asm volatile("{ .reg .b128 word; mov.b128 word, {%1, %2}; st.relaxed.cta.b128 [%0], word; }" ::"l"(p),
               "l"(value.low), "l"(value.high)
               : "memory");
}
DEVICE u32 load_acquire_block(const u32* p, call_site = {}) {
  u32 value;
  asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
DEVICE void store_release_block(u32* p, u32 value, call_site = {}) {
  asm volatile("st.release.cta.b32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
DEVICE u32 fetch_add_relaxed_block(u32* p, u32 value, call_site = {}) {
  u32 before;
  asm volatile("atom.relaxed.cta.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(p), "r"(value) : "memory");
  return before;
}
DEVICE u32 fetch_add_acquire_release_block(u32* p, u32 value, call_site = {}) {
  u32 before;
  asm volatile("atom.acq_rel.cta.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(p), "r"(value) : "memory");
  return before;
}
DEVICE void fence_acquire_release_block(call_site = {}) { asm volatile("fence.acq_rel.cta;" ::: "memory"); }
DEVICE u64 load_relaxed_vector(const u64* p, call_site = {}) {
  u32 low;
  u32 high;
  asm volatile("ld.relaxed.gpu.v2.b32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "l"(p) : "memory");
  return static_cast<u64>(high) << 32 | low;
}
DEVICE word128 load_relaxed_vector(const word128* p, call_site = {}) {
  word128 value;
  asm volatile("ld.relaxed.gpu.v2.b64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(p) : "memory");
  return value;
}
DEVICE void store_relaxed_vector(u64* p, u64 value, call_site = {}) {
  asm volatile("st.relaxed.gpu.v2.b32 [%0], {%1, %2};" ::"l"(p), "r"(static_cast<u32>(value)),
               "r"(static_cast<u32>(value >> 32))
               : "memory");
}
DEVICE void store_relaxed_vector(word128* p, word128 value, call_site = {}) {
  asm volatile("st.relaxed.gpu.v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(value.low), "l"(value.high) : "memory");
}

template <class T>
DEVICE T load_payload(const T* p, call_site = {}) {
  return load(p);
}
template <class T>
DEVICE void store_payload(T* p, T value, call_site = {}) {
  store(p, value);
}

}  // namespace memory
}  // namespace lookback
