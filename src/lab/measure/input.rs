//! Inputs that are functions of an index: made on the device in place, and made anew there by whoever
//! verifies, so that no array has to be kept, uploaded or summed on the host, at any size.
//!
//! `cuda/measure.cu` holds the same functions. What the device made is compared with [`generate`] at a few
//! indices before anything is measured on it.

use crate::element::{Distribution, ElementType, Float, Instance};
use crate::lab::dataset::PLATEAUS;

/// Whether inputs of this instance can be made and verified on the device: numbers.
pub fn is_supported(instance: Instance) -> bool {
    ElementType::NUMBERS.contains(&instance.element())
}

/// The output function of SplitMix64 over a counter.
const fn random_bits(seed: u64, index: u64) -> u64 {
    let mut bits = seed.wrapping_add((index.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

const fn high_product(left: u64, right: u64) -> u64 {
    ((left as u128 * right as u128) >> 64) as u64
}

/// Element `index` of the input of `n` elements, as little-endian bytes.
pub fn generate(element: ElementType, distribution: Distribution, seed: u64, n: u64, index: u64) -> Vec<u8> {
    let bytes = element.bytes();
    let bits = random_bits(seed, index);
    let integer = |value: u64| value.to_le_bytes()[..bytes].to_vec();
    let rounded = |float: &Float, value: f64| {
        let mut rounded = vec![0; bytes];
        (float.write)(value, &mut rounded);
        rounded
    };
    match distribution {
        Distribution::Uniform => match element.float() {
            // All bits of the significand are random, so that nothing is rounded.
            Some(float) => {
                let digits = float.digits;
                rounded(float, (bits >> (64 - digits)) as f64 * 2f64.powi(1 - digits.cast_signed()) - 0.5)
            }
            None => integer(bits >> (64 - 8 * bytes)),
        },
        Distribution::Falling | Distribution::Rising => {
            let plateau_length = n.div_ceil(PLATEAUS).max(1);
            let width = (index / plateau_length + 1).wrapping_mul(u64::MAX / PLATEAUS);
            let share = high_product(bits, width);
            let share = if distribution == Distribution::Falling { !share } else { share };
            let sign = 1 << 63;
            match element.float() {
                Some(float) => rounded(float, (share ^ sign) as i64 as f64 * 2f64.powi(-63)),
                None => integer(if element.is_signed() { share ^ sign } else { share } >> (64 - 8 * bytes)),
            }
        }
        Distribution::SparseZeros | Distribution::SparseOnes => {
            let event = high_product(bits, n) < 16 * bytes as u64;
            let set = if event { 1 << (random_bits(!seed, index) % (8 * bytes as u64)) } else { 0 };
            integer(if distribution == Distribution::SparseZeros { !set } else { set })
        }
        Distribution::Factors => match element.float() {
            Some(float) => {
                let exponent = |index| (random_bits(!seed, index) >> 59) as i32;
                let sign = if bits >> 63 == 0 { 1.0 } else { -1.0 };
                rounded(float, sign * 2f64.powi(exponent(index + 1) - exponent(index)))
            }
            None => integer(bits >> (64 - 8 * bytes) | 1),
        },
        Distribution::Walk => {
            let step = (bits >> 61) as i64 - 4;
            let step = if step < 0 { step } else { step + 1 };
            match element.float() {
                Some(float) => rounded(float, step as f64),
                None => integer(step as u64),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Operator;

    fn elements(instance: Instance, n: u64) -> Vec<Vec<u8>> {
        (0..n).map(|index| generate(instance.element(), instance.operator().input(), 7, n, index)).collect()
    }

    #[test]
    fn every_supported_input_keeps_changing_and_is_never_zeros_only() {
        for instance in Instance::all().filter(|&instance| is_supported(instance)) {
            let n = 5000;
            let input = elements(instance, n);
            assert!(input.iter().all(|element| element.len() == instance.element().bytes()), "{instance}");
            assert!(input.iter().flatten().any(|&byte| byte != 0), "{instance}");
            let distinct: std::collections::BTreeSet<_> = input.iter().collect();
            assert!(distinct.len() >= 5, "{instance}: {} values", distinct.len());
            // The inclusive scan still changes in its second half, so a fault there shows.
            let reference = crate::lab::dataset::Reference::new(instance, &input.concat());
            let crate::lab::dataset::Reference::Exact(prefixes) = reference else { continue };
            let bytes = instance.element().bytes();
            let (middle, last) = (n as usize / 4 * bytes, (n as usize - 1) * bytes);
            let mut later = prefixes[middle..last].chunks_exact(bytes);
            assert!(later.any(|prefix| prefix != &prefixes[last..]), "{instance}");
        }
    }

    #[test]
    fn the_walk_of_floats_sums_exactly_in_any_order() {
        let n = 1 << 20;
        let (mut sum, mut largest) = (0i64, 0i64);
        for index in 0..n {
            let bytes = generate(ElementType::F32, Distribution::Walk, 42, n, index);
            let value = f32::from_le_bytes(bytes.try_into().unwrap());
            assert!(value != 0.0 && value.fract() == 0.0 && value.abs() <= 4.0);
            sum += value as i64;
            largest = largest.max(sum.abs());
        }
        // A random walk grows with the square root: 64 times this at 2^32, and twice that between two points.
        assert!(2 * 64 * largest < 1 << 24, "{largest}");
    }

    #[test]
    fn factors_of_floats_have_exact_products_and_those_of_integers_are_odd() {
        for instance in Instance::all().filter(|instance| instance.operator() == Operator::Product) {
            let input = elements(instance, 10_000);
            assert_eq!(instance.ambiguity(&input.concat()), None, "{instance}");
            let is_odd = |element: &Vec<u8>| element[0] & 1 == 1;
            assert!(instance.element().is_float() || input.iter().all(is_odd), "{instance}");
        }
    }

    #[test]
    fn uniform_floats_lie_between_their_bounds() {
        for index in 0..10_000 {
            let bytes = generate(ElementType::F64, Distribution::Uniform, 3, 10_000, index);
            let value = f64::from_le_bytes(bytes.try_into().unwrap());
            assert!((-0.5..1.5).contains(&value));
        }
    }
}
