//! Inputs and their sequential reference.
//!
//! A reference is computed once, by one pass from front to back, in the definition of `crate::element::monoid`.
//! Integers and the monoids of the tests have one right answer. A sum of floats has as many as there are
//! ways to set the parentheses, so its reference is a more precise sum (f64 for f32, a double-double for
//! f64) together with the sum of |x| that the error bound of `crate::lab::verify` grows with. A product of floats
//! has one right answer where it is exact in every order, and no other array is taken.

use crate::element::monoid::{InstanceVisitor, Monoid, visit_instance};
use crate::element::{Distribution, ElementType, Instance, Operator};
use crate::strategy::Mode;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// An input array and what its inclusive scan must be. Little-endian bytes, as on every supported device.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// Element type and operator.
    pub instance: Instance,
    /// Elements.
    pub n: u64,
    /// `n` elements as bytes.
    pub input: Vec<u8>,
    /// The inclusive scan, from front to back.
    pub reference: Reference,
    /// Where the input comes from: "random, seed 42" or a file.
    pub source: String,
}

/// What an inclusive scan must be.
#[derive(Debug, Clone)]
pub enum Reference {
    /// Bit for bit (any NaN for a NaN).
    Exact(Vec<u8>),
    /// Within `2·u·depth·magnitude[i]` of `high[i] + low[i]`, u the unit round-off of the element.
    Rounded {
        /// The prefix sums, rounded to f64.
        high: Vec<f64>,
        /// What the rounding left; empty for f32, whose reference is f64.
        low: Vec<f64>,
        /// Prefix sums of |x|.
        magnitude: Vec<f64>,
    },
}

/// An array that has no scan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoScan {
    /// Bytes that are no array of the element.
    #[error(
        "{bytes} bytes are no whole number of {element} elements of {element_bytes} bytes each; the data is cut off or of another type"
    )]
    PartialElement {
        /// Bytes given.
        bytes: u64,
        /// Element type asked for.
        element: ElementType,
        /// Its size.
        element_bytes: usize,
    },
    /// Strategies put an array together in orders of their own, and would not come to one result.
    #[error("the operator is not associative on this array: {0}")]
    NotAssociative(&'static str),
}

/// An array that does not fit into this machine's memory beside its reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{n} elements of {instance} take {needed_bytes} bytes with their reference, this machine has {available_bytes} free; choose a smaller n"
)]
pub struct NotEnoughMemory {
    /// What was asked for.
    pub instance: Instance,
    /// Elements asked for.
    pub n: u64,
    /// What it would take.
    pub needed_bytes: u64,
    /// What there is.
    pub available_bytes: u64,
}

impl Dataset {
    /// Whether a dataset of `n` elements fits into memory. Where the system does not say how much is free,
    /// nothing is too large.
    ///
    /// # Errors
    /// When it does not.
    pub fn fits(instance: Instance, n: u64) -> Result<(), NotEnoughMemory> {
        let bytes = instance.element().bytes() as u64;
        let reference_bytes = match instance.is_rounded() {
            true if bytes < 8 => 16,
            true => 24,
            false => bytes,
        };
        let needed_bytes = n.saturating_mul(bytes + reference_bytes);
        let available_bytes = available_memory_bytes().unwrap_or(u64::MAX);
        if needed_bytes <= available_bytes {
            Ok(())
        } else {
            Err(NotEnoughMemory { instance, n, needed_bytes, available_bytes })
        }
    }

    /// `n` elements drawn from a generator seeded with `seed`: the same on every machine.
    ///
    /// The distribution serves to find faults. Sums are of full-range integers, or of floats from -0.5 to
    /// 1.5, whose prefix grows so that a lost tile stands out against the rounding bound. Products are of odd integers,
    /// or of powers of two that leave the prefix in range. Minima and
    /// maxima keep falling and rising over the array, and bits of `and` and `or` go one at a time, because
    /// the plain random array reaches its final prefix within a few elements and hides any later fault.
    pub fn random(instance: Instance, n: u64, seed: u64) -> Self {
        let bytes = usize::try_from(n).ok().and_then(|n| n.checked_mul(instance.element().bytes()));
        let mut input = vec![0; bytes.expect("an array fits the address space")];
        fill(instance, seed, &mut input);
        Self::with_reference(instance, input, format!("random, seed {seed}"))
    }

