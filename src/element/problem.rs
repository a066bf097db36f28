//! What is scanned, as the kernels know it (`cuda/problem/problem.cuh`): an operator, and four types.

use super::{ElementType, Instance};
use std::fmt;

/// An operator on the type that is scanned, and the types that are loaded, published to other blocks and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Problem {
    instance: Instance,
    input: ElementType,
    published: ElementType,
    output: ElementType,
}

/// Types that a scan cannot convert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchProblem {
    /// Numbers alone are converted.
    #[error("{0} is not a type of numbers: choose one, or give input, output and what is scanned one type")]
    NotANumber(ElementType),
    /// What an integer makes of a large float is not defined.
    #[error("{from} may be too large for {to}: keep floats in floats once they are loaded")]
    FloatToInteger {
        /// What is converted.
        from: ElementType,
        /// What it would become.
        to: ElementType,
    },
    /// Kernels scan sums of narrow values in the words in which they load and store them.
    #[error("{0} has less than 4 bytes: scan values of 4 or 8 bytes, and load and store narrower ones")]
    NarrowState(ElementType),
    /// Where the array has no element stands the identity, which every type has if it is 0.
    #[error("the identity of {0} is not 0, so other types may not have it: choose an operator such as 'sum' or 'xor'")]
    IdentityNotZero(Instance),
}

impl Problem {
    /// The scan of an array of the operator's own values.
    pub const fn plain(instance: Instance) -> Self {
        let element = instance.element();
        Self { instance, input: element, published: element, output: element }
    }

    /// The scan of other numbers: each is converted when it is loaded, published and stored. Integers wrap, floats are
    /// rounded.
    ///
    /// # Errors
    /// When a type is not one of numbers, a float would become an integer, what is scanned has less than 4 bytes, or the
    /// operator's identity is not 0 in what is scanned and what is published.
    pub fn converting(
        instance: Instance,
        input: ElementType,
        published: ElementType,
        output: ElementType,
    ) -> Result<Self, NoSuchProblem> {
        let problem = Self { instance, input, published, output };
        if problem == Self::plain(instance) {
            return Ok(problem);
        }
        let state = instance.element();
        let is_number = |element: &ElementType| ElementType::NUMBERS.contains(element);
        if let Some(&other) = [input, state, published, output].iter().find(|element| !is_number(element)) {
            return Err(NoSuchProblem::NotANumber(other));
        }
        for (from, to) in [(input, state), (state, published), (published, state), (state, output)] {
            if from.is_float() && to.is_integer() {
                return Err(NoSuchProblem::FloatToInteger { from, to });
            }
        }
        if state.bytes() < 4 {
            return Err(NoSuchProblem::NarrowState(state));
        }
        for instance in [instance, problem.of_spine().instance] {
            if instance.identity_bytes().iter().any(|&byte| byte != 0) {
                return Err(NoSuchProblem::IdentityNotZero(instance));
            }
        }
        Ok(problem)
    }

    /// The operator on what is scanned.
    pub const fn instance(self) -> Instance {
        self.instance
    }

    /// What is loaded.
    pub const fn input(self) -> ElementType {
        self.input
    }

    /// What is scanned.
    pub const fn state(self) -> ElementType {
        self.instance.element()
    }

    /// What other blocks get: in descriptors, in the spine, in distributed shared memory.
    pub const fn published(self) -> ElementType {
        self.published
    }

    /// What is stored.
    pub const fn output(self) -> ElementType {
        self.output
    }

    /// Whether all four types are one.
    pub fn is_plain(self) -> bool {
        self == Self::plain(self.instance)
    }

    /// Bytes that the elements of an access are counted by, the larger of input and output (`access_type` in CUDA): a lane
    /// loads and stores the same elements.
    pub const fn access_bytes(self) -> usize {
        let (input, output) = (self.input.bytes(), self.output.bytes());
        if input > output { input } else { output }
    }

    /// The scan of the tiles' totals.
    pub fn of_spine(self) -> Self {
        let Self { instance, published, .. } = self;
        // There is one: what is scanned and what is published are both integers, or both floats.
        Instance::new(published, instance.operator()).map_or(self, Self::plain)
    }

    /// The problem whose kernels compute this one bit for bit, as [`Instance::canonical`].
    pub fn canonical(self) -> Self {
        if self.is_plain() { Self::plain(self.instance.canonical()) } else { self }
    }

    /// The problem's type in CUDA: the first template parameter of its kernels.
    pub fn cuda_type(self) -> String {
        let operator = self.instance.cuda_type();
        if self.is_plain() {
            return format!("::lookback::plain<{operator}>");
        }
        let [input, published, output] = [self.input, self.published, self.output].map(ElementType::cuda_type);
        format!("::lookback::converting<{operator}, {input}, {published}, {output}>")
    }
}

impl From<Instance> for Problem {
    fn from(instance: Instance) -> Self {
        Self::plain(instance)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, input, published, output } = self;
        if self.is_plain() {
            return instance.fmt(formatter);
        }
        formatter.pad(&format!("{instance} of {input}, published as {published}, stored as {output}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Operator;

    fn instance(element: ElementType, operator: Operator) -> Instance {
        Instance::new(element, operator).unwrap()
    }

    #[test]
    fn types_that_no_kernel_could_convert_are_refused() {
        use ElementType::{AffineMap, F32, F64, I32, U8, U16, U32};
        let sum = instance(U32, Operator::Sum);
        assert_eq!(Problem::converting(sum, U32, U32, U32), Ok(Problem::plain(sum)));
        assert_eq!(Problem::converting(sum, AffineMap, U32, U32), Err(NoSuchProblem::NotANumber(AffineMap)));
        let bytes = instance(U8, Operator::Sum);
        assert_eq!(Problem::converting(bytes, U32, U8, U8), Err(NoSuchProblem::NarrowState(U8)));
        let least = instance(U32, Operator::Min);
        assert_eq!(Problem::converting(least, U8, U32, U32), Err(NoSuchProblem::IdentityNotZero(least)));
        // The largest of nothing is 0 in u32 and not in i32.
        let largest = instance(U32, Operator::Max);
        let refused = Err(NoSuchProblem::IdentityNotZero(instance(I32, Operator::Max)));
        assert_eq!(Problem::converting(largest, U32, I32, U32), refused);
        let floats = instance(F32, Operator::Sum);
        assert_eq!(
            Problem::converting(floats, U8, F64, U32),
            Err(NoSuchProblem::FloatToInteger { from: F32, to: U32 })
        );
        assert!(Problem::converting(floats, U8, F64, F64).is_ok());

        let widening = Problem::converting(sum, U8, U32, U16).unwrap();
        assert!(!widening.is_plain() && widening.canonical() == widening);
        assert_eq!((widening.access_bytes(), widening.of_spine()), (2, Problem::plain(sum)));
        assert_eq!(
            widening.cuda_type(),
            "::lookback::converting<::lookback::operators::sum<::lookback::u32>, ::lookback::u8, ::lookback::u32, ::lookback::u16>"
        );
    }
}
