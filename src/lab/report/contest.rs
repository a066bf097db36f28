//! The two pictures that answer whether a scan is fast: beside cudaMemcpy, and beside the best CUB. Linear, over the
//! bytes of the array, by what the events said of a cold run; titles say what came out, whatever it is.

use super::axis::Axis;
use super::chart::{Chart, Point, QUARTILES, Series, Standing, places};
use super::family::{Family, is_trusted, median, point};
use super::pen::Pen;
use crate::lab::measure::record::{Status, SweepRecord, SweepRow};
use crate::lab::measure::sampling::Figure;
use crate::strategy::{Strategy, StrategyChoice};
use crate::text::format_array_size;
use std::collections::{BTreeMap, BTreeSet};

/// Percent of cudaMemcpy's rate.
pub(super) const COPY: &str = "copy";
/// Time by that of the best CUB.
pub(super) const RELATIVE: &str = "relative";

/// The subjects, first the one that titles speak of. More lines would hide each other.
const SUBJECTS: [StrategyChoice; 3] =
    [StrategyChoice::Auto, StrategyChoice::Named(Strategy::Lookback), StrategyChoice::Named(Strategy::ReduceThenScan)];
const BEST_CUB: &str = "best CUB";
const MEMCPY: &str = "memcpy";

/// A picture to draw.
pub(super) struct Contest {
    pub(super) kind: &'static str,
    pub(super) caption: String,
    pub(super) chart: Chart,
}

/// How long cudaMemcpy took for an array.
pub(super) struct Copy {
    bytes: u64,
    nanoseconds: f64,
    is_trusted: bool,
}

/// Bytes that a copy is rounded up to: cudaMemcpy is slower where it cannot move whole vectors.
const VECTOR: u64 = 16;
/// Beyond so many times the L2 cache no figure finds the arrays there.
const CACHES: u64 = 4;

/// Every time of cudaMemcpy between aligned arrays in a record that a scan's cold time can be held against: the cold
/// ones, and where the cache holds nothing of the arrays those on a stream and in a graph.
pub(super) fn copies(record: &SweepRecord) -> Vec<Copy> {
    let is_copy = |row: &&SweepRow| {
        row.subject == MEMCPY && row.offsets.is_aligned() && row.status == Status::Measured && row.point().is_plain()
    };
    let cache = record.header.machine.l2_bytes;
    let mut copies = Vec::new();
    for row in record.rows.iter().filter(is_copy) {
        let is_uncached = row.bytes >= CACHES * cache;
        for figure in [Figure::Cold, Figure::Stream, Figure::Graph] {
            if let Some(nanoseconds) = median(row, figure).filter(|_| figure == Figure::Cold || is_uncached) {
                let nanoseconds = nanoseconds + frame(row, figure);
                copies.push(Copy { bytes: row.bytes / 2, nanoseconds, is_trusted: is_trusted(row, figure) });
            }
        }
    }
    copies
}

/// What was taken off a figure for the empty frame around it.
fn frame(row: &SweepRow, figure: Figure) -> f64 {
    row.figure(figure).and_then(|figure| figure.empty_frame_ns).unwrap_or(0.0)
}

/// The least time in which cudaMemcpy moved an array of so many bytes, rounded up, or a larger one, if one of this size was
/// measured.
fn fastest_copy(copies: &[Copy], bytes: u64) -> Option<&Copy> {
    let rounded = bytes.next_multiple_of(VECTOR);
    copies.iter().find(|copy| copy.bytes == rounded)?;
    let as_large = copies.iter().filter(|copy| copy.bytes >= rounded);
    as_large.min_by(|left, right| left.nanoseconds.total_cmp(&right.nanoseconds))
}

const fn array_bytes(row: &SweepRow) -> u64 {
    row.bytes / 2
}

