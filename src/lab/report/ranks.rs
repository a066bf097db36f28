//! The picture of scans over ranks: their rate by size, a line for each manner and one for a device alone, and dashed what they
//! have by the bytes that they move.

use super::axis::Axis;
use super::chart::{Chart, Point, QUARTILES, Series, Standing};
use super::error::ReportError;
use super::pen::Pen;
use super::svg::Plot;
use crate::lab::ranks::record::{RankRecord, Row};
use crate::lab::statistics::Summary;
use crate::text::format_size;
use std::collections::BTreeSet;

/// A picture for each scan and number of ranks.
pub(super) fn plots(record: &RankRecord) -> Result<Vec<Plot>, ReportError> {
    let timed = record.rows.iter().filter(|row| !row.samples_ns.is_empty() && row.n > 0);
    let kinds: BTreeSet<(String, usize)> = timed.clone().map(|row| (row.scan(), row.ranks)).collect();
    let mut plots = Vec::new();
    for (scan, ranks) in kinds {
        let rows: Vec<&Row> = timed.clone().filter(|row| row.scan() == scan && row.ranks == ranks).collect();
        let name = format!("ranks-{ranks}-{}", scan.replace(" -> ", "-").replace(' ', "-"));
        let chunks: BTreeSet<u64> = rows.iter().filter_map(|row| row.chunk).collect();
        if chunks.len() > 1 {
            plots.push(plot_of_chunks(record, &rows, &format!("{name}-chunks"))?);
        }
        // Of what is dealt in several chunks the smallest.
        let is_shown = |row: &&Row| row.chunk.is_none() || row.chunk == chunks.first().copied();
        let rows: Vec<&Row> = rows.into_iter().filter(is_shown).collect();
        if rows.iter().all(|row| row.n == rows[0].n) && chunks.len() > 1 {
            continue;
        }
        let caption = format!(
            "{}, {}, {}. Timed {}. Dashed: the rate of one device by as many times as the bytes say that are moved; a contiguous \
             shard is read twice.",
            record.header.device.name, record.connection, record.header.date, record.method
        );
        let title = format!("{scan}, {ranks} ranks on {}: {}", record.header.device.name, answer(&rows));
        let chart = chart(&title, &rows);
        plots.push(Plot::drawn(name, title, caption, || chart.drawing())?);
    }
    Ok(plots)
}

/// The rate of what is dealt by the elements of a chunk, at the largest size, beside that of a device alone.
fn plot_of_chunks(record: &RankRecord, rows: &[&Row], name: &str) -> Result<Plot, ReportError> {
    let n = rows.iter().map(|row| row.n).max().unwrap_or(0);
    let mut dealt: Vec<(f64, &Row)> =
        rows.iter().filter(|row| row.n == n).filter_map(|&row| Some((row.chunk? as f64, row))).collect();
    dealt.sort_by(|left, right| left.0.total_cmp(&right.0));
    let at = |&(x, row): &(f64, &Row), samples: &[f64], elements: f64| {
        Some(Point { x, ..point(row, samples, elements, Standing::OnLine)? })
    };
    let series = vec![
        Series {
            label: String::from("cyclic"),
            pen: Pen::of_index(0),
            points: dealt.iter().filter_map(|one| at(one, &one.1.samples_ns, n as f64)).collect(),
        },
        Series {
            label: String::from("one device alone"),
            pen: Pen::of_copy(),
            points: dealt.iter().filter_map(|one| at(one, &one.1.alone_ns, n as f64 / one.1.ranks as f64)).collect(),
        },
    ];
    let ends = [dealt.first(), dealt.last()].into_iter().flatten();
    let ends: Vec<_> =
        ends.map(|(chunk, row)| format!("of {} {:.2}", format_size(*chunk as u64), row.times_one())).collect();
    let (scan, ranks) = rows.first().map_or_else(Default::default, |row| (row.scan(), row.ranks));
    let device = &record.header.device.name;
    let title = format!(
        "{scan} of {} on {ranks} ranks, {device}: in chunks {} times one device's rate",
        format_size(n),
        ends.join(", ")
    );
    let caption = format!(
        "{device}, {}, {}. Timed {}. A rank's rings hold a part of a chunk; what it has more of one it has to wait for.",
        record.connection, record.header.date, record.method
    );
    let chart = chart_of(&title, "elements of a chunk", series);
    Plot::drawn(name.to_owned(), title, caption, || chart.drawing())
}

/// What all devices come to, at the largest size.
fn answer(rows: &[&Row]) -> String {
    let largest = rows.iter().map(|row| row.n).max().unwrap_or(0);
    let of_largest = rows.iter().filter(|row| row.n == largest);
    let times: Vec<_> = of_largest.map(|row| format!("{} {:.2}", row.shared(), row.times_one())).collect();
    format!("{} times one device's rate at {}", times.join(", "), format_size(largest))
}

fn chart(title: &str, rows: &[&Row]) -> Chart {
    let manners: BTreeSet<_> = rows.iter().map(|row| (row.manner, row.chunk)).collect();
    let mut series = Vec::new();
    for (index, &(manner, chunk)) in manners.iter().enumerate() {
        let of_manner = || rows.iter().filter(move |row| (row.manner, row.chunk) == (manner, chunk));
        let pen = Pen::of_index(index);
        series.push(Series {
            label: of_manner().next().map_or_else(String::new, |row| row.shared()),
            pen,
            points: of_manner().filter_map(|row| point(row, &row.samples_ns, row.n as f64, Standing::OnLine)).collect(),
        });
        let by_bytes = |row: &Row| row.n as f64 * row.by_bytes / row.ranks as f64;
        series.push(Series {
            label: format!("{manner} by its bytes"),
            pen: pen.dashed(1),
            points: of_manner()
                .filter_map(|row| point(row, &row.alone_ns, by_bytes(row), Standing::Unmarked))
                .collect(),
        });
    }
    if let Some(&(manner, chunk)) = manners.first() {
        let alone = |row: &&&Row| point(row, &row.alone_ns, row.n as f64 / row.ranks as f64, Standing::OnLine);
        series.push(Series {
            label: String::from("one device alone, a shard"),
            pen: Pen::of_copy(),
            points: rows
                .iter()
                .filter(|row| (row.manner, row.chunk) == (manner, chunk))
                .filter_map(|row| alone(&row))
                .collect(),
        });
    }
    for series in &mut series {
        series.points.sort_by(|left, right| left.x.total_cmp(&right.x));
    }
    chart_of(title, "elements of all ranks", series)
}

/// Rates from 0 on, by powers of two.
fn chart_of(title: &str, x_description: &'static str, series: Vec<Series>) -> Chart {
    let points = || series.iter().flat_map(|series| &series.points);
    Chart {
        title: title.to_owned(),
        x_description,
        y_description: String::from("billion elements a second"),
        unit: "billion elements a second",
        x: Axis::powers(points().map(|point| point.x), 12),
        y: Axis::from_zero(points().map(|point| point.upper)),
        series,
        band: QUARTILES,
        reference: None,
        is_joined: true,
    }
}

/// So many elements in as many nanoseconds as the samples say.
fn point(row: &Row, samples_ns: &[f64], elements: f64, standing: Standing) -> Option<Point> {
    let times = Summary::of(samples_ns)?;
    Some(Point {
        x: row.n as f64,
        y: elements / times.median,
        lower: elements / times.upper_quartile,
        upper: elements / times.lower_quartile,
        standing,
        is_trusted: true,
        what: format!("n = {}", format_size(row.n)),
    })
}
