//! What is scanned, as the kernels know it (`cuda/problem/problem.cuh`): an operator, and four types.

use super::definition::own_name;
use super::{Axis, Defined, ElementType, Float, Histogram, Instance, KeyBits, NoSuchInstance, Operator, Verb};
use crate::abi;
use std::fmt;

/// An operator on the type that is scanned, and the types that are loaded, published to other blocks and stored; or what a
/// user has [defined](super::Definition).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Problem(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Numbers(Numbers),
    Defined(Defined),
    /// The scan of its tiles' totals.
    SpineOf(Defined),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Numbers {
    instance: Instance,
    input: ElementType,
    published: ElementType,
    output: ElementType,
}

impl Numbers {
    const fn plain(instance: Instance) -> Self {
        let element = instance.element();
        Self { instance, input: element, published: element, output: element }
    }

    const fn state(self) -> ElementType {
        self.instance.element()
    }
}

/// Types that a scan cannot convert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchProblem {
    /// An operator that is not defined on what is scanned.
    #[error(transparent)]
    NoSuchInstance(#[from] NoSuchInstance),
    /// Numbers alone are converted.
    #[error("{0} is not a type of numbers: choose one, or give input, output and what is scanned one type")]
    NotANumber(ElementType),
    /// A type has too many values to give each a bin.
    #[error("{0} has more values than a histogram of bytes: take one of levels, such as `even_histogram`")]
    NoByte(ElementType),
    /// Levels between which there are no bins.
    #[error("levels of {element} {what}")]
    Levels {
        /// Their type.
        element: ElementType,
        /// What is wrong with them, and what to do.
        what: &'static str,
    },
    /// What an integer makes of a large float is not defined.
    #[error("{from} may be too large for {to}: keep floats in floats once they are loaded")]
    FloatToInteger {
        /// What is converted.
        from: ElementType,
        /// What it would become.
        to: ElementType,
    },
    /// Kernels scan sums of narrow values in the words in which they load and store them.
    #[error("{0} has less than 4 bytes: scan values of 4 or 8 bytes, and load and store narrower ones")]
    NarrowState(ElementType),
    /// What is cut when it is stored would not be what the operator gives of cut numbers.
    #[error("{instance} of {input} depends on the bits that {} has no room for: store it as {input}", instance.element())]
    NarrowOutput {
        /// The operator on what is stored.
        instance: Instance,
        /// What is loaded.
        input: ElementType,
    },
    /// Where the array has no element stands the identity, as the other type has it.
    #[error("{other} cannot hold the identity of {instance}: choose an operator such as 'sum' or 'xor', or one type")]
    NoIdentity {
        /// The operator on what is scanned.
        instance: Instance,
        /// What is loaded or published.
        other: ElementType,
    },
}

impl Problem {
    /// The scan of an array of the operator's own values.
    pub const fn plain(instance: Instance) -> Self {
        Self(Kind::Numbers(Numbers::plain(instance)))
    }

    /// The scan of other numbers: each is converted when it is loaded, published and stored. Integers wrap, floats are
    /// rounded.
    ///
    /// # Errors
    /// When a type is not one of numbers, a float would become an integer, what is scanned has less than 4 bytes, or what is
    /// loaded or published cannot hold the operator's identity.
    pub fn converting(
        instance: Instance,
        input: ElementType,
        published: ElementType,
        output: ElementType,
    ) -> Result<Self, NoSuchProblem> {
        let problem = Self(Kind::Numbers(Numbers { instance, input, published, output }));
        if problem.is_plain() {
            return Ok(problem);
        }
        let state = instance.element();
        if let Some(other) = [input, state, published, output].into_iter().find(|element| !element.is_number()) {
            return Err(NoSuchProblem::NotANumber(other));
        }
        for (from, to) in [(input, state), (state, published), (published, state), (state, output)] {
            if from.is_float() && to.is_integer() {
                return Err(NoSuchProblem::FloatToInteger { from, to });
            }
        }
        if state.bytes() < 4 {
            return Err(NoSuchProblem::NarrowState(state));
        }
        let identity = instance.identity_bytes();
        let held_by = |other| converted(state, &identity, other);
        let is_kept_by =
            |other| held_by(other).and_then(|held| converted(other, &held, state)).as_ref() == Some(&identity);
        // The spine pads with the identity of its own type.
        let of_spine = Instance::new(published, instance.operator())?.identity_bytes();
        for (other, is_kept) in [(input, true), (published, held_by(published) == Some(of_spine))] {
            if !is_kept || !is_kept_by(other) {
                return Err(NoSuchProblem::NoIdentity { instance, other });
            }
        }
        Ok(problem)
    }

