// What is loaded and stored of the arrays of a problem.
#pragma once

#include "../halves.cuh"
#include "../memory.cuh"

namespace lookback {

// An element of each of several arrays.
template <class... Types>
struct elements {};
template <class First, class... Rest>
struct elements<First, Rest...> {
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
