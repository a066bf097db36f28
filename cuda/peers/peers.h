// The contract between the peers (other people's scans, and the copies that are their floor) and Rust: tables of
// entries, one a problem, element types, operator and mode, each with a call that says how much temporary memory it wants
// and one that puts one run onto a stream. `src/lab/peers/entry.rs` has the same structs.
//
// Every call returns a cudaError_t as an int, 0 for success. Nothing here throws into Rust, allocates, or waits,
// unless an entry's `capturable` is 0.
#pragma once

#include <stddef.h>
#include <stdint.h>

// What an entry does with its input.
enum lookback_peer_kind {
  LOOKBACK_PEER_SCAN = 0,
  // Copies the input: the floor. For every element type: all names are null, and n counts bytes.
  LOOKBACK_PEER_COPY = 1,
  // Adds up the words of 4 bytes of the input, modulo 2^32: the floor of what stores little. Likewise; of words that a last
  // one does not fill nothing is read.
  LOOKBACK_PEER_READING = 2
};

// How large a run is.
struct lookback_peer_size {
  // Elements of the user's first input; of a copy or a reading bytes.
  uint64_t n;
  // Rows, all of one length, or segments between offsets, of which there is one more. 0 where there are neither.
  uint64_t segments;
};

struct lookback_peer_entry {
  // What it is called in records and plots, with the version of its library.
  const char *name;
  // The library's own version macro, for example CUB_VERSION: 300500 for 3.5.0. CUDART_VERSION for memcpy: 13000
  // for 13.0. 0 for what has none.
  uint32_t version;
  // lookback_peer_kind
  uint32_t kind;
  // Name of the problem (src/lab/workload.rs).
  const char *problem;
  // Names of the element type that is loaded, of the one that is stored, and of the operator (src/element/table.rs). A
  // recurrence has no operator: null.
  const char *input;
  const char *element;
  const char *operation;
  // lookback_mode in abi.h: 0 inclusive, 1 exclusive.
  uint32_t mode;
  // Whether a stream may be captured into a graph meanwhile: 0 for what allocates or waits inside the call.
  uint32_t capturable;
  // Largest n that the entry's own type for counts holds.
  uint64_t largest_n;
  // Writes how many bytes `launch` wants for a run of this size. Needs a current context, enqueues nothing.
  int (*temporary_bytes)(const lookback_peer_size *size, size_t *bytes);
  // Puts one run onto the stream (a cudaStream_t, which is a CUstream). `inputs` are the problem's arrays in the order of
  // `Workload::inputs`: what tells segments (keys of u32, or offsets of u32), and then those of `input`; for a copy or a reading one.
  // No array overlaps the output. The addresses are read before the call returns.
  int (*launch)(void *temporary, size_t temporary_bytes, const void *const *inputs, void *output,
                const lookback_peer_size *size, void *stream);
};

#ifdef __cplusplus
// The same numbers as in `src/lab/peers/entry.rs`.
static_assert(sizeof(lookback_peer_entry) == 80 && offsetof(lookback_peer_entry, largest_n) == 56
                && offsetof(lookback_peer_entry, launch) == 72,
              "Rust reads this struct");
static_assert(sizeof(lookback_peer_size) == 16 && offsetof(lookback_peer_size, segments) == 8,
              "Rust writes this struct");
#endif
