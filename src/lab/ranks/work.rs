//! What is scanned, and what comes of it, by index alone.

use crate::element::{Defined, Definition, ElementType, Operator};
use crate::lab::device::DeviceError;
use crate::ranks::{Deal, Hand};
use crate::strategy::{ConfigError, Mode};
use std::ops::Range;

/// A scan whose results are known without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// `sum` of unsigned integers, or `intervals`.
    pub operator: Operator,
    /// What is loaded.
    pub input: ElementType,
    /// What is scanned and stored.
    pub output: ElementType,
    /// Inclusive or exclusive.
    pub mode: Mode,
}

/// Elements after which the numbers that are added up begin anew.
const PERIOD: u64 = 256;
/// What such numbers come to.
const SUM_OF_PERIOD: u64 = PERIOD * (PERIOD - 1) / 2;

/// What a rank has of the whole array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// All of these.
    Shard(Range<u64>),
    /// What it is dealt.
    Dealt(Hand),
}

impl Part {
    /// How many elements.
    pub fn elements(&self) -> u64 {
        match self {
            Self::Shard(range) => range.end - range.start,
            Self::Dealt(hand) => hand.elements(),
        }
    }

    /// Where one of them stands in the whole array.
    pub fn place(&self, index: u64) -> u64 {
        match self {
            Self::Shard(range) => range.start + index,
            Self::Dealt(hand) => hand.place(index),
        }
    }

    /// The deal that it is of.
    ///
    /// # Errors
    /// When it is a shard.
    pub fn deal(&self) -> Result<Deal, DeviceError> {
        match self {
            Self::Shard(_) => Err(DeviceError::NoDataset),
            Self::Dealt(hand) => Ok(hand.deal()),
        }
    }

    /// The same as CUDA C++, of the place `i` among them.
    fn place_text(&self) -> String {
        match self {
            Self::Shard(range) => format!("{}ull + i", range.start),
            Self::Dealt(hand) => {
                let (chunk, ranks, rank) = (hand.deal().chunk(), hand.ranks(), hand.rank());
                format!("(i / {chunk}ull * {ranks}ull + {rank}ull) * {chunk}ull + i % {chunk}ull")
            }
        }
    }
}

/// Which results a rank's are compared with.
#[derive(Debug, Clone, Copy)]
pub struct Check<'a> {
    /// What the rank has.
    pub part: &'a Part,
    /// Where the scan begins: with the array, or deferred with the shard.
    pub from: u64,
}

impl Work {
    /// # Errors
    /// When its results are not known: what to choose instead.
    pub fn new(operator: Operator, input: ElementType, output: ElementType, mode: Mode) -> Result<Self, String> {
        let is_sum = operator == Operator::Sum && [input, output].iter().all(|element| Self::counts(*element));
        let is_join = operator == Operator::Intervals && input == ElementType::IndexInterval && output == input;
        if !(is_sum || is_join) || mode == Mode::InclusiveMinusInput {
            return Err(format!(
                "{mode} {operator} of {input} into {output}: over ranks sums of u8, u16, u32 and u64 are verified, and \
                 intervals of index-interval, inclusive and exclusive"
            ));
        }
        Ok(Self { operator, input, output, mode })
    }

    fn counts(element: ElementType) -> bool {
        matches!(element, ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64)
    }

    /// The scan.
    ///
    /// # Errors
    /// Never of what [`Self::new`] lets pass.
    pub fn defined(self) -> Result<Defined, DeviceError> {
        let definition = Definition::of_numbers(self.operator, self.input, self.output).map_err(ConfigError::from)?;
        definition.define().map_err(|error| DeviceError::Config(error.into()))
    }

    /// The element at an index.
    fn element(self, index: u64) -> [u8; 8] {
        match self.operator {
            Operator::Intervals => interval(index, index + 1),
            _ => (index % PERIOD).to_le_bytes(),
        }
    }

    /// The combination of the elements of a range.
    fn combined(self, range: Range<u64>) -> [u8; 8] {
        match self.operator {
            Operator::Intervals => interval(range.start, range.end),
            _ => sum_up_to(range.end).wrapping_sub(sum_up_to(range.start)).to_le_bytes(),
        }
    }

    /// The first so many of a part, as they lie in memory.
    pub fn elements(self, part: &Part, count: u64) -> Vec<u8> {
        let bytes = self.input.bytes();
        (0..count).flat_map(|index| self.element(part.place(index)).into_iter().take(bytes)).collect()
    }

    /// Elements after which a part begins anew, if it does.
    pub fn period(self, part: &Part) -> Option<u64> {
        let is_kept = match part {
            Part::Shard(_) => true,
            Part::Dealt(hand) => hand.deal().chunk().is_multiple_of(PERIOD),
        };
        (self.operator == Operator::Sum && is_kept).then_some(PERIOD)
    }

