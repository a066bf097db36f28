//! Recordings in a file: what `lookback trace --output` leaves, and `lookback report` draws again.

use super::Recording;
use crate::lab::origin::Origin;
use crate::lab::recorder::{RecordError, check_version, compressed, parse, read_text, write_anew};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The file's name in its folder.
pub const TRACES: &str = "traces.json.gz";
/// Version of the layout; another one is refused.
pub const FORMAT: u32 = 1;

/// A recording and what was said of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedScan {
    /// How its files begin, and what it is called in the page.
    pub name: String,
    /// The summary that the terminal shows: of all tiles, whichever of them are kept.
    pub summary: String,
    /// What was recorded.
    pub recording: Recording,
}

/// Recordings of one run of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// How they came about.
    pub header: Origin,
    /// In the order in which they ran.
    pub scans: Vec<RecordedScan>,
}

impl TraceRecord {
    /// Whether a folder has recordings.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(TRACES).exists()
    }

    /// Those of a folder.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or is of another version.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(TRACES);
        let text = read_text(&path)?;
        check_version(&text, &path, FORMAT)?;
        let record: Self = parse(&text, &path, 1)?;
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let names: Vec<&str> = record.scans.iter().map(|scan| scan.name.as_str()).collect();
        // They become names of files.
        let wrong = names.iter().enumerate().find(|&(at, name)| !is_name(name) || names[..at].contains(name));
        match wrong {
            Some((_, name)) => {
                let reason = format!("'{name}' is no name of a recording, or the name of two");
                Err(RecordError::Damaged { path, line: 1, reason })
            }
            None => Ok(record),
        }
    }

    /// Writes them into a folder that has none.
    ///
    /// # Errors
    /// When the folder cannot be written, or the file is there.
    pub fn write(&self, folder: &Path) -> Result<(), RecordError> {
        let path = folder.join(TRACES);
        let text = serde_json::to_vec(self).expect("a recording has string keys and finite numbers");
        write_anew(&path, &compressed(&text, &path)?)
    }
}
