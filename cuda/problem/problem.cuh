// What a kernel has to know of what it scans: a problem, four types and what leads from one to the next. It is the first
// template parameter of every kernel.
//
//   operator_type   how states are combined: associative, with an identity
//   input_type      what is loaded                state_type load(input_type)
//   state_type      what is scanned, the operator's `value_type`
//   published_type  what other blocks get, in descriptors, the spine and distributed shared memory
//                                                 published_type publish(state_type)   state_type adopt(published_type)
//   output_type     what is stored                output_type store(state_type)
//   input_type padding()    what stands where the array has no element: `load` makes the identity of it
//   has_arrays      whether there may be several arrays on both sides: then `defined.cuh` says what else it has
//
// A kernel that needs two of the types to be one says so in a static_assert.
#pragma once

#include "../operators.cuh"

namespace lookback {

template <bool condition, class First, class Second>
struct choice {
  using type = First;
};
template <class First, class Second>
struct choice<false, First, Second> {
  using type = Second;
};

template <class First, class Second>
struct is_same {
  enum : bool { value = false };
};
template <class Type>
struct is_same<Type, Type> {
  enum : bool { value = true };
};

// Bytes at the front of a value that say all of it.
template <class T>
struct used_bytes {
  enum : u32 { value = sizeof(T) };
};

// The offset of an element that begins a segment where none does.
enum : u32 { no_begin = ~0u };

// Whether it is known by arithmetic where the row of an element begins.
template <class Problem>
DEVICE_CONSTEXPR bool has_known_rows() {
  if constexpr (Problem::has_arrays) return Problem::segments_type::are_rows;
  return false;
}

// Whether there are segments, and the last one that begins in a part of a tile is found without a look at each element. Not in
// reproducible scans: elements before it would count as identities, which may change bits.
template <class Problem>
DEVICE_CONSTEXPR bool has_findable_segments() {
  if constexpr (Problem::has_arrays) {
    if constexpr (is_reproducible<typename Problem::operator_type>::value) return false;
    if constexpr (Problem::segments_type::are_several) return Problem::segments_type::finds_last_begin;
  }
  return false;
}

// The larger one of what is loaded and what is stored. Accesses have as many elements as fit into 16 bytes of it, so a
// lane loads and stores the same ones.
template <class Problem>
using access_type = typename choice<(sizeof(typename Problem::output_type) > sizeof(typename Problem::input_type)),
                                    typename Problem::output_type, typename Problem::input_type>::type;

// The result of a scan at an item: `before` is the prefix that ends left of it, `through` the one that ends with it.
template <class Problem>
DEVICE typename Problem::state_type result_at(u32 mode, typename Problem::state_type before,
                                              typename Problem::state_type through, typename Problem::state_type item) {
  if (mode == LOOKBACK_MODE_INCLUSIVE) return through;
  if constexpr (Problem::has_arrays) before = Problem::before(before, item);
  return mode == LOOKBACK_MODE_EXCLUSIVE ? before : Problem::operator_type::without(through, item);
}

}  // namespace lookback
