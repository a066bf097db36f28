//! What a sweep leaves behind, and how to read it.
//!
//! **The file.** `<sweep>-<gpu>.jsonl` while the sweep runs, for example `size-h100.jsonl`, of a further process
//! `<sweep>-<gpu>-process-2.jsonl`: JSON, one object a
//! line, each line flushed as soon as it is finished. When the sweep is done, the same lines are compressed
//! to `<sweep>-<gpu>.jsonl.gz` (gzip) and the plain file goes. [`SweepRecord::read`] takes either; so does
//!
//! ```text
//! zcat size-h100.jsonl.gz | jq 'select(.row.n == 1048576) | .row | [.subject, .graph.median_ns]'
//! ```
//!
//! **The lines.** Each object has one key, which says what it is:
//!
//! | key | times | what |
//! |---|---|---|
//! | `header` | once, first | [`SweepHeader`]: sweep file, seed, program, command line, date, machine |
//! | `row` | one a configuration and size | [`SweepRow`]: the configuration, its verification, its figures |
//! | `point` | one a scan, n and offsets | [`PointDone`]: the rows of this point, right above, are all there |
//! | `call_times` | once, of `targets` | [`CallTimes`]: what a program waits for on the host |
//! | `skipped` | any | what was not run, and why |
//! | `resumed` | one a resumption | when and with which command line |
//! | `finished` | once, last | seconds, median clock of the run, temperature |
//!
//! **The rows.** `subject` is the name in tables and plots (`lookback`, `memcpy`, `cub-3.5.0`, …); `kind` is
//! `strategy`, `peer`, `copy` or `bound`. Fields that a subject does not have are `null`. `status` is `measured`,
//! `wrong` (verification failed; no figure is to be used), `not-launchable` (the configuration does not compile or
//! cannot be launched; `reason` says why), or `not-verified`: a `bound` is a strategy's kernel that waits for nothing,
//! so its result is wrong by design and its times are no scan's. `offsets` are the elements that input and output lie
//! above a 16-byte boundary, `[1, 3]`; without the field both lie at one. `problem` (a [`ProblemKind`] by its name) is what is
//! scanned, `flat` without the field; `input_element` the type of what is loaded, where `element`, what is stored, is another
//! one; `segment_elements` the elements of a row or column, or of a run or segment on average. `cold`, `stream`, `graph` and `latency` hold
//! a [`FigureRecord`] each, or `null` where the figure was not asked for; `behind`, `call` and `untracked_call` likewise, or are not
//! there. Of the subject `auto`, `chosen_strategy` and
//! the configuration say what it came to. Of a candidate of `lookback tune`, `pass` says whether it was measured by a
//! few samples or by the full rule. `gpu_digest` is that of the header's GPU. Refused when the
//! record is read: a row of another GPU, a configuration that stands twice, a scan that there is not or whose rows do not fill
//! its array, bytes that are not those of its arrays, a row that
//! is called measured and whose verification has not found all elements right, one that is not verified and no bound, a
//! time that is none (0 or less, or beyond 11 days), what does not follow from the samples (median, quartiles, rate,
//! percentage of the copy beside it), a line behind the last one. In a figure
//!
//! - all times are those of *one* scan in nanoseconds, rounded to 0.1 ns,
//! - cold times are what remains without `empty_frame_ns`, the median of the same queue with nothing between its
//!   events, measured in the same rounds; `samples_ns` + `empty_frame_ns` are what the events said. The frame's
//!   own figure stands in the `point` line. Records without `empty_frame_ns` were made before it was
//!   measured: their cold times are what the events said,
//! - times behind a foreign kernel are what remains without that kernel, likewise,
//! - `samples_ns` are all accepted samples in the order in which they were taken, each the mean of
//!   `runs_per_sample` scans; samples at reduced clock are beside them in `reduced_clock_samples_ns`,
//! - `gigabytes_per_second` is `bytes` / median, however many bytes were really moved: of a flat scan 2·n·size, else
//!   [`Workload::bytes`],
//! - `percent_of_copy` compares with the same figure of the `memcpy` row of the same point, measured in the same
//!   rounds; it copies half as many bytes, so that it moves as many,
//! - `standard_error_ns` is that of the median; `is_trusted` is false where no stopping criterion was met, `stop`
//!   says where sampling ended then, and `not_met` what was in the way,
//! - `unavailable` says why there are no samples (Thrust waits for the device and cannot be captured, say);
//!   the numbers are then `null`.

use super::call_times::CallTimes;
use super::environment::{Machine, Program};
use super::point::{Kind, Offsets, Point, PointKey, Subject, bound_name};
use super::sampling::{Figure, Measured, Series};
use super::stopping::Stop;
use super::sweep::SweepFile;
use crate::element::{ElementType, Operator};
use crate::lab::record::{MOST, rounded};
use crate::lab::recorder::{Format, Lock, RecordError, Recorder, Skipped, claim_folder, io_error, read_lines};
use crate::lab::statistics::Summary;
use crate::lab::verify::Verification;
use crate::lab::workload::{ProblemKind, Workload};
use crate::strategy::{Composition, Descriptor, Mode, Pattern, ScanConfig, Strategy, StrategyChoice, TileOrder};
use crate::text::LARGEST_SIZE;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Version of the layout; a reader refuses what it does not know.
pub const FORMAT: u32 = 1;

