//! A reference that goes along an array and keeps nothing of it but a state: what compares scans that no memory holds.

use crate::element::monoid::{InstanceVisitor, Monoid, visit_instance};
use crate::element::{ElementType, Instance, Problem};
use crate::strategy::Mode;
use crate::text::hexadecimal;

/// A scan of numbers from the left to the right, that compares.
#[derive(Debug, Clone)]
pub struct RunningReference {
    instance: Instance,
    types: [ElementType; 3],
    is_exclusive: bool,
    state: Vec<u8>,
    /// Elements so far.
    elements: u64,
}

/// An element that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("element {index} is {found}, and should be {expected}")]
pub struct Difference {
    /// The first one.
    pub index: u64,
    /// As it is, for people.
    pub found: String,
    /// As it should be.
    pub expected: String,
}

impl RunningReference {
    /// From the first element on. There is none for sums and products of floats: they are rounded in the order in which elements are
    /// combined, and are right within a bound that grows with the array.
    pub fn new(problem: Problem, mode: Mode) -> Option<Self> {
        let (instance, types) = (problem.instance()?, problem.types()?);
        let is_exclusive = mode != Mode::Inclusive;
        (!instance.may_round()).then(|| Self {
            instance,
            types,
            is_exclusive,
            state: instance.identity_bytes(),
            elements: 0,
        })
    }

    /// Compares the next elements, of as many inputs and outputs.
    ///
    /// # Errors
    /// The first that differs.
    ///
    /// # Panics
    /// When there are pieces of elements, or more inputs than outputs.
    pub fn compare(&mut self, input: &[u8], output: &[u8]) -> Result<(), Box<Difference>> {
        visit_instance(self.instance, Compare { reference: self, input, output })
    }
}

struct Compare<'a> {
    reference: &'a mut RunningReference,
    input: &'a [u8],
    output: &'a [u8],
}

impl InstanceVisitor for Compare<'_> {
    type Output = Result<(), Box<Difference>>;

    fn visit<M: Monoid>(self) -> Self::Output {
        let Self { reference, input, output } = self;
        let RunningReference { instance, types: [from, between, to], is_exclusive, elements, .. } = *reference;
        let mut state: M::Value = bytemuck::pod_read_unaligned(&reference.state);
        let (inputs, outputs) = (input.chunks_exact(from.bytes()), output.chunks_exact(to.bytes()));
        assert_eq!((inputs.len(), inputs.remainder().len()), (outputs.len(), outputs.remainder().len()), "elements");
        let is_of_one_type = from == between && between == to;
        for (index, (input, output)) in inputs.zip(outputs).enumerate() {
            let value: M::Value = match is_of_one_type {
                true => bytemuck::pod_read_unaligned(input),
                false => {
                    let mut value = state;
                    convert(from, input, between, bytemuck::bytes_of_mut(&mut value));
                    value
                }
            };
            let behind = M::combine(state, value);
            let expected = if is_exclusive { state } else { behind };
            let is_right = match is_of_one_type {
                true => M::same(&expected, &bytemuck::pod_read_unaligned(output)),
                false => is_stored(between, bytemuck::bytes_of(&expected), to, output),
            };
            if !is_right {
                let mut stored = vec![0; to.bytes()];
                convert(between, bytemuck::bytes_of(&expected), to, &mut stored);
                let of_stored = Instance::of_stored(to, instance.operator());
                let text = |bytes: &[u8]| match of_stored {
                    Ok(stored) => stored.text(bytes),
                    Err(_) => format!("0x{}", hexadecimal(bytes)),
                };
                let (found, expected) = (text(output), text(&stored));
                return Err(Box::new(Difference { index: elements + index as u64, found, expected }));
            }
            state = behind;
        }
        reference.state = bytemuck::bytes_of(&state).to_vec();
        reference.elements += (input.len() / from.bytes()) as u64;
        Ok(())
    }
}

