// The scan of what a user has defined: elements of several arrays become a state, states are combined, and a state becomes
// elements of several other arrays; from either end, in one piece or in segments, from an initial state.
//
// `Own` is what the user's text becomes (`src/element/definition.rs`):
//
//   operator_type                     how states are combined
//   inputs   outputs                  `elements` of the arrays' types
//   beside_inputs                     those whose widths bound accesses as the inputs' do: outputs that are stored in vectors, and
//                                     those that say how wide a state is
//   value_type load(u64 i, inputs)    the state of place i
//   outputs store(u64 i, value_type)  what is stored at place i
//
// Offsets, counted from a tile's first element, are signed: what is added to a signed number does not wrap around, so that
// the compiler adds it to an address where it is used.
//
// A place is counted in memory; an index is counted from where the scan begins, at the last place if it is reversed. Where the
// rows of arrays do not lie one behind the other, places are counted as if they did (`strided`). No array need be aligned as
// another one is: a tile whose vectors are not all aligned is moved element by element.
#pragma once

#include "../async_copy.cuh"
#include "../config.cuh"
#include "../halves.cuh"
#include "elements.cuh"
#include "marked_items.cuh"
#include "narrow.cuh"
#include "problem.cuh"
#include "ranked_items.cuh"

namespace lookback {

using i64 = long long;

// Whether a segment begins at an element. Such an array has a bit for each, in the order of the scan, in words of 32.
struct begin_bit {
  u32 begins;
};

// What an array of such elements holds, how many of them are in one, and how many more are read before and behind one.
template <class T>
struct array_of {
  using type = T;
  enum : u32 { together = 1, before = 0, behind = 0 };
};
template <class T>
struct array_of<with_previous<T>> {
  using type = T;
  enum : u32 { together = 1, before = 1, behind = 0 };
};
template <class T>
struct array_of<in_run<T>> {
  using type = T;
  enum : u32 { together = 1, before = 1, behind = 1 };
};
template <>
struct array_of<begin_bit> {
  using type = u32;
  enum : u32 { together = 32, before = 0, behind = 0 };
};

// 32 bits from `bit` on, read by `load(word)`.
template <class Load>
DEVICE u32 bits_at(u64 bit, Load load) {
  const u64 word = bit / 32;
  const u32 shift = static_cast<u32>(bit % 32);
  const u32 low = load(word) >> shift;
  return shift == 0 ? low : low | load(word + 1) << (32 - shift);
}

// The two places where arrays are read.
struct in_global_memory {
  template <class T>
  DEVICE static T load(const T* from) { return memory::load(from); }
  template <u32 width, class T>
  DEVICE static void load_vector(const T* from, T (&vector)[width]) { memory::load_vector<width>(from, vector); }
};
struct in_shared_memory {
  template <class T>
  DEVICE static T load(const T* from) { return memory::shared_load(*from); }
  template <u32 width, class T>
  DEVICE static void load_vector(const T* from, T (&vector)[width]) {
    memory::shared_load_vector<width>(from, vector);
  }
};

// Elements of one access to a run of `width`.
template <u32 width, class T>
DEVICE_CONSTEXPR u32 piece_of() { return access_width<T>(width); }

template <u32 width, class T>
DEVICE bool is_aligned_vector(const T* first) { return reinterpret_cast<u64>(first) % (piece_of<width, T>() * sizeof(T)) == 0; }

// Calls `body` with each piece of a run and the place of its first element.
template <u32 width, class T, class Body>
DEVICE void in_pieces(const T (&run)[width], Body body) {
  constexpr u32 elements = piece_of<width, T>();
  LOOKBACK_UNROLL
  for (u32 from = 0; from < width; from += elements) {
    T piece[elements];
    LOOKBACK_UNROLL
    for (u32 j = 0; j < elements; ++j) piece[j] = run[from + j];
    body(from, piece);
  }
}

// Turns a vector round if the scan goes the other way than memory.
template <bool is_reversed, u32 width, class T>
DEVICE void turn(T (&vector)[width]) {
  if constexpr (is_reversed) {
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width / 2; ++j) {
      const T other = vector[j];
      vector[j] = vector[width - 1 - j];
      vector[width - 1 - j] = other;
    }
  }
}

// The first of the places of the indices `index` to `index + count - 1` of `n`.
template <bool is_reversed>
DEVICE i64 place_of(u64 n, i64 index, u32 count) {
  return is_reversed ? static_cast<i64>(n) - index - static_cast<i64>(count) : index;
}

