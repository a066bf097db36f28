//! What a program waits for on the host: a new scanner and its first scan, and a call until it returns. `lookback call` measures it.

use crate::lab::statistics::Summary;
use serde::{Deserialize, Serialize};

/// What was measured on one machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallTimes {
    /// New scanners, each in a process of its own.
    pub starts: Vec<Start>,
    /// Calls with cudarc's event tracking as it comes.
    pub tracked: Calls,
    /// Calls with it switched off.
    pub untracked: Calls,
}

/// A new scanner in a new process, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Whether the folder of compiled kernels has those that it needs, or nothing.
    pub has_kernels: bool,
    /// `CudaContext::new`, which is none of the scanner's.
    pub context_ms: f64,
    /// `Scanner::new`.
    pub scanner_ms: f64,
    /// From there until the first scan's output is there.
    pub first_scan_ms: f64,
}

/// Calls of `Scanner::inclusive` over 1024 elements, in microseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Calls {
    /// From the call until it returns: each the mean of [`CallTimes::CALLS`] behind each other.
    pub returned_us: Vec<f64>,
    /// One call until the stream has done it.
    pub done_us: Vec<f64>,
}

impl Calls {
    /// The medians: until it returns, and until it is done.
    pub fn medians_us(&self) -> [Option<f64>; 2] {
        [&self.returned_us, &self.done_us].map(|times| median(times))
    }
}

impl CallTimes {
    /// Elements of each scan.
    pub const ELEMENTS: usize = 1024;
    /// Calls behind each other, after which the stream is waited for.
    pub const CALLS: u32 = 64;

    /// Microseconds until a call returns, event tracking as it comes: the median.
    pub fn returned_us(&self) -> Option<f64> {
        median(&self.tracked.returned_us)
    }

    /// Microseconds of a new scanner and its first scan: the median of those processes.
    pub fn start_us(&self, has_kernels: bool) -> Option<f64> {
        let starts = self.starts.iter().filter(|start| start.has_kernels == has_kernels);
        let times: Vec<f64> = starts.map(|start| 1e3 * (start.scanner_ms + start.first_scan_ms)).collect();
        median(&times)
    }

    /// What cannot be, if something is so.
    pub(super) fn contradiction(&self) -> Option<String> {
        let starts = self.starts.iter().flat_map(|start| [start.context_ms, start.scanner_ms, start.first_scan_ms]);
        let calls = [&self.tracked, &self.untracked]
            .into_iter()
            .flat_map(|calls| calls.returned_us.iter().chain(&calls.done_us));
        let is_time = |time: &f64| time.is_finite() && *time > 0.0;
        let wrong = starts.chain(calls.copied()).find(|time| !is_time(time))?;
        Some(format!("a time on the host is {wrong}"))
    }
}

fn median(times: &[f64]) -> Option<f64> {
    Summary::of(times).map(|summary| summary.median)
}
