// What the segments of a scan are, each of which is scanned by itself: all elements, rows, runs of equal keys, what begins at flags or
// at offsets.
#pragma once

#include "problem.cuh"
#include "segmented.cuh"
#include "vectors.cuh"

namespace lookback {

// How segments are told. `inputs_with` has the array that tells it in front of the others. `place` is what is known of a
// tile whose first index is `first`, and `begins` has a bit for each element of a vector at `offset` at which a segment
// begins. Where the last of those that begin in a stretch is found without a look at each element, as
// `finds_last_begin` says, `last_begin` is its offset, `no_begin` if there is none.
struct one_segment {
  static constexpr bool are_several = false;
  static constexpr bool are_strided = false;
  static constexpr bool are_columns = false;
  static constexpr bool are_rows = false;
  static constexpr bool has_states = false;
  template <class Operator>
  using operator_on = Operator;
  template <class Elements>
  using inputs_with = Elements;
  struct place {
    DEVICE place(const lookback_launch&, i64) {}
  };
  template <u32 width, class Vectors>
  DEVICE static u32 begins(place, int, const Vectors&) { return 0; }
  template <class Elements>
  DEVICE static Elements inputs_of(const Elements& items) { return items; }
  template <class Operator>
  DEVICE static typename Operator::value_type state_of(typename Operator::value_type value, u32) { return value; }
  template <class T>
  DEVICE static T value_of(T state) { return state; }
  template <class T>
  DEVICE static T before(T prefix, T, T) { return prefix; }
};

// Columns, which kernels of their own keep apart; `columns_of_thread` bounds how many neighbouring ones a thread takes, because a
// narrow tensor has no more.
template <u32 columns_of_thread_>
struct columns_of_tensor : one_segment {
  static constexpr bool are_columns = true;
  static constexpr u32 columns_of_thread = columns_of_thread_;
};

// Segments that states tell: what differs from one of all elements.
struct segments_of_states : one_segment {
  static constexpr bool are_several = true;
  static constexpr bool finds_last_begin = false;
  template <class Operator>
  using operator_on = segmented<Operator>;
  template <class Operator>
  DEVICE static marked<typename Operator::value_type> state_of(typename Operator::value_type value, u32 begins) {
    return {value, begins};
  }
  template <class T>
  DEVICE static T value_of(marked<T> state) { return state.value; }
  template <class T>
  DEVICE static marked<T> before(marked<T> prefix, marked<T> item, marked<T> identity) {
    return item.begins != 0 ? marked<T>{identity.value, 1} : prefix;
  }
};

// Segments of arrays whose rows do not lie one behind the other.
template <class Segments>
struct strided : Segments {
  static constexpr bool are_strided = true;
};

// The row that has the element at a place.
DEVICE u64 row_at(const lookback_launch& launch, u64 place) { return quotient(place, launch.columns, launch.columns_inverse); }

// Rows of `launch.columns` elements; with a state before each and behind each, if it has states.
template <bool has_states_>
struct equal_rows : segments_of_states {
  static constexpr bool are_rows = true;
  static constexpr bool has_states = has_states_;
  // A row that begins with a state of its own is looked at where it does.
  static constexpr bool finds_last_begin = !has_states;

  // A tile has less than 2^17 elements, so that whatever is more may be cut to this.
  static constexpr u32 many = 1u << 31;
  DEVICE static u32 cut(u64 count) { return count < many ? static_cast<u32>(count) : many; }

  struct place {
    u32 columns;
    u32 inverse;  // 2^32 / columns, cut
    u32 before;   // elements before the first row that begins in the tile
    u32 pattern;  // of 32 elements, a bit for each that begins a row if the first one does

    DEVICE place(const lookback_launch& launch, i64 first) : columns(cut(launch.columns)), pattern(1) {
      inverse = static_cast<u32>(launch.columns_inverse >> 32);
      LOOKBACK_UNROLL
      for (u32 doubled = 1; doubled < 32; doubled *= 2) {
        if (columns < 32 && doubled * columns < 32) pattern |= pattern << doubled * columns;
      }
      if (first <= 0) {
        before = static_cast<u32>(-first);
        return;
      }
      const u64 index = static_cast<u64>(first);
      const u64 position = index - row_at(launch, index) * launch.columns;
      before = position == 0 ? 0 : cut(launch.columns - position);
    }
  };
  template <u32 width, class Vectors>
  DEVICE static u32 begins(place tile, int offset, const Vectors&) {
    u32 left = tile.before - static_cast<u32>(offset);
    if (static_cast<u32>(offset) > tile.before) {
      const u32 position = position_of(tile, static_cast<u32>(offset));
      left = position == 0 ? 0 : tile.columns - position;
    }
    return left < width ? tile.pattern << left & ((1u << width) - 1) : 0;
  }