// A number by a divisor. `inverse` is 2^64 by the divisor, cut, so that what it gives is one too small at most.
DEVICE u64 quotient(u64 number, u64 divisor, u64 inverse) {
  const u64 times = multiply_high(number, inverse);
  return number - times * divisor < divisor ? times : times + 1;
}

// Where the element of a place lies in an array whose rows begin `stride` elements apart.
template <class Problem>
DEVICE i64 in_memory(const lookback_strides& strides, u64 stride, i64 place) {
  if constexpr (!Problem::segments_type::are_strided) return place;
  const u64 row = quotient(static_cast<u64>(place), strides.row_elements, strides.inverse);
  return place + static_cast<i64>(row * (stride - strides.row_elements));
}

// Whether none of the vectors of such an array, the first of which is aligned, reaches from one row into the next.
template <class Problem, u32 width>
DEVICE bool are_vectors_of_rows(const lookback_strides& strides, u64 stride) {
  if constexpr (!Problem::segments_type::are_strided) return true;
  return strides.row_elements % width == 0 && stride % width == 0;
}

// A vector of each of several arrays; `number` is that of the first one among all.
template <u32 number, u32 width, class... Types>
struct vectors {
  template <class Source>
  DEVICE static bool are_loadable(const Source&) { return true; }
  template <class Source>
  DEVICE void load(const Source&, int) {}
  template <class Problem>
  DEVICE static bool are_storable(const lookback_launch&, i64) { return true; }
  template <class Problem>
  DEVICE void store(const lookback_launch&, i64) {}
  template <class Part>
  DEVICE void store_in_stage(const Part&, int) {}
  template <class Part>
  DEVICE static bool have_vectors(const Part&) { return true; }
  template <class Part>
  DEVICE static void copy_from_stage(const Part&) {}
  DEVICE elements<> get(u32) const { return {}; }
  DEVICE void set(u32, elements<>) {}
};
template <u32 number, u32 width, class First, class... Rest>
struct vectors<number, width, First, Rest...> {
  First first[width];
  vectors<number + 1, width, Rest...> rest;

  // Whether every array has the vectors of a tile where one access reads them; if not, elements are moved one by one.
  template <class Source>
  DEVICE static bool are_loadable(const Source& source) {
    return is_loadable<First>(source) && vectors<number + 1, width, Rest...>::are_loadable(source);
  }

  template <class Source>
  DEVICE void load(const Source& source, int offset) {
    load_array(source, offset, first);
    rest.load(source, offset);
  }

  // The same where they are stored, the first one at `index`.
  template <class Problem>
  DEVICE static bool are_storable(const lookback_launch& launch, i64 index) {
    return are_vectors_of_rows<Problem, width>(launch.strides, launch.strides.outputs[number]) &&
           is_aligned_vector<width>(place_in<Problem>(launch, index)) &&
           vectors<number + 1, width, Rest...>::template are_storable<Problem>(launch, index);
  }

  // All of them lie in the array.
  template <class Problem>
  DEVICE void store(const lookback_launch& launch, i64 index) {
    First* const to = place_in<Problem>(launch, index);
    turn<Problem::is_backward>(first);
    in_pieces(first, [&](u32 from, const auto& piece) { memory::store_vector_unsplit<piece_of<width, First>()>(to + from, piece); });
    rest.template store<Problem>(launch, index);
  }

  // The same into the stage, where the warp's part of a tile has room for it, the first one at `offset` in that part.
  template <class Part>
  DEVICE void store_in_stage(const Part& part, int offset) {
    First* const to = part.template stage<number, First>() + part.lowest(offset, width);
    turn<Part::is_backward>(first);
    in_pieces(first, [&](u32 from, const auto& piece) { memory::shared_store_vector<piece_of<width, First>()>(to + from, piece); });
    rest.store_in_stage(part, offset);
  }

  // Whether the part begins with a vector both there and in the array.
  template <class Part>
  DEVICE static bool have_vectors(const Part& part) {
    constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(First);
    return is_aligned_vector<line>(part.template stage<number, First>()) && is_aligned_vector<line>(part.template array<number, First>()) &&
           vectors<number + 1, width, Rest...>::have_vectors(part);
  }

  // From there to the array, lanes side by side.
  template <class Part>
  DEVICE static void copy_from_stage(const Part& part) {
    constexpr u32 line = LOOKBACK_VECTOR_BYTES / sizeof(First);
    const First* const from = part.template stage<number, First>();
    First* const to = part.template array<number, First>();
    LOOKBACK_UNROLL
    for (u32 first_of_row = 0; first_of_row < part.elements; first_of_row += LOOKBACK_WARP_LANES * line) {
      const u32 at = first_of_row + lane_index() * line;
      if (at >= part.elements) continue;
      First items[line];
      memory::shared_load_vector<line>(from + at, items);
      memory::store_vector_unsplit<line>(to + at, items);
    }
    vectors<number + 1, width, Rest...>::copy_from_stage(part);
  }

