//! Scans that a user writes down: several arrays, a state of one's own, and the text of CUDA C++ that leads from one to the
//! next (`cuda/problem/defined.cuh`).

mod text;

use super::{Axis, Element, ElementType, Instance, WholeNumber};
use crate::abi;
use bytemuck::Pod;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// What an array of a [`Definition`] holds: every [`Element`], and any type of 1, 2, 4, 8 or 16 bytes that the definition's
/// declarations give to CUDA under this name. Arrays are told from each other by name and size.
pub trait ArrayElement: Pod {
    /// The type in CUDA C++.
    const CUDA_TYPE: &'static str;
}

impl<T: Element> ArrayElement for T {
    const CUDA_TYPE: &'static str = T::ELEMENT.cuda_type();
}

/// A type as CUDA knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CudaType {
    name: String,
    bytes: usize,
}

impl CudaType {
    pub(super) fn of<T: ArrayElement>() -> Self {
        Self { name: T::CUDA_TYPE.to_owned(), bytes: size_of::<T>() }
    }

    /// The name that people know it by.
    pub(super) fn own_name(&self) -> &str {
        own_name(&self.name)
    }
}

/// Of numbers whose type is chosen at run time.
impl From<ElementType> for CudaType {
    fn from(element: ElementType) -> Self {
        Self { name: element.cuda_type().to_owned(), bytes: element.bytes() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Array {
    name: String,
    element: CudaType,
    /// Whether the text is told where runs of equal elements begin and end.
    is_in_runs: bool,
}

impl Array {
    fn of(name: &str, element: impl Into<CudaType>) -> Self {
        Self { name: name.to_owned(), element: element.into(), is_in_runs: false }
    }

    fn element(&self) -> (&str, usize) {
        (&self.element.name, self.element.bytes)
    }
}

/// What becomes of elements that are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Others {
    Dropped,
    Apart,
    Behind,
}

/// Which elements are stored, side by side, where it is not each at its own place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Selection {
    keep: String,
    /// Where a group begins, of which one element is kept; none where each that is kept counts for itself.
    begin: Option<String>,
    others: Others,
    /// Whether each element is in a group, of which the last one is kept.
    keeps_last: bool,
}

/// The keys, of the first array, by which elements are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Sorting {
    key: ElementType,
    is_descending: bool,
    bits: KeyBits,
}

/// The bits of keys that are sorted by, from the lowest, those below the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyBits {
    /// The lowest.
    pub first: u32,
    /// One above the highest.
    pub end: u32,
}

impl KeyBits {
    /// Digits that they are sorted by, one after the other.
    pub const fn passes(self) -> u32 {
        self.end.saturating_sub(self.first).div_ceil(abi::LOOKBACK_DIGIT_BITS)
    }

    /// Those of a digit, the lowest one of number 0.
    pub fn of_pass(self, pass: u32) -> Self {
        let first = self.first + pass * abi::LOOKBACK_DIGIT_BITS;
        Self { first, end: self.end.min(first + abi::LOOKBACK_DIGIT_BITS) }
    }
}

/// Into which bin an element falls, and what becomes of the counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Binning {
    bin: String,
    histogram: Histogram,
}

/// The bins of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Histogram {
    /// How many there are.
    pub bins: u32,
    /// Whether each count has those of the bins before it, too.
    pub is_cumulated: bool,
}

/// What is done with the elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    /// They are scanned, and what is stored stands where they stood.
    Placed,
    Selection(Selection),
    Sorting(Sorting),
    Binning(Binning),
    /// Each is an item that has as many places as offsets say.
    Expansion,
    Scatter {
        /// Where each goes.
        place: String,
    },
    /// Several of these at once, which is refused.
    Mixed,
}

