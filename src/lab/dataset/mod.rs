//! Inputs and their sequential reference: how they are drawn, what must come of them, and where what is stored by rank stands.

mod drawing;
mod ranks;
mod reference;

pub(crate) use drawing::PLATEAUS;
pub use reference::Reference;
pub(crate) use reference::two_sum;

use crate::element::{ElementType, Instance, Operator};
use crate::lab::arrays::FILLING;
use crate::lab::order::Order;
use crate::lab::workload::{Kept, ProblemKind, Ranks, Telling, Workload};
use crate::strategy::Mode;
use drawing::{Part, draw_offsets, draw_places, fill, fill_whole, put_below_middle, put_zeros, reverse, runs};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;
use ranks::{ranked, sorted, sources};
use reference::{ambiguity, converted, reader, transposed};

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

/// What Linux says could be allocated without swapping.
pub(crate) fn available_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
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

#[cfg(test)]
mod tests {
    use super::drawing::unit;
    use super::*;
    use crate::lab::workers;
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
                let dataset = Dataset::whole_numbers(workload, 6100_u64.next_multiple_of(workload.least()), 3);
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
            let middle = if element.has_sign() { 0.0 } else { 2f64.powi(8 * bytes as i32 - 1) };
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
