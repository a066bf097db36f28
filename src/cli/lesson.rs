//! `lookback lesson`.

use super::console::Console;
use super::error::{CliError, EXIT_OK};
use crate::lab::record::JSON;
use crate::lab::recorder::claim_folder;
use crate::lab::report;
use crate::lab::trace::record::TRACES;
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
    let has = |name: &&str| arguments.output.join(name).exists();
    if let Some(record) = [TRACES, JSON].into_iter().find(has) {
        let path = arguments.output.display();
        return Err(CliError::Usage(format!("{path} has {record} and the page of it; choose another folder")));
    }
    let page = report::write_lesson(&arguments.output)?;
    Console::new(false).print(&format!("{}\n", page.display()))?;
    Ok(EXIT_OK)
}