impl Kind {
    /// Names that the text has beside those of the arrays.
    const fn told_names(&self) -> &'static [&'static str] {
        match self {
            Self::Expansion => &["i", "item", "rank"],
            Self::Binning(_) | Self::Scatter { .. } => &["i"],
            _ => &["i", "state"],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Combining {
    /// An operator of the table.
    Table(Instance),
    /// How many elements are kept: there is no state of the user's.
    Count,
    /// How many elements are kept, and how many there are since the last one that was, which are the state that `store` has.
    Length,
    Text {
        identity: String,
        combine: String,
        is_commutative: bool,
    },
}

/// A scan in the user's words. What is text is CUDA C++, compiled when the scan is run for the first time; an error of the
/// compiler names the lines of the text.
///
/// The text is a part of the program, trusted as code in `unsafe` is: it runs on the GPU, and with
/// [`HostScanner`](crate::lab::host_scanner::HostScanner) in this process, and nothing keeps it within its arrays. Never make
/// it of what others say.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use lookback::element::Definition;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// struct Map {
///     factor: f32,
///     addend: f32,
/// }
/// // h[i] = a[i] · h[i−1] + b[i]
/// let recurrence = Definition::new::<Map>("recurrence", "map")
///     .declare("struct map { float factor; float addend; };")
///     .identity("{1, 0}")
///     .combine("return {left.factor * right.factor, right.factor * left.addend + right.addend};")
///     .input::<f32>("a")
///     .input::<f32>("b")
///     .load("return {a, b};")
///     .output::<f32>("h")
///     .store("h = state.addend;")
///     .define()?;
/// assert_eq!(recurrence.to_string(), "recurrence");
/// # Ok::<(), lookback::element::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Definition {
    name: String,
    declarations: String,
    state: CudaType,
    combining: Combining,
    inputs: Vec<Array>,
    outputs: Vec<Array>,
    load: String,
    store: String,
    kind: Kind,
    /// Where those that are not kept go, if they have arrays of their own.
    apart: Vec<Array>,
}

/// A definition that no kernel can be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// What is to be a name in CUDA C++ is none, or stands for two things.
    #[error(
        "the definition of '{definition}' calls an array '{name}': give each array a name of letters, digits and '_' of its own"
    )]
    Name {
        /// The definition.
        definition: String,
        /// What it says.
        name: String,
    },
    /// A part of it is missing.
    #[error("the definition of '{definition}' has no {part}: call `{call}`")]
    Missing {
        /// The definition.
        definition: String,
        /// What is missing.
        part: &'static str,
        /// What adds it.
        call: &'static str,
    },
    /// What is two things at once, or a thing that there is not: elements that are kept twice over, a sort by bits that keys do not
    /// have, a histogram of no bins.
    #[error("the definition of '{definition}' {what}")]
    Kind {
        /// The definition.
        definition: String,
        /// What is wrong, and what to call.
        what: &'static str,
    },
    /// More arrays than a kernel is given.
    #[error("the definition of '{definition}' has {count} arrays on one side; there are at most {most}")]
    TooManyArrays {
        /// The definition.
        definition: String,
        /// Its arrays.
        count: usize,
        /// As many are possible.
        most: usize,
    },
    /// Elements that do not fill lines of 16 bytes, or a state that has no room.
    #[error("the definition of '{definition}' has {what} of {bytes} bytes; {possible}")]
    Bytes {
        /// The definition.
        definition: String,
        /// What has so many bytes.
        what: String,
        /// How many.
        bytes: usize,
        /// What is possible.
        possible: &'static str,
    },
}

/// What a side of a definition may lack, its arrays and their text, each with what adds it.
const INPUTS: [&str; 4] = ["array to load", "input", "state of an element", "load"];
const OUTPUTS: [&str; 4] = ["array to store", "output", "text that stores", "store"];
const MIXED: &str = "is two things at once: a scan has a state, `load` and `store`, a `filter` says what to `keep`, a `sort` has \
                     arrays `with` its keys and nothing else, what is `binned` has inputs and no other output, an `expansion` and \
                     what is `scattered` have `store` and no state";

/// Arrays of one side: one less of the inputs is the user's, for the one that tells where segments begin.
const MOST_ARRAYS: usize = abi::LOOKBACK_MAXIMUM_ARRAYS as usize;
const MOST_STATE_BYTES: usize = abi::LOOKBACK_MAXIMUM_STATE_BYTES as usize;

