//! VT and threads a block where the user says nothing, by bytes of an element and of the array.

use super::config::access_width;
use crate::abi;
use crate::element::ElementType;

/// Up to here an array counts as small: 2^16 elements of 4 bytes.
const SMALL_BYTES: u64 = 1 << 18;
/// Up to here as middle: 2^23 elements of 4 bytes.
pub const MIDDLE_BYTES: u64 = 1 << 25;
/// Up to here, 2^18 elements of 4 bytes, `one-wave` takes short threads.
const ONE_WAVE_SHORT_BYTES: u64 = 1 << 20;
const SMALL: (u32, u32) = (8, 128);

pub fn three_phase(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
    match element_bytes {
        _ if array_bytes <= SMALL_BYTES => SMALL,
        1 => (48, 512),
        2 => (32, 512),
        4 => (16, 512),
        8 => (8, 512),
        _ => (4, 512),
    }
}

pub fn look_back(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
    match (element_bytes, array_bytes <= MIDDLE_BYTES) {
        _ if array_bytes <= SMALL_BYTES => SMALL,
        (1, _) => (48, 512),
        (2, _) => (64, 512),
        (4, true) => (32, 384),
        (4, false) => (56, 384),
        (8, true) => (24, 256),
        (8, false) => (48, 384),
        _ => (8, 384),
    }
}

/// Tiles of 32 KB: seven of them fit on a multiprocessor of a data centre's GPU, and its one prefix a tile is known
/// in time. Of u8 half as much, because 64 values a thread spill under other operators than the sum.
pub fn look_ahead(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
    match element_bytes {
        _ if array_bytes <= SMALL_BYTES => SMALL,
        1 | 2 => (32, 512),
        4 => (16, 512),
        8 => (16, 256),
        _ => (8, 256),
    }
}

/// Look-ahead over arrays of a user, `inputs` of them, the widest of so many bytes an element, measured on an H200 and an H100.
/// Where `marks` says that segments begin, states of so many bytes carry it, and more warps scan an array: each has less to do,
/// because it takes more instructions. By rows of so many (`row`; 0 if that is not known) of numbers that are scanned in wider ones
/// (`are_halves`), fewer do with longer parts, if rows are long. VT of 7, 10, 12, 14, 20 and 24, and 48 of 2 bytes, makes runs of several vectors
/// (`cuda/config.cuh`), which one array of elements that become wider ones (`is_widened`) is slower with: its vectors are short.
pub fn look_ahead_over_arrays(
    element_bytes: u32,
    inputs: usize,
    marks: Option<usize>,
    is_widened: bool,
    row: Option<u64>,
    are_halves: bool,
) -> (u32, u32) {
    /// From here on few parts of a tile have the end of a row.
    const LONG_ROW: u64 = 1 << 14;
    /// And from here on nearly none.
    const VERY_LONG_ROW: u64 = 1 << 15;
    let is_one = inputs == 1;
    match (element_bytes, marks) {
        (4, None) if is_widened => (16, 512),
        (8, None) if is_widened => (16, 384),
        (1, Some(_)) => (48, 512),
        (1, None) => (48, 256),
        (2, Some(..=8)) if is_one => match row.filter(|_| are_halves) {
            Some(VERY_LONG_ROW..) => (48, 256),
            Some(LONG_ROW..) => (48, 320),
            Some(_) => (48, 512),
            None => (32, 512),
        },
        (2, Some(9..)) => (24, 448),
        (2, Some(_)) => (24, 384),
        (2, None) if is_one => (32, 384),
        (2, None) => (24, 448),
        (4, Some(..=8)) if is_one && row.is_some() => (20, 512),
        (4, Some(_)) if is_one => (16, 512),
        (4, None) if is_one => (24, 384),
        (4, Some(_)) => (20, 256),
        (4, None) => (16, 320),
        (8, _) if is_one => (12, 384),
        (8, Some(..=16)) => (14, 256),
        (8, Some(_)) => (10, 320),
        (8, None) => (14, 288),
        _ => (7, 384),
    }
}

/// Look-ahead over the rows of a narrow matrix as elements of so many bytes, whose states have so many, where no tile for arrays is as
/// fast (measured on an H200).
pub fn rows_as_elements(element_bytes: u32, inputs: usize, state_bytes: usize) -> Option<(u32, u32)> {
    match (element_bytes, inputs, state_bytes) {
        (4, 1, 8) => Some((28, 256)),
        (8, 1, 16) => Some((12, 320)),
        (8, 2, 16) => Some((12, 288)),
        _ => None,
    }
}

