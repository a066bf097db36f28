// Every access to global and shared memory that a kernel makes, and why each ordering is what it is.
// No kernel dereferences such memory itself. On the GPU a call is one PTX instruction with explicit
// semantics and scope (`gpu/memory.cuh`); on the CPU device it is a call that can count, reorder,
// check or hand over to another thread (`host/memory.h`).
//
// Elements: input, output and temporary arrays of a scan. Plain accesses: no two threads of one launch
// touch one element without a barrier between, and launches are ordered by their stream. Only what a user scatters may go to one
// element twice: no kernel reads there what it has stored.
//   T    load(const T* p)                      void store(T* p, T value)
//   void load_vector<W>(const T* p, T (&items)[W])      p aligned to W * sizeof(T) <= 16
//   void store_vector<W>(T* p, const T (&items)[W])     likewise
//   void store_vector_unsplit<W>(p, items)     the same as one PTX instruction: where another branch stores the same
//                                              elements one by one, the compiler splits a plain store into 4-byte ones
//   void store_words_unsplit(T* p, words)      the same for a vector of 16 bytes that is held as words
//   T    load_spine(const T* p)                void store_spine(T* p, T value)     counted apart
//
// Shared memory of the block. Plain accesses, ordered by warp and block barriers.
//   T    shared_load(const T& where)           void shared_store(T& where, T value)
//   void shared_load_vector<W>(const T* p, T (&items)[W])   void shared_store_vector<W>(T* p, const T (&items)[W])
//   void shared_store_words(T* p, words)       a vector of 16 bytes that is held as words; p aligned to 16
//   shared_slots<T>{T* next}                   elements that a lane may put one after the other, upwards (`step` 1), downwards (-1) or not (0)
//     void put_if<step>(u32 put, T value)      goes on where `put` is not 0; on the GPU lanes skip instructions by no branch, up to 8 bytes
//     void pass_if(u32 pass)                   goes on upwards
//     void put_if<step>(u32 put, T value, const T* begin, u32 count)     the same, but what is not among those is only passed by
//   void shared_add(u32& where, u32 value)     by any threads at one time: a relaxed atomic addition of block scope
//   shared_counts<pitch>{u32* first}           counts, each `pitch` words behind the one before
//     void add(u32 number, u32 value)          `shared_add` to one of them
//
// The protocol between blocks. `site` names the line, and each call site names its partner.
//   u32  load_relaxed(const u32* p, site)      u64 load_relaxed(const u64* p, site)
//   word128 load_relaxed(const word128* p, site)
//   void store_relaxed(u32* | u64* | word128* p, value, site)
//   u32  load_acquire(const u32* p, site)      void store_release(u32* p, u32 value, site)
//   u32  fetch_add_relaxed(u32* p, u32 value, site)
//   u32  fetch_add_acquire_release(u32* p, u32 value, site)
//   T    load_payload(const T* p, site)        void store_payload(T* p, T value, site)
//   void fence_acquire_release(site)
// All of them are of gpu scope, in `scan/dealt.cuh` of system scope, but for those that only faults use (`faults/`):
//   load_relaxed_block, load_acquire_block, store_relaxed_block, store_release_block, fetch_add_relaxed_block,
//   fetch_add_acquire_release_block, fence_acquire_release_block      the above with block (.cta) scope
//   T    load_relaxed_vector(p, site)          void store_relaxed_vector(p, value, site)   two accesses of half
//                                              the width under one instruction (.v2)
// A 64-bit or 128-bit scalar access is single-copy atomic, so a value and its tag travel together and need
// no fence; payloads are plain and are ordered by the release and the acquire of their tag.
#pragma once

#include "platform.cuh"

namespace lookback {
// Two 64-bit halves that are loaded and stored as one scalar.
struct alignas(16) word128 {
  u64 low;
  u64 high;
};
}  // namespace lookback

#if defined(__CUDACC__)
#include "gpu/memory.cuh"
#else
#include "host/memory.h"
#endif
