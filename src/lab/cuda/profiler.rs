//! What the hardware counts while this program scans: the program runs itself below Nsight Compute (`ncu`).

use crate::cuda::compile::ENTRY_POINT;
use crate::cuda::toolkit::SearchPath;
use crate::file::reason;
use crate::lab::costs::counters::{CountsError, HardwareCounts, metrics, read_counts};
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub enum ProfilerError {
    /// The program or ncu cannot be started.
    #[error("cannot start {}: {}", path.display(), reason(refusal))]
    Start { path: PathBuf, refusal: io::Error },
    /// ncu does not know where this program is.
    #[error("cannot tell where this program's file is: {}", reason(.0))]
    Program(io::Error),
    /// What ncu printed says nothing.
    #[error(transparent)]
    Counts(#[from] CountsError),
}

/// Nsight Compute on this machine, and this program.
#[derive(Debug)]
pub struct Profiler {
    ncu: PathBuf,
    program: PathBuf,
}

impl Profiler {
    /// Looks for `ncu`, as [`SearchPath::find_ncu`] says; `None` where it is not there.
    ///
    /// # Errors
    /// When this program's own file is not known.
    pub fn find() -> Result<Option<Self>, ProfilerError> {
        let program = std::env::current_exe().map_err(ProfilerError::Program)?;
        Ok(SearchPath::from_environment().find_ncu().map(|ncu| Self { ncu, program }))
    }

    /// Runs this program with these words, which must make it do one scan and no other, and adds up what was counted over the
    /// scan's launches. All of them have one name, which no kernel that fills, copies or verifies has.
    ///
    /// # Errors
    /// When ncu cannot be started, may not count, or saw other launches than these.
    pub fn count(&self, words: &[String], launches: u64) -> Result<HardwareCounts, ProfilerError> {
        let started = self.command(words).output();
        let output = started.map_err(|refusal| ProfilerError::Start { path: self.ncu.clone(), refusal })?;
        // Versions differ in where they complain.
        let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(read_counts(&printed.join("\n"), launches)?)
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(&self.ncu);
        command
            .args(["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"])
            .args(["--cache-control", "none", "--kernel-name", ENTRY_POINT, "--metrics", &metrics()])
            .arg(&self.program)
            .args(words)
            // Numbers with points, whatever the user's language.
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn what_ncu_prints_is_read_and_an_ncu_that_does_not_start_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ncu = folder.path().join("ncu");
        let head: Vec<String> = metrics().split(',').map(|name| format!("\"{name}\"")).collect();
        // One that answers with a table of one launch where the words are those of a scan, and with a complaint elsewhere.
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *' --kernel-name {ENTRY_POINT} '*'/program compare --samples 0')\n\
             printf '%s\\n' '\"ID\",{}' '\"0\",\"1\",\"2\",\"3\",\"4\",\"5\"';;\n\
             *) echo '==ERROR== other words' >&2;;\nesac\n",
            head.join(",")
        );
        std::fs::write(&ncu, script).expect("a file");
        std::fs::set_permissions(&ncu, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        let profiler = Profiler { ncu, program: folder.path().join("program") };
        let words = ["compare", "--samples", "0"].map(str::to_owned);
        let counts = profiler.count(&words, 1).expect("a table");
        assert_eq!((counts.dram_bytes_read, counts.warp_instructions), (1, 5));
        let error = profiler.count(&words[..1], 1).expect_err("no table").to_string();
        assert_eq!(error, "ncu printed no table: other words");
        let nowhere = Profiler { ncu: folder.path().join("nowhere"), ..profiler };
        let error = nowhere.count(&words, 1).expect_err("nothing to start").to_string();
        assert!(error.ends_with("/nowhere: no such file or directory"), "{error}");
    }
}
