//! How a run is recorded: line by line while it goes on, each line written at once, so that a run that is killed loses
//! nothing it had finished.
//!
//! The lines are JSON, one object with one key each: `{"header": …}` first, then those of the [`Format`]. A last line
//! without its end is where a run was killed, and is passed over; any other damage is an error that names the line.

use crate::file::{self, RECORD_BYTES};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

/// A record of one kind, in memory: made of its header, to which lines are added.
pub trait Format: From<Self::Header> {
    /// Version of the layout; another one is refused.
    const VERSION: u32;
    /// Says how the run came about. Its field `format` is the version.
    type Header: Serialize + DeserializeOwned + Clone;
    /// What follows the header: an enum that serde tags by the name of its variant.
    type Line: Serialize + DeserializeOwned;

    /// Adds a line that was read or is being written.
    fn add(&mut self, line: Self::Line);

    /// What no two lines of a record have in common, if a line says what was run.
    fn identity(line: &Self::Line) -> Option<String>;

    /// Why a line cannot be believed, or does not belong to this record, if so.
    fn refusal(&self, _: &Self::Line) -> Option<String> {
        None
    }

    /// Why the lines cannot all be believed beside each other, if so.
    fn contradiction(&self) -> Option<String> {
        None
    }
}

/// Something that was asked for and not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Which, for example "naive at n = 2^20".
    pub what: String,
    /// Why.
    pub why: String,
}

/// A record that cannot be read, written, or gone on with.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The operating system refused an action: "read", "write", ….
    #[error("cannot {action} {}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// No record in the folder, and the command that makes one.
    #[error("{} holds no {what}; make one with `lookback {command} --output {}`", path.display(), path.display())]
    Missing { path: PathBuf, what: &'static str, command: &'static str },
    /// Not what this program writes; lines count from 1.
    #[error("{}, line {line}, is not what this program writes: {reason}; measure again, or give another file", path.display())]
    Damaged { path: PathBuf, line: usize, reason: String },
    /// Compressed data that end too soon or are none.
    #[error("{} cannot be decompressed; measure again, or give another file", path.display())]
    Compressed { path: PathBuf, source: io::Error },
    /// Written by another version.
    #[error("{} has format {found}, this program reads format {read}; use the version that wrote it", path.display())]
    Format { path: PathBuf, found: u32, read: u32 },
    /// A record is there already.
    #[error("{} is there already; go on with it by --resume, or choose another folder", path.display())]
    Exists { path: PathBuf },
    /// Two would overwrite each other's rows.
    #[error("another lookback writes into {}; wait until it is done, or choose another folder", path.display())]
    Busy { path: PathBuf },
    /// A file that this program did not make stands where it would write.
    #[error("{} was not made by `lookback {command}`, so it is not replaced; move it away, or choose another folder", path.display())]
    NotOurs { path: PathBuf, command: &'static str },
    /// What stands where a file is to be written is a folder, a pipe, a link to another place, ….
    #[error("{} is {kind} and no file, so nothing is written into it; move it away, or choose another place", path.display())]
    NoFile { path: PathBuf, kind: &'static str },
    /// The file is there, and its permissions forbid to change it.
    #[error("{} is read-only, so it is not replaced; allow writing to it, or choose another place", path.display())]
    ReadOnly { path: PathBuf },
    /// Which of them is meant is not known.
    #[error("{}: {partial} has fewer rows than {whole}, so they are of two runs; move one of them away", path.display())]
    TwoRuns { path: PathBuf, whole: &'static str, partial: &'static str },
    /// Their pictures would have the same names.
    #[error("{} and {} have one name; move or rename one of them", first.display(), second.display())]
    SameName { first: PathBuf, second: PathBuf },
    /// Rows of two machines or programs do not belong into one record: `what` is "GPU", "driver", "commit", ….
    #[error("{} was begun with {what} '{recorded}', now it is '{present}'; start anew in another folder", path.display())]
    CannotResume { path: PathBuf, what: &'static str, recorded: String, present: String },
    /// A row that is no line of CSV.
    #[error("cannot write {} as CSV", path.display())]
    Csv { path: PathBuf, source: csv::Error },
}

/// The error of an `action` ("read", "write", …) that the operating system refused.
pub fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecordError {
    move |source| RecordError::Io { action, path: path.to_owned(), source }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum First<H> {
    Header(H),
}

/// Refuses what has a header of another version, whatever else is in it.
pub(super) fn check_version(text: &[u8], path: &Path, read: u32) -> Result<(), RecordError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    #[derive(Deserialize)]
    struct Versioned {
        header: Version,
    }
    match serde_json::from_slice(text) {
        Ok(Versioned { header: Version { format: found } }) if found != read => {
            Err(RecordError::Format { path: path.to_owned(), found, read })
        }
        _ => Ok(()),
    }
}

/// Parses JSON that stands from `line` on in the file at `path`.
pub(super) fn parse<T: DeserializeOwned>(text: &[u8], path: &Path, line: usize) -> Result<T, RecordError> {
    serde_json::from_slice(text).map_err(|error| {
        let line = line + error.line().saturating_sub(1);
        let reason = if error.is_eof() { "it ends too soon".to_owned() } else { error.to_string() };
        RecordError::Damaged { path: path.to_owned(), line, reason }
    })
}

/// Reads the lines of a record, compressed or not; of an interrupted run, what was finished.
///
/// # Errors
/// When the file cannot be read, is damaged, or is of another version.
pub fn read_lines<F: Format>(path: &Path) -> Result<F, RecordError> {
    from_lines(&read_text(path)?, path)
}

/// What is in a file, which may be compressed.
pub(super) fn read_text(path: &Path) -> Result<Vec<u8>, RecordError> {
    let bytes = file::read(path, RECORD_BYTES).map_err(io_error("read", path))?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let text = file::read_up_to(MultiGzDecoder::new(&bytes[..]), RECORD_BYTES);
    text.map_err(|source| RecordError::Compressed { path: path.to_owned(), source })
}

/// Bytes as they stand compressed in the file at `path`: without name and time, so that the same gives the same.
pub(super) fn compressed(bytes: &[u8], path: &Path) -> Result<Vec<u8>, RecordError> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(io_error("compress", path))
}

/// The record whose lines these are; `path` is for the error.
pub(super) fn from_lines<F: Format>(text: &[u8], path: &Path) -> Result<F, RecordError> {
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut record: Option<F> = None;
    let mut seen = HashMap::new();
    for (index, line) in text[..whole].split(|&byte| byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        if let Some(record) = &mut record {
            let line = parse(line, path, index + 1)?;
            let earlier = F::identity(&line).and_then(|identity| seen.insert(identity, index + 1));
            let twice =
                earlier.map(|earlier| format!("it is the same configuration as line {earlier}, and would count twice"));
            if let Some(reason) = twice.or_else(|| record.refusal(&line)) {
                return Err(RecordError::Damaged { path: path.to_owned(), line: index + 1, reason });
            }
            record.add(line);
        } else {
            check_version(line, path, F::VERSION)?;
            let First::Header(header) = parse(line, path, index + 1)?;
            record = Some(F::from(header));
        }
    }
    let damaged = |reason| RecordError::Damaged { path: path.to_owned(), line: 1, reason };
    let record = record.ok_or_else(|| damaged("the header is missing or cut off".to_owned()))?;
    match record.contradiction() {
        Some(reason) => Err(damaged(reason)),
        None => Ok(record),
    }
}

/// Writes a file beside its place and renames it there, so that a reader never sees half of it. A file that is replaced
/// leaves its permissions; what a link points at is written, and the link stays.
///
/// # Errors
/// When the folder cannot be written; a file that is there is read-only, or no file.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let target = if path.is_symlink() { fs::canonicalize(path) } else { Ok(path.to_owned()) };
    let target = target.map_err(io_error("write", path))?;
    let permissions = match target.metadata() {
        Ok(metadata) => Some(permissions_to_replace(&metadata, path)?),
        // Whatever else is in the way says so when it is written.
        Err(_) => None,
    };
    let file = written_beside(&target, bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions).map_err(io_error("write", path))?;
    }
    file.persist(&target).map_err(|error| io_error("write", path)(error.error))?;
    Ok(())
}