  template <class Source>
  DEVICE static u32 last_begin(const Source& source, u32 offset, u32 count) {
    const place tile = source.segments;
    const u32 last = offset + count - 1;
    if (last < tile.before) return no_begin;
    const u32 position = position_of(tile, last);
    return position < count ? last - position : no_begin;
  }

 private:
  // Elements before it in its row, which begins in the tile.
  DEVICE static u32 position_of(place tile, u32 offset) {
    const u32 index = offset - tile.before;
    const u32 position = index - static_cast<u32>(static_cast<u64>(index) * tile.inverse >> 32) * tile.columns;
    return position >= tile.columns ? position - tile.columns : position;
  }
};

// What the elements of one segment are, where the warp knows that they are of one: nothing is marked.
template <class Segments>
struct within_segment : one_segment {
  static constexpr bool are_several = true;
  static constexpr bool are_strided = Segments::are_strided;
  template <class Elements>
  using inputs_with = typename Segments::template inputs_with<Elements>;
  template <class Elements>
  DEVICE static auto inputs_of(const Elements& items) { return Segments::inputs_of(items); }
};

// An array in front of the others tells where segments begin.
template <class First, class Elements>
struct added;
template <class First, class... Types>
struct added<First, elements<Types...>> {
  using type = elements<First, Types...>;
};

template <class Array>
struct told_by_array : segments_of_states {
  template <class Elements>
  using inputs_with = typename added<Array, Elements>::type;
  template <class... Types>
  DEVICE static elements<Types...> inputs_of(const elements<Array, Types...>& items) { return items.rest; }
};

// Runs of equal keys. Nothing is before index 0.
template <class Key>
struct equal_keys : told_by_array<with_previous<Key>> {
  struct place {
    u32 zero;  // the offset of index 0
    DEVICE place(const lookback_launch&, i64 first) : zero(first <= 0 ? static_cast<u32>(-first) : ~0u) {}
  };
  template <u32 width, class Vectors>
  DEVICE static u32 begins(place tile, int offset, const Vectors& vectors) {
    u32 bits = static_cast<u32>(offset) == tile.zero ? 1 : 0;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) set_bit_if(bits, j, vectors.first[j].own != vectors.first[j].previous);
    return bits;
  }
};

// A byte that is not 0 where a segment begins.
struct head_flags : told_by_array<u8> {
  struct place {
    DEVICE place(const lookback_launch&, i64) {}
  };
  template <u32 width, class Vectors>
  DEVICE static u32 begins(place, int, const Vectors& vectors) {
    u32 bits = 0;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) set_bit_if(bits, j, vectors.first[j] != 0);
    return bits;
  }
};

// Segments between offsets, of which `mark_segments` has made bits.
struct by_offsets : told_by_array<begin_bit> {
  static constexpr bool finds_last_begin = true;
  struct place {
    DEVICE place(const lookback_launch&, i64) {}
  };
  template <u32 width, class Vectors>
  DEVICE static u32 begins(place, int, const Vectors& vectors) {
    u32 bits = 0;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) bits |= vectors.first[j].begins << j;
    return bits;
  }

  template <class Source>
  DEVICE static u32 last_begin(const Source& source, u32 offset, u32 count) {
    u32 last = no_begin;
    for (u32 from = 0; from < count; from += LOOKBACK_WARP_LANES * 32) {
      const u32 mine = from + lane_index() * 32;
      const u32 bits = mine < count ? source.template bits<0>(offset + mine) : 0;
      const u32 lanes = ballot(bits != 0);
      if (lanes == 0) continue;
      const u32 lane = 31 - leading_zeros(lanes);
      last = offset + from + lane * 32 + 31 - leading_zeros(shuffle_index(bits, lane));
    }
    return last;
  }
};

}  // namespace lookback
