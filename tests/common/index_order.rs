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

/// The order down the columns of a matrix, as docs/problems.md says it: what each element's result is combined of.
#[derive(Debug, Clone, Copy)]
pub struct OrderDown {
    /// Neighbouring rows of a thread.
    rows: usize,
    /// Threads of a warp that have rows of the same columns.
    groups: usize,
    warps: usize,
    /// Tiles from one that tells all above it to the next.
    period: usize,
    /// Tiles from one that tells several to the next.
    told_together: usize,
}

impl OrderDown {
    /// Of so many columns, of arrays of so many bytes an element that are loaded and stored and of states of so many, in a tile of
    /// so many rows a thread and threads, or in that of the crate.
    pub fn of(
        columns: usize,
        [loaded, stored]: [&[usize]; 2],
        state_bytes: usize,
        tile: Option<(usize, usize)>,
    ) -> Self {
        let widest = loaded.iter().chain(stored).max().expect("an array is loaded");
        let narrowest = loaded.iter().min().expect("an array is loaded");
        let fits = |width: &usize| width * widest <= 16 && width * state_bytes <= 32;
        let width = [8, 4, 2].into_iter().find(|width| *width < 2 * columns && fits(width)).unwrap_or(1);
        let line = (16 / narrowest).max(width);
        let most = width * if columns.is_multiple_of(line) { LANES / 2 } else { LANES };
        let strips = columns.div_ceil(most);
        let of_strip = if strips == 1 { columns } else { columns.div_ceil(strips).next_multiple_of(line) };
        let side_by_side = of_strip.div_ceil(width);
        let bytes: usize = loaded.iter().sum();
        let (rows, threads) = tile.unwrap_or_else(|| {
            let rows = [16, 8].into_iter().find(|rows| rows * width * bytes <= 128).unwrap_or(4);
            (if side_by_side < 4 { rows - 1 } else { rows }, WARPS * LANES)
        });
        let (warps, groups) = (threads / LANES, LANES / side_by_side);
        let tile_bytes = warps * groups * rows * of_strip * bytes;
        let period = 1 << ((2 << 20) / tile_bytes.max(32 << 10) / strips).max(1).ilog2();
        Self { rows, groups, warps, period, told_together: period.min(8) }
    }

    pub fn tile_rows(&self) -> usize {
        self.warps * self.groups * self.rows
    }

    /// Rows from one tile that tells all above it to the next.
    pub fn period_rows(&self) -> usize {
        self.period * self.tile_rows()
    }

    /// The scan of a column.
    pub fn scan<T: Copy>(
        &self,
        column: &[T],
        identity: T,
        initial: T,
        is_exclusive: bool,
        combine: impl Fn(T, T) -> T + Copy,
    ) -> Vec<T> {
        let mut results = Vec::with_capacity(column.len());
        let mut told: Vec<T> = Vec::new();
        for (down, tile) in column.chunks(self.tile_rows()).enumerate() {
            // From the nearest up: tiles that are told one by one, those that are told together, and all above the period.
            let in_period = down % self.period;
            let alone = in_period % self.told_together;
            let mut above = (1..=alone).fold(identity, |below, i| combine(told[down - i], below));
            let of_these = above;
            for i in 0..in_period / self.told_together {
                above = combine(told[down - alone - i * self.told_together - 1], above);
            }
            above = combine(if down < self.period { initial } else { told[down - in_period - 1] }, above);

            let mut of_warps = identity;
            for (number, warp) in tile.chunks(self.groups * self.rows).enumerate() {
                let fold = |rows: &[T]| rows[1..].iter().fold(rows[0], |sum, &value| combine(sum, value));
                let mut of_groups: Vec<T> = warp.chunks(self.rows).map(fold).collect();
                kogge_stone(&mut of_groups, combine);
                for (group, rows) in warp.chunks(self.rows).enumerate() {
                    let left = combine(above, of_warps);
                    let mut running = if group == 0 { left } else { combine(left, of_groups[group - 1]) };
                    for &value in rows {
                        let before = running;
                        running = combine(running, value);
                        results.push(if is_exclusive { before } else { running });
                    }
                }
                let total = of_groups[of_groups.len() - 1];
                of_warps = if number == 0 { total } else { combine(of_warps, total) };
            }
            told.push(match down + 1 {
                below if below % self.period == 0 => combine(above, of_warps),
                below if below % self.told_together == 0 => combine(of_these, of_warps),
                _ => of_warps,
            });
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
