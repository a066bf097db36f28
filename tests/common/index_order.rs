//! The order of reproducible scans, as docs/problems.md says it, written down a second time: a loop that knows of no strategy.
#![allow(dead_code)] // No test needs all of it.

const LANES: usize = 32;
const WARPS: usize = 8;

/// The order as docs/problems.md says it: what each element's result is combined of.
pub struct Order {
    /// Neighbours that one lane loads at a time.
    width: usize,
    /// Rows of a warp.
    rows: usize,
}

impl Order {
    /// Of elements of 4 bytes and of 8: 24 and 8 values a thread.
    pub const OF_4_BYTES: Self = Self { width: 4, rows: 6 };
    pub const OF_8_BYTES: Self = Self { width: 2, rows: 4 };

    pub fn tile(&self) -> usize {
        self.width * LANES * self.rows * WARPS
    }

    /// The inclusive scan. Behind the last element stands the identity.
    pub fn scan<T: Copy>(&self, items: &[T], identity: T, initial: T, combine: impl Fn(T, T) -> T + Copy) -> Vec<T> {
        let mut results = Vec::with_capacity(items.len());
        let mut of_tiles = identity;
        for tile in items.chunks(self.tile()) {
            // What stands left of a warp in its tile: the totals of the warps before it, one after the other.
            let mut of_warps = identity;
            for (number, warp) in tile.chunks(self.width * LANES * self.rows).enumerate() {
                let left = combine(combine(initial, of_tiles), of_warps);
                let mut of_rows = identity;
                for (row_number, row) in warp.chunks(self.width * LANES).enumerate() {
                    let mut of_lanes: Vec<T> = row
                        .chunks(self.width)
                        .map(|values| values[1..].iter().fold(values[0], |sum, &value| combine(sum, value)))
                        .collect();
                    of_lanes.resize(LANES, identity);
                    kogge_stone(&mut of_lanes, combine);
                    for (lane, values) in row.chunks(self.width).enumerate() {
                        let before = if lane == 0 { identity } else { of_lanes[lane - 1] };
                        let of_lane = if row_number == 0 { before } else { combine(of_rows, before) };
                        let mut running = combine(left, of_lane);
                        for &value in values {
                            running = combine(running, value);
                            results.push(running);
                        }
                    }
                    let total = of_lanes[LANES - 1];
                    of_rows = if row_number == 0 { total } else { combine(of_rows, total) };
                }
                of_warps = if number == 0 { of_rows } else { combine(of_warps, of_rows) };
            }
            of_tiles = combine(of_tiles, of_warps);
        }
        results
    }
}

/// Each value becomes the combination of all up to it, over 1, 2, 4, 8 and 16 neighbours.
fn kogge_stone<T: Copy>(values: &mut [T], combine: impl Fn(T, T) -> T) {
    let mut distance = 1;
    while distance < values.len() {
        for at in (distance..values.len()).rev() {
            values[at] = combine(values[at - distance], values[at]);
        }
        distance *= 2;
    }
}

/// Numbers of many magnitudes, whose sums depend on every bracket.
pub fn floats(n: usize, seed: u64) -> Vec<f32> {
    let word = |i: usize| (i as u64 + 1).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..n).map(word).map(|word| (word >> 40) as f32 * f32::exp2((word >> 8 & 15) as f32 - 30.0)).collect()
}

pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}
