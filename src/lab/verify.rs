//! Comparison of every output element with the reference.
//!
//! Exact types are compared bit for bit. A float sum y is right where |y − reference| ≤ 2·u·depth·Σ|x|:
//! u is the unit round-off, Σ|x| runs over the same prefix, and depth bounds how many roundings lie on the
//! path from any input to any output in the strategy at hand (Higham, *The accuracy of floating point
//! summation*, 1993: every such sum is within depth·u·Σ|x| to first order; the 2 covers the rest and the
//! rounding of the reference itself).

use crate::element::monoid::{InstanceVisitor, Monoid, visit_instance};
use crate::element::{Float, Instance};
use crate::lab::dataset::{Dataset, Reference};
use crate::strategy::Rounding;
use crate::strategy::plan::ScanRequest;
use serde::{Deserialize, Serialize};

/// The verdict over all elements of one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// Elements compared.
    pub compared: u64,
    /// Elements that differ from the reference (by more than the bound, for rounded sums).
    pub mismatches: u64,
    /// The first that does.
    pub first_mismatch: Option<u64>,
}

impl Verification {
    /// Whether every element is right.
    pub fn passed(&self) -> bool {
        self.mismatches == 0
    }
}

/// Compares every element of `output` with what `request` must give on `dataset`. Elements that
/// `output` lacks, or has too many, count as mismatches.
pub fn verify(request: &ScanRequest, dataset: &Dataset, output: &[u8]) -> Verification {
    let element_bytes = request.instance().element().bytes();
    let shift = request.mode.lag() as usize;
    let n = dataset.n as usize;
    let found = output.len() / element_bytes;
    let mut tally = Tally::default();
    match &dataset.reference {
        Reference::Exact(prefixes) => {
            let compare = CompareExactly { prefixes, output, shift, tally: &mut tally };
            visit_instance(request.instance(), compare);
        }
        Reference::Rounded { high, low, magnitude } => {
            let factor = error_factor(request);
            let Float { largest, read, .. } = *float(request.instance());
            for (index, bytes) in output.chunks_exact(element_bytes).take(n).enumerate() {
                let value = read(bytes);
                let right = match index.checked_sub(shift) {
                    None => value == 0.0,
                    Some(at) => {
                        let rest = low.get(at).copied().unwrap_or(0.0);
                        is_within_bound(value, high[at], rest, magnitude[at], factor, largest)
                    }
                };
                tally.count(index, right);
            }
        }
    }
    tally.count_missing(n, found, !output.len().is_multiple_of(element_bytes));
    Verification { compared: n as u64, mismatches: tally.mismatches, first_mismatch: tally.first }
}

/// Whether `value` may be the sum whose precise value is `high + low`. Where Σ|x| passes the largest
/// finite number some order of additions overflows, and then no finite result can be asked for.
fn is_within_bound(value: f64, high: f64, low: f64, magnitude: f64, factor: f64, largest: f64) -> bool {
    if high.is_nan() {
        value.is_nan()
    } else if magnitude > largest && !value.is_finite() {
        true
    } else if high.is_infinite() {
        value == high
    } else {
        ((value - high) - low).abs() <= factor * magnitude
    }
}

/// 2·u·depth: what Σ|x| is multiplied with to bound the error of a float sum.
pub fn error_factor(request: &ScanRequest) -> f64 {
    2.0 * float(request.instance()).unit_roundoff * rounding_depth(request)
}

/// The element type of a rounded sum.
fn float(instance: Instance) -> &'static Float {
    instance.element().float().expect("only sums of floats are rounded")
}

