//! From `--device` to a device.

use super::CliError;
use super::arguments::DeviceChoice;
use super::console::Console;
use crate::device::Device;

/// Opens the device of the command line; `auto` says why where it falls back to the CPU device.
///
/// # Errors
/// When the device is not there or not part of this build.
pub fn open(choice: DeviceChoice, console: &Console) -> Result<Box<dyn Device>, CliError> {
    match choice {
        DeviceChoice::Cpu => open_cpu(),
        DeviceChoice::Cuda => open_cuda(),
        DeviceChoice::Auto => open_cuda().or_else(|error| {
            if let CliError::NoDevice { source, .. } = &error {
                console.remark(&format!("{source}\nrunning on the CPU device instead\n"));
            }
            // Without a CPU device in the build the GPU's absence is what there is to say.
            open_cpu().map_err(|cpu_error| if matches!(cpu_error, CliError::NotBuilt { .. }) { error } else { cpu_error })
        }),
    }
}

#[cfg(feature = "cpu")]
fn open_cpu() -> Result<Box<dyn Device>, CliError> {
    Ok(Box::new(crate::cpu::CpuDevice::new(crate::cpu::CpuSettings::default())))
}

#[cfg(not(feature = "cpu"))]
fn open_cpu() -> Result<Box<dyn Device>, CliError> {
    Err(CliError::NotBuilt { device: "CPU", feature: "cpu" })
}

#[cfg(feature = "cuda")]
fn open_cuda() -> Result<Box<dyn Device>, CliError> {
    match crate::cuda::CudaDevice::open(0) {
        Ok(device) => Ok(Box::new(device)),
        Err(error) => Err(CliError::NoDevice { device: "CUDA", source: error.into() }),
    }
}

#[cfg(not(feature = "cuda"))]
fn open_cuda() -> Result<Box<dyn Device>, CliError> {
    Err(CliError::NotBuilt { device: "CUDA", feature: "cuda-13000" })
}
