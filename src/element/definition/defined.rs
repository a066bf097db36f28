//! Definitions that were checked and kept, and how they are scanned.

use super::{
    Array, Combining, Definition, DefinitionError, Histogram, KeyBits, Kind, Others, Selection, Sorting, places_of,
};
use crate::abi;
use crate::element::{Axis, ElementType};
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

impl Definition {
    /// Checks it and keeps it for the rest of the process, so that the scan is compared and copied as a number is.
    ///
    /// # Errors
    /// When a part is missing, a name is none, or there are more arrays or bytes than kernels take.
    pub fn define(mut self) -> Result<Defined, DefinitionError> {
        if matches!(self.kind, Kind::Selection(Selection { others: Others::Apart, .. })) {
            let other = |array: &Array| Array { name: format!("others of {}", array.name), ..array.clone() };
            self.apart = self.outputs.iter().map(other).collect();
        }
        self.check()?;
        static KNOWN: Mutex<Option<HashSet<&'static Definition>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let definition = match known.get(&self) {
            Some(definition) => definition,
            None => {
                let kept: &'static Self = Box::leak(Box::new(self));
                known.insert(kept);
                kept
            }
        };
        Ok(Defined {
            definition: Kept(definition),
            segments: Segments::One,
            is_reversed: false,
            is_counted: false,
            has_final_state: false,
            is_reproducible: false,
            is_total: false,
            is_strided: false,
            is_long: matches!(definition.kind, Kind::Binning(_)) && definition.outputs[0].element.bytes == 8,
        })
    }
}

/// How the segments of an array are told, each of which is scanned by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Segments {
    /// There is one.
    One,
    /// Rows of a number of elements that the launch says; with a state at the ends of each, if they have states.
    Rows { have_states: bool },
    /// Runs of equal keys, in an array of this type.
    Keys(ElementType),
    /// An array of bytes, other than 0 where one begins.
    HeadFlags,
    /// From each of several offsets to the next, of which a launch before makes bits.
    Offsets,
    /// Columns, which a kernel of their own keeps apart.
    Columns(Axis),
    /// So many columns of a narrow matrix, whose rows are taken as elements (`cuda/problem/narrow.cuh`).
    Narrow(usize),
}

impl Segments {
    fn cuda_type(self) -> String {
        match self {
            Self::One | Self::Narrow(_) => String::from("::lookback::one_segment"),
            Self::Columns(axis) => format!("::lookback::columns_of_tensor<{}>", axis.columns_of_thread()),
            Self::Rows { have_states } => format!("::lookback::equal_rows<{have_states}>"),
            Self::Keys(key) => format!("::lookback::equal_keys<{}>", key.cuda_type()),
            Self::HeadFlags => String::from("::lookback::head_flags"),
            Self::Offsets => String::from("::lookback::by_offsets"),
        }
    }

    /// The elements of the array that tells them, if one does.
    pub(crate) fn array(self) -> Option<ElementType> {
        match self {
            Self::One | Self::Rows { .. } | Self::Offsets | Self::Columns(_) | Self::Narrow(_) => None,
            Self::Keys(key) => Some(key),
            Self::HeadFlags => Some(ElementType::U8),
        }
    }

    /// Whether a mark in a state says where one begins.
    fn mark_states(self) -> bool {
        !matches!(self, Self::One | Self::Columns(_) | Self::Narrow(_))
    }

    /// How many of the user's elements and states are taken as one.
    const fn together(self) -> usize {
        if let Self::Narrow(columns) = self { columns } else { 1 }
    }
}

/// What puts a definition onto a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Scan,
    Compact,
    Sort,
    Histogram,
    Expand,
    Scatter,
    Total,
}

impl Verb {
    /// The functions that do.
    pub const fn calls(self) -> &'static str {
        match self {
            Self::Scan => "`inclusive` or `exclusive`",
            Self::Compact => "`compact`",
            Self::Sort => "`sort`",
            Self::Histogram => "`histogram`",
            Self::Expand => "`expand`",
            Self::Scatter => "`scatter`",
            Self::Total => "`total`",
        }
    }
}

