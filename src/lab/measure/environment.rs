//! The machine and the program that a figure comes from.
//!
//! What the driver knows comes from the driver; clocks as they are now, temperature, power and ECC come from
//! NVML. Where NVML is missing those stay empty and the sweep goes on.

use crate::strategy::tuning::Gpu;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::process::Command;

/// A GPU and what works it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// For example "NVIDIA H100 80GB HBM3".
    pub gpu: String,
    /// Digest of the GPU's serial identity: equal for one and the same GPU, and names nobody's machine.
    pub gpu_digest: String,
    /// Version of the driver, for example "580.159".
    pub driver: String,
    /// CUDA version that the driver speaks, for example "13.0".
    pub cuda: String,
    /// What compiled the kernels, for example "NVRTC 13.0".
    pub compiler: String,
    /// For example "9.0".
    pub compute_capability: String,
    /// Multiprocessors.
    pub multiprocessors: u64,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Bytes of L2 cache.
    pub l2_bytes: u64,
    /// Largest multiprocessor clock.
    pub maximum_core_clock_mhz: Option<u64>,
    /// Largest memory clock.
    pub maximum_memory_clock_mhz: Option<u64>,
    /// What NVML tells.
    pub nvml: Option<NvmlFacts>,
    /// Whose libraries the peers are, name and version; empty if they are not built in.
    pub peers: Vec<String>,
    /// The host's processor.
    pub processor: String,
    /// Processors that the program may use.
    pub processors: u64,
}

/// What only NVML tells, at the start of the sweep.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NvmlFacts {
    /// Whether memory is error-correcting.
    pub ecc: Option<bool>,
    /// Multiprocessor clock now.
    pub core_clock_mhz: Option<u32>,
    /// Memory clock now.
    pub memory_clock_mhz: Option<u32>,
    /// Clock that applications ask for.
    pub applications_core_clock_mhz: Option<u32>,
    /// Limit of power.
    pub power_limit_watts: Option<f64>,
    /// Temperature.
    pub temperature_celsius: Option<u32>,
    /// Whether the driver stays loaded between programs.
    pub persistence_mode: Option<bool>,
    /// Version of NVML.
    pub nvml_version: Option<String>,
}

impl Machine {
    /// A short word for file names: "h100" of "NVIDIA H100 80GB HBM3".
    pub fn gpu_slug(&self) -> String {
        let words: Vec<String> = self
            .gpu
            .to_lowercase()
            .split(|character: char| !character.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty() && *word != "nvidia")
            .map(str::to_owned)
            .collect();
        let is_model =
            |word: &String| word.chars().any(|c| c.is_ascii_digit()) && word.chars().any(|c| c.is_ascii_alphabetic());
        match words.first() {
            Some(word) if is_model(word) => word.clone(),
            Some(_) => words.join("-"),
            None => "gpu".to_owned(),
        }
    }

    /// The GPU, as tuning tables tell GPUs apart; an H100 where the compute capability cannot be read.
    pub fn tuning_gpu(&self) -> Gpu {
        Gpu::parse(&self.compute_capability, self.multiprocessors).unwrap_or_default()
    }

    /// Name and digest: what must be the same for two rows to belong into one record.
    pub fn gpu_identity(&self) -> String {
        format!("{} ({})", self.gpu, self.gpu_digest)
    }
}

