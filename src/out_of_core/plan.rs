//! How arrays are divided into chunks.

use crate::element::{Defined, Verb};
use crate::strategy::Mode;
#[cfg(any(all(feature = "cpu", feature = "lab"), feature = "cuda"))]
use crate::strategy::call::{Call, Lent};
use crate::text::format_bytes;
use std::ops::Range;

/// Where an array begins, in device and staging memory: a line of any cache, and of every vector access.
const ALIGNMENT: u64 = 256;
/// Chunks from so many bytes on are as fast as larger ones, so that more of them under way are better than larger ones.
const WORTHWHILE_BYTES: u64 = 1 << 20;
/// Larger ones only make the first copy in and the last copy out longer, beside which nothing runs.
const MOST_CHUNK_BYTES: u64 = 64 << 20;
/// One chunk is copied in, one scanned and one copied out at the same time.
const OVERLAPPED: u32 = 3;
/// Whole pages of the file, and whole tiles.
const ROUND_ELEMENTS: u64 = 4096;

/// The memory that a scan in chunks may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of each device's memory: chunks, states between them, and the workspace of the scans. The CUDA context and the
    /// kernels' code are not counted, which are there before.
    pub device_bytes: u64,
    /// Bytes of staging memory on the host, pinned where there is a GPU.
    pub host_bytes: u64,
    /// The most chunks that are under way at once; each has a thread.
    pub chunks_under_way: u32,
    /// Elements of a chunk, where memory allows more. `None` takes as many as are useful.
    pub chunk_elements: Option<u64>,
}

impl Limits {
    /// The same with enough chunks under way that on each of so many devices one is copied in, one scanned and one copied out.
    #[must_use]
    pub fn for_devices(self, devices: usize) -> Self {
        let enough = u32::try_from(devices).unwrap_or(u32::MAX).saturating_mul(OVERLAPPED);
        Self { chunks_under_way: self.chunks_under_way.max(enough), ..self }
    }
}

impl Default for Limits {
    /// 1 GiB of the device's memory, 256 MiB of the host's, and two chunks under way for each core, at most 32.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Self {
            device_bytes: 1 << 30,
            host_bytes: 256 << 20,
            chunks_under_way: (2 * cores).clamp(OVERLAPPED, 32),
            chunk_elements: None,
        }
    }
}

/// A scan that cannot be divided.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Not one element of each chunk under way.
    #[error(
        "{given} bytes of {of} memory are too little: {chunks} chunk(s) under way need {needed} bytes{} for an element each; \
         allow more, such as {}",
        if *beside > 0 { format!(" and their workspace {beside}") } else { String::new() },
        format_bytes((needed + beside).next_power_of_two()).unwrap_or_else(|| format!("{} bytes", needed + beside))
    )]
    TooLittle {
        /// "device" or "host".
        of: &'static str,
        /// As many bytes are allowed.
        given: u64,
        /// As many are needed at least.
        needed: u64,
        /// Of these beside the chunks.
        beside: u64,
        /// That are under way.
        chunks: u32,
    },
    /// It goes over the array otherwise than once from the left to the right.
    #[error("{scan} is not scanned in chunks: {why}")]
    NotInChunks {
        /// The scan.
        scan: String,
        /// Why not.
        why: &'static str,
    },
    /// Nothing that scans.
    #[error("no device was given to scan chunks on")]
    NoDevice,
    /// No chunk may have 0 elements.
    #[error("a chunk has at least 1 element")]
    NoElements,
    /// Arrays that are not those of the definition.
    #[error("{0}")]
    Arrays(String),
    /// A state to go on from that the scan does not have.
    #[error("{scan} has a state of {expected} bytes, the one to go on from has {given}")]
    State {
        /// The scan.
        scan: String,
        /// Its state's bytes.
        expected: usize,
        /// As many are given.
        given: usize,
    },
}

/// How a scan of n elements is divided, and what memory it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkPlan {
    defined: Defined,
    mode: Mode,
    n: u64,
    chunk_elements: u64,
    chunks_under_way: u32,
    devices: u32,
}

/// Where the arrays of a chunk begin, in bytes from where its memory begins, and where this ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Of what is loaded.
    pub inputs: Vec<Range<u64>>,
    /// Of what is stored.
    pub outputs: Vec<Range<u64>>,
    /// All of them.
    pub bytes: u64,
}

