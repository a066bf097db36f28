//! What the two kinds of case share: a scan drawn where a fault can show, and its text of `key=value` words.

use super::draw::Draw;
use crate::abi;
use crate::element::{ElementType, Operator};
use crate::kernels::mutant::{Mutant, Need, When};
use crate::lab::workload::{NoSuchWorkload, ProblemKind, Shape, Workload};
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{Composition, ConfigError, Descriptor, Mode, Pattern, ScanConfig, Strategy, Stress, TileOrder};
use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::str::FromStr;

/// Text that is no case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaseError {
    /// A part of the text is not as `Display` writes it.
    #[error("'{part}' in a case: {fault}")]
    Part { part: String, fault: String },
    /// A key is missing.
    #[error("a case needs {key}=…")]
    Missing { key: &'static str },
    /// The scan cannot be launched so.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no such problem.
    #[error(transparent)]
    Workload(#[from] NoSuchWorkload),
}

impl CaseError {
    /// The fault of what stands behind a key.
    pub(super) fn part(key: &str, value: impl fmt::Display, fault: impl fmt::Display) -> Self {
        Self::Part { part: format!("{key}={value}"), fault: fault.to_string() }
    }
}

/// Every strategy as often as its share says.
pub(super) fn strategies(share: impl Fn(&Stress) -> usize) -> Vec<Strategy> {
    let repeated = |&strategy: &Strategy| std::iter::repeat_n(strategy, share(&strategy.row().stress));
    Strategy::ALL.iter().flat_map(repeated).collect()
}

/// What is drawn from where a fault asks for nothing in particular; what stands there more often comes more often.
pub(super) struct Usual<'a> {
    pub workloads: &'a [Workload],
    pub modes: &'a [Mode],
    /// Of 100 patterns, those that are shuffles whatever the others are.
    pub shuffles: u64,
    pub vts: &'a [u32],
    pub block_threads: &'a [u32],
}

/// Threads of blocks of more than 8 warps, of more than 16, and of all that there can be; each strategy's own limit is
/// below the last. Odd numbers of warps among them, because some work is shared out by halves.
pub(super) const WIDE_BLOCKS: &[u32] = &[288, 320, 416, 512, 544, 608, 736, 864, 896, 992, 1024];

/// Elements of segments that are not drawn yet, and of a scan whose size is not: two rows, or two columns.
const SEGMENT: u64 = 2;
const ELEMENTS: u64 = 2 * SEGMENT;

/// Operators and types, loaded and stored, that problems are drawn of: values of 4, 8 and 16 bytes, some of which prove order
/// and coverage, and narrow ones that are summed as floats. No more, because each takes kernels of its own, which are compiled
/// when a case first asks for them.
const SCANS: &[(Operator, ElementType, ElementType)] = &[
    (Operator::Sum, ElementType::U32, ElementType::U32),
    (Operator::Intervals, ElementType::IndexInterval, ElementType::IndexInterval),
    (Operator::Sum, ElementType::U8, ElementType::F32),
    (Operator::Affine, ElementType::AffineMap, ElementType::AffineMap),
];
/// Types of the recurrences, likewise: states of 8 and 16 bytes.
const RECURRENCES: &[(Operator, ElementType, ElementType)] =
    &[(Operator::Sum, ElementType::U32, ElementType::U32), (Operator::Sum, ElementType::F64, ElementType::F64)];
/// Types of keys, of what is counted and of what is stored by rank, likewise: floats, and bytes, several of which wait in a word, and
/// which alone are sorted by their counts.
const KEYS: &[(Operator, ElementType, ElementType)] = &[
    (Operator::Sum, ElementType::U32, ElementType::U32),
    (Operator::Sum, ElementType::F64, ElementType::F64),
    (Operator::Sum, ElementType::U8, ElementType::U8),
];

/// What cases of a problem are drawn of, in segments whose length is still to be drawn.
pub(super) fn workloads(kind: ProblemKind) -> Vec<Workload> {
    let segment = (kind.needs_shape() || kind.has_runs()).then_some(SEGMENT);
    let of_arrays = if kind.is_recurrence() { RECURRENCES } else { KEYS };
    let scans = if kind.has_operator() { SCANS } else { of_arrays };
    let workload = |&(operator, input, element)| Workload::new(kind, operator, input, element, segment).ok();
    scans.iter().filter_map(workload).collect()
}

/// What cases are of where nobody says otherwise: scans of one array of an operator's own values.
pub const PLAIN: &[ProblemKind] = &[ProblemKind::Flat];

