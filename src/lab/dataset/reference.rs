//! What a scan must store.
//!
//! A reference is computed once, by one pass in the order of the scan, in the definition of `crate::element::monoid`.
//! Integers and the monoids of the tests have one right answer. A sum of floats has as many as there are
//! ways to set the parentheses, so its reference is a more precise sum (f64 for f32, a double-double for
//! f64) together with the sum of |x| that the error bound of `crate::lab::verify` grows with. A product of floats
//! has one right answer where it is exact in every order, and no other array is taken.

use super::ranks::NOWHERE;
use crate::element::monoid::{InstanceVisitor, Monoid, visit_instance};
use crate::element::{ElementType, Instance};
use crate::lab::arrays::FILLING;
use crate::lab::order::Order;
use crate::lab::workers;
use crate::lab::workload::Workload;
use std::borrow::Cow;
use std::ops::Range;

/// What an inclusive scan must be.
#[derive(Debug, Clone)]
pub enum Reference {
    /// Bit for bit (any NaN for a NaN).
    Exact(Vec<u8>),
    /// Within `2·u·depth·magnitude[i]` of `high[i] + low[i]`, u the unit round-off of the element.
    Rounded {
        /// The prefix sums, rounded to f64; of a recurrence its values.
        high: Vec<f64>,
        /// What the rounding left; empty for f32, whose reference is f64.
        low: Vec<f64>,
        /// Prefix sums of |x|; of a recurrence its values of |a| and |b|. Empty where nothing is rounded in any order
        /// ([`Dataset::whole_numbers`](super::Dataset::whole_numbers)): the bound is 0 then.
        magnitude: Vec<f64>,
    },
}

/// Why an operator is not associative on an array, if so.
pub(super) fn ambiguity(workload: Workload, input: &[u8]) -> Option<&'static str> {
    let state = workload.state();
    let element_bytes = workload.input().bytes();
    let n = input.len() / element_bytes;
    let matrices = workload.matrices() as usize;
    let rows = n / matrices / workload.side_by_side(n as u64) as usize;
    // In either direction neighbours are put together, so that what holds of one holds of the other.
    let neighbours = transposed(input, (matrices, rows), element_bytes);
    state.ambiguity(&converted(&neighbours, workload.input(), state.element()))
}

impl Reference {
    /// The inclusive scan of `input`, a whole number of elements, from front to back.
    pub fn new(instance: Instance, input: &[u8]) -> Self {
        let n = (input.len() / instance.element().bytes()) as u64;
        Self::of(instance.into(), [input, &[]], Order::new(instance.into(), n, &[]), false)
    }

    /// The inclusive scan of the input and, of a recurrence, the addends, which begins anew wherever the order says; or what is
    /// copied, one array behind the other, or counted.
    pub(super) fn of(workload: Workload, arrays: [&[u8]; 2], order: Order<'_>, is_whole: bool) -> Self {
        // Columns are scanned as the rows of the transposed matrix: each core has its own, and all of each is one behind the
        // other in memory.
        let (matrices, columns) = (order.matrices(), order.side_by_side());
        let rows = order.elements().checked_div(matrices * columns).unwrap_or(0);
        let arrays = arrays.map(|array| transposed(array, (matrices, rows), workload.input().bytes()));
        let arrays = arrays.each_ref().map(|array| &**array);
        let order = order.one_behind_the_other();
        let scanned = if workload.has_run_lengths() {
            let (begins, lengths) = runs_of(arrays[0], workload.input());
            let lengths = converted(bytemuck::cast_slice(&lengths), ElementType::U64, workload.element());
            let first = if workload.stores_longer_runs() { bytemuck::cast_slice(&begins) } else { arrays[0] };
            Self::Exact([first, &lengths].concat())
        } else if workload.stores_places() {
            Self::Exact(bytemuck::cast_slice(&(0..order.elements() as u64).collect::<Vec<_>>()).to_vec())
        } else if workload.is_copied() {
            Self::Exact(arrays.concat())
        } else if let Some((bins, is_cumulated)) = workload.bins() {
            // Of no elements there is no room for counts.
            let mut counts = if order.elements() > 0 { bins.counted(workload.input(), arrays[0]) } else { Vec::new() };
            if is_cumulated {
                (1..counts.len()).for_each(|bin| counts[bin] += counts[bin - 1]);
            }
            Self::Exact(bytemuck::cast_slice(&counts).to_vec())
        } else if workload.has_addends() {
            Self::of_recurrence(workload, arrays, order, is_whole)
        } else {
            Self::of_operator(workload, arrays[0], order, is_whole)
        };
        let numbers = |values: Vec<f64>| match transposed(bytemuck::cast_slice(&values), (matrices, columns), 8) {
            Cow::Borrowed(_) => values,
            Cow::Owned(turned) => turned.as_chunks().0.iter().map(|&bytes| f64::from_ne_bytes(bytes)).collect(),
        };
        match scanned {
            Self::Exact(prefixes) => {
                Self::Exact(transposed(prefixes, (matrices, columns), workload.element().bytes()).into_owned())
            }
            Self::Rounded { high, low, magnitude } => {
                Self::Rounded { high: numbers(high), low: numbers(low), magnitude: numbers(magnitude) }
            }
        }
    }

