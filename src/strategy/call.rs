//! One run of a scan that a user has defined: its arrays by address, wherever they lie, checked before anything is launched.

use super::call_error::CallError;
use super::launch::{Addresses, Arrays, Parameters, Strides, WholeNumbers};
use super::plan::ScanRequest;
use super::tuning::Resolved;
use super::{Choices, Mode, ScanConfig, Strategy};
use crate::abi;
use crate::element::{ArrayElement, Axis, Defined, ElementType, Problem, Segments, Verb, own_name};
use crate::ranks::Hand;
use bytemuck::Pod;

/// An array that is lent for a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lent {
    address: u64,
    /// Those that are scanned, which are all unless something is between rows.
    elements: u64,
    element_bytes: u64,
    /// Its elements' type in CUDA; of states nobody knows it.
    cuda_type: Option<&'static str>,
    /// All that it has.
    held: u64,
    /// Elements from the begin of a row to that of the next, where rows may have something between them.
    stride: Option<u64>,
}

impl Lent {
    pub fn array<T: ArrayElement>(address: u64, elements: usize) -> Self {
        Self { cuda_type: Some(T::CUDA_TYPE), ..Self::states::<T>(address, elements) }
    }

    /// Of a type that is chosen at run time.
    #[cfg(feature = "lab")]
    pub fn of(element: ElementType, address: u64, elements: u64) -> Self {
        Self::as_defined((element.cuda_type(), element.bytes()), address, elements)
    }

    /// Of a type that a definition names.
    #[cfg(any(feature = "lab", feature = "cuda"))]
    pub fn as_defined((cuda_type, bytes): (&'static str, usize), address: u64, elements: u64) -> Self {
        Self { cuda_type: Some(cuda_type), ..Self::states_of(bytes, address, elements) }
    }

    /// The same array, whose rows may begin so many elements apart.
    #[cfg(feature = "lab")]
    pub fn strided(self, stride: Option<u64>) -> Self {
        Self { stride, ..self }
    }

    /// States of so many bytes.
    pub fn states_of(bytes: usize, address: u64, elements: u64) -> Self {
        Self { address, elements, element_bytes: bytes as u64, cuda_type: None, held: elements, stride: None }
    }

    pub fn states<T: Pod>(address: u64, elements: usize) -> Self {
        Self::states_of(size_of::<T>(), address, elements as u64)
    }

    fn end(self) -> u64 {
        self.address + self.held * self.element_bytes
    }

    fn overlaps(self, other: Self) -> bool {
        let is_within = self.address < other.end() && other.address < self.end();
        is_within && self.held > 0 && other.held > 0
    }

    /// The same array as one of rows of so many elements, if it is that: rows and what is between them, behind the last one as well
    /// or not.
    fn in_rows(self, row: u64) -> Option<Self> {
        // Rows of no elements are refused where there is nothing between them, too.
        let Some(stride) = self.stride.filter(|_| row > 0) else { return Some(self) };
        let (rows, rest) = (self.held.checked_div(stride)?, self.held % stride);
        let is_whole = row <= stride && (rest == 0 || rest == row);
        is_whole.then_some(Self { elements: (rows + u64::from(rest > 0)) * row, ..self })
    }
}

/// What kernels found wrong with numbers that the device alone knows.
pub(crate) fn check_findings(findings: &abi::lookback_findings) -> Result<(), CallError> {
    let abi::lookback_findings { segment, count } = *findings;
    match (segment, count) {
        (0, 0) => Ok(()),
        (0, count) => Err(CallError::Counted { count }),
        (segment, _) => Err(CallError::Offsets { segment: segment - 1 }),
    }
}

fn whole_numbers(lent: Option<Lent>) -> WholeNumbers {
    lent.map_or(WholeNumbers::default(), |Lent { address, elements, element_bytes, .. }| WholeNumbers {
        address,
        elements,
        bytes: element_bytes as u32,
    })
}

/// An array with its name in the definition.
type Named = (&'static str, Lent);

/// What a run is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    defined: Defined,
    columns: u64,
    /// Of columns: elements of each, or all that there are, and how many lie side by side.
    axis: Option<(Option<u64>, u64)>,
    initial: Option<Vec<u8>>,
    telling: Option<Lent>,
    inputs: Vec<Lent>,
    outputs: Vec<Lent>,
    initial_state: Option<Lent>,
    final_state: Option<Lent>,
    offsets: Option<Lent>,
    count: Option<Lent>,
    /// Where the number of elements goes that are kept, and behind it that of all others.
    kept: Option<Lent>,
    verb: Verb,
    hand: Option<Hand>,
    is_told_twice: bool,
    unfit_key: Option<ElementType>,
    /// Whether an input and an output are the arrays that were named last.
    named_last: [bool; 2],
    is_stride_of_nothing: bool,
    /// Types and bytes of what is given beside arrays.
    parameters: Vec<(&'static str, Vec<u8>)>,
}

/// A run that may be launched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prepared {
    pub request: ScanRequest,
    pub arrays: Arrays,
}

impl Prepared {
    /// What is launched, and where the user's arrays lie.
    pub fn placed(self) -> (ScanRequest, Addresses) {
        let Self { request, arrays } = self;
        (request, Addresses::over(arrays))
    }
}

impl Call {
    pub fn new(defined: Defined) -> Self {
        Self {
            defined,
            columns: 0,
            axis: None,
            initial: None,
            telling: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            initial_state: None,
            final_state: None,
            offsets: None,
            count: None,
            kept: None,
            verb: Verb::Scan,
            hand: None,
            is_told_twice: false,
            unfit_key: None,
            named_last: [false; 2],
            is_stride_of_nothing: false,
            parameters: Vec::new(),
        }
    }

