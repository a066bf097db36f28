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
// Both in one block of the code, which records if `if_so` holds; how many descriptors were read, how many were
// needed, and one of those that are held then.
#define TRACE_READ(round, tile, descriptors, if_so) const ::lookback::traced_round traced_round_here(round, tile, descriptors, if_so)
#define TRACE_FOUND(wait, descriptors, held) traced_round_here.found(wait, descriptors, held)
// The four steps of a warp that scans, of which so many are stored together.
#define TRACE_WARP(name, together) ::lookback::traced_warp<together> name
#define TRACE_TILE_OF(name, of_tile) name.tile = of_tile
#define TRACE_OF(name, to) name.step(LOOKBACK_TRACE_##to)
// LANDED, behind the arrival of what is loaded into registers.
#define TRACE_LANDED(name, items) name.landed(items)
// When the block of the code ends, wherever it is left.
#define TRACE_AT_END(statement) const ::lookback::traced_end traced_end_here([&] { statement; })
#else
#define TRACE(step, tile)
#define TRACE_READ(round, tile, descriptors, if_so)
#define TRACE_FOUND(wait, descriptors, held)
#define TRACE_WARP(name, together)
#define TRACE_TILE_OF(name, of_tile)
#define TRACE_OF(name, to)
#define TRACE_LANDED(name, items)
#define TRACE_AT_END(statement)
#endif

// A place where a stress build may lose time. On the CPU device delays are the schedule's business: every protocol access
// is a place where it may switch.
#if defined(LOOKBACK_STRESS)
#define DELAY_POINT(name) ::lookback::lose_time(MUTANT_NUMBER(name), 0, lookback_stress_state.delay_rate)
#else
#define DELAY_POINT(name)
#endif