/// Where a sweep came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepHeader {
    /// Version of the layout, [`FORMAT`].
    pub format: u32,
    /// What ran.
    pub program: Program,
    /// Start of the sweep, RFC 3339 in UTC.
    pub date: String,
    /// The command line.
    pub command: String,
    /// The sweep as it was read.
    pub sweep: SweepFile,
    /// GPU, driver, compiler, host.
    pub machine: Machine,
}

/// Whether a row's figures can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every element was right, before and after timing.
    Measured,
    /// Some element was not.
    Wrong,
    /// The configuration does not compile or cannot be launched.
    NotLaunchable,
    /// Timed, and wrong by design: a bound.
    NotVerified,
}

/// How far `lookback tune` went with a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pass {
    /// A few samples, in common rounds with all candidates.
    Coarse,
    /// By the full stopping rule, in common rounds with the best few.
    Full,
}

/// One configuration at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// Name in tables and plots.
    pub subject: String,
    /// What it is.
    pub kind: Kind,
    /// What is computed; `None` for copies.
    pub mode: Option<Mode>,
    /// Which problem is scanned.
    #[serde(default, skip_serializing_if = "ProblemKind::is_flat")]
    pub problem: ProblemKind,
    /// Element type of what is stored.
    pub element: ElementType,
    /// Operator of the scans at this point; of recurrences, which have none, `sum`.
    pub operator: Operator,
    /// Element type of what is loaded, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_element: Option<ElementType>,
    /// Elements of a row or column, or of a run or of a segment between offsets on average, where the problem has such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_elements: Option<u64>,
    /// Elements.
    pub n: u64,
    /// Where input and output begin.
    #[serde(default, skip_serializing_if = "Offsets::is_aligned")]
    pub offsets: Offsets,
    /// Bytes by definition: every array that is loaded and the one that is stored once, 2·n·size of a flat scan.
    pub bytes: u64,
    /// Values per thread, where the strategy has tiles.
    pub vt: Option<u32>,
    /// Threads per block.
    pub block_threads: Option<u32>,
    /// The scan over one value a lane, where the strategy has tiles.
    pub pattern: Option<Pattern>,
    /// How a block composes the scan of its tile, where the strategy has tiles.
    pub composition: Option<Composition>,
    /// Layout of the tile descriptors, where one was asked for.
    pub descriptor: Option<Descriptor>,
    /// How a block learns which tile is its own, in a single pass.
    pub tile_order: Option<TileOrder>,
    /// The strategy that `auto` came to, where the subject is `auto`; the configuration is that strategy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_strategy: Option<Strategy>,
    /// In which pass of `lookback tune` its figures were measured; `None` in other sweeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<Pass>,
    /// The GPU's digest ([`Machine::gpu_digest`]); older records do not say it in each row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_digest: Option<String>,
    /// Widest access of a lane in bytes.
    pub access_bytes: Option<u32>,
    /// Kernel launches of one scan.
    pub launches: Option<u64>,
    /// Registers a thread, the most of its kernels.
    pub registers: Option<u32>,
    /// Bytes that registers spill to local memory and load back, a thread, the most of its kernels.
    pub spill_bytes: Option<u32>,
    /// Whether the figures can be used.
    pub status: Status,
    /// Why not, if not.
    pub reason: Option<String>,
    /// Verdict over all elements before timing, and after it if that was right.
    pub verification: Option<Verification>,
    /// L2 overwritten before each run.
    pub cold: Option<FigureRecord>,
    /// Launched on a stream one after the other.
    pub stream: Option<FigureRecord>,
    /// Replayed from a CUDA graph.
    pub graph: Option<FigureRecord>,
    /// Host call to result visible.
    pub latency: Option<FigureRecord>,
    /// Replayed from a CUDA graph behind a foreign kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<FigureRecord>,
    /// Calls of the public API, event tracking as it comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<FigureRecord>,
    /// Calls of the public API, event tracking switched off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untracked_call: Option<FigureRecord>,
}

/// The samples of one figure and what they come to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FigureRecord {
    /// Why there are no samples, if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// Median time of one scan.
    pub median_ns: Option<f64>,
    /// A quarter of the samples took no longer.
    pub lower_quartile_ns: Option<f64>,
    /// Three quarters of the samples took no longer.
    pub upper_quartile_ns: Option<f64>,
    /// The shortest.
    pub minimum_ns: Option<f64>,
    /// The longest.
    pub maximum_ns: Option<f64>,
    /// [`SweepRow::bytes`] by the median.
    pub gigabytes_per_second: Option<f64>,
    /// Median of `memcpy` in the same rounds by this median, in percent.
    pub percent_of_copy: Option<f64>,
    /// Whether a stopping criterion was met.
    pub is_trusted: bool,
    /// Why sampling ended.
    pub stop: Option<Stop>,
    /// What kept it from meeting a criterion, if it met none; older records do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_met: Option<String>,
    /// Standard error of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard_error_ns: Option<f64>,
    /// What was taken off every sample: the median of an empty frame in the same rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_frame_ns: Option<f64>,
    /// Scans that each sample is the mean of.
    pub runs_per_sample: u32,
    /// Median multiprocessor clock while the samples ran.
    pub clock_mhz: Option<f64>,
    /// Samples that the host queued too late and that count for nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub late_samples: u64,
    /// Accepted samples in the order in which they were taken.
    pub samples_ns: Vec<f64>,
    /// Samples at reduced clock, which count for nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reduced_clock_samples_ns: Vec<f64>,
}

