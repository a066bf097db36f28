// Load-balancing search: from offsets back to the items that they belong to. Each of many places, which offsets share out among
// items, finds its item, however many places the items have: none, a few, or nearly all.
//
// Items and places are merged (Green, McColl and Bader, "GPU Merge Path: A GPU Merging Algorithm", 2012; as a search for owners Baxter,
// "Modern GPU", 2013): a path takes a step past each place, and a step past each item once all of its places are behind it. A tile is
// as many steps as any other, so that it takes much the same time.
#pragma once

#include "../async_copy.cuh"
#include "../config.cuh"
#include "../problem/count.cuh"
#include "../problem/moved.cuh"

namespace lookback {
namespace scan {

// Items, and the places that they have between their offsets.
template <class Number>
struct merge_path {
  const Number* offsets;
  u64 items;
  u64 room;    // places that the outputs have
  u64 places;  // those of them that have an item

  DEVICE merge_path(const lookback_launch& launch, u64 items_)
      : offsets(static_cast<const Number*>(launch.offsets)), items(items_), room(launch.n) {
    const u64 end = begin(items);
    places = end < room ? end : room;
  }

  DEVICE u64 begin(u64 item) const { return memory::load(offsets + item); }

  DEVICE u64 steps() const { return items + places; }

  // By all lanes of a warp: how many items the first steps of the path go past; the others go past places. Each look is at as many
  // items as there are lanes, because each takes a trip to the L2 cache.
  DEVICE u64 items_behind(u64 first_steps) const {
    u64 low = first_steps > places ? first_steps - places : 0;
    u64 high = first_steps < items ? first_steps : items;
    while (low < high) {
      const u64 apart = (high - low + LOOKBACK_WARP_LANES - 1) / LOOKBACK_WARP_LANES;
      const u64 item = low + lane_index() * apart;
      const u32 behind = count_bits(ballot(item < high && begin(item + 1) + item < first_steps));
      const u64 end = low + behind * apart;
      if (behind > 0) low = end - apart + 1;
      if (end < high) high = end;
    }
    return low;
  }
};

// Calls `body` with the path, whose offsets are numbers of 4 or 8 bytes.
template <class Problem, class Body>
DEVICE void with_merge_path(const lookback_launch& launch, Body body) {
  u64 items = launch.segments;
  if constexpr (Problem::counts_items) items = counted_items(launch);
  if (launch.offset_bytes == sizeof(u32)) return body(merge_path<u32>(launch, items));
  body(merge_path<u64>(launch, items));
}

// Where a tile's share of the path begins and ends: so many items and places are behind.
struct path_share {
  u64 item;
  u64 item_end;
  u64 place;
  u64 place_end;

  DEVICE path_share(const u64 (&items_behind)[2], u64 first_steps, u64 last_steps)
      : item(memory::shared_load(items_behind[0])), item_end(memory::shared_load(items_behind[1])), place(first_steps - item),
        place_end(last_steps - item_end) {}

