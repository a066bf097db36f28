// How many elements there are, where the device alone knows it.
#pragma once

#include "../config.cuh"
#include "../memory.cuh"

namespace lookback {

// An element of an array of whole numbers of 4 or 8 bytes.
DEVICE u64 load_number(const void* numbers, u32 bytes, u64 index) {
  if (bytes == sizeof(u32)) return memory::load(static_cast<const u32*>(numbers) + index);
  return memory::load(static_cast<const u64*>(numbers) + index);
}

// The elements of a scan: no more than the arrays have and whole rows, whatever the count says. A row is what lies side by side: one
// that is scanned, or an element of each column.
DEVICE u64 elements_of(const lookback_launch& launch) {
  if (launch.count == nullptr) return launch.n;
  const u64 count = load_number(launch.count, launch.count_bytes, 0);
  const u64 row = launch.axis.inner != 0 ? launch.axis.inner : launch.columns;
  u64 n = count < launch.n ? count : launch.n;
  if (row != 0) n -= n % row;
  // Relaxed: the host reads it when the stream has done its work; all that store it store the same.
  if (n != count) memory::store_relaxed(&launch.findings->count, count);
  return n;
}

// The items of an expansion: no more than there are offsets of, whatever the count says.
DEVICE u64 counted_items(const lookback_launch& launch) {
  const u64 count = load_number(launch.count, launch.count_bytes, 0);
  if (count <= launch.segments) return count;
  // Relaxed: as above.
  memory::store_relaxed(&launch.findings->count, count);
  return launch.segments;
}

// Makes the columns of a matrix as long as the elements that were counted, in as many tiles as they need, at least one. Where each block
// has a tile of its own there are as many as before: those behind the end load nothing, and tell each other what stands above them.
template <class Config>
DEVICE void shorten_columns(Config config, lookback_launch& counted) {
  lookback_axis& axis = counted.axis;
  axis.length = counted.n / axis.inner;
  if (config.stages == 0) return;
  const u64 tile_rows = config.block_threads / LOOKBACK_WARP_LANES * (LOOKBACK_WARP_LANES / axis.strip_lanes) * config.vt;
  const u64 tiles_down = (axis.length + tile_rows - 1) / tile_rows;
  axis.tiles_down = tiles_down == 0 ? 1 : static_cast<u32>(tiles_down);
  counted.tiles = static_cast<u64>(axis.lines) * axis.tiles_down;
}

// Calls `body` with the launch as it is once the elements are counted. Blocks that take tiles in turn get no more tiles than
// there are; where each block has its own, those behind the last element find nothing to do.
template <class Problem, class Config, class Body>
DEVICE void with_count(Config config, const lookback_launch& launch, Body body) {
  if constexpr (Problem::has_arrays) {
    if constexpr (Problem::is_counted) {
      lookback_launch counted = launch;
      counted.n = elements_of(launch);
      if (launch.axis.inner != 0) {
        shorten_columns(config, counted);
      } else {
        const u64 tile_elements = static_cast<u64>(config.block_threads) * config.vt;
        const u64 tiles = (counted.n + counted.lead + tile_elements - 1) / tile_elements;
        if (config.stages != 0 || grid_blocks() == 1) counted.tiles = tiles == 0 ? 1 : tiles;
      }
      body(counted);
      return;
    }
  }
  body(launch);
}

}  // namespace lookback
