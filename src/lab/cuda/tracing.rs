//! Scans that are recorded on a GPU: kernels with hooks, a place in memory for each step, and one time for the clocks of all
//! multiprocessors.
//!
//! A step is stamped with its multiprocessor's clock, which is read in a few cycles and advances each cycle. The global
//! timer is one for all, and advances in steps that are longer than a step of a scan. So both are read together right behind
//! steps of the global timer, on every multiprocessor, before and after the scan, and a line through these readings gives
//! each cycle its nanosecond. Two multiprocessors may be apart by twice as much as readings lie off their lines,
//! and by what the global timer reaches one of them later than the other, which no reading shows.

use super::harness::{GpuHarness, TIME_LIMIT, launch_words};
use crate::abi;
use crate::cuda::compile::{Compiler, Variant};
use crate::cuda::error::{Context as _, CudaError};
use crate::cuda::launch::{KernelSet, function};
use crate::cuda::memory::Buffer;
use crate::lab::device::DeviceError;
use crate::lab::trace::{Event, Step};
use cudarc::driver::CudaFunction;
use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUfunction_attribute as FunctionAttribute};
use std::collections::BTreeMap;

/// As many blocks as a record tells apart. A tile takes 1.5 KiB.
pub(super) const MOST_TILES: u64 = 1 << abi::LOOKBACK_TRACE_BLOCK_BITS;
/// Readings of the clocks of a multiprocessor at a time.
const SAMPLES: u64 = 24;
const TILE_BYTES: usize = size_of::<abi::lookback_trace_tile>();

/// Both clocks of a multiprocessor at one time.
#[derive(Debug, Clone, Copy)]
struct Reading {
    nanoseconds: u64,
    cycles: u64,
}

/// What a recording takes on a GPU.
pub(super) struct Recorder {
    /// Of kernels that record.
    pub(super) kernels: KernelSet,
    clocks: CudaFunction,
    clock_bytes: u32,
    readings: Buffer,
    records: Buffer,
    tiles: u64,
    /// Of each multiprocessor, from both sides of the scan.
    by_multiprocessor: BTreeMap<u32, Vec<Reading>>,
}

impl Recorder {
    pub(super) fn new(gpu: &GpuHarness, tiles: u64) -> Result<Self, DeviceError> {
        if tiles > MOST_TILES {
            return Err(DeviceError::TooManyTiles { tiles, most: MOST_TILES });
        }
        Self::with_room(gpu, tiles).map_err(|error| gpu.device_error(error))
    }

