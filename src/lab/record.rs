//! What a run leaves behind: a header that says how it came about and one flat row a configuration.
//!
//! While a run goes on, a [`Recorder`] keeps header and rows in `data.partial.jsonl`. When it is done, `data.json` and
//! `data.csv` are written, and the partial file goes. Everything else in the folder (plots, page) is rendered from these
//! and can be made again at any time.

use crate::element::{ElementType, Operator};
use crate::file::{self, RECORD_BYTES};
use crate::lab::device::{DeviceDescription, Outcome};
use crate::lab::recorder::{
    Format, Lock, RecordError, Recorder, Skipped, check_version, claim_folder, io_error, parse, read_lines,
    write_atomically,
};
use crate::lab::statistics::Summary;
use crate::lab::verify::Verification;
use crate::lab::workload::{ProblemKind, Workload};
use crate::strategy::plan::ScanRequest;
use crate::strategy::{Composition, Descriptor, Mode, Pattern, ScanConfig, Strategy, StrategyChoice, TileOrder};
use crate::text::LARGEST_SIZE;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::Debug;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Version of the layout; a reader refuses what it does not know.
pub const FORMAT: u32 = 1;

/// Where a run came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the layout, [`FORMAT`].
    pub format: u32,
    /// Version of this program.
    pub tool_version: String,
    /// Commit it was built from, if the build knew.
    pub git_commit: Option<String>,
    /// Start of the run, RFC 3339 in UTC.
    pub date: String,
    /// The command line.
    pub command: String,
    /// Seed of input and schedule.
    pub seed: u64,
    /// "random" or the file.
    pub input: String,
    /// Digest of the file's elements; older records do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_sha256: Option<String>,
    /// The device.
    pub device: DeviceDescription,
}

/// One configuration and what came of it. Flat, so that it is a line of CSV; units are in the names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The strategy, or `auto`.
    pub strategy: StrategyChoice,
    /// Element type of what is stored.
    pub element: ElementType,
    /// Operator; a recurrence has none.
    pub operator: Option<Operator>,
    /// What was computed.
    pub mode: Mode,
    /// Whether the output replaced the input.
    pub in_place: bool,
    /// Elements.
    pub n: u64,
    /// Values per thread, where the strategy has tiles.
    pub vt: Option<u32>,
    /// Threads per block, where the strategy has blocks to choose.
    pub block_threads: Option<u32>,
    /// The scan over one value a lane, where the strategy has tiles.
    pub pattern: Option<Pattern>,
    /// How a block composes the scan of its tile, where the strategy has tiles.
    pub composition: Option<Composition>,
    /// Layout of the tile descriptors, where one was asked for.
    pub descriptor: Option<Descriptor>,
    /// How a block learns which tile is its own, in a single pass.
    pub tile_order: Option<TileOrder>,
    /// Address of the input modulo 32.
    pub input_offset_bytes: u32,
    /// Address of the output modulo 32.
    pub output_offset_bytes: u32,
    /// Kernel launches of one scan.
    pub launches: u64,
    /// Widest access of a lane.
    pub access_bytes: u32,
    /// Registers a thread of the main kernel.
    pub registers: Option<u32>,
    /// Local memory a thread of the main kernel: more than 0 if registers spill.
    pub local_bytes: Option<u32>,
    /// Whether every element was right.
    pub verified: bool,
    /// Elements that were not.
    pub mismatches: u64,
    /// The first of them.
    pub first_mismatch: Option<u64>,
    /// What that one must be, in words.
    #[serde(default)]
    pub expected: Option<String>,
    /// What it is.
    #[serde(default)]
    pub actual: Option<String>,
    /// Sums of floats that are neither right nor wrong, because overflow depends on the order of additions.
    #[serde(default)]
    pub undecidable: u64,
    /// The first of them.
    #[serde(default)]
    pub first_undecidable: Option<u64>,
    /// Median GPU time of one scan.
    pub time_us: Option<f64>,
    /// A quarter of the samples took no longer.
    pub time_lower_quartile_us: Option<f64>,
    /// Three quarters of the samples took no longer.
    pub time_upper_quartile_us: Option<f64>,
    /// Timed samples.
    pub samples: Option<u64>,
    /// The bytes of every array (read or written once) by the median time.
    pub gigabytes_per_second: Option<f64>,
    /// Reads and writes of input, output and temporary arrays by n, as the CPU device counts them.
    pub element_moves_per_element: Option<f64>,
    /// Reads and writes of spines by n.
    pub spine_moves_per_element: Option<f64>,
    /// Operator applications by n: the work.
    pub work_per_element: Option<f64>,
    /// Longest chain of dependent operator applications.
    pub span: Option<u64>,
    /// Block barriers passed.
    pub barriers: Option<u64>,
    /// Descriptor, ticket and counter accesses.
    pub protocol_accesses: Option<u64>,
    /// Polls that found a descriptor not yet valid.
    pub spin_polls: Option<u64>,
    /// Look-back windows read, mean of the tiles that looked back.
    pub lookback_rounds_per_tile: Option<f64>,
    /// Tiles looked back over, mean of the tiles that looked back.
    pub lookback_distance_tiles: Option<f64>,
    /// Schedules, one a seed, over which the distance was counted for a picture: one alone is no trend.
    #[serde(default)]
    pub lookback_schedules: Option<u64>,
    /// Median of that mean over these schedules.
    #[serde(default)]
    pub lookback_distance_median_tiles: Option<f64>,
    /// A quarter of these schedules had no more.
    #[serde(default)]
    pub lookback_distance_lower_quartile_tiles: Option<f64>,
    /// Three quarters of these schedules had no more.
    #[serde(default)]
    pub lookback_distance_upper_quartile_tiles: Option<f64>,
    /// Wall time of the CPU device's executor; says nothing about a GPU.
    pub executor_seconds: Option<f64>,
    /// Why there is no result, if the kernel failed.
    pub failure: Option<String>,
    /// Which problem was scanned; older records know the flat scan alone.
    #[serde(default)]
    pub problem: ProblemKind,
    /// Element type of what is loaded, where it is another one than that of what is stored.
    #[serde(default)]
    pub input_element: Option<ElementType>,
    /// Elements of a row or column, or of a run or of a segment between offsets on average, where the problem has such.
    #[serde(default)]
    pub segment_elements: Option<u64>,
    /// The strategy that `auto` came to. A column of CSV only where some row has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_strategy: Option<Strategy>,
}

