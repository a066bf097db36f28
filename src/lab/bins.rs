//! Into which bins the laboratory counts, and how often it must be counted in each.

use crate::element::{Definition, ElementType, NoSuchProblem};
use rayon::prelude::*;

/// The bins of a histogram. All but those of byte values leave out both ends of what is drawn, which nothing counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bins {
    /// One for each value of a byte, from the lowest.
    ByteValues,
    /// Of the same width.
    Even,
    /// Between levels that are further and further apart.
    Between,
}

/// How many even bins there are: no power of two, and more than a warp has lanes.
const EVEN: u32 = 100;
/// Where these begin and end, in parts of what is drawn.
const ENDS: [i32; 2] = [13, 51];
/// Where the others begin and end, likewise.
const LEVELS: [i32; 7] = [3, 4, 6, 10, 18, 34, 61];
/// So many of these parts are all that is drawn.
const PARTS: i32 = 64;
/// Elements that a thread of the host counts at a time.
const STRETCH: usize = 1 << 20;

impl Bins {
    /// How many there are.
    pub const fn count(self) -> usize {
        match self {
            Self::ByteValues => 256,
            Self::Even => EVEN as usize,
            Self::Between => LEVELS.len() - 1,
        }
    }

    /// What counts elements of the type in numbers of 4 bytes.
    ///
    /// # Errors
    /// When it has no such bins.
    pub fn definition(self, element: ElementType) -> Result<Definition, NoSuchProblem> {
        match self {
            Self::ByteValues => Definition::byte_histogram_of::<u32>(element),
            Self::Even => Definition::even_histogram_of::<u32>(element, EVEN, &levels(element, &ENDS)),
            Self::Between => Definition::histogram_between_of::<u32>(element, &levels(element, &LEVELS)),
        }
    }

    /// The types that have them, in words.
    pub const fn types(self) -> &'static str {
        match self {
            Self::ByteValues => "u8 or i8",
            Self::Even => "a type of numbers of at most 4 bytes, or f64",
            Self::Between => "a type of numbers",
        }
    }

    /// How many elements fall into each, in the order of the bins.
    pub fn counted(self, element: ElementType, elements: &[u8]) -> Vec<u32> {
        let levels = levels(element, if self == Self::Between { &LEVELS } else { &ENDS });
        let levels: Vec<&[u8]> = levels.chunks_exact(element.bytes()).collect();
        let bin = |number: &[u8]| match self {
            Self::ByteValues if element.is_signed() => Some(usize::from(number[0] ^ 0x80)),
            Self::ByteValues => Some(usize::from(number[0])),
            Self::Even => even_bin(element, number, [levels[0], levels[1]]),
            // One after the other, as a search would not.
            Self::Between => levels.iter().filter(|level| is_at_least(element, number, level)).count().checked_sub(1),
        };
        let in_stretch = |stretch: &[u8]| {
            let mut counts = vec![0; self.count()];
            for number in stretch.chunks_exact(element.bytes()) {
                if let Some(count) = bin(number).and_then(|bin| counts.get_mut(bin)) {
                    *count += 1;
                }
            }
            counts
        };
        let sums = |counts: Vec<u32>, others: Vec<u32>| -> Vec<u32> {
            counts.iter().zip(others).map(|(count, other)| count + other).collect()
        };
        elements.par_chunks(STRETCH * element.bytes()).map(in_stretch).reduce(|| vec![0; self.count()], sums)
    }
}

fn is_at_least(element: ElementType, number: &[u8], level: &[u8]) -> bool {
    match element.float() {
        Some(float) => (float.read)(number) >= (float.read)(level),
        None => element.integer(number) >= element.integer(level),
    }
}

/// As [`Definition::even_histogram`] says it: exactly, or each step rounded in the type that floats are computed in.
fn even_bin(element: ElementType, number: &[u8], [lower, upper]: [&[u8]; 2]) -> Option<usize> {
    if !is_at_least(element, number, lower) || is_at_least(element, number, upper) {
        return None;
    }
    let Some(float) = element.float() else {
        let [number, lower, upper] = [number, lower, upper].map(|bytes| element.integer(bytes));
        return Some(((number - lower) * i128::from(EVEN) / (upper - lower)) as usize);
    };
    let [number, lower, upper] = [number, lower, upper].map(float.read);
    let bin = if element == ElementType::F64 {
        (number - lower) / (upper - lower) * f64::from(EVEN)
    } else {
        let [number, lower, upper] = [number, lower, upper].map(|number| number as f32);
        f64::from((number - lower) / (upper - lower) * EVEN as f32)
    };
    Some((bin as usize).min(EVEN as usize - 1))
}

/// Levels in parts of the range of integers, or of that of the floats that a sum is drawn of: from -0.5 to 1.5. Each is exact in
/// every type.
fn levels(element: ElementType, parts: &[i32]) -> Vec<u8> {
    let bytes = element.bytes();
    let mut levels = vec![0; parts.len() * bytes];
    for (&part, level) in parts.iter().zip(levels.chunks_exact_mut(bytes)) {
        match element.float() {
            Some(float) => (float.write)(f64::from(2 * part) / f64::from(PARTS) - 0.5, level),
            None => {
                let range = 1_i128 << (8 * bytes);
                let lowest = if element.is_signed() { -range / 2 } else { 0 };
                let number = lowest + range / i128::from(PARTS) * i128::from(part);
                level.copy_from_slice(&number.to_le_bytes()[..bytes]);
            }
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_where_they_are_said_to_be() {
        assert_eq!(levels(ElementType::U8, &[0, 13, 63]), [0, 52, 252]);
        assert_eq!(levels(ElementType::I8, &[0, 32, 63]), [0x80, 0, 124]);
        let halves: Vec<f32> = [-0.5_f32, 0.0, 1.5].to_vec();
        assert_eq!(levels(ElementType::F32, &[0, 16, 64]), bytemuck::cast_slice::<_, u8>(&halves));
    }

    #[test]
    fn elements_at_the_ends_of_bins_are_in_the_bin_that_begins_there() {
        let counts = |bins: Bins, numbers: &[u8]| bins.counted(ElementType::U8, numbers);
        assert_eq!(counts(Bins::Between, &[0, 11, 12, 15, 16, 243, 244, 255]), [2, 1, 0, 0, 0, 1]);
        let even = counts(Bins::Even, &[51, 52, 53, 54, 203, 204]);
        assert_eq!((even[0], even[1], even[98], even[99], even.iter().sum::<u32>()), (2, 1, 0, 1, 4));
        let signed = Bins::ByteValues.counted(ElementType::I8, &[0x80, 0xff, 0, 0x7f]);
        assert_eq!([0, 127, 128, 255].map(|value| signed[value]), [1; 4]);
    }

    #[test]
    fn types_without_such_bins_are_refused() {
        assert!(Bins::ByteValues.definition(ElementType::U16).is_err());
        assert!(Bins::Even.definition(ElementType::I64).is_err());
        for &element in ElementType::NUMBERS.iter().chain(ElementType::HALVES) {
            assert!(Bins::Between.definition(element).is_ok(), "{element}");
        }
    }
}
