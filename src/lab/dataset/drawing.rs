//! How arrays are drawn.

use super::ranks::is_zero;
use crate::element::{Distribution, ElementType, Operator};
use crate::lab::workers;
use crate::lab::workload::Share;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

/// All places below `n`, each once.
pub(super) fn draw_places(n: u64, mut random: Pcg64Mcg) -> Vec<u8> {
    let mut places: Vec<u64> = (0..n).collect();
    // Fisher and Yates.
    for last in (1..n).rev() {
        let other = ((u128::from(random.next_u64()) * u128::from(last + 1)) >> 64) as usize;
        places.swap(last as usize, other);
    }
    bytemuck::cast_slice(&places).to_vec()
}

/// Puts the numbers with a flag below the middle of their type's range, and the others above.
pub(super) fn put_below_middle(element: ElementType, flags: &[u8], array: &mut [u8]) {
    array.par_chunks_exact_mut(element.bytes()).zip(flags).for_each(|(number, &flag)| {
        let is_below = flag != 0;
        if let (Some(float), true) = (element.float(), is_below) {
            // Zero with a sign is not below zero.
            if (float.read)(number) == 0.0 {
                (float.write)(1.0, number);
            }
        }
        let highest = &mut number[element.bytes() - 1];
        *highest = *highest & 0x7f | if is_below == element.has_sign() { 0x80 } else { 0 };
    });
}

/// Leaves the numbers with a flag other than 0, and makes the others 0.
pub(super) fn put_zeros(element: ElementType, flags: &[u8], array: &mut [u8]) {
    array.par_chunks_exact_mut(element.bytes()).zip(flags).for_each(|(number, &flag)| {
        if flag == 0 {
            number.fill(0);
        } else if is_zero(element, number) {
            match element.float() {
                Some(float) => (float.write)(1.0, number),
                None => number[0] = 1,
            }
        }
    });
}

/// Plateaus over which the range of random minima and maxima widens.
pub(crate) const PLATEAUS: u64 = 4096;

/// So many offsets of that type from 0 to `n`. Between them are lengths in the proportions of a Pareto distribution of exponent
/// 4/3, less the least it has; one in eight is empty whatever their average.
pub(super) fn draw_offsets((element, count): (ElementType, u64), n: u64, mut random: Pcg64Mcg) -> Vec<u8> {
    let mut weight = || {
        let is_empty = random.next_u64().is_multiple_of(8);
        // Square roots are rounded alike on every machine, other powers are not.
        let root = (1.0 - unit(random.next_u64())).sqrt();
        if is_empty { 0.0 } else { 1.0 / (root * root.sqrt()) - 1.0 }
    };
    let mut reached = vec![0.0];
    let mut all = 0.0;
    for _ in 1..count {
        all += weight();
        reached.push(all);
    }
    let last = reached.len() - 1;
    let mut offsets = vec![0; reached.len() * element.bytes()];
    for (index, (position, bytes)) in reached.iter().zip(offsets.chunks_exact_mut(element.bytes())).enumerate() {
        // Where all are drawn empty, 0 / 0 is cast to 0, and the last segment has every element.
        let offset = if index == last { n } else { (position / all * n as f64) as u64 };
        bytes.copy_from_slice(&offset.to_le_bytes()[..element.bytes()]);
    }
    offsets
}

/// Keys of runs, or a flag that is not 0 where one begins: of `run` elements on average, or of 1 where those flags are turned.
pub(super) fn runs(are_keys: bool, share: Share, n: usize, run: u64, mut random: Pcg64Mcg) -> Vec<u8> {
    if share == Share::AllButOne {
        let mut flags = runs(false, Share::One, n, run, random);
        flags.iter_mut().for_each(|flag| *flag = u8::from(*flag == 0));
        let mut key = 0_u32;
        let mut next = |flag: u8| {
            key = (key + u32::from(flag)) % 4;
            key.to_le_bytes()
        };
        return if are_keys { flags.into_iter().flat_map(&mut next).collect() } else { flags };
    }
    let mut telling = vec![0; if are_keys { 4 * n } else { n }];
    let (mut place, mut key) = (0, 0_u32);
    while place < n {
        let drawn = random.next_u64();
        let length = 1 + ((u128::from(random.next_u64()) * u128::from(2 * run - 1)) >> 64) as u64;
        let end = usize::try_from(length).ok().and_then(|length| place.checked_add(length)).map_or(n, |end| end.min(n));
        if are_keys {
            // One of four, and another one than before.
            key = (key + 1 + (drawn % 3) as u32) % 4;
            telling[4 * place..4 * end].chunks_exact_mut(4).for_each(|bytes| bytes.copy_from_slice(&key.to_le_bytes()));
        } else {
            telling[place] = 1 + (drawn % 255) as u8;
        }
        place = end;
    }
    telling
}