/// A definition that is kept, the same as another one where it is that very one.
#[derive(Debug, Clone, Copy)]
struct Kept(&'static Definition);

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl Eq for Kept {}
impl Hash for Kept {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

/// A scan that was [defined](Definition::define), from one end or the other, whole or in segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Defined {
    definition: Kept,
    segments: Segments,
    is_reversed: bool,
    is_counted: bool,
    /// Whether the state at the last element is stored.
    has_final_state: bool,
    is_reproducible: bool,
    /// Whether all elements are combined into one state, and nothing is stored.
    is_total: bool,
    /// Whether what is kept, sorted or counted may be more than a `u32` counts.
    is_long: bool,
    /// Whether the rows of its arrays may have something between them.
    is_strided: bool,
}

impl Defined {
    /// The scan from the last element to the first.
    #[must_use]
    pub(crate) const fn reversed(self, is_reversed: bool) -> Self {
        Self { is_reversed, ..self }
    }

    #[must_use]
    pub(crate) const fn in_segments(self, segments: Segments) -> Self {
        Self { segments, ..self }
    }

    /// The scan of as many elements as the device's memory says when it begins.
    #[must_use]
    pub(crate) const fn counted(self) -> Self {
        Self { is_counted: true, ..self }
    }

    /// The scan that stores the state at the last element, or of each row, beside its outputs; or not.
    #[must_use]
    pub(crate) const fn with_final_state(self, has_final_state: bool) -> Self {
        Self { has_final_state, ..self }
    }

    /// The scan that combines partial results in an order that follows from indices alone.
    #[must_use]
    pub(crate) const fn reproducible(self) -> Self {
        Self { is_reproducible: true, ..self }
    }

    /// No scan, but the combination of all elements' states.
    #[must_use]
    pub(crate) const fn total(self) -> Self {
        Self { is_total: true, ..self }
    }

    /// Whether it is that.
    pub(crate) const fn is_total(self) -> bool {
        self.is_total
    }

    /// The scan of arrays whose rows may have something between them.
    #[must_use]
    pub(crate) const fn strided(self) -> Self {
        Self { is_strided: true, ..self }
    }

    /// Whether it is that.
    pub(crate) const fn is_strided(self) -> bool {
        self.is_strided
    }

    /// The same of arrays of so many elements, of which what is kept or sorted may be more than a `u32` counts.
    #[must_use]
    pub fn of_length(self, n: u64) -> Self {
        let counts = self.is_by_rank() || self.key_bits().is_some();
        Self { is_long: if counts { n > u64::from(u32::MAX) } else { self.is_long }, ..self }
    }

    /// The bins of a histogram, if it is no scan but one.
    pub(crate) fn histogram(self) -> Option<Histogram> {
        match &self.definition.0.kind {
            Kind::Binning(binning) => Some(binning.histogram),
            _ => None,
        }
    }

    /// How it sorts, if it does.
    fn sorting(self) -> Option<Sorting> {
        match self.definition.0.kind {
            Kind::Sorting(sorting) => Some(sorting),
            _ => None,
        }
    }

    /// What it keeps, if it keeps some elements.
    fn selection(self) -> Option<&'static Selection> {
        match &self.definition.0.kind {
            Kind::Selection(selection) => Some(selection),
            _ => None,
        }
    }

    /// The bits of keys that are sorted by, if it is no scan but a sort.
    pub(crate) fn key_bits(self) -> Option<KeyBits> {
        self.sorting().map(|sorting| sorting.bits)
    }

    /// What its keys are, if it is no scan but a sort.
    pub(crate) fn sort_key(self) -> Option<ElementType> {
        self.sorting().map(|sorting| sorting.key)
    }

    /// Whether what is kept is stored side by side, and not each element at its place.
    pub fn is_by_rank(self) -> bool {
        self.selection().is_some()
    }

    /// What puts it onto a stream.
    pub(crate) fn verb(self) -> Verb {
        match self.definition.0.kind {
            Kind::Placed if self.is_total => Verb::Total,
            Kind::Placed | Kind::Mixed => Verb::Scan,
            Kind::Selection(_) => Verb::Compact,
            Kind::Sorting(_) => Verb::Sort,
            Kind::Binning(_) => Verb::Histogram,
            Kind::Expansion => Verb::Expand,
            Kind::Scatter { .. } => Verb::Scatter,
        }
    }

    /// Whether what is kept and what is not fill the arrays.
    pub(crate) fn fills_outputs(self) -> bool {
        self.selection().is_some_and(|selection| selection.others == Others::Behind)
    }

    /// The type that counts what is kept.
    const fn count_type(self) -> ElementType {
        if self.is_long { ElementType::U64 } else { ElementType::U32 }
    }

    /// Whether what is stored of an element is told how many there are since the one that was kept before.
    pub(crate) const fn has_lengths(self) -> bool {
        matches!(self.definition.0.combining, Combining::Length)
    }

    /// Whether one element of each group is stored.
    pub(crate) fn has_groups(self) -> bool {
        self.selection().is_some_and(|selection| selection.begin.is_some())
    }

    /// Whether its partial results are combined in an order that follows from indices alone.
    pub(crate) const fn is_reproducible(self) -> bool {
        self.is_reproducible
    }

    #[cfg(feature = "cuda")]
    pub(crate) const fn is_counted(self) -> bool {
        self.is_counted
    }

    /// Whether it begins at the last element.
    pub const fn is_reversed(self) -> bool {
        self.is_reversed
    }

    /// Whether it scans segments, each by itself.
    pub fn has_segments(self) -> bool {
        !matches!(self.segments, Segments::One | Segments::Narrow(_))
    }

    /// Whether they are the rows of a matrix.
    pub(crate) fn has_rows(self) -> bool {
        matches!(self.segments, Segments::Rows { .. })
    }

    pub(crate) const fn segments(self) -> Segments {
        self.segments
    }

    /// The axis that it runs along, if it scans columns.
    pub(crate) const fn axis(self) -> Option<Axis> {
        match self.segments {
            Segments::Columns(axis) => Some(axis),
            _ => None,
        }
    }

    /// The scan of `n` elements down the columns of a matrix as one of its rows, if they are vectors of every array: the same arrays,
    /// of as many elements as a column has.
    pub(crate) fn narrow(self, n: u64) -> Option<Self> {
        const VECTOR: usize = abi::LOOKBACK_VECTOR_BYTES as usize;
        let is_one = |axis: &Axis| axis.are_rows_aligned && axis.length.checked_mul(axis.inner) == Some(n);
        let columns = usize::try_from(self.axis().filter(is_one)?.inner).ok()?;
        let widths = self.inputs().chain(self.outputs()).map(|(_, bytes)| bytes).chain([self.own_state_bytes()]);
        let is_vector = |row: usize| row.is_power_of_two() && row <= VECTOR;
        let are_vectors = widths.map(|bytes| bytes.checked_mul(columns)).all(|row| row.is_some_and(is_vector));
        // Strides, an order that follows from indices, and the device's count are told in elements.
        let is_told_in_elements = self.is_strided || self.is_reproducible || self.is_counted;
        (are_vectors && !is_told_in_elements).then(|| self.in_segments(Segments::Narrow(columns)))
    }

    /// One whose kernels are the same: they do not depend on all of an axis.
    pub(crate) fn compiled(self) -> Self {
        self.axis().map_or(self, |axis| self.in_segments(Segments::Columns(axis.compiled())))
    }

    /// Whether segments are told by bits, which a launch before makes.
    pub(crate) fn has_bits(self) -> bool {
        self.segments == Segments::Offsets
    }

    /// Name in CUDA and bytes of an element of each array that is loaded, the one that tells segments first unless it has
    /// bits; those of the user's own begin behind it.
    pub(crate) fn inputs(self) -> impl Iterator<Item = (&'static str, usize)> {
        let telling = self.segments.array().map(|element| (element.cuda_type(), element.bytes()));
        telling.into_iter().chain(self.taken_together(&self.definition.0.inputs))
    }

    /// Likewise of each that is stored.
    pub(crate) fn outputs(self) -> impl Iterator<Item = (&'static str, usize)> {
        self.taken_together(self.definition.0.stored())
    }

    /// An element of each array, or as many as are taken as one.
    fn taken_together(
        self,
        arrays: impl IntoIterator<Item = &'static Array>,
    ) -> impl Iterator<Item = (&'static str, usize)> {
        arrays.into_iter().map(Array::element).map(move |(name, bytes)| (name, bytes * self.segments.together()))
    }

    /// Bytes that the elements of an access are counted by, the most of what lanes load and store in vectors.
    pub(crate) fn access_bytes(self) -> usize {
        let beside = self.taken_together(self.definition.0.beside_inputs(self.is_total));
        self.inputs().chain(beside).map(|(_, bytes)| bytes).max().unwrap_or(1)
    }

    /// Names of the user's arrays, inputs and outputs.
    pub(crate) fn names(self) -> [Vec<&'static str>; 2] {
        let definition = self.definition.0;
        let name = |array: &'static Array| array.name.as_str();
        [definition.inputs.iter().map(name).collect(), definition.stored().map(name).collect()]
    }

    /// What is given beside arrays: name, type in CUDA, bytes, and where they begin among those of all.
    pub(crate) fn parameters(self) -> impl ExactSizeIterator<Item = (&'static str, (&'static str, usize), usize)> {
        let parameters = &self.definition.0.parameters;
        let places: Vec<_> = places_of(parameters).collect();
        parameters.iter().zip(places).map(|(array, place)| (array.name.as_str(), array.element(), place))
    }

    /// Bytes of the user's state; of a filter those of the count.
    pub const fn own_state_bytes(self) -> usize {
        match self.definition.0.combining {
            Combining::Count | Combining::Length => self.count_type().bytes(),
            Combining::Table(_) | Combining::Text { .. } => self.definition.0.state.bytes * self.segments.together(),
        }
    }

    /// Bytes of what stands behind the state in what is scanned: the mark of a segment, or a count of groups or of what is kept
    /// (`marked` in `cuda/problem/segmented.cuh`, `counted` in `cuda/problem/by_rank.cuh`).
    fn bytes_behind(self) -> Option<usize> {
        if self.has_groups() || self.has_lengths() {
            return Some(self.count_type().bytes());
        }
        self.segments.mark_states().then_some(4)
    }

    /// Bytes of what is scanned.
    pub(crate) fn state_bytes(self) -> usize {
        match (self.own_state_bytes(), self.bytes_behind()) {
            (own, None) => own,
            (..=4, Some(..=4)) => 8,
            (own, Some(behind)) => (own.next_multiple_of(behind) + behind).next_multiple_of(16),
        }
    }

    /// Those of them that say something: what stands behind the mark or the count does not.
    pub(crate) fn used_bytes(self) -> usize {
        let own = self.own_state_bytes();
        self.bytes_behind().map_or(own, |behind| own.next_multiple_of(behind) + behind)
    }

    /// Whether `left` and `right` may be exchanged.
    pub fn is_commutative(self) -> bool {
        let begins_anew = self.has_groups() || self.segments.mark_states();
        !begins_anew
            && !self.is_reproducible
            && match &self.definition.0.combining {
                Combining::Count | Combining::Length => true,
                Combining::Table(instance) => instance.operator().is_commutative(),
                Combining::Text { is_commutative, .. } => *is_commutative,
            }
    }

    /// The text that its type is declared in.
    pub(crate) fn text(self) -> String {
        self.definition.0.text(self.count_type(), self.is_reversed, self.is_total)
    }

    /// Its problem in CUDA, or that of its spine.
    pub(crate) fn cuda_type(self, is_spine: bool) -> String {
        let Self { is_reversed, is_counted, is_reproducible, has_final_state, .. } = self;
        let count = self.count_type().cuda_type();
        let problem = match self.definition.0.kind {
            Kind::Sorting(Sorting { key, is_descending, .. }) => {
                let key = key_type(key);
                format!("::lookback::sorted<::own::text, ::lookback::{key}, {is_descending}, {count}, {is_counted}>")
            }
            Kind::Binning(_) => {
                let by_value = if self.definition.0.is_binned_by_value() { "_by_value" } else { "" };
                format!("::lookback::binned{by_value}<::own::text, {count}, {is_counted}>")
            }
            // An expansion's items are counted, not its places.
            Kind::Expansion => format!("::lookback::moved<::own::text, false, {is_counted}>"),
            Kind::Scatter { .. } => format!("::lookback::moved<::own::text, {is_counted}, false>"),
            Kind::Selection(_) => {
                format!("::lookback::by_rank<::own::text, {is_reversed}, {is_counted}, {is_reproducible}>")
            }
            Kind::Placed | Kind::Mixed => {
                let segments = self.segments.cuda_type();
                let segments = if self.is_strided { format!("::lookback::strided<{segments}>") } else { segments };
                let own = match self.segments {
                    Segments::Narrow(columns) => format!("::lookback::narrow<::own::text, {columns}>"),
                    _ => String::from("::own::text"),
                };
                let choices = format!("{is_reversed}, {is_counted}, {is_reproducible}, {has_final_state}");
                format!("::lookback::defined<{own}, {segments}, {choices}>")
            }
        };
        if is_spine { format!("::lookback::plain<typename {problem}::operator_type>") } else { problem }
    }
}

