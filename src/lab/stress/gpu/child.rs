//! Stress in a process of its own: a kernel with a fault may hang, or end the context that it runs in, and only
//! the process's end gives the device back.

use super::{Finding, GpuStressReport, GpuStressSettings, StressError, StressOutcome};
use crate::file::reason;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The hidden subcommand that runs one stress and prints its report as JSON.
pub const SUBCOMMAND: &str = "stress-gpu";

/// Seconds beyond its own limits that a process gets, for starting, compiling beside others, loading kernels and ending. It
/// finds by itself, and sooner, a launch that hangs.
const GRACE: Duration = Duration::from_secs(180);

/// Arguments that make the subcommand run `settings`.
pub fn arguments(settings: &GpuStressSettings) -> Vec<String> {
    let mut arguments = vec![
        String::from(SUBCOMMAND),
        format!("--device={}", settings.device),
        format!("--runs={}", settings.runs),
        format!("--seed={}", settings.seed),
        format!("--palette={}", settings.palette),
    ];
    arguments.extend(settings.problems.iter().map(|problem| format!("--problem={problem}")));
    arguments.extend(settings.seconds.map(|seconds| format!("--seconds={seconds}")));
    arguments.extend(settings.mutant.map(|mutant| format!("--mutant={mutant}")));
    if settings.is_small {
        arguments.push(String::from("--small"));
    }
    if settings.without_rings {
        arguments.push(String::from("--without-rings"));
    }
    arguments
}

/// The file of this program.
///
/// # Errors
/// When the system does not say.
pub fn program() -> Result<PathBuf, StressError> {
    std::env::current_exe()
        .map_err(|error| StressError::Process(format!("this program cannot find itself: {}", reason(&error))))
}

/// Runs `settings`, or a failure's case again, in a process of this program. A process that dies is a finding.
///
/// # Errors
/// When the process cannot be started, ends in order without a report (CUDA is missing, for example), or does not end: it may be
/// compiling still.
pub fn stress_in_child(
    program: &Path,
    settings: &GpuStressSettings,
    replay: Option<&str>,
) -> Result<GpuStressReport, StressError> {
    let failed =
        |what: &str, error: &std::io::Error| StressError::Process(format!("{what}: {}", crate::file::reason(error)));
    // Files, not pipes: nobody reads while the process is waited for.
    let folder = tempfile::tempdir().map_err(|error| failed("no temporary folder", &error))?;
    let create =
        |name: &str| File::create(folder.path().join(name)).map_err(|error| failed("a temporary file", &error));
    let (output, errors) = (create("output")?, create("errors")?);
    let start = Instant::now();
    let mut child = Command::new(program)
        .args(arguments(settings))
        .args(replay.map(|case| format!("--replay={case}")))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(|error| failed("it could not be started", &error))?;
    let limit = GRACE + Duration::from_secs_f64(settings.seconds.unwrap_or(3600.0));
    let status = loop {
        match child.try_wait().map_err(|error| failed("it could not be waited for", &error))? {
            Some(status) => break Some(status),
            None if start.elapsed() > limit => {
                let killed = child.kill().and_then(|()| child.wait());
                killed.map_err(|error| failed("it could not be ended", &error))?;
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let read = |name: &str| {
        let mut text = String::new();
        // Nothing to read is what is reported below.
        let _ = File::open(folder.path().join(name)).and_then(|mut file| file.read_to_string(&mut text));
        text
    };
    if let Ok(report) = serde_json::from_str(&read("output")) {
        return Ok(report);
    }
    let seconds = start.elapsed().as_secs_f64();
    let found = match status {
        None => return Err(StressError::Process(format!("it did not end within {seconds:.0} s"))),
        // Ended by a signal.
        Some(status) if status.code().is_none() => Finding::Crashed { message: status.to_string() },
        Some(status) => return Err(StressError::Process(format!("{status}: {}", read("errors").trim()))),
    };
    let verdict = StressOutcome::Killed { how: found, at_run: 0, seed: settings.seed, seconds };
    Ok(GpuStressReport { seconds, verdict, ..GpuStressReport::before(settings) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_without_a_report_is_an_error_and_one_that_dies_a_finding() {
        let settings = GpuStressSettings { seconds: Some(0.1), ..GpuStressSettings::default() };
        let silent = stress_in_child(Path::new("/bin/false"), &settings, None);
        assert!(matches!(silent, Err(StressError::Process(_))), "{silent:?}");
        let nowhere = stress_in_child(Path::new("/no/such/program"), &settings, None);
        assert!(matches!(nowhere, Err(StressError::Process(_))), "{nowhere:?}");
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("dies");
        std::fs::write(&program, "#!/bin/sh\nkill -SEGV $$\n").expect("a script");
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
        let died = stress_in_child(&program, &settings, None).expect("a verdict");
        assert!(matches!(died.verdict, StressOutcome::Killed { how: Finding::Crashed { .. }, .. }), "{died:?}");
    }
}
