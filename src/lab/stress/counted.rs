//! Elements of which the device alone knows how many there are: the host plans for as many as its arrays have, and the kernels read
//! how many they scan.

use super::draw::Draw;
use crate::lab::cpu_device::Counted;
use crate::lab::workload::Workload;

/// How a count that the device is given differs from what is scanned, and arrays from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceCount {
    /// Elements that arrays have behind those that are scanned, or as many more as make whole rows.
    pub spare: u64,
    /// How many more the count says than are scanned, because there are no more, or no whole row.
    pub excess: u64,
}

impl DeviceCount {
    /// One for a scan whose elements are counted in so many.
    pub(super) fn draw(draw: &mut Draw, counted_in: u64, tile: u64) -> Self {
        let part_of_row = if draw.percent(50) { draw.below(counted_in) } else { 0 };
        let (spare, excess) = match draw.below(5) {
            0 => (0, 1 + draw.below(tile)),
            1 => (0, 0),
            2 => (counted_in, part_of_row),
            // The end of all that the host has planned for in the same tile, and tiles further.
            3 => (counted_in + draw.below(tile), part_of_row),
            _ => (counted_in + draw.below(4 * tile), part_of_row),
        };
        Self { spare, excess }
    }

    /// What it comes to where `n` elements are scanned; none where the device is told no count.
    pub(super) fn of(self, workload: Workload, n: u64) -> Option<Counted> {
        let counted_in = workload.counted_in(n)?;
        let (room, capacity) = workload.resized(n, n + self.spare);
        // Where there is room for a whole row, the count says less than that.
        let excess = if capacity > n { self.excess % counted_in } else { self.excess };
        Some(Counted { workload: room, n: capacity, count: n + excess })
    }
}
