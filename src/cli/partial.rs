//! A file that is being written for a long time, and what is known of it: `OUTPUT.partial`, which has another name once it is
//! whole, and `OUTPUT.partial.json`, the journal, which says up to where it is valid.
//!
//! **What is guaranteed.** A file called `OUTPUT` is whole. The journal names elements that were written and synced to the disk
//! before it was, and the state behind them; it is replaced in one step. So a process that is killed at any time, or a machine
//! that loses its power, leaves a journal that is true, though it may name fewer elements than were written; what is behind them
//! is written again. One process at a time writes: it holds a lock on the partial file, which the operating system takes off
//! when the process ends in whatever way.

use crate::element::{ElementType, Operator};
use crate::file::{self, TEXT_BYTES};
use crate::lab::recorder::{folder_of, lock_patiently};
use crate::out_of_core::Checkpoint;
use crate::strategy::Mode;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// What has to be the same for an output to be gone on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Bytes of the input file.
    pub input_bytes: u64,
    /// When it was last written, in ns since 1970.
    pub input_modified_ns: u64,
    /// SHA-256 of its first bytes, up to a MiB.
    pub input_head_sha256: String,
    /// What it holds.
    pub input_type: ElementType,
    /// What is written.
    pub output_type: ElementType,
    /// The scan.
    pub operator: Operator,
    /// The scan.
    pub mode: Mode,
    /// Bytes before the first element of the output.
    pub output_header_bytes: u64,
    /// Bytes of the output.
    pub output_bytes: u64,
}

const FORMAT: u32 = 1;
/// How the text of a journal begins.
const JOURNAL_BEGINS: &[u8] = b"{\"format\":";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Journal {
    format: u32,
    identity: Identity,
    elements: u64,
    state: Vec<u8>,
}

/// An output that cannot be begun, gone on with or ended.
#[derive(Debug, thiserror::Error)]
pub enum PartialError {
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// Another process writes it.
    #[error("{} is being written by another process; wait for it, or choose another name for --output", path.display())]
    Busy { path: PathBuf },
    /// An earlier run was not ended.
    #[error(
        "{} is there, of a scan that was not ended: go on with it by --resume, or delete it and begin again",
        path.display()
    )]
    NotEnded { path: PathBuf },
    /// There is an output, and nothing says what is valid of it.
    #[error("{} is there without its journal {}, so nothing says what is valid of it; delete it", path.display(), journal.display())]
    NoJournal { path: PathBuf, journal: PathBuf },
    /// A file of the user has the name of a journal.
    #[error("{} is there and no journal of this program; move it away, or choose another name for --output", path.display())]
    Foreign { path: PathBuf },
    /// A journal of something else than the file beside it.
    #[error("{} is not what this program writes, or not of the file beside it: {reason}; delete both and begin again", path.display())]
    Damaged { path: PathBuf, reason: String },
    /// Of another scan, or of another input.
    #[error(
        "{} is of another scan: its {field} is {kept}, this one's {asked}; choose another name for --output, or delete it",
        path.display()
    )]
    Other { path: PathBuf, field: String, kept: String, asked: String },
    /// Somebody made a file of that name meanwhile.
    #[error("{} was made by somebody else meanwhile and is not replaced; the whole output is {}", output.display(), path.display())]
    Taken { output: PathBuf, path: PathBuf },
}

/// The file, locked, and its journal.
#[derive(Debug)]
pub struct Partial {
    file: File,
    path: PathBuf,
    journal: PathBuf,
    /// The next journal, while it is being written.
    new: PathBuf,
    output: PathBuf,
    identity: Identity,
    /// Elements that the journal names.
    kept: Cell<u64>,
}