    /// An array that is there already; `source` says where it comes from.
    ///
    /// # Errors
    /// When `input` is no whole number of elements, or the operator is not associative on it.
    pub fn from_bytes(instance: Instance, input: Vec<u8>, source: String) -> Result<Self, NoScan> {
        let (element, element_bytes) = (instance.element(), instance.element().bytes());
        if !input.len().is_multiple_of(element_bytes) {
            return Err(NoScan::PartialElement { bytes: input.len() as u64, element, element_bytes });
        }
        match instance.ambiguity(&input) {
            Some(why) => Err(NoScan::NotAssociative(why)),
            None => Ok(Self::with_reference(instance, input, source)),
        }
    }

    fn with_reference(instance: Instance, input: Vec<u8>, source: String) -> Self {
        let n = (input.len() / instance.element().bytes()) as u64;
        let reference = Reference::new(instance, &input);
        Self { instance, n, input, reference, source }
    }

    /// Element `index` of the right output in `mode`, as bytes; `None` for rounded sums, which have a
    /// bound instead.
    pub fn expected_exactly(&self, mode: Mode, index: u64) -> Option<Vec<u8>> {
        let Reference::Exact(prefixes) = &self.reference else { return None };
        let bytes = self.instance.element().bytes();
        let Some(at) = (index as usize).checked_sub(mode.lag() as usize) else {
            return Some(self.instance.identity_bytes());
        };
        prefixes.get(at * bytes..(at + 1) * bytes).map(<[u8]>::to_vec)
    }

    /// The right output in `mode` for exact types, `None` for rounded sums. Allocates a whole array; for
    /// tests and small n.
    pub fn expected_output(&self, mode: Mode) -> Option<Vec<u8>> {
        let Reference::Exact(prefixes) = &self.reference else { return None };
        let mut shifted = self.instance.identity_bytes().repeat(mode.lag() as usize);
        shifted.extend_from_slice(prefixes);
        shifted.truncate(prefixes.len());
        Some(shifted)
    }
}

/// What Linux says could be allocated without swapping.
fn available_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

impl Reference {
    /// The inclusive scan of `input`, a whole number of elements.
    pub fn new(instance: Instance, input: &[u8]) -> Self {
        match instance.element().float() {
            Some(float) if instance.is_rounded() => {
                let bytes = instance.element().bytes();
                let values = input.chunks_exact(bytes).map(float.read);
                if bytes < 8 { sum_in_f64(values) } else { sum_in_double_double(values) }
            }
            _ => visit_instance(instance, ExactScan { input }),
        }
    }
}

struct ExactScan<'a> {
    input: &'a [u8],
}

impl InstanceVisitor for ExactScan<'_> {
    type Output = Reference;
    fn visit<M: Monoid>(self) -> Reference {
        let bytes = size_of::<M::Value>();
        let mut prefixes = vec![0; self.input.len()];
        let mut prefix = M::IDENTITY;
        for (output, input) in prefixes.chunks_exact_mut(bytes).zip(self.input.chunks_exact(bytes)) {
            prefix = M::combine(prefix, bytemuck::pod_read_unaligned(input));
            output.copy_from_slice(bytemuck::bytes_of(&prefix));
        }
        Reference::Exact(prefixes)
    }
}

fn sum_in_f64(values: impl ExactSizeIterator<Item = f64>) -> Reference {
    let n = values.len();
    let (mut high, mut magnitude) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let (mut sum, mut absolute_sum) = (0.0, 0.0);
    for value in values {
        sum += value;
        absolute_sum += value.abs();
        high.push(sum);
        magnitude.push(absolute_sum);
    }
    Reference::Rounded { high, low: Vec::new(), magnitude }
}

