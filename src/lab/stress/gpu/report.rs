//! What stress on a GPU found, as it goes from one process to another.

use super::settings::GpuStressSettings;
use serde::{Deserialize, Serialize};

/// What went wrong in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// Elements are wrong: `run` is the lane's first wrong run, `wrong_elements` are those of all `wrong_runs`,
    /// `first_index` is that of the first wrong element of the first of them; negative or beyond n for a guard.
    #[error("{wrong_elements} wrong elements in {wrong_runs} run(s), the first at index {first_index}")]
    Mismatch { run: u64, wrong_runs: u64, wrong_elements: u64, first_index: i64 },
    /// A tile waited in vain for another; `waits` ran out.
    #[error("lost progress: tile {waiting_tile} waited in vain for tile {missing_tile}")]
    LostProgress { waiting_tile: u64, missing_tile: u64, waits: u64 },
    /// The device did not come back for so long.
    #[error("the device did not come back within {seconds:.0} s")]
    Hung { seconds: f64 },
    /// The driver ended the context, for example for an access outside of any array.
    #[error("{message}")]
    Crashed { message: String },
}

/// A failure with the line that runs it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StressFailure {
    /// What went wrong.
    pub found: Finding,
    /// Runs before it was seen, all lanes and cases together.
    pub at_run: u64,
    /// Seconds from the first launch on, those of compiling left out.
    pub seconds: f64,
    /// The case, for [`reproduce`](super::reproduce).
    pub case: String,
}

/// What stress says of a mutant, or of the kernels as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum StressOutcome {
    /// Something was wrong, in the run `at_run`, so many seconds after the first launch, those of compiling left out; `seed` is
    /// what it was drawn from.
    Killed { how: Finding, at_run: u64, seed: u64, seconds: f64 },
    /// Everything was right, so many times.
    Survived { runs: u64 },
}

/// What stress did and found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuStressReport {
    /// The GPU.
    pub device: String,
    /// The fault, if any.
    pub mutant: Option<String>,
    /// What everything was drawn from.
    pub seed: u64,
    /// Scans that were run, each compared in full.
    pub runs: u64,
    /// Cases that they belong to.
    pub configurations: u64,
    /// Elements that were compared.
    pub elements: u64,
    /// Delays in the kernels.
    pub delays: u64,
    /// Kernels that were compiled or read.
    pub kernels: u64,
    /// Seconds of it.
    pub compile_seconds: f64,
    /// Seconds from the first launch on, those of compiling left out.
    pub seconds: f64,
    /// What went wrong.
    pub failures: Vec<StressFailure>,
    /// What that says of the kernels.
    pub verdict: StressOutcome,
}

impl GpuStressReport {
    /// Of a stress that has done nothing yet.
    pub(in crate::lab::stress) fn before(settings: &GpuStressSettings) -> Self {
        Self {
            device: String::new(),
            mutant: settings.mutant.map(|mutant| mutant.name.clone()),
            seed: settings.seed,
            runs: 0,
            configurations: 0,
            elements: 0,
            delays: 0,
            kernels: 0,
            compile_seconds: 0.0,
            seconds: 0.0,
            failures: Vec::new(),
            verdict: StressOutcome::Survived { runs: 0 },
        }
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub struct GpuStressProgress {
    /// Runs so far.
    pub runs: u64,
    /// Cases so far.
    pub configurations: u64,
    /// Failures so far.
    pub failures: usize,
    /// Seconds since the first launch.
    pub seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_back_from_its_text() {
        for how in [
            Finding::LostProgress { waiting_tile: 7, missing_tile: 6, waits: 3 },
            Finding::Hung { seconds: 10.0 },
            Finding::Mismatch { run: 1, wrong_runs: 2, wrong_elements: 3, first_index: -4 },
        ] {
            read_back(&how);
        }
    }

    fn read_back(how: &Finding) {
        let report = GpuStressReport {
            device: String::from("a GPU"),
            mutant: Some(String::from("torn_descriptor")),
            seed: 5,
            runs: 640,
            configurations: 2,
            elements: 1_000_000,
            delays: 17,
            kernels: 3,
            compile_seconds: 0.5,
            seconds: 0.25,
            failures: vec![StressFailure {
                found: how.clone(),
                at_run: 640,
                seconds: 0.2,
                case: String::from("a line"),
            }],
            verdict: StressOutcome::Killed { how: how.clone(), at_run: 640, seed: 5, seconds: 0.2 },
        };
        let text = serde_json::to_string(&report).expect("a report has text");
        assert!(text.contains(r#""verdict":"killed""#), "{text}");
        assert_eq!(serde_json::from_str::<GpuStressReport>(&text).expect("its own text"), report);
    }
}