/// Look-ahead over tiles that several ranks are dealt in chunks of so many elements, the widest of so many bytes: of 8 to 64 KB,
/// or halved until they fill a chunk. The less is loaded of an element (`is_widened`), the sooner a tile is done, and each block reads the
/// descriptors of all ranks' tiles meanwhile: larger ones are fewer.
pub fn dealt(element_bytes: u32, chunk: u64, is_widened: bool) -> (u32, u32) {
    let (mut vt, mut threads) = match element_bytes {
        1 | 2 => (32, 256),
        4 if is_widened => (32, 512),
        4 => (16, 512),
        8 if is_widened => (16, 512),
        8 => (16, 256),
        _ => (8, 256),
    };
    while !chunk.is_multiple_of(u64::from(vt * threads)) && threads > abi::LOOKBACK_WARP_LANES {
        if vt > 1 {
            vt /= 2;
        } else {
            threads /= 2;
        }
    }
    (vt, threads)
}

/// One wave that stores by rank, of up to 2^21 elements and 8 MiB, with elements and states of up to so many bytes: as far as it was
/// measured to be faster than look-ahead on an H200, of whose 132 multiprocessors 128 have a tile each. The longest thread has 128
/// bytes; of groups (`has_groups`) there are half as many such, which spill nothing.
pub fn one_wave_by_rank(n: u64, bytes: u32, has_groups: bool) -> Option<(u32, u32)> {
    const MOST: u64 = 1 << 21;
    const MOST_BYTES: u64 = 8 << 20;
    const TILES: u64 = 128;
    const THREADS: u32 = 512;
    if n > MOST || n.saturating_mul(bytes.into()) > MOST_BYTES {
        return None;
    }
    let (vt, block_threads) = match n {
        _ if n <= 1 << 16 => (8, 128),
        _ if n <= 1 << 17 => (16, 128),
        _ if n <= 1 << 18 => (16, 256),
        _ if has_groups && n > 3 << 19 => (32, THREADS / 2),
        // Whole vectors of four.
        _ => (n.div_ceil(TILES * u64::from(THREADS)).next_multiple_of(4).max(8) as u32, THREADS),
    };
    Some((vt.min(128 / bytes.next_power_of_two()), block_threads))
}

/// One wave over small arrays of a user, with elements and states of up to so many bytes: 32 bytes a thread, measured with 4 bytes on an
/// H100.
pub fn one_wave_over_arrays(bytes: u32) -> (u32, u32) {
    ((32 / bytes.next_power_of_two()).max(1), 128)
}

/// Look-ahead that stores by rank, of the same arrays, measured on an H100 and an H200. Tiles are large, because what a warp does
/// once a tile, to find where it stores and to hand elements on through the stage, is then shared by more elements; of few elements,
/// where states are too wide for one wave, they are small, so that every multiprocessor has some.
pub fn look_ahead_by_rank(
    element_bytes: u32,
    inputs: usize,
    has_groups: bool,
    length_bytes: Option<u32>,
    n: u64,
) -> (u32, u32) {
    const FEW: u64 = 1 << 21;
    const NOT_MANY: u64 = 1 << 22;
    const MANY: u64 = 1 << 26;
    match (element_bytes, inputs) {
        // In longer threads or more of them these spill, which was not measured.
        (1 | 2, 1) if length_bytes > Some(element_bytes) => (24, 320),
        (4, 1) if length_bytes > Some(element_bytes) => (20, 320),
        // The larger one spills some words, and was measured to be faster.
        (4, 1) if length_bytes.is_some() && n > MANY => (28, 448),
        // It spills, and was measured to be faster than tiles that do not.
        (1, 1) if length_bytes.is_some() => (32, 512),
        (1 | 2, _) if n <= FEW => (32, 256),
        // Two tiles a block, or nearly so.
        (4, 2..) if n <= NOT_MANY && has_groups => (20, 448),
        (4, _) if n <= FEW => (16, 256),
        (1 | 2, 1) => (24, 512),
        (1 | 2, _) => (32, 320),
        (4, 1) => (20, 512),
        (4, _) => (20, 320),
        (8, _) => (14, 320),
        // More threads spill, which was not measured.
        _ => (7, 192),
    }
}