  DEVICE elements<First, Rest...> get(u32 j) const { return {first[j], rest.get(j)}; }
  DEVICE void set(u32 j, elements<First, Rest...> items) {
    first[j] = items.first;
    rest.set(j, items.rest);
  }

 private:
  template <class Problem>
  DEVICE static First* place_in(const lookback_launch& launch, i64 index) {
    const i64 place = place_of<Problem::is_backward>(launch.n, index, width);
    return static_cast<First*>(launch.outputs[number]) + in_memory<Problem>(launch.strides, launch.strides.outputs[number], place);
  }

  template <class Element, class Source>
  DEVICE static bool is_loadable(const Source& source) {
    if constexpr (array_of<Element>::together > 1) return true;
    // Vectors are whole vectors apart.
    return source.template are_vectors<number, width>() &&
           is_aligned_vector<width>(source.template array<number, typename array_of<Element>::type>(0, width));
  }

  template <class Source, class T>
  DEVICE static void load_array(const Source& source, int offset, T (&vector)[width]) {
    constexpr u32 piece = piece_of<width, T>();
    const T* const first_place = source.template array<number, T>(offset, width);
    LOOKBACK_UNROLL
    for (u32 from = 0; from < width; from += piece) {
      T part[piece];
      Source::memory_kind::template load_vector<piece>(first_place + from, part);
      LOOKBACK_UNROLL
      for (u32 j = 0; j < piece; ++j) vector[from + j] = part[j];
    }
    turn<Source::is_backward>(vector);
  }

  template <class Source>
  DEVICE static void load_array(const Source& source, int offset, begin_bit (&vector)[width]) {
    const u32 bits = source.template bits<number>(offset);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) vector[j].begins = bits >> j & 1;
  }

  // The one before index 0 is that of index 0 itself.
  template <class Source, class T>
  DEVICE static void load_array(const Source& source, int offset, with_previous<T> (&vector)[width]) {
    T own[width];
    load_array(source, offset, own);
    const bool is_first = static_cast<u32>(offset) == source.zero_offset();
    const T previous = is_first ? own[0] : load_one<T>(source, offset - 1);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) vector[j] = {j == 0 ? previous : own[j - 1], own[j]};
  }

  template <class Source, class T>
  DEVICE static void load_array(const Source& source, int offset, in_run<T> (&vector)[width]) {
    constexpr int behind = static_cast<int>(width);
    T own[width];
    load_array(source, offset, own);
    const bool is_first = static_cast<u32>(offset) == source.zero_offset();
    const bool is_last = !source.has(offset + behind);
    const bool begins = is_first || load_one<T>(source, offset - 1) != own[0];
    const bool ends = is_last || load_one<T>(source, offset + behind) != own[width - 1];
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      vector[j].own = own[j];
      vector[j].begins = j == 0 ? begins : own[j] != own[j - 1];
      vector[j].ends = j + 1 == width ? ends : own[j] != own[j + 1];
    }
  }

  template <class T, class Source>
  DEVICE static T load_one(const Source& source, int offset) {
    return Source::memory_kind::load(source.template array<number, T>(offset, 1));
  }
};

template <class Elements>
struct count_of;
template <class... Types>
struct count_of<elements<Types...>> {
  enum : u32 { value = sizeof...(Types) };
};

// Whether there is room for each element of the first ones where the element of the same number of the others lies.
template <class First, class Second>
struct fit_into {
  enum : bool { value = false };
};
template <class... Types>
struct fit_into<elements<>, elements<Types...>> {
  enum : bool { value = true };
};
template <class First, class... Rest, class Room, class... Rooms>
struct fit_into<elements<First, Rest...>, elements<Room, Rooms...>> {
  enum : bool { value = sizeof(First) <= sizeof(Room) && fit_into<elements<Rest...>, elements<Rooms...>>::value };
};

template <u32 width, class Elements>
struct vectors_of;
template <u32 width, class... Types>
struct vectors_of<width, elements<Types...>> {
  using type = vectors<0, width, Types...>;
};

