// The kernels under ThreadSanitizer: a program of its own, compiled on demand by `src/stress/thread_sanitizer.rs`
// with the kernels instrumented (-fsanitize=thread, LOOKBACK_THREAD_SANITIZER) and this file not. A second
// opinion beside the CPU device's own model of weak memory, by somebody else's idea of a data race.
//
// Every CUDA thread is a fiber of ThreadSanitizer on the one OS thread, switched to without telling it of any
// order. What orders memory is told to it, and nothing else:
// - block and warp barriers: a release before and an acquire behind, of an address that stands for the barrier;
// - the end of a launch, before the start of the next: likewise;
// - acquire and release accesses: they are atomics in the instrumented kernels, with their own orders;
// - fences, which it does not know: see `fences` below.
// Shuffles and ballots order nothing, relaxed accesses neither. Element, shared and payload accesses are plain.
//
// It finds data races by happens-before, so few schedules suffice; but its accesses are sequentially consistent,
// so it shows no stale value, and what is atomic cannot race: an order that matters only between atomics is beyond it.
//
// ThreadSanitizer loses races without a word where more than 256 threads live at once, hence `fiber_limit`. Making
// a fiber takes it half a millisecond, so blocks take over the fibers of ended ones, and with them what those knew:
// such a block happens after the ended one. So there are fibers for more blocks than may be resident, and those that
// have rested longest come first: a block and the ones right before it never share any.
//
// Silence is worth nothing from a detector that sleeps. So a process in which no schedule showed anything goes on with a
// canary, on the same fibers: the look-back with a fault that is a race. Only when that is reported the verdict is clean.
//
// Jobs come on standard input, lines of a key and numbers up to the line "run". A line "job" with its number goes to
// standard output as each begins, and behind the last one a line of verdict, that of the first which is not clean:
//   clean schedules=.. blocks=.. switches=.. protocol=.. fibers=..
//   race seed=.. launch=.. block=.. thread=..   and ThreadSanitizer's report on standard error
//   wrong seed=.. launch=.. index=..
//   lost-progress seed=.. launch=.. waiting=.. missing=..
//   fault seed=.. launch=.. what happened
//   asleep
//   refused why
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../config.cuh"
#include "../mutants.cuh"
#include "../operators.cuh"
#include "executor.h"

extern "C" {
void* __tsan_get_current_fiber(void);
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void __tsan_write_range(void* address, unsigned long bytes);
void __tsan_on_report(const void* report);

lookback_kernel_body lookback_bodies_0(lookback_u32 kernel);
lookback_kernel_body lookback_bodies_1(lookback_u32 kernel);
lookback_kernel_body lookback_bodies_2(lookback_u32 kernel);
lookback_kernel_body lookback_bodies_3(lookback_u32 kernel);
}

