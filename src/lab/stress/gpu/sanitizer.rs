//! The tools of NVIDIA's compute-sanitizer over stress of one mutant: they see what a lucky schedule hides
//! inside a block, and nothing of the protocol between blocks.

use super::{GpuStressReport, GpuStressSettings, StressError, child};
use crate::file::reason;
use crate::kernels::mutant::Mutant;
use crate::lab::stress::detector::Limits;
use crate::lab::workload::ProblemKind;
use crate::strategy::named;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Seconds after which a process begins no further case.
const SECONDS: f64 = 30.0;

named! {
    /// A tool of compute-sanitizer.
    pub enum Tool as "tool of compute-sanitizer" {
        /// Races in shared memory, where barriers in it order nothing that it does not follow.
        Racecheck = "racecheck",
        /// Accesses outside of any array, and misaligned ones.
        Memcheck = "memcheck",
        /// Reads of device memory that nobody wrote.
        Initcheck = "initcheck",
        /// Barriers that not all threads reach.
        Synccheck = "synccheck",
    }
}

impl Tool {
    /// What it runs of a mutant, or of the kernels as they are: of strategies that it can judge.
    fn settings(
        self,
        problems: &[ProblemKind],
        mutant: Option<&'static Mutant>,
        runs: u64,
        limits: &Limits,
    ) -> GpuStressSettings {
        GpuStressSettings {
            runs,
            seed: limits.first_seed,
            problems: problems.to_vec(),
            mutant,
            palette: 4,
            is_small: true,
            // It takes what one lane of a warp hands on by a barrier in shared memory for races, fault or none.
            without_rings: self == Self::Racecheck,
            seconds: Some(limits.time.map_or(SECONDS, |time| time.as_secs_f64().min(SECONDS))),
            ..GpuStressSettings::default()
        }
    }

    /// Whether it can judge any case of these problems in which a mutant shows.
    pub fn can_judge(self, problems: &[ProblemKind], mutant: &'static Mutant, limits: &Limits) -> bool {
        self.settings(problems, Some(mutant), 1, limits).can_draw()
    }
}

/// What a tool said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SanitizerReport {
    /// The tool.
    pub tool: Tool,
    /// The fault, if any.
    pub mutant: Option<String>,
    /// Errors that it counted; `None` where it is not installed, or said nothing.
    pub errors: Option<u64>,
    /// The first error in its words, or why there is no number.
    pub message: String,
    /// Seconds.
    pub seconds: f64,
    /// Runs under the tool.
    pub runs: u64,
    /// What was run.
    pub command: String,
}

/// compute-sanitizer of this machine: on the path, or in the toolkit of `CUDA_HOME` or `/usr/local/cuda`.
pub fn find() -> Option<PathBuf> {
    const NAME: &str = "compute-sanitizer";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]);
    let folders = std::env::split_paths(&path).chain(toolkits.flat_map(|home| [home.join("bin"), home.join(NAME)]));
    folders.map(|folder| folder.join(NAME)).find(|file| file.is_file())
}

/// Runs a tool over a few small runs of a mutant, or of the kernels as they are.
///
/// # Errors
/// When compute-sanitizer is there and cannot be started.
pub fn sanitize(
    program: &Path,
    tool: Tool,
    problems: &[ProblemKind],
    mutant: Option<&'static Mutant>,
    runs: u64,
    limits: &Limits,
) -> Result<SanitizerReport, StressError> {
    let start = Instant::now();
    let report = |errors, message: String, runs, command| SanitizerReport {
        tool,
        mutant: mutant.map(|mutant| mutant.name.clone()),
        errors,
        message,
        seconds: start.elapsed().as_secs_f64(),
        runs,
        command,
    };
    let Some(sanitizer) = find() else {
        return Ok(report(None, String::from("compute-sanitizer was not found"), 0, String::new()));
    };
    let settings = tool.settings(problems, mutant, runs, limits);
    let output = Command::new(sanitizer)
        .args(["--tool", tool.name(), "--print-limit", "3"])
        .arg(program)
        .args(child::arguments(&settings))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| StressError::Process(format!("compute-sanitizer: {}", reason(&error))))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let (errors, message) = parse(&text);
    let command =
        format!("compute-sanitizer --tool {tool} --print-limit 3 lookback {}", child::arguments(&settings).join(" "));
    Ok(report(errors, message, runs_in(&text), command))
}