// serde passes a reference.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl FigureRecord {
    /// The record of what was measured of a scan that moves `bytes` by definition, without the time of an empty
    /// frame where one belongs to the figure.
    pub fn new(measured: Measured, bytes: u64, empty_frame_ns: Option<f64>) -> Self {
        let series = match measured {
            Measured::Series(series) => series,
            Measured::Unavailable(reason) => return Self { unavailable: Some(reason), ..Self::default() },
        };
        let Series { accepted_nanoseconds, reduced_clock_nanoseconds, late_samples, runs_per_sample, .. } = series;
        let frame_ns = empty_frame_ns.unwrap_or(0.0);
        let tenths =
            |samples: Vec<f64>| samples.into_iter().map(|sample| rounded(sample - frame_ns, 1)).collect::<Vec<_>>();
        let samples_ns = tenths(accepted_nanoseconds);
        let summary = Summary::of(&samples_ns);
        if summary.as_ref().is_some_and(|summary| rounded(summary.median, 1) <= 0.0) {
            let unavailable = Some("it takes no longer than an empty frame".to_owned());
            return Self { unavailable, ..Self::default() };
        }
        let of = |value: fn(&Summary) -> f64| summary.as_ref().map(|summary| rounded(value(summary), 1));
        Self {
            unavailable: summary.is_none().then(|| "every sample was late".to_owned()),
            median_ns: of(|summary| summary.median),
            lower_quartile_ns: of(|summary| summary.lower_quartile),
            upper_quartile_ns: of(|summary| summary.upper_quartile),
            minimum_ns: of(|summary| summary.minimum),
            maximum_ns: of(|summary| summary.maximum),
            gigabytes_per_second: summary.map(|summary| rounded(bytes as f64 / summary.median, 3)),
            percent_of_copy: None,
            is_trusted: series.stop.is_met(),
            stop: Some(series.stop),
            not_met: series.unmet.map(|unmet| unmet.to_string()),
            standard_error_ns: of(|summary| summary.standard_error),
            empty_frame_ns,
            runs_per_sample,
            clock_mhz: series.clock_megahertz.map(|clock| rounded(clock, 0)),
            late_samples,
            samples_ns,
            reduced_clock_samples_ns: tenths(reduced_clock_nanoseconds),
        }
    }

    /// The accepted samples as the events said them, whatever was taken off them.
    pub fn raw_samples_ns(&self) -> Vec<f64> {
        let frame_ns = self.empty_frame_ns.unwrap_or(0.0);
        self.samples_ns.iter().map(|sample| sample + frame_ns).collect()
    }

    /// Fills in `percent_of_copy`.
    pub fn compare_with_copy(&mut self, copy_median_ns: f64) {
        self.percent_of_copy =
            self.median_ns.filter(|&median| median > 0.0).map(|median| rounded(100.0 * copy_median_ns / median, 2));
    }

    /// What cannot be, of a scan that moves `bytes` by definition: a figure is believed by its samples alone.
    fn contradiction(&self, bytes: u64) -> Option<String> {
        let is_time = |time: &f64| *time > 0.0 && *time <= MOST;
        let others = [
            ("empty_frame_ns", self.empty_frame_ns),
            ("standard_error_ns", self.standard_error_ns),
            ("clock_mhz", self.clock_mhz),
            ("percent_of_copy", self.percent_of_copy),
        ];
        let is_number = |value: f64| (0.0..=MOST).contains(&value);
        if let Some((name, Some(value))) = others.into_iter().find(|(_, value)| !value.is_none_or(is_number)) {
            return Some(format!("its {name} is {value}"));
        }
        // A single sample may be shorter than the frame that was taken off it.
        if !self.raw_samples_ns().iter().all(is_time) {
            return Some("a sample is no time above 0, or none that anybody waits for".to_owned());
        }
        let (summary, median) = match (Summary::of(&self.samples_ns), self.median_ns) {
            (None, None) => {
                let quartiles = [self.lower_quartile_ns, self.upper_quartile_ns, self.minimum_ns, self.maximum_ns];
                let mut derived = quartiles.into_iter().chain([self.gigabytes_per_second, self.percent_of_copy]);
                return derived.any(|value| value.is_some()).then(|| "it has no samples to follow from".to_owned());
            }
            (Some(_), Some(_)) if self.runs_per_sample == 0 => return Some("its samples are of no scan".to_owned()),
            (Some(summary), Some(median)) => (summary, median),
            _ => return Some("its median is not that of its samples".to_owned()),
        };
        if !is_time(&median) {
            return Some("its median is no time above 0".to_owned());
        }
        if median < LEAST_NS {
            return Some(format!("its median_ns is {median}, and times are rounded to {LEAST_NS} ns"));
        }
        let rate = bytes as f64 / median;
        // The rate is that of the median before it was rounded.
        let rounding_of_rate = RATE_ROUNDING + rate * TIME_ROUNDING_NS / median;
        let derived = [
            ("median_ns", self.median_ns, summary.median, TIME_ROUNDING_NS),
            ("lower_quartile_ns", self.lower_quartile_ns, summary.lower_quartile, TIME_ROUNDING_NS),
            ("upper_quartile_ns", self.upper_quartile_ns, summary.upper_quartile, TIME_ROUNDING_NS),
            ("minimum_ns", self.minimum_ns, summary.minimum, TIME_ROUNDING_NS),
            ("maximum_ns", self.maximum_ns, summary.maximum, TIME_ROUNDING_NS),
            ("gigabytes_per_second", self.gigabytes_per_second, rate, rounding_of_rate),
        ];
        let follows = |stored: f64, value: f64, rounding: f64| (stored - value).abs() <= rounding + value.abs() * 1e-9;
        let is_wrong = |(_, stored, value, rounding): &(&str, Option<f64>, f64, f64)| {
            stored.is_some_and(|stored| !follows(stored, *value, *rounding))
        };
        let (name, stored, value, _) = derived.into_iter().find(is_wrong)?;
        Some(format!("its {name} is {}, and its samples come to {value}", stored?))
    }

    /// Whether its percentage is that of this figure of the copy, if both are there.
    fn is_percent_of(&self, copy: &Self) -> bool {
        let (Some(percent), Some(median), Some(copy)) = (self.percent_of_copy, self.median_ns, copy.median_ns) else {
            return true;
        };
        (percent - 100.0 * copy / median).abs() <= PERCENT_ROUNDING
    }
}

