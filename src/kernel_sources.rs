//! The kernel sources, embedded at build time, so that the program runs alone: NVRTC compiles them, and the mutants
//! are read from them.

// `KERNEL_SOURCES: &[(&str, &str)]`, path below cuda/ and text, written by build.rs.
include!(concat!(env!("OUT_DIR"), "/kernel_sources.rs"));

/// Every embedded file: its path below `cuda/` and its text.
pub fn embedded() -> &'static [(&'static str, &'static str)] {
    KERNEL_SOURCES
}
