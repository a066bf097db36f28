//! A kernel of a user's own on the blocks of the scans, that of `examples/own_kernel/keep_odd.cuh`: for every GPU that kernels are
//! compiled for, and on the CPU device under drawn schedules and weak memory, with the faults of the scans and without.
#![cfg(all(feature = "cpu", feature = "lab"))]

#[cfg(feature = "cuda")]
mod common;
#[path = "../examples/own_kernel/keep_odd.rs"]
mod keep_odd;

use keep_odd::{BLOCK_THREADS, KEEP_ODD, OddArguments, TILE, odd};
use lookback::abi;
use lookback::cpu::{BlockOrder, ExecutionError, LaunchSettings, Schedule, WeakMemory, WeakSettings, launch_on};
use lookback::element::monoid::{Affine, Monoid};
use lookback::kernels::mutant::mutant_number;
use lookback::kernels::own::{ChainMemory, OwnKernel};
use lookback::lab::cpu_kernels::{NoKernel, OwnBody};
use lookback::lab::host_compiler::HostCompilerError;
use proptest::prelude::*;

/// The kernel; not where there is no compiler.
fn body(test: &str, own: &OwnKernel<'_>) -> Option<OwnBody> {
    match OwnBody::compile(own) {
        Ok(body) => Some(body),
        Err(NoKernel::Compiler(error @ (HostCompilerError::NoCompiler { .. } | HostCompilerError::NotAble { .. }))) => {
            assert!(std::env::var("LOOKBACK_REQUIRE_THREAD_SANITIZER").as_deref() != Ok("1"), "{test}: {error}");
            println!("{test} skipped: {error}");
            None
        }
        Err(error) => panic!("{test}: {error}"),
    }
}

/// The memory of a chain begins at one.
#[repr(C, align(256))]
#[derive(Clone, Copy)]
struct Line([u64; 32]);

/// Launches on one memory of a chain, under drawn schedules and weak memory, `at_wrap` all at the largest epoch.
struct Launches<'a> {
    body: &'a OwnBody,
    blocks: u64,
    lines: Vec<Line>,
    bytes: usize,
    at_wrap: bool,
    mutant: &'static str,
    seed: u64,
    memory: WeakMemory,
}

impl<'a> Launches<'a> {
    fn new(
        body: &'a OwnBody,
        (value_bytes, blocks): (usize, u64),
        at_wrap: bool,
        mutant: &'static str,
        seed: u64,
    ) -> Self {
        let bytes = ChainMemory::bytes(value_bytes, blocks) as usize;
        let lines = vec![Line([0; 32]); bytes.div_ceil(256)];
        Self {
            body,
            blocks,
            lines,
            bytes,
            at_wrap,
            mutant,
            seed,
            memory: WeakMemory::new(seed, WeakSettings::default()),
        }
    }

    fn chain(&mut self) -> ChainMemory {
        ChainMemory::at(self.lines.as_mut_ptr().expose_provenance() as u64, self.blocks)
    }

    /// One more, over arrays of these addresses and bytes, of which some are written; what went wrong, if anything did.
    fn run<Arguments>(
        &mut self,
        arguments: &Arguments,
        arrays: &[(u64, usize, bool)],
        launch: u32,
    ) -> Result<(), String> {
        let control = self.lines.as_mut_ptr().cast::<abi::lookback_control>();
        if self.at_wrap {
            // SAFETY: the memory begins with a control block, whose fields are words that any bits are a value of.
            unsafe { (*control).completed_epochs = abi::LOOKBACK_MAXIMUM_EPOCH - 1 };
        }
        self.memory.clear_arrays();
        self.memory.add_array("the memory of the chain", control.addr(), self.bytes, 4, true);
        for &(address, bytes, is_written) in arrays {
            self.memory.add_array("an array", address as usize, bytes, 4, is_written);
        }
        let seed = self.seed;
        let settings = LaunchSettings {
            seed: seed.wrapping_mul(31).wrapping_add(launch.into()),
            resident_blocks: 1 + (seed % 5) as u32,
            block_order: [BlockOrder::InOrder, BlockOrder::Reverse, BlockOrder::Random][(seed % 3) as usize],
            schedule: Schedule::Random { preemption: [0.02, 0.2, 1.0][(seed / 3 % 3) as usize] },
            mutant: if self.mutant.is_empty() { 0 } else { mutant_number(self.mutant) },
            ..LaunchSettings::new(self.blocks, BLOCK_THREADS)
        };
        // SAFETY: the callers' structures lie as those of their kernels do, which were compiled for this executor; all arrays are
        // as large as these are told and stay where they are until the launch returns.
        let result = unsafe {
            let body = self.body.body::<Arguments>();
            launch_on(&mut self.memory, body, &abi::lookback_config::default(), arguments, &settings)
        };
        self.memory.finish_launch();
        let told = |error| match error {
            ExecutionError::Backend { message, .. } => message,
            other => other.to_string(),
        };
        result.map(drop).map_err(told)
    }
}