/// An integer, with its sign in the upper bits.
fn whole(element: ElementType, bytes: &[u8]) -> u64 {
    let sign = element.is_signed() && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if sign { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

/// A number of one type in another one. Integers wrap; floats come from floats, or from whole numbers that they hold.
fn convert(from: ElementType, bytes: &[u8], to: ElementType, into: &mut [u8]) {
    match (from.float(), to.float()) {
        _ if from == to => into.copy_from_slice(bytes),
        (Some(from), Some(to)) => (to.write)((from.read)(bytes), into),
        (None, Some(to)) if from.is_signed() => (to.write)(whole(from, bytes) as i64 as f64, into),
        (None, Some(to)) => (to.write)(whole(from, bytes) as f64, into),
        _ => into.copy_from_slice(&whole(from, bytes).to_le_bytes()[..into.len()]),
    }
}

/// Whether what is stored is this state, any NaN for a NaN.
fn is_stored(between: ElementType, state: &[u8], to: ElementType, stored: &[u8]) -> bool {
    let mut expected = [0; 16];
    let expected = &mut expected[..to.bytes()];
    convert(between, state, to, expected);
    expected == stored
        || to.float().is_some_and(|float| (float.read)(expected).is_nan() && (float.read)(stored).is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Operator;

    fn compare(problem: Problem, mode: Mode, input: &[u8], output: &[u8], at: usize) -> Result<(), Box<Difference>> {
        let mut reference = RunningReference::new(problem, mode).expect("it is exact");
        let [from, _, to] = problem.types().expect("numbers").map(ElementType::bytes);
        reference.compare(&input[..at * from], &output[..at * to])?;
        reference.compare(&input[at * from..], &output[at * to..])
    }

    #[test]
    fn every_element_is_compared_wherever_the_array_is_cut() {
        let widening = Problem::accumulating(Operator::Sum, ElementType::I8, ElementType::I64).expect("sums");
        let input: [i8; 5] = [-3, 7, -128, 127, -1];
        let (inclusive, exclusive): ([i64; 5], [i64; 5]) = ([-3, 4, -124, 3, 2], [0, -3, 4, -124, 3]);
        for at in 0..=5 {
            for (mode, output) in [(Mode::Inclusive, inclusive), (Mode::Exclusive, exclusive)] {
                let input = bytemuck::cast_slice(&input);
                assert_eq!(compare(widening, mode, input, bytemuck::cast_slice(&output), at), Ok(()));
                for index in 0..5 {
                    let mut wrong = output;
                    wrong[index] ^= 1 << 40;
                    let found = compare(widening, mode, input, bytemuck::cast_slice(&wrong), at);
                    let difference = found.expect_err("one is wrong");
                    let expected = output[index].to_string();
                    assert_eq!((difference.index, difference.expected), (index as u64, expected));
                }
            }
        }
    }

    #[test]
    fn what_may_be_rounded_is_not_compared() {
        for operator in [Operator::Sum, Operator::Product, Operator::Max] {
            for element in [ElementType::I32, ElementType::F32, ElementType::F64] {
                let problem = Problem::accumulating(operator, element, element).expect("numbers");
                let is_exact = element == ElementType::I32 || operator == Operator::Max;
                assert_eq!(RunningReference::new(problem, Mode::Inclusive).is_some(), is_exact, "{problem}");
            }
        }
    }

    #[test]
    fn the_order_counts_and_nans_are_one() {
        let affine = Instance::new(ElementType::AffineMap, Operator::Affine).expect("maps");
        // x ↦ 2x + 1, then x ↦ 3x + 5.
        let input: [u64; 4] = [2, 1, 3, 5];
        let (right, wrong): ([u64; 4], [u64; 4]) = ([2, 1, 6, 8], [2, 1, 6, 11]);
        let compare = |output: [u64; 4]| {
            let (input, output) = (bytemuck::cast_slice(&input), bytemuck::cast_slice(&output));
            compare(Problem::plain(affine), Mode::Inclusive, input, output, 1)
        };
        assert_eq!(compare(right), Ok(()));
        assert_eq!(compare(wrong).expect_err("exchanged").index, 1);
        let largest = Problem::accumulating(Operator::Max, ElementType::F32, ElementType::F32).expect("the largest");
        let other_nan = f32::from_bits(f32::NAN.to_bits() ^ 1);
        let (input, output) = ([1.0, f32::NAN, 2.0], [1.0, other_nan, other_nan]);
        let compared = super::tests::compare(
            largest,
            Mode::Inclusive,
            bytemuck::cast_slice(&input),
            bytemuck::cast_slice(&output),
            2,
        );
        assert_eq!(compared, Ok(()));
        let sum = Problem::accumulating(Operator::Sum, ElementType::F32, ElementType::F32).expect("sums");
        assert!(RunningReference::new(sum, Mode::Inclusive).is_none());
    }
}
