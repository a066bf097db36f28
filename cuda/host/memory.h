// `memory.cuh` on the CPU device. A plain access is one memory access and one counter unless the thread's
// `intercept` says otherwise; a protocol access is first of all a scheduling point. With a memory back
// end set every access goes to it instead, and memory holds what the back end lets it hold.
//
// Native accesses are atomic by construction: all CUDA threads of a launch share one OS thread, and
// none is switched away from between a scheduling point and the access behind it. The `__atomic_`
// forms keep the compiler from merging or moving them.
//
// ThreadSanitizer (`thread_sanitizer/`) takes an access for what its instruction says, so in its build
// - relaxed accesses wider than a register are atomic ones of their halves,
// - a vector access is two accesses, with a scheduling point between,
// - an access of block scope is a plain one: no access of another block is morally strong with it, which
//   makes the two a data race in PTX too, and threads of one block do not share a descriptor,
// - a fence is told to it by the executor, because it knows none; one of block scope orders nothing between blocks, so
//   that it is told of none.
#pragma once

#include <cstdint>

#include "platform.h"

namespace lookback {
namespace memory {
namespace host {

using lookback::host::current;
using lookback::host::is_thread_sanitizer_build;

// Announces a plain access where somebody wants to know; whether memory itself is to be accessed.
DEVICE bool announce(lookback_thread* thread, u32 access, const void* address, u32 bytes, call_site where) {
  if (__builtin_expect(thread->intercept == 0, 1)) return true;
  if (thread->intercept & LOOKBACK_INTERCEPT_PLAIN_POINTS) {
    thread->executor->access_point(thread, access, address, bytes, where.file, where.line);
  }
  return !(thread->intercept & LOOKBACK_INTERCEPT_BACKEND);
}

template <class T>
DEVICE T plain_load(lookback_thread* thread, u32 access, const T* address, call_site where) {
  if (announce(thread, access, address, sizeof(T), where)) return *address;
  T value;
  thread->backend->load(thread, access, address, &value, sizeof(T), where.file, where.line);
  return value;
}

template <class T>
DEVICE void plain_store(lookback_thread* thread, u32 access, T* address, T value, call_site where) {
  if (announce(thread, access, address, sizeof(T), where)) {
    *address = value;
  } else {
    // One seed is one run, for who looks at the bytes, too.
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&value);
#endif
    thread->backend->store(thread, access, address, &value, sizeof(T), where.file, where.line);
  }
}

DEVICE void check_alignment(lookback_thread* thread, const void* address, u32 bytes, call_site where) {
  if (__builtin_expect(reinterpret_cast<std::uintptr_t>(address) % bytes != 0, 0)) {
    thread->executor->misaligned(thread, address, bytes, where.file, where.line);
  }
}

template <u32 W, class T>
DEVICE void vector_load(lookback_thread* thread, u32 access, const T* address, T (&items)[W], call_site where) {
  static_assert(W * sizeof(T) <= LOOKBACK_VECTOR_BYTES, "a lane moves up to 16 bytes at once");
  check_alignment(thread, address, sizeof(items), where);
  if (announce(thread, access, address, sizeof(items), where)) {
    std::memcpy(items, address, sizeof(items));
  } else {
    thread->backend->load(thread, access, address, items, sizeof(items), where.file, where.line);
  }
}

template <u32 W, class T>
DEVICE void vector_store(lookback_thread* thread, u32 access, T* address, const T (&items)[W], call_site where) {
  static_assert(W * sizeof(T) <= LOOKBACK_VECTOR_BYTES, "a lane moves up to 16 bytes at once");
  check_alignment(thread, address, sizeof(items), where);
  if (announce(thread, access, address, sizeof(items), where)) {
    std::memcpy(address, items, sizeof(items));
  } else {
    thread->backend->store(thread, access, address, items, sizeof(items), where.file, where.line);
  }
}

// A protocol access is a scheduling point first; whether memory itself is to be accessed then.
DEVICE bool protocol_point(lookback_thread* thread, u32 access, const void* address, u32 bytes, call_site where) {
  thread->executor->access_point(thread, access, address, bytes, where.file, where.line);
  return !(thread->intercept & LOOKBACK_INTERCEPT_BACKEND);
}

// Scalars of 4 and 8 bytes.
template <class T>
DEVICE T protocol_load(u32 access, const T* address, int order, call_site where) {
  lookback_thread* thread = current();
  if (protocol_point(thread, access, address, sizeof(T), where)) return __atomic_load_n(address, order);
  T value;
  thread->backend->load(thread, access, address, &value, sizeof(T), where.file, where.line);
  return value;
}

template <class T>
DEVICE void protocol_store(u32 access, T* address, T value, int order, call_site where) {
  lookback_thread* thread = current();
  if (protocol_point(thread, access, address, sizeof(T), where)) {
    __atomic_store_n(address, value, order);
  } else {
    thread->backend->store(thread, access, address, &value, sizeof(T), where.file, where.line);
  }
}

// Values of any size, whole: no other CUDA thread runs in between.
template <class T>
DEVICE T protocol_copy_from(u32 access, const T* address, call_site where) {
  lookback_thread* thread = current();
  if (protocol_point(thread, access, address, sizeof(T), where)) return *address;
  T value;
  thread->backend->load(thread, access, address, &value, sizeof(T), where.file, where.line);
  return value;
}

template <class T>
DEVICE void protocol_copy_to(u32 access, T* address, T value, call_site where) {
  lookback_thread* thread = current();
  if (protocol_point(thread, access, address, sizeof(T), where)) {
    *address = value;
  } else {
    thread->backend->store(thread, access, address, &value, sizeof(T), where.file, where.line);
  }
}

// Half of a 64-bit or 128-bit scalar.
template <class T>
using half_of = std::conditional_t<sizeof(T) == 2 * sizeof(u64), u64, u32>;

// Relaxed, whole like the two above. A vector access is whole as well, unless a back end or
// ThreadSanitizer takes it apart.
template <class T>
DEVICE T protocol_relaxed_from(u32 access, const T* address, call_site where) {
  if (!is_thread_sanitizer_build) return protocol_copy_from(access, address, where);
  half_of<T> halves[2];
  static_assert(sizeof(halves) == sizeof(T), "scalars of two halves");
  protocol_point(current(), access, address, sizeof(T), where);
  halves[0] = __atomic_load_n(reinterpret_cast<const half_of<T>*>(address), __ATOMIC_RELAXED);
  if (access & LOOKBACK_ACCESS_VECTOR) protocol_point(current(), access, address, sizeof(T), where);
  halves[1] = __atomic_load_n(reinterpret_cast<const half_of<T>*>(address) + 1, __ATOMIC_RELAXED);
  T value;
  std::memcpy(&value, halves, sizeof(T));
  return value;
}

template <class T>
DEVICE void protocol_relaxed_to(u32 access, T* address, T value, call_site where) {
  if (!is_thread_sanitizer_build) return protocol_copy_to(access, address, value, where);
  half_of<T> halves[2];
  static_assert(sizeof(halves) == sizeof(T), "scalars of two halves");
  std::memcpy(halves, &value, sizeof(T));
  protocol_point(current(), access, address, sizeof(T), where);
  // The upper half first: it holds the tag, and a vector that is torn there is the worse one.
  __atomic_store_n(reinterpret_cast<half_of<T>*>(address) + 1, halves[1], __ATOMIC_RELAXED);
  if (access & LOOKBACK_ACCESS_VECTOR) protocol_point(current(), access, address, sizeof(T), where);
  __atomic_store_n(reinterpret_cast<half_of<T>*>(address), halves[0], __ATOMIC_RELAXED);
}

template <class T>
DEVICE T protocol_vector_load(const T* address, call_site where) {
  return protocol_relaxed_from(LOOKBACK_ACCESS_RELAXED_LOAD | LOOKBACK_ACCESS_VECTOR, address, where);
}

template <class T>
DEVICE void protocol_vector_store(T* address, T value, call_site where) {
  protocol_relaxed_to(LOOKBACK_ACCESS_RELAXED_STORE | LOOKBACK_ACCESS_VECTOR, address, value, where);
}

DEVICE u32 protocol_fetch_add(u32 access, u32* address, u32 value, int order, call_site where) {
  lookback_thread* thread = current();
  if (protocol_point(thread, access, address, sizeof(u32), where)) return __atomic_fetch_add(address, value, order);
  return thread->backend->fetch_add(thread, access, address, value, where.file, where.line);
}

// Of block scope: values of any size whole, because no other CUDA thread runs in between.
template <class T>
DEVICE T block_scope_load(u32 access, const T* address, call_site where) {
  return protocol_copy_from(access | LOOKBACK_ACCESS_BLOCK_SCOPE, address, where);
}

template <class T>
DEVICE void block_scope_store(u32 access, T* address, T value, call_site where) {
  protocol_copy_to(access | LOOKBACK_ACCESS_BLOCK_SCOPE, address, value, where);
}

DEVICE u32 block_scope_fetch_add(u32 access, u32* address, u32 value, int order, call_site where) {
  const u32 scoped = access | LOOKBACK_ACCESS_BLOCK_SCOPE;
  if (!is_thread_sanitizer_build) return protocol_fetch_add(scoped, address, value, order, where);
  protocol_point(current(), scoped, address, sizeof(u32), where);
  const u32 before = *address;
  *address = before + value;
  return before;
}

DEVICE void protocol_fence(u32 access, call_site where) {
  lookback_thread* thread = current();
  if (protocol_point(thread, access, nullptr, 0, where)) {
#if !defined(LOOKBACK_THREAD_SANITIZER)
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
  } else {
    thread->backend->fence(thread, access, where.file, where.line);
  }
}

// A vector of 16 bytes that is held as words.
template <class T>
struct vector_of_words {
  T items[LOOKBACK_VECTOR_BYTES / sizeof(T)];

