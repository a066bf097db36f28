// Barriers of copies, the copies that they count, and clusters, told to ThreadSanitizer, which knows none of them.
// Phases are as on the CPU device (`src/cpu/executor/copies.rs`).
//
// A copy and a store into another block land at a later switch, as accesses of fibers of their own, the engines, on
// which no code runs. An engine knows what the asking thread knew when it asked, and its accesses are handed over by
// the phase of the barrier alone: whoever does not wait for that has a race with them. A store hands over what its
// thread knew, too, which is more than a GPU promises: an order that rests on that is not seen to be missing.
//
// A barrier is initialised by a write and used by reads, which nobody sees but ThreadSanitizer: to use it without an
// order behind that is a race. The write is that of a fiber of the block's own, because a relaxed arrival at the
// cluster's barrier hands over the initialisation (behind its fence), and nothing else that the thread did.
#pragma once

#include "fences.h"

namespace {

// Both together with the most fibers of blocks, 7 times 32, are fewer than `fiber_limit`.
constexpr u32 engine_limit = 14;
constexpr u32 initialiser_limit = block_limit;
static_assert(block_limit * LOOKBACK_WARP_LANES + engine_limit + initialiser_limit <= fiber_limit, "too many fibers");
void* engines[engine_limit];
void* initialisers[initialiser_limit];  // of each block
// Whoever asked for what an engine does now; for reports.
const fiber* asker_of_landing;

// What lands later.
struct landing {
  u8* to;
  const u8* from;  // null for a store, whose value it is
  u8 value[LOOKBACK_VECTOR_BYTES];
  u32 bytes;
  copy_barrier* counted_by;
  const block* target;
  const fiber* asker;
  void* call;  // where in the kernel
  released* asked;
  void* engine;
};

// More than a ring of the most stages and a cluster have at one time.
constexpr u32 under_way_limit = 256;
landing under_way[under_way_limit];

struct {
  u64 phase;
  u64 arrived;
  u8 orders[2];  // of phases in turn: nobody can be two ahead of anybody
  fiber* waiting[fiber_limit];
  u32 waiting_count;
} cluster;

void begin_launch_of_copies() {
  under_way_count = 0;
  cluster.phase = 0;
  cluster.arrived = 0;
  cluster.waiting_count = 0;
}

// Fibers on which no code runs. Made between launches, because a new fiber knows what its maker does.
void make_engines() {
  if (engines[0] != nullptr) return;
  for (void*& engine : engines) engine = __tsan_create_fiber(0);
  for (void*& initialiser : initialisers) initialiser = __tsan_create_fiber(0);
}

// What is told to ThreadSanitizer meanwhile is told of another fiber.
struct acting_as {
  explicit acting_as(void* sanitizer) { __tsan_switch_to_fiber(sanitizer, without_synchronisation); }
  ~acting_as() { __tsan_switch_to_fiber(running->sanitizer, without_synchronisation); }
};

// Accesses meanwhile are those of this call in a kernel.
struct called_from {
  explicit called_from(void* call) { __tsan_func_entry(call); }
  ~called_from() { __tsan_func_exit(); }
};

fiber* fiber_of(lookback_thread* thread) { return reinterpret_cast<fiber*>(thread); }

void* initialiser_of(const block* owner) { return initialisers[owner - blocks]; }

copy_barrier* find_barrier(block* owner, const void* address) {
  for (u32 i = 0; i < owner->copy_barrier_count; ++i) {
    if (owner->copy_barriers[i].address == address) return &owner->copy_barriers[i];
  }
  return nullptr;
}

copy_barrier& barrier_of(block* owner, const void* address, const char* file, u32 line) {
  copy_barrier* const found = find_barrier(owner, address);
  if (found == nullptr) fault("a barrier of copies that nobody has initialised, at %s:%u", file, line);
  return *found;
}

// A barrier of the thread's own block that it uses.
copy_barrier& used_barrier(fiber* self, const void* address, void* call, const char* file, u32 line) {
  copy_barrier& used = barrier_of(self->owner, address, file, line);
  const called_from here(call);
  __tsan_read_range(&used.initialised, 1);
  return used;
}

// Ends the current phase if nothing is missing any more.
void complete_phase(copy_barrier& barrier) {
  if (barrier.arrived != barrier.arrivals || barrier.copies != 0 || barrier.expected_bytes != 0) return;
  ++barrier.phase;
  barrier.arrived = 0;
  for (u32 i = 0; i < barrier.waiting_count; ++i) make_ready(barrier.waiting[i]);
  barrier.waiting_count = 0;
}

bool is_under_way_to(const block* target) {
  for (u32 i = 0; i < under_way_count; ++i) {
    if (under_way[i].target == target) return true;
  }
  return false;
}

void land(u32 position) {
  const landing what = under_way[position];
  --under_way_count;
  for (u32 i = position; i < under_way_count; ++i) under_way[i] = under_way[i + 1];
  copy_barrier& barrier = *what.counted_by;
  asker_of_landing = what.asker;
  {
    const acting_as engine(what.engine);
    const called_from here(what.call);
    __tsan_acquire(what.asked);
    __tsan_read_range(&barrier.initialised, 1);
    if (what.from != nullptr) __tsan_read_range(const_cast<u8*>(what.from), what.bytes);
    __tsan_write_range(what.to, what.bytes);
    __tsan_release(&barrier.orders[barrier.phase & 1]);
    __tsan_release(&launch_end);
  }
  asker_of_landing = nullptr;
  lookback_copy_unseen(what.to, what.from != nullptr ? what.from : what.value, what.bytes);
  if (what.from != nullptr) {
    --barrier.copies;
  } else {
    barrier.expected_bytes -= what.bytes;
  }
  progress = true;
  complete_phase(barrier);
}

void put_under_way(fiber* self, landing what, const char* file, u32 line) {
  const bool is_copy = what.from != nullptr;
  copy_barrier& barrier = *what.counted_by;
  if (!(is_copy ? barrier.is_there_for_copies : barrier.is_there_for_cluster)) {
    fault("%s counted by a barrier that nobody has said to be there, at %s:%u", is_copy ? "a copy" : "a store", file,
          line);
  }
  if (under_way_count == under_way_limit) fault("more than %u copies under way at %s:%u", under_way_limit, file, line);
  // A block's engines in turn, and none of another block's: all that one engine does and was told has an order.
  const u32 engines_of_block = engine_limit / (fiber_count / block_threads);
  const u32 first = static_cast<u32>(self->owner - blocks) * engines_of_block;
  what.engine = engines[first + self->owner->copies_asked++ % engines_of_block];
  what.asker = self;
  what.asked = release_now(self);
  if (is_copy) ++barrier.copies;
  under_way[under_way_count++] = what;
}

void copy_barrier_initialize(lookback_thread* thread, const void* address, u32 arrivals, const char* file, u32 line) {
  void* const call = __builtin_return_address(0);
  maybe_preempt();
  block* const owner = fiber_of(thread)->owner;
  copy_barrier* made = find_barrier(owner, address);
  if (made == nullptr) {
    if (owner->copy_barrier_count == copy_barrier_limit) fault("too many barriers of copies at %s:%u", file, line);
    made = &owner->copy_barriers[owner->copy_barrier_count++];
  }
  made->address = address;
  made->arrivals = arrivals;
  made->arrived = made->copies = made->phase = made->waiting_count = 0;
  made->expected_bytes = 0;
  made->is_there_for_copies = made->is_there_for_cluster = false;
  {
    const acting_as initialiser(initialiser_of(owner));
    const called_from here(call);
    __tsan_acquire(&launch_start);
    __tsan_write_range(&made->initialised, 1);
    __tsan_release(&made->initialised);
    __tsan_release(&launch_end);
  }
  __tsan_acquire(&made->initialised);
}

void copy_barriers_initialized(lookback_thread* thread, u32 for_cluster, const char*, u32) {
  maybe_preempt();
  fiber* const self = fiber_of(thread);
  for (u32 i = 0; i < self->owner->copy_barrier_count; ++i) {
    copy_barrier& made = self->owner->copy_barriers[i];
    (for_cluster ? made.is_there_for_cluster : made.is_there_for_copies) = true;
  }
  if (for_cluster) self->hands_over_barriers = true;
}

void copy_barrier_arrive(lookback_thread* thread, const void* address, u32 is_release, const char* file, u32 line) {
  void* const call = __builtin_return_address(0);
  maybe_preempt();
  copy_barrier& barrier = used_barrier(fiber_of(thread), address, call, file, line);
  if (++barrier.arrived > barrier.arrivals) {
    fault("more arrivals than a barrier was initialised for, at %s:%u", file, line);
  }
  if (is_release) __tsan_release(&barrier.orders[barrier.phase & 1]);
  progress = true;
  complete_phase(barrier);
  // A phase for each tile, and those in which none is left.
  if (barrier.phase > arguments.tiles + 2) {
    fault("a barrier goes through %u phases, at %s:%u", barrier.phase, file, line);
  }
}

void copy_barrier_expect(lookback_thread* thread, const void* address, u32 bytes, const char* file, u32 line) {
  void* const call = __builtin_return_address(0);
  maybe_preempt();
  used_barrier(fiber_of(thread), address, call, file, line).expected_bytes += bytes;
}

// As on a GPU, a thread that comes a whole phase too late waits for the next one of that parity.
void copy_barrier_wait(lookback_thread* thread, const void* address, u32 parity, u32 is_acquire, const char* file,
                       u32 line) {
  void* const call = __builtin_return_address(0);
  maybe_preempt();
  fiber* const self = fiber_of(thread);
  copy_barrier& barrier = used_barrier(self, address, call, file, line);
  while ((barrier.phase & 1) == parity) {
    barrier.waiting[barrier.waiting_count++] = self;
    suspend();
  }
  if (is_acquire) __tsan_acquire(&barrier.orders[parity]);
}

void copy_to_shared(lookback_thread* thread, void* to, const void* from, u32 bytes, const void* barrier,
                    const char* file, u32 line) {
  void* const call = __builtin_return_address(0);
  maybe_preempt();
  fiber* const self = fiber_of(thread);
  landing what = {};
  what.to = static_cast<u8*>(to);
  what.from = static_cast<const u8*>(from);
  what.bytes = bytes;
  what.counted_by = &used_barrier(self, barrier, call, file, line);
  what.target = self->owner;
  what.call = call;
  put_under_way(self, what, file, line);
}

void need_cluster(const char* file, u32 line) {
  if (!is_cluster) fault("the grid is no cluster, at %s:%u", file, line);
}

void cluster_barrier_arrive(lookback_thread* thread, u32 is_release, const char* file, u32 line) {
  need_cluster(file, line);
  maybe_preempt();
  fiber* const self = fiber_of(thread);
  if (self->has_arrived) fault("a thread arrives twice at the cluster's barrier, at %s:%u", file, line);
  self->has_arrived = true;
  self->cluster_phase = cluster.phase;
  u8* const order = &cluster.orders[cluster.phase & 1];
  if (is_release) {
    __tsan_release(order);
  } else if (self->hands_over_barriers) {
    const acting_as initialiser(initialiser_of(self->owner));
    __tsan_release(order);
  }
  progress = true;
  if (++cluster.arrived != grid_blocks * block_threads) return;
  ++cluster.phase;
  cluster.arrived = 0;
  for (u32 i = 0; i < cluster.waiting_count; ++i) make_ready(cluster.waiting[i]);
  cluster.waiting_count = 0;
}

void cluster_barrier_wait(lookback_thread* thread, const char* file, u32 line) {
  need_cluster(file, line);
  maybe_preempt();
  fiber* const self = fiber_of(thread);
  if (!self->has_arrived) fault("a thread waits at the cluster's barrier and has not arrived, at %s:%u", file, line);
  while (cluster.phase == self->cluster_phase) {
    cluster.waiting[cluster.waiting_count++] = self;
    suspend();
  }
  __tsan_acquire(&cluster.orders[self->cluster_phase & 1]);
  self->has_arrived = false;
}

// The place in a block of the cluster that is `place` in the caller's shared memory.
u8* place_in(const block* caller, const block* target, const void* place, u32 bytes, const char* file, u32 line) {
  const u8* const wanted = static_cast<const u8*>(place);
  for (u32 i = 0; i < caller->shared_count; ++i) {
    const u8* const start = caller->shared_addresses[i];
    if (wanted < start || wanted + bytes > start + caller->shared_bytes[i]) continue;
    for (u32 j = 0; j < target->shared_count; ++j) {
      if (target->shared_keys[j] == caller->shared_keys[i]) return target->shared_addresses[j] + (wanted - start);
    }
    // One that has begun and not declared it is not far enough either.
    fault("a store into a block that has not started, at %s:%u", file, line);
  }
  fault("a store into another block, to no place in shared memory, at %s:%u", file, line);
}

void store_to_cluster(lookback_thread* thread, const void* place, const void* value, u32 bytes, u32 rank,
                      const void* barrier, const char* file, u32 line) {
  void* const call = __builtin_return_address(0);
  need_cluster(file, line);
  maybe_preempt();
  fiber* const self = fiber_of(thread);
  block* target = nullptr;
  for (u64 i = 0; i < grid_blocks; ++i) {
    if (blocks[i].threads[0]->thread.block_index == rank) target = &blocks[i];
  }
  if (target == nullptr) fault("a store into block %u of a cluster of %llu, at %s:%u", rank, grid_blocks, file, line);
  if (!target->has_begun) fault("a store into a block that has not started, at %s:%u", file, line);
  if (target->live == 0) fault("a store into a block that has ended, at %s:%u", file, line);
  landing what = {};
  what.to = place_in(self->owner, target, place, bytes, file, line);
  lookback_copy_unseen(what.value, value, bytes);
  what.bytes = bytes;
  what.counted_by = &barrier_of(target, place_in(self->owner, target, barrier, 1, file, line), file, line);
  what.target = target;
  what.call = call;
  put_under_way(self, what, file, line);
}

}  // namespace
