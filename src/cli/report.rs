//! `lookback report`.

use super::compare::{exit_code, quoted};
use super::console::Console;
use super::costs;
use super::error::{CliError, EXIT_OK, EXIT_WRONG};
use crate::lab::costs::CostRecord;
use crate::lab::measure::record::Status;
use crate::lab::ranks::record::RankRecord;
use crate::lab::record::Record;
use crate::lab::recorder::{lock_folder, write_atomically};
use crate::lab::report::{self, SweepSource};
use crate::lab::stress::table::KillTable;
use crate::lab::trace::record::TraceRecord;
use clap::Args;
use std::path::{Path, PathBuf};

/// `lookback report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArguments {
    /// Folders of `lookback sweep`, `compare` (with --ranks, too) or `trace`, records
    /// of sweeps, tables of mutants, or accounts of costs (costs-….json)
    ///
    /// A folder's page is its index.html, a single record's page is named
    /// after it. With --splice, the records to fill tables from: the folder
    /// `reports` beside the document if none is named.
    #[arg(value_name = "PATH", required_unless_present = "splice")]
    pub paths: Vec<PathBuf>,
    /// Fill the tables between the markers of a document in place of drawing
    ///
    /// A marker is a line `<!-- lookback:begin NAME -->`, closed by
    /// `<!-- lookback:end NAME -->`; NAME is a record such as size-h100,
    /// the same with -by-size behind it for what auto takes by size,
    /// records for where all come from, or figures for all pictures.
    #[arg(long, value_name = "FILE")]
    pub splice: Option<PathBuf>,
    /// Write nothing; exit with 1 if the document's tables are out of step
    #[arg(long, requires = "splice")]
    pub check: bool,
}

/// Runs `lookback report` and returns the exit code.
///
/// # Errors
/// When a record cannot be read, or a file cannot be written.
pub fn report(arguments: &ReportArguments) -> Result<u8, CliError> {
    let mut console = Console::new(false);
    if let Some(document) = &arguments.splice {
        return splice(document, arguments, &mut console);
    }
    let mut codes = Vec::new();
    for path in &arguments.paths {
        codes.push(render(path, &mut console)?);
    }
    // One that is wrong outweighs all others.
    let worst = codes.iter().max_by_key(|&&code| (code == EXIT_WRONG, code));
    Ok(worst.copied().unwrap_or(EXIT_OK))
}

/// Renders what is there: what it is says its name.
fn render(path: &Path, console: &mut Console) -> Result<u8, CliError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if path.is_dir() {
        if TraceRecord::is_in(path) {
            traces(path, console)
        } else if RankRecord::is_in(path) {
            ranks(path, console)
        } else if SweepSource::is_at(path) {
            sweeps(path, console)
        } else if Record::is_in(path) || report::kill_tables(path)?.is_empty() {
            comparison(path, console)
        } else {
            mutants(path, console)
        }
    } else if Record::is_named(&name) {
        comparison(folder, console)
    } else if CostRecord::is_named(&name) {
        let record = CostRecord::read(path)?;
        console.print(&costs::text(&record, console))?;
        Ok(costs::exit_code(&record))
    } else if name.ends_with(".json") {
        mutants(path, console)
    } else {
        sweeps(path, console)
    }
}

fn traces(folder: &Path, console: &mut Console) -> Result<u8, CliError> {
    let _lock = lock_folder(folder)?;
    let record = TraceRecord::read(folder)?;
    let page = report::write_traces(&record, folder)?;
    let scans = record.scans.len();
    let count = if scans == 1 { "1 recorded scan".to_owned() } else { format!("{scans} recorded scans") };
    console.print(&format!("{count} rendered: {}\n", page.display()))?;
    Ok(if record.scans.iter().all(|scan| scan.recording.is_right) { EXIT_OK } else { EXIT_WRONG })
}

fn ranks(folder: &Path, console: &mut Console) -> Result<u8, CliError> {
    let _lock = lock_folder(folder)?;
    let record = RankRecord::read(folder)?;
    let pictures = report::write_ranks(&record, folder)?;
    console.print(&format!("{} rows rendered in {pictures} pictures: {}\n", record.rows.len(), folder.display()))?;
    Ok(if record.rows.iter().all(|row| row.wrong == 0) { EXIT_OK } else { EXIT_WRONG })
}