// What is stored is rounded, to 0.1 ns, 0.001 GB/s and 0.01 %; half of it, and a little for the sums of binary fractions.
const LEAST_NS: f64 = 0.1;
const TIME_ROUNDING_NS: f64 = 0.051;
const RATE_ROUNDING: f64 = 0.000_51;
const PERCENT_ROUNDING: f64 = 0.005_1;

impl SweepRow {
    /// A row of aligned arrays, without figures.
    pub fn new(subject: &Subject, workload: impl Into<Workload>, n: u64) -> Self {
        let workload = workload.into();
        let PointKey { problem, element, operator, input_element, segment_elements, n, offsets } =
            PointKey::new(workload, n, Offsets::default());
        let (config, tiles, single_pass) = match subject.scan() {
            Some((strategy, _, config)) => (Some(config), strategy.has_tiles(), strategy.is_single_pass()),
            None => (None, false, false),
        };
        let chosen_strategy = match subject {
            Subject::Auto { strategy, .. } => Some(*strategy),
            _ => None,
        };
        let tiled = config.filter(|_| tiles);
        Self {
            subject: subject.name(),
            kind: subject.kind(),
            mode: subject.mode(),
            problem,
            element,
            operator,
            input_element,
            segment_elements,
            n,
            offsets,
            bytes: workload.bytes(n),
            vt: tiled.map(|config| config.vt),
            block_threads: config.map(|config| config.block_threads),
            pattern: tiled.map(|config| config.pattern),
            composition: tiled.map(|config| config.composition),
            descriptor: config.filter(|_| single_pass).and_then(|config| config.descriptor),
            tile_order: config.filter(|_| single_pass).map(|config| config.tile_order),
            chosen_strategy,
            pass: None,
            gpu_digest: None,
            access_bytes: None,
            launches: None,
            registers: None,
            spill_bytes: None,
            status: Status::NotLaunchable,
            reason: None,
            verification: None,
            cold: None,
            stream: None,
            graph: None,
            latency: None,
            behind: None,
            call: None,
            untracked_call: None,
        }
    }

    /// The subject's name; for `auto` with the strategy that it came to.
    pub fn subject_with_choice(&self) -> String {
        match self.chosen_strategy {
            Some(strategy) => format!("{}: {strategy}", self.subject),
            None => self.subject.clone(),
        }
    }

    /// What cannot be true of a row beside the rest of it: a record is believed by its verification and its samples, and
    /// not by a word or a summary.
    pub(in crate::lab) fn contradiction(&self) -> Option<String> {
        if self.n > LARGEST_SIZE {
            return Some(format!("its {} elements are more than any array here has", self.n));
        }
        let workload = match self.point().workload() {
            Ok(workload) => workload,
            Err(error) => return Some(error),
        };
        let bytes = workload.bytes(self.n);
        if self.bytes != bytes {
            return Some(format!("its bytes are {}, and a scan of its elements moves {bytes}", self.bytes));
        }
        if let Some(mode) = self.mode.filter(|&mode| !workload.has_mode(mode)) {
            return Some(format!("there is no {mode} of {workload}"));
        }
        if self.offsets.input.max(self.offsets.output) > Offsets::MOST {
            return Some(format!("{} are more than the {} that there are", self.offsets, Offsets::MOST));
        }
        let default = ScanConfig::default();
        let vt = self.vt.unwrap_or(default.vt);
        let block_threads = self.block_threads.unwrap_or(default.block_threads);
        if let Err(error) = (ScanConfig { vt, block_threads, ..default }).check() {
            return Some(error.to_string());
        }
        let is_named =
            |name: fn(&str) -> String| StrategyChoice::ALL.iter().any(|choice| name(choice.name()) == self.subject);
        let is_known = match self.kind {
            Kind::Strategy => is_named(str::to_owned),
            Kind::Bound => is_named(bound_name),
            Kind::Peer | Kind::Copy | Kind::Reading => true,
        };
        if !is_known {
            return Some(format!("there is no strategy '{}'", self.subject));
        }
        if self.chosen_strategy.is_some() != (self.subject == StrategyChoice::Auto.name()) {
            return Some("auto comes to a strategy, and nothing else does".to_owned());
        }
        // Of a copy or reading what is moved counts as the elements that it stands beside.
        let compared = if self.kind.is_floor() { self.n } else { workload.output_elements(self.n) };
        match self.status {
            Status::Measured if self.verification != Some(Verification::right(compared)) => {
                Some(format!("it is called measured, and not all of its {compared} elements were found right"))
            }
            Status::Measured if self.launches == Some(0) && self.n > 0 => {
                Some("it is called measured, and nothing was launched".to_owned())
            }
            Status::NotVerified if self.kind != Kind::Bound => {
                Some("it is timed and not verified, as a bound alone is, and is none".to_owned())
            }
            Status::Measured | Status::NotVerified => Figure::ALL.iter().find_map(|&name| {
                let reason = self.figure(name)?.contradiction(self.bytes)?;
                Some(format!("its figure {name} cannot be: {reason}"))
            }),
            // Their figures are not used.
            Status::Wrong | Status::NotLaunchable => None,
        }
    }

