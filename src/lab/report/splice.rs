//! Tables between markers in a document, so that no figure in it is typed by hand.
//!
//! ```text
//! <!-- lookback:begin size-h100 -->
//! what stands here is replaced
//! <!-- lookback:end size-h100 -->
//! ```
//!
//! The name is that of a record's file without its ending (a sweep's, a table of mutants, or an account of costs), that of a sweep's
//! with `-by-size` behind it for what `auto` takes by size, `records`
//! for a table of where each record comes from, `figures` for one of all pictures with their data and commands, `strategies` for the table of strategies, or one of those of
//! `docs/lesson.md`, which are counted anew.

use super::costs;
use super::error::{ReportError, SpliceError};
use super::source::{SweepSource, cost_records, kill_tables};
use super::sweep;
use super::table::Table;
use super::tables::{by_size_of_problems, commit, day, evaluation_of, main_tables, measured_figures};
use crate::file;
use crate::lab::measure::record::SweepRecord;
use crate::strategy::Strategy;
use crate::text::or_dash;
use pulldown_cmark::{Event, Parser};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

pub(crate) const BEGIN: &str = "<!-- lookback:begin ";
pub(crate) const END: &str = "<!-- lookback:end ";
const CLOSE: &str = " -->";
const BY_SIZE: &str = "-by-size";
const RECORDS: &str = "records";
const FIGURES: &str = "figures";
const STRATEGIES: &str = "strategies";

/// The document with its tables as the records have them. Nothing is written.
///
/// # Errors
/// When it cannot be read, or a marker is unknown or unpaired.
pub fn splice(document: &Path, sources: &[SweepSource]) -> Result<Spliced, ReportError> {
    let read = |source| SpliceError::Read { path: document.to_owned(), source };
    let present = file::read_text(document).map_err(read)?;
    let mut filled = String::with_capacity(present.len());
    let mut open: Option<(usize, String)> = None;
    let mut tables = 0;
    let html = places_of_html(&present);
    let mut at = 0;
    for (index, line) in present.split_inclusive('\n').enumerate() {
        let number = index + 1;
        // Between markers stands what is replaced, whatever it is.
        let is_html = open.is_some() || html.range(at..at + line.len()).next().is_some();
        at += line.len();
        let content = line.trim_start_matches('\u{feff}').trim();
        let marker = |start: &str| Some(content.strip_prefix(start)?.strip_suffix(CLOSE)?.trim().to_owned());
        let unpaired = |name: String| SpliceError::Unpaired { path: document.to_owned(), line: number, name };
        let (begin, end) = if is_html { (marker(BEGIN), marker(END)) } else { (None, None) };
        match (begin, end, &open) {
            (Some(name), _, None) => {
                filled.push_str(line);
                let Some(table) = table(&name, document, sources)? else {
                    let (path, known) = (document.to_owned(), known(sources)?);
                    return Err(SpliceError::Unknown { path, line: number, name, known }.into());
                };
                filled.push_str(&format!("\n{table}\n"));
                open = Some((number, name));
                tables += 1;
            }
            (Some(name), _, Some(_)) => return Err(unpaired(name).into()),
            (None, Some(name), Some((_, begun))) if *begun == name => {
                filled.push_str(line);
                open = None;
            }
            (None, Some(name), _) => return Err(unpaired(name).into()),
            (None, None, Some(_)) => {}
            (None, None, None) => filled.push_str(line),
        }
    }
    if let Some((line, name)) = open {
        return Err(SpliceError::Unpaired { path: document.to_owned(), line, name }.into());
    }
    if tables == 0 {
        return Err(SpliceError::NoMarker { path: document.to_owned() }.into());
    }
    Ok(Spliced { is_in_step: present == filled, text: filled, tables })
}

/// Where HTML begins that a reader of the document would not see: markers in a code block are an example.
fn places_of_html(text: &str) -> BTreeSet<usize> {
    let events = Parser::new(text).into_offset_iter();
    let html = events.filter(|(event, _)| matches!(event, Event::Html(_) | Event::InlineHtml(_)));
    html.map(|(_, range)| range.start).collect()
}

/// A document with its tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spliced {
    /// What the file should hold.
    pub text: String,
    /// Whether it does.
    pub is_in_step: bool,
    /// How many tables it has.
    pub tables: usize,
}

/// What else lies beside the records of sweeps, each with its tables: tables of mutants, and accounts of costs.
fn tables_beside(sources: &[SweepSource]) -> Result<Vec<(String, String)>, ReportError> {
    let folders: BTreeSet<&Path> = sources.iter().map(|source| source.directory.as_path()).collect();
    let mut tables = Vec::new();
    for folder in folders {
        tables.extend(kill_tables(folder)?.into_iter().map(|(stem, table)| (stem, table.markdown())));
        tables
            .extend(cost_records(folder)?.into_iter().map(|(stem, record)| (stem, markdown(&costs::tables(&record)))));
    }
    Ok(tables)
}