fn mutants(path: &Path, console: &mut Console) -> Result<u8, CliError> {
    let tables = report::write_kill_tables(path)?;
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let count = if tables.len() == 1 { "1 table".to_owned() } else { format!("{} tables", tables.len()) };
    console.print(&format!("{count} of mutants rendered in {}\n", folder.display()))?;
    Ok(if tables.iter().any(KillTable::is_wrong) { EXIT_WRONG } else { EXIT_OK })
}

/// Renders the tables of mutants in a folder, if it has any.
fn tables_beside(folder: &Path, console: &mut Console) -> Result<u8, CliError> {
    if report::kill_tables(folder)?.is_empty() { Ok(EXIT_OK) } else { mutants(folder, console) }
}

fn comparison(directory: &Path, console: &mut Console) -> Result<u8, CliError> {
    let _lock = lock_folder(directory)?;
    let record = Record::read(directory)?;
    check_rows(record.rows.len(), directory, Record::is_unfinished(directory))?;
    record.write(directory)?;
    let page = report::write(&record, directory)?;
    let code_of_tables = tables_beside(directory, console)?;
    console.print(&format!("{} rows rendered: {}\n", record.rows.len(), page.display()))?;
    Ok(match exit_code(&record) {
        EXIT_OK => code_of_tables,
        code => code,
    })
}

fn sweeps(path: &Path, console: &mut Console) -> Result<u8, CliError> {
    let sources = SweepSource::read_all(path).map_err(report::ReportError::from)?;
    let rows: usize = sources.iter().map(|source| source.record.rows.len()).sum();
    check_rows(rows, path, sources.iter().any(|source| source.record.finished.is_none()))?;
    let page = match sources.first() {
        Some(source) if !path.is_dir() => source.directory.join(format!("{}.html", source.stem)),
        _ => path.join("index.html"),
    };
    let pictures = report::write_sweeps(&sources, &page)?;
    let code_of_tables = if path.is_dir() { tables_beside(path, console)? } else { EXIT_OK };
    console.print(&format!("{rows} rows rendered in {pictures} pictures: {}\n", page.display()))?;
    let is_wrong = sources.iter().flat_map(|source| &source.record.rows).any(|row| row.status == Status::Wrong);
    Ok(if is_wrong { EXIT_WRONG } else { code_of_tables })
}

/// Refuses to draw nothing.
fn check_rows(rows: usize, path: &Path, is_unfinished: bool) -> Result<(), CliError> {
    if rows > 0 {
        return Ok(());
    }
    let path = path.display();
    Err(CliError::Usage(if is_unfinished {
        format!("{path} has no result yet, so there is nothing to draw; go on with the run by --resume")
    } else {
        format!("{path} is of a finished run without results, so there is nothing to draw; run what can be measured")
    }))
}

fn splice(document: &Path, arguments: &ReportArguments, console: &mut Console) -> Result<u8, CliError> {
    let beside = document.parent().unwrap_or(Path::new("")).join("reports");
    let paths = if arguments.paths.is_empty() { std::slice::from_ref(&beside) } else { &arguments.paths };
    let mut sources = Vec::new();
    for path in paths {
        sources.extend(SweepSource::read_all(path).map_err(report::ReportError::from)?);
    }
    let spliced = report::splice(document, &sources)?;
    let (name, tables) = (document.display(), spliced.tables);
    if spliced.is_in_step {
        console.print(&format!("{name}: {tables} tables in step\n"))?;
        return Ok(EXIT_OK);
    }
    if arguments.check {
        let words = std::iter::once(document).chain(arguments.paths.iter().map(PathBuf::as_path));
        let words = words.map(|path| quoted(&path.to_string_lossy()));
        let words = words.collect::<Vec<_>>().join(" ");
        console.print(&format!("{name} is out of step with its records; run lookback report --splice {words}\n"))?;
        return Ok(EXIT_WRONG);
    }
    write_atomically(document, spliced.text.as_bytes())?;
    console.print(&format!("{name}: {tables} tables filled\n"))?;
    Ok(EXIT_OK)
}
