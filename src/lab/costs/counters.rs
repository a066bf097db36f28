//! What NVIDIA's Nsight Compute (`ncu`) counts while kernels run, read from the table that it prints.

use serde::{Deserialize, Serialize};

/// What the hardware counted of one scan: the sum over its launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardwareCounts {
    /// Bytes that the memory handed to the L2 cache.
    pub dram_bytes_read: u64,
    /// Bytes that the L2 cache handed to the memory.
    pub dram_bytes_written: u64,
    /// Sectors of 32 bytes that multiprocessors read from the L2 cache.
    pub l2_sectors_read: u64,
    /// Sectors of 32 bytes that multiprocessors wrote into the L2 cache.
    pub l2_sectors_written: u64,
    /// Instructions, one a warp that executes it.
    pub warp_instructions: u64,
}

impl HardwareCounts {
    /// Sectors that multiprocessors read and wrote.
    pub fn l2_sectors(&self) -> f64 {
        self.l2_sectors_read as f64 + self.l2_sectors_written as f64
    }

    /// All counts.
    pub fn each(mut self) -> [u64; METRICS.len()] {
        METRICS.each_ref().map(|metric| *(metric.place)(&mut self))
    }
}

/// Something that is counted.
struct Metric {
    /// As ncu calls it.
    name: &'static str,
    /// The unit in which it is asked for.
    unit: &'static str,
    /// Where it is kept.
    place: fn(&mut HardwareCounts) -> &mut u64,
}

/// What is asked for. The L2 cache is asked for what the multiprocessors read and write (`srcunit_tex`): where it has two
/// parts, `lts__t_sectors_op_read` has what goes between these, too.
const METRICS: [Metric; 5] = [
    Metric { name: "dram__bytes_read.sum", unit: "byte", place: |counts| &mut counts.dram_bytes_read },
    Metric { name: "dram__bytes_write.sum", unit: "byte", place: |counts| &mut counts.dram_bytes_written },
    Metric {
        name: "lts__t_sectors_srcunit_tex_op_read.sum",
        unit: "sector",
        place: |counts| &mut counts.l2_sectors_read,
    },
    Metric {
        name: "lts__t_sectors_srcunit_tex_op_write.sum",
        unit: "sector",
        place: |counts| &mut counts.l2_sectors_written,
    },
    Metric { name: "smsp__inst_executed.sum", unit: "inst", place: |counts| &mut counts.warp_instructions },
];

/// Bytes of a sector of the L2 cache.
pub const SECTOR_BYTES: u64 = 32;

/// The names of what is counted, as the option `--metrics` takes them.
pub fn metrics() -> String {
    METRICS.each_ref().map(|metric| metric.name).join(",")
}