fn markdown(tables: &[Table]) -> String {
    tables.iter().map(Table::markdown).collect::<Vec<_>>().join("\n")
}

fn known(sources: &[SweepSource]) -> Result<String, ReportError> {
    let tables = tables_beside(sources)?;
    let has_sizes = |source: &&SweepSource| by_size_of_problems(&source.record).is_some();
    let by_size: Vec<_> = sources.iter().filter(has_sizes).map(|source| source.stem.clone() + BY_SIZE).collect();
    let names = sources.iter().map(|source| &source.stem).chain(&by_size).chain(tables.iter().map(|(stem, _)| stem));
    let names = names.map(String::as_str).chain([RECORDS, FIGURES, STRATEGIES]);
    #[cfg(feature = "cpu")]
    let names = names.chain(super::lesson::TABLES.iter().map(|(name, _)| *name));
    Ok(names.collect::<Vec<_>>().join(", "))
}

fn table(name: &str, document: &Path, sources: &[SweepSource]) -> Result<Option<String>, ReportError> {
    if name == STRATEGIES {
        return Ok(Some(strategies().markdown()));
    }
    #[cfg(feature = "cpu")]
    if let Some(table) = super::lesson::table(name)? {
        return Ok(Some(table.markdown()));
    }
    if name == RECORDS {
        return Ok(Some(records(document, sources).markdown()));
    }
    if name == FIGURES {
        return Ok(Some(figures(document, sources)?.markdown()));
    }
    if let Some((_, table)) = tables_beside(sources)?.into_iter().find(|(stem, _)| stem == name) {
        return Ok(Some(table));
    }
    let source_of = |stem: &str| sources.iter().find(|source| source.stem == stem);
    if let Some(source) = name.strip_suffix(BY_SIZE).and_then(source_of) {
        return Ok(by_size_of_problems(&source.record).map(|table| table.markdown()));
    }
    let records: Vec<&SweepRecord> = sources.iter().map(|source| &source.record).collect();
    let text =
        |source: &SweepSource| markdown(&main_tables(&source.record, evaluation_of(&source.record, &records).as_ref()));
    Ok(source_of(name).map(text))
}

/// The strategies, from their rows.
fn strategies() -> Table {
    let row = |strategy: &Strategy| {
        let row = strategy.row();
        let cells = [row.launches, row.element_moves, row.summary].map(str::to_owned);
        [vec![format!("`{strategy}`")], cells.to_vec()].concat()
    };
    let caption = "Each strategy, its launches for one scan, and the elements that it reads and writes.".to_owned();
    Table::new(caption, &["strategy", "launches", "element-moves", ""], Strategy::ALL.iter().map(row).collect(), 4)
}

/// A link to a file of a source, from the document.
fn link(document: &Path, source: &SweepSource, text: &str, name: &str) -> String {
    let folder = document.parent().and_then(|parent| source.directory.strip_prefix(parent).ok());
    format!("[{text}]({})", folder.unwrap_or(&source.directory).join(name).display())
}

/// Where each record comes from, and how many of its figures are marked.
fn records(document: &Path, sources: &[SweepSource]) -> Table {
    let row = |source: &SweepSource| {
        let record = &source.record;
        let mut marked = BTreeMap::new();
        for (_, figure, _) in measured_figures(record).filter(|(_, _, found)| !found.is_trusted) {
            *marked.entry(figure).or_insert(0) += 1;
        }
        let which: Vec<_> = marked.iter().map(|(figure, count)| format!("{figure} {count}")).collect();
        vec![
            link(document, source, &source.stem, &source.file_name),
            day(record).to_owned(),
            or_dash(commit(record)),
            record.header.program.kernels_sha256.clone(),
            record.header.machine.gpu_digest.clone(),
            or_dash(Some(which.join(", ")).filter(|which| !which.is_empty())),
            marked.values().sum::<usize>().to_string(),
            measured_figures(record).count().to_string(),
        ]
    };
    let columns = ["record", "measured", "commit", "kernels", "card", "marked are", "marked", "figures"];
    let caption = "Each record: the day; the commit that its header names, if the program knew it; the hash of the kernels' \
                   sources; a digest of the card's identity; how many of its figures are marked, because they met no noise \
                   criterion; and how many it has.";
    Table::new(caption.to_owned(), &columns, sources.iter().map(row).collect(), 6)
}

/// Which picture is drawn from which file, and which command measured it.
fn figures(document: &Path, sources: &[SweepSource]) -> Result<Table, ReportError> {
    let mut rows = Vec::new();
    for source in sources {
        let link = |text: &str, name: &str| link(document, source, text, name);
        for plot in sweep::plots(&source.record, &source.stem)? {
            rows.push(vec![
                link(&plot.title, &plot.file_name()),
                link(&source.file_name, &source.file_name),
                format!("`{}`", source.record.header.command),
            ]);
        }
    }
    let caption = "Every picture, the data it is drawn from, and the command that measured it.".to_owned();
    Ok(Table::new(caption, &["figure", "data", "command"], rows, 3))
}
