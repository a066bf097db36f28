//! What the laboratory scans: one row a problem, of which everything else follows: the kernels' problem, the arrays, and where
//! the reference begins anew.

use crate::element::{
    Axis, Defined, Definition, DefinitionError, ElementType, Instance, NoSuchInstance, NoSuchProblem, Operator,
    Problem, Segments,
};
use crate::lab::bins::Bins;
use crate::names::named;
use crate::strategy::call::{Call, Lent, Prepared};
use crate::strategy::plan::ScanRequest;
use crate::strategy::{CallError, Choices, Mode};
use crate::text::{SizeError, parse_count};
use std::fmt;
use std::str::FromStr;

/// What is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combined {
    /// The numbers of one array, by an operator of the table.
    ByOperator,
    /// The same, partial results in an order that follows from indices alone.
    InOrder,
    /// `h[t] = a[t] · h[t−1] + b[t]`, of two arrays.
    AsRecurrence,
    /// Nothing: what is stored is what was loaded.
    Nothing,
    /// Nothing: what is stored is where it was loaded from.
    Places,
    /// The elements of a run of equal neighbours: what they are is stored, and behind all of that how many each has.
    RunLengths,
    /// The same of runs of more than one: where they begin is stored in place of what they are.
    LongerRuns,
}

/// Which elements are stored, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    /// Each at its own place.
    All,
    /// These in front, in their order, and the others behind them from the last place on.
    First(Kept),
    /// These alone, in their order, which fill a part of the output.
    Only(Kept),
    /// All in the order of this part of their bits, and where it is equal in the order in which they stand.
    Sorted(Bits),
    /// All in order, and behind them the elements of a second array that go with them.
    SortedPairs,
    /// None, but how many fall into each of these bins.
    Counted(Bins),
    /// None, but how many fall into each bin or one before it.
    Cumulated(Bins),
    /// Each as often as offsets say, which are of as many elements as there are segments between them.
    Repeated,
    /// Each where an array says.
    Scattered,
}

/// The bits of an element that it is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bits {
    All,
    /// The others show whether elements that are equal in these keep their order.
    UpperHalf,
}

/// What says where an element is stored, if that is not at its own place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranks {
    Kept(Kept),
    Sorted(Bits),
    /// What tells where elements go tells it of every one.
    Told(Telling),
}

/// Which elements are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Those with a flag.
    Flagged,
    /// Those below the middle of their type's range.
    BelowMiddle,
    /// The first of each run of equal neighbours.
    RunBegins,
    /// The last of each run of equal keys.
    RunEnds,
    /// The last of each run of more than one that are equal.
    LongerRunEnds,
    /// Those that are not 0.
    NonZero,
}

/// Where the scan begins anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anew {
    /// Nowhere.
    Never,
    /// With each line of a matrix.
    Each(Line),
    /// With each row of a matrix, which have something between them in what is loaded.
    EachStrided,
    /// With each row, if there is a shape.
    EachRowIfShaped,
    /// Wherever an array tells.
    ToldBy(Telling),
    /// Nowhere; but it is chosen how far apart, on average, elements lie that the array's own values say are kept, or are not.
    ByValues(Share),
}

/// Which share of the elements is kept: one of so many, or all but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    One,
    AllButOne,
}

/// A row of a matrix, or a column of each of so many that lie one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Row,
    Column { matrices: u64 },
}

/// A column of one.
const COLUMN: Line = Line::Column { matrices: 1 };
/// A column of each of several.
const COLUMN_OF_EACH: Line = Line::Column { matrices: 8 };

impl Line {
    const fn plural(self) -> &'static str {
        match self {
            Self::Row => "rows",
            Self::Column { .. } => "columns",
        }
    }

    /// Behind how long it is, in words.
    fn of_each(self) -> String {
        if self.matrices() > 1 { format!(" of each of {} matrices", self.matrices()) } else { String::new() }
    }

    const fn matrices(self) -> u64 {
        match self {
            Self::Row => 1,
            Self::Column { matrices } => matrices,
        }
    }
}

/// A row of the table of problems.
#[derive(Debug, Clone, Copy)]
struct Row {
    combined: Combined,
    anew: Anew,
    stored: Stored,
    is_reversed: bool,
}

impl Row {
    /// The line of a matrix that is scanned by itself, if a matrix can be scanned.
    const fn line(self) -> Option<Line> {
        match self.anew {
            Anew::Each(line) => Some(line),
            Anew::EachStrided | Anew::EachRowIfShaped => Some(Line::Row),
            Anew::Never | Anew::ToldBy(_) | Anew::ByValues(_) => None,
        }
    }
}