    /// Of a scan whose segments and direction are chosen already: `inputs` as the kernels load them, behind what tells segments.
    #[cfg(feature = "lab")]
    pub fn over(defined: Defined, columns: u64, inputs: Vec<Lent>, outputs: Vec<Lent>) -> Self {
        let mut inputs = inputs.into_iter();
        let verb = defined.verb();
        let offsets = if defined.has_bits() || verb == Verb::Expand { inputs.next() } else { None };
        let telling = defined.segments().array().and_then(|_| inputs.next());
        Self { columns, telling, offsets, inputs: inputs.collect(), outputs, verb, ..Self::new(defined) }
    }

    pub fn input(&mut self, array: Lent) {
        self.inputs.push(array);
        self.named_last = [true, false];
    }

    pub fn output(&mut self, array: Lent) {
        self.outputs.push(array);
        self.named_last = [false, true];
    }

    /// An input and an output in one.
    pub fn in_place(&mut self, array: Lent) {
        self.inputs.push(array);
        self.outputs.push(array);
        self.named_last = [true, true];
    }

    /// Elements from the begin of a row to that of the next, of the array that was named last.
    pub fn row_stride(&mut self, elements: u64) {
        self.is_stride_of_nothing |= self.named_last == [false; 2];
        for (arrays, is_named) in [&mut self.inputs, &mut self.outputs].into_iter().zip(self.named_last) {
            if let Some(last) = arrays.last_mut().filter(|_| is_named) {
                last.stride = Some(elements);
            }
        }
    }

    pub fn reverse(&mut self) {
        self.defined = self.defined.reversed(true);
    }

    pub fn reproducible(&mut self) {
        self.defined = self.defined.reproducible();
    }

    pub fn rows(&mut self, columns: u64) {
        self.tell(Segments::Rows { have_states: false }, None);
        self.columns = columns;
    }

    /// Down the columns of `inner` ones side by side, of `length` elements each or as long as the arrays are.
    pub fn axis(&mut self, length: Option<u64>, inner: u64) {
        self.tell(Segments::Rows { have_states: false }, None);
        self.axis = Some((length, inner));
    }

    pub fn keys(&mut self, key: ElementType, array: Lent) {
        self.unfit_key = (!key.is_number()).then_some(key);
        self.tell(Segments::Keys(key), Some(array));
    }

    pub fn head_flags(&mut self, array: Lent) {
        self.tell(Segments::HeadFlags, Some(array));
    }

    pub fn offsets(&mut self, array: Lent) {
        match self.defined.verb() {
            Verb::Expand => self.is_told_twice |= self.offsets.is_some(),
            _ => self.tell(Segments::Offsets, None),
        }
        self.offsets = Some(array);
    }

    pub fn count(&mut self, number: Lent) {
        self.defined = self.defined.counted();
        self.count = Some(number);
    }

