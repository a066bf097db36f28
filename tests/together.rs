//! Launches that are there at one time on the CPU device: when blocks of the next one start, and what their wait orders.
#![cfg(all(feature = "cpu", feature = "lab"))]

use lookback::abi::{lookback_config, lookback_launch};
use lookback::cpu::{
    Access, BlockOrder, ExecutionError, LaunchSettings, MemoryBackend, Schedule, Stage, Synchronization, WeakMemory,
    WeakSettings, launch_together,
};
use lookback::lab::stress::cpu::{Fault, run};
use lookback::lab::stress::detector::Limits;
use lookback::lab::stress::search::search;
use lookback::lab::stress::{Case, Disturbance, Memory, Mutant, Need, PLAIN};
use std::collections::BTreeSet;
use std::ptr;

unsafe extern "C" {
    fn lookback_test_launch_behind(config: *const lookback_config, launch: *const lookback_launch);
}

const ALLOWS: u32 = 1;
const WAITS: u32 = 2;
const ONE_THREAD_WAITS: u32 = 4;
const WAITS_BEHIND_ITS_READ: u32 = 8;

/// Blocks and threads of each launch: as many threads in all, so that each reads what all have written.
const GRIDS: [(u64, u32); 4] = [(8, 32), (4, 64), (2, 128), (8, 32)];
const VALUES: usize = 256;

/// Memory as it is, and what was told of it.
#[derive(Default)]
struct Native(Vec<Synchronization>);

impl MemoryBackend for Native {
    fn load(&mut self, access: &Access, value: &mut [u8]) -> Result<(), String> {
        // SAFETY: the address is one that the kernel would have loaded from.
        unsafe {
            ptr::copy_nonoverlapping(ptr::with_exposed_provenance(access.address), value.as_mut_ptr(), value.len());
        }
        Ok(())
    }

    fn store(&mut self, access: &Access, value: &[u8]) -> Result<(), String> {
        // SAFETY: the address is one that the kernel would have stored to.
        unsafe {
            ptr::copy_nonoverlapping(value.as_ptr(), ptr::with_exposed_provenance_mut(access.address), value.len());
        }
        Ok(())
    }

    fn fetch_add(&mut self, _: &Access, _: u32) -> Result<u32, String> {
        Err("the kernel has none".to_owned())
    }

    fn synchronize(&mut self, event: Synchronization) -> Result<(), String> {
        self.0.push(event);
        Ok(())
    }
}

/// Launches that hand values to and fro between two arrays; what is left where the last one wrote.
fn hand_over(
    backend: &mut dyn MemoryBackend,
    arrays: &mut [Box<[u32; VALUES]>; 2],
    does: u32,
    seed: u64,
) -> Result<(), ExecutionError> {
    let config = lookback_config { vt: does, ..lookback_config::default() };
    let addresses = [0, 1].map(|at: usize| arrays[at].as_mut_ptr().expose_provenance());
    let array = |at: usize| ptr::with_exposed_provenance_mut(addresses[at % 2]);
    let arguments: Vec<_> = (0..GRIDS.len())
        .map(|at| lookback_launch { input: array(at), output: array(at + 1), ..lookback_launch::default() })
        .collect();
    let settings = |(blocks, threads)| LaunchSettings {
        resident_blocks: 1 + (seed % 4) as u32,
        block_order: BlockOrder::ALL[(seed % 3) as usize],
        schedule: if seed % 8 == 7 { Schedule::Fair } else { Schedule::Random { preemption: 0.3 } },
        plain_points: true,
        seed,
        ..LaunchSettings::new(blocks, threads)
    };
    let stages: Vec<_> = GRIDS
        .iter()
        .zip(&arguments)
        .map(|(&grid, arguments)| Stage {
            body: lookback_test_launch_behind as _,
            config: &config,
            arguments,
            settings: settings(grid),
        })
        .collect();
    // SAFETY: the kernel is compiled for this executor, and the arrays have a value for each thread.
    unsafe { launch_together(backend, &stages) }.map(drop)
}