/// The table: name on the command line, what is combined, where it begins anew, what is stored, and whether from the last
/// element on. A problem more is a line more.
macro_rules! problems {
    ($($(#[$meta:meta])* $name:ident = $text:literal: $combined:ident, $anew:expr, $stored:expr, reversed: $reversed:literal;)+) => {
        named! {
            /// A problem of the laboratory.
            #[derive(Default)]
            pub enum ProblemKind as "problem" { $($(#[$meta])* $name = $text,)+ }
        }
        impl ProblemKind {
            const fn row(self) -> Row {
                use Anew::{ByValues, Each, EachRowIfShaped, EachStrided, Never, ToldBy};
                use Share::{AllButOne, One};
                use Stored::{All, Counted, Cumulated, First, Only, Repeated, Scattered, Sorted, SortedPairs};
                match self {
                    $(Self::$name => Row {
                        combined: Combined::$combined,
                        anew: $anew,
                        stored: $stored,
                        is_reversed: $reversed,
                    },)+
                }
            }
        }
    };
}
problems! {
    /// One array of numbers, from the first to the last.
    #[default]
    Flat = "flat": ByOperator, Never, All, reversed: false;
    /// From the last to the first.
    Reverse = "reverse": ByOperator, Never, All, reversed: true;
    /// Reproducibly: partial results in an order that follows from indices alone, whatever the operator.
    Reproducible = "reproducible": InOrder, Never, All, reversed: false;
    /// Each row of a matrix by itself.
    Rows = "rows": ByOperator, Each(Line::Row), All, reversed: false;
    /// Each row by itself, from its last element to its first.
    ReverseRows = "reverse-rows": ByOperator, Each(Line::Row), All, reversed: true;
    /// Each row by itself, of the left part of a wider matrix.
    StridedRows = "strided-rows": ByOperator, EachStrided, All, reversed: false;
    /// Each column of a matrix by itself.
    Columns = "columns": ByOperator, Each(COLUMN), All, reversed: false;
    /// Each column by itself, from its last element to its first.
    ReverseColumns = "reverse-columns": ByOperator, Each(COLUMN), All, reversed: true;
    /// Each column of each of 8 matrices, one behind the other, by itself.
    BatchedColumns = "batched-columns": ByOperator, Each(COLUMN_OF_EACH), All, reversed: false;
    /// Each column by itself, reproducibly: partial results in an order that follows from indices and the number of columns.
    ReproducibleColumns = "reproducible-columns": InOrder, Each(COLUMN), All, reversed: false;
    /// Each run of equal neighbouring keys by itself.
    ByKey = "by-key": ByOperator, ToldBy(Telling::Keys), All, reversed: false;
    /// Anew from each element that has a flag.
    HeadFlags = "head-flags": ByOperator, ToldBy(Telling::Flags), All, reversed: false;
    /// Each segment between neighbouring offsets by itself.
    Offsets = "offsets": ByOperator, ToldBy(Telling::Offsets), All, reversed: false;
    /// `h[t] = a[t] · h[t−1] + b[t]`, of one sequence or, with a shape, of one a row.
    Recurrence = "recurrence": AsRecurrence, EachRowIfShaped, All, reversed: false;
    /// `h[t] = a[t] · h[t+1] + b[t]`, likewise.
    ReverseRecurrence = "reverse-recurrence": AsRecurrence, EachRowIfShaped, All, reversed: true;
    /// `h[t] = a[t] · h[t−1] + b[t]` down each column of a matrix.
    RecurrenceColumns = "recurrence-columns": AsRecurrence, Each(COLUMN), All, reversed: false;
    /// `h[t] = a[t] · h[t+1] + b[t]` down each column of a matrix.
    ReverseRecurrenceColumns = "reverse-recurrence-columns": AsRecurrence, Each(COLUMN), All, reversed: true;
    /// `h[t] = a[t] · h[t−1] + b[t]` down each column of each of 8 matrices, one behind the other: (batch, time, channel).
    BatchedRecurrence = "batched-recurrence": AsRecurrence, Each(COLUMN_OF_EACH), All, reversed: false;
    /// `h[t] = a[t] · h[t+1] + b[t]` likewise.
    ReverseBatchedRecurrence = "reverse-batched-recurrence": AsRecurrence, Each(COLUMN_OF_EACH), All, reversed: true;
    /// Elements with a flag in front, in their order, and the others behind them from the last place on.
    Partition = "partition": Nothing, ToldBy(Telling::Flags), First(Kept::Flagged), reversed: false;
    /// The same, where most have a flag.
    PartitionMost = "partition-most": Nothing, ToldBy(Telling::Gaps), First(Kept::Flagged), reversed: false;
    /// The totals of runs of equal neighbouring keys, in their order.
    ReduceByKey = "reduce-by-key": ByOperator, ToldBy(Telling::Keys), Only(Kept::RunEnds), reversed: false;
    /// The same in front, and what leads to the totals behind them from the last place on.
    TotalsFirst = "totals-first": ByOperator, ToldBy(Telling::Keys), First(Kept::RunEnds), reversed: false;
    /// The elements below the middle of their type's range, in their order.
    Select = "select": Nothing, ByValues(One), Only(Kept::BelowMiddle), reversed: false;
    /// The same, where most are below it.
    SelectMost = "select-most": Nothing, ByValues(AllButOne), Only(Kept::BelowMiddle), reversed: false;
    /// The first of each run of equal neighbours.
    Unique = "unique": Nothing, ByValues(One), Only(Kept::RunBegins), reversed: false;
    /// The same, where most differ from the one before.
    UniqueMost = "unique-most": Nothing, ByValues(AllButOne), Only(Kept::RunBegins), reversed: false;
    /// Each run of equal neighbours: what its elements are, and how many there are of them in numbers of the same type.
    RunLengthEncode = "run-length-encode": RunLengths, ByValues(One), Only(Kept::RunBegins), reversed: false;
    /// Each run of more than one equal neighbours: where it begins, and how many there are of it, in numbers of 8 bytes.
    NonTrivialRuns = "non-trivial-runs": LongerRuns, ByValues(One), Only(Kept::LongerRunEnds), reversed: false;
    /// The places of the elements that are not 0, in numbers of 8 bytes.
    NonZero = "nonzero": Places, ByValues(One), Only(Kept::NonZero), reversed: false;
    /// All in order.
    Sort = "sort": Nothing, Never, Sorted(Bits::All), reversed: false;
    /// All in the order of the upper half of their bits, and where that is equal in the order in which they stand.
    SortByHalf = "sort-by-half": Nothing, Never, Sorted(Bits::UpperHalf), reversed: false;
    /// All in order, each with an element of a second array.
    SortPairs = "sort-pairs": Nothing, Never, SortedPairs, reversed: false;
    /// How often there is each value of a byte, in numbers of 4 bytes.
    Histogram = "histogram": Nothing, Never, Counted(Bins::ByteValues), reversed: false;
    /// The same, and of all lower values with each.
    CumulatedHistogram = "cumulated-histogram": Nothing, Never, Cumulated(Bins::ByteValues), reversed: false;
    /// How many elements fall into each of 100 bins of the same width.
    EvenHistogram = "even-histogram": Nothing, Never, Counted(Bins::Even), reversed: false;
    /// How many elements lie between neighbouring levels, which are further and further apart.
    HistogramBetween = "histogram-between": Nothing, Never, Counted(Bins::Between), reversed: false;
    /// Each of a few elements as often as offsets say.
    Expand = "expand": Nothing, ToldBy(Telling::Offsets), Repeated, reversed: false;
    /// Each element where an array of places says, which are in random order.
    Scatter = "scatter": Nothing, ToldBy(Telling::Places), Scattered, reversed: false;
}

impl ProblemKind {
    /// Elements of a row or column where nobody says how many: as many as the smallest default comparison has, where there is one
    /// matrix.
    pub const DEFAULT_LINE: u64 = 256;
    /// Elements of a run or of a segment between offsets, or of which one is kept, on average, where nobody says how many.
    pub const DEFAULT_RUN: u64 = 64;

    /// Whether it is the one that nobody names. serde passes a reference.
    pub(crate) fn is_flat(&self) -> bool {
        *self == Self::Flat
    }

    /// Whether a matrix can be scanned: `--shape` means something.
    pub const fn takes_shape(self) -> bool {
        self.row().line().is_some()
    }

    /// Elements of a row or column of a matrix of that shape, whichever is scanned by itself.
    pub const fn line_elements(self, shape: Shape) -> Option<u64> {
        match self.row().line() {
            Some(Line::Row) => Some(shape.columns),
            Some(Line::Column { .. }) => Some(shape.rows),
            None => None,
        }
    }

    /// Elements of all matrices of that shape that there are.
    pub const fn elements(self, shape: Shape) -> u64 {
        match self.row().line() {
            Some(line) => shape.elements() * line.matrices(),
            None => shape.elements(),
        }
    }

    /// Whether it scans nothing but a matrix.
    pub const fn needs_shape(self) -> bool {
        matches!(self.row().anew, Anew::Each(_) | Anew::EachStrided)
    }

    /// Whether there are runs, segments between offsets, or elements of which one is kept, whose average number is chosen.
    pub const fn has_runs(self) -> bool {
        match self.row().anew {
            Anew::ToldBy(telling) => !matches!(telling, Telling::Places),
            Anew::ByValues(_) => true,
            Anew::Never | Anew::Each(_) | Anew::EachStrided | Anew::EachRowIfShaped => false,
        }
    }

    /// Whether an operator of the table is scanned.
    pub const fn has_operator(self) -> bool {
        matches!(self.row().combined, Combined::ByOperator | Combined::InOrder)
    }

    /// Whether each result is the one before times a coefficient, and a number more.
    pub(crate) const fn is_recurrence(self) -> bool {
        matches!(self.row().combined, Combined::AsRecurrence)
    }

    /// Whether it is a scan, or stores what it keeps by rank.
    pub const fn is_scan(self) -> bool {
        matches!(self.row().stored, Stored::All | Stored::First(_) | Stored::Only(_))
    }

    /// The type of what is stored, if it does not follow from what is asked for.
    pub(crate) const fn stored_type(self) -> Option<ElementType> {
        match self.row() {
            Row { stored: Stored::Counted(_) | Stored::Cumulated(_), .. } => Some(COUNT),
            Row { combined: Combined::Places | Combined::LongerRuns, .. } => Some(PLACE),
            _ => None,
        }
    }

    /// The type of what is stored where this one is asked for.
    fn stored(self, element: ElementType) -> ElementType {
        self.stored_type().unwrap_or(element)
    }

    /// What is scanned, as it is told: where nobody chose an operator, nothing is said of one.
    fn instance(
        self,
        element: ElementType,
        made: Result<Instance, NoSuchInstance>,
    ) -> Result<Instance, NoSuchWorkload> {
        made.map_err(|error| match self.has_operator() {
            true => NoSuchProblem::from(error).into(),
            false => NoSuchWorkload::Type {
                kind: self,
                element,
                choices: "a type of numbers that is no half, such as u8, i32 or f64 (halves of sums and recurrences are stored \
                          in sweep files and by tune --problem)",
            },
        })
    }

    /// What counts elements of the type in these bins.
    fn binned(self, bins: Bins, element: ElementType) -> Result<Definition, NoSuchWorkload> {
        bins.definition(element).map_err(|_| NoSuchWorkload::Type { kind: self, element, choices: bins.types() })
    }

    /// Refuses types that it does not have: without an operator nothing is converted, so that there is one.
    fn check_types(self, input: ElementType, element: ElementType) -> Result<(), NoSuchWorkload> {
        if self.has_operator() || input == element || self.stored(input) == element {
            return Ok(());
        }
        Err(NoSuchWorkload::TwoTypes { kind: self, input, element })
    }

    /// Whether there is one input alone, whatever it holds, so that a file can be it.
    pub const fn has_one_input(self) -> bool {
        self.has_operator() && !self.has_runs() && !self.is_strided()
    }

    /// Whether the rows of what is loaded have something between them.
    const fn is_strided(self) -> bool {
        matches!(self.row().anew, Anew::EachStrided)
    }
}

/// Rows and columns of a matrix, written as `4096x16384`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows, each as long as there are columns.
    pub rows: u64,
    /// Elements of a row, at least 1.
    pub columns: u64,
}

/// What is no shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// It has no two sides.
    #[error("write a shape as ROWSxCOLUMNS, such as 4096x16384 or 2^10x512")]
    Form,
    /// A side is no number.
    #[error("write a shape as ROWSxCOLUMNS, such as 4096x16384: {0}")]
    Side(#[from] SizeError),
    /// A row of no elements.
    #[error("a row has at least 1 element; choose more columns")]
    NoColumns,
    /// More elements than any array has.
    #[error("a matrix has at most 2^44 elements; choose fewer rows or columns")]
    TooLarge,
}

impl Shape {
    /// Elements of the matrix.
    pub const fn elements(self) -> u64 {
        self.rows * self.columns
    }
}

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let (rows, columns) = text.trim().split_once('x').ok_or(ShapeError::Form)?;
        let (rows, columns) = (parse_count(rows)?, parse_count(columns)?);
        if columns == 0 {
            return Err(ShapeError::NoColumns);
        }
        let elements = rows.checked_mul(columns).filter(|&elements| elements <= crate::text::LARGEST_SIZE);
        elements.map(|_| Self { rows, columns }).ok_or(ShapeError::TooLarge)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{}", self.rows, self.columns)
    }
}

/// A problem of some types, whose segments have some length: all that decides what is computed, but for the mode and the
/// values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Workload {
    kind: ProblemKind,
    /// On what is stored; of a recurrence its type's sum, whose identity a recurrence begins with.
    instance: Instance,
    input: ElementType,
    segment_elements: Option<u64>,
    /// What the kernels scan; where there are columns, of one of them.
    problem: Problem,
}

/// A problem that no strategy has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchWorkload {
    /// Types that the operator's scan cannot convert.
    #[error(transparent)]
    Problem(#[from] NoSuchProblem),
    /// What the laboratory itself defines is not a definition: an error of this program.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// A type that a problem without an operator does not have.
    #[error("the problem '{kind}' does not take {element}; choose {choices}")]
    Type {
        /// The problem.
        kind: ProblemKind,
        /// What was asked for.
        element: ElementType,
        /// What there is.
        choices: &'static str,
    },
    /// Two types of a problem without an operator.
    #[error(
        "the problem '{kind}' loads and stores one type, not {input} and {element}; leave the type of the input out"
    )]
    TwoTypes {
        /// The problem.
        kind: ProblemKind,
        /// What is loaded.
        input: ElementType,
        /// What is stored.
        element: ElementType,
    },
    /// Segments without a length, or a length where there are none.
    #[error(
        "the problem '{kind}' {}",
        if *is_missing {
            "scans rows, columns or runs of at least 1 element each; say how many by --shape or --run-length"
        } else {
            "scans no rows, columns or runs; leave out how many elements these have"
        }
    )]
    Segments {
        /// The problem.
        kind: ProblemKind,
        /// Whether the length is missing, or one too many.
        is_missing: bool,
    },
}