/// What came of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every element was right.
    Right,
    /// Nothing was wrong, but overflow depends on the order of additions, so that some sums are neither right nor wrong.
    Undecidable,
    /// An element was wrong.
    Wrong,
    /// The kernel failed.
    Failed,
}

impl Row {
    /// The row of a configuration that `auto` came to.
    #[must_use]
    pub fn chosen_by_auto(mut self) -> Self {
        self.chosen_strategy = self.strategy_that_ran();
        self.strategy = StrategyChoice::Auto;
        self
    }

    /// What was run, without what came of it.
    fn configuration(&self) -> impl PartialEq + Debug {
        let problem = (self.problem, self.input_element, self.segment_elements);
        let instance = (problem, self.element, self.operator, self.mode, self.n, self.in_place);
        let kernel = (self.vt, self.block_threads, self.pattern, self.composition, self.descriptor, self.tile_order);
        let offsets = (self.input_offset_bytes, self.output_offset_bytes);
        (self.strategy, self.chosen_strategy, instance, kernel, offsets)
    }

    /// The strategy that ran, by whatever name it was asked for; `None` if a damaged record does not say it.
    pub const fn strategy_that_ran(&self) -> Option<Strategy> {
        match self.strategy {
            StrategyChoice::Named(strategy) => Some(strategy),
            StrategyChoice::Auto => self.chosen_strategy,
        }
    }

    /// The strategy's name; for `auto` with the strategy that it came to.
    pub fn strategy_with_choice(&self) -> String {
        match self.chosen_strategy {
            Some(chosen) => format!("{}: {chosen}", self.strategy),
            None => self.strategy.name().to_owned(),
        }
    }

    /// What is computed: "u32 sum, inclusive, in place", "f32 sum, rows of 512, exclusive".
    pub fn scan(&self) -> String {
        format!("{}, {}{}", self.problem_name(), self.mode, if self.in_place { ", in place" } else { "" })
    }

    /// What is computed, and where the arrays begin if not at a boundary of 32 bytes.
    pub fn scan_and_offsets(&self) -> String {
        match (self.input_offset_bytes, self.output_offset_bytes) {
            (0, 0) => self.scan(),
            (input, output) => format!("{}, {input} and {output} bytes off 32", self.scan()),
        }
    }

    /// Whether tiles met through descriptors in one launch.
    pub fn is_single_pass(&self) -> bool {
        self.strategy_that_ran().is_some_and(Strategy::is_single_pass)
    }

    /// The row of a run of `workload` that came to an end.
    pub fn of_outcome(workload: Workload, request: &ScanRequest, outcome: &Outcome) -> Self {
        let per_element = |count: u64| (request.n > 0).then(|| rounded(count as f64 / request.n as f64, 6));
        let mut row = Self::of_request(workload, request);
        row.launches = outcome.launches;
        row.access_bytes = outcome.access_bytes;
        row.registers = outcome.registers;
        row.local_bytes = outcome.local_bytes;
        row.verified = outcome.verification.passed();
        row.mismatches = outcome.verification.mismatches;
        row.first_mismatch = outcome.verification.first_mismatch;
        row.expected.clone_from(&outcome.verification.expected);
        row.actual.clone_from(&outcome.verification.actual);
        row.undecidable = outcome.verification.undecidable;
        row.first_undecidable = outcome.verification.first_undecidable;
        // What turned out wrong after it was timed has no time.
        let timing = outcome.timing.as_ref().filter(|_| row.mismatches == 0);
        if let Some(timing) = timing.filter(|timing| timing.median_ns > 0.0) {
            let bytes = workload.bytes(request.n) as f64;
            row.time_us = Some(rounded(timing.median_ns / 1000.0, 3));
            row.gigabytes_per_second = Some(rounded(bytes / timing.median_ns, 3));
            let summary = Summary::of(&timing.samples_ns);
            row.time_lower_quartile_us = summary.map(|summary| rounded(summary.lower_quartile / 1000.0, 3));
            row.time_upper_quartile_us = summary.map(|summary| rounded(summary.upper_quartile / 1000.0, 3));
            row.samples = Some(timing.samples_ns.len() as u64);
        }
        if let Some(counters) = &outcome.counters {
            row.element_moves_per_element = per_element(counters.element_reads + counters.element_writes);
            row.spine_moves_per_element = per_element(counters.spine_moves);
            row.work_per_element = per_element(counters.operator_applications);
            row.span = Some(counters.span_steps);
            row.barriers = Some(counters.barriers);
            row.protocol_accesses = Some(counters.protocol_accesses);
            row.spin_polls = Some(counters.spin_polls);
            let tiles = counters.lookback_tiles;
            row.lookback_rounds_per_tile =
                (tiles > 0).then(|| rounded(counters.lookback_rounds as f64 / tiles as f64, 6));
            row.lookback_distance_tiles = counters.mean_lookback_distance().map(|distance| rounded(distance, 6));
        }
        row.executor_seconds = outcome.executor_time.map(|time| rounded(time.as_secs_f64(), 6));
        row
    }

    /// The same row with what several schedules came to: the tiles looked back over in each, the mean of those that did.
    #[must_use]
    pub fn with_schedules(mut self, distances: &[f64]) -> Self {
        let summary = Summary::of(distances);
        let of = |value: fn(&Summary) -> f64| summary.as_ref().map(|summary| rounded(value(summary), 6));
        self.lookback_schedules = summary.as_ref().map(|summary| summary.count as u64);
        self.lookback_distance_median_tiles = of(|summary| summary.median);
        self.lookback_distance_lower_quartile_tiles = of(|summary| summary.lower_quartile);
        self.lookback_distance_upper_quartile_tiles = of(|summary| summary.upper_quartile);
        self
    }

    /// The row of a kernel that failed.
    pub fn of_failure(workload: Workload, request: &ScanRequest, failure: String) -> Self {
        Self { failure: Some(failure), ..Self::of_request(workload, request) }
    }

