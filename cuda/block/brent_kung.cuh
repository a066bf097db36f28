// Brent & Kung (1982): a reduction tree up, then down the same tree filling in what lies between.
// Fewer than 2n operators, about 2 log2 n steps. Works for any team size.
#pragma once

#include "../operators.cuh"
#include "team.cuh"

namespace lookback {

// `scratch` holds one value a thread of the team.
template <class Team, class Operator>
DEVICE team_scan_result<typename Operator::value_type> brent_kung_scan(typename Operator::value_type value,
                                                                       typename Operator::value_type* scratch) {
  using T = typename Operator::value_type;
  const u32 rank = Team::rank();
  const u32 size = Team::size();
  memory::shared_store(scratch[rank], value);
  u32 distance = 1;
  for (; distance < size; distance *= 2) {
    Team::barrier();  // the step before is written
    const u32 right = (rank + 1) * 2 * distance - 1;
    if (right < size) {
      const T left_sum = memory::shared_load(scratch[right - distance]);
      memory::shared_store(scratch[right], combine<Operator>(left_sum, memory::shared_load(scratch[right])));
    }
  }
  for (distance /= 2; distance > 0; distance /= 2) {
    Team::barrier();  // the step before is written
    const u32 left = (rank + 1) * 2 * distance - 1;
    const u32 middle = left + distance;
    if (middle < size) {
      const T left_prefix = memory::shared_load(scratch[left]);
      memory::shared_store(scratch[middle], combine<Operator>(left_prefix, memory::shared_load(scratch[middle])));
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
