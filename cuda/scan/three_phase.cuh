// The three-phase grid scans: something a tile, a scan of the tile totals (the spine, by the same
// kernels, recursively), something a tile again.
//
//   reduce-then-scan      reduce tiles (n reads), spine, scan tiles from their prefix (n reads, n writes)
//   scan-then-propagate   scan tiles (n reads, n writes), spine, add prefixes (n reads, n writes)
//
// The last phase takes the tiles in reverse order: the end of the array is what the first phase left in
// the L2 cache.
#pragma once

#include "../block/tile.cuh"

namespace lookback {
namespace scan {

template <class Problem>
DEVICE void store_total(const lookback_launch& launch, typename Problem::state_type total) {
  auto* const totals = static_cast<typename Problem::published_type*>(launch.spine);
  if (thread_index() == 0) memory::store_spine(totals + block_index(), Problem::publish(total));
}

// Upsweep. Reads: input, spine (written: tile totals), n, lead. A block a tile.
template <class Problem, class Config>
DEVICE void reduce_tiles(Config config, const lookback_launch& launch) {
  using storage_type = tile_storage<Problem, Config>;
  SHARED(storage_type, storage);
  tile<Problem, Config> mine(config, storage, launch, block_index());
  mine.load(launch);
  store_total<Problem>(launch, mine.reduce());
}

// Downsweep. Reads: input, output, spine (exclusive prefixes of the tiles; null for a single tile), n,
// tiles, lead. A block a tile.
template <class Problem, class Config>
DEVICE void scan_tiles(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using published_type = typename Problem::published_type;
  using storage_type = tile_storage<Problem, Config>;
  SHARED(storage_type, storage);
  const u64 index = launch.tiles - 1 - block_index();
  const published_type* const prefixes = static_cast<const published_type*>(launch.spine);
  tile<Problem, Config> mine(config, storage, launch, index);
  mine.load(launch);
  const auto prefix = prefixes == nullptr ? Operator::identity() : Problem::adopt(memory::load_spine(prefixes + index));
  mine.reduce();
  mine.finish(launch, prefix);
  mine.store(launch);
}

// First phase of scan-then-propagate. Reads: input, output, spine (written: tile totals), n, lead.
template <class Problem, class Config>
DEVICE void scan_tile_totals(Config config, const lookback_launch& launch) {
  using storage_type = tile_storage<Problem, Config>;
  SHARED(storage_type, storage);
  tile<Problem, Config> mine(config, storage, launch, block_index());
  mine.load(launch);
  store_total<Problem>(launch, mine.reduce());
  mine.finish(launch, Problem::operator_type::identity());
  mine.store(launch);
}

// Last phase of scan-then-propagate. Reads: output, spine (exclusive prefixes of the tiles), n, tiles,
// lead (which fixes where tiles begin). The order of elements no longer matters, so the accesses follow
// the alignment of the output.
template <class Problem, class Config>
DEVICE void propagate(Config config, const lookback_launch& launch) {
  using Operator = typename Problem::operator_type;
  using T = typename Problem::state_type;
  static_assert(is_same<typename Problem::output_type, T>::value,
                "prefixes are added to what the first phase has stored, so that must be what is scanned");
  T* const output = static_cast<T*>(launch.output);
  const u64 index = launch.tiles - 1 - block_index();
  const u64 tile_elements = static_cast<u64>(config.block_threads) * config.vt;
  const i64 tile_first = static_cast<i64>(index * tile_elements) - static_cast<i64>(launch.lead);
  const i64 begin = tile_first < 0 ? 0 : tile_first;
  i64 end = tile_first + static_cast<i64>(tile_elements);
  if (end > static_cast<i64>(launch.n)) end = static_cast<i64>(launch.n);
  const T prefix = Problem::adopt(memory::load_spine(static_cast<const typename Problem::published_type*>(launch.spine) + index));

  with_run_elements<access_type<Problem>>(config, [&](auto access) {
    constexpr u32 width = decltype(access)::value;
    const u64 address = reinterpret_cast<u64>(output + begin);
    const i64 misaligned = static_cast<i64>(address % (width * sizeof(T)) / sizeof(T));
    // One vector more than the tile has, for its two cut ends.
    LOOKBACK_UNROLL
    for (u32 row = 0; row < config.vt / width + 1; ++row) {
      const i64 element = begin - misaligned + static_cast<i64>((row * config.block_threads + thread_index()) * width);
      if (element >= begin && element + static_cast<i64>(width) <= end) {
        T vector[width];
        memory::load_vector<width>(output + element, vector);
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) vector[j] = combine<Operator>(prefix, vector[j]);
        memory::store_vector<width>(output + element, vector);
      } else {
        LOOKBACK_UNROLL
        for (u32 j = 0; j < width; ++j) {
          const i64 i = element + j;
          if (i >= begin && i < end) memory::store(output + i, combine<Operator>(prefix, memory::load(output + i)));
        }
      }
    }
  });
}

}  // namespace scan
}  // namespace lookback
