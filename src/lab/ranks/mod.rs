//! Scans over several ranks, verified and timed beside one device: what `lookback compare --ranks` runs.
//!
//! No rank holds all of the array, and no host need hold any of it: what is scanned follows from the index, and so does what comes
//! out, in closed form. Sums are those of the numbers 0 … 255 over and over; *intervals* join neighbours alone, so that any other
//! order shows.

#[cfg(feature = "cpu")]
pub mod host;
mod manner;
pub mod record;
mod work;

pub use manner::Manner;
pub use work::{Check, Part, Work};

use super::device::{DeviceDescription, DeviceError};
use crate::ranks::{Deal, Group, by_bytes, shard};
use record::Row;

/// What is timed: a manner, or the scan of the rank's shard by itself.
pub type Subject = Option<Manner>;

/// A rank's device and its part of an array.
pub trait RankDevice {
    /// What the device is.
    fn description(&self) -> DeviceDescription;

    /// The group that it is a rank of.
    fn group(&self) -> &Group;

    /// Makes this rank's part of the array and room for its scan.
    ///
    /// # Errors
    /// When it does not fit into the device's memory.
    fn load(&mut self, work: Work, part: Part) -> Result<(), DeviceError>;

    /// Scans over all ranks and returns how many of this rank's results are wrong, the carry of a deferred scan included.
    ///
    /// # Errors
    /// When the scan could not be run, or a rank is lost.
    fn check(&mut self, manner: Manner) -> Result<u64, DeviceError>;

    /// Nanoseconds of a scan, the mean of several in a row.
    ///
    /// # Errors
    /// As [`Self::check`].
    fn time(&mut self, subject: Subject) -> Result<f64, DeviceError>;

    /// How it is timed, in a sentence.
    fn method(&self) -> &'static str;
}

/// What came of one size.
#[derive(Debug, Clone, PartialEq)]
pub enum Came {
    /// A row for each manner.
    Rows(Vec<Row>),
    /// A rank has not the memory.
    Skipped(String),
}

/// What ranks are given of an array, and the manners in which they scan it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The manners.
    pub manners: Vec<Manner>,
    /// Elements of the chunks that are dealt; without, the array is cut into shards.
    pub chunk: Option<u64>,
}

/// The ways of these manners, dealt in each of these chunks.
pub fn ways(manners: &[Manner], chunks: &[u64]) -> Vec<Way> {
    let (dealt, of_shards): (Vec<_>, Vec<_>) = manners.iter().partition(|manner| **manner == Manner::Cyclic);
    let shards =
        [None].into_iter().filter(|_| !of_shards.is_empty()).map(|chunk| Way { manners: of_shards.clone(), chunk });
    let chunks = chunks.iter().filter(|_| !dealt.is_empty());
    shards.chain(chunks.map(|&chunk| Way { manners: dealt.clone(), chunk: Some(chunk) })).collect()
}

/// Runs one size at this rank: all ranks call it alike, and all get the same rows.
///
/// # Errors
/// When a rank is lost, or a scan could not be run, which all others are told.
pub fn run(device: &mut dyn RankDevice, work: Work, n: u64, way: &Way, samples: u32) -> Result<Came, DeviceError> {
    let (rank, size) = (device.group().rank(), device.group().size());
    let chunk = way.chunk;
    let part = match chunk {
        None => Part::Shard(shard(n, rank, size)),
        Some(chunk) => Part::Dealt(Deal::new(n, chunk)?.hand(rank, size)),
    };
    let loaded = device.load(work, part);
    let why = match &loaded {
        Ok(()) => None,
        Err(error @ DeviceError::OutOfMemory { .. }) => Some(error.to_string()),
        #[cfg(feature = "cuda")]
        Err(error @ DeviceError::Cuda(crate::cuda::CudaError::OutOfMemory { .. })) => Some(error.to_string()),
        Err(error) => {
            device.group().fail(&error.to_string());
            loaded?;
            None
        }
    };
    // Of one rank that lacks the memory all hear.
    let lacks = numbers(device.group(), u64::from(why.is_some()))?;
    if let Some(rank) = lacks.iter().position(|&lacks| lacks != 0) {
        return Ok(Came::Skipped(why.unwrap_or_else(|| format!("rank {rank} has not the memory"))));
    }
    let mut rows = Vec::new();
    for &manner in &way.manners {
        let own = device.check(manner)?;
        let wrong = numbers(device.group(), own)?.iter().sum();
        rows.push(Row {
            manner,
            chunk,
            input: work.input,
            output: work.output,
            operator: work.operator,
            mode: work.mode,
            n,
            ranks: size,
            wrong,
            by_bytes: by_bytes(size, work.input.bytes() as f64, work.output.bytes() as f64, manner.readings()),
            samples_ns: Vec::new(),
            alone_ns: Vec::new(),
        });
    }
    // In turn, so that what drifts drifts alike. A device without elements has nothing to time.
    let has_elements = n >= chunk.unwrap_or(1).saturating_mul(size as u64);
    let samples = if has_elements { samples } else { 0 };
    for _ in 0..samples {
        let alone = times(device, None)?.into_iter().fold(f64::INFINITY, f64::min);
        for row in &mut rows {
            let slowest = times(device, Some(row.manner))?.into_iter().fold(0.0, f64::max);
            row.samples_ns.push(slowest);
            row.alone_ns.push(alone);
        }
    }
    Ok(Came::Rows(rows))
}

/// How long each rank took, all having begun at one time.
fn times(device: &mut dyn RankDevice, subject: Subject) -> Result<Vec<f64>, DeviceError> {
    device.group().barrier()?;
    let own = device.time(subject)?;
    Ok(numbers(device.group(), own.to_bits())?.into_iter().map(f64::from_bits).collect())
}

/// What each rank says.
fn numbers(group: &Group, own: u64) -> Result<Vec<u64>, DeviceError> {
    let all = group.all_gather(&own.to_le_bytes())?;
    Ok(all.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8"))).collect())
}
