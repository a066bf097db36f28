//! The table on stdout: 80 columns, a line a configuration, as it finishes.

use crate::lab::record::{Row, Verdict};
use crate::strategy::{Composition, Pattern, ScanConfig, Strategy};
use crate::text::{fitted, format_size, significant, wrapped};
use std::fmt::Write;

/// Turns rows into lines, with a heading wherever another scan begins.
#[derive(Debug, Default)]
pub struct Table {
    /// Whether scan pattern and composition are columns; strategy, size, VT and threads then stand in the heading.
    has_patterns: bool,
    heading: Option<String>,
    choices: String,
}

impl Table {
    /// An empty table; `has_patterns` says whether several scan patterns or compositions run.
    pub fn new(has_patterns: bool) -> Self {
        Self { has_patterns, ..Self::default() }
    }

    /// The lines of `row`, each ended.
    pub fn lines(&mut self, row: &Row, timed: bool) -> String {
        let mut lines = String::new();
        let number = |value: Option<u32>| value.map_or("-".to_owned(), |value| value.to_string());
        let mut heading = row.scan_and_offsets();
        if self.has_patterns {
            let _ = write!(heading, ": {}, n = {}", row.strategy_with_choice(), format_size(row.n));
            heading += &row.vt.map_or(String::new(), |vt| format!(", VT {vt}"));
            heading += &row.block_threads.map_or(String::new(), |threads| format!(", {threads} threads a block"));
        }
        // A strategy without tiles has no choices, so it stands under the heading that is there.
        let ran = row.strategy_that_ran();
        let choices =
            if ran.is_some_and(Strategy::has_tiles) { choices(row, self.has_patterns) } else { self.choices.clone() };
        if self.heading.as_ref() != Some(&heading) || self.choices != choices {
            if self.heading.is_some() {
                lines.push('\n');
            }
            let _ = writeln!(lines, "{}", fitted(&format!("{heading}{choices}"), 80));
            let start = if self.has_patterns { PATTERN_COLUMNS } else { NAME_COLUMNS };
            let _ = writeln!(lines, "{start}{}", if timed { GPU_COLUMNS } else { CPU_COLUMNS });
            self.heading = Some(heading);
            self.choices = choices;
        }
        let start = if self.has_patterns {
            let name = |name: Option<&'static str>| name.unwrap_or("-");
            let (pattern, composition) = (row.pattern.map(Pattern::name), row.composition.map(Composition::name));
            format!("{:<13} {:<19}", name(pattern), name(composition))
        } else {
            let name = name_and_size(&row.strategy_with_choice(), &format_size(row.n));
            format!("{name} {:>2} {:>5}", number(row.vt), number(row.block_threads))
        };
        let verdict = match row.verdict() {
            Verdict::Failed => "FAILED",
            Verdict::Right => "ok",
            Verdict::Wrong => "WRONG",
            Verdict::Undecidable => "open",
        };
        let line = if timed {
            let time = row.time_us.map_or("-".to_owned(), |time| significant(time, 9));
            let rate = row.gigabytes_per_second.map_or("-".to_owned(), |rate| significant(rate, 8));
            format!("{start} {:>8} {time:>10} {rate:>8}  {verdict}", row.launches)
        } else {
            let short = |value: Option<f64>| value.map_or("-".to_owned(), |value| significant(value, 7));
            let span = row.span.map_or("-".to_owned(), |span| span.to_string());
            format!(
                "{start} {:>7} {:>7} {:>7} {:>8}  {verdict}",
                short(row.element_moves_per_element),
                short(row.work_per_element),
                if row.is_single_pass() { short(row.lookback_distance_tiles) } else { "-".to_owned() },
                span,
            )
        };
        let _ = writeln!(lines, "{}", line.trim_end());
        if let Some(failure) = &row.failure {
            for line in failure.lines() {
                let _ = writeln!(lines, "{}", fitted(&format!("  {line}"), 80));
            }
        } else if let Some(complaint) = row.complaint() {
            for line in wrapped(&complaint, 78) {
                let _ = writeln!(lines, "  {line}");
            }
        }
        lines
    }
}

/// Columns of the strategy's name and of the size, with the space between.
const NAME_AND_SIZE_COLUMNS: usize = 30;
const NAME_COLUMNS: &str = "strategy                     n VT block";
const PATTERN_COLUMNS: &str = "pattern       composition        ";
const CPU_COLUMNS: &str = " moves/n  work/n  behind     span  result";
const GPU_COLUMNS: &str = " launches         µs     GB/s  result";

/// What the columns mean; printed once, below the table.
pub const CPU_LEGEND: &str = "\
moves/n  reads and writes of the array's elements, per element
work/n   operator applications per element; span: the longest chain of them
behind   tiles a tile looked back over, on average
These are counts. How long the CPU device takes says nothing about a GPU.
";

