//! Element types, operators, and the pairs of both that kernels exist for. `table.rs` has a row for each.

include!("table.rs");

mod axis;
mod definition;
pub mod monoid;
mod own;
mod problem;
mod provided;

use crate::names::named;
use bytemuck::Pod;
use half::{bf16, f16};
use own::*;
use serde::{Deserialize, Serialize};
use std::fmt;

pub(crate) use axis::Axis;
pub use definition::defined::Defined;
pub(crate) use definition::defined::{Segments, Verb};
pub(crate) use definition::own_name;
pub use definition::{ArrayElement, Definition, DefinitionError, Histogram, KeyBits};
pub use problem::{NoSuchProblem, Problem};

/// A Rust type whose arrays are scanned, `half::f16` and `half::bf16` among them. Sealed: kernels are compiled for the types of the table.
pub trait Element: Pod + sealed::Sealed {
    /// The type's name in this crate.
    const ELEMENT: ElementType;
}

/// What offsets and counts are of: whole numbers of 4 or 8 bytes. Sealed, as [`Element`] is.
pub trait WholeNumber: Element {}
impl WholeNumber for u32 {}
impl WholeNumber for u64 {}
impl WholeNumber for i32 {}
impl WholeNumber for i64 {}

mod sealed {
    pub trait Sealed {}
}

/// How the values of a float type are read and written, and how far they reach.
#[derive(Debug)]
pub struct Float {
    /// Bits of the significand, the implicit one included.
    pub digits: u32,
    /// The largest finite number.
    pub largest: f64,
    /// Half the distance from 1 to the next larger number.
    pub unit_roundoff: f64,
    /// The number that the little-endian bytes of one element are.
    pub read: fn(&[u8]) -> f64,
    /// The bytes of the number, rounded to the type.
    pub write: fn(f64, &mut [u8]),
}

