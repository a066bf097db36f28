//! A kernel of one's own on the blocks of the scans, `own_kernel.cuh`, which keeps the odd numbers of an array:
//!
//!     cargo run --release --example own_kernel
//!
//! Here it runs on the CPU device, whose schedule is drawn from the seed. On a GPU `Compiler::own_kernel` makes the same text a
//! cubin, and cudarc launches it (docs/problems.md).

mod check;

use check::{Outcome, checked};
use lookback::cpu::{LaunchSettings, Schedule, launch};
use lookback::kernels::own::{ChainMemory, OwnKernel};
use lookback::lab::cpu_kernels::OwnBody;

const N: usize = 100_000;
const BLOCK_THREADS: u32 = 128;
const TILE: usize = 8 * BLOCK_THREADS as usize;

/// `odd_arguments` in `own_kernel.cuh`.
#[repr(C)]
struct Arguments {
    input: u64,
    output: u64,
    kept: u64,
    n: u64,
    chain: ChainMemory,
}

/// The memory of a chain begins at one.
#[repr(C, align(256))]
#[derive(Clone, Copy)]
struct Line([u8; 256]);

fn keep_odd() -> Outcome {
    let text = include_str!("own_kernel.cuh");
    let body = OwnBody::compile(&OwnKernel { text, function: "keep_odd", arguments: "odd_arguments" })?;
    let blocks = N.div_ceil(TILE) as u64;
    let x: Vec<u32> = (0..N as u32).map(|i| i.wrapping_mul(0x9e37_79b1) >> 3).collect();
    let (mut y, mut kept) = (vec![0_u32; N], [0_u32]);
    // Zeroed once; later launches find it as they leave it.
    let mut workspace = vec![Line([0; 256]); ChainMemory::bytes(4, blocks).div_ceil(256) as usize];
    let address = |pointer: *mut u32| pointer.expose_provenance() as u64;
    let arguments = Arguments {
        input: address(x.as_ptr().cast_mut()),
        output: address(y.as_mut_ptr()),
        kept: address(kept.as_mut_ptr()),
        n: N as u64,
        chain: ChainMemory::at(address(workspace.as_mut_ptr().cast()), blocks),
    };
    let schedule = Schedule::Random { preemption: 0.05 };
    let settings = LaunchSettings { seed: 7, schedule, ..LaunchSettings::new(blocks, BLOCK_THREADS) };
    // SAFETY: `Arguments` lies as the kernel's structure does, and all arrays are as large as it is told.
    unsafe { launch(body.body::<Arguments>(), &lookback::abi::lookback_config::default(), &arguments, &settings) }?;
    let expected: Vec<u32> = x.iter().copied().filter(|x| x % 2 == 1).collect();
    let is_right = kept[0] as usize == expected.len() && y[..expected.len()] == expected;
    checked("odd numbers", is_right, &format!("{} of {N}, by {blocks} blocks", kept[0]))
}

fn main() -> Outcome {
    keep_odd()
}
