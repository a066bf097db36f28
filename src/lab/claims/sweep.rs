//! Numbers that follow from the rows of a sweep's record.

use crate::element::ElementType;
use crate::lab::measure::point::{Kind, PointKey, Subject};
use crate::lab::measure::record::{FigureRecord, Status, SweepRecord, SweepRow};
use crate::lab::measure::sampling::Figure;
use crate::lab::workload::ProblemKind;
use crate::names::named;
use crate::strategy::Mode;
use crate::text::{SizeError, parse_array_size};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

named! {
    /// What is computed at each point.
    pub enum Quantity as "quantity" {
        /// The subject's time in microseconds.
        Microseconds = "microseconds",
        /// The subject's time by the other's.
        TimesAsLong = "times-as-long",
        /// The other's time by the subject's.
        TimesAsFast = "times-as-fast",
        /// The same in percent.
        Percent = "percent",
    }
}

named! {
    /// What is said of all points together.
    pub enum Statistic as "statistic" {
        /// The least.
        Least = "least",
        /// The most.
        Most = "most",
        /// The middle one, or the mean of the two in the middle.
        Median = "median",
        /// How many points there are.
        Points = "points",
        /// At how many it is below the limit.
        Below = "below",
        /// At how many it is above the limit.
        Above = "above",
    }
}

/// A number that has to come out of a record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// The record, beside the table.
    pub record: PathBuf,
    /// Whose time it is: a subject, or `peers` or `copies` for the fastest of them at each point; cudaMemcpy is none of the copies.
    #[serde(default = "auto")]
    pub subject: String,
    /// What it stands beside, likewise.
    pub against: Option<String>,
    /// Which time. Of a copy in a graph it is the faster of that and the one on a stream.
    pub figure: Figure,
    /// Whether the time of the empty frame around a cold run is taken off.
    #[serde(default)]
    pub net_of_frame: bool,
    /// What is computed at each point.
    pub quantity: Quantity,
    /// What is said of all points.
    pub statistic: Statistic,
    /// What is counted lies below it, or above.
    #[serde(default = "one")]
    pub limit: f64,
    /// What it must be.
    pub value: f64,
    /// How far from it, for what is not counted: half of the last digit that the text has.
    #[serde(default)]
    pub tolerance: f64,
    /// Types of what is stored; all where none is named.
    #[serde(default)]
    pub types: Vec<ElementType>,
    /// Types of what is loaded; likewise.
    #[serde(default)]
    pub inputs: Vec<ElementType>,
    /// Likewise.
    #[serde(default)]
    pub modes: Vec<Mode>,
    /// Likewise.
    #[serde(default)]
    pub problems: Vec<ProblemKind>,
    /// Elements of a row, column, run or segment, 0 for a scan that has none; likewise.
    #[serde(default)]
    pub segments: Vec<u64>,
    /// The smallest array, as sizes are written: elements, or bytes of what is stored.
    pub from: Option<String>,
    /// The largest, likewise.
    pub up_to: Option<String>,
}

fn auto() -> String {
    String::from("auto")
}

/// A factor that a table leaves out.
pub(super) const fn one() -> f64 {
    1.0
}

impl Claim {
    /// What it says, in words.
    pub(super) fn phrase(&self) -> String {
        let against = self.against.as_deref().map_or(String::new(), |other| format!(" by {other}"));
        let limit = match self.statistic {
            Statistic::Below | Statistic::Above => format!(" {}", self.limit),
            _ => String::new(),
        };
        format!("{}{limit} {} of {}{against}, {}", self.statistic, self.quantity, self.subject, self.figure)
    }

    /// What comes out of a record for it, if it has any such point, and of how many points.
    ///
    /// # Errors
    /// When it asks for what there is not.
    pub(super) fn found(&self, record: &SweepRecord) -> Result<(Option<f64>, usize), String> {
        let values = values(self, record)?;
        Ok((of_all(self.statistic, self.limit, &values), values.len()))
    }
}

