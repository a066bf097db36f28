//! From a step of a plan to a launch: the arguments of its kernel, and what it asks of a GPU.

use crate::abi;
use crate::element::{Defined, KeyBits};
use crate::gpu::Architecture;
use crate::strategy::columns::Columns;
use crate::strategy::plan::{Place, Plan, Step};
use crate::strategy::planner::scratch_bytes;
use crate::strategy::ring::Ring;

/// Bytes from the control block to what lies behind it in one piece of memory: so many that it has lines of its own.
pub(crate) const CONTROL_BYTES: u64 = 256;

/// Where a scan's arrays and its workspace lie in the memory of the device: addresses in bytes, 0 for none. Those of the
/// CPU are exposed ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The user's input.
    pub input: u64,
    /// The user's output.
    pub output: u64,
    /// The scratch memory of the plan.
    pub scratch: u64,
    /// The control block.
    pub control: u64,
    /// The tile descriptors.
    pub descriptors: u64,
    /// How many descriptors there are.
    pub capacity: u64,
    /// The addresses of all ranks' mailboxes, where tiles are dealt to several.
    pub mailboxes: u64,
    /// Where kernels note what is wrong with numbers that the device alone knows.
    pub findings: u64,
    /// Where kernels that record leave so many tiles; 0 for nowhere.
    pub trace: (u64, u64),
    /// The arrays of what a user has defined.
    pub arrays: Arrays,
}

/// Where the arrays of what a user has [defined](crate::element::Definition) lie, in the order of
/// [`Defined::input_bytes`](crate::element::Defined), and what else its launches are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Arrays {
    /// Those that are loaded.
    pub inputs: [u64; abi::LOOKBACK_MAXIMUM_ARRAYS as usize],
    /// Those that are stored.
    pub outputs: [u64; abi::LOOKBACK_MAXIMUM_ARRAYS as usize],
    /// Elements of a row, where segments are rows; else 0.
    pub columns: u64,
    /// What stands left of the first element, if anything does.
    pub initial: Option<[u64; abi::LOOKBACK_MAXIMUM_STATE_BYTES as usize / 8]>,
    /// Where the same lies in the device's memory; 0 if it does not.
    pub initial_state: u64,
    /// Where the state at the last element is to go; 0 for nowhere.
    pub final_state: u64,
    /// Where segments begin and the last one ends, if offsets tell it.
    pub offsets: WholeNumbers,
    /// How many elements are scanned, if the device alone knows.
    pub count: WholeNumbers,
    /// Where the number of elements is to go that are stored by rank, and behind it that of all others, if anywhere.
    pub kept: WholeNumbers,
    /// Whether the scan begins at the last element.
    pub is_reversed: bool,
    /// Elements of each array that is stored.
    pub places: u64,
    /// How rows lie that do not lie one behind the other.
    pub strides: Strides,
    /// What is given beside arrays.
    pub parameters: Parameters,
}

/// Bytes of what a definition is given beside arrays, as its text finds them.
pub(crate) type Parameters = [u64; abi::LOOKBACK_PARAMETER_BYTES as usize / 8];

/// `parameter_word` in `cuda/gpu/platform.cuh` counts from the launch's end.
const _: () = {
    let end = std::mem::offset_of!(abi::lookback_launch, parameters) + size_of::<Parameters>();
    assert!(end == size_of::<abi::lookback_launch>());
};

/// How the rows of arrays lie, if not one behind the other. Rows are the elements that do, whichever way they are scanned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strides {
    /// Elements of a row; 0 where rows lie one behind the other.
    pub row_elements: u64,
    /// Elements from the begin of a row to that of the next, of each array that is loaded.
    pub inputs: [u64; abi::LOOKBACK_MAXIMUM_ARRAYS as usize],
    /// Likewise of each that is stored.
    pub outputs: [u64; abi::LOOKBACK_MAXIMUM_ARRAYS as usize],
}

impl Strides {
    fn to_abi(self) -> abi::lookback_strides {
        let Self { row_elements, inputs, outputs } = self;
        abi::lookback_strides { row_elements, inverse: inverse(row_elements), inputs, outputs }
    }
}

/// 2^64 by a number, cut; 0 for none. 2^64 itself does not fit: the quotients of 1 are one too small then, as they may be.
fn inverse(number: u64) -> u64 {
    (1_u128 << 64).checked_div(u128::from(number)).map_or(0, |inverse| u64::try_from(inverse).unwrap_or(u64::MAX))
}

/// An array of whole numbers in the device's memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WholeNumbers {
    /// Where it lies; 0 if there is none.
    pub address: u64,
    /// How many there are.
    pub elements: u64,
    /// Bytes of each, 4 or 8.
    pub bytes: u32,
}

