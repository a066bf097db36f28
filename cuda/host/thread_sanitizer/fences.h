// Fences, told to ThreadSanitizer, which does not know them.
//
// PTX and C++ have it alike: a fence followed by a store, and a load of that store followed by a fence, are a release
// and an acquire, of what stands before the first fence. Every atomic location remembers what its last store released
// (its own release, or the fence before it); a relaxed load keeps that in mind, and the next fence acquires it.
#pragma once

#include "fibers.h"

namespace {

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

}  // namespace
