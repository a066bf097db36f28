// Kogge & Stone (1973) in one shared buffer: a barrier between the reads of a step and its writes, and
// one between its writes and the next reads. The same operators as Hillis-Steele, half the storage,
// twice the barriers.
#pragma once

#include "../operators.cuh"
#include "team.cuh"

namespace lookback {

// `scratch` holds one value a thread of the team.
template <class Team, class Operator>
DEVICE team_scan_result<typename Operator::value_type> kogge_stone_scan(typename Operator::value_type value,
                                                                        typename Operator::value_type* scratch) {
  using T = typename Operator::value_type;
  const u32 rank = Team::rank();
  const u32 size = Team::size();
  memory::shared_store(scratch[rank], value);
  for (u32 distance = 1; distance < size; distance *= 2) {
    Team::barrier();  // the step before is written
    if (rank >= distance) value = combine<Operator>(memory::shared_load(scratch[rank - distance]), value);
    Team::barrier();  // everyone has read
    memory::shared_store(scratch[rank], value);
  }
  Team::barrier();  // the last step is written
  team_scan_result<T> result;
  result.exclusive = rank == 0 ? Operator::identity() : memory::shared_load(scratch[rank - 1]);
  result.total = memory::shared_load(scratch[size - 1]);
  Team::barrier();  // everyone has read; the scratch may be written again
  return result;
}

}  // namespace lookback
