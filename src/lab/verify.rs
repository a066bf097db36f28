//! Comparison of every output element with the reference.
//!
//! Exact types are compared bit for bit. A float sum y is right where |y − reference| ≤ 2·u·depth·Σ|x|:
//! u is the unit round-off, Σ|x| runs over the same prefix, and depth bounds how many roundings lie on the
//! path from any input to any output in the strategy at hand (Higham, *The accuracy of floating point
//! summation*, 1993: every such sum is within depth·u·Σ|x| to first order; the 2 covers the rest and the
//! rounding of the reference itself).
//!
//! Where neighbours add up to more than the largest number, a sum of finite floats may overflow in one order of
//! additions and not in another. A result that only such an order gives is neither right nor wrong: undecidable.

use crate::element::monoid::{InstanceVisitor, Monoid, visit_instance};
use crate::element::{Float, Instance};
use crate::lab::arrays::FILLING;
use crate::lab::dataset::{Dataset, Reference, two_sum};
use crate::lab::order::Order;
use crate::lab::workers;
use crate::strategy::Rounding;
use crate::strategy::plan::ScanRequest;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The verdict over all elements of one output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verification {
    /// Elements compared.
    pub compared: u64,
    /// Elements that differ from the reference (by more than the bound, for rounded sums).
    pub mismatches: u64,
    /// The first that does.
    pub first_mismatch: Option<u64>,
    /// What that one must be, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// Sums of floats that are neither right nor wrong, because overflow depends on the order of additions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undecidable: u64,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_undecidable: Option<u64>,
}

// serde passes a reference.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Verification {
    /// Of so many elements that are all right.
    pub fn right(compared: u64) -> Self {
        Self { compared, ..Self::default() }
    }

    /// Whether every element is right.
    pub fn passed(&self) -> bool {
        self.mismatches == 0 && self.undecidable == 0
    }

    /// What is not right, in a sentence; nothing if everything is.
    pub fn complaint(&self) -> Option<String> {
        let at = |first: Option<u64>| first.map_or(String::new(), |first| format!(", the first at index {first}"));
        if self.mismatches > 0 {
            let pair = self.expected.as_ref().zip(self.actual.as_ref());
            let pair = pair.map_or(String::new(), |(expected, actual)| format!(": expected {expected}, got {actual}"));
            let (wrong, all) = (self.mismatches, self.compared);
            return Some(format!("{wrong} of {all} elements are wrong{}{pair}", at(self.first_mismatch)));
        }
        (self.undecidable > 0).then(|| {
            let first = at(self.first_undecidable);
            format!(
                "undecidable: overflow depends on the order in {} of {} elements{first}",
                self.undecidable, self.compared
            )
        })
    }
}

/// Compares every element of `output` with what `request` must give on `dataset`. Elements that
/// `output` lacks, or has too many, count as mismatches. Where the problem drops elements, the output behind what is stored must
/// hold what it held before the run: bytes of 0xA5.
pub fn verify(request: &ScanRequest, dataset: &Dataset, output: &[u8]) -> Verification {
    let element_bytes = dataset.instance.element().bytes();
    let n = dataset.workload.output_elements(dataset.n) as usize;
    let stored = dataset.stored() as usize;
    let found = output.len() / element_bytes;
    let mut verification = Verification { compared: n as u64, ..Verification::default() };
    let order = dataset.order();
    let lag = request.mode.lag();
    match &dataset.reference {
        Reference::Exact(prefixes) => {
            let compare = CompareExactly { prefixes, output, order, lag, verification: &mut verification };
            visit_instance(dataset.instance, compare);
        }
        Reference::Rounded { .. } if may_overflow(dataset) => {
            judge_by_inputs(request, dataset, output, &mut verification)
        }
        Reference::Rounded { high, low, magnitude } => {
            let instance = dataset.instance;
            let read = float(instance).read;
            let factor = error_factor_of(request, instance);
            verification.count_in_parts(found.min(stored), |place, verification| {
                let bytes = &output[place * element_bytes..(place + 1) * element_bytes];
                let sum = order.source(lag, place).map_or(Sum::ZERO, |at| Sum::of([high, low, magnitude], at, factor));
                let verdict = if sum.is_near(read(bytes)) { Verdict::Right } else { Verdict::Wrong };
                verification.count(place, verdict, || (sum.text(), instance.text(bytes)));
            });
        }
    }
    let untouched = output.get(stored * element_bytes..found.min(n) * element_bytes).unwrap_or_default();
    if untouched.par_iter().any(|&byte| byte != FILLING) {
        for (behind, bytes) in untouched.chunks_exact(element_bytes).enumerate() {
            let is_written = bytes.iter().any(|&byte| byte != FILLING);
            let verdict = if is_written { Verdict::Wrong } else { Verdict::Right };
            let nothing = || (String::from("nothing behind what is kept"), dataset.instance.text(bytes));
            verification.count(stored + behind, verdict, nothing);
        }
    }
    verification.count_missing(n, found, !output.len().is_multiple_of(element_bytes));
    verification
}