    /// Asks for this, and not for a scan.
    pub fn ask_for(&mut self, verb: Verb) {
        self.verb = verb;
    }

    /// Where the number of elements goes that are kept, and behind it that of all others.
    pub fn kept(&mut self, number: Lent) {
        self.kept = Some(number);
    }

    /// Asks for the combination of all elements' states, which goes there; nothing is stored.
    pub fn total(&mut self, state: Lent) {
        self.defined = self.defined.total();
        self.verb = Verb::Total;
        self.final_state = Some(state);
    }

    /// Asks for whatever is defined; what is no scan has one mode.
    #[cfg(feature = "cuda")]
    pub fn as_defined(&mut self, mode: Mode) -> Mode {
        self.verb = self.defined.verb();
        if self.verb == Verb::Scan { mode } else { Mode::Inclusive }
    }

    /// The address and bytes of what counts elements, where there are none, so that no kernel stores it: how many are kept, or the
    /// bins of a histogram.
    pub fn counts_of_nothing(&self) -> Option<(u64, u64)> {
        let is_empty = self.inputs.first().is_none_or(|array| array.elements == 0);
        let counts = if self.defined.histogram().is_some() { self.outputs.first().copied() } else { self.kept };
        counts.filter(|_| is_empty).map(|lent| (lent.address, lent.elements * lent.element_bytes))
    }

    /// Whether some of an output stays as it is: the device's memory says how many elements are stored, or rows have something
    /// between them.
    #[cfg(all(feature = "cpu", feature = "lab"))]
    pub fn stores_a_part(&self) -> bool {
        match self.defined.verb() {
            Verb::Compact | Verb::Expand | Verb::Scatter => true,
            Verb::Scan | Verb::Sort => self.count.is_some() || self.outputs.iter().any(|array| array.stride.is_some()),
            Verb::Histogram | Verb::Total => false,
        }
    }

    fn tell(&mut self, segments: Segments, array: Option<Lent>) {
        self.is_told_twice |= self.defined.segments() != Segments::One;
        self.defined = self.defined.in_segments(segments);
        self.telling = array;
    }

    /// The next of what is given beside arrays.
    pub fn parameter(&mut self, cuda_type: &'static str, bytes: &[u8]) {
        self.parameters.push((cuda_type, bytes.to_vec()));
    }

    pub fn initial<T: Pod>(&mut self, state: &T) {
        self.initial = Some(bytemuck::bytes_of(state).to_vec());
    }

    pub fn initial_state(&mut self, array: Lent) {
        self.initial_state = Some(array);
    }

    pub fn final_state(&mut self, array: Lent) {
        self.final_state = Some(array);
    }