fn arrays() -> [Box<[u32; VALUES]>; 2] {
    let numbers: Vec<u32> = (0..VALUES as u32).map(|i| 1000 * i).collect();
    [Box::new(numbers.try_into().expect("as many")), Box::new([0; VALUES])]
}

/// An even number of launches leaves the first array in its order, and each value more by one for each.
fn is_right(arrays: &[Box<[u32; VALUES]>; 2]) -> bool {
    (0..).zip(arrays[0].iter()).all(|(i, &value)| value == 1000 * i + GRIDS.len() as u32)
}

/// Whether blocks of a launch had begun before one of the launch before had ended.
fn overlap(events: &[Synchronization]) -> bool {
    let first_of_second = GRIDS[0].0;
    let begins = |event: &Synchronization| matches!(event, Synchronization::SharedStorage { block, .. } if *block >= first_of_second);
    let ends =
        |event: &Synchronization| matches!(event, Synchronization::BlockEnd { block } if *block < first_of_second);
    let last_end = events.iter().rposition(ends).expect("blocks end");
    events.iter().position(begins).expect("blocks begin") < last_end
}

#[test]
fn who_waits_finds_what_the_launch_before_has_written_however_early_it_is_there() {
    let mut overlapped = 0;
    for seed in 0..200 {
        for does in [WAITS, WAITS | ALLOWS] {
            let (mut native, mut arrays) = (Native::default(), arrays());
            hand_over(&mut native, &mut arrays, does, seed).unwrap();
            assert!(is_right(&arrays), "seed {seed}");
            // Without the permission a launch begins where the one before has ended.
            assert!(does & ALLOWS != 0 || !overlap(&native.0), "seed {seed}");
            overlapped += u32::from(overlap(&native.0));
        }
    }
    assert!(overlapped > 150, "{overlapped} of 200");
}

#[test]
fn who_does_not_wait_finds_what_was_there_before() {
    for does in [ALLOWS, ALLOWS | ONE_THREAD_WAITS, ALLOWS | WAITS_BEHIND_ITS_READ] {
        let wrong = (0..40).filter(|&seed| {
            let mut arrays = arrays();
            hand_over(&mut Native::default(), &mut arrays, does, seed).unwrap();
            !is_right(&arrays)
        });
        assert!(wrong.count() > 20, "{does}");
    }
}

fn on_weak_memory(does: u32, seed: u64) -> Result<bool, String> {
    let mut arrays = arrays();
    let mut memory = WeakMemory::new(seed, WeakSettings::default());
    for (name, array) in ["the one", "the other"].into_iter().zip(&mut arrays) {
        memory.add_array(name, array.as_mut_ptr().expose_provenance(), 4 * VALUES, 4, true);
    }
    let ended = hand_over(&mut memory, &mut arrays, does, seed);
    memory.finish_launch();
    ended.map(|()| is_right(&arrays)).map_err(|error| error.to_string())
}

#[test]
fn on_weak_memory_the_wait_acquires_and_what_is_not_awaited_is_a_race() {
    let mut told = BTreeSet::new();
    for seed in 0..40 {
        for does in [WAITS, WAITS | ALLOWS] {
            assert_eq!(on_weak_memory(does, seed), Ok(true), "seed {seed}");
        }
        // With and without the permission: the end of a launch alone tells nobody anything.
        for does in [0, ALLOWS, ALLOWS | ONE_THREAD_WAITS, ALLOWS | WAITS_BEHIND_ITS_READ] {
            let error = on_weak_memory(does, seed).expect_err("nobody waited");
            assert!(error.contains("data race"), "{error}");
            told.extend(error.split("launch ").skip(1).filter_map(|rest| rest.split(' ').next()).map(str::to_owned));
        }
    }
    assert!(told.contains("2"), "launches are told apart: {told:?}");
}

fn of_launches() -> impl Iterator<Item = &'static Mutant> {
    Mutant::all().expect("readable").iter().filter(|mutant| mutant.when.needs(Need::Together))
}

fn limits(schedules: u64) -> Limits {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    Limits { first_seed: 0, schedules, time: None, stop: None, threads }
}