/// Bounds the roundings on the path from any input to any output of the strategy.
///
/// - [`Rounding::Serial`]: n, one addition after the other.
/// - [`Rounding::Tree`]: 2·⌈log₂ n⌉ + 2, up a tree of the whole array and down again.
/// - [`Rounding::Spine`]: what lies inside a tile, once a level of the spine.
/// - [`Rounding::Chain`]: what lies inside a tile once, and an addition a tile. Look-back's worst case is a prefix that
///   grows tile by tile; one-wave and look-ahead add at most once a tile.
///
/// Inside a tile: two additions a value of the thread (its own scan, and the carry from row to row), at most twice
/// log₂ of the block for the pattern in use, and 36 for the serial scan of up to 32 warp totals and the additions that
/// join the parts.
pub fn rounding_depth(request: &ScanRequest) -> f64 {
    let n = request.n.max(1);
    let levels = f64::from(n.next_power_of_two().trailing_zeros());
    let block = u64::from(request.config.block_threads.max(1));
    let vt = u64::from(request.config.vt.max(1));
    let tile = (block * vt).max(2);
    let tile_depth = 2.0 * vt as f64 + 2.0 * f64::from(block.next_power_of_two().trailing_zeros()) + 36.0;
    match request.strategy.row().rounding {
        Rounding::Serial => n as f64,
        Rounding::Tree => 2.0 * levels + 2.0,
        Rounding::Spine => {
            let (mut spine, mut spine_levels) = (n, 1.0);
            while spine > 1 {
                // One more tile than the array fills: a misaligned array begins inside its first tile.
                spine = if spine <= tile { 1 } else { spine / tile + 2 };
                spine_levels += 1.0;
                if spine <= 3 {
                    break;
                }
            }
            spine_levels * (tile_depth + 1.0)
        }
        Rounding::Chain => tile_depth + (n / tile + 2) as f64,
    }
}

#[derive(Default)]
struct Tally {
    mismatches: u64,
    first: Option<u64>,
}

impl Tally {
    fn count(&mut self, index: usize, right: bool) {
        if !right {
            self.mismatches += 1;
            self.first.get_or_insert(index as u64);
        }
    }

    fn count_missing(&mut self, expected: usize, found: usize, ragged: bool) {
        let missing = expected.abs_diff(found) as u64;
        let differing = if missing == 0 { u64::from(ragged) } else { missing };
        if differing > 0 {
            self.mismatches += differing;
            self.first.get_or_insert(expected.min(found) as u64);
        }
    }
}

struct CompareExactly<'a> {
    prefixes: &'a [u8],
    output: &'a [u8],
    shift: usize,
    tally: &'a mut Tally,
}