    /// The scan of `input` in the type of `output`: numbers are converted when they are loaded. What has less than 4 bytes is
    /// scanned in 4 and cut when it is stored, which is the same for operators that wrap; another one, such as the largest
    /// of `u32` stored as `u8`, is refused where it could differ. `f16` and `bf16` are scanned in `f32`, and each result is
    /// rounded once.
    ///
    /// # Errors
    /// When the operator is not defined on what is scanned, and as [`Self::converting`].
    pub fn accumulating(operator: Operator, input: ElementType, output: ElementType) -> Result<Self, NoSuchProblem> {
        if input == output && !output.is_half() {
            return Ok(Self::plain(Instance::new(output, operator)?));
        }
        let is_narrow = output.is_integer() && output.bytes() < 4;
        if is_narrow && input.bytes() > output.bytes() {
            let instance = Instance::new(output, operator)?;
            if !instance.wraps() {
                return Err(NoSuchProblem::NarrowOutput { instance, input });
            }
        }
        let state = output.scanned_in();
        Self::converting(Instance::new(state, operator)?, input, state, output)
    }

    /// The plain scan whose tuned choices serve this one: of the type with the most bytes, which its registers and shared
    /// memory hold.
    pub fn tuned_as(self) -> Instance {
        let (widest, operator) = match self.0 {
            Kind::Numbers(numbers) => {
                let types = [numbers.state(), numbers.input, numbers.output];
                let widest = types.into_iter().reduce(|a, b| if b.bytes() > a.bytes() { b } else { a });
                (widest.unwrap_or(numbers.state()), numbers.instance.operator())
            }
            // Two registers a value are no more than narrow values take that are kept one by one.
            Kind::Defined(_) | Kind::SpineOf(_) => match (self.access_bytes(), self.state_bytes()) {
                (..=4, ..=8) => (ElementType::U32, Operator::Sum),
                (..=8, ..=8) => (ElementType::U64, Operator::Sum),
                _ => (ElementType::AffineMap, Operator::Affine),
            },
        };
        Instance::new(widest, operator).unwrap_or(self.instance().unwrap_or(Instance::SUM_OF_WORDS))
    }

    /// What a row of a tuning table calls it: its name, how it is scanned, and the types in CUDA of what is loaded and stored,
    /// as `recurrence of f32, by rows: float, float -> float` or `sum: u8 -> u32`.
    pub fn tuning_name(self) -> String {
        self.tuning_words().collect()
    }

    /// Whether a row of a tuning table calls it so. Nothing is put together for that, because every run asks.
    pub(crate) fn has_tuning_name(self, name: &str) -> bool {
        self.tuning_words().try_fold(name, |rest, word| rest.strip_prefix(word)) == Some("")
    }

