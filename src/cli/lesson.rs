//! `lookback lesson`.

use super::console::Console;
use super::error::{CliError, EXIT_OK};
use crate::lab::recorder::claim_folder;
use crate::lab::report;
use clap::Args;
use std::path::PathBuf;

/// `lookback lesson`.
#[derive(Debug, Clone, Args)]
pub struct LessonArguments {
    /// Leave page and pictures in this folder
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
}

/// Makes the lesson and returns the exit code.
///
/// # Errors
/// When a run goes wrong that should not, or the folder cannot be written.
pub fn lesson(arguments: &LessonArguments) -> Result<u8, CliError> {
    let _lock = claim_folder(&arguments.output)?;
    let page = report::write_lesson(&arguments.output)?;
    Console::new(false).print(&format!("{}\n", page.display()))?;
    Ok(EXIT_OK)
}