    fn with_room(gpu: &GpuHarness, tiles: u64) -> Result<Self, CudaError> {
        let recording = |_| Variant { is_recording: true, ..Variant::default() };
        let kernels = KernelSet::new(gpu.context(), Compiler::new()?, recording)?;
        let module = kernels.load(kernels.compiler().tools("trace.cu", kernels.architecture())?.cubin)?;
        let clocks = function(&module, "trace_clocks")?;
        let clock_bytes = gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as u32;
        clocks
            .set_attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, clock_bytes as i32)
            .during(|| format!("allowing a kernel {clock_bytes} bytes of shared memory"))?;
        let multiprocessors = u64::from(gpu.gpu().multiprocessors);
        let readings = gpu.memory.allocate(8 * multiprocessors * (1 + 2 * SAMPLES), "readings of clocks")?;
        let records = gpu.memory.allocate((tiles * TILE_BYTES as u64).max(1), "the records of a scan")?;
        Ok(Self { kernels, clocks, clock_bytes, readings, records, tiles, by_multiprocessor: BTreeMap::new() })
    }

    /// Where the kernels are to record, and how many tiles.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.records.address(), self.tiles)
    }

    /// Forgets what was recorded.
    pub(super) fn clear(&self, gpu: &GpuHarness) -> Result<(), CudaError> {
        self.records.fill(0, self.records.bytes(), 0, &gpu.stream)
    }

    /// Reads the clocks of all multiprocessors.
    pub(super) fn read_clocks(&mut self, gpu: &GpuHarness) -> Result<(), CudaError> {
        let multiprocessors = gpu.gpu().multiprocessors;
        let words = [self.readings.address(), SAMPLES];
        launch_words(&self.clocks, (multiprocessors, 32), self.clock_bytes, &words, &gpu.stream)?;
        gpu.memory.finish(&gpu.stream, TIME_LIMIT, "reading clocks")?;
        let mut bytes = vec![0; self.readings.bytes() as usize];
        self.readings.download(0, &mut bytes, &gpu.stream)?;
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        for readings in words.chunks_exact(1 + 2 * SAMPLES as usize) {
            let pairs = readings[1..].as_chunks::<2>().0.iter();
            let readings_of_one = self.by_multiprocessor.entry(readings[0] as u32).or_default();
            readings_of_one.extend(pairs.map(|&[nanoseconds, cycles]| Reading { nanoseconds, cycles }));
        }
        Ok(())
    }

    /// What was recorded, in nanoseconds, and how far a reading lies off its line at most.
    pub(super) fn events(&self, gpu: &GpuHarness) -> Result<(Vec<Event>, f64), CudaError> {
        let mut bytes = vec![0; self.records.bytes() as usize];
        self.records.download(0, &mut bytes, &gpu.stream)?;
        let lines: BTreeMap<u32, Line> = self
            .by_multiprocessor
            .iter()
            .filter_map(|(&one, readings)| Some((one, Line::through(readings)?)))
            .collect();
        let error = lines.values().map(|line| line.error).fold(0.0, f64::max);
        let begin = lines.values().map(|line| line.first.nanoseconds).min().unwrap_or(0);
        let mut events = Vec::new();
        for (tile, record) in (0..).zip(bytes.as_chunks::<TILE_BYTES>().0) {
            let Some(of_tile) = TileRecord::of(record, tile) else { continue };
            let Some(line) = lines.get(&of_tile.multiprocessor) else {
                let message = format!("a tile on multiprocessor {}, whose clock was not read", of_tile.multiprocessor);
                return Err(CudaError::unexpected("bringing clocks to one time", "a record", message));
            };
            let time = |clock: u32| line.nanoseconds_at(clock, begin).max(0.0).round() as u64;
            events.extend(of_tile.steps.into_iter().map(|(clock, event)| Event { time: time(clock), ..event }));
        }
        Ok((events, error))
    }
}

/// What is recorded of a tile.
struct TileRecord {
    multiprocessor: u32,
    /// The lower half of the multiprocessor's clock, and the event without its time.
    steps: Vec<(u32, Event)>,
}

impl TileRecord {
    /// None of a tile that nobody had.
    fn of(record: &[u8; TILE_BYTES], tile: u64) -> Option<Self> {
        const HALF: usize = abi::LOOKBACK_TRACE_HALF as usize;
        const WARPS: usize = abi::LOOKBACK_TRACE_WARPS as usize;
        let words: Vec<u32> = record.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let (stamps, rest) = words.split_at(2 * WARPS * HALF);
        let (rounds, place) = rest.split_at(4 * abi::LOOKBACK_TRACE_ROUNDS as usize);
        let place = place[0];
        if place & abi::LOOKBACK_TRACE_PLACE_IS_SET == 0 {
            return None;
        }
        let multiprocessor = (place & !abi::LOOKBACK_TRACE_PLACE_IS_SET) >> abi::LOOKBACK_TRACE_BLOCK_BITS;
        let block = u64::from(place & ((1 << abi::LOOKBACK_TRACE_BLOCK_BITS) - 1));
        let mut steps = Vec::new();
        let mut add =
            |clock: u32, warp: u32, step: Step, (round, missing_tile, descriptors): (u32, Option<u64>, u32)| {
                let event =
                    Event { time: 0, multiprocessor, block, warp, step, round, tile, missing_tile, descriptors };
                steps.extend((clock != 0).then_some((clock, event)));
            };
        for (at, &clock) in stamps.iter().enumerate() {
            let (half, warp, step) = (at / (WARPS * HALF), at / HALF % WARPS, at % HALF);
            add(clock, warp as u32, Step::ALL[half * HALF + step], (0, None, 0));
        }
        for (round, &[read, found, missing, descriptors_and_warp]) in (0..).zip(rounds.as_chunks::<4>().0) {
            let (descriptors, warp) = (descriptors_and_warp >> 5, descriptors_and_warp & 31);
            add(read, warp, Step::Read, (round, None, descriptors));
            add(found, warp, Step::Found, (round, (missing != u32::MAX).then_some(u64::from(missing)), descriptors));
        }
        Some(Self { multiprocessor, steps })
    }
}