/// The first 12 digits of the SHA-256 of a GPU's 16 bytes of identity.
pub fn digest_of_identity(identity: [u8; 16]) -> String {
    hexadecimal(&Sha256::digest(identity)[..6])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What NVML tells about the GPU with these 16 bytes of identity; `None` where NVML is missing.
pub fn ask_nvml(identity: [u8; 16]) -> Option<NvmlFacts> {
    use nvml_wrapper::Nvml;
    use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
    let nvml = Nvml::init().ok()?;
    let digits = hexadecimal(&identity);
    let uuid =
        format!("GPU-{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]);
    // NVML numbers GPUs in its own order, so by identity.
    let device = nvml.device_by_uuid(uuid).ok()?;
    Some(NvmlFacts {
        ecc: device.is_ecc_enabled().ok().map(|state| state.currently_enabled),
        core_clock_mhz: device.clock_info(Clock::SM).ok(),
        memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
        applications_core_clock_mhz: device.applications_clock(Clock::SM).ok(),
        power_limit_watts: device.enforced_power_limit().ok().map(|milliwatts| f64::from(milliwatts) / 1000.0),
        temperature_celsius: device.temperature(TemperatureSensor::Gpu).ok(),
        persistence_mode: device.is_in_persistent_mode().ok(),
        nvml_version: nvml.sys_nvml_version().ok(),
    })
}

/// The host's processor and how many of it the program may use.
pub fn processor() -> (String, u64) {
    let name = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let count = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    (name.unwrap_or_else(|| std::env::consts::ARCH.to_owned()), count)
}

/// The program that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Version of the crate.
    pub version: String,
    /// Commit it was built from, where it is known.
    pub git_commit: Option<String>,
    /// Whether the tree had changes that are in no commit.
    pub git_dirty: Option<bool>,
    /// SHA-256 of the embedded kernel sources, first 16 digits: these are what is measured.
    pub kernels_sha256: String,
}

impl Program {
    /// This program. The commit is what the build was told in `LOOKBACK_GIT_COMMIT` (a trailing "-dirty" says
    /// that the tree had changes), else what the source folder of the build says now, else unknown.
    pub fn this() -> Self {
        let (git_commit, git_dirty) = match option_env!("LOOKBACK_GIT_COMMIT").filter(|commit| !commit.is_empty()) {
            Some(commit) => {
                let clean = commit.strip_suffix("-dirty");
                (Some(clean.unwrap_or(commit).to_owned()), Some(clean.is_some()))
            }
            None => from_checkout(),
        };
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), git_commit, git_dirty, kernels_sha256: kernels_sha256() }
    }
}

#[cfg(feature = "cuda")]
fn kernels_sha256() -> String {
    let mut hash = Sha256::new();
    for (name, text) in crate::cuda::sources::embedded() {
        for part in [name, text] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
    }
    hexadecimal(&hash.finalize()[..8])
}

#[cfg(not(feature = "cuda"))]
fn kernels_sha256() -> String {
    "none".to_owned()
}

/// Commit and dirty flag of the folder that the program was built from, where that is a checkout still.
fn from_checkout() -> (Option<String>, Option<bool>) {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR")]).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"]);
    let dirty = git(&["status", "--porcelain"]).map(|changes| !changes.is_empty());
    (commit, dirty)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn machine(gpu: &str) -> Machine {
        Machine {
            gpu: gpu.to_owned(),
            gpu_digest: "0123".to_owned(),
            driver: "580.1".to_owned(),
            cuda: "13.0".to_owned(),
            compiler: "NVRTC 13.0".to_owned(),
            compute_capability: "9.0".to_owned(),
            multiprocessors: 132,
            memory_bytes: 80 << 30,
            l2_bytes: 50 << 20,
            maximum_core_clock_mhz: Some(1980),
            maximum_memory_clock_mhz: None,
            nvml: None,
            peers: Vec::new(),
            processor: "test".to_owned(),
            processors: 2,
        }
    }

    #[test]
    fn the_slug_is_the_model() {
        for (gpu, slug) in [
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("NVIDIA H200", "h200"),
            ("NVIDIA A100-SXM4-80GB", "a100"),
            ("NVIDIA GeForce RTX 4090", "geforce-rtx-4090"),
            ("", "gpu"),
        ] {
            assert_eq!(machine(gpu).gpu_slug(), slug, "{gpu}");
        }
    }

    #[test]
    fn a_machine_without_nvml_has_no_nvml_facts() {
        if nvml_wrapper::Nvml::init().is_err() {
            assert_eq!(ask_nvml([1; 16]), None);
        }
    }

    #[test]
    fn the_program_knows_its_kernels() {
        assert!(!Program::this().kernels_sha256.is_empty());
    }
}
