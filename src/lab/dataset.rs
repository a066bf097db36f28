//! Inputs and their sequential reference.
//!
//! A reference is computed once, by one pass in the order of the scan, in the definition of `crate::element::monoid`.
//! Integers and the monoids of the tests have one right answer. A sum of floats has as many as there are
//! ways to set the parentheses, so its reference is a more precise sum (f64 for f32, a double-double for
//! f64) together with the sum of |x| that the error bound of `crate::lab::verify` grows with. A product of floats
//! has one right answer where it is exact in every order, and no other array is taken.

use crate::element::monoid::{InstanceVisitor, Monoid, visit_instance};
use crate::element::{Distribution, ElementType, Instance, Operator};
use crate::lab::arrays::FILLING;
use crate::lab::order::Order;
use crate::lab::workers;
use crate::lab::workload::{Bits, Kept, ProblemKind, Ranks, Share, Telling, Workload};
use crate::strategy::Mode;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Input arrays and what their inclusive scan must be. Little-endian bytes, as on every supported device.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// What is scanned.
    pub workload: Workload,
    /// Element type and operator of what is stored: [`Workload::instance`].
    pub instance: Instance,
    /// Elements.
    pub n: u64,
    /// `n` elements as bytes; of a recurrence the factors.
    pub input: Vec<u8>,
    /// The same with what is between its rows, where something is; else empty.
    spread: Vec<u8>,
    /// The addends of a recurrence, or what goes with the keys of a sort; else empty.
    pub second: Vec<u8>,
    /// Keys, head flags or offsets, where an array tells segments; else empty.
    pub telling: Vec<u8>,
    /// By offsets, a byte of each element, other than 0 where a segment begins; else empty.
    borders: Vec<u8>,
    /// The inclusive scan, at the places of the elements; of what is stored elsewhere, at those of the outputs, which lie one
    /// behind the other.
    pub reference: Reference,
    /// Where the input comes from: "random, seed 42" or a file.
    pub source: String,
}

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
        /// ([`Dataset::whole_numbers`]): the bound is 0 then.
        magnitude: Vec<f64>,
    },
}

/// An array that has no scan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoScan {
    /// Bytes that are no array of the element.
    #[error(
        "{bytes} bytes are no whole number of {element} elements of {element_bytes} bytes each; the data is cut off or of another type"
    )]
    PartialElement {
        /// Bytes given.
        bytes: u64,
        /// Element type asked for.
        element: ElementType,
        /// Its size.
        element_bytes: usize,
    },
    /// A problem that scans several arrays, or one that is drawn.
    #[error("'{0}' takes several arrays, or one that has to be drawn; leave --input out, and they are")]
    SeveralArrays(ProblemKind),
    /// Rows that do not fill the array.
    #[error("{0}")]
    Misfit(String),
    /// Strategies put an array together in orders of their own, and would not come to one result.
    #[error("the operator is not associative on this array: {0}")]
    NotAssociative(&'static str),
}

/// An array that does not fit into this machine's memory beside its reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{n} elements of {workload} take {needed_bytes} bytes with their reference, this machine has {available_bytes} free; choose a smaller n"
)]
pub struct NotEnoughMemory {
    /// What was asked for.
    pub workload: Workload,
    /// Elements asked for.
    pub n: u64,
    /// What it would take.
    pub needed_bytes: u64,
    /// What there is.
    pub available_bytes: u64,
}

impl Dataset {
    /// Whether a dataset of `n` elements fits into memory. Where the system does not say how much is free,
    /// nothing is too large.
    ///
    /// # Errors
    /// When it does not.
    pub fn fits(workload: impl Into<Workload>, n: u64) -> Result<(), NotEnoughMemory> {
        let workload = workload.into();
        let bytes = workload.element().bytes() as u64;
        let reference_bytes = match workload.instance().is_rounded() {
            true if bytes < 8 => 16,
            true => 24,
            false => bytes,
        };
        let border_bytes = u64::from(workload.telling() == Some(Telling::Offsets));
        // What is stored by rank has a reference at the places of the elements first, and the ranks beside it, those of a sort
        // with its keys.
        let rank_bytes = match workload.ranks() {
            None => 0,
            Some(ranks) => {
                let key_bytes = if matches!(ranks, Ranks::Sorted(_)) { 16 } else { 0 };
                key_bytes + workload.outputs(n).count() as u64 * (8 + reference_bytes)
            }
        };
        let reference = workload.output_elements(n).saturating_mul(reference_bytes);
        // The rows without what is between them.
        let row_bytes = workload.row_stride().map_or(0, |_| workload.input().bytes() as u64);
        let beside = n.saturating_mul(border_bytes + rank_bytes + row_bytes).saturating_add(reference);
        // Columns are transposed, and what comes of them is turned back.
        let copies = if workload.side_by_side(n) > 1 { 2 } else { 1 };
        let once = workload.array_bytes(n).saturating_sub(workload.output_bytes(n)).saturating_add(beside);
        let needed_bytes = once.saturating_mul(copies);
        let available_bytes = available_memory_bytes().unwrap_or(u64::MAX);
        if needed_bytes <= available_bytes {
            Ok(())
        } else {
            Err(NotEnoughMemory { workload, n, needed_bytes, available_bytes })
        }
    }

    /// `n` elements drawn from a generator seeded with `seed`: the same on every machine.
    ///
    /// The distribution serves to find faults. Sums are of full-range integers, or of floats from -0.5 to
    /// 1.5, whose prefix grows so that a lost tile stands out against the rounding bound. Products are of odd integers,
    /// or of powers of two that leave the prefix in range. Minima and
    /// maxima keep falling and rising over the array, and bits of `and` and `or` go one at a time, because
    /// the plain random array reaches its final prefix within a few elements and hides any later fault.
    ///
    /// Of a recurrence the factors are drawn as those of a product, so that what is carried on neither dies away nor
    /// overflows, and the addends as those of a sum. Runs have from 1 to twice their average of elements, less one; keys are
    /// few, so that a later run has the key of an earlier one. Segments between offsets are mostly shorter than their average,
    /// a few much longer, and more than one in eight is empty. Where values say what is kept, elements below the middle are as
    /// far apart as runs begin, and runs of equal elements are those of keys.
    pub fn random(workload: impl Into<Workload>, n: u64, seed: u64) -> Self {
        Self::drawn(workload.into(), n, seed, false)
    }

    /// The same, but that what rounds, sums of floats and recurrences of them, is of whole numbers that are exact in every
    /// order and in every type of floats: each result is right to the bit or wrong, of however many elements. Sums of
    /// integers that are converted into floats are as in [`Self::random`].
    ///
    /// An element is the difference between a whole number below 128 and the one drawn before it, so that neighbours add up to
    /// such a difference, too. In a recurrence all is measured in powers of two that change from element to element.
    pub fn whole_numbers(workload: impl Into<Workload>, n: u64, seed: u64) -> Self {
        let workload = workload.into();
        let is_whole = workload.state().is_rounded() && workload.input().is_float();
        Self::drawn(workload, n, seed, is_whole)
    }

