//! The detectors of the kill table, one row each, and a file for what they do.

#[cfg(feature = "cpu")]
mod cpu;
#[cfg(all(feature = "cpu", feature = "cuda"))]
pub mod gpu;
#[cfg(all(feature = "cpu", feature = "cuda"))]
mod models;
#[cfg(all(feature = "cpu", feature = "cuda"))]
mod sanitizer;
#[cfg(feature = "cpu")]
mod side_by_side;
#[cfg(feature = "cpu")]
pub mod thread_sanitizer;

#[cfg(feature = "cpu")]
use super::Memory;
use super::detector::Detector;
use crate::lab::workload::ProblemKind;
use crate::names::named;

/// A detector, or why there is none.
pub type Made = Result<Box<dyn Detector>, String>;

/// What is known of a detector.
#[derive(Debug)]
pub struct DetectorRow {
    /// The head of its column, at most 9 letters.
    pub column: &'static str,
    /// Whether it needs a GPU.
    pub needs_gpu: bool,
    /// What a mutant took on average. Without a GPU on two cores, 2026-11-23: the first three over all at `--seconds 4`, the
    /// models over a sample of 60, with the kernels as they are. The last two on an H200's machine with 16 cores, 2026-11-29:
    /// `gpu-stress` over all at `--seconds 1.5`, `compute-sanitizer` over a sample of 100.
    pub seconds_a_mutant: f64,
    /// Whether it draws cases of problems other than plain scans.
    pub knows_problems: bool,
    /// Makes it, for cases of these problems, or says why this machine or this build has it not.
    pub new: fn(&[ProblemKind]) -> Made,
}

impl DetectorRow {
    /// Whether it draws cases of all problems, on the CPU device.
    pub const fn draws_on_cpu(&self) -> bool {
        self.knows_problems && !self.needs_gpu
    }
}

/// Declares [`DetectorName`] and the table of its rows in one. A detector is made in a build with the CPU device and the
/// feature before `=>`.
macro_rules! detectors {
    ($($(#[$meta:meta])* $variant:ident = $name:literal {
        column: $column:literal, needs_gpu: $needs_gpu:literal, seconds: $seconds:literal,
        knows_problems: $knows_problems:literal, new($problems:pat): $feature:literal => $new:expr
    })+) => {
        named! {
            /// A detector, in the order of the table's columns.
            pub enum DetectorName as "detector" { $($(#[$meta])* $variant = $name,)+ }
        }
        static ROWS: &[DetectorRow] = &[$(DetectorRow {
            column: $column,
            needs_gpu: $needs_gpu,
            seconds_a_mutant: $seconds,
            knows_problems: $knows_problems,
            new: |problems| {
                #[cfg(all(feature = "cpu", feature = $feature))]
                {
                    let $problems = problems;
                    Ok(Box::new($new))
                }
                #[cfg(not(all(feature = "cpu", feature = $feature)))]
                {
                    let _ = problems;
                    Err("not part of this build".to_owned())
                }
            },
        }),+];
    };
}

detectors! {
    /// Hostile schedules on the CPU device; every load returns the last value stored.
    CpuSchedules = "cpu-schedules" {
        column: "schedules", needs_gpu: false, seconds: 0.7,
        knows_problems: true,
        new(problems): "cpu" => cpu::OnCpu::new(problems, Memory::Strong)
    }
    /// The same schedules over a model of weak memory.
    WeakMemory = "weak-memory" {
        column: "weak", needs_gpu: false, seconds: 0.4,
        knows_problems: true,
        new(problems): "cpu" => cpu::OnCpu::new(problems, Memory::Weak)
    }
    /// The kernels compiled with ThreadSanitizer, a fiber a CUDA thread.
    ThreadSanitizer = "thread-sanitizer" {
        column: "TSan", needs_gpu: false, seconds: 0.5,
        knows_problems: false, new(_): "cpu" => thread_sanitizer::Sanitized::new()?
    }
    /// Every interleaving of a model of the protocol, by loom.
    Loom = "loom" {
        column: "loom", needs_gpu: false, seconds: 1.2,
        knows_problems: false, new(_): "cuda" => models::OnModel::new(models::Model::Loom)?
    }
    /// Every execution of a model of the protocol that the PTX memory model allows.
    PtxEnumerator = "ptx-enumerator" {
        column: "PTX", needs_gpu: false, seconds: 0.6,
        knows_problems: false, new(_): "cuda" => models::OnModel::new(models::Model::Ptx)?
    }
    /// Delays, co-running kernels, graphs and poisoned workspaces on a GPU.
    GpuStress = "gpu-stress" {
        column: "GPU", needs_gpu: true, seconds: 1.3,
        knows_problems: true, new(problems): "cuda" => gpu::stressed(problems)?
    }
    /// NVIDIA's compute-sanitizer on a GPU.
    ComputeSanitizer = "compute-sanitizer" {
        column: "sanitizer", needs_gpu: true, seconds: 1.7,
        knows_problems: true, new(problems): "cuda" => sanitizer::sanitized(problems)?
    }
}

impl DetectorName {
    /// All that is known of it.
    pub fn row(self) -> &'static DetectorRow {
        &ROWS[self as usize]
    }
}
