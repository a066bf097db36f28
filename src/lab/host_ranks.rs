//! One scan over several CPU devices: the ranks of a [`Group`], threads of this process or processes of their own, each with its
//! [`HostScanner`]. What a program that scans on several GPUs is tested with where there are none;
//! `cuda::GpuRanks` has the same calls.
//!
//! ```
//! use lookback::element::{Definition, ElementType, Operator};
//! use lookback::lab::host_ranks::HostRanks;
//! use lookback::lab::host_scanner::HostScanner;
//! use lookback::run::AnyScanner;
//! use lookback::ranks::{Group, shard};
//! use lookback::strategy::Mode;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let counts: Vec<u8> = vec![200; 1000];
//! let sums = Definition::of_numbers(Operator::Sum, ElementType::U8, ElementType::U32)?.define()?;
//! let last = std::thread::scope(|scope| -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
//!     let ranks = Group::in_process(3, Duration::from_secs(60))?.into_iter().map(|group| {
//!         let counts = &counts;
//!         scope.spawn(move || {
//!             let mine = shard(1000, group.rank(), group.size());
//!             let mine = &counts[mine.start as usize..mine.end as usize];
//!             let mut offsets = vec![0_u32; mine.len()];
//!             let mut scanner = HostScanner::default();
//!             HostRanks::new(group).scan(scanner.run(sums).input(mine).output(&mut offsets), Mode::Inclusive)?;
//!             Ok::<_, lookback::lab::device::DeviceError>(offsets[offsets.len() - 1])
//!         })
//!     });
//!     let ends = ranks.collect::<Vec<_>>().into_iter().map(|rank| rank.join().expect("no rank panics"));
//!     Ok(ends.collect::<Result<Vec<_>, _>>()?[2])
//! }).map_err(|error| error.to_string())?;
//! assert_eq!(last, 200_000);
//! # Ok(())
//! # }
//! ```

use super::cpu_device::{HostArray, run_dealt};
use super::device::DeviceError;
use super::host_scanner::{HostLender, HostRun, HostScanner};
use crate::element::Defined;
use crate::ranks::{Deal, Group};
use crate::strategy::call::{Lent, Prepared};
use crate::strategy::{CallError, Mode};
use bytemuck::Pod;

/// This rank's part in scans over all ranks; see the [module](self). All ranks make the same calls in the same order.
pub struct HostRanks {
    group: Group,
}

impl HostRanks {
    /// Of a rank of the group.
    pub fn new(group: Group) -> Self {
        Self { group }
    }

    /// The group that it is a rank of.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Leaves, once all ranks have come to this.
    ///
    /// # Errors
    /// When a rank is lost.
    pub fn finish(self) -> Result<(), DeviceError> {
        Ok(self.group.finish()?)
    }

    /// Scans this rank's shard, the arrays of `run`, from what stands left of it. Shards may be empty. The place `i` of a
    /// definition's text is counted from the shard's first element.
    ///
    /// # Errors
    /// When a rank is lost or fails, segments, states before and behind, states of other than 1, 2, 4, 8 or 16 bytes, and as
    /// [`HostRun::inclusive`]. Every other rank has an error then, too, and what outputs hold is not said.
    pub fn scan(&self, run: HostRun<'_>, mode: Mode) -> Result<(), DeviceError> {
        self.telling(|| {
            run.call.check_shard()?;
            let mut run = run;
            let total = own_total(&mut run)?;
            let carry = self.carry(run.lender.scanner, run.call.defined(), &total)?;
            let address = run.lender.keep(HostArray::state(&carry));
            run.call.initial_state(Lent::states_of(carry.len(), address, 1));
            run.launch(mode)
        })
    }

    /// Scans this rank's shard as if nothing stood before it, and leaves beside it what does: at each place the state of the whole
    /// scan is `carry` ⊕ the state of the shard's, which whoever reads combines. An exclusive scan does not come by its last
    /// element, so that the shard is read once more for it.
    ///
    /// # Errors
    /// As [`Self::scan`], and a carry that is no state.
    pub fn scan_deferred<T: Pod>(&self, run: HostRun<'_>, mode: Mode, carry: &mut T) -> Result<(), DeviceError> {
        self.telling(|| {
            let defined = run.call.defined();
            if defined.own_state_bytes() != size_of::<T>() {
                let (scan, array) = (defined.to_string(), String::from("carry"));
                let (defined, given) = (defined.own_state_bytes() as u64, size_of::<T>() as u64);
                return Err(CallError::StateBytes { scan, array, defined, given }.into());
            }
            *carry = bytemuck::pod_read_unaligned(&self.scan_with_carry(run, mode)?);
            Ok(())
        })
    }