/// Where an output, its journal, and the next journal while it is being written, lie until the output is whole.
pub(super) fn places(output: &Path) -> [PathBuf; 3] {
    [".partial", ".partial.json", ".partial.json.new"].map(|ending| {
        let mut name = output.as_os_str().to_owned();
        name.push(ending);
        name.into()
    })
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PartialError {
    move |source| PartialError::Io { action, path: path.to_owned(), source }
}

impl Partial {
    /// Begins an output with these first bytes, or goes on with what an earlier run of the same scan has left, if `resumes`. Of nothing
    /// that is left it begins anew.
    ///
    /// # Errors
    /// Another process, what an earlier run has left if not `resumes`, what is left of another scan or damaged, and when the
    /// operating system refuses.
    pub fn open(
        output: &Path,
        identity: Identity,
        header: &[u8],
        resumes: bool,
    ) -> Result<(Self, Checkpoint), PartialError> {
        let places = places(output);
        for place in &places {
            let kind = place.symlink_metadata().ok().and_then(|metadata| file::kind_of_no_file(metadata.file_type()));
            if let Some(kind) = kind {
                let error = io::Error::new(io::ErrorKind::InvalidInput, format!("it is {kind}"));
                return Err(io_error("write", place)(error));
            }
        }
        let [path, journal, new] = places;
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = opened.map_err(io_error("write", &path))?;
        lock(&file, &path)?;
        let bytes = file.metadata().map_err(io_error("read", &path))?.len();
        let kept = Cell::new(0);
        let partial = Self { file, path, journal, new, output: output.to_owned(), identity, kept };
        if let Err(error) = partial.refuse_foreign(bytes) {
            if bytes == 0 {
                // It was made right now, and stays nobody's.
                let _ = fs::remove_file(&partial.path);
            }
            return Err(error);
        }
        let has_journal = partial.journal.symlink_metadata().is_ok();
        let done = match (has_journal, resumes) {
            // One of no bytes was made right now, or by a run that was killed right then: what a journal beside it tells of is gone.
            _ if bytes == 0 => Checkpoint::default(),
            (false, true) => {
                return Err(PartialError::NoJournal { path: partial.path, journal: partial.journal });
            }
            (false, false) => return Err(PartialError::NotEnded { path: partial.path }),
            (true, _) => match partial.read_journal(bytes) {
                Ok(done) if done.elements == 0 => done,
                _ if !resumes => return Err(PartialError::NotEnded { path: partial.path }),
                read => read?,
            },
        };
        partial.kept.set(done.elements);
        if done.elements == 0 {
            // The journal first: whatever is killed from here on goes on with it.
            partial.write_journal(&done).map_err(io_error("write", &partial.journal))?;
            let begin = || {
                let mut file = &partial.file;
                file.set_len(0)?;
                file.write_all(header)?;
                file.set_len(partial.identity.output_bytes)
            };
            begin().map_err(io_error("write", &partial.path))?;
        }
        Ok((partial, done))
    }

    /// The file, to be written by position.
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Elements that the journal says are valid.
    pub const fn kept(&self) -> u64 {
        self.kept.get()
    }

    /// Where it lies until it is whole.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses files of the user that would be replaced: in the place of the next journal what is not how one begins, since a kill
    /// leaves it at any byte; and in that of the journal what is none. A journal beside an output of some bytes is read anyway.
    fn refuse_foreign(&self, bytes: u64) -> Result<(), PartialError> {
        let text_of = |path: &Path| match file::read(path, TEXT_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some).map_err(io_error("read", path)),
        };
        let begins = |text: &Vec<u8>| text.iter().zip(JOURNAL_BEGINS).all(|(found, begins)| found == begins);
        let is_whole = |text: &Vec<u8>| bytes > 0 || serde_json::from_slice::<Journal>(text).is_ok();
        let foreign = match (text_of(&self.new)?, text_of(&self.journal)?) {
            (Some(text), _) if !begins(&text) => &self.new,
            (_, Some(text)) if !is_whole(&text) => &self.journal,
            _ => return Ok(()),
        };
        Err(PartialError::Foreign { path: foreign.clone() })
    }

    fn read_journal(&self, bytes: u64) -> Result<Checkpoint, PartialError> {
        let path = &self.journal;
        let damaged = |reason| PartialError::Damaged { path: path.clone(), reason };
        let text = file::read(path, TEXT_BYTES).map_err(io_error("read", path))?;
        let kept: Journal = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if kept.format != FORMAT {
            return Err(damaged(format!("it has format {}, this program writes {FORMAT}", kept.format)));
        }
        if kept.elements == 0 {
            // Of whatever scan: there is nothing to lose.
            return Ok(Checkpoint::default());
        }
        if let Some((field, kept, asked)) = difference(&kept.identity, &self.identity) {
            return Err(PartialError::Other { path: self.path.clone(), field, kept, asked });
        }
        if bytes != self.identity.output_bytes {
            return Err(damaged(format!("the file has {bytes} bytes, not {}", self.identity.output_bytes)));
        }
        let bytes_of_elements = kept.elements.checked_mul(self.identity.output_type.bytes() as u64);
        let room = self.identity.output_bytes - self.identity.output_header_bytes;
        if bytes_of_elements.is_none_or(|bytes| bytes > room) {
            return Err(damaged(format!("it names {} elements, more than there are", kept.elements)));
        }
        Ok(Checkpoint { elements: kept.elements, state: kept.state })
    }

    /// Keeps how far the output is valid: first it goes to the disk, then the journal is replaced.
    ///
    /// # Errors
    /// When the operating system refuses; the earlier journal stays true.
    pub fn keep(&self, done: &Checkpoint) -> io::Result<()> {
        self.file.sync_data()?;
        self.write_journal(done)?;
        self.kept.set(done.elements);
        Ok(())
    }

    /// Deletes both files if nothing is kept that a later run would go on from.
    pub fn discard_if_empty(self) {
        if self.kept.get() == 0 {
            // What cannot be deleted is begun anew by the next run. The file that is locked goes last.
            let _ = fs::remove_file(&self.new);
            let _ = fs::remove_file(&self.journal);
            let _ = fs::remove_file(&self.path);
        }
    }

    fn write_journal(&self, done: &Checkpoint) -> io::Result<()> {
        let Checkpoint { elements, state } = done.clone();
        let journal = Journal { format: FORMAT, identity: self.identity.clone(), elements, state };
        let text = serde_json::to_vec(&journal)?;
        // Of a name that is known, so that one that is left by a kill is written again; the lock keeps others away. It is deleted
        // before it is made, so that no link is followed.
        match fs::remove_file(&self.new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::create_new(&self.new)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&self.new, &self.journal)
    }

    /// Gives the file its name, when all of it is on the disk. Then it is whole.
    ///
    /// # Errors
    /// When a file of that name is there by now, or the operating system refuses.
    pub fn finish(self) -> Result<(), PartialError> {
        let Self { file, path, journal, new, output, .. } = self;
        file.sync_all().map_err(io_error("write", &path))?;
        let named = TempPath::try_from_path(&path).map_err(io_error("rename", &path))?;
        if let Err(error) = named.persist_noclobber(&output) {
            let reason = error.error;
            // It stays, under the name that it has.
            let _ = error.path.keep();
            return Err(match reason.kind() {
                io::ErrorKind::AlreadyExists => PartialError::Taken { output, path },
                _ => io_error("rename", &path)(reason),
            });
        }
        // The new name is on the disk when the folder is; where a system does not sync folders, nothing can be done.
        let _ = File::open(folder_of(&output)).and_then(|folder| folder.sync_all());
        // What cannot be deleted tells of a file that is no longer there, and is replaced by the next run.
        let _ = fs::remove_file(&new);
        let _ = fs::remove_file(&journal);
        Ok(())
    }
}