impl InstanceVisitor for CompareExactly<'_> {
    type Output = ();
    fn visit<M: Monoid>(self) {
        let bytes = size_of::<M::Value>();
        let shifted_bytes = self.shift * bytes;
        let common = self.output.len().min(self.prefixes.len());
        let head = shifted_bytes.min(common);
        let identity = M::IDENTITY;
        let expected_head = &bytemuck::bytes_of(&identity)[..head];
        let expected_tail = &self.prefixes[..common - head];
        // The usual case at the speed of memory.
        if self.output[..head] == *expected_head && self.output[head..common] == *expected_tail {
            return;
        }
        let expected = expected_head.chunks_exact(bytes).chain(expected_tail.chunks_exact(bytes));
        for (index, (expected, found)) in expected.zip(self.output.chunks_exact(bytes)).enumerate() {
            let read = |bytes| bytemuck::pod_read_unaligned::<M::Value>(bytes);
            self.tally.count(index, M::same(&read(expected), &read(found)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ElementType, Operator};
    use crate::strategy::{Mode, ScanConfig, Strategy};
    use proptest::prelude::*;

    fn request(instance: Instance, mode: Mode, n: u64) -> ScanRequest {
        ScanRequest::aligned(instance, Strategy::Lookback, mode, ScanConfig::default(), n)
    }

    /// The right output of any instance; a rounded one is summed in its own precision.
    fn right_output(dataset: &Dataset, mode: Mode) -> Vec<u8> {
        dataset.expected_output(mode).unwrap_or_else(|| {
            struct Scan<'a>(&'a [u8], Mode);
            impl InstanceVisitor for Scan<'_> {
                type Output = Vec<u8>;
                fn visit<M: Monoid>(self) -> Vec<u8> {
                    let mut prefix = M::IDENTITY;
                    let mut output = Vec::new();
                    for chunk in self.0.chunks_exact(size_of::<M::Value>()) {
                        let before = prefix;
                        prefix = M::combine(prefix, bytemuck::pod_read_unaligned(chunk));
                        let value = if self.1 == Mode::Inclusive { prefix } else { before };
                        output.extend_from_slice(bytemuck::bytes_of(&value));
                    }
                    output
                }
            }
            visit_instance(dataset.instance, Scan(&dataset.input, mode))
        })
    }

    #[test]
    fn right_outputs_pass_in_every_instance_and_mode() {
        for instance in Instance::all() {
            for mode in [Mode::Inclusive, Mode::Exclusive] {
                for n in [0, 1, 2, 31, 1000] {
                    let dataset = Dataset::random(instance, n, 3);
                    let verdict = verify(&request(instance, mode, n), &dataset, &right_output(&dataset, mode));
                    assert!(verdict.passed(), "{instance} {mode} {n}: {verdict:?}");
                    assert_eq!(verdict.compared, n);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn one_corrupted_element_is_found(seed: u64, at in 0u64..500, exclusive: bool) {
            for instance in Instance::all() {
                let mode = if exclusive { Mode::Exclusive } else { Mode::Inclusive };
                let dataset = Dataset::random(instance, 500, seed);
                let mut output = right_output(&dataset, mode);
                let size = instance.element().bytes();
                // The highest byte: sign and exponent of a float, far outside any bound.
                output[at as usize * size + size - 1] ^= 0x41;
                let verdict = verify(&request(instance, mode, 500), &dataset, &output);
                prop_assert_eq!(verdict.mismatches, 1, "{} {}", instance, mode);
                prop_assert_eq!(verdict.first_mismatch, Some(at), "{} {}", instance, mode);
            }
        }
    }

    #[test]
    fn a_lost_tile_of_floats_is_outside_the_bound() {
        for element in [ElementType::F32, ElementType::F64] {
            let instance = Instance::new(element, Operator::Sum).unwrap();
            let n = 1 << 20;
            let dataset = Dataset::random(instance, n, 5);
            let mut input = dataset.input.clone();
            input[..8192 * element.bytes()].fill(0);
            let without = Dataset::from_bytes(instance, input, String::new()).unwrap();
            let verdict =
                verify(&request(instance, Mode::Inclusive, n), &dataset, &right_output(&without, Mode::Inclusive));
            assert!(verdict.mismatches > n / 2, "{instance}: {verdict:?}");
        }
    }

    #[test]
    fn a_short_or_long_output_is_no_right_one() {
        let instance = Instance::new(ElementType::U32, Operator::Sum).unwrap();
        let dataset = Dataset::random(instance, 10, 5);
        let mut output = right_output(&dataset, Mode::Inclusive);
        output.extend_from_slice(&[0; 4]);
        let request = request(instance, Mode::Inclusive, 10);
        assert_eq!(verify(&request, &dataset, &output).first_mismatch, Some(10));
        assert_eq!(verify(&request, &dataset, &output[..20]).mismatches, 5);
        assert_eq!(verify(&request, &dataset, &output[..39]).mismatches, 1);
    }

    #[test]
    fn infinities_and_nans_in_the_input_are_settled() {
        for (input, output, passes) in [
            ([1.0, f32::NAN, 2.0], [1.0, f32::NAN, f32::NAN], true),
            ([1.0, f32::NAN, 2.0], [1.0, f32::NAN, 3.0], false),
            ([1.0, f32::INFINITY, 2.0], [1.0, f32::INFINITY, f32::INFINITY], true),
            ([1.0, f32::INFINITY, 2.0], [1.0, f32::INFINITY, 3.0], false),
            ([f32::MAX, f32::MAX, -f32::MAX], [f32::MAX, f32::INFINITY, f32::INFINITY], true),
            ([f32::MAX, f32::MAX, -f32::MAX], [f32::MAX, f32::INFINITY, f32::MAX], true),
            ([f32::MAX, f32::MAX, -f32::MAX], [f32::MAX, f32::INFINITY, 0.0], false),
        ] {
            let instance = Instance::new(ElementType::F32, Operator::Sum).unwrap();
            let bytes = bytemuck::cast_slice(&input).to_vec();
            let dataset = Dataset::from_bytes(instance, bytes, String::new()).unwrap();
            let verdict = verify(&request(instance, Mode::Inclusive, 3), &dataset, bytemuck::cast_slice(&output));
            assert_eq!(verdict.passed(), passes, "{input:?} {output:?}");
        }
    }
}
