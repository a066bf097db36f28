//! One page for a folder's sweeps, self-contained: machines, commands, pictures, tables. Its script hides
//! and shows series; without it the page says all the same.

use super::html::{self, escaped};
use super::source::SweepSource;
use super::svg::Plot;
use super::sweep::is_without_frame;
use super::tables::{all_rows, main_tables, not_trusted};
use crate::lab::measure::point::Kind;
use crate::lab::measure::record::{Status, SweepRecord};
use crate::lab::statistics::Summary;
use std::fmt::Write;

const MORE_STYLE: &str = "\
body{max-width:960px}nav a{margin-right:1rem}
th.word,td.word{text-align:left}
summary{cursor:pointer;color:var(--muted)}
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
const names=[...figure.querySelectorAll('g.series')].map(g=>g.dataset.series);
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

/// The page of all records with their pictures.
pub(super) fn html(parts: &[(&SweepSource, Vec<Plot>)]) -> String {
    let mut page = html::head("Prefix scans, measured", MORE_STYLE);
    page.push_str(
        "<p class=\"note\">Drawn from the records in this folder alone by <code>lookback report DIR</code>; no GPU is \
         needed. Boxes below a picture hide and show a series in all pictures of the page.</p>\n<nav>",
    );
    for (source, _) in parts {
        let stem = escaped(&source.stem);
        let _ = write!(page, "<a href=\"#{stem}\">{stem}</a>");
    }
    page.push_str("</nav>\n");
    for (source, plots) in parts {
        section(&mut page, source, plots);
    }
    let _ = write!(page, "<script>\n{SCRIPT}show();\n</script>\n{}", html::END);
    page
}

fn section(page: &mut String, source: &SweepSource, plots: &[Plot]) {
    let record = &source.record;
    let stem = escaped(&source.stem);
    let command = escaped(&record.header.command);
    let _ = write!(
        page,
        "<h2 id=\"{stem}\">{stem}: {}</h2>\n<p>{}</p>\n<p>{}</p>\n",
        escaped(&record.header.machine.gpu),
        escaped(&record.header.sweep.purpose),
        summary(record)
    );
    page.push_str(&html::facts(facts(source)));
    for table in main_tables(record) {
        let _ = write!(page, "<p>{}</p>\n{}", escaped(&table.caption.replace('`', "")), table.html());
    }
    for plot in plots {
        let (picture, data) = (escaped(&plot.file_name()), escaped(&source.file_name));
        page.push_str(&plot.figure(&format!(
            "Picture <code>{picture}</code>, data <code>{data}</code>, measured by <code>{command}</code>."
        )));
    }
    if !record.skipped.is_empty() {
        let list = html::list(&record.skipped);
        let _ = write!(page, "<details><summary>Not run</summary>\n{list}</details>\n");
    }
    let untrusted = not_trusted(record);
    if !untrusted.rows.is_empty() {
        let _ = write!(
            page,
            "<details><summary>{} figures met no noise criterion</summary>\n{}</details>\n",
            untrusted.rows.len(),
            untrusted.html()
        );
    }
    let table = all_rows(record);
    let _ = write!(
        page,
        "<details><summary>All {} rows</summary>\n<p class=\"note\">{}</p>\n{}</details>\n",
        record.rows.len(),
        escaped(&table.caption),
        table.html()
    );
}

fn summary(record: &SweepRecord) -> String {
    let count = |status: Status| record.rows.iter().filter(|row| row.status == status).count();
    let scans = record.rows.iter().filter(|row| row.kind != Kind::Copy && row.status == Status::Measured).count();
    let mut text = format!("{scans} scans and {} copies measured, ", count(Status::Measured) - scans);
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
        .filter_map(|point| point.empty_frame.as_ref()?.median_ns)
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
