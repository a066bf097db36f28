//! Numbers that stand in records other than a sweep's: of ranks, traces and costs, and in what a program printed.
//!
//! Each kind of record is a list of entries, lines of words with a number behind each, so that one way of looking serves all.

use super::sweep::one;
use crate::lab::costs::{BY_DEFINITION, CONFIGURATION, CostRecord, CostRow, MEASURED};
use crate::lab::origin::Origin;
use crate::lab::ranks::record::RankRecord;
use crate::lab::recorder::{RecordError, read_text};
use crate::lab::trace::record::TraceRecord;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A number that has to stand in a record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// The record, beside the table.
    pub record: PathBuf,
    /// Pieces of text that one entry of the record has, and no other.
    pub of: Vec<String>,
    /// What stands before the number in it.
    pub after: String,
    /// Another number of the record, which is taken off it.
    pub less: Option<Place>,
    /// Another number of the record, by which it is divided.
    pub by: Option<Place>,
    /// What that is multiplied by, for the unit that the text has.
    #[serde(default = "one")]
    pub times: f64,
    /// What it must be.
    pub value: f64,
    /// How far from it: half of the last digit that the text has.
    #[serde(default)]
    pub tolerance: f64,
}

/// Where a number stands in a record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Pieces of text that one entry of the record has, and no other.
    pub of: Vec<String>,
    /// What stands before the number in it.
    pub after: String,
}

impl Reading {
    /// What it says, in words.
    pub(super) fn phrase(&self) -> String {
        let place = |of: &[String], after: &str| format!("what stands after '{after}' of '{}'", of.join("', '"));
        let by = self.by.as_ref().map_or(String::new(), |by| format!(", by {}", place(&by.of, &by.after)));
        let less = self.less.as_ref().map_or(String::new(), |less| format!(", less {}", place(&less.of, &less.after)));
        format!("{}{less}{by}", place(&self.of, &self.after))
    }

    /// What the record says.
    ///
    /// # Errors
    /// When no entry is meant, or more than one, or no number stands there.
    pub(super) fn found(&self, record: &Entries) -> Result<f64, String> {
        let number = record.number(&self.of, &self.after)?;
        let other =
            |place: Option<&Place>, none: f64| place.map_or(Ok(none), |place| record.number(&place.of, &place.after));
        Ok((number - other(self.less.as_ref(), 0.0)?) * self.times / other(self.by.as_ref(), 1.0)?)
    }
}

/// A record as entries.
#[derive(Debug)]
pub(super) struct Entries {
    entries: Vec<String>,
    /// The command that made it.
    pub command: String,
    /// Its day and commit.
    pub made: String,
}

/// How a kind of record, by the end of its file's name, becomes entries.
type Kind = (&'static str, fn(&Path) -> Result<Entries, RecordError>);

const KINDS: [Kind; 4] = [("ranks.json", ranks), ("traces.json.gz", traces), (".json", costs), (".txt", printed)];

/// Reads a record of any of the kinds; `None` of a name that is none of theirs.
pub(super) fn read(path: &Path) -> Option<Result<Entries, RecordError>> {
    let name = path.file_name()?.to_str()?;
    let (_, read) = KINDS.iter().find(|(end, _)| name.ends_with(end))?;
    Some(read(path))
}

impl Entries {
    fn new(header: Origin, entries: Vec<String>) -> Self {
        let made = super::text::made(&header.date, header.git_commit.as_deref());
        Self { entries, command: header.command, made }
    }

    fn number(&self, of: &[String], after: &str) -> Result<f64, String> {
        let mut meant = self.entries.iter().filter(|entry| of.iter().all(|part| entry.contains(part.as_str())));
        let entry = match (meant.next(), meant.next()) {
            (Some(entry), None) => entry,
            (None, _) => return Err(format!("no entry of the record has '{}'", of.join("', '"))),
            (Some(_), Some(_)) => return Err(format!("more than one entry of the record has '{}'", of.join("', '"))),
        };
        let behind = entry.split_once(after).map(|(_, behind)| behind);
        let behind = behind.ok_or_else(|| format!("'{after}' does not stand in '{entry}'"))?;
        let digits = behind.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '(' | '+' | '='));
        let end = digits.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-'))).unwrap_or(digits.len());
        let number = digits[..end].trim_end_matches(['.', ',']).replace(',', "");
        number.parse().map_err(|_| format!("no number stands behind '{after}' in '{entry}'"))
    }
}

/// A row each: manner, chunk, scan, n and ranks, then microseconds of all and of one alone, and the rates.
fn ranks(path: &Path) -> Result<Entries, RecordError> {
    let RankRecord { header, rows, .. } = RankRecord::read(path.parent().unwrap_or(Path::new(".")))?;
    let entry = |row: &crate::lab::ranks::record::Row| {
        let chunk = row.chunk.map_or(String::new(), |chunk| format!(" by {chunk}"));
        format!(
            "{}{chunk}: {}, n {} of {}; µs {} alone {} added {} times-one {} by-bytes {}",
            row.manner,
            row.scan(),
            row.n,
            row.ranks,
            row.time_ns() / 1e3,
            row.alone_ns() / 1e3,
            (row.time_ns() - row.alone_ns()) / 1e3,
            row.times_one(),
            row.by_bytes
        )
    };
    Ok(Entries::new(header, rows.iter().map(entry).collect()))
}

/// A scan each: what the terminal said of it.
fn traces(path: &Path) -> Result<Entries, RecordError> {
    let TraceRecord { header, scans } = TraceRecord::read(path.parent().unwrap_or(Path::new(".")))?;
    Ok(Entries::new(header, scans.iter().map(|scan| super::text::words(&scan.summary)).collect()))
}

/// A row each: the subject, and the columns of the table.
fn costs(path: &Path) -> Result<Entries, RecordError> {
    let CostRecord { header, rows, .. } = CostRecord::read(path)?;
    let entry = |row: &CostRow| {
        let columns = CONFIGURATION.iter().chain(&BY_DEFINITION).chain(&MEASURED);
        let cells = columns.filter_map(|column| Some(format!("; {} {}", column.name, (column.cell)(row)?)));
        row.measured.subject.clone() + &cells.collect::<String>()
    };
    Ok(Entries::new(header, rows.iter().map(entry).collect()))
}

/// A line each. Such a file says in words where it is from, if at all.
fn printed(path: &Path) -> Result<Entries, RecordError> {
    let text = read_text(path)?;
    let text = String::from_utf8_lossy(&text);
    let entries = text.lines().map(super::text::words).collect();
    Ok(Entries { entries, command: text.lines().next().unwrap_or_default().to_owned(), made: "as printed".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Entries {
        let entries = ["a 1 µs 2.5, b (+3.0 %)", "a 2 µs 1,204."].map(str::to_owned).to_vec();
        Entries { entries, command: String::new(), made: String::new() }
    }

    #[test]
    fn a_number_is_that_behind_its_words_in_one_entry() {
        let found = |of: &str, after: &str| entries().number(&[of.to_owned()], after);
        assert_eq!(found("a 1", "µs"), Ok(2.5));
        assert_eq!(found("a 1", "b"), Ok(3.0));
        assert_eq!(found("a 2", "µs"), Ok(1204.0));
        for (of, after) in [("a", "µs"), ("c", "µs"), ("a 1", "%"), ("a 1", "ms")] {
            found(of, after).expect_err(after);
        }
    }
}
