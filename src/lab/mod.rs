//! The laboratory: devices that hold a dataset and verify every element, measurements, stress and its detectors, memory
//! models, and the reports drawn from all of them. Feature `lab`; a program that only scans does without.

// Without a device only its filling is used, by references.
#[cfg_attr(not(any(feature = "cpu", feature = "cuda")), allow(dead_code))]
pub(crate) mod arrays;
pub mod axiomatic;
pub(crate) mod bins;
#[cfg(feature = "cpu")]
pub(crate) mod bounds;
pub mod claims;
pub mod costs;
#[cfg(feature = "cpu")]
pub mod cpu_device;
#[cfg(feature = "cpu")]
pub mod cpu_kernels;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod dataset;
pub mod device;
#[cfg(feature = "cpu")]
pub mod host_chunked;
#[cfg(feature = "cpu")]
pub mod host_compiler;
#[cfg(feature = "cpu")]
pub mod host_ranks;
#[cfg(feature = "cpu")]
pub mod host_scanner;
#[cfg(feature = "cpu")]
pub mod lesson;
pub mod measure;
pub mod order;
pub mod origin;
pub mod peers;
pub mod ranking;
pub mod ranks;
pub mod record;
pub mod recorder;
pub mod report;
pub mod running;
pub mod statistics;
pub mod stress;
pub mod trace;
pub mod verify;
pub(crate) mod workers;
pub mod workload;
