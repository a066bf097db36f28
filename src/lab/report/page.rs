//! The page of a record of `lookback compare`: plots, machine, command and the whole table. No script.

use super::html::{END, cell, escaped, facts, folded_if_long, head, judged, link, list, table};
use super::svg::Plot;
use crate::lab::ranking::Ranking;
use crate::lab::record::{Record, Row, Verdict};
use crate::text::{format_size, or_dash, significant};
use std::fmt::Write;

/// The page of a record with its plots.
pub fn html(record: &Record, plots: &[Plot]) -> String {
    let header = &record.header;
    let timed = header.device.kind == "cuda";
    let mut page = head(&format!("Prefix scans on {}", escaped(&header.device.name)), "");
    let data = ["data.csv", "data.json"].map(|name| link(name, name)).join(" and ");
    let _ = writeln!(
        page,
        "<p>{}</p>\n<p>{} · {} · {}; all columns are in {data}.</p>",
        summary(record),
        link("#plots", "Plots"),
        link("#run", "how this came about"),
        link("#results", "all results")
    );
    if !timed {
        page.push_str(
            "<p class=\"note\">The CPU device runs the CUDA kernels under a seeded scheduler and counts what they do. \
             The counts are those of the algorithms; the time it takes is its own and says nothing about a GPU.</p>\n",
        );
    }
    page.push_str(&ranking(record));
    page.push_str("<h2 id=\"plots\">Plots</h2>\n");
    if plots.is_empty() {
        page.push_str("<p class=\"note\">No plots: a plot takes at least two sizes, or two VTs at one size.</p>\n");
    }
    for plot in plots {
        page.push_str(&plot.figure(&link(&plot.file_name(), &plot.file_name())));
    }
    let _ = write!(page, "<h2 id=\"run\">How this came about</h2>\n<pre>{}</pre>\n", escaped(&header.command));
    let commit = header.git_commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let run = [
        ("device", format!("{} ({})", header.device.name, header.device.kind)),
        ("date", header.date.clone()),
        ("program", format!("lookback {}{commit}", header.tool_version)),
        ("input", header.input.clone()),
        ("seed", header.seed.to_string()),
    ];
    let device = header.device.facts.iter().map(|(name, value)| (name.as_str(), value.clone()));
    page.push_str(&facts(run.into_iter().chain(device)));
    if !record.skipped.is_empty() {
        let _ = write!(page, "<h2>Not run</h2>\n{}", list(&record.skipped));
    }
    page.push_str("<h2 id=\"results\">All results</h2>\n");
    // What is wrong is seen without being asked for.
    let (wrong, right): (Vec<&Row>, Vec<&Row>) = record.rows.iter().partition(|row| !row.verified);
    if !wrong.is_empty() {
        page.push_str(&results(&wrong, timed));
    }
    if !right.is_empty() {
        page.push_str(&folded_if_long("Right results", right.len(), results(&right, timed)));
    }
    page + END
}

fn summary(record: &Record) -> String {
    let wrong = record.count(Verdict::Wrong) + record.count(Verdict::Failed);
    let verdict = match (record.rows.len(), wrong, record.count(Verdict::Undecidable)) {
        (0, ..) => return "No results.".to_owned(),
        (_, 0, 0) => judged(true, "all right"),
        (_, 0, open) => format!("none wrong, {open} undecidable, because overflow depends on the order"),
        (_, wrong, _) => judged(false, &format!("{wrong} wrong")),
    };
    let results = record.rows.len();
    format!("{results} results, every element of each compared with a sequential reference: {verdict}.")
}

/// What came out: at each size the strategies from the best on.
fn ranking(record: &Record) -> String {
    let rankings = Ranking::all(record);
    if rankings.is_empty() {
        return String::new();
    }
    // Names in lines below each other, not in one line beside the page.
    const TEXT: &str = " style=\"text-align:left;white-space:normal\"";
    let rows = rankings.iter().flat_map(|ranking| ranking.sizes.iter().map(move |size| (&ranking.scan, size)));
    let rows = rows.map(|(scan, size)| {
        let mut cells = cell("td", "", scan) + &cell("td", "", &format_size(size.n));
        cells += &cell("td", TEXT, &size.ranks[0].names.join(", "));
        let others: Vec<String> = size.ranks[1..].iter().map(ToString::to_string).collect();
        let others = escaped(&others.join("; "));
        let bad = match size.not_right.is_empty() {
            true => String::new(),
            false => cell("div", " class=\"bad\"", &size.without_rank()),
        };
        cells + &format!("<td{TEXT}>{others}{bad}</td>")
    });
    let head = cell("th", "", "scan") + &cell("th", "", "n") + &cell("th", TEXT, "best") + &cell("th", TEXT, "then");
    let note = escaped(Ranking::yardstick(record));
    format!("<h2 id=\"ranking\">Ranking</h2>\n<p class=\"note\">At each size {note}.</p>\n{}", table("", &head, rows))
}