/// Both pictures of a family, as far as there is what they compare with.
pub(super) fn contests(family: &Family<'_>, copies: &[Copy], gpu: &str) -> Vec<Contest> {
    let best = family.best_peer(Figure::Cold);
    let whose = format!("{} {} scans, {}, cold L2, {gpu}", family.element, family.operator, family.rest());
    let framed = |row: &SweepRow, nanoseconds: f64| nanoseconds + frame(row, Figure::Cold);
    let mut contests = Vec::new();

    let percent = |row: &SweepRow, nanoseconds: f64| {
        Some(100.0 * fastest_copy(copies, array_bytes(row))?.nanoseconds / framed(row, nanoseconds))
    };
    let mut series = lines(family, Some(&best), percent);
    for point in series.iter_mut().flat_map(|series| &mut series.points) {
        point.is_trusted &= fastest_copy(copies, point.x as u64).is_some_and(|copy| copy.is_trusted);
    }
    if let Some(answer) = copy_answer(family, &series) {
        let caption = "With the time that the events themselves take left in, on both sides. cudaMemcpy's time is \
                       the least that it took, between aligned arrays, for as many bytes (rounded up to 16) or more; for \
                       arrays that the L2 cannot hold also on a stream and in a graph. Best CUB: at each size the fastest \
                       of all versions and variants in the record, Thrust's calls of it too.";
        let y_description = "percent of cudaMemcpy's rate";
        let chart = chart(format!("{whose}: {answer}"), y_description, "% of cudaMemcpy's rate", series, 100.0);
        contests.push(Contest { kind: COPY, caption: caption.to_owned(), chart });
    }

    let best_ns = |bytes: u64| {
        let row = best.values().find(|row| array_bytes(row) == bytes)?;
        Some((framed(row, median(row, Figure::Cold)?), is_trusted(row, Figure::Cold)))
    };
    let ratio = |row: &SweepRow, nanoseconds: f64| Some(framed(row, nanoseconds) / best_ns(array_bytes(row))?.0);
    let mut series = lines(family, None, ratio);
    for point in series.iter_mut().flat_map(|series| &mut series.points) {
        point.is_trusted &= best_ns(point.x as u64).is_some_and(|(_, is_trusted)| is_trusted);
    }
    if let Some(answer) = relative_answer(family, &series) {
        let caption = "With the time that the events themselves take left in, on both sides. Time of the subject \
                       by that of the fastest CUB at each size, of all versions and variants of the same scan in the \
                       record, Thrust's calls of it too: below 1 the subject is faster, above 1 CUB is.";
        let y_description = "time, best CUB = 1 (less is faster)";
        let chart = chart(format!("{whose}: {answer}"), y_description, "times as long as the best CUB", series, 1.0);
        contests.push(Contest { kind: RELATIVE, caption: caption.to_owned(), chart });
    }
    contests
}

/// The lines of the subjects, and of the best CUB if it is given.
fn lines(
    family: &Family<'_>,
    best_cub: Option<&BTreeMap<u64, &SweepRow>>,
    value: impl Fn(&SweepRow, f64) -> Option<f64>,
) -> Vec<Series> {
    let point = |row: &SweepRow| {
        let what = format!("{}, {}", row.subject_with_choice(), size(family, row.n));
        point(array_bytes(row) as f64, what, row, row.cold.as_ref()?, &value)
    };
    let mut series = Vec::new();
    for (index, choice) in SUBJECTS.into_iter().enumerate() {
        let rows = family.sizes().into_iter().filter_map(|n| family.row(choice.name(), n, Figure::Cold));
        let pen = Pen::of_choice(choice, 0).dashed(index);
        series.push(Series { label: choice.name().to_owned(), pen, points: rows.filter_map(&point).collect() });
    }
    if let Some(best) = best_cub {
        let pen = Pen::of_best_peer().dashed(SUBJECTS.len());
        let points = best.values().filter_map(|row| point(row)).collect();
        series.push(Series { label: BEST_CUB.to_owned(), pen, points });
    }
    series.retain(|series| !series.points.is_empty());
    let bytes: BTreeSet<u64> = series.iter().flat_map(|series| &series.points).map(|point| point.x as u64).collect();
    let (on_line, marked) = on_line(&bytes);
    for point in series.iter_mut().flat_map(|series| &mut series.points) {
        let bytes = point.x as u64;
        point.standing = match (on_line.contains(&bytes), marked.contains(&bytes)) {
            (true, true) => Standing::OnLine,
            (true, false) => Standing::Unmarked,
            (false, _) => Standing::Beside,
        };
    }
    series
}

/// With more sizes, markers would touch.
const MOST_MARKED: usize = 30;

/// The sizes that lines go through, and those of them that have markers. Sizes that all but coincide, such as 2^16 and
/// 2^16+1, would make a vertical stroke: powers of two are preferred, then the smaller.
fn on_line(sizes: &BTreeSet<u64>) -> (BTreeSet<u64>, BTreeSet<u64>) {
    const NEAREST: f64 = 1.09;
    let (powers, others): (BTreeSet<u64>, BTreeSet<u64>) = sizes.iter().partition(|size| size.is_power_of_two());
    let mut on_line = powers.clone();
    for size in others {
        let is_near = |other: u64| size.max(other) as f64 <= NEAREST * size.min(other) as f64;
        let below = on_line.range(..size).next_back().copied();
        let above = on_line.range(size..).next().copied();
        if ![below, above].into_iter().flatten().any(is_near) {
            on_line.insert(size);
        }
    }
    let marked = if on_line.len() > MOST_MARKED && powers.len() > 1 { powers } else { on_line.clone() };
    (on_line, marked)
}

fn chart(title: String, y_description: &str, unit: &'static str, series: Vec<Series>, reference: f64) -> Chart {
    let points = || series.iter().flat_map(|series: &Series| &series.points);
    let ends = points().flat_map(|point: &Point| [point.y, point.lower, point.upper]);
    Chart {
        title,
        x_description: "bytes of the array",
        y_description: y_description.to_owned(),
        unit,
        x: Axis::bytes(points().map(|point| point.x)),
        y: Axis::from_zero(ends.chain([1.15 * reference])),
        series,
        band: QUARTILES,
        reference: Some(reference),
        is_joined: true,
    }
}

