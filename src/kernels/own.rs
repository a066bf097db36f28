//! Kernels of a user's own on the blocks of the scans: `cuda/own/chain.cuh` and what it includes.
//!
//! Such a kernel is CUDA C++ of a `DEVICE` function of one structure, its arguments. [`Compiler::own_kernel`] makes it for a GPU,
//! `OwnBody::compile` for the CPU device.
//!
//! [`Compiler::own_kernel`]: crate::cuda::Compiler::own_kernel

use super::sources::{SourceMissing, embedded, flatten};
use crate::strategy::Descriptor;
use crate::strategy::launch::CONTROL_BYTES;
use crate::strategy::plan::{Plan, RegionKey};
use bytemuck::{Pod, Zeroable};

/// A kernel of a user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnKernel<'a> {
    /// CUDA C++, which includes files below `cuda/` by their paths there: `#include "own/chain.cuh"`.
    pub text: &'a str,
    /// The name of the function, `DEVICE void function(const arguments&)`.
    pub function: &'a str,
    /// The name of the structure of its arguments, which a `#[repr(C)]` structure of Rust lies like.
    pub arguments: &'a str,
}

impl OwnKernel<'_> {
    /// The translation unit for nvcc or NVRTC, with all that it includes: the kernel is `lookback_entry`, whose one parameter is
    /// the structure.
    ///
    /// # Errors
    /// When the text includes a file that is not there.
    pub fn source(&self) -> Result<String, SourceMissing> {
        let Self { text, function, arguments } = self;
        let unit = format!(
            "{text}\n#include \"entry.cuh\"\nextern \"C\" __global__ void lookback_entry(const __grid_constant__ {arguments} \
             given) {{\n  ::lookback::enter<false>([&] {{ {function}(given); }});\n}}\n"
        );
        flatten(&[embedded(), &[("own.cu", &unit)]].concat(), "own.cu")
    }

    /// The translation unit for the CPU device, whose files lie below `cuda/`.
    #[cfg(all(feature = "cpu", feature = "lab"))]
    pub(crate) fn host_unit(&self) -> String {
        let Self { text, function, arguments } = self;
        format!(
            "{}\n#include \"cuda/entry.cuh\"\nextern \"C\" void lookback_entry(const lookback_config*, const {arguments}* given) \
             {{\n  ::lookback::enter<false>([=] {{ {function}(*given); }});\n}}\n",
            text.replace("#include \"", "#include \"cuda/"),
        )
    }
}

/// Where the chain of a kernel's blocks (`lookback::tile_chain`) has its memory: `lookback::chain_memory`, a field of the
/// arguments.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct ChainMemory {
    control: u64,
    descriptors: u64,
    capacity: u64,
}

impl ChainMemory {
    /// Bytes that a chain of values of `value_bytes` needs for launches of up to `blocks` blocks.
    pub const fn bytes(value_bytes: usize, blocks: u64) -> u64 {
        let layout = if value_bytes <= 4 { Descriptor::Packed64 } else { Descriptor::Packed128 };
        CONTROL_BYTES + RegionKey::capacity(blocks) * Plan::descriptor_bytes(layout, value_bytes, value_bytes)
    }

    /// In so many bytes at that address, a multiple of 256: zeroed once before the first launch, and by one launch at a time.
    pub const fn at(address: u64, blocks: u64) -> Self {
        Self { control: address, descriptors: address + CONTROL_BYTES, capacity: RegionKey::capacity(blocks) }
    }
}