    /// Checks the arrays and chooses how they are scanned. `None` if there are no elements.
    pub fn prepare(mut self, mode: Mode, choices: &Choices) -> Result<Option<Prepared>, CallError> {
        let row_elements = self.resolve_strides()?;
        let (inputs, outputs) = self.named()?;
        let is_by_outputs = matches!(self.defined.verb(), Verb::Scan | Verb::Expand);
        let lengths = if is_by_outputs { &self.outputs } else { &self.inputs };
        let n = lengths.first().map_or(0, |array| array.elements);
        self.check_verb(n)?;
        self.defined = self.defined.of_length(n);
        self.resolve_axis(n)?;
        self.note_alignment();
        self.check_arrays(&inputs, &outputs, n, mode)?;
        self.check_states(n)?;
        self.check_numbers(n)?;
        let parameters = self.laid_out_parameters()?;
        let in_place = self.check_overlaps(&inputs, &outputs)?;
        let is_total = self.verb == Verb::Total;
        // Ranks without elements meet the others all the same.
        let all = self.hand.map_or(n, |hand| hand.deal().n());
        if all == 0 && !is_total {
            return Ok(None);
        }
        // No strategy makes a difference to it; this one does what is no scan.
        let strategy = if is_total { Strategy::Lookback.into() } else { choices.strategy };
        if self.defined.has_rows() && self.has_states() {
            self.defined = self.defined.in_segments(Segments::Rows { have_states: true });
        }
        let problem = Problem::from(self.defined.with_final_state(self.final_state.is_some() && !is_total));
        // In the direction of the scan: from a boundary behind the last element, where it is reversed.
        let offset = |array: Option<&Named>| {
            let offsets = u64::from(ScanRequest::OFFSETS);
            array.map_or(0, |(_, array)| match self.defined.is_reversed() {
                false => (array.address % offsets) as u32,
                true => ((offsets - (array.address + n * array.element_bytes) % offsets) % offsets) as u32,
            })
        };
        let (input_offset, output_offset) = (offset(inputs.first()), offset(outputs.first()));
        let row = self.defined.has_rows().then_some(self.columns);
        let places = self.places();
        // Where the array begins within a vector, so does every row of whole vectors.
        let Resolved { strategy, config } = match self.hand {
            Some(hand) => {
                let config = ScanConfig::of_dealt(problem, hand.deal().chunk());
                Resolved { strategy: Strategy::Lookahead, config }
            }
            None => {
                let row = row.filter(|_| input_offset == 0);
                choices.tuning.choose(strategy, problem, n, row, [input_offset, output_offset])
            }
        };
        let request = ScanRequest {
            in_place,
            input_offset,
            output_offset,
            row,
            hand: self.hand,
            ..ScanRequest::of(problem, strategy, mode, choices.config.unwrap_or(config), n)
        };
        let addresses = |free: usize, arrays: &[Named]| {
            let mut addresses = [0; abi::LOOKBACK_MAXIMUM_ARRAYS as usize];
            for (place, (_, array)) in addresses.iter_mut().skip(free).zip(arrays) {
                *place = array.address;
            }
            addresses
        };
        let initial = self.initial.map(|bytes| {
            let mut words = [0_u64; abi::LOOKBACK_MAXIMUM_STATE_BYTES as usize / 8];
            bytemuck::bytes_of_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
            words
        });
        let address = |state: Option<Lent>| state.map_or(0, |state| state.address);
        let final_state = address(self.final_state);
        let mut stored = addresses(0, &outputs);
        if is_total {
            stored[0] = final_state;
        }
        let arrays = Arrays {
            // The bits of offsets stand in front.
            inputs: addresses(usize::from(self.defined.has_bits()), &inputs),
            outputs: stored,
            columns: self.columns,
            initial,
            initial_state: address(self.initial_state),
            final_state: if is_total { 0 } else { final_state },
            offsets: whole_numbers(self.offsets),
            count: whole_numbers(self.count),
            kept: whole_numbers(self.kept),
            is_reversed: self.defined.is_reversed(),
            places,
            parameters,
            strides: row_elements.map_or_else(Strides::default, |row_elements| {
                let strides = |arrays: &[Named]| {
                    let mut strides = [0; abi::LOOKBACK_MAXIMUM_ARRAYS as usize];
                    for (place, (_, array)) in strides.iter_mut().zip(arrays) {
                        *place = array.stride.unwrap_or(row_elements);
                    }
                    strides
                };
                Strides { row_elements, inputs: strides(&inputs), outputs: strides(&outputs) }
            }),
        };
        Ok(Some(Prepared { request, arrays }))
    }

    /// What is given beside arrays, as the kernels find it.
    fn laid_out_parameters(&self) -> Result<Parameters, CallError> {
        let (asked, given) = (self.defined.parameters(), self.parameters.len());
        if asked.len() != given {
            let (defined, names) = (asked.len(), asked.map(|(name, ..)| name).collect::<Vec<_>>().join(", "));
            return Err(CallError::Parameters { scan: self.scan(), defined, given, names });
        }
        let mut laid_out = Parameters::default();
        let all: &mut [u8] = bytemuck::bytes_of_mut(&mut laid_out);
        for ((name, (asked, bytes), place), (given, value)) in asked.zip(&self.parameters) {
            if (asked, bytes) != (*given, value.len()) {
                let [defined, given] = [(asked, bytes), (*given, value.len())]
                    .map(|(name, bytes)| format!("'{}' of {bytes} bytes", own_name(name)));
                return Err(CallError::ParameterType { scan: self.scan(), parameter: name.to_owned(), defined, given });
            }
            all[place..][..bytes].copy_from_slice(value);
        }
        Ok(laid_out)
    }

    /// Segments, or items, between the offsets.
    fn segments(&self) -> u64 {
        self.offsets.map_or(0, |offsets| offsets.elements.saturating_sub(1))
    }

