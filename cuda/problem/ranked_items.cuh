// The elements that a thread holds of a compaction, with what ranks them: nothing is loaded twice from memory.
//
// Which items are kept, and which begin a group, are bits. A count is held once a row, before its first item: that of an item
// follows from the bits.
#pragma once

#include "../operators.cuh"
#include "elements.cuh"
#include "problem.cuh"

namespace lookback {

// Whether what a problem stores stands at ranks.
template <class Problem>
DEVICE_CONSTEXPR bool is_by_rank() {
  if constexpr (Problem::has_arrays) return Problem::is_stored_by_rank;
  return false;
}

// And whether those are of groups.
template <class Problem>
DEVICE_CONSTEXPR bool has_groups() {
  if constexpr (is_by_rank<Problem>()) return Problem::own_type::has_groups;
  return false;
}

// And whether it is told with each element that is kept how many there are since the one that was kept before.
template <class Problem>
DEVICE_CONSTEXPR bool has_lengths() {
  if constexpr (is_by_rank<Problem>()) return Problem::own_type::has_lengths;
  return false;
}

// The state of a run of elements, the first one of that index, of which those are kept that have a bit (`last_and_count`).
template <class T>
DEVICE T last_and_count_of(u32 kept, long long first_index) {
  using Count = decltype(T::groups);
  return {kept == 0 ? Count{0} : static_cast<Count>(first_index + 32 - static_cast<int>(leading_zeros(kept))), count_bits(kept)};
}

// A bit for each of several items, which may stand in several words.
template <u32 capacity>
struct item_bits {
  u32 words[(capacity + 31) / 32] = {};

  DEVICE bool get(u32 i) const { return (words[i / 32] >> i % 32 & 1) != 0; }
  // Not 0 if it has one.
  DEVICE u32 bit(u32 i) const { return words[i / 32] & 1u << i % 32; }
  DEVICE void set_if(u32 i, bool is_set) { set_bit_if(words[i / 32], i % 32, is_set); }
  DEVICE void clear(u32 i) { words[i / 32] &= ~(1u << i % 32); }
  DEVICE void invert() {
    LOOKBACK_UNROLL
    for (u32& word : words) word = ~word;
  }

  // Those of `width` items from `first` on, no more than a word has.
  template <u32 width>
  DEVICE u32 of_row(u32 first) const {
    u32 bits = words[first / 32] >> first % 32;
    if (first % 32 + width > 32) bits |= words[first / 32 + 1] << (32 - first % 32);
    return width < 32 ? bits & ((1u << width % 32) - 1) : bits;
  }
};

template <class T>
struct is_narrow {
  enum : bool { value = sizeof(T) < sizeof(u32) };
};
template <class T>
struct is_narrow<in_run<T>> {
  enum : bool { value = false };
};

// Elements of an array that a thread keeps until they are stored. Narrow ones are kept in words: one by one each would take a
// register.
template <class T, u32 capacity, bool in_words = is_narrow<T>::value>
struct held {
  T items[capacity];
  DEVICE T get(u32 i) const { return items[i]; }
  DEVICE void set(u32 i, T item) { items[i] = item; }
};
template <class T, u32 capacity>
struct held<T, capacity, true> {
  static constexpr u32 in_word = sizeof(u32) / sizeof(T);
  static constexpr u32 bits = 8 * sizeof(T);
  using number = typename choice<sizeof(T) == 1, u8, u16>::type;
  u32 words[(capacity + in_word - 1) / in_word] = {};
  DEVICE T get(u32 i) const {
    const number low = static_cast<number>(words[i / in_word] >> i % in_word * bits);
    T item;
    memcpy(&item, &low, sizeof(T));
    return item;
  }
  // Of each item once.
  DEVICE void set(u32 i, T item) {
    number low;
    memcpy(&low, &item, sizeof(T));
    words[i / in_word] |= static_cast<u32>(low) << i % in_word * bits;
  }
};
template <class T, u32 capacity>
struct held<in_run<T>, capacity, false> {
  held<T, capacity> own;
  item_bits<capacity> begins;
  item_bits<capacity> ends;
  DEVICE in_run<T> get(u32 i) const { return {own.get(i), begins.get(i), ends.get(i)}; }
  DEVICE void set(u32 i, in_run<T> item) {
    own.set(i, item.own);
    begins.set_if(i, item.begins);
    ends.set_if(i, item.ends);
  }
};

// Those of several arrays.
template <u32 capacity, class Elements>
struct held_of_each {
  DEVICE elements<> get(u32) const { return {}; }
  DEVICE void set(u32, elements<>) {}
};
template <u32 capacity, class First, class... Rest>
struct held_of_each<capacity, elements<First, Rest...>> {
  held<First, capacity> first;
  held_of_each<capacity, elements<Rest...>> rest;
  DEVICE elements<First, Rest...> get(u32 i) const { return {first.get(i), rest.get(i)}; }
  DEVICE void set(u32 i, const elements<First, Rest...>& element) {
    first.set(i, element.first);
    rest.set(i, element.rest);
  }
};

// Elements that are kept of so many that a lane has in a row: where it has no more of them, it goes through those alone.
template <class Problem, class Config>
DEVICE_CONSTEXPR u32 few_of_lane() {
  if constexpr (is_by_rank<Problem>()) return has_runs<typename Problem::input_type, Config>() && Problem::drops_others && !has_groups<Problem>() ? 4 : 0;
  return 0;
}

// What a lane loads again of a row that has no more than so many elements that are kept, if no lane of the warp has more.
template <class Problem, u32 most>
struct few_kept {
  bool are_few = false;
  typename Problem::inputs loaded[most];
};
template <class Problem>
struct few_kept<Problem, 0> {};

// Elements that wait to be stored, which of them are kept, and a count a row.
template <class Problem, class Count, u32 capacity, u32 most_few>
struct ranked_elements {
  static constexpr bool are_words = false;
  static constexpr u32 most = most_few;

