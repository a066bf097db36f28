//! From `--device` to a device.

#[cfg(feature = "cpu")]
use super::arguments::{BlockOrderChoice, ScheduleChoice};
use super::arguments::{CompareArguments, DeviceChoice};
use super::console::Console;
use super::error::CliError;
#[cfg(feature = "cpu")]
use crate::cpu::{BlockOrder, Schedule};
#[cfg(feature = "cpu")]
use crate::lab::cpu_device::{CpuDevice, CpuSettings};
use crate::lab::device::Device;

/// Opens the device of the command line; `auto` says why where it falls back to the CPU device.
///
/// # Errors
/// When the device is not there or not part of this build.
pub fn open(arguments: &CompareArguments, console: &Console) -> Result<Box<dyn Device>, CliError> {
    match arguments.device {
        DeviceChoice::Cpu => open_cpu(arguments),
        DeviceChoice::Cuda => open_cuda(),
        DeviceChoice::Auto => open_cuda().or_else(|error| {
            if let CliError::NoDevice { source, .. } = &error {
                console.remark(&format!("{source}\nrunning on the CPU device instead\n"));
            }
            // Without a CPU device in the build the GPU's absence is what there is to say.
            open_cpu(arguments)
                .map_err(|cpu_error| if matches!(cpu_error, CliError::NotBuilt { .. }) { error } else { cpu_error })
        }),
    }
}

/// How the CPU device runs, as the command line says.
#[cfg(feature = "cpu")]
pub(super) fn cpu_settings(arguments: &CompareArguments) -> CpuSettings {
    let unsaid = CpuSettings::like_a_gpu();
    CpuSettings {
        resident_blocks: arguments.resident_blocks.unwrap_or(unsaid.resident_blocks),
        block_order: match arguments.block_order {
            None => unsaid.block_order,
            Some(BlockOrderChoice::InOrder) => BlockOrder::InOrder,
            Some(BlockOrderChoice::Reverse) => BlockOrder::Reverse,
            Some(BlockOrderChoice::Random) => BlockOrder::Random,
        },
        schedule: match arguments.schedule {
            Some(ScheduleChoice::Fair) => Schedule::Fair,
            Some(ScheduleChoice::Random) => Schedule::Random { preemption: arguments.preemption.unwrap_or(0.0) },
            None => arguments.preemption.map_or(unsaid.schedule, |preemption| Schedule::Random { preemption }),
        },
        ..unsaid
    }
}

#[cfg(feature = "cpu")]
fn open_cpu(arguments: &CompareArguments) -> Result<Box<dyn Device>, CliError> {
    Ok(Box::new(CpuDevice::new(cpu_settings(arguments))))
}

#[cfg(not(feature = "cpu"))]
fn open_cpu(_arguments: &CompareArguments) -> Result<Box<dyn Device>, CliError> {
    Err(CliError::NotBuilt { device: "CPU device", feature: "cpu" })
}

#[cfg(feature = "cuda")]
fn open_cuda() -> Result<Box<dyn Device>, CliError> {
    match crate::lab::cuda::CudaDevice::open(0) {
        Ok(device) => Ok(Box::new(device)),
        Err(error) => Err(CliError::NoDevice { device: "CUDA", source: error.into() }),
    }
}

#[cfg(not(feature = "cuda"))]
fn open_cuda() -> Result<Box<dyn Device>, CliError> {
    Err(CliError::NotBuilt { device: "CUDA device", feature: "cuda-13000" })
}
