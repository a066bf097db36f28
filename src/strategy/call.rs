//! One run of a scan that a user has defined: its arrays by address, wherever they lie, checked before anything is launched.

use super::call_error::CallError;
use super::launch::Arrays;
use super::plan::ScanRequest;
use super::tuning::{Resolved, Tuning};
use super::{Mode, ScanConfig, StrategyChoice};
use crate::abi;
use crate::element::{Defined, ElementType, Problem, Segments};
use bytemuck::Pod;

/// An array that is lent for a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lent {
    pub address: u64,
    pub elements: u64,
    pub element_bytes: u64,
}

impl Lent {
    fn end(self) -> u64 {
        self.address + self.elements * self.element_bytes
    }

    fn overlaps(self, other: Self) -> bool {
        self.address < other.end() && other.address < self.end()
    }
}

/// What a run is asked for.
#[derive(Debug)]
pub(crate) struct Call {
    defined: Defined,
    columns: u64,
    initial: Option<(Vec<u8>, u64)>,
    telling: Option<Lent>,
    inputs: Vec<Lent>,
    outputs: Vec<Lent>,
    initial_state: Option<Lent>,
    final_state: Option<Lent>,
    is_told_twice: bool,
}

/// A run that may be launched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prepared {
    pub request: ScanRequest,
    pub arrays: Arrays,
}

impl Call {
    pub fn new(defined: Defined) -> Self {
        Self {
            defined,
            columns: 0,
            initial: None,
            telling: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            initial_state: None,
            final_state: None,
            is_told_twice: false,
        }
    }

    pub fn input(&mut self, array: Lent) {
        self.inputs.push(array);
    }

    pub fn output(&mut self, array: Lent) {
        self.outputs.push(array);
    }

    pub fn reverse(&mut self) {
        self.defined = self.defined.reversed(true);
    }

    pub fn rows(&mut self, columns: u64) {
        self.tell(Segments::Rows, None);
        self.columns = columns;
    }

    pub fn keys(&mut self, key: ElementType, array: Lent) {
        self.tell(Segments::Keys(key), Some(array));
    }

    pub fn head_flags(&mut self, array: Lent) {
        self.tell(Segments::HeadFlags, Some(array));
    }

    fn tell(&mut self, segments: Segments, array: Option<Lent>) {
        self.is_told_twice |= self.defined.segments() != Segments::One;
        self.defined = self.defined.in_segments(segments);
        self.telling = array;
    }

    pub fn initial<T: Pod>(&mut self, state: &T) {
        self.initial = Some((bytemuck::bytes_of(state).to_vec(), size_of::<T>() as u64));
    }

    pub fn initial_state(&mut self, array: Lent) {
        self.initial_state = Some(array);
    }

    pub fn final_state(&mut self, array: Lent) {
        self.final_state = Some(array);
    }