/// Elements of the rows that a tile takes, where whole rows of so many elements fill at least seven eighths of it: as many as end with
/// a vector of `width`, because accesses to single elements were measured to take longer than look-ahead.
pub fn rows_of_tile(tile: u64, row: u64, width: u32) -> Option<u64> {
    if !(1..=tile).contains(&row) {
        return None;
    }
    let unit = row * u64::from(width >> row.trailing_zeros().min(width.trailing_zeros()));
    let rows = tile / unit * unit;
    (rows * 8 >= tile * 7).then_some(rows)
}

/// Tiles of each VT, and of each number of threads with it, in that order.
fn tiles_of(vts: &[u32], threads: &[u32]) -> impl Iterator<Item = (u32, u32)> + Clone {
    vts.iter().flat_map(move |&vt| threads.iter().map(move |&threads| (vt, threads)))
}

/// Tiles of whole rows of an array of so many bytes: the first that rows fill, in the order in which they were measured to be fast on an
/// H200, and then, up to 4 MiB and of 4 bytes, the first that they fill at least seven eighths of, of 2 bytes one row. `None` where there are none, and where
/// none were faster than look-ahead: its warps have parts of 256 elements of 8 bytes, which no row of a multiple of that ends within.
pub fn whole_rows(element_bytes: u32, state_bytes: usize, row: u64, array_bytes: u64) -> Option<(u32, u32)> {
    const LEAST_ROW_OF_PARTS: u64 = 256;
    /// Of large arrays, whose rows do not fill a tile.
    const PARTLY_FILLED: [(u32, u32); 7] =
        [(24, 128), (24, 256), (16, 128), (16, 192), (20, 160), (12, 256), (16, 256)];
    // Beyond this nothing was measured.
    let longest_row = if element_bytes == 2 { 1 << 14 } else { 1 << 13 };
    /// Up to here there are few tiles for as many multiprocessors as there are, so that small ones come first.
    const FEW_BYTES: u64 = 1 << 22;
    let are_few = array_bytes <= FEW_BYTES;
    // Narrow elements in long threads: what a thread does once is shared by more of them. Small blocks that wait for nobody were measured
    // to be faster (docs/experiments.md).
    let (vts, threads): (&[u32], &[u32]) = match element_bytes {
        1 | 2 if are_few => (&[16, 32, 24], &[128, 256, 192, 160, 224]),
        1 => (&[64, 32], &[64, 128, 256, 192, 160, 224]),
        2 => (&[24, 32, 16], &[64, 128]),
        4 if are_few => (&[8, 12, 16, 20, 24, 28, 32], &[128, 256, 192, 160, 224]),
        4 => (&[16, 12, 20, 24, 8, 28, 32], &[128, 64, 192, 160, 256, 224]),
        8 if row >= LEAST_ROW_OF_PARTS => return None,
        8 if are_few => (&[8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32], &[128]),
        8 => (&[16, 8, 10, 12, 14, 18, 20, 22, 24, 26, 28, 30, 32], &[64, 128]),
        _ => return None,
    };
    if state_bytes > 16 || row > longest_row {
        return None;
    }
    let mut tiles = tiles_of(vts, threads);
    let is_full = |&(vt, threads): &(u32, u32)| u64::from(vt * threads).is_multiple_of(row);
    let of_rows = |&(vt, threads): &(u32, u32)| {
        rows_of_tile(u64::from(vt * threads), row, access_width(vt, element_bytes as usize))
    };
    let has_rows = |tile: &(u32, u32)| of_rows(tile).is_some();
    let has_one_row = |tile: &(u32, u32)| of_rows(tile) == Some(row);
    tiles.clone().find(is_full).or_else(|| match element_bytes {
        _ if are_few => tiles.find(has_rows),
        // Where rows fill no smaller block.
        2 => {
            let mut large = tiles_of(&[32, 24, 16], &[64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512]);
            large.clone().find(is_full).or_else(|| large.find(has_one_row))
        }
        4 => PARTLY_FILLED.into_iter().find(has_rows),
        _ => None,
    })
}

