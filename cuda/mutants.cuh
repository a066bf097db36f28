// Faults on purpose. `MUTANT(name, "when", "text")` in a kernel is true in the build (or, on the CPU device,
// the launch) that chose this fault, and `false` at compile time in every other: a kernel without a chosen
// mutant is the same to the last byte of its cubin as one without hooks (tests/compile_kernels.rs). Detectors
// that miss a mutant are worth nothing against the bug that it stands for (`lookback stress --mutants`).
//
// The hook is all there is to write. The program finds the hooks by reading these sources
// (src/kernels/mutant.rs): the name, where the fault can show at all, and what it is.
//
// `when` is a list of key=value[,value] separated by blanks; what is absent is any:
//   kind      ordering, barrier, protocol, algorithm or harmless: a harmless variant must not be reported
//   strategy  by its name, for example lookback,chained
//   layout    packed-64, packed-128, split
//   pattern   shuffle, hillis-steele, kogge-stone, brent-kung, sklansky, blelloch
//   composition  scan-then-propagate, reduce-then-scan, block
//   mode      inclusive, exclusive, inclusive-minus-input
//   need      more than the plain drawing gives: wrap (launches at the largest epoch), relaunch (a second
//             launch of one workspace), frozen (launches replayed with the arguments of the first),
//             reverse (static tile ids with blocks in reverse order), in-place, misaligned, partial (a last
//             tile that is not full), non-commutative, windows (more tiles than a look-back window has, or
//             a round of one-wave or of single-cluster)
#pragma once

#include "abi.h"

#if !defined(LOOKBACK_MUTANT)
#define LOOKBACK_MUTANT 0
#endif

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

#if defined(LOOKBACK_WITHOUT_MUTANT_HOOKS)
#define MUTANT(name, when, text) false
#elif defined(LOOKBACK_MUTANTS_AT_RUN_TIME)
#define MUTANT(name, when, text) \
  (::lookback::host::current()->mutant == ::lookback::mutant< ::lookback::mutant_number(#name)>::number)
#else
#define MUTANT(name, when, text) (::lookback::mutant< ::lookback::mutant_number(#name)>::number == LOOKBACK_MUTANT)
#endif