    /// The point that it is of.
    pub fn point(&self) -> PointKey {
        let Self { problem, element, operator, input_element, segment_elements, n, offsets, .. } = *self;
        PointKey { problem, element, operator, input_element, segment_elements, n, offsets }
    }

    /// A figure, if it was asked for.
    pub fn figure(&self, figure: Figure) -> Option<&FigureRecord> {
        match figure {
            Figure::Cold => self.cold.as_ref(),
            Figure::Stream => self.stream.as_ref(),
            Figure::Graph => self.graph.as_ref(),
            Figure::Latency => self.latency.as_ref(),
            Figure::Behind => self.behind.as_ref(),
            Figure::Call => self.call.as_ref(),
            Figure::UntrackedCall => self.untracked_call.as_ref(),
        }
    }

    /// The place of a figure.
    pub fn figure_mut(&mut self, figure: Figure) -> &mut Option<FigureRecord> {
        match figure {
            Figure::Cold => &mut self.cold,
            Figure::Stream => &mut self.stream,
            Figure::Graph => &mut self.graph,
            Figure::Latency => &mut self.latency,
            Figure::Behind => &mut self.behind,
            Figure::Call => &mut self.call,
            Figure::UntrackedCall => &mut self.untracked_call,
        }
    }

    /// What tells this configuration and size from every other: equal in two records where the same was
    /// measured.
    pub fn key(&self) -> String {
        let mut key = format!("{} n={} {}", self.point().scan(), self.n, self.subject);
        let configuration = [
            self.vt.map(|vt| format!("VT {vt}")),
            self.block_threads.map(|threads| format!("{threads} threads")),
            self.pattern.map(|pattern| pattern.to_string()),
            self.composition.map(|composition| composition.to_string()),
            self.descriptor.map(|descriptor| descriptor.to_string()),
            self.tile_order.map(|order| order.to_string()),
        ];
        // What `auto` came to may be another configuration in another record, and is compared all the same.
        let configuration = configuration.into_iter().filter(|_| self.chosen_strategy.is_none()).flatten();
        let offsets = (!self.offsets.is_aligned()).then(|| self.offsets.to_string());
        let mode = self.mode.map(|mode| mode.to_string());
        mode.into_iter().chain(configuration).chain(offsets).for_each(|part| key.extend([" ", &part]));
        key
    }
}

/// All rows of a scan, n and offsets are there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointDone {
    /// As in its rows.
    #[serde(default, skip_serializing_if = "ProblemKind::is_flat")]
    pub problem: ProblemKind,
    /// Likewise.
    pub element: ElementType,
    /// Likewise.
    pub operator: Operator,
    /// Likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_element: Option<ElementType>,
    /// Likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment_elements: Option<u64>,
    /// Elements.
    pub n: u64,
    /// Where input and output begin.
    #[serde(default, skip_serializing_if = "Offsets::is_aligned")]
    pub offsets: Offsets,
    /// Seed of the order in rounds.
    pub order_seed: u64,
    /// What was measured beside its rows.
    #[serde(flatten)]
    pub beside: Beside,
    /// How long the point took, preparation and verification included.
    pub seconds: f64,
}

/// What is measured beside the rows of a point, in the rounds of one of their figures. Older records have less.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Beside {
    /// The cold figure with nothing between the events, whose median was taken off the others'.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_frame: Option<FigureRecord>,
    /// The foreign kernel alone, whose median was taken off the figures behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_kernel: Option<FigureRecord>,
    /// A copy of as many bytes at every point, in a graph: what changes in it, the machine has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<FigureRecord>,
}

impl Beside {
    /// What is measured beside a figure, if something is.
    pub const fn subject(figure: Figure) -> Option<Subject> {
        match figure {
            Figure::Cold | Figure::Behind => Some(Subject::EmptyFrame),
            Figure::Graph => Some(Subject::Sentinel),
            Figure::Stream | Figure::Latency | Figure::Call | Figure::UntrackedCall => None,
        }
    }

    /// Keeps what was measured beside a figure.
    pub fn keep(&mut self, figure: Figure, measured: FigureRecord) {
        match figure {
            Figure::Cold => self.empty_frame = Some(measured),
            Figure::Behind => self.foreign_kernel = Some(measured),
            Figure::Graph => self.sentinel = Some(measured),
            Figure::Stream | Figure::Latency | Figure::Call | Figure::UntrackedCall => {}
        }
    }
}

impl PointDone {
    /// The point `key` after so many seconds.
    pub fn new(key: PointKey, order_seed: u64, beside: Beside, seconds: f64) -> Self {
        let PointKey { problem, element, operator, input_element, segment_elements, n, offsets } = key;
        Self { problem, element, operator, input_element, segment_elements, n, offsets, order_seed, beside, seconds }
    }

    /// Which point it is.
    pub fn key(&self) -> PointKey {
        let Self { problem, element, operator, input_element, segment_elements, n, offsets, .. } = *self;
        PointKey { problem, element, operator, input_element, segment_elements, n, offsets }
    }

    fn contradiction(&self) -> Option<String> {
        if let Err(error) = self.key().workload() {
            return Some(error);
        }
        let Beside { empty_frame, foreign_kernel, sentinel } = &self.beside;
        let measured = [empty_frame, foreign_kernel, sentinel].into_iter().flatten();
        let reason = measured.filter_map(|figure| figure.contradiction(0)).next()?;
        Some(format!("what was measured beside its rows cannot be: {reason}"))
    }
}