// The type with the most bytes: accesses have as many elements as fit into 16 bytes of it.
template <class Widest, class... Types>
struct widest_of {
  using type = Widest;
};
template <class Widest, class First, class... Rest>
struct widest_of<Widest, First, Rest...> {
  // Words of bits are read one by one.
  using element = typename choice<(array_of<First>::together > 1), u8, typename array_of<First>::type>::type;
  using type = typename widest_of<typename choice<(sizeof(element) > sizeof(Widest)), element, Widest>::type, Rest...>::type;
};
template <class Widest, class Elements>
struct widest_in;
template <class Widest, class... Types>
struct widest_in<Widest, elements<Types...>> {
  using type = typename widest_of<Widest, Types...>::type;
};

// Where a segment begins, the scan begins anew.
template <class T>
struct alignas(sizeof(T) <= 4 ? 8 : 16) marked {
  T value;
  u32 begins;  // not 0 if one does, at the item or among those that are combined
};

// The mark stands right behind the value.
template <class T>
struct used_bytes<marked<T>> {
  enum : u32 { value = (sizeof(T) + sizeof(u32) - 1) / sizeof(u32) * sizeof(u32) + sizeof(u32) };
};

template <class Operator>
struct segmented {
  using value_type = marked<typename Operator::value_type>;
  static constexpr bool is_commutative = false;
  static constexpr bool is_exactly_undone = false;
  DEVICE static value_type identity() { return {Operator::identity(), 0}; }
  DEVICE static value_type combine(value_type a, value_type b) {
    return {b.begins != 0 ? b.value : Operator::combine(a.value, b.value), a.begins | b.begins};
  }
  DEVICE static value_type without(value_type total, value_type) { return total; }
};

template <class Operator>
struct is_reproducible<segmented<Operator>> : is_reproducible<Operator> {};

// Scans and reductions of a warp: where segments begin is told by one ballot, so that values alone are exchanged.
template <class Operator>
struct segments<segmented<Operator>> {
  static constexpr bool exist = true;
  using T = marked<typename Operator::value_type>;

  // As `shuffle_scan_each`.
  template <u32 capacity>
  DEVICE static void scan_each(T (&values)[capacity], u32 count, T (&totals)[capacity]) {
    using own = typename Operator::value_type;
    const u32 lane = lane_index();
    own scanned[capacity];
    u32 marks[capacity];
    u32 reach[capacity];  // lanes to the left whose values belong to this lane's segment
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i >= count) continue;
      scanned[i] = values[i].value;
      marks[i] = ballot(values[i].begins != 0);
      const u32 up_to_lane = marks[i] << (LOOKBACK_WARP_LANES - 1 - lane);
      reach[i] = up_to_lane == 0 ? lane : leading_zeros(up_to_lane);
    }
    LOOKBACK_UNROLL
    for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
      own left[capacity];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < capacity; ++i) {
        if (i < count) left[i] = scanned[i];
      }
      shuffle_up_each(left, count, distance);
      LOOKBACK_UNROLL
      for (u32 i = 0; i < capacity; ++i) {
        if (i < count && distance <= reach[i]) scanned[i] = combine<Operator>(left[i], scanned[i]);
      }
    }
    own last[capacity];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i < count) last[i] = scanned[i];
    }
    shuffle_index_each(last, count, LOOKBACK_WARP_LANES - 1);
    shuffle_up_each(scanned, count, 1);
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i >= count) continue;
      const u32 left_of_lane = marks[i] & ((1u << lane) - 1);
      values[i] = {lane == 0 ? Operator::identity() : scanned[i], left_of_lane != 0 ? 1u : 0u};
      totals[i] = {last[i], marks[i] != 0 ? 1u : 0u};
    }
  }

  // As `warp_reduce_each`: what stands left of the last begin does not count.
  template <u32 capacity>
  DEVICE static void reduce_each(T (&values)[capacity], u32 count) {
    using own = typename Operator::value_type;
    const u32 lane = lane_index();
    own reduced[capacity];
    u32 marks[capacity];
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i >= count) continue;
      marks[i] = ballot(values[i].begins != 0);
      // The lane of the last begin is the first that counts.
      const bool is_left = marks[i] >> lane > 1;
      reduced[i] = is_left ? Operator::identity() : values[i].value;
    }
    LOOKBACK_UNROLL
    for (u32 distance = 1; distance < LOOKBACK_WARP_LANES; distance *= 2) {
      own right[capacity];
      LOOKBACK_UNROLL
      for (u32 i = 0; i < capacity; ++i) {
        if (i < count) right[i] = reduced[i];
      }
      shuffle_down_each(right, count, distance);
      LOOKBACK_UNROLL
      for (u32 i = 0; i < capacity; ++i) {
        if (i >= count || lane + distance >= LOOKBACK_WARP_LANES) continue;
        reduced[i] = combine<Operator>(reduced[i], right[i]);
      }
    }
    LOOKBACK_UNROLL
    for (u32 i = 0; i < capacity; ++i) {
      if (i < count) values[i] = {reduced[i], marks[i] != 0 ? 1u : 0u};
    }
  }
};

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

