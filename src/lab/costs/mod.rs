//! What a scan costs, strategy by strategy: launches, element-moves, time by that of the copy, and what the hardware counted.
//! The record of `lookback costs`, and the columns in which it is shown.
//!
//! | module | what it does |
//! |---|---|
//! | [`counters`] | what Nsight Compute counts, read from what it prints |

pub mod counters;

use crate::lab::measure::point::{Kind, PointKey};
use crate::lab::measure::record::{Status, SweepRow, wrong_percentage};
use crate::lab::origin::Origin;
use crate::lab::record::MOST;
use crate::lab::recorder::{RecordError, Skipped, check_version, parse, read_text, write_anew};
use crate::strategy::{Mode, Strategy};
use crate::text::{format_size, significant};
use counters::{HardwareCounts, SECTOR_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;

/// Version of the layout; another one is refused.
pub const FORMAT: u32 = 1;
/// How the names of records begin that documents take tables from.
const NAME: &str = "costs-";

/// A strategy at one size, or the copy beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostRow {
    /// What ran, by how many launches, how it was verified, and on a GPU how long it took beside the copy, cold.
    pub measured: SweepRow,
    /// Reads and writes of input, output and temporary arrays by n, as the CPU device counts them.
    pub moves_per_element: Option<f64>,
    /// What Nsight Compute counted of one scan on a GPU.
    pub counts: Option<HardwareCounts>,
    /// Why it counted nothing of this one, if it was asked.
    pub not_counted: Option<String>,
}

impl CostRow {
    /// The row of what was run and not counted.
    pub fn new(measured: SweepRow) -> Self {
        Self { measured, moves_per_element: None, counts: None, not_counted: None }
    }

    /// The strategy that ran, by whatever name it was asked for; `None` of a copy.
    pub fn strategy(&self) -> Option<Strategy> {
        let named = || self.measured.subject.parse().ok();
        self.measured.chosen_strategy.or_else(named).filter(|_| self.measured.kind == Kind::Strategy)
    }

    /// What was counted, an element.
    fn per_element(&self, count: fn(&HardwareCounts) -> f64) -> Option<f64> {
        Some(count(self.counts.as_ref()?) / self.measured.n as f64)
    }

    /// What tells it from every other.
    fn configuration(&self) -> String {
        self.measured.key()
    }

    /// The choices inside its blocks, in words.
    fn choices(&self) -> String {
        let SweepRow { pattern, composition, descriptor, tile_order, .. } = &self.measured;
        let words = [
            pattern.map(|pattern| pattern.to_string()),
            composition.map(|composition| composition.to_string()),
            descriptor.map(|descriptor| descriptor.to_string()),
            tile_order.map(|order| order.to_string()),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// What cannot be true of a row beside the rest of it.
    fn contradiction(&self) -> Option<String> {
        let Self { measured, moves_per_element, counts, not_counted } = self;
        let is_scan = self.strategy().is_some();
        if let Some(reason) = measured.contradiction() {
            return Some(reason);
        }
        if !is_scan && measured.kind != Kind::Copy {
            return Some(format!("'{}' is neither a strategy nor a copy", measured.subject));
        }
        if measured.n == 0 {
            return Some("of no elements nothing is counted".to_owned());
        }
        if moves_per_element.is_some_and(|moves| !(0.0..=MOST).contains(&moves)) {
            return Some("its moves_per_element are no number that can be".to_owned());
        }
        let most = MOST * measured.n as f64;
        if counts.is_some_and(|counts| counts.each().into_iter().any(|count| count as f64 > most)) {
            return Some("it has counts that cannot be of so many elements".to_owned());
        }
        let is_right = is_scan && measured.status == Status::Measured;
        if (counts.is_some() || moves_per_element.is_some()) && !is_right {
            return Some("it is counted, and no scan that is right".to_owned());
        }
        (counts.is_some() && not_counted.is_some()).then(|| "it is counted, and says why it is not".to_owned())
    }
}

/// The account of one run of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostRecord {
    /// How it came about.
    pub header: Origin,
    /// Seed of the input, and of the CPU device's schedule.
    pub seed: u64,
    /// In the order in which they ran; on a GPU the copy of as many bytes before the scans that it is beside.
    pub rows: Vec<CostRow>,
    /// What was not run.
    pub skipped: Vec<Skipped>,
    /// Why the hardware counted nothing at all, where it has counters.
    pub not_counted: Option<String>,
}

/// The rows of one scan at one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs<'a> {
    /// "u32 sum, inclusive, n = 2^24".
    pub title: String,
    /// Each with its name among the others.
    pub rows: Vec<(String, &'a CostRow)>,
}

impl CostRecord {
    /// Whether a file of this name is looked at for a document's tables.
    pub fn is_named(name: &str) -> bool {
        name.starts_with(NAME) && name.ends_with(".json")
    }