/// Rounded sums of which some may overflow: one after the other, because an order of additions is judged by all inputs so far.
fn judge_by_inputs(request: &ScanRequest, dataset: &Dataset, output: &[u8], verification: &mut Verification) {
    let Reference::Rounded { high, low, magnitude } = &dataset.reference else { return };
    let instance = dataset.instance;
    let element_bytes = instance.element().bytes();
    let (order, lag) = (dataset.order(), request.mode.lag());
    let Float { largest, read, .. } = *float(instance);
    let factor = error_factor_of(request, instance);
    // One of each scan, where those of several lie side by side.
    let scans = order.side_by_side();
    let mut wide = vec![WideSum::default(); scans];
    for place in order.places() {
        let wide = &mut wide[place % scans];
        if order.begins(place) {
            *wide = WideSum::default();
        }
        if lag == 0 {
            wide.add(dataset.value(place));
        }
        if let Some(bytes) = output.get(place * element_bytes..(place + 1) * element_bytes) {
            let value = read(bytes);
            let text = || instance.text(bytes);
            match order.source(lag, place) {
                Some(at) if !is_below_overflow(magnitude[at], largest) => {
                    let verdict = wide.judge(value, factor, largest);
                    verification.count(place, verdict, || (wide.text(factor, largest), text()));
                }
                at => {
                    let sum = at.map_or(Sum::ZERO, |at| Sum::of([high, low, magnitude], at, factor));
                    let verdict = if sum.is_near(value) { Verdict::Right } else { Verdict::Wrong };
                    verification.count(place, verdict, || (sum.text(), text()));
                }
            }
        }
        if lag > 0 {
            wide.add(dataset.value(place));
        }
    }
}

/// Whether sums of these inputs may pass the largest number, so that [`verify`] has to look at every input.
pub(crate) fn may_overflow(dataset: &Dataset) -> bool {
    match (&dataset.reference, dataset.instance.element().float()) {
        // What is no file is drawn, and far from it.
        (Reference::Rounded { magnitude, .. }, Some(float)) if dataset.workload.kind().has_one_input() => {
            let passes = |part: &[f64]| part.iter().any(|&magnitude| !is_below_overflow(magnitude, float.largest));
            let parts = magnitude.chunks(workers::part_elements(magnitude.len())).collect();
            workers::each(parts, passes).contains(&true)
        }
        _ => false,
    }
}

/// Whether no sum overflows of numbers whose Σ|x| this is, however they are rounded. NaN is not.
fn is_below_overflow(magnitude: f64, largest: f64) -> bool {
    magnitude <= 0.5 * largest
}

/// What an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Right,
    Wrong,
    /// Overflow depends on the order.
    Undecidable,
}

/// The sum `high + low` of finite numbers, and how far a result may be from it.
pub(crate) struct Sum {
    pub(crate) high: f64,
    pub(crate) low: f64,
    pub(crate) bound: f64,
}

impl Sum {
    /// That of no numbers.
    const ZERO: Self = Self { high: 0.0, low: 0.0, bound: 0.0 };

    /// That of a reference at a place, whose bound is `factor` · Σ|x|.
    fn of([high, low, magnitude]: [&Vec<f64>; 3], at: usize, factor: f64) -> Self {
        let or_zero = |values: &Vec<f64>| values.get(at).copied().unwrap_or(0.0);
        Self { high: high[at], low: or_zero(low), bound: factor * or_zero(magnitude) }
    }

    fn is_near(&self, value: f64) -> bool {
        ((value - self.high) - self.low).abs() <= self.bound
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        format!("{:?} ± {:.1e}", self.high + self.low, self.bound) // as a program would have it
    }
}

/// A prefix sum of floats of which some, or sums of some, are beyond the largest number. All is divided by 2^64, so that
/// nothing overflows here; what that takes from the smallest numbers is far below the rounding of such sums.
#[derive(Debug, Clone, Default)]
struct WideSum {
    /// The sum of the finite numbers is `high + low`.
    high: f64,
    low: f64,
    /// Of |x|.
    magnitude: f64,
    /// The least and the largest of the prefix sums since the last number that is not finite.
    least_prefix: f64,
    largest_prefix: f64,
    /// The largest and the least sum of neighbours, all finite.
    highest: f64,
    lowest: f64,
    has_nan: bool,
    has_infinity: bool,
    has_negative_infinity: bool,
}

impl WideSum {
    const SCALE: f64 = 1.0 / (1_u128 << 64) as f64;

    fn add(&mut self, value: f64) {
        if !value.is_finite() {
            self.has_nan |= value.is_nan();
            self.has_infinity |= value == f64::INFINITY;
            self.has_negative_infinity |= value == f64::NEG_INFINITY;
            (self.least_prefix, self.largest_prefix) = (self.high, self.high);
            return;
        }
        let value = value * Self::SCALE;
        let (sum, error) = two_sum(self.high, value);
        (self.high, self.low) = two_sum(sum, error + self.low);
        self.magnitude += value.abs();
        self.highest = self.highest.max(self.high - self.least_prefix);
        self.lowest = self.lowest.min(self.high - self.largest_prefix);
        self.least_prefix = self.least_prefix.min(self.high);
        self.largest_prefix = self.largest_prefix.max(self.high);
    }

    /// The result where nothing overflows on the way; `None` for a finite one.
    fn special(&self, largest: f64) -> Option<f64> {
        let largest = largest * Self::SCALE;
        match (self.has_infinity, self.has_negative_infinity) {
            _ if self.has_nan => Some(f64::NAN),
            (true, true) => Some(f64::NAN),
            (true, false) => Some(f64::INFINITY),
            (false, true) => Some(f64::NEG_INFINITY),
            (false, false) if self.high > largest => Some(f64::INFINITY),
            (false, false) if self.high < -largest => Some(f64::NEG_INFINITY),
            (false, false) => None,
        }
    }

