//! From a sweep file to rows: point after point, everything verified before it is timed and once more after.
//!
//! The device stands behind [`Laboratory`], so that the whole way from file to record is tested without one.

use super::clocks::Clocks;
use super::environment::Machine;
use super::point::{Entry, Point, Subject};
use super::record::{Beside, FigureRecord, Finished, PointDone, Status, SweepRecorder, SweepRow};
use super::sampling::{Compared, Figure, PATIENCE, Sampler, sample_figure};
use super::sweep::{Limits, SweepFile};
use crate::lab::bins::Bins;
use crate::lab::device::DeviceError;
use crate::lab::recorder::{RecordError, Skipped};
use crate::lab::verify::Verification;
use crate::lab::workload::Ranks;
use crate::strategy::tuning::TuningError;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// What is known of a subject before it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubjectFacts {
    /// Widest access of a lane in bytes.
    pub access_bytes: Option<u32>,
    /// Kernel launches of one scan.
    pub launches: Option<u64>,
    /// Registers a thread, the most of its kernels.
    pub registers: Option<u32>,
    /// Bytes that registers spill, both ways, the most of its kernels.
    pub spill_bytes: Option<u32>,
}

/// Why a subject is not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMeasured {
    /// It does not exist for this type or mode; no row.
    Unsupported(String),
    /// It does not compile or cannot be launched; a row that says so.
    NotLaunchable(String),
}

/// What came of opening a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedPoint {
    /// An answer an entry, in order.
    Ready(Vec<Result<SubjectFacts, NotMeasured>>),
    /// The arrays do not fit into the device's memory, and by how much.
    DoesNotFit(String),
}

/// A device that points are measured on. One point is open at a time.
pub trait Laboratory {
    /// What it is.
    fn machine(&self) -> Machine;

    /// Names of the peers that can run here.
    fn peers(&self) -> Vec<String>;

    /// Compiles what these points need on all cores. What does not compile says so when its point is opened.
    fn compile_ahead(&mut self, points: &[Point]);

    /// Keeps the device busy so long, to bring its clocks up.
    ///
    /// # Errors
    /// When the device failed.
    fn warm_up(&mut self, duration: Duration) -> Result<(), DeviceError>;

    /// Makes the input of a point from `seed` and gets its subjects ready. Closes the point before.
    ///
    /// # Errors
    /// When the device failed.
    fn open(&mut self, point: &Point, seed: u64) -> Result<OpenedPoint, DeviceError>;

    /// Poisons the output, runs a subject once and verifies every element; of a [`Subject::Bound`] there is nothing to
    /// verify.
    ///
    /// # Errors
    /// When the device failed. A subject that cannot be launched is none.
    fn verify(&mut self, entry: usize) -> Result<Result<Verification, NotMeasured>, DeviceError>;

    /// What takes samples of the open point's subjects.
    fn sampler(&mut self) -> &mut dyn Sampler<Error = DeviceError>;

    /// Lets go of the open point.
    fn close(&mut self);

    /// Temperature in degrees Celsius, where it is known.
    fn temperature_celsius(&self) -> Option<u32>;
}

/// Why a sweep ended early. What was finished is on disk.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The record cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The tuning table does not fit the GPU.
    #[error(transparent)]
    Tuning(#[from] TuningError),
}

/// What a sweep tells while it runs.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Kernels are being compiled for so many points.
    Compiling(usize),
    /// A point begins.
    Point(&'a Point),
    /// A point was finished: its rows.
    Rows(&'a Point, &'a [SweepRow]),
    /// Something is not run.
    Skipped(&'a Skipped),
}

/// What came of the part of a sweep that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepSummary {
    /// Rows of which some element was wrong.
    pub wrong: usize,
    /// Rows that could not be launched.
    pub not_launchable: usize,
    /// Figures that met no stopping criterion.
    pub untrusted_figures: usize,
    /// The last line of a finished record.
    pub finished: Finished,
}

/// How many times as many samples of the latency are taken at least, and at most.
const LATENCY_SAMPLES: [usize; 2] = [5, 2];
/// How long the device is kept busy before the first point.
const FIRST_WARM_UP: Duration = Duration::from_millis(300);