    /// That name in pieces.
    fn tuning_words(self) -> impl Iterator<Item = &'static str> {
        let (numbers, defined) = match self.0 {
            Kind::Numbers(numbers) => (Some(numbers), None),
            Kind::Defined(defined) | Kind::SpineOf(defined) => (None, Some(defined)),
        };
        let name = numbers.map(|numbers| numbers.instance.operator().name());
        let name = name.into_iter().chain(defined.into_iter().flat_map(Defined::words_with_others));
        let of_numbers = |element: fn(Numbers) -> ElementType| numbers.map(element).map(ElementType::cuda_type);
        let of_defined = |(name, _)| name;
        let loaded = defined.into_iter().flat_map(Defined::inputs).map(of_defined);
        let loaded = of_numbers(|numbers| numbers.input).into_iter().chain(loaded);
        let stored = defined.into_iter().flat_map(Defined::outputs).map(of_defined);
        let stored = of_numbers(|numbers| numbers.output).into_iter().chain(stored);
        name.chain([":"]).chain(listed(loaded)).chain([" ->"]).chain(listed(stored))
    }

    /// The operator on what is scanned; `None` for what a user has defined.
    pub const fn instance(self) -> Option<Instance> {
        match self.0 {
            Kind::Numbers(numbers) => Some(numbers.instance),
            Kind::Defined(_) | Kind::SpineOf(_) => None,
        }
    }

    /// What a user has defined, of several arrays.
    pub const fn defined(self) -> Option<Defined> {
        match self.0 {
            Kind::Defined(defined) => Some(defined),
            Kind::Numbers(_) | Kind::SpineOf(_) => None,
        }
    }

    /// What is loaded, scanned and stored, where those are numbers.
    pub const fn types(self) -> Option<[ElementType; 3]> {
        match self.0 {
            Kind::Numbers(numbers) => Some([numbers.input, numbers.state(), numbers.output]),
            Kind::Defined(_) | Kind::SpineOf(_) => None,
        }
    }

    /// Whether its partial results are combined in an order that follows from indices alone.
    pub(crate) const fn is_reproducible(self) -> bool {
        matches!(self.0, Kind::Defined(defined) if defined.is_reproducible())
    }

    /// Whether what is kept is stored side by side, and not each element at its place.
    pub(crate) fn is_by_rank(self) -> bool {
        matches!(self.0, Kind::Defined(defined) if defined.is_by_rank())
    }

    /// The bits of keys that are sorted by, if it is no scan but a sort.
    pub(crate) fn key_bits(self) -> Option<KeyBits> {
        self.defined().and_then(Defined::key_bits)
    }

    /// What its keys are, if it is no scan but a sort.
    pub(crate) fn sort_key(self) -> Option<ElementType> {
        self.defined().and_then(Defined::sort_key)
    }

    /// The bins of a histogram, if it is one.
    pub(crate) fn histogram(self) -> Option<Histogram> {
        self.defined().and_then(Defined::histogram)
    }

    /// What puts it onto a stream.
    pub(crate) fn verb(self) -> Verb {
        match self.0 {
            // What its tiles leave is put together as they are.
            Kind::SpineOf(defined) if defined.is_total() => Verb::Total,
            Kind::Numbers(_) | Kind::SpineOf(_) => Verb::Scan,
            Kind::Defined(defined) => defined.verb(),
        }
    }

    /// Whether strategies scan it, and do nothing else.
    pub(crate) fn is_scan(self) -> bool {
        matches!(self.verb(), Verb::Scan | Verb::Compact)
    }

    /// The axis that it runs along, if it scans columns.
    pub(crate) const fn axis(self) -> Option<Axis> {
        match self.0 {
            Kind::Defined(defined) => defined.axis(),
            Kind::Numbers(_) | Kind::SpineOf(_) => None,
        }
    }

    /// Bytes of an element of the first array that is loaded.
    pub fn input_bytes(self) -> usize {
        match self.0 {
            Kind::Numbers(numbers) => numbers.input.bytes(),
            Kind::Defined(defined) => defined.inputs().next().map_or(1, |(_, bytes)| bytes),
            Kind::SpineOf(defined) => defined.state_bytes(),
        }
    }

    /// Bytes of what is scanned.
    pub fn state_bytes(self) -> usize {
        match self.0 {
            Kind::Numbers(numbers) => numbers.state().bytes(),
            Kind::Defined(defined) | Kind::SpineOf(defined) => defined.state_bytes(),
        }
    }

    /// Bytes of what other blocks get: in descriptors, in the spine, in distributed shared memory.
    pub fn published_bytes(self) -> usize {
        match self.0 {
            Kind::Numbers(numbers) => numbers.published.bytes(),
            Kind::Defined(defined) | Kind::SpineOf(defined) => defined.state_bytes(),
        }
    }

    /// Those of them that a packed descriptor holds beside its tag (`used_bytes` in CUDA).
    pub fn packed_bytes(self) -> usize {
        match self.0 {
            Kind::Numbers(_) => self.published_bytes(),
            Kind::Defined(defined) | Kind::SpineOf(defined) => defined.used_bytes(),
        }
    }

    /// Bytes of an element of the first array that is stored.
    pub fn output_bytes(self) -> usize {
        match self.0 {
            Kind::Numbers(numbers) => numbers.output.bytes(),
            Kind::Defined(defined) => defined.outputs().next().map_or(1, |(_, bytes)| bytes),
            Kind::SpineOf(defined) => defined.state_bytes(),
        }
    }

    /// Whether all four types are one.
    pub fn is_plain(self) -> bool {
        matches!(self.0, Kind::Numbers(numbers) if numbers == Numbers::plain(numbers.instance))
    }

    /// Whether a launch may load again what it has stored, because that is what it loads and scans.
    pub fn is_of_one_type(self) -> bool {
        self.types().is_some_and(|[input, state, output]| input == state && state == output)
    }

    /// Bytes that the elements of an access are counted by, the most of input and output (`access_type` in CUDA): a lane
    /// loads and stores the same elements.
    pub fn access_bytes(self) -> usize {
        match self.0 {
            Kind::Numbers(numbers) => numbers.input.bytes().max(numbers.output.bytes()),
            Kind::Defined(defined) => defined.access_bytes(),
            Kind::SpineOf(defined) => defined.state_bytes(),
        }
    }

    /// Bytes of the elements of all loaded arrays at one place.
    pub fn bytes_of_all_inputs(self) -> usize {
        match self.0 {
            Kind::Numbers(numbers) => numbers.input.bytes(),
            Kind::Defined(defined) => defined.inputs().map(|(_, bytes)| bytes).sum(),
            Kind::SpineOf(defined) => defined.state_bytes(),
        }
    }

    /// Bytes of a stage of look-ahead that holds so many elements (`ring_stages` and `staged_arrays` in CUDA): values of 4
    /// bytes go on for a vector, and each of several arrays has lines around it.
    pub fn stage_bytes(self, elements: u64) -> u64 {
        const LINE: u64 = abi::LOOKBACK_CACHE_LINE_BYTES as u64;
        match self.0 {
            Kind::Defined(defined) => {
                let part = |bytes: u64| bytes.next_multiple_of(LINE) + 3 * LINE;
                let arrays = defined.inputs().map(|(_, bytes)| part(elements * bytes as u64));
                arrays.chain(defined.has_bits().then(|| part(elements / 8))).sum()
            }
            Kind::Numbers(_) | Kind::SpineOf(_) => {
                let bytes = self.input_bytes() as u64;
                elements * bytes + if bytes == 4 { LINE } else { 0 }
            }
        }
    }

    /// The scan of the tiles' totals.
    pub fn of_spine(self) -> Self {
        match self.0 {
            // There is one: what is scanned and what is published are both integers, or both floats.
            Kind::Numbers(Numbers { instance, published, .. }) => {
                Instance::new(published, instance.operator()).map_or(self, Self::plain)
            }
            Kind::Defined(defined) | Kind::SpineOf(defined) => Self(Kind::SpineOf(defined.with_final_state(false))),
        }
    }

    /// The problem whose kernels compute this one bit for bit, as [`Instance::canonical`].
    pub fn canonical(self) -> Self {
        match self.0 {
            Kind::Numbers(numbers) if self.is_plain() => Self::plain(numbers.instance.canonical()),
            Kind::Defined(defined) => Self(Kind::Defined(defined.compiled())),
            _ => self,
        }
    }

    /// The problem's type in CUDA: the first template parameter of its kernels.
    pub fn cuda_type(self) -> String {
        match self.0 {
            Kind::Numbers(Numbers { instance, .. }) if self.is_plain() => {
                format!("::lookback::plain<{}>", instance.cuda_type())
            }
            Kind::Numbers(Numbers { instance, input, published, output }) => {
                let [input, published, output] = [input, published, output].map(ElementType::cuda_type);
                format!("::lookback::converting<{}, {input}, {published}, {output}>", instance.cuda_type())
            }
            Kind::Defined(defined) => defined.cuda_type(false),
            Kind::SpineOf(defined) => defined.cuda_type(true),
        }
    }

    /// Whether kernels may find numbers wrong that the device alone knows.
    #[cfg(feature = "cuda")]
    pub(crate) fn has_findings(self) -> bool {
        let is_told = |defined: Defined| defined.has_bits() || defined.is_counted() || defined.verb() == Verb::Expand;
        matches!(self.0, Kind::Defined(defined) if is_told(defined))
    }

    /// Whether its type is declared in [`Self::declarations`].
    pub(crate) fn is_declared_apart(self) -> bool {
        !matches!(self.0, Kind::Numbers(_))
    }

    /// The text in which that type is declared, behind the kernel's own file; empty where the kernels' sources have it.
    pub(crate) fn declarations(self) -> String {
        match self.0 {
            Kind::Numbers(_) => String::new(),
            Kind::Defined(defined) | Kind::SpineOf(defined) => defined.text(),
        }
    }
}

