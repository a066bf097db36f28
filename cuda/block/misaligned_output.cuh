// An output that is not aligned as the input is: what a lane has loaded is not what stands in one vector of the output.
// Members of `tile`. There are three ways:
//
//   store_shifted_row  row by row through shared memory: the least code, for blocks that run once
//   store_realigned    all rows in registers, by shuffles, for vectors of 16 bytes of tiles that come from a stage
//   load_realigned     before the scan, from the stage, for values of 4 bytes: the tile begins with a vector of the output
//
// Stored are full aligned vectors, but for the two ends of what a warp has.
#pragma once

#include "tile.cuh"

namespace lookback {

// For `select_bytes`: the four bytes of two words that begin `skipped` bytes behind the first one's.
DEVICE u32 byte_selector(u32 skipped) { return 0x3210 + 0x1111 * skipped; }

// Of the vectors of `store_realigned`, by where they begin: which lie within the array, and which it cuts.
struct realigned_extent {
  u32 begin;
  u32 size;
  u32 cut[2];  // at its end and at its beginning; `none` where it does not

  static constexpr u32 none = ~0u;

  DEVICE static realigned_extent all() { return {0, none, {none, none}}; }

  // Of an array of `count` elements, for vectors that are counted from element `origin`, before its end.
  template <u32 width>
  DEVICE static realigned_extent of(i64 origin, u64 count) {
    const u32 farthest = LOOKBACK_MAXIMUM_VT * LOOKBACK_MAXIMUM_BLOCK_THREADS + LOOKBACK_VECTOR_BYTES;
    const u32 before = origin < 0 ? static_cast<u32>(-origin) : 0;
    const i64 left = static_cast<i64>(count) - origin;
    const u32 end = left < static_cast<i64>(farthest) ? static_cast<u32>(left) : farthest;
    realigned_extent extent;
    extent.begin = (before + width - 1) / width * width;
    extent.size = end / width * width > extent.begin ? end / width * width - extent.begin : 0;
    extent.cut[0] = end % width != 0 ? end / width * width : none;
    // One in which the array both begins and ends counts as the end.
    extent.cut[1] = before % width != 0 && before / width != end / width ? before / width * width : none;
    return extent;
  }

  DEVICE bool has(u32 offset) const { return offset - begin < size; }
};

// Elements by which the tile's first output element lies above a vector boundary.
template <class Problem, class Config>
template <u32 width>
DEVICE u32 tile<Problem, Config>::misaligned_elements(const output_type* output) const {
  const u64 address = reinterpret_cast<u64>(output) + static_cast<u64>(first) * sizeof(output_type);
  return static_cast<u32>(address % (width * sizeof(output_type))) / static_cast<u32>(sizeof(output_type));
}

template <class Problem, class Config>
DEVICE u32 tile<Problem, Config>::elements_skipped(const lookback_launch& launch) const {
  u32 skipped = 0;
  with_run_elements<element_type>(config, [&](auto access) {
    constexpr u32 width = decltype(access)::value;
    if constexpr (is_realigned_on_load<width>()) {
      skipped = (width - misaligned_elements<width>(static_cast<const output_type*>(launch.output))) % width;
    }
  });
  return skipped;
}

template <class Problem, class Config>
template <class Stage>
DEVICE auto tile<Problem, Config>::reduce_skipped(Stage stage, u32 skipped) const -> T {
  T value = Operator::identity();
  if constexpr (!Problem::has_arrays) {
    with_run_elements<element_type>(config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      if constexpr (is_realigned_on_load<width>()) {
        input_type vector[width];
        memory::shared_load_vector<width>(stage + (row_offset<width>(0) - lane_index() * width), vector);
        value = Problem::load(vector[0]);
        LOOKBACK_UNROLL
        for (u32 j = 1; j < width - 1; ++j) {
          if (j < skipped) value = combine<Operator>(value, Problem::load(vector[j]));
        }
      }
    });
  }
  return value;
}

// Each vector is put together from two neighbouring ones of the stage.
template <class Problem, class Config>
template <u32 width, u32 skipped>
DEVICE void tile<Problem, Config>::load_realigned(const input_type* stage) {
  LOOKBACK_UNROLL
  for (u32 row = 0; row < config.vt / width; ++row) {
    input_type vectors[2][width];
    memory::shared_load_vector<width>(stage + row_offset<width>(row), vectors[0]);
    memory::shared_load_vector<width>(stage + row_offset<width>(row) + width, vectors[1]);
    input_type joined[width];
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) joined[j] = vectors[(skipped + j) / width][(skipped + j) % width];
    items.load(row * width, joined);
  }
}