/// How a sweep ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// Seconds of this run of the program; a resumed sweep took longer.
    pub seconds: f64,
    /// Median multiprocessor clock over all samples of this run.
    pub median_clock_mhz: Option<f64>,
    /// Temperature at the end, in degrees Celsius.
    pub temperature_celsius: Option<u32>,
}

/// A sweep that was gone on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// When.
    pub date: String,
    /// The command line.
    pub command: String,
}

/// A whole sweep, or the part of it that was finished.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRecord {
    /// Where it came from.
    pub header: SweepHeader,
    /// The configurations in the order in which their points were finished.
    pub rows: Vec<SweepRow>,
    /// The points whose rows are complete.
    pub points: Vec<PointDone>,
    /// What a program waits for on the host, where that was measured.
    pub call_times: Option<CallTimes>,
    /// What was not run.
    pub skipped: Vec<Skipped>,
    /// Resumptions.
    pub resumed: Vec<Resumed>,
    /// The end, unless it was interrupted.
    pub finished: Option<Finished>,
}

/// A line of the file below the header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What came of a configuration.
    Row(Box<SweepRow>),
    /// The rows above are all of a point.
    Point(Box<PointDone>),
    /// What a program waits for on the host.
    CallTimes(CallTimes),
    /// What was not run.
    Skipped(Skipped),
    /// The sweep was gone on with.
    Resumed(Resumed),
    /// The sweep is done.
    Finished(Finished),
}

impl From<SweepHeader> for SweepRecord {
    fn from(header: SweepHeader) -> Self {
        let (rows, points, skipped, resumed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { header, rows, points, call_times: None, skipped, resumed, finished: None }
    }
}

impl Format for SweepRecord {
    const VERSION: u32 = FORMAT;
    type Header = SweepHeader;
    type Line = Line;

    fn add(&mut self, line: Line) {
        match line {
            Line::Row(row) => self.rows.push(*row),
            Line::Point(point) => self.points.push(*point),
            Line::CallTimes(times) => self.call_times = Some(times),
            Line::Skipped(skipped) => self.skipped.push(skipped),
            Line::Resumed(resumed) => self.resumed.push(resumed),
            Line::Finished(finished) => self.finished = Some(finished),
        }
    }

    fn identity(line: &Line) -> Option<String> {
        match line {
            Line::Row(row) => Some(format!("{} {:?}", row.key(), row.pass)), // a key
            _ => None,
        }
    }

    fn refusal(&self, line: &Line) -> Option<String> {
        if self.finished.is_some() {
            return Some("it stands behind the line that ends the record".to_owned());
        }
        let row = match line {
            Line::Row(row) => row,
            Line::Point(point) => return point.contradiction(),
            Line::CallTimes(times) => return times.contradiction(),
            Line::Skipped(_) | Line::Resumed(_) | Line::Finished(_) => return None,
        };
        let header = &self.header.machine;
        let foreign = row.gpu_digest.as_ref().filter(|digest| **digest != header.gpu_digest).map(|digest| {
            format!("the row was measured on another GPU ({digest}) than the header names ({})", header.gpu_identity())
        });
        foreign.or_else(|| row.contradiction())
    }

    fn contradiction(&self) -> Option<String> {
        wrong_percentage(self.rows.iter())
    }
}

/// A percentage of the copy that is not that of the copy in the same rounds, if there is one among these rows.
pub(in crate::lab) fn wrong_percentage<'a>(mut rows: impl Iterator<Item = &'a SweepRow> + Clone) -> Option<String> {
    // What is measured in the same rounds.
    let rounds = |row: &SweepRow| (row.point(), row.pass);
    let copies = rows.clone().filter(|row| row.subject == Subject::Memcpy.name());
    let copies: HashMap<_, &SweepRow> = copies.map(|copy| (rounds(copy), copy)).collect();
    rows.find_map(|row| {
        let copy = copies.get(&rounds(row))?;
        let is_wrong = |name: &&Figure| match (row.figure(**name), copy.figure(**name)) {
            (Some(figure), Some(copy)) => !figure.is_percent_of(copy),
            _ => false,
        };
        let name = Figure::ALL.iter().find(is_wrong)?;
        Some(format!("percent_of_copy in the figure {name} of {} is not that of the copy beside it", row.key()))
    })
}

impl SweepRecord {
    /// Reads a record, compressed or not; of an interrupted sweep, what was finished.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        read_lines(path)
    }

    /// Reads a file, or every record in a folder, sorted by name.
    ///
    /// # Errors
    /// When there is none or one is damaged.
    pub fn read_all(path: &Path) -> Result<Vec<Self>, RecordError> {
        Self::files(path)?.iter().map(|file| Self::read(file)).collect()
    }

    /// The file itself, or every record in a folder, sorted by name.
    ///
    /// # Errors
    /// When the folder has none or cannot be read.
    pub fn files(path: &Path) -> Result<Vec<PathBuf>, RecordError> {
        if !path.is_dir() {
            return Ok(vec![path.to_owned()]);
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let is_record = |file: &PathBuf| file.file_name().is_some_and(|name| stem(&name.to_string_lossy()).is_some());
        let entries = entries.map_err(io_error("read", path))?;
        let mut files: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).filter(is_record).collect();
        files.sort();
        if files.is_empty() {
            let what = "sweep record (*.jsonl or *.jsonl.gz)";
            return Err(RecordError::Missing { path: path.to_owned(), what, command: "sweep NAME" });
        }
        Ok(files)
    }
}

