//! Numbers and choices drawn from a seed: the same on every machine.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Draws numbers and choices.
pub(super) struct Draw(Pcg64Mcg);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// Of the same seed another sequence for each purpose.
    #[cfg(feature = "cuda")]
    pub fn for_purpose(seed: u64, purpose: u64) -> Self {
        Self::new(Self::new(seed).word().wrapping_add(purpose))
    }

    /// A random word.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether an event of this probability in percent happens.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of some choices, at least one; what stands there more often comes more often.
    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// One of those that a fault lists, or of the usual ones where it lists none, among those that are possible.
    pub fn possible<T: Copy>(&mut self, listed: &[T], usual: &[T], is_possible: impl Fn(T) -> bool) -> Option<T> {
        let choices = if listed.is_empty() { usual } else { listed };
        let choices: Vec<T> = choices.iter().copied().filter(|&choice| is_possible(choice)).collect();
        (!choices.is_empty()).then(|| self.of(&choices))
    }
}
