//! stdout for results, stderr for progress and remarks.

use super::error::CliError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};

/// Where the program writes.
pub struct Console {
    stdout: Box<dyn Write>,
    closed: bool,
    quiet: bool,
    progress: ProgressBar,
}

impl Console {
    /// The process's own stdout and stderr; `quiet` keeps progress and remarks to itself.
    pub fn new(quiet: bool) -> Self {
        Self::writing_to(Box::new(io::stdout()), quiet)
    }

    /// Another place for results, for tests.
    pub fn writing_to(stdout: Box<dyn Write>, quiet: bool) -> Self {
        Self { stdout, closed: false, quiet, progress: ProgressBar::hidden() }
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
        let written = self.progress.suspend(|| stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
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
            self.progress.suspend(|| drop(writeln!(io::stderr(), "{text}")));
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

    /// Takes the progress off the screen.
    pub fn end_progress(&mut self) {
        self.progress.finish_and_clear();
        self.progress = ProgressBar::hidden();
    }
}
