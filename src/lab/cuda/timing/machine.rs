//! The machine, as records keep it.

use crate::cuda::error::{Context as _, CudaError};
use crate::lab::cuda::harness::{GpuHarness, driver_cuda, kernel_module_version};
use crate::lab::measure::environment::{self, Machine};
use crate::lab::peers;
use cudarc::driver::sys::CUdevice_attribute as Attribute;

/// What NVML knows the GPU by.
pub(super) fn identity(gpu: &GpuHarness) -> Result<[u8; 16], CudaError> {
    let identity = gpu.context().uuid().during(|| String::from("asking for the device's identity"))?;
    Ok(identity.bytes.map(|byte| byte.cast_unsigned()))
}

pub(super) fn machine(gpu: &GpuHarness, identity: [u8; 16]) -> Result<Machine, CudaError> {
    let megahertz = |which| gpu.attribute(which).ok().map(|kilohertz| kilohertz / 1000).filter(|&clock| clock > 0);
    let (processor, processors) = environment::processor();
    let peers = peers::all().iter().map(|peer| match peer.library_version() {
        Some((major, minor, patch)) => format!("{} ({major}.{minor}.{patch})", peer.name()),
        None => peer.name().to_owned(),
    });
    Ok(Machine {
        gpu: gpu.name.clone(),
        gpu_digest: environment::digest_of_identity(identity),
        driver: kernel_module_version(),
        cuda: driver_cuda()?,
        compiler: gpu.compiler_name(),
        compute_capability: gpu.compute_capability(),
        multiprocessors: u64::from(gpu.gpu().multiprocessors),
        memory_bytes: gpu.memory_bytes()?,
        l2_bytes: gpu.attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        maximum_core_clock_mhz: megahertz(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        maximum_memory_clock_mhz: megahertz(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
        nvml: environment::ask_nvml(identity),
        peers: peers.collect(),
        processor,
        processors,
    })
}