/// What the kernels call the order of such keys (`cuda/problem/sorted.cuh`).
const fn key_type(key: ElementType) -> &'static str {
    match (key.is_float(), key.is_signed()) {
        (true, _) => "keys_are_floats",
        (false, true) => "keys_are_signed",
        (false, false) => "keys_are_unsigned",
    }
}

impl Defined {
    /// Its name and how it is scanned, in pieces.
    fn words(self) -> [&'static str; 5] {
        let segments = match self.segments {
            Segments::One => "",
            Segments::Rows { .. } => ", by rows",
            Segments::Keys(_) => ", by key",
            Segments::HeadFlags => ", by head flags",
            Segments::Offsets => ", by offsets",
            Segments::Columns(_) | Segments::Narrow(_) => ", by columns",
        };
        let direction = if self.is_reversed { ", reversed" } else { "" };
        let order = if self.is_reproducible { ", reproducible" } else { "" };
        let strides = if self.is_strided { ", strided" } else { "" };
        [&self.definition.0.name, segments, strides, direction, order]
    }

    /// The same, and what becomes of elements that are not kept.
    pub(in crate::element) fn words_with_others(self) -> impl Iterator<Item = &'static str> {
        let others = match self.selection().map(|selection| selection.others) {
            None | Some(Others::Dropped) => "",
            Some(Others::Apart) => ", others apart",
            Some(Others::Behind) => ", others behind",
        };
        self.words().into_iter().chain([others])
    }
}

