//! What scans do to a table: rows are selected and put into groups, each group has its best row and its number of rows, and a column is
//! sorted with the rows that it stands in. The table is the record that the tuning table was made from: how long candidate
//! tiles took. Over slices on the CPU device, each step compared with the loop that it stands for; the picture goes into the folder,
//! if one is named:
//!
//!     cargo run --release --example table -- FOLDER [RECORD.jsonl.gz]
//!
//! On a GPU the same definitions run by `Scanner::run` over cudarc's slices: the calls have the same names.

mod check;
mod picture;

use check::{Outcome, checked};
use flate2::read::GzDecoder;
use lookback::element::{Definition, ElementType, Operator};
use lookback::lab::host_scanner::HostScanner;
use lookback::run::AnyScanner;
use picture::{Drawing, arguments, keep};
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The columns of a record of `lookback tune`, of one element each for each candidate that was measured.
#[derive(Default)]
struct Table {
    /// What was scanned: the type, the size and the mode, by the number of its name.
    scan: Vec<u32>,
    scans: Vec<String>,
    candidate: Vec<String>,
    /// Whether it is from the first pass, over all candidates, and not from the second one, over the best.
    is_first_pass: Vec<u8>,
    /// The median of replays of a graph in nanoseconds, or NaN where there is none.
    time: Vec<f64>,
}

impl Table {
    fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let shown = path.display();
        let file = File::open(path).map_err(|error| format!("{shown}: {error}"))?;
        let (mut table, mut numbers) = (Self::default(), BTreeMap::new());
        for (line, text) in BufReader::new(GzDecoder::new(file)).lines().enumerate() {
            let text = text.map_err(|error| format!("{shown}: {error}: is it a record, `.jsonl.gz`?"))?;
            let json: Value =
                serde_json::from_str(&text).map_err(|error| format!("{shown}, line {}: {error}", line + 1))?;
            let row = &json["row"];
            if row["kind"] != "strategy" {
                continue;
            }
            let missing = |name: &str| format!("{shown}, line {}: no '{name}', so it is no record of tuning", line + 1);
            let text = |name: &str| row[name].as_str().ok_or_else(|| missing(name));
            let n = row["n"].as_u64().ok_or_else(|| missing("n"))?;
            let scan = format!("{n} elements of {}, {}", text("element")?, text("mode")?);
            let next = table.scans.len() as u32;
            let number = *numbers.entry(scan.clone()).or_insert(next);
            if number == next {
                table.scans.push(scan);
            }
            table.scan.push(number);
            table.candidate.push(format!("{} of {} values a thread", text("subject")?, row["vt"]));
            table.is_first_pass.push((text("pass")? == "coarse").into());
            table.time.push(row["graph"]["median_ns"].as_f64().unwrap_or(f64::NAN));
        }
        if table.scan.is_empty() {
            return Err(format!("{shown} has no row of a strategy: name a record of `lookback tune`").into());
        }
        Ok(table)
    }
}

/// Times, and beside each what was scanned and the row that it stands in.
#[derive(Debug, PartialEq)]
struct Selection {
    scan: Vec<u32>,
    time: Vec<f64>,
    row: Vec<u64>,
}

/// The rows of the first pass that have a time: of each column what is kept, side by side.
fn of_first_pass(scanner: &mut HostScanner, table: &Table) -> Result<Selection, Box<dyn Error>> {
    let of_first_pass = Definition::filter("of the first pass")
        .input::<u32>("scan")
        .input::<u8>("is_first_pass")
        .input::<f64>("time")
        .keep("return is_first_pass != 0 && time == time;")
        .output::<u32>("kept_scan")
        .output::<f64>("kept_time")
        .output::<u64>("row")
        .store("kept_scan = scan; kept_time = time; row = i;")
        .define()?;
    let n = table.scan.len();
    let (mut scan, mut time, mut row, mut count) = (vec![0; n], vec![0.0; n], vec![0; n], 0_u32);
    let run = scanner.run(of_first_pass).input(&table.scan).input(&table.is_first_pass).input(&table.time);
    run.output(&mut scan).output(&mut time).output(&mut row).count_into(&mut count).compact()?;
    scan.truncate(count as usize);
    time.truncate(count as usize);
    row.truncate(count as usize);
    Ok(Selection { scan, time, row })
}

