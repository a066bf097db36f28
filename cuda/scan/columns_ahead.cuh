// Single pass down the columns of a tensor, with look-ahead: `../problem/columns_ahead.cuh`. It scans the columns of what a
// user has defined and nothing else.
#pragma once

#include "../problem/columns_ahead.cuh"

namespace lookback {
namespace scan {

// Reads what `scan_columns_ahead` says. Blocks stay.
template <class Problem, class Config>
DEVICE void columns_ahead(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    if constexpr (Problem::segments_type::are_columns) scan_columns_ahead<Problem>(config, launch);
  }
}

}  // namespace scan
}  // namespace lookback
