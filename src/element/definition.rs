//! Scans that a user writes down: several arrays, a state of one's own, and the text of CUDA C++ that leads from one to the
//! next (`cuda/problem/defined.cuh`).

pub(super) mod defined;
mod text;

use super::{Element, ElementType, Instance, WholeNumber};
use crate::abi;
use bytemuck::Pod;
use std::collections::HashSet;

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
    /// What each run gives beside arrays: one element each.
    parameters: Vec<Array>,
}

/// Where each of them begins among the bytes of all: at a multiple of its own, and of a word.
fn places_of(parameters: &[Array]) -> impl Iterator<Item = usize> {
    parameters.iter().scan(0_usize, |end, Array { element: CudaType { bytes, .. }, .. }| {
        let place = end.next_multiple_of((*bytes).max(size_of::<u32>()));
        *end = place + bytes;
        Some(place)
    })
}

/// A definition that no kernel can be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// What is to be a name in CUDA C++ is none, or stands for two things.
    #[error(
        "the definition of '{definition}' calls an array or a parameter '{name}': give each a name of letters, digits and '_' of \
         its own"
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
const MOST_PARAMETER_BYTES: usize = abi::LOOKBACK_PARAMETER_BYTES as usize;

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
            parameters: Vec::new(),
        }
    }

    /// No scan of the user's, but one of counts.
    fn counting(name: String) -> Self {
        Self { combining: Combining::Count, ..Self::of_states(name, String::from("u32"), 4) }
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
        Self::counting(name.into()).keep("")
    }

    /// No scan, but the sort of an array of keys of a type of numbers into another one.
    pub(super) fn sort_of(key: ElementType) -> Self {
        let bits = KeyBits { first: 0, end: 8 * key.bytes() as u32 };
        let kind = Kind::Sorting(Sorting { key, is_descending: false, bits });
        let sort = Self { kind, ..Self::counting(format!("sort of {key}")) };
        sort.input_of("key", key).output_of("sorted", key)
    }

    /// No scan, but a histogram: how many elements of the inputs fall into each of `bins` bins, of which there is at least 1.
    /// Statements of CUDA C++ return the number of the bin; they have the inputs' elements by their names, and the place `i`. A
    /// number of `bins` or more is not counted. A block counts up to 8192 bins in shared memory; of more, each element is added to its
    /// count in the device's memory, which takes longer. Of one array of `u8` or `i8` it counts the 256 values, and asks for the bin of
    /// a value once and not for that of each element, unless the statements or the declarations have the word `i`. There is one output,
    /// `counts`, with an element of 4 or 8 bytes for each bin.
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
        let kind = Kind::Binning(Binning { bin: bin.to_owned(), histogram: Histogram { bins, is_cumulated: false } });
        Self { kind, ..Self::counting(name.into()) }.output::<C>("counts")
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
        Self { kind: Kind::Expansion, ..Self::counting(name.into()) }
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
        Self { kind: Kind::Scatter { place: place.to_owned() }, ..Self::counting(name.into()) }
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
            combining: Combining::Table(operator),
            inputs: vec![Array::of("x", input)],
            outputs: vec![Array::of("y", output)],
            load: String::from("return static_cast<state_type>(x);"),
            store: format!("y = static_cast<{}>(state);", output.cuda_type()),
            ..Self::of_states(name, state.cuda_type().to_owned(), state.bytes())
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

    /// What each run gives beside arrays, a number or whatever an array may hold, under a name that `load`, `store`, `keep` and the
    /// other texts that are run for elements have for it; the identity and the combination of states have it not. A kernel is
    /// compiled once, whatever is given: [`parameter`](crate::run::Run::parameter). Side by side they have up to 64 bytes, each at a
    /// multiple of its own size and of 4.
    ///
    /// ```
    /// use lookback::element::Definition;
    ///
    /// let below = Definition::filter("below")
    ///     .parameter::<f32>("limit")
    ///     .input::<f32>("x")
    ///     .keep("return x < limit;")
    ///     .output::<f32>("kept")
    ///     .store("kept = x;")
    ///     .define()?;
    /// # Ok::<(), lookback::element::DefinitionError>(())
    /// ```
    #[must_use]
    pub fn parameter<T: ArrayElement>(self, name: &str) -> Self {
        self.parameter_of(name, CudaType::of::<T>())
    }

    /// The same of a type that is chosen at run time.
    #[must_use]
    pub(super) fn parameter_of(mut self, name: &str, element: impl Into<CudaType>) -> Self {
        self.parameters.push(Array::of(name, element));
        self
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
            && [&self.store, &self.declarations].iter().all(|text| text.is_empty())
            && self.parameters.is_empty();
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
        for Array { name, element, .. } in self.named() {
            let is_word = name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
            if !is_word || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !names.insert(name) {
                return Err(DefinitionError::Name { definition: definition(), name: name.clone() });
            }
            if !matches!(element.bytes, 1 | 2 | 4 | 8 | 16) {
                let possible = "elements and parameters have 1, 2, 4, 8 or 16: take one for each part";
                let (what, bytes) = (format!("'{name}'"), element.bytes);
                return Err(DefinitionError::Bytes { definition: definition(), what, bytes, possible });
            }
        }
        let end = places_of(&self.parameters)
            .zip(&self.parameters)
            .last()
            .map_or(0, |(place, last)| place + last.element.bytes);
        if end > MOST_PARAMETER_BYTES {
            let possible = "side by side, each at a multiple of its own size and of 4, they have up to 64: read more from an array";
            let (what, bytes) = (String::from("parameters"), end);
            return Err(DefinitionError::Bytes { definition: definition(), what, bytes, possible });
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

    /// Whether the bins of a histogram follow from the values of an array of bytes, because no text speaks of the place.
    fn is_binned_by_value(&self) -> bool {
        let is_byte =
            |array: &Array| [ElementType::U8, ElementType::I8].iter().any(|&byte| array.element == byte.into());
        let names_place = |text: &str| {
            text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|word| word == "i")
        };
        match (&self.kind, &self.inputs[..]) {
            (Kind::Binning(Binning { bin, .. }), [array]) if is_byte(array) => {
                !names_place(bin) && !names_place(&self.declarations)
            }
            _ => false,
        }
    }

    /// The outputs whose widths bound accesses, as those of the inputs do: all, but of a total, and where what is kept is stored by
    /// rank and its state is no more than a count.
    fn beside_inputs(&self, is_total: bool) -> &[Array] {
        if is_total || self.is_told_by_bits() { &[] } else { &self.outputs }
    }

    /// What the text has under names.
    fn named(&self) -> impl Iterator<Item = &Array> {
        self.inputs.iter().chain(&self.outputs).chain(&self.parameters)
    }

    /// The arrays that are stored.
    fn stored(&self) -> impl Iterator<Item = &Array> {
        self.outputs.iter().chain(&self.apart)
    }
}

/// A type of the crate in CUDA without where it is from, as a user writes it.
pub(crate) fn own_name(cuda_type: &str) -> &str {
    cuda_type.trim_start_matches("::lookback::")
}
