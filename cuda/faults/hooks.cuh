// What is woven into the kernels from the .toml files of this folder (`src/kernels/weave.rs`). `MUTANT(name)` is true in
// the build (or, on the CPU device, the launch) that chose this fault, and `false` at compile time in every other: the
// kernels with all of it woven in and nothing chosen are the same to the last byte of their cubins as without
// (tests/compile_kernels.rs). Detectors that miss a fault are worth nothing against the bug that it stands for
// (`lookback stress --mutants`).
#pragma once

#include "../abi.h"

namespace lookback {

// The number of a name: FNV-1a (Fowler, Noll, Vo), 32 bits. 0 is no mutant.
constexpr lookback_u32 mutant_number(const char* name) {
  lookback_u32 hash = 2166136261u;
  for (; *name != 0; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
  return hash;
}

template <lookback_u32 number_>
struct mutant {
  // An enumerator and no static member: those become variables of the module.
  enum : lookback_u32 { number = number_ };
};

}  // namespace lookback

#define MUTANT_NUMBER(name) ::lookback::mutant< ::lookback::mutant_number(#name)>::number

#if defined(LOOKBACK_MUTANTS_AT_RUN_TIME)
#define MUTANT(name) (::lookback::host::current()->mutant == MUTANT_NUMBER(name))
#elif defined(LOOKBACK_MUTANT)
#define MUTANT(name) (MUTANT_NUMBER(name) == LOOKBACK_MUTANT)
#else
#define MUTANT(name) false
#endif

// What a warp has come to with a tile (`lookback_trace_step`), for `lookback trace`. The CPU device always asks whether somebody
// looks; on a GPU only a build that records has anything here. Rounds of reading descriptors are counted from 0 for each tile.
#if defined(LOOKBACK_TRACE) || !defined(__CUDACC__)
#define TRACE(step, tile) ::lookback::trace_step(LOOKBACK_TRACE_##step, tile)
#define TRACE_READ(round, tile, descriptors) ::lookback::trace_read(round, tile, descriptors)
#define TRACE_FOUND(round, tile, wait, descriptors) ::lookback::trace_found(round, tile, wait, descriptors)
// Behind the arrival of what is loaded into registers.
#define TRACE_LANDED(items, tile) ::lookback::trace_landed(items, tile)
// The four steps of a warp that scans, where it comes to all of them in one function: they are stored together.
#define TRACE_WARP(name) ::lookback::traced_warp name
#define TRACE_TILE_OF(name, of_tile) name.tile = of_tile
#define TRACE_OF(name, to) name.step(LOOKBACK_TRACE_##to)
// STORED, when the variable's block ends.
#define TRACE_STORED_AT_END_OF(name) const ::lookback::traced_warp::end traced_here { name }
// When the variable's block ends, wherever it is left.
#define TRACE_AT_END(step, tile)                   \
  struct traced_end {                              \
    ::lookback::u64 of_tile;                       \
    DEVICE ~traced_end() { TRACE(step, of_tile); } \
  };                                               \
  const traced_end traced_here { tile }
#else
#define TRACE(step, tile)
#define TRACE_READ(round, tile, descriptors)
#define TRACE_FOUND(round, tile, wait, descriptors)
#define TRACE_LANDED(items, tile)
#define TRACE_WARP(name)
#define TRACE_TILE_OF(name, of_tile)
#define TRACE_OF(name, to)
#define TRACE_STORED_AT_END_OF(name)
#define TRACE_AT_END(step, tile)
#endif

// A place where a stress build may lose time. On the CPU device delays are the schedule's business: every protocol access
// is a place where it may switch.
#if defined(LOOKBACK_STRESS)
#define DELAY_POINT(name) ::lookback::lose_time(MUTANT_NUMBER(name), 0, lookback_stress_state.delay_rate)
#else
#define DELAY_POINT(name)
#endif
