//! The memory that a case scans in: the workspace that launches leave each other, the arrays of each, and what must be in
//! them afterwards.

use super::outcome::Fault;
use super::watched::Places;
use super::workspace;
use crate::abi;
use crate::element::Instance;
use crate::lab::bounds::Array;
use crate::lab::cpu_device::{AlignedBytes, GuardedArray};
use crate::strategy::plan::{Plan, ScanRequest};
use crate::strategy::{Descriptor, Mode};

/// A control block and descriptors, kept by the kernels from launch to launch.
pub(super) struct Workspace {
    pub control: Box<abi::lookback_control>,
    pub descriptors: AlignedBytes,
    pub capacity: u64,
    layout: Descriptor,
    element_bytes: usize,
}

impl Workspace {
    pub fn new(capacity: u64, layout: Descriptor, element_bytes: usize) -> Self {
        // The split layout asks for a multiple of 4.
        let capacity = capacity.next_multiple_of(4);
        let bytes = capacity * Plan::descriptor_bytes(layout, element_bytes);
        Self {
            control: Box::default(),
            descriptors: AlignedBytes::new(bytes as usize, 0),
            capacity,
            layout,
            element_bytes,
        }
    }

    pub fn places(&mut self) -> Places {
        Places {
            control: (&raw mut *self.control).expose_provenance(),
            descriptors: self.descriptors.bytes_mut().as_mut_ptr().expose_provenance(),
            descriptor_bytes: self.descriptors.bytes().len(),
            capacity: self.capacity,
            layout: self.layout,
            element_bytes: self.element_bytes,
        }
    }

    fn tag(&self, tile: u64) -> u32 {
        workspace::tag(self.descriptors.bytes(), self.layout, tile)
    }

    /// What a host does behind a launch that did not end: nothing of it may reach the next one.
    pub fn clean(&mut self) {
        let completed = self.control.completed_epochs + 1;
        *self.control = abi::lookback_control { completed_epochs: completed, ..Default::default() };
        if completed == abi::LOOKBACK_MAXIMUM_EPOCH {
            self.descriptors.bytes_mut().fill(0);
            self.control.completed_epochs = 0;
        }
    }

    /// Whether a launch at `epoch` left it as it must.
    pub fn check(&self, epoch: u32) -> Result<(), Fault> {
        let abi::lookback_control { ticket, finished_blocks, completed_epochs, .. } = *self.control;
        let wraps = epoch == abi::LOOKBACK_MAXIMUM_EPOCH;
        let expected = if wraps { 0 } else { epoch };
        let wrong = |what: String| Err(Fault::Workspace { what });
        if (ticket, finished_blocks, completed_epochs) != (0, 0, expected) {
            return wrong(format!(
                "ticket {ticket}, finished blocks {finished_blocks}, completed epochs {completed_epochs}; must be 0, 0, {expected}"
            ));
        }
        let left = (0..self.capacity).find(|&tile| self.tag(tile) != 0);
        match left.filter(|_| wraps) {
            Some(tile) => wrong(format!("descriptor {tile} has tag {:#x} after the wrap, must be 0", self.tag(tile))),
            None => Ok(()),
        }
    }
}

/// Arrays of one launch of a scan.
pub(super) struct Arrays {
    pub output: GuardedArray,
    separate_input: Option<GuardedArray>,
    readable: usize,
}

impl Arrays {
    pub fn new(request: &ScanRequest, input: &[u8]) -> Self {
        let element_bytes = request.instance().element().bytes();
        let bytes = request.n as usize * element_bytes;
        // An exclusive scan must do without the last element, so the kernels do not get it.
        let readable = if request.mode == Mode::Exclusive { bytes.saturating_sub(element_bytes) } else { bytes };
        let output_offset = if request.in_place { request.input_offset } else { request.output_offset };
        let mut output = GuardedArray::new(bytes, output_offset);
        let mut separate_input = (!request.in_place).then(|| GuardedArray::new(readable, request.input_offset));
        let target = separate_input.as_mut().unwrap_or(&mut output);
        target.contents_mut()[..readable].copy_from_slice(&input[..readable]);
        Self { output, separate_input, readable }
    }

    pub fn input_address(&mut self) -> *mut u8 {
        self.separate_input.as_mut().unwrap_or(&mut self.output).address()
    }

    /// What a launch may touch of them.
    pub fn regions(&mut self) -> Vec<Array> {
        let region = |name, address: *mut u8, bytes, writable| Array { name, address: address.addr(), bytes, writable };
        let output_bytes = self.output.contents().len();
        let mut regions = vec![region("the output", self.output.address(), output_bytes, true)];
        if let Some(input) = &mut self.separate_input {
            regions.push(region("the input", input.address(), self.readable, false));
        }
        regions
    }

    /// Compares with what must be there.
    pub fn check(&self, input: &[u8], expected: &[u8], instance: Instance) -> Result<(), Fault> {
        let (found, bytes) = (self.output.contents(), instance.element().bytes());
        let pairs = || found.chunks_exact(bytes).zip(expected.chunks_exact(bytes)).enumerate();
        let mut wrong = pairs().filter(|(_, (found, expected))| found != expected);
        if let Some((index, (actual, expected))) = wrong.next() {
            return Err(Fault::WrongResult {
                index: index as u64,
                mismatches: 1 + wrong.count() as u64,
                expected: instance.text(expected),
                actual: instance.text(actual),
            });
        }
        let input_is_whole = self
            .separate_input
            .as_ref()
            .is_none_or(|array| array.guards_are_whole() && array.contents() == &input[..self.readable]);
        if self.output.guards_are_whole() && input_is_whole { Ok(()) } else { Err(Fault::WroteElsewhere) }
    }
}

/// Memory for the totals of tiles, of a plan's launches and of all that come behind them.
pub(super) struct Scratch(AlignedBytes);

impl Scratch {
    pub fn new(plan: &Plan) -> Self {
        const POISON: u8 = 0xa5;
        Self(AlignedBytes::new(plan.scratch_bytes as usize, POISON))
    }

    pub fn region(&mut self) -> Array {
        let scratch = self.0.bytes_mut();
        let address = scratch.as_mut_ptr().expose_provenance();
        Array { name: "the scratch memory", address, bytes: scratch.len(), writable: true }
    }
}
