//! `lookback claims`.

use super::console::Console;
use super::error::{CliError, EXIT_OK, EXIT_WRONG};
use crate::lab::claims::{Judged, Judgement, Quoted, Saying, check};
use crate::text::{significant, wrapped};
use clap::Args;
use std::path::PathBuf;

/// `lookback claims`.
#[derive(Debug, Clone, Args)]
pub struct ClaimsArguments {
    /// The table of claims
    #[arg(value_name = "FILE", default_value = "reports/claims.toml")]
    pub table: PathBuf,
    /// Print each number of each sentence, not those that fail alone
    #[arg(long)]
    pub each: bool,
}

/// Columns of what is printed.
const COLUMNS: usize = 80;
/// Of these before all but the verdict.
const INDENT: usize = 7;

/// Runs `lookback claims` and returns the exit code.
///
/// # Errors
/// When the table, a text or a record cannot be read.
pub fn claims(arguments: &ClaimsArguments) -> Result<u8, CliError> {
    let mut console = Console::new(false);
    let judgement = check(&arguments.table)?;
    let Judgement { claims, quoted, unclaimed, .. } = &judgement;
    for sentence in claims.chunk_by(|one, other| (&one.file, &one.text) == (&other.file, &other.text)) {
        console.print(&lines(sentence, arguments.each))?;
    }
    for text in quoted.iter().filter(|text| !text.is_written) {
        let Quoted { file, text, .. } = text;
        console
            .print(&entry("FAILS", &[format!("{}: \u{201c}{text}\u{201d}: the text is not there", file.display())]))?;
    }
    for sentence in unclaimed {
        console.print(&entry("FAILS", &[sentence.to_string()]))?;
    }
    console.print(&format!("\n{}", summary(&judgement)))?;
    Ok(if judgement.holds() { EXIT_OK } else { EXIT_WRONG })
}

/// What became of the numbers of one sentence: of each, or of those that do not hold.
fn lines(sentence: &[Judged], each: bool) -> String {
    let fails = sentence.iter().filter(|claim| !claim.holds()).count();
    let (Judged { file, text, is_written, .. }, count) = (&sentence[0], sentence.len());
    let numbers = match (count, fails) {
        (1, 0) => "one number".to_owned(),
        (_, 0) => format!("{count} numbers"),
        _ => format!("{fails} of {count} numbers fail"),
    };
    let gone = if *is_written { "" } else { "; the text is not there" };
    let mut parts = vec![format!("{}: \u{201c}{text}\u{201d}: {numbers}{gone}", file.display())];
    parts.extend(sentence.iter().filter(|claim| each || !claim.holds()).map(number));
    entry(if fails == 0 { "holds" } else { "FAILS" }, &parts)
}

/// A number beside what its record says.
fn number(judged: &Judged) -> String {
    let Judged { what, record, value, found, points, command, made, .. } = judged;
    let found = found.map_or("nothing".to_owned(), |found| significant(found, 7));
    let points = if *points == 1 { "1 point".to_owned() } else { format!("{points} points") };
    format!("claimed {value}, found {found}: {what}, of {points}; {}: {made}, {command}", record.display())
}

/// A verdict and what it is of, each part on lines of its own.
fn entry(verdict: &str, parts: &[String]) -> String {
    let lines = parts.iter().flat_map(|part| wrapped(part, COLUMNS - INDENT));
    let indented = lines.collect::<Vec<_>>().join(&format!("\n{:INDENT$}", ""));
    format!("{verdict}  {indented}\n")
}

/// How many there are of each kind.
fn summary(judgement: &Judgement) -> String {
    let Judgement { sentences, claims, quoted, unclaimed } = judgement;
    let hold = claims.iter().filter(|claim| claim.holds()).count();
    let gone = quoted.iter().filter(|text| !text.is_written).count();
    let rows = [
        (*sentences, format!("sentences computed from records: {hold} of {} numbers hold", claims.len())),
        (judgement.count(Saying::Told), "texts told with command, device and date, without a record".to_owned()),
        (judgement.count(Saying::NoFigure), "texts that state nothing measured".to_owned()),
        (gone, "of these texts that are not there any more".to_owned()),
        (unclaimed.len(), "sentences with figures that nothing is said of".to_owned()),
    ];
    rows.map(|(count, what)| format!("{count:INDENT$}  {what}\n")).concat()
}
