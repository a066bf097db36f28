// The executor's functions, as `platform.h` and `async_copy.h` call them.
#pragma once

#include "copies.h"

namespace {

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

// The same, with what a warp barrier orders; the parity changes where the last lane comes.
void meet_in_order(fiber* self, u32 mask, u32 collective, u32 bytes, u32 parity_change, const char* file, u32 line) {
  warp& mine = warp_of(self);
  u8* const barrier = collective == LOOKBACK_COLLECTIVE_WARP_BARRIER
                          ? &mine.barriers[mine.barrier_count % LOOKBACK_WARP_LANES]
                          : nullptr;
  if (barrier) __tsan_release(barrier);
  if (meet(self, mask, collective, bytes, file, line)) {
    mine.shown.parity ^= parity_change;
    maybe_preempt();
  }
  if (barrier) __tsan_acquire(barrier);
}

void rendezvous(lookback_thread* thread, u32 collective, const char* file, u32 line) {
  meet_in_order(fiber_of(thread), LOOKBACK_FULL_WARP, collective, 0, 1, file, line);
}

void exchange(lookback_thread* thread, u32 mask, u32 collective, u32 source_lane, void* value, u32 bytes,
              const char* file, u32 line) {
  fiber* const self = fiber_of(thread);
  self->lane_value = value;
  self->lane_source = source_lane;
  meet_in_order(self, mask, collective, bytes, 0, file, line);
}

void block_barrier(lookback_thread* thread, const char* file, u32 line) {
  fiber* const self = fiber_of(thread);
  block* const mine = self->owner;
  if (mine->live != block_threads) {
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
  if (++mine->barrier_arrived == block_threads) {
    mine->barrier_arrived = 0;
    ++mine->barrier_count;
    for (u32 i = 0; i < block_threads; ++i) {
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
  // What is of block scope releases nothing to other blocks, and acquires nothing of theirs.
  if (access & LOOKBACK_ACCESS_BLOCK_SCOPE) {
    const bool is_load = kind == LOOKBACK_ACCESS_RELAXED_LOAD || kind == LOOKBACK_ACCESS_ACQUIRE_LOAD;
    if (!is_load && kind != LOOKBACK_ACCESS_FENCE) location_of(address).stored = nullptr;
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
  if (key == nullptr && bytes > dynamic_bytes) {
    fault("a block asks for %u bytes of dynamic shared memory at %s:%u, the launch gives it %llu", bytes, file, line,
          dynamic_bytes);
  }
  const u32 number = mine->shared_count++;
  mine->shared_keys[number] = key;
  mine->shared_addresses[number] = mine->arena + start;
  mine->shared_bytes[number] = bytes;
  set(mine->arena + start, bytes, 0);
  return mine->shared_addresses[number];
}

void misaligned(lookback_thread*, const void* address, u32 bytes, const char* file, u32 line) {
  fault("%u bytes at %p, which is no multiple of that, at %s:%u", bytes, address, file, line);
}

// One launch after the other here.
void allow_next_launch(lookback_thread*, const char*, u32) {}
void wait_for_launches_before(lookback_thread*, const char*, u32) {}

// Nobody looks.
void trace_step(lookback_thread*, u32, u64, u32, u32) {}

const lookback_executor executor = {
    rendezvous, exchange, block_barrier, spin_pause, access_point, shared_storage, misaligned,
    copy_barrier_initialize, copy_barriers_initialized, copy_barrier_arrive, copy_barrier_expect, copy_barrier_wait,
    copy_to_shared, cluster_barrier_arrive, cluster_barrier_wait, store_to_cluster, allow_next_launch,
    wait_for_launches_before, trace_step,
};

}  // namespace
