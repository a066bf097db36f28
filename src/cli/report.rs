//! `lookback report`.

use super::console::Console;
use super::error::{CliError, EXIT_OK, EXIT_WRONG};
use crate::lab::measure::record::Status;
use crate::lab::record::Record;
use crate::lab::recorder::{lock_folder, write_atomically};
use crate::lab::report::{self, SweepSource};
use clap::Args;
use std::path::{Path, PathBuf};

/// `lookback report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArguments {
    /// Folders of `lookback sweep` or `lookback compare`, or records of sweeps
    ///
    /// A folder's page is its index.html, a single record's page is named
    /// after it. With --splice, the records to fill tables from: the folder
    /// `reports` beside the document if none is named.
    #[arg(value_name = "PATH", required_unless_present = "splice")]
    pub paths: Vec<PathBuf>,
    /// Fill the tables between the markers of a document in place of drawing
    ///
    /// A marker is a line `<!-- lookback:begin NAME -->`, closed by
    /// `<!-- lookback:end NAME -->`; NAME is a record such as size-h100, or
    /// figures for the list of all pictures.
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
    let mut is_right = true;
    for path in &arguments.paths {
        is_right &=
            if SweepSource::is_at(path) { sweeps(path, &mut console)? } else { comparison(path, &mut console)? };
    }
    Ok(if is_right { EXIT_OK } else { EXIT_WRONG })
}

fn comparison(directory: &Path, console: &mut Console) -> Result<bool, CliError> {
    let _lock = lock_folder(directory)?;
    let record = Record::read(directory)?;
    record.write(directory)?;
    let page = report::write(&record, directory)?;
    console.print(&format!("{} rows rendered: {}\n", record.rows.len(), page.display()))?;
    Ok(record.rows.iter().all(|row| row.verified))
}

fn sweeps(path: &Path, console: &mut Console) -> Result<bool, CliError> {
    let sources = SweepSource::read_all(path).map_err(report::ReportError::from)?;
    let page = match sources.first() {
        Some(source) if !path.is_dir() => source.directory.join(format!("{}.html", source.stem)),
        _ => path.join("index.html"),
    };
    let pictures = report::write_sweeps(&sources, &page)?;
    if path.is_dir() {
        let tables = report::write_kill_tables(path)?;
        if tables > 0 {
            console.print(&format!("{tables} tables of mutants rendered in {}\n", path.display()))?;
        }
    }
    let rows: usize = sources.iter().map(|source| source.record.rows.len()).sum();
    console.print(&format!("{rows} rows rendered in {pictures} pictures: {}\n", page.display()))?;
    Ok(sources.iter().flat_map(|source| &source.record.rows).all(|row| row.status != Status::Wrong))
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
        console.print(&format!("{name} is out of step with its records; run lookback report --splice {name}\n"))?;
        return Ok(EXIT_WRONG);
    }
    write_atomically(document, spliced.text.as_bytes())?;
    console.print(&format!("{name}: {tables} tables filled\n"))?;
    Ok(EXIT_OK)
}