/// The keys' type: that of most identifiers.
const KEY: ElementType = ElementType::U32;
/// The type of places.
pub(crate) const PLACE: ElementType = ElementType::U64;
/// What a histogram counts in.
const COUNT: ElementType = ElementType::U32;
/// Elements between two rows: of every type whole vectors.
const BETWEEN_ROWS: u64 = 16;

impl Workload {
    /// The scan of `input` in the type of `element` by an operator, which a problem without one does not look at. A histogram of
    /// `input` counts in `u32`, whether `element` is that or the type of the input.
    /// `segment_elements` are those of a row or column; or, on average, of a run, of a segment between offsets, or of those of
    /// which one is kept.
    ///
    /// # Errors
    /// When there is no such scan, or it has no such segments.
    pub fn new(
        kind: ProblemKind,
        operator: Operator,
        input: ElementType,
        element: ElementType,
        segment_elements: Option<u64>,
    ) -> Result<Self, NoSuchWorkload> {
        let operator = if kind.has_operator() { operator } else { Operator::Sum };
        kind.check_types(input, element)?;
        let instance = kind.instance(element, Instance::new(kind.stored(element), operator))?;
        Self::of(kind, instance, input, segment_elements)
    }

    /// The same, with sums that are stored in halves, of which [`Dataset::whole_numbers`](super::dataset::Dataset) makes arrays
    /// that do not overflow.
    ///
    /// # Errors
    /// Likewise.
    pub fn with_halves(
        kind: ProblemKind,
        operator: Operator,
        input: ElementType,
        element: ElementType,
        segment_elements: Option<u64>,
    ) -> Result<Self, NoSuchWorkload> {
        let operator = if kind.has_operator() { operator } else { Operator::Sum };
        // What is copied is no sum, and is compared as the numbers that there are operators on.
        let is_sum = matches!(kind.row().combined, Combined::ByOperator | Combined::InOrder | Combined::AsRecurrence);
        kind.check_types(input, element)?;
        let stored = kind.stored(element);
        let instance = if is_sum { Instance::of_stored(stored, operator) } else { Instance::new(stored, operator) };
        Self::of(kind, kind.instance(element, instance)?, input, segment_elements)
    }