    /// Elements of what is stored.
    fn places(&self) -> u64 {
        self.outputs.first().map_or(0, |output| output.elements)
    }

    fn scan(&self) -> String {
        self.defined.to_string()
    }

    /// Whether a state stands before the first element or is asked for behind the last one.
    fn has_states(&self) -> bool {
        self.has_initial() || self.final_state.is_some()
    }

    fn has_initial(&self) -> bool {
        self.initial.is_some() || self.initial_state.is_some()
    }

    /// Rows or columns, of `self.columns` elements each.
    fn has_rows(&self) -> bool {
        matches!(self.defined.segments(), Segments::Rows { .. } | Segments::Columns(_))
    }

    /// Of arrays some of which have something between their rows: elements of a row, as many as lie side by side.
    fn resolve_strides(&mut self) -> Result<Option<u64>, CallError> {
        let mut arrays = self.inputs.iter().chain(&self.outputs);
        if !self.is_stride_of_nothing && arrays.all(|array| array.stride.is_none()) {
            return Ok(None);
        }
        let has_rows = self.has_rows() && self.verb == Verb::Scan && self.hand.is_none();
        if self.is_stride_of_nothing || !has_rows {
            return Err(CallError::StrideOfNothing(self.scan()));
        }
        let row = self.axis.map_or(self.columns, |(_, inner)| inner);
        let (scan, [input_names, output_names]) = (self.scan(), self.defined.names());
        let names = input_names.into_iter().chain(output_names).map(str::to_owned);
        // More arrays than there are names are refused later.
        let names = names.chain(std::iter::repeat(String::from("one too many")));
        for (lent, array) in self.inputs.iter_mut().chain(&mut self.outputs).zip(names) {
            let (elements, stride) = (lent.held, lent.stride.unwrap_or(row));
            *lent = lent.in_rows(row).ok_or(CallError::Stride { scan: scan.clone(), array, elements, row, stride })?;
        }
        self.defined = self.defined.strided();
        Ok(Some(row))
    }

    /// What the axis is of arrays of `n` elements. Columns that have no others beside them are rows, whose elements lie side by side, and
    /// a single column is the whole array, of which the device may be told to scan a part.
    fn resolve_axis(&mut self, n: u64) -> Result<(), CallError> {
        let Some((length, inner)) = self.axis else { return Ok(()) };
        let is_single = length.is_none() && inner == 1;
        let length = length.unwrap_or_else(|| n.checked_div(inner).unwrap_or(0).max(1));
        let is_whole = length.checked_mul(inner).is_some_and(|elements| elements > 0 && n.is_multiple_of(elements));
        if !is_whole {
            return Err(CallError::Axis { scan: self.scan(), n, length, inner });
        }
        self.columns = length;
        if inner > 1 || self.defined.is_strided() {
            self.defined = self.defined.in_segments(Segments::Columns(Axis::new(length, inner)));
        } else if is_single {
            self.columns = 0;
            self.defined = self.defined.in_segments(Segments::One);
        }
        Ok(())
    }

    /// Of columns: whether each row of every array lies at a multiple of its bytes.
    fn note_alignment(&mut self) {
        let Some(axis) = self.defined.axis() else { return };
        let is_aligned = |lent: &Lent| {
            axis.inner.checked_mul(lent.element_bytes).is_some_and(|row| lent.address.is_multiple_of(row))
        };
        let are_rows_aligned = self.inputs.iter().chain(&self.outputs).all(is_aligned);
        self.defined = self.defined.in_segments(Segments::Columns(Axis { are_rows_aligned, ..axis }));
    }

    /// What is loaded and what is stored; the array that tells segments stands in front of the user's own.
    fn named(&self) -> Result<(Vec<Named>, Vec<Named>), CallError> {
        if self.is_told_twice {
            return Err(CallError::SegmentsTwice(self.scan()));
        }
        let [input_names, mut output_names] = self.defined.names();
        if self.verb == Verb::Total {
            output_names.clear();
        }
        for (verb, names, arrays) in [("loads", &input_names, &self.inputs), ("stores", &output_names, &self.outputs)] {
            if names.len() != arrays.len() {
                let (defined, given, names) = (names.len(), arrays.len(), names.join(", "));
                return Err(CallError::Count { scan: self.scan(), verb, defined, given, names });
            }
        }
        let telling = self.telling.map(|array| ("keys or head flags", array));
        let inputs = telling.into_iter().chain(input_names.into_iter().zip(self.inputs.iter().copied()));
        Ok((inputs.collect(), output_names.into_iter().zip(self.outputs.iter().copied()).collect()))
    }