pub(super) fn reverse(array: &mut [u8], element_bytes: usize) {
    array.reverse();
    array.chunks_exact_mut(element_bytes).for_each(<[u8]>::reverse);
}

pub(super) fn fill(element: ElementType, operator: Operator, is_in_runs: bool, seed: u64, bytes: &mut [u8]) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    match operator {
        Operator::Affine => {
            for chunk in bytes.chunks_exact_mut(16) {
                chunk.copy_from_slice(bytemuck::bytes_of(&[random.next_u64() | 1, random.next_u64()]));
            }
        }
        Operator::Bicyclic => {
            // Both of one size, so that either side of the minimum wins about as often.
            for chunk in bytes.chunks_exact_mut(8) {
                let drawn = random.next_u64();
                chunk.copy_from_slice(bytemuck::bytes_of(&[(drawn & 15) as u32, ((drawn >> 32) & 15) as u32]));
            }
        }
        Operator::Intervals => {
            for (index, chunk) in bytes.chunks_exact_mut(8).enumerate() {
                chunk.copy_from_slice(bytemuck::bytes_of(&[index as u32; 2]));
            }
        }
        other if is_in_runs && matches!(other.input(), Distribution::SparseZeros | Distribution::SparseOnes) => {
            fill_single_bits(other.input() == Distribution::SparseZeros, element, &mut random, bytes);
        }
        other => fill_numbers(element, other.input(), &mut random, bytes),
    }
}

/// All bits set or clear but for one of each element: what few bits over the whole array are, in each of its runs.
fn fill_single_bits(mostly_set: bool, element: ElementType, random: &mut Pcg64Mcg, bytes: &mut [u8]) {
    bytes.fill(if mostly_set { 0xff } else { 0x00 });
    for value in bytes.chunks_exact_mut(element.bytes()) {
        let bit = (random.next_u64() % (8 * element.bytes() as u64)) as usize;
        value[bit / 8] ^= 1 << (bit % 8);
    }
}

fn fill_numbers(element: ElementType, distribution: Distribution, random: &mut Pcg64Mcg, bytes: &mut [u8]) {
    match (distribution, element.float()) {
        (Distribution::Falling | Distribution::Rising, _) => {
            fill_widening(distribution == Distribution::Falling, element, random, bytes);
        }
        (Distribution::SparseZeros | Distribution::SparseOnes, _) => {
            fill_sparse_bits(distribution == Distribution::SparseZeros, element, random, bytes);
        }
        (Distribution::Factors, Some(float)) => fill_each(element, random, bytes, |before, drawn, element| {
            let exponent = |drawn: u64| (drawn & 31) as i32;
            let sign = if drawn >> 63 == 0 { 1.0 } else { -1.0 };
            (float.write)(sign * 2f64.powi(exponent(drawn) - exponent(before)), element);
        }),
        (Distribution::Factors, None) => {
            fill_words(random, bytes);
            bytes.iter_mut().step_by(element.bytes()).for_each(|byte| *byte |= 1);
        }
        // `Walk` is no operator's.
        (Distribution::Uniform | Distribution::Walk, Some(float)) => {
            fill_each(element, random, bytes, |_, drawn, element| (float.write)(2.0 * unit(drawn) - 0.5, element));
        }
        (Distribution::Uniform | Distribution::Walk, None) => fill_words(random, bytes),
    }
}

/// What an element is in arrays of whole numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// Of a sum.
    Summand,
    /// Of a recurrence.
    Factor,
    /// Likewise.
    Addend,
}

