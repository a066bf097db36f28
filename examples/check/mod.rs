//! How each step of the examples is checked.

use std::error::Error;

pub type Outcome = Result<(), Box<dyn Error>>;

/// Says whether a step is right, and what it found; a wrong one is an error.
pub fn checked(name: &str, is_right: bool, found: &str) -> Outcome {
    let line = format!("{name:34} {}  {found}", if is_right { "right" } else { "WRONG" });
    println!("{}", line.trim_end());
    if is_right { Ok(()) } else { Err(format!("{name} is wrong").into()) }
}
