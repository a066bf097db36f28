//! One page, self-contained: machine, command, plots and the whole table. No network, no script.

use super::Plot;
use crate::cli::arguments::format_size;
use crate::cli::table::significant;
use crate::lab::record::{Record, Row};
use std::fmt::Write;

/// Text as HTML or XML text.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Both kinds of pages.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#24292f;--paper:#fffffe;--muted:#57606a;--line:#d8dee4;--bad:#b3261e;--good:#1a7f37}
@media(prefers-color-scheme:dark){:root{--ink:#d7dde3;--paper:#0d1117;--muted:#8b949e;--line:#30363d;--bad:#ff8a80;--good:#56d364}}
body{font:16px/1.5 system-ui,'Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif;color:var(--ink);background:var(--paper);max-width:900px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}
code,pre{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:.9em}
pre{border:1px solid var(--line);border-radius:6px;padding:.6rem .8rem;overflow-x:auto}
figure{margin:1.6rem 0}figure svg{max-width:100%;height:auto;border:1px solid var(--line);border-radius:6px}
figcaption,.note{color:var(--muted);font-size:.9rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}thead th{color:var(--muted);font-weight:600}
.facts th{text-align:left;color:var(--muted);font-weight:400}.facts td{text-align:left;white-space:normal}
.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}
";

/// The page of a record with its plots.
pub fn html(record: &Record, plots: &[Plot]) -> String {
    let header = &record.header;
    let timed = header.device.kind == "cuda";
    let mut page = String::new();
    let device = escaped(&header.device.name);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>Prefix scans on {device}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>Prefix scans on {device}</h1>\n<p>{}</p>\n",
        summary(record)
    );
    if !timed {
        page.push_str(
            "<p class=\"note\">The CPU device runs the CUDA kernels under a seeded scheduler and counts what they do. \
             The counts are those of the algorithms; the time it takes is its own and says nothing about a GPU.</p>\n",
        );
    }
    if plots.is_empty() {
        page.push_str("<p class=\"note\">No plots: a plot takes at least two sizes, or two VTs at one size.</p>\n");
    }
    for plot in plots {
        let _ = write!(
            page,
            "<figure>\n{}\n<figcaption>{} (<code>{}</code>)</figcaption>\n</figure>\n",
            plot.svg.trim_end(),
            escaped(&plot.caption),
            escaped(&plot.file_name())
        );
    }
    page.push_str("<h2>How this came about</h2>\n");
    let _ = writeln!(page, "<pre>{}</pre>", escaped(&header.command));
    page.push_str("<table class=\"facts\">\n");
    let commit = header.git_commit.as_ref().map(|commit| format!(", commit {commit}")).unwrap_or_default();
    let mut facts = vec![
        ("device".to_owned(), format!("{} ({})", header.device.name, header.device.kind)),
        ("date".to_owned(), header.date.clone()),
        ("program".to_owned(), format!("lookback {}{commit}", header.tool_version)),
        ("input".to_owned(), header.input.clone()),
        ("seed".to_owned(), header.seed.to_string()),
    ];
    facts.extend(header.device.facts.iter().cloned());
    for (name, value) in facts {
        let _ = writeln!(page, "<tr><th>{}</th><td>{}</td></tr>", escaped(&name), escaped(&value));
    }
    page.push_str("</table>\n");
    if !record.skipped.is_empty() {
        page.push_str("<h2>Not run</h2>\n<ul>\n");
        for skipped in &record.skipped {
            let _ = writeln!(page, "<li>{}: {}</li>", escaped(&skipped.what), escaped(&skipped.why));
        }
        page.push_str("</ul>\n");
    }
    page.push_str("<h2>All results</h2>\n<p class=\"note\">All columns are in <code>data.csv</code> and <code>data.json</code>.</p>\n");
    table(&mut page, record, timed);
    page.push_str("</body>\n</html>\n");
    page
}

fn summary(record: &Record) -> String {
    let wrong = record.rows.iter().filter(|row| !row.verified).count();
    match (record.rows.len(), wrong) {
        (0, _) => "No results.".to_owned(),
        (results, 0) => format!(
            "{results} results, every element of each compared with a sequential reference: <span class=\"good\">all right</span>."
        ),
        (results, wrong) => format!(
            "{results} results, every element of each compared with a sequential reference: <span class=\"bad\">{wrong} wrong</span>."
        ),
    }
}

type Column = (&'static str, fn(&Row) -> String);

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or("–".to_owned(), |value| value.to_string())
}

fn number_or_dash(value: Option<f64>) -> String {
    or_dash(value.map(|value| significant(value, 12)))
}

const SHARED: &[Column] = &[
    ("strategy", |row| match row.chosen_strategy {
        Some(chosen) => format!("{}: {chosen}", row.strategy),
        None => row.strategy.to_string(),
    }),
    ("scan", |row| format!("{}, {}{}", row.instance_name(), row.mode, if row.in_place { ", in place" } else { "" })),
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

fn table(page: &mut String, record: &Record, timed: bool) {
    let columns: Vec<&Column> = SHARED.iter().chain(if timed { TIMED } else { COUNTED }).collect();
    page.push_str("<div class=\"scroll\">\n<table>\n<thead><tr>");
    for (name, _) in &columns {
        let _ = write!(page, "<th>{}</th>", escaped(name));
    }
    page.push_str("<th>result</th></tr></thead>\n<tbody>\n");
    for row in &record.rows {
        page.push_str("<tr>");
        for (_, cell) in &columns {
            let _ = write!(page, "<td>{}</td>", escaped(&cell(row)));
        }
        let verdict = match (&row.failure, row.verified, row.first_mismatch) {
            (Some(failure), ..) => format!("<td class=\"bad\" title=\"{}\">failed</td>", escaped(failure)),
            (None, true, _) => "<td class=\"good\">right</td>".to_owned(),
            (None, false, first) => {
                format!("<td class=\"bad\">wrong: {} elements, first at {}</td>", row.mismatches, or_dash(first))
            }
        };
        let _ = writeln!(page, "{verdict}</tr>");
    }
    page.push_str("</tbody>\n</table>\n</div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::record::tests::{header, outcome, request};
    use crate::strategy::Strategy;

    #[test]
    fn empty_and_failed_records_have_a_page() {
        let mut record = Record::new(header("cpu"));
        assert!(html(&record, &[]).contains("No results"));
        record.rows.push(Row::of_failure(&request(Strategy::Lookback, 10, 1), "a <barrier> & \"more\"".to_owned()));
        let page = html(&record, &[]);
        assert!(page.contains("1 wrong") && page.contains("&lt;barrier&gt; &amp; &quot;more&quot;"), "{page}");
    }

    #[test]
    fn the_cpu_device_is_never_taken_for_a_gpu() {
        let mut record = Record::new(header("cpu"));
        record.rows.push(Row::of_outcome(&request(Strategy::Lookback, 10, 1), &outcome(10, false)));
        let page = html(&record, &[]);
        assert!(page.contains("says nothing about a GPU") && !page.contains("GB/s"), "{page}");
    }
}
