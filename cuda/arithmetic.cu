// What only a GPU computes (`gpu/platform.cuh`, `gpu/memory.cuh`), a kernel for each kind of operation. No GPU runs them:
// their PTX is evaluated and compared with plain arithmetic (`src/lab/axiomatic/arithmetic.rs`). A warp each; a lane has
// four words of input and of output.
#include "async_copy.cuh"
#include "packed.cuh"

namespace lookback {

constexpr u32 words_of_lane = 4;

struct arithmetic_lane {
  const u64* in;
  u64* out;
  DEVICE arithmetic_lane(const u64* input, u64* output)
      : in(input + lane_index() * words_of_lane), out(output + lane_index() * words_of_lane) {}
  DEVICE u64 word(u32 i) const { return in[i]; }
  DEVICE u32 half(u32 i) const { return static_cast<u32>(in[i]); }
};

}  // namespace lookback

#define ARITHMETIC(name) extern "C" __global__ void name(const lookback_u64* input, lookback_u64* output)

ARITHMETIC(sums_over_warp) {
  using namespace lookback;
  const arithmetic_lane lane(input, output);
  u64 values[3] = {lane.word(0), lane.word(1), lane.word(2)};
  add_over_warp_each(values, 2);
  for (u32 i = 0; i < 3; ++i) lane.out[i] = values[i];
  lane.out[3] = add_over_warp(lane.half(3));
}

ARITHMETIC(sums_in_word) {
  using namespace lookback;
  const arithmetic_lane lane(input, output);
  lane.out[0] = add_bytes(lane.half(0), lane.half(1));
  lane.out[1] = add_lower_bytes(lane.half(0), lane.half(1));
  lane.out[2] = add_halves(lane.half(0), lane.half(1));
  lane.out[3] = lowest_set_bit(lane.half(2));
}

// Digits of a selector are below 8.
ARITHMETIC(bytes_selected) {
  using namespace lookback;
  const arithmetic_lane lane(input, output);
  lane.out[0] = select_bytes(lane.half(0), lane.half(1), lane.half(2) & 0x7777u);
}

ARITHMETIC(packed_scans) {
  using namespace lookback;
  const arithmetic_lane lane(input, output);
  u32 word = lane.half(0);
  u32 carry = lane.half(1) & 0xff;
  packed<operators::sum<u8>>::scan<true>(word, carry);
  lane.out[0] = static_cast<u64>(carry) << 32 | word;
  word = lane.half(0);
  carry = lane.half(1) & 0xff;
  packed<operators::sum<u8>>::scan<false>(word, carry);
  lane.out[1] = static_cast<u64>(carry) << 32 | word;
  word = lane.half(0);
  carry = lane.half(1) & 0xffff;
  packed<operators::sum<u16>>::scan<true>(word, carry);
  lane.out[2] = static_cast<u64>(carry) << 32 | word;
  word = lane.half(0);
  carry = lane.half(1) & 0xffff;
  packed<operators::sum<u16>>::scan<false>(word, carry);
  lane.out[3] = static_cast<u64>(carry) << 32 | word;
}

// Deltas as the scans have them, and any lane by its index.
ARITHMETIC(shuffles) {
  using namespace lookback;
  const arithmetic_lane lane(input, output);
  lane.out[0] = shuffle_up(lane.word(0), 4);
  lane.out[1] = shuffle_down(lane.word(1), 2);
  lane.out[2] = shuffle_index(lane.word(2), lane.half(3) % LOOKBACK_WARP_LANES);
  u16 values[3] = {static_cast<u16>(lane.word(0)), static_cast<u16>(lane.word(1)), static_cast<u16>(lane.word(2))};
  shuffle_up_each(values, 2, 1);
  lane.out[3] = static_cast<u64>(values[2]) << 32 | static_cast<u32>(values[1]) << 16 | values[0];
}

ARITHMETIC(vectors) {
  using namespace lookback;
  const arithmetic_lane lane(input, output);
  u32 four[4];
  memory::load_vector<4>(reinterpret_cast<const u32*>(lane.in), four);
  memory::store_vector_unsplit<4>(reinterpret_cast<u32*>(lane.out), four);
  u16 short_ones[4];
  memory::load_vector<4>(reinterpret_cast<const u16*>(lane.in + 2), short_ones);
  memory::store_vector_unsplit<4>(reinterpret_cast<u16*>(lane.out + 2), short_ones);
  u8 bytes[8];
  memory::load_vector<8>(reinterpret_cast<const u8*>(lane.in + 3), bytes);
  memory::store_vector<8>(reinterpret_cast<u8*>(lane.out + 3), bytes);
}

// What a descriptor of 128 bits goes through, and a vector that is held as words.
ARITHMETIC(wide_words) {
  using namespace lookback;
  const arithmetic_lane lane(input, output);
  memory::store_relaxed(reinterpret_cast<word128*>(lane.out),
                        memory::load_relaxed(reinterpret_cast<const word128*>(lane.in)));
  const u32 words[4] = {lane.half(2), static_cast<u32>(lane.word(2) >> 32), lane.half(3),
                        static_cast<u32>(lane.word(3) >> 32)};
  memory::store_words_unsplit(reinterpret_cast<u32*>(lane.out + 2), words);
}

#if __CUDA_ARCH__ >= 900
// An address of shared memory is taken for a place in the output.
ARITHMETIC(stores_into_cluster) {
  using namespace lookback;
  const arithmetic_lane lane(input, output);
  copy_barrier& counted_by = *reinterpret_cast<copy_barrier*>(output);
  cluster_store_async(lane.out[0], 0, lane.word(0), counted_by);
  cluster_store_async(*reinterpret_cast<u32*>(lane.out + 1), 0, lane.half(1), counted_by);
  cluster_store_async(*reinterpret_cast<word128*>(lane.out + 2), 0, word128{lane.word(2), lane.word(3)}, counted_by);
}
#endif