  few_kept<Problem, most_few> few;

  Count before[capacity];  // of each row, up to its first item
  held_of_each<capacity, typename Problem::inputs> loaded;
  item_bits<capacity> kept;

  DEVICE void note(u32 i, const typename Problem::inputs& element, bool is_kept) {
    loaded.set(i, element);
    kept.set_if(i, is_kept);
  }

  // How many are kept before a row, which may begin behind the last element.
  template <u32 width>
  DEVICE Count kept_before(u32 row, bool) const { return before[row]; }

  // How many there are up to its last item.
  template <u32 width>
  DEVICE Count count_through(u32 row) const { return before[row] + static_cast<Count>(count_bits(kept.template of_row<width>(row * width))); }
};

// Kept elements count for themselves: a count is a state.
template <class Problem, u32 capacity, bool has_groups, bool has_lengths, u32 most_few>
struct ranked_items : ranked_elements<Problem, typename Problem::state_type, capacity, most_few> {
  using T = typename Problem::state_type;
  using ranked_elements<Problem, T, capacity, most_few>::before;
  using ranked_elements<Problem, T, capacity, most_few>::kept;

  // The bit is all that there is of a state.
  DEVICE void set(u32, T) {}

  template <class Operator, u32 width>
  DEVICE T combined(u32 row, long long) const {
    return static_cast<T>(count_bits(kept.template of_row<width>(row * width)));
  }
  template <class Operator, u32 width>
  DEVICE void scan(u32 row, T left) { before[row] = left; }
  template <class Operator, u32 width>
  DEVICE void propagate(u32 row, T prefix) { before[row] += prefix; }

  // Calls `body` with each item of a row, its state, and how many are kept before it; the first one has that index.
  template <u32 width, class Body>
  DEVICE void each_of_row(u32 row, long long, Body body) const {
    T count = before[row];
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      const T is_kept = kept.get(row * width + j) ? 1 : 0;
      body(j, static_cast<T>(count + is_kept), count);
      count += is_kept;
    }
  }

  // The state of the item that `number` others are kept before in its row.
  DEVICE T state_of_kept(u32 row, long long, u32 number, u32, u32) const { return before[row] + number + 1; }
};

// Of a row's bits those up to an item.
DEVICE u32 bits_up_to(u32 bits, u32 item) { return bits & ((2u << item) - 1); }

// Groups count, of each of which one element is kept. A row is scanned by itself: what stands left of it belongs to its items in front
// of the first one that begins a group.
template <class Problem, u32 capacity, u32 most_few>
struct ranked_items<Problem, capacity, true, false, most_few> : ranked_elements<Problem, decltype(Problem::state_type::groups), capacity, 0> {
  using T = typename Problem::state_type;
  using Count = decltype(T::groups);
  using ranked_elements<Problem, Count, capacity, 0>::before;
  using ranked_elements<Problem, Count, capacity, 0>::kept;

  decltype(T::value) values[capacity];
  item_bits<capacity> begins;

