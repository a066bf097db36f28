//! `lookback info`: what is on this machine, and for everything that is missing one line with what to do.

use crate::lab::measure::environment::Program;
use crate::text::wrapped;
use std::fmt::Write;

/// The whole text.
pub fn text() -> String {
    let mut text = String::new();
    let commit = Program::this().commit().map(|commit| format!(" ({commit})")).unwrap_or_default();
    line(&mut text, "lookback", &format!("{}{commit}", env!("CARGO_PKG_VERSION")));
    line(&mut text, "features", &features());
    cpu(&mut text);
    cuda(&mut text);
    text
}

/// A name and what is to say about it, wrapped to 80 columns under itself.
fn line(text: &mut String, name: &str, value: &str) {
    const INDENT: usize = 18;
    let lines = wrapped(value, 80 - INDENT).join(&format!("\n{:INDENT$}", ""));
    let _ = writeln!(text, "{name:<INDENT$}{lines}");
}

/// A device by its name, and what it says of itself.
#[cfg(any(feature = "cpu", feature = "cuda"))]
fn device(text: &mut String, kind: &str, description: &crate::lab::device::DeviceDescription) {
    line(text, kind, &description.name);
    for (name, value) in &description.facts {
        line(text, &format!("  {name}"), value);
    }
}

fn features() -> String {
    let features = [
        ("cpu", cfg!(feature = "cpu")),
        ("cuda-12080", cfg!(feature = "cuda-12080")),
        ("cuda-12090", cfg!(feature = "cuda-12090")),
        ("cuda-13000", cfg!(feature = "cuda-13000")),
        ("nccl", cfg!(feature = "nccl")),
    ];
    let enabled: Vec<_> = features.into_iter().filter(|(_, enabled)| *enabled).map(|(name, _)| name).collect();
    if enabled.is_empty() { "none: this build has no device".to_owned() } else { enabled.join(", ") }
}

#[cfg(feature = "cpu")]
fn cpu(text: &mut String) {
    use crate::lab::cpu_device::{CpuDevice, CpuSettings};
    use crate::lab::device::Device;
    let description = CpuDevice::new(CpuSettings::like_a_gpu()).description();
    device(text, "CPU device", &description);
    // For what the build left out.
    line(text, "C++ compiler", &crate::lab::host_compiler::compiler_in_words());
}

#[cfg(not(feature = "cpu"))]
fn cpu(text: &mut String) {
    line(text, "CPU device", "not in this build; build with the cargo feature 'cpu' (needs g++ or clang)");
}

#[cfg(feature = "cuda")]
fn cuda(text: &mut String) {
    use crate::cuda::SearchPath;
    use crate::cuda::compile::Cache;
    use crate::cuda::toolkit::probe_driver;
    use crate::lab::cuda::CudaDevice;
    use crate::lab::device::Device;
    match probe_driver() {
        Err(error) => line(text, "CUDA device", &error.to_string()),
        Ok(()) => match CudaDevice::open(0) {
            Err(error) => line(text, "CUDA device", &error.to_string()),
            Ok(cuda) => device(text, "CUDA device", &cuda.description()),
        },
    }
    let path = SearchPath::from_environment();
    match path.find_nvrtc() {
        Ok(nvrtc) => {
            let (major, minor) = nvrtc.version();
            line(text, "NVRTC", &format!("{major}.{minor} at {}", nvrtc.path().display()));
        }
        Err(error) => line(text, "NVRTC", &error.to_string()),
    }
    match path.find_nvcc() {
        Ok(nvcc) => line(text, "nvcc", &nvcc.display().to_string()),
        Err(_) => line(text, "nvcc", "not found; only the comparison with CUB and Thrust will need it"),
    }
    match Cache::from_environment().folder() {
        Some(folder) => line(text, "kernel cache", &folder.display().to_string()),
        None => line(text, "kernel cache", "none: no folder for caches is known; set XDG_CACHE_HOME or HOME"),
    }
}

#[cfg(not(feature = "cuda"))]
fn cuda(text: &mut String) {
    line(text, "CUDA device", "not in this build; build with the cargo feature 'cuda-13000'");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_at_80_columns() {
        let mut text = String::new();
        line(&mut text, "name", &"some words ".repeat(40));
        assert!(text.lines().count() > 4);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }
}