    /// What stands left of a place in the whole array.
    pub fn carry(self, place: u64) -> Vec<u8> {
        self.combined(0..place)[..self.output.bytes()].to_vec()
    }

    /// How many of the results of a part are wrong, from its first on.
    pub fn wrong(self, check: Check<'_>, results: &[u8]) -> u64 {
        let bytes = self.output.bytes();
        let is_wrong = |(index, result): (u64, &[u8])| {
            let end = check.part.place(index) + u64::from(self.mode == Mode::Inclusive);
            result != &self.combined(check.from..end)[..bytes]
        };
        (0..).zip(results.chunks_exact(bytes)).filter(|&one| is_wrong(one)).count() as u64
    }

    /// The same on a device, as the total of a definition whose one input is the results.
    ///
    /// # Errors
    /// Never of what [`Self::new`] lets pass.
    pub fn count_of_wrong(self, Check { part, from }: Check<'_>) -> Result<Defined, DeviceError> {
        let place = part.place_text();
        let inclusive = u32::from(self.mode == Mode::Inclusive);
        let expected = match self.operator {
            Operator::Intervals => format!(
                "const bool is_empty = end == {from}ull;\nconst u32 first = is_empty ? 1u : static_cast<u32>({from}ull);\n\
                 const u32 last = is_empty ? 0u : static_cast<u32>(end - 1);\n\
                 return y.first != first || y.last != last ? 1 : 0;"
            ),
            _ => format!(
                "const u64 r = end % {PERIOD};\nconst u64 sum = end / {PERIOD} * {SUM_OF_PERIOD}ull + r * (r - 1) / 2 - {}ull;\n\
                 return y != static_cast<{}>(sum) ? 1 : 0;",
                sum_up_to(from),
                self.output.cuda_type()
            ),
        };
        Definition::new::<u64>(format!("wrong {} of {}", self.output, self.operator), "u64")
            .identity("0")
            .combine("return left + right;")
            .commutative()
            .input_of("y", self.output)
            .load(&format!("const u64 end = {place} + {inclusive};\n{expected}"))
            .output::<u8>("none")
            .store("none = 0;")
            .define()
            .map_err(|error| DeviceError::Config(error.into()))
    }
}

/// Of the first so many numbers.
fn sum_up_to(end: u64) -> u64 {
    let rest = end % PERIOD;
    (end / PERIOD).wrapping_mul(SUM_OF_PERIOD).wrapping_add(rest * rest.saturating_sub(1) / 2)
}

fn interval(from: u64, end: u64) -> [u8; 8] {
    let [first, last] = if from == end { [1, 0] } else { [from as u32, end.wrapping_sub(1) as u32] };
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_le_bytes());
    bytes[4..].copy_from_slice(&last.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_the_index_is_what_a_loop_gives() {
        let sum = Work::new(Operator::Sum, ElementType::U8, ElementType::U16, Mode::Inclusive).expect("it is known");
        let mut running = 0_u16;
        let (all, late, later) = (Part::Shard(0..1000), Part::Shard(300..1000), Part::Shard(301..1000));
        let results: Vec<u8> = sum
            .elements(&all, 1000)
            .into_iter()
            .flat_map(|x| {
                running = running.wrapping_add(u16::from(x));
                running.to_le_bytes()
            })
            .collect();
        assert_eq!(sum.wrong(Check { part: &all, from: 0 }, &results), 0);
        assert_eq!(sum.wrong(Check { part: &late, from: 0 }, &results[600..]), 0);
        // Two of the elements are 0.
        assert_eq!(sum.wrong(Check { part: &later, from: 0 }, &results[600..]), 698);
        assert_eq!(sum.carry(300), results[598..600]);
        // The second of two ranks has every other hundred.
        let dealt = Part::Dealt(Deal::new(1000, 100).expect("chunks have elements").hand(1, 2));
        let odd: Vec<u8> = results.chunks(200).skip(1).step_by(2).flatten().copied().collect();
        assert_eq!((dealt.elements(), sum.wrong(Check { part: &dealt, from: 0 }, &odd)), (500, 0));
        assert_eq!(sum.elements(&dealt, 101)[99..], [199, 44]);
        assert_eq!((sum.period(&dealt), sum.period(&all)), (None, Some(256)));
        let joins =
            Work::new(Operator::Intervals, ElementType::IndexInterval, ElementType::IndexInterval, Mode::Exclusive);
        let joins = joins.expect("it is known");
        assert_eq!(joins.carry(0), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(joins.carry(5), [0, 0, 0, 0, 4, 0, 0, 0]);
        assert!(Work::new(Operator::Max, ElementType::U8, ElementType::U8, Mode::Inclusive).is_err());
    }
}