  DEVICE explicit vector_of_words(const u32 (&words)[LOOKBACK_VECTOR_BYTES / sizeof(u32)]) {
    memcpy(items, words, sizeof(items));
  }
};

}  // namespace host

template <class T>
DEVICE T load(const T* p, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->counters->element_reads += 1;
  thread->counters->element_accesses += 1;
  return host::plain_load(thread, LOOKBACK_ACCESS_ELEMENT_LOAD, p, where);
}

template <class T>
DEVICE void store(T* p, T value, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->counters->element_writes += 1;
  thread->counters->element_accesses += 1;
  host::plain_store(thread, LOOKBACK_ACCESS_ELEMENT_STORE, p, value, where);
}

template <u32 W, class T>
DEVICE void load_vector(const T* p, T (&items)[W], call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->counters->element_reads += W;
  thread->counters->element_accesses += 1;
  host::vector_load<W>(thread, LOOKBACK_ACCESS_ELEMENT_LOAD, p, items, where);
}

template <u32 W, class T>
DEVICE void store_vector(T* p, const T (&items)[W], call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->counters->element_writes += W;
  thread->counters->element_accesses += 1;
  host::vector_store<W>(thread, LOOKBACK_ACCESS_ELEMENT_STORE, p, items, where);
}

template <u32 W, class T>
DEVICE void store_vector_unsplit(T* p, const T (&items)[W], call_site where = {}) {
  store_vector<W>(p, items, where);
}

template <class T>
DEVICE void store_words_unsplit(T* p, const u32 (&words)[LOOKBACK_VECTOR_BYTES / sizeof(u32)], call_site where = {}) {
  store_vector(p, host::vector_of_words<T>(words).items, where);
}

template <class T>
DEVICE T load_spine(const T* p, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->counters->spine_reads += 1;
  return host::plain_load(thread, LOOKBACK_ACCESS_SPINE_LOAD, p, where);
}

template <class T>
DEVICE void store_spine(T* p, T value, call_site where = {}) {
  lookback_thread* thread = host::current();
  thread->counters->spine_writes += 1;
  host::plain_store(thread, LOOKBACK_ACCESS_SPINE_STORE, p, value, where);
}

template <class T>
DEVICE T shared_load(const T& place, call_site where = {}) {
  return host::plain_load(host::current(), LOOKBACK_ACCESS_SHARED_LOAD, &place, where);
}

template <class T>
DEVICE void shared_store(T& place, T value, call_site where = {}) {
  host::plain_store(host::current(), LOOKBACK_ACCESS_SHARED_STORE, &place, value, where);
}

template <u32 W, class T>
DEVICE void shared_load_vector(const T* p, T (&items)[W], call_site where = {}) {
  host::vector_load<W>(host::current(), LOOKBACK_ACCESS_SHARED_LOAD, p, items, where);
}

template <u32 W, class T>
DEVICE void shared_store_vector(T* p, const T (&items)[W], call_site where = {}) {
  host::vector_store<W>(host::current(), LOOKBACK_ACCESS_SHARED_STORE, p, items, where);
}

template <class T>
struct shared_slots {
  T* next;
  DEVICE explicit shared_slots(T* next_) : next(next_) {}

