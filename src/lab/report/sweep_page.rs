//! One page for a folder's sweeps, self-contained: what came out first, then for each record its tables and pictures,
//! and folded what few ask for: the machine, further pictures, all rows. Its script hides and shows series; without it
//! the page says all the same.

use super::html::{self, escaped, folded, folded_if_long, judged, link};
use super::source::SweepSource;
use super::svg::Plot;
use super::sweep::is_without_frame;
use super::tables::{all_rows, day, evaluation_of, main_tables, not_trusted};
use crate::lab::measure::point::Kind;
use crate::lab::measure::record::{Status, SweepRecord};
use crate::lab::measure::targets::evaluation::{Evaluation, TargetResult};
use crate::lab::measure::targets::text::microseconds;
use crate::lab::statistics::Summary;
use crate::lab::stress::table::KillTable;
use std::fmt::Write;

/// The first columns of a table are words, as many as its class says.
const MORE_STYLE: &str = "\
body{max-width:1060px}
nav{columns:22rem;font-size:.9rem}nav ul{margin:0}nav li{break-inside:avoid}
.words-1 :is(th,td):nth-child(-n+1),.words-2 :is(th,td):nth-child(-n+2),.words-3 :is(th,td):nth-child(-n+3),.words-4 :is(th,td):nth-child(-n+4){text-align:left}
.choices{display:flex;flex-wrap:wrap;gap:.1rem .9rem;font-size:.85rem;margin:.4rem 0}
.choices label{cursor:pointer;white-space:nowrap}
.choices button{font:inherit;color:inherit;background:none;border:1px solid var(--line);border-radius:4px;padding:0 .5rem;cursor:pointer}
.series.hidden{display:none}
";

const SCRIPT: &str = "\
const hidden=new Set();
function show(){
for(const g of document.querySelectorAll('g.series'))g.classList.toggle('hidden',hidden.has(g.dataset.series));
for(const b of document.querySelectorAll('.choices input'))b.checked=!hidden.has(b.value);
}
for(const figure of document.querySelectorAll('figure')){
const names=[...new Set([...figure.querySelectorAll('g.series')].map(g=>g.dataset.series))];
if(names.length<2)continue;
const choices=document.createElement('div');choices.className='choices';
for(const name of names){
const label=document.createElement('label'),box=document.createElement('input');
box.type='checkbox';box.value=name;box.checked=true;
box.onchange=()=>{box.checked?hidden.delete(name):hidden.add(name);show()};
label.append(box,' '+name);choices.append(label);
}
const button=(text,change)=>{const b=document.createElement('button');b.type='button';b.textContent=text;b.onclick=()=>{names.forEach(change);show()};choices.append(b)};
button('all',n=>hidden.delete(n));button('none',n=>hidden.add(n));
figure.querySelector('figcaption').before(choices);
}
";

/// A record with its pictures, and what the targets come to in it, if it is one of theirs.
struct Part<'a> {
    source: &'a SweepSource,
    plots: &'a [Plot],
    evaluation: Option<Evaluation>,
}

/// The page of all records with their pictures, and of the tables of mutants beside them by their names.
pub(super) fn html<'a>(parts: &'a [(&'a SweepSource, Vec<Plot>)], kill_tables: &[(String, KillTable)]) -> String {
    let records: Vec<&SweepRecord> = parts.iter().map(|(source, _)| &source.record).collect();
    let part = |(source, plots): &'a (&'a SweepSource, Vec<Plot>)| Part {
        source,
        plots,
        evaluation: evaluation_of(&source.record, &records),
    };
    let mut parts: Vec<Part<'_>> = parts.iter().map(part).collect();
    // What was to be reached, then what answers a question, then the rest.
    parts.sort_by_key(|part| (part.evaluation.is_none(), !part.plots.iter().any(|plot| plot.is_answer)));
    let mut page = html::head("Prefix scans, measured", MORE_STYLE);
    let answers: Vec<String> = parts.iter().flat_map(answers).collect();
    let answers = answers.into_iter().chain(kill_tables.iter().map(answer_of_mutants));
    page.push_str("<h2>What came out</h2>\n<ul>\n");
    answers.for_each(|answer| {
        let _ = writeln!(page, "<li>{answer}</li>");
    });
    page.push_str("</ul>\n<h2>Contents</h2>\n<nav><ul>\n");
    for Part { source, plots, .. } in &parts {
        let pictures = if plots.is_empty() { String::new() } else { format!(", {} pictures", plots.len()) };
        let place = link(&format!("#{}", source.stem), &source.stem);
        let _ = writeln!(
            page,
            "<li>{place}: {}, {}, {} rows{pictures}</li>",
            escaped(&source.record.header.machine.gpu),
            escaped(day(&source.record)),
            source.record.rows.len()
        );
    }
    for (stem, _) in kill_tables {
        let _ = writeln!(page, "<li>{}: mutants and detectors</li>", link(&format!("{stem}.html"), stem));
    }
    page.push_str(
        "</ul></nav>\n<p class=\"note\">Drawn from the records in this folder alone by <code>lookback report DIR</code>; \
         no GPU is needed. A pointer on a marker shows its figure; boxes below a picture hide and show a series in all \
         pictures of the page.</p>\n",
    );
    parts.iter().for_each(|part| section(&mut page, part));
    let _ = write!(page, "<script>\n{SCRIPT}show();\n</script>\n{}", html::END);
    page
}