/// The name of a sweep record without its ending; `None` if it is none.
pub fn stem(file_name: &str) -> Option<&str> {
    // `data.partial.jsonl` is of `lookback compare`.
    let stem = file_name.strip_suffix(".jsonl.gz").or_else(|| file_name.strip_suffix(".jsonl"))?;
    (stem != "data.partial").then_some(stem)
}

/// The record of a sweep that grows on disk.
pub type SweepRecorder = Recorder<SweepRecord>;

/// What [`SweepRecorder::open`] found.
#[derive(Debug)]
pub enum Opened {
    /// A record to write to.
    Recorder(Box<SweepRecorder>),
    /// The sweep was finished before; nothing is left to do.
    Finished(PathBuf),
}

impl SweepRecorder {
    /// Starts the record of a sweep in `folder`, which is made if need be; with `resume`, goes on with the one
    /// that is there, if there is one. Rows of a point that was interrupted are then dropped, because what is
    /// compared at a point is measured in common rounds.
    ///
    /// # Errors
    /// When the folder cannot be written; a record is there and `resume` was not asked for; or it was begun
    /// on another GPU, driver or compiler, by another commit, or from another sweep file.
    pub fn open(folder: &Path, header: &SweepHeader, resume: bool) -> Result<Opened, RecordError> {
        let lock = claim_folder(folder)?;
        let process = header.sweep.process.filter(|&process| process > 1);
        let process = process.map_or(String::new(), |process| format!("-process-{process}"));
        let name = format!("{}-{}{process}", header.sweep.name, header.machine.gpu_slug());
        let path = folder.join(format!("{name}.jsonl"));
        let compressed = folder.join(format!("{name}.jsonl.gz"));
        for existing in [&path, &compressed] {
            if existing.exists() && !resume {
                return Err(RecordError::Exists { path: existing.clone() });
            }
        }
        if compressed.exists() {
            check_same_origin(&SweepRecord::read(&compressed)?.header, header, &compressed)?;
            return Ok(Opened::Finished(compressed));
        }
        if resume {
            // The record of another GPU has another name, and is what the user means all the same.
            let found = if path.exists() { Some(path.clone()) } else { unfinished(folder, &header.sweep.name)? };
            if let Some(found) = found {
                return Ok(Opened::Recorder(Box::new(Self::resume(&found, lock, header)?)));
            }
        }
        Ok(Opened::Recorder(Box::new(Self::create(&path, lock, header.clone())?)))
    }

    fn resume(path: &Path, lock: Lock, header: &SweepHeader) -> Result<Self, RecordError> {
        let record = SweepRecord::read(path)?;
        check_same_origin(&record.header, header, path)?;
        // Each point's rows stand right above its line again.
        let mut lines = Vec::new();
        for point in record.points {
            lines.extend(
                record
                    .rows
                    .iter()
                    .filter(|row| row.point() == point.key())
                    .cloned()
                    .map(|row| Line::Row(Box::new(row))),
            );
            lines.push(Line::Point(Box::new(point)));
        }
        lines.extend(record.call_times.map(Line::CallTimes));
        lines.extend(record.skipped.into_iter().map(Line::Skipped));
        lines.extend(record.resumed.into_iter().map(Line::Resumed));
        lines.push(Line::Resumed(Resumed { date: header.date.clone(), command: header.command.clone() }));
        Self::replace(path, lock, record.header, lines)
    }

    /// Whether the rows of a point are there from an earlier run.
    pub fn has_point(&self, point: &Point) -> bool {
        let wanted = point.key();
        self.record().points.iter().any(|done| done.key() == wanted)
    }

    /// Keeps a row, with the GPU that the header names.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn row(&mut self, row: SweepRow) -> Result<(), RecordError> {
        let gpu_digest = Some(self.record().header.machine.gpu_digest.clone());
        self.keep(Line::Row(Box::new(SweepRow { gpu_digest, ..row })))
    }

    /// Says that all rows of a point are kept.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn point(&mut self, point: PointDone) -> Result<(), RecordError> {
        self.keep(Line::Point(Box::new(point)))
    }

    /// Keeps a note on what was not run, once.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn skipped(&mut self, skipped: Skipped) -> Result<(), RecordError> {
        if self.record().skipped.contains(&skipped) { Ok(()) } else { self.keep(Line::Skipped(skipped)) }
    }

    /// Keeps what a program waits for on the host.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn call_times(&mut self, times: CallTimes) -> Result<(), RecordError> {
        self.keep(Line::CallTimes(times))
    }

    /// Ends the record, compresses it, and says where it is.
    ///
    /// # Errors
    /// When the disk refuses it; the plain file then stays.
    pub fn finish(mut self, finished: Finished) -> Result<PathBuf, RecordError> {
        self.keep(Line::Finished(finished))?;
        self.compress()
    }
}