    fn check_arrays(&self, inputs: &[Named], outputs: &[Named], n: u64, mode: Mode) -> Result<(), CallError> {
        if let Some(key) = self.unfit_key {
            return Err(CallError::Key { scan: self.scan(), key });
        }
        // From the other end it would lack the first one, and a segment may begin at the last one.
        let is_whole = self.defined.is_reversed() || self.defined.segments() != Segments::One;
        let may_lack_last = mode == Mode::Exclusive && !is_whole;
        let may_have_more = self.defined.is_by_rank() && !self.defined.fills_outputs();
        let (of_inputs, of_outputs, expected) = match self.verb {
            Verb::Histogram => {
                let bins = self.defined.histogram().map_or(0, |histogram| u64::from(histogram.bins));
                (n, bins, "inputs have as many elements as each other, the output as many as there are bins")
            }
            Verb::Expand => (
                self.segments(),
                n,
                "inputs have an element for each item, one less than there are offsets, and outputs as many as each other",
            ),
            Verb::Scatter => (n, self.places(), "inputs have as many elements as each other, and so have outputs"),
            _ if may_have_more => (n, n, "inputs have as many elements as each other, outputs as many or more"),
            _ if self.defined.is_strided() => (n, n, "all have as many rows, which is without what is between them"),
            _ if may_lack_last => (n, n, "outputs have as many elements as each other, inputs as many or one less"),
            _ => (n, n, "all have as many elements"),
        };
        let types = self.defined.inputs().chain(self.defined.outputs());
        for ((index, &(name, lent)), (cuda_type, bytes)) in inputs.iter().chain(outputs).enumerate().zip(types) {
            let (array, bytes) = (name.to_owned(), bytes as u64);
            if lent.element_bytes != bytes || lent.cuda_type != Some(cuda_type) {
                let told = |name: &str, bytes| format!("'{}' of {bytes} bytes", own_name(name));
                let defined = told(cuda_type, bytes);
                let given = told(lent.cuda_type.unwrap_or_default(), lent.element_bytes);
                return Err(CallError::ElementType { scan: self.scan(), array, defined, given });
            }
            let is_one_shorter = may_lack_last && index < inputs.len() && lent.elements + 1 == n;
            let is_longer = may_have_more && index >= inputs.len() && lent.elements > n;
            let needed = if index < inputs.len() { of_inputs } else { of_outputs };
            if lent.elements != needed && !is_one_shorter && !is_longer {
                return Err(CallError::Length {
                    scan: self.scan(),
                    array,
                    elements: lent.elements,
                    n: needed,
                    expected,
                });
            }
            if !lent.address.is_multiple_of(bytes) {
                return Err(CallError::Misaligned { scan: self.scan(), array, address: lent.address, bytes });
            }
        }
        let columns = self.columns;
        if self.has_rows() && (columns == 0 || !n.is_multiple_of(columns)) {
            return Err(CallError::Columns { scan: self.scan(), n, columns });
        }
        Ok(())
    }

    /// What is asked for is what is defined, without what a scan alone has where it is none.
    fn check_verb(&self, n: u64) -> Result<(), CallError> {
        let scan = || self.scan();
        let verb = self.defined.verb();
        if self.verb != verb {
            return Err(CallError::Verb { scan: scan(), call: verb.calls() });
        }
        if verb == Verb::Expand && self.offsets.is_none() {
            return Err(CallError::NoOffsets(scan()));
        }
        if verb != Verb::Compact && self.kept.is_some() {
            return Err(CallError::NothingKept(scan()));
        }
        // The place of a total is one of a final state.
        let has_states = if verb == Verb::Total { self.has_initial() } else { self.has_states() };
        if verb != Verb::Scan && (has_states || self.defined.has_segments() || self.axis.is_some()) {
            return Err(CallError::OfScansAlone(scan()));
        }
        let has_one_result = !matches!(verb, Verb::Scan | Verb::Compact);
        if has_one_result && (self.defined.is_reversed() || self.defined.is_reproducible()) {
            return Err(CallError::OneResult(scan()));
        }
        let counts = if verb == Verb::Histogram { self.outputs.first().copied() } else { self.kept };
        if counts.is_some_and(|counts| counts.element_bytes < 8) && n > i32::MAX as u64 {
            return Err(CallError::NarrowCount { scan: scan(), n });
        }
        let Some(Lent { address, elements, element_bytes: bytes, .. }) = self.kept else { return Ok(()) };
        let array = String::from("number of what is kept");
        if !(1..=2).contains(&elements) {
            return Err(CallError::Counts { scan: scan(), array, elements });
        }
        if !address.is_multiple_of(bytes) {
            return Err(CallError::Misaligned { scan: scan(), array, address, bytes });
        }
        Ok(())
    }