/// The name on the left, the size on the right. A long name, such as what `auto` came to, takes columns that the size
/// leaves free; if these are too few, it has a line of its own.
fn name_and_size(name: &str, size: &str) -> String {
    let free = NAME_AND_SIZE_COLUMNS.saturating_sub(name.len());
    if size.len() < free { format!("{name}{size:>free$}") } else { format!("{name}\n{size:>NAME_AND_SIZE_COLUMNS$}") }
}

/// The choices inside the kernels that are not the defaults; those that are columns are left out.
fn choices(row: &Row, has_patterns: bool) -> String {
    let default = ScanConfig::default();
    let mut choices = String::new();
    if let (Some(pattern), Some(composition)) = (row.pattern, row.composition)
        && !has_patterns
        && (pattern != default.pattern || composition != default.composition)
    {
        let _ = write!(choices, ", {pattern} in {composition}");
    }
    if let Some(descriptor) = row.descriptor {
        let _ = write!(choices, ", {descriptor}");
    }
    if row.tile_order.is_some_and(|order| order != default.tile_order) {
        choices.push_str(", static tiles");
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::record::tests::{failed_row_of, outcome, request, row_of};
    use crate::strategy::StrategyChoice;

    #[test]
    fn patterns_and_compositions_are_columns_of_one_table() {
        for timed in [false, true] {
            let mut table = Table::new(true);
            let mut text = String::new();
            for &pattern in Pattern::ALL {
                for &composition in Composition::ALL {
                    let mut request = request(Strategy::ReduceThenScan, (1 << 32) + 17, 64);
                    request.config = ScanConfig { pattern, composition, ..request.config };
                    text += &table.lines(&row_of(&request, &outcome(7, timed)), timed);
                }
            }
            assert_eq!(text.lines().count(), 2 + Pattern::ALL.len() * Composition::ALL.len(), "{text}");
            assert_eq!(
                text.lines().next(),
                Some("u32 sum, inclusive: reduce-then-scan, n = 4294967313, VT 64, 256 threads a block")
            );
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            let heads = text.lines().nth(1).unwrap();
            let columns = heads.trim_end_matches("result").chars().count() + "ok".len();
            let is_below = |line: &str| line.ends_with("  ok") && line.chars().count() == columns;
            assert!(text.lines().skip(2).all(is_below), "{text}");
        }
    }

    #[test]
    fn long_failures_are_wrapped() {
        let failed = failed_row_of(&request(Strategy::Lookback, 10, 1), "word ".repeat(60));
        let text = Table::default().lines(&failed, false);
        assert!(text.lines().count() > 5 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_widest_row_fits_80_columns() {
        for timed in [false, true] {
            let mut row = row_of(&request(Strategy::ScanThenPropagate, (1 << 32) + 17, 64), &outcome(7, timed));
            row.block_threads = Some(1024);
            row.element_moves_per_element = Some(123_456_789.123);
            row.work_per_element = Some(123_456_789.123);
            row.time_us = Some(12_345_678_901.0);
            row.gigabytes_per_second = Some(12_345.678);
            row.span = Some(10_000_000);
            row.failure = Some("short".to_owned());
            for line in Table::default().lines(&row, timed).lines().skip(1) {
                assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
            }
            for &strategy in Strategy::ALL {
                for n in [1, 1000, 20_000, 1 << 20, (1 << 32) + 17] {
                    let auto =
                        Row { chosen_strategy: Some(strategy), strategy: StrategyChoice::Auto, n, ..row.clone() };
                    let text = Table::default().lines(&auto, timed);
                    let name = format!("auto: {strategy}");
                    let is_whole = |line: &str| {
                        line.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
                    };
                    assert!(text.lines().any(is_whole), "{name} is not in {text}");
                    for line in text.lines().skip(1) {
                        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
                    }
                    // The size stands where it stands in every row.
                    let size = format_size(n);
                    let ends = |line: &str| {
                        line.get(..NAME_AND_SIZE_COLUMNS).is_some_and(|start| start.ends_with(&format!(" {size}")))
                    };
                    assert!(text.lines().any(ends), "{size} is not in its column of {text}");
                }
            }
        }
        for line in CPU_LEGEND.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn headings_stand_where_what_is_computed_changes() {
        let mut table = Table::default();
        let row = row_of(&request(Strategy::Lookback, 10, 1), &outcome(10, false));
        assert_eq!(table.lines(&row, false).lines().count(), 3);
        assert_eq!(table.lines(&row, false).lines().count(), 1);
        let in_place = Row { in_place: true, ..row };
        assert_eq!(table.lines(&in_place, false).lines().count(), 4);
    }
}