#[test]
fn each_fault_of_the_wait_is_found_and_none_of_the_permission_is() {
    let names: BTreeSet<_> = of_launches().map(|mutant| mutant.name.as_str()).collect();
    for name in [
        "enter_wait_for_launches_before_dropped",
        "enter_wait_for_launches_before_late",
        "enter_wait_for_launches_before_by_one_thread",
        "enter_allow_next_launch_dropped",
        "enter_allow_next_launch_late",
        "ticket_before_wait",
    ] {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
    for mutant in of_launches() {
        for memory in [Memory::Strong, Memory::Weak] {
            let schedules = limits(if mutant.is_harmless() { 100 } else { 400 });
            let found = search(PLAIN, Some(mutant), &[memory], schedules, &|_| {}).expect("there is memory").found;
            match found {
                Some(found) if mutant.is_harmless() => {
                    panic!("{mutant} is harmless: {}\n{}", found.failure, found.case)
                }
                Some(found) => assert_eq!(run(&found.case), Err(found.failure), "{}", found.case),
                None => assert!(mutant.is_harmless(), "{mutant} survived {memory} memory"),
            }
        }
    }
}

/// Of every strategy, on their own: a search of all draws too few of each.
#[test]
fn the_kernels_as_they_are_pass_while_launches_overlap() {
    let (mut cases, mut launches, mut chains, mut strategies) = (0, 0, 0, BTreeSet::new());
    for seed in 0..1500 {
        let memory = if seed % 2 == 0 { Memory::Weak } else { Memory::Strong };
        let case = Case::draw(None, memory, seed);
        if case.together == 1 {
            continue;
        }
        let passed = run(&case).unwrap_or_else(|failure| panic!("{failure}\nlookback stress --replay '{case}'"));
        cases += 1;
        launches += passed.launches();
        chains += u64::from(case.request.in_place);
        strategies.insert(case.request.strategy.to_string());
    }
    // About a fifth, as docs/stress.md says.
    assert!((220..=400).contains(&cases), "{cases} cases");
    assert!(launches > 500 && chains > 50 && strategies.len() >= 10, "{launches}, {chains}, {strategies:?}");
}

#[test]
fn launches_that_are_cut_short_are_not_together_with_others() {
    let is_plain = |case: &Case| case.together == 2 && case.disturbance == Disturbance::None;
    let case = (0..).map(|seed| Case::draw(None, Memory::Strong, seed)).find(is_plain).expect("some").to_string();
    for (text, why) in
        [(format!("{case},abort=3"), "one behind"), (case.replace("together=2", "together=99"), "1 to 16")]
    {
        let error = text.parse::<Case>().expect_err(why).to_string();
        assert!(error.contains("together") && error.contains(why), "{error}");
    }
    assert_eq!(case.parse::<Case>().expect("a case").together, 2);
}

/// A fault that reads before the wait is told as what it is.
#[test]
fn a_race_with_a_launch_before_names_both() {
    let mutant = Mutant::named("enter_wait_for_launches_before_dropped").expect("it follows from a rule");
    let failures = (0..40).filter_map(|seed| run(&Case::draw(Some(mutant), Memory::Weak, seed)).err());
    let races = failures.filter(|failure| matches!(&failure.fault, Fault::Execution { text } if text.contains("data race") && text.contains("launch 2")));
    assert!(races.count() > 10);
}

/// Exponents of the bicyclic monoid grow with every scan of what a scan has left.
#[test]
fn a_chain_of_scans_in_place_ends_where_its_operator_does() {
    let text = "mutant=none,strategy=one-wave,type=bicyclic-pair,operator=bicyclic,mode=inclusive,layout=split,\
                pattern=shuffle,composition=scan-then-propagate,vt=16,threads=32,in-place=true,input-offset=0,\
                output-offset=0,n=4608,order=ticket,memory=strong,seed=198,resident=1,blocks=in-order,preemption=5,\
                plain-points=false,launches=3,epochs=0,workspace=zeros,together=2";
    let passed = run(&text.parse().expect("a case")).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(passed.schedules + passed.smaller, 2, "{passed:?}");
}