type Column = (&'static str, fn(&Row) -> String);

fn number_or_dash(value: Option<f64>) -> String {
    or_dash(value.map(|value| significant(value, 12)))
}

const SHARED: &[Column] = &[
    ("strategy", Row::strategy_with_choice),
    ("scan", Row::scan),
    ("n", |row| format_size(row.n)),
    ("VT", |row| or_dash(row.vt)),
    ("block", |row| or_dash(row.block_threads)),
    ("launches", |row| row.launches.to_string()),
];

const TIMED: &[Column] = &[
    ("µs", |row| number_or_dash(row.time_us)),
    ("GB/s", |row| number_or_dash(row.gigabytes_per_second)),
    ("access, bytes", |row| row.access_bytes.to_string()),
    ("registers", |row| or_dash(row.registers)),
    ("spill, bytes", |row| or_dash(row.local_bytes)),
];

const COUNTED: &[Column] = &[
    ("moves / n", |row| number_or_dash(row.element_moves_per_element)),
    ("spine moves / n", |row| number_or_dash(row.spine_moves_per_element)),
    ("work / n", |row| number_or_dash(row.work_per_element)),
    ("span", |row| or_dash(row.span)),
    ("barriers", |row| or_dash(row.barriers)),
    ("tiles behind", |row| number_or_dash(row.lookback_distance_tiles)),
    ("executor's own time, s", |row| number_or_dash(row.executor_seconds)),
];

fn results(rows: &[&Row], timed: bool) -> String {
    let columns: Vec<&Column> = SHARED.iter().chain(if timed { TIMED } else { COUNTED }).collect();
    let names = columns.iter().map(|(name, _)| *name).chain(["result"]);
    let row = |row: &&Row| {
        let complaint = escaped(&row.complaint().unwrap_or_default());
        let verdict = match row.verdict() {
            Verdict::Failed => {
                let failure = escaped(row.failure.as_deref().unwrap_or_default());
                cell("td", &format!(" class=\"bad\" title=\"{failure}\""), "failed")
            }
            Verdict::Right => cell("td", " class=\"good\"", "right"),
            Verdict::Undecidable => cell("td", "", &complaint),
            Verdict::Wrong => cell("td", " class=\"bad\"", &complaint),
        };
        columns.iter().map(|(_, text)| cell("td", "", &text(row))).chain([verdict]).collect()
    };
    table("", &names.map(|name| cell("th", "", name)).collect::<String>(), rows.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::record::tests::{failed_row_of, header, outcome, request, row_of};
    use crate::strategy::Strategy;

    #[test]
    fn empty_and_failed_records_have_a_page() {
        let mut record = Record::from(header("cpu"));
        assert!(html(&record, &[]).contains("No results"));
        record.rows.push(failed_row_of(&request(Strategy::Lookback, 10, 1), "a <barrier> & \"more\"".to_owned()));
        let page = html(&record, &[]);
        assert!(page.contains("1 wrong") && page.contains("&lt;barrier&gt; &amp; &quot;more&quot;"), "{page}");
    }

    #[test]
    fn the_page_begins_with_what_came_out() {
        let mut record = Record::from(header("cuda"));
        for (strategy, time) in [(Strategy::ReduceThenScan, 3.0), (Strategy::Lookback, 2.0), (Strategy::Naive, 1.0)] {
            let row = row_of(&request(strategy, 1 << 20, 8), &outcome(1 << 20, true));
            record.rows.push(Row { time_us: Some(time), verified: strategy != Strategy::Naive, ..row });
        }
        let page = html(&record, &[]);
        assert!(page.find(">Ranking</h2>").unwrap() < page.find(">How this came about</h2>").unwrap());
        assert!(
            page.contains(">lookback</td>")
                && page.contains(">1.50 reduce-then-scan<div class=\"bad\">WRONG or FAILED: naive<")
        );
        record.rows.truncate(1);
        assert!(!html(&record, &[]).contains("Ranking"));
    }

    #[test]
    fn the_cpu_device_is_never_taken_for_a_gpu() {
        let mut record = Record::from(header("cpu"));
        record.rows.push(row_of(&request(Strategy::Lookback, 10, 1), &outcome(10, false)));
        let page = html(&record, &[]);
        assert!(page.contains("says nothing about a GPU") && !page.contains("GB/s"), "{page}");
    }
}