    /// What is at these places, of so many bytes each.
    pub(super) fn at(self, places: &[u64], bytes: usize) -> Self {
        let numbers = |values: Vec<f64>| match values.is_empty() {
            true => values,
            false => places.iter().map(|&place| values[place as usize]).collect(),
        };
        match self {
            Self::Exact(all) => {
                let before = [FILLING; 16];
                let mut found = Vec::with_capacity(places.len() * bytes);
                for &place in places {
                    let element =
                        if place == NOWHERE { &before[..bytes] } else { &all[place as usize * bytes..][..bytes] };
                    found.extend_from_slice(element);
                }
                Self::Exact(found)
            }
            Self::Rounded { high, low, magnitude } => {
                Self::Rounded { high: numbers(high), low: numbers(low), magnitude: numbers(magnitude) }
            }
        }
    }

    fn of_operator(workload: Workload, input: &[u8], order: Order<'_>, is_whole: bool) -> Self {
        let state = workload.state();
        let (from, element) = (workload.input(), state.element());
        if state.is_rounded() {
            let read = reader(from);
            let value = |place: usize| read(&input[place * from.bytes()..(place + 1) * from.bytes()]);
            let term = |place| Term { factor: 1.0, addend: value(place) };
            return Self::rounded(element, order, is_whole, term);
        }
        let states = converted(input, from, element);
        let prefixes = visit_instance(state, ExactScan { input: &states, order });
        if element == workload.element() {
            return Self::Exact(prefixes);
        }
        Self::Exact(converted(&prefixes, element, workload.element()).into_owned())
    }

