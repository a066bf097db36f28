//! Element types, operators, and the pairs of both that kernels exist for.

pub mod monoid;

use crate::strategy::{ConfigError, UnknownName, named};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

named! {
    /// What an array holds.
    pub enum ElementType as "element type" {
        /// 8-bit unsigned integer.
        U8 = "u8",
        /// 16-bit unsigned integer.
        U16 = "u16",
        /// 32-bit unsigned integer.
        U32 = "u32",
        /// 32-bit signed integer.
        I32 = "i32",
        /// 64-bit unsigned integer.
        U64 = "u64",
        /// 64-bit signed integer.
        I64 = "i64",
        /// IEEE 754 binary32.
        F32 = "f32",
        /// IEEE 754 binary64.
        F64 = "f64",
        /// x ↦ a·x + b modulo 2^64: two `u64`, `a` then `b`; 16 bytes.
        AffineMap = "affine-map",
        /// An element of the bicyclic monoid: two `u32`, 8 bytes.
        BicyclicPair = "bicyclic-pair",
        /// A run of consecutive indices modulo 2^32: two `u32`, first and last; 8 bytes.
        IndexInterval = "index-interval",
    }
}

named! {
    /// An associative operator with an identity.
    pub enum Operator as "operator" {
        /// Addition; integers wrap.
        Sum = "sum",
        /// The smaller; of floats NaN if either is NaN, and −0 below +0.
        Min = "min",
        /// The larger; of floats NaN if either is NaN, and −0 below +0.
        Max = "max",
        /// Bitwise and; integers only.
        And = "and",
        /// Bitwise or; integers only.
        Or = "or",
        /// Bitwise exclusive or; integers only.
        Xor = "xor",
        /// Composition of affine maps, the left one applied first; not commutative.
        Affine = "affine",
        /// The bicyclic monoid ⟨p, q | pq = 1⟩; not commutative.
        Bicyclic = "bicyclic",
        /// Joining adjacent index intervals; anything else gives an absorbing error. Not commutative, and
        /// one run over intervals proves order and coverage for every operator (Chong, Donaldson &
        /// Ketema, POPL 2014).
        Intervals = "intervals",
    }
}

impl ElementType {
    /// Size of one element in bytes; also its alignment.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 | Self::BicyclicPair | Self::IndexInterval => 8,
            Self::AffineMap => 16,
        }
    }

    /// The eight types of numbers, without those that serve tests.
    pub const NUMBERS: &'static [Self] =
        &[Self::U8, Self::U16, Self::U32, Self::I32, Self::U64, Self::I64, Self::F32, Self::F64];

    /// Whether sums are rounded.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether the type is one of the six integer types.
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::I32 | Self::U64 | Self::I64)
    }
}

impl Operator {
    /// The one element type of an operator that has its own.
    pub const fn own_element(self) -> Option<ElementType> {
        match self {
            Self::Affine => Some(ElementType::AffineMap),
            Self::Bicyclic => Some(ElementType::BicyclicPair),
            Self::Intervals => Some(ElementType::IndexInterval),
            _ => None,
        }
    }

    /// Whether a ⊕ b = b ⊕ a for all a and b.
    pub const fn is_commutative(self) -> bool {
        self.own_element().is_none()
    }
}

/// An element type with an operator on it: what kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Instance {
    element: ElementType,
    operator: Operator,
}

impl Instance {
    /// # Errors
    /// When the operator is not defined on the element type: bitwise operators on floats, the operators
    /// with an element type of their own on any other.
    pub fn new(element: ElementType, operator: Operator) -> Result<Self, ConfigError> {
        let defined = match operator {
            Operator::Sum | Operator::Min | Operator::Max => element.is_integer() || element.is_float(),
            Operator::And | Operator::Or | Operator::Xor => element.is_integer(),
            Operator::Affine | Operator::Bicyclic | Operator::Intervals => operator.own_element() == Some(element),
        };
        if defined {
            Ok(Self { element, operator })
        } else {
            Err(ConfigError::NoSuchInstance { operator: operator.to_string(), element: element.to_string() })
        }
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

    /// Whether results are rounded, so that they are compared within a bound.
    pub const fn is_rounded(self) -> bool {
        self.element.is_float() && matches!(self.operator, Operator::Sum)
    }

    /// The instance whose kernels compute this one bit for bit: two's-complement sums and bitwise
    /// operators do not depend on the sign, so signed and unsigned types share them.
    pub fn canonical(self) -> Self {
        let unsigned = match self.element {
            ElementType::I32 => ElementType::U32,
            ElementType::I64 => ElementType::U64,
            other => other,
        };
        match self.operator {
            Operator::Sum | Operator::And | Operator::Or | Operator::Xor => Self { element: unsigned, ..self },
            _ => self,
        }
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
