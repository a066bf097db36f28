//! What every operator means, on the host: the one definition that references, identities and the tests
//! of the operators' laws go through. Kernels have their own in `cuda/operators.cuh`; `lookback compare` and the
//! tests compare both.

use crate::element::{Element, ElementType, Instance, Operator};
use std::fmt::Debug;
use std::marker::PhantomData;

pub use super::own::*;

/// An associative operation with an identity.
pub trait Monoid {
    /// What it works on.
    type Value: Element + PartialEq + Debug;
    /// x ⊕ identity = identity ⊕ x = x.
    const IDENTITY: Self::Value;
    /// left ⊕ right.
    fn combine(left: Self::Value, right: Self::Value) -> Self::Value;
    /// Why the order in which an array is put together matters, where it does: some neighbours come to what the type
    /// has no value for.
    fn ambiguity(_values: impl DoubleEndedIterator<Item = Self::Value> + Clone) -> Option<&'static str> {
        None
    }
    /// Whether two results are one: bit for bit, but any NaN for a NaN.
    fn same(left: &Self::Value, right: &Self::Value) -> bool {
        bytemuck::bytes_of(left) == bytemuck::bytes_of(right)
    }
    /// A value for people.
    fn text(value: &Self::Value) -> String {
        format!("{value:?}") // Numbers: as a program would have them, 1e300 for 300 zeros.
    }
}

/// Code that is written once for every instance.
pub trait InstanceVisitor {
    /// What it returns.
    type Output;
    /// Called with the monoid of the instance.
    fn visit<M: Monoid>(self) -> Self::Output;
}

