// Look-ahead over tiles that are dealt to several GPUs in turn. The tiles of one array are put into chunks of so many neighbours;
// of p ranks, each with a GPU of its own, rank r has the chunks r, r + p, r + 2p, ... one behind the other in its memory, and scans
// them as one GPU scans all. What a tile waits for are aggregates, of every rank's tiles before it, and those are *pushed*: each
// goes into the descriptors of all ranks, so that whoever waits polls its own memory, and a trip over the link between two GPUs is
// hidden where the ring hides a trip to the L2 cache. No element is read twice as long as the rings of a GPU hold a chunk.
//
// Launches take turns in two halves of the descriptors. A rank may be one launch ahead of another one, and writes where that one
// reads no more: it waits until all others have completed the launch before the last. Every rank launches the same scans in the same
// order, and its kernel runs beside those of the others.
#pragma once

// The blocks that meet are on several GPUs.
#define LOOKBACK_SCOPE "sys"

#include "lookahead.cuh"

namespace lookback {
namespace scan {

// Descriptors of all ranks' tiles, in the memory of each.
template <class Layout>
struct dealt_descriptors {
  static constexpr u32 count = Layout::count;
  const lookback_launch& launch;
  Layout own;
  mutable u32 polls = 0;

  DEVICE dealt_descriptors(const lookback_launch& launch_, Layout own_) : launch(launch_), own(own_) {}

  DEVICE u64 place_of(u64 tile) const {
    const u32 index = static_cast<u32>(tile);
    const u32 chunk = index / launch.deal.chunk_tiles;
    return (static_cast<u64>(chunk) * launch.deal.ranks + launch.deal.rank) * launch.deal.chunk_tiles +
           index % launch.deal.chunk_tiles;
  }

  // Into the memory of all ranks, the own one last, because the others' is farther.
  template <class T>
  DEVICE void publish(u64 place, u32 epoch, u32 status, T value) const {
    for (u32 i = 1; i <= launch.deal.ranks; ++i) {
      const u32 rank = (launch.deal.rank + i) % launch.deal.ranks;
      Layout(mailbox_of(rank) + 1, launch.capacity).publish(half_of(epoch) + place, epoch, status, value);
    }
  }

  DEVICE auto read(u64 place, u32 epoch) const { return own.read(half_of(epoch) + place, epoch); }

  DEVICE void invalidate(u64 place) const { own.invalidate(place); }

  // By all lanes of a warp, each for some of the others.
  DEVICE void await_others(u32 epoch) const {
    lookback_mailbox* const own_mailbox = mailbox_of(launch.deal.rank);
    const waiting wait;
    for (u32 rank = lane_index(); rank < launch.deal.ranks; rank += LOOKBACK_WARP_LANES) {
      if (rank == launch.deal.rank) continue;
      // Acquire, pairs with the release in `complete`: what that rank has read of its descriptors it has read before they are
      // overwritten.
      while (is_behind(memory::load_acquire(own_mailbox->completed_epochs + rank), epoch)) {
        if (wait.gives_up(no_tile, no_tile) || are_given_up()) break;
      }
    }
    warp_barrier();  // the lane that publishes comes behind what all have waited for
  }

  // Asked now and then only, because it delays the next look at what is waited for.
  DEVICE bool are_given_up() const {
    constexpr u32 polls_between = 64;
    if (++polls % polls_between != 0) return false;
    // Relaxed: pairs with the host's word that a rank is lost, behind which nothing is read.
    return memory::load_relaxed(&mailbox_of(launch.deal.rank)->is_given_up) != 0;
  }

  // The same for all lanes of a warp, which had better leave together.
  DEVICE bool warp_is_given_up() const { return ballot(are_given_up()) != 0; }

  // All ranks say that they have published, before any clears what they have written.
  DEVICE void await_last_publications() const {
    complete(LOOKBACK_MAXIMUM_EPOCH);
    lookback_mailbox* const own_mailbox = mailbox_of(launch.deal.rank);
    const waiting wait;
    for (u32 i = 1; i < launch.deal.ranks; ++i) {
      for (;;) {
        // Acquire, pairs with the release in `complete`: nothing of that rank comes behind the clean-up, which it may have behind
        // itself.
        const u32 completed = memory::load_acquire(own_mailbox->completed_epochs + (launch.deal.rank + i) % launch.deal.ranks);
        if (completed == LOOKBACK_MAXIMUM_EPOCH || completed == 0) break;
        if (wait.gives_up(no_tile, no_tile) || are_given_up()) return;
      }
    }
  }

  DEVICE void complete(u32 completed) const {
    for (u32 i = 1; i < launch.deal.ranks; ++i) {
      const u32 rank = (launch.deal.rank + i) % launch.deal.ranks;
      // Release, pairs with the acquire in `await_others`: all blocks of this rank have read their descriptors (`finish_tile`).
      memory::store_release(mailbox_of(rank)->completed_epochs + launch.deal.rank, completed);
    }
  }

 private:
  static constexpr u64 no_tile = ~static_cast<u64>(0);

  DEVICE lookback_mailbox* mailbox_of(u32 rank) const { return memory::load(launch.deal.mailboxes + rank); }

  DEVICE u64 half_of(u32 epoch) const { return (epoch & 1) * (launch.capacity / 2); }

  // Whether a rank that has completed so many launches may still read what the launch of `epoch` overwrites. The first epoch follows
  // on the clean-up behind the largest one, at which a rank's count is 0 again; others are a few launches ahead at most.
  DEVICE static bool is_behind(u32 completed, u32 epoch) {
    const u32 needed = epoch < 2 ? 0 : epoch - 2;
    return ((completed - needed) & LOOKBACK_MAXIMUM_EPOCH) > LOOKBACK_MAXIMUM_EPOCH / 2;
  }
};

// Reads what `scan_ahead` says, and `deal`; two halves of `capacity` descriptors behind the mailbox of each rank. It scans what a
// user has defined and nothing else.
template <class Problem, class Config>
DEVICE void dealt(Config config, const lookback_launch& launch) {
  if constexpr (Problem::has_arrays) {
    if constexpr (!Problem::segments_type::are_several) {
      scan_arrays_ahead<Problem>(launch, config, [&](auto layout) { return dealt_descriptors<decltype(layout)>(launch, layout); });
    }
  }
}

}  // namespace scan
}  // namespace lookback