namespace {

using lookback::u32;
using lookback::u64;
using lookback::u8;

constexpr unsigned without_synchronisation = 1;
// ThreadSanitizer has 256 slots for threads; the main thread, its own and `outsider` below take some of 250.
constexpr u32 fiber_limit = 248;
constexpr u32 thread_limit = 64;  // of a block
constexpr u32 warp_limit = thread_limit / LOOKBACK_WARP_LANES;
// Reports are written on the stack of the fiber that finds the race.
constexpr std::size_t stack_bytes = 512 * 1024;
constexpr std::size_t arena_bytes = 128 * 1024;  // shared memory of a block
constexpr std::size_t guard_bytes = 256;
constexpr u32 step_limit = 128;
constexpr u64 no_tile = ~u64(0);
// Rounds in which everybody polls and nobody stores. Memory is sequentially consistent, so one says it all.
constexpr u32 idle_round_limit = 16;

// ------------------------------------------------------------------ the job

enum : long long { place_none = -1, place_input = -2, place_output = -3 };

struct step {
  u32 kernel;
  lookback_config config;
  u64 grid_blocks;
  long long input, output, spine;  // a `place_` or an offset into the scratch memory
  u64 n, tiles, stride;
  u32 lead;
  u32 threads;  // of a block: those that hold values, and any beside them
};

struct job_description {
  u64 element, combination, mutant, first_seed, seeds, resident_blocks, launches, preemption, reverse, wrap, frozen;
  u64 mode, in_place, input_offset, output_offset, scratch_bytes, descriptors, descriptor_bytes;
  // The scan, the smaller one of the launch at the largest epoch, which leaves old descriptors behind, and the canary.
  struct scan {
    u64 n;
    step steps[step_limit];
    u32 step_count;
  } whole, small, canary;
};

job_description job;

// Where the program is.
u64 seed;
u64 launch_number;
bool is_canary;

[[noreturn]] void finish() {
  std::fflush(stdout);
  _exit(0);
}

[[noreturn]] __attribute__((format(printf, 1, 2))) void refuse(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::printf("refused ");
  std::vprintf(format, arguments);
  std::printf("\n");
  finish();
}

[[noreturn]] void sleeps() {
  std::printf("asleep\n");
  finish();
}

[[noreturn]] __attribute__((format(printf, 1, 2))) void fault(const char* format, ...) {
  if (is_canary) sleeps();
  va_list arguments;
  va_start(arguments, format);
  std::printf("fault seed=%llu launch=%llu ", seed, launch_number);
  std::vprintf(format, arguments);
  std::printf("\n");
  finish();
}

u64 read_number(const char* key) {
  long long number;
  if (std::scanf("%lld", &number) != 1) refuse("no number behind '%s'", key);
  return static_cast<u64>(number);
}

// Whether there is another job.
bool read_job() {
  const struct {
    const char* key;
    u64* value;
  } fields[] = {
      {"element", &job.element},
      {"operator", &job.combination},
      {"mutant", &job.mutant},
      {"first-seed", &job.first_seed},
      {"seeds", &job.seeds},
      {"resident-blocks", &job.resident_blocks},
      {"launches", &job.launches},
      {"preemption", &job.preemption},
      {"reverse", &job.reverse},
      {"wrap", &job.wrap},
      {"frozen", &job.frozen},
      {"mode", &job.mode},
      {"n", &job.whole.n},
      {"small-n", &job.small.n},
      {"canary-n", &job.canary.n},
      {"in-place", &job.in_place},
      {"input-offset", &job.input_offset},
      {"output-offset", &job.output_offset},
      {"scratch-bytes", &job.scratch_bytes},
      {"descriptors", &job.descriptors},
      {"descriptor-bytes", &job.descriptor_bytes},
  };
  char key[64];
  if (std::scanf("%63s", key) != 1) return false;
  job = {};
  do {
    if (std::strcmp(key, "run") == 0) return true;
    const bool is_small = std::strcmp(key, "small-step") == 0;
    const bool is_of_canary = std::strcmp(key, "canary-step") == 0;
    if (is_small || is_of_canary || std::strcmp(key, "step") == 0) {
      auto& scan = is_small ? job.small : is_of_canary ? job.canary : job.whole;
      if (scan.step_count == step_limit) refuse("more than %u launches a scan", step_limit);
      step& next = scan.steps[scan.step_count++];
      next.kernel = static_cast<u32>(read_number(key));
      u32* const config[] = {&next.config.vt,          &next.config.block_threads, &next.config.mode,
                             &next.config.pattern,     &next.config.composition,   &next.config.descriptor,
                             &next.config.tile_order};
      for (u32* field : config) *field = static_cast<u32>(read_number(key));
      next.grid_blocks = read_number(key);
      next.input = static_cast<long long>(read_number(key));
      next.output = static_cast<long long>(read_number(key));
      next.spine = static_cast<long long>(read_number(key));
      next.n = read_number(key);
      next.tiles = read_number(key);
      next.stride = read_number(key);
      next.lead = static_cast<u32>(read_number(key));
      next.threads = static_cast<u32>(read_number(key));
      continue;
    }
    bool known = false;
    for (const auto& field : fields) {
      if (std::strcmp(key, field.key) != 0) continue;
      *field.value = read_number(key);
      known = true;
    }
    if (!known) refuse("no key '%s'", key);
  } while (std::scanf("%63s", key) == 1);
  refuse("a job without an end");
}

// ------------------------------------------------------------------ chance

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

// ------------------------------------------------------------------ fibers

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

struct block {
  warp warps[warp_limit];
  fiber* threads[thread_limit];
  u32 live;
  u8* arena;
  std::size_t arena_used;
  const void* shared_keys[16];
  void* shared_addresses[16];
  u32 shared_count;
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
lookback_config config;
lookback_launch arguments;
u64 grid_blocks;
u64 started_blocks;
u64 finished_blocks;
bool in_order;  // fibers take turns and none is preempted; else chance decides
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

// Who runs next; the main program where nobody can.
fiber* pick() {
  if (ready_count == 0 && sleeper_count != 0) {
    idle_rounds = progress ? 0 : idle_rounds + 1;
    progress = false;
    if (idle_rounds > idle_round_limit) lose_progress();
    while (sleeper_count != 0) wake(sleeper_count - 1);
  } else if (sleeper_count != 0 && !in_order && draw_below(8) == 0) {
    wake(draw_below(sleeper_count));
  }
  if (ready_count == 0) return &main_fiber;
  u32 chosen = 0;
  if (!in_order) chosen = draw_below(ready_count);
  fiber* const next = ready[chosen];
  --ready_count;
  if (in_order) {
    for (u32 i = 0; i < ready_count; ++i) ready[i] = ready[i + 1];
  } else {
    ready[chosen] = ready[ready_count];
  }
  return next;
}

void suspend() { switch_to(pick()); }

void maybe_preempt() {
  if (in_order || ready_count == 0 || draw_below(65536) >= job.preemption) return;
  make_ready(running);
  suspend();
}

u32 block_width;

u32 threads_of_block() { return block_width; }

void start_block() {
  if (started_blocks == grid_blocks) return;
  block* const slot = idle[0];
  --idle_count;
  for (u32 i = 0; i < idle_count; ++i) idle[i] = idle[i + 1];
  const u64 position = started_blocks++;
  const u64 index = job.reverse ? grid_blocks - 1 - position : position;
  progress = true;
  slot->live = threads_of_block();
  slot->arena = arenas + position * arena_bytes;
  slot->arena_used = 0;
  slot->shared_count = 0;
  slot->barrier_arrived = 0;
  for (u32 i = 0; i < threads_of_block(); ++i) {
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
    thread.block_threads = threads_of_block();
    thread.intercept = 0;
    thread.mutant = static_cast<u32>(job.mutant);
    thread.waiting_tile = no_tile;
    thread.missing_tile = no_tile;
    started->owner = slot;
    started->last_fence = nullptr;
    started->pending_count = 0;
    make_ready(started);
  }
}

void live() {
  for (;;) {
    __tsan_acquire(&launch_start);
    body(&config, &arguments);
    __tsan_release(&launch_end);
    block* const mine = running->owner;
    mine->warps[running->thread.warp_index].exited |= 1u << running->thread.lane_index;
    progress = true;
    if (--mine->live == 0) {
      ++finished_blocks;
      ++total.blocks;
      idle[idle_count++] = mine;
      start_block();
    }
    suspend();
  }
}

// ------------------------------------------------------------------ fences
//
// PTX and C++ have it alike: a fence followed by a store, and a load of that store followed by a fence, are a release
// and an acquire, of what stands before the first fence. Every atomic location remembers what its last store released
// (its own release, or the fence before it); a relaxed load keeps that in mind, and the next fence acquires it.

// The most that a case is drawn with: eight copies of the descriptors of 532 tiles (one-wave), 4256.
constexpr u32 location_limit = 1 << 14;

struct location {
  const void* address;
  released* stored;
};

location locations[location_limit];

location& location_of(const void* address) {
  u64 index = mix(reinterpret_cast<u64>(address)) % location_limit;
  for (u32 probes = 0; probes < location_limit; ++probes) {
    location& found = locations[index];
    if (found.address == address) return found;
    if (found.address == nullptr) {
      found.address = address;
      return found;
    }
    index = (index + 1) % location_limit;
  }
  fault("more than %u atomic locations in one launch", location_limit);
}

released* release_now(fiber* self) {
  released* const record = &self->releases[self->release_count++ % released_limit];
  __tsan_release(record);
  return record;
}

void fences(fiber* self, u32 access, const void* address) {
  switch (access) {
    case LOOKBACK_ACCESS_RELAXED_STORE: location_of(address).stored = self->last_fence; break;
    case LOOKBACK_ACCESS_RELEASE_STORE: location_of(address).stored = release_now(self); break;
    case LOOKBACK_ACCESS_RELAXED_LOAD:
      if (released* const stored = location_of(address).stored) {
        self->pending[self->pending_count++ % released_limit] = stored;
      }
      break;
    case LOOKBACK_ACCESS_ACQUIRE_LOAD:
      if (released* const stored = location_of(address).stored) __tsan_acquire(stored);
      break;
    case LOOKBACK_ACCESS_ACQUIRE_RELEASE_FETCH_ADD: {
      location& updated = location_of(address);
      if (updated.stored) __tsan_acquire(updated.stored);
      updated.stored = release_now(self);
      break;
    }
    case LOOKBACK_ACCESS_FENCE:
      for (u32 i = 0; i < self->pending_count && i < released_limit; ++i) __tsan_acquire(self->pending[i]);
      self->pending_count = 0;
      self->last_fence = release_now(self);
      break;
    default: break;  // A relaxed fetch-and-add carries on what the store before it released.
  }
}

void set(u8* memory, std::size_t bytes, u8 value) {
  for (std::size_t i = 0; i < bytes; ++i) memory[i] = value;
}

// strcmp is one of those functions that ThreadSanitizer sees, and slow under it.
bool is_same(const char* left, const char* right) {
  if (left == right) return true;
  for (; *left == *right; ++left, ++right) {
    if (*left == 0) return true;
  }
  return false;
}

// ------------------------------------------------------------------ the executor's functions

fiber* fiber_of(lookback_thread* thread) { return reinterpret_cast<fiber*>(thread); }

warp& warp_of(fiber* self) { return self->owner->warps[self->thread.warp_index]; }

// The lanes in `mask` meet; the last one delivers. Whether the caller was the last.
bool meet(fiber* self, u32 mask, u32 collective, u32 bytes, const char* file, u32 line) {
  warp& mine = warp_of(self);
  meeting* found = nullptr;
  for (meeting& open : mine.meetings) {
    if (open.mask == mask) found = &open;
  }
  for (meeting& open : mine.meetings) {
    if (found == nullptr && open.mask == 0) {
      found = &open;
      *found = {mask, 0, collective, file, line};
    }
  }
  if (found == nullptr) fault("a warp's lanes wait in too many collectives at %s:%u", file, line);
  if (found->collective != collective || found->line != line || !is_same(found->file, file)) {
    fault("lanes of one mask meet at %s:%u and %s:%u", found->file, found->line, file, line);
  }
  if (mine.exited & mask) fault("%s:%u waits for a lane that has returned", file, line);
  found->arrived |= 1u << self->thread.lane_index;
  if (found->arrived != mask) {
    suspend();
    return false;
  }
  found->mask = 0;
  if (collective == LOOKBACK_COLLECTIVE_WARP_BARRIER) ++mine.barrier_count;
  if (bytes != 0) {
    u32 values[LOOKBACK_WARP_LANES][LOOKBACK_EXCHANGE_BYTES / 4];
    u32 ballot = 0;
    for (u32 lane = 0; lane < LOOKBACK_WARP_LANES; ++lane) {
      if (!(mask >> lane & 1)) continue;
      values[lane][0] = 0;
      lookback_copy_unseen(values[lane], mine.lanes[lane]->lane_value, bytes);
      if (values[lane][0] != 0) ballot |= 1u << lane;
    }
    for (u32 lane = 0; lane < LOOKBACK_WARP_LANES; ++lane) {
      if (!(mask >> lane & 1)) continue;
      const void* const value =
          collective == LOOKBACK_COLLECTIVE_BALLOT ? &ballot : values[mine.lanes[lane]->lane_source];
      lookback_copy_unseen(mine.lanes[lane]->lane_value, value, bytes);
    }
  }
  for (u32 lane = 0; lane < LOOKBACK_WARP_LANES; ++lane) {
    if ((mask >> lane & 1) && mine.lanes[lane] != self) make_ready(mine.lanes[lane]);
  }
  return true;
}

void rendezvous(lookback_thread* thread, u32 collective, const char* file, u32 line) {
  fiber* const self = fiber_of(thread);
  warp& mine = warp_of(self);
  u8* const barrier = collective == LOOKBACK_COLLECTIVE_WARP_BARRIER
                          ? &mine.barriers[mine.barrier_count % LOOKBACK_WARP_LANES]
                          : nullptr;
  if (barrier) __tsan_release(barrier);
  if (meet(self, LOOKBACK_FULL_WARP, collective, 0, file, line)) {
    mine.shown.parity ^= 1;
    maybe_preempt();
  }
  if (barrier) __tsan_acquire(barrier);
}

void exchange(lookback_thread* thread, u32 mask, u32 collective, u32 source_lane, void* value, u32 bytes,
              const char* file, u32 line) {
  fiber* const self = fiber_of(thread);
  warp& mine = warp_of(self);
  u8* const barrier = collective == LOOKBACK_COLLECTIVE_WARP_BARRIER
                          ? &mine.barriers[mine.barrier_count % LOOKBACK_WARP_LANES]
                          : nullptr;
  self->lane_value = value;
  self->lane_source = source_lane;
  if (barrier) __tsan_release(barrier);
  if (meet(self, mask, collective, bytes, file, line)) maybe_preempt();
  if (barrier) __tsan_acquire(barrier);
}

void block_barrier(lookback_thread* thread, const char* file, u32 line) {
  fiber* const self = fiber_of(thread);
  block* const mine = self->owner;
  if (mine->live != threads_of_block()) {
    fault("threads of block %llu have returned, others wait at the barrier %s:%u", thread->block_index, file, line);
  }
  if (mine->barrier_arrived != 0 && (mine->barrier_line != line || !is_same(mine->barrier_file, file))) {
    fault("threads of block %llu meet at %s:%u and %s:%u", thread->block_index, mine->barrier_file,
          mine->barrier_line, file, line);
  }
  mine->barrier_file = file;
  mine->barrier_line = line;
  // Two addresses in turn: nobody can be two barriers ahead of anybody.
  u8* const barrier = &mine->barriers[mine->barrier_count % 2];
  __tsan_release(barrier);
  if (++mine->barrier_arrived == threads_of_block()) {
    mine->barrier_arrived = 0;
    ++mine->barrier_count;
    for (u32 i = 0; i < threads_of_block(); ++i) {
      if (mine->threads[i] != self) make_ready(mine->threads[i]);
    }
    maybe_preempt();
  } else {
    suspend();
  }
  __tsan_acquire(barrier);
}

void spin_pause(lookback_thread* thread, const char*, u32) {
  sleepers[sleeper_count++] = fiber_of(thread);
  suspend();
}

void access_point(lookback_thread* thread, u32 access, const void* address, u32, const char*, u32) {
  maybe_preempt();
  ++total.protocol;
  const u32 kind = access & 0xff;
  progress |= kind == LOOKBACK_ACCESS_RELAXED_STORE || kind == LOOKBACK_ACCESS_RELEASE_STORE ||
              kind == LOOKBACK_ACCESS_PAYLOAD_STORE || kind >= LOOKBACK_ACCESS_RELAXED_FETCH_ADD;
  // What is of block scope releases nothing to other blocks.
  if (access & LOOKBACK_ACCESS_BLOCK_SCOPE) {
    location_of(address).stored = nullptr;
  } else {
    fences(fiber_of(thread), kind, address);
  }
}

// Zeros, not garbage: a kernel that reads what is not yet written may then go on until the write that
// completes the race, and does not take the program down before.
void* shared_storage(lookback_thread* thread, const void* key, u32 bytes, u32 alignment, const char* file, u32 line) {
  block* const mine = fiber_of(thread)->owner;
  for (u32 i = 0; i < mine->shared_count; ++i) {
    if (mine->shared_keys[i] == key) return mine->shared_addresses[i];
  }
  const std::size_t start = (mine->arena_used + alignment - 1) / alignment * alignment;
  if (start + bytes > arena_bytes || mine->shared_count == 16) fault("too much shared memory at %s:%u", file, line);
  mine->arena_used = start + bytes;
  const u32 number = mine->shared_count++;
  mine->shared_keys[number] = key;
  mine->shared_addresses[number] = mine->arena + start;
  set(mine->arena + start, bytes, 0);
  return mine->shared_addresses[number];
}

void misaligned(lookback_thread*, const void* address, u32 bytes, const char* file, u32 line) {
  fault("%u bytes at %p, which is no multiple of that, at %s:%u", bytes, address, file, line);
}

// Kernels with asynchronous copies are not among the jobs.
void copy_barrier_initialize(lookback_thread*, const void*, u32, const char* file, u32 line) {
  fault("a barrier of copies at %s:%u", file, line);
}
void copy_barrier_arrive(lookback_thread*, const void*, const char* file, u32 line) {
  fault("a barrier of copies at %s:%u", file, line);
}
void copy_barrier_expect(lookback_thread*, const void*, u32, const char* file, u32 line) {
  fault("a barrier of copies at %s:%u", file, line);
}
void copy_barrier_wait(lookback_thread*, const void*, u32, const char* file, u32 line) {
  fault("a barrier of copies at %s:%u", file, line);
}
void copy_to_shared(lookback_thread*, void*, const void*, u32, const void*, const char* file, u32 line) {
  fault("a copy at %s:%u", file, line);
}
void cluster_barrier_arrive(lookback_thread*, u32, const char* file, u32 line) {
  fault("a cluster barrier at %s:%u", file, line);
}
void cluster_barrier_wait(lookback_thread*, const char* file, u32 line) { fault("a cluster barrier at %s:%u", file, line); }
void store_to_cluster(lookback_thread*, const void*, const void*, u32, u32, const void*, const char* file, u32 line) {
  fault("a store into another block at %s:%u", file, line);
}

const lookback_executor executor = {rendezvous,        exchange,
                                    block_barrier,     spin_pause,
                                    access_point,      shared_storage,
                                    misaligned,        copy_barrier_initialize,
                                    copy_barrier_arrive, copy_barrier_expect,
                                    copy_barrier_wait, copy_to_shared,
                                    cluster_barrier_arrive, cluster_barrier_wait,
                                    store_to_cluster};

// ------------------------------------------------------------------ instances

// Inputs by position: what stands where shows in the result.
void make(u32& value, u64 index, u64 salt) { value = static_cast<u32>(mix(index ^ salt << 32)); }
void make(u64& value, u64 index, u64 salt) { value = mix(index ^ salt << 32); }
void make(lookback::affine_map& value, u64 index, u64 salt) {
  value = {mix(index ^ salt << 32) | 1, mix(~index ^ salt << 32)};
}
void make(lookback::index_interval& value, u64 index, u64 salt) {
  const u32 place = static_cast<u32>(salt * 1000 + 10 + index);
  value = {place, place};
}

template <class Operator>
void fill(void* array, u64 count, u64 salt) {
  using T = typename Operator::value_type;
  for (u64 i = 0; i < count; ++i) make(static_cast<T*>(array)[i], i, salt);
}

// The index of the first element that is not the scan's; n if there is none.
template <class Operator>
u64 first_wrong(const void* result, u64 n, u64 salt) {
  using T = typename Operator::value_type;
  T prefix = Operator::identity();
  for (u64 i = 0; i < n; ++i) {
    T item;
    make(item, i, salt);
    const T next = Operator::combine(prefix, item);
    const T expected = job.mode == LOOKBACK_MODE_INCLUSIVE ? next : prefix;
    const u8* const left = reinterpret_cast<const u8*>(&expected);
    const u8* const right = reinterpret_cast<const u8*>(static_cast<const T*>(result) + i);
    for (std::size_t byte = 0; byte < sizeof(T); ++byte) {
      if (left[byte] != right[byte]) return i;
    }
    prefix = next;
  }
  return n;
}

struct instance {
  u64 element, combination;  // positions in `ElementType::ALL` and `Operator::ALL`
  u64 bytes;
  lookback_kernel_body (*bodies)(u32 kernel);
  void (*fill)(void* array, u64 count, u64 salt);
  u64 (*first_wrong)(const void* result, u64 n, u64 salt);
};

template <class Operator>
constexpr instance instance_of(u64 element, u64 combination, lookback_kernel_body (*bodies)(u32)) {
  return {element,        combination, sizeof(typename Operator::value_type), bodies, fill<Operator>,
          first_wrong<Operator>};
}

const instance instances[] = {
    instance_of<lookback::operators::sum<u32>>(2, 0, lookback_bodies_0),
    instance_of<lookback::operators::sum<u64>>(4, 0, lookback_bodies_1),
    instance_of<lookback::operators::affine>(8, 6, lookback_bodies_2),
    instance_of<lookback::operators::intervals>(10, 8, lookback_bodies_3),
};

// ------------------------------------------------------------------ memory and launches

u8* allocate(std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse("no memory: %zu bytes", bytes);
  return static_cast<u8*>(memory);
}

struct {
  u8* input;
  u8* output;
  u8* scratch;
  u8* descriptors;
  lookback_control control;
  u64 capacity;
} workspace;

void* place(long long where) {
  switch (where) {
    case place_none: return nullptr;
    case place_input: return workspace.input;
    case place_output: return workspace.output;
    default: return workspace.scratch + where;
  }
}

// An exclusive scan must do without the last element.
u64 readable(u64 n) { return job.mode == LOOKBACK_MODE_EXCLUSIVE ? n - 1 : n; }

void run_step(const instance& chosen, const step& what, u32 host_epoch) {
  body = chosen.bodies(what.kernel);
  config = what.config;
  block_width = what.threads;
  arguments.input = place(what.input);
  arguments.output = place(what.output);
  arguments.spine = place(what.spine);
  arguments.control = &workspace.control;
  arguments.descriptors = workspace.descriptors;
  arguments.n = what.n;
  arguments.tiles = what.tiles;
  arguments.stride = what.stride;
  arguments.capacity = workspace.capacity;
  arguments.lead = what.lead;
  arguments.host_epoch = host_epoch;
  grid_blocks = what.grid_blocks;
  started_blocks = 0;
  finished_blocks = 0;
  idle_rounds = 0;
  for (location& known : locations) known = {nullptr, nullptr};
  for (idle_count = 0; idle_count < fiber_count / threads_of_block(); ++idle_count) {
    block& made = blocks[idle_count];
    for (u32 i = 0; i < threads_of_block(); ++i) made.threads[i] = &fibers[idle_count * threads_of_block() + i];
    idle[idle_count] = &made;
  }
  __tsan_release(&launch_start);
  for (u32 i = 0; i < job.resident_blocks; ++i) start_block();
  suspend();
  if (finished_blocks != grid_blocks) {
    fault("deadlock: %llu of %llu blocks ended", finished_blocks, grid_blocks);
  }
  __tsan_acquire(&launch_end);
}

void run_schedule(const instance& chosen) {
  random_state = mix(seed);
  // The plain order as well: thread 0 first, each until it has to wait.
  in_order = seed % 4 == 0;
  set(workspace.descriptors, workspace.capacity * job.descriptor_bytes, 0);
  workspace.control = {};
  u32 epoch = 1;
  for (launch_number = 0; launch_number < job.launches; ++launch_number) {
    const u64 salt = mix(seed * 1000 + launch_number) & 0xffff;
    const bool is_at_wrap = launch_number == 1 && job.wrap;
    const auto& scan = is_at_wrap ? job.small : job.whole;
    if (is_at_wrap) {
      workspace.control.completed_epochs = LOOKBACK_MAXIMUM_EPOCH - 1;
      epoch = LOOKBACK_MAXIMUM_EPOCH;
    }
    set(workspace.output, scan.n * chosen.bytes, 0xa5);
    set(workspace.scratch, job.scratch_bytes, 0xa5);
    chosen.fill(workspace.input, readable(scan.n), salt);
    for (u32 i = 0; i < scan.step_count; ++i) run_step(chosen, scan.steps[i], job.frozen ? 1 : epoch);
    const u64 wrong = chosen.first_wrong(workspace.output, scan.n, salt);
    if (wrong < scan.n) {
      std::printf("wrong seed=%llu launch=%llu index=%llu\n", seed, launch_number, wrong);
      finish();
    }
    epoch = epoch == LOOKBACK_MAXIMUM_EPOCH ? 1 : epoch + 1;
  }
  ++total.schedules;
}

void make_fiber(fiber& made, void (*function)()) {
  made.sanitizer = __tsan_create_fiber(0);
  made.thread.counters = &made.counters;
  made.thread.executor = &executor;
  getcontext(&made.context);
  made.context.uc_stack.ss_sp = allocate(stack_bytes);
  made.context.uc_stack.ss_size = stack_bytes;
  makecontext(&made.context, function, 0);
}

// What no kernel may touch is written once by a thread that nobody is ordered with, so every access is a race.
struct {
  u8* start;
  std::size_t bytes;
} forbidden[8];
u32 forbidden_count;

void forbid(u8* start, std::size_t bytes) { forbidden[forbidden_count++] = {start, bytes}; }

fiber outsider;
u8 forbidden_made;

void write_forbidden() {
  for (;;) {
    __tsan_acquire(&forbidden_made);  // making memory is a write of it
    for (u32 i = 0; i < forbidden_count; ++i) __tsan_write_range(forbidden[i].start, forbidden[i].bytes);
    switch_to(&main_fiber);
  }
}

// `bytes` that kernels may use, `offset` above a multiple of 16, between guards.
u8* allocate_guarded(std::size_t bytes, std::size_t offset) {
  u8* const memory = allocate(bytes + offset + 2 * guard_bytes);
  u8* const start = memory + guard_bytes + offset;
  forbid(memory, guard_bytes + offset);
  forbid(start + bytes, guard_bytes);
  return start;
}

void check(const step& what, u32& threads, u64& most_blocks) {
  if (what.threads > thread_limit || what.threads % LOOKBACK_WARP_LANES != 0) {
    refuse("%u threads a block: the program takes 32 or %u", what.threads, thread_limit);
  }
  if (what.kernel >= LOOKBACK_KERNELS) refuse("no kernel %u", what.kernel);
  if (what.threads > threads) threads = what.threads;
  if (what.grid_blocks > most_blocks) most_blocks = what.grid_blocks;
}

void prepare(const instance& chosen) {
  u32 threads = 0;
  u64 most_blocks = 0;
  for (u32 i = 0; i < job.whole.step_count; ++i) check(job.whole.steps[i], threads, most_blocks);
  for (u32 i = 0; i < job.small.step_count; ++i) check(job.small.steps[i], threads, most_blocks);
  for (u32 i = 0; i < job.canary.step_count; ++i) check(job.canary.steps[i], threads, most_blocks);
  if (job.whole.n == 0 || job.resident_blocks == 0) refuse("nothing to do");
  if (job.small.n > job.whole.n || (job.wrap && job.small.step_count == 0)) refuse("no smaller scan");
  if (job.canary.n == 0 || job.canary.step_count != 1) refuse("no canary");
  if (most_blocks > 1024) refuse("%llu blocks: the program takes 1024", most_blocks);
  if (job.resident_blocks > fiber_limit || job.resident_blocks * threads > fiber_limit) {
    refuse("%llu resident blocks of %u threads are more than the %u threads that ThreadSanitizer keeps apart",
           job.resident_blocks, threads, fiber_limit);
  }
  u32 most = static_cast<u32>(job.resident_blocks + 2) * threads;
  if (most > fiber_limit) most = fiber_limit / threads * threads;
  while (fiber_count < most) make_fiber(fibers[fiber_count++], live);

  if (most_blocks > arena_count) {
    arena_count = most_blocks;
    arenas = allocate(arena_count * arena_bytes);
  }
  const std::size_t readable_bytes = readable(job.whole.n) * chosen.bytes;
  forbidden_count = 0;
  workspace.output =
      allocate_guarded(job.whole.n * chosen.bytes, job.in_place ? job.input_offset : job.output_offset);
  workspace.input = job.in_place ? workspace.output : allocate_guarded(readable_bytes, job.input_offset);
  workspace.scratch = allocate_guarded(job.scratch_bytes, 0);
  workspace.capacity = (job.descriptors + 3) / 4 * 4;  // as the split layout asks
  workspace.descriptors = allocate_guarded(workspace.capacity * job.descriptor_bytes, 0);
  __tsan_release(&forbidden_made);
  switch_to(&outsider);
}

void say_clean() {
  std::printf("clean schedules=%llu blocks=%llu switches=%llu protocol=%llu fibers=%u\n", total.schedules, total.blocks,
              total.switches, total.protocol, fiber_count);
}

// Runs the look-back whose tags are stored relaxed until its race is reported (`__tsan_on_report`).
[[noreturn]] void run_canary() {
  is_canary = true;
  const instance& chosen = instances[0];
  const u64 bytes = job.canary.n * chosen.bytes;
  job.mutant = lookback::mutant_number("relaxed_tag_store");
  job.reverse = 0;
  workspace.input = allocate(bytes);
  workspace.output = allocate(bytes);
  workspace.capacity = (job.canary.steps[0].tiles + 3) / 4 * 4;
  const u64 descriptor_bytes = workspace.capacity * (sizeof(u32) + 2 * chosen.bytes);  // the split layout
  workspace.descriptors = allocate(descriptor_bytes);
  const u64 schedules = seed + 32;
  while (++seed < schedules) {
    random_state = mix(seed);
    in_order = false;
    set(workspace.descriptors, descriptor_bytes, 0);
    workspace.control = {};
    run_step(chosen, job.canary.steps[0], 1);
  }
  sleeps();
}

}  // namespace

extern "C" void lookback_copy_unseen(void* to, const void* from, u32 bytes) {
  // Byte by byte behind the compiler's back: it would make this a call of memcpy, which ThreadSanitizer sees.
  for (u32 i = 0; i < bytes; ++i) {
    static_cast<u8*>(to)[i] = static_cast<const u8*>(from)[i];
    asm volatile("" ::: "memory");
  }
}

extern "C" void __tsan_on_report(const void*) {
  if (is_canary) {
    // Nobody needs this report, and an ordinary exit waits for it.
    say_clean();
    std::fflush(stdout);
    syscall(SYS_exit_group, 0);
  }
  // The report follows, and then the end of the process. The other thread's block may have ended and its fiber been
  // taken by another one, so only this one can be named.
  std::printf("race seed=%llu launch=%llu block=%llu thread=%u\n", seed, launch_number, running->thread.block_index,
              running->thread.thread_index);
  std::fflush(stdout);
}

const instance& instance_of_job() {
  for (const instance& known : instances) {
    if (known.element == job.element && known.combination == job.combination) return known;
  }
  refuse("no kernels of element %llu and operator %llu", job.element, job.combination);
}

int main() {
  main_fiber.sanitizer = __tsan_get_current_fiber();
  make_fiber(outsider, write_forbidden);
  u32 jobs = 0;
  for (; read_job(); ++jobs) {
    std::printf("job %u\n", jobs);
    std::fflush(stdout);
    const instance& chosen = instance_of_job();
    prepare(chosen);
    for (u64 i = 0; i < job.seeds; ++i) {
      seed = job.first_seed + i;
      run_schedule(chosen);
    }
  }
  if (jobs == 0) {  // asked whether it can run at all
    std::printf("ready\n");
    finish();
  }
  run_canary();
}