/// The permissions of a file that may be replaced.
fn permissions_to_replace(metadata: &fs::Metadata, path: &Path) -> Result<fs::Permissions, RecordError> {
    let path_of = || path.to_owned();
    match (file::kind_of_no_file(metadata.file_type()), metadata.permissions()) {
        (Some(kind), _) => Err(RecordError::NoFile { path: path_of(), kind }),
        (None, permissions) if permissions.readonly() => Err(RecordError::ReadOnly { path: path_of() }),
        (None, permissions) => Ok(permissions),
    }
}

/// Refuses what a growing record would wait for, or write through to a file of somebody else.
fn check_own_file(path: &Path) -> Result<(), RecordError> {
    let kind = path.symlink_metadata().ok().and_then(|metadata| file::kind_of_no_file(metadata.file_type()));
    kind.map_or(Ok(()), |kind| Err(RecordError::NoFile { path: path.to_owned(), kind }))
}

/// The same where nothing is yet: a file that is there stays.
///
/// # Errors
/// When the folder cannot be written, or the file is there.
pub fn write_anew(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let file = written_beside(path, bytes)?;
    file.persist_noclobber(path).map_err(|error| io_error("write", path)(error.error))?;
    Ok(())
}

/// A temporary file with these bytes in the folder of `path`.
fn written_beside(path: &Path, bytes: &[u8]) -> Result<NamedTempFile, RecordError> {
    let directory = folder_of(path);
    // Made as any file a program makes: the operating system takes off what the user's mask forbids. Made and written
    // here, because the library's errors name the temporary file, which says nothing to whoever named `path`.
    let create = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let mut file = tempfile::Builder::new().make_in(directory, create).map_err(io_error("write into", directory))?;
    file.as_file_mut().write_all(bytes).map_err(io_error("write", path))?;
    Ok(file)
}