impl Definition {
    /// A scan of states of the Rust type `State`, which is called `cuda_type` in CUDA C++ and has the same layout there.
    pub fn new<State: Pod>(name: impl Into<String>, cuda_type: impl Into<String>) -> Self {
        Self::of_states(name.into(), cuda_type.into(), size_of::<State>())
    }

    /// The same of states of so many bytes.
    pub(super) fn of_states(name: String, cuda_type: String, bytes: usize) -> Self {
        Self {
            name,
            declarations: String::new(),
            state: CudaType { name: cuda_type, bytes },
            combining: Combining::Text { identity: String::new(), combine: String::new(), is_commutative: false },
            inputs: Vec::new(),
            outputs: Vec::new(),
            load: String::new(),
            store: String::new(),
            kind: Kind::Placed,
            apart: Vec::new(),
        }
    }

    /// A compaction: no scan of the user's, but the elements that [`Self::keep`] names, stored side by side in their order. Put
    /// onto a stream by `compact`.
    ///
    /// ```
    /// use lookback::element::Definition;
    ///
    /// // Of pairs those whose weight is positive, and where they stood.
    /// let heavy = Definition::filter("heavy")
    ///     .input::<u32>("x")
    ///     .input::<f32>("weight")
    ///     .keep("return weight > 0;")
    ///     .output::<u32>("kept")
    ///     .output::<u64>("index")
    ///     .store("kept = x; index = i;")
    ///     .define()?;
    /// assert_eq!(heavy.to_string(), "heavy");
    /// # Ok::<(), lookback::element::DefinitionError>(())
    /// ```
    pub fn filter(name: impl Into<String>) -> Self {
        let counted = Self::of_states(name.into(), String::from("u32"), 4);
        Self { combining: Combining::Count, ..counted }.keep("")
    }

    /// No scan, but the sort of an array of keys of a type of numbers into another one.
    pub(super) fn sort_of(key: ElementType) -> Self {
        let counted = Self::of_states(format!("sort of {key}"), String::from("u32"), 4);
        let bits = KeyBits { first: 0, end: 8 * key.bytes() as u32 };
        let kind = Kind::Sorting(Sorting { key, is_descending: false, bits });
        Self { combining: Combining::Count, kind, ..counted }.input_of("key", key).output_of("sorted", key)
    }

    /// No scan, but a histogram: how many elements of the inputs fall into each of `bins` bins, of which there is at least 1.
    /// Statements of CUDA C++ return the number of the bin; they have the inputs' elements by their names, and the place `i`. A
    /// number of `bins` or more is not counted. A block counts up to 8192 bins in shared memory; of more, each element is added to its
    /// count in the device's memory, which takes longer. There is one output, `counts`, with an element of 4 or 8 bytes for each bin.
    /// Put onto a stream by `histogram`.
    ///
    /// ```
    /// use lookback::element::Definition;
    ///
    /// let levels = Definition::binned::<u32>("levels of grey", 256, "return (red + green + blue) / 3;")
    ///     .input::<u8>("red")
    ///     .input::<u8>("green")
    ///     .input::<u8>("blue")
    ///     .cumulated()
    ///     .define()?;
    /// # Ok::<(), lookback::element::DefinitionError>(())
    /// ```
    pub fn binned<C: WholeNumber>(name: impl Into<String>, bins: u32, bin: &str) -> Self {
        let counted = Self::of_states(name.into(), String::from("u32"), 4);
        let kind = Kind::Binning(Binning { bin: bin.to_owned(), histogram: Histogram { bins, is_cumulated: false } });
        Self { combining: Combining::Count, kind, ..counted }.output::<C>("counts")
    }

    /// Of a [`Self::binned`]: each count has those of the bins before it, too.
    #[must_use]
    pub fn cumulated(mut self) -> Self {
        match &mut self.kind {
            Kind::Binning(binning) => binning.histogram.is_cumulated = true,
            other => *other = Kind::Mixed,
        }
        self
    }

