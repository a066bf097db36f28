// From offsets to bits: where a segment begins, for scans in segments by offsets. Empty segments have no bit. The bits are in
// the order of the scan, so that who reads them need not know its direction.
//
// What the offsets have to be, rising from 0 to n, is found out here, because the device alone knows them: no bit is set
// where there is no element, and the findings say which segment is wrong.
#pragma once

#include "../config.cuh"
#include "../count.cuh"
#include "../memory.cuh"

namespace lookback {
namespace scan {

// Reads: output (the bits), n (their words, a multiple of 4). A thread four words.
template <class Problem, class Config>
DEVICE void clear_marks(Config config, const lookback_launch& launch) {
  u32* const words = static_cast<u32*>(launch.output);
  const u64 first = (block_index() * config.block_threads + thread_index()) * 4;
  const u32 none[4] = {0, 0, 0, 0};
  if (first < launch.n) memory::store_vector<4>(words + first, none);
}

// Reads: output (the bits, all 0), n, offsets, segments, offset_bytes, is_reversed, count, count_bytes, findings. Any number
// of blocks.
template <class Problem, class Config>
DEVICE void mark_segments(Config config, const lookback_launch& launch) {
  u32* const words = static_cast<u32*>(launch.output);
  const u64 n = elements_of(launch);
  const u64 stride = grid_blocks() * config.block_threads;
  for (u64 segment = block_index() * config.block_threads + thread_index(); segment < launch.segments; segment += stride) {
    const u64 begin = load_number(launch.offsets, launch.offset_bytes, segment);
    const u64 end = load_number(launch.offsets, launch.offset_bytes, segment + 1);
    const bool is_first = segment == 0;
    const bool is_last = segment + 1 == launch.segments;
    if (begin > end || end > n || (is_first && begin != 0) || (is_last && end != n)) {
      // Relaxed: any one of those that are wrong; the host reads it when the stream has done its work.
      memory::store_relaxed(&launch.findings->segment, segment + 1);
    }
    if (begin >= end || end > n) continue;
    const u64 bit = LOOKBACK_LEADING_BITS + (launch.is_reversed != 0 ? n - end : begin);
    // Relaxed, pairs with nothing: each bit is added once, and launches behind this one are ordered by the stream. Offsets
    // that fall may add one twice, and carry into others: those are wrong anyhow.
    memory::fetch_add_relaxed(words + bit / 32, 1u << bit % 32);
  }
}

}  // namespace scan
}  // namespace lookback