    fn judge(&self, value: f64, factor: f64, largest: f64) -> Verdict {
        let is_right = match self.special(largest) {
            Some(special) if !value.is_finite() => special == value || special.is_nan() && value.is_nan(),
            _ => {
                let is_finite = !(self.has_nan || self.has_infinity || self.has_negative_infinity);
                let sum = Sum { high: self.high, low: self.low, bound: factor * self.magnitude };
                is_finite && sum.is_near(value * Self::SCALE)
            }
        };
        // What sums of neighbours, in whatever order they are added, may come to.
        let may_pass = |sum: f64| sum + factor * self.magnitude > largest * Self::SCALE;
        let up = self.has_infinity || may_pass(self.highest);
        let down = self.has_negative_infinity || may_pass(-self.lowest);
        let is_reached = match value {
            _ if self.has_nan => false,
            value if value.is_nan() => up && down,
            f64::INFINITY => up && !self.has_negative_infinity,
            f64::NEG_INFINITY => down && !self.has_infinity,
            _ => false,
        };
        match (is_right, is_reached) {
            (true, _) => Verdict::Right,
            (false, true) => Verdict::Undecidable,
            (false, false) => Verdict::Wrong,
        }
    }

    /// For people.
    fn text(&self, factor: f64, largest: f64) -> String {
        match self.special(largest) {
            Some(special) => special.to_string(),
            None => {
                let [high, low, bound] = [self.high, self.low, factor * self.magnitude].map(|part| part / Self::SCALE);
                Sum { high, low, bound }.text()
            }
        }
    }
}

/// 2·u·depth: what Σ|x| is multiplied with to bound the error of a float sum, of a flat scan.
pub fn error_factor(request: &ScanRequest) -> f64 {
    error_factor_of(request, request.instance())
}

/// The same of any scan whose results are compared as those of `instance`. In a recurrence the factors are powers of two,
/// with which products are exact in every order: what is rounded is its additions, one a combination of states as in a sum,
/// so that Σ|x| is the recurrence of |a| and |b|.
fn error_factor_of(request: &ScanRequest, instance: Instance) -> f64 {
    2.0 * float(instance).unit_roundoff * rounding_depth(request)
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
///   grows tile by tile; one-wave and look-ahead add at most once a tile. Down columns one lane in two may have none, so that
///   there may be twice as many tiles.
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
        Rounding::Chain => {
            let most = if request.problem.axis().is_some() { 2 * n } else { n };
            tile_depth + (most / tile + 2) as f64
        }
    }
}

impl Verification {
    /// Counts an element; `texts` says of a wrong one what it must be and what it is.
    fn count(&mut self, index: usize, verdict: Verdict, texts: impl FnOnce() -> (String, String)) {
        match verdict {
            Verdict::Right => {}
            Verdict::Wrong => {
                self.mismatches += 1;
                // In reverse the later ones are found first.
                if self.first_mismatch.is_none_or(|first| first > index as u64) {
                    self.first_mismatch = Some(index as u64);
                    let (expected, actual) = texts();
                    (self.expected, self.actual) = (Some(expected), Some(actual));
                }
            }
            Verdict::Undecidable => {
                self.undecidable += 1;
                let first = self.first_undecidable.unwrap_or(u64::MAX).min(index as u64);
                self.first_undecidable = Some(first);
            }
        }
    }

    /// Counts the elements up to `n` on all cores; `count` looks at one of them.
    fn count_in_parts(&mut self, n: usize, count: impl Fn(usize, &mut Self) + Sync) {
        let of_part = |part: Range<usize>| {
            let mut found = Self::default();
            part.for_each(|place| count(place, &mut found));
            found
        };
        for part in workers::each(workers::part_ranges(n), of_part) {
            self.mismatches += part.mismatches;
            if part.first_mismatch.is_some_and(|first| self.first_mismatch.is_none_or(|before| before > first)) {
                let Self { first_mismatch, expected, actual, .. } = part;
                (self.first_mismatch, self.expected, self.actual) = (first_mismatch, expected, actual);
            }
        }
    }

    fn count_missing(&mut self, expected: usize, found: usize, ragged: bool) {
        let missing = expected.abs_diff(found) as u64;
        let differing = if missing == 0 { u64::from(ragged) } else { missing };
        if differing > 0 {
            self.mismatches += differing;
            if self.first_mismatch.is_none() {
                self.first_mismatch = Some(expected.min(found) as u64);
                let ragged = if ragged { " and a part of one" } else { "" };
                self.expected = Some(format!("{expected} elements"));
                self.actual = Some(format!("{found}{ragged}"));
            }
        }
    }
}

struct CompareExactly<'a> {
    prefixes: &'a [u8],
    output: &'a [u8],
    order: Order<'a>,
    lag: u64,
    verification: &'a mut Verification,
}