/// The tiles of sorts of such keys, alone or with what goes with them, by bytes of the widest element (measured on an H200:
/// docs/experiments.md). The more items a tile has of a digit, the longer are the runs that it stores, and two or three blocks share a
/// multiprocessor: as many items as registers hold. Of smaller arrays tiles are smaller and fewer, because one takes longer the more
/// items it has, and looks back longer the more of them there are: both grow with the root of n. Up to 2^13 items are one tile of
/// half as many threads, where shared memory has room for it, and with values of 16 bytes one if that is no larger than the largest.
pub fn sort(key: ElementType, widest_bytes: u32, is_alone: bool, n: u64) -> (u32, u32) {
    const THREADS: u32 = 512;
    const ONE_TILE: u64 = 1 << 13;
    if n <= ONE_TILE && widest_bytes <= 8 {
        let vt = (n as u32).div_ceil(THREADS / 2).next_multiple_of(4);
        return (vt.max(4), THREADS / 2);
    }
    let largest = match widest_bytes {
        bytes if !is_alone => ((96 / bytes).min(24), THREADS),
        1 => (32, THREADS),
        2 => (36, 384),
        4 if key.is_float() => (30, 384),
        4 => (32, 384),
        _ => (16, 384),
    };
    let most_tiles = if n <= ONE_TILE { 1 } else { (n / 32).isqrt() };
    let is_enough = |vt: &u32| n.div_ceil(u64::from(vt * THREADS)) <= most_tiles;
    let small = [4, 8, 16, 32].into_iter().filter(|&vt| vt <= largest.0).find(is_enough);
    small.map_or(largest, |vt| (vt, THREADS))
}

/// The tiles of histograms of `n` elements, whose blocks count one after the other, by bytes of an element of all inputs together, because
/// all of them wait in registers. Narrow ones are whole vectors a thread; those of bytes are what was fastest on an H200
/// (docs/experiments.md).
pub fn histogram(input_bytes: u32, n: u64) -> (u32, u32) {
    // Up to 2^21 of them 32 to 43 blocks, because more wait for each other when they add to the same counts.
    const OF_BYTES: [(u64, (u32, u32)); 6] = [
        (1 << 17, (16, 256)),
        (1 << 18, (16, 512)),
        (1 << 19, (32, 512)),
        (1 << 20, (32, 768)),
        (1 << 21, (64, 1024)),
        (1 << 23, (32, 1024)),
    ];
    match input_bytes {
        0..=1 => OF_BYTES.iter().find(|(most, _)| n <= *most).map_or((64, 1024), |&(_, tile)| tile),
        2 => (32, 512),
        3..=4 => (20, 384),
        5..=8 => (12, 320),
        _ => (8, 256),
    }
}

/// The tiles of histograms of `n` bytes by one cluster, where that is faster on a stream than blocks that add to cleared counts, and in a
/// graph and cold hardly slower (docs/experiments.md): one launch in place of two, and two in place of three where counts are summed up.
pub fn histogram_by_cluster(n: u64, is_cumulated: bool) -> Option<(u32, u32)> {
    const FEW: u64 = 1 << 16;
    const MANY: u64 = 1 << 20;
    match n {
        ..=FEW => Some((16, 256)),
        ..=MANY if is_cumulated => Some((64, 512)),
        _ => None,
    }
}

/// The tiles of expansions: steps past items and places (`cuda/scan/expand.cuh`).
pub const EXPANSION: (u32, u32) = (16, 256);

/// What blocks move of elements that say where they go.
pub const SCATTER: (u32, u32) = (8, 256);

/// The tiles of reproducible scans, by bytes of the widest element. They are a part of what such a scan gives: others round
/// elsewhere. Of 8 to 24 KB, so that a ring of them fits, of two arrays, too, and nothing is spilled.
pub fn reproducible(element_bytes: u32) -> (u32, u32) {
    match element_bytes {
        1 | 2 => (32, 256),
        4 => (24, 256),
        8 => (8, 256),
        _ => (4, 256),
    }
}

/// 24 KB a stage, measured on an H200 (docs/experiments.md).
pub const LOOK_AHEAD_OVER_HALVES: (u32, u32) = (32, 384);

/// From so many bytes of the wider elements on those of narrower ones have tiles of their own.
pub const LONG_WIDENING_BYTES: u64 = 64 << 20;

/// Those tiles, of wider elements of so many bytes, measured on an H200 (docs/experiments.md): less of a ring is taken by what is
/// loaded than by what is stored, so that more threads have room.
pub fn look_ahead_widening(element_bytes: u32) -> Option<(u32, u32)> {
    match element_bytes {
        4 => Some((24, 512)),
        8 => Some((16, 384)),
        _ => None,
    }
}

/// 64 bytes a thread while there are tiles for every multiprocessor; then longer threads, so that fewer
/// descriptors are read and the array still is on the GPU at once.
pub fn one_wave(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
    if array_bytes <= ONE_WAVE_SHORT_BYTES {
        return (64 / element_bytes, 256);
    }
    match element_bytes {
        1 => (32, 512),
        2 => (64, 256),
        4 => (64, 128),
        8 => (32, 128),
        _ => (16, 128),
    }
}