/// Locks the file for as long as it is open.
fn lock(file: &File, path: &Path) -> Result<(), PartialError> {
    match lock_patiently(file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(PartialError::Busy { path: path.to_owned() }),
        // Where a system cannot lock files, nothing keeps two apart.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(io_error("lock", path)(error)),
    }
    // Whoever had it before may have given it its other name.
    let is_the_same = is_one_file(file, path).map_err(io_error("read", path))?;
    if is_the_same { Ok(()) } else { Err(PartialError::Busy { path: path.to_owned() }) }
}

/// Whether the open file is the one of that name.
///
/// # Errors
/// When the operating system refuses.
pub(super) fn is_one_file(file: &File, path: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let here = file.metadata()?;
        match fs::metadata(path) {
            Ok(there) => Ok((here.dev(), here.ino()) == (there.dev(), there.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (file, path);
        Ok(true)
    }
}

/// The first field in which two differ, and its values.
fn difference(kept: &Identity, asked: &Identity) -> Option<(String, String, String)> {
    let fields = |identity| match serde_json::to_value(identity) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (kept, asked) = (fields(kept), fields(asked));
    let text = |value: Option<&serde_json::Value>| value.map_or_else(String::new, serde_json::Value::to_string);
    let mut names = asked.keys().filter(|name| kept.get(*name) != asked.get(*name));
    names.next().map(|name| (name.replace('_', " "), text(kept.get(name)), text(asked.get(name))))
}