    fn of_request(workload: Workload, request: &ScanRequest) -> Self {
        let config = &request.config;
        let tiles = request.strategy.has_tiles();
        Self {
            strategy: StrategyChoice::Named(request.strategy),
            element: workload.element(),
            operator: workload.operator(),
            mode: request.mode,
            in_place: request.in_place,
            n: request.n,
            vt: tiles.then_some(config.vt),
            block_threads: request.strategy.has_blocks().then_some(config.block_threads),
            pattern: tiles.then_some(config.pattern),
            composition: tiles.then_some(config.composition),
            descriptor: config.descriptor.filter(|_| request.strategy.is_single_pass()),
            tile_order: request.strategy.is_single_pass().then_some(config.tile_order),
            input_offset_bytes: request.input_offset,
            output_offset_bytes: request.output_offset,
            launches: 0,
            access_bytes: 0,
            registers: None,
            local_bytes: None,
            verified: false,
            mismatches: 0,
            first_mismatch: None,
            expected: None,
            actual: None,
            undecidable: 0,
            first_undecidable: None,
            time_us: None,
            time_lower_quartile_us: None,
            time_upper_quartile_us: None,
            samples: None,
            gigabytes_per_second: None,
            element_moves_per_element: None,
            spine_moves_per_element: None,
            work_per_element: None,
            span: None,
            barriers: None,
            protocol_accesses: None,
            spin_polls: None,
            lookback_rounds_per_tile: None,
            lookback_distance_tiles: None,
            lookback_schedules: None,
            lookback_distance_median_tiles: None,
            lookback_distance_lower_quartile_tiles: None,
            lookback_distance_upper_quartile_tiles: None,
            executor_seconds: None,
            failure: None,
            problem: workload.kind(),
            input_element: Some(workload.input()).filter(|&input| input != workload.element()),
            segment_elements: workload.segment_elements(),
            chosen_strategy: None,
        }
    }

    /// What was scanned.
    ///
    /// # Errors
    /// When there is no such problem: a damaged record may hold what does not exist.
    pub fn workload(&self) -> Result<Workload, String> {
        let operator = match (self.operator, self.problem.has_operator()) {
            (Some(operator), true) => operator,
            (None, false) => Operator::Sum,
            (_, true) => return Err(format!("it does not say the operator of '{}'", self.problem)),
            (_, false) => return Err(format!("it says an operator of '{}', which has none", self.problem)),
        };
        let input = self.input_element.unwrap_or(self.element);
        let workload = Workload::new(self.problem, operator, input, self.element, self.segment_elements);
        let workload = workload.map_err(|error| error.to_string())?.storing(self.element)?;
        match workload.misfit(self.n) {
            Some(misfit) => Err(misfit),
            None => Ok(workload),
        }
    }

    /// What came of it.
    pub const fn verdict(&self) -> Verdict {
        match (&self.failure, self.verified, self.undecidable > 0 && self.mismatches == 0) {
            (Some(_), ..) => Verdict::Failed,
            (None, true, _) => Verdict::Right,
            (None, false, true) => Verdict::Undecidable,
            (None, false, false) => Verdict::Wrong,
        }
    }

    /// What is not right with the result, in a sentence; nothing where all is, or where there is none.
    pub fn complaint(&self) -> Option<String> {
        let verification = Verification {
            compared: self.n,
            mismatches: self.mismatches,
            first_mismatch: self.first_mismatch,
            expected: self.expected.clone(),
            actual: self.actual.clone(),
            undecidable: self.undecidable,
            first_undecidable: self.first_undecidable,
        };
        verification.complaint().filter(|_| self.failure.is_none())
    }

    /// What cannot be, in a sentence: a row that says so was not written by this program.
    fn contradiction(&self) -> Option<String> {
        self.contradiction_of_configuration()
            .or_else(|| self.contradiction_of_result())
            .or_else(|| self.contradiction_of_values())
            .or_else(|| self.contradiction_of_time())
    }

    fn contradiction_of_configuration(&self) -> Option<String> {
        let unsaid = ScanConfig::default();
        let config = ScanConfig {
            vt: self.vt.unwrap_or(unsaid.vt),
            block_threads: self.block_threads.unwrap_or(unsaid.block_threads),
            pattern: self.pattern.unwrap_or(unsaid.pattern),
            composition: self.composition.unwrap_or(unsaid.composition),
            ..unsaid
        };
        if let Err(error) = config.check() {
            return Some(error.to_string());
        }
        match self.workload() {
            Err(reason) => return Some(reason),
            Ok(workload) if !workload.has_mode(self.mode) => {
                return Some(format!("there is no {} of {workload}", self.mode));
            }
            Ok(_) => {}
        }
        if self.n > LARGEST_SIZE {
            return Some(format!("its {} elements are more than any array here has", self.n));
        }
        let Some(strategy) = self.strategy_that_ran() else {
            return Some("it does not say which strategy auto came to".to_owned());
        };
        if self.strategy != StrategyChoice::Auto && self.chosen_strategy.is_some() {
            return Some("it says which strategy auto came to, and is not auto's".to_owned());
        }
        let of_tiles = [self.vt.is_some(), self.pattern.is_some(), self.composition.is_some()];
        let single_pass = strategy.is_single_pass();
        if of_tiles != [strategy.has_tiles(); 3]
            || self.block_threads.is_some() != strategy.has_blocks()
            || self.tile_order.is_some() != single_pass
            || self.descriptor.is_some() && !single_pass
        {
            return Some(format!("what it says of tiles and blocks is not what {strategy} has"));
        }
        let offsets = [self.input_offset_bytes, self.output_offset_bytes];
        let elements = [self.input_element.unwrap_or(self.element), self.element];
        let is_address = |(&offset, element): (&u32, ElementType)| {
            offset < ScanRequest::OFFSETS && offset.is_multiple_of(element.bytes() as u32)
        };
        if !offsets.iter().zip(elements).all(is_address) || self.in_place && offsets[0] != offsets[1] {
            return Some(format!(
                "its arrays of {} cannot lie {} and {} bytes off",
                self.element, offsets[0], offsets[1]
            ));
        }
        None
    }

