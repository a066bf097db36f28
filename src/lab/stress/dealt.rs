//! Cases whose tiles are dealt to several ranks, each as if on a device of its own: launches of all ranks go on side by side, so that one
//! may be two launches ahead of another one.

use super::arrays::{Scan, Scratch, check_workspace, completed_behind};
use super::case::Case;
use super::draw::Draw;
use super::launches::{Ended, OneScan, launch_all};
use super::outcome::{Fault, Passed};
use super::watched::Places;
use super::workspace;
use crate::abi;
use crate::lab::bounds::Array;
use crate::lab::cpu_device::{AlignedBytes, DealtWorkspace, HostArray};
use crate::lab::device::DeviceError;
use crate::ranks::{Deal, Hand, RankError};
use crate::strategy::call::{Call, Lent, Prepared};
use crate::strategy::launch::Addresses;
use crate::strategy::plan::Plan;
use crate::strategy::{Choices, Descriptor};
use std::mem::offset_of;
use std::ops::Range;

/// What one rank launches once.
struct Launch {
    hand: Hand,
    /// Its inputs, and the output behind them.
    arrays: Vec<HostArray>,
    prepared: Prepared,
    plan: Plan,
}

/// Runs all launches of all ranks of a case, whose whole scan this is.
pub(super) fn run(case: &Case, scan: &Scan, draw: &mut Draw) -> Result<Passed, Fault> {
    let chunk = case.request.config.tile_elements() * (1 + draw.below(3));
    let broken = |error: DeviceError| Fault::Execution { text: error.to_string() };
    let deal = Deal::new(scan.request.n, chunk).map_err(|error: RankError| broken(error.into()))?;
    let ranks = case.ranks as usize;
    let mut launches = Vec::new();
    for _ in 0..case.launches {
        for rank in 0..ranks {
            launches.push(Launch::new(scan, deal.hand(rank, ranks)).map_err(broken)?);
        }
    }
    let layout = launches[0].plan.layout;
    // Room for more than is needed: a wrap must clear that too.
    let capacity = launches[0].plan.descriptors + 8 * draw.below(2);
    let mut workspaces: Vec<_> = (0..ranks).map(|_| DealtWorkspace::new(&launches[0].plan, capacity)).collect();
    for workspace in &mut workspaces {
        workspace.control.completed_epochs = case.completed_epochs;
        let (mailbox, descriptors) = workspace.memory.bytes_mut().split_at_mut(MAILBOX_BYTES);
        let completed = offset_of!(abi::lookback_mailbox, completed_epochs);
        for told in mailbox[completed..][..4 * ranks].chunks_exact_mut(4) {
            told.copy_from_slice(&case.completed_epochs.to_ne_bytes());
        }
        let shape = (layout, capacity);
        workspace::fill(descriptors, shape, case.workspace, case.completed_epochs, case.launches.into(), draw);
    }
    let mailboxes: Vec<_> = workspaces.iter_mut().map(DealtWorkspace::mailbox).collect();
    let table = AlignedBytes::of(&mailboxes);
    let address = table.bytes().as_ptr().expose_provenance();
    let mut regions = vec![Array { name: "the addresses", address, bytes: table.bytes().len(), writable: false }];
    let mut protocol = Vec::new();
    let (mut scratch, mut ready) = (Scratch::new([]), Vec::new());
    for (number, launch) in launches.iter_mut().enumerate() {
        regions.extend(launch.arrays.iter_mut().map(HostArray::region));
        let workspace = &mut workspaces[number % ranks];
        let addresses = workspace.addresses(&table, Addresses::over(launch.prepared.arrays));
        let places = Places {
            control: addresses.control as usize,
            descriptors: addresses.descriptors as usize,
            descriptor_bytes: workspace.memory.bytes().len() - MAILBOX_BYTES,
            capacity,
            layout,
        };
        if number < ranks {
            // The mailbox and the descriptors behind it are one array to whoever writes there.
            let bytes = workspace.memory.bytes().len();
            let [control, _] = places.regions();
            regions.extend([
                control,
                Array { name: "the descriptors", address: mailboxes[number] as usize, bytes, writable: true },
            ]);
            protocol.extend([places.control, mailboxes[number] as usize]);
        }
        let run =
            OneScan { case, host_epoch: case.completed_epochs + 1, disturbance: case.disturbance, seed: draw.word() };
        for step in &launch.plan.steps {
            ready.push(run.ready(step, run.seed, addresses, &mut scratch, places)?);
        }
    }
    if let Ended::Cut = launch_all(case, draw.word(), (&ready, ranks), regions, &protocol, None, None)? {
        return Err(Fault::Execution { text: String::from("a launch was cut that nobody cut") });
    }
    let mut passed = Passed::default();
    for of_launch in launches.chunks(ranks) {
        check(scan, deal, of_launch)?;
        passed.count(case, scan.request.n);
    }
    workspaces.iter().try_for_each(|workspace| check_rank(case, workspace, layout))?;
    Ok(passed)
}