/// Why nothing is known of what a scan cost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountsError {
    /// The driver keeps its counters from the user.
    #[error(
        "the driver lets this user read no performance counters (ERR_NVGPUCTRPERM): run as root, or load its module with \
         NVreg_RestrictProfilingToAdminUsers=0"
    )]
    NotPermitted,
    /// No table is in what ncu printed; what it complained of instead.
    #[error("ncu printed no table{}", if complaint.is_empty() { String::new() } else { format!(": {complaint}") })]
    NoTable { complaint: String },
    /// The table is cut off or no CSV.
    #[error("ncu's table cannot be read: {reason}")]
    NoCsv { reason: String },
    /// The table lacks what was asked for.
    #[error("ncu's table has no column {metric}; this ncu, or this GPU, does not count it")]
    NoColumn { metric: &'static str },
    /// What is counted is in another unit than was asked for.
    #[error("ncu gives {metric} in '{found}' and not in '{unit}'; take an ncu that knows --print-units base")]
    Unit { metric: &'static str, unit: &'static str, found: String },
    /// What should be a count is none.
    #[error("ncu says '{found}' of {metric}, which is no count; this GPU may not count it")]
    NoCount { metric: &'static str, found: String },
    /// The table is not of one scan.
    #[error("ncu read {found} launches of a scan that has {planned}; they were not all seen, or not they alone")]
    Launches { found: u64, planned: u64 },
}

/// Reads what ncu printed for `--csv --page raw --print-units base` of a scan of so many launches, and adds them up. Around
/// the table stand what ncu says of itself (`==PROF==`) and what the program printed.
///
/// # Errors
/// When there is no such table, or it is not of so many launches.
pub fn read_counts(printed: &str, launches: u64) -> Result<HardwareCounts, CountsError> {
    if printed.contains("ERR_NVGPUCTRPERM") {
        return Err(CountsError::NotPermitted);
    }
    let lines = printed.lines().skip_while(|line| !line.starts_with("\"ID\""));
    let lines: Vec<&str> =
        lines.take_while(|line| line.starts_with(['"', '='])).filter(|line| line.starts_with('"')).collect();
    if lines.is_empty() {
        return Err(CountsError::NoTable { complaint: complaint(printed) });
    }
    let table = lines.join("\n");
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let no_csv = |error: csv::Error| CountsError::NoCsv { reason: error.to_string() };
    let head = reader.headers().map_err(no_csv)?.clone();
    let column =
        |metric: &'static str| head.iter().position(|name| name == metric).ok_or(CountsError::NoColumn { metric });
    let columns = METRICS.iter().map(|metric| column(metric.name)).collect::<Result<Vec<_>, _>>()?;
    let (mut counts, mut found) = (HardwareCounts::default(), 0);
    for row in reader.records() {
        let row = row.map_err(no_csv)?;
        // The first row says units: it is of no launch.
        let is_launch = !row[0].is_empty();
        found += u64::from(is_launch);
        for (Metric { name, unit, place }, &column) in METRICS.iter().zip(&columns) {
            let cell = &row[column];
            if is_launch {
                let count = count(cell).ok_or_else(|| CountsError::NoCount { metric: name, found: cell.to_owned() })?;
                let sum = place(&mut counts);
                *sum = sum.saturating_add(count);
            } else if cell != *unit {
                return Err(CountsError::Unit { metric: name, unit, found: cell.to_owned() });
            }
        }
    }
    if found != launches {
        return Err(CountsError::Launches { found, planned: launches });
    }
    Ok(counts)
}

/// A count as ncu writes it, thousands apart.
fn count(cell: &str) -> Option<u64> {
    let plain = cell.replace(',', "");
    let value: f64 = plain.parse().ok()?;
    // Of several passes ncu may give fractions; above 2^53 neither it nor anybody else knows them.
    (value.is_finite() && (0.0..9e15).contains(&value)).then(|| value.round() as u64)
}

/// What ncu says was wrong, in one line.
fn complaint(printed: &str) -> String {
    let complaints = printed.lines().filter_map(|line| line.trim().strip_prefix("==ERROR=="));
    complaints.map(str::trim).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ncu prints it, what a program prints in front of it, of a scan of three launches.
    const PRINTED: &str = r#"==PROF== Connected to process 4711 (/usr/local/bin/lookback)
==PROF== Profiling "lookback_entry" - 0: 0%....50%....100% - 2 passes
strategy,element,operator,mode
reduce-then-scan,u32,sum,inclusive
==PROF== Profiling "lookback_entry" - 1: 0%....50%....100% - 2 passes
==PROF== Profiling "lookback_entry" - 2: 0%....50%....100% - 2 passes
==PROF== Disconnected from process 4711
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","dram__bytes_write.sum","lts__t_sectors_srcunit_tex_op_read.sum","lts__t_sectors_srcunit_tex_op_write.sum","smsp__inst_executed.sum"
"","","","","","","","","","","","byte","byte","sector","sector","inst"
"0","4711","lookback","127.0.0.1","lookback_entry","1","13","(256, 1, 1)","(4096, 1, 1)","0","9.0","67,108,864","1,024","2,097,152","512","1,000,000"
"1","4711","lookback","127.0.0.1","lookback_entry","1","13","(256, 1, 1)","(1, 1, 1)","0","9.0","16384","32","512","512","2000.4"
"2","4711","lookback","127.0.0.1","lookback_entry","1","13","(256, 1, 1)","(4096, 1, 1)","0","9.0","67,108,864","67,000,000","2,097,664","2,097,152","3,000,000"
"#;

    #[test]
    fn launches_are_added_up_whatever_is_printed_around_their_table() {
        let sum = HardwareCounts {
            dram_bytes_read: 67_108_864 + 16_384 + 67_108_864,
            dram_bytes_written: 1024 + 32 + 67_000_000,
            l2_sectors_read: 2_097_152 + 512 + 2_097_664,
            l2_sectors_written: 512 + 512 + 2_097_152,
            warp_instructions: 4_002_000,
        };
        assert_eq!(read_counts(PRINTED, 3), Ok(sum));
        let with_more_behind = format!("{PRINTED}==WARNING== a word at the end\nthe program's own\n\"quoted\"\n");
        assert_eq!(read_counts(&with_more_behind, 3), Ok(sum));
        assert_eq!(read_counts(&PRINTED.replace('\n', "\r\n"), 3), Ok(sum));
    }

    #[test]
    fn columns_may_stand_in_any_order_and_without_their_units() {
        let names: Vec<String> = metrics().rsplit(',').map(|name| format!("\"{name}\"")).collect();
        let printed = format!("\"ID\",{}\n\"0\",\"5\",\"4\",\"3\",\"2\",\"1\"\n", names.join(","));
        let counts = read_counts(&printed, 1).unwrap();
        assert_eq!((counts.dram_bytes_read, counts.l2_sectors_read, counts.warp_instructions), (1, 3, 5));
    }

    #[test]
    fn a_table_of_other_launches_than_the_scan_has_is_an_error() {
        for (planned, lines) in [(4, 0), (2, 0), (3, 1)] {
            let kept = PRINTED.lines().count() - lines;
            let printed: String = PRINTED.lines().take(kept).map(|line| format!("{line}\n")).collect();
            let error = read_counts(&printed, planned).unwrap_err();
            assert_eq!(error, CountsError::Launches { found: 3 - lines as u64, planned });
            assert!(error.to_string().contains(&format!("a scan that has {planned}")), "{error}");
        }
    }

    #[test]
    fn counters_that_may_not_be_read_are_said_to_be_so() {
        let printed = "==PROF== Connected to process 4711 (/usr/local/bin/lookback)\n\
                       ==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance \
                       Counters on the target device 0.\n==PROF== Disconnected from process 4711\n";
        assert_eq!(read_counts(printed, 1), Err(CountsError::NotPermitted));
        assert!(CountsError::NotPermitted.to_string().contains("run as root"));
    }

    #[test]
    fn what_is_no_table_says_what_ncu_complained_of() {
        let complaint = "The application returned an error code (3).".to_owned();
        let printed = format!("error: no device\n==ERROR== {complaint}\n");
        assert_eq!(read_counts(&printed, 1), Err(CountsError::NoTable { complaint }));
        for printed in ["", "\n\n", "ID,a\n1,2\n"] {
            assert_eq!(read_counts(printed, 1), Err(CountsError::NoTable { complaint: String::new() }));
        }
    }

    #[test]
    fn a_table_that_says_something_else_is_refused() {
        let refused = |from: &str, to: &str| read_counts(&PRINTED.replace(from, to), 3).unwrap_err();
        let metric = "dram__bytes_read.sum";
        assert_eq!(refused(metric, "dram__bytes.sum"), CountsError::NoColumn { metric });
        let unit = refused("\"byte\",\"byte\"", "\"Mbyte\",\"byte\"");
        assert_eq!(unit, CountsError::Unit { metric, unit: "byte", found: "Mbyte".to_owned() });
        for cell in ["n/a", "nan", "inf", "-1", "1e300", ""] {
            let no_count = refused("\"16384\"", &format!("\"{cell}\""));
            assert_eq!(no_count, CountsError::NoCount { metric, found: cell.to_owned() });
        }
        assert!(matches!(refused("\"16384\",", ""), CountsError::NoCsv { .. }));
    }
}
