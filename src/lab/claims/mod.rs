//! What the project's texts say of its records: each sentence beside the record that it is from and the number that follows.
//!
//! A table of claims (`reports/claims.toml`) names for each a piece of text, the file where it stands, and what has to be
//! computed of a record for it. [`check`] computes it anew: the text is there, and the record still says so. Of figures whose
//! record is not kept, or that only its picture shows, the table has the command, the device and the day instead, and of numbers that state nothing measured why
//! they do not. A figure of which it has none of these is found, too, so that no sentence stands without a row.

mod reading;
mod sweep;
mod text;

pub use reading::{Place, Reading};
pub use sweep::{Claim, Quantity, Statistic};

use crate::lab::measure::record::SweepRecord;
use crate::lab::recorder::RecordError;
use reading::Entries;
use serde::Deserialize;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use text::{Document, made};

/// A piece of text and the numbers in it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sentence {
    /// Where the text stands, below the folder above the table's.
    pub file: PathBuf,
    /// The text, whatever lies between its words.
    pub text: String,
    /// What has to come out of sweeps for it.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// What has to stand for it in records of other kinds.
    #[serde(default)]
    pub readings: Vec<Reading>,
}

/// Figures of which nothing is computed, because no record of them is kept or they were read off its picture, and how they came
/// about.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// Where they stand, likewise.
    pub file: PathBuf,
    /// Pieces of text that have them.
    #[serde(default)]
    pub texts: Vec<String>,
    /// Pieces of text that stand for the whole paragraph, item of a list or table that they are in.
    #[serde(default)]
    pub blocks: Vec<String>,
    /// What was run.
    pub command: String,
    /// On what.
    pub device: String,
    /// When, as 2026-11-28, or from such a day `to` another.
    pub date: String,
    /// Of the program, where it is known.
    pub commit: Option<String>,
}

/// What reads like a figure, and states nothing that was measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoFigure {
    /// Where it stands, likewise.
    pub file: PathBuf,
    /// Pieces of text that have it.
    #[serde(default)]
    pub texts: Vec<String>,
    /// Pieces of text that stand for the whole paragraph, item of a list or table that they are in.
    #[serde(default)]
    pub blocks: Vec<String>,
    /// What it is instead.
    pub why: String,
}

/// What the table of claims is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    /// Files in which every figure has to be accounted for, and folders whose Markdown is.
    #[serde(default)]
    documents: Vec<PathBuf>,
    sentence: Vec<Sentence>,
    #[serde(default)]
    told: Vec<Told>,
    #[serde(default)]
    no_figure: Vec<NoFigure>,
}

/// Why claims cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The table, or a text that it names, cannot be read.
    #[error("{}: {reason}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A table without claims shows nothing.
    #[error("{} has no claims", .0.display())]
    Empty(PathBuf),
    /// A claim that asks for something unknown, or does not say what it must.
    #[error("'{text}' in {}: {reason}", file.display())]
    Claim {
        /// Where it stands.
        file: PathBuf,
        /// What it says.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What became of a number of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Where the sentence stands.
    pub file: PathBuf,
    /// What it says.
    pub text: String,
    /// What is computed for it, in words.
    pub what: String,
    /// The record, beside the table.
    pub record: PathBuf,
    /// What it must be.
    pub value: f64,
    /// How far from it.
    pub tolerance: f64,
    /// What the record says, if it has any such point.
    pub found: Option<f64>,
    /// Points that it follows from.
    pub points: usize,
    /// Whether the text stands where it is said to.
    pub is_written: bool,
    /// The command that made the record.
    pub command: String,
    /// Its day and commit.
    pub made: String,
}

impl Judged {
    /// Whether the text is there and the record says so.
    pub fn holds(&self) -> bool {
        // A number in a record is rounded, too.
        const EXACT: f64 = 1e-9;
        let agrees = |found: f64| (found - self.value).abs() <= self.tolerance + EXACT;
        self.is_written && self.found.is_some_and(agrees)
    }
}

/// What is said of a text of which nothing is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saying {
    /// How its figures came about.
    Told,
    /// That it has none.
    NoFigure,
}

/// A text of which nothing is computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Quoted {
    /// Where it stands.
    pub file: PathBuf,
    /// What it says.
    pub text: String,
    /// What is said of it.
    pub saying: Saying,
    /// Whether it stands where it is said to.
    pub is_written: bool,
}

/// A sentence or row of a table with figures of which the table of claims says nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Unclaimed {
    /// Where it stands.
    pub file: PathBuf,
    /// The line of the first of them.
    pub line: usize,
    /// The figures.
    pub figures: Vec<String>,
    /// The sentence.
    pub text: String,
}

impl std::fmt::Display for Unclaimed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, figures, text } = self;
        write!(
            f,
            "{}:{line}: '{text}' states {}, and nothing says where that is from. Give it a [[sentence]] with what follows from \
             a record, a [[told]] with command, device and date where no record is kept, or a [[no-figure]] where nothing was \
             measured",
            file.display(),
            figures.join(", ")
        )
    }
}