impl InstanceVisitor for CompareExactly<'_> {
    type Output = ();
    fn visit<M: Monoid>(self) {
        let Self { prefixes, output, order, lag, verification } = self;
        let bytes = size_of::<M::Value>();
        if order.is_flat() || lag == 0 {
            // The usual case at the speed of memory.
            let common = output.len().min(prefixes.len());
            let head = (lag as usize * bytes).min(common);
            let is_right = output[..head] == bytemuck::bytes_of(&M::IDENTITY)[..head];
            if is_right && output[head..common] == prefixes[..common - head] {
                return;
            }
        }
        let read =
            |array: &[u8], at: usize| bytemuck::pod_read_unaligned::<M::Value>(&array[at * bytes..(at + 1) * bytes]);
        verification.count_in_parts(prefixes.len().min(output.len()) / bytes, |place, verification| {
            let expected = order.source(lag, place).map_or(M::IDENTITY, |at| read(prefixes, at));
            let found = read(output, place);
            let verdict = if M::same(&expected, &found) { Verdict::Right } else { Verdict::Wrong };
            verification.count(place, verdict, || (M::text(&expected), M::text(&found)));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ElementType, Operator};
    use crate::lab::workload::{ProblemKind, Workload};
    use crate::strategy::{Mode, ScanConfig, Strategy};
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn request(instance: Instance, mode: Mode, n: u64) -> ScanRequest {
        ScanRequest::aligned(instance, Strategy::Lookback, mode, ScanConfig::default(), n)
    }

    fn sum_of(element: ElementType) -> Instance {
        Instance::new(element, Operator::Sum).unwrap()
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
    fn a_sum_that_overflows_in_some_order_alone_is_neither_right_nor_wrong() {
        use Verdict::{Right, Undecidable, Wrong};
        let (max, large, infinity, nan) = (f64::MAX, 0.9 * f64::MAX, f64::INFINITY, f64::NAN);
        // Inputs, the last element of their scan, and its verdict.
        let cases: &[(&[f64], f64, Verdict)] = &[
            (&[1.0, nan, 2.0], nan, Right),
            (&[1.0, nan, 2.0], 3.0, Wrong),
            (&[max, max, -max, nan], infinity, Wrong),
            (&[1.0, infinity, 2.0], infinity, Right),
            (&[1.0, infinity, 2.0], 3.0, Wrong),
            (&[1.0, infinity, 2.0], nan, Wrong),
            (&[1.0, infinity, -infinity], nan, Right),
            (&[1.0, infinity, -infinity], infinity, Wrong),
            // (max + max) - max or max + (max - max).
            (&[max, max, -max], infinity, Undecidable),
            (&[max, max, -max], max, Right),
            (&[max, max, -max], 0.0, Wrong),
            (&[max, max, -large], -infinity, Wrong),
            (&[max, max, -large], nan, Wrong),
            (&[max, max, -max, -max], 0.0, Right),
            (&[max, max, -max, -max], infinity, Undecidable),
            (&[max, max, -max, -max], -infinity, Undecidable),
            (&[max, max, -max, -max], nan, Undecidable),
            (&[max, max, -max, -max], 1.0, Right), // far within the rounding of such numbers
            (&[max, max, -max, -max], max / 2.0, Wrong),
            (&[-max, -max, max, 0.5], -infinity, Undecidable),
            (&[-max, -max, large, 0.5], infinity, Wrong),
            // Every order overflows.
            (&[max, max], infinity, Right),
            (&[max, max], max, Wrong),
            (&[max, max], nan, Wrong),
            (&[max, max, 1.0, max], infinity, Right),
            // No order does.
            (&[large, -large, large, -large, large], large, Right),
            (&[large, -large, large, -large, large], infinity, Wrong),
            (&[max / 4.0, max / 4.0, max / 4.0], infinity, Wrong),
            // Infinite whatever happens, and NaN where what comes before it overflows the other way.
            (&[-max, -max, infinity], infinity, Right),
            (&[-max, -max, infinity], nan, Undecidable),
            (&[max, max, infinity], nan, Wrong),
        ];
        for &(input, last, verdict) in cases {
            for element in [ElementType::F32, ElementType::F64] {
                let largest = element.float().unwrap().largest;
                // The largest number of the type in place of that of f64.
                let of_type = |value: f64| if value.abs() > 2.0 { value / max * largest } else { value };
                let factor = error_factor(&request(sum_of(element), Mode::Inclusive, input.len() as u64));
                let mut wide = WideSum::default();
                input.iter().for_each(|&value| wide.add(of_type(value)));
                assert_eq!(wide.judge(of_type(last), factor, largest), verdict, "{element} {input:?} {last}");
            }
        }
    }

    #[test]
    fn undecidable_elements_are_counted_apart() {
        for element in [ElementType::F32, ElementType::F64] {
            let float = element.float().unwrap();
            let bytes = |values: &[f64]| {
                let mut bytes = vec![0; values.len() * element.bytes()];
                for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(element.bytes())) {
                    (float.write)(*value, bytes);
                }
                bytes
            };
            let (max, infinity) = (float.largest, f64::INFINITY);
            let dataset =
                Dataset::from_bytes(sum_of(element), bytes(&[0.5, max, max, -max, 1.0]), String::new()).unwrap();
            assert!(may_overflow(&dataset));
            for (mode, output) in [
                (Mode::Inclusive, [0.5, max, infinity, infinity, infinity]),
                (Mode::Exclusive, [0.0, 0.5, max, infinity, infinity]),
            ] {
                let found = verify(&request(sum_of(element), mode, 5), &dataset, &bytes(&output));
                let (first, undecidable) = if mode == Mode::Inclusive { (3, 2) } else { (4, 1) };
                assert_eq!(
                    (found.mismatches, found.undecidable, found.first_undecidable),
                    (0, undecidable, Some(first))
                );
                assert!(!found.passed());
                let text = found.complaint().unwrap();
                assert!(text.starts_with("undecidable: overflow depends on the order in "), "{text}");
            }
            let found = verify(
                &request(sum_of(element), Mode::Inclusive, 5),
                &dataset,
                &bytes(&[0.5, max, 3.0, 4.0, infinity]),
            );
            assert_eq!((found.mismatches, found.first_mismatch, found.undecidable), (2, Some(2), 1));
            assert_eq!((found.expected.as_deref(), found.actual.as_deref()), (Some("inf"), Some("3.0")));
        }
    }

    #[test]
    fn what_overflows_down_one_column_says_nothing_of_the_next() {
        let f64s = ElementType::F64;
        let workload = Workload::new(ProblemKind::Columns, Operator::Sum, f64s, f64s, Some(3)).unwrap();
        let max = f64::MAX;
        let input = bytemuck::cast_slice(&[max, 1.0, max, 2.0, -max, 3.0]).to_vec();
        let dataset = Dataset::from_bytes(workload, input, String::new()).unwrap();
        for (mode, right) in [
            (Mode::Inclusive, [max, 1.0, f64::INFINITY, 3.0, max, 6.0]),
            (Mode::Exclusive, [0.0, 0.0, max, 1.0, f64::INFINITY, 3.0]),
        ] {
            let verdict =
                |output: &[f64]| verify(&request_of(workload, mode, 6), &dataset, bytemuck::cast_slice(output));
            assert!(verdict(&right).passed(), "{mode}: {:?}", verdict(&right));
            let mut wrong = right;
            wrong[5] = f64::INFINITY;
            assert_eq!((verdict(&wrong).mismatches, verdict(&wrong).first_mismatch), (1, Some(5)), "{mode}");
        }
    }

    #[test]
    fn a_wrong_element_is_named_with_what_it_must_be_and_what_it_is() {
        let complaint = |instance: Instance, value: &[u8]| {
            let dataset = Dataset::random(instance, 3, 1);
            let mut output = right_output(&dataset, Mode::Exclusive);
            output[..value.len()].copy_from_slice(value);
            verify(&request(instance, Mode::Exclusive, 3), &dataset, &output).complaint().unwrap()
        };
        let start = "1 of 3 elements are wrong, the first at index 0: expected ";
        assert_eq!(complaint(sum_of(ElementType::I32), &(-2_i32).to_le_bytes()), format!("{start}0, got -2"));
        assert_eq!(complaint(sum_of(ElementType::F64), &2.5_f64.to_le_bytes()), format!("{start}0.0 ± 0.0e0, got 2.5"));
        let own = |operator: Operator| Instance::new(operator.own_element().unwrap(), operator).unwrap();
        let pair = bytemuck::bytes_of(&[3_u32, 5]).to_vec();
        assert_eq!(complaint(own(Operator::Intervals), &pair), format!("{start}no index, got indices 3 to 5"));
        assert_eq!(complaint(own(Operator::Bicyclic), &pair), format!("{start}q^0 p^0, got q^3 p^5"));
        let map = bytemuck::bytes_of(&[3_u64, 5]).to_vec();
        assert_eq!(complaint(own(Operator::Affine), &map), format!("{start}1·x + 0, got 3·x + 5"));
    }

    /// Every problem with sums of integers and of floats; recurrences likewise. Histograms are of types that have such bins.
    fn workloads(segment: u64) -> Vec<Workload> {
        let kinds = ProblemKind::ALL.iter().flat_map(|&kind| {
            let has_segments = kind.needs_shape() || kind.has_runs();
            let types = match kind {
                ProblemKind::Histogram | ProblemKind::CumulatedHistogram => vec![ElementType::U8, ElementType::I8],
                ProblemKind::EvenHistogram => vec![ElementType::U16, ElementType::F32, ElementType::F64],
                _ => vec![ElementType::U16, ElementType::I64, ElementType::F32, ElementType::F64],
            };
            types.into_iter().map(move |element| {
                Workload::new(kind, Operator::Sum, element, element, has_segments.then_some(segment)).unwrap()
            })
        });
        kinds.collect()
    }

    /// Where the bins of a histogram begin and end, in parts of the range of what is drawn, which has 64 of them.
    fn levels(kind: ProblemKind) -> Vec<f64> {
        match kind {
            ProblemKind::EvenHistogram => (0..=100).map(|level| 13.0 + 0.38 * f64::from(level)).collect(),
            ProblemKind::HistogramBetween => [3, 4, 6, 10, 18, 34, 61].map(f64::from).to_vec(),
            _ => (0..=256).map(|value| f64::from(value) / 4.0).collect(),
        }
    }

    /// Where the elements of a histogram lie, in the same parts.
    fn parts(dataset: &Dataset) -> Vec<f64> {
        let input = dataset.workload.input();
        let range = 2_f64.powi(8 * input.bytes() as i32);
        let part = |number: f64| match (input.is_float(), input.is_signed()) {
            (true, _) => (number + 0.5) * 32.0,
            (false, true) => (number / range + 0.5) * 64.0,
            (false, false) => number / range * 64.0,
        };
        (0..dataset.n as usize).map(|place| part(dataset.value(place))).collect()
    }

    /// Whether a float lies so near the end of an even bin that it is a matter of roundings into which one it falls.
    fn is_near_another_bin(dataset: &Dataset) -> bool {
        let kind = dataset.workload.kind();
        let is_rounded = kind == ProblemKind::EvenHistogram && dataset.workload.input().is_float();
        let levels = levels(kind);
        is_rounded && parts(dataset).iter().any(|part| levels.iter().any(|level| (part - level).abs() < 1e-5))
    }

    /// The output by the problem's definition, in the precision of f64 or in 64 bits: `segment_of` says to which segment an
    /// element belongs.
    fn by_definition(dataset: &Dataset, mode: Mode, segment_of: &[u64]) -> Vec<u8> {
        let element = dataset.workload.element();
        let bytes = element.bytes();
        let n = dataset.n as usize;
        if let Some((_, is_cumulated)) = dataset.workload.bins().filter(|_| n > 0) {
            let (levels, parts) = (levels(dataset.workload.kind()), parts(dataset));
            let lowest = |level: f64| if is_cumulated { levels[0] } else { level };
            let count = |low: f64, high: f64| parts.iter().filter(|&&part| lowest(low) <= part && part < high).count();
            return levels.windows(2).flat_map(|bin| (count(bin[0], bin[1]) as u32).to_le_bytes()).collect();
        }
        if let ProblemKind::Expand | ProblemKind::Scatter = dataset.workload.kind() {
            let told = |at: usize, bytes: usize| {
                dataset.telling[at * bytes..][..bytes]
                    .iter()
                    .rev()
                    .fold(0, |number, &byte| number << 8 | usize::from(byte))
            };
            let is_source = |source: usize, place: usize| match dataset.workload.kind() {
                ProblemKind::Expand => (told(source, 4)..told(source + 1, 4)).contains(&place),
                _ => told(source, 8) == place,
            };
            let source = |place: usize| (0..n).find(|&source| is_source(source, place)).unwrap();
            return (0..n).flat_map(|place| &dataset.input[source(place) * bytes..][..bytes]).copied().collect();
        }
        let by_runs = [ProblemKind::RunLengthEncode, ProblemKind::NonTrivialRuns, ProblemKind::NonZero];
        if by_runs.contains(&dataset.workload.kind()) {
            let elements: Vec<&[u8]> = dataset.input.chunks_exact(dataset.workload.input().bytes()).collect();
            let of_number = |number: u64| -> Vec<u8> {
                let mut made = vec![0; bytes];
                match element.float() {
                    Some(float) => (float.write)(number as f64, &mut made),
                    None => made.copy_from_slice(&number.to_le_bytes()[..bytes]),
                }
                made
            };
            let filled = |mut stored: Vec<u8>| {
                stored.resize(n * bytes, FILLING);
                stored
            };
            if dataset.workload.kind() == ProblemKind::NonZero {
                let is_kept = |&place: &usize| elements[place].iter().any(|&byte| byte != 0);
                return filled((0..n).filter(is_kept).flat_map(|place| of_number(place as u64)).collect());
            }
            let are_longer = dataset.workload.kind() == ProblemKind::NonTrivialRuns;
            let (mut values, mut lengths) = (Vec::new(), Vec::new());
            for place in 0..n {
                if place == 0 || elements[place] != elements[place - 1] {
                    values.push(if are_longer { of_number(place as u64) } else { elements[place].to_vec() });
                    lengths.push(0);
                }
                *lengths.last_mut().unwrap() += 1;
            }
            let (values, lengths): (Vec<_>, Vec<_>) =
                values.into_iter().zip(lengths).filter(|(_, length)| !are_longer || *length > 1).unzip();
            return [filled(values.concat()), filled(lengths.into_iter().flat_map(of_number).collect())].concat();
        }
        let mut output = vec![0; n * bytes];
        let mut carried: HashMap<u64, (f64, u64)> = HashMap::new();
        for step in 0..n {
            let place = if dataset.workload.is_reversed() { n - 1 - step } else { step };
            let of = |array: &[u8]| -> (f64, u64) {
                let chunk = &array[place * bytes..(place + 1) * bytes];
                let mut word = [0; 8];
                word[..bytes].copy_from_slice(chunk);
                (element.float().map_or(0.0, |float| (float.read)(chunk)), u64::from_le_bytes(word))
            };
            let carried = carried.entry(segment_of[place]).or_default();
            let (float, whole) = *carried;
            let after = match dataset.workload.has_addends() {
                false => (float + of(&dataset.input).0, whole.wrapping_add(of(&dataset.input).1)),
                true => {
                    let (a, b) = (of(&dataset.input), of(&dataset.second));
                    (a.0 * float + b.0, a.1.wrapping_mul(whole).wrapping_add(b.1))
                }
            };
            *carried = after;
            let stored = if mode == Mode::Inclusive { after } else { (float, whole) };
            let made = &mut output[place * bytes..(place + 1) * bytes];
            match element.float() {
                Some(float) => (float.write)(stored.0, made),
                None => made.copy_from_slice(&stored.1.to_le_bytes()[..bytes]),
            }
        }
        let loaded = |place: usize| &dataset.input[place * bytes..(place + 1) * bytes];
        let is_kept = |&place: &usize| match dataset.workload.kind() {
            ProblemKind::Partition | ProblemKind::PartitionMost => dataset.telling[place] != 0,
            ProblemKind::Select | ProblemKind::SelectMost => match element {
                ElementType::U16 => u16::from_le_bytes(loaded(place).try_into().unwrap()) < 1 << 15,
                ElementType::I64 => i64::from_le_bytes(loaded(place).try_into().unwrap()) < 0,
                _ => (element.float().unwrap().read)(loaded(place)) < 0.0,
            },
            ProblemKind::Unique | ProblemKind::UniqueMost => place == 0 || loaded(place) != loaded(place - 1),
            _ => segment_of.get(place + 1) != Some(&segment_of[place]),
        };
        if let ProblemKind::Sort | ProblemKind::SortByHalf | ProblemKind::SortPairs = dataset.workload.kind() {
            let half = if dataset.workload.kind() == ProblemKind::SortByHalf { 4 * bytes } else { 0 };
            // The bits of a float without its sign are ordered as its size is.
            let signed = |is_negative: bool, size: u64| if is_negative { -1 - size as i64 } else { size as i64 };
            // A whole number that stands at the same place among all of its type.
            let rank = |place: usize| match element {
                ElementType::U16 => i64::from(u16::from_le_bytes(loaded(place).try_into().unwrap())),
                ElementType::I64 => i64::from_le_bytes(loaded(place).try_into().unwrap()),
                ElementType::F32 => {
                    let number = f32::from_le_bytes(loaded(place).try_into().unwrap());
                    signed(number.is_sign_negative(), u64::from(number.abs().to_bits()))
                }
                _ => {
                    let number = f64::from_le_bytes(loaded(place).try_into().unwrap());
                    signed(number.is_sign_negative(), number.abs().to_bits())
                }
            };
            let mut places: Vec<usize> = (0..n).collect();
            places.sort_by_key(|&place| rank(place) >> half);
            let values = |&place: &usize| dataset.second.get(place * bytes..(place + 1) * bytes).unwrap_or_default();
            let sorted = places.iter().copied().flat_map(loaded);
            return sorted.chain(places.iter().flat_map(values)).copied().collect();
        }
        if dataset.workload.is_by_rank() {
            let (kept, others): (Vec<usize>, Vec<usize>) = (0..n).partition(is_kept);
            let others = if dataset.workload.drops_others() { Vec::new() } else { others };
            let places = kept.into_iter().chain(others.into_iter().rev());
            let stored = places.flat_map(|place| &output[place * bytes..(place + 1) * bytes]).copied();
            return stored.chain(std::iter::repeat(FILLING)).take(n * bytes).collect();
        }
        output
    }

    /// To which segment each element belongs, counted from the front.
    fn segments(dataset: &Dataset) -> Vec<u64> {
        use ProblemKind::{
            ByKey, HeadFlags, Offsets, Partition, PartitionMost, ReduceByKey, Select, SelectMost, Sort, SortByHalf,
            TotalsFirst, Unique, UniqueMost,
        };
        let Dataset { workload, n, telling, .. } = dataset;
        let word = |place: usize| u32::from_le_bytes(telling[4 * place..4 * place + 4].try_into().unwrap());
        let columns = workload.side_by_side(*n);
        if let (2.., Some(length)) = (columns, workload.line_elements()) {
            return (0..*n).map(|place| place / (length * columns) * columns + place % columns).collect();
        }
        let is_begin = |place: usize| match (workload.kind(), workload.line_elements()) {
            (_, Some(columns)) => (place as u64).is_multiple_of(columns),
            (ByKey | ReduceByKey | TotalsFirst, _) => word(place) != word(place - 1),
            // Nothing is combined.
            (Partition | PartitionMost | Select | SelectMost | Sort | SortByHalf | Unique | UniqueMost, _) => true,
            (HeadFlags, _) => telling[place] != 0,
            (Offsets, _) => (0..telling.len() / 4).any(|offset| word(offset) as usize == place),
            _ => false,
        };
        let mut segment = 0;
        let step = |place: usize| {
            segment += u64::from(place > 0 && is_begin(place));
            segment
        };
        (0..dataset.n as usize).map(step).collect()
    }

    /// Whether two outputs are the same, or of floats differ by no more than some thousand roundings of the largest.
    fn is_hardly_another(element: ElementType, one: &[u8], other: &[u8]) -> bool {
        let Some(float) = element.float() else { return one == other };
        let values = |bytes: &[u8]| bytes.chunks(element.bytes()).map(float.read).collect::<Vec<f64>>();
        let (one, other) = (values(one), values(other));
        let largest = other.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let rounding = if element == ElementType::F64 { f64::EPSILON } else { f32::EPSILON.into() };
        one.iter().zip(&other).all(|(one, other)| (one - other).abs() <= 8000.0 * rounding * largest)
    }

    fn request_of(workload: Workload, mode: Mode, n: u64) -> ScanRequest {
        let request = request(sum_of(ElementType::U32), mode, n);
        ScanRequest { problem: workload.problem(n), ..request }
    }

    #[test]
    fn what_is_written_behind_what_is_kept_is_wrong() {
        let u16s = ElementType::U16;
        let of = |kind| Workload::new(kind, Operator::Sum, u16s, u16s, Some(3)).unwrap();
        for kind in [ProblemKind::Select, ProblemKind::Unique, ProblemKind::ReduceByKey] {
            let dataset = Dataset::random(of(kind), 100, 7);
            let (stored, request) = (dataset.stored(), request_of(of(kind), Mode::Inclusive, 100));
            let mut output = dataset.expected_output(Mode::Inclusive).unwrap();
            assert!((20..50).contains(&stored) && output.len() == 2 * stored as usize, "{kind}: {stored}");
            output.resize(200, FILLING);
            assert_eq!(verify(&request, &dataset, &output), Verification::right(100), "{kind}");
            // A half of an element is enough.
            output[2 * stored as usize + 1] ^= 1;
            let found = verify(&request, &dataset, &output);
            assert_eq!((found.mismatches, found.first_mismatch), (1, Some(stored)), "{kind}");
            let complaint = found.complaint().unwrap();
            assert!(complaint.contains("expected nothing behind what is kept, got 42149"), "{complaint}");
            // One too few is one that was not written.
            let mut fewer = output;
            fewer[2 * stored as usize - 2..].fill(FILLING);
            let found = verify(&request, &dataset, &fewer);
            assert_eq!((found.mismatches, found.first_mismatch), (1, Some(stored - 1)), "{kind}");
            // A part of the output is no output.
            let found = verify(&request, &dataset, &fewer[..2 * stored as usize]);
            assert!(found.mismatches > 100 - stored, "{kind}: {found:?}");
        }
    }

    #[test]
    fn the_first_of_many_wrong_elements_is_named_whichever_core_finds_it() {
        let n = 3 * workers::LEAST_PART;
        for element in [ElementType::U32, ElementType::F32] {
            let workload = Workload::new(ProblemKind::Reverse, Operator::Sum, element, element, None).unwrap();
            let dataset = Dataset::whole_numbers(workload, n as u64, 7);
            let request = request_of(workload, Mode::Inclusive, n as u64);
            let mut output = by_definition(&dataset, Mode::Inclusive, &vec![0; n]);
            assert!(verify(&request, &dataset, &output).passed());
            for wrong in [n - 1, n / 2, 70_000, 69_999] {
                // A unit more or less: no bound hides it.
                let bytes = &mut output[4 * wrong..4 * wrong + 4];
                match element.float() {
                    Some(float) => (float.write)((float.read)(bytes) + 1.0, bytes),
                    None => bytes[0] ^= 1,
                }
            }
            let found = verify(&request, &dataset, &output);
            assert_eq!((found.mismatches, found.first_mismatch), (4, Some(69_999)), "{element}");
            assert!(found.expected.is_some() && found.expected != found.actual);
        }
    }

    #[test]
    fn every_problem_is_right_by_its_definition() {
        for workload in workloads(61) {
            for mode in [Mode::Inclusive, Mode::Exclusive].into_iter().filter(|&mode| workload.has_mode(mode)) {
                for n in [0, 1, 61, 61 * 40] {
                    let dataset = Dataset::random(workload, n, 7);
                    let output = by_definition(&dataset, mode, &segments(&dataset));
                    let verdict = verify(&request_of(workload, mode, n), &dataset, &output);
                    assert!(verdict.passed(), "{workload} {mode} {n}: {verdict:?}");
                    let stored = dataset.stored() as usize * workload.element().bytes();
                    let elements = workload.output_elements(n);
                    assert!(workload.drops_others() || dataset.stored() == elements, "{workload}");
                    assert_eq!(verdict.compared, elements, "{workload}");
                    let expected = dataset.expected_output(mode);
                    assert!(expected.is_none_or(|expected| expected == output[..stored]), "{workload}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_corrupted_element_of_any_problem_is_found(seed: u64, at in 0_usize..610, exclusive: bool) {
            let mode = if exclusive { Mode::Exclusive } else { Mode::Inclusive };
            for workload in workloads(61).into_iter().filter(|workload| workload.has_mode(mode)) {
                let dataset = Dataset::random(workload, 610, seed);
                if is_near_another_bin(&dataset) {
                    continue;
                }
                let right = by_definition(&dataset, mode, &segments(&dataset));
                let (bytes, at) = (workload.element().bytes(), at % workload.output_elements(610) as usize);
                let mut output = right.clone();
                output[at * bytes + bytes - 1] ^= 0x41;
                // The change may be smaller than the roundings of the large floats beside it.
                if is_hardly_another(workload.element(), &output, &right) {
                    continue;
                }
                let verdict = verify(&request_of(workload, mode, 610), &dataset, &output);
                let found = (verdict.mismatches, verdict.first_mismatch);
                prop_assert_eq!(found, (1, Some(at as u64)), "{}: {:?}", workload, verdict);
            }
        }

        /// One segment goes on where it should end, or ends where it should go on.
        #[test]
        fn a_wrong_begin_of_a_segment_is_found(seed: u64, at in 1_usize..610, exclusive: bool, is_lost: bool) {
            let mode = if exclusive { Mode::Exclusive } else { Mode::Inclusive };
            for workload in workloads(61).into_iter().filter(|workload| workload.has_mode(mode)) {
                let dataset = Dataset::random(workload, 610, seed);
                let right = segments(&dataset);
                let mut wrong = right.clone();
                let begin = (1..610).cycle().skip(at).take(610).find(|&place| place > 0 && right[place] != right[place - 1]);
                match (is_lost, begin) {
                    (true, None) => continue,
                    // Two segments are one.
                    (true, Some(begin)) => {
                        let (lost, kept) = (right[begin], right[begin - 1]);
                        wrong.iter_mut().filter(|segment| **segment == lost).for_each(|segment| *segment = kept);
                    }
                    // One is two.
                    (false, _) => wrong[at..].iter_mut().for_each(|segment| *segment += 1000),
                }
                let output = by_definition(&dataset, mode, &wrong);
                // A begin that was there already, one in 65536 sums of u16, which is 0 as at a begin, or what comes to less than
                // the roundings of floats.
                if is_hardly_another(workload.element(), &output, &by_definition(&dataset, mode, &right)) {
                    continue;
                }
                let verdict = verify(&request_of(workload, mode, 610), &dataset, &output);
                prop_assert!(verdict.mismatches > 0, "{} {}", workload, mode);
            }
        }
    }
}
