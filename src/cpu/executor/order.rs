//! The order in which blocks start, without a table: a grid may have more blocks than memory has room for.

use crate::cpu::settings::BlockOrder;

/// A bijection of `0 .. blocks`.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartOrder {
    order: BlockOrder,
    blocks: u64,
    seed: u64,
    half_bits: u32,
}

impl StartOrder {
    pub fn new(order: BlockOrder, blocks: u64, seed: u64) -> Self {
        let bits = u64::BITS - blocks.saturating_sub(1).leading_zeros();
        Self { order, blocks, seed, half_bits: bits.div_ceil(2).max(1) }
    }

    /// The block that starts as number `position`.
    pub fn block(&self, position: u64) -> u64 {
        match self.order {
            BlockOrder::InOrder => position,
            BlockOrder::Reverse => self.blocks - 1 - position,
            BlockOrder::Random => {
                // A Feistel network permutes a power of four that is less than four times as large; walking
                // its cycle until it comes back into range permutes the range.
                let mut value = position;
                loop {
                    value = self.permute(value);
                    if value < self.blocks {
                        return value;
                    }
                }
            }
        }
    }

    fn permute(&self, value: u64) -> u64 {
        let half_mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & half_mask);
        for round in 0..4u64 {
            let mixed = mix(right ^ (round << 56) ^ self.seed.rotate_left(17)) & half_mask;
            (left, right) = (right, left ^ mixed);
        }
        (left << self.half_bits) | right
    }
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_a_permutation_of_the_grid() {
        for order in [BlockOrder::InOrder, BlockOrder::Reverse, BlockOrder::Random] {
            for blocks in (1..=70).chain([255, 256, 257, 1000]) {
                for seed in 0..4 {
                    let start_order = StartOrder::new(order, blocks, seed);
                    let mut seen = (0..blocks).map(|position| start_order.block(position)).collect::<Vec<_>>();
                    seen.sort_unstable();
                    assert!(seen.iter().copied().eq(0..blocks), "{order:?} of {blocks} blocks, seed {seed}");
                }
            }
        }
    }

    #[test]
    fn seeds_give_different_random_orders() {
        let first =
            |seed| (0..8).map(|p| StartOrder::new(BlockOrder::Random, 1 << 40, seed).block(p)).collect::<Vec<_>>();
        assert_ne!(first(1), first(2));
    }
}
