// Blelloch (1990): up-sweep to a total, then down-sweep an exclusive prefix from the root. About 2n
// operators, 2 log2 n steps. The tree is padded with the identity to a power of two.
#pragma once

#include "../operators.cuh"
#include "team.cuh"

namespace lookback {

// `scratch` holds one value a leaf: the team size rounded up to a power of two.
template <class Team, class Operator>
DEVICE team_scan_result<typename Operator::value_type> blelloch_scan(typename Operator::value_type value,
                                                                     typename Operator::value_type* scratch) {
  using T = typename Operator::value_type;
  const u32 rank = Team::rank();
  const u32 size = Team::size();
  u32 leaves = 1;
  while (leaves < size) leaves *= 2;
  memory::shared_store(scratch[rank], value);
  // A team fills more than half of the leaves, so one padding leaf a thread is enough.
  if (rank + size < leaves) memory::shared_store(scratch[rank + size], Operator::identity());
  for (u32 distance = 1; distance < leaves; distance *= 2) {
    Team::barrier();  // the level below is written
    const u32 right = (rank + 1) * 2 * distance - 1;
    if (right < leaves) {
      const T left_sum = memory::shared_load(scratch[right - distance]);
      memory::shared_store(scratch[right], combine<Operator>(left_sum, memory::shared_load(scratch[right])));
    }
  }
  Team::barrier();  // the root is written
  team_scan_result<T> result;
  result.total = memory::shared_load(scratch[leaves - 1]);
  Team::barrier();  // everyone has read the root
  if (rank == 0) memory::shared_store(scratch[leaves - 1], Operator::identity());
  for (u32 distance = leaves / 2; distance > 0; distance /= 2) {
    Team::barrier();  // the level above is written
    const u32 right = (rank + 1) * 2 * distance - 1;
    if (right < leaves) {
      const T left_sum = memory::shared_load(scratch[right - distance]);
      const T prefix = memory::shared_load(scratch[right]);
      memory::shared_store(scratch[right - distance], prefix);
      memory::shared_store(scratch[right], combine<Operator>(prefix, left_sum));
    }
  }
  Team::barrier();  // the leaves are written
  result.exclusive = memory::shared_load(scratch[rank]);
  // No barrier behind it: each thread has read its own slot, which nobody else writes first in the next scan.
  return result;
}

}  // namespace lookback
