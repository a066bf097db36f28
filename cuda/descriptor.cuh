// Tile descriptors: what a tile tells the tiles after it. A status (invalid, aggregate, inclusive
// prefix) under a tag that names the launch (its epoch), and a value. A descriptor of another launch
// is simply invalid, so nothing is cleared between launches.
//
// Three layouts:
//   packed 64    value of up to 4 bytes and tag in one 64-bit word
//   packed 128   12 bytes of the value and tag in one 128-bit word, or in as many words as the value needs
//   split        tag, and separate slots for aggregate and prefix
// In the packed ones a word with its tag is one single-copy atomic scalar: whoever sees the tag sees
// what the word has of the value, and relaxed accesses suffice. Words of one value are read together, and a status counts where all of
// them have it: one trip, where the split layout takes two. In the split one the tag is stored with release after its slot
// and loaded with acquire before it; a slot is written once a launch, so a reader never meets a
// half-replaced value.
#pragma once

#include "config.cuh"
#include "memory.cuh"
#include "problem/problem.cuh"

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

// What look-ahead asks of descriptors where all tiles are one GPU's; `scan/dealt.cuh` has other answers.
struct of_one_gpu {
  // The tile's place among all.
  DEVICE u64 place_of(u64 tile) const { return tile; }
  // Waits until other GPUs have no use for what the launch will overwrite.
  DEVICE void await_others(u32) const {}
  // Whether nobody is to wait any more; by all lanes of a warp.
  DEVICE bool warp_is_given_up() const { return false; }
  // Waits until other GPUs have published all of the launch; by one thread, before tags repeat.
  DEVICE void await_last_publications() const {}
  // Tells other GPUs that so many launches are completed.
  DEVICE void complete(u32) const {}
};

template <class Problem>
struct packed_64 : of_one_gpu {
  using T = typename Problem::state_type;
  using published_type = typename Problem::published_type;
  static constexpr u32 count = 1;  // of words
  u64* words;

  DEVICE packed_64(void* memory, u64) : words(static_cast<u64*>(memory)) {}

  DEVICE void publish(u64 tile, u32 epoch, u32 status, T value) const {
    const published_type published = Problem::publish(value);
    u32 bits = 0;
    memcpy(&bits, &published, sizeof(published));
    const u64 word = static_cast<u64>(descriptor_tag(epoch, status)) << 32 | bits;
    // Relaxed, pairs with the load in `read`: the word carries its value with it.
    memory::store_relaxed(words + tile, word);
  }

  DEVICE descriptor_view<T> read(u64 tile, u32 epoch) const {
    // Relaxed, pairs with the store in `publish`.
    const u64 word = memory::load_relaxed(words + tile);
    const u32 bits = static_cast<u32>(word);
    const u32 status = descriptor_status(static_cast<u32>(word >> 32), epoch);
    published_type published;
    memcpy(&published, &bits, sizeof(published));
    return {status, Problem::adopt(published)};
  }

  // Relaxed, pairs with the loads of later launches, which the stream orders behind.
  DEVICE void invalidate(u64 tile) const { memory::store_relaxed(words + tile, static_cast<u64>(0)); }
};

template <class Problem>
struct packed_128 : of_one_gpu {
  using T = typename Problem::state_type;
  using published_type = typename Problem::published_type;
  static constexpr u32 bytes = used_bytes<published_type>::value;
  static constexpr u32 bytes_of_word = LOOKBACK_PACKED_128_BYTES;
  static constexpr u32 count = (bytes + bytes_of_word - 1) / bytes_of_word;
  word128* words;

  DEVICE packed_128(void* memory, u64) : words(static_cast<word128*>(memory)) {}

  // Bytes of the value in one of its words: the first eight below the tag, the others above it.
  DEVICE_CONSTEXPR static u32 bytes_in(u32 word) { return bytes - word * bytes_of_word < bytes_of_word ? bytes - word * bytes_of_word : bytes_of_word; }
  DEVICE_CONSTEXPR static u32 low_bytes_in(u32 word) { return bytes_in(word) < sizeof(u64) ? bytes_in(word) : static_cast<u32>(sizeof(u64)); }
  DEVICE_CONSTEXPR static u32 high_bytes_in(u32 word) { return bytes_in(word) - low_bytes_in(word); }

