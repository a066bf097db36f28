// A narrow matrix that is scanned down its columns as if it were one array: an element is a row, all of which one access of a
// lane moves, and its state has those of all columns. Nothing else is as it is for other tensors (`columns_ahead.cuh`): there are
// no strips, and a tile's descriptor is for all columns together.
#pragma once

#include "../operators.cuh"
#include "elements.cuh"

namespace lookback {

// What `width` columns have in one row, side by side as in memory.
template <class T, u32 width>
struct alignas(width * sizeof(T) < 16 ? width * sizeof(T) : 16) row_of {
  T columns[width];
};

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
    value_type row;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) row.columns[j] = Operator::identity();
    return row;
  }
  DEVICE static value_type combine(value_type a, value_type b) {
    value_type row;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) row.columns[j] = Operator::combine(a.columns[j], b.columns[j]);
    return row;
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
    value_type states;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) states.columns[j] = Own::load(row * width + j, in_column<width>(j, items));
    return states;
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
    row states;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) states.columns[j] = given_states<State>::from_bytes(bytes);
    return states;
  }
  DEVICE static row load(const void* states, u64 i) {
    row loaded;
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) loaded.columns[j] = given_states<State>::load(states, i * width + j);
    return loaded;
  }
  DEVICE static void store(void* states, row stored) {
    State* const first = static_cast<State*>(states);
    LOOKBACK_UNROLL
    for (u32 j = 0; j < width; ++j) given_states<State>::store(first + j, stored.columns[j]);
  }
};

}  // namespace lookback