// A warp writes its part of a row to shared memory, `shift` elements above a vector boundary as in the output, and stores
// the full vectors that it finds there. What is left at the end of a part is taken up by the next row where that goes on
// right behind it; elsewhere it is stored element by element, as is what stands before the first full vector.
template <class Problem, class Config>
template <u32 width>
DEVICE void tile<Problem, Config>::store_shifted_row(output_type* output, u32 row, u32 shift, u64 count) {
  const bool continues = row != 0 && !spans_block();
  const bool goes_on = row + 1 < config.vt / width && !spans_block();
  output_type* const shifted = shifted_row<output_type>();
  const u32 lane = lane_index();
  const i64 row_first = first + row_offset<width>(row) - static_cast<i64>(lane * width);
  LOOKBACK_UNROLL
  for (u32 j = 0; j < width; ++j) {
    memory::shared_store(shifted[shift + lane * width + j], Problem::store(items.get(row * width + j)));
  }
  warp_barrier();  // the row is written
  if (lane != 0 || continues) {
    output_type vector[width];
    memory::shared_load_vector<width>(shifted + lane * width, vector);
    const i64 element = row_first + static_cast<i64>(lane * width) - static_cast<i64>(shift);
    store_guarded_vector<width, false>(output, element, count, vector);
  }
  const bool is_tail = lane < shift;
  output_type edge = Problem::store(Operator::identity());
  if (lane < width) {
    const u32 place = is_tail ? LOOKBACK_WARP_LANES * width + lane : lane;
    edge = memory::shared_load(shifted[place]);
    const i64 index = row_first + static_cast<i64>(place) - static_cast<i64>(shift);
    const bool is_alone = is_tail ? !goes_on : !continues;
    if (is_alone && index >= 0 && static_cast<u64>(index) < count) memory::store(output + index, edge);
  }
  warp_barrier();  // it is read: the next one may be written
  if (goes_on && is_tail) memory::shared_store(shifted[lane], edge);
}

// Each lane joins two neighbouring vectors, its own and one that comes by shuffles from the next lane; so no row waits
// for another. Only the elements at the ends, of the warp's rows and of the array, go through shared memory. Rows begin
// with whole sectors of the L2 cache if the lead is chosen so (`Planner::lead_of_copies`).
template <class Problem, class Config>
template <u32 width>
DEVICE void tile<Problem, Config>::store_realigned(output_type* output, u32 shift, u64 count, bool whole) {
  constexpr u32 bytes = sizeof(output_type);
  // The compiler then knows which words are joined: fewer of them are exchanged, and none is selected.
  switch ((LOOKBACK_VECTOR_BYTES - shift * bytes) / sizeof(u32)) {
    case 0:
      if constexpr (bytes < sizeof(u32)) store_realigned_words<width, 0>(output, shift, count, whole);
      break;
    case 1:
      if constexpr (bytes <= sizeof(u32)) store_realigned_words<width, 1>(output, shift, count, whole);
      break;
    case 2:
      store_realigned_words<width, 2>(output, shift, count, whole);
      break;
    default:
      if constexpr (bytes <= sizeof(u32)) store_realigned_words<width, 3>(output, shift, count, whole);
      break;
  }
}

