// Tile descriptors: what a tile tells the tiles after it. A status (invalid, aggregate, inclusive
// prefix) under a tag that names the launch (its epoch), and a value. A descriptor of another launch
// is simply invalid, so nothing is cleared between launches.
//
// Three layouts:
//   packed 64    value of up to 4 bytes and tag in one 64-bit word
//   packed 128   value of up to 8 bytes and tag in one 128-bit word
//   split        tag, and separate slots for aggregate and prefix
// In the packed ones value and tag are one single-copy atomic scalar: whoever sees the tag sees the
// value, and relaxed accesses suffice. In the split one the tag is stored with release after its slot
// and loaded with acquire before it; a slot is written once a launch, so a reader never meets a
// half-replaced value.
#pragma once

#include "config.cuh"
#include "memory.cuh"

namespace lookback {

template <class T>
struct descriptor_view {
  u32 status;
  T value;
};

DEVICE u32 descriptor_tag(u32 epoch, u32 status) { return (epoch << LOOKBACK_STATUS_BITS) | status; }

// The status that a tag has in the launch of `epoch`.
DEVICE u32 descriptor_status(u32 tag, u32 epoch) {
  return tag >> LOOKBACK_STATUS_BITS == epoch ? tag & ((1u << LOOKBACK_STATUS_BITS) - 1)
                                               : static_cast<u32>(LOOKBACK_STATUS_INVALID);
}

template <class T>
struct packed_64 {
  u64* words;

  DEVICE explicit packed_64(const lookback_launch& launch) : words(static_cast<u64*>(launch.descriptors)) {}

  DEVICE void publish(u64 tile, u32 epoch, u32 status, T value) const {
    u32 bits = 0;
    memcpy(&bits, &value, sizeof(T));
    // Relaxed, pairs with the load in `read`: the word carries its value with it.
    memory::store_relaxed(words + tile, static_cast<u64>(descriptor_tag(epoch, status)) << 32 | bits);
  }

  DEVICE descriptor_view<T> read(u64 tile, u32 epoch) const {
    // Relaxed, pairs with the store in `publish`.
    const u64 word = memory::load_relaxed(words + tile);
    const u32 bits = static_cast<u32>(word);
    descriptor_view<T> view;
    view.status = descriptor_status(static_cast<u32>(word >> 32), epoch);
    memcpy(&view.value, &bits, sizeof(T));
    return view;
  }

  DEVICE void invalidate(u64 tile) const { memory::store_relaxed(words + tile, static_cast<u64>(0)); }
};

template <class T>
struct packed_128 {
  word128* words;

  DEVICE explicit packed_128(const lookback_launch& launch) : words(static_cast<word128*>(launch.descriptors)) {}

  DEVICE void publish(u64 tile, u32 epoch, u32 status, T value) const {
    word128 word = {0, descriptor_tag(epoch, status)};
    memcpy(&word.low, &value, sizeof(T));
    // Relaxed, pairs with the load in `read`: the word carries its value with it.
    memory::store_relaxed(words + tile, word);
  }

  DEVICE descriptor_view<T> read(u64 tile, u32 epoch) const {
    // Relaxed, pairs with the store in `publish`.
    const word128 word = memory::load_relaxed(words + tile);
    descriptor_view<T> view;
    view.status = descriptor_status(static_cast<u32>(word.high), epoch);
    memcpy(&view.value, &word.low, sizeof(T));
    return view;
  }

  DEVICE void invalidate(u64 tile) const { memory::store_relaxed(words + tile, word128{0, 0}); }
};

// `capacity` tags, then as many aggregates, then as many prefixes; capacity is a multiple of 4, so that
// every slot is aligned.
template <class T>
struct split {
  u32* tags;
  T* aggregates;
  T* prefixes;

  DEVICE explicit split(const lookback_launch& launch) : tags(static_cast<u32*>(launch.descriptors)) {
    aggregates = reinterpret_cast<T*>(tags + launch.capacity);
    prefixes = aggregates + launch.capacity;
  }

  DEVICE T* slots(u32 status) const { return status == LOOKBACK_STATUS_AGGREGATE ? aggregates : prefixes; }

  DEVICE void publish(u64 tile, u32 epoch, u32 status, T value) const {
    memory::store_payload(slots(status) + tile, value);
    // Release, pairs with the acquire in `read`: the slot is written before the tag says so.
    memory::store_release(tags + tile, descriptor_tag(epoch, status));
  }

  DEVICE descriptor_view<T> read(u64 tile, u32 epoch) const {
    descriptor_view<T> view;
    // Acquire, pairs with the release in `publish`: the slot that the tag names is written.
    view.status = descriptor_status(memory::load_acquire(tags + tile), epoch);
    view.value = T();
    if (view.status != LOOKBACK_STATUS_INVALID) view.value = memory::load_payload(slots(view.status) + tile);
    return view;
  }

  DEVICE void invalidate(u64 tile) const { memory::store_relaxed(tags + tile, 0u); }
};

// Calls `body` with the descriptors of the launch in the layout that was chosen.
template <class T, class Config, class Body>
DEVICE void with_descriptors(Config config, const lookback_launch& launch, Body body) {
  if constexpr (sizeof(T) <= 4) {
    if (config.descriptor == LOOKBACK_DESCRIPTOR_PACKED_64) return body(packed_64<T>(launch));
  }
  if constexpr (sizeof(T) <= 8) {
    if (config.descriptor == LOOKBACK_DESCRIPTOR_PACKED_128) return body(packed_128<T>(launch));
  }
  body(split<T>(launch));
}

}  // namespace lookback