    fn contradiction_of_result(&self) -> Option<String> {
        let beyond = [self.first_mismatch, self.first_undecidable].into_iter().flatten().find(|&index| index >= self.n);
        if let Some(index) = beyond {
            return Some(format!("it complains of element {index} of {}", self.n));
        }
        if self.mismatches.saturating_add(self.undecidable) > self.n {
            return Some(format!("it complains of more than its {} elements", self.n));
        }
        let is_right = self.mismatches + self.undecidable == 0;
        if self.verified && (!is_right || self.failure.is_some()) {
            return Some("it is called verified, and says what is not right".to_owned());
        }
        if !self.verified && is_right && self.failure.is_none() {
            return Some("it is not called verified, and says nothing that is not right".to_owned());
        }
        let of_wrong = self.first_mismatch.is_some() || self.expected.is_some() || self.actual.is_some();
        if of_wrong && self.mismatches == 0 || self.first_undecidable.is_some() && self.undecidable == 0 {
            return Some("it describes a wrong element, and counts none".to_owned());
        }
        if self.verified && self.launches == 0 && self.n > 0 {
            return Some("it is called verified, and nothing was launched".to_owned());
        }
        None
    }

    fn contradiction_of_values(&self) -> Option<String> {
        let measured = [
            ("time_us", self.time_us),
            ("gigabytes_per_second", self.gigabytes_per_second),
            ("element_moves_per_element", self.element_moves_per_element),
            ("spine_moves_per_element", self.spine_moves_per_element),
            ("work_per_element", self.work_per_element),
            ("lookback_rounds_per_tile", self.lookback_rounds_per_tile),
            ("lookback_distance_tiles", self.lookback_distance_tiles),
            ("lookback_distance_lower_quartile_tiles", self.lookback_distance_lower_quartile_tiles),
            ("lookback_distance_median_tiles", self.lookback_distance_median_tiles),
            ("lookback_distance_upper_quartile_tiles", self.lookback_distance_upper_quartile_tiles),
            ("time_lower_quartile_us", self.time_lower_quartile_us),
            ("time_upper_quartile_us", self.time_upper_quartile_us),
            ("executor_seconds", self.executor_seconds),
        ];
        // All of it is rounded to 6 digits at least.
        let is_possible = |value: f64| value == 0.0 || (1e-6..=MOST).contains(&value);
        if let Some((name, Some(value))) = measured.into_iter().find(|(_, value)| !value.is_none_or(is_possible)) {
            return Some(format!("its {name} is {value}"));
        }
        let distances = [
            self.lookback_distance_lower_quartile_tiles,
            self.lookback_distance_median_tiles,
            self.lookback_distance_upper_quartile_tiles,
        ];
        if !distances.into_iter().flatten().is_sorted() {
            return Some("the quartiles of its look-back distances are not on either side of the median".to_owned());
        }
        None
    }

    fn contradiction_of_time(&self) -> Option<String> {
        let Some(time) = self.time_us else {
            let derived = [self.time_lower_quartile_us, self.time_upper_quartile_us, self.gigabytes_per_second];
            let is_said = self.samples.is_some() || derived.iter().any(Option::is_some);
            return is_said.then(|| "it has no time, and says what follows from one".to_owned());
        };
        if self.mismatches > 0 || self.failure.is_some() {
            return Some("it has a time, and no result that is right".to_owned());
        }
        // All of it is rounded, to 0.001 µs and 0.001 GB/s; half of that, and a little for binary fractions.
        const ROUNDING: f64 = 0.000_51;
        let of_flat = || self.n as f64 * 2.0 * self.element.bytes() as f64;
        let bytes = self.workload().map_or_else(|_| of_flat(), |workload| workload.bytes(self.n) as f64);
        let rate = bytes / time / 1000.0;
        let is_rate = |stored: f64| (stored - rate).abs() <= ROUNDING * (1.0 + rate / time);
        if time <= 0.0 || self.time_lower_quartile_us.is_some_and(|quartile| quartile < 0.0) {
            Some("its time is none above 0".to_owned())
        } else if ![self.time_lower_quartile_us, Some(time), self.time_upper_quartile_us]
            .into_iter()
            .flatten()
            .is_sorted()
        {
            Some("the quartiles of its times are not on either side of the median".to_owned())
        } else if self.samples.is_none_or(|samples| samples == 0) {
            Some("it has a time and no samples".to_owned())
        } else if !self.gigabytes_per_second.is_none_or(is_rate) {
            Some(format!("its gigabytes_per_second do not follow from its time, which gives {rate:.3}"))
        } else {
            None
        }
    }

    /// What was scanned, in words; a damaged record may hold what does not exist.
    fn problem_name(&self) -> String {
        match (self.workload(), self.operator) {
            (Ok(workload), _) => workload.to_string(),
            (Err(_), Some(operator)) => format!("{} {operator}", self.element),
            (Err(_), None) => format!("{} {}", self.element, self.problem),
        }
    }
}

/// Beyond all that is measured or counted: 11 days in nanoseconds.
pub(super) const MOST: f64 = 1e15;

/// `value` with at most `digits` after the point: what is stored is what is compared and shown.
pub(super) fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// A whole run, or the part of it that was finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Where it came from.
    pub header: Header,
    /// One row a configuration, in the order in which they ran.
    pub rows: Vec<Row>,
    /// What was not run.
    pub skipped: Vec<Skipped>,
}

/// A line of `data.partial.jsonl` below the header.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What came of a configuration.
    Row(Box<Row>),
    /// What was not run.
    Skipped(Skipped),
}

impl From<Header> for Record {
    fn from(header: Header) -> Self {
        Self { header, rows: Vec::new(), skipped: Vec::new() }
    }
}

impl Format for Record {
    const VERSION: u32 = FORMAT;
    type Header = Header;
    type Line = Line;

    fn add(&mut self, line: Line) {
        match line {
            Line::Row(row) => self.rows.push(*row),
            Line::Skipped(skipped) => self.skipped.push(skipped),
        }
    }

    fn identity(line: &Line) -> Option<String> {
        match line {
            Line::Row(row) => Some(format!("{:?}", row.configuration())), // a key
            Line::Skipped(_) => None,
        }
    }

    fn refusal(&self, line: &Line) -> Option<String> {
        let Line::Row(row) = line else { return None };
        row.contradiction()
    }
}