    fn drawn(workload: Workload, n: u64, seed: u64, is_whole: bool) -> Self {
        let array_of = |element: ElementType, fill: &dyn Fn(&mut [u8])| {
            let bytes = usize::try_from(n).ok().and_then(|n| n.checked_mul(element.bytes()));
            let mut array = vec![0; bytes.expect("an array fits the address space")];
            fill(&mut array);
            if workload.is_reversed() {
                reverse(&mut array, element.bytes());
            }
            // Drawn are the columns one behind the other, because what is drawn goes by what is combined.
            let matrices = (workload.matrices() as usize, workload.side_by_side(n) as usize);
            transposed(array, matrices, element.bytes()).into_owned()
        };
        let element = workload.input();
        let is_in_runs = workload.segment_elements().is_some();
        let drawn = |operator: Operator, seed: u64| {
            array_of(element, &|array| fill(element, operator, is_in_runs, seed, array))
        };
        let whole = |part: Part| array_of(element, &|array| fill_whole(element, part, seed, array));
        let of_own = |seed| drawn(workload.operator().unwrap_or(Operator::Sum), seed);
        let (mut input, second) = match (workload.has_addends(), is_whole) {
            // A seed of its own, so that one is not the other's image.
            (false, false) if workload.has_second_input() => (of_own(seed), of_own(!seed)),
            (false, false) => (of_own(seed), Vec::new()),
            (false, true) => (whole(Part::Summand), Vec::new()),
            (true, false) => (drawn(Operator::Product, seed), drawn(Operator::Sum, !seed)),
            (true, true) => (whole(Part::Factor), whole(Part::Addend)),
        };
        // Of its own, so that segments do not begin where values are special.
        let random = || Pcg64Mcg::seed_from_u64(seed.rotate_left(32) ^ 0x5275_6e73);
        let telling = match (workload.telling(), workload.segment_elements(), workload.inputs(n).next()) {
            (Some(Telling::Offsets), _, Some(offsets)) => draw_offsets(offsets, n, random()),
            (Some(Telling::Places), ..) => draw_places(n, random()),
            (Some(telling), Some(run), _) => {
                runs(telling == Telling::Keys, workload.share(), n as usize, run, random())
            }
            _ => Vec::new(),
        };
        if let (Some(Ranks::Kept(kept)), Some(run)) = (workload.ranks(), workload.segment_elements()) {
            let runs = |are_keys| runs(are_keys, workload.share(), n as usize, run, random());
            match kept {
                Kept::BelowMiddle => put_below_middle(element, &runs(false), &mut input),
                Kept::NonZero => put_zeros(element, &runs(false), &mut input),
                Kept::RunBegins | Kept::LongerRunEnds => {
                    input = converted(&runs(true), ElementType::U32, element).into_owned()
                }
                Kept::Flagged | Kept::RunEnds => {}
            }
        }
        input.truncate(workload.own_elements(n) as usize * element.bytes());
        let numbers = if is_whole { "random whole numbers" } else { "random" };
        let source = format!("{numbers}, seed {seed}");
        Self::with_reference_of(workload, n, [input, second, telling], source, is_whole)
    }

    /// An array that is there already; `source` says where it comes from.
    ///
    /// # Errors
    /// When `input` is no whole number of elements or rows, the problem scans more arrays, or the operator is not
    /// associative on it.
    pub fn from_bytes(workload: impl Into<Workload>, input: Vec<u8>, source: String) -> Result<Self, NoScan> {
        let workload = workload.into();
        let (element, element_bytes) = (workload.input(), workload.input().bytes());
        if !workload.kind().has_one_input() {
            return Err(NoScan::SeveralArrays(workload.kind()));
        }
        if !input.len().is_multiple_of(element_bytes) {
            return Err(NoScan::PartialElement { bytes: input.len() as u64, element, element_bytes });
        }
        if let Some(misfit) = workload.misfit((input.len() / element_bytes) as u64) {
            return Err(NoScan::Misfit(misfit));
        }
        match ambiguity(workload, &input) {
            Some(why) => Err(NoScan::NotAssociative(why)),
            None => Ok(Self::with_reference(workload, input, Vec::new(), Vec::new(), source)),
        }
    }

    /// The same with what its scan in place leaves: none where that is not known to the bit, or has no scan itself.
    #[cfg(feature = "cpu")]
    pub(crate) fn scanned_in_place(&self, mode: Mode) -> Option<Self> {
        let input = self.expected_output(mode)?;
        let (second, telling) = (self.second.clone(), self.telling.clone());
        let has_scan = self.workload.input() == self.workload.element() && ambiguity(self.workload, &input).is_none();
        has_scan.then(|| Self::with_reference(self.workload, input, second, telling, "the scan before".to_owned()))
    }

    /// The flat scan of an array of which every order of putting it together gives one result.
    #[cfg(all(feature = "cpu", feature = "cuda"))]
    pub(crate) fn flat(instance: Instance, input: Vec<u8>, source: String) -> Self {
        Self::with_reference(instance.into(), input, Vec::new(), Vec::new(), source)
    }

    fn with_reference(workload: Workload, input: Vec<u8>, second: Vec<u8>, telling: Vec<u8>, source: String) -> Self {
        let n = (input.len() / workload.input().bytes()) as u64;
        Self::with_reference_of(workload, n, [input, second, telling], source, false)
    }

    /// `is_whole` says that nothing is rounded in any order.
    fn with_reference_of(
        workload: Workload,
        n: u64,
        [input, second, telling]: [Vec<u8>; 3],
        source: String,
        is_whole: bool,
    ) -> Self {
        // Of what tells something, if anything does.
        let told_type = workload.inputs(n).next().map_or(workload.input(), |(element, _)| element);
        let borders = match workload.telling() {
            Some(Telling::Offsets) => borders(&telling, told_type, n as usize),
            _ => Vec::new(),
        };
        let order = order_of(workload, n, &telling, &borders);
        let reference = Reference::of(workload, [&input, &second], order, is_whole);
        let places = match workload.ranks() {
            None => None,
            Some(Ranks::Kept(kept)) => Some(ranked(workload, kept, order, [&input, &telling])),
            Some(Ranks::Sorted(bits)) => Some(sorted(workload, bits, &input)),
            Some(Ranks::Told(told)) => Some(sources(told, told_type, &telling)),
        };
        let reference = match places {
            Some(places) => reference.at(&places, workload.element().bytes()),
            None => reference,
        };
        let spread = workload.row_stride().map_or_else(Vec::new, |stride| spread(workload, &input, stride));
        Self { workload, instance: workload.instance(), n, input, spread, second, telling, borders, reference, source }
    }

    /// How many elements are stored, from the first place of the output on: all, unless the problem drops others.
    pub fn stored(&self) -> u64 {
        match &self.reference {
            Reference::Exact(prefixes) => (prefixes.len() / self.workload.element().bytes()) as u64,
            Reference::Rounded { high, .. } => high.len() as u64,
        }
    }

