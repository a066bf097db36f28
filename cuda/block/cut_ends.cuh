// What the array cuts of a tile: no more than two vectors, the one in which it begins and the one in which it ends.
// Members of `tile`.
#pragma once

#include "tile.cuh"

namespace lookback {

// The cut vectors that a warp has.
struct cut_vectors {
  bool has_head;
  bool has_tail;
  u32 head;  // where they begin, in elements from the tile's first
  u32 tail;

  // Lanes take an element each: the first `width` those of the tail, the next those of the head. Whether this lane has
  // one, and where it stands in the tile.
  template <u32 width>
  DEVICE bool has_lane(u32 lane) const { return lane < width ? has_tail : has_head && lane < 2 * width; }
  template <u32 width>
  DEVICE u32 place_of(u32 lane) const { return lane < width ? tail + lane : head + lane - width; }
};

// Whether element `place` of the tile is one of the first `count` of the array.
template <class Problem, class Config>
DEVICE bool tile<Problem, Config>::is_within(u32 place, u64 count) const {
  const i64 index = first + static_cast<i64>(place);
  return index >= 0 && static_cast<u64>(index) < count;
}

// The warp that has the vector at `offset` from the tile's first element.
template <class Problem, class Config>
template <u32 width>
DEVICE u32 tile<Problem, Config>::warp_of(u32 offset) const {
  if (spans_block()) return offset / width % config.block_threads / LOOKBACK_WARP_LANES;
  return offset / (LOOKBACK_WARP_LANES * config.vt);
}

// Of an array of `count` elements. A vector in which the array both begins and ends counts as the tail. With `may_lead`
// the lead may be longer than a vector; else it is not, and code that runs once is spared.
template <class Problem, class Config>
template <u32 width, bool may_lead>
DEVICE cut_vectors tile<Problem, Config>::cuts(u64 count) const {
  const i64 end = static_cast<i64>(count) - first;
  const bool tile_has_tail = end > 0 && end < static_cast<i64>(tile_elements) && end % width != 0;
  cut_vectors cut;
  cut.tail = tile_has_tail ? static_cast<u32>(end) / width * width : 0;
  cut.has_tail = tile_has_tail && warp_index() == warp_of<width>(cut.tail);
  const bool has_lead = !begins_at_vectors() && first < 0;
  cut.head = may_lead && has_lead ? static_cast<u32>(-first) / width * width : 0;
  const bool has_cut_head = has_lead && (!may_lead || static_cast<u32>(-first) % width != 0);
  cut.has_head = has_cut_head && warp_index() == warp_of<width>(cut.head) && !(tile_has_tail && cut.tail == cut.head);
  return cut;
}

// A vector at `element`, with padding for what is not among the first `count` elements of the input.
template <class Problem, class Config>
template <u32 width>
DEVICE void tile<Problem, Config>::load_guarded_vector(const input_type* input, i64 element, u64 count,
                                                       input_type (&vector)[width]) const {
  if (element >= 0 && static_cast<u64>(element) + width <= count) {
    memory::load_vector<width>(input + element, vector);
    return;
  }
  LOOKBACK_UNROLL
  for (u32 j = 0; j < width; ++j) {
    const i64 index = element + j;
    vector[j] = index >= 0 && static_cast<u64>(index) < count ? memory::load(input + index) : Problem::padding();
  }
}

// Whole vectors as in a whole tile. The elements of a cut one are loaded by a lane each and handed to its lane through
// shared memory.
template <class Problem, class Config>
template <u32 width>
DEVICE void tile<Problem, Config>::load_cut_tile(const input_type* input, u64 count) {
  LOOKBACK_UNROLL
  for (u32 row = 0; row < config.vt / width; ++row) {
    const u32 offset = row_offset<width>(row);
    input_type vector[width];
    if (is_within(offset, count) && is_within(offset + width - 1, count)) {
      memory::load_vector<width>(input + (first + static_cast<i64>(offset)), vector);
    } else {
      const input_type nothing = Problem::padding();
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) vector[j] = nothing;
    }
    items.load(row * width, vector);
  }
  const cut_vectors cut = cuts<width>(count);
  const u32 lane = lane_index();
  input_type* const elements = shifted_row<input_type>();
  if (cut.template has_lane<width>(lane)) {
    const u32 place = cut.template place_of<width>(lane);
    const input_type element =
        is_within(place, count) ? memory::load(input + (first + static_cast<i64>(place))) : Problem::padding();
    memory::shared_store(elements[lane], element);
  }
  warp_barrier();  // they are written
  LOOKBACK_UNROLL
  for (u32 row = 0; row < config.vt / width; ++row) {
    const u32 offset = row_offset<width>(row);
    const bool is_tail = cut.has_tail && offset == cut.tail;
    if (!is_tail && !(cut.has_head && offset == cut.head)) continue;
    input_type vector[width];
    memory::shared_load_vector<width>(elements + (is_tail ? 0 : width), vector);
    items.load(row * width, vector);
  }
  // No barrier here: what is next written to the row comes behind the block barrier of the totals, but for the cut end of
  // another tile, which has a place of its own.
}

// As `load_cut_tile` for wide vectors.
template <class Problem, class Config>
template <u32 width, bool from_stage>
DEVICE void tile<Problem, Config>::store_cut_tile(output_type* output, u64 count) {
  const cut_vectors cut = cuts<width, from_stage>(count);
  const u32 lane = lane_index();
  output_type* const elements = shifted_row<output_type>();
  LOOKBACK_UNROLL
  for (u32 row = 0; row < config.vt / width; ++row) {
    const u32 offset = row_offset<width>(row);
    output_type vector[width];
    items.store(row * width, vector);
    if (is_within(offset, count) && is_within(offset + width - 1, count)) {
      store_vector<width, from_stage>(output + (first + static_cast<i64>(offset)), vector);
      continue;
    }
    const bool is_tail = cut.has_tail && offset == cut.tail;
    const bool is_head = cut.has_head && offset == cut.head;
    if (is_tail || is_head) memory::shared_store_vector<width>(elements + (is_tail ? 0 : width), vector);
  }
  warp_barrier();  // they are written
  if (!cut.template has_lane<width>(lane)) return;
  const u32 place = cut.template place_of<width>(lane);
  if (!is_within(place, count)) return;
  memory::store(output + (first + static_cast<i64>(place)), memory::shared_load(elements[lane]));
}

// A vector at `element`, as far as it is among the first `count` elements of the output.
template <class Problem, class Config>
template <u32 width, bool from_stage>
DEVICE void tile<Problem, Config>::store_guarded_vector(output_type* output, i64 element, u64 count,
                                                        const output_type (&vector)[width]) const {
  if (element >= 0 && static_cast<u64>(element) + width <= count) {
    store_vector<width, from_stage>(output + element, vector);
    return;
  }
  LOOKBACK_UNROLL
  for (u32 j = 0; j < width; ++j) {
    const i64 index = element + j;
    if (index >= 0 && static_cast<u64>(index) < count) memory::store(output + index, vector[j]);
  }
}

}  // namespace lookback