const MAILBOX_BYTES: usize = size_of::<abi::lookback_mailbox>();

impl Launch {
    fn new(scan: &Scan, hand: Hand) -> Result<Self, DeviceError> {
        let request = &scan.request;
        let dealt = |bytes: usize, contents: &[u8]| -> Vec<u8> {
            let of_chunk =
                |chunk: Range<u64>| contents[chunk.start as usize * bytes..chunk.end as usize * bytes].to_vec();
            hand.chunks().flat_map(of_chunk).collect()
        };
        let (mut arrays, mut inputs) = (Vec::new(), Vec::new());
        let offsets = scan.dataset.workload.input_offsets(scan.dataset.n, request.input_offset);
        for ((element, contents), offset) in scan.dataset.inputs().zip(offsets) {
            let mut array = HostArray::copy_at(&dealt(element.bytes(), contents), offset);
            inputs.push(Lent::of(element, array.address(), hand.elements()));
            arrays.push(array);
        }
        let element = scan.dataset.workload.element();
        let mut output = HostArray::room_at(hand.elements() as usize * element.bytes(), request.output_offset);
        let outputs = vec![Lent::of(element, output.address(), hand.elements())];
        arrays.push(output);
        let defined = request.problem.defined().ok_or(DeviceError::NoDataset)?;
        let mut call = Call::over(defined, 0, inputs, outputs);
        call.deal(hand)?;
        let prepared = call.prepare(request.mode, &Choices::made_by(request))?;
        let prepared = prepared.ok_or(DeviceError::NoDataset)?;
        let plan = Plan::new(&prepared.request)?;
        Ok(Self { hand, arrays, prepared, plan })
    }

    fn output(&self) -> &[u8] {
        self.arrays[self.arrays.len() - 1].contents()
    }
}

/// Compares what all ranks have stored with what must be there.
fn check(scan: &Scan, deal: Deal, launches: &[Launch]) -> Result<(), Fault> {
    let bytes = scan.dataset.workload.element().bytes();
    let mut all = vec![0; deal.n() as usize * bytes];
    for launch in launches {
        for (index, value) in launch.output().chunks_exact(bytes).enumerate() {
            let place = launch.hand.place(index as u64) as usize;
            all[place * bytes..][..bytes].copy_from_slice(value);
        }
    }
    let is_whole = launches.iter().all(|launch| launch.arrays.iter().all(HostArray::is_whole));
    scan.check_output(&all, is_whole)
}

/// Whether a rank's workspace is as all launches must leave it.
fn check_rank(case: &Case, workspace: &DealtWorkspace, layout: Descriptor) -> Result<(), Fault> {
    let completed = completed_behind(case.completed_epochs, case.launches);
    let (mailbox, descriptors) = workspace.memory.bytes().split_at(MAILBOX_BYTES);
    check_workspace(&workspace.control, descriptors, (layout, workspace.capacity), completed)?;
    let told = mailbox[offset_of!(abi::lookback_mailbox, completed_epochs)..].chunks_exact(4).take(case.ranks as usize);
    // Nobody tells himself.
    let others = told.filter(|told| *told == completed.to_ne_bytes()).count();
    if others + 1 < case.ranks as usize {
        let what =
            format!("a rank was told by {others} others that {completed} launches are completed, and not by all");
        return Err(Fault::Workspace { what });
    }
    Ok(())
}