// Of the left one of two vectors `skipped_words` words are left out, and some bytes of the next word.
template <class Problem, class Config>
template <u32 width, u32 skipped_words>
DEVICE void tile<Problem, Config>::store_realigned_words(output_type* output, u32 shift, u64 count, bool whole) {
  constexpr u32 bytes = sizeof(output_type);
  constexpr u32 words = vector_words;
  constexpr bool has_bytes = bytes < sizeof(u32);
  constexpr u32 left_words = words - skipped_words;
  constexpr u32 exchanged = skipped_words + (has_bytes ? 1 : 0);
  constexpr u32 row_elements = LOOKBACK_WARP_LANES * width;
  const u32 selector = byte_selector((LOOKBACK_VECTOR_BYTES - shift * bytes) % sizeof(u32));
  const u32 lane = lane_index();
  const u32 next_lane = (lane + 1) % LOOKBACK_WARP_LANES;
  // The last lane's vector of a row is joined with the first one's of the next; in the last row with nothing.
  const bool is_first = lane == 0;
  const bool is_last = lane == LOOKBACK_WARP_LANES - 1;
  const u32 rows = config.vt / width;
  // Vectors are counted from `shift` elements before the tile's first.
  const i64 origin = first - static_cast<i64>(shift);
  const u32 first_offset = row_offset<width>(0) + width;
  const realigned_extent extent =
      whole ? realigned_extent::all() : realigned_extent::of<width>(origin, count);
  // Of the lane's vectors, a bit a row: which lie within the array, and which it cuts, at its end or its beginning.
  u32 is_within = ~0u;
  u32 is_cut[2] = {};
  if (!whole) {
    is_within = 0;
    LOOKBACK_NOUNROLL
    for (u32 row = 0; row < rows; ++row) {
      const u32 offset = first_offset + row * row_elements;
      is_within |= extent.has(offset) ? 1u << row : 0;
      is_cut[0] |= offset == extent.cut[0] ? 1u << row : 0;
      is_cut[1] |= offset == extent.cut[1] ? 1u << row : 0;
    }
  }
  if (is_last) {
    is_within &= ~(1u << (rows - 1));
    is_cut[0] &= ~(1u << (rows - 1));
    is_cut[1] &= ~(1u << (rows - 1));
  }
  // In shared memory: the warp's first vector, its last one, and those that the array cuts.
  output_type* const ends = shifted_row<output_type>();
  output_type* const first_vector = output + (origin + static_cast<i64>(first_offset));
  u32 own[words];
  words_of<width>(0, own);
  if (is_first) memory::shared_store_words(ends, own);
  LOOKBACK_UNROLL
  for (u32 row = 0; row < rows; ++row) {
    if (row + 1 == rows && is_last) memory::shared_store_words(ends + width, own);
    u32 following[words] = {};
    if (row + 1 < rows) words_of<width>(row + 1, following);
    u32 next[exchanged];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < exchanged; ++i) next[i] = is_first ? following[i] : own[i];
    shuffle_index_each(next, exchanged, next_lane);
    u32 from[words + 1];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < words + (has_bytes ? 1 : 0); ++i) {
      from[i] = i < left_words ? own[(skipped_words + i) % words] : next[(i - left_words) % exchanged];
    }
    u32 joined[words];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < words; ++i) joined[i] = has_bytes ? select_bytes(from[i], from[i + has_bytes], selector) : from[i];
    if ((is_within >> row & 1) != 0) memory::store_words_unsplit(first_vector + row * row_elements, joined);
    if ((is_cut[0] >> row & 1) != 0) memory::shared_store_words(ends + 2 * width, joined);
    if ((is_cut[1] >> row & 1) != 0) memory::shared_store_words(ends + 3 * width, joined);
    LOOKBACK_UNROLL
    for (u32 i = 0; i < words; ++i) own[i] = following[i];
  }
  store_ends<width>(output, shift, count, extent);
}

// The words of the lane's vector in a row, as it is to be stored.
template <class Problem, class Config>
template <u32 width>
DEVICE void tile<Problem, Config>::words_of(u32 row, u32 (&words)[vector_words]) const {
  if constexpr (items_of<Problem, Config>::are_words) {
    LOOKBACK_UNROLL
    for (u32 i = 0; i < vector_words; ++i) words[i] = items.words[row * vector_words + i];
  } else {
    output_type vector[width];
    items.store(row * width, vector);
    memcpy(words, vector, sizeof(vector));
  }
}

// Stores what `store_realigned` has left in shared memory, an element a lane: what its vectors do not take of the warp's
// first and last one, and what the array has of those that it cuts.
template <class Problem, class Config>
template <u32 width>
DEVICE void tile<Problem, Config>::store_ends(output_type* output, u32 shift, u64 count,
                                              const realigned_extent& extent) {
  const output_type* const ends = shifted_row<output_type>();
  const u32 lane = lane_index();
  const u32 warp_offset = row_offset<width>(0) - lane * width;
  const i64 origin = first - static_cast<i64>(shift);
  const auto store_one = [&](u32 offset, u32 place) {
    const output_type end = memory::shared_load(ends[place]);
    const i64 index = origin + static_cast<i64>(offset);
    if (index >= 0 && static_cast<u64>(index) < count) memory::store(output + index, end);
  };
  warp_barrier();  // they are written
  if (lane < width) {
    const bool is_tail = lane < shift;
    store_one(warp_offset + (is_tail ? LOOKBACK_WARP_LANES * config.vt : 0) + lane, (is_tail ? 2 * width : 0) + lane - shift);
  }
  if (extent.size != realigned_extent::none && lane < 2 * width) {
    const u32 cut = lane < width ? extent.cut[0] : extent.cut[1];
    // A vector in which the warp's rows begin is none that it stores: its elements are among those above.
    if (cut > warp_offset && cut < warp_offset + LOOKBACK_WARP_LANES * config.vt) {
      store_one(cut + lane % width, 2 * width + lane);
    }
  }
  warp_barrier();  // they are read: the next ones may be written
}

}  // namespace lookback