pub(crate) const JSON: &str = "data.json";
const CSV: &str = "data.csv";
/// How the line of column names begins in every version.
const CSV_START: &[u8] = b"strategy,element,operator,mode,";
const PARTIAL: &str = "data.partial.jsonl";
/// The page of a record, which `report` writes.
pub const PAGE: &str = "index.html";

fn if_there<T>(found: Result<T, RecordError>) -> Result<Option<T>, RecordError> {
    match found {
        Err(RecordError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

impl Record {
    /// Reads the record in a folder; of an interrupted run, what was finished.
    ///
    /// # Errors
    /// When there is none, it cannot be read, or it is damaged.
    pub fn read(directory: &Path) -> Result<Self, RecordError> {
        match (Self::read_partial(directory)?, Self::read_whole(directory)?) {
            // A run that goes on with a whole record begins with all of it.
            (Some(partial), Some(whole)) if partial.rows.len() < whole.rows.len() => {
                Err(RecordError::TwoRuns { path: directory.to_owned(), whole: JSON, partial: PARTIAL })
            }
            (Some(record), _) | (None, Some(record)) => Ok(record),
            (None, None) => {
                let what = "record: no data.json is there, and no data.partial.jsonl with a line";
                Err(RecordError::Missing { path: directory.to_owned(), what, command: "compare" })
            }
        }
    }

    /// Whether a folder has one, whole or interrupted.
    pub fn is_in(directory: &Path) -> bool {
        [JSON, PARTIAL].iter().any(|name| directory.join(name).exists())
    }

    /// Whether what a folder has is interrupted.
    pub fn is_unfinished(directory: &Path) -> bool {
        directory.join(PARTIAL).metadata().is_ok_and(|file| file.len() > 0)
    }

    /// Whether a file of this name holds one.
    pub fn is_named(name: &str) -> bool {
        [JSON, PARTIAL].contains(&name)
    }

    /// What an interrupted run left; nothing where it was killed before it had written a line.
    fn read_partial(directory: &Path) -> Result<Option<Self>, RecordError> {
        let path = directory.join(PARTIAL);
        if if_there(file::open(&path).map_err(io_error("read", &path)))?.is_none_or(|(_, bytes)| bytes == 0) {
            return Ok(None);
        }
        read_lines(&path).map(Some)
    }

    fn read_whole(directory: &Path) -> Result<Option<Self>, RecordError> {
        let json = directory.join(JSON);
        let Some(text) = if_there(file::read(&json, RECORD_BYTES).map_err(io_error("read", &json)))? else {
            return Ok(None);
        };
        check_version(&text, &json, Self::VERSION)?;
        let record: Self = parse(&text, &json, 1)?;
        let mut seen = HashMap::new();
        for (index, row) in record.rows.iter().enumerate() {
            let key = format!("{:?}", row.configuration()); // a key
            let twice = seen
                .insert(key, index)
                .map(|earlier| format!("it is the same configuration as row {}, and would count twice", earlier + 1));
            if let Some(reason) = twice.or_else(|| row.contradiction()) {
                // Where in the text the row begins, nobody knows any more.
                let reason = format!("row {}: {reason}", index + 1);
                return Err(RecordError::Damaged { path: json, line: 1, reason });
            }
        }
        Ok(Some(record))
    }

    /// Writes `data.json` and `data.csv`, each whole or not at all, and removes what an interrupted run left.
    ///
    /// # Errors
    /// When the folder cannot be written, or holds a `data.csv` of somebody else.
    pub fn write(&self, directory: &Path) -> Result<(), RecordError> {
        let csv = directory.join(CSV);
        match if_there(file::read(&csv, RECORD_BYTES).map_err(io_error("read", &csv)))? {
            // Without a row there are no names.
            Some(present) if !present.is_empty() && !present.starts_with(CSV_START) => {
                return Err(RecordError::NotOurs { path: csv, command: "compare" });
            }
            Some(_) | None => {}
        }
        let has_choices = self.rows.iter().any(|row| row.chosen_strategy.is_some());
        write_atomically(&csv, &to_csv(&self.rows, true, has_choices, &csv)?)?;
        write_atomically(&directory.join(JSON), self.to_json().as_bytes())?;
        let partial = directory.join(PARTIAL);
        if_there(fs::remove_file(&partial).map_err(io_error("remove", &partial))).map(drop)
    }

    /// Rows with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict() == verdict).count()
    }

    /// The record as JSON text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a record has string keys and finite numbers");
        text.push('\n');
        text
    }
}

/// Rows as CSV text, below a line of column names if asked for. The last column, what `auto` came to, is there if
/// `has_choices`. `path` is for the error alone.
///
/// # Errors
/// Never for the rows of this version; the type keeps the promise of no panic.
pub fn to_csv(rows: &[Row], column_names: bool, has_choices: bool, path: &Path) -> Result<Vec<u8>, RecordError> {
    let csv_error = |source| RecordError::Csv { path: path.to_owned(), source };
    let mut writer = csv::WriterBuilder::new().has_headers(column_names).from_writer(Vec::new());
    for row in rows {
        let mut row = row.clone();
        row.chosen_strategy = None;
        writer.serialize(row).map_err(csv_error)?;
    }
    let lines = writer.into_inner().map_err(|error| csv_error(error.into_error().into()))?;
    if !has_choices {
        return Ok(lines);
    }
    // An optional column would be left out in the rows that do not have it.
    let names = column_names.then_some("chosen_strategy").into_iter();
    let cells = names.chain(rows.iter().map(|row| row.chosen_strategy.map_or("", Strategy::name)));
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&lines[..]);
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (record, cell) in reader.records().zip(cells) {
        let mut record = record.map_err(csv_error)?;
        record.push_field(cell);
        writer.write_record(&record).map_err(csv_error)?;
    }
    writer.into_inner().map_err(|error| csv_error(error.into_error().into()))
}

