// The choices of a launch as a kernel sees them: members of one object. On the GPU they are
// compile-time constants (`constant_config`), so loops unroll and branches fold; on the CPU device they
// are values (`runtime_config`), so one compiled kernel serves every choice. The members are those of
// `lookback_config` in `abi.h`; the `maximum_` ones size arrays.
#pragma once

#include "platform.cuh"

namespace lookback {

template <u32 vt_, u32 block_threads_, u32 mode_, u32 pattern_, u32 composition_, u32 descriptor_, u32 tile_order_,
          u32 alignment_, u32 stages_>
struct constant_config {
  static constexpr u32 vt = vt_;
  static constexpr u32 block_threads = block_threads_;
  static constexpr u32 mode = mode_;
  static constexpr u32 pattern = pattern_;
  static constexpr u32 composition = composition_;
  static constexpr u32 descriptor = descriptor_;
  static constexpr u32 tile_order = tile_order_;
  static constexpr u32 alignment = alignment_;
  static constexpr u32 stages = stages_;

  static constexpr bool is_fixed = true;
  static constexpr bool takes_runs = false;
  static constexpr u32 maximum_vt = vt;
  static constexpr u32 maximum_block_threads = block_threads;
  static constexpr u32 maximum_stages = stages;
  // Values of shared scratch that the pattern needs for each thread of its team.
  static constexpr u32 maximum_scratch_values_per_thread = pattern == LOOKBACK_PATTERN_SHUFFLE         ? 0
                                                           : pattern == LOOKBACK_PATTERN_HILLIS_STEELE ? 2
                                                                                                       : 1;
};

struct runtime_config {
  u32 vt;
  u32 block_threads;
  u32 mode;
  u32 pattern;
  u32 composition;
  u32 descriptor;
  u32 tile_order;
  u32 alignment;
  u32 stages;

  static constexpr bool is_fixed = false;
  static constexpr bool takes_runs = false;
  static constexpr u32 maximum_vt = LOOKBACK_MAXIMUM_VT;
  static constexpr u32 maximum_block_threads = LOOKBACK_MAXIMUM_BLOCK_THREADS;
  static constexpr u32 maximum_stages = LOOKBACK_MAXIMUM_STAGES;
  static constexpr u32 maximum_scratch_values_per_thread = 2;

  explicit runtime_config(const lookback_config& config)
      : vt(config.vt),
        block_threads(config.block_threads),
        mode(config.mode),
        pattern(config.pattern),
        composition(config.composition),
        descriptor(config.descriptor),
        tile_order(config.tile_order),
        alignment(config.alignment),
        stages(config.stages) {}
};

// A number as a type, so that a choice made at run time can select a template.
template <u32 value_>
struct constant {
  static constexpr u32 value = value_;
};

// Elements of one access: the largest power of two that divides VT and fits into 16 bytes.
template <class T>
DEVICE_CONSTEXPR u32 access_width(u32 vt) {
  u32 width = 1;
  while (vt % (2 * width) == 0 && 2 * width * sizeof(T) <= LOOKBACK_VECTOR_BYTES) width *= 2;
  return width;
}

// The same choices, for tiles that lie in shared memory: a lane has a run of several vectors side by side where VT is a multiple
// of one. Lanes exchange less then, and an odd number of vectors lies in other banks than those of the next lanes.
template <class Config>
struct in_runs : Config {
  static constexpr bool takes_runs = true;
  DEVICE explicit in_runs(Config config) : Config(config) {}
};

// Elements of a run, no more than a word has bits: an access, or an odd number of full vectors.
template <class T, class Config>
DEVICE_CONSTEXPR u32 run_elements(u32 vt) {
  constexpr u32 vector = LOOKBACK_VECTOR_BYTES / sizeof(T);
  u32 vectors = 7;
  while (vectors > 1 && (vt % (vectors * vector) != 0 || vectors * vector > 32)) vectors -= 2;
  return Config::takes_runs && vectors > 1 ? vectors * vector : access_width<T>(vt);
}

// Whether there may be runs of more than an access.
template <class T, class Config>
DEVICE_CONSTEXPR bool has_runs() {
  constexpr u32 vt = Config::maximum_vt;
  return Config::takes_runs && (!Config::is_fixed || run_elements<T, Config>(vt) > access_width<T>(vt));
}

// The widest access of any VT that the configuration may hold: sizes arrays.
template <class T, class Config>
DEVICE_CONSTEXPR u32 maximum_access_width() {
  return Config::maximum_vt == LOOKBACK_MAXIMUM_VT ? LOOKBACK_VECTOR_BYTES / sizeof(T)
                                                   : access_width<T>(Config::maximum_vt);
}

// Calls `body` with the elements of a run as a constant: the access width, but for tiles `in_runs`.
template <class T, class Config, class Body>
DEVICE void with_run_elements(Config config, Body body) {
  const u32 width = run_elements<T, Config>(config.vt);
  if constexpr (Config::takes_runs) {
    constexpr u32 vector = LOOKBACK_VECTOR_BYTES / sizeof(T);
    if constexpr (7 * vector <= 32) {
      if (width == 7 * vector) return body(constant<7 * vector>());
    }
    if constexpr (5 * vector <= 32) {
      if (width == 5 * vector) return body(constant<5 * vector>());
    }
    if constexpr (3 * vector <= 32) {
      if (width == 3 * vector) return body(constant<3 * vector>());
    }
  }
  if constexpr (16 * sizeof(T) <= LOOKBACK_VECTOR_BYTES) {
    if (width == 16) return body(constant<16>());
  }
  if constexpr (8 * sizeof(T) <= LOOKBACK_VECTOR_BYTES) {
    if (width == 8) return body(constant<8>());
  }
  if constexpr (4 * sizeof(T) <= LOOKBACK_VECTOR_BYTES) {
    if (width == 4) return body(constant<4>());
  }
  if constexpr (2 * sizeof(T) <= LOOKBACK_VECTOR_BYTES) {
    if (width == 2) return body(constant<2>());
  }
  body(constant<1>());
}

}  // namespace lookback
