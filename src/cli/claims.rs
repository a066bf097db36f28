//! `lookback claims`.

use super::console::Console;
use super::error::{CliError, EXIT_OK, EXIT_WRONG};
use crate::lab::claims::{Judged, Statistic, check};
use crate::text::{significant, wrapped};
use clap::Args;
use std::path::PathBuf;

/// `lookback claims`.
#[derive(Debug, Clone, Args)]
pub struct ClaimsArguments {
    /// The table of claims
    #[arg(value_name = "FILE", default_value = "reports/claims.toml")]
    pub table: PathBuf,
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
    let judged = check(&arguments.table)?;
    for claim in &judged {
        console.print(&lines(claim))?;
    }
    let count = judged.iter().filter(|claim| claim.holds()).count();
    console.print(&format!("\n{count} of {} claims hold\n", judged.len()))?;
    Ok(if count == judged.len() { EXIT_OK } else { EXIT_WRONG })
}

/// What became of one.
fn lines(judged: &Judged) -> String {
    let Judged { file, text, claim, found, points, is_written, command, made } = judged;
    let verdict = if judged.holds() { "holds" } else { "FAILS" };
    let found = found.map_or("nothing".to_owned(), |found| significant(found, 7));
    let against = claim.against.as_deref().map_or(String::new(), |other| format!(" by {other}"));
    let limit = match claim.statistic {
        Statistic::Below | Statistic::Above => format!(" {}", claim.limit),
        _ => String::new(),
    };
    let gone = if *is_written { "" } else { "; the text is not there" };
    let what = format!(
        "{}: \u{201c}{}\u{201d}: {}{limit} {} of {}{against}, {}, at {points} points: {found}, claimed {}{gone}",
        file.display(),
        text,
        claim.statistic,
        claim.quantity,
        claim.subject,
        claim.figure,
        claim.value
    );
    let source = format!("{}: {made}, {command}", claim.record.display());
    let indented = |text: &str| wrapped(text, COLUMNS - INDENT).join(&format!("\n{:INDENT$}", ""));
    format!("{verdict}  {}\n{:INDENT$}{}\n", indented(&what), "", indented(&source))
}