impl ChunkPlan {
    /// Divides a scan of `n` elements among `devices`, as many as can be used of them. `workspace_bytes` are taken off the memory of
    /// each.
    ///
    /// # Errors
    /// Too little memory for chunks of one element; no device; a scan in segments, in reverse or of no state, or another mode than
    /// inclusive and exclusive.
    pub fn new(
        defined: Defined,
        mode: Mode,
        n: u64,
        limits: &Limits,
        devices: usize,
        workspace_bytes: u64,
    ) -> Result<Self, PlanError> {
        let refused = |why| Err(PlanError::NotInChunks { scan: defined.to_string(), why });
        if mode == Mode::InclusiveMinusInput {
            return refused("the mode inclusive-minus-input takes inputs off again that are no longer there");
        }
        if defined.verb() != Verb::Scan {
            return refused("it stores elsewhere than it loads");
        }
        if defined.is_reversed() || defined.has_segments() {
            return refused("it is reversed or in segments");
        }
        if defined.parameters().len() > 0 {
            return refused(
                "it has parameters, for which there is no place beside a host's arrays: write their values into its text",
            );
        }
        if limits.chunk_elements == Some(0) {
            return Err(PlanError::NoElements);
        }
        if devices == 0 {
            return Err(PlanError::NoDevice);
        }
        let devices = devices.min(limits.chunks_under_way.max(1) as usize) as u32;
        let one = Self { defined, mode, n, chunk_elements: 1, chunks_under_way: 1, devices };
        let element_bytes = one.element_bytes();
        // No more chunks than are worthwhile, but enough that the three steps overlap on each device.
        let of_devices = limits.device_bytes.saturating_mul(u64::from(devices));
        let worthwhile = u32::try_from(limits.host_bytes.min(of_devices) / WORTHWHILE_BYTES).unwrap_or(u32::MAX);
        let enough = worthwhile.max(OVERLAPPED.saturating_mul(devices));
        let under_way = limits.chunks_under_way.clamp(1, enough);
        let least = Self { chunks_under_way: under_way, ..one };
        for (of, given, needed, beside, chunks) in [
            ("device", limits.device_bytes, least.device_bytes(), workspace_bytes, least.most_of_a_device()),
            ("host", limits.host_bytes, least.host_bytes(), 0, under_way),
        ] {
            if needed + beside > given {
                return Err(PlanError::TooLittle { of, given, needed, beside, chunks });
            }
        }
        let fits = |chunk_elements: u64| {
            let plan = Self { chunk_elements, ..least };
            plan.device_bytes() + workspace_bytes <= limits.device_bytes && plan.host_bytes() <= limits.host_bytes
        };
        // No more than gives every thread some chunks: of one large chunk nothing overlaps.
        let useful = n.div_ceil(4 * u64::from(under_way)).max(WORTHWHILE_BYTES / element_bytes);
        let most = limits.chunk_elements.unwrap_or(useful.min(MOST_CHUNK_BYTES / element_bytes)).min(n).max(1);
        let (mut fitting, mut too_many) = (1, most + 1);
        while too_many - fitting > 1 {
            let middle = fitting + (too_many - fitting) / 2;
            if fits(middle) { fitting = middle } else { too_many = middle }
        }
        let is_asked_for = limits.chunk_elements == Some(fitting);
        if fitting > ROUND_ELEMENTS && fitting < n && !is_asked_for {
            fitting -= fitting % ROUND_ELEMENTS;
        }
        Ok(Self { chunk_elements: fitting, ..least })
    }

    /// What is scanned.
    pub const fn defined(&self) -> Defined {
        self.defined
    }

    /// Inclusive or exclusive.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Elements of each array.
    pub const fn elements(&self) -> u64 {
        self.n
    }

    /// Elements of every chunk but the last one, which may have fewer.
    pub const fn chunk_elements(&self) -> u64 {
        self.chunk_elements
    }

    /// Chunks that are under way at once.
    pub const fn chunks_under_way(&self) -> u32 {
        self.chunks_under_way
    }

    /// Devices that take chunks.
    pub const fn devices(&self) -> u32 {
        self.devices
    }