pub(super) fn size(family: &Family<'_>, n: u64) -> String {
    format_array_size(n, family.element.bytes())
}

/// The same of the bytes that a point stands at.
fn size_at(family: &Family<'_>, point: &Point) -> String {
    size(family, point.x as u64 / family.element.bytes() as u64)
}

/// What the line of the first subject comes to at the end, from which size on, and what CUB does there.
fn copy_answer(family: &Family<'_>, series: &[Series]) -> Option<String> {
    let subject = series.first().filter(|series| series.label != BEST_CUB)?;
    if places(series) < 2 {
        return None;
    }
    let least = |series: &Series, from: f64| {
        let points = series.points.iter().filter(|point| point.x >= from);
        let least = points.map(|point| point.y).reduce(f64::min)?;
        Some(least.floor())
    };
    // What holds in the last octave, and then how far down it does.
    let reached = least(subject, subject.points.last()?.x / 2.0)?;
    let holds = subject.points.iter().rev().take_while(|point| point.y >= reached);
    // Sizes beside the line are odd ones next to a round one, which says it better.
    let first = holds.filter(|point| point.is_on_line()).last()?;
    let from = if first.x > subject.points.first()?.x {
        format!("from {} on", size_at(family, first))
    } else {
        "at every size".to_owned()
    };
    let label = &subject.label;
    let mut answer = format!("{label} reaches at least {reached} % of cudaMemcpy's rate {from}");
    let cub = series.iter().find(|series| series.label == BEST_CUB);
    if let Some(cub) = cub.and_then(|cub| least(cub, first.x)) {
        answer.push_str(&format!(", the {BEST_CUB} {cub} %"));
    }
    Some(answer)
}

/// Between which times and the best CUB's the first subject's line lies.
fn relative_answer(family: &Family<'_>, series: &[Series]) -> Option<String> {
    ratio_answer(series, |point| size_at(family, point), ["takes", "as long as", "longer"], |ratio| ratio > 1.0)
}

/// Between which ratios to the best CUB the first subject's line lies, at which sizes, and at how many it is worse.
pub(super) fn ratio_answer(
    series: &[Series],
    size_at: impl Fn(&Point) -> String,
    [verb, as_what, worse]: [&str; 3],
    is_worse: impl Fn(f64) -> bool,
) -> Option<String> {
    let Series { label, points, .. } = series.first().filter(|_| places(series) >= 2)?;
    let least = points.iter().min_by(|left, right| left.y.total_cmp(&right.y))?;
    let most = points.iter().max_by(|left, right| left.y.total_cmp(&right.y))?;
    let count = match points.iter().filter(|point| is_worse(point.y)).count() {
        0 => "none".to_owned(),
        count => count.to_string(),
    };
    Some(format!(
        "{label} {verb} {:.2} ({}) to {:.2} times ({}) {as_what} the {BEST_CUB}, {worse} at {count} of {} sizes",
        least.y,
        size_at(least),
        most.y,
        size_at(most),
        points.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_through_every_size_but_those_that_all_but_coincide() {
        let quarters: BTreeSet<u64> = (12..32).flat_map(|power| (4..8).map(move |part| part << (power - 2))).collect();
        let (line, marked) = on_line(&quarters);
        assert_eq!(line, quarters);
        assert!(marked.len() == 20 && marked.iter().all(|size| size.is_power_of_two()));
        let near = BTreeSet::from([1000, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 100_000, 100_001]);
        let (line, marked) = on_line(&near);
        assert_eq!(line, BTreeSet::from([1000, 1 << 16, 100_000]));
        assert_eq!(marked, line);
    }

    #[test]
    fn the_copy_that_counts_is_the_fastest_of_as_many_bytes_or_more() {
        let copy = |bytes, nanoseconds| Copy { bytes, nanoseconds, is_trusted: true };
        let copies = [copy(4096, 100.0), copy(4097, 180.0), copy(4112, 110.0), copy(8192, 105.0), copy(65536, 500.0)];
        let fastest = |bytes| fastest_copy(&copies, bytes).map(|copy| copy.nanoseconds);
        assert_eq!(fastest(4096), Some(100.0));
        // Its own copy is slow, that of the rounded bytes is less so, and one of more bytes was faster still.
        assert_eq!(fastest(4097), Some(105.0));
        assert_eq!(fastest(4100), Some(105.0), "only its bytes rounded up were measured");
        assert_eq!(fastest(65536), Some(500.0));
        assert_eq!(fastest(10_000), None, "a copy of a far larger array would flatter");
        assert_eq!(fastest(1 << 20), None);
    }
}
