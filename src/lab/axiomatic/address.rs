//! What registers hold, followed back through the arithmetic of a kernel: sums of its parameters, and constant bits.

use super::ptx::{Instruction, Text, immediate, vector};
use std::collections::BTreeMap;

impl Text {
    /// The value of an operand as a sum; with a `selp` in it, one for either outcome.
    pub fn sums(&self, operand: &str, depth: u32) -> Vec<Sum> {
        if let Some(number) = immediate(operand) {
            return vec![Sum::constant(number)];
        }
        let opaque = || vec![Sum::symbol(operand)];
        let Some(definition) = self.definition(operand).filter(|_| depth < 64) else { return opaque() };
        let arguments = &definition.operands[1..];
        let argument = |index: usize| arguments.get(index).map(|text| self.sums(text, depth + 1));
        let both = |combine: &dyn Fn(&Sum, &Sum) -> Option<Sum>| -> Option<Vec<Sum>> {
            let (left, right) = (argument(0)?, argument(1)?);
            if left.len() > 1 && right.len() > 1 {
                return None;
            }
            left.iter().flat_map(|left| right.iter().map(move |right| combine(left, right))).collect()
        };
        let found = match definition.base() {
            "mov" | "cvta" | "cvt" => argument(0),
            "add" => both(&|left, right| Some(left.plus(right, 1))),
            "sub" => both(&|left, right| Some(left.plus(right, -1))),
            "neg" => argument(0).map(|sums| sums.iter().map(|sum| sum.times(-1)).collect()),
            "not" => argument(0).map(|sums| sums.iter().map(|sum| sum.times(-1).plus(&Sum::constant(1), -1)).collect()),
            "shl" => {
                both(&|left, right| Some(left.times(1_i64.checked_shl(u32::try_from(right.as_constant()?).ok()?)?)))
            }
            "mul" => both(&|left, right| match (left.as_constant(), right.as_constant()) {
                (_, Some(factor)) => Some(left.times(factor)),
                (Some(factor), _) => Some(right.times(factor)),
                _ => None,
            }),
            "mad" => both(&|left, right| Some(left.times(right.as_constant()?))).and_then(|products| {
                let addend = argument(2)?;
                let [addend] = addend.as_slice() else { return None };
                Some(products.iter().map(|product| product.plus(addend, 1)).collect())
            }),
            "selp" => {
                let (yes, no) = (argument(0), argument(1));
                match (yes, no) {
                    (Some(yes), Some(no)) if yes.len() == 1 && no.len() == 1 => {
                        let swapped = arguments.get(2).and_then(|predicate| self.is_not_aggregate(predicate));
                        match swapped {
                            Some(false) => Some(vec![yes[0].clone(), no[0].clone()]),
                            Some(true) => Some(vec![no[0].clone(), yes[0].clone()]),
                            None => None,
                        }
                    }
                    _ => None,
                }
            }
            "ld" if definition.has("param") => {
                let address = arguments.first().map(|text| text.trim_matches(['[', ']']).to_owned());
                address.map(|address| vec![Sum::symbol(&self.parameter(&address))])
            }
            _ => None,
        };
        found.unwrap_or_else(opaque)
    }

    /// `%rd36+24`, where %rd36 is the address of the parameters, as `param+24`.
    fn parameter(&self, address: &str) -> String {
        let (base, offset) = address.split_once('+').unwrap_or((address, "0"));
        let base = match self.definition(base) {
            Some(definition) if definition.base() == "mov" => {
                definition.operands.get(1).map_or(base, String::as_str).to_owned()
            }
            _ => base.to_owned(),
        };
        format!("{PARAMETER}{base}+{offset}")
    }

    /// Whether a predicate is false where a status is that of an aggregate; nothing if it compares something else.
    fn is_not_aggregate(&self, predicate: &str) -> Option<bool> {
        let definition = self.definition(predicate)?;
        let number = immediate(definition.operands.get(2)?)?;
        match (definition.base(), definition.has("eq"), definition.has("ne"), number) {
            ("setp", true, _, 1) | ("setp", _, true, 2) => Some(false),
            ("setp", true, _, 2) | ("setp", _, true, 1) => Some(true),
            _ => None,
        }
    }