/// Measures the points that the record does not have yet.
///
/// # Errors
/// When the device failed or the record cannot be written.
pub fn run_sweep(
    laboratory: &mut dyn Laboratory,
    sweep: &SweepFile,
    recorder: &mut SweepRecorder,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<SweepSummary, SweepError> {
    let tuning = sweep.tuning_on(laboratory.machine().tuning_gpu())?;
    let (points, skipped) = sweep.points_by(&laboratory.peers(), &tuning);
    for skipped in skipped {
        progress(Progress::Skipped(&skipped));
        recorder.skipped(skipped)?;
    }
    let (summary, _) =
        run_points(laboratory, points, sweep.seed, Duration::MAX, recorder, progress, &|laboratory, point, clocks| {
            measure_point(laboratory, point, sweep.seed, &sweep.limits, clocks)
        })?;
    Ok(summary)
}

type Measure<'a> = &'a dyn Fn(&mut dyn Laboratory, &Point, &mut Clocks) -> Result<MeasuredPoint, DeviceError>;

/// Measures the points that the record does not have yet, and begins none after `budget`. Returns how many are left.
pub(super) fn run_points(
    laboratory: &mut dyn Laboratory,
    mut points: Vec<Point>,
    sweep_seed: u64,
    budget: Duration,
    recorder: &mut SweepRecorder,
    progress: &mut dyn FnMut(Progress<'_>),
    measure: Measure<'_>,
) -> Result<(SweepSummary, usize), SweepError> {
    let start = Instant::now();
    points.retain(|point| !recorder.has_point(point));
    let mut clocks = Clocks::default();
    if !points.is_empty() {
        progress(Progress::Compiling(points.len()));
        laboratory.compile_ahead(&points);
        laboratory.warm_up(FIRST_WARM_UP)?;
    }
    let mut points_left = points.len();
    for point in &points {
        if start.elapsed() >= budget {
            break;
        }
        progress(Progress::Point(point));
        let point_start = Instant::now();
        let measured = measure(laboratory, point, &mut clocks)?;
        for skipped in measured.skipped {
            progress(Progress::Skipped(&skipped));
            recorder.skipped(skipped)?;
        }
        progress(Progress::Rows(point, &measured.rows));
        for row in measured.rows {
            recorder.row(row)?;
        }
        let seconds = (point_start.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        recorder.point(PointDone::new(point.key(), point.seed(sweep_seed), measured.beside, seconds))?;
        points_left -= 1;
    }
    laboratory.close();
    let rows = &recorder.record().rows;
    let figures = rows.iter().flat_map(|row| Figure::ALL.iter().filter_map(|&figure| row.figure(figure)));
    let summary = SweepSummary {
        wrong: rows.iter().filter(|row| row.status == Status::Wrong).count(),
        not_launchable: rows.iter().filter(|row| row.status == Status::NotLaunchable).count(),
        untrusted_figures: figures.filter(|figure| figure.unavailable.is_none() && !figure.is_trusted).count(),
        finished: Finished {
            seconds: start.elapsed().as_secs_f64(),
            median_clock_mhz: clocks.median_megahertz(),
            temperature_celsius: laboratory.temperature_celsius(),
        },
    };
    Ok((summary, points_left))
}

/// The rows of a point, and what of it was not run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeasuredPoint {
    /// One a subject that exists, in the order of the entries.
    pub rows: Vec<SweepRow>,
    /// What was measured beside them.
    pub beside: Beside,
    /// What was left out.
    pub skipped: Vec<Skipped>,
}

/// Measures everything at a point.
///
/// # Errors
/// When the device failed.
pub fn measure_point(
    laboratory: &mut dyn Laboratory,
    point: &Point,
    sweep_seed: u64,
    limits: &Limits,
    clocks: &mut Clocks,
) -> Result<MeasuredPoint, DeviceError> {
    let mut measured = MeasuredPoint::default();
    let what = format!("{} at n = {}", point.workload, point.n);
    let what = if point.offsets.is_aligned() { what } else { format!("{what}, {}", point.offsets) };
    let mut with_others = point.clone();
    for subject in [Subject::EmptyFrame, Subject::Sentinel] {
        let is_beside = |figure: &Figure| Beside::subject(*figure).as_ref() == Some(&subject);
        let figures = Figure::ALL.iter().copied().filter(is_beside).collect();
        with_others.entries.push(Entry { subject, figures });
    }
    let opened = match laboratory.open(&with_others, sweep_seed)? {
        OpenedPoint::Ready(opened) => opened,
        OpenedPoint::DoesNotFit(why) => {
            measured.skipped.push(Skipped { what, why });
            return Ok(measured);
        }
    };
    // A row an entry, `None` if the subject does not exist; and the entries that are timed: those that are right, and bounds.
    let mut rows: Vec<Option<SweepRow>> = Vec::with_capacity(opened.len());
    let mut right = Vec::new();
    for (index, (entry, opened)) in point.entries.iter().zip(opened).enumerate() {
        let mut row = SweepRow::new(&entry.subject, point.workload, point.n);
        row.offsets = point.offsets;
        let verified = match opened {
            Ok(facts) => {
                row.access_bytes = facts.access_bytes;
                row.launches = facts.launches;
                row.registers = facts.registers;
                row.spill_bytes = facts.spill_bytes;
                laboratory.verify(index)?
            }
            Err(reason) => Err(reason),
        };
        match verified {
            Ok(_) if is_bound(&entry.subject) => {
                right.push(index);
                row.status = Status::NotVerified;
                row.reason = Some("waits for nothing, so its result is wrong by design; not verified".to_owned());
                rows.push(Some(row));
            }
            Ok(verification) => {
                match verification.complaint() {
                    None => {
                        right.push(index);
                        row.status = Status::Measured;
                    }
                    Some(complaint) => {
                        row.status = Status::Wrong;
                        row.reason = Some(format!("wrong before timing, and not timed: {complaint}"));
                    }
                }
                row.verification = Some(verification);
                rows.push(Some(row));
            }
            Err(NotMeasured::NotLaunchable(reason)) => {
                row.reason = Some(reason);
                rows.push(Some(row));
            }
            Err(NotMeasured::Unsupported(why)) => {
                let mode = entry.subject.mode().map_or(String::new(), |mode| format!(" {mode}"));
                measured
                    .skipped
                    .push(Skipped { what: format!("{}{mode} of {}", entry.subject.name(), point.workload), why });
                rows.push(None);
            }
        }
    }
    let seed = point.seed(sweep_seed);
    for &figure in Figure::ALL {
        let mut subjects: Vec<usize> =
            right.iter().copied().filter(|&index| point.entries[index].figures.contains(&figure)).collect();
        if subjects.is_empty() {
            continue;
        }
        let hints: Vec<Option<f64>> = subjects.iter().map(|&index| hint(rows[index].as_ref())).collect();
        let mut settings = limits.sampling();
        if figure == Figure::Latency {
            // The host is much noisier than the device, and these samples take some 60 µs each.
            let rule = &mut settings.rule;
            rule.minimum_samples *= LATENCY_SAMPLES[0];
            rule.maximum_samples = rule.minimum_samples.max(LATENCY_SAMPLES[1] * rule.maximum_samples);
        }
        // Beside the others in every round, so that drift meets it as it meets them.
        let measured_beside = Beside::subject(figure);
        let frame = figure.has_frame().then_some(subjects.len());
        if let Some(subject) = &measured_beside {
            subjects.extend(with_others.entries.iter().position(|entry| entry.subject == *subject));
        }
        let figure_seed = seed ^ (figure as u64 + 1);
        let compared = Compared { figure, subjects: &subjects, hint_nanoseconds: &hints, frame, seed: figure_seed };
        let mut sampled = sample_figure(laboratory.sampler(), &compared, &settings, clocks)?;
        let mut frame_ns = None;
        if measured_beside.is_some()
            && let Some(last) = sampled.pop()
        {
            let beside = FigureRecord::new(last, 0, None);
            frame_ns = frame.and(beside.median_ns);
            measured.beside.keep(figure, beside);
        }
        for (&index, sampled) in subjects.iter().zip(sampled) {
            if let Some(row) = &mut rows[index] {
                *row.figure_mut(figure) = Some(FigureRecord::new(sampled, row.bytes, frame_ns));
            }
        }
        compare_with_copy(&mut rows, &point.entries, figure);
    }
    for index in right.into_iter().filter(|&index| !is_bound(&point.entries[index].subject)) {
        let verified = laboratory.verify(index)?;
        let Some(row) = &mut rows[index] else { continue };
        match verified {
            Ok(verification) => {
                if let Some(complaint) = verification.complaint() {
                    row.status = Status::Wrong;
                    row.reason = Some(format!("right before timing, wrong after it: {complaint}"));
                }
                row.verification = Some(verification);
            }
            Err(NotMeasured::Unsupported(reason) | NotMeasured::NotLaunchable(reason)) => {
                row.status = Status::Wrong;
                row.reason = Some(format!("could be launched before timing, not after it: {reason}"));
            }
        }
    }
    measured.rows = rows.into_iter().flatten().collect();
    Ok(measured)
}

const fn is_bound(subject: &Subject) -> bool {
    matches!(subject, Subject::Bound { .. })
}

/// About what one run takes, from the figure measured last.
fn hint(row: Option<&SweepRow>) -> Option<f64> {
    let row = row?;
    [Figure::Graph, Figure::Stream, Figure::Cold].into_iter().find_map(|figure| row.figure(figure)?.median_ns)
}

fn compare_with_copy(rows: &mut [Option<SweepRow>], entries: &[Entry], figure: Figure) {
    let copy = entries.iter().position(|entry| entry.subject == Subject::Memcpy);
    let median = copy.and_then(|copy| rows[copy].as_ref()?.figure(figure)?.median_ns);
    let Some(median) = median else { return };
    for row in rows.iter_mut().flatten() {
        if let Some(figure) = row.figure_mut(figure) {
            figure.compare_with_copy(median);
        }
    }
}

/// How long a sweep takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// What to expect on an H100 whose kernels are compiled, in seconds.
    pub expected_seconds: f64,
    /// What compiling all of its kernels takes, in seconds: nothing of those that the cache has.
    pub compile_seconds: f64,
    /// What the time-outs allow at most, in seconds, without compilation.
    pub at_most_seconds: f64,
}

/// Estimates a point on an H100. Good to a factor of two; the time-outs are exact.
pub fn estimate(point: &Point, limits: &Limits) -> Estimate {
    /// Bytes a nanosecond that a copy moves, both ways counted.
    const COPY_BYTES_PER_NS: f64 = 2.9e3;
    /// Queueing a sample, its two clock probes, waiting for it.
    const SAMPLE_OVERHEAD_NS: f64 = 120e3;
    /// Overwriting the L2.
    const OVERWRITE_NS: f64 = 60e3;
    /// Making arrays and reference of a problem on the host, which has 16 processors or more, an element.
    const MADE_NS: f64 = 5.0;
    /// Ranking those that are stored by rank, by one processor.
    const RANKED_NS: f64 = 12.0;
    /// Drawing where each goes, and finding what comes there, likewise.
    const TOLD_NS: f64 = 40.0;
    /// Sorting them there, by all processors.
    const SORTED_NS: f64 = 100.0;
    /// Comparing an output there, an element, with the way from the device.
    const COMPARED_NS: f64 = 1.0;
    /// Finding the bin of an element that is no byte's value, by all processors: for each output anew.
    const BINNED_NS: f64 = 1.0;
    // What cannot be launched takes no time.
    let entries: Vec<&Entry> = point.entries.iter().filter(|entry| point.refusal(entry).is_none()).collect();
    let bytes = point.workload.bytes(point.n) as f64;
    let on_host_ns = if point.workload.is_plain() { 0.0 } else { point.n as f64 };
    let ranked_ns = match point.workload.ranks() {
        Some(Ranks::Sorted(_)) => SORTED_NS,
        Some(Ranks::Kept(_)) => RANKED_NS,
        Some(Ranks::Told(_)) => TOLD_NS,
        None => 0.0,
    };
    let is_binned = point.workload.bins().is_some_and(|(bins, _)| bins != Bins::ByteValues);
    let compared_ns = COMPARED_NS + if is_binned { BINNED_NS } else { 0.0 };
    let copy_ns = bytes / COPY_BYTES_PER_NS;
    let mut expected_ns = copy_ns * 4.0 + 1e6 + on_host_ns * (MADE_NS + ranked_ns);
    let mut at_most_ns = 0.0;
    for &figure in Figure::ALL {
        let mut figure_ns = 0.0;
        let mut subjects = 0.0;
        for entry in entries.iter().filter(|entry| entry.figures.contains(&figure)) {
            let run_ns = 3e3 + copy_ns * relative_cost(&entry.subject, point.n);
            let sample_ns = match figure {
                Figure::Cold => run_ns + OVERWRITE_NS,
                Figure::Latency => run_ns,
                _ => run_ns.max(limits.sample_microseconds * 1e3),
            };
            // Calibration and warm-up come before the samples. Short subjects are noisy: two launches have two
            // peaks, and the host's launch rate is what a stream measures; a graph is quiet.
            let is_noisy = run_ns < 30e3 && !figure.is_replayed();
            let samples =
                if is_noisy { 0.5 * limits.maximum_samples as f64 } else { 1.5 * limits.minimum_samples as f64 };
            let samples = samples + 3.0;
            figure_ns += samples * (sample_ns + SAMPLE_OVERHEAD_NS);
            subjects += 1.0;
        }
        let time_out_ns = subjects * limits.seconds_per_figure * 1e9;
        expected_ns += figure_ns.min(time_out_ns);
        at_most_ns += f64::from(PATIENCE) * time_out_ns;
    }
    // Made ready, run and verified twice; the verdict reads the output and makes the input anew.
    for entry in &entries {
        let run_ns = copy_ns * relative_cost(&entry.subject, point.n);
        let is_scan = entry.subject.mode().is_some();
        let verified_ns = if is_scan { on_host_ns * compared_ns } else { 0.0 };
        expected_ns += 2.0 * (run_ns + 2.0 * copy_ns + verified_ns) + 2e6;
    }
    Estimate { expected_seconds: expected_ns * 1e-9, compile_seconds: 0.0, at_most_seconds: at_most_ns * 1e-9 }
}

/// Time of a subject by the time of a copy, on an H100, roughly.
fn relative_cost(subject: &Subject, n: u64) -> f64 {
    let n = n as f64;
    match (subject, subject.scan()) {
        (_, Some((strategy, _, config))) => {
            let narrow = if strategy.has_tiles() { 1.0 + 4.0 / f64::from(config.vt.max(1)) } else { 1.0 };
            narrow * (strategy.row().time_by_copy)(n)
        }
        (Subject::Peer { .. }, None) => 1.4,
        _ => 1.05,
    }
}

/// Estimates a whole sweep, and the compilation of its kernels by so many processors.
pub fn estimate_sweep(points: &[Point], limits: &Limits, processors: u64) -> Estimate {
    /// NVRTC's time for a kernel, the slow ones (VT 64, 1024 threads) averaged in.
    const COMPILE_SECONDS: f64 = 0.5;
    let before = FIRST_WARM_UP.as_secs_f64() + 1.0;
    let mut total = Estimate { expected_seconds: before, compile_seconds: 0.0, at_most_seconds: 0.0 };
    for point in points {
        let estimate = estimate(point, limits);
        total.expected_seconds += estimate.expected_seconds;
        total.at_most_seconds += estimate.at_most_seconds;
    }
    let mut configurations = HashSet::new();
    for point in points {
        for entry in &point.entries {
            if let Some((strategy, mode, config)) = entry.subject.scan()
                && point.refusal(entry).is_none()
            {
                let exclusive = mode != crate::strategy::Mode::Inclusive;
                let kernel = (strategy, is_bound(&entry.subject));
                let scan = (point.workload.kind(), point.workload.input(), point.workload.instance().canonical());
                configurations.insert((scan, kernel, config.vt, config.block_threads, exclusive));
            }
        }
    }
    // A single pass is one kernel; two are about what the other strategies have.
    let kernels: f64 =
        configurations.iter().map(|(_, (strategy, _), ..)| if strategy.is_single_pass() { 1.0 } else { 2.0 }).sum();
    total.compile_seconds = COMPILE_SECONDS * kernels / processors.max(1) as f64;
    total
}