impl From<Defined> for Problem {
    fn from(defined: Defined) -> Self {
        Self(Kind::Defined(defined))
    }
}

/// Types in CUDA, a blank before the first and commas between them.
fn listed(types: impl Iterator<Item = &'static str>) -> impl Iterator<Item = &'static str> {
    types.enumerate().flat_map(|(index, name)| [if index == 0 { " " } else { ", " }, own_name(name)])
}

/// A number of one type in another, as C++ converts it; `None` where a float is no small whole number and would become an
/// integer.
fn converted(from: ElementType, bytes: &[u8], to: ElementType) -> Option<Vec<u8>> {
    let (reader, writer) = (from.float(), to.float());
    let read = |float: &Float| (float.read)(bytes);
    let whole = match reader.map(read) {
        Some(value) if writer.is_none() => (value == f64::from(value as i8)).then_some(i128::from(value as i8))?,
        Some(_) => 0,
        None => from.integer(bytes),
    };
    let mut converted = whole.to_le_bytes()[..to.bytes()].to_vec();
    if let Some(float) = writer {
        (float.write)(reader.map_or(whole as f64, read), &mut converted);
    }
    Some(converted)
}

impl From<Instance> for Problem {
    fn from(instance: Instance) -> Self {
        Self::plain(instance)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Numbers(Numbers { instance, .. }) if self.is_plain() => instance.fmt(formatter),
            Kind::Numbers(Numbers { instance, input, published, output }) => {
                // What differs from the elements that are scanned.
                let told = |action: &str, element: ElementType| match element == instance.element() {
                    true => String::new(),
                    false => format!(", {action} as {element}"),
                };
                let (published, stored) = (told("published", published), told("stored", output));
                formatter.pad(&format!("{instance} of {input}{published}{stored}"))
            }
            Kind::Defined(defined) => defined.fmt(formatter),
            Kind::SpineOf(defined) => formatter.pad(&format!("{defined}, totals of tiles")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(element: ElementType, operator: Operator) -> Instance {
        Instance::new(element, operator).unwrap()
    }

    #[test]
    fn what_is_loaded_is_scanned_in_the_type_of_the_output() {
        use ElementType::{AffineMap, BicyclicPair, F32, F64, I32, I64, U8, U16, U32, U64};
        let of = Problem::accumulating;
        assert_eq!(of(Operator::Sum, F32, F32), Ok(Problem::plain(instance(F32, Operator::Sum))));
        for (input, output) in [(U8, U32), (I32, I64), (F32, F64), (U8, F32), (U64, U32), (F64, F32), (I64, F32)] {
            let sum = instance(output, Operator::Sum);
            assert_eq!(of(Operator::Sum, input, output), Problem::converting(sum, input, output, output));
            let tuned = of(Operator::Sum, input, output).unwrap().tuned_as();
            assert_eq!(tuned.element().bytes(), input.bytes().max(output.bytes()), "{input} to {output}");
        }
        // Scanned in four bytes, of which two are stored.
        let narrow = of(Operator::Sum, U8, U16).unwrap();
        assert_eq!((narrow.types(), narrow.tuned_as().element()), (Some([U8, U32, U16]), U32));
        assert!(of(Operator::Xor, U32, U8).is_ok() && of(Operator::Max, U8, U16).is_ok());
        // 300 cut to 8 bits is 44, which is not the largest of 300 and 200.
        let largest = NoSuchProblem::NarrowOutput { instance: instance(U8, Operator::Max), input: U32 };
        assert_eq!(of(Operator::Max, U32, U8), Err(largest));
        assert!(matches!(of(Operator::Xor, U32, F32), Err(NoSuchProblem::NoSuchInstance(_))));
        assert!(matches!(of(Operator::Sum, F32, U32), Err(NoSuchProblem::FloatToInteger { .. })));
        assert!(matches!(of(Operator::Affine, BicyclicPair, AffineMap), Err(NoSuchProblem::NotANumber(_))));
    }

    #[test]
    fn a_tuning_table_calls_a_problem_by_its_name_and_its_arrays() {
        use crate::element::{Definition, Segments};
        use ElementType::{F16, F32, I32, U8, U16, U32, U64};
        let defined = |definition: Definition| definition.define().unwrap();
        let sums = defined(Definition::of_numbers(Operator::Sum, I32, I32).unwrap());
        let recurrence = defined(Definition::linear_recurrence::<f32>().unwrap());
        let rows = Segments::Rows { have_states: false };
        let totals = || Definition::totals_by_key(U32, Operator::Sum, I32, I32).unwrap();
        let named: Vec<(Problem, &str)> = vec![
            (Problem::accumulating(Operator::Sum, U8, U32).unwrap(), "sum: u8 -> u32"),
            (Problem::accumulating(Operator::Sum, U8, U16).unwrap(), "sum: u8 -> u16"),
            (Problem::accumulating(Operator::Max, F16, F16).unwrap(), "max: f16 -> f16"),
            (Problem::plain(instance(F32, Operator::Sum)), "sum: float -> float"),
            (recurrence.into(), "recurrence of f32: float, float -> float"),
            (recurrence.in_segments(rows).into(), "recurrence of f32, by rows: float, float -> float"),
            (recurrence.reversed(true).into(), "recurrence of f32, reversed: float, float -> float"),
            (sums.in_segments(rows).strided().into(), "i32 sum, by rows, strided: int -> int"),
            (sums.in_segments(Segments::Keys(U64)).into(), "i32 sum, by key: u64, int -> int"),
            (sums.in_segments(Segments::HeadFlags).into(), "i32 sum, by head flags: u8, int -> int"),
            (sums.in_segments(Segments::Offsets).into(), "i32 sum, by offsets: int -> int"),
            (sums.reproducible().into(), "i32 sum, reproducible: int -> int"),
            (defined(totals()).into(), "i32 sum: u32, int -> int"),
            (defined(totals().others_behind()).into(), "i32 sum, others behind: u32, int -> int"),
            (defined(Definition::partition::<u8>("return x;")).into(), "selection of u8, others apart: u8 -> u8, u8"),
            (defined(Definition::select::<u8>("return x;")).into(), "selection of u8: u8 -> u8"),
            (defined(Definition::sort::<u32>().unwrap().with::<u8>("a")).into(), "sort of u32: u32, u8 -> u32, u8"),
            (defined(Definition::byte_histogram::<u8, u64>().unwrap()).into(), "histogram of u8: u8 -> u64"),
            (defined(Definition::owners::<u32>()).into(), "owners as u32: -> u32"),
        ];
        for (problem, name) in &named {
            assert_eq!(problem.tuning_name(), *name);
            for (other, other_name) in &named {
                assert_eq!(problem.has_tuning_name(other_name), problem == other, "{name}, {other_name}");
            }
            let beside = [&name[1..], &name[..name.len() - 1], &format!("{name} "), ""];
            assert!(!beside.iter().any(|beside| problem.has_tuning_name(beside)), "{name}");
        }
        // How many elements there are, and who counts them, is none of it.
        let select = defined(Definition::select::<u8>("return x;"));
        assert!(Problem::from(select.of_length(1 << 40).counted()).has_tuning_name("selection of u8: u8 -> u8"));
        // What the laboratory selects is what users select.
        #[cfg(feature = "lab")]
        for (of_laboratory, of_user) in [
            (Definition::below_middle(F32).unwrap(), Definition::select::<f32>("return x > 1;")),
            (Definition::repeated_of(F32), Definition::repeated::<f32>()),
        ] {
            let [of_laboratory, of_user] = [of_laboratory, of_user].map(|of| Problem::from(defined(of)).tuning_name());
            assert_eq!(of_laboratory, of_user);
        }
    }

    #[test]
    fn halves_are_scanned_in_f32() {
        use ElementType::{BF16, F16, F32, F64, U8, U32};
        let of = Problem::accumulating;
        for (input, output) in [(F16, F16), (BF16, BF16), (F16, BF16), (F32, F16), (F64, BF16), (U8, F16)] {
            let sum = instance(F32, Operator::Sum);
            assert_eq!(of(Operator::Sum, input, output), Problem::converting(sum, input, F32, output));
            assert_eq!(of(Operator::Sum, input, output).unwrap().published_bytes(), 4, "{input} to {output}");
        }
        let sums = of(Operator::Sum, F16, F16).unwrap();
        assert_eq!((sums.tuned_as().element(), sums.access_bytes(), sums.is_plain()), (F32, 2, false));
        assert_eq!(of(Operator::Sum, F16, F64).unwrap().types(), Some([F16, F64, F64]));
        assert!(matches!(of(Operator::Sum, F16, U32), Err(NoSuchProblem::FloatToInteger { .. })));
        assert!(matches!(of(Operator::Xor, F16, F16), Err(NoSuchProblem::NoSuchInstance(_))));
        // No scan is in halves, nor is a spine.
        for &half in ElementType::HALVES {
            let refused = Instance::new(half, Operator::Sum).unwrap_err();
            assert!(refused.to_string().contains("scanned in f32"), "{refused}");
            let of_spine = Problem::converting(instance(F32, Operator::Sum), F32, half, F32);
            assert_eq!(of_spine, Err(NoSuchProblem::NoSuchInstance(refused)));
            let float = half.float().unwrap();
            for value in [1.0 + 2.0 * float.unit_roundoff, float.largest, f64::NEG_INFINITY] {
                let mut bytes = vec![0; half.bytes()];
                (float.write)(value, &mut bytes);
                assert_eq!((float.read)(&bytes), value, "{half}");
            }
            assert_eq!(2.0 * float.unit_roundoff, 2_f64.powi(1 - float.digits as i32), "{half}");
        }
    }

    #[test]
    fn where_the_array_ends_stands_the_identity_if_the_input_has_it() {
        use ElementType::{F16, F32, F64, I8, I32, U8, U32};
        let of = Problem::accumulating;
        for (operator, input, output) in [
            (Operator::Min, F16, F64),
            (Operator::Max, F64, F16),
            (Operator::Product, U8, U32),
            (Operator::Product, U8, F16),
            // -1 is all bits.
            (Operator::And, I8, U32),
            (Operator::Min, I8, U32),
            (Operator::Max, U8, U32),
        ] {
            assert!(of(operator, input, output).is_ok(), "{operator} of {input} in {output}");
        }
        for (operator, input, output) in
            [(Operator::Max, I8, I32), (Operator::And, U8, U32), (Operator::Min, U8, U32), (Operator::Max, U8, F32)]
        {
            let refused = Err(NoSuchProblem::NoIdentity { instance: instance(output, operator), other: input });
            assert_eq!(of(operator, input, output), refused);
        }
    }

    #[test]
    fn types_that_no_kernel_could_convert_are_refused() {
        use ElementType::{AffineMap, F32, F64, I32, U8, U16, U32};
        let sum = instance(U32, Operator::Sum);
        assert_eq!(Problem::converting(sum, U32, U32, U32), Ok(Problem::plain(sum)));
        assert_eq!(Problem::converting(sum, AffineMap, U32, U32), Err(NoSuchProblem::NotANumber(AffineMap)));
        let bytes = instance(U8, Operator::Sum);
        assert_eq!(Problem::converting(bytes, U32, U8, U8), Err(NoSuchProblem::NarrowState(U8)));
        let least = instance(U32, Operator::Min);
        assert_eq!(
            Problem::converting(least, U8, U32, U32),
            Err(NoSuchProblem::NoIdentity { instance: least, other: U8 })
        );
        // The largest of nothing is 0 in u32 and not in i32.
        let largest = instance(U32, Operator::Max);
        let refused = Err(NoSuchProblem::NoIdentity { instance: largest, other: I32 });
        assert_eq!(Problem::converting(largest, U32, I32, U32), refused);
        let floats = instance(F32, Operator::Sum);
        assert_eq!(
            Problem::converting(floats, U8, F64, U32),
            Err(NoSuchProblem::FloatToInteger { from: F32, to: U32 })
        );
        assert!(Problem::converting(floats, U8, F64, F64).is_ok());

        let widening = Problem::converting(sum, U8, U32, U16).unwrap();
        assert!(!widening.is_plain() && widening.canonical() == widening);
        assert_eq!((widening.access_bytes(), widening.of_spine()), (2, Problem::plain(sum)));
        assert_eq!(
            widening.cuda_type(),
            "::lookback::converting<::lookback::operators::sum<::lookback::u32>, ::lookback::u8, ::lookback::u32, ::lookback::u16>"
        );
    }
}