    /// No scan, but what offsets share out: each of several items has places, from its offset to the next item's, and each place
    /// is given what [`Self::store`] says. Its statements have the place, `i`, the item that it belongs to, `item`, how many of the
    /// item's places stand before it, `rank` (all `u64`), and the item's elements of the inputs, of which there may be none.
    /// Items may have no places. The offsets are those of [`offsets`](crate::run::Run::offsets); outputs have as many elements as
    /// the last one says, or more, which stay as they are. Put onto a stream by `expand`.
    ///
    /// ```
    /// use lookback::element::Definition;
    ///
    /// // The edges of a graph in sparse rows, each with both of its ends.
    /// let edges = Definition::expansion("edges")
    ///     .input::<u32>("vertex")
    ///     .output::<u32>("from")
    ///     .output::<u32>("number")
    ///     .store("from = vertex; number = static_cast<u32>(rank);")
    ///     .define()?;
    /// # Ok::<(), lookback::element::DefinitionError>(())
    /// ```
    pub fn expansion(name: impl Into<String>) -> Self {
        let counted = Self::of_states(name.into(), String::from("u32"), 4);
        Self { combining: Combining::Count, kind: Kind::Expansion, ..counted }
    }

    /// No scan, but elements that go where they say: statements of CUDA C++ return the place (`u64`) in the outputs, of the inputs'
    /// elements by their names and the place `i` where they stood; [`Self::store`] has the same. What goes to a place that the
    /// outputs do not have is not stored, and other places stay as they are. Of several elements that go to one place any one is stored
    /// in each output, or of elements of 16 bytes halves of two. Put onto a stream by `scatter`.
    ///
    /// ```
    /// use lookback::element::Definition;
    ///
    /// // Elements with a flag, to the places that an exclusive sum of the flags gave them.
    /// let flagged = Definition::scattered("flagged", "return flag != 0 ? place : ~0ull;")
    ///     .input::<f32>("x")
    ///     .input::<u8>("flag")
    ///     .input::<u32>("place")
    ///     .output::<f32>("y")
    ///     .store("y = x;")
    ///     .define()?;
    /// # Ok::<(), lookback::element::DefinitionError>(())
    /// ```
    pub fn scattered(name: impl Into<String>, place: &str) -> Self {
        let counted = Self::of_states(name.into(), String::from("u32"), 4);
        Self { combining: Combining::Count, kind: Kind::Scatter { place: place.to_owned() }, ..counted }
    }

