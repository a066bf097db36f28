//! The program `lookback`; see `lookback --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    lookback::cli::main()
}