/// What a multiprocessor's cycles are in nanoseconds: least squares over its readings.
#[derive(Debug, Clone, Copy)]
struct Line {
    first: Reading,
    /// At the first reading, from it.
    offset: f64,
    /// Of a cycle.
    slope: f64,
    /// The farthest that a reading lies off, in nanoseconds.
    error: f64,
}

impl Line {
    /// None through fewer than two readings.
    fn through(readings: &[Reading]) -> Option<Self> {
        let first = *readings.first()?;
        let from_first = |reading: &Reading| {
            let cycles = reading.cycles.wrapping_sub(first.cycles);
            (cycles as f64, reading.nanoseconds.saturating_sub(first.nanoseconds) as f64)
        };
        let points: Vec<(f64, f64)> = readings.iter().map(from_first).collect();
        let count = points.len() as f64;
        let (mean_x, mean_y) =
            points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
        let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        if spread <= 0.0 {
            return None;
        }
        let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
        let offset = mean_y - slope * mean_x;
        let error = points.iter().map(|(x, y)| (y - offset - slope * x).abs()).fold(0.0, f64::max);
        Some(Self { first, offset, slope, error })
    }

    /// When the lower half of the clock was so, on the global timer from `begin` on, which is no later than the first reading: a
    /// second or two behind that reading at most, when it comes round.
    fn nanoseconds_at(&self, clock: u32, begin: u64) -> f64 {
        let cycles = clock.wrapping_sub(self.first.cycles as u32);
        // The difference first: of all nanoseconds a float keeps hundreds.
        (self.first.nanoseconds - begin) as f64 + self.offset + self.slope * f64::from(cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_readings_gives_a_half_of_the_clock_its_time_across_its_end() {
        // 0.5 ns a cycle; the lower half ends in between.
        let begin = (7 << 32) - 1000;
        let reading =
            |cycles: u64, late: u64| Reading { nanoseconds: 5_000 + cycles / 2 + late, cycles: begin + cycles };
        let readings = [reading(0, 0), reading(1000, 2), reading(2000, 0), reading(4000, 2), reading(8000, 0)];
        let line = Line::through(&readings).unwrap();
        assert!((line.slope - 0.5).abs() < 1e-3 && line.error > 0.5 && line.error < 2.0, "{line:?}");
        assert!((line.nanoseconds_at((begin + 6000) as u32, 1_000) - 7_000.0).abs() < 2.0);
        assert!(Line::through(&readings[..1]).is_none());
    }

    #[test]
    fn a_record_says_who_was_where_and_for_whom_he_waited() {
        let mut words = [0_u32; TILE_BYTES / 4];
        words[4 * 3 + Step::Stored as usize] = 70; // warp 3
        words[128 + 4 * 2 + Step::Ticket as usize - 4] = 20; // warp 2
        words[256..260].copy_from_slice(&[30, 40, 9, 17 << 5 | 6]);
        let record = |words: &[u32; TILE_BYTES / 4]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            TileRecord::of(bytes.as_slice().try_into().unwrap(), 11)
        };
        assert!(record(&words).is_none(), "nobody had it");
        words[384] = abi::LOOKBACK_TRACE_PLACE_IS_SET | 131 << 16 | 65_535;
        let TileRecord { multiprocessor, steps } = record(&words).unwrap();
        assert_eq!(multiprocessor, 131);
        let told =
            |(clock, event): &(u32, Event)| (*clock, event.warp, event.step, event.missing_tile, event.descriptors);
        let told: Vec<_> = steps.iter().map(told).collect();
        assert_eq!(
            told,
            [
                (70, 3, Step::Stored, None, 0),
                (20, 2, Step::Ticket, None, 0),
                (30, 6, Step::Read, None, 17),
                (40, 6, Step::Found, Some(9), 17),
            ]
        );
        assert!(steps.iter().all(|(_, event)| (event.tile, event.block, event.multiprocessor) == (11, 65_535, 131)));
    }
}