  template <int step>
  DEVICE void put_if(u32 put, T value, call_site where = {}) {
    if (put == 0) return;
    shared_store(*next, value, where);
    next += step;
  }
  template <int step>
  DEVICE void put_if(u32 put, T value, const T* begin, u32 count, call_site where = {}) {
    if (put != 0 && next >= begin && next < begin + count) shared_store(*next, value, where);
    if (put != 0) next += step;
  }
  DEVICE void pass_if(u32 pass) { next += pass != 0 ? 1 : 0; }
};

template <class T>
DEVICE void shared_store_words(T* p, const u32 (&words)[LOOKBACK_VECTOR_BYTES / sizeof(u32)], call_site where = {}) {
  shared_store_vector(p, host::vector_of_words<T>(words).items, where);
}

DEVICE void shared_add(u32& place, u32 value, call_site where = {}) {
  lookback_thread* thread = host::current();
  if (host::announce(thread, LOOKBACK_ACCESS_SHARED_ADD, &place, sizeof(u32), where)) {
    __atomic_fetch_add(&place, value, __ATOMIC_RELAXED);
  } else {
    thread->backend->fetch_add(thread, LOOKBACK_ACCESS_SHARED_ADD, &place, value, where.file, where.line);
  }
}

template <u32 pitch>
struct shared_counts {
  u32* first;
  DEVICE explicit shared_counts(u32* first_) : first(first_) {}
  DEVICE void add(u32 number, u32 value, call_site where = {}) const { shared_add(first[number * pitch], value, where); }
};

DEVICE u32 load_relaxed(const u32* p, call_site where = {}) {
  return host::protocol_load(LOOKBACK_ACCESS_RELAXED_LOAD, p, __ATOMIC_RELAXED, where);
}
DEVICE u64 load_relaxed(const u64* p, call_site where = {}) {
  return host::protocol_load(LOOKBACK_ACCESS_RELAXED_LOAD, p, __ATOMIC_RELAXED, where);
}
DEVICE word128 load_relaxed(const word128* p, call_site where = {}) {
  return host::protocol_relaxed_from(LOOKBACK_ACCESS_RELAXED_LOAD, p, where);
}

DEVICE void store_relaxed(u32* p, u32 value, call_site where = {}) {
  host::protocol_store(LOOKBACK_ACCESS_RELAXED_STORE, p, value, __ATOMIC_RELAXED, where);
}
DEVICE void store_relaxed(u64* p, u64 value, call_site where = {}) {
  host::protocol_store(LOOKBACK_ACCESS_RELAXED_STORE, p, value, __ATOMIC_RELAXED, where);
}
DEVICE void store_relaxed(word128* p, word128 value, call_site where = {}) {
  host::protocol_relaxed_to(LOOKBACK_ACCESS_RELAXED_STORE, p, value, where);
}

DEVICE u32 load_acquire(const u32* p, call_site where = {}) {
  return host::protocol_load(LOOKBACK_ACCESS_ACQUIRE_LOAD, p, __ATOMIC_ACQUIRE, where);
}

DEVICE void store_release(u32* p, u32 value, call_site where = {}) {
  host::protocol_store(LOOKBACK_ACCESS_RELEASE_STORE, p, value, __ATOMIC_RELEASE, where);
}

DEVICE u32 fetch_add_relaxed(u32* p, u32 value, call_site where = {}) {
  return host::protocol_fetch_add(LOOKBACK_ACCESS_RELAXED_FETCH_ADD, p, value, __ATOMIC_RELAXED, where);
}

DEVICE u32 fetch_add_acquire_release(u32* p, u32 value, call_site where = {}) {
  return host::protocol_fetch_add(LOOKBACK_ACCESS_ACQUIRE_RELEASE_FETCH_ADD, p, value, __ATOMIC_ACQ_REL, where);
}

DEVICE void fence_acquire_release(call_site where = {}) { host::protocol_fence(LOOKBACK_ACCESS_FENCE, where); }

// What only mutants use.
DEVICE u32 load_relaxed_block(const u32* p, call_site where = {}) {
  return host::block_scope_load(LOOKBACK_ACCESS_RELAXED_LOAD, p, where);
}
DEVICE u64 load_relaxed_block(const u64* p, call_site where = {}) {
  return host::block_scope_load(LOOKBACK_ACCESS_RELAXED_LOAD, p, where);
}
DEVICE word128 load_relaxed_block(const word128* p, call_site where = {}) {
  return host::block_scope_load(LOOKBACK_ACCESS_RELAXED_LOAD, p, where);
}
DEVICE void store_relaxed_block(u32* p, u32 value, call_site where = {}) {
  host::block_scope_store(LOOKBACK_ACCESS_RELAXED_STORE, p, value, where);
}
DEVICE void store_relaxed_block(u64* p, u64 value, call_site where = {}) {
  host::block_scope_store(LOOKBACK_ACCESS_RELAXED_STORE, p, value, where);
}
DEVICE void store_relaxed_block(word128* p, word128 value, call_site where = {}) {
  host::block_scope_store(LOOKBACK_ACCESS_RELAXED_STORE, p, value, where);
}
DEVICE u32 load_acquire_block(const u32* p, call_site where = {}) {
  return host::block_scope_load(LOOKBACK_ACCESS_ACQUIRE_LOAD, p, where);
}
DEVICE void store_release_block(u32* p, u32 value, call_site where = {}) {
  host::block_scope_store(LOOKBACK_ACCESS_RELEASE_STORE, p, value, where);
}
DEVICE u32 fetch_add_relaxed_block(u32* p, u32 value, call_site where = {}) {
  return host::block_scope_fetch_add(LOOKBACK_ACCESS_RELAXED_FETCH_ADD, p, value, __ATOMIC_RELAXED, where);
}
DEVICE u32 fetch_add_acquire_release_block(u32* p, u32 value, call_site where = {}) {
  return host::block_scope_fetch_add(LOOKBACK_ACCESS_ACQUIRE_RELEASE_FETCH_ADD, p, value, __ATOMIC_ACQ_REL, where);
}
DEVICE void fence_acquire_release_block(call_site where = {}) {
  host::protocol_fence(LOOKBACK_ACCESS_FENCE | LOOKBACK_ACCESS_BLOCK_SCOPE, where);
}
DEVICE u64 load_relaxed_vector(const u64* p, call_site where = {}) { return host::protocol_vector_load(p, where); }
DEVICE word128 load_relaxed_vector(const word128* p, call_site where = {}) {
  return host::protocol_vector_load(p, where);
}
DEVICE void store_relaxed_vector(u64* p, u64 value, call_site where = {}) {
  host::protocol_vector_store(p, value, where);
}
DEVICE void store_relaxed_vector(word128* p, word128 value, call_site where = {}) {
  host::protocol_vector_store(p, value, where);
}

template <class T>
DEVICE T load_payload(const T* p, call_site where = {}) {
  return host::protocol_copy_from(LOOKBACK_ACCESS_PAYLOAD_LOAD, p, where);
}

template <class T>
DEVICE void store_payload(T* p, T value, call_site where = {}) {
  host::protocol_copy_to(LOOKBACK_ACCESS_PAYLOAD_STORE, p, value, where);
}

}  // namespace memory
}  // namespace lookback
