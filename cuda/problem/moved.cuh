// What stores elements elsewhere than they stood, and scans nothing.
//
// `Own` of items that are given as many places as offsets say (`scan/expand.cuh`):
//
//   inputs   outputs                                          `elements<...>` of an item, and of a place
//   outputs store(u64 i, u64 item, u64 rank, inputs items)    what is stored at place i, which is the item's place of that rank
//
// and of elements that say where they go (`scan/scatter.cuh`):
//
//   u64 place(u64 i, inputs items)                            where the element at i goes; nowhere, if the outputs have no such place
//   outputs store(u64 i, inputs items)                        what is stored there
#pragma once

#include "../halves.cuh"
#include "../memory.cuh"
#include "elements.cuh"
#include "plain.cuh"

namespace lookback {

// `counts_items`: of an expansion, whether the device says how many items there are.
template <class Own_, bool is_counted_, bool counts_items_>
struct moved : plain<operators::sum<u32>> {
  using Own = Own_;
  using inputs = typename Own::inputs;
  static constexpr bool has_arrays = true;
  static constexpr bool is_counted = is_counted_;
  static constexpr bool counts_items = counts_items_;
};

}  // namespace lookback
