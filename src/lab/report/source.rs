//! The records in a folder: of sweeps, tables of mutants, and accounts of costs.

use super::error::ReportError;
use crate::file;
use crate::lab::costs::CostRecord;
use crate::lab::measure::record::{SweepRecord, stem};
use crate::lab::recorder::RecordError;
use crate::lab::stress::table::KillTable;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A sweep's record and where it lies.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepSource {
    /// The folder of the record, and of its pictures.
    pub directory: PathBuf,
    /// Name of the record's file.
    pub file_name: String,
    /// The same without its ending, for example `size-h100`.
    pub stem: String,
    /// What the file holds.
    pub record: SweepRecord,
}

impl SweepSource {
    /// Whether this is a file, or a folder with files, whose names are those of sweep records.
    pub fn is_at(path: &Path) -> bool {
        SweepRecord::files(path).is_ok()
    }

    /// Reads a file, or every record in a folder in the order of their names.
    ///
    /// # Errors
    /// When there is none, one is damaged, or two differ in their endings alone.
    pub fn read_all(path: &Path) -> Result<Vec<Self>, RecordError> {
        let read = |file: &PathBuf| {
            let file_name = name_of(file);
            let stem = stem(&file_name).unwrap_or(&file_name).to_owned();
            let directory = file.parent().unwrap_or(Path::new("")).to_owned();
            Ok(Self { directory, file_name, stem, record: SweepRecord::read(file)? })
        };
        let files = SweepRecord::files(path)?;
        let mut stems = BTreeMap::new();
        for file in &files {
            if let Some(first) = stems.insert(stem(&name_of(file)).map(str::to_owned), file) {
                return Err(RecordError::SameName { first: first.clone(), second: file.clone() });
            }
        }
        files.iter().map(read).collect()
    }
}

/// Other records in the folder of this one whose names go on where its own ends: pictures of theirs may look like its own.
pub(super) fn longer_stems(source: &SweepSource) -> Vec<String> {
    let folder = if source.directory.as_os_str().is_empty() { Path::new(".") } else { &source.directory };
    let files = SweepRecord::files(folder).unwrap_or_default();
    let stems = files.iter().filter_map(|file| stem(&name_of(file)).map(str::to_owned));
    stems.filter(|stem| stem.strip_prefix(&source.stem).is_some_and(|rest| rest.starts_with('-'))).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// How the names of tables of mutants start.
const KILL_TABLE: &str = "mutants-";

/// The table of mutants in a file, or those in a folder: files named `mutants-….json`, in the order of their names.
///
/// # Errors
/// When one cannot be read.
pub fn kill_tables(path: &Path) -> Result<Vec<(String, KillTable)>, ReportError> {
    let is_named = |name: &str| name.starts_with(KILL_TABLE) && name.ends_with(".json");
    let files = if path.is_dir() { files_named(path, is_named) } else { vec![path.to_owned()] };
    let mut tables = Vec::new();
    for path in files {
        let broken = |reason: String| ReportError::KillTable { path: path.clone(), reason };
        let text = file::read_text(&path).map_err(|error| broken(error.to_string()))?;
        let table = KillTable::from_json(&text).map_err(|error| broken(error.to_string()))?;
        tables.push((json_stem(&path), table));
    }
    Ok(tables)
}

/// The accounts of costs in a folder, in the order of their names.
///
/// # Errors
/// When one cannot be read.
pub(super) fn cost_records(folder: &Path) -> Result<Vec<(String, CostRecord)>, RecordError> {
    let files = files_named(folder, CostRecord::is_named);
    files.iter().map(|path| Ok((json_stem(path), CostRecord::read(path)?))).collect()
}

/// The files of a folder whose names are so, in the order of their names.
fn files_named(folder: &Path, is_named: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths.filter(|path| is_named(&name_of(path))).collect();
    files.sort_by_key(|path| json_stem(path));
    files
}

fn json_stem(path: &Path) -> String {
    let name = name_of(path);
    name.strip_suffix(".json").unwrap_or(&name).to_owned()
}