    fn of(
        kind: ProblemKind,
        instance: Instance,
        input: ElementType,
        segment_elements: Option<u64>,
    ) -> Result<Self, NoSuchWorkload> {
        let (element, operator) = (instance.element(), instance.operator());
        let Row { combined, anew, stored, is_reversed } = kind.row();
        let segment_elements = segment_elements.filter(|&elements| elements > 0);
        let segments = match (anew, segment_elements) {
            (Anew::Never | Anew::EachRowIfShaped | Anew::ToldBy(Telling::Places), None) => Segments::One,
            (Anew::Each(_) | Anew::EachStrided | Anew::EachRowIfShaped, Some(_)) => {
                Segments::Rows { have_states: false }
            }
            (Anew::ToldBy(telling), Some(_)) if stored == Stored::All => telling.segments(),
            (
                Anew::ToldBy(Telling::Keys | Telling::Flags | Telling::Gaps | Telling::Offsets) | Anew::ByValues(_),
                Some(_),
            ) => Segments::One,
            (_, length) => return Err(NoSuchWorkload::Segments { kind, is_missing: length.is_none() }),
        };
        let definition = match (stored, combined) {
            (Stored::All, Combined::AsRecurrence) => Definition::linear_recurrence_of(element)?,
            (Stored::All, _) => Definition::of_numbers(operator, input, element)?,
            (Stored::Only(_), Combined::RunLengths) => Definition::runs_with_lengths(element, element)?,
            (Stored::Only(kept), _) => kept.alone(operator, input, element)?,
            (Stored::First(kept), _) => kept.alone(operator, input, element)?.others_behind(),
            (Stored::Sorted(bits), _) => bits.sort(element)?,
            (Stored::SortedPairs, _) => Bits::All.sort(element)?.with_of("value", element),
            (Stored::Counted(bins), _) => kind.binned(bins, input)?,
            (Stored::Cumulated(bins), _) => kind.binned(bins, input)?.cumulated(),
            (Stored::Repeated, _) => Definition::repeated_of(element),
            (Stored::Scattered, _) => Definition::scattered_by(PLACE, element),
        };
        let is_plain =
            combined == Combined::ByOperator && stored == Stored::All && segments == Segments::One && !is_reversed;
        let problem = if is_plain {
            Problem::accumulating(operator, input, element)?
        } else {
            let defined = definition.define()?.in_segments(segments).reversed(is_reversed);
            let defined = if kind.is_strided() { defined.strided() } else { defined };
            if combined == Combined::InOrder { defined.reproducible() } else { defined }.into()
        };
        Ok(Self { kind, instance, input, segment_elements, problem })
    }

    /// Which problem it is.
    pub const fn kind(self) -> ProblemKind {
        self.kind
    }

    /// What is stored, and how it is compared and told: the operator on its type. Of a recurrence the sum.
    pub const fn instance(self) -> Instance {
        self.instance
    }

    /// What is scanned on the way, where that is numbers: the operator on what each element is converted to.
    pub(crate) fn state(self) -> Instance {
        // Where the operator is on what is stored, it is on the wider type of it, too.
        let scanned = self.element().scanned_in();
        let is_converted = self.input != self.element() || self.element().is_half();
        Instance::new(scanned, self.instance.operator()).ok().filter(|_| is_converted).unwrap_or(self.instance)
    }

    /// The operator; a recurrence has none.
    pub fn operator(self) -> Option<Operator> {
        self.kind.has_operator().then_some(self.instance.operator())
    }

    /// What is stored.
    pub const fn element(self) -> ElementType {
        self.instance.element()
    }

    /// What is loaded.
    pub const fn input(self) -> ElementType {
        self.input
    }

    /// What a size in bytes is a number of: what is stored, unless the problem says what that is; then what is loaded.
    #[cfg(feature = "cli")]
    pub(crate) fn sized(self) -> ElementType {
        if self.kind.stored_type().is_some() { self.input } else { self.element() }
    }

    /// Elements of a row or column; or, on average, of a run, of a segment between offsets, or of those of which one is kept;
    /// if there are such.
    pub const fn segment_elements(self) -> Option<u64> {
        self.segment_elements
    }

    /// What the kernels scan of `n` elements, which say how many columns there are.
    pub fn problem(self, n: u64) -> Problem {
        match (self.problem.defined(), self.segment_elements, self.side_by_side(n)) {
            (Some(defined), Some(length), inner @ 2..) => {
                defined.in_segments(Segments::Columns(Axis::new(length, inner))).into()
            }
            // One column is a row.
            _ => self.problem,
        }
    }

    /// Bytes that the elements of an access are counted by, which tiles are chosen by.
    pub(crate) fn access_bytes(self) -> usize {
        self.problem.access_bytes()
    }

    /// Whether it is the scan of one array of an operator's own values into another one, which every strategy has.
    pub fn is_plain(self) -> bool {
        self.problem.is_plain()
    }

    /// Whether there is one right result, whatever the order in which elements are combined.
    #[cfg(feature = "cpu")]
    pub(crate) fn is_exact(self) -> bool {
        match self.kind.row().combined {
            Combined::ByOperator | Combined::InOrder => !self.state().is_rounded(),
            Combined::AsRecurrence => !self.element().is_float(),
            Combined::Nothing | Combined::Places | Combined::RunLengths | Combined::LongerRuns => true,
        }
    }

    /// Whether it is scanned so: the exclusive scan as the inclusive one without each element's own input exists for integer
    /// sums of one array, and what is stored by rank goes by inclusive counts.
    pub fn has_mode(self, mode: Mode) -> bool {
        match mode {
            Mode::Inclusive => true,
            Mode::Exclusive => self.stores_in_place(),
            Mode::InclusiveMinusInput => self.problem.instance().is_some_and(Instance::has_inverse),
        }
    }