    /// The load from which an operand is taken, as it is or some bits of it, or with a `selp` nothing of it, if one register after
    /// the other has one definition.
    pub fn origin(&self, operand: &str, depth: u32) -> Option<&Instruction> {
        let definition = self.definition(operand)?;
        // Of a load by inline assembly a mov on the same line takes the word apart.
        let is_load = |other: &&Instruction| other.line == definition.line && other.base() == "ld";
        self.instructions.iter().find(is_load).or_else(|| match definition.base() {
            "cvt" | "shr" | "mov" | "and" | "selp" if depth < 32 => self.origin(definition.operands.get(1)?, depth + 1),
            _ => None,
        })
    }

    /// Two bits of an operand at a position, if they are a constant.
    pub fn bits(&self, operand: &str, position: u32, depth: u32) -> Option<u8> {
        if let Some(number) = immediate(operand) {
            return Some(((number >> position.min(63)) & 3) as u8);
        }
        let definition = self.definition(operand).filter(|_| depth < 32)?;
        let argument = |index: usize| definition.operands.get(index + 1).map(String::as_str);
        let of = |index: usize, position: u32| self.bits(argument(index)?, position, depth + 1);
        match definition.base() {
            "or" => match (of(0, position), of(1, position)) {
                (Some(left), Some(right)) => Some(left | right),
                (Some(3), None) | (None, Some(3)) => Some(3),
                _ => None,
            },
            "add" if position == 0 => Some((of(0, 0)? + of(1, 0)?) & 3),
            "shl" => {
                let distance = u32::try_from(immediate(argument(1)?)?).ok()?;
                if position + 2 <= distance { Some(0) } else { of(0, position.checked_sub(distance)?) }
            }
            "cvt" => {
                if position >= 32 {
                    Some(0)
                } else {
                    of(0, position)
                }
            }
            "bfi" => {
                let (from, length) = (immediate(argument(2)?)?, immediate(argument(3)?)?);
                let (from, length) = (u32::try_from(from).ok()?, u32::try_from(length).ok()?);
                if (from..from + length).contains(&position) { of(0, position - from) } else { of(1, position) }
            }
            "mov" => {
                let parts = vector(argument(0)?);
                match parts.as_slice() {
                    [low, high] if definition.has("b64") => {
                        let (part, position) = if position < 32 { (low, position) } else { (high, position - 32) };
                        self.bits(part, position, depth + 1)
                    }
                    [low, high] if definition.has("b128") => {
                        let (part, position) = if position < 64 { (low, position) } else { (high, position - 64) };
                        self.bits(part, position, depth + 1)
                    }
                    [_] => of(0, position),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

const PARAMETER: &str = "param:";

fn greatest_common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { greatest_common_divisor(b, a % b) }
}

/// A constant and multiples of symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    pub constant: i64,
    pub terms: BTreeMap<String, i64>,
}

impl Sum {
    pub fn constant(constant: i64) -> Self {
        Self { constant, terms: BTreeMap::new() }
    }

    fn symbol(name: &str) -> Self {
        Self { constant: 0, terms: BTreeMap::from([(name.to_owned(), 1)]) }
    }

    pub fn plus(&self, other: &Self, factor: i64) -> Self {
        let mut sum = self.clone();
        sum.constant = sum.constant.wrapping_add(other.constant.wrapping_mul(factor));
        for (name, count) in &other.terms {
            *sum.terms.entry(name.clone()).or_insert(0) += count.wrapping_mul(factor);
        }
        sum.terms.retain(|_, count| *count != 0);
        sum
    }

    fn times(&self, factor: i64) -> Self {
        Self::constant(0).plus(self, factor)
    }

    fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// What an index into an array is multiplied by: bytes of an element; nothing if there is no index.
    pub fn stride(&self) -> Option<i64> {
        let indices = self.terms.iter().filter(|(name, _)| !name.starts_with(PARAMETER));
        indices.map(|(_, count)| *count).reduce(greatest_common_divisor).map(i64::abs)
    }

    /// The multiples of kernel parameters in it: what an array is, whichever element of it is meant.
    pub fn array(&self) -> BTreeMap<String, i64> {
        self.terms.iter().filter(|(name, _)| name.starts_with(PARAMETER)).map(|(n, c)| (n.clone(), *c)).collect()
    }
}
