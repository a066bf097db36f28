//! The memory that a case scans in: the workspace that launches leave each other, the arrays of each, and what must be in
//! them afterwards.

use super::case::Case;
use super::outcome::Fault;
use super::watched::Places;
use super::workspace;
use crate::abi;
use crate::lab::bounds::Array;
use crate::lab::cpu_device::{AlignedBytes, Apart, LaidOut};
use crate::lab::dataset::Dataset;
use crate::lab::device::DeviceError;
use crate::lab::verify::verify;
use crate::lab::workload::Workload;
use crate::strategy::call::{Lent, check_findings};
use crate::strategy::launch::{Addresses, Arrays};
use crate::strategy::plan::{Plan, RegionKey, ScanRequest};
use crate::strategy::{CallError, Descriptor};

/// A control block and descriptors, kept by the kernels from launch to launch.
pub(super) struct Workspace {
    pub control: Apart<abi::lookback_control>,
    pub descriptors: AlignedBytes,
    pub capacity: u64,
    key: RegionKey,
}

impl Workspace {
    pub fn new(key: RegionKey, descriptors: u64) -> Self {
        let capacity = RegionKey::capacity(descriptors);
        let descriptors = AlignedBytes::new((capacity * key.descriptor_bytes) as usize, 0);
        Self { control: Apart::default(), descriptors, capacity, key }
    }

    /// Makes room for the descriptors of all these plans, as a host does: a workspace that has it is kept. Of a plan without any
    /// the layout says nothing.
    pub fn reserve<'a>(&mut self, plans: impl IntoIterator<Item = &'a Plan>) {
        let largest = plans.into_iter().max_by_key(|plan| plan.descriptors).filter(|plan| plan.descriptors > 0);
        let Some(plan) = largest else { return };
        let key = RegionKey::of(plan);
        if self.capacity < plan.descriptors || self.key != key {
            let control = std::mem::take(&mut self.control);
            *self = Self { control, ..Self::new(key, plan.descriptors) };
        }
    }

    pub fn places(&mut self) -> Places {
        Places {
            control: (&raw mut *self.control).expose_provenance(),
            descriptors: self.descriptors.bytes_mut().as_mut_ptr().expose_provenance(),
            descriptor_bytes: self.descriptors.bytes().len(),
            capacity: self.capacity,
            layout: self.key.layout,
        }
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

    /// Whether so many launches, of which the first one found `completed` epochs, left it as they must.
    pub fn check(&self, completed: u32, launches: u32) -> Result<(), Fault> {
        if launches == 0 {
            return Ok(());
        }
        let shape = (self.key.layout, self.capacity);
        check_workspace(&self.control, self.descriptors.bytes(), shape, completed_behind(completed, launches))
    }
}

/// Launches that a workspace says to have completed, so many behind `completed`: 0 behind the largest epoch.
pub(super) fn completed_behind(completed: u32, launches: u32) -> u32 {
    let next = |before: u32| if before == abi::LOOKBACK_MAXIMUM_EPOCH { 1 } else { before + 1 };
    (0..launches).fold(completed, |before, _| next(before)) % abi::LOOKBACK_MAXIMUM_EPOCH
}

/// Whether a control block and descriptors, of a layout and so many, are as launches leave them that have completed so many.
pub(super) fn check_workspace(
    control: &abi::lookback_control,
    descriptors: &[u8],
    (layout, capacity): (Descriptor, u64),
    completed: u32,
) -> Result<(), Fault> {
    let abi::lookback_control { ticket, finished_blocks, completed_epochs, .. } = *control;
    let wrong = |what: String| Err(Fault::Workspace { what });
    if (ticket, finished_blocks, completed_epochs) != (0, 0, completed) {
        return wrong(format!(
            "ticket {ticket}, finished blocks {finished_blocks}, completed epochs {completed_epochs}; must be 0, 0, {completed}"
        ));
    }
    let tag = |number| workspace::tag(descriptors, layout, number);
    let tags = workspace::tags(descriptors, layout, capacity);
    match (0..tags).find(|&number| completed == 0 && tag(number) != 0) {
        Some(number) => {
            wrong(format!("tag {number} of the descriptors is {:#x} after the wrap, must be 0", tag(number)))
        }
        None => Ok(()),
    }
}

/// One scan of a case: what is scanned, where that lies, and its launches.
pub(super) struct Scan {
    pub dataset: Dataset,
    /// As the addresses have it.
    pub request: ScanRequest,
    pub plan: Plan,
    laid_out: LaidOut,
    given: Arrays,
    findings: Apart<abi::lookback_findings>,
    /// Where the states at the last elements are to go, if they are asked for.
    final_states: Option<AlignedBytes>,
    /// The count that the device must find too large, or not of whole rows.
    wrong_count: Option<u64>,
}

impl Scan {
    /// The case's scan of `n` elements, or as many as its rows and columns need, drawn from a seed.
    pub fn new(case: &Case, n: u64, seed: u64) -> Result<Self, Fault> {
        let (workload, request) = case.sized(n);
        let broken = |error: DeviceError| Fault::Execution { text: error.to_string() };
        let dataset = Dataset::random(workload, request.n, seed);
        let counted = case.counted(workload, request.n);
        let wrong_count = counted.map(|counted| counted.count).filter(|&count| count != request.n);
        let mut laid_out = LaidOut::with_room(&request, &dataset, counted);
        let (room, capacity) = counted.map_or((workload, request.n), |counted| (counted.workload, counted.n));
        let states = final_states(room, capacity).filter(|_| case.seed.is_multiple_of(2));
        let mut final_states =
            states.as_ref().map(|states| AlignedBytes::new(states.len() * workload.element().bytes(), NO_STATE));
        let lent = final_states.as_mut().map(|memory| {
            let address = memory.bytes_mut().as_mut_ptr().expose_provenance() as u64;
            Lent::of(workload.element(), address, states.map_or(0, |states| states.len() as u64))
        });
        let (request, given) = laid_out.prepare_with_states(&request, lent).map_err(broken)?;
        let plan = Plan::new(&request).map_err(|error| broken(error.into()))?;
        Ok(Self { dataset, request, plan, laid_out, given, findings: Apart::default(), final_states, wrong_count })
    }