    /// Why there is none of a mode that it does not have, in words.
    pub(crate) fn lacks_mode(self) -> &'static str {
        match self.kind {
            kind if !kind.is_scan() => "what is no scan has one result",
            _ if self.is_by_rank() => "what is stored by rank goes by inclusive counts",
            ProblemKind::Flat => "it exists for integer sums only",
            _ => "it exists for integer sums from the first element to the last only",
        }
    }

    /// Whether what is stored of an element stands at its own place.
    pub const fn stores_in_place(self) -> bool {
        matches!(self.kind.row().stored, Stored::All)
    }

    /// Whether the output may be the user's first input: what lies as it does, of the same type.
    pub fn may_be_in_place(self) -> bool {
        self.input == self.element() && self.stores_in_place() && !self.kind.is_strided()
    }

    /// Elements from the begin of a row to that of the next in what is loaded, where there is something between them.
    pub(crate) fn row_stride(self) -> Option<u64> {
        self.segment_elements.filter(|_| self.kind.is_strided()).map(|row| row + BETWEEN_ROWS)
    }

    /// Whether what is stored stands at a rank and not at its own place.
    pub const fn is_by_rank(self) -> bool {
        self.ranks().is_some()
    }

    /// Whether one of [`Self::segment_elements`] is kept, or all but one.
    pub(crate) const fn share(self) -> Share {
        match self.kind.row().anew {
            Anew::ByValues(share) => share,
            Anew::ToldBy(Telling::Gaps) => Share::AllButOne,
            _ => Share::One,
        }
    }

    /// What says which rank that is.
    pub(crate) const fn ranks(self) -> Option<Ranks> {
        match self.kind.row().stored {
            Stored::All | Stored::Counted(_) | Stored::Cumulated(_) => None,
            Stored::First(kept) | Stored::Only(kept) => Some(Ranks::Kept(kept)),
            Stored::Sorted(bits) => Some(Ranks::Sorted(bits)),
            Stored::SortedPairs => Some(Ranks::Sorted(Bits::All)),
            Stored::Repeated => Some(Ranks::Told(Telling::Offsets)),
            Stored::Scattered => Some(Ranks::Told(Telling::Places)),
        }
    }

    /// Whether the elements that are not kept are not stored, so that the output has room for more than is stored.
    pub const fn drops_others(self) -> bool {
        matches!(self.kind.row().stored, Stored::Only(_))
    }

    /// The bins in which elements are counted, and not stored, and whether each counts those before it.
    pub(crate) fn bins(self) -> Option<(Bins, bool)> {
        match self.kind.row().stored {
            Stored::Counted(bins) => Some((bins, false)),
            Stored::Cumulated(bins) => Some((bins, true)),
            _ => None,
        }
    }

    /// Whether places are stored and not elements.
    pub(crate) fn stores_places(self) -> bool {
        self.kind.row().combined == Combined::Places
    }

    /// Whether what is stored is of runs of more than one.
    pub(crate) fn stores_longer_runs(self) -> bool {
        self.kind.row().combined == Combined::LongerRuns
    }

    /// Whether it is stored as it was loaded.
    pub(crate) fn is_copied(self) -> bool {
        self.kind.row().combined == Combined::Nothing && self.bins().is_none()
    }

    /// Whether what is stored of runs is followed by their lengths.
    pub(crate) fn has_run_lengths(self) -> bool {
        matches!(self.kind.row().combined, Combined::RunLengths | Combined::LongerRuns)
    }

    /// Whether there is an array of addends beside that of factors.
    pub(crate) fn has_addends(self) -> bool {
        self.kind.is_recurrence()
    }

    /// Whether the user's arrays are two: factors and addends, or keys and what goes with them.
    pub(crate) fn has_second_input(self) -> bool {
        self.has_addends() || self.kind.row().stored == Stored::SortedPairs
    }

    /// Whether it begins at the last element.
    pub const fn is_reversed(self) -> bool {
        self.kind.row().is_reversed
    }

    /// The lines of the matrix, if one is scanned, and the elements of each.
    fn lines(self) -> Option<(Line, u64)> {
        self.kind.row().line().zip(self.segment_elements)
    }

    /// Elements of a row or column, where a matrix is scanned.
    pub fn line_elements(self) -> Option<u64> {
        self.lines().map(|(_, elements)| elements)
    }

    /// How many scans of `n` elements lie side by side, so that neighbours in memory belong to different ones: of columns all
    /// of a matrix.
    pub(crate) fn side_by_side(self, n: u64) -> u64 {
        match self.lines() {
            Some((Line::Column { matrices }, length)) => (n / length / matrices).max(1),
            _ => 1,
        }
    }

    /// How many matrices lie one behind the other.
    pub(crate) fn matrices(self) -> u64 {
        self.kind.row().line().map_or(1, Line::matrices)
    }

    /// The matrix that `n` elements are, or each of several, where one is scanned.
    pub fn shape(self, n: u64) -> Option<Shape> {
        self.lines().map(|(line, length)| match line {
            Line::Row => Shape { rows: n / length, columns: length },
            Line::Column { matrices } => Shape { rows: length, columns: n / length / matrices },
        })
    }

    /// The fewest elements that are whole rows or columns of a matrix, or of each of several; 1 where none is scanned.
    pub fn least(self) -> u64 {
        self.line_elements().map_or(1, |length| length.saturating_mul(self.matrices()))
    }

    /// How many segments `n` elements are, where no key and no flag tells it: rows, columns, or as many between offsets as give
    /// their average.
    pub fn segments(self, n: u64) -> Option<u64> {
        let is_known = self.lines().is_some() || self.telling() == Some(Telling::Offsets);
        self.segment_elements.filter(|_| is_known).map(|elements| n.div_ceil(elements))
    }

    /// The same in segments of so many elements, of `n` elements or as many more as fill a row or column.
    #[cfg(any(feature = "cpu", test))]
    pub(crate) fn in_segments_of(self, elements: u64, n: u64) -> (Self, u64) {
        let workload = Self { segment_elements: self.segment_elements.and(Some(elements.max(1))), ..self };
        (workload, n.next_multiple_of(workload.least()))
    }

    /// The scan of `to` elements that is most like this one of `from`: of rows as long, if they fit, and of as many columns.
    #[cfg(any(feature = "cpu", test))]
    pub(crate) fn resized(self, from: u64, to: u64) -> (Self, u64) {
        match self.lines() {
            Some((Line::Row, length)) => self.in_segments_of(length.min(to), to),
            Some((Line::Column { matrices }, _)) => {
                let columns = self.side_by_side(from) * matrices;
                let length = (to / columns).max(1);
                self.in_segments_of(length, length * columns)
            }
            None => (self, to),
        }
    }

    /// What a number of elements that the device alone knows has to be a multiple of, where arrays of `n` have room for them: a row, or
    /// an element of each column. None where the kernels take no such number, or where it would change more than how many elements are
    /// scanned: which offsets there are, or how many rows each of several matrices has.
    #[cfg(feature = "cpu")]
    pub(crate) fn counted_in(self, n: u64) -> Option<u64> {
        self.defined()?;
        match self.lines() {
            Some((Line::Row, length)) => Some(length),
            // One column is a row.
            Some((Line::Column { matrices: 1 }, _)) => Some(self.side_by_side(n)).filter(|&columns| columns > 1),
            Some((Line::Column { .. }, _)) => None,
            None => (self.telling() != Some(Telling::Offsets)).then_some(1),
        }
    }

    /// What tells where segments begin, if an array does.
    pub(crate) const fn telling(self) -> Option<Telling> {
        match self.kind.row().anew {
            Anew::ToldBy(telling) => Some(telling),
            Anew::Never | Anew::Each(_) | Anew::EachStrided | Anew::EachRowIfShaped | Anew::ByValues(_) => None,
        }
    }

    /// The definition, where the kernels are given several arrays or another order.
    pub(crate) const fn defined(self) -> Option<Defined> {
        self.problem.defined()
    }

    /// The arrays that are loaded of a scan of `n` elements, with the elements of each: what tells segments, and then the
    /// user's own in the kernels' order.
    pub fn inputs(self, n: u64) -> impl Iterator<Item = (ElementType, u64)> {
        let own = if self.has_second_input() { 2 } else { 1 };
        let told = self.telling().map(|telling| match (telling, telling.segments().array()) {
            (_, Some(element)) => (element, n),
            (Telling::Places, None) => (PLACE, n),
            (_, None) => (offset_type(n), self.segments(n).unwrap_or(0).saturating_add(1)),
        });
        told.into_iter().chain(std::iter::repeat_n((self.input, self.own_elements(n)), own))
    }

    /// Which of [`Self::inputs`] is the user's first, which a scan in place replaces: what tells segments stands before it.
    pub(crate) fn own_place(self) -> usize {
        usize::from(self.telling().is_some())
    }

    /// How far above a boundary each of the inputs begins, in bytes, where the user's first one begins `offset` above it: as
    /// many elements, so that they lie alike.
    pub(crate) fn input_offsets(self, n: u64, offset: u32) -> impl Iterator<Item = u32> {
        let elements = offset / self.input.bytes() as u32;
        self.inputs(n).map(move |(element, _)| elements * element.bytes() as u32 % ScanRequest::OFFSETS)
    }

    /// The run of `n` elements over arrays that lie at these addresses, in the order of [`Self::inputs`]; none where the kernels
    /// are given one array of numbers, or there are no elements.
    pub(crate) fn call(self, n: u64, inputs: &[u64], output: u64) -> Option<Call> {
        let inputs = self.inputs(n).zip(inputs);
        let stride = self.row_stride();
        let lend =
            |((element, elements), &address): ((_, _), &u64)| Lent::of(element, address, elements).strided(stride);
        let inputs = inputs.map(lend).collect();
        let element = self.element();
        let lent = |(array, elements): (usize, u64)| {
            Lent::of(element, output + array as u64 * elements * element.bytes() as u64, elements)
        };
        let outputs = self.outputs(n).enumerate().map(lent).collect();
        let defined = self.problem(n).defined().filter(|_| n > 0);
        let mut call = Call::over(defined?, self.line_elements().unwrap_or(0), inputs, outputs);
        // The middle of the input's range, in a type that may be wider: 0 of numbers with a sign, else their highest bit.
        for (_, (cuda_type, bytes), _) in defined?.parameters() {
            let mut middle = vec![0; bytes];
            middle[self.input.bytes() - 1] = if self.input.has_sign() { 0 } else { 0x80 };
            call.parameter(cuda_type, &middle);
        }
        Some(call)
    }

    /// What is planned for that run, by the strategy and in the configuration of a request of as many elements, and what its
    /// launches are told; none likewise.
    ///
    /// # Errors
    /// What a user of such arrays would be told.
    pub(crate) fn prepare(
        self,
        request: &ScanRequest,
        inputs: &[u64],
        output: u64,
    ) -> Result<Option<Prepared>, CallError> {
        let Some(call) = self.call(request.n, inputs, output) else { return Ok(None) };
        call.prepare(request.mode, &Choices::made_by(request))
    }

    /// How many elements each of the user's own arrays has that is loaded: n, but of what is repeated one for each segment, and of
    /// rows with something between them that as well.
    pub(crate) fn own_elements(self, n: u64) -> u64 {
        let segments = self.segments(n).filter(|_| self.kind.row().stored == Stored::Repeated);
        let strided = self.segments(n).zip(self.row_stride()).map(|(rows, stride)| rows.saturating_mul(stride));
        segments.or(strided).unwrap_or(n)
    }

    /// How many elements each array has that is stored of `n`; they lie one behind the other, and all have one type. Of no elements
    /// nothing is launched, and no kernel stores a count.
    pub fn outputs(self, n: u64) -> impl Iterator<Item = u64> {
        let (elements, arrays) = match self.kind.row().stored {
            Stored::Counted(bins) | Stored::Cumulated(bins) => (if n > 0 { bins.count() as u64 } else { 0 }, 1),
            Stored::SortedPairs => (n, 2),
            _ if self.has_run_lengths() => (n, 2),
            _ => (n, 1),
        };
        std::iter::repeat_n(elements, arrays)
    }

    /// How many elements they have together.
    pub fn output_elements(self, n: u64) -> u64 {
        self.outputs(n).fold(0, u64::saturating_add)
    }

    /// Bytes of these.
    pub fn output_bytes(self, n: u64) -> u64 {
        self.output_elements(n).saturating_mul(self.element().bytes() as u64)
    }

    /// Bytes by definition of a scan of `n` elements: every array that is loaded once and those that are stored once. Where
    /// others are dropped, of the latter as many elements count as are kept on average: n by [`Self::segment_elements`], rounded
    /// up; or where most are kept, all but n by that, rounded down. What is drawn plays no part.
    pub fn bytes(self, n: u64) -> u64 {
        let elements = self.output_elements(n);
        let stored = match (self.segment_elements.filter(|_| self.drops_others()), self.share()) {
            (None, _) => elements,
            // Of runs of 1 to twice as many less one.
            (Some(run), Share::One) if self.stores_longer_runs() => {
                elements.div_ceil(run) * (2 * run - 2) / (2 * run - 1)
            }
            (Some(apart), Share::One) => elements.div_ceil(apart),
            (Some(apart), Share::AllButOne) => elements - elements / apart,
        };
        let between = self.row_stride().map_or(0, |_| self.own_elements(n).saturating_sub(n));
        let all = self.bytes_storing(n, stored);
        all.saturating_sub(between.saturating_mul(self.input.bytes() as u64))
    }

    /// The same with whole outputs: bytes of all of its arrays.
    pub(crate) fn array_bytes(self, n: u64) -> u64 {
        self.bytes_storing(n, self.output_elements(n))
    }

    fn bytes_storing(self, n: u64, stored: u64) -> u64 {
        let arrays = self.inputs(n).chain([(self.element(), stored)]);
        arrays.fold(0, |sum: u64, (element, count)| sum.saturating_add(count.saturating_mul(element.bytes() as u64)))
    }

    /// This workload, if it stores the type that a record says.
    ///
    /// # Errors
    /// When it stores another one: a histogram does not store what it counts.
    pub(crate) fn storing(self, element: ElementType) -> Result<Self, String> {
        let stored = self.element();
        let text = || format!("it says that '{}' stores {element}, which stores {stored}", self.kind);
        if stored == element { Ok(self) } else { Err(text()) }
    }

    /// Why arrays of `n` elements are none of its own, if so.
    pub fn misfit(self, n: u64) -> Option<String> {
        let (line, elements) = self.lines().filter(|_| !n.is_multiple_of(self.least()))?;
        let lines = line.plural();
        Some(format!(
            "{n} elements are no whole {lines} of {elements}{}; name rows and columns by --shape",
            line.of_each()
        ))
    }
}