impl Addresses {
    /// Those of the user's arrays, before there is a workspace.
    pub fn between(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Those of the arrays of what a user has defined, likewise.
    pub fn over(arrays: Arrays) -> Self {
        Self { arrays, ..Self::between(arrays.inputs[0], arrays.outputs[0]) }
    }

    fn of(&self, place: Place) -> u64 {
        match place {
            Place::Input => self.input,
            Place::Output => self.output,
            Place::Scratch(offset) => self.scratch + offset,
            Place::None => 0,
        }
    }
}

fn pointer<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

impl Step {
    /// The arguments of the kernel, with host epoch 0: the kernels count epochs themselves.
    pub fn launch(&self, addresses: &Addresses) -> abi::lookback_launch {
        let Arrays { offsets, count, kept, is_reversed, places, .. } = addresses.arrays;
        let used = |value| if self.uses_descriptors() { value } else { 0 };
        abi::lookback_launch {
            offsets: pointer(offsets.address),
            segments: offsets.elements.saturating_sub(1),
            offset_bytes: offsets.bytes,
            count: pointer(count.address),
            count_bytes: count.bytes,
            kept: pointer(kept.address),
            kept_bytes: kept.bytes,
            kept_numbers: kept.elements as u32,
            is_reversed: u32::from(is_reversed),
            places,
            findings: pointer(addresses.findings),
            trace: abi::lookback_trace { tiles: pointer(addresses.trace.0), count: addresses.trace.1 },
            input: pointer(addresses.of(self.input)),
            output: pointer(addresses.of(self.output)),
            spine: pointer(addresses.of(self.spine)),
            control: pointer(used(addresses.control)),
            descriptors: pointer(used(addresses.descriptors)),
            deal: self.deal(addresses),
            key_bits: self
                .key_bits
                .map_or_else(Default::default, |KeyBits { first, end }| abi::lookback_key_bits { first, end }),
            n: self.n,
            tiles: self.tiles,
            stride: self.stride,
            capacity: used(addresses.capacity),
            lead: self.lead,
            host_epoch: 0,
            ..self.arrays(addresses)
        }
    }
}

impl Step {
    /// The arguments that tell of other ranks.
    fn deal(&self, addresses: &Addresses) -> abi::lookback_deal {
        let Some(hand) = self.hand else { return abi::lookback_deal::default() };
        let tile = self.config.tile_elements();
        abi::lookback_deal {
            mailboxes: pointer(addresses.mailboxes),
            ranks: hand.ranks() as u32,
            rank: hand.rank() as u32,
            // No rank has as many tiles as these would be.
            chunk_tiles: u32::try_from(hand.deal().chunk() / tile).unwrap_or(u32::MAX),
            reserved: 0,
        }
    }

    /// The arguments that tell of the user's arrays.
    fn arrays(&self, addresses: &Addresses) -> abi::lookback_launch {
        let Some(defined) = self.problem.defined() else { return abi::lookback_launch::default() };
        let Arrays { inputs, outputs, columns, initial, initial_state, final_state, strides, parameters, .. } =
            addresses.arrays;
        let at = |place, own| match place {
            Place::Scratch(offset) => scratch_arrays(addresses.scratch + offset, self.n, defined),
            Place::Output => outputs,
            Place::Input | Place::None => own,
        };
        let (mut inputs, outputs) = (at(self.input, inputs), at(self.output, outputs));
        // In front of the user's own, for which a place was left free.
        if self.bits != Place::None {
            inputs[0] = addresses.of(self.bits);
        }
        abi::lookback_launch {
            inputs: inputs.map(|address| pointer::<std::ffi::c_void>(address).cast_const()),
            outputs: outputs.map(pointer),
            columns,
            columns_inverse: inverse(columns),
            strides: strides.to_abi(),
            parameters,
            initial_state: pointer(initial_state),
            final_state: pointer(final_state),
            has_initial: u32::from(initial.is_some()),
            initial: initial.unwrap_or_default(),
            axis: Columns::of(self.kernel, self.problem, self.config, self.n)
                .map_or_else(Default::default, Columns::to_abi),
            ..abi::lookback_launch::default()
        }
    }
}

/// Arrays of `n` elements like those that are stored, one behind the other, as the planner has made room for them.
fn scratch_arrays(mut address: u64, n: u64, defined: Defined) -> [u64; abi::LOOKBACK_MAXIMUM_ARRAYS as usize] {
    let mut addresses = [0; abi::LOOKBACK_MAXIMUM_ARRAYS as usize];
    for (place, (_, bytes)) in addresses.iter_mut().zip(defined.outputs()) {
        *place = address;
        address += scratch_bytes(n, bytes);
    }
    addresses
}

impl Plan {
    /// Whether a GPU of the architecture has what it takes.
    pub fn runs_on(&self, architecture: Architecture) -> bool {
        self.has_its_clusters(architecture) && self.fits(architecture)
    }