impl Recorder<Record> {
    /// Starts a record in `directory`, which is made if need be, or goes on with the one that is there; without a directory
    /// in memory only.
    ///
    /// # Errors
    /// When the folder cannot be made or written, has a record and this is not to `resume` it, holds files of something
    /// else under the names of a record's, or another process writes there.
    pub fn start(directory: Option<&Path>, header: Header, resume: bool) -> Result<Self, RecordError> {
        let Some(directory) = directory else { return Ok(Self::in_memory(header)) };
        let lock = claim_folder(directory)?;
        let path = directory.join(PARTIAL);
        let whole = Some(directory.join(JSON)).filter(|path| path.exists());
        let found = Some(&path).filter(|_| Record::is_unfinished(directory)).or(whole.as_ref());
        let Some(found) = found else {
            let taken = [CSV, PAGE].into_iter().map(|name| directory.join(name)).find(|path| path.exists());
            return match taken {
                Some(path) => Err(RecordError::NotOurs { path, command: "compare" }),
                None => Self::create(&path, lock, header),
            };
        };
        if !resume {
            return Err(RecordError::Exists { path: found.clone() });
        }
        let Record { header: recorded, rows, skipped } = Record::read(directory)?;
        type Fact = fn(&Header) -> String;
        let facts: [(&'static str, Fact); 6] = [
            ("device", |header| header.device.name.clone()),
            ("version", |header| header.tool_version.clone()),
            ("commit", |header| header.git_commit.clone().unwrap_or_default()),
            ("input", |header| header.input.clone()),
            ("content of the input", |header| header.input_sha256.clone().unwrap_or_default()),
            ("seed", |header| header.seed.to_string()),
        ];
        for (what, fact) in facts {
            let (recorded, present) = (fact(&recorded), fact(&header));
            if recorded != present {
                return Err(RecordError::CannotResume { path: found.clone(), what, recorded, present });
            }
        }
        // Compiler, driver, and how the CPU device runs blocks: each decides what is counted or how long it takes.
        let settings = |header: &Header| -> Vec<String> {
            header.device.facts.iter().map(|(name, value)| format!("{name}: {value}")).collect()
        };
        let (before, now) = (settings(&recorded), settings(&header));
        let only_in = |these: &[String], others: &[String]| {
            these.iter().filter(|fact| !others.contains(fact)).cloned().collect::<Vec<_>>().join(", ")
        };
        let (recorded_facts, present) = (only_in(&before, &now), only_in(&now, &before));
        if recorded_facts != present {
            let (path, what) = (found.clone(), "setting of the device");
            return Err(RecordError::CannotResume { path, what, recorded: recorded_facts, present });
        }
        let rows = rows.into_iter().map(|row| Line::Row(Box::new(row)));
        Self::replace(&path, lock, recorded, rows.chain(skipped.into_iter().map(Line::Skipped)).collect())
    }

    /// Whether the row of a configuration is there, from an earlier run.
    pub fn has(&self, choice: StrategyChoice, workload: Workload, request: &ScanRequest) -> bool {
        let mut wanted = Row::of_request(workload, request);
        if choice == StrategyChoice::Auto {
            wanted = wanted.chosen_by_auto();
        }
        self.record().rows.iter().any(|row| row.configuration() == wanted.configuration())
    }

    /// Keeps a row.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn row(&mut self, row: Row) -> Result<(), RecordError> {
        self.keep(Line::Row(Box::new(row)))
    }

