//! Ctrl-C: the first one ends what runs and lets it say what was done, the second one ends the program.

#[cfg(feature = "cpu")]
use super::console::Console;
use super::error::EXIT_INTERRUPTED;
#[cfg(feature = "cpu")]
use super::error::EXIT_OK;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(feature = "cpu")]
use std::sync::atomic::Ordering;

/// What becomes true when somebody asks the program to end, by Ctrl-C or a termination signal.
///
/// # Errors
/// When the operating system lets nobody watch for it.
pub fn watch() -> io::Result<&'static AtomicBool> {
    // As long as the program: a signal may come at any time.
    let stop: &'static Arc<AtomicBool> = Box::leak(Box::default());
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag not yet set.
        flag::register_conditional_shutdown(signal, i32::from(EXIT_INTERRUPTED), Arc::clone(stop))?;
        flag::register(signal, Arc::clone(stop))?;
    }
    Ok(stop)
}

/// The exit code of what may have ended before it was done: a failure stays one.
#[cfg(feature = "cpu")]
pub fn exit_code(stop: &AtomicBool, code: u8, console: &Console) -> u8 {
    if !stop.load(Ordering::Relaxed) {
        return code;
    }
    console.remark("interrupted: this is what was done so far");
    if code == EXIT_OK { EXIT_INTERRUPTED } else { code }
}