/// What became of a table of claims.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Sentences that have something computed.
    pub sentences: usize,
    /// All that is.
    pub claims: Vec<Judged>,
    /// Texts of which nothing is.
    pub quoted: Vec<Quoted>,
    /// Sentences of which nothing is said.
    pub unclaimed: Vec<Unclaimed>,
}

impl Judgement {
    /// Whether all is there and agrees, and no figure stands without a row.
    pub fn holds(&self) -> bool {
        let Self { claims, quoted, unclaimed, .. } = self;
        claims.iter().all(Judged::holds) && quoted.iter().all(|text| text.is_written) && unclaimed.is_empty()
    }

    /// How many texts something is said of.
    pub fn count(&self, saying: Saying) -> usize {
        self.quoted.iter().filter(|text| text.saying == saying).count()
    }
}

/// Judges all claims of a table. Texts are looked for below the folder above that of the table, records beside it.
///
/// # Errors
/// When something cannot be read, or a claim asks for what there is not.
pub fn check(table: &Path) -> Result<Judgement, ClaimError> {
    let Table { documents, sentence, told, no_figure } =
        toml::from_str(&read(table)?).map_err(|error| unreadable(table, error.message().to_owned()))?;
    if sentence.iter().all(|sentence| sentence.claims.is_empty() && sentence.readings.is_empty()) {
        return Err(ClaimError::Empty(table.to_owned()));
    }
    let folder = table.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut texts = Texts { root: folder.join(".."), documents: BTreeMap::new() };
    let asked = texts.named(&documents)?;
    for document in &asked {
        texts.text(document)?;
    }
    let mut records = Records { folder, sweeps: HashMap::new(), others: HashMap::new() };
    let (mut claims, mut quoted) = (Vec::new(), Vec::new());
    for sentence in &sentence {
        if sentence.claims.is_empty() && sentence.readings.is_empty() {
            return Err(lacking(
                &sentence.file,
                std::slice::from_ref(&sentence.text),
                &[],
                "nothing is computed for it",
            ));
        }
        let is_written = texts.accounted_for(&sentence.file, &sentence.text, false)?;
        claims.extend(records.judged(sentence, is_written)?);
    }
    for told in &told {
        told.lacks().map_or(Ok(()), |reason| Err(lacking(&told.file, &told.texts, &told.blocks, reason)))?;
        quoted.extend(texts.quoted(&told.file, &told.texts, &told.blocks, Saying::Told)?);
    }
    for NoFigure { file, texts: parts, blocks, why } in &no_figure {
        if why.trim().is_empty() {
            return Err(lacking(file, parts, blocks, "it does not say why"));
        }
        quoted.extend(texts.quoted(file, parts, blocks, Saying::NoFigure)?);
    }
    let unclaimed = asked.iter().flat_map(|file| texts.documents[file].unclaimed(file)).collect();
    Ok(Judgement { sentences: sentence.len(), claims, quoted, unclaimed })
}

/// The error of an entry that does not say what it must, by the first of its texts.
fn lacking(file: &Path, texts: &[String], blocks: &[String], reason: &str) -> ClaimError {
    let text = texts.iter().chain(blocks).next().cloned().unwrap_or_default();
    ClaimError::Claim { file: file.to_owned(), text, reason: reason.to_owned() }
}

fn unreadable(path: &Path, reason: String) -> ClaimError {
    ClaimError::File { path: path.to_owned(), reason }
}

fn read(path: &Path) -> Result<String, ClaimError> {
    crate::file::read_text(path).map_err(|error| unreadable(path, crate::file::reason(&error).to_string()))
}

impl Told {
    /// What it does not say of what it must.
    fn lacks(&self) -> Option<&'static str> {
        let is_day = |day: &str| {
            let is_digit = |(at, c): (usize, char)| if at == 4 || at == 7 { c == '-' } else { c.is_ascii_digit() };
            day.len() == 10 && day.char_indices().all(is_digit)
        };
        let is_commit = |commit: &String| commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit());
        let lacks = [
            (self.command.trim().is_empty(), "it does not say what was run"),
            (self.device.trim().is_empty(), "it does not say on what device"),
            (!self.date.split(" to ").all(is_day), "its date is no day as 2026-11-28, nor from one to another"),
            (!self.commit.iter().all(is_commit), "its commit is not seven or more hexadecimal digits"),
        ];
        lacks.into_iter().find(|(is_so, _)| *is_so).map(|(_, reason)| reason)
    }
}

/// The texts that claims are about.
struct Texts {
    root: PathBuf,
    documents: BTreeMap<PathBuf, Accounted>,
}

/// A document, and what of it something is said of.
struct Accounted {
    document: Document,
    parts: Vec<Range<usize>>,
}

impl Texts {
    /// The files, and of folders the Markdown in them.
    fn named(&self, names: &[PathBuf]) -> Result<Vec<PathBuf>, ClaimError> {
        let mut files = Vec::new();
        for name in names {
            let path = self.root.join(name);
            if !path.is_dir() {
                files.push(name.clone());
                continue;
            }
            let refused = |error: std::io::Error| unreadable(&path, crate::file::reason(&error).to_string());
            for entry in std::fs::read_dir(&path).map_err(refused)? {
                let file = name.join(entry.map_err(refused)?.file_name());
                if file.extension().is_some_and(|extension| extension == "md") {
                    files.push(file);
                }
            }
        }
        files.sort();
        Ok(files)
    }