    /// The device of each chunk that is under way at once.
    #[cfg(any(all(feature = "cpu", feature = "lab"), feature = "cuda"))]
    pub(crate) fn devices_of_slots(&self) -> impl Iterator<Item = usize> + use<> {
        let devices = self.devices as usize;
        (0..self.chunks_under_way as usize).map(move |slot| slot % devices)
    }

    /// Bytes of an element of every array that is loaded.
    pub fn input_bytes(&self) -> Vec<u64> {
        self.defined.inputs().map(|(_, bytes)| bytes as u64).collect()
    }

    /// Bytes of an element of every array that is stored.
    pub fn output_bytes(&self) -> Vec<u64> {
        self.defined.outputs().map(|(_, bytes)| bytes as u64).collect()
    }

    /// The larger of what is loaded and stored of an element.
    fn element_bytes(&self) -> u64 {
        let sum = |bytes: Vec<u64>| bytes.iter().sum::<u64>();
        sum(self.input_bytes()).max(sum(self.output_bytes()))
    }

    /// Chunks of `elements` from `start` on.
    pub fn chunks_from(&self, start: u64) -> u64 {
        self.n.saturating_sub(start).div_ceil(self.chunk_elements)
    }

    /// The elements of a chunk of those from `start` on.
    pub fn chunk(&self, start: u64, index: u64) -> Range<u64> {
        let first = start + index * self.chunk_elements;
        first..self.n.min(first + self.chunk_elements)
    }

    /// Elements that a chunk of `elements` has on the device. An exclusive scan says what the next chunk starts from only where there
    /// is one output more than inputs: that of the next chunk's first element, which is not copied back.
    pub const fn device_elements(&self, elements: u64) -> u64 {
        elements + self.mode.lag()
    }

    /// Whether the one input and the one output are of a type, so that they share their memory on the device.
    pub fn is_in_place(&self) -> bool {
        let (inputs, outputs): (Vec<_>, Vec<_>) = (self.defined.inputs().collect(), self.defined.outputs().collect());
        inputs.len() == 1 && inputs == outputs
    }

    /// A chunk's memory on the device.
    pub fn device_layout(&self) -> Layout {
        let elements = self.device_elements(self.chunk_elements);
        let (inputs, end) = laid_out(&self.input_bytes(), elements, 0);
        if self.is_in_place() {
            return Layout { outputs: inputs.clone(), inputs, bytes: end };
        }
        let (outputs, end) = laid_out(&self.output_bytes(), elements, end);
        Layout { inputs, outputs, bytes: end }
    }

    /// A chunk's staging memory. Outputs lie over inputs, which are on the device before these come back. Behind them is room for a
    /// state.
    pub fn host_layout(&self) -> Layout {
        let (inputs, inputs_end) = laid_out(&self.input_bytes(), self.chunk_elements, 0);
        let (outputs, outputs_end) = laid_out(&self.output_bytes(), self.chunk_elements, 0);
        Layout { inputs, outputs, bytes: inputs_end.max(outputs_end) + ALIGNMENT }
    }

    /// Where a chunk's state lies in its staging memory.
    pub fn host_state(&self) -> Range<usize> {
        let start = (self.host_layout().bytes - ALIGNMENT) as usize;
        start..start + self.defined.own_state_bytes()
    }

    /// The scan of a chunk whose arrays and states lie at these addresses.
    #[cfg(any(all(feature = "cpu", feature = "lab"), feature = "cuda"))]
    pub(crate) fn call(&self, elements: u64, [inputs, outputs]: [&[u64]; 2], initial: Option<u64>, last: u64) -> Call {
        let mut call = Call::new(self.defined);
        for (&address, of) in inputs.iter().zip(self.defined.inputs()) {
            call.input(Lent::as_defined(of, address, elements));
        }
        for (&address, of) in outputs.iter().zip(self.defined.outputs()) {
            call.output(Lent::as_defined(of, address, self.device_elements(elements)));
        }
        let bytes = self.defined.own_state_bytes();
        if let Some(address) = initial {
            call.initial_state(Lent::states_of(bytes, address, 1));
        }
        call.final_state(Lent::states_of(bytes, last, 1));
        call
    }

    /// Bytes that a state between chunks takes on a device.
    pub const STATE_STRIDE: u64 = ALIGNMENT;