    /// How many of its launches use the workspace, each at an epoch of its own.
    pub fn epochs(&self) -> u32 {
        self.plan.steps.iter().filter(|step| step.uses_descriptors()).count() as u32
    }

    /// Makes it the scan of what it leaves itself; whether there is one.
    pub fn goes_on(&mut self) -> bool {
        let next = self.dataset.scanned_in_place(self.request.mode);
        next.map(|dataset| self.dataset = dataset).is_some()
    }

    /// Addresses, without those of a workspace.
    pub fn addresses(&mut self) -> Addresses {
        let findings = (&raw mut *self.findings).expose_provenance() as u64;
        Addresses { findings, ..Addresses::over(self.given) }
    }

    /// What a launch may touch of it.
    pub fn regions(&mut self) -> Vec<Array> {
        let address = (&raw mut *self.findings).expose_provenance();
        let bytes = size_of::<abi::lookback_findings>();
        let findings = Array { name: "the findings", address, bytes, writable: true };
        let final_states = self.final_states.as_mut().map(|states| {
            let memory = states.bytes_mut();
            let address = memory.as_mut_ptr().expose_provenance();
            Array { name: "the final states", address, bytes: memory.len(), writable: true }
        });
        self.laid_out.regions().chain([findings]).chain(final_states).collect()
    }

    /// Compares with what must be there.
    pub fn check(&self) -> Result<(), Fault> {
        match (check_findings(&self.findings), self.wrong_count) {
            (Err(CallError::Counted { count }), Some(wrong)) if count == wrong => {}
            (Ok(()), None) => {}
            (Err(error), _) => return Err(Fault::Execution { text: error.to_string() }),
            (Ok(()), Some(count)) => {
                return Err(Fault::Execution {
                    text: format!("the device has not found that a count of {count} is wrong"),
                });
            }
        }
        self.check_output(&self.laid_out.output(), self.laid_out.is_whole())?;
        self.check_final_states()
    }

    /// Compares an output with what must be there; `is_whole`: whether nobody wrote elsewhere.
    pub fn check_output(&self, output: &[u8], is_whole: bool) -> Result<(), Fault> {
        let found = verify(&ScanRequest { n: self.dataset.n, ..self.request }, &self.dataset, output);
        let complaint = found.complaint();
        match (found.first_mismatch, found.expected, found.actual) {
            (Some(index), Some(expected), Some(actual)) => {
                Err(Fault::WrongResult { index, mismatches: found.mismatches, expected, actual })
            }
            _ => match complaint {
                Some(text) => Err(Fault::Execution { text }),
                None if is_whole => Ok(()),
                None => Err(Fault::WroteElsewhere),
            },
        }
    }

    /// The state at a last element is what that one was stored from, which the output has shown to be right.
    fn check_final_states(&self) -> Result<(), Fault> {
        let Some(memory) = &self.final_states else { return Ok(()) };
        let bytes = self.dataset.workload.element().bytes();
        let stored = self.laid_out.output();
        let last = final_states(self.dataset.workload, self.dataset.n).unwrap_or_default();
        let (states, behind) = memory.bytes().split_at(last.len() * bytes);
        for (number, (state, at)) in states.chunks_exact(bytes).zip(last).enumerate() {
            if *state != stored[at * bytes..][..bytes] {
                return Err(Fault::Execution { text: format!("final state {number} is not that of element {at}") });
            }
        }
        // Of rows that are not there nobody knows one.
        if behind.iter().any(|&byte| byte != NO_STATE) { Err(Fault::WroteElsewhere) } else { Ok(()) }
    }
}

/// What is where no state is yet.
const NO_STATE: u8 = 0x5a;

/// The places of the last elements of a scan of `n`, of whose states each is stored: one of each row or column, or one of all.
/// `None` where a state is not what is stored, or not at its place.
fn final_states(workload: Workload, n: u64) -> Option<Vec<usize>> {
    let is_stored = workload.operator().is_some() && workload.state() == workload.instance();
    if !is_stored || workload.is_plain() || workload.is_by_rank() {
        return None;
    }
    let line = workload.line_elements().unwrap_or(n);
    // A reversed scan ends where the memory of a line begins.
    let last = if workload.is_reversed() { 0 } else { line - 1 };
    let columns = workload.side_by_side(n);
    let place = |number| (number / columns * line + last) * columns + number % columns;
    Some((0..n / line).map(|number| place(number) as usize).collect())
}

/// Memory for the totals of tiles, of a plan's launches and of all that come behind them.
pub(super) struct Scratch(AlignedBytes);

impl Scratch {
    /// As much as the plan needs that needs most.
    pub fn new<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> Self {
        const POISON: u8 = 0xa5;
        let bytes = plans.into_iter().map(|plan| plan.scratch_bytes).max().unwrap_or(0);
        Self(AlignedBytes::new(bytes as usize, POISON))
    }

    pub fn region(&mut self) -> Array {
        let scratch = self.0.bytes_mut();
        let address = scratch.as_mut_ptr().expose_provenance();
        Array { name: "the scratch memory", address, bytes: scratch.len(), writable: true }
    }
}
