// Where the elements of a tile are read: in the arrays, or in the stages of look-ahead.
//
// No array need be aligned as another one is: a tile whose vectors are not all aligned is moved element by element.
#pragma once

#include "../async_copy.cuh"
#include "../config.cuh"
#include "ranked_items.cuh"
#include "vectors.cuh"

namespace lookback {

// What a source of a tile's elements knows, wherever they lie: of `tile_elements` from index `first` on those are there
// whose indices are among the first `count`, and which are no later tile's (`tile::step`, which is whole vectors).
template <class Problem>
struct source_of_tile {
  static constexpr bool is_backward = Problem::is_backward;
  const lookback_launch& launch;
  i64 first;
  u64 count;
  u32 tile_elements;
  u32 step;
  bool is_whole;
  typename Problem::segments_place segments;

  DEVICE source_of_tile(const lookback_launch& launch_, i64 first_, u32 tile_elements_, u64 count_, u32 step_)
      : launch(launch_),
        first(first_),
        count(count_),
        tile_elements(tile_elements_),
        step(step_),
        is_whole(first_ >= 0 && static_cast<u64>(first_) + step_ <= count_),
        segments(launch_, first_) {
    const u64 end = static_cast<u64>(first) + step;
    if (ends_early() && end < count) count = end;
  }

  // Whether a later tile's elements follow before its room ends; and whether these stand so many elements from its first.
  DEVICE bool ends_early() const { return step != tile_elements; }
  DEVICE bool is_beyond(int offset) const { return static_cast<u32>(offset) >= step; }
  // The offset behind the last that is there.
  DEVICE u32 end() const {
    const i64 left = static_cast<i64>(count) - first;
    return left < static_cast<i64>(tile_elements) ? left < 0 ? 0 : static_cast<u32>(left) : tile_elements;
  }

  DEVICE bool has(int offset) const {
    const i64 index = first + offset;
    return index >= 0 && static_cast<u64>(index) < count;
  }

  // The offset of index 0, or none.
  DEVICE u32 zero_offset() const { return first <= 0 ? static_cast<u32>(-first) : ~0u; }

  // Whether vectors lie side by side in an array as their elements do in the tile.
  template <u32 number, u32 width>
  DEVICE bool are_vectors() const { return are_vectors_of_rows<Problem, width>(launch.strides, launch.strides.inputs[number]); }

  // Where the bits of the tile begin.
  DEVICE u64 first_bit() const { return static_cast<u64>(first + static_cast<i64>(LOOKBACK_LEADING_BITS)); }

  // Of `width` elements from `offset` on the one at the lowest place, counted from the tile's lowest place.
  DEVICE int lowest(int offset, int width) const { return is_backward ? static_cast<int>(tile_elements) - offset - width : offset; }
};

// The arrays where the user has them.
template <class Problem>
struct global_arrays : source_of_tile<Problem> {
  using memory_kind = in_global_memory;
  using source_of_tile<Problem>::source_of_tile;

  template <u32 number, class T>
  DEVICE const T* array(int offset, int width) const {
    const i64 tile_place = place_of<Problem::is_backward>(this->launch.n, this->first, this->tile_elements);
    const lookback_strides& strides = this->launch.strides;
    return static_cast<const T*>(this->launch.inputs[number]) +
           in_memory<Problem>(strides, strides.inputs[number], tile_place + this->lowest(offset, width));
  }

  template <u32 number>
  DEVICE u32 bits(int offset) const {
    const u32* const words = static_cast<const u32*>(this->launch.inputs[number]);
    return bits_at(this->first_bit() + static_cast<u64>(offset), [=](u64 word) { return memory::load(words + word); });
  }
};

// By all lanes of a warp: elements that follow each other are on their way to shared memory, where they lie as they do in lines
// of 16 bytes. Whole lines are copied, the elements beside them are loaded one by one.
template <class T>
DEVICE void fetch_stretch(T* to, const T* from, u32 size, copy_barrier& landed) {
  constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(T);
  static_assert(line * sizeof(T) == LOOKBACK_VECTOR_BYTES, "lines are whole elements");
  const u32 misaligned = static_cast<u32>(reinterpret_cast<u64>(from) % LOOKBACK_VECTOR_BYTES / sizeof(T));
  const u32 head = (line - misaligned) % line;
  const bool has_lines = size >= head + line;
  const u32 copied = has_lines ? (size - head) / line * line : 0;
  copy_before_arrival(to + head, from + head, copied, landed);
  const u32 lane = lane_index();
  const u32 tail = has_lines ? head + copied : 0;
  if (has_lines && lane < head) memory::shared_store(to[lane], memory::load(from + lane));
  if (tail + lane < size) memory::shared_store(to[tail + lane], memory::load(from + tail + lane));
}

// The stages of look-ahead: of each array a tile, as many elements as there are between it and the lines of the cache in
// which it lies, and one line before and behind it for the elements that are read with the first and the last one.
//
// A tile lies in its stage as it does in lines of the cache, so that copies are whole lines of 16 bytes.
template <class Problem>
struct staged_arrays : source_of_tile<Problem> {
  using memory_kind = in_shared_memory;
  using source_of_tile<Problem>::is_backward;
  u8* stage;
  int shift;  // of what is asked for, from the tile's first
  // Bytes from the stage to the lowest place of the tile, for each array.
  u32 before[count_of<typename Problem::inputs>::value];

