//! Tables between markers in a document, so that no figure in it is typed by hand.
//!
//! ```text
//! <!-- lookback:begin size-h100 -->
//! what stands here is replaced
//! <!-- lookback:end size-h100 -->
//! ```
//!
//! The name is that of a record's file without its ending (a sweep's, or a table of mutants), `figures` for a table of all
//! pictures with their data and commands, or `strategies` for the table of strategies.

use super::error::{ReportError, SpliceError};
use super::source::{SweepSource, kill_tables};
use super::sweep;
use super::table::Table;
use super::tables::{evaluation_of, main_tables};
use crate::file;
use crate::lab::stress::table::KillTable;
use crate::strategy::Strategy;
use std::collections::BTreeSet;
use std::path::Path;

const BEGIN: &str = "<!-- lookback:begin ";
const END: &str = "<!-- lookback:end ";
const CLOSE: &str = " -->";
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
    // Markers in a code block are an example.
    let mut code: Option<Fence> = None;
    for (index, line) in present.split_inclusive('\n').enumerate() {
        let number = index + 1;
        let marker = |start: &str| Some(line.trim().strip_prefix(start)?.strip_suffix(CLOSE)?.trim().to_owned());
        let unpaired = |name: String| SpliceError::Unpaired { path: document.to_owned(), line: number, name };
        let is_code = code.is_some();
        if open.is_none() {
            code = match code {
                Some(fence) => (!fence.is_closed_by(line)).then_some(fence),
                None => Fence::opened_by(line),
            };
        }
        let (begin, end) = if is_code { (None, None) } else { (marker(BEGIN), marker(END)) };
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

/// The fence of a code block, as CommonMark has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    character: char,
    length: usize,
}

impl Fence {
    /// The fence that a line begins with, and what stands behind it.
    fn at_start(line: &str) -> Option<(Self, &str)> {
        const MOST_BLANKS: usize = 3;
        let text = line.trim_start_matches(' ');
        let character = text.chars().next().filter(|&character| character == '`' || character == '~')?;
        let rest = text.trim_start_matches(character);
        let length = text.len() - rest.len();
        (length >= 3 && line.len() - text.len() <= MOST_BLANKS).then_some((Self { character, length }, rest))
    }

    fn opened_by(line: &str) -> Option<Self> {
        let (fence, info) = Self::at_start(line)?;
        // Else it is code inside a line.
        (fence.character != '`' || !info.contains('`')).then_some(fence)
    }

    fn is_closed_by(self, line: &str) -> bool {
        Self::at_start(line).is_some_and(|(fence, rest)| {
            fence.character == self.character && fence.length >= self.length && rest.trim().is_empty()
        })
    }
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

/// The tables of mutants beside the records of sweeps.
fn kill_tables_of(sources: &[SweepSource]) -> Result<Vec<(String, KillTable)>, ReportError> {
    let folders: BTreeSet<&Path> = sources.iter().map(|source| source.directory.as_path()).collect();
    let mut tables = Vec::new();
    for folder in folders {
        tables.extend(kill_tables(folder)?);
    }
    Ok(tables)
}

fn known(sources: &[SweepSource]) -> Result<String, ReportError> {
    let tables = kill_tables_of(sources)?;
    let names = sources.iter().map(|source| &source.stem).chain(tables.iter().map(|(stem, _)| stem));
    Ok(names.map(String::as_str).chain([FIGURES, STRATEGIES]).collect::<Vec<_>>().join(", "))
}

fn table(name: &str, document: &Path, sources: &[SweepSource]) -> Result<Option<String>, ReportError> {
    if name == STRATEGIES {
        return Ok(Some(strategies().markdown()));
    }
    if name == FIGURES {
        return Ok(Some(figures(document, sources)?.markdown()));
    }
    if let Some((_, table)) = kill_tables_of(sources)?.iter().find(|(stem, _)| stem == name) {
        return Ok(Some(table.markdown()));
    }
    let text = |source: &SweepSource| {
        let tables = main_tables(&source.record, evaluation_of(&source.record).as_ref());
        tables.iter().map(Table::markdown).collect::<Vec<_>>()
    };
    Ok(sources.iter().find(|source| source.stem == name).map(|source| text(source).join("\n")))
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

/// Which picture is drawn from which file, and which command measured it.
fn figures(document: &Path, sources: &[SweepSource]) -> Result<Table, ReportError> {
    let mut rows = Vec::new();
    for source in sources {
        let folder = document.parent().and_then(|parent| source.directory.strip_prefix(parent).ok());
        let folder = folder.unwrap_or(&source.directory);
        let link = |text: &str, name: &str| format!("[{text}]({})", folder.join(name).display());
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
