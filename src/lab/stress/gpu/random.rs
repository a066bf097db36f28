//! Numbers drawn from a seed: the same on every machine.

/// The finaliser of SplitMix64 (Steele, Lea & Flood 2014), `mix` in `cuda/stress.cu`.
pub(super) const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// What each step of the counter adds.
pub(super) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64.
#[derive(Debug, Clone)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// The generator of `seed`, another one for each `purpose`.
    pub(super) const fn new(seed: u64, purpose: u64) -> Self {
        Self { state: mix(seed ^ mix(purpose.wrapping_add(STEP))) }
    }

    pub(super) const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// From 0 to `bound` - 1; 0 if the bound is 0.
    pub(super) const fn below(&mut self, bound: u64) -> u64 {
        ((self.bits() as u128 * bound as u128) >> 64) as u64
    }

    /// True in `percent` of 100 calls.
    pub(super) const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of them. More often what stands there more often.
    ///
    /// # Panics
    /// If there is none: the lists are constants, or were checked to hold something.
    pub(super) const fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