macro_rules! define_monoids {
    ({}
        numbers { $($(#[$number_meta:meta])* $_n:ident = $_nn:literal, $number:ident, $_nc:literal, arithmetic: $_a:literal, input: $_nd:ident;)* }
        integers { $($(#[$integer_meta:meta])* $_i:ident = $_in:literal, $integer:ident, $_ic:literal, input: $_id:ident;)* }
        own { $($(#[$own_meta:meta])* $_o:ident = $_on:literal, $own:ident, $_oc:literal, on: $_e:ident;)* }
    ) => {
        $($(#[$number_meta])* pub struct $number<T>(PhantomData<T>);)*
        $($(#[$integer_meta])* pub struct $integer<T>(PhantomData<T>);)*
        $($(#[$own_meta])* pub struct $own;)*
    };
}
operators!(define_monoids {});

macro_rules! monoid {
    ($operator:ident, $type:ty, $identity:expr, |$left:ident, $right:ident| $combined:expr) => {
        impl Monoid for $operator<$type> {
            type Value = $type;
            const IDENTITY: $type = $identity;
            #[inline(always)]
            fn combine($left: $type, $right: $type) -> $type {
                $combined
            }
        }
    };
}

macro_rules! integer_monoids {
    ($($type:ident)*) => {$(
        monoid!(Sum, $type, 0, |left, right| left.wrapping_add(right));
        monoid!(Product, $type, 1, |left, right| left.wrapping_mul(right));
        monoid!(Minimum, $type, <$type>::MAX, |left, right| if right < left { right } else { left });
        monoid!(Maximum, $type, <$type>::MIN, |left, right| if right > left { right } else { left });
        monoid!(And, $type, !0, |left, right| left & right);
        monoid!(Or, $type, 0, |left, right| left | right);
        monoid!(Xor, $type, 0, |left, right| left ^ right);
    )*};
}

macro_rules! float_monoid {
    ($operator:ident, $type:ty, $identity:expr, |$left:ident, $right:ident| $combined:expr $(, ambiguity: $ambiguity:ident)?) => {
        impl Monoid for $operator<$type> {
            type Value = $type;
            const IDENTITY: $type = $identity;
            #[inline(always)]
            fn combine($left: $type, $right: $type) -> $type {
                $combined
            }
            $(fn ambiguity(values: impl DoubleEndedIterator<Item = $type> + Clone) -> Option<&'static str> {
                $ambiguity(values.map(f64::from), -<$type>::MIN_EXP)
            })?
            fn same(left: &$type, right: &$type) -> bool {
                left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan()
            }
        }
    };
}

macro_rules! float_monoids {
    ($($type:ident)*) => {$(
        float_monoid!(Sum, $type, 0.0, |left, right| left + right);
        float_monoid!(Product, $type, 1.0, |left, right| left * right, ambiguity: ambiguity_of_products);
        // Of equal numbers only zeros differ, in the sign.
        float_monoid!(Minimum, $type, <$type>::INFINITY, |left, right| {
            if left.is_nan() || right.is_nan() {
                left + right
            } else if left == right {
                <$type>::from_bits(left.to_bits() | right.to_bits())
            } else if right < left {
                right
            } else {
                left
            }
        });
        float_monoid!(Maximum, $type, <$type>::NEG_INFINITY, |left, right| {
            if left.is_nan() || right.is_nan() {
                left + right
            } else if left == right {
                <$type>::from_bits(left.to_bits() & right.to_bits())
            } else if right > left {
                right
            } else {
                left
            }
        });
    )*};
}

/// A product of powers of two is exact, in whatever order, while that of no neighbours leaves the exponents from `-most` to
/// `most`. Others are rounded, or come to 0 or infinity in one order and not in another.
fn ambiguity_of_products(values: impl Iterator<Item = f64>, most: i32) -> Option<&'static str> {
    const WHY: &str = "products of floats are rounded; give powers of two, of which those of neighbours stay in range";
    // Exponents of the product from the front, and the least and the largest of them so far.
    let (mut exponent, mut least, mut largest) = (0_i64, 0_i64, 0_i64);
    for value in values {
        let bits = value.to_bits();
        let (biased, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
        // Neither 0, subnormal, infinite nor NaN; f64 has all powers of two of f32 as normal numbers.
        if fraction != 0 || biased == 0 || biased == 0x7ff {
            return Some(WHY);
        }
        exponent += biased - 1023;
        (least, largest) = (least.min(exponent), largest.max(exponent));
        if largest - least > i64::from(most) {
            return Some(WHY);
        }
    }
    None
}

macro_rules! number_monoids {
    ({}
        integers { $($(#[$_i:meta])* $_integer:ident = $_in:literal, $integer:ident, $_ic:literal;)* }
        floats { $($(#[$_f:meta])* $_float:ident = $_fn:literal, $float:ident, $_fc:literal;)* }
        halves $_halves:tt own $_own:tt
    ) => {
        integer_monoids!($($integer)*);
        float_monoids!($($float)*);
    };
}
element_types!(number_monoids {});

impl Monoid for Affine {
    type Value = AffineMap;
    const IDENTITY: AffineMap = AffineMap { multiplier: 1, addend: 0 };
    #[inline(always)]
    fn combine(left: AffineMap, right: AffineMap) -> AffineMap {
        AffineMap {
            multiplier: left.multiplier.wrapping_mul(right.multiplier),
            addend: left.addend.wrapping_mul(right.multiplier).wrapping_add(right.addend),
        }
    }
    fn text(AffineMap { multiplier, addend }: &AffineMap) -> String {
        format!("{multiplier}·x + {addend}")
    }
}

impl Monoid for Bicyclic {
    type Value = BicyclicPair;
    const IDENTITY: BicyclicPair = BicyclicPair { left: 0, right: 0 };
    #[inline(always)]
    fn combine(left: BicyclicPair, right: BicyclicPair) -> BicyclicPair {
        let cancelled = left.right.min(right.left);
        BicyclicPair {
            left: left.left.wrapping_add(right.left).wrapping_sub(cancelled),
            right: left.right.wrapping_add(right.right).wrapping_sub(cancelled),
        }
    }
    fn ambiguity(values: impl DoubleEndedIterator<Item = BicyclicPair> + Clone) -> Option<&'static str> {
        // Of all products of neighbours those from the front have the largest exponents of p, those to the end of q.
        let fits = |exponent: u64| (exponent <= u64::from(u32::MAX)).then_some(exponent);
        let add = |sum: u64, taken: u32, added: u32| fits(sum.saturating_sub(u64::from(taken)) + u64::from(added));
        let p = values.clone().try_fold(0, |sum, pair| add(sum, pair.left, pair.right));
        let q = values.rev().try_fold(0, |sum, pair| add(sum, pair.right, pair.left));
        (p.is_none() || q.is_none())
            .then_some("exponents reach 2^32, where they wrap; give smaller ones, or fewer pairs")
    }
    fn text(BicyclicPair { left, right }: &BicyclicPair) -> String {
        format!("q^{left} p^{right}")
    }
}

impl Monoid for Intervals {
    type Value = IndexInterval;
    const IDENTITY: IndexInterval = IndexInterval::EMPTY;
    #[inline(always)]
    fn combine(left: IndexInterval, right: IndexInterval) -> IndexInterval {
        if left == IndexInterval::ERROR || right == IndexInterval::ERROR {
            IndexInterval::ERROR
        } else if left == IndexInterval::EMPTY {
            right
        } else if right == IndexInterval::EMPTY {
            left
        } else if right.first == left.last.wrapping_add(1) {
            IndexInterval { first: left.first, last: right.last }
        } else {
            IndexInterval::ERROR
        }
    }
    fn ambiguity(values: impl DoubleEndedIterator<Item = IndexInterval> + Clone) -> Option<&'static str> {
        // Whether one of the neighbours up to here begins where the reserved values do.
        let (mut last, mut is_begun) = (None, false);
        for value in values.filter(|&value| value != IndexInterval::EMPTY) {
            is_begun &= last.is_some_and(|last: u32| last.wrapping_add(1) == value.first);
            if value == IndexInterval::ERROR {
                (last, is_begun) = (None, false);
                continue;
            }
            if is_begun && value.last == IndexInterval::EMPTY.last {
                return Some("intervals join to 1 to 0 or 2 to 0, which stand for none and for an error");
            }
            is_begun |= [IndexInterval::EMPTY, IndexInterval::ERROR].iter().any(|own| own.first == value.first);
            last = Some(value.last);
        }
        None
    }
    fn text(value: &IndexInterval) -> String {
        match *value {
            IndexInterval::EMPTY => "no index".to_owned(),
            IndexInterval::ERROR => "indices that are no neighbours".to_owned(),
            IndexInterval { first, last } => format!("indices {first} to {last}"),
        }
    }
}

macro_rules! visit_operator {
    ({ $instance:ident, $visitor:ident }
        numbers { $($(#[$_n:meta])* $number:ident = $_nn:literal, $number_monoid:ident, $_nc:literal, arithmetic: $_a:literal, input: $_nd:ident;)* }
        integers { $($(#[$_i:meta])* $integer:ident = $_in:literal, $integer_monoid:ident, $_ic:literal, input: $_id:ident;)* }
        own { $($(#[$_o:meta])* $own:ident = $_on:literal, $own_monoid:ident, $_oc:literal, on: $_e:ident;)* }
    ) => {
        match $instance.operator() {
            $(Operator::$number => element_types!(visit_number { $instance, $visitor, $number_monoid }),)*
            $(Operator::$integer => element_types!(visit_integer { $instance, $visitor, $integer_monoid }),)*
            $(Operator::$own => $visitor.visit::<$own_monoid>(),)*
        }
    };
}

macro_rules! visit_number {
    ({ $instance:ident, $visitor:ident, $monoid:ident }
        integers { $($(#[$_i:meta])* $integer:ident = $_in:literal, $integer_type:ident, $_ic:literal;)* }
        floats { $($(#[$_f:meta])* $float:ident = $_fn:literal, $float_type:ident, $_fc:literal;)* }
        halves $_halves:tt own $_own:tt
    ) => {
        match $instance.element() {
            $(ElementType::$integer => $visitor.visit::<$monoid<$integer_type>>(),)*
            $(ElementType::$float => $visitor.visit::<$monoid<$float_type>>(),)*
            _ => unreachable!("{}", UNDEFINED),
        }
    };
}

macro_rules! visit_integer {
    ({ $instance:ident, $visitor:ident, $monoid:ident }
        integers { $($(#[$_i:meta])* $integer:ident = $_in:literal, $integer_type:ident, $_ic:literal;)* }
        floats $_floats:tt halves $_halves:tt own $_own:tt
    ) => {
        match $instance.element() {
            $(ElementType::$integer => $visitor.visit::<$monoid<$integer_type>>(),)*
            _ => unreachable!("{}", UNDEFINED),
        }
    };
}

const UNDEFINED: &str = "`Instance::new` refuses operators that are not defined on the element type";

/// Calls `visitor` with the monoid that `instance` stands for.
pub fn visit_instance<V: InstanceVisitor>(instance: Instance, visitor: V) -> V::Output {
    operators!(visit_operator { instance, visitor })
}

impl Instance {
    /// The identity of the operator as the bytes of one element.
    pub fn identity_bytes(self) -> Vec<u8> {
        struct Identity;
        impl InstanceVisitor for Identity {
            type Output = Vec<u8>;
            fn visit<M: Monoid>(self) -> Vec<u8> {
                bytemuck::bytes_of(&M::IDENTITY).to_vec()
            }
        }
        visit_instance(self, Identity)
    }

    /// Why the order in which the elements of an array are put together matters, where it does though the operator is
    /// associative: some neighbours come to what the type has no value for.
    ///
    /// # Panics
    /// When there is a piece of an element.
    pub fn ambiguity(self, array: &[u8]) -> Option<&'static str> {
        struct Ambiguity<'a>(&'a [u8]);
        impl InstanceVisitor for Ambiguity<'_> {
            type Output = Option<&'static str>;
            fn visit<M: Monoid>(self) -> Option<&'static str> {
                M::ambiguity(self.0.chunks(size_of::<M::Value>()).map(bytemuck::pod_read_unaligned))
            }
        }
        visit_instance(self, Ambiguity(array))
    }

    /// left ⊕ right, each the bytes of one element.
    ///
    /// # Panics
    /// When there are fewer bytes or more.
    pub fn combine(self, left: &[u8], right: &[u8]) -> Vec<u8> {
        struct Combine<'a>(&'a [u8], &'a [u8]);
        impl InstanceVisitor for Combine<'_> {
            type Output = Vec<u8>;
            fn visit<M: Monoid>(self) -> Vec<u8> {
                let read = |bytes| bytemuck::pod_read_unaligned(bytes);
                bytemuck::bytes_of(&M::combine(read(self.0), read(self.1))).to_vec()
            }
        }
        visit_instance(self, Combine(left, right))
    }

    /// A value for people, from the bytes of one element.
    ///
    /// # Panics
    /// When there are fewer bytes or more.
    pub fn text(self, bytes: &[u8]) -> String {
        struct Text<'a>(&'a [u8]);
        impl InstanceVisitor for Text<'_> {
            type Output = String;
            fn visit<M: Monoid>(self) -> String {
                M::text(&bytemuck::pod_read_unaligned(self.0))
            }
        }
        // Stored are halves, and scanned is another type.
        match self.element().float().filter(|_| self.element().is_half()) {
            Some(half) => format!("{:?}", (half.read)(bytes)), // as a program would have it
            None => visit_instance(self, Text(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks the laws on three values from raw bytes.
    struct LawsHold<'a>(&'a [u8], &'a [u8], &'a [u8]);

    impl InstanceVisitor for LawsHold<'_> {
        type Output = Result<(), TestCaseError>;
        fn visit<M: Monoid>(self) -> Self::Output {
            let read = |bytes: &[u8]| bytemuck::pod_read_unaligned::<M::Value>(&bytes[..size_of::<M::Value>()]);
            let (a, b, c) = (read(self.0), read(self.1), read(self.2));
            prop_assert!(M::same(&M::combine(a, M::IDENTITY), &a), "{a:?} ⊕ identity");
            prop_assert!(M::same(&M::combine(M::IDENTITY, a), &a), "identity ⊕ {a:?}");
            let from_the_left = M::combine(M::combine(a, b), c);
            let from_the_right = M::combine(a, M::combine(b, c));
            prop_assert!(M::same(&from_the_left, &from_the_right), "{a:?} ⊕ {b:?} ⊕ {c:?}");
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn operators_are_associative_and_have_an_identity(
            a in prop::array::uniform16(0u8..), b in prop::array::uniform16(0u8..), c in prop::array::uniform16(0u8..),
        ) {
            for instance in Instance::all().filter(|instance| !instance.is_rounded()) {
                if instance.operator() == Operator::Product && instance.element().is_float() {
                    // Powers of two, some of which come to no number of the type.
                    let drawn = [a, b, c].map(|bytes| 2_f64.powi(i32::from(bytes[0]) - 128));
                    let float = instance.element().float().expect("it is one");
                    let mut array = vec![0; 3 * instance.element().bytes()];
                    for (value, bytes) in drawn.into_iter().zip(array.chunks_exact_mut(instance.element().bytes())) {
                        (float.write)(value, bytes);
                    }
                    if instance.ambiguity(&array).is_none() {
                        let [a, b, c] = [0, 1, 2].map(|at| &array[at * instance.element().bytes()..]);
                        visit_instance(instance, LawsHold(a, b, c))?;
                    }
                } else if instance.operator() == Operator::Bicyclic {
                    // Exponents are natural numbers; they are small enough not to wrap in any dataset.
                    let mask = |mut bytes: [u8; 16]| { bytes[3] &= 0x0f; bytes[7] &= 0x0f; bytes };
                    visit_instance(instance, LawsHold(&mask(a), &mask(b), &mask(c)))?;
                } else {
                    visit_instance(instance, LawsHold(&a, &b, &c))?;
                }
            }
        }

        #[test]
        fn what_is_not_associative_is_known_before_it_is_scanned(
            at in prop::array::uniform6(0usize..8), neighbours in any::<[bool; 2]>(),
        ) {
            const VALUES: [u32; 8] = [0, 1, 2, 3, 5, 6, u32::MAX - 1, u32::MAX];
            let mut values = at.map(|at| VALUES[at]);
            for (index, is_neighbour) in neighbours.into_iter().enumerate() {
                if is_neighbour { values[2 * index + 2] = values[2 * index + 1].wrapping_add(1); }
            }
            for operator in [Operator::Bicyclic, Operator::Intervals] {
                let instance = Instance::new(operator.own_element().unwrap(), operator).unwrap();
                if instance.ambiguity(bytemuck::bytes_of(&values)).is_none() {
                    let bytes = |at: usize| bytemuck::bytes_of(&values)[8 * at..8 * at + 8].to_vec();
                    visit_instance(instance, LawsHold(&bytes(0), &bytes(1), &bytes(2)))?;
                }
            }
        }

        #[test]
        fn joining_intervals_is_associative(bounds in prop::array::uniform6(3u32..9), joins in any::<[bool; 2]>()) {
            let mut bounds = bounds;
            for (index, join) in joins.into_iter().enumerate() {
                if join { bounds[2 * index + 2] = bounds[2 * index + 1] + 1; }
            }
            let bytes = |at: usize| {
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(bytemuck::bytes_of(&[bounds[at], bounds[at + 1]]));
                bytes
            };
            let instance = Instance::new(ElementType::IndexInterval, Operator::Intervals).unwrap();
            visit_instance(instance, LawsHold(&bytes(0), &bytes(2), &bytes(4)))?;
        }
    }

    #[test]
    fn equal_zeros_and_nans_are_settled() {
        assert_eq!(Minimum::<f32>::combine(-0.0, 0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(Minimum::<f32>::combine(0.0, -0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(Maximum::<f64>::combine(-0.0, 0.0).to_bits(), 0.0f64.to_bits());
        assert_eq!(Maximum::<f64>::combine(0.0, -0.0).to_bits(), 0.0f64.to_bits());
        assert!(Maximum::<f64>::combine(f64::NAN, 1.0).is_nan());
        assert!(Minimum::<f64>::combine(1.0, f64::NAN).is_nan());
    }

    #[test]
    fn only_what_wraps_is_ambiguous() {
        let of = |operator: Operator, values: &[u32]| {
            let instance = Instance::new(operator.own_element().unwrap(), operator).unwrap();
            instance.ambiguity(bytemuck::cast_slice(values)).is_some()
        };
        let products = Instance::new(ElementType::F32, Operator::Product).unwrap();
        for (values, is_ambiguous) in [
            (&[2_f32.powi(125), 0.5, -2.0, 1.0][..], false),
            (&[2_f32.powi(-60), 2_f32.powi(100), 2_f32.powi(25), -0.25], false),
            // Beyond the largest number, and among the subnormal ones, for neighbours in the middle.
            (&[2_f32.powi(-60), 2_f32.powi(100), 2_f32.powi(26), -0.25], true),
            (&[1.0, 2_f32.powi(-100), 2_f32.powi(-26), 2_f32.powi(30)], true),
            (&[1.0, 3.0], true),
            (&[0.0], true),
            (&[f32::INFINITY], true),
            (&[f32::NAN], true),
        ] {
            assert_eq!(products.ambiguity(bytemuck::cast_slice(values)).is_some(), is_ambiguous, "{values:?}");
        }
        const MOST: u32 = u32::MAX;
        for (values, is_ambiguous) in [
            (&[0, MOST, 0, 2, 5, 0][..], true),
            (&[2, 0, MOST, 0], true),
            // Sums beyond 2^32, and no exponent.
            (&[0, MOST, MOST, 0, 0, MOST], false),
            (&[0, 7, MOST, 0], false),
        ] {
            assert_eq!(of(Operator::Bicyclic, values), is_ambiguous, "{values:?}");
        }
        for (values, is_ambiguous) in [
            (&[1, 5, 6, 0][..], true),
            (&[2, 5, 1, 0, 6, MOST, 0, 0], true),
            (&[0, 0, 1, 5, 6, 9, 10, 0], true),
            (&[0, 5, 6, 0], false),
            (&[1, 5, 7, 0], false),
            (&[1, 5, 2, 0, 6, 0], false),
            (&[1, 0, 2, 0], false),
        ] {
            assert_eq!(of(Operator::Intervals, values), is_ambiguous, "{values:?}");
        }
    }

    #[test]
    fn an_interval_error_absorbs() {
        let run = IndexInterval { first: 5, last: 9 };
        for other in [run, IndexInterval::EMPTY, IndexInterval::ERROR] {
            assert_eq!(Intervals::combine(IndexInterval::ERROR, other), IndexInterval::ERROR);
            assert_eq!(Intervals::combine(other, IndexInterval::ERROR), IndexInterval::ERROR);
        }
        assert_eq!(Intervals::combine(run, run), IndexInterval::ERROR);
    }
}
