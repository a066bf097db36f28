//! What `keep_odd.cuh` is called by and what it is told, for whoever launches it.

use lookback::kernels::own::{ChainMemory, OwnKernel};

pub const KEEP_ODD: OwnKernel<'static> =
    OwnKernel { text: include_str!("keep_odd.cuh"), function: "keep_odd", arguments: "odd_arguments" };

/// `odd_config`: of a block, and elements of its part of the array.
pub const BLOCK_THREADS: u32 = 128;
pub const TILE: usize = 8 * BLOCK_THREADS as usize;

/// `odd_arguments`.
#[repr(C)]
pub struct OddArguments {
    pub input: u64,
    pub output: u64,
    pub kept: u64,
    pub n: u64,
    pub chain: ChainMemory,
}

/// What is kept of an array.
pub fn odd(x: &[u32]) -> Vec<u32> {
    x.iter().copied().filter(|x| x % 2 == 1).collect()
}