struct segments_of_states {
  static constexpr bool are_several = true;
  static constexpr bool are_strided = false;
  static constexpr bool are_columns = false;
  static constexpr bool are_rows = false;
  static constexpr bool has_states = false;
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
  template <class Elements>
  using inputs_with = Elements;

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
  template <class Elements>
  DEVICE static Elements inputs_of(const Elements& items) { return items; }

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
struct within_segment {
  static constexpr bool are_several = true;
  static constexpr bool are_strided = Segments::are_strided;
  static constexpr bool are_rows = false;
  static constexpr bool has_states = false;
  template <class Operator>
  using operator_on = Operator;
  template <class Elements>
  using inputs_with = typename Segments::template inputs_with<Elements>;
  using place = one_segment::place;
  template <u32 width, class Vectors>
  DEVICE static u32 begins(place, int, const Vectors&) { return 0; }
  template <class Elements>
  DEVICE static auto inputs_of(const Elements& items) { return Segments::inputs_of(items); }
  template <class Operator>
  DEVICE static typename Operator::value_type state_of(typename Operator::value_type value, u32) { return value; }
  template <class T>
  DEVICE static T value_of(T state) { return state; }
  template <class T>
  DEVICE static T before(T prefix, T, T) { return prefix; }
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

template <class Problem>
struct array_stages;

// What is done with an element that is loaded, where its state is all that matters.
struct nothing_noted {
  template <class... Anything>
  DEVICE void operator()(const Anything&...) const {}
};

template <class Own, class Segments, bool is_reversed, bool is_counted_ = false, bool is_reproducible_ = false>
struct defined {
  using stages_type = array_stages<defined>;
  using own_type = Own;
  using segments_place = typename Segments::place;
  static constexpr bool has_arrays = true;
  static constexpr bool is_backward = is_reversed;
  using inputs = typename Segments::template inputs_with<typename Own::inputs>;
  using outputs = typename Own::outputs;
  using own_operator = typename Own::operator_type;
  using combining = typename choice<is_reproducible_, operators::reproducible<own_operator>, own_operator>::type;
  using operator_type = typename Segments::template operator_on<combining>;
  using state_type = typename operator_type::value_type;
  using published_type = state_type;
  // What accesses are counted by.
  using input_type = typename widest_in<typename widest_in<u8, inputs>::type, typename Own::beside_inputs>::type;
  using output_type = input_type;
  using own_state = typename own_operator::value_type;
  using segments_type = Segments;
  // The same over elements of one segment.
  using unbroken = defined<Own, within_segment<Segments>, is_reversed>;
  // Whether the device alone knows how many elements there are.
  static constexpr bool is_counted = is_counted_;

  DEVICE static published_type publish(state_type state) { return state; }
  DEVICE static state_type adopt(published_type published) { return published; }

  // What an exclusive scan has at an item: nothing, where it is the first of its segment.
  DEVICE static state_type before(state_type prefix, state_type item) { return Segments::before(prefix, item, operator_type::identity()); }

  // Indices whose elements may be read: an exclusive scan does not need the last one, unless a segment begins there, or other
  // ranks' tiles stand behind it.
  DEVICE static u64 readable(const lookback_launch& launch, u32 mode) {
    const bool is_all_read =
        is_reversed || Segments::are_several || mode != LOOKBACK_MODE_EXCLUSIVE || launch.deal.ranks != 0;
    return is_all_read || launch.n == 0 ? launch.n : launch.n - 1;
  }

  // The tile in which the row begins that has the first element of a tile.
  template <class Config>
  DEVICE static u64 tile_of_begin(Config config, const lookback_launch& launch, u64 tile) {
    const u64 tile_elements = config.block_threads * config.vt;
    const u64 begin = tile * tile_elements;
    if (begin <= launch.lead) return 0;
    return (row_at(launch, begin - launch.lead) * launch.columns + launch.lead) / tile_elements;
  }

  // What stands left of index 0.
  DEVICE static state_type initial(const lookback_launch& launch) {
    if constexpr (Segments::has_states) return operator_type::identity();
    return Segments::template state_of<own_operator>(given_state(launch, 0), 0);
  }

