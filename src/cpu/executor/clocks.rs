//! For each address of the protocol the clock of the latest chain of operators that was stored there.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Default)]
pub(super) struct Clocks(HashMap<usize, u64, BuildHasherDefault<AddressHasher>>);

impl Clocks {
    /// A store by a thread at `clock`. Returns the clock that now stands there.
    pub fn store(&mut self, address: usize, clock: u64) -> u64 {
        let stored = self.0.entry(address).or_insert(0);
        *stored = clock.max(*stored);
        *stored
    }

    /// What a load finds; 0 before the first store.
    pub fn load(&self, address: usize) -> u64 {
        self.0.get(&address).copied().unwrap_or(0)
    }
}

/// Spreads addresses: they are multiples of their size and close to each other.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, value: usize) {
        let mixed = (self.0 ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