/// Runs in the report that the program printed between the tool's lines; 0 if it did not get so far.
fn runs_in(text: &str) -> u64 {
    let report = text.lines().find_map(|line| serde_json::from_str::<GpuStressReport>(line).ok());
    report.map_or(0, |report| report.runs)
}

/// Errors in what compute-sanitizer printed, and its first message.
fn parse(text: &str) -> (Option<u64>, String) {
    let said = |line: &str| line.strip_prefix("=========").map(|rest| rest.trim().to_owned());
    let summary = text.lines().rev().filter_map(said).find(|line| line.contains("SUMMARY:"));
    let errors = summary.as_deref().and_then(|line| {
        let words: Vec<&str> =
            line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        // "RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)", "ERROR SUMMARY: 1 error".
        let counted = |unit: &str| words.iter().position(|word| word.trim_end_matches('s') == unit);
        let at = counted("error")?;
        words.get(at.checked_sub(1)?)?.parse::<u64>().ok()
    });
    let is_message = |line: &String| {
        let noise = ["COMPUTE-SANITIZER", "Saved host backtrace", "Host Frame", "Target application", "SUMMARY:"];
        !line.is_empty() && noise.iter().all(|word| !line.contains(word))
    };
    let message = text.lines().filter_map(said).find(is_message);
    let last = || text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing").to_owned();
    match errors {
        Some(_) => (errors, message.unwrap_or_default()),
        None => (None, message.unwrap_or_else(last)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::stress::PLAIN;

    #[test]
    fn errors_are_counted_from_what_each_tool_prints() {
        let memcheck = "========= COMPUTE-SANITIZER\n\
                        ========= Invalid __global__ read of size 4 bytes\n\
                        =========     at lookback_entry+0x210 in entry.cu:50\n\
                        ========= ERROR SUMMARY: 12 errors\n";
        assert_eq!(parse(memcheck), (Some(12), String::from("Invalid __global__ read of size 4 bytes")));
        let racecheck = "========= COMPUTE-SANITIZER\n\
                         ========= Error: Race reported between Write access at lookback_entry+0x1 and Read access\n\
                         ========= RACECHECK SUMMARY: 3 hazards displayed (2 errors, 1 warning)\n";
        assert_eq!(parse(racecheck).0, Some(2));
        let clean = "========= COMPUTE-SANITIZER\n{\"verdict\":\"survived\"}\n========= ERROR SUMMARY: 0 errors\n";
        assert_eq!(parse(clean), (Some(0), String::new()));
        let warned = "========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)\n";
        assert_eq!(parse(warned).0, Some(0));
        assert_eq!(parse("========= Error: Device not supported\n").0, None);
        assert_eq!(parse("").0, None);
    }

    #[test]
    fn a_tool_is_found_by_its_name() {
        assert_eq!("racecheck".parse(), Ok(Tool::Racecheck));
        assert!("leakcheck".parse::<Tool>().is_err());
    }

    #[test]
    fn racecheck_is_not_asked_about_rings() {
        let limits = Limits { first_seed: 0, schedules: 24, time: None, threads: 1, stop: None };
        let judges = |tool: Tool, mutant: &str| tool.can_judge(PLAIN, mutant.parse().expect("a mutant"), &limits);
        let of_ring = "landed_wait_dropped";
        assert!(judges(Tool::Memcheck, of_ring) && !judges(Tool::Racecheck, of_ring));
        assert!(judges(Tool::Racecheck, "join_barrier_dropped"));
        let settings = Tool::Racecheck.settings(&[], None, 1, &limits);
        for index in 0..400 {
            let case = settings.draw(index);
            assert!(!case.request.strategy.row().shape.is_persistent(), "{case}");
        }
    }
}