/// An unfinished record of the sweep on whatever GPU.
fn unfinished(folder: &Path, sweep: &str) -> Result<Option<PathBuf>, RecordError> {
    let start = format!("{sweep}-");
    for entry in fs::read_dir(folder).map_err(io_error("read", folder))? {
        let path = entry.map_err(io_error("read", folder))?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with(&start) && name.ends_with(".jsonl") && SweepRecord::read(&path)?.header.sweep.name == sweep
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn check_same_origin(recorded: &SweepHeader, present: &SweepHeader, path: &Path) -> Result<(), RecordError> {
    let commit = |program: &Program| {
        let commit = program.git_commit.as_deref().unwrap_or("unknown");
        let dirty = if program.git_dirty == Some(true) { " with changes" } else { "" };
        format!("{commit}{dirty}, kernels {}", program.kernels_sha256)
    };
    let sweep = |file: &SweepFile| toml::to_string(file).unwrap_or_else(|_| file.name.clone());
    let pairs = [
        ("GPU", recorded.machine.gpu_identity(), present.machine.gpu_identity()),
        ("driver", recorded.machine.driver.clone(), present.machine.driver.clone()),
        ("compiler", recorded.machine.compiler.clone(), present.machine.compiler.clone()),
        ("commit", commit(&recorded.program), commit(&present.program)),
        ("sweep file", sweep(&recorded.sweep), sweep(&present.sweep)),
    ];
    for (what, recorded, present) in pairs {
        if recorded != present {
            return Err(RecordError::CannotResume { path: path.to_owned(), what, recorded, present });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(workload: Workload, n: u64) -> SweepRow {
        let mut row = SweepRow::new(&Subject::Memcpy, workload, n);
        row.status = Status::Measured;
        row.verification = Some(Verification::right(n));
        row
    }

    #[test]
    fn rows_of_problems_are_kept_told_apart_and_refused_where_they_lie() {
        let of = |kind, input, segment| Workload::new(kind, Operator::Sum, input, ElementType::U32, segment).unwrap();
        let (u32s, u8s) = (ElementType::U32, ElementType::U8);
        let workloads = [
            of(ProblemKind::Flat, u32s, None),
            of(ProblemKind::Flat, u8s, None),
            of(ProblemKind::Reverse, u32s, None),
            of(ProblemKind::Rows, u32s, Some(16)),
            of(ProblemKind::Rows, u32s, Some(32)),
            of(ProblemKind::Columns, u32s, Some(16)),
            of(ProblemKind::Offsets, u32s, Some(16)),
            of(ProblemKind::Recurrence, u32s, None),
            of(ProblemKind::Recurrence, u32s, Some(16)),
        ];
        let mut keys = std::collections::BTreeSet::new();
        for workload in workloads {
            let row = row_of(workload, 1024);
            assert_eq!((row.contradiction(), row.bytes), (None, workload.bytes(1024)), "{workload}");
            assert_eq!(row.point().workload(), Ok(workload));
            let text = serde_json::to_string(&row).unwrap();
            assert_eq!(serde_json::from_str::<SweepRow>(&text).unwrap(), row);
            // Of flat scans a row is what it was before there were others.
            let said = ["problem", "input_element", "segment_elements"].map(|name| text.contains(name));
            let is_said =
                [workload.kind() != ProblemKind::Flat, workload.input() != u32s, row.segment_elements.is_some()];
            assert_eq!(said, is_said, "{text}");
            let done = PointDone::new(row.point(), 7, Beside::default(), 1.0);
            assert_eq!((done.contradiction(), done.key()), (None, row.point()));
            let text = serde_json::to_string(&done).unwrap();
            assert_eq!(serde_json::from_str::<PointDone>(&text).unwrap(), done);
            assert!(keys.insert(row.key()), "{}", row.key());
        }
        type Lie = fn(&mut SweepRow);
        let refused: [(Lie, &str); 8] = [
            (|row| row.segment_elements = None, "say how many"),
            (|row| row.segment_elements = Some(0), "say how many"),
            (|row| row.segment_elements = Some(1000), "no whole rows"),
            (|row| row.problem = ProblemKind::Flat, "no rows, columns or runs"),
            (|row| row.problem = ProblemKind::ByKey, "its bytes are"),
            (|row| row.input_element = Some(ElementType::U8), "its bytes are"),
            (|row| row.input_element = Some(ElementType::U32), "says u32 twice"),
            (|row| row.mode = Some(Mode::InclusiveMinusInput), "there is no inclusive-minus-input"),
        ];
        for (lie, says) in refused {
            let mut row = row_of(of(ProblemKind::Rows, u32s, Some(16)), 1024);
            lie(&mut row);
            let reason = row.contradiction().unwrap_or_else(|| panic!("not refused: {says}"));
            assert!(reason.contains(says), "{says}: {reason}");
        }
        let mut row = row_of(of(ProblemKind::Recurrence, u32s, None), 1024);
        row.operator = Operator::Max;
        assert!(row.contradiction().is_some_and(|reason| reason.contains("which has none")));
        let mut done = PointDone::new(row.point(), 7, Beside::default(), 1.0);
        assert!(done.contradiction().is_some());
        done.operator = Operator::Sum;
        assert_eq!(done.contradiction(), None);
    }

    #[test]
    fn what_takes_no_longer_than_an_empty_frame_has_no_figure() {
        let figure = |frame_ns: f64| {
            let series = Series {
                accepted_nanoseconds: vec![100.0; 9],
                reduced_clock_nanoseconds: Vec::new(),
                late_samples: 0,
                runs_per_sample: 1,
                clock_megahertz: None,
                stop: Stop::Noise,
                unmet: None,
            };
            FigureRecord::new(Measured::Series(series), 1000, Some(frame_ns))
        };
        assert_eq!(figure(60.0).median_ns, Some(40.0));
        for frame_ns in [60.0, 100.0, 140.0] {
            assert_eq!(figure(frame_ns).contradiction(1000), None);
        }
        assert!(figure(100.0).unavailable.is_some() && figure(140.0).median_ns.is_none());
    }
}
