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

/// What all devices come to, at the largest size.
fn answer(rows: &[&Row]) -> String {
    let largest = rows.iter().map(|row| row.n).max().unwrap_or(0);
    let of_largest = rows.iter().filter(|row| row.n == largest);
    let times: Vec<_> = of_largest.map(|row| format!("{} {:.2}", row.shared(), row.times_one())).collect();
    format!("{} times one device's rate at {}", times.join(", "), format_size(largest))
}

fn chart(title: &str, rows: &[&Row]) -> Chart {
    // Chunks in their order, and dashed what bytes say once a manner.
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
    let points = || series.iter().flat_map(|series| &series.points);
    Chart {
        title: title.to_owned(),
        x_description: "elements of all ranks",
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