  DEVICE void publish(u64 tile, u32 epoch, u32 status, T value) const {
    const published_type published = Problem::publish(value);
    LOOKBACK_UNROLL
    for (u32 i = 0; i < count; ++i) {
      const u8* const from = reinterpret_cast<const u8*>(&published) + i * bytes_of_word;
      word128 word = {0, descriptor_tag(epoch, status)};
      memcpy(&word.low, from, low_bytes_in(i));
      u32 behind = 0;
      memcpy(&behind, from + low_bytes_in(i), high_bytes_in(i));
      word.high |= static_cast<u64>(behind) << 32;
      // Relaxed, pairs with the load in `read`: the word carries its part of the value with it.
      memory::store_relaxed(words + tile * count + i, word);
    }
  }

  DEVICE descriptor_view<T> read(u64 tile, u32 epoch) const {
    published_type published;
    u32 status = LOOKBACK_STATUS_INVALID;
    LOOKBACK_UNROLL
    for (u32 i = 0; i < count; ++i) {
      // Relaxed, pairs with the store in `publish`.
      const word128 word = memory::load_relaxed(words + tile * count + i);
      const u32 status_of_word = descriptor_status(static_cast<u32>(word.high), epoch);
      // A value is there as soon as all of its words are.
      status = i == 0 || status_of_word == status ? status_of_word : static_cast<u32>(LOOKBACK_STATUS_INVALID);
      u8* const to = reinterpret_cast<u8*>(&published) + i * bytes_of_word;
      memcpy(to, &word.low, low_bytes_in(i));
      const u32 behind = static_cast<u32>(word.high >> 32);
      memcpy(to + low_bytes_in(i), &behind, high_bytes_in(i));
    }
    return {status, Problem::adopt(published)};
  }

  // Relaxed, as in `packed_64`.
  DEVICE void invalidate(u64 tile) const {
    LOOKBACK_UNROLL
    for (u32 i = 0; i < count; ++i) memory::store_relaxed(words + tile * count + i, word128{0, 0});
  }
};

// `capacity` tags, then as many aggregates, then as many prefixes; capacity is a multiple of 4, so that
// every slot is aligned.
template <class Problem>
struct split : of_one_gpu {
  using T = typename Problem::state_type;
  using published_type = typename Problem::published_type;
  static constexpr u32 count = 1;
  u32* tags;
  published_type* aggregates;
  published_type* prefixes;

  DEVICE split(void* memory, u64 capacity) : tags(static_cast<u32*>(memory)) {
    aggregates = reinterpret_cast<published_type*>(tags + capacity);
    prefixes = aggregates + capacity;
  }

  DEVICE published_type* slots(u32 status) const {
    return status == LOOKBACK_STATUS_AGGREGATE ? aggregates : prefixes;
  }

  DEVICE void publish(u64 tile, u32 epoch, u32 status, T value) const {
    const u32 tag = descriptor_tag(epoch, status);
    const published_type published = Problem::publish(value);
    memory::store_payload(slots(status) + tile, published);
    // Release, pairs with the acquire in `read`: the slot is written before the tag says so.
    memory::store_release(tags + tile, tag);
  }

  DEVICE descriptor_view<T> read(u64 tile, u32 epoch) const {
    descriptor_view<T> view;
    // Acquire, pairs with the release in `publish`: the slot that the tag names is written.
    view.status = descriptor_status(memory::load_acquire(tags + tile), epoch);
    view.value = T();
    if (view.status != LOOKBACK_STATUS_INVALID) {
      view.value = Problem::adopt(memory::load_payload(slots(view.status) + tile));
    }
    return view;
  }

  // Relaxed, as in `packed_64`.
  DEVICE void invalidate(u64 tile) const { memory::store_relaxed(tags + tile, 0u); }
};

// Calls `body` with the descriptors of the launch in the layout that was chosen.
template <class Problem, class Config, class Body>
DEVICE void with_descriptors(Config config, const lookback_launch& launch, Body body) {
  if constexpr (sizeof(typename Problem::published_type) <= 4) {
    if (config.descriptor == LOOKBACK_DESCRIPTOR_PACKED_64) return body(packed_64<Problem>(launch.descriptors, launch.capacity));
  }
  if (config.descriptor == LOOKBACK_DESCRIPTOR_PACKED_128) return body(packed_128<Problem>(launch.descriptors, launch.capacity));
  body(split<Problem>(launch.descriptors, launch.capacity));
}

}  // namespace lookback