  DEVICE void set(u32 i, T state) {
    values[i] = state.value;
    begins.set_if(i, state.groups != 0);
  }

  template <class Operator, u32 width>
  DEVICE T combined(u32 row, long long) {
    LOOKBACK_UNROLL
    for (u32 j = 1; j < width; ++j) {
      const u32 i = row * width + j;
      values[i] = combine<Operator>(T{values[i - 1], 0}, T{values[i], begins.get(i) ? 1u : 0u}).value;
    }
    return {values[row * width + width - 1], count_bits(begins.template of_row<width>(row * width))};
  }
  template <class Operator, u32 width>
  DEVICE void scan(u32 row, T left) {
    before[row] = left.groups;
    const u32 begun = begins.template of_row<width>(row * width);
    const u32 first_begin = begun == 0 ? width : lowest_set_bit(begun);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      if (j < first_begin) values[row * width + j] = combine<Operator>(left, T{values[row * width + j], 0}).value;
    }
  }
  template <class Operator, u32 width>
  DEVICE void propagate(u32 row, T prefix) {
    if (before[row] == 0) return scan<Operator, width>(row, prefix);
    before[row] += prefix.groups;
  }

  // Of groups whose last one is kept: that of the first item has not ended, if there is such a one.
  template <u32 width>
  DEVICE Count kept_before(u32 row, bool is_behind) const {
    const Count begun = before[row] + (begins.get(row * width) ? 1 : 0);
    return begun == 0 || is_behind ? begun : begun - 1;
  }

  template <u32 width>
  DEVICE Count count_through(u32 row) const { return begun_through<width>(row, width - 1); }

  // How many began up to an item.
  template <u32 width>
  DEVICE Count begun_through(u32 row, u32 item) const {
    return before[row] + static_cast<Count>(count_bits(bits_up_to(begins.template of_row<width>(row * width), item)));
  }

  // Before an item those are kept whose groups began before its own. It is asked of items that are in one.
  template <u32 width, class Body>
  DEVICE void each_of_row(u32 row, long long, Body body) const {
    Count begun = before[row];
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      const u32 i = row * width + j;
      begun += begins.get(i) ? 1 : 0;
      body(j, T{values[i], begun}, begun - 1);
    }
  }
};

// Kept elements count, and it is known which of them is the last: a state a row, because both follow from the bits.
template <class Problem, u32 capacity, u32 most_few>
struct ranked_items<Problem, capacity, false, true, most_few> : ranked_elements<Problem, decltype(Problem::state_type::groups), capacity, most_few> {
  using T = typename Problem::state_type;
  using Count = decltype(T::groups);
  using ranked_elements<Problem, Count, capacity, most_few>::before;
  using ranked_elements<Problem, Count, capacity, most_few>::kept;

  Count last_before[capacity];  // of each row: one more than the index of the last one that is kept before its first item, or 0

  // The bit is all that there is of a state.
  DEVICE void set(u32, T) {}

  // Of a row whose first item has that index.
  template <class Operator, u32 width>
  DEVICE T combined(u32 row, long long first_index) const {
    return last_and_count_of<T>(kept.template of_row<width>(row * width), first_index);
  }
  template <class Operator, u32 width>
  DEVICE void scan(u32 row, T left) {
    before[row] = left.groups;
    last_before[row] = left.value;
  }
  template <class Operator, u32 width>
  DEVICE void propagate(u32 row, T prefix) { scan<Operator, width>(row, combine<Operator>(prefix, T{last_before[row], before[row]})); }

  // The state of an item says how many there are since the one that was kept before it, itself included.
  template <u32 width, class Body>
  DEVICE void each_of_row(u32 row, long long first_index, Body body) const {
    Count since = static_cast<Count>(first_index) - last_before[row];
    Count count = before[row];
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) {
      const bool is_kept = kept.get(row * width + j);
      body(j, T{since + j + 1, count + (is_kept ? 1 : 0)}, count);
      if (is_kept) since = Count{0} - (j + 1);
      count += is_kept ? 1 : 0;
    }
  }

  // The state of item `j`, that `number` others are kept before in its row, the last of them at `previous`.
  DEVICE T state_of_kept(u32 row, long long first_index, u32 number, u32 j, u32 previous) const {
    const Count since = static_cast<Count>(first_index) - last_before[row];
    return T{number == 0 ? since + j + 1 : Count{0} + (j - previous), before[row] + number + 1};
  }
};

}  // namespace lookback
