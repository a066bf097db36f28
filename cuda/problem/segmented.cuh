// States that say where a segment begins, and their scans and reductions by a warp.
#pragma once

#include "../operators.cuh"
#include "../warp/shuffle.cuh"

namespace lookback {

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

}  // namespace lookback