macro_rules! define_element_types {
    ({}
        integers { $($(#[$integer_meta:meta])* $integer:ident = $integer_name:literal, $integer_type:ident, $integer_cuda:literal;)* }
        floats { $($(#[$float_meta:meta])* $float:ident = $float_name:literal, $float_type:ident, $float_cuda:literal;)* }
        halves { $($(#[$half_meta:meta])* $half:ident = $half_name:literal, $half_type:ident, $half_cuda:literal;)* }
        own { $($(#[$own_meta:meta])* $own:ident = $own_name:literal, $own_type:ident, $own_cuda:literal;)* }
    ) => {
        named! {
            /// What an array holds.
            pub enum ElementType as "element type" {
                $($(#[$integer_meta])* $integer = $integer_name,)*
                $($(#[$float_meta])* $float = $float_name,)*
                $($(#[$half_meta])* $half = $half_name,)*
                $($(#[$own_meta])* $own = $own_name,)*
            }
        }

        impl ElementType {
            /// The types of numbers that operators are defined on, without those that serve tests.
            pub const NUMBERS: &'static [Self] = &[$(Self::$integer,)* $(Self::$float,)*];

            /// Floats of two bytes, which arrays hold and no operator is defined on: scanners scan them in f32.
            pub const HALVES: &'static [Self] = &[$(Self::$half,)*];

            /// The types that operators are defined on.
            pub const SCANNED: &'static [Self] = &[$(Self::$integer,)* $(Self::$float,)* $(Self::$own,)*];

            /// Size of one element in bytes; also its alignment.
            pub const fn bytes(self) -> usize {
                match self {
                    $(Self::$integer => size_of::<$integer_type>(),)*
                    $(Self::$float => size_of::<$float_type>(),)*
                    $(Self::$half => size_of::<$half_type>(),)*
                    $(Self::$own => size_of::<$own_type>(),)*
                }
            }

            /// Whether the type is one of the integer types.
            pub const fn is_integer(self) -> bool {
                matches!(self, $(Self::$integer)|*)
            }

            /// Whether the highest bit of a number is a sign, and not the upper half of its range.
            #[cfg(feature = "lab")]
            pub(crate) const fn has_sign(self) -> bool {
                self.is_signed() || self.is_float()
            }

            /// Whether the type is an integer type with a sign.
            #[allow(unused_comparisons)] // of unsigned types
            pub const fn is_signed(self) -> bool {
                match self {
                    $(Self::$integer => $integer_type::MIN < 0,)*
                    _ => false,
                }
            }

            /// An integer of the type, of at most 16 bytes.
            pub(crate) fn integer(self, bytes: &[u8]) -> i128 {
                let is_negative = self.is_signed() && bytes.last().is_some_and(|&byte| byte >= 0x80);
                let mut wide = [if is_negative { 0xff } else { 0 }; 16];
                wide[..bytes.len()].copy_from_slice(bytes);
                i128::from_le_bytes(wide)
            }

            /// Whether the type is one of the float types, the halves among them: sums are rounded.
            pub const fn is_float(self) -> bool {
                matches!(self, $(Self::$float)|* | $(Self::$half)|*)
            }

            /// Whether arrays hold the type and no operator is defined on it: [`Self::HALVES`].
            pub const fn is_half(self) -> bool {
                matches!(self, $(Self::$half)|*)
            }

            /// What is particular to float types; `None` for the others.
            pub const fn float(self) -> Option<&'static Float> {
                match self {
                    $(Self::$float => Some(&Float {
                        digits: $float_type::MANTISSA_DIGITS,
                        largest: $float_type::MAX as f64,
                        unit_roundoff: $float_type::EPSILON as f64 / 2.0,
                        read: |bytes| f64::from(bytemuck::pod_read_unaligned::<$float_type>(bytes)),
                        write: |value, bytes| bytes.copy_from_slice(&(value as $float_type).to_le_bytes()),
                    }),)*
                    $(Self::$half => Some(const { &Float {
                        digits: $half_type::MANTISSA_DIGITS,
                        largest: $half_type::MAX.to_f64_const(),
                        unit_roundoff: $half_type::EPSILON.to_f64_const() / 2.0,
                        read: |bytes| f64::from(bytemuck::pod_read_unaligned::<$half_type>(bytes)),
                        write: |value, bytes| bytes.copy_from_slice(&$half_type::from_f64(value).to_le_bytes()),
                    } }),)*
                    _ => None,
                }
            }

            /// The type in CUDA.
            pub const fn cuda_type(self) -> &'static str {
                match self {
                    $(Self::$integer => $integer_cuda,)*
                    $(Self::$float => $float_cuda,)*
                    $(Self::$half => $half_cuda,)*
                    $(Self::$own => $own_cuda,)*
                }
            }
        }

        $(impl sealed::Sealed for $integer_type {}
        impl Element for $integer_type {
            const ELEMENT: ElementType = ElementType::$integer;
        })*
        $(impl sealed::Sealed for $float_type {}
        impl Element for $float_type {
            const ELEMENT: ElementType = ElementType::$float;
        })*
        $(impl sealed::Sealed for $half_type {}
        impl Element for $half_type {
            const ELEMENT: ElementType = ElementType::$half;
        })*
        $(impl sealed::Sealed for $own_type {}
        impl Element for $own_type {
            const ELEMENT: ElementType = ElementType::$own;
        })*
    };
}
// The laboratory calls the public API for each type.
#[cfg(all(feature = "lab", feature = "cuda"))]
pub(crate) use element_types;

element_types!(define_element_types {});

impl ElementType {
    /// Whether it is a type of numbers, the halves among them.
    pub fn is_number(self) -> bool {
        Self::NUMBERS.contains(&self) || self.is_half()
    }

    /// The type that its numbers are scanned in where they are converted: of at least 4 bytes.
    pub(crate) const fn scanned_in(self) -> Self {
        match self {
            half if half.is_half() => Self::F32,
            wide if wide.bytes() >= 4 => wide,
            narrow if narrow.is_signed() => Self::I32,
            _ => Self::U32,
        }
    }
}

/// How the numbers of an input are distributed: what lets a fault show. Numbered as in `cuda/measure.cu`.
///
/// A product of random integers is soon 0, and one of random floats 0 or infinite. Full-range random minima reach their last value within a few elements and would hide every later fault,
/// so those of `min` and `max` keep widening their range, and bits of `and` and `or` go one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Distribution {
    /// Integers over their whole range; floats from -0.5 to 1.5, whose prefix grows.
    Uniform = 0,
    /// The range widens downwards over 4096 plateaus.
    Falling = 1,
    /// The range widens upwards over 4096 plateaus.
    Rising = 2,
    /// All bits set, but for one in about 2·bits elements of the array.
    SparseZeros = 3,
    /// All bits clear, but for one in about 2·bits elements of the array.
    SparseOnes = 4,
    /// No operator's. Whole numbers from -4 to 4 without 0. Their partial sums stay below 2^24 for any n that fits a
    /// GPU, so a sum of floats is exact in every order, and a lost or doubled tile cannot hide in a rounding bound.
    Walk = 5,
    /// Odd integers, each of which has an inverse, so that no product forgets what was in it. Floats are powers of two of
    /// either sign such that the product of any neighbours is one from 2^-31 to 2^31: it is exact in every order.
    Factors = 6,
}

macro_rules! define_operators {
    ({}
        numbers { $($(#[$number_meta:meta])* $number:ident = $number_name:literal, $_nm:ident, $number_cuda:literal, arithmetic: $arithmetic:literal, input: $number_input:ident;)* }
        integers { $($(#[$integer_meta:meta])* $integer:ident = $integer_name:literal, $_im:ident, $integer_cuda:literal, input: $integer_input:ident;)* }
        own { $($(#[$own_meta:meta])* $own:ident = $own_name:literal, $_om:ident, $own_cuda:literal, on: $element:ident;)* }
    ) => {
        named! {
            /// An associative operator with an identity.
            pub enum Operator as "operator" {
                $($(#[$number_meta])* $number = $number_name,)*
                $($(#[$integer_meta])* $integer = $integer_name,)*
                $($(#[$own_meta])* $own = $own_name,)*
            }
        }

        impl Operator {
            /// The operators on numbers: on all of them, or on integers.
            pub const OF_NUMBERS: &'static [Self] = &[$(Self::$number,)* $(Self::$integer,)*];

            /// The one element type of an operator that has its own.
            pub const fn own_element(self) -> Option<ElementType> {
                match self {
                    $(Self::$own => Some(ElementType::$element),)*
                    _ => None,
                }
            }

            /// The operator that elements of a type are scanned by where none is named: its own, or the sum.
            #[cfg(feature = "cli")]
            pub(crate) fn usual_of(element: ElementType) -> Self {
                Self::ALL.iter().copied().find(|operator| operator.own_element() == Some(element)).unwrap_or(Self::Sum)
            }

            /// The elements that an operator scans where no type is named: its own, or `u32`.
            #[cfg(feature = "cli")]
            pub(crate) fn usual_element(self) -> ElementType {
                self.own_element().unwrap_or(ElementType::U32)
            }

            /// Whether the operator is defined on the element type.
            const fn is_defined_on(self, element: ElementType) -> bool {
                match self {
                    $(Self::$number)|* => element.is_integer() || element.is_float() && !element.is_half(),
                    $(Self::$integer)|* => element.is_integer(),
                    $(Self::$own => matches!(element, ElementType::$element),)*
                }
            }

            /// Whether results are rounded on floats, and do not depend on the sign of integers.
            const fn is_arithmetic(self) -> bool {
                match self {
                    $(Self::$number => $arithmetic,)*
                    _ => false,
                }
            }

            /// Whether signed and unsigned integers have the same bits in common.
            const fn ignores_signs(self) -> bool {
                self.is_arithmetic() || matches!(self, $(Self::$integer)|*)
            }

            /// The distribution of numbers that it is verified and timed on.
            pub const fn input(self) -> Distribution {
                match self {
                    $(Self::$number => Distribution::$number_input,)*
                    $(Self::$integer => Distribution::$integer_input,)*
                    $(Self::$own)|* => Distribution::Uniform,
                }
            }

            /// The operator's type in CUDA.
            pub fn cuda_type(self, element: ElementType) -> String {
                let name = match self {
                    $(Self::$number => $number_cuda,)*
                    $(Self::$integer => $integer_cuda,)*
                    $(Self::$own => return String::from(concat!("::lookback::operators::", $own_cuda)),)*
                };
                format!("::lookback::operators::{name}<{}>", element.cuda_type())
            }
        }
    };
}
operators!(define_operators {});

impl Operator {
    /// Whether a ⊕ b = b ⊕ a for all a and b.
    pub const fn is_commutative(self) -> bool {
        self.own_element().is_none()
    }
}

macro_rules! pairs {
    ($($element:ident $operator:ident),*) => { &[$((ElementType::$element, Operator::$operator)),*] };
}
macro_rules! on_demand {
    (types { $($element:ident)* } operators { $($operator:ident)* }) => {
        impl Instance {
            /// Whether the build has its kernels for the CPU device, which compiles others when they are asked for.
            pub fn is_built_in(self) -> bool {
                let Self { element, operator } = self.canonical();
                !matches!(element, $(ElementType::$element)|*) && !matches!(operator, $(Operator::$operator)|*)
            }
        }
    };
}
compiled_on_demand!(on_demand);

/// Instances whose kernels are compiled for the CPU device with mutants.
pub const OPERATORS_WITH_MUTANTS: &[(ElementType, Operator)] = with_mutants!(pairs);

/// An operator that is not defined on an element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the operator '{operator}' is not defined on {element}{}",
    if element.is_half() { ": its arrays are scanned in f32, by Scanner and HostScanner" } else { "" }
)]
pub struct NoSuchInstance {
    /// The operator that was asked for.
    pub operator: Operator,
    /// The element type that was asked for.
    pub element: ElementType,
}

/// An element type with an operator on it: what kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Instance {
    element: ElementType,
    operator: Operator,
}

impl Instance {
    /// For what is of no instance.
    pub(crate) const SUM_OF_WORDS: Self = Self { element: ElementType::U32, operator: Operator::Sum };
    pub(crate) const SUM_OF_LONG_WORDS: Self = Self { element: ElementType::U64, operator: Operator::Sum };

    /// # Errors
    /// When the operator is not defined on the element type: bitwise operators on floats, the operators
    /// with an element type of their own on any other.
    pub fn new(element: ElementType, operator: Operator) -> Result<Self, NoSuchInstance> {
        if operator.is_defined_on(element) {
            Ok(Self { element, operator })
        } else {
            Err(NoSuchInstance { operator, element })
        }
    }

    /// The same of what is stored, which may be of two bytes: no operator is defined on halves, and sums of them are scanned in
    /// f32 and rounded once.
    ///
    /// # Errors
    /// When no scan stores such a thing.
    #[cfg(feature = "lab")]
    pub(crate) fn of_stored(element: ElementType, operator: Operator) -> Result<Self, NoSuchInstance> {
        let stored = Self { element, operator };
        if element.is_half() && stored.is_rounded() { Ok(stored) } else { Self::new(element, operator) }
    }

    /// Every pair that kernels exist for.
    pub fn all() -> impl Iterator<Item = Self> {
        ElementType::ALL
            .iter()
            .flat_map(|&element| Operator::ALL.iter().filter_map(move |&operator| Self::new(element, operator).ok()))
    }

    /// The element type.
    pub const fn element(self) -> ElementType {
        self.element
    }

    /// The operator.
    pub const fn operator(self) -> Operator {
        self.operator
    }

    /// Whether results are rounded, so that they are compared within a bound. Products of floats are not: those that are
    /// exact in every order alone are verified ([`Instance::ambiguity`]).
    pub const fn is_rounded(self) -> bool {
        let is_exact = matches!(self.operator.input(), Distribution::Factors);
        self.may_round() && !is_exact
    }

    /// Whether results may be rounded where numbers are a user's, and not drawn so that every order gives the same.
    pub(crate) const fn may_round(self) -> bool {
        self.element.is_float() && self.operator.is_arithmetic()
    }

    /// Whether what was added last can be taken off again: integer sums, which wrap.
    pub const fn has_inverse(self) -> bool {
        self.element.is_integer() && matches!(self.operator, Operator::Sum)
    }

    /// Whether the low bits of a result depend on the low bits of the operands alone: two's-complement sums and bitwise
    /// operators.
    pub const fn wraps(self) -> bool {
        self.element.is_integer() && self.operator.ignores_signs()
    }

    /// The instance whose kernels compute this one bit for bit: two's-complement sums and bitwise
    /// operators do not depend on the sign, so signed and unsigned types share them.
    pub fn canonical(self) -> Self {
        if !self.element.is_signed() || !self.wraps() {
            return self;
        }
        let is_unsigned =
            |other: &&ElementType| other.is_integer() && !other.is_signed() && other.bytes() == self.element.bytes();
        Self { element: ElementType::ALL.iter().find(is_unsigned).copied().unwrap_or(self.element), ..self }
    }

    /// Type and operator as one word of a kernel's name: `u32_sum`.
    pub fn identifier(self) -> String {
        format!("{}_{}", self.element, self.operator).replace('-', "_")
    }

    /// The operator's type in CUDA: what the kernels of this instance are compiled for.
    pub fn cuda_type(self) -> String {
        self.operator.cuda_type(self.element)
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operator.own_element() {
            Some(_) => formatter.pad(self.operator.name()),
            None => formatter.pad(&format!("{} {}", self.element.name(), self.operator.name())),
        }
    }
}