/// The problems that cases are drawn of, where these are asked for: a fault that some show and no other takes those, or those
/// among them that are asked for.
pub fn problems_of<'a>(asked: &'a [ProblemKind], mutant: Option<&'static Mutant>) -> Cow<'a, [ProblemKind]> {
    let Some(mutant) = mutant.filter(|mutant| !mutant.when.problems.is_empty()) else { return Cow::Borrowed(asked) };
    let is_named = |kind: &ProblemKind| mutant.when.problems.iter().any(|name| name == "all" || name == kind.name());
    let is_asked = |kind: &ProblemKind| asked == PLAIN || asked.contains(kind);
    let others = ProblemKind::ALL.iter().copied().filter(|&kind| kind != ProblemKind::Flat);
    Cow::Owned(others.filter(is_named).filter(is_asked).collect())
}

/// A problem of each of these faults, of one after the other: what the kernels as they are run as often as the faults do.
pub(super) fn problems_of_all(asked: &[ProblemKind], mutants: &[&'static Mutant]) -> Vec<ProblemKind> {
    let drawn = mutants.iter().zip(0..).filter_map(|(mutant, number): (_, usize)| {
        let of_mutant = problems_of(asked, Some(mutant));
        of_mutant.get(number % of_mutant.len().max(1)).copied()
    });
    drawn.collect()
}

/// Whether a strategy scans such problems.
pub(super) fn takes(strategy: Strategy, workload: Workload) -> bool {
    // The composition that every problem may have.
    let config = ScanConfig { composition: Composition::ReduceThenScan, ..ScanConfig::default() };
    let aligned = ScanRequest::aligned(workload.instance(), strategy, Mode::Inclusive, config, ELEMENTS);
    Plan::new(&ScanRequest { problem: workload.problem(ELEMENTS), ..aligned }).is_ok()
}

/// A scan of no elements yet, at no offset; `None` where nothing that is usual can show the fault.
pub(super) fn draw_scan(
    draw: &mut Draw,
    strategy: Strategy,
    when: &When,
    usual: &Usual,
) -> Option<(Workload, ScanRequest)> {
    let holds = |layout: Descriptor, workload: Workload| workload.problem(ELEMENTS).packed_bytes() <= layout.holds();
    let layouts = if when.layouts.is_empty() { Descriptor::ALL } else { &when.layouts };
    let workload = draw.possible(&[], usual.workloads, |workload| {
        let is_ordered =
            !when.needs(Need::NonCommutative) || !workload.operator().is_some_and(Operator::is_commutative);
        // What is counted are elements of the input.
        let element = workload.kind().stored_type().map_or(workload.element(), |_| workload.input());
        let is_wanted = when.elements.is_empty() || when.elements.contains(&element);
        is_wanted && is_ordered && layouts.iter().any(|&layout| holds(layout, workload))
    })?;
    let is_in_order = workload.problem(ELEMENTS).is_reproducible();
    let usual_patterns = if draw.percent(usual.shuffles) || is_in_order { &[Pattern::Shuffle] } else { Pattern::ALL };
    let usual_compositions = if is_in_order { &[Composition::ReduceThenScan] } else { Composition::ALL };
    let pattern = draw.possible(&when.patterns, usual_patterns, |_| true)?;
    let config = ScanConfig {
        vt: draw.possible(&when.vts, usual.vts, |_| true)?,
        block_threads: draw.of(usual.block_threads),
        pattern,
        composition: draw.possible(&when.compositions, usual_compositions, |composition| {
            pattern != Pattern::Shuffle || composition != Composition::Block
        })?,
        descriptor: draw.possible(&[], layouts, |layout| holds(layout, workload)),
        tile_order: TileOrder::Ticket,
    };
    let aligned = ScanRequest::aligned(workload.instance(), strategy, Mode::Inclusive, config, 0);
    let request = ScanRequest { problem: workload.problem(ELEMENTS), ..aligned };
    // Of one element: where there is nothing to launch, nothing is asked about threads.
    let mode =
        draw.possible(&when.modes, usual.modes, |mode| Plan::new(&ScanRequest { mode, n: 1, ..request }).is_ok())?;
    Some((workload, ScanRequest { mode, ..request }))
}

/// The scan in segments whose length is drawn, and its elements, `n` or a few more: a few elements each, about as many as a
/// tile or some tiles have, or all.
pub(super) fn in_drawn_segments(draw: &mut Draw, workload: Workload, n: u64, tile: u64) -> (Workload, u64) {
    let kind = workload.kind();
    let has_shape = kind.needs_shape() || kind.takes_shape() && draw.percent(50);
    if !has_shape && !kind.has_runs() {
        return (workload, n);
    }
    let elements = match draw.below(6) {
        0 => 1 + draw.below(4),
        1 => 1 + draw.below(40),
        2 => tile - 1 + draw.below(3),
        3 => 1 + draw.below(2 * tile),
        4 => (1 + draw.below(4)) * tile - 1 + draw.below(3),
        _ => n,
    };
    // Of columns as many side by side, of several matrices as many in all.
    let columns = elements.div_ceil(workload.matrices());
    let shape = Shape { rows: n.div_ceil(columns * workload.matrices()), columns };
    if has_shape { in_lines_of(workload, shape) } else { (in_segments(workload, elements), n) }
}

/// The scan of a matrix of that shape, and its elements.
pub(super) fn in_lines_of(workload: Workload, shape: Shape) -> (Workload, u64) {
    let line = workload.kind().line_elements(shape).unwrap_or(shape.columns);
    (in_segments(workload, line), workload.kind().elements(shape))
}

/// The scan in segments of so many elements.
pub(super) fn in_segments(workload: Workload, elements: u64) -> Workload {
    let (operator, input, element) = (workload.instance().operator(), workload.input(), workload.element());
    Workload::new(workload.kind(), operator, input, element, Some(elements)).unwrap_or(workload)
}

/// An offset in bytes that the strategy tells from others.
pub(super) fn draw_offset(draw: &mut Draw, strategy: Strategy, element: ElementType) -> u32 {
    let element_bytes = element.bytes() as u32;
    let places = ScanRequest::offsets_that_matter(strategy) / element_bytes;
    draw.below(u64::from(places)) as u32 * element_bytes
}

/// What a text could ask for that no run can have.
pub(super) fn check(workload: Workload, request: &ScanRequest, completed_epochs: u32) -> Result<(), CaseError> {
    let ScanRequest { input_offset, output_offset, in_place, .. } = *request;
    let (input, output) = (workload.input(), workload.element());
    for (key, offset, element) in [("input-offset", input_offset, input), ("output-offset", output_offset, output)] {
        if !offset.is_multiple_of(element.bytes() as u32) || offset >= ScanRequest::OFFSETS {
            let limit = format!("offsets are multiples of the element size below {}", ScanRequest::OFFSETS);
            return Err(CaseError::part(key, offset, limit));
        }
    }
    if in_place && input != output {
        return Err(ConfigError::InPlace { input, output }.into());
    }
    if in_place && workload.row_stride().is_some() {
        return Err(CaseError::part("in-place", in_place, "strided rows have an output of their own"));
    }
    if in_place && input_offset != output_offset {
        return Err(CaseError::part("output-offset", output_offset, "in place, it is that of the input"));
    }
    if completed_epochs >= abi::LOOKBACK_MAXIMUM_EPOCH {
        return Err(CaseError::part("completed epochs", completed_epochs, "below 2^30 - 1"));
    }
    Plan::new(request)?;
    Ok(())
}

/// What stands in the place of a recurrence's operator.
pub(super) const NO_OPERATOR: &str = "none";

/// The text of a case: words `key=value` between separators.
pub(super) struct Words {
    pub text: String,
    separator: char,
}

impl Words {
    /// What describes the scan, but for its size; `element_key` stands in front of the element type.
    pub fn of_scan(
        separator: char,
        mutant: Option<&'static Mutant>,
        workload: Workload,
        request: &ScanRequest,
        element_key: &'static str,
    ) -> Self {
        let ScanRequest { strategy, mode, config, .. } = request;
        let mut words = Self { text: String::new(), separator };
        words
            .add("mutant", mutant.map_or("none", |mutant| &mutant.name))
            .add("strategy", strategy)
            .add(element_key, workload.element())
            .add("operator", workload.operator().map_or(NO_OPERATOR.to_owned(), |operator| operator.to_string()))
            .add("mode", mode)
            .add("layout", config.descriptor.map_or("none", Descriptor::name))
            .add("pattern", config.pattern)
            .add("composition", config.composition)
            .add("vt", config.vt)
            .add("threads", config.block_threads)
            .add("in-place", request.in_place)
            .add("input-offset", request.input_offset)
            .add("output-offset", request.output_offset);
        words
    }

    /// What is scanned of so many elements, where that is no plain scan.
    pub fn add_workload(&mut self, workload: Workload, n: u64) {
        if !workload.is_plain() {
            self.add("problem", workload.kind());
        }
        if workload.input() != workload.element() {
            self.add("input-type", workload.input());
        }
        match (workload.shape(n), workload.segment_elements()) {
            (Some(shape), _) => self.add("shape", shape),
            (None, Some(elements)) => self.add("run-length", elements),
            (None, None) => self,
        };
    }

    /// One word more.
    pub fn add(&mut self, key: &str, value: impl fmt::Display) -> &mut Self {
        if !self.text.is_empty() {
            self.text.push(self.separator);
        }
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{key}={value}");
        self
    }
}

/// The words of a text, which are read one by one.
pub(super) struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    pub fn new(words: impl Iterator<Item = &'a str>) -> Result<Self, CaseError> {
        let no_word = |word: &str| CaseError::Part { part: word.to_owned(), fault: "not key=value".to_owned() };
        words.map(|word| word.split_once('=').ok_or_else(|| no_word(word))).collect::<Result<_, _>>().map(Self)
    }

    /// What stands behind a key, if it is there.
    pub fn text(&mut self, key: &str) -> Option<&'a str> {
        let position = self.0.iter().position(|(other, _)| *other == key)?;
        Some(self.0.swap_remove(position).1)
    }

    pub fn value<T: FromStr<Err: fmt::Display>>(&mut self, key: &'static str) -> Result<T, CaseError> {
        let text = self.text(key).ok_or(CaseError::Missing { key })?;
        text.parse().map_err(|error| CaseError::part(key, text, error))
    }

    /// A value, if the key is there.
    pub fn optional<T: FromStr<Err: fmt::Display>>(&mut self, key: &'static str) -> Result<Option<T>, CaseError> {
        if self.0.iter().any(|(other, _)| *other == key) { self.value(key).map(Some) } else { Ok(None) }
    }

    /// A value, or the word that stands for none.
    pub fn unless<T: FromStr<Err: fmt::Display>>(
        &mut self,
        key: &'static str,
        none: &str,
    ) -> Result<Option<T>, CaseError> {
        if self.0.contains(&(key, none)) { Ok(self.text(key).and(None)) } else { self.value(key).map(Some) }
    }

    /// So many numbers, if the key is there.
    pub fn numbers<T: FromStr, const N: usize>(
        &mut self,
        key: &str,
        between: char,
    ) -> Result<Option<[T; N]>, CaseError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let numbers: Option<Vec<T>> = text.split(between).map(|word| word.parse().ok()).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        numbers
            .map(Some)
            .ok_or_else(|| CaseError::part(key, text, format!("{N} numbers with '{between}' between them")))
    }

    /// What a text says of the scan of so many elements: its problem and types, and the lengths of its segments.
    pub fn workload(&mut self, element_key: &'static str, n: u64) -> Result<Workload, CaseError> {
        let element: ElementType = self.value(element_key)?;
        // What a recurrence is given does not matter.
        let operator = self.unless("operator", NO_OPERATOR)?.unwrap_or(Operator::Sum);
        let kind: ProblemKind = self.optional("problem")?.unwrap_or_default();
        let input = self.optional("input-type")?.unwrap_or(element);
        let shape: Option<Shape> = self.optional("shape")?;
        let run = self.optional("run-length")?;
        if let Some(shape) = shape.filter(|&shape| kind.elements(shape) != n) {
            return Err(CaseError::part("shape", shape, format!("n={n} elements are no such matrix")));
        }
        if run.is_some() && !kind.has_runs() || shape.is_some() && !kind.takes_shape() {
            let fault = "it has no such segments: rows and columns have a shape, what else is in segments a run-length";
            return Err(CaseError::part("problem", kind, fault));
        }
        let segment = shape.and_then(|shape| kind.line_elements(shape)).or(run);
        Ok(Workload::new(kind, operator, input, element, segment)?)
    }

    /// The fault and the scan, of so many elements.
    pub fn scan(&mut self, workload: Workload, n: u64) -> Result<(Option<&'static Mutant>, ScanRequest), CaseError> {
        let mutant = self.unless("mutant", "none")?;
        let (strategy, mode) = (self.value("strategy")?, self.value("mode")?);
        let config = ScanConfig {
            vt: self.value("vt")?,
            block_threads: self.value("threads")?,
            pattern: self.value("pattern")?,
            composition: self.value("composition")?,
            descriptor: self.unless("layout", "none")?,
            tile_order: TileOrder::Ticket,
        };
        let request = ScanRequest {
            in_place: self.value("in-place")?,
            input_offset: self.value("input-offset")?,
            output_offset: self.value("output-offset")?,
            ..ScanRequest::of(workload.problem(n), strategy, mode, config, n)
        };
        Ok((mutant, request))
    }

    /// Words that nobody read are an error.
    pub fn end(self) -> Result<(), CaseError> {
        let is_unknown = |(key, value): &(&str, &str)| CaseError::part(key, value, "not a part of a case");
        self.0.first().map_or(Ok(()), |word| Err(is_unknown(word)))
    }
}