    /// One state at each end, or as many as there are rows.
    fn check_states(&self, n: u64) -> Result<(), CallError> {
        let scan = || self.scan();
        if self.has_initial() && matches!(self.defined.segments(), Segments::Keys(_) | Segments::Offsets) {
            return Err(CallError::InitialByKey(scan()));
        }
        if self.initial.is_some() && self.initial_state.is_some() {
            return Err(CallError::InitialTwice(scan()));
        }
        let defined = self.defined.own_state_bytes() as u64;
        if let Some(given) = self.initial.as_ref().map(|bytes| bytes.len() as u64).filter(|&given| given != defined) {
            return Err(CallError::StateBytes { scan: scan(), array: String::from("initial state"), defined, given });
        }
        let expected = if self.has_rows() { n / self.columns } else { 1 };
        // CUDA C++ aligns no type further than its size divides, and the text of a definition refuses more than 16 bytes.
        let alignment = 1 << defined.trailing_zeros().min(4);
        for (name, lent) in [("initial state", self.initial_state), ("final state", self.final_state)] {
            let Some(Lent { address, elements, element_bytes: given, .. }) = lent else { continue };
            let array = name.to_owned();
            if given != defined {
                return Err(CallError::StateBytes { scan: scan(), array, defined, given });
            }
            if elements != expected {
                return Err(CallError::States { scan: scan(), array, elements, expected });
            }
            if !address.is_multiple_of(alignment) {
                return Err(CallError::Misaligned { scan: scan(), array, address, bytes: alignment });
            }
        }
        if n == 0 && self.final_state.is_some() && !self.has_rows() && self.verb == Verb::Scan {
            return Err(CallError::NoFinalState(scan()));
        }
        Ok(())
    }

    /// What is known here of numbers that the device alone knows.
    fn check_numbers(&self, n: u64) -> Result<(), CallError> {
        // Of no items there are offsets, too.
        let fewest = if n == 0 || self.verb == Verb::Expand { 1 } else { 2 };
        if self.offsets.is_some_and(|offsets| offsets.elements < fewest) {
            return Err(CallError::NoOffsets(self.scan()));
        }
        // Of columns of a given length nobody knows whether rows or matrices are counted.
        let has_length = self.axis.is_some_and(|(length, _)| length.is_some());
        if self.count.is_some() && has_length && self.defined.axis().is_some() {
            return Err(CallError::CountedElsewhere(self.scan()));
        }
        for (name, lent) in [("offsets", self.offsets), ("count", self.count)] {
            let Some(Lent { address, elements, element_bytes: bytes, .. }) = lent else { continue };
            let array = name.to_owned();
            // Of two, as a compaction leaves them, the first.
            if name == "count" && !(1..=2).contains(&elements) {
                return Err(CallError::Counts { scan: self.scan(), array, elements });
            }
            if !address.is_multiple_of(bytes) {
                return Err(CallError::Misaligned { scan: self.scan(), array, address, bytes });
            }
        }
        Ok(())
    }