    fn text(&mut self, file: &Path) -> Result<&mut Accounted, ClaimError> {
        match self.documents.entry(file.to_owned()) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let document = Document::new(read(&self.root.join(file))?);
                Ok(new.insert(Accounted { document, parts: Vec::new() }))
            }
        }
    }

    /// Takes a text for accounted for, or the block around it; whether it stands there.
    fn accounted_for(&mut self, file: &Path, text: &str, is_block: bool) -> Result<bool, ClaimError> {
        let Accounted { document, parts } = self.text(file)?;
        let places = document.find(text);
        parts.extend(places.iter().map(|place| if is_block { document.block(place) } else { place.clone() }));
        Ok(!places.is_empty())
    }

    fn quoted(
        &mut self,
        file: &Path,
        texts: &[String],
        blocks: &[String],
        saying: Saying,
    ) -> Result<Vec<Quoted>, ClaimError> {
        let all = texts.iter().map(|text| (text, false)).chain(blocks.iter().map(|text| (text, true)));
        let quoted = all.map(|(text, is_block)| {
            let is_written = self.accounted_for(file, text, is_block)?;
            Ok(Quoted { file: file.to_owned(), text: text.clone(), saying, is_written })
        });
        quoted.collect()
    }
}

impl Accounted {
    /// Sentences with figures that are in none of the parts.
    fn unclaimed(&self, file: &Path) -> Vec<Unclaimed> {
        let is_in =
            |figure: &Range<usize>| self.parts.iter().any(|part| part.start <= figure.start && figure.end <= part.end);
        let mut found: Vec<Unclaimed> = Vec::new();
        for figure in self.document.figures.iter().filter(|figure| !is_in(figure)) {
            let (text, number) = (self.document.sentence(figure), self.document.number(figure).to_owned());
            match found.last_mut() {
                Some(last) if last.text == text => last.figures.push(number),
                _ => {
                    let line = self.document.line(figure);
                    found.push(Unclaimed { file: file.to_owned(), line, figures: vec![number], text });
                }
            }
        }
        found
    }
}

/// The records that claims are about, each read once.
struct Records<'a> {
    folder: &'a Path,
    sweeps: HashMap<PathBuf, SweepRecord>,
    others: HashMap<PathBuf, Entries>,
}

impl Records<'_> {
    /// The numbers of a sentence.
    fn judged(&mut self, sentence: &Sentence, is_written: bool) -> Result<Vec<Judged>, ClaimError> {
        let Sentence { file, text, claims, readings } = sentence;
        let failed = |reason| ClaimError::Claim { file: file.clone(), text: text.clone(), reason };
        let tolerances =
            claims.iter().map(|claim| claim.tolerance).chain(readings.iter().map(|reading| reading.tolerance));
        for tolerance in tolerances {
            // Of any other every record would say so, or none.
            if !(tolerance.is_finite() && tolerance >= 0.0) {
                return Err(failed(format!(
                    "its tolerance is {tolerance}; give how far the record may be from the number"
                )));
            }
        }
        let mut judged = Vec::new();
        for claim in claims {
            let record = self.sweep(&claim.record)?;
            let (found, points) = claim.found(record).map_err(failed)?;
            judged.push(Judged {
                file: file.clone(),
                text: text.clone(),
                what: claim.phrase(),
                record: claim.record.clone(),
                value: claim.value,
                tolerance: claim.tolerance,
                found,
                points,
                is_written,
                command: record.header.command.clone(),
                made: made(&record.header.date, record.header.program.git_commit.as_deref()),
            });
        }
        for reading in readings {
            let unknown = || failed(format!("'{}' is no record of a kind that is known", reading.record.display()));
            let record = self.other(&reading.record)?.ok_or_else(unknown)?;
            judged.push(Judged {
                file: file.clone(),
                text: text.clone(),
                what: reading.phrase(),
                record: reading.record.clone(),
                value: reading.value,
                tolerance: reading.tolerance,
                found: Some(reading.found(record).map_err(failed)?),
                points: 1,
                is_written,
                command: record.command.clone(),
                made: record.made.clone(),
            });
        }
        Ok(judged)
    }

    fn sweep(&mut self, name: &Path) -> Result<&SweepRecord, ClaimError> {
        if !self.sweeps.contains_key(name) {
            self.sweeps.insert(name.to_owned(), SweepRecord::read(&self.folder.join(name))?);
        }
        Ok(&self.sweeps[name])
    }

    fn other(&mut self, name: &Path) -> Result<Option<&Entries>, ClaimError> {
        if !self.others.contains_key(name) {
            let Some(record) = reading::read(&self.folder.join(name)) else { return Ok(None) };
            self.others.insert(name.to_owned(), record?);
        }
        Ok(self.others.get(name))
    }
}