    /// h = a · h + b of `[a, b]`, from 0 wherever the order says that it begins.
    fn of_recurrence(workload: Workload, arrays: [&[u8]; 2], order: Order<'_>, is_whole: bool) -> Self {
        let element = workload.element();
        let bytes = element.bytes();
        if element.is_float() {
            let read = reader(element);
            let [factor, addend] =
                arrays.map(|array| move |place: usize| read(&array[place * bytes..(place + 1) * bytes]));
            let term = |place| Term { factor: factor(place), addend: addend(place) };
            return Self::rounded(element, order, is_whole, term);
        }
        // Modulo 2^64, of which the lowest bits are those of any shorter integer.
        let read = |array: &[u8], place: usize| {
            let mut word = [0; 8];
            word[..bytes].copy_from_slice(&array[place * bytes..(place + 1) * bytes]);
            u64::from_le_bytes(word)
        };
        let mut values = vec![0; arrays[0].len()];
        workers::each(parts_of(order, [(&mut values[..], bytes)]), |(part, [values])| {
            let first = part.start;
            for place in order.places_in(part) {
                let before = order.before(place).map(|at| read(values, at - first));
                let carried = before.map_or(0, |before| read(arrays[0], place).wrapping_mul(before));
                let value = carried.wrapping_add(read(arrays[1], place));
                let at = (place - first) * bytes;
                values[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
            }
        });
        Self::Exact(values)
    }

    /// Sums of floats: in f64 if they are f32, and in two f64 if they are f64; of whole numbers in one.
    fn rounded(element: ElementType, order: Order<'_>, is_whole: bool, term: impl Fn(usize) -> Term + Sync) -> Self {
        let n = order.elements();
        let is_double = element.bytes() == 8 && !is_whole;
        let array = |is_there: bool| vec![0.0; if is_there { n } else { 0 }];
        let (mut high, mut low, mut magnitude) = (array(true), array(is_double), array(!is_whole));
        let arrays = [(&mut high, true), (&mut low, is_double), (&mut magnitude, !is_whole)];
        let arrays = arrays.map(|(array, is_there)| (&mut array[..], usize::from(is_there)));
        workers::each(parts_of(order, arrays), |(part, [high, low, magnitude])| {
            let first = part.start;
            for place in order.places_in(part) {
                let mut sum =
                    order.before(place).map(|at| at - first).map_or_else(PreciseSum::default, |at| PreciseSum {
                        high: high[at],
                        low: if is_double { low[at] } else { 0.0 },
                        magnitude: if is_whole { 0.0 } else { magnitude[at] },
                    });
                sum.take(term(place), is_double);
                let at = place - first;
                high[at] = sum.high;
                if is_double {
                    low[at] = sum.low;
                }
                if !is_whole {
                    magnitude[at] = sum.magnitude;
                }
            }
        });
        Self::Rounded { high, low, magnitude }
    }
}

/// A range of places, and what of each array is theirs.
type PartOf<'a, T, const ARRAYS: usize> = (Range<usize>, [&'a mut [T]; ARRAYS]);

/// Parts that are scanned without a look at each other, each with its own part of these arrays: of so many values an element.
fn parts_of<'a, T, const ARRAYS: usize>(
    order: Order<'_>,
    arrays: [(&'a mut [T], usize); ARRAYS],
) -> Vec<PartOf<'a, T, ARRAYS>> {
    let mut rest = arrays;
    let own = |part: Range<usize>| {
        let arrays = rest.each_mut().map(|(rest, values)| {
            let (own, others) = std::mem::take(rest).split_at_mut(part.len() * *values);
            *rest = others;
            own
        });
        (part, arrays)
    };
    order.parts(workers::part_elements(order.elements())).into_iter().map(own).collect()
}

/// What comes next: factor · (all before it) + addend. Factors are powers of two, so that products are exact.
struct Term {
    factor: f64,
    addend: f64,
}

/// A sum with what its rounding left, and the sum of |x|.
#[derive(Default)]
struct PreciseSum {
    high: f64,
    low: f64,
    magnitude: f64,
}

impl PreciseSum {
    fn take(&mut self, Term { factor, addend }: Term, is_double: bool) {
        let Self { high, low, magnitude } = self;
        *magnitude = factor.abs() * *magnitude + addend.abs();
        if !is_double {
            *high = factor * *high + addend;
            return;
        }
        let (rounded, error) = two_sum(factor * *high, addend);
        if rounded.is_finite() {
            (*high, *low) = two_sum(rounded, factor * *low + error);
        } else {
            // Infinity minus infinity would turn an infinite sum into NaN.
            (*high, *low) = (rounded, 0.0);
        }
    }
}

/// Reads an element as f64: exactly, but for integers of more than 53 bits.
pub(super) fn reader(element: ElementType) -> impl Fn(&[u8]) -> f64 + Copy {
    move |bytes| match element.float() {
        Some(float) => (float.read)(bytes),
        None => element.integer(bytes) as f64,
    }
}

/// The array in another type, as the kernels convert it: integers wrap. Elements that are no numbers stay what they are.
pub(crate) fn converted(array: &[u8], from: ElementType, to: ElementType) -> Cow<'_, [u8]> {
    if from == to {
        return Cow::Borrowed(array);
    }
    let n = array.len() / from.bytes();
    let mut all = vec![0; n * to.bytes()];
    let read = reader(from);
    let elements = workers::part_elements(n);
    let parts = array.chunks(elements * from.bytes()).zip(all.chunks_mut(elements * to.bytes()));
    workers::each(parts.collect(), |(array, all)| {
        for (found, made) in array.chunks_exact(from.bytes()).zip(all.chunks_exact_mut(to.bytes())) {
            match to.float() {
                Some(float) => (float.write)(read(found), made),
                None => made.copy_from_slice(&from.integer(found).to_le_bytes()[..to.bytes()]),
            }
        }
    });
    Cow::Owned(all)
}