/// What is computed at each point that the claim is about.
fn values(claim: &Claim, record: &SweepRecord) -> Result<Vec<f64>, String> {
    if claim.against.is_none() != (claim.quantity == Quantity::Microseconds) {
        return Err(String::from("a time in microseconds stands alone, and all else against something"));
    }
    let (from, up_to) = (size(claim.from.as_deref())?, size(claim.up_to.as_deref())?);
    let is_asked = |row: &&SweepRow| {
        let bytes = row.element.bytes();
        // A bound's result is wrong by design, and its time is what is asked for.
        (row.status == Status::Measured || row.kind == Kind::Bound)
            && is_among(&claim.types, &row.element)
            && is_among(&claim.inputs, &row.input_element.unwrap_or(row.element))
            && is_among(&claim.problems, &row.problem)
            && is_among(&claim.segments, &row.segment_elements.unwrap_or(0))
            && from.as_ref().is_none_or(|size| row.n >= size(bytes))
            && up_to.as_ref().is_none_or(|size| row.n <= size(bytes))
    };
    let asked: Vec<&SweepRow> = record.rows.iter().filter(is_asked).collect();
    // Copies have no mode and stand beside each.
    let others = claim.against.as_deref().map_or_else(BTreeMap::new, |name| fastest(&asked, claim, name));
    let subjects: Vec<(Place, f64)> = if [PEERS, COPIES].contains(&&*claim.subject) {
        fastest(&asked, claim, &claim.subject).into_iter().collect()
    } else {
        let rows = asked.iter().filter(|row| row.subject == claim.subject);
        rows.filter_map(|row| Some(((row.point(), row.mode), time(row, claim)?))).collect()
    };
    let mut values = Vec::new();
    for ((point, mode), time) in subjects {
        if !claim.modes.is_empty() && !mode.is_some_and(|mode| claim.modes.contains(&mode)) {
            continue;
        }
        let other = others.get(&(point, mode)).or_else(|| others.get(&(point, None)));
        values.extend(match (claim.quantity, other) {
            (Quantity::Microseconds, _) => Some(time / 1e3),
            (_, None) => None,
            (Quantity::TimesAsLong, Some(other)) => Some(time / other),
            (Quantity::TimesAsFast, Some(other)) => Some(other / time),
            (Quantity::Percent, Some(other)) => Some(100.0 * other / time),
        });
    }
    Ok(values)
}

/// Stand for the fastest of them at each point.
const PEERS: &str = "peers";
const COPIES: &str = "copies";

/// What is compared with each other.
type Place = (PointKey, Option<Mode>);

/// The least time of those of a name at each point.
fn fastest(rows: &[&SweepRow], claim: &Claim, name: &str) -> BTreeMap<Place, f64> {
    let mut fastest: BTreeMap<Place, f64> = BTreeMap::new();
    let is_of = |row: &SweepRow| match name {
        PEERS => row.kind == Kind::Peer,
        COPIES => row.kind == Kind::Copy && row.subject != Subject::Memcpy.name(),
        _ => row.subject == name,
    };
    for row in rows.iter().filter(|row| is_of(row)) {
        if let Some(time) = time(row, claim) {
            let least = fastest.entry((row.point(), row.mode)).or_insert(time);
            *least = least.min(time);
        }
    }
    fastest
}

fn is_among<T: PartialEq>(asked: &[T], one: &T) -> bool {
    asked.is_empty() || asked.contains(one)
}

/// Elements of a size, by the bytes of one.
type Size = Box<dyn Fn(usize) -> u64>;

fn size(text: Option<&str>) -> Result<Option<Size>, String> {
    let Some(text) = text.map(str::to_owned) else { return Ok(None) };
    // What is a size for one type is one for all.
    parse_array_size(&text, 1).map_err(|error: SizeError| error.to_string())?;
    Ok(Some(Box::new(move |bytes| parse_array_size(&text, bytes).unwrap_or(0))))
}

/// What the events said, with or without the empty frame around a cold run. A copy in a graph is the faster of that and the one on a
/// stream: of large arrays `cudaMemcpy` is slower in a graph.
fn time(row: &SweepRow, claim: &Claim) -> Option<f64> {
    let figure = claim.figure;
    // What is taken off a time behind a foreign kernel is that kernel, which belongs to none of them.
    let has_frame = figure == Figure::Cold && !claim.net_of_frame;
    let frame = |figure: &FigureRecord| figure.empty_frame_ns.filter(|_| has_frame).unwrap_or(0.0);
    let of = |figure: Figure| {
        let figure = row.figure(figure)?;
        Some(figure.median_ns.filter(|&median| median > 0.0)? + frame(figure))
    };
    let of_stream = if row.kind == Kind::Copy && figure == Figure::Graph { of(Figure::Stream) } else { None };
    Some(of(figure)?.min(of_stream.unwrap_or(f64::INFINITY)))
}

/// What is said of all values; nothing of none.
fn of_all(statistic: Statistic, limit: f64, values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = |is_counted: &dyn Fn(f64) -> bool| sorted.iter().filter(|&&value| is_counted(value)).count() as f64;
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    Some(match statistic {
        Statistic::Least => first,
        Statistic::Most => last,
        Statistic::Median => f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]),
        Statistic::Points => sorted.len() as f64,
        Statistic::Below => count(&|value| value < limit),
        Statistic::Above => count(&|value| value > limit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_no_points_is_nothing() {
        for &statistic in Statistic::ALL {
            assert_eq!(of_all(statistic, 1.0, &[]), None);
        }
        let values = [1.5, 0.5, 1.0, 2.0];
        let all = Statistic::ALL.iter().map(|&statistic| of_all(statistic, 1.0, &values).unwrap());
        assert_eq!(all.collect::<Vec<_>>(), [0.5, 2.0, 1.25, 4.0, 1.0, 2.0]);
    }
}
