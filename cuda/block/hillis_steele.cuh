// Hillis & Steele (1986), double-buffered: each step reads one buffer and writes the other, so one
// barrier a step is enough. n log2 n operators at most, log2 n steps.
#pragma once

#include "../operators.cuh"
#include "team.cuh"

namespace lookback {

// `scratch` holds two values a thread of the team.
template <class Team, class Operator>
DEVICE team_scan_result<typename Operator::value_type> hillis_steele_scan(typename Operator::value_type value,
                                                                          typename Operator::value_type* scratch) {
  using T = typename Operator::value_type;
  const u32 rank = Team::rank();
  const u32 size = Team::size();
  T* source = scratch;
  T* target = scratch + size;
  memory::shared_store(source[rank], value);
  for (u32 distance = 1; distance < size; distance *= 2) {
    Team::barrier();  // the step before is written
    if (rank >= distance) value = combine<Operator>(memory::shared_load(source[rank - distance]), value);
    memory::shared_store(target[rank], value);
    T* const written = target;
    target = source;
    source = written;
  }
  Team::barrier();  // the last step is written
  team_scan_result<T> result;
  result.exclusive = rank == 0 ? Operator::identity() : memory::shared_load(source[rank - 1]);
  result.total = memory::shared_load(source[size - 1]);
  Team::barrier();  // everyone has read; the scratch may be written again
  return result;
}

}  // namespace lookback