    /// In which order its elements are scanned, and where anew.
    pub fn order(&self) -> Order<'_> {
        order_of(self.workload, self.n, &self.telling, &self.borders)
    }

    /// The number that is scanned at a place of the input.
    pub(crate) fn value(&self, place: usize) -> f64 {
        let bytes = self.workload.input().bytes();
        reader(self.workload.input())(&self.input[place * bytes..(place + 1) * bytes])
    }

    /// The user's first array, as it lies in memory.
    pub fn own_array(&self) -> &[u8] {
        if self.workload.row_stride().is_some() { &self.spread } else { &self.input }
    }

    /// The arrays in the kernels' order, each with its element type: what tells segments, and the user's own.
    pub fn inputs(&self) -> impl Iterator<Item = (ElementType, &[u8])> {
        let arrays = [&self.telling, self.own_array(), &self.second];
        let is_there = [self.workload.telling().is_some(), true, self.workload.has_second_input()];
        let arrays = arrays.into_iter().zip(is_there).filter(|(_, is_there)| *is_there);
        self.workload.inputs(self.n).zip(arrays).map(|((element, _), (array, _))| (element, array))
    }

    /// Element `index` of the right output in `mode`, as bytes; `None` for rounded sums, which have a
    /// bound instead, and behind what is stored.
    pub fn expected_exactly(&self, mode: Mode, index: u64) -> Option<Vec<u8>> {
        let Reference::Exact(prefixes) = &self.reference else { return None };
        let bytes = self.instance.element().bytes();
        if index >= self.stored() {
            return None;
        }
        let Some(at) = self.order().source(mode.lag(), index as usize) else {
            return Some(self.instance.identity_bytes());
        };
        prefixes.get(at * bytes..(at + 1) * bytes).map(<[u8]>::to_vec)
    }

    /// What is stored in `mode` for exact types, `None` for rounded sums. Allocates a whole array; for
    /// tests and small n.
    pub fn expected_output(&self, mode: Mode) -> Option<Vec<u8>> {
        let Reference::Exact(prefixes) = &self.reference else { return None };
        let order = self.order();
        // What is not stored at its place, in inclusive mode alone, is there as it is stored.
        if order.is_flat() || !self.workload.stores_in_place() {
            let mut shifted = self.instance.identity_bytes().repeat(mode.lag() as usize);
            shifted.extend_from_slice(prefixes);
            shifted.truncate(prefixes.len());
            return Some(shifted);
        }
        (0..self.n).map(|index| self.expected_exactly(mode, index)).collect::<Option<Vec<_>>>().map(|all| all.concat())
    }
}

/// Why an operator is not associative on an array, if so.
fn ambiguity(workload: Workload, input: &[u8]) -> Option<&'static str> {
    let state = workload.state();
    let element_bytes = workload.input().bytes();
    let n = input.len() / element_bytes;
    let matrices = workload.matrices() as usize;
    let rows = n / matrices / workload.side_by_side(n as u64) as usize;
    // In either direction neighbours are put together, so that what holds of one holds of the other.
    let neighbours = transposed(input, (matrices, rows), element_bytes);
    state.ambiguity(&converted(&neighbours, workload.input(), state.element()))
}

/// What Linux says could be allocated without swapping.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

impl Reference {
    /// The inclusive scan of `input`, a whole number of elements, from front to back.
    pub fn new(instance: Instance, input: &[u8]) -> Self {
        let n = (input.len() / instance.element().bytes()) as u64;
        Self::of(instance.into(), [input, &[]], Order::new(instance.into(), n, &[]), false)
    }