    /// Reads an account.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or is of another version.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let text = read_text(path)?;
        check_version(&text, path, FORMAT)?;
        let record: Self = parse(&text, path, 1)?;
        match record.contradiction() {
            Some(reason) => Err(RecordError::Damaged { path: path.to_owned(), line: 1, reason }),
            None => Ok(record),
        }
    }

    /// Writes it where nothing is yet.
    ///
    /// # Errors
    /// When the folder cannot be written, or the file is there.
    pub fn write(&self, path: &Path) -> Result<(), RecordError> {
        let mut text = serde_json::to_string_pretty(self).expect("an account has string keys and finite numbers");
        text.push('\n');
        write_anew(path, text.as_bytes())
    }

    fn contradiction(&self) -> Option<String> {
        if self.costs().is_empty() {
            return Some("there is no scan in it".to_owned());
        }
        if self.header.device.kind != "cuda" && self.rows.iter().any(|row| row.counts.is_some()) {
            return Some(format!("a device '{}' has no counters of its own", self.header.device.kind));
        }
        let mut seen = HashSet::new();
        for (index, row) in self.rows.iter().enumerate() {
            let twice = !seen.insert(row.configuration());
            let twice = twice.then(|| "it is the same configuration as an earlier one".to_owned());
            if let Some(reason) = twice.or_else(|| row.contradiction()) {
                return Some(format!("row {}: {reason}", index + 1));
            }
        }
        wrong_percentage(self.rows.iter().map(|row| &row.measured))
    }

    /// The rows, scan by scan.
    pub fn costs(&self) -> Vec<Costs<'_>> {
        let mut scans: Vec<(PointKey, Option<Mode>)> = Vec::new();
        for row in self.rows.iter().filter(|row| row.strategy().is_some()) {
            let scan = (row.measured.point(), row.measured.mode);
            if !scans.contains(&scan) {
                scans.push(scan);
            }
        }
        scans.into_iter().map(|scan| self.costs_of(scan)).collect()
    }

    fn costs_of(&self, (point, mode): (PointKey, Option<Mode>)) -> Costs<'_> {
        // The copy has no mode, and stands beside all.
        let is_of_it =
            |row: &&CostRow| row.measured.point() == point && (row.strategy().is_none() || row.measured.mode == mode);
        let rows: Vec<&CostRow> = self.rows.iter().filter(is_of_it).collect();
        let tile = |row: &CostRow| (row.measured.subject.clone(), row.measured.vt, row.measured.block_threads);
        let name = |row: &CostRow| {
            let name = row.measured.subject_with_choice();
            let alike = rows.iter().filter(|other| tile(other) == tile(row)).count();
            if alike > 1 { format!("{name}, {}", row.choices()) } else { name }
        };
        let mode = mode.map_or(String::new(), |mode| format!(", {mode}"));
        let title = format!("{}{mode}, n = {}", point.scan(), format_size(point.n));
        Costs { title, rows: rows.iter().map(|&row| (name(row), row)).collect() }
    }
}

