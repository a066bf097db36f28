//! A CPU device as a rank.

use super::{Check, Manner, Part, RankDevice, Subject, Work};
use crate::lab::cpu_device::{CpuDevice, CpuSettings, HostArray};
use crate::lab::dataset::available_memory_bytes;
use crate::lab::device::{Device, DeviceDescription, DeviceError};
use crate::lab::host_ranks::HostRanks;
use crate::lab::host_scanner::HostScanner;
use crate::ranks::Group;
use crate::run::AnyScanner;
use crate::strategy::call::Lent;
use std::time::Instant;

/// A CPU device that is a rank of a group.
pub struct CpuRank {
    ranks: HostRanks,
    scanner: HostScanner,
    settings: CpuSettings,
    loaded: Option<(Work, Part, Vec<u8>)>,
}

impl CpuRank {
    /// Of a rank of the group.
    pub fn new(group: Group, settings: CpuSettings) -> Self {
        let scanner = HostScanner::new(settings);
        Self { ranks: HostRanks::new(group), scanner, settings, loaded: None }
    }

    /// Leaves, once all ranks have come to this.
    ///
    /// # Errors
    /// When a rank is lost.
    pub fn finish(self) -> Result<(), DeviceError> {
        self.ranks.finish()
    }

    /// Whether there is room for the arrays of all ranks, which share this machine.
    fn check_memory(&self, work: Work, part: &Part) -> Result<(), DeviceError> {
        let bytes = (work.input.bytes() + work.output.bytes()) as u64 * self.group().size() as u64;
        let needed_bytes = part.elements().saturating_mul(bytes);
        let available_bytes = available_memory_bytes().unwrap_or(u64::MAX);
        if needed_bytes <= available_bytes {
            return Ok(());
        }
        let what = format!("{} elements for each of {} ranks", part.elements(), self.group().size());
        Err(DeviceError::OutOfMemory { what, device: "this machine".to_owned(), needed_bytes, available_bytes })
    }

    /// Scans the part and returns the results, and the carry where it is deferred.
    fn scan(&mut self, subject: Subject) -> Result<(Vec<u8>, Vec<u8>), DeviceError> {
        let (work, part, input) = self.loaded.as_ref().ok_or(DeviceError::NoDataset)?;
        let n = part.elements();
        let mut output = vec![0; n as usize * work.output.bytes()];
        let mut run = self.scanner.run(work.defined()?);
        let address = run.lender.keep(HostArray::state(input));
        run.call.input(Lent::of(work.input, address, n));
        let address = run.lender.keep_output(HostArray::state_to_write(&output), &mut output);
        run.call.output(Lent::of(work.output, address, n));
        let carry = match subject {
            None => run.launch(work.mode).map(|()| Vec::new()),
            Some(Manner::Contiguous) => self.ranks.scan(run, work.mode).map(|()| Vec::new()),
            Some(Manner::Deferred) => self.ranks.scan_deferred_bytes(run, work.mode),
            Some(Manner::Cyclic) => self.ranks.scan_cyclic(run, work.mode, part.deal()?).map(|()| Vec::new()),
        };
        Ok((output, carry?))
    }
}

impl RankDevice for CpuRank {
    fn description(&self) -> DeviceDescription {
        CpuDevice::new(self.settings).description()
    }

    fn group(&self) -> &Group {
        self.ranks.group()
    }

    fn load(&mut self, work: Work, part: Part) -> Result<(), DeviceError> {
        // What was loaded before gives its room back first.
        self.loaded = None;
        self.check_memory(work, &part)?;
        let elements = work.elements(&part, part.elements());
        self.loaded = Some((work, part, elements));
        Ok(())
    }

    fn check(&mut self, manner: Manner) -> Result<u64, DeviceError> {
        let (results, carry) = self.scan(Some(manner))?;
        let Some((work, part, _)) = &self.loaded else { return Err(DeviceError::NoDataset) };
        let from = if manner == Manner::Deferred { part.place(0) } else { 0 };
        let is_carry_wrong = manner == Manner::Deferred && carry != work.carry(from);
        Ok(work.wrong(Check { part, from }, &results) + u64::from(is_carry_wrong))
    }

    fn time(&mut self, subject: Subject) -> Result<f64, DeviceError> {
        let begin = Instant::now();
        self.scan(subject)?;
        Ok(begin.elapsed().as_nanos() as f64)
    }

    fn method(&self) -> &'static str {
        "wall time of the executor, which says nothing about a GPU"
    }
}
