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
    /// CUDA C++, which includes files below `cuda/` by their paths there: `#include "own/chain.cuh"`. It is trusted as the rest of the
    /// program is, and on the CPU device it runs in the program's own process: do not make it of what strangers send.
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
        let included = |line: &str| -> Option<String> {
            let directive = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
            Some(format!("#include \"cuda/{}\n", directive.trim_start().strip_prefix('"')?))
        };
        let lines = text.lines().map(|line| included(line).unwrap_or_else(|| format!("{line}\n")));
        format!(
            "#line 1 \"cuda/own.cu\"\n{}#include \"cuda/entry.cuh\"\nextern \"C\" [[gnu::visibility(\"default\")]] void \
             lookback_entry(const lookback_config*, const {arguments}* given) {{\n  ::lookback::enter<false>([=] {{ {function}(*given); }});\n}}\n",
            lines.collect::<String>(),
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
    /// Bytes of the memory of chains of values of `value_bytes`, up to 32, in launches of up to `most_blocks` blocks each.
    pub const fn bytes(value_bytes: usize, most_blocks: u64) -> u64 {
        let layout = if value_bytes <= 4 { Descriptor::Packed64 } else { Descriptor::Packed128 };
        CONTROL_BYTES + RegionKey::capacity(most_blocks) * Plan::descriptor_bytes(layout, value_bytes, value_bytes)
    }

    /// In so many bytes at that address, a multiple of 256, which are zeroed once, before the first launch. From then on they are
    /// of chains of values of that one size, of one launch at a time, and each launch is told the same `most_blocks`, however
    /// many it has: else a descriptor of long ago is taken for one of today.
    pub const fn at(address: u64, most_blocks: u64) -> Self {
        Self { control: address, descriptors: address + CONTROL_BYTES, capacity: RegionKey::capacity(most_blocks) }
    }
}