fn sum_in_double_double(values: impl ExactSizeIterator<Item = f64>) -> Reference {
    let n = values.len();
    let mut high = Vec::with_capacity(n);
    let mut low = Vec::with_capacity(n);
    let mut magnitude = Vec::with_capacity(n);
    let (mut sum, mut rest, mut absolute_sum) = (0.0f64, 0.0f64, 0.0f64);
    for value in values {
        let (rounded, error) = two_sum(sum, value);
        if rounded.is_finite() {
            (sum, rest) = two_sum(rounded, rest + error);
        } else {
            // Infinity minus infinity would turn an infinite sum into NaN.
            (sum, rest) = (rounded, 0.0);
        }
        absolute_sum += value.abs();
        high.push(sum);
        low.push(rest);
        magnitude.push(absolute_sum);
    }
    Reference::Rounded { high, low, magnitude }
}

/// Knuth's two-sum: `left + right` rounded, and exactly what the rounding lost.
pub(crate) fn two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let right_share = sum - left;
    let left_share = sum - right_share;
    (sum, (left - left_share) + (right - right_share))
}

/// Plateaus over which the range of random minima and maxima widens.
pub(crate) const PLATEAUS: u64 = 4096;

fn fill(instance: Instance, seed: u64, bytes: &mut [u8]) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let element = instance.element();
    match instance.operator() {
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
        other => fill_numbers(element, other.input(), &mut random, bytes),
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
        (Distribution::Factors, Some(float)) => {
            let mut exponent = 0;
            for chunk in bytes.chunks_exact_mut(element.bytes()) {
                let drawn = random.next_u64();
                let next = (drawn & 31) as i32;
                let sign = if drawn >> 63 == 0 { 1.0 } else { -1.0 };
                (float.write)(sign * 2f64.powi(next - exponent), chunk);
                exponent = next;
            }
        }
        (Distribution::Factors, None) => {
            random.fill_bytes(bytes);
            bytes.iter_mut().step_by(element.bytes()).for_each(|byte| *byte |= 1);
        }
        // `Walk` is no operator's.
        (Distribution::Uniform | Distribution::Walk, Some(float)) => {
            for chunk in bytes.chunks_exact_mut(element.bytes()) {
                (float.write)(2.0 * unit(random) - 0.5, chunk);
            }
        }
        (Distribution::Uniform | Distribution::Walk, None) => random.fill_bytes(bytes),
    }
}

