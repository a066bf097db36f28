//! The arrays of a run: filled before it, between guards that are checked after it.

use std::ops::Range;

/// What outputs, guards and temporary arrays hold before a run.
pub(crate) const FILLING: u8 = 0xA5;

/// Where an array lies in its memory, in bytes: guards on both sides.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Guarded {
    /// Bytes before the array, all of them guard.
    pub(crate) start: u64,
    /// Bytes of the array.
    pub(crate) bytes: u64,
    /// Bytes of the guard after it.
    pub(crate) after: u64,
}

impl Guarded {
    /// The array.
    pub(crate) fn array(self) -> Range<u64> {
        self.start..self.start + self.bytes
    }

    /// The guards before and after it.
    pub(crate) fn guards(self) -> [Range<u64>; 2] {
        let Range { start, end } = self.array();
        [0..start, end..self.total_bytes()]
    }

    /// The array with both guards.
    pub(crate) fn total_bytes(self) -> u64 {
        self.start + self.bytes + self.after
    }
}