    /// An array more whose elements go with the keys of a [`Self::sort`], into one more output.
    ///
    /// ```
    /// use lookback::element::Definition;
    ///
    /// let by_weight = Definition::sort::<f32>()?.with::<u64>("owner").descending().define()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with<T: ArrayElement>(self, name: &str) -> Self {
        self.with_of(name, CudaType::of::<T>())
    }

    /// The same of a type that is chosen at run time.
    pub(crate) fn with_of(self, name: &str, element: impl Into<CudaType>) -> Self {
        let element = element.into();
        self.input_of(name, element.clone()).output_of(&format!("sorted_{name}"), element)
    }

    /// Sorts from the largest key to the smallest. Equal keys stay in their order all the same.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.change_sorting(|sorting| sorting.is_descending = true);
        self
    }

    /// Sorts by these bits of the keys alone, counted from the lowest. They are the bits of a number that is ordered as the keys
    /// are: of integers with a sign the highest bit is turned, and of floats all bits of those below 0.
    #[must_use]
    pub fn bits(mut self, bits: std::ops::Range<u32>) -> Self {
        self.change_sorting(|sorting| sorting.bits = KeyBits { first: bits.start, end: bits.end });
        self
    }

    fn change_sorting(&mut self, change: impl FnOnce(&mut Sorting)) {
        match &mut self.kind {
            Kind::Sorting(sorting) => change(sorting),
            other => *other = Kind::Mixed,
        }
    }

    /// The scan of one array of numbers into another one by an operator of the table, on numbers of a third type.
    pub(super) fn of_types(name: String, operator: Instance, types: [ElementType; 3]) -> Self {
        let [input, state, output] = types;
        Self {
            name,
            declarations: String::new(),
            state: CudaType::from(state),
            combining: Combining::Table(operator),
            inputs: vec![Array::of("x", input)],
            outputs: vec![Array::of("y", output)],
            load: String::from("return static_cast<state_type>(x);"),
            store: format!("y = static_cast<{}>(state);", output.cuda_type()),
            kind: Kind::Placed,
            apart: Vec::new(),
        }
    }

    /// Text before everything else: types, and functions marked `DEVICE`. Numbers of the crate are `u8`, `u16`, `u32` and
    /// `u64` there.
    #[must_use]
    pub fn declare(mut self, text: &str) -> Self {
        self.declarations.push_str(text);
        self.declarations.push('\n');
        self
    }

    /// The expression of the state that changes none it is combined with.
    #[must_use]
    pub fn identity(mut self, expression: &str) -> Self {
        if let Combining::Text { identity, .. } = self.combining_text() {
            expression.clone_into(identity);
        }
        self
    }

    /// Statements that return the combination of `left` and `right`, the states of two neighbouring stretches: associative.
    #[must_use]
    pub fn combine(mut self, text: &str) -> Self {
        if let Combining::Text { combine, .. } = self.combining_text() {
            text.clone_into(combine);
        }
        self
    }

    /// A filter that is given an operator counts no more; then it lacks groups, and is refused.
    fn combining_text(&mut self) -> &mut Combining {
        if self.is_told_by_bits() {
            self.combining = Combining::Text { identity: String::new(), combine: String::new(), is_commutative: false };
        }
        &mut self.combining
    }

    /// Says that `left` and `right` may be exchanged, which is faster. It is believed.
    #[must_use]
    pub fn commutative(mut self) -> Self {
        if let Combining::Text { is_commutative, .. } = &mut self.combining {
            *is_commutative = true;
        }
        self
    }

    /// An array more that is loaded, under a name that `load` has for its element.
    #[must_use]
    pub fn input<T: ArrayElement>(self, name: &str) -> Self {
        self.input_of(name, CudaType::of::<T>())
    }

    /// The same of an array of runs of equal neighbours: the text has, beside the element `x`, `x_begins` and `x_ends`, which
    /// say whether it is the first or the last one of its run. Elements are compared by `!=`, in which a NaN differs from all; of
    /// a type of your own, declare `DEVICE bool operator!=`.
    /// For [`Self::filter`] and [`Self::groups`].
    #[must_use]
    pub fn input_in_runs<T: ArrayElement>(mut self, name: &str) -> Self {
        self.inputs.push(Array { is_in_runs: true, ..Array::of(name, CudaType::of::<T>()) });
        self
    }

    /// The same of a type that is chosen at run time, in front of the others.
    #[must_use]
    pub(super) fn first_input_in_runs_of(mut self, name: &str, element: ElementType) -> Self {
        self.inputs.insert(0, Array { is_in_runs: true, ..Array::of(name, element) });
        self
    }

    /// Likewise of an array that is stored, by statements before those of the others.
    #[must_use]
    pub(super) fn first_output_of(mut self, name: &str, element: ElementType, store: &str) -> Self {
        self.outputs.insert(0, Array::of(name, element));
        self.store = format!("{store}\n{}", self.store);
        self
    }

    /// Statements that return whether an element is kept, of a [`Self::filter`]: of the inputs' elements by their names, and the
    /// place `i`. They are run more than once, and have to give the same each time.
    #[must_use]
    pub fn keep(mut self, text: &str) -> Self {
        self.change_selection(|selection| {
            text.clone_into(&mut selection.keep);
            selection.keeps_last = false;
        });
        self
    }

    /// What is scanned becomes a selection.
    fn change_selection(&mut self, change: impl FnOnce(&mut Selection)) {
        if self.kind == Kind::Placed {
            let (keep, begin) = (String::new(), None);
            self.kind = Kind::Selection(Selection { keep, begin, others: Others::Dropped, keeps_last: false });
        }
        match &mut self.kind {
            Kind::Selection(selection) => change(selection),
            other => *other = Kind::Mixed,
        }
    }

    /// Stores one element of each group instead of one of each place: `begin`, statements as those of [`Self::load`] and of
    /// their inputs, return whether a group begins with an element, whose state is combined with none before it, and `keep`
    /// whether it is the one that is stored of its group. No element may be kept before the first group, which would be stored in
    /// front of the outputs, and one of each group is to be; of a group without one anything is stored. In `store` the inputs' elements are there, too, and `is_reversed`, whether the scan is. Put onto a stream by `compact`.
    #[must_use]
    pub fn groups(mut self, begin: &str, keep: &str) -> Self {
        self.change_selection(|selection| {
            keep.clone_into(&mut selection.keep);
            selection.begin = Some(begin.to_owned());
            selection.keeps_last = false;
        });
        self
    }

    /// A [`Self::filter`] whose `store` has a `state`: how many elements there are since the one that was kept before, the one
    /// that is kept included; since the first of all, where it is the first that is.
    pub(super) fn filter_with_lengths(name: String) -> Self {
        Self { combining: Combining::Length, ..Self::filter(name) }
    }

    /// The groups are runs of the input of that name, of each of which the last element is kept.
    #[must_use]
    pub(super) fn runs(mut self, name: &str) -> Self {
        self = self.groups(&format!("return {name}_begins;"), &format!("return {name}_ends;"));
        self.change_selection(|selection| selection.keeps_last = true);
        self
    }

    /// Stores the elements that a [`Self::filter`] does not keep as well, in their order, into arrays of their own: one more of
    /// each output, behind all of them, so that there may be two outputs. They are as many as there are elements, less the number
    /// of those that are kept.
    #[must_use]
    pub fn others_apart(self) -> Self {
        self.with_others(Others::Apart)
    }

    /// The same into the same arrays, behind those that are kept, from the last place on: the first of them stands last, as
    /// CUB's `DevicePartition` has it.
    #[must_use]
    pub fn others_behind(self) -> Self {
        self.with_others(Others::Behind)
    }

    fn with_others(mut self, others: Others) -> Self {
        self.change_selection(|selection| selection.others = others);
        self
    }

    /// The same of a type that is chosen at run time.
    #[must_use]
    pub(crate) fn input_of(mut self, name: &str, element: impl Into<CudaType>) -> Self {
        self.inputs.push(Array::of(name, element));
        self
    }

    /// Likewise [`Self::output`].
    #[must_use]
    pub(super) fn output_of(mut self, name: &str, element: impl Into<CudaType>) -> Self {
        self.outputs.push(Array::of(name, element));
        self
    }

    /// Statements that return the state of the element at `i`, of the inputs' elements by their names.
    #[must_use]
    pub fn load(mut self, text: &str) -> Self {
        text.clone_into(&mut self.load);
        self
    }

    /// An array more that is stored, under a name that `store` has for its element.
    #[must_use]
    pub fn output<T: ArrayElement>(self, name: &str) -> Self {
        self.output_of(name, CudaType::of::<T>())
    }

    /// Statements that give each output its element at `i`, of `state`, the result of the scan there; of a [`Self::filter`],
    /// which has no state, and of [`Self::groups`] of the inputs' elements, too.
    #[must_use]
    pub fn store(mut self, text: &str) -> Self {
        text.clone_into(&mut self.store);
        self
    }

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
            is_reproducible: false,
            is_total: false,
            is_strided: false,
            is_long: matches!(definition.kind, Kind::Binning(_)) && definition.outputs[0].element.bytes == 8,
        })
    }

    fn check(&self) -> Result<(), DefinitionError> {
        if !matches!(self.kind, Kind::Selection(_)) && self.inputs.iter().any(|array| array.is_in_runs) {
            return self.refused(
                "asks where runs begin and end, and stores each element at its own place: call `groups`, or `filter` it",
            );
        }
        let is_no_scan = matches!(self.combining, Combining::Count) && self.load.is_empty();
        match &self.kind {
            Kind::Placed => {
                self.check_combining()?;
                self.check_side(&self.inputs, &self.load, INPUTS)?;
                self.check_side(&self.outputs, &self.store, OUTPUTS)?;
            }
            Kind::Selection(selection) => self.check_selection(selection)?,
            Kind::Mixed => return self.refused(MIXED),
            _ if !is_no_scan => return self.refused(MIXED),
            Kind::Sorting(sorting) => self.check_sorting(sorting)?,
            Kind::Binning(binning) => self.check_binning(binning)?,
            Kind::Expansion => self.check_side(&self.outputs, &self.store, OUTPUTS)?,
            Kind::Scatter { place } => {
                self.check_side(
                    &self.inputs,
                    place,
                    ["array to load", "input", "text that gives the place", "scattered"],
                )?;
                self.check_side(&self.outputs, &self.store, OUTPUTS)?;
            }
        }
        self.check_arrays()
    }

    fn refused(&self, what: &'static str) -> Result<(), DefinitionError> {
        Err(DefinitionError::Kind { definition: self.name.clone(), what })
    }

    fn missing(&self, part: &'static str, call: &'static str) -> Result<(), DefinitionError> {
        Err(DefinitionError::Missing { definition: self.name.clone(), part, call })
    }

    /// Arrays of one side and the text that goes with them; `lacks`: what both are called, each with what adds it.
    fn check_side(&self, arrays: &[Array], text: &str, lacks: [&'static str; 4]) -> Result<(), DefinitionError> {
        let [array, adds_array, part, adds_part] = lacks;
        if arrays.is_empty() {
            return self.missing(array, adds_array);
        }
        if text.trim().is_empty() { self.missing(part, adds_part) } else { Ok(()) }
    }

    fn check_combining(&self) -> Result<(), DefinitionError> {
        let Combining::Text { identity, combine, .. } = &self.combining else { return Ok(()) };
        if identity.trim().is_empty() {
            return self.missing("identity", "identity");
        }
        if combine.trim().is_empty() { self.missing("way to combine two states", "combine") } else { Ok(()) }
    }

    fn check_selection(
        &self,
        Selection { keep, begin, others, keeps_last }: &Selection,
    ) -> Result<(), DefinitionError> {
        self.check_combining()?;
        if keep.trim().is_empty() || begin.as_ref().is_some_and(|begin| begin.trim().is_empty()) {
            return self.missing("text that says what is kept", if begin.is_some() { "groups" } else { "keep" });
        }
        let counts = self.is_told_by_bits();
        if counts == begin.is_some() || counts && !self.load.is_empty() {
            return self.refused(
                "counts what is kept and combines states, too: begin with `filter` and `keep`, or with a state and `groups`",
            );
        }
        if begin.is_some() && *others != Others::Dropped && !keeps_last {
            return self
                .refused("has groups, of which one element each is stored: leave out what becomes of the others");
        }
        let [array, adds_array, ..] = INPUTS;
        let kept = [array, adds_array, "text that says what is kept", "keep"];
        let (text, lacks) = if counts { (keep, kept) } else { (&self.load, INPUTS) };
        self.check_side(&self.inputs, text, lacks)?;
        self.check_side(&self.outputs, &self.store, OUTPUTS)
    }

    /// Keys and what goes with them, and nothing else.
    fn check_sorting(
        &self,
        Sorting { key, bits: KeyBits { first, end }, .. }: &Sorting,
    ) -> Result<(), DefinitionError> {
        let elements = |arrays: &[Array]| arrays.iter().map(|array| array.element.clone()).collect::<Vec<_>>();
        let is_plain = self.inputs.first().is_some_and(|keys| keys.element == CudaType::from(*key))
            && elements(&self.inputs) == elements(&self.outputs)
            && [&self.store, &self.declarations].iter().all(|text| text.is_empty());
        if !is_plain {
            return self.refused(MIXED);
        }
        if first >= end || *end as usize > 8 * key.bytes() {
            return self.refused(
                "sorts by bits that its keys do not have, or by none: `bits` takes a range of at least one, from 0 for the lowest",
            );
        }
        Ok(())
    }

    /// Inputs, the text, and one array of counts.
    fn check_binning(&self, Binning { bin, histogram }: &Binning) -> Result<(), DefinitionError> {
        let has_counts = matches!(&self.outputs[..], [counts] if matches!(counts.element.bytes, 4 | 8));
        if !has_counts || !self.store.is_empty() {
            return self.refused(MIXED);
        }
        if histogram.bins == 0 {
            return self.refused("counts what falls into bins: there is at least 1");
        }
        self.check_side(&self.inputs, bin, ["array to load", "input", "text that gives the bin", "binned"])
    }

    /// Their number, names and bytes.
    fn check_arrays(&self) -> Result<(), DefinitionError> {
        let definition = || self.name.clone();
        for (count, most) in [(self.inputs.len(), MOST_ARRAYS - 1), (self.stored().count(), MOST_ARRAYS)] {
            if count > most {
                return Err(DefinitionError::TooManyArrays { definition: definition(), count, most });
            }
        }
        let told = |name: &str| ["begins", "ends"].map(|end| format!("{name}_{end}"));
        let told: Vec<_> =
            self.inputs.iter().filter(|array| array.is_in_runs).flat_map(|array| told(&array.name)).collect();
        let mut names: HashSet<_> = self.kind.told_names().iter().copied().collect();
        names.extend(told.iter().map(String::as_str));
        for Array { name, element, .. } in self.inputs.iter().chain(&self.outputs) {
            let is_word = name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
            if !is_word || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !names.insert(name) {
                return Err(DefinitionError::Name { definition: definition(), name: name.clone() });
            }
            if !matches!(element.bytes, 1 | 2 | 4 | 8 | 16) {
                let possible = "elements of an array have 1, 2, 4, 8 or 16: take an array for each part";
                let (what, bytes) = (format!("elements '{name}'"), element.bytes);
                return Err(DefinitionError::Bytes { definition: definition(), what, bytes, possible });
            }
        }
        if !(1..=MOST_STATE_BYTES).contains(&self.state.bytes) {
            let possible = "a state has 1 to 32";
            let (what, bytes) = (String::from("states"), self.state.bytes);
            return Err(DefinitionError::Bytes { definition: definition(), what, bytes, possible });
        }
        Ok(())
    }

    /// Whether what is scanned are counts that follow from a bit of each element, so that there is no state of the user's.
    const fn is_told_by_bits(&self) -> bool {
        matches!(self.combining, Combining::Count | Combining::Length)
    }

    /// The outputs whose widths bound accesses, as those of the inputs do: all, but of a total, and where what is kept is stored by
    /// rank and its state is no more than a count.
    fn beside_inputs(&self, is_total: bool) -> &[Array] {
        if is_total || self.is_told_by_bits() { &[] } else { &self.outputs }
    }

    /// The arrays that are stored.
    fn stored(&self) -> impl Iterator<Item = &Array> {
        self.outputs.iter().chain(&self.apart)
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
        (are_vectors && !self.is_strided && !self.is_reproducible).then(|| self.in_segments(Segments::Narrow(columns)))
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

    /// Bytes of the user's state; of a filter those of the count.
    pub const fn own_state_bytes(self) -> usize {
        match self.definition.0.combining {
            Combining::Count | Combining::Length => self.count_type().bytes(),
            Combining::Table(_) | Combining::Text { .. } => self.definition.0.state.bytes * self.segments.together(),
        }
    }

    /// Bytes of what stands behind the state in what is scanned: the mark of a segment, or a count of groups or of what is kept
    /// (`marked` in `cuda/problem/defined.cuh`, `counted` in `cuda/problem/by_rank.cuh`).
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
        let Self { is_reversed, is_counted, is_reproducible, .. } = self;
        let count = self.count_type().cuda_type();
        let problem = match self.definition.0.kind {
            Kind::Sorting(Sorting { key, is_descending, .. }) => {
                let key = key_type(key);
                format!("::lookback::sorted<::own::text, ::lookback::{key}, {is_descending}, {count}, {is_counted}>")
            }
            Kind::Binning(_) => format!("::lookback::binned<::own::text, {count}, {is_counted}>"),
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
                format!("::lookback::defined<{own}, {segments}, {is_reversed}, {is_counted}, {is_reproducible}>")
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

/// A type of the crate in CUDA without where it is from, as a user writes it.
pub(crate) fn own_name(cuda_type: &str) -> &str {
    cuda_type.trim_start_matches("::lookback::")
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
    pub(super) fn words_with_others(self) -> impl Iterator<Item = &'static str> {
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
        assert!(
            text.contains("#line 1 \"the loading of 'u32 sum of u8, published as u32, stored as u32'\"\nreturn"),
            "{text}"
        );
    }
}