/// The same rows, those of a scan side by side.
fn by_scan(scanner: &mut HostScanner, rows: &Selection) -> Result<Selection, Box<dyn Error>> {
    let by_scan = Definition::sort::<u32>()?.with::<f64>("time").with::<u64>("row").define()?;
    let n = rows.scan.len();
    let (mut scan, mut time, mut row) = (vec![0; n], vec![0.0; n], vec![0; n]);
    let run = scanner.run(by_scan).input(&rows.scan).input(&rows.time).input(&rows.row);
    run.output(&mut scan).output(&mut time).output(&mut row).sort()?;
    Ok(Selection { scan, time, row })
}

/// Of each scan how many candidates there are and what the best one takes.
fn groups(scanner: &mut HostScanner, rows: &Selection) -> Result<(Vec<u64>, Vec<f64>), Box<dyn Error>> {
    let runs = Definition::run_length_encode::<u32>()?.define()?;
    let best = Definition::reduce_by_key::<u32>(Operator::Min, ElementType::F64, ElementType::F64)?.define()?;
    let n = rows.scan.len();
    let (mut scan, mut lengths, mut least, mut count) = (vec![0_u32; n], vec![0_u64; n], vec![0.0; n], 0_u32);
    let run = scanner.run(runs).input(&rows.scan);
    run.output(&mut scan).output(&mut lengths).count_into(&mut count).compact()?;
    scanner.run(best).input(&rows.scan).input(&rows.time).output(&mut scan).output(&mut least).compact()?;
    lengths.truncate(count as usize);
    least.truncate(count as usize);
    Ok((lengths, least))
}

/// A column in order, and the row that each of its elements stood in.
fn sorted(scanner: &mut HostScanner, column: &[f64], row: &[u64]) -> Result<(Vec<f64>, Vec<u64>), Box<dyn Error>> {
    let with_rows = Definition::sort::<f64>()?.with::<u64>("row").define()?;
    let (mut in_order, mut rows) = (vec![0.0; column.len()], vec![0; row.len()]);
    scanner.run(with_rows).input(column).input(row).output(&mut in_order).output(&mut rows).sort()?;
    Ok((in_order, rows))
}

/// The sorted column by the part of the candidates that is no slower.
fn chart(slowdowns: &[f64]) -> Vec<u8> {
    let at = |percent: usize| slowdowns[(slowdowns.len() * percent / 100).min(slowdowns.len() - 1)];
    let title = format!(
        "Half of the candidates take {:.2} times as long as the best of their scan or more, a tenth {:.2}",
        at(50),
        at(90)
    );
    let mut drawing = Drawing::new(760, 370, &title);
    let (left, top, width, height) = (48.0, 66.0, 670.0, 246.0);
    let most = (2.0 * at(100)).ceil().max(4.0) / 2.0;
    let place = |part: f64, slowdown: f64| (left + width * part, top + height * (most - slowdown) / (most - 1.0));
    for step in 0..=(2.0 * (most - 1.0)) as u32 {
        let slowdown = 1.0 + f64::from(step) / 2.0;
        let (x, y) = place(0.0, slowdown);
        drawing.grid((x, y), (x + width, y));
        drawing.text((x - 6.0, y + 4.0), "end", "", &format!("{slowdown:.1}"));
    }
    for percent in [25, 50, 75, 90, 100] {
        let (x, y) = place(percent as f64 / 100.0, 1.0);
        drawing.grid((x, y), (x, top));
        drawing.text((x, y + 18.0), "middle", "", &format!("{percent} %"));
        let (x, y) = place(percent as f64 / 100.0, at(percent));
        drawing.text((x - 5.0, y - 8.0), "end", "line-text", &format!("{:.2}", at(percent)));
    }
    let parts = slowdowns.iter().enumerate();
    drawing.line(parts.map(|(rank, &slowdown)| place(rank as f64 / slowdowns.len() as f64, slowdown)));
    drawing.text((left, top - 14.0), "start", "", "times as long as the best candidate of the same scan");
    drawing.text((left + width / 2.0, top + height + 42.0), "middle", "", "part of the candidates that is faster");
    drawing.finish()
}