/// Arrays of [`Dataset::whole_numbers`]. Factor and addend of a recurrence are drawn of one seed: its values are the sums of the
/// summands in the units that the factors change to.
pub(super) fn fill_whole(element: ElementType, part: Part, seed: u64, bytes: &mut [u8]) {
    let Some(float) = element.float() else { return };
    // Any difference has 8 bits, as many as bf16 holds, and in the largest unit it is below the largest f16.
    let number = |drawn: u64| (drawn & 127) as f64;
    let unit = |drawn: u64| 2f64.powi((drawn >> 8 & 7) as i32);
    fill_each(element, &Pcg64Mcg::seed_from_u64(seed), bytes, |before, drawn, element| {
        let summand = number(drawn) - number(before);
        let value = match part {
            Part::Summand => summand,
            Part::Factor => unit(drawn) / unit(before),
            Part::Addend => unit(drawn) * summand,
        };
        (float.write)(value, element);
    });
}

/// Draws a number an element on all cores; `write` has the one drawn before it, too, and 0 at the first.
fn fill_each(element: ElementType, random: &Pcg64Mcg, bytes: &mut [u8], write: impl Fn(u64, u64, &mut [u8]) + Sync) {
    let elements = workers::part_elements(bytes.len() / element.bytes());
    workers::each(bytes.chunks_mut(elements * element.bytes()).enumerate().collect(), |(index, part)| {
        let (mut random, mut before) = (random.clone(), 0);
        if let Some(drawn_already) = (index * elements).checked_sub(1) {
            random.advance(drawn_already as u128);
            before = random.next_u64();
        }
        for value in part.chunks_exact_mut(element.bytes()) {
            let drawn = random.next_u64();
            write(before, drawn, value);
            before = drawn;
        }
    });
}

/// Fills the bytes with drawn words, on all cores.
fn fill_words(random: &Pcg64Mcg, bytes: &mut [u8]) {
    let words = workers::part_elements(bytes.len() / 8);
    workers::each(bytes.chunks_mut(8 * words).enumerate().collect(), |(index, part)| {
        let mut random = random.clone();
        random.advance((index * words) as u128);
        random.fill_bytes(part);
    });
}

/// From 0 to 1, without 1.
pub(super) fn unit(drawn: u64) -> f64 {
    (drawn >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Values whose range widens downwards or upwards from plateau to plateau.
fn fill_widening(falling: bool, element: ElementType, random: &mut Pcg64Mcg, bytes: &mut [u8]) {
    let element_bytes = element.bytes();
    let plateau_bytes = (bytes.len() / element_bytes).div_ceil(PLATEAUS as usize).max(1) * element_bytes;
    let plateaus = bytes.len().div_ceil(plateau_bytes) as u64;
    for (plateau, values) in bytes.chunks_mut(plateau_bytes).enumerate() {
        // A 64-bit fraction of the type's range; the first plateau has some of it already.
        let width = ((u128::from(u64::MAX) * (plateau as u128 + 1)) / u128::from(plateaus)) as u64;
        for value in values.chunks_exact_mut(element_bytes) {
            let share = ((u128::from(random.next_u64()) * u128::from(width)) >> 64) as u64;
            let share = if falling { !share } else { share };
            match element.float() {
                // From -1 to 1.
                Some(float) => (float.write)(signed_unit(share), value),
                None => {
                    let ordered = if element.is_signed() { share ^ (1 << 63) } else { share };
                    value.copy_from_slice(&ordered.to_le_bytes()[8 - element_bytes..]);
                }
            }
        }
    }
}

fn signed_unit(share: u64) -> f64 {
    ((share ^ (1 << 63)) as i64) as f64 * (1.0 / (1u64 << 63) as f64)
}

/// All bits set or clear but for one bit in about 2·bits elements of the array.
fn fill_sparse_bits(mostly_set: bool, element: ElementType, random: &mut Pcg64Mcg, bytes: &mut [u8]) {
    bytes.fill(if mostly_set { 0xff } else { 0x00 });
    let n = (bytes.len() / element.bytes()) as u64;
    if n == 0 {
        return;
    }
    let bits = 8 * element.bytes() as u64;
    for _ in 0..2 * bits {
        let drawn = u128::from(random.next_u64());
        let (at, bit) = (((drawn * u128::from(n)) >> 64) as usize, random.next_u64() % bits);
        bytes[at * element.bytes() + bit as usize / 8] ^= 1 << (bit % 8);
    }
}
