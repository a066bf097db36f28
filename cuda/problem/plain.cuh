// The scan of an array of the operator's own values: all four types are one.
#pragma once

#include "problem.cuh"

namespace lookback {

template <class Operator>
struct plain {
  static constexpr bool has_arrays = false;
  using operator_type = Operator;
  using state_type = typename Operator::value_type;
  using input_type = state_type;
  using published_type = state_type;
  using output_type = state_type;

  DEVICE static state_type load(input_type input) { return input; }
  DEVICE static published_type publish(state_type state) { return state; }
  DEVICE static state_type adopt(published_type published) { return published; }
  DEVICE static output_type store(state_type state) { return state; }
  DEVICE static input_type padding() { return Operator::identity(); }
};

}  // namespace lookback