  // The user's state that stands left of elements of one segment, which begins with them or before. Nobody gives one that
  // stands left of all of them: rows have their own, segments between offsets none.
  DEVICE static own_state left_within(state_type left, bool begins) {
    return begins ? own_operator::identity() : Segments::value_of(left);
  }

  template <class Tile>
  DEVICE static void load_tile(Tile& tile, const lookback_launch& launch) {
    const u32 tile_elements = static_cast<u32>(tile.tile_elements);
    const u32 step = static_cast<u32>(tile.step);
    load_items(tile, global_arrays<defined>(launch, tile.first, tile_elements, tile.readable(launch), step));
  }

  // All items of a tile, from the arrays or from a stage; `note` is told of each element, its item, its place, and whether it is the
  // tile's.
  template <class Tile, class Source, class Note = nothing_noted>
  DEVICE static void load_items(Tile& tile, const Source& source, Note note = {}) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const int first_offset = static_cast<int>(tile.template row_offset<width>(0));
      const int row_elements = static_cast<int>(tile.template row_elements<width>());
      const auto load_rows = [&](auto is_simple, auto ends_early) {
        LOOKBACK_UNROLL
        for (u32 row = 0; row < tile.config.vt / width; ++row) {
          const int offset = first_offset + static_cast<int>(row) * row_elements;
          const bool is_there = decltype(ends_early)::value == 0 || !source.is_beyond(offset);
          load_row<(decltype(is_simple)::value != 0), width>(tile, source, row, offset, is_there, note);
        }
      };
      // A loop for each case, so that addresses of whole vectors are one address and constants. What is not simple asks for each
      // element whether it is the tile's.
      if (is_simple<width>(source)) {
        if (source.ends_early()) {
          load_rows(constant<1>(), constant<1>());
        } else {
          load_rows(constant<1>(), constant<0>());
        }
        return;
      }
      if constexpr (!is_same<Note, nothing_noted>::value && is_same<typename Source::memory_kind, in_global_memory>::value) {
        // Few tiles store by rank from registers, and all wait for the last one: its whole vectors are read as such.
        const u32 end = source.end();
        if (source.first >= 0 && end >= width && vectors_of<width, inputs>::type::are_loadable(source)) {
          LOOKBACK_UNROLL
          for (u32 row = 0; row < tile.config.vt / width; ++row) {
            const u32 offset = static_cast<u32>(first_offset) + row * static_cast<u32>(row_elements);
            load_row<true, width>(tile, source, row, static_cast<int>(offset), offset + width <= end, note);
          }
          LOOKBACK_UNROLL
          for (u32 row = 0; row < tile.config.vt / width; ++row) {
            const u32 offset = static_cast<u32>(first_offset) + row * static_cast<u32>(row_elements);
            if (offset < end && end < offset + width) load_row<false, width>(tile, source, row, static_cast<int>(offset), true, note);
          }
          return;
        }
      }
      load_rows(constant<0>(), constant<0>());
    });
  }

  // The items of a lane's row. Of one that is not there the tile's first vector is loaded instead of none, so that no load waits for a
  // branch.
  template <bool is_simple, u32 width, class Tile, class Source, class Note>
  DEVICE static void load_row(Tile& tile, const Source& source, u32 row, int offset, bool is_there, Note note) {
    own_state values[width];
    u32 begins = load_values<is_simple>(source, is_there ? offset : 0, values, [&](u32 j, u64 place, const inputs& loaded) {
      note(row * width + j, place, loaded, is_there);
    });
    if (!is_there) {
      begins = 0;
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) values[j] = own_operator::identity();
    }
    if constexpr (are_marked<defined>()) {
      tile.items.set_each(row * width, values, begins);
    } else {
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) tile.items.set(row * width + j, values[j]);
    }
  }

  // Whether the vectors of a tile are all there and each is read by one access.
  template <u32 width, class Source>
  DEVICE static bool is_simple(const Source& source) {
    return source.is_whole && vectors_of<width, inputs>::type::are_loadable(source);
  }

  // The user's states of a vector of a tile, from `offset` on: the identity where there is no element. A bit for each that
  // begins a segment.
  template <bool is_simple, class Source, u32 width, class Note = nothing_noted>
  DEVICE static u32 load_values(const Source& source, int offset, own_state (&values)[width], Note note = {}) {
    if constexpr (is_simple) {
      return load_run<width>(source, offset, 0, values, note);
    } else {
      u32 begins = 0;
      LOOKBACK_UNROLL
      for (u32 j = 0; j < width; ++j) {
        const int at = offset + static_cast<int>(j);
        values[j] = own_operator::identity();
        if (source.has(at)) begins |= load_run<1>(source, at, j, values, note);
      }
      return begins;
    }
  }

  DEVICE static state_type state_of(own_state value, u32 begins) {
    return Segments::template state_of<own_operator>(value, begins);
  }

  template <class Tile>
  DEVICE static void store_tile(const Tile& tile, const lookback_launch& launch) {
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      const i64 first_index = tile.first + tile.template row_offset<width>(0);
      const int row_elements = static_cast<int>(tile.template row_elements<width>());
      const auto store_rows = [&](auto is_simple, auto ends_early) {
        LOOKBACK_UNROLL
        for (u32 row = 0; row < tile.config.vt / width; ++row) {
          state_type states[width];
          LOOKBACK_UNROLL
          for (u32 j = 0; j < width; ++j) states[j] = tile.items.get(row * width + j);
          const i64 index = first_index + static_cast<int>(row) * row_elements;
          if constexpr (decltype(is_simple)::value != 0) {
            const bool exists = decltype(ends_early)::value == 0 || !tile.is_beyond(index - tile.first);
            if (exists) store_run<width>(launch, index, 0, states, tile.config.mode);
          } else {
            LOOKBACK_UNROLL
            for (u32 j = 0; j < width; ++j) {
              const i64 at = index + static_cast<int>(j);
              const bool exists = at >= 0 && static_cast<u64>(at) < launch.n && !(tile.ends_early() && tile.is_beyond(at - tile.first));
              if (exists) store_run<1>(launch, at, j, states, tile.config.mode);
            }
          }
        }
      };
      if (tile.lies_within(launch.n) && vectors_of<width, outputs>::type::template are_storable<defined>(launch, first_index)) {
        if (tile.ends_early()) {
          store_rows(constant<1>(), constant<1>());
        } else {
          store_rows(constant<1>(), constant<0>());
        }
      } else {
        store_rows(constant<0>(), constant<1>());
      }
      if (!Segments::has_states && launch.final_state != nullptr) store_final_state<width>(tile, launch, first_index, row_elements);
    });
  }

  // Whether what is stored stands at ranks, and not each element at its own place.
  static constexpr bool is_stored_by_rank = false;
  // Whether the outputs of a tile have room in its stage, each where the user's input of the same number was.
  static constexpr bool has_room_in_stage = fit_into<outputs, typename Own::inputs>::value;

  // A warp's part of a tile, and the stage that it was loaded from.
  template <class Stage>
  struct part_of_tile {
    static constexpr bool is_backward = is_reversed;
    // Inputs in front of the user's: the one that tells where segments begin, if any does.
    static constexpr u32 in_front = count_of<inputs>::value - count_of<typename Own::inputs>::value;
    const Stage& source;
    const lookback_launch& launch;
    int first;  // from the tile's first element
    u32 elements;

    DEVICE int lowest(int offset, u32 width) const {
      return is_reversed ? static_cast<int>(elements) - offset - static_cast<int>(width) : offset;
    }
    template <u32 number, class T>
    DEVICE T* stage() const {
      return reinterpret_cast<T*>(source.template room<number + in_front>(first, static_cast<int>(elements)));
    }
    template <u32 number, class T>
    DEVICE T* array() const {
      return static_cast<T*>(launch.outputs[number]) + place_of<is_reversed>(launch.n, source.first + first, elements);
    }
  };

  template <u32 width, class Tile, class Stage>
  DEVICE static bool store_run_through(const Tile& tile, const lookback_launch& launch, const Stage& stage) {
    const u32 part_elements = LOOKBACK_WARP_LANES * tile.config.vt;
    const part_of_tile<Stage> part = {stage, launch, static_cast<int>(warp_index() * part_elements), part_elements};
    if (!tile.lies_within(launch.n) || !vectors_of<width, outputs>::type::have_vectors(part)) return false;
    const int row_elements = static_cast<int>(tile.template row_elements<width>());
    LOOKBACK_UNROLL
    for (u32 row = 0; row < tile.config.vt / width; ++row) {
      const int offset = static_cast<int>(row) * row_elements + static_cast<int>(lane_index() * width);
      auto stored = outputs_of<width>(launch, tile.first + part.first + offset, tile.config.mode,
                                      [&](u32 j) { return tile.items.get(row * width + j); });
      stored.store_in_stage(part, offset);
    }
    warp_barrier();  // all lanes have written theirs
    vectors_of<width, outputs>::type::copy_from_stage(part);
    if (!Segments::has_states && launch.final_state != nullptr) {
      store_final_state<width>(tile, launch, tile.first + tile.template row_offset<width>(0), row_elements);
    }
    return true;
  }

  // Stores a warp's part of a tile by way of its stage, which the reducers have read, so that lanes store side by side. False
  // if it can not be done so.
  template <class Tile, class Stage>
  DEVICE static bool store_through(const Tile& tile, const lookback_launch& launch, const Stage& stage) {
    bool is_done = false;
    with_run_elements<input_type>(tile.config, [&](auto access) {
      constexpr u32 width = decltype(access)::value;
      // A lane's vectors of several rows are side by side anyhow.
      if constexpr (width * sizeof(input_type) > LOOKBACK_VECTOR_BYTES) is_done = store_run_through<width>(tile, launch, stage);
    });
    return is_done;
  }

  // The user's state that stands left of a segment or above a column: the same of all, or one of each.
  DEVICE static own_state given_state(const lookback_launch& launch, u64 segment) {
    using states = given_states<own_state>;
    if (launch.initial_state != nullptr) return states::load(launch.initial_state, segment);
    return launch.has_initial != 0 ? states::from_bytes(launch.initial) : own_operator::identity();
  }

 private:
  DEVICE static u64 own_place(u64 n, i64 index) { return static_cast<u64>(place_of<is_reversed>(n, index, 1)); }

  // `count` elements that are there become `values[to]` and those behind it.
  template <u32 count, class Source, u32 width, class Note>
  DEVICE static u32 load_run(const Source& source, int offset, u32 to, own_state (&values)[width], Note note) {
    typename vectors_of<count, inputs>::type loaded;
    loaded.load(source, offset);
    const u32 begins = Segments::template begins<count>(source.segments, offset, loaded);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < count; ++j) {
      const u64 place = own_place(source.launch.n, source.first + (offset + static_cast<int>(j)));
      own_state value = Own::load(place, Segments::inputs_of(loaded.get(j)));
      if constexpr (Segments::has_states) {
        const bool is_begin = (begins >> j & 1) != 0;
        if (is_begin) value = combine<own_operator>(given_state(source.launch, row_at(source.launch, place)), value);
      }
      values[to + j] = value;
      note(to + j, place, loaded.get(j));
    }
    return begins << to;
  }

  template <u32 count, u32 width>
  DEVICE static void store_run(const lookback_launch& launch, i64 index, u32 from, const state_type (&states)[width], u32 mode) {
    auto stored = outputs_of<count>(launch, index, mode, [&](u32 j) { return states[from + j]; });
    stored.template store<defined>(launch, index);
  }

  // What is stored of `count` states from `index` on, which `get(j)` tells.
  template <u32 count, class Get>
  DEVICE static typename vectors_of<count, outputs>::type outputs_of(const lookback_launch& launch, i64 index, u32 mode, Get get) {
    typename vectors_of<count, outputs>::type stored;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < count; ++j) {
      const u64 place = own_place(launch.n, index + static_cast<i64>(j));
      own_state value = Segments::value_of(get(j));
      if constexpr (Segments::has_states) value = at_ends_of_row(launch, place, value, mode);
      stored.set(j, Own::store(place, value));
    }
    return stored;
  }

  // What the last index was stored from, by the lane that has it.
  template <u32 width, class Tile>
  DEVICE static void store_final_state(const Tile& tile, const lookback_launch& launch, i64 first_index, int row_elements) {
    LOOKBACK_UNROLL
    for (u32 i = 0; i < tile.config.vt; ++i) {
      const i64 index = first_index + static_cast<int>(i / width) * row_elements + static_cast<int>(i % width);
      // Of no elements there is no last one, and the index before the first is -1.
      if (index < 0 || static_cast<u64>(index) + 1 != launch.n) continue;
      given_states<own_state>::store(launch.final_state, Segments::value_of(tile.items.get(i)));
    }
  }

  // The first element of a row that is scanned exclusively has what stands left of it; what the last one has is kept.
  DEVICE static own_state at_ends_of_row(const lookback_launch& launch, u64 place, own_state value, u32 mode) {
    const u64 row = row_at(launch, place);
    const u64 position = place - row * launch.columns;
    const u64 last = launch.columns - 1;
    if (mode == LOOKBACK_MODE_EXCLUSIVE && position == (is_reversed ? last : 0)) value = given_state(launch, row);
    if (launch.final_state != nullptr && position == (is_reversed ? 0 : last)) {
      memory::store(static_cast<own_state*>(launch.final_state) + row, value);
    }
    return value;
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
