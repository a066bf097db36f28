// Histograms: how many elements of one or several arrays fall into each bin.
//
// `Own` has:
//
//   inputs                        `elements<...>`, what is loaded
//   u32 bins                      how many there are
//   u32 bin(u64 i, inputs items)  the bin of the element at place i; those of `bins` and more are not counted
//
// A problem that counts has for its kernel:
//
//   binned_type            what is loaded
//   u32 maximum_counts     how many counts a block has, `counts(launch)` of which are asked for at the end
//   each_count(launch, u64 i, items, body)   calls `body` with each that the element at place i adds to
//   with_bin(count, body)  calls it with the bin that a count is added to, if there is one
//   u32 bins               how many bins there are, of a histogram
//   bool shares_bins       whether several counts are added to one bin
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
  static constexpr u32 bins = Own::bins;
  static constexpr u32 maximum_counts = bins;
  static constexpr bool shares_bins = false;

  DEVICE static u32 counts(const lookback_launch&) { return Own::bins; }

  template <class Body>
  DEVICE static void each_count(const lookback_launch&, u64 index, const binned_type& items, Body body) {
    const u32 bin = Own::bin(index, items);
    if (bin < Own::bins) body(bin);
  }

  template <class Body>
  DEVICE static void with_bin(u32 count, Body body) {
    body(count);
  }
};

// Of one array of bytes, whose bins follow from their values: a block counts each value, and asks for its bin once and not for that of
// each element.
template <class Own, class Count, bool is_counted_>
struct binned_by_value : binned<Own, Count, is_counted_> {
  using binned_type = typename Own::inputs;
  static constexpr u32 maximum_counts = 256;
  // Where there are fewer bins than values, several values fall into one.
  static constexpr bool shares_bins = Own::bins < maximum_counts;

  DEVICE static u32 counts(const lookback_launch&) { return maximum_counts; }

  template <class Body>
  DEVICE static void each_count(const lookback_launch&, u64, const binned_type& items, Body body) {
    body(static_cast<u8>(items.first));
  }

  template <class Body>
  DEVICE static void with_bin(u32 value, Body body) {
    binned_type items;
    items.first = static_cast<decltype(items.first)>(static_cast<u8>(value));
    const u32 bin = Own::bin(0, items);
    if (bin < Own::bins) body(bin);
  }
};

}  // namespace lookback
