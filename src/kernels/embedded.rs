//! The kernel sources, embedded at build time, so that the program runs alone: NVRTC compiles them, and the mutants
//! are read from them; the host's compiler compiles them for ThreadSanitizer.

// `KERNEL_SOURCES` and `HOST_SOURCES`, both `&[(&str, &str)]`, path below cuda/ and text, written by build.rs.
include!(concat!(env!("OUT_DIR"), "/kernel_sources.rs"));

/// Every embedded file that is not for the host alone: its path below `cuda/` and its text.
pub fn embedded() -> &'static [(&'static str, &'static str)] {
    KERNEL_SOURCES
}

/// What a host compiler needs for the kernels and the programs in `cuda/host/`: path below `cuda/` and text.
#[cfg(feature = "cpu")]
pub(crate) fn for_host() -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_for_gpu_only = |name: &str| name.starts_with("gpu/") || name.ends_with(".cu");
    KERNEL_SOURCES.iter().filter(move |(name, _)| !is_for_gpu_only(name)).chain(HOST_SOURCES).copied()
}