    /// Whether an output is an input. That may be, whole, because a tile is loaded before it is stored; keys are read by the
    /// next tile, too.
    fn check_overlaps(&self, inputs: &[Named], outputs: &[Named]) -> Result<bool, CallError> {
        let mut in_place = false;
        let finals = self.final_state.map(|state| ("final state", state)).into_iter();
        let finals: Vec<Named> = finals.chain(self.kept.map(|number| ("number of what is kept", number))).collect();
        let initials = self.initial_state.map(|state| ("initial state", state));
        let numbers = [("offsets", self.offsets), ("count", self.count)];
        let numbers = numbers.into_iter().filter_map(|(name, lent)| Some((name, lent?)));
        let initials: Vec<Named> = initials.into_iter().chain(numbers).collect();
        for (position, &(name, output)) in outputs.iter().chain(&finals).enumerate() {
            let overlap = |other: &str| CallError::Overlap {
                scan: self.scan(),
                first: name.to_owned(),
                second: other.to_owned(),
            };
            for (other, &(other_name, array)) in inputs.iter().chain(&initials).enumerate() {
                // What is kept or sorted stands elsewhere than where it stood.
                let is_own = other >= usize::from(self.telling.is_some())
                    && other < inputs.len()
                    && position < outputs.len()
                    && self.verb == Verb::Scan;
                let lie_alike = array.address == output.address && array.stride == output.stride;
                let is_same = is_own && lie_alike && array.cuda_type == output.cuda_type;
                in_place |= is_same;
                if !is_same && output.overlaps(array) {
                    return Err(overlap(other_name));
                }
            }
            if let Some((earlier, _)) = outputs[..position].iter().find(|(_, earlier)| earlier.overlaps(output)) {
                return Err(overlap(earlier));
            }
        }
        Ok(in_place)
    }
}

/// What ranks make of a scan of one of several shards.
#[cfg(any(all(feature = "cpu", feature = "lab"), feature = "nccl"))]
impl Call {
    /// What is defined.
    pub fn defined(&self) -> Defined {
        self.defined
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.inputs.first().is_none_or(|array| array.elements == 0)
    }

    /// Refuses what is no shard of one sequence.
    pub fn check_shard(&self) -> Result<(), CallError> {
        self.check_part()?;
        if self.defined.is_reproducible() { Err(CallError::OfRanks(self.scan())) } else { Ok(()) }
    }

    /// Takes what a rank is dealt of one sequence, whose tiles are counted in the whole of it, so that it may be reproducible.
    pub fn deal(&mut self, hand: Hand) -> Result<(), CallError> {
        self.check_part()?;
        if self.defined.is_by_rank() || !matches!(self.verb, Verb::Scan) {
            return Err(CallError::DealtScansAlone(self.scan()));
        }
        let expected = hand.elements();
        if let Some(array) = self.inputs.iter().chain(&self.outputs).find(|array| array.elements != expected) {
            return Err(CallError::Hand { scan: self.scan(), elements: array.elements, expected });
        }
        self.hand = Some(hand);
        Ok(())
    }

    /// Refuses what is no part of one sequence.
    fn check_part(&self) -> Result<(), CallError> {
        let is_whole = !self.defined.has_segments()
            && !self.defined.is_reversed()
            && self.axis.is_none()
            && self.count.is_none()
            && !self.has_states();
        // An exclusive scan never reads the last input, but the ranks behind this one do: it is in the part's total.
        let shorter = |output: &Lent| self.inputs.iter().any(|input| input.elements < output.elements);
        if self.outputs.iter().any(shorter) {
            return Err(CallError::ShortShard(self.scan()));
        }
        if is_whole { Ok(()) } else { Err(CallError::OfRanks(self.scan())) }
    }

    /// The same without outputs: of a shard's total.
    pub fn without_outputs(mut self) -> Self {
        self.outputs.clear();
        self
    }
}

#[cfg(any(all(feature = "cpu", feature = "lab"), feature = "nccl"))]
impl Prepared {
    /// The combination of so many states of a scan, one behind the other, into one: the identity of none.
    pub fn of_states(defined: Defined, states: u64, count: u64, into: u64) -> Self {
        let problem = Problem::from(defined.total()).of_spine();
        let offset = |address: u64| (address % u64::from(ScanRequest::OFFSETS)) as u32;
        let config = ScanConfig::of_no_scan(problem, count, crate::gpu::Architecture::CHECKED[0]);
        let request = ScanRequest {
            input_offset: offset(states),
            output_offset: offset(into),
            ..ScanRequest::of(problem, Strategy::Lookback, Mode::Inclusive, config, count)
        };
        let mut arrays = Arrays::default();
        (arrays.inputs[0], arrays.outputs[0]) = (states, into);
        Self { request, arrays }
    }
}