fn main() -> Outcome {
    let (folder, path) = arguments(concat!(env!("CARGO_MANIFEST_DIR"), "/tuning/tune-h200.jsonl.gz"))?;
    let table = Table::read(&path)?;
    let scanner = &mut HostScanner::default();

    let kept = of_first_pass(scanner, &table)?;
    let rows = || (0..table.scan.len()).filter(|&row| table.is_first_pass[row] != 0 && !table.time[row].is_nan());
    let is_right = kept.row.iter().copied().eq(rows().map(|row| row as u64))
        && kept.scan.iter().copied().eq(rows().map(|row| table.scan[row]))
        && kept.time.iter().copied().eq(rows().map(|row| table.time[row]));
    checked("rows of the first pass", is_right, &format!("{} of {}", kept.row.len(), table.scan.len()))?;
    if kept.row.is_empty() {
        return Err(format!("{} has no time of a first pass", path.display()).into());
    }

    let grouped = by_scan(scanner, &kept)?;
    let mut expected: Vec<usize> = rows().collect();
    expected.sort_by_key(|&row| table.scan[row]);
    let is_right = grouped.row.iter().copied().eq(expected.iter().map(|&row| row as u64))
        && grouped.scan.iter().copied().eq(expected.iter().map(|&row| table.scan[row]))
        && grouped.time.iter().copied().eq(expected.iter().map(|&row| table.time[row]));
    checked("rows by what they scan", is_right, "a stable sort by one column, two others go with it")?;

    let (lengths, best) = groups(scanner, &grouped)?;
    let mut loops: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
    for (&scan, &time) in kept.scan.iter().zip(&kept.time) {
        let (length, best) = loops.entry(scan).or_insert((0, f64::INFINITY));
        (*length, *best) = (*length + 1, best.min(time));
    }
    let is_right = lengths.iter().copied().eq(loops.values().map(|group| group.0));
    let most = lengths.iter().max().unwrap_or(&0);
    checked("candidates of each scan", is_right, &format!("{} scans, up to {most} candidates", lengths.len()))?;
    let is_right = best.iter().copied().eq(loops.values().map(|group| group.1));
    let [least, most] = [best.iter().copied().fold(f64::INFINITY, f64::min), best.iter().copied().fold(0.0, f64::max)];
    checked("the best of each scan", is_right, &format!("from {:.1} to {:.1} µs", least / 1e3, most / 1e3))?;

    let best_of_rows = lengths.iter().zip(&best).flat_map(|(&length, &best)| (0..length).map(move |_| best));
    let slowdowns: Vec<f64> = grouped.time.iter().zip(best_of_rows).map(|(time, best)| time / best).collect();
    let (in_order, row) = sorted(scanner, &slowdowns, &grouped.row)?;
    let mut expected: Vec<(f64, u64)> = slowdowns.iter().copied().zip(grouped.row.iter().copied()).collect();
    expected.sort_by(|left, right| left.0.total_cmp(&right.0));
    let is_right = expected.iter().copied().eq(in_order.iter().copied().zip(row.iter().copied()));
    let slowest = row[row.len() - 1] as usize;
    let found = format!(
        "the slowest by {:.2}: {}, {}",
        in_order[in_order.len() - 1],
        table.candidate[slowest],
        table.scans[table.scan[slowest] as usize]
    );
    checked("candidates by their slowdown", is_right, &found)?;
    keep(folder.as_deref(), "table-slowdowns.svg", &chart(&in_order))
}
