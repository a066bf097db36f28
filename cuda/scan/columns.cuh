// Single pass down the columns of a tensor, with decoupled look-back: `../problem/columns.cuh`. It scans the arrays of what a
// user has defined and nothing else; a plain array has no columns.
#pragma once

#include "../problem/columns.cuh"

namespace lookback {
namespace scan {

// Reads what `scan_columns` says. A block a tile.
template <class Problem, class Config>
DEVICE void columns(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    if constexpr (Problem::segments_type::are_columns) scan_columns<Problem>(config, launch);
  }
}

}  // namespace scan
}  // namespace lookback
