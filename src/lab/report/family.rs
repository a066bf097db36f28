//! Rows of a sweep's record that compute the same, and their figures.

use super::chart::{Point, Standing};
use crate::element::{ElementType, Operator};
use crate::lab::measure::point::Kind;
use crate::lab::measure::point::Offsets;
use crate::lab::measure::record::{FigureRecord, Status, SweepRecord, SweepRow};
use crate::lab::measure::sampling::Figure;
use crate::strategy::Mode;
use std::collections::{BTreeMap, BTreeSet};

/// A sweep with fewer sizes is about something else than size.
pub(super) const FEWEST_SIZES: usize = 5;

/// Rows that compute the same, with the copies of the same elements.
pub(super) struct Family<'a> {
    pub(super) element: ElementType,
    pub(super) operator: Operator,
    pub(super) mode: Mode,
    pub(super) offsets: Offsets,
    pub(super) rows: Vec<&'a SweepRow>,
}

impl<'a> Family<'a> {
    /// All families of a record, in its order. Bounds are no scans and in none, nor are the problems that are more than a flat
    /// scan of one type.
    pub(super) fn all(record: &'a SweepRecord) -> Vec<Self> {
        let mut families: Vec<Self> = Vec::new();
        let rows: Vec<&SweepRow> =
            record.rows.iter().filter(|row| row.kind != Kind::Bound && row.point().is_plain()).collect();
        for row in &rows {
            let Some(mode) = row.mode else { continue };
            if !families.iter().any(|family| family.computes(row) && family.mode == mode) {
                let SweepRow { element, operator, offsets, .. } = **row;
                families.push(Self { element, operator, mode, offsets, rows: Vec::new() });
            }
        }
        for family in &mut families {
            let belongs = |row: &&SweepRow| family.computes(row) && row.mode.is_none_or(|mode| mode == family.mode);
            family.rows = rows.iter().copied().filter(belongs).collect();
        }
        families
    }

    fn computes(&self, row: &SweepRow) -> bool {
        (self.element, self.operator, self.offsets) == (row.element, row.operator, row.offsets)
    }

    pub(super) fn measured(&self) -> impl Iterator<Item = &'a SweepRow> {
        self.rows.iter().copied().filter(|row| row.status == Status::Measured)
    }

    /// "i32 sum, exclusive", and "i32 sum, exclusive, offsets 1,3" where the arrays begin at no boundary.
    pub(super) fn title(&self) -> String {
        format!("{} {}, {}", self.element, self.operator, self.rest())
    }

    /// What the title says behind type and operator.
    pub(super) fn rest(&self) -> String {
        let offsets = if self.offsets.is_aligned() { String::new() } else { format!(", {}", self.offsets) };
        format!("{}{offsets}", self.mode)
    }

    pub(super) fn slug(&self) -> String {
        let offsets = slug_of(self.offsets);
        format!("{}-{}-{}{offsets}", self.element, self.operator, self.mode).replace(' ', "-")
    }

    pub(super) fn sizes(&self) -> BTreeSet<u64> {
        self.measured().map(|row| row.n).collect()
    }

    /// The measured row of a subject at a size; of several configurations the fastest by the figure.
    pub(super) fn row(&self, subject: &str, n: u64, figure: Figure) -> Option<&'a SweepRow> {
        self.measured()
            .filter(|row| row.subject == subject && row.n == n && median(row, figure).is_some())
            .min_by(|left, right| median(left, figure).partial_cmp(&median(right, figure)).expect("finite"))
    }

    /// The fastest of other people's scans at each n, of any version and variant.
    pub(super) fn best_peer(&self, figure: Figure) -> BTreeMap<u64, &'a SweepRow> {
        let mut best: BTreeMap<u64, &SweepRow> = BTreeMap::new();
        for row in self.measured().filter(|row| row.kind == Kind::Peer) {
            let Some(nanoseconds) = median(row, figure) else { continue };
            if best.get(&row.n).and_then(|best| median(best, figure)).is_none_or(|least| nanoseconds < least) {
                best.insert(row.n, row);
            }
        }
        best
    }

    /// Names of the subjects in their order in the record.
    pub(super) fn subjects(&self) -> Vec<&'a str> {
        subjects_of(self.rows.iter().copied())
    }
}

/// What file names say of offsets.
pub(super) fn slug_of(offsets: Offsets) -> String {
    let Offsets { input, output } = offsets;
    if offsets.is_aligned() { String::new() } else { format!("-offsets-{input}-{output}") }
}

/// The median of a figure, if there is one.
pub(super) fn median(row: &SweepRow, figure: Figure) -> Option<f64> {
    row.figure(figure)?.median_ns.filter(|&median| median > 0.0)
}

/// Names of the subjects of rows, in the order of these.
pub(super) fn subjects_of<'a>(rows: impl Iterator<Item = &'a SweepRow>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.subject.as_str()) {
            names.push(&row.subject);
        }
    }
    names
}

/// Whether a noise criterion was met.
pub(super) fn is_trusted(row: &SweepRow, figure: Figure) -> bool {
    row.figure(figure).is_some_and(|figure| figure.is_trusted)
}

/// Median and quartiles of a figure through `value`, if all of them have one.
pub(super) fn point(
    x: f64,
    what: String,
    row: &SweepRow,
    figure: &FigureRecord,
    value: &impl Fn(&SweepRow, f64) -> Option<f64>,
) -> Option<Point> {
    let of = |nanoseconds: Option<f64>| value(row, nanoseconds.filter(|&nanoseconds| nanoseconds > 0.0)?);
    let y = of(figure.median_ns)?;
    let lower = of(figure.lower_quartile_ns).unwrap_or(y);
    let upper = of(figure.upper_quartile_ns).unwrap_or(y);
    Some(Point { x, y, lower, upper, standing: Standing::OnLine, is_trusted: figure.is_trusted, what })
}
