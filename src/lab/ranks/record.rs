//! What a run of `lookback compare --ranks` leaves behind.

use super::manner::Manner;
use crate::element::{ElementType, Operator};
use crate::lab::origin::Origin;
use crate::lab::recorder::{RecordError, check_version, parse, read_text, write_anew};
use crate::lab::statistics::Summary;
use crate::strategy::Mode;
use crate::text::format_size;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file in the folder of `--output`.
pub const RANKS: &str = "ranks.json";
/// Version of the layout; another one is refused.
pub const FORMAT: u32 = 1;

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankRecord {
    /// Where it comes from.
    pub header: Origin,
    /// What connected the ranks, as NCCL 2.28.9.
    pub connection: String,
    /// How it was timed.
    pub method: String,
    /// A row for each size, scan and manner.
    pub rows: Vec<Row>,
}

impl RankRecord {
    /// Whether a folder has such a record.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(RANKS).exists()
    }

    /// That of a folder.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or is of another version.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(RANKS);
        let text = read_text(&path)?;
        check_version(&text, &path, FORMAT)?;
        parse(&text, &path, 1)
    }

    /// As JSON for people.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a record has string keys and finite numbers")
    }

    /// Writes it into a folder that has none.
    ///
    /// # Errors
    /// When the folder cannot be written, or the file is there.
    pub fn write(&self, folder: &Path) -> Result<(), RecordError> {
        write_anew(&folder.join(RANKS), self.json().as_bytes())
    }
}

/// One size in one manner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// How a rank comes by what stands left of its shard.
    pub manner: Manner,
    /// Elements of the chunks that are dealt, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u64>,
    /// What is loaded.
    pub input: ElementType,
    /// What is scanned and stored.
    pub output: ElementType,
    /// The operator.
    pub operator: Operator,
    /// Inclusive or exclusive.
    pub mode: Mode,
    /// Elements of all ranks.
    pub n: u64,
    /// Devices.
    pub ranks: usize,
    /// Results that are wrong, of all.
    pub wrong: u64,
    /// How many times the rate of one device all have by the bytes that they move.
    pub by_bytes: f64,
    /// Nanoseconds of a scan, of the slowest rank in each round.
    pub samples_ns: Vec<f64>,
    /// Nanoseconds in which one device scans a shard alone, of the fastest rank in each round.
    pub alone_ns: Vec<f64>,
}

impl Row {
    /// Median nanoseconds of a scan.
    pub fn time_ns(&self) -> f64 {
        median(&self.samples_ns)
    }

    /// Median nanoseconds of a shard alone on one device.
    pub fn alone_ns(&self) -> f64 {
        median(&self.alone_ns)
    }

    /// Elements a nanosecond, of all ranks.
    pub fn rate(&self) -> f64 {
        self.n as f64 / self.time_ns()
    }

    /// Elements a nanosecond, of one device alone.
    pub fn rate_alone(&self) -> f64 {
        self.n as f64 / self.ranks as f64 / self.alone_ns()
    }

    /// How many times the rate of one device.
    pub fn times_one(&self) -> f64 {
        self.rate() / self.rate_alone()
    }

    /// The manner, and of what is dealt the chunks.
    pub fn shared(&self) -> String {
        let chunk = self.chunk.map(|chunk| format!(" {}", format_size(chunk)));
        format!("{}{}", self.manner, chunk.unwrap_or_default())
    }

    /// The scan in words.
    pub fn scan(&self) -> String {
        let types = if self.input == self.output {
            self.output.to_string()
        } else {
            format!("{} -> {}", self.input, self.output)
        };
        format!("{types} {} {}", self.operator, self.mode)
    }
}

/// The median, or 0 where nothing was timed.
fn median(samples: &[f64]) -> f64 {
    Summary::of(samples).map_or(0.0, |summary| summary.median)
}
