//! What tests share: variables of the environment, a compiler without a GPU, instances, a machine that nobody has, and the peers.
#![allow(dead_code)] // No test needs all of it.

#[cfg(feature = "cli")]
pub mod laboratory;

use lookback::element::{ElementType, Instance, Operator};
#[cfg(feature = "cli")]
use lookback::lab::measure::environment::{Machine, Program};
#[cfg(feature = "cli")]
use lookback::lab::measure::record::{FORMAT, Finished, Opened, SweepHeader, SweepRecorder};
#[cfg(feature = "cli")]
use lookback::lab::measure::sweep::SweepFile;
use std::path::{Path, PathBuf};

/// A committed file by its path in the repository. The packed crate leaves records and pages out, so there, with a word,
/// nothing.
pub fn committed(path: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join(path);
    if file.exists() {
        return Some(file);
    }
    // Cargo writes this one when it packs.
    assert!(root.join("Cargo.toml.orig").exists(), "{} is committed, and not there", file.display());
    println!("skipped: the packed crate has no {path}");
    None
}

/// What a variable of the environment says, unless it is empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The number that it says.
pub fn number(name: &str) -> Option<u64> {
    variable(name).map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// The compiler without a cache, so that a test compiles what it says; nothing, with a word, where there is none.
#[cfg(feature = "cuda")]
pub fn compiler(test: &str) -> Option<lookback::cuda::Compiler> {
    use lookback::cuda::Nvrtc;
    use lookback::cuda::compile::{Cache, Compiler};
    match Nvrtc::shared() {
        Ok(nvrtc) => Some(Compiler::with_cache(nvrtc, Cache::disabled())),
        Err(error) => {
            assert!(
                std::env::var("LOOKBACK_REQUIRE_CUDA_COMPILER").as_deref() != Ok("1"),
                "LOOKBACK_REQUIRE_CUDA_COMPILER is 1: {error}"
            );
            println!("{test} skipped: no NVRTC ({error})");
            None
        }
    }
}

pub fn instance(element: ElementType, operator: Operator) -> Instance {
    Instance::new(element, operator).expect("the operator is defined on the element")
}

pub fn sums_of_u32() -> Instance {
    instance(ElementType::U32, Operator::Sum)
}

pub fn intervals() -> Instance {
    instance(ElementType::IndexInterval, Operator::Intervals)
}

/// The flat scans of other libraries, of one type, as a build with the feature `peers` names them.
pub const PEER_SCANS: [&str; 11] = [
    "cub-3.0.1",
    "cub-3.0.1-64-bit-count",
    "cub-3.0.1-narrow-sum",
    "cub-3.5.0",
    "cub-3.5.0-64-bit-count",
    "cub-3.5.0-narrow-sum",
    "cub-3.5.0-run-to-run",
    "thrust-3.0.1",
    "thrust-3.0.1-synchronous",
    "thrust-3.5.0",
    "thrust-3.5.0-synchronous",
];

/// Those of them that scan something else alone.
pub const PEER_PROBLEM_SCANS: [&str; 5] = [
    "cub-3.0.1-computed-keys",
    "cub-3.0.1-wide-sum",
    "cub-3.5.0-computed-keys",
    "cub-3.5.0-segmented",
    "cub-3.5.0-wide-sum",
];

/// The name of the GPU that records of tests come from.
pub const H100: &str = "NVIDIA H100 80GB HBM3";

/// A machine with this GPU.
#[cfg(feature = "cli")]
pub fn machine(gpu: &str) -> Machine {
    Machine {
        gpu: gpu.to_owned(),
        gpu_digest: "000000000000".to_owned(),
        driver: "580.159".to_owned(),
        cuda: "13.0".to_owned(),
        compiler: "NVRTC 13.0".to_owned(),
        compute_capability: "9.0".to_owned(),
        multiprocessors: 132,
        memory_bytes: 80 << 30,
        l2_bytes: 50 << 20,
        maximum_core_clock_mhz: None,
        maximum_memory_clock_mhz: None,
        nvml: None,
        peers: Vec::new(),
        processor: "a made-up processor".to_owned(),
        processors: 16,
    }
}

/// How a sweep on that machine begins.
#[cfg(feature = "cli")]
pub fn header(gpu: &str, sweep: SweepFile, command: &str) -> SweepHeader {
    SweepHeader {
        format: FORMAT,
        program: Program {
            version: "0".to_owned(),
            git_commit: Some("abc".to_owned()),
            git_dirty: Some(false),
            kernels_sha256: "00".to_owned(),
        },
        date: "2026-11-21T00:00:00Z".to_owned(),
        command: command.to_owned(),
        sweep,
        machine: machine(gpu),
    }
}

/// How it ends.
#[cfg(feature = "cli")]
pub const FINISHED: Finished = Finished { seconds: 1.0, median_clock_mhz: Some(1980.0), temperature_celsius: None };

/// A record in a folder, gone on with or new.
#[cfg(feature = "cli")]
pub fn recorder(folder: &Path, header: &SweepHeader, resume: bool) -> SweepRecorder {
    match SweepRecorder::open(folder, header, resume).unwrap_or_else(|error| panic!("{error}")) {
        Opened::Recorder(recorder) => *recorder,
        Opened::Finished(path) => panic!("{} is finished", path.display()),
    }
}