impl fmt::Display for Defined {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.words().concat())
    }
}

#[cfg(test)]
mod tests {
    use super::super::CudaType;
    use super::*;
    use crate::element::Operator;

    fn sums() -> Definition {
        Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::U32).unwrap()
    }

    #[test]
    fn the_same_definition_is_kept_once() {
        assert_eq!(sums().define(), sums().define());
        let other = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::U64).unwrap();
        assert_ne!(sums().define(), other.define());
        let defined = sums().define().unwrap();
        assert_ne!(defined, defined.reversed(true));
        let bytes = |(_, bytes)| bytes;
        assert_eq!(defined.inputs().chain(defined.outputs()).map(bytes).collect::<Vec<_>>(), [1, 4]);
        let by_key = defined.in_segments(Segments::Keys(ElementType::I64));
        assert_eq!((by_key.inputs().map(bytes).collect::<Vec<_>>(), by_key.state_bytes()), (vec![8, 1], 8));
        assert!(defined.is_commutative() && !by_key.is_commutative());
        let maps = Definition::of_numbers(Operator::Affine, ElementType::AffineMap, ElementType::AffineMap).unwrap();
        assert!(!maps.define().unwrap().is_commutative());
    }

    #[test]
    fn rows_of_a_narrow_matrix_are_elements_where_they_are_vectors() {
        let of = |from, axis: Axis| {
            let sums = Definition::of_numbers(Operator::Sum, from, ElementType::F32).unwrap().define().unwrap();
            sums.in_segments(Segments::Columns(axis)).narrow(1 << 12)
        };
        let columns = |inner| Axis::new((1 << 12) / inner, inner);
        let bytes = |defined: Defined| (defined.access_bytes(), defined.state_bytes(), defined.has_segments());
        assert_eq!(of(ElementType::F32, columns(2)).map(bytes), Some((8, 8, false)));
        assert_eq!(of(ElementType::F32, columns(4)).map(bytes), Some((16, 16, false)));
        assert_eq!(of(ElementType::F16, columns(4)).map(bytes), Some((16, 16, false)));
        // Wider than a vector, or none; several matrices; rows beside a vector's boundary.
        for axis in [columns(8), Axis::new(1 << 12, 3), Axis::new(1 << 10, 2)] {
            assert_eq!(of(ElementType::F32, axis), None, "{axis:?}");
        }
        assert_eq!(of(ElementType::F32, Axis { are_rows_aligned: false, ..columns(2) }), None);
    }

    #[test]
    fn what_no_kernel_can_be_made_of_is_refused() {
        let whole = || {
            Definition::new::<[f32; 3]>("triples", "triple")
                .identity("{}")
                .combine("return left;")
                .input::<f32>("x")
                .load("return {x};")
                .output::<f32>("y")
                .store("y = 0;")
        };
        assert!(whole().define().is_ok());
        let missing = |definition: Definition, lacks: &str| match definition.define() {
            Err(DefinitionError::Missing { call, .. }) => assert_eq!(call, lacks),
            other => panic!("{other:?}"),
        };
        missing(whole().identity(" "), "identity");
        missing(whole().combine(""), "combine");
        missing(whole().load(""), "load");
        missing(whole().store(""), "store");
        missing(Definition { inputs: Vec::new(), ..whole() }, "input");
        for name in ["x", "y", "i", "state", "", "1st", "a b", "a;"] {
            let refused = whole().input::<u8>(name).define();
            assert!(matches!(&refused, Err(DefinitionError::Name { name: told, .. }) if told == name), "{refused:?}");
        }
        let many = ["a", "b", "c", "d"].into_iter().fold(whole(), |definition, name| definition.input::<u8>(name));
        assert!(matches!(many.define(), Err(DefinitionError::TooManyArrays { count: 5, most: 4, .. })));
        let wide = Definition { state: CudaType { name: String::from("wide"), bytes: 33 }, ..whole() };
        assert!(matches!(wide.define(), Err(DefinitionError::Bytes { bytes: 33, .. })));
    }

    #[test]
    fn what_is_no_compaction_is_refused() {
        let filter = || {
            let filter = Definition::filter("filter").input_in_runs::<u32>("x").keep("return x_begins;");
            filter.output::<u32>("y").store("y = x;")
        };
        let runs = || Definition::non_trivial_runs::<u32>().unwrap();
        assert!(filter().define().is_ok() && filter().others_apart().define().is_ok() && runs().define().is_ok());
        let names = filter().others_apart().define().unwrap().names();
        assert_eq!(names[1], ["y", "others of y"]);
        let scan = || Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).unwrap();
        for refused in [
            runs().others_apart(),
            runs().others_behind(),
            scan().others_behind().groups("return true;", "return true;"),
            scan().keep("return true;"),
            scan().input_in_runs::<u32>("key"),
            filter().load("return 1;"),
            Definition::run_length_encode::<u32>().unwrap().load("return 1;"),
            filter().identity("0").combine("return left;"),
            filter().groups("return x_begins;", "return x_ends;"),
        ] {
            assert!(matches!(refused.define(), Err(DefinitionError::Kind { .. })));
        }
        assert!(matches!(filter().keep(" ").define(), Err(DefinitionError::Missing { call: "keep", .. })));
        assert!(matches!(
            scan().groups("", "return true;").define(),
            Err(DefinitionError::Missing { call: "groups", .. })
        ));
        assert!(matches!(scan().others_apart().define(), Err(DefinitionError::Missing { call: "keep", .. })));
        let hidden = filter().input::<u8>("x_ends").define();
        assert!(matches!(hidden, Err(DefinitionError::Name { name, .. }) if name == "x_ends"));
        let many = ["a", "b"].into_iter().fold(filter(), |filter, name| filter.output::<u8>(name));
        assert!(many.clone().define().is_ok());
        assert!(matches!(many.others_apart().define(), Err(DefinitionError::TooManyArrays { count: 6, .. })));
    }

    #[test]
    fn a_message_of_the_compiler_speaks_of_the_lines_of_the_text() {
        let text = sums().text(ElementType::U32, false, false);
        assert!(text.contains("#line 1 \"the loading of 'u32 sum of u8'\"\nreturn"), "{text}");
    }
}