/// Makes a folder if need be, and locks it.
///
/// # Errors
/// When it cannot be made, or as [`lock_folder`].
pub fn claim_folder(folder: &Path) -> Result<Lock, RecordError> {
    fs::create_dir_all(folder).map_err(io_error("make the folder", folder))?;
    lock_folder(folder)
}

/// Keeps every other process of this program out of a folder until the lock is dropped, or the process ends in whatever
/// way.
///
/// # Errors
/// When another process is there.
pub fn lock_folder(folder: &Path) -> Result<Lock, RecordError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // A folder that is not there says so when it is read. Where a system cannot lock folders, nothing keeps two apart.
    let Ok(file) = File::open(folder) else { return Ok(Lock { _file: None }) };
    match lock_patiently(&file) {
        Err(TryLockError::WouldBlock) => Err(RecordError::Busy { path: folder.to_owned() }),
        _ => Ok(Lock { _file: Some(file) }),
    }
}

/// Locks a file for as long as it is open. Tries for a moment: a process that is just being started holds the locks of who starts it,
/// until it is another program.
///
/// # Errors
/// When another process has the lock, or the system cannot lock files.
pub(crate) fn lock_patiently(file: &File) -> Result<(), TryLockError> {
    const PATIENCE: Duration = Duration::from_secs(1);
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 50),
            ended => return ended,
        }
    }
}

/// The folder of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What [`lock_folder`] has locked.
#[derive(Debug)]
pub struct Lock {
    _file: Option<File>,
}

/// A record that grows on disk while the run goes on.
#[derive(Debug)]
pub struct Recorder<F> {
    record: F,
    path: PathBuf,
    /// `None` if the record is kept in memory only.
    file: Option<File>,
    lock: Option<Lock>,
}

impl<F: Format> Recorder<F> {
    /// A record that is kept in memory only.
    pub fn in_memory(header: F::Header) -> Self {
        Self { record: header.into(), path: PathBuf::new(), file: None, lock: None }
    }

    /// Starts a record in a file of a folder that is locked.
    ///
    /// # Errors
    /// When the file cannot be written, or is none.
    pub fn create(path: &Path, lock: Lock, header: F::Header) -> Result<Self, RecordError> {
        check_own_file(path)?;
        let file = File::create(path).map_err(io_error("write", path))?;
        let record = header.clone().into();
        let mut recorder = Self { record, path: path.to_owned(), file: Some(file), lock: Some(lock) };
        recorder.write(&First::Header(header))?;
        Ok(recorder)
    }

    /// Goes on with a record: this header and these lines replace what is in the file, if it is there.
    ///
    /// # Errors
    /// When the file cannot be written, or is none.
    pub fn replace(path: &Path, lock: Lock, header: F::Header, lines: Vec<F::Line>) -> Result<Self, RecordError> {
        check_own_file(path)?;
        let text: String = lines.iter().map(text_of).collect();
        write_atomically(path, (text_of(&First::Header(header.clone())) + &text).as_bytes())?;
        let file = OpenOptions::new().append(true).open(path).map_err(io_error("write", path))?;
        let mut record = F::from(header);
        lines.into_iter().for_each(|line| record.add(line));
        Ok(Self { record, path: path.to_owned(), file: Some(file), lock: Some(lock) })
    }

    /// Keeps a line.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn keep(&mut self, line: F::Line) -> Result<(), RecordError> {
        self.write(&line)?;
        self.record.add(line);
        Ok(())
    }

    /// What is there so far, an earlier run's part first.
    pub const fn record(&self) -> &F {
        &self.record
    }

    /// Where the record is; empty if it is in memory only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the record, its file removed; its folder stays locked as long as the lock is kept.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn discard_file(self) -> Result<(F, Option<Lock>), RecordError> {
        match fs::remove_file(&self.path) {
            Err(error) if self.file.is_some() && error.kind() != io::ErrorKind::NotFound => {
                Err(io_error("remove", &self.path)(error))
            }
            _ => Ok((self.record, self.lock)),
        }
    }

    /// Ends the record: compresses its file to one named `.jsonl.gz`, and says where it is.
    ///
    /// # Errors
    /// When the disk refuses it; the plain file then stays.
    pub fn compress(self) -> Result<PathBuf, RecordError> {
        if let Some(file) = &self.file {
            file.sync_all().map_err(io_error("write", &self.path))?;
        }
        let text = fs::read(&self.path).map_err(io_error("read", &self.path))?;
        let path = self.path.with_extension("jsonl.gz");
        write_atomically(&path, &compressed(&text, &path)?)?;
        self.discard_file()?;
        Ok(path)
    }

    /// One write a line, unbuffered: what was written before a kill is whole lines and at most one piece.
    fn write(&mut self, line: &impl Serialize) -> Result<(), RecordError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(text_of(line).as_bytes()).map_err(io_error("write", &self.path))
    }
}

fn text_of(line: &impl Serialize) -> String {
    let mut text = serde_json::to_string(line).expect("a line has string keys and finite numbers");
    text.push('\n');
    text
}