/// From 0 to 1, without 1.
fn unit(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn instances() -> Vec<Instance> {
        Instance::all().collect()
    }

    #[test]
    fn random_arrays_are_reproducible_differ_by_seed_and_are_never_zeros_only() {
        for instance in instances() {
            let array = Dataset::random(instance, 1000, 7);
            assert_eq!(array.input, Dataset::random(instance, 1000, 7).input, "{instance}");
            assert!(array.input.iter().any(|&byte| byte != 0), "{instance}");
            if instance.operator() != Operator::Intervals {
                assert_ne!(array.input, Dataset::random(instance, 1000, 8).input, "{instance}");
            }
        }
    }

    #[test]
    fn prefixes_of_random_arrays_keep_changing_behind_their_first_quarter() {
        for instance in instances() {
            let dataset = Dataset::random(instance, 100_000, 1);
            let Reference::Exact(prefixes) = &dataset.reference else { continue };
            let bytes = instance.element().bytes();
            let last = &prefixes[prefixes.len() - bytes..];
            assert!(prefixes[prefixes.len() / 4..].chunks_exact(bytes).any(|prefix| prefix != last), "{instance}");
        }
    }

    #[test]
    fn random_products_of_floats_are_exact_in_every_order() {
        for element in [ElementType::F32, ElementType::F64] {
            let instance = Instance::new(element, Operator::Product).unwrap();
            let Dataset { input, reference, .. } = Dataset::random(instance, 100_000, 9);
            assert_eq!(instance.ambiguity(&input), None, "{element}");
            assert!(matches!(reference, Reference::Exact(_)));
            let with_zero = [input, vec![0; element.bytes()]].concat();
            let refused = Dataset::from_bytes(instance, with_zero, String::new());
            assert!(matches!(refused, Err(NoScan::NotAssociative(_))), "{element}");
        }
    }

    #[test]
    fn empty_arrays_have_empty_references() {
        for instance in instances() {
            let dataset = Dataset::random(instance, 0, 0);
            assert_eq!(dataset.n, 0);
            match dataset.reference {
                Reference::Exact(prefixes) => assert!(prefixes.is_empty()),
                Reference::Rounded { high, .. } => assert!(high.is_empty()),
            }
        }
    }

    #[test]
    fn prefixes_of_index_intervals_start_at_zero() {
        let instance = Instance::new(ElementType::IndexInterval, Operator::Intervals).unwrap();
        let dataset = Dataset::random(instance, 100, 0);
        assert_eq!(dataset.expected_exactly(Mode::Inclusive, 41).unwrap(), bytemuck::bytes_of(&[0u32, 41]));
        assert_eq!(dataset.expected_exactly(Mode::Exclusive, 41).unwrap(), bytemuck::bytes_of(&[0u32, 40]));
        assert_eq!(dataset.expected_exactly(Mode::Exclusive, 0).unwrap(), bytemuck::bytes_of(&[1u32, 0]));
    }

    #[test]
    fn the_double_double_reference_keeps_what_f64_loses() {
        let instance = Instance::new(ElementType::F64, Operator::Sum).unwrap();
        let input = [1e16, 1.0, 1.0, -1e16];
        let dataset = Dataset::from_bytes(instance, bytemuck::cast_slice(&input).to_vec(), "test".into()).unwrap();
        let Reference::Rounded { high, low, magnitude } = dataset.reference else { panic!("f64 sums are rounded") };
        assert_eq!(high[3] + low[3], 2.0);
        assert_eq!(magnitude[3], 2e16 + 2.0);
    }

    #[test]
    fn half_an_element_is_refused() {
        let instance = Instance::new(ElementType::U32, Operator::Sum).unwrap();
        let error = Dataset::from_bytes(instance, vec![0; 6], "test".into()).unwrap_err();
        assert_eq!(error, NoScan::PartialElement { bytes: 6, element: ElementType::U32, element_bytes: 4 });
    }

    proptest! {
        #[test]
        fn the_order_sensitive_monoids_see_a_swap_of_neighbours(at in 0usize..99, seed: u64) {
            // Two bicyclic pairs of small exponents may commute; they have a test of their own.
            for operator in [Operator::Affine, Operator::Intervals] {
                let instance = Instance::new(operator.own_element().unwrap(), operator).unwrap();
                let dataset = Dataset::random(instance, 100, seed);
                let size = instance.element().bytes();
                let mut swapped = dataset.input.clone();
                let (left, right) = swapped[at * size..(at + 2) * size].split_at_mut(size);
                left.swap_with_slice(right);
                let swapped = Dataset::from_bytes(instance, swapped, "swapped".into()).unwrap();
                let prefix = |dataset: &Dataset| dataset.expected_exactly(Mode::Inclusive, at as u64 + 1).unwrap();
                prop_assert_ne!(prefix(&dataset), prefix(&swapped), "{}", instance);
            }
        }
    }

    #[test]
    fn most_swaps_of_bicyclic_neighbours_show() {
        let instance = Instance::new(ElementType::BicyclicPair, Operator::Bicyclic).unwrap();
        let shown = (0..1000u64)
            .filter(|&seed| {
                let pair = Dataset::random(instance, 2, seed);
                let mut input = pair.input.clone();
                input.rotate_left(8);
                let swapped = Dataset::from_bytes(instance, input, String::new()).unwrap();
                pair.expected_exactly(Mode::Inclusive, 1) != swapped.expected_exactly(Mode::Inclusive, 1)
            })
            .count();
        assert!(shown > 800, "{shown} of 1000");
    }
}
