//! `docs/lesson.md`: the tables between its markers, its pictures, and the page that is made of all of it.

mod teams;
mod tiles;

use super::error::ReportError;
use super::html::{END, escaped, folded, head};
use super::svg::Plot;
use super::table::Table;
use super::{write_if_changed, write_plots};
use crate::lab::device::Counters;
use crate::lab::lesson::{self, COUNTED, LessonError, THREADS, VT};
use crate::lab::record::PAGE;
use crate::lab::trace::Recording;
use crate::lab::trace::team::{Formula, TeamScan, Textbook};
use crate::strategy::Strategy;
use crate::text::significant;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The document.
const TEXT: &str = include_str!("../../../../docs/lesson.md");

/// Where the document says that its pictures are.
const FOLDER: &str = "lesson/";

/// A table by its name.
type NamedTable = (&'static str, fn() -> Result<Table, LessonError>);

/// The tables between the document's markers.
pub(super) const TABLES: [NamedTable; 4] =
    [("lesson-launches", launches), ("lesson-teams", teams), ("lesson-vt", vts), ("lesson-broken", broken)];

fn number(value: f64) -> String {
    significant(value, 7)
}

fn launches() -> Result<Table, LessonError> {
    let n = COUNTED as f64;
    let row = |(strategy, counters): (Strategy, Counters)| {
        vec![
            format!("`{strategy}`"),
            counters.launches.to_string(),
            number((counters.element_reads + counters.element_writes) as f64 / n),
            counters.spine_moves.to_string(),
            counters.protocol_accesses.to_string(),
            number(counters.operator_applications as f64 / n),
            counters.span_steps.to_string(),
        ]
    };
    let columns =
        ["strategy", "launches", "element-moves / n", "spine moves", "protocol accesses", "operators / n", "span"];
    let caption = format!("{COUNTED} sums of u32, VT {VT}, {THREADS} threads a block, counted on the CPU device.");
    Ok(Table::new(caption, &columns, lesson::launches()?.into_iter().map(row).collect(), 1))
}

fn teams() -> Result<Table, LessonError> {
    let row = |(textbook, scan): (Textbook, TeamScan)| {
        let log = u64::from(scan.threads.ilog2());
        let beside = |measured: usize, (words, of): Formula| format!("{measured} ({words} = {})", of(log));
        vec![
            format!("`{}`", scan.pattern),
            scan.threads.to_string(),
            beside(scan.steps(), textbook.steps),
            beside(scan.operators(), textbook.operators),
            scan.meetings.to_string(),
            scan.accesses.to_string(),
            scan.turns.to_string(),
            scan.most_turns().to_string(),
        ]
    };
    let columns = ["pattern", "threads", "steps", "operators", "meetings", "accesses", "turns", "worst"];
    let caption = "Measured, and in brackets what the textbook says (logarithms are to base 2).".to_owned();
    Ok(Table::new(caption, &columns, lesson::teams()?.into_iter().map(row).collect(), 1))
}

fn vts() -> Result<Table, LessonError> {
    let row = |(vt, counters): (u32, Counters)| {
        let tiles = lesson::tiles(vt);
        vec![
            vt.to_string(),
            tiles.to_string(),
            number(counters.protocol_accesses as f64 / tiles as f64),
            number(counters.mean_lookback_distance().unwrap_or(0.0)),
            counters.barriers.to_string(),
            number(counters.element_accesses as f64 / COUNTED as f64),
            counters.span_steps.to_string(),
        ]
    };
    let columns =
        ["VT", "tiles", "protocol accesses a tile", "tiles looked back", "barriers", "element accesses / n", "span"];
    let caption =
        format!("`lookback` over {COUNTED} sums of u32, {THREADS} threads a block, counted on the CPU device.");
    Ok(Table::new(caption, &columns, lesson::vts()?.into_iter().map(row).collect(), 0))
}

fn broken() -> Result<Table, LessonError> {
    let row = |broken: lesson::Broken| {
        vec![
            format!("`{}`", broken.mutant.name),
            format!("{}: {}", broken.mutant.kind, broken.mutant.text),
            shortened(&broken.failure).to_owned(),
            broken.step.map_or("–".to_owned(), |step| step.to_string()),
        ]
    };
    let columns = ["fault", "what is wrong with the kernel", "what comes of it", "by step"];
    let caption = "Six kernels that were broken on purpose.".to_owned();
    Ok(Table::new(caption, &columns, lesson::broken()?.into_iter().map(row).collect(), 3))
}

/// How a fault showed, without who told and who was running.
fn shortened(failure: &str) -> &str {
    let what = failure.split_once("stopped the launch: ").map_or(failure, |(_, what)| what);
    what.split(": block").next().unwrap_or_default()
}

/// The table of a name, if it is one of the lesson's.
pub(super) fn table(name: &str) -> Result<Option<Table>, ReportError> {
    let found = TABLES.iter().find(|(known, _)| *known == name);
    Ok(found.map(|(_, table)| table()).transpose()?)
}

/// Makes the pictures of the lesson and the page of its document in a folder, and returns the page's path.
///
/// # Errors
/// When a run fails, a picture cannot be drawn or the folder cannot be written.
pub fn write_lesson(directory: &Path) -> Result<PathBuf, ReportError> {
    let teams = lesson::teams()?;
    let watched = lesson::watched()?;
    let of_warp = teams.iter().map(|(_, scan)| scan).filter(|scan| scan.threads == lesson::TEAMS[0]);
    let plots: Vec<Plot> = of_warp.map(teams::picture).chain([tiles::picture(&watched)]).collect::<Result<_, _>>()?;
    // The page first: where another one stands, nothing is written.
    let page = directory.join(PAGE);
    write_if_changed(&page, &html(&plots, &watched, &lesson::broken()?))?;
    write_plots(&plots, directory, &[], &[])?;
    Ok(page)
}

/// The page: the document, with its pictures in it, and what only a page can show.
fn html(plots: &[Plot], watched: &[Recording], broken: &[lesson::Broken]) -> String {
    let plots: BTreeMap<String, &Plot> = plots.iter().map(|plot| (plot.file_name(), plot)).collect();
    let title = TEXT.lines().next().unwrap_or_default().trim_start_matches("# ");
    let mut page = head(&escaped(title), tiles::STYLE);
    let text = TEXT.split_once('\n').map_or("", |(_, text)| text);
    let mut is_in_picture = false;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).flat_map(|event| {
        let html = |text: String| vec![Event::Html(CowStr::from(text))];
        match event {
            Event::Start(Tag::Image { ref dest_url, .. }) => {
                is_in_picture = true;
                let name = from_page(dest_url);
                match plots.get(&*name) {
                    Some(plot) => html(plot.figure("")),
                    None => html(format!("<img src=\"{0}\" alt=\"{0}\" style=\"max-width:100%\">", escaped(&name))),
                }
            }
            Event::End(TagEnd::Image) => {
                is_in_picture = false;
                Vec::new()
            }
            // What stands in the place of a picture that cannot be seen.
            Event::Text(_) if is_in_picture => Vec::new(),
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                vec![Event::Start(Tag::Link { link_type, dest_url: CowStr::from(from_page(&dest_url)), title, id })]
            }
            Event::Start(Tag::Table(_)) => [html("<div class=\"scroll\">".to_owned()), vec![event]].concat(),
            Event::End(TagEnd::Table) => [vec![event], html("</div>".to_owned())].concat(),
            Event::Html(ref marker) if marker.trim() == "<!-- lesson:steps -->" => html(tiles::frames(watched)),
            Event::Html(ref marker) if marker.trim() == "<!-- lesson:broken -->" => html(interleavings(broken)),
            event => vec![event],
        }
    });
    pulldown_cmark::html::push_html(&mut page, events);
    page + tiles::SCRIPT + END
}

/// A link of the document as it is from the page, which lies in the folder of its pictures.
fn from_page(target: &str) -> String {
    let is_elsewhere = target.contains("://") || target.starts_with('#');
    let beside = target.strip_prefix(FOLDER).filter(|_| !is_elsewhere);
    beside.map_or_else(|| if is_elsewhere { target.to_owned() } else { format!("../{target}") }, str::to_owned)
}

/// Each fault's accesses, one below the other.
fn interleavings(broken: &[lesson::Broken]) -> String {
    let all = broken.iter().map(|broken| {
        let command = format!("lookback stress --replay '{}'", broken.case);
        let text = format!("{command}\n\n{}\n{}", broken.interleaving.trim_end(), broken.failure);
        folded(&format!("{}: {}", broken.mutant.name, broken.mutant.text), &format!("<pre>{}</pre>\n", escaped(&text)))
    });
    all.collect()
}