struct ExactScan<'a> {
    input: &'a [u8],
    order: Order<'a>,
}

impl InstanceVisitor for ExactScan<'_> {
    type Output = Vec<u8>;
    fn visit<M: Monoid>(self) -> Vec<u8> {
        let Self { input, order } = self;
        let bytes = size_of::<M::Value>();
        let mut prefixes = vec![0; input.len()];
        let element = |place: usize| place * bytes..(place + 1) * bytes;
        workers::each(parts_of(order, [(&mut prefixes[..], bytes)]), |(part, [prefixes])| {
            let first = part.start;
            for place in order.places_in(part) {
                let before = order.before(place).map(|at| element(at - first));
                let before = before.map_or(M::IDENTITY, |at| bytemuck::pod_read_unaligned(&prefixes[at]));
                let prefix = M::combine(before, bytemuck::pod_read_unaligned(&input[element(place)]));
                prefixes[element(place - first)].copy_from_slice(bytemuck::bytes_of(&prefix));
            }
        });
        prefixes
    }
}

/// Knuth's two-sum: `left + right` rounded, and exactly what the rounding lost.
pub(crate) fn two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let right_share = sum - left;
    let left_share = sum - right_share;
    (sum, (left - left_share) + (right - right_share))
}

/// Where the run of equal neighbours that each element is of begins, and how many there are of it.
fn runs_of(array: &[u8], element: ElementType) -> (Vec<u64>, Vec<u64>) {
    let elements: Vec<&[u8]> = array.chunks_exact(element.bytes()).collect();
    let (mut begins, mut lengths) = (Vec::with_capacity(elements.len()), Vec::with_capacity(elements.len()));
    for run in elements.chunk_by(|left, right| left == right) {
        begins.resize(begins.len() + run.len(), begins.len() as u64);
        lengths.resize(lengths.len() + run.len(), run.len() as u64);
    }
    (begins, lengths)
}

/// The columns of each of so many matrices, of so many rows each, which become rows.
pub(super) fn transposed<'a>(
    array: impl Into<Cow<'a, [u8]>>,
    (matrices, rows): (usize, usize),
    element_bytes: usize,
) -> Cow<'a, [u8]> {
    let array = array.into();
    let columns = (array.len() / element_bytes).checked_div(matrices * rows).unwrap_or(0);
    if rows <= 1 || columns <= 1 {
        return array;
    }
    let transpose = match element_bytes {
        1 => transpose::<1>,
        2 => transpose::<2>,
        4 => transpose::<4>,
        8 => transpose::<8>,
        _ => transpose::<16>,
    };
    let mut all = vec![0; array.len()];
    let matrix_bytes = rows * columns * element_bytes;
    for (from, to) in array.chunks_exact(matrix_bytes).zip(all.chunks_exact_mut(matrix_bytes)) {
        transpose(from, rows, to);
    }
    Cow::Owned(all)
}

/// The same of elements of so many bytes, into another array. Whole columns are dealt to the cores.
fn transpose<const BYTES: usize>(from: &[u8], rows: usize, to: &mut [u8]) {
    /// Of a square that both arrays keep in a cache.
    const SIDE: usize = 32;
    let (from, _) = from.as_chunks::<BYTES>();
    let columns = from.len() / rows;
    let to = &mut to.as_chunks_mut::<BYTES>().0[..rows * columns];
    let dealt = workers::part_elements(to.len()).div_ceil(rows);
    workers::each(to.chunks_mut(dealt * rows).enumerate().collect(), |(index, made)| {
        let first = index * dealt;
        let count = made.len() / rows;
        for start in (0..count).step_by(SIDE) {
            for row_start in (0..rows).step_by(SIDE) {
                for column in start..(start + SIDE).min(count) {
                    for row in row_start..(row_start + SIDE).min(rows) {
                        made[column * rows + row] = from[row * columns + first + column];
                    }
                }
            }
        }
    });
}