/// What came out of a record, as HTML: the targets that it reaches, what its pictures answer, and what is wrong with it.
fn answers(Part { source, plots, evaluation }: &Part<'_>) -> Vec<String> {
    let record = &source.record;
    let place = |text: &str| link(&format!("#{}", source.stem), text);
    let mut answers = Vec::new();
    if let Some(evaluation) = evaluation {
        let mut answer = judged(!evaluation.is_missed(), &evaluation.summary());
        for outcome in evaluation.outcomes.iter().filter(|outcome| outcome.result == TargetResult::Miss) {
            let worst = outcome.worst().and_then(|worst| worst.ratio).map(|ratio| outcome.target.yardstick.show(ratio));
            let worst = worst.map_or(String::new(), |worst| format!(", at worst {worst}"));
            let _ = write!(
                answer,
                "<br>Missed: {}, {}: {} of {}{worst}",
                escaped(outcome.target.place),
                escaped(&outcome.target.demand()),
                outcome.passed(),
                outcome.findings.len()
            );
        }
        for outcome in evaluation.host.iter().filter(|outcome| outcome.result == TargetResult::Miss) {
            let found = outcome.found_us.map_or_else(|| "not measured".to_owned(), microseconds);
            let _ = write!(
                answer,
                "<br>Missed: {}, at most {}: {found}",
                escaped(outcome.target.place),
                microseconds(outcome.target.most_us)
            );
        }
        answers.push(format!("{}: {answer}", place(&source.stem)));
    }
    for plot in plots.iter().filter(|plot| plot.is_answer) {
        // What is scanned, where, is the link, and what came out stands behind it.
        let (subject, answer) = plot.title.split_once(": ").unwrap_or((&plot.title, ""));
        answers.push(format!("{}: {}", link(&format!("#{}", plot.name), subject), escaped(answer)));
    }
    if record.rows.iter().any(|row| row.status == Status::Wrong) || record.finished.is_none() {
        answers.push(format!("{}: {}", place(&source.stem), summary(record)));
    }
    answers
}

fn answer_of_mutants((stem, table): &(String, KillTable)) -> String {
    let link = link(&format!("{stem}.html"), stem);
    format!("{link}: {}", judged(table.is_right(), &table.summary()))
}

/// Pictures of a record that are not folded: two of each of two scans.
const MOST_OPEN_PICTURES: usize = 4;

fn section(page: &mut String, Part { source, plots, evaluation }: &Part<'_>) {
    let record = &source.record;
    let stem = escaped(&source.stem);
    let command = escaped(&record.header.command);
    let _ = write!(
        page,
        "<h2 id=\"{stem}\">{stem}: {}</h2>\n<p>{}</p>\n<p>{} Measured on {}; data: {}.</p>\n",
        escaped(&record.header.machine.gpu),
        escaped(&record.header.sweep.purpose.replace('`', "")),
        summary(record),
        escaped(day(record)),
        link(&source.file_name, &source.file_name)
    );
    let figure = |plot: &Plot| {
        let (picture, data) = (plot.file_name(), &source.file_name);
        plot.figure(&format!(
            "Picture {}, data {}, measured by <code>{command}</code>.",
            link(&picture, &picture),
            link(data, data)
        ))
    };
    // The first pictures that answer, or else the first; the others are there for who asks.
    let (mut shown, mut others): (Vec<&Plot>, Vec<&Plot>) = plots.iter().partition(|plot| plot.is_answer);
    let more = shown.split_off(shown.len().min(MOST_OPEN_PICTURES));
    others.splice(..0, more);
    if shown.is_empty() && !others.is_empty() {
        shown.push(others.remove(0));
    }
    shown.iter().for_each(|plot| page.push_str(&figure(plot)));
    for table in main_tables(record, evaluation.as_ref()) {
        let caption = format!("<p>{}</p>\n", escaped(&table.caption.replace('`', "")));
        page.push_str(&folded_if_long("Table", table.rows.len(), caption + &table.html()));
    }
    if !others.is_empty() {
        let pictures: String = others.iter().map(|plot| figure(plot)).collect();
        page.push_str(&folded(&format!("{} more pictures", others.len()), &pictures));
    }
    page.push_str(&folded("Machine, program, command", &html::facts(facts(source))));
    if !record.skipped.is_empty() {
        page.push_str(&folded("Not run", &html::list(&record.skipped)));
    }
    let untrusted = not_trusted(record);
    if !untrusted.rows.is_empty() {
        page.push_str(&folded(&format!("{} figures met no noise criterion", untrusted.rows.len()), &untrusted.html()));
    }
    let table = all_rows(record);
    let caption = format!("<p class=\"note\">{}</p>\n", escaped(&table.caption));
    page.push_str(&folded(&format!("All {} rows", record.rows.len()), &(caption + &table.html())));
}

