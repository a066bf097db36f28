//! The machine and the program that a figure comes from.
//!
//! What the driver knows comes from the driver; clocks as they are now, temperature, power and ECC come from
//! NVML. Where NVML is missing those stay empty and the sweep goes on.

use crate::strategy::tuning::Gpu;
use crate::text::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

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
    /// that the tree had changes), else what the build's folder says now, if the program was built from what is there,
    /// else unknown.
    pub fn this() -> Self {
        let (git_commit, git_dirty) = match option_env!("LOOKBACK_GIT_COMMIT").filter(|commit| !commit.is_empty()) {
            Some(commit) => {
                let clean = commit.strip_suffix("-dirty");
                (Some(clean.unwrap_or(commit).to_owned()), Some(clean.is_some()))
            }
            None => {
                let program = std::env::current_exe().ok();
                program.and_then(|program| origin(Path::new(env!("CARGO_MANIFEST_DIR")), &program)).unzip()
            }
        };
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), git_commit, git_dirty, kernels_sha256: kernels_sha256() }
    }

    /// The commit, with "-dirty" behind it where the tree had changes.
    pub fn commit(&self) -> Option<String> {
        let dirty = if self.git_dirty == Some(true) { "-dirty" } else { "" };
        self.git_commit.as_ref().map(|commit| format!("{commit}{dirty}"))
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

/// Files and folders of the package that the program is made of.
const SOURCES: [&str; 7] = ["src", "cuda", "sweeps", "tuning", "build.rs", "Cargo.toml", "Cargo.lock"];

/// The commit that a program in the file `program` was built from in the folder `package`, and whether there were changes
/// beside it. Asked when the program runs: a build script that asked would compile everything anew at each commit.
fn origin(package: &Path, program: &Path) -> Option<(String, bool)> {
    // As cargo judges it: a source that is newer than the program is not in it.
    let built = program.metadata().and_then(|file| file.modified()).ok()?;
    if SOURCES.iter().any(|source| newest(&package.join(source)).is_some_and(|changed| changed > built)) {
        return None;
    }
    let of_package = std::fs::read(package.join(".cargo_vcs_info.json"));
    if let Ok(text) = of_package {
        return packed(&text);
    }
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        // Another repository that the caller works in says nothing of this one.
        git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
        let output = git.arg("-C").arg(package).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    };
    // A package that lies inside somebody's own repository has a prefix there, and none of its commits.
    let answer = git(&["rev-parse", "--show-prefix", "HEAD"])?;
    let commit = answer.strip_prefix('\n')?.to_owned();
    let changes = git(&[&["status", "--porcelain", "--"][..], &SOURCES].concat())?;
    Some((commit, !changes.is_empty()))
}

/// What `cargo package` wrote of the commit.
fn packed(text: &[u8]) -> Option<(String, bool)> {
    #[derive(Deserialize)]
    struct Packed {
        git: Git,
    }
    #[derive(Deserialize)]
    struct Git {
        sha1: String,
        #[serde(default)]
        dirty: bool,
    }
    let Packed { git } = serde_json::from_slice(text).ok()?;
    Some((git.sha1, git.dirty))
}

/// When something in a file or folder was changed last: a folder, when a name in it was.
fn newest(path: &Path) -> Option<SystemTime> {
    let changed = path.metadata().and_then(|file| file.modified()).ok();
    let inside = std::fs::read_dir(path).into_iter().flatten().flatten().filter_map(|entry| newest(&entry.path()));
    inside.chain(changed).max()
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
    fn the_commit_is_that_of_the_sources_that_the_program_was_built_from() {
        let place = tempfile::tempdir().unwrap();
        let package = place.path().join("package");
        let program = place.path().join("program");
        let git = |folder: &Path, arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-C"]);
            let output = git.arg(folder).args(arguments).output().ok()?;
            output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
        };
        std::fs::create_dir_all(package.join("src")).unwrap();
        std::fs::write(package.join("src/main.rs"), "fn main() {}").unwrap();
        let Some(_) = git(&package, &["init", "--quiet"]) else { return println!("skipped: there is no git") };
        let build = || {
            std::fs::write(&program, "").unwrap();
            let later = SystemTime::now() + std::time::Duration::from_secs(5);
            std::fs::File::options().write(true).open(&program).unwrap().set_modified(later).unwrap();
        };
        build();
        assert_eq!(origin(&package, &program), None, "no commit");
        git(&package, &["add", "."]).unwrap();
        git(&package, &["commit", "--quiet", "-m", "first"]).unwrap();
        let first = git(&package, &["rev-parse", "HEAD"]).unwrap();
        assert_eq!(origin(&package, &program), Some((first.clone(), false)));
        // What a run leaves behind is no change of the program.
        std::fs::create_dir(package.join("report")).unwrap();
        std::fs::write(package.join("report/data.json"), "{}").unwrap();
        assert_eq!(origin(&package, &program), Some((first.clone(), false)));
        std::fs::write(package.join("src/more.rs"), "").unwrap();
        build();
        assert_eq!(origin(&package, &program), Some((first, true)), "built with a file that no commit has");
        // The folder has moved on, and the program has not.
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        std::fs::File::options().write(true).open(package.join("src/main.rs")).unwrap().set_modified(later).unwrap();
        assert_eq!(origin(&package, &program), None);
        // Somebody else's repository around a package.
        let inner = package.join("vendor/lookback");
        std::fs::create_dir_all(inner.join("src")).unwrap();
        build();
        assert_eq!(origin(&inner, &program), None);
        let info = r#"{"git": {"sha1": "0123abc"}, "path_in_vcs": ""}"#;
        std::fs::write(inner.join(".cargo_vcs_info.json"), info).unwrap();
        assert_eq!(origin(&inner, &program), Some(("0123abc".to_owned(), false)));
        assert_eq!(origin(&place.path().join("nowhere"), &program), None);
    }

    #[test]
    fn the_program_knows_its_kernels() {
        assert!(!Program::this().kernels_sha256.is_empty());
    }
}
