//! A kernel of one's own on the blocks of the scans, `keep_odd.cuh`, which keeps the odd numbers of an array:
//!
//!     cargo run --release --example own_kernel
//!
//! Here it runs on the CPU device, whose schedule is drawn from the seed. On a GPU `Compiler::own_kernel` makes the same text a
//! cubin, and cudarc launches it (docs/problems.md).

#[path = "../check/mod.rs"]
mod check;
mod keep_odd;

use check::{Outcome, checked};
use keep_odd::{BLOCK_THREADS, KEEP_ODD, OddArguments, TILE, odd};
use lookback::cpu::{LaunchSettings, Schedule, launch};
use lookback::kernels::own::ChainMemory;
use lookback::lab::cpu_kernels::OwnBody;

const N: usize = 100_000;

/// The memory of a chain begins at one.
#[repr(C, align(256))]
#[derive(Clone, Copy)]
struct Line([u8; 256]);

fn main() -> Outcome {
    let body = OwnBody::compile(&KEEP_ODD)?;
    let blocks = N.div_ceil(TILE) as u64;
    let x: Vec<u32> = (0..N as u32).map(|i| i.wrapping_mul(0x9e37_79b1) >> 3).collect();
    let (mut y, mut kept) = (vec![0_u32; N], [0_u32]);
    // Zeroed once; later launches find it as they leave it.
    let mut workspace = vec![Line([0; 256]); ChainMemory::bytes(4, blocks).div_ceil(256) as usize];
    let address = |pointer: *mut u32| pointer.expose_provenance() as u64;
    let arguments = OddArguments {
        input: address(x.as_ptr().cast_mut()),
        output: address(y.as_mut_ptr()),
        kept: address(kept.as_mut_ptr()),
        n: N as u64,
        chain: ChainMemory::at(address(workspace.as_mut_ptr().cast()), blocks),
    };
    let schedule = Schedule::Random { preemption: 0.05 };
    let settings = LaunchSettings { seed: 7, schedule, ..LaunchSettings::new(blocks, BLOCK_THREADS) };
    // SAFETY: `OddArguments` lies as the kernel's structure does, and all arrays are as large as it is told.
    unsafe { launch(body.body::<OddArguments>(), &lookback::abi::lookback_config::default(), &arguments, &settings) }?;
    let expected = odd(&x);
    let is_right = kept[0] as usize == expected.len() && y[..expected.len()] == expected;
    checked("odd numbers", is_right, &format!("{} of {N}, by {blocks} blocks", kept[0]))
}