    /// What a chunk takes on its device: its arrays, and behind them two states.
    pub fn slot_bytes(&self) -> u64 {
        self.device_layout().bytes + 2 * Self::STATE_STRIDE
    }

    /// Chunks under way of a device that has most of them.
    const fn most_of_a_device(&self) -> u32 {
        self.chunks_under_way.div_ceil(self.devices)
    }

    /// Bytes of the memory of a device that has most of the chunks, without the workspace; the state that the first one starts from is
    /// among them.
    pub fn device_bytes(&self) -> u64 {
        u64::from(self.most_of_a_device()) * self.slot_bytes() + Self::STATE_STRIDE
    }

    /// Bytes of staging memory.
    pub fn host_bytes(&self) -> u64 {
        u64::from(self.chunks_under_way) * self.host_layout().bytes
    }
}

/// Arrays of so many elements, one behind the other from `start` on, and where they end.
fn laid_out(element_bytes: &[u64], elements: u64, start: u64) -> (Vec<Range<u64>>, u64) {
    let mut end = start;
    let ranges = element_bytes.iter().map(|bytes| {
        let range = end..end + elements * bytes;
        end = range.end.next_multiple_of(ALIGNMENT);
        range
    });
    (ranges.collect(), end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Definition, ElementType, Operator};
    use proptest::prelude::*;

    fn sums(input: ElementType, output: ElementType) -> Defined {
        Definition::of_numbers(Operator::Sum, input, output).expect("sums").define().expect("a definition")
    }

    proptest! {
        #[test]
        fn a_plan_stays_within_its_memory_and_its_chunks_are_the_array(
            n in 0_u64..1 << 40, device in 0_u64..1 << 34, host in 0_u64..1 << 32, chunks in 1_u32..40,
            asked in proptest::option::of(1_u64..1 << 30), exclusive: bool, widening: bool, workspace in 0_u64..1 << 20,
            devices in 1_usize..9,
        ) {
            let mode = if exclusive { Mode::Exclusive } else { Mode::Inclusive };
            let defined = sums(if widening { ElementType::U8 } else { ElementType::U32 }, ElementType::U32);
            let limits = Limits { device_bytes: device, host_bytes: host, chunks_under_way: chunks, chunk_elements: asked };
            match ChunkPlan::new(defined, mode, n, &limits, devices, workspace) {
                Ok(plan) => {
                    prop_assert!(plan.device_bytes() + workspace <= device && plan.host_bytes() <= host);
                    prop_assert!((1..=plan.chunks_under_way()).contains(&plan.devices()));
                    prop_assert!((1..=chunks).contains(&plan.chunks_under_way()));
                    prop_assert!(asked.is_none_or(|asked| plan.chunk_elements() <= asked));
                    let count = plan.chunks_from(0);
                    prop_assert_eq!(count == 0, n == 0);
                    for index in [0, count / 2, count.saturating_sub(1)].into_iter().filter(|&index| index < count) {
                        let chunk = plan.chunk(0, index);
                        prop_assert!(chunk.start < chunk.end && chunk.end <= n);
                        prop_assert_eq!(chunk.end == n, index + 1 == count);
                    }
                }
                Err(PlanError::TooLittle { of, given, needed, beside, .. }) => {
                    prop_assert_eq!(given, if of == "device" { device } else { host });
                    prop_assert!(needed + beside > given);
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }

    #[test]
    fn what_goes_over_the_array_otherwise_is_refused() {
        let plan = |defined, mode| ChunkPlan::new(defined, mode, 100, &Limits::default(), 1, 0);
        let sum = sums(ElementType::U32, ElementType::U32);
        let selection = Definition::select::<u32>("return x > 7;").define().expect("a selection");
        let shifted = Definition::of_numbers(Operator::Sum, ElementType::U32, ElementType::U32).expect("a sum");
        let shifted = shifted.parameter::<u32>("shift").define().expect("it has a parameter");
        for (defined, mode) in [
            (sum.reversed(true), Mode::Inclusive),
            (selection, Mode::Inclusive),
            (sum, Mode::InclusiveMinusInput),
            (shifted, Mode::Inclusive),
        ] {
            assert!(matches!(plan(defined, mode), Err(PlanError::NotInChunks { .. })), "{defined} {mode}");
        }
        assert!(plan(sum, Mode::Exclusive).is_ok());
    }
}