    /// Keeps a note on what was not run.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn skipped(&mut self, skipped: Skipped) -> Result<(), RecordError> {
        if self.record().skipped.contains(&skipped) { Ok(()) } else { self.keep(Line::Skipped(skipped)) }
    }

    /// Ends the record and returns it, and what keeps others out of its folder.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn finish(self) -> Result<(Record, Option<Lock>), RecordError> {
        if let Some(directory) = self.path().parent() {
            self.record().write(directory)?;
        }
        self.discard_file()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::element::Instance;
    use crate::lab::device::{Counters, Timing};
    use crate::lab::recorder::from_lines;
    use std::time::Duration;

    pub(crate) fn header(kind: &str) -> Header {
        Header {
            format: FORMAT,
            tool_version: "0.0.0".to_owned(),
            git_commit: None,
            date: "2026-11-21T00:00:00Z".to_owned(),
            command: "lookback compare".to_owned(),
            seed: 1,
            input: "random".to_owned(),
            input_sha256: None,
            device: DeviceDescription { kind: kind.to_owned(), name: "test".to_owned(), facts: Vec::new() },
        }
    }

    pub(crate) fn request(strategy: Strategy, n: u64, vt: u32) -> ScanRequest {
        let instance = Instance::new(ElementType::U32, Operator::Sum).unwrap();
        let config = ScanConfig { vt, ..ScanConfig::default() };
        ScanRequest::aligned(instance, strategy, Mode::Inclusive, config, n)
    }

    /// The row of a flat scan.
    pub(crate) fn row_of(request: &ScanRequest, outcome: &Outcome) -> Row {
        Row::of_outcome(request.instance().into(), request, outcome)
    }

    /// Likewise of one that failed.
    pub(crate) fn failed_row_of(request: &ScanRequest, failure: String) -> Row {
        Row::of_failure(request.instance().into(), request, failure)
    }

    pub(crate) fn outcome(n: u64, timed: bool) -> Outcome {
        let counters = Counters {
            element_reads: n,
            element_writes: n,
            lookback_tiles: 2,
            lookback_distance: 3,
            ..Counters::default()
        };
        Outcome {
            verification: Verification::right(n),
            counters: (!timed).then_some(counters),
            timing: timed.then(|| Timing { samples_ns: vec![1000.0, 2000.0, 3000.0], median_ns: 2000.0 }),
            executor_time: (!timed).then(|| Duration::from_millis(5)),
            launches: 1,
            access_bytes: 16,
            registers: None,
            local_bytes: None,
            output: None,
        }
    }

    fn small_record(directory: &Path) -> Recorder<Record> {
        let mut recorder = Recorder::start(Some(directory), header("cpu"), false).unwrap();
        for n in [1, 1000] {
            let request = request(Strategy::Lookback, n, 32);
            recorder.row(row_of(&request, &outcome(n, n == 1))).unwrap();
        }
        recorder.skipped(Skipped { what: "naive".into(), why: "slow".into() }).unwrap();
        recorder
    }

    #[test]
    fn a_record_reads_back_as_written_whole_or_partial() {
        let directory = tempfile::tempdir().unwrap();
        let recorder = small_record(directory.path());
        let partial = Record::read(directory.path()).unwrap();
        let whole = recorder.finish().unwrap().0;
        assert_eq!(partial, whole);
        assert_eq!(Record::read(directory.path()).unwrap(), whole);
        assert!(!directory.path().join(PARTIAL).exists());
    }

    #[test]
    fn the_strategy_is_the_first_column() {
        let directory = tempfile::tempdir().unwrap();
        small_record(directory.path()).finish().unwrap();
        let csv = fs::read_to_string(directory.path().join(CSV)).unwrap();
        assert!(csv.starts_with("strategy,element,operator,"), "{csv}");
        assert_eq!(csv.lines().nth(1).unwrap().split(',').next(), Some("lookback"));
    }

    #[test]
    fn what_auto_came_to_is_a_column_where_auto_ran_and_nowhere_else() {
        let directory = tempfile::tempdir().unwrap();
        let csv = |record: &Record| {
            record.write(directory.path()).unwrap();
            assert_eq!(&Record::read(directory.path()).unwrap(), record);
            fs::read_to_string(directory.path().join(CSV)).unwrap()
        };
        let mut record = small_record(directory.path()).finish().unwrap().0;
        let without = csv(&record);
        assert!(!without.contains("chosen") && !record.to_json().contains("chosen"));
        record.rows.push(record.rows[0].clone().chosen_by_auto());
        let with = csv(&record);
        let lines: Vec<&str> = with.lines().collect();
        assert!(lines[0].ends_with(",segment_elements,chosen_strategy"), "{with}");
        assert!(lines[1].starts_with("lookback,") && lines[1].ends_with(','), "{with}");
        assert!(lines[3].starts_with("auto,") && lines[3].ends_with(",lookback"), "{with}");
        for (line, old) in lines.iter().zip(without.lines()).skip(1) {
            assert_eq!(*line, format!("{old},"));
        }
    }

    #[test]
    fn rows_of_older_records_are_flat_scans() {
        let row = row_of(&request(Strategy::Lookback, 1000, 32), &outcome(1000, false));
        let mut old = serde_json::to_value(&row).unwrap();
        for name in ["problem", "input_element", "segment_elements"] {
            assert!(old.as_object_mut().unwrap().remove(name).is_some(), "{name}");
        }
        assert_eq!(serde_json::from_value::<Row>(old).unwrap(), row);
    }

    #[test]
    fn problems_are_told_apart_named_and_have_no_parts_of_others() {
        let of = |kind, input, segment| {
            let workload = Workload::new(kind, Operator::Sum, input, ElementType::U32, segment).unwrap();
            let request = ScanRequest { problem: workload.problem(1024), ..request(Strategy::Lookback, 1024, 32) };
            Row::of_outcome(workload, &request, &outcome(1024, true))
        };
        let u32s = ElementType::U32;
        let rows = [
            of(ProblemKind::Flat, u32s, None),
            of(ProblemKind::Flat, ElementType::U8, None),
            of(ProblemKind::Rows, u32s, Some(512)),
            of(ProblemKind::Rows, u32s, Some(256)),
            of(ProblemKind::ByKey, u32s, Some(61)),
            of(ProblemKind::Recurrence, u32s, None),
            of(ProblemKind::Columns, u32s, Some(512)),
            of(ProblemKind::ReverseColumns, u32s, Some(512)),
            of(ProblemKind::RecurrenceColumns, u32s, Some(512)),
            of(ProblemKind::Offsets, u32s, Some(61)),
        ];
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row.contradiction(), None, "{}", row.scan());
            for other in &rows[..index] {
                assert!(row.configuration() != other.configuration() && row.scan() != other.scan(), "{}", row.scan());
            }
        }
        // Each array once: keys, values, results of 4 bytes.
        assert_eq!(rows[4].gigabytes_per_second, rows[0].gigabytes_per_second.map(|rate| rounded(1.5 * rate, 3)));
        assert_eq!(rows[5].scan(), "u32 recurrence, inclusive");
        // 17 segments have 18 offsets.
        let with_offsets = rows[0].gigabytes_per_second.map(|rate| rounded(rate * (2.0 * 1024.0 + 18.0) / 2048.0, 3));
        assert_eq!(rows[9].gigabytes_per_second, with_offsets);
        let impossible: [fn(&mut Row); 6] = [
            |row| row.segment_elements = None,
            |row| row.segment_elements = Some(500),
            |row| row.operator = None,
            |row| row.problem = ProblemKind::Flat,
            |row| row.problem = ProblemKind::Recurrence,
            |row| row.input_element = Some(ElementType::F32),
        ];
        for (index, spoil) in impossible.into_iter().enumerate() {
            let mut row = rows[2].clone();
            spoil(&mut row);
            assert!(row.contradiction().is_some(), "{index}");
            assert!(!row.scan().is_empty());
        }
    }

    #[test]
    fn a_record_cut_off_anywhere_keeps_its_whole_lines() {
        let directory = tempfile::tempdir().unwrap();
        drop(small_record(directory.path()));
        let path = directory.path().join(PARTIAL);
        let text = fs::read(&path).unwrap();
        for length in 0..text.len() {
            let lines = text[..length].iter().filter(|&&byte| byte == b'\n').count();
            match from_lines::<Record>(&text[..length], &path) {
                Ok(record) => assert_eq!(1 + record.rows.len() + record.skipped.len(), lines),
                Err(error) => assert!(lines == 0 && matches!(error, RecordError::Damaged { line: 1, .. }), "{error}"),
            }
        }
    }

    #[test]
    fn a_row_that_stands_twice_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        drop(small_record(directory.path()));
        let partial = directory.path().join(PARTIAL);
        let text = fs::read_to_string(&partial).unwrap();
        let row = text.lines().nth(1).unwrap();
        fs::write(&partial, format!("{text}{row}\n")).unwrap();
        let error = Record::read(directory.path()).unwrap_err();
        assert!(matches!(&error, RecordError::Damaged { line: 5, reason, .. } if reason.contains("line 2")), "{error}");
        fs::remove_file(&partial).unwrap();
        let mut record = small_record(directory.path()).finish().unwrap().0;
        record.rows.push(record.rows[0].clone());
        fs::write(directory.path().join(JSON), record.to_json()).unwrap();
        let error = Record::read(directory.path()).unwrap_err();
        assert!(error.to_string().contains("row 3: it is the same configuration as row 1"), "{error}");
    }

    #[test]
    fn rows_that_cannot_be_are_refused_whole_or_partial() {
        let possible = row_of(&request(Strategy::Lookback, 1000, 32), &outcome(1000, false));
        assert_eq!(possible.contradiction(), None);
        let impossible: [fn(&mut Row); 27] = [
            |row| row.n = u64::MAX,
            |row| row.vt = Some(0),
            |row| row.block_threads = Some(33),
            |row| row.operator = Some(Operator::Affine),
            |row| row.first_mismatch = Some(1000),
            |row| row.mismatches = 1001,
            |row| row.failure = Some("it failed".to_owned()),
            |row| row.work_per_element = Some(-1.0),
            |row| row.n = LARGEST_SIZE + 1,
            |row| row.strategy = StrategyChoice::Auto,
            |row| (row.mode, row.operator) = (Mode::InclusiveMinusInput, Some(Operator::Max)),
            |row| row.chosen_strategy = Some(Strategy::Chained),
            |row| row.vt = None,
            |row| row.composition = None,
            |row| row.block_threads = None,
            |row| row.tile_order = None,
            |row| row.strategy = StrategyChoice::Named(Strategy::Naive),
            |row| row.input_offset_bytes = 2,
            |row| row.output_offset_bytes = 32,
            |row| (row.in_place, row.output_offset_bytes) = (true, 4),
            |row| row.launches = 0,
            |row| row.verified = false,
            |row| row.first_mismatch = Some(5),
            |row| row.expected = Some("7".to_owned()),
            |row| row.first_undecidable = Some(5),
            |row| row.samples = Some(5),
            |row| row.gigabytes_per_second = Some(5.0),
        ];
        for spoil in impossible {
            let directory = tempfile::tempdir().unwrap();
            let mut record = small_record(directory.path()).finish().unwrap().0;
            record.rows.push(possible.clone());
            spoil(record.rows.last_mut().unwrap());
            fs::write(directory.path().join(JSON), record.to_json()).unwrap();
            let whole = Record::read(directory.path()).unwrap_err();
            let directory = tempfile::tempdir().unwrap();
            let mut recorder = small_record(directory.path());
            recorder.row(record.rows.pop().unwrap()).unwrap();
            drop(recorder);
            let partial = Record::read(directory.path()).unwrap_err();
            assert!(matches!(&whole, RecordError::Damaged { reason, .. } if reason.contains("row 3")), "{whole}");
            assert!(matches!(partial, RecordError::Damaged { line: 5, .. }), "{partial}");
        }
    }

    #[test]
    fn what_turned_out_wrong_after_it_was_timed_has_no_time() {
        let mut outcome = outcome(1000, true);
        outcome.verification.mismatches = 1;
        let row = row_of(&request(Strategy::Lookback, 1000, 32), &outcome);
        assert_eq!((row.time_us, row.samples, row.contradiction()), (None, None, None));
    }

    #[test]
    fn measured_values_that_cannot_be_are_refused() {
        let counted = row_of(&request(Strategy::Lookback, 1000, 32), &outcome(1000, false));
        let counted = counted.with_schedules(&[1.0, 2.0, 3.0]);
        assert_eq!(counted.contradiction(), None);
        let impossible: [fn(&mut Row); 12] = [
            |row| row.work_per_element = Some(5e-324),
            |row| row.element_moves_per_element = Some(5e-324),
            |row| row.element_moves_per_element = Some(1e308),
            |row| row.spine_moves_per_element = Some(9e-7),
            |row| row.lookback_distance_tiles = Some(1e16),
            |row| row.lookback_distance_lower_quartile_tiles = Some(5e-324),
            |row| row.lookback_distance_upper_quartile_tiles = Some(1e308),
            |row| row.executor_seconds = Some(1e308),
            |row| row.spine_moves_per_element = Some(-1.0),
            |row| row.lookback_rounds_per_tile = Some(-1.0),
            |row| row.lookback_distance_lower_quartile_tiles = Some(-1.0),
            |row| row.lookback_distance_upper_quartile_tiles = Some(1.5),
        ];
        for (index, spoil) in impossible.into_iter().enumerate() {
            let mut row = counted.clone();
            spoil(&mut row);
            assert!(row.contradiction().is_some(), "{index}");
        }
        let timed = row_of(&request(Strategy::Lookback, 1000, 32), &outcome(1000, true));
        assert_eq!(timed.contradiction(), None);
        let impossible: [fn(&mut Row); 9] = [
            |row| (row.verified, row.mismatches) = (false, 1),
            |row| row.time_us = None,
            |row| row.time_us = Some(0.0),
            |row| row.time_us = Some(1.9),
            |row| row.time_lower_quartile_us = Some(2.1),
            |row| row.time_upper_quartile_us = Some(1.9),
            |row| row.time_lower_quartile_us = Some(-1.0),
            |row| row.samples = Some(0),
            |row| row.gigabytes_per_second = Some(4.01),
        ];
        for (index, spoil) in impossible.into_iter().enumerate() {
            let mut row = timed.clone();
            spoil(&mut row);
            assert!(row.contradiction().is_some(), "{index}");
        }
    }

    #[test]
    fn damaged_records_are_typed_errors() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(Record::read(directory.path()), Err(RecordError::Missing { .. })));
        let record = small_record(directory.path()).finish().unwrap().0;
        let json = directory.path().join(JSON);
        fs::write(&json, &record.to_json()[..200]).unwrap();
        assert!(matches!(Record::read(directory.path()), Err(RecordError::Damaged { .. })));
        fs::write(&json, record.to_json().replace("\"format\": 1", "\"format\": 99")).unwrap();
        assert!(matches!(Record::read(directory.path()), Err(RecordError::Format { found: 99, .. })));
        fs::write(&json, record.to_json().replace("\"lookback\"", "\"lookforward\"")).unwrap();
        assert!(matches!(Record::read(directory.path()), Err(RecordError::Damaged { .. })));
        fs::remove_file(&json).unwrap();
        fs::create_dir(&json).unwrap();
        assert!(matches!(Record::read(directory.path()), Err(RecordError::Io { .. })));
    }
}
