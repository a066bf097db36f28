//! Medians in tables, with marks where one is less than it seems.

use super::family::median;
use super::table::Table;
use crate::lab::measure::record::SweepRow;
use crate::lab::measure::sampling::Figure;
use crate::lab::measure::stopping::Stop;
use crate::text::significant;
use std::fmt::Write;

const TWO_PEAKS: char = '≈';
pub(super) const NOT_TRUSTED: char = '?';

/// The median in microseconds, with a mark where it is less than it seems.
pub(super) fn microseconds(row: &SweepRow, figure: Figure) -> Option<String> {
    let time = significant(median(row, figure)? / 1e3, 12);
    Some(match row.figure(figure)? {
        record if !record.is_trusted => format!("{time}{NOT_TRUSTED}"),
        record if record.stop == Some(Stop::TwoPeaks) => format!("{TWO_PEAKS}{time}"),
        _ => time,
    })
}

/// Says what the marks of a table mean, if it has any.
pub(super) fn explain_marks(mut table: Table) -> Table {
    let has = |mark: char| table.rows.iter().flatten().any(|cell| cell.contains(mark));
    let (has_two_peaks, has_unmet) = (has(TWO_PEAKS), has(NOT_TRUSTED));
    if has_two_peaks {
        let _ = write!(table.caption, " {TWO_PEAKS}: samples have two peaks, and the median lies somewhere between.");
    }
    if has_unmet {
        let _ = write!(table.caption, " {NOT_TRUSTED}: no noise criterion was met.");
    }
    table
}
