// Histograms: how many elements of one or several arrays fall into each bin.
//
// `Own` has:
//
//   inputs                        `elements<...>`, what is loaded
//   u32 bins                      how many there are
//   u32 bin(u64 i, inputs items)  the bin of the element at place i; those of `bins` and more are not counted
#pragma once

#include "../halves.cuh"
#include "../memory.cuh"
#include "elements.cuh"
#include "plain.cuh"

namespace lookback {

template <class Own, class Count, bool is_counted_>
struct binned : plain<operators::sum<Count>> {
  using binned_type = typename Own::inputs;
  static constexpr bool has_arrays = true;
  static constexpr bool is_counted = is_counted_;
  static constexpr u32 maximum_bins = Own::bins;

  DEVICE static u32 bins(const lookback_launch&) { return Own::bins; }

  template <class Body>
  DEVICE static void each_bin(const lookback_launch&, u64 index, const binned_type& items, Body body) {
    const u32 bin = Own::bin(index, items);
    if (bin < Own::bins) body(bin);
  }
};

}  // namespace lookback
