// What is loaded and stored of the arrays of a problem.
#pragma once

#include "../halves.cuh"
#include "../memory.cuh"

namespace lookback {

// An element of each of several arrays.
template <class... Types>
struct elements {
  static constexpr u32 widest_bytes = 0;
};
template <class First, class... Rest>
struct elements<First, Rest...> {
  static constexpr u32 widest_bytes =
    sizeof(First) > elements<Rest...>::widest_bytes ? sizeof(First) : elements<Rest...>::widest_bytes;

  First first;
  elements<Rest...> rest;
};

// An element of each of several arrays, the first one of number `number`.
template <u32 number>
DEVICE void load_elements(const lookback_launch&, u64, elements<>&) {}
template <u32 number, class First, class... Rest>
DEVICE void load_elements(const lookback_launch& launch, u64 index, elements<First, Rest...>& items) {
  items.first = memory::load(static_cast<const First*>(launch.inputs[number]) + index);
  load_elements<number + 1>(launch, index, items.rest);
}

// Stores an element of each of several arrays, the first one of number `number`.
template <u32 number>
DEVICE void store_elements(const lookback_launch&, u64, elements<>) {}
template <u32 number, class First, class... Rest>
DEVICE void store_elements(const lookback_launch& launch, u64 index, elements<First, Rest...> items) {
  memory::store(static_cast<First*>(launch.outputs[number]) + index, items.first);
  store_elements<number + 1>(launch, index, items.rest);
}

// Of several arrays `width` neighbours each, from an index at which vectors of all arrays begin. `at(j)` is where those of the j-th
// go.
template <u32 width, u32 number, class At>
DEVICE void load_vectors(const lookback_launch&, u64, At, elements<>*) {}
template <u32 width, u32 number, class At, class First, class... Rest>
DEVICE void load_vectors(const lookback_launch& launch, u64 index, At at, elements<First, Rest...>*) {
  First vector[width];
  memory::load_vector<width>(static_cast<const First*>(launch.inputs[number]) + index, vector);
  LOOKBACK_UNROLL
  for (u32 j = 0; j < width; ++j) at(j).first = vector[j];
  const auto rest_at = [&](u32 j) -> elements<Rest...>& { return at(j).rest; };
  load_vectors<width, number + 1>(launch, index, rest_at, static_cast<elements<Rest...>*>(nullptr));
}

// Elements from a boundary of a vector to the first one, which has to be so of every array; `width` where it is not.
template <u32 width, u32 number>
DEVICE u32 common_lead(const lookback_launch&, u32 lead, elements<>*) {
  return lead;
}
template <u32 width, u32 number, class First, class... Rest>
DEVICE u32 common_lead(const lookback_launch& launch, u32 lead, elements<First, Rest...>*) {
  const u32 own = static_cast<u32>(reinterpret_cast<u64>(launch.inputs[number]) / sizeof(First) % width);
  if (number > 0 && own != lead) return width;
  return common_lead<width, number + 1>(launch, own, static_cast<elements<Rest...>*>(nullptr));
}

// An element, and the one before it.
template <class T>
struct with_previous {
  T previous;
  T own;
};

// An element of a run of equal neighbours, in the order of the scan, and whether it is the first or the last one of it.
template <class T>
struct in_run {
  T own;
  bool begins;
  bool ends;
};

}  // namespace lookback