fn address<T>(array: &mut [T]) -> u64 {
    array.as_mut_ptr().expose_provenance() as u64
}

fn keep_odd(body: &OwnBody, n: usize, at_wrap: bool, (mutant, seed): (&'static str, u64)) -> Result<(), String> {
    let mut launches = Launches::new(body, (4, n.div_ceil(TILE).max(1) as u64), at_wrap, mutant, seed);
    for launch in 0..3 {
        let number = |i: u32| i.wrapping_mul(0x9e37_79b1).rotate_left(7 + launch);
        let mut x: Vec<u32> = (0..n as u32).map(number).collect();
        let (mut y, mut kept) = (vec![0_u32; n.max(1)], [u32::MAX]);
        let [input, output, count] = [address(&mut x), address(&mut y), address(&mut kept)];
        let arguments = OddArguments { input, output, kept: count, n: n as u64, chain: launches.chain() };
        launches.run(&arguments, &[(input, 4 * n, false), (output, 4 * n, true), (count, 4, true)], launch)?;
        let expected = odd(&x);
        if kept[0] as usize != expected.len() || y[..expected.len()] != expected {
            return Err(format!("launch {launch}: {} kept of {}", kept[0], expected.len()));
        }
    }
    Ok(())
}

/// A chain of values of 16 bytes, which two words hold, by an operator that does not commute.
const CHAIN_MAPS: OwnKernel<'static> = OwnKernel {
    text: "#  include \"own/chain.cuh\"
struct maps_arguments {
  const lookback::affine_map* totals;
  lookback::affine_map* prefixes;
  lookback::chain_memory chain;
};
DEVICE void chain_maps(const maps_arguments& arguments) {
  using chain_type = lookback::tile_chain<lookback::operators::affine>;
  SHARED(chain_type::shared_type, shared);
  chain_type chain(arguments.chain, shared);
  const auto prefix = chain.prefix(lookback::memory::load(arguments.totals + chain.tile()));
  if (lookback::thread_index() == 0) lookback::memory::store(arguments.prefixes + chain.tile(), prefix);
}
",
    function: "chain_maps",
    arguments: "maps_arguments",
};

#[repr(C)]
struct MapsArguments {
    totals: u64,
    prefixes: u64,
    chain: ChainMemory,
}

