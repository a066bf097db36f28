// A narrow matrix that is scanned down its columns as if it were one array: an element is a row, all of which one access of a
// lane moves, and its state has those of all columns. Unlike those of other tensors (`columns_ahead.cuh`) its columns are in no
// strips, and a tile has one descriptor for all of them.
#pragma once

#include "../operators.cuh"
#include "elements.cuh"

namespace lookback {

// What `width` columns have in one row, side by side as in memory.
template <class T, u32 width>
struct alignas(width * sizeof(T) < 16 ? width * sizeof(T) : 16) row_of {
  T columns[width];
};

// The row of what `get(j)` has for each column.
template <class T, u32 width, class Get>
DEVICE row_of<T, width> make_row(Get get) {
  row_of<T, width> row;
  LOOKBACK_UNROLL
  for (u32 j = 0; j < width; ++j) row.columns[j] = get(j);
  return row;
}

template <class Elements, u32 width>
struct rows_of_elements;
template <class... Types, u32 width>
struct rows_of_elements<elements<Types...>, width> {
  using type = elements<row_of<Types, width>...>;
};

// The elements of a column in a row of each of several arrays, and back.
template <u32 width>
DEVICE elements<> in_column(u32, const elements<>&) { return {}; }
template <u32 width, class First, class... Rest>
DEVICE elements<First, Rest...> in_column(u32 j, const elements<row_of<First, width>, row_of<Rest, width>...>& rows) {
  return {rows.first.columns[j], in_column<width>(j, rows.rest)};
}
template <u32 width>
DEVICE void set_column(u32, elements<>&, elements<>) {}
template <u32 width, class First, class... Rest>
DEVICE void set_column(u32 j, elements<row_of<First, width>, row_of<Rest, width>...>& rows, elements<First, Rest...> items) {
  rows.first.columns[j] = items.first;
  set_column<width>(j, rows.rest, items.rest);
}

namespace operators {

// Column by column.
template <class Operator, u32 width>
struct of_rows : no_inverse<row_of<typename Operator::value_type, width>> {
  using value_type = row_of<typename Operator::value_type, width>;
  static constexpr bool is_commutative = Operator::is_commutative;
  DEVICE static value_type identity() {
    return make_row<typename Operator::value_type, width>([](u32) { return Operator::identity(); });
  }
  DEVICE static value_type combine(value_type a, value_type b) {
    return make_row<typename Operator::value_type, width>([&](u32 j) { return Operator::combine(a.columns[j], b.columns[j]); });
  }
};

}  // namespace operators

// What `Own` says (`defined.cuh`), of rows.
template <class Own, u32 width>
struct narrow {
  using operator_type = operators::of_rows<typename Own::operator_type, width>;
  using value_type = typename operator_type::value_type;
  using inputs = typename rows_of_elements<typename Own::inputs, width>::type;
  using outputs = typename rows_of_elements<typename Own::outputs, width>::type;
  using beside_inputs = typename rows_of_elements<typename Own::beside_inputs, width>::type;

  DEVICE static value_type load(u64 row, inputs items) {
    using state = typename Own::operator_type::value_type;
    return make_row<state, width>([&](u32 j) { return Own::load(row * width + j, in_column<width>(j, items)); });
  }
  DEVICE static outputs store(u64 row, value_type states) {
    outputs items;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) set_column<width>(j, items, Own::store(row * width + j, states.columns[j]));
    return items;
  }
};

// States of the user as arrays of the launch have them: nobody says that those of a row are aligned as it is.
template <class State>
struct given_states {
  // From the bytes of one, which is that of all columns.
  DEVICE static State from_bytes(const void* bytes) {
    static_assert(sizeof(State) <= LOOKBACK_MAXIMUM_STATE_BYTES, "a launch has room for so many");
    State state;
    memcpy(&state, bytes, sizeof(state));
    return state;
  }
  DEVICE static State load(const void* states, u64 i) { return memory::load(static_cast<const State*>(states) + i); }
  DEVICE static void store(void* states, State state) { memory::store(static_cast<State*>(states), state); }
};
template <class State, u32 width>
struct given_states<row_of<State, width>> {
  using row = row_of<State, width>;
  DEVICE static row from_bytes(const void* bytes) {
    return make_row<State, width>([=](u32) { return given_states<State>::from_bytes(bytes); });
  }
  DEVICE static row load(const void* states, u64 i) {
    return make_row<State, width>([=](u32 j) { return given_states<State>::load(states, i * width + j); });
  }
  DEVICE static void store(void* states, row stored) {
    State* const first = static_cast<State*>(states);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) given_states<State>::store(first + j, stored.columns[j]);
  }
};

}  // namespace lookback
