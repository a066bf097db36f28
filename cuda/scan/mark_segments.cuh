// From offsets to bits: where a segment begins, for scans in segments by offsets. Empty segments have no bit. The bits are in
// the order of the scan, so that who reads them need not know its direction.
//
// What the offsets have to be, rising from 0 to n, is found out here, because the device alone knows them: no bit is set
// where there is no element, and the findings say which segment is wrong.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"
#include "../problem/count.cuh"

namespace lookback {
namespace scan {

// Neighbouring segments of a lane, so that enough of their borders are on their way at one time.
constexpr u32 segments_of_lane = 4;

// Where the segments from `first` on begin, and the last one ends; `count` of them are there.
template <class Number>
DEVICE void load_borders(const Number* offsets, u64 first, u64 count, Number (&borders)[segments_of_lane + 1]) {
  constexpr u32 width = LOOKBACK_VECTOR_BYTES / sizeof(Number);
  static_assert(segments_of_lane % width == 0, "vectors are a lane's alone");
  const bool are_aligned = reinterpret_cast<u64>(offsets) % LOOKBACK_VECTOR_BYTES == 0;
  if (are_aligned && first + segments_of_lane <= count) {
    LOOKBACK_UNROLL
    for (u32 from = 0; from < segments_of_lane; from += width) {
      Number vector[width];
      memory::load_vector<width>(offsets + first + from, vector);
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) borders[from + j] = vector[j];
    }
    borders[segments_of_lane] = memory::load(offsets + first + segments_of_lane);
    return;
  }
  LOOKBACK_UNROLL
  for (u32 j = 0; j <= segments_of_lane; ++j) borders[j] = first + j <= count ? memory::load(offsets + first + j) : 0;
}

// Segments whose borders are numbers of this type. What is not among the first `n` elements is wrong, so that `n` may be cut.
template <class Number, class Config>
DEVICE void mark_between(Config config, const lookback_launch& launch, u64 n) {
  constexpr Number largest = ~Number(0);
  constexpr u32 leading_words = LOOKBACK_LEADING_BITS / 32;
  const Number* const offsets = static_cast<const Number*>(launch.offsets);
  const Number count = n < largest ? static_cast<Number>(n) : largest;
  u32* const words = static_cast<u32*>(launch.output) + leading_words;
  // Relaxed, pairs with nothing: each bit is added once, and launches behind this one are ordered by the stream. Offsets that fall
  // may add one twice, and carry into others: those are wrong anyhow.
  const auto add = [&](Number word, u32 bits) { memory::fetch_add_relaxed(words + word, bits); };
  const u32 lane = lane_index();
  const u64 stride = grid_blocks() * config.block_threads * segments_of_lane;
  // All lanes of a warp go round together, those without a segment too.
  const u64 first = (block_index() * config.block_threads + thread_index() - lane) * segments_of_lane;
  for (u64 from = first; from < launch.segments; from += stride) {
    const u64 own = from + lane * segments_of_lane;
    Number borders[segments_of_lane + 1];
    load_borders(offsets, own, launch.segments, borders);
    Number word = largest;
    u32 bits = 0;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < segments_of_lane; ++j) {
      const u64 segment = own + j;
      if (segment >= launch.segments) continue;
      const Number begin = borders[j];
      const Number end = borders[j + 1];
      const bool is_first = segment == 0;
      const bool is_last = segment + 1 == launch.segments;
      if (begin > end || end > count || (is_first && begin != 0) || (is_last && end != n)) {
        // Relaxed: any one of those that are wrong; the host reads it when the stream has done its work.
        memory::store_relaxed(&launch.findings->segment, segment + 1);
      }
      if (begin >= end || end > count) continue;
      const Number bit = launch.is_reversed != 0 ? count - end : begin;
      if (bit / 32 != word) {
        if (bits != 0) add(word, bits);
        word = bit / 32;
        bits = 0;
      }
      bits |= 1u << bit % 32;
    }
    // Neighbours that end in the same word add their bits there together: short segments would queue.
    const Number left = shuffle_up(word, 1);
    const bool leads = lane == 0 || left != word;
    const u32 later_leaders = ballot(leads) >> lane >> 1;
    const u32 followers = later_leaders == 0 ? LOOKBACK_WARP_LANES - 1 - lane : lowest_set_bit(later_leaders);
    LOOKBACK_UNROLL
    for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
      const u32 right = shuffle_down(bits, distance);
      if (distance <= followers) bits |= right;
    }
    if (leads && bits != 0) add(word, bits);
  }
}

// Reads: output (the bits, all 0), n, offsets, segments, offset_bytes, is_reversed, count, count_bytes, findings. Any number
// of blocks.
template <class Problem, class Config>
DEVICE void mark_segments(Config config, const lookback_launch& launch) {
  const u64 n = elements_of(launch);
  if (launch.offset_bytes == sizeof(u32)) {
    mark_between<u32>(config, launch, n);
  } else {
    mark_between<u64>(config, launch, n);
  }
}

}  // namespace scan
}  // namespace lookback