  DEVICE staged_arrays(const lookback_launch& launch, u8* stage_, u32 tile_elements, i64 first, u32 mode)
      : source_of_tile<Problem>(launch, first, tile_elements, Problem::readable(launch, mode), tile_elements), stage(stage_), shift(0) {
    place_each<0>(static_cast<typename Problem::inputs*>(nullptr), place_of<is_backward>(launch.n, first, tile_elements));
  }

  // What may be written where nobody reads the tile any more.
  DEVICE u8* free_room() const { return stage; }
  DEVICE u32 free_bytes() const { return bytes(this->tile_elements); }

  // Bytes of an array's part of a stage.
  DEVICE_CONSTEXPR static u32 part_bytes(u32 tile_elements, u32 element_bytes) {
    const u32 bytes = tile_elements * element_bytes;
    return (bytes + LOOKBACK_CACHE_LINE_BYTES - 1) / LOOKBACK_CACHE_LINE_BYTES * LOOKBACK_CACHE_LINE_BYTES +
           3 * LOOKBACK_CACHE_LINE_BYTES;
  }

  template <u32 number, class First, class... Rest>
  DEVICE_CONSTEXPR static u32 bytes_before(u32 tile_elements, elements<First, Rest...>*) {
    if constexpr (number == 0) {
      return 0;
    } else {
      return part_bytes(tile_elements / array_of<First>::together, sizeof(typename array_of<First>::type)) +
             bytes_before<number - 1>(tile_elements, static_cast<elements<Rest...>*>(nullptr));
    }
  }
  template <u32 number>
  DEVICE_CONSTEXPR static u32 bytes_before(u32, elements<>*) { return 0; }
  template <u32 number>
  DEVICE_CONSTEXPR static u32 bytes_before(u32 tile_elements) {
    return bytes_before<number>(tile_elements, static_cast<typename Problem::inputs*>(nullptr));
  }

  // Of a stage.
  DEVICE_CONSTEXPR static u32 bytes(u32 tile_elements) { return bytes_before<LOOKBACK_MAXIMUM_ARRAYS + 1>(tile_elements); }

  DEVICE staged_arrays operator+(int further) const {
    staged_arrays moved = *this;
    moved.shift += further;
    return moved;
  }

  template <class Tile>
  DEVICE void load_into(Tile& tile) const { Problem::load_items(tile, *this); }