/// The offsets' type: the narrower one that can say `n`.
const fn offset_type(n: u64) -> ElementType {
    if n <= u32::MAX as u64 { ElementType::U32 } else { ElementType::U64 }
}

/// What tells where segments begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// An array of keys.
    Keys,
    /// An array of flags.
    Flags,
    /// An array of flags of which most are not 0.
    Gaps,
    /// An array of offsets, shorter than the others.
    Offsets,
    /// An array of the places that elements go to: all that there are, each once.
    Places,
}

impl Telling {
    /// What begins anew, where it tells that.
    const fn segments(self) -> Segments {
        match self {
            Self::Keys => Segments::Keys(KEY),
            Self::Flags | Self::Gaps => Segments::HeadFlags,
            Self::Offsets => Segments::Offsets,
            Self::Places => Segments::One,
        }
    }
}

impl Bits {
    /// What sorts by them.
    fn sort(self, element: ElementType) -> Result<Definition, NoSuchProblem> {
        let bits = 8 * element.bytes() as u32;
        let sort = Definition::sort_by(element)?;
        Ok(match self {
            Self::All => sort,
            Self::UpperHalf => sort.bits(bits / 2..bits),
        })
    }
}

impl Kept {
    /// What stores those that are kept, and no others.
    fn alone(self, operator: Operator, input: ElementType, element: ElementType) -> Result<Definition, NoSuchProblem> {
        match self {
            Self::Flagged => Ok(Definition::flagged_of(element)),
            Self::BelowMiddle => Definition::below_middle(element),
            Self::RunBegins => Definition::unique_of(element),
            Self::LongerRunEnds => Definition::non_trivial_runs_of(input),
            Self::RunEnds => Definition::totals_by_key(KEY, operator, input, element),
            Self::NonZero => Definition::nonzero_of(input, PLACE),
        }
    }
}