    /// Whether the blocks of the architecture can form the cluster that the plan asks for, if it does.
    pub fn has_its_clusters(&self, architecture: Architecture) -> bool {
        architecture.has_clusters() || !self.steps.iter().any(|step| step.kernel.is_cluster())
    }

    /// Whether a block of the architecture can hold the tiles of every kernel that keeps them in shared memory.
    pub fn fits(&self, architecture: Architecture) -> bool {
        let holds = |step: &Step| Ring::of(step.key()).most_stages(architecture.shared_bytes()) > 0;
        self.steps.iter().all(|step| !step.kernel.has_ring() || holds(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Defined, Definition, ElementType, Instance, Operator, Segments};
    use crate::strategy::plan::ScanRequest;
    use crate::strategy::{Composition, Descriptor, Mode, ScanConfig, Strategy};

    fn sums_of_u32() -> Instance {
        Instance::new(ElementType::U32, Operator::Sum).unwrap()
    }

    /// Arrays that begin behind a boundary need a tile more than the elements alone.
    #[test]
    fn a_kernel_is_given_what_its_step_says() {
        let addresses = Addresses {
            input: 0x1004,
            output: 0x2008,
            scratch: 0x3000,
            control: 0x4000,
            descriptors: 0x4100,
            capacity: 4096,
            ..Addresses::default()
        };
        let plan = |strategy| {
            let config = ScanConfig { vt: 4, block_threads: 32, ..ScanConfig::default() };
            let aligned = ScanRequest::aligned(sums_of_u32(), strategy, Mode::Inclusive, config, 1024);
            Plan::new(&ScanRequest { input_offset: 4, output_offset: 8, ..aligned }).unwrap()
        };
        let given = |strategy| {
            let given = |step: &Step| {
                let launch = step.launch(&addresses);
                let arrays = [launch.input.addr(), launch.output.addr(), launch.spine.addr()];
                let protocol = [launch.control.addr(), launch.descriptors.addr(), launch.capacity as usize];
                (arrays, protocol, [launch.n, launch.tiles, u64::from(launch.lead)])
            };
            plan(strategy).steps.iter().map(given).collect::<Vec<_>>()
        };
        let none = [0, 0, 0];
        assert_eq!(given(Strategy::Lookback), [([0x1004, 0x2008, 0], [0x4000, 0x4100, 4096], [1024, 9, 1])]);
        assert_eq!(
            given(Strategy::ReduceThenScan),
            [
                ([0x1004, 0, 0x3000], none, [1024, 9, 1]),
                ([0x3000, 0x3000, 0], none, [9, 1, 0]),
                ([0x1004, 0x2008, 0x3000], none, [1024, 9, 1])
            ]
        );
        // Eight copies, and room for 16 more before each next one.
        let of = |strategy| (plan(strategy).descriptors, plan(strategy).descriptor_bytes, plan(strategy).scratch_bytes);
        assert_eq!(of(Strategy::Lookback), (9, 8, 0));
        assert_eq!(of(Strategy::OneWave), (8 * (9 + 16), 8, 0));
        assert_eq!(of(Strategy::ReduceThenScan), (0, 8, 256));
        assert_eq!(
            [Descriptor::Packed128, Descriptor::Split].map(|layout| Plan::descriptor_bytes(layout, 8, 8)),
            [16, 20]
        );
    }

    /// They begin as many elements apart as their rows have, and meet nobody. Tiles that begin before the array are none of them, nor
    /// are those of a reproducible scan that rows do not fill.
    #[test]
    fn tiles_of_whole_rows_are_given_no_workspace() {
        let sums = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).unwrap();
        let rows = sums.define().unwrap().in_segments(Segments::Rows { have_states: false });
        let step = |rows: Defined, columns, input_offset| {
            let composition = Composition::ReduceThenScan;
            let config = ScanConfig { vt: 4, block_threads: 64, composition, ..ScanConfig::default() };
            let aligned = ScanRequest::aligned(sums_of_u32(), Strategy::Lookback, Mode::Inclusive, config, 6100);
            let request = ScanRequest { problem: rows.into(), input_offset, row: Some(columns), ..aligned };
            let Step { stride, tiles, grid_blocks, descriptors, .. } = Plan::new(&request).unwrap().steps[0];
            [stride, tiles, grid_blocks, descriptors]
        };
        assert_eq!(step(rows, 61, 0), [244, 25, 25, 0]);
        assert_eq!(step(rows, 61, 4), [0, 24, 24, 24]);
        assert_eq!(step(rows, 100, 0), [0, 24, 24, 24]);
        assert_eq!(step(rows.reproducible(), 61, 0), [0, 24, 24, 24]);
        assert_eq!(step(rows.reproducible(), 4, 0), [256, 24, 24, 0]);
    }
}
