//! A kernel of a user's own on the blocks of the scans, that of `examples/own_kernel.cuh`: for every GPU that kernels are
//! compiled for, and on the CPU device under drawn schedules and weak memory, with the faults of the scans and without.
#![cfg(all(feature = "cpu", feature = "lab"))]

#[cfg(feature = "cuda")]
mod common;

use lookback::abi;
use lookback::cpu::{BlockOrder, ExecutionError, LaunchSettings, Schedule, WeakMemory, WeakSettings, launch_on};
use lookback::kernels::mutant::mutant_number;
use lookback::kernels::own::{ChainMemory, OwnKernel};
use lookback::lab::cpu_kernels::{NoKernel, OwnBody};
use lookback::lab::host_compiler::HostCompilerError;
use proptest::prelude::*;

const KEEP_ODD: OwnKernel<'static> =
    OwnKernel { text: include_str!("../examples/own_kernel.cuh"), function: "keep_odd", arguments: "odd_arguments" };
const BLOCK_THREADS: u32 = 128;
const TILE: usize = 8 * BLOCK_THREADS as usize;

/// `odd_arguments`.
#[repr(C)]
struct Arguments {
    input: u64,
    output: u64,
    kept: u64,
    n: u64,
    chain: ChainMemory,
}

/// The kernel; not where there is no compiler.
fn body(test: &str) -> Option<OwnBody> {
    match OwnBody::compile(&KEEP_ODD) {
        Ok(body) => Some(body),
        Err(NoKernel::Compiler(error @ (HostCompilerError::NoCompiler { .. } | HostCompilerError::NotAble { .. }))) => {
            assert!(std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"), "{test}: {error}");
            println!("{test} skipped: {error}");
            None
        }
        Err(error) => panic!("{test}: {error}"),
    }
}

/// Launches on one workspace, `at_wrap` all at the largest epoch; what went wrong, if anything did.
fn run(body: &OwnBody, (n, launches, at_wrap): (usize, u32, bool), (mutant, seed): (&str, u64)) -> Result<(), String> {
    let blocks = n.div_ceil(TILE).max(1) as u64;
    // Of lines of 256 bytes.
    let bytes = ChainMemory::bytes(4, blocks) as usize;
    let mut workspace = vec![[0_u64; 32]; bytes.div_ceil(256)];
    let start = workspace.as_mut_ptr();
    let control = start.cast::<abi::lookback_control>();
    let mut memory = WeakMemory::new(seed, WeakSettings::default());
    for launch in 0..launches {
        if at_wrap {
            // SAFETY: the workspace begins with a control block, whose fields are words that any bits are a value of.
            unsafe { (*control).completed_epochs = abi::LOOKBACK_MAXIMUM_EPOCH - 1 };
        }
        let x: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b1).rotate_left(7 + launch)).collect();
        let (mut y, mut kept) = (vec![0_u32; n.max(1)], [u32::MAX]);
        memory.clear_arrays();
        memory.add_array("the input", x.as_ptr().addr(), 4 * n, 4, false);
        memory.add_array("the output", y.as_ptr().addr(), 4 * n, 4, true);
        memory.add_array("the count", kept.as_ptr().addr(), 4, 4, true);
        memory.add_array("the workspace", start.addr(), bytes, 4, true);
        let address = |pointer: *mut u32| pointer.expose_provenance() as u64;
        let arguments = Arguments {
            input: address(x.as_ptr().cast_mut()),
            output: address(y.as_mut_ptr()),
            kept: address(kept.as_mut_ptr()),
            n: n as u64,
            chain: ChainMemory::at(address(start.cast()), blocks),
        };
        let settings = LaunchSettings {
            seed: seed.wrapping_mul(31).wrapping_add(launch.into()),
            resident_blocks: 1 + (seed % 5) as u32,
            block_order: [BlockOrder::InOrder, BlockOrder::Reverse, BlockOrder::Random][(seed % 3) as usize],
            schedule: Schedule::Random { preemption: [0.02, 0.2, 1.0][(seed / 3 % 3) as usize] },
            mutant: if mutant.is_empty() { 0 } else { mutant_number(mutant) },
            ..LaunchSettings::new(blocks, BLOCK_THREADS)
        };
        // SAFETY: `Arguments` lies as `odd_arguments` does; the kernel was compiled for this executor, and all arrays are as
        // large as it is told and stay where they are until the launch returns.
        let result = unsafe {
            let body = body.body::<Arguments>();
            launch_on(&mut memory, body, &abi::lookback_config::default(), &arguments, &settings)
        };
        memory.finish_launch();
        result.map_err(|error| match error {
            ExecutionError::Backend { message, .. } => message,
            other => other.to_string(),
        })?;
        let expected: Vec<u32> = x.iter().copied().filter(|x| x % 2 == 1).collect();
        if kept[0] as usize != expected.len() || y[..expected.len()] != expected {
            return Err(format!("launch {launch}: {} kept of {}", kept[0], expected.len()));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_is_right_under_every_schedule(tiles in 0_usize..9, more in 0_usize..TILE, at_wrap: bool, seed: u64) {
        let Some(body) = body("it_is_right_under_every_schedule") else { return Ok(()) };
        prop_assert_eq!(run(&body, (tiles * TILE + more, 3, at_wrap), ("", seed)), Ok(()));
    }
}

#[test]
fn faults_of_the_blocks_that_it_is_made_of_are_found_in_it() {
    let Some(body) = body("faults_of_the_blocks_that_it_is_made_of_are_found_in_it") else { return };
    for (mutant, at_wrap) in [
        ("torn_descriptor", false),
        ("epoch_ignored", false),
        ("does_not_wait", false),
        ("stops_at_aggregate", false),
        ("passes_prefix", false),
        ("relaxed_finish", true),
        ("wrap_not_cleared", true),
    ] {
        let mut found = (0..400).map(|seed| run(&body, (9 * TILE, 4, at_wrap), (mutant, seed)));
        let how = found.find_map(Result::err).unwrap_or_else(|| panic!("{mutant} is not found"));
        println!("{mutant}: {how}");
    }
}

#[cfg(feature = "cuda")]
#[test]
fn it_compiles_for_every_gpu() {
    use lookback::gpu::Architecture;
    let Some(compiler) = common::compiler("it_compiles_for_every_gpu") else { return };
    for architecture in Architecture::CHECKED {
        let kernel = compiler.own_kernel(&KEEP_ODD, architecture).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((kernel.resources.spill_bytes(), kernel.resources.stack_bytes), (0, 0), "{architecture}");
    }
    let missing = OwnKernel { text: "#include \"own/no_such_file.cuh\"\n", ..KEEP_ODD };
    let error = compiler.own_kernel(&missing, Architecture::HOPPER).expect_err("there is no such file");
    assert!(error.to_string().contains("own/no_such_file.cuh"), "{error}");
}