fn summary(record: &SweepRecord) -> String {
    let count = |status: Status| record.rows.iter().filter(|row| row.status == status).count();
    let measured =
        |kind: Kind| record.rows.iter().filter(|row| row.kind == kind && row.status == Status::Measured).count();
    let (copies, readings) = (measured(Kind::Copy), measured(Kind::Reading));
    let floors =
        if readings == 0 { format!("{copies} copies") } else { format!("{copies} copies and {readings} readings") };
    let mut text = format!("{} scans and {floors} measured, ", count(Status::Measured) - copies - readings);
    match count(Status::Wrong) {
        0 => text.push_str("every element of each verified in the same run: <span class=\"good\">all right</span>"),
        wrong => {
            let _ = write!(text, "<span class=\"bad\">and {wrong} wrong, whose figures are not used</span>");
        }
    }
    match count(Status::NotLaunchable) {
        0 => {}
        absent => {
            let _ = write!(text, "; {absent} configurations cannot be launched");
        }
    }
    if record.finished.is_none() {
        text.push_str("; <span class=\"bad\">the sweep was interrupted</span>");
    }
    text.push('.');
    text
}

fn facts(source: &SweepSource) -> Vec<(&'static str, String)> {
    let header = &source.record.header;
    let machine = &header.machine;
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    let commit = match (&header.program.git_commit, header.program.git_dirty) {
        (Some(commit), Some(true)) => format!(", commit {commit} with changes"),
        (Some(commit), _) => format!(", commit {commit}"),
        (None, _) => String::new(),
    };
    let mut facts = vec![
        ("command", header.command.clone()),
        ("data", source.file_name.clone()),
        ("date", header.date.clone()),
        ("program", format!("lookback {}{commit}, kernels {}", header.program.version, header.program.kernels_sha256)),
        (
            "GPU",
            format!(
                "{}, compute capability {}, {} multiprocessors, {} memory, {} L2",
                machine.gpu,
                machine.compute_capability,
                machine.multiprocessors,
                mebibytes(machine.memory_bytes),
                mebibytes(machine.l2_bytes)
            ),
        ),
        ("driver", format!("{}, CUDA {}; kernels by {}", machine.driver, machine.cuda, machine.compiler)),
    ];
    let mut clocks: Vec<String> = Vec::new();
    clocks.extend(machine.maximum_core_clock_mhz.map(|clock| format!("core up to {clock} MHz")));
    clocks.extend(machine.maximum_memory_clock_mhz.map(|clock| format!("memory up to {clock} MHz")));
    let finished = source.record.finished.as_ref();
    clocks.extend(
        finished
            .and_then(|finished| finished.median_clock_mhz)
            .map(|clock| format!("core {clock:.0} MHz while it ran")),
    );
    if !clocks.is_empty() {
        facts.push(("clocks", clocks.join(", ")));
    }
    if let Some(ecc) = machine.nvml.as_ref().and_then(|nvml| nvml.ecc) {
        facts.push(("ECC", if ecc { "on" } else { "off" }.to_owned()));
    }
    if !machine.peers.is_empty() {
        facts.push(("peers", machine.peers.join(", ")));
    }
    let frames: Vec<f64> = source
        .record
        .points
        .iter()
        .filter_map(|point| point.beside.empty_frame.as_ref()?.median_ns)
        .map(|median| median / 1e3)
        .collect();
    if let Some(frames) = Summary::of(&frames).filter(|_| is_without_frame(&source.record)) {
        let range = match frames.count {
            1 => String::new(),
            points => format!(" (from {:.2} to {:.2} at {points} points)", frames.minimum, frames.maximum),
        };
        facts.push(("empty frame", format!("{:.2} µs{range}, subtracted from cold times", frames.median)));
    }
    facts.push(("host", format!("{}, {} processors", machine.processor, machine.processors)));
    facts.push(("seed", header.sweep.seed.to_string()));
    if let Some(finished) = finished {
        facts.push(("took", format!("{:.0} s", finished.seconds)));
    }
    facts
}