    /// Checks the arrays and chooses how they are scanned. `None` if there are no elements.
    pub fn prepare(
        self,
        mode: Mode,
        strategy: StrategyChoice,
        config: Option<ScanConfig>,
        tuning: &Tuning,
    ) -> Result<Option<Prepared>, CallError> {
        let scan = || self.defined.to_string();
        if self.is_told_twice {
            return Err(CallError::SegmentsTwice(scan()));
        }
        let [input_names, output_names] = self.defined.names();
        for (verb, names, arrays) in [("loads", &input_names, &self.inputs), ("stores", &output_names, &self.outputs)] {
            if names.len() != arrays.len() {
                let (defined, given, names) = (names.len(), arrays.len(), names.join(", "));
                return Err(CallError::Count { scan: scan(), verb, defined, given, names });
            }
        }
        // The array that tells segments stands in front of the user's own.
        let telling = self.telling.map(|array| ("keys or head flags", array));
        let inputs: Vec<_> =
            telling.into_iter().chain(input_names.iter().copied().zip(self.inputs.iter().copied())).collect();
        let outputs: Vec<_> = output_names.iter().copied().zip(self.outputs.iter().copied()).collect();
        let n = self.outputs.first().map_or(0, |output| output.elements);
        let bytes = self.defined.input_bytes().chain(self.defined.output_bytes());
        for ((index, &(name, array)), bytes) in inputs.iter().chain(&outputs).enumerate().zip(bytes) {
            let (array_name, defined) = (name.to_owned(), bytes as u64);
            if array.element_bytes != defined {
                let given = array.element_bytes;
                return Err(CallError::ElementBytes { scan: scan(), array: array_name, defined, given });
            }
            // From the other end it would lack the first one, and a segment may begin at the last one.
            let is_whole = self.defined.is_reversed() || self.defined.segments() != Segments::One;
            let may_lack_last = mode == Mode::Exclusive && index < inputs.len() && !is_whole;
            if array.elements != n && !(may_lack_last && array.elements + 1 == n) {
                let expected = if mode == Mode::Exclusive {
                    "outputs have as many elements as each other, inputs as many or one less"
                } else {
                    "all have as many elements"
                };
                return Err(CallError::Length {
                    scan: scan(),
                    array: array_name,
                    elements: array.elements,
                    n,
                    expected,
                });
            }
            if !array.address.is_multiple_of(defined) {
                return Err(CallError::Misaligned {
                    scan: scan(),
                    array: array_name,
                    address: array.address,
                    bytes: defined,
                });
            }
        }
        let state_bytes = self.defined.own_state_bytes() as u64;
        let given_states =
            [self.initial_state, self.final_state].into_iter().flatten().map(|state| state.element_bytes);
        for given in self.initial.iter().map(|(_, bytes)| *bytes).chain(given_states) {
            if given != state_bytes {
                return Err(CallError::StateBytes { scan: scan(), defined: state_bytes, given });
            }
        }
        // No type of so many bytes is aligned further in CUDA C++.
        let alignment = 1 << state_bytes.trailing_zeros().min(4);
        for (name, state) in [("initial state", self.initial_state), ("final state", self.final_state)] {
            if let Some(Lent { address, .. }) = state
                && !address.is_multiple_of(alignment)
            {
                let array = name.to_owned();
                return Err(CallError::Misaligned { scan: scan(), array, address, bytes: alignment });
            }
        }
        let mut in_place = false;
        let finals = self.final_state.map(|state| ("final state", state));
        let initials = self.initial_state.map(|state| ("initial state", state));
        for (position, &(name, output)) in outputs.iter().chain(&finals).enumerate() {
            for (other, &(other_name, array)) in inputs.iter().chain(&initials).enumerate() {
                // Whole, because a tile is loaded before it is stored; keys are read by the next tile, too.
                let is_own =
                    other >= usize::from(telling.is_some()) && other < inputs.len() && position < outputs.len();
                let is_same = is_own && array.address == output.address && array.element_bytes == output.element_bytes;
                in_place |= is_same;
                if !is_same && output.overlaps(array) {
                    return Err(CallError::Overlap {
                        scan: scan(),
                        first: name.to_owned(),
                        second: other_name.to_owned(),
                    });
                }
            }
            let earlier = outputs.iter().take(position).find(|(_, earlier)| earlier.overlaps(output));
            if let Some((earlier, _)) = earlier {
                return Err(CallError::Overlap { scan: scan(), first: name.to_owned(), second: (*earlier).to_owned() });
            }
        }
        let columns = self.columns;
        if self.defined.segments() == Segments::Rows && (columns == 0 || !n.is_multiple_of(columns)) {
            return Err(CallError::Columns { scan: scan(), n, columns });
        }
        if n == 0 {
            return Ok(None);
        }
        let problem = Problem::from(self.defined);
        let Resolved { strategy, config: chosen } = tuning.choose(strategy, problem, n);
        // In the direction of the scan: from a boundary behind the last element, where it is reversed.
        let offset = |array: Option<&(&str, Lent)>| {
            let offsets = u64::from(ScanRequest::OFFSETS);
            array.map_or(0, |(_, array)| match self.defined.is_reversed() {
                false => (array.address % offsets) as u32,
                true => ((offsets - (array.address + n * array.element_bytes) % offsets) % offsets) as u32,
            })
        };
        let (input_offset, output_offset) = (offset(inputs.first()), offset(outputs.first()));
        let request = ScanRequest {
            problem,
            strategy,
            mode,
            config: config.unwrap_or(chosen),
            n,
            in_place,
            input_offset,
            output_offset,
        };
        let addresses = |arrays: &[(&str, Lent)]| {
            let mut addresses = [0; abi::LOOKBACK_MAXIMUM_ARRAYS as usize];
            for (place, (_, array)) in addresses.iter_mut().zip(arrays) {
                *place = array.address;
            }
            addresses
        };
        let initial = self.initial.map(|(bytes, _)| {
            let mut words = [0_u64; abi::LOOKBACK_MAXIMUM_STATE_BYTES as usize / 8];
            bytemuck::bytes_of_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
            words
        });
        let address = |state: Option<Lent>| state.map_or(0, |state| state.address);
        let arrays = Arrays {
            inputs: addresses(&inputs),
            outputs: addresses(&outputs),
            columns,
            initial,
            initial_state: address(self.initial_state),
            final_state: address(self.final_state),
        };
        Ok(Some(Prepared { request, arrays }))
    }
}