    /// The inclusive scan of the input and, of a recurrence, the addends, which begins anew wherever the order says; or what is
    /// copied, one array behind the other, or counted.
    fn of(workload: Workload, arrays: [&[u8]; 2], order: Order<'_>, is_whole: bool) -> Self {
        // Columns are scanned as the rows of the transposed matrix: each core has its own, and all of each is one behind the
        // other in memory.
        let (matrices, columns) = order.matrices();
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
    fn at(self, places: &[u64], bytes: usize) -> Self {
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
fn reader(element: ElementType) -> impl Fn(&[u8]) -> f64 + Copy {
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

/// Instead of a place: nothing is stored there, so that the filling stays.
const NOWHERE: u64 = u64::MAX;

/// Knuth's two-sum: `left + right` rounded, and exactly what the rounding lost.
pub(crate) fn two_sum(left: f64, right: f64) -> (f64, f64) {
    let sum = left + right;
    let right_share = sum - left;
    let left_share = sum - right_share;
    (sum, (left - left_share) + (right - right_share))
}

/// An array with these rows, which begin so many elements apart, and filling between them.
fn spread(workload: Workload, rows: &[u8], stride: u64) -> Vec<u8> {
    let element_bytes = workload.input().bytes();
    let row_bytes = workload.line_elements().unwrap_or(1) as usize * element_bytes;
    let between = vec![FILLING; stride as usize * element_bytes - row_bytes];
    rows.chunks(row_bytes.max(1)).flat_map(|row| [row, &between]).flatten().copied().collect()
}

/// The order by what tells segments or, of offsets, by the borders between them.
fn order_of<'a>(workload: Workload, n: u64, telling: &'a [u8], borders: &'a [u8]) -> Order<'a> {
    Order::new(workload, n, if workload.telling() == Some(Telling::Offsets) { borders } else { telling })
}

/// The place of the element that stands at each index of the output: kept ones in front, and the others, unless they are
/// dropped, from the last index on. Of two arrays, the second of which is behind the first here and there, those of the first with
/// [`NOWHERE`] where nothing is stored.
fn ranked(workload: Workload, kept: Kept, order: Order<'_>, [input, telling]: [&[u8]; 2]) -> Vec<u64> {
    let n = order.elements();
    let (element, bytes) = (workload.input(), workload.input().bytes());
    let of = |place: usize| &input[place * bytes..(place + 1) * bytes];
    let is_kept = |&place: &u64| {
        let place = place as usize;
        match kept {
            Kept::Flagged => telling[place] != 0,
            Kept::BelowMiddle => is_below_middle(element, of(place)),
            // Drawn elements are equal where their bytes are.
            Kept::RunBegins => place == 0 || of(place) != of(place - 1),
            Kept::RunEnds => place + 1 == n || order.begins(place + 1),
            Kept::LongerRunEnds => {
                let is_last = place + 1 == n || of(place + 1) != of(place);
                is_last && place > 0 && of(place - 1) == of(place)
            }
            Kept::NonZero => !is_zero(element, of(place)),
        }
    };
    if workload.drops_others() {
        let mut places: Vec<u64> = (0..n as u64).into_par_iter().filter(is_kept).collect();
        if workload.has_run_lengths() {
            let kept = places.len();
            places.resize(n, NOWHERE);
            places.extend_from_within(..kept);
            places[n..].iter_mut().for_each(|place| *place += n as u64);
        }
        return places;
    }
    let mut places: Vec<u64> = (0..n as u64).into_par_iter().filter(is_kept).collect();
    let from_the_last = (0..n).into_par_iter().rev().map(|place| place as u64);
    places.par_extend(from_the_last.filter(|place| !is_kept(place)));
    places
}

/// The place of the element that stands at each index once they are in order. Where there are several arrays, they and their
/// indices are one behind the other.
fn sorted(workload: Workload, bits: Bits, input: &[u8]) -> Vec<u64> {
    let element = workload.input();
    let width = 8 * element.bytes() as u32;
    let shift = match bits {
        Bits::All => 0,
        Bits::UpperHalf => width / 2,
    };
    let sign = 1 << (width - 1);
    let key = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let number = u64::from_le_bytes(word);
        let turned = match (element.is_float(), has_sign(element)) {
            (true, _) if number & sign != 0 => u64::MAX >> (64 - width),
            (true, _) | (false, true) => sign,
            (false, false) => 0,
        };
        (number ^ turned) >> shift
    };
    let elements = input.par_chunks_exact(element.bytes()).enumerate();
    let mut places: Vec<_> = elements.map(|(place, bytes)| (key(bytes), place as u64)).collect();
    // Equal keys stand in the order of their places.
    places.par_sort_unstable();
    let n = places.len() as u64;
    let arrays = workload.outputs(n).count() as u64;
    (0..arrays).flat_map(|array| places.iter().map(move |(_, place)| array * n + place)).collect()
}

/// The place of the element that is stored at each place: that of the segment which has it, or of the one that goes there.
fn sources(told: Telling, element: ElementType, telling: &[u8]) -> Vec<u64> {
    let numbers: Vec<u64> =
        telling.chunks_exact(element.bytes()).map(|number| element.integer(number) as u64).collect();
    if told == Telling::Places {
        let mut sources = vec![0; numbers.len()];
        numbers.iter().zip(0..).for_each(|(&place, source)| sources[place as usize] = source);
        return sources;
    }
    numbers.windows(2).zip(0..).flat_map(|(ends, segment)| (ends[0]..ends[1]).map(move |_| segment)).collect()
}

/// All places below `n`, each once.
fn draw_places(n: u64, mut random: Pcg64Mcg) -> Vec<u8> {
    let mut places: Vec<u64> = (0..n).collect();
    // Fisher and Yates.
    for last in (1..n).rev() {
        let other = ((u128::from(random.next_u64()) * u128::from(last + 1)) >> 64) as usize;
        places.swap(last as usize, other);
    }
    bytemuck::cast_slice(&places).to_vec()
}

/// Whether a drawn number is below the middle of its type's range: by its highest bit, as no NaN and no negative zero is drawn.
fn is_below_middle(element: ElementType, bytes: &[u8]) -> bool {
    let is_high = bytes.last().is_some_and(|&byte| byte >= 0x80);
    is_high == has_sign(element)
}

/// Whether the highest bit is a sign, and not the upper half of the range.
fn has_sign(element: ElementType) -> bool {
    element.is_signed() || element.is_float()
}

/// Puts the numbers with a flag below the middle of their type's range, and the others above.
fn put_below_middle(element: ElementType, flags: &[u8], array: &mut [u8]) {
    array.par_chunks_exact_mut(element.bytes()).zip(flags).for_each(|(number, &flag)| {
        let is_below = flag != 0;
        if let (Some(float), true) = (element.float(), is_below) {
            // Zero with a sign is not below zero.
            if (float.read)(number) == 0.0 {
                (float.write)(1.0, number);
            }
        }
        let highest = &mut number[element.bytes() - 1];
        *highest = *highest & 0x7f | if is_below == has_sign(element) { 0x80 } else { 0 };
    });
}

/// Leaves the numbers with a flag other than 0, and makes the others 0.
fn put_zeros(element: ElementType, flags: &[u8], array: &mut [u8]) {
    array.par_chunks_exact_mut(element.bytes()).zip(flags).for_each(|(number, &flag)| {
        if flag == 0 {
            number.fill(0);
        } else if is_zero(element, number) {
            match element.float() {
                Some(float) => (float.write)(1.0, number),
                None => number[0] = 1,
            }
        }
    });
}

fn is_zero(element: ElementType, number: &[u8]) -> bool {
    element.float().map_or_else(|| number.iter().all(|&byte| byte == 0), |float| (float.read)(number) == 0.0)
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

/// Marks the elements, of `n`, at which a segment between offsets begins; an empty one marks where the next one does.
fn borders(offsets: &[u8], element: ElementType, n: usize) -> Vec<u8> {
    let mut marks = vec![0; n];
    for offset in offsets.chunks_exact(element.bytes()) {
        let begin = usize::try_from(element.integer(offset)).ok();
        if let Some(mark) = begin.and_then(|begin| marks.get_mut(begin)) {
            *mark = 1;
        }
    }
    marks
}

/// Plateaus over which the range of random minima and maxima widens.
pub(crate) const PLATEAUS: u64 = 4096;

/// So many offsets of that type from 0 to `n`. Between them are lengths in the proportions of a Pareto distribution of exponent
/// 4/3, less the least it has; one in eight is empty whatever their average.
fn draw_offsets((element, count): (ElementType, u64), n: u64, mut random: Pcg64Mcg) -> Vec<u8> {
    let mut weight = || {
        let is_empty = random.next_u64().is_multiple_of(8);
        // Square roots are rounded alike on every machine, other powers are not.
        let root = (1.0 - unit(random.next_u64())).sqrt();
        if is_empty { 0.0 } else { 1.0 / (root * root.sqrt()) - 1.0 }
    };
    let mut reached = vec![0.0];
    let mut all = 0.0;
    for _ in 1..count {
        all += weight();
        reached.push(all);
    }
    let last = reached.len() - 1;
    let mut offsets = vec![0; reached.len() * element.bytes()];
    for (index, (position, bytes)) in reached.iter().zip(offsets.chunks_exact_mut(element.bytes())).enumerate() {
        // Where all are drawn empty, 0 / 0 is cast to 0, and the last segment has every element.
        let offset = if index == last { n } else { (position / all * n as f64) as u64 };
        bytes.copy_from_slice(&offset.to_le_bytes()[..element.bytes()]);
    }
    offsets
}

/// Keys of runs, or a flag that is not 0 where one begins: of `run` elements on average, or of 1 where those flags are turned.
fn runs(are_keys: bool, share: Share, n: usize, run: u64, mut random: Pcg64Mcg) -> Vec<u8> {
    if share == Share::AllButOne {
        let mut flags = runs(false, Share::One, n, run, random);
        flags.iter_mut().for_each(|flag| *flag = u8::from(*flag == 0));
        let mut key = 0_u32;
        let mut next = |flag: u8| {
            key = (key + u32::from(flag)) % 4;
            key.to_le_bytes()
        };
        return if are_keys { flags.into_iter().flat_map(&mut next).collect() } else { flags };
    }
    let mut telling = vec![0; if are_keys { 4 * n } else { n }];
    let (mut place, mut key) = (0, 0_u32);
    while place < n {
        let drawn = random.next_u64();
        let length = 1 + ((u128::from(random.next_u64()) * u128::from(2 * run - 1)) >> 64) as u64;
        let end = usize::try_from(length).ok().and_then(|length| place.checked_add(length)).map_or(n, |end| end.min(n));
        if are_keys {
            // One of four, and another one than before.
            key = (key + 1 + (drawn % 3) as u32) % 4;
            telling[4 * place..4 * end].chunks_exact_mut(4).for_each(|bytes| bytes.copy_from_slice(&key.to_le_bytes()));
        } else {
            telling[place] = 1 + (drawn % 255) as u8;
        }
        place = end;
    }
    telling
}

/// The columns of each of so many matrices, of so many rows each, which become rows.
fn transposed<'a>(
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

fn reverse(array: &mut [u8], element_bytes: usize) {
    array.reverse();
    array.chunks_exact_mut(element_bytes).for_each(<[u8]>::reverse);
}

fn fill(element: ElementType, operator: Operator, is_in_runs: bool, seed: u64, bytes: &mut [u8]) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    match operator {
        Operator::Affine => {
            for chunk in bytes.chunks_exact_mut(16) {
                chunk.copy_from_slice(bytemuck::bytes_of(&[random.next_u64() | 1, random.next_u64()]));
            }
        }
        Operator::Bicyclic => {
            // Both of one size, so that either side of the minimum wins about as often.
            for chunk in bytes.chunks_exact_mut(8) {
                let drawn = random.next_u64();
                chunk.copy_from_slice(bytemuck::bytes_of(&[(drawn & 15) as u32, ((drawn >> 32) & 15) as u32]));
            }
        }
        Operator::Intervals => {
            for (index, chunk) in bytes.chunks_exact_mut(8).enumerate() {
                chunk.copy_from_slice(bytemuck::bytes_of(&[index as u32; 2]));
            }
        }
        other if is_in_runs && matches!(other.input(), Distribution::SparseZeros | Distribution::SparseOnes) => {
            fill_single_bits(other.input() == Distribution::SparseZeros, element, &mut random, bytes);
        }
        other => fill_numbers(element, other.input(), &mut random, bytes),
    }
}

/// All bits set or clear but for one of each element: what few bits over the whole array are, in each of its runs.
fn fill_single_bits(mostly_set: bool, element: ElementType, random: &mut Pcg64Mcg, bytes: &mut [u8]) {
    bytes.fill(if mostly_set { 0xff } else { 0x00 });
    for value in bytes.chunks_exact_mut(element.bytes()) {
        let bit = (random.next_u64() % (8 * element.bytes() as u64)) as usize;
        value[bit / 8] ^= 1 << (bit % 8);
    }
}

fn fill_numbers(element: ElementType, distribution: Distribution, random: &mut Pcg64Mcg, bytes: &mut [u8]) {
    match (distribution, element.float()) {
        (Distribution::Falling | Distribution::Rising, _) => {
            fill_widening(distribution == Distribution::Falling, element, random, bytes);
        }
        (Distribution::SparseZeros | Distribution::SparseOnes, _) => {
            fill_sparse_bits(distribution == Distribution::SparseZeros, element, random, bytes);
        }
        (Distribution::Factors, Some(float)) => fill_each(element, random, bytes, |before, drawn, element| {
            let exponent = |drawn: u64| (drawn & 31) as i32;
            let sign = if drawn >> 63 == 0 { 1.0 } else { -1.0 };
            (float.write)(sign * 2f64.powi(exponent(drawn) - exponent(before)), element);
        }),
        (Distribution::Factors, None) => {
            fill_words(random, bytes);
            bytes.iter_mut().step_by(element.bytes()).for_each(|byte| *byte |= 1);
        }
        // `Walk` is no operator's.
        (Distribution::Uniform | Distribution::Walk, Some(float)) => {
            fill_each(element, random, bytes, |_, drawn, element| (float.write)(2.0 * unit(drawn) - 0.5, element));
        }
        (Distribution::Uniform | Distribution::Walk, None) => fill_words(random, bytes),
    }
}

/// What an element is in arrays of whole numbers.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// Of a sum.
    Summand,
    /// Of a recurrence.
    Factor,
    /// Likewise.
    Addend,
}

/// Arrays of [`Dataset::whole_numbers`]. Factor and addend of a recurrence are drawn of one seed: its values are the sums of the
/// summands in the units that the factors change to.
fn fill_whole(element: ElementType, part: Part, seed: u64, bytes: &mut [u8]) {
    let Some(float) = element.float() else { return };
    // Any difference has 8 bits, as many as bf16 holds, and in the largest unit it is below the largest f16.
    let number = |drawn: u64| (drawn & 127) as f64;
    let unit = |drawn: u64| 2f64.powi((drawn >> 8 & 7) as i32);
    fill_each(element, &Pcg64Mcg::seed_from_u64(seed), bytes, |before, drawn, element| {
        let summand = number(drawn) - number(before);
        let value = match part {
            Part::Summand => summand,
            Part::Factor => unit(drawn) / unit(before),
            Part::Addend => unit(drawn) * summand,
        };
        (float.write)(value, element);
    });
}

/// Draws a number an element on all cores; `write` has the one drawn before it, too, and 0 at the first.
fn fill_each(element: ElementType, random: &Pcg64Mcg, bytes: &mut [u8], write: impl Fn(u64, u64, &mut [u8]) + Sync) {
    let elements = workers::part_elements(bytes.len() / element.bytes());
    workers::each(bytes.chunks_mut(elements * element.bytes()).enumerate().collect(), |(index, part)| {
        let (mut random, mut before) = (random.clone(), 0);
        if let Some(drawn_already) = (index * elements).checked_sub(1) {
            random.advance(drawn_already as u128);
            before = random.next_u64();
        }
        for value in part.chunks_exact_mut(element.bytes()) {
            let drawn = random.next_u64();
            write(before, drawn, value);
            before = drawn;
        }
    });
}

/// Fills the bytes with drawn words, on all cores.
fn fill_words(random: &Pcg64Mcg, bytes: &mut [u8]) {
    let words = workers::part_elements(bytes.len() / 8);
    workers::each(bytes.chunks_mut(8 * words).enumerate().collect(), |(index, part)| {
        let mut random = random.clone();
        random.advance((index * words) as u128);
        random.fill_bytes(part);
    });
}

/// From 0 to 1, without 1.
fn unit(drawn: u64) -> f64 {
    (drawn >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Values whose range widens downwards or upwards from plateau to plateau.
fn fill_widening(falling: bool, element: ElementType, random: &mut Pcg64Mcg, bytes: &mut [u8]) {
    let element_bytes = element.bytes();
    let plateau_bytes = (bytes.len() / element_bytes).div_ceil(PLATEAUS as usize).max(1) * element_bytes;
    let plateaus = bytes.len().div_ceil(plateau_bytes) as u64;
    for (plateau, values) in bytes.chunks_mut(plateau_bytes).enumerate() {
        // A 64-bit fraction of the type's range; the first plateau has some of it already.
        let width = ((u128::from(u64::MAX) * (plateau as u128 + 1)) / u128::from(plateaus)) as u64;
        for value in values.chunks_exact_mut(element_bytes) {
            let share = ((u128::from(random.next_u64()) * u128::from(width)) >> 64) as u64;
            let share = if falling { !share } else { share };
            match element.float() {
                // From -1 to 1.
                Some(float) => (float.write)(signed_unit(share), value),
                None => {
                    let ordered = if element.is_signed() { share ^ (1 << 63) } else { share };
                    value.copy_from_slice(&ordered.to_le_bytes()[8 - element_bytes..]);
                }
            }
        }
    }
}

fn signed_unit(share: u64) -> f64 {
    ((share ^ (1 << 63)) as i64) as f64 * (1.0 / (1u64 << 63) as f64)
}

/// All bits set or clear but for one bit in about 2·bits elements of the array.
fn fill_sparse_bits(mostly_set: bool, element: ElementType, random: &mut Pcg64Mcg, bytes: &mut [u8]) {
    bytes.fill(if mostly_set { 0xff } else { 0x00 });
    let n = (bytes.len() / element.bytes()) as u64;
    if n == 0 {
        return;
    }
    let bits = 8 * element.bytes() as u64;
    for _ in 0..2 * bits {
        let drawn = u128::from(random.next_u64());
        let (at, bit) = (((drawn * u128::from(n)) >> 64) as usize, random.next_u64() % bits);
        bytes[at * element.bytes() + bit as usize / 8] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn instances() -> Vec<Instance> {
        Instance::all().collect()
    }

    #[test]
    fn random_arrays_are_reproducible_differ_by_seed_and_are_never_zeros_only() {
        for instance in instances() {
            let array = Dataset::random(instance, 1000, 7);
            assert_eq!(array.input, Dataset::random(instance, 1000, 7).input, "{instance}");
            assert!(array.input.iter().any(|&byte| byte != 0), "{instance}");
            if instance.operator() != Operator::Intervals {
                assert_ne!(array.input, Dataset::random(instance, 1000, 8).input, "{instance}");
            }
        }
    }

    #[test]
    fn prefixes_of_random_arrays_keep_changing_behind_their_first_quarter() {
        for instance in instances() {
            let dataset = Dataset::random(instance, 100_000, 1);
            let Reference::Exact(prefixes) = &dataset.reference else { continue };
            let bytes = instance.element().bytes();
            let last = &prefixes[prefixes.len() - bytes..];
            assert!(prefixes[prefixes.len() / 4..].chunks_exact(bytes).any(|prefix| prefix != last), "{instance}");
        }
    }

    #[test]
    fn random_products_of_floats_are_exact_in_every_order() {
        for element in [ElementType::F32, ElementType::F64] {
            let instance = Instance::new(element, Operator::Product).unwrap();
            let Dataset { input, reference, .. } = Dataset::random(instance, 100_000, 9);
            assert_eq!(instance.ambiguity(&input), None, "{element}");
            assert!(matches!(reference, Reference::Exact(_)));
            let with_zero = [input, vec![0; element.bytes()]].concat();
            let refused = Dataset::from_bytes(instance, with_zero, String::new());
            assert!(matches!(refused, Err(NoScan::NotAssociative(_))), "{element}");
        }
    }

    #[test]
    fn empty_arrays_have_empty_references() {
        for instance in instances() {
            let dataset = Dataset::random(instance, 0, 0);
            assert_eq!(dataset.n, 0);
            match dataset.reference {
                Reference::Exact(prefixes) => assert!(prefixes.is_empty()),
                Reference::Rounded { high, .. } => assert!(high.is_empty()),
            }
        }
    }

    #[test]
    fn prefixes_of_index_intervals_start_at_zero() {
        let instance = Instance::new(ElementType::IndexInterval, Operator::Intervals).unwrap();
        let dataset = Dataset::random(instance, 100, 0);
        assert_eq!(dataset.expected_exactly(Mode::Inclusive, 41).unwrap(), bytemuck::bytes_of(&[0u32, 41]));
        assert_eq!(dataset.expected_exactly(Mode::Exclusive, 41).unwrap(), bytemuck::bytes_of(&[0u32, 40]));
        assert_eq!(dataset.expected_exactly(Mode::Exclusive, 0).unwrap(), bytemuck::bytes_of(&[1u32, 0]));
    }

    #[test]
    fn the_double_double_reference_keeps_what_f64_loses() {
        let instance = Instance::new(ElementType::F64, Operator::Sum).unwrap();
        let input = [1e16, 1.0, 1.0, -1e16];
        let dataset = Dataset::from_bytes(instance, bytemuck::cast_slice(&input).to_vec(), "test".into()).unwrap();
        let Reference::Rounded { high, low, magnitude } = dataset.reference else { panic!("f64 sums are rounded") };
        assert_eq!(high[3] + low[3], 2.0);
        assert_eq!(magnitude[3], 2e16 + 2.0);
    }

    #[test]
    fn half_an_element_is_refused() {
        let instance = Instance::new(ElementType::U32, Operator::Sum).unwrap();
        let error = Dataset::from_bytes(instance, vec![0; 6], "test".into()).unwrap_err();
        assert_eq!(error, NoScan::PartialElement { bytes: 6, element: ElementType::U32, element_bytes: 4 });
    }

    proptest! {
        #[test]
        fn the_order_sensitive_monoids_see_a_swap_of_neighbours(at in 0usize..99, seed: u64) {
            // Two bicyclic pairs of small exponents may commute; they have a test of their own.
            for operator in [Operator::Affine, Operator::Intervals] {
                let instance = Instance::new(operator.own_element().unwrap(), operator).unwrap();
                let dataset = Dataset::random(instance, 100, seed);
                let size = instance.element().bytes();
                let mut swapped = dataset.input.clone();
                let (left, right) = swapped[at * size..(at + 2) * size].split_at_mut(size);
                left.swap_with_slice(right);
                let swapped = Dataset::from_bytes(instance, swapped, "swapped".into()).unwrap();
                let prefix = |dataset: &Dataset| dataset.expected_exactly(Mode::Inclusive, at as u64 + 1).unwrap();
                prop_assert_ne!(prefix(&dataset), prefix(&swapped), "{}", instance);
            }
        }
    }

    #[test]
    fn most_swaps_of_bicyclic_neighbours_show() {
        let instance = Instance::new(ElementType::BicyclicPair, Operator::Bicyclic).unwrap();
        let shown = (0..1000u64)
            .filter(|&seed| {
                let pair = Dataset::random(instance, 2, seed);
                let mut input = pair.input.clone();
                input.rotate_left(8);
                let swapped = Dataset::from_bytes(instance, input, String::new()).unwrap();
                pair.expected_exactly(Mode::Inclusive, 1) != swapped.expected_exactly(Mode::Inclusive, 1)
            })
            .count();
        assert!(shown > 800, "{shown} of 1000");
    }

    /// What the reference of whole numbers says is what every order of rounded additions comes to.
    #[test]
    fn whole_numbers_are_exact_in_every_order() {
        let segment = |kind: ProblemKind| (kind.needs_shape() || kind.has_runs()).then_some(61);
        for element in [ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64] {
            let float = element.float().unwrap();
            let rounded = |value: f64| {
                let mut bytes = vec![0; element.bytes()];
                (float.write)(value, &mut bytes);
                (float.read)(&bytes)
            };
            let mut all = 0;
            for &kind in ProblemKind::ALL {
                let workload = Workload::with_halves(kind, Operator::Sum, element, element, segment(kind));
                // Nothing is rounded where nothing is combined, and totals are some of the results by key.
                let combines = |workload: &Workload| !workload.is_by_rank() && workload.bins().is_none();
                let Some(workload) = workload.ok().filter(combines) else { continue };
                all += 1;
                let dataset = Dataset::whole_numbers(workload, 6100, 3);
                let Reference::Rounded { high, low, magnitude } = &dataset.reference else { panic!("{workload}") };
                assert!(low.is_empty() && magnitude.is_empty());
                let read =
                    |array: &[u8], place: usize| (float.read)(&array[place * element.bytes()..][..element.bytes()]);
                let has_factors = workload.has_addends();
                // [factor, addend] of an element.
                let map = |place| match has_factors {
                    true => [read(&dataset.input, place), read(&dataset.second, place)],
                    false => [1.0, read(&dataset.input, place)],
                };
                let order = dataset.order();
                let mut distinct = std::collections::BTreeSet::new();
                for place in order.places() {
                    distinct.insert(high[place] as i64);
                    assert_eq!(rounded(high[place]), high[place], "{workload}");
                    // From the last of eight neighbours back to the first, every step rounded in the type itself.
                    let [mut factor, mut addend] = map(place);
                    let mut at = place;
                    for _ in 0..7 {
                        let Some(before) = order.before(at) else { break };
                        let [one, other] = map(before);
                        addend = rounded(rounded(factor * other) + addend);
                        factor = rounded(factor * one);
                        at = before;
                    }
                    let carried = order.before(at).map_or(0.0, |at| high[at]);
                    assert_eq!(rounded(rounded(factor * carried) + addend), high[place], "{workload} at {place}");
                }
                assert!(distinct.len() > 60, "{workload}: {}", distinct.len());
            }
            let combining = ProblemKind::ALL.iter().filter(|kind| kind.has_operator() || kind.is_recurrence());
            // All but the two that store totals by rank.
            assert_eq!(all, combining.count() - 2, "{element}");
        }
        // No other scans have such.
        for (input, element) in [(ElementType::I32, ElementType::I32), (ElementType::U8, ElementType::F32)] {
            let workload = Workload::new(ProblemKind::Flat, Operator::Sum, input, element, None).unwrap();
            assert_eq!(Dataset::whole_numbers(workload, 100, 3).input, Dataset::random(workload, 100, 3).input);
        }
    }

    #[test]
    fn of_most_all_are_kept_but_one_of_so_many() {
        for kind in [ProblemKind::SelectMost, ProblemKind::UniqueMost] {
            let workload = Workload::new(kind, Operator::Sum, ElementType::I32, ElementType::I32, Some(10)).unwrap();
            let stored = Dataset::random(workload, 10_000, 7).stored();
            assert!((8_800..9_200).contains(&stored), "{kind}: {stored}");
        }
        let u8s = ElementType::U8;
        let workload = Workload::new(ProblemKind::PartitionMost, Operator::Sum, u8s, u8s, Some(10)).unwrap();
        let flags = Dataset::random(workload, 10_000, 7).telling;
        let flagged = flags.iter().filter(|&&flag| flag != 0).count();
        assert!((8_800..9_200).contains(&flagged), "{flagged}");
    }

    /// Of more elements than one core is given: as one generator draws them, and as one loop scans them.
    #[test]
    fn all_cores_draw_and_scan_what_one_does() {
        let n = 5 * workers::LEAST_PART as u64 + 123;
        let mut random = Pcg64Mcg::seed_from_u64(9);
        let floats = Dataset::random(Instance::new(ElementType::F32, Operator::Sum).unwrap(), n, 9);
        let expected: Vec<u8> =
            (0..n).flat_map(|_| ((2.0 * unit(random.next_u64()) - 0.5) as f32).to_le_bytes()).collect();
        assert!(floats.input == expected);
        let mut random = Pcg64Mcg::seed_from_u64(9);
        let mut expected = vec![0; n as usize];
        random.fill_bytes(&mut expected);
        let bytes = Dataset::random(Instance::new(ElementType::U8, Operator::Xor).unwrap(), n, 9);
        assert!(bytes.input == expected);
        let columns = n / 1000;
        for (kind, segment) in [
            (ProblemKind::Rows, 1000),
            (ProblemKind::ReverseRows, 1000),
            (ProblemKind::Columns, 1000),
            (ProblemKind::ReverseColumns, columns),
            (ProblemKind::RecurrenceColumns, 1000),
            (ProblemKind::ReverseRecurrenceColumns, 1000),
            (ProblemKind::BatchedRecurrence, 125),
            (ProblemKind::ByKey, 70),
            (ProblemKind::Offsets, 70),
        ] {
            let n = 1000 * columns;
            let u32s = ElementType::U32;
            let dataset = Dataset::random(Workload::new(kind, Operator::Sum, u32s, u32s, Some(segment)).unwrap(), n, 9);
            let Reference::Exact(found) = &dataset.reference else { panic!("integers are exact") };
            let word = |array: &[u8], place: usize| u32s.integer(&array[4 * place..4 * place + 4]) as u32;
            let order = dataset.order();
            for place in order.places() {
                let before = order.before(place).map_or(0, |at| word(found, at));
                let (one, other) = match dataset.workload.operator() {
                    Some(_) => (before, word(&dataset.input, place)),
                    None => (before.wrapping_mul(word(&dataset.input, place)), word(&dataset.second, place)),
                };
                assert_eq!(word(found, place), one.wrapping_add(other), "{kind} at {place}");
            }
        }
    }

    #[test]
    fn runs_are_as_long_as_asked_and_keys_come_back() {
        let of = |kind| Workload::new(kind, Operator::Sum, ElementType::U32, ElementType::U32, Some(61)).unwrap();
        for kind in [ProblemKind::ByKey, ProblemKind::HeadFlags] {
            let dataset = Dataset::random(of(kind), 61_000, 3);
            let order = dataset.order();
            let begins = order.places().filter(|&place| order.begins(place)).count();
            assert!((900..1100).contains(&begins), "{kind}: {begins}");
            assert_ne!(dataset.telling, Dataset::random(of(kind), 61_000, 4).telling, "{kind}");
        }
        let keys = Dataset::random(of(ProblemKind::ByKey), 1000, 3).telling;
        let distinct: std::collections::BTreeSet<&[u8]> = keys.chunks(4).collect();
        assert_eq!(distinct.len(), 4);
    }

    /// Beside a definition in numbers, of drawn ones and of whole ones: what is kept, and how much of it.
    #[test]
    fn values_say_what_is_kept_and_as_often_as_asked() {
        let n = 6100;
        let of = |kind, element, run| Workload::new(kind, Operator::Sum, element, element, Some(run)).unwrap();
        for &element in ElementType::NUMBERS {
            let bytes = element.bytes();
            let read = |array: &[u8]| -> Vec<f64> { array.chunks_exact(bytes).map(reader(element)).collect() };
            let middle = if has_sign(element) { 0.0 } else { 2f64.powi(8 * bytes as i32 - 1) };
            for run in [1, 2, 61, 100_000] {
                // A run of 61 has from 1 to 121 elements: of 100 of them the average is within a fifth, almost surely.
                let is_as_asked = |kept: usize| match run {
                    1 => kept == n as usize,
                    100_000 => (1..=3).contains(&kept),
                    run => (kept as f64 * run as f64 / n as f64 - 1.0).abs() < 0.25,
                };
                let made: [fn(Workload, u64, u64) -> Dataset; 2] = [Dataset::random, Dataset::whole_numbers];
                for make in made {
                    let selected = make(of(ProblemKind::Select, element, run), n, 3);
                    let (input, stored) =
                        (read(&selected.input), read(&selected.expected_output(Mode::Inclusive).unwrap()));
                    assert!(input.iter().filter(|&&x| x < middle).eq(&stored), "{element} {run}");
                    assert!(input.iter().all(|&x| x.is_finite() && (x != 0.0 || x.is_sign_positive())), "{element}");
                    assert!(is_as_asked(stored.len()), "{element} {run}: {}", stored.len());
                    assert_eq!(selected.stored(), stored.len() as u64);
                    assert_eq!(selected.expected_exactly(Mode::Inclusive, selected.stored()), None);
                    let distinct: std::collections::BTreeSet<&[u8]> = selected.input.chunks_exact(bytes).collect();
                    assert!(distinct.len() > 60, "{element} {run}: {}", distinct.len());

                    let unique = make(of(ProblemKind::Unique, element, run), n, 3);
                    let (mut input, stored) =
                        (read(&unique.input), read(&unique.expected_output(Mode::Inclusive).unwrap()));
                    input.dedup();
                    assert!(input == stored, "{element} {run}");
                    assert!(is_as_asked(stored.len()), "{element} {run}: {}", stored.len());

                    // The same elements: each run's value, nothing up to the second array, and there its length.
                    let encoded = make(of(ProblemKind::RunLengthEncode, element, run), n, 3);
                    assert_eq!(encoded.input, unique.input);
                    let Reference::Exact(stored) = &encoded.reference else { panic!("{element} is copied") };
                    let (runs, lengths) = stored.split_at(n as usize * bytes);
                    let (runs, before) = runs.split_at(lengths.len());
                    assert!(read(runs) == input && before.iter().all(|&byte| byte == FILLING), "{element} {run}");
                    let modulus = if element.float().is_some() { u64::MAX } else { u64::MAX >> (64 - 8 * bytes) };
                    let total: f64 = read(lengths).iter().sum();
                    assert!(modulus < n || total == n as f64, "{element} {run}: {total}");

                    let place = ElementType::U64;
                    let of_places = Workload::new(ProblemKind::NonZero, Operator::Sum, element, place, Some(run));
                    let nonzero = make(of_places.unwrap(), n, 3);
                    let input = read(&nonzero.input);
                    let places: Vec<u64> = (0..n).filter(|&place| input[place as usize] != 0.0).collect();
                    assert_eq!(
                        nonzero.expected_output(Mode::Inclusive).unwrap(),
                        bytemuck::cast_slice::<_, u8>(&places)
                    );
                    assert!(is_as_asked(places.len()), "{element} {run}: {}", places.len());
                }
            }
        }
        let seeds = [3, 4].map(|seed| Dataset::random(of(ProblemKind::Unique, ElementType::U8, 61), n, seed).input);
        assert_ne!(seeds[0], seeds[1]);
        for kind in [ProblemKind::Select, ProblemKind::Unique] {
            let refused = Dataset::from_bytes(of(kind, ElementType::U8, 2), vec![1; 24], String::new());
            assert!(matches!(refused, Err(NoScan::SeveralArrays(_))), "{kind}");
        }
    }

    #[test]
    fn totals_are_the_results_at_the_ends_of_runs_alone_or_with_the_others_behind() {
        for element in [ElementType::I32, ElementType::F32] {
            let of = |kind| Workload::new(kind, Operator::Sum, element, element, Some(7)).unwrap();
            let [each, alone, first] = [ProblemKind::ByKey, ProblemKind::ReduceByKey, ProblemKind::TotalsFirst]
                .map(|kind| Dataset::whole_numbers(of(kind), 610, 3));
            let ends: Vec<usize> = (0..610).filter(|&place| place == 609 || each.order().begins(place + 1)).collect();
            let numbers = |dataset: &Dataset| -> Vec<f64> {
                match &dataset.reference {
                    Reference::Exact(all) => all.chunks_exact(4).map(reader(element)).collect(),
                    Reference::Rounded { high, .. } => high.clone(),
                }
            };
            let results = numbers(&each);
            let totals: Vec<f64> = ends.iter().map(|&place| results[place]).collect();
            let others: Vec<f64> =
                (0..610).rev().filter(|place| !ends.contains(place)).map(|place| results[place]).collect();
            assert!(ends.len() > 50 && others.len() > 300);
            assert_eq!((numbers(&alone), numbers(&first)), (totals.clone(), [totals, others].concat()), "{element}");
            assert_eq!([each.stored(), alone.stored(), first.stored()], [610, ends.len() as u64, 610]);
        }
    }

    #[test]
    fn columns_are_drawn_and_checked_along_themselves() {
        let of =
            |kind, element: ElementType, operator| Workload::new(kind, operator, element, element, Some(50)).unwrap();
        for kind in [ProblemKind::Columns, ProblemKind::ReverseColumns] {
            for (element, operator) in [
                (ElementType::F32, Operator::Product),
                (ElementType::BicyclicPair, Operator::Bicyclic),
                (ElementType::IndexInterval, Operator::Intervals),
            ] {
                let drawn = Dataset::random(of(kind, element, operator), 50 * 700, 3);
                let again = Dataset::from_bytes(drawn.workload, drawn.input.clone(), String::new());
                assert!(again.is_ok(), "{kind}, {element}: {again:?}");
                // From one column to the next, factors grow without bounds.
                let flat = Dataset::from_bytes(drawn.instance, drawn.input, String::new());
                assert!(flat.is_err() || operator != Operator::Product, "{kind}, {element}");
            }
        }
        // The values of a recurrence stay as near as its factors.
        let workload = of(ProblemKind::RecurrenceColumns, ElementType::F32, Operator::Sum);
        let Reference::Rounded { magnitude, .. } = Dataset::random(workload, 50 * 700, 3).reference else { panic!() };
        assert!(magnitude.iter().all(|&magnitude| magnitude < 50.0 * 2f64.powi(32)), "{magnitude:?}");
    }

    #[test]
    fn segments_between_offsets_are_empty_short_and_long() {
        let of = |run| {
            Workload::new(ProblemKind::Offsets, Operator::Sum, ElementType::U32, ElementType::U32, Some(run)).unwrap()
        };
        let lengths = |run: u64, n: u64, seed: u64| -> Vec<u64> {
            let telling = Dataset::random(of(run), n, seed).telling;
            let offsets: Vec<u64> =
                telling.chunks_exact(4).map(|bytes| ElementType::U32.integer(bytes) as u64).collect();
            assert_eq!((offsets[0], offsets[offsets.len() - 1]), (0, n), "{run} {n}");
            offsets.windows(2).map(|pair| pair[1].checked_sub(pair[0]).expect("none falls")).collect()
        };
        for run in [1, 61, 5000] {
            let lengths = lengths(run, 1000 * run, 3);
            assert_eq!(lengths.len(), 1000);
            let count = |is: &dyn Fn(u64) -> bool| lengths.iter().filter(|&&length| is(length)).count();
            assert!(count(&|length| length == 0) > 80, "{run}");
            assert!(count(&|length| length < run) > 500 && count(&|length| length > 10 * run) > 3, "{run}");
        }
        assert_ne!(lengths(61, 6100, 3), lengths(61, 6100, 4));
        // As many elements as there are, wherever they have to be.
        for seed in 0..50 {
            for (n, segments) in [(0, 0), (1, 1), (100, 1), (101, 2)] {
                assert_eq!(lengths(100, n, seed).len(), segments);
            }
        }
    }

    #[test]
    fn bits_keep_changing_within_a_run() {
        for operator in [Operator::And, Operator::Or] {
            let workload =
                Workload::new(ProblemKind::Rows, operator, ElementType::U32, ElementType::U32, Some(64)).unwrap();
            let dataset = Dataset::random(workload, 64 * 100, 1);
            let Reference::Exact(prefixes) = &dataset.reference else { panic!("bits are exact") };
            for row in prefixes.chunks_exact(4 * 64) {
                let distinct: std::collections::BTreeSet<&[u8]> = row.chunks_exact(4).collect();
                assert!(distinct.len() > 10, "{operator}: {}", distinct.len());
            }
        }
    }

    #[test]
    fn a_file_is_one_array_and_whole_rows() {
        let of =
            |kind, segment| Workload::new(kind, Operator::Sum, ElementType::U32, ElementType::U32, segment).unwrap();
        let from = |workload: Workload| Dataset::from_bytes(workload, vec![1; 24], String::new());
        assert!(from(of(ProblemKind::ReverseRows, Some(3))).is_ok());
        assert!(matches!(from(of(ProblemKind::Rows, Some(4))), Err(NoScan::Misfit(_))));
        assert!(matches!(from(of(ProblemKind::Columns, Some(4))), Err(NoScan::Misfit(_))));
        let columns = from(of(ProblemKind::ReverseColumns, Some(3))).unwrap().expected_output(Mode::Exclusive).unwrap();
        let ones = 0x0101_0101_u32;
        assert_eq!(columns, [2 * ones, 2 * ones, ones, ones, 0, 0].map(u32::to_le_bytes).concat());
        for (kind, segment) in [
            (ProblemKind::ByKey, Some(2)),
            (ProblemKind::HeadFlags, Some(2)),
            (ProblemKind::Offsets, Some(2)),
            (ProblemKind::Recurrence, None),
        ] {
            assert!(matches!(from(of(kind, segment)), Err(NoScan::SeveralArrays(_))), "{kind}");
        }
    }

    #[test]
    fn numbers_are_converted_before_they_are_scanned() {
        let of = |input, element| Workload::new(ProblemKind::Flat, Operator::Sum, input, element, None).unwrap();
        let sums = |workload, input: &[u8]| Dataset::from_bytes(workload, input.to_vec(), String::new()).unwrap();
        let wide = sums(of(ElementType::I8, ElementType::I32), &[0xff, 0x80, 5]);
        let expected: Vec<u8> = [-1_i32, -129, -124].into_iter().flat_map(i32::to_le_bytes).collect();
        assert_eq!(wide.expected_output(Mode::Inclusive), Some(expected));
        let narrow = sums(of(ElementType::U8, ElementType::U16), &[255; 300]);
        assert_eq!(
            narrow.expected_exactly(Mode::Inclusive, 299),
            Some((300_u32 * 255 % 65536).to_le_bytes()[..2].to_vec())
        );
        let float = sums(of(ElementType::U8, ElementType::F32), &[255; 300]);
        assert!(matches!(float.reference, Reference::Rounded { high, .. } if high[299] == 76500.0));
    }
}
