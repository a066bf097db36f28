// Every CUDA thread is a fiber: who runs next, and the blocks that fibers make up.
#pragma once

#include <ucontext.h>

#include <cstddef>

#include "job.h"

extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void __tsan_read_range(void* address, unsigned long bytes);
void __tsan_write_range(void* address, unsigned long bytes);
void __tsan_func_entry(void* caller);
void __tsan_func_exit(void);
void __tsan_on_report(const void* report);
}

namespace {

constexpr unsigned without_synchronisation = 1;
// ThreadSanitizer has 256 slots for threads; the main thread, its own and `outsider` (program.cpp) take some of 250.
constexpr u32 fiber_limit = 248;
constexpr u32 thread_limit = 192;  // of a block: 64 that scan, and the four warps that look-ahead has beside them
constexpr u32 warp_limit = thread_limit / LOOKBACK_WARP_LANES;
constexpr std::size_t arena_bytes = 384 * 1024;  // shared memory of a block, the longest ring included
constexpr u64 no_tile = ~u64(0);
// Rounds in which everybody polls and nobody stores. Memory is sequentially consistent, so one says it all.
constexpr u32 idle_round_limit = 16;

u64 random_state;

u64 mix(u64 value) {  // SplitMix64 (Steele, Lea & Flood, 2014)
  value += 0x9e3779b97f4a7c15ull;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

u32 draw() {
  random_state += 0x9e3779b97f4a7c15ull;
  return static_cast<u32>(mix(random_state) >> 32);
}

u32 draw_below(u32 bound) { return static_cast<u32>((u64(draw()) * bound) >> 32); }

struct block;

// What a fence or a release released: an address that ThreadSanitizer keeps a clock for.
struct released {
  u8 address;
};

// Records of a fiber that may be waited for at once; an older one that is overwritten then says a little more
// than it should.
constexpr u32 released_limit = 16;

struct fiber {
  lookback_thread thread;  // first, so that a pointer to it is a pointer to the fiber
  lookback_counters counters;  // of its own: a shared counter would be a race
  void* sanitizer;
  ucontext_t context;
  block* owner;
  void* lane_value;  // what it hands over in a collective of some lanes
  u32 lane_source;
  // Fences: its releases, the one of its last fence, and what its relaxed loads have read from since.
  released releases[released_limit];
  u32 release_count;
  released* last_fence;
  released* pending[released_limit];
  u32 pending_count;
  // The barrier of the cluster: the phase in which it has arrived and not waited yet, and whether an arrival, however
  // relaxed, hands over that its block's barriers of copies are there.
  bool has_arrived;
  u64 cluster_phase;
  bool hands_over_barriers;
};

// Lanes of one mask that meet.
struct meeting {
  u32 mask;
  u32 arrived;
  u32 collective;
  const char* file;
  u32 line;
};

constexpr u32 meeting_limit = LOOKBACK_WARP_LANES;

struct warp {
  lookback_warp shown;
  fiber* lanes[LOOKBACK_WARP_LANES];
  u32 exited;
  meeting meetings[meeting_limit];  // unused where the mask is 0
  // A warp barrier's address is not the next one's: a lane that is ahead releases what those behind must not get.
  u8 barriers[LOOKBACK_WARP_LANES];
  u32 barrier_count;
};

// A barrier of copies, known by its address in shared memory. See `copies.h`.
struct copy_barrier {
  const void* address;
  u32 arrivals;  // that a phase takes
  u32 arrived;
  bool is_there_for_copies;
  bool is_there_for_cluster;
  u32 copies;                // of the current phase that have not landed
  long long expected_bytes;  // of other blocks' stores; below 0 while some have landed that it does not expect yet
  u32 phase;
  u8 initialised;  // written by who initialises it, read by who uses it
  u8 orders[2];    // what arrivals and copies of the phases of each parity released
  fiber* waiting[thread_limit];
  u32 waiting_count;
};

constexpr u32 copy_barrier_limit = 5 * LOOKBACK_MAXIMUM_STAGES;

struct block {
  warp warps[warp_limit];
  fiber* threads[thread_limit];
  u32 live;
  u8* arena;
  std::size_t arena_used;
  const void* shared_keys[16];
  u8* shared_addresses[16];
  u32 shared_bytes[16];
  u32 shared_count;
  bool has_begun;  // one of its threads has
  copy_barrier copy_barriers[copy_barrier_limit];
  u32 copy_barrier_count;
  u32 copies_asked;
  u32 barrier_arrived;
  const char* barrier_file;
  u32 barrier_line;
  u8 barriers[2];
  u32 barrier_count;
};

fiber fibers[fiber_limit];
u32 fiber_count;
fiber main_fiber;
fiber* running = &main_fiber;

fiber* ready[fiber_limit];
u32 ready_count;
fiber* sleepers[fiber_limit];
u32 sleeper_count;

// Every block has its fibers; those that are idle, in the order in which they ended.
constexpr u32 block_limit = fiber_limit / LOOKBACK_WARP_LANES;
block blocks[block_limit];
block* idle[block_limit];
u32 idle_count;

// The launch that runs.
lookback_kernel_body body;
u32 block_threads;
lookback_config config;
lookback_launch arguments;
u64 grid_blocks;
u64 started_blocks;
u64 finished_blocks;
bool in_order;  // fibers take turns and none is preempted; else chance decides
bool is_cluster;
u64 dynamic_bytes;  // of shared memory, that the launch gives a block
u8* arenas;
u64 arena_count;
u8 launch_start;
u8 launch_end;
bool progress;
u32 idle_rounds;

struct {
  u64 schedules, blocks, switches, protocol;
} total;

void switch_to(fiber* next) {
  fiber* const from = running;
  if (from == next) return;
  ++total.switches;
  running = next;
  *lookback_current_thread_slot() = &next->thread;
  __tsan_switch_to_fiber(next->sanitizer, without_synchronisation);
  swapcontext(&from->context, &next->context);
}

template <class T>
T* pop_first(T** queue, u32& count) {
  T* const first = queue[0];
  --count;
  for (u32 i = 0; i < count; ++i) queue[i] = queue[i + 1];
  return first;
}

void make_ready(fiber* woken) { ready[ready_count++] = woken; }

void wake(u32 index) {
  make_ready(sleepers[index]);
  sleepers[index] = sleepers[--sleeper_count];
}

[[noreturn]] void lose_progress() {
  if (is_canary) sleeps();
  u64 waiting = no_tile;
  u64 missing = no_tile;
  for (u32 i = 0; i < sleeper_count; ++i) {
    if (sleepers[i]->thread.waiting_tile < waiting) {
      waiting = sleepers[i]->thread.waiting_tile;
      missing = sleepers[i]->thread.missing_tile;
    }
  }
  std::printf("lost-progress seed=%llu launch=%llu waiting=%lld missing=%lld\n", seed, launch_number,
              static_cast<long long>(waiting), static_cast<long long>(missing));
  finish();
}

// What was asked for and has not landed (`copies.h`).
u32 under_way_count;
void land(u32 position);
bool is_under_way_to(const block* target);

// Who runs next; the main program where nobody can.
fiber* pick() {
  if (under_way_count != 0 && !in_order && draw_below(4) == 0) land(draw_below(under_way_count));
  while (ready_count == 0 && under_way_count != 0) land(in_order ? 0 : draw_below(under_way_count));
  if (ready_count == 0 && sleeper_count != 0) {
    idle_rounds = progress ? 0 : idle_rounds + 1;
    progress = false;
    if (idle_rounds > idle_round_limit) lose_progress();
    while (sleeper_count != 0) wake(sleeper_count - 1);
  } else if (sleeper_count != 0 && !in_order && draw_below(8) == 0) {
    wake(draw_below(sleeper_count));
  }
  if (ready_count == 0) return &main_fiber;
  if (in_order) return pop_first(ready, ready_count);
  const u32 chosen = draw_below(ready_count);
  fiber* const next = ready[chosen];
  ready[chosen] = ready[--ready_count];
  return next;
}

void suspend() { switch_to(pick()); }

void maybe_preempt() {
  if (in_order || ready_count == 0 || draw_below(65536) >= job.preemption) return;
  make_ready(running);
  suspend();
}

void start_block() {
  if (started_blocks == grid_blocks) return;
  block* const slot = pop_first(idle, idle_count);
  const u64 position = started_blocks++;
  const u64 index = job.reverse ? grid_blocks - 1 - position : position;
  progress = true;
  slot->live = block_threads;
  slot->arena = arenas + position * arena_bytes;
  slot->arena_used = 0;
  slot->shared_count = 0;
  slot->barrier_arrived = 0;
  slot->has_begun = false;
  slot->copy_barrier_count = 0;
  slot->copies_asked = 0;
  for (u32 i = 0; i < block_threads; ++i) {
    const u32 lane = i % LOOKBACK_WARP_LANES;
    warp& mine = slot->warps[i / LOOKBACK_WARP_LANES];
    if (lane == 0) {
      mine.shown.parity = 0;
      mine.exited = 0;
      for (meeting& open : mine.meetings) open.mask = 0;
    }
    fiber* const started = slot->threads[i];
    mine.lanes[lane] = started;
    lookback_thread& thread = started->thread;
    thread.warp = &mine.shown;
    thread.clock = 0;
    thread.block_index = index;
    thread.grid_blocks = grid_blocks;
    thread.thread_index = i;
    thread.lane_index = lane;
    thread.warp_index = i / LOOKBACK_WARP_LANES;
    thread.block_threads = block_threads;
    thread.intercept = 0;
    thread.mutant = static_cast<u32>(job.mutant);
    thread.waiting_tile = no_tile;
    thread.missing_tile = no_tile;
    started->owner = slot;
    started->last_fence = nullptr;
    started->pending_count = 0;
    started->has_arrived = false;
    started->hands_over_barriers = false;
    make_ready(started);
  }
}

void live() {
  for (;;) {
    __tsan_acquire(&launch_start);
    running->owner->has_begun = true;
    body(&config, &arguments);
    __tsan_release(&launch_end);
    block* const mine = running->owner;
    mine->warps[running->thread.warp_index].exited |= 1u << running->thread.lane_index;
    progress = true;
    if (--mine->live == 0) {
      if (is_under_way_to(mine)) {
        fault("block %llu ends before all copies have landed in its shared memory", running->thread.block_index);
      }
      ++finished_blocks;
      ++total.blocks;
      idle[idle_count++] = mine;
      start_block();
    }
    suspend();
  }
}

}  // namespace
