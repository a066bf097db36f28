// Sklansky (1960): divide and conquer; in each step the upper half of every group adds the last value
// of the lower half. log2 n steps of n/2 operators. Works for any team size.
#pragma once

#include "../operators.cuh"
#include "team.cuh"

namespace lookback {

// `scratch` holds one value a thread of the team.
template <class Team, class Operator>
DEVICE team_scan_result<typename Operator::value_type> sklansky_scan(typename Operator::value_type value,
                                                                     typename Operator::value_type* scratch) {
  using T = typename Operator::value_type;
  const u32 rank = Team::rank();
  const u32 size = Team::size();
  memory::shared_store(scratch[rank], value);
  for (u32 half = 1; half < size; half *= 2) {
    Team::barrier();  // the step before is written
    // Upper halves write, lower halves are read: no barrier between.
    if (rank & half) {
      const u32 last_of_lower = (rank & ~(2 * half - 1)) + half - 1;
      value = combine<Operator>(memory::shared_load(scratch[last_of_lower]), value);
      memory::shared_store(scratch[rank], value);
    }
  }
  Team::barrier();  // the last step is written
  team_scan_result<T> result;
  result.exclusive = rank == 0 ? Operator::identity() : memory::shared_load(scratch[rank - 1]);
  result.total = memory::shared_load(scratch[size - 1]);
  Team::barrier();  // everyone has read; the scratch may be written again
  return result;
}

}  // namespace lookback
