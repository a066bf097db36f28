// Vectors of several arrays at one time, as a thread loads and stores them.
//
// Offsets, counted from a tile's first element, are signed: what is added to a signed number does not wrap around, so that
// the compiler adds it to an address where it is used.
//
// A place is counted in memory; an index is counted from where the scan begins, at the last place if it is reversed. Where the
// rows of arrays do not lie one behind the other, places are counted as if they did (`strided` in `segments.cuh`).
#pragma once

#include "../config.cuh"
#include "../halves.cuh"
#include "../memory.cuh"
#include "elements.cuh"

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

}  // namespace lookback
