// The C ABI between kernels compiled for the CPU device and its executor in Rust (`src/cpu`). Plain C, of which
// `src/cpu/executor/abi.rs` is generated. Everything hangs off one thread context; nothing is global but the
// pointer to the context of the CUDA thread that runs now on this OS thread.
#pragma once

#include "../abi.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LOOKBACK_EXCHANGE_BYTES = 96, LOOKBACK_FULL_WARP = 0xffffffff };

// What kind of access a memory back end or a scheduling point is told of.
enum lookback_access {
  LOOKBACK_ACCESS_ELEMENT_LOAD = 0,
  LOOKBACK_ACCESS_ELEMENT_STORE = 1,
  LOOKBACK_ACCESS_SPINE_LOAD = 2,
  LOOKBACK_ACCESS_SPINE_STORE = 3,
  LOOKBACK_ACCESS_SHARED_LOAD = 4,
  LOOKBACK_ACCESS_SHARED_STORE = 5,
  LOOKBACK_ACCESS_RELAXED_LOAD = 6,
  LOOKBACK_ACCESS_RELAXED_STORE = 7,
  LOOKBACK_ACCESS_ACQUIRE_LOAD = 8,
  LOOKBACK_ACCESS_RELEASE_STORE = 9,
  LOOKBACK_ACCESS_PAYLOAD_LOAD = 10,
  LOOKBACK_ACCESS_PAYLOAD_STORE = 11,
  LOOKBACK_ACCESS_RELAXED_FETCH_ADD = 12,
  LOOKBACK_ACCESS_ACQUIRE_RELEASE_FETCH_ADD = 13,
  LOOKBACK_ACCESS_FENCE = 14,
  LOOKBACK_ACCESS_CLUSTER_STORE = 15,
  LOOKBACK_ACCESS_SHARED_ADD = 16
};

// Added to the kind of an access: of block (.cta) scope instead of gpu scope; two accesses of half the
// width under one instruction (.v2).
enum { LOOKBACK_ACCESS_BLOCK_SCOPE = 0x100, LOOKBACK_ACCESS_VECTOR = 0x200 };

enum lookback_collective {
  LOOKBACK_COLLECTIVE_WARP_BARRIER = 0,
  LOOKBACK_COLLECTIVE_SHUFFLE_UP = 1,
  LOOKBACK_COLLECTIVE_SHUFFLE_DOWN = 2,
  LOOKBACK_COLLECTIVE_SHUFFLE_INDEX = 3,
  LOOKBACK_COLLECTIVE_BALLOT = 4
};

// Bits of `lookback_thread::intercept`: why plain and shared accesses may not go straight to memory.
enum {
  LOOKBACK_INTERCEPT_BACKEND = 1,        // a memory back end is set
  LOOKBACK_INTERCEPT_PLAIN_POINTS = 2,   // plain and shared accesses are scheduling points
  LOOKBACK_INTERCEPT_LANES = 4           // somebody looks at what lanes take from each other and combine
};

// What is told of a lane then.
enum lookback_lane_step {
  LOOKBACK_LANE_TOOK = 0,    // a value of this lane
  LOOKBACK_LANE_APPLIED = 1  // the operator, so many times
};

// What lanes of a warp exchange. Two sets of slots, used in turn by the collectives of the whole warp:
// a lane still reads from one while the lanes ahead of it already write the other, and none can be two
// collectives ahead of another.
struct lookback_warp {
  lookback_u32 parity;      // which set the next collective uses; flipped by the executor
  lookback_u32 ballots[2];  // cleared by the executor before a set's turn comes again
  lookback_u32 reserved;
  lookback_u8 slots[2][LOOKBACK_WARP_LANES][LOOKBACK_EXCHANGE_BYTES];
};

struct lookback_thread;

// Where every access goes when a back end is set. `bytes` is the width of one access: a vector access
// of a lane is one call.
struct lookback_memory_backend {
  void (*load)(struct lookback_thread*, lookback_u32 access, const void* address, void* value,
               lookback_u32 bytes, const char* file, lookback_u32 line);
  void (*store)(struct lookback_thread*, lookback_u32 access, void* address, const void* value,
                lookback_u32 bytes, const char* file, lookback_u32 line);
  lookback_u32 (*fetch_add)(struct lookback_thread*, lookback_u32 access, lookback_u32* address,
                            lookback_u32 value, const char* file, lookback_u32 line);
  void (*fence)(struct lookback_thread*, lookback_u32 access, const char* file, lookback_u32 line);
};