/// 16 bytes a lane and as many warps as the array needs. More than 8 warps cost more to join than they save, so
/// from there on threads get longer, up to 4 vectors or 16 values; then more warps again, and what is left takes
/// more than one tile.
pub fn single_block(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
    const JOINED_SOON: u32 = 256;
    let vector = abi::LOOKBACK_VECTOR_BYTES / element_bytes;
    let most_vectors = if element_bytes < 4 { element_bytes } else { 4 };
    let (mut vectors, mut threads) = (1, abi::LOOKBACK_WARP_LANES);
    while u64::from(vectors * threads * abi::LOOKBACK_VECTOR_BYTES) < array_bytes {
        if threads < JOINED_SOON {
            threads *= 2;
        } else if vectors < most_vectors {
            vectors *= 2;
        } else if threads < abi::LOOKBACK_MAXIMUM_BLOCK_THREADS {
            threads *= 2;
        } else {
            break;
        }
    }
    (vectors * vector, threads)
}

/// 8 to 16 blocks have a tile while a cluster holds the array at all, and threads get longer before blocks get more
/// warps to join. A thread of 64 values of one or two bytes would not have the registers for this tile and the
/// next; there more threads take them, and of the largest arrays more rounds.
pub fn single_cluster(element_bytes: u32, array_bytes: u64) -> (u32, u32) {
    const MOST_VALUES: u32 = 32;
    const MOST_THREADS: u32 = 512;
    const STEPS: [(u64, (u32, u32)); 4] =
        [(1 << 15, (1, 256)), (1 << 17, (2, 256)), (1 << 18, (4, 256)), (1 << 19, (4, 512))];
    let step = STEPS.into_iter().find(|&(up_to, _)| array_bytes <= up_to);
    let (vectors, threads) = step.map_or((8, MOST_THREADS), |(_, tile)| tile);
    let vt = vectors * (abi::LOOKBACK_VECTOR_BYTES / element_bytes);
    if vt > MOST_VALUES { (MOST_VALUES, MOST_THREADS) } else { (vt, threads) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_by_long_rows_have_longer_threads() {
        let of_rows = |row| look_ahead_over_arrays(2, 1, Some(8), false, row, true);
        assert_eq!(
            [Some(1 << 15), Some(1 << 14), Some(1 << 13), Some(0), None].map(of_rows),
            [(48, 256), (48, 320), (48, 512), (48, 512), (32, 512)]
        );
        assert_eq!(look_ahead_over_arrays(2, 1, Some(8), false, Some(1 << 15), false), (32, 512));
    }

    #[test]
    fn whole_rows_fill_seven_eighths_of_a_tile() {
        assert_eq!(rows_of_tile(1024, 128, 4), Some(1024));
        // Sixteen of them end where a vector does.
        assert_eq!(rows_of_tile(1024, 61, 4), Some(976));
        assert_eq!(rows_of_tile(1024, 1000, 4), Some(1000));
        assert_eq!(rows_of_tile(1024, 896, 4), Some(896));
        let none = [(1024, 895, 4), (1024, 1025, 1), (1024, 1001, 4), (1024, 0, 4), (1024, u64::MAX, 16)];
        assert_eq!(none.map(|(tile, row, width)| rows_of_tile(tile, row, width)), [None; 5]);
        for bytes in [1 << 22, 1 << 26] {
            assert_eq!(whole_rows(4, 8, 1001, bytes), Some((16, 256)));
        }
        assert_eq!([1 << 22, 1 << 26].map(|bytes| whole_rows(4, 8, 61, bytes)), [Some((8, 128)), Some((24, 128))]);
        assert_eq!(whole_rows(4, 8, 1401, 1 << 26), Some((24, 256)));
        // Of narrow ones, where no small block is filled.
        assert_eq!([96, 7168].map(|row| whole_rows(1, 8, row, 1 << 26)), [Some((64, 192)), Some((64, 224))]);
        assert_eq!(
            [1280, 5120, 8192].map(|row| whole_rows(2, 8, row, 1 << 26)),
            [Some((32, 160)), Some((32, 160)), Some((32, 256))]
        );
        assert_eq!([1, 2, 4].map(|bytes| whole_rows(bytes, 8, 16_384, 1 << 26)), [None, Some((32, 512)), None]);
        // Of halves one row may leave an eighth of a tile, if it is whole vectors.
        assert_eq!([3000, 3001].map(|row| whole_rows(2, 8, row, 1 << 26)), [Some((32, 96)), None]);
    }
}