  // Where offsets fall the path would go back.
  DEVICE bool is_right() const { return item <= item_end && place <= place_end; }
};

// Where items begin, for the places of a tile: by how many items they stand behind the tile's first one. 0 where none begins.
template <class Path>
DEVICE void mark_items(const Path& path, const path_share& mine, u32* marks, u32 threads, const lookback_launch& launch) {
  for (u64 item = mine.item + thread_index(); item < mine.item_end; item += threads) {
    // The one behind, which begins where this one ends, in this tile or with the next one.
    const u64 begin = path.begin(item);
    const u64 end = path.begin(item + 1);
    if (begin > end || end > path.room) {
      // Relaxed: any one of those that are wrong; the host reads it when the stream has done its work.
      memory::store_relaxed(&launch.findings->segment, item + 1);
    }
    const bool has_places = item + 1 < path.items && path.begin(item + 2) > end;
    if (has_places && mine.place <= end && end < mine.place_end) {
      // Added to 0, and not stored: of offsets that fall several items may begin at one place.
      memory::shared_add(marks[end - mine.place], static_cast<u32>(item + 1 - mine.item));
    }
  }
}

// The largest of the numbers of a warp's lanes.
DEVICE u32 largest_of_warp(u32 number) {
  LOOKBACK_UNROLL
  for (u32 distance = LOOKBACK_WARP_LANES / 2; distance > 0; distance /= 2) {
    const u32 other = shuffle_index(number, lane_index() ^ distance);
    number = other > number ? other : number;
  }
  return number;
}

// Reads: inputs (of items), outputs, n (places that these have), offsets, segments, offset_bytes, findings; as dynamic shared memory a
// number for each step of a tile. A tile is VT steps a thread. Blocks take tiles in turn, because the plan of the launch does not know how
// many items there are.
template <class Problem, class Config>
DEVICE void expand(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    const u32 steps = config.block_threads * config.vt;
    const u32 warps = config.block_threads / LOOKBACK_WARP_LANES;
    u32* const marks = reinterpret_cast<u32*>(dynamic_shared(0));
    using cuts_type = u64[2];
    using of_warps_type = u32[LOOKBACK_MAXIMUM_BLOCK_THREADS / LOOKBACK_WARP_LANES];
    SHARED(cuts_type, items_behind);
    SHARED(of_warps_type, last_marks);
    for (u32 i = thread_index(); i < steps; i += config.block_threads) memory::shared_store(marks[i], 0u);
    with_merge_path<Problem>(launch, [&](auto path) {
      // Relaxed: as in `mark_items`.
      if (block_index() == 0 && thread_index() == 0 && path.begin(0) != 0) memory::store_relaxed(&launch.findings->segment, 1ull);
      for (u64 first_steps = block_index() * steps; first_steps < path.steps(); first_steps += grid_blocks() * steps) {
        const u64 last_steps = first_steps + steps < path.steps() ? first_steps + steps : path.steps();
        for (u32 cut = warp_index(); cut < 2; cut += warps) {
          const u64 items = path.items_behind(cut == 0 ? first_steps : last_steps);
          if (lane_index() == 0) memory::shared_store(items_behind[cut], items);
        }
        block_barrier();  // the cuts are written, and nothing is marked
        const path_share mine(items_behind, first_steps, last_steps);
        if (mine.is_right()) mark_items(path, mine, marks, config.block_threads, launch);
        // Relaxed: as in `mark_items`.
        else if (thread_index() == 0) memory::store_relaxed(&launch.findings->segment, mine.item + 1);
        block_barrier();  // the items are marked

        // A place belongs to the last item that begins at it or before. Places of a warp follow each other, and so do those of its lanes.
        const u32 first = warp_index() * config.vt * LOOKBACK_WARP_LANES + lane_index();
        u32 last = 0;
        for (u32 i = 0; i < config.vt; ++i) {
          const u32 mark = memory::shared_load(marks[first + i * LOOKBACK_WARP_LANES]);
          last = mark > last ? mark : last;
        }
        last = largest_of_warp(last);
        if (lane_index() == 0) memory::shared_store(last_marks[warp_index()], last);
        block_barrier();  // the last mark of each warp is written
        u32 owner = largest_of_warp(lane_index() < warp_index() ? memory::shared_load(last_marks[lane_index()]) : 0u);
        const u64 places = mine.is_right() ? mine.place_end - mine.place : 0;
        for (u32 i = 0; i < config.vt; ++i) {
          const u32 slot = first + i * LOOKBACK_WARP_LANES;
          const u32 mark = memory::shared_load(marks[slot]);
          memory::shared_store(marks[slot], 0u);
          const u32 marked = ballot(mark != 0);
          const u32 up_to_lane = marked & (0xffffffffu >> (LOOKBACK_WARP_LANES - 1 - lane_index()));
          const u32 begun = shuffle_index(mark, up_to_lane != 0 ? LOOKBACK_WARP_LANES - 1 - leading_zeros(up_to_lane) : 0);
          const u32 own = up_to_lane != 0 ? begun : owner;
          const u64 item = mine.item + own;
          if (slot < places && item < path.items) {
            const u64 place = mine.place + slot;
            typename Problem::inputs items;
            load_elements<0>(launch, item, items);
            store_elements<0>(launch, place, Problem::Own::store(place, item, place - path.begin(item), items));
          }
          owner = shuffle_index(own, LOOKBACK_WARP_LANES - 1);
        }
      }
    });
  }
}

}  // namespace scan
}  // namespace lookback
