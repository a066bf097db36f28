// What a tile in segments comes to, where the last begin in a stretch is found without a look at each element.
#pragma once

#include "../config.cuh"
#include "../warp/shuffle.cuh"
#include "problem.cuh"

namespace lookback {

// The total of several segments in the parts of a tile that the scanning warps from `first_warp` on have, for lane 0. Of a part
// counts what stands behind the last begin in it, so that no element is marked. Leaves what stands left of each warp.
// `together`: values of a lane that are combined over the warp together.
template <u32 together, class Problem, class Config, class Stages>
DEVICE typename Problem::state_type reduce_segments(Config config, Stages stages, u32 stage, u64 index, u32 first_warp,
                                                    u32 end_warp, typename Problem::state_type* warp_prefixes) {
  using unbroken = typename Problem::unbroken;
  using Operator = typename unbroken::operator_type;
  using T = typename unbroken::state_type;
  const u32 part_elements = LOOKBACK_WARP_LANES * config.vt;
  const auto marks = stages.at(stage, index);
  const auto elements = stages.template as<unbroken>().at(stage, index);
  auto running = Problem::operator_type::identity();
  LOOKBACK_NOUNROLL
  for (u32 warp = first_warp; warp < end_warp; ++warp) {
    if (lane_index() == 0) memory::shared_store(warp_prefixes[warp], running);
    const u32 part = warp * part_elements;
    const u32 begin = Problem::segments_type::last_begin(marks, part, part_elements);
    const u32 counted = begin == no_begin ? part : begin;
    T total = Operator::identity();
    with_run_elements<access_type<Problem>>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      constexpr u32 row_elements = LOOKBACK_WARP_LANES * width;
      const u32 rows = config.vt / width;
      // The first element that counts may lie within a row. Where lanes may combine in any order, that row is combined apart, so that of
      // the others no element is asked whether it counts. Where not, it would take an exchange of its own, which costs more than to ask
      // all elements (measured).
      const auto combined = [&](u32 row, auto is_cut) {
        return (elements + static_cast<int>(row + lane_index() * width))
            .template combined<width, (decltype(is_cut)::value != 0)>(static_cast<int>(counted));
      };
      constexpr u32 is_asked = Operator::is_commutative ? 0 : 1;
      const u32 before = (counted - part) % row_elements;
      if (!is_asked && before != 0) total = combined(counted - before, constant<1>());
      LOOKBACK_UNROLL
      for (u32 from = 0; from < rows; from += together) {
        const u32 count = rows - from < together ? rows - from : together;
        T totals[together];
        LOOKBACK_UNROLL
        for (u32 i = 0; i < together; ++i) {
          if (i >= count) continue;
          totals[i] = Operator::identity();
          const u32 row = part + (from + i) * row_elements;
          const bool counts = is_asked ? counted < row + row_elements : counted <= row;
          if (counts) totals[i] = combined(row, constant<is_asked>());
        }
        // Lanes of one row are neighbours, those of two rows are not.
        if constexpr (!Operator::is_commutative) warp_reduce_each<Operator>(totals, count);
        LOOKBACK_UNROLL
        for (u32 i = 0; i < together; ++i) {
          if (i < count) total = combine<Operator>(total, totals[i]);
        }
      }
    });
    if constexpr (Operator::is_commutative) {
      T joined[1] = {total};
      warp_reduce_each<Operator>(joined, 1);
      total = joined[0];
    }
    const typename Problem::state_type of_part = {total, begin == no_begin ? 0u : 1u};
    running = combine<typename Problem::operator_type>(running, of_part);
  }
  return running;
}

}  // namespace lookback
