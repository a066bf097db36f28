// The scan of numbers that are not the operator's own: C++ converts them when they are loaded, published and stored. The
// input's type has the operator's identity, and no float becomes an integer (`Problem::converting` in Rust).
#pragma once

#include "../halves.cuh"
#include "problem.cuh"

namespace lookback {

template <class Operator, class Input, class Published, class Output>
struct converting {
  static constexpr bool has_arrays = false;
  using operator_type = Operator;
  using state_type = typename Operator::value_type;
  using input_type = Input;
  using published_type = Published;
  using output_type = Output;

  DEVICE static state_type load(input_type input) { return static_cast<state_type>(input); }
  DEVICE static published_type publish(state_type state) { return static_cast<published_type>(state); }
  DEVICE static state_type adopt(published_type published) { return static_cast<state_type>(published); }
  DEVICE static output_type store(state_type state) { return static_cast<output_type>(state); }
  DEVICE static input_type padding() { return static_cast<input_type>(Operator::identity()); }
};

}  // namespace lookback