  // The combination of a vector; of one that is cut counts what stands at offset `counted` and behind it.
  template <u32 width, bool is_cut = false>
  DEVICE typename Problem::state_type combined([[maybe_unused]] int counted = 0) const {
    using Operator = typename Problem::operator_type;
    typename Problem::own_state values[width];
    const u32 begins = Problem::template is_simple<width>(*this) ? Problem::template load_values<true>(*this, shift, values)
                                                                 : Problem::template load_values<false>(*this, shift, values);
    if constexpr (has_lengths<Problem>()) {
      u32 bits = 0;
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) set_bit_if(bits, j, values[j].groups != 0);
      return last_and_count_of<typename Problem::state_type>(bits, this->first + shift);
    }
    auto value = Operator::identity();
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      if constexpr (is_cut) {
        if (shift + static_cast<int>(j) < counted) continue;
      }
      const auto state = Problem::state_of(values[j], begins >> j & 1);
      value = j == 0 ? state : combine<Operator>(value, state);
    }
    return value;
  }

  template <u32 number, class T>
  DEVICE T* array(int offset, int width) const {
    return reinterpret_cast<T*>(stage + before[number]) + this->lowest(offset, width);
  }

  // The lowest of `width` elements from `offset` on.
  template <u32 number>
  DEVICE u8* room(int offset, int width) const {
    return stage + before[number] + this->lowest(offset, width) * static_cast<int>(element_bytes<number>(static_cast<typename Problem::inputs*>(nullptr)));
  }
  template <u32 number, class First, class... Rest>
  DEVICE_CONSTEXPR static u32 element_bytes(elements<First, Rest...>*) {
    if constexpr (number == 0) {
      return sizeof(typename array_of<First>::type);
    } else {
      return element_bytes<number - 1>(static_cast<elements<Rest...>*>(nullptr));
    }
  }

  template <u32 number>
  DEVICE u32 bits(int offset) const {
    const u32* const words = reinterpret_cast<const u32*>(stage + before[number]);
    return bits_at(this->first_bit() % LOOKBACK_LEADING_BITS + static_cast<u64>(offset),
                   [=](u64 word) { return memory::shared_load(words[word]); });
  }

  // By all lanes of a warp: what the arrays have of the tile is on its way to the stage. One arrival at `landed` is for it, and
  // for what the lanes have stored there themselves.
  DEVICE void fetch(copy_barrier& landed) const {
    fetch_each<0>(static_cast<typename Problem::inputs*>(nullptr), landed);
    copy_and_arrive<u8>(stage, stage, 0, landed);
  }

 private:
  template <u32 number>
  DEVICE void place_each(elements<>*, i64) {}
  template <u32 number, class First, class... Rest>
  DEVICE void place_each(elements<First, Rest...>*, i64 tile_place) {
    using T = typename array_of<First>::type;
    before[number] = bytes_before<number>(this->tile_elements);
    if constexpr (array_of<First>::together == 1) {
      const u64 address = reinterpret_cast<u64>(this->launch.inputs[number]) + static_cast<u64>(tile_place) * sizeof(T);
      before[number] += LOOKBACK_CACHE_LINE_BYTES + static_cast<u32>(address % LOOKBACK_CACHE_LINE_BYTES);
    }
    place_each<number + 1>(static_cast<elements<Rest...>*>(nullptr), tile_place);
  }

  template <u32 number>
  DEVICE void fetch_each(elements<>*, copy_barrier&) const {}
  template <u32 number, class First, class... Rest>
  DEVICE void fetch_each(elements<First, Rest...>*, copy_barrier& landed) const {
    if constexpr (array_of<First>::together == 1) {
      fetch_array<number, First>(landed);
    } else {
      fetch_bits<number>(landed);
    }
    fetch_each<number + 1>(static_cast<elements<Rest...>*>(nullptr), landed);
  }

  // All lines of 16 bytes that have bits of the tile, and the word behind the one of its last bit, which is read beside that
  // one; there is room in front and behind.
  template <u32 number>
  DEVICE void fetch_bits(copy_barrier& landed) const {
    constexpr u32 line_bits = 8 * LOOKBACK_VECTOR_BYTES;
    const u64 line = this->first_bit() / line_bits;
    const u64 end = (this->first_bit() + this->tile_elements + 31 + line_bits - 1) / line_bits;
    const u32 words = static_cast<u32>(end - line) * (line_bits / 32);
    const u32* const from = static_cast<const u32*>(this->launch.inputs[number]) + line * (line_bits / 32);
    copy_before_arrival(reinterpret_cast<u32*>(stage + before[number]), from, words, landed);
  }

  template <u32 number, class First>
  DEVICE void fetch_array(copy_barrier& landed) const {
    using T = typename array_of<First>::type;
    // The places from `begin` to `end`, with the elements beside the tile.
    constexpr i64 lower = is_backward ? array_of<First>::behind : array_of<First>::before;
    constexpr i64 upper = is_backward ? array_of<First>::before : array_of<First>::behind;
    const i64 n = static_cast<i64>(this->launch.n);
    const i64 count = static_cast<i64>(this->count);
    const i64 tile_place = place_of<is_backward>(this->launch.n, this->first, this->tile_elements);
    const i64 first_place = is_backward ? n - count : 0;
    i64 begin = tile_place - lower;
    i64 end = tile_place + static_cast<i64>(this->tile_elements) + upper;
    if (begin < first_place) begin = first_place;
    if (end > first_place + count) end = first_place + count;
    if (begin < end) {
      const T* const from = static_cast<const T*>(this->launch.inputs[number]) + begin;
      T* const to = reinterpret_cast<T*>(stage + before[number]) + static_cast<int>(begin - tile_place);
      fetch_stretch(to, from, static_cast<u32>(end - begin), landed);
    }
  }
};

// The stages of a block, `stages` of them.
template <class Problem>
struct array_stages {
  static constexpr u32 skipped = 0;
  const lookback_launch& launch;
  u8* first;
  u32 tile_elements;
  u32 mode;

  // In a block's dynamic shared memory.
  template <class Config>
  DEVICE static array_stages make(Config config, const lookback_launch& launch) {
    const u32 tile_elements = config.block_threads * config.vt;
    return {launch, dynamic_shared(config.stages * staged_arrays<Problem>::bytes(tile_elements)), tile_elements, config.mode};
  }

  // The same stages to another problem of the same arrays.
  template <class Other>
  DEVICE array_stages<Other> as() const { return {launch, first, tile_elements, mode}; }

  DEVICE staged_arrays<Problem> at(u32 stage, u64 tile) const {
    const i64 tile_first = static_cast<i64>(tile * tile_elements) - static_cast<i64>(launch.lead);
    u8* const begin = first + static_cast<u64>(stage) * staged_arrays<Problem>::bytes(tile_elements);
    return staged_arrays<Problem>(launch, begin, tile_elements, tile_first, mode);
  }
};

}  // namespace lookback