fn chain_maps(body: &OwnBody, blocks: usize, at_wrap: bool, (mutant, seed): (&'static str, u64)) -> Result<(), String> {
    type Map = <Affine as Monoid>::Value;
    let mut launches = Launches::new(body, (size_of::<Map>(), blocks as u64), at_wrap, mutant, seed);
    for launch in 0..3 {
        // Large numbers, so that both words of a value change.
        let number = |i: u64| (i + u64::from(launch)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let map = |i: u64| Map { multiplier: number(i) | 1, addend: number(i + 99) };
        let mut totals: Vec<Map> = (0..blocks as u64).map(map).collect();
        let mut prefixes = vec![map(7); blocks];
        let [input, output] = [address(&mut totals), address(&mut prefixes)];
        let arguments = MapsArguments { totals: input, prefixes: output, chain: launches.chain() };
        let bytes = size_of_val(&totals[..]);
        launches.run(&arguments, &[(input, bytes, false), (output, bytes, true)], launch)?;
        let mut left = Affine::IDENTITY;
        for (block, (total, prefix)) in totals.iter().zip(&prefixes).enumerate() {
            if *prefix != left {
                return Err(format!("launch {launch}: what stands left of block {block}"));
            }
            left = Affine::combine(left, *total);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_is_right_under_every_schedule(tiles in 0_usize..9, more in 0_usize..TILE, at_wrap: bool, seed: u64) {
        let Some(body) = body("it_is_right_under_every_schedule", &KEEP_ODD) else { return Ok(()) };
        prop_assert_eq!(keep_odd(&body, tiles * TILE + more, at_wrap, ("", seed)), Ok(()));
    }

    #[test]
    fn a_chain_of_values_of_two_words_is_in_order(blocks in 1_usize..40, at_wrap: bool, seed: u64) {
        let Some(body) = body("a_chain_of_values_of_two_words_is_in_order", &CHAIN_MAPS) else { return Ok(()) };
        prop_assert_eq!(chain_maps(&body, blocks, at_wrap, ("", seed)), Ok(()));
    }
}

#[test]
fn faults_of_the_blocks_that_it_is_made_of_are_found_in_it() {
    let test = "faults_of_the_blocks_that_it_is_made_of_are_found_in_it";
    let (Some(odd_body), Some(maps)) = (body(test, &KEEP_ODD), body(test, &CHAIN_MAPS)) else { return };
    let odd = |at_wrap| {
        let body = &odd_body;
        move |mutant, seed| keep_odd(body, 9 * TILE, at_wrap, (mutant, seed))
    };
    let found = |mutant, run: &dyn Fn(&'static str, u64) -> Result<(), String>| {
        let how = (0..400).find_map(|seed| run(mutant, seed).err()).unwrap_or_else(|| panic!("{mutant} is not found"));
        println!("{mutant}: {how}");
    };
    for mutant in ["torn_descriptor", "epoch_ignored", "does_not_wait", "stops_at_aggregate", "passes_prefix"] {
        found(mutant, &odd(false));
    }
    for mutant in ["relaxed_finish", "wrap_not_cleared"] {
        found(mutant, &odd(true));
    }
    found("packed_128_first_word_for_all", &|mutant, seed| chain_maps(&maps, 30, false, (mutant, seed)));
}

#[test]
fn compilers_speak_of_the_lines_of_the_text() {
    let wrong = OwnKernel {
        text: "\nstruct a {};\nDEVICE void f(const a&) { no_such_name(); }\n",
        function: "f",
        arguments: "a",
    };
    match OwnBody::compile(&OwnKernel { text: &format!("#include \"own/chain.cuh\"{}", wrong.text), ..wrong }) {
        Err(NoKernel::Compiler(HostCompilerError::Compile { output, .. })) => {
            assert!(output.contains("own.cu:3"), "{output}");
        }
        Err(NoKernel::Compiler(error)) => println!("skipped: {error}"),
        other => panic!("it compiles: {other:?}"),
    }
}

#[cfg(feature = "cuda")]
#[test]
fn it_compiles_for_every_gpu() {
    use lookback::gpu::Architecture;
    let Some(compiler) = common::compiler("it_compiles_for_every_gpu") else { return };
    for own in [KEEP_ODD, CHAIN_MAPS] {
        for architecture in Architecture::CHECKED {
            let kernel = compiler.own_kernel(&own, architecture).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((kernel.resources.spill_bytes(), kernel.resources.stack_bytes), (0, 0), "{architecture}");
        }
    }
    let missing = OwnKernel { text: "#include \"own/no_such_file.cuh\"\n", ..KEEP_ODD };
    let error = compiler.own_kernel(&missing, Architecture::HOPPER).expect_err("there is no such file");
    assert!(error.to_string().contains("own/no_such_file.cuh"), "{error}");
}
