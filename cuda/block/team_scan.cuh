// One value a thread, scanned over a team by the pattern that the user chose.
#pragma once

#include "../warp/shuffle.cuh"
#include "blelloch.cuh"
#include "brent_kung.cuh"
#include "hillis_steele.cuh"
#include "kogge_stone.cuh"
#include "sklansky.cuh"

namespace lookback {

// Values of scratch that any pattern needs for a team of at most `threads`.
template <class Config>
DEVICE_CONSTEXPR u32 team_scratch_values(u32 threads) {
  return Config::maximum_scratch_values_per_thread * (threads <= 32     ? 32
                                                      : threads <= 64   ? 64
                                                      : threads <= 128  ? 128
                                                      : threads <= 256  ? 256
                                                      : threads <= 512  ? 512
                                                                        : 1024);
}

template <class Team, class Operator, class Config>
DEVICE team_scan_result<typename Operator::value_type> team_scan(Config config, typename Operator::value_type value,
                                                                 typename Operator::value_type* scratch) {
  switch (config.pattern) {
    case LOOKBACK_PATTERN_HILLIS_STEELE: return hillis_steele_scan<Team, Operator>(value, scratch);
    case LOOKBACK_PATTERN_KOGGE_STONE: return kogge_stone_scan<Team, Operator>(value, scratch);
    case LOOKBACK_PATTERN_BRENT_KUNG: return brent_kung_scan<Team, Operator>(value, scratch);
    case LOOKBACK_PATTERN_SKLANSKY: return sklansky_scan<Team, Operator>(value, scratch);
    case LOOKBACK_PATTERN_BLELLOCH: return blelloch_scan<Team, Operator>(value, scratch);
    default: return shuffle_scan<Operator>(value);
  }
}

}  // namespace lookback
