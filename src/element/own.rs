//! Element types that serve one operator each.

use bytemuck::{Pod, Zeroable};

/// x ↦ `multiplier`·x + `addend` modulo 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct AffineMap {
    /// The factor.
    pub multiplier: u64,
    /// What is added.
    pub addend: u64,
}

/// qᵃpᵇ in the bicyclic monoid ⟨p, q | pq = 1⟩. Exponents are natural numbers; where that of a product reaches 2^32 it
/// wraps, and the operator is not associative any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BicyclicPair {
    /// Exponent of q.
    pub left: u32,
    /// Exponent of p.
    pub right: u32,
}

/// The indices `first`, `first` + 1, …, `last` modulo 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct IndexInterval {
    /// The first index.
    pub first: u32,
    /// The last index.
    pub last: u32,
}

impl IndexInterval {
    /// The empty run; joins with anything. The encoding is reserved: taken as a run it would be the full
    /// cycle of 2^32 indices that starts at 1, which no prefix is, since prefixes start at 0. Where neighbours come to
    /// it, as in 1 to 5 and 6 to 0, joining is not associative.
    pub const EMPTY: Self = Self { first: 1, last: 0 };
    /// What joining anything but neighbours gives; stays an error whatever it is joined with. Reserved
    /// like `EMPTY`.
    pub const ERROR: Self = Self { first: 2, last: 0 };
}
