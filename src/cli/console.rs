//! stdout for results, stderr for progress and remarks.

use super::error::CliError;
use crate::text::fitted;
use anstream::AutoStream;
use clap::builder::styling::AnsiColor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};

/// The words for what is wrong; wherever they are printed, a terminal shows them in red.
const ALARMS: [&str; 5] = ["WRONG", "FAILED", "FAILURE", "FAILURES", "MISS"];

/// Text with its alarms in red.
fn painted(text: &str) -> String {
    let style = AnsiColor::Red.on_default().bold();
    let is_of_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut painted = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_of_word) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|character| !is_of_word(character)).unwrap_or(from.len()));
        painted.push_str(before);
        painted.push_str(&if ALARMS.contains(&word) { format!("{style}{word}{style:#}") } else { word.to_owned() });
        rest = after;
    }
    painted + rest
}

/// What stderr takes of a message: lines that fit it, if it is a terminal.
pub fn for_stderr(text: &str) -> String {
    match terminal_size::terminal_size_of(io::stderr()) {
        Some((columns, _)) => fitted(text, columns.0.into()),
        None => text.to_owned(),
    }
}

/// Where the program writes.
pub struct Console {
    /// Takes colours out where NO_COLOR is set, or it is no terminal.
    stdout: AutoStream<Box<dyn Write>>,
    /// The width of stdout, if it is a terminal.
    columns: Option<usize>,
    closed: bool,
    quiet: bool,
    progress: ProgressBar,
}

impl Console {
    /// The process's own stdout and stderr; `quiet` keeps progress and remarks to itself.
    pub fn new(quiet: bool) -> Self {
        let stdout = AutoStream::new(Box::new(io::stdout()) as Box<dyn Write>, AutoStream::choice(&io::stdout()));
        let columns = terminal_size::terminal_size_of(io::stdout()).map(|(columns, _)| columns.0.into());
        Self { stdout, columns, closed: false, quiet, progress: ProgressBar::hidden() }
    }

    /// Another place for results, for tests.
    pub fn writing_to(stdout: Box<dyn Write>, quiet: bool) -> Self {
        let stdout = AutoStream::never(stdout);
        Self { stdout, columns: None, closed: false, quiet, progress: ProgressBar::hidden() }
    }

    /// The text with lines that fit stdout; a file takes lines of any length.
    pub fn fitted(&self, text: &str) -> String {
        self.columns.map_or_else(|| text.to_owned(), |columns| fitted(text, columns))
    }

    /// Columns to fill: those of the terminal, if stdout is one, up to 100.
    pub fn width(&self) -> usize {
        self.columns.map_or(80, |columns| columns.clamp(40, 100))
    }

    /// Writes results to stdout at once. A reader that has gone (`| head`) is no error; see `is_closed`.
    ///
    /// # Errors
    /// When stdout cannot be written for another reason.
    pub fn print(&mut self, text: &str) -> Result<(), CliError> {
        if self.closed {
            return Ok(());
        }
        let stdout = &mut self.stdout;
        let written =
            self.progress.suspend(|| stdout.write_all(painted(text).as_bytes()).and_then(|()| stdout.flush()));
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            written => written.map_err(CliError::Stdout),
        }
    }

    /// Whether nobody reads stdout any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether progress and remarks are kept back.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// A remark on stderr.
    pub fn remark(&self, text: &str) {
        if !self.quiet {
            // A closed stderr takes no remark and is no reason to stop.
            self.progress.suspend(|| drop(writeln!(io::stderr(), "{}", for_stderr(text))));
        }
    }

    /// Shows progress with the time left, where stderr is a terminal. `total` is in any unit of cost.
    pub fn start_progress(&mut self, total: u64) {
        if self.quiet {
            return;
        }
        let style = ProgressStyle::with_template("{bar:24} {percent:>3}%  {eta} left  {wide_msg}")
            .expect("the template is well formed");
        self.progress = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr()).with_style(style);
    }

    /// Names what runs now.
    pub fn show_progress(&self, message: String) {
        self.progress.set_message(message);
    }

    /// Adds to what is done.
    pub fn advance(&self, cost: u64) {
        self.progress.inc(cost);
    }

    /// Adds to what is done, from any thread.
    pub fn advancer(&self) -> impl Fn(u64) + Sync + use<> {
        let progress = self.progress.clone();
        move |cost| progress.inc(cost)
    }

    /// Names what was done and adds one to it, from any thread.
    pub fn announcer(&self) -> impl Fn(String) + Sync + use<> {
        let progress = self.progress.clone();
        move |message| {
            progress.set_message(message);
            progress.inc(1);
        }
    }

    /// Takes the progress off the screen.
    pub fn end_progress(&mut self) {
        self.progress.finish_and_clear();
        self.progress = ProgressBar::hidden();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_red_and_nothing_else_is() {
        for word in ALARMS {
            assert_eq!(painted(&format!("a {word}, ok")), format!("a \u{1b}[1m\u{1b}[31m{word}\u{1b}[0m, ok"));
        }
        for text in ["", "right\n", "WRONGLY MISSED_FAILED", "µ – WRONG2"] {
            assert_eq!(painted(text), text);
        }
        let text = "  5 FAILURES: 1 WRONG or failed\n";
        assert_eq!(anstream::adapter::strip_str(&painted(text)).to_string(), text);
    }
}