/// The flat scan of an operator's own values.
impl From<Instance> for Workload {
    fn from(instance: Instance) -> Self {
        let problem = Problem::plain(instance);
        Self { kind: ProblemKind::Flat, instance, input: instance.element(), segment_elements: None, problem }
    }
}

/// "reverse u32 sum of u8", "f32 sum, columns of 512", "i32 recurrence", "u8 select, one of 2".
impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, instance, input, segment_elements, .. } = *self;
        let how = match kind.row().combined {
            Combined::InOrder => "reproducible ",
            _ if self.is_reversed() => "reverse ",
            _ => "",
        };
        let scan = match kind.row().combined {
            Combined::ByOperator | Combined::InOrder => instance.to_string(),
            Combined::AsRecurrence => format!("{} recurrence", self.element()),
            // The problem's own name.
            Combined::Nothing | Combined::Places | Combined::RunLengths | Combined::LongerRuns => {
                format!("{input} {kind}")
            }
        };
        let totals = match kind.row().stored {
            Stored::Only(Kept::RunEnds) => ", totals",
            Stored::First(Kept::RunEnds) => ", totals first",
            _ => "",
        };
        let is_one = input == self.element() || kind.stored_type().is_some();
        let of = if is_one { String::new() } else { format!(" of {input}") };
        let segments = match (kind.row().anew, segment_elements) {
            (Anew::Never, _) | (_, None) => String::new(),
            (Anew::Each(line), Some(elements)) => format!(", {} of {elements}{}", line.plural(), line.of_each()),
            (Anew::EachRowIfShaped, Some(elements)) => format!(", {} of {elements}", Line::Row.plural()),
            (Anew::EachStrided, Some(elements)) => format!(", strided rows of {elements}"),
            (Anew::ToldBy(Telling::Keys), Some(run)) => format!(", by key in runs of {run}"),
            (Anew::ToldBy(Telling::Flags), Some(run)) if self.is_by_rank() => format!(", by flags {run} apart"),
            (Anew::ToldBy(Telling::Flags), Some(run)) => format!(", by head flags {run} apart"),
            (Anew::ToldBy(Telling::Gaps), Some(run)) => format!(", by flags, gaps {run} apart"),
            (Anew::ToldBy(Telling::Offsets | Telling::Places), Some(run)) => {
                format!(", by offsets in segments of {run}")
            }
            (Anew::ByValues(Share::One), Some(run)) => format!(", one of {run}"),
            (Anew::ByValues(Share::AllButOne), Some(run)) => format!(", all but one of {run}"),
        };
        formatter.pad(&format!("{how}{scan}{totals}{of}{segments}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_as_it_is_written() {
        assert_eq!("4096x16384".parse(), Ok(Shape { rows: 4096, columns: 16384 }));
        assert_eq!("2^10x3".parse::<Shape>().unwrap().to_string(), "1024x3");
        for (text, says) in
            [("4096", "ROWSxCOLUMNS"), ("4xy", "write a number"), ("4x0", "more columns"), ("2^30x2^30", "2^44")]
        {
            let error = text.parse::<Shape>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn every_problem_has_a_workload_a_name_and_arrays() {
        for &kind in ProblemKind::ALL {
            let segment = (kind.needs_shape() || kind.has_runs()).then_some(61);
            let stored = kind.stored_type().unwrap_or(ElementType::U32);
            let of = |input, segment| Workload::new(kind, Operator::Sum, input, stored, segment);
            // Counts are of bytes.
            let has_own_type = kind.stored_type().is_some();
            let workload = of(if has_own_type { ElementType::U8 } else { ElementType::U32 }, segment).unwrap();
            assert_eq!(workload.is_plain(), kind == ProblemKind::Flat);
            assert_eq!(workload.to_string().contains("61"), segment.is_some(), "{workload}");
            assert_eq!(workload.kind(), kind);
            // As the kernels have them, which have bits in the place of offsets.
            if let Some(defined) = workload.problem(610).defined() {
                let inputs = workload.inputs(610).skip(usize::from(workload.telling() == Some(Telling::Offsets)));
                let inputs: Vec<usize> = inputs.map(|(element, _)| element.bytes()).collect();
                assert_eq!(inputs, defined.inputs().map(|(_, bytes)| bytes).collect::<Vec<_>>(), "{workload}");
            }
            // Segments are neither forgotten nor made up.
            let other = if segment.is_none() && !kind.takes_shape() { Some(2) } else { Some(0) };
            let misled = of(workload.input(), other);
            assert!(matches!(misled, Err(NoSuchWorkload::Segments { .. })) || kind.takes_shape());
            assert_eq!(of(ElementType::U8, segment).is_ok(), kind.has_operator() || has_own_type, "{workload}");
        }
        let of_rows =
            Workload::new(ProblemKind::Rows, Operator::Sum, ElementType::U8, ElementType::U32, Some(512)).unwrap();
        assert_eq!(of_rows.to_string(), "u32 sum of u8, rows of 512");
        assert_eq!((of_rows.misfit(1024), of_rows.misfit(1000).is_some()), (None, true));
        let by_key =
            Workload::new(ProblemKind::ByKey, Operator::Sum, ElementType::I32, ElementType::I32, Some(7)).unwrap();
        assert_eq!(by_key.bytes(100), 1200);
    }

    #[test]
    fn what_is_dropped_is_no_byte_of_the_output_and_what_is_behind_is() {
        let of = |kind, run| Workload::new(kind, Operator::Sum, ElementType::I64, ElementType::I64, Some(run)).unwrap();
        for (kind, loaded, drops) in [
            (ProblemKind::Partition, 9, false),
            (ProblemKind::TotalsFirst, 12, false),
            (ProblemKind::ReduceByKey, 12, true),
            (ProblemKind::Select, 8, true),
            (ProblemKind::Unique, 8, true),
            (ProblemKind::NonZero, 8, true),
        ] {
            for (run, kept) in [(1, 100), (3, 34), (1000, 1)] {
                let (workload, stored) = (of(kind, run), if drops { kept } else { 100 });
                assert_eq!(
                    (workload.bytes(100), workload.drops_others()),
                    (100 * loaded + 8 * stored, drops),
                    "{workload}"
                );
                assert_eq!(workload.array_bytes(100), 100 * (loaded + 8), "{workload}");
                assert_eq!(workload.problem(100).is_by_rank(), workload.is_by_rank(), "{workload}");
            }
        }
        let encoded = of(ProblemKind::RunLengthEncode, 3);
        assert_eq!((encoded.bytes(100), encoded.array_bytes(100)), (800 + 8 * 67, 2400));
        // Of runs of 1 to 5 four in five are longer than one; of runs of 1 none is.
        let longer = |run| Workload::new(ProblemKind::NonTrivialRuns, Operator::Sum, ElementType::U8, PLACE, Some(run));
        assert_eq!([3, 1].map(|run| longer(run).unwrap().bytes(300)), [300 + 8 * 160, 300]);
        let said = [ProblemKind::Select, ProblemKind::Unique, ProblemKind::ReduceByKey, ProblemKind::TotalsFirst];
        assert_eq!(
            said.map(|kind| of(kind, 7).to_string()),
            [
                "i64 select, one of 7",
                "i64 unique, one of 7",
                "i64 sum, totals, by key in runs of 7",
                "i64 sum, totals first, by key in runs of 7",
            ]
        );
        // Halves are stored where they are sums.
        for &kind in ProblemKind::ALL {
            let segment = (kind.needs_shape() || kind.has_runs()).then_some(7);
            let of_halves = Workload::with_halves(kind, Operator::Sum, ElementType::F16, ElementType::F16, segment);
            let stores_halves = kind.has_operator() || kind.is_recurrence();
            let is_of_bytes = matches!(kind, ProblemKind::Histogram | ProblemKind::CumulatedHistogram);
            let stores_others = kind.stored_type().is_some() && !is_of_bytes;
            assert_eq!(of_halves.is_ok(), stores_halves || stores_others, "{kind}: {of_halves:?}");
        }
        // What lies in the values themselves is drawn: a file would say nothing of how much is kept.
        assert!([ProblemKind::Select, ProblemKind::Unique].iter().all(|kind| !kind.has_one_input() && kind.has_runs()));
    }

    #[test]
    fn of_what_is_selected_as_many_bytes_count_as_are_kept() {
        let bytes = |kind| {
            Workload::new(kind, Operator::Sum, ElementType::U16, ElementType::U16, Some(100)).unwrap().bytes(1001)
        };
        assert_eq!(bytes(ProblemKind::Select), 2 * (1001 + 11));
        assert_eq!([ProblemKind::SelectMost, ProblemKind::UniqueMost].map(bytes), [2 * (1001 + 991); 2]);
        // A flag an element, and all are stored.
        assert_eq!([ProblemKind::Partition, ProblemKind::PartitionMost].map(bytes), [1001 * 5; 2]);
    }

    #[test]
    fn outputs_that_are_not_one_of_n_elements_count_as_they_are() {
        let of = |kind, input, element| Workload::new(kind, Operator::Sum, input, element, None).unwrap();
        let pairs = of(ProblemKind::SortPairs, ElementType::U16, ElementType::U16);
        assert_eq!((pairs.outputs(7).collect::<Vec<_>>(), pairs.output_elements(7)), (vec![7, 7], 14));
        assert_eq!((pairs.bytes(7), pairs.array_bytes(7)), (56, 56));
        let counts = of(ProblemKind::Histogram, ElementType::I8, ElementType::U32);
        assert_eq!([0, 1, 100].map(|n| counts.output_elements(n)), [0, 256, 256]);
        assert_eq!(counts.bytes(100), 1124);
        assert_eq!(counts, of(ProblemKind::Histogram, ElementType::I8, ElementType::I8));
        assert_eq!([pairs.to_string(), counts.to_string()], ["u16 sort-pairs", "i8 histogram"]);
        assert!([pairs, counts].iter().all(|workload| !workload.has_mode(Mode::Exclusive)));
    }

    #[test]
    fn another_size_has_the_same_rows_and_columns() {
        let u32s = ElementType::U32;
        let of = |kind, length| Workload::new(kind, Operator::Sum, u32s, u32s, Some(length)).unwrap();
        let resized = |kind, length, from, to| {
            let (workload, n) = of(kind, length).resized(from, to);
            assert_eq!(workload.misfit(n), None);
            workload.shape(n).map(|shape| shape.to_string())
        };
        assert_eq!(resized(ProblemKind::Rows, 30, 300, 100).as_deref(), Some("4x30"));
        assert_eq!(resized(ProblemKind::Rows, 30, 300, 20).as_deref(), Some("1x20"));
        assert_eq!(resized(ProblemKind::Columns, 30, 300, 100).as_deref(), Some("10x10"));
        assert_eq!(resized(ProblemKind::Columns, 30, 300, 3).as_deref(), Some("1x10"));
        assert_eq!(resized(ProblemKind::ByKey, 30, 300, 7), None);
        assert_eq!(of(ProblemKind::Columns, 30).in_segments_of(15, 300).0.shape(300).unwrap().to_string(), "15x20");
        assert_eq!(resized(ProblemKind::BatchedRecurrence, 30, 8 * 300, 8 * 100).as_deref(), Some("10x10"));
        assert_eq!(of(ProblemKind::BatchedRecurrence, 30).in_segments_of(15, 8 * 300 + 1).1, 8 * 315);
        let flat = Workload::new(ProblemKind::Flat, Operator::Sum, u32s, u32s, None).unwrap();
        assert_eq!((flat.resized(300, 7), flat.in_segments_of(5, 300)), ((flat, 7), (flat, 300)));
    }

    #[test]
    fn how_many_columns_there_are_follows_from_the_elements() {
        let of = |kind| Workload::new(kind, Operator::Sum, ElementType::F32, ElementType::F32, Some(512)).unwrap();
        let columns = of(ProblemKind::Columns);
        assert_eq!(columns.to_string(), "f32 sum, columns of 512");
        assert_eq!(columns.problem(512 * 7).axis(), Some(Axis::new(512, 7)));
        // One column is a row, and so are those of no elements.
        for n in [0, 512] {
            assert_eq!(columns.problem(n), of(ProblemKind::Rows).problem(n));
        }
        assert_eq!(
            columns.misfit(1000).unwrap(),
            "1000 elements are no whole columns of 512; name rows and columns by --shape"
        );
        let shape = Shape { rows: 3, columns: 5 };
        let lines = [ProblemKind::Rows, ProblemKind::Columns, ProblemKind::RecurrenceColumns, ProblemKind::Flat];
        assert_eq!(lines.map(|kind| kind.line_elements(shape)), [Some(5), Some(3), Some(3), None]);
        let batched = of(ProblemKind::BatchedRecurrence);
        assert_eq!(batched.to_string(), "f32 recurrence, columns of 512 of each of 8 matrices");
        assert_eq!(batched.problem(512 * 8 * 7).axis(), Some(Axis::new(512, 7)));
        assert_eq!(batched.segments(512 * 8 * 7), Some(8 * 7));
        assert!(batched.misfit(512).is_some() && batched.misfit(512 * 8).is_none());
        assert_eq!((batched.kind().elements(shape), ProblemKind::Columns.elements(shape)), (8 * 15, 15));
    }

    #[test]
    fn offsets_are_as_many_as_give_the_average_and_count_among_the_bytes() {
        let of = |run| {
            let kind = ProblemKind::Offsets;
            Workload::new(kind, Operator::Sum, ElementType::I64, ElementType::I64, Some(run)).unwrap()
        };
        let offsets = |run, n| of(run).inputs(n).next().unwrap();
        assert_eq!(offsets(61, 610), (ElementType::U32, 11));
        assert_eq!(offsets(61, 611), (ElementType::U32, 12));
        assert_eq!(offsets(61, 0), (ElementType::U32, 1));
        assert_eq!(offsets(1 << 20, (1 << 32) - 1), (ElementType::U32, (1 << 12) + 1));
        assert_eq!(offsets(1 << 20, 1 << 32), (ElementType::U64, (1 << 12) + 1));
        assert_eq!(of(61).bytes(610), 610 * 16 + 11 * 4);
    }
}