    /// The same of a state whose type is not known.
    pub(super) fn scan_deferred_bytes(&self, run: HostRun<'_>, mode: Mode) -> Result<Vec<u8>, DeviceError> {
        self.telling(|| self.scan_with_carry(run, mode))
    }

    /// Scans this rank's chunks of an array that is dealt, the arrays of `run`: tiles of all ranks are taken at once, and their
    /// descriptors lie in the memory of each. The ranks are threads of one process. Chunks are whole tiles. The place `i` of a
    /// definition's text is counted from the rank's first element. `reproducible` gives the bits that one device gives.
    ///
    /// # Errors
    /// When the ranks are processes of their own, ranks deal otherwise, rank 0, which runs the kernels of all, takes longer than the
    /// group's time-out, chunks are no whole tiles, an array has not as many elements as the deal gives the
    /// rank, and as [`Self::scan`].
    pub fn scan_cyclic(&self, mut run: HostRun<'_>, mode: Mode, deal: Deal) -> Result<(), DeviceError> {
        self.telling(|| {
            run.call.deal(deal.hand(self.group.rank(), self.group.size()))?;
            let HostRun { lender: HostLender { scanner, arrays, outputs }, call, .. } = run;
            let Some(prepared) = scanner.prepare(call, mode)? else { return Ok(()) };
            let dealt = self.group.at_first(scanner.dealt(prepared, arrays), run_dealt)?;
            for (place, output) in outputs {
                output.copy_from_slice(dealt.arrays[place].contents());
            }
            Ok(())
        })
    }

    fn scan_with_carry(&self, mut run: HostRun<'_>, mode: Mode) -> Result<Vec<u8>, DeviceError> {
        run.call.check_shard()?;
        let defined = run.call.defined();
        let bytes = defined.own_state_bytes();
        let is_read_again = mode != Mode::Inclusive || run.call.is_empty();
        let read = if is_read_again { Some(own_total(&mut run)?) } else { None };
        let place = run.lender.arrays.len();
        if read.is_none() {
            let address = run.lender.keep(HostArray::state_to_write(&vec![0; bytes]));
            run.call.final_state(Lent::states_of(bytes, address, 1));
        }
        let (scanner, arrays) = run.launch_and_keep(mode)?;
        let total = read.unwrap_or_else(|| arrays[place].contents().to_vec());
        self.carry(scanner, defined, &total)
    }

    /// What stands left of this rank's shard, of which this is the total: the totals of the ranks before it, in their order.
    fn carry(&self, scanner: &mut HostScanner, defined: Defined, total: &[u8]) -> Result<Vec<u8>, DeviceError> {
        let totals = self.group.all_gather(total)?;
        let count = self.group.rank();
        let mut arrays =
            [HostArray::state(&totals[..count * total.len()]), HostArray::state_to_write(&vec![0; total.len()])];
        let [states, into] = arrays.each_mut().map(HostArray::address);
        scanner.launch(&Prepared::of_states(defined, states, count as u64, into), &mut arrays)?;
        Ok(arrays[1].contents().to_vec())
    }

    /// Tells all ranks of an error that they do not know of.
    fn telling<R>(&self, deed: impl FnOnce() -> Result<R, DeviceError>) -> Result<R, DeviceError> {
        let done = deed();
        if let Err(error) = &done
            && !matches!(error, DeviceError::Ranks(_))
        {
            self.group.fail(&error.to_string());
        }
        done
    }
}

/// The total of a shard.
fn own_total(run: &mut HostRun<'_>) -> Result<Vec<u8>, DeviceError> {
    let bytes = run.call.defined().own_state_bytes();
    let place = run.lender.arrays.len();
    let address = run.lender.keep(HostArray::state_to_write(&vec![0; bytes]));
    let mut call = run.call.clone().without_outputs();
    call.total(Lent::states_of(bytes, address, 1));
    let HostLender { scanner, arrays, .. } = &mut run.lender;
    if let Some(prepared) = scanner.prepare(call, Mode::Inclusive)? {
        scanner.launch(&prepared, arrays)?;
    }
    Ok(arrays[place].contents().to_vec())
}
