//! Elements of which the device alone knows how many there are: the host plans for as many as its arrays have, and the kernels read
//! how many they scan.

use super::draw::Draw;
use crate::lab::cpu_device::CountedArrays;
use crate::lab::workload::Workload;

/// How far a count that the device is given, and the arrays, go beyond what is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceCount {
    /// Elements for which arrays have room behind those that are scanned; cut or filled to whole rows.
    pub spare: u64,
    /// How many more the count says than are scanned, because there are no more, or no whole row.
    pub excess: u64,
}

impl DeviceCount {
    /// One for a scan whose elements are counted in so many.
    pub(super) fn draw(draw: &mut Draw, counted_in: u64, tile: u64) -> Self {
        let part_of_row = if draw.percent(50) { draw.below(counted_in) } else { 0 };
        let (spare, excess) = match draw.below(5) {
            // Some of them more than a word can hold.
            0 => (0, 1 + draw.below(tile) + (draw.below(2) << 32)),
            1 => (0, 0),
            2 => (counted_in, part_of_row),
            // The end of all that the host has planned for in the same tile, and tiles further.
            3 => (counted_in + draw.below(tile), part_of_row),
            _ => (counted_in + draw.below(4 * tile), part_of_row),
        };
        Self { spare, excess }
    }

    /// What it comes to where `n` elements are scanned; none where the device is told no count.
    pub(super) fn arrays(self, workload: Workload, n: u64) -> Option<CountedArrays> {
        let counted_in = workload.counted_in(n)?;
        let (room, capacity) = workload.resized(n, n + self.spare);
        // Where there is room for a whole row, the count says less than that.
        let excess = if capacity > n { self.excess % counted_in } else { self.excess };
        Some(CountedArrays { workload: room, n: capacity, count: n + excess })
    }
}