/// A column of a table of costs. One that has no cell is left out.
#[derive(Debug)]
pub struct Column {
    /// In a document.
    pub name: &'static str,
    /// On a terminal, in two lines.
    pub heads: [&'static str; 2],
    /// On a terminal, with the blank before it.
    pub width: usize,
    /// What stands in it.
    pub cell: fn(&CostRow) -> Option<String>,
}

impl Column {
    /// Whether there is anything in it.
    pub fn is_of(&self, costs: &Costs<'_>) -> bool {
        costs.rows.iter().any(|(_, row)| (self.cell)(row).is_some())
    }
}

/// What tells configurations of a strategy apart.
pub const CONFIGURATION: [Column; 2] = [
    Column { name: "VT", heads: ["", "VT"], width: 3, cell: |row| row.measured.vt.map(|vt| vt.to_string()) },
    Column {
        name: "block",
        heads: ["", "block"],
        width: 6,
        cell: |row| row.measured.block_threads.map(|threads| threads.to_string()),
    },
];

/// What follows from what a strategy does.
pub const BY_DEFINITION: [Column; 3] = [
    Column {
        name: "launches",
        heads: ["", "launches"],
        width: 9,
        cell: |row| row.measured.launches.map(|launches| launches.to_string()),
    },
    Column {
        name: "element-moves",
        heads: ["element-moves", "by definition"],
        width: 31,
        cell: |row| row.strategy().map(|strategy| strategy.row().element_moves.to_owned()),
    },
    Column {
        name: "moves an element, counted",
        heads: ["by n,", "counted"],
        width: 9,
        cell: |row| row.moves_per_element.map(|moves| format!("{moves:.3}")),
    },
];

/// What a GPU is asked for.
pub const MEASURED: [Column; 6] = [
    Column {
        name: "cold, µs",
        heads: ["cold,", "µs"],
        width: 11,
        cell: |row| {
            let cold = row.measured.cold.as_ref()?;
            let doubt = if cold.is_trusted { "" } else { "?" };
            Some(significant(cold.median_ns? / 1e3, 9) + doubt)
        },
    },
    Column {
        name: "% of copy",
        heads: ["% of", "copy"],
        width: 7,
        cell: |row| Some(format!("{:.1}", row.measured.cold.as_ref()?.percent_of_copy?)),
    },
    Column {
        name: "DRAM, B read",
        heads: ["DRAM B", "read"],
        width: 7,
        cell: |row| row.per_element(|counts| counts.dram_bytes_read as f64).map(bytes),
    },
    Column {
        name: "DRAM, B written",
        heads: ["DRAM B", "written"],
        width: 8,
        cell: |row| row.per_element(|counts| counts.dram_bytes_written as f64).map(bytes),
    },
    Column {
        name: "L2, B",
        heads: ["L2 B", "moved"],
        width: 8,
        cell: |row| row.per_element(|counts| counts.l2_sectors() * SECTOR_BYTES as f64).map(bytes),
    },
    Column {
        name: "instructions",
        heads: ["instr.", "× 32"],
        width: 8,
        cell: |row| {
            let lanes = row.per_element(|counts| counts.warp_instructions as f64)? * f64::from(LANES);
            Some(format!("{lanes:.1}"))
        },
    },
];

/// Threads of a warp.
const LANES: u32 = crate::abi::LOOKBACK_WARP_LANES;

fn bytes(bytes: f64) -> String {
    format!("{bytes:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ElementType, Instance, Operator};
    use crate::lab::device::DeviceDescription;
    use crate::lab::measure::point::Subject;
    use crate::lab::verify::Verification;
    use crate::strategy::{Composition, ScanConfig};
    use std::fs;

    fn row(strategy: Strategy, config: ScanConfig) -> CostRow {
        let instance = Instance::new(ElementType::U32, Operator::Sum).unwrap();
        let mut measured = SweepRow::new(&Subject::Scan { strategy, mode: Mode::Inclusive, config }, instance, 4096);
        measured.status = Status::Measured;
        measured.verification = Some(Verification::right(4096));
        measured.launches = Some(1);
        CostRow { moves_per_element: Some(2.0), ..CostRow::new(measured) }
    }

    fn record(rows: Vec<CostRow>) -> CostRecord {
        let device = DeviceDescription { kind: "cuda".to_owned(), name: "a device".to_owned(), facts: Vec::new() };
        let header = Origin {
            format: FORMAT,
            tool_version: "0".to_owned(),
            git_commit: None,
            date: "2026-11-27T00:00:00Z".to_owned(),
            command: "lookback costs".to_owned(),
            device,
        };
        CostRecord { header, seed: 42, rows, skipped: Vec::new(), not_counted: None }
    }

    #[test]
    fn an_account_is_read_as_it_was_written_and_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("costs-a.json");
        let counted =
            CostRow { counts: Some(HardwareCounts::default()), ..row(Strategy::Chained, ScanConfig::default()) };
        let account = record(vec![row(Strategy::Lookback, ScanConfig::default()), counted]);
        account.write(&path).unwrap();
        assert_eq!(CostRecord::read(&path).unwrap(), account);
        assert!(matches!(account.write(&path), Err(RecordError::Io { .. })));
    }

    #[test]
    fn an_account_that_cannot_be_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("costs-a.json");
        let refusal = |change: fn(&mut CostRecord)| {
            let config = ScanConfig::default();
            let mut account = record(vec![row(Strategy::Lookback, config), row(Strategy::Chained, config)]);
            change(&mut account);
            fs::write(&path, serde_json::to_string(&account).unwrap()).unwrap();
            CostRecord::read(&path).err().map(|error| error.to_string())
        };
        assert_eq!(refusal(|_| {}), None);
        let refused = |change, says: &str| {
            let error = refusal(change).expect("it is refused");
            assert!(error.contains(says), "{error}");
        };
        refused(|account| account.header.format += 1, "has format 2");
        refused(|account| account.rows[1] = account.rows[0].clone(), "row 2: it is the same configuration");
        refused(|account| account.rows[0].moves_per_element = Some(-1.0), "moves_per_element");
        refused(|account| account.rows[0].measured.verification = None, "not all of its 4096 elements");
        refused(|account| account.rows[1].measured.status = Status::Wrong, "no scan that is right");
        refused(|account| account.rows[1].measured.subject = "lookforward".to_owned(), "there is no strategy");
        refused(|account| account.rows[1].measured.kind = Kind::Peer, "neither a strategy nor a copy");
        refused(|account| account.rows.clear(), "no scan in it");
        refused(
            |account| {
                account.header.device.kind = "cpu".to_owned();
                account.rows[0].counts = Some(HardwareCounts::default());
            },
            "no counters",
        );
        refused(
            |account| {
                account.rows[1].counts = Some(HardwareCounts { l2_sectors_read: u64::MAX, ..HardwareCounts::default() })
            },
            "counts that cannot be",
        );
        refused(
            |account| {
                account.rows[0].counts = Some(HardwareCounts::default());
                account.rows[0].not_counted = Some(String::new());
            },
            "says why it is not",
        );
        fs::write(&path, "{}").unwrap();
        assert!(matches!(CostRecord::read(&path), Err(RecordError::Damaged { .. })));
    }

    #[test]
    fn rows_of_one_tile_are_told_apart_by_the_choices_inside() {
        let config = ScanConfig { composition: Composition::ScanThenPropagate, ..ScanConfig::default() };
        let other = ScanConfig { composition: Composition::ReduceThenScan, ..config };
        let rows = [(Strategy::Lookback, config), (Strategy::Lookback, other), (Strategy::Chained, config)];
        let account = record(rows.map(|(strategy, config)| row(strategy, config)).to_vec());
        let [costs] = &account.costs()[..] else { panic!("one scan of one size") };
        assert_eq!(costs.title, "u32 sum, inclusive, n = 2^12");
        let names: Vec<&str> = costs.rows.iter().map(|(name, _)| name.as_str()).collect();
        let [first, second] = ["scan-then-propagate", "reduce-then-scan"]
            .map(|composition| format!("lookback, shuffle, {composition}, ticket"));
        assert_eq!(names, [first.as_str(), second.as_str(), "chained"]);
    }
}