// What a kernel asks of the executor. A call that has to wait suspends the calling coroutine; a call
// that finds an error never returns.
struct lookback_executor {
  // All lanes of the warp meet; the warp's parity flips when the last one arrives.
  void (*rendezvous)(struct lookback_thread*, lookback_u32 collective, const char* file, lookback_u32 line);
  // The lanes in `mask` meet and each gets the value of `source_lane` (BALLOT: the set of lanes whose
  // value, a u32, is not 0).
  void (*exchange)(struct lookback_thread*, lookback_u32 mask, lookback_u32 collective,
                   lookback_u32 source_lane, void* value, lookback_u32 bytes, const char* file,
                   lookback_u32 line);
  void (*block_barrier)(struct lookback_thread*, const char* file, lookback_u32 line);
  void (*spin_pause)(struct lookback_thread*, const char* file, lookback_u32 line);
  // Called before an access; other threads may run meanwhile.
  void (*access_point)(struct lookback_thread*, lookback_u32 access, const void* address,
                       lookback_u32 bytes, const char* file, lookback_u32 line);
  // The block's storage for `key`, the address of a variable that stands for one SHARED in the source; null is the
  // storage whose size the launch gives, of which the block asks for so many bytes.
  void* (*shared_storage)(struct lookback_thread*, const void* key, lookback_u32 bytes,
                          lookback_u32 alignment, const char* file, lookback_u32 line);
  // A vector access at an address that a GPU would fault on.
  void (*misaligned)(struct lookback_thread*, const void* address, lookback_u32 bytes, const char* file,
                     lookback_u32 line);
  // Barriers of copies, see `../async_copy.cuh`; `barrier` is an address in shared memory and no more.
  void (*copy_barrier_initialize)(struct lookback_thread*, const void* barrier, lookback_u32 arrivals,
                                  const char* file, lookback_u32 line);
  // The block's barriers so far are there for copies, or for stores of the other blocks of the cluster.
  void (*copy_barriers_initialized)(struct lookback_thread*, lookback_u32 for_cluster, const char* file,
                                    lookback_u32 line);
  void (*copy_barrier_arrive)(struct lookback_thread*, const void* barrier, lookback_u32 is_release, const char* file,
                              lookback_u32 line);
  // So many more bytes that other blocks store must land before the barrier's phase is over.
  void (*copy_barrier_expect)(struct lookback_thread*, const void* barrier, lookback_u32 bytes, const char* file,
                              lookback_u32 line);
  void (*copy_barrier_wait)(struct lookback_thread*, const void* barrier, lookback_u32 parity, lookback_u32 is_acquire,
                            const char* file, lookback_u32 line);
  // The copy lands at some later time; the barrier's phase is not over before.
  void (*copy_to_shared)(struct lookback_thread*, void* to, const void* from, lookback_u32 bytes,
                         const void* barrier, const char* file, lookback_u32 line);
  // The barrier of the thread block cluster that the grid is.
  void (*cluster_barrier_arrive)(struct lookback_thread*, lookback_u32 is_release, const char* file, lookback_u32 line);
  void (*cluster_barrier_wait)(struct lookback_thread*, const char* file, lookback_u32 line);
  // The store lands at some later time at that place in block `rank`, whose `barrier` has been told to expect it.
  void (*store_to_cluster)(struct lookback_thread*, const void* place, const void* value, lookback_u32 bytes,
                           lookback_u32 rank, const void* barrier, const char* file, lookback_u32 line);
  // Once all blocks have called it or ended, blocks of the launch behind may start.
  void (*allow_next_launch)(struct lookback_thread*, const char* file, lookback_u32 line);
  // Returns when the launch before is over.
  void (*wait_for_launches_before)(struct lookback_thread*, const char* file, lookback_u32 line);
  // A warp has come to a step (`lookback_trace_step`) with a tile: by its lane 0. The last two are of rounds.
  void (*trace_step)(struct lookback_thread*, lookback_u32 step, lookback_u64 tile, lookback_u32 round,
                     lookback_u32 descriptors);
  // What a lane does (`lookback_lane_step`), where somebody looks.
  void (*lane_step)(struct lookback_thread*, lookback_u32 step, lookback_u32 number);
};

// The part of a CUDA thread's context that kernels see; the executor keeps more behind it.
struct lookback_thread {
  struct lookback_warp* warp;
  struct lookback_counters* counters;
  const struct lookback_executor* executor;
  const struct lookback_memory_backend* backend;
  lookback_u64 clock;  // operator applications on the longest chain that led here
  lookback_u64 block_index;
  lookback_u64 grid_blocks;
  lookback_u32 thread_index;
  lookback_u32 lane_index;
  lookback_u32 warp_index;
  lookback_u32 block_threads;
  lookback_u32 intercept;
  lookback_u32 mutant;  // the fault that this launch has chosen, 0 for none
  // What the thread waits for, if it said so: read where progress is lost.
  lookback_u64 waiting_tile;
  lookback_u64 missing_tile;
  const lookback_u64* parameters;  // of the launch, for the text of a definition
};

// A kernel as the executor starts it, once for every CUDA thread.
typedef void (*lookback_kernel_body)(const struct lookback_config*, const struct lookback_launch*);

// Where this OS thread keeps the context of the CUDA thread that runs now. The executor asks once a
// launch and writes the pointer before every resumption.
struct lookback_thread** lookback_current_thread_slot(void);

#if defined(LOOKBACK_THREAD_SANITIZER)
// memcpy that ThreadSanitizer does not see.
void lookback_copy_unseen(void* to, const void* from, lookback_u32 bytes);
#endif

#ifdef __cplusplus
}
#endif
